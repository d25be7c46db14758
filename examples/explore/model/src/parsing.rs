//! Code that the parsers of all languages share: places in texts, and the wording of syntax errors.

use crate::diagnostic::Diagnostic;
use crate::ir::Span;
use pest::error::{Error, ErrorVariant, InputLocation, LineColLocation};
use pest::iterators::Pair;
use pest::{Parser, Position, RuleType};
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Length limit of a text in bytes, because places in a text are stored in 32 bits.
pub const MAX_BYTES: usize = u32::MAX as usize;

/// Whether a name may contain the character, as in rule `name_character` of the grammars.
pub fn is_name_character(character: char) -> bool {
    character == '_' || pest::unicode::XID_CONTINUE(character)
}

/// The words that a language uses in its syntax errors.
pub struct Words<R> {
    /// Describes in words what some rules expected; leaves out rules whose names do not help the user.
    pub expected: fn(&[R]) -> Vec<String>,
    /// Punctuation marks that an error names if they were expected. All other tokens are operators, or parts of names, numbers
    /// and blanks.
    pub marks: &'static [&'static str],
    /// Whether an operand could stand at the place of the error. The error then names no punctuation marks.
    pub is_operand: fn(&[R]) -> bool,
    /// Advice for unexpected text, such as a word of a similar language.
    pub hint: fn(&Unexpected<R>) -> Option<&'static str>,
    /// Advice for a word of the language, which is therefore no name. `None` for all others.
    pub reserved: fn(&str) -> Option<&'static str>,
    /// Whether [`Foreign`] advises in this language.
    pub is_dve: bool,
}

/// The text in which an unexpected sign or word of another language is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Condition,
    Formula,
}

const IN_LTL: &str = "an operator of --ltl, not of conditions";
const IN_CTL: &str = "an operator of --ctl";

/// Signs and words of TLA+, SPIN and temporal logic, and what to write instead in a condition and in a formula of `--ltl`. Longer
/// signs come before their parts.
const FOREIGN: [(&str, &str, &str); 19] = [
    ("/\\", "write `and`", "write `and`"),
    ("\\/", "write `or`", "write `or`"),
    ("<=>", "write `==` between truth values", "write `<->`"),
    ("=>", "an implication is written `imply`", "an implication is written `->`"),
    ("~>", "write G (p -> F q) in --ltl", "write G (p -> F q)"),
    ("/=", "write `!=`", "write `!=`"),
    ("#", "write `!=`", "write `!=`"),
    ("[]", IN_LTL, ""),
    ("<>", IN_LTL, ""),
    ("G", IN_LTL, ""),
    ("F", IN_LTL, ""),
    ("X", IN_LTL, ""),
    ("U", IN_LTL, ""),
    ("AG", IN_CTL, IN_CTL),
    ("AF", IN_CTL, IN_CTL),
    ("AX", IN_CTL, IN_CTL),
    ("EG", IN_CTL, IN_CTL),
    ("EF", IN_CTL, IN_CTL),
    ("EX", IN_CTL, IN_CTL),
];

/// A sign or word of another language.
pub struct Foreign {
    pub start: usize,
    pub text: String,
    pub help: String,
}

/// Finds a sign or word of another language around the offset `at` of a text, at which a parser has stopped: within it, or behind
/// a word.
pub fn foreign(text: &str, at: usize, place: Place) -> Option<Foreign> {
    let (before, rest) = text.split_at(at);
    let word_at = |end: usize| text[..end].trim_end_matches(is_name_character).len();
    for (sign, in_condition, in_formula) in FOREIGN {
        let help = if place == Place::Formula { in_formula } else { in_condition };
        let is_word = sign.starts_with(is_name_character);
        let start = if is_word {
            let end = before.trim_end().len();
            let next = rest.chars().next().unwrap_or(' ');
            Some(word_at(end)).filter(|start| &text[*start..end] == sign && (is_name_character(next) || next == '('))
        } else {
            let splits = (0..sign.len()).find(|split| before.ends_with(&sign[..*split]) && rest.starts_with(&sign[*split..]));
            let is_operand = |start: &usize| text[..*start].trim_end().ends_with(|c: char| is_name_character(c) || c == ')');
            splits.map(|split| at - split).filter(|start| sign != "[]" || !is_operand(start))
        };
        if let Some(start) = start.filter(|_| !help.is_empty()) {
            return Some(Foreign { start, text: sign.into(), help: help.into() });
        }
    }
    // A process, or an instance of one.
    let owner = match before.strip_suffix(']').and_then(|array| array.rsplit_once('[')) {
        Some((array, index)) => format!("{}_{index}", &array[word_at(array.len())..]),
        None => before[word_at(at)..].into(),
    };
    let part: String = rest.get(1..)?.chars().take_while(|c| is_name_character(*c)).collect();
    let help = match rest.chars().next()? {
        _ if owner.is_empty() || part.is_empty() => return None,
        '@' | ':' => format!("write `{owner}.{part}`"),
        '.' if before.ends_with(']') => format!("the instances of a process are named by their numbers: `{owner}.{part}`"),
        _ => return None,
    };
    Some(Foreign { start: at, text: rest[..1].into(), help })
}

/// Advice for a word of the language that stands where a name is expected.
pub const ANOTHER_NAME: &str = "choose another name";

/// The place of a syntax error.
pub struct Unexpected<'a, R> {
    /// The text before the place.
    pub before: &'a str,
    /// The text from the place on.
    pub rest: &'a str,
    /// The word at the place; empty if another character is there.
    pub word: &'a str,
    /// The known rules that could have matched at the place.
    pub rules: &'a [R],
}

/// Parses a whole text. `rule` must match to the end of the text.
pub fn parse<'t, R: RuleType, P: Parser<R>>(rule: R, text: &'t str, words: &Words<R>) -> Result<Pair<'t, R>, Diagnostic> {
    if text.len() > MAX_BYTES {
        let message = format!("the text has {} bytes, but at most {MAX_BYTES} are possible", text.len());
        return Err(Diagnostic::new(Span::default(), message, "too long"));
    }
    // Forget the last place: a text that was parsed earlier may have had the same address as this one.
    LAST.set((std::ptr::null(), BEGINNING));
    let mut pairs = P::parse(rule, text).map_err(|error| syntax_error::<R, P>(error, rule, text, words))?;
    Ok(pairs.next().expect("a rule that matches yields a pair"))
}

pub fn span<R: RuleType>(pair: &Pair<'_, R>) -> Span {
    let of = pair.as_span();
    let TextPosition { line, column, .. } = place(of.get_input(), of.start());
    // A pair includes the blanks and comments after its last token. Leave them out.
    let end = of.start() + of.as_str().trim_end().len();
    Span { start: of.start() as u32, end: end as u32, line: line as u32, column: column as u32 }
}

/// The span of a piece of text, given by its byte offsets.
pub fn span_of(text: &str, start: usize, end: usize) -> Span {
    let TextPosition { line, column, .. } = place_behind(text, BEGINNING, start);
    Span { start: start as u32, end: end as u32, line: line as u32, column: column as u32 }
}

/// Length of the longest run of `true`.
pub fn longest_run(flags: impl Iterator<Item = bool>) -> usize {
    let runs = flags.scan(0, |run, flag| {
        *run = if flag { *run + 1 } else { 0 };
        Some(*run)
    });
    runs.max().unwrap_or(0)
}

/// The span from the start of `from` to the end of `to`.
pub fn join(from: Span, to: Span) -> Span {
    Span { end: to.end, ..from }
}

/// An error for a name that is not declared, with the most similar declared name.
pub fn unknown(what: &str, name: &str, at: Span, known: &[&str]) -> Diagnostic {
    let error = Diagnostic::new(at, format!("there is no {what} `{name}`"), "not declared");
    match similar(name, known) {
        Some(known) => error.with_help(format!("there is `{known}`")),
        None if (1..=8).contains(&known.len()) => error.with_help(format!("there are: {}", known.join(", "))),
        None => error,
    }
}

/// Longest name that is compared. Comparing two names takes time proportional to the product of their lengths.
const LONGEST_COMPARED: usize = 64;

/// Returns the known name that is most similar to `name`: the fewest letters to add, leave out, change or swap, ignoring case. At
/// most one letter of three may differ. Returns the first of several equally similar names.
fn similar<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let letters = name.chars().count();
    if letters > LONGEST_COMPARED {
        return None;
    }
    let lower = name.to_lowercase();
    let near = known.iter().filter(|known| known.chars().count().abs_diff(letters) <= letters / 3);
    let rated = near.map(|known| (strsim::osa_distance(&lower, &known.to_lowercase()), *known));
    rated.filter(|(distance, _)| *distance <= letters / 3).min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

/// An error for a name that is declared again.
pub fn twice(what: &str, name: &str, at: Span, earlier: Span) -> Diagnostic {
    Diagnostic::new(at, format!("the {what} `{name}` is declared twice"), "again here").with_related(earlier, "first here")
}

/// Names of one kind in one scope.
#[derive(Clone, Debug)]
pub struct Declared<T>(HashMap<String, (T, Span)>);

impl<T> Default for Declared<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T> Declared<T> {
    /// Declares a name. If the name is already declared, the error is the place of that declaration.
    pub fn declare(&mut self, name: &str, meaning: T, span: Span) -> Result<(), Span> {
        match self.0.get(name) {
            Some((_, earlier)) => Err(*earlier),
            None => {
                self.0.insert(name.into(), (meaning, span));
                Ok(())
            }
        }
    }

    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.get(name).map(|(meaning, _)| meaning)
    }

    /// All names, in alphabetical order.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.0.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }
}

/// Line and column of an offset in a text.
#[derive(Clone, Copy)]
struct TextPosition {
    offset: usize,
    /// Line number, counted from 1.
    line: usize,
    /// Column in characters, counted from 1.
    column: usize,
}

thread_local! {
    /// Address of the text and the place that was looked up last. The next place is usually near it. If each place were counted
    /// from the beginning of its line, a text with one long line would take quadratic time.
    static LAST: Cell<(*const u8, TextPosition)> = const { Cell::new((std::ptr::null(), BEGINNING)) };
}

const BEGINNING: TextPosition = TextPosition { offset: 0, line: 1, column: 1 };

fn place(text: &str, offset: usize) -> TextPosition {
    let (start, last) = LAST.get();
    let last = if start == text.as_ptr() { last } else { BEGINNING };
    let found = if offset < last.offset { place_before(text, last, offset) } else { place_behind(text, last, offset) };
    LAST.set((text.as_ptr(), found));
    found
}

fn place_before(text: &str, from: TextPosition, offset: usize) -> TextPosition {
    let between = &text[offset..from.offset];
    match between.bytes().filter(|byte| *byte == b'\n').count() {
        0 => TextPosition { offset, line: from.line, column: from.column - between.chars().count() },
        lines => {
            let line_start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
            TextPosition { offset, line: from.line - lines, column: 1 + text[line_start..offset].chars().count() }
        }
    }
}

fn place_behind(text: &str, from: TextPosition, offset: usize) -> TextPosition {
    let between = &text[from.offset..offset];
    match between.rfind('\n') {
        None => TextPosition { offset, line: from.line, column: from.column + between.chars().count() },
        Some(last) => {
            let lines = between.bytes().filter(|byte| *byte == b'\n').count();
            TextPosition { offset, line: from.line + lines, column: 1 + between[last + 1..].chars().count() }
        }
    }
}

fn syntax_error<R: RuleType, P: Parser<R>>(error: Error<R>, rule: R, text: &str, words: &Words<R>) -> Diagnostic {
    let (mut start, (mut line, mut column)) = match (&error.location, &error.line_col) {
        (
            InputLocation::Pos(at) | InputLocation::Span((at, _)),
            LineColLocation::Pos(place) | LineColLocation::Span(place, _),
        ) => (*at, *place),
    };
    let mut rules: &[R] = &[];
    let label = match &error.variant {
        ErrorVariant::CustomError { message } => message.clone(),
        ErrorVariant::ParsingError { positives, .. } => {
            let (furthest, tokens) = expected_tokens::<R, P>(rule, text);
            // The parser has begun no rule at this place, but expected a mark.
            let is_further = furthest > start;
            if is_further && let Some(position) = Position::new(text, furthest) {
                (start, (line, column)) = (furthest, position.line_col());
            }
            rules = if is_further { &[] } else { positives };
            match expected(rules, &tokens, words) {
                None if text.trim().is_empty() => "there is nothing to read".into(),
                // The parser has stopped behind a word that is no name.
                None => match reserved(text, start, words) {
                    Some(error) => return error,
                    None => "nothing that may stand here begins like this".into(),
                },
                Some(expected) => expected,
            }
        }
    };
    // Bytes that are not UTF-8 may be the reason why a quoted text seems to end too early.
    let quoted = text[start..].strip_prefix('"').and_then(|inside| inside.split(['"', '\n']).next());
    if let Some(at) = quoted.and_then(|inside| inside.find(char::REPLACEMENT_CHARACTER))
        && let Some(position) = Position::new(text, start + 1 + at)
    {
        (start, (line, column)) = (position.pos(), position.line_col());
    }
    let rest = &text[start..];
    let word = rest.len() - rest.trim_start_matches(is_name_character).len();
    let length = if word > 0 { word } else { rest.chars().next().map_or(0, char::len_utf8) };
    let hint = (words.hint)(&Unexpected { before: &text[..start], rest, word: &rest[..word], rules });
    let found = match &rest[..length] {
        "" if text.trim().is_empty() => "the text is empty".into(),
        "" => "the text ends here".into(),
        "\u{fffd}" => "a byte that is not UTF-8".into(),
        found => format!("`{}` is not expected here", found.escape_debug()),
    };
    let (start, end) = (start as u32, (start + length) as u32);
    let error = Diagnostic::new(Span { start, end, line: line as u32, column: column as u32 }, found, label);
    if let Some(foreign) = foreign(text, start as usize, Place::Condition).filter(|_| words.is_dve) {
        return of_foreign(error, text, foreign);
    }
    hint.into_iter().fold(error, Diagnostic::with_help)
}

/// The error for a word of the language that ends at an offset, if there is one.
fn reserved<R>(text: &str, end: usize, words: &Words<R>) -> Option<Diagnostic> {
    let start = text[..end].trim_end_matches(is_name_character).len();
    let word = &text[start..end];
    let advice = (words.reserved)(word)?;
    Some(Diagnostic::new(span_of(text, start, end), format!("`{word}` is a word of the language"), advice))
}

/// The error at a sign or word of another language, with what to write instead.
pub fn of_foreign(error: Diagnostic, text: &str, foreign: Foreign) -> Diagnostic {
    let Foreign { start, text: sign, help } = foreign;
    let error = Diagnostic { message: format!("`{sign}` is not expected here"), ..error };
    Diagnostic { span: span_of(text, start, start + sign.len()), ..error }.with_help(help)
}

/// Lists in words what could have stood at the place of an error; `None` if no such word would help the user.
fn expected<R: RuleType>(rules: &[R], tokens: &[String], words: &Words<R>) -> Option<String> {
    let is_told = |token: &&String| words.marks.contains(&token.as_str()) && !(words.is_operand)(rules);
    let marks = tokens.iter().filter(is_told).map(|token| format!("`{token}`"));
    let mut words: Vec<String> = (words.expected)(rules).into_iter().chain(marks).collect();
    words.sort();
    words.dedup();
    let (last, others) = words.split_last()?;
    Some(if others.is_empty() { format!("{last} was expected") } else { format!("{} or {last} was expected", others.join(", ")) })
}

/// The furthest offset that the parser reached, and the tokens that it expected there.
fn expected_tokens<R: RuleType, P: Parser<R>>(rule: R, text: &str) -> (usize, Vec<String>) {
    // Tracking tokens costs time, so only texts with errors are parsed with it. The switch is global, so one thread at a time
    // turns it on. At worst, another thread parses a text without errors while it is on.
    static IN_DETAIL: Mutex<()> = Mutex::new(());
    let _others_wait = IN_DETAIL.lock().unwrap_or_else(PoisonError::into_inner);
    pest::set_error_detail(true);
    let attempts = P::parse(rule, text).err().and_then(|error| error.parse_attempts());
    pest::set_error_detail(false);
    attempts.map_or((0, Vec::new()), |attempts| {
        (attempts.max_position, attempts.expected_tokens().iter().map(ToString::to_string).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_suggested_by_the_letters_to_change() {
        let known = ["leaders_1", "leaders_10", "eat_0", "x", "cab"];
        for (name, meant) in [
            ("leaders1", Some("leaders_1")),
            ("Leaders_1", Some("leaders_1")),
            ("leaders10", Some("leaders_10")),
            ("leadres_1", Some("leaders_1")),
            ("eat0", Some("eat_0")),
            ("eta_0", Some("eat_0")),
            ("X", Some("x")),
            ("cb", None),
            ("acb", Some("cab")),
            ("y", None),
            ("deadlocks", None),
            ("", None),
        ] {
            assert_eq!(similar(name, &known), meant, "{name}");
        }
        assert_eq!(similar(&"a".repeat(65), &[&"a".repeat(64)]), None);
    }

    proptest! {
        #[test]
        fn places_are_those_that_pest_counts(
            text in "[a\u{e9}\n\r]{0,40}", offsets in proptest::collection::vec(0usize..60, 1..20),
        ) {
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
