//! Formulas of linear temporal logic, and their syntax.
//!
//! Operators are those of SPIN and Spot, lowest precedence first: `<->`; `->` (both right-associative); `||` or `or`; `&&` or
//! `and`; `U`, `R` or `V`, `W`, `M` (right-associative); `!` or `not`, `X`, `F` or `<>`, `G` or `[]`. Unary operators may be
//! written without blanks between them (`GF`), unless the model has a variable of that name.
//!
//! Propositions are conditions of the model's language: the text between those operators is passed unchanged to its front end.
//! Therefore comparisons and arithmetic bind tighter than any operator here, including `!`: `!x == 1` is `!(x == 1)`. The parser
//! knows the words and marks of all languages; the front end refuses those that are not of its own language. `<>` is `F` where an
//! operand could begin, and SLCO's "is not" behind an operand.

use crate::diagnostic::Diagnostic;
use crate::ir::{Source, Span};
use crate::parsing::{self, Place, is_name_character};
use std::collections::HashMap;

/// Limit of the nesting of operators, because formulas are walked by recursion.
const MAX_DEPTH: usize = 200;

/// Operands of a chain from which those without temporal operators become one proposition.
const MOST_IN_CHAIN: usize = 32;

/// Limit of the parts of a formula: `<->`, `W` and `M` stand for formulas in which their sides occur twice.
const MOST_PARTS: usize = 2000;

/// A formula over propositions, which are given by their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Formula {
    Constant(bool),
    Proposition(usize),
    Not(Box<Formula>),
    And(Box<[Formula; 2]>),
    Or(Box<[Formula; 2]>),
    Next(Box<Formula>),
    Until(Box<[Formula; 2]>),
    /// The dual of `Until`: the second operand holds up to and including the time at which the first holds, or for ever.
    Release(Box<[Formula; 2]>),
}

impl Formula {
    pub fn negated(self) -> Self {
        Self::Not(Box::new(self))
    }

    pub fn and(self, other: Self) -> Self {
        Self::And(Box::new([self, other]))
    }

    pub fn or(self, other: Self) -> Self {
        Self::Or(Box::new([self, other]))
    }

    pub fn next(self) -> Self {
        Self::Next(Box::new(self))
    }

    /// Joins formulas by `and` or `or`, as a tree of least depth. Nothing is the constant that changes no other formula.
    pub fn joined(mut all: Vec<Self>, is_and: bool) -> Self {
        if all.len() <= 1 {
            return all.pop().unwrap_or(Self::Constant(is_and));
        }
        let right = Self::joined(all.split_off(all.len() / 2), is_and);
        let left = Self::joined(all, is_and);
        if is_and { left.and(right) } else { left.or(right) }
    }

    /// Whether only the present decides the formula.
    fn is_of_state(&self) -> bool {
        match self {
            Self::Constant(_) | Self::Proposition(_) => true,
            Self::Not(of) => of.is_of_state(),
            Self::And(of) | Self::Or(of) => of.iter().all(Self::is_of_state),
            Self::Next(_) | Self::Until(_) | Self::Release(_) => false,
        }
    }

    /// The numbers of the propositions in the formula, each once, ascending.
    pub fn used_propositions(&self) -> Vec<usize> {
        let mut all = Vec::new();
        self.propositions(&mut all);
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Adds the numbers of the propositions in the formula.
    fn propositions(&self, all: &mut Vec<usize>) {
        match self {
            Self::Constant(_) => {}
            Self::Proposition(number) => all.push(*number),
            Self::Not(of) | Self::Next(of) => of.propositions(all),
            Self::And(of) | Self::Or(of) | Self::Until(of) | Self::Release(of) => {
                of.iter().for_each(|of| of.propositions(all));
            }
        }
    }

    pub fn until(self, other: Self) -> Self {
        Self::Until(Box::new([self, other]))
    }

    pub fn release(self, other: Self) -> Self {
        Self::Release(Box::new([self, other]))
    }

    /// Number of parts, including the formula itself.
    fn parts(&self) -> usize {
        match self {
            Self::Constant(_) | Self::Proposition(_) => 1,
            Self::Not(of) | Self::Next(of) => 1 + of.parts(),
            Self::And(of) | Self::Or(of) | Self::Until(of) | Self::Release(of) => 1 + of[0].parts() + of[1].parts(),
        }
    }

    /// The formula with each proposition replaced by `of` its number.
    pub fn with(&self, of: &impl Fn(usize) -> Self) -> Self {
        let both = |pair: &[Self; 2]| Box::new([pair[0].with(of), pair[1].with(of)]);
        match self {
            Self::Constant(truth) => Self::Constant(*truth),
            Self::Proposition(number) => of(*number),
            Self::Not(inner) => inner.with(of).negated(),
            Self::And(pair) => Self::And(both(pair)),
            Self::Or(pair) => Self::Or(both(pair)),
            Self::Next(inner) => inner.with(of).next(),
            Self::Until(pair) => Self::Until(both(pair)),
            Self::Release(pair) => Self::Release(both(pair)),
        }
    }

    pub fn finally(self) -> Self {
        Self::Constant(true).until(self)
    }

    pub fn globally(self) -> Self {
        Self::Constant(false).release(self)
    }
}

/// A piece of text that is a proposition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposition {
    /// Its words, separated by single blanks. Propositions with equal words are one proposition.
    pub words: String,
    pub span: Span,
    /// The formula over earlier propositions that this one stands for, if it is no piece of text.
    pub of: Option<Formula>,
    /// In branching time, the quantifier of the paths for which the formula, a single temporal operator, is asked.
    pub quantifier: Option<Quantifier>,
}

/// The paths from a state that must satisfy a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    All,
    Exists,
}

/// The logic of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Logic {
    Linear,
    /// Each temporal operator is directly behind a path quantifier.
    Branching,
}

/// The model's names, as far as the parser needs them.
pub struct Names<'a> {
    /// Whether the model has a variable or constant with this name.
    pub is_variable: &'a dyn Fn(&str) -> bool,
    /// Whether the model has a process with this name, whose parts are written with `->`.
    pub is_process: &'a dyn Fn(&str) -> bool,
}

/// Reads a formula and its propositions.
///
/// # Errors
///
/// The first unexpected token, with its place.
pub fn parse(source: &Source, names: &Names) -> Result<(Formula, Vec<Proposition>), Diagnostic> {
    parse_as(Logic::Linear, source, names)
}

/// Reads a formula of branching time (CTL). A temporal operator and its quantifier are a proposition; no formula that is returned
/// has another temporal operator.
///
/// # Errors
///
/// The first unexpected token, with its place.
pub fn parse_branching(source: &Source, names: &Names) -> Result<(Formula, Vec<Proposition>), Diagnostic> {
    parse_as(Logic::Branching, source, names)
}

fn parse_as(logic: Logic, source: &Source, names: &Names) -> Result<(Formula, Vec<Proposition>), Diagnostic> {
    let tokens = tokens(&source.text)?;
    let (known, counted) = (HashMap::new(), (0, 1, 1));
    let mut parser =
        Parser { logic, text: &source.text, tokens, at: 0, names, propositions: Vec::new(), known, depth: 0, counted };
    let formula = parser.equivalence()?;
    match parser.peek() {
        None => Ok((formula, parser.propositions)),
        Some(token) if logic == Logic::Branching && BINARY.contains(&token.text) => {
            Err(parser.unexpected("a path quantifier and brackets around both sides, as in A[p U q],"))
        }
        Some(_) => Err(parser.unexpected("an operator or the end")),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenKind {
    Name,
    Number,
    /// A label in quotes.
    Text,
    Mark,
}

#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    kind: TokenKind,
    text: &'a str,
    start: usize,
}

/// Longer marks come before shorter ones.
const MARKS: [&str; 34] = [
    "<->", "->", "<>", "[]", "&&", "||", "==", "!=", "<=", ">=", "<<", ">>", "**", "(", ")", "[", "]", "!", "<", ">", "=", "+",
    "-", "*", "/", "%", "&", "|", "^", "~", ".", ",", "?", ":",
];

/// Marks and words that join two operands within one proposition.
const INFIX: [&str; 20] =
    ["==", "!=", "<=", ">=", "<<", ">>", "**", "<>", "<", ">", "=", "+", "-", "*", "/", "%", "&", "|", "^", "xor"];

/// Words before an operand.
const WORDS: [&str; 5] = ["not", "and", "or", "imply", "xor"];

/// Temporal operators between two formulas.
const BINARY: [&str; 5] = ["U", "R", "V", "W", "M"];

fn tokens(text: &str) -> Result<Vec<Token<'_>>, Diagnostic> {
    let mut tokens = Vec::new();
    let mut start = 0;
    while let Some(first) = text[start..].chars().next() {
        let rest = &text[start..];
        let (kind, length) = if first.is_whitespace() {
            start += first.len_utf8();
            continue;
        } else if is_name_character(first) {
            let kind = if first.is_ascii_digit() { TokenKind::Number } else { TokenKind::Name };
            (kind, rest.find(|c| !is_name_character(c)).unwrap_or(rest.len()))
        } else if let Some(inside) = quoted(rest) {
            (TokenKind::Text, inside.len() + 2)
        } else if let Some(mark) = MARKS.iter().find(|mark| rest.starts_with(**mark)) {
            (TokenKind::Mark, mark.len())
        } else {
            let at = span(text, start, start + first.len_utf8());
            let error = Diagnostic::new(at, format!("`{}` is not expected here", first.escape_debug()), "no operator");
            return Err(with_advice(error, text, start));
        };
        tokens.push(Token { kind, text: &rest[..length], start });
        start += length;
    }
    Ok(tokens)
}

/// An error at an offset, with what to write for a sign or word of another language that is there.
fn with_advice(error: Diagnostic, text: &str, at: usize) -> Diagnostic {
    match parsing::foreign(text, at, Place::Formula) {
        Some(foreign) => parsing::of_foreign(error, text, foreign),
        None => error,
    }
}

/// The text inside the quotes at the beginning of `text`.
fn quoted(text: &str) -> Option<&str> {
    text.strip_prefix('"')?.split_once('"').map(|(inside, _)| inside).filter(|inside| !inside.contains('\n'))
}

/// The span between two byte offsets.
fn span(text: &str, start: usize, end: usize) -> Span {
    let before = &text[..start];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = 1 + before.matches('\n').count();
    Span { start: start as u32, end: end as u32, line: line as u32, column: 1 + before[line_start..].chars().count() as u32 }
}

struct Parser<'a> {
    logic: Logic,
    text: &'a str,
    tokens: Vec<Token<'a>>,
    at: usize,
    names: &'a Names<'a>,
    propositions: Vec<Proposition>,
    /// The propositions that are pieces of text, by their words.
    known: HashMap<String, usize>,
    depth: usize,
    /// Offset, line and column of the last place that was counted. The next one is behind it.
    counted: (usize, u32, u32),
}

type Parsed<T> = Result<T, Diagnostic>;

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    fn text_at(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |token| token.text)
    }

    /// Consumes the next word if it is one of `words`.
    fn take(&mut self, words: &[&str]) -> bool {
        let is_one = self.peek().is_some_and(|token| words.contains(&token.text));
        self.at += usize::from(is_one);
        is_one
    }

    fn unexpected(&self, expected: &str) -> Diagnostic {
        let label = format!("{expected} was expected");
        match self.peek() {
            Some(Token { text, start, .. }) => {
                let at = span(self.text, start, start + text.len());
                with_advice(Diagnostic::new(at, format!("`{text}` is not expected here"), label), self.text, start)
            }
            None => {
                let message = if self.tokens.is_empty() { "the formula is empty" } else { "the formula ends here" };
                Diagnostic::new(span(self.text, self.text.len(), self.text.len()), message, label)
            }
        }
    }

    /// Returns an error if a formula made of these two becomes too large.
    fn ensure_fits(&self, sides: [&Formula; 2]) -> Parsed<()> {
        if sides.iter().map(|side| side.parts()).sum::<usize>() < MOST_PARTS / 4 {
            return Ok(());
        }
        let at = self.tokens.get(self.at.saturating_sub(1)).map_or(0, |token| token.start);
        let label = format!("more than {MOST_PARTS} operators and propositions, after abbreviations are expanded");
        Err(Diagnostic::new(span(self.text, at, at), "the formula is too large", label))
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_DEPTH {
            let at = self.peek().map_or(self.text.len(), |token| token.start);
            let label = format!("more than {MAX_DEPTH} nested operators");
            return Err(Diagnostic::new(span(self.text, at, at), "the formula is too large", label));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn equivalence(&mut self) -> Parsed<Formula> {
        let left = self.implication()?;
        if !self.take(&["<->"]) {
            return Ok(left);
        }
        let right = self.deeper(Self::equivalence)?;
        self.ensure_fits([&left, &right])?;
        Ok(left.clone().and(right.clone()).or(left.negated().and(right.negated())))
    }

    fn implication(&mut self) -> Parsed<Formula> {
        let left = self.disjunction()?;
        if !self.take(&["->", "imply"]) {
            return Ok(left);
        }
        let right = self.deeper(Self::implication)?;
        self.ensure_fits([&left, &right])?;
        Ok(left.negated().or(right))
    }

    fn disjunction(&mut self) -> Parsed<Formula> {
        let (first, mut all) = (self.at, vec![self.conjunction()?]);
        while self.take(&["||", "or"]) {
            all.push(self.conjunction()?);
        }
        self.chain(first, all, false)
    }

    fn conjunction(&mut self) -> Parsed<Formula> {
        let (first, mut all) = (self.at, vec![self.until()?]);
        while self.take(&["&&", "and"]) {
            all.push(self.until()?);
        }
        self.chain(first, all, true)
    }

    /// Joins the operands of a chain, whose first token has the number `first`. In a long chain, those of a single state are one
    /// proposition, so that the number of propositions does not depend on the chain's length.
    fn chain(&mut self, first: usize, mut all: Vec<Formula>, is_and: bool) -> Parsed<Formula> {
        if all.len() > MOST_IN_CHAIN {
            let (of_state, temporal): (Vec<Formula>, Vec<Formula>) = all.into_iter().partition(Formula::is_of_state);
            all = self.merged(first, of_state, is_and).into_iter().chain(temporal).collect();
        }
        let mut all = all.into_iter();
        let mut joined = all.next().unwrap_or(Formula::Constant(is_and));
        for next in all {
            self.ensure_fits([&joined, &next])?;
            joined = if is_and { joined.and(next) } else { joined.or(next) };
        }
        Ok(joined)
    }

    /// A proposition for several formulas about one state.
    fn merged(&mut self, first: usize, all: Vec<Formula>, is_and: bool) -> Option<Formula> {
        if all.is_empty() {
            return None;
        }
        let span = self.span_of_tokens(first, self.at);
        let of = Formula::joined(all, is_and);
        let words = self.words_of(&of);
        self.propositions.push(Proposition { words, span, of: Some(of), quantifier: None });
        Some(Formula::Proposition(self.propositions.len() - 1))
    }

    /// A formula about one state as a condition of a model's language.
    fn words_of(&self, formula: &Formula) -> String {
        let both = |of: &[Formula; 2], is_and: bool| {
            let operand = |of: &Formula| match of {
                Formula::And(_) if !is_and => format!("({})", self.words_of(of)),
                Formula::Or(_) if is_and => format!("({})", self.words_of(of)),
                _ => self.words_of(of),
            };
            format!("{} {} {}", operand(&of[0]), if is_and { "&&" } else { "||" }, operand(&of[1]))
        };
        match formula {
            Formula::Constant(truth) => if *truth { "true" } else { "false" }.into(),
            Formula::Proposition(number) => match &self.propositions[*number] {
                Proposition { of: None, span, .. } => format!("({})", &self.text[span.start as usize..span.end as usize]),
                Proposition { words, .. } => format!("({words})"),
            },
            Formula::Not(of) => format!("not ({})", self.words_of(of)),
            Formula::And(of) => both(of, true),
            Formula::Or(of) => both(of, false),
            Formula::Next(_) | Formula::Until(_) | Formula::Release(_) => unreachable!("the formula is about one state"),
        }
    }

    /// The span from a token to the one before another.
    fn span_of_tokens(&mut self, first: usize, behind: usize) -> Span {
        let (start, last) = (self.tokens[first].start, self.tokens[behind - 1]);
        if start < self.counted.0 {
            self.counted = (0, 1, 1);
        }
        let (offset, line, column) = self.counted;
        let between = &self.text[offset..start];
        self.counted = match between.rfind('\n') {
            None => (start, line, column + between.chars().count() as u32),
            Some(end) => (start, line + between.matches('\n').count() as u32, 1 + between[end + 1..].chars().count() as u32),
        };
        let (_, line, column) = self.counted;
        Span { start: start as u32, end: (last.start + last.text.len()) as u32, line, column }
    }

    fn until(&mut self) -> Parsed<Formula> {
        let left = self.unary()?;
        match self.logic {
            Logic::Linear => self.behind(left, Self::until),
            Logic::Branching => Ok(left),
        }
    }

    /// A formula, or a temporal operator between it and another one.
    fn behind(&mut self, left: Formula, right: fn(&mut Self) -> Parsed<Formula>) -> Parsed<Formula> {
        let operator = self.text_at(self.at);
        if !self.take(&BINARY) {
            return Ok(left);
        }
        let right = self.deeper(right)?;
        self.ensure_fits([&left, &right])?;
        Ok(match operator {
            "U" => left.until(right),
            "W" => right.clone().release(left.or(right)),
            "M" => right.clone().until(left.and(right)),
            _ => left.release(right),
        })
    }

    /// A path quantifier and its temporal operator, if they are next: `EX`, `AGEF` (two pairs), `A G`, `E<>`, `A[p U q]`.
    fn quantified(&mut self) -> Parsed<Option<Formula>> {
        let Some(Token { kind: TokenKind::Name, text, .. }) = self.peek() else { return Ok(None) };
        let (first, next) = (self.at, self.text_at(self.at + 1));
        let is_pair = |pair: &[u8]| matches!(pair, [b'A' | b'E', b'X' | b'F' | b'G']);
        let is_variable = (self.names.is_variable)(text);
        if next == "." || (next == "->" && (self.names.is_process)(text)) {
            return Ok(None);
        }
        if !is_variable && text.as_bytes().chunks(2).all(is_pair) {
            self.at += 1;
            let mut formula = self.deeper(Self::unary)?;
            if text.len() > MAX_DEPTH {
                return Err(self.unexpected("fewer operators"));
            }
            for pair in text.as_bytes().chunks(2).rev() {
                formula = self.quantify(first, quantifier(pair[0]), temporal(pair[1], formula));
            }
            return Ok(Some(formula));
        }
        if !["A", "E"].contains(&text) {
            return Ok(None);
        }
        let quantifier = quantifier(text.as_bytes()[0]);
        let closing = match next {
            "[" => "]",
            "(" => ")",
            // A variable may be compared: in SLCO, `<>` is "is not".
            _ if is_variable => return Ok(None),
            "X" | "F" | "G" | "[]" | "<>" => {
                self.at += 1;
                let path = self.deeper(Self::operator)?;
                return Ok(Some(self.quantify(first, quantifier, path)));
            }
            _ => return Ok(None),
        };
        if is_variable && !self.has_temporal_operator() {
            return Ok(None);
        }
        self.at += 2;
        let path = self.deeper(Self::path)?;
        if !self.take(&[closing]) {
            return Err(self.unexpected(if closing == "]" { "`]` or an operator" } else { "`)` or an operator" }));
        }
        Ok(Some(self.quantify(first, quantifier, path)))
    }

    /// Whether the brackets behind the next word have a temporal operator between two formulas, outside further brackets.
    fn has_temporal_operator(&self) -> bool {
        let (mut open, mut is_behind_operand) = (0, false);
        for token in &self.tokens[self.at + 1..] {
            match token.text {
                "(" | "[" => open += 1,
                ")" | "]" => open -= 1,
                // A variable may have the name of an operator.
                text if open == 1 && is_behind_operand && BINARY.contains(&text) => return true,
                _ => {}
            }
            if open == 0 {
                break;
            }
            let is_name = token.kind != TokenKind::Mark && !WORDS.contains(&token.text);
            is_behind_operand = is_name || [")", "]"].contains(&token.text);
        }
        false
    }

    /// A temporal operator in the brackets behind a quantifier.
    fn path(&mut self) -> Parsed<Formula> {
        if ["X", "F", "G", "[]", "<>"].contains(&self.text_at(self.at)) && self.text_at(self.at + 1) != "." {
            return self.operator();
        }
        let left = self.equivalence()?;
        if !BINARY.contains(&self.text_at(self.at)) {
            return Err(self.unexpected("a temporal operator (U, R, W, M)"));
        }
        self.behind(left, Self::equivalence)
    }

    /// A temporal operator before a formula.
    fn operator(&mut self) -> Parsed<Formula> {
        let operator = match self.text_at(self.at) {
            "[]" => b'G',
            "<>" => b'F',
            text => text.bytes().next().unwrap_or(b'X'),
        };
        self.at += 1;
        Ok(temporal(operator, self.deeper(Self::unary)?))
    }

    /// A proposition for a quantifier and a temporal operator. `first`: number of the first token.
    fn quantify(&mut self, first: usize, quantifier: Quantifier, of: Formula) -> Formula {
        let span = self.span_of_tokens(first, self.at);
        let words = self.text[span.start as usize..span.end as usize].into();
        self.propositions.push(Proposition { words, span, of: Some(of), quantifier: Some(quantifier) });
        Formula::Proposition(self.propositions.len() - 1)
    }

    fn unary(&mut self) -> Parsed<Formula> {
        if self.logic == Logic::Branching
            && let Some(formula) = self.quantified()?
        {
            return Ok(formula);
        }
        let Some(token) = self.peek() else { return Err(self.unexpected("a proposition")) };
        let is_linear = self.logic == Logic::Linear;
        let operators = match token.text {
            "!" | "not" => "!",
            "[]" | "<>" if !is_linear => return Err(self.unexpected("a path quantifier before a temporal operator (A or E)")),
            text if !is_linear && ["X", "F", "G"].contains(&text) && self.text_at(self.at + 1) != "." => {
                if (self.names.is_variable)(text) {
                    return self.primary();
                }
                return Err(self.unexpected("a path quantifier before a temporal operator (A or E)"));
            }
            _ if !is_linear => return self.primary(),
            "[]" => "G",
            "<>" => "F",
            text if token.kind == TokenKind::Name
                && text.bytes().all(|letter| b"GFX".contains(&letter))
                && self.is_operators(text) =>
            {
                text
            }
            _ => return self.primary(),
        };
        self.at += 1;
        let mut formula = self.deeper(Self::unary)?;
        if operators.len() > MAX_DEPTH {
            return Err(self.unexpected("fewer operators"));
        }
        for operator in operators.bytes().rev() {
            formula = temporal(operator, formula);
        }
        Ok(formula)
    }

    /// Whether the next word, which consists of the letters of unary operators, denotes operators. A single letter always does,
    /// unless `.` or `->` behind it names a part.
    fn is_operators(&self, text: &str) -> bool {
        let next = self.text_at(self.at + 1);
        let has_part = next == "." || (next == "->" && (self.names.is_process)(text));
        !has_part && (text.len() == 1 || !(self.names.is_variable)(text))
    }

    fn primary(&mut self) -> Parsed<Formula> {
        let is_group =
            self.text_at(self.at) == "(" && self.end_of_brackets().is_none_or(|end| !INFIX.contains(&self.text_at(end)));
        if !is_group {
            return self.proposition();
        }
        self.at += 1;
        let formula = self.deeper(Self::equivalence)?;
        if self.take(&[")"]) { Ok(formula) } else { Err(self.unexpected("`)` or an operator")) }
    }

    /// Index of the token behind the bracket that closes the current one.
    fn end_of_brackets(&self) -> Option<usize> {
        let (mut open, mut at) = (0, self.at);
        loop {
            match self.tokens.get(at)?.text {
                "(" | "[" => open += 1,
                ")" | "]" => open -= 1,
                _ => {}
            }
            at += 1;
            if open == 0 {
                return Some(at);
            }
        }
    }

    /// Reads a proposition: operands, and marks and words that join them.
    fn proposition(&mut self) -> Parsed<Formula> {
        let first = self.at;
        self.operand()?;
        while self.take(&INFIX) {
            self.operand()?;
        }
        let words: Vec<&str> = self.tokens[first..self.at].iter().map(|token| token.text).collect();
        let words = words.join(" ");
        if let Some(number) = self.known.get(&words) {
            return Ok(Formula::Proposition(*number));
        }
        let (span, number) = (self.span_of_tokens(first, self.at), self.propositions.len());
        self.known.insert(words.clone(), number);
        self.propositions.push(Proposition { words, span, of: None, quantifier: None });
        Ok(Formula::Proposition(number))
    }

    fn operand(&mut self) -> Parsed<()> {
        while self.take(&["-", "+", "~", "!", "not"]) {}
        let Some(token) = self.peek() else { return Err(self.unexpected("a proposition")) };
        match token {
            Token { kind: TokenKind::Number, .. } => self.at += 1,
            // Where an operand is expected, the name of an operator between two formulas can only be a variable.
            Token { kind: TokenKind::Name, text, .. }
                if !BINARY.contains(&text) || self.text_at(self.at + 1) == "." || (self.names.is_variable)(text) =>
            {
                self.at += 1;
                // `a -> b` may also be an implication; but a process is not a proposition, so `->` behind a process names a part.
                let mut has_part = self.take(&["."]) || ((self.names.is_process)(text) && self.take(&["->"]));
                while has_part {
                    match self.peek() {
                        Some(Token { kind: TokenKind::Name, .. }) => self.at += 1,
                        _ => return Err(self.unexpected("a name")),
                    }
                    has_part = self.take(&["."]);
                }
                // Indices, or the arguments of a condition on a network or a net: `enabled(label)`, `tokens(p, q)`.
                while let closing @ ("[" | "(") = self.text_at(self.at) {
                    let closing = if closing == "[" { "`]`" } else { "`)`" };
                    self.at = self.end_of_brackets().ok_or_else(|| self.unexpected(closing))?;
                }
            }
            Token { text: "(", .. } => self.at = self.end_of_brackets().ok_or_else(|| self.unexpected("`)`"))?,
            _ => return Err(self.unexpected("a proposition")),
        }
        Ok(())
    }
}

/// A formula behind an operator, by its letter.
fn temporal(operator: u8, formula: Formula) -> Formula {
    match operator {
        b'!' => formula.negated(),
        b'G' => formula.globally(),
        b'F' => formula.finally(),
        _ => formula.next(),
    }
}

/// A quantifier by its letter.
fn quantifier(letter: u8) -> Quantifier {
    if letter == b'A' { Quantifier::All } else { Quantifier::Exists }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<(String, Vec<String>), Diagnostic> {
        let names = Names { is_variable: &|name| name == "FF", is_process: &|name| ["P", "G"].contains(&name) };
        let (formula, propositions) = parse(&Source { name: "--ltl".into(), text: text.into() }, &names)?;
        Ok((written(&formula), propositions.into_iter().map(|of| of.words).collect()))
    }

    /// The formula in prefix notation.
    fn written(formula: &Formula) -> String {
        let both = |name: &str, of: &[Formula; 2]| format!("{name}({}, {})", written(&of[0]), written(&of[1]));
        match formula {
            Formula::Constant(truth) => if *truth { "1" } else { "0" }.into(),
            Formula::Proposition(number) => format!("p{number}"),
            Formula::Not(of) => format!("!{}", written(of)),
            Formula::And(of) => both("and", of),
            Formula::Or(of) => both("or", of),
            Formula::Next(of) => format!("X{}", written(of)),
            Formula::Until(of) => both("U", of),
            Formula::Release(of) => both("R", of),
        }
    }

    #[test]
    fn variables_may_have_the_names_of_operators() {
        let names = Names { is_variable: &|name| ["U", "A"].contains(&name), is_process: &|_| false };
        type Parsed = Result<(Formula, Vec<Proposition>), Diagnostic>;
        let words = |text: &str, parse: fn(&Source, &Names) -> Parsed| {
            let read = parse(&Source { name: "f".into(), text: text.into() }, &names);
            read.map(|(_, all)| all.into_iter().map(|of| of.words).collect::<Vec<_>>()).map_err(|error| error.message)
        };
        assert_eq!(words("U == 1 U U", parse), Ok(vec!["U == 1".into(), "U".into()]));
        assert_eq!(words("(x == U) U !U", parse), Ok(vec!["x == U".into(), "U".into()]));
        let of_paths = |text| words(text, parse_branching);
        assert_eq!(of_paths("E[U == 1 U U]"), Ok(vec!["U == 1".into(), "U".into(), "E[U == 1 U U]".into()]));
        // An element of the array A, and an until.
        assert_eq!(of_paths("A[U] == 1"), Ok(vec!["A [ U ] == 1".into()]));
        assert_eq!(of_paths("A[U U x]"), Ok(vec!["U".into(), "x".into(), "A[U U x]".into()]));
        assert!(of_paths("E[x W W]").is_err(), "there is no variable W");
    }

    #[test]
    fn operators_bind_as_in_spot() {
        for (text, expected) in [
            ("a U b && c", "and(U(p0, p1), p2)"),
            ("a U b U c", "U(p0, U(p1, p2))"),
            ("a -> b -> c", "or(!p0, or(!p1, p2))"),
            ("a || b && c", "or(p0, and(p1, p2))"),
            ("!a U X b", "U(!p0, Xp1)"),
            ("GF a", "R(0, U(1, p0))"),
            ("[] <> a", "R(0, U(1, p0))"),
            ("G(a -> F a)", "R(0, or(!p0, U(1, p0)))"),
            ("a <-> b", "or(and(p0, p1), and(!p0, !p1))"),
            ("a W b", "R(p1, or(p0, p1))"),
            ("a M b", "U(p1, and(p0, p1))"),
            ("a R b", "R(p0, p1)"),
            ("a V b", "R(p0, p1)"),
            ("not a and b or c imply d", "or(!or(and(!p0, p1), p2), p3)"),
            ("FF", "p0"),
            ("XXX a", "XXXp0"),
        ] {
            assert_eq!(read(text).unwrap_or_else(|error| panic!("{text}: {error:?}")).0, expected, "{text}");
        }
    }

    #[test]
    fn propositions_are_what_is_between() {
        for (text, expected) in [
            ("P.a -> P->x == 1", &["P . a", "P -> x == 1"][..]),
            ("x+y <= 2 && a[x + 1] != -3", &["x + y <= 2", "a [ x + 1 ] != - 3"]),
            ("(x + 1) * 2 > y U (x > 1 || y < 2)", &["( x + 1 ) * 2 > y", "x > 1", "y < 2"]),
            ("G.cs U F G . cs", &["G . cs"]),
            ("!x == 1", &["x == 1"]),
            ("(a && b) + 1 == 2", &["( a && b ) + 1 == 2"]),
            ("(((a))) -> (b)", &["a", "b"]),
            ("FF > 1", &["FF > 1"]),
            ("x << 2 == 4", &["x << 2 == 4"]),
            ("true U 1", &["true", "1"]),
            ("G G.M.s -> F X.a.b[2]", &["G . M . s", "X . a . b [ 2 ]"]),
            ("<> a <> b xor c && x = 2 ** y or not z", &["a <> b xor c", "x = 2 ** y", "z"]),
            ("enabled(\"S !(1\") -> F enabled(*) == 0", &["enabled ( \"S !(1\" )", "enabled ( * ) == 0"]),
            ("a -> b", &["a", "b"]),
        ] {
            assert_eq!(read(text).unwrap_or_else(|error| panic!("{text}: {error:?}")).1, expected, "{text}");
        }
    }

    #[test]
    fn errors_have_their_place() {
        for (text, column, message) in [
            ("", 1, "the formula is empty"),
            ("G (a", 5, "the formula ends here"),
            ("a b", 3, "`b` is not expected here"),
            ("a U", 4, "the formula ends here"),
            ("U a", 1, "`U` is not expected here"),
            ("a )", 3, "`)` is not expected here"),
            ("a : b", 3, "`:` is not expected here"),
            ("enabled(\"a", 9, "`\\\"` is not expected here"),
            ("P. == 1", 4, "`==` is not expected here"),
            ("a[1", 2, "`[` is not expected here"),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!((error.span.column, &*error.message), (column, message), "{text}");
        }
        for (text, column, sign, advice) in [
            ("a /\\ b", 3, "/\\", "write `and`"),
            ("a \\/ b", 3, "\\/", "write `or`"),
            ("a => b", 3, "=>", "an implication is written `->`"),
            ("a <=> b", 3, "<=>", "write `<->`"),
            ("a /= b", 3, "/=", "write `!=`"),
            ("a ~> b", 3, "~>", "write G (p -> F q)"),
            ("AG a", 1, "AG", "an operator of --ctl"),
            ("G P@a", 4, "@", "write `P.a`"),
            ("F P[1]:a", 7, ":", "write `P_1.a`"),
        ] {
            let error = read(text).unwrap_err();
            let found = (error.span.column, error.message, error.help);
            assert_eq!(found, (column, format!("`{sign}` is not expected here"), Some(advice.into())), "{text}");
        }
        for sign in ["U", "W", "->", "<->"] {
            let error = read(&vec!["a"; 10_000].join(&format!(" {sign} "))).expect_err(sign);
            assert_eq!(error.message, "the formula is too large", "{sign}");
        }
        let error = read(&vec!["F a"; 10_000].join(" && ")).expect_err("not one state");
        assert_eq!(error.message, "the formula is too large");
        for text in ["(".repeat(10_000), "!".repeat(10_000), "G".repeat(10_000) + " a"] {
            assert!(read(&text).is_err());
        }
    }

    #[test]
    fn long_chains_are_one_proposition() {
        let names = Names { is_variable: &|_| false, is_process: &|_| false };
        let parsed = |text: &str| {
            parse(&Source { name: "--ltl".into(), text: text.into() }, &names).unwrap_or_else(|error| panic!("{error:?}"))
        };
        for (sign, joins) in [("&&", "&&"), ("or", "||")] {
            let all: Vec<String> = (0..10_000).map(|number| format!("x == {number}")).collect();
            let (formula, propositions) = parsed(&format!("G (a ->\n ({}))", all.join(&format!(" {sign} "))));
            assert_eq!(written(&formula), "R(0, or(!p0, p10001))");
            let last = propositions.last().unwrap();
            assert_eq!((last.span.line, last.span.column), (2, 3));
            let all: Vec<String> = all.iter().map(|of| format!("({of})")).collect();
            assert_eq!(last.words, all.join(&format!(" {joins} ")));
            let mut numbers = Vec::new();
            last.of.as_ref().unwrap().propositions(&mut numbers);
            assert_eq!(numbers, (1..10_001).collect::<Vec<_>>());
        }
        // Chains in chains, negations, and operands about runs, which stay.
        let short = vec!["(a || !b)"; 40].join(" && ");
        let (formula, propositions) = parsed(&format!("({short}) && F c && {}", vec!["d"; 40].join(" && ")));
        assert_eq!(written(&formula), "and(p5, U(1, p3))");
        let words = &propositions[5].words;
        assert!(words.starts_with("(((a) || not ((b))) && (") && words.ends_with("&& (d) && (d)"), "{words}");
        // A chain that fits stays a formula.
        assert_eq!(written(&parsed("a && a && a").0), "and(and(p0, p0), p0)");
    }

    proptest! {
        #[test]
        fn no_text_panics(words in proptest::collection::vec(proptest::sample::select(
            vec![
                "a", "P", ".", "->", "<->", "U", "R", "G", "F", "X", "!", "(", ")", "[", "]", "[]", "<>", "&&", "||", "==", "1",
                "-", "é", "\n", "\"", "=", "**",
            ]
        ), 0..20)) {
            let _ = read(&words.join(" "));
            let _ = read(&words.concat());
        }
    }
}
