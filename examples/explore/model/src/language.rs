//! Which language a model is in, and what every front end gives: a model, warnings, conditions. Nothing behind this knows one.

use crate::diagnostic::Located;
use crate::dve::Dve;
use crate::input::Input;
use crate::ir::{Expression, Model, Source};
use crate::network::{Networks, Reading};
use crate::slco::Slco;
use crate::warnings::Warning;
use anyhow::Result;
use clap::ValueEnum;
use std::path::Path;
use std::sync::Arc;
use warpset_support::output::Identity;

/// The languages, by the extensions of their files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// DVE, of the DiVinE tools
    Dve,
    /// SLCO 2.0, of GPUexplore 3.0
    Slco,
    /// EXP, the networks of CADP, with their AUT files
    Exp,
    /// AUT, a state space as text
    Aut,
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
    Network(Networks),
}

impl Text {
    /// Reads a model.
    ///
    /// # Errors
    ///
    /// What is wrong with the text, and where; a file that cannot be read.
    pub fn read(format: Format, input: Input, reading: &Reading) -> Result<Self> {
        if format == Format::Aut {
            let Input { name, path, bytes, reader, .. } = input;
            return Ok(Self::Network(Networks::read_aut(name, &path, reader, bytes, reading)?));
        }
        let path = input.path.clone();
        let (name, bytes) = input.text()?;
        let source = Source::of_bytes(name, &bytes);
        drop(bytes);
        Ok(match format {
            Format::Slco => Self::Slco(Slco::read(source)?),
            Format::Exp => Self::Network(Networks::read_exp(source, &path, reading)?),
            _ => Self::Dve(Dve::read(source)?),
        })
    }

    /// The files that were read besides the one that was named.
    pub fn files(&self) -> &[Arc<Identity>] {
        match self {
            Self::Network(text) => &text.files,
            _ => &[],
        }
    }

    pub fn model(&self) -> &Model {
        match self {
            Self::Dve(text) => &text.model,
            Self::Slco(text) => &text.model,
            Self::Network(text) => &text.model,
        }
    }

    pub fn model_mut(&mut self) -> &mut Model {
        match self {
            Self::Dve(text) => &mut text.model,
            Self::Slco(text) => &mut text.model,
            Self::Network(text) => &mut text.model,
        }
    }

    /// What of the text is not computed as it is written.
    /// Gates that --interleave names and that there are not, a sentence each.
    pub fn missing_gates(&self) -> &[String] {
        match self {
            Self::Network(text) => &text.missing_gates,
            _ => &[],
        }
    }

    pub fn warnings(&self) -> &[Warning] {
        match self {
            Self::Dve(text) => &text.warnings,
            Self::Slco(text) => &text.warnings,
            Self::Network(_) => &[],
        }
    }

    /// Whether conditions may name a variable or constant so, without anything before it.
    pub fn has_variable(&self, name: &str) -> bool {
        match self {
            Self::Dve(text) => text.has_variable(name),
            Self::Slco(text) => text.has_variable(name),
            Self::Network(text) => text.has_component(name),
        }
    }

    /// Whether conditions may name parts of a process so, with `->` behind it.
    pub fn has_process(&self, name: &str) -> bool {
        match self {
            Self::Dve(text) => text.has_process(name),
            Self::Slco(_) | Self::Network(_) => false,
        }
    }

    /// Reads a condition on states, in the language of the model; and what of it is not computed as it is written.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn condition(&self, source: &Source) -> std::result::Result<(Expression, Vec<Warning>), Box<Located>> {
        match self {
            Self::Dve(text) => text.condition(source),
            Self::Slco(text) => text.condition(source),
            Self::Network(text) => text.condition(source),
        }
    }
}
