//! Labels: their texts, gates and offers, and how operators name them.

use anyhow::{Context, Result};
use regex::{Regex, RegexBuilder};
use std::collections::HashMap;

/// What nobody sees: it takes part in nothing.
pub const HIDDEN: &str = "i";

/// Memory of a compiled expression, at most.
const MOST_EXPRESSION_BYTES: usize = 1 << 20;

/// All labels, each by a number.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    texts: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Labels {
    pub fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        number
    }

    pub fn text(&self, number: u32) -> &str {
        &self.texts[number as usize]
    }
}

/// The gate of a label, and its offers with what is between: the gate ends before the first `!`, `?`, `(` or blank.
pub fn gate_and_offers(label: &str) -> (&str, &str) {
    label.split_at(label.find(['!', '?', '(', ' ', '\t']).unwrap_or(label.len()))
}

/// How an operator's labels are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As gates.
    Gate,
    /// As regular expressions of whole labels.
    Total,
    /// As regular expressions of parts of labels.
    Partial,
}

/// A gate or expression that labels may match.
#[derive(Clone, Debug)]
pub enum Pattern {
    Gate(String),
    Expression { regex: Regex, mode: Mode },
}

impl Pattern {
    /// # Errors
    ///
    /// It is no regular expression, or one that takes too much memory.
    pub fn new(text: &str, mode: Mode) -> Result<Self> {
        let text = match mode {
            Mode::Gate => return Ok(Self::Gate(text.into())),
            Mode::Total => format!("^(?:{})$", translated(text)),
            Mode::Partial => translated(text),
        };
        let regex = RegexBuilder::new(&text).size_limit(MOST_EXPRESSION_BYTES).dfa_size_limit(MOST_EXPRESSION_BYTES).build();
        Ok(Self::Expression { regex: regex.context("not a regular expression")?, mode })
    }

    pub fn matches(&self, label: &str) -> bool {
        match self {
            Self::Gate(gate) => gate_and_offers(label).0 == gate,
            Self::Expression { regex, .. } => regex.is_match(label),
        }
    }

    /// The label with another gate, another text, or its first part that matches replaced; `None` if it does not match.
    pub fn replaced(&self, label: &str, by: &str) -> Option<String> {
        match self {
            Self::Gate(gate) => {
                let (own, offers) = gate_and_offers(label);
                (own == gate).then(|| format!("{by}{offers}"))
            }
            Self::Expression { regex, mode } => {
                let parts = regex.captures(label)?;
                let whole = parts.get(0)?;
                let mut text = String::new();
                let mut characters = by.chars();
                while let Some(character) = characters.next() {
                    let group =
                        (character == '\\').then(|| characters.clone().next().and_then(|next| next.to_digit(10))).flatten();
                    match group {
                        Some(group) => {
                            characters.next();
                            text.push_str(parts.get(group as usize).map_or("", |part| part.as_str()));
                        }
                        None => text.push(character),
                    }
                }
                Some(match mode {
                    Mode::Partial => format!("{}{text}{}", &label[..whole.start()], &label[whole.end()..]),
                    _ => text,
                })
            }
        }
    }
}

/// A basic regular expression of Unix, in which `.`, `*`, `[`, `^` and `$` mean something, and brackets and braces only behind a
/// backslash, as the regex crate writes it.
fn translated(basic: &str) -> String {
    let mut text = String::new();
    let mut characters = basic.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(special @ ('(' | ')' | '{' | '}' | '|' | '+' | '?')) => text.push(special),
                Some(other) => text.push_str(&regex::escape(&other.to_string())),
                None => text.push_str(r"\\"),
            },
            '[' => {
                text.push('[');
                let mut is_first = true;
                if characters.next_if_eq(&'^').is_some() {
                    text.push('^');
                }
                for member in characters.by_ref() {
                    match member {
                        ']' if !is_first => {
                            text.push(']');
                            break;
                        }
                        '-' => text.push('-'),
                        other => text.push_str(&regex::escape(&other.to_string())),
                    }
                    is_first = false;
                }
            }
            '*' if text.is_empty() => text.push_str(r"\*"),
            '.' | '*' | '^' | '$' => text.push(character),
            other => text.push_str(&regex::escape(&other.to_string())),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_end_at_offers_and_blanks() {
        for (label, gate) in [("GRANT !3", "GRANT"), ("rate 2", "rate"), ("r1(in(d1))", "r1"), ("A", "A"), ("", ""), ("C?x", "C")]
        {
            assert_eq!(gate_and_offers(label).0, gate, "{label}");
        }
    }

    #[test]
    fn expressions_are_those_of_unix() {
        for (pattern, label, total, partial) in [
            ("A.*", "ABC", true, true),
            ("B", "ABC", false, true),
            ("C !0", "C !0", true, true),
            ("r(in)", "r(in)", true, true),
            ("a+", "a+", true, true),
            ("a+", "aa", false, false),
            (r"\(A\|B\)*", "ABAB", true, true),
            ("[0-9]*", "123", true, true),
            ("[^0-9]", "1", false, false),
            ("[]a]", "]", true, true),
            ("*", "*", true, true),
            ("", "A", false, true),
        ] {
            let matches = |mode| Pattern::new(pattern, mode).unwrap().matches(label);
            assert_eq!((matches(Mode::Total), matches(Mode::Partial)), (total, partial), "{pattern} {label}");
        }
        assert!(Pattern::new(r"\(", Mode::Total).is_err());
        assert!(Pattern::new(r"a\{1000000\}", Mode::Total).is_err());
    }

    #[test]
    fn replacements_keep_what_they_do_not_replace() {
        let replaced = |pattern, mode, label, by| Pattern::new(pattern, mode).unwrap().replaced(label, by);
        assert_eq!(replaced("A", Mode::Gate, "A !1", "B").as_deref(), Some("B !1"));
        assert_eq!(replaced("A", Mode::Gate, "AB", "B"), None);
        assert_eq!(replaced(r"A\(.*\)", Mode::Total, "A !1", r"B\1").as_deref(), Some("B !1"));
        assert_eq!(replaced("1", Mode::Partial, "A !1 !1", "2").as_deref(), Some("A !2 !1"));
    }
}
