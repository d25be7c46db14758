//! Moves the contents of the slots of one table into another one.

use super::kernels::{CpuView, warpset_cpu_find_or_put};
use super::threads::on_threads;
use crate::Result;
use crate::host::zeroed;
use crate::layout::view::{BatchView, Counts};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Puts `vectors`, which are vectors or keys of `words` words, into `table`, and adds to `counts`.
///
/// # Safety
///
/// `table` is the view of a table for vectors of `words` words. During the call, only atomic operations change its memory.
pub(super) unsafe fn put_all(table: &CpuView, words: usize, vectors: &[u32], counts: &mut Counts) {
    let batch = BatchView {
        vectors: vectors.as_ptr() as u64,
        count: (vectors.len() / words) as u64,
        counts: &raw mut *counts as u64,
        ..BatchView::default()
    };
    // SAFETY: `vectors` holds that number of vectors, and the batch asks for counts only. The caller guarantees the rest.
    unsafe { warpset_cpu_find_or_put(table, &batch) };
}

/// Puts the contents of a range of slots, which are vectors or keys of `words` words, into another table. `export` copies the
/// vectors of some slots and returns their number. `put` puts vectors and adds to the counts. Each thread takes one piece of the
/// range at a time, so that the piece's vectors are in its cache when it puts them.
pub(super) fn rehash(
    threads: usize,
    slots: Range<u64>,
    words: usize,
    export: impl Fn(Range<u64>, &mut [u32]) -> usize + Sync,
    put: impl Fn(&[u32], &mut Counts) + Sync,
) -> Result<Counts> {
    let count = slots.end - slots.start;
    let piece = ((256 << 10) / (words as u64 * 4)).clamp(1, count.max(1));
    let (next, sum, failed) = (AtomicU64::new(slots.start), Mutex::new(Counts::default()), Mutex::new(None));
    let work = || {
        let rehash = || -> Result<Counts> {
            let mut vectors = zeroed::<u32>(piece as usize * words)?;
            let mut counts = Counts::default();
            loop {
                // Relaxed: only the uniqueness of the pieces matters; the counts are read after the threads are joined.
                let first = next.fetch_add(piece, Ordering::Relaxed);
                if first >= slots.end {
                    return Ok(counts);
                }
                let count = export(first..slots.end.min(first + piece), &mut vectors);
                put(&vectors[..count * words], &mut counts);
            }
        };
        match rehash() {
            Ok(counts) => *sum.lock().unwrap_or_else(PoisonError::into_inner) += counts,
            Err(error) => *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error),
        }
    };
    on_threads(threads.min(count.div_ceil(piece) as usize), work, work);
    let (sum, failed) = (sum.into_inner(), failed.into_inner());
    match failed.unwrap_or_else(PoisonError::into_inner) {
        // Other threads may have done all the work although one had no memory. The error is returned nevertheless; the caller
        // keeps its old table.
        Some(error) => Err(error),
        None => Ok(sum.unwrap_or_else(PoisonError::into_inner)),
    }
}
