//! What is asked of runs: by the model's own property, or by the command line.

use super::check::Question;
use crate::dve::Dve;
use crate::options::Options;
use crate::warnings::Warnings;
use anyhow::{Result, ensure};

/// The question, and the model with its automaton; `None` if nothing is asked of runs.
pub fn question(options: &Options, dve: &mut Dve, _warnings: &mut Warnings) -> Result<Option<Question>> {
    if options.no_property {
        ensure!(dve.model.property.is_some(), "--no-property: the model has no property process");
        dve.model.remove_property();
    }
    let Some(property) = &dve.model.property else { return Ok(None) };
    let others =
        [("--deadlock", options.deadlock), ("--invariant", !options.invariant.is_empty()), ("--goal", !options.goal.is_empty())];
    for (name, is_given) in others {
        ensure!(
            !is_given,
            "{name} is about states, and the model has a property, which is about runs: ask for one at a time (--no-property leaves the property out)"
        );
    }
    let name = &dve.model.processes[property.process].name;
    Ok(Some(Question::of(&dve.model, format!("process {name} accepts no run"))))
}
