//! Random models for tests: texts that are valid by construction.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// A model of two objects with up to two machines each, which use every form of communication. Some few texts are refused,
/// because a composite statement does not fit where it stands.
pub fn model() -> impl Strategy<Value = String> {
    (vec(machine(true), 1..3), vec(machine(false), 1..3)).prop_map(|(first, second)| {
        let class = |name: &str, machines: &[String]| {
            let mut text = format!("  {name} {{\n    variables Byte x Integer n := -1 Boolean b := false Byte[3] a := [1, 0, 2]\n");
            text += "    ports S T F G\n    state machines\n";
            for (number, machine) in machines.iter().enumerate() {
                text += &format!("    M{number} {{\n{machine}    }}\n");
            }
            text + "  }\n"
        };
        format!(
            "model random {{\n  actions tick\n  classes\n{}{}  objects p : P(), q : Q(x := 1)\n  channels\n    s(Byte) sync between \
             p.S and q.S\n    t(Byte, Boolean) sync between p.T and q.T\n    f(Byte) async[2] lossless from p.F to q.F\n    g(Byte) \
             async[1] lossy from q.G to p.G\n}}\n",
            class("P", &first),
            class("Q", &second)
        )
    })
}

/// A machine of the object that sends on `F` and receives on `G`, or of the other one.
fn machine(sends_f: bool) -> impl Strategy<Value = String> {
    vec(transition(sends_f), 1..6).prop_map(|transitions| {
        let around = "        A -> B { }\n        B -> C { [l := (l + 1) % 3] }\n";
        format!("      variables Byte l := 1\n      initial A states B C\n      transitions\n{around}{}", transitions.concat())
    })
}

fn transition(sends_f: bool) -> impl Strategy<Value = String> {
    let state = || select(vec!["A", "A", "B", "C"]);
    let priority = select(vec!["", "", "", "1: ", "2: "]);
    (priority, state(), state(), vec(statement(sends_f), 0..3)).prop_map(|(priority, from, to, statements)| {
        format!("        {priority}{from} -> {to} {{ {} }}\n", statements.join("; "))
    })
}

fn statement(sends_f: bool) -> impl Strategy<Value = String> {
    let assignments = || {
        let one = prop_oneof![
            4 => (target(), value()).prop_map(|(target, value)| format!("{target} := {value}")),
            1 => select(vec!["x := x + 1", "x := x - 1", "n := n + 1", "n := n - 2", "b := b + 1"]).prop_map(Into::into),
        ];
        vec(one, 1..3).prop_map(|all| all.join("; "))
    };
    prop_oneof![
        3 => comparison(),
        3 => (target(), value()).prop_map(|(target, value)| format!("{target} := {value}")),
        3 => assignments().prop_map(|all| format!("[{all}]")),
        4 => (comparison(), assignments()).prop_map(|(guard, all)| format!("[{guard}; {all}]")),
        1 => select(vec!["tick", "after 5 ms"]).prop_map(Into::into),
        6 => communication(sends_f),
    ]
}

fn communication(sends_f: bool) -> impl Strategy<Value = String> {
    let (sends, receives) = if sends_f { ("F", "G") } else { ("G", "F") };
    let signal = || select(vec!["m", "m", "o"]);
    prop_oneof![
        2 => (signal(), value()).prop_map(|(signal, value)| format!("send {signal}({value}) to S")),
        2 => (signal(), target(), guard()).prop_map(|(signal, to, guard)| format!("receive {signal}({to}{guard}) from S")),
        1 => (value(), comparison()).prop_map(|(value, truth)| format!("send m({value}, {truth}) to T")),
        1 => (target(), guard()).prop_map(|(to, guard)| format!("receive m({to}, b{guard}) from T")),
        2 => (signal(), value()).prop_map(move |(signal, value)| format!("send {signal}({value}) to {sends}")),
        2 => (signal(), target(), guard())
            .prop_map(move |(signal, to, guard)| format!("receive {signal}({to}{guard}) from {receives}")),
    ]
}

/// The condition of a receiver, with the values received.
fn guard() -> impl Strategy<Value = String> {
    prop_oneof![2 => Just(String::new()), 1 => comparison().prop_map(|guard| format!(" | {guard}"))]
}

/// A comparison that is often true.
fn comparison() -> impl Strategy<Value = String> {
    let sides = || select(vec!["x", "n", "l", "a[0]", "a[1]", "a[x % 3]", "1", "2"]);
    let one = || {
        (sides(), select(vec!["<", "<=", "<>", "="]), sides())
            .prop_map(|(left, operator, right)| format!("{left} {operator} {right}"))
    };
    prop_oneof![
        6 => one(),
        1 => (one(), select(vec!["and", "or", "xor"]), one())
            .prop_map(|(left, operator, right)| format!("({left}) {operator} ({right})")),
        1 => one().prop_map(|one| format!("not ({one})")),
        1 => one().prop_map(|one| format!("b or {one}")),
    ]
}

/// A value to store: mostly a small number, to limit the number of states.
fn value() -> impl Strategy<Value = String> {
    let one = || select(vec!["x", "n", "l", "a[2]", "a[l % 3]", "b", "1", "2"]);
    prop_oneof![
        2 => select(vec!["0", "1", "2", "3"]).prop_map(Into::into),
        3 => select(vec!["x", "l", "a[1]"]).prop_map(|name| format!("({name} + 1) % 3")),
        2 => (one(), select(vec!["+", "-", "*"]), one())
            .prop_map(|(left, operator, right)| format!("({left} {operator} {right}) % 3")),
        1 => one().prop_map(Into::into),
        1 => (one(), one()).prop_map(|(left, right)| format!("{left} / {right}")),
    ]
}

fn target() -> impl Strategy<Value = String> {
    prop_oneof![
        12 => select(vec!["x", "n", "l", "b", "a[0]", "a[1]", "a[x % 3]"]),
        1 => Just("a[l]"),
    ]
    .prop_map(Into::into)
}
