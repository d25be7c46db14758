//! Tests of the front end: which texts it reads, which it refuses and how, and that it never panics.

use super::Dve;
use crate::diagnostic::Severity;
use crate::ir::{Action, Source, Type};
use crate::terms::Term;
use proptest::prelude::*;
use warpset_random_models as random;
use warpset_testing::sizes::sized;

const MODELS: [&str; 6] = [
    include_str!("../../../models/mailbox.dve"),
    include_str!("../../../models/peterson.dve"),
    include_str!("../../../models/peterson_wrong.dve"),
    include_str!("../../../models/philosophers.dve"),
    include_str!("../../../models/readers_writers.dve"),
    include_str!("../../../models/river.dve"),
];

fn read(text: &str) -> Result<Dve, String> {
    let source = Source { name: "test".into(), text: text.into() };
    Dve::read(source).map_err(|error| {
        let (diagnostic, source) = (&error.diagnostic, &error.source);
        assert!(!diagnostic.render(source, Severity::Error, false).is_empty());
        error.to_string()
    })
}

/// A model of one process with these global and local declarations, followed by `state a, b; init a;`.
fn with(global: &str, local: &str) -> String {
    format!("{global}\nprocess P {{\n{local}\nstate a, b; init a; }}\nsystem async;")
}

fn trans(text: &str) -> String {
    format!("byte x, v[3]; const byte K = 1; channel c, r[2]; process P {{ state a, b; init a; trans\n{text}\n}} system async;")
}

#[test]
fn declarations_are_read() {
    let text = with(
        "const int N = 1 + 2, M = N * 2; byte x = M, long[2] = {1, 2, 3}, short[N] = {7}; int y = -1, w = 40000; byte v = -1;",
        "byte x; const byte N = 2; int z[N];",
    );
    let model = read(&text).unwrap().model;
    let found: Vec<_> = model.variables.iter().map(|v| (v.name.as_str(), v.process, v.ty, v.initial.as_slice())).collect();
    assert_eq!(
        found,
        [
            ("x", None, Type::BYTE, &[6][..]),
            ("long", None, Type::BYTE, &[1, 2]),
            ("short", None, Type::BYTE, &[7, 0, 0]),
            ("y", None, Type::INT, &[-1]),
            ("w", None, Type::INT, &[40000 - 65536]),
            ("v", None, Type::BYTE, &[255]),
            ("x", Some(0), Type::BYTE, &[0]),
            ("z", Some(0), Type::INT, &[0, 0]),
        ]
    );
}

#[test]
fn arrays_may_have_two_dimensions() {
    let text = with("const byte N = 2; byte m[N][3] = {{1, 2}, {3}}, empty[3][1]; const int t[1][2] = {{-1, 4}};", "");
    let model = read(&text).unwrap().model;
    let found: Vec<_> = model.variables.iter().map(|v| (v.name.as_str(), v.columns, v.initial.as_slice())).collect();
    let expected: [(&str, Option<usize>, &[i32]); 3] =
        [("m", Some(3), &[1, 2, 0, 3, 0, 0]), ("empty", Some(1), &[0, 0, 0]), ("t", Some(2), &[-1, 4])];
    assert_eq!(found, expected);
    let names: Vec<String> = (0..6).map(|element| model.variables[0].element_name("m", element)).collect();
    assert_eq!(names, ["m[0][0]", "m[0][1]", "m[0][2]", "m[1][0]", "m[1][1]", "m[1][2]"]);
}

/// Each index is checked by itself: an index beyond its row is no element of the next row.
#[test]
fn elements_of_two_dimensions_have_their_own_limits() {
    let dve = read(&with("byte m[2][3] = {{1, 2, 3}, {4, 5, 6}}, i, j, one[1];", "")).unwrap();
    let (model, state) = (&dve.model, dve.model.initial_state());
    let value = |text: &str| {
        let condition = dve.condition(&Source { name: "condition".into(), text: text.into() }).unwrap().0;
        let of = Term::of(&condition, model).value(model, &state);
        of.map_err(|fault| fault.message(model))
    };
    for row in 0..2 {
        for column in 0..3 {
            let expected = Ok(3 * row + column + 1);
            assert_eq!(value(&format!("m[{row}][{column}]")), expected);
            assert_eq!(value(&format!("m[i + {row}][j + {column}]")), expected);
            assert_eq!(value(&format!("m[i + {row}][m[{row}][{column}] - 1 - 3 * {row}]")), expected);
        }
    }
    for (text, message) in [
        ("m[i][j + 3]", "a row of the array m has 3 elements, but its second index is 3"),
        ("m[i][j - 1]", "a row of the array m has 3 elements, but its second index is -1"),
        ("m[i + 2][j]", "the array m has 2 rows, but its first index is 2"),
        ("m[0][7]", "a row of the array m has 3 elements, but its second index is 7"),
        ("m[-1][3]", "the array m has 2 rows, but its first index is -1"),
        ("one[i - 1]", "the array one has 1 element, but its index is -1"),
        // The number of the element would wrap around to 0.
        ("m[i + 1431655766][j - 1]", "the array m has 2 rows, but its first index is 1431655766"),
    ] {
        assert_eq!(value(text), Err(message.into()), "{text}");
    }
}

/// The condition is evaluated first, and then one of the others; `? :` is below all operators and is joined from the right.
#[test]
fn conditional_expressions_choose() {
    let dve = read(&with("byte x = 3, v[3] = {7, 8, 9};", "")).unwrap();
    let (model, state) = (&dve.model, dve.model.initial_state());
    for (text, expected) in [
        ("x == 3 ? 10 : 20", 10),
        ("x == 4 ? 10 : 20", 20),
        ("1 + x ? 2 : 3 + 100", 2),
        ("x == 4 ? 1 : x == 3 ? 2 : 3", 2),
        ("x == 3 ? x == 4 ? 1 : 2 : 3", 2),
        ("(x == 4 ? 1 : 2) + 5", 7),
        ("x < 3 imply x > 3 ? 1 : 2", 1),
        ("not x ? 1 : 2", 2),
        ("-x ? -x : 0", -3),
        ("x < 3 ? v[x] : 0", 0),
        ("x != 0 ? 12 / x : 1 / (x - 3)", 4),
        ("false ? 1 / 0 : v[x ? 2 : 7]", 9),
        ("P.a ? 1 : 0", 1),
    ] {
        let condition = dve.condition(&Source { name: "condition".into(), text: text.into() }).unwrap().0;
        assert_eq!(Term::of(&condition, model).value(model, &state), Ok(expected), "{text}");
    }
    // A constant condition chooses while the model is read.
    let text = with("const byte N = 4; byte a[N > 3 ? 2 : 1] = {N == 4 ? 5 : 6};", "");
    assert_eq!(read(&text).unwrap().model.variables[0].initial, [5, 0]);
}

/// The values of a branch are those for which its condition holds: a counter that is set back needs no bit more.
#[test]
fn conditions_bound_the_values_of_their_branches() {
    let bits = |value: &str| {
        let text = trans(&format!("a -> a {{ effect x = {value}; }};"));
        let model = read(&text).unwrap().model;
        model.layout.variables[0].unwrap().bits
    };
    assert_eq!(bits("x < 6 ? x + 1 : 0"), 3);
    assert_eq!(bits("x == 6 ? 0 : x < 6 ? x + 1 : x"), 3);
    assert_eq!(bits("x != 6 ? x + 1 : 0"), 8, "`!=` bounds nothing");
    assert_eq!(bits("x >= 3 ? 0 : x + 1"), 2);
    assert_eq!(bits("x ? 0 : 1"), 1);
}

#[test]
fn what_is_not_computed_as_it_is_written_is_a_warning() {
    let warned = |text: &str| {
        let warnings = read(text).unwrap().warnings;
        let columns: Vec<_> =
            warnings.iter().map(|warning| (warning.diagnostic.span.line, warning.diagnostic.span.column)).collect();
        (columns, warnings.iter().map(|warning| warning.values).sum::<u64>())
    };
    for (text, columns, values) in [
        ("byte x = 255, y = 0; int z = -32768, w = 32767;", &[][..], 0),
        ("byte x = 256;", &[10], 1),
        ("byte x = -1;", &[10], 1),
        ("const int N = 32768;", &[15], 1),
        ("byte a[2] = {1, 256};", &[17], 1),
        ("byte a[2] = {1, 2, 256, 4};", &[20], 2),
        ("byte a[3] = {1, 2};", &[17], 0),
        ("int x = 2147483647 + 1;", &[9, 20], 2),
        ("int x = 65536 * 65536;", &[15], 1),
        ("int x = -(-2147483648);", &[9, 9], 2),
        ("int x = -2147483648 / -1;", &[9, 21], 2),
        ("int x = 1 << 31;", &[9, 11], 2),
        ("int x = 1 << 32;", &[11], 1),
        ("int x = 1 >> -1;", &[11], 1),
        ("byte x = 0 and 1 / 0;", &[18], 0),
        ("byte a[2], b = 0 and a[2];", &[23], 0),
        ("byte a[2][2] = {{1, 2}, {3, 4, 5}};", &[32], 1),
        ("byte a[2][2] = {{1, 2}};", &[17], 0),
        ("byte a[1][1] = {{1}, {2}};", &[22], 1),
        ("byte a[2][3], b = 0 and a[2][0] + a[1][3];", &[26, 39], 0),
    ] {
        let columns: Vec<_> = columns.iter().map(|column| (1, *column)).collect();
        assert_eq!(warned(&with(text, "")), (columns, values), "{text}");
    }
    for (text, columns) in [
        ("a -> b { guard x == 1 << 40; };", &[23][..]),
        ("a -> b { effect x = 255, v[2] = 256; };", &[33]),
        ("a -> b { effect v[3] = 1, v = v[-1]; };", &[18, 32]),
        ("a -> b { sync r!40000; };", &[17]),
        ("a -> b { guard x % 0 == 1; };", &[18]),
        ("a -> b { guard ~(x == 0); };", &[16]),
        ("a -> b { guard x == 1 and not ~x; };", &[]),
        ("a -> b { guard x == 1 and ~x or x; };", &[27]),
        ("a -> b { guard ~x; };", &[16]),
        ("a -> b { guard ~x == 3 or (~x & 1) == 1; effect x = ~x; };", &[]),
        ("a -> b { guard 0 <= x <= 1; };", &[23]),
        ("a -> b { guard x == 1 and 0 < x + 1 < 3 or x < 2; };", &[37]),
        ("a -> b { guard (0 < x) < 1 and x < 1 == x < 2; };", &[]),
    ] {
        let columns: Vec<_> = columns.iter().map(|column| (2, *column)).collect();
        // Stores are counted when they happen; a shift does not store, so its warning counts a value.
        assert_eq!(warned(&trans(text)), (columns, u64::from(text.contains("<<"))), "{text}");
    }
    let warnings = read(&trans("a -> b { guard x == 1 and 0 < x + 1 <= 3 or x; };")).unwrap().warnings;
    assert_eq!(warnings[0].diagnostic.label, "write `0 < x + 1 and x + 1 <= 3`");
    let typed = "channel {byte, int} c; process P { state a; init a; trans a -> a { sync c!{256, 256}; }; } system async;";
    assert_eq!(warned(typed), (vec![(1, 76)], 0));
}

/// Reading takes a step for each value. A step for each value and each character before it would take hours.
#[test]
fn long_lines_are_read() {
    let values = sized(400_000, 100_000, 100_000);
    let text = with(&format!("byte a[2] = {{{}1}};", "1, ".repeat(values)), "");
    let warnings = read(&text).unwrap().warnings;
    assert_eq!((warnings.len(), warnings[0].values, warnings[0].diagnostic.span.column), (1, values as u64 - 1, 20));
}

#[test]
fn comments_and_blanks_may_be_anywhere() {
    let text = "/* a */byte/**/x;//b\n\tprocess P{state a;init a;trans a->a{guard x==0;effect x=x+1;}, // -> c {}\r\n->a{sync d!-1;},a->a{ sync d ? x ; };}\nchannel d; system async;";
    let model = read(text).unwrap().model;
    assert_eq!(model.transitions.len(), 3);
    assert!(matches!(model.transitions[1].action, Action::Send { .. }));
    assert_eq!(model.channels[0].receivers, [2]);
}

#[test]
fn a_source_may_be_left_out() {
    let model = read(&trans("b -> a {}, -> b {}, a -> b {}, -> a {};")).unwrap().model;
    let ends: Vec<_> = model.transitions.iter().map(|t| (t.from, t.to)).collect();
    assert_eq!(ends, [(1, 0), (1, 1), (0, 1), (0, 0)]);
}

#[test]
fn the_least_number_is_read() {
    let values = |text: &str| -> Vec<i32> {
        let model = read(&with(text, "")).unwrap().model;
        model.variables.iter().map(|variable| variable.initial[0]).collect()
    };
    let text = "int x = -2147483648 / 65536, y = -/**/ 2147483648 % 1000, z = - -2147483648 / 65536, v = 1 - -2147483648 == -2147483647;";
    assert_eq!(values(text), [-32768, -648, -32768, 1]);
    assert_eq!(values("int x = -2147483648; byte y = -2147483648;"), [0, 0], "a store wraps");
    for text in ["int x = 2147483648;", "int x = -2147483649;", "int x = 1 - 2147483648;", "int x = -21474836480;"] {
        assert!(read(&with(text, "")).unwrap_err().contains("the number is too large"), "{text}");
    }
}

#[test]
fn bytes_that_are_not_utf8_may_be_in_comments() {
    let read = |bytes: &[u8]| Dve::read(Source::read("test".into(), bytes).unwrap()).map_err(|error| error.to_string());
    let model = b"\xef\xbb\xbf// caf\xe9\nbyte x; /* \xff\xfe */ process P { state a; init a; }\nsystem async;";
    assert_eq!(read(model).unwrap().model.variables.len(), 1);
    let text = b"// caf\xe9\n/* \xe9 */ byte caf\xe9; process P { state a; init a; }\nsystem async;";
    let error = read(text).unwrap_err();
    assert!(error.starts_with("test:2:17: a byte that is not UTF-8"), "{error}");
    let error = read(b"byte x; \xef\xbb\xbf process P { state a; init a; } system async;").unwrap_err();
    assert!(error.starts_with("test:1:9:"), "only the first character is a mark: {error}");
}

#[test]
fn names_have_any_letters() {
    let text = "byte gr\u{fc}n, \u{441}\u{447}\u{451}\u{442}; process T\u{fc}r { byte \u{e9}t\u{e9}; state \u{e4}, b; init \u{e4}; \
                trans \u{e4} -> b { guard gr\u{fc}n == 0; effect \u{e9}t\u{e9} = 1; }; } system async;";
    let dve = read(text).unwrap();
    let condition =
        |text: &str| dve.condition(&Source { name: "c".into(), text: text.into() }).map(drop).map_err(|e| e.to_string());
    assert_eq!(condition("T\u{fc}r.\u{e4} and T\u{fc}r.\u{e9}t\u{e9} + gr\u{fc}n == 0 or T\u{fc}r->\u{e9}t\u{e9} == 1"), Ok(()));
    let error = condition("gr\u{fc}m == 0").unwrap_err();
    assert!(error.starts_with("c:1:1: there is no variable or constant `gr\u{fc}m`"), "{error}");
    // A word is shown as a whole; marks, quotes and symbols are no letters.
    assert!(read("byte x; g\u{fc}te").unwrap_err().contains("`g\u{fc}te` is not expected here"));
    for mark in ["\u{20ac}", "\u{201e}", "\u{1f980}", "\u{a0}", "\u{fffd}"] {
        read(&with(&format!("byte x{mark};"), "")).unwrap_err();
    }
}

#[test]
fn names_may_begin_like_keywords() {
    read(&with("byte integer, bytes, not_x, order, android, trueish, initial; channel synced;", "byte guards = 1;")).unwrap();
}

#[test]
fn errors_say_what_and_where() {
    for (text, line, message) in [
        (trans("a -> b { guard y == 1; };"), 2, "there is no variable or constant `y`"),
        (trans("a -> c {};"), 2, "there is no state `c`"),
        (trans("a -> b { sync e!; };"), 2, "there is no channel `e`"),
        (trans("a -> b { guard Q.a; };"), 2, "there is no process `Q`"),
        (trans("a -> b { guard P.c; };"), 2, "there is no state or variable of P `c`"),
        (trans("a -> b { guard x[1]; };"), 2, "`x` is not an array"),
        (trans("a -> b { effect K = 2; };"), 2, "`K` is a constant"),
        (trans("a -> b { sync c?x + 1; };"), 2, "`+` is not expected here"),
        (trans("a -> b { sync c?K; };"), 2, "`K` is a constant"),
        (trans("a -> b { sync c!1; },\na -> b { sync c!; };"), 3, "messages on `c` have 1 value"),
        (trans("a -> b { guard 3000000000; };"), 2, "the number is too large"),
        (trans("-> b {};"), 2, "a transition without a source"),
        (trans("a => { a: 1, b: 2 };"), 2, "a probabilistic transition"),
        (trans("a -> b { guard x == 1 };"), 2, "`}` is not expected here"),
        (trans("a -> b { effect x = 1; guard x; };"), 2, "`guard` is not expected here"),
        (trans("a -> b { guard x == 1 /\\ x == 2; };"), 2, "`/\\` is not expected here"),
        (trans("a -> commit {};"), 2, "`commit` is a word of the language: choose another name"),
        (with("byte state;", ""), 1, "`state` is a word of the language: choose another name"),
        (trans("a -> b {}"), 3, "`}` is not expected here"),
        (with("byte x, x;", ""), 1, "the variable or constant `x` is declared twice"),
        (with("channel x, x;", ""), 1, "the channel `x` is declared twice"),
        (with("", "state a;"), 4, "the state `a` is declared twice"),
        (with("", "init a;"), 4, "a second initial state"),
        (with("process P { state a; init a; }", ""), 2, "the process `P` is declared twice"),
        (with("byte x[0];", ""), 1, "a size of 0"),
        (with("byte y; byte x[y];", ""), 1, "a constant is needed"),
        (with("byte x = 1 / 0;", ""), 1, "a constant is needed"),
        (with("byte x = {1};", ""), 1, "a list of values for a variable that is not an array"),
        (with("byte x[2] = 1;", ""), 1, "a single value for an array"),
        (with("byte x[2] = {{1}, {2}};", ""), 1, "a list of lists for an array of one dimension"),
        (with("byte x[2][2] = {1, 2};", ""), 1, "no list of lists for an array of two dimensions"),
        (with("byte x[2][2][2];", ""), 1, "a third dimension"),
        (with("byte x[300][300];", ""), 1, "an array of 90000 elements"),
        (with("byte x[2][2], y = x[1];", ""), 1, "the array `x` has two dimensions, but this has one index"),
        (with("byte x[2][2], y = x;", ""), 1, "the array `x` has two dimensions, but this has 0 indices"),
        (trans("a -> b { effect v[0][1] = 1; };"), 2, "the array `v` has one dimension, but this has 2 indices"),
        (trans("a -> b { effect x[0][1] = 1; };"), 2, "`x` is not an array"),
        (trans("a -> b { guard x ? 1; };"), 2, "`;` is not expected here: `:` was expected"),
        (trans("a -> b { guard v[1; };"), 2, "`;` is not expected here: `]` was expected"),
        (trans("a -> b { guard x ? 1 : ; };"), 2, "`;` is not expected here"),
        (with("", "accept a;"), 3, "accepting states"),
        (with("", "accept rabin (a; b), (;a);"), 3, "accepting states"),
        ("process P { state a; }\nsystem async;".into(), 1, "process P has no initial state"),
        ("process P { state a; init a; }\nsystem sync;".into(), 2, "a synchronous system"),
        ("process P { state a; init a; }\nsystem async property Q;".into(), 2, "there is no process `Q`"),
        (property("accept a;\ncommit a;"), 3, "committed states in a property process"),
        (property("accept buchi (a);"), 2, "an acceptance condition other than Büchi's"),
        (property("accept a;\ntrans a -> a { effect x = 1; };"), 3, "an effect in a property process"),
        (property("accept a;\ntrans a -> a { sync c!; };"), 3, "a communication in a property process"),
        (property("accept a;\nassert a: x == 0;"), 3, "an assertion in a property process"),
        (property("accept c;"), 2, "there is no state `c`"),
        (property("}\nprocess Q { state a, b; init a; trans a -> b { guard P.a; };"), 3, "there is no process `P`"),
        ("process P { state a; init a; }\n".into(), 2, "the text ends here"),
        ("/* never closed".into(), 1, "the text ends here: `*/` was expected"),
        (String::new(), 1, "the text is empty: there is nothing to read"),
    ] {
        let error = read(&text).map(|_| ()).expect_err(&text);
        let expected = format!("test:{line}:");
        assert!(error.starts_with(&expected) && error.contains(message), "{text}\n{error}");
    }
}

/// A parse knows what it expected only if it is a detailed one, by a switch that all threads share.
#[test]
fn errors_are_the_same_in_every_thread() {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    let error = read("/* never closed").map(|_| ()).unwrap_err();
                    assert!(error.contains("`*/` was expected"), "{error}");
                }
            });
        }
    });
}

/// A model with a property process P that has states and these sections.
fn property(sections: &str) -> String {
    format!("byte x; channel c; process P {{ state a, b; init a;\n{sections} }}\nsystem async property P;")
}

/// Guards, omitted sources and the order of processes work as in other processes; the property does not become part of the
/// system.
#[test]
fn a_property_is_an_automaton() {
    let text =
        property("accept b; trans a -> a {}, -> b { guard x == 0; };").replace("system", "process Q { state s; init s; } system");
    let model = read(&text).unwrap().model;
    let property = model.property.as_ref().unwrap();
    assert_eq!((property.process, &property.accepting), (1, &vec![false, true]));
    assert_eq!(
        property.moves.iter().map(|of| (of.from, of.to, of.guard.is_some())).collect::<Vec<_>>(),
        [(0, 0, false), (0, 1, true)]
    );
    assert_eq!((&*model.processes[0].name, &*model.processes[1].name, model.transitions.len()), ("Q", "P", 0));
    let mut alone = model.clone();
    alone.remove_property();
    assert_eq!((alone.processes.len(), alone.layout.bits, model.layout.bits), (1, 0, 1));
}

#[test]
fn errors_know_similar_names() {
    let source = Source { name: "test".into(), text: trans("a -> b { guard P.A and X; };") };
    let help = |text: &str| {
        let source = Source { text: text.into(), ..source.clone() };
        Dve::read(source).unwrap_err().diagnostic.help
    };
    assert_eq!(help(&trans("a -> b { guard P.A; };")).unwrap(), "there is `a`");
    assert_eq!(help(&trans("a -> b { guard X; };")).unwrap(), "there is `x`");
    assert_eq!(help(&trans("a -> b { guard b; };")).unwrap(), "a state is written with its process: P.b");
    let two =
        "process P { byte n; state s; init s; } process Q { state s; init s; trans s -> s { guard n == 1; }; } system async;";
    assert_eq!(help(two).unwrap(), "a variable of a process is written with it: P.n");
    let condition = |text: &str| {
        let source = Source { name: "condition".into(), text: text.into() };
        read(&two.replace(" trans s -> s { guard n == 1; };", "")).unwrap().condition(&source).unwrap_err().diagnostic.help
    };
    assert_eq!(condition("s").unwrap(), "a state is written with its process: P.s, Q.s");
    let advised = [
        (trans("a -> b { guard (x == 1) -> x == 2; };"), "an implication is written `imply`"),
        (trans("a -> b { guard P.a -> x == 2; };"), "an implication is written `imply`"),
        (trans("a -> b { guard x -> K; };"), "an implication is written `imply`"),
        (trans("a -> b { guard x = 0; };"), "a comparison is written `==`"),
        (trans("a -> b { effect x == 0; };"), "an assignment is written `=`"),
        (trans("a -> b { effect x++; };"), "there is no `++` or `--`: write x = x + 1"),
        (trans("a -> b { effect x--; };"), "there is no `++` or `--`: write x = x + 1"),
        (trans("a -> b { guard x++ < 3; };"), "there is no `++` or `--`: write x = x + 1"),
        (trans("a -> b { effect x = 1; v[0] = 2; };"), "commas separate assignments: effect x = 1, y = 2;"),
        (trans("a -> b { effect x = 1; x = 2; };"), "commas separate assignments: effect x = 1, y = 2;"),
        (trans("a -> b {} b -> a {};"), "commas separate transitions; `;` ends the last one"),
        (trans("a -> b {} -> a {};"), "commas separate transitions; `;` ends the last one"),
        (trans("a -> b {}; b -> a {};"), "commas separate transitions; `;` ends the last one"),
        (trans("a -> b { guard len(r) == 1; };"), "conditions cannot look into a channel: count its messages in a variable"),
        (trans("a -> b { guard max(x, 1) == 1; };"), "there is no function of this name"),
        (trans("a -> b { guard v[1, 2] == 1; };"), "an element of an array of two dimensions is a[i][j]"),
        (with("byte m[2, 3];", ""), "an element of an array of two dimensions is a[i][j]"),
        (trans("a -> b { guard P@a; };"), "write `P.a`"),
        (trans("a -> b { guard P[0].a; };"), "the instances of a process are named by their numbers: `P_0.a`"),
        (trans("a -> b { guard x == 1 /\\ x == 2; };"), "write `and`"),
        (trans("a -> b { guard x == 1 \\/ x == 2; };"), "write `or`"),
        (trans("a -> b { guard x == 1 => x == 2; };"), "an implication is written `imply`"),
        (trans("a -> b { guard x # 1; };"), "write `!=`"),
        (trans("a -> b { guard x /= 1; };"), "write `!=`"),
        (trans("a -> b { guard else; };"), "write the negation of the other guards"),
        (
            trans("a -> b { guard r == 1; };"),
            "`r` is a channel; conditions cannot look into it: count its messages in a variable",
        ),
        (trans("a -> b { effect x = 1; guard x; };"), "the order is guard, sync, effect"),
        (trans("a -> b { sync c!1; guard x; };"), "the order is guard, sync, effect"),
        (
            trans("a -> b { sync r[1]!x; };"),
            "channels cannot be indexed, and `[N]` is their capacity: declare a channel for each index (docs/languages.md, Promela)",
        ),
        (with("", "assert (x == 0);"), "an assertion is about a state: assert STATE: CONDITION;"),
        (with("", "assert x == 0;"), "an assertion is about a state: assert STATE: CONDITION;"),
        (with("process Q(byte n) {}", ""), "a process has no parameters: `process P[id < n]` is n processes"),
        (trans("a -> b { sync c?5; };"), "a receive stores into variables: test them in the next state, which may be committed"),
        (with("chan c;", ""), "a word of Promela: docs/languages.md has a table of what to write in DVE"),
        (with("mtype = { m };", ""), "a word of Promela: docs/languages.md has a table of what to write in DVE"),
        (with("proctype Q() {}", ""), "a word of Promela: docs/languages.md has a table of what to write in DVE"),
        (with("active proctype Q() {}", ""), "a word of Promela: docs/languages.md has a table of what to write in DVE"),
        (
            with("property process Never { state n; init n; }", ""),
            "DIVINE 3's syntax: write `process NAME`, and `system async property NAME;` at the end (docs/dve.md, DIVINE 3)",
        ),
        (
            with("input byte choice;", ""),
            "DIVINE 3's syntax: write a variable, and a transition for each of its first values (docs/dve.md, DIVINE 3)",
        ),
        (
            with("", "input int choice;"),
            "DIVINE 3's syntax: write a variable, and a transition for each of its first values (docs/dve.md, DIVINE 3)",
        ),
        (
            with("", "channel {byte} own[1];"),
            "DIVINE 3's syntax: declare channels before the processes, with names of their own (docs/dve.md, DIVINE 3)",
        ),
    ];
    let found = advised.iter().map(|(text, advice)| (text, *advice, help(text)));
    let wrong: Vec<_> = found.filter(|(_, advice, found)| found.as_deref() != Some(advice)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    // Other mistakes have no advice that would mislead.
    for text in [trans("a -> b -> a {};"), trans("a -> b { guard x == 1 };")] {
        assert_eq!(help(&text), None, "{text}");
    }
    assert_eq!(condition("P.s -> Q.s").unwrap(), "an implication is written `imply`");
    assert_eq!(condition("P.n = 0").unwrap(), "a comparison is written `==`");
    assert_eq!(condition("P.n == 0 and P").unwrap(), "`P` is a process: write one of its states or variables, as P.s");
    for (text, advice) in [("[](P.s)", "--ltl"), ("<> P.s", "--ltl"), ("G P.s", "--ltl"), ("AG (P.s)", "--ctl"), ("np_", "G F")] {
        assert!(condition(text).unwrap().contains(advice), "{text}");
    }
    for declaration in ["bool fork[2];", "bit b;", "unsigned n;"] {
        let found = help(&with(declaration, "")).unwrap();
        assert!(found.starts_with("the types are `byte` (0 to 255) and `int`"), "{declaration}: {found}");
    }
}

#[test]
fn states_that_no_table_holds_are_refused() {
    let text = with("byte x[1020];", "trans a -> b { effect x[0] = x[0] + 1; };");
    assert!(read(&text).is_ok());
    for size in [1025, 2048, 65536] {
        assert!(read(&text.replace("1020", &size.to_string())).unwrap_err().contains("256 are possible"));
    }
    assert!(read(&text.replace("1020", "65537")).unwrap_err().contains("the size must be 1 to 65536"));
}

#[test]
fn nesting_has_a_limit() {
    let nested = |depth: usize| trans(&format!("a -> b {{ guard {}x{}; }};", "(".repeat(depth), ")".repeat(depth)));
    let indexed = |depth: usize| trans(&format!("a -> b {{ guard {}0{}; }};", "v[".repeat(depth), "]".repeat(depth)));
    let chain =
        |length: usize, operator: &str| trans(&format!("a -> b {{ guard x{}; }};", format!("{operator}x").repeat(length)));
    let prefixes = |length: usize| trans(&format!("a -> b {{ guard {}x; }};", "-".repeat(length)));
    let choices = |length: usize| trans(&format!("a -> b {{ guard {}x; }};", "x == 1 ? 2 : ".repeat(length)));
    for good in [nested(60), indexed(60), chain(490, " imply "), chain(490, " < "), prefixes(490), choices(60)] {
        read(&good).unwrap();
    }
    for bad in [nested(70), indexed(70), chain(510, " imply "), chain(510, " / "), prefixes(510), choices(70)] {
        assert!(read(&bad).unwrap_err().contains("too large"));
    }
    for worse in [nested(100_000), indexed(100_000), chain(100_000, " imply "), prefixes(100_000), choices(100_000)] {
        read(&worse).unwrap_err();
    }
    // A chain is not nested.
    for chained in [" and ", " or ", " + ", " - ", " * ", " ^ ", " == x and x != ", " + x - 1 * "] {
        read(&chain(sized(100_000, 10_000, 10_000), chained)).unwrap_or_else(|error| panic!("{chained}: {error}"));
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC*") {
        let _ = read(&text);
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn no_sequence_of_words_panics(words in proptest::collection::vec(word(), 0..60)) {
        let _ = read(&words.join(" "));
    }

    #[test]
    fn no_change_of_a_model_panics(
        model in 0..MODELS.len(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), 0usize..12, word()), 1..6),
    ) {
        let mut text = MODELS[model].to_string();
        for (at, length, word) in changes {
            let start = at.index(text.len());
            text.replace_range(start..(start + length).min(text.len()), &word);
        }
        let _ = read(&text);
    }

    #[test]
    fn no_condition_panics(words in proptest::collection::vec(word(), 0..12)) {
        let dve = read(MODELS[0]).unwrap();
        let _ = dve.condition(&Source { name: "condition".into(), text: words.join(" ") });
    }

    #[test]
    fn random_models_are_read(text in random::model()) {
        let model = read(&text).unwrap().model;
        prop_assert!(model.layout.words <= 8);
    }
}

/// A word, mostly one of the language.
fn word() -> impl Strategy<Value = String> {
    let words = "system async sync property const byte int channel process state init commit accept assert trans guard effect not and or \
                 imply true false a b x P_0 P_1 box work 0 1 65536 4294967296 { } ( ) [ ] ; , = == -> => : ! ? . + - * / % & | ^ ~ << /* */ //";
    let words: Vec<String> = words.split(' ').map(Into::into).collect();
    prop_oneof![9 => prop::sample::select(words), 1 => "[ -~]{1,4}"]
}
