//! Statistics of a cluster.

use std::fmt;
use std::time::Duration;

/// How full the ranks' tables are, and how evenly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Stats {
    /// Statistics of each rank, by rank.
    pub ranks: Vec<RankStats>,
}

/// Statistics of one rank's table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct RankStats {
    /// Slots of the table.
    pub slots: u64,
    /// Vectors stored.
    pub stored: u64,
    /// Bytes of the slots, and of the node table.
    pub bytes: u64,
    /// Nodes stored: 0 in a bucket table.
    pub nodes: u64,
    /// Slots of the node table: 0 in a bucket table.
    pub node_slots: u64,
    /// The longest probe sequence of a stored vector, in buckets.
    pub longest_probe: u64,
}

impl Stats {
    /// Vectors stored on all ranks.
    pub fn stored(&self) -> u64 {
        self.ranks.iter().map(|rank| rank.stored).sum()
    }

    /// Slots on all ranks.
    pub fn slots(&self) -> u64 {
        self.ranks.iter().map(|rank| rank.slots).sum()
    }

    /// Bytes on all ranks.
    pub fn bytes(&self) -> u64 {
        self.ranks.iter().map(|rank| rank.bytes).sum()
    }

    /// Vectors stored / slots, of all ranks together.
    pub fn fill(&self) -> f64 {
        self.stored() as f64 / self.slots() as f64
    }

    /// Fill of the fullest table / fill of all together: 1 if all are equally full; NaN if nothing is stored.
    pub fn balance(&self) -> f64 {
        let fullest = self.ranks.iter().map(|rank| rank.stored as f64 / rank.slots as f64).fold(0.0, f64::max);
        fullest / self.fill()
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} vectors in {} slots of {} ranks ({:.1} % full, the fullest {:.3} times as full), {} bytes",
            self.stored(),
            self.slots(),
            self.ranks.len(),
            100.0 * self.fill(),
            self.balance(),
            self.bytes()
        )
    }
}

/// Traffic of one rank with the others since its table was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Traffic {
    /// Rounds in which any rank had a vector.
    pub rounds: u64,
    /// Vectors that this rank has offered or looked for.
    pub offered: u64,
    /// Number of the offered vectors that were sent to another rank: vectors that this rank does not own. With deduplication,
    /// only one of several equal vectors of a round is sent.
    pub sent: u64,
    /// Bytes of runs and replies to other ranks, including stamps and padding.
    pub bytes_sent: u64,
    /// Bytes of runs and replies from other ranks.
    pub bytes_received: u64,
    /// Time spent waiting for others, including copies that the host waits for.
    pub waited: Duration,
}
