//! Recorded vectors of model checkers as a benchmark, beside table 8.2 of Bergsma's thesis (2019).
//!
//! `WARPSET_TRACES` names a folder of `.npz` files, which `explore MODEL --record FILE` writes; `--unpacked` records a word for
//! each variable, as the thesis has. `cargo bench --bench replayed` prints a Markdown table: for each file milliseconds of
//! find-or-put by the bucket table, by the tree table, and by the thesis' uncompressed table, re-implemented from its text, with
//! its best bucket and hash. Then it prints the thesis' own rows. Tables are filled to 0.25, node tables are half full, and all
//! vectors are one batch in device memory. Medians of 5, by device events; every count is checked.
//!
//! The thesis' table cannot store words whose top bit is set, nor vectors whose first word is 0. It gets words that are greater
//! by one, where that avoids both, and otherwise the row has no figure of it.

#[path = "../../../benches/support/mod.rs"]
mod support;

use std::path::Path;
use support::card::{Card, TITAN_XP};
use support::thesis::{Thesis, Variant};
use support::{Bench, Result, Vectors, measure_table};
use warpset::{BucketTable, TreeTable};

const REPEATS: usize = 5;
/// As full as the thesis' tables of random vectors.
const FILL: f64 = 0.25;
const NODE_FILL: f64 = 0.5;
const ROWS: &str = include_str!("../../../benches/sources/recorded.csv");

fn main() -> Result<()> {
    let Some(folder) = std::env::var_os("WARPSET_TRACES") else {
        println!("skipped: WARPSET_TRACES does not name a folder of recorded vectors");
        return Ok(());
    };
    let Some(bench) = Bench::open()? else { return Ok(()) };
    let mut files = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.retain(|file| file.extension().is_some_and(|extension| extension == "npz"));
    files.sort();
    let card = Card::of(&bench.device).ok_or("the driver does not say which card this is")?;
    println!("{card}: {}. Milliseconds, medians of {REPEATS}.\n", card.times(TITAN_XP));
    println!(
        "| recorded | words | vectors | duplication | ratio | bucket | tree | tree / bucket | seen: bucket | tree | thesis, \
         re-implemented |\n|{}",
        "---|".repeat(11)
    );
    for file in files {
        compare(&bench, &file)?;
    }
    println!("\nThe thesis' rows, on a Titan Xp:\n");
    println!(
        "| model | words | vectors | duplication | ratio | uncompressed | recursive | less recursive | less recursive, 64 bits | \
         non-recursive | best compressed / uncompressed |\n|{}",
        "---|".repeat(11)
    );
    for row in ROWS.lines().skip(1) {
        println!("| {} |", row.replace(',', " | "));
    }
    Ok(())
}

/// Measures and prints one file.
fn compare(bench: &Bench, file: &Path) -> Result<()> {
    let (words, width) = warpset_replay::read(file)?;
    let mut vectors = bench.upload(width, &words)?;
    let count = vectors.count as u64;
    let distinct = {
        let table = BucketTable::new(&bench.device, width, count)?;
        bench.find_or_put(&table, &mut vectors)?.1.hits
    };
    let slots = (distinct as f64 / FILL) as u64;
    let bucket = measure_table(bench, &BucketTable::new(&bench.device, width, slots)?, &mut vectors, distinct, REPEATS)?;
    // The number of nodes is measured with a table that has room for all.
    let most = (distinct * (width as u64).saturating_sub(2)).clamp(1, u64::from(u32::MAX) - 1);
    let nodes = {
        let table = TreeTable::builder(width).capacity(slots).nodes(most).build(&bench.device)?;
        bench.find_or_put(&table, &mut vectors)?;
        table.stats()?.nodes
    };
    let node_slots = (nodes as f64 / NODE_FILL).max(1024.0) as u64;
    let table = TreeTable::builder(width).capacity(slots).nodes(node_slots).build(&bench.device)?;
    let tree = measure_table(bench, &table, &mut vectors, distinct, REPEATS)?;
    let ratio = table.stats()?.compression_ratio();
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let thesis = thesis(bench, words, width, slots, distinct)?.map_or_else(|| "-".into(), |time| format!("{time:.3}"));
    println!(
        "| {name} | {width} | {count} | {:.1} | {ratio:.2} | {:.3} | {:.3} | {:.2} | {:.3} | {:.3} | {thesis} |",
        count as f64 / distinct as f64,
        bucket[0],
        tree[0],
        tree[0] / bucket[0],
        bucket[1],
        tree[1],
    );
    Ok(())
}

/// Milliseconds of the thesis' uncompressed table, if it can store these vectors.
fn thesis(bench: &Bench, mut words: Vec<u32>, width: usize, slots: u64, distinct: u64) -> Result<Option<f64>> {
    if width > 32 || words.iter().any(|word| *word >= i32::MAX as u32) {
        return Ok(None);
    }
    words.iter_mut().for_each(|word| *word += 1);
    let mut vectors: Vectors = bench.upload(width, &words)?;
    let mut best = f64::INFINITY;
    for variant in Variant::all(width) {
        best = best.min(Thesis::new(bench, width, slots, variant)?.measure(&mut vectors, distinct, REPEATS)?.0);
    }
    Ok(Some(best))
}
