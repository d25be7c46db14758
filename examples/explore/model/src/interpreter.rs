//! The interpreter computes the steps of a state exactly as `ir` defines them. It is the reference for every other engine, and it
//! explores models for which no code was compiled.

use crate::ir::ids::RuleId;
use crate::ir::net::{Firings, PlaceId};
use crate::ir::{Action, ChannelId, Expression, Field, MessageField, Model, ProcessId, Span, TransitionId, VariableId};
use crate::terms::{Store, Target, Term, Test};
use warpset_support::escaping;
use warpset_support::numbers::counted;

/// A step of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// A transition that acts alone, or a sender's transition together with its receiver's.
    Transition { id: TransitionId, receiver: Option<TransitionId> },
    /// A step by a rule of the network.
    Rule(RuleId),
    /// A firing of a transition of the net.
    Firing(TransitionId),
}

/// A fault: an operation that a model must not perform while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub what: Wrong,
    pub span: Span,
    /// The transition whose guard or effect has the fault; `None` if the fault is in a condition.
    pub transition: Option<TransitionId>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// An index outside the array.
    Index {
        array: VariableId,
        /// 0, or 1 for the second index of an array of two dimensions.
        dimension: usize,
        index: i32,
    },
    DivisionByZero,
    /// A place would get more tokens than the encoding of the net can hold. This is no fault of the net: the search must begin
    /// again with another encoding.
    Tokens {
        place: PlaceId,
    },
}

/// Transitions that leave a location. Each comes with the test that its guard begins with, if any.
type Leaving = Vec<(TransitionId, Option<Test>)>;

/// Finds the steps of a model's states.
pub struct Interpreter<'m> {
    model: &'m Model,
    /// Transitions, by process and location.
    leaving: Vec<Vec<Leaving>>,
    transitions: Vec<Resolved>,
    /// Guard of each move of the property's automaton.
    move_guards: Vec<Option<Term>>,
    has_committed_locations: bool,
    /// Transitions of the net.
    firings: Option<Firings>,
}

/// A transition whose variables have been resolved to fields of the state.
struct Resolved {
    process: ProcessId,
    guard: Option<Term>,
    partner: Partner,
    /// Field of the process's location, and the value of that field after the transition.
    location: Field,
    to: i32,
    effects: Vec<Store>,
}

enum Partner {
    Nobody,
    Receiver { channel: ChannelId, values: Vec<Term> },
    Sender { channel: ChannelId, targets: Vec<Target> },
}

/// Reusable memory for [`Interpreter::steps`].
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// Enabled transitions that act alone or send.
    leading: Vec<TransitionId>,
    /// Enabled transitions that receive, by channel.
    receiving: Vec<Vec<TransitionId>>,
    successor: Vec<u32>,
}

type Result<T> = std::result::Result<T, Box<Fault>>;

impl<'m> Interpreter<'m> {
    pub fn new(model: &'m Model) -> Self {
        let transitions: Vec<_> = (0..model.transitions.len()).map(|id| Resolved::of(id, model)).collect();
        let mut leaving: Vec<Vec<Leaving>> =
            model.processes.iter().map(|process| vec![Vec::new(); process.locations.len()]).collect();
        for (id, (transition, resolved)) in model.transitions.iter().zip(&transitions).enumerate() {
            let first_test = resolved.guard.as_ref().and_then(Term::first_test);
            leaving[transition.process][transition.from].push((id, first_test));
        }
        let moves = model.property.iter().flat_map(|property| &property.moves);
        let move_guards = moves.map(|of| of.guard.as_ref().map(|guard| Term::of(guard, model))).collect();
        let firings = model.net.as_ref().map(|net| Firings::of(net, &model.layout));
        let has_committed_locations = model.has_committed_locations();
        Self { model, leaving, transitions, move_guards, has_committed_locations, firings }
    }

    pub fn model(&self) -> &'m Model {
        self.model
    }

    /// Transitions of the net, if the model has one.
    pub fn firings(&self) -> Option<&Firings> {
        self.firings.as_ref()
    }

    /// Calls `visit` with each step of the state and the state that it leads to. Returns the number of stores that overflowed.
    ///
    /// # Errors
    ///
    /// The first fault in the guards and steps of the state. `visit` may have been called for some steps before it.
    pub fn steps(&self, state: &[u32], scratch: &mut Scratch, mut visit: impl FnMut(Step, &[u32])) -> Result<u64> {
        self.find_enabled(state, scratch)?;
        let Scratch { leading, receiving, successor } = scratch;
        let someone_is_committed =
            self.has_committed_locations && (0..self.model.processes.len()).any(|process| self.is_committed(state, process));
        let may_move = |process: ProcessId| !someone_is_committed || self.is_committed(state, process);
        let mut overflows = 0;
        for &id in &*leading {
            let transition = &self.transitions[id];
            match &transition.partner {
                Partner::Receiver { channel, .. } => {
                    for &receiver in &receiving[*channel] {
                        let partner = self.transitions[receiver].process;
                        if partner != transition.process && (may_move(transition.process) || may_move(partner)) {
                            overflows += self.take(id, Some(receiver), state, successor)?;
                            visit(Step::Transition { id, receiver: Some(receiver) }, successor);
                        }
                    }
                }
                _ => {
                    if may_move(transition.process) {
                        overflows += self.take(id, None, state, successor)?;
                        visit(Step::Transition { id, receiver: None }, successor);
                    }
                }
            }
        }
        if let Some(network) = &self.model.network {
            network.steps(&self.model.layout, state, successor, |rule, successor| visit(Step::Rule(rule), successor));
        }
        if let Some(firings) = &self.firings {
            firings.enabled(state, |firing| {
                if firing.faults(state) {
                    return Err(self.no_room(firing.transition, state));
                }
                successor.clear();
                successor.extend_from_slice(state);
                firing.fire(successor);
                visit(Step::Firing(firing.transition), successor);
                Ok(())
            })?;
        }
        Ok(overflows)
    }

    /// Evaluates an expression in a state. Resolves the expression each time: use [`Term`] to evaluate one in many states.
    ///
    /// # Errors
    ///
    /// A [`Fault`] whose `transition` is `None`.
    pub fn value(&self, expression: &Expression, state: &[u32]) -> Result<i32> {
        Term::of(expression, self.model).value(self.model, state)
    }

    /// Returns the fault of a firing that would put more tokens into a place than the encoding can hold.
    fn no_room(&self, transition: TransitionId, state: &[u32]) -> Box<Fault> {
        let net = self.model.net.as_ref().expect("the model has a net");
        let place = net.overflowing(&self.model.layout, state, transition);
        Box::new(Fault { what: Wrong::Tokens { place }, span: net.transitions[transition].span, transition: Some(transition) })
    }

    /// Whether a move of the property's automaton is enabled.
    ///
    /// # Errors
    ///
    /// A [`Fault`] whose `transition` is `None`.
    pub(crate) fn may_take(&self, number: usize, state: &[u32]) -> Result<bool> {
        self.move_guards[number].as_ref().map_or(Ok(true), |guard| Ok(guard.value(self.model, state)? != 0))
    }

    fn is_committed(&self, state: &[u32], process: ProcessId) -> bool {
        self.model.processes[process].locations[self.model.location(state, process)].committed
    }

    fn find_enabled(&self, state: &[u32], scratch: &mut Scratch) -> Result<()> {
        scratch.leading.clear();
        scratch.receiving.resize(self.model.channels.len(), Vec::new());
        scratch.receiving.iter_mut().for_each(Vec::clear);
        for (process, leaving) in self.leaving.iter().enumerate() {
            for &(id, first_test) in &leaving[self.model.location(state, process)] {
                // Most guards fail at this test.
                if first_test.is_some_and(|test| !test.holds(state)) {
                    continue;
                }
                let Resolved { guard, partner, .. } = &self.transitions[id];
                let is_enabled = match guard {
                    Some(guard) => guard.value(self.model, state).map_err(|fault| fault.of(id))? != 0,
                    None => true,
                };
                match (is_enabled, partner) {
                    (false, _) => {}
                    (true, Partner::Sender { channel, .. }) => scratch.receiving[*channel].push(id),
                    (true, Partner::Nobody | Partner::Receiver { .. }) => scratch.leading.push(id),
                }
            }
        }
        Ok(())
    }

    /// Writes the successor of `state` to `successor`. Returns the number of stores that overflowed.
    fn take(
        &self,
        leader_id: TransitionId,
        receiver: Option<TransitionId>,
        state: &[u32],
        successor: &mut Vec<u32>,
    ) -> Result<u64> {
        successor.clear();
        successor.extend_from_slice(state);
        let mut overflows = 0;
        if let (Some(id), Partner::Receiver { channel, values }) = (receiver, &self.transitions[leader_id].partner) {
            if let Partner::Sender { targets, .. } = &self.transitions[id].partner {
                for ((value, target), field) in values.iter().zip(targets).zip(&self.model.channels[*channel].fields) {
                    let value = value.value(self.model, state).map_err(|fault| fault.of(leader_id))?;
                    let (received, overflow) = field.received(value);
                    overflows += u64::from(overflow);
                    overflows += target.store(self.model, successor, |_| Ok(received)).map_err(|fault| fault.of(id))?;
                }
            }
            overflows += self.act(id, successor)?;
        }
        Ok(overflows + self.act(leader_id, successor)?)
    }

    /// Moves the transition's process and carries out its effects. Returns the number of stores that overflowed.
    fn act(&self, id: TransitionId, state: &mut [u32]) -> Result<u64> {
        let Resolved { location, to, effects, .. } = &self.transitions[id];
        location.set(state, 0, *to);
        let mut overflows = 0;
        for Store { target, value } in effects {
            let value = |state: &[u32]| value.value(self.model, state);
            overflows += target.store(self.model, state, value).map_err(|fault| fault.of(id))?;
        }
        Ok(overflows)
    }
}

impl Resolved {
    fn of(id: TransitionId, model: &Model) -> Self {
        let of = &model.transitions[id];
        let terms = |all: &[Expression]| all.iter().map(|expression| Term::of(expression, model)).collect();
        Self {
            process: of.process,
            guard: of.guard.as_ref().map(|guard| Term::of(guard, model)),
            partner: match &of.action {
                Action::Alone | Action::Buffered { .. } => Partner::Nobody,
                Action::Send { channel, values } => Partner::Receiver { channel: *channel, values: terms(values) },
                Action::Receive { channel, targets } => {
                    let targets = targets.iter().map(|target| Target::of(target, model)).collect();
                    Partner::Sender { channel: *channel, targets }
                }
            },
            location: model.layout.locations[of.process],
            to: of.to as i32,
            effects: of.effects.iter().map(|effect| Store::of(effect, model)).collect(),
        }
    }
}

impl MessageField {
    /// Returns the value that a receiver gets when `value` is sent, and whether `value` did not fit.
    pub fn received(self, value: i32) -> (i32, bool) {
        let sent = self.ty.map_or(value, |ty| ty.wrap(value));
        (if self.becomes_truth { i32::from(sent != 0) } else { sent }, sent != value)
    }
}

impl Fault {
    fn of(mut self: Box<Self>, transition: TransitionId) -> Box<Self> {
        self.transition = Some(transition);
        self
    }

    /// Describes the fault in words.
    pub fn message(&self, model: &Model) -> String {
        match self.what {
            Wrong::Index { array, dimension, index } => {
                let (of, name) = (&model.variables[array], model.full_name(array));
                let elements = of.initial.len();
                let counted = |number: usize, one: &str| counted(number as u64, one);
                match (of.columns, dimension) {
                    (None, _) => format!("the array {name} has {}, but its index is {index}", counted(elements, "element")),
                    (Some(columns), 0) => {
                        format!("the array {name} has {}, but its first index is {index}", counted(elements / columns, "row"))
                    }
                    (Some(columns), _) => {
                        let columns = counted(columns, "element");
                        format!("a row of the array {name} has {columns}, but its second index is {index}")
                    }
                }
            }
            Wrong::DivisionByZero => "division by zero".into(),
            Wrong::Tokens { place } => {
                let net = model.net.as_ref().expect("the model has a net");
                let (name, capacity) = (escaping::line(&net.places[place].name), net.capacity(place));
                format!("the place {name} gets more tokens than the {capacity} for which the state has room")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dve::Dve;
    use crate::ir::Source;

    fn read(text: &str) -> Dve {
        Dve::read(Source { name: "test".into(), text: text.into() }).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Returns the values of `expressions` in each successor of a state.
    fn successors(dve: &Dve, state: &[u32], expressions: &[&str]) -> Vec<Vec<i32>> {
        let interpreter = Interpreter::new(&dve.model);
        let mut found = Vec::new();
        let values = |_, successor: &[u32]| found.push(values(dve, successor, expressions));
        interpreter.steps(state, &mut Scratch::default(), values).unwrap();
        found
    }

    fn values(dve: &Dve, state: &[u32], expressions: &[&str]) -> Vec<i32> {
        let interpreter = Interpreter::new(&dve.model);
        let value = |text: &&str| {
            let condition = dve.condition(&Source { name: String::new(), text: (*text).into() }).unwrap().0;
            interpreter.value(&condition, state).unwrap()
        };
        expressions.iter().map(value).collect()
    }

    /// Stores the value of `expression` in an `int`. Returns the stored value and the number of stores that overflowed.
    fn stored(declarations: &str, expression: &str) -> Result<(i32, u64)> {
        let text = format!(
            "{declarations} int r; process P {{ state a, b; init a; trans a -> b {{ effect r = {expression}; }}; }} system async;"
        );
        let dve = read(&text);
        let interpreter = Interpreter::new(&dve.model);
        let mut result = 0;
        let overflows = interpreter.steps(&dve.model.initial_state(), &mut Scratch::default(), |_, successor| {
            result = values(&dve, successor, &["r"])[0];
        })?;
        Ok((result, overflows))
    }

    #[test]
    fn expressions_have_the_values_of_c() {
        for (expression, value) in [
            ("x - 1 < 0", 1), // evaluated in 32 bits, though x is a byte
            ("9 - 3 - 2", 4),
            ("9 - x - 3 - 2", 4),
            ("1 or x and x", 1),
            ("x and 1 or 1", 1),
            ("y or x and x", 1),
            ("not x + 1", 2),
            ("not (x + 1)", 0),
            ("-7 / 2 * 10 + -7 % 2", -31),
            ("(0 - y) / 2 * 10 + (0 - y) % 2", -31),
            ("x + 3 == 3 & 2", 0),
            ("(x == 0) * 4", 4),
            ("1 | 6 ^ 3 & 5", 7), // 4 if evaluated from left to right
            ("1 << 3 + 1", 16),
            ("-1 >> 1", -1),
            ("y << 1 < 15", 1),
            ("~x", -1),
            ("!x", 1),
            ("- - y", 7),
            ("x imply y", 1),
            ("y imply x", 0),
            ("true + true - false", 2),
            ("y != 7 || y >= 7 && y <= 7", 1),
            ("a[1] + a", 12), // without an index: element 0
            ("a[a[2]]", 5),
            ("P.a * 2 + P.b", 1), // P has moved before its effects
            ("LIMIT", 300),
        ] {
            let declarations = "const int LIMIT = 300; byte x, y = 7, a[3] = {5, 7, 0};";
            assert_eq!(stored(declarations, expression), Ok((value, 0)), "{expression}");
        }
    }

    #[test]
    fn right_sides_that_do_not_matter_are_not_evaluated() {
        for expression in ["x and 1 / x", "not x or a[x - 1]", "x imply a[9]"] {
            stored("byte x, a[2];", expression).unwrap();
        }
        for expression in ["1 / x", "1 % x", "y and 1 / x", "a[2]", "a[x - 1]", "y imply a[2]"] {
            stored("byte x, y = 1, a[2];", expression).unwrap_err();
        }
    }

    #[test]
    fn stores_wrap_and_are_counted() {
        for (expression, value, overflows) in [
            ("32767", 32767, 0),
            ("32768", -32768, 1),
            ("-32768", -32768, 0),
            ("65536 + 5", 5, 1),
            ("2147483647 + 2147483647", -2, 0),
        ] {
            assert_eq!(stored("", expression), Ok((value, overflows)), "{expression}");
        }
        let dve = read("byte b = 255; process P { state a; init a; trans a -> a { effect b = b + 2; }; } system async;");
        assert_eq!(successors(&dve, &dve.model.initial_state(), &["b"]), [[1]]);
    }

    #[test]
    fn faults_say_where_they_are() {
        let fault = stored("byte a[2], i = 2;", "3 + a[i]").unwrap_err();
        assert_eq!((fault.what, fault.transition), (Wrong::Index { array: 0, dimension: 0, index: 2 }, Some(0)));
        assert_eq!((fault.span.line, fault.span.column), (1, 88));
        let fault = stored("byte z;", "1 + 4 % z").unwrap_err();
        assert_eq!(fault.what, Wrong::DivisionByZero);
    }

    #[test]
    fn assignments_are_sequential() {
        let text = "byte x = 1, y, a[3]; process P { state s; init s; trans s -> s { effect x = x + 1, y = x, a[x] = y + 1; }; } system async;";
        let dve = read(text);
        assert_eq!(successors(&dve, &dve.model.initial_state(), &["x", "y", "a[2]"]), [[2, 2, 3]]);
    }

    #[test]
    fn senders_and_receivers_meet_in_pairs() {
        let text = "channel c; byte order, g;
            process A { byte x; state s, t; init s; trans s -> t { guard g == 0; sync c!5; effect order = order * 10 + 1; }, s -> t { sync c?x; }; }
            process B { byte x; state s, t; init s; trans s -> t { sync c!7; }, s -> t { guard x == 0; sync c?x; effect order = order * 10 + x; }; }
            process C { byte x[2], i; state s, t; init s; trans s -> t { sync c?x[i]; effect i = 1, g = A.t; }; }
            system async;";
        let dve = read(text);
        // A process does not synchronise with itself. The receiver's effects come before the sender's, and still see the sender
        // in its old location.
        let names = ["A.x", "B.x", "C.x[0]", "C.i", "g", "order", "A.t + B.t * 2 + C.t * 4"];
        let mut found = successors(&dve, &dve.model.initial_state(), &names);
        found.sort();
        assert_eq!(
            found,
            [
                vec![0, 0, 5, 1, 0, 1, 5],  // A to C
                vec![0, 0, 7, 1, 0, 0, 6],  // B to C
                vec![0, 5, 0, 0, 0, 51, 3], // A to B
                vec![7, 0, 0, 0, 0, 0, 3],  // B to A
            ]
        );
    }

    #[test]
    fn typed_channels_wrap_what_is_sent() {
        let text = "channel {byte, int} c[0]; int x, y; process A { state s; init s; trans s -> s { sync c!{300, 300}; }; }
            process B { state s; init s; trans s -> s { sync c?{x, y}; }; } system async;";
        let dve = read(text);
        assert_eq!(successors(&dve, &dve.model.initial_state(), &["x", "y"]), [[44, 300]]);
    }

    /// Message values are computed in the old state, and so are the locations of processes.
    #[test]
    fn messages_are_of_the_old_state() {
        for capacity in [0, 1] {
            let text = format!(
                "channel {{int}} c[{capacity}]; int x[3]; process A {{ byte n = 5; state s, t; init s;
                    trans s -> t {{ sync c!A.s * 20 + A.t * 10 + n; effect n = 7; }}; }}
                process B {{ state u, v; init u; trans u -> v {{ sync c?x[B.u * 2 + B.v]; }}; }} system async;"
            );
            let dve = read(&text);
            let interpreter = Interpreter::new(&dve.model);
            let mut state = dve.model.initial_state();
            // Without a buffer, sending and receiving are one step; with a buffer they are two steps.
            for _ in 0..=capacity {
                let mut next = Vec::new();
                interpreter.steps(&state, &mut Scratch::default(), |_, successor| next.push(successor.to_vec())).unwrap();
                assert_eq!(next.len(), 1);
                state = next.remove(0);
            }
            assert_eq!(values(&dve, &state, &["x[0]", "x[1]", "x[2]", "A.n"]), [0, 0, 25, 7], "capacity {capacity}");
        }
    }

    #[test]
    fn buffers_are_queues() {
        let text = "channel {byte} c[2]; byte n, x, y; process A { state s; init s;
            trans s -> s { guard n < 3; sync c!n + 1; effect n = n + 1; }, s -> s { sync c?x; effect y = x; }; } system async;";
        let dve = read(text);
        let names = ["n", "x", "y"];
        let mut state = dve.model.initial_state();
        let interpreter = Interpreter::new(&dve.model);
        let mut go = |which: usize| {
            let (mut found, mut next) = (Vec::new(), Vec::new());
            interpreter.steps(&state, &mut Scratch::default(), |_, successor| next.push(successor.to_vec())).unwrap();
            found.append(&mut next);
            let count = found.len();
            state = found.swap_remove(which);
            (count, values(&dve, &state, &names))
        };
        // Enabled steps: only the send while the buffer is empty, then both, and only the receive while the buffer is full.
        assert_eq!(go(0), (1, vec![1, 0, 0]));
        assert_eq!(go(0), (2, vec![2, 0, 0]));
        assert_eq!(go(0), (1, vec![2, 1, 1]));
        assert_eq!(go(0), (2, vec![3, 1, 1]));
        assert_eq!(go(0), (1, vec![3, 2, 2]));
        assert_eq!(go(0), (1, vec![3, 3, 3]));
        // Elements behind the last message are reset to 0.
        let arrays = dve.model.variables.iter().filter(|variable| variable.name.starts_with("c"));
        assert_eq!(arrays.count(), 2);
        let buffer = dve.model.variables.iter().position(|variable| variable.name == "c[0]").unwrap();
        assert_eq!([0, 1].map(|element| dve.model.value(&state, buffer, element)), [0, 0]);
    }

    #[test]
    fn committed_processes_go_first() {
        let text = "channel c; process A { state s, t; init s; commit s; trans s -> t {}, s -> t { sync c!; }; }
            process B { state s, t; init s; trans s -> t {}, s -> t { sync c?; }; } system async;";
        let dve = read(text);
        let state = dve.model.initial_state();
        let mut found = successors(&dve, &state, &["A.t", "B.t"]);
        found.sort();
        assert_eq!(found, [[1, 0], [1, 1]]);
        // A committed process that cannot move stops all other processes.
        let text = text.replace("s -> t {}, s -> t { sync c!; }", "s -> t { guard false; }");
        assert!(successors(&read(&text), &state, &[]).is_empty());
    }

    #[test]
    fn what_is_not_written_takes_no_room() {
        let dve = read("byte a[300] = {7}, x; process P { state s; init s; trans s -> s { effect x = a[0]; }; } system async;");
        assert_eq!(dve.model.layout.words, 1);
        assert_eq!(successors(&dve, &dve.model.initial_state(), &["x"]), [[7]]);
    }
}
