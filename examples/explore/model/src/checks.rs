//! The checks that are evaluated in every state that is reached.

use crate::interpreter::Fault;
use crate::ir::expression::{Binary, Unary};
use crate::ir::{Expression, Model};
use crate::terms::Term;

/// The checks of an exploration. The first violation ends it with a path.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    /// Report states that have no step.
    pub deadlocks: bool,
    pub conditions: Vec<Condition>,
}

/// A condition that must hold in every state.
#[derive(Clone, Debug)]
pub struct Condition {
    pub role: Role,
    /// The condition as the user wrote it.
    pub text: String,
    /// The condition, or for a goal its negation. A state violates the condition if this expression is 0 there.
    pub must_hold: Expression,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An assertion in the model's text.
    Assertion,
    Invariant,
    /// A condition to find: reaching it ends the exploration.
    Goal,
    /// A condition that must be reachable from every state; a state from which it is not reachable violates it.
    Possible,
    /// A condition that must hold again and again; a component of the graph without such a state violates it.
    Progress,
}

/// A violation found in a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    Deadlock,
    /// A fault while evaluating the state's steps or the conditions.
    Fault(Box<Fault>),
    /// Index into [`Checks::conditions`].
    Condition(usize),
}

impl Checks {
    /// The model's assertions.
    pub fn of_model(model: &Model) -> Self {
        let conditions = model.assertions.iter().map(|assertion| {
            let at = Expression::At { process: assertion.process, location: assertion.location };
            let must_hold = Expression::binary(Binary::Imply, at, assertion.condition.clone(), assertion.span);
            let (process, text) = (&model.processes[assertion.process].name, model.source.in_one_line(assertion.span));
            let text = format!("{process}.{text} (line {})", assertion.span.line);
            Condition { role: Role::Assertion, text, must_hold }
        });
        Self { deadlocks: false, conditions: conditions.collect() }
    }

    /// Adds an invariant or a goal.
    pub fn add(&mut self, role: Role, text: String, condition: Expression) {
        let must_hold = if role == Role::Goal { Expression::unary(Unary::Not, condition) } else { condition };
        let text = text.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        self.conditions.push(Condition { role, text, must_hold });
    }

    /// Describes a violation in a state in words.
    pub fn describe(&self, violation: &Violation, model: &Model, state: &[u32]) -> String {
        match violation {
            Violation::Deadlock => "deadlock: no step is possible".into(),
            Violation::Fault(fault) => match fault.transition {
                Some(_) => format!("fault at {}: {}", model.source.place(fault.span), fault.message(model)),
                None => {
                    let fails =
                        |of: &&Condition| Term::of(&of.must_hold, model).value(model, state).err().as_ref() == Some(fault);
                    let text = self.conditions.iter().find(fails).map(|condition| &*condition.text);
                    let which = text.map_or_else(|| "a condition".into(), |text| format!("the condition `{text}`"));
                    format!("fault in {which}: {}", fault.message(model))
                }
            },
            Violation::Condition(at) => {
                let Condition { role, text, .. } = &self.conditions[*at];
                match role {
                    Role::Assertion => format!("assertion violated: {text}"),
                    Role::Invariant => format!("invariant violated: {text}"),
                    Role::Goal => format!("goal reached: {text}"),
                    Role::Possible => format!("from here on it can never be reached: {text}"),
                    Role::Progress => format!("livelock: from here on there are steps forever, but never progress: {text}"),
                }
            }
        }
    }
}

impl Violation {
    /// The kind of violation as one word.
    pub fn kind(&self, checks: &Checks) -> &'static str {
        match self {
            Self::Deadlock => "deadlock",
            Self::Fault(_) => "fault",
            Self::Condition(at) => match checks.conditions[*at].role {
                Role::Assertion => "assertion",
                Role::Invariant => "invariant",
                Role::Goal => "goal",
                Role::Possible => "never",
                Role::Progress => "livelock",
            },
        }
    }
}
