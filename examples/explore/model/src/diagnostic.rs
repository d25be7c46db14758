//! Diagnostics for a text, shown with the file, the line and column, and the line itself.

use crate::ir::{Source, Span};
use ariadne::{CharSet, Config, IndexType, Label, Report, ReportKind};
use std::borrow::Cow;
use std::fmt;
use warpset_support::escaping;

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

    /// Renders the message, the place and the lines around it as text. Escapes characters of the source that would control a
    /// terminal.
    pub fn render(&self, source: &Source, severity: Severity, color: bool) -> String {
        let (word, kind) = match severity {
            Severity::Error => ("error", ReportKind::Error),
            Severity::Warning => ("warning", ReportKind::Warning),
        };
        let on_one_line = || format!("{word}: {}\n", self.sentence(source));
        if source.text.lines().nth(self.span.line.saturating_sub(1) as usize).is_some_and(|line| line.len() > MAX_LINE) {
            return on_one_line();
        }
        let related = self.related.as_deref();
        let mut places = vec![self.span.start, self.span.end.max(self.span.start)];
        places.extend(related.iter().flat_map(|(span, _)| [span.start, span.end.max(span.start)]));
        let text = shown(&source.text, &mut places);
        let name = escaping::line(&source.name);
        let range = |at: usize| (&*name, places[at] as usize..places[at + 1] as usize);
        let config = Config::default().with_index_type(IndexType::Byte).with_color(color).with_char_set(if color {
            CharSet::Unicode
        } else {
            CharSet::Ascii
        });
        let mut report = Report::build(kind, range(0))
            .with_config(config)
            .with_message(escaping::line(&self.message))
            .with_label(Label::new(range(0)).with_message(escaping::line(&self.label)));
        if let Some((_, label)) = related {
            report = report.with_label(Label::new(range(2)).with_message(escaping::line(label)));
        }
        if let Some(help) = &self.help {
            report = report.with_help(escaping::line(help));
        }
        let mut rendered = Vec::new();
        let written = report.finish().write((&*name, ariadne::Source::from(&*text)), &mut rendered);
        written.map_or_else(|_| on_one_line(), |()| String::from_utf8_lossy(&rendered).into_owned())
    }

    /// The place, the message and the label on one line.
    fn sentence(&self, source: &Source) -> String {
        escaping::line(&format!("{}: {}: {}", source.place(self.span), self.message, self.label)).into_owned()
    }
}

/// Returns the text in a form that is safe to print on a terminal: line ends and tabs stay, other control characters are escaped.
/// `places` are byte offsets into `text`; each is moved to the new offset of its character.
fn shown<'t>(text: &'t str, places: &mut [u32]) -> Cow<'t, str> {
    // The renderer ends lines at each of these characters and does not print them.
    let is_line_end = |c: char| matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let is_escaped = |c: char| escaping::is_unprintable(c) && c != '\t' && !is_line_end(c);
    if !text.contains(is_escaped) {
        return text.into();
    }
    let (mut escaped, mut moved) = (String::with_capacity(text.len() + 64), places.to_vec());
    for (at, character) in text.char_indices() {
        let before = escaped.len();
        if is_escaped(character) {
            escaped.extend(character.escape_unicode());
        } else {
            escaped.push(character);
        }
        let longer = (escaped.len() - before - character.len_utf8()) as u32;
        if longer > 0 {
            let behind = moved.iter_mut().zip(&*places).filter(|(_, place)| **place as usize > at);
            behind.for_each(|(moved, _)| *moved += longer);
        }
    }
    places.copy_from_slice(&moved);
    escaped.into()
}

impl fmt::Display for Located {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.diagnostic.sentence(&self.source))
    }
}

impl std::error::Error for Located {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_shown_without_what_a_terminal_would_obey() {
        let text = "int \u{1b}[31mx;\n\tint \u{9b}y\u{202e}; \u{7}wrong\n";
        let source = Source { name: "a\u{1b}\n.dve".into(), text: text.into() };
        let (start, end) = (text.find("wrong").unwrap() as u32, text.len() as u32 - 1);
        let first = text.find('x').unwrap() as u32;
        let diagnostic = Diagnostic::new(Span { start, end, line: 2, column: 12 }, "`\u{1b}` is wrong", "\u{7} here")
            .with_related(Span { start: first, end: first + 1, line: 1, column: 10 }, "\u{202e} there")
            .with_help("write \u{7f}");
        let rendered = diagnostic.render(&source, Severity::Error, false);
        assert!(!rendered.contains(|c| escaping::is_unprintable(c) && c != '\n'), "{rendered:?}");
        for part in
            ["int \\u{1b}[31mx;", "\\u{9b}y\\u{202e}; \\u{7}wrong", "a\\u{1b}\\u{a}.dve:2", "`\\u{1b}` is wrong", "write \\u{7f}"]
        {
            assert!(rendered.contains(part), "{part} is missing:\n{rendered}");
        }
        // Escapes do not move the marks away from their words: the mark for `x` is below `x` and is one character wide.
        let lines: Vec<&str> = rendered.lines().collect();
        let below = |part: &str| {
            let number = lines.iter().position(|line| line.contains(part)).unwrap();
            lines[number + 1].as_bytes()[lines[number].find(part).unwrap()..].to_vec()
        };
        assert!(below("x;")[0] != b' ' && below("x;")[1] == b' ', "{rendered}");
        assert!(below("wrong")[..5].iter().all(|sign| *sign != b' '), "{rendered}");
        let located = diagnostic.of(&source).to_string();
        assert!(!located.contains(escaping::is_unprintable), "{located:?}");
    }
}
