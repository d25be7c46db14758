//! Memory of the host for results: plain, or pinned for a GPU.

#[cfg(feature = "cuda")]
use crate::backend::cuda::{Gpu, PinnedMemory};
use crate::{Error, Result};
use bytemuck::{AnyBitPattern, NoUninit, Zeroable};
use std::ops::{Deref, DerefMut};
#[cfg(feature = "cuda")]
use std::sync::Arc;

/// Memory for results, zeros; an error where there is none.
pub(crate) fn zeroed<T: Zeroable>(count: usize) -> Result<Vec<T>> {
    let bytes = count as u64 * size_of::<T>() as u64;
    let refused = |reason: &str| Error::Allocation { bytes, reason: reason.into() };
    if crate::faults::strikes() {
        return Err(refused(crate::faults::ON_PURPOSE));
    }
    let mut memory = bytemuck::allocation::try_zeroed_vec(count).map_err(|()| refused("no memory for results"))?;
    advise_huge_pages(&mut memory);
    Ok(memory)
}

/// Asks for huge pages where whole ones fit. Memory that is new has no pages yet: they come as it is written, by page faults,
/// which are 512 times as many of 4 KiB. H200, `cargo bench --bench host`, 2 words from pinned memory, outcomes to a new
/// vector, segments of 8 MiB: 4.4 G/s without, 4.7 with.
#[cfg(target_os = "linux")]
fn advise_huge_pages<T>(memory: &mut Vec<T>) {
    const HUGE_PAGE: usize = 2 << 20;
    let start = memory.as_mut_ptr().cast::<u8>();
    let before = start.align_offset(HUGE_PAGE);
    let whole = (memory.len() * size_of::<T>()).saturating_sub(before) / HUGE_PAGE * HUGE_PAGE;
    if whole > 0 && !cfg!(miri) {
        // SAFETY: whole pages within the vector's memory, which is exclusively borrowed. The advice changes nothing that can be
        // read: without huge pages the memory is slower to get.
        unsafe { libc::madvise(start.wrapping_add(before).cast(), whole, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn advise_huge_pages<T>(_: &mut Vec<T>) {}

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
