//! Ranks that are threads of this process: their devices, and their joint results.

use anyhow::{Result, ensure};
use std::fmt;
use warpset::{Device, Error};

/// Error of a rank that was notified of another rank's error.
#[derive(Debug)]
pub struct OfAnother;

impl fmt::Display for OfAnother {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another rank has failed and reports the reason")
    }
}

impl std::error::Error for OfAnother {}

/// Devices of `ranks` ranks: the same number of ranks on each device, in order. On a CPU each rank has its share of the threads;
/// the ranks of a GPU share it.
pub fn devices_of(devices: &[Device], ranks: usize) -> Result<Vec<Device>> {
    let count = devices.len();
    ensure!(
        count > 0 && ranks > 0 && ranks.is_multiple_of(count),
        "--local-ranks {ranks} must be a multiple of the number of devices, {count}, so that each device gets equally many ranks"
    );
    Ok((0..ranks).map(|rank| share_of(&devices[rank / (ranks / count)], ranks)).collect())
}

fn share_of(device: &Device, ranks: usize) -> Device {
    #[cfg(feature = "cpu")]
    if !device.is_gpu() {
        return Device::cpu_with_threads((device.threads() / ranks).max(1));
    }
    let _ = ranks;
    device.clone()
}

/// Calls `each` for all items, each on a thread of its own.
pub fn on_all<I: Send, T: Send>(items: impl IntoIterator<Item = I>, each: impl Fn(I) -> T + Sync) -> Vec<T> {
    let each = &each;
    std::thread::scope(|scope| {
        let threads: Vec<_> = items.into_iter().map(|item| scope.spawn(move || each(item))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// Returns all results, or an error: that of a rank that failed by itself rather than that of a rank that was notified.
pub fn first_error<T>(results: Vec<Result<T>>) -> Result<Vec<T>> {
    let is_told = |error: &anyhow::Error| {
        let told = error.downcast_ref().is_some_and(|error| matches!(error, Error::Rank { .. } | Error::Connection { .. }));
        told || error.is::<OfAnother>()
    };
    let (mut all, mut own, mut told) = (Vec::new(), None, None);
    for result in results {
        match result {
            Ok(result) => all.push(result),
            Err(error) if is_told(&error) => told = told.or(Some(error)),
            Err(error) => own = own.or(Some(error)),
        }
    }
    own.or(told).map_or(Ok(all), Err)
}
