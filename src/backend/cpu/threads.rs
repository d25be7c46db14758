//! Threads that share the work of one call.

use crate::faults;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Runs `own` on this thread, and meanwhile `work` on up to `threads - 1` others. All of them share the work, so if the system
/// refuses to start a thread, the others do its part.
pub(super) fn on_threads(threads: usize, work: impl Fn() + Sync, own: impl FnOnce()) {
    if threads <= 1 {
        return own();
    }
    thread::scope(|scope| {
        for _ in 1..threads {
            if faults::should_fail() || thread::Builder::new().spawn_scoped(scope, &work).is_err() {
                break;
            }
        }
        own();
    });
}

/// Calls `each` for every number below `pieces`, on up to `threads` threads.
pub(super) fn in_pieces(threads: usize, pieces: u64, each: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(0);
    let work = || {
        loop {
            // Relaxed: only the uniqueness of the pieces matters; their results are read after the threads are joined.
            let piece = next.fetch_add(1, Ordering::Relaxed);
            if piece >= pieces {
                return;
            }
            each(piece);
        }
    };
    on_threads(threads.min(pieces as usize), work, work);
}
