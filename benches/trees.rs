//! The tree table on the GPU, against the bucket table.
//!
//! Axes: words a vector {4, 8, 16, 32} x compression {near the minimum, where all nodes fit the GPU's cache; 0.73, where most
//! nodes are new} x {duplication 2 into an empty table; the same again, all seen} x {bucket table, tree table}. All in one
//! process, on the same vectors: 2^27 of them (WARPSET_BENCH_LOG2 sets another power of two), fill 0.7, the node table half full.
//! Medians of 5, by device events. Every count is checked.
//!
//! `cargo bench --bench trees` prints a Markdown table, in 10^9 vectors a second. WARPSET_BENCH_WIDTHS=4,8 measures only these.

mod support;

use support::{Bench, Compression, Result, Vectors, measure_table};
use warpset::{BucketTable, TreeTable};

const REPEATS: usize = 5;
const FILL: f64 = 0.7;
const NODE_FILL: f64 = 0.5;

fn main() -> Result<()> {
    let Some(bench) = Bench::open()? else { return Ok(()) };
    let log2: u32 = std::env::var("WARPSET_BENCH_LOG2").map_or(Ok(27), |text| text.parse())?;
    let widths = std::env::var("WARPSET_BENCH_WIDTHS").unwrap_or("4,8,16,32".into());
    println!(
        "{}, 2^{log2} vectors, duplication 2, fill {FILL}, node table {NODE_FILL} full, G/s, medians of {REPEATS}\n",
        bench.device
    );
    println!(
        "| words | values a word | compression ratio | nodes | bytes a vector | tree | seen | bucket | seen | bucket / tree | seen |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for width in widths.split(',').map(str::parse::<usize>) {
        let width = width?;
        for compression in [Compression::NearMinimum, Compression::Ratio073] {
            let values = compression.values(width, log2)?;
            compare(&bench, &mut bench.vectors_of(width, 1 << log2, 2.0, values)?, values)?;
        }
    }
    Ok(())
}

/// Measures and prints one row.
fn compare(bench: &Bench, vectors: &mut Vectors, values: u32) -> Result<()> {
    let (width, count) = (vectors.width, vectors.count as u64);
    let distinct = {
        let table = BucketTable::new(&bench.device, width, count)?;
        bench.find_or_put(&table, vectors)?.1.hits
    };
    let slots = (distinct as f64 / FILL) as u64;
    let bucket = measure_table(bench, &BucketTable::new(&bench.device, width, slots)?, vectors, distinct, REPEATS)?;
    // The number of nodes is measured with a table that has room for all.
    let most = (distinct * (width as u64 - 2)).min(u64::from(u32::MAX) - 1);
    let nodes = {
        let table = TreeTable::builder(width).capacity(slots).nodes(most).build(&bench.device)?;
        bench.find_or_put(&table, vectors)?;
        table.stats()?.nodes
    };
    let table = TreeTable::builder(width).capacity(slots).nodes((nodes as f64 / NODE_FILL) as u64).build(&bench.device)?;
    let tree = measure_table(bench, &table, vectors, distinct, REPEATS)?;
    let stats = table.stats()?;
    let rate = |milliseconds: f64| count as f64 / milliseconds / 1e6;
    println!(
        "| {width} | {values} | {:.3} | {:.2} M | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
        stats.compression_ratio(),
        stats.nodes as f64 / 1e6,
        8.0 / FILL + 8.0 * stats.nodes as f64 / NODE_FILL / distinct as f64,
        rate(tree[0]),
        rate(tree[1]),
        rate(bucket[0]),
        rate(bucket[1]),
        tree[0] / bucket[0],
        tree[1] / bucket[1],
    );
    Ok(())
}
