use super::batch::{Buffers, Wanted};
use crate::Reference;
use crate::layout::batch::Callback;
use std::fmt;
use std::ops::ControlFlow;

/// What a batch reports of each vector, into which memory, and to whom its progress. What its vectors are changes of, if they
/// are.
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::{BucketTable, Device, Request};
///
/// let table = BucketTable::new(&Device::cpu(), 1, 100)?;
/// let batch = table.find_or_put_many_with(&[7, 8, 7], Request::new().new_references(true))?;
/// assert_eq!(batch.new_references.len(), 2);
/// assert!(batch.outcomes.is_empty()); // not asked for
/// # Ok(()) }
/// ```
#[derive(Default)]
#[must_use]
pub struct Request<'a> {
    pub(crate) wanted: Wanted,
    /// Where results go; none: to vectors of the batch.
    pub(crate) buffers: Option<&'a mut Buffers>,
    pub(crate) parents: Option<&'a [Reference]>,
    pub(crate) changed: Option<&'a [u32]>,
    pub(crate) progress: Option<&'a mut Callback<'a>>,
    pub(crate) leaves_holes: bool,
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("wanted", &self.wanted)
            .field("buffers", &self.buffers)
            .field("parents", &self.parents.map(<[_]>::len))
            .field("changed", &self.changed.map(<[_]>::len))
            .field("progress", &self.progress.is_some())
            .field("leaves_holes", &self.leaves_holes)
            .finish()
    }
}

impl<'a> Request<'a> {
    /// Nothing but the tally.
    pub fn new() -> Self {
        Self::default()
    }

    /// The outcome of each vector: 1 byte each.
    pub fn outcomes(mut self, wanted: bool) -> Self {
        self.wanted.outcomes = wanted;
        self
    }

    /// Where each vector is stored: 8 bytes each.
    pub fn references(mut self, wanted: bool) -> Self {
        self.wanted.references = wanted;
        self
    }

    /// Where the new vectors are stored, and no others: what a breadth-first search wants as its next level.
    pub fn new_references(mut self, wanted: bool) -> Self {
        self.wanted.new_references = wanted;
        self
    }

    /// Puts the results that are asked for into [`Buffers`], instead of into new vectors: those of the [`Batch`](crate::Batch)
    /// are empty then. A caller who repeats batches with the same buffers allocates nothing; [`Buffers`] has an example.
    pub fn into(mut self, buffers: &'a mut Buffers) -> Self {
        self.buffers = Some(buffers);
        self
    }

    /// *Incremental* find-or-put: each vector is a change of a stored one, its parent (the state that it is a successor of, say).
    /// One reference a vector.
    ///
    /// The results are the same. But a tree table that is also told [what has changed](Self::changed) only touches what lies on
    /// the ways to changed words: for k of w words at most k log2 w nodes, not w - 2. A GPU does so from 9 words on, or if the
    /// node table is larger than its L2 cache; else looking for all nodes is faster. In other tables parents have no effect.
    ///
    /// Without masks of what has changed, a CPU compares each vector with its parent. A GPU looks for all nodes, which takes less
    /// time there. A parent that is not stored, or a stale reference, does no harm then. With masks a stale reference is an error
    /// ([`StaleReferences`](crate::Error::StaleReferences)), and nothing is put.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{Device, Request, TreeTable};
    ///
    /// let table = TreeTable::new(&Device::cpu(), 4, 1000)?;
    /// let start = table.find_or_put_many_with(&[1, 2, 3, 4], Request::new().references(true))?.references[0].unwrap();
    /// let successors = [1, 2, 3, 5, /**/ 9, 2, 3, 5];
    /// let parents = [start, start];
    /// let request = Request::new().parents(&parents).changed(&[0b1000, 0b1001]);
    /// assert_eq!(table.find_or_put_many_with(&successors, request)?.tally.new, 2);
    /// # Ok(()) }
    /// ```
    ///
    /// Unless there are as many parents as vectors, the batch is refused with [`Rows`](crate::Error::Rows), before anything is
    /// put.
    pub fn parents(mut self, parents: &'a [Reference]) -> Self {
        self.parents = Some(parents);
        self
    }

    /// Which words may differ from the [parent](Self::parents)'s: for each vector as many words as it takes to have a bit for
    /// each of its words, bit i % 32 of word i / 32 for word i.
    ///
    /// This is trusted: a word that is left out counts as the parent's. If it is not, then another vector may be stored than the
    /// one given. Nor does the search look at what has not changed, so the batch that put the parent must have ended: on another
    /// stream, before this one begins.
    pub fn changed(mut self, masks: &'a [u32]) -> Self {
        self.changed = Some(masks);
        self
    }

    /// Of an [`IndexedTable`](crate::IndexedTable): new vectors get numbers above all that were given before, and the
    /// [holes](crate::Table::holes) among these are left as they are. Then what is new to this batch is a range of references,
    /// as the levels of a search are. Default: holes are filled first. Without effect in other tables.
    ///
    /// Holes take rows: of these there are 2^18 more than slots. Batches that find so many holes, and leave them, come to an end
    /// of the rows before that of the slots, and new vectors are [`Full`](crate::Outcome::Full). A batch of the host alone leaves
    /// none; one in device memory at most one a thread that it had at work.
    pub fn leave_holes(mut self, leave: bool) -> Self {
        self.leaves_holes = leave;
        self
    }

    /// Called with (vectors done, vectors in the batch), on the calling thread, a few times a second or more on long batches. It
    /// says whether to go on: after a `Break` no more is offered, and the batch has the results of what was
    /// ([`Batch::stopped`](crate::Batch::stopped)).
    ///
    /// Calls that wait until it returns: `clear`, `grow`, `reserve` that grows, `relocate`, `retain`, `save`, `save_file` and
    /// `truncate` of the table. The callback itself gets the error [`SelfDeadlock`](crate::Error::SelfDeadlock) from them, and
    /// so, in [`Batch::error`](crate::Batch::error), does a batch of its own that would make the table grow or relocate keys. It
    /// may make all other calls. It must not wait for another thread that uses the table.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # use warpset::Request;
    /// use std::ops::ControlFlow;
    ///
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 2, 100)?;
    /// let mut show = |done, of| {
    ///     println!("{done} of {of}");
    ///     ControlFlow::Continue(())
    /// };
    /// let batch = table.find_or_put_many_with(&[1, 1], Request::new().progress(&mut show))?;
    /// assert!(!batch.stopped);
    /// # Ok(()) }
    /// ```
    pub fn progress(mut self, callback: &'a mut (dyn FnMut(u64, u64) -> ControlFlow<()> + 'a)) -> Self {
        self.progress = Some(callback);
        self
    }
}
