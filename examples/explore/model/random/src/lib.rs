//! Random models for tests: texts that are valid by construction, in DVE and, in [`slco`], in SLCO; and nets in PNML
//! ([`mod@net`]).

pub mod net;
pub mod slco;

use proptest::prelude::*;
use proptest::sample::select;

/// A model of up to three processes, which read and write a few variables and use every form of communication.
pub fn model() -> impl Strategy<Value = String> {
    proptest::collection::vec(process(), 1..4).prop_map(|processes| {
        let mut text = "const byte K = 2;\nbyte x, a[3] = {1, 0, 2}, b[2][3] = {{1}, {0, 2}};\nint y = -1;\n".to_string();
        text += "channel c, d;\nchannel {byte} q[2];\nchannel {byte, int} t[0];\n";
        for (number, process) in processes.iter().enumerate() {
            text += &format!("process P_{number} {{\n{process}}}\n");
        }
        text + "system async;\n"
    })
}

/// A model as from `model` with a property process of up to four states.
pub fn product() -> impl Strategy<Value = String> {
    let moves = proptest::collection::vec((0usize..4, 0usize..4, proptest::option::weighted(0.6, guard())), 1..9);
    let accepting = proptest::collection::vec(0usize..4, 1..4);
    // Automaton of "the guard holds for ever from some point on". Often it holds only if some process stops moving.
    let for_ever = guard().prop_map(|guard| (vec![(0, 0, None), (0, 1, Some(guard.clone())), (1, 1, Some(guard))], vec![1]));
    let automata = prop_oneof![2 => (moves, accepting), 1 => for_ever];
    (model(), automata).prop_map(|(model, (moves, accepting))| {
        let accepting: Vec<String> =
            accepting.iter().collect::<std::collections::BTreeSet<_>>().iter().map(|at| format!("q{at}")).collect();
        let moves = moves.iter().map(|(from, to, guard)| {
            format!("q{from} -> q{to} {{ {} }}", guard.as_ref().map_or_else(String::new, |guard| format!("guard {guard};")))
        });
        let moves: Vec<String> = moves.collect();
        let automaton = format!(
            "process Runs {{\nstate q0, q1, q2, q3;\ninit q0;\naccept {};\ntrans {};\n}}\n",
            accepting.join(", "),
            moves.join(",\n")
        );
        model.replace("system async;", &format!("{automaton}system async property Runs;"))
    })
}

/// A guard of a property: mostly about locations of processes, and rarely one that can cause a fault.
fn guard() -> impl Strategy<Value = String> {
    let operand = || select(vec!["P_0.s0", "P_0.s1", "P_0.s2", "x == 1", "x != 0", "P_0.l > 1", "y < 0", "a[1] == 0"]);
    prop_oneof![
        4 => operand().prop_map(String::from),
        4 => operand().prop_map(|one| format!("not ({one})")),
        2 => (operand(), operand()).prop_map(|(one, other)| format!("({one}) and not ({other})")),
        1 => (operand(), operand()).prop_map(|(one, other)| format!("({one}) or ({other})")),
        1 => Just("a[x] < 2".to_string()),
    ]
}

fn process() -> impl Strategy<Value = String> {
    let transitions = proptest::collection::vec(transition(), 1..7);
    let committed = select(vec!["", "", "commit s1;\n", "commit s0, s2;\n"]);
    let asserted = proptest::option::weighted(0.2, expression());
    (transitions, committed, asserted).prop_map(|(transitions, committed, asserted)| {
        let asserted = asserted.map_or_else(String::new, |condition| format!("assert s0: {condition};\n"));
        let (around, transitions) =
            ("  s0 -> s1 {},\n  s1 -> s2 { effect l = (l + 1) % 3; },\n  -> s0 {}", transitions.join(",\n"));
        format!("byte l = 1, m[2];\nstate s0, s1, s2;\ninit s0;\n{committed}{asserted}trans\n{around},\n{transitions};\n")
    })
}

fn transition() -> impl Strategy<Value = String> {
    let state = || select(vec!["s0", "s0", "s1", "s2"]);
    let guard = proptest::option::weighted(0.4, prop_oneof![2 => comparison(), 1 => expression()]);
    let effects = proptest::collection::vec((target(), value()), 0..3);
    (state(), state(), guard, communication(), effects).prop_map(|(from, to, guard, communication, effects)| {
        let guard = guard.map_or_else(String::new, |guard| format!("guard {guard}; "));
        let effects: Vec<String> = effects.iter().map(|(target, value)| format!("{target} = {value}")).collect();
        let effects = if effects.is_empty() { String::new() } else { format!("effect {}; ", effects.join(", ")) };
        format!("  {from} -> {to} {{ {guard}{communication}{effects}}}")
    })
}

/// A comparison that is often true.
fn comparison() -> impl Strategy<Value = String> {
    let sides = || select(vec!["x", "y", "l", "a", "a[1]", "m[0]", "1", "2"]);
    (sides(), select(vec!["<", "<=", "!=", "=="]), sides())
        .prop_map(|(left, operator, right)| format!("{left} {operator} {right}"))
}

/// A value to store: mostly a small number, to limit the number of states.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => expression().prop_map(|value| format!("({value} & 3) % 3")),
        2 => select(vec!["x", "y", "l"]).prop_map(|name| format!("({name} + 1) % 3")),
        1 => select(vec!["0", "1", "2"]).prop_map(Into::into),
        1 => expression(),
    ]
}

fn communication() -> impl Strategy<Value = String> {
    prop_oneof![
        9 => Just(String::new()),
        1 => Just("sync c!; ".to_string()),
        1 => Just("sync c?; ".to_string()),
        1 => value().prop_map(|value| format!("sync d!{value}; ")),
        1 => target().prop_map(|target| format!("sync d?{target}; ")),
        1 => value().prop_map(|value| format!("sync q!({value}); ")),
        1 => target().prop_map(|target| format!("sync q?{target}; ")),
        1 => (value(), value()).prop_map(|(first, second)| format!("sync t!{{{first}, {second}}}; ")),
        1 => (target(), target()).prop_map(|(first, second)| format!("sync t?{{{first}, {second}}}; ")),
    ]
}

fn target() -> impl Strategy<Value = String> {
    prop_oneof![
        12 => select(vec!["x", "y", "a", "a[1]", "a[x % 3]", "l", "m[l % 2]", "m[1]"]),
        1 => Just("m[l]"),
        1 => select(vec!["b[1][2]", "b[l % 2][0]", "b[0][x]", "b[l][l]"]),
    ]
    .prop_map(Into::into)
}

/// An expression over small values, so that few states are reached and some, but few, indices are out of range.
fn expression() -> impl Strategy<Value = String> {
    let leaves = vec![
        "0",
        "1",
        "2",
        "3",
        "x",
        "y",
        "a",
        "a[2]",
        "a[l]",
        "l",
        "m[0]",
        "m[x % 2]",
        "b[1][1]",
        "b[x % 2][l % 3]",
        "b[l][x]",
        "K",
        "P_0.s1",
        "P_0.l",
        "P_0->m[1]",
        "true",
    ];
    let leaf = select(leaves).prop_map(String::from);
    leaf.prop_recursive(3, 12, 3, |inner| {
        let operators =
            vec!["+", "-", "*", "==", "!=", "<", "<=", ">", ">=", "and", "or", "imply", "&&", "||", "&", "|", "^", "<<", ">>"];
        prop_oneof![
            4 => (inner.clone(), select(operators), inner.clone())
                .prop_map(|(left, operator, right)| format!("{left} {operator} {right}")),
            2 => inner.clone().prop_map(|inner| format!("({inner})")),
            2 => inner.clone().prop_map(|inner| format!("({inner}) % 3")),
            1 => (inner.clone(), select(vec!["2", "3", "-2", "x"])).prop_map(|(left, right)| format!("{left} / {right}")),
            1 => inner.clone().prop_map(|inner| format!("not {inner}")),
            1 => inner.clone().prop_map(|inner| format!("-{inner}")),
            1 => (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(condition, then, otherwise)| format!("({condition} ? {then} : {otherwise})")),
            1 => inner.prop_map(|inner| format!("~({inner})")),
        ]
    })
}
