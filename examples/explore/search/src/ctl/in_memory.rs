//! States and steps in memory, forwards and backwards.

use super::bits::{Bits, View, numbers};
use super::evaluate::Space;
use super::{Evaluated, Faults};
use crate::exploration::Limits;
use crate::interpreter::Interpreter;
use crate::liveness::graph::{StateGraph, is_lack_of_memory};
use crate::successors::Successors;
use anyhow::{Result, ensure};
use rayon::prelude::*;
use warpset::{Reference, Storage, VectorTable};

/// States between two looks at the limits.
const BETWEEN_LOOKS: usize = 1 << 16;

/// Words of a set that a thread takes at a time.
const PIECE: usize = 1 << 8;

/// All states and steps.
pub struct InMemory {
    /// The values are bits: bit 0 is set if a condition has a fault, the next ones tell which conditions hold.
    graph: StateGraph<u64>,
    words_of_state: usize,
    /// Where the steps to each state begin in `sources`; one more at the end. Both are empty if no operator needs them.
    begins: Vec<usize>,
    sources: Vec<u32>,
    states: Bits,
    limits: Limits,
}

impl InMemory {
    /// Loads states and steps; `None` if there is no memory for them. `is_backward`: whether steps are needed backwards.
    ///
    /// # Errors
    ///
    /// The limit of time, or a failure of the table.
    pub fn load<S: Storage, X: Successors>(
        table: &VectorTable<S>,
        source: &X,
        interpreter: &Interpreter,
        conditions: &Evaluated,
        is_backward: bool,
        limits: Limits,
    ) -> Result<Option<Result<Self, Faults>>> {
        let count = conditions.count();
        let words_of_state = (1 + count).div_ceil(64);
        let value = |state: &[u32], to: &mut Vec<u64>| {
            let first = to.len();
            to.resize(first + words_of_state, 0);
            for number in 0..count {
                let (bit, holds) = match conditions.holds(number, state) {
                    Some(holds) => (1 + number, holds),
                    None => (0, true),
                };
                to[first + bit / 64] |= u64::from(holds) << (bit % 64);
            }
        };
        let initial = interpreter.model().initial_state();
        let graph = match StateGraph::load(table, source, &initial, limits, words_of_state, value) {
            Ok(graph) => graph,
            Err(error) if is_lack_of_memory(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        ensure!(graph.is_closed(), "a successor is not stored: please report this as a bug");
        let faulty = graph.members.iter().enumerate().filter(|(state, _)| graph.values[state * words_of_state] & 1 != 0);
        let faulty: Vec<Reference> = faulty.map(|(_, member)| *member).collect();
        if !faulty.is_empty() {
            return Ok(Some(Err(Faults(faulty))));
        }
        let states = Bits::all(graph.members.len());
        let (begins, sources) = (Vec::new(), Vec::new());
        let mut space = Self { graph: graph.in_depth_first_order(), words_of_state, begins, sources, states, limits };
        if is_backward {
            let bytes = space.bytes() + 4 * space.graph.targets.len() as u64 + 16 * space.graph.members.len() as u64;
            if table.bytes() + bytes > limits.bytes {
                return Ok(None);
            }
            space.turn();
        }
        Ok(Some(Ok(space)))
    }

    /// Lists the steps backwards.
    fn turn(&mut self) {
        let count = self.graph.members.len();
        let mut begins = vec![0_usize; count + 1];
        for target in &self.graph.targets {
            begins[*target as usize + 1] += 1;
        }
        for state in 0..count {
            begins[state + 1] += begins[state];
        }
        let mut next = begins.clone();
        let mut sources = vec![0_u32; self.graph.targets.len()];
        for state in 0..count {
            for target in self.graph.successors(state) {
                let at = &mut next[*target as usize];
                sources[*at] = state as u32;
                *at += 1;
            }
        }
        (self.begins, self.sources) = (begins, sources);
    }

    fn predecessors(&self, state: u32) -> &[u32] {
        &self.sources[self.begins[state as usize]..self.begins[state as usize + 1]]
    }

    fn look(&self, at: usize) -> Result<()> {
        match (self.limits.stop)().filter(|_| at % BETWEEN_LOOKS == 0) {
            Some(stop) => Err(stop.error("while formulas were evaluated").into()),
            None => Ok(()),
        }
    }

    /// The set of the states for which this is true.
    fn those(&self, is_in: impl Fn(usize) -> bool + Sync) -> Bits {
        let piece = |(piece, words): (usize, &mut [u64])| {
            for (at, word) in words.iter_mut().enumerate() {
                let all = self.states.0[PIECE * piece + at];
                *word = numbers(PIECE * piece + at, all).filter(|state| is_in(*state)).map(|state| 1 << (state % 64)).sum();
            }
        };
        let mut set = Bits::none(self.graph.members.len());
        set.0.par_chunks_mut(PIECE).enumerate().for_each(piece);
        set
    }
}

impl Space for InMemory {
    fn states(&self) -> &Bits {
        &self.states
    }

    fn initial(&self) -> usize {
        self.graph.initial as usize
    }

    fn bytes(&self) -> u64 {
        self.graph.bytes() + (8 * (self.begins.len() + self.states.0.len()) + 4 * self.sources.len()) as u64
    }

    fn bytes_of_operator(&self) -> u64 {
        // A list of states, and a count of each.
        8 * self.graph.members.len() as u64
    }

    fn condition(&self, number: usize) -> Result<Bits> {
        let (word, bit) = ((1 + number) / 64, (1 + number) % 64);
        Ok(self.those(|state| self.graph.values[state * self.words_of_state + word] >> bit & 1 != 0))
    }

    fn next(&self, of: View) -> Result<Bits> {
        self.look(0)?;
        Ok(self.those(|state| self.graph.successors(state).iter().any(|next| of.contains(*next as usize))))
    }

    fn until(&self, first: View, second: View) -> Result<Bits> {
        let mut set = second.within(&self.states);
        let mut waiting: Vec<u32> = set.iter().map(|state| state as u32).collect();
        let mut at = 0;
        while let Some(state) = waiting.pop() {
            at += 1;
            self.look(at)?;
            for before in self.predecessors(state) {
                if first.contains(*before as usize) && set.insert(*before as usize) {
                    waiting.push(*before);
                }
            }
        }
        Ok(set)
    }

    fn always(&self, of: View) -> Result<Bits> {
        let mut set = of.within(&self.states);
        // Steps from each state of the set that stay in it. States without any step stay; others go with their last step.
        let mut inside = vec![0_u32; self.graph.members.len()];
        inside.par_iter_mut().enumerate().filter(|(state, _)| set.contains(*state)).for_each(|(state, inside)| {
            *inside = self.graph.successors(state).iter().filter(|next| set.contains(**next as usize)).count() as u32;
        });
        let is_left = |state: usize| inside[state] == 0 && !self.graph.successors(state).is_empty();
        let mut waiting: Vec<u32> = set.iter().filter(|state| is_left(*state)).map(|state| state as u32).collect();
        waiting.iter().for_each(|state| set.remove(*state as usize));
        let mut at = 0;
        while let Some(state) = waiting.pop() {
            at += 1;
            self.look(at)?;
            for before in self.predecessors(state).iter().map(|before| *before as usize) {
                if set.contains(before) {
                    inside[before] -= 1;
                    if inside[before] == 0 {
                        set.remove(before);
                        waiting.push(before as u32);
                    }
                }
            }
        }
        Ok(set)
    }

    fn has_threads(&self) -> bool {
        false
    }

    fn member(&self, state: usize) -> Reference {
        self.graph.members[state]
    }

    fn successors(&self, state: usize) -> Option<&[u32]> {
        Some(self.graph.successors(state))
    }
}
