//! Memory for waiting states without a list, and for the last levels of a search for a path; see marked.rs.

use std::collections::VecDeque;
use warpset::gpu::cudarc_0_19::cudarc::driver::{CudaSlice, CudaStream, DevicePtr};

/// Waiting states of a search, marked.
pub(super) struct Marked {
    /// States of the level that are neither expanded nor listed, and states found for the next level: a bit for each slot.
    pub level: CudaSlice<u32>,
    pub next: CudaSlice<u32>,
    /// Number of marks in `level`.
    pub left: u64,
}

impl Marked {
    /// Bytes of the marks of a table.
    pub fn bytes_of(slots: u64) -> u64 {
        2 * 4 * slots.div_ceil(32)
    }

    /// Address of the marks of the next level.
    pub fn next(&self, stream: &CudaStream) -> u64 {
        self.next.device_ptr(stream).0
    }

    pub fn bytes(&self) -> u64 {
        (self.level.num_bytes() + self.next.num_bytes()) as u64
    }
}

/// References of the last levels of a search for a path, in the host's memory.
pub(super) struct Kept {
    /// Consecutive levels: number, and lower 32 bits and upper bits of each reference. The last one may be incomplete.
    levels: VecDeque<(u64, Vec<u32>, Vec<u8>)>,
    /// A level that does not fit, so that its states are not kept.
    lost: Option<u64>,
    bytes: u64,
    most_bytes: u64,
}

impl Kept {
    /// Keeps at most `bytes`, and at most a share of half of the host's free memory. `sharing`: number of searches that do so.
    pub fn new(bytes: u64, sharing: u64) -> Self {
        let most_bytes = bytes.min(warpset_support::memory::free_memory() / 2 / sharing);
        Self { levels: VecDeque::new(), lost: None, bytes: 0, most_bytes }
    }

    /// Adds some states of a level. Drops the first levels if all of them take too much memory.
    pub fn add(&mut self, level: u64, references: &[u64]) {
        if self.lost == Some(level) {
            return;
        }
        if self.levels.back().is_none_or(|(last, ..)| *last != level) {
            self.levels.push_back((level, Vec::new(), Vec::new()));
        }
        self.bytes += 5 * references.len() as u64;
        while self.bytes > self.most_bytes {
            let Some((first, low, _)) = self.levels.pop_front() else { break };
            self.bytes -= 5 * low.len() as u64;
            if first == level {
                (self.lost, self.bytes) = (Some(level), 0);
                return;
            }
        }
        if let Some((_, low, above)) = self.levels.back_mut() {
            low.extend(references.iter().map(|reference| *reference as u32));
            above.extend(references.iter().map(|reference| (reference >> 32) as u8));
        }
    }

    /// Number of states of a level that are kept.
    pub fn len(&self, level: u64) -> u64 {
        self.levels.iter().find(|(number, ..)| *number == level).map_or(0, |(_, low, _)| low.len() as u64)
    }

    /// Removes the last level. Returns its references if it has this number.
    pub fn pop(&mut self, level: u64) -> Option<Vec<u64>> {
        let (last, low, above) = self.levels.pop_back()?;
        let references = || low.iter().zip(&above).map(|(low, above)| u64::from(*above) << 32 | u64::from(*low)).collect();
        (last == level).then(references)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_that_do_not_fit_are_dropped_from_the_first_on() {
        let mut kept = Kept { levels: VecDeque::new(), lost: None, bytes: 0, most_bytes: 50 };
        for (level, references) in [(3u64, 4u64), (3, 2), (4, 3), (5, 1)] {
            kept.add(level, &(0..references).map(|place| place << 30 | level).collect::<Vec<_>>());
        }
        // Level 3 has left: 10 states fit, and there were 6 + 3 + 1.
        assert_eq!((kept.bytes, kept.levels.len()), (50, 3));
        assert_eq!([2, 3, 4, 5].map(|level| kept.len(level)), [0, 6, 3, 1]);
        kept.add(5, &[1 << 39]);
        assert_eq!((kept.bytes, kept.levels.len()), (25, 2));
        // A level of more states than fit is not kept, and no later part of it.
        kept.add(6, &[0; 11]);
        kept.add(6, &[7]);
        assert_eq!((kept.bytes, kept.levels.len(), kept.lost), (0, 0, Some(6)));
        kept.add(7, &[1 << 39, 2]);
        assert_eq!((kept.pop(7), kept.pop(6)), (Some(vec![1 << 39, 2]), None));
    }
}
