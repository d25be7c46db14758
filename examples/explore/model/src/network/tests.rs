//! Tests the meaning of networks, and the errors for invalid texts.
//!
//! Keeps this promise of `examples/explore/docs/exp.md`:
//!
//! - `enabled(A)` refers to a gate, `enabled("A")` to a label.

use super::*;
use crate::interpreter::{Interpreter, Scratch, Step as Taken};
use proptest::prelude::*;
use std::collections::HashSet;
use std::fmt::Write as _;
use tempfile::TempDir;

/// A folder with files of transition systems, each given by its name and transitions.
pub struct Files(TempDir);

pub type Transitions<'a> = &'a [(u32, &'a str, u32)];

impl Files {
    pub fn new(systems: &[(&str, Transitions)]) -> Self {
        let files = Self(TempDir::new().unwrap());
        systems.iter().for_each(|(name, transitions)| files.write(&format!("{name}.aut"), &aut(transitions)));
        files
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.path().join(name), text).unwrap();
    }

    pub fn read_with(&self, text: &str, reading: &Reading) -> Result<Networks> {
        let source = Source { name: "test".into(), text: text.into() };
        Networks::read_exp(source, &self.0.path().join("test.exp"), reading)
    }

    pub fn read(&self, text: &str) -> Result<Networks> {
        self.read_with(text, &Reading::default())
    }

    /// Returns the number of states, the number of steps, and the labels of a network.
    pub fn explored(&self, text: &str) -> (usize, usize, Vec<String>) {
        explored(&self.read(text).unwrap_or_else(|error| panic!("{text}: {error:#}")))
    }
}

pub fn aut(transitions: Transitions) -> String {
    let states = transitions.iter().map(|(from, _, to)| from.max(to) + 1).max().unwrap_or(1);
    let mut text = format!("des (0, {}, {states})\n", transitions.len());
    for (from, label, to) in transitions {
        writeln!(text, "({from}, \"{label}\", {to})").unwrap();
    }
    text
}

fn explored(network: &Networks) -> (usize, usize, Vec<String>) {
    let model = &network.model;
    let interpreter = Interpreter::new(model);
    let mut states = vec![model.initial_state()];
    let mut seen: HashSet<Vec<u32>> = states.iter().cloned().collect();
    let (mut at, mut steps, mut labels) = (0, 0, Vec::new());
    while at < states.len() {
        let state = states[at].clone();
        let visit = |step: Taken, successor: &[u32]| {
            steps += 1;
            let Taken::Rule(rule) = step else { panic!("a step without a rule") };
            labels.push(model.rule_label(rule).to_string());
            if seen.insert(successor.to_vec()) {
                states.push(successor.to_vec());
            }
        };
        interpreter.steps(&state, &mut Scratch::default(), visit).unwrap();
        at += 1;
    }
    labels.sort();
    labels.dedup();
    (states.len(), steps, labels)
}

fn read_aut(text: &[u8]) -> Result<Networks> {
    let bytes = Some(text.len() as u64);
    Networks::read_aut("test".into(), Path::new("test.aut"), text, bytes, &Reading::default())
}

/// Two systems with labels that move alone (`X`, `Y`), labels that synchronise (`A !1`, `A !2`, `B`) and the hidden label.
fn two() -> Files {
    let one = [(0, "A !1", 1), (0, "A !2", 1), (0, "B", 1), (1, "X", 0), (0, "i", 0)];
    let other = [(0, "A !1", 1), (0, "A !3", 1), (0, "B", 1), (1, "Y", 0)];
    Files::new(&[("one", &one), ("other", &other)])
}

#[test]
fn operators_say_who_moves_together() {
    let files = two();
    for (text, states, steps, labels) in [
        // One system has five transitions, the other four; each can be taken in two states of the other system.
        ("one.aut ||| other", 4, 18, &["A !1", "A !2", "A !3", "B", "X", "Y", "i"][..]),
        // From (0, 0), both systems go together to (1, 1) by `A !1` or `B`. Then `X` and `Y` follow in any order. The first
        // system takes `i` in its state 0, for both states of the second system.
        ("one || other", 2, 3, &["A !1", "B", "i"]),
        ("one |[A]| other", 4, 11, &["A !1", "B", "X", "Y", "i"]),
        ("one |[A, B]| other", 4, 8, &["A !1", "B", "X", "Y", "i"]),
        ("par A, B in one || other end par", 4, 8, &["A !1", "B", "X", "Y", "i"]),
        ("par B, A -> one || A, B -> other end par", 4, 8, &["A !1", "B", "X", "Y", "i"]),
        ("par all in one || other end par", 2, 3, &["A !1", "B", "i"]),
        // A component that does not have the gate in its interface takes it alone. A gate in only one interface does not
        // synchronise.
        ("par A -> one || B -> other end par", 4, 18, &["A !1", "A !2", "A !3", "B", "X", "Y", "i"]),
        ("label par \"A !1\" in one || other end par", 4, 15, &["A !1", "A !2", "A !3", "B", "X", "Y", "i"]),
        ("hide A in one |[A]| other", 4, 11, &["B", "X", "Y", "i"]),
        ("(hide A in one end hide) |[A]| other", 4, 14, &["B", "X", "Y", "i"]),
        ("cut A, B in one ||| other end cut", 1, 1, &["i"]),
        ("hide all but A in one ||| other end hide", 4, 18, &["A !1", "A !2", "A !3", "i"]),
        ("total hide \"A .1\" in one ||| other end hide", 4, 18, &["A !2", "A !3", "B", "X", "Y", "i"]),
        ("partial cut \"[12]\" in one ||| other end cut", 4, 12, &["A !3", "B", "X", "Y", "i"]),
        ("gate rename A -> B, B -> A in one end rename", 2, 5, &["A", "B !1", "B !2", "X", "i"]),
        ("total rename \"A !\\(.*\\)\" -> \"\\1\" in one end rename", 2, 5, &["1", "2", "B", "X", "i"]),
        // The hidden label never changes.
        ("rename i -> Z in cut i in hide i in one end hide end cut end rename", 2, 5, &["A !1", "A !2", "B", "X", "i"]),
        ("label par using \"A !2\" * \"A !3\" -> M, X * _ -> X, _ * Y -> Y in one || other end par", 4, 7, &["M", "X", "Y", "i"]),
        ("gate par using A * A -> M, X * _ -> X, _ * Y -> Y in one || other end par", 4, 7, &["M !1", "X", "Y", "i"]),
        // Equal vectors count once; vectors with different results do not.
        ("label par using B * B -> B, B * B -> B, B * B -> C in one || other end par", 2, 3, &["B", "C", "i"]),
    ] {
        let found = files.explored(text);
        assert_eq!((found.0, found.1), (states, steps), "{text}: {found:?}");
        assert_eq!(found.2, labels, "{text}");
    }
}

#[test]
fn operators_are_right_associative_on_one_level() {
    let files = Files::new(&[("a", &[(0, "G", 1)]), ("b", &[(0, "G", 1)]), ("c", &[(0, "G", 1)])]);
    // b and c synchronise, whatever a does.
    assert_eq!(files.explored("a ||| b |[G]| c"), files.explored("a ||| (b |[G]| c)"));
    assert_eq!(files.explored("a ||| b |[G]| c").0, 4);
    // c synchronises with a or with b.
    assert_eq!(files.explored("(a ||| b) |[G]| c").0, 3);
    assert_eq!(files.explored("hide G in a |[G]| b").1, 1);
}

#[test]
fn some_of_many_meet() {
    let files = Files::new(&[("g", &[(0, "MEET", 1), (1, "PART", 0)])]);
    let all = ["g"; 4].join(" || ");
    // Two of four components synchronise, and each parts alone: 2^n states, n (n - 1) 2^(n - 3) + n 2^(n - 1) transitions.
    assert_eq!(files.explored(&format!("par MEET#2 in {all} end par")).1, 24 + 32);
    // All four components synchronise at once.
    assert_eq!(files.explored(&format!("par MEET in {all} end par")).1, 1 + 32);
    // Two or three components synchronise: each choice of three components in state 0 adds one transition.
    let (states, steps, _) = files.explored(&format!("par MEET#2, MEET#3 in {all} end par"));
    assert_eq!((states, steps), (16, 24 + 32 + 4 * 2));
    // Two of the three components that have the gate in their interface synchronise. The fourth moves alone.
    let interfaces = "par MEET#2 in MEET -> g || MEET -> g || MEET -> g || g end par";
    assert_eq!(files.explored(interfaces).1, 2 * (6 + 12) + 8 + 8);
}

#[test]
fn choices_multiply() {
    let files = Files::new(&[("t", &[(0, "T", 0), (0, "T", 1), (0, "T", 2)])]);
    let (states, steps, _) = files.explored("par T in t || t || t end par");
    assert_eq!((states, steps), (27, 27));
    assert_eq!(files.explored("par t || t end par").1, 2 * 3 * 3);
    // Equal lines are separate transitions.
    assert_eq!(explored(&read_aut(b"des (0, 2, 1)\n(0, A, 0)\n(0, \"A\", 0)\n").unwrap()).1, 2);
}

#[test]
fn options_say_what_takes_part_in_nothing() {
    let files = Files::new(&[
        ("light", &[(0, "start", 1), (1, "change", 2), (2, "change", 0)]),
        ("walker", &[(0, "continue", 1), (1, "walk", 0), (1, "rate 2", 1)]),
    ]);
    let text = "label par using start * continue -> crossing in light || walker end par";
    assert_eq!(files.explored(text), (2, 1, vec!["crossing".into()]));
    // As in GPUexplore 1.0, section 2.1.
    let independent = files.read_with(text, &Reading { independent: true, ..Reading::default() }).unwrap();
    assert_eq!((explored(&independent).0, explored(&independent).1), (6, 8 + 3));
    let interleaved = files.read_with(text, &Reading { interleaved: vec!["rate".into()], ..Reading::default() }).unwrap();
    assert_eq!(explored(&interleaved), (2, 2, vec!["crossing".into(), "rate 2".into()]));
    // Only gates that do not exist are reported.
    let none = Reading { interleaved: vec!["rate".into(), "rat".into()], ..Reading::default() };
    let there = "there is no gate `rat`; there are change, continue, crossing, rate, start, walk";
    assert_eq!(files.read_with(text, &none).unwrap().missing_gates, [there]);
    let read = Networks::read_aut("a.aut".into(), Path::new("a.aut"), &b"des (0, 1, 1)\n(0, \"T !1\", 0)\n"[..], None, &none);
    let told = ["rate", "rat"].map(|gate| format!("there is no gate `{gate}`; there are T"));
    assert_eq!(read.unwrap().missing_gates, told);
}

#[test]
fn components_have_names_and_conditions_ask_for_them() {
    let files = two();
    let network = files.read("one |[A]| other ||| one").unwrap();
    let names: Vec<&str> = network.model.variables.iter().map(|variable| variable.name.as_str()).collect();
    assert_eq!(names, ["one_1", "other", "one_2"]);
    let value = |condition: &str| {
        let condition = network.condition(&Source { name: "c".into(), text: condition.into() })?.0;
        Ok::<_, Box<Located>>(Interpreter::new(&network.model).value(&condition, &network.model.initial_state()).unwrap())
    };
    for (condition, expected) in [
        ("one_1 == 0 and other + one_2 == 0", 1),
        ("other == 1", 0),
        ("enabled(B)", 1),
        ("enabled(Y) or enabled(X)", 0),
        ("enabled(\"A !1\") + enabled(\"A !2\") * 2 + enabled(A) * 4", 7),
        ("not enabled(i)", 0),
    ] {
        assert_eq!(value(condition).unwrap(), expected, "{condition}");
    }
    for condition in ["enabled(Z)", "two == 1", "enabled()", "one_1.x"] {
        value(condition).unwrap_err();
    }
    // A name can be both a label and a gate. In quotes it is the label, without quotes the gate.
    let files = Files::new(&[("both", &[(0, "A", 1), (1, "A !1", 2), (2, "AB", 3), (3, "C-D !1", 4)])]);
    let network = files.read("both").unwrap();
    for (condition, expected) in [
        ("enabled(\"A\")", [1, 0, 0, 0]),
        ("enabled(A)", [1, 1, 0, 0]),
        ("enabled(\"A !1\")", [0, 1, 0, 0]),
        ("enabled(\"AB\")", [0, 0, 1, 0]),
        ("enabled(\"C-D\")", [0, 0, 0, 1]),
    ] {
        let condition = network.condition(&Source { name: "c".into(), text: condition.into() }).unwrap().0;
        let values = [0, 1, 2, 3].map(|at| Interpreter::new(&network.model).value(&condition, &[at]).unwrap());
        assert_eq!(values, expected, "{condition:?}");
    }
    // A component with one state takes no bits.
    let files = Files::new(&[("p", &[(0, "A", 0)]), ("q", &[(0, "B", 1)])]);
    let network = files.read("p ||| q").unwrap();
    assert_eq!((network.model.layout.bits, explored(&network).1), (1, 3));
    // A network without any step.
    assert_eq!(files.explored("cut A, B in p ||| q end cut"), (1, 0, Vec::new()));
}

#[test]
fn files_are_found_beside_the_text_and_included() {
    let files = two();
    std::fs::create_dir(files.0.path().join("sub")).unwrap();
    files.write("sub/both.exp", "-- comment\nbehaviour (* another *) inner |[A]| \"inner.aut\"");
    files.write("sub/inner.aut", &aut(&[(0, "A", 1), (1, "B", 0)]));
    assert_eq!(files.explored("\"sub/both.exp\" ||| one").0, 8);
    files.write("loop.exp", "one ||| \"loop.exp\"");
    assert!(files.read("loop.exp").unwrap_err().to_string().contains("includes itself"));
    files.write("bad.exp", "one |||\n two");
    let error = files.read("bad.exp").unwrap_err().to_string();
    assert!(error.contains("bad.exp:2:2: there is no file"), "{error}");
}

#[test]
fn errors_say_what_and_where() {
    let files = two();
    files.write("broken.aut", "des (0, 1, 2)\n(0, A, 2)\n");
    for (text, message) in [
        ("one ||| ", "test:1:9: the text ends here: `(` or a file or an operator was expected"),
        ("one ||| two", "test:1:9: there is no file"),
        ("one.bcg", "files with the extension `.bcg` are not supported"),
        ("par A in one || other", "the text ends here"),
        ("prio all > A in one end prio", "test:1:1: the operator `prio` is not supported"),
        ("one | other", "test:1:5: the operator `|` is not supported"),
        ("(* comm *) one ||| \"|\" + one", "test:1:24: the operator `+` is not supported"),
        ("one [| A |] other", "the operator `[|` is not supported"),
        ("par A#3 in one || other end par", "A#3 among 2 components"),
        ("par A#1 in one || other end par", "A#1 among 2 components"),
        ("label par using A -> B in one || other end par", "a vector with 1 places for 2 components"),
        ("label par using _ * _ -> B in one || other end par", "a vector in which no component moves"),
        ("total hide \"\\(\" in one end hide", "is not a valid regular expression"),
        ("broken.aut", "broken.aut:2: state 2 found, but the first line announces 2 states, numbered 0 to 1"),
        ("", "test:1:1: the text is empty"),
    ] {
        let error = format!("{:#}", files.read(text).map(|_| ()).expect_err(text));
        assert!(error.contains(message), "{text}\n{error}");
    }
}

#[test]
fn sizes_have_limits() {
    let files = two();
    let nested = |depth: usize| format!("{}one{}", "(".repeat(depth), ")".repeat(depth));
    files.read(&nested(90)).unwrap();
    assert!(files.read(&nested(250)).unwrap_err().to_string().contains("too large"));
    files.read(&nested(100_000)).unwrap_err();
    files.read(&"hide A in ".repeat(100_000)).unwrap_err();
    files.read(&vec!["one"; 500].join(" ||| ")).unwrap();
    assert!(files.read(&vec!["one"; 10_000].join(" ||| ")).unwrap_err().to_string().contains("more than 8192 components"));
    // Each component synchronises with every other: 9^40 rules.
    let choices: Vec<String> = (0..9).map(|label| format!("A{label} -> A")).collect();
    let systems: Vec<(u32, String, u32)> = (0..9).map(|label| (0, format!("A{label}"), 0)).collect();
    let systems: Vec<(u32, &str, u32)> = systems.iter().map(|(from, label, to)| (*from, label.as_str(), *to)).collect();
    files.write("many.aut", &aut(&systems));
    let one = format!("gate rename {} in many end rename", choices.join(", "));
    let text = format!("par A in {} end par", vec![one.as_str(); 40].join(" || "));
    assert!(files.read(&text).unwrap_err().to_string().contains("rules"));
    // There are also too many ways to choose some components among many.
    assert!(
        files.read(&format!("par A#20 in {} end par", vec!["one"; 40].join(" || "))).unwrap_err().to_string().contains("rules")
    );
}

#[test]
fn state_spaces_are_read_as_they_are_written() {
    for (text, states, steps, labels) in [
        ("des (0, 2, 2)\n(0, A, 1)\n(1, \"B\", 0)", 2, 2, &["A", "B"][..]),
        ("des(0,1,2)\r\n(0,*,1)\r\n", 2, 1, &["*"]),
        (
            "  des ( 0 , 2 , 3 )  \n (0 , \"r1(in(d1,in(d1)))\" , 1)  \n\n(1,\"say \"hi\", she said\",0)\n",
            2,
            2,
            &["r1(in(d1,in(d1)))", "say \"hi\", she said"],
        ),
        ("des (0, 2, 2)\n(0, PUT_1, 1)\n(0, \"PUT_1\", 1)\n", 2, 2, &["PUT_1"]),
        ("des (0, 0, 1)", 1, 0, &[]),
        // States that occur in no transition take no memory.
        ("des (0, 1, 2000000000)\n(0, A, 1)", 2, 1, &["A"]),
        ("des (1, 1, 2)\n(1, A, 0)", 2, 1, &["A"]),
        // Lines need not be ordered by source and label.
        ("des (0, 4, 2)\n(1, B, 0)\n(0, B, 1)\n(1, A, 1)\n(0, A, 0)", 2, 4, &["A", "B"]),
    ] {
        let (found_states, found_steps, found) =
            explored(&read_aut(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error:#}")));
        assert_eq!((found_states, found_steps), (states, steps), "{text}");
        assert_eq!(found, labels, "{text}");
    }
    let long = format!("des (0, 1, 1)\n(0, \"{}\", 0)", "x".repeat(3 << 20));
    assert_eq!(explored(&read_aut(long.as_bytes()).unwrap()).2[0].len(), 3 << 20);
}

#[test]
fn state_spaces_that_are_none_are_refused_with_their_line() {
    for (text, message) in [
        ("", "test:1: the text ends here"),
        ("\n\n(0, A, 1)", "test:3: `(0, A, 1)` is not a valid first line"),
        ("des (0, 1)", "test:1: `des (0, 1)` is not a valid first line"),
        ("des (0, 1, 0)", "announces 0 states, but 1 to 2147483647 are possible"),
        ("des (2, 1, 2)", "the initial state is 2, but the 2 states"),
        ("des (0, 1, 3000000000)", "3000000000 states"),
        ("des (0, 5000000000, 1)", "5000000000 transitions"),
        ("des (0, 99999999999999999999, 1)", "is not a valid first line"),
        ("des (0, 1, 2000000000)\n(0, A, 1999999999)", "test:1: 2000000000 states of 1 transitions"),
        ("des (0, 1, 2)\n(0, A, 2)", "test:2: state 2 found, but the first line announces 2 states"),
        ("des (0, 1, 2)\n(0, A)", "test:2: `(0, A)` is not a transition"),
        ("des (0, 1, 2)\n(0, A B, 1)", "test:2: the label `A B` must be in quotes"),
        ("des (0, 1, 2)\n(0, \"A, 1)", "test:2: the label `\\\"A` has no closing quote"),
        ("des (0, 1, 2)\n(0, , 1)", "test:2: the label `` must be in quotes"),
        ("des (0, 2, 2)\n(0, A, 1)\n", "test:3: the text ends after 1 transition, but the first line announces 2"),
        ("des (0, 1, 2)\n(0, A, 1)\n(0, A, 1)", "test:3: more transitions than the 1"),
    ] {
        let error = read_aut(text.as_bytes()).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(message), "{text}\n{error}");
    }
}

#[test]
fn labels_and_names_have_any_letters() {
    let labels = |text: &[u8]| read_aut(text).map(|network| explored(&network).2).map_err(|error| error.to_string());
    let text = "des (0, 3, 2)\n(0, \"\u{e9} !\u{1f980}\", 1)\n(0, gr\u{fc}n, 1)\n(0, \u{df}, 1)\n";
    assert_eq!(labels(text.as_bytes()).unwrap(), ["gr\u{fc}n", "\u{df}", "\u{e9} !\u{1f980}"]);
    let error = labels(b"des (0, 1, 2)\n\n(0, \"gr\xfcn\", 1)\n").unwrap_err();
    assert!(error.starts_with("test:3: the label `gr\u{fffd}n` is not UTF-8: convert the file"), "{error}");
    let files = Files::new(&[
        ("gr\u{fc}n-2", &[(0, "\u{e9} !\u{1f980}", 1), (1, "\u{df}", 0)]),
        ("\u{e9}", &[(0, "\u{e9} !\u{1f980}", 1)]),
    ]);
    for text in [
        "\"gr\u{fc}n-2\" |[\u{e9}]| \u{e9}",
        "par using \u{e9} * \u{e9} -> \u{e9}, \u{df} * _ -> \u{df} in \"gr\u{fc}n-2.aut\" || \u{e9}.aut end par",
        "total rename \"x !\\(.\\)\" -> \"\u{e9} !\\1\" in (partial rename \"\u{e9}\" -> x in gr\u{fc}n-2 end rename) |[x]| \
         partial rename \"[\u{e9}]\" -> x in \u{e9} end rename end rename",
    ] {
        let network = files.read(text).unwrap_or_else(|error| panic!("{text}: {error:#}"));
        assert_eq!(explored(&network), (3, 2, vec!["\u{df}".to_string(), "\u{e9} !\u{1f980}".into()]), "{text}");
        let value = |condition: &str| {
            let condition = network.condition(&Source { name: "c".into(), text: condition.into() }).unwrap().0;
            Interpreter::new(&network.model).value(&condition, &network.model.initial_state()).unwrap()
        };
        assert_eq!(value("gr\u{fc}n_2 == 0 and \u{e9} == 0 and enabled(\u{e9}) and not enabled(\u{df})"), 1, "{text}");
    }
}

fn word() -> impl Strategy<Value = String> {
    let words = "behaviour hide cut rename par using all but in end gate total partial label prio one other A B \"A !1\" * _ # 2 3 -> , ( ) || \
                 ||| |[ ]| | -- (* *) i \"one.aut\" test.exp";
    let words: Vec<String> = words.split(' ').map(Into::into).collect();
    prop_oneof![9 => prop::sample::select(words), 1 => "[ -~]{1,4}"]
}

const TEXTS: [&str; 4] = [
    "label par using \"A !1\" * _ -> B, _ * B -> C in one || other end par",
    "par A#2, B in A -> one || (hide B in one |[A]| other) || B, A -> other end par",
    "total rename \"A.*\" -> B, B -> A in cut all but A in one ||| other end cut end rename",
    "gate par using A * A -> M, B || B -> N in gate hide X in one end hide || partial cut \"[0-9]\" in other end cut end par",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics(text in "\\PC*") {
        let _ = two().read(&text);
    }

    #[test]
    fn no_sequence_of_words_panics(words in proptest::collection::vec(word(), 0..40)) {
        let _ = two().read(&words.join(" "));
    }

    #[test]
    fn no_change_of_a_network_panics(
        text in 0usize..4,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), 0usize..8, word()), 1..4),
    ) {
        let mut text = TEXTS[text].to_string();
        for (at, length, word) in changes {
            let start = at.index(text.len());
            text.replace_range(start..(start + length).min(text.len()), &format!(" {word} "));
        }
        if let Ok(network) = two().read(&text) {
            explored(&network);
        }
    }

    #[test]
    fn no_bytes_of_a_state_space_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let _ = read_aut(&bytes);
        let mut text = b"des (0, 3, 3)\n(0, A, 1)\n(1, \"B !1\", 2)\r\n(2, *, 0)\n".to_vec();
        for (at, byte) in changes {
            let at = at.index(text.len());
            text[at] = byte;
        }
        if let Ok(network) = read_aut(&text) {
            explored(&network);
        }
    }
}
