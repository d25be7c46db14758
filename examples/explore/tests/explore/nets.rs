//! Properties of Petri nets, in the XML format of the Model Checking Contest.
//!
//! Keeps these promises of `examples/explore/docs/nets.md`:
//!
//! - Nets are explored in every table, interpreted and compiled, by ranks and from checkpoints; options that are not for nets are
//!   refused.
//! - Properties of nets in the contest's format have their verdicts. A run that ends in a deadlock stays there; a search that a
//!   limit ended gives no verdict; a property that cannot be set up is an error; warnings are printed once; paths and runs are
//!   written.

mod counts;
mod runs;
mod told;

pub use counts::{
    branching_formulas_of_contest, formulas_of_contest, nets_are_simulated, nets_at_borders_have_their_counts,
    nets_go_on_from_checkpoints, nets_have_their_counts, of_contest, with_walks,
};

pub use runs::formulas_are_answered_over_the_markings_of_one_exploration;
pub use told::places_without_bits_have_their_tokens;

use super::*;
use std::collections::BTreeMap;

/// A PNML text of a net: places with their tokens, transitions, and arcs with their weights.
pub fn net(places: &[(&str, u32)], transitions: &[&str], arcs: &[(&str, &str, u32)]) -> String {
    let place = |(id, tokens): &(&str, u32)| {
        format!("<place id=\"{id}\"><initialMarking><text>{tokens}</text></initialMarking></place>\n")
    };
    let transition = |id: &&str| format!("<transition id=\"{id}\"/>\n");
    let arc = |(from, to, weight): &(&str, &str, u32)| {
        format!(
            "<arc id=\"{from}-{to}\" source=\"{from}\" target=\"{to}\"><inscription><text>{weight}</text></inscription></arc>\n"
        )
    };
    let parts = [
        places.iter().map(place).collect::<String>(),
        transitions.iter().map(transition).collect(),
        arcs.iter().map(arc).collect(),
    ];
    format!(
        "<?xml version=\"1.0\"?>\n<pnml xmlns=\"http://www.pnml.org/version-2009/grammar/pnml\">\n<net id=\"n\" \
         type=\"http://www.pnml.org/version-2009/grammar/ptnet\"><page id=\"page\">\n{}</page></net></pnml>\n",
        parts.concat()
    )
}

/// A net that asks and goes back, until it ends in a deadlock with two tokens in `done`. The tokens of `rest` never change.
pub fn asking() -> String {
    net(
        &[("idle", 1), ("asked", 0), ("done", 0), ("rest", 1)],
        &["ask", "back", "end"],
        &[
            ("idle", "ask", 1),
            ("ask", "asked", 1),
            ("rest", "ask", 1),
            ("ask", "rest", 1),
            ("asked", "back", 1),
            ("back", "idle", 1),
            ("asked", "end", 1),
            ("end", "done", 2),
        ],
    )
}

/// An element around others.
fn around(name: &str, inner: &[&str]) -> String {
    format!("<{name}>{}</{name}>", inner.concat())
}

fn tokens(places: &[&str]) -> String {
    let places: Vec<String> = places.iter().map(|place| around("place", &[place])).collect();
    format!("<tokens-count>{}</tokens-count>", places.concat())
}

fn number(number: u32) -> String {
    around("integer-constant", &[&number.to_string()])
}

fn at_least(places: &[&str], least: u32) -> String {
    around("integer-le", &[&number(least), &tokens(places)])
}

fn at_most(places: &[&str], most: u32) -> String {
    around("integer-le", &[&tokens(places), &number(most)])
}

fn fireable(transition: &str) -> String {
    around("is-fireable", &[&around("transition", &[transition])])
}

fn all(operator: &str, inner: &str) -> String {
    around("all-paths", &[&around(operator, &[inner])])
}

fn exists(operator: &str, inner: &str) -> String {
    around("exists-path", &[&around(operator, &[inner])])
}

/// A file of properties with these formulas, named `P-00` and so on.
fn property_set(formulas: &[&str]) -> String {
    let one = |(at, formula): (usize, &&str)| {
        format!("<property><id>P-{at:02}</id><description>no. {at}</description><formula>{formula}</formula></property>\n")
    };
    let all: String = formulas.iter().enumerate().map(one).collect();
    format!("<?xml version=\"1.0\"?>\n<property-set xmlns=\"http://mcc.lip6.fr/\">\n{all}</property-set>\n")
}

/// The verdicts that are printed, with the exit code and what is printed beside them.
fn verdicts(place: TableOnDevice, net: &str, properties: &str, more: &[&str]) -> (Option<i32>, Vec<String>, String) {
    let (folder, path) = written_as("net.pnml", net);
    let file = folder.path().join("properties.xml");
    let is_name = !properties.starts_with('<');
    if !is_name {
        std::fs::write(&file, properties).unwrap();
    }
    let file = if is_name { properties } else { file.to_str().unwrap() };
    let arguments = [&["--table", place.table, "--properties", file], more].concat();
    let output = explore_on(place.device, &path, arguments);
    let lines = String::from_utf8(output.stdout).unwrap();
    let verdict = |(at, line): (usize, &str)| {
        let name = if is_name { properties.to_string() } else { format!("P-{at:02}") };
        let line = line.strip_prefix(&format!("FORMULA {name} ")).unwrap_or_else(|| panic!("{lines}"));
        line.strip_suffix(" TECHNIQUES EXPLICIT").unwrap_or_else(|| panic!("{lines}")).to_string()
    };
    (output.status.code(), lines.lines().enumerate().map(verdict).collect(), String::from_utf8(output.stderr).unwrap())
}

#[track_caller]
fn have_verdicts(place: TableOnDevice, net: &str, expected: &[(&str, &str)]) {
    let formulas: Vec<&str> = expected.iter().map(|(formula, _)| *formula).collect();
    let wanted: Vec<&str> = expected.iter().map(|(_, verdict)| *verdict).collect();
    let (code, found, text) = verdicts(place, net, &property_set(&formulas), &[]);
    assert_eq!((code, text.as_str()), (Some(0), ""), "{found:?}");
    assert_eq!(found, wanted);
}

pub fn properties_of_nets_have_their_verdicts(place: TableOnDevice) {
    let done = at_least(&["done"], 2);
    have_verdicts(
        place,
        &asking(),
        &[
            (&exists("finally", &done), "TRUE"),
            (&exists("finally", &at_least(&["done"], 3)), "FALSE"),
            (&all("globally", &at_most(&["idle", "asked"], 1)), "TRUE"),
            (&all("globally", &at_most(&["done"], 1)), "FALSE"),
            (&around("negation", &[&all("globally", &at_most(&["done"], 1))]), "TRUE"),
            (&exists("finally", &around("conjunction", &[&fireable("back"), &at_least(&["rest"], 1)])), "TRUE"),
            (&all("globally", &around("disjunction", &[&fireable("ask"), &fireable("end")])), "FALSE"),
            (&exists("finally", &around("negation", &[&around("disjunction", &[&fireable("ask"), &fireable("back")])])), "TRUE"),
            (&at_least(&["idle"], 1), "TRUE"),
            (&around("place-bound", &["<place>done</place>"]), "2"),
            (&around("place-bound", &["<place>idle</place><place>done</place><place>rest</place>"]), "3"),
        ],
    );
    let asks_for_ever = net(
        &[("idle", 1), ("asked", 0)],
        &["ask", "back"],
        &[("idle", "ask", 1), ("ask", "asked", 1), ("asked", "back", 1), ("back", "idle", 1)],
    );
    for (name, of_asking, of_the_other) in [
        ("ReachabilityDeadlock", "TRUE", "FALSE"),
        ("OneSafe", "FALSE", "TRUE"),
        ("QuasiLiveness", "TRUE", "TRUE"),
        ("StableMarking", "TRUE", "FALSE"),
        ("Liveness", "FALSE", "TRUE"),
    ] {
        for (net, expected) in [(asking(), of_asking), (asks_for_ever.clone(), of_the_other)] {
            let (code, found, text) = verdicts(place, &net, name, &[]);
            assert_eq!((code, found, text.as_str()), (Some(0), vec![expected.into()], ""), "{name}");
        }
    }
}

/// A run that ends in a deadlock repeats its last marking for ever.
pub fn formulas_of_nets_have_their_verdicts(place: TableOnDevice) {
    let done = at_least(&["done"], 2);
    let is_not_done = around("negation", &[&done]);
    let stays = around("finally", &[&around("globally", &[&done])]);
    let asks = around("globally", &[&around("finally", &[&fireable("ask")])]);
    let until = |before: &str, reach: &str| around("until", &[&around("before", &[before]), &around("reach", &[reach])]);
    have_verdicts(
        place,
        &asking(),
        &[
            (&all("finally", &done), "FALSE"),
            (&exists("globally", &is_not_done), "TRUE"),
            (&around("all-paths", &[&around("disjunction", &[&stays, &asks])]), "TRUE"),
            (&around("exists-path", &[&stays]), "TRUE"),
            (&all("globally", &around("finally", &[&is_not_done])), "FALSE"),
            (&all("globally", &around("disjunction", &[&is_not_done, &around("next", &[&done])])), "TRUE"),
            (&all("next", &at_least(&["asked"], 1)), "TRUE"),
            (&around("all-paths", &[&until(&at_most(&["done"], 0), &done)]), "FALSE"),
            (&around("exists-path", &[&until(&at_most(&["done"], 0), &done)]), "TRUE"),
        ],
    );
}

/// A net whose tokens move from one place to another, one after the other.
pub fn chain_of_tokens(tokens: u32) -> String {
    net(&[("from", tokens), ("to", 0)], &["move"], &[("from", "move", 1), ("move", "to", 1)])
}

/// Formulas of branching time, where a path ends in a deadlock: the chain of tokens does, when all have arrived.
pub fn branching_formulas_of_nets_have_their_verdicts() {
    let place = TableOnDevice { device: "cpu:2", table: "tree" };
    let moving = chain_of_tokens(20);
    let dead = all("next", "<false/>");
    let formulas = [
        (all("globally", &exists("finally", &at_least(&["to"], 20))), "TRUE"),
        (all("finally", &all("globally", &at_least(&["to"], 20))), "TRUE"),
        (all("finally", &dead), "TRUE"),
        (exists("globally", &exists("next", "<true/>")), "FALSE"),
        (around("negation", &[&all("globally", &exists("next", "<true/>"))]), "TRUE"),
        (around("conjunction", &[&exists("finally", &at_least(&["to"], 3)), &all("finally", &at_least(&["to"], 21))]), "FALSE"),
        (around("disjunction", &[&exists("next", &at_least(&["to"], 2)), &dead]), "FALSE"),
    ];
    let expected: Vec<(&str, &str)> = formulas.iter().map(|(formula, verdict)| (formula.as_str(), *verdict)).collect();
    have_verdicts(place, &moving, &expected);
    // The id of a property names the examination, and so the meaning of a formula without nested quantifiers.
    let stopped = net(&[("p", 0)], &["t"], &[("p", "t", 1)]);
    let formulas = [all("next", &fireable("t")), exists("next", "<true/>"), all("next", "<false/>")];
    let properties = property_set(&formulas.each_ref().map(String::as_str)).replace("<id>P-", "<id>CTLFireability-");
    let (folder, path) = written_as("net.pnml", &stopped);
    let file = folder.path().join("properties.xml");
    let trace = folder.path().join("trace.json");
    std::fs::write(&file, properties).unwrap();
    let arguments = ["--properties", file.to_str().unwrap(), "--trace", trace.to_str().unwrap()];
    let text = String::from_utf8(explore(&path, arguments).stdout).unwrap();
    let verdicts: Vec<&str> = text.lines().map(|line| line.split(' ').nth(2).unwrap()).collect();
    assert_eq!(verdicts, ["TRUE", "FALSE", "TRUE"], "{text}");
    // A path for each formula that one path shows.
    let (folder, path) = written_as("net.pnml", &moving);
    let (file, trace) = (folder.path().join("properties.xml"), folder.path().join("trace.json"));
    let formula = exists("finally", &all("globally", &at_least(&["to"], 20)));
    std::fs::write(&file, property_set(&[&formula])).unwrap();
    explore(&path, ["--properties", file.to_str().unwrap(), "--trace", trace.to_str().unwrap()]);
    let paths: Value = serde_json::from_slice(&std::fs::read(trace).unwrap()).unwrap();
    assert!(paths["P-00"]["length"].as_u64() >= Some(20), "{paths}");
    assert_eq!(paths["P-00"]["final"]["variables"]["to"], 20, "{paths}");
}

pub fn what_a_limit_ended_has_no_verdict() {
    let place = TableOnDevice { device: "cpu:2", table: "tree" };
    let moving = chain_of_tokens(200);
    let bound = around("place-bound", &["<place>to</place>"]);
    let all_formulas = [
        exists("finally", &at_least(&["to"], 1)),
        exists("finally", &at_least(&["to"], 150)),
        all("globally", &at_most(&["to"], 200)),
        bound.clone(),
        all("finally", &at_least(&["to"], 200)),
    ];
    let formulas = all_formulas.each_ref().map(String::as_str);
    let (code, found, text) = verdicts(place, &moving, &property_set(&formulas), &[]);
    assert_eq!((code, text.as_str()), (Some(0), ""));
    assert_eq!(found, ["TRUE", "TRUE", "TRUE", "200", "TRUE"]);
    let (code, found, text) = verdicts(place, &moving, &property_set(&formulas), &["--max-states", "20"]);
    assert_eq!(found, ["TRUE", "CANNOT_COMPUTE", "CANNOT_COMPUTE", "CANNOT_COMPUTE", "CANNOT_COMPUTE"]);
    assert!(code == Some(3) && text.contains("P-01: stopped at --max-states"), "{code:?} {text}");
    for name in ["ReachabilityDeadlock", "StableMarking", "Liveness"] {
        let (code, found, _) = verdicts(place, &moving, name, &["--max-states", "20"]);
        let expected = if name == "StableMarking" { "FALSE" } else { "CANNOT_COMPUTE" };
        assert_eq!((code, found), (Some(if expected == "FALSE" { 0 } else { 3 }), vec![expected.into()]), "{name}");
    }
    // A formula of branching time needs all markings.
    let ctl = all("globally", &exists("finally", &at_least(&["to"], 150)));
    let (code, found, text) = verdicts(place, &moving, &property_set(&[&ctl, &bound]), &[]);
    assert_eq!((code, found, text.as_str()), (Some(0), vec!["TRUE".into(), "200".into()], ""));
    let (code, found, text) = verdicts(place, &moving, &property_set(&[&ctl]), &["--max-states", "20"]);
    assert_eq!((code, found), (Some(3), vec!["CANNOT_COMPUTE".to_string()]));
    assert!(text.contains("P-00: stopped at --max-states"), "{text}");
    // A verdict that was decided before the net turned out unbounded is kept.
    let source = net(&[("p", 0)], &["make"], &[("make", "p", 1)]);
    let formulas = [exists("finally", &at_least(&["p"], 300)), all("globally", &at_most(&["p"], 10))];
    let formulas = formulas.each_ref().map(String::as_str);
    // A declined formula keeps its own reason: no operator is directly in its first quantifier.
    let star = all("negation", &all("globally", &at_least(&["p"], 150)));
    let (_, _, text) = verdicts(place, &source, &property_set(&[&formulas[..], &[star.as_str()]].concat()), &[]);
    assert!(text.contains("P-02: the property cannot be read") && text.contains("negation"), "{text}");
    let (code, found, text) = verdicts(place, &source, &property_set(&formulas), &[]);
    assert_eq!((code, found), (Some(3), vec!["CANNOT_COMPUTE".into(), "FALSE".into()]));
    assert!(text.contains("the net is unbounded") && text.contains("--token-bits 16 searches on"), "{text}");
    let (code, found, _) = verdicts(place, &source, &property_set(&formulas), &["--token-bits", "9"]);
    assert_eq!((code, found), (Some(0), vec!["TRUE".into(), "FALSE".into()]));
}

pub fn properties_have_paths_and_places() {
    let place = TableOnDevice { device: "cpu:2", table: "tree" };
    let (folder, path) = written_as("net.pnml", &asking());
    let (file, trace) = (folder.path().join("properties.xml"), folder.path().join("trace.json"));
    let done = at_least(&["done"], 2);
    std::fs::write(&file, property_set(&[&exists("finally", &done), &all("finally", &done)])).unwrap();
    let (file, trace) = (file.to_str().unwrap(), trace.to_str().unwrap());
    let output = explore_on(place.device, &path, ["--properties", file, "--trace", trace, "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = serde_json::json!([{ "name": "P-00", "verdict": "TRUE" }, { "name": "P-01", "verdict": "FALSE" }]);
    assert_eq!((&report["properties"], output.status.code()), (&expected, Some(0)), "{output:?}");
    let paths: Value = serde_json::from_slice(&std::fs::read(trace).unwrap()).unwrap();
    assert_eq!(paths["P-00"]["steps"].as_array().map(Vec::len), Some(2), "{paths}");
    assert!(paths["P-01"].is_object(), "{paths}");
    let wrong = property_set(&[&exists("finally", &at_least(&["dome"], 2))]);
    let (code, found, text) = verdicts(place, &asking(), &wrong, &[]);
    assert!(code == Some(3) && found == ["CANNOT_COMPUTE"] && text.contains("there is no place `dome`"), "{code:?} {text}");
    let output = explore(&model("peterson"), ["--properties", file]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

/// An option that a search cannot have, or a device that is not there, is an error; answers that were found before are printed.
pub fn what_cannot_be_set_up_is_an_error() {
    let runs = [all("finally", &at_least(&["done"], 2)), exists("globally", &at_most(&["done"], 1))];
    let marking = exists("finally", &at_least(&["done"], 2));
    let place = TableOnDevice { device: "cpu:2", table: "indexed" };
    // A run to show needs an exploration of the product.
    let (folder, _) = written_as("net.pnml", &asking());
    let trace = folder.path().join("trace.json").to_str().unwrap().to_string();
    let (code, found, text) = verdicts(place, &asking(), &property_set(&[&runs[0], &runs[1]]), &[]);
    assert_eq!((code, found), (Some(0), vec!["FALSE".into(), "TRUE".into()]), "{text}");
    let (code, found, text) = verdicts(place, &asking(), &property_set(&[&runs[0], &marking]), &["--trace", &trace]);
    assert_eq!((code, found), (Some(2), vec!["FALSE".into(), "TRUE".into()]), "{text}");
    assert!(text.starts_with("error: --table indexed"), "{text}");
    let nowhere = TableOnDevice { device: "cuda:63", table: "tree" };
    let (code, found, text) = verdicts(nowhere, &asking(), &property_set(&[&marking]), &[]);
    assert!(code == Some(2) && found.is_empty() && text.starts_with("error: "), "{code:?} {found:?} {text}");
    let (folder, path) = written_as("net.pnml", &asking());
    let file = folder.path().join("properties.xml");
    std::fs::write(&file, property_set(&[&runs[0], &marking])).unwrap();
    let arguments = ["--json", "--table", "indexed", "--trace", &trace, "--properties", file.to_str().unwrap()];
    let output = explore(&path, arguments);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["error"].as_str().is_some_and(|error| error.starts_with("--table indexed")), "{report}");
    assert_eq!((&report["exit_code"], output.status.code()), (&2.into(), Some(2)), "{report}");
    assert_eq!(report["properties"][1]["verdict"], "TRUE", "{report}");
}

pub fn warnings_are_printed_once() {
    let place = TableOnDevice { device: "cpu:2", table: "tree" };
    let unbounded = net(&[("made", 0)], &["make"], &[("make", "made", 1)]);
    let formulas = [all("finally", &at_least(&["made"], 2)), all("globally", &at_most(&["made"], 2)), at_most(&["made"], 0)];
    let formulas = formulas.each_ref().map(String::as_str);
    let (code, found, text) = verdicts(place, &unbounded, &property_set(&formulas), &["--max-states", "2000"]);
    assert_eq!((code, found), (Some(0), ["TRUE", "FALSE", "TRUE"].map(String::from).to_vec()), "{text}");
    assert_eq!(text.matches("`make` takes no tokens and puts some").count(), 1, "{text}");
}

/// Twelve tokens move over two transitions: a marking is two numbers of moves, the second at most the first.
pub fn nets_have_their_counts_in_every_way() {
    let arcs = [("from", "out", 1), ("out", "between", 1), ("between", "in", 1), ("in", "to", 1)];
    let (folder, path) = written_as("net.pnml", &net(&[("from", 12), ("between", 0), ("to", 0)], &["out", "in"], &arcs));
    let expected = [91, 156, 1, 25, 7];
    let mut ways: Vec<Vec<&str>> = vec![vec!["--local-ranks", "2"], vec!["--table", "indexed", "--parents"]];
    for table in ["bucket", "tree", "tree-compact", "indexed"] {
        ways.extend(["interpreted", "compiled"].map(|engine| vec!["--table", table, "--engine", engine]));
    }
    for way in &ways {
        let (code, report) = json(&path, way);
        assert_eq!((code, counts(&report)), (Some(0), expected), "{way:?}");
    }
    let file = folder.path().join("net.checkpoint");
    let file = file.to_str().unwrap();
    let (code, _) = json(&path, &["--checkpoint", file, "--max-states", "20"]);
    assert_eq!(code, Some(3));
    let (code, report) = json(&path, &["--checkpoint", file, "--resume", file]);
    assert_eq!((code, counts(&report)), (Some(0), expected), "resumed");
    let refused: [&[&str]; 2] = [&["--ltl", "F fireable(in)", "--fair", "weak"], &["--step"]];
    for options in refused {
        let output = explore(&path, options);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && text.contains("Petri net"), "{options:?} {text}");
    }
}
