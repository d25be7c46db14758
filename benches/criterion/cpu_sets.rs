//! The CPU backend against the concurrent sets of other crates, on the same find-or-puts of 8-word keys.
//!
//! Axes: set {`warpset` on the CPU, `dashmap`, `papaya`, `scc`} x keys offered {2^16: tables in cache; 2^23: tables of hundreds
//! of megabytes} x operation {put: make the set with its capacity, and find-or-put every key; seen: find-or-put every key again}.
//!
//! Each key is offered twice, in random order, by one thread per core. All sets are made for the same number of keys, half more
//! than they get, so that none grows, and `put` includes for all of them the cost of touching memory for the first time. The
//! others hash with `foldhash` (fast), the fastest hasher that all three take; `papaya` is pinned once per thread. Every run is
//! checked: all sets find the same number of new keys.
//!
//! `cargo bench --bench cpu_sets` ends with the ratio of warpset to the best other set, by medians.

use criterion::{Criterion, SamplingMode, Throughput};
use foldhash::fast::RandomState;
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};
use warpset::{BucketTable, Device, Request};

type Key = [u32; 8];

const LOG2_OFFERED: [u32; 2] = [16, 23];

/// A concurrent set of keys.
trait Set: Sync {
    const NAME: &'static str;

    fn with_capacity(keys: usize) -> Self;

    /// Offers all keys, on all cores. Returns how many were new.
    fn find_or_put(&self, keys: &[Key]) -> usize;
}

impl Set for BucketTable {
    const NAME: &'static str = "warpset";

    fn with_capacity(keys: usize) -> Self {
        Self::new(&Device::cpu(), 8, keys as u64).expect("memory for a table")
    }

    fn find_or_put(&self, keys: &[Key]) -> usize {
        let batch = self.find_or_put_many_with(keys.as_flattened(), Request::new()).expect("keys are whole vectors");
        assert_eq!(batch.tally.full, 0, "the table has room for all keys");
        batch.tally.new as usize
    }
}

impl Set for dashmap::DashSet<Key, RandomState> {
    const NAME: &'static str = "dashmap";

    fn with_capacity(keys: usize) -> Self {
        Self::with_capacity_and_hasher(keys, RandomState::default())
    }

    fn find_or_put(&self, keys: &[Key]) -> usize {
        on_all_cores(keys, |part| part.iter().filter(|key| self.insert(**key)).count())
    }
}

impl Set for papaya::HashSet<Key, RandomState> {
    const NAME: &'static str = "papaya";

    fn with_capacity(keys: usize) -> Self {
        Self::with_capacity_and_hasher(keys, RandomState::default())
    }

    fn find_or_put(&self, keys: &[Key]) -> usize {
        on_all_cores(keys, |part| {
            let pinned = self.pin();
            part.iter().filter(|key| pinned.insert(**key)).count()
        })
    }
}

impl Set for scc::HashSet<Key, RandomState> {
    const NAME: &'static str = "scc";

    fn with_capacity(keys: usize) -> Self {
        Self::with_capacity_and_hasher(keys, RandomState::default())
    }

    fn find_or_put(&self, keys: &[Key]) -> usize {
        on_all_cores(keys, |part| part.iter().filter(|key| self.insert_sync(**key).is_ok()).count())
    }
}

/// Splits the keys among one thread per core, and adds up the returned counts.
fn on_all_cores(keys: &[Key], count_new: impl Fn(&[Key]) -> usize + Sync) -> usize {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let count_new = &count_new;
        let parts = keys.chunks(keys.len().div_ceil(threads));
        let counts: Vec<_> = parts.map(|part| scope.spawn(move || count_new(part))).collect();
        counts.into_iter().map(|count| count.join().expect("sets do not panic")).sum()
    })
}

/// Random keys, each twice, in random order.
fn keys(offered: usize) -> Vec<Key> {
    let mut random = StdRng::seed_from_u64(1);
    let mut keys: Vec<Key> = (0..offered / 2).map(|_| random.random()).collect();
    keys.extend_from_within(..);
    keys.shuffle(&mut random);
    keys
}

/// The times of every run, by operation and size, then by set.
type Times = BTreeMap<String, BTreeMap<&'static str, Vec<Duration>>>;

fn measure<S: Set>(criterion: &mut Criterion, times: &mut Times, log2: u32, keys: &[Key]) {
    let distinct = keys.len() / 2;
    let make = || S::with_capacity(distinct * 3 / 2);
    let mut group = criterion.benchmark_group(S::NAME);
    // The fewest runs that criterion allows: those of the large sets take seconds.
    group.sample_size(10).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(1)).measurement_time(Duration::from_millis(500));
    group.throughput(Throughput::Elements(keys.len() as u64));
    let mut run = |operation: &str, work: &mut dyn FnMut() -> Duration| {
        let name = format!("{operation}/2^{log2}");
        group.bench_function(name.as_str(), |bencher| {
            bencher.iter_custom(|iterations| {
                let runs: Vec<Duration> = (0..iterations).map(|_| work()).collect();
                let sum = runs.iter().sum();
                times.entry(name.clone()).or_default().entry(S::NAME).or_default().extend(runs);
                sum
            })
        });
    };
    run("put", &mut || {
        let start = Instant::now();
        let set = make();
        assert_eq!(set.find_or_put(keys), distinct, "{}: every key is new once", S::NAME);
        start.elapsed()
    });
    let mut filled = None;
    run("seen", &mut || {
        let set = filled.get_or_insert_with(|| {
            let set = make();
            set.find_or_put(keys);
            set
        });
        let start = Instant::now();
        assert_eq!(set.find_or_put(keys), 0, "{}: no key is new twice", S::NAME);
        start.elapsed()
    });
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// One line for each operation and size that was measured with all sets.
fn print_ratios(times: Times) {
    for (name, mut sets) in times {
        let Some(ours) = sets.remove(BucketTable::NAME).map(|mut runs| median(&mut runs)) else { continue };
        let others = sets.iter_mut().map(|(set, runs)| (median(runs), *set));
        if let Some((best, set)) = others.min() {
            println!("{name}: warpset is {:.2} times as fast as {set}, the best other", best.as_secs_f64() / ours.as_secs_f64());
        }
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut times = Times::new();
    for log2 in LOG2_OFFERED {
        let keys = keys(1 << log2);
        measure::<BucketTable>(&mut criterion, &mut times, log2, &keys);
        measure::<dashmap::DashSet<Key, RandomState>>(&mut criterion, &mut times, log2, &keys);
        measure::<papaya::HashSet<Key, RandomState>>(&mut criterion, &mut times, log2, &keys);
        measure::<scc::HashSet<Key, RandomState>>(&mut criterion, &mut times, log2, &keys);
    }
    criterion.final_summary();
    print_ratios(times);
}
