//! The behaviour of state machines: their transitions, as statements between locations.

use super::declarations::{ChannelKind, Declarations, type_name};
use super::expressions::{Local, Scope, converted};
use super::grammar::{Pair, Rule, parts, span};
use crate::diagnostic::Diagnostic;
use crate::ir::{Assignment, Expression, Location, LocationId, ProcessId, Range, Span, StoreTarget};
use crate::parsing::unknown;
use crate::warnings::{self, Warning};
use std::cell::RefCell;
use warpset_support::numbers::counted;

/// Limit of the number of statements in all objects together.
const MAX_STATEMENTS: usize = 1 << 20;

/// A statement of a state machine.
pub struct Statement {
    pub process: ProcessId,
    pub from: LocationId,
    pub to: LocationId,
    /// Priority of the transition that begins with this statement; a smaller number is a higher priority. `None` for the later
    /// statements of a transition: no other transition leaves their source locations.
    pub rank: Option<u32>,
    pub action: Action,
    pub span: Span,
}

pub enum Action {
    /// An expression, a list of assignments, or an empty statement.
    Alone { guard: Option<Expression>, effects: Vec<Assignment> },
    Send {
        to: Connection,
        signal: String,
        /// The values before conversion to the types of the channel's fields.
        values: Vec<Expression>,
    },
    Receive {
        from: Connection,
        signal: String,
        targets: Vec<StoreTarget>,
        /// The guard, which is evaluated in the state with the received values.
        guard: Option<Expression>,
    },
}

/// A channel and the number of one of its ends; `None` for a port that is not connected to a channel.
pub type Connection = Option<(usize, usize)>;

/// Returns all statements of a model, process by process. Adds the locations between statements.
pub fn statements(all: &mut Declarations) -> Result<Vec<Statement>, Diagnostic> {
    let mut statements = Vec::new();
    for process in 0..all.machines.len() {
        for transition in all.machines[process].transitions.clone() {
            of_transition(all, process, transition, &mut statements)?;
        }
    }
    Ok(statements)
}

fn of_transition(all: &mut Declarations, process: ProcessId, pair: Pair, to: &mut Vec<Statement>) -> Result<(), Diagnostic> {
    let at = span(&pair);
    let (mut rank, mut ends, mut block) = (u32::MAX, Vec::new(), Vec::new());
    for part in parts(pair) {
        match part.as_rule() {
            // A transition without a priority, or with priority 0, has the lowest priority.
            Rule::priority => rank = priority(&part)?,
            Rule::block => block = parts(part).collect(),
            _ => ends.push(state(all, process, &part)?),
        }
    }
    let (mut from, end) = (ends[0], ends[1]);
    let mut rank = Some(rank);
    if block.is_empty() {
        let action = Action::Alone { guard: None, effects: Vec::new() };
        to.push(Statement { process, from, to: end, rank, action, span: at });
    }
    let count = block.len();
    for (number, statement) in block.into_iter().enumerate() {
        if to.len() >= MAX_STATEMENTS {
            let message = format!("all objects together have more than {MAX_STATEMENTS} statements");
            return Err(Diagnostic::new(at, message, "one too many"));
        }
        let at = span(&statement);
        let action = action(all, process, statement)?;
        let left = count - number - 1;
        let next = if left == 0 { end } else { between(all, process, end, left, at) };
        to.push(Statement { process, from, to: next, rank: rank.take(), action, span: at });
        from = next;
    }
    Ok(())
}

/// Adds a location between two statements of a block. The machine already counts as being in `state`. `left` statements remain
/// after the one at `after`.
fn between(all: &mut Declarations, process: ProcessId, state: LocationId, left: usize, after: Span) -> LocationId {
    let locations = &mut all.processes[process].locations;
    let name = format!("{} ({left} to do after line {})", locations[state].name, after.line);
    locations.push(Location { name, committed: false });
    all.names.machines[process].rests[state].push(locations.len() - 1);
    locations.len() - 1
}

fn priority(pair: &Pair) -> Result<u32, Diagnostic> {
    let number = super::expressions::number(pair, false)?;
    Ok(if number == 0 { u32::MAX } else { number as u32 })
}

fn state(all: &Declarations, process: ProcessId, name: &Pair) -> Result<LocationId, Diagnostic> {
    let states = &all.names.machines[process].states;
    states.get(name.as_str()).copied().ok_or_else(|| unknown("state", name.as_str(), span(name), &states.names()))
}

fn action(all: &mut Declarations, process: ProcessId, statement: Pair) -> Result<Action, Diagnostic> {
    let warnings = RefCell::default();
    let object = all.machines[process].object;
    let local = Local { object: &all.names.objects[object].variables, machine: Some(&all.names.machines[process].variables) };
    let scope = Scope { names: &local, variables: &all.variables, warnings: &warnings };
    let reader = Reader { all, object, local: &local, scope };
    let action = reader.action(statement.into_inner().next().expect("a statement is not empty"))?;
    all.warnings.append(&mut warnings.into_inner());
    Ok(action)
}

/// The context of the statements of one state machine.
struct Reader<'a, 't> {
    all: &'a Declarations<'t>,
    object: usize,
    local: &'a Local<'a>,
    scope: Scope<'a, Local<'a>>,
}

impl Reader<'_, '_> {
    fn action(&self, pair: Pair) -> Result<Action, Diagnostic> {
        let nothing = Action::Alone { guard: None, effects: Vec::new() };
        match pair.as_rule() {
            Rule::expression => match self.as_action(&pair) {
                true => Ok(nothing),
                false => {
                    let (text, at) = (pair.as_str().trim_end(), span(&pair));
                    let guard = self.scope.expression(pair)?;
                    self.scope.warnings.borrow_mut().extend(warnings::of_comparison(text, &guard, at));
                    Ok(Action::Alone { guard: Some(guard), effects: Vec::new() })
                }
            },
            Rule::assignment => Ok(Action::Alone { guard: None, effects: vec![self.assignment(pair)?] }),
            Rule::composite => {
                let (mut guard, mut effects) = (None, Vec::new());
                for part in pair.into_inner() {
                    match part.as_rule() {
                        Rule::expression => guard = Some(self.scope.expression(part)?),
                        _ => effects.push(self.assignment(part)?),
                    }
                }
                Ok(Action::Alone { guard, effects })
            }
            Rule::after => {
                let time = parts(pair).next().expect("a time is a number");
                super::expressions::number(&time, false)?;
                Ok(nothing)
            }
            Rule::action => {
                let name = parts(pair).next().expect("an action has a name");
                match self.all.actions.contains(name.as_str()) {
                    true => Ok(nothing),
                    false => {
                        let mut known: Vec<&str> = self.all.actions.iter().copied().collect();
                        known.sort_unstable();
                        Err(unknown("action", name.as_str(), span(&name), &known))
                    }
                }
            }
            Rule::send => self.send(pair),
            _ => self.receive(pair),
        }
    }

    /// Whether the expression is only a name, and that name is an action and not a variable.
    fn as_action(&self, expression: &Pair) -> bool {
        let name = expression.as_str().trim_end();
        self.all.actions.contains(name) && self.local.variable(name).is_none()
    }

    fn assignment(&self, pair: Pair) -> Result<Assignment, Diagnostic> {
        let mut sides = pair.into_inner();
        let target = self.scope.target(sides.next().expect("an assignment has a target"))?;
        let value = sides.next().expect("an assignment has a value");
        let at = span(&value);
        let ty = self.all.variables[target.variable].ty;
        let value = converted(self.scope.expression(value)?, ty, at);
        self.look_at_store(&value, ty, at);
        Ok(Assignment { target, value })
    }

    /// Warns if the stored value is a constant that does not fit. The store itself is counted when it happens.
    fn look_at_store(&self, value: &Expression, ty: crate::ir::Type, at: Span) {
        if let Expression::Constant(value) = *value {
            let warning: Option<Warning> = warnings::of_store(value, ty.wrap(value), type_name(ty), Range::of_type(ty), at, 0);
            self.scope.warnings.borrow_mut().extend(warning);
        }
    }

    fn send(&self, pair: Pair) -> Result<Action, Diagnostic> {
        let at = span(&pair);
        let (names, values): (Vec<Pair>, Vec<Pair>) = parts(pair).partition(|part| part.as_rule() == Rule::name);
        let to = self.connection(&names[1])?;
        if let Some((channel, end)) = to {
            self.ensure_values(channel, values.len(), at)?;
            if end == 1 && matches!(self.all.channels[channel].kind, ChannelKind::Buffered { .. }) {
                let message =
                    format!("`{}` leads to this port, so this object can only receive on it", self.all.channels[channel].name);
                return Err(Diagnostic::new(at, message, "an asynchronous channel has one direction"));
            }
            for (value, ty) in values.iter().zip(&self.all.channels[channel].types) {
                // Discard the warnings here: the value is read again below, and that gives its warnings.
                let silent = RefCell::default();
                let value_read = Scope { warnings: &silent, ..self.scope }.expression(value.clone())?;
                self.look_at_store(&converted(value_read, *ty, span(value)), *ty, span(value));
            }
        }
        let values = values.into_iter().map(|value| self.scope.expression(value)).collect::<Result<_, _>>()?;
        Ok(Action::Send { to, signal: names[0].as_str().into(), values })
    }

    fn receive(&self, pair: Pair) -> Result<Action, Diagnostic> {
        let at = span(&pair);
        let (mut names, mut targets, mut guard) = (Vec::new(), Vec::new(), None);
        for part in parts(pair) {
            match part.as_rule() {
                Rule::name => names.push(part),
                Rule::target => targets.push(self.scope.target(part)?),
                _ => guard = Some(self.scope.expression(part)?),
            }
        }
        let from = self.connection(&names[1])?;
        if let Some((channel, end)) = from {
            self.ensure_values(channel, targets.len(), at)?;
            if end == 0 && matches!(self.all.channels[channel].kind, ChannelKind::Buffered { .. }) {
                let message =
                    format!("`{}` leads from this port, so this object can only send on it", self.all.channels[channel].name);
                return Err(Diagnostic::new(at, message, "an asynchronous channel has one direction"));
            }
        }
        Ok(Action::Receive { from, signal: names[0].as_str().into(), targets, guard })
    }

    fn connection(&self, port: &Pair) -> Result<Connection, Diagnostic> {
        let ports = self.all.ports(self.object);
        if ports.get(port.as_str()).is_none() {
            return Err(unknown("port", port.as_str(), span(port), &ports.names()));
        }
        let connection = self.all.connected.get(&(self.object, port.as_str().to_string())).copied();
        if connection.is_none() {
            let object = &self.all.names.objects[self.object].name;
            let message = format!("the port {object}.{} is not connected to a channel", port.as_str());
            let diagnostic = Diagnostic::new(span(port), message, "nothing can ever be sent or received here");
            self.scope.warnings.borrow_mut().push(Warning { diagnostic, values: 0 });
        }
        Ok(connection)
    }

    fn ensure_values(&self, channel: usize, given: usize, at: Span) -> Result<(), Diagnostic> {
        let channel = &self.all.channels[channel];
        let needed = channel.types.len();
        if needed == given {
            return Ok(());
        }
        let values = |count: usize| counted(count as u64, "value");
        let message = format!("messages on `{}` have {}", channel.name, values(needed));
        Err(Diagnostic::new(at, message, format!("this one has {}", values(given))))
    }
}
