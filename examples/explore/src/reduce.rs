//! `--reduce` and `--dependencies`: which steps a search may leave out.

use crate::options::{CheckOptions, DisplayOptions, Reduce};
use anyhow::{Context, Result, ensure};
use warpset_model::checks::Checks;
use warpset_model::interpreter::Interpreter;
use warpset_model::ir::Model;
use warpset_model::reduction::actions::Tests;
use warpset_model::reduction::dependencies::Dependencies;
use warpset_model::reduction::stubborn::{Kept, STEPS_FOR_ONE, Stubborn, TRIAL};
use warpset_support::output::Output;
use warpset_support::program;

/// A reduction that was asked for.
pub struct Reduction<'m> {
    pub kept: Kept,
    /// Chooses the steps to take; `None` if a trial left too little out, so that all steps are taken.
    pub stubborn: Option<Stubborn<'m>>,
}

impl<'m> Reduction<'m> {
    /// The reduction that `options` ask for, if they do. `is_about_runs`: something is asked about runs.
    ///
    /// # Errors
    ///
    /// The reduction would not keep what is asked, or the model cannot be reduced.
    pub fn of(options: &CheckOptions, model: &'m Model, checks: &Checks, is_about_runs: bool) -> Result<Option<Self>> {
        let Some(reduce) = options.reduce else { return Ok(None) };
        ensure!(!is_about_runs, "--reduce keeps deadlocks and goals, but not all runs, and something is asked about runs here");
        let has_conditions = !checks.conditions.is_empty();
        let kept = match reduce {
            Reduce::Deadlocks => {
                ensure!(
                    !has_conditions,
                    "--reduce deadlocks would miss states that are checked otherwise (--goal, --invariant, assertions of the \
                     model): --reduce auto keeps them, too"
                );
                Kept { deadlocks: true, goals: false }
            }
            Reduce::Goal => {
                ensure!(has_conditions, "--reduce goal: no --goal or --invariant is given, and the model has no assertion");
                ensure!(!options.deadlock, "--reduce goal would miss deadlocks: with --deadlock, --reduce auto keeps both");
                Kept { deadlocks: false, goals: true }
            }
            Reduce::Auto => {
                ensure!(
                    has_conditions || options.deadlock,
                    "--reduce auto: nothing is asked (--deadlock, --goal, --invariant), and a reduced search counts no states of \
                     the model"
                );
                Kept { deadlocks: options.deadlock, goals: has_conditions }
            }
        };
        ensure!(
            !(kept.goals && options.keep_going),
            "--reduce keeps nothing behind a goal or violation, where --keep-going would go on: give one of them"
        );
        let stubborn = Stubborn::of(model, checks, kept).context("--reduce: this model is not reduced")?;
        let saves = stubborn.saves(&Interpreter::new(model));
        Ok(Some(Self { kept, stubborn: saves.then_some(stubborn) }))
    }

    /// The answers that the search keeps, in words.
    pub fn word(&self) -> &'static str {
        match self.kept {
            Kept { deadlocks: true, goals: true } => "deadlocks and goal",
            Kept { goals: true, .. } => "goal",
            _ => "deadlocks",
        }
    }

    /// The remark at the number of states.
    pub fn remark(&self) -> String {
        match self.stubborn {
            Some(_) => format!("reduced: {}", self.word()),
            None => format!(
                "not reduced: fewer than 1 of {STEPS_FOR_ONE} steps could be left out in a trial of at most {TRIAL} states"
            ),
        }
    }
}

/// Writes the dependencies of a model's steps.
pub fn write_dependencies(display: &DisplayOptions, model: &Model, file: Output) -> Result<u8> {
    let dependencies = Dependencies::of(model, Tests::default(), true).context("--dependencies: this model has no list")?;
    let path = file.path().to_path_buf();
    file.write_text(&dependencies.reasons.unwrap_or_default())?;
    if display.json {
        let (actions, tests) = (dependencies.actions.all.len(), dependencies.tests.len());
        let conflicts: usize = dependencies.conflicts.iter().map(|row| row.count_ones(..)).sum();
        let enablers: usize = dependencies.enablers.iter().map(|row| row.count_ones(..)).sum();
        let done = serde_json::json!({ "dependencies": path.display().to_string(), "steps": actions, "conditions": tests,
            "do_not_accord": conflicts / 2, "may_make_true": enablers, "error": null, "exit_code": 0 });
        program::print(&format!("{done}\n"))?;
    }
    Ok(0)
}
