//! Stubborn sets: the actions to take in a state so that the search still finds every deadlock, or a way to the goal.
//!
//! A set of actions is *closed* in a state if it contains
//!
//! - for each of its enabled actions, all actions that do not accord with it;
//! - for each of its disabled actions, all enablers of one of its tests that does not hold.
//!
//! Consider a path from the state, and the first action on it that belongs to a closed set. This action is already enabled in the
//! state: otherwise one of its enablers, which also belong to the set, would come before it on the path. The action accords with
//! all actions before it on the path. So it can be moved to the front of the path, and the path still leads to the same state in
//! as many steps.
//!
//! - Deadlocks: the set must be closed, and have an enabled action if the state has one. A path to a deadlock contains an action
//!   of the set, because an enabled action of the set stays enabled until an action of the set is taken.
//! - Goals: the set must be closed and contain the enablers of an unmet part of the goal. A path to the goal contains one of
//!   these enablers. If no action of the set is enabled, the goal cannot be reached, and no action needs to be taken.
//!
//! By induction over the length of the path, breadth-first search over the chosen actions finds each deadlock state, or the goal,
//! at its depth in the whole graph. No proviso against ignored actions is needed. (Valmari 1990; Schmidt 1999; Laarman, Pater,
//! van de Pol and Weber 2013.)
//!
//! The choice depends only on the state, so every engine and every search takes the same steps.

use super::actions::{Test, Tests};
use super::dependencies::Dependencies;
use super::knowledge::Knowledge;
use super::nets;
use crate::checks::Checks;
use crate::interpreter::{Interpreter, Scratch as StepScratch, Step};
use crate::ir::expression::{Binary, Unary};
use crate::ir::network::Rules;
use crate::ir::{Expression, Model};
use crate::terms::Term;
use anyhow::{Result, bail};
use fixedbitset::FixedBitSet;

/// How sets are chosen. The answers are right for any choice; docs/reductions.md has figures for several choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heuristics {
    /// Maximum number of enabled actions, or of unmet parts of a goal, from which a set is tried.
    pub most_seeds: usize,
    /// Cost of an enabled action that a test's enablers add to a set; a disabled action costs 1. With cost 0, the first test that
    /// fails is used, whatever its enablers add.
    pub cost_of_enabled: usize,
}

impl Default for Heuristics {
    fn default() -> Self {
        Self { most_seeds: 8, cost_of_enabled: 16 }
    }
}

/// Number of states in the trial before a reduced search. The trial consists of walks of `WALK` steps.
pub const TRIAL: usize = 2_000;
const WALK: usize = 200;

/// A reduction pays if the trial leaves out at least one step in this many. Choosing the steps of a state takes as much time as
/// several steps.
pub const STEPS_FOR_ONE: usize = 10;

/// The trial ends after a walk if it has left out at least one step in this many.
const CLEARLY: usize = 5;

/// The trial ends after this number of states if it has left out no step at all.
const VAIN: usize = 2 * WALK;

/// The questions that a reduced search must still answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    pub deadlocks: bool,
    /// Whether conditions are checked.
    pub goals: bool,
}

/// A goal, split into parts.
#[derive(Clone, Debug)]
pub enum Goal {
    All(Vec<Goal>),
    Any(Vec<Goal>),
    /// A test, by its number.
    Test(usize),
    Constant(bool),
}

/// Chooses the actions to take.
#[derive(Clone, Debug)]
pub struct Stubborn<'m> {
    model: &'m Model,
    pub dependencies: Dependencies,
    terms: Vec<Option<Term>>,
    pub keeps_deadlocks: bool,
    /// The goal that must stay reachable, if there is one.
    pub goal: Option<Goal>,
    pub heuristics: Heuristics,
}

impl Goal {
    /// Returns the parts of a conjunction (if `all`) or of a disjunction, in order. A goal of another kind is its only part.
    pub fn parts(&self, all: bool) -> Vec<&Self> {
        match self {
            Self::All(parts) if all => parts.iter().flat_map(|part| part.parts(all)).collect(),
            Self::Any(parts) if !all => parts.iter().flat_map(|part| part.parts(all)).collect(),
            _ => vec![self],
        }
    }
}

/// Reusable memory of a thread.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    enabled: FixedBitSet,
    set: FixedBitSet,
    best: FixedBitSet,
    waiting: FixedBitSet,
    /// Known values of tests in the current state.
    values: Vec<Option<Value>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Holds,
    Fails,
    Fault,
}

impl<'m> Stubborn<'m> {
    /// Computes the data for choices. A goal is to violate one of the conditions of `checks`.
    ///
    /// # Errors
    ///
    /// The model cannot be reduced; the error says why.
    pub fn of(model: &'m Model, checks: &Checks, kept: Kept) -> Result<Self> {
        Self::knowing(Knowledge::Values, model, checks, kept)
    }

    /// As [`Stubborn::of`], with dependencies that use the given knowledge of values.
    ///
    /// # Errors
    ///
    /// The model cannot be reduced; the error says why.
    pub fn knowing(knowledge: Knowledge, model: &'m Model, checks: &Checks, kept: Kept) -> Result<Self> {
        if model.property.is_some() {
            bail!("it has a property of runs, and a reduction would lose runs that violate it");
        }
        let mut tests = Tests::default();
        let goal = kept.goals.then(|| {
            let violated = checks.conditions.iter().map(|condition| goal(model, &condition.must_hold, false, &mut tests));
            let mut violated: Vec<Goal> = violated.collect();
            // For one goal, each of its unmet parts is tried. For several goals, only the smallest part of each is tried.
            if violated.len() == 1 { violated.remove(0) } else { Goal::Any(violated) }
        });
        Ok(Self::with(model, Dependencies::knowing(knowledge, model, tests, false)?, kept, goal))
    }

    fn with(model: &'m Model, dependencies: Dependencies, kept: Kept, goal: Option<Goal>) -> Self {
        let terms = dependencies.tests.iter().map(|test| term_of(test, model)).collect();
        Self { model, dependencies, terms, keeps_deadlocks: kept.deadlocks, goal, heuristics: Heuristics::default() }
    }

    /// Chooses actions in a state. `steps` are all steps of the state. Returns the chosen set; steps of other actions need not be
    /// taken.
    pub fn choose<'s>(&self, state: &[u32], steps: &[Step], scratch: &'s mut Scratch) -> &'s FixedBitSet {
        let count = self.dependencies.actions.all.len();
        let Scratch { enabled, set, best, waiting, values } = scratch;
        for bits in [&mut *enabled, &mut *set, &mut *best, &mut *waiting] {
            bits.grow(count);
            bits.clear();
        }
        values.clear();
        values.resize(self.terms.len(), None);
        steps.iter().for_each(|step| enabled.insert(self.dependencies.actions.of_step(*step)));
        let mut choice = Choice { of: self, state, enabled, values, waiting };
        // A set that contains all enabled actions leaves nothing out.
        let all = choice.enabled.count_ones(..);
        let mut fewest = all;
        let seeds: Vec<FixedBitSet> = match &self.goal {
            Some(goal) => choice.seeds(goal),
            None => {
                let each = choice.enabled.ones().take(self.heuristics.most_seeds);
                each.map(|action| FixedBitSet::from_iter([action])).collect()
            }
        };
        for seed in seeds {
            set.clear();
            let tried = if self.goal.is_none() { seed.ones().next().unwrap_or(0) } else { 0 };
            if choice.close(seed.ones(), set, fewest, tried) {
                if self.keeps_deadlocks && self.goal.is_some() && set.is_disjoint(choice.enabled) {
                    // For the goal, no action needs to be taken here. But a deadlock may lie beyond, so some action must be.
                    let first = choice.enabled.ones().next();
                    if !choice.close(first.into_iter(), set, fewest, 0) {
                        continue;
                    }
                }
                fewest = set.intersection_count(choice.enabled);
                best.clone_from(set);
                if fewest <= usize::from(self.goal.is_none() || self.keeps_deadlocks) {
                    break;
                }
            }
        }
        if fewest == all {
            best.clone_from(enabled);
        }
        best
    }

    /// Whether the reduction leaves out enough steps in the states of some walks. The walks are the same each time, so the answer
    /// depends only on the model and the question.
    ///
    /// The first states of a search would be a worse sample. For BEEM's at.4, 3.5 % of the steps are left out in the first 2,000
    /// states, 15 % in states of walks, and the reduced search has 48 % of the states.
    pub fn saves(&self, interpreter: &Interpreter) -> bool {
        let (mut all, mut left_out, mut random) = (0, 0, 1u64);
        let (mut state, mut steps) = (self.model.initial_state(), Vec::new());
        let (mut of_steps, mut scratch) = (StepScratch::default(), Scratch::default());
        for number in 1..=TRIAL {
            steps.clear();
            let found = interpreter.steps(&state, &mut of_steps, |step, successor| steps.push((step, successor.to_vec())));
            let only: Vec<Step> = steps.iter().map(|(step, _)| *step).collect();
            if found.is_ok() {
                let chosen = self.choose(&state, &only, &mut scratch);
                all += only.len();
                left_out += only.iter().filter(|step| !chosen.contains(self.dependencies.actions.of_step(**step))).count();
            }
            let is_end = found.is_err() || steps.is_empty();
            // The multiplier and the increment are Knuth's. The upper half of the number selects the step.
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state = match number % WALK == 0 || is_end {
                true => self.model.initial_state(),
                false => steps.swap_remove((random >> 33) as usize % steps.len()).1,
            };
            let is_clear = number % WALK == 0 && CLEARLY * left_out >= all && left_out > 0;
            if is_clear || (number == VAIN && left_out == 0) {
                break;
            }
        }
        left_out > 0 && STEPS_FOR_ONE * left_out >= all
    }
}

/// The choice of actions in one state.
struct Choice<'c, 'm> {
    of: &'c Stubborn<'m>,
    state: &'c [u32],
    enabled: &'c FixedBitSet,
    values: &'c mut Vec<Option<Value>>,
    waiting: &'c mut FixedBitSet,
}

impl Choice<'_, '_> {
    /// Adds actions to the set and closes it. Returns false if the set gets `fewest` enabled actions or more. Also returns false
    /// if the set gets an enabled action below `tried`: a set that began with that action was tried before, and this one would
    /// hardly be smaller.
    fn close(&mut self, seeds: impl Iterator<Item = usize>, set: &mut FixedBitSet, fewest: usize, tried: usize) -> bool {
        self.waiting.clear();
        let mut enabled_in_set = set.intersection_count(self.enabled);
        let mut is_tried = false;
        for action in seeds.filter(|action| !set.put(*action)).collect::<Vec<_>>() {
            enabled_in_set += usize::from(self.enabled.contains(action));
            self.waiting.insert(action);
        }
        while let Some(action) = self.next_waiting() {
            if enabled_in_set >= fewest || is_tried {
                return false;
            }
            let needed = match self.enabled.contains(action) {
                true => &self.of.dependencies.conflicts[action],
                false => match self.cheapest(action, set) {
                    Some(test) => &self.of.dependencies.enablers[test],
                    // No test of the action fails although it is disabled. This happens only after a fault, and then any action
                    // may be needed.
                    None => return false,
                },
            };
            let words = set.as_mut_slice().iter_mut().zip(needed.as_slice()).zip(self.enabled.as_slice());
            for (at, (((set, needed), enabled), waiting)) in words.zip(self.waiting.as_mut_slice()).enumerate() {
                let new = needed & !*set;
                *set |= new;
                *waiting |= new;
                let enabled = new & enabled;
                enabled_in_set += enabled.count_ones() as usize;
                is_tried |= enabled != 0 && at * usize::BITS as usize + (enabled.trailing_zeros() as usize) < tried;
            }
        }
        enabled_in_set < fewest && !is_tried
    }

    /// Removes one of the waiting actions: the first enabled one, which leaves no choice, or else the first one.
    fn next_waiting(&mut self) -> Option<usize> {
        let action = self.waiting.intersection(self.enabled).next().or_else(|| self.waiting.ones().next())?;
        self.waiting.remove(action);
        Some(action)
    }

    /// Returns the test of a disabled action that does not hold and whose enablers cost least.
    fn cheapest(&mut self, action: usize, set: &FixedBitSet) -> Option<usize> {
        let mut best: Option<(usize, usize)> = None;
        let cost_of_enabled = self.of.heuristics.cost_of_enabled;
        for &test in &self.of.dependencies.actions.tests[action] {
            if self.value(test) != Value::Fails {
                continue;
            }
            if cost_of_enabled == 0 {
                return Some(test);
            }
            let words = self.of.dependencies.enablers[test].as_slice().iter().zip(set.as_slice()).zip(self.enabled.as_slice());
            let cost_of = |((enablers, set), enabled): ((&usize, &usize), &usize)| {
                let new = enablers & !set;
                new.count_ones() as usize + (cost_of_enabled - 1) * (new & enabled).count_ones() as usize
            };
            let cost: usize = words.map(cost_of).sum();
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, test));
            }
            if cost == 0 {
                break;
            }
        }
        best.map(|(_, test)| test)
    }

    fn value(&mut self, test: usize) -> Value {
        if let Some(value) = self.values[test] {
            return value;
        }
        let of = self.of;
        let value = evaluate(of.model, &of.dependencies.tests[test], of.terms[test].as_ref(), self.state);
        self.values[test] = Some(value);
        value
    }

    /// Returns sets of actions to begin with: each path to the goal contains an action of each set. Empty if the goal is met.
    fn seeds(&mut self, goal: &Goal) -> Vec<FixedBitSet> {
        match goal {
            Goal::Constant(true) => Vec::new(),
            Goal::Constant(false) => vec![FixedBitSet::new()],
            Goal::Test(test) => match self.value(*test) {
                Value::Fails => vec![self.of.dependencies.enablers[*test].clone()],
                // After a fault nothing is certain about the test.
                Value::Holds | Value::Fault => Vec::new(),
            },
            Goal::All(parts) => {
                let mut seeds: Vec<FixedBitSet> = parts.iter().flat_map(|part| self.seeds(part)).collect();
                seeds.sort_by_key(|seed| seed.count_ones(..));
                seeds.truncate(self.of.heuristics.most_seeds);
                seeds
            }
            Goal::Any(parts) => {
                let mut all = FixedBitSet::new();
                for part in parts {
                    let mut seeds = self.seeds(part);
                    if seeds.is_empty() {
                        return Vec::new();
                    }
                    seeds.sort_by_key(|seed| seed.count_ones(..));
                    all.grow(seeds[0].len());
                    all.union_with(&seeds[0]);
                }
                vec![all]
            }
        }
    }
}

/// Evaluates a test in a state. `term` is the expression of the test, if it has one.
pub(super) fn evaluate(model: &Model, test: &Test, term: Option<&Term>, state: &[u32]) -> Value {
    let holds = match (term, test, &model.network) {
        (Some(term), ..) => term.value(model, state).map(|value| value != 0).ok(),
        (None, Test::Ready { component, label, is_ready }, Some(network)) => {
            let of = &network.components[*component];
            let state = network.state_of(of, &model.layout, state);
            Some(of.table.targets(state, *label).is_empty() != *is_ready)
        }
        (None, Test::Tokens { place, least, is_reached }, _) => {
            model.net.as_ref().map(|net| (net.tokens(&model.layout, state, *place) >= *least) == *is_reached)
        }
        (None, ..) => None,
    };
    match holds {
        Some(true) => Value::Holds,
        Some(false) => Value::Fails,
        None => Value::Fault,
    }
}

/// Returns the expression of a test in a form that is ready to be evaluated.
pub(super) fn term_of(test: &Test, model: &Model) -> Option<Term> {
    match test {
        Test::Holds(expression) => Some(Term::of(expression, model)),
        Test::Ready { .. } | Test::Tokens { .. } => None,
    }
}

/// Returns the goal that the expression is not 0 or, if `truth` is false, that it is 0.
fn goal(model: &Model, expression: &Expression, truth: bool, tests: &mut Tests) -> Goal {
    let mut both = |operands: &[Expression; 2], truths: [bool; 2]| {
        let [left, right] = operands;
        vec![goal(model, left, truths[0], tests), goal(model, right, truths[1], tests)]
    };
    match (expression, truth) {
        (Expression::Constant(value), _) => Goal::Constant((*value != 0) == truth),
        (Expression::Unary { operator: Unary::Not, operand }, _) => goal(model, operand, !truth, tests),
        (Expression::Binary { operator: Binary::And, operands, .. }, true) => Goal::All(both(operands, [true; 2])),
        (Expression::Binary { operator: Binary::And, operands, .. }, false) => Goal::Any(both(operands, [false; 2])),
        (Expression::Binary { operator: Binary::Or, operands, .. }, true) => Goal::Any(both(operands, [true; 2])),
        (Expression::Binary { operator: Binary::Or, operands, .. }, false) => Goal::All(both(operands, [false; 2])),
        (Expression::Binary { operator: Binary::Imply, operands, .. }, true) => Goal::Any(both(operands, [false, true])),
        (Expression::Binary { operator: Binary::Imply, operands, .. }, false) => Goal::All(both(operands, [true, false])),
        (Expression::Enabled(label), _) => enabled(model, *label, truth, tests),
        (Expression::Binary { operator: operator @ (Binary::Equal | Binary::NotEqual), operands, .. }, _)
            if (*operator == Binary::Equal) == truth && model.net.is_some() =>
        {
            let halves = model.net.as_ref().and_then(|net| nets::halves(net, &operands[0], &operands[1]));
            match halves {
                Some(halves) => Goal::All(both(&halves, [true; 2])),
                None => Goal::Test(tests.number(test_of(expression, truth))),
            }
        }
        _ => Goal::Test(tests.number(test_of(expression, truth))),
    }
}

/// Returns the test that an expression is not 0 or, if `truth` is false, that it is 0.
fn test_of(expression: &Expression, truth: bool) -> Test {
    let expression = expression.clone();
    Test::Holds(if truth { expression } else { Expression::unary(Unary::Not, expression) })
}

/// Returns the goal that some rule with the label can take a step (for a net: that the transition is enabled), or the opposite if
/// `truth` is false.
fn enabled(model: &Model, label: usize, truth: bool, tests: &mut Tests) -> Goal {
    if let Some(net) = &model.net {
        let takes = net.transitions[label].takes.iter();
        let test = |(place, least): &(usize, u32)| {
            Goal::Test(tests.number(Test::Tokens { place: *place, least: *least, is_reached: truth }))
        };
        let parts = takes.map(test).collect();
        return if truth { Goal::All(parts) } else { Goal::Any(parts) };
    }
    let Some(Rules::Listed(listed)) = model.network.as_ref().map(|network| &network.rules) else {
        return Goal::Constant(!truth);
    };
    let of_label = listed.label_offsets[label] as usize..listed.label_offsets[label + 1] as usize;
    let rules = listed.of_labels[of_label].iter().map(|rule| {
        let parts = &listed.rules[*rule as usize].parts;
        let parts = parts.iter().map(|(component, label)| {
            Goal::Test(tests.number(Test::Ready { component: *component as usize, label: *label, is_ready: truth }))
        });
        if truth { Goal::All(parts.collect()) } else { Goal::Any(parts.collect()) }
    });
    let rules = rules.collect();
    if truth { Goal::Any(rules) } else { Goal::All(rules) }
}

#[cfg(test)]
mod tests {
    //! Keeps this promise of `examples/explore/docs/reductions.md`:
    //!
    //! - For a goal, the steps towards one unmet part of a conjunction and towards all parts of a disjunction are taken. A part
    //!   that is left out is missed.

    use super::*;
    use crate::checks::Role;
    use crate::dve::Dve;
    use crate::ir::Source;
    use crate::reduction::actions::conjuncts;
    use crate::reduction::brute_force::search;

    #[test]
    fn conjunctions_are_split() {
        let variable = Expression::Variable;
        let span = Default::default();
        let both =
            Expression::binary(Binary::And, variable(0), Expression::binary(Binary::And, variable(1), variable(2), span), span);
        assert_eq!(conjuncts(&both), [variable(0), variable(1), variable(2)]);
        let neither = Expression::unary(Unary::Not, Expression::binary(Binary::Or, variable(0), variable(1), span));
        assert_eq!(conjuncts(&neither), [0, 1].map(|of| Expression::unary(Unary::Not, variable(of))));
    }

    /// Four independent counters; two processes count the second one. Nothing changes `z`.
    const COUNTERS: &str = "byte a, b, c, d, z;
        process A { state s; init s; trans s -> s { guard a < 9; effect a = a + 1; }; }
        process B { state s; init s; trans s -> s { guard b < 9; effect b = b + 1; }; }
        process B2 { state s; init s; trans s -> s { guard b < 9; effect b = b + 1; }; }
        process C { state s; init s; trans s -> s { guard c < 9; effect c = c + 1; }; }
        process D { state s; init s; trans s -> s { guard d < 9; effect d = d + 1; }; }
        system async;";

    fn counters() -> Dve {
        Dve::read(Source { name: "counters".into(), text: COUNTERS.into() }).unwrap()
    }

    fn asking(dve: &Dve, goal: &str) -> Checks {
        let mut checks = Checks::default();
        let source = Source { name: "goal".into(), text: goal.into() };
        checks.add(Role::Goal, goal.into(), dve.condition(&source).unwrap().0);
        checks
    }

    /// For a conjunction, the steps towards the unmet part with the fewest steps are chosen. For a disjunction, the steps towards
    /// all parts are chosen.
    #[test]
    fn steps_towards_an_unmet_part_are_chosen() {
        let dve = counters();
        let kept = Kept { deadlocks: false, goals: true };
        let interpreter = Interpreter::new(&dve.model);
        for (goal, values, expected) in [
            ("a == 3 and b == 5", [0, 0, 0], "A"),
            ("b == 5 and a == 3", [0, 0, 0], "A"),
            // The first part is already met.
            ("a == 3 and b == 5", [3, 0, 0], "B B2"),
            ("a == 3 and b == 5 and c == 1", [3, 0, 0], "C"),
            ("a == 3 or c == 5", [0, 0, 0], "A C"),
            ("a == 3 or (b == 1 or c == 5)", [0, 0, 0], "A B B2 C"),
            ("(a == 3 or c == 5) and d == 1", [0, 0, 0], "D"),
            ("(a == 3 or c == 5) and (b == 1 or c == 1 or d == 1)", [0, 0, 0], "A C"),
            ("(a == 3 or c == 5) and (b == 1 or d == 1)", [3, 0, 0], "B B2 D"),
            ("not (a < 3 or c < 2)", [0, 0, 0], "A"),
            ("not (a < 3 or c < 2)", [3, 0, 0], "C"),
            ("not (a < 3 and c < 2)", [0, 0, 0], "A C"),
            // For a disjunction, the steps towards one unmet part of each conjunction in it are chosen.
            ("(a == 3 and b == 5) or (c == 1 and b == 1)", [0, 0, 0], "A C"),
            ("(a == 3 and b == 5) or (c == 1 and d == 1)", [3, 0, 1], "B B2 D"),
            // The second part can never become true, so no step is needed for the first.
            ("a == 3 and z == 1", [0, 0, 0], ""),
            ("a == 3 or z == 1", [0, 0, 0], "A"),
        ] {
            let checks = asking(&dve, goal);
            let stubborn = Stubborn::of(&dve.model, &checks, kept).unwrap();
            let mut state = dve.model.initial_state();
            for (variable, value) in values.into_iter().enumerate() {
                let field = dve.model.layout.variables[variable].unwrap();
                field.set(&mut state, 0, value);
            }
            let mut steps = Vec::new();
            interpreter.steps(&state, &mut StepScratch::default(), |step, _| steps.push(step)).unwrap();
            assert_eq!(steps.len(), 5, "all steps are enabled");
            let mut scratch = Scratch::default();
            let chosen = stubborn.choose(&state, &steps, &mut scratch);
            let of = |step: &&Step| chosen.contains(stubborn.dependencies.actions.of_step(**step));
            let name = |step: &Step| match step {
                Step::Transition { id, .. } => dve.model.processes[dve.model.transitions[*id].process].name.clone(),
                _ => unreachable!("a model of processes"),
            };
            let names: Vec<String> = steps.iter().filter(of).map(name).collect();
            assert_eq!(names.join(" "), expected, "{goal} in {values:?}");
        }
    }

    /// A search that leaves out a part of a disjunction, or an enabler of a goal's part, misses the goal.
    #[test]
    fn parts_of_a_goal_that_are_left_out_are_missed() {
        let dve = counters();
        let kept = Kept { deadlocks: false, goals: true };
        let depth = |checks: &Checks, stubborn: Option<&Stubborn>| {
            search(&dve.model, checks, stubborn, 1_000_000).expect("no fault, and few states").first_violation
        };
        let checks = asking(&dve, "a == 3 or c == 1");
        let mut stubborn = Stubborn::of(&dve.model, &checks, kept).unwrap();
        assert_eq!([depth(&checks, None), depth(&checks, Some(&stubborn))], [Some(1); 2]);
        let Some(Goal::Any(mut parts)) = stubborn.goal.take() else { panic!("a disjunction") };
        parts.truncate(1);
        stubborn.goal = parts.pop();
        assert_eq!(depth(&checks, Some(&stubborn)), Some(3), "only steps for the first part are taken");
        let checks = asking(&dve, "c == 2 and b == 3");
        let right = Stubborn::of(&dve.model, &checks, kept).unwrap();
        assert_eq!([depth(&checks, None), depth(&checks, Some(&right))], [Some(5); 2]);
        let Some(Goal::All(parts)) = &right.goal else { panic!("a conjunction") };
        for part in parts {
            let Goal::Test(test) = part else { panic!("a test") };
            let mut wrong = right.clone();
            wrong.dependencies.enablers[*test].clear();
            assert_eq!(depth(&checks, Some(&wrong)), None, "no step is known to lead to a part");
        }
    }
}
