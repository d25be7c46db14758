//! A run that violates a property: a path to an accepting product state, and a cycle from this state to itself.
//!
//! The run is composed as by Wu, Liu, Liang and Sun (2014): a shortest path from the initial state to a component with an
//! accepting cycle, a shortest path from there to an accepting state of the component, and a shortest cycle through that state.
//! Threads search for the first path over the table: they keep the references of the levels and follow them backwards, as for
//! other paths (`path`). The second path and the cycle are searched for in memory, in the residue that the elimination has left
//! (`residue`): 4 bytes for each step, and 12 for each state. After a search on a GPU, all three searches run on the GPU
//! (gpu/lasso.rs), unless it lacks memory for them.
//!
//! For the product of a terminal automaton, no residue is computed. In this case the path leads to the first accepting state.
//! From there the run stays in accepting states whatever steps it takes, until it returns to an earlier state. If that takes too
//! many steps, or a state has a fault, only the path is shown: every continuation violates the property.

use super::fairness::By;
use super::residue::{Automaton, Residue, ResidueSearch, Workspace, large_piece, path_to_marked};
use crate::successors::Successors;
use anyhow::{Context, Result, bail, ensure};
use rayon::prelude::*;
use std::collections::{HashMap, HashSet, VecDeque};
use warpset::{Reference, Storage};
use warpset_model::interpreter::{Interpreter, Scratch};
use warpset_model::product::ProductStep;
use warpset_support::components::components;

/// Maximum number of steps tried to close a run that is accepted anyway, and maximum number of states searched for a shorter
/// cycle.
const PATIENCE: usize = 1 << 16;

/// The states of a run that ends in a loop, as a search returns them.
pub struct Run {
    /// All states of the path and the loop. The last state repeats the first state of the loop.
    pub states: Vec<Vec<u32>>,
    /// Index of the first state of the loop.
    pub begins: usize,
    /// Participants of each step of the loop, if they matter: several steps may lead from one state to the same successor, and
    /// perhaps only some of these steps make the loop fair.
    pub movers: Option<Vec<By>>,
}

/// A run, replayed by the interpreter and the automaton.
#[derive(Clone, Debug)]
pub struct Lasso {
    /// One state more than steps. The last state repeats the first state of the loop.
    pub states: Vec<Vec<u32>>,
    pub steps: Vec<ProductStep>,
    /// Index of the first state of the loop, which is accepting. If every continuation violates the property, it is the index of
    /// the last state.
    pub begins: usize,
    /// Why the path or the loop is not a shortest one in the sense above, if so.
    pub why_longer: Option<&'static str>,
    /// For a terminal automaton: number of steps after which the automaton is in an accepting state that it never leaves. From
    /// there, every continuation violates the property.
    pub certain: Option<usize>,
}

/// The states of the residue and the steps between them.
struct ResidueGraph {
    /// Index in `targets` of each state's first successor, followed by the number of targets.
    starts: Vec<usize>,
    targets: Vec<u32>,
    accepting: Vec<bool>,
}

impl ResidueGraph {
    fn successors(&self, state: usize) -> &[u32] {
        &self.targets[self.starts[state]..self.starts[state + 1]]
    }

    /// Finds a shortest path within a component, of at least one step, from one of some states to a state for which `wanted`
    /// holds. Returns the states of the path.
    fn path(&self, from: &[u32], component: &[u32], wanted: impl Fn(u32) -> bool) -> Option<Vec<u32>> {
        let mut before: HashMap<u32, u32> = HashMap::new();
        let (first, mut waiting): (HashSet<u32>, VecDeque<u32>) =
            (from.iter().copied().collect(), from.iter().copied().collect());
        while let Some(state) = waiting.pop_front() {
            for &next in self.successors(state as usize) {
                if component[next as usize] != component[state as usize] || before.contains_key(&next) {
                    continue;
                }
                before.insert(next, state);
                if wanted(next) {
                    // Only the first state of a shortest path is one to begin with.
                    let mut path = vec![next, state];
                    while !first.contains(&path[path.len() - 1]) {
                        path.push(before[&path[path.len() - 1]]);
                    }
                    path.reverse();
                    return Some(path);
                }
                waiting.push_back(next);
            }
        }
        None
    }
}

impl<S: Storage, X: Successors> ResidueSearch<'_, S, X> {
    /// Finds a run through the residue, as [`Liveness::lasso`](super::check::Liveness::lasso) returns it. Overwrites the flags of
    /// the residue.
    pub fn run_through(&self, fair: Option<&Interpreter>, initial: &[u32], residue: &Residue) -> Result<Option<Result<Run>>> {
        match fair {
            Some(interpreter) => self.fair_lasso(interpreter, initial, residue),
            None => Ok(Some(self.lasso(initial, residue))),
        }
    }

    fn lasso(&self, initial: &[u32], residue: &Residue) -> Result<Run> {
        residue.forget();
        let graph = self.graph(residue)?;
        let component = components(residue.members.len(), |at| graph.successors(at));
        let mut is_accepting = vec![false; residue.members.len()];
        let mut has_step = vec![false; residue.members.len()];
        for (state, of) in component.iter().enumerate() {
            is_accepting[*of as usize] |= graph.accepting[state];
            has_step[*of as usize] |= graph.successors(state).iter().any(|next| component[*next as usize] == *of);
        }
        for (state, of) in component.iter().enumerate() {
            if is_accepting[*of as usize] && has_step[*of as usize] {
                residue.set_on_cycle(residue.members[state]);
            }
        }
        // The way from the component's first state to an accepting one.
        let mut inside = Vec::new();
        let choose = |entries: &[Reference]| {
            let places: HashMap<u64, usize> = entries.iter().enumerate().map(|(at, entry)| (entry.slot(), at)).collect();
            let mut numbers = vec![0; entries.len()];
            for (number, member) in residue.members.iter().enumerate() {
                places.get(&member.slot()).into_iter().for_each(|at| numbers[*at] = number as u32);
            }
            let is_accepting = |number: &u32| graph.accepting[*number as usize];
            inside = match numbers.iter().copied().find(is_accepting) {
                Some(entry) => vec![entry],
                None => graph.path(&numbers, &component, |at| is_accepting(&at)).context("its component has one")?,
            };
            Ok(residue.members[inside[0] as usize])
        };
        let (mut states, _) = path_to_marked(self.table, self.source, self.limits, initial, residue, choose)?;
        let (to_accepting, accepting) = (&inside[1..], inside[inside.len() - 1]);
        let cycle = graph.path(&[accepting], &component, |at| at == accepting).context("its component is a cycle's")?;
        let cycle = &cycle[1..];
        let begins = states.len() - 1 + to_accepting.len();
        let references: Vec<Reference> =
            to_accepting.iter().chain(cycle).map(|number| residue.members[*number as usize]).collect();
        states.extend(self.table.get_many(&references)?.chunks_exact(self.source.width()).map(<[u32]>::to_vec));
        Ok(Run { states, begins, movers: None })
    }

    fn graph(&self, residue: &Residue) -> Result<ResidueGraph> {
        let no_memory = "no memory for the steps of the states that may be on its loop";
        let mut numbers: Vec<u32> = Vec::new();
        let slots = residue.flags.len();
        ensure!(
            residue.members.len() < u32::MAX as usize,
            "{} states may be on its loop, which is too many",
            residue.members.len()
        );
        let bytes = self.table.bytes() + 6 * slots as u64 + 36 * residue.members.len() as u64;
        ensure!(bytes <= self.limits.bytes && numbers.try_reserve_exact(slots).is_ok(), no_memory);
        numbers.resize(slots, u32::MAX);
        residue.members.iter().enumerate().for_each(|(number, of)| numbers[of.slot() as usize] = number as u32);
        let width = self.source.width();
        type Part = (Vec<u32>, Vec<u32>, Vec<bool>);
        let piece = |workspace: &mut Workspace, references: &[Reference]| -> Result<Part> {
            if let Some(stop) = (self.limits.stop)() {
                return Err(stop.error("during the search for its loop").into());
            }
            let (mut degrees, mut targets) = (vec![0; references.len()], Vec::new());
            self.steps(references, workspace, |from, to, _| {
                if residue.contains(to) {
                    degrees[from] += 1;
                    targets.push(numbers[to.slot() as usize]);
                }
            })?;
            let states = self.table.get_many(references)?;
            let accepting = states.chunks_exact(width).map(|state| self.automaton.is_accepting(state)).collect();
            Ok((degrees, targets, accepting))
        };
        let parts: Result<Vec<Part>> =
            residue.members.par_chunks(large_piece(self.table)).map_init(Workspace::default, piece).collect();
        let parts = parts?;
        let mut graph = ResidueGraph { starts: vec![0], targets: Vec::new(), accepting: Vec::new() };
        let steps = parts.iter().map(|(_, targets, _)| targets.len()).sum();
        ensure!(bytes + 8 * steps as u64 <= self.limits.bytes && graph.targets.try_reserve_exact(steps).is_ok(), no_memory);
        for (degrees, targets, accepting) in parts {
            for degree in degrees {
                graph.starts.push(graph.starts.last().expect("it begins with one") + degree as usize);
            }
            graph.targets.extend(targets);
            graph.accepting.extend(accepting);
        }
        Ok(graph)
    }
}

/// Extends a path to an accepting state of a terminal automaton by a run in accepting states. Returns the index of the first
/// state of the loop. If no loop closes within `PATIENCE` steps, or the run reaches a fault, leaves the path unchanged and
/// returns the index of its last state.
pub fn close(interpreter: &Interpreter, automaton: &Automaton, states: &mut Vec<Vec<u32>>) -> Result<usize> {
    let first = states.len() - 1;
    let mut numbers = HashMap::from([(states[first].clone(), first)]);
    let mut scratch = Scratch::default();
    // Returns the accepting successors of a state, and whether one of its steps has a fault.
    let mut accepting_successors = |state: &[u32]| {
        let mut all = Vec::new();
        let visit = |_, successor: &[u32]| {
            if automaton.is_accepting(successor) {
                all.push(successor.to_vec());
            }
        };
        let has_fault = interpreter.product_steps(state, &mut scratch, visit).is_err();
        (all, has_fault)
    };
    let begins = loop {
        if states.len() - first > PATIENCE {
            states.truncate(first + 1);
            return Ok(first);
        }
        // A fault in another step of the state does not affect this run.
        let (successors, has_fault) = accepting_successors(&states[states.len() - 1]);
        let Some(next) = successors.into_iter().next() else {
            ensure!(has_fault, "an accepting state has no accepting successor: please report this as a bug");
            states.truncate(first + 1);
            return Ok(first);
        };
        let begins = *numbers.entry(next.clone()).or_insert(states.len());
        let is_closed = begins < states.len();
        states.push(next);
        if is_closed {
            break begins;
        }
    };
    // Search for a shorter cycle through that state.
    let start = states[begins].clone();
    let mut before: HashMap<Vec<u32>, Vec<u32>> = HashMap::new();
    let mut waiting = VecDeque::from([start.clone()]);
    while let Some(state) = waiting.pop_front().filter(|_| before.len() < PATIENCE) {
        for next in accepting_successors(&state).0 {
            if before.contains_key(&next) {
                continue;
            }
            before.insert(next.clone(), state.clone());
            if next == start {
                let mut cycle = vec![next];
                while before[&cycle[cycle.len() - 1]] != start {
                    cycle.push(before[&cycle[cycle.len() - 1]].clone());
                }
                states.truncate(begins + 1);
                states.extend(cycle.into_iter().rev());
                return Ok(begins);
            }
            waiting.push_back(next);
        }
    }
    Ok(begins)
}

/// Finds the steps between the states with the interpreter and the automaton. Checks that the loop is closed and accepting.
pub fn replay(interpreter: &Interpreter, automaton: &Automaton, run: Run, why_longer: Option<&'static str>) -> Result<Lasso> {
    let Run { states, begins, movers } = run;
    let replay = || -> Result<Vec<ProductStep>> {
        ensure!(states.first() == Some(&interpreter.model().initial_state()), "the run does not begin in the initial state");
        ensure!(begins < states.len() && states.last() == states.get(begins), "its loop is not closed");
        ensure!(automaton.is_accepting(&states[begins]), "its loop does not begin in an accepting state");
        let mut scratch = Scratch::default();
        let mut steps = Vec::new();
        for (number, pair) in states.windows(2).enumerate() {
            let mut taken = None;
            let mover = movers.as_ref().and_then(|movers| movers.get(number.checked_sub(begins)?));
            let visit = |step: ProductStep, successor: &[u32]| {
                let is_meant = mover.is_none_or(|by| *by == By::of(interpreter.model(), step.system));
                if is_meant && successor == pair[1] {
                    taken.get_or_insert(step);
                }
            };
            // A fault in another step does not affect this run. If no step matches, the error mentions the fault.
            let result = interpreter.product_steps(&pair[0], &mut scratch, visit);
            match taken {
                Some(step) => steps.push(step),
                None => bail!("step {} does not lead to its next state ({:?})", number + 1, result.err()),
            }
        }
        Ok(steps)
    };
    let steps = replay().context("the run cannot be replayed: please report this as a bug")?;
    Ok(Lasso { states, steps, begins, why_longer, certain: None })
}
