//! Measurements of a search on a GPU: where its time goes, and how much its table takes alone.

/// Clock cycles of the first threads of all of a GPU's blocks together.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Cycles {
    /// Reading states.
    pub fetching: u64,
    /// Making successors and handing them to the cache.
    pub generating: u64,
    /// Removing duplicates from the cache.
    pub caching: u64,
    /// Finding or putting what is left in the table.
    pub putting: u64,
    /// For other blocks at the end of a level.
    pub waiting: u64,
}

/// Use of a GPU's time.
#[derive(Clone, Debug)]
pub struct Measurements {
    pub cycles: Cycles,
    /// Successors that were offered, duplicates included.
    pub offered: u64,
    /// How many a second the table takes of these alone, in batches of its own; or why that was not measured.
    pub table_alone: Result<f64, String>,
}
