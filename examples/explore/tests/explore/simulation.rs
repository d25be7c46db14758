//! Random walks on a GPU are those of threads.

use crate::{TableOnDevice, file, json_on, model, nets, written, written_as};
use std::path::Path;

/// Figures that are the same for every engine, if no walk finds anything.
const NUMBERS: [&str; 6] = ["end", "walks_taken", "steps", "longest", "deadlocks", "overflows"];

fn are_the_same(model: &Path, arguments: &[&str]) {
    let (code, by_threads) = json_on("cpu:2", model, &[arguments, &["--engine", "interpreted"]].concat());
    let (gpu_code, on_gpu) = json_on("gpu", model, arguments);
    assert_eq!(on_gpu["engine"], "gpu", "{on_gpu}");
    assert_eq!((code, &by_threads["walk"], &by_threads["path"]), (gpu_code, &on_gpu["walk"], &on_gpu["path"]), "{arguments:?}");
    if by_threads["walk"].is_null() {
        for number in NUMBERS {
            assert_eq!(by_threads[number], on_gpu[number], "{number} of {} {arguments:?}", model.display());
        }
    }
}

pub fn walks_on_a_gpu_are_those_of_threads(_: TableOnDevice) {
    // One walk, as many as a block has threads and a few more, and walks that end at once.
    for walks in ["1,200", "131,200", "300,1"] {
        are_the_same(&model("peterson"), &["--simulate", walks]);
    }
    are_the_same(&model("readers_writers"), &["--simulate", "200,500", "--seed", "9"]);
    are_the_same(&model("readers_writers"), &["--simulate", "200,500", "--deadlock"]);
    are_the_same(&file("vending.slco"), &["--simulate", "150,100"]);
    are_the_same(&file("crossing.exp"), &["--simulate", "150,100"]);
    // Among many walks the first one that finds something is shown.
    for seed in ["3", "4"] {
        let invariant = "P_0.critical + P_1.critical <= 1";
        are_the_same(&model("peterson_wrong"), &["--simulate", "1000,50", "--seed", seed, "--invariant", invariant]);
    }
    // States of many words, values that wrap, and a fault.
    let wide = |effect: &str| {
        format!(
            "byte a[40]; int i; process P {{ state s; init s; trans s -> s {{ effect a[i] = a[i] + 7, i = {effect}; }},
             s -> s {{ guard i % 3 == 0; effect a[39 - i] = a[39 - i] * 3 + 1; }}; }} system async;"
        )
    };
    for effect in ["(i + 1) % 40", "i + 1"] {
        let (_folder, path) = written(&wide(effect));
        are_the_same(&path, &["--simulate", "40,2000"]);
    }
    for (_, text) in nets::with_walks() {
        let (_folder, path) = written_as("net.pnml", &text);
        are_the_same(&path, &["--simulate", "140,70"]);
    }
    let (_folder, path) = written_as("net.pnml", &nets::with_walks()[1].1);
    are_the_same(&path, &["--simulate", "400,100", "--goal", "tokens(p3) == 2"]);
}
