//! The steps of product states, exactly as `ir::property` defines them.

use crate::interpreter::{Fault, Interpreter, Scratch, Step};

/// A step of the product: a step of the processes and a move of the automaton.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductStep {
    /// Step of the processes; `None` if no step is possible.
    pub system: Option<Step>,
    /// Index of the automaton's move.
    pub moved: usize,
}

/// Counters of one call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counted {
    /// Steps of the processes.
    pub system_steps: u64,
    /// Stores that overflowed.
    pub overflows: u64,
}

impl Interpreter<'_> {
    /// Calls `visit` with each step of a product state and the state after it.
    ///
    /// # Errors
    ///
    /// The first fault of a guard of the automaton or of the processes. Faults of the processes count even if the automaton has
    /// no move. `visit` may have been called for some steps before the fault.
    pub fn product_steps(
        &self,
        state: &[u32],
        scratch: &mut Scratch,
        mut visit: impl FnMut(ProductStep, &[u32]),
    ) -> Result<Counted, Box<Fault>> {
        let model = self.model();
        let property = model.property.as_ref().expect("the model has a property");
        let field = model.layout.locations[property.process];
        let mut moves = Vec::new();
        for &number in &property.leaving[model.property_location(property, state)] {
            if self.may_take(number, state)? {
                moves.push(number);
            }
        }
        let mut product = Vec::new();
        let mut join = |system, successor: &[u32]| {
            for &moved in &moves {
                product.clear();
                product.extend_from_slice(successor);
                field.set(&mut product, 0, property.moves[moved].to as i32);
                visit(ProductStep { system, moved }, &product);
            }
        };
        let mut system_steps = 0;
        let overflows = self.steps(state, scratch, |step, successor| {
            system_steps += 1;
            join(Some(step), successor);
        })?;
        if system_steps == 0 {
            join(None, state);
        }
        Ok(Counted { system_steps, overflows })
    }
}
