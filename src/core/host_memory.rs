//! Host memory for results: plain, or pinned for a GPU.

use crate::Result;
use crate::backend::{HostBuffer, Machine};
use crate::host::zeroed;
use bytemuck::{AnyBitPattern, NoUninit};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A slice that keeps its memory when it is shortened, and reuses it when it is lengthened.
pub(crate) struct HostMemory<T> {
    memory: Memory<T>,
    /// Number of visible elements.
    len: usize,
}

enum Memory<T> {
    Plain(Vec<T>),
    /// Buffer of a machine that copies from and to it directly; `None` before the first use.
    Pinned {
        machine: Arc<dyn Machine>,
        memory: Option<Box<dyn HostBuffer>>,
    },
}

impl<T> Default for HostMemory<T> {
    fn default() -> Self {
        Self { memory: Memory::Plain(Vec::new()), len: 0 }
    }
}

impl<T: NoUninit + AnyBitPattern> HostMemory<T> {
    /// Makes an empty slice. Its memory will be pinned if the machine has such memory.
    pub(crate) fn pinned(machine: &Arc<dyn Machine>) -> Self {
        Self { memory: Memory::Pinned { machine: machine.clone(), memory: None }, len: 0 }
    }

    /// Sets the length. The elements are zeros or earlier contents.
    ///
    /// # Errors
    ///
    /// If there is no memory for it. Then the slice is unchanged.
    #[inline]
    pub(crate) fn make(&mut self, len: usize) -> Result<()> {
        match &mut self.memory {
            Memory::Plain(memory) => {
                if memory.len() < len {
                    *memory = zeroed(len)?;
                }
            }
            Memory::Pinned { machine, memory } => {
                let bytes = len * size_of::<T>();
                if memory.as_ref().map_or(0, |memory| memory.bytes()) < bytes {
                    match machine.new_host_buffer(bytes)? {
                        None => self.memory = Memory::Plain(zeroed(len)?),
                        buffer => *memory = buffer,
                    }
                }
            }
        }
        self.len = len;
        Ok(())
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Converts to a vector. Plain memory is reused, pinned memory is copied.
    #[inline]
    pub(crate) fn into_vec(self) -> Vec<T> {
        match self.memory {
            Memory::Plain(mut memory) => {
                memory.truncate(self.len);
                memory
            }
            Memory::Pinned { .. } => self.to_vec(),
        }
    }
}

impl<T: NoUninit + AnyBitPattern> Deref for HostMemory<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.memory {
            Memory::Plain(memory) => &memory[..self.len],
            Memory::Pinned { memory: Some(memory), .. } => bytemuck::cast_slice(&memory.as_slice()[..self.len * size_of::<T>()]),
            Memory::Pinned { memory: None, .. } => &[],
        }
    }
}

impl<T: NoUninit + AnyBitPattern> DerefMut for HostMemory<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.memory {
            Memory::Plain(memory) => &mut memory[..self.len],
            Memory::Pinned { memory: Some(memory), .. } => {
                bytemuck::cast_slice_mut(&mut memory.as_mut_slice()[..self.len * size_of::<T>()])
            }
            Memory::Pinned { memory: None, .. } => &mut [],
        }
    }
}
