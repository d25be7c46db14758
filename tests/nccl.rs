//! One set over several GPUs, one process per GPU, connected by NCCL. Skipped with a message without two GPUs or without NCCL.
//! On simulated devices the simulated NCCL connects them: `tests/device/with 8 cargo test ...` makes eight ranks.
//!
//! This program also runs as the processes: `WARPSET_TEST_RANK` is the rank, and then only the test `a_rank` runs. The processes
//! need `NCCL_NVLS_ENABLE=0`, which this program sets.
//!
//! Keeps this promise of `src/docs/several_gpus.md`:
//!
//! - GPUs of several processes make one set. A process that dies, or whose GPU stops answering, is an error on the others.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use warpset::cluster::{Builder, DeviceBatch, Nccl, Rendezvous, Request, Transport};
use warpset::gpu::cudarc_0_19::DeviceExt;
use warpset::{BucketTable, Device, Error, Outcome, TreeTable};
#[cfg(target_os = "linux")]
use warpset_testing::simulated::Faults;

const WIDTH: usize = 4;
const COUNT: usize = 200_000;

/// Vectors that begin with their number.
fn words(first: usize, count: usize) -> Vec<u32> {
    (first..first + count).flat_map(|number| [number as u32, 7, (number >> 3) as u32, number as u32 ^ 0x5555]).collect()
}

fn connect(rank: usize, ranks: usize, timeout: Duration) -> Result<(Device, Nccl), Error> {
    let meet: Rendezvous = std::env::var("WARPSET_TEST_PLACE").unwrap().parse()?;
    let device = Device::gpu(rank)?;
    let transport = Nccl::connect(&device, rank, ranks, &meet.token("of this run"), timeout)?;
    Ok((device, transport))
}

/// The work of a rank; a panic ends its process.
fn offers(rank: usize, ranks: usize) {
    let (device, mut transport) = connect(rank, ranks, Duration::from_secs(60)).unwrap();
    let mut sum = [1, rank as u64];
    transport.all_reduce(&mut sum).unwrap();
    assert_eq!(sum, [ranks as u64, (ranks * (ranks - 1) / 2) as u64]);
    let builder = TreeTable::builder(WIDTH).capacity(1 << 17).nodes(1 << 20).grows(true);
    let mut set = Builder::new(builder).round(50_000).build(&device, transport).unwrap();
    // Each rank's vectors begin in the middle of the previous rank's, and each is offered twice.
    let own = words(rank * COUNT / 2, COUNT).repeat(2);
    let distinct = (COUNT / 2 * (ranks + 1)) as u64;
    let batch = set.find_or_put_many_with(&own, Request::new().references(true).stored_here(true)).unwrap();
    assert_eq!((batch.total.new, batch.total.full, batch.total.offered()), (distinct, 0, (2 * COUNT * ranks) as u64));
    assert_eq!(batch.positions(Outcome::New).count() as u64, batch.tally.new);
    assert_eq!(set.local().len().unwrap(), batch.stored_here.len() as u64);
    let places: Vec<_> = batch.references.iter().flatten().copied().collect();
    assert!(set.get_many(&places).unwrap() == own);
    assert_eq!(set.len().unwrap(), distinct);
    assert!(set.contains_many(&own).unwrap().iter().all(|stored| *stored));
    // In device memory.
    let stream = device.cuda_context().unwrap().new_stream().unwrap();
    let vectors = stream.clone_htod(&words(rank * COUNT / 2, 2 * COUNT)).unwrap();
    set.reserve_total(8 * COUNT as u64).unwrap();
    let mut outcomes = stream.alloc_zeros::<u8>(2 * COUNT).unwrap();
    let batch = set.find_or_put_device(&stream, DeviceBatch::new(&vectors, 2 * COUNT).outcomes(&mut outcomes)).unwrap();
    let new = stream.clone_dtoh(&outcomes).unwrap().iter().filter(|outcome| **outcome == 1).count() as u64;
    assert_eq!((batch.tally.new, batch.total.full), (new, 0));
    assert_eq!(set.len().unwrap(), (COUNT / 2 * (ranks + 3)) as u64);
    let balance = set.stats().unwrap().balance();
    assert!(balance < 1.02, "{balance}");
}

/// The last rank ends; the others get an error, or reach their time-out.
fn goes_away(rank: usize, ranks: usize) {
    let (device, transport) = connect(rank, ranks, Duration::from_secs(10)).unwrap();
    let mut set = Builder::new(BucketTable::builder(WIDTH).capacity(1 << 16)).build(&device, transport).unwrap();
    let _ = set.find_or_put_many(&words(0, 1000)).unwrap();
    if rank == ranks - 1 {
        std::process::abort();
    }
    let began = Instant::now();
    let error = set.find_or_put_many(&words(0, 1000)).unwrap_err();
    assert!(matches!(error, Error::Connection { .. } | Error::Cuda { .. }), "{error}");
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    // The rank's own table still works.
    assert!(set.local().len().unwrap() > 0);
}

/// The device of the last rank does no more work; the others reach their time-out. On simulated devices only.
#[cfg(target_os = "linux")]
fn stops_answering(rank: usize, ranks: usize) {
    let (device, transport) = connect(rank, ranks, Duration::from_secs(5)).unwrap();
    let mut set = Builder::new(BucketTable::builder(WIDTH).capacity(1 << 16)).build(&device, transport).unwrap();
    let _ = set.find_or_put_many(&words(0, 1000)).unwrap();
    if rank == ranks - 1 {
        Faults::find().expect("a simulated device").set("cuLaunchKernel:1=hangs");
        // This call may wait for the device for ever: the test ends this process.
        let _ = set.find_or_put_many(&words(0, 1000));
        loop {
            std::thread::park();
        }
    }
    let began = Instant::now();
    let error = set.find_or_put_many(&words(0, 1000)).unwrap_err();
    assert!(matches!(error, Error::Connection { .. }), "{error}");
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    assert!(set.local().len().unwrap() > 0, "the rank's own table still works");
}

#[test]
fn a_rank() {
    let Ok(rank) = std::env::var("WARPSET_TEST_RANK") else { return };
    let (rank, ranks) = (rank.parse().unwrap(), std::env::var("WARPSET_TEST_RANKS").unwrap().parse().unwrap());
    match std::env::var("WARPSET_TEST_WHAT").unwrap().as_str() {
        "offers" => offers(rank, ranks),
        "goes_away" => goes_away(rank, ranks),
        #[cfg(target_os = "linux")]
        "stops_answering" => stops_answering(rank, ranks),
        what => panic!("{what}"),
    }
}

/// Number of GPUs for the test; `None`, with the reason printed, without two GPUs and NCCL.
fn ranks() -> Option<usize> {
    let gpus = Device::gpus().map_or(0, |gpus| gpus.len());
    if gpus < 2 {
        println!("skipped: {gpus} GPUs, two are needed");
        return None;
    }
    // Connects a single rank, to check that the library is installed.
    match Nccl::connect(&Device::gpu(0).unwrap(), 0, 1, &Rendezvous::file("unused"), Duration::from_secs(60)) {
        Ok(alone) => println!("NCCL {}", alone.version()),
        Err(error @ (Error::LibraryNotFound { .. } | Error::LibraryTooOld { .. })) => {
            println!("skipped: {error}");
            return None;
        }
        Err(error) => panic!("{error}"),
    }
    Some(gpus.min(8))
}

fn start(what: &str, place: &str, rank: usize, ranks: usize) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "a_rank", "--nocapture", "--test-threads=1"]).env("NCCL_NVLS_ENABLE", "0");
    command.env("WARPSET_TEST_RANK", rank.to_string()).env("WARPSET_TEST_RANKS", ranks.to_string());
    command.env("WARPSET_TEST_PLACE", place).env("WARPSET_TEST_WHAT", what);
    command.stdout(Stdio::null()).spawn().expect("a process of this program")
}

/// Starts all ranks.
fn start_all(what: &str, ranks: usize) -> Vec<Child> {
    let place = format!("file:{}", std::env::temp_dir().join(format!("warpset-nccl-{what}-{}", std::process::id())).display());
    (0..ranks).map(|rank| start(what, &place, rank, ranks)).collect()
}

/// Waits for processes; returns which of them succeeded.
fn ended(children: Vec<Child>) -> Vec<bool> {
    children.into_iter().map(|mut child| child.wait().unwrap().success()).collect()
}

fn run(what: &str, ranks: usize) -> Vec<bool> {
    ended(start_all(what, ranks))
}

#[test]
fn processes_make_one_set() {
    if let Some(ranks) = ranks() {
        assert_eq!(run("offers", ranks), vec![true; ranks]);
    }
}

#[test]
fn a_process_that_dies_is_an_error_on_the_others() {
    if let Some(ranks) = ranks() {
        let mut ended = run("goes_away", ranks);
        assert_eq!(ended.pop(), Some(false), "the last one has aborted");
        assert_eq!(ended, vec![true; ranks - 1]);
    }
}

/// A device that does no more work, which nothing but a time-out can notice.
#[cfg(target_os = "linux")]
#[test]
fn a_device_that_stops_answering_is_an_error_on_the_others() {
    let Some(ranks) = ranks() else { return };
    if Faults::find().is_none() {
        println!("skipped: a GPU does not stop on request");
        return;
    }
    let mut children = start_all("stops_answering", ranks);
    let mut last = children.pop().expect("two ranks at least");
    let others = ended(children);
    assert!(last.try_wait().unwrap().is_none(), "the last one waits for its device");
    last.kill().unwrap();
    let _ = last.wait();
    assert_eq!(others, vec![true; ranks - 1]);
}
