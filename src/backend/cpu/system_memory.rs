//! The system's memory.

use super::pages::Pages;
use crate::backend::Memory;
use crate::host::zeroed;
use crate::{Error, Result, faults};
use bytemuck::Zeroable;

/// Name of a CPU with `threads` threads, as users see it.
pub(super) fn name(threads: usize) -> String {
    if threads == 1 { "CPU (1 thread)".into() } else { format!("CPU ({threads} threads)") }
}

/// Checks that this number of bytes is free.
///
/// # Errors
///
/// [`Error::OutOfMemory`] if fewer than `bytes` are free.
pub(super) fn check_memory(bytes: u64, threads: usize) -> Result<()> {
    let free = free_memory();
    if bytes > free || faults::should_fail() {
        return Err(Error::OutOfMemory { device: name(threads), asked: bytes, free: Some(free), reason: String::new() });
    }
    Ok(())
}

/// Bytes that the system reports as available. If it reports nothing, a number larger than any memory.
pub(super) fn free_memory() -> u64 {
    let available = || {
        let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
        let line = meminfo.lines().find(|line| line.starts_with("MemAvailable:"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    available().map_or(i64::MAX as u64, |kib| kib * 1024)
}

/// Cache line. Messages between ranks begin at multiples of this size.
#[derive(Clone, Copy, Zeroable)]
#[repr(C, align(128))]
struct Line([u64; 16]);

/// Memory of at least this number of bytes is a mapping of its own.
const MAPPED: u64 = 4096;

/// Allocates zeroed memory.
pub(super) fn new_memory(bytes: u64) -> Result<Memory> {
    if bytes >= MAPPED {
        let pages = Pages::new(bytes)?;
        return Ok(Memory::new(pages.address() as u64, bytes, pages));
    }
    // The lines are never accessed through `lines`, only through their address.
    let mut lines = zeroed::<Line>(bytes.div_ceil(size_of::<Line>() as u64) as usize)?;
    Ok(Memory::new(lines.as_mut_ptr() as u64, bytes, lines))
}
