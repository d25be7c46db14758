//! Questions about which states can still be reached from each state. They are not questions about single runs.
//!
//! - `--ef CONDITION`: from every reachable state, a state can be reached in which the condition holds (AG EF of CTL).
//! - `--livelock PROGRESS`: is there a part of the state space that is never left and has steps, but no state with progress?
//!
//! Both questions are about bottom components: strongly connected components that are never left. `--ef` holds if and only if
//! each of them has a state in which the condition holds. `--livelock` finds a bottom component that is not a deadlock and has no
//! state with progress. After the exploration is complete, states and steps are loaded into memory (`graph`), and one thread
//! decomposes them into components (Tarjan). Then a search over the table finds the nearest violating state.

use super::check::Verdict;
use super::graph::StateGraph;
use super::residue::{Residue, large_piece, path_to_marked};
use crate::exploration::{End, Exploration, Explorer, Found, Limits};
use crate::successors::Successors;
use anyhow::{Context, Result, ensure};
use rayon::prelude::*;
use std::sync::atomic::AtomicU16;
use std::time::{Duration, Instant};
use warpset::{Reference, Storage, VectorTable};
use warpset_model::checks::{Checks, Condition, Role, Violation};
use warpset_model::interpreter::Interpreter;
use warpset_model::ir::Expression;
use warpset_model::terms::Term;
use warpset_support::components::components;

/// A question about where states can lead.
#[derive(Clone, Debug)]
pub struct Possible {
    /// The role of the condition: `Possible` or `Progress`.
    pub role: Role,
    /// The condition as the user wrote it.
    pub text: String,
    /// Checks that consist of this condition only, for reports. Explorations do not check them.
    pub checks: Checks,
}

/// A search that can answer such questions about its states.
pub trait Possibilities: Explorer {
    /// Answers the question after the exploration has ended.
    fn answer(&mut self, possible: &Possible, interpreter: &Interpreter, exploration: &Exploration, limits: Limits) -> Outcome;
}

/// The answer to a question.
pub struct Outcome {
    pub verdict: Verdict,
    /// The nearest state that violates the property, or in which the condition has a fault, with the path to it.
    pub found: Option<Lost>,
    /// Whether the condition has a fault in some state.
    pub has_fault: bool,
    /// Why the verdict or the path is missing.
    pub why: Option<anyhow::Error>,
    pub search: Duration,
}

type Lost = (Found, Vec<Vec<u32>>);

impl Possible {
    /// `role` must be `Possible` or `Progress`.
    pub fn new(role: Role, text: String, condition: Expression) -> Self {
        let checks = Checks { deadlocks: false, conditions: vec![Condition { role, text: text.clone(), must_hold: condition }] };
        Self { role, text, checks }
    }

    /// Answers the question after the exploration has ended.
    pub fn answer<S: Storage, X: Successors>(
        &self,
        table: &VectorTable<S>,
        source: &X,
        interpreter: &Interpreter,
        exploration: &Exploration,
        limits: Limits,
    ) -> Outcome {
        let start = Instant::now();
        let mut outcome = Outcome { verdict: Verdict::Unknown, found: None, has_fault: false, why: None, search: Duration::ZERO };
        if exploration.end == End::Complete {
            outcome.why = self.search(table, source, interpreter, limits, &mut outcome).err();
        }
        outcome.search = start.elapsed();
        outcome
    }

    /// Fills in the outcome. An error may occur after the verdict is known.
    fn search<S: Storage, X: Successors>(
        &self,
        table: &VectorTable<S>,
        source: &X,
        interpreter: &Interpreter,
        limits: Limits,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let graph = self.graph(table, source, interpreter, limits)?;
        let initial = interpreter.model().initial_state();
        if graph.values.contains(&None) {
            outcome.has_fault = true;
            let faulty = graph.members.iter().zip(&graph.values).filter(|(_, value)| value.is_none());
            let faulty: Vec<Reference> = faulty.map(|(state, _)| *state).collect();
            drop(graph);
            let condition = std::slice::from_ref(&self.checks.conditions[0].must_hold);
            outcome.found = Some(path_to_fault(table, source, interpreter, limits, &faulty, condition)?);
            return Ok(());
        }
        let marks = marks(table);
        let component = components(graph.members.len(), |state| graph.successors(state));
        let count = component.iter().max().map_or(0, |most| *most as usize + 1);
        let (mut holds, mut has_step, mut is_left) = (vec![false; count], vec![false; count], vec![false; count]);
        let mut by_component: Vec<u32> = (0..graph.members.len() as u32).collect();
        by_component.sort_unstable_by_key(|state| component[*state as usize]);
        // A component has a higher number than the components to which it leads, so these come first.
        for state in by_component {
            let of = component[state as usize] as usize;
            holds[of] |= graph.values[state as usize] == Some(true);
            for next in graph.successors(state as usize) {
                let to = component[*next as usize] as usize;
                has_step[of] |= to == of;
                is_left[of] |= to != of;
                holds[of] |= to != of && self.role == Role::Possible && holds[to];
            }
        }
        let is_bad = |of: usize| !holds[of] && (self.role == Role::Possible || (has_step[of] && !is_left[of]));
        let bad = (0..graph.members.len()).filter(|state| is_bad(component[*state] as usize));
        if bad.map(|state| marks.set_on_cycle(graph.members[state])).count() == 0 {
            outcome.verdict = Verdict::Holds;
            return Ok(());
        }
        outcome.verdict = Verdict::Violated;
        drop(graph);
        let (states, _) = path_to_marked(table, source, limits, &initial, &marks, |all| Ok(all[0]))?;
        outcome.found = Some(lost(Violation::Condition(0), states));
        Ok(())
    }
    /// Loads all states and steps, with the value of the condition in each state; the value is `None` if the condition has a
    /// fault there.
    fn graph<S: Storage, X: Successors>(
        &self,
        table: &VectorTable<S>,
        source: &X,
        interpreter: &Interpreter,
        limits: Limits,
    ) -> Result<StateGraph<Option<bool>>> {
        let model = interpreter.model();
        let condition = Term::of(&self.checks.conditions[0].must_hold, model);
        let value =
            |state: &[u32], to: &mut Vec<Option<bool>>| to.push(condition.value(model, state).ok().map(|value| value != 0));
        let graph = StateGraph::load(table, source, &model.initial_state(), limits, 1, value)?;
        ensure!(graph.is_closed(), "a successor is not stored: please report this as a bug");
        Ok(graph)
    }
}

/// Whether each transition of a net can fire again, whatever has happened before. This holds if each component that is never left
/// enables it somewhere. All states must be in the table.
pub fn is_live<S: Storage, X: Successors>(
    table: &VectorTable<S>,
    source: &X,
    interpreter: &Interpreter,
    limits: Limits,
) -> Result<bool> {
    let firings = interpreter.firings().context("only a net is live")?;
    let everything = Possible::new(Role::Possible, String::new(), Expression::Constant(1));
    let graph = everything.graph(table, source, interpreter, limits)?;
    let component = components(graph.members.len(), |state| graph.successors(state));
    let count = component.iter().max().map_or(0, |most| *most as usize + 1);
    let mut is_left = vec![false; count];
    for state in 0..graph.members.len() {
        let of = component[state];
        is_left[of as usize] |= graph.successors(state).iter().any(|next| component[*next as usize] != of);
    }
    let mut never_left: Vec<u32> =
        (0..graph.members.len() as u32).filter(|state| !is_left[component[*state as usize] as usize]).collect();
    never_left.sort_unstable_by_key(|state| component[*state as usize]);
    for states in never_left.chunk_by(|one, other| component[*one as usize] == component[*other as usize]) {
        let mut is_enabled = vec![false; firings.of_transition.len()];
        for states in states.chunks(large_piece(table)) {
            if let Some(stop) = (limits.stop)() {
                return Err(stop.error("while it was looked for transitions that are not live").into());
            }
            let references: Vec<Reference> = states.iter().map(|state| graph.members[*state as usize]).collect();
            for state in table.get_many(&references)?.chunks_exact(table.width()) {
                let enabled = firings.enabled(state, |firing| {
                    is_enabled[firing.transition] = true;
                    Ok::<(), ()>(())
                });
                debug_assert!(enabled.is_ok(), "nothing ends it");
            }
        }
        if is_enabled.contains(&false) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Marks of no state.
fn marks<S: Storage>(table: &VectorTable<S>) -> Residue {
    let flags = (0..table.slots()).into_par_iter().map(|_| AtomicU16::new(0)).collect();
    Residue { flags, members: Vec::new(), inside: 0, accepting: 0, passes: 0, end: None }
}

/// A shortest path to one of these states, in which one of these conditions has a fault.
pub fn path_to_fault<S: Storage, X: Successors>(
    table: &VectorTable<S>,
    source: &X,
    interpreter: &Interpreter,
    limits: Limits,
    faulty: &[Reference],
    conditions: &[Expression],
) -> Result<Lost> {
    let marks = marks(table);
    faulty.iter().for_each(|state| marks.set_on_cycle(*state));
    let initial = interpreter.model().initial_state();
    let (states, _) =
        path_to_marked(table, source, limits, &initial, &marks, |all| Ok(all[0])).context("the condition has a fault")?;
    let fault = conditions.iter().find_map(|condition| interpreter.value(condition, &states[states.len() - 1]).err());
    let fault = fault.context("a fault of the condition cannot be repeated: please report this as a bug")?;
    Ok(lost(Violation::Fault(fault), states))
}

fn lost(violation: Violation, states: Vec<Vec<u32>>) -> Lost {
    (Found { violation, state: states[states.len() - 1].clone(), level: states.len() as u64 - 1 }, states)
}
