//! A bound for find-or-put: the time of the memory accesses that it cannot avoid, at the rates that the GPU reaches without any
//! other work (kernels/limits.cu).

use super::{Bench, FILL, Result, Vectors, median};
use warpset::gpu::cudarc_0_19::ModuleExt;
use warpset::gpu::cudarc_0_19::cudarc::driver::{CudaSlice, PushKernelArg};
use warpset::{Storage, VectorTable};

/// Milliseconds that each kind of access takes at least.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Reading a random slot for each vector.
    reads: f64,
    /// Claiming all chunks of a slot for each New vector.
    claims: f64,
    /// A byte of memory, in either direction.
    byte: f64,
}

/// Least milliseconds of a batch, and the accesses that take them.
#[derive(Clone, Copy)]
pub struct Bound {
    pub milliseconds: f64,
    pub of: &'static str,
}

impl Limits {
    /// Measures the limits of a batch with `fresh` New vectors in an empty table with the slots of `table`: medians of `repeats`
    /// runs, in an array of the bytes of these slots.
    pub fn new<S: Storage>(bench: &Bench, table: &VectorTable<S>, vectors: &Vectors, fresh: u64, repeats: usize) -> Result<Self> {
        let source = concat!(include_str!("../kernels/mix.cuh"), include_str!("../kernels/limits.cu"));
        let module = table.compile("limits.cu", source)?;
        let (slots, slot_words) = (table.slots(), table.spec().slot_words());
        let mut array = bench.stream.alloc_zeros::<u32>(slots as usize * slot_words)?;
        let mut other = bench.stream.alloc_zeros::<u64>(1)?;
        let mut milliseconds = |name: &str, accesses: u64| -> Result<f64> {
            let kernel = module.load_function(name)?;
            let mut times = Vec::new();
            for _ in 0..repeats {
                bench.stream.memset_zeros(&mut array)?;
                times.push(bench.time(|| {
                    let mut launch = bench.stream.launch_builder(&kernel);
                    launch.arg(&mut array).arg(&slots).arg(&accesses).arg(&mut other);
                    // SAFETY: the arguments of `read_slots` and `claim_slots`. The array has `slots` slots, which is at least
                    // the number of claims: the table has stored as many vectors.
                    unsafe { launch.launch(FILL)? };
                    Ok(())
                })?);
            }
            assert_eq!(bench.stream.clone_dtoh(&other)?, [0], "{name}: all slots are zero, and every claim succeeds");
            Ok(median(times))
        };
        let reads = milliseconds("read_slots", vectors.count as u64)?;
        let claims = milliseconds("claim_slots", fresh)?;
        Ok(Self { reads, claims, byte: byte(bench, &vectors.words, repeats)? })
    }

    /// Bound of a batch with `fresh` New vectors: no accesses of one kind can be left out, but those of different kinds may
    /// overlap.
    pub fn bound(&self, vectors: &Vectors, slot_words: usize, fresh: u64) -> Bound {
        // A vector, its slot and its outcome each cross once; a New one is also written.
        let bytes = vectors.count * (4 * vectors.width + 4 * slot_words + 1) + fresh as usize * 4 * slot_words;
        let claims = if fresh == 0 { 0.0 } else { self.claims };
        let kinds = [(self.reads, "reads"), (claims, "claims"), (bytes as f64 * self.byte, "bytes")];
        let (milliseconds, of) = kinds.into_iter().max_by(|a, b| a.0.total_cmp(&b.0)).expect("three kinds");
        Bound { milliseconds, of }
    }
}

/// Milliseconds for a byte that is read or written in order: a copy inside the GPU's memory reads each byte and writes it.
fn byte(bench: &Bench, from: &CudaSlice<u32>, repeats: usize) -> Result<f64> {
    let mut to = bench.stream.alloc_zeros::<u32>(from.len())?;
    let mut times = Vec::new();
    for _ in 0..repeats {
        times.push(bench.time(|| Ok(bench.stream.memcpy_dtod(from, &mut to)?))?);
    }
    Ok(median(times) / (from.len() * 8) as f64)
}
