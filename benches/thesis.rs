//! The rows of Bergsma's thesis (2019), with random vectors of the same numbers: its tables 5.1 to 5.3 (uncompressed) and 6.3 and
//! 6.4 (compressed), from sources/thesis.csv.
//!
//! Each row has the thesis' milliseconds on a Titan Xp, those of its table re-implemented from the text on this GPU, and those of
//! this crate's table, with the same vectors, as many slots for vectors, and as many slots for nodes. Duplication is offered /
//! distinct. The re-implemented uncompressed table has the row's bucket size, and the faster of its two hash functions. The
//! compressed one has buckets of two entries, the thesis' best, and vectors of 4 or 8 words; of its recursive and its
//! non-recursive form the faster one is printed. Medians of 3, by device events. Every count is checked.
//!
//! `cargo bench --bench thesis` prints two Markdown tables. WARPSET_BENCH_TABLES=5.2,6.4 measures only these.

mod support;

use support::card::{Card, TITAN_XP};
use support::thesis::{Thesis, Variant};
use support::thesis_tree::ThesisTree;
use support::{Bench, Result, Vectors, measure_table};
use warpset::{BucketTable, TreeTable};

const REPEATS: usize = 3;
const ROWS: &str = include_str!("sources/thesis.csv");

/// A row of the thesis.
struct Row {
    /// Its cells before the milliseconds, as printed.
    cells: [&'static str; 8],
    words: usize,
    vectors: usize,
    duplication: f64,
    /// Size of the compressed vectors / of the uncompressed ones. `None`: arbitrary words, without nodes to share.
    ratio: Option<f64>,
    fill: f64,
    bucket: usize,
    probes_linearly: bool,
    milliseconds: f64,
}

impl Row {
    fn read(line: &'static str) -> Result<Self> {
        let cells: [&str; 9] = line.split(',').collect::<Vec<_>>().try_into().map_err(|_| format!("{line}: not 9 cells"))?;
        let [_, words, vectors, duplication, ratio, fill, bucket, probing, milliseconds] = cells;
        Ok(Self {
            cells: cells[..8].try_into()?,
            words: words.parse()?,
            vectors: vectors.parse()?,
            duplication: duplication.parse()?,
            ratio: if ratio.is_empty() { None } else { Some(ratio.parse()?) },
            fill: fill.parse()?,
            bucket: bucket.parse()?,
            probes_linearly: probing == "yes",
            milliseconds: milliseconds.parse()?,
        })
    }

    fn is_compressed(&self) -> bool {
        self.cells[0].starts_with('6')
    }

    /// Random vectors of this row's numbers.
    fn make(&self, bench: &Bench) -> Result<Vectors> {
        bench.vectors_of(self.words, self.vectors, self.vectors as f64 / self.pool(), self.values())
    }

    /// Number of vectors to draw from, so that a draw has `vectors / duplication` distinct ones.
    fn pool(&self) -> f64 {
        // A draw of n from p has p (1 - e^(-n / p)) distinct vectors: with x = n / p, the duplication is x / (1 - e^-x).
        let (mut low, mut high) = (1e-6, 2.0 * self.duplication);
        for _ in 0..60 {
            let x: f64 = (low + high) / 2.0;
            if x / (1.0 - (-x).exp()) < self.duplication { low = x } else { high = x }
        }
        self.vectors as f64 / low
    }

    /// Number of values of a word, for this compression: most nodes of the distinct vectors d are pairs of words.
    fn values(&self) -> u32 {
        let distinct = self.vectors as f64 / self.duplication;
        // nodes + d vectors of 8 bytes each, of d vectors of 4 bytes a word.
        let nodes = self.ratio.map(|ratio| (ratio * self.words as f64 / 2.0 - 1.0) * distinct);
        match (self.words, nodes) {
            // All pairs occur if they are fewer than the vectors: as many nodes as pairs.
            (3 | 4, Some(nodes)) => nodes.max(1.0).sqrt().round() as u32,
            // Two levels of nodes: pairs of pairs are most.
            (8, _) => 16,
            _ => 0,
        }
    }
}

fn main() -> Result<()> {
    let Some(bench) = Bench::open()? else { return Ok(()) };
    let wanted = std::env::var("WARPSET_BENCH_TABLES").ok();
    let is_wanted = |row: &Row| wanted.as_ref().is_none_or(|tables| tables.split(',').any(|table| table == row.cells[0]));
    let rows = ROWS.lines().skip(1).map(Row::read).collect::<Result<Vec<_>>>()?;
    let card = Card::of(&bench.device).ok_or("the driver does not say which card this is")?;
    println!("{card}: {}. Milliseconds, medians of {REPEATS}.", card.times(TITAN_XP));
    for is_compressed in [false, true] {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.is_compressed() == is_compressed && is_wanted(row)).collect();
        if rows.is_empty() {
            continue;
        }
        let of_table = if is_compressed { "tree table | ratio here | tree / bucket table" } else { "bucket table" };
        println!(
            "\n| table | words | vectors | duplication | ratio | fill | bucket | lp8 | Titan Xp | re-implemented, here | {of_table} \
             | seen | times |\n|{}",
            "---|".repeat(if is_compressed { 15 } else { 13 })
        );
        for row in rows {
            let mut vectors = row.make(&bench)?;
            let distinct = {
                let table = BucketTable::new(&bench.device, row.words, row.vectors as u64)?;
                bench.find_or_put(&table, &mut vectors)?.1.hits
            };
            let [of_thesis, of_table, seen, times] = if is_compressed {
                compressed(&bench, row, &mut vectors, distinct)?
            } else {
                uncompressed(&bench, row, &mut vectors, distinct)?
            };
            let cells = row.cells.join(" | ");
            println!("| {cells} | {} | {of_thesis} | {of_table} | {seen} | {times} |", row.milliseconds);
        }
    }
    Ok(())
}

/// The last cells of a row: the re-implemented table, the bucket table, the same for vectors all seen, and how many times as fast
/// as the thesis' row.
fn uncompressed(bench: &Bench, row: &Row, vectors: &mut Vectors, distinct: u64) -> Result<[String; 4]> {
    let slots = (distinct as f64 / row.fill) as u64;
    let is_of_row = |variant: &Variant| variant.bucket_entries == row.bucket && variant.linear_probing == row.probes_linearly;
    let mut best = f64::INFINITY;
    for variant in Variant::all(row.words).into_iter().filter(is_of_row) {
        best = best.min(Thesis::new(bench, row.words, slots, variant)?.measure(vectors, distinct, REPEATS)?.0);
    }
    let [new, seen] = measure_table(bench, &BucketTable::new(&bench.device, row.words, slots)?, vectors, distinct, REPEATS)?;
    Ok([format!("{best:.3}"), format!("{new:.3}"), format!("{seen:.3}"), format!("{:.0}", row.milliseconds / new)])
}

/// As [`uncompressed`], for the tree table; with the compression ratio, and the time of the tree table / of the bucket table.
fn compressed(bench: &Bench, row: &Row, vectors: &mut Vectors, distinct: u64) -> Result<[String; 4]> {
    let (width, slots) = (row.words, (distinct as f64 / row.fill) as u64);
    // The number of nodes is measured with a table that has room for all.
    let (nodes, ratio) = {
        let most = (distinct * (width as u64).saturating_sub(2)).clamp(1, u64::from(u32::MAX) - 1);
        let table = TreeTable::builder(width).capacity(distinct).nodes(most).build(&bench.device)?;
        bench.find_or_put(&table, vectors)?;
        let stats = table.stats()?;
        (stats.nodes, stats.compression_ratio())
    };
    let node_slots = (nodes as f64 / row.fill).max(1024.0) as u64;
    let mut best = f64::INFINITY;
    // Rows with other buckets are measured only for the inputs of 6.3: 6.4 has the same input with smaller buckets.
    let is_comparable = row.bucket == 2 || row.cells[0] == "6.3";
    if is_comparable && matches!(width, 4 | 8) {
        for recursive in [true, false] {
            let mut table = ThesisTree::new(bench, width, slots + node_slots, recursive)?;
            best = best.min(table.measure(vectors, distinct, REPEATS)?[0]);
        }
    }
    let bucket = BucketTable::new(&bench.device, width, slots)?;
    let [flat, _] = measure_table(bench, &bucket, vectors, distinct, REPEATS)?;
    let tree = TreeTable::builder(width).capacity(slots).nodes(node_slots).build(&bench.device)?;
    let [new, seen] = measure_table(bench, &tree, vectors, distinct, REPEATS)?;
    let best = if best.is_finite() { format!("{best:.3}") } else { "-".into() };
    let of_tree = format!("{new:.3} | {ratio:.2} | {:.1}", new / flat);
    Ok([best, of_tree, format!("{seen:.3}"), format!("{:.0}", row.milliseconds / new)])
}
