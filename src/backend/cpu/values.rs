//! Values of the rows of an indexed table, in the memory of this process.

use super::memory::check_memory;
use super::reserved::Reserved;
use crate::Result;
use crate::backend::{Store, Values};
use crate::host::fill_repeatedly;
use std::ops::Range;

/// Values of some type, by number, in memory whose pages the system adds when they are written.
pub(super) struct CpuValues {
    memory: Reserved,
    /// Bytes that are usable.
    bytes: u64,
    threads: usize,
}

impl CpuValues {
    pub(super) fn new(bytes: u64, threads: usize) -> Result<Self> {
        check_memory(bytes, threads)?;
        Ok(Self { memory: Reserved::new(bytes as usize)?, bytes, threads })
    }
}

impl Values for CpuValues {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn address(&self) -> u64 {
        self.memory.address() as u64
    }

    fn make(&mut self, bytes: u64, most: u64) -> Result<()> {
        if bytes > self.bytes {
            check_memory(most - self.bytes, self.threads)?;
            self.memory.grow(most as usize)?;
            self.bytes = most;
        }
        Ok(())
    }

    fn fill(&mut self, bytes: Range<u64>, value: &[u8]) -> Result<()> {
        let (start, len) = self.part(bytes);
        // SAFETY: usable bytes (`part`), to which the caller has the only access. `value` is in another memory.
        unsafe { fill_repeatedly(start, len, value) };
        Ok(())
    }

    fn zero(&mut self, bytes: Range<u64>) -> Result<()> {
        let (start, len) = self.part(bytes);
        // SAFETY: as in `fill`.
        unsafe { start.write_bytes(0, len) };
        Ok(())
    }

    unsafe fn host_bytes<'a>(&self, bytes: u64) -> Option<&'a [u8]> {
        // SAFETY: the caller guarantees the contract.
        Some(unsafe { self.slice(bytes) })
    }

    fn host_bytes_mut(&mut self, bytes: u64) -> Option<&mut [u8]> {
        Some(self.slice_mut(bytes))
    }

    fn read(&self, _: &mut [u8]) -> Result<()> {
        unreachable!("{IN_PLACE}")
    }

    fn write(&mut self, _: &[u8]) -> Result<()> {
        unreachable!("{IN_PLACE}")
    }

    fn gather(&self, _: &dyn Store, _: &[u64], _: usize, _: &mut [u8]) -> Result<()> {
        unreachable!("{IN_PLACE}")
    }

    fn scatter(&mut self, _: &dyn Store, _: &[u64], _: usize, _: &[u8]) -> Result<()> {
        unreachable!("{IN_PLACE}")
    }
}

const IN_PLACE: &str = "values in the memory of this process are used where they are";

impl CpuValues {
    /// The first bytes.
    ///
    /// # Safety
    ///
    /// Nothing writes them during `'a`, and this outlives `'a`.
    unsafe fn slice<'a>(&self, bytes: u64) -> &'a [u8] {
        assert!(bytes <= self.bytes, "values are within their memory");
        // SAFETY: memory of this process (asserted), zeroed at first. The caller promises that nothing writes it. The addresses
        // are reserved until `memory` is dropped.
        unsafe { std::slice::from_raw_parts(self.memory.address().cast_const(), bytes as usize) }
    }

    /// Address and length of some bytes. A slice of all bytes would not do: `Array::open` fills values behind those that a slice
    /// of `Array::view` shows.
    fn part(&mut self, bytes: Range<u64>) -> (*mut u8, usize) {
        assert!(bytes.start <= bytes.end && bytes.end <= self.bytes, "values are within their memory");
        (self.memory.address().wrapping_add(bytes.start as usize), (bytes.end - bytes.start) as usize)
    }

    fn slice_mut(&mut self, bytes: u64) -> &mut [u8] {
        assert!(bytes <= self.bytes, "values are within their memory");
        // SAFETY: as in `slice`. No other slice of these bytes exists. Those of `Array::view` borrow the array, which `change`
        // and `update` borrow exclusively, and hold the table's lock, so that no change is left for `renumber`. Those of
        // `Array::get` end before the lock of `self` is released.
        unsafe { std::slice::from_raw_parts_mut(self.memory.address(), bytes as usize) }
    }
}
