//! The search for accepting cycles by kernels (residue.cu): the passes of `liveness::residue`, over all states that the table on
//! the GPU holds. Beside the table it takes two bytes a slot and eight a state.

use super::{Engine, GLANCE, Kernel};
use crate::engine::{End, Limits};
use crate::liveness::residue::{Automaton, Decision, MOST_COUNT, ROUNDS_ON_THE_WAY, Residue, is_inside};
use anyhow::{Context, Result};
use rayon::prelude::*;
use std::sync::atomic::AtomicU16;
use warpset::cudarc::driver::sys::CUresult;
use warpset::cudarc::driver::{CudaSlice, DeviceRepr, DriverError, LaunchConfig, PushKernelArg, ValidAsZeroBits};
use warpset::{Reference, Storage};

pub const FLAGS: &str = include_str!("residue.cuh");
pub const KERNELS: &str = include_str!("residue.cu");

/// `explore::Sweep` in residue.cu.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Sweep {
    first: u64,
    last: u64,
    next: u64,
    appended: u64,
    going: u64,
    accepting: u64,
    inside: u64,
    at_most: u64,
    arrived: u32,
    generation: u32,
}

// SAFETY: `repr(C)` of integers without padding, as in residue.cu.
unsafe impl DeviceRepr for Sweep {}
// SAFETY: all zeros are numbers.
unsafe impl ValidAsZeroBits for Sweep {}

/// The same blocks without shared memory, of which a kernel must be told before it may have much.
fn without_shared(launch: LaunchConfig) -> LaunchConfig {
    LaunchConfig { shared_mem_bytes: 0, ..launch }
}

/// What the passes work on, in device memory.
struct Memory {
    flags: CudaSlice<u16>,
    queue: CudaSlice<u64>,
    /// What the automaton's locations are, as `about` in residue.cu has it.
    locations: CudaSlice<u32>,
    sweep: CudaSlice<Sweep>,
}

/// A residue that is still on the GPU.
pub struct OnGpu {
    memory: Option<Memory>,
    accepting: u64,
    passes: u64,
    inside: u64,
    end: Option<End>,
}

impl OnGpu {
    pub fn has_cycle(&self) -> bool {
        self.end.is_none() && self.inside > 0
    }
}

impl<S: Storage> Engine<'_, S> {
    /// Whether the part that was found until now has an accepting cycle.
    pub(super) fn cycle_on_the_way(&self, automaton: &Automaton, limits: Limits) -> Result<Option<OnGpu>> {
        let residue = self.residue_on_gpu(automaton, limits, ROUNDS_ON_THE_WAY)?;
        Ok(Some(residue).filter(OnGpu::has_cycle))
    }

    /// Finds the residue. That memory ends is no error.
    pub(super) fn residue_on_gpu(&self, automaton: &Automaton, limits: Limits, most_rounds: u64) -> Result<OnGpu> {
        let mut residue = OnGpu { memory: None, accepting: 0, passes: 0, inside: 0, end: None };
        let Some(mut memory) = self.room_for_search(automaton, limits)? else {
            residue.end = Some(End::Memory);
            return Ok(residue);
        };
        let slots = self.table.slots();
        let spec = self.table.spec();
        let kernels = if self.kernel.spec == spec {
            Kernel::of(self.kernel.module.clone(), "sweep_levels", &self.stream, spec)?
        } else {
            Kernel::load(self.table, &self.text, "sweep_levels", &self.stream)?
        };
        let view = self.table.kernel_argument()?;
        let begin = kernels.module.load_function("begin_residue")?;
        let mut launch = self.stream.launch_builder(&begin);
        launch.arg(&view).arg(&slots).arg(&mut memory.flags).arg(&memory.locations).arg(&mut memory.sweep);
        // SAFETY: the arguments of `begin_residue` in its order; there are two bytes for each slot and a word for each location;
        // the view is valid: the table does not grow meanwhile.
        unsafe { launch.launch(without_shared(kernels.launch)) }?;
        let mut sweep = self.tally(&kernels, &mut memory)?;
        (residue.accepting, residue.inside) = (sweep.accepting, sweep.inside);
        let mut rounds = 0;
        while residue.inside > 0 {
            if rounds == most_rounds {
                residue.end = Some(End::Levels);
                break;
            }
            for (seed, counts) in [("seed_reset", 1), ("seed_elimination", 0)] {
                if let Some(end) = self.pass(&kernels, &mut memory, (seed, counts), limits)? {
                    residue.end = Some(end);
                    return Ok(residue);
                }
                residue.passes += 1;
            }
            rounds += 1;
            let before = std::mem::replace(&mut residue.inside, 0);
            sweep = self.tally(&kernels, &mut memory)?;
            residue.inside = sweep.inside;
            if automaton.decides(Decision { before, after: sweep.inside, has_most: sweep.at_most > 0 }) {
                break;
            }
        }
        residue.memory = Some(memory);
        Ok(residue)
    }

    /// The same in memory of the host, for a run to be looked for in it.
    pub(super) fn download(&self, residue: OnGpu) -> Result<Residue> {
        let OnGpu { memory, accepting, passes, inside, end } = residue;
        let mut all = Residue { flags: Vec::new(), members: Vec::new(), accepting, passes, end };
        // There may be a hundred times as many slots as states in it: of an empty one nothing is read. A table that is asked for
        // each reference takes 25 ns for one, and longer where several threads ask. But for its slot each is like the first.
        if let Some(Memory { flags, .. }) = memory.filter(|_| inside > 0) {
            let flags = self.stream.clone_dtoh(&flags)?;
            let first = self.table.reference(0).context("a table has a slot")?.to_bits();
            let members = flags.par_iter().enumerate().filter(|(_, flags)| is_inside(**flags));
            all.members = members.filter_map(|(slot, _)| Reference::from_bits(first | slot as u64)).collect();
            all.flags = flags.into_par_iter().map(AtomicU16::new).collect();
        }
        Ok(all)
    }

    /// A pass: its first states, then all that follow from these. How it has ended, if before that.
    fn pass(&self, kernels: &Kernel, memory: &mut Memory, (seed, counts): (&str, u32), limits: Limits) -> Result<Option<End>> {
        let slots = self.table.slots();
        self.stream.memcpy_htod(&[Sweep::default()], &mut memory.sweep)?;
        let function = kernels.module.load_function(seed)?;
        let mut launch = self.stream.launch_builder(&function);
        launch.arg(&slots).arg(&mut memory.flags).arg(&mut memory.queue).arg(&mut memory.sweep);
        // SAFETY: the arguments of both seeds in their order; there are two bytes for each slot, and `queue` has room for all
        // states of the table, each of which is appended once a pass.
        unsafe { launch.launch(without_shared(kernels.launch)) }?;
        let mut sweep = self.read(&memory.sweep)?;
        sweep.last = sweep.appended;
        let (view, most, nanoseconds) = (self.table.kernel_argument()?, u32::from(MOST_COUNT), GLANCE.as_nanos() as u64);
        while sweep.first != sweep.last {
            if let Some(stop) = (limits.stop)() {
                return Ok(Some(End::Stopped(stop)));
            }
            self.stream.memcpy_htod(&[sweep], &mut memory.sweep)?;
            let Memory { flags, queue, locations, sweep: at } = memory;
            let mut launch = self.stream.launch_builder(&kernels.function);
            launch.arg(&view).arg(&self.tables).arg(flags).arg(queue).arg(&*locations).arg(at);
            launch.arg(&most).arg(&counts).arg(&nanoseconds);
            // SAFETY:
            // - the arguments are those of `sweep_levels` in its order, each of the layout that it has in residue.cu;
            // - `tables` are those of the model that was compiled, and nobody writes them;
            // - `queue` has room for all states of the table, each of which is appended once a pass;
            // - the view is valid: the table does not grow meanwhile;
            // - the grid is resident as a whole: it is what the driver says a multiprocessor holds, times the multiprocessors.
            unsafe { launch.launch_cooperative(kernels.launch) }?;
            sweep = self.read(&memory.sweep)?;
        }
        Ok(None)
    }

    /// What is in the residue.
    fn tally(&self, kernels: &Kernel, memory: &mut Memory) -> Result<Sweep> {
        let (slots, most) = (self.table.slots(), u32::from(MOST_COUNT));
        let before = self.read(&memory.sweep)?;
        let zero = Sweep { accepting: before.accepting, ..Sweep::default() };
        self.stream.memcpy_htod(&[zero], &mut memory.sweep)?;
        let function = kernels.module.load_function("tally_residue")?;
        let mut launch = self.stream.launch_builder(&function);
        launch.arg(&slots).arg(&memory.flags).arg(&most).arg(&mut memory.sweep);
        // SAFETY: the arguments of `tally_residue` in its order; there are two bytes for each slot.
        unsafe { launch.launch(without_shared(kernels.launch)) }?;
        self.read(&memory.sweep)
    }

    /// `None` if there is no memory for it.
    fn room_for_search(&self, automaton: &Automaton, limits: Limits) -> Result<Option<Memory>> {
        let (slots, states) = (self.table.slots(), self.table.len()?);
        let bytes = self.table.bytes() + 2 * slots + size_of::<u64>() as u64 * states;
        if bytes > limits.bytes {
            return Ok(None);
        }
        let allocate = || -> Result<Memory, DriverError> {
            Ok(Memory {
                flags: self.stream.alloc_zeros(slots as usize)?,
                // SAFETY: an element is written before it is read: those that were not appended are not read.
                queue: unsafe { self.stream.alloc(states as usize) }?,
                locations: self.stream.clone_htod(&automaton.about_locations())?,
                sweep: self.stream.alloc_zeros(1)?,
            })
        };
        match allocate() {
            Ok(memory) => Ok(Some(memory)),
            Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
