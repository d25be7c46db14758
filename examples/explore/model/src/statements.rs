//! Carries out the statements of one step, one after another, to show what happens between them: values that wrap, and the
//! operands of a fault.

use crate::interpreter::{Fault, Step};
use crate::ir::{Action, Assignment, Expression, Model, StoreTarget, TransitionId};
use crate::terms::{Target, Term};

/// A value that did not fit the variable that stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrapped {
    /// The variable, or the buffered channel.
    pub name: String,
    /// The value before it was taken modulo.
    pub value: i32,
}

/// The values that wrap in a step from a state.
pub fn wrapped(model: &Model, step: Step, from: &[u32]) -> Vec<Wrapped> {
    let Step::Transition { id, receiver } = step else { return Vec::new() };
    let mut statements = Statements { model, state: from.to_vec(), wrapped: Vec::new() };
    // A step of a path has no fault.
    let _ = statements.step(id, receiver, from);
    statements.wrapped
}

/// Names and values of the operands of the expression that has a fault, when a transition is attempted in a state.
pub fn operands(model: &Model, id: TransitionId, fault: &Fault, from: &[u32]) -> Vec<(String, i32)> {
    let of = &model.transitions[id];
    let before = of.guard.iter().chain(match &of.action {
        Action::Send { values, .. } => &values[..],
        _ => &[],
    });
    let targets = match &of.action {
        Action::Receive { targets, .. } => &targets[..],
        _ => &[],
    };
    let index = |target: &'_ StoreTarget| target.index.clone().filter(|_| target.span == fault.span);
    if let Some(found) = before.filter_map(|of| at(of, fault)).next().cloned().or_else(|| targets.iter().find_map(index)) {
        return values(model, &found, from);
    }
    let mut statements = Statements { model, state: from.to_vec(), wrapped: Vec::new() };
    let _ = statements.act(id);
    let of_effect = |Assignment { target, value }: &Assignment| {
        let indices = target.index.as_ref().and_then(|index| at(index, fault));
        index(target).or_else(|| indices.or_else(|| at(value, fault)).cloned())
    };
    of.effects.iter().find_map(of_effect).map_or_else(Vec::new, |found| values(model, &found, &statements.state))
}

struct Statements<'m> {
    model: &'m Model,
    state: Vec<u32>,
    wrapped: Vec<Wrapped>,
}

impl Statements<'_> {
    /// Carries out a step in the interpreter's order, until a fault.
    fn step(&mut self, leader: TransitionId, receiver: Option<TransitionId>, from: &[u32]) -> Result<(), Box<Fault>> {
        let model = self.model;
        if let Some(id) = receiver {
            let actions = (&model.transitions[leader].action, &model.transitions[id].action);
            if let (Action::Send { channel, values }, Action::Receive { targets, .. }) = actions {
                for ((value, target), field) in values.iter().zip(targets).zip(&model.channels[*channel].fields) {
                    let value = Term::of(value, model).value(model, from)?;
                    self.store(target, value, field.received(value))?;
                }
            }
            self.act(id)?;
        }
        self.act(leader)
    }

    /// Moves the transition's process and carries out the effects, until a fault.
    fn act(&mut self, id: TransitionId) -> Result<(), Box<Fault>> {
        let (model, of) = (self.model, &self.model.transitions[id]);
        model.layout.locations[of.process].set(&mut self.state, 0, of.to as i32);
        for Assignment { target, value } in &of.effects {
            let value = Term::of(value, model).value(model, &self.state)?;
            self.store(target, value, (value, false))?;
        }
        Ok(())
    }

    /// Stores a value: `sent`, or what a channel gives for it. `has_wrapped`: the value did not fit the channel.
    fn store(&mut self, target: &StoreTarget, sent: i32, (given, has_wrapped): (i32, bool)) -> Result<(), Box<Fault>> {
        let (model, of) = (self.model, &self.model.variables[target.variable]);
        let index = target.index.as_ref().map(|index| Term::of(index, model).value(model, &self.state)).transpose()?;
        Target::of(target, model).store(model, &mut self.state, |_| Ok(given))?;
        if has_wrapped || of.ty.wrap(given) != given {
            let buffer = model.buffers.iter().find(|buffer| buffer.arrays().any(|array| array == target.variable));
            let element = || of.element_name(&model.full_name(target.variable), index.unwrap_or(0) as usize);
            let name = buffer.map_or_else(element, |buffer| buffer.name.clone());
            self.wrapped.push(Wrapped { name, value: sent });
        }
        Ok(())
    }
}

/// The parts of an expression.
fn parts(expression: &Expression) -> Vec<&Expression> {
    match expression {
        Expression::Constant(_) | Expression::Variable(_) | Expression::At { .. } | Expression::Enabled(_) => Vec::new(),
        Expression::Element { index, .. } | Expression::Within { index, .. } => vec![index],
        Expression::Unary { operand, .. } => vec![operand],
        Expression::Binary { operands, .. } => operands.iter().collect(),
        Expression::Conditional(all) => all.iter().collect(),
    }
}

/// The part of an expression whose evaluation has the fault.
fn at<'e>(expression: &'e Expression, fault: &Fault) -> Option<&'e Expression> {
    let span = match expression {
        Expression::Element { span, .. } | Expression::Within { span, .. } | Expression::Binary { span, .. } => Some(span),
        _ => None,
    };
    if span == Some(&fault.span) { Some(expression) } else { parts(expression).into_iter().find_map(|part| at(part, fault)) }
}

/// Names and values of the variables and elements in an expression, as far as they have values.
fn values(model: &Model, expression: &Expression, state: &[u32]) -> Vec<(String, i32)> {
    let mut all: Vec<(String, i32)> = parts(expression).into_iter().flat_map(|part| values(model, part, state)).collect();
    let value = |of: &Expression| Term::of(of, model).value(model, state).ok();
    let own = match expression {
        Expression::Variable(id) => value(expression).map(|value| (model.full_name(*id), value)),
        Expression::Element { array, index, .. } => value(index)
            .zip(value(expression))
            .map(|(index, value)| (model.variables[*array].element_name(&model.full_name(*array), index as usize), value)),
        _ => None,
    };
    all.extend(own.filter(|own| !all.contains(own)));
    all
}
