//! Maximal end components, found by a machine's kernels.
//!
//! This is the basic algorithm (section 2.3 of Wijs, Katoen, Bošnački 2014; de Alfaro 1997). A choice that may leave its strongly
//! connected component is in no end component. Neither is a state without choices, nor a choice that may lead to such a state.
//! Such choices and states are removed until nothing changes, along a frontier as in trimming. Components from which nothing was
//! removed are final. Only the states of the other components are decomposed again, as a separate graph with the remaining
//! choices.

use super::engine::Decomposer;
use super::machine::{Kernel, Machine, Work};
use super::partition::without_choices;
use anyhow::{Context, Result};
use bytemuck::bytes_of;
use std::time::Instant;

/// The subgraph that is decomposed again. Its states are renumbered but keep their order.
pub(super) struct Part<B> {
    pub(super) offsets: B,
    in_offsets: B,
    /// Targets and sources of its transitions.
    pub(super) edges: Option<[B; 2]>,
    /// The work on this subgraph.
    work: Work,
}

impl<'g, M: Machine<'g>> Decomposer<'_, 'g, M> {
    /// Finds the maximal end components. `components` must have been called before. Returns the number of decompositions,
    /// including the first one.
    ///
    /// # Errors
    ///
    /// Memory does not suffice. The error has the numbers.
    pub fn end_components(&mut self) -> Result<u64> {
        let choices = self.graph.and_then(|graph| graph.choices.as_ref());
        let Some(choices) = choices.filter(|_| self.work.states > 0) else { return Ok(1) };
        let began = Instant::now();
        let before = self.decomposing();
        let machine = self.machine;
        let (states, choice_words) = (self.work.states, (choices.offsets.len() as u64).div_ceil(32));
        self.ensure_memory(20 * states + 4 * choice_words)?;
        self.transpose_once()?;
        let [component, left, touched, one, other] = [(); 5].map(|()| machine.allocate(4 * states));
        let [component, left, touched, one, other] = [component?, left?, touched?, one?, other?];
        let removed = machine.allocate(4 * choice_words)?;
        machine.fill(&touched, 4 * states, 0)?;
        machine.fill(&removed, 4 * choice_words, 0)?;
        let [mut list, mut members] = [machine.address(&one), machine.address(&other)];
        let mut work = Work {
            component: machine.address(&component),
            left: machine.address(&left),
            touched: machine.address(&touched),
            removed: machine.address(&removed),
            list_count: states,
            ..self.work
        };
        self.begin()?;
        self.launch(Kernel::BeginChoices, &work)?;
        let mut rounds = 1;
        loop {
            self.launch(Kernel::RemoveLeaving, &work)?;
            self.run_levels(Kernel::Cascade, &work)?;
            work.members = members;
            let Some(part) = self.part_again(&work)? else { break };
            rounds += 1;
            (list, members) = (members, list);
            (work.list, work.list_count) = (list, part.states);
            self.decompose(&part, |engine| {
                let in_offsets = &engine.part.as_ref().expect("it was just made").in_offsets;
                engine.machine.fill(in_offsets, 8 * (part.states + 1), 0)?;
                engine.launch(Kernel::TakeRegions, &work)?;
                engine.transpose(&part)
            })?;
            self.launch(Kernel::TakeComponents, &work)?;
            self.begin()?;
        }
        self.part = None;
        self.launch(Kernel::LeaveOut, &work)?;
        // Reading the progress waits for the kernel.
        self.progress()?;
        self.ends = Some(component);
        self.done.choices += began.elapsed() - (self.decomposing() - before);
        Ok(rounds)
    }

    /// By state, the smallest state of its end component, or [`NONE`](super::partition::NONE). End components must have been
    /// found before. `labels` are the labels of the strongly connected components.
    pub fn end_labels(&self, labels: &[u32]) -> Result<Vec<u32>> {
        match &self.ends {
            Some(ends) => self.read_all(ends, self.work.states),
            None => Ok(without_choices(self.graph.context("the host has the graph")?, labels)),
        }
    }

    /// Builds the subgraph to decompose again. `members` has its states. `None` if it is empty.
    fn part_again(&mut self, work: &Work) -> Result<Option<Work>> {
        let end = [0u64];
        self.machine.write(&self.buffers.queues, 8 * work.list_count, bytes_of(&end))?;
        let mut work = Work { scanned: self.work.queue[0], ..*work };
        self.launch(Kernel::FlagMembers, &work)?;
        let states = self.scan_to_total(&work, work.scanned, work.list_count + 1)?;
        if states == 0 {
            return Ok(None);
        }
        // Subgraphs only shrink, so the memory of the first subgraph suffices for all.
        let machine = self.machine;
        let mut part = match self.part.take() {
            Some(part) => part,
            None => {
                self.ensure_memory(16 * (states + 1))?;
                let [offsets, in_offsets] = [machine.allocate(8 * (states + 1))?, machine.allocate(8 * (states + 1))?];
                let [at, in_at] = [machine.address(&offsets), machine.address(&in_offsets)];
                Part { offsets, in_offsets, edges: None, work: Work { offsets: at, in_offsets: in_at, ranks: 0, ..self.work } }
            }
        };
        machine.fill(&part.offsets, 8 * (states + 1), 0)?;
        work.sub_offsets = part.work.offsets;
        self.launch(Kernel::CollectMembers, &work)?;
        let edges = self.scan_to_total(&work, work.sub_offsets, states + 1)?;
        if part.edges.is_none() {
            self.ensure_memory(8 * edges)?;
            let [targets, sources] = [machine.allocate(4 * edges)?, machine.allocate(4 * edges)?];
            (part.work.targets, part.work.sources) = (machine.address(&targets), machine.address(&sources));
            part.edges = Some([targets, sources]);
        }
        let listed = Work { list: work.members, list_count: states, sub_targets: part.work.targets, ..work };
        self.launch(Kernel::WriteEdges, &listed)?;
        let graph = Work { states, edges, ..part.work };
        self.part = Some(part);
        Ok(Some(graph))
    }

    fn ensure_memory(&self, needed: u64) -> Result<()> {
        self.machine.memory_budget()?.ensure("the arrays for end components", needed)
    }

    /// The total time spent on decompositions into components.
    fn decomposing(&self) -> std::time::Duration {
        let done = &self.done;
        done.transpose + done.trim + done.search + done.tarjan
    }
}
