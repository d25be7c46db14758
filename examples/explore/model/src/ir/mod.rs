//! The intermediate form: what front ends make, and what is interpreted, compiled and explored.
//!
//! A model is a number of processes that run interleaved, each in one of its locations, over variables of fixed width. Everything
//! is resolved and explicit: names are only for people. The form has no more of any input language than it needs; what a language
//! has besides is expressed by its front end (a buffered channel is an array, a length, guards and assignments).
//!
//! # What a state is
//!
//! The location of each process and the value of each variable that some transition writes, packed into 32-bit words as the
//! model's [`Layout`] says. Bits that no field covers are 0, so equal states are equal vectors. Variables that nothing writes
//! keep their initial values and are no part of the state.
//!
//! # What a step is
//!
//! 1. A transition by itself ([`Action::Alone`]); or a sender and a receiver on one channel in two different
//!    processes, together. Nothing else moves. With k senders and m receivers enabled on a channel there are k * m steps.
//! 2. A transition is enabled if its process is in `from` and its guard is not 0; a pair if both are. All guards are evaluated in
//!    the old state: a guard never sees a value that is being received.
//! 3. If some process is in a [committed](Location::committed) location, only steps take place that move at least one process
//!    that is.
//! 4. Steps count with multiplicity: two that lead to the same state are two transitions, and so are two that change nothing.
//! 5. A state without any step is a deadlock.
//!
//! Besides, a model may have a [`Network`]: transition systems in tables, of which any number take a step together by a rule.
//!
//! # What a step does, in this order
//!
//! 1. The values to send are evaluated, all of them in the old state.
//! 2. They are stored, the first one first: wrapped to the type of the channel's field, if it has one, then stored in the
//!    receiver's target as by an assignment.
//! 3. The receiver moves to `to`; its effects follow, assignment after assignment, each seeing what was written before.
//! 4. The sender moves to `to`; its effects follow likewise. (A transition by itself does only this.)
//!
//! In an assignment the index of the target is evaluated first, then the value; then it is stored.
//!
//! # Numbers
//!
//! Expressions are of 32-bit two's complement integers, whatever the types of their variables; all operators wrap around
//! ([`expression`]). Only stores truncate: to the variable's [`Type`], wrapping around; a store that changes the value is counted
//! as an overflow, and is no error.
//!
//! # Faults
//!
//! An index outside its array and a division by zero are faults of the model: the state in which a guard or an effect of a step
//! has one is reported with the path to it, and exploration ends. Guards are evaluated in all processes that are in `from`, even
//! if no partner is there, and even if rule 3 keeps the step from taking place. `and`, `or` and `imply` evaluate their right side
//! only if it matters.

pub mod bounds;
pub mod expression;
pub mod layout;
pub mod network;
pub mod property;
pub mod range;
pub mod texts;

pub use expression::{Binary, Expression, Unary};
pub use layout::{Field, Layout};
pub use network::Network;
pub use property::Property;
pub use range::Range;
pub use texts::Texts;

/// Index of a process in [`Model::processes`].
pub type ProcessId = usize;
/// Index of a variable in [`Model::variables`].
pub type VariableId = usize;
/// Index of a channel in [`Model::channels`].
pub type ChannelId = usize;
/// Index of a transition in [`Model::transitions`].
pub type TransitionId = usize;
/// Index of a location in its [`Process::locations`]; its value in packed states.
pub type LocationId = usize;

/// Words of the longest state: the widest vectors of warpset's tables.
pub const MAX_WORDS: usize = 256;

/// The mark that some editors begin UTF-8 with.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A whole model, checked: every index is valid, every initial value fits its type.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Where it was read from, and what; for messages.
    pub source: Source,
    /// Those of no process first, then process by process, in the order of the source.
    pub variables: Vec<Variable>,
    pub processes: Vec<Process>,
    pub channels: Vec<Channel>,
    /// Process by process, in the order of the source.
    pub transitions: Vec<Transition>,
    pub assertions: Vec<Assertion>,
    /// Transition systems that take steps together, beside the processes.
    pub network: Option<Network>,
    /// The automaton of runs that must not be, if there is one: then states are [product states](property).
    pub property: Option<Property>,
    pub layout: Layout,
}

/// The text of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The file's name, as it was given.
    pub name: String,
    pub text: String,
}

/// A piece of the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Byte offsets; `end` is the first after it.
    pub start: u32,
    pub end: u32,
    /// The line of `start`, counted from 1.
    pub line: u32,
    /// The column of `start`, in characters, counted from 1.
    pub column: u32,
}

/// The values that a variable can hold: `bits` wide, 1 to 32, two's complement if signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    pub bits: u8,
    pub signed: bool,
}

/// A scalar, or an array with elements of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    /// The process that it is local to.
    pub process: Option<ProcessId>,
    pub ty: Type,
    /// An array, if only of one element.
    pub is_array: bool,
    /// Value or values in the initial state: one for a scalar, and as many as the array has elements.
    pub initial: Vec<i32>,
    /// Whether some transition writes it. If none does, it has no field in packed states.
    pub is_written: bool,
    /// What it can hold in a state that can be reached lies in here; [`bounds`] finds that.
    pub values: Range,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub name: String,
    pub locations: Vec<Location>,
    pub initial: LocationId,
    /// Its part of [`Model::transitions`].
    pub transitions: std::ops::Range<TransitionId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub name: String,
    /// See rule 3 of the steps.
    pub committed: bool,
}

/// A rendezvous channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    pub name: String,
    /// The values that go over it at a time.
    pub fields: Vec<MessageField>,
    /// The transitions that send on it, ascending.
    pub senders: Vec<TransitionId>,
    /// The transitions that receive on it, ascending.
    pub receivers: Vec<TransitionId>,
}

/// How a value goes over a rendezvous channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageField {
    /// The type that it is wrapped to, which counts as an overflow if it does not fit; `None` leaves it as it is.
    pub ty: Option<Type>,
    /// The receiver gets 1 if the wrapped value is not 0, and 0 otherwise.
    pub becomes_truth: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    pub process: ProcessId,
    pub from: LocationId,
    pub to: LocationId,
    /// `None` is always true.
    pub guard: Option<Expression>,
    pub action: Action,
    pub effects: Vec<Assignment>,
    pub span: Span,
}

/// With whom a transition takes place.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// With nobody.
    Alone,
    /// With a receiver on the channel; a value for each of its fields.
    Send { channel: ChannelId, values: Vec<Expression> },
    /// With a sender on the channel; a target for each of its fields.
    Receive { channel: ChannelId, targets: Vec<Place> },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    pub target: Place,
    pub value: Expression,
}

/// What can be stored to.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub variable: VariableId,
    /// Which element of an array; `None` for a scalar.
    pub index: Option<Expression>,
    pub span: Span,
}

/// A condition that must hold whenever a process is in a location.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    pub process: ProcessId,
    pub location: LocationId,
    pub condition: Expression,
    pub span: Span,
}

impl From<Option<Type>> for MessageField {
    fn from(ty: Option<Type>) -> Self {
        Self { ty, becomes_truth: false }
    }
}

impl Variable {
    /// A variable of which is not known yet what is done with it.
    pub fn new(name: String, process: Option<ProcessId>, ty: Type, is_array: bool, initial: Vec<i32>) -> Self {
        Self { name, process, ty, is_array, initial, is_written: false, values: Range::of_type(ty) }
    }
}

impl Type {
    /// 0 to 255.
    pub const BYTE: Self = Self { bits: 8, signed: false };
    /// -32768 to 32767.
    pub const INT: Self = Self { bits: 16, signed: true };
    /// All 32 bits.
    pub const WORD: Self = Self { bits: 32, signed: true };
    /// 0 and 1. What is stored is 0 or 1 before: its lowest bit is not whether a number is 0.
    pub const BOOLEAN: Self = Self { bits: 1, signed: false };

    /// What a store of `value` leaves in a variable of this type.
    pub fn wrap(self, value: i32) -> i32 {
        let unused = 32 - u32::from(self.bits);
        if self.signed { value << unused >> unused } else { ((value as u32) << unused >> unused) as i32 }
    }
}

impl Model {
    /// Whether rule 3 of the steps ever applies.
    pub fn has_committed_locations(&self) -> bool {
        self.processes.iter().flat_map(|process| &process.locations).any(|location| location.committed)
    }

    /// Label of a rule of the network; empty if there is no network.
    pub fn rule_label(&self, rule: network::RuleId) -> &str {
        self.network.as_ref().map_or("", |network| network.labels.get(network.label_of(rule)))
    }

    /// The packed initial state.
    pub fn initial_state(&self) -> Vec<u32> {
        let mut state = vec![0; self.layout.words];
        for (process, field) in self.processes.iter().zip(&self.layout.locations) {
            field.set(&mut state, 0, process.initial as i32);
        }
        for (variable, field) in self.variables.iter().zip(&self.layout.variables) {
            for (element, value) in variable.initial.iter().enumerate() {
                if let Some(field) = field {
                    field.set(&mut state, element, *value);
                }
            }
        }
        state
    }

    /// The location of a process in a packed state.
    pub fn location(&self, state: &[u32], process: ProcessId) -> LocationId {
        self.layout.locations[process].get(state, 0) as usize
    }

    /// The value of a variable (element 0 of a scalar) in a packed state.
    ///
    /// `element` must be below the variable's number of elements.
    pub fn value(&self, state: &[u32], variable: VariableId, element: usize) -> i32 {
        match self.layout.variables[variable] {
            Some(field) => field.get(state, element),
            None => self.variables[variable].initial[element],
        }
    }

    /// How a variable is called where processes may have variables of the same name: `x`, or `P.x`.
    pub fn full_name(&self, variable: VariableId) -> String {
        let Variable { name, process, .. } = &self.variables[variable];
        process.map_or_else(|| name.clone(), |process| format!("{}.{name}", self.processes[process].name))
    }
}

impl Source {
    /// A text as it lies in a file: without a byte order mark, and with U+FFFD where it is not UTF-8. No language has that
    /// character but in its comments, so it is an error elsewhere, with its place.
    pub fn of_bytes(name: String, bytes: &[u8]) -> Self {
        let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        Self { name, text: String::from_utf8_lossy(text).into_owned() }
    }

    /// The piece of text, as it is.
    pub fn piece(&self, span: Span) -> &str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// `file:line:column`
    pub fn place(&self, span: Span) -> String {
        format!("{}:{}:{}", self.name, span.line, span.column)
    }
}
