//! Runs of the checker, and models for them.

use super::*;

pub const EXPLORE: &str = env!("CARGO_BIN_EXE_explore");

/// Device and table of an exploration.
#[derive(Clone, Copy)]
pub struct TableOnDevice {
    pub device: &'static str,
    pub table: &'static str,
}

impl TableOnDevice {
    /// Runs the checker and returns the exit code and the printed object. On a GPU the table begins small, unless the arguments
    /// give its size.
    #[track_caller]
    pub fn json(self, model: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
        let small = ["--capacity", "64"];
        let begins: &[&str] = if self.is_gpu() && !arguments.contains(&"--capacity") { &small } else { &[] };
        json_on(self.device, model, &[&["--table", self.table], begins, arguments].concat())
    }

    pub fn is_gpu(self) -> bool {
        self.device == "gpu"
    }
}

/// A DVE model of this package.
pub fn model(name: &str) -> PathBuf {
    file(name).with_extension("dve")
}

/// A file of the folder `models`.
pub fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models").join(name)
}

/// Runs the checker on a device.
pub fn explore_on(device: &str, model: &Path, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    let mut command = Command::new(EXPLORE);
    command.arg(model).args(["--device", device]).args(arguments).output().expect("the checker starts")
}

/// Runs the checker on two threads.
pub fn explore(model: &Path, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    explore_on("cpu:2", model, arguments)
}

/// The command that [`explore`] runs.
pub fn command_of(model: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(EXPLORE);
    command.args([model, "--device", "cpu:2"]).args(arguments);
    command
}

/// Starts the checker, with pipes for its input and output.
pub fn spawned(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the checker starts")
}

/// Runs the checker on two threads with the default table, and returns the exit code and the printed object.
#[track_caller]
pub fn json(model: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
    json_on("cpu:2", model, arguments)
}

#[track_caller]
pub fn json_on(device: &str, model: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = explore_on(device, model, arguments.iter().chain(&["--json"]));
    let report = only_object(&output);
    assert!(output.stderr.is_empty() || report["warning_count"] != 0, "{output:?}");
    (output.status.code(), report)
}

/// The only object printed with `--json`: a report or an error. It must contain the exit code.
#[track_caller]
pub fn only_object(output: &Output) -> Value {
    let object: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(object["exit_code"].as_i64(), output.status.code().map(i64::from), "{output:?}");
    // A report contains an error only if an output could not be written.
    let is_unwritten = object["error"].as_str().is_some_and(|error| error.contains("cannot be written"));
    assert!(
        is_unwritten || object["error"].is_string() == (object.get("counts").is_none() && object.get("simulation").is_none()),
        "{output:?}"
    );
    object
}

/// A number among the counts of a report, or beside them.
pub fn figure(report: &Value, name: &str) -> Option<u64> {
    report["counts"].get(name).unwrap_or(&report[name]).as_u64()
}

/// States, transitions, deadlocks, levels, the widest level.
pub fn counts(report: &Value) -> [u64; 5] {
    ["states", "transitions", "deadlocks", "levels", "widest_level"].map(|name| report["counts"][name].as_u64().expect(name))
}

/// Writes a model to a file in a folder of its own.
pub fn written(text: &str) -> (TempDir, PathBuf) {
    written_as("model.dve", text)
}

pub fn written_as(name: &str, text: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

/// States, transitions, deadlocks and levels, counted by programs written by hand for this purpose, without the library and its
/// interpreter.
pub const GOLDEN: [(&str, [u64; 4]); 6] = [
    ("mailbox", [413, 582, 1, 25]),
    ("peterson", [20, 34, 0, 7]),
    ("peterson_wrong", [32, 60, 0, 8]),
    ("philosophers", [392, 1250, 1, 17]),
    ("readers_writers", [11, 22, 1, 5]),
    ("river", [10, 20, 0, 8]),
];

pub const EXCLUSION: &str = "P_0.critical + P_1.critical <= 1";

/// Three counters to 30: 29,791 states.
pub const COUNTERS: &str = "byte a, b, c; process P { state s; init s; trans
    s -> s { guard a < 30; effect a = a + 1; }, s -> s { guard b < 30; effect b = b + 1; }, s -> s { guard c < 30; effect c = c + 1; };
    } system async;";

/// More states than any test waits for.
pub const ENDLESS: &str = "int x, y, z; process P { state s; init s; trans
    s -> s { effect x = x + 1; }, s -> s { effect y = y + 1; }, s -> s { effect z = z + 1; }; } system async;";

/// A report with a path too long for the buffer of a pipe.
pub const LONG_REPORT: [&str; 2] = ["--goal", "x == 3000"];

/// A counter to `length`.
pub fn chain(length: u32) -> String {
    format!("int x; process P {{ state s; init s; trans s -> s {{ guard x < {length}; effect x = x + 1; }}; }} system async;")
}

/// Waits until no process that another test has just started holds the script open for writing; such a process does until it
/// executes its own program.
#[cfg(unix)]
pub fn until_it_runs(script: &Path) {
    let is_busy = |error: std::io::Error| error.kind() == std::io::ErrorKind::ExecutableFileBusy;
    while Command::new(script).arg("--version").output().is_err_and(is_busy) {}
}
