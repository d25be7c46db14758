//! Tokens of the HOA format and their places in the text.

use crate::diagnostic::Diagnostic;
use crate::ir::Span;
use std::ops::Range;

/// Upper bound (exclusive) of numbers.
const NUMBER_END: u64 = 1 << 31;

pub type Parsed<T> = Result<T, Diagnostic>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'t> {
    /// `name:`
    Header(&'t str),
    Word(&'t str),
    /// A text between quotes, with its escapes.
    Text(&'t str),
    Number(u64),
    /// `@name`, without the `@`.
    Alias(&'t str),
    Mark(char),
    /// A mark of a section, such as `--BODY--`.
    Section(&'t str),
}

/// All tokens of a text.
pub struct Tokens<'t> {
    text: &'t str,
    /// Each token with the offset of its first byte and the offset behind its last byte.
    all: Vec<(Token<'t>, u32, u32)>,
}

impl<'t> Tokens<'t> {
    pub fn of(text: &'t str) -> Parsed<Self> {
        let mut lexer = Lexer { text, at: 0 };
        if u32::try_from(text.len()).is_err() {
            return lexer.wrong(0, 0, format!("the text has {} bytes", text.len()), "at most 2^32 - 1 are read");
        }
        let mut all = Vec::new();
        while let Some((token, start)) = lexer.next()? {
            all.push((token, start as u32, lexer.at as u32));
        }
        Ok(Self { text, all })
    }

    pub fn get(&self, number: usize) -> Option<Token<'t>> {
        self.all.get(number).map(|(token, ..)| *token)
    }

    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Length of the text in bytes.
    pub fn bytes(&self) -> u64 {
        self.text.len() as u64
    }

    /// Span of the token with this index, or of the text's end. Takes time proportional to the text's length, so it is used for
    /// errors only.
    pub fn span(&self, number: usize) -> Span {
        let end = self.text.len();
        let (start, end) = self.all.get(number).map_or((end, end), |(_, start, end)| (*start as usize, *end as usize));
        span(self.text, start, end)
    }

    /// Text from the first to the last of these tokens, truncated if it is long; empty at the end of the text.
    pub fn pieces(&self, numbers: Range<usize>) -> String {
        const MOST: usize = 80;
        let (Some((_, start, _)), Some((.., end))) = (self.all.get(numbers.start), self.all.get(numbers.end.wrapping_sub(1)))
        else {
            return String::new();
        };
        let text = &self.text[*start as usize..(*end).max(*start) as usize];
        text.char_indices().nth(MOST).map_or_else(|| text.into(), |(cut, _)| format!("{}...", &text[..cut]))
    }
}

/// Decodes the escapes of a text between quotes.
pub fn unescaped(text: &str) -> String {
    let mut value = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        value.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    value
}

fn span(text: &str, start: usize, end: usize) -> Span {
    let before = &text[..start];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
    Span { start: start as u32, end: end as u32, line: line as u32, column: 1 + before[line_start..].chars().count() as u32 }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Lexer<'t> {
    fn wrong<T>(&self, start: usize, end: usize, message: impl Into<String>, label: &str) -> Parsed<T> {
        Err(Diagnostic::new(span(self.text, start, end), message, label))
    }

    /// The next token and the offset of its first byte; `at` is behind the token then.
    fn next(&mut self) -> Parsed<Option<(Token<'t>, usize)>> {
        self.skip_blanks()?;
        let (text, start) = (self.text, self.at);
        let rest = &text[start..];
        let Some(first) = rest.chars().next() else { return Ok(None) };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let name_end = || rest[1..].find(|c| !is_name(c)).map_or(rest.len(), |end| 1 + end);
        let (token, length) = if first == '"' {
            let Some(end) = end_of_text(rest) else {
                return self.wrong(start, start + 1, "the string does not end", "`\"` was expected");
            };
            (Token::Text(&rest[1..end - 1]), end)
        } else if let Some(behind) = rest.strip_prefix("--") {
            let end = behind.find("--").map_or(rest.len(), |end| end + 4);
            (Token::Section(&rest[..end]), end)
        } else if first.is_ascii_digit() {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            (Token::Number(self.number(&rest[..end])?), end)
        } else if first == '@' {
            let end = name_end();
            if end == 1 {
                return self.wrong(start, start + 1, "an alias without a name", "letters, digits, `-` or `_` were expected");
            }
            (Token::Alias(&rest[1..end]), end)
        } else if first.is_ascii_alphabetic() || first == '_' {
            let end = name_end();
            let is_header = rest[end..].starts_with(':');
            let token = if is_header { Token::Header(&rest[..end]) } else { Token::Word(&rest[..end]) };
            (token, end + usize::from(is_header))
        } else if "!&|()[]{}".contains(first) {
            (Token::Mark(first), 1)
        } else {
            let message = format!("`{}` is not expected here", first.escape_debug());
            return self.wrong(start, start + first.len_utf8(), message, "the HOA format has no such token");
        };
        self.at += length;
        Ok(Some((token, start)))
    }

    /// Skips blanks and comments; comments may be nested.
    fn skip_blanks(&mut self) -> Parsed<()> {
        let bytes = self.text.as_bytes();
        loop {
            match &bytes[self.at..] {
                [b' ' | b'\t' | b'\n' | b'\r', ..] => self.at += 1,
                [b'/', b'*', ..] => {
                    let start = self.at;
                    let mut open = 0;
                    loop {
                        match &bytes[self.at..] {
                            [b'/', b'*', ..] => (open, self.at) = (open + 1, self.at + 2),
                            [b'*', b'/', ..] => (open, self.at) = (open - 1, self.at + 2),
                            [_, ..] => self.at += 1,
                            [] => return self.wrong(start, start + 2, "the comment does not end", "`*/` was expected"),
                        }
                        if open == 0 {
                            break;
                        }
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    fn number(&self, digits: &str) -> Parsed<u64> {
        let (start, end) = (self.at, self.at + digits.len());
        if digits.len() > 1 && digits.starts_with('0') {
            return self.wrong(start, end, "a number with a leading 0", "the HOA format has no leading zeros");
        }
        match digits.parse() {
            Ok(number) if number < NUMBER_END => Ok(number),
            _ => {
                let shown = if digits.len() > 40 { format!("{}...", &digits[..40]) } else { digits.into() };
                self.wrong(start, end, format!("the number {shown} is too large"), "numbers must be less than 2^31")
            }
        }
    }
}

/// Length in bytes of the quoted text at the beginning of `rest`, including its quotes; `None` if it has no end.
fn end_of_text(rest: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, byte) in rest.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}
