//! Places that take no bits in every engine, table and output.

use super::*;

/// A token goes round `a`, `b` and `c`; `like` has two tokens more than `a`, and `few` two fewer than `like`; `free` has one
/// exactly if `used` has none; `always` and `never` never change, the latter because nothing puts a token into it.
fn told() -> String {
    net(
        &[("few", 1), ("a", 1), ("b", 0), ("c", 0), ("like", 3), ("free", 1), ("used", 0), ("always", 4), ("never", 0), ("n", 5)],
        &["ab", "bc", "ca", "use", "leave", "dead", "more"],
        &[
            ("a", "ab", 1),
            ("like", "ab", 1),
            ("few", "ab", 1),
            ("ca", "few", 1),
            ("ab", "b", 1),
            ("b", "bc", 1),
            ("always", "bc", 4),
            ("bc", "always", 4),
            ("bc", "c", 1),
            ("c", "ca", 1),
            ("ca", "a", 1),
            ("ca", "like", 1),
            ("free", "use", 1),
            ("like", "use", 3),
            ("use", "like", 3),
            ("use", "used", 1),
            ("used", "leave", 1),
            ("leave", "free", 1),
            ("never", "dead", 1),
            ("dead", "n", 1),
            ("n", "more", 1),
            ("used", "more", 1),
            ("more", "used", 1),
        ],
    )
}

/// The names of all places have their meaning in figures, goals, paths, walks, properties and checkpoints.
pub fn places_without_bits_have_their_tokens(place: TableOnDevice) {
    let (folder, path) = written_as("net.pnml", &told());
    let engines = if place.is_gpu() { ["gpu", "interpreted"] } else { ["interpreted", "compiled"] };
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let run = |arguments: &[&str]| {
        let output = explore_on(place.device, &path, [&["--table", place.table, "--json"], arguments].concat());
        (output.status.code(), only_object(&output))
    };
    for engine in engines {
        let (code, report) = run(&["--engine", engine]);
        // Three places of the token, the two of `used`, six numbers of tokens in `n`; as many as ten tokens in a place.
        let figures =
            ["states", "transitions", "deadlocks", "max_tokens_in_place", "max_tokens"].map(|name| figure(&report, name));
        assert_eq!((code, figures), (Some(0), [36, 75, 0, 5, 15].map(Some)), "{engine} {report}");
        assert_eq!((&report["firings"]["dead"], &report["firings"]["use"]), (&0.into(), &6.into()), "{report}");
        for (goal, length) in [
            ("tokens(like) == 2 and tokens(free) == 0 and tokens(n) == 4", Some(3)),
            ("tokens(used, like, always, never) == 8", Some(1)),
            ("tokens(few) == 2", None),
            ("fireable(dead)", None),
            ("tokens(a) + 2 != tokens(like) or tokens(free) == tokens(used) or tokens(always) != 4", None),
            ("not fireable(use) and fireable(bc) and tokens(used) == 0", Some(1)),
        ] {
            let (code, report) = run(&["--engine", engine, "--goal", goal]);
            assert_eq!(report["path"]["length"].as_u64(), length, "{engine} {goal} {code:?} {report}");
        }
        let trace = file("trace.json");
        let (_, report) = run(&["--engine", engine, "--goal", "tokens(like) == 2 and tokens(used) == 1", "--trace", &trace]);
        let path: Value = serde_json::from_slice(&std::fs::read(&trace).unwrap()).unwrap();
        let last = &path["final"]["variables"];
        let names = ["few", "a", "b", "c", "like", "free", "used", "always", "never", "n"];
        let tokens = names.map(|name| last[name].as_u64().unwrap_or_else(|| panic!("{name}: {report}")));
        assert_eq!(tokens, [0, 0, 1, 0, 2, 0, 1, 4, 0, 5], "{path}");
    }
    // An indexed table answers nothing about runs in this way.
    if place.table != "indexed" {
        let (code, report) = run(&["--ltl", "G (fireable(ab) -> tokens(like) == 3) and G F tokens(free) == 1"]);
        assert_eq!((code, report["verdict"].as_str()), (Some(1), Some("violated")), "{report}");
    }
    if place.is_gpu() {
        return;
    }
    let saved = file("saved");
    let (code, _) = run(&["--max-states", "10", "--checkpoint", &saved]);
    assert_eq!(code, Some(3));
    let (code, report) = run(&["--resume", &saved]);
    assert_eq!((code, report["counts"]["states"].as_u64()), (Some(0), Some(36)), "{report}");
    let all = [
        (all("globally", &at_most(&["free", "used"], 1)), "TRUE"),
        (exists("finally", &at_least(&["like", "free"], 4)), "TRUE"),
        (exists("finally", &fireable("dead")), "FALSE"),
        (around("place-bound", &["<place>like</place><place>a</place><place>always</place>"]), "8"),
        (around("place-bound", &["<place>free</place><place>used</place><place>never</place>"]), "1"),
        (all("globally", &around("finally", &[&at_least(&["like"], 3)])), "TRUE"),
        (all("globally", &around("finally", &[&at_least(&["free"], 1)])), "FALSE"),
        (all("globally", &around("disjunction", &[&at_most(&["a"], 0), &at_least(&["like"], 3)])), "TRUE"),
    ];
    let all: Vec<(&str, &str)> = all.iter().map(|(formula, verdict)| (formula.as_str(), *verdict)).collect();
    have_verdicts(place, &told(), &all);
}
