//! Find-or-put in bulk beside ordinary find-or-put, of the same batches in device memory.
//!
//! Three tables, for vectors of 2 words, of 1 and of 4 (WARPSET_BENCH_WIDTHS=2 measures only these):
//!
//! - A batch into an empty table: duplication {2, 1} x fill at the end {0.25, 0.7, 0.9, 0.95}, counts only and with outcomes.
//!   2^27 vectors (WARPSET_BENCH_LOG2 sets another power of two).
//! - A batch into a table that is 0.3 full, half of it seen: vectors / slots from 1/16 to 1. It shows where bulk begins to pay.
//! - Skewed batches: with u random, vector number n u^3, n u^6, one of 1,024 vectors, one vector.
//!
//! Every count is checked: both ways find as many new vectors, and none is full. Medians of 5 by device events; both ways
//! alternate. The scratch memory is kept from one batch to the next, so no time has its allocation.
//!
//! `cargo bench --bench bulk` prints Markdown tables, in 10^9 vectors a second: ordinary, bulk, their ratio.

mod support;

use support::{Bench, Result, Vectors, median};
use warpset::BucketTable;
use warpset::gpu::{Bulk, Counts, DeviceBatch};

const REPEATS: usize = 5;
const WAYS: [Bulk; 2] = [Bulk::Never, Bulk::Always];

/// Puts the vectors. Returns milliseconds, and the counts.
fn put(bench: &Bench, table: &BucketTable, vectors: &mut Vectors, bulk: Bulk, outcomes: bool) -> Result<(f64, Counts)> {
    let mut counts = bench.stream.alloc_zeros::<Counts>(1)?;
    let milliseconds = bench.time(|| {
        let batch = DeviceBatch::new(&vectors.words, vectors.count).counts(&mut counts).bulk(bulk);
        let batch = if outcomes { batch.outcomes(&mut vectors.outcomes) } else { batch };
        Ok(table.find_or_put_device(&bench.stream, batch)?)
    })?;
    Ok((milliseconds, bench.stream.clone_dtoh(&counts)?[0]))
}

/// Median milliseconds of ordinary find-or-put and of bulk. `prepare` empties or fills the table before each.
fn both(
    bench: &Bench,
    table: &BucketTable,
    vectors: &mut Vectors,
    outcomes: bool,
    prepare: &mut dyn FnMut() -> Result<()>,
) -> Result<([f64; 2], u64)> {
    let (mut times, mut new) = ([Vec::new(), Vec::new()], None);
    for repeat in 0..=REPEATS {
        for (way, times) in WAYS.into_iter().zip(&mut times) {
            prepare()?;
            let (time, counts) = put(bench, table, vectors, way, outcomes)?;
            assert_eq!((counts.offered, counts.full), (vectors.count as u64, 0), "{way:?}");
            assert_eq!(*new.get_or_insert(counts.hits), counts.hits, "{way:?} finds as many new vectors");
            // Kernels are compiled in round 0.
            if repeat > 0 {
                times.push(time);
            }
        }
    }
    Ok((times.map(median), new.unwrap_or(0)))
}

fn rates(count: usize, times: [f64; 2]) -> String {
    let [direct, bulk] = times.map(|time| count as f64 / time / 1e6);
    format!("{direct:.1} | {bulk:.1} | {:.2}", bulk / direct)
}

fn into_empty(bench: &Bench, width: usize, count: usize) -> Result<()> {
    for duplication in [2.0, 1.0] {
        let mut vectors = bench.vectors(width, count, duplication)?;
        let distinct = {
            let table = BucketTable::new(&bench.device, width, count as u64 * 5 / 4)?;
            bench.find_or_put(&table, &mut vectors)?.1.hits
        };
        for fill in [0.25, 0.7, 0.9, 0.95] {
            let table = BucketTable::new(&bench.device, width, (distinct as f64 / fill) as u64)?;
            let mut clear = || -> Result<()> { Ok(table.clear()?) };
            let (tally, _) = both(bench, &table, &mut vectors, false, &mut clear)?;
            let (outcomes, new) = both(bench, &table, &mut vectors, true, &mut clear)?;
            assert_eq!(new, distinct);
            let (tally, outcomes) = (rates(count, tally), rates(count, outcomes));
            println!("| {width} | {duplication} | {fill} | {tally} | {outcomes} |");
        }
    }
    Ok(())
}

fn into_filled(bench: &Bench, width: usize, slots: u64) -> Result<()> {
    let all = bench.vectors(width, slots as usize, 1.0)?;
    let stored = (slots as f64 * 0.3 / 0.63) as usize;
    let table = BucketTable::new(&bench.device, width, slots)?;
    for log2 in (0..=4).rev() {
        let count = (slots as usize) >> log2;
        // Half of the batch are vectors that are stored already, if there are as many.
        let first = stored.saturating_sub(count / 2).min(all.count - count);
        let words = bench.stream.clone_dtod(&all.words.slice(first * width..(first + count) * width))?;
        let mut batch = Vectors { width, count, words, outcomes: bench.stream.alloc_zeros(count)? };
        let mut refill = || -> Result<()> {
            table.clear()?;
            Ok(table.find_or_put_device(&bench.stream, DeviceBatch::new(&all.words, stored))?)
        };
        let (tally, _) = both(bench, &table, &mut batch, false, &mut refill)?;
        let (outcomes, _) = both(bench, &table, &mut batch, true, &mut refill)?;
        println!("| {width} | 1/{} | {} | {} |", 1 << log2, rates(count, tally), rates(count, outcomes));
    }
    Ok(())
}

fn skewed(bench: &Bench, width: usize, count: usize) -> Result<()> {
    let pool = count / 2;
    let number = |kind: usize, at: usize| -> u32 {
        let random = (at as u64 + 7).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let random = (random ^ random >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let u = ((random ^ random >> 32) >> 11) as f64 / (1u64 << 53) as f64;
        match kind {
            0 => (u.powi(3) * pool as f64) as u32,
            1 => (u.powi(6) * pool as f64) as u32,
            2 => (u * 1024.0) as u32,
            _ => 0,
        }
    };
    for (kind, name) in ["n u^3", "n u^6", "1,024 vectors", "one vector"].into_iter().enumerate() {
        let word = |number: u32, at: u32| (number + at * 7919).wrapping_mul(0x9e37_79b1);
        let mut words = Vec::with_capacity(count * width);
        for number in (0..count).map(|at| number(kind, at)) {
            words.extend((0..width as u32).map(|at| word(number, at)));
        }
        let mut vectors = bench.upload(width, &words)?;
        let table = BucketTable::new(&bench.device, width, (pool as f64 / 0.7) as u64)?;
        let mut clear = || -> Result<()> { Ok(table.clear()?) };
        let (tally, _) = both(bench, &table, &mut vectors, false, &mut clear)?;
        let (outcomes, _) = both(bench, &table, &mut vectors, true, &mut clear)?;
        println!("| {width} | {name} | {} | {} |", rates(count, tally), rates(count, outcomes));
    }
    Ok(())
}

fn main() -> Result<()> {
    let Some(bench) = Bench::open()? else { return Ok(()) };
    let log2: u32 = std::env::var("WARPSET_BENCH_LOG2").map_or(Ok(27), |text| text.parse())?;
    let widths = std::env::var("WARPSET_BENCH_WIDTHS").unwrap_or("2,1,4".into());
    let widths: Vec<usize> = widths.split(',').map(str::parse).collect::<std::result::Result<_, _>>()?;
    let header = |what| {
        let line = format!("| words | {what} | counts | bulk | ratio | outcomes | bulk | ratio |");
        println!("\n{line}\n{}|", "|---".repeat(line.matches('|').count() - 1));
    };
    println!("{}, 2^{log2} vectors, G/s, medians of {REPEATS}", bench.device);
    header("duplication | fill");
    widths.iter().try_for_each(|width| into_empty(&bench, *width, 1 << log2))?;
    header("vectors / slots");
    widths.iter().try_for_each(|width| into_filled(&bench, *width, 1 << log2))?;
    header("skewed");
    widths.iter().try_for_each(|width| skewed(&bench, *width, 1 << log2.min(25)))
}
