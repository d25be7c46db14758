//! Runs actions on intervals instead of values, to find out what they may read and write and how they may change a test.

use super::actions::{Action, Actions, Test};
use super::knowledge::Knowledge;
use crate::ir::bounds::Intervals;
use crate::ir::expression::{Binary, Unary};
use crate::ir::facts::{Facts, wrapped};
use crate::ir::ids::RuleId;
use crate::ir::network::{Network, Rules};
use crate::ir::range::{Range, unbounded};
use crate::ir::{Action as Partner, Expression, LocationId, Model, ProcessId, StoreTarget, Type, VariableId};
use fixedbitset::FixedBitSet;

/// Numbers of the parts of a state ("cells"): the location of each process, then each element of each variable.
pub struct Cells {
    /// By variable, its first cell.
    variables: Vec<usize>,
    count: usize,
}

/// Knowledge about a state: facts about its values, and the locations of some processes.
#[derive(Clone, Debug)]
pub struct Known {
    pub facts: Facts,
    at: Vec<(ProcessId, LocationId)>,
    of: Knowledge,
}

/// Result of running an action on the states that fit some knowledge.
#[derive(Clone, Debug)]
pub struct Effect {
    /// Cells that the action's effects read. Excludes a cell that is read only in order to add a number to it.
    pub reads: FixedBitSet,
    pub writes: FixedBitSet,
    /// Cells that are written exactly once, and how they change.
    changes: Vec<(usize, Change)>,
    /// Knowledge about the states after the action.
    pub after: Known,
}

/// How an action changes a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// A number is added to the cell. `wraps`: the sum may not fit the variable.
    Adds {
        by: Range,
        wraps: bool,
    },
    Sets(i32),
}

impl Cells {
    pub fn of(model: &Model) -> Self {
        let mut count = model.processes.len();
        let first = |variable: &crate::ir::Variable| {
            let first = count;
            count += variable.initial.len();
            first
        };
        let variables = model.variables.iter().map(first).collect();
        Self { variables, count }
    }

    pub fn none(&self) -> FixedBitSet {
        FixedBitSet::with_capacity(self.count)
    }

    /// Name of a cell.
    pub fn name(&self, model: &Model, cell: usize) -> String {
        if cell < model.processes.len() {
            return format!("the location of {}", model.processes[cell].name);
        }
        let variable = self.variables.partition_point(|first| *first <= cell) - 1;
        model.variables[variable].element_name(&model.full_name(variable), cell - self.variables[variable])
    }

    /// Adds the cells that an expression may read.
    pub fn read_by(&self, model: &Model, expression: &Expression, facts: &Facts, to: &mut FixedBitSet) {
        match expression {
            Expression::Variable(variable) => to.insert(self.variables[*variable]),
            Expression::Element { array, index, .. } => to.insert_range(self.elements(model, *array, facts.range(index))),
            Expression::At { process, .. } => to.insert(*process),
            // This operator occurs only in conditions, which are split into tests of components.
            Expression::Enabled(_) => to.insert_range(..),
            Expression::Constant(_)
            | Expression::Unary { .. }
            | Expression::Binary { .. }
            | Expression::Conditional(_)
            | Expression::Within { .. } => {}
        }
        expression.parts().iter().for_each(|part| self.read_by(model, part, facts, to));
    }

    /// Cells of the elements with these indices. Ignores indices outside the array.
    fn elements(&self, model: &Model, array: VariableId, indices: Range) -> std::ops::Range<usize> {
        let count = model.variables[array].initial.len() as i64;
        let (low, high) = (indices.low.clamp(0, count), (indices.high + 1).clamp(0, count));
        let first = self.variables[array];
        first + low as usize..first + high.max(low) as usize
    }

    /// Returns the cell of a target if it can only be this one.
    fn only(&self, model: &Model, place: &StoreTarget, facts: &Facts) -> Option<usize> {
        let range = self.of_place(model, place, facts);
        (range.len() == 1).then_some(range.start)
    }

    fn of_place(&self, model: &Model, place: &StoreTarget, facts: &Facts) -> std::ops::Range<usize> {
        match &place.index {
            Some(index) => self.elements(model, place.variable, facts.range(index)),
            None => self.variables[place.variable]..self.variables[place.variable] + 1,
        }
    }

    pub fn of_component(&self, network: &Network, component: usize) -> usize {
        self.variables[network.components[component].variable]
    }
}

impl Known {
    /// Simplifies an expression with the known locations.
    pub fn simplified(&self, expression: &Expression) -> Expression {
        let mut simplified = expression.clone();
        for (process, location) in &self.at {
            simplified = simplified.where_at(*process, *location);
        }
        simplified
    }

    /// Narrows the knowledge on the assumption that a test holds (if `truth`) or does not hold. Returns false if the assumption
    /// is impossible.
    pub fn assume(&mut self, test: &Test, truth: bool) -> bool {
        match test {
            Test::Holds(expression) => match self.simplified(expression) {
                Expression::Constant(value) => (value != 0) == truth,
                simplified => self.of == Knowledge::Types || self.facts.assume(&simplified, truth),
            },
            // Components are compared state by state (rules.rs).
            Test::Ready { .. } => true,
            // Nets are not run on intervals (nets.rs).
            Test::Tokens { .. } => true,
        }
    }
}

/// The actions of a model, with the data for running them on intervals.
pub struct Runs<'m> {
    pub model: &'m Model,
    pub cells: Cells,
    knowledge: Knowledge,
    intervals: Intervals<'m>,
}

impl<'m> Runs<'m> {
    pub fn of(model: &'m Model, knowledge: Knowledge) -> Self {
        Self { model, cells: Cells::of(model), knowledge, intervals: Intervals::of(model) }
    }

    /// Facts about the states in which these processes are in these locations; `None` if there are no such states.
    fn facts_at(&self, at: &[(ProcessId, LocationId)]) -> Option<Facts> {
        match self.knowledge {
            Knowledge::Values => self.intervals.facts_at(at.iter().copied()),
            Knowledge::Types => {
                let values = self.model.variables.iter().map(|variable| Range::of_type(variable.ty));
                Some(Facts { values: values.collect(), elements: Vec::new() })
            }
        }
    }

    /// Knowledge about all reachable states in which all of these actions are enabled; `None` if there is no such state.
    pub fn enabled(&self, actions: &Actions, tests: &[Test], together: &[usize]) -> Option<Known> {
        let mut at: Vec<(ProcessId, LocationId)> = Vec::new();
        for action in together {
            for (process, from, _) in actions.moves(self.model, *action) {
                match at.iter().find(|(other, _)| *other == process) {
                    Some((_, location)) if *location != from => return None,
                    Some(_) => {}
                    None => at.push((process, from)),
                }
            }
        }
        let mut known = Known { facts: self.facts_at(&at)?, at, of: self.knowledge };
        // Assume the tests twice, because the second round can use what the first one has found.
        let numbers = || together.iter().flat_map(|action| &actions.tests[*action]);
        let is_possible = numbers().chain(numbers()).all(|test| known.assume(&tests[*test], true));
        is_possible.then_some(known)
    }

    /// Runs an action on the states that fit `known`. The action must be enabled in them.
    pub fn run(&self, action: Action, known: Known) -> Effect {
        let mut running = Running {
            runs: self,
            reads: self.cells.none(),
            writes: self.cells.none(),
            twice: self.cells.none(),
            changes: Vec::new(),
            known,
        };
        match action {
            Action::Transition { id, receiver } => {
                let transition = &self.model.transitions[id];
                if let (Partner::Send { channel, values }, Some(receiver)) = (&transition.action, receiver) {
                    if let Partner::Receive { targets, .. } = &self.model.transitions[receiver].action {
                        let fields = &self.model.channels[*channel].fields;
                        let sent: Vec<_> = values.iter().map(|value| running.evaluate(value)).collect();
                        for (((value, sent), target), field) in values.iter().zip(sent).zip(targets).zip(fields) {
                            let sent = field.ty.map_or(sent, |ty| wrapped(sent, ty));
                            let received = if field.becomes_truth { sent.truth() } else { sent };
                            let is_constant = matches!(value, Expression::Constant(_)) && received.low == received.high;
                            running.store(target, received, is_constant.then_some(Change::Sets(received.low as i32)));
                        }
                    }
                    running.act(receiver);
                }
                running.act(id);
            }
            Action::Rule(rule) => running.synchronize(rule),
            // Only actions of processes and networks are run.
            Action::Firing(_) => {}
        }
        running.finish()
    }

    /// Whether an action may change the test to `truth`. `before` is the knowledge about the states in which the action is
    /// enabled, and `effect` is the action's effect.
    pub fn may_change(&self, test: &Test, truth: bool, before: &Known, effect: &Effect) -> bool {
        let Test::Holds(expression) = test else { return true };
        let mut before = before.clone();
        if !before.assume(test, !truth) {
            return false;
        }
        let (first, then) = (before.simplified(expression), effect.after.simplified(expression));
        if let Expression::Constant(value) = then {
            return (value != 0) == truth;
        }
        // If the known locations simplify the expression differently before and after, the two expressions cannot be compared
        // part by part.
        if first == then && !self.may_become(&then, truth, &before.facts, effect) {
            return false;
        }
        effect.after.clone().assume(test, truth)
    }

    /// Whether the value of the expression may change from 0 to another value (if `truth`), or from another value to 0.
    fn may_become(&self, expression: &Expression, truth: bool, before: &Facts, effect: &Effect) -> bool {
        let mut cells = self.cells.none();
        self.cells.read_by(self.model, expression, before, &mut cells);
        if cells.is_disjoint(&effect.writes) {
            return false;
        }
        match expression {
            Expression::Unary { operator: Unary::Not, operand } => self.may_become(operand, !truth, before, effect),
            Expression::Binary { operator, operands, .. } => {
                let [left, right] = &**operands;
                match operator {
                    Binary::And | Binary::Or => {
                        self.may_become(left, truth, before, effect) || self.may_become(right, truth, before, effect)
                    }
                    Binary::Imply => {
                        self.may_become(left, !truth, before, effect) || self.may_become(right, truth, before, effect)
                    }
                    Binary::Less
                    | Binary::LessOrEqual
                    | Binary::Greater
                    | Binary::GreaterOrEqual
                    | Binary::Equal
                    | Binary::NotEqual => {
                        let differences = self.added_to(left, before, effect).zip(self.added_to(right, before, effect));
                        let Some((left, right)) = differences else { return true };
                        let by = Range { low: left.low - right.high, high: left.high - right.low };
                        match (operator, truth) {
                            (Binary::Less | Binary::LessOrEqual, true) => by.low < 0,
                            (Binary::Less | Binary::LessOrEqual, false) => by.high > 0,
                            (Binary::Greater | Binary::GreaterOrEqual, true) => by.high > 0,
                            (Binary::Greater | Binary::GreaterOrEqual, false) => by.low < 0,
                            _ => by != Range { low: 0, high: 0 },
                        }
                    }
                    _ => true,
                }
            }
            _ => true,
        }
    }

    /// Returns the number that the action adds to the expression's value; `None` if that is not known.
    fn added_to(&self, expression: &Expression, before: &Facts, effect: &Effect) -> Option<Range> {
        let mut cells = self.cells.none();
        self.cells.read_by(self.model, expression, before, &mut cells);
        if cells.is_disjoint(&effect.writes) {
            return Some(Range { low: 0, high: 0 });
        }
        match expression {
            Expression::Variable(_) => effect.added(cells.ones().next()?),
            Expression::Element { index, .. } if matches!(**index, Expression::Constant(_)) => effect.added(cells.ones().next()?),
            Expression::Binary { operator: operator @ (Binary::Add | Binary::Subtract), operands, .. } => {
                let [left, right] = &**operands;
                let fits = |facts: &Facts| {
                    let sum = unbounded(*operator, facts.range(left), facts.range(right));
                    sum.is_in(Range { low: i32::MIN.into(), high: i32::MAX.into() })
                };
                if !fits(before) || !fits(&effect.after.facts) {
                    return None;
                }
                let (left, right) = (self.added_to(left, before, effect)?, self.added_to(right, before, effect)?);
                Some(unbounded(*operator, left, right))
            }
            _ => None,
        }
    }
}

impl Effect {
    /// Returns the number that the action adds to a cell. `None` if the action does anything else to the cell, or if the sum may
    /// not fit.
    fn added(&self, cell: usize) -> Option<Range> {
        match self.change(cell)? {
            Change::Adds { by, wraps: false } => Some(by),
            _ => None,
        }
    }

    fn change(&self, cell: usize) -> Option<Change> {
        self.changes.iter().find(|(of, _)| *of == cell).map(|(_, change)| *change)
    }

    /// Returns a cell that may make the order of the two effects matter, if there is one.
    pub fn order_matters(&self, other: &Self) -> Option<usize> {
        let read = self.writes.intersection(&other.reads).next().or_else(|| other.writes.intersection(&self.reads).next());
        read.or_else(|| {
            self.writes.intersection(&other.writes).find(|cell| match (self.change(*cell), other.change(*cell)) {
                // Sums wrap around, so the order of additions does not matter.
                (Some(Change::Adds { .. }), Some(Change::Adds { .. })) => false,
                (Some(Change::Sets(one)), Some(Change::Sets(other))) => one != other,
                _ => true,
            })
        })
    }
}

/// An action that is being run.
struct Running<'r, 'm> {
    runs: &'r Runs<'m>,
    reads: FixedBitSet,
    writes: FixedBitSet,
    /// Cells that are written more than once.
    twice: FixedBitSet,
    changes: Vec<(usize, Change)>,
    known: Known,
}

impl Running<'_, '_> {
    /// Returns the values of an expression, and records its cells as read. A known location counts as read, too, because another
    /// action may change it.
    fn evaluate(&mut self, expression: &Expression) -> Range {
        self.runs.cells.read_by(self.runs.model, expression, &self.known.facts, &mut self.reads);
        self.known.facts.range(&self.known.simplified(expression))
    }

    /// Moves the transition's process and carries out its effects.
    fn act(&mut self, id: usize) {
        let transition = &self.runs.model.transitions[id];
        let (process, to) = (transition.process, transition.to);
        if transition.from != to {
            self.writes.insert(process);
        }
        self.known.at.retain(|(other, _)| *other != process);
        self.known.at.push((process, to));
        for effect in &transition.effects {
            let (target, value) = (&effect.target, &effect.value);
            let (change, values) = match (self.added(target, value), self.known.simplified(value)) {
                (Some((number, is_taken)), _) => {
                    let by = self.evaluate(&number);
                    let by = if is_taken { Range { low: -by.high, high: -by.low } } else { by };
                    let wraps = !self.sum(value).is_in(Range::of_type(self.ty(target)));
                    (Some(Change::Adds { by, wraps }), self.known.facts.range(value))
                }
                (None, Expression::Constant(constant)) => {
                    (Some(Change::Sets(self.ty(target).wrap(constant))), self.evaluate(value))
                }
                (None, _) => (None, self.evaluate(value)),
            };
            self.store(target, values, change);
        }
    }

    /// Range of a sum or difference before it wraps around.
    fn sum(&self, value: &Expression) -> Range {
        let range = |expression| self.known.facts.range(expression);
        match value {
            Expression::Binary { operator, operands, .. } => unbounded(*operator, range(&operands[0]), range(&operands[1])),
            other => range(other),
        }
    }

    fn ty(&self, target: &StoreTarget) -> Type {
        self.runs.model.variables[target.variable].ty
    }

    /// If the value is the target's own value plus a number, or minus a number (`true`): returns that number.
    fn added(&self, target: &StoreTarget, value: &Expression) -> Option<(Expression, bool)> {
        let is_target = |expression: &Expression| match (expression, &target.index) {
            (Expression::Variable(variable), None) => *variable == target.variable,
            (Expression::Element { array, index, .. }, Some(Expression::Constant(at))) => {
                *array == target.variable && **index == Expression::Constant(*at)
            }
            _ => false,
        };
        let Expression::Binary { operator, operands, .. } = value else { return None };
        let [left, right] = &**operands;
        match operator {
            Binary::Add if is_target(left) => Some((right.clone(), false)),
            Binary::Add if is_target(right) => Some((left.clone(), false)),
            Binary::Subtract if is_target(left) => Some((right.clone(), true)),
            _ => None,
        }
    }

    /// Stores values. `change` says how the target changes; it applies if the target is a single cell and nothing else writes it.
    fn store(&mut self, target: &StoreTarget, values: Range, change: Option<Change>) {
        let model = self.runs.model;
        if let Some(index) = &target.index {
            self.evaluate(index);
        }
        let place = StoreTarget { index: target.index.as_ref().map(|index| self.known.simplified(index)), ..target.clone() };
        let cells = self.runs.cells.of_place(model, &place, &self.known.facts);
        cells.clone().filter(|cell| self.writes.contains(*cell)).for_each(|cell| self.twice.insert(cell));
        self.writes.insert_range(cells);
        if let Some((cell, change)) = self.runs.cells.only(model, &place, &self.known.facts).zip(change) {
            self.changes.push((cell, change));
        }
        let values = wrapped(values, self.ty(target));
        self.known.facts.store(&place, values);
    }

    /// Moves the components of a rule.
    fn synchronize(&mut self, rule: RuleId) {
        let model = self.runs.model;
        let Some(network) = &model.network else { return };
        let Rules::Listed(listed) = &network.rules else { return };
        for (component, label) in &listed.rules[rule].parts {
            let cell = self.runs.cells.of_component(network, *component as usize);
            self.reads.insert(cell);
            self.writes.insert(cell);
            let of = &network.components[*component as usize];
            let targets = of.table.moves(*label).map(|(_, target)| i64::from(target));
            let targets: Vec<i64> = targets.collect();
            self.known.facts.values[of.variable] = Range::of_values(targets);
        }
    }

    fn finish(mut self) -> Effect {
        // If a cell is written twice, its additions count as reads.
        self.reads.union_with(&self.twice);
        let reads = &self.reads;
        self.changes.retain(|(cell, _)| !reads.contains(*cell));
        Effect { reads: self.reads, writes: self.writes, changes: self.changes, after: self.known }
    }
}
