//! A search that numbers states in discovery order and passes all transitions between the numbers to a consumer.
//!
//! Threads compute the successors of some states with the interpreter, which knows the names of the steps. All these successors
//! go to the table in one batch. Then one thread numbers the new states, in the order of their parents and steps. So the numbers
//! do not depend on the number of threads: they are the numbers that one thread would assign, state after state. The table maps a
//! state to its slot, and an array maps the slot to the number: 4 bytes for each slot, plus the words of each state.
//!
//! The engine of threads answers questions about the states, over the same table.

use crate::ctl::{self, Branching, BranchingTime};
use crate::exploration::{Counts, End, Exploration, Explorer, Found, LevelSizes, Limits, Lists, Observer, Standing, Violating};
use crate::growth::{GROW_AT_FILL, Lack, if_it_fits, put_initial};
use crate::liveness::check::Liveness;
use crate::liveness::lasso::Run;
use crate::liveness::possible::{Outcome, Possibilities, Possible};
use crate::liveness::residue::{Automaton, Residue};
use crate::successors::{Expansion, Interpreted, Scratch};
use crate::threads::Threads;
use anyhow::{Context, Result, ensure};
use rayon::prelude::*;
use std::ops::Range;
use warpset::{Reference, Request, Storage, VectorTable};
use warpset_model::interpreter::{Interpreter, Step};

/// Number of states that a thread expands at a time.
const PIECE: usize = 256;

/// Number of states whose successors are offered in one batch.
const ROUND: usize = 1 << 14;

/// Maximum number of states: numbers have 32 bits.
const MOST_STATES: usize = u32::MAX as usize - 1;

/// Entry of a slot without a numbered state.
const NONE: u32 = u32::MAX;

/// Receives a state space during the search: all transitions of state 0, then all of state 1, and so on.
pub trait StateSpace {
    /// Receives a transition. `step` is `None` if only the automaton of a property moves.
    fn transition(&mut self, source: usize, target: u32, step: Option<Step>);

    /// Called after all transitions of a state.
    fn end_of_state(&mut self);

    /// Called after all states and transitions.
    fn complete(&mut self, counts: &Counts);
}

/// The search, with the consumer of the state space.
pub struct Numbering<'a, S: Storage, C> {
    /// The engine that answers questions about the states.
    threads: Threads<'a, S, Interpreted<'a>>,
    pub consumer: C,
}

impl<'a, S: Storage, C> Numbering<'a, S, C> {
    /// Creates a search into an empty table.
    pub fn new(table: &'a VectorTable<S>, interpreted: &'a Interpreted<'a>, consumer: C) -> Self {
        let initial = interpreted.interpreter.model().initial_state();
        Self { threads: Threads::new(table, interpreted, initial), consumer }
    }
}

/// Successors of some states, the steps to them, and everything else found in these states.
#[derive(Default)]
struct Piece {
    expansion: Expansion,
    /// The step to each successor; `None` if only the automaton of a property moves.
    steps: Vec<Option<Step>>,
}

/// The states that have numbers.
struct Numbered {
    width: usize,
    /// Words of all states, one after another.
    words: Vec<u32>,
    /// By slot of the table, the number of the state in it, or `NONE`.
    of_slots: Vec<u32>,
}

impl Numbered {
    fn len(&self) -> usize {
        self.words.len() / self.width
    }

    fn bytes(&self) -> u64 {
        4 * (self.words.capacity() + self.of_slots.capacity()) as u64
    }

    /// Returns the entry for a slot. An indexed table has a few more rows than slots, so the list may have to grow. `None` if
    /// there is no memory for that.
    fn of_slot(&mut self, place: Reference) -> Option<&mut u32> {
        let slot = place.slot() as usize;
        if slot >= self.of_slots.len() {
            self.of_slots.try_reserve(slot + 1 - self.of_slots.len()).ok()?;
            self.of_slots.resize(slot + 1, NONE);
        }
        Some(&mut self.of_slots[slot])
    }

    /// Finds all states again in a table that has grown. Returns false if memory runs out.
    fn locate<S: Storage>(&mut self, table: &VectorTable<S>) -> Result<bool> {
        self.of_slots = Vec::new();
        if self.of_slots.try_reserve_exact(table.slots() as usize).is_err() {
            return Ok(false);
        }
        self.of_slots.resize(table.slots() as usize, NONE);
        let words = std::mem::take(&mut self.words);
        let found = self.locate_all(&words, table);
        self.words = words;
        found
    }

    fn locate_all<S: Storage>(&mut self, words: &[u32], table: &VectorTable<S>) -> Result<bool> {
        for (piece, words) in words.chunks(ROUND * self.width).enumerate() {
            let Some(places) = if_it_fits(table.locate_many(words))? else { return Ok(false) };
            for (number, place) in places.into_iter().enumerate() {
                let place = place.context("the table lost a state while it grew: please report this as a bug")?;
                let Some(of_slot) = self.of_slot(place) else { return Ok(false) };
                *of_slot = (piece * ROUND + number) as u32;
            }
        }
        Ok(true)
    }
}

impl<S: Storage, C: StateSpace> Explorer for Numbering<'_, S, C> {
    fn explore(&mut self, limits: Limits, observer: &Observer) -> Result<Exploration> {
        let exploration = self.search(limits, observer)?;
        if exploration.end == End::Complete {
            self.consumer.complete(&exploration.counts);
        }
        Ok(exploration)
    }

    fn path(&mut self, found: &Found, limits: Limits) -> Result<Vec<Vec<u32>>> {
        self.threads.path(found, limits)
    }
}

impl<S: Storage, C: StateSpace> Liveness for Numbering<'_, S, C> {
    fn residue(&mut self, automaton: &Automaton, limits: Limits) -> Result<Residue> {
        self.threads.residue(automaton, limits)
    }

    fn lasso(
        &mut self,
        automaton: &Automaton,
        residue: Residue,
        fair: Option<&Interpreter>,
        limits: Limits,
    ) -> Result<Option<Result<Run>>> {
        self.threads.lasso(automaton, residue, fair, limits)
    }

    fn count_accepting(&mut self, automaton: &Automaton) -> Result<Option<u64>> {
        self.threads.count_accepting(automaton)
    }
}

impl<S: Storage, C: StateSpace> Possibilities for Numbering<'_, S, C> {
    fn answer(&mut self, possible: &Possible, interpreter: &Interpreter, exploration: &Exploration, limits: Limits) -> Outcome {
        self.threads.answer(possible, interpreter, exploration, limits)
    }
}

impl<S: Storage, C: StateSpace> BranchingTime for Numbering<'_, S, C> {
    fn branch(
        &mut self,
        branching: &Branching,
        interpreter: &Interpreter,
        exploration: &Exploration,
        limits: Limits,
    ) -> ctl::Outcome {
        self.threads.branch(branching, interpreter, exploration, limits)
    }
}

impl<S: Storage, C: StateSpace> Numbering<'_, S, C> {
    fn search(&mut self, limits: Limits, observer: &Observer) -> Result<Exploration> {
        let (table, initial) = (self.threads.table, self.threads.initial.clone());
        let width = table.width();
        if put_initial(table, &initial, limits.of_table(table, Lists::default())?)?.is_none() {
            return Ok(Exploration::of_nothing());
        }
        let mut numbered = Numbered { width, words: initial, of_slots: Vec::new() };
        ensure!(numbered.locate(table)?, "no memory for the numbers of {} slots", table.slots());
        let mut counts = Counts { states: 1, levels: 1, widest_level: 1, waiting: 1, ..Counts::default() };
        let mut found: Option<Found> = None;
        let mut list_bytes = 0;
        let (mut level_sizes, mut violating) = (LevelSizes::default(), Violating::default());
        level_sizes.add(1);
        // States before `done` are expanded; states before `level_end` belong to this level or an earlier one.
        let (mut done, mut level_end) = (0, 1);
        let end = loop {
            if done == level_end {
                let size = (numbered.len() - level_end) as u64;
                let search = Standing { next_level: Some((counts.levels, size)), ..Standing::default() };
                if let Some(end) = limits.end_of(&search) {
                    break end;
                }
                level_end = numbered.len();
                counts.levels += 1;
                counts.widest_level = counts.widest_level.max(size);
                level_sizes.add(size);
            }
            counts.waiting = (level_end - done) as u64;
            let is_refused = !observer(&counts);
            list_bytes = list_bytes.max(numbered.bytes());
            let (bytes, stop) = (table.bytes() + numbered.bytes(), (limits.stop)());
            let states = Some(counts.states);
            if let Some(end) = limits.end_of(&Standing { states, bytes, is_refused, stop, ..Standing::default() }) {
                break end;
            }
            let round = done..(done + ROUND).min(level_end);
            let mut pieces = self.expand(&numbered.words[round.start * width..round.end * width]);
            for (piece, first) in pieces.iter_mut().zip(round.clone().step_by(PIECE)) {
                counts.transitions += piece.steps.len() as u64;
                counts.deadlocks += piece.expansion.deadlocks;
                counts.overflows += piece.expansion.overflows;
                violating.add(counts.levels - 1, &piece.expansion.violating, piece.expansion.deadlocks);
                if let Some((state, violation)) = piece.expansion.violation.take() {
                    let state = numbered.words[(first + state) * width..][..width].to_vec();
                    let other = Found { violation, state, level: counts.levels - 1 };
                    if other.replaces(found.as_ref()) {
                        found = Some(other);
                    }
                }
            }
            let violated = limits.end_by(found.as_ref());
            let Some(numbers) = self.number(&mut numbered, &pieces, limits)? else {
                break violated.unwrap_or(End::Memory);
            };
            self.give(round.clone(), &pieces, numbers);
            done = round.end;
            counts.states = numbered.len() as u64;
            counts.waiting = (level_end - done) as u64;
            if let Some(end) = violated {
                break end;
            }
        };
        Ok(Exploration { counts, end, found, list_bytes, level_sizes, violating })
    }

    /// Expands states in parallel. The returned pieces are in the order of the states.
    fn expand(&self, states: &[u32]) -> Vec<Piece> {
        let expand = |scratch: &mut Scratch, states: &[u32]| {
            let mut piece = Piece::default();
            let Piece { expansion, steps } = &mut piece;
            self.threads.source.expand_with(states, scratch, expansion, |step| steps.push(step));
            // Drop the steps of a state with a fault, because it has no successors.
            piece.steps.truncate(piece.expansion.parents.len());
            piece
        };
        states.par_chunks(PIECE * self.threads.table.width()).map_init(Scratch::default, expand).collect()
    }

    /// Returns the numbers of all successors. Assigns numbers to new states in order. `None` if memory runs out.
    fn number(&self, numbered: &mut Numbered, pieces: &[Piece], limits: Limits) -> Result<Option<Vec<u32>>> {
        let (table, width) = (self.threads.table, numbered.width);
        let words: Vec<u32> = pieces.iter().flat_map(|piece| &piece.expansion.successors).copied().collect();
        let count = words.len() / width;
        let mut places = loop {
            let most = numbered.len() as u64 + count as u64;
            let mut lack = Lack::Slots;
            if most as f64 <= table.slots() as f64 * GROW_AT_FILL {
                let batch = table.find_or_put_many_with(&words, Request::new().references(true))?;
                if batch.tally.full == 0 {
                    break batch.references;
                }
                lack = Lack::of(batch.tally.full, batch.tally.full_nodes);
            }
            if 3 * table.bytes() + 4 * table.slots() + numbered.bytes() > limits.bytes
                || !lack.relieve(table, 2)?
                || !numbered.locate(table)?
            {
                return Ok(None);
            }
        };
        let mut numbers = Vec::with_capacity(count);
        for (place, state) in places.drain(..).zip(words.chunks_exact(width)) {
            let place = place.context("a state that was put has a place")?;
            let known = numbered.len();
            let Some(number) = numbered.of_slot(place) else { return Ok(None) };
            let is_new = *number == NONE;
            if is_new {
                ensure!(known < MOST_STATES, "more than {MOST_STATES} states cannot be numbered");
                *number = known as u32;
            }
            numbers.push(*number);
            if is_new {
                if numbered.words.try_reserve(width).is_err() {
                    return Ok(None);
                }
                numbered.words.extend_from_slice(state);
            }
        }
        Ok(Some(numbers))
    }

    /// Passes the transitions of a range of states to the consumer. `numbers` are the numbers of all their targets.
    fn give(&mut self, states: Range<usize>, pieces: &[Piece], numbers: Vec<u32>) {
        let mut numbers = numbers.into_iter();
        for (Piece { expansion, steps }, first) in pieces.iter().zip(states.clone().step_by(PIECE)) {
            let mut at = 0;
            for state in first..states.end.min(first + PIECE) {
                while at < steps.len() && first + expansion.parents[at] as usize == state {
                    let target = numbers.next().expect("each successor has a number");
                    self.consumer.transition(state, target, steps[at]);
                    at += 1;
                }
                self.consumer.end_of_state();
            }
        }
    }
}
