//! The least predecessor of a state: one step back on the path to it (path.rs, parents.rs).

use crate::exploration::Limits;
use crate::successors::{Expansion, Scratch, Successors};
use anyhow::Result;
use rayon::prelude::*;
use warpset::{Reference, Storage, VectorTable};

/// States of a level that a thread searches at a time.
pub const PIECE: usize = 512;

/// Finds the least state of `level` that has `successor` as a successor.
pub fn predecessor<S: Storage, X: Successors>(
    table: &VectorTable<S>,
    source: &X,
    level: &[Reference],
    successor: &[u32],
    limits: Limits,
) -> Result<Option<Vec<u32>>> {
    let search =
        |memory: &mut _, references: &[Reference]| least_before(table, source, references, successor, limits, memory, |_| true);
    let least = level.par_chunks(PIECE).map_init(Default::default, search);
    least.try_reduce(|| None, |one, other| Ok(one.into_iter().chain(other).min()))
}

/// Finds the least of some states that has `successor` as a successor, and for which `is_right` returns true.
pub fn least_before<S: Storage, X: Successors>(
    table: &VectorTable<S>,
    source: &X,
    references: &[Reference],
    successor: &[u32],
    limits: Limits,
    (scratch, expansion): &mut (Scratch, Expansion),
    is_right: impl Fn(Reference) -> bool,
) -> Result<Option<Vec<u32>>> {
    if let Some(stop) = (limits.stop)() {
        return Err(stop.error("while the path was followed back").into());
    }
    let (width, states) = (source.width(), table.get_many(references)?);
    expansion.clear();
    source.expand_those_without_fault(&states, scratch, expansion);
    let steps = expansion.successors.chunks_exact(width).zip(&expansion.parents).filter(|(other, _)| *other == successor);
    let before = steps.map(|(_, parent)| *parent as usize).filter(|parent| is_right(references[*parent]));
    Ok(before.map(|parent| &states[parent * width..][..width]).min().map(<[u32]>::to_vec))
}
