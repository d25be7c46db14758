//! Throughput of the table's operations, with criterion.
//!
//! Axes: words per vector {2, 8, 32} x duplication (vectors offered / pool they are drawn from) {1, 2, 10} x fill (stored at the
//! end / slots) {0.25, 0.7, 0.9} x operation {put: find-or-put into the empty table; seen: find-or-put of the same vectors again;
//! contains} x machine {cpu: 2^20 vectors from host memory, wall-clock, all cores; gpu: 2^26 vectors in device memory, device
//! events}.
//!
//! `cargo bench --bench throughput -- gpu/8_words` runs a part. Without a GPU, the GPU part is skipped, and a line reports that.

#[cfg(feature = "cuda")]
#[path = "../support/mod.rs"]
mod support;

use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime};
use std::time::Duration;
use warpset::BucketTable;

const WIDTHS: [usize; 3] = [2, 8, 32];
const DUPLICATIONS: [f64; 3] = [1.0, 2.0, 10.0];
const FILLS: [f64; 3] = [0.25, 0.7, 0.9];

/// Runs one combination of the axes: `setup` before each timed `work`, which returns its own time.
fn measure(group: &mut BenchmarkGroup<WallTime>, name: String, setup: impl Fn(), work: impl Fn() -> Duration) {
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|iterations| {
            (0..iterations)
                .map(|_| {
                    setup();
                    work()
                })
                .sum()
        })
    });
}

fn group<'a>(criterion: &'a mut Criterion, machine: &str, width: usize, count: usize) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(format!("{machine}/{width}_words"));
    group.sample_size(10).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    group.throughput(Throughput::Elements(count as u64));
    group
}

#[cfg(feature = "cpu")]
fn cpu(criterion: &mut Criterion) {
    use std::time::Instant;
    use warpset::{Device, Request};

    const COUNT: usize = 1 << 20;
    let device = Device::cpu();
    for width in WIDTHS {
        let mut group = group(criterion, "cpu", width, COUNT);
        for duplication in DUPLICATIONS {
            let vectors = vectors(width, COUNT, duplication);
            let put = |table: &BucketTable| {
                let start = Instant::now();
                let batch = table.find_or_put_many_with(&vectors, Request::new()).expect("vectors are whole");
                (start.elapsed(), batch.tally)
            };
            let distinct = put(&BucketTable::new(&device, width, COUNT as u64 * 2).expect("memory for a table")).1.new;
            for fill in FILLS {
                let slots = (distinct as f64 / fill) as u64;
                let table = BucketTable::new(&device, width, slots).expect("memory for a table");
                let name = |operation| format!("{operation}/dup_{duplication}/fill_{fill}");
                measure(&mut group, name("put"), || table.clear().expect("a table can be cleared"), || put(&table).0);
                measure(&mut group, name("seen"), || (), || put(&table).0);
                let contains = || {
                    let start = Instant::now();
                    assert!(table.contains_many(&vectors).expect("vectors are whole")[0]);
                    start.elapsed()
                };
                measure(&mut group, name("contains"), || (), contains);
            }
        }
    }
}

#[cfg(not(feature = "cpu"))]
fn cpu(_: &mut Criterion) {}

/// `count` vectors drawn from a pool of `count / duplication`.
#[cfg(feature = "cpu")]
fn vectors(width: usize, count: usize, duplication: f64) -> Vec<u32> {
    use rand::{RngExt, SeedableRng, rngs::StdRng};

    let mut random = StdRng::seed_from_u64(1);
    let pool: Vec<u32> = (0..(count as f64 / duplication) as usize * width).map(|_| random.random()).collect();
    let members = pool.len() / width;
    (0..count)
        .flat_map(|_| {
            let member = random.random_range(0..members);
            &pool[member * width..][..width]
        })
        .copied()
        .collect()
}

#[cfg(feature = "cuda")]
fn gpu(criterion: &mut Criterion) {
    use std::cell::RefCell;
    use support::Bench;

    const COUNT: usize = 1 << 26;
    let Some(bench) = Bench::open().expect("a GPU that is there can be used") else { return };
    let milliseconds = |time: f64| Duration::from_secs_f64(time / 1e3);
    for width in WIDTHS {
        let mut group = group(criterion, "gpu", width, COUNT);
        for duplication in DUPLICATIONS {
            let vectors = RefCell::new(bench.vectors(width, COUNT, duplication).expect("memory for vectors"));
            let put = |table: &BucketTable| bench.find_or_put(table, &mut vectors.borrow_mut()).expect("kernels run");
            let distinct = put(&BucketTable::new(&bench.device, width, COUNT as u64 * 2).expect("memory for a table")).1.hits;
            for fill in FILLS {
                let slots = (distinct as f64 / fill) as u64;
                let table = BucketTable::new(&bench.device, width, slots).expect("memory for a table");
                let name = |operation| format!("{operation}/dup_{duplication}/fill_{fill}");
                let clear = || table.clear().expect("a table can be cleared");
                measure(&mut group, name("put"), clear, || milliseconds(put(&table).0));
                measure(&mut group, name("seen"), || (), || milliseconds(put(&table).0));
                let contains = || milliseconds(bench.find(&table, &mut vectors.borrow_mut()).expect("kernels run").0);
                measure(&mut group, name("contains"), || (), contains);
            }
        }
    }
}

#[cfg(not(feature = "cuda"))]
fn gpu(_: &mut Criterion) {}

criterion_group!(benches, cpu, gpu);
criterion_main!(benches);
