//! Memory of the host for results: plain, or pinned for a GPU.

use crate::Result;
#[cfg(feature = "cuda")]
use crate::backend::cuda::{Gpu, PinnedMemory};
use crate::host::zeroed;
use bytemuck::{AnyBitPattern, NoUninit};
use std::ops::{Deref, DerefMut};
#[cfg(feature = "cuda")]
use std::sync::Arc;

/// A slice whose memory stays when it gets shorter, and is used again when it gets longer.
pub(crate) struct HostMemory<T> {
    memory: Memory<T>,
    /// Elements that are shown.
    len: usize,
}

enum Memory<T> {
    Plain(Vec<T>),
    #[cfg(feature = "cuda")]
    Pinned {
        gpu: Arc<Gpu>,
        memory: Option<PinnedMemory>,
    },
}

impl<T> Default for HostMemory<T> {
    fn default() -> Self {
        Self { memory: Memory::Plain(Vec::new()), len: 0 }
    }
}

impl<T: NoUninit + AnyBitPattern> HostMemory<T> {
    /// Pinned, if there is a GPU to pin it for.
    #[cfg(feature = "cuda")]
    pub(crate) fn pinned(gpu: Option<Arc<Gpu>>) -> Self {
        let memory = gpu.map_or(Memory::Plain(Vec::new()), |gpu| Memory::Pinned { gpu, memory: None });
        Self { memory, len: 0 }
    }

    /// Makes it so long. What the elements are is not said: zeros, or what they were.
    ///
    /// # Errors
    ///
    /// If there is no memory for it: then it is as it was.
    pub(crate) fn make(&mut self, len: usize) -> Result<()> {
        match &mut self.memory {
            Memory::Plain(memory) => {
                if memory.len() < len {
                    *memory = zeroed(len)?;
                }
            }
            #[cfg(feature = "cuda")]
            Memory::Pinned { gpu, memory } => {
                let bytes = len * size_of::<T>();
                if memory.as_ref().map_or(0, PinnedMemory::bytes) < bytes {
                    *memory = Some(PinnedMemory::new(gpu, bytes)?);
                }
            }
        }
        self.len = len;
        Ok(())
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// The elements as a vector: the memory itself, or of pinned memory a copy.
    pub(crate) fn into_vec(self) -> Vec<T> {
        match self.memory {
            Memory::Plain(mut memory) => {
                memory.truncate(self.len);
                memory
            }
            #[cfg(feature = "cuda")]
            Memory::Pinned { .. } => self.to_vec(),
        }
    }
}

impl<T: NoUninit + AnyBitPattern> Deref for HostMemory<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.memory {
            Memory::Plain(memory) => &memory[..self.len],
            #[cfg(feature = "cuda")]
            Memory::Pinned { memory: Some(memory), .. } => memory.slice(0, self.len),
            #[cfg(feature = "cuda")]
            Memory::Pinned { memory: None, .. } => &[],
        }
    }
}

impl<T: NoUninit + AnyBitPattern> DerefMut for HostMemory<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.memory {
            Memory::Plain(memory) => &mut memory[..self.len],
            #[cfg(feature = "cuda")]
            Memory::Pinned { memory: Some(memory), .. } => memory.part(0, self.len),
            #[cfg(feature = "cuda")]
            Memory::Pinned { memory: None, .. } => &mut [],
        }
    }
}
