//! The two commands for questions about states and about runs that one search cannot answer together.

use clap::{ArgMatches, Command};
use std::fmt::Write as _;

/// Options that check states.
const OF_STATES: [&str; 3] = ["deadlock", "invariant", "goal"];

/// Options that ask about runs or paths, and those that only such a question has.
const OF_RUNS: [&str; 6] = ["ltl", "buchi", "ef", "ctl", "livelock", "fair"];

/// Options of a search of states that a question about runs does not have.
const ONLY_OF_STATES: [&str; 9] = [
    "max_depth",
    "reduce",
    "parents",
    "checkpoint",
    "checkpoint_every",
    "checkpoint_levels",
    "resume",
    "local_ranks",
    "keep_going",
];

/// The commands that ask about states and about runs, if these options ask about both. Each is a line for a shell.
pub fn commands(command: &Command, matches: &ArgMatches, given: &[String]) -> Option<[String; 2]> {
    let has = |options: &[&str]| given.iter().any(|option| options.contains(&&**option));
    if !has(&OF_STATES) || !has(&OF_RUNS) {
        return None;
    }
    let without = |left_out: &[&str]| {
        let mut text = String::from("explore");
        for argument in command.get_arguments() {
            let id = argument.get_id().as_str();
            if !given.iter().any(|option| option == id) || left_out.contains(&id) {
                continue;
            }
            let name = argument.get_long().map(|long| format!(" --{long}")).unwrap_or_default();
            if !argument.get_action().takes_values() {
                text += &name;
                continue;
            }
            for value in matches.get_raw(id).into_iter().flatten() {
                write!(text, "{name} {}", quoted(&value.to_string_lossy())).expect("a string can be written to");
            }
        }
        text
    };
    let of_runs: Vec<&str> = OF_STATES.into_iter().chain(ONLY_OF_STATES).collect();
    Some([without(&OF_RUNS), without(&of_runs)])
}

/// A word as a POSIX shell reads it.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./,:=%+@".contains(c);
    let is_word = !word.is_empty() && word.chars().all(is_plain);
    if is_word { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_are_quoted_for_a_shell() {
        let all = ["a.dve", "G (p -> F q)", "it's", ""].map(quoted);
        assert_eq!(all, ["a.dve", "'G (p -> F q)'", r"'it'\''s'", "''"]);
    }
}
