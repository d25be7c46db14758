//! Growth of tables, within limits of memory.

use anyhow::{Result, ensure};
use warpset::{Error, Reference, Request, Spec, Storage, VectorTable};

/// Fill above which a table grows if it may, because its searches get long (`benches/README.md`).
pub const GROW_AT_FILL: f64 = 0.85;

/// Bytes of a slot for a tree node.
const NODE_BYTES: u64 = 8;

/// Result of an attempt to make a table larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    Done,
    /// There is no memory for a larger table. Nothing has changed.
    Refused,
    /// The table has grown, but there is no memory to find the listed states in it again. The search cannot go on.
    Stuck,
}

/// Turns "out of memory" and "table is full" into `None`.
pub fn if_it_fits<T>(result: warpset::Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::OutOfMemory { .. } | Error::TableFull { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Bytes that a table of `slots` slots takes in addition while it grows by `factor`. `taken`: bytes of everything that is
/// rebuilt.
pub fn bytes_to_grow(spec: Spec, is_on_gpu: bool, slots: u64, taken: u64, factor: u64) -> u64 {
    match (spec.is_indexed(), is_on_gpu) {
        (false, _) => factor * taken,
        // Only the index is rebuilt: at most 8 bytes per slot. A GPU needs up to 8 bytes more for each slot.
        (true, false) => factor * 8 * slots,
        (true, true) => factor * 16 * slots + (factor - 1) * 4 * spec.width() as u64 * slots,
    }
}

/// The part of a table that is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    Slots,
    /// Nodes of trees are full; there are free slots for vectors.
    Nodes,
}

impl Lack {
    /// Returns the full part: nodes if all rejected states lacked one (`for_nodes`), else slots.
    pub fn of(rejected: u64, for_nodes: u64) -> Self {
        if rejected > 0 && for_nodes >= rejected { Self::Nodes } else { Self::Slots }
    }

    /// Multiplies the size of a table by `factor`: its slots, with nodes in proportion, or its nodes alone. Returns false if
    /// there is no memory for it, or if the table cannot have more nodes.
    pub fn relieve<S: Storage>(self, table: &VectorTable<S>, factor: u64) -> Result<bool> {
        let grown = match self {
            Self::Slots => table.grow(factor * table.slots()),
            Self::Nodes => table.reserve_nodes(factor * table.node_slots()),
        };
        if matches!(grown, Err(Error::Nodes { .. })) {
            return Ok(false);
        }
        Ok(if_it_fits(grown)?.is_some())
    }
}

/// Multiplies the size of a table by the first of the `factors` for which there is memory; few large growths cost less than many
/// small ones. Returns false if the table stays as it is. The old and the new table together must stay within `limit` bytes.
/// `taken`: bytes of the old table and of everything that grows with it.
pub fn grow_within<S: Storage, const N: usize>(
    table: &VectorTable<S>,
    lack: Lack,
    factors: [u64; N],
    taken: u64,
    limit: u64,
) -> Result<bool> {
    let (slots, nodes) = (table.slots(), table.node_slots());
    let (is_indexed, is_on_gpu) = (table.spec().is_indexed(), table.device().is_gpu());
    // On a GPU an indexed table reserves memory for all rows that it may get; growth does not check whether that memory is free.
    let free = if is_indexed && is_on_gpu { table.device().free_memory()? } else { u64::MAX };
    let anew = |factor| match lack {
        Lack::Slots => bytes_to_grow(table.spec(), is_on_gpu, slots, taken, factor),
        Lack::Nodes => taken + (factor - 1) * NODE_BYTES * nodes,
    };
    for factor in factors {
        if taken + anew(factor) <= limit && anew(factor) <= free && lack.relieve(table, factor)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Puts the initial state into an empty table. A table without space for one state is made larger, within `limit` bytes. Returns
/// `None` if there is no memory for that.
pub fn put_initial<S: Storage>(table: &VectorTable<S>, initial: &[u32], limit: u64) -> Result<Option<Reference>> {
    loop {
        let batch = table.find_or_put_many_with(initial, Request::new().references(true))?;
        if batch.tally.full == 0 {
            ensure!(batch.tally.new == 1, "the table is not empty");
            return Ok(batch.references[0]);
        }
        if !grow_within(table, Lack::of(batch.tally.full, batch.tally.full_nodes), [2], table.bytes(), limit)? {
            return Ok(None);
        }
    }
}
