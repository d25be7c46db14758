//! Execution of kernels on the CPU: loaded programs, and launches of their functions.
//!
//! A program is what `nvrtcGetCUBIN` or `nvrtcGetPTX` returns: a header, and a shared object of this machine. Blocks of a grid
//! run in parallel, each on one thread of the operating system; the threads of a block are fibres (`block.rs`).

mod block;
mod grid;
mod module;
mod pool;
mod switch;
#[cfg(test)]
mod tests;

pub use grid::{Whereabouts, on_worker, run, whereabouts};
pub use module::{Function, IMAGE_MAGIC, LoadError, Module, image_bytes, image_of};
pub(crate) use switch::STACK_BYTES;

use std::fmt;

/// Kind of a failed launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// A launch with sizes outside of the limits (`CUDA_ERROR_INVALID_VALUE`).
    InvalidValue,
    /// A block of more threads than the launch bounds allow, or too much shared memory (`CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES`).
    OutOfResources,
    /// `__trap` (`CUDA_ERROR_LAUNCH_FAILED`).
    Trap,
    /// A false `assert` (`CUDA_ERROR_ASSERT`).
    Assertion,
    /// An access that is not aligned to its size (`CUDA_ERROR_MISALIGNED_ADDRESS`).
    Misaligned,
    /// A collective whose lanes do not match, so that a GPU's result is undefined.
    Collective,
    /// Threads that wait for others that never arrive, so that a GPU hangs.
    Stuck,
    /// A write behind the dynamic shared memory.
    SharedMemory,
}

/// Reason of a failed launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub status: Status,
    /// Text with the kernel, the block, the thread and the reason.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

/// Reason of a failed block.
pub(crate) struct Failure {
    status: Status,
    text: String,
    thread: Option<[u32; 3]>,
}

/// A launch of a function.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared_bytes: u32,
    /// Whether blocks may wait for each other: all of them are then resident.
    pub cooperative: bool,
    /// Packed as the function's `parameter_offsets` say.
    pub arguments: &'a [u8],
    /// 0: lanes and blocks take turns in order. Otherwise the order is random.
    pub seed: u64,
    pub device: i32,
    pub multiprocessors: u32,
}
