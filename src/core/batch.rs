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
    // SAFETY: `Outcome` is `repr(u8)` with the values 1 to 3, which all bytes have (asserted); so size, alignment and capacity are the
    // same; and the bytes have no owner any more.
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
