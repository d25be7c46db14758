//! The checker: follows the calls of a set and its results, and names the first promise that the set breaks.
//!
//! The model is a set of positions in a pool of distinct vectors, so that it is right by inspection; vectors are compared as
//! words only where the set hands them out.

use super::set::Set;
use super::vectors::Pool;
use std::collections::HashMap;
use std::fmt;
use warpset::{Batch, Outcome, Reference};
use warpset_random::Mixed;

/// Promises of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Every requested result has one element per vector.
    ResultLengths,
    /// The tally counts the outcomes.
    Tally,
    /// Exactly one offer of a vector that was not stored is New.
    OneNew,
    /// A stored vector is Seen.
    SeenWhenStored,
    /// A vector is rejected only where the test expects it, then at every offer until the table is cleared or grows.
    Full,
    /// Equal vectors have equal references, for as long as the table neither grows nor is cleared.
    SameReference,
    /// Distinct vectors have distinct references.
    OwnReference,
    /// The new references are those of the New vectors.
    NewReferences,
    /// `len` counts the stored vectors.
    Length,
    /// The statistics count the stored vectors.
    Statistics,
    /// `contains_many` knows exactly the stored vectors.
    Contains,
    /// `locate_many` knows where exactly the stored vectors are.
    Locate,
    /// A reference gives its vector back.
    Get,
    /// Iteration gives exactly the stored vectors, each once, with its reference.
    Contents,
}

/// A broken promise, and how it was broken.
#[derive(Debug)]
pub struct Violation {
    pub rule: Rule,
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.detail)
    }
}

pub type Checked<T = ()> = Result<T, Violation>;

/// Fails a test with the checker's finding.
pub trait OrFail<T> {
    #[track_caller]
    fn or_fail(self, context: impl fmt::Display) -> T;
}

impl<T> OrFail<T> for Checked<T> {
    #[track_caller]
    fn or_fail(self, context: impl fmt::Display) -> T {
        self.unwrap_or_else(|violation| panic!("{context}: {violation}"))
    }
}

macro_rules! ensure {
    ($holds:expr, $rule:ident, $($detail:tt)+) => {
        if !$holds {
            return Err(Violation { rule: Rule::$rule, detail: format!($($detail)+) });
        }
    };
}

/// A vector in a message; the middle of a long vector is left out.
#[derive(PartialEq)]
struct Words<'a>(&'a [u32]);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [start @ .., _, _, _, _] if start.len() > 12 => {
                let end = &self.0[start.len()..];
                write!(f, "{:x?} ... {end:x?} ({} words)", &start[..8], self.0.len())
            }
            words => write!(f, "{words:x?}"),
        }
    }
}

/// Whether the references of a batch still hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum References {
    Stable,
    /// The table grew during the batch, or during the batches joined to it: some references may be of the smaller table.
    Moved,
}

pub struct Checker<'a, S: Set> {
    set: &'a S,
    pool: &'a Pool,
    may_reject: bool,
    /// For each position in the pool: the vector's reference, if it is stored.
    places: Vec<Option<Reference>>,
    /// For each reference of a stored vector: its position.
    owners: HashMap<Reference, usize, Mixed>,
    rejected: Vec<bool>,
    /// Slots and bytes: one of them differs once the table has grown. (More slots may fit the existing block, and nodes are not
    /// slots.)
    size: (u64, u64),
}

impl<'a, S: Set> Checker<'a, S> {
    /// Checker of an empty set with room for the whole pool.
    pub fn new(set: &'a S, pool: &'a Pool) -> Self {
        assert_eq!(set.width(), pool.width());
        let (places, rejected) = (vec![None; pool.len()], vec![false; pool.len()]);
        Self { set, pool, may_reject: false, places, owners: HashMap::default(), rejected, size: (set.slots(), set.bytes()) }
    }

    /// Checker of an empty set that may be too small.
    pub fn of_small(set: &'a S, pool: &'a Pool) -> Self {
        Self { may_reject: true, ..Self::new(set, pool) }
    }

    /// Positions of the stored vectors.
    pub fn stored(&self) -> Vec<usize> {
        (0..self.pool.len()).filter(|at| self.places[*at].is_some()).collect()
    }

    /// Positions of the vectors that were rejected since the table last grew or was cleared.
    pub fn rejected(&self) -> Vec<usize> {
        (0..self.pool.len()).filter(|at| self.rejected[*at]).collect()
    }

    /// Offers the vectors at these positions, and checks the results.
    pub fn offer(&mut self, positions: &[usize]) -> Checked<Batch> {
        let batch = self.set.find_or_put(&self.pool.batch(positions));
        self.accept(positions, &batch)?;
        Ok(batch)
    }

    /// Checks the results of an offer, or of many overlapping offers, joined end to end.
    pub fn accept(&mut self, positions: &[usize], batch: &Batch) -> Checked {
        let grew = (self.set.slots(), self.set.bytes()) != self.size;
        self.accept_with(positions, batch, if grew { References::Moved } else { References::Stable })
    }

    /// As `accept`, for a table that may have grown without being larger than when the checker last looked.
    pub fn accept_with(&mut self, positions: &[usize], batch: &Batch, references: References) -> Checked {
        judge_lengths(positions.len(), batch)?;
        self.judge_outcomes(positions, batch)?;
        match references {
            References::Stable => {
                judge_new_references(batch)?;
                self.learn_places(positions, batch)
            }
            References::Moved => {
                positions.iter().zip(&batch.outcomes).for_each(|(&at, outcome)| {
                    if *outcome == Outcome::New {
                        self.places[at] = Reference::from_bits(1);
                    }
                });
                self.relearn_places()
            }
        }
    }

    /// Counts the outcomes of each vector: exactly one New if the vector is new to the set, none if it was stored.
    fn judge_outcomes(&mut self, positions: &[usize], batch: &Batch) -> Checked {
        let mut counts = vec![[0u64; 3]; self.pool.len()];
        let mut tally = [0; 3];
        for (&at, &outcome) in positions.iter().zip(&batch.outcomes) {
            let kind = outcome as usize - 1;
            counts[at][kind] += 1;
            tally[kind] += 1;
        }
        let said = [batch.tally.new, batch.tally.seen, batch.tally.full];
        ensure!(said == tally, Tally, "the tally says {said:?} New, Seen and Full; the outcomes are {tally:?}");
        for &at in positions {
            // Each vector once.
            let [new, seen, full] = std::mem::take(&mut counts[at]);
            if new + seen + full == 0 {
                continue;
            }
            let vector = Words(self.pool.vector(at));
            if self.places[at].is_some() {
                ensure!(
                    new == 0 && full == 0,
                    SeenWhenStored,
                    "{vector} was stored, but is {new} times New, {seen} times Seen and {full} times Full"
                );
            } else if full > 0 {
                ensure!(self.may_reject, Full, "{vector} was rejected although there is room");
                ensure!(new + seen == 0, Full, "{vector} is {full} times Full, but also {new} times New and {seen} times Seen");
                self.rejected[at] = true;
            } else {
                ensure!(!self.rejected[at], Full, "{vector} was rejected before, and now is {new} times New");
                ensure!(new == 1, OneNew, "{vector} was not stored, and is {new} times New and {seen} times Seen");
            }
        }
        Ok(())
    }

    /// Records the references of new vectors, and compares those reported for stored ones.
    fn learn_places(&mut self, positions: &[usize], batch: &Batch) -> Checked {
        for ((&at, outcome), reference) in positions.iter().zip(&batch.outcomes).zip(&batch.references) {
            let vector = Words(self.pool.vector(at));
            if *outcome == Outcome::Full {
                ensure!(reference.is_none(), SameReference, "{vector} is Full, but has the reference {reference:?}");
                continue;
            }
            ensure!(reference.is_some(), SameReference, "{vector} is {outcome:?}, but has no reference");
            let known = self.places[at].is_none() || self.places[at] == *reference;
            ensure!(known, SameReference, "{vector} is at {reference:?}, and was at {:?}", self.places[at]);
            self.set_place(at, *reference)?;
        }
        Ok(())
    }

    /// Records where a vector is stored, which must be where no other vector is.
    fn set_place(&mut self, at: usize, place: Option<Reference>) -> Checked {
        self.places[at] = place;
        let Some(place) = place else { return Ok(()) };
        let owner = *self.owners.entry(place).or_insert(at);
        let (one, other) = (Words(self.pool.vector(owner)), Words(self.pool.vector(at)));
        ensure!(owner == at, OwnReference, "{one} and {other} are both at {place:?}");
        Ok(())
    }

    /// The table moved its vectors: locates them again.
    fn relearn_places(&mut self) -> Checked {
        let located = self.set.locate(self.pool.words());
        self.owners.clear();
        for (at, now) in located.into_iter().enumerate() {
            let vector = Words(self.pool.vector(at));
            let stored = self.places[at].is_some();
            ensure!(stored == now.is_some(), Locate, "{vector}, stored: {stored}, is located at {now:?}");
            self.set_place(at, now)?;
        }
        self.size = (self.set.slots(), self.set.bytes());
        Ok(())
    }

    /// Clears the set.
    pub fn clear(&mut self) -> Checked {
        self.set.clear();
        self.places.fill(None);
        self.owners.clear();
        self.rejected.fill(false);
        self.check()
    }

    /// Makes the set grow.
    pub fn grow(&mut self, capacity: u64) -> Checked {
        self.set.grow(capacity);
        self.rejected.fill(false);
        self.relearn_places()
    }

    /// Compares everything that the set reports about itself with the model.
    pub fn check(&self) -> Checked {
        self.check_counts()?;
        self.check_lookups()?;
        self.check_contents()
    }

    fn check_counts(&self) -> Checked {
        let (model, stored) = (self.stored().len() as u64, self.set.stored());
        ensure!(stored == model, Length, "{stored} vectors, not {model}");
        let stats = self.set.stats();
        let sum: u64 = stats.probe_lengths.iter().sum();
        ensure!(stats.stored == model, Statistics, "{} stored, not {model}", stats.stored);
        ensure!(sum == model, Statistics, "the probe lengths {:?} are those of {sum} vectors, not {model}", stats.probe_lengths);
        ensure!(stats.slots >= model, Statistics, "{model} vectors are stored in {} slots", stats.slots);
        let longest = stats.probe_lengths.iter().rposition(|count| *count > 0).map_or(0, |at| at as u64 + 1);
        let agrees =
            stats.longest_probe == longest || (longest == stats.probe_lengths.len() as u64 && stats.longest_probe > longest);
        ensure!(agrees, Statistics, "the longest probe is {}, the longest counted {longest}", stats.longest_probe);
        Ok(())
    }

    fn check_lookups(&self) -> Checked {
        let located = self.set.locate(self.pool.words());
        let contained = self.set.contains(self.pool.words());
        ensure!(located.len() == self.pool.len(), Locate, "{} answers to {} vectors", located.len(), self.pool.len());
        ensure!(contained.len() == self.pool.len(), Contains, "{} answers to {} vectors", contained.len(), self.pool.len());
        for (at, place) in self.places.iter().enumerate() {
            let vector = Words(self.pool.vector(at));
            ensure!(contained[at] == place.is_some(), Contains, "{vector}, at {place:?}, contained: {}", contained[at]);
            ensure!(located[at] == *place, Locate, "{vector}, at {place:?}, is located at {:?}", located[at]);
        }
        let stored = self.stored();
        let references: Vec<Reference> = stored.iter().filter_map(|at| self.places[*at]).collect();
        let got = self.set.get(&references).map_err(|detail| Violation { rule: Rule::Get, detail })?;
        ensure!(got.len() == stored.len() * self.pool.width(), Get, "{} words of {} vectors", got.len(), stored.len());
        for (&at, got) in stored.iter().zip(got.chunks_exact(self.pool.width())) {
            let (vector, came) = (Words(self.pool.vector(at)), Words(got));
            ensure!(vector == came, Get, "{vector} at {:?} came back as {came}", self.places[at]);
        }
        Ok(())
    }

    fn check_contents(&self) -> Checked {
        let rows = self.set.rows();
        let mut given = vec![false; self.pool.len()];
        for (reference, vector) in &rows {
            let (at, vector) = (self.pool.position(vector), Words(vector));
            ensure!(at.is_some(), Contents, "{vector} at {reference:?} was never offered");
            let at = at.unwrap_or_default();
            ensure!(
                !std::mem::replace(&mut given[at], true),
                Contents,
                "{vector} is given twice, the second time at {reference:?}"
            );
            ensure!(
                self.places[at] == Some(*reference),
                Contents,
                "{vector} is given at {reference:?}, but is at {:?}",
                self.places[at]
            );
        }
        // Each row is a different stored vector, so as many rows as stored vectors are all of them.
        let mut missing = self.stored().into_iter().filter(|at| !given[*at]).map(|at| Words(self.pool.vector(at)));
        if let Some(one) = missing.next() {
            ensure!(false, Contents, "{one} is not given, nor are {} other stored vectors", missing.count());
        }
        Ok(())
    }
}

fn judge_lengths(count: usize, batch: &Batch) -> Checked {
    let lengths = (batch.outcomes.len(), batch.references.len());
    ensure!(lengths == (count, count), ResultLengths, "{lengths:?} outcomes and references of {count} vectors");
    Ok(())
}

/// The new references are the references of the New vectors, in any order.
fn judge_new_references(batch: &Batch) -> Checked {
    let of_new = batch.outcomes.iter().zip(&batch.references).filter(|(outcome, _)| **outcome == Outcome::New);
    let mut expected: Vec<Option<Reference>> = of_new.map(|(_, reference)| *reference).collect();
    let mut given: Vec<Option<Reference>> = batch.new_references.iter().map(|reference| Some(*reference)).collect();
    expected.sort_unstable();
    given.sort_unstable();
    ensure!(given == expected, NewReferences, "{given:?}, not {expected:?}");
    Ok(())
}

/// Joins the results of offers end to end, for `Checker::accept`.
pub fn join(parts: impl IntoIterator<Item = (Vec<usize>, Batch)>) -> (Vec<usize>, Batch) {
    let (mut positions, mut all) = (Vec::new(), Batch::default());
    for (part, batch) in parts {
        positions.extend(part);
        all.tally.new += batch.tally.new;
        all.tally.seen += batch.tally.seen;
        all.tally.full += batch.tally.full;
        all.outcomes.extend(batch.outcomes);
        all.references.extend(batch.references);
        all.new_references.extend(batch.new_references);
    }
    (positions, all)
}
