//! Which language a model is in, and what every front end gives: a model, warnings, conditions. Nothing behind this knows one.

use crate::diagnostic::Located;
use crate::dve::Dve;
use crate::ir::{Expression, Model, Source};
use crate::slco::Slco;
use crate::warnings::Warning;
use clap::ValueEnum;
use std::path::Path;

/// The languages, by the extensions of their files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// DVE, of the DiVinE tools
    Dve,
    /// SLCO 2.0, of GPUexplore 3.0
    Slco,
}

impl Format {
    /// That of a file, by its extension; DVE if that says nothing.
    pub fn of(path: &Path) -> Self {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
        Self::from_str(extension, true).unwrap_or(Self::Dve)
    }
}

/// A model that was read, with what its text says about conditions.
#[derive(Clone, Debug)]
pub enum Text {
    Dve(Dve),
    Slco(Slco),
}

impl Text {
    /// Reads a model.
    ///
    /// # Errors
    ///
    /// What is wrong with the text, and where.
    pub fn read(format: Format, source: Source) -> Result<Self, Box<Located>> {
        Ok(match format {
            Format::Dve => Self::Dve(Dve::read(source)?),
            Format::Slco => Self::Slco(Slco::read(source)?),
        })
    }

    pub fn model(&self) -> &Model {
        match self {
            Self::Dve(text) => &text.model,
            Self::Slco(text) => &text.model,
        }
    }

    /// What of the text is not computed as it is written.
    pub fn warnings(&self) -> &[Warning] {
        match self {
            Self::Dve(text) => &text.warnings,
            Self::Slco(text) => &text.warnings,
        }
    }

    /// Reads a condition on states, in the language of the model; and what of it is not computed as it is written.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn condition(&self, source: &Source) -> Result<(Expression, Vec<Warning>), Box<Located>> {
        match self {
            Self::Dve(text) => text.condition(source),
            Self::Slco(text) => text.condition(source),
        }
    }
}
