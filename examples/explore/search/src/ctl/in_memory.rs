//! States and steps in memory, forwards and backwards.
//!
//! The targets of most steps have lower numbers than their sources ([`StateGraph::in_post_order`]), so a sweep in ascending order
//! decides most states of an operator, each by its first successor that decides it. A state that a sweep leaves undecided can
//! only be decided by one that the same sweep decided later. So sweeps go on as long as each decides more states than it leaves,
//! which halves them. Then steps are followed backwards from the states of the last sweep. Both take time in proportion to the
//! steps.

use super::bits::{Bits, numbers};
use super::evaluate::{Operand, Space};
use super::witness::Walked;
use super::{Evaluated, Faults};
use crate::exploration::Limits;
use crate::liveness::graph::{StateGraph, is_lack_of_memory};
use crate::liveness::residue::large_piece;
use crate::successors::Successors;
use anyhow::{Result, ensure};
use rayon::prelude::*;
use warpset::{Reference, Storage, VectorTable};
use warpset_model::interpreter::Interpreter;

/// States between two looks at the limits.
const BETWEEN_LOOKS: usize = 1 << 16;

/// Words of a set that a thread takes at a time.
const PIECE: usize = 1 << 8;

/// All states and steps.
pub struct InMemory {
    graph: StateGraph<()>,
    /// The states in which each condition holds; `None` for one that has a fault in some state.
    conditions: Vec<Option<Bits>>,
    /// The states in which a condition has a fault.
    faulty: Vec<Reference>,
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
    ) -> Result<Option<Self>> {
        let initial = interpreter.model().initial_state();
        let graph = match StateGraph::load(table, source, &initial, limits, 0, |_, _| {}) {
            Ok(graph) => graph.in_post_order(),
            Err(error) if is_lack_of_memory(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        ensure!(graph.is_closed(), "a successor is not stored: please report this as a bug");
        let count = graph.members.len();
        if table.bytes() + graph.bytes() + (2 * conditions.count() * count.div_ceil(8)) as u64 > limits.bytes {
            return Ok(None);
        }
        let (conditions, faulty) = sets(table, &graph.members, conditions, limits)?;
        let (begins, sources) = (Vec::new(), Vec::new());
        let mut space = Self { graph, conditions, faulty, begins, sources, states: Bits::all(count), limits };
        if is_backward {
            let bytes = space.bytes() + 4 * space.graph.targets.len() as u64 + 16 * space.graph.members.len() as u64;
            if table.bytes() + bytes > limits.bytes {
                return Ok(None);
            }
            space.turn();
        }
        Ok(Some(space))
    }

    /// The states in which a condition has a fault, if there are some.
    pub fn faults(&self) -> Option<Faults> {
        (!self.faulty.is_empty()).then(|| Faults(self.faulty.clone()))
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
        match at % BETWEEN_LOOKS {
            0 => (self.limits.stop)().map_or(Ok(()), |stop| Err(stop.error("while formulas were evaluated").into())),
            _ => Ok(()),
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

/// The states in which each condition holds, `None` for one with a fault; and the states in which one has a fault.
fn sets<S: Storage>(
    table: &VectorTable<S>,
    members: &[Reference],
    conditions: &Evaluated,
    limits: Limits,
) -> Result<(Vec<Option<Bits>>, Vec<Reference>)> {
    // Words of each condition, and conditions with states in which they have a fault.
    type Part = (Vec<Vec<u64>>, Vec<(usize, Reference)>);
    let piece = |members: &[Reference]| -> Result<Part> {
        if let Some(stop) = (limits.stop)() {
            return Err(stop.error("while conditions were evaluated").into());
        }
        let (states, mut faulty) = (table.get_many(members)?, Vec::new());
        let all = 0..conditions.count();
        let words = all.map(|number| {
            let fault = |at: usize| faulty.push((number, members[at]));
            conditions.holds_in_each(number, &states, table.width(), fault)
        });
        Ok((words.collect(), faulty))
    };
    let parts: Result<Vec<Part>> = members.par_chunks(large_piece(table).next_multiple_of(64)).map(piece).collect();
    let mut sets = vec![Bits(Vec::with_capacity(members.len().div_ceil(64))); conditions.count()];
    let mut all_faulty = Vec::new();
    for (words, faulty) in parts? {
        sets.iter_mut().zip(words).for_each(|(set, words)| set.0.extend(words));
        all_faulty.extend(faulty);
    }
    let (states, mut is_faulty) = (Bits::all(members.len()), vec![false; sets.len()]);
    all_faulty.iter().for_each(|(number, _)| is_faulty[*number] = true);
    let sets = sets.iter().zip(is_faulty).map(|(set, is_faulty)| (!is_faulty).then(|| set.view(false).within(&states)));
    Ok((sets.collect(), all_faulty.into_iter().map(|(_, state)| state).collect()))
}

impl Space for InMemory {
    type Set = Bits;

    fn bytes(&self) -> u64 {
        let sets = self.states.0.len() * (1 + self.conditions.len());
        self.graph.bytes() + (8 * (self.begins.len() + sets) + 4 * self.sources.len()) as u64
    }

    fn bytes_of_set(&self) -> u64 {
        8 * self.states.0.len() as u64
    }

    fn bytes_of_operator(&self) -> u64 {
        // A list of states, and a count of each.
        8 * self.graph.members.len() as u64
    }

    fn all(&self) -> Result<Bits> {
        Ok(self.states.clone())
    }

    fn condition(&self, number: usize) -> Result<Option<Bits>> {
        Ok(self.conditions[number].clone())
    }

    fn and(&self, [one, other]: [Operand<Bits>; 2]) -> Result<Bits> {
        Ok(one.view().and(&other.view(), &self.states))
    }

    fn next(&self, of: Operand<Bits>) -> Result<Bits> {
        self.look(0)?;
        let of = of.view();
        Ok(self.those(|state| self.graph.successors(state).iter().any(|next| of.contains(*next as usize))))
    }

    fn until(&self, operands: [Operand<Bits>; 2]) -> Result<Bits> {
        let [first, second] = operands.map(Operand::view);
        let mut set = second.within(&self.states);
        let reaches = |state: usize, set: &Bits| self.graph.successors(state).iter().any(|next| set.contains(*next as usize));
        let mut added = Vec::new();
        loop {
            self.look(0)?;
            added.clear();
            let mut undecided = 0;
            for (at, states) in self.states.0.iter().enumerate() {
                for state in numbers(at, first.word(at) & !set.0[at] & states) {
                    if reaches(state, &set) {
                        set.insert(state);
                        added.push(state as u32);
                    } else {
                        undecided += 1;
                    }
                }
            }
            if added.len() <= undecided {
                break;
            }
        }
        let (mut waiting, mut at) = (added, 0);
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

    fn always(&self, of: Operand<Bits>) -> Result<Bits> {
        let mut set = of.view().within(&self.states);
        // Number of successors of each state, from the first on, that are known to be out of the set, for ever.
        let mut passed = vec![0_u32; self.graph.members.len()];
        let mut is_left = |state: usize, set: &Bits| {
            let (successors, passed) = (self.graph.successors(state), &mut passed[state]);
            while successors.get(*passed as usize).is_some_and(|next| !set.contains(*next as usize)) {
                *passed += 1;
            }
            // A path may end in a state without any step.
            *passed as usize == successors.len() && !successors.is_empty()
        };
        let mut removed = Vec::new();
        loop {
            self.look(0)?;
            removed.clear();
            let mut undecided = 0;
            for at in 0..set.0.len() {
                for state in numbers(at, set.0[at]) {
                    if is_left(state, &set) {
                        set.remove(state);
                        removed.push(state as u32);
                    } else {
                        undecided += 1;
                    }
                }
            }
            if removed.len() <= undecided {
                break;
            }
        }
        let (mut waiting, mut at) = (removed, 0);
        while let Some(state) = waiting.pop() {
            at += 1;
            self.look(at)?;
            for before in self.predecessors(state).iter().map(|before| *before as usize) {
                if set.contains(before) && is_left(before, &set) {
                    set.remove(before);
                    waiting.push(before as u32);
                }
            }
        }
        Ok(set)
    }

    fn tally(&self, of: Operand<Bits>) -> Result<(bool, u64)> {
        Ok((of.view().contains(self.graph.initial as usize), of.view().count(&self.states)))
    }

    fn has_threads(&self) -> bool {
        false
    }
}

impl Walked for InMemory {
    fn numbers(&self) -> usize {
        64 * self.states.0.len()
    }

    fn initial(&self) -> usize {
        self.graph.initial as usize
    }

    fn member(&self, state: usize) -> Reference {
        self.graph.members[state]
    }

    fn successors(&self, state: usize) -> Option<&[u32]> {
        Some(self.graph.successors(state))
    }
}
