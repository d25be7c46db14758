//! Variables of a model.

use super::{ProcessId, Range, Type};

/// A scalar, or an array with elements of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    /// The process to which the variable is local, if any.
    pub process: Option<ProcessId>,
    pub ty: Type,
    /// Whether the variable is an array, possibly of one element.
    pub is_array: bool,
    /// Elements of a row of an array of two dimensions. Element j of row i is element `i * columns + j` of the array.
    pub columns: Option<usize>,
    /// Initial value of a scalar, or initial values of all elements of an array.
    pub initial: Vec<i32>,
    /// Whether some transition writes the variable. If none does, it has no field in packed states.
    pub is_written: bool,
    /// Range of the values that the variable can have in reachable states, computed by [`bounds`](super::bounds).
    pub values: Range,
}

impl Variable {
    /// Creates a variable before analysis: assumed not to be written, and with all values of its type.
    pub fn new(name: String, process: Option<ProcessId>, ty: Type, is_array: bool, initial: Vec<i32>) -> Self {
        Self { name, process, ty, is_array, columns: None, initial, is_written: false, values: Range::of_type(ty) }
    }

    /// The name of an element, or of a scalar, of a variable with the name `of`: `a`, `a[3]` or `a[1][2]`.
    pub fn element_name(&self, of: &str, element: usize) -> String {
        match self.columns {
            Some(columns) => format!("{of}[{}][{}]", element / columns, element % columns),
            None if self.is_array => format!("{of}[{element}]"),
            None => of.into(),
        }
    }
}
