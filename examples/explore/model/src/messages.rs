//! The messages of steps: what a transition sends or receives on a channel, for those who show steps.

use crate::interpreter::Step;
use crate::ir::{Action, BufferId, Model, Operation};
use crate::terms::Term;

/// The message of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<'m> {
    pub channel: &'m str,
    pub kind: Kind,
    /// The signal that the message carries, if the language has signals and the channel's name does not include it. `None` for a
    /// message that was lost.
    pub signal: Option<&'m str>,
    /// The message's values, as its receiver gets them; empty for a message that was lost.
    pub values: Vec<i32>,
}

/// How a message passes through its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// From the step's sender to its receiver.
    Rendezvous,
    /// Into a buffer or from there.
    Buffered { buffer: BufferId, operation: Operation },
}

impl<'m> Message<'m> {
    /// The message as paths and charts show it: `vote(2, 1)`, or with a signal `go(1) on c`.
    pub fn text(&self) -> String {
        let values: Vec<String> = self.values.iter().map(i32::to_string).collect();
        let values = if values.is_empty() { String::new() } else { format!("({})", values.join(", ")) };
        match self.signal {
            Some(signal) => format!("{signal}{values} on {}", self.channel),
            None => format!("{}{values}", self.channel),
        }
    }

    /// The message of a step that leads from one packed state to another; `None` if the step uses no channel. A step uses at most
    /// one channel.
    pub fn of(model: &'m Model, step: Step, from: &[u32], to: &[u32]) -> Option<Self> {
        let Step::Transition { id, receiver } = step else { return None };
        match &model.transitions[id].action {
            Action::Send { channel, values } => {
                receiver?;
                let channel = &model.channels[*channel];
                let received = values.iter().zip(&channel.fields).map(|(value, field)| {
                    let sent = Term::of(value, model).value(model, from).ok()?;
                    Some(field.received(sent).0)
                });
                let values = received.collect::<Option<_>>()?;
                Some(Self { channel: &channel.name, kind: Kind::Rendezvous, signal: None, values })
            }
            Action::Buffered { buffer, operation } => {
                let (of, kind) = (&model.buffers[*buffer], Kind::Buffered { buffer: *buffer, operation: *operation });
                let (signal, values) = match operation {
                    Operation::Send => of.message(model, to, of.waiting(model, from)),
                    Operation::Receive => of.message(model, from, 0),
                    Operation::Lose => (None, Vec::new()),
                };
                Some(Self { channel: &of.name, kind, signal, values })
            }
            Action::Alone | Action::Receive { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dve::Dve;
    use crate::interpreter::{Interpreter, Scratch};
    use crate::ir::Source;
    use crate::slco::Slco;

    fn source(text: &str) -> Source {
        Source { name: "test".into(), text: text.into() }
    }

    /// The messages of the steps on a walk that takes step `ways[n]` of its n-th state: channel, kind, signal and values.
    fn messages(model: &Model, ways: &[usize]) -> Vec<String> {
        let (interpreter, mut state, mut found) = (Interpreter::new(model), model.initial_state(), Vec::new());
        for way in ways {
            let mut steps = Vec::new();
            interpreter.steps(&state, &mut Scratch::default(), |step, to: &[u32]| steps.push((step, to.to_vec()))).unwrap();
            let (step, to) = steps.swap_remove(*way);
            found.push(Message::of(model, step, &state, &to).map_or(
                "none".into(),
                |Message { channel, kind, signal, values }| {
                    let kind = match kind {
                        Kind::Rendezvous => "Rendezvous".into(),
                        Kind::Buffered { operation, .. } => format!("{operation:?}"),
                    };
                    format!("{kind} {channel} {} {values:?}", signal.unwrap_or("-"))
                },
            ));
            state = to;
        }
        found
    }

    #[test]
    fn a_message_has_the_values_that_its_receiver_gets() {
        let text = "channel {byte, byte} c; channel {byte} q[2]; channel {byte} d[1]; int n = 300;
            process A { state s, t, u; init s; trans s -> s { guard n < 302; sync q!n; effect n = n + 1; }, s -> t { sync c!{n, 1}; },
                t -> u {}; }
            process B { byte x, y; state s, t; init s; trans s -> t { sync c?{x, y}; }, t -> t { sync q?x; }; }
            system async;";
        let dve = Dve::read(source(text)).unwrap_or_else(|error| panic!("{error}"));
        let found = messages(&dve.model, &[0, 0, 0, 1, 0, 0]);
        // 300 is 44 in a byte; the queue gives the oldest message first.
        let expected =
            ["Send q - [44]", "Send q - [45]", "Rendezvous c - [46, 1]", "Receive q - [44]", "none", "Receive q - [45]"];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_message_in_a_buffer_has_a_signal_and_may_be_lost() {
        let text = "model m { classes
               P { variables Byte i ports X state machines S { initial A states B C
                   transitions A -> B { send go(1) to X } B -> C { send stop(2) to X } } }
               Q { variables Byte v ports Y state machines R { initial A states B
                   transitions A -> B { receive go(v) from Y } B -> A { receive stop(v) from Y } } }
             objects p : P(), q : Q()
             channels c(Byte) async[2] lossy from p.X to q.Y }";
        let slco = Slco::read(source(text)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            messages(&slco.model, &[0, 0, 0, 0]),
            ["Send c go [1]", "Send c stop [2]", "Receive c go [1]", "Receive c stop [2]"]
        );
        assert_eq!(messages(&slco.model, &[0, 1]), ["Send c go [1]", "Lose c - []"]);
    }
}
