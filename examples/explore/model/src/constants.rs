//! Values that a user gives to constants of a model, in place of the values in the model's text.

use crate::diagnostic::Diagnostic;
use crate::ir::{Constant, Span, Type};
use crate::parsing;
use anyhow::{Context, Result, ensure};
use warpset_support::escaping;

/// Constants by name, with their new values.
#[derive(Clone, Debug, Default)]
pub struct Constants(Vec<Constant>);

impl Constants {
    /// Reads texts of the form `NAME=VALUE`. The value is a whole number, `true` or `false`.
    ///
    /// # Errors
    ///
    /// A text has another form, its value does not fit 32 bits, or a name has two values.
    pub fn parse(texts: &[String]) -> Result<Self> {
        let mut all = Self::default();
        for text in texts {
            let shown = escaping::line(text);
            // Split at the last equals sign, because names of places may contain one.
            let (name, value) = text.rsplit_once('=').with_context(|| format!("--const {shown}: NAME=VALUE is needed"))?;
            let (name, value) = (name.trim(), value.trim());
            ensure!(!name.is_empty(), "--const {shown}: the name is missing");
            let number = match value {
                "true" => Some(1),
                "false" => Some(0),
                number => number.parse().ok(),
            };
            let value = number.with_context(|| {
                format!("--const {shown}: `{}` is not a whole number from {} to {}", escaping::line(value), i32::MIN, i32::MAX)
            })?;
            if let Some(before) = all.get(name) {
                anyhow::bail!("--const: `{}` has two values, {before} and {value}", escaping::line(name));
            }
            all.0.push(Constant { name: name.into(), value });
        }
        Ok(all)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All constants, in the order of the command line.
    pub fn list(&self) -> &[Constant] {
        &self.0
    }

    pub fn get(&self, name: &str) -> Option<i32> {
        self.0.iter().find(|constant| constant.name == name).map(|constant| constant.value)
    }

    /// Returns the new value of the constant `name`, declared at `at`; `None` if the constant keeps the value in the text.
    ///
    /// # Errors
    ///
    /// The new value does not fit type `ty`.
    pub fn fitting(&self, name: &str, ty: Type, type_name: &str, at: Span) -> Result<Option<i32>, Diagnostic> {
        let Some(value) = self.get(name) else { return Ok(None) };
        if ty.wrap(value) == value && (ty != Type::BOOLEAN || matches!(value, 0 | 1)) {
            return Ok(Some(value));
        }
        let range = crate::ir::Range::of_type(ty);
        let label = format!("it is {type_name}: {} to {}", range.low, range.high);
        Err(Diagnostic::new(at, format!("--const {name}={value} does not fit"), label))
    }

    /// Returns an error for the first constant whose name is not in `known`.
    pub fn ensure_are_among(&self, what: &str, known: &[&str]) -> Result<(), Diagnostic> {
        match self.0.iter().find(|constant| !known.contains(&&*constant.name)) {
            None => Ok(()),
            Some(Constant { name, .. }) => {
                let error = parsing::unknown(what, name, Span { line: 1, column: 1, ..Span::default() }, known);
                Err(Diagnostic { message: format!("--const: {}", error.message), ..error })
            }
        }
    }
}
