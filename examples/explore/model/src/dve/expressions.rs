//! Translates parsed expressions to expressions of the intermediate form: resolves names and folds constants.

use super::grammar::{Pair, Rule, span};
use super::names::{Meaning, Names};
use crate::chains::Part;
use crate::diagnostic::Diagnostic;
use crate::ir::expression::{Binary, MAX_DEPTH, Unary};
use crate::ir::{Expression, ProcessId, Span, StoreTarget, Variable};
use crate::net::pnml::Index;
use crate::parsing;
use crate::warnings::{self, Warning};
use pest::pratt_parser::{Assoc, Op, PrattParser};
use std::cell::RefCell;
use std::sync::LazyLock;
use warpset_support::escaping;
use warpset_support::numbers::counted;

/// Limit of nested brackets, which are walked by recursion.
const MAX_NESTING: usize = 64;

/// Most labels that one `enabled(gate)` may match: each becomes a part of the condition.
const MOST_LABELS: usize = 1 << 16;

/// Operator precedence as in C, lowest first, with `imply` below all others; all operators are left-associative. `? :` is below
/// them.
static OPERATORS: LazyLock<PrattParser<Rule>> = LazyLock::new(|| {
    let left = |rule| Op::infix(rule, Assoc::Left);
    PrattParser::new()
        .op(left(Rule::imply))
        .op(left(Rule::or))
        .op(left(Rule::and))
        .op(left(Rule::bit_or))
        .op(left(Rule::bit_xor))
        .op(left(Rule::bit_and))
        .op(left(Rule::equal) | left(Rule::not_equal))
        .op(left(Rule::less) | left(Rule::less_or_equal) | left(Rule::greater) | left(Rule::greater_or_equal))
        .op(left(Rule::shift_left) | left(Rule::shift_right))
        .op(left(Rule::add) | left(Rule::subtract))
        .op(left(Rule::multiply) | left(Rule::divide) | left(Rule::remainder))
        .op(Op::prefix(Rule::negate) | Op::prefix(Rule::not) | Op::prefix(Rule::complement))
});

/// The context of an expression: the meaning of its names.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    pub names: &'a Names,
    pub variables: &'a [Variable],
    /// Process whose local names may be used without its name.
    pub process: Option<ProcessId>,
    /// Collects warnings about parts that are not computed as they are written.
    pub warnings: &'a RefCell<Vec<Warning>>,
}

impl Scope<'_> {
    pub fn expression(&self, pair: Pair) -> Result<Expression, Diagnostic> {
        self.lower(pair, MAX_NESTING)
    }

    /// Translates an expression whose value is asked only for its truth.
    pub fn condition(&self, pair: Pair) -> Result<Expression, Diagnostic> {
        let mut parts = pair.clone().into_inner();
        if let Some(first) = parts.next()
            && first.as_rule() == Rule::complement
            && parts.skip_while(|part| is_prefix(part.as_rule())).count() == 1
        {
            self.warn_once(warnings::of_complement(span(&first)));
        }
        self.expression(pair)
    }

    /// Evaluates an expression that must be constant.
    pub fn constant(&self, pair: Pair) -> Result<i32, Diagnostic> {
        let span = span(&pair);
        match self.expression(pair)? {
            Expression::Constant(value) => Ok(value),
            _ => Err(Diagnostic::new(span, "a constant is needed", "this depends on variables or divides by zero")),
        }
    }

    /// Resolves the target of an assignment or a receive.
    pub fn target(&self, pair: Pair) -> Result<StoreTarget, Diagnostic> {
        let at = span(&pair);
        let mut parts = pair.into_inner().peekable();
        let name = parts.next().expect("a target begins with a name");
        let variable = match self.find(&name)? {
            Meaning::Variable(variable) => variable,
            Meaning::Constant(_) | Meaning::ConstantArray(_) => {
                let message = format!("`{}` is a constant", name.as_str());
                return Err(Diagnostic::new(at, message, "a constant cannot be assigned"));
            }
        };
        let index = self.index(&name, variable, parts.collect(), MAX_NESTING)?;
        Ok(StoreTarget { variable, index, span: at })
    }

    /// Translates an expression. `nesting`: brackets that may still be opened, including those around this expression.
    fn lower(&self, pair: Pair, nesting: usize) -> Result<Expression, Diagnostic> {
        let at = span(&pair);
        let too_large = || {
            let label = format!("more than {MAX_NESTING} nested brackets or {MAX_DEPTH} nested operators");
            Diagnostic::new(at, "the expression is too large", label)
        };
        let Some(nesting) = nesting.checked_sub(1).filter(|nesting| *nesting > 0) else { return Err(too_large()) };
        let prefixes = parsing::longest_run(pair.clone().into_inner().map(|part| is_prefix(part.as_rule())));
        if prefixes > MAX_DEPTH {
            return Err(too_large());
        }
        let fits = |part: Part| if part.depth() > MAX_DEPTH { Err(too_large()) } else { Ok(part) };
        let binary = |left: Result<Part, Diagnostic>, operator: Pair, right: Result<Part, Diagnostic>| {
            let (left, right) = (left?, right?);
            self.look_at_binary(&operator, &left, &right);
            fits(left.join(binary_operator(operator.as_rule()), right, at))
        };
        let prefix = |operator: Pair, operand: Result<Part, Diagnostic>| {
            let operand = operand?;
            let depth = operand.depth() + 1;
            if operator.as_rule() == Rule::negate && operand.value() == Some(i32::MIN) {
                let exact = -i64::from(i32::MIN);
                self.warn(warnings::of_32_bits(span(&operator), &format!("-({})", i32::MIN), exact, i32::MIN));
            }
            let operand = operand.expression(at);
            if operator.as_rule() == Rule::complement && is_truth(&operand) {
                self.warn_once(warnings::of_complement(span(&operator)));
            }
            let expression = Expression::unary(unary_operator(operator.as_rule()), operand);
            fits(Part::One { expression, depth })
        };
        self.look_at_operators(&pair);
        let is_operand = |part: &Pair| part.as_rule() != Rule::question;
        let mut branches = pair.clone().into_inner().skip_while(is_operand).skip(1);
        let part = OPERATORS
            .map_primary(|primary| self.primary(primary, nesting).map(Part::new).and_then(fits))
            .map_prefix(prefix)
            .map_infix(binary)
            .parse(pair.into_inner().take_while(is_operand))?;
        let condition = part.expression(at);
        let Some((then, otherwise)) = branches.next().zip(branches.next()) else { return Ok(condition) };
        let parts = [condition, self.lower(then, nesting)?, self.lower(otherwise, nesting)?];
        if parts.iter().any(|part| part.depth() >= MAX_DEPTH) {
            return Err(too_large());
        }
        let [condition, then, otherwise] = parts;
        Ok(Expression::conditional(condition, then, otherwise))
    }

    pub fn warn(&self, warning: Warning) {
        self.warnings.borrow_mut().push(warning);
    }

    fn warn_once(&self, warning: Warning) {
        if !self.warnings.borrow().contains(&warning) {
            self.warn(warning);
        }
    }

    /// Warns of a bitwise complement between logical operators, and of the first comparison of a comparison.
    fn look_at_operators(&self, pair: &Pair) {
        let text = pair.as_str();
        if !text.contains(['~', '<', '>']) {
            return;
        }
        let parts: Vec<Pair> = pair.clone().into_inner().take_while(|part| part.as_rule() != Rule::question).collect();
        let is_logical = |at: usize| parts.get(at).is_none_or(|part| is_logical(part.as_rule()));
        // The first part of the current operands of a comparison, and the last comparison of them.
        let (mut first, mut comparison) = (0, None);
        for (at, part) in parts.iter().enumerate() {
            match part.as_rule() {
                Rule::complement if at == 0 || is_logical(at - 1) => {
                    let operand = at + parts[at..].iter().take_while(|part| is_prefix(part.as_rule())).count();
                    if is_logical(operand + 1) && (at > 0 || operand + 1 < parts.len()) {
                        self.warn_once(warnings::of_complement(span(part)));
                    }
                }
                rule if ends_comparison(rule) => (first, comparison) = (at + 1, None),
                rule if is_order(rule) => match comparison.replace(at) {
                    None => {}
                    Some(before) => {
                        let is_end = |part: &&Pair| !is_order(part.as_rule()) && !ends_comparison(part.as_rule());
                        let end = at + parts[at + 1..].iter().take_while(is_end).count();
                        let text = |from: usize, to: usize| {
                            let all = parts[from].as_span().start()..parts[to].as_span().end();
                            parts[from].as_span().get_input()[all].trim()
                        };
                        let texts = [
                            text(first, before - 1),
                            text(before, before),
                            text(before + 1, at - 1),
                            text(at, at),
                            text(at + 1, end),
                        ];
                        return self.warn_once(warnings::of_comparisons(texts, span(part)));
                    }
                },
                _ => {}
            }
        }
    }

    /// Warns of constants for which the operator does not give the arithmetic result.
    fn look_at_binary(&self, operator: &Pair, left: &Part, right: &Part) {
        let binary = binary_operator(operator.as_rule());
        self.warnings.borrow_mut().extend(warnings::of_operator(
            binary,
            operator.as_str(),
            span(operator),
            left.value(),
            right.value(),
        ));
    }

    fn primary(&self, pair: Pair, nesting: usize) -> Result<Expression, Diagnostic> {
        let at = span(&pair);
        match pair.as_rule() {
            Rule::number => pair
                .as_str()
                .parse()
                .map(Expression::Constant)
                .map_err(|_| Diagnostic::new(at, "the number is too large", format!("the largest number is {}", i32::MAX))),
            Rule::least => Ok(Expression::Constant(i32::MIN)),
            Rule::true_value => Ok(Expression::Constant(1)),
            Rule::false_value => Ok(Expression::Constant(0)),
            Rule::parenthesised => self.lower(pair.into_inner().next().expect("brackets are around an expression"), nesting),
            Rule::reference => self.reference(pair, nesting),
            Rule::enabled => self.enabled(pair),
            Rule::tokens => self.tokens(pair),
            Rule::fireable => self.fireable(pair),
            rule => unreachable!("{rule:?} is no operand in the grammar"),
        }
    }

    fn reference(&self, pair: Pair, nesting: usize) -> Result<Expression, Diagnostic> {
        let mut parts = pair.into_inner().peekable();
        let name = parts.next().expect("a reference begins with a name");
        match parts.next_if(|part| matches!(part.as_rule(), Rule::dot | Rule::arrow)) {
            None => self.load(&name, self.find(&name)?, parts.collect(), nesting),
            Some(by) => {
                let of_process = parts.next().expect("a name comes after the dot or arrow");
                self.of_process(name, by.as_rule(), of_process, parts.collect(), nesting)
            }
        }
    }

    /// Translates `enabled(...)`. A name without quotes is a gate: the condition holds if a step of that gate is possible. A text
    /// in quotes is one label. If no such label exists, the quoted text is a gate, because the name of a gate need not be a word.
    fn enabled(&self, pair: Pair) -> Result<Expression, Diagnostic> {
        let at = span(&pair);
        let written = pair.into_inner().next().expect("a label is asked for");
        let text = written.as_str().trim_end();
        let quoted = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        let text = quoted.unwrap_or(text);
        // Labels are not indexed: a network may have as many as a state space has transitions, and most conditions mention none.
        let labels = || self.names.labels.iter();
        let exact = quoted.and_then(|text| {
            labels().position(|label| label == text).or_else(|| labels().position(|label| is_shown(label, text)))
        });
        let mut all: Vec<usize> = exact.into_iter().collect();
        if all.is_empty() {
            let is_end = |rest: &str| rest.is_empty() || rest.starts_with(['!', '?', '(', ' ', '\t']);
            let of_gate = |label: &str| label.strip_prefix(text).is_some_and(is_end);
            let numbered = labels().enumerate().filter(|(_, label)| of_gate(label)).map(|(number, _)| number);
            all = numbered.take(MOST_LABELS + 1).collect();
        }
        if all.len() > MOST_LABELS {
            let message = format!("the gate `{text}` has more than {MOST_LABELS} labels");
            return Err(Diagnostic::new(span(&written), message, "use single labels of the gate instead"));
        }
        let all = all.into_iter().map(Expression::Enabled).collect();
        Expression::joined(all, Binary::Or, at).ok_or_else(|| {
            let gates = labels().map(|label| label.split(['!', '?', '(', ' ', '\t']).next().unwrap_or(label));
            let mut names: Vec<&str> = labels().take(MOST_LABELS).chain(gates.take(MOST_LABELS)).collect();
            names.sort_unstable();
            names.dedup();
            parsing::unknown("label or gate of a step", text, span(&written), &names)
        })
    }

    /// Translates `tokens(p, ...)`: the tokens of these places together.
    fn tokens(&self, pair: Pair) -> Result<Expression, Diagnostic> {
        let at = span(&pair);
        let net = self.names.net.as_deref().ok_or_else(|| not_a_net(at, "tokens"))?;
        let places = pair.into_inner().map(|name| element(&name, "place", &net.names.places));
        let places: Vec<usize> = places.collect::<Result<_, _>>()?;
        let most: u64 = places.iter().map(|place| u64::from(net.capacities[*place])).sum();
        if most > i32::MAX as u64 {
            let message = format!("these places may have {most} tokens together");
            return Err(Diagnostic::new(at, message, format!("sums up to {} are computed", i32::MAX)));
        }
        let tokens = places.into_iter().map(|place| net.tokens[place].clone()).collect();
        Ok(Expression::joined(tokens, Binary::Add, at).expect("a place is named"))
    }

    /// Translates `fireable(t, ...)`: whether one of these transitions is enabled.
    fn fireable(&self, pair: Pair) -> Result<Expression, Diagnostic> {
        let at = span(&pair);
        let net = self.names.net.as_deref().ok_or_else(|| not_a_net(at, "fireable"))?;
        let transitions = pair.into_inner().map(|name| element(&name, "transition", &net.names.transitions));
        let transitions = transitions.map(|transition| transition.map(Expression::Enabled));
        let transitions: Vec<Expression> = transitions.collect::<Result<_, _>>()?;
        Ok(Expression::joined(transitions, Binary::Or, at).expect("a transition is named"))
    }

    /// Resolves `P.state`, or a variable of another process.
    fn of_process(
        &self,
        owner: Pair,
        by: Rule,
        name: Pair,
        indices: Vec<Pair>,
        nesting: usize,
    ) -> Result<Expression, Diagnostic> {
        let Some(&process) = self.names.processes.get(owner.as_str()) else {
            let error = unknown("process", &owner, &self.names.processes.names());
            let is_implication = by == Rule::arrow && self.find(&owner).is_ok();
            return Err(match self.instances(owner.as_str()) {
                _ if is_implication => error.with_help("an implication is written `imply`"),
                Some(help) => error.with_help(help),
                None => error,
            });
        };
        let (states, locals) = (&self.names.states[process], &self.names.locals[process]);
        if by == Rule::dot
            && indices.is_empty()
            && let Some(&location) = states.get(name.as_str())
        {
            return Ok(Expression::At { process, location });
        }
        match locals.get(name.as_str()) {
            Some(meaning) => self.load(&name, *meaning, indices, nesting),
            None => {
                let mut known = states.names();
                known.extend(locals.names());
                Err(unknown(&format!("state or variable of {}", owner.as_str()), &name, &known))
            }
        }
    }

    fn load(&self, name: &Pair, meaning: Meaning, indices: Vec<Pair>, nesting: usize) -> Result<Expression, Diagnostic> {
        let variable = match (meaning, indices.first()) {
            (Meaning::Constant(value), None) => return Ok(Expression::Constant(value)),
            (Meaning::Constant(_), Some(index)) => return Err(not_an_array(name, index)),
            (Meaning::Variable(variable) | Meaning::ConstantArray(variable), _) => variable,
        };
        let at = super::grammar::join(span(name), indices.last().map_or(span(name), span));
        Ok(match self.index(name, variable, indices, nesting)? {
            None => Expression::Variable(variable),
            Some(index) => Expression::Element { array: variable, index: Box::new(index), span: at },
        })
    }

    /// The number of the element that indices name. An array of one dimension without an index means its first element.
    fn index(&self, name: &Pair, variable: usize, indices: Vec<Pair>, nesting: usize) -> Result<Option<Expression>, Diagnostic> {
        let of = &self.variables[variable];
        let lower = |pair: &Pair| self.lower(pair.clone().into_inner().next().expect("an index is an expression"), nesting);
        let counted = |number: usize, one: &str| counted(number as u64, one);
        let warn = |index: &Expression, elements: usize, has: &str, at: Span| {
            self.warnings.borrow_mut().extend(warnings::of_index(&of.name, elements, has, index, at));
        };
        match (&indices[..], of.is_array, of.columns) {
            ([], false, _) => Ok(None),
            ([], true, None) => Ok(Some(Expression::Constant(0))),
            ([index, ..], false, _) => Err(not_an_array(name, index)),
            ([index], true, None) => {
                let value = lower(index)?;
                warn(&value, of.initial.len(), &counted(of.initial.len(), "element"), span(index));
                Ok(Some(value))
            }
            ([row, column], true, Some(columns)) => {
                let rows = of.initial.len() / columns;
                let of_row = format!("{} in a row", counted(columns, "element"));
                let within = |dimension, elements, has: &str, pair: &Pair| -> Result<Expression, Diagnostic> {
                    let value = lower(pair)?;
                    warn(&value, elements, has, span(pair));
                    Ok(Expression::within(variable, dimension, elements, value, span(pair)))
                };
                let (first, second) = (within(0, rows, &counted(rows, "row"), row)?, within(1, columns, &of_row, column)?);
                let at = super::grammar::join(span(row), span(column));
                let before = Expression::binary(Binary::Multiply, first, Expression::Constant(columns as i32), at);
                Ok(Some(Expression::binary(Binary::Add, before, second, at)))
            }
            (_, _, columns) => {
                let (name, at) = (name.as_str(), indices.last().map_or(span(name), span));
                let (has, access) = match columns {
                    Some(_) => ("two dimensions", format!("{name}[i][j]")),
                    None => ("one dimension", format!("{name}[i]")),
                };
                let given = if indices.len() == 1 { "one index".into() } else { format!("{} indices", indices.len()) };
                let error =
                    Diagnostic::new(at, format!("the array `{name}` has {has}, but this has {given}"), "the number of indices");
                Err(error.with_help(format!("an element is written {access}")))
            }
        }
    }

    /// Help for a name that several processes share up to their number.
    fn instances(&self, name: &str) -> Option<String> {
        let first = format!("{name}_0");
        self.names.processes.get(&first).map(|_| format!("its instances are named `{first}`, `{name}_1` and so on"))
    }

    /// Help for a name that is no variable: of something else, or of another language.
    fn not_a_value(&self, name: &str) -> Option<String> {
        if self.names.channels.get(name).is_some() {
            return Some(format!("`{name}` is a channel; conditions cannot look into it: count its messages in a variable"));
        }
        if let Some(&process) = self.names.processes.get(name) {
            let states: Vec<String> = self.names.states[process].names().iter().map(|state| format!("{name}.{state}")).collect();
            return Some(format!("`{name}` is a process: write one of its states or variables, as {}", some(&states)));
        }
        let of_language = match name {
            "np_" => "ask --ltl 'G F PROGRESS', PROGRESS being the states with progress: P.a or Q.b",
            "else" => "write the negation of the other guards",
            "timeout" => "write a guard that says when, or a transition that is always possible",
            _ => return self.instances(name),
        };
        Some(of_language.into())
    }

    fn find(&self, name: &Pair) -> Result<Meaning, Diagnostic> {
        let locals = self.process.map(|process| &self.names.locals[process]);
        let found = locals.and_then(|locals| locals.get(name.as_str())).or_else(|| self.names.globals.get(name.as_str()));
        found.copied().ok_or_else(|| {
            let mut known = self.names.globals.names();
            known.extend(locals.map(|locals| locals.names()).unwrap_or_default());
            let error = unknown("variable or constant", name, &known);
            if let Some(help) = self.not_a_value(name.as_str()) {
                return error.with_help(help);
            }
            let owners = |has: &dyn Fn(usize) -> bool| {
                let processes = &self.names.processes;
                let owners = processes.names().into_iter().filter(|owner| processes.get(owner).is_some_and(|id| has(*id)));
                owners.map(|owner| format!("{owner}.{}", name.as_str())).collect::<Vec<_>>()
            };
            let variables = owners(&|process| self.names.locals[process].get(name.as_str()).is_some());
            let states = owners(&|process| self.names.states[process].get(name.as_str()).is_some());
            match (&variables[..], &states[..]) {
                ([], []) => match self.names.net.as_deref() {
                    Some(net) if net.names.places.get(name.as_str()).is_some() => {
                        error.with_help(format!("the tokens of a place are tokens({})", name.as_str()))
                    }
                    Some(net) if net.names.transitions.get(name.as_str()).is_some() => {
                        error.with_help(format!("whether a transition can fire is fireable({})", name.as_str()))
                    }
                    _ => error,
                },
                ([], states) => error.with_help(format!("a state is written with its process: {}", some(states))),
                (variables, _) => error.with_help(format!("a variable of a process is written with it: {}", some(variables))),
            }
        })
    }
}

/// The first of some texts, as a list.
fn some(texts: &[String]) -> String {
    const MOST: usize = 4;
    let more = if texts.len() > MOST { ", ..." } else { "" };
    format!("{}{more}", texts[..texts.len().min(MOST)].join(", "))
}

/// The place or transition with a name, which may be in quotes.
fn element(name: &Pair, kind: &str, of: &Index) -> Result<usize, Diagnostic> {
    let text = name.as_str().trim_end();
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let shown = || of.ids().into_iter().find(|id| is_shown(id, text)).and_then(|id| of.of_id(id));
    of.get(text).or_else(shown).ok_or_else(|| {
        if of.is_ambiguous(text) {
            let message = format!("several {kind}s have the name `{text}`");
            return Diagnostic::new(span(name), message, "their identifiers tell them apart");
        }
        parsing::unknown(kind, text, span(name), &of.ids())
    })
}

/// Whether reports show a name as this text: characters that cannot be printed are escaped.
fn is_shown(name: &str, text: &str) -> bool {
    text.contains("\\u{") && escaping::line(name) == text
}

fn not_a_net(at: Span, what: &str) -> Diagnostic {
    Diagnostic::new(at, format!("`{what}` is of Petri nets"), "the model is none")
}

/// An error for a name that is not declared, with the most similar declared name.
pub fn unknown(what: &str, name: &Pair, known: &[&str]) -> Diagnostic {
    parsing::unknown(what, name.as_str(), span(name), known)
}

fn not_an_array(name: &Pair, index: &Pair) -> Diagnostic {
    Diagnostic::new(span(index), format!("`{}` is not an array", name.as_str()), "it has no elements")
}

/// Whether the value is 0 or 1 by its form.
fn is_truth(expression: &Expression) -> bool {
    match expression {
        Expression::At { .. } | Expression::Enabled(_) | Expression::Unary { operator: Unary::Not, .. } => true,
        Expression::Binary { operator, .. } => operator.is_truth(),
        _ => false,
    }
}

/// Whether an operator is between operands that are asked only for their truth.
fn is_logical(rule: Rule) -> bool {
    matches!(rule, Rule::and | Rule::or | Rule::imply)
}

/// Whether an operator compares by size.
fn is_order(rule: Rule) -> bool {
    matches!(rule, Rule::less | Rule::less_or_equal | Rule::greater | Rule::greater_or_equal)
}

/// Whether an operator is below those that compare by size.
fn ends_comparison(rule: Rule) -> bool {
    is_logical(rule) || matches!(rule, Rule::equal | Rule::not_equal | Rule::bit_and | Rule::bit_or | Rule::bit_xor)
}

fn is_prefix(rule: Rule) -> bool {
    matches!(rule, Rule::negate | Rule::not | Rule::complement)
}

fn unary_operator(rule: Rule) -> Unary {
    match rule {
        Rule::negate => Unary::Negate,
        Rule::not => Unary::Not,
        Rule::complement => Unary::Complement,
        rule => unreachable!("{rule:?} is no prefix in the grammar"),
    }
}

fn binary_operator(rule: Rule) -> Binary {
    match rule {
        Rule::imply => Binary::Imply,
        Rule::or => Binary::Or,
        Rule::and => Binary::And,
        Rule::bit_or => Binary::BitOr,
        Rule::bit_xor => Binary::BitXor,
        Rule::bit_and => Binary::BitAnd,
        Rule::equal => Binary::Equal,
        Rule::not_equal => Binary::NotEqual,
        Rule::less => Binary::Less,
        Rule::less_or_equal => Binary::LessOrEqual,
        Rule::greater => Binary::Greater,
        Rule::greater_or_equal => Binary::GreaterOrEqual,
        Rule::shift_left => Binary::ShiftLeft,
        Rule::shift_right => Binary::ShiftRight,
        Rule::add => Binary::Add,
        Rule::subtract => Binary::Subtract,
        Rule::multiply => Binary::Multiply,
        Rule::divide => Binary::Divide,
        Rule::remainder => Binary::Remainder,
        rule => unreachable!("{rule:?} is no operator in the grammar"),
    }
}
