//! Places in the texts of a network, errors at these places, and the files that texts name.

use super::grammar::{Pair, span};
use super::labels::{Mode, Pattern};
use super::rules;
use crate::diagnostic::Diagnostic;
use crate::ir::{Source, Span};
use anyhow::{Result, anyhow};
use std::path::{Path, PathBuf};

/// Limit of nested brackets and operators, because recursive functions walk them.
const MAX_NESTING: usize = 200;

/// A text that is being read, and how much deeper it may nest.
#[derive(Clone, Copy)]
pub struct At<'a> {
    pub source: &'a Source,
    pub path: &'a Path,
    /// Levels of nesting that are still allowed.
    nesting: usize,
}

impl<'a> At<'a> {
    pub fn new(source: &'a Source, path: &'a Path) -> Self {
        Self { source, path, nesting: MAX_NESTING }
    }

    pub fn error(&self, span: Span, message: impl Into<String>, label: impl Into<String>) -> anyhow::Error {
        Box::new(Diagnostic::new(span, message, label).of(self.source)).into()
    }

    /// Returns the place one level deeper.
    pub fn inside(self, pair: &Pair) -> Result<Self> {
        if self.nesting == 0 {
            return Err(self.error(span(pair), "the network is too large", format!("more than {MAX_NESTING} nested operators")));
        }
        Ok(Self { nesting: self.nesting - 1, ..self })
    }

    pub fn too_many(&self, pair: &Pair) -> anyhow::Error {
        let message = format!("more than {} rules, or {} parts of rules", rules::MOST_RULES, rules::MOST_PARTS);
        self.error(span(pair), message, "this operator exceeds the limit")
    }

    pub fn pattern(&self, label: &Pair, mode: Mode) -> Result<Pattern> {
        let text = super::label_text(label);
        Pattern::new(&text, mode).map_err(|error| {
            // Messages of the regex crate have several lines. The last one says what is wrong.
            let why = format!("{error:#}").lines().last().unwrap_or_default().to_string();
            self.error(span(label), format!("`{text}` is not a valid regular expression"), why)
        })
    }
}

/// Finds the file that a text names: in the folder of the text, or else in the working directory.
pub fn found(text: &Path, name: &str) -> Result<PathBuf> {
    let beside = text.parent().map_or_else(|| PathBuf::from(name), |folder| folder.join(name));
    let here = PathBuf::from(name);
    if beside.is_file() {
        return Ok(beside);
    }
    if here.is_file() {
        return Ok(here);
    }
    let elsewhere = if beside == here { String::new() } else { format!(", nor {}", here.display()) };
    Err(anyhow!("there is no file {}{elsewhere}", beside.display()))
}

/// Name of a file in messages.
pub fn name_of(text: &Path, name: &str) -> String {
    found(text, name).unwrap_or_else(|_| PathBuf::from(name)).display().to_string()
}
