//! A whole model.

use super::ids::RuleId;
use super::property::Move;
use super::range::range_where;
use super::{
    Assertion, Buffer, Channel, Expression, Ignored, Layout, Location, LocationId, MAX_WORDS, Net, Network, Packing, Process,
    ProcessId, Property, Range, Source, Transition, TransitionId, Variable, VariableId,
};
use anyhow::{Result, ensure};

/// A constant whose value the user has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    pub name: String,
    pub value: i32,
}

/// A whole model, checked: every index is valid, every initial value fits its type.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Name and text of the model's source, for messages.
    pub source: Source,
    /// Parts of the source that front ends skip.
    pub ignored: Vec<Ignored>,
    /// The constants whose values the user has changed.
    pub constants: Vec<Constant>,
    /// All constants of a DVE model with the values that the search uses; empty in other languages.
    pub all_constants: Vec<Constant>,
    /// The variables that belong to no process, then the variables of each process; in the order of the source.
    pub variables: Vec<Variable>,
    pub processes: Vec<Process>,
    /// Rendezvous channels.
    pub channels: Vec<Channel>,
    pub buffers: Vec<Buffer>,
    /// The transitions of each process, in the order of the source.
    pub transitions: Vec<Transition>,
    pub assertions: Vec<Assertion>,
    /// Transition systems that take steps together, in addition to the processes.
    pub network: Option<Network>,
    /// Places and transitions of a Petri net, in addition to the processes.
    pub net: Option<Net>,
    /// The automaton of the forbidden runs, if the model has a property. States are then [product states](super::property).
    pub property: Option<Property>,
    pub layout: Layout,
}

impl Model {
    /// Whether any location is committed, so that rule 3 of the steps matters.
    pub fn has_committed_locations(&self) -> bool {
        self.processes.iter().flat_map(|process| &process.locations).any(|location| location.committed)
    }

    /// Label of a rule of the network; empty if there is no network.
    pub fn rule_label(&self, rule: RuleId) -> &str {
        self.network.as_ref().map_or("", |network| network.labels.get(network.label_of(rule)))
    }

    /// Name of a transition of the net; empty if there is no net.
    pub fn firing_name(&self, transition: TransitionId) -> &str {
        self.net.as_ref().map_or("", |net| &net.transitions[transition].name)
    }

    /// The packed initial state.
    pub fn initial_state(&self) -> Vec<u32> {
        let mut state = vec![0; self.layout.words];
        for (process, field) in self.processes.iter().zip(&self.layout.locations) {
            field.set(&mut state, 0, process.initial as i32);
        }
        for (variable, field) in self.variables.iter().zip(&self.layout.variables) {
            for (element, value) in variable.initial.iter().enumerate() {
                if let Some(field) = field {
                    field.set(&mut state, element, *value);
                }
            }
        }
        state
    }

    /// The location of a process in a packed state.
    pub fn location(&self, state: &[u32], process: ProcessId) -> LocationId {
        self.layout.locations[process].get(state, 0) as usize
    }

    /// The value of an element of a variable (element 0 of a scalar) in a packed state.
    ///
    /// `element` must be below the variable's number of elements.
    pub fn value(&self, state: &[u32], variable: VariableId, element: usize) -> i32 {
        match self.layout.variables[variable] {
            Some(field) => field.get(state, element),
            None => self.variables[variable].initial[element],
        }
    }

    /// Unambiguous name of a variable: `x`, or `P.x` for a variable of process P.
    pub fn full_name(&self, variable: VariableId) -> String {
        let Variable { name, process, .. } = &self.variables[variable];
        process.map_or_else(|| name.clone(), |process| format!("{}.{name}", self.processes[process].name))
    }

    /// Removes the property from the model, if it has one.
    pub fn remove_property(&mut self) {
        if self.property.take().is_some() {
            let process = self.processes.len() - 1;
            self.processes.truncate(process);
            // The constants of the property now belong to no process.
            self.variables.iter_mut().filter(|of| of.process == Some(process)).for_each(|of| of.process = None);
            self.layout = Layout::packed(self.layout.packing, &self.processes, &self.variables);
        }
    }

    /// Gives each location, variable and element of an array a word of its own in states.
    ///
    /// # Errors
    ///
    /// A state then takes more words than the widest vector of a table. The layout is unchanged.
    pub fn unpack(&mut self) -> Result<()> {
        let layout = Layout::packed(Packing::Words, &self.processes, &self.variables);
        let (words, most) = (layout.words, MAX_WORDS);
        ensure!(words <= most, "unpacked states take {words} words of 32 bits; {most} are possible");
        self.layout = layout;
        Ok(())
    }

    /// Adds an automaton as a process with these locations. Replaces the previous automaton, if any.
    ///
    /// # Errors
    ///
    /// A state takes more words than the widest vector of a table.
    pub fn set_property(
        &mut self,
        name: String,
        locations: Vec<String>,
        initial: LocationId,
        accepting: Vec<bool>,
        moves: Vec<Move>,
    ) -> Result<()> {
        self.remove_property();
        let locations = locations.into_iter().map(|name| Location { name, committed: false }).collect();
        let none = self.transitions.len()..self.transitions.len();
        self.processes.push(Process { name, locations, initial, transitions: none });
        let layout = Layout::packed(self.layout.packing, &self.processes, &self.variables);
        let most = MAX_WORDS;
        ensure!(layout.words <= most, "states with the automaton's take {} words of 32 bits; {most} are possible", layout.words);
        self.layout = layout;
        self.property = Some(Property::new(self.processes.len() - 1, accepting, moves));
        Ok(())
    }

    /// The location of the property's automaton in a packed state.
    pub fn property_location(&self, property: &Property, state: &[u32]) -> LocationId {
        self.location(state, property.process)
    }
}

/// Range of an expression of the model in any reachable state.
pub fn range(model: &Model, expression: &Expression) -> Range {
    range_where(expression, &|variable, _| model.variables[variable].values)
}
