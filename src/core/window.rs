//! Host slices as kernels see them.

use crate::Result;
use crate::backend::{Machine, Memory};
use bytemuck::{AnyBitPattern, NoUninit};
use std::marker::PhantomData;

/// Memory through which host slices pass to kernels and back, on a GPU. Kernels of the host get slices where they are.
pub(super) struct Window<'a, T> {
    machine: &'a dyn Machine,
    memory: Option<Memory>,
    elements: PhantomData<T>,
}

/// Most bytes of the data of references that pass at once, and most references.
const PIECE_BYTES: usize = 16 << 20;
const PIECE: usize = 1 << 20;

/// Number of elements, of `bytes` bytes each besides a reference, that pass at once if there are `count`: all, where kernels get
/// slices where they are; at least one.
pub(super) fn piece(machine: &dyn Machine, count: usize, bytes: usize) -> usize {
    if machine.is_gpu() { count.min(PIECE_BYTES / bytes.max(1)).clamp(1, PIECE) } else { count.max(1) }
}

impl<'a, T: NoUninit + AnyBitPattern> Window<'a, T> {
    /// A window for slices of at most `count` elements.
    pub(super) fn new(machine: &'a dyn Machine, count: usize) -> Result<Self> {
        let bytes = (count * size_of::<T>()) as u64;
        let memory = if machine.is_gpu() { Some(machine.allocate(bytes)?) } else { None };
        Ok(Self { machine, memory, elements: PhantomData })
    }

    /// Address for kernels of the elements of a slice, which they do not change.
    pub(super) fn show(&self, slice: &[T]) -> Result<u64> {
        let Some(memory) = &self.memory else { return Ok(slice.as_ptr() as u64) };
        // SAFETY: memory of this window, which only kernels use that were launched before.
        unsafe { self.machine.write(**memory, 0, bytemuck::cast_slice(slice))? };
        Ok(memory.address)
    }

    /// Address for kernels of the elements of a slice, which they may change.
    pub(super) fn lend(&self, slice: &mut [T]) -> Result<u64> {
        if self.memory.is_some() {
            self.show(slice)?;
        }
        Ok(self.place(slice.as_mut_ptr()))
    }

    /// Address for kernels of elements that they write. `to`: where the host has memory for them.
    pub(super) fn place(&self, to: *mut T) -> u64 {
        self.memory.as_ref().map_or(to as u64, |memory| memory.address)
    }

    /// Waits for the kernels that were launched, and copies what they have written.
    pub(super) fn receive(&self, slice: &mut [T]) -> Result<()> {
        let Some(memory) = &self.memory else { return Ok(()) };
        // SAFETY: memory of this window, which only kernels use that were launched before.
        unsafe { self.machine.read(**memory, 0, bytemuck::cast_slice_mut(slice)) }
    }
}
