//! The build strategies of the tree table on the GPU, and the thesis' own tree tables.
//!
//! Axes: words a vector {4, 8, 16, 32} x compression {near the minimum, 0.73} x {duplication 2 into an empty table; the same
//! vectors again, all seen} x {every strategy; the thesis' recursive and non-recursive tables}, as in section 4.2 of the thesis
//! (Bergsma 2019). One process measures all of them, on the same 2^25 vectors (WARPSET_BENCH_LOG2 sets another power of two).
//! The root table is filled to 0.7. The node table is half full with the nodes of the default strategy. The thesis' single table
//! has as many bytes as our two tables together. Medians of 3 by device events. Every count is checked.
//!
//! `cargo bench --bench strategies` prints a Markdown table for each compression, in 10^9 vectors a second: find-or-put into an
//! empty table / all seen. WARPSET_BENCH_WIDTHS=4,8 measures only these.

mod support;

use rayon::prelude::*;
use support::thesis_tree::ThesisTree;
use support::{Bench, Compression, Result, Vectors, measure_table};
use warpset::{Pairing, Strategy, TreeTable};

const REPEATS: usize = 3;
const FILL: f64 = 0.7;
const NODE_FILL: f64 = 0.5;

/// Results for one width: the compression ratios of neighboured and of interleaved pairs, and a cell for each row of the table.
struct Column {
    ratios: [f64; 2],
    cells: Vec<String>,
}

fn main() -> Result<()> {
    let Some(bench) = Bench::open()? else { return Ok(()) };
    let log2: u32 = std::env::var("WARPSET_BENCH_LOG2").map_or(Ok(25), |text| text.parse())?;
    let widths = std::env::var("WARPSET_BENCH_WIDTHS").unwrap_or("4,8,16,32".into());
    let widths = widths.split(',').map(str::parse).collect::<std::result::Result<Vec<usize>, _>>()?;
    println!(
        "{}, 2^{log2} vectors, duplication 2, fill {FILL}, node table {NODE_FILL} full, G/s new / seen, medians of {REPEATS}",
        bench.device
    );
    compile(&bench, &widths)?;
    for compression in [Compression::NearMinimum, Compression::Ratio073] {
        let mut columns = Vec::new();
        for width in &widths {
            let values = compression.values(*width, log2)?;
            columns.push(column(&bench, &mut bench.vectors_of(*width, 1 << log2, 2.0, values)?)?);
        }
        let head = |cells: Vec<String>| println!("| {} |", cells.join(" | "));
        println!();
        head(["strategy".into()].into_iter().chain(widths.iter().map(|width| format!("{width} words"))).collect());
        println!("|{}", "---|".repeat(widths.len() + 1));
        for (which, pairing) in ["neighboured", "interleaved"].into_iter().enumerate() {
            let ratios = columns.iter().map(|column| format!("{:.3}", column.ratios[which]));
            head([format!("*compression ratio, {pairing}*")].into_iter().chain(ratios).collect());
        }
        let names = Strategy::ALL.map(|strategy| format!("`{strategy}`")).into_iter();
        let names = names.chain(["thesis, recursive".into(), "thesis, `1_np_sm`".into()]);
        for (row, name) in names.enumerate() {
            head([name].into_iter().chain(columns.iter().map(|column| column.cells[row].clone())).collect());
        }
    }
    Ok(())
}

/// Makes the kernels of all strategies, on all cores: one after another they would take longer than the measurements.
fn compile(bench: &Bench, widths: &[usize]) -> Result<()> {
    let specs: Vec<_> = widths.iter().flat_map(|width| Strategy::ALL.map(|strategy| (*width, strategy))).collect();
    specs.into_par_iter().try_for_each(|(width, strategy)| {
        TreeTable::builder(width).capacity(1).strategy(strategy).build(&bench.device).map(drop)
    })?;
    Ok(())
}

/// Measures all strategies, and the thesis' tables, for one width and compression.
fn column(bench: &Bench, vectors: &mut Vectors) -> Result<Column> {
    let (width, count) = (vectors.width, vectors.count as u64);
    let table = |capacity: u64, nodes: u64, strategy| {
        TreeTable::builder(width).capacity(capacity).nodes(nodes).strategy(strategy).build(&bench.device)
    };
    // The number of nodes is measured with a table that has room for all.
    let most = (count * (width as u64 - 2)).min(u64::from(u32::MAX) - 1);
    let mut counted = Vec::new();
    for strategy in [Strategy::DEFAULT, Strategy::LD_IP_SM] {
        let table = table(count, most, strategy)?;
        let (_, counts) = bench.find_or_put(&table, vectors)?;
        counted.push((counts.hits, table.nodes()?));
    }
    let [(distinct, neighboured), (also_distinct, interleaved)] = counted[..] else { unreachable!("two strategies") };
    assert_eq!(distinct, also_distinct, "all strategies are the same set");
    let slots = (distinct as f64 / FILL) as u64;
    let node_slots = |nodes: u64| (nodes as f64 / NODE_FILL) as u64;
    let ratios = [neighboured, interleaved].map(|nodes| (nodes + distinct) as f64 * 2.0 / (distinct * width as u64) as f64);
    let mut column = Column { ratios, cells: Vec::new() };
    let mut cell = |[fresh, seen]: [f64; 2]| {
        let rate = |milliseconds: f64| count as f64 / milliseconds / 1e6;
        column.cells.push(format!("{:.2} / {:.2}", rate(fresh), rate(seen)));
    };
    for strategy in Strategy::ALL {
        // Halved trees of these widths equal neighboured ones.
        let nodes = if strategy.pairing() == Pairing::Interleaved { interleaved } else { neighboured };
        let table = table(slots, node_slots(nodes), strategy)?;
        cell(measure_table(bench, &table, vectors, distinct, REPEATS)?);
        // A pair of words and one of references may be equal by chance, and then are one node.
        let found = table.nodes()?;
        assert!(found.abs_diff(nodes) <= 100 + nodes / 1000, "{strategy}: {found} nodes, not {nodes}");
    }
    for recursive in [true, false] {
        let mut table = ThesisTree::new(bench, width, slots + node_slots(neighboured), recursive)?;
        cell(table.measure(vectors, distinct, REPEATS)?);
    }
    Ok(column)
}
