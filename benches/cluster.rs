//! One set over several GPUs: the speed-up of n ranks over one, and the time of the transport alone.
//!
//! Axes: ranks {1, 2, 4, ... up to the number of GPUs} x words per vector {2, 8} x scaling {weak: 2^27 vectors on each rank;
//! strong: 2^27 vectors in all}. Vectors are random. Each is offered twice on average over all ranks, from the memory of each
//! rank's GPU, into empty bucket tables that are filled to 0.7. Each figure is the median of 5 batches by the wall clock, all
//! ranks together, without the first one. Beside it: the shortest and the longest time that a rank has waited for others, how
//! evenly the tables are filled, and the time that the transport alone takes for an exchange of the same number of bytes.
//!
//! If there is no GPU, ranks are parts of the CPU, with 2^20 vectors in host memory each. That shows that the benchmark runs, and
//! the cost of a round, but says nothing about GPUs.
//!
//! `cargo bench --bench cluster` prints a Markdown table, in 10^9 vectors a second. WARPSET_BENCH_LOG2 sets the power of two,
//! WARPSET_BENCH_WIDTHS=2,8 measures only these, WARPSET_BENCH_RANKS=1,2 only these; WARPSET_BENCH_TRANSPORT=nccl connects the
//! ranks by NCCL instead of by copies (with the feature `nccl`; set NCCL_NVLS_ENABLE=0). Ranks request tallies only; with
//! WARPSET_BENCH_OUTCOMES=1 also the outcome of each vector, which its owner then sends back.

use std::time::Instant;
use warpset::cluster::{Builder, DeviceBatch, Local, MemorySpace, Region, Table, Transport};
use warpset::gpu::cudarc_0_19::DeviceExt;
use warpset::gpu::cudarc_0_19::cudarc::driver::{CudaContext, CudaSlice, CudaStream, result};
use warpset::{Bucket, BucketTable, Device, Words};
use warpset_random::mix;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const REPEATS: usize = 5;
const FILL: f64 = 0.7;
const DUPLICATION: u64 = 2;

/// A rank's vectors, drawn from the pool of all ranks.
fn draw(rank: usize, count: usize, width: usize, pool: u64) -> Vec<u32> {
    let mut words = vec![0; count * width];
    for (at, vector) in words.chunks_exact_mut(width).enumerate() {
        let id = mix((rank * count + at) as u64) % pool;
        for (word, place) in vector.iter_mut().zip(0..) {
            *word = mix(id << 8 | place) as u32;
        }
    }
    words
}

fn variable<T: std::str::FromStr>(name: &str) -> Option<Vec<T>> {
    let text = std::env::var(format!("WARPSET_BENCH_{name}")).ok()?;
    Some(text.split(',').filter_map(|item| item.trim().parse().ok()).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Parameters of one measurement.
#[derive(Clone, Copy)]
struct Case {
    ranks: usize,
    width: usize,
    /// Vectors per rank.
    count: usize,
}

/// Results of a rank.
struct Measured {
    /// Seconds per batch, and the part of them spent waiting.
    put: f64,
    waiting: f64,
    balance: f64,
    /// Seconds of the exchanges alone.
    transport: f64,
}

/// Location of a rank's vectors.
enum Input {
    Host(Vec<u32>),
    /// The vectors, and memory for their outcomes, if these are requested.
    Gpu(std::sync::Arc<CudaStream>, CudaSlice<u32>, Option<CudaSlice<u8>>),
}

fn device_of(rank: usize, ranks: usize, gpus: usize) -> Result<Device> {
    let threads = Device::cpu().threads();
    Ok(if gpus > 0 { Device::gpu(rank)? } else { Device::cpu_with_threads((threads / ranks).max(1)) })
}

/// One rank of a case.
fn measure(case: Case, device: &Device, connect: impl Fn() -> Result<Box<dyn Transport>>) -> Result<Measured> {
    let Case { ranks, width, count } = case;
    let pool = (ranks * count) as u64 / DUPLICATION;
    let builder = BucketTable::builder(width).capacity((pool as f64 / FILL / ranks as f64) as u64);
    let mut table = Builder::new(builder).build(device, Boxed(connect()?))?;
    let words = draw(table.rank(), count, width, pool);
    let mut input = match device.cuda_context() {
        None => Input::Host(words),
        Some(context) => {
            let stream = context.new_stream()?;
            let vectors = stream.clone_htod(&words)?;
            let wants = std::env::var("WARPSET_BENCH_OUTCOMES").is_ok_and(|wants| wants == "1");
            let outcomes = wants.then(|| stream.alloc_zeros::<u8>(count)).transpose()?;
            stream.synchronize()?;
            Input::Gpu(stream, vectors, outcomes)
        }
    };
    let (mut times, mut waits) = (Vec::new(), Vec::new());
    for _ in 0..=REPEATS {
        table.clear()?;
        table.sum([0])?;
        let (start, before) = (Instant::now(), table.traffic().waited);
        put(&mut table, &mut input, count)?;
        // Ends when all ranks have: the slowest one is measured.
        table.sum([0])?;
        times.push(start.elapsed().as_secs_f64());
        waits.push((table.traffic().waited - before).as_secs_f64());
    }
    let balance = table.stats()?.balance();
    // Sum over all ranks.
    let [sent] = table.sum([table.traffic().bytes_sent / (REPEATS as u64 + 1) / ranks as u64])?;
    let transport = transport_alone(connect()?.as_mut(), sent, device)?;
    let put = median(times.split_off(1));
    Ok(Measured { put, waiting: median(waits.split_off(1)) / put, balance, transport })
}

fn put(table: &mut Table<Words, Bucket>, input: &mut Input, count: usize) -> Result<()> {
    let batch = match input {
        Input::Host(words) => table.find_or_put_many(words)?,
        Input::Gpu(stream, vectors, outcomes) => {
            let batch = DeviceBatch::new(vectors, count);
            let batch = outcomes.iter_mut().fold(batch, |batch, outcomes| batch.outcomes(outcomes));
            table.find_or_put_device(&*stream, batch)?
        }
    };
    if batch.total.full > 0 { Err(format!("{} vectors were rejected", batch.total.full).into()) } else { Ok(()) }
}

/// Seconds of a batch of one rank in a table without a cluster.
fn alone(width: usize, count: usize, device: &Device) -> Result<f64> {
    let pool = count as u64 / DUPLICATION;
    let table = BucketTable::builder(width).capacity((pool as f64 / FILL) as u64).build(device)?;
    let words = draw(0, count, width, pool);
    let on_gpu = match device.cuda_context() {
        None => None,
        Some(context) => {
            let stream = context.new_stream()?;
            let vectors = stream.clone_htod(&words)?;
            let outcomes = stream.alloc_zeros::<u8>(count)?;
            Some((stream, vectors, outcomes))
        }
    };
    let mut on_gpu = on_gpu;
    let mut times = Vec::new();
    for _ in 0..=REPEATS {
        table.clear()?;
        let start = Instant::now();
        match &mut on_gpu {
            None => drop(table.find_or_put_many(&words)?),
            Some((stream, vectors, outcomes)) => {
                let batch = warpset::gpu::DeviceBatch::new(vectors, count).outcomes(outcomes);
                table.find_or_put_device(&*stream, batch)?;
                stream.synchronize()?;
            }
        }
        times.push(start.elapsed().as_secs_f64());
    }
    Ok(median(times.split_off(1)))
}

/// A separate allocation of device memory. (Memory of a stream-ordered pool, from `CudaStream::alloc`, cannot be copied to
/// another GPU: invalid value.)
struct Plain(u64);

impl Plain {
    fn new(context: &CudaContext, bytes: usize) -> Result<Self> {
        context.bind_to_thread()?;
        // SAFETY: the context is current; it has at least a byte.
        Ok(Self(unsafe { result::malloc_sync(bytes.max(1)) }?))
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        // SAFETY: allocated above, and no exchange is under way. After an error the context is lost anyway.
        let _ = unsafe { result::free_sync(self.0) };
    }
}

/// Seconds of one exchange of `bytes` bytes, spread evenly over all other ranks.
fn transport_alone(transport: &mut dyn Transport, bytes: u64, device: &Device) -> Result<f64> {
    let (rank, ranks) = (transport.rank(), transport.ranks());
    if ranks == 1 {
        return Ok(0.0);
    }
    let each = (bytes as usize / (ranks - 1)).next_multiple_of(128).max(128);
    let (mut host, mut on_gpu) = (Vec::new(), None);
    let (addresses, place) = match device.cuda_context() {
        None => {
            host.resize(2 * ranks * each, 0u8);
            let start = host.as_mut_ptr() as u64;
            ([start, start + (ranks * each) as u64], MemorySpace::Host)
        }
        Some(context) => {
            let (out, back) = (Plain::new(context, ranks * each)?, Plain::new(context, ranks * each)?);
            let addresses = [out.0, back.0];
            on_gpu = Some((out, back));
            (addresses, MemorySpace::Gpu(context.new_stream()?.into()))
        }
    };
    let regions = |start: u64| -> Vec<Region> {
        let region = |other: usize| match other == rank {
            true => Region::empty(),
            false => Region { address: start + (other * each) as u64, bytes: each, place: place.clone() },
        };
        (0..ranks).map(region).collect()
    };
    let (send, receive) = (regions(addresses[0]), regions(addresses[1]));
    let mut times = Vec::new();
    for _ in 0..=REPEATS {
        transport.barrier()?;
        let start = Instant::now();
        // SAFETY: the memory stays until the end of this function, and nothing touches it between `begin` and `finish`.
        let begun = unsafe { transport.begin(&send, &receive) };
        let finished = transport.finish();
        begun.and(finished)?;
        transport.barrier()?;
        times.push(start.elapsed().as_secs_f64());
    }
    drop((host, on_gpu));
    Ok(median(times.split_off(1)))
}

/// Transport of any type.
struct Boxed(Box<dyn Transport>);

impl Transport for Boxed {
    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn ranks(&self) -> usize {
        self.0.ranks()
    }

    fn all_gather(&mut self, own: &[u8], all: &mut [u8]) -> warpset::Result<()> {
        self.0.all_gather(own, all)
    }

    unsafe fn begin(&mut self, send: &[Region], receive: &[Region]) -> warpset::Result<()> {
        // SAFETY: the caller guarantees the contract.
        unsafe { self.0.begin(send, receive) }
    }

    fn finish(&mut self) -> warpset::Result<()> {
        self.0.finish()
    }

    fn finish_enqueued(&mut self) -> warpset::Result<()> {
        self.0.finish_enqueued()
    }

    fn abort(&mut self, reason: &str) {
        self.0.abort(reason);
    }
}

#[cfg(feature = "nccl")]
fn by_nccl(rank: usize, ranks: usize, number: usize, device: &Device) -> Result<Box<dyn Transport>> {
    use warpset::cluster::{Nccl, Rendezvous};
    let path = std::env::temp_dir().join(format!("warpset-bench-{}-{number}", std::process::id()));
    let timeout = std::time::Duration::from_secs(120);
    Ok(Box::new(Nccl::connect(device, rank, ranks, &Rendezvous::file(path), timeout)?))
}

#[cfg(not(feature = "nccl"))]
fn by_nccl(_: usize, _: usize, _: usize, _: &Device) -> Result<Box<dyn Transport>> {
    Err("WARPSET_BENCH_TRANSPORT=nccl needs the feature `nccl`".into())
}

/// All ranks of a case, on threads.
fn run(case: Case, gpus: usize, nccl: bool) -> Result<Vec<Measured>> {
    // Two connections: for the table, and for the transport alone.
    let mut locals = [Local::ranks(case.ranks), Local::ranks(case.ranks)].map(Vec::into_iter);
    let measured = std::thread::scope(|scope| {
        let mut ranks = Vec::new();
        for rank in 0..case.ranks {
            let mine = locals.each_mut().map(|locals| locals.next().expect("one for each rank"));
            ranks.push(scope.spawn(move || {
                let device = device_of(rank, case.ranks, gpus)?;
                let left = std::cell::RefCell::new(Vec::from(mine));
                measure(case, &device, || {
                    let number = left.borrow().len();
                    let local = left.borrow_mut().pop().expect("two connections");
                    if nccl { by_nccl(rank, case.ranks, number, &device) } else { Ok(Box::new(local)) }
                })
            }));
        }
        ranks.into_iter().map(|rank| rank.join().expect("no rank panics")).collect::<Vec<_>>()
    });
    measured.into_iter().collect()
}

fn main() -> Result<()> {
    let gpus = Device::gpus().map_or(0, |gpus| gpus.len());
    let nccl = std::env::var("WARPSET_BENCH_TRANSPORT").is_ok_and(|transport| transport == "nccl");
    let most = if gpus > 0 { gpus } else { 4 };
    let log2 = variable::<u32>("LOG2").and_then(|numbers| numbers.first().copied()).unwrap_or(if gpus > 0 { 27 } else { 20 });
    let widths = variable("WIDTHS").unwrap_or(vec![2, 8]);
    let ranks = variable("RANKS").unwrap_or_else(|| (0..).map(|log| 1 << log).take_while(|ranks| *ranks <= most).collect());
    println!("{} by {}, 2^{log2} vectors\n", device_of(0, 1, gpus)?, if nccl { "NCCL" } else { "copies" });
    println!("| words | scaling | ranks | G/s | to one rank | waiting | balance | transport alone |");
    println!("|---|---|---|---|---|---|---|---|");
    for width in widths {
        let rate = (1u64 << log2) as f64 / alone(width, 1 << log2, &device_of(0, 1, gpus)?)? / 1e9;
        println!("| {width} | a table without a cluster | - | {rate:.3} | - | - | - | - |");
        for weak in [true, false] {
            let mut of_one = None;
            for &ranks in &ranks {
                let count = if weak { 1 << log2 } else { (1 << log2) / ranks };
                let measured = run(Case { ranks, width, count }, gpus, nccl)?;
                let slowest = |of: fn(&Measured) -> f64| measured.iter().map(of).fold(0.0, f64::max);
                let fastest = measured.iter().map(|measured| measured.waiting).fold(1.0, f64::min);
                let rate = (ranks * count) as f64 / slowest(|measured| measured.put) / 1e9;
                let first = *of_one.get_or_insert(rate);
                println!(
                    "| {width} | {} | {ranks} | {rate:.3} | {:.2} | {:.0} to {:.0} % | {:.3} | {:.2} ms |",
                    if weak { "weak" } else { "strong" },
                    rate / first,
                    100.0 * fastest,
                    100.0 * slowest(|measured| measured.waiting),
                    measured[0].balance,
                    1e3 * slowest(|measured| measured.transport),
                );
            }
        }
    }
    Ok(())
}
