//! Sets that are wrong on purpose: a checker that has never caught anything proves nothing.

use super::set::Set;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use warpset::{Batch, Outcome, Reference, Stats};

/// Fault of a set. Most faults concern the vectors whose first word is odd (`is_bad`), because a real bug does not show
/// everywhere, either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Nothing,
    /// Reports New, and stores nothing.
    DropsVectors,
    /// Stores another copy at every offer, and reports Seen.
    StoresCopies,
    /// Reports New at every offer.
    NewAgain,
    /// Reports Seen even at the first offer.
    NeverNew,
    /// Reports Full although there is room.
    RejectsEarly,
    /// Rejects a vector, and stores it at a later offer.
    RejectsAtFirst,
    /// Returns the reference of another vector.
    WrongReference,
    /// Puts all vectors at one reference.
    OnePlace,
    /// Returns a reference for a rejected vector.
    ReferenceOfFull,
    /// Changes a word of a stored vector.
    ChangesWords,
    /// Counts a New too many.
    WrongTally,
    /// Returns one outcome too few.
    ShortResults,
    /// Leaves out a new reference.
    MissesNewReference,
    /// Returns the references of Seen vectors as new ones, too.
    TooManyNewReferences,
    /// Reports every vector as contained.
    ContainsAll,
    /// Reports no bad vector as contained.
    ContainsTooLittle,
    /// Returns references of vectors that are not stored.
    LocatesAbsent,
    /// Iterates over a vector twice.
    IteratesTwice,
    /// Leaves a vector out of the iteration.
    IteratesTooLittle,
    /// Iterates over a vector with the reference of another.
    IteratesMixed,
    /// `len` is one too many.
    LengthOff,
    /// The probe lengths miss a vector.
    StatisticsOff,
    /// Keeps a vector after `clear`.
    ClearsTooLittle,
    /// Loses a vector when it grows.
    GrowsTooLittle,
    /// Moves its vectors without growing.
    MovesVectors,
}

impl Fault {
    pub const ALL: [Self; 25] = [
        Self::DropsVectors,
        Self::StoresCopies,
        Self::NewAgain,
        Self::NeverNew,
        Self::RejectsEarly,
        Self::RejectsAtFirst,
        Self::WrongReference,
        Self::OnePlace,
        Self::ReferenceOfFull,
        Self::ChangesWords,
        Self::WrongTally,
        Self::ShortResults,
        Self::MissesNewReference,
        Self::TooManyNewReferences,
        Self::ContainsAll,
        Self::ContainsTooLittle,
        Self::LocatesAbsent,
        Self::IteratesTwice,
        Self::IteratesTooLittle,
        Self::IteratesMixed,
        Self::LengthOff,
        Self::StatisticsOff,
        Self::ClearsTooLittle,
        Self::GrowsTooLittle,
        Self::MovesVectors,
    ];
}

/// A set that one thread uses, with a fault.
pub struct FaultySet {
    width: usize,
    fault: Fault,
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    slots: u64,
    places: HashMap<Vec<u32>, u64>,
    vectors: BTreeMap<u64, Vec<u32>>,
    offers: HashMap<Vec<u32>, u64>,
    next: u64,
}

fn is_bad(vector: &[u32]) -> bool {
    vector[0] % 2 == 1
}

impl State {
    fn store(&mut self, vector: &[u32]) -> u64 {
        let place = self.next;
        self.next += 1;
        self.places.insert(vector.to_vec(), place);
        self.vectors.insert(place, vector.to_vec());
        place
    }

    fn find_or_put(&mut self, vector: &[u32], fault: Fault) -> (Outcome, Option<Reference>) {
        let offers = self.offers.entry(vector.to_vec()).or_default();
        *offers += 1;
        let (offers, bad, kinds) = (*offers, is_bad(vector), self.offers.len() as u64);
        let at = |place| Some(reference(place));
        if bad && (fault == Fault::RejectsEarly || (fault == Fault::RejectsAtFirst && offers == 1)) {
            return (Outcome::Full, None);
        }
        if let Some(&place) = self.places.get(vector) {
            match fault {
                Fault::StoresCopies if bad => {
                    self.vectors.insert(self.next, vector.to_vec());
                    self.next += 1;
                }
                Fault::NewAgain if bad => return (Outcome::New, at(place)),
                Fault::WrongReference if bad => return (Outcome::Seen, at(place + 1)),
                _ => {}
            }
            return (Outcome::Seen, at(place));
        }
        if self.places.len() as u64 == self.slots {
            return (Outcome::Full, if fault == Fault::ReferenceOfFull { at(0) } else { None });
        }
        match fault {
            Fault::DropsVectors if bad => return (Outcome::New, at(1_000_000 + kinds)),
            Fault::OnePlace if bad => self.next = 0,
            _ => {}
        }
        let place = self.store(vector);
        if fault == Fault::ChangesWords && bad {
            *self.vectors.get_mut(&place).unwrap().last_mut().unwrap() ^= 1 << 31;
        }
        (if fault == Fault::NeverNew && bad { Outcome::Seen } else { Outcome::New }, at(place))
    }

    /// Stores the vectors that `keeps` accepts at new places, and drops the others.
    fn move_all(&mut self, keeps: impl Fn(&[u32]) -> bool) {
        let vectors: Vec<_> = std::mem::take(&mut self.vectors).into_values().collect();
        self.places.clear();
        self.next = 0;
        for vector in vectors.iter().rev().filter(|vector| keeps(vector)) {
            self.store(vector);
        }
    }
}

impl FaultySet {
    pub fn new(width: usize, slots: u64, fault: Fault) -> Self {
        Self { width, fault, state: RefCell::new(State { slots, ..State::default() }) }
    }

    /// The last stored bad vector, and its place.
    fn last_bad(&self) -> Option<(u64, Vec<u32>)> {
        let state = self.state.borrow();
        state.vectors.iter().rev().find(|(_, vector)| is_bad(vector)).map(|(place, vector)| (*place, vector.clone()))
    }
}

impl Set for FaultySet {
    fn width(&self) -> usize {
        self.width
    }

    fn slots(&self) -> u64 {
        self.state.borrow().slots
    }

    fn bytes(&self) -> u64 {
        4 * self.slots()
    }

    fn find_or_put(&self, vectors: &[u32]) -> Batch {
        let mut batch = Batch::default();
        for vector in vectors.chunks(self.width) {
            let (outcome, reference) = self.state.borrow_mut().find_or_put(vector, self.fault);
            match outcome {
                Outcome::New => batch.tally.new += 1,
                Outcome::Seen => batch.tally.seen += 1,
                Outcome::Full => batch.tally.full += 1,
            }
            batch.outcomes.push(outcome);
            batch.references.push(reference);
            if outcome == Outcome::New || (outcome == Outcome::Seen && self.fault == Fault::TooManyNewReferences) {
                batch.new_references.extend(reference);
            }
        }
        match self.fault {
            Fault::WrongTally => batch.tally.new += 1,
            Fault::ShortResults => drop(batch.outcomes.pop()),
            Fault::MissesNewReference => drop(batch.new_references.pop()),
            Fault::MovesVectors => self.state.borrow_mut().move_all(|_| true),
            _ => {}
        }
        batch
    }

    fn contains(&self, vectors: &[u32]) -> Vec<bool> {
        let state = self.state.borrow();
        let contains = |vector: &[u32]| match self.fault {
            Fault::ContainsAll => true,
            Fault::ContainsTooLittle if is_bad(vector) => false,
            _ => state.places.contains_key(vector),
        };
        vectors.chunks(self.width).map(contains).collect()
    }

    fn locate(&self, vectors: &[u32]) -> Vec<Option<Reference>> {
        let state = self.state.borrow();
        let absent = (self.fault == Fault::LocatesAbsent).then(|| reference(0));
        let locate = |vector: &[u32]| state.places.get(vector).map(|place| reference(*place)).or(absent);
        vectors.chunks(self.width).map(locate).collect()
    }

    fn get(&self, references: &[Reference]) -> Result<Vec<u32>, String> {
        let state = self.state.borrow();
        let get = |reference: &Reference| state.vectors.get(&reference.slot()).ok_or("an invalid reference".to_string());
        Ok(references.iter().map(get).collect::<Result<Vec<_>, _>>()?.into_iter().flatten().copied().collect())
    }

    fn rows(&self) -> Vec<(Reference, Vec<u32>)> {
        let mut rows: Vec<_> = self.state.borrow().vectors.clone().into_iter().collect();
        if let Some((place, vector)) = self.last_bad() {
            match self.fault {
                Fault::IteratesTwice => rows.push((place, vector)),
                Fault::IteratesTooLittle => rows.retain(|row| row.0 != place),
                Fault::IteratesMixed => rows.iter_mut().for_each(|row| row.0 = place),
                _ => {}
            }
        }
        rows.into_iter().map(|(place, vector)| (reference(place), vector)).collect()
    }

    fn stored(&self) -> u64 {
        self.state.borrow().vectors.len() as u64 + u64::from(self.fault == Fault::LengthOff)
    }

    fn stats(&self) -> Stats {
        let stored = self.state.borrow().vectors.len() as u64;
        let counted = if self.fault == Fault::StatisticsOff { stored.saturating_sub(1) } else { stored };
        let longest_probe = u64::from(counted > 0);
        let mut stats = Stats::default();
        (stats.slots, stats.stored, stats.width) = (self.slots(), stored, self.width());
        (stats.probe_lengths, stats.longest_probe) = (vec![counted, 0], longest_probe);
        stats
    }

    fn clear(&self) {
        let kept = self.last_bad().filter(|_| self.fault == Fault::ClearsTooLittle);
        let slots = self.slots();
        let mut state = self.state.borrow_mut();
        *state = State { slots, ..State::default() };
        if let Some((_, vector)) = kept {
            state.store(&vector);
        }
    }

    fn grow(&self, capacity: u64) {
        let lost = self.last_bad().filter(|_| self.fault == Fault::GrowsTooLittle);
        let mut state = self.state.borrow_mut();
        state.slots = capacity;
        state.move_all(|vector| lost.as_ref().is_none_or(|(_, lost)| lost != vector));
    }
}

/// Reference of a place; these sets have one generation.
fn reference(place: u64) -> Reference {
    Reference::from_bits(1 << 40 | place).expect("it is not 0")
}
