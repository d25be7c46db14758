//! The shortest path to a state with a violation.
//!
//! In an indexed table an exploration may store the parent of each state (parents.rs, gpu/by_rows.rs), in 4 bytes for each state.
//! The path then follows the parents. Otherwise an exploration stores nothing for paths.
//!
//! Without parents, the table is cleared, and the levels before the violation are explored again. This time the references of
//! each level are kept: 8 bytes for each state. Then the path is found backwards from its last state: in each level, a search
//! finds a state that has the current one as a successor. This expands every level at most once more and puts nothing. So a path
//! takes about the time of the first exploration, at most twice that time. The engine that explored also finds the path: threads
//! here, or the GPU (gpu/mod.rs, explore.cu). In tables whose references change, storing parents from the beginning would cost
//! every exploration 8 bytes for each state and a write for each new state, and most explorations find nothing.

use crate::engine::HostEngine;
use crate::exploration::{Counts, End, Found, Limits};
use crate::successors::{Expansion, Scratch, Successors};
use anyhow::{Context, Result, bail};
use rayon::prelude::*;
use warpset::{Reference, Storage, VectorTable};

/// Number of states of a level that a thread searches at a time.
const PIECE: usize = 4096;

/// The states of a shortest path to `found`, computed by threads. Clears the table.
pub fn walk_back<S: Storage, X: Successors>(
    table: &VectorTable<S>,
    source: &X,
    initial: &[u32],
    found: &Found,
    limits: Limits,
) -> Result<Vec<Vec<u32>>> {
    let mut states = vec![found.state.clone()];
    if found.level > 0 {
        for level in levels(table, source, initial, found.level, limits)?.iter().rev() {
            let state = states.last().expect("it begins with one");
            let before = predecessor(table, source, level, state, limits)?;
            states.push(before.context("a state has no predecessor in the level before its own: please report this as a bug")?);
        }
    }
    states.reverse();
    Ok(states)
}

/// Explores the first `count` levels and returns the references of their states.
fn levels<S: Storage, X: Successors>(
    table: &VectorTable<S>,
    source: &X,
    initial: &[u32],
    count: u64,
    limits: Limits,
) -> Result<Vec<Vec<Reference>>> {
    loop {
        table.clear()?;
        let (mut levels, slots) = (Vec::new(), table.slots());
        let limits = limits.of_levels(count - 1);
        let observer = |_: &Counts| true;
        let engine = HostEngine { table, source, limits, recorder: None, observer: &observer };
        explored_again(engine.run(initial, Some(&mut levels))?.end)?;
        // Repeat until the table does not grow, because growth makes references stale. The table may grow although it was large
        // enough in the last exploration: places depend on the order of the puts.
        if table.slots() == slots {
            return Ok(levels);
        }
    }
}

/// Returns an error unless the exploration has reached the last level of the path.
pub fn explored_again(end: End) -> Result<()> {
    match end {
        End::Levels => Ok(()),
        End::Memory => {
            bail!(
                "memory ran out while the earlier levels were explored again, which takes 8 bytes per state more than the first \
                 time"
            )
        }
        End::Stopped(stop) => Err(stop.error("while the earlier levels were explored again").into()),
        end => bail!("exploring the earlier levels again ended differently ({end:?}): please report this as a bug"),
    }
}

/// Finds a state of `level` that has `successor` as one of its successors.
pub fn predecessor<S: Storage, X: Successors>(
    table: &VectorTable<S>,
    source: &X,
    level: &[Reference],
    successor: &[u32],
    limits: Limits,
) -> Result<Option<Vec<u32>>> {
    let width = source.width();
    let search = |(scratch, expansion): &mut (Scratch, Expansion), references: &[Reference]| {
        if let Some(stop) = (limits.stop)() {
            return Err(stop.error("while the path was followed back").into());
        }
        let states = table.get_many(references)?;
        for state in states.chunks_exact(width) {
            expansion.clear();
            source.expand(state, scratch, expansion);
            if expansion.successors.chunks_exact(width).any(|other| other == successor) {
                return Ok(Some(state.to_vec()));
            }
        }
        Ok(None)
    };
    let found = level.par_chunks(PIECE).map_init(Default::default, search).find_any(|found| !matches!(found, Ok(None)));
    found.unwrap_or(Ok(None))
}
