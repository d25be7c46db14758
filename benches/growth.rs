//! Tables that grow, against tables that need not.
//!
//! *One growth*: a table with 2^26 distinct vectors, 0.8 full, grows to twice its slots; compared with putting the same vectors,
//! from device memory, into a larger table that already exists. *A whole fill*: 2^26 vectors, duplication 2, are put in batches
//! of 2^20 from device memory into a table that starts with 2^20 slots and grows on request, to four times its size, before it
//! could be 0.85 full; and in one batch from a host slice into a table that grows by itself; each compared with a table that is
//! large enough. Words per vector {2, 8}, {bucket, tree}. By the wall clock, medians of 3, with kernels compiled and the memory
//! of the process warm.
//!
//! `cargo bench --bench growth` prints Markdown tables, in milliseconds. WARPSET_BENCH_LOG2 sets another power of two.

mod support;

use std::time::Instant;
use support::{Bench, Compression, Result, Vectors, median};
use warpset::gpu::{Counts, DeviceBatch};
use warpset::{Bucket, Request, Storage, Tree, VectorTable};

const REPEATS: usize = 3;

/// Milliseconds by the wall clock.
fn time(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

/// Medians of some runs, after one that is not counted.
fn medians<const N: usize>(mut run: impl FnMut() -> Result<[f64; N]>) -> Result<[f64; N]> {
    let mut times = [(); N].map(|()| Vec::new());
    for repeat in 0..=REPEATS {
        for (times, time) in times.iter_mut().zip(run()?) {
            if repeat > 0 {
                times.push(time);
            }
        }
    }
    Ok(times.map(median))
}

/// A growth, and putting the same vectors.
fn one_growth<S: Storage>(bench: &Bench, vectors: &mut Vectors, distinct: u64) -> Result<[f64; 2]> {
    let slots = (distinct as f64 / 0.8) as u64;
    let width = vectors.width;
    let new = |slots| VectorTable::<S>::builder(width).capacity(slots).build(&bench.device);
    let larger = new(2 * slots)?;
    let mut once = bench.upload(width, &{
        let table = new(slots)?;
        bench.find_or_put(&table, vectors)?;
        let rows = table.iter().map(|row| row.map(|(_, vector)| vector)).collect::<warpset::Result<Vec<_>>>()?;
        rows.concat()
    })?;
    medians(|| {
        let table = new(slots)?;
        assert_eq!(bench.find_or_put(&table, &mut once)?.1.hits, distinct);
        let grown = time(|| Ok(table.grow(2 * slots)?))?;
        assert_eq!(table.len()?, distinct);
        larger.clear()?;
        let put = time(|| {
            assert_eq!(bench.find_or_put(&larger, &mut once)?.1.hits, distinct);
            Ok(())
        })?;
        Ok([grown, put])
    })
}

/// A fill from device memory with growing, and without.
fn fill_from_device<S: Storage>(bench: &Bench, vectors: &Vectors, distinct: u64) -> Result<[f64; 2]> {
    const PIECE: usize = 1 << 20;
    let fill = |slots: u64| -> Result<f64> {
        let table = VectorTable::<S>::builder(vectors.width).capacity(slots).build(&bench.device)?;
        let mut counts = bench.stream.alloc_zeros::<Counts>(1)?;
        bench.stream.synchronize()?;
        let milliseconds = time(|| {
            for first in (0..vectors.count).step_by(PIECE) {
                let count = PIECE.min(vectors.count - first);
                if (table.len()? + count as u64) as f64 > 0.85 * table.slots() as f64 {
                    table.reserve(4 * table.slots())?;
                }
                let words = vectors.words.slice(first * vectors.width..(first + count) * vectors.width);
                table.find_or_put_device(&bench.stream, DeviceBatch::new(&words, count).counts(&mut counts))?;
                bench.stream.synchronize()?;
            }
            Ok(())
        })?;
        assert_eq!(bench.stream.clone_dtoh(&counts)?[0].hits, distinct);
        Ok(milliseconds)
    };
    medians(|| Ok([fill(1 << 20)?, fill(2 * vectors.count as u64)?]))
}

/// Fills by one batch from the host.
fn fill_from_host<S: Storage>(bench: &Bench, words: &[u32], width: usize, distinct: u64) -> Result<[f64; 2]> {
    let fill = |slots: u64| -> Result<f64> {
        let table = VectorTable::<S>::builder(width).capacity(slots).grows(true).build(&bench.device)?;
        time(|| {
            let tally = table.find_or_put_many_with(words, Request::new())?.complete(&table)?;
            assert_eq!(tally.new, distinct);
            Ok(())
        })
    };
    medians(|| Ok([fill(1 << 20)?, fill(2 * (words.len() / width) as u64)?]))
}

fn rows<S: Storage>(bench: &Bench, name: &str, width: usize, log2: u32) -> Result<()> {
    // Trees whose nodes fit the cache can lose most.
    let values = if name == "tree" { Compression::NearMinimum.values(width, log2)? } else { 0 };
    let mut vectors = bench.vectors_of(width, 1 << log2, 2.0, values)?;
    let words = bench.stream.clone_dtoh(&vectors.words)?;
    let table = VectorTable::<S>::builder(width).capacity(vectors.count as u64).build(&bench.device)?;
    let distinct = bench.find_or_put(&table, &mut vectors)?.1.hits;
    drop(table);
    let [grown, put] = one_growth::<S>(bench, &mut vectors, distinct)?;
    let [growing, large] = fill_from_device::<S>(bench, &vectors, distinct)?;
    let [host_growing, host_large] = fill_from_host::<S>(bench, &words, width, distinct)?;
    println!(
        "| {name} | {width} | {grown:.1} | {put:.1} | {:.2} | {growing:.0} | {large:.0} | {:.2} | {host_growing:.0} | {host_large:.0} | {:.2} |",
        grown / put,
        growing / large,
        host_growing / host_large
    );
    Ok(())
}

fn main() -> Result<()> {
    let Some(bench) = Bench::open()? else { return Ok(()) };
    let log2: u32 = std::env::var("WARPSET_BENCH_LOG2").map_or(Ok(26), |text| text.parse())?;
    println!("{}, 2^{log2} vectors, duplication 2, ms, medians of {REPEATS}\n", bench.device);
    println!(
        "| table | words | one growth | putting | ratio | fill, growing | large | ratio | from the host, growing | large | ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for width in [2, 8] {
        rows::<Bucket>(&bench, "bucket", width, log2)?;
    }
    rows::<Tree>(&bench, "tree", 8, log2)
}
