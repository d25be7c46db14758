//! Streams in the form that the simulated NCCL uses.

use super::accesses::Action;
pub use super::handles::new_handle;
use super::memory;
use super::stream::{self, Stream};
use std::ffi::c_void;
use std::sync::Arc;

/// A stream.
#[derive(Clone)]
pub struct Queue(Arc<Stream>);

impl Queue {
    pub fn of(stream: *mut c_void) -> Option<Self> {
        stream::of(stream.cast()).ok().map(Self)
    }

    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Enqueues work that uses ranges of memory (address, bytes, whether it writes there). Returns false if the context is
    /// broken.
    pub fn enqueue(&self, what: &'static str, ranges: &[(u64, u64, bool)], work: impl FnOnce() + Send + 'static) -> bool {
        let used = ranges.iter().filter(|(_, bytes, _)| *bytes > 0);
        let used: Vec<_> = used.map(|range| (range, memory::find_range(range.0, range.1, what))).collect();
        let note = |_: &Arc<Stream>, moment, clock: &_| {
            for ((address, bytes, writes), region) in &used {
                let action = if *writes { Action::Writes } else { Action::Reads };
                if let Some(region) = region {
                    region.use_by(*address..address + bytes, action, moment, clock, what);
                }
            }
        };
        let work = move || {
            work();
            Ok(())
        };
        self.0.enqueue(what, note, work).is_ok()
    }
}
