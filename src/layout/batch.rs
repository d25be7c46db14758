//! Batches from host slices, and views of parts of them. A batch is cut for two reasons: a table that grows puts it in *parts*
//! (core/put.rs), and grows before a part for which it has no room; and a machine takes a part piece by piece: a GPU in
//! *segments*, so that copies and kernels overlap (backend/cuda/staging.rs), CPU threads in *pieces* that they share.

use super::{Reference, SearchMode, Spec, Upsert};
use std::ops::{ControlFlow, Range};

/// Called with (vectors done, vectors in the batch). Returns whether to continue.
pub(crate) type Callback<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

/// A search of a batch in host memory: the vectors, and the memory for the results, by position.
///
/// Each slice except `new_references` has one element, or row, for each vector, or is empty if the batch has no such input or
/// wants no such result.
pub(crate) struct HostBatch<'a> {
    pub search: SearchMode,
    /// Vectors, one after another.
    pub vectors: &'a [u32],
    /// For incremental batches: a reference to the parent of each vector.
    pub parents: &'a [Reference],
    /// For each vector a mask of the words that may differ from its parent's, `Spec::mask_words` words each.
    pub changed: &'a [u32],
    pub outcomes: &'a mut [u8],
    /// Bits of the reference of each vector; 0 for a vector that is not stored.
    pub references: &'a mut [u64],
    /// References of the new vectors, in no order: `Counts::new_references` of them. Has at least as many elements as the batch
    /// has vectors, or none.
    pub new_references: &'a mut [u64],
    /// Operands to combine with values that belong to the rows of an indexed table.
    pub upsert: Option<Upsert<'a>>,
}

impl<'a> HostBatch<'a> {
    /// A batch of whole vectors that reports counts only.
    pub(crate) fn new(search: SearchMode, vectors: &'a [u32]) -> Self {
        Self {
            search,
            vectors,
            parents: &[],
            changed: &[],
            outcomes: &mut [],
            references: &mut [],
            new_references: &mut [],
            upsert: None,
        }
    }

    /// Number of vectors.
    pub(crate) fn count(&self, spec: Spec) -> usize {
        self.vectors.len() / spec.width()
    }

    /// Returns the part of the batch in a range of positions. Its new references are written after the first `new` ones.
    pub(crate) fn part(&mut self, range: &Range<usize>, new: u64, spec: Spec) -> HostBatch<'_> {
        HostBatch {
            search: self.search,
            vectors: rows(self.vectors, range, spec.width()),
            parents: rows(self.parents, range, 1),
            changed: rows(self.changed, range, spec.mask_words()),
            outcomes: rows_mut(self.outcomes, range.clone()),
            references: rows_mut(self.references, range.clone()),
            new_references: rows_mut(self.new_references, new as usize..self.new_references.len()),
            upsert: self.upsert.map(|upsert| upsert.part(range)),
        }
    }
}

/// Returns the rows of `width` elements in a range of positions, or nothing if `all` is empty.
pub(crate) fn rows<'a, T>(all: &'a [T], range: &Range<usize>, width: usize) -> &'a [T] {
    if all.is_empty() { all } else { &all[range.start * width..range.end * width] }
}

/// Returns the elements in a range of positions, or nothing if `all` is empty.
pub(crate) fn rows_mut<T>(all: &mut [T], range: Range<usize>) -> &mut [T] {
    if all.is_empty() { all } else { &mut all[range] }
}

/// Reports the progress of a batch to the caller's callback, and records whether the callback wants to continue.
pub(crate) struct BatchProgress<'a> {
    callback: Option<&'a mut Callback<'a>>,
    /// Number of vectors in earlier parts of the same call. `total`: number of vectors of the whole call.
    before: u64,
    total: u64,
    pub stopped: bool,
}

impl<'a> BatchProgress<'a> {
    pub(crate) fn new<'c: 'a>(callback: Option<&'a mut Callback<'c>>, total: usize) -> Self {
        let callback = callback.map(|callback| callback as &mut Callback<'a>);
        BatchProgress { callback, before: 0, total: total as u64, stopped: false }
    }

    pub(crate) fn none() -> Self {
        BatchProgress { callback: None, before: 0, total: 0, stopped: false }
    }

    /// Begins a part of the call, at position `first`: later reports are about this part.
    pub(crate) fn begin_part(&mut self, first: usize) {
        self.before = first as u64;
    }

    /// Reports that `done` vectors of this part are done. Once the callback has asked to stop, it is not called again.
    pub(crate) fn report(&mut self, done: u64) {
        if let Some(callback) = self.callback.as_mut().filter(|_| !self.stopped) {
            self.stopped = callback(self.before + done, self.total).is_break();
        }
    }
}
