//! The languages of models. Every front end returns a model, warnings and conditions in the same form, so that other code does
//! not depend on the language.

use crate::diagnostic::Located;
use crate::dve::Dve;
use crate::input::Input;
use crate::ir::{Expression, Model, Source};
use crate::net::Nets;
use crate::net::encoding::Encoding;
use crate::network::{Networks, Reading};
use crate::slco::Slco;
use crate::warnings::Warning;
use anyhow::{Result, bail};
use clap::ValueEnum;
use std::path::Path;
use std::sync::Arc;
use warpset_support::output::Identity;

/// Length limit of a net in bytes. A net of 100,000 transitions with three arcs each has some 60 MB.
const MAX_NET_BYTES: u64 = 1 << 30;

/// The languages, named by the extensions of their files.
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
    /// PNML, a place/transition net
    Pnml,
}

impl Format {
    /// Format of a file by its extension; DVE if the extension is unknown.
    ///
    /// # Errors
    ///
    /// The extension belongs to a language that is not supported.
    pub fn of(path: &Path) -> Result<Self> {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("").to_lowercase();
        if let Some((_, language, instead)) = OTHERS.iter().find(|(other, ..)| *other == extension) {
            bail!(
                "{} is a file of {language} by its extension, which is not supported: {instead} (if it is a model in a supported \
                 language, give --format)",
                path.display()
            );
        }
        Ok(Self::from_str(&extension, true).unwrap_or(Self::Dve))
    }
}

const REWRITE: &str = "write the model in DVE, whose processes, channels and guards are similar";
const GRAPH: &str = "write the model in DVE, or its state graph as an .aut file";

/// Extensions of languages that are not supported: extension, language, and what to do instead.
const OTHERS: [(&str, &str, &str); 14] = [
    ("pml", "Promela (SPIN)", REWRITE),
    ("prom", "Promela (SPIN)", REWRITE),
    ("promela", "Promela (SPIN)", REWRITE),
    ("tla", "TLA+", GRAPH),
    ("m", "Murphi", REWRITE),
    ("mcrl2", "mCRL2", "convert it by mcrl22lps and lps2lts to an .aut file"),
    ("lps", "mCRL2", "convert it by lps2lts to an .aut file"),
    ("lts", "mCRL2", "convert it by ltsconvert to an .aut file"),
    ("bcg", "CADP", "convert it by bcg_io to an .aut file"),
    ("lnt", "LNT (CADP)", "convert it by lnt.open and generator to an .aut file"),
    ("smv", "NuSMV", REWRITE),
    ("prism", "PRISM", REWRITE),
    ("fsp", "FSP (LTSA)", GRAPH),
    ("csp", "CSP (FDR)", GRAPH),
];

/// A model that was read, with the names that conditions on it may use.
#[derive(Clone, Debug)]
pub enum Text {
    Dve(Dve),
    Slco(Slco),
    Network(Networks),
    Net(Nets),
}

impl Text {
    /// Reads a model.
    ///
    /// # Errors
    ///
    /// An error in the text, with its place, or a file that cannot be read.
    pub fn read(format: Format, input: Input, reading: &Reading) -> Result<Self> {
        if format == Format::Aut {
            let Input { name, path, bytes, reader, .. } = input;
            return Ok(Self::Network(Networks::read_aut(name, &path, reader, bytes, reading)?));
        }
        let path = input.path.clone();
        let source = if format == Format::Pnml { input.xml(MAX_NET_BYTES)? } else { input.text()? };
        Ok(match format {
            Format::Slco => Self::Slco(Slco::read_with(source, &reading.constants)?),
            Format::Pnml => Self::Net(Nets::read_with(source, Encoding::FIRST, &reading.constants)?),
            Format::Exp => Self::Network(Networks::read_exp(source, &path, reading)?),
            _ => Self::Dve(Dve::read_with(source, &reading.constants)?),
        })
    }

    /// The files that were read in addition to the file that the user named.
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
            Self::Net(text) => &text.model,
        }
    }

    pub fn model_mut(&mut self) -> &mut Model {
        match self {
            Self::Dve(text) => &mut text.model,
            Self::Slco(text) => &mut text.model,
            Self::Network(text) => &mut text.model,
            Self::Net(text) => &mut text.model,
        }
    }

    /// One sentence for each gate that `--interleave` names and the model does not have.
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
            Self::Net(text) => &text.warnings,
        }
    }

    /// Whether a condition may use `name` alone, as a variable or constant.
    pub fn has_variable(&self, name: &str) -> bool {
        match self {
            Self::Dve(text) => text.has_variable(name),
            Self::Slco(text) => text.has_variable(name),
            Self::Network(text) => text.has_component(name),
            Self::Net(_) => false,
        }
    }

    /// Whether `name` is a process whose parts a condition may name as `name->part`.
    pub fn has_process(&self, name: &str) -> bool {
        match self {
            Self::Dve(text) => text.has_process(name),
            Self::Slco(_) | Self::Network(_) | Self::Net(_) => false,
        }
    }

    /// Reads a condition on states, in the language of the model. Also returns warnings for parts that mean something else than
    /// they say.
    ///
    /// # Errors
    ///
    /// An error in the text of the condition, with its place.
    pub fn condition(&self, source: &Source) -> std::result::Result<(Expression, Vec<Warning>), Box<Located>> {
        match self {
            Self::Dve(text) => text.condition(source),
            Self::Slco(text) => text.condition(source),
            Self::Network(text) => text.condition(source),
            Self::Net(text) => text.condition(source),
        }
    }
}
