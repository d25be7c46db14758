//! The thesis' table (kernels/thesis.cu), in its variants.

use super::{Bench, FILL, Result, Vectors, median};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::fmt;
use warpset::BucketTable;
use warpset::gpu::cudarc_0_19::ModuleExt;
use warpset::gpu::cudarc_0_19::cudarc::driver::{CudaFunction, CudaSlice, PushKernelArg};

/// Hash functions that a vector is tried with before it is rejected. With n slots, one per bucket, filled to f, about n f^512 /
/// 512 vectors are rejected: none at 0.95 (with 256 functions, one in two tables of 2^26).
const FUNCTIONS: usize = 512;

/// A choice of the thesis' parameters.
#[derive(Clone, Copy)]
pub struct Variant {
    pub bucket_entries: usize,
    pub parallel_hash: bool,
    pub linear_probing: bool,
}

impl Variant {
    /// Variants that apply to a width: a bucket must hold a vector, and linear probing to 8 entries is for buckets of 4.
    pub fn all(width: usize) -> Vec<Self> {
        let buckets = [4, 8, 16, 32].into_iter().filter(|entries| *entries >= width);
        let variants = buckets.flat_map(|bucket_entries| {
            [(false, false), (true, false), (false, true), (true, true)].map(|(parallel_hash, linear_probing)| Self {
                bucket_entries,
                parallel_hash,
                linear_probing,
            })
        });
        variants.filter(|variant| !variant.linear_probing || variant.bucket_entries == 4).collect()
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hash = if self.parallel_hash { "parallel" } else { "sequential" };
        write!(f, "{}, {hash}{}", self.bucket_entries, if self.linear_probing { ", lp8" } else { "" })
    }
}

/// A table of one variant.
pub struct Thesis<'a> {
    bench: &'a Bench,
    put: CudaFunction,
    table: CudaSlice<u32>,
    buckets: u64,
    seeds: CudaSlice<u64>,
}

impl<'a> Thesis<'a> {
    /// Table with at least `slots` slots, not counting lost entries.
    pub fn new(bench: &'a Bench, width: usize, slots: u64, variant: Variant) -> Result<Self> {
        let Variant { bucket_entries, parallel_hash, linear_probing } = variant;
        let source = format!(
            "#define THESIS_WIDTH {width}\n#define THESIS_BUCKET {bucket_entries}\n#define THESIS_PARALLEL_HASH {}\n\
             #define THESIS_LINEAR_PROBING {}\n#define THESIS_FUNCTIONS {FUNCTIONS}\n{}",
            u8::from(parallel_hash),
            u8::from(linear_probing),
            include_str!("../kernels/thesis.cu")
        );
        let module = warpset::gpu::load(&bench.device, &BucketTable::builder(width), "thesis.cu", &source)?;
        let buckets = slots.div_ceil((bucket_entries / width) as u64).next_multiple_of(2);
        // THESIS_SEEDS numbers: rows of an even length.
        let seeds: Vec<u64> = {
            let mut random = StdRng::seed_from_u64(1);
            (0..FUNCTIONS * (width + 1).next_multiple_of(2)).map(|_| random.next_u64()).collect()
        };
        Ok(Self {
            bench,
            put: module.load_function("thesis_find_or_put")?,
            table: bench.stream.alloc_zeros(buckets as usize * bucket_entries)?,
            buckets,
            seeds: bench.stream.clone_htod(&seeds)?,
        })
    }

    fn run(&mut self, vectors: &mut Vectors) -> Result<f64> {
        let count = vectors.count as u64;
        let Self { bench, put, table, buckets, seeds } = self;
        bench.time(|| {
            let mut launch = bench.stream.launch_builder(put);
            launch.arg(table).arg(&*buckets).arg(&*seeds).arg(&vectors.words).arg(&count).arg(&mut vectors.outcomes);
            // SAFETY: the arguments of `thesis_find_or_put`; the table has `buckets` buckets of the variant's entries.
            unsafe { launch.launch(FILL)? };
            Ok(())
        })
    }

    /// Median milliseconds for the vectors in an empty table, and again when all are seen. Checks that `distinct` are new, except
    /// for those that no rehash found room for.
    pub fn measure(&mut self, vectors: &mut Vectors, distinct: u64, repeats: usize) -> Result<(f64, f64)> {
        let (mut fresh, mut seen) = (Vec::new(), Vec::new());
        for repeat in 0..repeats {
            self.bench.stream.memset_zeros(&mut self.table)?;
            fresh.push(self.run(vectors)?);
            if repeat == 0 {
                let outcomes = self.bench.stream.clone_dtoh(&vectors.outcomes)?;
                let count = |outcome| outcomes.iter().filter(|of| **of == outcome).count() as u64;
                let (new, rejected) = (count(1), count(3));
                assert!(new <= distinct && distinct <= new + rejected, "{new} new, {rejected} rejected of {distinct} distinct");
            }
            seen.push(self.run(vectors)?);
        }
        Ok((median(fresh), median(seen)))
    }
}
