//! The text of a model, and places in it.

/// The byte order mark, which some editors put at the beginning of UTF-8 files.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

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

/// Parts of a model's file that are not read, because they do not change what the model does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    pub what: String,
    pub count: u64,
}

impl Source {
    /// Decodes the bytes of a file: removes a byte order mark, and puts U+FFFD where the bytes are not UTF-8. All languages
    /// accept that character only in comments, so elsewhere it is an error with its place.
    pub fn of_bytes(name: String, bytes: &[u8]) -> Self {
        let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        Self { name, text: String::from_utf8_lossy(text).into_owned() }
    }

    /// The text of a span.
    pub fn piece(&self, span: Span) -> &str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// Formats a place as `file:line:column`.
    pub fn place(&self, span: Span) -> String {
        format!("{}:{}:{}", self.name, span.line, span.column)
    }
}
