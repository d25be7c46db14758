//! Counts of nets, compared with a plain search over lists of tokens.
//!
//! Keeps these promises of `examples/explore/docs/nets.md`:
//!
//! - The GPU that has the states of a net counts its figures, in every table, whether or not the counters fit shared memory (also
//!   `examples/explore/search/src/codegen/tests.rs`).
//! - A search of a net is resumed whether a place got more bits before the checkpoint or gets them after it.

use super::*;
use crate::lists::most_states;
use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use warpset_testing::sizes::sized;

/// A net that a test writes.
#[derive(Default)]
struct Net {
    places: Vec<(String, u32)>,
    transitions: Vec<String>,
    /// Source, target and weight.
    arcs: Vec<(String, String, u32)>,
    /// The tool section.
    section: String,
}

/// Figures of a report: states, firings, deadlocks, levels, most tokens in a place and in a marking, firings by transition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Figures {
    numbers: [u64; 6],
    firings: BTreeMap<String, u64>,
}

impl Net {
    fn place(mut self, id: impl Into<String>, tokens: u32) -> Self {
        self.places.push((id.into(), tokens));
        self
    }

    /// Adds a transition with the places that it takes a token from, and those that it puts one into; a place may occur several
    /// times.
    fn transition<T: AsRef<str>>(mut self, id: impl Into<String>, takes: &[T], puts: &[T]) -> Self {
        let id = id.into();
        for (places, is_taken) in [(takes, true), (puts, false)] {
            let mut weights: BTreeMap<&str, u32> = BTreeMap::new();
            places.iter().for_each(|place| *weights.entry(place.as_ref()).or_default() += 1);
            for (place, weight) in weights {
                let (source, target) = if is_taken { (place.into(), id.clone()) } else { (id.clone(), place.into()) };
                self.arcs.push((source, target, weight));
            }
        }
        self.transitions.push(id);
        self
    }

    /// Declares safe units with these places.
    fn units(mut self, units: &[&str]) -> Self {
        let unit =
            |(at, places): (usize, &&str)| format!("<unit id=\"u{at}\"><places>{places}</places><subunits></subunits></unit>");
        let all: String = units.iter().enumerate().map(unit).collect();
        let root: Vec<String> = (0..units.len()).map(|at| format!("u{at}")).collect();
        self.section = format!(
            "<toolspecific tool=\"nupn\" version=\"1.1\"><structure units=\"{}\" root=\"root\" safe=\"true\"><unit id=\"root\">\
             <places></places><subunits>{}</subunits></unit>{all}</structure></toolspecific>\n",
            units.len() + 1,
            root.join(" ")
        );
        self
    }

    fn text(&self) -> String {
        let places: Vec<(&str, u32)> = self.places.iter().map(|(id, tokens)| (id.as_str(), *tokens)).collect();
        let transitions: Vec<&str> = self.transitions.iter().map(String::as_str).collect();
        let arcs: Vec<_> = self.arcs.iter().map(|(from, to, weight)| (from.as_str(), to.as_str(), *weight)).collect();
        net(&places, &transitions, &arcs).replace("</page>", &format!("{}</page>", self.section))
    }

    /// Searches all markings plainly.
    fn counted(&self) -> Figures {
        let place = |id: &str| self.places.iter().position(|(of, _)| of == id);
        let arcs = |transition: &str| {
            let takes = self.arcs.iter().filter(|(_, to, _)| to == transition).map(|(from, _, weight)| (place(from), *weight));
            let puts = self.arcs.iter().filter(|(from, ..)| from == transition).map(|(_, to, weight)| (place(to), *weight));
            [takes.collect::<Vec<_>>(), puts.collect()]
        };
        let transitions: Vec<_> = self.transitions.iter().map(|id| (id, arcs(id))).collect();
        let mut figures = Figures { firings: self.transitions.iter().map(|id| (id.clone(), 0)).collect(), ..Figures::default() };
        let [states, firings, deadlocks, levels, in_place, tokens] = &mut figures.numbers;
        let initial: Vec<u32> = self.places.iter().map(|(_, tokens)| *tokens).collect();
        let mut level_of = HashMap::from([(initial.clone(), 1)]);
        let mut waiting = VecDeque::from([initial]);
        while let Some(marking) = waiting.pop_front() {
            let level = level_of[&marking];
            *levels = level.max(*levels);
            *in_place = (*marking.iter().max().unwrap_or(&0)).max(*in_place as u32).into();
            *tokens = (*tokens).max(marking.iter().map(|tokens| u64::from(*tokens)).sum());
            let before = *firings;
            for (id, [takes, puts]) in &transitions {
                let mut next = marking.clone();
                let is_enabled = takes.iter().all(|(place, weight)| {
                    let left = &mut next[place.unwrap()];
                    left.checked_sub(*weight).map(|rest| *left = rest).is_some()
                });
                if is_enabled {
                    puts.iter().for_each(|(place, weight)| next[place.unwrap()] += weight);
                    *firings += 1;
                    *figures.firings.get_mut(*id).unwrap() += 1;
                    if !level_of.contains_key(&next) {
                        level_of.insert(next.clone(), level + 1);
                        waiting.push_back(next);
                    }
                }
            }
            *deadlocks += u64::from(*firings == before);
        }
        *states = level_of.len() as u64;
        figures
    }
}

impl Figures {
    fn of(report: &Value) -> Self {
        let names = ["states", "transitions", "deadlocks", "levels", "max_tokens_in_place", "max_tokens"];
        let numbers = names.map(|name| figure(report, name).unwrap_or_else(|| panic!("{name}: {report}")));
        let firings = report["firings"].as_object().unwrap_or_else(|| panic!("no firings: {report}"));
        Self { numbers, firings: firings.iter().map(|(id, count)| (id.clone(), count.as_u64().unwrap())).collect() }
    }
}

/// A place that gets `most` tokens, and has no proved bound: `double` would double them if `q` had a token, and `never` would put
/// one there if `c` and `p` had one more together than they ever have.
fn wide(most: u32) -> Net {
    let net = Net::default().place("q", 0).place("c", most).place("p", 0).transition("t", &["c"], &["p"]);
    let all = [&vec!["c"; most as usize][..], &["p"]].concat();
    net.transition("never", &all, &[&all[..], &["q"]].concat()).transition("double", &["q", "p"], &["q", "p", "p"])
}

/// Two tokens move from any of these places to any other, or stay, by transitions that are `count` in number.
fn moving(places: usize, count: usize) -> Net {
    let id = |place: usize| format!("p{place}");
    let mut net = (0..places).fold(Net::default(), |net, place| net.place(id(place), if place == 0 { 2 } else { 0 }));
    for number in 0..count {
        net = net.transition(format!("t{number}"), &[id(number / places % places)], &[id(number % places)]);
    }
    net
}

/// A ring of three places with one token, weights, a place that is only looked at, and a transition that is never enabled.
fn mixed() -> Net {
    let net = Net::default().place("a", 1).place("b", 0).place("c", 0).place("few", 0).place("many", 7).place("always", 1);
    net.transition("ab", &["a", "many", "many", "many"], &["b", "few"])
        .transition("bc", &["b", "always"], &["c", "always", "many"])
        .transition("ca", &["c"], &["a"])
        .transition("back", &["few", "few"], &["many"])
        .transition("never", &["a", "b"], &["few"])
        .units(&["a b c"])
}

/// A net whose section says that one of three places is marked at most, though two are after two steps.
fn lying() -> Net {
    let net = Net::default().place("p", 3).place("q", 0).place("r", 0).place("s", 0);
    let net = net.transition("t", &["p"], &["q"]).transition("u", &["q"], &["r"]).transition("v", &["r"], &["s"]);
    net.units(&["q r s"])
}

/// Exit code, report and standard error of a search.
#[track_caller]
fn searched(place: TableOnDevice, path: &Path, arguments: &[&str]) -> (Option<i32>, Value, String) {
    let begins: &[&str] = if place.is_gpu() && !arguments.contains(&"--resume") { &["--capacity", "64"] } else { &[] };
    let output = explore_on(place.device, path, [&["--table", place.table, "--json"], begins, arguments].concat());
    let report = only_object(&output);
    (output.status.code(), report, String::from_utf8(output.stderr).unwrap())
}

pub fn nets_have_their_counts(place: TableOnDevice) {
    let engines = if place.is_gpu() { ["gpu", "interpreted"] } else { ["interpreted", "compiled"] };
    for (name, net) in [("255", wide(255)), ("256", wide(256)), ("mixed", mixed()), ("lying", lying())] {
        let (expected, (_folder, path)) = (net.counted(), written_as("net.pnml", &net.text()));
        let engines = engines.map(|engine| ["--engine", engine]);
        for arguments in [&engines[0], &engines[1], &["--local-ranks", "2"]] {
            let (code, report, text) = searched(place, &path, arguments);
            assert_eq!((code, Figures::of(&report)), (Some(0), expected.clone()), "{name} {arguments:?} {text}");
            assert_eq!(text.contains("NUPN"), name == "lying", "{name}: {text}");
        }
    }
    if place.is_gpu() {
        // More counters than the shared memory that a block takes for them.
        let net = moving(10, 4200);
        let (expected, (_folder, path)) = (net.counted(), written_as("net.pnml", &net.text()));
        let (code, report, text) = searched(place, &path, &["--engine", "interpreted"]);
        assert_eq!((code, Figures::of(&report)), (Some(0), expected), "many {text}");
    }
}

/// A search is resumed whether the checkpoint was written before a place got more tokens than its first field holds, or after.
pub fn nets_go_on_from_checkpoints(place: TableOnDevice) {
    let net = wide(300);
    let (expected, (folder, path)) = (net.counted(), written_as("net.pnml", &net.text()));
    let file = folder.path().join("search.checkpoint");
    let name = file.to_str().unwrap();
    for (most, is_before) in [("100", true), ("280", false)] {
        let (code, report, text) = searched(place, &path, &["--max-states", most, "--checkpoint", name]);
        assert_eq!((code, report["counts"]["states"].as_u64() < Some(301)), (Some(3), true), "{report} {text}");
        let (code, report, text) = searched(place, &path, &["--resume", name]);
        assert_eq!((code, Figures::of(&report)), (Some(0), expected.clone()), "{most}: {text}");
        assert_eq!(report["counts"]["resumed_states"].is_null(), is_before, "{report}");
        assert_eq!(text.contains("begins from the start"), is_before, "{text}");
    }
    let (code, report, _) = searched(place, &path, &["--max-states", "100", "--checkpoint", name, "--goal", "tokens(p) == 300"]);
    assert_eq!(code, Some(3), "{report}");
    let (code, report, _) = searched(place, &path, &["--resume", name, "--goal", "tokens(p) == 300"]);
    assert_eq!((code, report["path"]["length"].as_u64()), (Some(1), Some(300)), "{report}");
}

/// Nets at the border between generated statements and tables of arcs, with as many transitions as a set of one register has, and
/// with states of the most words.
pub fn nets_at_borders_have_their_counts() {
    for (places, count) in [(20, 400), (20, 401), (32, 1024)] {
        let net = moving(places, count);
        let (expected, (_folder, path)) = (net.counted(), written_as("net.pnml", &net.text()));
        for (engine, table) in [("compiled", "tree"), ("interpreted", "bucket")] {
            let place = TableOnDevice { device: "cpu:2", table };
            let (code, report, text) = searched(place, &path, &["--engine", engine]);
            assert_eq!((code, Figures::of(&report)), (Some(0), expected.clone()), "{count} {engine}: {text}");
        }
    }
    // Fields for places that a transition would double if `one` had two tokens, and one bit for that place and `other`.
    let of_words = |places: usize| {
        let id = |place: usize| format!("p{place}");
        let ids: Vec<String> = (0..places).map(id).collect();
        let with = |of: &str| [&[of.to_string()][..], &ids].concat();
        let mut net = Net::default().place("one", 1).place("other", 0);
        net = net.transition("t", &["one".to_string()], &with("other")).transition("back", &with("other"), &["one".to_string()]);
        for place in 0..places {
            let before = ["one".into(), "one".into(), id(place)];
            let after = ["one".into(), "one".into(), id(place), id(place)];
            net = net.place(id(place), 0).transition(format!("double{place}"), &before, &after);
        }
        net
    };
    let net = of_words(1023);
    let (expected, (_folder, path)) = (net.counted(), written_as("net.pnml", &net.text()));
    for table in TABLES {
        let (code, report, text) = searched(TableOnDevice { device: "cpu:2", table }, &path, &[]);
        assert_eq!((code, Figures::of(&report)), (Some(0), expected.clone()), "{text}");
        assert_eq!(report["table"]["words"], 256, "{report}");
    }
    // More places have narrower fields, of two bits at least.
    let (_folder, path) = written_as("net.pnml", &of_words(1024).text());
    let (code, report, text) = searched(TableOnDevice { device: "cpu:2", table: "tree" }, &path, &[]);
    let found = (Figures::of(&report).numbers, report["table"]["words"].as_u64());
    assert_eq!((code, found), (Some(0), ([2, 2, 0, 2, 1, 1025], Some(129))), "{text}");
    let (_folder, path) = written_as("net.pnml", &of_words(4096).text());
    let output = explore(&path, ["--json"]);
    let text = String::from_utf8(output.stderr).unwrap();
    let has_numbers = ["257 words", "256", "8192 bits"].iter().all(|number| text.contains(number));
    assert!(output.status.code() == Some(2) && has_numbers, "{text}");
}

/// A number from the environment.
fn variable(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(otherwise)
}

/// Rows of a list of the folder, without the header.
fn rows(folder: &Path, list: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(folder.join(list)).unwrap();
    text.lines().skip(1).map(|row| row.split(',').map(String::from).collect()).collect()
}

fn model_of(folder: &Path, net: &str) -> PathBuf {
    folder.join("open").join(net).join("model.pnml")
}

/// Compares nets of the Model Checking Contest with their counts, in every table: nets with at most 1,000,000 markings, 200,000
/// in a run that is not full, or `WARPSET_NETS_STATES`.
pub fn of_contest(folder: &Path) {
    let most = variable("WARPSET_NETS_STATES", most_states(1_000_000));
    let mut compared = 0;
    for row in rows(folder, "open.csv") {
        let number = |column: usize| row[column].parse::<u64>().ok();
        if number(2).is_none_or(|states| states > most) {
            continue;
        }
        for table in TABLES {
            let (code, report, text) = searched(TableOnDevice { device: "cpu:2", table }, &model_of(folder, &row[0]), &[]);
            let figures = Figures::of(&report);
            assert_eq!(code, Some(0), "{}: {text}", row[0]);
            let expected = [2, 3, 4, 5, 6, 7].map(number);
            let agrees = figures.numbers.iter().zip(expected).all(|(found, expected)| expected.is_none_or(|of| of == *found));
            assert!(agrees, "{} in a {table} table: {:?}, not {expected:?}", row[0], figures.numbers);
        }
        compared += 1;
    }
    println!("{compared} nets");
    assert!(compared > 10, "only {compared} nets were compared");
}

/// Compares the verdicts of formulas of nets with at most 20,000 markings, or 5,000 for LTL, whose products are larger than the
/// nets. `WARPSET_NETS_STATES` is another number for both. Each processor takes one file after another.
pub fn formulas_of_contest(folder: &Path) {
    let mut expected: BTreeMap<(String, String), Vec<(String, String)>> = BTreeMap::new();
    for row in rows(folder, "formulas.csv") {
        let [net, examination, number, verdict] = row.try_into().expect("four columns");
        expected.entry((net, examination)).or_default().push((number, verdict));
    }
    let markings = rows(folder, "open.csv").into_iter().filter_map(|row| Some((row[0].clone(), row[2].parse::<u64>().ok()?)));
    let markings: BTreeMap<String, u64> = markings.collect();
    let most = |examination: &str| variable("WARPSET_NETS_STATES", if examination.starts_with("LTL") { 5_000 } else { 20_000 });
    expected.retain(|(net, examination), _| markings.get(net).is_some_and(|markings| *markings <= most(examination)));
    let (files, compared) = (Mutex::new(expected.iter()), AtomicUsize::new(0));
    let next = || files.lock().unwrap().next();
    let compare = || {
        while let Some(((net, examination), all)) = next() {
            let file = folder.join("open").join(net).join(format!("{examination}.xml"));
            let output = explore_on("cpu:1", &model_of(folder, net), ["--properties", file.to_str().unwrap()]);
            let text = String::from_utf8(output.stdout.clone()).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            for (number, verdict) in all {
                let line =
                    lines.get(number.parse::<usize>().unwrap()).unwrap_or_else(|| panic!("{net} {examination}: {output:?}"));
                assert_eq!(line.split(' ').nth(2), Some(verdict.as_str()), "{net} {examination}: {line}");
            }
            // Relaxed: read after the threads have ended.
            compared.fetch_add(all.len(), Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(compare);
        }
    });
    let compared = compared.into_inner();
    println!("{compared} formulas");
    assert!(compared > 100, "only {compared} formulas were compared");
}

/// Compares the verdicts of formulas of branching time, by the ids of their properties: of nets with at most 20,000 markings,
/// 1,000,000 in a full run, or `WARPSET_NETS_STATES`.
pub fn branching_formulas_of_contest(folder: &Path) {
    let most = variable("WARPSET_NETS_STATES", sized(1_000_000, 20_000, 20_000));
    let markings = rows(folder, "open.csv").into_iter().filter_map(|row| Some((row[0].clone(), row[2].parse::<u64>().ok()?)));
    let small: Vec<String> = markings.filter(|(_, markings)| *markings <= most).map(|(net, _)| net).collect();
    let expected: HashMap<String, String> =
        rows(folder, "ctl_formulas.csv").into_iter().map(|row| (row[4].clone(), row[3].clone())).collect();
    let mut compared = 0;
    for net in &small {
        for examination in ["CTLCardinality", "CTLFireability"] {
            let file = folder.join("open").join(net).join(format!("{examination}.xml"));
            if !file.exists() {
                continue;
            }
            let output = explore_on("cpu:2", &model_of(folder, net), ["--properties", file.to_str().unwrap()]);
            let text = String::from_utf8(output.stdout.clone()).unwrap();
            for line in text.lines() {
                let words: Vec<&str> = line.split(' ').collect();
                let verdict = expected.get(words[1]).unwrap_or_else(|| panic!("{net}: {line}"));
                assert_eq!(words[2], verdict, "{net} {examination}: {line}");
                compared += 1;
            }
            assert_eq!((text.lines().count(), output.status.code()), (16, Some(0)), "{net} {examination}: {output:?}");
        }
    }
    println!("{compared} formulas");
    assert!(compared > 100, "only {compared} formulas were compared");
}

/// Texts of nets whose walks differ in what they need: statements or tables of the generated code, wider fields, other fields.
pub fn with_walks() -> Vec<(&'static str, String)> {
    let nets = [("mixed", mixed()), ("statements", moving(10, 300)), ("tables", moving(10, 4200)), ("256", wide(256))];
    nets.into_iter().chain([("lying", lying())]).map(|(name, net)| (name, net.text())).collect()
}

/// Walks of nets are the same with interpreted and compiled functions, and end as nets do.
pub fn nets_are_simulated() {
    let walked = |text: &str, arguments: &[&str]| {
        let (_folder, path) = written_as("net.pnml", text);
        let run = |engine| {
            let output = explore_on("cpu:2", &path, [&["--engine", engine, "--json", "--simulate"], arguments].concat());
            let report = only_object(&output);
            let names = ["end", "walks_taken", "steps", "longest", "deadlocks", "walk", "path"];
            let figures = names.map(|name| report[name].clone());
            (output.status.code(), figures, String::from_utf8(output.stderr).unwrap())
        };
        let (one, other) = (run("interpreted"), run("compiled"));
        // If a walk finds something, the counts include a part of other threads' walks.
        let same = if one.1[5].is_null() { 0..7 } else { 5..7 };
        assert_eq!((one.0, &one.1[same.clone()]), (other.0, &other.1[same]), "{arguments:?}");
        one
    };
    for (name, text) in with_walks() {
        let (code, figures, text) = walked(&text, &["20,300", "--seed", "7"]);
        let [end, walks, steps, longest, deadlocks, ..] = &figures;
        let numbers = [walks, steps, longest, deadlocks].map(|number| number.as_u64().unwrap());
        assert_eq!((code, end.as_str(), numbers[0]), (Some(0), Some("complete"), 20), "{name} {text}");
        // Each of `c`'s 256 tokens moves once, and each of the three of `p` three times; the others have no deadlock.
        let expected = match name {
            "256" => [5120, 256, 20],
            "lying" => [180, 9, 20],
            _ => [6000, 300, 0],
        };
        if name != "mixed" {
            assert_eq!(numbers[1..], expected, "{name}");
        }
        assert_eq!(text.matches("NUPN").count(), usize::from(name == "lying"), "{text}");
    }
    // Deadlocks, goals and invariants, each with the path to it; the places' names are those of the net.
    let lying = lying().text();
    let (code, figures, _) = walked(&lying, &["5", "--deadlock"]);
    assert_eq!((code, &figures[6]["length"]), (Some(1), &serde_json::json!(9)), "{figures:?}");
    let moving = moving(10, 300).text();
    for (option, condition) in [("--goal", "tokens(p3) == 2"), ("--invariant", "tokens(p3) < 2")] {
        let (code, figures, _) = walked(&moving, &["1000,100", option, condition]);
        assert_eq!((code, figures[0].as_str()), (Some(1), Some("found")), "{option}");
        let is_longest = figures[6]["length"].as_u64().is_some_and(|length| (2..=100).contains(&length));
        assert!(is_longest, "{option}: {figures:?}");
    }
    // Walks of a net without bounds need no more room than they use.
    let unbounded = Net::default().place("p", 1).place("q", 0).transition("t", &["p"], &["p", "q"]).text();
    let (_folder, path) = written_as("net.pnml", &unbounded);
    let output = explore(&path, ["--simulate", "2,1000", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), report["steps"].as_u64()), (Some(0), Some(2000)), "{output:?}");
}
