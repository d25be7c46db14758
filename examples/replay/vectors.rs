//! The vectors of a replay, and memory for them.

use super::memory::MemoryBudget;
use anyhow::{Context, Result, anyhow};
use indicatif::{HumanBytes, HumanCount};
use warpset::Spec;

/// Vectors in the order in which they are offered.
pub struct Vectors {
    /// Row-major: `count()` x `width` words.
    pub words: Vec<u32>,
    pub width: usize,
    /// Number of distinct vectors, if known beforehand.
    pub distinct: Option<u64>,
    /// Origin of the vectors, for the report.
    pub origin: String,
}

impl Vectors {
    pub fn count(&self) -> usize {
        self.words.len() / self.width
    }

    /// Upper bound of the number of distinct vectors. The table is made for this number.
    pub fn most_distinct(&self) -> u64 {
        self.distinct.unwrap_or(self.count() as u64)
    }

    pub fn get(&self, at: usize) -> &[u32] {
        &self.words[at * self.width..][..self.width]
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.words.chunks_exact(self.width)
    }
}

/// Converts a width. Returns an error if no table can have it.
pub fn check_width(width: u64) -> warpset::Result<usize> {
    let width = usize::try_from(width).unwrap_or(usize::MAX);
    if (1..=Spec::MAX_WIDTH).contains(&width) {
        Ok(width)
    } else {
        Err(warpset::Error::OutOfRange { what: "words of a vector", given: width as u64, least: 1, most: Spec::MAX_WIDTH as u64 })
    }
}

/// Allocates zeroed words of `count` vectors. They may take `memory` bytes, by default all free memory. Returns an error, instead
/// of aborting, if they need more.
pub fn allocate(count: u64, width: usize, memory: Option<u64>) -> Result<Vec<u32>> {
    let too_many = || format!("{} vectors of {width} words exceed the address space of this machine", HumanCount(count));
    let bytes = count.checked_mul(width as u64 * 4).with_context(too_many)?;
    let words = usize::try_from(bytes / 4).ok().with_context(too_many)?;
    // The system grants more memory than it has and kills the process when the memory is touched, so check before.
    MemoryBudget::of(memory).ensure(&format!("{} vectors of width {width}", HumanCount(count)), bytes)?;
    // The system zeroes the memory page by page, on first writes.
    let zeros = bytemuck::allocation::try_zeroed_slice_box(words);
    let zeros = zeros
        .map_err(|()| anyhow!("{} of memory for {} vectors could not be allocated", HumanBytes(bytes), HumanCount(count)))?;
    Ok(zeros.into_vec())
}
