//! Random walks on a GPU: when one takes them, and its part of the report.

use super::Taken;
use crate::options::{EngineKind, TableOptions};
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};
use warpset::Device;
use warpset_search::gpu::GpuWalks;
use warpset_search::simulation::Walks;
use warpset_search::successors::Interpreted;
use warpset_support::device::DeviceChoice;
use warpset_support::stopping;

/// Fewest walks for which a GPU is used without being asked for: as many as make its threads worth a second of compilation.
const MANY: u64 = 1 << 14;

/// The GPU that takes the walks; `None` for threads of the CPU. `is_long`: compiling is worth its time.
///
/// # Errors
///
/// Several GPUs are named, a GPU is named and another engine, or a GPU that is asked for cannot be used.
pub fn device(table: &TableOptions, walks: Walks, is_long: bool) -> Result<Option<Device>> {
    let several = matches!(table.device, DeviceChoice::Gpus { .. } | DeviceChoice::AllGpus);
    ensure!(!several, "--simulate runs on one GPU: choose --device gpu or gpu:NUMBER");
    let is_named = !table.device.named_gpus().is_empty();
    match table.engine {
        EngineKind::Interpreted | EngineKind::Compiled => {
            ensure!(
                !is_named,
                "with this --engine, --simulate runs on CPU threads: choose --device cpu:THREADS, or --engine gpu"
            );
            Ok(None)
        }
        EngineKind::Gpu => {
            let device = table.device.open()?;
            ensure!(device.is_gpu(), "--engine gpu needs a GPU, but --device chose {device}");
            Ok(Some(device))
        }
        EngineKind::Auto if is_named => table.device.open().map(Some),
        EngineKind::Auto if matches!(table.device, DeviceChoice::Best) && is_long && walks.walks >= MANY => {
            Ok(Some(table.device.open()?).filter(Device::is_gpu))
        }
        EngineKind::Auto => Ok(None),
    }
}

/// Takes the walks.
///
/// # Errors
///
/// The kernel does not compile, there is no memory for the walks, or the driver fails.
pub fn take(device: &Device, interpreted: &Interpreted, walks: Walks) -> Result<Taken> {
    let start = Instant::now();
    let kernel = GpuWalks::new(device, interpreted)?;
    let compile = start.elapsed();
    let start = Instant::now();
    let (simulation, threads) = kernel.simulate(walks, interpreted.checks.deadlocks, stopping::asked)?;
    let time: Duration = start.elapsed();
    Ok(Taken { simulation, device: device.to_string(), threads, engine: "gpu".into(), compile, time })
}
