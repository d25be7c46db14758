//! Tests that automata are read as they are written, and that texts that break a rule are refused with their place.
//!
//! Keeps these promises of `examples/explore/docs/runs.md`:
//!
//! - HOA is read in time and memory in proportion to the text; items of its header may have any order.
//! - A text that breaks a rule of HOA is refused with its line, and an unsupported part by its name.

use super::super::buchi::{Cube, Label};
use super::{Named, read};
use crate::ir::property::{AutomatonClass, Move, Property};
use crate::ir::{Source, Span};
use proptest::prelude::*;

fn read_hoa(text: &str) -> Result<Named, String> {
    read(&Source { name: "test".into(), text: text.into() })
        .map_err(|error| format!("{}:{}: {}: {}", error.span.line, error.span.column, error.message, error.label))
}

const BUCHI: &str = "Acceptance: 1 Inf(0)";

fn label(cubes: &[(u64, u64)]) -> Label {
    Label::of(cubes.iter().map(|(positive, negative)| Cube { positive: *positive, negative: *negative }))
}

/// Monitors and safety automata of Spot and Owl: every infinite run is accepted, whatever sets are there.
#[test]
fn automata_may_accept_all_runs() {
    let read = |acceptance: &str, set: &str, of_edge: &str| {
        read_hoa(&format!(
            "HOA: v1 States: 2 Start: 0 AP: 1 \"a\" acc-name: all Acceptance: {acceptance} --BODY-- State: 0 [0] 1{of_edge} \
             State: 1 {set} [t] 1 --END--"
        ))
    };
    for (acceptance, set, of_edge) in [("0 t", "", ""), ("1 t", "", ""), ("1 t", "{0}", " {0}"), ("2 t", "{1 0}", " {1}")] {
        let named = read(acceptance, set, of_edge).unwrap_or_else(|error| panic!("{acceptance}: {error:?}"));
        assert_eq!(named.buchi.accepting, [true, true], "{acceptance}");
    }
    read("0 t properties: trans-acc", "", "").unwrap();
    let error = read("0 t", "{0}", "").map(drop).unwrap_err();
    assert!(format!("{error:?}").contains("acceptance set 0 does not exist"), "{error:?}");
    assert_eq!(read("1 Inf(0)", "{0}", "").unwrap().buchi.accepting, [false, true]);
}

#[test]
fn items_of_a_header_come_in_any_order() {
    let items = ["States: 2", "Start: 1", "AP: 2 \"a\" \"b\"", "Alias: @x !1", BUCHI, "tool: \"t\" \"1\"", "acc-name: Buchi"];
    let body = "--BODY-- State: 0 {0} [@x] 0 {} State: 1 [@x & 0] 0 --END--";
    for first in 0..items.len() {
        let mut order = items;
        order.rotate_left(first);
        let named = read_hoa(&format!("HOA: v1\n{}\n{body}", order.join("\n"))).unwrap();
        assert_eq!((named.buchi.initial, &named.propositions[..]), (1, &["a".to_string(), "b".into()][..]), "{order:?}");
        assert_eq!(named.buchi.edges, [vec![(label(&[(0, 2)]), 0)], vec![(label(&[(1, 2)]), 0)]], "{order:?}");
    }
    // Propositions are checked against `AP:` wherever it is.
    let text = format!("HOA: v1\nAlias: @x !1\nAP: 1 \"a\"\n{BUCHI}\n--BODY--\n--END--");
    assert!(read_hoa(&text).unwrap_err().starts_with("2:12: proposition 1 does not exist: only 0 exists"), "{text}");
}

#[test]
fn what_breaks_a_rule_of_the_format_is_refused_with_its_line() {
    let automaton = |header: &str, body: &str| {
        format!(
            "HOA: v1\nStates: 2\nStart: 0\nAP: 2 \"a\" \"b\"\n{BUCHI}\n{header}\n--BODY--\nState: 0 {body}\nState: 1\n--END--"
        )
    };
    assert_eq!(read_hoa(&automaton("", "")).unwrap().buchi.edges, [vec![], vec![]]);
    assert_eq!(read_hoa(&automaton("properties: t-1 --\nproperties:", "")).unwrap_err().split(':').next(), Some("6"));
    for (text, expected) in [
        // Labels of one state.
        (automaton("", "[t] 0 1"), "8:16: the state 0 has edges with and without labels"),
        (automaton("", "1 [t] 0"), "8:12: the state 0 has edges with and without labels"),
        (automaton("", "0 1"), "8:10: the state 0 has 2 edges without labels, but 4 are needed"),
        (automaton("", "0 1 0 1 0"), "8:18: more edges without labels than the 4 valuations"),
        (automaton("", "").replace("State: 1", "State: [0] 1 [1] 0"), "9:14: the state 1 and its edge both have labels"),
        // Items, states and names that may occur only once.
        (automaton("Alias: @x 0\nAlias: @x 1", ""), "7:8: a second alias `@x`"),
        (automaton("States: 2", ""), "6:1: a second `States:`"),
        (automaton(BUCHI, ""), "6:1: a second `Acceptance:`"),
        (automaton("AP: 0", ""), "6:1: a second `AP:`"),
        (automaton("HOA: v1", ""), "6:1: a second `HOA:`"),
        (automaton("name: \"a\"\nname: \"b\"", ""), "7:1: a second `name:`"),
        (automaton("fancy: 1\nfancy: 1", ""), "7:1: a second `fancy:`"),
        (automaton("Start: 0", ""), "6:8: the initial state 0 is given twice"),
        (automaton("", "").replace("\"b\"", "\"a\""), "4:11: two propositions with one name"),
        // States.
        (automaton("", "State: 0"), "8:17: the state 0 is defined twice"),
        (automaton("", "").replace("State: 1", ""), "2:9: the state 1 is not listed: there are 2 states, and 1 are"),
        (automaton("", "").replace("States: 2", "").replace("State: 1", "State: 2"), "9:8: the state 1 is not listed"),
        (automaton("", "").replace("States: 2", "").replace("Start: 0", "Start: 2"), "3:8: the state 2 is not listed"),
        (automaton("", "[t] 7").replace("States: 2", ""), "8:14: the state 2 is not listed: there are 8 states, and 2 are"),
        (automaton("Start: 2", ""), "6:8: the initial state 2 does not exist: 0 to 1 exist"),
        (automaton("", "").replace("States: 2", "States: 200000"), "2:9: 200000 states"),
        // Aliases must be defined before they are used.
        (automaton("Alias: @x @y\nAlias: @y 0", ""), "6:11: there is no alias `@y`"),
        (automaton("Alias: @ 0", ""), "6:8: an alias without a name"),
        // Tokens and items.
        (automaton("", "[00] 1"), "8:11: a number with a leading 0"),
        (automaton("Start: 2147483648", ""), "6:8: the number 2147483648 is too large"),
        (automaton("name: a", ""), "6:7: `a` is not expected here: the name of the automaton was expected"),
        (automaton("name: \"a\" \"b\"", ""), "6:11: `\"b\"` is not expected here"),
        (automaton("tool: 1", ""), "6:7: `1` is not expected here: the name of a tool"),
        (automaton("acc-name: 1", ""), "6:11: `1` is not expected here"),
        (automaton("properties: deterministic t", ""), "6:27: `t` is not expected here"),
        (automaton("fancy: [0]", ""), "6:8: `[` is not expected here"),
        (automaton("AP: 65", "").replacen("AP: 2 \"a\" \"b\"\n", "", 1), "5:5: 65 propositions"),
        (automaton("", "{1}"), "8:11: acceptance set 1 does not exist: only 0 exists"),
        (automaton("", "--ABORT--"), "8:10: the automaton is not complete"),
        (automaton("name:\u{a0}\"a\"", ""), "6:6: `\\u{a0}` is not expected here"),
        (automaton("", "") + " HOA: v1", "10:9: `HOA:` is not expected here: the end after one automaton"),
    ] {
        let error = read_hoa(&text).map(|_| ()).expect_err(&text);
        assert!(error.starts_with(expected), "{text}\n{error}\n{expected}");
    }
}

/// Memory and time are proportional to the text: neither large numbers nor short labels increase them.
#[test]
fn short_texts_take_little() {
    let header = |propositions: u32, more: &str| {
        let names: String = (0..propositions).map(|number| format!(" \"p{number}\"")).collect();
        format!("HOA: v1\nStart: 0\nAP: {propositions}{names}\n{more}{BUCHI}\n--BODY--\nState: ")
    };
    let refused = |text: &str, expected: &str| {
        let error = read_hoa(text).map(|named| named.states.len()).unwrap_err();
        assert!(error.contains(expected), "{error}\n{expected}");
    };
    refused(
        "HOA: v1\nStart: 3000000000\nAP: 0\nAcceptance: 1 Inf(0)\n--BODY--\nState: 0 {0}\n[t] 0\n--END--",
        "3000000000 is too large",
    );
    refused(&(header(0, "") + "0 [t] 2147483647 --END--"), "the state 1 is not listed: there are 2147483648 states, and 1 are");
    // 4096 conjunctions of 12 propositions each, from 60 characters, and for each edge.
    let long: Vec<String> = (0..12).map(|pair| format!("({}|{})", 2 * pair, 2 * pair + 1)).collect();
    let alias = format!("Alias: @x {}\n", long.join("&"));
    refused(&(header(24, &alias) + "[@x] 0 " + &" 0".repeat(1000) + " --END--"), "all labels together have too many literals");
    refused(&(header(24, &alias) + "0" + &" [@x&!@x] 0".repeat(100) + " --END--"), "all labels together take too long");
    // Chains of aliases: of names, of negations, and of ever larger ones.
    let chain = |of: &dyn Fn(usize) -> String| {
        (1..100_000).fold("Alias: @0 0\n".to_string(), |text, at| text + &format!("Alias: @{at} {}\n", of(at - 1)))
    };
    let names = read_hoa(&(header(1, &chain(&|before| format!("@{before}"))) + "0 [@99999] 0 --END--")).unwrap();
    assert_eq!(names.buchi.edges, [[(label(&[(1, 0)]), 0)]]);
    refused(&(header(1, &chain(&|before| format!("!@{before}"))) + "0 --END--"), "more than 200 nested brackets or `!`");
    refused(&(header(1, &chain(&|before| format!("@{before}|0"))) + "0 --END--"), "more than 2000 propositions");
}

/// The largest automata, on one line and on many; an algorithm with quadratic time would take minutes.
#[test]
fn large_automata_are_read() {
    for between in [" ", "\n"] {
        let states = |number: u32| format!("State: {number} \"s{number}\"{between}[0] {number}{between}[!0] 0");
        let body: Vec<String> = (0..100_000).map(states).collect();
        let text = format!("HOA: v1 Start: 7 AP: 1 \"a\" {BUCHI} --BODY--{between}{}{between}--END--", body.join(between));
        assert!(text.len() > 2_000_000, "{}", text.len());
        let named = read_hoa(&text).unwrap();
        assert_eq!((named.states.len(), named.buchi.initial, &*named.states[99_999]), (100_000, 7, "s99999"));
        assert_eq!(named.buchi.edges[99_999], [(label(&[(1, 0)]), 99_999), (label(&[(0, 1)]), 0)]);
        // The analysis of the automaton takes no longer than reading it.
        let moves = named.buchi.edges.iter().enumerate().flat_map(|(from, edges)| edges.iter().map(move |(_, to)| (from, *to)));
        let moves = moves.map(|(from, to)| Move { from, to, guard: None, span: Span::default() }).collect();
        let property = Property::new(0, named.buchi.accepting.clone(), moves);
        assert_eq!((property.kind(7), property.accepting_components(7)), (AutomatonClass::Terminal, vec![0; 100_000]));
        let more = text.replace("--END--", "State: 100000 --END--");
        assert!(read_hoa(&more).unwrap_err().contains("more than 100000 states"));
    }
}

#[test]
fn automata_are_read_as_they_are_written_elsewhere() {
    // Labels on states, aliases, several initial states, and a nested comment.
    let text = "HOA: v1 /* a /* b */ c */\nname: \"x\"\nStates: 3\nStart: 0\nStart: 1\nAP: 2 \"x == 1\" \"P.a\"\n\
        Alias: @both 0 & 1\nacc-name: Buchi\nAcceptance: 1 Inf(0)\nproperties: stutter-invariant\n--BODY--\n\
        State: [@both | !0] 0 \"first\" {0}\n 1\n 2\nState: 1 [t] 2\nState: 2 {0} [f] 0 [0] 2\n--END--\n";
    let named = read_hoa(text).unwrap();
    let cube = |positive, negative| Cube { positive, negative };
    let label = |cubes: &[Cube]| Label::of(cubes.iter().copied());
    let first = label(&[cube(3, 0), cube(0, 1)]);
    assert_eq!(named.propositions, ["x == 1", "P.a"]);
    assert_eq!(named.states, ["first", "q1", "q2", "start"]);
    assert_eq!((named.buchi.initial, &named.buchi.accepting), (3, &vec![true, false, true, false]));
    assert_eq!(named.buchi.edges[0], [(first.clone(), 1), (first, 2)]);
    assert_eq!(named.buchi.edges[2], [(label(&[cube(1, 0)]), 2)]);
    assert_eq!(named.buchi.edges[3].len(), 3);
    // Implicit labels.
    let implicit = "HOA: v1 States: 2 Start: 0 AP: 1 \"a\" Acceptance: 1 Inf(0) --BODY-- State: 0 {0} 0 1 State: 1 1 1 --END--";
    let edges = &read_hoa(implicit).unwrap().buchi.edges;
    assert_eq!(edges[0], [(label(&[cube(0, 1)]), 0), (label(&[cube(1, 0)]), 1)]);
}

#[test]
fn what_is_no_buchi_automaton_is_refused_by_name() {
    let automaton = |header: &str, body: &str| {
        format!("HOA: v1\nStates: 2\nStart: 0\nAP: 1 \"a\"\n{header}\n--BODY--\nState: 0 {body}\n--END--")
    };
    let buchi = "Acceptance: 1 Inf(0)";
    for (text, expected) in [
        (automaton("Acceptance: 2 Inf(0) & Inf(1)", ""), "5:1: the acceptance condition `2 Inf(0) & Inf(1)`"),
        (automaton("Acceptance: 1 Fin(0)", ""), "5:1: the acceptance condition `1 Fin(0)`"),
        (automaton("Acceptance: 0 f", ""), "5:1: the acceptance condition `0 f`"),
        (automaton("Acceptance: 1 t & t", ""), "5:1: the acceptance condition `1 t & t`"),
        (automaton("Acceptance: 1 Inf(0)\nproperties: trans-acc", ""), "6:13: acceptance on transitions (trans-acc)"),
        (automaton(buchi, "[0] 1 {0}"), "7:16: acceptance on transitions"),
        (automaton(buchi, "[0] 1&0"), "7:15: a conjunction of states"),
        (automaton("Start: 0&1\nAcceptance: 1 Inf(0)", ""), "5:9: a conjunction of initial states"),
        (automaton("Acceptance: 1 Inf(0)\nFancy: 1", ""), "6:1: the header `Fancy:`"),
        (automaton("", ""), "the header `Acceptance:` is missing"),
        (automaton(buchi, "[1] 1"), "7:11: proposition 1 does not exist: only 0 exists"),
        (automaton(buchi, "[0] 2"), "7:14: state 2 does not exist: 0 to 1 exist"),
        (automaton(buchi, "[@x] 1"), "7:11: there is no alias `@x`"),
        (automaton(buchi, "[0 1"), "7:13: `1` is not expected here"),
        (automaton(buchi, "[0] 1 State: 0"), "the state 0 is defined twice"),
        (automaton(buchi, &format!("[{}0] 1", "0&".repeat(100_000))), "the label is too large: more than 2000 propositions"),
        (automaton(buchi, &format!("[{}0] 1", "!".repeat(100_000))), "the label is too large"),
        (
            automaton(
                &format!(
                    "{}{buchi}",
                    (1..40).fold("Alias: @a0 0\n".to_string(), |text, at| {
                        text + &format!("Alias: @a{at} @a{0}|@a{0}\n", at - 1)
                    })
                ),
                "",
            ),
            "the label is too large",
        ),
        ("never { }".into(), "1:1: `never` is not expected here: `HOA: v1` was expected"),
        ("HOA: v1 --BODY--".into(), "the header `Acceptance:` is missing"),
        (String::new(), "the text ends here"),
    ] {
        let error = read_hoa(&text).map(|_| ()).expect_err(&text);
        assert!(error.contains(expected), "{text}\n{error}\n{expected}");
    }
}

proptest! {
    #[test]
    fn no_automaton_text_panics(words in proptest::collection::vec(proptest::sample::select(vec![
        "HOA: v1", "States: 2", "Start: 0", "AP: 1 \"a\"", "Acceptance: 1 Inf(0)", "--BODY--", "State: 0", "State:", "[", "]",
        "0", "1", "{0}", "!", "&", "|", "(", ")", "t", "@x", "Alias: @x 0", "--END--", "\"", "/*", "18446744073709551616", "é",
        "--", "properties:",
    ]), 0..24)) {
        let _ = read_hoa(&words.join(" "));
        let _ = read_hoa(&format!("HOA: v1 Start: 0 AP: 1 \"a\" Acceptance: 1 Inf(0) --BODY-- {}", words.join(" ")));
    }
}
