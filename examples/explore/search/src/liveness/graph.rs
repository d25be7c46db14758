//! All states of a table and the steps between them, in memory.

use super::residue::large_piece;
use crate::exploration::Limits;
use crate::successors::{Expansion, Scratch, Successors};
use anyhow::{Context, Error, Result};
use rayon::prelude::*;
use std::fmt;
use warpset::{Reference, Storage, VectorTable};

/// Target of a step whose target state is not in the table.
pub const NOWHERE: u32 = u32::MAX;

/// There is no memory for the graph.
#[derive(Debug)]
struct NoMemory;

impl fmt::Display for NoMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no memory for all states and steps at once")
    }
}

impl std::error::Error for NoMemory {}

/// Whether a graph was not loaded because there is no memory for it.
pub fn is_lack_of_memory(error: &Error) -> bool {
    error.is::<NoMemory>()
}

/// States, steps and values. States have numbers, in the order of the table.
pub struct StateGraph<V> {
    pub members: Vec<Reference>,
    /// Number of the initial state.
    pub initial: u32,
    /// By state, the index in `targets` of its first step; followed by the number of targets.
    pub starts: Vec<usize>,
    pub targets: Vec<u32>,
    /// Values of all states, with the same number of values for each state.
    pub values: Vec<V>,
}

impl<V: Send> StateGraph<V> {
    /// Loads the graph. Temporarily takes 4 bytes for each slot of the table. The graph takes 20 bytes for each state, 4 for each
    /// step, and `values_of_state` values for each state. `value` appends the values of a state. A state with a fault has no
    /// steps.
    ///
    /// # Errors
    ///
    /// The limit of memory or time is reached, or the table fails.
    pub fn load<S: Storage, X: Successors>(
        table: &VectorTable<S>,
        source: &X,
        initial: &[u32],
        limits: Limits,
        values_of_state: usize,
        value: impl Fn(&[u32], &mut Vec<V>) + Sync,
    ) -> Result<Self> {
        let no_memory = || Error::from(NoMemory);
        // An indexed table may have more rows than slots: numbers are by the largest reference.
        let (mut slots, states) = (table.slots(), table.len()?);
        while table.reference(slots).is_some() {
            slots *= 2;
        }
        // The parts of the threads and the graph exist at the same time, and so do the graph and its copy in another order.
        let of_state = 48 + 2 * (values_of_state * size_of::<V>()) as u64;
        let bytes = table.bytes() + 6 * slots + of_state * states;
        let mut numbers: Vec<u32> = Vec::new();
        if bytes > limits.bytes || states >= NOWHERE.into() || numbers.try_reserve_exact(slots as usize).is_err() {
            return Err(no_memory());
        }
        numbers.resize(slots as usize, NOWHERE);
        let mut members = Vec::with_capacity(states as usize);
        for row in table.iter() {
            let (reference, _) = row?;
            numbers[reference.slot() as usize] = members.len() as u32;
            members.push(reference);
        }
        let number = |place: Option<Reference>| place.map_or(NOWHERE, |place| numbers[place.slot() as usize]);
        let first = table.locate_many(initial)?.first().copied().flatten().context("the initial state is stored")?;
        let width = source.width();
        // Out-degrees, targets, and values of a part.
        type Part<V> = (Vec<u32>, Vec<u32>, Vec<V>);
        let piece = |(scratch, expansion): &mut (Scratch, Expansion), references: &[Reference]| -> Result<Part<V>> {
            if let Some(stop) = (limits.stop)() {
                return Err(stop.error("while states and steps were loaded").into());
            }
            let states = table.get_many(references)?;
            expansion.clear();
            source.expand_those_without_fault(&states, scratch, expansion);
            let mut degrees = vec![0; references.len()];
            expansion.parents.iter().for_each(|parent| degrees[*parent as usize] += 1);
            let targets = table.locate_many(&expansion.successors)?.into_iter().map(number).collect();
            let mut values = Vec::with_capacity(references.len() * values_of_state);
            states.chunks_exact(width).for_each(|state| value(state, &mut values));
            Ok((degrees, targets, values))
        };
        let parts: Result<Vec<Part<V>>> = members.par_chunks(large_piece(table)).map_init(Default::default, piece).collect();
        let parts = parts?;
        let steps: usize = parts.iter().map(|(_, targets, _)| targets.len()).sum();
        let mut graph = Self { initial: number(Some(first)), starts: vec![0], targets: Vec::new(), values: Vec::new(), members };
        if bytes + 12 * steps as u64 > limits.bytes || graph.targets.try_reserve_exact(steps).is_err() {
            return Err(no_memory());
        }
        for (degrees, targets, values) in parts {
            for degree in degrees {
                graph.starts.push(graph.starts.last().expect("it begins with one") + degree as usize);
            }
            graph.targets.extend(targets);
            graph.values.extend(values);
        }
        Ok(graph)
    }

    /// Renumbers the states in the order of a depth-first search. A later search then finds neighbours close together in memory,
    /// whereas the order of the table is that of a hash function.
    pub fn in_depth_first_order(self) -> Self
    where
        V: Copy,
    {
        let count = self.members.len();
        let (mut number, mut order) = (vec![NOWHERE; count], Vec::with_capacity(count));
        let mut waiting = Vec::new();
        // States that cannot be reached from the initial state come last.
        for first in std::iter::once(self.initial).filter(|first| *first != NOWHERE).chain(0..count as u32) {
            waiting.push(first);
            while let Some(state) = waiting.pop() {
                if number[state as usize] == NOWHERE {
                    number[state as usize] = order.len() as u32;
                    order.push(state);
                    let next = self.successors(state as usize).iter().rev();
                    waiting.extend(next.filter(|next| number.get(**next as usize) == Some(&NOWHERE)));
                }
            }
        }
        self.in_order(&order, &number)
    }

    /// Numbers the states in the order in which a depth-first search leaves them: the targets of most steps have lower numbers.
    pub fn in_post_order(self) -> Self
    where
        V: Copy,
    {
        const WAITING: u32 = NOWHERE - 1;
        let count = self.members.len();
        let (mut number, mut order) = (vec![NOWHERE; count], Vec::with_capacity(count));
        // States on the path, each with the number of its successors that were looked at.
        let mut path: Vec<(u32, u32)> = Vec::new();
        for first in std::iter::once(self.initial).filter(|first| *first != NOWHERE).chain(0..count as u32) {
            if number[first as usize] != NOWHERE {
                continue;
            }
            number[first as usize] = WAITING;
            path.push((first, 0));
            while let Some((state, looked_at)) = path.last_mut() {
                let successors = self.successors(*state as usize);
                let next = successors[*looked_at as usize..].iter().position(|to| number.get(*to as usize) == Some(&NOWHERE));
                if let Some(next) = next {
                    let to = successors[*looked_at as usize + next];
                    *looked_at += next as u32 + 1;
                    number[to as usize] = WAITING;
                    path.push((to, 0));
                } else {
                    number[*state as usize] = order.len() as u32;
                    order.push(*state);
                    path.pop();
                }
            }
        }
        self.in_order(&order, &number)
    }

    /// Numbers the states in an order. `number`: the new number of each state.
    fn in_order(self, order: &[u32], number: &[u32]) -> Self
    where
        V: Copy,
    {
        let of_state = self.values.len() / self.members.len().max(1);
        let new_number = |target: &u32| number.get(*target as usize).copied().unwrap_or(NOWHERE);
        let mut graph = Self {
            initial: new_number(&self.initial),
            members: order.iter().map(|state| self.members[*state as usize]).collect(),
            starts: vec![0],
            targets: Vec::with_capacity(self.targets.len()),
            values: Vec::with_capacity(self.values.len()),
        };
        for state in order.iter().map(|state| *state as usize) {
            graph.targets.extend(self.successors(state).iter().map(new_number));
            graph.starts.push(graph.targets.len());
            graph.values.extend_from_slice(&self.values[state * of_state..(state + 1) * of_state]);
        }
        graph
    }

    pub fn successors(&self, state: usize) -> &[u32] {
        &self.targets[self.starts[state]..self.starts[state + 1]]
    }

    /// Whether all steps lead to states of the table.
    pub fn is_closed(&self) -> bool {
        !self.targets.contains(&NOWHERE)
    }

    /// Bytes that the graph takes.
    pub fn bytes(&self) -> u64 {
        let of_states = self.members.len() * (size_of::<Reference>() + size_of::<usize>());
        (of_states + 4 * self.targets.len() + self.values.len() * size_of::<V>()) as u64
    }
}
