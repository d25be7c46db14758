//! Message charts as SVG, measured: every text has its place.
//!
//! Keeps this promise of `examples/explore/docs/searching.md`:
//!
//! - A message chart shows every process, every message with its values, and whole statements with their lines in the source; no
//!   text is cut, and none lies on another or on an arrow.

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
        "meet!4466\n",
        "q!{1, 2}\n",
        "q?{1, 2}\n",
        "q!{9, 9} (not received)\n",
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
    assert!(text.contains("send coin(0) to Pay") && text.contains("coins!0\n"), "{text}");
}
