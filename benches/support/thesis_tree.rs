//! The thesis' tree-compressed tables (kernels/thesis_tree.cu): nodes and roots in one table.

use super::{Bench, Result, Vectors, median};
use rand::{Rng, SeedableRng, rngs::StdRng};
use warpset::TreeTable;
use warpset::gpu::cudarc_0_19::ModuleExt;
use warpset::gpu::cudarc_0_19::cudarc::driver::{CudaFunction, CudaSlice, LaunchConfig, PushKernelArg};

/// Hash functions that a node is tried with before its vector is rejected.
const FUNCTIONS: usize = 512;

/// Blocks of 256 threads per multiprocessor: the thesis finds that few are best; the best of these is reported.
const BLOCKS: [u32; 3] = [2, 4, 8];

/// A table of one of the two kinds.
pub struct ThesisTree<'a> {
    bench: &'a Bench,
    put: CudaFunction,
    entries: CudaSlice<u64>,
    segments: u64,
    seeds: CudaSlice<u64>,
}

impl<'a> ThesisTree<'a> {
    /// Table with at least `slots` entries of 8 bytes, for nodes and roots.
    pub fn new(bench: &'a Bench, width: usize, slots: u64, recursive: bool) -> Result<Self> {
        let source = format!(
            "#define THESIS_WIDTH {width}\n#define THESIS_RECURSIVE {}\n#define THESIS_FUNCTIONS {FUNCTIONS}\n{}",
            u8::from(recursive),
            include_str!("../kernels/thesis_tree.cu")
        );
        let module = warpset::gpu::load(&bench.device, &TreeTable::builder(width), "thesis_tree.cu", &source)?;
        let segments = slots.div_ceil(4);
        assert!(segments * 4 < 1 << 31, "references have 31 bits");
        let mut random = StdRng::seed_from_u64(1);
        let seeds: Vec<u64> = (0..FUNCTIONS * 4).map(|_| random.next_u64()).collect();
        Ok(Self {
            bench,
            put: module.load_function("thesis_tree_find_or_put")?,
            entries: bench.stream.alloc_zeros(segments as usize * 4)?,
            segments,
            seeds: bench.stream.clone_htod(&seeds)?,
        })
    }

    fn run(&mut self, vectors: &mut Vectors, blocks: u32) -> Result<f64> {
        let count = vectors.count as u64;
        let Self { bench, put, entries, segments, seeds } = self;
        let grid = LaunchConfig { grid_dim: (132 * blocks, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
        bench.time(|| {
            let mut launch = bench.stream.launch_builder(put);
            launch.arg(entries).arg(&*segments).arg(&*seeds).arg(&vectors.words).arg(&count).arg(&mut vectors.outcomes);
            // SAFETY: the arguments of `thesis_tree_find_or_put`; the table has `segments` segments of four entries.
            unsafe { launch.launch(grid)? };
            Ok(())
        })
    }

    /// Median milliseconds for the vectors in an empty table, and again when all are seen, each with the grid that is best in one
    /// run. Checks that `distinct` are new.
    pub fn measure(&mut self, vectors: &mut Vectors, distinct: u64, repeats: usize) -> Result<[f64; 2]> {
        let (mut fresh, mut seen) = (Vec::new(), Vec::new());
        for blocks in BLOCKS {
            fresh.push((self.fresh(vectors, blocks)?, blocks));
            seen.push((self.run(vectors, blocks)?, blocks));
        }
        let best = |times: &[(f64, u32)]| times.iter().min_by(|a, b| a.0.total_cmp(&b.0)).expect("there are grids").1;
        let (fresh_blocks, seen_blocks) = (best(&fresh), best(&seen));
        let fresh = (0..repeats).map(|_| self.fresh(vectors, fresh_blocks)).collect::<Result<Vec<f64>>>()?;
        let outcomes = self.bench.stream.clone_dtoh(&vectors.outcomes)?;
        let new = outcomes.iter().filter(|outcome| **outcome == 1).count() as u64;
        assert_eq!(new, distinct, "every distinct vector is new once");
        let seen = (0..repeats).map(|_| self.run(vectors, seen_blocks)).collect::<Result<Vec<f64>>>()?;
        Ok([median(fresh), median(seen)])
    }

    fn fresh(&mut self, vectors: &mut Vectors, blocks: u32) -> Result<f64> {
        self.bench.stream.memset_zeros(&mut self.entries)?;
        self.run(vectors, blocks)
    }
}
