//! Large functions in parts: compilers take time with the square of a function's size, so thousands of cases in one took minutes.
//! In parts each takes two milliseconds, or one without all optimisations.

use std::fmt::Write;

/// Cases that are in one function: they cost a compiler a second at most, and a GPU nothing, which would have to keep a state in
/// memory for a function that is called.
pub const FEW: usize = 512;

/// Numbers whose cases are in a function of their own, where there are more than a few.
const PART: usize = 128;

/// A function that is a switch over a number.
pub struct Switch<'t> {
    /// `u32`, `bool` or `void`
    pub result: &'t str,
    pub name: &'t str,
    /// In brackets, with their types.
    pub parameters: &'t str,
    /// The same names without types.
    pub arguments: &'t str,
    /// What the switch is over; an expression of parameters.
    pub number: &'t str,
    /// Statements before the switch.
    pub begin: &'t str,
    /// Statements after it, in every part.
    pub end: &'t str,
}

impl Switch<'_> {
    /// The function, or the functions: one, if there are few cases, else one for so many numbers each. `cases` makes the cases of
    /// numbers, which come in ascending order.
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
