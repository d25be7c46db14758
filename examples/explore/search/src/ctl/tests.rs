//! Formulas of branching time, compared with naive fixpoints of each operator over a graph made by the interpreter, in random
//! models of every language, in memory and in sweeps.
//!
//! Keeps these promises of `examples/explore/docs/ctl.md`:
//!
//! - A verdict and the number of states that satisfy the formula do not depend on the table, nor on whether states and steps fit
//!   the memory.
//! - A path that is shown is one of the model, and shows the verdict.

use super::{Asked, Branching, Conditions, Outcome, Way};
use crate::exploration::{End, Explorer, Limits};
use crate::liveness::check::Verdict;
use crate::successors::Interpreted;
use crate::threads::Threads;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::HashMap;
use warpset::{Bucket, CompactTree, Device, Storage, Tree, VectorTable};
use warpset_model::checks::Checks;
use warpset_model::ctl;
use warpset_model::input;
use warpset_model::interpreter::{Interpreter, Scratch};
use warpset_model::ir::Source;
use warpset_model::language::{Format, Text};
use warpset_model::network::Reading;
use warpset_random_models as random;
use warpset_testing::sizes::sized;

/// Most states of a model.
const MOST: usize = 3000;

/// A formula, in the syntax of a user.
#[derive(Clone, Debug)]
enum Formula {
    Constant(bool),
    Condition(usize),
    Not(Box<Formula>),
    And(Box<[Formula; 2]>),
    Or(Box<[Formula; 2]>),
    Imply(Box<[Formula; 2]>),
    /// Whether for all paths, and the operator: `X`, `F` or `G`.
    One(bool, char, Box<Formula>),
    /// Whether for all paths, and the operator: `U`, `R`, `W` or `M`.
    Two(bool, char, Box<[Formula; 2]>),
}

use Formula::{And, Condition, Constant, Imply, Not, One, Or, Two};

impl Formula {
    fn text(&self, conditions: &[&str]) -> String {
        let both = |of: &[Self; 2]| of.each_ref().map(|of| of.text(conditions));
        let quantifier = |is_all: &bool| if *is_all { 'A' } else { 'E' };
        match self {
            Constant(truth) => truth.to_string(),
            Condition(number) => format!("({})", conditions[number % conditions.len()]),
            Not(of) => format!("!({})", of.text(conditions)),
            And(of) => both(of).join(" && ").replacen("", "(", 1) + ")",
            Or(of) => both(of).join(" || ").replacen("", "(", 1) + ")",
            Imply(of) => both(of).join(" -> ").replacen("", "(", 1) + ")",
            One(is_all, operator, of) => format!("{}{operator} ({})", quantifier(is_all), of.text(conditions)),
            Two(is_all, operator, of) => {
                let [first, second] = both(of);
                format!("{}[{first} {operator} {second}]", quantifier(is_all))
            }
        }
    }
}

fn formula() -> impl Strategy<Value = Formula> {
    let leaf = prop_oneof![8 => (0usize..9).prop_map(Condition), 1 => any::<bool>().prop_map(Constant)];
    leaf.prop_recursive(5, 16, 2, |inner| {
        let two = || (inner.clone(), inner.clone()).prop_map(|(one, other)| Box::new([one, other]));
        prop_oneof![
            2 => inner.clone().prop_map(|of| Not(Box::new(of))),
            1 => two().prop_map(And),
            1 => two().prop_map(Or),
            1 => two().prop_map(Imply),
            6 => (any::<bool>(), select(vec!['X', 'F', 'G']), inner.clone()).prop_map(|(all, of, inner)| One(all, of, Box::new(inner))),
            3 => (any::<bool>(), select(vec!['U', 'R', 'W', 'M']), two()).prop_map(|(all, of, inner)| Two(all, of, inner)),
        ]
    })
}

/// A state space, by the interpreter.
struct Graph {
    states: Vec<Vec<u32>>,
    successors: Vec<Vec<usize>>,
}

impl Graph {
    /// `None` at a fault, or above [`MOST`] states.
    fn of(interpreter: &Interpreter) -> Option<Self> {
        let mut states = vec![interpreter.model().initial_state()];
        let mut numbers: HashMap<Vec<u32>, usize> = HashMap::from([(states[0].clone(), 0)]);
        let mut successors = Vec::new();
        while successors.len() < states.len() {
            let state = states[successors.len()].clone();
            let mut all = Vec::new();
            let visit = |_, successor: &[u32]| {
                let next = numbers.len();
                let number = *numbers.entry(successor.to_vec()).or_insert(next);
                if number == next {
                    states.push(successor.to_vec());
                }
                all.push(number);
            };
            interpreter.steps(&state, &mut Scratch::default(), visit).ok()?;
            successors.push(all);
            if states.len() > MOST {
                return None;
            }
        }
        Some(Self { states, successors })
    }

    /// The states that satisfy a formula, by the definition of each operator on paths that end in a deadlock or never.
    fn satisfying(&self, formula: &Formula, conditions: &[Vec<bool>]) -> Vec<bool> {
        let of = |formula: &Formula| self.satisfying(formula, conditions);
        let both = |of_both: &[Formula; 2]| of_both.each_ref().map(of);
        let each = |value: &dyn Fn(usize) -> bool| (0..self.states.len()).map(value).collect::<Vec<bool>>();
        match formula {
            Constant(truth) => each(&|_| *truth),
            Condition(number) => conditions[number % conditions.len()].clone(),
            Not(inner) => of(inner).into_iter().map(|holds| !holds).collect(),
            And(pair) => {
                let [one, other] = both(pair);
                each(&|state| one[state] && other[state])
            }
            Or(pair) => {
                let [one, other] = both(pair);
                each(&|state| one[state] || other[state])
            }
            Imply(pair) => {
                let [one, other] = both(pair);
                each(&|state| !one[state] || other[state])
            }
            One(is_all, 'X', inner) => {
                let inner = of(inner);
                each(&|state| match is_all {
                    true => self.successors[state].iter().all(|next| inner[*next]),
                    false => self.successors[state].iter().any(|next| inner[*next]),
                })
            }
            One(is_all, operator, inner) => {
                let (inner, all) = (of(inner), vec![true; self.states.len()]);
                let never = vec![false; self.states.len()];
                if *operator == 'F' { self.until(*is_all, &all, &inner) } else { self.release(*is_all, &never, &inner) }
            }
            Two(is_all, operator, pair) => {
                let [first, second] = both(pair);
                match operator {
                    'U' => self.until(*is_all, &first, &second),
                    'R' => self.release(*is_all, &first, &second),
                    // The second need never hold.
                    'W' => self
                        .fixpoint(true, |state, set| second[state] || (first[state] && self.goes_on(*is_all, state, set, true))),
                    // The second holds up to and including a state in which the first does.
                    _ => self.fixpoint(false, |state, set| {
                        second[state] && (first[state] || self.goes_on(*is_all, state, set, false))
                    }),
                }
            }
        }
    }

    /// Whether paths from a state go on in a set. `at_end`: the answer where a path ends.
    fn goes_on(&self, is_all: bool, state: usize, set: &[bool], at_end: bool) -> bool {
        let successors = &self.successors[state];
        match (successors.is_empty(), is_all) {
            (true, _) => at_end,
            (false, true) => successors.iter().all(|next| set[*next]),
            (false, false) => successors.iter().any(|next| set[*next]),
        }
    }

    fn until(&self, is_all: bool, first: &[bool], second: &[bool]) -> Vec<bool> {
        self.fixpoint(false, |state, set| second[state] || (first[state] && self.goes_on(is_all, state, set, false)))
    }

    fn release(&self, is_all: bool, first: &[bool], second: &[bool]) -> Vec<bool> {
        self.fixpoint(true, |state, set| second[state] && (first[state] || self.goes_on(is_all, state, set, true)))
    }

    fn fixpoint(&self, begin: bool, step: impl Fn(usize, &[bool]) -> bool) -> Vec<bool> {
        let mut set = vec![begin; self.states.len()];
        loop {
            let next: Vec<bool> = (0..set.len()).map(|state| step(state, &set)).collect();
            if next == set {
                return set;
            }
            set = next;
        }
    }
}

fn asked(text: &Text, formulas: &[String]) -> ctl::Asked {
    let mut asked = ctl::Asked::default();
    for formula in formulas {
        let source = Source { name: "--ctl".into(), text: formula.clone() };
        asked.add(text, &source, &mut |_, _| {}).unwrap_or_else(|error| panic!("{formula}: {error}"));
    }
    asked
}

fn branching(text: &Text, formulas: &[String]) -> Branching {
    let asked = asked(text, formulas);
    Branching {
        parts: asked.parts,
        conditions: Conditions::Expressions(asked.conditions),
        formulas: asked.formulas.into_iter().map(|(text, formula)| Asked { text, formula }).collect(),
        with_witnesses: true,
        if_found: None,
    }
}

/// Explores in a table and evaluates formulas; `in_sweeps`: without memory for all steps.
fn answered<S: Storage>(text: &Text, branching: &Branching, in_sweeps: bool) -> Option<Outcome> {
    let (model, checks) = (text.model(), Checks::default());
    let source = Interpreted::new(Interpreter::new(model), &checks);
    let table = VectorTable::<S>::builder(model.layout.words).capacity(64).build(&Device::cpu_with_threads(2)).unwrap();
    let exploration = Threads::new(&table, &source, model.initial_state()).explore(Limits::NONE, &|_| true).unwrap();
    if exploration.end != End::Complete {
        return None;
    }
    let bytes = if in_sweeps { table.bytes() + 5 * table.slots() } else { u64::MAX };
    let limits = Limits { bytes, ..Limits::NONE };
    let outcome = branching.answer(&table, &source, &source.interpreter, &exploration, limits);
    assert_eq!(outcome.way == Way::InSweeps, in_sweeps);
    Some(outcome)
}

/// Explores and evaluates formulas on a GPU; `is_listed`: with lists of all steps. A table of few slots grows, and then the
/// search has no list of all states.
#[cfg(feature = "cuda")]
fn answered_on_gpu<S: Storage>(
    device: &Device,
    text: &Text,
    branching: &Branching,
    (is_listed, slots): (bool, u64),
) -> Option<Outcome> {
    use super::BranchingTime;
    use crate::gpu::{GpuEngine, Sources};
    let (model, checks) = (text.model(), Checks::default());
    let source = Interpreted::new(Interpreter::new(model), &checks);
    let table = VectorTable::<S>::builder(model.layout.words).capacity(slots).build(device).unwrap();
    let mut engine = GpuEngine::new(&table, &source, Sources::new(model, &checks), None, false, u64::MAX).unwrap();
    engine.lists_steps = is_listed;
    let exploration = engine.explore(Limits::NONE, &|_| true).unwrap();
    if exploration.end != End::Complete {
        return None;
    }
    let outcome = engine.branch(branching, &source.interpreter, &exploration, Limits::NONE);
    assert_eq!(outcome.way, Way::OnGpu { is_listed }, "{:?}", outcome.why);
    Some(outcome)
}

/// The ways of evaluation take turns.
fn answered_in_turn(text: &Text, branching: &Branching, number: usize) -> Option<Outcome> {
    match number % 4 {
        0 => answered::<Bucket>(text, branching, false),
        1 => answered::<Tree>(text, branching, false),
        2 => answered::<Tree>(text, branching, true),
        _ => answered::<CompactTree>(text, branching, true),
    }
}

/// Compares verdicts, numbers of states and paths. Returns the number of formulas compared.
fn compare(
    text: &Text,
    conditions: &[&str],
    formulas: &[Formula],
    answer: &dyn Fn(&Text, &Branching) -> Option<Outcome>,
) -> usize {
    let model = text.model();
    let interpreter = Interpreter::new(model);
    let Some(graph) = Graph::of(&interpreter) else { return 0 };
    let read = |condition: &&str| text.condition(&Source { name: "condition".into(), text: (*condition).into() }).ok();
    // Not every model has all of their names.
    let conditions: Vec<&str> = conditions.iter().copied().filter(|condition| read(condition).is_some()).collect();
    let conditions = &conditions[..];
    let mut values: Vec<Vec<bool>> = Vec::new();
    for condition in conditions.iter().filter_map(read) {
        values.push(graph.states.iter().map(|state| interpreter.value(&condition.0, state).unwrap() != 0).collect());
    }
    if values.is_empty() {
        return 0;
    }
    let texts: Vec<String> = formulas.iter().map(|formula| formula.text(conditions)).collect();
    let branching = branching(text, &texts);
    let Some(outcome) = answer(text, &branching) else { return 0 };
    assert!(outcome.why.is_none(), "{:?}", outcome.why);
    for ((formula, text_of), answer) in formulas.iter().zip(&texts).zip(&outcome.answers) {
        let expected = graph.satisfying(formula, &values);
        let count = expected.iter().filter(|holds| **holds).count() as u64;
        let verdict = if expected[0] { Verdict::Holds } else { Verdict::Violated };
        assert_eq!((answer.verdict, answer.satisfying), (verdict, Some(count)), "{text_of}\n{}", model.source.text);
        match &answer.witness {
            Some(Ok(witness)) => {
                // The interpreter replayed it.
                let numbers: Vec<usize> =
                    witness.states.iter().map(|state| graph.states.iter().position(|of| of == state).unwrap()).collect();
                assert!(numbers.windows(2).all(|pair| graph.successors[pair[0]].contains(&pair[1])), "{text_of}");
                let shows = shown(formula, expected[0]);
                if let Some((operator, inner)) = shows {
                    shows_it(
                        &graph,
                        operator,
                        inner.map(|of| {
                            of.map(|(of, holds)| graph.satisfying(of, &values).into_iter().map(|value| value == holds).collect())
                        }),
                        &numbers,
                        witness.begins,
                        witness.is_in_deadlock,
                        text_of,
                    );
                }
            }
            Some(Err(error)) => assert!(outcome.way == Way::InSweeps, "{error:#}"),
            None => {}
        }
    }
    texts.len()
}

/// The operator `X`, `U` or `G` on a path, and its operands with the truth that they have there, if the outermost operator of the
/// formula or of its negation is about some path.
#[allow(clippy::type_complexity)]
fn shown(formula: &Formula, holds: bool) -> Option<(char, [Option<(&Formula, bool)>; 2])> {
    match (formula, holds) {
        (Not(of), holds) => shown(of, !holds),
        (One(false, 'X', of), true) => Some(('X', [None, Some((of, true))])),
        (One(true, 'X', of), false) => Some(('X', [None, Some((of, false))])),
        (One(false, 'F', of), true) => Some(('U', [None, Some((of, true))])),
        (One(true, 'G', of), false) => Some(('U', [None, Some((of, false))])),
        (One(false, 'G', of), true) => Some(('G', [None, Some((of, true))])),
        (One(true, 'F', of), false) => Some(('G', [None, Some((of, false))])),
        (Two(false, 'U', of), true) => Some(('U', [Some((&of[0], true)), Some((&of[1], true))])),
        _ => None,
    }
}

/// Checks that a path shows an operator: that it has a first part that does.
fn shows_it(
    graph: &Graph,
    operator: char,
    [first, second]: [Option<Vec<bool>>; 2],
    path: &[usize],
    begins: Option<usize>,
    is_in_deadlock: bool,
    text: &str,
) {
    let second = second.expect("each operator has one");
    match operator {
        'X' => assert!(path.get(1).is_some_and(|next| second[*next]), "{text}: {path:?}"),
        'U' => {
            let at = path.iter().position(|state| second[*state]).unwrap_or_else(|| panic!("{text}: {path:?}"));
            assert!(first.is_none_or(|first| path[..at].iter().all(|state| first[*state])), "{text}: {path:?}");
        }
        _ => {
            let is_last = graph.successors[path[path.len() - 1]].is_empty();
            assert!(path.iter().all(|state| second[*state]), "{text}: {path:?}");
            assert!((begins.is_some() && !is_in_deadlock) || (is_in_deadlock && is_last), "{text}: {path:?}");
        }
    }
}

fn read_text(format: Format, name: &str, text: &str) -> Option<Text> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    Text::read(format, input::open(&path).unwrap(), &Reading::default()).ok()
}

/// Components of a random network.
fn network(components: &[Vec<(u32, u32, u32)>]) -> Text {
    let folder = tempfile::tempdir().unwrap();
    for (number, transitions) in components.iter().enumerate() {
        let line = |(from, label, to): &(u32, u32, u32)| format!("({from}, {}, {to})\n", ["A", "B", "C", "i"][*label as usize]);
        let lines: String = transitions.iter().map(line).collect();
        std::fs::write(folder.path().join(format!("c{number}.aut")), format!("des (0, {}, 4)\n{lines}", transitions.len()))
            .unwrap();
    }
    let path = folder.path().join("main.exp");
    std::fs::write(&path, "par A -> c0 || A, B -> c1 || B -> c2 end par").unwrap();
    Text::read(Format::Exp, input::open(&path).unwrap(), &Reading::default()).unwrap_or_else(|error| panic!("{error:#}"))
}

fn value<T>(runner: &mut TestRunner, of: impl Strategy<Value = T>) -> T {
    of.new_tree(runner).unwrap().current()
}

/// Compares `wanted` random formulas over random models of every language, `of_model` over each.
fn compare_random(wanted: usize, of_model: usize, answer: &dyn Fn(&Text, &Branching, usize) -> Option<Outcome>) {
    let mut runner = TestRunner::deterministic();
    let (mut compared, mut of_language) = (0, [0; 5]);
    let mut number = 0;
    while compared < wanted || of_language.contains(&0) {
        let language = number % 5;
        let of_dve = ["P_0.s0", "P_0.s1", "x == 1", "x != 0 or y < 0", "P_0.l > 1", "a[1] == 0"];
        let (text, conditions): (Option<Text>, Vec<&str>) = match language {
            0 => (read_text(Format::Dve, "m.dve", &value(&mut runner, random::model())), of_dve.to_vec()),
            1 => {
                let of_slco = ["p.M0.A", "p.x == 1", "q.b", "q.M0.B or p.n < 0", "q.a[1] = 0"];
                (read_text(Format::Slco, "m.slco", &value(&mut runner, random::slco::model())), of_slco.to_vec())
            }
            2 => {
                let of_net = ["tokens(p0) >= 1", "fireable(t0)", "tokens(p0) == 2 or not fireable(t0)"];
                (read_text(Format::Pnml, "m.pnml", &value(&mut runner, random::net::net())), of_net.to_vec())
            }
            3 => {
                let one = || proptest::collection::vec((0u32..4, 0u32..4, 0u32..4), 3..8);
                let components = value(&mut runner, proptest::collection::vec(one(), 3..=3));
                (Some(network(&components)), vec!["c0 == 1", "c1 != 2", "enabled(A)", "c2 == 0 or enabled(C)"])
            }
            _ => {
                let steps = value(&mut runner, proptest::collection::vec((0u32..12, 0u32..3, 0u32..12), 8..20));
                let lines: String = steps.iter().map(|(from, of, to)| format!("({from}, L{of}, {to})\n")).collect();
                let text = format!("des (0, {}, 12)\n{lines}", steps.len());
                (read_text(Format::Aut, "m.aut", &text), vec!["m > 5", "enabled(L0)", "m == 3"])
            }
        };
        let formulas: Vec<Formula> = (0..of_model).map(|_| value(&mut runner, formula())).collect();
        if let Some(text) = text {
            let count = compare(&text, &conditions, &formulas, &|text, branching| answer(text, branching, number / 5));
            compared += count;
            of_language[language] += count;
        }
        number += 1;
        assert!(number < 200 * wanted.max(100), "{of_language:?}");
    }
    println!("{compared} formulas: {of_language:?}");
}

/// At least 500 formulas, 20,000 in a full run, or `WARPSET_CTL_FORMULAS`.
#[test]
fn random_formulas_are_those_of_naive_fixpoints() {
    let given = std::env::var("WARPSET_CTL_FORMULAS").ok().and_then(|number| number.parse().ok());
    compare_random(given.unwrap_or_else(|| sized(20_000, 700, 500)), 4, &answered_in_turn);
}

/// A GPU, if there is one: `tests/device/with 1` simulates one.
#[cfg(feature = "cuda")]
fn gpu() -> Option<Device> {
    let device = Device::gpu(0).inspect_err(|error| println!("skipped: {error}"));
    assert!(device.is_ok() || std::env::var_os("WARPSET_SIMULATED_DEVICE").is_none(), "a simulated device can be used");
    device.ok()
}

/// Every model has kernels of its own, which a simulated device compiles for seconds.
#[cfg(feature = "cuda")]
#[test]
fn random_formulas_on_a_gpu_are_those_of_naive_fixpoints() {
    let Some(device) = gpu() else { return };
    let (wanted, of_model) = sized((2000, 20), (240, 20), (100, 10));
    compare_random(wanted, of_model, &|text, branching, number| match number % 4 {
        0 => answered_on_gpu::<Bucket>(&device, text, branching, (true, 8192)),
        1 => answered_on_gpu::<Tree>(&device, text, branching, (false, 64)),
        2 => answered_on_gpu::<CompactTree>(&device, text, branching, (true, 64)),
        _ => answered_on_gpu::<Bucket>(&device, text, branching, (false, 8192)),
    });
}

const COUNTER: &str = "int x; byte y; process P { state s; init s; trans
    s -> s { guard x < 40; effect x = x + 1; }, s -> s { guard x == 7; effect y = 1; },
    s -> s { guard y == 1 and x == 9; effect x = 8; }; } system async;";

fn of_counter(formulas: &[String], in_sweeps: bool) -> Vec<(Verdict, Option<u64>)> {
    let text = read_text(Format::Dve, "m.dve", COUNTER).unwrap();
    let outcome = answered::<Bucket>(&text, &branching(&text, formulas), in_sweeps).unwrap();
    assert!(outcome.why.is_none(), "{:?}", outcome.why);
    outcome.answers.iter().map(|answer| (answer.verdict, answer.satisfying)).collect()
}

/// Formulas that have the same states in every model.
#[test]
fn laws_hold() {
    let text = read_text(Format::Dve, "m.dve", COUNTER).unwrap();
    for (one, other) in [
        ("AG x < 9", "!EF !x < 9"),
        ("AF y == 1", "!EG !y == 1"),
        ("AX x > 3", "!EX !x > 3"),
        ("A[x < 9 U y == 1]", "!(E[!y == 1 U (!x < 9 && !y == 1)] || EG !y == 1)"),
        ("E[x < 9 R y == 0]", "!A[!x < 9 U !y == 0]"),
        ("A[x < 9 W y == 1]", "!E[!y == 1 U (!x < 9 && !y == 1)]"),
        ("E[x < 9 W y == 1]", "E[x < 9 U y == 1] || EG x < 9"),
        ("A[x < 9 M y == 0]", "A[y == 0 U (x < 9 && y == 0)]"),
        ("AG EF y == 1", "AGEF (y == 1)"),
        ("E<> (y == 1)", "E F (y == 1)"),
        ("A[] (x < 9)", "A G (x < 9)"),
        ("A(x < 9 V y == 0)", "A[x < 9 R y == 0]"),
        ("E[F y == 1]", "EF y == 1"),
        ("AG (x == 7 -> EX y == 1)", "!EF (x == 7 && AX y != 1)"),
        ("EF x == 3 <-> AX y == 0", "(EF x == 3 && AX y == 0) || (!EF x == 3 && !AX y == 0)"),
    ] {
        let found = of_counter(&[one.into(), other.into()], false);
        assert_eq!(found[0], found[1], "{one} is {other}");
        assert_eq!(of_counter(&[one.into(), other.into()], true), found, "{one} in sweeps");
        assert!(branching(&text, &[one.into()]).parts.all().len() > 1, "{one} is no constant");
    }
}

/// A path ends in a deadlock.
#[test]
fn paths_end_in_deadlocks() {
    let text = "byte x; process P { state s, t; init s; trans s -> t { effect x = 1; }; } system async;";
    let text = read_text(Format::Dve, "m.dve", text).unwrap();
    // The initial state, and then the deadlock.
    let expected = [
        ("EX true", 1),
        ("AX false", 1),
        ("EX x == 1", 1),
        ("AX x == 0", 1),
        ("EG x == 1", 1),
        ("AF x == 0", 1),
        ("AF x == 1", 2),
        ("EG true", 2),
        ("AF false", 0),
        ("AG AX false", 1),
        ("AF AX false", 2),
        ("E[x == 0 U AX false]", 2),
        ("A[x == 0 W false]", 0),
        ("A[x == 1 W false]", 1),
        ("false", 0),
        ("true", 2),
        ("EF false", 0),
        ("AG true", 2),
    ];
    let formulas: Vec<String> = expected.iter().map(|(formula, _)| (*formula).into()).collect();
    for in_sweeps in [false, true] {
        let branching = branching(&text, &formulas);
        let outcome = answered::<Bucket>(&text, &branching, in_sweeps).unwrap();
        for ((formula, count), answer) in expected.iter().zip(&outcome.answers) {
            assert_eq!(answer.satisfying, Some(*count), "{formula}");
        }
    }
}

/// 200 operators in each other, and as many formulas as a set of states has no word for.
#[test]
fn formulas_may_be_deep_and_many() {
    let states = 1 + 40 + (40 - 7 + 1);
    let deep = ["EX ".repeat(200) + "true", "AX ".repeat(200) + "x == 40", "EF AG ".repeat(100) + "x == 40"];
    let found = of_counter(&deep, false);
    // Only the loops at 7, and of 8 and 9, last so long: from 0 to 7 without `y`, and from 7 to 9 with it.
    assert_eq!(found[0], (Verdict::Holds, Some(8 + 3)), "{found:?}");
    assert_eq!(found[2], (Verdict::Holds, Some(states)), "{found:?}");
    let text = read_text(Format::Dve, "m.dve", COUNTER).unwrap();
    let source = Source { name: "--ctl".into(), text: "EX ".repeat(201) + "true" };
    let error = ctl::Asked::default().add(&text, &source, &mut |_, _| {}).unwrap_err().to_string();
    assert!(error.contains("too large"), "{error}");
    let many: Vec<String> = (0..200).map(|number| format!("EF (x == {number} && EX x == {})", number + 1)).collect();
    for in_sweeps in [false, true] {
        let found = of_counter(&many, in_sweeps);
        for (number, (verdict, _)) in found.into_iter().enumerate() {
            assert_eq!(verdict == Verdict::Holds, number < 40, "{number}");
        }
    }
    // All conditions in one formula, more than a word has bits.
    let all: Vec<String> = (0..100).map(|number| format!("EF x == {number}")).collect();
    let found = of_counter(&[all.join(" && "), all[..41].join(" && ")], false);
    assert_eq!([found[0].0, found[1].0], [Verdict::Violated, Verdict::Holds]);
}

/// A fault of a condition leads to the nearest state that has it, in memory and in sweeps.
#[test]
fn a_fault_of_a_condition_has_a_path() {
    let text = read_text(Format::Dve, "m.dve", &COUNTER.replace("int x;", "int x; byte a[4];")).unwrap();
    let branching = branching(&text, &["AG EF a[x] == 0", "EF x == 40", "EF x == 50 || AX a[x] == 0"].map(String::from));
    let check = |outcome: &Outcome| {
        let (found, states) = outcome.fault.as_ref().unwrap_or_else(|| panic!("{:?}", outcome.why));
        assert_eq!((states.len(), found.is_fault()), (5, true));
        // Formulas without the condition have their verdicts.
        let verdicts = outcome.answers.iter().map(|answer| (answer.verdict, answer.satisfying));
        let expected = [(Verdict::Unknown, None), (Verdict::Holds, Some(1 + 40 + (40 - 7 + 1))), (Verdict::Unknown, None)];
        assert_eq!(verdicts.collect::<Vec<_>>(), expected);
    };
    for in_sweeps in [false, true] {
        check(&answered::<Bucket>(&text, &branching, in_sweeps).unwrap());
    }
    #[cfg(feature = "cuda")]
    if let Some(device) = gpu() {
        check(&answered_on_gpu::<Bucket>(&device, &text, &branching, (true, 8192)).unwrap());
    }
}

/// Errors point to their place.
#[test]
fn texts_that_are_no_formulas_are_refused() {
    let text = read_text(Format::Dve, "m.dve", COUNTER).unwrap();
    for (formula, part) in [
        ("F x == 1", "path quantifier"),
        ("x == 1 U y == 1", "A[p U q]"),
        ("[] x == 1", "path quantifier"),
        ("E[x == 1]", "temporal operator"),
        ("A[x == 1 U]", "proposition"),
        ("A[x == 1 U y == 1", "`]` or an operator"),
        ("E(F x == 1", "`)` or an operator"),
        ("EF", "proposition"),
        ("EF z == 1", "declared"),
        ("A[x == 1 U y == 1 U x == 2]", "`]` or an operator"),
        ("EGX x == 1", ""),
    ] {
        let source = Source { name: "--ctl".into(), text: formula.into() };
        let error = ctl::Asked::default().add(&text, &source, &mut |_, _| {}).expect_err(formula);
        let located = error.downcast_ref::<Box<warpset_model::diagnostic::Located>>().unwrap_or_else(|| panic!("{error:#}"));
        let message = format!("{:?}", located.diagnostic);
        assert!(message.contains(part), "{formula}: {message}");
    }
}

/// Conditions on a net, evaluated in many states at a time.
#[test]
fn conditions_in_many_states_are_those_in_each() {
    use warpset_model::net::marking::{Amount, Condition};
    let mut runner = TestRunner::deterministic();
    let (mut compared, mut truths) = (0, [0; 2]);
    while compared < 5 {
        let Some(text) = read_text(Format::Pnml, "m.pnml", &value(&mut runner, random::net::net())) else { continue };
        let Text::Net(nets) = &text else { unreachable!("it was read as a net") };
        let (interpreter, net) = (Interpreter::new(&nets.model), nets.model.net.as_ref().unwrap());
        let Some(graph) = Graph::of(&interpreter).filter(|graph| graph.states.len() > 30) else { continue };
        let tokens = |place: usize| Amount::Tokens(vec![place % nets.pnml.places.len(), (place + 1) % nets.pnml.places.len()]);
        let fireable = |at: usize| Condition::Fireable(vec![at % nets.pnml.transitions.len()]);
        let [few, ordered] =
            [[tokens(0), Amount::Constant(2)], [tokens(1), tokens(2)]].map(|amounts| Condition::AtMost(Box::new(amounts)));
        let both = Condition::And(vec![few.clone(), fireable(0), Condition::Deadlock.negated()]);
        let one = Condition::Or(vec![both.clone(), ordered.clone().negated(), Condition::Deadlock]);
        let (states, firings) = (graph.states.concat(), interpreter.firings().unwrap());
        let conditions = [few, ordered, fireable(1), both, one, Condition::Constant(true), Condition::Or(vec![])];
        let checks = conditions.each_ref().map(|condition| condition.check(net, &nets.model.layout));
        #[cfg(feature = "cuda")]
        if let Some(device) = gpu() {
            let mut parts = ctl::Parts::default();
            let formula = |number| Asked { text: String::new(), formula: parts.condition(number) };
            let formulas = (0..checks.len()).map(formula).collect();
            let of_net = Conditions::OfNet(checks.to_vec());
            let branching = Branching { parts, conditions: of_net, formulas, with_witnesses: false, if_found: None };
            let outcome = answered_on_gpu::<Bucket>(&device, &text, &branching, (true, 8192)).unwrap();
            for ((check, condition), answer) in checks.iter().zip(&conditions).zip(&outcome.answers) {
                let expected = graph.states.iter().filter(|state| check.holds(firings, state)).count();
                assert_eq!(answer.satisfying, Some(expected as u64), "{condition:?}");
            }
        }
        for (condition, check) in conditions.into_iter().zip(checks) {
            let bits = check.holds_in_each(firings, &states, nets.model.layout.words);
            for (number, state) in graph.states.iter().enumerate() {
                let holds = check.holds(firings, state);
                assert_eq!(bits[number / 64] >> (number % 64) & 1 != 0, holds, "{condition:?}");
                truths[usize::from(holds)] += 1;
            }
        }
        compared += 1;
    }
    assert!(truths[0] > 50 && truths[1] > 50, "{truths:?}");
}
