//! The meaning of a model's names in conditions.

use super::expressions::Meaning;
use super::grammar::{Pair, span};
use crate::diagnostic::Diagnostic;
use crate::ir::expression::Binary;
use crate::ir::{Expression, LocationId, ProcessId, Span, VariableId};
use crate::parsing::{Declared, unknown};

/// All names of a model.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Whether the model has only one object, whose name may be left out.
    pub has_one_object: bool,
    pub by_name: Declared<usize>,
    pub objects: Vec<ObjectNames>,
    pub channels: Declared<usize>,
    /// Names of state machines, by process.
    pub machines: Vec<MachineNames>,
}

#[derive(Clone, Debug)]
pub struct ObjectNames {
    pub name: String,
    pub variables: Declared<VariableId>,
    pub machines: Declared<ProcessId>,
}

#[derive(Clone, Debug, Default)]
pub struct MachineNames {
    pub process: ProcessId,
    pub variables: Declared<VariableId>,
    pub states: Declared<LocationId>,
    /// By state: locations in which statements are still to do while the machine is in that state already.
    pub rests: Vec<Vec<LocationId>>,
}

impl Names {
    /// The prefix of an object's names.
    pub fn prefix(&self, object: &str) -> String {
        if self.has_one_object { String::new() } else { format!("{object}.") }
    }
}

impl super::expressions::Names for Names {
    /// Resolves `object.variable`, `object.machine.state` or `object.machine.variable`.
    fn find(&self, names: &[Pair], at: Span) -> Result<Meaning, Diagnostic> {
        let (first, rest) = names.split_first().expect("a reference has a name");
        if let Some(&object) = self.by_name.get(first.as_str()) {
            return self.objects[object].find(self, rest, at);
        }
        match &self.objects[..] {
            [object] => object.find(self, names, at),
            _ => Err(unknown("object", first.as_str(), span(first), &self.by_name.names())),
        }
    }
}

impl ObjectNames {
    fn find(&self, all: &Names, names: &[Pair], at: Span) -> Result<Meaning, Diagnostic> {
        let known = || [self.variables.names(), self.machines.names()].concat();
        match names {
            [] => Err(Diagnostic::new(at, format!("`{}` is an object", self.name), "one of its variables or states is needed")
                .with_help(format!("there are: {}", known().join(", ")))),
            [name] => match (self.variables.get(name.as_str()), self.machines.get(name.as_str())) {
                (Some(variable), _) => Ok(Meaning::Variable(*variable)),
                (None, Some(_)) => {
                    let label = "one of its states or variables is needed";
                    Err(Diagnostic::new(at, format!("`{}` is a state machine", name.as_str()), label))
                }
                (None, None) => {
                    Err(unknown(&format!("variable or state machine of {}", self.name), name.as_str(), span(name), &known()))
                }
            },
            [machine, name] => match self.machines.get(machine.as_str()) {
                Some(process) => all.machines[*process].find(machine, name),
                None => {
                    let what = format!("state machine of {}", self.name);
                    Err(unknown(&what, machine.as_str(), span(machine), &self.machines.names()))
                }
            },
            _ => Err(Diagnostic::new(at, "more names than there can be", "object.machine.name has three")),
        }
    }
}

impl MachineNames {
    fn find(&self, machine: &Pair, name: &Pair) -> Result<Meaning, Diagnostic> {
        if let Some(&state) = self.states.get(name.as_str()) {
            let places = [state].into_iter().chain(self.rests[state].iter().copied());
            let at = places.map(|location| Expression::At { process: self.process, location }).collect();
            let anywhere = Expression::joined(at, Binary::Or, span(name)).expect("a state is a location");
            return Ok(Meaning::StoreTarget(anywhere));
        }
        match self.variables.get(name.as_str()) {
            Some(variable) => Ok(Meaning::Variable(*variable)),
            None => {
                let known = [self.states.names(), self.variables.names()].concat();
                Err(unknown(&format!("state or variable of {}", machine.as_str()), name.as_str(), span(name), &known))
            }
        }
    }
}
