//! Warnings for parts of a text that mean something else than they say: values that do not fit, lists that are too long, shifts
//! that are too far.
//!
//! Some models rely on these meanings (BEEM has `byte Slot[6]` with a list of seven values), so they are errors only on request.
//! The warnings spare users from discovering the difference through state counts.

use crate::diagnostic::{Diagnostic, Severity};
use crate::ir::{Binary, Expression, Range, Source, Span};
use indicatif::HumanCount;
use serde_json::{Value, json};
use warpset_support::escaping;
use warpset_support::numbers::counted;

/// Maximum number of warnings that are shown. A text can have a warning for each of its values, and each warning is shown with
/// its lines.
const MOST_SHOWN: usize = 20;

/// A place of a text that means something else than it seems to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub diagnostic: Diagnostic,
    /// Number of values in the text that the model does not have. Excludes stores that are counted each time they happen.
    pub values: u64,
}

/// All warnings of a model and of the conditions on it.
#[derive(Clone, Debug, Default)]
pub struct Warnings {
    pub count: u64,
    /// Number of values that differ from what the texts say.
    pub values: u64,
    /// The first warnings, with excerpts of their texts if the user wants excerpts.
    shown: Vec<Shown>,
}

#[derive(Clone, Debug)]
struct Shown {
    place: String,
    message: String,
    rendered: String,
}

impl Warnings {
    /// Adds the warnings found in a text. `severity` and `color` determine how they are shown to the user.
    pub fn add(&mut self, source: &Source, warnings: &[Warning], severity: Severity, color: bool) {
        self.count += warnings.len() as u64;
        self.values += warnings.iter().map(|warning| warning.values).sum::<u64>();
        let room = MOST_SHOWN.saturating_sub(self.shown.len());
        self.shown.extend(warnings.iter().take(room).map(|Warning { diagnostic, .. }| Shown {
            place: source.place(diagnostic.span),
            message: format!("{}: {}", diagnostic.message, diagnostic.label),
            rendered: diagnostic.render(source, severity, color),
        }));
    }

    /// Adds messages about an option that has no effect here. `option` is its name.
    pub fn of_option(&mut self, option: &str, messages: &[String]) {
        self.count += messages.len() as u64;
        let room = MOST_SHOWN.saturating_sub(self.shown.len());
        self.shown.extend(messages.iter().take(room).map(|message| Shown {
            place: option.into(),
            message: message.clone(),
            rendered: format!("warning: {option}: {}\n", escaping::line(message)),
        }));
    }

    /// The shown warnings as text, followed by the number of further warnings.
    pub fn text(&self) -> String {
        let more = self.count - self.shown.len() as u64;
        let more = if more > 0 { format!("... and {} more like these\n", HumanCount(more)) } else { String::new() };
        self.shown.iter().map(|shown| shown.rendered.as_str()).chain([more.as_str()]).collect()
    }

    /// One sentence: the first warning and the number of warnings.
    pub fn sentence(&self) -> Option<String> {
        let Shown { place, message, .. } = self.shown.first()?;
        let more = if self.count > 1 { format!(" (the first of {})", HumanCount(self.count)) } else { String::new() };
        Some(format!("{place}: {message}{more}"))
    }

    pub fn json(&self) -> Value {
        self.shown.iter().map(|shown| json!({ "place": shown.place, "message": shown.message })).collect()
    }
}

/// Warns of a constant that becomes `kept` when it is stored in a variable of type `type_name`, which holds the values `holds`.
/// `values` is as in [`Warning`].
pub fn of_store(value: i32, kept: i32, type_name: &str, holds: Range, at: Span, values: u64) -> Option<Warning> {
    let Range { low, high } = holds;
    let message = format!("{value} does not fit {type_name}, which holds {low} to {high}");
    (kept != value).then(|| Warning { diagnostic: Diagnostic::new(at, message, format!("becomes {kept}")), values })
}

/// Warns of a list whose length differs from the size of its array. Missing elements get the value `default`.
pub fn of_list(name: &str, given: &[(i32, Span)], size: usize, default: &str) -> Option<Warning> {
    let count = given.len();
    let values = |count: usize| counted(count as u64, "value");
    let message = format!("the array `{name}` has {}, but its list has {}", counted(size as u64, "element"), values(count));
    let (at, label, lost) = match (given.get(size), given.last()) {
        (Some((_, at)), _) => (*at, format!("dropped from here on: {}", values(count - size)), count - size),
        (None, Some((_, at))) if count < size => (*at, format!("{default} from element {count} on, to element {}", size - 1), 0),
        _ => return None,
    };
    Some(Warning { diagnostic: Diagnostic::new(at, message, label), values: lost as u64 })
}

/// Warns of an operator, written as `text`, that does not give the arithmetic result of its operands. `left` and `right` are the
/// values of the operands that are constant.
pub fn of_operator(operator: Binary, text: &str, at: Span, left: Option<i32>, right: Option<i32>) -> Option<Warning> {
    let right = right?;
    let bits = right & 31;
    match operator {
        Binary::ShiftLeft | Binary::ShiftRight if right != bits => {
            let label = format!("shifts by {bits}, the lowest 5 bits");
            let message = format!("a shift by {right}; only 0 to 31 are possible");
            return Some(Warning { diagnostic: Diagnostic::new(at, message, label), values: 1 });
        }
        Binary::Divide | Binary::Remainder if right == 0 => {
            let label = "is a fault of the model whenever it is evaluated";
            return Some(Warning { diagnostic: Diagnostic::new(at, "a division by 0", label), values: 0 });
        }
        _ => {}
    }
    let left = left?;
    let (a, b) = (i64::from(left), i64::from(right));
    let exact = match operator {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => a / b,
        Binary::ShiftLeft => a << bits,
        _ => return None,
    };
    let folded = operator.apply(left, right)?;
    (i64::from(folded) != exact).then(|| of_32_bits(at, &format!("{left} {text} {right}"), exact, folded))
}

/// Warns of a constant result that does not fit 32 bits.
pub fn of_32_bits(at: Span, text: &str, exact: i64, folded: i32) -> Warning {
    let message = format!("{text} is {exact}, which does not fit 32 bits");
    Warning { diagnostic: Diagnostic::new(at, message, format!("becomes {folded}")), values: 1 }
}

/// Warns of an SLCO statement that compares a variable with a value computed from that variable: an assignment was probably
/// meant.
pub fn of_comparison(text: &str, statement: &Expression, at: Span) -> Option<Warning> {
    let Expression::Binary { operator: Binary::Equal, operands, .. } = statement else { return None };
    let [target, value] = &**operands;
    let is_place = matches!(target, Expression::Variable(_) | Expression::Element { .. });
    if !is_place || target.means(value) || !value.has(target) {
        return None;
    }
    let message = format!("the statement `{text}` is a comparison");
    let label = format!("does not change the variable; an assignment is `{}`", text.replacen('=', ":=", 1));
    Some(Warning { diagnostic: Diagnostic::new(at, message, label), values: 0 })
}

/// Warns of a bitwise complement whose value is asked only for its truth.
pub fn of_complement(at: Span) -> Warning {
    let message = "`~` is the bitwise complement, which is true of every number but -1";
    Warning { diagnostic: Diagnostic::new(at, message, "write `not`"), values: 0 }
}

/// Warns of two comparisons in a row. `parts`: the texts of the operands and of the operators between them.
pub fn of_comparisons([left, first, middle, second, right]: [&str; 5], at: Span) -> Warning {
    let message = format!("`{second}` compares the result of the first comparison, 0 or 1");
    let label = format!("write `{left} {first} {middle} and {middle} {second} {right}`");
    Warning { diagnostic: Diagnostic::new(at, message, label), values: 0 }
}

/// Warns of a constant index outside the array. `elements`: number of its elements or rows, and `has` says that in words.
pub fn of_index(array: &str, elements: usize, has: &str, index: &Expression, at: Span) -> Option<Warning> {
    let index = index.constant()?;
    if usize::try_from(index).is_ok_and(|index| index < elements) {
        return None;
    }
    let message = format!("the array `{array}` has {has}, but this index is {index}");
    let label = "is a fault of the model whenever it is evaluated";
    Some(Warning { diagnostic: Diagnostic::new(at, message, label), values: 0 })
}
