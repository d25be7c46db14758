//! Random walks on a GPU, one walk per thread ([`simulation`](crate::simulation)).

use super::program::{REGISTERS, SURROUNDINGS};
use crate::codegen::{WALK, ensure_fits, generate, tables};
use crate::simulation::{Simulation, Walks};
use crate::successors::Interpreted;
use anyhow::{Context, Result, ensure};
use std::sync::Arc;
use std::time::{Duration, Instant};
use warpset::gpu::cudarc_0_19::cudarc::driver::sys::CUdevice_attribute;
use warpset::gpu::cudarc_0_19::cudarc::driver::{CudaFunction, CudaStream, DeviceRepr, LaunchConfig, PushKernelArg};
use warpset::gpu::cudarc_0_19::{DeviceExt, ModuleExt};
use warpset::{BucketTable, Device, gpu};
use warpset_model::checks::Checks;
use warpset_model::ir::Model;
use warpset_support::stopping::Stop;

const KERNEL: &str = include_str!("walks.cu");

/// Threads of a block.
const THREADS: u32 = 128;

/// Intended duration of a launch: between launches the host can stop the walks.
const LAUNCH: Duration = Duration::from_millis(100);

/// Steps of each thread in the first launch.
const FIRST_SLICE: u64 = 1 << 8;

/// [`Walker::walk`] of a thread that has no walk at first.
const BETWEEN_WALKS: u64 = u64::MAX;

/// `explore::Walker` in walks.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Walker {
    walk: u64,
    random: u64,
    steps: u64,
}

/// `explore::WalkCounts` in walks.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct WalkCounts {
    next: u64,
    before: u64,
    walks: u64,
    steps: u64,
    deadlocks: u64,
    longest: u64,
    overflows: u64,
    unfinished: u64,
}

/// `explore::WalkLimits` in walks.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct WalkLimits {
    walks: u64,
    depth: u64,
    seed: u64,
    slice: u64,
    deadlocks: u64,
}

// SAFETY: `repr(C)` of integers without padding, as in walks.cu.
unsafe impl DeviceRepr for Walker {}
// SAFETY: `repr(C)` of integers without padding, as in walks.cu.
unsafe impl DeviceRepr for WalkCounts {}
// SAFETY: `repr(C)` of integers without padding, as in walks.cu.
unsafe impl DeviceRepr for WalkLimits {}

/// Program text of the kernel that takes walks, for any GPU.
pub fn source_of_walks(model: &Model, checks: &Checks) -> String {
    let conditions: Vec<_> = checks.conditions.iter().map(|condition| &condition.must_hold).collect();
    format!("{SURROUNDINGS}{}{WALK}{REGISTERS}{KERNEL}", generate(model, &conditions, None))
}

/// The kernel of a model without a property, compiled for a GPU.
pub struct GpuWalks<'a> {
    model: &'a Model,
    function: CudaFunction,
    stream: Arc<CudaStream>,
    /// Maximum number of blocks that run at once.
    resident: u32,
}

impl<'a> GpuWalks<'a> {
    /// Compiles the kernel.
    ///
    /// # Errors
    ///
    /// The device is not a GPU, NVRTC is not found or rejects the source, or the driver fails.
    pub fn new(device: &Device, interpreted: &Interpreted<'a>) -> Result<Self> {
        let model = interpreted.interpreter.model();
        assert!(model.property.is_none(), "walks are without a property");
        ensure_fits(model)?;
        let context = device.cuda_context().context("the device is not a GPU")?;
        // The kernel uses no table, but gets the headers of one.
        let of_states = BucketTable::builder(model.layout.words);
        let module = gpu::load(device, &of_states, "walks.cu", &source_of_walks(model, interpreted.checks))?;
        context.bind_to_thread()?;
        let function = module.load_function("take_walks")?;
        let blocks = function.occupancy_max_active_blocks_per_multiprocessor(THREADS, 0, None)?;
        ensure!(blocks > 0, "no block of {THREADS} threads fits a multiprocessor of this GPU");
        let multiprocessors = context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32;
        Ok(Self { model, function, stream: context.new_stream()?, resident: blocks * multiprocessors })
    }

    /// Takes all walks, or those up to the first with a violation, as [`simulate`](crate::simulation::simulate) does. Returns
    /// the simulation and the number of threads.
    ///
    /// # Errors
    ///
    /// There is no memory for the states of the threads, or the driver fails.
    pub fn simulate(&self, walks: Walks, deadlocks: bool, stop: fn() -> Option<Stop>) -> Result<(Simulation, u64)> {
        let Self { model, function, stream, resident } = self;
        let blocks = walks.walks.div_ceil(THREADS.into()).clamp(1, (*resident).into()) as u32;
        let threads = (blocks * THREADS) as usize;
        let mut model_tables = tables(model, None);
        model_tables.resize(model_tables.len().max(1), 0);
        let initial = model.initial_state();
        let (model_tables, initial) = (stream.clone_htod(&model_tables)?, stream.clone_htod(&initial)?);
        let mut walkers = stream.clone_htod(&vec![Walker { walk: BETWEEN_WALKS, random: 0, steps: 0 }; threads])?;
        let mut words = stream.alloc_zeros::<u32>(threads * model.layout.words)?;
        let mut counts = stream.clone_htod(&[WalkCounts::default()])?;
        let config = LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (THREADS, 1, 1), shared_mem_bytes: 0 };
        let Walks { walks, depth, seed } = walks;
        let mut limits = WalkLimits { walks, depth, seed, slice: FIRST_SLICE, deadlocks: deadlocks.into() };
        let mut unfinished = 0;
        loop {
            let start = Instant::now();
            let mut launch = stream.launch_builder(function);
            launch.arg(&model_tables).arg(&initial).arg(&mut walkers).arg(&mut words).arg(&mut counts).arg(&limits);
            // SAFETY:
            // - the arguments match the parameters of `take_walks` in order and layout (walks.cu);
            // - the tables and the initial state belong to the compiled model;
            // - there is a walker and a state for each thread of the grid.
            unsafe { launch.launch(config) }?;
            let now = stream.clone_dtoh(&counts)?[0];
            let found = (now.before != 0).then_some(!now.before);
            let is_done = now.unfinished == unfinished;
            let stopped = if is_done || found.is_some() { None } else { stop() };
            if is_done || stopped.is_some() {
                let WalkCounts { walks, steps, deadlocks, longest, overflows, .. } = now;
                return Ok((Simulation { walks, steps, deadlocks, longest, overflows, found, stopped }, threads as u64));
            }
            unfinished = now.unfinished;
            limits.slice = match start.elapsed() {
                time if time < LAUNCH / 2 => limits.slice * 2,
                time if time > LAUNCH * 2 => (limits.slice / 2).max(1),
                _ => limits.slice,
            };
        }
    }
}
