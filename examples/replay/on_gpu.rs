//! Repeats the first pass and times the GPU alone: vectors are in device memory, and times are from device events.
//!
//! The end-to-end time of a batch from host memory is mostly that of transfers over the bus. The time measured here is the
//! table's own.

use super::table::{ReplayKind, make_another};
use super::vectors::Vectors;
use anyhow::{Result, anyhow};
use warpset::gpu::cudarc_0_19::DeviceExt;
use warpset::{Error, VectorTable};

#[path = "../../benches/support/mod.rs"]
mod support;

use support::{Bench, PlacementOnly, median};

/// Number of passes. Their median is reported.
const PASSES: usize = 3;

/// Bytes that are copied to measure the link.
const LINK_BYTES: usize = 1 << 28;

/// Rates in 10^9 vectors a second.
pub struct OnGpu {
    pub gops: f64,
    /// Rate of the placement-only pass, for tables that store each vector in one slot.
    pub placement_gops: Option<f64>,
    /// End-to-end rate that the link allows: the slower of sending the vectors and returning their results.
    pub link_gops: f64,
}

/// Measures with a second table of the size of `table`. `reported`: bytes that come back for each vector. Returns `None` if there
/// are no vectors, if the table is too small for them, or if the GPU's memory is too small for a second table, the slots of the
/// placement-only pass and all vectors.
pub fn measure<S: ReplayKind>(table: &VectorTable<S>, vectors: &Vectors, reported: usize) -> Result<Option<OnGpu>> {
    let count = vectors.count() as u64;
    let bytes = LINK_BYTES as u64 + 2 * table.bytes() + count * (vectors.width as u64 * 4 + 32);
    let free = table.device().cuda_context().map_or(Ok((0, 0)), |context| context.mem_get_info())?.0;
    if count == 0 || bytes > free as u64 {
        return Ok(None);
    }
    let measured = run(table, vectors, reported);
    match measured {
        Err(error) if matches!(error.downcast_ref(), Some(Error::OutOfMemory { .. })) => Ok(None),
        other => other.map_err(|error| anyhow!("{error}")),
    }
}

fn run<S: ReplayKind>(table: &VectorTable<S>, vectors: &Vectors, reported: usize) -> support::Result<Option<OnGpu>> {
    let bench = Bench::on(table.device())?;
    let again = make_another(table)?;
    let mut uploaded = bench.upload(vectors.width, &vectors.words)?;
    let mut times = Vec::new();
    for _ in 0..PASSES {
        again.clear()?;
        let (milliseconds, counts) = bench.find_or_put(&again, &mut uploaded)?;
        if counts.full > 0 {
            return Ok(None);
        }
        times.push(milliseconds);
    }
    let gops = |milliseconds: f64| vectors.count() as f64 / milliseconds / 1e6;
    let placement = || PlacementOnly::new(&bench, &again, &uploaded)?.fresh(&uploaded, PASSES);
    let placement = if table.spec().is_tree() || table.spec().is_indexed() { None } else { Some(placement()?) };
    let [to, back] = bench.link(LINK_BYTES, PASSES)?;
    let link_gops = (to / (vectors.width * 4) as f64).min(back / reported as f64);
    Ok(Some(OnGpu { gops: gops(median(times)), placement_gops: placement.map(gops), link_gops }))
}
