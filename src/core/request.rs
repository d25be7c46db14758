use super::results::Buffers;
use super::table::TableState;
use crate::layout::batch::Callback;
use crate::{Error, Reference, Result};
use std::fmt;
use std::ops::ControlFlow;

/// Options of a batch: the results to report for each vector, the memory for them, a progress callback, and, for incremental
/// batches, the parents of the vectors.
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
    pub(crate) outcomes: bool,
    pub(crate) references: bool,
    pub(crate) new_references: bool,
    /// Destination of the results. `None`: new vectors of the [`Batch`](crate::Batch).
    pub(crate) buffers: Option<&'a mut Buffers>,
    pub(crate) parents: Option<&'a [Reference]>,
    pub(crate) changed: Option<&'a [u32]>,
    pub(crate) progress: Option<&'a mut Callback<'a>>,
    pub(crate) leaves_holes: bool,
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("outcomes", &self.outcomes)
            .field("references", &self.references)
            .field("new_references", &self.new_references)
            .field("buffers", &self.buffers)
            .field("parents", &self.parents.map(<[_]>::len))
            .field("changed", &self.changed.map(<[_]>::len))
            .field("progress", &self.progress.is_some())
            .field("leaves_holes", &self.leaves_holes)
            .finish()
    }
}

impl<'a> Request<'a> {
    /// Requests only the tally.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests the outcome of each vector: 1 byte each.
    pub fn outcomes(mut self, wanted: bool) -> Self {
        self.outcomes = wanted;
        self
    }

    /// Requests the location of each vector: 8 bytes each.
    pub fn references(mut self, wanted: bool) -> Self {
        self.references = wanted;
        self
    }

    /// Requests the locations of the new vectors only, for example as the next level of a breadth-first search.
    pub fn new_references(mut self, wanted: bool) -> Self {
        self.new_references = wanted;
        self
    }

    /// Puts the requested results into [`Buffers`], instead of into new vectors; the vectors of the [`Batch`](crate::Batch) are
    /// then empty. A caller who repeats batches with the same buffers allocates nothing; [`Buffers`] has an example.
    pub fn into(mut self, buffers: &'a mut Buffers) -> Self {
        self.buffers = Some(buffers);
        self
    }

    /// Makes find-or-put *incremental*: each vector differs in some words from a stored one, its parent (for example, the state
    /// that it is a successor of). Takes one reference for each vector.
    ///
    /// The results are unchanged. But a tree table that also gets the [changed words](Self::changed) visits only the nodes above
    /// these words: for k of w words at most k log2 w nodes, not w - 2. A GPU does so from 9 words on, or if the node table is
    /// larger than its L2 cache; otherwise it is faster to look for all nodes. In other tables parents have no effect.
    ///
    /// Without masks of the changed words, a CPU compares each vector with its parent, and a GPU looks for all nodes, which takes
    /// less time there. A parent that is not stored, or a stale reference, then does no harm. With masks a stale reference is an
    /// error ([`StaleReferences`](crate::Error::StaleReferences)), and nothing is put.
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
    /// Unless there is one parent for each vector, the batch is refused with [`LengthMismatch`](crate::Error::LengthMismatch),
    /// before anything is put.
    pub fn parents(mut self, parents: &'a [Reference]) -> Self {
        self.parents = Some(parents);
        self
    }

    /// Sets the words that may differ from the words of the [parent](Self::parents). Each vector has a bit mask: bit i % 32 of
    /// mask word i / 32 stands for word i of the vector. The mask has as many words as the bits need.
    ///
    /// The masks are trusted: a word whose bit is not set is taken from the parent. If it really differs, another vector may be
    /// stored than the given one. The search does not look at unchanged words, so the batch that put the parent must have ended.
    /// A batch on another stream must have ended before this one begins.
    pub fn changed(mut self, masks: &'a [u32]) -> Self {
        self.changed = Some(masks);
        self
    }

    /// For an [`IndexedTable`](crate::IndexedTable): numbers new vectors above all earlier ones, and leaves the
    /// [holes](crate::Table::holes) among the earlier numbers unfilled. The new vectors of this batch are then one range of
    /// references, as each level of a search is. Default: holes are filled first. No effect on other tables.
    ///
    /// Each hole takes a row, and there are only 2^18 more rows than slots. If batches leave that many holes unfilled, the table
    /// runs out of rows before it runs out of slots, and new vectors are [`Full`](crate::Outcome::Full). A host batch that runs
    /// alone leaves no holes; a batch in device memory leaves at most one hole for each thread that worked on it.
    pub fn leave_holes(mut self, leave: bool) -> Self {
        self.leaves_holes = leave;
        self
    }

    /// Sets a callback that is called with (vectors done, vectors in the batch), on the calling thread, at least a few times per
    /// second on long batches. Its result determines whether to continue: after a `Break` no more vectors are offered, and the
    /// batch has the results of the offered ones ([`Batch::stopped`](crate::Batch::stopped)).
    ///
    /// Until the callback returns, its thread [holds the table](crate::threads_and_streams#what-a-thread-holds): in the callback,
    /// calls that need the table alone return the error [`SelfDeadlock`](crate::Error::SelfDeadlock), and batches do not make it
    /// grow or relocate keys. The callback must not wait for another thread that uses the table.
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

    /// Returns an error unless every slice has the length that `count` vectors need, and no reference that must be current is
    /// stale.
    pub(super) fn check(&self, sized: &TableState, count: usize) -> Result<()> {
        let rows = |what, given: Option<usize>, needed: usize| match given {
            Some(given) if given != needed => Err(Error::LengthMismatch { what, given, needed }),
            _ => Ok(()),
        };
        rows("parents", self.parents.map(<[_]>::len), count)?;
        rows("words of masks of changes", self.changed.map(<[_]>::len), count * sized.spec.mask_words())?;
        match (self.parents, self.changed) {
            (Some(parents), Some(_)) => sized.check_references(parents),
            (None, Some(_)) => {
                Err(Error::LengthMismatch { what: "parents (needed with masks of changes)", given: 0, needed: count })
            }
            // Vectors are compared with what is at their parents' references now, so a stale reference does no harm.
            (_, None) => Ok(()),
        }
    }
}
