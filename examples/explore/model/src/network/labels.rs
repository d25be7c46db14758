//! Labels: their texts, gates and offers, and the patterns with which operators select them.

use crate::ir::Texts;
use anyhow::{Context, Result, ensure};
use hashbrown::{DefaultHashBuilder, HashTable, hash_table};
use regex_lite::{Regex, RegexBuilder};
use std::hash::BuildHasher;
use std::ops::Range;

/// The hidden label; it never synchronises.
pub const HIDDEN: &str = "i";

/// Limit of the memory of a compiled regular expression, in bytes.
const MOST_EXPRESSION_BYTES: usize = 1 << 20;

const NO_MEMORY: &str = "no memory for more labels";

/// All labels with their numbers. Each label takes some 20 bytes in addition to its text.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    texts: Texts,
    numbers: HashTable<Entry>,
    hasher: DefaultHashBuilder,
}

/// A label in the hash table. Because part of its hash is stored, the table can grow without reading the texts, which are
/// scattered in memory.
#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u32,
    number: u32,
}

impl Entry {
    /// Returns the hash that the table uses. The lowest and the highest bits must differ between labels.
    fn spread(hash: u32) -> u64 {
        u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// Labels that wait for their numbers.
#[derive(Default)]
pub struct Batch {
    pub texts: Texts,
    guesses: Vec<Guess>,
}

/// A label that may equal the wanted one because it has the same hash, if there is one, and the place of its text.
#[derive(Clone, Debug, Default)]
struct Guess {
    hash: u32,
    number: Option<u32>,
    bytes: Range<usize>,
}

impl Labels {
    /// Returns the number of a label. An unknown label gets a new number.
    ///
    /// # Errors
    ///
    /// Memory runs out, or there are too many labels.
    pub fn try_number(&mut self, text: &str) -> Result<u32> {
        self.number_of(text, self.hasher.hash_one(text) as u32)
    }

    fn number_of(&mut self, text: &str, hash: u32) -> Result<u32> {
        let Self { texts, numbers, .. } = self;
        let count = texts.len();
        let has_room = numbers.try_reserve(1, |entry| Entry::spread(entry.hash)).is_ok();
        ensure!(has_room, NO_MEMORY);
        let is_it = |entry: &Entry| entry.hash == hash && texts.get(entry.number as usize) == text;
        match numbers.entry(Entry::spread(hash), is_it, |entry| Entry::spread(entry.hash)) {
            hash_table::Entry::Occupied(known) => Ok(known.get().number),
            hash_table::Entry::Vacant(place) => {
                let number = u32::try_from(count).with_context(|| format!("at most {count} labels are possible"))?;
                ensure!(texts.push(text), NO_MEMORY);
                place.insert(Entry { hash, number });
                Ok(number)
            }
        }
    }

    /// Calls `take` with the number of each label, in order, as [`try_number`](Self::try_number) would return it.
    ///
    /// With many labels, each lookup waits for memory. A batch therefore does each step for all its labels before the next step,
    /// so that the processor overlaps the waiting times.
    ///
    /// # Errors
    ///
    /// As for [`try_number`](Self::try_number). The numbers of the labels before the error have been passed to `take`.
    pub fn try_numbers(&mut self, batch: &mut Batch, mut take: impl FnMut(u32)) -> Result<()> {
        let Batch { texts, guesses } = batch;
        guesses.clear();
        guesses.extend(texts.iter().map(|text| Guess { hash: self.hasher.hash_one(text) as u32, ..Guess::default() }));
        for guess in &mut *guesses {
            let found = self.numbers.find(Entry::spread(guess.hash), |entry| entry.hash == guess.hash);
            guess.number = found.map(|entry| entry.number);
        }
        for guess in &mut *guesses {
            guess.bytes = guess.number.map_or(0..0, |number| self.texts.bytes_of(number as usize));
        }
        for (text, guess) in texts.iter().zip(&*guesses) {
            let known = guess.number.filter(|_| self.texts.piece(guess.bytes.clone()) == text);
            take(match known {
                Some(number) => number,
                None => self.number_of(text, guess.hash)?,
            });
        }
        texts.clear();
        Ok(())
    }

    /// As [`try_number`](Self::try_number), for cases in which labels take little of the memory; panics on errors.
    pub fn number(&mut self, text: &str) -> u32 {
        self.try_number(text).unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn text(&self, number: u32) -> &str {
        self.texts.get(number as usize)
    }

    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Returns all texts by number. Frees the index.
    pub fn into_texts(self) -> Texts {
        self.texts
    }
}

/// Splits a label into its gate and its offers with their separators: the gate ends before the first `!`, `?`, `(` or blank.
pub fn gate_and_offers(label: &str) -> (&str, &str) {
    label.split_at(label.find(['!', '?', '(', ' ', '\t']).unwrap_or(label.len()))
}

/// How an operator interprets its labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Labels are names of gates.
    Gate,
    /// Labels are regular expressions that match whole labels.
    Total,
    /// Labels are regular expressions that match parts of labels.
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
    /// The text is not a valid regular expression, or the compiled expression takes too much memory.
    pub fn new(text: &str, mode: Mode) -> Result<Self> {
        let text = match mode {
            Mode::Gate => return Ok(Self::Gate(text.into())),
            Mode::Total => format!("^(?:{})$", translated(text)),
            Mode::Partial => translated(text),
        };
        let regex = RegexBuilder::new(&text).size_limit(MOST_EXPRESSION_BYTES).build();
        Ok(Self::Expression { regex: regex.context("not a regular expression")?, mode })
    }

    pub fn matches(&self, label: &str) -> bool {
        match self {
            Self::Gate(gate) => gate_and_offers(label).0 == gate,
            Self::Expression { regex, .. } => regex.is_match(label),
        }
    }

    /// Returns the label after replacing its gate, its whole text, or the first part that matches. `None` if the label does not
    /// match.
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

/// Translates a Unix basic regular expression to the syntax of the crate regex-lite. In basic expressions `.`, `*`, `[`, `^` and
/// `$` are special; parentheses and braces are special only after a backslash.
fn translated(basic: &str) -> String {
    let mut text = String::new();
    let mut characters = basic.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(special @ ('(' | ')' | '{' | '}' | '|' | '+' | '?')) => text.push(special),
                Some(other) => text.push_str(&regex_lite::escape(&other.to_string())),
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
                        other => text.push_str(&regex_lite::escape(&other.to_string())),
                    }
                    is_first = false;
                }
            }
            '*' if text.is_empty() => text.push_str(r"\*"),
            '.' | '*' | '^' | '$' => text.push(character),
            other => text.push_str(&regex_lite::escape(&other.to_string())),
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
