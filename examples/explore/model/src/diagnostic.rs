//! Diagnostics for a text, shown with the file, line, column and the line itself.

use crate::ir::{Source, Span};
use ariadne::{CharSet, Config, IndexType, Label, Report, ReportKind};
use std::fmt;

/// Longest line, in bytes, that is shown with a diagnostic.
const MAX_LINE: usize = 500;

/// Whether a diagnostic is an error or a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Error,
    Warning,
}

/// A problem at a place of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub message: String,
    pub span: Span,
    /// Label at the place itself.
    pub label: String,
    /// A second place that is involved, with its label.
    pub related: Option<Box<(Span, String)>>,
    pub help: Option<String>,
}

/// A diagnostic with its text: an error that can be printed.
#[derive(Clone, Debug)]
pub struct Located {
    pub diagnostic: Diagnostic,
    pub source: Source,
}

impl Diagnostic {
    pub fn new(span: Span, message: impl Into<String>, label: impl Into<String>) -> Self {
        Self { message: message.into(), span, label: label.into(), related: None, help: None }
    }

    pub fn with_related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related = Some(Box::new((span, label.into())));
        self
    }

    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub fn of(self, source: &Source) -> Located {
        Located { diagnostic: self, source: source.clone() }
    }

    /// Renders the message, the place and the lines around it as text.
    pub fn render(&self, source: &Source, severity: Severity, color: bool) -> String {
        let (word, kind) = match severity {
            Severity::Error => ("error", ReportKind::Error),
            Severity::Warning => ("warning", ReportKind::Warning),
        };
        if source.text.lines().nth(self.span.line.saturating_sub(1) as usize).is_some_and(|line| line.len() > MAX_LINE) {
            return format!("{word}: {}: {}: {}\n", source.place(self.span), self.message, self.label);
        }
        let name = source.name.as_str();
        let range = |span: Span| (name, span.start as usize..span.end.max(span.start) as usize);
        let config = Config::default().with_index_type(IndexType::Byte).with_color(color).with_char_set(if color {
            CharSet::Unicode
        } else {
            CharSet::Ascii
        });
        let mut report = Report::build(kind, range(self.span))
            .with_config(config)
            .with_message(&self.message)
            .with_label(Label::new(range(self.span)).with_message(&self.label));
        if let Some((span, label)) = self.related.as_deref() {
            report = report.with_label(Label::new(range(*span)).with_message(label));
        }
        if let Some(help) = &self.help {
            report = report.with_help(help);
        }
        let mut text = Vec::new();
        let written = report.finish().write((name, ariadne::Source::from(source.text.as_str())), &mut text);
        match written {
            Ok(()) => String::from_utf8_lossy(&text).into_owned(),
            Err(_) => format!("{word}: {}: {}: {}\n", source.place(self.span), self.message, self.label),
        }
    }
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { diagnostic, source } = self;
        write!(f, "{}: {}: {}", source.place(diagnostic.span), diagnostic.message, diagnostic.label)
    }
}

impl std::error::Error for Located {}
