//! Reads automata in the HOA format.
//!
//! Time and memory are proportional to the text's length: large state numbers cost nothing extra, because all states must be
//! listed; places in the text are computed for errors only; labels have budgets (labels.rs).

use super::super::buchi::{Cube, Label, MOST_PROPOSITIONS};
use super::Named;
use super::labels::{Budget, Condition};
use super::tokens::{Parsed, Token, Tokens, unescaped};
use crate::diagnostic::Diagnostic;
use crate::ir::{Source, Span};
use std::collections::HashMap;
use std::rc::Rc;

/// The numbers that exist below a limit, in words.
fn existing(below: u64) -> String {
    match below {
        0 => "there are none".into(),
        1 => "only 0 exists".into(),
        _ => format!("0 to {} exist", below - 1),
    }
}

/// Limit of the number of states.
const MOST_STATES: u64 = 100_000;

/// Limit of the propositions in a label, including those of its aliases.
const MOST_PARTS: usize = 2000;

/// Limit of nested operators in a label, including those of its aliases.
const MAX_DEPTH: usize = 200;

/// The automata that are supported, for messages about others.
const ONLY_STATES: &str = "only state-based Büchi acceptance is supported, without alternation";

/// Reads an automaton.
///
/// # Errors
///
/// The place where a rule of the format is broken or something is not supported, with the reason.
pub fn read(source: &Source) -> Parsed<Named> {
    let tokens = Tokens::of(&source.text)?;
    let budget = Budget::of(tokens.bytes());
    let (propositions, early) = (None, Vec::new());
    Reader { tokens, at: 0, aliases: HashMap::new(), budget, size: Measure::default(), propositions, early }.automaton()
}

/// Size of a label.
#[derive(Clone, Copy, Default)]
struct Measure {
    /// Number of propositions, including those of aliases.
    parts: usize,
    /// Depth of nested brackets and negations.
    depth: usize,
}

struct Alias {
    condition: Rc<Condition>,
    size: Measure,
    /// Index of the token at which the alias is defined.
    at: usize,
}

/// Contents of a header.
#[derive(Default)]
struct Header<'t> {
    /// Index of the token of each item's last occurrence, by the item's name.
    items: HashMap<&'t str, usize>,
    states: Option<TokenPosition>,
    starts: Vec<TokenPosition>,
    named: Named,
    acceptance: Acceptance,
    /// Index of the token that says that transitions are accepting.
    of_transitions: Option<usize>,
}

/// The runs that an automaton accepts.
#[derive(Clone, Copy, Default)]
enum Acceptance {
    /// Runs with infinitely many states of the set 0.
    #[default]
    Buchi,
    /// Every run: the acceptance condition is `t`, whatever this number of sets contains.
    All { sets: u64 },
}

/// The number of a state, and the index of its token.
#[derive(Clone, Copy)]
struct TokenPosition {
    state: u64,
    at: usize,
}

/// A state in the body of the automaton.
struct State {
    accepting: bool,
    name: String,
    edges: Vec<(Label, u64)>,
    /// Index of the token with its number.
    at: usize,
}

struct Reader<'t> {
    tokens: Tokens<'t>,
    at: usize,
    aliases: HashMap<&'t str, Alias>,
    budget: Budget,
    /// Size of the label that is being read.
    size: Measure,
    /// Number of propositions, once it is known; `AP:` may come after aliases that use its numbers.
    propositions: Option<u64>,
    /// Indices of tokens that are propositions in aliases before `AP:`.
    early: Vec<usize>,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<Token<'t>> {
        self.tokens.get(self.at)
    }

    fn take(&mut self, mark: char) -> bool {
        let is_it = self.peek() == Some(Token::Mark(mark));
        self.at += usize::from(is_it);
        is_it
    }

    fn wrong_at<T>(&self, token: usize, message: impl Into<String>, label: impl Into<String>) -> Parsed<T> {
        Err(Diagnostic::new(self.tokens.span(token), message, label))
    }

    fn wrong<T>(&self, message: impl Into<String>, label: impl Into<String>) -> Parsed<T> {
        self.wrong_at(self.at, message, label)
    }

    /// An error at the second occurrence of something that may occur only once.
    fn second<T>(&self, first: usize, second: usize, message: impl Into<String>) -> Parsed<T> {
        let wrong = Diagnostic::new(self.tokens.span(second), message, "again here");
        Err(wrong.with_related(self.tokens.span(first), "first here"))
    }

    fn unexpected<T>(&self, expected: &str) -> Parsed<T> {
        match self.peek() {
            None => self.wrong("the text ends here", format!("{expected} was expected")),
            Some(Token::Section("--ABORT--")) => self.wrong("the automaton is not complete", "its writer aborted it here"),
            Some(_) => {
                let found = self.tokens.pieces(self.at..self.at + 1);
                self.wrong(format!("`{found}` is not expected here"), format!("{expected} was expected"))
            }
        }
    }

    fn number(&mut self, what: &str, below: u64) -> Parsed<u64> {
        match self.peek() {
            Some(Token::Number(number)) if number < below => {
                self.at += 1;
                Ok(number)
            }
            Some(Token::Number(number)) => {
                self.wrong(format!("{what} {number} does not exist: {}", existing(below)), "too large")
            }
            _ => self.unexpected("a number"),
        }
    }

    /// Reads a text between quotes, with its escapes.
    fn text(&mut self, what: &str) -> Parsed<&'t str> {
        match self.peek() {
            Some(Token::Text(text)) => {
                self.at += 1;
                Ok(text)
            }
            _ => self.unexpected(what),
        }
    }

    fn automaton(mut self) -> Parsed<Named> {
        if [self.tokens.get(0), self.tokens.get(1)] != [Some(Token::Header("HOA")), Some(Token::Word("v1"))] {
            return self.unexpected("`HOA: v1`");
        }
        self.at = 2;
        let mut header = Header { items: HashMap::from([("HOA", 0)]), ..Header::default() };
        loop {
            let at = self.at;
            match self.peek() {
                Some(Token::Header(name)) => {
                    self.at += 1;
                    let may_be_repeated = ["Start", "Alias", "properties"].contains(&name);
                    if let Some(first) = header.items.insert(name, at).filter(|_| !may_be_repeated) {
                        return self.second(first, at, format!("a second `{name}:`"));
                    }
                    self.item(name, at, &mut header)?;
                }
                Some(Token::Section("--BODY--")) => break,
                _ => return self.unexpected("a header or `--BODY--`"),
            }
        }
        if !header.items.contains_key("Acceptance") {
            return self.wrong("the header `Acceptance:` is missing", "Büchi acceptance is supported: `Acceptance: 1 Inf(0)`");
        }
        if let (Acceptance::Buchi, Some(at)) = (header.acceptance, header.of_transitions) {
            return self.wrong_at(at, "acceptance on transitions (trans-acc)", ONLY_STATES);
        }
        self.at += 1;
        let propositions = *self.propositions.get_or_insert(0);
        let too_large =
            |token: &&usize| !matches!(self.tokens.get(**token), Some(Token::Number(number)) if number < propositions);
        if let Some(token) = self.early.iter().find(too_large) {
            let message =
                format!("proposition {} does not exist: {}", self.tokens.pieces(*token..*token + 1), existing(propositions));
            return self.wrong_at(*token, message, "too large");
        }
        self.body(header)
    }

    /// Reads an item of the header; the current token is the one behind its name.
    fn item(&mut self, name: &'t str, at: usize, header: &mut Header<'t>) -> Parsed<()> {
        match name {
            "States" => match self.peek() {
                Some(Token::Number(states)) if states > MOST_STATES => {
                    return self.wrong(format!("{states} states"), format!("at most {MOST_STATES} are possible"));
                }
                _ => header.states = Some(TokenPosition { at: self.at, state: self.number("states:", u64::MAX)? }),
            },
            "Start" => {
                header.starts.push(TokenPosition { at: self.at, state: self.number("state", u64::MAX)? });
                if self.peek() == Some(Token::Mark('&')) {
                    return self.wrong("a conjunction of initial states", "alternating automata are not supported");
                }
            }
            "AP" => self.names(&mut header.named)?,
            "Alias" => self.alias()?,
            "Acceptance" => header.acceptance = self.acceptance_condition(at)?,
            "properties" => {
                while let Some(Token::Word(word)) = self.peek().filter(|token| !is_boolean(*token)) {
                    match word {
                        "trans-acc" => header.of_transitions = Some(self.at),
                        "univ-branch" => return self.wrong("universal branching (univ-branch)", ONLY_STATES),
                        _ => {}
                    }
                    self.at += 1;
                }
            }
            "tool" => {
                self.text("the name of a tool")?;
                if matches!(self.peek(), Some(Token::Text(_))) {
                    self.at += 1;
                }
            }
            "name" => _ = self.text("the name of the automaton")?,
            "acc-name" => {
                if !matches!(self.peek(), Some(token @ Token::Word(_)) if !is_boolean(token)) {
                    return self.unexpected("the name of an acceptance condition");
                }
                while matches!(self.peek(), Some(Token::Word(_) | Token::Number(_))) {
                    self.at += 1;
                }
            }
            // An unknown header that begins with a capital may change the meaning of the automaton.
            other if other.starts_with(|c: char| c.is_ascii_uppercase()) => {
                return self.wrong_at(at, format!("the header `{other}:`"), "this header is not supported");
            }
            _ => {
                while matches!(self.peek(), Some(Token::Word(_) | Token::Number(_) | Token::Text(_))) {
                    self.at += 1;
                }
            }
        }
        Ok(())
    }

    /// Reads the number of propositions and their names.
    fn names(&mut self, named: &mut Named) -> Parsed<()> {
        let count = match self.peek() {
            Some(Token::Number(count)) if count > MOST_PROPOSITIONS as u64 => {
                return self.wrong(format!("{count} propositions"), format!("at most {MOST_PROPOSITIONS} are possible"));
            }
            _ => self.number("propositions:", u64::MAX)?,
        };
        let first = self.at;
        for at in first..first + count as usize {
            let span = self.tokens.span(at);
            let name = unescaped(self.text("the text of a proposition")?);
            if let Some(known) = named.propositions.iter().position(|known| *known == name) {
                return self.second(first + known, at, "two propositions with one name");
            }
            // The span excludes the quotes.
            named.spans.push(Span { start: span.start + 1, end: span.end - 1, column: span.column + 1, ..span });
            named.propositions.push(name);
        }
        self.propositions = Some(count);
        Ok(())
    }

    fn alias(&mut self) -> Parsed<()> {
        let at = self.at;
        let Some(Token::Alias(name)) = self.peek() else { return self.unexpected("the name of an alias") };
        if let Some(known) = self.aliases.get(name) {
            return self.second(known.at, at, format!("a second alias `@{name}`"));
        }
        self.at += 1;
        self.size = Measure::default();
        // An alias of an alias refers to the same condition, so chains of names add no depth.
        let condition = match self.condition(0)? {
            Condition::Alias(known) => known,
            condition => Rc::new(condition),
        };
        self.aliases.insert(name, Alias { condition, size: self.size, at });
        Ok(())
    }

    /// Reads the acceptance condition. `at` is the index of the header's token.
    fn acceptance_condition(&mut self, at: usize) -> Parsed<Acceptance> {
        let first = self.at;
        while !matches!(self.peek(), None | Some(Token::Header(_) | Token::Section(_))) {
            self.at += 1;
        }
        let buchi = [Token::Number(1), Token::Word("Inf"), Token::Mark('('), Token::Number(0), Token::Mark(')')];
        let words: Vec<_> = (first..self.at).take(buchi.len() + 1).filter_map(|token| self.tokens.get(token)).collect();
        match words[..] {
            [Token::Number(sets), Token::Word("t")] => Ok(Acceptance::All { sets }),
            _ if words == buchi => Ok(Acceptance::Buchi),
            _ => {
                let message = format!("the acceptance condition `{}`", self.tokens.pieces(first..self.at));
                self.wrong_at(at, message, "only Büchi acceptance is supported, `1 Inf(0)`, and that of all runs, `0 t`")
            }
        }
    }

    fn body(mut self, header: Header<'t>) -> Parsed<Named> {
        let below = header.states.map_or(u64::MAX, |states| states.state);
        let mut states: HashMap<u64, State> = HashMap::new();
        // The highest state number that is listed, a target or initial.
        let mut highest: Option<TokenPosition> = None;
        let mut see = |place: TokenPosition| highest = Some(highest.filter(|other| other.state >= place.state).unwrap_or(place));
        loop {
            match self.peek() {
                Some(Token::Header("State")) => self.at += 1,
                Some(Token::Section("--END--")) => break,
                _ => return self.unexpected("`State:` or `--END--`"),
            }
            let of_state = self.label()?;
            let at = self.at;
            let number = self.number("state", below)?;
            see(TokenPosition { state: number, at });
            let name = match self.peek() {
                Some(Token::Text(name)) => {
                    self.at += 1;
                    unescaped(name)
                }
                _ => String::new(),
            };
            let accepting = self.acceptance(header.acceptance)?;
            let first_edge = self.at;
            let mut edges = Vec::new();
            let (mut bare, mut labelled) = (0u64, 0u64);
            while let Some(Token::Mark('[') | Token::Number(_)) = self.peek() {
                let begin = self.at;
                let of_edge = self.label()?;
                let to = TokenPosition { at: self.at, state: self.number("state", below)? };
                see(to);
                self.end_of_edge(header.acceptance)?;
                let label = match (of_edge, &of_state) {
                    (Some(_), Some(_)) => {
                        let message = format!("the state {number} and its edge both have labels");
                        return self.wrong_at(begin, message, "label either the state or its edges");
                    }
                    (None, Some(label)) => label.clone(),
                    (Some(label), None) => {
                        labelled += 1;
                        label
                    }
                    (None, None) => {
                        bare += 1;
                        self.implicit(bare - 1, begin)?
                    }
                };
                if bare > 0 && labelled > 0 {
                    let message = format!("the state {number} has edges with and without labels");
                    return self.wrong_at(begin, message, "label all of its edges or none");
                }
                self.budget.keep(&label).or_else(|why| self.wrong_at(begin, "the labels are too large", why))?;
                edges.push((label, to.state));
            }
            if bare > 0 && u128::from(bare) != self.valuations() {
                let needed = self.valuations();
                let message = format!("the state {number} has {bare} edges without labels, but {needed} are needed");
                return self.wrong_at(first_edge, message, format!("one for each of the {needed} valuations"));
            }
            if let Some(first) = states.get(&number) {
                return self.second(first.at, at, format!("the state {number} is defined twice"));
            }
            if states.len() as u64 == MOST_STATES {
                return self.wrong_at(at, format!("more than {MOST_STATES} states"), "one too many");
            }
            states.insert(number, State { accepting, name, edges, at });
        }
        self.at += 1;
        if self.at < self.tokens.len() {
            return self.unexpected("the end after one automaton");
        }
        let mut starts = HashMap::new();
        for start in &header.starts {
            if start.state >= below {
                let message = format!("the initial state {} does not exist: {}", start.state, existing(below));
                return self.wrong_at(start.at, message, "too large");
            }
            if let Some(first) = starts.insert(start.state, start.at) {
                return self.second(first, start.at, format!("the initial state {} is given twice", start.state));
            }
            see(*start);
        }
        // Numbers that are too large for their text are refused here, too.
        let last = header.states.or(highest.map(|place| TokenPosition { state: place.state + 1, ..place }));
        if let Some(TokenPosition { state: count, at }) = last
            && let Some(missing) = (0..count).find(|number| !states.contains_key(number))
        {
            let message = format!("the state {missing} is not listed: there are {count} states, and {} are", states.len());
            return self.wrong_at(at, message, format!("this announces the states 0 to {}", count - 1));
        }
        Ok(named(header, states))
    }

    /// Reads `[condition]`, if present.
    fn label(&mut self) -> Parsed<Option<Label>> {
        if !self.take('[') {
            return Ok(None);
        }
        self.size = Measure::default();
        let condition = self.condition(0)?;
        if !self.take(']') {
            return self.unexpected("`]` or an operator");
        }
        let label = self.budget.label(&condition);
        label.map(Some).or_else(|why| self.wrong_at(self.at - 1, "the label is too large", why))
    }

    /// Returns an error unless the edge has one target and no acceptance of its own.
    fn end_of_edge(&mut self, acceptance: Acceptance) -> Parsed<()> {
        match self.peek() {
            // Sets that no condition mentions may be on edges, too.
            Some(Token::Mark('{')) if matches!(acceptance, Acceptance::All { .. }) => self.acceptance(acceptance).map(drop),
            Some(Token::Mark('{')) if self.tokens.get(self.at + 1) == Some(Token::Mark('}')) => {
                self.at += 2;
                Ok(())
            }
            Some(Token::Mark('{')) => self.wrong("acceptance on transitions", "only state-based Büchi acceptance is supported"),
            Some(Token::Mark('&')) => self.wrong("a conjunction of states", "alternating automata are not supported"),
            _ => Ok(()),
        }
    }

    /// Reads `{0}`, if present. Returns whether the state is accepting.
    fn acceptance(&mut self, acceptance: Acceptance) -> Parsed<bool> {
        let (sets, mut is_accepting) = match acceptance {
            Acceptance::Buchi => (1, false),
            Acceptance::All { sets } => (sets, true),
        };
        if !self.take('{') {
            return Ok(is_accepting);
        }
        while !self.take('}') {
            self.number("acceptance set", sets)?;
            is_accepting = true;
        }
        Ok(is_accepting)
    }

    /// Number of valuations of the propositions.
    fn valuations(&self) -> u128 {
        1 << self.propositions.unwrap_or(0)
    }

    /// The implicit label of a state's edge number `edge`: the valuation with that number.
    fn implicit(&self, edge: u64, at: usize) -> Parsed<Label> {
        let valuations = self.valuations();
        if u128::from(edge) >= valuations {
            return self.wrong_at(at, format!("more edges without labels than the {valuations} valuations"), "too many");
        }
        let all = u64::try_from(valuations - 1).unwrap_or(u64::MAX);
        Ok(Label::of([Cube { positive: edge, negative: all & !edge }]))
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
        let alias = match self.peek() {
            Some(Token::Alias(name)) => self.aliases.get(name).map(|alias| (alias.condition.clone(), alias.size)),
            _ => None,
        };
        let of_alias = alias.as_ref().map_or(Measure { parts: 1, depth: 0 }, |(_, size)| *size);
        self.size.depth = self.size.depth.max(depth + of_alias.depth);
        if self.size.depth >= MAX_DEPTH {
            let why = format!("more than {MAX_DEPTH} nested brackets or `!`, after aliases are expanded");
            return self.wrong("the label is too large", why);
        }
        if self.take('!') {
            return Ok(Condition::Not(Box::new(self.literal(depth + 1)?)));
        }
        if self.take('(') {
            let condition = self.condition(depth + 1)?;
            return if self.take(')') { Ok(condition) } else { self.unexpected("`)` or an operator") };
        }
        self.size.parts += of_alias.parts;
        if self.size.parts > MOST_PARTS {
            let why = format!("more than {MOST_PARTS} propositions, after aliases are expanded");
            return self.wrong("the label is too large", why);
        }
        let condition = match self.peek() {
            Some(Token::Number(number)) => {
                if self.propositions.is_none() {
                    self.early.push(self.at);
                }
                let below = self.propositions.unwrap_or(u64::MAX);
                if number >= below {
                    return self.wrong(format!("proposition {number} does not exist: {}", existing(below)), "too large");
                }
                Condition::Proposition(number)
            }
            Some(token @ Token::Word(_)) if is_boolean(token) => Condition::Constant(token == Token::Word("t")),
            Some(Token::Alias(name)) => match alias {
                Some((condition, _)) => Condition::Alias(condition),
                None => return self.wrong(format!("there is no alias `@{name}`"), "not declared before"),
            },
            _ => return self.unexpected("a proposition"),
        };
        self.at += 1;
        Ok(condition)
    }
}

fn is_boolean(token: Token) -> bool {
    matches!(token, Token::Word("t" | "f"))
}

/// Builds the automaton from these states; all numbers below their count are present.
fn named(header: Header<'_>, mut states: HashMap<u64, State>) -> Named {
    let Header { mut named, starts, .. } = header;
    let buchi = &mut named.buchi;
    for number in 0..states.len() as u64 {
        let State { accepting, name, edges, .. } = states.remove(&number).expect("all states are listed");
        buchi.accepting.push(accepting);
        let possible = edges.into_iter().filter(|(label, _)| !label.0.is_empty());
        buchi.edges.push(possible.map(|(label, to)| (label, to as usize)).collect());
        named.states.push(if name.is_empty() { format!("q{number}") } else { name });
    }
    match &starts[..] {
        [start] => buchi.initial = start.state as usize,
        // Several initial states become a new one that has the edges of all of them. No run returns to it, so its acceptance
        // makes no difference.
        _ => {
            let edges = starts.iter().flat_map(|start| buchi.edges[start.state as usize].clone()).collect();
            buchi.initial = buchi.edges.len();
            buchi.accepting.push(false);
            buchi.edges.push(edges);
            named.states.push("start".into());
        }
    }
    named
}
