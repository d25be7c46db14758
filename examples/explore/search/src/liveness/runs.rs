//! Formulas about the runs of a net, decided over its states in memory.
//!
//! One exploration serves all formulas. Its states and steps are loaded once ([`StateGraph`]), with the value of each condition
//! in each state. For each formula, one thread searches the product of these states with the automaton that accepts the violating
//! runs. The search is depth-first and does not store product states. It ends at the first component with an accepting state and
//! a step (Gabow 2000; Couvreur 1999), or at an accepting location that no run leaves.
//!
//! The loaded states may be only a part of all states. If a run through them violates the formula, it does so whatever the other
//! states are. If no run through them does, the formula holds only if the product never leaves the loaded states.

use super::graph::{NOWHERE, StateGraph};
use crate::exploration::Limits;
use crate::successors::Interpreted;
use anyhow::{Context, Result};
use warpset::{Storage, VectorTable};
use warpset_model::ltl::buchi::{Buchi, Cube, Label};
use warpset_model::net::marking::Check;

/// Number of product states between two checks of the limits.
const BETWEEN_LOOKS: u32 = 1 << 16;

/// Order of a product state whose component is complete. Product states in open components are numbered from 1 on; 0 means not
/// found.
const DONE: u32 = u32::MAX;

/// The runs that violate a formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violating {
    pub automaton: Buchi,
    /// By proposition, the number of its condition among the conditions of [`Runs`].
    pub conditions: Vec<usize>,
}

/// The states of a net, in memory.
pub struct Runs {
    /// The values are bits: bit 0 is set if no transition is enabled, and the next bits say which conditions hold.
    graph: StateGraph<u64>,
    words_of_state: usize,
}

/// A product state on the path of the search.
struct Step {
    state: u32,
    location: u32,
    /// Start in `moves` of the locations to which the automaton may move from here.
    moves: usize,
    /// The next successor of the state to visit, and the next of these locations.
    successor: u32,
    next_move: u32,
}

/// Whether a label is true if exactly the propositions in `holding` hold.
fn holds(label: &Label, holding: u64) -> bool {
    let cube = |cube: &Cube| holding & cube.positive == cube.positive && holding & cube.negative == 0;
    label.0.iter().any(cube)
}

impl Runs {
    /// Loads the states of a table and their steps, and evaluates the conditions.
    ///
    /// # Errors
    ///
    /// The limit of memory or time is reached, or the table fails.
    pub fn load<S: Storage>(
        table: &VectorTable<S>,
        interpreted: &Interpreted,
        conditions: &[Check],
        limits: Limits,
    ) -> Result<Self> {
        let interpreter = &interpreted.interpreter;
        let firings = interpreter.firings().context("a net has firings")?;
        let words_of_state = (1 + conditions.len()).div_ceil(64);
        let value = |state: &[u32], to: &mut Vec<u64>| {
            let first = to.len();
            to.resize(first + words_of_state, 0);
            let is_dead = firings.enabled(state, |_| Err(())).is_ok();
            let holding = conditions.iter().map(|condition| condition.holds(firings, state));
            for (bit, holds) in std::iter::once(is_dead).chain(holding).enumerate() {
                to[first + bit / 64] |= u64::from(holds) << (bit % 64);
            }
        };
        let initial = interpreter.model().initial_state();
        let graph = StateGraph::load(table, interpreted, &initial, limits, words_of_state, value)?;
        Ok(Self { graph: graph.in_depth_first_order(), words_of_state })
    }

    /// Bytes that the states take.
    pub fn bytes(&self) -> u64 {
        self.graph.bytes()
    }

    /// Whether some run violates the formula. `None` if the stored states do not decide that, or if a limit ended the search.
    /// `limits` are for this search alone.
    pub fn is_violated(&self, violating: &Violating, limits: Limits) -> Option<bool> {
        let automaton = &violating.automaton;
        let locations = automaton.edges.len();
        let count = self.graph.members.len().checked_mul(locations)?;
        if 4 * count as u64 > limits.bytes || self.graph.initial == NOWHERE {
            return None;
        }
        // Each run goes on for ever, so reaching one of these locations is a violation.
        let is_last =
            |at: usize| automaton.accepting[at] && automaton.edges[at].iter().any(|(label, to)| *to == at && label.is_true());
        let is_last: Vec<bool> = (0..locations).map(is_last).collect();
        let number = |state: u32, location: u32| state as usize * locations + location as usize;
        // Zeros, whose memory is used only when they are written.
        let mut order = vec![0u32; count];
        // `open`: states whose components are not complete. `components`: the components so far, with their first order and
        // whether they have an accepting state. `path`: the path, whose moves are in `moves`.
        let (mut open, mut components, mut path): (Vec<usize>, Vec<(u32, bool)>, Vec<Step>) = Default::default();
        let mut moves: Vec<u32> = Vec::new();
        let (mut found, mut leads_out) = (0u32, false);
        let mut next = Some((self.graph.initial, automaton.initial as u32));
        loop {
            if let Some((state, location)) = next {
                if is_last[location as usize] {
                    return Some(true);
                }
                found += 1;
                if found % BETWEEN_LOOKS == 0 {
                    let lists = 8 * (open.capacity() + components.capacity())
                        + size_of::<Step>() * path.capacity()
                        + 4 * moves.capacity();
                    if (limits.stop)().is_some() || (4 * count + lists) as u64 > limits.bytes || found >= DONE - BETWEEN_LOOKS {
                        return None;
                    }
                }
                let at = number(state, location);
                order[at] = found;
                open.push(at);
                components.push((found, automaton.accepting[location as usize]));
                let (holding, first) = (self.holding(state, violating), moves.len());
                let enabled = automaton.edges[location as usize].iter().filter(|(label, _)| holds(label, holding));
                moves.extend(enabled.map(|(_, to)| *to as u32));
                leads_out |= moves.len() > first && self.is_open(state);
                path.push(Step { state, location, moves: first, successor: 0, next_move: 0 });
            }
            let Some(step) = path.last_mut() else { return if leads_out { None } else { Some(false) } };
            next = self.next(step, &moves);
            if let Some((state, location)) = next {
                let to = order[number(state, location)];
                if to == 0 {
                    continue;
                }
                next = None;
                if to != DONE {
                    // A step back into an open component joins all components after that one to it.
                    let mut is_accepting = false;
                    while let Some(&(first, accepting)) = components.last() {
                        is_accepting |= accepting;
                        if first <= to {
                            break;
                        }
                        components.pop();
                    }
                    if is_accepting {
                        return Some(true);
                    }
                }
                continue;
            }
            let at = number(step.state, step.location);
            moves.truncate(step.moves);
            path.pop();
            if components.last().is_some_and(|(first, _)| *first == order[at]) {
                components.pop();
                while let Some(member) = open.pop() {
                    order[member] = DONE;
                    if member == at {
                        break;
                    }
                }
            }
        }
    }

    /// Returns the next successor of a product state, and advances `step`.
    fn next(&self, step: &mut Step, moves: &[u32]) -> Option<(u32, u32)> {
        let itself = [step.state];
        // A run that ends in a deadlock stays there for ever.
        let successors = if self.bit(step.state, 0) { &itself[..] } else { self.graph.successors(step.state as usize) };
        while let Some(&to) = successors.get(step.successor as usize) {
            if to != NOWHERE
                && let Some(location) = moves.get(step.moves + step.next_move as usize)
            {
                step.next_move += 1;
                return Some((to, *location));
            }
            (step.successor, step.next_move) = (step.successor + 1, 0);
        }
        None
    }

    /// Whether a step of the state leads to a state that is not stored.
    fn is_open(&self, state: u32) -> bool {
        let successors = self.graph.successors(state as usize);
        // A state without steps that is no deadlock has a fault: steps with a fault are not in the graph.
        successors.contains(&NOWHERE) || (successors.is_empty() && !self.bit(state, 0))
    }

    fn bit(&self, state: u32, bit: usize) -> bool {
        self.graph.values[state as usize * self.words_of_state + bit / 64] >> (bit % 64) & 1 != 0
    }

    /// The propositions of a formula that hold in a state.
    fn holding(&self, state: u32, violating: &Violating) -> u64 {
        let bits = violating.conditions.iter().enumerate();
        bits.map(|(proposition, condition)| u64::from(self.bit(state, 1 + condition)) << proposition).sum()
    }
}
