//! The CPU backend against the sets of other libraries: find-or-puts and lookups of keys of some words.
//!
//! Axes: words a key {1, 2, 8, 32} x fill {0.5, 0.7, 0.9} x threads {1, all cores} x set {`warpset`; `warpset` with a filter;
//! `hashbrown` (the standard library's), on one thread; `dashmap`; `papaya`; `scc`; `boost::concurrent_flat_set` where its
//! headers are installed, since Boost 1.84} x operation {new: put every key into an empty set; seen: put every key again; found:
//! look every key up; absent: look up as many other keys}. Keys are offered in another order each time.
//!
//! All sets are made for keys / fill keys, so that none grows. How full one is then depends on how it rounds that up. The Rust
//! sets hash with `foldhash` (fast), Boost with the same kind of hash. `papaya` is pinned once a thread. Every run is checked:
//! all sets find the same number of keys.
//!
//! `cargo bench --bench cpu_sets` prints a Markdown table: nanoseconds of CPU time an operation, of all threads together, medians
//! of interleaved rounds. WARPSET_BENCH_WIDTHS=2,8, WARPSET_BENCH_FILLS=0.7 and WARPSET_BENCH_THREADS=1 measure only these.
//! WARPSET_BENCH_LOG2 sets the power of two of the keys (22; half of it for 8 words, a quarter for 32), WARPSET_BENCH_ROUNDS the
//! rounds (5).

use cpu_time::ProcessTime;
use foldhash::fast::RandomState;
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};
use std::collections::HashSet;
use std::str::FromStr;
use std::thread;
use warpset::{BucketTable, Device, Request};

type Key<const WIDTH: usize> = [u32; WIDTH];

/// A set of keys that several threads use.
trait Set<const WIDTH: usize>: Sync {
    /// Puts all keys. Returns how many were new.
    fn put(&mut self, keys: &[Key<WIDTH>], threads: usize) -> usize;

    /// Looks all keys up. Returns how many were found.
    fn find(&self, keys: &[Key<WIDTH>], threads: usize) -> usize;
}

impl<const WIDTH: usize> Set<WIDTH> for BucketTable {
    // The table's device has these threads.
    fn put(&mut self, keys: &[Key<WIDTH>], _: usize) -> usize {
        let batch = self.find_or_put_many_with(keys.as_flattened(), Request::new()).expect("keys are whole vectors");
        assert_eq!(batch.tally.full, 0, "the table has room for all keys");
        batch.tally.new as usize
    }

    fn find(&self, keys: &[Key<WIDTH>], _: usize) -> usize {
        let found = self.contains_many(keys.as_flattened()).expect("keys are whole vectors");
        found.iter().filter(|found| **found).count()
    }
}

impl<const WIDTH: usize> Set<WIDTH> for HashSet<Key<WIDTH>, RandomState> {
    fn put(&mut self, keys: &[Key<WIDTH>], _: usize) -> usize {
        keys.iter().filter(|key| self.insert(**key)).count()
    }

    fn find(&self, keys: &[Key<WIDTH>], _: usize) -> usize {
        keys.iter().filter(|key| self.contains(*key)).count()
    }
}

impl<const WIDTH: usize> Set<WIDTH> for dashmap::DashSet<Key<WIDTH>, RandomState> {
    fn put(&mut self, keys: &[Key<WIDTH>], threads: usize) -> usize {
        on_threads(keys, threads, |part| part.iter().filter(|key| self.insert(**key)).count())
    }

    fn find(&self, keys: &[Key<WIDTH>], threads: usize) -> usize {
        on_threads(keys, threads, |part| part.iter().filter(|key| self.contains(*key)).count())
    }
}

impl<const WIDTH: usize> Set<WIDTH> for papaya::HashSet<Key<WIDTH>, RandomState> {
    fn put(&mut self, keys: &[Key<WIDTH>], threads: usize) -> usize {
        on_threads(keys, threads, |part| {
            let pinned = self.pin();
            part.iter().filter(|key| pinned.insert(**key)).count()
        })
    }

    fn find(&self, keys: &[Key<WIDTH>], threads: usize) -> usize {
        on_threads(keys, threads, |part| {
            let pinned = self.pin();
            part.iter().filter(|key| pinned.contains(*key)).count()
        })
    }
}

impl<const WIDTH: usize> Set<WIDTH> for scc::HashSet<Key<WIDTH>, RandomState> {
    fn put(&mut self, keys: &[Key<WIDTH>], threads: usize) -> usize {
        on_threads(keys, threads, |part| part.iter().filter(|key| self.insert_sync(**key).is_ok()).count())
    }

    fn find(&self, keys: &[Key<WIDTH>], threads: usize) -> usize {
        on_threads(keys, threads, |part| part.iter().filter(|key| self.contains_sync(*key)).count())
    }
}

/// `boost::concurrent_flat_set` (boost.cpp).
#[cfg(boost)]
mod boost {
    use super::{Key, Set, on_threads};
    use std::ffi::c_void;

    /// The functions for keys of one width.
    pub struct Functions {
        new: unsafe extern "C" fn(usize) -> *mut c_void,
        delete: unsafe extern "C" fn(*mut c_void),
        insert: unsafe extern "C" fn(*mut c_void, *const u32, usize) -> usize,
        count: unsafe extern "C" fn(*const c_void, *const u32, usize) -> usize,
    }

    macro_rules! functions {
        ($name:ident, $new:ident, $delete:ident, $insert:ident, $count:ident) => {
            unsafe extern "C" {
                fn $new(capacity: usize) -> *mut c_void;
                fn $delete(set: *mut c_void);
                fn $insert(set: *mut c_void, keys: *const u32, count: usize) -> usize;
                fn $count(set: *const c_void, keys: *const u32, count: usize) -> usize;
            }
            static $name: Functions = Functions { new: $new, delete: $delete, insert: $insert, count: $count };
        };
    }

    functions!(WORDS_1, warpset_boost_new_1, warpset_boost_delete_1, warpset_boost_insert_1, warpset_boost_count_1);
    functions!(WORDS_2, warpset_boost_new_2, warpset_boost_delete_2, warpset_boost_insert_2, warpset_boost_count_2);
    functions!(WORDS_8, warpset_boost_new_8, warpset_boost_delete_8, warpset_boost_insert_8, warpset_boost_count_8);
    functions!(WORDS_32, warpset_boost_new_32, warpset_boost_delete_32, warpset_boost_insert_32, warpset_boost_count_32);

    /// A set, and the functions for its width.
    pub struct FlatSet(&'static Functions, *mut c_void);

    // SAFETY: `concurrent_flat_set` lets several threads insert and look up at once.
    unsafe impl Sync for FlatSet {}

    impl FlatSet {
        pub fn new(width: usize, capacity: usize) -> Self {
            let functions = match width {
                1 => &WORDS_1,
                2 => &WORDS_2,
                8 => &WORDS_8,
                32 => &WORDS_32,
                _ => panic!("boost.cpp has no set for keys of {width} words"),
            };
            // SAFETY: has no condition; the set is deleted once, by `Drop`.
            Self(functions, unsafe { (functions.new)(capacity) })
        }
    }

    impl Drop for FlatSet {
        fn drop(&mut self) {
            // SAFETY: made by `new` of the same functions, and used by nothing from now on.
            unsafe { (self.0.delete)(self.1) }
        }
    }

    impl<const WIDTH: usize> Set<WIDTH> for FlatSet {
        fn put(&mut self, keys: &[Key<WIDTH>], threads: usize) -> usize {
            let set = &*self;
            on_threads(keys, threads, |part| {
                // SAFETY: a set of keys of `WIDTH` words, and `part.len()` such keys.
                unsafe { (set.0.insert)(set.1, part.as_flattened().as_ptr(), part.len()) }
            })
        }

        fn find(&self, keys: &[Key<WIDTH>], threads: usize) -> usize {
            on_threads(keys, threads, |part| {
                // SAFETY: as in `put`.
                unsafe { (self.0.count)(self.1, part.as_flattened().as_ptr(), part.len()) }
            })
        }
    }
}

/// Splits the keys among threads, and adds up what these return.
fn on_threads<const WIDTH: usize>(keys: &[Key<WIDTH>], threads: usize, count: impl Fn(&[Key<WIDTH>]) -> usize + Sync) -> usize {
    if threads == 1 {
        return count(keys);
    }
    thread::scope(|scope| {
        let count = &count;
        let parts = keys.chunks(keys.len().div_ceil(threads));
        let counts: Vec<_> = parts.map(|part| scope.spawn(move || count(part))).collect();
        counts.into_iter().map(|count| count.join().expect("sets do not panic")).sum()
    })
}

/// Makes an empty set. Parameters: the number of keys, and the number of threads.
type Make<const WIDTH: usize> = fn(usize, usize) -> Box<dyn Set<WIDTH>>;

/// The sets to compare; `hashbrown` on one thread only.
fn sets<const WIDTH: usize>(threads: usize) -> Vec<(&'static str, Make<WIDTH>)> {
    let mut sets: Vec<(&'static str, Make<WIDTH>)> = vec![("warpset", |capacity, threads| {
        let device = Device::cpu_with_threads(threads);
        Box::new(BucketTable::new(&device, WIDTH, capacity as u64).expect("memory for a table"))
    })];
    sets.push(("warpset, filter", |capacity, threads| {
        let builder = BucketTable::builder(WIDTH).capacity(capacity as u64).filter(true);
        Box::new(builder.build(&Device::cpu_with_threads(threads)).expect("memory for a table"))
    }));
    if threads == 1 {
        sets.push(("hashbrown", |capacity, _| Box::new(HashSet::with_capacity_and_hasher(capacity, RandomState::default()))));
    }
    sets.push(("dashmap", |capacity, _| Box::new(dashmap::DashSet::with_capacity_and_hasher(capacity, RandomState::default()))));
    sets.push(("papaya", |capacity, _| Box::new(papaya::HashSet::with_capacity_and_hasher(capacity, RandomState::default()))));
    sets.push(("scc", |capacity, _| Box::new(scc::HashSet::with_capacity_and_hasher(capacity, RandomState::default()))));
    #[cfg(boost)]
    sets.push(("boost flat", |capacity, _| Box::new(boost::FlatSet::new(WIDTH, capacity))));
    sets
}

/// Nanoseconds of CPU time for each of `keys` keys, and what `work` returns.
fn measure(keys: usize, work: impl FnOnce() -> usize) -> (f64, usize) {
    let start = ProcessTime::now();
    let result = work();
    (start.elapsed().as_secs_f64() * 1e9 / keys as f64, result)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Values of an axis.
fn axis<T: FromStr>(variable: &str, default: Vec<T>) -> Vec<T> {
    let parse = |text: &str| text.parse().unwrap_or_else(|_| panic!("{variable}: {text} is not a number"));
    std::env::var(variable).map_or(default, |text| text.split(',').map(parse).collect())
}

fn compare<const WIDTH: usize>(log2: u32) {
    let mut random = StdRng::seed_from_u64(1);
    // All are different: the first word counts, in an order that is random anyway.
    let mut keys: Vec<Key<WIDTH>> = (0..2u32 << log2)
        .map(|number| {
            let mut key: Key<WIDTH> = random.random();
            key[0] = number.wrapping_mul(0x9E37_79B1);
            key
        })
        .collect();
    keys.shuffle(&mut random);
    let others = keys.split_off(keys.len() / 2);
    let count = keys.len();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut threads = axis("WARPSET_BENCH_THREADS", vec![1, cores]);
    threads.dedup();
    let rounds = axis("WARPSET_BENCH_ROUNDS", vec![5usize])[0];
    for fill in axis("WARPSET_BENCH_FILLS", vec![0.5, 0.7, 0.9]) {
        for &threads in &threads {
            let sets = sets::<WIDTH>(threads);
            let mut times = vec![[const { Vec::new() }; 4]; sets.len()];
            for _ in 0..rounds {
                for ((name, make), times) in sets.iter().zip(&mut times) {
                    let mut set = make((count as f64 / fill) as usize, threads);
                    let mut record = |operation: usize, (time, found): (f64, usize), expected: usize| {
                        assert_eq!(found, expected, "{name}: operation {operation}");
                        times[operation].push(time);
                    };
                    record(0, measure(count, || set.put(&keys, threads)), count);
                    keys.shuffle(&mut random);
                    record(1, measure(count, || set.put(&keys, threads)), 0);
                    keys.shuffle(&mut random);
                    record(2, measure(count, || set.find(&keys, threads)), count);
                    record(3, measure(count, || set.find(&others, threads)), 0);
                }
            }
            for ((name, _), times) in sets.iter().zip(times) {
                let cells = times.map(|times| format!("{:.1}", median(times))).join(" | ");
                println!("| {WIDTH} | {fill} | {threads} | {name} | {cells} |");
            }
        }
    }
}

fn main() {
    if !cfg!(boost) {
        println!(
            "skipped: boost::concurrent_flat_set (no headers of Boost 1.84 or later when this was built; CPATH names folders)\n"
        );
    }
    println!("| words | fill | threads | set | new | seen | found | absent |\n|---|---|---|---|---|---|---|---|");
    let log2 = axis("WARPSET_BENCH_LOG2", vec![22u32])[0];
    for width in axis("WARPSET_BENCH_WIDTHS", vec![1usize, 2, 8, 32]) {
        match width {
            1 => compare::<1>(log2),
            2 => compare::<2>(log2),
            8 => compare::<8>(log2.saturating_sub(1)),
            32 => compare::<32>(log2.saturating_sub(2)),
            _ => panic!("WARPSET_BENCH_WIDTHS: {width} is none of 1, 2, 8 and 32"),
        }
    }
}
