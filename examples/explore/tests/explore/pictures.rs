//! Message charts as SVG, measured: every text has its place. State spaces as graphs with few nodes.
//!
//! Keeps this promise of `examples/explore/docs/searching.md`:
//!
//! - A message chart shows every process, every message with its values, and whole statements with their lines in the source; no
//!   text is cut, and none lies on another or on an arrow.
//! - A picture of a state space marks every state in which a check fails, says once what all states share, and merges states by
//!   `--project`.

use super::*;
use unicode_width::UnicodeWidthStr;

/// A text, or a line, with its box.
#[derive(Clone, Debug)]
struct Placed {
    text: String,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Placed {
    fn meets(&self, other: &Self) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }
}

/// The texts and the horizontal arrows of a drawing whose font has a fixed width, and the drawing's own box.
fn measured(svg: &str) -> (Vec<Placed>, Vec<Placed>, Placed) {
    let document = roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
    let root = document.root_element();
    let number = |node: &roxmltree::Node, name: &str| node.attribute(name).unwrap_or_default().parse::<f64>().unwrap();
    let (size, family) = (number(&root, "font-size"), root.attribute("font-family").unwrap_or_default());
    assert!(family.ends_with("monospace"), "widths of texts are not known: {family}");
    let texts = document.descendants().filter(|node| node.has_tag_name("text")).map(|node| {
        let text = node.text().unwrap_or_default().to_string();
        assert!(!text.is_empty(), "{svg}");
        // The widest common fonts of a fixed width have 0.602 of their size.
        let width = node.attribute("textLength").map_or(text.width() as f64 * 0.61 * size, |length| length.parse().unwrap());
        let left = number(&node, "x")
            - match node.attribute("text-anchor") {
                Some("middle") => width / 2.0,
                Some("end") => width,
                _ => 0.0,
            };
        let base = number(&node, "y");
        Placed { text, left, right: left + width, top: base - 0.8 * size, bottom: base + 0.25 * size }
    });
    let arrows = document.descendants().filter(|node| node.attribute("class") == Some("message")).filter_map(|node| {
        let [x1, y1, x2, y2] = ["x1", "y1", "x2", "y2"].map(|name| number(&node, name));
        (y1 == y2).then(|| Placed {
            text: "an arrow".into(),
            left: x1.min(x2),
            right: x1.max(x2),
            top: y1 - 1.0,
            bottom: y1 + 1.0,
        })
    });
    let view: Vec<f64> = root.attribute("viewBox").unwrap().split(' ').map(|part| part.parse().unwrap()).collect();
    let view = Placed { text: "the drawing".into(), left: view[0], right: view[2], top: view[1], bottom: view[3] };
    (texts.collect(), arrows.collect(), view)
}

/// The texts of a chart. Fails if one is cut or lies on another one.
#[track_caller]
fn looked_at(what: &str, svg: &str) -> String {
    let (texts, arrows, view) = measured(svg);
    for (number, text) in texts.iter().enumerate() {
        let is_inside = text.left >= view.left && text.right <= view.right && text.top >= view.top && text.bottom <= view.bottom;
        assert!(is_inside, "{what}: {text:?} is outside {view:?}");
        for other in texts[number + 1..].iter().chain(&arrows) {
            assert!(!text.meets(other), "{what}: {text:?} and {other:?} overlap");
        }
    }
    texts.into_iter().map(|text| text.text + "\n").collect()
}

/// The chart of what the checker finds.
#[track_caller]
fn chart(path: &Path, arguments: &[&str]) -> String {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("chart.svg");
    let output = explore(path, [arguments, &["--trace", file.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(1), "{}: {output:?}", path.display());
    std::fs::read_to_string(file).unwrap()
}

/// A net with long names, and a marking of many places.
fn wide_net() -> String {
    let name = |kind: char, at: usize| format!("{kind}_{at}_{}", "of_a_very_long_name_".repeat(1 + at % 7));
    let places = (0..60).map(|at| {
        format!("<place id=\"{}\"><initialMarking><text>{}</text></initialMarking></place>", name('p', at), usize::from(at < 59))
    });
    let transitions = (0..3).map(|at| {
        format!(
            "<transition id=\"{0}\"/><arc id=\"a{at}\" source=\"{1}\" target=\"{0}\"/><arc id=\"b{at}\" source=\"{0}\" target=\"{2}\"/>",
            name('t', at + 4),
            name('p', at),
            name('p', 59)
        )
    });
    format!(
        "<pnml xmlns=\"http://www.pnml.org/version-2009/grammar/pnml\"><net id=\"n\" \
         type=\"http://www.pnml.org/version-2009/grammar/ptnet\"><page id=\"g\">{}{}</page></net></pnml>",
        places.collect::<String>(),
        transitions.collect::<String>()
    )
}

/// Names and labels of every length, wide letters, messages that overtake each other, and some that are never received.
const WIDE: &str = "channel {byte, int} a_channel_with_a_long_name_that_goes_on_and_on[3], q[2]; channel {int} meet; byte n;
process Idle { state s; init s; }
process プロセス名 { byte got; state idle, a_state_whose_name_is_longer_than_a_lane_can_be_without_a_break, s; init idle; trans
  idle -> a_state_whose_name_is_longer_than_a_lane_can_be_without_a_break { guard n == 0; sync q!{1, 2}; effect n = n + 1; },
  a_state_whose_name_is_longer_than_a_lane_can_be_without_a_break -> s {
    guard n == 1; // a comment
    sync a_channel_with_a_long_name_that_goes_on_and_on!{n + 254, -300};
    effect n = n + 1; },
  s -> s { guard n == 2; sync meet!70000 + n; effect n = n + 1; },
  s -> s { guard n == 4; sync q!{9, 9}; effect n = n + 1; }; }
process B { int x, y, of_a_long_name_1, of_a_long_name_2, of_a_long_name_3, of_a_long_name_4; state s; init s; trans
  s -> s { sync meet?x; effect of_a_long_name_1 = 11111, of_a_long_name_2 = 22222, of_a_long_name_3 = 3333, of_a_long_name_4 = 1; },
  s -> s { guard n == 3; sync q?{x, y}; effect n = n + 1; }; }
process Z { state last; init last; }
system async;";

pub fn no_text_of_a_chart_is_cut_or_covered() {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let mut all: Vec<PathBuf> = std::fs::read_dir(models).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    assert!(all.len() >= 16, "{all:?}");
    for path in &all {
        // Every model has a run.
        let svg = chart(path, &["--ltl", "false"]);
        let text = looked_at(&path.display().to_string(), &svg);
        assert!(text.contains("initial state:"), "{text}");
    }
    for (name, asks) in [
        ("peterson_wrong.dve", "P_0.critical && P_1.critical"),
        ("mailbox.dve", "Server.crash"),
        ("river.dve", "goat && wolf && cabbage"),
        ("crossing.exp", "train_1 == 2"),
        ("vending.slco", "people.Ann.Done"),
    ] {
        let goal = if name == "mailbox.dve" { &["--deadlock"][..] } else { &["--goal", asks] };
        looked_at(name, &chart(&file(name), goal));
    }
    let (_folder, path) = written_as("wide.pnml", &wide_net());
    let text = looked_at("a wide net", &chart(&path, &["--deadlock"]));
    // The marking of each place is there, in as many lines as it needs.
    let joined = text.replace('\n', "");
    assert!((0..59).all(|at| joined.contains(&format!("p_{at}_of_a_very"))), "{text}");
    let label = format!("des (0, 2, 3)\n(0, \"PUT !{}\", 1)\n(1, \"{}\", 2)\n", "x".repeat(300), "two words ".repeat(40));
    let (_folder, path) = written_as("wide.aut", &label);
    let text = looked_at("wide labels", &chart(&path, &["--deadlock"]));
    assert!(text.replace('\n', "").contains(&"x".repeat(300)), "{text}");
    // Three components take part in a step whose label is wider than their lanes.
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("a.aut"), format!("des (0, 1, 2)\n(0, \"{}\", 1)\n", "L !1 ".repeat(12).trim())).unwrap();
    let path = folder.path().join("all.exp");
    std::fs::write(&path, "par L in \"a.aut\" || \"a.aut\" || \"a.aut\" end par").unwrap();
    let text = looked_at("a network", &chart(&path, &["--deadlock"]));
    assert!(["a_1", "a_2", "a_3"].iter().all(|lane| text.lines().any(|line| line == *lane)), "{text}");
}

pub fn charts_show_values_lines_and_every_process() {
    let (_folder, path) = written(WIDE);
    let svg = chart(&path, &["--goal", "n == 5"]);
    let text = looked_at("WIDE", &svg);
    let joined = text.replace('\n', " ");
    for part in [
        "Idle\n",
        "プロセス名\n",
        "Z\n",
        // A value that does not fit its type is the value that arrives.
        "meet(4466)\n",
        "sends q(1, 2)\n",
        "receives q(1, 2)\n",
        "sends q(9, 9) (not received)\n",
        "line 5: guard n == 1; sync a_channel",
        "プロセス名, line 9: guard n == 2; sync meet!70000 + n; effect n = n + 1;\n",
        "B, line 12: sync meet?x;",
        "line 13: guard n == 3; sync q?{x, y};",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    assert!(joined.contains("B.of_a_long_name_4: 0 -> 1") && !joined.contains("comment"), "{text}");
    // The rendezvous and the message that arrives.
    assert_eq!(svg.matches("marker-end").count(), 2, "{svg}");
    // The automaton of a property is no process, and SLCO shows its statements, too.
    let text = looked_at("a property", &chart(&model("peterson"), &["--ltl", "G F P_0.critical"]));
    assert!(text.contains("P_0\n") && text.contains("P_1\n") && text.contains("line "), "{text}");
    assert_eq!(
        text.lines().filter(|line| !line.contains([' ', ':', '.'])).filter(|line| line.parse::<u32>().is_err()).count(),
        2
    );
    let text = looked_at("SLCO", &chart(&file("vending.slco"), &["--goal", "people.Ann.Done"]));
    assert!(text.contains("send coin(0) to Pay") && text.contains("coin(0) on coins\n"), "{text}");
}

/// Two counters that step on their own.
const LARGE: &str = "int steps; byte fixed = 7;
process A { byte of; state low, high; init low; trans
  low -> low { guard of < 40; effect of = of + 1, steps = steps + 1; }, low -> high { guard of == 40; effect fixed = 7; }; }
process B { byte of; state low, high; init low; trans
  low -> low { guard of < 60; effect of = of + 1, steps = steps + 1; }, low -> high { guard of == 60; }; }
system async;";

/// The graph's label, its nodes, and its edges.
fn graph(file: &Path) -> (String, Vec<String>, Vec<String>) {
    let text = std::fs::read_to_string(file).unwrap();
    let label = text.lines().find(|line| line.starts_with("  label=")).unwrap_or_default().to_string();
    let is_numbered = |line: &&str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
    let ends = |line: &&str| line.split('[').next().is_some_and(|ends| ends.contains("->"));
    let (edges, nodes) = text.lines().filter(is_numbered).map(String::from).partition(|line| ends(&&**line));
    (label, nodes, edges)
}

pub fn states_are_merged_by_a_projection() {
    let (folder, path) = written(LARGE);
    let file = folder.path().join("a.dot");
    let name = file.to_str().unwrap();
    // 42 times 62 states are too many without it.
    let output = explore(&path, ["--export", name, "--json"]);
    assert!(
        output.status.code() == Some(2) && only_object(&output)["error"].as_str().unwrap().contains("--project"),
        "{output:?}"
    );
    let (code, report) = json(&path, &["--export", name, "--project", "A,B", "--deadlock"]);
    assert_eq!((code, report["counts"]["states"].as_u64()), (Some(1), Some(42 * 62)), "{report}");
    let (label, nodes, edges) = graph(&file);
    assert!(label.contains("2,604 states, 5,104 steps\\na node for each combination of A, B: 4 nodes"), "{label}");
    // A counts in 40 steps beside each of 62 states of B, and B in 60 beside each of 42.
    assert!(label.contains("not drawn: 5,000 steps within a node"), "{label}");
    assert!(nodes.len() == 4 && nodes[0].contains("A.low\\nB.low\\n2,501 states"), "{nodes:?}");
    let filled: Vec<_> = nodes.iter().filter(|node| node.contains("fillcolor")).collect();
    assert!(filled.len() == 1 && filled[0].contains("A.high\\nB.high") && filled[0].contains("peripheries=2"), "{nodes:?}");
    // One edge for all steps between two nodes; the path takes two.
    assert_eq!((edges.len(), edges.iter().filter(|edge| edge.contains("c0392b")).count()), (4, 2), "{edges:?}");
    // Variables, arrays, components and places are parts, too.
    let projected = |path: &Path, parts: &str| {
        let output = explore(path, ["--export", name, "--project", parts]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        graph(&file).1.join("\n")
    };
    let nodes = projected(&path, "A.of");
    assert!(nodes.contains("A.of = 0\\n") && nodes.contains("A.of = 40\\n") && nodes.lines().count() == 41, "{nodes}");
    let nodes = projected(&model("peterson"), "wants");
    assert!(nodes.contains("wants = {0, 0}\\n") && nodes.lines().count() == 4, "{nodes}");
    let nodes = projected(&self::file("crossing.exp"), "gate");
    assert!(nodes.contains("gate = 0\\n") && nodes.contains("gate = 1\\n"), "{nodes}");
    let (_folder, path) = written_as("wide.pnml", &wide_net());
    let place = format!("p_0_{}", "of_a_very_long_name_");
    let nodes = projected(&path, &place);
    assert!(nodes.lines().count() == 2 && nodes.contains(&format!("{place} = 1\\n4 states")), "{nodes}");
}

pub fn state_spaces_show_all_that_fails() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("a.dot");
    let name = file.to_str().unwrap();
    // The search ends at the first violating state; the picture marks all of them.
    let model = model("peterson_wrong");
    let condition = "P_0.critical + P_1.critical <= 1";
    json(&model, &["--invariant", condition, "--export", name]);
    let (label, nodes, _) = graph(&file);
    let both = |node: &&String| node.contains("P_0.critical") && node.contains("P_1.critical");
    let filled: Vec<_> = nodes.iter().filter(|node| node.contains("fillcolor")).collect();
    assert_eq!(filled, nodes.iter().filter(both).collect::<Vec<_>>());
    assert!(
        filled.len() > 1 && label.contains(&format!("a check fails or a goal is reached, {} states", filled.len())),
        "{label}"
    );
    // Asked for, deadlocks fail, too; what all states share is said once.
    let (_folder, path) = written(
        "byte x = 1; int same = 300; process P { state s, t; init s; trans s -> t { effect same = 300; }, s -> t { effect x = 2; }; }
         process Q { state only; init only; } system async;",
    );
    for (arguments, count) in [(&["--deadlock", "--keep-going"][..], 2), (&[], 0)] {
        explore(&path, [arguments, &["--export", name]].concat());
        let (label, nodes, _) = graph(&file);
        assert_eq!(nodes.iter().filter(|node| node.contains("fillcolor")).count(), count, "{nodes:?}");
        assert_eq!(nodes.iter().filter(|node| node.contains("peripheries=2")).count(), 2, "{nodes:?}");
        assert!(label.contains("in every state: Q.only, same = 300"), "{label}");
        assert!(!nodes.iter().any(|node| node.contains("same") || node.contains("only")), "{nodes:?}");
    }
}

pub fn projections_are_checked_before_the_search() {
    let (folder, path) = written(&ENDLESS.replace("process ", "byte other; process "));
    let file = folder.path().join("a.dot");
    let [dot, aut] = ["a.dot", "a.aut"].map(|name| folder.path().join(name).to_str().unwrap().to_string());
    for (arguments, part) in [
        (&["--export", &dot, "--project", "nobody"][..], "--project: there is no process, variable or place `nobody`"),
        (&["--export", &dot, "--project", "P,P"], "--project: `P` is given twice"),
        (&["--export", &aut, "--project", "P"], "--project is for pictures"),
        (&["--project", "P"], "--export"),
    ] {
        let output = explore(&path, arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && text.contains(part) && output.stdout.is_empty(), "{part}: {output:?}");
        assert!(!file.exists());
    }
}
