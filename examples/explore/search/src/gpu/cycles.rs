//! The search for accepting cycles by kernels (residue.cu): the passes of `liveness::residue`, over all states in the table on
//! the GPU. Besides the table, the search takes two bytes a slot and eight bytes a state.

use super::kernel::{Kernel, allocate};
use super::{GpuEngine, POLL_INTERVAL, SearchMemory};
use crate::exploration::{End, Limits};
use crate::liveness::residue::{Automaton, Decision, MOST_COUNT, ROUNDS_ON_THE_WAY, Residue};
use anyhow::{Context, Result, ensure};
use bytemuck::zeroed_vec;
use std::sync::Arc;
use warpset::gpu::cudarc_0_19::cudarc::driver::sys::CUresult;
use warpset::gpu::cudarc_0_19::cudarc::driver::{
    CudaSlice, CudaStream, DevicePtr, DeviceRepr, DriverError, LaunchConfig, PushKernelArg, ValidAsZeroBits,
};
use warpset::{Reference, Storage, VectorTable};

/// Memory allocated in advance is at most 1 / `SHARE` of the free memory.
const SHARE: u64 = 8;

/// `explore::Sweep` in residue.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sweep {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) next: u64,
    pub(super) appended: u64,
    pub(super) going: u64,
    pub(super) accepting: u64,
    pub(super) inside: u64,
    pub(super) at_most: u64,
    pub(super) listed: u64,
    pub(super) level: u64,
    pub(super) arrived: u32,
    pub(super) generation: u32,
}

/// `explore::Trail` in residue.cu: addresses, which are null unless a task needs them, and the number of steps for which `steps`
/// has room.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trail {
    pub(super) numbers: u64,
    pub(super) steps: u64,
    pub(super) room: u64,
    pub(super) starts: u64,
    pub(super) path: u64,
    pub(super) places: u64,
}

/// `explore::Task` in residue.cu.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(super) enum Task {
    Eliminate = 0,
    Reset = 1,
    ListSteps = 2,
    GoBack = 3,
}

// SAFETY: `repr(C)` of integers without padding, as in residue.cu.
unsafe impl DeviceRepr for Trail {}
// SAFETY: `repr(C)` of integers without padding, as in residue.cu.
unsafe impl DeviceRepr for Sweep {}
// SAFETY: all zeros are valid integers.
unsafe impl ValidAsZeroBits for Sweep {}

/// Returns `launch` without shared memory. A kernel may use much shared memory only after an attribute was set.
fn without_shared(launch: LaunchConfig) -> LaunchConfig {
    LaunchConfig { shared_mem_bytes: 0, ..launch }
}

/// Where the states are: in a list that the search made or, without a list, in unknown slots of the table.
pub(super) struct States<'a> {
    pub(super) order: Option<&'a CudaSlice<u64>>,
    /// Number of listed states; without a list, the number of slots of the table.
    pub(super) count: u64,
}

impl States<'_> {
    /// Address of the list, or 0.
    pub(super) fn address(&self, stream: &CudaStream) -> u64 {
        // All work on the list is on this one stream.
        self.order.map_or(0, |order| order.device_ptr(stream).0)
    }
}

/// Device memory that the passes use.
pub(super) struct Memory {
    pub(super) flags: CudaSlice<u16>,
    pub(super) queue: CudaSlice<u64>,
    /// Component and acceptance of the automaton's locations, as `about` in residue.cu reads them.
    locations: CudaSlice<u32>,
    sweep: CudaSlice<Sweep>,
    /// Numbers of members, by slot; `None` unless there was memory for them in advance.
    pub(super) numbers: Option<CudaSlice<u32>>,
}

impl Memory {
    /// Bytes of this memory, without `numbers`.
    pub(super) fn bytes(&self) -> u64 {
        (self.flags.num_bytes() + self.queue.num_bytes()) as u64
    }

    pub(super) fn all_bytes(&self) -> u64 {
        self.bytes() + self.numbers.as_ref().map_or(0, |numbers| numbers.num_bytes() as u64)
    }
}

/// Returns the kernels that were compiled together with the search's kernel, and loads all of them. (Otherwise the driver loads
/// each kernel when it is first used, and loading takes as long as a small search.)
pub(super) fn kernels(search: &Kernel, stream: &Arc<CudaStream>) -> Result<Arc<Kernel>> {
    let kernels = Kernel::of(search.module.clone(), "sweep_levels", stream, search.spec)?;
    for name in ["begin_residue", "seed_reset", "seed_elimination", "tally_residue", "list_residue", "find_first", "read_members"]
    {
        kernels.module.load_function(name)?;
    }
    Ok(Arc::new(kernels))
}

/// Allocates the flags and numbers, which have an element for each slot, before any time is measured: allocating gigabytes takes
/// milliseconds. `None` if they would take more than a small part of the free memory, or would exceed `most_bytes` together with
/// the table and the list of states.
pub(super) fn memory_in_advance<S: Storage>(
    table: &VectorTable<S>,
    automaton: &Automaton,
    most_bytes: u64,
    stream: &Arc<CudaStream>,
) -> Result<Option<Memory>> {
    let slots = table.slots();
    let list = size_of::<u64>() as u64 * slots;
    if table.bytes() + list + 6 * slots > most_bytes || 6 * slots > table.device().free_memory()? / SHARE {
        return Ok(None);
    }
    let (Some(flags), Some(numbers)) = (allocate(stream, slots)?, allocate(stream, slots)?) else { return Ok(None) };
    let (queue, locations) = (stream.null()?, stream.clone_htod(&automaton.about_locations())?);
    Ok(Some(Memory { flags, queue, locations, sweep: stream.alloc_zeros(1)?, numbers: Some(numbers) }))
}

/// A residue that is still on the GPU.
pub struct OnGpu {
    pub(super) memory: Option<Memory>,
    accepting: u64,
    passes: u64,
    pub(super) inside: u64,
    end: Option<End>,
    /// Only slots of states that the search has listed have valid flags.
    is_listed: bool,
}

impl OnGpu {
    pub fn has_cycle(&self) -> bool {
        self.end.is_none() && self.inside > 0
    }

    pub fn has_ended_for_memory(&self) -> bool {
        self.end == Some(End::Memory)
    }

    /// Returns the residue's numbers, without its flags and members.
    pub fn numbers(&self) -> Residue {
        let OnGpu { accepting, passes, inside, end, .. } = *self;
        Residue { flags: Vec::new(), members: Vec::new(), inside, accepting, passes, end }
    }
}

impl<S: Storage> GpuEngine<'_, S> {
    /// Whether the states found so far contain an accepting cycle. If they do not, the memory of this check is kept for the next
    /// one.
    pub(super) fn cycle_on_the_way(
        &mut self,
        progress: &SearchMemory,
        automaton: &Automaton,
        limits: Limits,
    ) -> Result<Option<OnGpu>> {
        let memory = self.cycle_memory.take();
        let mut residue = self.residue_on_gpu(Some(progress), memory, automaton, limits, ROUNDS_ON_THE_WAY)?;
        if residue.has_cycle() {
            return Ok(Some(residue));
        }
        self.cycle_memory = residue.memory.take();
        Ok(None)
    }

    /// Finds the residue: over the states listed by `progress` if it lists all states, else over the table. Running out of memory
    /// is not an error; it is reported in `end`.
    pub(super) fn residue_on_gpu(
        &self,
        progress: Option<&SearchMemory>,
        memory: Option<Memory>,
        automaton: &Automaton,
        limits: Limits,
        most_rounds: u64,
    ) -> Result<OnGpu> {
        let mut residue = OnGpu { memory: None, accepting: 0, passes: 0, inside: 0, end: None, is_listed: false };
        let states = self.states(progress)?;
        residue.is_listed = states.order.is_some();
        let Some(mut memory) = self.allocate_search(&states, memory, automaton, limits)? else {
            residue.end = Some(End::Memory);
            return Ok(residue);
        };
        let kernels = self.sweeps()?;
        self.begin_passes(&kernels, &states, &mut memory)?;
        let mut sweep = self.tally(&kernels, &states, &mut memory)?;
        (residue.accepting, residue.inside) = (sweep.accepting, sweep.inside);
        let mut rounds = 0;
        while residue.inside > 0 {
            if rounds == most_rounds {
                residue.end = Some(End::Levels);
                break;
            }
            for (seed, task) in [("seed_reset", Task::Reset), ("seed_elimination", Task::Eliminate)] {
                if let Some(end) = self.pass(&kernels, &states, &mut memory, (seed, task), limits)? {
                    residue.end = Some(end);
                    return Ok(residue);
                }
                residue.passes += 1;
            }
            rounds += 1;
            let before = std::mem::replace(&mut residue.inside, 0);
            sweep = self.tally(&kernels, &states, &mut memory)?;
            residue.inside = sweep.inside;
            if automaton.decides(Decision { before, after: sweep.inside, has_most: sweep.at_most > 0 }) {
                break;
            }
        }
        residue.memory = Some(memory);
        Ok(residue)
    }

    /// Copies the residue to the host, where threads search it for a run.
    pub(super) fn download(&self, progress: Option<&SearchMemory>, mut residue: OnGpu) -> Result<Residue> {
        let mut all = residue.numbers();
        if let Some(mut memory) = residue.memory.take().filter(|_| residue.has_cycle()) {
            let states = self.states(progress)?;
            ensure!(states.order.is_some() == residue.is_listed, "the list of states is lost: please report this as a bug");
            self.list_members(&*self.sweeps()?, &states, &mut memory, [0; 2])?;
            let members = self.stream.clone_dtoh(&memory.queue.slice(..residue.inside as usize))?;
            // Only pages that are written or read take memory. All references equal the first one except for the slot.
            all.flags = zeroed_vec(self.table.slots() as usize);
            let first = self.table.reference(0).context("a table has a slot")?.to_bits();
            all.members = members.into_iter().filter_map(|slot| Reference::from_bits(first | slot)).collect();
            all.put_in_members();
        }
        Ok(all)
    }

    /// Lists the members in the queue, in any order. If the address `numbers` is not null, writes each member's number there, by
    /// slot. If the address `kinds` is not null, writes each member's kind there, by number.
    pub(super) fn list_members(
        &self,
        kernels: &Kernel,
        states: &States,
        memory: &mut Memory,
        [numbers, kinds]: [u64; 2],
    ) -> Result<()> {
        self.stream.memset_zeros(&mut memory.sweep)?;
        let (list, order) = (kernels.module.load_function("list_residue")?, states.address(&self.stream));
        let mut launch = self.stream.launch_builder(&list);
        launch.arg(&order).arg(&states.count).arg(&memory.flags).arg(&mut memory.queue).arg(&mut memory.sweep);
        launch.arg(&numbers).arg(&kinds);
        // SAFETY: the arguments match the parameters of `list_residue`. `order` is null or lists `count` states. Each slot has
        // two bytes of flags. `queue` has room for all states of the table. `numbers` is null or has a word for each slot, and
        // `kinds` is null or has a word for each member.
        unsafe { launch.launch(without_shared(kernels.launch)) }?;
        Ok(())
    }

    /// The kernels, compiled for the table as it is now.
    pub(super) fn sweeps(&self) -> Result<Arc<Kernel>> {
        let spec = self.table.spec();
        match self.sweeps.as_ref().filter(|sweeps| sweeps.spec == spec) {
            Some(sweeps) => Ok(sweeps.clone()),
            None if self.kernel.spec == spec => kernels(&self.kernel, &self.stream),
            None => Ok(Arc::new(Kernel::load(self.table, &self.text, "sweep_levels", &self.stream)?)),
        }
    }

    /// The states listed by a search, if it lists all, else the slots of the table.
    pub(super) fn states<'b>(&self, progress: Option<&'b SearchMemory>) -> Result<States<'b>> {
        let listed = progress.filter(|progress| progress.lists_all());
        Ok(match listed.and_then(|progress| Some((progress, progress.order.wide()?))) {
            Some((progress, order)) => States { order: Some(order), count: self.read(&progress.offers)?.new_references },
            None => States { order: None, count: self.table.slots() },
        })
    }

    /// Runs a pass: its first states, then all that follow from these. Returns the reason if it ended early.
    fn pass(
        &self,
        kernels: &Kernel,
        states: &States,
        memory: &mut Memory,
        (seed, task): (&str, Task),
        limits: Limits,
    ) -> Result<Option<End>> {
        self.stream.memcpy_htod(&[Sweep::default()], &mut memory.sweep)?;
        let function = kernels.module.load_function(seed)?;
        let mut launch = self.stream.launch_builder(&function);
        let order = states.address(&self.stream);
        launch.arg(&order).arg(&states.count).arg(&mut memory.flags).arg(&mut memory.queue).arg(&mut memory.sweep);
        // SAFETY: the arguments match the parameters of both seed kernels. `order` is null or lists `count` states. Each slot has
        // two bytes of flags. `queue` has room for all states of the table, and a pass appends each state at most once.
        unsafe { launch.launch(without_shared(kernels.launch)) }?;
        let mut sweep = self.read(&memory.sweep)?;
        sweep.last = sweep.appended;
        let queue = memory.queue.device_ptr(&self.stream).0;
        // SAFETY: `queue` has room for all states of the table, and a pass appends each state at most once. The task uses no
        // trail.
        let ended = unsafe { self.take_levels(kernels, memory, queue, sweep, task, Trail::default(), limits) }?;
        Ok(ended.err())
    }

    /// Takes levels of states from a queue until none are left. Returns the sweep, or the reason for ending early.
    ///
    /// # Safety
    ///
    /// - `queue` is the address in device memory of a list of references. It holds references to states of the table where
    ///   `sweep` has a level, and has room for appended references;
    /// - the parts of `trail` that the task uses (residue.cu) are valid: `numbers` has the numbers of all slots of members;
    ///   `steps` has room for `room` steps; `starts` has the start in the queue of each level up to `sweep.level` and of the
    ///   next one; `path` has room for the words of a state for each of these levels, and has the words of the state after the
    ///   last level; `places` has room for a reference for each of these levels.
    #[expect(clippy::too_many_arguments, reason = "it is what the kernel takes")]
    pub(super) unsafe fn take_levels(
        &self,
        kernels: &Kernel,
        memory: &mut Memory,
        queue: u64,
        mut sweep: Sweep,
        task: Task,
        trail: Trail,
        limits: Limits,
    ) -> Result<Result<Sweep, End>> {
        let (view, most, nanoseconds) = (self.table.kernel_argument()?, u32::from(MOST_COUNT), POLL_INTERVAL.as_nanos() as u64);
        let task = task as u32;
        while sweep.first != sweep.last {
            if let Some(stop) = (limits.stop)() {
                return Ok(Err(End::Stopped(stop)));
            }
            self.stream.memcpy_htod(&[sweep], &mut memory.sweep)?;
            let Memory { flags, locations, sweep: at, .. } = memory;
            let mut launch = self.stream.launch_builder(&kernels.function);
            launch.arg(&view).arg(&self.tables).arg(flags).arg(&queue).arg(&*locations).arg(at);
            launch.arg(&most).arg(&task).arg(&nanoseconds).arg(&trail);
            // SAFETY:
            // - the arguments match the parameters of `sweep_levels` in order and layout (residue.cu);
            // - `tables` belong to the compiled model, and no thread writes them;
            // - the caller guarantees `queue` and `trail`;
            // - the view is valid: the table does not grow meanwhile;
            // - the whole grid is resident: its size is the number of blocks that a multiprocessor holds according to the driver,
            //   times the number of multiprocessors.
            unsafe { launch.launch_cooperative(kernels.launch) }?;
            sweep = self.read(&memory.sweep)?;
        }
        Ok(Ok(sweep))
    }

    /// Counts the states in the residue.
    fn tally(&self, kernels: &Kernel, states: &States, memory: &mut Memory) -> Result<Sweep> {
        let (order, most) = (states.address(&self.stream), u32::from(MOST_COUNT));
        let before = self.read(&memory.sweep)?;
        let zero = Sweep { accepting: before.accepting, ..Sweep::default() };
        self.stream.memcpy_htod(&[zero], &mut memory.sweep)?;
        let function = kernels.module.load_function("tally_residue")?;
        let mut launch = self.stream.launch_builder(&function);
        launch.arg(&order).arg(&states.count).arg(&memory.flags).arg(&most).arg(&mut memory.sweep);
        // SAFETY: the arguments match the parameters of `tally_residue`. `order` is null or lists `count` states. Each slot has
        // two bytes of flags.
        unsafe { launch.launch(without_shared(kernels.launch)) }?;
        self.read(&memory.sweep)
    }

    /// Memory for kernels that need neither flags nor a queue.
    pub(super) fn memory_for_ways(&self, automaton: &Automaton) -> Result<Memory> {
        Ok(Memory {
            flags: self.stream.null()?,
            queue: self.stream.null()?,
            locations: self.stream.clone_htod(&automaton.about_locations())?,
            sweep: self.stream.alloc_zeros(1)?,
            numbers: None,
        })
    }

    /// Number of accepting states among all states found.
    pub(super) fn accepting_on_gpu(&self, progress: Option<&SearchMemory>, automaton: &Automaton) -> Result<u64> {
        let mut memory = self.memory_for_ways(automaton)?;
        self.begin_passes(&*self.sweeps()?, &self.states(progress)?, &mut memory)?;
        Ok(self.read(&memory.sweep)?.accepting)
    }

    /// Counts accepting states, and initializes the flags if they are allocated.
    fn begin_passes(&self, kernels: &Kernel, states: &States, memory: &mut Memory) -> Result<()> {
        self.stream.memset_zeros(&mut memory.sweep)?;
        let (view, order) = (self.table.kernel_argument()?, states.address(&self.stream));
        let begin = kernels.module.load_function("begin_residue")?;
        let mut launch = self.stream.launch_builder(&begin);
        launch.arg(&view).arg(&order).arg(&states.count).arg(&mut memory.flags).arg(&memory.locations).arg(&mut memory.sweep);
        // SAFETY: the arguments match the parameters of `begin_residue`. `order` is null or lists `count` states. `flags` is null
        // or has two bytes for each slot. `locations` has a word for each location of the automaton. The view stays valid,
        // because the table does not grow meanwhile.
        unsafe { launch.launch(without_shared(kernels.launch)) }?;
        Ok(())
    }

    /// Allocates the memory of a search, reusing that of an earlier search. `None` if there is too little memory.
    fn allocate_search(
        &self,
        listed: &States,
        before: Option<Memory>,
        automaton: &Automaton,
        limits: Limits,
    ) -> Result<Option<Memory>> {
        let (slots, states) = (self.table.slots(), self.table.len()?);
        let list = listed.order.map_or(0, |order| order.num_bytes() as u64);
        let bytes = self.table.bytes() + list + 2 * slots + size_of::<u64>() as u64 * states;
        if bytes > limits.bytes {
            return Ok(None);
        }
        let mut before = before.filter(|before| before.flags.len() as u64 == slots);
        if let Some(before) = before.as_mut().filter(|_| bytes + 4 * slots > limits.bytes) {
            before.numbers = None;
        }
        let allocate = move || -> Result<Memory, DriverError> {
            if let Some(before) = before.take_if(|before| before.queue.len() as u64 >= states) {
                return Ok(before);
            }
            if let Some(before) = &mut before {
                before.queue = self.stream.null()?; // the new queue may need this memory
            }
            // SAFETY: elements are written before they are read: only appended elements are read.
            let queue = unsafe { self.stream.alloc(states as usize) }?;
            Ok(match before {
                Some(before) => Memory { queue, ..before },
                None => Memory {
                    // SAFETY: flags of slots that hold states are written before any of them is read, and no others are read.
                    flags: unsafe { self.stream.alloc(slots as usize) }?,
                    queue,
                    locations: self.stream.clone_htod(&automaton.about_locations())?,
                    sweep: self.stream.alloc_zeros(1)?,
                    numbers: None,
                },
            })
        };
        match allocate() {
            Ok(memory) => Ok(Some(memory)),
            Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
