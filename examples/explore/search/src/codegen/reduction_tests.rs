//! Reduced searches by compiled code: the choice in each state is the interpreter's.
//!
//! Keeps this promise of `examples/explore/docs/reductions.md`:
//!
//! - Compiled code takes the steps that the interpreter takes in a reduced search, in every language.

use super::on_cpu::Compiled;
use super::tests::{network, or_skip, own_models, read_file};
use crate::reduced::Reduced;
use crate::successors::{Expansion, Interpreted, Scratch, Successors};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rayon::prelude::*;
use std::collections::HashSet;
use std::path::Path;
use warpset_model::checks::{Checks, Role};
use warpset_model::interpreter::Interpreter;
use warpset_model::ir::{Model, Source};
use warpset_model::language::Text;
use warpset_model::reduction::stubborn::{Kept, Stubborn};
use warpset_model::slco;
use warpset_random_models as random;
use warpset_testing::sizes::{full, sized};

/// Number of states of a model in which the choices are compared.
const STATES: usize = 1000;

/// Number of random models in DVE, and of pairs of a random network and a random net: a fiftieth of `WARPSET_REDUCED_MODELS`, if
/// that is set, else five in a full run and two otherwise. Each model is compiled up to three times.
fn models() -> usize {
    let asked = std::env::var("WARPSET_REDUCED_MODELS").ok().and_then(|count| count.parse().ok());
    asked.map_or(sized(5, 2, 2), |count: usize| count / 50)
}

const KEPT: [Kept; 3] =
    [Kept { deadlocks: true, goals: false }, Kept { deadlocks: false, goals: true }, Kept { deadlocks: true, goals: true }];

/// Compares the successors that both sources keep in the first states of a model. Returns the numbers of successors that are kept
/// and of all.
fn compare(whole: &Interpreted, one: &impl Successors, other: &impl Successors) -> Result<[usize; 2], String> {
    let expanded = |source: &dyn Successors, state: &[u32]| {
        let mut expansion = Expansion::default();
        source.expand(state, &mut Scratch::default(), &mut expansion);
        expansion
    };
    let initial = whole.interpreter.model().initial_state();
    let (mut seen, mut states, mut numbers) = (HashSet::from([initial.clone()]), vec![initial], [0, 0]);
    let mut next = 0;
    while let Some(state) = states.get(next).cloned() {
        next += 1;
        let [all, a, b] = [whole as &dyn Successors, one, other].map(|source| expanded(source, &state));
        if (&a.successors, a.deadlocks, a.overflows, &a.violation) != (&b.successors, b.deadlocks, b.overflows, &b.violation) {
            return Err(format!("{state:x?} after {next} states: {} and {} steps", a.parents.len(), b.parents.len()));
        }
        numbers[0] += a.parents.len();
        numbers[1] += all.parents.len();
        for successor in all.successors.chunks_exact(state.len()) {
            if seen.len() < STATES && seen.insert(successor.to_vec()) {
                states.push(successor.to_vec());
            }
        }
    }
    // Expanding all states at once gives the same choices.
    let words = states.concat();
    let [a, b] = [one as &dyn Successors, other].map(|source| expanded(source, &words));
    if (a.parents, a.successors) != (b.parents, b.successors) { Err("all states at once".into()) } else { Ok(numbers) }
}

/// Compares all kinds of reductions of a model. Returns the numbers of successors that are kept and of all; `None` if the model
/// is not reduced, or without a compiler.
fn compare_model(model: &Model, checks: &Checks) -> Option<[usize; 2]> {
    let interpreted = Interpreted::new(Interpreter::new(model), checks);
    let mut sums = [0, 0];
    for kept in KEPT.into_iter().filter(|kept| !kept.goals || !checks.conditions.is_empty()) {
        let stubborn = Stubborn::of(model, checks, kept).ok()?;
        let compiled = or_skip(&interpreted, Compiled::reduced(&interpreted, &stubborn))?;
        let reduced = Reduced { interpreted: &interpreted, stubborn: &stubborn };
        let numbers = compare(&interpreted, &reduced, &compiled);
        let numbers = numbers.unwrap_or_else(|what| panic!("{} {kept:?}: {what}", model.source.name));
        sums = [sums[0] + numbers[0], sums[1] + numbers[1]];
    }
    Some(sums)
}

/// Compares a model with these goals, each alone and all together.
fn compare_text(text: &Text, goals: &[&str]) -> Option<[usize; 2]> {
    let condition =
        |goal: &str| text.condition(&Source { name: "goal".into(), text: goal.into() }).map(|(condition, _)| condition);
    // Small models lack some of the names.
    let goals = goals.iter().filter_map(|goal| Some((goal.to_string(), condition(goal).ok()?)));
    let mut checks = Checks { deadlocks: true, ..Checks::of_model(text.model()) };
    goals.for_each(|(goal, condition)| checks.add(Role::Goal, goal, condition));
    compare_model(text.model(), &checks)
}

/// Values of a strategy that depend only on `seed`.
fn values<S: Strategy>(strategy: &S, seed: u8, count: usize) -> Vec<S::Value> {
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), random);
    (0..count).map(|_| strategy.new_tree(&mut runner).expect("a value").current()).collect()
}

/// Adds up the numbers of successors of all models. Some successors must be left out, unless no model was compared.
fn assert_some_is_left_out(numbers: Vec<Option<[usize; 2]>>) {
    let all: Vec<[usize; 2]> = numbers.into_iter().flatten().collect();
    let [kept, of] = [0, 1].map(|at| all.iter().map(|numbers| numbers[at]).sum::<usize>());
    println!("{} models: {kept} of {of} steps are kept", all.len());
    assert!(all.is_empty() || kept < of, "{} models, {kept} of {of} steps", all.len());
}

#[test]
fn compiled_choices_of_own_models_are_the_interpreters() {
    let mut models = own_models();
    // A plain run tests one model of each language, and one model with messages.
    let some = ["philosophers.dve", "mailbox.dve", "vending.slco", "crossing.exp", "buffer.aut"];
    models.retain(|path| full() || some.iter().any(|name| path.ends_with(name)));
    let numbers = models.par_iter().map(|path| compare_text(&read_file(path), &[])).collect();
    assert_some_is_left_out(numbers);
}

#[test]
fn compiled_choices_of_random_models_in_dve_are_the_interpreters() {
    let goals = ["x == 2 and P_0.s2 and (y == 1 or P_0.l > 1)", "a[1] > 2 or (x == 1 and (y == 0 or P_0.s1) and P_0.l == 2)"];
    let folder = tempfile::tempdir().unwrap();
    let texts: Vec<_> = values(&random::model(), 11, models()).into_iter().enumerate().collect();
    let numbers = texts.par_iter().map(|(number, text)| {
        let path = folder.path().join(format!("{number}.dve"));
        std::fs::write(&path, text).unwrap();
        // A few of the random texts are not models.
        warpset_model::dve::Dve::read(Source { name: "random".into(), text: text.clone() }).ok()?;
        compare_text(&read_file(&path), &goals[number % 2..])
    });
    assert_some_is_left_out(numbers.collect());
}

#[test]
fn compiled_choices_of_random_models_in_slco_are_the_interpreters() {
    let goals = ["p.x = 2 and p.M0.C and (q.b or q.M0.B)", "q.a[1] > 2 or (p.x = 1 and (q.n < 0 or p.M0.B))"];
    let folder = tempfile::tempdir().unwrap();
    let texts: Vec<_> = values(&random::slco::model(), 14, models()).into_iter().enumerate().collect();
    let numbers = texts.par_iter().map(|(number, text)| {
        let path = folder.path().join(format!("{number}.slco"));
        std::fs::write(&path, text).unwrap();
        // A few of the random texts are not models.
        slco::Slco::read(Source { name: "random".into(), text: text.clone() }).ok()?;
        compare_text(&read_file(&path), &goals[number % 2..])
    });
    assert_some_is_left_out(numbers.collect());
}

/// A net of up to six places with up to three tokens each and up to nine transitions with weights up to 2, in PNML.
fn nets() -> impl Strategy<Value = String> {
    use proptest::collection::vec;
    let arcs = || vec((0usize..6, 1u32..3), 0..3);
    (vec(0u32..4, 3..7), vec((arcs(), arcs()), 4..10)).prop_map(|(places, transitions)| {
        let mut text = String::new();
        for (place, tokens) in places.iter().enumerate() {
            text += &format!("<place id=\"p{place}\"><initialMarking><text>{tokens}</text></initialMarking></place>\n");
        }
        for (number, (mut takes, puts)) in transitions.into_iter().enumerate() {
            text += &format!("<transition id=\"t{number}\"/>\n");
            // A transition that takes nothing would put tokens without end.
            takes.push((number % places.len(), 1));
            for (arcs, takes) in [(takes, true), (puts, false)] {
                let mut of_places = std::collections::BTreeMap::new();
                arcs.into_iter().for_each(|(place, weight)| *of_places.entry(place % places.len()).or_insert(0) = weight);
                for (place, weight) in of_places {
                    let (place, transition) = (format!("p{place}"), format!("t{number}"));
                    let (from, to) = if takes { (place, transition) } else { (transition, place) };
                    text += &format!("<arc id=\"{from}-{to}\" source=\"{from}\" target=\"{to}\">");
                    text += &format!("<inscription><text>{weight}</text></inscription></arc>\n");
                }
            }
        }
        page(&text)
    })
}

fn page(elements: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<pnml xmlns=\"http://www.pnml.org/version-2009/grammar/pnml\">\n<net id=\"n\" \
         type=\"http://www.pnml.org/version-2009/grammar/ptnet\"><page id=\"page\">\n{elements}\n</page></net></pnml>\n"
    )
}

fn read_net(folder: &Path, number: usize, text: &str) -> Text {
    let path = folder.join(format!("{number}.pnml"));
    std::fs::write(&path, text).unwrap();
    read_file(&path)
}

const GOALS_OF_NETS: [&str; 4] = [
    "tokens(p0) == 2 and not fireable(t0) and (tokens(p1) > 1 or fireable(t2, t3))",
    "not (fireable(t0) or fireable(t1)) and tokens(p1) != 1",
    "fireable(t0) + fireable(t2) == 2 or (tokens(p0) >= 2 and tokens(p2) <= 1)",
    "tokens(p0, p1, p2) == 0",
];

#[test]
fn compiled_choices_of_random_nets_are_the_interpreters() {
    let folder = tempfile::tempdir().unwrap();
    let texts: Vec<_> = values(&nets(), 12, 2 * models()).into_iter().enumerate().collect();
    let numbers = texts.par_iter().map(|(number, text)| {
        compare_text(&read_net(folder.path(), *number, text), &GOALS_OF_NETS[number % GOALS_OF_NETS.len()..])
    });
    assert_some_is_left_out(numbers.collect());
}

/// Tests a net with more firings than those for which statements are generated: independent cycles. The last cycles compete for a
/// token.
#[test]
fn compiled_choices_of_a_large_net_are_the_interpreters() {
    let (folder, mut text) = (tempfile::tempdir().unwrap(), String::new());
    for at in 0..210 {
        let mut arc = |from: &str, to: &str| {
            text.push_str(&format!("<arc id=\"{from}-{to}\" source=\"{from}\" target=\"{to}\"/>\n"));
        };
        for (from, to) in [("a", "t"), ("t", "b"), ("b", "u"), ("u", "a")] {
            arc(&format!("{from}{at}"), &format!("{to}{at}"));
        }
        if at > 206 {
            arc("shared", &format!("t{at}"));
            arc(&format!("u{at}"), "shared");
        }
        let tokens = u32::from(at > 204);
        text +=
            &format!("<place id=\"a{at}\"><initialMarking><text>{tokens}</text></initialMarking></place><place id=\"b{at}\"/>");
        text += &format!("<transition id=\"t{at}\"/><transition id=\"u{at}\"/>\n");
    }
    text += "<place id=\"shared\"><initialMarking><text>1</text></initialMarking></place>";
    let net = read_net(folder.path(), 0, &page(&text));
    assert!(super::net::has_tables(net.model()));
    let goal = "tokens(b205) == 1 and tokens(b208) == 1 and (fireable(u209) or tokens(a206) == 0)";
    assert_some_is_left_out(vec![compare_text(&net, &[goal])]);
}

/// Source, label and target of each transition of a component.
type Transitions = Vec<(u32, u32, u32)>;

/// A network of up to four components with up to four states each, and a number that chooses the gates on which they meet.
fn networks() -> impl Strategy<Value = (Vec<Transitions>, u32)> {
    use proptest::collection::vec;
    (vec(vec((0u32..4, 0u32..4, 0u32..4), 4..10), 3..5), 0u32..1000)
}

#[test]
fn compiled_choices_of_random_networks_are_the_interpreters() {
    let all: Vec<_> = values(&networks(), 13, 2 * models()).into_iter().enumerate().collect();
    let numbers = all.par_iter().map(|(number, (components, gates))| {
        let folder = tempfile::tempdir().unwrap();
        let mut names = Vec::new();
        for (component, transitions) in components.iter().enumerate() {
            // Gate D of a component belongs to that component alone.
            let line = |(from, label, to): &(u32, u32, u32)| match label {
                3 => format!("({from}, \"D !{component}\", {to})\n"),
                _ => format!("({from}, {}, {to})\n", ["A", "B", "C"][*label as usize]),
            };
            let lines: String = transitions.iter().map(line).collect();
            let name = format!("c{component}");
            let text = format!("des (0, {}, 4)\n{lines}", transitions.len());
            std::fs::write(folder.path().join(format!("{name}.aut")), text).unwrap();
            names.push(name);
        }
        let gate = |digit: u32| ["", "A", "A, B", "A, B, C", "C"][(gates / 5u32.pow(digit) % 5) as usize];
        let joined =
            names.iter().enumerate().skip(1).fold(names[0].clone(), |so_far, (at, name)| {
                format!("(par {} in {so_far} || {name} end par)", gate(at as u32 - 1))
            });
        let joined = joined.replace("par  in", "par");
        let path = folder.path().join("main.exp");
        std::fs::write(&path, joined).unwrap();
        let goals = ["c0 == 1 and c1 == 2 and (c2 == 3 or not enabled(A))", "enabled(B) and c1 != 0", "not enabled(C)"];
        compare_text(&read_file(&path), &goals[number % 3..])
    });
    assert_some_is_left_out(numbers.collect());
}

/// Tests rules with several steps, and the labels of a component with a single state.
#[test]
fn compiled_choices_of_a_network_are_the_interpreters() {
    let (_folder, text, checks) = network();
    let numbers = compare_model(text.model(), &checks);
    println!("{numbers:?}");
}

/// Without the conflicts, or without the enablers, compiled code chooses other steps, and the comparison must find that.
#[test]
fn a_missing_bit_is_found_in_compiled_choices() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/peterson.dve");
    let (text, checks) = (read_file(&path), Checks::default());
    let interpreted = Interpreted::new(Interpreter::new(text.model()), &checks);
    let stubborn = Stubborn::of(text.model(), &checks, KEPT[0]).unwrap();
    let reduced = Reduced { interpreted: &interpreted, stubborn: &stubborn };
    let mut wrong = [stubborn.clone(), stubborn.clone()];
    for one in 0..stubborn.dependencies.conflicts.len() {
        wrong[0].dependencies.conflicts[one].clear();
    }
    wrong[1].dependencies.enablers.iter_mut().for_each(|enablers| enablers.clear());
    for wrong in wrong {
        let Some(compiled) = or_skip(&interpreted, Compiled::reduced(&interpreted, &wrong)) else { return };
        assert!(compare(&interpreted, &reduced, &compiled).is_err(), "the missing bits make no difference");
    }
}
