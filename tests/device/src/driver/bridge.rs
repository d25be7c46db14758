//! Streams for NCCL.

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

    /// Enqueues work on ranges of memory; false if the context is broken.
    pub fn enqueue(&self, what: &'static str, ranges: &[(u64, u64)], work: impl FnOnce() + Send + 'static) -> bool {
        let used: Vec<_> = ranges
            .iter()
            .filter(|(_, bytes)| *bytes > 0)
            .filter_map(|range| memory::find_range(range.0, range.1, what))
            .collect();
        let note = |_: &Arc<Stream>, moment, clock: &_| used.iter().for_each(|region| region.use_by(moment, clock, what));
        let work = move || {
            work();
            Ok(())
        };
        self.0.enqueue(what, note, work).is_ok()
    }
}
