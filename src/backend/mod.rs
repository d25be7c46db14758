//! Machines: the memory of tables, and the processors that run their kernels.
//!
//! The library reaches a machine only through the traits of `machine.rs` and the memory of `memory.rs`. The operations of a table
//! are built on them in `core`, once for all machines. Each machine has a folder here and one below `cuda/platform/`. Only this
//! file knows which machines the library was built with.

mod argument;
#[cfg(feature = "cpu")]
pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
mod machine;
mod memory;
#[cfg(feature = "cluster")]
mod rank;
#[cfg(any(feature = "cuda", all(feature = "cpu", target_os = "linux")))]
mod waves;

pub use argument::KernelArgument;
pub use machine::GpuInfo;
pub(crate) use machine::{HostBuffer, Machine, Store};
#[cfg(any(feature = "cuda", feature = "cluster"))]
pub(crate) use machine::{Launch, Waves};
pub(crate) use memory::{Displaced, Memory, Region, RowWords, RowsMemory, TableMemory};
#[cfg(all(feature = "cluster", feature = "cuda"))]
pub use rank::GpuStream;
#[cfg(feature = "cluster")]
pub use rank::MemorySpace;
#[cfg(feature = "cluster")]
pub(crate) use rank::Rank;

use crate::Result;
use std::sync::Arc;

/// Returns the GPU with the most memory if the driver and NVRTC are present, else the CPU.
///
/// # Errors
///
/// Only if there is no GPU and the feature `cpu` is off: the reason why no GPU can be used.
pub(crate) fn best() -> Result<Arc<dyn Machine>> {
    #[cfg(feature = "cuda")]
    let gpu = cuda::CudaMachine::largest();
    #[cfg(all(feature = "cuda", feature = "cpu"))]
    return Ok(gpu.unwrap_or_else(|_| cpu::CpuMachine::whole()));
    #[cfg(all(feature = "cuda", not(feature = "cpu")))]
    return gpu;
    #[cfg(not(feature = "cuda"))]
    Ok(cpu::CpuMachine::whole())
}

/// Returns the machine of the given kind, `cpu` or `gpu`. `number` is the number of threads of a CPU, or the number of the GPU to
/// use. Returns `None` if the library has no machine of that kind.
pub(crate) fn named(kind: &str, number: Option<u64>) -> Option<Result<Arc<dyn Machine>>> {
    match kind {
        #[cfg(feature = "cpu")]
        "cpu" => Some(cpu::CpuMachine::named(number)),
        #[cfg(feature = "cuda")]
        "gpu" => Some(cuda::CudaMachine::open(number.unwrap_or(0) as usize)),
        _ => None,
    }
}
