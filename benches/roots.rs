//! Compact tables on the GPU: keys of 45 and 54 bits in 2^28 slots of 32 bits, against the bucket table of two words.
//!
//! Axes: table {compact, 45-bit keys; compact, 54-bit keys; bucket table of 2 words, 54-bit keys} x fill {0.5, 0.75, 0.9, 0.95} x
//! {duplication 2 into an empty table; the same again, all seen; lookups of the same, and of an equal number of keys that are not
//! stored}; and the placement-only kernel (kernels/placement.cu). A table has 2^28 slots, plus a stash if it is compact; the
//! number of keys follows from the fill. WARPSET_BENCH_LOG2 sets another power of two: 2^26 slots are for keys of two bits less,
//! so that slots have as many bits for displacements. `fill` is keys stored at the end x bytes per slot / bytes of the table. All
//! in one process; medians of 5, by device events. Every count is checked. At the highest fill all keys of a compact table are
//! read back and compared with those that were put.
//!
//! A compact cuckoo table of 55-bit keys is filled step by step. Axes: fill {0.9, 0.95, 0.97, 0.98, 0.99} x {keys that bring it
//! there, duplication 2, in batches of 2^24, each offered again until no key is rejected; the same again; lookups of them;
//! lookups of keys that are not stored}. One run each.
//!
//! `cargo bench --bench roots` prints a Markdown table, in 10^9 keys a second. WARPSET_BENCH_KEY_BITS=45,54 chooses the compact
//! tables.

mod support;

use std::time::Instant;
use support::{Bench, FILL, PlacementOnly, Result, Vectors, median};
use warpset::gpu::cudarc_0_19::ModuleExt;
use warpset::gpu::cudarc_0_19::cudarc::driver::PushKernelArg;
use warpset::gpu::{Counts, load};
use warpset::{BucketTable, Root, Storage, VectorTable};

const REPEATS: usize = 5;
const FILLS: [f64; 4] = [0.5, 0.75, 0.9, 0.95];
const KERNELS: &str = concat!(include_str!("kernels/mix.cuh"), include_str!("kernels/keys.cu"));

fn main() -> Result<()> {
    let Some(bench) = Bench::open()? else { return Ok(()) };
    let log2: u32 = std::env::var("WARPSET_BENCH_LOG2").map_or(Ok(28), |text| text.parse())?;
    let key_bits = std::env::var("WARPSET_BENCH_KEY_BITS").unwrap_or(format!("{},{}", log2 + 17, log2 + 26));
    println!("{}, 2^{log2} slots, duplication 2, G/s, medians of {REPEATS}\n", bench.device);
    println!(
        "| table | fill | keys, M | dup 2 | of placement | placement | seen | of placement | placement | found | absent | looks a stored key | longest |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for key_bits in key_bits.split(',').filter(|bits| !bits.is_empty()).map(str::parse::<u32>) {
        let key_bits = key_bits?;
        let builder = VectorTable::<Root>::builder(2).key_bits(key_bits).slot_bits(32).capacity(1 << log2);
        let table = builder.build(&bench.device)?;
        for fill in FILLS {
            let mut keys = Keys::new(&bench, 0, table.bytes() as f64 / 4.0 * fill, key_bits)?;
            measure(&bench, &format!("compact, {key_bits} bits"), &table, 4, &mut keys)?;
            if fill == FILLS[FILLS.len() - 1] {
                read_back(&bench, &table, &mut [keys])?;
            }
        }
    }
    let table = BucketTable::new(&bench.device, 2, 1 << log2)?;
    for fill in FILLS {
        let mut keys = Keys::new(&bench, 0, table.slots() as f64 * fill, 54)?;
        measure(&bench, "bucket, 2 words", &table, 8, &mut keys)?;
    }
    fill_cuckoo(&bench, log2)
}

/// Keys in device memory.
struct Keys {
    /// Random keys from a pool of half their number.
    drawn: Vectors,
    /// Equal number of keys that, except by chance, are not in the pool.
    absent: Vectors,
}

impl Keys {
    /// Makes keys from a pool whose members are numbered from `first` on, so that about `distinct` of them are distinct.
    fn new(bench: &Bench, first: u64, distinct: f64, key_bits: u32) -> Result<Self> {
        let make = load(&bench.device, &BucketTable::builder(2), "keys.cu", KERNELS)?.load_function("make_keys")?;
        // 2 p draws from p keys leave out a share of e^-2.
        let pool = (distinct / (1.0 - (-2f64).exp())) as u64;
        let count = 2 * pool;
        let vectors = |first_member: u64| -> Result<Vectors> {
            // SAFETY: written by the kernel below before it is read.
            let mut words = unsafe { bench.stream.alloc::<u32>(2 * count as usize)? };
            let mut launch = bench.stream.launch_builder(&make);
            launch.arg(&mut words).arg(&count).arg(&pool).arg(&first_member).arg(&key_bits);
            // SAFETY: the arguments of `make_keys`; there is room for `count` keys of two words.
            unsafe { launch.launch(FILL)? };
            Ok(Vectors { width: 2, count: count as usize, words, outcomes: bench.stream.alloc_zeros(count as usize)? })
        };
        Ok(Self { drawn: vectors(first)?, absent: vectors(first + pool)? })
    }
}

/// Measures and prints one row.
fn measure<S: Storage>(bench: &Bench, name: &str, table: &VectorTable<S>, slot_bytes: u64, keys: &mut Keys) -> Result<()> {
    let count = keys.drawn.count as u64;
    let [mut fresh, mut seen, mut found, mut absent] = [const { Vec::new() }; 4];
    let mut distinct = None;
    for _ in 0..REPEATS {
        table.clear()?;
        let (time, counts) = bench.find_or_put(table, &mut keys.drawn)?;
        assert_eq!((counts.hits, counts.full), (*distinct.get_or_insert(counts.hits), 0), "every distinct key is new once");
        fresh.push(time);
    }
    let placement = {
        let mut placement = PlacementOnly::new(bench, table, &keys.drawn)?;
        [placement.fresh(&keys.drawn, REPEATS)?, placement.seen(&keys.drawn, REPEATS)?]
    };
    for _ in 0..REPEATS {
        let (time, counts) = bench.find_or_put(table, &mut keys.drawn)?;
        assert_eq!((counts.hits, counts.full), (0, 0), "every key is seen the second time");
        seen.push(time);
        let (time, counts) = bench.find(table, &mut keys.drawn)?;
        assert_eq!(counts.hits, count, "every key is found");
        found.push(time);
        let (time, counts) = bench.find(table, &mut keys.absent)?;
        assert!(counts.hits < count / 1000, "{} of {count} keys are found that hardly any of were put", counts.hits);
        absent.push(time);
    }
    let (stored, stats) = (distinct.unwrap_or_default(), table.stats()?);
    assert_eq!(stats.stored, stored);
    let [fresh, seen, found, absent] = [fresh, seen, found, absent].map(median);
    let rate = |milliseconds: f64| count as f64 / milliseconds / 1e6;
    println!(
        "| {name} | {:.3} | {:.1} | {:.2} | {:.0} % | {:.2} | {:.2} | {:.0} % | {:.2} | {:.2} | {:.2} | {:.3} | {} |",
        (stored * slot_bytes) as f64 / table.bytes() as f64,
        stored as f64 / 1e6,
        rate(fresh),
        100.0 * placement[0] / fresh,
        rate(placement[0]),
        rate(seen),
        100.0 * placement[1] / seen,
        rate(placement[1]),
        rate(found),
        rate(absent),
        stats.mean_probe(),
        stats.longest_probe,
    );
    Ok(())
}

/// Fills a cuckoo table further and further, in batches of about 2^24 keys, and prints a row for each fill.
fn fill_cuckoo(bench: &Bench, log2: u32) -> Result<()> {
    // The slots can hold the codes of two functions only.
    let key_bits = 31 + log2 - 4;
    let builder = VectorTable::<Root>::builder(2).key_bits(key_bits).slot_bits(32).capacity(1 << log2).cuckoo(true);
    let table = builder.build(&bench.device)?;
    println!("\n{}\n", table.spec());
    println!(
        "| fill | of the bytes | keys, M | dup 2 | relocation included | relocated | relocation, ms | seen | found | absent |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let (mut stored, mut all) = (0, Vec::new());
    for fill in [0.9, 0.95, 0.97, 0.98, 0.99] {
        let (first_of_row, stored_before) = (all.len(), stored);
        let distinct = table.slots() as f64 * fill - stored as f64;
        let batches = (distinct / f64::from(1 << 23)).ceil();
        let (mut offered, mut put, mut relocation, mut passes) = (0, 0.0, 0.0, 0);
        for _ in 0..batches as u64 {
            // Numbers that no other keys have, `absent` ones included.
            let mut keys = Keys::new(bench, (all.len() as u64) << 32, distinct / batches, key_bits)?;
            offered += keys.drawn.count as u64;
            loop {
                let (time, counts) = bench.find_or_put(&table, &mut keys.drawn)?;
                put += time;
                stored += counts.hits;
                if counts.full == 0 {
                    break;
                }
                let start = Instant::now();
                assert!(table.relocate()? > 0, "{} keys of {} are rejected for good at {fill}", counts.full, counts.offered);
                relocation += start.elapsed().as_secs_f64() * 1e3;
                passes += 1;
            }
            all.push(keys);
        }
        let [mut seen, mut found, mut absent] = [0.0; 3];
        for keys in &mut all[first_of_row..] {
            let count = keys.drawn.count as u64;
            let (time, counts) = bench.find_or_put(&table, &mut keys.drawn)?;
            assert_eq!((counts.hits, counts.full), (0, 0), "every key is seen the second time");
            seen += time;
            let (time, counts) = bench.find(&table, &mut keys.drawn)?;
            assert_eq!(counts.hits, count, "every key is found");
            found += time;
            let (time, counts) = bench.find(&table, &mut keys.absent)?;
            assert!(counts.hits < count / 1000, "{} of {count} keys are found that hardly any of were put", counts.hits);
            absent += time;
        }
        assert_eq!(table.len()?, stored);
        let rate = |milliseconds: f64| offered as f64 / milliseconds / 1e6;
        println!(
            "| {:.3} | {:.3} | {:.1} | {:.2} | {:.2} | {passes} times | {relocation:.1} | {:.2} | {:.2} | {:.2} |",
            stored as f64 / table.slots() as f64,
            (stored * 4) as f64 / table.bytes() as f64,
            (stored - stored_before) as f64 / 1e6,
            rate(put),
            rate(put + relocation),
            rate(seen),
            rate(found),
            rate(absent),
        );
    }
    read_back(bench, &table, &mut all)
}

/// Reads all keys of a compact table, and looks each up in a bucket table that was given the same keys. If the keys are distinct,
/// all are found, and their number is right, then they are exactly the stored keys.
fn read_back(bench: &Bench, table: &VectorTable<Root>, keys: &mut [Keys]) -> Result<()> {
    let count: usize = keys.iter().map(|keys| keys.drawn.count).sum();
    let oracle = BucketTable::new(&bench.device, 2, count as u64 / 2 * 5 / 4)?;
    let mut put = Counts::default();
    for keys in keys {
        put += bench.find_or_put(&oracle, &mut keys.drawn)?.1;
    }
    let read_all = table.compile("keys.cu", KERNELS)?.load_function("read_all")?;
    let count = put.hits as usize;
    let mut words = bench.stream.alloc_zeros::<u32>(2 * count)?;
    let mut stored = bench.stream.alloc_zeros::<u64>(1)?;
    assert_eq!(table.len()?, put.hits);
    let (view, slots) = (table.kernel_argument()?, table.slots());
    let mut launch = bench.stream.launch_builder(&read_all);
    launch.arg(&view).arg(&slots).arg(&mut words).arg(&mut stored);
    // SAFETY: the arguments of `read_all`; there is room for as many keys as are stored.
    unsafe { launch.launch(FILL)? };
    let stored = bench.stream.clone_dtoh(&stored)?[0];
    let mut read = Vectors { width: 2, count, words, outcomes: bench.stream.alloc_zeros(count)? };
    let (_, found) = bench.find(&oracle, &mut read)?;
    let distinct = BucketTable::new(&bench.device, 2, count as u64 * 5 / 4)?;
    let (_, again) = bench.find_or_put(&distinct, &mut read)?;
    assert_eq!((stored, found.hits, again.hits), (put.hits, put.hits, put.hits), "a table read back is the set that was put");
    println!("\n{}: {stored} keys read back, all of them those that were put\n", table.spec());
    Ok(())
}
