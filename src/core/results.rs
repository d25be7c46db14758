//! Results of batches from host slices: what callers see, and the memory for it.

use super::host_memory::HostMemory;
use super::request::Request;
use crate::host::Workers;
use crate::layout::generation::Generation;
use crate::layout::rows::HoleClosing;
use crate::layout::{HostBatch, SearchMode, Upsert};
use crate::{Device, Error, Outcome, Reference, Result, Tally};
use std::fmt;
use std::mem::ManuallyDrop;

/// Results of one [`find_or_put_many`](crate::Table::find_or_put_many).
///
/// A vector may be [`Full`](Outcome::Full): not stored. [`complete`](Self::complete) turns that into an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "add `.complete(&table)?`: vectors may be `Full`, that is, not stored, and `complete` turns that into an error"]
pub struct Batch {
    /// Number of vectors with each outcome.
    pub tally: Tally,
    /// Outcome of each vector, by position. Empty if outcomes were not requested, or if the results were written to
    /// [`Buffers`](crate::Buffers). The next two fields follow the same rule.
    pub outcomes: Vec<Outcome>,
    /// Location of each vector, by position (`None` if its outcome is [`Outcome::Full`]).
    pub references: Vec<Option<Reference>>,
    /// Locations of the new vectors, in no order.
    pub new_references: Vec<Reference>,
    /// Whether the [progress callback](crate::Request::progress), or an [`error`](Self::error), ended the batch before all of its
    /// vectors were offered. Then the results are those of the first [`tally.offered()`](Tally::offered) vectors. Nothing is
    /// known about the others (after an error some may have been stored). [`complete`](Self::complete) turns that into an error,
    /// too.
    pub stopped: bool,
    /// Error that occurred after something was put. One of these:
    ///
    /// - why a table that [grows](crate::TableBuilder::grows) by itself did not grow, or a table did not
    ///   [relocate](crate::Table::relocate) its keys; for example, out of memory. Vectors then used the remaining slots, and are
    ///   [`Full`](Outcome::Full) if there were none;
    /// - why the batch has [`stopped`](Self::stopped);
    /// - why the batch could not find its vectors again after it had made the table grow. Then its references are stale.
    pub error: Option<Error>,
    /// Vectors of the batch, offered or not.
    pub(crate) given: u64,
}

impl Batch {
    /// Positions of the vectors with this outcome.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # use warpset::Outcome;
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 2, 100)?;
    /// let batch = table.find_or_put_many(&[1, 1, 1, 1, 2, 2])?;
    /// assert_eq!(batch.positions(Outcome::New).count(), 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    ///
    /// If outcomes were not requested, or went into [`Buffers`](crate::Buffers): then the batch does not have them.
    pub fn positions(&self, outcome: Outcome) -> impl Iterator<Item = usize> + '_ {
        assert!(
            !self.outcomes.is_empty() || self.tally.offered() == 0,
            "the batch has no outcomes: none were requested (`Request::outcomes`), or they are in its `Buffers`"
        );
        self.outcomes.iter().enumerate().filter(move |(_, of)| **of == outcome).map(|(at, _)| at)
    }
}

/// Results of a batch whose vectors may be offered in parts, in the caller's [`Buffers`] or in new ones.
pub(crate) struct Results<'a> {
    buffers: &'a mut Buffers,
    /// Whether outcomes are reported. If rejected vectors are offered again, outcomes are needed even if they are not reported.
    reports_outcomes: bool,
    finished: bool,
}

impl Drop for Results<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.buffers.hide();
        }
    }
}

impl<'a> Results<'a> {
    /// Allocates memory for the results of `count` vectors that a request asks for, and for the outcomes if `retries`.
    pub(crate) fn new(buffers: &'a mut Buffers, count: usize, request: &Request<'_>, retries: bool) -> Result<Self> {
        let if_wanted = |wanted| if wanted { count } else { 0 };
        let results = Self { buffers, reports_outcomes: request.outcomes, finished: false };
        results.buffers.outcomes.make(if_wanted(request.outcomes || retries))?;
        results.buffers.references.make(if_wanted(request.references))?;
        results.buffers.new_references.make(if_wanted(request.new_references))?;
        Ok(results)
    }

    /// Returns a find-or-put batch of `vectors` that writes its results into the buffers.
    pub(crate) fn batch<'b, 'r: 'b>(
        &'b mut self,
        vectors: &'b [u32],
        request: &Request<'r>,
        upsert: Option<Upsert<'b>>,
    ) -> HostBatch<'b> {
        let Buffers { outcomes, references, new_references } = &mut *self.buffers;
        HostBatch {
            search: if request.leaves_holes { SearchMode::FindOrPutLeavingHoles } else { SearchMode::FindOrPut },
            vectors,
            parents: request.parents.unwrap_or_default(),
            changed: request.changed.unwrap_or_default(),
            outcomes,
            references,
            new_references,
            upsert,
        }
    }

    /// Whether references are reported.
    pub(crate) fn has_references(&self) -> bool {
        !self.buffers.references.is_empty() || !self.buffers.new_references.is_empty()
    }

    /// Corrects the references of the first vectors, which have moved since: `now` has their locations. `new` of these vectors
    /// were new.
    pub(crate) fn locate_again(&mut self, now: &[Option<Reference>], new: usize) {
        let Buffers { outcomes, references, new_references } = &mut *self.buffers;
        let bits = |reference: &Option<Reference>| reference.map_or(0, Reference::to_bits);
        references.iter_mut().zip(now).for_each(|(reference, now)| *reference = bits(now));
        if new_references.is_empty() {
            return;
        }
        // Another call may have removed some of these vectors; then there are fewer than `new` references.
        let new_references = &mut new_references[..new];
        new_references.fill(0);
        let new = now.iter().zip(&outcomes[..]).filter(|(now, outcome)| now.is_some() && **outcome == Outcome::New as u8);
        new_references.iter_mut().zip(new).for_each(|(reference, (now, _))| *reference = bits(now));
    }

    /// Corrects the references to rows that were moved when holes were closed. References of an earlier generation stay stale.
    pub(crate) fn rows_moved(&mut self, closing: &HoleClosing, generation: Generation) {
        if closing.moves.is_empty() {
            return;
        }
        let Buffers { references, new_references, .. } = &mut *self.buffers;
        for bits in references.iter_mut().chain(new_references.iter_mut()) {
            if let Some(reference) = Reference::from_bits(*bits)
                && generation.stale(&[reference]) == 0
            {
                *bits = generation.reference(closing.moved(reference.slot())).to_bits();
            }
        }
    }

    /// Leaves the results in the buffers, shortened to the vectors that were offered.
    pub(crate) fn finish(mut self, tally: Tally) {
        let Buffers { outcomes, references, new_references } = &mut *self.buffers;
        let offered = tally.offered() as usize;
        outcomes.truncate(if self.reports_outcomes { offered } else { 0 });
        references.truncate(offered);
        new_references.truncate(tally.new as usize);
        // Checks all bytes by a fold without an early exit, because compilers vectorize it, and with several threads, because one
        // thread would take a tenth of the time of a whole batch.
        let are_outcomes = |bytes: &[u8]| bytes.iter().fold(0, |wrong, byte| wrong | u8::from(byte.wrapping_sub(1) > 2)) == 0;
        assert!(Workers::get().all(outcomes, are_outcomes), "kernels write an outcome for every vector");
        // A vector that was new to this call, and that another call has removed since, has no reference.
        if !Workers::get().all(new_references, |bits| bits.iter().fold(0, |none, bits| none | u8::from(*bits == 0)) == 0) {
            let (mut kept, new) = (0, &mut new_references[..]);
            for at in 0..new.len() {
                if new[at] != 0 {
                    new[kept] = new[at];
                    kept += 1;
                }
            }
            new_references.truncate(kept);
        }
        self.finished = true;
    }
}

/// Memory for the results of batches, for callers that repeat batches: see [`Request::into`](crate::Request::into).
///
/// The memory grows to the needs of the largest batch, and is kept. Each batch replaces the results of the one before. If a batch
/// fails, there are no results. If the buffers are made by [`pinned`](Self::pinned), the GPU writes to them without a copy in
/// between. For more about fast batches see [How host batches are staged](crate::host_batches#how-host-batches-are-staged).
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::{BucketTable, Buffers, Device, Outcome, Request};
///
/// let table = BucketTable::new(&Device::cpu(), 1, 100)?;
/// let mut buffers = Buffers::new();
/// for vectors in [[1, 2], [2, 3]] {
///     let request = Request::new().outcomes(true).references(true).into(&mut buffers);
///     table.find_or_put_many_with(&vectors, request)?.complete(&table)?;
///     assert_eq!(buffers.outcomes()[1], Outcome::New);
///     assert_eq!(table.get_many(&[buffers.references()[1].unwrap()])?, vectors[1..]);
/// }
/// # Ok(()) }
/// ```
#[derive(Default)]
pub struct Buffers {
    outcomes: HostMemory<u8>,
    references: HostMemory<u64>,
    new_references: HostMemory<u64>,
}

impl fmt::Debug for Buffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffers")
            .field("outcomes", &self.outcomes.len())
            .field("references", &self.references.len())
            .field("new_references", &self.new_references.len())
            .finish()
    }
}

impl Buffers {
    /// Returns buffers without memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns buffers that will allocate pinned (page-locked) memory. The GPU writes results to it directly.
    ///
    /// On a CPU, the same as [`new`](Self::new).
    pub fn pinned(device: &Device) -> Self {
        Self {
            outcomes: HostMemory::pinned(&device.machine),
            references: HostMemory::pinned(&device.machine),
            new_references: HostMemory::pinned(&device.machine),
        }
    }

    /// Outcome of each vector of the last batch, by position; empty unless requested.
    pub fn outcomes(&self) -> &[Outcome] {
        // SAFETY: `Outcome` is `repr(u8)` with the values 1 to 3, and all bytes have such values (asserted by `finish`; a batch
        // that did not finish leaves none).
        unsafe { std::slice::from_raw_parts(self.outcomes.as_ptr().cast(), self.outcomes.len()) }
    }

    /// Location of each vector of the last batch, by position; empty unless requested.
    pub fn references(&self) -> &[Option<Reference>] {
        bytemuck::cast_slice(&self.references)
    }

    /// Locations of the new vectors of the last batch, in no order; empty unless requested.
    pub fn new_references(&self) -> &[Reference] {
        // SAFETY: `Reference` is `repr(transparent)` over `NonZeroU64`, and no element is 0 (`finish` has removed zeros).
        unsafe { std::slice::from_raw_parts(self.new_references.as_ptr().cast(), self.new_references.len()) }
    }

    /// Hides the results of a batch that is not done yet, or has failed.
    pub(crate) fn hide(&mut self) {
        self.outcomes.truncate(0);
        self.references.truncate(0);
        self.new_references.truncate(0);
    }

    /// Converts the results to vectors. Pinned memory is copied.
    pub(crate) fn into_vectors(self) -> (Vec<Outcome>, Vec<Option<Reference>>, Vec<Reference>) {
        let (mut outcomes, mut new) =
            (ManuallyDrop::new(self.outcomes.into_vec()), ManuallyDrop::new(self.new_references.into_vec()));
        // SAFETY: as in `outcomes`; size, alignment and capacity are the same, and the elements have no owner any more.
        let outcomes = unsafe { Vec::from_raw_parts(outcomes.as_mut_ptr().cast(), outcomes.len(), outcomes.capacity()) };
        // SAFETY: as in `new_references`; otherwise as above.
        let new_references = unsafe { Vec::from_raw_parts(new.as_mut_ptr().cast(), new.len(), new.capacity()) };
        (outcomes, bytemuck::allocation::cast_vec(self.references.into_vec()), new_references)
    }
}

/// Converts the outcomes of a look-up, in place, to whether each vector is stored.
pub(crate) fn are_seen(outcomes: Vec<u8>) -> Vec<bool> {
    let mut outcomes = ManuallyDrop::new(outcomes);
    Workers::get().for_each_mut(&mut outcomes, |piece| {
        piece.iter_mut().for_each(|outcome| *outcome = u8::from(*outcome == Outcome::Seen as u8));
    });
    // SAFETY: every byte is 0 or 1 by now, as in a `bool`. Both types have the same size and alignment, so the capacity is right.
    // The bytes have no other owner.
    unsafe { Vec::from_raw_parts(outcomes.as_mut_ptr().cast(), outcomes.len(), outcomes.capacity()) }
}

/// References to the slots that an export has written.
pub(crate) fn references_of(slots: Vec<u64>, generation: Generation) -> Vec<Reference> {
    slots.into_iter().map(|slot| generation.reference(slot)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;

    const VECTORS: [u32; 10] = [1, 1, 2, 2, 1, 1, 3, 3, 2, 2];

    /// Two parts, filled in as a table would do.
    fn filled(buffers: &mut Buffers, generation: Generation) -> Results<'_> {
        let spec = Spec::bucket(2, 8).unwrap();
        let all = Request::new().outcomes(true).references(true).new_references(true);
        let mut results = Results::new(buffers, 5, &all, true).unwrap();
        let mut batch = results.batch(&VECTORS, &all, None);
        assert_eq!(batch.count(spec), 5);
        let bits = |slot| generation.reference(slot).to_bits();
        let part = batch.part(&(0..3), 0, spec);
        assert_eq!(part.vectors, [1, 1, 2, 2, 1, 1]);
        part.outcomes.copy_from_slice(&[1, 1, 2]);
        part.references.copy_from_slice(&[bits(7), bits(8), bits(7)]);
        part.new_references[..2].copy_from_slice(&[bits(8), bits(7)]);
        let part = batch.part(&(3..5), 2, spec);
        assert_eq!((part.vectors, part.new_references.len()), (&[3, 3, 2, 2][..], 3));
        part.outcomes.copy_from_slice(&[3, 2]);
        part.references.copy_from_slice(&[0, bits(8)]);
        results
    }

    const TALLY: Tally = Tally { new: 2, seen: 2, full: 1, full_nodes: 0 };

    #[test]
    fn parts_make_one_batch() {
        let (mut buffers, generation) = (Buffers::new(), Generation::next());
        // The second batch uses the same memory.
        for _ in 0..2 {
            filled(&mut buffers, generation).finish(TALLY);
            use Outcome::*;
            assert_eq!(buffers.outcomes(), [New, New, Seen, Full, Seen]);
            let slots: Vec<Option<u64>> = buffers.references().iter().map(|of| of.map(Reference::slot)).collect();
            assert_eq!(slots, [Some(7), Some(8), Some(7), None, Some(8)]);
            assert_eq!(buffers.new_references().iter().map(|of| of.slot()).collect::<Vec<_>>(), [8, 7]);
            assert_eq!(generation.stale(buffers.new_references()), 0);
            assert_eq!(Generation::next().stale(buffers.new_references()), 2);
        }
        let expected = (buffers.outcomes().to_vec(), buffers.references().to_vec(), buffers.new_references().to_vec());
        assert_eq!(buffers.into_vectors(), expected);
    }

    #[test]
    fn a_batch_that_is_cut_short_reports_what_was_offered() {
        let mut buffers = Buffers::new();
        filled(&mut buffers, Generation::next()).finish(Tally { new: 2, seen: 1, ..Tally::default() });
        assert_eq!((buffers.outcomes().len(), buffers.references().len(), buffers.new_references().len()), (3, 3, 2));
    }

    #[test]
    fn a_batch_that_fails_leaves_no_results() {
        let mut buffers = Buffers::new();
        filled(&mut buffers, Generation::next()).finish(TALLY);
        drop(filled(&mut buffers, Generation::next()));
        assert!(buffers.outcomes().is_empty() && buffers.references().is_empty() && buffers.new_references().is_empty());
    }

    #[test]
    fn vectors_that_have_moved_are_located_again() {
        let mut buffers = Buffers::new();
        let mut results = filled(&mut buffers, Generation::next());
        let now = Generation::next();
        let located = [Some(1), Some(2), Some(1), None, Some(2)].map(|slot| slot.map(|slot| now.reference(slot)));
        results.locate_again(&located, 2);
        results.finish(TALLY);
        assert_eq!(buffers.references(), located);
        assert_eq!(buffers.new_references(), [now.reference(1), now.reference(2)]);
        // One of the vectors is removed meanwhile.
        let mut results = filled(&mut buffers, now);
        results.locate_again(&[None, located[1], None, None, located[4]], 2);
        results.finish(TALLY);
        assert_eq!(buffers.new_references(), [now.reference(2)]);
        // Only the first vector was put before the growth.
        let mut results = filled(&mut buffers, now);
        results.locate_again(&[Some(now.reference(9))], 1);
        results.finish(TALLY);
        assert_eq!(buffers.references()[..2], [9, 8].map(|slot| Some(now.reference(slot))));
        assert_eq!(buffers.new_references(), [9, 7].map(|slot| now.reference(slot)));
    }

    #[test]
    fn outcomes_that_are_needed_but_not_asked_for_are_not_reported() {
        let mut buffers = Buffers::new();
        let mut results = Results::new(&mut buffers, 1, &Request::new(), true).unwrap();
        results.batch(&[5, 6], &Request::new(), None).outcomes[0] = 1;
        results.finish(Tally { new: 1, ..Tally::default() });
        assert!(buffers.outcomes().is_empty() && buffers.references().is_empty());
    }
}
