//! Translates statements to transitions of the intermediate form.

use super::behaviour::{Action, Connection, Statement};
use super::declarations::{Channel, ChannelKind};
use super::expressions::converted;
use super::received::Received;
use crate::diagnostic::Diagnostic;
use crate::ir::expression::{Binary, MAX_DEPTH, Unary};
use crate::ir::{self, Assignment, Buffer, ChannelId, Expression, LocationId, Operation, ProcessId, Transition, Type, Variable};
use std::collections::HashMap;

/// Limit of the parts of all conditions that are added for priorities and synchronous guards.
const MAX_PARTS: usize = 20_000_000;

/// Builds the transitions for statements.
pub struct Steps<'a> {
    statements: &'a [Statement],
    variables: &'a [Variable],
    channels: &'a [Channel],
    buffers: &'a [Buffer],
    /// By process and location, the statements that begin a transition, highest priority first.
    first: HashMap<(ProcessId, LocationId), Vec<usize>>,
    /// By channel, end and signal: the statements that send to, or receive from, that end of a synchronous channel.
    senders: Ends<'a>,
    receivers: Ends<'a>,
    /// Rendezvous channels. `plain`: by channel, end and signal, the channel for receivers without a guard or conversion.
    /// `special`: by the receiver's statement, the channel for a receiver with a guard or conversion.
    plain: HashMap<(usize, usize, &'a str), ChannelId>,
    special: HashMap<usize, ChannelId>,
    pub rendezvous: Vec<ir::Channel>,
    pub transitions: Vec<Transition>,
    parts: usize,
}

type Ends<'a> = HashMap<(usize, usize, &'a str), Vec<usize>>;

impl<'a> Steps<'a> {
    /// Builds the transitions, process by process, and the rendezvous channels for them.
    pub fn of(
        statements: &'a [Statement],
        variables: &'a [Variable],
        channels: &'a [Channel],
        buffers: &'a [Buffer],
    ) -> Result<Self, Diagnostic> {
        let mut steps = Self {
            statements,
            variables,
            channels,
            buffers,
            first: HashMap::new(),
            senders: HashMap::new(),
            receivers: HashMap::new(),
            plain: HashMap::new(),
            special: HashMap::new(),
            rendezvous: Vec::new(),
            transitions: Vec::new(),
            parts: 0,
        };
        for (id, statement) in statements.iter().enumerate() {
            if statement.rank.is_some() {
                steps.first.entry((statement.process, statement.from)).or_default().push(id);
            }
            match &statement.action {
                Action::Send { to: Some((channel, end)), signal, .. } if steps.is_synchronous(*channel) => {
                    steps.senders.entry((*channel, *end, signal)).or_default().push(id);
                }
                Action::Receive { from: Some((channel, end)), signal, .. } if steps.is_synchronous(*channel) => {
                    steps.receivers.entry((*channel, *end, signal)).or_default().push(id);
                    steps.meet(id, *channel, *end, signal);
                }
                _ => {}
            }
        }
        steps.first.values_mut().for_each(|here| here.sort_by_key(|id| statements[*id].rank));
        (0..statements.len()).try_for_each(|id| steps.add(id))?;
        Ok(steps)
    }

    fn is_synchronous(&self, channel: usize) -> bool {
        matches!(self.channels[channel].kind, ChannelKind::Synchronous)
    }

    /// Adds a rendezvous channel for a receiver, unless it can share an existing one.
    fn meet(&mut self, id: usize, channel: usize, end: usize, signal: &'a str) {
        let Action::Receive { targets, .. } = &self.statements[id].action else { return };
        let Channel { name, types, .. } = &self.channels[channel];
        let new = self.rendezvous.len();
        let is_special = self.is_special(id, types);
        if !is_special && *self.plain.entry((channel, end, signal)).or_insert(new) != new {
            return;
        }
        if is_special {
            self.special.insert(id, new);
        }
        let field = |(target, ty): (_, &Type)| ir::MessageField { ty: Some(*ty), becomes_truth: self.becomes_truth(target, *ty) };
        let fields = targets.iter().zip(types).map(field).collect();
        self.rendezvous.push(ir::Channel {
            name: format!("{name}.{signal}"),
            fields,
            senders: Vec::new(),
            receivers: Vec::new(),
        });
    }

    /// Whether a receiver needs its own rendezvous channel. It does if it stores a number as a truth value, because the number
    /// must be compared with 0, or if it has a guard, because the guard sees the received values.
    fn is_special(&self, receiver: usize, types: &[Type]) -> bool {
        let Action::Receive { targets, guard, .. } = &self.statements[receiver].action else { return false };
        guard.is_some() || targets.iter().zip(types).any(|(target, ty)| self.becomes_truth(target, *ty))
    }

    fn becomes_truth(&self, target: &ir::StoreTarget, ty: Type) -> bool {
        self.variables[target.variable].ty == Type::BOOLEAN && ty != Type::BOOLEAN
    }

    fn add(&mut self, id: usize) -> Result<(), Diagnostic> {
        let statement = &self.statements[id];
        let before = self.nothing_higher(id)?;
        match &statement.action {
            Action::Alone { guard, effects } => {
                let conditions = before.into_iter().chain(guard.clone()).collect();
                self.push(id, conditions, ir::Action::Alone, effects.clone())
            }
            Action::Send { to: Some((channel, end)), signal, values } => match &self.channels[*channel].kind {
                ChannelKind::Buffered { buffer, is_lossy } => {
                    let of = &self.buffers[*buffer];
                    let effects = self.put(id, *channel, of, signal, values);
                    let conditions = before.iter().cloned().chain([of.has_room(statement.span)]).collect();
                    let action = |operation| ir::Action::Buffered { buffer: *buffer, operation };
                    self.push(id, conditions, action(Operation::Send), effects)?;
                    if *is_lossy {
                        self.push(id, before.into_iter().collect(), action(Operation::Lose), Vec::new())?;
                    }
                    Ok(())
                }
                ChannelKind::Synchronous => self.add_senders(id, before, (*channel, 1 - end, signal), values),
            },
            Action::Receive { from: Some((channel, end)), signal, targets, .. } => match &self.channels[*channel].kind {
                ChannelKind::Buffered { buffer, .. } => {
                    let types = &self.channels[*channel].types;
                    let conditions = before.into_iter().chain(self.enabled(id)?).collect();
                    let (at, of) = (statement.span, &self.buffers[*buffer]);
                    let stores = targets.iter().zip(types).enumerate().map(|(field, (target, ty))| {
                        let value = of.first(field, at);
                        let stored = self.variables[target.variable].ty;
                        let value = if *ty == stored { value } else { converted(value, stored, at) };
                        Assignment { target: target.clone(), value }
                    });
                    let effects = stores.chain(of.remove(at)).collect();
                    let action = ir::Action::Buffered { buffer: *buffer, operation: Operation::Receive };
                    self.push(id, conditions, action, effects)
                }
                ChannelKind::Synchronous => {
                    let channel = match self.special.get(&id) {
                        Some(channel) => *channel,
                        None => self.plain[&(*channel, *end, signal.as_str())],
                    };
                    let action = ir::Action::Receive { channel, targets: targets.clone() };
                    self.push(id, before.into_iter().collect(), action, Vec::new())
                }
            },
            Action::Send { to: None, .. } | Action::Receive { from: None, .. } => Ok(()),
        }
    }

    /// Returns the assignments that append a message to a buffer.
    fn put(&self, id: usize, channel: usize, buffer: &Buffer, signal: &str, values: &[Expression]) -> Vec<Assignment> {
        let at = self.statements[id].span;
        let types = &self.channels[channel].types;
        let which = buffer.signals.iter().position(|other| other == signal).unwrap_or(0);
        let values = values.iter().zip(types).map(|(value, ty)| converted(value.clone(), *ty, at));
        buffer.append(values.chain([Expression::Constant(which as i32)]), at)
    }

    /// Adds a sender's transition for all plain receivers together, and one for each special receiver.
    fn add_senders(
        &mut self,
        id: usize,
        before: Option<Expression>,
        receiving: (usize, usize, &'a str),
        values: &[Expression],
    ) -> Result<(), Diagnostic> {
        let at = self.statements[id].span;
        let types = &self.channels[receiving.0].types;
        if let Some(&channel) = self.plain.get(&receiving) {
            let values = values.iter().zip(types).map(|(value, ty)| converted(value.clone(), *ty, at)).collect();
            self.push(id, before.iter().cloned().collect(), ir::Action::Send { channel, values }, Vec::new())?;
        }
        for receiver in self.receivers.get(&receiving).cloned().unwrap_or_default() {
            let Some(&channel) = self.special.get(&receiver) else { continue };
            if self.statements[receiver].process == self.statements[id].process {
                continue;
            }
            // A value that does not fit is wrapped, and counted, where it is sent and stored. Conditions do not count.
            let values = values.iter().zip(types).map(|(value, ty)| converted(value.clone(), *ty, at)).collect();
            let conditions = before.iter().cloned().chain([self.meeting(id, receiver, receiver)?]).collect();
            self.push(id, conditions, ir::Action::Send { channel, values }, Vec::new())?;
        }
        Ok(())
    }

    /// Returns the condition that `present`, which is the sender or the receiver, is in its source location and the receiver's
    /// guard holds.
    fn meeting(&mut self, sender: usize, receiver: usize, present: usize) -> Result<Expression, Diagnostic> {
        let Statement { process, from, span, .. } = self.statements[present];
        let is_there = Expression::At { process, location: from };
        let (Action::Send { to, values, .. }, Action::Receive { targets, guard: Some(guard), .. }) =
            (&self.statements[sender].action, &self.statements[receiver].action)
        else {
            return Ok(is_there);
        };
        let types = to.map_or(&[][..], |(channel, _)| &self.channels[channel].types);
        let values = values.iter().cloned().zip(types.iter().copied());
        let mut received = Received::new(self.variables, targets, values, self.statements[receiver].span)?;
        let guard = received.expression(guard)?;
        self.spend(&guard, receiver)?;
        Ok(Expression::binary(Binary::And, is_there, guard, span))
    }

    /// Returns the condition under which a statement can be executed, apart from priorities; `None` if it always can.
    fn enabled(&mut self, id: usize) -> Result<Option<Expression>, Diagnostic> {
        let statement = &self.statements[id];
        let at = statement.span;
        Ok(match &statement.action {
            Action::Alone { guard, .. } => guard.clone(),
            Action::Send { to, signal, .. } => match self.kind(*to) {
                None => Some(Expression::Constant(0)),
                Some((_, _, ChannelKind::Buffered { is_lossy: true, .. })) => None,
                Some((_, _, ChannelKind::Buffered { buffer, .. })) => Some(self.buffers[*buffer].has_room(at)),
                Some((channel, end, ChannelKind::Synchronous)) => {
                    let partners = self.receivers.get(&(channel, 1 - end, signal.as_str())).cloned().unwrap_or_default();
                    let partners = partners.into_iter().filter(|other| self.statements[*other].process != statement.process);
                    let meetings: Vec<usize> = partners.collect();
                    let meetings = meetings.into_iter().map(|other| self.meeting(id, other, other)).collect::<Result<_, _>>()?;
                    Some(Expression::joined(meetings, Binary::Or, at).unwrap_or(Expression::Constant(0)))
                }
            },
            Action::Receive { from, signal, targets, guard } => match self.kind(*from) {
                None => Some(Expression::Constant(0)),
                Some((channel, _, ChannelKind::Buffered { buffer, .. })) => {
                    let buffer = &self.buffers[*buffer];
                    let Some(which) = buffer.signals.iter().position(|other| other == signal) else {
                        return Ok(Some(Expression::Constant(0)));
                    };
                    let types = &self.channels[channel].types;
                    let mut conditions = vec![buffer.has_message(at)];
                    conditions.extend(buffer.has_signal(which, at));
                    if let Some(guard) = guard {
                        let values = types.iter().enumerate().map(|(field, ty)| (buffer.first(field, at), *ty));
                        let guard = Received::new(self.variables, targets, values, at)?.expression(guard)?;
                        self.spend(&guard, id)?;
                        conditions.push(guard);
                    }
                    Expression::joined(conditions, Binary::And, at)
                }
                Some((channel, end, ChannelKind::Synchronous)) => {
                    let partners = self.senders.get(&(channel, 1 - end, signal.as_str())).cloned().unwrap_or_default();
                    let partners = partners.into_iter().filter(|other| self.statements[*other].process != statement.process);
                    let meetings: Vec<usize> = partners.collect();
                    let meetings = meetings.into_iter().map(|other| self.meeting(other, id, other)).collect::<Result<_, _>>()?;
                    Some(Expression::joined(meetings, Binary::Or, at).unwrap_or(Expression::Constant(0)))
                }
            },
        })
    }

    fn kind(&self, connection: Connection) -> Option<(usize, usize, &'a ChannelKind)> {
        connection.map(|(channel, end)| (channel, end, &self.channels[channel].kind))
    }

    /// Returns the condition that no transition with a higher priority is enabled; `None` if that always holds.
    fn nothing_higher(&mut self, id: usize) -> Result<Option<Expression>, Diagnostic> {
        let Statement { process, from, rank, span, .. } = self.statements[id];
        if rank.is_none() {
            return Ok(None);
        }
        let here = &self.first[&(process, from)];
        let higher = here[..here.partition_point(|other| self.statements[*other].rank < rank)].to_vec();
        let mut conditions = Vec::new();
        for other in higher {
            let enabled = self.enabled(other)?.unwrap_or(Expression::Constant(1));
            self.spend(&enabled, other)?;
            conditions.push(Expression::unary(Unary::Not, enabled));
        }
        Ok(Expression::joined(conditions, Binary::And, span))
    }

    fn spend(&mut self, condition: &Expression, statement: usize) -> Result<(), Diagnostic> {
        self.parts += condition.size();
        if self.parts <= MAX_PARTS {
            return Ok(());
        }
        let message =
            format!("the conditions for priorities and for guards on received values have more than {MAX_PARTS} parts together");
        Err(Diagnostic::new(self.statements[statement].span, message, "too many such conditions"))
    }

    /// Adds a transition, unless it can never happen.
    fn push(
        &mut self,
        id: usize,
        conditions: Vec<Expression>,
        action: ir::Action,
        effects: Vec<Assignment>,
    ) -> Result<(), Diagnostic> {
        let Statement { process, from, to, span, .. } = self.statements[id];
        let guard = match Expression::joined(conditions, Binary::And, span) {
            Some(Expression::Constant(0)) => return Ok(()),
            Some(Expression::Constant(_)) => None,
            guard => guard,
        };
        if guard.as_ref().is_some_and(|guard| guard.depth() > MAX_DEPTH) {
            let label = format!("with its priority or the received values inserted it is nested deeper than {MAX_DEPTH}");
            return Err(Diagnostic::new(span, "the guard is too large", label));
        }
        self.transitions.push(Transition { process, from, to, guard, action, effects, span });
        Ok(())
    }
}
