//! C++ names for the parts of a model.

use warpset_model::ir::Model;

/// Readable names, with numbers that make them unique.
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

    /// Name of a variable, which follows `get_` and `set_`.
    pub fn variable(&self, id: usize) -> &str {
        &self.variables[id]
    }

    /// Name of a process, which follows `at_`, `move_` and `steps_of_`.
    pub fn process(&self, id: usize) -> &str {
        &self.processes[id]
    }
}

/// Replaces the characters that C++ does not allow in names.
fn identifier(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}
