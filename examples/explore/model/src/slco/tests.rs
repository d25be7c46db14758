//! Tests the meaning of texts, and the errors for invalid texts.
//!
//! Keeps this promise of `examples/explore/docs/slco.md`:
//!
//! - Numbers received as truth values are counted if they do not fit their channel (also
//!   `examples/explore/search/src/codegen/tests.rs`).

use super::*;
use crate::interpreter::{Interpreter, Scratch};
use proptest::prelude::*;
use std::collections::HashSet;
use warpset_testing::sizes::sized;

fn read(text: &str) -> Result<Slco, String> {
    Slco::read(Source { name: "test".into(), text: text.into() }).map_err(|error| error.to_string())
}

/// The text of a model with one object that has one machine with the states A, B and C.
fn machine(variables: &str, transitions: &str) -> String {
    format!(
        "model m {{ actions tick classes K {{ variables {variables}\nstate machines M {{ initial A states B C transitions\n{transitions} }} }} objects o : K() }}"
    )
}

fn value(slco: &Slco, condition: &str, state: &[u32]) -> i32 {
    let source = Source { name: "condition".into(), text: condition.into() };
    let expression = slco.condition(&source).unwrap_or_else(|error| panic!("{error}")).0;
    Interpreter::new(&slco.model).value(&expression, state).unwrap()
}

/// Returns all reachable states in search order, the number of steps, and the number of deadlocks.
fn explored(slco: &Slco) -> (Vec<Vec<u32>>, usize, usize) {
    let interpreter = Interpreter::new(&slco.model);
    let mut states = vec![slco.model.initial_state()];
    let mut seen: HashSet<Vec<u32>> = states.iter().cloned().collect();
    let (mut at, mut steps, mut deadlocks) = (0, 0, 0);
    while at < states.len() {
        let (state, before) = (states[at].clone(), steps);
        let visit = |_, successor: &[u32]| {
            steps += 1;
            if seen.insert(successor.to_vec()) {
                states.push(successor.to_vec());
            }
        };
        interpreter.steps(&state, &mut Scratch::default(), visit).unwrap();
        deadlocks += usize::from(steps == before);
        at += 1;
    }
    (states, steps, deadlocks)
}

fn counts(text: &str) -> (usize, usize, usize) {
    let slco = read(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let (states, steps, deadlocks) = explored(&slco);
    (states.len(), steps, deadlocks)
}

/// Stores the value of an expression in an Integer and returns it.
fn stored(variables: &str, expression: &str) -> i32 {
    let slco = read(&machine(&format!("{variables} Integer result"), &format!("A -> B {{ result := {expression} }}")));
    let slco = slco.unwrap_or_else(|error| panic!("{error}"));
    value(&slco, "result", explored(&slco).0.last().unwrap())
}

#[test]
fn expressions_have_the_values_of_c() {
    for (expression, result) in [
        ("x - 4 - 3", 1),
        ("16 / 4 / 2", 2),
        ("x = 8 or x = 8 and 0 = 1", 1),
        ("1 xor 1 and 0", 0),
        ("true or true xor true", 1),
        ("1 < 2 = true", 1),
        ("not y = 1", 1),
        ("not (y = 1)", 1),
        ("- x + 1", -7),
        ("2 ** 3 ** 2", 512),
        ("-x ** 2", 64),
        ("2 * x ** 2", 128),
        ("3 ** (0 - 1)", 0),
        ("(y - 1) ** -3", -1),
        ("-7 / 2 * 10 + -7 % 2", -31),
        ("x <> 8 || x != 7 && x == 8", 1),
        ("2147483647 + 1", i32::MIN),
        ("-2147483648", i32::MIN),
        ("a[1] + a[a[0]]", 14),
        ("False xor True", 1),
    ] {
        assert_eq!(stored("Integer x := 8 y Byte[2] a := [1, 7]", expression), result, "{expression}");
    }
}

#[test]
fn types_have_their_ranges_and_defaults() {
    let slco = read(&machine(
        "Byte b := 250 Integer i Boolean t f := false Boolean[2] u",
        "A -> B { [b := b + 10; i := 70000; i := i * 70000; t := 0; f := i] }",
    ))
    .unwrap();
    let (states, ..) = explored(&slco);
    let values = |state: &[u32]| ["b", "i", "t", "f", "u[1]"].map(|name| value(&slco, name, state));
    assert_eq!(values(&states[0]), [250, 0, 1, 0, 1]);
    assert_eq!(values(&states[1]), [4, 605_032_704, 0, 1, 1]);
    // Storing a number as a truth value is not an overflow.
    let overflows = Interpreter::new(&slco.model).steps(&states[0], &mut Scratch::default(), |_, _| {}).unwrap();
    assert_eq!(overflows, 1);
}

/// A number that is received as a truth value is first a value of the channel. If it does not fit the channel's type, that is
/// counted once.
#[test]
fn numbers_received_as_truth_values_are_counted() {
    let found = |ty: &str, kind: &str, sent: &str, receiver: &str| {
        let text =
            pair(&format!("({ty}) {kind}"), &format!("A -> B {{ send m({sent}) to X }}"), &format!("A -> B {{ {receiver} }}"));
        let slco = read(&text).unwrap();
        let (states, interpreter) = (explored(&slco).0, Interpreter::new(&slco.model));
        let steps = |state: &Vec<u32>| interpreter.steps(state, &mut Scratch::default(), |_, _| {}).unwrap();
        (states.iter().map(steps).sum::<u64>(), value(&slco, "q.w", states.last().unwrap()))
    };
    for receiver in ["receive m(w) from Y", "receive m(w | not w or v = 0) from Y"] {
        for kind in ["sync between p.X and q.Y", "async[2] lossless from p.X to q.Y"] {
            for (ty, sent, expected) in [
                ("Byte", "i + 200", (0, 1)),
                ("Byte", "i", (0, 0)),
                ("Byte", "i + 300", (1, 1)),
                ("Byte", "i + 256", (1, 0)),
                ("Byte", "i - 256", (1, 0)),
                ("Byte", "300", (1, 1)),
                ("Integer", "i + 256", (0, 1)),
                ("Integer", "i - 1", (0, 1)),
                ("Boolean", "i + 256", (0, 1)),
            ] {
                assert_eq!(found(ty, kind, sent, receiver), expected, "{ty} {kind}: {sent}, {receiver}");
            }
        }
    }
}

#[test]
fn each_statement_is_a_step_and_a_composite_is_one() {
    assert_eq!(counts(&machine("Integer x", "A -> B { x := 1; x := 2; x = 2 }")), (4, 3, 1));
    assert_eq!(counts(&machine("Integer x", "A -> B { [x = 0; x := 1; x := 2] }")), (2, 1, 1));
    assert_eq!(counts(&machine("Integer x", "A -> B from B to C { } C -> A { do tick; after 5 ms; tick }")), (5, 5, 0));
    // A statement that can never be executed stops the machine inside a block.
    assert_eq!(counts(&machine("Integer x", "A -> B { x := 1; x = 0; x := 2 }")), (2, 1, 1));
    // The machine counts as being in the target state while statements remain.
    let slco = read(&machine("Integer x", "A -> B { x := 1; x := 2 }")).unwrap();
    let states = explored(&slco).0;
    let at = |state: &[u32]| ["M.A", "o.M.B", "M.C", "o.x"].map(|condition| value(&slco, condition, state));
    assert_eq!(states.iter().map(|state| at(state)).collect::<Vec<_>>(), [[1, 0, 0, 0], [0, 1, 0, 1], [0, 1, 0, 2]]);
}

#[test]
fn priorities_are_from_1_on_and_none_is_the_lowest() {
    assert_eq!(counts(&machine("Integer x", "A -> A { } 2: A -> B { } 1: A -> C { x = 1 }")), (2, 1, 1));
    assert_eq!(counts(&machine("Integer x", "0: A -> A { [x < 9; x := x + 1] } A -> B { x > 4 }")), (15, 14, 5));
    // The remaining statements of a block have no priority, because no other transition competes with them.
    assert_eq!(counts(&machine("Integer x", "1: A -> B { x = 0; x := 1; x := 2 } 2: A -> C")), (4, 3, 1));
}

/// The text of a model with two classes whose objects are connected by a channel.
fn pair(channel: &str, first: &str, second: &str) -> String {
    format!(
        "model m {{ classes
           P {{ variables Byte i j ports X state machines S {{ initial A states B C transitions {first} }} }}
           Q {{ variables Byte v Boolean w Byte[3] a ports Y state machines R {{ initial A states B C transitions {second} }} }}
         objects p : P(), q : Q()
         channels c{channel} }}"
    )
}

#[test]
fn asynchronous_channels_are_queues() {
    let send = "A -> A { send m(i) to X; [i := (i + 1) % 3] }";
    let of =
        |channel: &str| counts(&pair(&format!("(Byte) async{channel} from p.X to q.Y"), send, "A -> A { receive m(v) from Y }"));
    let (states, steps, deadlocks) = of("[2] lossless");
    assert!(states > 12 && steps > states && deadlocks == 0, "{states} {steps}");
    let lossy = of("[2] lossy");
    assert!(lossy.0 > states && lossy.2 == 0);
    assert_eq!(of(" lossless"), of("[1] lossless"));
    // A first message that no receiver takes blocks the channel.
    let text = pair(
        "(Byte) async[2] lossless from p.X to q.Y",
        "A -> B { send n(1) to X; send m(2) to X }",
        "A -> B { receive m(v) from Y }",
    );
    assert_eq!(counts(&text), (3, 2, 1));
    // A signal that is never sent is never received.
    assert_eq!(counts(&text.replace("receive m", "receive k")), (3, 2, 1));
}

#[test]
fn guards_see_what_is_received() {
    for channel in ["(Byte, Byte) async lossless from p.X to q.Y", "(Byte, Byte) sync between p.X and q.Y"] {
        for (guard, holds) in [
            ("v = 7", true),
            ("v = 0", false),
            ("a[1] = 9 and a[0] = 0 and a[2] = 0", true),
            ("a[v - 6] = 9", true),
            ("a[v - 7] = 9", false),
            ("v = 7 and not a[1] = 0", true),
        ] {
            let text = pair(
                channel,
                "A -> B { send m(i + 7, 9) to X }",
                &format!("A -> B {{ receive m(v, a[v - 6] | {guard}) from Y }}"),
            );
            let slco = read(&text).unwrap_or_else(|error| panic!("{error}"));
            let received = explored(&slco).0.iter().any(|state| value(&slco, "q.R.B and q.a[1] = 9", state) == 1);
            assert_eq!(received, holds, "{channel} {guard}");
        }
        // A received value is first wrapped to the channel's type: 263 becomes 7 in a byte, which is true.
        let text = pair(channel, "A -> B { send m(263, 256) to X }", "A -> B { receive m(w, v | w and v = 0) from Y }");
        let slco = read(&text).unwrap();
        assert!(explored(&slco).0.iter().any(|state| value(&slco, "q.R.B and q.w", state) == 1), "{channel}");
    }
    // A value that does not fit is counted where it is sent or stored. A guard that sees the value does not count it again.
    for channel in ["Byte", "Integer"] {
        for guard in ["", " | v > 5"] {
            let channel = format!("({channel}) sync between p.X and q.Y");
            let text = pair(&channel, "A -> B { send m(300) to X }", &format!("A -> B {{ receive m(v{guard}) from Y }}"));
            let slco = read(&text).unwrap();
            let states = explored(&slco).0;
            assert!(states.iter().any(|state| value(&slco, "q.R.B and q.v = 44", state) == 1), "{channel}{guard}");
            let steps =
                |state: &Vec<u32>| Interpreter::new(&slco.model).steps(state, &mut Scratch::default(), |_, _| {}).unwrap();
            assert_eq!(states.iter().map(steps).sum::<u64>(), 1, "{channel}{guard}");
        }
    }
}

#[test]
fn either_end_of_a_synchronous_channel_sends() {
    let text = pair(
        "(Byte) sync between p.X and q.Y",
        "A -> B { send req(i + 1) to X; receive ans(i) from X } B -> A { i < 4 }",
        "A -> A { receive req(v | v <> 3) from Y; send ans(v * 2) to Y }",
    );
    assert_eq!(counts(&text), (4, 3, 1));
    // A sender or receiver is enabled only together with a partner, so only complete pairs matter for priorities.
    let first = "1: A -> B { send a(1) to X } 2: A -> C { }";
    let with = |second: &str| counts(&pair("(Byte) sync between p.X and q.Y", first, second));
    assert_eq!(with("A -> A { receive b(v) from Y }"), (2, 1, 1));
    assert_eq!(with("A -> B { receive a(v) from Y }"), (2, 1, 1));
    assert_eq!(with("A -> B { receive a(v | v = 2) from Y }"), (2, 1, 1));
    assert_eq!(with("B -> A { receive a(v) from Y } A -> B"), (6, 5, 2));
}

#[test]
fn objects_have_variables_of_their_own() {
    let text = "model m { classes K { variables Integer n limit := 2 state machines
        M { variables Byte k initial A transitions A -> A { [n < limit; n := n + 1; k := k + 1] } } }
        objects a : K(), b : K(limit := 4), c : K(n := 2) }";
    let slco = read(text).unwrap();
    let (states, steps, deadlocks) = explored(&slco);
    assert_eq!((states.len(), steps, deadlocks), (15, 22, 1));
    assert_eq!(value(&slco, "a.n = 2 and b.n = 4 and c.M.k = 0 and b.M.k = 4 and a.M.A", states.last().unwrap()), 1);
    assert!(read(text).unwrap().condition(&Source { name: String::new(), text: "n = 2".into() }).is_err());
    assert_eq!(counts("model nothing { }"), (1, 0, 1));
}

#[test]
fn errors_say_what_and_where() {
    let composite = |text: &str| machine("Integer x Byte[2] a", &format!("A -> B {{ {text} }}"));
    let asynchronous = |first: &str, second: &str| pair("(Byte) async lossless from p.X to q.Y", first, second);
    for (text, line, message) in [
        (composite("y := 1"), 3, "there is no variable `y`"),
        (composite("x := 1; y"), 3, "there is no variable `y`"),
        (composite("do tock"), 3, "there is no action `tock`"),
        (composite("x[1] := 1"), 3, "`x` is not an array"),
        (composite("a := 1"), 3, "`a` is an array"),
        (composite("x := o.x"), 3, "a name with a dot"),
        (composite("x := 3000000000"), 3, "the number is too large"),
        (composite("x := 1 +"), 3, "`}` is not expected here"),
        (composite("[x := 1"), 3, "`}` is not expected here"),
        (composite("send m() to X"), 3, "there is no port `X`"),
        (machine("Integer x", "A -> D"), 3, "there is no state `D`"),
        (machine("x", ""), 1, "a variable without a type"),
        (machine("Integer x x", ""), 1, "the variable `x` is declared twice"),
        (machine("Byte[0] x", ""), 1, "a size of 0"),
        (machine("Byte[70000] x", ""), 1, "a size of 70000"),
        (machine("Byte[2] x := 1", ""), 1, "a single value for an array"),
        (machine("Byte x := [1]", ""), 1, "a list of values for a variable that is not an array"),
        (asynchronous("A -> B { send m(1, 2) to X }", ""), 2, "messages on `c` have 1 value"),
        (asynchronous("A -> B { receive m(i) from X }", ""), 2, "`c` leads from this port, so this object can only send on it"),
        (asynchronous("", "A -> B { send m(v) to Y }"), 3, "`c` leads to this port, so this object can only receive on it"),
        (pair("(Byte[2]) async lossless from p.X to q.Y", "", ""), 5, "an array in a message"),
        (pair("(Byte) async lossless from p.Z to q.Y", "", ""), 5, "there is no port of p `Z`"),
        (pair("(Byte) async lossless from r.X to q.Y", "", ""), 5, "there is no object `r`"),
        (pair("(Byte) sync between p.X and p.X", "", ""), 5, "the port p.X is connected twice"),
        ("model m { objects o : K() }".into(), 1, "there is no class `K`"),
        ("model m { classes K { } objects o : K(x := 1) }".into(), 1, "there is no variable of the class `x`"),
        ("model m { classes K { variables Byte x } objects o : K(x := 1, x := 2) }".into(), 1, "a second value of `x`"),
        ("model m { classes K { } K { } }".into(), 1, "the class `K` is declared twice"),
        ("model m {".into(), 1, "the text ends here"),
        ("model m { classes K { ports P variables Byte x } }".into(), 1, "`variables` is a word of the language"),
        ("model m { classes K { variables Byte initial } }".into(), 1, "`initial` is a word of the language"),
        (String::new(), 1, "the text is empty"),
    ] {
        let error = read(&text).map(|_| ()).expect_err(&text);
        assert!(error.starts_with(&format!("test:{line}:")) && error.contains(message), "{text}\n{error}");
    }
    let slco = read(&machine("Integer x", "")).unwrap();
    for (condition, message) in [
        ("y", "there is no variable or state machine of o `y`"),
        ("M", "`M` is a state machine"),
        ("o", "`o` is an object"),
        ("M.D", "there is no state or variable of M `D`"),
        ("o.N.A", "there is no state machine of o `N`"),
        ("o.M.A.B", "too many parts in the name"),
        ("o.M.A[1]", "a state is not an array"),
    ] {
        let error = slco.condition(&Source { name: "c".into(), text: condition.into() }).unwrap_err().to_string();
        assert!(error.contains(message), "{condition}: {error}");
    }
}

#[test]
fn what_is_not_computed_as_it_is_written_is_told() {
    for (text, places, values) in [
        (machine("Byte x := 300 y := -1", ""), vec!["300", "-1"], 2),
        (machine("Byte[2] x := [1, 2, 3]", ""), vec!["3"], 1),
        (machine("Boolean x := 2", ""), vec!["2"], 1),
        (machine("Byte x", "A -> B { x := 256 }"), vec!["256"], 0),
        (machine("Byte[2] x", "A -> B { x[2] := 1 }"), vec!["[2]"], 0),
        (machine("Byte x", "A -> B { x := x / 0 }"), vec!["/"], 0),
        (
            pair("() async lossless from p.X to q.Y", "", "").replace("from p.X", "from q.Y").replace("to q.Y", "to p.X"),
            vec![],
            0,
        ),
    ] {
        let slco = read(&text).unwrap_or_else(|error| panic!("{error}"));
        let found: Vec<&str> = slco.warnings.iter().map(|warning| slco.model.source.piece(warning.diagnostic.span)).collect();
        assert_eq!((found, slco.warnings.iter().map(|warning| warning.values).sum::<u64>()), (places, values), "{text}");
    }
    let text =
        "model m { classes K { ports X state machines M { initial A transitions A -> A { send s() to X } } } objects o : K() }";
    let slco = read(text).unwrap();
    assert!(slco.warnings[0].diagnostic.message.contains("the port o.X is not connected to a channel"));
    assert_eq!(counts(text), (1, 0, 1));
}

#[test]
fn sizes_have_limits() {
    let nested = |depth: usize| machine("Integer x", &format!("A -> B {{ {}x{} = 0 }}", "(".repeat(depth), ")".repeat(depth)));
    let chain = |length: usize, more: &str| machine("Integer x", &format!("A -> B {{ x{} = 0 }}", more.repeat(length)));
    for good in [nested(60), chain(290, " / x"), chain(290, " ** x"), chain(10_000, " + x - x"), chain(10_000, " = 1 && x")] {
        read(&good).unwrap();
    }
    for bad in [nested(70), chain(310, " / x"), chain(310, " ** x")] {
        assert!(read(&bad).unwrap_err().contains("too large"));
    }
    read(&nested(100_000)).unwrap_err();
    for power in [" / x", " ** x"] {
        read(&chain(sized(100_000, 30_000, 30_000), power)).unwrap_err();
    }
    // There is one condition for each pair of priorities.
    let many =
        |count: usize| machine("Integer x", &(1..count).map(|at| format!("{at}: A -> B {{ x = {at} }}\n")).collect::<String>());
    read(&many(500)).unwrap();
    assert!(read(&many(4500)).unwrap_err().contains("parts together"));
    // A guard uses elements of an array that receives many values.
    let channel = format!("({}) async lossless from p.X to q.Y", ["Byte"; 40].join(", "));
    let values = vec!["1"; 40].join(", ");
    let targets = vec!["a[v]"; 40].join(", ");
    let text = pair(
        &channel,
        &format!("A -> B {{ send m({values}) to X }}"),
        &format!("A -> B {{ receive m({targets} | a[a[a[0]]] = 1) from Y }}"),
    );
    assert!(read(&text).unwrap_err().contains("too large"));
}

#[test]
fn faults_have_their_places() {
    let slco = read(&machine("Byte[2] a Byte i", "A -> A { [a[i] := 1;\n i := i + 1] }")).unwrap();
    let interpreter = Interpreter::new(&slco.model);
    let mut state = slco.model.initial_state();
    let fault = loop {
        let mut next = None;
        match interpreter.steps(&state, &mut Scratch::default(), |_, successor| next = Some(successor.to_vec())) {
            Ok(_) => state = next.unwrap(),
            Err(fault) => break fault,
        }
    };
    assert_eq!((fault.message(&slco.model), fault.span.line), ("the array a has 2 elements, but its index is 2".into(), 3));
}

const WORDS: &str = "model actions classes objects channels variables ports state machines initial states transitions from to receive send \
    after ms do not and or xor true False Integer Boolean Byte async sync lossless lossy between K P Q o p q X Y M S R A B C x a i v w \
    c m 0 1 2 65536 4294967296 { } ( ) [ ] ; , : := = == != <> < <= > >= + - * ** / % && || | -> . // /* */";

fn word() -> impl Strategy<Value = String> {
    let words: Vec<String> = WORDS.split_whitespace().map(Into::into).collect();
    prop_oneof![9 => prop::sample::select(words), 1 => "[ -~]{1,4}"]
}

fn models() -> [String; 4] {
    [
        machine(
            "Integer x := 3 Byte[2] a",
            "1: A -> B { [x > 0; a[x % 2] := x ** 2]; x - 1; tick } from B to A { after 3 ms } B -> C",
        ),
        pair(
            "(Byte, Boolean) async[2] lossy from p.X to q.Y",
            "A -> A { send m(i, j > 1) to X; [i := (i + 1) % 3] }",
            "A -> B { receive m(a[0], w | w or a[1] = 2) from Y } 2: B -> A",
        ),
        pair(
            "(Byte) sync between p.X and q.Y",
            "A -> B { send m(i) to X }",
            "A -> B { receive m(v | v < 2) from Y; send n(v) to Y }",
        ),
        "model m { classes K { variables Byte n := 2 } objects a : K(n := 3), b : K() }".into(),
    ]
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

    /// Every model that can be read can also be explored.
    #[test]
    fn no_change_of_a_model_panics(
        model in 0usize..4,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), 0usize..12, word()), 1..5),
    ) {
        let mut text = models()[model].clone();
        for (at, length, word) in changes {
            let start = at.index(text.len());
            text.replace_range(start..(start + length).min(text.len()), &format!(" {word} "));
        }
        if let Ok(slco) = read(&text) {
            let _ = Interpreter::new(&slco.model).steps(&slco.model.initial_state(), &mut Scratch::default(), |_, _| {});
        }
    }

    #[test]
    fn no_condition_panics(words in proptest::collection::vec(word(), 0..12)) {
        let slco = read(&models()[1]).unwrap();
        let _ = slco.condition(&Source { name: "condition".into(), text: words.join(" ") });
    }
}

#[test]
fn comparisons_that_look_like_assignments_are_warned_of() {
    let warned = |statement: &str| {
        let slco = read(&machine("Integer x Integer[2] a", &format!("from A to B {{ {statement} }}"))).unwrap();
        slco.warnings
            .iter()
            .map(|warning| format!("{}: {}", warning.diagnostic.message, warning.diagnostic.label))
            .collect::<Vec<_>>()
    };
    let of = |statement: &str| warned(statement).into_iter().next().unwrap_or_default();
    assert_eq!(
        of("x = x + 1"),
        "the statement `x = x + 1` is a comparison: does not change the variable; an assignment is `x := x + 1`"
    );
    assert!(of("a[x] = 2 * a[x]").contains("`a[x] := 2 * a[x]`"));
    for meant in ["x = 1", "x = a[0]", "x := x + 1", "x = x", "x + 1 = x", "a[0] = a[1] + 1", "[x = x % 2; x := 1]"] {
        assert_eq!(warned(meant), [""; 0], "{meant}");
    }
}

#[test]
fn errors_name_the_owner() {
    let help = |text: &str, condition: &str| {
        let source = Source { name: "condition".into(), text: condition.into() };
        read(text).unwrap().condition(&source).unwrap_err().diagnostic.help
    };
    assert_eq!(help(&machine("Integer x", "from A to B {}"), "B").unwrap(), "write M.B");
    let two = machine("Integer x", "from A to B {}").replace("o : K()", "o : K(), p : K()");
    assert_eq!(help(&two, "B").unwrap(), "write o.M.B");
    assert_eq!(help(&two, "x").unwrap(), "write o.x");
}
