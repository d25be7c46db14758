//! Weak fairness: a process that can always move from some point on moves infinitely often.
//!
//! A run is unfair to a process if, from some point on, the process is enabled in every state but does not move. A process is
//! *enabled* in a state if it takes part in a step from there: alone, as a sender or as a receiver. SPIN's weak fairness
//! (Holzmann, "The SPIN Model Checker", 2004, on option -f) differs only for receivers: to SPIN a rendezvous is a step of its
//! sender, so a process that waits to receive is not enabled there. If no process can move, the run stays in its state and is
//! fair to all. The components of a network are treated as processes that take part in the steps of rules.
//!
//! Each process must infinitely often move or be disabled, which is a generalised Büchi condition. Therefore no copies of states
//! are needed (Choueka's construction, which SPIN uses, needs them). A strongly connected component has a fair accepting cycle if
//! and only if it has an accepting state and, for every process, a state in which the process is disabled or a step within the
//! component in which the process moves. A cycle through all of these is fair. The components are those of the residue, which is
//! found without regard to fairness. The steps of the residue are kept in memory: 16 bytes each.

use super::lasso::{Lasso, Run};
use super::residue::{Residue, ResidueSearch, large_piece, path_to_marked};
use crate::successors::Successors;
use anyhow::{Context, Result, ensure};
use rayon::prelude::*;
use std::collections::{HashMap, VecDeque};
use warpset::{Reference, Storage};
use warpset_model::interpreter::{Interpreter, Scratch, Step};
use warpset_model::ir::{Model, ProcessId, TransitionId};
use warpset_support::components::components;

/// A step within the residue.
#[derive(Clone, Copy, Debug)]
struct Edge {
    to: u32,
    by: By,
}

/// The participants of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Nobody,
    /// The sender and the receiver. Both are the same process if it moves alone.
    Processes([u32; 2]),
    /// A rule of the network.
    Rule(u32),
}

impl By {
    pub fn of(model: &Model, step: Option<Step>) -> Self {
        let process = |id: TransitionId| model.transitions[id].process as u32;
        match step {
            None => Self::Nobody,
            Some(Step::Transition { id, receiver }) => Self::Processes([process(id), process(receiver.unwrap_or(id))]),
            Some(Step::Rule(rule)) => Self::Rule(rule as u32),
            // A net has no processes, so fairness excludes no run of a net.
            Some(Step::Firing(_)) => Self::Nobody,
        }
    }

    /// Returns the processes and the components of the network that move. Components are numbered after all processes.
    pub fn movers(self, model: &Model) -> impl Iterator<Item = ProcessId> {
        let (pair, rule) = match self {
            Self::Nobody => (None, None),
            Self::Processes(pair) => (Some(pair), None),
            Self::Rule(rule) => (None, model.network.as_ref().map(|network| network.movers(rule as usize))),
        };
        let first = model.processes.len();
        let components = rule.into_iter().flatten().map(move |component| first + component);
        pair.into_iter().flatten().map(|process| process as usize).chain(components)
    }
}

/// Number of processes and components that runs must be fair to.
fn everybody(model: &Model) -> usize {
    model.processes.len() + model.network.as_ref().map_or(0, |network| network.components.len())
}

/// The residue, with the participants of its steps and the enabled processes of its states.
struct FairnessGraph {
    starts: Vec<usize>,
    edges: Vec<Edge>,
    targets: Vec<u32>,
    accepting: Vec<bool>,
    /// A bit for each process and state: whether the process is enabled in the state.
    enabled: Vec<u64>,
    words: usize,
}

impl FairnessGraph {
    fn edges(&self, state: usize) -> &[Edge] {
        &self.edges[self.starts[state]..self.starts[state + 1]]
    }

    fn is_disabled(&self, state: usize, process: ProcessId) -> bool {
        self.enabled[state * self.words + process / 64] >> (process % 64) & 1 == 0
    }

    /// Finds a shortest path within a component, of at least one step, whose last step satisfies `wanted`.
    fn path(&self, from: u32, component: &[u32], wanted: impl Fn(Edge) -> bool) -> Option<Vec<Edge>> {
        let mut before: HashMap<u32, (u32, Edge)> = HashMap::new();
        let mut waiting = VecDeque::from([from]);
        while let Some(state) = waiting.pop_front() {
            for edge in self.edges(state as usize) {
                if component[edge.to as usize] != component[from as usize] {
                    continue;
                }
                if wanted(*edge) {
                    let mut path = vec![*edge];
                    let mut at = state;
                    while at != from {
                        let (previous, step) = before[&at];
                        path.push(step);
                        at = previous;
                    }
                    path.reverse();
                    return Some(path);
                }
                if edge.to != from && !before.contains_key(&edge.to) {
                    before.insert(edge.to, (state, *edge));
                    waiting.push_back(edge.to);
                }
            }
        }
        None
    }
}

/// Whether the loop of the run is fair to every process.
pub fn is_fair(interpreter: &Interpreter, lasso: &Lasso) -> bool {
    let model = interpreter.model();
    let mut fair = vec![false; everybody(model)];
    for (state, step) in lasso.states.iter().zip(&lasso.steps).skip(lasso.begins) {
        let mut enabled = vec![false; everybody(model)];
        let _ = interpreter.steps(state, &mut Scratch::default(), |step, _| {
            By::of(model, Some(step)).movers(model).for_each(|process| enabled[process] = true);
        });
        enabled.iter().enumerate().for_each(|(process, enabled)| fair[process] |= !enabled);
        By::of(model, step.system).movers(model).for_each(|process| fair[process] = true);
    }
    !fair.contains(&false)
}

impl<S: Storage, X: Successors> ResidueSearch<'_, S, X> {
    /// Finds a weakly fair run through the residue. Returns `Ok(None)` if no such run exists, and `Ok(Some(Err))` if one exists
    /// but was not found. Overwrites the flags of the residue.
    pub fn fair_lasso(&self, interpreter: &Interpreter, initial: &[u32], residue: &Residue) -> Result<Option<Result<Run>>> {
        residue.forget();
        let graph = self.fair_graph(interpreter, residue)?;
        let model = interpreter.model();
        let processes = everybody(model);
        let component = components(residue.members.len(), |at| &graph.targets[graph.starts[at]..graph.starts[at + 1]]);
        let count = component.iter().max().map_or(0, |most| *most as usize + 1);
        // By component: whether it has a step, whether it has an accepting state, and a bit for each process to which it is fair.
        let (mut has_step, mut is_accepting) = (vec![false; count], vec![false; count]);
        let words = graph.words;
        let mut fair = vec![0u64; count * words];
        for (state, of) in component.iter().enumerate() {
            let of = *of as usize;
            is_accepting[of] |= graph.accepting[state];
            for word in 0..words {
                fair[of * words + word] |= !graph.enabled[state * words + word];
            }
            for edge in graph.edges(state).iter().filter(|edge| component[edge.to as usize] as usize == of) {
                has_step[of] = true;
                for mover in edge.by.movers(model) {
                    fair[of * words + mover / 64] |= 1 << (mover % 64);
                }
            }
        }
        let is_fair = |of: usize| (0..processes).all(|process| fair[of * words + process / 64] >> (process % 64) & 1 != 0);
        let is_good: Vec<bool> = (0..count).map(|of| has_step[of] && is_accepting[of] && is_fair(of)).collect();
        for (state, of) in component.iter().enumerate() {
            if is_good[*of as usize] {
                residue.set_on_cycle(residue.members[state]);
            }
        }
        Ok(is_good.contains(&true).then(|| self.fair_run(model, &graph, &component, initial, residue)))
    }

    /// Finds a shortest path to a state that is marked as on a cycle, and extends it by a fair loop through that state's
    /// component.
    fn fair_run(
        &self,
        model: &Model,
        graph: &FairnessGraph,
        component: &[u32],
        initial: &[u32],
        residue: &Residue,
    ) -> Result<Run> {
        let (mut states, entry) = path_to_marked(self.table, self.source, self.limits, initial, residue, |all| Ok(all[0]))?;
        let entry = residue.members.iter().position(|of| *of == entry).context("it is in the residue")? as u32;
        let within = "its component has one";
        let mut run = match graph.accepting[entry as usize] {
            true => Vec::new(),
            false => graph.path(entry, component, |edge| graph.accepting[edge.to as usize]).context(within)?,
        };
        let stem = run.len();
        let begins = states.len() - 1 + stem;
        let accepting = run.last().map_or(entry, |edge| edge.to);
        let mut at = accepting;
        for process in 0..everybody(model) {
            // Skip the process if it is disabled in some state of the loop so far. The loop may already contain a move of the
            // process; that is not checked.
            let is_met = std::iter::once(accepting).chain(run[stem..].iter().map(|edge| edge.to));
            if is_met.into_iter().any(|state| graph.is_disabled(state as usize, process)) {
                continue;
            }
            let moves = |edge: Edge| edge.by.movers(model).any(|mover| mover == process);
            let wanted = |edge: Edge| moves(edge) || graph.is_disabled(edge.to as usize, process);
            run.extend(graph.path(at, component, wanted).context(within)?);
            at = run.last().context("a path has a step")?.to;
        }
        if at != accepting || run.len() == stem {
            run.extend(graph.path(at, component, |edge| edge.to == accepting).context(within)?);
        }
        let references: Vec<Reference> = run.iter().map(|edge| residue.members[edge.to as usize]).collect();
        states.extend(self.table.get_many(&references)?.chunks_exact(self.source.width()).map(<[u32]>::to_vec));
        let movers = Some(run[stem..].iter().map(|edge| edge.by).collect());
        Ok(Run { states, begins, movers })
    }

    fn fair_graph(&self, interpreter: &Interpreter, residue: &Residue) -> Result<FairnessGraph> {
        let no_memory = "no memory for the steps of the states that may be on its loop";
        let model = interpreter.model();
        let (width, words) = (self.source.width(), everybody(model).div_ceil(64));
        let (slots, members) = (residue.flags.len(), residue.members.len());
        ensure!(members < u32::MAX as usize, "{members} states may be on its loop, which is too many");
        let bytes = self.table.bytes() + 6 * slots as u64 + (36 + 8 * words as u64) * members as u64;
        let mut numbers: Vec<u32> = Vec::new();
        ensure!(bytes <= self.limits.bytes && numbers.try_reserve_exact(slots).is_ok(), no_memory);
        numbers.resize(slots, u32::MAX);
        residue.members.iter().enumerate().for_each(|(number, of)| numbers[of.slot() as usize] = number as u32);
        type Part = (Vec<u32>, Vec<Edge>, Vec<bool>, Vec<u64>);
        let piece = |references: &[Reference]| -> Result<Part> {
            if let Some(stop) = (self.limits.stop)() {
                return Err(stop.error("during the search for its loop").into());
            }
            let states = self.table.get_many(references)?;
            let mut enabled = vec![0u64; references.len() * words];
            let (mut scratch, mut successors, mut from) = (Scratch::default(), Vec::new(), Vec::new());
            for (number, state) in states.chunks_exact(width).enumerate() {
                let before = from.len();
                let visit = |step: warpset_model::product::ProductStep, successor: &[u32]| {
                    let by = By::of(model, step.system);
                    for mover in by.movers(model) {
                        enabled[number * words + mover / 64] |= 1 << (mover % 64);
                    }
                    if self.automaton.component(successor) == self.automaton.component(state) {
                        successors.extend_from_slice(successor);
                        from.push((number, by));
                    }
                };
                if interpreter.product_steps(state, &mut scratch, visit).is_err() {
                    // The state has no successors, as in the search for the residue.
                    from.truncate(before);
                    successors.truncate(before * width);
                }
            }
            let places = self.table.locate_many(&successors)?;
            let (mut degrees, mut edges) = (vec![0; references.len()], Vec::new());
            for (place, (number, by)) in places.into_iter().zip(from) {
                if let Some(place) = place.filter(|place| residue.contains(*place)) {
                    degrees[number] += 1;
                    edges.push(Edge { to: numbers[place.slot() as usize], by });
                }
            }
            let accepting = states.chunks_exact(width).map(|state| self.automaton.is_accepting(state)).collect();
            Ok((degrees, edges, accepting, enabled))
        };
        let parts: Result<Vec<Part>> = residue.members.par_chunks(large_piece(self.table)).map(piece).collect();
        let parts = parts?;
        let steps: usize = parts.iter().map(|(_, edges, ..)| edges.len()).sum();
        let mut graph = FairnessGraph {
            starts: vec![0],
            edges: Vec::new(),
            targets: Vec::new(),
            accepting: Vec::new(),
            enabled: Vec::new(),
            words,
        };
        ensure!(bytes + 40 * steps as u64 <= self.limits.bytes && graph.edges.try_reserve_exact(steps).is_ok(), no_memory);
        for (degrees, edges, accepting, enabled) in parts {
            for degree in degrees {
                graph.starts.push(graph.starts.last().expect("it begins with one") + degree as usize);
            }
            graph.targets.extend(edges.iter().map(|edge| edge.to));
            graph.edges.extend(edges);
            graph.accepting.extend(accepting);
            graph.enabled.extend(enabled);
        }
        Ok(graph)
    }
}
