//! Components of a graph, by a machine's kernels.
//!
//! 1. Trimming: a live state without edges in, or without edges out, is a component by itself, and takes its edges with it. How
//!    many edges a state still has is counted once; then only the neighbours of states that go are looked at.
//! 2. Of what is left, the state of the most edges (in times out) is the pivot: what it reaches forwards, and what reaches it, is
//!    found; what is both is its component (Fleischer, Hendrickson, Pınar 2000), the giant one if there is one.
//! 3. What was reached one way only, or not at all, are parts that share no component. They are trimmed again. Each elects up to
//!    31 pivots, of which every state learns those that reach it and those that it reaches, a bit each. A state that has a pivot
//!    in both is in its component. Of the rest, states that differ share no component: parts again.
//! 4. Where most states have no pivot at all, as of many components that do not reach each other, states are coloured by the
//!    highest priority that reaches them (Orzan 2004). A colour shares no component with another one; its pivot is the state of
//!    that priority, which reaches all of it, so that only the search backwards is left.
//!
//! Graphs can be made that take many levels or rounds. What a budget of time does not suffice for, or is left after many rounds,
//! is done by Tarjan's algorithm on one thread.

use super::end_components::Part;
use super::graph::Graph;
use super::machine::{Kernel, Machine, Progress, Work};
use super::partition::NONE;
use anyhow::{Context, Result, bail};
use bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut};
use std::cell::Cell;
use std::mem::offset_of;
use std::time::{Duration, Instant};
use warpset_support::components as tarjan;

/// Levels of a kernel, after which the host looks whether there is time for more.
const LEVELS_A_LAUNCH: u64 = 256;

/// A level of fewer edges takes a GPU longer than one thread of a CPU takes for them.
const NARROW_EDGES: u64 = 32;

/// Such levels have this part of all the time.
const NARROW_PART: u32 = 8;

/// Rounds after which what is left is not worth another one. Where components follow each other, 31 pivots cut a part into 32: a
/// handful of rounds is enough for a million of them.
pub const MOST_ROUNDS: u64 = 64;

/// Colours are worth it when more than such a part of the live states has no pivot.
const MISSED_PART: u64 = 2;

/// A search takes a level of so large a part of the live states by looking at all states that were not reached.
const SWEEP_PART: u64 = 8;

/// So few states and transitions are done by one thread of a CPU sooner than by several, or by a GPU. On a GPU what is left is no
/// reason: labels of all states would go to the host and back.
pub const FEW: u64 = 1 << 15;

/// Time of a GPU for each state and transition, and in any case, before what is left is done by Tarjan's algorithm: about what
/// that takes for all of a graph, where it is fast. Levels of few edges have an eighth of it, so that a chain loses little.
#[cfg(feature = "cuda")]
pub const BUDGET: (Duration, Duration) = (Duration::from_nanos(10), Duration::from_millis(3));

/// How the work is done.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// A graph of no more states and transitions than these is done by one thread.
    pub few: u64,
    /// What is left of a larger one, if it is no more states, too.
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
    /// Rounds of pivots, of which one is searched from both ways or many are spread, and of colours.
    pub searches: u64,
    pub colourings: u64,
    /// Levels of frontiers: of blocks that go on by themselves for some, one.
    pub levels: u64,
    /// Launches of kernels, and how often the host has waited for them.
    pub launches: u64,
    pub waits: u64,
    /// Edges that kernels have looked at, those into a state and those out of it alike.
    pub edges: u64,
    /// States that were done by one thread.
    pub by_one_thread: u64,
}

/// There was no time left.
struct GaveUp;

/// How long kernels go on.
struct Limit {
    end: Instant,
    /// What is left for levels of few edges.
    narrow: Duration,
}

impl Limit {
    fn new(budget: Duration) -> Self {
        Self { end: Instant::now() + budget, narrow: budget / NARROW_PART }
    }

    fn is_over(&self) -> bool {
        self.narrow.is_zero() || Instant::now() >= self.end
    }
}

/// Where searches begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pivots {
    /// In the live state of the most edges.
    One,
    /// In up to 31 states of each part.
    Many,
    /// In the state that each colour is named after.
    Coloured,
}

/// A graph in a machine's memory, and what is found there.
pub struct Engine<'m, 'g, M: Machine<'g>> {
    pub(super) machine: &'m M,
    /// `None`: the machine has the rows of its own.
    pub(super) graph: Option<&'g Graph>,
    settings: Settings,
    pub(super) buffers: Buffers<M::Buffer>,
    /// Of the whole graph.
    pub(super) work: Work,
    is_transposed: bool,
    /// Of end components, once some are decomposed again.
    pub(super) part: Option<Part<M::Buffer>>,
    /// By state, once they are found.
    pub(super) ends: Option<M::Buffer>,
    launches: Cell<u64>,
    waits: Cell<u64>,
    /// When counters were 0.
    levels_before: u64,
    pub(super) done: Done,
}

/// Memory that the work needs.
pub(super) struct Buffers<B> {
    /// Of the graph, with its choices if it has some.
    graph: Vec<B>,
    in_offsets: B,
    _sources: B,
    label: B,
    known: B,
    pub(super) first: B,
    pub(super) second: B,
    ballot: B,
    pub(super) queues: B,
    _pieces: B,
    pub(super) progress: B,
    _sums: B,
}

/// Bytes that an engine takes of a machine's memory, which cuts edges into such pieces: beside the graph itself, if that is in it
/// anyway.
pub fn bytes_beside(graph: &Graph, piece: u64) -> u64 {
    let of_choices = graph.choices.as_ref().map_or(0, |_| 4 * graph.transitions());
    bytes_of_work(graph.states(), graph.transitions(), piece) + of_choices
}

/// The same of so many states and transitions without choices.
pub fn bytes_of_work(states: u64, edges: u64, piece: u64) -> u64 {
    // Words of each state, and one more of a queue; offsets and sources of the transposed graph; pieces; counters.
    32 * states + 8 + 8 * (states + 1) + 4 * edges + 16 * piece_room(edges, piece) + 256
}

/// Pieces of states of more edges than one has, at most: either way, of each state once.
fn piece_room(edges: u64, piece: u64) -> u64 {
    4 * (edges / piece)
}

impl<'m, 'g, M: Machine<'g>> Engine<'m, 'g, M> {
    /// Brings a graph to the machine.
    ///
    /// # Errors
    ///
    /// There is no memory for it; the error has the numbers.
    pub fn new(machine: &'m M, graph: &'g Graph, settings: Settings) -> Result<Self> {
        let (states, edges) = (graph.states(), graph.transitions());
        let needed = machine.bytes_to_share(graph) + bytes_beside(graph, machine.piece());
        let what = format!("{states} states, {} choices and {edges} transitions", graph.choice_count());
        machine.room()?.ensure(&what, needed)?;
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
        Self::over(machine, Some(graph), settings, work, shared)
    }

    /// Memory for the work on a graph that the machine has.
    pub(super) fn over(
        machine: &'m M,
        graph: Option<&'g Graph>,
        settings: Settings,
        mut work: Work,
        of_graph: Vec<M::Buffer>,
    ) -> Result<Self> {
        let Work { states, edges, .. } = work;
        (work.piece, work.piece_room) = (machine.piece(), piece_room(edges, machine.piece()));
        (work.most_levels, work.narrow, work.sweep_from) = (LEVELS_A_LAUNCH, machine.narrow(), u64::MAX);
        let allocate = |bytes: u64, address: &mut u64| {
            let buffer = machine.allocate(bytes)?;
            *address = machine.address(&buffer);
            anyhow::Ok(buffer)
        };
        let [mut queues, mut pieces] = [0; 2];
        let buffers = Buffers {
            graph: of_graph,
            in_offsets: allocate(8 * (states + 1), &mut work.in_offsets)?,
            _sources: allocate(4 * edges, &mut work.sources)?,
            label: allocate(4 * states, &mut work.label)?,
            known: allocate(8 * states, &mut work.known)?,
            first: allocate(4 * states, &mut work.first)?,
            second: allocate(4 * states, &mut work.second)?,
            ballot: allocate(4 * states, &mut work.ballot)?,
            // Two, and one word more: while both are empty they hold what stands before each state.
            queues: allocate(8 * (states + 1), &mut queues)?,
            _pieces: allocate(16 * work.piece_room, &mut pieces)?,
            progress: allocate(size_of::<Progress>() as u64, &mut work.progress)?,
            _sums: allocate(8 * machine.blocks(), &mut work.sums)?,
        };
        work.queue = [queues, queues + 4 * states];
        work.pieces = [pieces, pieces + 8 * work.piece_room];
        machine.fill(&buffers.progress, size_of::<Progress>() as u64, 0)?;
        Ok(Self {
            machine,
            graph,
            settings,
            buffers,
            work,
            is_transposed: false,
            part: None,
            ends: None,
            launches: Cell::new(0),
            waits: Cell::new(0),
            levels_before: 0,
            done: Done::default(),
        })
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

    /// The same of any graph in the machine's memory that is not larger; labels stay there. `prepare` is called unless one thread
    /// does all: it makes the transposed graph, and may give states of parts that share no component different regions.
    pub(super) fn decompose(&mut self, work: &Work, prepare: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let Work { states, edges, .. } = *work;
        self.machine.fill(&self.buffers.label, 4 * states, 0xff)?;
        if states + edges <= self.settings.few {
            self.finish(work)?;
        } else {
            self.machine.fill(&self.buffers.known, 8 * states, 0)?;
            self.begin()?;
            prepare(self)?;
            let budget = self.settings.budget.map(|(each, least)| each.mul_f64((states + edges) as f64) + least);
            if self.decompose_within(work, budget.map(Limit::new))?.is_err() {
                self.finish(work)?;
            }
        }
        self.machine.fill(&self.buffers.first, 4 * states, 0xff)?;
        self.launch(Kernel::FindSmallest, work)?;
        self.launch(Kernel::TakeSmallest, work)
    }

    fn decompose_within(&mut self, work: &Work, mut limit: Option<Limit>) -> Result<Result<(), GaveUp>> {
        let mut pivots = Pivots::One;
        for round in 0.. {
            let began = Instant::now();
            let Progress { live, missed, .. } = match self.trim(work, &mut limit)? {
                Ok(progress) => progress,
                Err(gave_up) => return Ok(Err(gave_up)),
            };
            self.done.trim += began.elapsed();
            if live == 0 {
                return Ok(Ok(()));
            }
            let is_late = round > 0 && limit.as_ref().is_some_and(Limit::is_over);
            if live <= self.settings.few_left || round == self.settings.most_rounds || is_late {
                return Ok(Err(GaveUp));
            }
            pivots = match pivots {
                // Of states in several regions most are not in that of one pivot.
                _ if round == 0 && missed * MISSED_PART <= live => Pivots::One,
                Pivots::Many if missed * MISSED_PART > live => Pivots::Coloured,
                _ => Pivots::Many,
            };
            let began = Instant::now();
            let work = Work { round, ..*work };
            if let Err(gave_up) = self.search(&work, pivots, live, &mut limit)? {
                return Ok(Err(gave_up));
            }
            self.done.search += began.elapsed();
            *(if pivots == Pivots::Coloured { &mut self.done.colourings } else { &mut self.done.searches }) += 1;
        }
        unreachable!("rounds end")
    }

    /// Live states and a pivot, when what is trivial is settled.
    fn trim(&mut self, work: &Work, limit: &mut Option<Limit>) -> Result<Result<Progress, GaveUp>> {
        self.machine.fill(&self.buffers.first, 4 * work.states, 0)?;
        self.machine.fill(&self.buffers.second, 4 * work.states, 0)?;
        self.launch(Kernel::CountDegrees, work)?;
        self.launch(Kernel::SeedTrim, work)?;
        if let Err(gave_up) = self.take_levels(Kernel::Trim, work, limit)? {
            return Ok(Err(gave_up));
        }
        self.launch(Kernel::Tally, work)?;
        Ok(Ok(self.progress()?))
    }

    /// Settles the components of pivots.
    fn search(&mut self, work: &Work, pivots: Pivots, live: u64, limit: &mut Option<Limit>) -> Result<Result<(), GaveUp>> {
        // So few are not worth looking at all states.
        let sweep_from = if live > 4 * SWEEP_PART { live / SWEEP_PART } else { u64::MAX };
        // What each way begins with, and what goes it.
        let (first, second, close) = match pivots {
            Pivots::One => ((Kernel::EnterOne, Kernel::Search), (Kernel::EnterOne, Kernel::Search), Kernel::CloseOne),
            Pivots::Many => ((Kernel::EnterPivots, Kernel::Spread), (Kernel::EnterPivots, Kernel::Spread), Kernel::ClosePivots),
            Pivots::Coloured => {
                ((Kernel::BeginColours, Kernel::Propagate), (Kernel::EnterColours, Kernel::Search), Kernel::CloseColours)
            }
        };
        if pivots == Pivots::Many {
            self.machine.fill(&self.buffers.ballot, 4 * work.states, 0)?;
            self.launch(Kernel::Elect, work)?;
        }
        for ((enter, go), work) in [(first, Work { bit: 1, ..*work }), (second, Work { bit: 2, ..work.backwards() })] {
            self.launch(enter, &work)?;
            let work = Work { sweep_from: if go == Kernel::Search { sweep_from } else { u64::MAX }, ..work };
            if let Err(gave_up) = self.take_levels(go, &work, limit)? {
                return Ok(Err(gave_up));
            }
        }
        self.launch(close, work)?;
        Ok(Ok(()))
    }

    /// Runs a kernel until its queue is empty.
    pub(super) fn run_levels(&mut self, kernel: Kernel, work: &Work) -> Result<()> {
        match self.take_levels(kernel, work, &mut None)? {
            Ok(()) => Ok(()),
            Err(GaveUp) => unreachable!("there is no deadline"),
        }
    }

    fn take_levels(&mut self, kernel: Kernel, work: &Work, limit: &mut Option<Limit>) -> Result<Result<(), GaveUp>> {
        loop {
            let (began, levels, edges) = (Instant::now(), self.done.levels, self.done.edges);
            self.launch(kernel, work)?;
            let progress = self.progress()?;
            let next = progress.next();
            (self.done.levels, self.done.edges) = (self.levels_before + next.done, progress.edges);
            if next.count + next.pieces == 0 {
                return Ok(Ok(()));
            }
            let Some(limit) = limit else { continue };
            if self.done.edges - edges < (self.done.levels - levels) * NARROW_EDGES {
                limit.narrow = limit.narrow.saturating_sub(began.elapsed());
            }
            if limit.is_over() {
                return Ok(Err(GaveUp));
            }
        }
    }

    /// Does what is left by Tarjan's algorithm.
    fn finish(&mut self, work: &Work) -> Result<()> {
        let began = Instant::now();
        let mut labels: Vec<u32> = self.read_all(&self.buffers.label, work.states)?;
        let is_whole = work.offsets == self.work.offsets;
        // Of the graph of all states the host may have the rows.
        let (offsets, targets): (Vec<u64>, Vec<u32>);
        let (offsets, targets): (&[u64], &[u32]) = if let Some(graph) = self.graph.filter(|_| is_whole) {
            (&graph.offsets, &graph.targets)
        } else if is_whole {
            let [of_offsets, of_targets] = &self.buffers.graph[..] else { bail!("a graph has offsets and targets") };
            offsets = self.read_all(of_offsets, work.states + 1)?;
            targets = self.read_all(of_targets, work.edges)?;
            (&offsets, &targets)
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

    /// Puts what stands before each of some numbers in its place.
    pub(super) fn scan(&self, work: &Work, scanned: u64, count: u64) -> Result<()> {
        self.launch(Kernel::Scan, &Work { scanned, scanned_count: count, ..*work })
    }

    /// The same, and gives the sum of all.
    pub(super) fn scan_to_total(&self, work: &Work, scanned: u64, count: u64) -> Result<u64> {
        self.scan(work, scanned, count)?;
        Ok(self.progress()?.total)
    }

    pub(super) fn launch(&self, kernel: Kernel, work: &Work) -> Result<()> {
        self.launches.set(self.launches.get() + 1);
        // SAFETY: all addresses are of buffers of this engine, or of its end components, which live until the next one is
        // launched and have the sizes that `Work` says; the host uses them only by calls of the machine.
        unsafe { self.machine.launch(kernel, work) }.with_context(|| format!("kernel {kernel:?}"))
    }

    pub(super) fn progress(&self) -> Result<Progress> {
        self.waits.set(self.waits.get() + 1);
        let mut progress = Progress::zeroed();
        self.machine.read(&self.buffers.progress, bytemuck::bytes_of_mut(&mut progress))?;
        Ok(progress)
    }

    /// Empties queues, and sets all counters to 0 but that of edges.
    pub(super) fn begin(&mut self) -> Result<()> {
        self.levels_before = self.done.levels;
        self.machine.fill(&self.buffers.progress, offset_of!(Progress, edges) as u64, 0)
    }

    /// What was done until now.
    pub fn done(&self) -> Result<Done> {
        let Progress { edges, .. } = self.progress()?;
        Ok(Done { launches: self.launches.get(), waits: self.waits.get() - 1, edges, ..self.done })
    }

    pub(super) fn read_all<T: Pod>(&self, buffer: &M::Buffer, count: u64) -> Result<Vec<T>> {
        self.waits.set(self.waits.get() + 1);
        let mut all = vec![T::zeroed(); count as usize];
        self.machine.read(buffer, cast_slice_mut(&mut all))?;
        Ok(all)
    }
}
