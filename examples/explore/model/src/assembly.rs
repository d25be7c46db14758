//! Assembles a [`Model`] from the parts that a front end has read.

use crate::diagnostic::Diagnostic;
use crate::ir::bounds;
use crate::ir::{
    Action, Assertion, Buffer, Channel, Layout, MAX_WORDS, Model, Net, Network, Process, Property, Range, Source, Span,
    Transition, Variable,
};

/// Upper limit of the bits that variables and locations take together: the size of the widest vector of a table.
const MAX_BITS: usize = MAX_WORDS * 32;

/// The parts of a [`Model`], before they are linked and laid out.
#[derive(Default)]
pub struct Parts {
    pub variables: Vec<Variable>,
    pub processes: Vec<Process>,
    pub channels: Vec<Channel>,
    pub buffers: Vec<Buffer>,
    pub transitions: Vec<Transition>,
    pub assertions: Vec<Assertion>,
    pub property: Option<Property>,
    pub network: Option<Network>,
    pub net: Option<Net>,
}

/// Assembles the model: lists the senders and receivers of each channel, marks the variables that are written, bounds their
/// values, and lays out the state.
///
/// # Errors
///
/// A state takes more words than the widest vector of a table.
pub fn assembled(parts: Parts, source: &Source) -> Result<Model, Diagnostic> {
    let Parts { mut variables, processes, mut channels, buffers, transitions, assertions, property, network, net } = parts;
    for (id, transition) in transitions.iter().enumerate() {
        match &transition.action {
            Action::Alone | Action::Buffered { .. } => {}
            Action::Send { channel, .. } => channels[*channel].senders.push(id),
            Action::Receive { channel, targets } => {
                channels[*channel].receivers.push(id);
                targets.iter().for_each(|target| variables[target.variable].is_written = true);
            }
        }
        transition.effects.iter().for_each(|effect| variables[effect.target.variable].is_written = true);
    }
    // The front end has bounded the variables of a net. No transition of a process writes them.
    if net.is_none() {
        bounds::bound(&processes, &channels, &transitions, &mut variables);
    }
    for component in network.iter().flat_map(|network| &network.components) {
        let (variable, states) = (&mut variables[component.variable], component.table.states());
        variable.is_written = states > 1;
        variable.values = Range { low: 0, high: i64::from(states) - 1 };
    }
    let layout = laid_out(&processes, &variables)?;
    Ok(Model {
        source: source.clone(),
        ignored: Vec::new(),
        constants: Vec::new(),
        all_constants: Vec::new(),
        variables,
        processes,
        channels,
        buffers,
        transitions,
        assertions,
        property,
        network,
        net,
        layout,
    })
}

/// Lays out the states; fails if they are too long for a table.
fn laid_out(processes: &[Process], variables: &[Variable]) -> Result<Layout, Diagnostic> {
    let of_variable = |variable: &Variable| variable.initial.len() * variable.values.bits().next_power_of_two() as usize;
    let written = variables.iter().filter(|variable| variable.is_written);
    let bits = written.map(of_variable).sum::<usize>() + 8 * processes.len();
    let too_large = |words: usize| {
        let message = format!("a state of this model needs about {words} words of 32 bits");
        Diagnostic::new(
            Span { line: 1, column: 1, ..Span::default() },
            message,
            format!("at most {} are possible", MAX_BITS / 32),
        )
    };
    if bits > 2 * MAX_BITS {
        return Err(too_large(bits / 32));
    }
    let layout = Layout::new(processes, variables);
    if layout.words * 32 > MAX_BITS {
        return Err(too_large(layout.words));
    }
    Ok(layout)
}
