//! Finds the values that variables can ever have, so that states take no more bits than they need.
//!
//! The method is abstract interpretation with intervals (Cousot and Cousot 1977). A scalar that only one process writes has an
//! The method is abstract interpretation with intervals (Cousot and Cousot 1977). A scalar that only one process writes has an
//! interval for each location of that process. Every other variable has one interval, and so has an array as a whole. Transitions
//! are evaluated until nothing changes. A transition is evaluated where its guard can hold, and the comparisons in the guard
//! narrow the intervals of the variables. The transition's stores widen the intervals of their targets. At its end, it widens the
//! intervals of the location that it leads to. A store that may overflow widens its target to all values of the type. A
//! transition is evaluated again only if an interval that it starts from has changed.
//!
//! The intervals are sound: every reachable state has its values in them, whatever the search does. They are also closed under
//! steps: if the values of a state are in the intervals of its locations, then the values of each successor are in the intervals
//! of the successor's locations ([`Intervals`]).

use super::facts::{Facts, wrapped};
use super::range::Range;
use super::{
    Action, Assignment, Channel, Expression, Field, LocationId, MessageField, Model, Process, ProcessId, StoreTarget, Transition,
    TransitionId, Variable, VariableId,
};
use std::collections::VecDeque;

/// Work after which intervals grow in larger steps, counted in parts of expressions and variables visited: some hundredths of a
/// second.
const PATIENCE: usize = 2_000_000;

/// Work after which the analysis gives up, and variables get all values of their types: one or two seconds.
const MOST_WORK: usize = 50 * PATIENCE;

/// Computes the `values` of all variables.
pub fn bound(processes: &[Process], channels: &[Channel], transitions: &[Transition], variables: &mut [Variable]) {
    let found = ReachableFacts::new(processes, channels, transitions, variables).run(MOST_WORK);
    let found = found.map(|search| search.anywhere);
    for (number, variable) in variables.iter_mut().enumerate() {
        variable.values = found.as_ref().map_or(Range::of_type(variable.ty), |found| found[number]);
    }
}

/// The intervals of a model. Generated code relies on them: it does not check an index that they show to be inside its array, and
/// does not count overflows that they show to be impossible. So a state from a file must be checked before such code gets it.
pub struct Intervals<'m> {
    model: &'m Model,
    /// Intervals of the variables that a process owns, by process and location; `None` if the process never reaches the location.
    at: Vec<Vec<Option<Vec<Range>>>>,
    /// By process, the variables that only this process writes.
    owned: Vec<Vec<VariableId>>,
    /// Mask of each word: the bits that belong to some field.
    used: Vec<u32>,
}

impl<'m> Intervals<'m> {
    pub fn of(model: &'m Model) -> Self {
        let Model { processes, channels, transitions, variables, layout, .. } = model;
        let (at, owned) = match ReachableFacts::new(processes, channels, transitions, variables).run(MOST_WORK) {
            Some(ReachableFacts { at, owned, .. }) => (at, owned),
            // The analysis gave up: in every location, each variable may have all values of its type.
            None => {
                let anywhere = |process: &Process| vec![Some(Vec::new()); process.locations.len()];
                (processes.iter().map(anywhere).collect(), vec![Vec::new(); processes.len()])
            }
        };
        let mut used = vec![0; layout.words];
        let mut cover = |field: &Field, elements: usize| (0..elements).for_each(|element| field.set(&mut used, element, -1));
        layout.locations.iter().for_each(|field| cover(field, 1));
        for (variable, field) in variables.iter().zip(&layout.variables) {
            if let Some(field) = field {
                cover(field, variable.initial.len());
            }
        }
        Self { model, at, owned, used }
    }

    /// Facts about all reachable states in which these processes are in these locations; `None` if there is no such state.
    pub fn facts_at(&self, locations: impl Iterator<Item = (ProcessId, LocationId)>) -> Option<Facts> {
        let mut facts = Facts::of(self.model);
        for (process, location) in locations {
            let here = self.at[process][location].as_ref()?;
            self.owned[process].iter().zip(here).for_each(|(variable, values)| facts.values[*variable] = *values);
        }
        Some(facts)
    }

    /// Describes the first part of a state that is outside the intervals; `None` if the whole state is inside. `state` must have
    /// as many words as the model's states.
    pub fn strange(&self, state: &[u32]) -> Option<String> {
        let model = self.model;
        let outside = |variable: VariableId, value: i32, values: Range| {
            let name = model.full_name(variable);
            (!values.contains(value.into())).then(|| format!("{name} is {value}, but must be {} to {}", values.low, values.high))
        };
        let of_process = |(id, process): (usize, &Process)| {
            let location = model.location(state, id);
            let Some(here) = self.at[id].get(location) else {
                let (name, count) = (&process.name, process.locations.len());
                return Some(format!("process {name} is in state number {location}, but has {count} states"));
            };
            let Some(here) = here else {
                return Some(format!(
                    "process {} is in {}, which it cannot reach",
                    process.name, process.locations[location].name
                ));
            };
            let owned = self.owned[id].iter().zip(here);
            owned.into_iter().find_map(|(variable, values)| outside(*variable, model.value(state, *variable, 0), *values))
        };
        let of_variable = |(id, variable): (usize, &Variable)| {
            let elements = if variable.is_written { variable.initial.len() } else { 0 };
            (0..elements).find_map(|element| outside(id, model.value(state, id, element), variable.values))
        };
        let unused = || {
            let word = state.iter().zip(&self.used).position(|(word, used)| word & !used != 0)?;
            Some(format!("word {word} is {:#x}, but only the bits {:#x} are used", state[word], self.used[word]))
        };
        let found = model.processes.iter().enumerate().find_map(of_process);
        found.or_else(|| model.variables.iter().enumerate().find_map(of_variable)).or_else(unused)
    }
}

/// Facts about all states that are known to be reachable so far.
struct ReachableFacts<'m> {
    transitions: &'m [Transition],
    variables: &'m [Variable],
    channels: &'m [Channel],
    /// By process and location, the intervals of all variables that the process owns, in the order of `owned`. `None` if no way
    /// to the location is known.
    at: Vec<Vec<Option<Vec<Range>>>>,
    /// The values of each variable over all locations of its owner.
    anywhere: Vec<Range>,
    /// Values sent, by channel and field; `None` if nothing is sent.
    sent: Vec<Vec<Option<Range>>>,
    /// The variables that a process owns, by process.
    owned: Vec<Vec<VariableId>>,
    /// By transition, the variables that it reads and its process does not own.
    reads: Vec<Vec<VariableId>>,
    /// Transitions to evaluate again when an interval grows. `leaving`: by process and location, the transitions that leave the
    /// location. `readers`: by variable, the transitions that read it while their process does not own it. `receivers`: by
    /// channel, the transitions that receive from it.
    leaving: Vec<Vec<Vec<TransitionId>>>,
    readers: Vec<Vec<TransitionId>>,
    receivers: Vec<Vec<TransitionId>>,
    waiting: Waiting,
    /// Whether intervals grow in larger steps: to the next power of two.
    hurries: bool,
}

/// Queue of transitions to evaluate, each at most once.
#[derive(Default)]
struct Waiting {
    queue: VecDeque<TransitionId>,
    has: Vec<bool>,
}

impl Waiting {
    fn add(&mut self, transitions: &[TransitionId]) {
        for transition in transitions {
            if !std::mem::replace(&mut self.has[*transition], true) {
                self.queue.push_back(*transition);
            }
        }
    }

    fn take(&mut self) -> Option<TransitionId> {
        let transition = self.queue.pop_front()?;
        self.has[transition] = false;
        Some(transition)
    }
}

impl<'m> ReachableFacts<'m> {
    fn new(processes: &[Process], channels: &'m [Channel], transitions: &'m [Transition], variables: &'m [Variable]) -> Self {
        let owners = owners(transitions, variables);
        let anywhere: Vec<Range> =
            variables.iter().map(|variable| Range::of_values(variable.initial.iter().map(|value| i64::from(*value)))).collect();
        let mut owned: Vec<Vec<VariableId>> = vec![Vec::new(); processes.len()];
        for (variable, owner) in owners.iter().enumerate() {
            if let Some(process) = owner {
                owned[*process].push(variable);
            }
        }
        let mut at: Vec<Vec<Option<Vec<Range>>>> = processes.iter().map(|process| vec![None; process.locations.len()]).collect();
        for (id, process) in processes.iter().enumerate() {
            at[id][process.initial] = Some(owned[id].iter().map(|variable| anywhere[*variable]).collect());
        }
        let sent = channels.iter().map(|channel| vec![None; channel.fields.len()]).collect();
        let mut leaving: Vec<Vec<Vec<TransitionId>>> =
            processes.iter().map(|process| vec![Vec::new(); process.locations.len()]).collect();
        let (mut readers, mut receivers) = (vec![Vec::new(); variables.len()], vec![Vec::new(); channels.len()]);
        let mut reads = Vec::with_capacity(transitions.len());
        for (id, transition) in transitions.iter().enumerate() {
            leaving[transition.process][transition.from].push(id);
            if let Action::Receive { channel, .. } = &transition.action {
                receivers[*channel].push(id);
            }
            let mut read = Vec::new();
            read_by(transition, &mut |variable| read.push(variable));
            read.sort_unstable();
            read.dedup();
            read.retain(|variable| owners[*variable] != Some(transition.process));
            read.iter().for_each(|variable| readers[*variable].push(id));
            reads.push(read);
        }
        let mut waiting = Waiting { queue: VecDeque::new(), has: vec![false; transitions.len()] };
        processes.iter().enumerate().for_each(|(id, process)| waiting.add(&leaving[id][process.initial]));
        Self {
            transitions,
            variables,
            channels,
            at,
            anywhere,
            sent,
            owned,
            reads,
            leaving,
            readers,
            receivers,
            waiting,
            hurries: false,
        }
    }

    /// Evaluates transitions until nothing changes. Returns `None` if that takes more work than `most_work`.
    fn run(mut self, most_work: usize) -> Option<Self> {
        let mut facts = Facts { values: self.anywhere.clone(), elements: Vec::new() };
        let size_of = |transition: &Transition| {
            let effects = transition.effects.iter().map(|effect| effect.value.size());
            1 + transition.guard.as_ref().map_or(0, Expression::size) + effects.sum::<usize>()
        };
        let sizes: Vec<usize> = self.transitions.iter().map(size_of).collect();
        let mut work = 0;
        while let Some(id) = self.waiting.take() {
            work += sizes[id] + self.owned[self.transitions[id].process].len() + self.reads[id].len();
            if work > most_work {
                return None;
            }
            self.hurries = work > PATIENCE;
            if self.begin(id, &mut facts) {
                self.carry_out(id, &mut facts);
            }
        }
        Some(self)
    }

    /// Sets `facts` to the facts that hold when the transition begins. Returns false if the transition cannot begin.
    fn begin(&self, id: TransitionId, facts: &mut Facts) -> bool {
        let transition = &self.transitions[id];
        let Some(here) = self.at[transition.process][transition.from].as_ref() else { return false };
        self.reset(id, facts);
        for (variable, values) in self.owned[transition.process].iter().zip(here) {
            facts.values[*variable] = *values;
        }
        transition.guard.as_ref().is_none_or(|guard| facts.assume(guard, true))
    }

    /// Resets variables that the process does not own to their values over all locations.
    fn reset(&self, id: TransitionId, facts: &mut Facts) {
        facts.elements.clear();
        for variable in &self.reads[id] {
            facts.values[*variable] = self.anywhere[*variable];
        }
    }

    fn carry_out(&mut self, id: TransitionId, facts: &mut Facts) {
        let transition = &self.transitions[id];
        match &transition.action {
            Action::Alone | Action::Buffered { .. } => {}
            Action::Send { channel, values } => {
                let fields = self.channels[*channel].fields.iter();
                let received = |(value, field): (&Expression, &MessageField)| {
                    let sent = facts.range(value);
                    let sent = field.ty.map_or(sent, |ty| wrapped(sent, ty));
                    if field.becomes_truth { sent.truth() } else { sent }
                };
                let values: Vec<Range> = values.iter().zip(fields).map(received).collect();
                for (field, values) in values.into_iter().enumerate() {
                    let before = self.sent[*channel][field];
                    let after = before.map_or(values, |before| self.grown(before, before.or(values)));
                    if before != Some(after) {
                        self.waiting.add(&self.receivers[*channel]);
                    }
                    self.sent[*channel][field] = Some(after);
                }
                // The receiver has acted meanwhile, so what the guard implied about variables that this process does not own may
                // no longer hold.
                self.reset(id, facts);
            }
            Action::Receive { channel, targets } => {
                for (field, target) in targets.iter().enumerate() {
                    let Some(values) = self.sent[*channel][field] else { return };
                    self.store(target, values, facts);
                }
            }
        }
        for Assignment { target, value } in &transition.effects {
            let values = facts.range(value);
            self.store(target, values, facts);
        }
        self.arrive(transition, facts);
    }

    /// Ends the transition: widens the intervals of its target location by the values of the process's variables.
    fn arrive(&mut self, transition: &Transition, facts: &Facts) {
        let (process, to) = (transition.process, transition.to);
        let now = self.owned[process].iter().map(|variable| facts.values[*variable]);
        let before = self.at[process][to].as_ref();
        let after: Vec<Range> = match before {
            Some(before) => before.iter().zip(now).map(|(before, now)| self.grown(*before, before.or(now))).collect(),
            None => now.collect(),
        };
        if before != Some(&after) {
            self.waiting.add(&self.leaving[process][to]);
            for (number, values) in after.iter().enumerate() {
                self.widen(self.owned[process][number], *values);
            }
            self.at[process][to] = Some(after);
        }
    }

    /// Widens the values of a variable over all locations.
    fn widen(&mut self, variable: VariableId, values: Range) {
        let before = self.anywhere[variable];
        let after = self.grown(before, before.or(values));
        if after != before {
            self.waiting.add(&self.readers[variable]);
            self.anywhere[variable] = after;
        }
    }

    fn store(&mut self, place: &StoreTarget, values: Range, facts: &mut Facts) {
        let variable = place.variable;
        let values = wrapped(values, self.variables[variable].ty);
        facts.store(place, values);
        self.widen(variable, values);
        if place.index.is_some() {
            facts.values[variable] = self.anywhere[variable];
        }
    }

    /// Returns the interval to continue with when `before` has grown to `after`. If `hurries` is set, the interval is widened to
    /// a power of two, which bounds how often it can grow.
    fn grown(&self, before: Range, after: Range) -> Range {
        if !self.hurries || before == after {
            return after;
        }
        let magnitude = after.high.max(-1 - after.low).max(0) as u64 + 1;
        let most = magnitude.next_power_of_two() as i64;
        Range { low: if after.low < 0 { -most } else { 0 }, high: most - 1 }
    }
}

/// Owner of each variable: for a scalar that exactly one process writes, that process; otherwise none.
fn owners(transitions: &[Transition], variables: &[Variable]) -> Vec<Option<ProcessId>> {
    let mut writers: Vec<Vec<ProcessId>> = vec![Vec::new(); variables.len()];
    for transition in transitions {
        let targets = match &transition.action {
            Action::Receive { targets, .. } => targets.as_slice(),
            Action::Alone | Action::Buffered { .. } | Action::Send { .. } => &[],
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

/// Calls `f` with every variable that the transition reads.
fn read_by(transition: &Transition, f: &mut impl FnMut(VariableId)) {
    let (values, targets): (&[Expression], &[StoreTarget]) = match &transition.action {
        Action::Alone | Action::Buffered { .. } => (&[], &[]),
        Action::Send { values, .. } => (values, &[]),
        Action::Receive { targets, .. } => (&[], targets),
    };
    let targets = targets.iter().chain(transition.effects.iter().map(|effect| &effect.target));
    let read = transition.guard.iter().chain(values).chain(transition.effects.iter().map(|effect| &effect.value));
    read.chain(targets.filter_map(|target| target.index.as_ref())).for_each(|expression| variables_in(expression, f));
}

fn variables_in(expression: &Expression, f: &mut impl FnMut(VariableId)) {
    if let Expression::Variable(variable) | Expression::Element { array: variable, .. } = expression {
        f(*variable);
    }
    expression.parts().iter().for_each(|part| variables_in(part, f));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dve::Dve;
    use crate::ir::{Model, Source};
    use std::time::{Duration, Instant};

    fn read(text: &str) -> Model {
        Dve::read(Source { name: "test".into(), text: text.into() }).unwrap().model
    }

    /// Text of one process with counters and a ring of locations. The ring's transitions run against their order in the text.
    fn ring(locations: usize, counters: usize) -> String {
        let names: Vec<String> = (0..locations).map(|at| format!("s{at}")).collect();
        let steps = (1..locations).map(|at| {
            let counter = at % counters;
            format!("s{at} -> s{} {{ guard v{counter} < 100; effect v{counter} = v{counter} + 1; }},", at - 1)
        });
        let variables: String = (0..counters).map(|counter| format!("byte v{counter};")).collect();
        let (steps, last) = (steps.collect::<String>(), locations - 1);
        format!(
            "{variables} process P {{ state {}; init s{last}; trans {steps} s0 -> s{last} {{}}; }} system async;",
            names.join(",")
        )
    }

    #[test]
    fn intervals_are_found_in_any_order() {
        let model = read(&ring(30, 3));
        assert_eq!(model.variables[0].values, Range { low: 0, high: 100 });
        let text = "byte x, y; byte a[2]; channel c;
            process P { byte k; state s, t; init s; trans s -> t { guard y == 3; sync c!x + 1; effect k = a[1]; }; }
            process Q { byte got; state s; init s; trans s -> s { sync c?got; effect a[1] = got * 2; }; }
            process R { state s; init s; trans s -> s { guard x < 4; effect x = x + 1; }, s -> s { guard x > 2; effect y = 3; }; }
            system async;";
        let model = read(text);
        let high = |name: &str| model.variables.iter().find(|variable| variable.name == name).unwrap().values.high;
        assert_eq!(["x", "y", "a", "k", "got"].map(high), [4, 3, 10, 10, 5]);
    }

    #[test]
    fn many_locations_and_variables_do_not_take_long() {
        let start = Instant::now();
        let model = read(&ring(3000, 200));
        assert!(model.variables.iter().all(|variable| variable.values.bits() == 7 && variable.values.contains(100)));
        assert!(start.elapsed() < Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 6 }), "{:?}", start.elapsed());
    }

    #[test]
    fn it_is_given_up_in_the_end() {
        let model = read(&ring(30, 3));
        let run = |most| ReachableFacts::new(&model.processes, &model.channels, &model.transitions, &model.variables).run(most);
        assert!(run(1000).is_none());
        assert_eq!(run(MOST_WORK).unwrap().anywhere, vec![Range { low: 0, high: 100 }; 3]);
    }

    /// Every reachable state is in the intervals. Every successor of a state in the intervals is in them too.
    #[test]
    fn no_step_leads_out_of_the_intervals() {
        let text = "byte a[3]; byte g; channel c;
            process P { int x = -1; state s, t, u; init s;
                trans s -> t { guard x < 4; effect x = x + 1; }, t -> s { guard x != 3; sync c!x; effect a[x % 3] = x; },
                      t -> u { guard x == 3; effect x = 9; }; }
            process Q { byte got; state s, never; init s;
                trans s -> s { sync c?got; effect g = got / 2; }, never -> s { effect got = 77; }; }
            system async;";
        let model = read(text);
        let intervals = Intervals::of(&model);
        let interpreter = crate::interpreter::Interpreter::new(&model);
        let bits: Vec<(usize, u32)> =
            intervals.used.iter().enumerate().flat_map(|(word, used)| (0..32).map(move |bit| (word, used & 1 << bit))).collect();
        let bits: Vec<_> = bits.into_iter().filter(|(_, bit)| *bit != 0).collect();
        assert!(bits.len() == model.layout.bits as usize && bits.len() < 24, "{bits:?}");
        let (mut inside, mut outside, mut reasons) = (0, 0, std::collections::BTreeSet::new());
        for number in 0..1u32 << bits.len() {
            let mut state = vec![0; model.layout.words];
            bits.iter().enumerate().for_each(|(at, (word, bit))| state[*word] |= if number >> at & 1 == 1 { *bit } else { 0 });
            match intervals.strange(&state) {
                Some(why) => {
                    outside += 1;
                    reasons.insert(why.split(' ').take(3).collect::<Vec<_>>().join(" "));
                }
                None => {
                    inside += 1;
                    let visit = |_, successor: &[u32]| assert_eq!(intervals.strange(successor), None, "{state:?} {successor:?}");
                    // A fault, such as a division by zero, ends the list of the state's steps.
                    let _ = interpreter.steps(&state, &mut Default::default(), visit);
                }
            }
        }
        assert!(inside > 100 && outside > 100, "{inside} {outside}");
        assert!(reasons.iter().any(|why| why.starts_with("process P is")), "{reasons:?}");
        assert!(reasons.iter().any(|why| why.starts_with("process Q is")), "{reasons:?}");
        assert_eq!(intervals.strange(&model.initial_state()), None);
        // Set a bit that belongs to no field.
        let mut state = model.initial_state();
        let (word, free) = intervals.used.iter().enumerate().find(|(_, used)| **used != u32::MAX).unwrap();
        state[word] |= 1 << free.trailing_ones();
        assert!(intervals.strange(&state).is_some_and(|why| why.contains("bits")));
    }
}
