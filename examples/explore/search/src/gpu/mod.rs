//! The engine that stays on the GPU: next-state functions, levels and checks in one kernel (explore.cu), compiled for the model
//! and the table.
//!
//! The host starts the kernel, which works through many levels. A few times a second the host reads its counts, grows the table
//! if necessary, and makes room in the list of references. If there is no memory for that, waiting states are marked in the table
//! (marked.rs).
//!
//! To find the path to a state, the engine clears the table, which already has its final size, and explores once more. It keeps
//! the lists of as many of the last levels as fit the memory. A second kernel, compiled only then, finds the least predecessor in
//! each of these levels, from the last to the first. For the levels before them this is repeated, with another exploration. For a
//! product with a property, the references of all levels are kept unless the table grows, and the kernel is compiled already
//! (lasso.rs). An indexed table needs no second exploration (by_rows.rs).

mod ahead;
mod branching;
mod by_rows;
mod checkpoint;
mod cycles;
mod kernel;
mod lasso;
mod lists;
mod marked;
mod net_conditions;
mod order;
mod program;
mod rank;
mod search_state;
#[cfg(test)]
mod simulated;
mod survey;
mod table_alone;
mod tallies;
mod unlisted;
mod waiting;
mod walks;

pub use ahead::{Expected, begin as compile_ahead};
pub use kernel::unless_memory_ends;
pub use program::{Sources, can_reduce};
pub use rank::OnGpu;
pub use survey::{Plan as SurveyPlan, SURVEY};
pub use walks::{GpuWalks, source_of_walks};

use by_rows::Parents;
use kernel::Kernel;
use order::{Order, States};
use program::ROWS_A_THREAD;
use search_state::{KernelLimits, NONE, Offers, SearchState};
use tallies::Tallies;
use unlisted::Unlisted;
use waiting::{Kept, Marked};

use crate::checkpoint::{Checkpoints, Resumed, can_go_on};
use crate::codegen::ensure_fits;
use crate::ctl::{self, Branching, BranchingTime};
use crate::exploration::{Counts, End, Exploration, Explorer, Found, LevelSizes, Limits, Observer, Standing, Violating};
use crate::growth::{GROW_AT_FILL, Growth, Lack, grow_by_factors};
use crate::liveness::check::Liveness;
use crate::liveness::lasso::Run;
use crate::liveness::possible::{Outcome, Possibilities, Possible};
use crate::liveness::residue::{Automaton, MOST_COUNT, Residue, ResidueSearch, Watch};
use crate::measurements::Measurements;
use crate::path::explored_again;
use crate::successors::{Expansion, Interpreted, Successors};
use anyhow::{Context, Result, ensure};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use warpset::gpu::cudarc_0_19::DeviceExt;
use warpset::gpu::cudarc_0_19::cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DeviceRepr, LaunchConfig, PushKernelArg};
use warpset::{Request, Storage, VectorTable};
use warpset_decompose::gpu::Gpu;
use warpset_model::interpreter::Interpreter;
use warpset_model::ir::Model;

/// Time after which the kernel returns so that the host can read its counts: often enough for a progress line, rarely enough to
/// cost nothing.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Factors by which a table grows; the first for which there is memory is used.
const GROW_BY: [u64; 3] = [8, 4, 2];

/// Maximum number of copies when levels are dropped from `order`.
const MOST_COPIES: u64 = 1 << 12;

/// Number of level starts for which there is room at first.
const LEVELS: u64 = 1 << 12;

/// Maximum number of states on a GPU for which the host finds paths for formulas of branching time: it loads all steps.
const MOST_FOR_PATHS: u64 = 1 << 20;

/// Message for an initial state that cannot be put into a table as new.
fn not_empty_or_too_small<S: Storage>(table: &VectorTable<S>) -> String {
    let (slots, is_tree) = (table.slots(), table.spec().is_tree());
    let nodes = if is_tree { ", or too few slots for its nodes: raise --nodes" } else { "" };
    format!("the table of {slots} slots is not empty, or has no free slot for a state{nodes}")
}

/// An engine for one model and one table.
pub struct GpuEngine<'a, S: Storage> {
    table: &'a VectorTable<S>,
    /// Determines the violation of a state that the kernel has found.
    interpreted: &'a Interpreted<'a>,
    /// Sources of the kernel's text, and the text.
    sources: Sources<'a>,
    text: String,
    /// Whether states are the rows of an indexed table, with parents beside them.
    by_rows: bool,
    /// Whether all states should stay listed.
    keeps_all: bool,
    /// Whether steps may be listed for formulas of branching time. Tests also sweep without such lists.
    pub(crate) lists_steps: bool,
    /// Tables of the model's network and of a reduction; one word if there are none.
    tables: CudaSlice<u32>,
    kernel: Kernel,
    /// Marks of the threads of a reduced search; one word if the marks are in shared memory.
    marks: Option<CudaSlice<u32>>,
    stream: Arc<CudaStream>,
    /// The automaton of a product, if accepting cycles are searched for during the exploration. `found`: the residue that such a
    /// search found.
    automaton: Option<&'a Automaton>,
    found: Option<cycles::OnGpu>,
    /// Memory of such a search for accepting cycles, kept for the next one.
    cycle_memory: Option<cycles::Memory>,
    /// The last residue, if it has a cycle, until the search for a run.
    residue: Option<cycles::OnGpu>,
    /// Finds the components of residues, if these may be needed.
    decomposer: Option<Gpu>,
    /// For a product, the kernel of the search for accepting cycles and those compiled with it.
    sweeps: Option<Arc<Kernel>>,
    /// The last exploration, until the search for its path.
    last: Option<(SearchMemory, Exploration)>,
    /// Where the search is saved, and the search to resume.
    checkpoints: Option<&'a Checkpoints>,
    resumed: Option<Resumed>,
}

/// State of the search, in device memory.
struct SearchMemory {
    /// References of states, by levels: the current level, the part of the next level found so far, and earlier levels while
    /// there is room.
    order: Order,
    /// Waiting states, if there is no memory to list all of them. `order` then has a part of the current level.
    marked: Option<Marked>,
    /// In a search for a path, levels of marked states that are expanded.
    kept: Option<Kept>,
    /// Used instead of `order` if the table's rows are in discovery order.
    parents: Option<Parents>,
    /// Words of the states of this level and of the next one, if there is no memory for an order.
    unlisted: Option<Unlisted<CudaSlice<u32>>>,
    /// Starts of levels in `order`, from `kept_from` on.
    starts: Option<CudaSlice<u64>>,
    /// In a search for a path, the first level that `order` still has: such a search keeps `starts` when earlier levels are
    /// dropped. `None` in other searches, which then keep no starts.
    kept_from: Option<u64>,
    offers: CudaSlice<Offers>,
    search: CudaSlice<SearchState>,
    /// Counts of violating states.
    tallies: Tallies,
    /// Number of states found that are no longer in `order`.
    dropped: u64,
}

impl SearchMemory {
    /// The memory of a search that begins with these counts.
    fn new(order: Order, offers: CudaSlice<Offers>, search: CudaSlice<SearchState>, tallies: Tallies) -> Self {
        let (marked, kept, parents, unlisted, starts, kept_from) = (None, None, None, None, None, None);
        Self { order, marked, kept, parents, unlisted, starts, kept_from, offers, search, tallies, dropped: 0 }
    }

    /// Whether `order` has all states that the table holds.
    fn lists_all(&self) -> bool {
        self.dropped == 0 && self.marked.is_none() && self.order.bytes() > 0
    }
}

impl<S: Storage> Explorer for GpuEngine<'_, S> {
    fn explore(&mut self, limits: Limits, observer: &Observer) -> Result<Exploration> {
        // The kernel counts a level when it begins, but the limit is of levels that are checked.
        let limits = Limits { levels: limits.levels.saturating_add(1), ..limits };
        let (mut progress, found) = match self.resumed.take() {
            Some(mut resumed) => (self.begin_again(&mut resumed, limits.bytes)?, resumed.found),
            None => match self.table.indexed().filter(|_| self.by_rows) {
                Some(table) => (self.begin_by_rows(&table)?, None),
                None => {
                    let slots = self.table.slots();
                    let listed = if self.may_list_all(limits)? { slots } else { self.lists().first_listed(0) };
                    (self.begin(Some(LEVELS), listed, limits.bytes)?, None)
                }
            },
        };
        let mut exploration = self.search(&mut progress, limits, observer, found, self.checkpoints)?;
        exploration.counts.levels -= u64::from(matches!(exploration.end, End::Levels));
        if let Some(checkpoints) = self.checkpoints.filter(|_| can_go_on(&exploration)) {
            self.keep(checkpoints, &progress, exploration.found.as_ref())?;
        }
        self.last = Some((progress, exploration.clone()));
        Ok(exploration)
    }

    fn path(&mut self, found: &Found, limits: Limits) -> Result<Vec<Vec<u32>>> {
        if let Some(progress) = self.last.as_ref().map(|(progress, _)| progress) {
            if let Some(parents) = &progress.parents {
                let starts = self.starts_by_rows(parents, found.level.max(1))?;
                let mut path = vec![self.model().initial_state(); found.level.min(1) as usize];
                path.extend(self.walk_back(parents.states(), &starts, &found.state, 1..found.level)?);
                path.push(found.state.clone());
                return Ok(path);
            }
            if let Some(states) = self.path_in_list(progress, found, limits)? {
                return Ok(states);
            }
        }
        self.last = None; // free its memory
        // Goes back from the end. Each pass lists as many of the last levels as fit, at least the level before the known states.
        let mut path = vec![found.state.clone()];
        let mut level = found.level;
        while level > 1 {
            let mut progress = self.levels(level, limits)?;
            if progress.marked.is_some() {
                let before = self.walk_marked(&mut progress, &path[path.len() - 1], level)?;
                level -= before.len() as u64;
                path.extend(before);
                continue;
            }
            let first = progress.kept_from.unwrap_or(0).max(1);
            let starts = progress.starts.as_ref().context("the beginnings of levels are wanted")?;
            let states = progress.order.states(&self.stream);
            path.extend(self.walk_back(states, starts, &path[path.len() - 1], first..level)?.into_iter().rev());
            level = first;
        }
        path.extend((level > 0).then(|| self.model().initial_state()));
        path.reverse();
        Ok(path)
    }
}

impl<S: Storage> Liveness for GpuEngine<'_, S> {
    fn residue(&mut self, automaton: &Automaton, limits: Limits) -> Result<Residue> {
        let residue = match self.found.take() {
            Some(found) => found,
            None => {
                let progress = self.last.as_ref().map(|(progress, _)| progress);
                let memory = self.cycle_memory.take();
                let residue = self.residue_on_gpu(progress, memory, automaton, limits, u64::MAX)?;
                // Free the memory of the list of states and try again.
                match residue.has_ended_for_memory() && self.last.take().is_some() {
                    true => self.residue_on_gpu(None, None, automaton, limits, u64::MAX)?,
                    false => residue,
                }
            }
        };
        let numbers = residue.numbers();
        self.residue = Some(residue).filter(cycles::OnGpu::has_cycle);
        if self.residue.is_none() {
            self.last = None; // free its memory for other uses
        }
        Ok(numbers)
    }

    fn lasso(
        &mut self,
        automaton: &Automaton,
        residue: Residue,
        fair: Option<&Interpreter>,
        limits: Limits,
    ) -> Result<Option<Result<Run>>> {
        let progress = self.last.as_ref().map(|(progress, _)| progress);
        let residue = match self.residue.take() {
            Some(mut on_gpu) => {
                if let (None, Some(progress)) = (fair, progress)
                    && let Some(run) = self.lasso_on_gpu(automaton, progress, &mut on_gpu, limits)?
                {
                    // Keep the memory until the engine is dropped: freeing it takes time.
                    self.cycle_memory = on_gpu.memory;
                    return Ok(Some(Ok(run)));
                }
                self.download(progress, on_gpu)?
            }
            None => residue,
        };
        self.last = None; // free its memory
        self.cycle_search(automaton, limits).run_through(fair, &self.model().initial_state(), &residue)
    }

    fn count_accepting(&mut self, automaton: &Automaton) -> Result<Option<u64>> {
        let progress = self.last.as_ref().map(|(progress, _)| progress);
        self.accepting_on_gpu(progress, automaton).map(Some)
    }
}

impl<S: Storage> Possibilities for GpuEngine<'_, S> {
    fn answer(&mut self, possible: &Possible, interpreter: &Interpreter, exploration: &Exploration, limits: Limits) -> Outcome {
        self.last = None; // free its memory
        possible.answer(self.table, self.interpreted, interpreter, exploration, limits)
    }
}

impl<S: Storage> BranchingTime for GpuEngine<'_, S> {
    fn branch(
        &mut self,
        branching: &Branching,
        interpreter: &Interpreter,
        exploration: &Exploration,
        limits: Limits,
    ) -> ctl::Outcome {
        let mut outcome = branching.undecided(exploration);
        let is_complete = exploration.end == End::Complete;
        if !is_complete && !branching.may_be_decided_by_states(&outcome) {
            return outcome;
        }
        let progress = self.last.as_ref().map(|(progress, _)| progress);
        let result = self.branch_on_gpu(branching, progress, exploration, limits, &mut outcome);
        if !is_complete {
            // The limit that ended the exploration is why verdicts are missing.
            return outcome;
        }
        self.last = None; // free its memory
        let has_paths = branching.with_witnesses && exploration.found.is_none();
        let is_on_host = match unless_memory_ends(result) {
            // Only the host has states and steps in an order that paths can be found in.
            Ok(Some(())) => has_paths && exploration.counts.states <= MOST_FOR_PATHS,
            Ok(None) => true,
            Err(error) => {
                outcome.why = Some(error);
                false
            }
        };
        if is_on_host {
            // The limit is of the device's memory, and states and steps are in the host's.
            let bytes = limits.bytes.min(self.table.bytes().saturating_add(warpset_support::memory::free_memory() / 5 * 4));
            let limits = Limits { bytes, ..limits };
            let on_host = branching.answer(self.table, self.interpreted, interpreter, exploration, limits);
            outcome = outcome.with_paths_of(on_host);
        } else if has_paths {
            outcome.lack_paths(branching, MOST_FOR_PATHS);
        }
        outcome
    }
}

impl<'a, S: Storage> GpuEngine<'a, S> {
    /// Keeps the list of all states, in the order of discovery, if it takes a small part of the memory: sweeps over the states in
    /// that order decide most formulas sooner.
    pub fn keep_all_listed(&mut self) {
        self.keeps_all = true;
    }

    /// Whether a list of all states is wanted, and takes a small part of the memory.
    fn may_list_all(&self, limits: Limits) -> Result<bool> {
        let bytes = size_of::<u64>() as u64 * self.table.slots();
        let is_small =
            bytes <= self.table.device().free_memory()? / 8 && limits.hold(self.table.bytes().saturating_add(2 * bytes));
        Ok(self.keeps_all && is_small)
    }

    /// Measurements of the last exploration, if it was timed.
    pub fn measurements(&mut self) -> Result<Option<Measurements>> {
        let Some((progress, exploration)) = self.last.as_ref().filter(|_| self.sources.timed) else { return Ok(None) };
        let (search, offers) = (self.read(&progress.search)?, self.read(&progress.offers)?);
        let table_alone = match exploration.end {
            End::Complete => self.table_alone(progress).map_err(|error| format!("{error:#}")),
            _ => Err("not all states were found".into()),
        };
        Ok(Some(Measurements { cycles: search.cycles, offered: offers.offered, table_alone }))
    }

    /// Compiles the kernel. `resumes`: the search is resumed, so the parents of its states are not known. `most_bytes`: limit for
    /// the table and all lists beside it.
    ///
    /// # Errors
    ///
    /// The table is not on a GPU, NVRTC is not found or rejects the source, or the driver fails.
    pub fn new(
        table: &'a VectorTable<S>,
        interpreted: &'a Interpreted<'a>,
        sources: Sources<'a>,
        automaton: Option<&'a Automaton>,
        resumes: bool,
        most_bytes: u64,
    ) -> Result<Self> {
        let context = table.device().cuda_context().context("the table is not on a GPU")?;
        ensure_fits(interpreted.interpreter.model())?;
        let by_rows = table.indexed().is_some() && !resumes;
        let text = if by_rows { sources.by_rows() } else { sources.search() };
        let stream = context.new_stream()?;
        // Compile both texts at the same time, because NVRTC takes long for each.
        let (kernel, decomposer) = std::thread::scope(|scope| {
            let decomposer = automaton.map(|_| scope.spawn(|| Gpu::on(table.device(), stream.clone(), None)));
            let kernel = Kernel::load(table, &text, "search_levels", &stream)?;
            let decomposer = decomposer.map(|thread| thread.join().expect("it does not panic"));
            // Without memory for the decomposer, threads do its work.
            let decomposer = decomposer.map(unless_memory_ends).transpose()?.flatten();
            anyhow::Ok((kernel, decomposer))
        })?;
        let tables = stream.clone_htod(&sources.tables())?;
        let marks = sources.stubborn.map(|_| kernel.marks(&stream, None)).transpose()?;
        let property = interpreted.interpreter.model().property.as_ref().filter(|_| !by_rows);
        let sweeps = property.map(|_| cycles::kernels(&kernel, &stream)).transpose()?;
        let in_advance = |automaton| cycles::memory_in_advance(table, automaton, most_bytes, &stream);
        let cycle_memory = automaton.map(in_advance).transpose()?;
        Ok(Self {
            table,
            interpreted,
            sources,
            text,
            by_rows,
            keeps_all: false,
            lists_steps: true,
            tables,
            kernel,
            marks,
            stream,
            automaton,
            found: None,
            cycle_memory: cycle_memory.flatten(),
            residue: None,
            decomposer,
            sweeps,
            last: None,
            checkpoints: None,
            resumed: None,
        })
    }

    /// The search for accepting cycles by threads, over the table on the GPU.
    fn cycle_search<'b>(&self, automaton: &'b Automaton, limits: Limits) -> ResidueSearch<'b, S, Interpreted<'a>>
    where
        'a: 'b,
    {
        ResidueSearch { table: self.table, source: self.interpreted, automaton, limits, most_count: MOST_COUNT }
    }

    fn model(&self) -> &'a Model {
        self.interpreted.interpreter.model()
    }

    /// Continues the search from `progress`. Running out of memory is not an error: see [`Exploration::end`].
    fn search(
        &mut self,
        progress: &mut SearchMemory,
        limits: Limits,
        observer: &Observer,
        found: Option<Found>,
        checkpoints: Option<&Checkpoints>,
    ) -> Result<Exploration> {
        let exploration = self.search_on(progress, limits, observer, found, checkpoints)?;
        let (search, offers) = (self.read(&progress.search)?, self.read(&progress.offers)?);
        let violating = progress.tallies.read(&self.stream, &search, &offers)?;
        Ok(Exploration { violating, ..exploration })
    }

    /// As [`search`](Self::search), without the violating states.
    fn search_on(
        &mut self,
        progress: &mut SearchMemory,
        limits: Limits,
        observer: &Observer,
        mut found: Option<Found>,
        checkpoints: Option<&Checkpoints>,
    ) -> Result<Exploration> {
        let mut may_grow = true;
        let mut watch = Watch::default();
        let watched = self.automaton.filter(|_| !limits.keep_going);
        let mut list_bytes = 0;
        loop {
            let bytes = progress.bytes();
            list_bytes = bytes.max(list_bytes);
            // Memory may be too short from the start.
            let fits = bytes > 0 && limits.hold(self.table.bytes() + bytes);
            let besides = self.cycle_memory.as_ref().map_or(0, cycles::Memory::all_bytes);
            if !limits.hold(self.table.bytes() + bytes + besides) {
                self.cycle_memory = None;
            }
            let enough = if may_grow { states_for(self.table.slots(), progress.dropped) } else { u64::MAX };
            let watched_at = watched.map_or(u64::MAX, |_| watch.next_at().saturating_sub(progress.dropped));
            if fits {
                self.begin_part(progress)?;
                self.launch(progress, limits, enough.min(watched_at))?;
            }
            let (mut search, offers) = (self.read(&progress.search)?, self.read(&progress.offers)?);
            let ends_level = !fits || self.end_part(progress, &mut search, &offers, limits.keep_going)?;
            let listed = progress.listed(&offers);
            let states = progress.dropped + listed;
            let counts = Counts {
                states,
                transitions: search.transitions,
                deadlocks: search.deadlocks,
                levels: search.levels,
                widest_level: search.widest,
                waiting: progress.waiting(&search),
                overflows: search.overflows,
            };
            let mut goes_on = observer(&counts);
            if let Some(automaton) = watched.filter(|_| goes_on && watch.is_due(states)) {
                self.found = self.cycle_on_the_way(progress, automaton, limits)?;
                goes_on = self.found.is_none();
            }
            // A fault ends the search with its level; other violations may be from any level of the launch.
            let level = search.levels.saturating_sub(1);
            let found_level = if search.found_level == NONE { level } else { search.found_level };
            for (reference, level) in [(search.found, found_level), (search.faulty, level)] {
                if reference != NONE {
                    let other = self.look_at(reference, level)?;
                    found = if other.replaces(found.as_ref()) { Some(other) } else { found };
                }
            }
            // The kernel works through many levels without the host, and counts the states of the widest only.
            let level_sizes = LevelSizes::default();
            let violating = Violating::default();
            let done = |end, found| Ok(Exploration { counts, end, found, list_bytes, level_sizes, violating });
            // A level that found the table or the list full is repeated, whatever its counts are. A part of a level is not its
            // end.
            let repeats = search.is_repeated(&offers) || !ends_level;
            let (next_level, states) = match repeats {
                false => (Some((search.levels, search.size)), Some(states)),
                true => (None, None),
            };
            let stop = (limits.stop)();
            let standing = Standing { is_out_of_memory: !fits, next_level, states, bytes: 0, is_refused: !goes_on, stop };
            // A violation may end the search, but only when its level is finished: that may have a lesser state.
            let violated = limits.end_by(found.as_ref());
            let ended = limits.end_of(&standing);
            if let Some(end) = violated.filter(|_| !repeats || ended.is_some()).or(ended) {
                return done(end, found);
            }
            // A level that found the table full is repeated in a larger table before a checkpoint is written.
            let is_whole = !search.is_repeated(&offers);
            if let Some(checkpoints) = checkpoints.filter(|checkpoints| is_whole && checkpoints.is_due(&counts)) {
                self.keep(checkpoints, progress, found.as_ref())?;
            }
            if search.levels + 1 >= progress.starts.as_ref().map_or(u64::MAX, |starts| starts.len() as u64) {
                self.allocate_levels(progress)?;
            }
            if offers.full != 0 || listed >= enough {
                self.cycle_memory = None; // free its memory for the growth
                match self.grow(progress, search, offers, limits.bytes)? {
                    Growth::Done if self.table.spec() == self.kernel.spec => {}
                    Growth::Done => self.load()?,
                    // The table cannot grow, but is filled until it rejects states.
                    Growth::Refused if offers.full == 0 => may_grow = false,
                    Growth::Refused | Growth::Stuck => return done(violated.unwrap_or(End::Memory), found),
                }
            } else if progress.parents.is_none()
                && progress.marked.is_none()
                && search.lacks_room(self.room(progress))
                && !self.make_room(progress, &search, &offers, limits.bytes)?
                && !self.mark_waiting(progress, &search, &offers, limits.bytes)?
            {
                return done(violated.unwrap_or(End::Memory), found);
            }
        }
    }

    /// Compiles the kernel for the table as it is now.
    fn load(&mut self) -> Result<()> {
        self.kernel = Kernel::load(self.table, &self.text, "search_levels", &self.stream)?;
        // The grid of the new kernel may be larger, and then needs more marks.
        self.marks = self.marks.take().map(|marks| self.kernel.marks(&self.stream, Some(marks))).transpose()?;
        Ok(())
    }

    /// Puts the initial state. The order of states has room for `listed`, or for fewer if table and order would take more than
    /// `bytes`. If there is too little memory for an order, states are marked; if there is too little for that, too, the order is
    /// empty. `levels`: number of level starts to keep.
    fn begin(&self, levels: Option<u64>, listed: u64, bytes: u64) -> Result<SearchMemory> {
        let start = self.table.find_or_put_many_with(&self.model().initial_state(), Request::new().references(true))?;
        ensure!(start.tally.new == 1, not_empty_or_too_small(self.table));
        let reference = start.references[0].context("a state that was put has a place")?;
        let mut search = SearchState::of_initial_state();
        let offers = self.stream.clone_htod(&[Offers { new_references: 1, ..Offers::default() }])?;
        let (order, marked) = self.lists().allocate(listed, 1, bytes)?;
        (search.first, search.last) = if marked.is_some() { (0, 0) } else { (0, 1) };
        let tallies = self.tallies(&Violating::default(), &mut search)?;
        let search = self.stream.clone_htod(&[search])?;
        let Some(mut order) = order else {
            let unlisted = Some(Unlisted::Here(self.model().initial_state()));
            return Ok(SearchMemory { unlisted, ..SearchMemory::new(Order::none(&self.stream)?, offers, search, tallies) });
        };
        order.write(&self.stream, 0, &[reference.slot()])?;
        let marked = marked.map(|marked| self.mark_first(&order, 1, marked)).transpose()?;
        let starts = levels.filter(|_| marked.is_none()).map(|levels| self.stream.alloc_zeros(levels as usize)).transpose()?;
        Ok(SearchMemory { marked, starts, ..SearchMemory::new(order, offers, search, tallies) })
    }

    /// The counts of violating states, which begin with those of `violating`. Sets their address in `search`.
    fn tallies(&self, violating: &Violating, search: &mut SearchState) -> Result<Tallies> {
        Tallies::new(&self.stream, self.interpreted.checks.conditions.len(), violating, search)
    }

    /// Makes room for the starts of more levels.
    fn allocate_levels(&self, progress: &mut SearchMemory) -> Result<()> {
        if let Some(starts) = &progress.starts {
            let mut more = self.stream.alloc_zeros(4 * starts.len())?;
            self.stream.memcpy_dtod(starts, &mut more.slice_mut(..starts.len()))?;
            progress.starts = Some(more);
        }
        Ok(())
    }

    /// Launches the kernel once. It returns when it has nothing to do, `enough` states are in `order`, a violation ends the
    /// search, or `POLL_INTERVAL` has passed.
    fn launch(&mut self, progress: &mut SearchMemory, limits: Limits, enough: u64) -> Result<()> {
        let room = progress.starts.as_ref().map_or(u64::MAX, |starts| starts.len() as u64);
        let limits = KernelLimits {
            states: enough.min(limits.states.saturating_sub(progress.dropped)),
            levels: limits.levels.min(room),
            nanoseconds: POLL_INTERVAL.as_nanos() as u64,
            room: self.room(progress),
            deadlocks: self.interpreted.checks.deadlocks.into(),
            keep_going: limits.keep_going.into(),
        };
        let view = self.table.kernel_argument()?;
        let SearchMemory { order, marked, parents, starts, offers, search, .. } = progress;
        let states = match parents {
            Some(parents) => parents.states(),
            // All work on the lists is on this one stream.
            None => States {
                starts: starts.as_ref().map_or(0, |starts| starts.device_ptr(&self.stream).0),
                marks: marked.as_ref().map_or(0, |marked| marked.next(&self.stream)),
                ..order.states(&self.stream)
            },
        };
        let mut launch = self.stream.launch_builder(&self.kernel.function);
        launch.arg(&view).arg(&self.tables).arg(&states).arg(offers).arg(search).arg(&limits);
        if let Some(marks) = &mut self.marks {
            launch.arg(marks);
        }
        // SAFETY:
        // - the arguments match the parameters of `search_levels` in order and layout (explore.cu);
        // - `tables` belong to the compiled model, and no thread writes them;
        // - `order` has room for as many states as the table has slots, or for `limits.room` states and the contents of the
        //   caches of all blocks, which put no more once there are more than `limits.room` states; each state is appended once.
        //   `starts` is null, or has room for as many levels as are begun (`levels`). If there are marks, nothing is appended,
        //   and they have a bit for each slot. If there are parents instead, they have room for all rows that the table can have;
        // - a reduced search has one more parameter: marks for each thread of the grid, if they are not in shared memory
        //   (`Kernel::marks`); a thread clears its own before it reads them;
        // - the view is valid: the table grows only after the stream has been waited for (`read`);
        // - the whole grid is resident: its size is the number of blocks that a multiprocessor holds according to the driver,
        //   times the number of multiprocessors.
        unsafe { launch.launch_cooperative(self.kernel.launch) }?;
        Ok(())
    }

    /// Reads the only element of a buffer, after all earlier work is done.
    fn read<T: DeviceRepr + Copy>(&self, buffer: &CudaSlice<T>) -> Result<T> {
        Ok(self.stream.clone_dtoh(buffer)?[0])
    }

    /// Explores the levels before `level` again, and keeps the start of each. The last element of `starts` is the end of the last
    /// of these levels.
    fn levels(&mut self, level: u64, limits: Limits) -> Result<SearchMemory> {
        loop {
            self.table.clear()?;
            let slots = self.table.slots();
            // Lists as many references as fit, so that the fewest levels are explored again.
            let bytes = limits.bytes.saturating_sub(self.table.bytes()).min(self.table.device().free_memory()? / 8 * 7);
            let listed = (bytes / self.lists().format().bytes()).clamp(1, slots);
            let mut progress = self.begin(Some(level + 1), listed, limits.bytes)?;
            (progress.kept_from, progress.kept) = (Some(0), Some(Kept::new(limits.bytes, 1)));
            let exploration = self.search(&mut progress, limits.of_levels(level), &|_| true, None, None)?;
            explored_again(exploration.end)?;
            // If the table has grown, explore again, even if it was large enough before: places depend on the order of the puts,
            // so it was perhaps only large enough by chance.
            if self.table.slots() == slots && progress.marked.is_some() {
                return Ok(progress);
            }
            if self.table.slots() == slots {
                let end = self.read(&progress.search)?.last;
                let starts = progress.starts.as_mut().context("the beginnings of levels are wanted")?;
                self.stream.memcpy_htod(&[end], &mut starts.slice_mut(level as usize..))?;
                return Ok(progress);
            }
        }
    }

    /// The states of these levels on a path to `state`, which is in the level after them. The kernel finds them backwards: each
    /// is the least predecessor of the one after it. `starts`: starts of the levels in `states`, and the end of the last one.
    fn walk_back(&self, states: States, starts: &CudaSlice<u64>, state: &[u32], levels: Range<u64>) -> Result<Vec<Vec<u32>>> {
        if levels.is_empty() {
            return Ok(Vec::new());
        }
        let text = self.sources.walk(self.by_rows);
        let walk = Kernel::load(self.table, &text, "find_predecessor", &self.stream)?;
        let (width, first, level) = (self.table.width(), levels.start as usize, levels.end as usize);
        let mut path = self.stream.alloc_zeros::<u32>((level + 1) * width)?;
        self.stream.memcpy_htod(state, &mut path.slice_mut(level * width..))?;
        let mut places = self.stream.clone_htod(&vec![NONE; level])?;
        let view = self.table.kernel_argument()?;
        for level in levels.rev() {
            let mut launch = self.stream.launch_builder(&walk.function);
            launch.arg(&view).arg(&self.tables).arg(&states).arg(starts).arg(&path).arg(&mut places).arg(&level);
            // SAFETY:
            // - the arguments are those of `find_predecessor` in its order, each of the layout that it has in explore.cu;
            // - `tables` are those of the model that was compiled;
            // - `starts` has more than `level` elements, and describes parts of `states` that are written (`levels`,
            //   `starts_by_rows`);
            // - `path` has a state of each level, and `places` a reference of each but the last;
            // - the view is valid: the table does not grow meanwhile.
            unsafe { launch.launch(walk.launch) }?;
            let (at, one) = (level as usize, 1u64);
            let (place, mut words) = (places.slice(at..at + 1), path.slice_mut(at * width..(at + 1) * width));
            let mut launch = self.stream.launch_builder(&walk.read_states);
            launch.arg(&view).arg(&place).arg(&one).arg(&mut words);
            // SAFETY: the arguments of `read_states` in its order: one reference, to a stored state or none, and room for its
            // words; the view is valid, as above.
            unsafe { launch.launch(LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 }) }?;
        }
        let (words, places) = (self.stream.clone_dtoh(&path)?, self.stream.clone_dtoh(&places)?);
        let lost = places[first..].iter().filter(|place| **place == NONE).count();
        ensure!(lost == 0, "{lost} states have no predecessor in the level before their own: please report this as a bug");
        Ok(words[first * width..level * width].chunks_exact(width).map(<[u32]>::to_vec).collect())
    }

    /// Determines the violation of a state that the kernel has found.
    fn look_at(&self, reference: u64, level: u64) -> Result<Found> {
        let reference =
            self.table.reference(reference).context("the GPU returned a slot that does not exist: please report this")?;
        let state = self.table.get_many(&[reference])?;
        let mut expansion = Expansion::default();
        self.interpreted.expand(&state, &mut Default::default(), &mut expansion);
        let (_, violation) =
            expansion.violation.context("the GPU finds a violation where the interpreter does not: please report this")?;
        Ok(Found { violation, state, level })
    }

    /// Makes the table larger, and begins a new order with the level and the part of the next level found so far. If states found
    /// the table full, the level is repeated: its successors that are stored are in the new order.
    ///
    /// The GPU does all of it: it reads the states in the order before the table grows, and looks them up in the table
    /// afterwards.
    fn grow(&self, progress: &mut SearchMemory, search: SearchState, offers: Offers, bytes: u64) -> Result<Growth> {
        if progress.parents.is_some() {
            return self.grow_by_rows(progress, &search, &offers, bytes);
        }
        let mut search = search;
        if !self.list_marked(progress, &mut search, &offers, bytes)? {
            return Ok(Growth::Refused);
        }
        let offers = Offers { new_references: self.read(&progress.offers)?.new_references, ..offers };
        let count = offers.new_references - search.first;
        let Some(states) = self.lists().words(&progress.order, search.first, count)? else {
            return Ok(Growth::Refused);
        };
        let taken = self.table.bytes() + progress.bytes();
        if !grow_by_factors(self.table, Lack::of(offers.full, offers.full_nodes), GROW_BY, taken, bytes)? {
            return Ok(Growth::Refused);
        }
        let before = progress.order.len();
        progress.order = Order::none(&self.stream)?; // the new order may need this memory
        let listed = self.lists().first_listed(count).max(before.min(self.table.slots()));
        let (order, marked) = self.lists().allocate(listed, count, bytes)?;
        let Some(mut order) = order else {
            progress.unlisted = Some(Unlisted::OnGpu(states));
            return Ok(Growth::Stuck);
        };
        progress.starts = None; // it has starts of levels that are no longer in `order`
        let level = search.last - search.first;
        if let Some(marked) = marked {
            let marked = self.lists().mark_words(&mut order, marked, &states, 0..level, true)?;
            progress.marked = Some(self.lists().mark_words(&mut order, marked, &states, level..count, false)?);
            progress.order = order;
            self.go_on_from(progress, &search, &offers, search.first)?;
            return self.go_on_marked(progress, level).map(|()| Growth::Done);
        }
        self.lists().list_words(&mut order, 0, &states, 0..count)?;
        progress.order = order;
        self.go_on_from(progress, &search, &offers, search.first)?;
        Ok(Growth::Done)
    }

    /// Prepares the search to continue after the first `dropped` states of `order` have been dropped. A level that found the
    /// table or `order` full begins again.
    fn go_on_from(&self, progress: &mut SearchMemory, search: &SearchState, offers: &Offers, dropped: u64) -> Result<()> {
        let (first, last) = (search.first - dropped, search.last - dropped);
        let mut now = SearchState { first, last, next: first, listed: last, found: NONE, faulty: NONE, crowded: 0, ..*search };
        if search.is_repeated(offers) {
            [now.transitions, now.deadlocks, now.overflows] = search.before;
            progress.tallies.repeat(&self.stream)?;
        }
        progress.dropped += dropped;
        let offers = Offers { full: 0, full_nodes: 0, new_references: offers.new_references - dropped, ..*offers };
        self.stream.memcpy_htod(&[now], &mut progress.search)?;
        self.stream.memcpy_htod(&[offers], &mut progress.offers)?;
        Ok(())
    }

    /// Maximum number of states that the blocks of a launch put when each puts the contents of its cache.
    fn most_put_at_once(&self) -> u64 {
        u64::from(self.kernel.launch.grid_dim.0) * u64::from(self.kernel.launch.block_dim.0) * ROWS_A_THREAD
    }

    /// Number of states in `order` up to which blocks put more. An order for all states is never full.
    fn room(&self, progress: &SearchMemory) -> u64 {
        let listed = progress.order.len();
        if listed >= self.table.slots() || progress.marked.is_some() {
            u64::MAX
        } else {
            listed.saturating_sub(self.most_put_at_once())
        }
    }

    /// Makes room in `order`: drops levels that are finished, or makes it larger, within `bytes` for the table and the order.
    /// Returns false if there is no memory for that.
    fn make_room(&self, progress: &mut SearchMemory, search: &SearchState, offers: &Offers, bytes: u64) -> Result<bool> {
        let (room, listed) = (self.room(progress), offers.new_references);
        // Does not drop few states, because that would soon be repeated. A level that found the list full needs more room than it
        // had.
        let is_enough = search.crowded == 0 || listed - search.first + search.size / 2 < room;
        if search.first >= listed.div_ceil(16) && is_enough {
            self.drop_levels(progress, search, offers, room)?;
            return Ok(true);
        }
        let (old, slots, format) = (progress.order.len(), self.table.slots(), self.lists().format());
        // The old and the new list exist at the same time.
        let left = bytes.saturating_sub(self.table.bytes() + progress.bytes()) / format.bytes();
        let larger = (2 * old).min(slots).min(left);
        if larger >= old + old / 8
            && let Some(mut order) = Order::allocate(&self.stream, format, larger)?
        {
            progress.order.copy_to(&self.stream, &mut order, listed)?;
            progress.order = order;
            self.go_on_from(progress, search, offers, 0)?;
            return Ok(true);
        }
        let may_drop = search.first >= listed.div_ceil(MOST_COPIES);
        if may_drop {
            self.drop_levels(progress, search, offers, room)?;
        }
        Ok(may_drop)
    }

    /// Drops levels that are finished from `order`: all of them, or, in a search for a path, as few as are enough.
    fn drop_levels(&self, progress: &mut SearchMemory, search: &SearchState, offers: &Offers, room: u64) -> Result<()> {
        let mut dropped = search.first;
        match (progress.kept_from, &mut progress.starts) {
            (Some(first), Some(starts)) => {
                let kept = self.stream.clone_dtoh(&starts.slice(first as usize..search.levels as usize))?;
                let needed = (search.last + 2 * search.size).saturating_sub(room).max(offers.new_references / 4);
                let needed = if search.crowded == 0 { needed } else { dropped };
                let at = kept.iter().position(|start| *start >= needed).unwrap_or(kept.len() - 1);
                dropped = kept[at];
                let moved: Vec<u64> = kept[at..].iter().map(|start| start - dropped).collect();
                self.stream.memcpy_htod(&moved, &mut starts.slice_mut(first as usize + at..search.levels as usize))?;
                progress.kept_from = Some(first + at as u64);
            }
            _ => progress.starts = None,
        }
        progress.order.move_to_front(&self.stream, dropped, offers.new_references)?;
        self.go_on_from(progress, search, offers, dropped)
    }
}

impl SearchMemory {
    /// Bytes of the lists beside the table; 0 if there was no memory for the lists that the search needs.
    fn bytes(&self) -> u64 {
        let marks = self.marked.as_ref().map_or(0, Marked::bytes);
        self.parents.as_ref().map_or(self.order.bytes() + marks, Parents::bytes)
    }

    /// Number of states of the level that are not expanded, between two launches.
    fn waiting(&self, search: &SearchState) -> u64 {
        self.marked.as_ref().map_or(search.size, |marked| marked.left)
    }

    /// Number of states found, without those that are no longer in `order`.
    fn listed(&self, offers: &Offers) -> u64 {
        if self.parents.is_some() { offers.hits } else { offers.new_references }
    }
}

impl SearchState {
    /// Whether the level found the table or the list full, so that it is repeated.
    fn is_repeated(&self, offers: &Offers) -> bool {
        offers.full != 0 || self.crowded != 0
    }

    /// Whether `order` had no room for states, or may have too little for the next level, so that finished ones must be dropped.
    fn lacks_room(&self, room: u64) -> bool {
        let may_lack = self.first >= (self.last / 16).max(1) && self.last.saturating_add(2 * self.size) > room;
        self.crowded != 0 || may_lack
    }

    fn of_initial_state() -> Self {
        let (found, found_level, faulty) = (NONE, NONE, NONE);
        Self { last: 1, tile: 32, levels: 1, widest: 1, size: 1, listed: 1, found, found_level, faulty, ..Self::default() }
    }
}

/// Number of states in `order` at which a table should grow. The table also stores the states dropped from `order`.
fn states_for(slots: u64, dropped: u64) -> u64 {
    ((slots as f64 * GROW_AT_FILL) as u64).saturating_sub(dropped)
}

#[cfg(test)]
mod tests {
    use super::states_for;

    #[test]
    fn states_that_are_no_longer_in_order_fill_the_table_too() {
        assert_eq!([0, 425, 850, 900].map(|dropped| states_for(1000, dropped)), [850, 425, 0, 0]);
    }
}
