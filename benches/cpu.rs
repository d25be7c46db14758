//! The CPU backend: batches from a slice, by width, threads and fill.
//!
//! Axes: words per vector {1, 2, 3, 4, 8, 16, 24, 32, 64} x threads {1, all cores} x fill {0.5, 0.9} x table {empty: each vector
//! is offered twice on average; all seen}, and look-ups of vectors that are stored, and of others. Outcomes go to buffers that
//! are used again. The vectors take 1 GiB, but are at most 2^24. Each figure is the median of 3 batches by the wall clock.
//!
//! `cargo bench --bench cpu` prints a Markdown table, in 10^6 vectors a second. WARPSET_BENCH_LOG2 sets the power of two of the
//! bytes, WARPSET_BENCH_WIDTHS=2,8 and WARPSET_BENCH_THREADS=1,16 measure only these.

use std::time::Instant;
use warpset::{BucketTable, Buffers, Device, Request};
use warpset_random::draw;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const REPEATS: usize = 3;

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn numbers(variable: &str, default: Vec<usize>) -> Result<Vec<usize>> {
    match std::env::var(variable) {
        Ok(text) => Ok(text.split(',').map(str::parse).collect::<std::result::Result<_, _>>()?),
        Err(_) => Ok(default),
    }
}

/// Returns the seconds of one batch, and the number of new vectors.
fn put(table: &BucketTable, words: &[u32], buffers: &mut Buffers) -> Result<(f64, u64)> {
    let start = Instant::now();
    let batch = table.find_or_put_many_with(words, Request::new().outcomes(true).into(buffers))?;
    let seconds = start.elapsed().as_secs_f64();
    Ok((seconds, batch.complete(table)?.new))
}

/// Returns the seconds of one batch of look-ups, and the number of vectors found.
fn find(table: &BucketTable, words: &[u32]) -> Result<(f64, usize)> {
    let start = Instant::now();
    let found = table.contains_many(words)?;
    let seconds = start.elapsed().as_secs_f64();
    Ok((seconds, found.iter().filter(|found| **found).count()))
}

fn main() -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let widths = numbers("WARPSET_BENCH_WIDTHS", vec![1, 2, 3, 4, 8, 16, 24, 32, 64])?;
    let mut threads = numbers("WARPSET_BENCH_THREADS", vec![1, cores])?;
    threads.dedup();
    let log2 = numbers("WARPSET_BENCH_LOG2", vec![30])?[0];
    println!("{cores} cores; medians of {REPEATS}, 10^6 vectors a second\n");
    println!("| words | fill | threads | claims | dup 2 | seen | found | absent |\n|---|---|---|---|---|---|---|---|");
    for width in widths {
        let count = ((1usize << log2) / (width * 4)).min(1 << 24);
        let (mut words, mut others) = (vec![0; count * width], vec![0; count / 4 * width]);
        draw(&mut words, width, 0);
        draw(&mut others, width, 1);
        for fill in [0.5, 0.9] {
            for &threads in &threads {
                // If n vectors are drawn from a pool of n / 2, a share of 1 - exp(-2) of the pool is drawn.
                let distinct = count as f64 / 2.0 * (1.0 - (-2f64).exp());
                let device = Device::cpu_with_threads(threads);
                let table = BucketTable::new(&device, width, (distinct / fill) as u64)?;
                let (mut buffers, mut times) = (Buffers::new(), [const { Vec::new() }; 4]);
                let mut expected = None;
                for _ in 0..REPEATS {
                    table.clear()?;
                    let (seconds, new) = put(&table, &words, &mut buffers)?;
                    assert_eq!(*expected.get_or_insert(new), new, "every vector is new once");
                    times[0].push(seconds);
                    let (seconds, new) = put(&table, &words, &mut buffers)?;
                    assert_eq!(new, 0);
                    times[1].push(seconds);
                    let (seconds, found) = find(&table, &words)?;
                    assert_eq!(found, count);
                    times[2].push(seconds);
                    let (seconds, found) = find(&table, &others)?;
                    assert!(width < 3 || found == 0);
                    times[3].push(seconds * count as f64 / (count / 4) as f64);
                }
                let cells = times.map(|times| format!("{:.1}", count as f64 / median(times) / 1e6)).join(" | ");
                println!("| {width} | {fill} | {threads} | {} bytes | {cells} |", table.spec().chunk_bytes());
            }
        }
    }
    Ok(())
}
