//! Batches from host slices: their vectors, offered in parts, and the memory for their results.

use super::{Reference, SearchMode, Spec, Upsert};
use std::ops::{ControlFlow, Range};

/// Called with (vectors done, vectors in the batch). Returns whether to continue.
pub(crate) type Callback<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

/// A batch in host memory: the vectors of a search, and the memory for its results, by position.
///
/// Each slice except `new_references` has one element, or row, for each vector.
pub(crate) struct HostBatch<'a> {
    /// Vectors, one after another.
    pub vectors: &'a [u32],
    /// For incremental batches: a reference to the parent of each vector.
    pub parents: Option<&'a [Reference]>,
    /// For each vector a mask of the words that may differ from its parent's, `Spec::mask_words` words each.
    pub changed: Option<&'a [u32]>,
    pub outcomes: Option<&'a mut [u8]>,
    /// The bits of a reference; 0 for a vector that is not stored.
    pub references: Option<&'a mut [u64]>,
    /// In no order. The first `Counts::new_references` elements are written. At least as many elements as vectors.
    pub new_references: Option<&'a mut [u64]>,
    /// Indexed tables only: new vectors get the next numbers, even if there are holes.
    pub leaves_holes: bool,
    /// Operands that are combined with values beside the rows of an indexed table.
    pub upsert: Option<Upsert<'a>>,
}

impl<'a> HostBatch<'a> {
    /// A batch of whole vectors that reports counts only.
    pub(crate) fn of(vectors: &'a [u32]) -> Self {
        Self {
            vectors,
            parents: None,
            changed: None,
            outcomes: None,
            references: None,
            new_references: None,
            leaves_holes: false,
            upsert: None,
        }
    }

    /// The kind of find-or-put that the batch requests.
    pub(crate) fn put_search(&self) -> SearchMode {
        if self.leaves_holes { SearchMode::FindOrPutLeavingHoles } else { SearchMode::FindOrPut }
    }

    /// Number of vectors.
    pub(crate) fn count(&self, spec: Spec) -> usize {
        self.vectors.len() / spec.width()
    }

    /// The vectors in a range of positions. New references are written after the first `new` ones.
    pub(crate) fn part(&mut self, range: &Range<usize>, new: u64, spec: Spec) -> HostBatch<'_> {
        let rows = |words: &'a [u32], width: usize| &words[range.start * width..range.end * width];
        HostBatch {
            vectors: rows(self.vectors, spec.width()),
            parents: self.parents.map(|parents| &parents[range.clone()]),
            changed: self.changed.map(|changed| rows(changed, spec.mask_words())),
            outcomes: self.outcomes.as_deref_mut().map(|outcomes| &mut outcomes[range.clone()]),
            references: self.references.as_deref_mut().map(|references| &mut references[range.clone()]),
            new_references: self.new_references.as_deref_mut().map(|references| &mut references[new as usize..]),
            leaves_holes: self.leaves_holes,
            upsert: self.upsert.map(|upsert| upsert.part(range)),
        }
    }
}

/// Reports the progress of a batch to the caller's callback, and records whether the callback wants to continue.
pub(crate) struct BatchProgress<'a> {
    callback: Option<&'a mut Callback<'a>>,
    /// Vectors of earlier parts of the same call, and of the whole call.
    before: u64,
    total: u64,
    pub stopped: bool,
}

impl<'a> BatchProgress<'a> {
    pub(crate) fn new(callback: Option<&'a mut Callback<'a>>, total: usize) -> Self {
        BatchProgress { callback, before: 0, total: total as u64, stopped: false }
    }

    pub(crate) fn none() -> Self {
        BatchProgress { callback: None, before: 0, total: 0, stopped: false }
    }

    /// Begins a part of the call, at this position: later reports are about it.
    pub(crate) fn begin_part(&mut self, first: usize) {
        self.before = first as u64;
    }

    /// Vectors of this part that are done. Once the callback has said to stop it is not called again.
    pub(crate) fn report(&mut self, done: u64) {
        if let Some(callback) = self.callback.as_mut().filter(|_| !self.stopped) {
            self.stopped = callback(self.before + done, self.total).is_break();
        }
    }
}
