//! Counting keys: how often each occurs among keys of 8 bytes, by all cores, in four ways.
//!
//! - `add_many`: one call, `Values::add_many`.
//! - `three calls`: `find_or_put_many_with` for references, then `Values::update_many`: the same without `add_many`.
//! - `dashmap`: `*map.entry(key).or_default() += 1` by one thread for each core, hashed with `foldhash` (fast).
//! - `hashbrown`: the standard library's `HashMap` by one thread, with the same hash.
//!
//! Axes: keys offered {10^7} x distinct keys {10^4, 10^6, 10^7 / 2}. Every map is made for as many keys as it gets, so that none
//! grows, and is made again in each round. The ways take turns, and each round is checked: the counts are the same. Prints the
//! median of each in millions of keys a second.
//!
//! `cargo bench --bench counting`; `WARPSET_BENCH_KEYS` and `WARPSET_BENCH_ROUNDS` change the sizes.

use foldhash::fast::RandomState;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use std::collections::HashMap;
use std::thread;
use std::time::{Duration, Instant};
use warpset::{Device, Indexed, Request, TypedTable};

/// Counts keys, among which `distinct` are different. Returns the time, the number of keys found and the largest count.
type Count = fn(&[u64], usize) -> (Duration, u64, u64);

fn table(distinct: usize) -> TypedTable<u64, Indexed> {
    TypedTable::<u64, Indexed>::builder().capacity(distinct as u64 * 10 / 7).build(&Device::cpu()).expect("memory for a table")
}

fn largest(counts: &[u64]) -> u64 {
    counts.iter().copied().max().unwrap_or(0)
}

fn add_many(keys: &[u64], distinct: usize) -> (Duration, u64, u64) {
    let start = Instant::now();
    let table = table(distinct);
    let mut counts = table.values(0u64).expect("memory for values");
    counts.add_many(keys, &[1]).and_then(|batch| batch.complete(&table)).expect("room for all keys");
    let time = start.elapsed();
    (time, table.len().expect("a CPU"), largest(&counts.view().expect("a CPU")))
}

fn three_calls(keys: &[u64], distinct: usize) -> (Duration, u64, u64) {
    let start = Instant::now();
    let table = table(distinct);
    let mut counts = table.values(0u64).expect("memory for values");
    let batch = table.find_or_put_many_with(keys, Request::new().references(true)).expect("memory for references");
    batch.complete(&table).expect("room for all keys");
    let references: Vec<_> = batch.references.into_iter().flatten().collect();
    counts.update_many(&references, |_, count| *count += 1).expect("references of the table");
    let time = start.elapsed();
    (time, table.len().expect("a CPU"), largest(&counts.view().expect("a CPU")))
}

fn dashmap(keys: &[u64], distinct: usize) -> (Duration, u64, u64) {
    let start = Instant::now();
    let map = dashmap::DashMap::with_capacity_and_hasher(distinct, RandomState::default());
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for part in keys.chunks(keys.len().div_ceil(cores)) {
            let map = &map;
            scope.spawn(move || part.iter().for_each(|key| *map.entry(*key).or_insert(0u64) += 1));
        }
    });
    let time = start.elapsed();
    (time, map.len() as u64, map.iter().map(|entry| *entry.value()).max().unwrap_or(0))
}

fn hashbrown(keys: &[u64], distinct: usize) -> (Duration, u64, u64) {
    let start = Instant::now();
    let mut map: HashMap<u64, u64, RandomState> = HashMap::with_capacity_and_hasher(distinct, RandomState::default());
    keys.iter().for_each(|key| *map.entry(*key).or_default() += 1);
    let time = start.elapsed();
    (time, map.len() as u64, map.values().copied().max().unwrap_or(0))
}

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{variable} is a number")))
}

fn main() {
    // `cargo test --benches` asks for a short run.
    let is_test = std::env::args().any(|argument| argument == "--test");
    let offered = if is_test { 10_000 } else { number("WARPSET_BENCH_KEYS", 10_000_000) };
    let rounds = if is_test { 1 } else { number("WARPSET_BENCH_ROUNDS", 5).max(1) };
    let ways: [(&str, Count); 4] =
        [("add_many", add_many), ("three calls", three_calls), ("dashmap", dashmap), ("hashbrown, 1 thread", hashbrown)];
    println!("{offered} keys of 8 bytes, {rounds} rounds, medians in 10^6 keys a second");
    for distinct in [offered / 1000, offered / 10, offered / 2] {
        let mut random = StdRng::seed_from_u64(distinct as u64);
        let names: Vec<u64> = (0..distinct).map(|_| random.random()).collect();
        let keys: Vec<u64> = (0..offered).map(|_| names[random.random_range(0..distinct)]).collect();
        let mut times = vec![Vec::new(); ways.len()];
        for _ in 0..rounds {
            let mut found = Vec::new();
            for ((_, count), times) in ways.iter().zip(&mut times) {
                let (time, keys, most) = count(&keys, distinct);
                times.push(time);
                found.push((keys, most));
            }
            assert!(found.iter().all(|counts| *counts == found[0]), "all ways count the same: {found:?}");
        }
        for ((name, _), times) in ways.iter().zip(&mut times) {
            times.sort_unstable();
            let median = times[times.len() / 2];
            println!("{distinct:>9} distinct  {name:<20} {:>7.1}", offered as f64 / median.as_secs_f64() / 1e6);
        }
    }
}
