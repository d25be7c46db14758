//! Layout of the runs of a round, and of the answers to them, in the memory of the rank that offers them.
//!
//! The lengths of runs are known only after the vectors have been sorted into them. So each run gets the capacity that its owner
//! is expected to need, plus a margin. If the capacity of a run is too little, because many vectors are equal, all runs are laid
//! out again with their real lengths.

use super::record::Wants;
use super::view::{message_bytes, reply_content};
use crate::layout::rank::LINE_BYTES;

/// Margin of a run that is expected to have n rows: n / `SPARE_PART` + `SPARE_ROWS` rows. For distinct vectors the standard
/// deviation is below sqrt(n), and six standard deviations are less than the margin.
const SPARE_PART: u64 = 16;
const SPARE_ROWS: u64 = 1024;

/// Layout of a round, by owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// Capacity of each run, in rows.
    pub capacities: Vec<u64>,
    /// Byte offset of each run's message from the first one.
    pub runs: Vec<u64>,
    /// Byte offset of each message of answers.
    pub answers: Vec<u64>,
}

impl Layout {
    /// Layout of runs of at most `capacities` rows. `available`: bytes available for the runs, and for the answers to them.
    ///
    /// # Panics
    ///
    /// If the last run, or the last answers, would end beyond the available memory.
    pub(super) fn of(capacities: Vec<u64>, row_bytes: u64, wants: Wants, available: [u64; 2]) -> Self {
        let run_bytes = |rows: &u64| message_bytes(row_bytes * rows);
        // The place of an answer implies its owner and row. So answers have places even if no rank requests them.
        let answer_bytes = |rows: &u64| message_bytes(reply_content(*rows, wants).max(*rows)) + LINE_BYTES;
        let ends = [capacities.iter().map(run_bytes).sum::<u64>(), capacities.iter().map(answer_bytes).sum()];
        assert!(
            ends[0] <= available[0] && ends[1] <= available[1],
            "{ends:?} bytes of runs and answers are within {available:?}"
        );
        let runs = starts(capacities.iter().map(run_bytes));
        let answers = starts(capacities.iter().map(answer_bytes));
        Self { capacities, runs, answers }
    }

    /// Layout for `count` vectors before any of them is known. `bounds`: the smallest hash that each rank owns
    /// (`owners::check_bounds`).
    pub(super) fn for_any(count: u64, bounds: &[u64], row_bytes: u64, wants: Wants, available: [u64; 2]) -> Self {
        let ends = bounds.iter().skip(1).map(|bound| u128::from(*bound)).chain([1 << 64]);
        let capacity = |(bound, end): (&u64, u128)| {
            let expected = ((u128::from(count) * (end - u128::from(*bound))) >> 64) as u64;
            count.min(expected + expected / SPARE_PART + SPARE_ROWS)
        };
        Self::of(bounds.iter().zip(ends).map(capacity).collect(), row_bytes, wants, available)
    }

    /// Largest number of bytes of the runs of a round, and of the answers to them, in any layout.
    pub(super) fn most_bytes(round: u64, ranks: u64, row_bytes: u64) -> [u64; 2] {
        let rows = (ranks * round).min(round + round / SPARE_PART + SPARE_ROWS * ranks);
        [rows * row_bytes + 3 * LINE_BYTES * ranks, rows * 9 + 4 * LINE_BYTES * ranks]
    }
}

/// Byte offsets of messages that lie one after another.
pub(super) fn starts(bytes: impl Iterator<Item = u64>) -> Vec<u64> {
    bytes.scan(0, |start, bytes| Some(std::mem::replace(start, *start + bytes))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::owners;

    #[test]
    fn whatever_is_laid_out_is_within_its_memory() {
        let wants = [(false, false), (true, false), (false, true), (true, true)];
        wants.into_iter().for_each(|(outcomes, references)| check(Wants { outcomes, references }));
    }

    /// Bounds that owned more than all hashes would need this much memory.
    #[test]
    fn more_than_there_is_memory_for_is_a_panic() {
        let all = Wants { outcomes: true, references: true };
        let most = Layout::most_bytes(10_000, 2, 16);
        for capacities in [vec![10_000, 10_000], vec![20_000, 0], vec![0, 20_000]] {
            let laid_out = std::panic::catch_unwind(|| Layout::of(capacities, 16, all, most));
            assert!(laid_out.is_err(), "{laid_out:?}");
        }
        Layout::of(vec![5_000, 5_000], 16, all, most);
    }

    fn check(all: Wants) {
        for (ranks, weights) in [(1, vec![1]), (2, vec![1, 1]), (3, vec![1, 5, 1000]), (40, vec![7; 40])] {
            let bounds = owners::bounds(&weights);
            for count in [0, 1, 5, 127, 128, 1000, 1025, 40_000, 1 << 20] {
                let most = Layout::most_bytes(count, ranks, 12);
                let expected = Layout::for_any(count, &bounds, 12, all, most);
                let mut one_has_all = vec![0; ranks as usize];
                one_has_all[0] = count;
                let even = vec![count / ranks; ranks as usize];
                for layout in [expected.clone(), Layout::of(one_has_all, 12, all, most), Layout::of(even, 12, all, most)] {
                    let (last, rows) = (ranks as usize - 1, &layout.capacities);
                    let run_end = layout.runs[last] + message_bytes(12 * rows[last]);
                    let answer_end = layout.answers[last] + LINE_BYTES + message_bytes(reply_content(rows[last], all));
                    assert!(run_end <= most[0] && answer_end <= most[1], "{count} to {weights:?}: {layout:?} in {most:?}");
                    for (at, capacity) in layout.capacities.iter().enumerate().take(last) {
                        assert!(layout.answers[at] + capacity <= layout.answers[at + 1], "{layout:?}");
                    }
                    let starts = layout.runs.iter().chain(&layout.answers);
                    assert!(starts.into_iter().all(|start| start.is_multiple_of(LINE_BYTES)));
                }
                assert!(expected.capacities.iter().sum::<u64>() >= count.min(1), "{expected:?}");
                assert!(expected.capacities.iter().all(|rows| *rows <= count));
            }
        }
    }
}
