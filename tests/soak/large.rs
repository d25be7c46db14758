//! Tables of more than 2^32 slots, counted exactly.
//!
//! - 5,000,000,000 distinct vectors of 2 words in 5 / 0.7 x 10^9 slots: 57 GB.
//! - All 2^32 vectors of one word in one table, filled to 0.9: 19 GB.
//!
//! Vectors are made from numbers on the GPU, 2^28 at a time (numbered.rs), so the host has none of them. Each batch is New, then
//! in another order Seen; for every 16th batch all outcomes and references are judged one by one. Then as many other vectors are
//! looked up, if the width allows that many, and the whole table is read back: it must hold every vector that was put, once, and
//! nothing else.
//!
//! `WARPSET_LARGE=5e9` is the number of vectors of the first table, and at most that of the second. Each table has a row in the
//! output, or a line that says how much memory it lacks.
//!
//! From host memory `replay` does the same; the host needs 60 and 30 GB:
//!
//! ```text
//! cargo run --release --example replay -- --width 2 --count 5G --duplication 1 --placement no
//! cargo run --release --example replay -- --width 1 --count 2^32 --duplication 1 --fill 0.9 --placement no
//! ```

use super::numbered::{How, Session, Shape};
use crate::Result;
use std::time::Instant;
use warpset::gpu::cudarc_0_19::DeviceExt;
use warpset::{BucketTable, Device};
use warpset_random::Random;

/// Vectors of a batch.
const BATCH: u64 = 1 << 28;

/// Puts `most` vectors into a table of 2-word vectors, and at most that many into one of 1-word vectors.
pub fn run(device: &Device, most: u64) -> Result<()> {
    println!("{device}\n");
    println!("| words | vectors | slots | fill | new, G/s | seen, G/s | judged | absent | read back |");
    println!("|---|---|---|---|---|---|---|---|---|");
    count_exactly(device, &[32, 32], most, 0.7)?;
    count_exactly(device, &[32], most.min(1 << 32), 0.9)
}

/// Puts `count` vectors with these bits of information in each word, and prints a row.
fn count_exactly(device: &Device, bits: &[u8], count: u64, fill: f64) -> Result<()> {
    let (width, slots) = (bits.len(), (count as f64 / fill) as u64);
    if let Some(context) = device.cuda_context() {
        // Vectors of a batch; references, new references and outcomes where they are judged; a bit for each number at the end.
        let needed = (slots + BATCH) * width as u64 * 4 + BATCH * 17 + count / 8 + (1 << 30);
        let free = context.mem_get_info()?.0 as u64;
        if needed > free {
            println!("skipped: {count} vectors of {width} words need {needed} bytes of the GPU, {free} are free");
            return Ok(());
        }
    }
    let table = BucketTable::builder(width).capacity(slots).seed(1).build(device)?;
    let slots = table.slots();
    let mut random = Random::new(1);
    let mut session = Session::new(table, Shape::new(bits, false, false, 1), false)?;
    let batches: Vec<_> = (0..count).step_by(BATCH as usize).map(|first| first..count.min(first + BATCH)).collect();
    let how = |batch: usize| How { judged: batch.is_multiple_of(16), ..How::default() };
    let mut rates = [0.0; 2];
    for rate in &mut rates {
        // With making the vectors; without the batches that are judged, if there are others.
        let (mut seconds, mut timed) = (0.0, 0);
        for (number, batch) in batches.iter().enumerate() {
            let start = Instant::now();
            session.offer(0, batch.clone(), 1, how(number), &mut random)?;
            if !how(number).judged || batches.len() == 1 {
                seconds += start.elapsed().as_secs_f64();
                timed += batch.end - batch.start;
            }
        }
        *rate = timed as f64 / seconds / 1e9;
    }
    for batch in &batches {
        session.find(0, batch.clone(), &mut random)?;
    }
    let absent = (session.numbers() - count).min(BATCH).min(count);
    if absent > 0 {
        session.find(0, count..count + absent, &mut random)?;
    }
    session.read_back()?;
    println!(
        "| {width} | {count} | {slots} | {:.3} | {:.2} | {:.2} | {} | {absent} | {} |",
        count as f64 / slots as f64,
        rates[0],
        rates[1],
        session.done.judged,
        session.done.read_back
    );
    Ok(())
}
