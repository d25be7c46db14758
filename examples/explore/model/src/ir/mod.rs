//! The intermediate form of models: front ends produce it; the interpreter, code generation and exploration use it.
//!
//! A model is a set of processes that run interleaved, each in one of its locations, over variables of fixed width. Everything is
//! resolved and explicit: names serve only for display. The form is no larger than the input languages require: front ends
//! express other features of a language in it. For example, a buffered channel becomes an array, a length, guards and
//! assignments; [`Action::Buffered`] says which operation these are, for the texts of steps.
//!
//! # What a state is
//!
//! A state holds the location of each process and the value of each variable that some transition writes, packed into 32-bit
//! words as the model's [`Layout`] says. Bits that no field covers are 0, so equal states are equal vectors. Variables that
//! nothing writes keep their initial values and are not part of the state.
//!
//! # What a step is
//!
//! 1. A step is one transition by itself ([`Action::Alone`] or [`Action::Buffered`]), or a sender's transition together with a
//!    receiver's transition on the same channel, in two different processes. No other process moves. If k senders and m receivers
//!    are enabled on a channel, there are k * m steps.
//! 2. A transition is enabled if its process is in `from` and its guard is not 0; a pair is enabled if both transitions are. All
//!    guards are evaluated in the old state: a guard never sees a value that is being received.
//! 3. If some process is in a [committed](Location::committed) location, every step must move at least one process that is in a
//!    committed location.
//! 4. Steps count with multiplicity: two transitions that lead to the same state are two steps, even if they change nothing.
//! 5. A state without any step is a deadlock.
//!
//! A model may also have a [`Network`]: transition systems in tables. Any number of them take a step together by a rule. And a
//! model may have a [`Net`], whose enabled transitions are steps.
//!
//! # What a step does, in this order
//!
//! 1. The values to send are all evaluated in the old state.
//! 2. These values are stored one after another: each is wrapped to the type of the channel's field, if the field has a type,
//!    then stored in the receiver's target as by an assignment.
//! 3. The receiver moves to `to`. Then its effects follow, one assignment after another; each sees what was written before.
//! 4. The sender moves to `to`. Then its effects follow in the same way. (A transition by itself does only this.)
//!
//! An assignment evaluates the index of the target, then the value, then stores the value.
//!
//! # Numbers
//!
//! Expressions are computed in 32-bit two's complement integers, whatever the types of their variables; all operators wrap around
//! ([`expression`]). Only stores truncate: they wrap the value to the variable's [`Type`]. A store that changes the value counts
//! as an overflow, which is not an error.
//!
//! # Faults
//!
//! An index outside its array and a division by zero are faults of the model. If a guard or an effect of a step has a fault,
//! exploration ends and reports the state with the path to it. The guards of all processes that are in `from` are evaluated, even
//! if a transition has no partner, and even if rule 3 forbids the step. `and`, `or` and `imply` evaluate their right side only if
//! the left side does not decide the result.

pub mod bounds;
pub mod channel;
pub mod expression;
pub mod facts;
pub mod ids;
pub mod layout;
pub mod model;
pub mod net;
pub mod network;
pub mod process;
pub mod property;
pub mod range;
pub mod source;
pub mod texts;
pub mod transition;
pub mod types;
pub mod variable;

pub use channel::{Buffer, Channel, MessageField, Operation};
pub use expression::{Binary, Expression, Unary};
pub use ids::{BufferId, ChannelId, LocationId, ProcessId, TransitionId, VariableId};
pub use layout::{Field, Layout, MAX_WORDS, Packing};
pub use model::{Constant, Model};
pub use net::Net;
pub use network::Network;
pub use process::{Location, Process};
pub use property::Property;
pub use range::Range;
pub use source::{Ignored, Source, Span};
pub use texts::Texts;
pub use transition::{Action, Assertion, Assignment, StoreTarget, Transition};
pub use types::Type;
pub use variable::Variable;
