//! Find-or-put of vectors of every width, in every layout of a table that stores them whole.
//!
//! Axes: words a vector {1 to 16, 24, 32, 64} x layout {bucket table with padded slots; with dense slots, where these differ;
//! indexed table} x fill {0.25, 0.7, 0.9} x {duplication 2 into an empty table; the same again, all seen}. 2^27 vectors of up to
//! 16 words, 2^26 of 24 and 32, 2^25 of more (WARPSET_BENCH_LOG2 sets another power of two for all), made on the GPU. Medians of
//! 3, by device events. Every count is checked. `bytes` are those of the table for each vector stored, at fill 0.7.
//!
//! `cargo bench --bench widths` prints a Markdown table, in 10^9 vectors a second: new | seen. WARPSET_BENCH_WIDTHS=3,8 measures
//! only these, WARPSET_BENCH_LAYOUTS=padded,dense,indexed only these.

mod support;

use support::{Bench, Result, Vectors, measure_table};
use warpset::{BucketTable, IndexedTable, Storage, VectorTable};

const REPEATS: usize = 3;
const FILLS: [f64; 3] = [0.25, 0.7, 0.9];

fn main() -> Result<()> {
    let Some(bench) = Bench::open()? else { return Ok(()) };
    let variable = |name: &str, otherwise: &str| std::env::var(name).unwrap_or(otherwise.into());
    let widths = variable("WARPSET_BENCH_WIDTHS", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,24,32,64");
    let layouts = variable("WARPSET_BENCH_LAYOUTS", "padded,dense,indexed");
    println!("{}, duplication 2, G/s new \\| seen, medians of {REPEATS}\n", bench.device);
    println!("| words | layout | bytes | fill 0.25 | 0.7 | 0.9 |\n|---|---|---|---|---|---|");
    for width in widths.split(',').map(str::parse::<usize>) {
        let width = width?;
        let log2: u32 = match std::env::var("WARPSET_BENCH_LOG2") {
            Ok(text) => text.parse()?,
            Err(_) if width <= 16 => 27,
            Err(_) if width <= 32 => 26,
            Err(_) => 25,
        };
        let mut vectors = bench.vectors(width, 1 << log2, 2.0)?;
        let distinct = {
            let table = BucketTable::new(&bench.device, width, vectors.count as u64)?;
            bench.find_or_put(&table, &mut vectors)?.1.hits
        };
        let dense = |slots| BucketTable::builder(width).capacity(slots).dense(true).build(&bench.device);
        let padded = |slots| BucketTable::builder(width).capacity(slots).build(&bench.device);
        let indexed = |slots| IndexedTable::builder(width).capacity(slots).build(&bench.device);
        for layout in layouts.split(',') {
            match layout {
                "padded" => row(&bench, &mut vectors, distinct, layout, padded)?,
                // One word or two, and multiples of four, are never padded.
                "dense" if width > 2 && !width.is_multiple_of(4) => row(&bench, &mut vectors, distinct, layout, dense)?,
                "dense" => {}
                "indexed" => row(&bench, &mut vectors, distinct, layout, indexed)?,
                other => return Err(format!("no layout {other}").into()),
            }
        }
    }
    Ok(())
}

/// Measures and prints one layout, in tables of as many slots as its fills need.
fn row<S: Storage>(
    bench: &Bench,
    vectors: &mut Vectors,
    distinct: u64,
    layout: &str,
    table: impl Fn(u64) -> warpset::Result<VectorTable<S>>,
) -> Result<()> {
    let (mut bytes, mut rates) = (0.0, Vec::new());
    for fill in FILLS {
        let table = table((distinct as f64 / fill) as u64)?;
        let [new, seen] = measure_table(bench, &table, vectors, distinct, REPEATS)?;
        if fill == 0.7 {
            bytes = table.bytes() as f64 / distinct as f64;
        }
        rates.push([new, seen].map(|milliseconds| format!("{:.1}", vectors.count as f64 / milliseconds / 1e6)).join(" \\| "));
    }
    println!("| {} | {layout} | {bytes:.1} | {} |", vectors.width, rates.join(" | "));
    Ok(())
}
