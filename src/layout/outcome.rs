//! Outcomes of find-or-put, for a vector and for the vectors of a batch.

use bytemuck::{CheckedBitPattern, NoUninit};
use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;

/// Outcome of find-or-put for one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, NoUninit, CheckedBitPattern)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u8)]
pub enum Outcome {
    /// This call stored the vector. Of all calls that ever offer it, exactly one gets this outcome.
    New = 1,
    /// The vector was stored already, or another call stored it at the same time.
    Seen = 2,
    /// The vector is not stored: no free slot (or, in a tree table, node) within the probe limit.
    Full = 3,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::New => "new",
            Self::Seen => "seen",
            Self::Full => "full",
        })
    }
}

/// Number of vectors of a batch with each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Tally {
    /// Vectors stored by this call.
    pub new: u64,
    /// Vectors that were stored already, including duplicates within the batch.
    pub seen: u64,
    /// Vectors that are not stored.
    pub full: u64,
    /// Number of `full` vectors that were rejected because the node table was full, not the table of slots. Always 0 in a bucket
    /// table.
    pub full_nodes: u64,
}

impl Tally {
    /// Number of vectors that were offered.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 1, 100)?;
    /// assert_eq!(table.find_or_put_many(&[7, 8, 7])?.tally.offered(), 3);
    /// # Ok(()) }
    /// ```
    pub const fn offered(&self) -> u64 {
        self.new + self.seen + self.full
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.new += other.new;
        self.seen += other.seen;
        self.full += other.full;
        self.full_nodes += other.full_nodes;
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        tallies.fold(Self::default(), |mut sum, tally| {
            sum += tally;
            sum
        })
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} new, {} seen, {} full", self.new, self.seen, self.full)
    }
}
