//! Formulas of branching time on the GPU: sets of states in its memory, and kernels for the operators (branching.cu).
//!
//! Sets have a bit for each state, in the order of discovery, if the search has listed all states; otherwise a bit for each slot
//! of the table. If there is memory for all steps, they are listed once, and each operator sweeps over the lists; otherwise each
//! sweep computes the successors again, and looks them up in the table.

use super::kernel::{Kernel, allocate};
use super::net_conditions::NetConditions;
use super::order::Order;
use super::order::States;
use super::{GpuEngine, SearchMemory};
use crate::ctl::bits::numbers;
use crate::ctl::evaluate::{Operand, Space};
use crate::ctl::{Branching, Conditions, Outcome, Way};
use crate::exploration::{End, Exploration, Limits};
use anyhow::{Context, Result, ensure};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use warpset::gpu::cudarc_0_19::cudarc::driver::sys::cudaError_enum::CUDA_ERROR_OUT_OF_MEMORY;
use warpset::gpu::cudarc_0_19::cudarc::driver::{
    CudaFunction, CudaSlice, CudaStream, DevicePtr, DeviceRepr, DriverError, LaunchConfig, PushKernelArg, ValidAsZeroBits,
};
use warpset::{Reference, Storage, VectorTable};

/// Threads of a block of a sweep over listed steps, and blocks for each of the sweeps that take steps.
const THREADS: u32 = 256;
const BLOCKS: u32 = 8;

/// Lanes of a warp, which are the places of a word of a set and the most words that a warp takes at a time.
const LANES: u64 = 32;

/// `explore::SetSweep` in branching.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct SetSweep {
    next: u64,
    added: u64,
    steps: u64,
    lost: u64,
}

/// `explore::Places` in branching.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Places {
    wide: u64,
    low: u64,
    above: u64,
    numbers: u64,
    count: u64,
    piece: u32,
    descends: u32,
}

/// `explore::Steps` in branching.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Steps {
    begins: u64,
    counts: u64,
    targets: u64,
    room: u64,
}

/// `explore::Operator` in branching.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Operator {
    states: u64,
    within: u64,
    target: u64,
    set: u64,
    flip_within: u32,
    flip_target: u32,
    needs_all: u32,
    /// Makes the size a multiple of the alignment.
    unused: u32,
}

// SAFETY: `repr(C)` of integers without padding, as in branching.cu.
unsafe impl DeviceRepr for SetSweep {}
// SAFETY: all zeros are valid integers.
unsafe impl ValidAsZeroBits for SetSweep {}
// SAFETY: `repr(C)` of integers without padding, as in branching.cu.
unsafe impl DeviceRepr for Places {}
// SAFETY: `repr(C)` of integers without padding, as in branching.cu.
unsafe impl DeviceRepr for Steps {}
// SAFETY: `repr(C)` of integers without padding, as in branching.cu.
unsafe impl DeviceRepr for Operator {}

/// Lists of all steps.
struct Listed {
    begins: CudaSlice<u64>,
    counts: CudaSlice<u32>,
    targets: CudaSlice<u32>,
}

/// All states of a table on a GPU.
struct OnGpu<'a, S: Storage> {
    table: &'a VectorTable<S>,
    stream: Arc<CudaStream>,
    /// Tables of the model.
    tables: &'a CudaSlice<u32>,
    /// The kernel of sweeps, with the launch for all kernels that take steps.
    sweeps: Kernel,
    mark_condition: CudaFunction,
    join_sets: CudaFunction,
    count_members: CudaFunction,
    /// References of all states in the order of discovery, and their numbers by slot; `None` if the search has dropped some.
    order: Option<(&'a Order, CudaSlice<u32>)>,
    /// Number of listed states or, without a list, of slots.
    places: u64,
    slots: u64,
    states: CudaSlice<u32>,
    listed: Option<Listed>,
    /// The conditions on a net, and where each begins; `None` if conditions are compiled.
    program: Option<(CudaSlice<u32>, Vec<u32>)>,
    /// Place of the initial state; its slot before states are numbered.
    initial: u64,
    /// States in which a condition has a fault: a bit for each slot, and whether there are some.
    faults: Mutex<(CudaSlice<u32>, bool)>,
    limits: Limits,
}

/// Returns the text for all formulas.
pub(super) fn text(sources: super::Sources, branching: &Branching) -> String {
    match &branching.conditions {
        Conditions::Expressions(all) => sources.branching(all),
        Conditions::OfNet(_) => sources.branching(&[]),
    }
}

impl<S: Storage> GpuEngine<'_, S> {
    /// Evaluates the formulas on the GPU, over all states of its table. Fills in the outcome, but for paths. After an exploration
    /// that a limit ended, only decides formulas that a single state decides.
    ///
    /// # Errors
    ///
    /// Memory is too short, a limit of time ended it, or the driver fails.
    pub(super) fn branch_on_gpu(
        &self,
        branching: &Branching,
        progress: Option<&SearchMemory>,
        exploration: &Exploration,
        limits: Limits,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let start = Instant::now();
        let space = OnGpu::of(self, branching, progress, exploration, limits)?;
        let limit = limits.bytes.saturating_sub(self.table.bytes());
        if exploration.end != End::Complete {
            return branching.decide_by_states(&space, limit, outcome);
        }
        outcome.way = Way::OnGpu { is_listed: space.listed.is_some() };
        outcome.load = start.elapsed();
        let limit = limit.saturating_sub(space.bytes());
        let none = vec![false; branching.parts.all().len()];
        branching.verdicts(&space, &none, limit, outcome)?;
        if let Some(faulty) = space.faulty()? {
            let interpreter = &self.interpreted.interpreter;
            outcome.fault = Some(branching.path_to_fault(self.table, self.interpreted, interpreter, limits, &faulty)?);
        }
        outcome.search = start.elapsed();
        Ok(())
    }
}

fn out_of_memory() -> DriverError {
    DriverError(CUDA_ERROR_OUT_OF_MEMORY)
}

impl<'a, S: Storage> OnGpu<'a, S> {
    /// Loads the kernels, marks all states, and lists all steps if there is memory for them.
    fn of(
        engine: &'a GpuEngine<'_, S>,
        branching: &Branching,
        progress: Option<&'a SearchMemory>,
        exploration: &Exploration,
        limits: Limits,
    ) -> Result<Self> {
        let (table, stream) = (engine.table, engine.stream.clone());
        let sweeps = Kernel::load(table, &text(engine.sources, branching), "sweep_states", &stream)?;
        let load = |name| sweeps.module.load_function(name);
        let [mark_condition, list_steps] = [
            Kernel::of(sweeps.module.clone(), "mark_condition", &stream, sweeps.spec)?,
            Kernel::of(sweeps.module.clone(), "list_steps", &stream, sweeps.spec)?,
        ]
        .map(|kernel| kernel.function);
        let (join_sets, count_members) = (load("join_sets")?, load("count_members")?);
        // An indexed table may have more rows than slots. No state is in a row that does not exist.
        let mut slots = table.slots();
        while table.reference(slots).is_some() {
            slots *= 2;
        }
        let is_complete = exploration.end == End::Complete;
        let order = progress.filter(|progress| is_complete && progress.lists_all()).map(|progress| &progress.order);
        // Numbers have 32 bits. A limit of memory may leave no room for them.
        let of_numbers = table.bytes() + order.map_or(0, Order::bytes) + 4 * slots + slots / 2;
        let order = order.filter(|_| slots <= u64::from(u32::MAX) && of_numbers <= limits.bytes);
        let numbers = order.map(|_| allocate::<u32>(&stream, slots)).transpose()?.flatten();
        let order = order.zip(numbers);
        let places = if order.is_some() { exploration.counts.states } else { slots };
        let interpreter = &engine.interpreted.interpreter;
        let program = match &branching.conditions {
            Conditions::Expressions(_) => None,
            Conditions::OfNet(checks) => {
                let all = NetConditions::new(interpreter.firings().context("the model is a net")?, checks);
                Some((stream.clone_htod(&all.words)?, all.begins))
            }
        };
        let initial = table.locate_many(&interpreter.model().initial_state())?;
        let initial = initial.first().copied().flatten().context("the initial state is stored")?.slot();
        let states = allocate::<u32>(&stream, places.div_ceil(LANES))?.ok_or_else(out_of_memory)?;
        let faults = allocate::<u32>(&stream, slots.div_ceil(LANES))?.ok_or_else(out_of_memory)?;
        let (tables, faults) = (&engine.tables, Mutex::new((faults, false)));
        let mut space = Self {
            table,
            stream,
            tables,
            mark_condition,
            join_sets,
            count_members,
            order,
            places,
            slots,
            states,
            listed: None,
            program,
            initial,
            faults,
            limits,
            sweeps,
        };
        space.stream.memset_zeros(&mut space.faults.lock().expect("no thread that adds panics").0)?;
        let bytes = table.bytes() + space.bytes();
        if bytes > limits.bytes {
            let limit = limits.bytes;
            let message = format!("sets of states take {bytes} bytes with the table, and the limit is {limit}");
            return Err(anyhow::Error::from(out_of_memory()).context(message));
        }
        space.mark_states()?;
        let (_, all) = space.tally(Operand { set: &space.states, is_negated: false })?;
        ensure!(
            all == exploration.counts.states || !is_complete,
            "the table has {all} states, but {} were found: please report this as a bug",
            exploration.counts.states
        );
        if is_complete && engine.lists_steps {
            space.listed = space.list_steps(&list_steps, exploration.counts.transitions, bytes)?;
        }
        Ok(space)
    }

    /// Marks all states, and numbers them if they are listed.
    fn mark_states(&mut self) -> Result<()> {
        let (view, places) = (self.table.kernel_argument()?, self.in_order(false));
        let (mark, config) = (self.sweeps.module.load_function("mark_states")?, self.without_shared());
        let mut launch = self.stream.launch_builder(&mark);
        launch.arg(&view).arg(&places).arg(&mut self.states).arg(&places.numbers);
        // SAFETY: the arguments match the parameters of `mark_states`. `states` has a bit for each place, in whole words, and
        // `numbers` is null or has a number for each slot. Places exceed the slots only for an indexed table, whose kernels check
        // row numbers against its rows. The table does not grow meanwhile.
        unsafe { launch.launch(config) }?;
        if let Some((_, numbers)) = &self.order {
            let at = self.initial as usize;
            self.initial = self.stream.clone_dtoh(&numbers.slice(at..at + 1))?[0].into();
        }
        Ok(())
    }

    /// Lists all steps; `None` if there is no memory for them, or slots have more than 32 bits. `bytes`: memory taken already.
    fn list_steps(&self, function: &CudaFunction, transitions: u64, bytes: u64) -> Result<Option<Listed>> {
        let needed = 12 * self.places + 4 * transitions;
        // Half of what is left is for sets.
        let is_small = self.slots <= u64::from(u32::MAX) && bytes.saturating_add(2 * needed) <= self.limits.bytes;
        if !is_small || needed > self.table.device().free_memory()? / 2 {
            return Ok(None);
        }
        let (begins, counts) = (allocate(&self.stream, self.places)?, allocate(&self.stream, self.places)?);
        let targets = allocate(&self.stream, transitions.max(1))?;
        let (Some(begins), Some(counts), Some(targets)) = (begins, counts, targets) else { return Ok(None) };
        let listed = Listed { begins, counts, targets };
        let mut sweep = self.stream.alloc_zeros::<SetSweep>(1)?;
        let (view, places, steps) = (self.table.kernel_argument()?, self.in_order(true), listed.steps(&self.stream));
        let mut launch = self.stream.launch_builder(function);
        launch.arg(&view).arg(self.tables).arg(&places).arg(&self.states).arg(&steps).arg(&mut sweep);
        // SAFETY: the arguments match the parameters of `list_steps`. `tables` belong to the compiled model. `places` are states
        // or slots, and `begins` and `counts` have an element for each. The kernel writes at most `room` targets. The table does
        // not grow meanwhile.
        unsafe { launch.launch(self.sweeps.launch) }?;
        let sweep = self.read(&sweep)?;
        ensure!(
            sweep.lost == 0 && sweep.steps <= transitions,
            "{} successors are not stored or are faults, and {} of {transitions} steps were found: please report this as a bug",
            sweep.lost,
            sweep.steps
        );
        Ok(Some(listed))
    }

    /// The launch of kernels that use no shared memory of the launch.
    fn without_shared(&self) -> LaunchConfig {
        LaunchConfig { shared_mem_bytes: 0, ..self.sweeps.launch }
    }

    /// All places, from the last one or from the first one on.
    fn in_order(&self, descends: bool) -> Places {
        let (mut lists, mut numbers, mut is_wide) = (States::default(), 0, false);
        if let Some((order, of_slots)) = &self.order {
            (lists, numbers) = (order.states(&self.stream), of_slots.device_ptr(&self.stream).0);
            is_wide = order.wide().is_some();
        }
        let (wide, low) = if is_wide { (lists.first, 0) } else { (0, lists.first) };
        let warps = u64::from(self.sweeps.launch.grid_dim.0) * u64::from(self.sweeps.launch.block_dim.0) / LANES;
        let piece = (self.words() / (4 * warps.max(1))).clamp(1, LANES) as u32;
        Places { wide, low, above: lists.second, numbers, count: self.places, piece, descends: descends.into() }
    }

    /// Words of a set.
    fn words(&self) -> u64 {
        self.places.div_ceil(LANES)
    }

    fn new_set(&self) -> Result<CudaSlice<u32>> {
        Ok(allocate(&self.stream, self.words())?.ok_or_else(out_of_memory)?)
    }

    fn read(&self, sweep: &CudaSlice<SetSweep>) -> Result<SetSweep> {
        Ok(self.stream.clone_dtoh(sweep)?[0])
    }

    /// Adds states to a set once. Returns how many.
    fn sweep(&self, places: Places, operator: Operator) -> Result<u64> {
        if let Some(stop) = (self.limits.stop)() {
            return Err(stop.error("while formulas were evaluated").into());
        }
        let mut sweep = self.stream.alloc_zeros::<SetSweep>(1)?;
        let view = self.table.kernel_argument()?;
        match &self.listed {
            Some(listed) => {
                let function = self.sweeps.module.load_function("sweep_listed")?;
                let steps = listed.steps(&self.stream);
                let mut launch = self.stream.launch_builder(&function);
                launch.arg(&view).arg(&places).arg(&operator).arg(&steps).arg(&mut sweep);
                let blocks = self.sweeps.launch.grid_dim.0 * BLOCKS;
                let config = LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (THREADS, 1, 1), shared_mem_bytes: 0 };
                // SAFETY: the arguments match the parameters of `sweep_listed`. The sets have a bit for each place, and `steps`
                // are those of all places.
                unsafe { launch.launch(config) }?;
            }
            None => {
                let mut launch = self.stream.launch_builder(&self.sweeps.function);
                launch.arg(&view).arg(self.tables).arg(&places).arg(&operator).arg(&mut sweep);
                // SAFETY: the arguments match the parameters of `sweep_states`. `tables` belong to the compiled model. The sets
                // have a bit for each place. The table does not grow meanwhile.
                unsafe { launch.launch(self.sweeps.launch) }?;
            }
        }
        let sweep = self.read(&sweep)?;
        ensure!(sweep.lost == 0, "{} successors are not stored, or are faults: please report this as a bug", sweep.lost);
        Ok(sweep.added)
    }

    /// Adds states to a set in sweeps, until one adds none. `within`: the states that may be added.
    fn grow(&self, set: &CudaSlice<u32>, within: Operand<CudaSlice<u32>>, needs_all: bool) -> Result<()> {
        let target = Operand { set, is_negated: false };
        let operator = self.operator(set, within, target, needs_all);
        let mut descends = true;
        while self.sweep(self.in_order(descends), operator)? > 0 {
            descends = !descends;
        }
        Ok(())
    }

    fn operator(
        &self,
        set: &CudaSlice<u32>,
        within: Operand<CudaSlice<u32>>,
        target: Operand<CudaSlice<u32>>,
        needs_all: bool,
    ) -> Operator {
        let address = |set: &CudaSlice<u32>| set.device_ptr(&self.stream).0;
        Operator {
            states: address(&self.states),
            within: address(within.set),
            target: address(target.set),
            set: address(set),
            flip_within: flip(within),
            flip_target: flip(target),
            needs_all: needs_all.into(),
            unused: 0,
        }
    }

    /// The members of two sets among all states.
    fn join(&self, [one, other]: [Operand<CudaSlice<u32>>; 2]) -> Result<CudaSlice<u32>> {
        let (mut to, words) = (self.new_set()?, self.words());
        let flips = [one, other].map(flip);
        let mut launch = self.stream.launch_builder(&self.join_sets);
        launch.arg(one.set).arg(&flips[0]).arg(other.set).arg(&flips[1]).arg(&self.states).arg(&words).arg(&mut to);
        // SAFETY: the arguments match the parameters of `join_sets`, and all sets have this many words.
        unsafe { launch.launch(self.without_shared()) }?;
        Ok(to)
    }

    /// The states that are in a set, or those that are not.
    fn only(&self, of: Operand<CudaSlice<u32>>) -> Result<CudaSlice<u32>> {
        self.join([of, Operand { set: &self.states, is_negated: false }])
    }

    /// The states in which a condition has a fault; `None` if there are none.
    fn faulty(&self) -> Result<Option<Vec<Reference>>> {
        let (faults, has_some) = &*self.faults.lock().expect("no thread that adds panics");
        if !has_some {
            return Ok(None);
        }
        let words = self.stream.clone_dtoh(faults)?;
        let pairs = words.chunks(2).map(|pair| u64::from(pair[0]) | u64::from(pair.get(1).copied().unwrap_or(0)) << 32);
        let slots = pairs.enumerate().flat_map(|(at, word)| numbers(at, word));
        let references: Option<Vec<Reference>> = slots.map(|slot| self.table.reference(slot as u64)).collect();
        references.context("a state has a slot").map(Some)
    }
}

fn flip<T>(of: Operand<T>) -> u32 {
    if of.is_negated { u32::MAX } else { 0 }
}

impl Listed {
    fn steps(&self, stream: &CudaStream) -> Steps {
        Steps {
            begins: self.begins.device_ptr(stream).0,
            counts: self.counts.device_ptr(stream).0,
            targets: self.targets.device_ptr(stream).0,
            room: self.targets.len() as u64,
        }
    }

    fn bytes(&self) -> u64 {
        (self.begins.num_bytes() + self.counts.num_bytes() + self.targets.num_bytes()) as u64
    }
}

impl<S: Storage> Space for OnGpu<'_, S> {
    type Set = CudaSlice<u32>;

    fn bytes(&self) -> u64 {
        let of_order = self.order.as_ref().map_or(0, |(order, numbers)| order.bytes() + numbers.num_bytes() as u64);
        let of_faults = 4 * self.slots.div_ceil(LANES);
        of_order + of_faults + self.bytes_of_set() + self.listed.as_ref().map_or(0, Listed::bytes)
    }

    fn bytes_of_set(&self) -> u64 {
        4 * self.words()
    }

    fn bytes_of_operator(&self) -> u64 {
        self.bytes_of_set()
    }

    fn all(&self) -> Result<CudaSlice<u32>> {
        self.only(Operand { set: &self.states, is_negated: false })
    }

    fn condition(&self, number: usize) -> Result<Option<CudaSlice<u32>>> {
        let mut set = self.new_set()?;
        let mut sweep = self.stream.alloc_zeros::<SetSweep>(1)?;
        let (program, at) = match &self.program {
            Some((words, begins)) => (words.device_ptr(&self.stream).0, begins[number]),
            None => (0, number as u32),
        };
        let (view, places) = (self.table.kernel_argument()?, self.in_order(false));
        let mut faults = self.faults.lock().expect("no thread that adds panics");
        let mut launch = self.stream.launch_builder(&self.mark_condition);
        launch.arg(&view).arg(self.tables).arg(&program).arg(&at).arg(&places).arg(&self.states);
        launch.arg(&mut set).arg(&mut faults.0).arg(&mut sweep);
        // SAFETY: the arguments match the parameters of `mark_condition`. `tables` belong to the compiled model, and `number` is
        // that of a compiled condition, or `program` has one there. Sets have a bit for each place, in whole words, and `faults`
        // has one for each slot. The table does not grow meanwhile.
        unsafe { launch.launch(self.sweeps.launch) }?;
        let is_faulty = self.read(&sweep)?.added > 0;
        faults.1 |= is_faulty;
        Ok((!is_faulty).then_some(set))
    }

    fn and(&self, operands: [Operand<CudaSlice<u32>>; 2]) -> Result<CudaSlice<u32>> {
        self.join(operands)
    }

    fn next(&self, of: Operand<CudaSlice<u32>>) -> Result<CudaSlice<u32>> {
        let mut set = self.new_set()?;
        self.stream.memset_zeros(&mut set)?;
        let within = Operand { set: &self.states, is_negated: false };
        self.sweep(self.in_order(true), self.operator(&set, within, of, false))?;
        Ok(set)
    }

    fn until(&self, [first, second]: [Operand<CudaSlice<u32>>; 2]) -> Result<CudaSlice<u32>> {
        let set = self.only(second)?;
        self.grow(&set, first, false)?;
        Ok(set)
    }

    fn always(&self, of: Operand<CudaSlice<u32>>) -> Result<CudaSlice<u32>> {
        let outside = self.only(Operand { is_negated: !of.is_negated, ..of })?;
        self.grow(&outside, of, true)?;
        self.only(Operand { set: &outside, is_negated: true })
    }

    fn tally(&self, of: Operand<CudaSlice<u32>>) -> Result<(bool, u64)> {
        let mut sweep = self.stream.alloc_zeros::<SetSweep>(1)?;
        let (flip, words) = (flip(of), self.words());
        let mut launch = self.stream.launch_builder(&self.count_members);
        launch.arg(of.set).arg(&flip).arg(&self.states).arg(&words).arg(&mut sweep);
        // SAFETY: the arguments match the parameters of `count_members`, and both sets have this many words.
        unsafe { launch.launch(self.without_shared()) }?;
        let at = (self.initial / 32) as usize;
        let word = self.stream.clone_dtoh(&of.set.slice(at..at + 1))?[0] ^ flip;
        Ok((word >> (self.initial % 32) & 1 != 0, self.read(&sweep)?.added))
    }

    fn has_threads(&self) -> bool {
        true
    }
}
