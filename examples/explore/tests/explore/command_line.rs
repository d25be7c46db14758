//! Options, models that are read, messages about them, and searches without a table.
//!
//! Keeps this promise of `examples/explore/docs/languages.md`:
//!
//! - Models of other tools are refused with advice; errors suggest the name that was meant (also
//!   `examples/explore/model/src/dve/tests.rs`, `examples/explore/model/src/slco/tests.rs`).

use super::*;

pub fn options_that_would_do_nothing_are_refused() {
    for (arguments, part) in [
        (&["--engine", "gpu", "--record", "x.npz"][..], if cfg!(feature = "cuda") { "--record needs" } else { "`cuda` is off" }),
        (&["--engine", "gpu"], if cfg!(feature = "cuda") { "needs a table on a GPU" } else { "`cuda` is off" }),
        (&["--cycles"], "--cycles needs --engine gpu"),
        (&["--engine", "compiled", "--cycles"], "--cycles needs --engine gpu"),
        (&["--table", "indexed", "--ef", "P_0.critical"], "--table indexed cannot be combined with a property"),
        (&["--table", "tree", "--parents"], "--parents needs --table indexed"),
        (&["--local-ranks", "2", "--parents"], "--parents cannot be combined with ranks"),
        (&["--nodes", "1000", "--table", "bucket"], "--nodes is for tree tables only: it needs --table tree"),
    ] {
        let output = explore(&model("peterson"), arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{text}");
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("explore.cu");
    let output = explore(&model("peterson"), ["--emit", file.to_str().unwrap()]);
    assert_eq!((output.status.success(), file.is_file()), (cfg!(feature = "cuda"), cfg!(feature = "cuda")), "{output:?}");
}

pub fn errors_have_their_exit_code_and_place() {
    let (_folder, path) = written("byte x;\nprocess P { state s; init t; }\nsystem async;");
    let fails = |path: &Path, arguments: &[&str], parts: &[&str]| {
        let output = explore(path, arguments);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{text}");
        parts.iter().for_each(|part| assert!(text.contains(part), "{part} is missing:\n{text}"));
    };
    fails(&path, &[], &["there is no state `t`", "model.dve:2:27", "process P { state s; init t; }"]);
    fails(
        &model("peterson"),
        &["--invariant", "P_0.crit == 1"],
        &["there is no state or variable of P_0 `crit`", "--invariant:1:5"],
    );
    fails(&model("missing"), &[], &["missing.dve cannot be read"]);
    fails(&model("peterson"), &["--capacity", "many"], &["not a number"]);
}

/// Clang accepts 256 nested brackets unless an option allows more; no other compiler knows that option.
#[cfg(unix)]
pub fn deep_brackets_are_asked_of_clang_only() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, path) = written(COUNTERS);
    let [compiler, arguments] = ["compiler", "arguments"].map(|name| folder.path().join(name));
    for (version, takes_brackets) in [("Debian clang version 19.1.7", true), ("c++ (Debian 14.2.0) 14.2.0", false)] {
        let script = format!(
            "#!/bin/sh\nif [ \"$1\" = --version ]; then echo '{version}'; exit; fi\necho \"$@\" > '{}'\necho no >&2\nexit 1\n",
            arguments.display()
        );
        std::fs::write(&compiler, script).unwrap();
        std::fs::set_permissions(&compiler, std::fs::Permissions::from_mode(0o755)).unwrap();
        until_it_runs(&compiler);
        let output = Command::new(EXPLORE)
            .arg(&path)
            .args(["--device", "cpu:2", "--engine", "compiled"])
            .env("CXX", &compiler)
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && message.contains("did not compile") && message.contains("no\n"), "{output:?}");
        let arguments = std::fs::read_to_string(&arguments).unwrap();
        assert_eq!(arguments.contains("-fbracket-depth"), takes_brackets, "{arguments}");
    }
}

/// The interpreter, with which `auto` begins, and the compiled code that replaces it count the same. Whether a compiler exists
/// and works does not change the counts.
pub fn compiled_code_may_come_later_or_never() {
    let (_folder, path) = written(&COUNTERS.replace("30", "70"));
    for compiler in [None, Some("false"), Some("/no/compiler")] {
        let mut command = Command::new(EXPLORE);
        command.arg(&path).args(["--device", "cpu:2", "--json"]);
        if let Some(compiler) = compiler {
            command.env("CXX", compiler);
        }
        let output = command.output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        assert_eq!(counts(&report), [357_911, 1_058_610, 1, 211, 3781], "{report}");
        let engine = report["engine"].as_str().unwrap();
        assert!(engine.starts_with("interpreted") && (compiler.is_none() || !engine.contains("then compiled")), "{engine}");
    }
}

/// The next search of a model takes the functions that one has compiled, unless they are damaged, the cache is off, or the model
/// or an option is another one.
#[cfg(unix)]
pub fn compiled_functions_are_kept() {
    use std::os::unix::fs::PermissionsExt;
    let folder = TempDir::new().unwrap();
    let [compiler, log, cache] = ["compiler", "log", "cache"].map(|name| folder.path().join(name));
    let script =
        format!("#!/bin/sh\nif [ \"$1\" != --version ]; then echo compiled >> '{}'; fi\nexec c++ \"$@\"\n", log.display());
    std::fs::write(&compiler, script).unwrap();
    std::fs::set_permissions(&compiler, std::fs::Permissions::from_mode(0o755)).unwrap();
    until_it_runs(&compiler);
    // Whether a search of the model has compiled.
    let compiles = |model: &str, arguments: &[&str], variables: &[(&str, &str)]| {
        let before = std::fs::read_to_string(&log).unwrap_or_default();
        let mut command = command_of(file(model).to_str().unwrap(), &["--json", "--engine", "compiled"]);
        command.args(arguments).env("CXX", &compiler).env("WARPSET_CACHE_DIR", &cache).env_remove("WARPSET_CACHE");
        let report = only_object(&command.envs(variables.iter().copied()).output().unwrap());
        assert_eq!(report["complete"], Value::Bool(true), "{report}");
        let (_, interpreted) = json(&file(model), &[arguments, &["--engine", "interpreted"]].concat());
        assert_eq!(counts(&report), counts(&interpreted));
        std::fs::read_to_string(&log).unwrap_or_default() != before
    };
    assert!(compiles("peterson.dve", &[], &[]));
    assert!(!compiles("peterson.dve", &[], &[]));
    assert!(compiles("mailbox.dve", &[], &[]));
    assert!(compiles("peterson.dve", &["--reduce", "deadlocks"], &[]));
    assert!(compiles("peterson.dve", &[], &[("WARPSET_CACHE", "off")]));
    assert!(!compiles("mailbox.dve", &[], &[]) && !compiles("peterson.dve", &["--reduce", "deadlocks"], &[]));
    for kept in std::fs::read_dir(&cache).unwrap() {
        let path = kept.unwrap().path();
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    }
    assert!(compiles("peterson.dve", &[], &[]));
    assert!(!compiles("peterson.dve", &[], &[]));
}

pub fn files_may_have_a_byte_order_mark_and_other_bytes_in_comments() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("model.dve");
    let model = std::fs::read(model("peterson")).unwrap();
    std::fs::write(&path, [b"\xef\xbb\xbf// caf\xe9\n", &model[..]].concat()).unwrap();
    let (code, report) = json(&path, &[]);
    assert_eq!((code, counts(&report)[..4].to_vec()), (Some(0), vec![20, 34, 0, 7]));
}

pub fn help_teaches() {
    let output = Command::new(EXPLORE).arg("--help").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    for part in
        ["--invariant 'P_0.CS + P_1.CS <= 1'", "130  interrupted", "--max-states", "--memory", "--timeout", "--record", "--table"]
    {
        assert!(text.contains(part), "{part} is missing");
    }
}

pub fn manuals_and_completions_are_generated() {
    let generate = |kind: &str| Command::new(EXPLORE).args(["--generate", kind]).output().unwrap();
    for (kind, part) in [
        ("man", ".TH explore 1"),
        ("complete-bash", "--checkpoint-every"),
        ("complete-zsh", "#compdef explore"),
        ("complete-fish", "complete -c explore"),
        ("complete-powershell", "Register-ArgumentCompleter"),
        ("complete-elvish", "edit:completion"),
    ] {
        let output = generate(kind);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && output.stderr.is_empty() && text.contains(part), "{kind}: {output:?}");
    }
    let output = generate("html");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("complete-zsh"), "{said}");
    let output = explore(&model("peterson"), ["--generate", "man"]);
    assert!(output.status.code() == Some(2) && output.stdout.is_empty(), "{output:?}");
}

pub fn models_of_other_tools_are_refused_with_advice() {
    let folder = TempDir::new().unwrap();
    for (name, parts) in [
        ("leader.pml", ["Promela", "write the model in DVE"]),
        ("Queue.TLA", ["TLA+", ".aut"]),
        ("cache.m", ["Murphi", "write the model in DVE"]),
        ("abp.mcrl2", ["mCRL2", "lps2lts"]),
    ] {
        let path = folder.path().join(name);
        std::fs::copy(model("peterson"), &path).unwrap();
        let output = explore(&path, ["--json"]);
        let error = only_object(&output)["error"].as_str().unwrap().to_string();
        assert!(output.status.code() == Some(2) && parts.iter().all(|part| error.contains(part)), "{error}");
        // The option decides, whatever the name is.
        assert_eq!(counts(&json(&path, &["--format", "dve"]).1)[0], 20);
    }
}

pub fn numbers_agree_with_their_nouns() {
    let (_folder, path) = written("process P { state s; init s; trans s -> s {}; } system async;");
    let output = explore(&path, ["--goal", "P.s"]);
    let text = String::from_utf8_lossy(&output.stdout);
    for part in ["(1 word per state)", "levels             1 (the widest has 1 state)", "has 0 steps"] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
    let (_folder, path) = written("");
    let output = explore(&path, [""; 0]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("the text is empty"), "{output:?}");
}

pub fn models_are_stepped_through() {
    let step = |model: &Path, options: &[&str], commands: &str| {
        let mut command = Command::new(EXPLORE);
        let mut child = spawned(command.arg(model).args(["--device", "cpu:2", "--step"]).args(options));
        child.stdin.take().unwrap().write_all(commands.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, text) = step(&model("peterson"), &[], "1\nu\ne P_0.idle\nq\n");
    assert!(code == Some(0) && text.starts_with("state 0: P_0.idle, P_1.idle\n  1. P_0: idle -> asked"), "{text}");
    assert!(text.contains("state 1: P_0.asked") && text.ends_with("\n1\n"), "{text}");
    let (code, text) = step(&model("peterson_wrong"), &["--invariant", "P_0.critical + P_1.critical <= 1"], "n 6\nn\n");
    assert!(
        code == Some(1) && text.contains("The shortest path has 6 steps") && text.contains("state 6: P_0.critical, P_1.critical"),
        "{text}"
    );
    assert!(text.ends_with("the path ends here\n"), "{text}");
    let (code, text) = step(&model("peterson"), &["--ltl", "G F P_0.critical"], "n 5\n");
    assert!(code == Some(1) && text.contains("state 5: ") && text.contains("automaton."), "{text}");
    let (code, _) = step(Path::new("-"), &[], "");
    assert_eq!(code, Some(2));
}

pub fn walks_find_the_same_path_with_any_number_of_threads() {
    let path = model("peterson_wrong");
    let walk = |device: &str, more: &[&str]| {
        let arguments =
            [&["--simulate", "1000,50", "--seed", "3", "--invariant", "P_0.critical + P_1.critical <= 1", "--json"], more]
                .concat();
        let output = explore_on(device, &path, arguments);
        (output.status.code(), only_object(&output))
    };
    let (code, one) = walk("cpu:1", &["--engine", "interpreted"]);
    assert_eq!((code, one["end"].as_str()), (Some(1), Some("found")), "{one}");
    let last = &one["path"]["final"]["locations"];
    assert_eq!((last["P_0"].as_str(), last["P_1"].as_str()), (Some("critical"), Some("critical")), "{one}");
    assert!(one["path"]["length"].as_u64().is_some_and(|length| (6..=50).contains(&length)), "{one}");
    let (_, other) = walk("cpu:4", &[]);
    assert_eq!((&one["walk"], &one["path"]), (&other["walk"], &other["path"]));
    // All walks are complete where nothing is wrong, and where a deadlock is only counted.
    let (code, report) = json(&model("peterson"), &["--simulate", "100,200"]);
    let numbers = ["walks_taken", "steps", "longest"].map(|name| report[name].as_u64());
    assert_eq!((code, numbers), (Some(0), [Some(100), Some(20_000), Some(200)]), "{report}");
    let (code, report) = json(&model("readers_writers"), &["--simulate", "200,500"]);
    assert!(code == Some(0) && report["deadlocks"].as_u64().is_some_and(|count| count > 0), "{report}");
    let output = explore(&model("readers_writers"), ["--simulate", "200,500", "--deadlock"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.code() == Some(1) && text.contains("There: deadlock: no step is possible") && text.contains("\nWalk "),
        "{text}"
    );
    let no_gpu = ["--device", "gpu", "--engine", "compiled"];
    for refused in [&["--ltl", "G true"][..], &["--local-ranks", "2"], &no_gpu, &["--export", "x.aut"]] {
        let output = explore(&model("peterson"), [&["--simulate", "10"], refused].concat());
        assert_eq!(output.status.code(), Some(2), "{refused:?}: {output:?}");
    }
    let (_folder, path) = written(ENDLESS);
    let (code, report) = json(&path, &["--simulate", "2^50", "--timeout", "1", "--engine", "interpreted"]);
    assert_eq!((code, report["end"].as_str()), (Some(3), Some("timeout")), "{report}");
}

/// Values of a text that do not fit, of every kind.
const UNFIT: &str = "const byte N = 300;
byte x = 300, a[2] = {1, 2, 3}, b[3] = {1};
int y = -2147483648, z = 1 << 70;
process P { state s, t; init s; trans s -> t { guard x == 44 and N == 44; effect x = 256; }; }
system async;";

pub fn what_does_not_fit_is_said() {
    let (_folder, path) = written(UNFIT);
    let output = explore(&path, ["--invariant", "x << 32 < 300"]);
    let (text, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for part in [
        "300 does not fit a byte, which holds 0 to 255",
        "model.dve:1:16",
        "const byte N = 300;",
        "becomes 44",
        "model.dve:2:10",
        "the array `a` has 2 elements, but its list has 3 values",
        "model.dve:2:29",
        "the array `b` has 3 elements, but its list has 1 value",
        "-2147483648 does not fit an int, which holds -32768 to 32767",
        "becomes 0",
        "a shift by 70; only 0 to 31 are possible",
        "shifts by 6",
        "256 does not fit a byte",
        "a shift by 32",
        "--invariant:1:3",
    ] {
        assert!(said.contains(part), "{part} is missing:\n{said}");
    }
    // The six values are N, x, the third value, y and two shifts; the store of 256 is counted when it takes place.
    let line = text.lines().find(|line| line.starts_with("overflows ")).unwrap();
    assert!(line.contains("1 store wrapped; 6 values of the text not taken as written (see the warnings)"), "{line}");
    let (code, report) = json(&path, &["--invariant", "x << 32 < 300"]);
    assert_eq!((code, counts(&report)[0]), (Some(0), 2));
    let numbers = ["overflows", "overflows_of_text", "warning_count"].map(|name| report[name].as_u64().unwrap());
    assert_eq!(numbers, [7, 6, 8]);
    let first = &report["warnings"][0];
    assert!(first["place"].as_str().unwrap().ends_with("model.dve:1:16"), "{first}");
    assert_eq!(first["message"], "300 does not fit a byte, which holds 0 to 255: becomes 44");
    assert_eq!(report["warnings"].as_array().unwrap().len(), 8);
    // Warnings appear with every kind of question.
    for question in ["--ltl", "--ef", "--livelock"] {
        let (code, report) = json(&path, &[question, "x << 32 < 300"]);
        assert_eq!((code, report["warning_count"].as_u64()), (Some(0), Some(8)), "{question}");
    }

    let output = explore(&path, ["--strict", "--json"]);
    let error = only_object(&output)["error"].as_str().unwrap().to_string();
    assert!(output.status.code() == Some(2) && error.contains("model.dve:1:16: 300 does not fit a byte"), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("Error: a shift by 70"), "{output:?}");
    let (_folder, path) = written("byte x = 255; process P { state s; init s; } system async;");
    assert_eq!(json(&path, &["--strict"]).0, Some(0));
    let output = explore(&path, ["--strict", "--goal", "1 << 70 == x"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    // There may be one warning per value.
    let (_folder, path) =
        written(&UNFIT.replace("{1, 2, 3}", &format!("{{{}1}}", "300, ".repeat(999))).replace("a[2]", "a[1000]"));
    let output = explore(&path, [""; 0]);
    assert!(String::from_utf8_lossy(&output.stderr).ends_with("... and 985 more like these\n"), "{output:?}");
}

pub fn models_that_are_no_files_or_too_long_are_refused() {
    let folder = TempDir::new().unwrap();
    let fails = |path: &Path, part: &str| {
        let output = explore(path, ["--json"]);
        assert!(output.status.code() == Some(2) && only_object(&output)["error"].as_str().unwrap().contains(part), "{output:?}");
    };
    fails(folder.path(), "a directory, not a file");
    let large = folder.path().join("large.dve");
    std::fs::File::create(&large).unwrap().set_len((16 << 20) + 1).unwrap();
    fails(&large, "(16,777,217 bytes), but a model has at most 16.00 MiB (16,777,216 bytes)");
    if cfg!(unix) {
        fails(Path::new("/dev/zero"), "a device: a file");
    }
    let empty = folder.path().join("empty.dve");
    std::fs::write(&empty, "").unwrap();
    fails(&empty, "the text is empty");
    // A pipe has no length to check.
    let mut child = spawned(&mut command_of("-", &["--json"]));
    let mut pipe = child.stdin.take().unwrap();
    let blanks = vec![b' '; 1 << 20];
    let written = (0..17).map(|_| pipe.write_all(&blanks)).find(Result::is_err);
    drop((pipe, written));
    let output = child.wait_with_output().unwrap();
    assert!(only_object(&output)["error"].as_str().unwrap().contains("the input is longer than 16.00 MiB"), "{output:?}");
}

pub fn models_come_from_standard_input_too() {
    let mut child = spawned(&mut command_of("-", &["--json"]));
    child.stdin.take().unwrap().write_all(&std::fs::read(model("river")).unwrap()).unwrap();
    let report = only_object(&child.wait_with_output().unwrap());
    assert_eq!((counts(&report)[..4].to_vec(), report["model"].as_str()), (vec![10, 20, 0, 8], Some("standard input")));
}
