//! Answers to the properties of a file of the Model Checking Contest (`--properties`).
//!
//! All questions about reachable markings are answered by one exploration, which ends when all of them are decided. Formulas
//! about runs are answered over the markings of the same exploration, in memory ([`runs`](warpset_search::liveness::runs)). One
//! that this does not decide, and one whose run is wanted, has an exploration of its own, of the product with its automaton.
//! Formulas of branching time are evaluated over all markings of that exploration, together ([`ctl`]). What a limit ended has
//! the verdict `CANNOT_COMPUTE`.

pub mod rounds;

use crate::options::DisplayOptions;
use crate::report;
use crate::report::net::ignored;
use crate::report::runs::run_json;
use crate::report::verdicts::why;
use anyhow::{Context, Error, Result};
use rayon::prelude::*;
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::Mutex;
use warpset::{Storage, VectorTable};
use warpset_model::checks::{Checks, Role};
use warpset_model::ctl::{Literal, Parts};
use warpset_model::ir::{Expression, Model};
use warpset_model::language::Text;
use warpset_model::ltl::buchi::MOST_PROPOSITIONS;
use warpset_model::ltl::property::set_conditions;
use warpset_model::ltl::translate::translate;
use warpset_model::net::marking::{Check, Condition};
use warpset_model::net::properties::{Global, Property, Question};
use warpset_model::trace::States;
use warpset_search::ctl::{self, Branching, Conditions};
use warpset_search::exploration::{Counts, End, Exploration, Limits};
use warpset_search::liveness::check::{self, Conclusion, Question as OfRuns};
use warpset_search::liveness::possible::is_live;
use warpset_search::liveness::runs::{Runs, Violating};
use warpset_search::successors::Interpreted;
use warpset_search::survey::{Survey, Surveyed};
use warpset_support::escaping;
use warpset_support::exit;
use warpset_support::memory;
use warpset_support::output::{Output, Unwritten};
use warpset_support::program;
use warpset_support::stopping::{self, Stop};

/// States after which the questions are looked at for the first time during an exploration, and then whenever there are twice as
/// many.
const FIRST_LOOK: u64 = 1 << 20;

/// Why a condition is not evaluated.
const LARGE_SUM: &str = "a sum of tokens may need more than 32 bits";

/// Why a lock can be taken.
const LOCKED: &str = "no thread panics while it has the lock";

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Truth(bool),
    Number(u64),
    /// No answer, and why.
    CannotCompute(String),
}

/// Purpose of an exploration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    /// All questions about reachable markings, and those about runs as far as these markings tell.
    Markings,
    /// The formula of the property with this number.
    Runs(usize),
    /// The path to a marking that decides the property with this number.
    Path(usize),
}

/// A question that is too large to be answered.
#[derive(Debug)]
struct TooLarge(String);

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TooLarge {}

/// The properties of a file, and the answers so far.
pub struct Properties {
    all: Vec<Property>,
    round: Round,
    /// No exploration has ended before.
    pub is_first_round: bool,
    /// Parts of the states that paths show.
    show: States,
    verdicts: Mutex<Vec<Option<Verdict>>>,
    /// Paths and runs by the names of properties, if they are wanted.
    paths: Option<Mutex<Map<String, Value>>>,
    /// States and firings of the exploration of markings.
    counts: Mutex<Option<(Counts, bool)>>,
    next_look: Mutex<u64>,
    /// Why the last exploration of markings ended.
    end: Mutex<Option<End>>,
}

impl Properties {
    /// Notes that the round's questions without an answer have none.
    fn fail(&self, error: &Error) {
        let why = format!("{error:#}");
        for (number, verdict) in self.verdicts.lock().expect(LOCKED).iter_mut().enumerate() {
            if self.is_of_round(number) && verdict.is_none() {
                *verdict = Some(Verdict::CannotCompute(why.clone()));
            }
        }
        if matches!(self.round, Round::Path(_)) {
            program::print_warning(&format!("warning: --trace: {}\n", escaping::line(&why)));
        }
    }

    fn is_of_round(&self, number: usize) -> bool {
        match self.round {
            Round::Markings => !self.all[number].is_of_runs(),
            Round::Runs(of) => number == of,
            Round::Path(_) => false,
        }
    }

    /// The question about runs of this round; gives the model its automaton.
    pub fn question(&self, text: &mut Text) -> Result<Option<OfRuns>> {
        let Round::Runs(number) = self.round else { return Ok(None) };
        let Property { name, question: Question::Runs { formula, conditions, .. } } = &self.all[number] else { return Ok(None) };
        let count = conditions.len();
        let too_large = |why: String| Error::from(TooLarge(why));
        if count > MOST_PROPOSITIONS {
            return Err(too_large(format!("the formula has {count} propositions, and {MOST_PROPOSITIONS} are possible")));
        }
        let model = text.model_mut();
        let net = model.net.as_ref().context("the model is a net")?;
        let conditions: Option<Vec<Expression>> = conditions.iter().map(|condition| condition.expression(net)).collect();
        let conditions = conditions.ok_or_else(|| too_large(LARGE_SUM.into()))?;
        set_conditions(model, formula, &conditions).map_err(|error| too_large(format!("{error:#}")))?;
        Ok(Some(OfRuns::of(model, name.clone(), false)))
    }

    /// The checks of states in this round, if it is not about runs.
    pub fn checks(&self, model: &Model) -> Result<Checks> {
        let mut checks = Checks::default();
        if let (Round::Path(number), Some(net)) = (self.round, &model.net) {
            let Property { name, question } = &self.all[number];
            let Question::Reach { condition, .. } = question else { return Ok(checks) };
            let condition = condition.expression(net).ok_or_else(|| Error::from(TooLarge(LARGE_SUM.into())))?;
            checks.add(Role::Goal, name.clone(), condition);
        }
        Ok(checks)
    }

    /// The survey that this round needs.
    fn survey<'m>(&self, model: &'m Model) -> Option<Survey<'m>> {
        let net = model.net.as_ref().filter(|_| self.round == Round::Markings)?;
        let mut survey = Survey::of(model)?;
        for property in &self.all {
            match &property.question {
                Question::Reach { condition, .. } => survey.conditions.push(condition.check(net, &model.layout)),
                Question::Bound(places) => survey.sums.push(warpset_model::net::marking::Sum::of(net, &model.layout, places)),
                _ => {}
            }
        }
        Some(survey)
    }

    /// Whether the exploration goes on: whether a question may still be undecided.
    pub fn goes_on<S: Storage>(&self, counts: &Counts, table: &VectorTable<S>, model: &Model) -> bool {
        let are_conditions = || self.all.iter().all(|of| matches!(of.question, Question::Reach { .. } | Question::Declined(_)));
        let mut next = self.next_look.lock().expect(LOCKED);
        if counts.states < *next || table.device().is_gpu() || self.round != Round::Markings || !are_conditions() {
            return true;
        }
        *next = counts.states.saturating_mul(2);
        let Some(mut survey) = self.survey(model) else { return true };
        survey.only_conditions = true;
        // A failure shows again when the exploration has ended.
        survey.run(table, stopping::asked).map_or(true, |surveyed| surveyed.holds.iter().any(Option::is_none))
    }

    /// Answers the questions of this round. `conclusion`: of a question about runs.
    pub fn conclude<S: Storage>(
        &self,
        table: &VectorTable<S>,
        interpreted: &Interpreted,
        exploration: &Exploration,
        conclusion: Option<&Conclusion>,
        limits: Limits,
    ) -> Result<()> {
        let model = interpreted.interpreter.model();
        match self.round {
            Round::Markings => {
                *self.end.lock().expect(LOCKED) = Some(exploration.end);
                if !self.all.iter().all(Property::is_of_runs) {
                    self.conclude_markings(table, interpreted, exploration, limits)?;
                }
                self.conclude_runs(table, interpreted, limits)
            }
            Round::Runs(number) => {
                let Question::Runs { is_negated, .. } = self.all[number].question else { return Ok(()) };
                let conclusion = conclusion.context("a formula has a conclusion")?;
                let verdict = match conclusion.verdict {
                    check::Verdict::Holds => Verdict::Truth(!is_negated),
                    check::Verdict::Violated => Verdict::Truth(is_negated),
                    check::Verdict::Unknown => Verdict::CannotCompute(why(exploration.end)),
                };
                if !self.is_decided(number) {
                    self.verdicts.lock().expect(LOCKED)[number] = Some(verdict);
                }
                if let (Some(paths), Some(Ok(_))) = (&self.paths, &conclusion.lasso) {
                    let name = self.all[number].name.clone();
                    let question = OfRuns::of(model, name.clone(), false);
                    let run = run_json(conclusion, model, &question, self.show);
                    paths.lock().expect(LOCKED).insert(name, json!(run));
                }
                Ok(())
            }
            Round::Path(_) => Ok(()),
        }
    }

    /// Keeps the verdicts that the states found so far decide, whatever else is found. Called if the exploration ends with an
    /// error.
    pub fn keep_decided<S: Storage>(
        &self,
        table: &VectorTable<S>,
        interpreted: &Interpreted,
        exploration: &Exploration,
        limits: Limits,
    ) -> Result<()> {
        if self.round == Round::Markings {
            if !self.all.iter().all(Property::is_of_runs) {
                self.conclude_markings(table, interpreted, exploration, limits)?;
            }
            self.conclude_runs(table, interpreted, limits)?;
            // The error is the reason of the others, but of declined questions, which have their own.
            for (property, verdict) in self.all.iter().zip(self.verdicts.lock().expect(LOCKED).iter_mut()) {
                let is_declined = matches!(property.question, Question::Declined(_));
                verdict.take_if(|verdict| !is_declined && matches!(verdict, Verdict::CannotCompute(_)));
            }
        }
        Ok(())
    }

    fn conclude_markings<S: Storage>(
        &self,
        table: &VectorTable<S>,
        interpreted: &Interpreted,
        exploration: &Exploration,
        limits: Limits,
    ) -> Result<()> {
        let Interpreted { interpreter, .. } = interpreted;
        let model = interpreter.model();
        let survey = self.survey(model).context("a net is surveyed")?;
        let surveyed = survey.run(table, limits.stop)?;
        let is_whole = exploration.end == End::Complete && surveyed.stopped.is_none();
        *self.counts.lock().expect(LOCKED) = Some((exploration.counts, is_whole));
        let end = surveyed.stopped.map_or(exploration.end, End::Stopped);
        let (mut holds, mut sums) = (surveyed.holds.iter(), surveyed.sums.iter());
        let mut verdicts = Vec::new();
        for Property { question, .. } in &self.all {
            // A verdict that holds whatever else is found, or else one that needs all states.
            let (now, whole) = match question {
                Question::Reach { if_reached, .. } => {
                    let is_reached = holds.next().is_some_and(Option::is_some);
                    (is_reached.then_some(Verdict::Truth(*if_reached)), Some(Verdict::Truth(!if_reached)))
                }
                Question::Bound(_) => (None, sums.next().map(|most| Verdict::Number(*most))),
                Question::Initial(condition) => {
                    let check: Check = condition.check(model.net.as_ref().context("a net")?, &model.layout);
                    let firings = interpreter.firings().context("a net has firings")?;
                    (Some(Verdict::Truth(check.holds(firings, &model.initial_state()))), None)
                }
                Question::Global(global) => {
                    let (now, mut whole) = of_all(*global, &surveyed, exploration);
                    if *global == Global::Liveness && is_whole && now.is_none() {
                        whole = Some(match is_live(table, interpreted, interpreter, limits) {
                            Ok(is_live) => Verdict::Truth(is_live),
                            Err(error) => Verdict::CannotCompute(format!("{error:#}")),
                        });
                    }
                    (now, whole)
                }
                Question::Declined(why) => (Some(Verdict::CannotCompute(why.clone())), None),
                Question::Runs { .. } | Question::Branching { .. } => (None, None),
            };
            verdicts.push(now.or_else(|| if is_whole { whole } else { Some(Verdict::CannotCompute(why(end))) }));
        }
        let mut known = self.verdicts.lock().expect(LOCKED);
        for (number, verdict) in verdicts.into_iter().enumerate().filter(|(number, _)| self.is_of_round(*number)) {
            // An exploration that ended before may have decided more than this one.
            let is_decided = matches!(known[number], Some(Verdict::Truth(_) | Verdict::Number(_)));
            if !is_decided || !matches!(verdict, Some(Verdict::CannotCompute(_)) | None) {
                known[number] = verdict;
            }
        }
        Ok(())
    }

    /// Whether the exploration of this round is for a formula of branching time.
    pub fn has_branching(&self) -> bool {
        let mut all = self.all.iter();
        self.round == Round::Markings && all.any(|property| matches!(property.question, Question::Branching { .. }))
    }

    /// The formulas of branching time that have no verdict, and the numbers of their properties.
    pub fn branching(&self, model: &Model) -> Option<(Branching, Vec<usize>)> {
        let net = model.net.as_ref().filter(|_| self.round == Round::Markings)?;
        let (mut parts, mut known, mut formulas, mut numbers) = (Parts::default(), Vec::new(), Vec::new(), Vec::new());
        for (number, Property { name, question }) in self.all.iter().enumerate().filter(|(number, _)| !self.is_decided(*number)) {
            let Question::Branching { parts: of, formula, conditions } = question else { continue };
            let here: Vec<Literal> = conditions
                .iter()
                .map(|condition| {
                    parts.condition(known.iter().position(|known| *known == condition).unwrap_or_else(|| {
                        known.push(condition);
                        known.len() - 1
                    }))
                })
                .collect();
            let formula = parts.adopt(of, *formula, |number| here[number]);
            formulas.push(ctl::Asked { text: name.clone(), formula });
            numbers.push(number);
        }
        let conditions = known.iter().map(|condition| condition.check(net, &model.layout)).collect();
        let conditions = Conditions::OfNet(conditions);
        let with_witnesses = self.paths.is_some();
        (!formulas.is_empty()).then_some((Branching { parts, conditions, formulas, with_witnesses, if_found: None }, numbers))
    }

    /// Keeps the answers to formulas of branching time.
    pub fn keep_branched(&self, branching: &Branching, numbers: &[usize], outcome: &ctl::Outcome, end: End, model: &Model) {
        let mut verdicts = self.verdicts.lock().expect(LOCKED);
        for (number, answered) in numbers.iter().zip(report::branching::all(branching, outcome)) {
            verdicts[*number] = Some(match answered.answer.verdict {
                check::Verdict::Holds => Verdict::Truth(true),
                check::Verdict::Violated => Verdict::Truth(false),
                check::Verdict::Unknown => {
                    Verdict::CannotCompute(outcome.why.as_ref().map_or_else(|| why(end), |error| format!("{error:#}")))
                }
            });
            if let (Some(paths), Some(Ok(witness))) = (&self.paths, &answered.answer.witness) {
                let json = report::branching::witness_json(answered, witness, model, self.show);
                paths.lock().expect(LOCKED).insert(answered.asked.text.clone(), json);
            }
        }
    }

    /// Answers the questions about runs, as far as the markings found tell and there is memory for them.
    fn conclude_runs<S: Storage>(&self, table: &VectorTable<S>, interpreted: &Interpreted, limits: Limits) -> Result<()> {
        let model = interpreted.interpreter.model();
        let net = model.net.as_ref().context("the model is a net")?;
        let mut known: Vec<&Condition> = Vec::new();
        let mut all: Vec<Violating> = Vec::new();
        // The number of each property, of its automaton among `all`, and whether it is the contrary of its formula.
        let mut asked: Vec<(usize, usize, bool)> = Vec::new();
        for (number, property) in self.all.iter().enumerate().filter(|(number, _)| !self.is_decided(*number)) {
            let Question::Runs { formula, conditions, is_negated } = &property.question else { continue };
            // One that is too large has its error in a round of its own.
            let automaton = Some(formula.clone().negated()).filter(|_| conditions.len() <= MOST_PROPOSITIONS);
            let Some(Ok(automaton)) = automaton.as_ref().map(translate) else { continue };
            let of_formula = conditions.iter().map(|condition| {
                known.iter().position(|known| *known == condition).unwrap_or_else(|| {
                    known.push(condition);
                    known.len() - 1
                })
            });
            let violating = Violating { conditions: of_formula.collect(), automaton };
            let at = all.iter().position(|other| *other == violating).unwrap_or_else(|| {
                all.push(violating);
                all.len() - 1
            });
            asked.push((number, at, *is_negated));
        }
        if asked.is_empty() {
            return Ok(());
        }
        let conditions: Vec<Check> = known.iter().map(|condition| condition.check(net, &model.layout)).collect();
        // The limit is of the device's memory, and a graph is in the host's.
        let free = if table.device().is_gpu() { memory::free_memory() / 5 * 4 } else { u64::MAX };
        let limits = Limits { bytes: limits.bytes.min(table.bytes().saturating_add(free)), ..limits };
        // Without memory or time for all markings, each formula has an exploration of its own.
        let Ok(runs) = Runs::load(table, interpreted, &conditions, limits) else { return Ok(()) };
        let bytes = limits.bytes.saturating_sub(table.bytes() + runs.bytes()) / rayon::current_num_threads() as u64;
        let of_one = Limits { bytes, ..limits };
        let violated: Vec<Option<bool>> = all.par_iter().map(|violating| runs.is_violated(violating, of_one)).collect();
        let mut verdicts = self.verdicts.lock().expect(LOCKED);
        for (number, at, is_negated) in asked {
            if let Some(is_violated) = violated[at] {
                verdicts[number] = Some(Verdict::Truth(is_violated == is_negated));
            }
        }
        Ok(())
    }

    /// Whether the property has a verdict.
    fn is_decided(&self, number: usize) -> bool {
        matches!(self.verdicts.lock().expect(LOCKED)[number], Some(Verdict::Truth(_) | Verdict::Number(_)))
    }

    /// Whether a formula about runs needs an exploration of its own: for a verdict, or for a run to show.
    fn needs_exploration(&self, number: usize) -> bool {
        let Question::Runs { is_negated, .. } = self.all[number].question else { return false };
        let is_shown = || self.paths.is_some() && self.verdicts.lock().expect(LOCKED)[number] == Some(Verdict::Truth(is_negated));
        !self.is_decided(number) || is_shown()
    }

    /// Whether the engine must show a path in this round; takes it.
    pub fn take_path(&self, model: &Model, checks: &Checks, path: Result<warpset_model::trace::Path>) {
        let (Round::Path(number), Some(paths)) = (self.round, &self.paths) else { return };
        match path {
            Ok(path) => {
                drop(paths.lock().expect(LOCKED).insert(self.all[number].name.clone(), path.json(model, checks, self.show)))
            }
            Err(error) => self.fail(&error),
        }
    }

    pub fn wants_path(&self) -> bool {
        matches!(self.round, Round::Path(_))
    }

    /// The properties that a marking decides, which a path shows.
    fn with_paths(&self) -> Vec<usize> {
        let verdicts = self.verdicts.lock().expect(LOCKED);
        let is_shown = |number: &usize| match &self.all[*number].question {
            Question::Reach { if_reached, .. } => verdicts[*number] == Some(Verdict::Truth(*if_reached)),
            _ => false,
        };
        (0..self.all.len()).filter(is_shown).collect()
    }

    /// A line for each property; the reasons why there is no verdict are printed on standard error.
    fn lines(&self) -> String {
        let verdicts = self.verdicts.lock().expect(LOCKED);
        let mut text = String::new();
        for (Property { name, .. }, verdict) in self.all.iter().zip(&*verdicts) {
            let verdict = match verdict {
                Some(Verdict::Truth(truth)) => if *truth { "TRUE" } else { "FALSE" }.into(),
                Some(Verdict::Number(number)) => number.to_string(),
                Some(Verdict::CannotCompute(why)) => {
                    program::print_warning(&format!("warning: {name}: {}\n", escaping::line(why)));
                    "CANNOT_COMPUTE".into()
                }
                None => "CANNOT_COMPUTE".into(),
            };
            text += &format!("FORMULA {name} {verdict} TECHNIQUES EXPLICIT\n");
        }
        text
    }

    /// Writes paths, and prints the answers as one object if that is wanted. `failure` ended the explorations before all
    /// properties were answered; if none was, it is returned.
    fn finish(self, display: &DisplayOptions, model: &Model, trace: Option<Output>, failure: Option<Error>) -> Result<u8> {
        let has_answers = self.verdicts.lock().expect(LOCKED).iter().any(Option::is_some);
        if failure.is_some() && !has_answers {
            return failure.map_or(Ok(0), Err);
        }
        let sentence = failure.as_ref().map(program::sentence);
        let mut unwritten = Unwritten::default();
        if let (Some(output), Some(paths)) = (trace, &self.paths) {
            unwritten.keep(output.write_text(&format!("{:#}\n", Value::from(paths.lock().expect(LOCKED).clone()))));
        }
        let lines = self.lines();
        if !display.json {
            program::print(&lines)?;
        }
        let verdicts = self.verdicts.into_inner().expect(LOCKED);
        let is_open = |verdict: &Option<Verdict>| matches!(verdict, None | Some(Verdict::CannotCompute(_)));
        let code = match stopping::asked() {
            Some(Stop::Interrupted) => exit::INTERRUPTED,
            _ if failure.is_some() || unwritten.sentence().is_some() => exit::ERROR,
            _ if verdicts.iter().any(is_open) => exit::INCOMPLETE,
            _ => 0,
        };
        if display.json {
            let one = |(property, verdict): (&Property, &Option<Verdict>)| match verdict {
                Some(Verdict::Truth(truth)) => json!({ "name": property.name, "verdict": if *truth { "TRUE" } else { "FALSE" } }),
                Some(Verdict::Number(number)) => json!({ "name": property.name, "verdict": number }),
                Some(Verdict::CannotCompute(why)) => json!({ "name": property.name, "verdict": "CANNOT_COMPUTE", "why": why }),
                None => json!({ "name": property.name, "verdict": "CANNOT_COMPUTE" }),
            };
            let properties: Vec<Value> = self.all.iter().zip(&verdicts).map(one).collect();
            let counts = self.counts.into_inner().expect(LOCKED);
            let report = json!({
                "model": model.source.name,
                "properties": properties,
                "ignored": ignored(model),
                "counts": {
                    "states": counts.map(|(counts, _)| counts.states),
                    "transitions": counts.map(|(counts, _)| counts.transitions),
                },
                "complete": counts.map(|(_, is_whole)| is_whole),
                "error": failure.map(|error| format!("{error:#}")).or(unwritten.sentence()),
                "exit_code": code,
            });
            program::print(&format!("{report}\n"))?;
        }
        sentence.iter().for_each(|text| program::print_error(text));
        unwritten.print();
        Ok(code)
    }
}

/// The verdict of a property of the whole net: one that holds whatever else is found, and one if all states were found.
fn of_all(global: Global, surveyed: &Surveyed, exploration: &Exploration) -> (Option<Verdict>, Option<Verdict>) {
    let truth = |truth: bool| Some(Verdict::Truth(truth));
    let fires_all = surveyed.firings.iter().all(|count| *count > 0);
    let has_deadlock = exploration.counts.deadlocks > 0;
    match global {
        Global::ReachabilityDeadlock => (truth(true).filter(|_| has_deadlock), truth(false)),
        Global::OneSafe => (truth(false).filter(|_| surveyed.max_in_place > 1), truth(true)),
        Global::QuasiLiveness => (truth(true).filter(|_| fires_all), truth(false)),
        Global::StableMarking => {
            let change_all = surveyed.changes.iter().all(|changes| *changes);
            (truth(false).filter(|_| change_all), truth(true))
        }
        // With a deadlock, no transition can fire again; one that never fires needs all states to be known.
        Global::Liveness if has_deadlock && !surveyed.firings.is_empty() => (truth(false), None),
        Global::Liveness if exploration.end == End::Complete && !fires_all => (truth(false), None),
        Global::Liveness => (None, None),
    }
}
