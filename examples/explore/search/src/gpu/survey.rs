//! Figures of a net over all states of a table on a GPU ([`survey`](crate::survey)). A thread reads each slot, so no state leaves
//! the GPU.

use super::kernel::allocate;
use super::net_conditions::words_of_tests;
use anyhow::{Context, Result};
use warpset::gpu::cudarc_0_19::cudarc::driver::sys::CUdevice_attribute;
use warpset::gpu::cudarc_0_19::cudarc::driver::sys::cudaError_enum::CUDA_ERROR_OUT_OF_MEMORY;
use warpset::gpu::cudarc_0_19::cudarc::driver::{DriverError, LaunchConfig, PushKernelArg};
use warpset::gpu::cudarc_0_19::{DeviceExt, ModuleExt};
use warpset::{Storage, VectorTable};
use warpset_model::ir::net::{Firing, FiringGroup};
use warpset_model::net::marking::Sum;
use warpset_support::stopping::Stop;

/// Program text of the kernel, for every table.
pub const SURVEY: &str = concat!("#include \"warpset/table.cuh\"\n", include_str!("net_values.cuh"), include_str!("survey.cu"));

/// Threads of a block.
const THREADS: u32 = 256;

/// Blocks for each multiprocessor.
const BLOCKS: u32 = 8;

/// Slots of a launch: between launches the host can stop the pass.
const SLOTS: u64 = 1 << 28;

/// Number of words at the beginning of a plan: the numbers of its parts, where they begin, and the number of values.
const HEAD: usize = 11;

/// The tests of a survey, as survey.cu reads them.
pub struct Plan {
    words: Vec<u32>,
    figures: usize,
}

impl Plan {
    /// `numbers`: word, lowest bit and mask of each number field. `codes`: the same of each shared field, and where its values
    /// begin among the `values` values of all shared fields.
    pub fn new<'a>(
        groups: &[FiringGroup],
        firings: &[Firing],
        sums: impl Iterator<Item = &'a Sum>,
        numbers: impl Iterator<Item = [u32; 3]>,
        codes: impl Iterator<Item = [u32; 4]>,
        values: usize,
    ) -> Self {
        let mut words = vec![0; HEAD];
        words[5] = words.len() as u32;
        for FiringGroup { test, is_equal, firings } in groups {
            let firings = [firings.start as u32, firings.end as u32];
            words.extend([test.word, test.mask, test.value, u32::from(*is_equal)].into_iter().chain(firings));
        }
        let of_firings = firings.iter().map(words_of_tests);
        let sums: Vec<Vec<u32>> = sums.map(Sum::words).collect();
        let mut listed = |all: Vec<Vec<u32>>| {
            let mut offsets = Vec::with_capacity(all.len());
            for one in all {
                offsets.push(words.len() as u32);
                words.extend(one);
            }
            let at = words.len() as u32;
            words.extend(offsets);
            at
        };
        let sum_count = sums.len();
        let [firings_at, sums_at] = [of_firings.collect(), sums].map(&mut listed);
        let numbers_at = words.len();
        words.extend(numbers.flatten());
        let codes_at = words.len();
        words.extend(codes.flatten());
        let (number_count, code_count) = ((codes_at - numbers_at) / 3, (words.len() - codes_at) / 4);
        let counts = [groups.len(), firings.len(), sum_count, number_count, code_count].map(|count| count as u32);
        words[..5].copy_from_slice(&counts);
        words[6..HEAD].copy_from_slice(&[firings_at, sums_at, numbers_at as u32, codes_at as u32, values as u32]);
        Self { words, figures: 1 + firings.len() + sum_count + 2 * number_count + values }
    }

    /// Returns the figures in this order: the number of states; how often each transition fires; the largest value of each sum;
    /// for each number field, the complement of its fewest tokens, then its most tokens; for each value of the shared fields, 1
    /// if it occurred, else 0. Also returns the `Stop` that ended the pass early, if any. No other thread may change the table
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// The kernel cannot be compiled, there is no memory for the figures, or the driver fails.
    pub fn run<S: Storage>(&self, table: &VectorTable<S>, stop: fn() -> Option<Stop>) -> Result<(Vec<u64>, Option<Stop>)> {
        let context = table.device().cuda_context().context("the table is on a GPU")?;
        // Some of the calls below do not bind the context themselves.
        context.bind_to_thread()?;
        let function = table.compile("survey.cu", SURVEY)?.load_function("survey_states")?;
        let stream = context.new_stream()?;
        let plan = stream.clone_htod(&self.words)?;
        let mut figures = allocate::<u64>(&stream, self.figures as u64)?.ok_or(DriverError(CUDA_ERROR_OUT_OF_MEMORY))?;
        stream.memset_zeros(&mut figures)?;
        let multiprocessors = context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32;
        // An indexed table may have more rows than slots. The kernel skips references at which there is no state.
        let mut end = table.slots();
        while table.reference(end).is_some() {
            end *= 2;
        }
        let view = table.kernel_argument()?;
        let mut stopped = None;
        for first in (0..end).step_by(SLOTS as usize) {
            stopped = stop();
            if stopped.is_some() {
                break;
            }
            let last = end.min(first + SLOTS);
            let blocks = (last - first).div_ceil(THREADS.into()).min((multiprocessors * BLOCKS).into()) as u32;
            let config = LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (THREADS, 1, 1), shared_mem_bytes: 0 };
            let mut launch = stream.launch_builder(&function);
            launch.arg(&view).arg(&plan).arg(&first).arg(&last).arg(&mut figures);
            // SAFETY:
            // - the arguments match the parameters of `survey_states`;
            // - the plan is one that `new` has written for states of the table, and `figures` has the room that it needs;
            // - `last` exceeds the number of slots only for an indexed table, whose kernels check row numbers against its rows;
            // - the table does not grow meanwhile.
            unsafe { launch.launch(config) }?;
            stream.synchronize()?;
        }
        Ok((stream.clone_dtoh(&figures)?, stopped))
    }
}
