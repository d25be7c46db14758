//! Meaning of a model's names in conditions.

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
    /// By state: the locations in which the machine already counts as being in the state, although statements remain.
    pub rests: Vec<Vec<LocationId>>,
}

impl Names {
    /// If `names` is a single name: the first object or state machine that has a variable or state with this name.
    fn owner(&self, names: &[Pair]) -> Option<String> {
        let [name] = names else { return None };
        let name = name.as_str();
        self.objects.iter().find_map(|object| {
            if object.variables.get(name).is_some() {
                return Some(object.name.clone());
            }
            let machines = object.machines.names();
            let machine = machines.into_iter().find(|machine| {
                let process = object.machines.get(machine);
                let machine = process.map(|process| &self.machines[*process]);
                machine.is_some_and(|machine| machine.states.get(name).is_some() || machine.variables.get(name).is_some())
            });
            machine.map(|machine| format!("{}{machine}", self.prefix(&object.name)))
        })
    }

    /// Returns the prefix of an object's names.
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
            _ => {
                let error = unknown("object", first.as_str(), span(first), &self.by_name.names());
                Err(match self.owner(names) {
                    Some(owner) => error.with_help(format!("write {owner}.{}", first.as_str())),
                    None => error,
                })
            }
        }
    }
}

impl ObjectNames {
    fn find(&self, all: &Names, names: &[Pair], at: Span) -> Result<Meaning, Diagnostic> {
        let known = || [self.variables.names(), self.machines.names()].concat();
        match names {
            [] => Err(Diagnostic::new(at, format!("`{}` is an object", self.name), "name one of its variables or states")
                .with_help(format!("there are: {}", known().join(", ")))),
            [name] => match (self.variables.get(name.as_str()), self.machines.get(name.as_str())) {
                (Some(variable), _) => Ok(Meaning::Variable(*variable)),
                (None, Some(_)) => {
                    let label = "name one of its states or variables";
                    Err(Diagnostic::new(at, format!("`{}` is a state machine", name.as_str()), label))
                }
                (None, None) => {
                    let what = format!("variable or state machine of {}", self.name);
                    let error = unknown(&what, name.as_str(), span(name), &known());
                    Err(match all.owner(names) {
                        Some(owner) => error.with_help(format!("write {owner}.{}", name.as_str())),
                        None => error,
                    })
                }
            },
            [machine, name] => match self.machines.get(machine.as_str()) {
                Some(process) => all.machines[*process].find(machine, name),
                None => {
                    let what = format!("state machine of {}", self.name);
                    Err(unknown(&what, machine.as_str(), span(machine), &self.machines.names()))
                }
            },
            _ => Err(Diagnostic::new(at, "too many parts in the name", "a name has at most three parts: object.machine.name")),
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
