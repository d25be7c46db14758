//! Keeps these promises of `examples/explore/docs/reductions.md`:
//!
//! - Actions that accord may be exchanged in every state, and only an enabler makes a test true: random models, networks and
//!   nets, by brute force.
//! - Brute force finds a bit that is missing in the dependencies.
//! - Dependencies are as exact as constants and intervals allow, and have reasons (also
//!   `examples/explore/tests/explore/reductions.rs`).

use super::actions::Tests;
use super::brute_force::{check, compare, drawn_goals, search};
use super::dependencies::Dependencies;
use super::knowledge::Knowledge;
use crate::assembly::{Parts, assembled};
use crate::checks::{Checks, Role};
use crate::dve::Dve;
use crate::ir::network::{Component, Rule, Table};
use crate::ir::{Model, Network, Source, Texts, Type, Variable};
use crate::net::tests as nets;
use crate::slco::Slco;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::sync::Arc;
use warpset_random::Random;
use warpset_random_models as random;
use warpset_testing::sizes::sized;

/// Number of states of a random model that are checked.
const STATES: usize = 400;

fn source(text: &str) -> Source {
    Source { name: "test".into(), text: text.into() }
}

fn read(text: &str) -> Dve {
    Dve::read(source(text)).unwrap_or_else(|error| panic!("{error}"))
}

fn from_environment(variable: &str) -> Option<u32> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Number of models of each kind: 250 in a full run, 50 in other runs, unless `WARPSET_REDUCED_MODELS` gives another number.
fn models() -> u32 {
    from_environment("WARPSET_REDUCED_MODELS").unwrap_or(sized(250, 50, 50))
}

/// Calls `test` with values of a strategy. The values depend only on `seed` and on `WARPSET_REDUCED_SEED`, with which several
/// processes can test different models.
fn with<S: Strategy>(count: u32, seed: u8, strategy: &S, mut test: impl FnMut(S::Value)) {
    let mut seeds = [seed; 32];
    for (byte, of_run) in seeds.iter_mut().zip(from_environment("WARPSET_REDUCED_SEED").unwrap_or(0).to_le_bytes()) {
        *byte ^= of_run;
    }
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seeds);
    let mut runner = TestRunner::new_with_rng(Config::default(), random);
    for _ in 0..count {
        test(strategy.new_tree(&mut runner).expect("a value").current());
    }
}

/// For each model of a strategy, compares searches for goals that are drawn from its states. `model` builds the model from a
/// value of the strategy. `seed` is the seed of all random choices.
fn drawn_goals_are_kept<S: Strategy>(seed: u8, strategy: &S, model: impl Fn(S::Value) -> Option<Model>) {
    let (mut compared, mut reached, mut random) = (0, 0, Random::new(u64::from(seed)));
    with(models() / 2, seed, strategy, |value| {
        let Some(model) = model(value) else { return };
        for goal in drawn_goals(&model, &mut random, STATES) {
            let mut checks = Checks::default();
            checks.add(Role::Goal, String::new(), goal.clone());
            match compare(&model, &checks, STATES) {
                Ok(answers) => compared += u32::from(answers.is_some()),
                Err(what) => panic!("{what}: {goal:?}\n{}{model:?}", model.source.text),
            }
            reached += u32::from(search(&model, &checks, None, STATES).is_some_and(|answer| answer.first_violation.is_some()));
        }
    });
    println!("{compared} goals, {reached} of them are reached");
    assert!(
        compared > 2 * models() / 5 && reached < compared && reached > compared / 2,
        "{compared} goals, {reached} are reached"
    );
}

#[test]
fn drawn_goals_of_random_models_are_kept() {
    drawn_goals_are_kept(11, &random::model(), |text| Dve::read(source(&text)).ok().map(|dve| dve.model));
    drawn_goals_are_kept(12, &random::slco::model(), |text| Slco::read(source(&text)).ok().map(|slco| slco.model));
    drawn_goals_are_kept(13, &network(), Some);
    drawn_goals_are_kept(14, &nets::nets(), |text| Some(nets::read(&text).model));
}

/// Goals for random models in DVE. Many are reached and some never are.
const GOALS: [&str; 6] = [
    "x == 2 and P_0.s2",
    "a[1] > 2",
    "P_0.l == 2 or y == 1",
    "not (x < 2) and not P_0.s1",
    "x + y > 3",
    "P_0.s2 and P_0.m[1] == 7",
];

#[test]
fn random_models_in_dve() {
    let (mut compared, mut whole, mut reduced, mut number) = (0, 0, 0, 0);
    with(models(), 1, &random::model(), |text| {
        let Ok(dve) = Dve::read(source(&text)) else { return };
        let dependencies = Dependencies::of(&dve.model, Tests::default(), false).unwrap();
        if let Err(what) = check(&dve.model, &dependencies, STATES) {
            panic!("{what}\n{text}");
        }
        if number % 5 == 0 {
            let of_types = Dependencies::knowing(Knowledge::Types, &dve.model, Tests::default(), false).unwrap();
            check(&dve.model, &of_types, STATES).unwrap_or_else(|what| panic!("{what}\n{text}"));
        }
        let mut checks = Checks::default();
        let goal = source(GOALS[number % GOALS.len()]);
        checks.add(Role::Goal, goal.text.clone(), dve.condition(&goal).unwrap().0);
        number += 1;
        match compare(&dve.model, &checks, 3000) {
            Ok(Some((states, left))) => {
                (compared, whole, reduced) = (compared + 1, whole + states, reduced + left);
            }
            Ok(None) => {}
            Err(what) => panic!("{what}\n{text}"),
        }
    });
    println!("{compared} models: {reduced} of {whole} states are left");
    assert!(compared > models() / 12 && reduced < whole, "{compared} models, {reduced} of {whole} states");
}

/// Goals for random models in SLCO. Many are reached and some never are.
const GOALS_OF_SLCO: [&str; 6] = [
    "p.x = 2 and p.M0.C",
    "q.a[1] > 2 or p.b and q.M0.B",
    "p.M0.B and q.M0.B and q.x <> p.x",
    "not (p.x < 2) and not q.M0.A",
    "p.x + q.x > 3",
    "p.n = 7 and q.b",
];

#[test]
fn random_models_in_slco() {
    let (mut read, mut compared, mut whole, mut reduced, mut number) = (0, 0, 0, 0, 0);
    with(models(), 4, &random::slco::model(), |text| {
        let Ok(slco) = Slco::read(source(&text)) else { return };
        read += 1;
        let dependencies = Dependencies::of(&slco.model, Tests::default(), false).unwrap();
        if let Err(what) = check(&slco.model, &dependencies, STATES) {
            panic!("{what}\n{text}");
        }
        let mut checks = Checks::default();
        let goal = source(GOALS_OF_SLCO[number % GOALS_OF_SLCO.len()]);
        checks.add(Role::Goal, goal.text.clone(), slco.condition(&goal).unwrap_or_else(|error| panic!("{error}")).0);
        number += 1;
        match compare(&slco.model, &checks, 3000) {
            Ok(Some((states, left))) => {
                (compared, whole, reduced) = (compared + 1, whole + states, reduced + left);
            }
            Ok(None) => {}
            Err(what) => panic!("{what} {}\n{text}", goal.text),
        }
    });
    println!("{read} models, {compared} compared: {reduced} of {whole} states are left");
    assert!(compared > models() / 12 && reduced < whole, "{read} models, {compared} compared, {reduced} of {whole} states");
}

/// A network of up to four components, with up to four states each, three labels, and up to eleven rules.
fn network() -> impl Strategy<Value = Model> {
    let table = (2u32..5).prop_flat_map(|states| {
        let transitions = proptest::collection::vec((0..states, 0u32..3, 0..states), 5..13);
        transitions.prop_map(move |all| {
            let (labels, targets): (Vec<u32>, Vec<u32>) = all.iter().map(|(_, label, target)| (*label, *target)).unzip();
            Table::new(states, 3, 0, all.iter().map(|(source, ..)| *source).collect(), &labels, &targets)
        })
    });
    let tables = proptest::collection::vec(table, 2..5);
    let rules = proptest::collection::vec((proptest::collection::vec((0u32..4, 0u32..3), 1..3), 0usize..3), 4..12);
    (tables, rules).prop_map(|(tables, rules)| {
        let variables = tables.iter().enumerate().map(|(number, table)| {
            let ty = Type { bits: 4, signed: false };
            Variable::new(format!("c{number}"), None, ty, false, vec![table.initial as i32])
        });
        let variables: Vec<Variable> = variables.collect();
        let components = tables.into_iter().enumerate();
        let components: Vec<Component> =
            components.map(|(variable, table)| Component { variable, table: Arc::new(table) }).collect();
        let rules = rules.into_iter().filter_map(|(mut parts, label)| {
            parts.retain(|(component, _)| (*component as usize) < components.len());
            parts.sort_unstable();
            parts.dedup_by_key(|(component, _)| *component);
            (!parts.is_empty()).then(|| Rule { label, parts: parts.into() })
        });
        let rules = rules.collect();
        let labels: Texts = ["a", "b", "c"].into_iter().collect();
        let network = Network::new(components, rules, labels);
        let parts = Parts { variables, network, ..Parts::default() };
        assembled(parts, &source("")).unwrap_or_else(|_| panic!("a small network"))
    })
}

#[test]
fn random_networks() {
    use crate::ir::Expression;
    use crate::ir::expression::Binary;
    let (mut compared, mut whole, mut reduced, mut number) = (0, 0, 0, 0);
    with(models(), 2, &network(), |model| {
        let dependencies = Dependencies::of(&model, Tests::default(), false).unwrap();
        if let Err(what) = check(&model, &dependencies, STATES) {
            panic!("{what}\n{model:?}");
        }
        let mut checks = Checks::default();
        let is = |variable, value| {
            let of = Expression::Variable(variable);
            Expression::binary(Binary::Equal, of, Expression::Constant(value), Default::default())
        };
        let goal = match number % 3 {
            0 => Expression::binary(Binary::And, is(0, 1), is(1, 2), Default::default()),
            1 => Expression::Enabled(number % 2),
            _ => Expression::unary(crate::ir::Unary::Not, Expression::Enabled(2)),
        };
        checks.add(Role::Goal, String::new(), goal);
        number += 1;
        match compare(&model, &checks, 3000) {
            Ok(Some((states, left))) => {
                (compared, whole, reduced) = (compared + 1, whole + states, reduced + left);
            }
            Ok(None) => {}
            Err(what) => panic!("{what}\n{model:?}"),
        }
    });
    println!("{compared} networks: {reduced} of {whole} states are left");
    assert!(compared > models() / 12 && reduced < whole, "{compared} networks, {reduced} of {whole} states");
}

/// Goals for random nets. Many are reached and some never are.
const GOALS_OF_NETS: [&str; 8] = [
    "tokens(p0) + tokens(p1) >= 3",
    "tokens(p0) == 2 and not fireable(t0)",
    "fireable(t1) or tokens(p2) > 1",
    "not (fireable(t0) or fireable(t1))",
    "tokens(p1) != 1 and tokens(p0) - 2 * tokens(p1) < 0",
    "tokens(p0) * tokens(p1) == 4",
    "fireable(t0) + fireable(t2) == 2",
    "tokens(p0, p1, p2) == 0 or tokens(p0) == 5",
];

#[test]
fn random_nets() {
    let (mut compared, mut reached, mut whole, mut reduced, mut number) = (0, 0, 0, 0, 0);
    with(2 * models(), 3, &nets::nets(), |text| {
        let net = nets::read(&text);
        let dependencies = Dependencies::of(&net.model, Tests::default(), false).unwrap();
        if let Err(what) = check(&net.model, &dependencies, STATES) {
            panic!("{what}\n{text}");
        }
        let mut checks = Checks::default();
        let goal = source(GOALS_OF_NETS[number % GOALS_OF_NETS.len()]);
        number += 1;
        // A small net may lack an element of the goal, which is then skipped.
        if let Ok((condition, _)) = net.condition(&goal) {
            checks.add(Role::Goal, goal.text.clone(), condition);
            reached += 1;
        }
        match compare(&net.model, &checks, 2000) {
            Ok(Some((states, left))) => {
                (compared, whole, reduced) = (compared + 1, whole + states, reduced + left);
            }
            Ok(None) => {}
            Err(what) => panic!("{what} {}\n{text}", goal.text),
        }
    });
    println!("{compared} nets, {reached} with a goal: {reduced} of {whole} states are left");
    assert!(
        compared > models() / 12 && reached > models() / 12 && reduced < whole,
        "{compared} nets, {reduced} of {whole} states"
    );
}

/// A net in which no dependency is superfluous: `t` and `u` want the token of `c`; `double` wants two tokens of `e`, and `one`
/// wants the last one.
fn exact_net() -> String {
    let places = [("a", 1), ("b", 0), ("c", 1), ("d", 0), ("e", 2), ("f", 0)].map(|(id, tokens)| nets::place(id, tokens));
    let transitions = ["t", "u", "v", "w", "double", "one", "back"].map(nets::transition);
    let arcs = [
        ("a", "t", 1),
        ("c", "t", 1),
        ("t", "b", 1),
        ("b", "v", 1),
        ("v", "a", 1),
        ("v", "c", 1),
        ("c", "u", 1),
        ("u", "d", 1),
        ("d", "w", 1),
        ("w", "c", 1),
        ("e", "double", 2),
        ("double", "f", 2),
        ("e", "one", 1),
        ("one", "f", 1),
        ("f", "back", 1),
        ("back", "e", 1),
    ];
    let arcs = arcs.map(|(from, to, weight)| nets::arc(from, to, weight));
    nets::page(&[places.concat(), transitions.concat(), arcs.concat()].concat())
}

/// Removes each bit of the matrices in turn. Returns, for conflicts and then for enablers, the number of removed bits and the
/// number of bits whose absence is detected.
fn dropped_and_found(model: &Model, dependencies: &Dependencies) -> [[usize; 2]; 2] {
    let (mut dropped, mut found) = ([0, 0], [0, 0]);
    let count = dependencies.actions.all.len();
    for (one, other) in (0..count).flat_map(|one| (0..one).map(move |other| (one, other))) {
        if dependencies.conflicts[one].contains(other) {
            let mut wrong = dependencies.clone();
            wrong.conflicts[one].set(other, false);
            wrong.conflicts[other].set(one, false);
            dropped[0] += 1;
            found[0] += usize::from(check(model, &wrong, STATES).is_err());
        }
    }
    for (test, enablers) in dependencies.enablers.iter().enumerate() {
        for action in enablers.ones() {
            let mut wrong = dependencies.clone();
            wrong.enablers[test].set(action, false);
            dropped[1] += 1;
            found[1] += usize::from(check(model, &wrong, STATES).is_err());
        }
    }
    [dropped, found]
}

#[test]
fn a_missing_bit_of_a_net_is_found() {
    let net = nets::read(&exact_net());
    let dependencies = Dependencies::of(&net.model, Tests::default(), false).unwrap();
    assert_eq!(check(&net.model, &dependencies, STATES), Ok(9));
    let [dropped, found] = dropped_and_found(&net.model, &dependencies);
    assert_eq!((dropped, found), ([2, 9], dropped), "bits that were removed, and whose absence was found: conflicts, enablers");
}

/// Transitions that take from different places of an invariant are never enabled together, so they accord.
#[test]
fn invariants_of_nets_are_used() {
    let arcs = [("a", "t", 1), ("s", "t", 1), ("t", "b", 1), ("b", "u", 1), ("s", "u", 1), ("u", "a", 1)];
    let conflicts = |tokens: u64| {
        let places = [nets::place("a", 1), nets::place("b", tokens), nets::place("s", 9)];
        let arcs = arcs.map(|(from, to, weight)| nets::arc(from, to, weight));
        let text = nets::page(&[places.concat(), ["t", "u"].map(nets::transition).concat(), arcs.concat()].concat());
        let net = nets::read(&text);
        let dependencies = Dependencies::of(&net.model, Tests::default(), true).unwrap();
        check(&net.model, &dependencies, STATES).unwrap();
        assert!(dependencies.reasons.unwrap().contains("may make true\tt\ttokens(b) >= 1"));
        let of_types = Dependencies::knowing(Knowledge::Types, &net.model, Tests::default(), false).unwrap();
        assert!(of_types.conflicts[0].contains(1), "invariants are not used");
        dependencies.conflicts[0].contains(1)
    };
    assert_eq!([0, 1].map(conflicts), [false, true], "with one token and with two");
}

/// Three processes in which no dependency is superfluous: each bit of the matrices is needed.
const EXACT: &str = "byte x, y;
    process A { state s, t; init s; trans s -> t { effect x = 1; }, t -> s { guard y == 1; effect x = 0; }; }
    process B { state s, t; init s; trans s -> t { guard x == 1; effect y = 1; }, t -> s { effect y = 0; }; }
    process C { byte z; state s; init s; trans s -> s { guard z < 2; effect z = z + 1; }, s -> s { guard z == 2; effect z = 0; }; }
    system async;";

#[test]
fn a_missing_bit_is_found() {
    let dve = read(EXACT);
    let dependencies = Dependencies::of(&dve.model, Tests::default(), false).unwrap();
    assert_eq!(check(&dve.model, &dependencies, STATES), Ok(12));
    let [dropped, found] = dropped_and_found(&dve.model, &dependencies);
    assert!(dropped[0] > 0 && dropped[1] > 0);
    assert_eq!(found, dropped, "bits whose absence was found, of those that were removed: conflicts, enablers");
}

/// Independent counters: one order of their steps is enough.
#[test]
fn independent_processes_are_ordered() {
    let process = |name: &str| {
        format!("process {name} {{ byte n; state s; init s; trans s -> s {{ guard n < 4; effect n = n + 1; }}; }}\n")
    };
    let text = format!("{}{}{}system async;", process("A"), process("B"), process("C"));
    let dve = read(&text);
    let mut checks = Checks::default();
    let goal = source("A.n == 3 and C.n == 4");
    checks.add(Role::Goal, goal.text.clone(), dve.condition(&goal).unwrap().0);
    assert_eq!(compare(&dve.model, &checks, 3000), Ok(Some((125, 13))));
}

#[test]
fn intervals_and_constants_are_used() {
    let mut fewer = 0;
    let mut bits = |declarations: &str, one: &str, other: &str| {
        let process =
            |name: &str, transition: &str| format!("process {name} {{ state s; init s; trans s -> s {{ {transition} }}; }}\n");
        let text = format!("{declarations}\n{}{}system async;", process("A", one), process("B", other));
        let dve = read(&text);
        let dependencies = Dependencies::of(&dve.model, Tests::default(), false).unwrap();
        check(&dve.model, &dependencies, 5000).unwrap();
        // Knowing only the types must not claim more independence.
        let of_types = Dependencies::knowing(Knowledge::Types, &dve.model, Tests::default(), false).unwrap();
        check(&dve.model, &of_types, 5000).unwrap();
        let sets = |of: &Dependencies| [&of.conflicts[..], &of.enablers].concat();
        assert!(sets(&dependencies).iter().zip(&sets(&of_types)).all(|(few, many)| few.is_subset(many)), "{text}");
        fewer += sets(&of_types).iter().map(|set| set.count_ones(..)).sum::<usize>()
            - sets(&dependencies).iter().map(|set| set.count_ones(..)).sum::<usize>();
        dependencies.conflicts[0].contains(1)
    };
    for (declarations, one, other, conflict) in [
        ("byte x, y;", "effect x = 1;", "effect y = 1;", false),
        ("byte x = 2;", "effect x = 1;", "effect x = 1;", false),
        ("byte x;", "effect x = 1;", "effect x = 2;", true),
        ("byte x;", "effect x = x + 1;", "effect x = x + 3;", false),
        ("byte x, y;", "effect x = x + 1;", "effect y = x;", true),
        ("byte x;", "guard x < 9; effect x = x + 1;", "guard x < 3;", true),
        ("byte x;", "guard x < 9; effect x = x + 1;", "guard x > 3;", false),
        ("byte x = 9;", "guard x > 1; effect x = x - 2;", "guard x > 0; effect x = x - 1;", true),
        ("byte x;", "effect x = 1;", "guard x == 2;", false),
        ("byte x; byte z;", "effect x = 1 - x;", "guard x < 2; effect z = 1 - z;", false),
        ("byte a[3];", "effect a[1] = 1;", "effect a[2] = 7;", false),
        ("byte a[3], i;", "guard i == 1; effect a[i] = 1;", "effect a[2] = 7;", false),
        ("byte a[3], i;", "guard i < 2; effect a[i] = 1, i = 1 - i;", "effect a[2] = 7;", false),
        ("byte a[3], i;", "guard i < 3; effect a[i] = 1, i = (i + 1) % 3;", "effect a[2] = 7;", true),
        ("int x;", "guard x < 5; effect x = x + 1;", "guard A.s; effect x = x;", true),
    ] {
        assert_eq!(bits(declarations, one, other), conflict, "{declarations} {one} {other}");
    }
    assert!(fewer > 0, "values exclude nothing");
}

#[test]
fn committed_locations_keep_others_waiting() {
    let dve = read(
        "byte x; process A { state s, t, u; init s; commit t; trans s -> t {}, t -> u { effect x = 1; }; }
        process B { state s, t; init s; trans s -> t {}; } system async;",
    );
    let dependencies = Dependencies::of(&dve.model, Tests::default(), false).unwrap();
    check(&dve.model, &dependencies, STATES).unwrap();
    assert!(dependencies.conflicts[0].contains(2), "A enters a committed location, where B must wait");
}

#[test]
fn reasons_are_given() {
    let dve = read(EXACT);
    let reasons = Dependencies::of(&dve.model, Tests::default(), true).unwrap().reasons.unwrap();
    assert!(reasons.contains("may make true\tA: s -> t (line 2)\t(x == 1)"), "{reasons}");
    assert!(reasons.contains("one may disable (y == 1)"), "{reasons}");
}
