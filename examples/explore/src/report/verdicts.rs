//! The verdict of each condition that was asked for: a line of the text and an object of the JSON, from the same values.

use super::branching::{self as answered, Answered};
use super::summary::Summary;
use super::{Finding, Report};
use crate::report::runs;
use indicatif::HumanCount;
use serde::Serialize;
use serde_json::Value;
use warpset_model::checks::{Condition, Role, Violation};
use warpset_search::ctl::{self, Branching};
use warpset_search::exploration::{End, Tally};
use warpset_search::liveness::check::Verdict;
use warpset_support::escaping;
use warpset_support::numbers::counted;
use warpset_support::stopping::Stop;

/// Colours of a terminal, by ECMA-48.
const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[1;31m";
const YELLOW: &str = "\x1b[33m";
const PLAIN: &str = "\x1b[0m";

/// The line of a search that was asked nothing.
const NOTHING_ASKED: &str = "nothing asked, so states are only counted: --deadlock, --invariant, --goal, --ltl, --ctl, --ef, --livelock (--help describes them)";

/// The verdict on a condition after a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    Holds,
    Violated,
    /// A goal was reached.
    Reached,
    /// All states were found, and a goal holds in none of them.
    Unreachable,
    NotDecided,
    /// The search did not look at it.
    NotChecked,
}

/// A condition and its verdict.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    pub kind: &'static str,
    /// The condition as it was written; empty for deadlocks.
    pub text: String,
    pub verdict: Decision,
    /// Why there is no verdict.
    pub why: Option<String>,
    /// Number of violating states found. `None` if they were not counted.
    pub states: Option<u64>,
    /// For `ctl`, number of states in which the formula holds.
    pub satisfying: Option<u64>,
    /// Whether there may be more such states than `states`: the search did not look at all states.
    pub at_least: bool,
    /// Least number of steps to a violating state; `None` if it is not known.
    pub depth: Option<u64>,
    /// The shortest path to a violating state.
    pub path: Option<Value>,
    /// The violating run: a path and a loop.
    pub lasso: Option<Value>,
}

impl Check {
    fn new(kind: &'static str, text: impl Into<String>, verdict: Decision) -> Self {
        let text = text.into();
        Self {
            kind,
            text,
            verdict,
            why: None,
            states: None,
            satisfying: None,
            at_least: false,
            depth: None,
            path: None,
            lasso: None,
        }
    }

    fn because(self, why: impl Into<String>) -> Self {
        Self { why: Some(why.into()), ..self }
    }

    /// The verdict, in words and in the colour that it has on a terminal. `all`: number of states.
    fn verdict(&self, all: u64) -> (String, &'static str) {
        let satisfying = self.satisfying.map(|states| {
            let holds = if self.verdict == Decision::Holds { "" } else { "holds " };
            format!("{holds}in {} of {}", HumanCount(states), counted(all, "state"))
        });
        let states = self.states.filter(|states| *states > 0);
        let states = states.map(|states| format!("{}{}", if self.at_least { "at least " } else { "" }, counted(states, "state")));
        let depth = self.depth.map(|depth| format!("first at depth {depth}"));
        let known: Vec<String> = [self.why.clone(), satisfying, states, depth].into_iter().flatten().collect();
        let known = if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) };
        let (word, color) = match self.verdict {
            Decision::Holds => ("holds", GREEN),
            Decision::Violated => ("VIOLATED", RED),
            Decision::Reached => ("REACHED", RED),
            Decision::Unreachable => ("not reachable", GREEN),
            Decision::NotDecided => ("not decided", YELLOW),
            Decision::NotChecked => return ("not checked".into(), YELLOW),
        };
        (format!("{word}{known}"), color)
    }

    /// The line of the text. `all`: number of states.
    pub(super) fn line(&self, all: u64, has_colors: bool) -> String {
        let (verdict, color) = self.verdict(all);
        let verdict = escaping::line(&verdict);
        let verdict = if has_colors { format!("{color}{verdict}{PLAIN}") } else { verdict.into_owned() };
        let (kind, text) = match (self.kind, &*self.text) {
            ("livelock", progress) => ("no livelock", format!(" (progress: {progress})")),
            (kind, "") => (kind, String::new()),
            (kind, text) => (kind, format!(" {text}")),
        };
        // The option that asks for a check is named after it.
        let how = self.why.as_ref().filter(|_| self.verdict == Decision::NotChecked);
        let how = how.map(|how| format!(" ({how})")).unwrap_or_default();
        format!("  {verdict}: {kind}{}{}\n", escaping::line(&text), escaping::line(&how))
    }
}

/// Why a search has no verdict.
pub fn why(end: End) -> String {
    match end {
        End::Complete => "the search ended before there was a verdict".into(),
        End::Violation | End::Observer => "the search ended at a finding".into(),
        End::Levels => "stopped at --max-depth".into(),
        End::States => "stopped at --max-states".into(),
        End::Memory => "no more memory (--memory)".into(),
        End::Stopped(Stop::Interrupted) => "interrupted".into(),
        End::Stopped(Stop::Time(most)) => format!("stopped after --timeout {} s", most.as_secs_f64()),
    }
}

impl Report<'_> {
    /// The verdicts: a fault first, then what was asked, then what was not checked.
    pub fn verdicts(&self) -> Vec<Check> {
        let mut all: Vec<Check> = self.fault().into_iter().collect();
        let end = self.exploration.end;
        if let Some((question, conclusion)) = self.conclusion {
            let check = Check::new("property", runs::asked(question), decided(conclusion.verdict));
            let lasso = runs::run_json(conclusion, self.model, question, self.states);
            let check = Check { lasso, ..check };
            let is_open = conclusion.verdict == Verdict::Unknown;
            all.push(if is_open { check.because(why(conclusion.end.unwrap_or(end))) } else { check });
        } else if let Some((possible, outcome)) = self.answer {
            let kind = if possible.role == Role::Progress { "livelock" } else { "reachable from every state" };
            let check = Check::new(kind, possible.text.clone(), decided(outcome.verdict));
            let check = match (&outcome.found, outcome.verdict) {
                (Some((found, _)), Verdict::Violated) => Check { depth: Some(found.level), path: self.path_json(), ..check },
                (_, Verdict::Unknown) if outcome.has_fault => check.because("the condition has a fault"),
                (_, Verdict::Unknown) => {
                    check.because(outcome.why.as_ref().map_or_else(|| why(end), |error| format!("{error:#}")))
                }
                _ => check,
            };
            all.push(check);
        } else if let Some((branching, outcome)) = self.branched {
            all.extend(self.of_formulas(branching, outcome));
        } else {
            all.extend(self.checks.conditions.iter().enumerate().map(|(at, condition)| self.of_condition(at, condition)));
            all.extend(self.checks.deadlocks.then(|| self.of_deadlocks()));
        }
        all.extend(self.unchecked());
        all
    }

    fn found(&self) -> Option<&Finding<'_>> {
        self.finding.as_ref()
    }

    pub(super) fn path_json(&self) -> Option<Value> {
        let path = self.found()?.path.as_ref().ok()?;
        Some(path.json(self.model, self.checks, self.states))
    }

    fn fault(&self) -> Option<Check> {
        let found = self.found()?.found;
        let of_fault = found.is_fault().then(|| self.checks.describe(&found.violation, self.model, &found.state))?;
        let text = of_fault.strip_prefix("fault ").unwrap_or(&of_fault).to_string();
        let (depth, path) = (Some(found.level), self.path_json());
        Some(Check { depth, path, ..Check::new("fault", text, Decision::Violated) })
    }

    /// The verdict of a check of states. `is_first`: the first violation is of this check. `is_beside`: its state violates
    /// this check, too. `tally`: the violating states found.
    fn of_states(&self, check: Check, is_first: bool, is_beside: bool, tally: Tally) -> Check {
        let is_goal = check.kind == "goal";
        let (positive, negative) =
            if is_goal { (Decision::Unreachable, Decision::Reached) } else { (Decision::Holds, Decision::Violated) };
        let is_complete = self.exploration.end == End::Complete;
        if is_first || is_beside || tally.states > 0 {
            // A state with a fault counts for no check.
            let depth = tally.level.or(self.found().map(|finding| finding.found.level));
            let path = if is_first { self.path_json() } else { None };
            let states = Some(tally.states).filter(|states| *states > 0);
            let leaves_out = self.reduction.is_some_and(|reduction| reduction.stubborn.is_some());
            let at_least = states.is_some() && (!is_complete || leaves_out);
            return Check { verdict: negative, states, at_least, depth, path, ..check };
        }
        match is_complete {
            true => Check { verdict: positive, states: Some(0), ..check },
            false => check.because(why(self.exploration.end)),
        }
    }

    fn of_condition(&self, at: usize, Condition { role, text, .. }: &Condition) -> Check {
        let kind = Violation::Condition(at).kind(self.checks);
        debug_assert!(matches!(role, Role::Assertion | Role::Invariant | Role::Goal), "{role:?} is not of states");
        let violation = self.found().map(|finding| &finding.found.violation);
        let is_first = violation == Some(&Violation::Condition(at));
        let is_beside = self.violated_beside.contains(&at);
        let tally = self.exploration.violating.of_condition(at);
        self.of_states(Check::new(kind, text.clone(), Decision::NotDecided), is_first, is_beside, tally)
    }

    fn of_deadlocks(&self) -> Check {
        let is_first = self.found().is_some_and(|finding| finding.found.violation == Violation::Deadlock);
        let check = Check::new("deadlocks", "", Decision::NotDecided);
        self.of_states(check, is_first, false, self.exploration.violating.deadlocks)
    }

    /// The verdicts of formulas of branching time.
    fn of_formulas(&self, branching: &Branching, outcome: &ctl::Outcome) -> Vec<Check> {
        let one = |answered: Answered| {
            let answer = answered.answer;
            let check = Check::new("ctl", answered.asked.text.clone(), decided(answer.verdict));
            let check = Check { satisfying: answer.satisfying, ..check };
            match answer.verdict {
                Verdict::Unknown if outcome.fault.is_some() => check.because("a condition has a fault"),
                Verdict::Unknown => {
                    let of_answer = outcome.why.as_ref().map(|error| format!("{error:#}"));
                    check.because(of_answer.unwrap_or_else(|| self::why(self.exploration.end)))
                }
                _ => match &answer.witness {
                    Some(Ok(witness)) => {
                        let json = Some(answered::witness_json(answered, witness, self.model, self.states));
                        let (path, lasso) = if witness.begins.is_some() { (None, json) } else { (json, None) };
                        Check { path, lasso, ..check }
                    }
                    _ => {
                        let found = self.found().filter(|finding| !finding.found.is_fault()).map(|finding| finding.found);
                        Check { depth: found.map(|found| found.level), path: found.and(self.path_json()), ..check }
                    }
                },
            }
        };
        answered::all(branching, outcome).map(one).collect()
    }

    /// Checks that were possible, but not asked for.
    fn unchecked(&self) -> Vec<Check> {
        let is_about_runs = self.conclusion.is_some() || self.answer.is_some() || self.branched.is_some();
        let mut all = Vec::new();
        if is_about_runs && !self.model.assertions.is_empty() {
            let how = format!("{}; search without the property", self.model.assertions.len());
            all.push(Check::new("assertions", "", Decision::NotChecked).because(how));
        }
        if self.counts().deadlocks > 0 && (is_about_runs || !self.checks.deadlocks) {
            let how = if is_about_runs { "--deadlock, in a search without the property" } else { "--deadlock" };
            all.push(Check::new("deadlocks", "", Decision::NotChecked).because(how));
        }
        all
    }
}

/// The block of verdicts, a line for each.
pub fn lines(summary: &Summary, has_colors: bool) -> String {
    let Summary { checks, .. } = summary;
    let lines: String = checks.iter().map(|check| check.line(summary.counts.states, has_colors)).collect();
    let is_asked = checks.iter().any(|check| check.verdict != Decision::NotChecked);
    let hint = if is_asked { String::new() } else { format!("  {NOTHING_ASKED}\n") };
    let wrapped = note(summary).map_or_else(String::new, |note| format!("  {note}\n"));
    format!("checks\n{lines}{hint}{wrapped}\n")
}

/// Says that the verdicts are of a model whose stores wrap.
pub fn note(summary: &Summary) -> Option<String> {
    let wrapped = summary.counts.overflows - summary.counts.overflows_of_text;
    let text = || format!("note: {} wrapped: values are taken modulo the range of their variable", counted(wrapped, "store"));
    (wrapped > 0).then(text)
}

fn decided(verdict: Verdict) -> Decision {
    match verdict {
        Verdict::Holds => Decision::Holds,
        Verdict::Violated => Decision::Violated,
        Verdict::Unknown => Decision::NotDecided,
    }
}
