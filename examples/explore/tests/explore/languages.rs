//! Models in other languages than DVE, and state spaces as files.

use super::lists::{have_their_counts, with_extension};
use super::*;

/// States, transitions, deadlocks, levels and the widest level of models in other languages than DVE.
const GOLDEN_OF_OTHERS: [(&str, [u64; 5]); 3] =
    [("vending.slco", [109, 146, 4, 24, 10]), ("crossing.exp", [18, 45, 0, 6, 5]), ("buffer.aut", [7, 12, 0, 3, 4])];

pub fn models_in_other_languages_have_their_counts(place: TableOnDevice) {
    for (name, expected) in GOLDEN_OF_OTHERS {
        let (code, report) = place.json(&file(name), &[]);
        assert_eq!((code, counts(&report), &report["complete"]), (Some(0), expected, &Value::Bool(true)), "{name}");
    }
}

/// A word for each part of a state changes neither counts nor paths, in any table that holds the states.
pub fn unpacked_states_have_the_same_counts(place: TableOnDevice) {
    for (name, words) in [("vending.slco", 12), ("crossing.exp", 4), ("peterson.dve", 5)] {
        let (packed, unpacked) = (place.json(&file(name), &[]).1, place.json(&file(name), &["--unpacked"]).1);
        assert_eq!((counts(&unpacked), &unpacked["levels"]), (counts(&packed), &packed["levels"]), "{name}");
        assert_eq!(unpacked["table"]["words"], words, "{name}");
    }
    let (code, report) =
        place.json(&file("peterson_wrong.dve"), &["--unpacked", "--invariant", "P_0.critical + P_1.critical <= 1"]);
    assert_eq!((code, &report["path"]["length"]), (Some(1), &6.into()), "{report}");
    let (code, report) = place.json(&file("philosophers.dve"), &["--unpacked", "--ltl", "G F Phil_0.ate"]);
    assert_eq!((code, &report["table"]["words"]), (Some(1), &11.into()), "with the automaton's state: {report}");
}

#[track_caller]
fn has_its_counts(place: TableOnDevice, network: &networks::Network, arguments: &[&str]) {
    let (code, report) = place.json(&network.path(), arguments);
    let [states, transitions, deadlocks, ..] = counts(&report);
    let found = (states, transitions, deadlocks);
    assert_eq!((code, found), (Some(0), (network.states, network.transitions, network.deadlocks)), "{report}");
}

pub fn networks_have_their_closed_counts(place: TableOnDevice) {
    let engines: &[&[&str]] = if place.is_gpu() { &[&[]] } else { &[&["--engine", "interpreted"], &["--engine", "compiled"]] };
    let all = [
        networks::cyclers(5, 4),
        networks::cyclers(3, 1),
        networks::broadcast(5),
        networks::ring(8),
        networks::philosophers(7),
        networks::lossy_protocol(2, 2),
    ];
    for network in &all {
        engines.iter().for_each(|engine| has_its_counts(place, network, engine));
    }
}

pub fn large_networks(place: TableOnDevice) {
    let slots = ["--capacity", "2^28"];
    for network in [networks::broadcast(10), networks::ring(20), networks::philosophers(16), networks::lossy_protocol(4, 3)] {
        has_its_counts(place, &network, &slots);
    }
    if warpset_testing::sizes::full() {
        has_its_counts(place, &networks::cyclers(9, 10), &["--capacity", "2^31"]);
    }
}

/// Conditions use the syntax of each language; fairness applies to a network's components as to processes.
pub fn runs_are_asked_about_in_every_language(place: TableOnDevice) {
    for (name, arguments, verdict) in [
        // Without fairness, the other train may go round forever.
        ("crossing.exp", &["--ltl", "G (train_1 == 1 -> F train_1 == 0)"][..], "violated"),
        ("crossing.exp", &["--ltl", "G (train_1 == 1 -> F train_1 == 0)", "--fair", "weak"], "holds"),
        ("crossing.exp", &["--ltl", "G (gate == 0 imply train_1 != 2)"], "violated"),
        ("crossing.exp", &["--ef", "gate == 0"], "holds"),
        ("crossing.exp", &["--livelock", "enabled(ENTER)"], "holds"),
        ("crossing.exp", &["--livelock", "gate == 2"], "violated"),
        ("buffer.aut", &["--ltl", "G F enabled(IN)"], "holds"),
        ("buffer.aut", &["--ltl", "G (enabled(\"IN !0\") -> F enabled(\"OUT !0\"))"], "violated"),
        ("buffer.aut", &["--ef", "enabled(\"OUT !1\")"], "holds"),
        ("vending.slco", &["--ltl", "G (shop.coins <= 2 and shop.served <> 3)"], "holds"),
        ("vending.slco", &["--ltl", "F (people.Ann.Done or people.Bob.Done)"], "violated"),
        ("vending.slco", &["--ef", "shop.Seller.Empty"], "violated"),
    ] {
        let (code, report) = place.json(&file(name), arguments);
        let violated = verdict == "violated";
        assert_eq!((code, report["verdict"].as_str()), (Some(violated.into()), Some(verdict)), "{name} {arguments:?}");
        assert_eq!(report["lasso"].is_object() || report["path"].is_object(), violated, "{name} {arguments:?}");
    }
    let (_, report) = place.json(&file("crossing.exp"), &["--ltl", "G (gate == 0 imply train_1 != 2)", "--keep-going"]);
    let steps = report["lasso"]["steps"].as_array().unwrap();
    assert!(steps.iter().all(|step| step["moves"][0]["label"].is_string()), "{report}");
}

pub fn networks_are_checked_with_paths(place: TableOnDevice) {
    let philosophers = networks::philosophers(5);
    let waits = (0..5).map(|at| format!("eater{at} == 1")).collect::<Vec<_>>().join(" and ");
    for (path, arguments, length, found) in [
        (philosophers.path(), vec!["--deadlock"], 5, "deadlock: no step is possible"),
        (philosophers.path(), vec!["--goal", &waits], 5, ""),
        (philosophers.path(), vec!["--invariant", "not enabled(DROP_0_0) or fork0 == 1"], 0, "none"),
        (philosophers.path(), vec!["--goal", "enabled(DROP_0_0)"], 2, ""),
        (file("crossing.exp"), vec!["--invariant", "gate == 0 imply train_1 != 2"], 2, ""),
        (file("crossing.exp"), vec!["--goal", "enabled(i) and train_2 == 2 and gate == 1"], 4, "none"),
        (file("buffer.aut"), vec!["--goal", "enabled(\"OUT !1\") and not enabled(IN)"], 2, ""),
    ] {
        let (code, report) = place.json(&path, &arguments);
        if found == "none" {
            assert_eq!((code, &report["violation"]), (Some(0), &Value::Null), "{arguments:?}");
            continue;
        }
        assert_eq!((code, report["path"]["length"].as_u64()), (Some(1), Some(length)), "{arguments:?} {report}");
        assert!(report["violation"].as_str().unwrap().contains(found), "{report}");
        let steps = report["path"]["steps"].as_array().unwrap();
        assert!(steps.iter().all(|step| step["moves"][0]["label"].is_string()), "{report}");
    }
}

/// The export of a product contains the product as it is explored, and the verdict is the same as without an export.
pub fn products_are_exported_with_their_verdict() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("product.aut");
    for (path, arguments) in [
        (model("peterson"), &["--ltl", "G F P_0.critical", "--keep-going"][..]),
        (model("readers_writers"), &["--ltl", "G F R_0.writing", "--fair", "weak", "--keep-going"]),
        (file("crossing.exp"), &["--ltl", "G F train_1 == 0", "--keep-going"]),
        (file("vending.slco"), &["--ltl", "G (people.Ann.Done -> G not people.Ann.Waits)"]),
        (file("vending.slco"), &["--ef", "people.Bob.Done"]),
    ] {
        let (code, report) = json(&path, arguments);
        let (code_of_export, of_export) = json(&path, &[arguments, &["--export", out.to_str().unwrap()]].concat());
        assert_eq!((code, counts(&report)), (code_of_export, counts(&of_export)), "{arguments:?}");
        for key in ["verdict", "accepting"] {
            assert_eq!(report.get(key), of_export.get(key), "{arguments:?}");
        }
        assert_eq!(of_export["lasso"].is_object() || of_export["path"].is_object(), code == Some(1), "{of_export}");
        let again = json(&out, &[]).1;
        assert_eq!(
            ["states", "transitions", "levels"].map(|key| &again["counts"][key]),
            ["states", "transitions", "levels"].map(|key| &report["counts"][key])
        );
    }
}

/// A state space that is exported and read again has the same states, transitions, deadlocks and levels. The file does not depend
/// on the table or the number of threads.
pub fn exported_state_spaces_are_models() {
    let folder = TempDir::new().unwrap();
    let protocol = networks::lossy_protocol(2, 1);
    let models =
        [model("mailbox"), model("peterson"), file("vending.slco"), file("crossing.exp"), file("buffer.aut"), protocol.path()];
    for path in models {
        let mut texts = Vec::new();
        for (number, table) in TABLES.iter().enumerate() {
            let out = folder.path().join(format!("{number}.aut"));
            let device = format!("cpu:{}", number + 1);
            let arguments = ["--table", table, "--capacity", "64", "--export", out.to_str().unwrap()];
            let (code, report) = json_on(&device, &path, &arguments);
            let (code_again, again) = json(&out, &[]);
            assert_eq!((code, counts(&report)), (code_again, counts(&again)), "{}", path.display());
            assert_eq!(counts(&report), counts(&json(&path, &[]).1), "{}", path.display());
            assert_eq!(report["exported_bytes"].as_u64(), Some(std::fs::metadata(&out).unwrap().len()));
            texts.push(std::fs::read(&out).unwrap());
        }
        assert!(texts.windows(2).all(|pair| pair[0] == pair[1]), "{}", path.display());
        let text = String::from_utf8(texts.pop().unwrap()).unwrap();
        // States are numbered in discovery order.
        let mut known = 0;
        for line in text.lines().skip(1) {
            let target: u64 = line.trim_end_matches(')').rsplit(", ").next().unwrap().parse().unwrap();
            assert!(target <= known + 1, "{line}");
            known = known.max(target);
        }
    }
    // A self loop and two equal transitions, as arrays.
    let (_folder, path) = written(
        "byte x; process P { state s; init s; trans s -> s {}, s -> s { effect x = 1; }, s -> s { guard x == 0; effect x = 1; }; } system async;",
    );
    let out = folder.path().join("arrays.npz");
    json(&path, &["--export", out.to_str().unwrap()]);
    let mut archive = zip::ZipArchive::new(std::fs::File::open(&out).unwrap()).unwrap();
    let mut array = |name: &str| {
        let mut bytes = Vec::new();
        archive.by_name(name).unwrap().read_to_end(&mut bytes).unwrap();
        bytes.split_off(128)
    };
    assert_eq!(array("offsets.npy"), [0u64, 3, 5].map(u64::to_le_bytes).concat());
    assert_eq!(array("targets.npy"), [0u32, 1, 1, 1, 1].map(u32::to_le_bytes).concat());
}

pub fn exports_are_whole_or_nothing() {
    let (folder, path) = written(COUNTERS);
    let out = folder.path().join("out.aut");
    let export = ["--export", out.to_str().unwrap()];
    for arguments in [&["--max-states", "100"][..], &["--goal", "a == 2"], &["--memory", "100k", "--capacity", "1000"]] {
        let (_, report) = json(&path, &[&export, arguments].concat());
        assert!(!out.exists() && report["exported_bytes"].is_null(), "{report}");
        assert_eq!(report["not_exported"], "the search ended before all states and transitions were found");
        let text = String::from_utf8(explore(&path, [&export, arguments].concat()).stdout).unwrap();
        assert!(
            text.contains("exported           NOTHING: the search ended before all states and transitions were found"),
            "{text}"
        );
    }
    let (code, report) = json(&path, &[&export[..], &["--goal", "a == 2", "--keep-going", "--capacity", "100"]].concat());
    assert_eq!((code, counts(&report), report["path"]["length"].as_u64()), (Some(1), [29_791, 86_490, 1, 91, 721], Some(2)));
    assert!(report["exported_bytes"].is_number() && report["not_exported"].is_null(), "{report}");
    assert_eq!(counts(&json(&out, &[]).1), [29_791, 86_490, 1, 91, 721]);
    let fails = |arguments: &[&str], part: &str| {
        let output = explore(&path, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(part), "{arguments:?}: {said}");
    };
    fails(&["--export", "x.txt"], "must end with .aut, .npz or .dot");
    fails(&[&export[..], &["--engine", "compiled"]].concat(), "--export needs --engine interpreted");
    // An export does not overwrite a file that is part of the model.
    let network = networks::cyclers(2, 3);
    let component = network.folder().join("cycler.aut");
    let before = std::fs::read(&component).unwrap();
    let output = explore(&network.path(), ["--export", component.to_str().unwrap()]);
    assert!(output.status.code() == Some(2) && String::from_utf8_lossy(&output.stderr).contains("is the model"), "{output:?}");
    assert_eq!(std::fs::read(&component).unwrap(), before);
}

pub fn languages_are_told_by_extension_or_name() {
    let folder = TempDir::new().unwrap();
    let odd = folder.path().join("model.txt");
    for (format, name, [states, transitions, ..]) in [
        ("slco", "vending.slco", GOLDEN_OF_OTHERS[0].1),
        ("aut", "buffer.aut", GOLDEN_OF_OTHERS[2].1),
        ("dve", "river.dve", [10, 20, 0, 8, 2]),
    ] {
        std::fs::copy(file(name), &odd).unwrap();
        let (code, report) = json(&odd, &["--format", format]);
        assert_eq!((code, counts(&report)[..2].to_vec()), (Some(0), vec![states, transitions]), "{format}");
        let mut child = spawned(&mut command_of("-", &["--json", "--format", format]));
        child.stdin.take().unwrap().write_all(&std::fs::read(file(name)).unwrap()).unwrap();
        assert_eq!(counts(&only_object(&child.wait_with_output().unwrap()))[0], states, "{format}");
    }
    let mut child = spawned(&mut command_of("-", &["--json", "--format", "aut", "--goal", "lts == 6"]));
    child.stdin.take().unwrap().write_all(&std::fs::read(file("buffer.aut")).unwrap()).unwrap();
    assert_eq!(only_object(&child.wait_with_output().unwrap())["path"]["length"], 2);
    for (name, arguments, part) in [
        ("river.dve", &["--format", "slco"][..], "river.dve:5:1"),
        ("river.dve", &["--independent"], "--independent is for networks"),
        ("vending.slco", &["--interleave", "rate"], "--interleave is for networks"),
        ("crossing.exp", &["--invariant", "train == 1"], "there is no variable or constant `train`"),
        ("vending.slco", &["--invariant", "shop.Seller.Idl"], "there is no state or variable of Seller `Idl`"),
        ("river.dve", &["--invariant", "enabled(A)"], "there is no label or gate of a step `A`"),
    ] {
        let output = explore(&file(name), arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(part), "{arguments:?}: {said}");
    }
    let text =
        String::from_utf8(explore(&file("vending.slco"), ["--goal", "people.Ann.Done and people.Bob.Done"]).stdout).unwrap();
    for part in ["people.Ann: send coin(0) to Pay (Thirsty -> Waits", "goal reached: people.Ann.Done and people.Bob.Done"] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
}

/// A component of 200,000 transitions, synchronized with another one: its transitions generate no code.
pub fn large_components_are_tables() {
    let folder = TempDir::new().unwrap();
    let states = 50_000;
    let transitions: Vec<_> =
        (0..4 * states).map(|at| (at / 4, format!("L{} !{}", at % 7, at % 3), (at / 4 * 7 + at) % states)).collect();
    std::fs::write(folder.path().join("large.aut"), networks::aut(states, &transitions)).unwrap();
    std::fs::write(folder.path().join("small.aut"), networks::aut(2, &[(0, "L1 !1".into(), 1), (1, "BACK".into(), 0)])).unwrap();
    let path = folder.path().join("main.exp");
    std::fs::write(&path, "large |[L1]| small").unwrap();
    let of = |engine: &str| {
        let (code, report) = json(&path, &["--engine", engine]);
        assert_eq!(code, Some(0), "{report}");
        counts(&report)
    };
    let found = of("compiled");
    assert!(found == of("interpreted") && found[0] > 10_000, "{found:?}");
    if cfg!(feature = "cuda") {
        let out = folder.path().join("explore.cu");
        assert!(explore(&path, ["--emit", out.to_str().unwrap()]).status.success());
        assert!(std::fs::metadata(&out).unwrap().len() < 100_000);
    }
}

/// Checks the path to a fault, with its place in the text; and the count of stores that wrap.
pub fn slco_has_faults_and_overflows(place: TableOnDevice) {
    let model = |statements: &str| {
        format!(
            "model m {{ classes K {{ variables Byte[3] a Byte i Integer n := 3\n state machines M {{ initial A transitions\n A -> A {{ {statements} }} }} }} objects o : K() }}"
        )
    };
    for (statements, length, message) in [
        ("[a[i] := 1;\n  i := i + 1]", 3, "model.slco:3:12: the array a has 3 elements, but its index is 3"),
        ("n := n - 1; i := 6 / n", 5, "model.slco:3:28: division by zero"),
        ("[n := n - 1; i := 0 ** n]", 3, "division by zero"),
    ] {
        let (_folder, path) = written_as("model.slco", &model(statements));
        let (code, report) = place.json(&path, &[]);
        let found = report["violation"].as_str().unwrap();
        assert!(found.ends_with(message), "{statements}: {found}");
        assert_eq!((code, report["path"]["length"].as_u64()), (Some(1), Some(length)), "{statements}");
    }
    let (_folder, path) = written_as("model.slco", &model("i := i - 3"));
    let (code, report) = place.json(&path, &["--goal", "i = 1"]);
    assert_eq!((code, report["path"]["length"].as_u64()), (Some(1), Some(85)));
    let (code, report) = place.json(&path, &[]);
    assert_eq!((code, counts(&report), report["counts"]["overflows"].as_u64()), (Some(0), [256, 256, 0, 256, 1], Some(3)));
}

/// `WARPSET_SLCO` names the folder with `open.csv` and `open/`, `constructs.csv` and `constructs/`.
pub fn slco_models_have_their_counts(folder: &Path) {
    for list in ["constructs", "open"] {
        have_their_counts(folder, list, 1_000_000, |name| (with_extension(folder.join(list).join(name), "slco"), &[]));
    }
}

/// `WARPSET_NETWORKS` names the folder with `networks.csv`, `samples/` and the program that writes all others, `generate.py`.
pub fn networks_have_their_counts(folder: &Path) {
    let written = TempDir::new().unwrap();
    have_their_counts(folder, "networks", 1_000_000, network_of(folder, &written));
}

/// Finds a network of the list by its name, or generates it in the folder `written`. Returns its file and arguments.
pub fn network_of<'f>(folder: &'f Path, written: &'f TempDir) -> impl Fn(&str) -> (PathBuf, &'static [&'static str]) + 'f {
    move |name| {
        // Rates are ordinary labels only without `--interleave rate`.
        match name.strip_prefix("samples/").map(|name| name.strip_suffix("@plain").ok_or(name)) {
            Some(Ok(plain)) => (with_extension(folder.join("samples").join(plain), "exp"), &[]),
            Some(Err(sample)) => (with_extension(folder.join("samples").join(sample), "exp"), &["--interleave", "rate"]),
            None => {
                let here = written.path().join(name);
                let mut program = Command::new("python3");
                let output = program.arg(folder.join("generate.py")).args(name.split('.')).arg(&here).output().unwrap();
                assert!(output.status.success(), "{output:?}");
                (here.join("main.exp"), &[])
            }
        }
    }
}

/// A tree of `inner` inner states, each with two steps of labels of their own; states are in discovery order.
fn tree_of_labels(inner: u64) -> String {
    let step = |at: u64| format!("({}, \"STEP !{at}\", {})\n", at / 2, at + 1);
    format!("des (0, {}, {})\n", 2 * inner, 2 * inner + 1) + &(0..2 * inner).map(step).collect::<String>()
}

/// A state space with a label for each transition is handled like any other by every engine, with conditions on labels.
pub fn each_transition_may_have_a_label(place: TableOnDevice) {
    let (_folder, path) = written_as("tree.aut", &tree_of_labels(20_000));
    let engines: &[&str] = if place.is_gpu() { &["gpu", "interpreted"] } else { &["interpreted", "compiled"] };
    for engine in engines {
        let (code, report) = place.json(&path, &["--engine", engine]);
        assert_eq!((code, counts(&report)), (Some(0), [40_001, 40_000, 20_001, 16, 16_384]), "{engine}");
        // Step 38,000 starts in state 19,000, which is 14 steps from the first state.
        let (code, report) = place.json(&path, &["--engine", engine, "--goal", "enabled(\"STEP !38000\")"]);
        let path = &report["path"];
        assert_eq!((code, path["length"].as_u64()), (Some(1), Some(14)), "{engine}: {report}");
        assert_eq!(path["steps"][13]["moves"][0]["label"], "STEP !18999", "{engine}");
        assert_eq!(report["state"]["variables"]["tree"].as_u64(), Some(19_000));
    }
    let (code, report) = place.json(&path, &["--goal", "enabled(STEQ)"]);
    assert_eq!((code, report.get("counts")), (Some(2), None), "{report}");
}

pub fn labels_are_exported_as_they_were() {
    let letters = "des (0, 3, 2)\n(0, \"GRÜẞE !ä\", 1)\n(0, \"漢字\", 1)\n(1, \"\u{1f980} x\", 0)\n";
    for text in [&tree_of_labels(3000), letters] {
        let (folder, path) = written_as("tree.aut", text);
        let out = folder.path().join("out.aut");
        let (code, _) = json(&path, &["--export", out.to_str().unwrap()]);
        assert_eq!((code, &*std::fs::read_to_string(out).unwrap()), (Some(0), text));
    }
}

/// A token walks over a board of 3 rows and 4 columns, and counts its visits to each square up to 2.
const BOARD: &str = "byte visits[3][4], i, j; const byte next[2][4] = {{1, 2, 3, 0}, {3, 0, 1, 2}};
process P { byte up; state s; init s; trans
  s -> s { effect j = next[up][j], visits[i][j] = visits[i][j] < 2 ? visits[i][j] + 1 : 0; },
  s -> s { guard j == 0; effect i = i == 2 ? 0 : i + 1, up = i % 2 == 0 ? 0 : 1; }; } system async;";

/// Arrays of two dimensions and conditional expressions have the same states in every engine; paths name their elements, and each
/// index has its own fault.
pub fn arrays_of_two_dimensions_and_choices_work_in_every_engine() {
    let (_folder, path) = written(BOARD);
    let arguments = ["--max-depth", "9", "--json"];
    let of = |engine: &str| {
        let report = only_object(&explore(&path, arguments.iter().chain(&["--engine", engine])));
        counts(&report)
    };
    assert_eq!(of("interpreted"), of("compiled"));
    assert!(of("interpreted")[0] > 50);
    let text = String::from_utf8(explore(&path, ["--goal", "visits[1][3] == 1"]).stdout).unwrap();
    for part in ["The shortest path has 2 steps", "visits[1][3]: 0 -> 1", "i: 0 -> 1"] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let (code, report) = json(&path, &["--ltl", "G (visits[1][3] < (i == 1 ? 1 : 3))"]);
    assert_eq!((code, report["verdict"].as_str()), (Some(1), Some("violated")), "{report}");
    let wrong = BOARD.replace("next[up][j]", "next[up][j] + 1");
    let (_folder, path) = written(&wrong);
    for engine in ["interpreted", "compiled"] {
        let (code, report) = json(&path, &["--engine", engine]);
        let found = report["violation"].as_str().unwrap_or_default();
        let message = "a row of the array visits has 4 elements, but its second index is 4";
        assert!(code == Some(1) && found.ends_with(message), "{engine}: {report}");
    }
    let pieces = ["visits[1][2]", "visits[0][4]", "visits[0]"].map(|name| {
        let output = explore(&path, ["--goal", &format!("{name} == 1"), "--max-depth", "1"]);
        String::from_utf8_lossy(&output.stderr).into_owned()
    });
    assert!(pieces[0].is_empty(), "{pieces:?}");
    assert!(pieces[1].contains("the array `visits` has 4 elements in a row, but this index is 4"), "{pieces:?}");
    assert!(pieces[2].contains("an element is written visits[i][j]"), "{pieces:?}");
}
