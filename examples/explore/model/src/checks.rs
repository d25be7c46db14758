//! What is checked of every state that is reached.

use crate::interpreter::Fault;
use crate::ir::expression::{Binary, Unary};
use crate::ir::{Expression, Model};

/// What ends an exploration with a path.
#[derive(Clone, Debug, Default)]
pub struct Checks {
    /// States without any step.
    pub deadlocks: bool,
    pub conditions: Vec<Condition>,
}

/// A condition that must hold in every state.
#[derive(Clone, Debug)]
pub struct Condition {
    pub role: Role,
    /// As a person wrote it.
    pub text: String,
    /// The condition, or the negation of a goal: each is violated where this is 0.
    pub must_hold: Expression,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An assertion in the model's text.
    Assertion,
    Invariant,
    /// Looked for, rather than feared.
    Goal,
    /// Must be reachable from everywhere; in a state where it is not, it does not hold.
    Possible,
    /// What must happen again and again; in a component without it, it does not hold.
    Progress,
}

/// What is wrong with a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    Deadlock,
    /// Its steps, or conditions, cannot be evaluated.
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
            let text = model.source.piece(assertion.span).to_string();
            Condition { role: Role::Assertion, text, must_hold }
        });
        Self { deadlocks: false, conditions: conditions.collect() }
    }

    /// An invariant, or a goal.
    pub fn add(&mut self, role: Role, text: String, condition: Expression) {
        let must_hold = if role == Role::Goal { Expression::unary(Unary::Not, condition) } else { condition };
        self.conditions.push(Condition { role, text, must_hold });
    }

    /// What is found, in words.
    pub fn describe(&self, violation: &Violation, model: &Model) -> String {
        match violation {
            Violation::Deadlock => "deadlock: no step is possible".into(),
            Violation::Fault(fault) => match fault.transition {
                Some(_) => format!("fault at {}: {}", model.source.place(fault.span), fault.message(model)),
                None => format!("fault in a condition: {}", fault.message(model)),
            },
            Violation::Condition(at) => {
                let Condition { role, text, .. } = &self.conditions[*at];
                match role {
                    Role::Assertion => format!("assertion violated: {text}"),
                    Role::Invariant => format!("invariant violated: {text}"),
                    Role::Goal => format!("goal reached: {text}"),
                    Role::Possible => format!("from here on it is never reached: {text}"),
                    Role::Progress => format!("livelock: from here on there are steps for ever, and no progress: {text}"),
                }
            }
        }
    }
}

impl Violation {
    /// One word for what it is.
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
