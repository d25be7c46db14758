//! Finds shortest paths within the components of a graph that a machine has built, for runs that end in loops.

use super::engine::{Decomposer, Settings, bytes_of_work};
use super::graph::{self, MOST_DEGREE, MOST_STATES};
use super::machine::{Kernel, Level, LevelProgress, Machine, Work};
use anyhow::{Context, Result, ensure};
use bytemuck::bytes_of;
use std::mem::{offset_of, size_of};

/// Bit in `kinds` that marks a target state: `is_target` in paths.cuh.
pub const TARGET: u32 = 1;

/// Bits in `kinds` that mark a component with a target and a transition, at the state that is its label: `has_target` and
/// `has_inner`.
pub const HAS_CYCLE: u32 = 2 + 4;

/// A graph with kinds of states, decomposed into components.
pub struct Paths<'m, 'g, M: Machine<'g>> {
    engine: Decomposer<'m, 'g, M>,
    work: Work,
    /// Kinds of states. Kernels read them through the address in `work`.
    #[cfg_attr(not(test), expect(dead_code, reason = "kernels read it"))]
    kinds: M::Buffer,
}

/// The state at which a path ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Any target state.
    Target,
    /// The state where the path begins.
    Begin,
}

/// Bytes of the machine's memory that the search takes. Excludes the pairs of transitions and the kinds.
///
/// `piece` is [`Machine::piece`].
pub fn bytes(states: u64, transitions: u64, piece: u64) -> u64 {
    graph::bytes(states, transitions, None) + bytes_of_work(states, transitions, piece)
}

/// Whether the search supports a graph with these numbers of states and transitions.
pub fn is_possible(states: u64, transitions: u64) -> bool {
    states <= MOST_STATES && transitions <= MOST_DEGREE
}

impl<'m, 'g, M: Machine<'g>> Paths<'m, 'g, M> {
    /// Finds the components of a graph, and which components have a target and a transition.
    ///
    /// `pairs` has the transitions in any order, 8 bytes each: the source state in the lower half and the target state in the
    /// upper half. `kinds` has a word for each state.
    ///
    /// # Errors
    ///
    /// There are too many states or transitions, or memory does not suffice.
    pub fn new(
        machine: &'m M,
        states: u64,
        (pairs, transitions): (M::Buffer, u64),
        kinds: M::Buffer,
        settings: Settings,
    ) -> Result<Self> {
        ensure!(
            is_possible(states, transitions),
            "{states} states and {transitions} transitions are too many: at most {MOST_STATES} and {MOST_DEGREE} are possible"
        );
        let needed = bytes(states, transitions, machine.piece());
        machine.memory_budget()?.ensure(&format!("{states} states and {transitions} transitions"), needed)?;
        let (offsets, targets) = (machine.allocate(8 * (states + 1))?, machine.allocate(4 * transitions)?);
        machine.fill(&offsets, 8 * (states + 1), 0)?;
        let of_graph = Work {
            states,
            edges: transitions,
            offsets: machine.address(&offsets),
            targets: machine.address(&targets),
            ..Work::default()
        };
        let mut engine = Decomposer::over(machine, None, settings, of_graph, vec![offsets, targets])?;
        let rows = Work { pairs: machine.address(&pairs), ..engine.work.backwards() };
        engine.launch(Kernel::CountPairs, &rows)?;
        engine.scan(&rows, rows.in_offsets, states + 1)?;
        engine.launch(Kernel::ScatterPairs, &rows)?;
        drop(pairs);
        engine.components()?;
        engine.begin()?;
        let work = Work { kinds: machine.address(&kinds), ..engine.work };
        engine.launch(Kernel::MarkComponents, &work)?;
        Ok(Self { engine, work, kinds })
    }

    /// Device address of the labels: the smallest state of each state's component.
    pub fn labels_at(&self) -> u64 {
        self.work.label
    }

    /// Device address of the kinds of states.
    pub fn kinds_at(&self) -> u64 {
        self.work.kinds
    }

    #[cfg(test)]
    pub fn labels(&self) -> Result<Vec<u32>> {
        self.engine.labels()
    }

    #[cfg(test)]
    pub fn kinds(&self) -> Result<Vec<u32>> {
        self.engine.read_all(&self.kinds, self.work.states)
    }

    /// Finds a shortest path of at least one step within a component. Returns all its states except the first; `None` if there is
    /// no such path.
    pub fn shortest(&mut self, from: u32, goal: Goal) -> Result<Option<Vec<u32>>> {
        let work = Work { from: from.into(), bit: (goal == Goal::Target).into(), ..self.work };
        let machine = self.engine.machine;
        machine.fill(&self.engine.buffers.first, 4 * work.states, 0xff)?;
        // The search begins at the level after step 0, whose queue is the second one.
        self.engine.begin()?;
        let count = offset_of!(LevelProgress, levels) + size_of::<Level>() + offset_of!(Level, count);
        let queue = self.engine.work.queue[1] - self.engine.work.queue[0];
        machine.write(&self.engine.buffers.queues, queue, bytes_of(&from))?;
        machine.write(&self.engine.buffers.progress, count as u64, bytes_of(&1u64))?;
        machine.write(&self.engine.buffers.progress, offset_of!(LevelProgress, pivot) as u64, bytes_of(&u64::MAX))?;
        self.engine.run_levels(Kernel::FindPath, &work)?;
        if self.engine.progress()?.pivot == u64::MAX {
            return Ok(None);
        }
        self.engine.launch(Kernel::FollowPath, &work)?;
        let length = self.engine.progress()?.live;
        ensure!(length <= work.states, "a path of {length} steps in {} states: please report this as a bug", work.states);
        let mut path: Vec<u32> = self.engine.read_all(&self.engine.buffers.second, length)?;
        path.reverse();
        path.last().context("a path has a step")?;
        Ok(Some(path))
    }
}
