//! Does the simulator notice when something is taken out of the real headers? Each mutant is a copy of `cuda/` with one change that
//! must make a test of tests/bucket.rs fail.
//!
//! `cargo test -p warpset-simt --test mutants -- --ignored --nocapture`, about a quarter of an hour: everything is compiled and
//! run again for each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

struct Mutant {
    /// What is missing.
    what: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        what: "the compare-and-swap that confirms a chunk seen EMPTY",
        file: "warpset/claim.cuh",
        from: "    if (seen == empty) seen = platform::compare_and_swap_relaxed(chunk, empty, value);\n",
        to: "    if (seen == empty) platform::compare_and_swap_relaxed(chunk, empty, value);\n",
    },
    Mutant {
        what: "the compare with what a failed compare-and-swap returned: a loser goes on to the next slot",
        file: "warpset/claim.cuh",
        from: "    if (seen == empty) return Decision::Won;\n    return seen == value ? Decision::Agreed : Decision::Different;",
        to: "    if (seen == empty) return Decision::Won;\n    return Decision::Different;",
    },
    Mutant {
        what: "the compare with what a failed compare-and-swap returned: a loser takes the slot for its own",
        file: "warpset/claim.cuh",
        from: "    if (seen == empty) return Decision::Won;\n    return seen == value ? Decision::Agreed : Decision::Different;",
        to: "    if (seen == empty) return Decision::Won;\n    return Decision::Agreed;",
    },
    Mutant {
        what: "the prefix check before a later chunk (by one thread)",
        file: "warpset/bucket_table.cuh",
        from: "chunk < layout.chunks() && decision != Decision::Different; ++chunk)",
        to: "chunk < layout.chunks(); ++chunk)",
    },
    Mutant {
        what: "the prefix check before a later chunk (by a warp)",
        file: "warpset/warp_search.cuh",
        from: "            if (different) continue;\n",
        to: "            if (different && first_empty == ~0u) continue;\n",
    },
    Mutant {
        what: "the prefix check after a lost claim (by a warp)",
        file: "warpset/warp_search.cuh",
        from: "        if (decision == Decision::Different) {\n            chunk = look;",
        to: "        if (decision == Decision::Different && chunk + 1 == layout.chunks()) {\n            chunk = look;",
    },
    Mutant {
        what: "the order of chunks: the last EMPTY one of a slot is claimed first (by a warp)",
        file: "warpset/warp_search.cuh",
        from: "if (empty != 0) first_empty = platform::lowest_bit(empty);",
        to: "while (empty != 0) { first_empty = platform::lowest_bit(empty); empty &= empty - 1; }",
    },
    Mutant {
        what: "the order of chunks: the second before the first (by one thread)",
        file: "warpset/bucket_table.cuh",
        from: "decision = decide_chunk(bucket, place, chunk, vector, decision == Decision::Won);",
        to: "decision = decide_chunk(bucket, place, layout.chunks() > 1 && chunk < 2 ? 1 - chunk : chunk, vector, false);",
    },
    Mutant {
        what: "the claim of the last chunk: New for whoever agrees too (by a warp)",
        file: "warpset/warp_search.cuh",
        from: "return decision == Decision::Won ? Outcome::New : Outcome::Seen;",
        to: "return Outcome::New;",
    },
    Mutant {
        what: "the claim of the last chunk: New for whoever won any chunk (by one thread)",
        file: "warpset/bucket_table.cuh",
        from: "            Decision decision = Decision::Agreed;\n            for (u32 chunk = 0; chunk < layout.chunks() && decision != \
               Decision::Different; ++chunk)\n                decision = decide_chunk(bucket, place, chunk, vector, decision == \
               Decision::Won);\n            if (decision == Decision::Different) continue;",
        to: "            Decision decision = Decision::Agreed;\n            bool won = false;\n            for (u32 chunk = 0; chunk < \
             layout.chunks() && decision != Decision::Different; ++chunk) {\n                decision = decide_chunk(bucket, place, \
             chunk, vector, decision == Decision::Won);\n                won |= decision == Decision::Won;\n            }\n            \
             if (decision == Decision::Different) continue;\n            if (won) decision = Decision::Won;",
    },
    Mutant {
        what: "the bar on vectors that look EMPTY (by one thread)",
        file: "warpset/bucket_table.cuh",
        from: "            if (forbids(forbidden, bucket, place)) continue;\n            Decision decision = Decision::Agreed;\n            for \
               (u32 chunk = 0; chunk < layout.chunks() && decision != Decision::Different; ++chunk)",
        to: "            Decision decision = Decision::Agreed;\n            for (u32 chunk = 0; chunk < layout.chunks() && decision != \
             Decision::Different; ++chunk)",
    },
    Mutant {
        what: "the bar on vectors that look EMPTY (by a warp)",
        file: "warpset/warp_search.cuh",
        from: "            if (table.forbids(forbidden, probe.bucket, slot)) continue;\n",
        to: "",
    },
    Mutant {
        what: "all but the last chunk in is_complete",
        file: "warpset/bucket_table.cuh",
        from: "for (u32 chunk = layout.chunks(); complete && chunk-- > 0;)",
        to: "for (u32 chunk = layout.chunks(); complete && chunk-- > layout.chunks() - 1;)",
    },
    Mutant {
        what: "the barrier between seeing slots complete and reading them for another lane",
        file: "warpset/batch.cuh",
        from: "so without this they might see chunks EMPTY.\n        Warp::sync();\n",
        to: "so without this they might see chunks EMPTY.\n",
    },
    Mutant {
        what: "the barrier between the last look at a vector in scratch memory and the next vector",
        file: "warpset/batch.cuh",
        from: "            Warp::sync();  // a vector is read by its tile until here",
        to: "            // a vector is read by its tile until here",
    },
    Mutant {
        what: "the barrier after vectors have been copied to scratch memory",
        file: "warpset/batch.cuh",
        from: "    }\n    platform::Warp::sync();\n}",
        to: "    }\n}",
    },
    Mutant {
        what: "the barrier after the ranks of lanes have been written",
        file: "warpset/batch.cuh",
        from: "        platform::Warp::sync();\n        WARPSET_UNROLL_BY(1)\n",
        to: "        WARPSET_UNROLL_BY(1)\n",
    },
    Mutant {
        what: "a lane in a vote",
        file: "warpset/batch.cuh",
        from: "        u32 hit = platform::Warp::ballot(outcome ==",
        to: "        u32 hit = platform::Warp::lane() == 7 && outcome != Outcome::Unwritten ? 0 : platform::Warp::ballot(outcome ==",
    },
    Mutant {
        what: "a slot at the end of clearing",
        file: "warpset/batch.cuh",
        from: "    const auto share = platform::Grid::share(blocks * block_words);\n",
        to: "    const auto share = platform::Grid::share(blocks * block_words + 1);\n",
    },
    Mutant {
        what: "the count of what is stored (by one thread)",
        file: "warpset/bucket_table.cuh",
        from: "        platform::count_relaxed(view.stored, found.outcome == Outcome::New);\n",
        to: "",
    },
    Mutant {
        what: "a probe: vectors leave a bucket with a free slot (by a warp)",
        file: "warpset/warp_search.cuh",
        from: "return ++place == layout.slots_per_bucket() ? next_bucket() : Outcome::Unwritten;",
        to: "return next_bucket();",
    },
];

#[test]
#[ignore = "compiles and runs everything again for each mutant"]
fn every_mutant_is_killed() {
    let only = std::env::var("WARPSET_SIMT_MUTANT").ok();
    let wanted = |mutant: &&Mutant| only.as_ref().is_none_or(|only| mutant.what.contains(only.as_str()));
    let survivors: Vec<&str> =
        MUTANTS.iter().filter(wanted).filter(|mutant| survives(mutant)).map(|mutant| mutant.what).collect();
    assert!(survivors.is_empty(), "not noticed: {survivors:#?}");
}

/// Whether all tests pass without what the mutant lacks; says which fail.
fn survives(mutant: &Mutant) -> bool {
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cuda");
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutant");
    let _ = fs::remove_dir_all(&copy);
    copy_folder(&headers, &copy);
    let file = copy.join(mutant.file);
    let text = fs::read_to_string(&file).expect("a header");
    assert_eq!(text.matches(mutant.from).count(), 1, "{}: the text to change must be there once", mutant.what);
    fs::write(&file, text.replace(mutant.from, mutant.to)).expect("a copy can be written");

    let output = Command::new(env!("CARGO"))
        .args(["test", "--package", "warpset-simt", "--test", "bucket"])
        .env("WARPSET_SIMT_HEADERS", &copy)
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutants"))
        .output()
        .expect("cargo runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("running "), "{} does not compile:\n{errors}", mutant.what);
    let failed: Vec<&str> = text.lines().filter_map(|line| line.strip_suffix("... FAILED")).map(str::trim).collect();
    let how = text.lines().find(|line| line.contains(": ") && line.starts_with("bucket-") && !line.contains("schedules,"));
    println!(
        "{}: {}; {} trials fail; {}",
        if failed.is_empty() { "SURVIVES" } else { "killed" },
        mutant.what,
        failed.len(),
        how.unwrap_or("")
    );
    failed.is_empty()
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("a folder") {
        let path: PathBuf = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy_folder(&path, &target)
        } else {
            fs::copy(&path, &target).map(drop).expect("a file can be copied")
        }
    }
}
