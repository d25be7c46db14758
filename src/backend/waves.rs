//! Order in which a table that grows in place fills the slices of the larger table.
//!
//! The vectors of a slice of the larger table come from a range of slices of the smaller one, in the same order
//! (cuda/warpset/bucket/growth.cuh), and both tables begin at one address. So the larger table is filled from its end on, in
//! *waves*: no slice of a wave lies where this wave or a later one reads. With r = new / old slices a wave leaves 1 / r of the
//! slices that were left before it. The first slices, r / (r - 1) or more, read a copy of theirs.

use crate::layout::size::Slices;
use std::ops::Range;

/// Largest number of waves. Growth by 1/32 leaves 1/2,600 of the slices after it.
const MOST_WAVES: usize = 256;

/// Slices of the smaller table for each slice of the copy from which no further wave is worth its start.
const SLICES_A_COPY: u64 = 128;

/// Number of slices of a table of this number of buckets. `None` if it is one slice of a prime number of buckets.
pub(super) fn slices(buckets: u64, slots_per_bucket: u32) -> Option<u64> {
    let Slices { slice_buckets, slice_mask } = Slices::of(buckets, slots_per_bucket);
    (slice_mask != u32::MAX).then(|| buckets / u64::from(slice_buckets))
}

/// Order in which parts of the larger table are filled. Each part is a number of adjacent slices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GrowthWaves {
    /// Parts that are filled at the same time, wave after wave.
    pub parts: Vec<Range<u64>>,
    /// Parts before this one read a copy of the first slices, and are filled in the end.
    pub copied_parts: u64,
    /// Slices of the smaller table that are copied.
    pub copied_slices: u64,
}

impl GrowthWaves {
    /// Waves of a table that grows from `now` to `then` slices, in parts of `slices_a_part` slices.
    pub(super) fn new(now: u64, then: u64, slices_a_part: u64) -> Self {
        // Slices of the smaller table that the first `parts` parts read.
        let read_by = |parts: u64| {
            let last = u128::from(then.min(parts * slices_a_part));
            (last * u128::from(now)).div_ceil(u128::from(then)) as u64
        };
        let (mut end, mut parts) = (then.div_ceil(slices_a_part), Vec::new());
        while read_by(end) > now / SLICES_A_COPY && parts.len() < MOST_WAVES {
            let first = read_by(end).div_ceil(slices_a_part);
            if first >= end {
                break;
            }
            parts.push(first..end);
            end = first;
        }
        Self { parts, copied_parts: end, copied_slices: read_by(end) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each part is filled once, and before that no wave has written where it reads.
    #[test]
    fn no_wave_writes_what_it_or_a_later_one_reads() {
        let sizes = (8..70).flat_map(|now| (now + 1..3 * now).map(move |then| (now, then)));
        let large = [(8, 8000), (1 << 20, 1 << 21), (1 << 20, (1 << 20) * 33 / 32), (1 << 20, (1 << 20) + 1), (1 << 33, 3 << 32)];
        for (now, then) in sizes.chain(large) {
            for a_part in [1, 2, 4, 7] {
                let GrowthWaves { parts, copied_parts, copied_slices } = GrowthWaves::new(now, then, a_part);
                let mut end = then.div_ceil(a_part);
                let read_by = |part: u64| (u128::from(then.min(part * a_part)) * u128::from(now)).div_ceil(u128::from(then));
                for wave in &parts {
                    assert!(wave.end == end && wave.start < end, "{now} to {then}: {wave:?}");
                    assert!(u128::from(wave.start * a_part) >= read_by(end), "{now} to {then}: {wave:?} writes what it reads");
                    end = wave.start;
                }
                assert_eq!((copied_parts, u128::from(copied_slices)), (end, read_by(end)), "{now} to {then}");
                assert!(parts.len() <= MOST_WAVES && copied_slices <= now);
            }
        }
    }

    #[test]
    fn waves_and_copies_are_few() {
        let of = |now, then| {
            let waves = GrowthWaves::new(now, then, 1);
            (waves.parts.len(), waves.copied_slices)
        };
        assert_eq!(of(1 << 20, 1 << 21), (7, 8192));
        assert_eq!(of(1 << 20, 1000 << 20), (1, 1049));
        let (waves, copied) = of(1 << 20, (1 << 20) * 103 / 100);
        assert!((160..170).contains(&waves) && copied <= (1 << 20) / 128, "{waves} waves, {copied} slices are copied");
        let (waves, copied) = of(1 << 20, (1 << 20) * 1001 / 1000);
        assert!(waves == MOST_WAVES && copied < (1 << 20) * 8 / 10, "{waves} waves, {copied} slices are copied");
    }
}
