//! Figures that are reported after a search over ranks: distribution of the states and traffic between the ranks.

use super::agreement::of_each;
use super::search::Member;
use super::worker::Worker;
use anyhow::Result;
use warpset::{Stats, Storage};

/// Figures of a search, equal on all ranks.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    /// Number of states that each rank owns.
    pub states: Vec<u64>,
    /// Fill of the fullest table, divided by the fill of all tables together.
    pub balance: f64,
    /// Total number of bytes that ranks sent to other ranks.
    pub bytes_exchanged: u64,
    /// Seconds that ranks waited for other ranks, including copies for which the host waits; summed over all ranks.
    pub waited: f64,
    /// Statistics of all tables together. Excludes the lengths of probe sequences.
    pub stats: Stats,
    /// Devices of the ranks that this process knows.
    pub devices: String,
}

impl Numbers {
    /// Collects the figures. Collective: all ranks must call it.
    pub fn of<S: Storage, W: Worker<S>>(member: &mut Member<S, W>) -> Result<Self> {
        let traffic = member.table()?.traffic();
        let width = member.table()?.local().width();
        let of_ranks = member.collect(|table| table.stats())?;
        let waited = member.collect(|table| of_each(table, traffic.waited.as_nanos() as u64))?;
        let [bytes_exchanged] = member.collect(|table| table.sum([traffic.bytes_sent]))?;
        let mut stats = Stats::default();
        (stats.slots, stats.stored, stats.bytes, stats.width) = (of_ranks.slots(), of_ranks.stored(), of_ranks.bytes(), width);
        for rank in &of_ranks.ranks {
            (stats.nodes, stats.node_slots) = (stats.nodes + rank.nodes, stats.node_slots + rank.node_slots);
            stats.longest_probe = stats.longest_probe.max(rank.longest_probe);
        }
        let balance = if stats.stored == 0 { 1.0 } else { of_ranks.balance() };
        let states = of_ranks.ranks.iter().map(|rank| rank.stored).collect();
        Ok(Self {
            states,
            balance,
            bytes_exchanged,
            waited: waited.iter().sum::<u64>() as f64 * 1e-9,
            stats,
            devices: String::new(),
        })
    }
}
