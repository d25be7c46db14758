//! Coverage: which states of processes and components, which transitions and which labels occur in the states that a search has
//! found.
//!
//! The search itself counts nothing. After the search, threads read all stored states and compute their steps with the
//! interpreter. So coverage has no cost unless it is requested, and it is the same for every engine, device and kind of table. It
//! takes about the time of an interpreted search on this machine.

use crate::exploration::Limits;
use anyhow::{Error, Result};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use warpset::{Storage, VectorTable};
use warpset_model::interpreter::{Interpreter, Scratch, Step};
use warpset_model::ir::Model;
use warpset_model::trace::describe_transitions;

/// Number of states that a thread takes at a time.
const PIECE: usize = 1 << 12;

/// Number of counters for each thread (64 MiB) above which only one thread counts.
const MOST_COUNTERS: usize = 1 << 23;

/// Counts over all stored states, by location, state of a component, transition and label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Number of stored states.
    pub states: u64,
    /// By process and location: number of stored states in which the process is in the location. Empty for the automaton of a
    /// property.
    pub locations: Vec<Vec<u64>>,
    /// By component and its state: number of stored states in which the component is in that state.
    pub components: Vec<Vec<u64>>,
    /// By transition: number of steps from stored states in which the transition takes part.
    pub transitions: Vec<u64>,
    /// By transition of the net: number of stored states in which it fires.
    pub firings: Vec<u64>,
    /// By label of the network: number of steps from stored states with the label.
    pub labels: Vec<u64>,
}

impl Coverage {
    fn new(model: &Model) -> Self {
        let of_property = model.property.as_ref().map(|property| property.process);
        let locations = model.processes.iter().enumerate();
        let locations =
            locations.map(|(id, process)| if Some(id) == of_property { Vec::new() } else { vec![0; process.locations.len()] });
        let network = model.network.iter();
        let components = network.clone().flat_map(|network| &network.components);
        Self {
            states: 0,
            locations: locations.collect(),
            components: components.map(|component| vec![0; component.table.states() as usize]).collect(),
            transitions: vec![0; model.transitions.len()],
            firings: vec![0; model.net.iter().map(|net| net.transitions.len()).sum()],
            labels: vec![0; network.map(|network| network.labels.len()).sum()],
        }
    }

    /// Counts all states of a table.
    ///
    /// # Errors
    ///
    /// The device fails, or the limits ask to stop.
    pub fn of<S: Storage>(table: &VectorTable<S>, interpreter: &Interpreter, limits: Limits) -> Result<Self> {
        let model = interpreter.model();
        let counters = Self::new(model).counters();
        let threads = if counters > MOST_COUNTERS { 1 } else { rayon::current_num_threads() };
        let (states, is_stopped) = (Mutex::new(table.iter()), AtomicBool::new(false));
        let count = || -> Result<Self> {
            let (mut counts, mut scratch, mut piece) = (Self::new(model), Scratch::default(), Vec::new());
            loop {
                piece.clear();
                {
                    let mut states = states.lock().expect("no thread panics while it has the lock");
                    for state in states.by_ref().take(PIECE) {
                        piece.extend(state?.1);
                    }
                }
                // Relaxed: the flag carries no data. A thread that sees it late counts one more piece.
                if piece.is_empty() || is_stopped.load(Ordering::Relaxed) {
                    return Ok(counts);
                }
                if let Some(stop) = (limits.stop)() {
                    is_stopped.store(true, Ordering::Relaxed);
                    return Err(Error::from(stop.error("while coverage was counted")));
                }
                piece.chunks_exact(table.width()).for_each(|state| counts.add(interpreter, state, &mut scratch));
            }
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(count)).collect();
            let mut all = Self::new(model);
            for worker in workers {
                all.join(&worker.join().expect("the thread does not panic")?);
            }
            Ok(all)
        })
    }

    fn counters(&self) -> usize {
        let states = self.locations.iter().chain(&self.components).map(Vec::len).sum::<usize>();
        states + self.transitions.len() + self.firings.len() + self.labels.len()
    }

    fn add(&mut self, interpreter: &Interpreter, state: &[u32], scratch: &mut Scratch) {
        let model = interpreter.model();
        self.states += 1;
        for (process, counts) in self.locations.iter_mut().enumerate() {
            if !counts.is_empty() {
                counts[model.location(state, process)] += 1;
            }
        }
        if let Some(network) = &model.network {
            for (component, counts) in network.components.iter().zip(&mut self.components) {
                counts[network.state_of(component, &model.layout, state) as usize] += 1;
            }
        }
        let (transitions, firings, labels) = (&mut self.transitions, &mut self.firings, &mut self.labels);
        let mut step = |step: Step| match step {
            Step::Transition { id, receiver } => {
                transitions[id] += 1;
                receiver.into_iter().for_each(|id| transitions[id] += 1);
            }
            Step::Firing(id) => firings[id] += 1,
            Step::Rule(rule) => labels[model.network.as_ref().map_or(0, |network| network.label_of(rule))] += 1,
        };
        // For a state with a fault, count the steps before the fault. The search reports the fault.
        let _ = match model.property {
            Some(_) => interpreter.product_steps(state, scratch, |of, _| of.system.into_iter().for_each(&mut step)).map(drop),
            None => interpreter.steps(state, scratch, |of, _| step(of)).map(drop),
        };
    }

    fn join(&mut self, other: &Self) {
        let add = |to: &mut [u64], from: &[u64]| to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        self.states += other.states;
        self.locations.iter_mut().zip(&other.locations).for_each(|(to, from)| add(to, from));
        self.components.iter_mut().zip(&other.components).for_each(|(to, from)| add(to, from));
        add(&mut self.transitions, &other.transitions);
        add(&mut self.firings, &other.firings);
        add(&mut self.labels, &other.labels);
    }

    /// The parts that never occurred: states of processes and components, transitions, labels.
    pub fn unreached(&self, model: &Model) -> Vec<Unreached> {
        let zeros =
            |counts: &[u64]| counts.iter().enumerate().filter(|(_, count)| **count == 0).map(|(at, _)| at).collect::<Vec<_>>();
        let processes = model.processes.iter().zip(&self.locations);
        let states = processes.flat_map(|(process, counts)| {
            zeros(counts).into_iter().map(move |at| format!("{}.{}", process.name, process.locations[at].name))
        });
        let components = component_names(model).zip(&self.components);
        let of_components =
            components.flat_map(|(name, counts)| zeros(counts).into_iter().map(move |state| format!("{name} == {state}")));
        let described = describe_transitions(model);
        let transitions = zeros(&self.transitions).into_iter().map(|id| described[id].clone());
        let labels =
            model.network.iter().flat_map(|network| zeros(&self.labels).into_iter().map(|label| network.labels.get(label)));
        let firings = zeros(&self.firings).into_iter().map(|id| model.firing_name(id).to_string());
        let total = |counts: &[Vec<u64>]| counts.iter().map(Vec::len).sum::<usize>();
        [
            Unreached::new("state", states.collect(), total(&self.locations)),
            Unreached::new("component state", of_components.collect(), total(&self.components)),
            Unreached::new("transition", transitions.collect(), self.transitions.len()),
            Unreached::new("transition of the net", firings.collect(), self.firings.len()),
            Unreached::new("label", labels.map(String::from).collect(), self.labels.len()),
        ]
        .into_iter()
        .filter(|part| part.total > 0)
        .collect()
    }

    /// Returns all counts as JSON. `is_complete` says whether the search found all states.
    pub fn json(&self, model: &Model, is_complete: bool) -> Value {
        let processes = model.processes.iter().zip(&self.locations).filter(|(_, counts)| !counts.is_empty());
        let processes = processes.map(|(process, counts)| {
            let states = process.locations.iter().zip(counts);
            let states = states.map(|(location, count)| json!({ "name": location.name, "states": count }));
            let transitions = process.transitions.clone().map(|id| {
                let transition = &model.transitions[id];
                let name = |location: usize| &process.locations[location].name;
                json!({
                    "from": name(transition.from), "to": name(transition.to), "line": transition.span.line,
                    "column": transition.span.column, "steps": self.transitions[id],
                })
            });
            json!({ "name": process.name, "states": states.collect::<Vec<_>>(), "transitions": transitions.collect::<Vec<_>>() })
        });
        let components = component_names(model).zip(&self.components);
        let components = components.map(|(name, counts)| json!({ "name": name, "states": counts }));
        let labels = model.network.iter().flat_map(|network| {
            let counts = self.labels.iter().enumerate();
            counts.map(|(label, count)| json!({ "label": network.labels.get(label), "steps": count }))
        });
        json!({
            "model": model.source.name, "complete": is_complete, "states": self.states,
            "processes": processes.collect::<Vec<_>>(), "components": components.collect::<Vec<_>>(),
            "firings": self.firings.iter().enumerate().map(|(id, count)| {
                json!({ "transition": model.firing_name(id), "steps": count })
            }).collect::<Vec<_>>(),
            "labels": labels.collect::<Vec<_>>(),
        })
    }
}

/// The parts of one kind that never occurred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreached {
    /// Name of the kind, in the singular.
    pub kind: &'static str,
    pub names: Vec<String>,
    /// Number of parts of this kind, reached or not.
    pub total: usize,
}

impl Unreached {
    fn new(kind: &'static str, names: Vec<String>, total: usize) -> Self {
        Self { kind, names, total }
    }
}

fn component_names(model: &Model) -> impl Iterator<Item = &str> {
    let components = model.network.iter().flat_map(|network| &network.components);
    components.map(|component| &*model.variables[component.variable].name)
}

#[cfg(all(test, feature = "cpu"))]
mod tests {
    //! Keeps this promise of `examples/explore/docs/searching.md`:
    //!
    //! - Every state, transition and label that a search never reached is named, with the counts of a simple search (also
    //!   `examples/explore/tests/explore/outputs.rs`).

    use super::*;
    use crate::exploration::Explorer;
    use crate::successors::Interpreted;
    use crate::threads::Threads;
    use std::collections::{HashMap, HashSet};
    use warpset::{Bucket, Device};
    use warpset_model::checks::Checks;
    use warpset_model::dve::Dve;
    use warpset_model::ir::Source;

    fn read(text: &str) -> Dve {
        Dve::read(Source { name: "test".into(), text: text.into() }).unwrap_or_else(|error| panic!("{error}"))
    }

    fn coverage(model: &Model) -> Coverage {
        let checks = Checks::default();
        let interpreted = Interpreted::new(Interpreter::new(model), &checks);
        let table = VectorTable::<Bucket>::builder(model.layout.words).capacity(1 << 12).build(&Device::cpu()).unwrap();
        let mut threads = Threads::new(&table, &interpreted, model.initial_state());
        threads.explore(Limits::NONE, &|_| true).unwrap();
        Coverage::of(&table, &interpreted.interpreter, Limits::NONE).unwrap()
    }

    #[test]
    fn parts_that_never_occur_are_named() {
        let dve = read(
            "channel c; byte x;
            process A { state s, t, never; init s; trans s -> t { sync c!; }, t -> s { guard x < 2; effect x = x + 1; }, t -> never { guard x > 2; }; }
            process B { state u; init u; trans u -> u { sync c?; }, u -> u { guard x == 9; }; }
            system async;",
        );
        let found = coverage(&dve.model);
        // `x` counts from 0 to 2. For each value, `A` is in `s`, then in `t`.
        assert_eq!((found.states, &found.locations), (6, &vec![vec![3, 3, 0], vec![6]]));
        assert_eq!(found.transitions, [3, 2, 0, 3, 0]);
        let unreached = found.unreached(&dve.model);
        let names: Vec<_> = unreached.iter().map(|part| (part.kind, part.total, part.names.join("; "))).collect();
        assert_eq!(names[0], ("state", 4, "A.never".into()));
        assert_eq!((names[1].0, names[1].1), ("transition", 5));
        assert!(names[1].2.starts_with("A: t -> never (line 2)") && names[1].2.contains("B: u -> u (line 3)"), "{names:?}");
        let json = found.json(&dve.model, true);
        assert_eq!(json["processes"][0]["states"][2], json!({ "name": "never", "states": 0 }));
        assert_eq!(json["processes"][1]["transitions"][0]["steps"], 3);
    }

    #[test]
    fn transitions_on_one_line_are_told_apart() {
        let dve = read(
            "byte x; process A { state s; init s; trans
            s -> s { guard x == 1; }, s -> s { guard x == 2; },
            s -> s { guard x == 3; }; } system async;",
        );
        let unreached = coverage(&dve.model).unreached(&dve.model);
        let names = ["A: s -> s (line 2, column 13)", "A: s -> s (line 2, column 39)", "A: s -> s (line 3)"];
        assert_eq!(unreached[1].names, names);
    }

    /// Counts of random models equal those of a search with a hash set.
    #[test]
    fn random_models_have_the_counts_of_a_simple_search() {
        use proptest::prelude::*;
        proptest!(ProptestConfig::with_cases(32), |(text in warpset_random_models::model())| {
            let dve = read(&text);
            let (model, mut steps, mut at) = (&dve.model, HashMap::<usize, u64>::new(), HashMap::<(usize, usize), u64>::new());
            let interpreter = Interpreter::new(model);
            let (mut all, mut waiting) = (HashSet::from([model.initial_state()]), vec![model.initial_state()]);
            let mut has_fault = false;
            while let Some(state) = waiting.pop().filter(|_| all.len() < 3000) {
                (0..model.processes.len()).for_each(|id| *at.entry((id, model.location(&state, id))).or_default() += 1);
                let visit = |step: Step, successor: &[u32]| {
                    if let Step::Transition { id, receiver } = step {
                        std::iter::once(id).chain(receiver).for_each(|id| *steps.entry(id).or_default() += 1);
                    }
                    if all.insert(successor.to_vec()) {
                        waiting.push(successor.to_vec());
                    }
                };
                has_fault |= interpreter.steps(&state, &mut Scratch::default(), visit).is_err();
            }
            prop_assume!(!has_fault && all.len() < 3000);
            let found = coverage(model);
            prop_assert_eq!(found.states, all.len() as u64);
            for (id, count) in found.transitions.iter().enumerate() {
                prop_assert_eq!(*count, steps.get(&id).copied().unwrap_or(0));
            }
            for (process, counts) in found.locations.iter().enumerate() {
                for (location, count) in counts.iter().enumerate() {
                    prop_assert_eq!(*count, at.get(&(process, location)).copied().unwrap_or(0));
                }
            }
        });
    }
}
