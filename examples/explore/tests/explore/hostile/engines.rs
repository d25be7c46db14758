//! Random models in every engine, table and number of ranks, compared with the interpreter and a bucket table.
//!
//! Models are of two kinds: models of the folder `models` in every language, with changes after which they are still models; and
//! texts from a generator that uses every construct of DVE. `WARPSET_FUZZ_MODELS` is the number of models of each language: 2 if
//! it is not set, 20 with `WARPSET_TEST_FULL=1`. `WARPSET_FUZZ_FIRST` is the number of the first one.
//!
//! Keeps this promise of `examples/explore/docs/engines.md`:
//!
//! - Every engine, table and number of ranks finds what the interpreter finds.

use super::{change, path_of, program, read, run, setting, written};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;
use warpset_testing::sizes::sized;

/// Engines, tables and ranks beside the interpreter with buckets on one thread.
const OTHERS: [&[&str]; 9] = [
    &["--device", "cpu:3", "--engine", "interpreted"],
    &["--engine", "interpreted", "--table", "tree"],
    &["--engine", "interpreted", "--table", "tree-compact"],
    &["--engine", "interpreted", "--table", "indexed"],
    &["--device", "cpu:2", "--engine", "interpreted", "--local-ranks", "2"],
    &["--device", "cpu:2", "--engine", "interpreted", "--local-ranks", "5", "--table", "tree"],
    &["--engine", "compiled"],
    &["--device", "cpu:2", "--engine", "compiled", "--table", "indexed", "--parents"],
    &["--device", "cpu:2", "--engine", "compiled", "--local-ranks", "3", "--table", "tree-compact"],
];

const ON_GPUS: [&[&str]; 4] = [
    &["--device", "gpu"],
    &["--device", "gpu", "--table", "tree"],
    &["--device", "gpu", "--table", "tree-compact"],
    &["--device", "gpu", "--table", "indexed"],
];

/// Results that all runs must have in common: the exit code and counts of a complete search, or the length of the path to the
/// violation that ended it; and the verdicts with the numbers of violating states.
#[derive(Debug, PartialEq)]
enum Found {
    All { code: i32, counts: [Option<u64>; 6], checks: Value },
    Ended { violation: String, length: Option<u64>, checks: Value },
}

/// `None` if a limit ended the search, or the text is no model.
fn found(code: i32, report: &Value) -> Option<Found> {
    let number = |name: &str| report["counts"][name].as_u64();
    let checks = report["checks"].clone();
    match (code, report["violation"].as_str()) {
        (2 | 3, _) => None,
        (_, Some(violation)) if report["complete"] != true => {
            // A fault may end a search within its level.
            let checks = if report["checks"][0]["kind"] == "fault" { Value::Null } else { checks };
            Some(Found::Ended { violation: violation.to_owned(), length: report["path"]["length"].as_u64(), checks })
        }
        _ => {
            let counts = ["states", "transitions", "deadlocks", "levels", "widest_level", "overflows"].map(number);
            Some(Found::All { code, counts, checks })
        }
    }
}

#[cfg(feature = "cuda")]
fn there_is_a_gpu() -> bool {
    warpset::Device::gpus().is_ok_and(|gpus| !gpus.is_empty())
}

#[cfg(not(feature = "cuda"))]
fn there_is_a_gpu() -> bool {
    false
}

/// Compares a model, if the text is a model with few states. Returns whether it is.
fn compared(path: &str, question: &[&str]) -> bool {
    let explore = |options: &[&str]| {
        let most = ["--max-states", "3000", "--timeout", "100", path];
        run(&program("explore"), &[options, question, &most[..]].concat().into_iter().map(String::from).collect::<Vec<_>>())
    };
    let (code, report) = explore(&["--engine", "interpreted", "--table", "bucket"]).unwrap_or_else(|said| panic!("{said}"));
    let Some(expected) = found(code, &report) else {
        return false;
    };
    let on_gpus = if there_is_a_gpu() { &ON_GPUS[..] } else { &[] };
    for other in OTHERS.iter().chain(on_gpus) {
        let (code, report) = explore(other).unwrap_or_else(|said| panic!("{other:?}: {said}"));
        assert_eq!(found(code, &report).as_ref(), Some(&expected), "{other:?} {question:?}: {report}");
    }
    true
}

/// Compares models until enough were compared. `make` writes a model into a folder, and returns its path.
fn models(language: &str, make: impl Fn(&Path, u64) -> String) {
    let wanted = setting("WARPSET_FUZZ_MODELS").unwrap_or(sized(20, 2, 2));
    let first = setting("WARPSET_FUZZ_FIRST").unwrap_or(0);
    let (mut compared_models, mut tried) = (0, 0);
    while compared_models < wanted {
        assert!(tried < 100 + 60 * wanted, "{language}: only {compared_models} of {tried} texts are models");
        let (folder, number) = (TempDir::new().expect("a folder"), first + tried);
        let path = make(folder.path(), number);
        // With `--deadlock` a state without a step ends the search; without it all states are counted.
        let question: &[&str] = match number % 3 {
            0 => &["--deadlock"],
            1 => &["--deadlock", "--goal", "1 == 1", "--invariant", "1 == 1", "--keep-going"],
            _ => &[],
        };
        match std::panic::catch_unwind(|| compared(&path, question)) {
            Ok(is_model) => compared_models += u64::from(is_model),
            Err(panic) => {
                eprintln!(
                    "{language}: WARPSET_FUZZ_MODELS=1 WARPSET_FUZZ_FIRST={number} does it again; {}",
                    folder.keep().display()
                );
                std::panic::resume_unwind(panic);
            }
        }
        tried += 1;
    }
    if setting("WARPSET_FUZZ_MODELS").is_some() {
        println!("{language}: {compared_models} models of {tried} texts agree in {} engines, tables and ranks", OTHERS.len() + 1);
    }
}

/// Changed texts of the folder `models`.
fn changed_models(language: &str, names: &[&str], extension: &str) {
    let texts: Vec<_> = names.iter().map(|name| read(name)).collect();
    models(language, |folder, number| {
        let mut random = StdRng::seed_from_u64(number);
        let text = change::text(texts.choose(&mut random).expect("a model"), &mut random);
        written(folder, &format!("model.{extension}"), &text)
    });
}

pub fn changed_models_in_dve() {
    changed_models("DVE", &["mailbox.dve", "peterson.dve", "philosophers.dve", "readers_writers.dve", "river.dve"], "dve");
}

pub fn changed_models_in_slco() {
    changed_models("SLCO", &["vending.slco"], "slco");
}

pub fn changed_networks() {
    models("EXP", |folder, number| {
        let mut random = StdRng::seed_from_u64(number);
        let files = ["crossing.exp", "train.aut", "gate.aut", "controller.aut"];
        let changed = random.random_range(0..files.len());
        for (at, name) in files.iter().enumerate() {
            let text = read(name);
            written(folder, name, &if at == changed { change::text(&text, &mut random) } else { text });
        }
        folder.join(files[0]).to_str().expect("a name").to_owned()
    });
}

pub fn generated_models() {
    models("generated DVE", |folder, number| {
        let seed: [u8; 32] = std::array::from_fn(|at| (number >> (8 * (at % 8))) as u8);
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let text = warpset_random_models::model()
            .new_tree(&mut TestRunner::new_with_rng(Config::default(), random))
            .expect("a model")
            .current();
        written(folder, "model.dve", text.as_bytes())
    });
}

/// The reference search of a known model is successful: the comparison does compare something.
pub fn the_comparison_compares() {
    assert!(compared(&path_of("peterson.dve"), &[]));
    assert!(compared(&path_of("philosophers.dve"), &["--deadlock"]));
}
