//! What a batch from host slices is asked for, offers and reports, in parts.

use super::generation::Generation;
use crate::{Batch, Error, Outcome, Reference, Result, Spec, Tally};
use bytemuck::Zeroable;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{ControlFlow, Range};

/// Called with (vectors done, vectors in the batch); says whether to go on.
pub(crate) type Callback<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

/// What is reported of each vector.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    pub outcomes: bool,
    pub references: bool,
    pub new_references: bool,
}

/// See `Request` of the public API.
#[derive(Default)]
pub(crate) struct Request<'a> {
    pub wanted: Wanted,
    pub progress: Option<&'a mut Callback<'a>>,
    pub parents: Option<&'a [Reference]>,
    pub changed: Option<&'a [u32]>,
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("wanted", &self.wanted)
            .field("progress", &self.progress.is_some())
            .field("parents", &self.parents.map(<[_]>::len))
            .field("changed", &self.changed.map(<[_]>::len))
            .finish()
    }
}

/// What a search is offered.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    /// Vectors, one after another.
    pub vectors: &'a [u32],
    /// For each a reference to its parent, if they are offered as changes of stored vectors.
    pub parents: Option<&'a [Reference]>,
    /// For each which words may differ from its parent's: a bit each, `Spec::mask_words` for a vector.
    pub changed: Option<&'a [u32]>,
}

impl<'a> Input<'a> {
    /// As they are.
    pub(crate) fn whole(vectors: &'a [u32]) -> Self {
        Self { vectors, parents: None, changed: None }
    }

    /// Vectors in a range of positions.
    pub(crate) fn part(self, part: &Range<usize>, spec: Spec) -> Self {
        let rows = |words: &'a [u32], width: usize| &words[part.start * width..part.end * width];
        Self {
            vectors: rows(self.vectors, spec.width()),
            parents: self.parents.map(|parents| &parents[part.clone()]),
            changed: self.changed.map(|changed| rows(changed, spec.mask_words())),
        }
    }
}

/// Where a search writes its results, by position. Each but the last has as many elements as there are vectors.
#[derive(Default)]
pub(crate) struct Output<'a> {
    pub outcomes: Option<&'a mut [u8]>,
    /// Of references: their bits, 0 for a vector that is not stored.
    pub references: Option<&'a mut [u64]>,
    /// In no order; the first `Counts::new_references` are written. Room for as many vectors as there are, at least.
    pub new_references: Option<&'a mut [u64]>,
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
    pub outcomes: Vec<u8>,
    references: Vec<u64>,
    new_references: Vec<u64>,
    reports_outcomes: bool,
}

impl Results {
    /// `offers_again`: outcomes are needed to know what.
    pub(crate) fn new(count: usize, wanted: Wanted, offers_again: bool) -> Result<Self> {
        let if_wanted = |wanted| if wanted { count } else { 0 };
        Ok(Self {
            outcomes: zeroed(if_wanted(wanted.outcomes || offers_again))?,
            references: zeroed(if_wanted(wanted.references))?,
            new_references: zeroed(if_wanted(wanted.new_references))?,
            reports_outcomes: wanted.outcomes,
        })
    }

    /// Where those of the vectors in a part go, before which `new` vectors were new.
    pub(crate) fn part(&mut self, part: &Range<usize>, new: u64) -> Output<'_> {
        fn slice<T>(all: &mut [T], part: Range<usize>) -> Option<&mut [T]> {
            if all.is_empty() { None } else { Some(&mut all[part]) }
        }
        let rest = new as usize..self.new_references.len();
        Output {
            outcomes: slice(&mut self.outcomes, part.clone()),
            references: slice(&mut self.references, part.clone()),
            new_references: slice(&mut self.new_references, rest),
        }
    }

    /// Whether where vectors are is reported.
    pub(crate) fn has_references(&self) -> bool {
        !self.references.is_empty() || !self.new_references.is_empty()
    }

    /// Puts right where vectors are that have been moved since: `now` has where each one is.
    pub(crate) fn relocate(&mut self, now: &[Option<Reference>]) {
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
