//! The text of a model, and places in it.

use std::io::{Read, Result};
use warpset_support::text::TextReader;

/// The text of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The file's name, as the user gave it.
    pub name: String,
    pub text: String,
}

/// A piece of the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Byte offset of the first byte; `end` is the offset behind the last byte.
    pub start: u32,
    pub end: u32,
    /// The line of `start`, counted from 1.
    pub line: u32,
    /// The column of `start`, in characters, counted from 1.
    pub column: u32,
}

/// Parts of a model's file that are skipped because they do not change what the model does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    pub what: String,
    pub count: u64,
}

impl Source {
    /// Reads a text to its end and decodes it; lines end with `\n`. Puts U+FFFD in place of invalid bytes. All languages accept
    /// U+FFFD only in comments, so it is reported as an error, with its place, anywhere else.
    ///
    /// # Errors
    ///
    /// The text cannot be read, or is in an encoding that is not supported.
    pub fn read(name: String, reader: impl Read) -> Result<Self> {
        let mut bytes = Vec::new();
        TextReader::new(reader).read_to_end(&mut bytes)?;
        Ok(Self { name, text: String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into()) })
    }

    /// The text of a span.
    pub fn piece(&self, span: Span) -> &str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// The text of a span, without comments and line breaks.
    pub fn in_one_line(&self, span: Span) -> String {
        let (mut text, mut kept) = (self.piece(span), String::new());
        loop {
            let comments = [("//", "\n"), ("/*", "*/")].into_iter().filter_map(|(begin, end)| Some((text.find(begin)?, end)));
            let Some((at, end)) = comments.min() else { break };
            kept.extend([&text[..at], " "]);
            text = text[at + 2..].split_once(end).map_or("", |(_, behind)| behind);
        }
        (kept + text).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Formats a place as `file:line:column`.
    pub fn place(&self, span: Span) -> String {
        format!("{}:{}:{}", self.name, span.line, span.column)
    }
}
