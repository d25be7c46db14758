//! Lists of references to states in GPU memory, in discovery order.
//!
//! A reference takes 4 bytes in a table of up to 2^32 slots, and 5 in a larger one: the upper bits are apart. References take 8
//! bytes if the table is indexed, because rows may have larger numbers than slots, and for a product, because the kernels of the
//! search for accepting cycles read the list, too (`has_wide_list` in explore.cu).

use super::kernel::allocate;
use anyhow::{Result, ensure};
use std::ops::Range;
use std::sync::Arc;
use warpset::gpu::cudarc_0_19::cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DeviceRepr};

/// Number of slots up to which a reference has 32 bits.
const SLOTS_OF_32_BITS: u64 = 1 << 32;

/// How references of a table are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// 8 bytes.
    Wide,
    /// 4 bytes, or 5 if `has_above`.
    Narrow { has_above: bool },
}

impl Format {
    /// Format for a table of `slots` slots.
    pub fn new(slots: u64, is_wide: bool) -> Self {
        if is_wide { Self::Wide } else { Self::Narrow { has_above: slots > SLOTS_OF_32_BITS } }
    }

    /// Bytes of a reference.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Wide => 8,
            Self::Narrow { has_above } => 4 + u64::from(has_above),
        }
    }
}

/// `explore::States` in explore.cu: addresses of parents or references, of their upper bits, and, in a search without rows, of
/// starts of levels and of marks for new states. 0 where there is none.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct States {
    pub first: u64,
    pub second: u64,
    pub starts: u64,
    pub marks: u64,
}

// SAFETY: `repr(C)` of four addresses without padding, as in explore.cu.
unsafe impl DeviceRepr for States {}

/// A list of references in GPU memory.
pub(super) enum Order {
    Wide(CudaSlice<u64>),
    Narrow { low: CudaSlice<u32>, above: Option<CudaSlice<u8>> },
}

impl Order {
    /// A list without room for any reference.
    pub fn none(stream: &Arc<CudaStream>) -> Result<Self> {
        Ok(Self::Wide(stream.null()?))
    }

    /// Allocates room for `len` references. `None` if there is no memory for it. The caller must write each before reading it.
    pub fn allocate(stream: &Arc<CudaStream>, format: Format, len: u64) -> Result<Option<Self>> {
        let Format::Narrow { has_above } = format else { return Ok(allocate(stream, len)?.map(Self::Wide)) };
        let Some(low) = allocate(stream, len)? else { return Ok(None) };
        let above = if has_above { allocate(stream, len)? } else { None };
        Ok((above.is_some() == has_above).then_some(Self::Narrow { low, above }))
    }

    /// The references, if each has 8 bytes.
    pub fn wide(&self) -> Option<&CudaSlice<u64>> {
        match self {
            Self::Wide(references) => Some(references),
            Self::Narrow { .. } => None,
        }
    }

    /// Number of references for which there is room.
    pub fn len(&self) -> u64 {
        match self {
            Self::Wide(references) => references.len() as u64,
            Self::Narrow { low, .. } => low.len() as u64,
        }
    }

    pub fn bytes(&self) -> u64 {
        match self {
            Self::Wide(references) => references.num_bytes() as u64,
            Self::Narrow { low, above } => (low.num_bytes() + above.as_ref().map_or(0, CudaSlice::num_bytes)) as u64,
        }
    }

    /// Arguments of kernels that read or write the list.
    pub fn states(&self, stream: &CudaStream) -> States {
        let [first, second] = match self {
            Self::Wide(references) => [references.device_ptr(stream).0, 0],
            Self::Narrow { low, above } => {
                [low.device_ptr(stream).0, above.as_ref().map_or(0, |above| above.device_ptr(stream).0)]
            }
        };
        States { first, second, ..States::default() }
    }

    /// Copies references to the host.
    pub fn read(&self, stream: &Arc<CudaStream>, range: Range<u64>) -> Result<Vec<u64>> {
        let range = range.start as usize..range.end as usize;
        if range.is_empty() {
            return Ok(Vec::new());
        }
        match self {
            Self::Wide(references) => Ok(stream.clone_dtoh(&references.slice(range))?),
            Self::Narrow { low, above } => {
                let low = stream.clone_dtoh(&low.slice(range.clone()))?;
                let mut all: Vec<u64> = low.into_iter().map(u64::from).collect();
                if let Some(above) = above {
                    let above = stream.clone_dtoh(&above.slice(range))?;
                    all.iter_mut().zip(above).for_each(|(reference, above)| *reference |= u64::from(above) << 32);
                }
                Ok(all)
            }
        }
    }

    /// Copies references from the host, to place `at` and the places after it.
    pub fn write(&mut self, stream: &Arc<CudaStream>, at: u64, references: &[u64]) -> Result<()> {
        ensure!(at + references.len() as u64 <= self.len(), "a list of {} references is full", self.len());
        let range = at as usize..at as usize + references.len();
        if references.is_empty() {
            return Ok(());
        }
        match self {
            Self::Wide(all) => stream.memcpy_htod(references, &mut all.slice_mut(range))?,
            Self::Narrow { low, above } => {
                let words: Vec<u32> = references.iter().map(|reference| *reference as u32).collect();
                stream.memcpy_htod(&words, &mut low.slice_mut(range.clone()))?;
                if let Some(above) = above {
                    let bytes: Vec<u8> = references.iter().map(|reference| (reference >> 32) as u8).collect();
                    stream.memcpy_htod(&bytes, &mut above.slice_mut(range))?;
                }
            }
        }
        Ok(())
    }

    /// Copies the first `count` references to `other`, a longer list of the same format.
    pub fn copy_to(&self, stream: &Arc<CudaStream>, other: &mut Self, count: u64) -> Result<()> {
        match (self, other) {
            (Self::Wide(from), Self::Wide(to)) => copy(stream, from, to, count),
            (Self::Narrow { low, above }, Self::Narrow { low: to, above: to_above }) => {
                copy(stream, low, to, count)?;
                match (above, to_above) {
                    (Some(above), Some(to)) => copy(stream, above, to, count),
                    _ => Ok(()),
                }
            }
            _ => anyhow::bail!("lists of two formats: please report this as a bug"),
        }
    }

    /// Moves the references `from..end` to the beginning.
    pub fn move_to_front(&mut self, stream: &Arc<CudaStream>, from: u64, end: u64) -> Result<()> {
        match self {
            Self::Wide(references) => move_to_front(stream, references, from, end),
            Self::Narrow { low, above } => {
                move_to_front(stream, low, from, end)?;
                above.as_mut().map_or(Ok(()), |above| move_to_front(stream, above, from, end))
            }
        }
    }
}

fn copy<T: DeviceRepr>(stream: &Arc<CudaStream>, from: &CudaSlice<T>, to: &mut CudaSlice<T>, count: u64) -> Result<()> {
    let all = 0..count as usize;
    Ok(stream.memcpy_dtod(&from.slice(all.clone()), &mut to.slice_mut(all))?)
}

fn move_to_front<T: DeviceRepr>(stream: &Arc<CudaStream>, list: &mut CudaSlice<T>, from: u64, end: u64) -> Result<()> {
    // Each copy reads from behind its destination, and the stream runs the copies one after another.
    let (mut to, behind, end) = (0, from as usize, end as usize);
    while to + behind < end {
        let count = behind.min(end - to - behind);
        let (mut before, from) = list.split_at_mut(to + behind);
        stream.memcpy_dtod(&from.slice(..count), &mut before.slice_mut(to..to + count))?;
        to += count;
    }
    Ok(())
}
