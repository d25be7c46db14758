//! What of a text is not computed as it is written: values that do not fit, lists that are too long, shifts that are too far.
//!
//! Models rely on some of it (`byte Slot[6]` with a list of seven values in BEEM), so it is no error unless that is asked for;
//! but nobody should have to find out by counting states.

use crate::diagnostic::{Diagnostic, Severity};
use crate::ir::Source;
use indicatif::HumanCount;
use serde_json::{Value, json};

/// Warnings that are shown. There may be as many as there are values in a text, and each is shown with its lines.
const MOST_SHOWN: usize = 20;

/// A place of a text that means something else than it seems to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub diagnostic: Diagnostic,
    /// Values that the text gives and the model does not have. A store that is counted whenever it takes place is none.
    pub values: u64,
}

/// All warnings of a model and of the conditions on it.
#[derive(Clone, Debug, Default)]
pub struct Warnings {
    pub count: u64,
    /// Values that are not what the texts say.
    pub values: u64,
    /// The first of them, with their texts' excerpts where these are wanted.
    shown: Vec<Shown>,
}

#[derive(Clone, Debug)]
struct Shown {
    place: String,
    message: String,
    rendered: String,
}

impl Warnings {
    /// Adds what was found in a text. `severity` and `color` are how it is shown to a person.
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

    /// For people: those that are shown, and how many there are besides.
    pub fn text(&self) -> String {
        let more = self.count - self.shown.len() as u64;
        let more = if more > 0 { format!("... and {} more like these\n", HumanCount(more)) } else { String::new() };
        self.shown.iter().map(|shown| shown.rendered.as_str()).chain([more.as_str()]).collect()
    }

    /// One sentence: the first, and how many there are.
    pub fn sentence(&self) -> Option<String> {
        let Shown { place, message, .. } = self.shown.first()?;
        let more = if self.count > 1 { format!(" (the first of {})", HumanCount(self.count)) } else { String::new() };
        Some(format!("{place}: {message}{more}"))
    }

    pub fn json(&self) -> Value {
        self.shown.iter().map(|shown| json!({ "place": shown.place, "message": shown.message })).collect()
    }
}
