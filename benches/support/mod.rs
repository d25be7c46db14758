//! Parts shared by the GPU benchmarks and the example `replay`: vectors made on the GPU, times from device events, the
//! placement-only kernel, and limits of the memory.

#![allow(dead_code)] // each user uses a part

pub mod card;
pub mod limits;
pub mod thesis;
pub mod thesis_tree;

use std::sync::Arc;
use std::time::Instant;
use warpset::gpu::cudarc_0_19::cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg, sys::CUevent_flags,
};
use warpset::gpu::cudarc_0_19::{DeviceExt, ModuleExt};
use warpset::gpu::{Counts, DeviceBatch, PinnedVec, load};
use warpset::{BucketTable, Device, Storage, VectorTable};

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Kernels that make vectors, and mark slots of new ones.
const KERNELS: &str = concat!(include_str!("../kernels/mix.cuh"), include_str!("../kernels/data.cu"));

/// A GPU with a stream and the kernels that make vectors.
pub struct Bench {
    pub device: Device,
    pub context: Arc<CudaContext>,
    pub stream: Arc<CudaStream>,
}

/// Vectors in device memory, and memory for the results of find-or-put.
pub struct Vectors {
    pub width: usize,
    pub count: usize,
    pub words: CudaSlice<u32>,
    pub outcomes: CudaSlice<u8>,
}

/// Blocks of 256 threads that fill any GPU of today, for grid-stride loops.
pub const FILL: LaunchConfig = LaunchConfig { grid_dim: (132 * 8, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };

impl Bench {
    /// The best GPU, or `None` with the reason printed.
    pub fn open() -> Result<Option<Self>> {
        let device = match Device::gpus() {
            Ok(gpus) if !gpus.is_empty() => Device::best()?,
            Ok(_) => {
                println!("skipped: no CUDA device");
                return Ok(None);
            }
            Err(error) => {
                println!("skipped: no CUDA device ({error})");
                return Ok(None);
            }
        };
        Ok(Some(Self::on(&device)?))
    }

    /// A stream on a GPU.
    pub fn on(device: &Device) -> Result<Self> {
        let context = device.cuda_context().ok_or("not a GPU")?.clone();
        let stream = context.new_stream()?;
        Ok(Self { device: device.clone(), context, stream })
    }

    /// `count` vectors of arbitrary words, drawn from a pool of `count / duplication`.
    pub fn vectors(&self, width: usize, count: usize, duplication: f64) -> Result<Vectors> {
        self.vectors_of(width, count, duplication, 0)
    }

    /// Vectors whose words have `values` values each.
    pub fn vectors_of(&self, width: usize, count: usize, duplication: f64, values: u32) -> Result<Vectors> {
        let kernels = load(&self.device, &BucketTable::builder(width), "data.cu", KERNELS)?;
        // SAFETY: written by the kernel below before it is read.
        let mut words = unsafe { self.stream.alloc::<u32>(width * count)? };
        let (width_argument, count_argument, pool, seed) =
            (width as u32, count as u64, (count as f64 / duplication) as u64, 1u64);
        let make = kernels.load_function("make_vectors")?;
        let mut launch = self.stream.launch_builder(&make);
        launch.arg(&mut words).arg(&count_argument).arg(&width_argument).arg(&pool).arg(&values).arg(&seed);
        // SAFETY: the arguments of `make_vectors`; there is room for `count` vectors.
        unsafe { launch.launch(FILL)? };
        let outcomes = self.stream.alloc_zeros(count)?;
        Ok(Vectors { width, count, words, outcomes })
    }

    /// Vectors from host memory.
    pub fn upload(&self, width: usize, words: &[u32]) -> Result<Vectors> {
        let count = words.len() / width;
        Ok(Vectors { width, count, words: self.stream.clone_htod(words)?, outcomes: self.stream.alloc_zeros(count)? })
    }

    /// Milliseconds of the work that `work` enqueues, by device events.
    pub fn time(&self, work: impl FnOnce() -> Result<()>) -> Result<f64> {
        let timing = Some(CUevent_flags::CU_EVENT_DEFAULT);
        let start = self.stream.record_event(timing)?;
        work()?;
        let end = self.stream.record_event(timing)?;
        end.synchronize()?;
        Ok(f64::from(start.elapsed_ms(&end)?))
    }

    /// One find-or-put of all vectors; its time in milliseconds, and its counts.
    pub fn find_or_put<S: Storage>(&self, table: &VectorTable<S>, vectors: &mut Vectors) -> Result<(f64, Counts)> {
        self.search(vectors, |stream, batch| table.find_or_put_device(stream, batch))
    }

    /// One lookup of all vectors.
    pub fn find<S: Storage>(&self, table: &VectorTable<S>, vectors: &mut Vectors) -> Result<(f64, Counts)> {
        self.search(vectors, |stream, batch| table.find_device(stream, batch))
    }

    fn search(
        &self,
        vectors: &mut Vectors,
        search: impl for<'a> FnOnce(&'a CudaStream, DeviceBatch<'a>) -> warpset::Result<()>,
    ) -> Result<(f64, Counts)> {
        let mut counts = self.stream.alloc_zeros::<Counts>(1)?;
        let Vectors { words, outcomes, count, .. } = vectors;
        let milliseconds = self.time(|| {
            let batch = DeviceBatch::new(words, *count).outcomes(outcomes).counts(&mut counts);
            Ok(search(&self.stream, batch)?)
        })?;
        Ok((milliseconds, self.stream.clone_dtoh(&counts)?[0]))
    }

    /// Throughput of the link, in GB/s to the GPU and back: medians of `repeats` copies of pinned memory, by the wall clock,
    /// after one of each that is not counted.
    pub fn link(&self, bytes: usize, repeats: usize) -> Result<[f64; 2]> {
        let mut host = PinnedVec::<u8>::zeroed(&self.device, bytes)?;
        let mut device = self.stream.alloc_zeros::<u8>(bytes)?;
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..=repeats {
            for (direction, times) in times.iter_mut().enumerate() {
                self.stream.synchronize()?;
                let start = Instant::now();
                match direction {
                    0 => self.stream.memcpy_htod(&*host, &mut device)?,
                    _ => self.stream.memcpy_dtoh(&device, &mut *host)?,
                }
                self.stream.synchronize()?;
                times.push(start.elapsed().as_secs_f64());
            }
        }
        Ok(times.map(|mut times| bytes as f64 / 1e9 / median(times.split_off(1))))
    }

    /// Location of each vector in `table`, which holds them all.
    pub fn references<S: Storage>(&self, table: &VectorTable<S>, vectors: &Vectors) -> Result<CudaSlice<u64>> {
        let mut references = self.stream.alloc_zeros::<u64>(vectors.count)?;
        let batch = DeviceBatch::new(&vectors.words, vectors.count).references(&mut references);
        table.find_device(&self.stream, batch)?;
        Ok(references)
    }
}

/// How much random vectors share when they are stored as trees.
#[derive(Clone, Copy)]
pub enum Compression {
    /// Pairs of words repeat all the time: the nodes fit the GPU's cache.
    NearMinimum,
    /// A ratio of 0.73, at duplication 2: most nodes are new.
    Ratio073,
}

impl Compression {
    /// Number of values that the words of 2^log2 vectors have.
    pub fn values(self, width: usize, log2: u32) -> Result<u32> {
        // For 2^27 vectors. Most of the distinct nodes are pairs of 2 words at 4 words, of 4 at others: the squares of these
        // numbers, or the fourth powers, are in proportion to the vectors.
        let (near_minimum, of_pairs, power) = match width {
            4 => (256, 5202.0, 2.0),
            8 => (16, 193.0, 4.0),
            16 => (4, 134.0, 4.0),
            32 => (2, 141.0, 4.0),
            _ => return Err(format!("widths are 4, 8, 16 and 32, not {width}").into()),
        };
        Ok(match self {
            Self::NearMinimum => near_minimum,
            Self::Ratio073 => (of_pairs * 2f64.powf((f64::from(log2) - 27.0) / power)).round() as u32,
        })
    }
}

/// Median milliseconds for the vectors in an empty table, and again when all are seen; checks that `distinct` are new.
pub fn measure_table<S: Storage>(
    bench: &Bench,
    table: &VectorTable<S>,
    vectors: &mut Vectors,
    distinct: u64,
    repeats: usize,
) -> Result<[f64; 2]> {
    let (mut fresh, mut seen) = (Vec::new(), Vec::new());
    for _ in 0..repeats {
        table.clear()?;
        let (time, counts) = bench.find_or_put(table, vectors)?;
        assert_eq!((counts.hits, counts.full), (distinct, 0), "every distinct vector is new once");
        fresh.push(time);
    }
    for _ in 0..repeats {
        let (time, counts) = bench.find_or_put(table, vectors)?;
        assert_eq!(counts.hits, 0, "every vector is seen the second time");
        seen.push(time);
    }
    Ok([median(fresh), median(seen)])
}

/// The placement-only kernel, for one batch (kernels/placement.cu).
pub struct PlacementOnly<'a> {
    bench: &'a Bench,
    placement: CudaFunction,
    mark: CudaFunction,
    slots: CudaSlice<u32>,
    references: CudaSlice<u64>,
}

impl<'a> PlacementOnly<'a> {
    /// For vectors that `table` has just been given, with their outcomes in `vectors`. Each vector must be stored whole in
    /// one slot.
    pub fn new<S: Storage>(bench: &'a Bench, table: &VectorTable<S>, vectors: &Vectors) -> Result<Self> {
        let module = table.compile("placement.cu", include_str!("../kernels/placement.cu"))?;
        let data = table.compile("data.cu", KERNELS)?;
        let mut placement = Self {
            bench,
            placement: module.load_function("placement_only")?,
            mark: data.load_function("mark_new")?,
            slots: bench.stream.alloc_zeros(table.slots() as usize * vectors.width)?,
            references: bench.references(table, vectors)?,
        };
        placement.mark(vectors, true)?;
        Ok(placement)
    }

    fn mark(&mut self, vectors: &Vectors, keep_new: bool) -> Result<()> {
        let (count, keep_new) = (vectors.count as u64, u32::from(keep_new));
        let mut launch = self.bench.stream.launch_builder(&self.mark);
        launch.arg(&mut self.references).arg(&vectors.outcomes).arg(&count).arg(&keep_new);
        // SAFETY: the arguments of `mark_new`; both arrays have `count` elements.
        unsafe { launch.launch(FILL)? };
        Ok(())
    }

    fn run(&mut self, vectors: &Vectors, outcomes: &mut CudaSlice<u8>) -> std::result::Result<(), DriverError> {
        let count = vectors.count as u64;
        let mut launch = self.bench.stream.launch_builder(&self.placement);
        launch.arg(&mut self.slots).arg(&self.references).arg(&vectors.words).arg(&count).arg(outcomes);
        // SAFETY: the arguments of `placement_only`; every place is a slot of `slots`.
        unsafe { launch.launch(FILL) }.map(drop)
    }

    /// Median milliseconds for the batch as it was given: some vectors new.
    pub fn fresh(&mut self, vectors: &Vectors, repeats: usize) -> Result<f64> {
        let mut outcomes = self.bench.stream.alloc_zeros::<u8>(vectors.count)?;
        let mut times = Vec::new();
        for _ in 0..repeats {
            self.bench.stream.memset_zeros(&mut self.slots)?;
            times.push(self.bench.time(|| Ok(self.run(vectors, &mut outcomes)?))?);
        }
        Ok(median(times))
    }

    /// Median milliseconds for the same vectors, all seen; after `fresh`.
    pub fn seen(&mut self, vectors: &Vectors, repeats: usize) -> Result<f64> {
        self.mark(vectors, false)?;
        let mut outcomes = self.bench.stream.alloc_zeros::<u8>(vectors.count)?;
        let mut times = Vec::new();
        for _ in 0..repeats {
            times.push(self.bench.time(|| Ok(self.run(vectors, &mut outcomes)?))?);
        }
        Ok(median(times))
    }
}

/// The middle one of an odd number of times.
pub fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
