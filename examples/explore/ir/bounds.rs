//! Which values variables can ever have, so that states take no more bits than they need.
//!
//! Abstract interpretation with intervals (Cousot and Cousot 1977). A scalar that only one process writes has an interval for each location of
//! that process; every other variable, and an array as a whole, has one. Transitions are gone through until nothing changes: where
//! its guard can hold, and with what its guard says of the variables it compares, a transition's stores widen the intervals of what they store to
//! and, at its end, those of the location that it leads to. A store that may overflow may leave any value of the type.
//!
//! What is found is never too little: every state that can be reached has its values in these intervals, whatever the search does.

use super::range::{Range, range_where};
use super::{
    Action, Assignment, Binary, Channel, Expression, Place, Process, ProcessId, Transition, Type, Unary, Variable, VariableId,
};

/// Expressions looked at before intervals grow in larger steps: a tenth of a second.
const PATIENCE: usize = 500_000;

/// Finds the `values` of all variables.
pub fn bound(processes: &[Process], channels: &[Channel], transitions: &[Transition], variables: &mut [Variable]) {
    let mut search = Search::new(processes, channels, transitions, variables);
    let mut work = 0;
    while search.pass(transitions, &mut work) {
        search.hurries = work > PATIENCE;
    }
    let found = search.anywhere;
    for (variable, values) in variables.iter_mut().zip(found) {
        variable.values = values;
    }
}

/// What is known of all states so far.
struct Search<'m> {
    variables: &'m [Variable],
    channels: &'m [Channel],
    /// The process whose locations a variable's intervals are kept by.
    owners: Vec<Option<ProcessId>>,
    /// By process and location, the intervals of all variables that the process owns, in their order; `None` if no way there is known.
    at: Vec<Vec<Option<Vec<Range>>>>,
    /// Of each variable, wherever its owner is.
    anywhere: Vec<Range>,
    /// What is sent, by channel and field; `None` if nothing is.
    sent: Vec<Vec<Option<Range>>>,
    /// By process, what it owns.
    owned: Vec<Vec<VariableId>>,
    has_changed: bool,
    /// Intervals grow to the next power of two.
    hurries: bool,
}

/// What is known while a transition is carried out.
#[derive(Clone)]
struct Moment {
    values: Vec<Range>,
    /// Elements with constant indices of which more is known than of their arrays.
    elements: Vec<(VariableId, i32, Range)>,
}

impl<'m> Search<'m> {
    fn new(processes: &[Process], channels: &'m [Channel], transitions: &[Transition], variables: &'m [Variable]) -> Self {
        let owners = owners(transitions, variables);
        let anywhere: Vec<Range> =
            variables.iter().map(|variable| Range::of_values(variable.initial.iter().map(|value| i64::from(*value)))).collect();
        let owned = |process| (0..variables.len()).filter(|variable| owners[*variable] == Some(process)).collect();
        let owned: Vec<Vec<VariableId>> = (0..processes.len()).map(owned).collect();
        let mut at: Vec<Vec<Option<Vec<Range>>>> = processes.iter().map(|process| vec![None; process.locations.len()]).collect();
        for (id, process) in processes.iter().enumerate() {
            at[id][process.initial] = Some(owned[id].iter().map(|variable| anywhere[*variable]).collect());
        }
        let sent = channels.iter().map(|channel| vec![None; channel.fields.len()]).collect();
        Self { variables, channels, owners, at, anywhere, sent, owned, has_changed: false, hurries: false }
    }

    /// Goes through all transitions once. Returns whether anything has changed.
    fn pass(&mut self, transitions: &[Transition], work: &mut usize) -> bool {
        self.has_changed = false;
        for transition in transitions {
            *work +=
                1 + transition.guard.as_ref().map_or(0, size) + transition.effects.iter().map(|e| size(&e.value)).sum::<usize>();
            if let Some(moment) = self.before(transition) {
                self.carry_out(transition, moment);
            }
        }
        self.has_changed
    }

    /// What is known when the transition begins; `None` if it cannot.
    fn before(&self, transition: &Transition) -> Option<Moment> {
        let here = self.at[transition.process][transition.from].as_ref()?;
        let mut moment = Moment { values: self.anywhere.clone(), elements: Vec::new() };
        for (variable, values) in self.owned[transition.process].iter().zip(here) {
            moment.values[*variable] = *values;
        }
        match &transition.guard {
            Some(guard) => moment.assume(guard, true).then_some(moment),
            None => Some(moment),
        }
    }

    fn carry_out(&mut self, transition: &Transition, mut moment: Moment) {
        match &transition.action {
            Action::Alone => {}
            Action::Send { channel, values } => {
                let types = self.channels[*channel].fields.iter();
                let stored = |(value, ty): (&Expression, &Option<Type>)| match ty {
                    Some(ty) => wrapped(moment.range(value), *ty),
                    None => moment.range(value),
                };
                let values: Vec<Range> = values.iter().zip(types).map(stored).collect();
                for (field, values) in values.into_iter().enumerate() {
                    let before = self.sent[*channel][field];
                    let after = before.map_or(values, |before| self.grown(before, before.or(values)));
                    self.has_changed |= before != Some(after);
                    self.sent[*channel][field] = Some(after);
                }
                // The receiver has acted meanwhile: what the guard said of what is not this process' own may not hold any more.
                moment.elements.clear();
                for variable in 0..self.variables.len() {
                    if self.owners[variable] != Some(transition.process) {
                        moment.values[variable] = self.anywhere[variable];
                    }
                }
            }
            Action::Receive { channel, targets } => {
                for (field, target) in targets.iter().enumerate() {
                    let Some(values) = self.sent[*channel][field] else { return };
                    self.store(target, values, &mut moment);
                }
            }
        }
        for Assignment { target, value } in &transition.effects {
            let values = moment.range(value);
            self.store(target, values, &mut moment);
        }
        let process = transition.process;
        let now: Vec<Range> = self.owned[process].iter().map(|variable| moment.values[*variable]).collect();
        let before = self.at[process][transition.to].as_ref();
        let after: Vec<Range> = match before {
            Some(before) => before.iter().zip(&now).map(|(before, now)| self.grown(*before, before.or(*now))).collect(),
            None => now,
        };
        self.has_changed |= before != Some(&after);
        for (variable, values) in self.owned[process].iter().zip(&after) {
            self.anywhere[*variable] = self.anywhere[*variable].or(*values);
        }
        self.at[process][transition.to] = Some(after);
    }

    fn store(&mut self, place: &Place, values: Range, moment: &mut Moment) {
        let variable = place.variable;
        let values = wrapped(values, self.variables[variable].ty);
        match &place.index {
            None => moment.values[variable] = values,
            Some(Expression::Constant(index)) => {
                moment.elements.retain(|(array, element, _)| (*array, *element) != (variable, *index));
                moment.elements.push((variable, *index, values));
            }
            Some(_) => moment.elements.retain(|(array, ..)| *array != variable),
        }
        let after = self.grown(self.anywhere[variable], self.anywhere[variable].or(values));
        self.has_changed |= after != self.anywhere[variable];
        self.anywhere[variable] = after;
        if place.index.is_some() {
            moment.values[variable] = after;
        }
    }

    /// An interval that has become larger, made larger still in a hurry: then it grows only so often.
    fn grown(&self, before: Range, after: Range) -> Range {
        if !self.hurries || before == after {
            return after;
        }
        let magnitude = after.high.max(-1 - after.low).max(0) as u64 + 1;
        let most = magnitude.next_power_of_two() as i64;
        Range { low: if after.low < 0 { -most } else { 0 }, high: most - 1 }
    }
}

impl Moment {
    fn range(&self, expression: &Expression) -> Range {
        range_where(expression, &|variable, index| match index {
            Some(Expression::Constant(index)) => self.element(variable, *index),
            _ => self.values[variable],
        })
    }

    fn element(&self, array: VariableId, index: i32) -> Range {
        let known = self.elements.iter().find(|(of, element, _)| (*of, *element) == (array, index));
        known.map_or(self.values[array], |(_, _, values)| *values)
    }

    /// Takes it that the expression is true, or that it is not. False if that cannot be.
    fn assume(&mut self, expression: &Expression, truth: bool) -> bool {
        let range = self.range(expression);
        if range == (Range { low: 0, high: 0 }) && truth || !range.contains(0) && !truth {
            return false;
        }
        match expression {
            Expression::Unary { operator: Unary::Not, operand } => self.assume(operand, !truth),
            Expression::Binary { operator, operands, .. } => {
                let [left, right] = &**operands;
                match (operator, truth) {
                    (Binary::And, true) => self.assume(left, true) && self.assume(right, true),
                    (Binary::Or, false) => self.assume(left, false) && self.assume(right, false),
                    (Binary::Imply, false) => self.assume(left, true) && self.assume(right, false),
                    _ => match comparison(*operator, truth) {
                        Some(operator) => {
                            let (of_left, of_right) = (self.range(left), self.range(right));
                            self.narrow(left, operator, of_right) && self.narrow(right, mirrored(operator), of_left)
                        }
                        None => true,
                    },
                }
            }
            _ => self.narrow(expression, if truth { Binary::NotEqual } else { Binary::Equal }, Range { low: 0, high: 0 }),
        }
    }

    /// Takes it that an expression compares like this with some value of `other`. Says something of variables and elements only.
    fn narrow(&mut self, expression: &Expression, operator: Binary, other: Range) -> bool {
        let before = self.range(expression);
        let limits = match operator {
            Binary::Less => Range { low: i64::MIN, high: other.high - 1 },
            Binary::LessOrEqual => Range { low: i64::MIN, high: other.high },
            Binary::Greater => Range { low: other.low + 1, high: i64::MAX },
            Binary::GreaterOrEqual => Range { low: other.low, high: i64::MAX },
            Binary::Equal => other,
            Binary::NotEqual if other.low == other.high => Range {
                low: before.low + i64::from(before.low == other.low),
                high: before.high - i64::from(before.high == other.high),
            },
            _ => return true,
        };
        let after = before.and(limits);
        match expression {
            Expression::Variable(variable) => self.values[*variable] = after,
            Expression::Element { array, index, .. } => {
                if let Expression::Constant(index) = **index {
                    self.elements.retain(|(of, element, _)| (*of, *element) != (*array, index));
                    self.elements.push((*array, index, after));
                }
            }
            _ => {}
        }
        !after.is_empty()
    }
}

/// By variable: the process that alone writes it, if it is a scalar and there is one.
fn owners(transitions: &[Transition], variables: &[Variable]) -> Vec<Option<ProcessId>> {
    let mut writers: Vec<Vec<ProcessId>> = vec![Vec::new(); variables.len()];
    for transition in transitions {
        let targets = match &transition.action {
            Action::Receive { targets, .. } => targets.as_slice(),
            Action::Alone | Action::Send { .. } => &[],
        };
        for place in targets.iter().chain(transition.effects.iter().map(|effect| &effect.target)) {
            if !writers[place.variable].contains(&transition.process) {
                writers[place.variable].push(transition.process);
            }
        }
    }
    let owner = |(writers, variable): (&Vec<ProcessId>, &Variable)| match writers[..] {
        [process] if !variable.is_array => Some(process),
        _ => None,
    };
    writers.iter().zip(variables).map(owner).collect()
}

/// What a store leaves of these values.
fn wrapped(values: Range, ty: Type) -> Range {
    let all = Range::of_type(ty);
    if values.is_in(all) { values } else { all }
}

/// The comparison that holds if this one is true, or is not.
fn comparison(operator: Binary, truth: bool) -> Option<Binary> {
    Some(match (operator, truth) {
        (Binary::Less, true) | (Binary::GreaterOrEqual, false) => Binary::Less,
        (Binary::LessOrEqual, true) | (Binary::Greater, false) => Binary::LessOrEqual,
        (Binary::Greater, true) | (Binary::LessOrEqual, false) => Binary::Greater,
        (Binary::GreaterOrEqual, true) | (Binary::Less, false) => Binary::GreaterOrEqual,
        (Binary::Equal, true) | (Binary::NotEqual, false) => Binary::Equal,
        (Binary::NotEqual, true) | (Binary::Equal, false) => Binary::NotEqual,
        _ => return None,
    })
}

/// The same comparison with its sides exchanged.
fn mirrored(operator: Binary) -> Binary {
    match operator {
        Binary::Less => Binary::Greater,
        Binary::LessOrEqual => Binary::GreaterOrEqual,
        Binary::Greater => Binary::Less,
        Binary::GreaterOrEqual => Binary::LessOrEqual,
        other => other,
    }
}

fn size(expression: &Expression) -> usize {
    1 + match expression {
        Expression::Element { index: operand, .. } | Expression::Unary { operand, .. } => size(operand),
        Expression::Binary { operands, .. } => size(&operands[0]) + size(&operands[1]),
        Expression::Constant(_) | Expression::Variable(_) | Expression::At { .. } => 0,
    }
}
