//! Dependencies of a model's actions, as bit matrices.
//!
//! Two matrices decide which steps may be left out:
//!
//! - *Conflicts*: actions a and b accord if, in every reachable state in which both are enabled, each stays enabled after the
//!   other, and both orders lead to the same state. The bit is set ("do not accord") unless the analysis proves that they accord.
//! - *Enablers* of a test: every action that may change the test from false to true in some reachable state. An action with a
//!   test that does not hold can be taken only after one of the test's enablers: they are a necessary enabling set.
//!
//! The analysis uses intervals (`ir::bounds`), narrowed by the tests of the actions in question. For example, `x := 1` cannot
//! make `x == 2` true, `x := x + 1` cannot make `x < 3` true, and two processes that set elements 1 and 2 of an array accord.
//! Where the analysis is imprecise, it sets a bit. This costs states but never makes a result wrong.

use super::actions::{Action, Actions, Test, Tests};
use super::effects::{Effect, Known, Runs};
use super::knowledge::Knowledge;
use super::nets::Arcs;
use super::rules;
use crate::ir::Model;
use crate::ir::Net;
use anyhow::Result;
use fixedbitset::FixedBitSet;
use std::fmt::Write;
use warpset_support::escaping;

/// The actions of a model and how they depend on each other.
#[derive(Clone, Debug)]
pub struct Dependencies {
    pub actions: Actions,
    pub tests: Vec<Test>,
    /// By action, the actions that do not accord with it.
    pub conflicts: Vec<FixedBitSet>,
    /// By test, the actions that may change it from false to true.
    pub enablers: Vec<FixedBitSet>,
    /// The reason for each bit, if the caller asked for reasons.
    pub reasons: Option<String>,
}

impl Dependencies {
    /// Computes the dependencies. `tests` are further tests whose enablers are needed; the tests of the model's actions are
    /// added. If `explains`, keeps the reason for each bit.
    ///
    /// # Errors
    ///
    /// The model is too large, or has no independent steps.
    pub fn of(model: &Model, tests: Tests, explains: bool) -> Result<Self> {
        Self::knowing(Knowledge::Values, model, tests, explains)
    }

    /// As [`Dependencies::of`], with the given knowledge of values.
    ///
    /// # Errors
    ///
    /// The model is too large, or has no independent steps.
    pub fn knowing(knowledge: Knowledge, model: &Model, mut tests: Tests, explains: bool) -> Result<Self> {
        let actions = Actions::of(model, &mut tests)?;
        if let Some(net) = &model.net {
            return Ok(of_net(knowledge, model, net, actions, tests.all, explains));
        }
        let (runs, reasons) = (Runs::of(model, knowledge), explains.then(String::new));
        let mut search = Search { runs, actions, tests: tests.all, enabled: Vec::new(), reasons };
        let count = search.actions.all.len();
        search.enabled = (0..count).map(|action| search.alone(action)).collect();
        let conflicts = search.conflicts();
        let enablers = (0..search.tests.len()).map(|test| search.enablers(test)).collect();
        let Search { actions, tests, reasons, .. } = search;
        Ok(Self { actions, tests, conflicts, enablers, reasons })
    }
}

/// Computes the dependencies of a net's transitions.
fn of_net(knowledge: Knowledge, model: &Model, net: &Net, actions: Actions, tests: Vec<Test>, explains: bool) -> Dependencies {
    let mut reasons = explains.then(String::new);
    let arcs = Arcs::of(net, knowledge);
    let name = |action| actions.describe(model, action);
    let conflicts = arcs.conflicts(|one, other, place| {
        if let Some(reasons) = &mut reasons {
            let place = escaping::line(&net.places[place].name);
            *reasons += &format!(
                "do not accord\t{}\t{}\tone may take tokens from {place} that the other needs\n",
                name(one),
                name(other)
            );
        }
    });
    let enablers: Vec<FixedBitSet> = tests.iter().map(|test| arcs.enablers(test)).collect();
    if let Some(reasons) = &mut reasons {
        for (test, enablers) in tests.iter().zip(&enablers) {
            for action in enablers.ones() {
                *reasons += &format!("may make true\t{}\t{}\n", name(action), describe_test(model, test));
            }
        }
    }
    Dependencies { actions, tests, conflicts, enablers, reasons }
}

/// An action by itself: what is known of the states that enable it, its effect in them, and the cells that its tests read.
struct Alone {
    known: Known,
    effect: Effect,
    tested: FixedBitSet,
}

struct Search<'m> {
    runs: Runs<'m>,
    actions: Actions,
    tests: Vec<Test>,
    /// By action, what is known of it; `None` if it is never enabled.
    enabled: Vec<Option<Alone>>,
    reasons: Option<String>,
}

impl Search<'_> {
    fn alone(&self, action: usize) -> Option<Alone> {
        let known = self.runs.enabled(&self.actions, &self.tests, &[action])?;
        let effect = self.runs.run(self.actions.all[action], known.clone());
        let mut tested = self.runs.cells.none();
        for test in &self.actions.tests[action] {
            self.read_by(*test, &known, &mut tested);
        }
        Some(Alone { known, effect, tested })
    }

    /// Adds the cells that a test reads.
    fn read_by(&self, test: usize, known: &Known, to: &mut FixedBitSet) {
        let model = self.runs.model;
        match &self.tests[test] {
            Test::Holds(expression) => self.runs.cells.read_by(model, expression, &known.facts, to),
            Test::Ready { component, .. } => {
                if let Some(network) = &model.network {
                    to.insert(self.runs.cells.of_component(network, *component));
                }
            }
            Test::Tokens { .. } => {}
        }
    }

    fn conflicts(&mut self) -> Vec<FixedBitSet> {
        let count = self.actions.all.len();
        let mut conflicts = vec![FixedBitSet::with_capacity(count); count];
        for one in 0..count {
            for other in 0..one {
                if let Some(reason) = self.conflict(one, other) {
                    conflicts[one].insert(other);
                    conflicts[other].insert(one);
                    self.explain("do not accord", one, &reason, Some(other));
                }
            }
        }
        conflicts
    }

    /// Returns a reason why two actions may not accord; `None` if they accord.
    fn conflict(&self, one: usize, other: usize) -> Option<Reason> {
        let (first, second) = (self.enabled[one].as_ref()?, self.enabled[other].as_ref()?);
        let touch = |first: &Alone, second: &Alone| {
            let writes = &first.effect.writes;
            !writes.is_disjoint(&second.tested)
                || !writes.is_disjoint(&second.effect.reads)
                || !writes.is_disjoint(&second.effect.writes)
        };
        if !touch(first, second) && !touch(second, first) {
            return None;
        }
        let (action, others) = (self.actions.all[one], self.actions.all[other]);
        if let (Action::Rule(rule), Action::Rule(other), Some(network)) = (action, others, &self.runs.model.network) {
            return rules::conflict(network, rule, other).map(Reason::Component);
        }
        // Facts about the states that enable both actions; `None` if no state does.
        let known = self.runs.enabled(&self.actions, &self.tests, &[one, other])?;
        let (effect, of_other) = (self.runs.run(action, known.clone()), self.runs.run(others, known.clone()));
        let disabled = |action: usize, effect: &Effect, other: usize| {
            self.actions.tests[other].iter().copied().find(|test| self.may_change(action, *test, false, &known, effect))
        };
        let disabled = disabled(one, &effect, other).or_else(|| disabled(other, &of_other, one));
        disabled.map(Reason::Disables).or_else(|| effect.order_matters(&of_other).map(Reason::Order))
    }

    /// Whether an action may change a test to `truth` in states for which `known` holds.
    fn may_change(&self, action: usize, test: usize, truth: bool, known: &Known, effect: &Effect) -> bool {
        let mut read = self.runs.cells.none();
        self.read_by(test, known, &mut read);
        if read.is_disjoint(&effect.writes) {
            return false;
        }
        let test = &self.tests[test];
        match self.actions.all[action] {
            Action::Rule(rule) => rules::may_change(self.runs.model, &self.runs.cells, rule, test, truth, known),
            Action::Transition { .. } | Action::Firing(_) => self.runs.may_change(test, truth, known, effect),
        }
    }

    fn enablers(&mut self, test: usize) -> FixedBitSet {
        let count = self.actions.all.len();
        let may_enable = |action: &usize| {
            let alone = self.enabled[*action].as_ref();
            alone.is_some_and(|alone| self.may_change(*action, test, true, &alone.known, &alone.effect))
        };
        let found: Vec<usize> = (0..count).filter(may_enable).collect();
        let mut enablers = FixedBitSet::with_capacity(count);
        for action in found {
            enablers.insert(action);
            self.explain("may make true", action, &Reason::Disables(test), None);
        }
        enablers
    }

    fn explain(&mut self, what: &str, action: usize, reason: &Reason, other: Option<usize>) {
        let Some(reasons) = &mut self.reasons else { return };
        let model = self.runs.model;
        let name = |action| self.actions.describe(model, action);
        let because = match reason {
            Reason::Disables(test) => describe_test(model, &self.tests[*test]),
            Reason::Order(cell) => format!("the order matters for {}", self.runs.cells.name(model, *cell)),
            Reason::Component(component) => {
                let network = model.network.as_ref();
                let variable = network.map(|network| network.components[*component].variable);
                format!("both move {}", variable.map_or_else(String::new, |variable| model.full_name(variable)))
            }
        };
        match other {
            Some(other) => {
                let because = if matches!(reason, Reason::Disables(_)) { format!("one may disable {because}") } else { because };
                writeln!(reasons, "{what}\t{}\t{}\t{because}", name(action), name(other))
            }
            None => writeln!(reasons, "{what}\t{}\t{because}", name(action)),
        }
        .expect("a string can be written to");
    }
}

/// Why a bit is set.
enum Reason {
    /// One of the actions may change this test.
    Disables(usize),
    /// The value of this cell depends on the order.
    Order(usize),
    /// Both actions move this component.
    Component(usize),
}

/// Describes a test in words.
pub fn describe_test(model: &Model, test: &Test) -> String {
    match test {
        Test::Holds(expression) => super::actions::text(model, expression),
        Test::Tokens { place, least, is_reached } => {
            let name = model.net.as_ref().map_or("", |net| &net.places[*place].name);
            let name = escaping::line(name);
            format!("tokens({name}) {} {least}", if *is_reached { ">=" } else { "<" })
        }
        Test::Ready { component, label, is_ready } => {
            let network = model.network.as_ref();
            let name = network.map_or_else(String::new, |network| model.full_name(network.components[*component].variable));
            let ready = if *is_ready { "has" } else { "has no" };
            format!("{name} {ready} transition with its label number {label}")
        }
    }
}
