//! The engine that stays on the GPU: next-state functions, levels and checks in one kernel (explore.cu), compiled for the model and the table.
//!
//! The host starts the kernel, which goes on for many levels; looks at its counts a few times a second; and makes the table grow.

use super::checks::Checks;
use super::codegen::generate;
use super::engine::{Counts, End, Exploration, Found, Limits};
use super::ir::Model;
use super::report::Cycles;
use super::successors::{Expansion, Successors};
use anyhow::{Context, Result, ensure};
use std::sync::Arc;
use std::time::Duration;
use warpset::cudarc::driver::sys::{CUdevice_attribute, CUfunction_attribute};
use warpset::cudarc::driver::{
    CudaFunction, CudaModule, CudaSlice, CudaStream, DeviceRepr, LaunchConfig, PushKernelArg, ValidAsZeroBits,
};
use warpset::gpu::Counts as Offers;
use warpset::{Error, Reference, Request, Spec, Storage, VectorTable};

const KERNEL: &str = include_str!("explore.cu");

/// What the generated functions and the kernel want of their surroundings.
const SURROUNDINGS: &str = "\
#define EXPLORE_FN __device__ __forceinline__
#define EXPLORE_OUT_OF_LINE __device__ __noinline__
#define EXPLORE_DATA __device__ constexpr
#if WARPSET_WIDTH <= 64
#define EXPLORE_UNROLL _Pragma(\"unroll\")
#else  // no registers hold such states, and unrolled loops take seconds to compile
#define EXPLORE_UNROLL _Pragma(\"unroll 4\")
#endif
#define EXPLORE_NO_UNROLL _Pragma(\"unroll 1\")
#define EXPLORE_ROWS_A_THREAD 4
#define EXPLORE_BLOCKS(threads) (768 / threads)
#ifndef EXPLORE_REGISTERS
#define EXPLORE_REGISTERS 6
#endif
";

/// How long the kernel goes on before the host looks at its counts: often enough for a progress line, rarely enough to cost nothing.
const GLANCE: Duration = Duration::from_millis(200);

/// A table that is fuller grows, if it may: its searches get long (README, "Numbers").
const GROW_AT_FILL: f64 = 0.85;

const NONE: u64 = u64::MAX;

/// `explore::Search` in explore.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Search {
    first: u64,
    last: u64,
    next: u64,
    tile: u64,
    levels: u64,
    widest: u64,
    transitions: u64,
    deadlocks: u64,
    overflows: u64,
    found: u64,
    faulty: u64,
    going: u64,
    /// Transitions, deadlocks and overflows when the level began.
    before: [u64; 3],
    cycles: Cycles,
    arrived: u32,
    generation: u32,
}

/// `explore::Limits` in explore.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct KernelLimits {
    states: u64,
    nanoseconds: u64,
    deadlocks: u32,
    keep_going: u32,
}

// SAFETY: `repr(C)` of integers without padding, as in explore.cu.
unsafe impl DeviceRepr for Search {}
// SAFETY: all zeros are numbers.
unsafe impl ValidAsZeroBits for Search {}
// SAFETY: `repr(C)` of integers without padding, as in explore.cu.
unsafe impl DeviceRepr for KernelLimits {}

/// The text that is compiled: for a table of the model's states, and any GPU.
pub fn source(model: &Model, checks: &Checks, timed: bool) -> String {
    let conditions: Vec<_> = checks.conditions.iter().map(|condition| &condition.must_hold).collect();
    let generated = generate(model, &conditions);
    format!("{SURROUNDINGS}#define EXPLORE_TIMED {timed}\n{generated}{KERNEL}")
}

/// An engine for one model and one table.
pub struct Engine<'a, S: Storage, X> {
    table: &'a VectorTable<S>,
    /// Says what is wrong with a state that the kernel has found.
    source: &'a X,
    /// What is compiled.
    text: String,
    kernel: Kernel,
    stream: Arc<CudaStream>,
    /// Whether `source` looks for deadlocks.
    deadlocks: bool,
}

/// The text, compiled for tables of one spec.
struct Kernel {
    function: CudaFunction,
    launch: LaunchConfig,
    spec: Spec,
}

/// Where the search is, in device memory.
struct Progress {
    order: CudaSlice<u64>,
    offers: CudaSlice<Offers>,
    search: CudaSlice<Search>,
    /// States found that are no longer in `order`.
    dropped: u64,
}

/// What has come of making the table larger.
enum Growth {
    Done,
    /// There is no memory for it. Nothing has changed.
    Refused,
    /// The table has grown, but there is no memory for the order of its states: the search cannot go on.
    Stuck,
}

impl<'a, S: Storage, X: Successors> Engine<'a, S, X> {
    /// Compiles the kernel.
    ///
    /// # Errors
    ///
    /// The table is not on a GPU, NVRTC is not found or does not take the text, or the driver fails.
    pub fn new(table: &'a VectorTable<S>, model: &Model, source_of_truth: &'a X, checks: &Checks, timed: bool) -> Result<Self> {
        let context = table.device().cuda_context().context("the table is not on a GPU")?;
        let (stream, text) = (context.new_stream()?, source(model, checks, timed));
        let kernel = Kernel::load(table, &text, &stream)?;
        Ok(Self { table, source: source_of_truth, text, kernel, stream, deadlocks: checks.deadlocks })
    }

    /// Explores from the initial state, into an empty table.
    ///
    /// # Errors
    ///
    /// What the driver reports. That memory ends is no error: see [`Exploration::end`].
    pub fn run(&mut self, initial: &[u32], limits: Limits, observer: &dyn Fn(&Counts)) -> Result<(Exploration, Cycles)> {
        let Some(mut progress) = self.begin(initial)? else {
            return Ok((Exploration { counts: Counts::default(), end: End::Memory, found: None }, Cycles::default()));
        };
        let mut found = None;
        let mut may_grow = true;
        loop {
            let slots = self.table.slots();
            let enough = if may_grow { (slots as f64 * GROW_AT_FILL) as u64 } else { u64::MAX };
            self.launch(&mut progress, limits, enough)?;
            let (search, offers) = (self.read(&progress.search)?, self.read(&progress.offers)?);
            let states = progress.dropped + offers.new_references;
            let counts = Counts {
                states,
                transitions: search.transitions,
                deadlocks: search.deadlocks,
                levels: search.levels,
                widest_level: search.widest,
                waiting: search.last - search.first,
                overflows: search.overflows,
            };
            observer(&counts);
            for reference in [search.faulty, search.found] {
                if reference != NONE && found.is_none() {
                    found = Some(self.look_at(reference, search.levels - 1)?);
                }
            }
            let done = |end, found| Ok((Exploration { counts, end, found }, search.cycles));
            if search.faulty != NONE || (found.is_some() && !limits.keep_going) {
                return done(End::Violation, found);
            }
            if offers.full == 0 && search.first == search.last {
                return done(End::Complete, found);
            }
            if offers.full == 0 && states >= limits.states {
                return done(End::States, found);
            }
            if offers.full != 0 || offers.new_references >= enough {
                match self.grow(&mut progress, &search, &offers, limits.bytes)? {
                    Growth::Done if self.table.spec() == self.kernel.spec => {}
                    Growth::Done => self.kernel = Kernel::load(self.table, &self.text, &self.stream)?,
                    // Then it is filled until it rejects states.
                    Growth::Refused if offers.full == 0 => may_grow = false,
                    Growth::Refused | Growth::Stuck => return done(End::Memory, found),
                }
            }
        }
    }

    /// Puts the initial state. `None` if there is no memory for the order of states.
    fn begin(&self, initial: &[u32]) -> Result<Option<Progress>> {
        let Some(mut order) = self.room_for_order()? else { return Ok(None) };
        let start = self.table.find_or_put_many_with(initial, Request::new().references(true))?;
        ensure!(start.tally.new == 1, "the table is not empty, or has no room for one state");
        let reference = start.references[0].context("a state that was put has a place")?;
        let first = [reference.slot()];
        self.stream.memcpy_htod(&first, &mut order.slice_mut(..1))?;
        let search = Search { last: 1, tile: 32, levels: 1, widest: 1, found: NONE, faulty: NONE, ..Search::default() };
        let offers = Offers { new_references: 1, ..Offers::default() };
        let (search, offers) = (self.stream.clone_htod(&[search])?, self.stream.clone_htod(&[offers])?);
        Ok(Some(Progress { order, offers, search, dropped: 0 }))
    }

    /// One launch: until it has nothing to do, something is found, or `GLANCE` has passed.
    fn launch(&self, progress: &mut Progress, limits: Limits, enough: u64) -> Result<()> {
        let limits = KernelLimits {
            states: enough.min(limits.states.saturating_sub(progress.dropped)),
            nanoseconds: GLANCE.as_nanos() as u64,
            deadlocks: self.deadlocks.into(),
            keep_going: limits.keep_going.into(),
        };
        let view = self.table.kernel_argument()?;
        let mut launch = self.stream.launch_builder(&self.kernel.function);
        launch.arg(&view).arg(&mut progress.order).arg(&mut progress.offers).arg(&mut progress.search).arg(&limits);
        // SAFETY:
        // - the arguments are those of `search_levels` in its order, each of the layout that it has in explore.cu;
        // - `order` has room for as many states as the table has slots, and each is appended once;
        // - the view is valid: the table grows only after the stream has been waited for (`read`);
        // - the grid is resident as a whole: it is what the driver says a multiprocessor holds, times the multiprocessors.
        unsafe { launch.launch_cooperative(self.kernel.launch) }?;
        Ok(())
    }

    /// The one element of a buffer, when all work before is done.
    fn read<T: DeviceRepr + Copy>(&self, buffer: &CudaSlice<T>) -> Result<T> {
        Ok(self.stream.clone_dtoh(buffer)?[0])
    }

    /// What is wrong with a state that the kernel has found.
    fn look_at(&self, reference: u64, level: u64) -> Result<Found> {
        let state = self.table.get_many(&[Reference::from_slot(reference)])?;
        let mut expansion = Expansion::default();
        self.source.expand(&state, &mut X::Scratch::default(), &mut expansion);
        let (_, violation) =
            expansion.violation.context("the GPU finds a violation where the interpreter does not: please report this")?;
        Ok(Found { violation, state, level })
    }

    /// Makes the table twice as large, and begins a new order with the level and what was found of the next one. If states found the table
    /// full, the level is done again: its successors that are stored are in that order.
    fn grow(&self, progress: &mut Progress, search: &Search, offers: &Offers, bytes: u64) -> Result<Growth> {
        let slots = self.table.slots();
        if 3 * (self.table.bytes() + slots * size_of::<u64>() as u64) > bytes {
            return Ok(Growth::Refused);
        }
        let live = self.stream.clone_dtoh(&progress.order.slice(search.first as usize..offers.new_references as usize))?;
        let live: Vec<Reference> = live.into_iter().map(Reference::from_slot).collect();
        let states = self.table.get_many(&live)?;
        match self.table.grow(2 * slots) {
            Ok(()) => {}
            Err(Error::OutOfMemory { .. }) => return Ok(Growth::Refused),
            Err(error) => return Err(error.into()),
        }
        let places: Vec<u64> = self.table.locate_many(&states)?.into_iter().flatten().map(Reference::slot).collect();
        ensure!(places.len() == live.len(), "the table has lost states as it grew");
        let Some(order) = self.room_for_order()? else { return Ok(Growth::Stuck) };
        progress.order = order;
        self.stream.memcpy_htod(&places, &mut progress.order.slice_mut(..places.len()))?;
        let mut search = Search { first: 0, last: search.last - search.first, next: 0, found: NONE, faulty: NONE, ..*search };
        if offers.full != 0 {
            [search.transitions, search.deadlocks, search.overflows] = search.before;
        }
        progress.dropped += offers.new_references - live.len() as u64;
        let offers = Offers { full: 0, full_nodes: 0, new_references: live.len() as u64, ..*offers };
        self.stream.memcpy_htod(&[search], &mut progress.search)?;
        self.stream.memcpy_htod(&[offers], &mut progress.offers)?;
        Ok(Growth::Done)
    }

    fn room_for_order(&self) -> Result<Option<CudaSlice<u64>>> {
        let slots = self.table.slots() as usize;
        // SAFETY: an element is written before it is read: those behind the last level are not read.
        Ok(unsafe { self.stream.alloc::<u64>(slots) }.ok())
    }
}

impl Kernel {
    fn load<S: Storage>(table: &VectorTable<S>, text: &str, stream: &Arc<CudaStream>) -> Result<Self> {
        let module = table.compile("explore.cu", text)?;
        let (threads, shared) = describe(&module, stream)?;
        let function = module.load_function("search_levels")?;
        function.set_attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared as i32)?;
        let resident = function.occupancy_max_active_blocks_per_multiprocessor(threads, shared as usize, None)?;
        ensure!(
            resident > 0,
            "a multiprocessor has no room for a block of {threads} threads with {shared} bytes of shared memory"
        );
        let multiprocessors = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        let blocks = resident * stream.context().attribute(multiprocessors)? as u32;
        let launch = LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes: shared };
        Ok(Self { function, launch, spec: table.spec() })
    }
}

/// Threads of a block, and the bytes of shared memory that it wants.
fn describe(module: &Arc<CudaModule>, stream: &Arc<CudaStream>) -> Result<(u32, u32)> {
    let describe = module.load_function("describe")?;
    let (mut threads, mut shared) = (stream.alloc_zeros::<u32>(1)?, stream.alloc_zeros::<u32>(1)?);
    let mut launch = stream.launch_builder(&describe);
    launch.arg(&mut threads).arg(&mut shared);
    // SAFETY: two addresses of a number each, which one thread writes.
    unsafe { launch.launch(LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 }) }?;
    Ok((stream.clone_dtoh(&threads)?[0], stream.clone_dtoh(&shared)?[0]))
}
