//! Questions about runs: from the model's own property process, a formula or an automaton in a file.

use crate::options::Options;
use anyhow::{Context, Result, ensure};
use warpset_model::checks::{Checks, Role};
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

/// The question, and its automaton for output.
pub struct Asked {
    pub question: Question,
    automaton: Named,
}

/// Returns the question about runs and gives the model its automaton; `None` if nothing is asked of runs.
pub fn question(options: &Options, model: &mut Text, warnings: &mut Warnings) -> Result<Option<Asked>> {
    if options.input.no_property {
        ensure!(model.model().property.is_some(), "--no-property: the model has no property process");
        model.model_mut().remove_property();
    }
    let mut warn = |source: &Source, of: &[Warning]| warnings.add(source, of, options.severity(), program::has_colors());
    let asked = if let Some(text) = &options.runs.ltl {
        let source = Source { name: "--ltl".into(), text: text.clone() };
        Some((text.clone(), set_formula(model, &source, &mut warn)?))
    } else if let Some(path) = &options.runs.buchi {
        let source = input::read_text(path).context("--buchi")?;
        Some((format!("no run of {}", source.name), set_automaton(model, &source, &mut warn)?))
    } else {
        let model = model.model();
        model.property.as_ref().map(|property| {
            let name = &model.processes[property.process].name;
            (format!("no run of process {name}"), of_process(model, property))
        })
    };
    let is_fair_net = options.runs.fair.is_some() && model.model().net.is_some();
    ensure!(!is_fair_net, "--fair is about processes, and a Petri net has none");
    let Some((text, automaton)) = asked else {
        ensure!(options.runs.fair.is_none(), "--fair applies to a property of runs, but none is given: add --ltl or --buchi");
        return Ok(None);
    };
    let others = [
        ("--deadlock", options.checks.deadlock),
        ("--invariant", !options.checks.invariant.is_empty()),
        ("--goal", !options.checks.goal.is_empty()),
    ];
    for (name, is_given) in others {
        let how = if options.runs.ltl.is_some() || options.runs.buchi.is_some() {
            ""
        } else {
            " of the model; ask in two runs: one with --no-property, which checks states only, and one without {name}"
        };
        let how = how.replace("{name}", name);
        ensure!(!is_given, "{name} checks states and cannot be combined with a property of runs{how}");
    }
    Ok(Some(Asked { question: Question::of(model.model(), text, options.runs.fair.is_some()), automaton }))
}

/// The question about where states can lead, if one is asked.
pub fn possible(options: &Options, model: &Text, warnings: &mut Warnings) -> Result<Option<Possible>> {
    let (name, role, text) = match (&options.runs.ef, &options.runs.livelock) {
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
    let mut warn = |source: &Source, of: &[Warning]| warnings.add(source, of, options.severity(), program::has_colors());
    let condition = conditions(model, &source, std::slice::from_ref(text), &[span], &mut warn)?.remove(0);
    Ok(Some(Possible::new(role, text.clone(), condition)))
}

/// The formulas of branching time, and the check that decides the only one of them early; `None` if none is asked.
pub fn branching(options: &Options, model: &Text, warnings: &mut Warnings) -> Result<Option<(Branching, Checks)>> {
    if options.runs.ctl.is_empty() {
        return Ok(None);
    }
    ensure!(
        model.model().property.is_none(),
        "--ctl cannot be combined with the model's property process (--no-property ignores it)"
    );
    let mut warn = |source: &Source, of: &[Warning]| warnings.add(source, of, options.severity(), program::has_colors());
    let mut asked = warpset_model::ctl::Asked::default();
    for text in &options.runs.ctl {
        asked.add(model, &Source { name: "--ctl".into(), text: text.clone() }, &mut warn)?;
    }
    let (mut checks, mut if_found) = (Checks::default(), None);
    if let Some((goal, holds)) = asked.goal() {
        let (role, condition) = match holds {
            true => (Role::Goal, goal),
            false => (Role::Invariant, Expression::unary(Unary::Not, goal)),
        };
        checks.add(role, options.runs.ctl[0].clone(), condition);
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

impl Asked {
    /// Writes the automaton to a file.
    pub fn emit(&self, options: &Options, model: &Text, file: Output) -> Result<u8> {
        if options.runs.ltl.is_none() && options.runs.buchi.is_none() {
            ensure_is_said(model)?;
        }
        let count = self.automaton.propositions.len();
        ensure!(
            count <= MOST_PROPOSITIONS,
            "--emit-buchi: the property has {count} guards, but at most {MOST_PROPOSITIONS} are possible"
        );
        let path = options.runs.emit_buchi.as_deref().context("a file was opened")?;
        let is_dot = path.extension().is_some_and(|kind| kind == "dot");
        // The automaton of a formula accepts the runs that violate it.
        let name = options.runs.ltl.as_ref().map_or_else(|| self.question.text.clone(), |text| format!("not ({text})"));
        file.write_text(&if is_dot { self.automaton.dot(&name) } else { self.automaton.hoa(&name) })?;
        if options.display.json {
            let done = serde_json::json!({
                "emitted": path.display().to_string(), "automaton": self.question.kind.word(),
                "automaton_states": self.question.automaton.accepting.len(), "error": null, "exit_code": 0
            });
            program::print(&format!("{done}\n"))?;
        }
        Ok(0)
    }
}
