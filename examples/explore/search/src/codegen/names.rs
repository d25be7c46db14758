//! What the parts of a model are called in C++.

use crate::ir::Model;

/// Names that tell what is meant, and numbers that make them different.
pub struct Names {
    variables: Vec<String>,
    processes: Vec<String>,
}

impl Names {
    pub fn new(model: &Model) -> Self {
        let variables = (0..model.variables.len()).map(|id| format!("{id}_{}", identifier(&model.full_name(id))));
        let processes = model.processes.iter().enumerate().map(|(id, process)| format!("{id}_{}", identifier(&process.name)));
        Self { variables: variables.collect(), processes: processes.collect() }
    }

    /// Behind `get_` and `set_`.
    pub fn variable(&self, id: usize) -> &str {
        &self.variables[id]
    }

    /// Behind `at_`, `move_` and `steps_of_`.
    pub fn process(&self, id: usize) -> &str {
        &self.processes[id]
    }
}

/// The text with what C++ does not allow in names replaced.
fn identifier(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}
