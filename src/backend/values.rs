//! Values beside the rows of an indexed table in the memory of this process.

use super::cpu::check_memory;
use super::reserved::Reserved;
use crate::Result;
use bytemuck::Pod;
use std::ops::Range;

/// Values of some type, by number. Zeros at first; nothing moves when it grows.
pub(crate) struct CpuValues {
    memory: Reserved,
    /// So many bytes may be used.
    bytes: u64,
    threads: usize,
}

impl CpuValues {
    /// Memory for so many bytes: the system takes some for those only that are written.
    pub(crate) fn new(bytes: u64, threads: usize) -> Result<Self> {
        check_memory(bytes, threads)?;
        Ok(Self { memory: Reserved::new(bytes as usize)?, bytes, threads })
    }

    /// Sees to it that so many bytes may be used, and the others up to `most` with them.
    ///
    /// # Errors
    ///
    /// If there is no memory: then it is as it was.
    pub(crate) fn make(&mut self, bytes: u64, most: u64) -> Result<()> {
        if bytes > self.bytes {
            check_memory(most - self.bytes, self.threads)?;
            self.memory.grow(most as usize)?;
            self.bytes = most;
        }
        Ok(())
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes zeros of bytes that may be used.
    pub(crate) fn zero(&mut self, bytes: Range<u64>) {
        self.slice_mut::<u8>(bytes.end)[bytes.start as usize..].fill(0);
    }

    /// The first values, so many that their bytes may be used.
    ///
    /// # Safety
    ///
    /// Nobody writes them while the slice is borrowed, for as long as the caller says that it is: no longer than this lives.
    pub(crate) unsafe fn slice<'a, V: Pod>(&self, count: u64) -> &'a [V] {
        assert!(count * size_of::<V>() as u64 <= self.bytes, "values are within their memory");
        // SAFETY: memory of this process (asserted), aligned to pages, and so for `V` (`Array::new`); zeros at first, and any
        // bits are a `V`; that nobody writes them is the caller's promise. The addresses are reserved until `memory` is dropped.
        unsafe { std::slice::from_raw_parts(self.memory.address().cast_const().cast(), count as usize) }
    }

    /// The same, to be changed.
    pub(crate) fn slice_mut<V: Pod>(&mut self, count: u64) -> &mut [V] {
        assert!(count * size_of::<V>() as u64 <= self.bytes, "values are within their memory");
        // SAFETY: as in `slice`; the borrow is exclusive, and whoever holds a slice of `slice` borrows the array (`Array::view`).
        unsafe { std::slice::from_raw_parts_mut(self.memory.address().cast(), count as usize) }
    }
}
