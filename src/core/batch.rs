//! Batches from host slices: what is offered, in parts, and what is reported.

use super::generation::Generation;
#[cfg(feature = "cpu")]
use super::view::{BatchView, Counts};
use crate::{Batch, Error, Outcome, Reference, Request, Result, Spec, Tally};
use bytemuck::Zeroable;
use std::mem::ManuallyDrop;
use std::ops::{ControlFlow, Range};

/// Called with (vectors done, vectors in the batch); says whether to go on.
pub(crate) type Callback<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

/// A batch in host memory: what a search is offered, and where it writes its results, by position.
///
/// Each slice but `new_references` has as many elements, or rows, as there are vectors.
pub(crate) struct HostBatch<'a> {
    /// Vectors, one after another.
    pub vectors: &'a [u32],
    /// For each a reference to its parent, if they are offered as changes of stored vectors (incrementally).
    pub parents: Option<&'a [Reference]>,
    /// For each which words may differ from its parent's: a bit each, `Spec::mask_words` for a vector.
    pub changed: Option<&'a [u32]>,
    pub outcomes: Option<&'a mut [u8]>,
    /// The bits of a reference; 0 for a vector that is not stored.
    pub references: Option<&'a mut [u64]>,
    /// In no order; the first `Counts::new_references` are written. As long as there are vectors, at least.
    pub new_references: Option<&'a mut [u64]>,
}

impl<'a> HostBatch<'a> {
    /// Vectors as they are, of which nothing but counts is reported.
    pub(crate) fn of(vectors: &'a [u32]) -> Self {
        Self { vectors, parents: None, changed: None, outcomes: None, references: None, new_references: None }
    }

    pub(crate) fn count(&self, spec: Spec) -> usize {
        self.vectors.len() / spec.width()
    }

    /// The vectors in a range of positions. New references go behind the first `new`.
    pub(crate) fn part(&mut self, range: &Range<usize>, new: u64, spec: Spec) -> HostBatch<'_> {
        let rows = |words: &'a [u32], width: usize| &words[range.start * width..range.end * width];
        HostBatch {
            vectors: rows(self.vectors, spec.width()),
            parents: self.parents.map(|parents| &parents[range.clone()]),
            changed: self.changed.map(|changed| rows(changed, spec.mask_words())),
            outcomes: self.outcomes.as_deref_mut().map(|outcomes| &mut outcomes[range.clone()]),
            references: self.references.as_deref_mut().map(|references| &mut references[range.clone()]),
            new_references: self.new_references.as_deref_mut().map(|references| &mut references[new as usize..]),
        }
    }

    /// The same for kernels in this process, which add to `counts`.
    #[cfg(feature = "cpu")]
    pub(crate) fn view(&mut self, spec: Spec, tag: u64, counts: &mut Counts) -> BatchView {
        fn address<T>(slice: Option<&mut [T]>) -> u64 {
            slice.map_or(0, |slice| slice.as_mut_ptr() as u64)
        }
        BatchView {
            vectors: self.vectors.as_ptr() as u64,
            count: self.count(spec) as u64,
            outcomes: address(self.outcomes.as_deref_mut()),
            references: address(self.references.as_deref_mut()),
            new_capacity: self.new_references.as_ref().map_or(0, |references| references.len() as u64),
            new_references: address(self.new_references.as_deref_mut()),
            counts: &raw mut *counts as u64,
            parents: self.parents.map_or(0, |parents| parents.as_ptr() as u64),
            changed: self.changed.map_or(0, |changed| changed.as_ptr() as u64),
            workspace: 0,
            tag,
        }
    }
}

/// Tells a caller's callback how far a batch is, and whether it wants to go on.
pub(crate) struct Progress<'a> {
    callback: Option<&'a mut Callback<'a>>,
    /// Vectors of earlier parts of the same call, and of the whole call.
    before: u64,
    total: u64,
    pub stopped: bool,
}

impl<'a> Progress<'a> {
    pub(crate) fn new(callback: Option<&'a mut Callback<'a>>, total: usize) -> Self {
        Progress { callback, before: 0, total: total as u64, stopped: false }
    }

    pub(crate) fn none() -> Self {
        Progress { callback: None, before: 0, total: 0, stopped: false }
    }

    /// What is reported next is of a part that begins here.
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

/// Memory for results, zeros; an error where there is none.
pub(crate) fn zeroed<T: Zeroable>(count: usize) -> Result<Vec<T>> {
    let bytes = count as u64 * size_of::<T>() as u64;
    let refused = |reason: &str| Error::Allocation { bytes, reason: reason.into() };
    if crate::faults::strikes() {
        return Err(refused(crate::faults::ON_PURPOSE));
    }
    bytemuck::allocation::try_zeroed_vec(count).map_err(|()| refused("no memory for results"))
}

/// The results of a batch, whose vectors are offered a part at a time.
pub(crate) struct Results {
    /// Also where the caller has not asked for them, if rejected vectors are offered again.
    outcomes: Vec<u8>,
    references: Vec<u64>,
    new_references: Vec<u64>,
    reports_outcomes: bool,
}

impl Results {
    /// Memory for what a request asks for. `retries`: rejected vectors are offered again, so outcomes are needed in any case.
    pub(crate) fn new(count: usize, request: &Request<'_>, retries: bool) -> Result<Self> {
        let if_wanted = |wanted| if wanted { count } else { 0 };
        Ok(Self {
            outcomes: zeroed(if_wanted(request.outcomes || retries))?,
            references: zeroed(if_wanted(request.references))?,
            new_references: zeroed(if_wanted(request.new_references))?,
            reports_outcomes: request.outcomes,
        })
    }

    /// The batch of vectors whose results these are.
    pub(crate) fn batch<'a>(
        &'a mut self,
        vectors: &'a [u32],
        parents: Option<&'a [Reference]>,
        changed: Option<&'a [u32]>,
    ) -> HostBatch<'a> {
        fn unless_empty<T>(all: &mut [T]) -> Option<&mut [T]> {
            if all.is_empty() { None } else { Some(all) }
        }
        HostBatch {
            vectors,
            parents,
            changed,
            outcomes: unless_empty(&mut self.outcomes),
            references: unless_empty(&mut self.references),
            new_references: unless_empty(&mut self.new_references),
        }
    }

    /// Whether where vectors are is reported.
    pub(crate) fn has_references(&self) -> bool {
        !self.references.is_empty() || !self.new_references.is_empty()
    }

    /// Puts right where vectors are that have been moved since: `now` has where each one is.
    pub(crate) fn locate_again(&mut self, now: &[Option<Reference>]) {
        let bits = |reference: &Option<Reference>| reference.map_or(0, Reference::to_bits);
        self.references.iter_mut().zip(now).for_each(|(reference, now)| *reference = bits(now));
        // Another call may have removed some: then there are fewer than were new.
        self.new_references.fill(0);
        let new = now.iter().zip(&self.outcomes).filter(|(now, outcome)| now.is_some() && **outcome == Outcome::New as u8);
        self.new_references.iter_mut().zip(new).for_each(|(reference, (now, _))| *reference = bits(now));
    }

    /// As the caller gets them: those of the first vectors, as many as were offered.
    pub(crate) fn into_batch(mut self, tally: Tally, stopped: bool, error: Option<Error>) -> Batch {
        let offered = tally.offered() as usize;
        self.references.truncate(offered);
        // Of vectors that were new to a call and have been removed since by another, there are no references.
        self.new_references.truncate(tally.new as usize);
        self.new_references.retain(|bits| *bits != 0);
        self.outcomes.truncate(if self.reports_outcomes { offered } else { 0 });
        Batch {
            tally,
            outcomes: outcomes_of(self.outcomes),
            references: bytemuck::allocation::cast_vec(self.references),
            new_references: present(self.new_references),
            stopped,
            error,
        }
    }
}

/// The outcomes that kernels have written, in place.
fn outcomes_of(bytes: Vec<u8>) -> Vec<Outcome> {
    assert!(bytes.iter().all(|byte| (1..=3).contains(byte)), "kernels write an outcome for every vector");
    let mut bytes = ManuallyDrop::new(bytes);
    // SAFETY: `Outcome` is `repr(u8)` with the values 1 to 3, which all bytes have (asserted); so size, alignment and capacity
    // are the same; and the bytes have no owner any more.
    unsafe { Vec::from_raw_parts(bytes.as_mut_ptr().cast(), bytes.len(), bytes.capacity()) }
}

/// References whose bits these are, none of them 0.
fn present(bits: Vec<u64>) -> Vec<Reference> {
    bits.into_iter().map(|bits| Reference::from_bits(bits).expect("a generation is not 0")).collect()
}

/// References that an export has written.
pub(crate) fn references_of(slots: Vec<u64>, generation: Generation) -> Vec<Reference> {
    slots.into_iter().map(|slot| generation.reference(slot)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request<'a>() -> Request<'a> {
        Request::new().outcomes(true).references(true).new_references(true)
    }

    /// Two parts, as a table would fill them in.
    fn filled(generation: Generation) -> (Results, Vec<u32>) {
        let (spec, vectors) = (Spec::bucket(2, 8).unwrap(), vec![1, 1, 2, 2, 1, 1, 3, 3, 2, 2]);
        let mut results = Results::new(5, &request(), true).unwrap();
        let mut batch = results.batch(&vectors, None, None);
        assert_eq!(batch.count(spec), 5);
        let bits = |slot| generation.reference(slot).to_bits();
        let part = batch.part(&(0..3), 0, spec);
        assert_eq!(part.vectors, [1, 1, 2, 2, 1, 1]);
        part.outcomes.unwrap().copy_from_slice(&[1, 1, 2]);
        part.references.unwrap().copy_from_slice(&[bits(7), bits(8), bits(7)]);
        part.new_references.unwrap()[..2].copy_from_slice(&[bits(8), bits(7)]);
        let part = batch.part(&(3..5), 2, spec);
        assert_eq!((part.vectors, part.new_references.as_ref().map(|free| free.len())), (&[3, 3, 2, 2][..], Some(3)));
        part.outcomes.unwrap().copy_from_slice(&[3, 2]);
        part.references.unwrap().copy_from_slice(&[0, bits(8)]);
        (results, vectors)
    }

    const TALLY: Tally = Tally { new: 2, seen: 2, full: 1, full_nodes: 0 };

    #[test]
    fn parts_make_one_batch() {
        let generation = Generation::next();
        let batch = filled(generation).0.into_batch(TALLY, false, None);
        use Outcome::*;
        assert_eq!(batch.outcomes, [New, New, Seen, Full, Seen]);
        let slots: Vec<Option<u64>> = batch.references.iter().map(|of| of.map(Reference::slot)).collect();
        assert_eq!(slots, [Some(7), Some(8), Some(7), None, Some(8)]);
        assert_eq!(batch.new_references.iter().map(|of| of.slot()).collect::<Vec<_>>(), [8, 7]);
        assert_eq!(generation.stale(&batch.new_references), 0);
        assert_eq!(Generation::next().stale(&batch.new_references), 2);
    }

    #[test]
    fn a_batch_that_is_cut_short_reports_what_was_offered() {
        let (results, _) = filled(Generation::next());
        let batch = results.into_batch(Tally { new: 2, seen: 1, ..Tally::default() }, true, None);
        assert_eq!((batch.outcomes.len(), batch.references.len(), batch.new_references.len()), (3, 3, 2));
        assert!(batch.stopped);
    }

    #[test]
    fn vectors_that_have_moved_are_located_again() {
        let (mut results, _) = filled(Generation::next());
        let now = Generation::next();
        let located = [Some(1), Some(2), Some(1), None, Some(2)].map(|slot| slot.map(|slot| now.reference(slot)));
        results.locate_again(&located);
        let batch = results.into_batch(TALLY, false, None);
        assert_eq!(batch.references, located);
        assert_eq!(batch.new_references, [now.reference(1), now.reference(2)]);
    }

    #[test]
    fn outcomes_that_are_needed_but_not_asked_for_are_not_reported() {
        let mut results = Results::new(1, &Request::new(), true).unwrap();
        results.batch(&[5, 6], None, None).outcomes.unwrap()[0] = 1;
        let batch = results.into_batch(Tally { new: 1, ..Tally::default() }, false, None);
        assert!(batch.outcomes.is_empty() && batch.references.is_empty());
    }
}
