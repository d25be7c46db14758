//! Measurements of a search: the size of its table and, on a GPU, where its time goes and the throughput of its table alone.

use anyhow::Result;
use warpset::{Stats, Storage, VectorTable};

/// Returns statistics of a table. Excludes the lengths of probe sequences, because only these would need to read the whole table.
pub fn occupancy<S: Storage>(table: &VectorTable<S>) -> Result<Stats> {
    let mut stats = Stats::default();
    (stats.slots, stats.stored, stats.bytes, stats.width) = (table.slots(), table.len()?, table.bytes(), table.width());
    (stats.nodes, stats.node_slots) = (table.nodes()?, table.node_slots());
    Ok(stats)
}

/// Clock cycles, summed over the first thread of each block of a GPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Cycles {
    /// Reading states.
    pub fetching: u64,
    /// Computing successors and passing them to the cache.
    pub generating: u64,
    /// Removing duplicates from the cache.
    pub caching: u64,
    /// Calling find-or-put for the remaining successors.
    pub putting: u64,
    /// Waiting for other blocks at the end of a level.
    pub waiting: u64,
}

/// How a search used the time of its GPU.
#[derive(Clone, Debug)]
pub struct Measurements {
    pub cycles: Cycles,
    /// Successors offered, duplicates included.
    pub offered: u64,
    /// Successors per second that the table alone can take in batches, or the reason why that was not measured.
    pub table_alone: std::result::Result<f64, String>,
}
