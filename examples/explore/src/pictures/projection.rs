//! Projections of states: the parts of a state by which a picture tells states apart.

use anyhow::{Result, bail};
use std::collections::HashMap;
use warpset_model::ir::{Model, ProcessId, Span, VariableId};
use warpset_support::escaping;

/// The parts that a picture shows.
pub struct Projection(Vec<(String, Part)>);

#[derive(Clone, Copy)]
enum Part {
    Process(ProcessId),
    Variable(VariableId),
    Place(usize),
}

impl Projection {
    /// The projection to these names of processes, components, variables or places. Each text is a name, or has names between
    /// commas.
    ///
    /// # Errors
    ///
    /// An unknown name, or one that is given twice.
    pub fn new(model: &Model, texts: &[String]) -> Result<Self> {
        let of_property = model.property.as_ref().map(|property| property.process);
        let processes = model.processes.iter().enumerate().filter(|(id, _)| Some(*id) != of_property);
        let mut known: Vec<_> = processes.map(|(id, process)| (process.name.clone(), Part::Process(id))).collect();
        match &model.net {
            Some(net) => known.extend(net.places.iter().enumerate().map(|(id, place)| (place.name.clone(), Part::Place(id)))),
            None => {
                let written = (0..model.variables.len()).filter(|id| model.variables[*id].is_written);
                known.extend(written.map(|id| (model.full_name(id), Part::Variable(id))));
            }
        }
        let by_name: HashMap<&str, Part> = known.iter().rev().map(|(name, part)| (&**name, *part)).collect();
        let whole_or_parts = |text: &String| match by_name.contains_key(&**text) {
            true => vec![text.clone()],
            false => text.split(',').map(|name| name.trim().to_string()).collect(),
        };
        let mut parts: Vec<(String, Part)> = Vec::new();
        for name in texts.iter().flat_map(whole_or_parts) {
            let Some(part) = by_name.get(&*name) else {
                let names: Vec<&str> = known.iter().map(|(name, _)| &**name).collect();
                let error = warpset_model::parsing::unknown("process, variable or place", &name, Span::default(), &names);
                let help = error.help.map_or(String::new(), |help| format!(": {help}"));
                bail!("--project: {}{}", escaping::line(&error.message), escaping::line(&help));
            };
            if parts.iter().any(|(other, _)| *other == name) {
                bail!("--project: `{}` is given twice", escaping::line(&name));
            }
            parts.push((name, *part));
        }
        Ok(Self(parts))
    }

    /// The names, as a list.
    pub fn names(&self) -> String {
        self.0.iter().map(|(name, _)| escaping::line(name)).collect::<Vec<_>>().join(", ")
    }

    /// The parts of a state, a line each.
    pub fn text(&self, model: &Model, state: &[u32]) -> String {
        let part = |(name, part): &(String, Part)| {
            let name = escaping::line(name);
            match *part {
                Part::Process(id) => format!("{name}.{}", model.processes[id].locations[model.location(state, id)].name),
                Part::Place(id) => {
                    let net = model.net.as_ref().expect("only nets have places");
                    format!("{name} = {}", net.tokens(&model.layout, state, id))
                }
                Part::Variable(id) => {
                    let of = &model.variables[id];
                    let values: Vec<_> = (0..of.initial.len()).map(|at| model.value(state, id, at).to_string()).collect();
                    let list = |values: &[String]| format!("{{{}}}", values.join(", "));
                    match of.columns {
                        Some(columns) => format!("{name} = {}", list(&values.chunks(columns).map(list).collect::<Vec<_>>())),
                        None if of.is_array => format!("{name} = {}", list(&values)),
                        None => format!("{name} = {}", values[0]),
                    }
                }
            }
        };
        self.0.iter().map(part).collect::<Vec<_>>().join("\n")
    }
}
