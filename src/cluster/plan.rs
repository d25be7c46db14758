//! Plan of a round: the part of a batch that it sends, the number of rows from each rank to each, the answers that are requested,
//! and the memory of vectors and results.

use super::record::Wants;

/// Numbers of rows in one round, from each rank to each. All ranks know all of them.
pub(super) struct Rows {
    /// Number of this rank.
    pub own: usize,
    /// Rows by sender, then receiver.
    pub of: Vec<Vec<u64>>,
    /// By rank: the answers that the rank requests for its rows.
    pub wants: Vec<Wants>,
    /// Sequence number of the round's record, which stamps contain.
    pub sequence: u64,
}

impl Rows {
    /// Number of ranks.
    pub(super) fn ranks(&self) -> usize {
        self.of.len()
    }

    /// Rows that this rank sends to `rank`.
    pub(super) fn to(&self, rank: usize) -> u64 {
        self.of[self.own][rank]
    }

    /// Rows that `rank` sends to this one.
    pub(super) fn from(&self, rank: usize) -> u64 {
        self.of[rank][self.own]
    }

    /// Whether any rank that has rows requests answers to them.
    pub(super) fn are_answered(&self) -> bool {
        self.wants.iter().any(|wants| wants.outcomes)
    }
}

/// The vectors of a round.
#[derive(Clone, Copy)]
pub(super) enum Input<'a> {
    /// Words in host memory.
    Host(&'a [u32]),
    /// `count` vectors in device memory at `address`.
    Gpu { address: u64, count: usize },
}

impl<'a> Input<'a> {
    /// Number of vectors.
    pub(super) fn count(&self, width: usize) -> usize {
        match self {
            Self::Host(words) => words.len() / width,
            Self::Gpu { count, .. } => *count,
        }
    }

    /// The vectors in a range of positions.
    pub(super) fn part(&self, first: usize, len: usize, width: usize) -> Input<'a> {
        match self {
            Self::Host(words) => Self::Host(&words[first * width..(first + len) * width]),
            Self::Gpu { address, .. } => Self::Gpu { address: address + (first * width * 4) as u64, count: len },
        }
    }
}

/// Destination of a round's results, each by position of its vector.
pub(super) enum Output<'a> {
    Host {
        /// Empty if outcomes are not wanted.
        outcomes: &'a mut [u8],
        references: Option<&'a mut [u64]>,
        owners: Option<&'a mut [u32]>,
    },
    /// Addresses in device memory; 0 for results that are not wanted.
    Gpu { outcomes: u64, references: u64, owners: u64 },
}

/// Destination of the references of vectors that are new on this rank.
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "only batches in the memory of a GPU are like this"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fresh {
    Unwanted,
    Host,
    /// Device memory at `address`, with space for `capacity` references.
    Gpu {
        address: u64,
        capacity: u64,
    },
}

/// Results that an operation requests. They are the same in all of its rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub wants: Wants,
    pub owners: bool,
    pub fresh: Fresh,
}

/// Origin of the runs of a round, which their stamps contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sender {
    /// Number of the rank that sends.
    pub rank: usize,
    /// Sequence number of the record that announces the lengths of the runs: the next record.
    pub sequence: u64,
}

/// The part of a rank's batch that is sent in one round.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundPart {
    /// Number of the round.
    pub round: usize,
    /// Position of the first vector in the batch.
    pub first: usize,
    /// Number of vectors of the part.
    pub len: usize,
    /// Number of vectors of the batch.
    pub end: usize,
}

/// Smallest number of parts of a batch that has enough vectors for them: one part is sorted and sent while another is put.
const PARTS: usize = 4;

/// Smallest number of vectors of a part, if a batch is divided only because of [`PARTS`].
const PART: usize = 1 << 22;

impl RoundPart {
    /// Part of the first round: at most `most` vectors.
    pub(super) fn first(end: usize, most: usize) -> Self {
        Self::from(0, 0, end, most)
    }

    /// Part of the next round: at most `most` vectors.
    pub(super) fn next(&self, most: usize) -> Self {
        Self::from(self.round + 1, self.first + self.len, self.end, most)
    }

    /// Divides the vectors from `first` on evenly among the rounds that are left.
    fn from(round: usize, first: usize, end: usize, most: usize) -> Self {
        let (left, parts) = (end - first, PARTS.min(end / PART).saturating_sub(round));
        Self { round, first, len: left.div_ceil(parts.max(left.div_ceil(most)).max(1)), end }
    }
}
