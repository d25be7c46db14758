//! A run that violates a property: a path to an accepting product state, and a cycle from it to itself.
//!
//! As Wu, Liu, Liang and Sun (2014) compose it: a shortest path from the initial state to a component with an accepting cycle,
//! from there a shortest one to an accepting state of it, and a shortest cycle through that state. The first is a search by
//! threads over the table, which keeps the references of its levels and goes back along them, as other paths do (`path`). The
//! other two are searches of the residue that an elimination has left (`residue`), in memory: 4 bytes a step, and 12 a state. Of
//! a search on a GPU all three are made there (gpu/lasso.rs), unless it has no memory for them.
//!
//! Of a terminal automaton's product no residue is known. There the path is the one to the first accepting state; from that on
//! the run stays in accepting states, whatever it does, until it is where it has been. Where that takes too many steps, or comes
//! to a state that has a fault, the path alone is shown: every way to go on violates the property.

use super::fairness::By;
use super::residue::{Automaton, Residue, Search, Workspace, large_piece, path_to_marked};
use crate::interpreter::{Interpreter, Scratch};
use crate::successors::Successors;
use anyhow::{Context, Result, bail, ensure};
use rayon::prelude::*;
use std::collections::{HashMap, VecDeque};
use warpset::{Reference, Storage};
use warpset_model::product::ProductStep;
use warpset_support::components::components;

/// Steps until a run that is accepted anyway is given up to be closed, and states that are looked at for a shorter cycle.
const PATIENCE: usize = 1 << 16;

/// The states of a run that ends in a loop, as a search finds them.
pub struct Run {
    /// The last one is the one in which the loop begins.
    pub states: Vec<Vec<u32>>,
    /// The number of the state in which the loop begins.
    pub begins: usize,
    /// Who moves in the steps of the loop, where that matters. Several steps may lead from one state to the same one, and only
    /// the moves of some may make the loop a fair one.
    pub movers: Option<Vec<By>>,
}

/// A path, replayed by the interpreter and the automaton.
#[derive(Clone, Debug)]
pub struct Lasso {
    /// One more than there are steps; the last is the one in which the loop begins.
    pub states: Vec<Vec<u32>>,
    pub steps: Vec<ProductStep>,
    /// The number of the state in which the loop begins: an accepting one. The last state's if the run violates the property
    /// however it goes on.
    pub begins: usize,
    /// Why path and loop are not shortest ones in the sense above, if they are not.
    pub why_longer: Option<&'static str>,
}

/// The residue's states and the steps between them.
struct Graph {
    /// Where in `targets` the successors of each begin, and where the last ones end.
    starts: Vec<usize>,
    targets: Vec<u32>,
    accepting: Vec<bool>,
}

impl Graph {
    fn successors(&self, state: usize) -> &[u32] {
        &self.targets[self.starts[state]..self.starts[state + 1]]
    }

    /// A shortest path of one step or more from a state to one that is wanted, within a component: all its states but the first.
    fn path(&self, from: u32, component: &[u32], wanted: impl Fn(u32) -> bool) -> Option<Vec<u32>> {
        let mut before: HashMap<u32, u32> = HashMap::new();
        let mut waiting = VecDeque::from([from]);
        while let Some(state) = waiting.pop_front() {
            for &next in self.successors(state as usize) {
                if component[next as usize] != component[from as usize] || before.contains_key(&next) {
                    continue;
                }
                before.insert(next, state);
                if wanted(next) {
                    let mut path = vec![next];
                    while before[&path[path.len() - 1]] != from {
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

impl<S: Storage, X: Successors> Search<'_, S, X> {
    /// A run through the residue, as [`Liveness::lasso`](super::check::Liveness::lasso) gives it. Uses up the residue's flags.
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
        let (mut states, entry) = path_to_marked(self.table, self.source, self.limits, initial, residue)?;
        let entry = residue.members.iter().position(|of| *of == entry).context("it is in the residue")? as u32;
        let to_accepting = match graph.accepting[entry as usize] {
            true => Vec::new(),
            false => graph.path(entry, &component, |at| graph.accepting[at as usize]).context("its component has one")?,
        };
        let accepting = to_accepting.last().copied().unwrap_or(entry);
        let cycle = graph.path(accepting, &component, |at| at == accepting).context("its component is a cycle's")?;
        let begins = states.len() - 1 + to_accepting.len();
        let references: Vec<Reference> =
            to_accepting.iter().chain(&cycle).map(|number| residue.members[*number as usize]).collect();
        states.extend(self.table.get_many(&references)?.chunks_exact(self.source.width()).map(<[u32]>::to_vec));
        Ok(Run { states, begins, movers: None })
    }

    fn graph(&self, residue: &Residue) -> Result<Graph> {
        let no_memory = "there is no memory for the steps of the states that may be on its loop";
        let mut numbers: Vec<u32> = Vec::new();
        let slots = residue.flags.len();
        ensure!(residue.members.len() < u32::MAX as usize, "{} states may be on its loop: too many", residue.members.len());
        let bytes = self.table.bytes() + 6 * slots as u64 + 36 * residue.members.len() as u64;
        ensure!(bytes <= self.limits.bytes && numbers.try_reserve_exact(slots).is_ok(), no_memory);
        numbers.resize(slots, u32::MAX);
        residue.members.iter().enumerate().for_each(|(number, of)| numbers[of.slot() as usize] = number as u32);
        let width = self.source.width();
        type Part = (Vec<u32>, Vec<u32>, Vec<bool>);
        let piece = |workspace: &mut Workspace<X>, references: &[Reference]| -> Result<Part> {
            if let Some(stop) = (self.limits.stop)() {
                return Err(stop.error("while its loop was looked for").into());
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
        let mut graph = Graph { starts: vec![0], targets: Vec::new(), accepting: Vec::new() };
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

/// Lengthens a path to an accepting state of a terminal automaton by a run in accepting states. Gives where the loop begins; if
/// there is none after many steps, or it comes to a fault, the path is as it was, and that is its end.
pub fn close(interpreter: &Interpreter, automaton: &Automaton, states: &mut Vec<Vec<u32>>) -> Result<usize> {
    let first = states.len() - 1;
    let mut numbers = HashMap::from([(states[first].clone(), first)]);
    let mut scratch = Scratch::default();
    // The accepting successors, and whether a step has a fault.
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
        // A fault in another step is no concern of this run's.
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
    // A shorter cycle through that state.
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

/// The steps between the states, by the interpreter and the automaton; and that the loop is one, and accepting.
pub fn replay(interpreter: &Interpreter, automaton: &Automaton, run: Run, why_longer: Option<&'static str>) -> Result<Lasso> {
    let Run { states, begins, movers } = run;
    let replay = || -> Result<Vec<ProductStep>> {
        ensure!(states.first() == Some(&interpreter.model().initial_state()), "it does not begin in the initial state");
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
            // A fault in another step of the state is no concern of this run's; but then it is not known whether there is none.
            let result = interpreter.product_steps(&pair[0], &mut scratch, visit);
            match taken {
                Some(step) => steps.push(step),
                None => bail!("step {} does not lead to its next state ({:?})", number + 1, result.err()),
            }
        }
        Ok(steps)
    };
    let steps = replay().context("the run cannot be replayed: please report this as a bug")?;
    Ok(Lasso { states, steps, begins, why_longer })
}
