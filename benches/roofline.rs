//! Find-or-put on the GPU, compared with the limit of the memory, and with the thesis' table.
//!
//! Axes: words a vector {2, 4, 8, 16, 32} x fill {0.25, 0.7, 0.9, 0.95} x {duplication 2 into an empty table; the same again, all
//! seen} x implementation {warpset; the placement-only kernel, kernels/placement.cu; the thesis' table at its best variant of
//! bucket size 4 to 32, sequential or parallel hash, linear probing or not, kernels/thesis.cu}. Beside each rate of warpset: a
//! bound that no table can pass on this GPU (support/limits.rs), the accesses that set it, and warpset's share. All in one
//! process, on the same vectors: 2^27 of them (WARPSET_BENCH_LOG2 sets another power of two), so that tables are several times
//! the L2. Medians of 5, of 3 for the thesis, by device events. `fill` is stored at the end / slots.
//!
//! `cargo bench --bench roofline` prints a Markdown table, in 10^9 vectors a second. WARPSET_BENCH_WIDTHS=2,8 measures only
//! these.

mod support;

use support::limits::{Bound, Limits};
use support::thesis::{Thesis, Variant};
use support::{Bench, PlacementOnly, Result, Vectors, measure_table};
use warpset::BucketTable;

const REPEATS: usize = 5;
const FILLS: [f64; 4] = [0.25, 0.7, 0.9, 0.95];

fn main() -> Result<()> {
    let Some(bench) = Bench::open()? else { return Ok(()) };
    let log2: u32 = std::env::var("WARPSET_BENCH_LOG2").map_or(Ok(27), |text| text.parse())?;
    let widths = std::env::var("WARPSET_BENCH_WIDTHS").unwrap_or("2,4,8,16,32".into());
    println!(
        "{}, 2^{log2} vectors, duplication 2 (drawn from a pool of half as many), G/s, medians of {REPEATS}\n",
        bench.device
    );
    println!(
        "| words | fill | dup 2 | of bound | bound | placement | thesis | its bucket, hash | seen | of bound | bound | placement | thesis | its bucket, hash |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for width in widths.split(',').map(str::parse::<usize>) {
        let width = width?;
        let mut vectors = bench.vectors(width, 1 << log2, 2.0)?;
        let distinct = {
            let table = BucketTable::new(&bench.device, width, vectors.count as u64)?;
            bench.find_or_put(&table, &mut vectors)?.1.hits
        };
        for fill in FILLS {
            measure(&bench, &mut vectors, distinct, fill)?;
        }
    }
    Ok(())
}

/// Measures and prints one row.
fn measure(bench: &Bench, vectors: &mut Vectors, distinct: u64, fill: f64) -> Result<()> {
    let slots = (distinct as f64 / fill) as u64;
    let Ours { times, placement, bounds } = measure_ours(bench, vectors, distinct, slots)?;
    let mut fastest = [(f64::INFINITY, String::new()), (f64::INFINITY, String::new())];
    for variant in Variant::all(vectors.width) {
        let (fresh, seen) = Thesis::new(bench, vectors.width, slots, variant)?.measure(vectors, distinct, 3)?;
        for (best, time) in fastest.iter_mut().zip([fresh, seen]) {
            if time < best.0 {
                *best = (time, variant.to_string());
            }
        }
    }
    let rate = |milliseconds: f64| vectors.count as f64 / milliseconds / 1e6;
    print!("| {} | {fill} |", vectors.width);
    for i in 0..2 {
        let Bound { milliseconds, of } = bounds[i];
        let (thesis, variant) = &fastest[i];
        print!(" {:.2} | {:.0} % | {:.2} {of} |", rate(times[i]), 100.0 * milliseconds / times[i], rate(milliseconds));
        print!(" {:.2} | {:.2} | {variant} |", rate(placement[i]), rate(*thesis));
    }
    println!();
    Ok(())
}

/// Measurements of warpset: for the vectors in an empty table, and again when all are seen.
struct Ours {
    /// Milliseconds.
    times: [f64; 2],
    /// Milliseconds of the placement-only kernel.
    placement: [f64; 2],
    bounds: [Bound; 2],
}

fn measure_ours(bench: &Bench, vectors: &mut Vectors, distinct: u64, slots: u64) -> Result<Ours> {
    let table = BucketTable::new(&bench.device, vectors.width, slots)?;
    let times = measure_table(bench, &table, vectors, distinct, REPEATS)?;
    let limits = Limits::new(bench, &table, vectors, distinct, REPEATS)?;
    let bounds = [distinct, 0].map(|fresh| limits.bound(vectors, table.spec().slot_words(), fresh));
    // The placement-only kernel needs the outcomes of a batch that was put into the empty table.
    table.clear()?;
    bench.find_or_put(&table, vectors)?;
    let mut placement = PlacementOnly::new(bench, &table, vectors)?;
    let placement = [placement.fresh(vectors, REPEATS)?, placement.seen(vectors, REPEATS)?];
    Ok(Ours { times, placement, bounds })
}
