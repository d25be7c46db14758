//! Values and `retain`: find-or-put of keys beside the calls that also change a value of each key, and `retain` by a predicate on
//! the host and by marks on a GPU.
//!
//! Axes: fill {0.25, 0.5, 0.7, 0.9} x operation:
//!
//! - `find-or-put`: keys only, into an empty indexed table.
//! - `upsert`, `add`: `Values::upsert_many` (the largest of an operand for each key) and `Values::add_many` (1 for each key).
//! - `three calls`: find-or-put with references, and `Values::update_many` by them: what these replace.
//! - `retain`, `retain_marked`: half of the stored keys stay; of an indexed table and of a bucket table. Marks are written by a
//!   kernel, which counts.
//! - `dashmap`: `*map.entry(key).or_default() += 1` and `retain`, by one thread for each core. On a CPU only.
//!
//! Keys have 8 bytes, values 4. Each key is offered twice, in random order, from a host slice. The table has 2^26 slots on a GPU
//! and 2^22 on a CPU. Rates are keys offered (of `retain`: keys stored) in 10^6 a second: by the wall clock on a GPU, and by the
//! CPU time of all threads together on a CPU. Medians of rounds in turns, after one that is not counted; each is checked.
//!
//! `cargo bench --bench upserts` prints a Markdown table. WARPSET_BENCH_DEVICE=cpu does not use a GPU, WARPSET_BENCH_LOG2 sets
//! the power of two of the slots, WARPSET_BENCH_ROUNDS the rounds (3).

use cpu_time::ProcessTime;
use foldhash::fast::RandomState;
use rand::{SeedableRng, rngs::StdRng, seq::SliceRandom};
use std::thread;
use std::time::Instant;
use warpset::{Combine, Device, Indexed, Request, TypedTable, Values};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Distinct keys for distinct numbers: SplitMix64 is a bijection.
fn key(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Half of the keys stay.
fn stays(key: &u64) -> bool {
    key.is_multiple_of(2)
}

/// Seconds of some work: of the CPU if the device is one, of the clock else.
fn time(device: &Device, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let (start, of_cpu) = (Instant::now(), ProcessTime::now());
    work()?;
    Ok(if device.is_gpu() { start.elapsed() } else { of_cpu.elapsed() }.as_secs_f64())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The keys of a fill, and what is measured with them.
struct Fill<'a> {
    device: &'a Device,
    keys: &'a [u64],
    operands: &'a [u32],
    distinct: u64,
    /// Keys that do not stay.
    gone: u64,
    table: TypedTable<u64, Indexed>,
    /// Tables that retain some keys. A kernel that has their view may be at work at any time, so calls leave holes there.
    rows: TypedTable<u64, Indexed>,
    bucket: TypedTable<u64>,
}

impl Fill<'_> {
    /// Puts all keys into the indexed table, which is empty, and changes a value of each. Returns the sum of all values.
    fn put(&self, change: impl FnOnce(&mut Values<u64, u32>) -> Result<()>) -> Result<(f64, u64)> {
        self.table.clear()?;
        let mut values = self.table.values(0u32)?;
        // Memory for all values, which the first call takes.
        values.add_many(&self.keys[..1], &[0])?.complete(&self.table)?;
        self.table.clear()?;
        let seconds = time(self.device, || change(&mut values))?;
        assert_eq!(self.table.len()?, self.distinct, "every key is stored once");
        let sum = values.view()?.iter().map(|value| u64::from(*value)).sum();
        Ok((seconds, sum))
    }

    fn find_or_put(&self) -> Result<f64> {
        let (seconds, sum) = self.put(|_| {
            self.table.find_or_put_many_with(self.keys, Request::new())?.complete(&self.table)?;
            Ok(())
        })?;
        assert_eq!(sum, 0);
        Ok(seconds)
    }

    fn upsert(&self) -> Result<f64> {
        let (seconds, sum) = self.put(|values| {
            values.upsert_many(self.keys, self.operands, Combine::Max)?.complete(&self.table)?;
            Ok(())
        })?;
        assert!(sum > 0);
        Ok(seconds)
    }

    fn add(&self) -> Result<f64> {
        let (seconds, sum) = self.put(|values| {
            values.add_many(self.keys, &[1])?.complete(&self.table)?;
            Ok(())
        })?;
        assert_eq!(sum, self.keys.len() as u64, "each key counts once");
        Ok(seconds)
    }

    fn three_calls(&self) -> Result<f64> {
        let (seconds, sum) = self.put(|values| {
            let batch = self.table.find_or_put_many_with(self.keys, Request::new().references(true))?;
            batch.complete(&self.table)?;
            let references: Vec<_> = batch.references.into_iter().flatten().collect();
            Ok(values.update_many(&references, |_, count| *count += 1)?)
        })?;
        assert_eq!(sum, self.keys.len() as u64, "each key counts once");
        Ok(seconds)
    }

    /// Seconds of retaining half of the keys of each table.
    fn retain(&self, marked: bool) -> Result<[f64; 2]> {
        self.rows.clear()?;
        self.bucket.clear()?;
        self.rows.find_or_put_many(self.keys)?.complete(&self.rows)?;
        self.bucket.find_or_put_many(self.keys)?.complete(&self.bucket)?;
        let mut gone = [0; 2];
        let times = if marked {
            #[cfg(feature = "cuda")]
            {
                // There are at most 2^18 more rows than slots.
                let of_rows = marks::retain(&self.rows, self.rows.slots() + (1 << 18), &mut gone[0])?;
                [of_rows, marks::retain(&self.bucket, self.bucket.slots(), &mut gone[1])?]
            }
            #[cfg(not(feature = "cuda"))]
            unreachable!("there is no GPU")
        } else {
            let of_rows = time(self.device, || {
                gone[0] = self.rows.retain(stays)?;
                Ok(())
            })?;
            let of_bucket = time(self.device, || {
                gone[1] = self.bucket.retain(stays)?;
                Ok(())
            })?;
            [of_rows, of_bucket]
        };
        assert_eq!(gone, [self.gone; 2]);
        Ok(times)
    }

    /// Seconds in which `dashmap` counts the keys, and retains half of them.
    fn dashmap(&self) -> Result<[f64; 2]> {
        let map = dashmap::DashMap::with_capacity_and_hasher(self.distinct as usize, RandomState::default());
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let count = time(self.device, || {
            thread::scope(|scope| {
                for part in self.keys.chunks(self.keys.len().div_ceil(cores)) {
                    let map = &map;
                    scope.spawn(move || part.iter().for_each(|key| *map.entry(*key).or_insert(0u32) += 1));
                }
            });
            Ok(())
        })?;
        assert_eq!(map.len() as u64, self.distinct);
        let retain = time(self.device, || {
            map.retain(|key, _| stays(key));
            Ok(())
        })?;
        assert_eq!(map.len() as u64, self.distinct - self.gone);
        Ok([count, retain])
    }
}

/// Marks of a kernel.
#[cfg(feature = "cuda")]
mod marks {
    use super::Result;
    use std::time::Instant;
    use warpset::gpu::cudarc_0_19::cudarc::driver::{LaunchConfig, PushKernelArg};
    use warpset::gpu::cudarc_0_19::{DeviceExt, ModuleExt};
    use warpset::{Storage, TypedTable};

    const SOURCE: &str = r#"
        #include "warpset/table.cuh"
        extern "C" __global__ void mark(warpset::View view, unsigned long long slots, unsigned char* marks)
        {
            const auto table = warpset::table(view);
            const unsigned long long threads = gridDim.x * static_cast<unsigned long long>(blockDim.x);
            for (unsigned long long slot = blockIdx.x * static_cast<unsigned long long>(blockDim.x) + threadIdx.x; slot < slots;
                 slot += threads)
                table.read_words(slot, 0, WARPSET_WIDTH, [&](unsigned, unsigned word) { marks[slot] = word % 2 == 0; });
        }"#;

    /// Seconds in which a kernel marks half of the keys, and the table retains them. `slots`: slots, or rows.
    pub fn retain<S: Storage>(table: &TypedTable<u64, S>, slots: u64, gone: &mut u64) -> Result<f64> {
        let stream = table.device().cuda_context().ok_or("not a GPU")?.new_stream()?;
        let mark = table.compile("mark.cu", SOURCE)?.load_function("mark")?;
        let view = table.kernel_argument()?;
        stream.synchronize()?;
        let start = Instant::now();
        let mut marks = stream.alloc_zeros::<u8>(slots as usize)?;
        let mut launch = stream.launch_builder(&mark);
        launch.arg(&view).arg(&slots).arg(&mut marks);
        // SAFETY: the arguments of `mark`; there is a byte for each slot; nothing changes the table meanwhile.
        unsafe { launch.launch(LaunchConfig { grid_dim: (1056, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 })? };
        *gone = table.retain_marked(&marks)?;
        Ok(start.elapsed().as_secs_f64())
    }
}

fn number(variable: &str, default: u64) -> Result<u64> {
    Ok(std::env::var(variable).map_or(Ok(default), |text| text.parse())?)
}

fn main() -> Result<()> {
    // `cargo test --benches` asks for a short run.
    let is_test = std::env::args().any(|argument| argument == "--test");
    let device =
        if std::env::var("WARPSET_BENCH_DEVICE").is_ok_and(|name| name == "cpu") { Device::cpu() } else { Device::best()? };
    let is_gpu = device.is_gpu();
    let log2 = number(
        "WARPSET_BENCH_LOG2",
        if is_test {
            12
        } else if is_gpu {
            26
        } else {
            22
        },
    )?;
    let rounds = number("WARPSET_BENCH_ROUNDS", if is_test { 1 } else { 3 })?.max(1);
    let of = if is_gpu { "second" } else { "second of CPU time" };
    println!("{device}, 2^{log2} slots, keys of 8 bytes, each offered twice; 10^6 keys a {of}, medians of {rounds}\n");
    let (last, line) =
        if is_gpu { ("retain_marked, indexed | bucket", "---|---") } else { ("dashmap, add | dashmap, retain", "---|---") };
    println!("| fill | find-or-put | upsert | add | three calls | retain, indexed | bucket | {last} |");
    println!("|---|---|---|---|---|---|---|{line}|");
    for fill in [0.25, 0.5, 0.7, 0.9] {
        let table = TypedTable::<u64, Indexed>::builder().capacity(1 << log2).build(&device)?;
        let distinct = (table.slots() as f64 * fill) as u64;
        let mut keys: Vec<u64> = (0..2 * distinct).map(|number| key(1 + number / 2)).collect();
        keys.shuffle(&mut StdRng::seed_from_u64(distinct));
        let operands: Vec<u32> = (0..keys.len() as u32).collect();
        let gone = (0..distinct).filter(|number| !stays(&key(1 + number))).count() as u64;
        let rows = TypedTable::<u64, Indexed>::builder().capacity(1 << log2).build(&device)?;
        let bucket = TypedTable::<u64>::builder().capacity(table.slots()).build(&device)?;
        let of_fill = Fill { device: &device, keys: &keys, operands: &operands, distinct, gone, table, rows, bucket };
        let mut times = [const { Vec::new() }; 8];
        for round in 0..=rounds {
            let [rows, slots] = of_fill.retain(false)?;
            let last = if is_gpu { of_fill.retain(true)? } else { of_fill.dashmap()? };
            let put = [of_fill.find_or_put()?, of_fill.upsert()?, of_fill.add()?, of_fill.three_calls()?];
            let all = put.into_iter().chain([rows, slots]).chain(last);
            times.iter_mut().zip(all).filter(|_| round > 0).for_each(|(times, time)| times.push(time));
        }
        // Keys offered; of `retain`, keys stored.
        let stored = |column: usize| (4..6).contains(&column) || column == 7 || (column == 6 && is_gpu);
        let rate = |(column, times)| {
            let keys = if stored(column) { distinct } else { 2 * distinct };
            format!("{:.1}", keys as f64 / median(times) / 1e6)
        };
        let cells: Vec<String> = times.into_iter().enumerate().map(rate).collect();
        println!("| {fill} | {} |", cells.join(" | "));
    }
    Ok(())
}
