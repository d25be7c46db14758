//! Compiled code compared with the interpreter, and compilation of the kernels by NVRTC.

use super::on_cpu::Compiled;
use crate::successors::{Expansion, Interpreted, Scratch, Successors};
use proptest::prelude::*;
use rayon::prelude::*;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use warpset_model::checks::{Checks, Role, Violation};
use warpset_model::diagnostic::Severity;
use warpset_model::dve::Dve;
use warpset_model::interpreter::Interpreter;
use warpset_model::ir::property::Move;
use warpset_model::ir::{Model, Source, Span};
use warpset_model::language::{Format, Text};
use warpset_model::network::Reading;
use warpset_model::slco::Slco;

/// Maximum number of states of a model that are compared.
const STATES: usize = 3000;

fn read(name: &str, text: String) -> Dve {
    Dve::read(Source { name: name.into(), text })
        .unwrap_or_else(|error| panic!("{}", error.diagnostic.render(&error.source, Severity::Error, false)))
}

/// Expands one state. Returns its successors, and the counts and violations found in it.
fn found<X: Successors>(source: &X, state: &[u32]) -> (Vec<Vec<u32>>, Expansion) {
    let mut expansion = Expansion::default();
    source.expand(state, &mut Scratch::default(), &mut expansion);
    let successors: Vec<_> = expansion.successors.chunks_exact(state.len()).map(<[u32]>::to_vec).collect();
    assert!(expansion.parents.iter().all(|parent| *parent == 0) && expansion.parents.len() == successors.len());
    (successors, expansion)
}

/// Asserts that both sources find the same in each state, in the same order. Returns the states' successors.
fn compare<X: Successors, Y: Successors>(name: &str, one: &X, other: &Y, states: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let (mut all, mut faults) = (Vec::new(), 0);
    for state in states {
        let ((successors, a), (others, b)) = (found(one, state), found(other, state));
        assert_eq!(a.violation, b.violation, "{name}: {state:x?}");
        if matches!(a.violation, Some((_, Violation::Fault(_)))) {
            faults += 1; // other findings do not count, here and in later states
            continue;
        }
        assert_eq!(successors, others, "{name}: successors of {state:x?}");
        assert_eq!((a.deadlocks, a.overflows), (b.deadlocks, b.overflows), "{name}: {state:x?}");
        all.extend(successors);
    }
    if faults > 0 {
        return all;
    }
    // Expanding all states at once gives the same results.
    let words = states.concat();
    let mut together = [Expansion::default(), Expansion::default()];
    one.expand(&words, &mut Scratch::default(), &mut together[0]);
    other.expand(&words, &mut Scratch::default(), &mut together[1]);
    let [a, b] = together;
    assert_eq!((a.deadlocks, a.overflows, a.violation), (b.deadlocks, b.overflows, b.violation), "{name}");
    assert_eq!(a.parents, b.parents, "{name}");
    all
}

/// Compares states breadth-first from the initial state. If a level is wide, only some of its states are expanded, to reach deep
/// states, too.
fn compare_reachable<'m>(interpreted: &'m Interpreted<'m>, compiled: &Compiled<'m>) {
    let model = interpreted.interpreter.model();
    let mut frontier = vec![model.initial_state()];
    let mut seen: HashSet<Vec<u32>> = frontier.iter().cloned().collect();
    while !frontier.is_empty() && seen.len() < STATES {
        let successors = compare(&model.source.name, interpreted, compiled, &frontier);
        frontier = successors.into_iter().filter(|state| seen.insert(state.clone())).collect();
        let step = frontier.len().div_ceil(STATES / 20);
        frontier = frontier.into_iter().step_by(step.max(1)).collect();
    }
}

/// Compiles the functions. Without a compiler, prints the reason and returns `None`; with `WARPSET_REQUIRE_CXX` in the
/// environment, panics.
fn compile<'m>(interpreted: &'m Interpreted<'m>) -> Option<Compiled<'m>> {
    or_skip(interpreted, Compiled::new(interpreted))
}

pub fn or_skip<'m>(interpreted: &Interpreted<'m>, compiled: anyhow::Result<Compiled<'m>>) -> Option<Compiled<'m>> {
    match compiled {
        Ok(compiled) => Some(compiled),
        Err(error) if error.to_string().starts_with("no C++ compiler") && std::env::var_os("WARPSET_REQUIRE_CXX").is_none() => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{}: {error:#}", interpreted.interpreter.model().source.name),
    }
}

pub fn own_models() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models");
    let files = std::fs::read_dir(folder).expect("the models").map(|file| file.expect("a file").path());
    // Files for `decompose` are not models.
    let mut models: Vec<_> = files.filter(|path| path.extension().is_none_or(|kind| kind != "tra")).collect();
    models.sort();
    models
}

/// All models of the BEEM benchmark, if `WARPSET_BEEM` names its folder.
fn beem_models() -> Vec<PathBuf> {
    let Some(folder) = std::env::var_os("WARPSET_BEEM") else {
        println!("skipped: WARPSET_BEEM does not name the models");
        return Vec::new();
    };
    let files = ["open", "ltl"]
        .into_iter()
        .flat_map(|kind| std::fs::read_dir(Path::new(&folder).join(kind)).expect("WARPSET_BEEM has folders `open` and `ltl`"));
    files.map(|file| file.expect("a file").path()).filter(|path| path.extension().is_some_and(|kind| kind == "dve")).collect()
}

/// Models whose code is optimised or compiled for a GPU: few, because each takes a second or more. With `WARPSET_BEEM_ALL` in the
/// environment, all models.
fn some_beem_models() -> Vec<PathBuf> {
    let few = ["anderson.4", "bridge.2", "lup.2", "needham.2", "peterson.4", "phils.1", "sorter.3", "rether.1.prop2"];
    let is_one = |path: &PathBuf| few.iter().any(|name| path.file_stem().is_some_and(|stem| stem == *name));
    let all = std::env::var_os("WARPSET_BEEM_ALL").is_some();
    beem_models().into_iter().filter(|path| all || is_one(path)).collect()
}

pub fn read_file(path: &Path) -> Text {
    let input = warpset_model::input::open(path).unwrap_or_else(|error| panic!("{error:#}"));
    let text = Text::read(Format::of(path).unwrap(), input, &Reading::default());
    text.unwrap_or_else(|error| panic!("{}: {error:#}", path.display()))
}

fn compare_model(path: &Path, compile: impl for<'m> Fn(&'m Interpreted<'m>) -> anyhow::Result<Compiled<'m>>) {
    let text = read_file(path);
    let checks = Checks { deadlocks: true, ..Checks::of_model(text.model()) };
    let interpreted = Interpreted::new(Interpreter::new(text.model()), &checks);
    if let Some(compiled) = or_skip(&interpreted, compile(&interpreted)) {
        compare_reachable(&interpreted, &compiled);
    }
}

/// A network with steps of one, two and all components, several transitions with one label, a component with a single state,
/// labels without a rule, and conditions on enabled labels.
pub fn network() -> (tempfile::TempDir, Text, Checks) {
    let folder = tempfile::tempdir().unwrap();
    let many: String =
        (0..40).map(|at| format!("({at}, \"S !{}\", {})\n({at}, T, {})\n", at % 4, (at * 3 + 1) % 40, at / 2)).collect();
    for (name, text) in [
        ("many.aut", format!("des (0, 81, 40)\n{many}(0, T, 39)\n")),
        ("few.aut", "des (1, 5, 3)\n(0, \"S !1\", 1)\n(1, \"S !1\", 2)\n(1, T, 0)\n(2, T, 2)\n(2, i, 1)\n".into()),
        ("one.aut", "des (0, 2, 1)\n(0, T, 0)\n(0, \"S !0\", 0)\n".into()),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let main = folder.path().join("main.exp");
    let expression =
        "par S -> many || S -> few || one || (hide S in par T in many || few || one || few || many end par end hide) end par";
    std::fs::write(&main, expression).unwrap();
    let text = read_file(&main);
    let mut checks = Checks { deadlocks: true, ..Checks::of_model(text.model()) };
    for condition in ["not enabled(\"S !1\") or few_1 == 1", "not enabled(T) or many_1 != 7", "one_1 == 0"] {
        let source = Source { name: "condition".into(), text: condition.into() };
        checks.add(Role::Invariant, condition.into(), text.condition(&source).unwrap_or_else(|error| panic!("{error}")).0);
    }
    (folder, text, checks)
}

/// A single state space with a different label for each transition, except some labels that occur twice, also in one state.
pub fn state_space() -> (tempfile::TempDir, Text, Checks) {
    let folder = tempfile::tempdir().unwrap();
    let line = |at: u32| {
        let (from, label) = (at % 300, if at.is_multiple_of(7) { at % 300 } else { at });
        let gate = if label.is_multiple_of(200) { "FEW" } else { "STEP" };
        format!("({from}, \"{gate} !{label}\", {})\n", (at * 17 + at / 300) % 311)
    };
    let path = folder.path().join("space.aut");
    let lines: String = (0..2000).map(line).collect();
    std::fs::write(&path, format!("des (5, 2001, 311)\n{lines}(310, LAST, 5)\n")).unwrap();
    let text = read_file(&path);
    let mut checks = Checks { deadlocks: true, ..Checks::of_model(text.model()) };
    for condition in ["not enabled(\"STEP !7\")", "not enabled(LAST) or space != 310", "space != 7 or enabled(FEW)"] {
        let source = Source { name: "condition".into(), text: condition.into() };
        checks.add(Role::Invariant, condition.into(), text.condition(&source).unwrap_or_else(|error| panic!("{error}")).0);
    }
    (folder, text, checks)
}

#[test]
fn compiled_code_of_state_spaces_does_what_the_interpreter_does() {
    let (_folder, text, checks) = state_space();
    let generated = super::generate(text.model(), &[], None);
    assert!(generated.len() < 20_000, "{} bytes for 1,700 labels", generated.len());
    let interpreted = Interpreted::new(Interpreter::new(text.model()), &checks);
    if let Some(compiled) = compile(&interpreted) {
        compare_reachable(&interpreted, &compiled);
    }
}

#[test]
fn compiled_code_of_networks_does_what_the_interpreter_does() {
    let (_folder, text, checks) = network();
    let interpreted = Interpreted::new(Interpreter::new(text.model()), &checks);
    if let Some(compiled) = compile(&interpreted) {
        compare_reachable(&interpreted, &compiled);
    }
}

#[test]
fn compiled_code_does_what_the_interpreter_does() {
    let models = [own_models(), some_beem_models()].concat();
    models.par_iter().for_each(|path| compare_model(path, |interpreted| Compiled::new(interpreted)));
}

/// The network with an automaton that has more moves than a GPU takes at a time, and guards on enabled labels.
pub fn product_of(network: &Text) -> Model {
    let guard = |text: &str| {
        let source = Source { name: "guard".into(), text: text.into() };
        network.condition(&source).unwrap_or_else(|error| panic!("{error}")).0
    };
    let guards = ["enabled(T)", "not enabled(\"S !1\")", "many_1 % 3 == 0", "few_1 != 1", "1", "few_2 == 2 or enabled(i)"];
    let ends = [(0, 0), (0, 1), (0, 0), (0, 1), (1, 1), (0, 1), (1, 0), (1, 1), (0, 0)];
    let moves = ends.into_iter().zip(guards.iter().cycle());
    let moves = moves.map(|((from, to), text)| Move { from, to, guard: Some(guard(text)), span: Span::default() });
    let mut model = network.model().clone();
    model.set_property("automaton".into(), vec!["q".into(), "r".into()], 0, vec![false, true], moves.collect()).unwrap();
    model
}

#[test]
fn compiled_code_of_products_of_networks_does_what_the_interpreter_does() {
    let (_folder, text, _) = network();
    let model = product_of(&text);
    let checks = Checks { deadlocks: true, ..Checks::default() };
    let interpreted = Interpreted::new(Interpreter::new(&model), &checks);
    if let Some(compiled) = compile(&interpreted) {
        compare_reachable(&interpreted, &compiled);
    }
}

/// The optimisation level does not change the results.
#[test]
fn generated_code_of_every_model_does_what_the_interpreter_does() {
    beem_models().par_iter().for_each(|path| compare_model(path, |interpreted| Compiled::unoptimised(interpreted)));
}

/// Tests committed states; typed, buffered and untyped channels; messages of several values; receiving into an element; guards
/// that cause a fault only if they are evaluated; conditions that fail.
#[test]
fn compiled_code_knows_all_constructs() {
    let text = "
        byte x = 250, a[3] = {1, 2}; int y = -7;
        channel c; channel {byte, int} d[0]; channel {int} e[2];
        process P {
            byte k; state p, q, r; commit q; init p;
            assert r: k < 9;
            trans p -> q { sync c!(y - x); effect k = k + 60, x = x + 3; },
                  q -> r { sync d!{x * 5, y * 1000}; effect a[k % 3] = x; },
                  r -> p { guard e[0] > 1 or k > 0; effect y = -y / 2; },
                  p -> p { guard k < 200 and a[k % 3] >= 0; sync e!(k); effect k = k + 1; };
        }
        process Q {
            int i; state s, t; init s;
            trans s -> t { guard k2 != 0 imply x / k2 > 3; sync c?a[(x + 1) % 3]; effect i = ~i; },
                  t -> s { sync d?{x, i}; },
                  s -> s { guard i < 40; effect i = i + 7; },
                  t -> t { sync e?i; effect x = x ^ i; };
        }
        process R { byte z; state u, v; commit v; init u;
            trans u -> v { guard x > 252; }, v -> u { effect k2 = k2 + 1, z = z << 1 | 1; }, u -> u { sync c?x; }; }
        system async;"
        .replace("byte x = 250,", "byte k2 = 0, x = 250,")
        .replace("guard e[0] > 1 or k > 0;", "guard k > 0;");
    let dve = read("constructs.dve", text);
    let mut checks = Checks { deadlocks: true, ..Checks::of_model(&dve.model) };
    for condition in ["x != 253 or y < 0", "a[x % 4] >= 0"] {
        let source = Source { name: "condition".into(), text: condition.into() };
        checks.add(Role::Invariant, condition.into(), dve.condition(&source).unwrap_or_else(|_| panic!("{condition}")).0);
    }
    let interpreted = Interpreted::new(Interpreter::new(&dve.model), &checks);
    if let Some(compiled) = compile(&interpreted) {
        compare_reachable(&interpreted, &compiled);
    }
}

/// Tests constructs that only SLCO has: powers, 32-bit stores, truth values, priorities, lossy channels, guards on received
/// values.
#[test]
fn compiled_code_knows_what_slco_has() {
    let text = "
        model constructs { actions tick classes
          P { variables Byte i := 3 Integer n := 1 Boolean b Byte[3] a ports X L Z state machines
            S { variables Boolean w initial A states B C transitions
              1: A -> B { [i < 5 and b; i := i + 1; n := n * 70000 + i; b := n; a[i % 3] := i ** 2] }
              2: A -> A { send m(n, i + 254) to X; w := n ** (i - 4) > 2; send t(i * 128, i * 128) to Z }
              A -> C { tick }
              B -> A { b := not b xor w; send l(i) to L }
              C -> A { [i >= 0; i := 3; n := -n; b := i] } }
            T { initial A transitions A -> A { [n > 100000 or n < 0; n := (n % 7) ** 3] } } }
          Q { variables Byte v Byte[4] c Boolean d e ports Y M U state machines
            R { initial A states B transitions
              A -> B { receive m(d, c[v % 4] | d and c[v % 4] <> 3) from Y }
              A -> A { receive m(d, v | not d or v > 200) from Y }
              A -> A { receive t(d, v) from U } B -> B { receive t(e, d | e or d) from U }
              B -> A { receive l(v | v % 2 = 0) from M }
              B -> A { receive l(c[1]) from M; c[1] := c[1] - 9 } } }
        objects p : P(), q : Q()
        channels x(Integer, Byte) sync between p.X and q.Y   z(Byte, Byte) sync between p.Z and q.U
           l(Byte) async[2] lossy from p.L to q.M }";
    let slco = Slco::read(Source { name: "constructs.slco".into(), text: text.into() });
    let slco = slco.unwrap_or_else(|error| panic!("{}", error.diagnostic.render(&error.source, Severity::Error, false)));
    let mut checks = Checks { deadlocks: true, ..Checks::of_model(&slco.model) };
    let condition = Source { name: "condition".into(), text: "not (q.R.B and p.b and q.c[1] > 250)".into() };
    checks.add(Role::Invariant, condition.text.clone(), slco.condition(&condition).unwrap_or_else(|error| panic!("{error}")).0);
    let interpreted = Interpreted::new(Interpreter::new(&slco.model), &checks);
    if let Some(compiled) = compile(&interpreted) {
        compare_reachable(&interpreted, &compiled);
    }
    let nothing = Slco::read(Source { name: "nothing".into(), text: "model nothing { }".into() }).unwrap();
    let checks = Checks::default();
    let interpreted = Interpreted::new(Interpreter::new(&nothing.model), &checks);
    if let Some(compiled) = compile(&interpreted) {
        compare_reachable(&interpreted, &compiled);
    }
}

fn expressions() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        (0..300u32).prop_map(|number| number.to_string()),
        Just("0".to_string()),
        proptest::sample::select(vec!["x", "y", "b", "P.s3"]).prop_map(String::from),
    ];
    let operators = vec![
        "+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^", "<", "<=", ">", ">=", "==", "!=", "and", "or", "imply", "&&", "||",
    ];
    leaf.prop_recursive(5, 24, 2, move |inner| {
        let operators = proptest::sample::select(operators.clone());
        prop_oneof![
            6 => (inner.clone(), operators, inner.clone()).prop_map(|(a, operator, b)| format!("({a} {operator} {b})")),
            1 => (proptest::sample::select(vec!["-", "not ", "~"]), inner.clone()).prop_map(|(sign, a)| format!("({sign}{a})")),
            2 => (proptest::sample::select(vec!["a", "c", "t"]), inner).prop_map(|(array, index)| format!("{array}[{index}]")),
        ]
    })
}

/// A state in which every field has a random legal value.
fn any_state(model: &Model, mut seed: u64) -> Vec<u32> {
    let mut next = || {
        seed = seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        let bits = (seed >> 33) as i32;
        // Prefer small values, which are more interesting.
        if bits & 3 == 0 { bits >> 2 } else { bits >> 2 & 7 }
    };
    let mut state = model.initial_state();
    for (process, field) in model.processes.iter().zip(&model.layout.locations) {
        field.set(&mut state, 0, next().rem_euclid(process.locations.len() as i32));
    }
    for (variable, field) in model.variables.iter().zip(&model.layout.variables) {
        for element in 0..variable.initial.len() {
            if let Some(field) = field {
                let values = variable.values;
                let value = values.low + i64::from(next()).rem_euclid(values.high - values.low + 1);
                field.set(&mut state, element, value as i32);
            }
        }
    }
    state
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, max_shrink_iters: 8, ..ProptestConfig::default() })]

    #[test]
    fn compiled_expressions_have_the_interpreters_values(
        expressions in proptest::collection::vec(expressions(), 60),
        seed in any::<u64>(),
    ) {
        let locations: Vec<String> = (0..expressions.len() / 4).map(|at| format!("s{at}")).collect();
        let transitions = expressions.chunks_exact(4).enumerate().map(|(at, e)| {
            let next = (at + 1) % locations.len();
            format!("s{at} -> s{next} {{ guard {}; effect x = {}, a[{}] = {}, y = x; }}, s{at} -> s{next} {{ effect y = {3}, c[x & 3] = y; }}",
                e[0], e[1], e[2], e[3])
        });
        let text = format!(
            "byte x = 3; int y = -5; byte a[5] = {{1, 2, 3, 4, 250}}; int c[3]; byte t[4] = {{7, 0, 9}}; int b = -3;
             process P {{ state {}; init s0; trans {}; }} system async;",
            locations.join(", "),
            transitions.collect::<Vec<_>>().join(",\n"),
        );
        let dve = read("random.dve", text);
        let checks = Checks::of_model(&dve.model);
        let interpreted = Interpreted::new(Interpreter::new(&dve.model), &checks);
        if let Some(compiled) = compile(&interpreted) {
            let states: Vec<_> = (0..2000).map(|number| any_state(&dve.model, seed ^ number)).collect();
            compare("random.dve", &interpreted, &compiled, &states);
        }
    }
}

/// Compiles the kernels of every model, each for one kind of table. Kinds change from kernel to kernel and from model to model:
/// each kind of kernel is compiled for each kind of table. Nothing runs, so no GPU is needed.
#[cfg(feature = "cuda")]
#[test]
fn nvrtc_takes_the_kernels() {
    use crate::gpu;
    use rayon::prelude::*;
    use warpset::gpu::{Program, compile};
    use warpset::{BucketTable, Error, IndexedTable, TreeTable};
    use warpset_model::reduction::stubborn::{Kept, Stubborn};
    fn own(source: &str) -> Program<'_> {
        Program::Own { name: "explore.cu", source }
    }
    let files = own_models().into_iter().chain(some_beem_models()).map(|path| read_file(&path).model().clone());
    let property = "process Runs { state q, r; init q; accept r; trans q -> q {}, q -> r { guard P_0.critical; }, r -> r {}, r -> q {}, r -> r {}, r -> q {};
        }\nsystem async property Runs;";
    let product = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/peterson.dve")).expect("a model");
    let product = read("product", product.replace("system async;", property)).model;
    let models = files.chain([product, large(super::parts::FEW + 100, 2, "sync c!x;").model]);
    let models = models.map(|model| (Checks::of_model(&model), model));
    let (_folder, network, checks) = network();
    let (_space_folder, space, space_checks) = state_space();
    let of_space = (space_checks, space.model().clone());
    let of_networks = [(checks, network.model().clone()), (Checks::default(), product_of(&network)), of_space];
    let survey = own(gpu::SURVEY);
    let compile = |what: &str, table: usize, width: usize, program: Program<'_>| {
        let image = match table {
            0 => compile(&BucketTable::builder(width), program, (9, 0)),
            1 => compile(&TreeTable::builder(width), program, (9, 0)),
            _ => compile(&IndexedTable::builder(width), program, (9, 0)),
        };
        match image {
            Ok(image) => assert!(image.len() > 1000, "{what}, table {table}: {} bytes", image.len()),
            Err(Error::LibraryNotFound { .. }) if std::env::var_os("WARPSET_REQUIRE_NVRTC").is_none() => {
                println!("skipped: NVRTC is not installed");
            }
            Err(error) => panic!("{what}, table {table}: {error}"),
        }
    };
    for table in 0..3 {
        compile("survey", table, 8, survey);
    }
    // NVRTC compiles several programs at a time.
    let models: Vec<_> = models.chain(of_networks).collect();
    models.into_par_iter().enumerate().for_each(|(number, (checks, model))| {
        let name = &model.source.name;
        let width = model.layout.words;
        let timed = gpu::Sources { timed: true, ..gpu::Sources::new(&model, &checks) };
        compile(&format!("{name}, by rows"), 2, width, own(&timed.by_rows()));
        if model.property.is_none() {
            compile(&format!("{name}, walks"), 0, width, own(&gpu::source_of_walks(&model, &checks)));
            let conditions: Vec<_> = checks.conditions.iter().map(|condition| condition.must_hold.clone()).collect();
            let table = if width < 3 { 0 } else { number % 2 };
            compile(&format!("{name}, branching time"), table, width, own(&timed.branching(&conditions)));
        }
        let kept = Kept { deadlocks: true, goals: !checks.conditions.is_empty() };
        let stubborn = Stubborn::of(&model, &checks, kept).ok();
        let reduced = stubborn.as_ref().map(|stubborn| gpu::Sources { stubborn: Some(stubborn), ..timed }.search());
        let sources = [timed.search(), timed.walk(false), gpu::Sources::new(&model, &checks).rank()].into_iter().chain(reduced);
        for (at, source) in sources.enumerate() {
            // Vectors in trees have at least three words.
            let table = match (number + at) % 3 {
                1 if width < 3 => 0,
                table => table,
            };
            compile(&format!("{name}, source {at}"), table, width, own(&source));
        }
    });
}

/// A process of `transitions` transitions in `states` states; the transitions are internal, or send to another process.
fn large(transitions: usize, states: usize, communication: &str) -> Dve {
    let names = |count: usize| (0..count).map(|at| format!("s{at}")).collect::<Vec<_>>().join(", ");
    let step = |at: usize| {
        let (from, to) = (at % states, (at + 1) % states);
        format!("s{from} -> s{to} {{ guard x % 7 != {}; {communication} effect x = (x + {at}) % 100; }}", at % 7)
    };
    let steps = (0..transitions).map(step).collect::<Vec<_>>().join(",\n");
    let text = format!(
        "byte x, y; channel c; process P {{ state {}; init s0; trans {steps}; }}
         process Q {{ state s; init s; trans s -> s {{ sync c?y; }}; }} system async;",
        names(states)
    );
    read("large", text)
}

#[test]
fn large_functions_are_in_parts_and_do_the_same() {
    use super::parts::FEW;
    let many = FEW + 100;
    for (transitions, states, communication) in [(many, 1, ""), (many, many, ""), (many, 2, "sync c!x;")] {
        let dve = large(transitions, states, communication);
        let text = super::generate(&dve.model, &[], None);
        let longest = text.split("\n}\n").map(|function| function.matches("    case ").count()).max();
        assert!(longest.is_some_and(|cases| cases < FEW), "{longest:?} cases");
        let checks = Checks::default();
        let interpreted = Interpreted::new(Interpreter::new(&dve.model), &checks);
        if let Some(compiled) = or_skip(&interpreted, Compiled::unoptimised(&interpreted)) {
            compare_reachable(&interpreted, &compiled);
        }
    }
}

#[test]
fn what_is_too_large_to_be_compiled_is_refused_with_its_numbers() {
    let many = |count: usize, text: &str| vec![text; count].join(", ");
    let text = format!(
        "channel c; process P {{ state s; init s; trans {}; }} process Q {{ state s; init s; trans {}; }} system async;",
        many(1100, "s -> s { sync c!; }"),
        many(1000, "s -> s { sync c?; }")
    );
    let dve = read("pairs", text);
    let error = super::ensure_fits(&dve.model).unwrap_err().to_string();
    assert!(error.contains("1100000 pairs") && error.contains("1048576"), "{error}");
}
