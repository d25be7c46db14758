//! Tables that grow within a limit of memory: how many vectors they store before they are full, and how long that takes.
//!
//! *Doubling* is a table that doubles before a batch could fill it beyond 85 %, for as long as the old and the new table fit the
//! limit together, and is then filled until a vector is rejected. *Schedule* is a table with `grows(true)` and
//! `memory(MemoryLimit::Reserved(limit))`. *Share* is the memory of the stored vectors alone (slots, nodes, rows) / limit. It is
//! the fill *of slots* and *of nodes*, and the share of the limit that the table has *allocated*.
//!
//! *CPU* is the CPU time of the schedule, of all threads, and *ratio* that time / the CPU time of a table that has the final
//! number of slots and nodes from the beginning, for the same vectors. It includes the time in which the system provides memory,
//! and other work on the machine changes it less than the time that passes. Vectors are put by batches of 2^16 on all cores of
//! the CPU. They are the first ones of a sequence of distinct vectors whose words have 2^6 to 2^16 values.
//!
//! `cargo bench --bench memory` prints a Markdown table. `cargo bench --bench memory -- tree 'bucket 4'` has only the rows that
//! begin like this. WARPSET_BENCH_LOG2 sets another power of two for the limit in bytes; the default is 30.

use cpu_time::ProcessTime;
use warpset::{
    Bucket, CompactTree, Device, Indexed, MemoryLimit, Outcome, Root, Stats, Storage, TableBuilder, Tree, VectorTable, Words,
};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const BATCH: u64 = 1 << 16;

/// Bijection of 32-bit numbers: odd multiplications and shifts.
fn mix(number: u32) -> u32 {
    let number = (number ^ number >> 16).wrapping_mul(0x7feb_352d);
    let number = (number ^ number >> 15).wrapping_mul(0x846c_a68b);
    number ^ number >> 16
}

/// `BATCH` distinct vectors. The first 32 bits of a mixed number are spread over the words, so that many vectors share parts.
fn vectors(width: usize, first: u64, words: &mut Vec<u32>) {
    words.clear();
    let bits = 32usize.div_ceil(width).max(6) as u32;
    for number in first..first + BATCH {
        let mixed = mix(number as u32);
        words.extend((0..width as u32).map(|word| {
            let shift = word * bits;
            if shift < 32 { mixed >> shift & (u32::MAX >> (32 - bits.min(32))) } else { 0 }
        }));
    }
}

/// Vectors stored, and seconds of CPU time.
struct Filled {
    stored: u64,
    seconds: f64,
    stats: Stats,
}

/// Puts vectors until one is rejected, or `most` are stored. `grow` is called before each batch.
fn fill<S: Storage>(table: &VectorTable<S>, most: u64, grow: impl Fn(&VectorTable<S>) -> Result<()>) -> Result<Filled> {
    let (mut words, mut seconds, mut first) = (Vec::new(), 0.0, 0);
    loop {
        vectors(table.width(), first, &mut words);
        let start = ProcessTime::now();
        grow(table)?;
        let batch = table.find_or_put_many(&words)?;
        seconds += start.elapsed().as_secs_f64();
        assert_eq!(batch.positions(Outcome::Seen).count(), 0, "the vectors are distinct");
        first += BATCH;
        if batch.tally.full > 0 || first >= most {
            return Ok(Filled { stored: table.len()?, seconds, stats: table.stats()? });
        }
    }
}

/// Share of the limit that holds vectors.
fn share<S: Storage>(table: &VectorTable<S>, filled: &Filled, limit: u64) -> f64 {
    let stats = &filled.stats;
    let rows = if table.spec().is_indexed() { (filled.stored * stats.width as u64 * 4) as f64 } else { 0.0 };
    let of_slots = (stats.bytes as f64 - stats.node_slots as f64 * 8.0 - rows) * stats.fill();
    (of_slots + stats.nodes as f64 * 8.0 + rows) / limit as f64
}

fn compare<S: Storage>(
    name: &str,
    width: usize,
    limit: u64,
    with_nodes: impl Fn(TableBuilder<Words, S>, u64) -> TableBuilder<Words, S>,
) -> Result<()> {
    let mut filters = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).peekable();
    if filters.peek().is_some() && !filters.any(|filter| format!("{name} {width}").starts_with(&filter)) {
        return Ok(());
    }
    let device = Device::cpu();
    let builder = |slots: u64, nodes: u64| with_nodes(VectorTable::<S>::builder(width).capacity(slots).seed(1), nodes);
    let (slots, nodes) = (1 << 16, 1 << 13);
    let doubled = || -> Result<String> {
        let doubling = builder(slots, nodes).build(&device)?;
        let doubled = fill(&doubling, u64::MAX, |table| {
            while 3 * table.bytes() <= limit && (table.len()? + BATCH) as f64 > 0.85 * table.slots() as f64 {
                table.reserve_total(2 * table.slots())?;
            }
            let has_nodes = table.node_slots() > 0;
            let nodes = table.nodes()? + 2 * BATCH;
            while has_nodes && 3 * table.bytes() <= limit && nodes as f64 > 0.85 * table.node_slots() as f64 {
                table.reserve_nodes(2 * table.node_slots())?;
            }
            Ok(())
        })?;
        Ok(format!("{:.2} | {:.0} %", doubled.stored as f64 / 1e6, 100.0 * share(&doubling, &doubled, limit)))
    };
    let of_doubled = if std::env::var_os("WARPSET_BENCH_DOUBLING").is_some_and(|value| value == "no") {
        "- | -".to_string()
    } else {
        doubled()?
    };
    let table = builder(slots, nodes).grows(true).memory(MemoryLimit::Reserved(limit)).build(&device)?;
    let grown = fill(&table, u64::MAX, |_| Ok(()))?;
    assert!(table.bytes() <= limit);
    let of_grown = share(&table, &grown, limit);
    let (slots, nodes) = (table.slots(), table.node_slots());
    drop(table);
    let start = ProcessTime::now();
    let right = builder(slots, nodes.max(1)).build(&device)?;
    let building = start.elapsed().as_secs_f64();
    let filled = fill(&right, grown.stored, |_| Ok(()))?;
    println!(
        "| {name} | {width} | {of_doubled} | {:.2} | {:.0} % | {:.1} % | {} | {:.1} % | {:.1} | {:.2} |",
        grown.stored as f64 / 1e6,
        100.0 * of_grown,
        100.0 * grown.stats.fill(),
        if nodes > 0 { format!("{:.1} %", 100.0 * grown.stats.nodes as f64 / nodes as f64) } else { "-".into() },
        100.0 * grown.stats.bytes as f64 / limit as f64,
        grown.seconds,
        grown.seconds / (filled.seconds + building),
    );
    Ok(())
}

fn main() -> Result<()> {
    let log2 = std::env::var("WARPSET_BENCH_LOG2").map_or(Ok(30), |text| text.parse::<u32>())?;
    let limit = 1u64 << log2;
    println!("limit of 2^{log2} bytes, {}; vectors in millions\n", Device::cpu());
    println!(
        "| table | words | doubling: stored | share | schedule: stored | share | of slots | of nodes | allocated | CPU s | ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    compare::<Bucket>("bucket", 2, limit, |builder, _| builder)?;
    compare::<Bucket>("bucket", 4, limit, |builder, _| builder)?;
    compare::<Bucket>("bucket", 8, limit, |builder, _| builder)?;
    compare::<Tree>("tree", 8, limit, |builder, nodes| builder.nodes(nodes))?;
    compare::<CompactTree>("compact tree", 8, limit, |builder, nodes| builder.nodes(nodes))?;
    compare::<Root>("root", 2, limit, |builder, _| builder.key_bits(48))?;
    compare::<Indexed>("indexed", 4, limit, |builder, _| builder)?;
    compare::<Indexed>("indexed", 8, limit, |builder, _| builder)?;
    Ok(())
}
