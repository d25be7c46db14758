//! Memory of this process that grows in place: a range of addresses is reserved once, and backed by memory from its start on.

use crate::{Error, Result, faults};
use std::{io, ptr};

/// Memory that grows in place: its address never changes. New bytes are zero.
pub(crate) struct Reserved {
    address: *mut u8,
    reserved: usize,
    /// Number of bytes backed by memory.
    bytes: usize,
}

// SAFETY: plain memory with one owner, which determines how threads use it.
unsafe impl Send for Reserved {}
// SAFETY: as for `Send`.
unsafe impl Sync for Reserved {}

/// Sizes are multiples of this number of bytes, which is a multiple of every page size from 4 KiB to 64 KiB.
const GRAIN: usize = 1 << 16;

fn refused(bytes: usize) -> Error {
    Error::no_host_memory(bytes as u64, io::Error::last_os_error().to_string())
}

impl Reserved {
    /// Reserves `bytes` bytes. Up to four times the system's memory can be reserved.
    pub(crate) fn new(bytes: usize) -> Result<Self> {
        // SAFETY: the calls only return two numbers.
        let (pages, page) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
        let physical = (pages.max(0) as usize).saturating_mul(page.max(0) as usize);
        let most = physical.saturating_mul(4).max(bytes).next_multiple_of(GRAIN);
        let reserve = |bytes: usize| {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            // SAFETY: maps new addresses, which nothing else uses. They have no memory yet: an access is a fault.
            let address = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
            (address != libc::MAP_FAILED).then_some((address.cast::<u8>(), bytes))
        };
        let least = bytes.next_multiple_of(GRAIN).max(GRAIN);
        let halves = |bytes: usize| (bytes / 2).next_multiple_of(GRAIN);
        // If addresses are limited (`ulimit -v`), reserves a quarter to a half of the largest available range, because other code
        // needs addresses, too.
        let limited = || {
            let less = std::iter::successors(Some(halves(most)), |bytes| Some(halves(*bytes))).take_while(|less| *less > least);
            let can_be_had = less.into_iter().find(|less| reserve(*less).map(Self::of).is_some());
            can_be_had.and_then(|bytes| reserve(halves(bytes).max(least))).or_else(|| reserve(least))
        };
        let mut memory = reserve(most).or_else(limited).map(Self::of).ok_or_else(|| refused(bytes))?;
        memory.grow(bytes)?;
        Ok(memory)
    }

    /// Takes over `reserved` bytes of addresses, which nothing else uses.
    fn of((address, reserved): (*mut u8, usize)) -> Self {
        Self { address, reserved, bytes: 0 }
    }

    pub(crate) fn address(&self) -> *mut u8 {
        self.address
    }

    /// Grows to `bytes`, if it is smaller. New bytes are zero.
    ///
    /// # Errors
    ///
    /// If there is no memory, or no addresses were reserved for it. Then nothing has changed.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<()> {
        let bytes = bytes.next_multiple_of(GRAIN);
        if bytes <= self.bytes {
            return Ok(());
        }
        if bytes > self.reserved || faults::should_fail() {
            let reason = format!("{} bytes of addresses are reserved", self.reserved);
            return Err(Error::no_host_memory(bytes as u64, reason));
        }
        // SAFETY: pages of the reserved range, which nothing uses yet.
        let (start, new) = (unsafe { self.address.add(self.bytes) }, bytes - self.bytes);
        // SAFETY: as above.
        if unsafe { libc::mprotect(start.cast(), new, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
            return Err(refused(bytes));
        }
        // SAFETY: as above. This is only advice; huge pages help because rows are read at random.
        #[cfg(target_os = "linux")]
        unsafe {
            libc::madvise(start.cast(), new, libc::MADV_HUGEPAGE);
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // SAFETY: reserved by `new`, and given back once.
        unsafe { libc::munmap(self.address.cast(), self.reserved) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_where_it_is() {
        let mut memory = Reserved::new(100).unwrap();
        let at = memory.address();
        // SAFETY: within its 100 bytes.
        unsafe { at.add(99).write(7) };
        memory.grow(10 << 20).unwrap();
        assert_eq!(memory.address(), at);
        // SAFETY: within its 10 MiB.
        unsafe {
            assert_eq!((at.add(99).read(), at.add((10 << 20) - 1).read()), (7, 0));
        }
        assert!(memory.grow(1 << 60).is_err());
        memory.grow(1).unwrap();
    }

    /// Memory grows in place even in a process with few addresses, and leaves addresses for other code. (This test runs itself as
    /// such a process.)
    #[cfg(target_os = "linux")]
    #[test]
    #[cfg_attr(miri, ignore = "it starts a process")]
    fn it_grows_where_addresses_are_limited() {
        const IS_LIMITED: &str = "WARPSET_TEST_LIMITED";
        if std::env::var_os(IS_LIMITED).is_some() {
            let mut both = [(); 2].map(|()| Reserved::new(100).unwrap());
            both.iter_mut().for_each(|memory| memory.grow(64 << 20).unwrap());
            drop(vec![0u8; 64 << 20]);
            return;
        }
        let script =
            "ulimit -S -v 2000000 && exec \"$0\" --exact backend::cpu::reserved::tests::it_grows_where_addresses_are_limited";
        let limited = std::process::Command::new("sh")
            .args(["-c", script])
            .arg(std::env::current_exe().unwrap())
            .env(IS_LIMITED, "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&limited.stdout);
        assert!(limited.status.success() && said.contains("1 passed"), "{said}{}", String::from_utf8_lossy(&limited.stderr));
    }
}
