//! Batches from host memory: their use of the link to the GPU, and the CPU backend with the same batches.
//!
//! Axes: words per vector {2, 8, 32} x memory of the vectors {a slice, pinned} x results {outcomes in a new vector; outcomes in
//! buffers that are used again, pinned if the vectors are; references too} x table {empty; all seen}, and look-ups. 2^26 vectors
//! (2^24 of 32 words), duplication 2, in a table that they fill to 0.5. Each figure is the median of 5 batches by the wall clock,
//! without the first one. The link is measured in the same process: copies of 1 GiB of pinned memory to the GPU, and back. Its
//! bound for a batch is the bytes to the GPU divided by that rate, or the bytes back divided by the other, whichever takes
//! longer.
//!
//! `cargo bench --bench host` prints a Markdown table, in 10^9 vectors a second. WARPSET_BENCH_LOG2 sets the power of two,
//! WARPSET_BENCH_WIDTHS=2,8 measures only these.

mod support;

use std::time::Instant;
use support::{Bench, Result, median};
use warpset::gpu::PinnedVec;
use warpset::{BucketTable, Buffers, Device, Request};
use warpset_random::draw;

const REPEATS: usize = 5;

/// Results that a batch reports.
#[derive(Clone, Copy)]
enum Report {
    NewVector,
    Buffers,
    References,
}

/// Puts one batch. Returns its duration, and the number of new vectors.
fn batch(table: &BucketTable, words: &[u32], report: Report, buffers: &mut Buffers) -> Result<(f64, u64)> {
    let request = Request::new().outcomes(true);
    let start = Instant::now();
    let batch = match report {
        Report::NewVector => table.find_or_put_many_with(words, request)?,
        Report::Buffers => table.find_or_put_many_with(words, request.into(buffers))?,
        Report::References => table.find_or_put_many_with(words, request.references(true).into(buffers))?,
    };
    let seconds = start.elapsed().as_secs_f64();
    let new = batch.complete(table)?.new;
    Ok((seconds, new))
}

/// Medians in G/s: into an empty table, all seen, and of look-ups.
fn rates(table: &BucketTable, words: &[u32], report: Report, buffers: &mut Buffers) -> Result<[f64; 3]> {
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    let mut distinct = None;
    for _ in 0..=REPEATS {
        table.clear()?;
        let (seconds, new) = batch(table, words, report, buffers)?;
        assert_eq!(*distinct.get_or_insert(new), new, "every vector is new once");
        times[0].push(seconds);
        let (seconds, new) = batch(table, words, report, buffers)?;
        assert_eq!(new, 0);
        times[1].push(seconds);
        if matches!(report, Report::NewVector) {
            let start = Instant::now();
            let found = table.contains_many(words)?;
            times[2].push(start.elapsed().as_secs_f64());
            assert!(found.iter().all(|found| *found));
        }
    }
    let count = (words.len() / table.width()) as f64;
    Ok(times.map(|mut times| if times.len() > 1 { count / median(times.split_off(1)) / 1e9 } else { f64::NAN }))
}

fn main() -> Result<()> {
    let Some(bench) = Bench::open()? else { return Ok(()) };
    let log2: u32 = std::env::var("WARPSET_BENCH_LOG2").map_or(Ok(26), |text| text.parse())?;
    let widths = std::env::var("WARPSET_BENCH_WIDTHS").unwrap_or("2,8,32".into());
    let [to, back] = bench.link(1 << 30, REPEATS)?;
    let cpu = Device::cpu();
    println!("{}, link {to:.1} GB/s to the GPU and {back:.1} back, {cpu}; medians of {REPEATS}, G/s\n", bench.device);
    println!("| words | vectors in | reported | bound | dup 2 | of bound | seen | of bound | found | of bound |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for width in widths.split(',').map(str::parse::<usize>) {
        let width = width?;
        let count = 1usize << if width > 16 { log2.saturating_sub(2) } else { log2 };
        let mut pinned = PinnedVec::<u32>::zeroed(&bench.device, count * width)?;
        draw(&mut pinned, width, 0);
        let plain = pinned.to_vec();
        let table = BucketTable::new(&bench.device, width, count as u64)?;
        let lines = |memory: &str, words: &[u32], buffers: &mut Buffers| -> Result<()> {
            for (report, name, bytes) in [
                (Report::NewVector, "outcomes, new vector", 1.0),
                (Report::Buffers, "outcomes, buffers", 1.0),
                (Report::References, "and references, buffers", 9.0),
            ] {
                let bound = (to / (width * 4) as f64).min(back / bytes);
                let cells = rates(&table, words, report, buffers)?.map(|rate| match rate.is_nan() {
                    true => "| |".into(),
                    false => format!("{rate:.2} | {:.2} |", rate / bound),
                });
                println!("| {width} | {memory} | {name} | {bound:.2} | {}", cells.join(" "));
            }
            Ok(())
        };
        lines("slice", &plain, &mut Buffers::new())?;
        lines("pinned", &pinned, &mut Buffers::pinned(&bench.device))?;
        drop(table);
        let on_cpu = BucketTable::new(&cpu, width, count as u64)?;
        let [put, seen, found] = rates(&on_cpu, &plain, Report::NewVector, &mut Buffers::new())?;
        println!("| {width} | slice | CPU backend | | {put:.2} | | {seen:.2} | | {found:.2} | |");
    }
    Ok(())
}
