//! Options that go together: a table of the program's jobs and its options, and of the options that contradict each other.
//!
//! An option that a job does not use is refused, so that no output or limit that was asked for is ignored in silence.

use crate::options::Options;
use anyhow::{Result, bail, ensure};
use clap::Command;
use clap::error::ErrorKind;
use std::path::PathBuf;
use warpset_model::ir::Model;
use warpset_search::simulation::Walks;

/// The work that a command line asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Job {
    /// Explores. With `--step`, a walk by hand follows.
    #[default]
    Search,
    /// A walk by hand, without a search.
    Step,
    Simulate(Walks),
    /// Answers the properties of this file.
    Properties(PathBuf),
    /// Writes the dependencies of steps to this file.
    Dependencies(PathBuf),
    /// Writes the program of the search to this file.
    Emit(PathBuf),
    /// Writes the automaton of the forbidden runs to this file.
    EmitBuchi(PathBuf),
    /// Prints the bytes of a state by table.
    Tables,
}

/// For each option, whether each job uses it (`u`), refuses it (`-`), or needs no such thing (`.`): the walk by hand needs no
/// device, and no answer is missing because a device was named. The columns are those of [`Job::column`].
const USES: [(&str, &str); 60] = [
    ("model", "uuuuuuuu"),
    ("format", "uuuuuuuu"),
    ("interleave", "uuuuuuuu"),
    ("independent", "uuuuuuuu"),
    ("const", "uuuuuuuu"),
    ("token_bits", "u.uu.u.u"),
    ("unpacked", "u.uu.u.u"),
    ("strict", "uuuuuuuu"),
    ("deadlock", "u-u--u--"),
    ("invariant", "u-u--u--"),
    ("goal", "u-u--u--"),
    ("ltl", "u----uu-"),
    ("buchi", "u----uu-"),
    ("ef", "u-------"),
    ("ctl", "u-------"),
    ("livelock", "u-------"),
    ("fair", "u-------"),
    ("emit", "-----u--"),
    ("tables", "-------u"),
    ("emit_buchi", "------u-"),
    ("no_property", "uuu-uu-u"),
    ("properties", "---u----"),
    ("keep_going", "u-------"),
    ("reduce", "u-------"),
    ("dependencies", "----u---"),
    ("trace", "u-uu----"),
    ("report", "u-------"),
    ("step", "uu------"),
    ("simulate", "--u-----"),
    ("seed", "--u-----"),
    ("unreached", "u-------"),
    ("coverage", "u-------"),
    ("device", "u.uu...u"),
    ("workers", "u.uu...u"),
    ("table", "u--u-u-u"),
    ("parents", "u------u"),
    ("engine", "u-uu----"),
    ("local_ranks", "u-------"),
    ("rank", "u-------"),
    // One process is what all jobs need.
    ("ranks", "u......."),
    ("rendezvous", "u-------"),
    ("gpu_time", "u----u--"),
    ("capacity", "u--u---u"),
    ("nodes", "u--u---u"),
    ("memory", "u--u---u"),
    ("checkpoint", "u-------"),
    ("checkpoint_every", "u-------"),
    ("checkpoint_levels", "u-------"),
    ("resume", "u-------"),
    ("timeout", "uuuuuuuu"),
    ("max_states", "u--u----"),
    ("max_depth", "u-------"),
    ("export", "u-------"),
    ("project", "u-------"),
    ("record", "u-------"),
    ("record_bytes", "u-------"),
    ("progress", "u..u...-"),
    ("states", "u-uu----"),
    ("json", "u-uuuuuu"),
    ("generate", "--------"),
];

/// Options of a search that contradict the first one of the row, and why.
const CONTRADICT: [(&str, &[&str], &str); 20] = [
    ("workers", &["device"], "both name the device"),
    ("max_depth", &["ltl", "buchi", "ef", "ctl", "livelock"], "a verdict about runs needs all states"),
    ("max_depth", &["checkpoint", "resume"], "a depth ends a search between two levels, and a saved one goes on within a level"),
    ("ctl", &["fair"], "fairness is of runs, and a formula of branching time is about states"),
    ("ctl", &["ltl", "buchi", "ef", "livelock"], "a search has one kind of question about runs or paths"),
    ("ltl", &["buchi", "ef", "livelock", "no_property"], "a search has one property of runs"),
    ("buchi", &["ef", "livelock", "no_property"], "a search has one property of runs"),
    ("ef", &["livelock", "fair"], "a search has one question about where states lead"),
    ("livelock", &["fair"], "fairness is of a property of runs"),
    ("deadlock", &["ltl", "buchi", "ef", "ctl", "livelock"], "it checks states, and the other one is about runs"),
    ("invariant", &["ltl", "buchi", "ef", "ctl", "livelock"], "it checks states, and the other one is about runs"),
    ("goal", &["ltl", "buchi", "ef", "ctl", "livelock"], "it checks states, and the other one is about runs"),
    (
        "reduce",
        &["ltl", "buchi", "ef", "ctl", "livelock", "fair", "export", "record", "gpu_time", "unreached", "coverage"],
        "a reduced search leaves states and steps out",
    ),
    ("parents", &["ltl", "buchi", "ef", "ctl", "livelock", "export", "resume", "nodes"], "parents are kept in an indexed table"),
    (
        "checkpoint",
        &["ltl", "buchi", "ef", "ctl", "livelock", "record", "export", "gpu_time"],
        "a checkpoint has the table and the waiting states only",
    ),
    (
        "resume",
        &["ltl", "buchi", "ef", "ctl", "livelock", "record", "export", "gpu_time", "capacity", "nodes"],
        "the table of the checkpoint is all that a resumed search has",
    ),
    ("export", &["record", "gpu_time"], "one engine cannot do both"),
    ("record", &["gpu_time"], "one engine cannot do both"),
    (
        "local_ranks",
        &[
            "ltl",
            "buchi",
            "ef",
            "ctl",
            "livelock",
            "record",
            "step",
            "coverage",
            "unreached",
            "export",
            "gpu_time",
            "parents",
            "checkpoint",
            "resume",
        ],
        "it needs a search in one table",
    ),
    ("step", &["json"], "a walk by hand prints what commands ask for"),
];

impl Job {
    /// The job that options choose, of a model that is not yet read: `--step` is taken for a part of a search.
    pub fn of(Options { input, runs, outputs, walks, .. }: &Options) -> Self {
        let of_file = |job: fn(PathBuf) -> Self, file: &Option<PathBuf>| file.clone().map(job);
        let chosen = [
            of_file(Self::Emit, &outputs.emit),
            of_file(Self::Dependencies, &outputs.dependencies),
            of_file(Self::EmitBuchi, &runs.emit_buchi),
            walks.asked().map(Self::Simulate),
            outputs.tables.then_some(Self::Tables),
            of_file(Self::Properties, &input.properties),
        ];
        chosen.into_iter().flatten().next().unwrap_or_default()
    }

    /// The job for a model that was read. With `--step`, this is a walk without a search if neither options nor model ask
    /// anything: `is_asked` says whether they do.
    ///
    /// # Errors
    ///
    /// The model cannot be walked through by hand, or an option needs a search.
    pub fn of_model(&self, options: &Options, model: &Model, is_asked: bool) -> Result<Self> {
        if *self != Self::Search || !options.walks.step {
            return Ok(self.clone());
        }
        let is_input = options.input.model.as_os_str() != "-";
        ensure!(is_input, "--step reads commands from standard input, so the model cannot come from there");
        ensure!(model.net.is_none(), "--step does not support Petri nets");
        if is_asked { Ok(Self::Search) } else { Self::only_steps(&options.given) }
    }

    /// A walk by hand without a search. Returns an error if an option needs a search.
    fn only_steps(given: &[String]) -> Result<Self> {
        match Self::Step.unused(given) {
            None => Ok(Self::Step),
            Some(unused) => bail!(
                "--{} cannot be used with --step here: nothing is asked (--goal, --invariant, --deadlock, --ltl, ...), so there \
                 is no search before the walk",
                unused.replace('_', "-")
            ),
        }
    }

    /// The job's column of the table.
    fn column(&self) -> usize {
        match self {
            Self::Search => 0,
            Self::Step => 1,
            Self::Simulate(_) => 2,
            Self::Properties(_) => 3,
            Self::Dependencies(_) => 4,
            Self::Emit(_) => 5,
            Self::EmitBuchi(_) => 6,
            Self::Tables => 7,
        }
    }

    /// The option that chooses the job.
    fn option(&self) -> &'static str {
        match self {
            Self::Search => "model",
            Self::Step => "step",
            Self::Simulate(_) => "simulate",
            Self::Properties(_) => "properties",
            Self::Dependencies(_) => "dependencies",
            Self::Emit(_) => "emit",
            Self::EmitBuchi(_) => "emit_buchi",
            Self::Tables => "tables",
        }
    }

    fn mark(&self, marks: &str) -> char {
        char::from(marks.as_bytes()[self.column()])
    }

    /// The first of the given options that the job does not use.
    fn unused<'g>(&self, given: &'g [String]) -> Option<&'g str> {
        let is_refused = |option: &&String| {
            let row = USES.iter().find(|(name, _)| name == option);
            row.is_some_and(|(_, marks)| self.mark(marks) == '-')
        };
        given.iter().find(is_refused).map(String::as_str)
    }
}

fn has(given: &[String], option: &str) -> bool {
    given.iter().any(|of| of == option)
}

/// Two of the given options that contradict each other, and why.
fn contradiction(given: &[String]) -> Option<(&'static str, &'static str, &'static str)> {
    let rows = CONTRADICT.iter().filter(|(option, ..)| has(given, option));
    let mut pairs = rows.flat_map(|(option, others, why)| others.iter().map(move |other| (*option, *other, *why)));
    pairs.find(|(_, other, _)| has(given, other))
}

/// Returns an error that names both options if a job does not use an option, or if two options contradict each other. `apart`:
/// commands that ask about states and about runs, if one command asks about both.
pub fn ensure_go_together(
    command: &mut Command,
    job: &Job,
    given: &[String],
    apart: Option<[String; 2]>,
) -> Result<(), clap::Error> {
    let refused = job.unused(given).map(|unused| (unused, job.option(), "it has no effect there"));
    let Some((one, other, why)) = refused.or_else(|| contradiction(given)) else { return Ok(()) };
    let [one, other] = [one, other].map(|id| argument(command, id));
    let apart = apart.map(|[states, runs]| format!("; ask in two runs:\n\n  {states}\n  {runs}")).unwrap_or_default();
    Err(command.error(ErrorKind::ArgumentConflict, format!("the argument '{one}' cannot be used with '{other}': {why}{apart}")))
}

/// An option as the usage shows it.
fn argument(command: &Command, id: &str) -> String {
    command.get_arguments().find(|argument| argument.get_id() == id).map_or_else(|| id.into(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    //! Keeps this promise of `examples/explore/docs/searching.md`:
    //!
    //! - Options that a job does not use are refused (also `examples/explore/tests/explore/command_line.rs`).

    use super::*;
    use clap::CommandFactory as _;

    fn jobs() -> [Job; 8] {
        let file = || PathBuf::from("file");
        [
            Job::Search,
            Job::Step,
            Job::Simulate(Walks { walks: 2, depth: 10_000, seed: 1 }),
            Job::Properties(file()),
            Job::Dependencies(file()),
            Job::Emit(file()),
            Job::EmitBuchi(file()),
            Job::Tables,
        ]
    }

    /// The options of the command line, by clap.
    fn options() -> Vec<String> {
        let command = Options::command();
        let all = command.get_arguments().map(|argument| argument.get_id().to_string());
        all.filter(|id| id != "help" && id != "version").collect()
    }

    /// An option with a value, after the options that it requires.
    fn written(option: &str) -> Vec<Vec<String>> {
        let value = match option {
            "model" => return Vec::new(),
            "format" => "dve",
            "interleave" | "project" => "A",
            "const" => "N=1",
            "invariant" | "goal" | "ltl" | "ef" | "ctl" | "livelock" => "-1 <= x",
            "token_bits" | "rank" | "capacity" | "nodes" | "memory" | "timeout" | "max_states" | "max_depth" | "workers"
            | "checkpoint_every" | "checkpoint_levels" | "record_bytes" | "seed" | "simulate" | "ranks" | "local_ranks" => "2",
            "fair" => "weak",
            "reduce" | "table" | "engine" | "progress" => "auto",
            "device" => "cpu",
            "generate" => "man",
            "buchi" | "emit_buchi" | "properties" | "dependencies" | "trace" | "report" | "coverage" | "checkpoint"
            | "resume" | "export" | "record" | "emit" | "rendezvous" => "file",
            _ => "",
        };
        let required = match option {
            "seed" => "simulate",
            "checkpoint_every" | "checkpoint_levels" => "checkpoint",
            "record_bytes" => "record",
            "project" => "export",
            _ => "",
        };
        let mut all = if required.is_empty() { Vec::new() } else { written(required) };
        let words = [format!("--{}", option.replace('_', "-")), value.into()];
        all.push(words.into_iter().filter(|word| !word.is_empty()).collect());
        all
    }

    fn parsed(options: &[&str]) -> Result<Options, clap::Error> {
        let mut arguments = vec!["explore".to_string(), "model".into()];
        for words in options.iter().flat_map(|option| written(option)) {
            if !arguments.contains(&words[0]) {
                arguments.extend(words);
            }
        }
        Options::parsed(&arguments)
    }

    #[test]
    fn the_table_has_every_option() {
        for option in options() {
            assert!(USES.iter().any(|(name, _)| *name == option), "`{option}` has no row: which jobs use it?");
        }
        for (name, marks) in USES {
            assert!(options().iter().any(|option| option == name), "`{name}` is no option");
            assert!(marks.len() == jobs().len() && marks.chars().all(|mark| "u.-".contains(mark)), "{name}: {marks}");
            assert!(marks.contains('u') || name == "generate", "no job uses {name}");
        }
        for (number, job) in jobs().into_iter().enumerate() {
            assert_eq!(job.column(), number);
            let chosen = USES.iter().find(|(name, _)| *name == job.option()).unwrap();
            assert_eq!(job.mark(chosen.1), 'u', "{job:?}");
        }
        let known = |name: &str| assert!(options().iter().any(|option| option == name), "`{name}` is no option");
        for (option, others, _) in CONTRADICT {
            known(option);
            others.iter().for_each(|other| known(other));
        }
    }

    /// Each pair of options is refused by the parser exactly if the table has a mark for it, and the error names both.
    #[test]
    fn each_pair_is_used_or_refused() {
        let all = options();
        let (mut refused, mut used) = (0, 0);
        for (number, one) in all.iter().enumerate().filter(|(_, one)| *one != "generate") {
            for other in all[..number].iter().filter(|other| *other != "generate") {
                let given: Vec<String> = [one, other].into_iter().flat_map(|option| written(option)).flatten().collect();
                let given: Vec<String> = all
                    .iter()
                    .filter(|option| *option == "model" || given.contains(&format!("--{}", option.replace('_', "-"))))
                    .cloned()
                    .collect();
                // Two jobs are refused, whichever is chosen.
                let job = jobs().into_iter().rev().find(|job| *job != Job::Step && has(&given, job.option())).unwrap();
                let is_refused = job.unused(&given).is_some() || contradiction(&given).is_some();
                match parsed(&[one, other]) {
                    Ok(options) => {
                        assert!(!is_refused && options.job.column() == job.column(), "{one} {other}: {:?}", options.job);
                        assert!(given.iter().all(|option| has(&options.given, option)), "{given:?}: {:?}", options.given);
                        used += 1;
                    }
                    Err(error) => {
                        assert!(is_refused, "{one} {other}: {error}");
                        assert_eq!(error.kind(), ErrorKind::ArgumentConflict, "{one} {other}: {error}");
                        let names = |option: &str| error.to_string().contains(&format!("'--{}", option.replace('_', "-")));
                        assert!(given.len() > 3 || (names(one) && names(other)), "{one} {other}: {error}");
                        refused += 1;
                    }
                }
            }
        }
        assert!(refused > 250 && used > 500, "{refused} {used}");
        for other in all.iter().filter(|other| *other != "generate" && *other != "model") {
            let generate = vec!["explore".to_string(), "--generate".into(), "man".into()];
            assert!(Options::parsed([vec![generate], written(other)].concat().concat()).is_err());
        }
    }

    /// Outputs of a walk by hand are refused when the model is read: a property process of the model asks for a search.
    #[test]
    fn a_walk_by_hand_uses_no_outputs() {
        for option in ["export", "coverage", "checkpoint", "record", "trace", "unreached", "table", "max_states", "keep_going"] {
            let error = Job::only_steps(&parsed(&["step", option]).unwrap().given).unwrap_err().to_string();
            assert!(error.contains(&format!("--{} cannot be used with --step", option.replace('_', "-"))), "{error}");
        }
        for option in ["device", "timeout", "strict", "format", "no_property", "progress"] {
            assert_eq!(Job::only_steps(&parsed(&["step", option]).unwrap().given).unwrap(), Job::Step);
        }
    }
}
