//! Automata in the Hanoi Omega-Automata format, version 1 (Babiak et al. 2015), read and written; and written for Graphviz.
//!
//! Read are automata with state-based Büchi acceptance: any number of initial states, labels on edges or states or implicit ones,
//! aliases. Whatever else the format has is refused by its name. What a proposition's name is, a condition of the model's
//! language stands in: `AP: 1 "P_0.critical"`.

use super::buchi::{Buchi, Cube, Label, MOST_PROPOSITIONS};
use crate::diagnostic::Diagnostic;
use crate::ir::{Source, Span};
use std::collections::HashMap;
use std::fmt::Write as _;

/// An automaton and what its propositions are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    pub buchi: Buchi,
    pub propositions: Vec<String>,
    /// Where each stands in the text that it was read from.
    pub spans: Vec<Span>,
    /// Names of the states.
    pub states: Vec<String>,
}

/// States, at most.
const MOST_STATES: u64 = 100_000;

/// Cubes of a label, at most.
const MOST_CUBES: usize = 4096;

/// Propositions in a label, at most, those of its aliases counted.
const MOST_PARTS: usize = 2000;

/// Operators in each other in a label, at most.
const MAX_DEPTH: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// `name:`
    Header(String),
    Word(String),
    Text(String),
    Number(u64),
    /// `@name`
    Alias(String),
    Mark(char),
    /// `--BODY--` and the like
    Section(String),
}

/// A label as it is written.
#[derive(Clone, Debug)]
enum Condition {
    Constant(bool),
    Proposition(u64),
    Not(Box<Condition>),
    And(Box<[Condition; 2]>),
    Or(Box<[Condition; 2]>),
}

/// Whether it is accepting, its name and its edges.
type State = (bool, String, Vec<(Label, u64)>);

type Parsed<T> = Result<T, Diagnostic>;

/// Reads an automaton.
///
/// # Errors
///
/// What is not expected, or not supported, and where.
pub fn read(source: &Source) -> Parsed<Named> {
    let tokens = tokens(&source.text)?;
    Reader { text: &source.text, tokens, at: 0, aliases: HashMap::new(), parts: 0, propositions: 0 }.automaton()
}

fn span(text: &str, start: usize, end: usize) -> Span {
    let before = &text[..start];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = 1 + before.matches('\n').count();
    Span { start: start as u32, end: end as u32, line: line as u32, column: 1 + before[line_start..].chars().count() as u32 }
}

fn tokens(text: &str) -> Parsed<Vec<(Token, usize, usize)>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    let wrong =
        |start: usize, end: usize, message: String, label: &str| Err(Diagnostic::new(span(text, start, end), message, label));
    while let Some(first) = text[at..].chars().next() {
        let (start, rest) = (at, &text[at..]);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let word = |from: usize| rest[from..].find(|c| !is_name(c)).map_or(rest.len(), |end| from + end);
        if first.is_whitespace() {
            at += first.len_utf8();
        } else if rest.starts_with("/*") {
            // Comments may be in each other.
            let (mut open, mut length) = (1, 2);
            while open > 0 {
                let next = &rest[length..];
                match (next.starts_with("/*"), next.starts_with("*/"), next.chars().next()) {
                    (_, _, None) => return wrong(start, start + 2, "a comment that does not end".into(), "`*/` was expected"),
                    (true, ..) => (open, length) = (open + 1, length + 2),
                    (_, true, _) => (open, length) = (open - 1, length + 2),
                    (_, _, Some(other)) => length += other.len_utf8(),
                }
            }
            at += length;
        } else if first == '"' {
            let mut value = String::new();
            let mut characters = rest.char_indices().skip(1);
            let end = loop {
                match characters.next() {
                    None => return wrong(start, start + 1, "a text that does not end".into(), "`\"` was expected"),
                    Some((end, '"')) => break end + 1,
                    Some((_, '\\')) => value.extend(characters.next().map(|(_, escaped)| escaped)),
                    Some((_, other)) => value.push(other),
                }
            };
            at += end;
            tokens.push((Token::Text(value), start, at));
        } else if let Some(behind) = rest.strip_prefix("--") {
            let end = behind.find("--").map_or(rest.len(), |end| end + 4);
            at += end;
            tokens.push((Token::Section(rest[..end].into()), start, at));
        } else if first.is_ascii_digit() {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let Ok(number) = rest[..end].parse() else {
                return wrong(
                    start,
                    start + end,
                    format!("the number {} is too large", &rest[..end]),
                    "it has more than 64 bits",
                );
            };
            at += end;
            tokens.push((Token::Number(number), start, at));
        } else if first.is_ascii_alphabetic() || first == '_' || first == '@' {
            let end = word(1);
            at += end;
            let token = match (first, rest[end..].starts_with(':')) {
                ('@', _) => Token::Alias(rest[1..end].into()),
                (_, true) => {
                    at += 1;
                    Token::Header(rest[..end].into())
                }
                (_, false) => Token::Word(rest[..end].into()),
            };
            tokens.push((token, start, at));
        } else if "!&|()[]{}".contains(first) {
            at += 1;
            tokens.push((Token::Mark(first), start, at));
        } else {
            let end = start + first.len_utf8();
            return wrong(
                start,
                end,
                format!("`{}` is not expected here", first.escape_debug()),
                "it is nothing in the HOA format",
            );
        }
    }
    Ok(tokens)
}

struct Reader<'a> {
    text: &'a str,
    tokens: Vec<(Token, usize, usize)>,
    at: usize,
    aliases: HashMap<String, (Condition, usize)>,
    /// Propositions of the label that is being read.
    parts: usize,
    propositions: u64,
}

impl Reader<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(token, ..)| token)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.peek().cloned();
        self.at += 1;
        token
    }

    fn take(&mut self, mark: char) -> bool {
        let is_it = self.peek() == Some(&Token::Mark(mark));
        self.at += usize::from(is_it);
        is_it
    }

    fn here(&self) -> Span {
        let (start, end) = self.tokens.get(self.at).map_or((self.text.len(), self.text.len()), |(_, start, end)| (*start, *end));
        span(self.text, start, end)
    }

    fn wrong<T>(&self, message: impl Into<String>, label: impl Into<String>) -> Parsed<T> {
        Err(Diagnostic::new(self.here(), message, label))
    }

    fn unexpected<T>(&self, expected: &str) -> Parsed<T> {
        let at = self.here();
        let found = &self.text[at.start as usize..at.end as usize];
        let message = if found.is_empty() { "the text ends here".into() } else { format!("`{found}` is not expected here") };
        self.wrong(message, format!("{expected} was expected"))
    }

    fn number(&mut self, what: &str, below: u64) -> Parsed<u64> {
        match self.peek() {
            Some(Token::Number(number)) if *number < below => {
                let number = *number;
                self.at += 1;
                Ok(number)
            }
            Some(Token::Number(number)) => {
                let message = format!("{what} {number}, and there are {below}");
                self.wrong(message, "too large")
            }
            _ => self.unexpected("a number"),
        }
    }

    fn automaton(mut self) -> Parsed<Named> {
        match (self.peek(), self.tokens.get(1).map(|(token, ..)| token)) {
            (Some(Token::Header(name)), Some(Token::Word(version))) if name == "HOA" && version == "v1" => self.at = 2,
            _ => return self.unexpected("`HOA: v1`"),
        }
        let (mut count, mut starts, mut named, mut has_acceptance, mut has_propositions) =
            (None, Vec::new(), Named::default(), false, false);
        loop {
            let here = self.here();
            match self.next() {
                Some(Token::Header(name)) => match &*name {
                    "States" => {
                        let most = MOST_STATES + 1;
                        count = Some(self.number("states:", most)?);
                    }
                    "Start" => {
                        starts.push(self.number("state", u64::MAX)?);
                        if self.peek() == Some(&Token::Mark('&')) {
                            return self.wrong("a conjunction of initial states", "alternating automata are not supported");
                        }
                    }
                    "AP" => {
                        if has_propositions {
                            return Err(Diagnostic::new(here, "a second `AP:`", "there can be one only"));
                        }
                        has_propositions = true;
                        self.propositions = self.number("propositions:", MOST_PROPOSITIONS as u64 + 1)?;
                        for _ in 0..self.propositions {
                            let at = self.here();
                            let Some(Token::Text(text)) = self.next() else {
                                self.at -= 1;
                                return self.unexpected("the text of a proposition");
                            };
                            // Inside the marks.
                            named.spans.push(Span { start: at.start + 1, end: at.end - 1, column: at.column + 1, ..at });
                            named.propositions.push(text);
                        }
                    }
                    "Alias" => match self.next() {
                        Some(Token::Alias(name)) => {
                            self.parts = 0;
                            let condition = self.condition(0)?;
                            self.aliases.insert(name, (condition, self.parts));
                        }
                        _ => {
                            self.at -= 1;
                            return self.unexpected("the name of an alias");
                        }
                    },
                    "Acceptance" => {
                        has_acceptance = true;
                        let first = self.at;
                        while !matches!(self.peek(), None | Some(Token::Header(_) | Token::Section(_))) {
                            self.at += 1;
                        }
                        let words = &self.tokens[first..self.at];
                        let is_buchi = matches!(
                            words,
                            [(Token::Number(1), ..), (Token::Word(inf), ..), (Token::Mark('('), ..), (Token::Number(0), ..), (Token::Mark(')'), ..)]
                            if inf == "Inf"
                        );
                        if !is_buchi {
                            let text = words.first().zip(words.last()).map_or("", |(first, last)| &self.text[first.1..last.2]);
                            return Err(Diagnostic::new(
                                here,
                                format!("the acceptance condition `{text}`"),
                                "only Büchi's is supported: `1 Inf(0)`",
                            ));
                        }
                    }
                    "properties" => {
                        while let Some(Token::Word(word)) = self.peek() {
                            let refused = match &**word {
                                "trans-acc" => Some("acceptance on transitions (trans-acc)"),
                                "univ-branch" => Some("universal branching (univ-branch)"),
                                _ => None,
                            };
                            if let Some(refused) = refused {
                                return self
                                    .wrong(refused, "only state-based Büchi acceptance is supported, without alternation");
                            }
                            self.at += 1;
                        }
                    }
                    // A header that begins with a capital may change what the automaton means.
                    other if other.starts_with(|c: char| c.is_ascii_uppercase()) => {
                        return Err(Diagnostic::new(here, format!("the header `{other}:`"), "it is not supported"));
                    }
                    _ => {
                        while !matches!(self.peek(), None | Some(Token::Header(_) | Token::Section(_))) {
                            self.at += 1;
                        }
                    }
                },
                Some(Token::Section(name)) if name == "--BODY--" => break,
                _ => {
                    self.at -= 1;
                    return self.unexpected("a header or `--BODY--`");
                }
            }
        }
        if !has_acceptance {
            return self.wrong("there is no `Acceptance:`", "Büchi's is supported: `Acceptance: 1 Inf(0)`");
        }
        self.body(named, count, &starts)
    }

    fn body(mut self, mut named: Named, count: Option<u64>, starts: &[u64]) -> Parsed<Named> {
        let most = count.unwrap_or(MOST_STATES);
        let mut states: HashMap<u64, State> = HashMap::new();
        loop {
            match self.next() {
                Some(Token::Header(name)) if name == "State" => {}
                Some(Token::Section(name)) if name == "--END--" => break,
                _ => {
                    self.at -= 1;
                    return self.unexpected("`State:` or `--END--`");
                }
            }
            let of_state = self.label()?;
            let here = self.here();
            let number = self.number("state", most)?;
            let name = match self.peek() {
                Some(Token::Text(name)) => {
                    let name = name.clone();
                    self.at += 1;
                    name
                }
                _ => String::new(),
            };
            let accepting = self.acceptance()?;
            let mut edges = Vec::new();
            while let Some(Token::Mark('[') | Token::Number(_)) = self.peek() {
                let of_edge = self.label()?;
                let to = self.number("state", most)?;
                match self.peek() {
                    Some(Token::Mark('{')) => {
                        return self.wrong("acceptance on transitions", "only state-based Büchi acceptance is supported");
                    }
                    Some(Token::Mark('&')) => {
                        return self.wrong("a conjunction of states", "alternating automata are not supported");
                    }
                    _ => {}
                }
                let label = match (of_edge, &of_state) {
                    (Some(label), None) => label,
                    (None, Some(label)) => label.clone(),
                    (Some(_), Some(_)) => return self.wrong("labels on a state and its edges", "there can be one only"),
                    (None, None) => self.implicit(edges.len())?,
                };
                edges.push((label, to));
            }
            if states.insert(number, (accepting, name, edges)).is_some() {
                return Err(Diagnostic::new(here, format!("the state {number} is there twice"), "again here"));
            }
        }
        if self.at < self.tokens.len() {
            return self.unexpected("one automaton, and the end,");
        }
        let count = count.unwrap_or_else(|| {
            let numbers = states.iter().flat_map(|(number, (.., edges))| edges.iter().map(|(_, to)| *to).chain([*number]));
            numbers.chain(starts.iter().copied()).max().map_or(0, |most| most + 1)
        });
        if let Some(start) = starts.iter().find(|start| **start >= count) {
            return self.wrong(format!("the initial state {start}, and there are {count}"), "too large");
        }
        let buchi = &mut named.buchi;
        for number in 0..count {
            let (accepting, name, edges) = states.remove(&number).unwrap_or_default();
            buchi.accepting.push(accepting);
            buchi.edges.push(
                edges.into_iter().map(|(label, to)| (label, to as usize)).filter(|(label, _)| !label.0.is_empty()).collect(),
            );
            named.states.push(if name.is_empty() { format!("q{number}") } else { name });
        }
        match starts {
            [start] => buchi.initial = *start as usize,
            // One that does what any of them does; no run comes back to it, so whether it accepts makes no difference.
            _ => {
                let edges = starts.iter().flat_map(|start| buchi.edges[*start as usize].clone()).collect();
                buchi.initial = buchi.edges.len();
                buchi.accepting.push(false);
                buchi.edges.push(edges);
                named.states.push("start".into());
            }
        }
        Ok(named)
    }

    /// `[condition]`, if there is one.
    fn label(&mut self) -> Parsed<Option<Label>> {
        if !self.take('[') {
            return Ok(None);
        }
        self.parts = 0;
        let condition = self.condition(0)?;
        if !self.take(']') {
            return self.unexpected("`]` or an operator");
        }
        match cubes(&condition, true) {
            Some(cubes) => Ok(Some(Label::of(cubes))),
            None => self.wrong("the label is too large", format!("it is a disjunction of more than {MOST_CUBES} conjunctions")),
        }
    }

    /// `{0}`, if it is there.
    fn acceptance(&mut self) -> Parsed<bool> {
        if !self.take('{') {
            return Ok(false);
        }
        let mut is_accepting = false;
        while !self.take('}') {
            self.number("acceptance set", 1)?;
            is_accepting = true;
        }
        Ok(is_accepting)
    }

    /// The label of a state's edge of that number, if none is written: the valuation of that number.
    fn implicit(&self, edge: usize) -> Parsed<Label> {
        if edge as u128 >= 1 << self.propositions {
            return self
                .wrong(format!("more edges without labels than the {} valuations", 1u128 << self.propositions), "too many");
        }
        let all = if self.propositions == 64 { u64::MAX } else { (1 << self.propositions) - 1 };
        Ok(Label::of([Cube { positive: edge as u64, negative: all & !(edge as u64) }]))
    }

    fn condition(&mut self, depth: usize) -> Parsed<Condition> {
        let mut all = self.conjunction(depth)?;
        while self.take('|') {
            all = Condition::Or(Box::new([all, self.conjunction(depth)?]));
        }
        Ok(all)
    }

    fn conjunction(&mut self, depth: usize) -> Parsed<Condition> {
        let mut all = self.literal(depth)?;
        while self.take('&') {
            all = Condition::And(Box::new([all, self.literal(depth)?]));
        }
        Ok(all)
    }

    fn literal(&mut self, depth: usize) -> Parsed<Condition> {
        if depth == MAX_DEPTH {
            return self.wrong("the label is too large", format!("more than {MAX_DEPTH} brackets or `!` in each other"));
        }
        if self.take('!') {
            return Ok(Condition::Not(Box::new(self.literal(depth + 1)?)));
        }
        if self.take('(') {
            let condition = self.condition(depth + 1)?;
            return if self.take(')') { Ok(condition) } else { self.unexpected("`)` or an operator") };
        }
        self.parts += match self.peek() {
            Some(Token::Alias(name)) => self.aliases.get(name).map_or(1, |(_, parts)| *parts),
            _ => 1,
        };
        if self.parts > MOST_PARTS {
            return self
                .wrong("the label is too large", format!("more than {MOST_PARTS} propositions, those of aliases counted"));
        }
        match self.peek() {
            Some(Token::Number(_)) => Ok(Condition::Proposition(self.number("proposition", self.propositions)?)),
            Some(Token::Word(word)) if word == "t" || word == "f" => {
                let condition = Condition::Constant(word == "t");
                self.at += 1;
                Ok(condition)
            }
            Some(Token::Alias(name)) => match self.aliases.get(name).cloned() {
                Some((condition, _)) => {
                    self.at += 1;
                    Ok(condition)
                }
                None => self.wrong(format!("there is no alias `@{name}`"), "not declared"),
            },
            _ => self.unexpected("a proposition"),
        }
    }
}

/// As a disjunction of cubes, of the condition or its negation; `None` if there are too many.
fn cubes(condition: &Condition, truth: bool) -> Option<Vec<Cube>> {
    let (of, is_and) = match condition {
        Condition::Constant(value) => return Some(if *value == truth { vec![Cube::TRUE] } else { Vec::new() }),
        Condition::Proposition(number) => return Some(vec![Cube::of(*number as usize, truth)]),
        Condition::Not(of) => return cubes(of, !truth),
        Condition::And(of) => (of, truth),
        Condition::Or(of) => (of, !truth),
    };
    let (left, right) = (cubes(&of[0], truth)?, cubes(&of[1], truth)?);
    let all = if is_and {
        if left.len() * right.len() > 16 * MOST_CUBES {
            return None;
        }
        left.iter().flat_map(|a| right.iter().filter_map(|b| a.and(*b))).collect()
    } else {
        [left, right].concat()
    };
    let label = Label::of(all);
    (label.0.len() <= MOST_CUBES).then_some(label.0)
}

/// A cube over proposition numbers, or over names.
fn cube_text(cube: Cube, name: impl Fn(usize) -> String, and: &str) -> String {
    let literal = |number: usize| match (cube.positive >> number & 1, cube.negative >> number & 1) {
        (1, _) => Some(name(number)),
        (_, 1) => Some(format!("!{}", name(number))),
        _ => None,
    };
    (0..MOST_PROPOSITIONS).filter_map(literal).collect::<Vec<_>>().join(and)
}

fn label_text(label: &Label, name: impl Fn(usize) -> String, and: &str, or: &str) -> String {
    if label.is_true() {
        return "t".into();
    }
    label.0.iter().map(|cube| cube_text(*cube, &name, and)).collect::<Vec<_>>().join(or)
}

impl Named {
    /// In the HOA format. `name` is what it is for.
    pub fn hoa(&self, name: &str) -> String {
        let Self { buchi, propositions, states, .. } = self;
        let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let mut text = String::from("HOA: v1\n");
        let names: Vec<String> = propositions.iter().map(|name| format!(" {}", quoted(name))).collect();
        writeln!(text, "tool: \"explore\" \"{}\"\nname: {}", env!("CARGO_PKG_VERSION"), quoted(name)).unwrap();
        writeln!(text, "States: {}\nStart: {}\nAP: {}{}", states.len(), buchi.initial, names.len(), names.concat()).unwrap();
        text.push_str("acc-name: Buchi\nAcceptance: 1 Inf(0)\nproperties: trans-labels explicit-labels state-acc\n--BODY--\n");
        for (state, edges) in buchi.edges.iter().enumerate() {
            let accepting = if buchi.accepting[state] { " {0}" } else { "" };
            writeln!(text, "State: {state} {}{accepting}", quoted(&states[state])).unwrap();
            for (label, to) in edges {
                writeln!(text, "  [{}] {to}", label_text(label, |number| number.to_string(), "&", " | ")).unwrap();
            }
        }
        text + "--END--\n"
    }

    /// For Graphviz.
    pub fn dot(&self, name: &str) -> String {
        let Self { buchi, propositions, states, .. } = self;
        let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let mut text =
            format!("digraph {} {{\n  rankdir=LR;\n  start [shape=point];\n  start -> {};\n", quoted(name), buchi.initial);
        for (state, edges) in buchi.edges.iter().enumerate() {
            let shape = if buchi.accepting[state] { "doublecircle" } else { "circle" };
            writeln!(text, "  {state} [shape={shape}, label={}];", quoted(&states[state])).unwrap();
            for (label, to) in edges {
                let name = |number: usize| {
                    let name = &propositions[number];
                    if name.contains(' ') { format!("({name})") } else { name.clone() }
                };
                writeln!(text, "  {state} -> {to} [label={}];", quoted(&label_text(label, name, " && ", " || "))).unwrap();
            }
        }
        text + "}\n"
    }
}
