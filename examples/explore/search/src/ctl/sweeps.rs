//! States in the table only: each operator computes successors again, in sweeps over the states that it has not decided.
//!
//! A state's number is its slot. `E[p U q]` begins with the states of `q`; a sweep adds states of `p` that have a successor in
//! the set. `EG p` begins with all states of `p`; a sweep takes out those that have successors, but none in the set. Threads add
//! to a set while others read it: a sweep that sees an addition early decides more states, and one that sees it late leaves them
//! to the next sweep. Sets only grow (that of `EG` has the states that are out), so the last sweep, which adds nothing, ends with
//! the same set in each order.

use super::bits::{Bits, Growing};
use super::evaluate::{Operand, Space};
use super::witness::Walked;
use super::{Evaluated, Faults};
use crate::exploration::Limits;
use crate::liveness::residue::large_piece;
use crate::successors::{Expansion, Scratch, Successors};
use anyhow::{Context, Result, ensure};
use rayon::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use warpset::{Reference, Storage, VectorTable};
use warpset_model::interpreter::Interpreter;

/// All states of a table.
pub struct Sweeps<'a, S: Storage, X> {
    table: &'a VectorTable<S>,
    source: &'a X,
    conditions: &'a Evaluated<'a>,
    states: Bits,
    initial: usize,
    /// States in which a condition has a fault.
    faults: Mutex<Vec<Reference>>,
    limits: Limits,
}

impl<'a, S: Storage, X: Successors> Sweeps<'a, S, X> {
    /// # Errors
    ///
    /// The limit of memory, or a failure of the table.
    pub fn of(
        table: &'a VectorTable<S>,
        source: &'a X,
        interpreter: &Interpreter,
        conditions: &'a Evaluated<'a>,
        limits: Limits,
    ) -> Result<Self> {
        let mut slots = table.slots() as usize;
        while table.reference(slots as u64).is_some() {
            slots *= 2;
        }
        ensure!(
            table.bytes() + slots as u64 / 8 <= limits.bytes,
            "no memory for a set of states, a bit for each of {slots} slots of the table"
        );
        let mut states = Bits::none(slots);
        for row in table.iter() {
            states.insert(row?.0.slot() as usize);
        }
        let initial = table.locate_many(&interpreter.model().initial_state())?;
        let initial = initial.first().copied().flatten().context("the initial state is stored")?.slot() as usize;
        Ok(Self { table, source, conditions, states, initial, faults: Mutex::default(), limits })
    }

    /// The states in which a condition has a fault, if there are some.
    pub fn faults(&self) -> Option<Faults> {
        let faults = std::mem::take(&mut *self.faults.lock().expect("no thread that adds panics"));
        (!faults.is_empty()).then_some(Faults(faults))
    }

    /// Calls `visit` with pieces of the states of `wanted`.
    fn pieces<W: Default + Send>(&self, wanted: &Bits, visit: impl Fn(&mut W, &[Reference]) -> Result<()> + Sync) -> Result<()> {
        let words = large_piece(self.table).div_ceil(16);
        let pieces = wanted.0.par_chunks(words).enumerate();
        pieces.try_for_each_init(W::default, |workspace, (piece, chunk)| {
            if let Some(stop) = (self.limits.stop)() {
                return Err(stop.error("while formulas were evaluated").into());
            }
            let all = chunk.iter().enumerate().flat_map(|(at, word)| super::bits::numbers(words * piece + at, *word));
            let references: Option<Vec<Reference>> = all.map(|slot| self.table.reference(slot as u64)).collect();
            let references = references.context("a state has a slot")?;
            references.chunks(large_piece(self.table)).try_for_each(|some| visit(workspace, some))
        })
    }

    /// Calls `visit` with each state of `wanted` and its successors.
    fn sweep(&self, wanted: &Bits, visit: impl Fn(usize, &[Reference]) + Sync) -> Result<()> {
        self.pieces(wanted, |(scratch, expansion): &mut (Scratch, Expansion), references| {
            expansion.clear();
            self.source.expand_those_without_fault(&self.table.get_many(references)?, scratch, expansion);
            let places = self.table.locate_many(&expansion.successors)?;
            let places: Option<Vec<Reference>> = places.into_iter().collect();
            let places = places.context("a successor is not stored: please report this as a bug")?;
            let mut behind = 0;
            for (number, of) in references.iter().enumerate() {
                let first = behind;
                while expansion.parents.get(behind) == Some(&(number as u32)) {
                    behind += 1;
                }
                visit(of.slot() as usize, &places[first..behind]);
            }
            ensure!(behind == places.len(), "successors are not in the order of their states: please report this as a bug");
            Ok(())
        })
    }

    /// Adds states to a set in sweeps, until one adds none. `undecided`: a word of the states that may be added.
    fn grow(
        &self,
        set: Bits,
        undecided: impl Fn(usize) -> u64,
        is_added: impl Fn(&Growing, &[Reference]) -> bool + Sync,
    ) -> Result<Bits> {
        let set = Growing::of(set);
        loop {
            let rest = |(at, states): (usize, &u64)| undecided(at) & !set.word(at) & states;
            let rest = Bits(self.states.0.iter().enumerate().map(rest).collect());
            let has_grown = AtomicBool::new(false);
            self.sweep(&rest, |state, successors| {
                if is_added(&set, successors) {
                    set.insert(state);
                    // Relaxed: it is read behind the join of all threads.
                    has_grown.store(true, Ordering::Relaxed);
                }
            })?;
            if !has_grown.into_inner() {
                return Ok(set.bits());
            }
        }
    }
}

impl<S: Storage, X: Successors> Space for Sweeps<'_, S, X> {
    type Set = Bits;

    fn bytes(&self) -> u64 {
        8 * self.states.0.len() as u64
    }

    fn bytes_of_set(&self) -> u64 {
        self.bytes()
    }

    fn bytes_of_operator(&self) -> u64 {
        2 * self.bytes()
    }

    fn all(&self) -> Result<Bits> {
        Ok(self.states.clone())
    }

    fn condition(&self, number: usize) -> Result<Option<Bits>> {
        let is_faulty = AtomicBool::new(false);
        let set = Growing::of(Bits::none(64 * self.states.0.len()));
        self.pieces(&self.states, |(): &mut (), references| {
            let states = self.table.get_many(references)?;
            for (state, of) in states.chunks_exact(self.source.width()).zip(references) {
                match self.conditions.holds(number, state) {
                    Some(true) => set.insert(of.slot() as usize),
                    Some(false) => {}
                    None => {
                        self.faults.lock().expect("no thread that adds panics").push(*of);
                        // Relaxed: it is read behind the join of all threads.
                        is_faulty.store(true, Ordering::Relaxed);
                    }
                }
            }
            Ok(())
        })?;
        Ok((!is_faulty.into_inner()).then(|| set.bits()))
    }

    fn and(&self, [one, other]: [Operand<Bits>; 2]) -> Result<Bits> {
        Ok(one.view().and(&other.view(), &self.states))
    }

    fn next(&self, of: Operand<Bits>) -> Result<Bits> {
        let of = of.view();
        let set = Growing::of(Bits::none(64 * self.states.0.len()));
        self.sweep(&self.states, |state, successors| {
            if successors.iter().any(|next| of.contains(next.slot() as usize)) {
                set.insert(state);
            }
        })?;
        Ok(set.bits())
    }

    fn until(&self, operands: [Operand<Bits>; 2]) -> Result<Bits> {
        let [first, second] = operands.map(Operand::view);
        let set = second.within(&self.states);
        self.grow(set, |at| first.word(at), |set, successors| successors.iter().any(|next| set.contains(next.slot() as usize)))
    }

    fn always(&self, of: Operand<Bits>) -> Result<Bits> {
        let inside = of.view().within(&self.states);
        let outside = Bits(self.states.0.iter().zip(&inside.0).map(|(states, inside)| states & !inside).collect());
        let is_out = |outside: &Growing, successors: &[Reference]| {
            !successors.is_empty() && successors.iter().all(|next| outside.contains(next.slot() as usize))
        };
        let outside = self.grow(outside, |at| inside.0[at], is_out)?;
        Ok(Bits(self.states.0.iter().zip(&outside.0).map(|(states, outside)| states & !outside).collect()))
    }

    fn tally(&self, of: Operand<Bits>) -> Result<(bool, u64)> {
        Ok((of.view().contains(self.initial), of.view().count(&self.states)))
    }

    fn has_threads(&self) -> bool {
        true
    }
}

impl<S: Storage, X: Successors> Walked for Sweeps<'_, S, X> {
    fn numbers(&self) -> usize {
        64 * self.states.0.len()
    }

    fn initial(&self) -> usize {
        self.initial
    }

    fn member(&self, state: usize) -> Reference {
        self.table.reference(state as u64).expect("a state has a slot")
    }

    fn successors(&self, _: usize) -> Option<&[u32]> {
        None
    }
}
