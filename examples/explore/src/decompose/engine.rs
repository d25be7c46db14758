//! Components of a graph, by a machine's kernels.
//!
//! 1. Trimming: a live state without edges in, or without edges out, is a component by itself, and takes its edges with it. How
//!    many edges a state still has is counted once; then only the neighbours of states that go are looked at.
//! 2. Of what is left, the state of the most edges (in times out) is the pivot: what it reaches forwards, and what reaches it, is
//!    found; what is both is its component (Fleischer, Hendrickson, Pınar 2000), the giant one if there is one.
//! 3. What was reached one way only, or not at all, are parts that share no component. They are trimmed again, each elects a
//!    pivot of its own at random, and all are searched at the same time, until nothing is left.
//! 4. Where that settles little, as of many components that do not reach each other, states are coloured by the highest priority
//!    that reaches them (Orzan 2004). A colour shares no component with another one; its pivot is the state of that priority,
//!    which reaches all of it, so that only the search backwards is left. Each of its parts elects pivots again.
//!
//! Graphs can be made that take many levels or rounds. What a budget of time does not suffice for, or is left after many rounds,
//! is done by Tarjan's algorithm on one thread.

use super::end_components::Part;
use super::graph::Graph;
use super::machine::{Kernel, Machine, Progress, Work};
use super::partition::NONE;
use super::tarjan;
use crate::memory::amount;
use anyhow::{Context, Result, ensure};
use bytemuck::{Pod, Zeroable, bytes_of, cast_slice, cast_slice_mut};
use std::time::{Duration, Instant};

/// Levels of a kernel, after which the host looks whether there is time for more.
const LEVELS_A_LAUNCH: u64 = 2048;

/// Rounds after which what is left is not worth another one. A random pivot halves its region, on average: some thirty are enough
/// for a million components.
pub const MOST_ROUNDS: u64 = 64;

/// Colours are worth it after searches that have settled less than such a part of the live states.
const LITTLE: u64 = 8;

/// A search takes a level of so large a part of the live states by looking at all states that were not reached.
const SWEEP_PART: u64 = 8;

/// How the work is done.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// A graph of no more states than these is done by one thread.
    pub few: u64,
    /// What is left of a larger one, if it is no more, too.
    pub few_left: u64,
    /// Rounds of searches or colours; what is left after these is done by one thread, too.
    pub most_rounds: u64,
    /// Time that the kernels may take for a state or a transition, on average, and in any case. `None`: any.
    pub budget: Option<(Duration, Duration)>,
}

/// What was done, of all decompositions together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    pub transpose: Duration,
    pub trim: Duration,
    pub search: Duration,
    /// By one thread.
    pub tarjan: Duration,
    /// Of end components, all but the decompositions.
    pub choices: Duration,
    /// Rounds of searches both ways, and of colours.
    pub searches: u64,
    pub colourings: u64,
    /// In which all blocks, or the first one alone, took a part of a frontier.
    pub levels: u64,
    /// States that were done by one thread.
    pub by_one_thread: u64,
}

/// There was no time left.
struct GaveUp;

/// Where searches begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pivots {
    /// In the live state of the most edges.
    One,
    /// In a state of each part.
    Voted,
    /// In the state that each colour is named after.
    Coloured,
}

/// A graph in a machine's memory, and what is found there.
pub struct Engine<'m, 'g, M: Machine<'g>> {
    pub(super) machine: &'m M,
    pub(super) graph: &'g Graph,
    settings: Settings,
    pub(super) buffers: Buffers<M::Buffer>,
    /// Of the whole graph.
    pub(super) work: Work,
    is_transposed: bool,
    /// Of end components, once some are decomposed again.
    pub(super) part: Option<Part<M::Buffer>>,
    /// By state, once they are found.
    pub(super) ends: Option<M::Buffer>,
    pub done: Done,
}

/// Memory that the work needs.
pub(super) struct Buffers<B> {
    /// Of the graph, with its choices if it has some.
    _graph: Vec<B>,
    in_offsets: B,
    _sources: B,
    label: B,
    pub(super) region: B,
    first: B,
    second: B,
    mark: B,
    _queues: [B; 2],
    progress: B,
    sums: B,
}

/// Bytes that an engine takes of a machine's memory: beside the graph itself, if that is in it anyway.
pub fn bytes_beside(graph: &Graph) -> u64 {
    let (states, edges) = (graph.states(), graph.transitions());
    let of_choices = graph.choices.as_ref().map_or(0, |_| 4 * edges);
    // Words of each state; offsets and sources of the transposed graph; counters.
    32 * states + 8 * (states + 1) + 4 * edges + of_choices + 256
}

impl<'m, 'g, M: Machine<'g>> Engine<'m, 'g, M> {
    /// Brings a graph to the machine.
    ///
    /// # Errors
    ///
    /// There is no memory for it; the error has the numbers.
    pub fn new(machine: &'m M, graph: &'g Graph, settings: Settings) -> Result<Self> {
        let (states, edges) = (graph.states(), graph.transitions());
        let (needed, free) = (machine.bytes_to_share(graph) + bytes_beside(graph), machine.free()?);
        ensure!(
            needed <= free,
            "{states} states, {} choices and {edges} transitions need {}, but {} are free",
            graph.choice_count(),
            amount(needed),
            amount(free)
        );
        let mut work = Work { states, edges, ..Work::default() };
        let mut shared = Vec::new();
        let mut share = |data: &'g [u8]| {
            shared.push(machine.share(data)?);
            anyhow::Ok(machine.address(&shared[shared.len() - 1]))
        };
        work.offsets = share(cast_slice(&graph.offsets))?;
        work.targets = share(cast_slice(&graph.targets))?;
        if let Some(choices) = &graph.choices {
            work.choice_offsets = share(cast_slice(&choices.of_states))?;
            work.edge_offsets = share(cast_slice(&choices.offsets))?;
            let ranks = machine.allocate(4 * edges)?;
            work.ranks = machine.address(&ranks);
            shared.push(ranks);
        }
        let allocate = |bytes: u64, address: &mut u64| {
            let buffer = machine.allocate(bytes)?;
            *address = machine.address(&buffer);
            anyhow::Ok(buffer)
        };
        let [mut left, mut right] = [0; 2];
        let buffers = Buffers {
            _graph: shared,
            in_offsets: allocate(8 * (states + 1), &mut work.in_offsets)?,
            _sources: allocate(4 * edges, &mut work.sources)?,
            label: allocate(4 * states, &mut work.label)?,
            // With one more: it holds what stands before each state, too.
            region: allocate(8 * (states + 1), &mut work.region)?,
            first: allocate(4 * states, &mut work.first)?,
            second: allocate(4 * states, &mut work.second)?,
            mark: allocate(4 * states, &mut work.mark)?,
            _queues: [allocate(4 * states, &mut left)?, allocate(4 * states, &mut right)?],
            progress: allocate(size_of::<Progress>() as u64, &mut work.progress)?,
            sums: allocate(8 * machine.blocks(), &mut work.sums)?,
        };
        work.queue = [left, right];
        Ok(Self { machine, graph, settings, buffers, work, is_transposed: false, part: None, ends: None, done: Done::default() })
    }

    /// Finds the strongly connected components.
    pub fn components(&mut self) -> Result<()> {
        let work = self.work;
        if work.states > 0 {
            self.decompose(&work, Self::transpose_once)?;
            // They are there when this has been read.
            self.progress()?;
        }
        Ok(())
    }

    /// The smallest state of each state's component, until end components are looked for.
    pub fn labels(&self) -> Result<Vec<u32>> {
        self.read_all(&self.buffers.label, self.work.states)
    }

    /// The same of any graph in the machine's memory that is not larger; labels stay there. `transpose` is called unless one
    /// thread does all.
    pub(super) fn decompose(&mut self, work: &Work, transpose: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let Work { states, edges, .. } = *work;
        self.machine.fill(&self.buffers.label, 4 * states, 0xff)?;
        if states <= self.settings.few {
            self.finish(work)?;
        } else {
            transpose(self)?;
            self.machine.fill(&self.buffers.region, 8 * states, 0)?;
            self.machine.fill(&self.buffers.mark, 4 * states, 0)?;
            let budget = self.settings.budget.map(|(each, least)| each.mul_f64((states + edges) as f64) + least);
            if self.decompose_within(work, budget.map(|budget| Instant::now() + budget))?.is_err() {
                self.finish(work)?;
            }
        }
        self.machine.fill(&self.buffers.first, 4 * states, 0xff)?;
        self.launch(Kernel::FindSmallest, work)?;
        self.launch(Kernel::TakeSmallest, work)
    }

    fn decompose_within(&mut self, work: &Work, deadline: Option<Instant>) -> Result<Result<(), GaveUp>> {
        self.write_progress(Progress::default())?;
        let (mut before, mut last) = (work.states, Pivots::One);
        for round in 0.. {
            let began = Instant::now();
            let Progress { live, .. } = match self.trim(work, deadline)? {
                Ok(progress) => progress,
                Err(gave_up) => return Ok(Err(gave_up)),
            };
            self.done.trim += began.elapsed();
            if live == 0 {
                return Ok(Ok(()));
            }
            if live <= self.settings.few_left || round == self.settings.most_rounds {
                return Ok(Err(GaveUp));
            }
            let pivots = match last {
                _ if round == 0 => Pivots::One,
                Pivots::Voted | Pivots::One if (before - live) * LITTLE < before => Pivots::Coloured,
                _ => Pivots::Voted,
            };
            before = live;
            let began = Instant::now();
            if let Err(gave_up) = self.search(work, pivots, live, deadline)? {
                return Ok(Err(gave_up));
            }
            self.done.search += began.elapsed();
            *(if pivots == Pivots::Coloured { &mut self.done.colourings } else { &mut self.done.searches }) += 1;
            last = pivots;
        }
        unreachable!("rounds end")
    }

    /// Live states and a pivot, when what is trivial is settled.
    fn trim(&mut self, work: &Work, deadline: Option<Instant>) -> Result<Result<Progress, GaveUp>> {
        self.machine.fill(&self.buffers.first, 4 * work.states, 0)?;
        self.machine.fill(&self.buffers.second, 4 * work.states, 0)?;
        self.launch(Kernel::CountDegrees, work)?;
        self.launch(Kernel::SeedTrim, work)?;
        let mut progress = match self.take_levels(Kernel::Trim, work, u64::MAX, deadline)? {
            Ok(progress) => progress,
            Err(gave_up) => return Ok(Err(gave_up)),
        };
        (progress.live, progress.pivot) = (0, 0);
        self.write_progress(progress)?;
        self.launch(Kernel::Tally, work)?;
        Ok(Ok(self.progress()?))
    }

    /// Settles the components of the pivots.
    fn search(&mut self, work: &Work, pivots: Pivots, live: u64, deadline: Option<Instant>) -> Result<Result<(), GaveUp>> {
        match pivots {
            Pivots::One => self.launch(Kernel::EnterOne, work)?,
            Pivots::Voted => {
                self.machine.fill(&self.buffers.first, 4 * work.states, 0)?;
                self.machine.fill(&self.buffers.second, 4 * work.states, 0)?;
                self.launch(Kernel::Vote, work)?;
                self.launch(Kernel::EnterParts, work)?;
            }
            Pivots::Coloured => {
                self.launch(Kernel::BeginColours, work)?;
                if let Err(gave_up) = self.take_levels(Kernel::Propagate, work, u64::MAX, deadline)? {
                    return Ok(Err(gave_up));
                }
                self.launch(Kernel::EnterColours, work)?;
            }
        }
        // So few are not worth looking at all states.
        let sweep_from = if live > 4 * SWEEP_PART { live / SWEEP_PART } else { u64::MAX };
        if pivots != Pivots::Coloured {
            let forwards = Work { bit: 1, ..*work };
            if let Err(gave_up) = self.take_levels(Kernel::Search, &forwards, sweep_from, deadline)? {
                return Ok(Err(gave_up));
            }
        }
        let backwards = Work { bit: 2, ..work.backwards() };
        self.launch(Kernel::EnterAgain, &backwards)?;
        if let Err(gave_up) = self.take_levels(Kernel::Search, &backwards, sweep_from, deadline)? {
            return Ok(Err(gave_up));
        }
        self.launch(Kernel::CloseRegions, work)?;
        Ok(Ok(()))
    }

    /// Runs a kernel until its queue is empty.
    pub(super) fn run_levels(&mut self, kernel: Kernel, work: &Work) -> Result<()> {
        match self.take_levels(kernel, work, u64::MAX, None)? {
            Ok(_) => Ok(()),
            Err(GaveUp) => unreachable!("there is no deadline"),
        }
    }

    fn take_levels(
        &mut self,
        kernel: Kernel,
        work: &Work,
        sweep_from: u64,
        deadline: Option<Instant>,
    ) -> Result<Result<Progress, GaveUp>> {
        let mut progress = self.progress()?;
        let before = progress.levels;
        (progress.narrow, progress.sweep_from) = (self.machine.narrow(), sweep_from);
        while progress.counts != [0, 0] {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(Err(GaveUp));
            }
            progress.most_levels = progress.levels + LEVELS_A_LAUNCH;
            self.write_progress(progress)?;
            self.launch(kernel, work)?;
            progress = self.progress()?;
        }
        self.done.levels += progress.levels - before;
        Ok(Ok(progress))
    }

    /// Does what is left by Tarjan's algorithm.
    fn finish(&mut self, work: &Work) -> Result<()> {
        let began = Instant::now();
        let mut labels: Vec<u32> = self.read_all(&self.buffers.label, work.states)?;
        let is_whole = work.offsets == self.work.offsets;
        // Of the graph of all states the host has the rows.
        let (offsets, targets): (Vec<u64>, Vec<u32>);
        let (offsets, targets): (&[u64], &[u32]) = if is_whole {
            (&self.graph.offsets, &self.graph.targets)
        } else {
            let part = self.part.as_ref().context("only whole graphs and parts are decomposed")?;
            offsets = self.read_all(&part.offsets, work.states + 1)?;
            let [of_part, _] = part.edges.as_ref().context("a part has its transitions when it is decomposed")?;
            targets = self.read_all(of_part, work.edges)?;
            (&offsets, &targets)
        };
        let mut live: Vec<u32> = (0..work.states as u32).filter(|state| labels[*state as usize] == NONE).collect();
        // Of most of a graph all of it is done: that takes less time than to make another graph.
        if live.len() as u64 * 4 > work.states * 3 {
            live = (0..work.states as u32).collect();
        }
        self.done.by_one_thread += live.len() as u64;
        let successors = |state: u32| &targets[offsets[state as usize] as usize..offsets[state as usize + 1] as usize];
        let components = if live.len() as u64 == work.states {
            tarjan::components(live.len(), |state| successors(state as u32))
        } else {
            let mut numbers = vec![NONE; labels.len()];
            live.iter().enumerate().for_each(|(number, state)| numbers[*state as usize] = number as u32);
            let (mut rows, mut ends) = (Vec::new(), vec![0]);
            for state in &live {
                rows.extend(successors(*state).iter().map(|target| numbers[*target as usize]).filter(|number| *number != NONE));
                ends.push(rows.len());
            }
            tarjan::components(live.len(), |state| &rows[ends[state]..ends[state + 1]])
        };
        // Any state of a component will do as its label.
        let mut members = vec![NONE; live.len()];
        components.iter().zip(&live).for_each(|(component, state)| members[*component as usize] = *state);
        components.iter().zip(&live).for_each(|(component, state)| labels[*state as usize] = members[*component as usize]);
        self.machine.write(&self.buffers.label, 0, cast_slice(&labels))?;
        self.done.tarjan += began.elapsed();
        Ok(())
    }

    pub(super) fn transpose_once(&mut self) -> Result<()> {
        if self.is_transposed {
            return Ok(());
        }
        self.is_transposed = true;
        let work = self.work;
        // Its buffer is that of this engine.
        let began = Instant::now();
        self.machine.fill(&self.buffers.in_offsets, 8 * (work.states + 1), 0)?;
        self.transpose(&work)?;
        self.done.transpose += began.elapsed();
        Ok(())
    }

    /// Makes the transposed graph. `in_offsets` are zeros.
    pub(super) fn transpose(&mut self, work: &Work) -> Result<()> {
        self.launch(Kernel::CountIn, work)?;
        self.scan(work, work.in_offsets, work.states + 1)?;
        self.launch(Kernel::ScatterIn, work)
    }

    /// Puts what stands before each of some numbers in its place. Gives the sum of all.
    pub(super) fn scan(&mut self, work: &Work, scanned: u64, count: u64) -> Result<u64> {
        let work = Work { scanned, scanned_count: count, ..*work };
        self.launch(Kernel::SumParts, &work)?;
        let mut sums: Vec<u64> = self.read_all(&self.buffers.sums, self.machine.blocks())?;
        let mut total = 0;
        for sum in &mut sums {
            total += std::mem::replace(sum, total);
        }
        self.machine.write(&self.buffers.sums, 0, cast_slice(&sums))?;
        self.launch(Kernel::ScanParts, &work)?;
        Ok(total)
    }

    pub(super) fn launch(&self, kernel: Kernel, work: &Work) -> Result<()> {
        // SAFETY: all addresses are of buffers of this engine, or of its end components, which live until the next one is
        // launched and have the sizes that `Work` says; the host uses them only by calls of the machine.
        unsafe { self.machine.launch(kernel, work) }.with_context(|| format!("kernel {kernel:?}"))
    }

    fn progress(&self) -> Result<Progress> {
        let mut progress = Progress::zeroed();
        self.machine.read(&self.buffers.progress, bytemuck::bytes_of_mut(&mut progress))?;
        Ok(progress)
    }

    pub(super) fn write_progress(&self, progress: Progress) -> Result<()> {
        self.machine.write(&self.buffers.progress, 0, bytes_of(&progress))
    }

    pub(super) fn read_all<T: Pod>(&self, buffer: &M::Buffer, count: u64) -> Result<Vec<T>> {
        let mut all = vec![T::zeroed(); count as usize];
        self.machine.read(buffer, cast_slice_mut(&mut all))?;
        Ok(all)
    }
}
