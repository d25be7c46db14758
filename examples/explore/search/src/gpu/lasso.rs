//! The search on the GPU for a run that violates a property, in a residue that the GPU holds. `liveness::lasso` defines the run.
//!
//! 1. The members of the residue are numbered. The kernel of the passes (residue.cu) takes the steps between them once more and
//!    lists these as pairs. A list of pairs needs no separate pass that counts the steps; two passes over the list sort it into
//!    rows, at negligible cost compared with looking states up.
//! 2. The components of that graph are found as in `decompose`, and those with an accepting state and a step are marked.
//! 3. The search has listed its states by levels. The first listed state in a marked component has the least depth. From there
//!    back to the initial state, the same kernel finds a predecessor in each level, for all levels in one launch.
//! 4. A path to an accepting state and a cycle through it are searches by levels in the rows (decompose/paths.cuh).
//!
//! Everything stays on the GPU; only the states of the run are copied to the host. Besides the table, the list and the flags, the
//! search takes 4 bytes a slot, about 60 bytes a member, and 16 bytes a step between members. Threads search for the run
//! (`liveness::lasso`) if memory is too short, or if the table has grown, so that earlier states are no longer listed.

use super::cycles::{Memory, OnGpu, Sweep, Task, Trail};
use super::kernel::{Kernel, allocate, unless_memory_ends};
use super::{GpuEngine, NONE, SearchMemory};
use crate::exploration::{End, Found, Limits};
use crate::liveness::lasso::Run;
use crate::liveness::residue::Automaton;
use anyhow::{Context, Result, bail, ensure};
use warpset::Storage;
use warpset::gpu::cudarc_0_19::cudarc::driver::{CudaSlice, DevicePtr, LaunchConfig, PushKernelArg};
use warpset_decompose::engine::{BUDGET, FEW, MOST_ROUNDS, Settings};
use warpset_decompose::gpu::Gpu;
use warpset_decompose::machine::Machine;
use warpset_decompose::paths::{self, Goal, HAS_CYCLE, Paths};

/// The settings that the program `decompose` uses for a GPU.
const SETTINGS: Settings = Settings { few: FEW, few_left: 0, most_rounds: MOST_ROUNDS, budget: Some(BUDGET) };

/// Room for steps beyond the expected number. These few cost no time.
const SPARE_STEPS: u64 = 1 << 16;

/// The graph of the residue's members, and their numbers.
struct Members<'m> {
    paths: Paths<'m, 'static, Gpu>,
    /// Numbers of the members, by slot.
    numbers: CudaSlice<u32>,
}

impl<S: Storage> GpuEngine<'_, S> {
    /// Finds a run through the residue of the states found. `None`: threads must search for it.
    pub(super) fn lasso_on_gpu(
        &self,
        automaton: &Automaton,
        progress: &SearchMemory,
        residue: &mut OnGpu,
        limits: Limits,
    ) -> Result<Option<Run>> {
        let kernels = self.sweeps()?;
        let Some(mut members) = self.members(&kernels, progress, residue, limits)? else { return Ok(None) };
        let Some(starts) = self.starts(progress)? else { return Ok(None) };
        let place = self.first_on_cycle(&kernels, progress, residue, &members)?;
        let level = starts.partition_point(|start| *start <= place) - 1;
        let slot = progress.order.read(&self.stream, place..place + 1)?[0];
        let reference =
            self.table.reference(slot).context("the GPU returned a slot that does not exist: please report this as a bug")?;
        let entry = self.table.get_many(&[reference])?;
        let is_accepting = automaton.is_accepting(&entry);
        let number = self.stream.clone_dtoh(&members.numbers.slice(slot as usize..slot as usize + 1))?[0];
        let to_accepting = match is_accepting {
            true => Vec::new(),
            false => members.paths.shortest(number, Goal::Target)?.context("its component has an accepting state")?,
        };
        let accepting = to_accepting.last().copied().unwrap_or(number);
        let cycle = members.paths.shortest(accepting, Goal::Begin)?.context("its component is a cycle's")?;
        let memory = residue.memory.as_mut().context("the residue is known")?;
        let mut states = self.way_to(&kernels, progress, memory, entry, &starts[..=level], limits)?;
        let begins = states.len() - 1 + to_accepting.len();
        let numbers: Vec<u32> = to_accepting.into_iter().chain(cycle).collect();
        let words = self.words_of_members(&kernels, residue, &numbers)?;
        states.extend(words.chunks_exact(self.table.width()).map(<[u32]>::to_vec));
        if let Some(memory) = &mut residue.memory {
            memory.numbers = Some(members.numbers);
        }
        Ok(Some(Run { states, begins, movers: None }))
    }

    /// The states of a shortest path to `found`, if all states are still listed.
    pub(super) fn path_in_list(&self, progress: &SearchMemory, found: &Found, limits: Limits) -> Result<Option<Vec<Vec<u32>>>> {
        let (Some(starts), Some(_)) = (self.starts(progress)?, &self.model().property) else { return Ok(None) };
        let Some(starts) = starts.get(..=found.level as usize) else { return Ok(None) };
        let mut memory = self.memory_for_ways(&Automaton::of(self.model()))?;
        self.way_to(&*self.sweeps()?, progress, &mut memory, found.state.clone(), starts, limits).map(Some)
    }

    /// Starts of the levels in the list of states, and the end of the last level begun. `None` unless all states are listed.
    fn starts(&self, progress: &SearchMemory) -> Result<Option<Vec<u64>>> {
        let Some(starts) = progress.starts.as_ref().filter(|_| progress.lists_all()) else { return Ok(None) };
        let search = self.read(&progress.search)?;
        let mut starts = self.stream.clone_dtoh(&starts.slice(..search.levels as usize))?;
        // Behind the last level begun, the list has states of a level that has not begun.
        starts.push(search.last);
        Ok(Some(starts))
    }

    /// Numbers the members, and builds a graph of the steps between them. `None` if there is no memory for it.
    fn members(
        &self,
        kernels: &Kernel,
        progress: &SearchMemory,
        residue: &mut OnGpu,
        limits: Limits,
    ) -> Result<Option<Members<'_>>> {
        let (states, count, slots) = (self.states(Some(progress))?, residue.inside, self.table.slots());
        let (Some(machine), Some(memory), Some(order)) = (&self.decomposer, &mut residue.memory, states.order) else {
            return Ok(None);
        };
        let taken = self.table.bytes() + order.num_bytes() as u64 + memory.bytes() + 4 * slots + 4 * count;
        // Begin with room for the average number of steps of all states found.
        let all = self.read(&progress.search)?.transitions;
        let mut room = (all.div_ceil(states.count) + 1) * count + SPARE_STEPS;
        let is_too_much = |steps: u64| {
            let bytes = taken + 8 * steps + paths::bytes(count, steps, machine.piece());
            bytes > limits.bytes || !paths::is_possible(count, steps)
        };
        if is_too_much(0) {
            return Ok(None);
        }
        let before = memory.numbers.take();
        let numbers = before.map_or_else(|| allocate::<u32>(&self.stream, slots), |numbers| Ok(Some(numbers)))?;
        let Some(numbers) = numbers else { return Ok(None) };
        let Some(kinds) = allocate::<u8>(&self.stream, 4 * count)? else { return Ok(None) };
        let numbers_at = numbers.device_ptr(&self.stream).0;
        self.list_members(kernels, &states, memory, [numbers_at, machine.address(&kinds)])?;
        let (steps, listed) = loop {
            if is_too_much(room) {
                return Ok(None);
            }
            let Some(steps) = allocate::<u8>(&self.stream, 8 * room)? else { return Ok(None) };
            let sweep = Sweep { last: count, appended: count, ..Sweep::default() };
            let trail = Trail { numbers: numbers_at, steps: machine.address(&steps), room, ..Trail::default() };
            let queue = memory.queue.device_ptr(&self.stream).0;
            // SAFETY: the queue has the members, and nothing is appended; `numbers` has their numbers; `steps` has room for
            // `room` steps.
            let ended = unsafe { self.take_levels(kernels, memory, queue, sweep, Task::ListSteps, trail, limits) }?;
            let listed = finished(ended)?.listed;
            if listed <= room {
                break (steps, listed);
            }
            room = listed;
        };
        if paths::bytes(count, listed, machine.piece()) > machine.memory_budget()?.bytes {
            return Ok(None);
        }
        let paths = unless_memory_ends(Paths::new(machine, count, (steps, listed), kinds, SETTINGS))?;
        Ok(paths.map(|paths| Members { paths, numbers }))
    }

    /// Returns the place in the list of the first state in a component with an accepting cycle.
    fn first_on_cycle(&self, kernels: &Kernel, progress: &SearchMemory, residue: &OnGpu, members: &Members) -> Result<u64> {
        let (states, memory) = (self.states(Some(progress))?, residue.memory.as_ref().context("the residue is known")?);
        let (order, labels, kinds) = (states.address(&self.stream), members.paths.labels_at(), members.paths.kinds_at());
        let mut first = self.stream.clone_htod(&[NONE])?;
        let function = kernels.module.load_function("find_first")?;
        let mut launch = self.stream.launch_builder(&function);
        launch.arg(&order).arg(&states.count).arg(&memory.flags).arg(&members.numbers).arg(&labels).arg(&kinds);
        launch.arg(&HAS_CYCLE).arg(&mut first);
        // SAFETY: the arguments match the parameters of `find_first`. `count` states are listed. The slots of all states have
        // flags, and the slots of all members have numbers. Each number has a kind and a label, which is itself such a number.
        unsafe { launch.launch(LaunchConfig { shared_mem_bytes: 0, ..kernels.launch }) }?;
        let place = self.read(&first)?;
        ensure!(place < states.count, "no state that was found is on an accepting cycle: please report this as a bug");
        Ok(place)
    }

    /// Returns the states of a shortest path to `state`, which is in the last of some levels. `starts`: the starts of these
    /// levels in the list.
    fn way_to(
        &self,
        kernels: &Kernel,
        progress: &SearchMemory,
        memory: &mut Memory,
        state: Vec<u32>,
        starts: &[u64],
        limits: Limits,
    ) -> Result<Vec<Vec<u32>>> {
        let (width, level) = (self.table.width(), starts.len() - 1);
        let mut states = vec![self.model().initial_state(); level.min(1)];
        if level > 1 {
            let mut path = self.stream.alloc_zeros::<u32>((level + 1) * width)?;
            self.stream.memcpy_htod(&state, &mut path.slice_mut(level * width..))?;
            let places = self.stream.clone_htod(&vec![NONE; level])?;
            let starts_there = self.stream.clone_htod(starts)?;
            let [starts_at, places_at] = [&starts_there, &places].map(|of| of.device_ptr(&self.stream).0);
            let path_at = path.device_ptr(&self.stream).0;
            let (first, last) = (starts[level - 1], starts[level]);
            let sweep = Sweep { first, next: first, last, level: level as u64 - 1, ..Sweep::default() };
            let trail = Trail { starts: starts_at, path: path_at, places: places_at, ..Trail::default() };
            let queue = progress.order.states(&self.stream).first;
            // SAFETY: the queue is the list of all states, by levels that begin as `starts` says, and nothing is appended. There
            // is room for the words of a state of each level, and for a reference of each level but the last, whose words are
            // written.
            let ended = unsafe { self.take_levels(kernels, memory, queue, sweep, Task::GoBack, trail, limits) }?;
            finished(ended)?;
            let (words, places) = (self.stream.clone_dtoh(&path)?, self.stream.clone_dtoh(&places)?);
            let lost = places[1..].iter().filter(|place| **place == NONE).count();
            ensure!(lost == 0, "{lost} states have no predecessor in the level before their own: please report this as a bug");
            states.extend(words[width..level * width].chunks_exact(width).map(<[u32]>::to_vec));
        }
        states.push(state);
        Ok(states)
    }

    /// The words of members, one after another.
    fn words_of_members(&self, kernels: &Kernel, residue: &OnGpu, numbers: &[u32]) -> Result<Vec<u32>> {
        let memory = residue.memory.as_ref().context("the residue is known")?;
        let (view, count) = (self.table.kernel_argument()?, numbers.len() as u64);
        let numbers = self.stream.clone_htod(numbers)?;
        let mut words = self.stream.alloc_zeros::<u32>(count as usize * self.table.width())?;
        let function = kernels.module.load_function("read_members")?;
        let mut launch = self.stream.launch_builder(&function);
        launch.arg(&view).arg(&memory.queue).arg(&numbers).arg(&count).arg(&mut words);
        // SAFETY: the arguments match the parameters of `read_members`. The queue has the members, `numbers` has `count` of their
        // numbers, and `words` has room for as many states. The view is valid: the table does not grow meanwhile.
        unsafe { launch.launch(LaunchConfig { shared_mem_bytes: 0, ..kernels.launch }) }?;
        Ok(self.stream.clone_dtoh(&words)?)
    }
}

/// Returns the sweep, or an error if it ended early.
fn finished(ended: Result<Sweep, End>) -> Result<Sweep> {
    match ended {
        Ok(sweep) => Ok(sweep),
        Err(End::Stopped(stop)) => Err(stop.error("during the search for its loop").into()),
        Err(end) => bail!("the search for its loop ended early ({end:?}): please report this as a bug"),
    }
}
