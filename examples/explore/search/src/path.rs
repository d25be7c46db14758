//! The shortest path to a state with a violation: of all shortest paths one that depends neither on threads nor on tables. Of the
//! states of the lowest level with a violation the search reports the least, word by word ([`Found::replaces`]); and from there
//! back, each state of the path is the least predecessor of the one behind it.
//!
//! In an indexed table an exploration may keep the parent of each state (parents.rs, gpu/by_rows.rs): 4 bytes a state. These tell
//! which states a level has. Otherwise an exploration stores nothing for paths.
//!
//! Without parents, the levels before the violation are explored again into the same table, after it was cleared. This time the
//! references of each level are kept: 8 bytes a state. Then the path is found backwards from its last state: in each level,
//! search the least state that has the current one as a successor. That expands every level once more and puts nothing. So a
//! path takes about the time of the first exploration, at most twice. The engine that explored also finds the path: threads here,
//! or the GPU (gpu/mod.rs, explore.cu). In tables whose references change, parents stored from the beginning would cost every
//! exploration 8 bytes a state and a write for each new one, and most explorations find nothing.

use crate::engine::HostEngine;
use crate::exploration::{Counts, End, Found, Limits};
use crate::predecessors::predecessor;
use crate::successors::Successors;
use anyhow::{Context, Result, bail};
use warpset::{Reference, Storage, VectorTable};

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
