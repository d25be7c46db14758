//! The actions of a model: the steps that a search takes or leaves out, each with the tests that enable it.

use super::nets;
use crate::interpreter::Step;
use crate::ir::expression::{Binary, Unary};
use crate::ir::ids::RuleId;
use crate::ir::net::PlaceId;
use crate::ir::network::Rules;
use crate::ir::{Action as Partner, Expression, LocationId, Model, ProcessId, Span, TransitionId};
use crate::trace::describe_step;
use anyhow::{Result, ensure};
use std::collections::HashMap;
use warpset_support::escaping;

/// Maximum number of actions of a model that can be reduced. Their matrix of conflicts then takes 32 MiB.
const MOST_ACTIONS: usize = 1 << 14;

/// An action: one step of the processes, all steps by one rule of the network, or one firing of the net.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Transition { id: TransitionId, receiver: Option<TransitionId> },
    Rule(RuleId),
    Firing(TransitionId),
}

/// A test of a state. An action is enabled if and only if all of its tests hold.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// The expression is not 0.
    Holds(Expression),
    /// The component has a transition with this label of its table (if `is_ready`), or has none (otherwise).
    Ready { component: usize, label: u32, is_ready: bool },
    /// The place has at least `least` tokens (if `is_reached`), or fewer (otherwise).
    Tokens { place: PlaceId, least: u32, is_reached: bool },
}

/// A list of tests without repetitions.
#[derive(Clone, Debug, Default)]
pub struct Tests {
    pub all: Vec<Test>,
    numbers: HashMap<String, usize>,
}

/// All actions of a model.
#[derive(Clone, Debug)]
pub struct Actions {
    pub all: Vec<Action>,
    /// By action, its tests, as indices into [`Tests::all`].
    pub tests: Vec<Vec<usize>>,
    /// By transition without a partner, its action.
    alone: HashMap<TransitionId, usize>,
    pairs: HashMap<(TransitionId, TransitionId), usize>,
    first_rule: usize,
    first_firing: usize,
}

impl Tests {
    /// Returns the number of a test. Adds the test if it is new.
    pub fn number(&mut self, test: Test) -> usize {
        let test = match test {
            Test::Holds(expression) => Test::Holds(without_spans(expression)),
            other => other,
        };
        let next = self.all.len();
        let number = *self.numbers.entry(format!("{test:?}")).or_insert(next);
        if number == next {
            self.all.push(test);
        }
        number
    }
}

impl Actions {
    /// Lists the actions of a model and their tests.
    ///
    /// # Errors
    ///
    /// The model has too many actions, or it is one transition system, in which no two steps are independent.
    pub fn of(model: &Model, tests: &mut Tests) -> Result<Self> {
        let mut all = Vec::new();
        for (id, transition) in model.transitions.iter().enumerate() {
            match &transition.action {
                Partner::Alone | Partner::Buffered { .. } => all.push(Action::Transition { id, receiver: None }),
                Partner::Receive { .. } => {}
                Partner::Send { channel, .. } => {
                    let receivers = model.channels[*channel].receivers.iter();
                    let others = receivers.filter(|receiver| model.transitions[**receiver].process != transition.process);
                    all.extend(others.map(|receiver| Action::Transition { id, receiver: Some(*receiver) }));
                }
            }
            ensure!(
                all.len() <= MOST_ACTIONS,
                "it has more than {MOST_ACTIONS} steps of processes, the most that can be compared"
            );
        }
        let first_rule = all.len();
        if let Some(network) = &model.network {
            let Rules::Listed(listed) = &network.rules else {
                anyhow::bail!("it is one transition system, whose steps all depend on each other");
            };
            let count = all.len() + listed.rules.len();
            ensure!(count <= MOST_ACTIONS, "it has {count} rules, and {MOST_ACTIONS} is the most that can be compared");
            all.extend((0..listed.rules.len()).map(Action::Rule));
        }
        let first_firing = all.len();
        if let Some(net) = &model.net {
            let count = net.transitions.len();
            ensure!(count <= MOST_ACTIONS, "it has {count} transitions, and {MOST_ACTIONS} is the most that can be compared");
            all.extend((0..count).map(Action::Firing));
        }
        let tests_of_all = Vec::with_capacity(all.len());
        let mut actions =
            Self { tests: tests_of_all, all, alone: HashMap::new(), pairs: HashMap::new(), first_rule, first_firing };
        for (number, action) in actions.all.iter().enumerate() {
            let mut own = Vec::new();
            match *action {
                Action::Transition { id, receiver } => {
                    match receiver {
                        Some(receiver) => actions.pairs.insert((id, receiver), number),
                        None => actions.alone.insert(id, number),
                    };
                    for part in [Some(id), receiver].into_iter().flatten() {
                        let transition = &model.transitions[part];
                        let (process, location) = (transition.process, transition.from);
                        own.push(tests.number(Test::Holds(Expression::At { process, location })));
                        for guard in transition.guard.iter().flat_map(conjuncts) {
                            own.push(tests.number(Test::Holds(guard)));
                        }
                    }
                    for expression in nobody_committed(model, [Some(id), receiver]) {
                        own.push(tests.number(Test::Holds(expression)));
                    }
                }
                Action::Rule(rule) => {
                    let Some(Rules::Listed(listed)) = model.network.as_ref().map(|network| &network.rules) else { continue };
                    for (component, label) in &listed.rules[rule].parts {
                        let component = *component as usize;
                        own.push(tests.number(Test::Ready { component, label: *label, is_ready: true }));
                    }
                }
                Action::Firing(transition) => {
                    let Some(net) = &model.net else { continue };
                    own = nets::tests_of(net, transition, tests);
                }
            }
            own.sort_unstable();
            own.dedup();
            actions.tests.push(own);
        }
        Ok(actions)
    }

    /// The action of a step.
    pub fn of_step(&self, step: Step) -> usize {
        match step {
            Step::Transition { id, receiver: None } => self.alone[&id],
            Step::Transition { id, receiver: Some(receiver) } => self.pairs[&(id, receiver)],
            Step::Rule(rule) => self.first_rule + rule,
            Step::Firing(transition) => self.first_firing + transition,
        }
    }

    /// Describes an action in words.
    pub fn describe(&self, model: &Model, action: usize) -> String {
        match self.all[action] {
            Action::Transition { id, receiver } => describe_step(model, Step::Transition { id, receiver }),
            Action::Rule(rule) => describe_step(model, Step::Rule(rule)),
            Action::Firing(transition) => describe_step(model, Step::Firing(transition)),
        }
    }

    /// Returns the processes that an action moves, with the locations that they leave and enter.
    pub fn moves(&self, model: &Model, action: usize) -> Vec<(ProcessId, LocationId, LocationId)> {
        let parts = match self.all[action] {
            Action::Transition { id, receiver } => [Some(id), receiver],
            Action::Rule(_) | Action::Firing(_) => [None, None],
        };
        let transitions = parts.into_iter().flatten().map(|id| &model.transitions[id]);
        transitions.map(|transition| (transition.process, transition.from, transition.to)).collect()
    }
}

/// Returns conditions, in the order of evaluation, that all hold if and only if the expression is not 0.
pub fn conjuncts(expression: &Expression) -> Vec<Expression> {
    match expression {
        Expression::Binary { operator: Binary::And, operands, .. } => operands.iter().flat_map(conjuncts).collect(),
        Expression::Unary { operator: Unary::Not, operand } => match &**operand {
            Expression::Binary { operator: Binary::Or, operands, .. } => {
                operands.iter().flat_map(|operand| conjuncts(&Expression::unary(Unary::Not, operand.clone()))).collect()
            }
            _ => vec![expression.clone()],
        },
        Expression::Constant(value) if *value != 0 => Vec::new(),
        _ => vec![expression.clone()],
    }
}

/// Rule 3 of the steps as conditions: no other process is in a committed location. Empty if one of these transitions leaves a
/// committed location.
fn nobody_committed(model: &Model, parts: [Option<TransitionId>; 2]) -> Vec<Expression> {
    let parts: Vec<_> = parts.into_iter().flatten().map(|id| &model.transitions[id]).collect();
    if parts.iter().any(|part| model.processes[part.process].locations[part.from].committed) {
        return Vec::new();
    }
    let is_free = |(process, of): (ProcessId, &crate::ir::Process)| {
        let committed = (0..of.locations.len()).filter(|location| of.locations[*location].committed);
        let at: Vec<Expression> = committed.map(|location| Expression::At { process, location }).collect();
        Some(Expression::unary(Unary::Not, Expression::joined(at, Binary::Or, Span::default())?))
    };
    let others = model.processes.iter().enumerate().filter(|(process, _)| parts.iter().all(|part| part.process != *process));
    others.filter_map(is_free).collect()
}

/// Removes the places in the text from an expression, so that equal expressions are equal values.
pub fn without_spans(expression: Expression) -> Expression {
    let span = Span::default();
    match expression {
        Expression::Element { array, index, .. } => Expression::Element { array, index: Box::new(without_spans(*index)), span },
        Expression::Unary { operator, operand } => Expression::Unary { operator, operand: Box::new(without_spans(*operand)) },
        Expression::Binary { operator, operands, .. } => {
            let [left, right] = *operands;
            Expression::Binary { operator, operands: Box::new([without_spans(left), without_spans(right)]), span }
        }
        Expression::Conditional(parts) => Expression::Conditional(Box::new((*parts).map(without_spans))),
        Expression::Within { array, dimension, elements, index, .. } => {
            Expression::Within { array, dimension, elements, index: Box::new(without_spans(*index)), span }
        }
        simple => simple,
    }
}

/// An expression in words, fully bracketed.
pub fn text(model: &Model, expression: &Expression) -> String {
    match expression {
        Expression::Constant(value) => value.to_string(),
        Expression::Variable(variable) => model.full_name(*variable),
        Expression::Element { array, index, .. } => {
            let (name, of) = (model.full_name(*array), &model.variables[*array]);
            match (of.columns, &**index) {
                (_, Expression::Constant(index @ 0..)) => of.element_name(&name, *index as usize),
                (Some(columns), Expression::Binary { operator: Binary::Add, operands, .. }) => {
                    let row = match &operands[0] {
                        Expression::Constant(first) => (first / columns as i32).to_string(),
                        Expression::Binary { operands, .. } => text(model, &operands[0]),
                        other => text(model, other),
                    };
                    format!("{name}[{row}][{}]", text(model, &operands[1]))
                }
                (_, index) => format!("{name}[{}]", text(model, index)),
            }
        }
        Expression::Within { index, .. } => text(model, index),
        Expression::Conditional(parts) => {
            let [condition, then, otherwise] = parts.each_ref().map(|part| text(model, part));
            format!("({condition} ? {then} : {otherwise})")
        }
        Expression::At { process, location } => {
            let process = &model.processes[*process];
            format!("{}.{}", process.name, process.locations[*location].name)
        }
        Expression::Enabled(label) => match &model.network {
            Some(network) => format!("enabled({})", escaping::line(network.labels.get(*label))),
            None => format!("fireable({})", escaping::line(model.firing_name(*label))),
        },
        Expression::Unary { operator, operand } => {
            let sign = match operator {
                Unary::Negate => "-",
                Unary::Not => "not ",
                Unary::Complement => "~",
            };
            format!("{sign}({})", text(model, operand))
        }
        Expression::Binary { operator, operands, .. } => {
            let sign = match operator {
                Binary::Add => "+",
                Binary::Subtract => "-",
                Binary::Multiply => "*",
                Binary::Divide => "/",
                Binary::Remainder => "%",
                Binary::Power => "**",
                Binary::ShiftLeft => "<<",
                Binary::ShiftRight => ">>",
                Binary::BitAnd => "&",
                Binary::BitOr => "|",
                Binary::BitXor => "^",
                Binary::Less => "<",
                Binary::LessOrEqual => "<=",
                Binary::Greater => ">",
                Binary::GreaterOrEqual => ">=",
                Binary::Equal => "==",
                Binary::NotEqual => "!=",
                Binary::And => "and",
                Binary::Or => "or",
                Binary::Imply => "imply",
            };
            format!("({} {sign} {})", text(model, &operands[0]), text(model, &operands[1]))
        }
    }
}
