//! Pages of memory. A range of addresses is reserved once. Each allocation gets its own pages in this range, between guard pages.
//!
//! Each device has a part of the range, and so has the host's pinned memory, so an address shows its owner. Addresses are reused
//! only after the whole part was used, so that accesses to freed memory fault.

use super::settings::settings;
use super::{device, report};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{LazyLock, Mutex, MutexGuard, OnceLock};

pub const PAGE: u64 = 4096;

/// Number of bytes without access behind each allocation, and before the first one.
const GUARD: u64 = 16 * PAGE;

/// Total number of bytes in the range of addresses.
const RANGE: u64 = 48 << 40;

/// Content of memory that was never written. It is no key, not zero and not EMPTY.
pub const POISON: u8 = 0xDB;

/// Size from which poison is mapped from a file. Such memory is used only when it is written.
const MAPPED_POISON: u64 = 1 << 20;
const POISON_FILE: u64 = 16 << 20;

struct Space {
    start: u64,
    /// Number of bytes of each part.
    part: u64,
    parts: Vec<Mutex<Part>>,
}

struct Part {
    end: u64,
    /// Address at which the search for free addresses starts.
    next: u64,
    /// By start, the end of each range in use.
    taken: BTreeMap<u64, u64>,
}

static SPACE: LazyLock<Space> = LazyLock::new(|| {
    let count = device::count() as u64 + 1;
    // SAFETY: the call maps new addresses, without access and without memory.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            RANGE as usize,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        report::end(&format!("no {} TiB of addresses: {}", RANGE >> 40, std::io::Error::last_os_error()));
    }
    let start = (start as u64).next_multiple_of(1 << 30);
    let part = (RANGE - (1 << 30)) / count / (1 << 30) * (1 << 30);
    let parts = (0..count).map(|number| {
        let first = start + number * part;
        Mutex::new(Part { end: first + part, next: first, taken: BTreeMap::new() })
    });
    Space { start, part, parts: parts.collect() }
});

/// First and last address of the range. The fault handler reads it, which must not wait for a lock.
pub static BOUNDS: OnceLock<(u64, u64)> = OnceLock::new();

/// Reserves the range.
pub fn start() {
    BOUNDS.get_or_init(|| (SPACE.start, SPACE.start + SPACE.part * SPACE.parts.len() as u64));
}

/// Returns the part that contains an address: the ordinal of a device, or the number of devices for pinned memory of the host.
pub fn part_of(address: u64) -> Option<usize> {
    let offset = address.checked_sub(SPACE.start)?;
    Some((offset / SPACE.part) as usize).filter(|part| *part < SPACE.parts.len())
}

/// Reserves addresses in a part, a multiple of the page size, without access and with guards on both sides.
pub fn reserve(part: usize, bytes: u64, alignment: u64) -> Option<u64> {
    let (bytes, alignment) = (bytes.next_multiple_of(PAGE), alignment.max(PAGE));
    let first = SPACE.start + part as u64 * SPACE.part;
    let mut part = SPACE.parts[part].lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for start in [part.next, first] {
        let mut at = (start + GUARD).next_multiple_of(alignment);
        while at + bytes + GUARD <= part.end {
            // Only the last range that starts before the end of this one can overlap it.
            match part.taken.range(..at + bytes + GUARD).next_back() {
                Some((_, end)) if end + GUARD > at => at = (end + GUARD).next_multiple_of(alignment),
                _ => {
                    part.taken.insert(at, at + bytes);
                    part.next = at + bytes;
                    return Some(at);
                }
            }
        }
    }
    None
}

/// Releases addresses and their memory.
pub fn release(part: usize, start: u64) {
    let mut part = SPACE.parts[part].lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let Some(end) = part.taken.remove(&start) else {
        report::end("addresses are given back that were not reserved: a mistake of the simulated device");
    };
    forget(start, end - start);
}

/// Pages of devices that the process may access while operations are running.
#[derive(Default)]
struct Exposed {
    /// Number of running operations.
    running: u32,
    /// By start, the end of each range.
    ranges: BTreeMap<u64, u64>,
}

static EXPOSED: LazyLock<Mutex<Exposed>> = LazyLock::new(Mutex::default);

fn exposed() -> MutexGuard<'static, Exposed> {
    EXPOSED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// While this value lives, the process may access the memory of devices. It matters only if the host is excluded
/// (`WARPSET_SIMULATED_PROTECT`).
pub struct Access(());

impl Access {
    pub fn new() -> Option<Self> {
        if !settings().protect {
            return None;
        }
        let mut exposed = exposed();
        exposed.running += 1;
        if exposed.running == 1 {
            exposed.ranges.iter().for_each(|(start, end)| protect(*start, end - start, true));
        }
        Some(Self(()))
    }
}

impl Drop for Access {
    fn drop(&mut self) {
        let mut exposed = exposed();
        exposed.running -= 1;
        if exposed.running == 0 {
            exposed.ranges.iter().for_each(|(start, end)| protect(*start, end - start, false));
        }
    }
}

/// Allows or forbids access to pages of a device. If the host is excluded, the pages can be accessed only while operations are
/// running on a device.
pub fn expose(start: u64, bytes: u64, allowed: bool) {
    if !settings().protect {
        return protect(start, bytes, allowed);
    }
    let mut exposed = exposed();
    match allowed {
        true => exposed.ranges.insert(start, start + bytes),
        false => exposed.ranges.remove(&start),
    };
    protect(start, bytes, allowed && exposed.running > 0);
}

fn check(what: &str, address: u64, bytes: u64, failed: bool) {
    if failed {
        let error = std::io::Error::last_os_error();
        report::end(&format!("{what} {bytes} bytes at {address:#x}: {error}"));
    }
}

/// Gives reserved pages memory that can be read and written. It is filled with poison.
pub fn commit(start: u64, bytes: u64) {
    if bytes >= MAPPED_POISON {
        let file = *POISON_FD;
        let mut at = start;
        while at < start + bytes {
            let len = (start + bytes - at).min(POISON_FILE);
            // SAFETY: the pages are from `reserve` and not in use yet. The file is at least as long.
            let mapped = unsafe {
                libc::mmap(
                    at as *mut c_void,
                    len as usize,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_NORESERVE,
                    file,
                    0,
                )
            };
            check("mapping", at, len, mapped == libc::MAP_FAILED);
            at += len;
        }
        return;
    }
    protect(start, bytes, true);
    // SAFETY: the pages were just made writable, and are not in use yet.
    unsafe { std::ptr::write_bytes(start as *mut u8, POISON, bytes as usize) };
}

/// Allows or forbids access to pages.
pub fn protect(start: u64, bytes: u64, allowed: bool) {
    let access = if allowed { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_NONE };
    // SAFETY: the pages are in the range. Code that still uses them faults, which is the purpose.
    let failed = unsafe { libc::mprotect(start as *mut c_void, bytes as usize, access) } != 0;
    check("protecting", start, bytes, failed);
}

/// Removes the memory of pages. Any access then faults.
pub fn forget(start: u64, bytes: u64) {
    let mut exposed = exposed();
    while let Some((first, _)) = exposed.ranges.range(start..start + bytes).next() {
        let first = *first;
        exposed.ranges.remove(&first);
    }
    // SAFETY: the pages are in the range. Code that still uses them faults, which is the purpose.
    let mapped = unsafe {
        libc::mmap(
            start as *mut c_void,
            bytes as usize,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    check("unmapping", start, bytes, mapped == libc::MAP_FAILED);
}

/// Maps a part of a file to reserved pages, without access.
pub fn map_file(start: u64, bytes: u64, file: i32, offset: u64) {
    // SAFETY: the pages are from `reserve`, and nothing is mapped to them.
    let mapped = unsafe {
        libc::mmap(
            start as *mut c_void,
            bytes as usize,
            libc::PROT_NONE,
            libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_NORESERVE,
            file,
            offset as libc::off_t,
        )
    };
    check("mapping", start, bytes, mapped == libc::MAP_FAILED);
}

/// Creates a file in memory, full of zeros.
pub fn memory_file(bytes: u64) -> i32 {
    // SAFETY: the name ends in zero.
    let file = unsafe { libc::memfd_create(c"warpset simulated device".as_ptr(), libc::MFD_CLOEXEC) };
    check("a file in memory of", 0, bytes, file < 0);
    // SAFETY: the file was just created.
    let failed = unsafe { libc::ftruncate(file, bytes as libc::off_t) } != 0;
    check("a file in memory of", 0, bytes, failed);
    file
}

/// A file full of poison, which is mapped repeatedly.
static POISON_FD: LazyLock<i32> = LazyLock::new(|| {
    let file = memory_file(POISON_FILE);
    let block = vec![POISON; 1 << 20];
    for at in (0..POISON_FILE).step_by(block.len()) {
        // SAFETY: the length is that of the block.
        let written = unsafe { libc::pwrite(file, block.as_ptr().cast(), block.len(), at as libc::off_t) };
        check("writing poison of", 0, block.len() as u64, written != block.len() as isize);
    }
    file
});
