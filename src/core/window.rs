//! Passes host slices to kernels and back.

use crate::Result;
use crate::backend::{Machine, Memory};
use bytemuck::{AnyBitPattern, NoUninit};
use std::marker::PhantomData;

/// On a GPU, memory through which host slices pass to kernels and back. On the host, kernels use slices where they are.
pub(super) struct Window<'a, T> {
    machine: &'a dyn Machine,
    memory: Option<Memory>,
    elements: PhantomData<T>,
}

/// Maximum number of bytes of data that pass at once, and maximum number of references.
const PIECE_BYTES: usize = 16 << 20;
const PIECE: usize = 1 << 20;

/// Number of elements, of `count`, that pass at once: all if kernels use slices where they are; at least one. Each element has
/// `bytes` bytes of data besides its reference.
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

    /// Returns the address at which kernels find the elements of a slice. The kernels do not change them.
    pub(super) fn show(&self, slice: &[T]) -> Result<u64> {
        let Some(memory) = &self.memory else { return Ok(slice.as_ptr() as u64) };
        // SAFETY: memory of this window. Only kernels that were launched before use it.
        unsafe { self.machine.write(**memory, 0, bytemuck::cast_slice(slice))? };
        Ok(memory.address)
    }

    /// Returns the address at which kernels find the elements of a slice. The kernels may change them.
    pub(super) fn lend(&self, slice: &mut [T]) -> Result<u64> {
        if self.memory.is_some() {
            self.show(slice)?;
        }
        Ok(self.place(slice.as_mut_ptr()))
    }

    /// Returns the address at which kernels write elements. `to`: the host's memory for these elements.
    pub(super) fn place(&self, to: *mut T) -> u64 {
        self.memory.as_ref().map_or(to as u64, |memory| memory.address)
    }

    /// Waits for the kernels that were launched, and copies to `slice` the elements that they have written.
    pub(super) fn receive(&self, slice: &mut [T]) -> Result<()> {
        let Some(memory) = &self.memory else { return Ok(()) };
        // SAFETY: as in `show`.
        unsafe { self.machine.read(**memory, 0, bytemuck::cast_slice_mut(slice)) }
    }
}
