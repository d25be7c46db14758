//! Tables that grow, against tables that need not.
//!
//! *One growth*: a table with 2^26 distinct vectors, 0.8 full, grows to twice its slots; compared with putting the same vectors,
//! from device memory, into a larger table that already exists. *A whole fill*: 2^26 vectors, duplication 2, are put in batches
//! of 2^20 from device memory into a table that starts with 2^20 slots and grows on request, to four times its size, before it
//! could be 0.85 full; and in one batch from a host slice into a table that grows by itself; each compared with a table that is
//! large enough. Words per vector {2, 8}, {bucket, tree}. By the wall clock, medians of 3, with kernels compiled and the memory
//! of the process warm.
//!
//! *An index*: an indexed table, 0.8 full, grows to twice its slots, which makes a new index of the rows. The rows are read once,
//! and the slots of the new index are cleared and claimed. The rate is the bytes of the rows and twice those of the new index,
//! divided by the time. Beside it is the rate of copies within the GPU's memory, in bytes read and written. *Holes*: the same
//! vectors from a host slice, in batches of some sizes, into an indexed table with room for them. Each call closes the holes that
//! it has left among the rows; compared with calls that leave them (`Request::leave_holes`). Words per vector {2, 8, 32}.
//!
//! *In place*: a bucket table, 0.8 full, grows to 2 and to 1.03 times its slots, and, 0.93 full, to 1.03 times, with its memory
//! mapped behind it; then the same when there are no addresses to reserve, so that it takes a second table. Copies read and write
//! as many bytes as the smaller and the larger table have together. *Mapping*: creating and mapping as many bytes as are added.
//! *Peak*: most memory that is taken during a growth, as a multiple of the larger table. Words per vector {2, 8, 32}.
//!
//! `cargo bench --bench growth` prints Markdown tables, in milliseconds. WARPSET_BENCH_LOG2 sets another power of two.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use support::{Bench, Compression, Result, Vectors, median};
use warpset::gpu::cudarc_0_19::cudarc::driver::sys;
use warpset::gpu::{Counts, DeviceBatch};
use warpset::{BucketTable, IndexedTable, Request, Storage, TableBuilder, TreeTable, VectorTable, Words};

const REPEATS: usize = 3;

/// Milliseconds by the wall clock.
fn time(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

/// Medians of some runs, after one that is not counted.
fn medians<const N: usize>(mut run: impl FnMut() -> Result<[f64; N]>) -> Result<[f64; N]> {
    let mut times = [(); N].map(|()| Vec::new());
    for repeat in 0..=REPEATS {
        for (times, time) in times.iter_mut().zip(run()?) {
            if repeat > 0 {
                times.push(time);
            }
        }
    }
    Ok(times.map(median))
}

/// Makes tables with the given number of slots.
type New<'a, S> = &'a dyn Fn(u64) -> warpset::Result<VectorTable<S>>;

/// A growth, and putting the same vectors.
fn one_growth<S: Storage>(bench: &Bench, new: New<S>, vectors: &mut Vectors, distinct: u64) -> Result<[f64; 2]> {
    let slots = (distinct as f64 / 0.8) as u64;
    let width = vectors.width;
    let larger = new(2 * slots)?;
    let mut once = bench.upload(width, &{
        let table = new(slots)?;
        bench.find_or_put(&table, vectors)?;
        let rows = table.iter().map(|row| row.map(|(_, vector)| vector)).collect::<warpset::Result<Vec<_>>>()?;
        rows.concat()
    })?;
    medians(|| {
        let table = new(slots)?;
        assert_eq!(bench.find_or_put(&table, &mut once)?.1.hits, distinct);
        let grown = time(|| Ok(table.reserve_total(2 * slots)?))?;
        assert_eq!(table.len()?, distinct);
        larger.clear()?;
        let put = time(|| {
            assert_eq!(bench.find_or_put(&larger, &mut once)?.1.hits, distinct);
            Ok(())
        })?;
        Ok([grown, put])
    })
}

/// A fill from device memory with growing, and without.
fn fill_from_device<S: Storage>(bench: &Bench, new: New<S>, vectors: &Vectors, distinct: u64) -> Result<[f64; 2]> {
    const PIECE: usize = 1 << 20;
    let fill = |slots: u64| -> Result<f64> {
        let table = new(slots)?;
        let mut counts = bench.stream.alloc_zeros::<Counts>(1)?;
        bench.stream.synchronize()?;
        let milliseconds = time(|| {
            for first in (0..vectors.count).step_by(PIECE) {
                let count = PIECE.min(vectors.count - first);
                if (table.len()? + count as u64) as f64 > 0.85 * table.slots() as f64 {
                    table.reserve_total(4 * table.slots())?;
                }
                let words = vectors.words.slice(first * vectors.width..(first + count) * vectors.width);
                table.find_or_put_device(&bench.stream, DeviceBatch::new(&words, count).counts(&mut counts))?;
                bench.stream.synchronize()?;
            }
            Ok(())
        })?;
        assert_eq!(bench.stream.clone_dtoh(&counts)?[0].hits, distinct);
        Ok(milliseconds)
    };
    medians(|| Ok([fill(1 << 20)?, fill(2 * vectors.count as u64)?]))
}

/// Fills by one batch from the host.
fn fill_from_host<S: Storage>(new: New<S>, words: &[u32], width: usize, distinct: u64) -> Result<[f64; 2]> {
    let fill = |slots: u64| -> Result<f64> {
        let table = new(slots)?;
        time(|| {
            let tally = table.find_or_put_many_with(words, Request::new())?.complete(&table)?;
            assert_eq!(tally.new, distinct);
            Ok(())
        })
    };
    medians(|| Ok([fill(1 << 20)?, fill(2 * (words.len() / width) as u64)?]))
}

/// Prints a row. `builder` makes builders of tables with a number of slots. `values`: the number of values of a word, or 0 for
/// all.
fn rows<S: Storage>(
    bench: &Bench,
    name: &str,
    width: usize,
    [log2, values]: [u32; 2],
    builder: impl Fn(u64) -> TableBuilder<Words, S>,
) -> Result<()> {
    let new = |slots| builder(slots).build(&bench.device);
    let growing_alone = |slots| builder(slots).grows(true).build(&bench.device);
    let mut vectors = bench.vectors_of(width, 1 << log2, 2.0, values)?;
    let words = bench.stream.clone_dtoh(&vectors.words)?;
    let counts = bench.find_or_put(&new(vectors.count as u64)?, &mut vectors)?.1;
    assert_eq!(counts.full, 0, "the table has room for all vectors");
    let distinct = counts.hits;
    let [grown, put] = one_growth(bench, &new, &mut vectors, distinct)?;
    let [growing, large] = fill_from_device(bench, &new, &vectors, distinct)?;
    let [host_growing, host_large] = fill_from_host(&growing_alone, &words, width, distinct)?;
    println!(
        "| {name} | {width} | {grown:.1} | {put:.1} | {:.2} | {growing:.0} | {large:.0} | {:.2} | {host_growing:.0} | {host_large:.0} | {:.2} |",
        grown / put,
        growing / large,
        host_growing / host_large
    );
    Ok(())
}

/// Bytes read and written a nanosecond by copies within the GPU's memory.
fn copy_rate(bench: &Bench, bytes: usize) -> Result<f64> {
    let from = bench.stream.alloc_zeros::<u8>(bytes)?;
    let mut to = bench.stream.alloc_zeros::<u8>(bytes)?;
    let [milliseconds] = medians(|| Ok([bench.time(|| Ok(bench.stream.memcpy_dtod(&from, &mut to)?))?]))?;
    Ok(2.0 * bytes as f64 / 1e6 / milliseconds)
}

/// A growth of an index, against copies.
fn index_growth(bench: &Bench, width: usize, log2: u32, copies: f64) -> Result<()> {
    let mut vectors = bench.vectors_of(width, 1 << log2, 2.0, 0)?;
    let new = |slots: u64| IndexedTable::builder(width).capacity(slots).build(&bench.device);
    let rows = bench.find_or_put(&new(vectors.count as u64)?, &mut vectors)?.1.hits;
    let (mut slots, mut slot_bytes) = (0, 0);
    let [grown] = medians(|| {
        let table = new((rows as f64 / 0.8) as u64)?;
        assert_eq!(bench.find_or_put(&table, &mut vectors)?.1.hits, rows);
        let grown = time(|| Ok(table.reserve_total(2 * table.slots())?))?;
        (slots, slot_bytes) = (table.slots(), u64::from(table.spec().index_slot_bits()) / 8);
        assert_eq!(bench.find_or_put(&table, &mut vectors)?.1.hits, 0, "all rows are in the new index");
        Ok([grown])
    })?;
    let bytes = rows * width as u64 * 4 + 2 * slots * slot_bytes;
    let rate = bytes as f64 / 1e6 / grown;
    println!("| {width} | {rows} | {slots} | {grown:.2} | {rate:.0} | {copies:.0} | {:.2} |", rate / copies);
    Ok(())
}

/// Host batches whose calls close holes, and leave them.
fn holes(bench: &Bench, width: usize, log2: u32) -> Result<()> {
    let vectors = bench.vectors_of(width, 1 << log2, 2.0, 0)?;
    let words = bench.stream.clone_dtoh(&vectors.words)?;
    for batch in [log2.saturating_sub(10), log2.saturating_sub(6), log2] {
        let mut left = 0;
        let mut fill = |leave: bool| -> Result<f64> {
            let table = IndexedTable::builder(width).capacity(vectors.count as u64).build(&bench.device)?;
            let milliseconds = time(|| {
                for words in words.chunks(width << batch) {
                    let request = Request::new().leave_holes(leave);
                    table.find_or_put_many_with(words, request)?.complete(&table)?;
                }
                Ok(())
            })?;
            let holes = table.holes()?.len();
            assert!(leave || holes == 0, "a call leaves no hole");
            left = if leave { holes } else { left };
            Ok(milliseconds)
        };
        let [closed, open] = medians(|| Ok([fill(false)?, fill(true)?]))?;
        let calls = 1u64 << (log2 - batch);
        let of_call = (closed - open) / calls as f64;
        println!("| {width} | 2^{batch} | {closed:.1} | {open:.1} | {:.2} | {of_call:.3} | {left} |", closed / open);
    }
    Ok(())
}

/// Properties of memory of the GPU.
fn properties(bench: &Bench) -> sys::CUmemAllocationProp {
    // SAFETY: integers and pointers only, for which zero is a valid value.
    let mut properties: sys::CUmemAllocationProp = unsafe { std::mem::zeroed() };
    properties.type_ = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = bench.context.ordinal() as i32;
    properties
}

/// Milliseconds of creating memory and mapping it.
fn mapping(bench: &Bench, bytes: u64) -> Result<f64> {
    let bytes = (bytes as usize).next_multiple_of(2 << 20);
    let properties = properties(bench);
    let access =
        sys::CUmemAccessDesc { location: properties.location, flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    bench.context.bind_to_thread()?;
    let [milliseconds] = medians(|| {
        let (mut address, mut handle) = (0, 0);
        // SAFETY: an address to write to.
        unsafe { sys::cuMemAddressReserve(&mut address, bytes, 0, 0, 0) }.result()?;
        let mapped = time(|| {
            // SAFETY: the whole range, which was just reserved, and memory of its size.
            unsafe {
                sys::cuMemCreate(&mut handle, bytes, &properties, 0).result()?;
                sys::cuMemMap(address, bytes, 0, handle, 0).result()?;
                sys::cuMemSetAccess(address, bytes, &access, 1).result()?;
            }
            Ok(())
        })?;
        // SAFETY: as above; nothing uses the memory.
        unsafe {
            sys::cuMemUnmap(address, bytes).result()?;
            sys::cuMemRelease(handle).result()?;
            sys::cuMemAddressFree(address, bytes).result()?;
        }
        Ok([mapped])
    })?;
    Ok(milliseconds)
}

/// Reserved addresses.
struct Addresses(Vec<(sys::CUdeviceptr, usize)>);

impl Addresses {
    /// Reserves addresses until there are none for the memory of a table that grows in place, but still for its bytes.
    fn all(bench: &Bench) -> Result<Self> {
        bench.context.bind_to_thread()?;
        let (mut reserved, mut bytes) = (Vec::new(), 1usize << 46);
        while bytes >= bench.context.total_mem()? / 2 {
            let mut address = 0;
            // SAFETY: an address to write to. The range is freed once, by `drop`.
            match unsafe { sys::cuMemAddressReserve(&mut address, bytes, 0, 0, 0) }.result() {
                Ok(()) => reserved.push((address, bytes)),
                Err(_) => bytes /= 2,
            }
        }
        Ok(Self(reserved))
    }
}

impl Drop for Addresses {
    fn drop(&mut self) {
        for (address, bytes) in &self.0 {
            // SAFETY: reserved by `all`, with nothing mapped to it.
            let _ = unsafe { sys::cuMemAddressFree(*address, *bytes) };
        }
    }
}

/// Most bytes that are taken from the free memory while `work` runs.
fn peak(bench: &Bench, free: u64, work: impl FnOnce() -> Result<()>) -> Result<u64> {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut now = free;
            // Relaxed: the flag is the only thing that the threads share here.
            while let (false, Ok(free)) = (is_done.load(Ordering::Relaxed), bench.device.free_memory()) {
                now = now.min(free);
            }
            now
        });
        let done = work();
        is_done.store(true, Ordering::Relaxed);
        let now = watch.join().map_err(|_| "the thread that watches the memory has panicked")?;
        done.map(|()| free.saturating_sub(now))
    })
}

/// Measures what it calls.
type Measure<'a> = &'a dyn Fn(&dyn Fn() -> Result<()>) -> Result<f64>;

/// Growths of a bucket table that is `fill` full to `factor` times its slots.
fn in_place(bench: &Bench, vectors: &mut Vectors, rows: u64, [factor, fill]: [f64; 2], copies: f64, how: &str) -> Result<()> {
    let width = vectors.width;
    let new = || BucketTable::builder(width).capacity((rows as f64 / fill) as u64).build(&bench.device);
    let (mut slots, mut bytes) = ([0; 2], [0; 2]);
    let mut grow = |measure: Measure<'_>| -> Result<f64> {
        let table = new()?;
        assert_eq!(bench.find_or_put(&table, vectors)?.1.hits, rows);
        (slots[0], bytes[0]) = (table.slots(), table.bytes());
        let to = (table.slots() as f64 * factor) as u64;
        let grown = measure(&|| Ok(table.reserve_total(to)?))?;
        (slots[1], bytes[1]) = (table.slots(), table.bytes());
        assert_eq!((bench.find_or_put(&table, vectors)?.1.hits, table.len()?), (0, rows), "all vectors are in the larger table");
        Ok(grown)
    };
    let [grown] = medians(|| Ok([grow(&|work| time(work))?]))?;
    let free = bench.device.free_memory()?;
    let taken = grow(&|work| Ok(peak(bench, free, work)? as f64))?;
    let mapped = mapping(bench, bytes[1] - bytes[0])?;
    let copied = (bytes[0] + bytes[1]) as f64 / 1e6 / copies;
    println!(
        "| {width} | {how} | {} | {factor} | {fill} | {grown:.2} | {mapped:.2} | {copied:.2} | {:.2} | {:.2} | {:.3} |",
        slots[0],
        grown / copied,
        (grown - mapped) / copied,
        taken / bytes[1] as f64
    );
    Ok(())
}

/// The table of growths in place, and of the same beside a second table.
fn of_buckets(bench: &Bench, log2: u32) -> Result<()> {
    let copies = copy_rate(bench, 16 << log2)?;
    println!("\nCopies read and write {copies:.0} GB/s.\n");
    println!(
        "| words | how | slots | factor | fill | growth, ms | mapping | copy | growth / copy | without mapping | peak / table |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for how in ["in place", "second table"] {
        let addresses = if how == "in place" { None } else { Some(Addresses::all(bench)?) };
        for (width, log2) in [(2, log2), (8, log2.saturating_sub(2)), (32, log2.saturating_sub(4))] {
            let mut vectors = bench.vectors(width, 1 << log2, 1.25)?;
            let table = BucketTable::builder(width).capacity(vectors.count as u64).build(&bench.device)?;
            let rows = bench.find_or_put(&table, &mut vectors)?.1.hits;
            drop(table);
            for [factor, fill] in [[2.0, 0.8], [1.03, 0.8], [1.03, 0.93]] {
                in_place(bench, &mut vectors, rows, [factor, fill], copies, how)?;
            }
        }
        drop(addresses);
    }
    println!();
    Ok(())
}

/// The tables of indexed tables.
fn of_indexes(bench: &Bench, log2: u32) -> Result<()> {
    // Up to 2^26 vectors of 8 words, and as many bytes of others.
    let of_width = |width: usize| if width > 8 { log2.saturating_sub(2) } else { log2 };
    let copies = copy_rate(bench, 4 << log2)?;
    println!("| words | rows | slots of the new index | growth of the index | GB/s | copies, GB/s | share |");
    println!("|---|---|---|---|---|---|---|");
    for width in [2, 8, 32] {
        index_growth(bench, width, of_width(width), copies)?;
    }
    println!("\n| words | batch | closing holes | leaving them | ratio | a call | holes left |\n|---|---|---|---|---|---|---|");
    for width in [2, 8, 32] {
        holes(bench, width, of_width(width).saturating_sub(2))?;
    }
    println!();
    Ok(())
}

fn main() -> Result<()> {
    let Some(bench) = Bench::open()? else { return Ok(()) };
    let log2: u32 = std::env::var("WARPSET_BENCH_LOG2").map_or(Ok(26), |text| text.parse())?;
    println!("{}, 2^{log2} vectors, duplication 2, ms, medians of {REPEATS}\n", bench.device);
    of_buckets(&bench, log2)?;
    of_indexes(&bench, log2)?;
    println!(
        "| table | words | one growth | putting | ratio | fill, growing | large | ratio | from the host, growing | large | ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for width in [2, 8] {
        rows(&bench, "bucket", width, [log2, 0], |slots| BucketTable::builder(width).capacity(slots))?;
    }
    // Trees whose nodes fit the cache can lose most. Few vectors of such words have more nodes than a table has slots.
    let (width, values) = (8, Compression::NearMinimum.values(8, log2)?);
    let nodes = u64::from(values).pow(2) + u64::from(values).pow(4);
    rows(&bench, "tree", width, [log2, values], |slots| TreeTable::builder(width).capacity(slots).nodes(slots.max(2 * nodes)))
}
