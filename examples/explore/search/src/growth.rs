//! Growth of tables within limits of memory.

use anyhow::{Result, ensure};
use warpset::{Error, MemoryLimit, Reference, Request, Spec, Storage, VectorTable};

/// Fill above which a table grows if possible, because lookups get long (`benches/bucket.md`).
pub const GROW_AT_FILL: f64 = 0.85;

/// Bytes of a slot for a tree node.
const NODE_BYTES: u64 = 8;

/// Result of an attempt to make a table larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    Done,
    /// There is no memory for a larger table. Nothing has changed.
    Refused,
    /// The table has grown, but there is no memory to find the listed states in it again. The search cannot continue.
    Stuck,
}

/// Turns "out of memory" and "table is full" into `None`.
pub fn if_it_fits<T>(result: warpset::Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::OutOfMemory { .. } | Error::MemoryLimit { .. } | Error::TableFull { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Additional bytes while a table of `slots` slots grows by `factor`. `taken` is the number of bytes of everything that is
/// rebuilt.
pub fn bytes_to_grow(spec: Spec, is_on_gpu: bool, slots: u64, taken: u64, factor: u64) -> u64 {
    match (spec.is_indexed(), is_on_gpu) {
        (false, _) => factor * taken,
        // Only the index is rebuilt: at most 8 bytes for each slot. A GPU needs up to 8 further bytes for each slot.
        (true, false) => factor * 8 * slots,
        (true, true) => factor * 16 * slots + (factor - 1) * 4 * spec.width() as u64 * slots,
    }
}

/// The part of a table that is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    Slots,
    /// The nodes of trees are full. There are free slots for vectors.
    Nodes,
}

impl Lack {
    /// Returns the full part: nodes if all rejected states lacked a node (`for_nodes`), else slots.
    pub fn of(rejected: u64, for_nodes: u64) -> Self {
        if rejected > 0 && for_nodes >= rejected { Self::Nodes } else { Self::Slots }
    }

    /// Multiplies the size of a table by `factor`: its slots, with nodes in proportion, or only its nodes. Returns false if there
    /// is no memory for the larger table, or if no table can have that many.
    pub fn relieve<S: Storage>(self, table: &VectorTable<S>, factor: u64) -> Result<bool> {
        let grown = match self {
            Self::Slots => table.reserve_total(factor * table.slots()),
            Self::Nodes => table.reserve_nodes(factor * table.node_slots()),
        };
        if matches!(grown, Err(Error::OutOfRange { .. })) {
            return Ok(false);
        }
        Ok(if_it_fits(grown)?.is_some())
    }
}

/// Grows a table to the next size that the library's schedule gives within `limit`: four times or twice the slots, more nodes, or
/// all the remaining memory. Returns false if the table keeps its size.
pub fn grow_within<S: Storage>(table: &VectorTable<S>, limit: MemoryLimit) -> Result<bool> {
    Ok(if_it_fits(table.grow_within(limit))?.unwrap_or(false))
}

/// Multiplies the size of a table by the first of the `factors` for which there is memory. Few large growths cost less than many
/// small ones, but making much memory usable costs time, too, and an emptier table is searched more slowly. So a factor of more
/// than two is used only up to a quarter of the memory. If no factor fits, the table takes the remaining memory. Returns false if
/// the table keeps its size. The old and the new table together must stay within `limit` bytes. `taken` is the number of bytes of
/// the old table and of everything that grows with it.
///
/// On one H200, anderson.8 took 1.18 of its time with the right capacity when it grew from the default one by eight, and 1.10 to
/// 1.11 by two or four; from a sixteenth of the right capacity 1.12 by eight, 1.17 by four and 1.35 by two.
pub fn grow_by_factors<S: Storage, const N: usize>(
    table: &VectorTable<S>,
    lack: Lack,
    factors: [u64; N],
    taken: u64,
    limit: u64,
) -> Result<bool> {
    let (slots, nodes) = (table.slots(), table.node_slots());
    let (is_indexed, is_on_gpu) = (table.spec().is_indexed(), table.device().is_gpu());
    // GPU memory is checked here because growth itself does not check it for an indexed table, which reserves memory for all rows
    // that it may get. Growth of other tables frees the old table and everything that grows with it (`taken`), so that memory
    // counts as free. The check covers more than the table: a larger table may fit and still leave too little memory for
    // everything that grows with it.
    let free = match (is_on_gpu, is_indexed) {
        (false, _) => u64::MAX,
        (true, false) => table.device().free_memory()?.saturating_add(taken),
        (true, true) => table.device().free_memory()?,
    };
    let anew = |factor| match lack {
        Lack::Slots => bytes_to_grow(table.spec(), is_on_gpu, slots, taken, factor),
        Lack::Nodes => taken + (factor - 1) * NODE_BYTES * nodes,
    };
    for factor in factors {
        let anew = anew(factor);
        let is_lavish = factor > 2 && anew > limit.min(free) / 4;
        if !is_lavish && taken + anew <= limit && anew <= free && lack.relieve(table, factor)? {
            return Ok(true);
        }
    }
    // Everything grows in proportion, so the table's share of the remaining memory equals its share of `taken`.
    let rest = limit.min(taken.saturating_add(table.device().free_memory()?)).saturating_sub(taken);
    let share = table.bytes() as f64 / taken.max(1) as f64;
    grow_within(table, MemoryLimit::Shared(table.bytes() + (rest as f64 * share) as u64))
}

/// Tables that must grow alike, together, and what counts towards the limit beside them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alike {
    /// Bytes of the tables.
    pub tables: u64,
    /// Bytes of the lists that are kept while the tables grow.
    pub lists: u64,
    /// Least bytes of lists that the tables need: those in proportion to the slots, for the tables as they are, and others.
    pub least_of_slots: u64,
    pub least: u64,
}

impl Alike {
    /// Returns the factor by which the tables may grow, by the library's schedule for one table. `None` if the factor is less
    /// than 1.25. The old and the new tables together must stay within `limit` bytes, and so must the new ones with the least
    /// lists. `is_reserved` says whether no other search uses the memory.
    pub fn factor_within(self, limit: u64, is_reserved: bool) -> Option<f64> {
        let (taken, most) = (self.tables.max(1) as f64, limit.saturating_sub(self.least) as f64);
        let limit = limit.saturating_sub(self.lists) as f64;
        let rest = ((limit - taken) / taken).min(most / (taken + self.least_of_slots as f64));
        let keeps = if is_reserved { 15.0 / 16.0 } else { 2.0 / 3.0 };
        if rest >= 2.0 && limit - 2.0 * taken >= keeps * limit {
            return Some(2.0);
        }
        // Leave a margin for rounding, because numbers of buckets are primes.
        let rest = rest * 0.999;
        (rest >= 1.25).then_some(rest)
    }
}

/// Puts the initial state into an empty table. If the table has no space for a single state, it grows within `limit`. Returns
/// `None` if there is no memory for that.
pub fn put_initial<S: Storage>(table: &VectorTable<S>, initial: &[u32], limit: MemoryLimit) -> Result<Option<Reference>> {
    loop {
        let batch = table.find_or_put_many_with(initial, Request::new().references(true))?;
        if batch.tally.full == 0 {
            ensure!(batch.tally.new == 1, "the table is not empty");
            return Ok(batch.references[0]);
        }
        if !grow_within(table, limit)? {
            return Ok(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_part_is_known_by_its_rejections() {
        let lacks = [(0, 0), (3, 0), (3, 2), (3, 3)].map(|(rejected, for_nodes)| Lack::of(rejected, for_nodes));
        assert_eq!(lacks, [Lack::Slots, Lack::Slots, Lack::Slots, Lack::Nodes]);
    }

    #[test]
    fn tables_grow_by_more_than_two_up_to_a_quarter_of_the_memory() {
        for (limit_in_tables, factor) in [(33, 8), (31, 4), (17, 4), (15, 2), (3, 2)] {
            let table = warpset::BucketTable::new(&warpset::Device::cpu(), 4, 1 << 18).unwrap();
            let (slots, bytes) = (table.slots(), table.bytes());
            assert!(grow_by_factors(&table, Lack::Slots, [8, 4, 2], bytes, limit_in_tables * bytes).unwrap());
            assert_eq!((table.slots() as f64 / slots as f64).round() as u64, factor, "{limit_in_tables} times its memory");
        }
    }

    #[test]
    fn tables_that_grow_alike_fill_their_memory() {
        // Lists of threads, and marks of a quarter of a byte for slots of 4 bytes.
        for (is_reserved, marks) in [(true, 0), (false, 0), (true, 16), (false, 16)] {
            for first in [1u64 << 20, 3 << 18, 12_345_678] {
                let (limit, lists, least, mut tables) = (1u64 << 30, 1 << 20, 1 << 12, first);
                let of_slots = |tables: u64| tables.checked_div(marks).unwrap_or(0);
                let factor =
                    |tables| Alike { tables, lists, least_of_slots: of_slots(tables), least }.factor_within(limit, is_reserved);
                while let Some(factor) = factor(tables) {
                    let more = (tables as f64 * factor) as u64;
                    assert!(factor >= 1.25 && lists + tables + more <= limit && more + of_slots(more) + least <= limit);
                    tables = more;
                }
                let share = if is_reserved { 0.93 } else { 0.66 };
                let used = tables + of_slots(tables);
                assert!(used as f64 >= share * limit as f64, "{used} of {limit} from {first}");
            }
        }
        let factor =
            |tables, lists, limit, is_reserved| Alike { tables, lists, ..Alike::default() }.factor_within(limit, is_reserved);
        assert_eq!(factor(100, 0, u64::MAX, false), Some(2.0));
        assert_eq!([factor(100, 0, 224, true), factor(100, 101, 100, true)], [None, None]);
    }
}
