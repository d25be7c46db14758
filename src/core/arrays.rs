//! State of the arrays of values that belong to a table's rows.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// The arrays of a table. For each, the number from which its values are void.
#[derive(Default)]
pub(crate) struct Arrays(Mutex<Vec<Weak<AtomicU64>>>);

impl Arrays {
    pub(super) fn add(&self) -> Arc<AtomicU64> {
        let kept = Arc::new(AtomicU64::new(u64::MAX));
        let mut arrays = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        arrays.retain(|array| array.strong_count() > 0);
        arrays.push(Arc::downgrade(&kept));
        kept
    }

    /// Takes back the numbers from `rows` on. The caller has the table exclusively.
    pub(super) fn keep(&self, rows: u64) {
        let arrays = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for kept in arrays.iter().filter_map(Weak::upgrade) {
            // Relaxed: an array looks at it with the table's lock, which the caller has exclusively.
            kept.fetch_min(rows, Ordering::Relaxed);
        }
    }
}
