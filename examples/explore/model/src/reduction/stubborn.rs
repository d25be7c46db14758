//! Stubborn sets: the actions to take in a state, so that every deadlock, or a way to the goal, is still found.
//!
//! A set of actions is *closed* in a state if it contains
//!
//! - for each of its enabled actions, all actions that do not accord with it;
//! - for each of its disabled actions, all enablers of one of its tests that does not hold.
//!
//! Take a path from the state, and the first action of a closed set on it. The action is enabled already in the state: if it were
//! not, the path would contain one of the enablers before it, which are in the set, too. It accords with all actions before it,
//! so it can be moved to the front of the path, which leads to the same state in as many steps.
//!
//! - Deadlocks: the set must be closed and have an enabled action, if there is one. A path to a deadlock contains an action of
//!   the set, because an enabled action of the set stays enabled as long as none of the set is taken.
//! - Goals: the set must be closed and contain the enablers of an unmet part of the goal. A path to the goal contains one of
//!   them. If no action of the set is enabled, the goal cannot be reached, and nothing needs to be taken.
//!
//! By induction over the length of the path, breadth-first search over the chosen actions finds each deadlock state, or the goal,
//! at its depth in the whole graph. No proviso against ignored actions is needed. (Valmari 1990; Schmidt 1999; Laarman, Pater,
//! van de Pol and Weber 2013.)
//!
//! The choice is a function of the state alone, so every engine and every search takes the same steps.

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

/// How sets are chosen. Any choice keeps what is asked; docs/reductions.md has figures of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heuristics {
    /// Most enabled actions, and most unmet parts of a goal, from which sets are tried.
    pub most_seeds: usize,
    /// Cost of an enabled action that a test's enablers add to a set; a disabled one costs 1. 0: the first test that fails is
    /// taken, whatever it adds.
    pub cost_of_enabled: usize,
}

impl Default for Heuristics {
    fn default() -> Self {
        Self { most_seeds: 8, cost_of_enabled: 16 }
    }
}

/// States of a trial before a reduced search, in walks of `WALK` steps.
pub const TRIAL: usize = 2_000;
const WALK: usize = 200;

/// A reduction pays if the trial leaves out one step in this many. A choice takes as much time as several steps.
pub const STEPS_FOR_ONE: usize = 10;

/// The trial ends after a walk if it has left out one step in this many.
const CLEARLY: usize = 5;

/// The trial ends after this number of states if nothing could be left out in any of them.
const VAIN: usize = 2 * WALK;

/// The questions that a reduced search still answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    pub deadlocks: bool,
    /// Conditions that are checked.
    pub goals: bool,
}

/// A goal in parts.
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
    /// The goal whose reachability is kept, if there is one.
    pub goal: Option<Goal>,
    pub heuristics: Heuristics,
}

impl Goal {
    /// The parts of a conjunction (`all`) or of a disjunction, in order; a goal of another kind is its only part.
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
    /// Values of tests in the current state, as far as they are known.
    values: Vec<Option<Value>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Holds,
    Fails,
    Fault,
}

impl<'m> Stubborn<'m> {
    /// Computes what choices need. Conditions of `checks` are goals that violate them.
    ///
    /// # Errors
    ///
    /// The model cannot be reduced; the error says why.
    pub fn of(model: &'m Model, checks: &Checks, kept: Kept) -> Result<Self> {
        Self::knowing(Knowledge::Values, model, checks, kept)
    }

    /// As [`Stubborn::of`], with dependencies that rest on this knowledge.
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
            // The unmet parts of one goal are tried; of several goals, only the smallest part of each.
            if violated.len() == 1 { violated.remove(0) } else { Goal::Any(violated) }
        });
        Ok(Self::with(model, Dependencies::knowing(knowledge, model, tests, false)?, kept, goal))
    }

    fn with(model: &'m Model, dependencies: Dependencies, kept: Kept, goal: Option<Goal>) -> Self {
        let terms = dependencies.tests.iter().map(|test| term_of(test, model)).collect();
        Self { model, dependencies, terms, keeps_deadlocks: kept.deadlocks, goal, heuristics: Heuristics::default() }
    }

    /// Chooses actions in a state with these steps. Returns the set; steps of other actions need not be taken.
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
        // A set with all enabled actions leaves nothing out.
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
                    // The goal needs nothing here, but a deadlock may lie beyond.
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

    /// Whether enough steps are left out in the states of some walks. The walks are the same each time, so the answer depends on
    /// the model and the question alone.
    ///
    /// The first states of a search in their order tell less: of the first 2,000 states of BEEM's at.4, 3.5 % of the steps are
    /// left out, of walks 15 %, and the reduced search has 48 % of the states.
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
            // The multiplier and the increment are Knuth's; the upper half of the number is used.
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

/// A choice in one state.
struct Choice<'c, 'm> {
    of: &'c Stubborn<'m>,
    state: &'c [u32],
    enabled: &'c FixedBitSet,
    values: &'c mut Vec<Option<Value>>,
    waiting: &'c mut FixedBitSet,
}

impl Choice<'_, '_> {
    /// Closes the set after adding actions. Returns false if it gets `fewest` enabled actions or more. Returns false, too, if it
    /// gets an enabled action before `tried`, from which a set was tried: with that action it would hardly be smaller.
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
                    // No test of it fails: that is known only after a fault. Everything may be needed then.
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

    /// Removes one of the waiting actions: the first one that is enabled, which has no choice, or else the first one.
    fn next_waiting(&mut self) -> Option<usize> {
        let action = self.waiting.intersection(self.enabled).next().or_else(|| self.waiting.ones().next())?;
        self.waiting.remove(action);
        Some(action)
    }

    /// The test of a disabled action that does not hold and whose enablers cost least.
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

    /// Sets of actions to choose from: each path to the goal contains an action of each set. Empty if the goal is met.
    fn seeds(&mut self, goal: &Goal) -> Vec<FixedBitSet> {
        match goal {
            Goal::Constant(true) => Vec::new(),
            Goal::Constant(false) => vec![FixedBitSet::new()],
            Goal::Test(test) => match self.value(*test) {
                Value::Fails => vec![self.of.dependencies.enablers[*test].clone()],
                // After a fault nothing is certain of it.
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

/// The value of a test in a state. `term`: its expression, if it has one.
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

/// The expression of a test, ready to be evaluated.
pub(super) fn term_of(test: &Test, model: &Model) -> Option<Term> {
    match test {
        Test::Holds(expression) => Some(Term::of(expression, model)),
        Test::Ready { .. } | Test::Tokens { .. } => None,
    }
}

/// The goal that the expression is not 0 or, with `truth` false, that it is 0.
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

/// The test that an expression is not 0 or, with `truth` false, that it is 0.
fn test_of(expression: &Expression, truth: bool) -> Test {
    let expression = expression.clone();
    Test::Holds(if truth { expression } else { Expression::unary(Unary::Not, expression) })
}

/// The goal that some rule with the label has a step, or that none has; of a net, that a transition is enabled, or is not.
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

    /// Steps for one unmet part of a conjunction are taken, for the part with the fewest. Of a disjunction, the steps
    /// for all parts are.
    #[test]
    fn steps_towards_an_unmet_part_are_chosen() {
        let dve = counters();
        let kept = Kept { deadlocks: false, goals: true };
        let interpreter = Interpreter::new(&dve.model);
        for (goal, values, expected) in [
            ("a == 3 and b == 5", [0, 0, 0], "A"),
            ("b == 5 and a == 3", [0, 0, 0], "A"),
            // The first part is met.
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
            // One unmet part of each conjunction in a disjunction.
            ("(a == 3 and b == 5) or (c == 1 and b == 1)", [0, 0, 0], "A C"),
            ("(a == 3 and b == 5) or (c == 1 and d == 1)", [3, 0, 1], "B B2 D"),
            // The second part never becomes true, whatever is done for the first.
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
