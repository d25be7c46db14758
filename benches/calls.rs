//! The cost of a call: small batches and look-ups on a CPU device of one thread.
//!
//! Axes: vectors per call {0, 1, 1000} x operation {find-or-put of stored vectors, into buffers that are used again;
//! `contains_many`; `slots`}. Vectors have 4 words, and the table fits the second-level cache, so that the call itself weighs
//! most. Each figure is the least of 31 rounds of at least 2 ms: other work on the machine can slow a round down, but never speed
//! it up.
//!
//! `cargo bench --bench calls` prints a Markdown table, in ns a call.

use std::time::Instant;
use warpset::{BucketTable, Buffers, Device, Request};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const WIDTH: usize = 4;
const ROUNDS: usize = 31;
const ROUND_NS: f64 = 2e6;

/// Nanoseconds of one call.
fn least(mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut round = |calls: usize| -> Result<f64> {
        let start = Instant::now();
        for _ in 0..calls {
            call()?;
        }
        Ok(start.elapsed().as_nanos() as f64 / calls as f64)
    };
    let calls = (ROUND_NS / round(100)?) as usize + 1;
    let times = (0..ROUNDS).map(|_| round(calls)).collect::<Result<Vec<_>>>()?;
    Ok(times.into_iter().fold(f64::INFINITY, f64::min))
}

fn main() -> Result<()> {
    let table = BucketTable::new(&Device::cpu_with_threads(1), WIDTH, 3000)?;
    let words: Vec<u32> = (0..1000 * WIDTH as u32).map(|word| word.wrapping_mul(0x9e37_79b1)).collect();
    table.find_or_put_many(&words)?.complete(&table)?;
    let mut buffers = Buffers::new();
    println!("least of {ROUNDS} rounds, ns a call\n");
    println!("| vectors a call | find-or-put | contains | slots |\n|---|---|---|---|");
    for vectors in [0, 1, 1000] {
        let words = &words[..vectors * WIDTH];
        let put = least(|| {
            let request = Request::new().outcomes(true).into(&mut buffers);
            table.find_or_put_many_with(words, request)?.complete(&table)?;
            Ok(())
        })?;
        let find = least(|| table.contains_many(words).map(drop).map_err(Into::into))?;
        let slots = least(|| {
            std::hint::black_box(table.slots());
            Ok(())
        })?;
        println!("| {vectors} | {put:.1} | {find:.1} | {slots:.1} |");
    }
    Ok(())
}
