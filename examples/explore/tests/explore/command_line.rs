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
        (&["--cycles"], "--gpu-time needs --engine gpu"), // its earlier name
        (&["-deadlock"], "tip: an option has two dashes: '--deadlock'"),
        (&["-workers", "4"], "tip: an option has two dashes: '--workers'"),
        (&["--workers", "auto"], "not a number of threads; --device cpu takes one for each core"),
        (&["--workers", "2"], "'--workers <N>' cannot be used with '--device"),
        (&["--max-depth", "3", "--ltl", "G P_0.critical"], "'--max-depth <STEPS>' cannot be used with '--ltl"),
        (&["--gpu-time"], "--gpu-time needs --engine gpu"),
        (&["--engine", "compiled", "--gpu-time"], "--gpu-time needs --engine gpu"),
        (&["--table", "indexed", "--ef", "P_0.critical"], "--table indexed cannot be combined with questions about runs"),
        (&["--table", "tree", "--parents"], "--parents needs --table indexed"),
        (&["--local-ranks", "2", "--parents"], "'--local-ranks <RANKS>' cannot be used with '--parents'"),
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

/// Each output that is asked for together with a job is written, reported as not written, or refused with both names.
pub fn outputs_are_written_or_refused() {
    let (_folder, path) =
        written("byte x; process P { state s; init s; trans s -> s { guard x < 9; effect x = x + 1; }; } system async;");
    let jobs = [
        &["--deadlock"][..],
        &["--goal", "x == 3"],
        &["--ltl", "F x == 4"],
        &["--ltl", "G x < 4"],
        &["--ef", "x == 3"],
        &["--livelock", "x == 3"],
        &["--goal", "x == 3", "--keep-going"],
        &["--step"],
        &["--goal", "x == 3", "--step"],
        &["--simulate", "5", "--goal", "x == 3"],
        &["--dependencies", "JOB"],
        &["--emit", "JOB"],
        &["--emit-buchi", "JOB", "--ltl", "G x < 4"],
        &["--local-ranks", "2", "--goal", "x == 3"],
        &["--reduce", "deadlocks", "--deadlock"],
        &["--parents", "--goal", "x == 3"],
        &["--gpu-time"],
        &["--record", "JOB"],
        &["--export", "JOB.aut"],
        &["--checkpoint", "JOB"],
    ];
    let outputs = [
        ("--export", "x.aut"),
        ("--export", "x.npz"),
        ("--export", "x.dot"),
        ("--coverage", "x.json"),
        ("--record", "x.npz"),
        ("--checkpoint", "x.checkpoint"),
        ("--trace", "x.json"),
        ("--trace", "x.svg"),
        ("--report", "x.html"),
        ("--dependencies", "x.txt"),
        ("--emit", "x.cu"),
        ("--emit-buchi", "x.hoa"),
    ];
    let (mut count, mut refused) = (0, 0);
    for job in jobs {
        for (option, name) in outputs.iter().filter(|(option, _)| !job.contains(option)) {
            let folder = TempDir::new().unwrap();
            let file = folder.path().join(name);
            let own = |word: &str| word.replace("JOB", folder.path().join("own").to_str().unwrap());
            let mut arguments: Vec<String> = job.iter().map(|word| own(word)).collect();
            arguments.extend([option.to_string(), file.to_str().unwrap().into()]);
            let output = explore(&path, &arguments);
            let [text, said] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
            count += 1;
            if output.status.code() == Some(2) {
                let lacks = ["`cuda` is off", "needs --engine gpu", "there is no property"];
                let is_lack = lacks.iter().any(|lack| said.contains(lack));
                let names_both = said.contains(option) && job.iter().any(|word| word.starts_with("--") && said.contains(word));
                assert!(is_lack || names_both, "{job:?} {option}: {said}");
                assert!(!file.exists(), "{job:?} {option}");
                refused += 1;
            } else {
                let row = match *option {
                    "--trace" => "trace              NOTHING written",
                    "--export" => "exported           NOTHING",
                    "--checkpoint" => "checkpoint         none was due",
                    _ => "is written in any case",
                };
                assert!(file.exists() || text.contains(row), "{job:?} {option} {name}: {output:?}");
            }
        }
    }
    assert!(refused > 60 && refused < count - 60, "{refused} of {count}");
    // Limits and tables that a job does not have.
    for arguments in [
        &["--simulate", "5", "--table", "tree"][..],
        &["--simulate", "5", "--capacity", "100"],
        &["--simulate", "5", "--memory", "1G"],
        &["--step", "--table", "tree"],
        &["--step", "--local-ranks", "2"],
        &["--step", "--max-states", "5"],
        &["--dependencies", "x", "--goal", "x == 3"],
        &["--emit", "x", "--ef", "x == 3"],
        &["--emit-buchi", "x", "--ltl", "G x < 4", "--fair", "weak"],
    ] {
        let output = explore(&path, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        let names = arguments.iter().filter(|word| word.starts_with("--") && said.contains(**word)).count();
        assert!(output.status.code() == Some(2) && output.stdout.is_empty() && names >= 2, "{arguments:?}: {output:?}");
    }
    let (_folder, path) = written(
        "int a[8]; byte i; process P { state s; init s; trans s -> s { guard i < 8; effect a[i] = a[i] * 3 + 1, i = i + 1; }; } system async;",
    );
    let (_, report) = json(&path, &["--nodes", "1000"]);
    assert!(report["table"]["kind"].as_str().is_some_and(|table| table.contains("tree")), "{report}");
}

/// A net as ProM and PIPE write it: with parts that only tools understand, and a reference on a second page.
const NET_OF_TOOLS: &str = r#"<pnml><toolspecific tool="ProM" version="6"/>
<net id="n" type="http://www.pnml.org/version-2009/grammar/pnmlcoremodel"><toolspecific tool="ProM" version="6"/>
<page id="one"><place id="p"><initialMarking><text>1</text><toolspecific tool="PIPE" version="2"/></initialMarking></place>
<place id="q"><initialMarking><text></text></initialMarking><toolspecific/></place>
<transition id="t"><name><text>go</text></name><rate><value>1.0</value></rate></transition>
<arc id="a" source="p" target="t"/><arc id="b" source="t" target="q"><inscription><text/></inscription></arc></page>
<page id="two"><referencePlace id="r" ref="s"><name><text>end</text></name></referencePlace><referencePlace id="s" ref="q"/>
<referenceTransition id="u" ref="t"><name><text>go</text></name></referenceTransition></page>
<finalmarkings><marking><place idref="q"><text>1</text></place></marking></finalmarkings></net></pnml>"#;

pub fn parts_of_a_net_that_are_ignored_are_reported() {
    let (_folder, path) = written_as("net.pnml", NET_OF_TOOLS);
    let expected = [
        ("parts of the tool ProM", 2),
        ("parts of the tool PIPE", 1),
        ("annotations `initialMarking` without a number, which are 0", 1),
        ("parts of an unnamed tool", 1),
        ("rates of transitions", 1),
        ("final markings", 1),
        ("annotations `inscription` without a number, which are 1", 1),
    ];
    let (code, report) = json(&path, &[]);
    assert_eq!((code, counts(&report)[..3].to_vec()), (Some(0), vec![2, 1, 1]), "{report}");
    let has = |report: &Value| {
        let ignored = report["ignored"].as_array().unwrap();
        for (what, count) in expected {
            assert!(ignored.iter().any(|part| part["what"] == what && part["count"] == count), "{what}: {report}");
        }
        assert_eq!(ignored.len(), expected.len(), "{report}");
    };
    has(&report);
    has(&json(&path, &["--simulate", "2"]).1);
    has(&json(&path, &["--properties", "OneSafe"]).1);
    for arguments in [&[][..], &["--simulate", "2"]] {
        let text = String::from_utf8(explore(&path, arguments).stdout).unwrap();
        let row = text.lines().find(|line| line.starts_with("ignored  ")).unwrap_or_else(|| panic!("{text}"));
        assert!(expected.iter().all(|(what, count)| row.contains(&format!("{what} ({count})"))), "{row}");
    }
    // A net with nothing of the kind says nothing.
    let (_folder, path) = written_as("net.pnml", r#"<pnml><net id="n" type="ptnet"><place id="p"/></net></pnml>"#);
    assert_eq!(json(&path, &[]).1["ignored"], Value::Array(Vec::new()));
    assert!(!String::from_utf8_lossy(&explore(&path, [""; 0]).stdout).contains("ignored"));
}

pub fn references_of_a_net_can_be_named() {
    let (_folder, path) = written_as("net.pnml", NET_OF_TOOLS);
    for condition in
        ["tokens(r) == 1", "tokens(s) == 1", "tokens(end) == 1", "tokens(q) == 1", "not fireable(u)", "not fireable(go)"]
    {
        let (code, report) = json(&path, &["--goal", condition]);
        assert_eq!((code, report["path"]["length"].as_u64()), (Some(1), Some(1)), "{condition}: {report}");
    }
    assert_eq!(explore(&path, ["--goal", "tokens(z) == 1"]).status.code(), Some(2));
}

/// A value that begins with a minus sign is a value, and an option is none.
pub fn values_may_begin_with_a_minus_sign() {
    let (_folder, path) = written(&chain(5));
    for (arguments, code) in [
        (&["--invariant", "-1 <= x"][..], 0),
        (&["--goal", "-x == -3"], 1),
        (&["--goal=--x == 3"], 1),
        (&["--ltl", "-x != -3"], 0),
        (&["--ef", "-x <= -2"], 0),
        (&["--livelock", "-x == -5"], 0),
        (&["--simulate", "2", "--invariant", "-1 <= x"], 0),
    ] {
        let output = explore(&path, arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {output:?}");
    }
    for (arguments, parts) in [
        (&["--goal", "--json"][..], &["--goal", "--json is an option", "missing"][..]),
        (&["--invariant", "--max-states=5"], &["--invariant", "--max-states is an option"]),
        (&["--ltl", "-h"], &["--ltl", "-h is an option"]),
        (&["--timeout", "-1"], &["--timeout", "not a time"]),
        (&["--max-states", "-1"], &["--max-states", "not a number"]),
        (&["--token-bits", "-1"], &["--token-bits", "-1 is not in 2..=31"]),
        (&["--token-bits", "1"], &["--token-bits", "1 is not in 2..=31"]),
        (&["--goal"], &["--goal"]),
    ] {
        let output = explore(&path, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2), "{arguments:?}: {output:?}");
        assert!(parts.iter().all(|part| said.contains(part)), "{arguments:?}: {said}");
    }
}

/// A chain of operators is not nested, however long it is: it is read, evaluated by all engines, and the generated text is not
/// nested either. Real nesting has its limit.
pub fn chains_of_operators_may_be_long() {
    const OPERANDS: usize = 10_000;
    let folder = TempDir::new().unwrap();
    let joined = |sign: &str, operand: &dyn Fn(usize) -> String| (0..OPERANDS).map(operand).collect::<Vec<_>>().join(sign);
    let conditions = |x: &str| {
        [
            (joined("&&", &|number| format!("{x}<{}", if x == "x" { number + 6 } else { 6 + number % 4 })), true),
            (joined("||", &|number| format!("{x}=={}", if x == "x" { number } else { number % 6 })), true),
            (format!("{} > {}", joined("+", &|_| x.into()), 4 * OPERANDS), false),
            (joined(" && ", &|number| format!("{x}!={}", 2 + number % 8)), false),
        ]
    };
    let dve = folder.path().join("chain.dve");
    std::fs::write(&dve, chain(5)).unwrap();
    let slco = folder.path().join("chain.slco");
    let machine = "state machines M { initial A transitions A -> A { [ x < 5; x := x + 1 ] } }";
    std::fs::write(&slco, format!("model m {{ classes K {{ variables Integer x {machine} }} objects o : K() }}")).unwrap();
    let net = folder.path().join("chain.pnml");
    let nodes = r#"<place id="x"/><place id="s"><initialMarking><text>5</text></initialMarking></place><transition id="t"/>
        <arc id="a" source="s" target="t"/><arc id="b" source="t" target="x"/>"#;
    let kind = "http://www.pnml.org/version-2009/grammar/ptnet";
    std::fs::write(&net, format!(r#"<pnml><net id="n" type="{kind}"><page id="g">{nodes}</page></net></pnml>"#)).unwrap();
    for (path, x) in [(&dve, "x"), (&slco, "o.x"), (&net, "tokens(x)"), (&file("gate.aut"), "gate")] {
        // Linux has a limit of 128 KiB for an argument. A gate has fewer states than the other models.
        let conditions = conditions(x).into_iter().filter(|(text, holds)| text.len() < 131_000 && (x != "gate" || *holds));
        for (number, (condition, holds)) in conditions.enumerate() {
            // Code is generated from the conditions, whatever their language was: two chains in one language, and one in another.
            let is_compiled = (x == "x" && number % 2 == 0) || (x == "o.x" && number == 0);
            let engines: &[&str] = if is_compiled { &["interpreted", "compiled"] } else { &["interpreted"] };
            for engine in engines {
                let (code, report) = json(path, &["--engine", engine, "--invariant", &condition]);
                assert_eq!((code, report["error"].is_null()), (Some(if holds { 0 } else { 1 }), true), "{path:?}: {report}");
            }
            let (code, report) = json(path, &["--ltl", &format!("G ({condition})")]);
            assert_eq!(code, Some(if holds { 0 } else { 1 }), "{path:?}: {report}");
        }
    }
    // Properties of nets: about markings, and about runs.
    let at_most = |number: usize| {
        let tokens = "<tokens-count><place>x</place></tokens-count>";
        format!("<integer-le>{tokens}<integer-constant>{}</integer-constant></integer-le>", number + 4)
    };
    let all = joined("", &at_most);
    let property = |id: &str, formula: &str| format!("<property><id>{id}</id><formula>{formula}</formula></property>");
    let properties = [
        property("all", &format!("<all-paths><globally><conjunction>{all}</conjunction></globally></all-paths>")),
        property("some", &format!("<all-paths><globally><disjunction>{all}</disjunction></globally></all-paths>")),
        property(
            "run",
            &format!("<all-paths><finally><globally><disjunction>{all}</disjunction></globally></finally></all-paths>"),
        ),
    ];
    let file = folder.path().join("properties.xml");
    std::fs::write(&file, format!("<property-set>{}</property-set>", properties.concat())).unwrap();
    let output = explore(&net, ["--properties", file.to_str().unwrap()]);
    let text = String::from_utf8_lossy(&output.stdout);
    for verdict in ["FORMULA all FALSE", "FORMULA some TRUE", "FORMULA run TRUE"] {
        assert!(output.status.code() == Some(0) && text.contains(verdict), "{output:?}");
    }
    let (condition, _) = &conditions("x")[1];
    let hoa = folder.path().join("chain.hoa");
    let emit = |option: &str, file: &Path| explore(&dve, ["--ltl", &format!("F !({condition})"), option, file.to_str().unwrap()]);
    assert_eq!(emit("--emit-buchi", &hoa).status.code(), Some(0));
    let (code, report) = json(&dve, &["--buchi", hoa.to_str().unwrap()]);
    assert_eq!((code, report["verdict"].as_str()), (Some(1), Some("violated")), "{report}");
    if cfg!(feature = "cuda") {
        let program = folder.path().join("chain.cu");
        let output = explore(&dve, ["--invariant", condition, "--emit", program.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let text = std::fs::read_to_string(&program).unwrap();
        let depths = text.lines().filter(|line| line.len() > 10_000).map(|line| {
            let (mut depth, mut deepest) = (0_usize, 0);
            for byte in line.bytes() {
                depth = if byte == b'(' { depth + 1 } else { depth - usize::from(byte == b')') };
                deepest = deepest.max(depth);
            }
            deepest
        });
        assert!(depths.max().is_some_and(|deepest| deepest < 60), "{:?}", text.lines().map(str::len).max());
    }
    for nested in [format!("{}x == 1{}", "(".repeat(100), ")".repeat(100)), vec!["x"; 600].join(" imply ")] {
        let output = explore(&dve, ["--goal", &nested]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains("64 nested brackets or 500 nested operators"), "{said}");
    }
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

/// The short help fits a screen, and the long one has what is used most first. Options of one language have its heading.
pub fn help_teaches() {
    let output = Command::new(EXPLORE).arg("-h").output().unwrap();
    let short = String::from_utf8(output.stdout).unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
    assert!(short.lines().count() <= 30 && short.lines().all(|line| line.chars().count() <= 130), "{short}");
    assert_eq!(short.lines().filter(|line| line.starts_with("  explore ")).count(), 6, "{short}");
    let output = Command::new(EXPLORE).arg("--help").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    let options = short.split_whitespace().filter(|word| word.starts_with("--")).map(|word| word.trim_end_matches(','));
    for option in options {
        let is_of = |line: &str| line.trim_start().trim_start_matches("-h, ").starts_with(option);
        assert!(text.lines().any(is_of), "{option} is no option");
    }
    let is_heading = |line: &&str| line.ends_with(':') && line.starts_with(char::is_uppercase) && !line.contains("Usage");
    let headings: Vec<&str> = text.lines().filter(is_heading).collect();
    let expected = [
        "Arguments",
        "Checks",
        "Runs",
        "Output",
        "Limits",
        "Walks",
        "Table and engine",
        "Checkpoints",
        "Several GPUs or processes",
        "Model",
        "DVE",
        "Networks",
        "Petri nets",
        "Help",
    ]
    .map(|heading| format!("{heading}:"));
    assert_eq!(headings[..expected.len()], expected);
    let of_heading = |heading: &str| -> Vec<&str> {
        let lines = text.lines().skip_while(|line| line.trim_end_matches(':') != heading).skip(1);
        let lines = lines.take_while(|line| line.is_empty() || line.starts_with(' '));
        lines
            .filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--")))
            .filter(|word| text.contains(&format!(" {word}")))
            .collect()
    };
    assert_eq!(of_heading("Checks")[0], "--deadlock");
    assert_eq!(of_heading("Runs")[0], "--ltl");
    for (heading, option) in [("DVE", "--no-property"), ("Networks", "--interleave"), ("Petri nets", "--token-bits")] {
        assert_eq!(of_heading(heading)[0], option);
    }
    for part in
        ["--invariant 'P_0.CS + P_1.CS <= 1'", "130  interrupted", "--max-states", "--memory", "--timeout", "--record", "--table"]
    {
        assert!(text.contains(part), "{part} is missing");
    }
}

/// Questions about states and about runs need two commands, which the error has; each of them is one that answers.
pub fn questions_for_two_runs_come_with_both_commands() {
    let (path, name) = (model("peterson"), model("peterson").display().to_string());
    let ltl = "G (P_0.critical -> !P_1.critical)";
    let asked = ["--deadlock", "--ltl", ltl, "--invariant", EXCLUSION, "--reduce", "auto", "--fair", "weak"];
    let output = explore(&path, asked);
    let said = String::from_utf8(output.stderr).unwrap();
    let commands: Vec<&str> = said.lines().filter(|line| line.starts_with("  explore ")).map(str::trim).collect();
    let of_states = format!("explore --deadlock --invariant '{EXCLUSION}' --reduce auto --device cpu:2 {name}");
    let of_runs = format!("explore --ltl '{ltl}' --fair weak --device cpu:2 {name}");
    assert_eq!((output.status.code(), &commands[..]), (Some(2), &[&*of_states, &*of_runs][..]), "{said}");
    #[cfg(unix)]
    for command in commands {
        let command = command.replacen("explore", EXPLORE, 1);
        let output = Command::new("sh").args(["-c", &command]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{command}: {output:?}");
    }
    // The property of a model's text is named by the option that leaves it out.
    let text = std::fs::read_to_string(&path).unwrap();
    let property = "process Never { state s; init s; accept s; trans s -> s {}; } system async property Never;";
    let (_folder, path) = written(&text.replace("system async;", property));
    let said = String::from_utf8(explore(&path, ["--deadlock"]).stderr).unwrap();
    assert!(said.contains("ask in two runs: one with --no-property"), "{said}");
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
    assert!(code == Some(0) && text.starts_with("state 0: P_0.idle, P_1.idle\n  1. P_0: effect "), "{text}");
    assert!(text.contains("(idle -> asked, line "), "{text}");
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
    let numbers = ["overflows", "overflows_of_text", "warning_count"].map(|name| figure(&report, name).unwrap());
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
