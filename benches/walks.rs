//! Walks of a synthetic transition system on the GPU (kernels/system.cu): sequences with the locality of model checking, longer
//! than any cache.
//!
//! Axes: words per state {4, 6, 8, 12, 16, 32} x {even: local states are spread evenly over the processes; skewed: most are in
//! the first half, so that nearly every state brings new inner nodes} x {bucket table; tree table that is given whole states;
//! tree table that is given changes of their parents; either table in blocks: a kernel fetches states by reference, makes their
//! successors and puts them, after removing duplicates in shared memory (block_cache.cuh)}. Each walk continues until 2^27
//! distinct states are stored (WARPSET_BENCH_LOG2 sets another power of two); tables are then at fill 0.7. In blocks it continues
//! until the last complete level. The rate is that of batches of at least a million states, by device events; in blocks all of
//! the work is timed. The count of every walk is compared with that of a bitmap, and the vectors that were offered last are read
//! back; in blocks the count of every level is compared.
//!
//! `cargo bench --bench walks` prints a Markdown table, in 10^9 states a second. WARPSET_BENCH_WIDTHS=8,16 measures only these.
//! WARPSET_BENCH_ROOTS=compact puts a tree table with compact roots in place of the bucket table, so that the last column is its
//! rate over that of plain roots, both of changes.
//!
//! WARPSET_BENCH_LARGEST=1 instead puts at least 2^31 + 1 states of 16 words into one tree table; another number sets the number
//! of states. With compact roots 8e9 states take 18 GB of roots (16 bits each, filled to 0.9), 51 GB for two levels of the walk
//! (codes and references), 2 GB for the bitmap, and less than 2 GB for batches and nodes: 73 GB. With plain roots 2^31 + 1 states
//! take 19 GB, 34 GB for the levels and 4 GB.

mod support;

use std::sync::Arc;
use support::{Bench, FILL as EVERYWHERE, Result};
use warpset::gpu::cudarc_0_19::ModuleExt;
use warpset::gpu::cudarc_0_19::cudarc::driver::{CudaFunction, CudaModule, CudaSlice, DeviceRepr, LaunchConfig, PushKernelArg};
use warpset::gpu::{Counts, DeviceBatch};
use warpset::{BucketTable, CompactTree, Nodes, Request, Storage, Tree, TreeTable, VectorTable};

const FILL: f64 = 0.7;
/// States expanded at a time.
const CHUNK: usize = 1 << 21;
/// Smaller batches are not timed: launching takes as long.
const TIMED: usize = 1 << 20;

/// Mirrors `System` of kernels/system.cu.
#[derive(Clone, Copy)]
#[repr(C)]
struct System {
    moves: u32,
    bits: [u8; 32],
    shift: [u8; 32],
}

// SAFETY: `repr(C)` integers and arrays of bytes, as in system.cu.
unsafe impl DeviceRepr for System {}

impl System {
    fn new(width: usize, skewed: bool) -> Self {
        // Sizes in bits: of the program counter; of every process, if all have the same size; otherwise of the processes in the
        // first half, and of the others. Codes have at most 36 bits.
        let (counter, even, first, second) = match width {
            4 => (1, 10, 12, 6),
            6 => (2, 6, 8, 3),
            8 => (2, 4, 6, 2),
            12 => (3, 3, 4, 1),
            16 => (3, 2, 3, 1),
            _ => (4, 1, 2, 0),
        };
        let bits = |word: usize| match word {
            0 => counter,
            _ if word >= width => 0,
            _ if !skewed => even,
            _ if word <= width / 2 => first,
            _ => second,
        };
        Self { moves: if width == 4 { 3 } else { 4 }, ..Self::of(std::array::from_fn(bits)) }
    }

    /// A system of 16 words and 2^34 codes.
    fn large() -> Self {
        let bits = std::array::from_fn(|word| [4, 2, 0][usize::from(word > 0) + usize::from(word > 15)]);
        Self { moves: 4, ..Self::of(bits) }
    }

    fn of(bits: [u8; 32]) -> Self {
        let mut shift = [0; 32];
        (1..32).for_each(|word| shift[word] = shift[word - 1] + bits[word - 1]);
        Self { moves: 4, bits, shift }
    }

    fn code_bits(&self) -> u32 {
        self.bits.iter().map(|bits| u32::from(*bits)).sum()
    }

    /// The words of code 0, as in `word` of system.cu.
    fn initial(&self, width: usize) -> Vec<u32> {
        (0..width as u32).map(|word| ((word << 12) + 1).wrapping_mul(0x9E37_79B1)).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Offer {
    Whole,
    Incremental,
}

/// Results of a walk.
struct Walked {
    rate: f64,
    stored: u64,
    offered: u64,
    levels: u32,
    nodes: u64,
    /// States stored after each complete level.
    by_level: Vec<u64>,
    bytes: u64,
}

fn main() -> Result<()> {
    let Some(bench) = Bench::open()? else { return Ok(()) };
    let compact = match std::env::var("WARPSET_BENCH_ROOTS").as_deref() {
        Err(_) | Ok("plain") => false,
        Ok("compact") => true,
        Ok(other) => return Err(format!("WARPSET_BENCH_ROOTS is plain or compact, not {other}").into()),
    };
    if let Ok(states) = std::env::var("WARPSET_BENCH_LARGEST") {
        let states = states.parse::<f64>()? as u64;
        let target = if states <= 1 { (1 << 31) + 1 } else { states };
        return if compact { largest::<CompactTree>(&bench, target) } else { largest::<Tree>(&bench, target) };
    }
    let log2: u32 = std::env::var("WARPSET_BENCH_LOG2").map_or(Ok(27), |text| text.parse())?;
    let widths = std::env::var("WARPSET_BENCH_WIDTHS").unwrap_or("4,6,8,12,16,32".into());
    println!("{}, walks to 2^{log2} states, tables then {FILL} full, G/s\n", bench.device);
    println!(
        "| words | local states | offered / stored | levels | nodes | bytes a state stored | {} |",
        if compact {
            "bytes a compact root | compact, whole | compact, changes | tree, whole | tree, changes | compact / tree"
        } else {
            "bucket | tree, whole | tree, changes | changes / bucket | bucket, in blocks | tree, in blocks"
        }
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    for width in widths.split(',').map(str::parse::<usize>) {
        let width = width?;
        for skewed in [false, true] {
            let system = System::new(width, skewed);
            let target = (1u64 << log2).min((1 << system.code_bits()) * 3 / 4);
            let slots = ((target + (CHUNK * 4) as u64) as f64 / FILL) as u64;
            // The number of nodes is known only afterwards; the node table is then half full.
            let nodes = 2 * walk_tree::<Tree>(&bench, &system, width, [slots, 2 * target], Offer::Whole, target)?.nodes;
            let tree = |offer| walk_tree::<Tree>(&bench, &system, width, [slots, nodes], offer, target);
            let (whole, changes) = (tree(Offer::Whole)?, tree(Offer::Incremental)?);
            let others = if compact {
                let tree = |offer| walk_tree::<CompactTree>(&bench, &system, width, [slots, nodes], offer, target);
                let (of_whole, of_changes) = (tree(Offer::Whole)?, tree(Offer::Incremental)?);
                let root_bytes = (of_changes.bytes - nodes * 8) as f64 / of_changes.stored as f64;
                let ratio = of_changes.rate / changes.rate;
                let rates = [of_whole.rate, of_changes.rate, whole.rate, changes.rate, ratio];
                rates.iter().fold(format!("{root_bytes:.2}"), |row, rate| format!("{row} | {}", figure(*rate)))
            } else {
                let bucket = walk(&bench, &system, &BucketTable::new(&bench.device, width, slots)?, Offer::Whole, target)?;
                let table = BucketTable::new(&bench.device, width, slots)?;
                let bucket_blocks = walk_in_blocks(&bench, &system, &table, &bucket.by_level)?;
                drop(table);
                let table = TreeTable::builder(width).capacity(slots).nodes(nodes).build(&bench.device)?;
                let tree_blocks = walk_in_blocks(&bench, &system, &table, &changes.by_level)?;
                let rates = [bucket.rate, whole.rate, changes.rate, changes.rate / bucket.rate, bucket_blocks, tree_blocks];
                rates.map(figure).join(" | ")
            };
            println!(
                "| {width} | {} | {:.2} | {} | {:.2} M | {:.2} | {others} |",
                if skewed { "skewed" } else { "even" },
                changes.offered as f64 / changes.stored as f64,
                changes.levels,
                changes.nodes as f64 / 1e6,
                8.0 * (changes.stored + changes.nodes) as f64 / changes.stored as f64,
            );
        }
    }
    Ok(())
}

/// No rate if no batch was large enough to be timed.
fn figure(rate: f64) -> String {
    if rate.is_finite() { format!("{rate:.2}") } else { "-".into() }
}

/// Walks with a tree table of `size` slots: for vectors, and for nodes.
fn walk_tree<S: Nodes>(
    bench: &Bench,
    system: &System,
    width: usize,
    size: [u64; 2],
    offer: Offer,
    target: u64,
) -> Result<Walked> {
    let table = VectorTable::<S>::builder(width).capacity(size[0]).nodes(size[1]).build(&bench.device)?;
    walk(bench, system, &table, offer, target)
}

fn largest<S: Nodes>(bench: &Bench, target: u64) -> Result<()> {
    let (width, system) = (16, System::large());
    let slots = ((target + (CHUNK * 4) as u64) as f64 / 0.9) as u64;
    let table = VectorTable::<S>::builder(width).capacity(slots).nodes(1_000_000).build(&bench.device)?;
    let walked = walk(bench, &system, &table, Offer::Incremental, target)?;
    println!(
        "{}: {} distinct states of {width} words in one {}, {} bytes ({:.2} a state, {} nodes), {:.2} offered for each, {:.2} G/s",
        bench.device,
        walked.stored,
        table.spec(),
        walked.bytes,
        walked.bytes as f64 / walked.stored as f64,
        walked.nodes,
        walked.offered as f64 / walked.stored as f64,
        walked.rate
    );
    Ok(())
}

/// A level: codes of states, and their locations.
struct Level {
    codes: CudaSlice<u64>,
    references: CudaSlice<u64>,
}

/// Walks until `target` states are stored, breadth first. A level that is too wide is cut, but all offered states are counted.
fn walk<S: Storage>(bench: &Bench, system: &System, table: &VectorTable<S>, offer: Offer, target: u64) -> Result<Walked> {
    let stream = &bench.stream;
    let (width, moves) = (table.width(), system.moves as usize);
    let module = table.compile("system.cu", include_str!("kernels/system.cu"))?;
    let [make, append, check] = ["make_successors", "append_new", "count_misread"].map(|name| module.load_function(name));
    let (make, append, check): (CudaFunction, CudaFunction, CudaFunction) = (make?, append?, check?);
    let offers = CHUNK * moves;
    // No level of these systems has more than a tenth of its states, except in small systems.
    let capacity = (target / 2).min(1_600_000_000) as usize + 64;
    // SAFETY: all are written by kernels before they are read.
    let level = || unsafe {
        Ok::<_, Box<dyn std::error::Error>>(Level { codes: stream.alloc(capacity)?, references: stream.alloc(capacity)? })
    };
    let (mut now, mut next) = (level()?, level()?);
    // SAFETY: as above.
    let (mut vectors, mut codes, mut parents, mut masks) = unsafe {
        (
            stream.alloc::<u32>(offers * width)?,
            stream.alloc::<u64>(offers)?,
            stream.alloc::<u64>(offers)?,
            stream.alloc::<u32>(offers)?,
        )
    };
    let (mut outcomes, mut references) = (stream.alloc_zeros::<u8>(offers)?, stream.alloc_zeros::<u64>(offers)?);
    let mut bitmap = stream.alloc_zeros::<u32>(1 << (system.code_bits() - 5))?;
    let (mut marked, mut appended, mut misread) =
        (stream.alloc_zeros::<u64>(1)?, stream.alloc_zeros::<u64>(1)?, stream.alloc_zeros::<u64>(1)?);
    let mut counts = stream.alloc_zeros::<Counts>(1)?;

    let start = table.find_or_put_many_with(&system.initial(width), Request::new().references(true))?;
    stream.memcpy_htod(&[start.references[0].ok_or("an empty table has room")?.slot()], &mut now.references.slice_mut(..1))?;
    stream.memcpy_htod(&[0u64], &mut now.codes.slice_mut(..1))?;
    stream.memcpy_htod(&[1u32], &mut bitmap.slice_mut(..1))?;
    let (mut states, mut levels, mut stored, mut offered, mut timed, mut milliseconds) = (1usize, 0, 1u64, 1u64, 0u64, 0.0);
    let mut by_level = Vec::new();
    while states > 0 && stored < target {
        levels += 1;
        stream.memset_zeros(&mut appended)?;
        for first in (0..states).step_by(CHUNK) {
            let expanded = CHUNK.min(states - first);
            let (expanded_argument, count) = (expanded as u64, expanded * moves);
            let (from, of) = (now.codes.slice(first..first + expanded), now.references.slice(first..first + expanded));
            let mut launch = stream.launch_builder(&make);
            launch.arg(system).arg(&from).arg(&of).arg(&expanded_argument).arg(&mut vectors).arg(&mut codes);
            launch.arg(&mut parents).arg(&mut masks).arg(&mut bitmap).arg(&mut marked);
            // SAFETY: the arguments of `make_successors`; there is room for `count` successors, and a bit for every code.
            unsafe { launch.launch(EVERYWHERE)? };
            let batch = DeviceBatch::new(&vectors, count).outcomes(&mut outcomes).references(&mut references).counts(&mut counts);
            let batch = if offer == Offer::Whole { batch } else { batch.parents(&parents) };
            let batch = if offer == Offer::Incremental { batch.changed(&masks) } else { batch };
            let time = bench.time(|| Ok(table.find_or_put_device(stream, batch)?))?;
            if count >= TIMED {
                (timed, milliseconds) = (timed + count as u64, milliseconds + time);
            }
            offered += count as u64;
            let (count_argument, capacity_argument) = (count as u64, capacity as u64);
            let mut launch = stream.launch_builder(&append);
            launch.arg(&outcomes).arg(&references).arg(&codes).arg(&count_argument);
            launch.arg(&mut next.codes).arg(&mut next.references).arg(&capacity_argument).arg(&mut appended);
            // SAFETY: the arguments of `append_new`; it writes `capacity` elements at most.
            unsafe { launch.launch(EVERYWHERE)? };
            let so_far = stream.clone_dtoh(&counts)?[0];
            assert_eq!(so_far.full, 0, "there is room");
            stored = 1 + so_far.hits;
            if stored >= target || first + expanded == states {
                let view = table.kernel_argument()?;
                let mut launch = stream.launch_builder(&check);
                launch.arg(&view).arg(&references).arg(&vectors).arg(&count_argument).arg(&mut misread);
                // SAFETY: the arguments of `count_misread`; both arrays have `count` rows.
                unsafe { launch.launch(EVERYWHERE)? };
            }
            if stored >= target {
                break;
            }
        }
        states = (stream.clone_dtoh(&appended)?[0] as usize).min(capacity);
        if stored < target {
            by_level.push(stored);
        }
        std::mem::swap(&mut now, &mut next);
    }
    let distinct = 1 + stream.clone_dtoh(&marked)?[0];
    assert_eq!((stored, table.len()?), (distinct, distinct), "{offer:?}: what the bitmap counts is stored");
    assert_eq!(stream.clone_dtoh(&misread)?[0], 0, "{offer:?}: what was offered is read back");
    Ok(Walked {
        rate: timed as f64 / milliseconds / 1e6,
        stored,
        offered,
        levels,
        nodes: table.nodes()?,
        bytes: table.bytes(),
        by_level,
    })
}

/// Walks levels in blocks. `by_level` gives the number of states stored at each. Returns offers per second, in 10^9.
fn walk_in_blocks<S: Storage>(bench: &Bench, system: &System, table: &VectorTable<S>, by_level: &[u64]) -> Result<f64> {
    const THREADS: u32 = 128;
    let stream = &bench.stream;
    let module: Arc<CudaModule> = table.compile("system.cu", include_str!("kernels/system.cu"))?.into();
    let expand = module.load_function("expand")?;
    let mut bytes = [0u8; 4];
    stream.memcpy_dtoh(&module.get_global("expand_bytes", stream)?, &mut bytes)?;
    stream.synchronize()?;
    let shared_mem_bytes = u32::from_ne_bytes(bytes);
    let resident = expand.occupancy_max_active_blocks_per_multiprocessor(THREADS, shared_mem_bytes as usize, None)?;
    let grid_dim = (resident * 132, 1, 1);
    let everywhere = LaunchConfig { grid_dim, block_dim: (THREADS, 1, 1), shared_mem_bytes };
    let widest = by_level.windows(2).map(|stored| stored[1] - stored[0]).max().unwrap_or(1) as usize;
    // SAFETY: written by the kernel, or below, before it is read.
    let queue = || unsafe { stream.alloc::<u64>(widest) };
    let (mut now, mut next) = (queue()?, queue()?);
    let start = table.find_or_put_many_with(&system.initial(table.width()), Request::new().references(true))?;
    stream.memcpy_htod(&[start.references[0].ok_or("an empty table has room")?.slot()], &mut now.slice_mut(..1))?;
    let (mut states, mut stored, mut timed, mut milliseconds) = (1u64, 1, 0, 0.0);
    for &expected in by_level {
        let mut counts = stream.alloc_zeros::<Counts>(1)?;
        let view = table.kernel_argument()?;
        let time = bench.time(|| {
            let mut launch = stream.launch_builder(&expand);
            launch.arg(&view).arg(system).arg(&now).arg(&states).arg(&mut next).arg(&mut counts);
            // SAFETY: the arguments of `expand`; the new states of a level are known to fit.
            unsafe { launch.launch(everywhere)? };
            Ok(())
        })?;
        let counts = stream.clone_dtoh(&counts)?[0];
        stored += counts.hits;
        assert_eq!((counts.full, stored, counts.offered), (0, expected, states * u64::from(system.moves)), "in blocks");
        if counts.offered >= TIMED as u64 {
            (timed, milliseconds) = (timed + counts.offered, milliseconds + time);
        }
        states = counts.hits;
        std::mem::swap(&mut now, &mut next);
    }
    assert_eq!(table.len()?, stored);
    Ok(timed as f64 / milliseconds / 1e6)
}
