//! Decomposes a graph into components with a machine's kernels.
//!
//! 1. Trimming: a live state without edges in, or without edges out, is a component by itself, and its edges are removed with it.
//!    Degrees are counted once; afterwards only the neighbours of removed states are visited.
//! 2. The remaining state with the largest product of edges in and edges out is the pivot. A forward search finds the states that
//!    the pivot reaches, and a backward search finds the states that reach the pivot. The states in both sets form the pivot's
//!    component (Fleischer, Hendrickson, Pınar 2000). If there is a giant component, this step finds it.
//! 3. Three separate parts remain: states reached only forwards, states reached only backwards, and states not reached. No
//!    component spans two parts. The parts are trimmed again. Each part elects up to 31 pivots. Each state learns which pivots
//!    reach it and which it reaches, with one bit for each pivot. A state that has the same pivot in both sets is in this pivot's
//!    component. Other states with different bits share no component and form new parts.
//! 4. If most states have no pivot at all, as with many components that do not reach each other, states are coloured by the
//!    highest priority that reaches them (Orzan 2004). No component spans two colours. The pivot of a colour is the state with
//!    that priority. The pivot reaches all states of its colour, so only the backward search is needed.
//!
//! Some graphs take many levels or rounds. When a time budget is used up, or after many rounds, Tarjan's algorithm on one thread
//! does the remaining work.

use super::end_components::Part;
use super::graph::Graph;
use super::machine::{Kernel, LevelProgress, Machine, Work};
use super::partition::NONE;
use anyhow::{Context, Result, bail};
use bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut};
use std::cell::Cell;
use std::mem::offset_of;
use std::time::{Duration, Instant};
use warpset_support::components as tarjan;

/// Number of levels in one launch of a kernel. Between launches the host checks the time budget.
const LEVELS_A_LAUNCH: u64 = 256;

/// Number of edges below which a level counts as narrow: a GPU takes longer for such a level than one CPU thread.
const NARROW_EDGES: u64 = 32;

/// Narrow levels may use 1 / `NARROW_PART` of the time budget.
const NARROW_PART: u32 = 8;

/// Number of rounds after which another round is not worthwhile. If components follow each other, 31 pivots cut a part into 32,
/// so a handful of rounds suffices for a million components.
pub const MOST_ROUNDS: u64 = 64;

/// Colours are used if more than 1 / `MISSED_PART` of the live states have no pivot.
const MISSED_PART: u64 = 2;

/// If a level has at least 1 / `SWEEP_PART` of the live states, a search sweeps over all states that are not yet reached.
const SWEEP_PART: u64 = 8;

/// Number of states and transitions up to which one CPU thread is faster than several threads or a GPU. This does not apply to
/// the rest of a larger graph on a GPU, because the labels of all states would have to be copied to the host and back.
pub const FEW: u64 = 1 << 15;

/// Time budget of a GPU before Tarjan's algorithm does the remaining work: a time for each state and transition, plus a constant.
/// The budget is about the time of Tarjan's algorithm for a whole graph on which it is fast. Narrow levels get an eighth of the
/// budget, so that a chain loses little.
#[cfg(feature = "cuda")]
pub const BUDGET: (Duration, Duration) = (Duration::from_nanos(10), Duration::from_millis(3));

/// How the work is divided between kernels and Tarjan's algorithm.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Maximum number of states and transitions of graphs that one thread decomposes.
    pub few: u64,
    /// Number of remaining states of a larger graph at or below which one thread decomposes them.
    pub few_left: u64,
    /// Maximum number of rounds of searches and colours. One thread decomposes the states that remain after these rounds.
    pub most_rounds: u64,
    /// Time that the kernels may take: for each state and transition, plus a constant. `None`: no limit.
    pub budget: Option<(Duration, Duration)>,
}

/// Times and counters of all decompositions together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    pub transpose: Duration,
    pub trim: Duration,
    pub search: Duration,
    /// Time of Tarjan's algorithm on one thread.
    pub tarjan: Duration,
    /// Time spent on end components, without the decompositions.
    pub choices: Duration,
    /// Number of rounds with pivots (one pivot in both directions, or many pivots at once), and number of rounds with colours.
    pub searches: u64,
    pub colourings: u64,
    /// Number of levels of frontiers. Several levels that blocks take on their own count as one.
    pub levels: u64,
    /// Number of launches of kernels, and number of times that the host waited for kernels.
    pub launches: u64,
    pub waits: u64,
    /// Number of edges that kernels visited, both into and out of states.
    pub edges: u64,
    /// Number of states that one thread decomposed.
    pub by_one_thread: u64,
}

/// The time budget is used up.
struct GaveUp;

/// Deadlines of kernels.
struct Limit {
    end: Instant,
    /// Time left for narrow levels.
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

/// The states that are the pivots of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pivots {
    /// The live state with the largest product of edges in and edges out.
    One,
    /// Up to 31 states of each part.
    Many,
    /// For each colour, the state whose priority is the colour.
    Coloured,
}

/// A graph in a machine's memory, with the components found in it.
pub struct Decomposer<'m, 'g, M: Machine<'g>> {
    pub(super) machine: &'m M,
    /// The host's copy; `None` if only the machine has the graph.
    pub(super) graph: Option<&'g Graph>,
    settings: Settings,
    pub(super) buffers: Buffers<M::Buffer>,
    /// The work on the whole graph.
    pub(super) work: Work,
    is_transposed: bool,
    /// The subgraph that is decomposed again for end components, once there is one.
    pub(super) part: Option<Part<M::Buffer>>,
    /// By state, its end component, once end components are found.
    pub(super) ends: Option<M::Buffer>,
    launches: Cell<u64>,
    waits: Cell<u64>,
    /// Value of `levels` when the kernels' counters were last set to 0.
    levels_before: u64,
    pub(super) done: Done,
}

/// Buffers in the machine's memory.
pub(super) struct Buffers<B> {
    /// Arrays of the graph, including its choices if it has any.
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

/// Bytes that an engine allocates in addition to the graph, on a machine that cuts edges into pieces of `piece`.
pub fn bytes_beside(graph: &Graph, piece: u64) -> u64 {
    let of_choices = graph.choices.as_ref().map_or(0, |_| 4 * graph.transitions());
    bytes_of_work(graph.states(), graph.transitions(), piece) + of_choices
}

/// Bytes for the work on a graph without choices.
pub fn bytes_of_work(states: u64, edges: u64, piece: u64) -> u64 {
    // Eight words for each state and one more word for a queue; offsets and sources of the transposed graph; pieces; counters.
    32 * states + 8 + 8 * (states + 1) + 4 * edges + 16 * piece_capacity(edges, piece) + 256
}

/// Upper bound on the number of pieces, if each heavy state is divided once in each direction.
fn piece_capacity(edges: u64, piece: u64) -> u64 {
    4 * (edges / piece)
}

impl<'m, 'g, M: Machine<'g>> Decomposer<'m, 'g, M> {
    /// Copies a graph to the machine, and allocates the buffers.
    ///
    /// # Errors
    ///
    /// Memory does not suffice. The error has the numbers.
    pub fn new(machine: &'m M, graph: &'g Graph, settings: Settings) -> Result<Self> {
        let (states, edges) = (graph.states(), graph.transitions());
        let needed = machine.bytes_to_share(graph) + bytes_beside(graph, machine.piece());
        let what = format!("{states} states, {} choices and {edges} transitions", graph.choice_count());
        machine.memory_budget()?.ensure(&what, needed)?;
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

    /// Allocates the buffers for a graph that is already in the machine's memory.
    pub(super) fn over(
        machine: &'m M,
        graph: Option<&'g Graph>,
        settings: Settings,
        mut work: Work,
        of_graph: Vec<M::Buffer>,
    ) -> Result<Self> {
        let Work { states, edges, .. } = work;
        (work.piece, work.piece_capacity) = (machine.piece(), piece_capacity(edges, machine.piece()));
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
            // Two queues and one more element. While both queues are empty, this memory holds the sums of a scan over all states.
            queues: allocate(8 * (states + 1), &mut queues)?,
            _pieces: allocate(16 * work.piece_capacity, &mut pieces)?,
            progress: allocate(size_of::<LevelProgress>() as u64, &mut work.progress)?,
            _sums: allocate(8 * machine.blocks(), &mut work.sums)?,
        };
        work.queue = [queues, queues + 4 * states];
        work.pieces = [pieces, pieces + 8 * work.piece_capacity];
        machine.fill(&buffers.progress, size_of::<LevelProgress>() as u64, 0)?;
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
            // Reading the progress waits for the kernels.
            self.progress()?;
        }
        Ok(())
    }

    /// By state, the smallest state of its component. Valid until the search for end components begins.
    pub fn labels(&self) -> Result<Vec<u32>> {
        self.read_all(&self.buffers.label, self.work.states)
    }

    /// Decomposes any graph in the machine's memory that is at most as large as the whole graph. Labels stay in the machine's
    /// memory. Calls `prepare`, unless one thread does all the work. `prepare` builds the transposed graph, and may give
    /// different regions to parts that share no component.
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
            let LevelProgress { live, missed, .. } = match self.trim(work, &mut limit)? {
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
                // If the states are in several regions, most of them are outside the region of a single pivot.
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

    /// Finds trivial components. Returns the number of live states and a pivot.
    fn trim(&mut self, work: &Work, limit: &mut Option<Limit>) -> Result<Result<LevelProgress, GaveUp>> {
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

    /// Finds the components of the pivots.
    fn search(&mut self, work: &Work, pivots: Pivots, live: u64, limit: &mut Option<Limit>) -> Result<Result<(), GaveUp>> {
        // With so few live states, a sweep over all states is not worthwhile.
        let sweep_from = if live > 4 * SWEEP_PART { live / SWEEP_PART } else { u64::MAX };
        // The first direction, the second direction, and the kernel that evaluates both. Each direction has a kernel that begins
        // it and a kernel that runs its levels.
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

    /// Decomposes the remaining states with Tarjan's algorithm.
    fn finish(&mut self, work: &Work) -> Result<()> {
        let began = Instant::now();
        let mut labels: Vec<u32> = self.read_all(&self.buffers.label, work.states)?;
        let is_whole = work.offsets == self.work.offsets;
        // The host may already have the rows, if this is the whole graph.
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
        // If most states remain, decompose all states: this is faster than building a smaller graph.
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
        // Any state of a component can serve as its label.
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
        // For the whole graph, `in_offsets` is a buffer of this engine, which the machine can fill.
        let began = Instant::now();
        self.machine.fill(&self.buffers.in_offsets, 8 * (work.states + 1), 0)?;
        self.transpose(&work)?;
        self.done.transpose += began.elapsed();
        Ok(())
    }

    /// Builds the transposed graph. `in_offsets` must be all zeros before.
    pub(super) fn transpose(&mut self, work: &Work) -> Result<()> {
        self.launch(Kernel::CountIn, work)?;
        self.scan(work, work.in_offsets, work.states + 1)?;
        self.launch(Kernel::ScatterIn, work)
    }

    /// Replaces each of `count` numbers by the sum of the numbers before it.
    pub(super) fn scan(&self, work: &Work, scanned: u64, count: u64) -> Result<()> {
        self.launch(Kernel::Scan, &Work { scanned, scanned_count: count, ..*work })
    }

    /// Scans as `scan` does, and returns the sum of all numbers.
    pub(super) fn scan_to_total(&self, work: &Work, scanned: u64, count: u64) -> Result<u64> {
        self.scan(work, scanned, count)?;
        Ok(self.progress()?.total)
    }

    pub(super) fn launch(&self, kernel: Kernel, work: &Work) -> Result<()> {
        self.launches.set(self.launches.get() + 1);
        // SAFETY: all addresses are in buffers of this engine or of its end components. These buffers live until the next launch
        // and have the sizes that `Work` requires. The host accesses them only through the machine.
        unsafe { self.machine.launch(kernel, work) }.with_context(|| format!("kernel {kernel:?}"))
    }

    pub(super) fn progress(&self) -> Result<LevelProgress> {
        self.waits.set(self.waits.get() + 1);
        let mut progress = LevelProgress::zeroed();
        self.machine.read(&self.buffers.progress, bytemuck::bytes_of_mut(&mut progress))?;
        Ok(progress)
    }

    /// Empties the queues, and resets all counters except that of edges.
    pub(super) fn begin(&mut self) -> Result<()> {
        self.levels_before = self.done.levels;
        self.machine.fill(&self.buffers.progress, offset_of!(LevelProgress, edges) as u64, 0)
    }

    /// Returns the times and counters up to now.
    pub fn done(&self) -> Result<Done> {
        let LevelProgress { edges, .. } = self.progress()?;
        Ok(Done { launches: self.launches.get(), waits: self.waits.get() - 1, edges, ..self.done })
    }

    pub(super) fn read_all<T: Pod>(&self, buffer: &M::Buffer, count: u64) -> Result<Vec<T>> {
        self.waits.set(self.waits.get() + 1);
        let mut all = vec![T::zeroed(); count as usize];
        self.machine.read(buffer, cast_slice_mut(&mut all))?;
        Ok(all)
    }
}
