//! The parser, made from grammar.pest; and its errors in words.

use crate::diagnostic::Diagnostic;
use crate::ir::Span;
use pest::error::{Error, ErrorVariant, InputLocation, LineColLocation};
use pest::{Parser, Position};
use pest_derive::Parser;
use std::cell::Cell;

#[derive(Parser)]
#[grammar = "src/dve/grammar.pest"]
struct Grammar;

/// A piece of text that matches a rule.
pub type Pair<'a> = pest::iterators::Pair<'a, Rule>;

/// Longest text: places in it have 32 bits.
pub const MAX_BYTES: usize = u32::MAX as usize;

/// Parses a whole text by a rule that ends with it.
pub fn parse(rule: Rule, text: &str) -> Result<Pair<'_>, Diagnostic> {
    if text.len() > MAX_BYTES {
        let message = format!("the text has {} bytes; {MAX_BYTES} are possible", text.len());
        return Err(Diagnostic::new(Span::default(), message, "too long"));
    }
    // Another text may have been where this one is.
    LAST.set((std::ptr::null(), BEGINNING));
    let mut pairs = Grammar::parse(rule, text).map_err(|error| syntax_error(error, rule, text))?;
    Ok(pairs.next().expect("a rule that matches yields a pair"))
}

/// The parts of a pair, without its keywords.
pub fn parts(pair: Pair) -> impl Iterator<Item = Pair> {
    pair.into_inner().filter(|part| keyword(part.as_rule()).is_none())
}

pub fn span(pair: &Pair) -> Span {
    let of = pair.as_span();
    let Place { line, column, .. } = place(of.get_input(), of.start());
    // Blanks and comments after its last token belong to a pair, but are no part of what is meant.
    let end = of.start() + of.as_str().trim_end().len();
    Span { start: of.start() as u32, end: end as u32, line: line as u32, column: column as u32 }
}

/// Where an offset of a text is.
#[derive(Clone, Copy)]
struct Place {
    offset: usize,
    /// Counted from 1.
    line: usize,
    /// In characters, counted from 1.
    column: usize,
}

thread_local! {
    /// The last place that was asked for, and where its text is. The next one is mostly near: a text of one long line would take
    /// time with the square of its length if each were counted from the line's beginning.
    static LAST: Cell<(*const u8, Place)> = const { Cell::new((std::ptr::null(), BEGINNING)) };
}

const BEGINNING: Place = Place { offset: 0, line: 1, column: 1 };

fn place(text: &str, offset: usize) -> Place {
    let (start, last) = LAST.get();
    let last = if start == text.as_ptr() { last } else { BEGINNING };
    let found = if offset < last.offset { place_before(text, last, offset) } else { place_behind(text, last, offset) };
    LAST.set((text.as_ptr(), found));
    found
}

fn place_before(text: &str, from: Place, offset: usize) -> Place {
    let between = &text[offset..from.offset];
    match between.bytes().filter(|byte| *byte == b'\n').count() {
        0 => Place { offset, line: from.line, column: from.column - between.chars().count() },
        lines => {
            let line_start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
            Place { offset, line: from.line - lines, column: 1 + text[line_start..offset].chars().count() }
        }
    }
}

fn place_behind(text: &str, from: Place, offset: usize) -> Place {
    let between = &text[from.offset..offset];
    match between.rfind('\n') {
        None => Place { offset, line: from.line, column: from.column + between.chars().count() },
        Some(last) => {
            let lines = between.bytes().filter(|byte| *byte == b'\n').count();
            Place { offset, line: from.line + lines, column: 1 + between[last + 1..].chars().count() }
        }
    }
}

/// From the start of one to the end of another.
pub fn join(from: Span, to: Span) -> Span {
    Span { end: to.end, ..from }
}

fn syntax_error(error: Error<Rule>, rule: Rule, text: &str) -> Diagnostic {
    let (mut start, (mut line, mut column)) = match (&error.location, &error.line_col) {
        (
            InputLocation::Pos(at) | InputLocation::Span((at, _)),
            LineColLocation::Pos(place) | LineColLocation::Span(place, _),
        ) => (*at, *place),
    };
    let label = match &error.variant {
        ErrorVariant::CustomError { message } => message.clone(),
        ErrorVariant::ParsingError { positives, .. } => {
            let (furthest, tokens) = expected_tokens(rule, text);
            // No rule was begun there, but a mark was missing.
            let is_further = furthest > start;
            if is_further && let Some(position) = Position::new(text, furthest) {
                (start, (line, column)) = (furthest, position.line_col());
            }
            expected(if is_further { &[] } else { positives }, &tokens)
        }
    };
    let rest = &text[start..];
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let word = rest.len() - rest.trim_start_matches(is_word).len();
    let length = if word > 0 { word } else { rest.chars().next().map_or(0, char::len_utf8) };
    let found = match &rest[..length] {
        "" => "the text ends here".into(),
        "\u{fffd}" => "a byte that is not UTF-8".into(),
        found => format!("`{}` is not expected here", found.escape_debug()),
    };
    let (start, end) = (start as u32, (start + length) as u32);
    Diagnostic::new(Span { start, end, line: line as u32, column: column as u32 }, found, label)
}

/// What could have stood where an error is.
fn expected(rules: &[Rule], tokens: &[String]) -> String {
    let is_operand = rules.contains(&Rule::number);
    let is_infix = rules.contains(&Rule::add);
    let keywords = rules.iter().filter_map(|rule| keyword(*rule)).filter(|_| !is_operand && !is_infix);
    let keywords = keywords.map(|keyword| format!("`{keyword}`"));
    let others = rules.iter().filter_map(|rule| match rule {
        Rule::number => Some("an expression"),
        Rule::name if !is_operand => Some("a name"),
        Rule::add => Some("an operator"),
        Rule::EOI => Some("the end"),
        _ => None,
    });
    let marks = tokens.iter().filter(|token| MARKS.contains(&token.as_str()) && !is_operand).map(|token| format!("`{token}`"));
    let mut words: Vec<String> = keywords.chain(others.map(Into::into)).chain(marks).collect();
    words.sort();
    words.dedup();
    match words.split_last() {
        None => "this fits nothing that could stand here".into(),
        Some((one, [])) => format!("{one} was expected"),
        Some((last, others)) => format!("{} or {last} was expected", others.join(", ")),
    }
}

/// The furthest place that the parser reached, and what it expected there.
fn expected_tokens(rule: Rule, text: &str) -> (usize, Vec<String>) {
    // Costs time, so only texts that are wrong are parsed with it. The switch is global, and at worst left on for another text.
    pest::set_error_detail(true);
    let attempts = Grammar::parse(rule, text).err().and_then(|error| error.parse_attempts());
    pest::set_error_detail(false);
    attempts.map_or((0, Vec::new()), |attempts| {
        (attempts.max_position, attempts.expected_tokens().iter().map(ToString::to_string).collect())
    })
}

/// What is expected as such; all others are operators, or parts of names, numbers, blanks.
const MARKS: [&str; 15] = [";", ",", "{", "}", "[", "]", "(", ")", "=", "->", "=>", ":", "!", "?", "*/"];

fn keyword(rule: Rule) -> Option<&'static str> {
    Some(match rule {
        Rule::kw_system => "system",
        Rule::kw_async => "async",
        Rule::kw_sync => "sync",
        Rule::kw_property => "property",
        Rule::kw_const => "const",
        Rule::kw_byte => "byte",
        Rule::kw_int => "int",
        Rule::kw_channel => "channel",
        Rule::kw_process => "process",
        Rule::kw_state => "state",
        Rule::kw_init => "init",
        Rule::kw_commit => "commit",
        Rule::kw_accept => "accept",
        Rule::kw_assert => "assert",
        Rule::kw_trans => "trans",
        Rule::kw_guard => "guard",
        Rule::kw_effect => "effect",
        Rule::kw_not => "not",
        Rule::kw_and => "and",
        Rule::kw_or => "or",
        Rule::kw_imply => "imply",
        Rule::kw_true => "true",
        Rule::kw_false => "false",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn places_are_those_that_pest_counts(text in "[a\u{e9}\n\r]{0,40}", offsets in proptest::collection::vec(0usize..60, 1..20)) {
            LAST.set((std::ptr::null(), BEGINNING));
            for offset in offsets {
                if let Some(position) = Position::new(&text, offset) {
                    let found = place(&text, offset);
                    prop_assert_eq!((found.line, found.column), position.line_col());
                }
            }
        }
    }
}
