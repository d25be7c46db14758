//! Large functions in parts. The time of a compiler grows with the square of a function's size, so thousands of cases in one
//! function took minutes. In parts each case takes two milliseconds, or one without full optimisation.

use std::fmt::Write;

/// Maximum number of cases in one function. With 512 cases a compiler takes at most a second, and a GPU runs no slower. A call of
/// another function makes a GPU keep the state in memory.
pub const FEW: usize = 512;

/// Number of values whose cases share a function, if there are more than [`FEW`] cases.
const PART: usize = 128;

/// A function that is a switch over a number.
pub struct Switch<'t> {
    /// `u32`, `bool` or `void`.
    pub result: &'t str,
    pub name: &'t str,
    /// Parameters with their types, without brackets.
    pub parameters: &'t str,
    /// The names of the parameters.
    pub arguments: &'t str,
    /// The number to switch over: an expression of parameters.
    pub number: &'t str,
    /// Statements before the switch.
    pub begin: &'t str,
    /// Statements after the switch, in every part.
    pub end: &'t str,
}

impl Switch<'_> {
    /// Returns the text of the function: one function for few cases, else one for each range of `PART` numbers. `cases` generates
    /// the cases of the numbers that it gets, in ascending order.
    pub fn text(&self, numbers: &[usize], mut cases: impl FnMut(&[usize]) -> String) -> String {
        let Self { result, name, parameters, arguments, number, begin, end } = self;
        let head = |kind: &str, name: &str| format!("template <class State>\n{kind} {result} {name}({parameters})\n{{\n");
        if numbers.len() <= FEW {
            return format!("{}{begin}    switch ({number}) {{\n{}    }}\n{end}}}\n\n", head("EXPLORE_FN", name), cases(numbers));
        }
        let (mut text, mut calls) = (String::new(), String::new());
        for numbers in numbers.chunk_by(|one, other| one / PART == other / PART) {
            let part = numbers[0] / PART;
            let function = head("EXPLORE_PART", &format!("{name}_{part}"));
            writeln!(text, "{function}    switch ({number}) {{\n{}    }}\n{end}}}\n", cases(numbers)).unwrap();
            writeln!(calls, "    case {part}: return {name}_{part}({arguments});").unwrap();
        }
        write!(text, "{}{begin}    switch (({number}) / {PART}) {{\n{calls}    }}\n{end}}}\n\n", head("EXPLORE_FN", name))
            .unwrap();
        text
    }
}
