//! Memory of this process that is a mapping of its own.

use crate::{Error, Result, faults};
use std::{io, ptr};

/// Zeroed memory, in pages that the system provides when they are written.
pub(super) struct Pages {
    address: *mut u8,
    bytes: usize,
}

// SAFETY: plain memory with one owner, which determines how threads use it.
unsafe impl Send for Pages {}
// SAFETY: as for `Send`.
unsafe impl Sync for Pages {}

fn refused(bytes: u64) -> Error {
    Error::no_host_memory(bytes, io::Error::last_os_error().to_string())
}

/// Maps `bytes` bytes of new addresses.
fn map(bytes: usize, protection: libc::c_int, flags: libc::c_int) -> Option<*mut u8> {
    // SAFETY: maps new addresses, which nothing else uses.
    let address = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, libc::MAP_PRIVATE | libc::MAP_ANON | flags, -1, 0) };
    (address != libc::MAP_FAILED).then_some(address.cast())
}

impl Pages {
    pub(super) fn new(bytes: u64) -> Result<Self> {
        if faults::should_fail() {
            return Err(Error::no_host_memory(bytes, faults::ON_PURPOSE));
        }
        let address = map(bytes as usize, libc::PROT_READ | libc::PROT_WRITE, 0).ok_or_else(|| refused(bytes))?;
        // With small pages, each random access misses the TLB. The advice may fail: without huge pages the table is slower, not
        // wrong.
        #[cfg(target_os = "linux")]
        // SAFETY: the pages that were just mapped. This is only advice.
        unsafe {
            libc::madvise(address.cast(), bytes as usize, libc::MADV_HUGEPAGE);
        }
        Ok(Self { address, bytes: bytes as usize })
    }

    pub(super) fn address(&self) -> *mut u8 {
        self.address
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Enlarges the memory to `bytes` bytes. It keeps its content, but may get another address. New bytes are zero.
    ///
    /// # Errors
    ///
    /// If the system refuses. Then nothing has changed.
    #[cfg(target_os = "linux")]
    pub(super) fn enlarge(&mut self, bytes: u64) -> Result<()> {
        if faults::should_fail() {
            return Err(Error::no_host_memory(bytes, faults::ON_PURPOSE));
        }
        let new = bytes as usize;
        // SAFETY: a mapping of this size, which the caller borrows exclusively. It stays where it is.
        let in_place = unsafe { libc::mremap(self.address.cast(), self.bytes, new, 0) };
        if in_place == libc::MAP_FAILED {
            self.address = self.moved(new)?;
        }
        self.bytes = new;
        Ok(())
    }

    /// Moves the pages to a range of `bytes` addresses. Returns the new address, which is as far from the start of a huge page as
    /// the old one: so huge pages move whole.
    #[cfg(target_os = "linux")]
    fn moved(&self, bytes: usize) -> Result<*mut u8> {
        const HUGE_PAGE: usize = 2 << 20;
        let reserved = bytes.next_multiple_of(HUGE_PAGE) + HUGE_PAGE;
        let start = map(reserved, libc::PROT_NONE, libc::MAP_NORESERVE).ok_or_else(|| refused(bytes as u64))?;
        let before = (self.address as usize).wrapping_sub(start as usize) % HUGE_PAGE;
        // SAFETY: within the reserved range: `before` is less than a huge page.
        let to = unsafe { start.add(before) };
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: a mapping of this size, which the caller borrows exclusively, moves to addresses that were just reserved.
        let moved = unsafe { libc::mremap(self.address.cast(), self.bytes, bytes, flags, to.cast::<libc::c_void>()) };
        let error = (moved == libc::MAP_FAILED).then(|| refused(bytes as u64));
        // A refused move may have unmapped its target already, and another thread may have mapped something there since. So the
        // target is not unmapped again: if it is still reserved, only addresses are lost.
        let end = before + bytes.next_multiple_of(page());
        for rest in [0..before, end..reserved] {
            if !rest.is_empty() {
                // SAFETY: reserved above, outside the target of the move, and used by nothing.
                unsafe { libc::munmap(start.add(rest.start).cast(), rest.len()) };
            }
        }
        error.map_or(Ok(to), Err)
    }
}

/// Bytes of a page of the system.
#[cfg(target_os = "linux")]
fn page() -> usize {
    // SAFETY: the call only returns a number.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as usize
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` or `moved`, and given back once.
        unsafe { libc::munmap(self.address.cast(), self.bytes) };
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "it moves mappings")]
    fn memory_keeps_its_content_as_it_grows() {
        let mut all: Vec<Pages> = (0..3).map(|_| Pages::new(5 << 20).unwrap()).collect();
        for (number, pages) in all.iter_mut().enumerate() {
            for bytes in [5 << 20, (5 << 20) + 1, 17 << 20, 40 << 20] {
                let last = pages.bytes() as usize - 1;
                // SAFETY: within the memory.
                unsafe {
                    pages.address().write(number as u8 + 1);
                    pages.address().add(last).write(9);
                }
                pages.enlarge(bytes).unwrap();
                // SAFETY: as above. The memory is no smaller than before.
                let read = |at: usize| unsafe { pages.address().add(at).read() };
                assert_eq!((pages.bytes(), read(0), read(last)), (bytes, number as u8 + 1, 9));
                assert!((last + 1..bytes as usize).step_by(4096).all(|at| read(at) == 0), "new bytes are zero");
            }
            assert!(pages.enlarge(1 << 60).is_err() && pages.bytes() == 40 << 20);
        }
    }
}
