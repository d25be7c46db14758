//! Questions about a model: about its runs, by its own property process, a formula or an automaton in a file; about where its
//! states lead; and about each state.

use crate::options::{CheckOptions, DisplayOptions, InputOptions, RunOptions};
use crate::properties::Properties;
use anyhow::{Context, Result, bail, ensure};
use warpset_model::checks::{Checks, Role};
use warpset_model::diagnostic::Severity;
use warpset_model::input;
use warpset_model::ir::{Expression, Source, Span, Unary};
use warpset_model::language::Text;
use warpset_model::ltl::buchi::MOST_PROPOSITIONS;
use warpset_model::ltl::hoa::Named;
use warpset_model::ltl::property::{conditions, ensure_is_said, of_process, set_automaton, set_formula};
use warpset_model::warnings::{Warning, Warnings};
use warpset_search::ctl::{self, Branching, Conditions};
use warpset_search::liveness::check::{Question, Verdict};
use warpset_search::liveness::possible::Possible;
use warpset_support::output::Output;
use warpset_support::program;

/// Questions about a model. At most one of `question`, `possible` and `branching` is set.
pub struct Inquiry {
    /// The question about runs.
    pub question: Option<Question>,
    /// The automaton of that question, for output; `None` if the question is one of `--properties`.
    automaton: Option<Named>,
    pub possible: Option<Possible>,
    pub branching: Option<Branching>,
    /// Checks of each state.
    pub checks: Checks,
    /// Warnings of the model and of all that is asked.
    pub warnings: Warnings,
}

impl Inquiry {
    /// Collects the questions of the options or, with `properties`, of their round. Gives the model the automaton of the
    /// question.
    pub fn of(
        input: &InputOptions,
        of_states: &CheckOptions,
        runs: &RunOptions,
        model: &mut Text,
        properties: Option<&Properties>,
    ) -> Result<Self> {
        if input.no_property {
            ensure!(model.model().property.is_some(), "--no-property: the model has no property process");
            model.model_mut().remove_property();
        }
        let severity = of_states.severity();
        let mut warnings = Warnings::default();
        warnings.add(&model.model().source, model.warnings(), severity, program::has_colors());
        warnings.of_option("--interleave", model.missing_gates());
        let (asked, automaton) = question(of_states, runs, model, &mut warnings)?.unzip();
        let possible = possible(runs, model, severity, &mut warnings)?;
        let (branching, of_branching) = branching(runs, model, severity, &mut warnings)?.unzip();
        let question = properties.map(|properties| properties.question(model)).transpose()?.flatten().or(asked);
        let checks = match (&question, &model.model().property, properties) {
            _ if possible.is_some() => Checks::default(),
            _ if branching.is_some() => of_branching.unwrap_or_default(),
            (Some(question), Some(property), _) => question.checks(property),
            (_, _, Some(properties)) => properties.checks(model.model())?,
            _ => checks(of_states, model, &mut warnings)?,
        };
        Ok(Self { question, automaton, possible, branching, checks, warnings })
    }

    /// Whether something is asked of runs or paths, and not of single states.
    pub fn is_about_runs(&self) -> bool {
        self.question.is_some() || self.possible.is_some() || self.branching.is_some()
    }

    /// Writes the automaton of the question.
    pub fn emit(&self, runs: &RunOptions, display: &DisplayOptions, model: &Text, file: Output) -> Result<u8> {
        let (Some(question), Some(automaton)) = (&self.question, &self.automaton) else {
            bail!("--emit-buchi: there is no property; give one by --ltl or --buchi");
        };
        if runs.ltl.is_none() && runs.buchi.is_none() {
            ensure_is_said(model)?;
        }
        let count = automaton.propositions.len();
        ensure!(
            count <= MOST_PROPOSITIONS,
            "--emit-buchi: the property has {count} guards, but at most {MOST_PROPOSITIONS} are possible"
        );
        let path = file.path().to_path_buf();
        let is_dot = path.extension().is_some_and(|kind| kind == "dot");
        // The automaton of a formula accepts the runs that violate it.
        let name = runs.ltl.as_ref().map_or_else(|| question.text.clone(), |text| format!("not ({text})"));
        file.write_text(&if is_dot { automaton.dot(&name) } else { automaton.hoa(&name) })?;
        if display.json {
            let done = serde_json::json!({
                "emitted": path.display().to_string(), "automaton": question.kind.word(),
                "automaton_states": question.automaton.accepting.len(), "error": null, "exit_code": 0
            });
            program::print(&format!("{done}\n"))?;
        }
        Ok(0)
    }
}

/// Returns the question about runs with its automaton, and gives the model that automaton; `None` if nothing is asked of runs.
fn question(
    of_states: &CheckOptions,
    runs: &RunOptions,
    model: &mut Text,
    warnings: &mut Warnings,
) -> Result<Option<(Question, Named)>> {
    let mut warn = |source: &Source, of: &[Warning]| warnings.add(source, of, of_states.severity(), program::has_colors());
    let asked = if let Some(text) = &runs.ltl {
        let source = Source { name: "--ltl".into(), text: text.clone() };
        Some((text.clone(), set_formula(model, &source, &mut warn)?))
    } else if let Some(path) = &runs.buchi {
        let source = input::read_text(path).context("--buchi")?;
        Some((format!("no run of {}", source.name), set_automaton(model, &source, &mut warn)?))
    } else {
        let model = model.model();
        model.property.as_ref().map(|property| {
            let name = &model.processes[property.process].name;
            (format!("no run of process {name}"), of_process(model, property))
        })
    };
    let is_fair_net = runs.fair.is_some() && model.model().net.is_some();
    ensure!(!is_fair_net, "--fair is about processes, and a Petri net has none");
    let Some((text, automaton)) = asked else {
        ensure!(runs.fair.is_none(), "--fair applies to a property of runs, but none is given: add --ltl or --buchi");
        return Ok(None);
    };
    let others = [
        ("--deadlock", of_states.deadlock),
        ("--invariant", !of_states.invariant.is_empty()),
        ("--goal", !of_states.goal.is_empty()),
    ];
    for (name, is_given) in others {
        let how = if runs.ltl.is_some() || runs.buchi.is_some() {
            String::new()
        } else {
            format!(" of the model; ask in two runs: one with --no-property, which checks states only, and one without {name}")
        };
        ensure!(!is_given, "{name} checks states and cannot be combined with a property of runs{how}");
    }
    Ok(Some((Question::of(model.model(), text, runs.fair.is_some()), automaton)))
}

/// The question about where states can lead, if one is asked.
fn possible(runs: &RunOptions, model: &Text, severity: Severity, warnings: &mut Warnings) -> Result<Option<Possible>> {
    let (name, role, text) = match (&runs.ef, &runs.livelock) {
        (Some(text), _) => ("--ef", Role::Possible, text),
        (_, Some(text)) => ("--livelock", Role::Progress, text),
        (None, None) => return Ok(None),
    };
    ensure!(
        model.model().property.is_none(),
        "{name} cannot be combined with the model's property process (--no-property ignores it)"
    );
    let source = Source { name: name.into(), text: text.clone() };
    let span = Span { start: 0, end: text.len() as u32, line: 1, column: 1 };
    let mut warn = |source: &Source, of: &[Warning]| warnings.add(source, of, severity, program::has_colors());
    let condition = conditions(model, &source, std::slice::from_ref(text), &[span], &mut warn)?.remove(0);
    Ok(Some(Possible::new(role, text.clone(), condition)))
}

/// The formulas of branching time, and the check that decides the only one of them early; `None` if none is asked.
fn branching(
    runs: &RunOptions,
    model: &Text,
    severity: Severity,
    warnings: &mut Warnings,
) -> Result<Option<(Branching, Checks)>> {
    if runs.ctl.is_empty() {
        return Ok(None);
    }
    ensure!(
        model.model().property.is_none(),
        "--ctl cannot be combined with the model's property process (--no-property ignores it)"
    );
    let mut warn = |source: &Source, of: &[Warning]| warnings.add(source, of, severity, program::has_colors());
    let mut asked = warpset_model::ctl::Asked::default();
    for text in &runs.ctl {
        asked.add(model, &Source { name: "--ctl".into(), text: text.clone() }, &mut warn)?;
    }
    let (mut checks, mut if_found) = (Checks::default(), None);
    if let Some((goal, holds)) = asked.goal() {
        let (role, condition) = match holds {
            true => (Role::Goal, goal),
            false => (Role::Invariant, Expression::unary(Unary::Not, goal)),
        };
        checks.add(role, runs.ctl[0].clone(), condition);
        if_found = Some(if holds { Verdict::Holds } else { Verdict::Violated });
    }
    let formulas = asked.formulas.into_iter().map(|(text, formula)| ctl::Asked { text, formula });
    let branching = Branching {
        parts: asked.parts,
        conditions: Conditions::Expressions(asked.conditions),
        formulas: formulas.collect(),
        with_witnesses: true,
        if_found,
    };
    Ok(Some((branching, checks)))
}

/// The assertions of the model, and the checks that the command line requests.
fn checks(of_states: &CheckOptions, text: &Text, warnings: &mut Warnings) -> Result<Checks> {
    let mut checks = Checks { deadlocks: of_states.deadlock, ..Checks::of_model(text.model()) };
    let conditions = [(Role::Invariant, "--invariant", &of_states.invariant), (Role::Goal, "--goal", &of_states.goal)];
    for (role, name, texts) in conditions {
        for condition in texts {
            let source = Source { name: name.into(), text: condition.clone() };
            let (condition, of_condition) = text.condition(&source)?;
            warnings.add(&source, &of_condition, of_states.severity(), program::has_colors());
            checks.add(role, source.text, condition);
        }
    }
    Ok(checks)
}
