//! Find-or-put of skewed vectors beside uniform ones: equal vectors that are put at once compete for one slot.
//!
//! Axes: words a vector {1, 2, 4, 8, 32} x distribution {uniform over half as many vectors; Zipf with exponent 1 over as many
//! vectors; 25 distinct vectors; one vector} x {into an empty table; the same again, all seen}. 10^7 vectors in device memory in
//! each case (WARPSET_BENCH_COUNT sets another number), in a table of as many slots. Medians of 5, by device events. Every count
//! is checked.
//!
//! `cargo bench --bench skew` prints a Markdown table, in 10^9 vectors a second: new | seen. WARPSET_BENCH_WIDTHS=2,8 measures
//! only these.

mod support;

use rand::{Rng, RngExt, SeedableRng, rngs::StdRng};
use std::collections::HashSet;
use support::{Bench, Result, measure_table};
use warpset::BucketTable;

const REPEATS: usize = 5;

fn main() -> Result<()> {
    let Some(bench) = Bench::open()? else { return Ok(()) };
    let widths = std::env::var("WARPSET_BENCH_WIDTHS").unwrap_or("1,2,4,8,32".into());
    let count: usize = std::env::var("WARPSET_BENCH_COUNT").unwrap_or("10000000".into()).parse()?;
    let mut random = StdRng::seed_from_u64(1);
    let zipf = zipf(&mut random, count);
    let distributions = [
        ("uniform", uniform(&mut random, count, count / 2)),
        ("Zipf 1.0", zipf),
        ("25 distinct", uniform(&mut random, count, 25)),
        ("one", vec![0; count]),
    ];
    println!("{}, {count} vectors, G/s new \\| seen, medians of {REPEATS}\n", bench.device);
    println!("| words | {} |", distributions.each_ref().map(|(name, _)| *name).join(" | "));
    println!("|---{}|", "|---".repeat(distributions.len()));
    for width in widths.split(',').map(str::parse::<usize>) {
        let width = width?;
        let mut rates = Vec::new();
        for (_, choices) in &distributions {
            let words: Vec<u32> = choices.iter().flat_map(|choice| vector(*choice, width)).collect();
            let distinct = choices.iter().collect::<HashSet<_>>().len() as u64;
            let table = BucketTable::new(&bench.device, width, count as u64)?;
            let times = measure_table(&bench, &table, &mut bench.upload(width, &words)?, distinct, REPEATS)?;
            rates.push(times.map(|milliseconds| format!("{:.1}", count as f64 / milliseconds / 1e6)).join(" \\| "));
        }
        println!("| {width} | {} |", rates.join(" | "));
    }
    Ok(())
}

/// The vector with this number: different numbers have different first words.
fn vector(number: u32, width: usize) -> impl Iterator<Item = u32> {
    (0..width as u32).map(move |word| number.wrapping_add(word.wrapping_mul(0x85eb_ca6b)).wrapping_mul(0x9e37_79b1))
}

/// Numbers of `count` vectors, each drawn from `distinct` with equal chances.
fn uniform(random: &mut impl Rng, count: usize, distinct: usize) -> Vec<u32> {
    (0..count).map(|_| random.random_range(0..distinct as u32)).collect()
}

/// Numbers of `count` vectors: of `count` vectors, the one with number k is drawn with a chance in proportion to 1 / (k + 1).
fn zipf(random: &mut impl Rng, count: usize) -> Vec<u32> {
    let mut sums = Vec::with_capacity(count);
    let mut sum = 0.0;
    for rank in 1..=count {
        sum += 1.0 / rank as f64;
        sums.push(sum);
    }
    (0..count)
        .map(|_| {
            let drawn = random.random_range(0.0..sum);
            sums.partition_point(|sum| *sum <= drawn) as u32
        })
        .collect()
}
