//! The intermediate form of models: front ends produce it; the interpreter, code generation and exploration use it.
//!
//! A model is a set of processes that run interleaved, each in one of its locations, over variables of fixed width. Everything is
//! resolved and explicit: names serve only for display. The form has no more of any input language than it needs; front ends
//! express the other features of a language in it (a buffered channel is an array, a length, guards and assignments).
//!
//! # What a state is
//!
//! A state holds the location of each process and the value of each variable that some transition writes, packed into 32-bit
//! words as the model's [`Layout`] says. Bits that no field covers are 0, so equal states are equal vectors. Variables that
//! nothing writes keep their initial values and are not part of the state.
//!
//! # What a step is
//!
//! 1. A step is one transition by itself ([`Action::Alone`]), or a sender's and a receiver's transition on one channel in two
//!    different processes, together. No other process moves. With k senders and m receivers enabled on a channel there are k * m
//!    steps.
//! 2. A transition is enabled if its process is in `from` and its guard is not 0; a pair is enabled if both transitions are. All
//!    guards are evaluated in the old state: a guard never sees a value that is being received.
//! 3. If some process is in a [committed](Location::committed) location, every step must move at least one process that is in a
//!    committed location.
//! 4. Steps count with multiplicity: two transitions that lead to the same state are two steps, and so are two that change
//!    nothing.
//! 5. A state without any step is a deadlock.
//!
//! In addition, a model may have a [`Network`]: transition systems in tables. Any number of them take a step together by a rule.
//! And it may have a [`Net`], whose enabled transitions are steps.
//!
//! # What a step does, in this order
//!
//! 1. The values to send are all evaluated in the old state.
//! 2. These values are stored in their order: each is wrapped to the type of the channel's field, if it has one, then stored in
//!    the receiver's target as by an assignment.
//! 3. The receiver moves to `to`; its effects follow, assignment after assignment, each seeing what was written before.
//! 4. The sender moves to `to`; its effects follow in the same way. (A transition by itself does only this.)
//!
//! An assignment evaluates the index of the target, then the value, then stores the value.
//!
//! # Numbers
//!
//! Expressions are computed in 32-bit two's complement integers, whatever the types of their variables; all operators wrap around
//! ([`expression`]). Only stores truncate: to the variable's [`Type`], wrapping around. A store that changes the value is counted
//! as an overflow, and is not an error.
//!
//! # Faults
//!
//! An index outside its array and a division by zero are faults of the model. If a guard or an effect of a step has a fault,
//! exploration ends and reports the state with the path to it. Guards are evaluated in all processes that are in `from`, even if
//! no partner exists, and even if rule 3 forbids the step. `and`, `or` and `imply` evaluate their right side only if the left
//! side does not decide the result.

pub mod bounds;
pub mod expression;
pub mod facts;
pub mod layout;
pub mod net;
pub mod network;
pub mod property;
pub mod range;
pub mod texts;

pub use expression::{Binary, Expression, Unary};
pub use layout::{Field, Layout};
pub use net::Net;
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
/// Index of a location in its [`Process::locations`]; packed states hold this index.
pub type LocationId = usize;

/// Words of the longest state: the width of the widest vectors of warpset's tables.
pub const MAX_WORDS: usize = 256;

/// The byte order mark, which some editors put at the beginning of UTF-8 files.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A whole model, checked: every index is valid, every initial value fits its type.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Name and text of the model's source, for messages.
    pub source: Source,
    /// The variables that belong to no process, then process by process, in the order of the source.
    pub variables: Vec<Variable>,
    pub processes: Vec<Process>,
    pub channels: Vec<Channel>,
    /// Process by process, in the order of the source.
    pub transitions: Vec<Transition>,
    pub assertions: Vec<Assertion>,
    /// Transition systems that take steps together, beside the processes.
    pub network: Option<Network>,
    /// Places and transitions of a Petri net, beside the processes.
    pub net: Option<Net>,
    /// The automaton of the forbidden runs, if the model has a property; states are [product states](property) then.
    pub property: Option<Property>,
    pub layout: Layout,
}

/// The text of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The file's name, as the user gave it.
    pub name: String,
    pub text: String,
}

/// A piece of the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Byte offset of the first byte; `end` is the offset behind the last byte.
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
    /// The process whose local variable this is.
    pub process: Option<ProcessId>,
    pub ty: Type,
    /// Whether it is an array, possibly of one element.
    pub is_array: bool,
    /// Initial value of a scalar, or initial values of all elements of an array.
    pub initial: Vec<i32>,
    /// Whether some transition writes the variable. If none does, it has no field in packed states.
    pub is_written: bool,
    /// Range of the values that the variable can have in reachable states, computed by [`bounds`].
    pub values: Range,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub name: String,
    pub locations: Vec<Location>,
    pub initial: LocationId,
    /// The range of its transitions in [`Model::transitions`].
    pub transitions: std::ops::Range<TransitionId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub name: String,
    /// Whether rule 3 of the steps applies here.
    pub committed: bool,
}

/// A rendezvous channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    pub name: String,
    /// The values of one message.
    pub fields: Vec<MessageField>,
    /// The transitions that send on it, ascending.
    pub senders: Vec<TransitionId>,
    /// The transitions that receive on it, ascending.
    pub receivers: Vec<TransitionId>,
}

/// Conversion of one value that is sent over a rendezvous channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageField {
    /// Type that the value is wrapped to; a value that does not fit counts as an overflow. `None` leaves the value unchanged.
    pub ty: Option<Type>,
    /// The receiver gets 1 if the wrapped value is not 0, and 0 otherwise.
    pub becomes_truth: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    pub process: ProcessId,
    pub from: LocationId,
    pub to: LocationId,
    /// The guard; `None` is always true.
    pub guard: Option<Expression>,
    pub action: Action,
    pub effects: Vec<Assignment>,
    pub span: Span,
}

/// The partner of a transition.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Without a partner.
    Alone,
    /// With a receiver on the channel; one value for each field.
    Send { channel: ChannelId, values: Vec<Expression> },
    /// With a sender on the channel; one target for each field.
    Receive { channel: ChannelId, targets: Vec<StoreTarget> },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    pub target: StoreTarget,
    pub value: Expression,
}

/// The target of a store.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreTarget {
    pub variable: VariableId,
    /// Index of the element of an array; `None` for a scalar.
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
    /// A variable before analysis: not yet known to be written, and with all values of its type.
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
    /// 0 and 1. Front ends convert a value to 0 or 1 before it is stored, because wrapping keeps only its lowest bit.
    pub const BOOLEAN: Self = Self { bits: 1, signed: false };

    /// The value that a variable of this type has after a store of `value`.
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

    /// Name of a transition of the net; empty if there is no net.
    pub fn firing_name(&self, transition: TransitionId) -> &str {
        self.net.as_ref().map_or("", |net| &net.transitions[transition].name)
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

    /// The value of an element of a variable (element 0 of a scalar) in a packed state.
    ///
    /// `element` must be below the variable's number of elements.
    pub fn value(&self, state: &[u32], variable: VariableId, element: usize) -> i32 {
        match self.layout.variables[variable] {
            Some(field) => field.get(state, element),
            None => self.variables[variable].initial[element],
        }
    }

    /// Unambiguous name of a variable: `x`, or `P.x` for a variable of process P.
    pub fn full_name(&self, variable: VariableId) -> String {
        let Variable { name, process, .. } = &self.variables[variable];
        process.map_or_else(|| name.clone(), |process| format!("{}.{name}", self.processes[process].name))
    }
}

impl Source {
    /// Decodes the bytes of a file: removes a byte order mark, and puts U+FFFD where the bytes are not UTF-8. All languages
    /// accept that character only in comments, so elsewhere it is an error with its place.
    pub fn of_bytes(name: String, bytes: &[u8]) -> Self {
        let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        Self { name, text: String::from_utf8_lossy(text).into_owned() }
    }

    /// The text of a span.
    pub fn piece(&self, span: Span) -> &str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// Formats a place as `file:line:column`.
    pub fn place(&self, span: Span) -> String {
        format!("{}:{}:{}", self.name, span.line, span.column)
    }
}
