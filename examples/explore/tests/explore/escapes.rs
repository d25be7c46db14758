//! Names of files in all outputs: characters that a terminal would obey, that would forge lines, or that XML does not permit.
//!
//! Keeps this promise of `examples/explore/docs/searching.md`:
//!
//! - Names cannot control a terminal or forge lines: every output escapes them (also `examples/support/src/escaping.rs`,
//!   `examples/explore/model/src/diagnostic.rs`).

use super::*;

/// The text has no character that a terminal would obey, but line ends and, in tables, tabs.
#[track_caller]
fn is_clean(what: &str, text: &str) {
    let is_harmful = |c: char| c.is_control() && c != '\n' && c != '\t' || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2028}');
    assert!(!text.contains(is_harmful), "{what}: {text:?}");
    assert!(!text.contains("\nFORGED"), "{what}: {text}");
}

/// Runs the checker, and looks at what it prints.
#[track_caller]
fn printed(model: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = explore(model, arguments);
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    is_clean(&format!("{arguments:?}"), &text);
    (output.status.code(), text)
}

/// A label of each kind of character that a line of an AUT file may have.
const LABELS: &str = "des (0, 2, 3)\n(0, \"a \u{1b}[31m<&\\\u{7}\u{7f}\u{0}\u{9b}\u{202e}\", 1)\n(1, \"b\", 2)\n";

/// A net with such names, whose second place has a line end in its name.
const NET: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>
<pnml xmlns=\"http://www.pnml.org/version-2009/grammar/pnml\">
<net id=\"n\" type=\"http://www.pnml.org/version-2009/grammar/ptnet\"><page id=\"g\">
<place id=\"p\u{9b}31m\"><initialMarking><text>1</text></initialMarking></place>
<place id=\"q&#10;FORGED&lt;&amp;\u{202e}\u{7f}\"/>
<transition id=\"t&#10;FORGED \u{9b}\u{85}\u{2028}\"/>
<transition id=\"never&#13;&#10;FORGED\"/>
<arc id=\"a\" source=\"p\u{9b}31m\" target=\"t&#10;FORGED \u{9b}\u{85}\u{2028}\"/>
<arc id=\"b\" source=\"t&#10;FORGED \u{9b}\u{85}\u{2028}\" target=\"q&#10;FORGED&lt;&amp;\u{202e}\u{7f}\"/>
<arc id=\"c\" source=\"q&#10;FORGED&lt;&amp;\u{202e}\u{7f}\" target=\"never&#13;&#10;FORGED\"/>
<arc id=\"d\" source=\"p\u{9b}31m\" target=\"never&#13;&#10;FORGED\"/>
</page></net></pnml>";

pub fn names_cannot_control_a_terminal() {
    for (name, text, asks, shown) in [
        ("m.aut", LABELS, "m == 1", "a \\u{1b}[31m"),
        ("m.pnml", NET, "tokens(\"q\\u{a}FORGED<&\\u{202e}\\u{7f}\") == 1", "t\\u{a}FORGED \\u{9b}\\u{85}\\u{2028}"),
    ] {
        let (folder, path) = written_as(name, text);
        let file = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
        let clean = |name: &str| {
            let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
            is_clean(name, &text);
            text
        };
        for pictures in ["x.svg", "x.txt"] {
            let (code, report) = printed(&path, &["--goal", asks, "--trace", &file(pictures)]);
            assert!(code == Some(1) && report.contains(shown), "{report}");
            clean(pictures);
        }
        let svg = clean("x.svg");
        let document = roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{error}: {svg}"));
        let texts: Vec<_> = document.descendants().filter_map(|node| node.text()).collect();
        assert!(texts.iter().any(|text| text.contains(shown)), "{svg}");
        assert!(clean("x.txt").contains(shown));
        let (code, _) = printed(&path, &["--goal", asks, "--report", &file("x.html"), "--unreached"]);
        let page = clean("x.html");
        let (of_type, page) = page.split_once('\n').unwrap();
        let document = roxmltree::Document::parse(page).unwrap_or_else(|error| panic!("{error}: {page}"));
        assert!(
            code == Some(1)
                && of_type == "<!DOCTYPE html>"
                && document.descendants().any(|of| of.text().is_some_and(|text| text.contains(shown))),
            "{page}"
        );
        let (code, _) = printed(&path, &["--goal", asks, "--export", &file("x.dot"), "--unreached"]);
        assert!(code == Some(1) && clean("x.dot").contains(&shown.replace('\\', "\\\\")));
        for output in [["--export", "x.aut"], ["--dependencies", "x.tsv"], ["--emit", "x.cu"]] {
            let (code, text) = printed(&path, &[output[0], &file(output[1])]);
            let has_none = text.contains("this model has no list") || (output[0] == "--emit" && !cfg!(feature = "cuda"));
            assert!(code == Some(0) || has_none, "{text}");
            if code == Some(0) {
                clean(output[1]);
            }
        }
        printed(&path, &["--simulate", "3", "--goal", asks]);
        printed(&path, &["--reduce", "deadlocks", "--deadlock", "--unreached"]);
        let (_, report) = printed(&path, &["--unreached"]);
        assert!(report.contains("unreached"), "{report}");
        for automaton in ["b.hoa", "b.dot"] {
            printed(&path, &["--ltl", &format!("G !({asks})"), "--emit-buchi", &file(automaton)]);
            clean(automaton);
        }
        // The automaton is read again, and means the same.
        let (code, text) = printed(&path, &["--buchi", &file("b.hoa")]);
        assert!(code == Some(1) && text.contains("VIOLATED"), "{text}");
        let (code, text) = printed(&path, &["--ltl", &format!("G !({asks})")]);
        assert!(code == Some(1) && text.contains(shown), "{text}");
        // Errors that quote the file, and a condition.
        for condition in ["x\u{1b}[31m\u{9b}", "tokens(z)", "enabled(z)", "fireable(z)"] {
            let (code, _) = printed(&path, &["--invariant", condition]);
            assert_eq!(code, Some(2), "{condition}");
        }
    }
    // A label is named as it is shown.
    let (_folder, path) = written_as("m.aut", LABELS);
    let (code, _) = printed(&path, &["--goal", "enabled(\"a \\u{1b}[31m<&\\\\u{7}\\u{7f}\\u{0}\\u{9b}\\u{202e}\")"]);
    assert_eq!(code, Some(1));
    let mut child = spawned(&mut command_of(path.to_str().unwrap(), &["--step"]));
    child.stdin.take().unwrap().write_all(b"1\nh\n\x1b[31m\nu \x07\ne \x1b\n").unwrap();
    let output = child.wait_with_output().unwrap();
    is_clean("--step", &String::from_utf8_lossy(&output.stdout));
}

/// Texts with errors are quoted with their lines, and files by their names.
pub fn texts_and_names_of_files_are_quoted_without_control() {
    for text in [
        "byte x; \u{1b}[31m process",
        "byte x;\nprocess P { state s; init t; } // \u{1b}[31m\u{9b}\u{202e}\u{7}\nsystem async;",
        "byte \u{7f}",
    ] {
        let (_folder, path) = written(text);
        assert_eq!(printed(&path, &[]).0, Some(2));
    }
    for (name, text) in [("m.aut", "des (0, 1, 2)\n(0, \"\u{1b}, 1)\n"), ("m.aut", "\u{1b}\n"), ("m.pnml", "<a\u{9b}/>")] {
        let (_folder, path) = written_as(name, text);
        assert_eq!(printed(&path, &[]).0, Some(2));
    }
    if cfg!(unix) {
        let (folder, path) = written_as("a\u{1b}[31m\u{7}\u{202e}.dve", &chain(3));
        let dot = folder.path().join("x.dot");
        let (code, text) = printed(&path, &["--goal", "x == 2", "--export", dot.to_str().unwrap()]);
        assert!(code == Some(1) && text.contains("a\\u{1b}[31m\\u{7}\\u{202e}.dve"), "{text}");
        is_clean("x.dot", &std::fs::read_to_string(dot).unwrap());
        assert_eq!(printed(&path, &["--simulate", "2"]).0, Some(0));
        assert_eq!(printed(&folder.path().join("missing\u{1b}\n.dve"), &[]).0, Some(2));
        let output = explore(&path, ["--json"]);
        assert!(only_object(&output)["model"].as_str().unwrap().ends_with("a\u{1b}[31m\u{7}\u{202e}.dve"), "{output:?}");
    }
}
