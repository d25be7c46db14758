//! Reads properties of nets in the XML format of the Model Checking Contest.
//!
//! Read are conditions that are reachable (`exists-path`/`finally`) or hold everywhere (`all-paths`/`globally`), bounds of places
//! (`place-bound`), and formulas of linear temporal logic (`all-paths` or `exists-path` around any formula without further path
//! quantifiers). A formula with path quantifiers in others is one of branching time (CTL), and so is any formula of a property
//! whose id names an examination of CTL.

use super::marking::{Amount, Condition};
use super::pnml::{Index, Lines, Names};
use super::xml::{self, elements, kind, only_of, shown};
use crate::ctl::{Literal, Parts};
use crate::diagnostic::{Diagnostic, Located};
use crate::ir::net::PlaceId;
use crate::ir::{Source, Span};
use crate::ltl::formula::Formula;
use crate::parsing;
use roxmltree::{Document, Node, ParsingOptions};
use warpset_support::escaping;

/// Examinations whose formulas are of branching time. The id of a property names its examination.
const EXAMINATIONS_OF_CTL: [&str; 2] = ["CTLCardinality", "CTLFireability"];

/// Deepest nesting of a formula, which is walked by recursion.
const MAX_DEPTH: usize = 400;

/// A property of a file.
#[derive(Clone, Debug)]
pub struct Property {
    pub name: String,
    pub question: Question,
}

impl Property {
    /// Whether the property is a formula about runs.
    pub fn is_of_runs(&self) -> bool {
        matches!(self.question, Question::Runs { .. })
    }
}

#[derive(Clone, Debug)]
pub enum Question {
    /// Whether some reachable marking satisfies the condition. If so, the verdict of the property is `if_reached`, otherwise the
    /// opposite.
    Reach {
        condition: Condition,
        if_reached: bool,
    },
    /// Whether the condition holds in the initial marking.
    Initial(Condition),
    /// The largest total number of tokens that these places ever have.
    Bound(Vec<PlaceId>),
    /// Whether all runs satisfy a formula over the conditions. If `is_negated`, the verdict of the property is the opposite.
    Runs {
        formula: Formula,
        conditions: Vec<Condition>,
        is_negated: bool,
    },
    /// Whether the initial marking satisfies a formula of branching time over the conditions.
    Branching {
        parts: Parts,
        formula: Literal,
        conditions: Vec<Condition>,
    },
    Global(Global),
    /// There is no answer, for this reason.
    Declined(String),
}

/// Properties that concern the whole net.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Global {
    /// Some reachable marking enables no transition.
    ReachabilityDeadlock,
    /// No place ever has more than one token.
    OneSafe,
    /// Each transition can fire.
    QuasiLiveness,
    /// Some place always has the same number of tokens.
    StableMarking,
    /// Whatever has happened, each transition can still fire again.
    Liveness,
}

impl Global {
    pub const ALL: [Self; 5] =
        [Self::ReachabilityDeadlock, Self::OneSafe, Self::QuasiLiveness, Self::StableMarking, Self::Liveness];

    pub fn name(self) -> &'static str {
        match self {
            Self::ReachabilityDeadlock => "ReachabilityDeadlock",
            Self::OneSafe => "OneSafe",
            Self::QuasiLiveness => "QuasiLiveness",
            Self::StableMarking => "StableMarking",
            Self::Liveness => "Liveness",
        }
    }

    /// The property with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|global| global.name() == name)
    }
}

/// Reads the properties of a file.
///
/// # Errors
///
/// The text has an error. The first error is returned, with its place.
pub fn read(source: &Source, names: &Names) -> Result<Vec<Property>, Box<Located>> {
    let read = || {
        let lines = Lines::of(&source.text);
        let options = ParsingOptions { allow_dtd: false, nodes_limit: u32::MAX, ..ParsingOptions::default() };
        let document = Document::parse_with_options(&source.text, options).map_err(|error| {
            let at = lines.at(error.pos().row, error.pos().col);
            Diagnostic::new(at, "this is no XML that can be read", error.to_string())
        })?;
        let reader = Reader { lines: &lines, names };
        let root = document.root_element();
        if kind(root) != "property-set" {
            return Err(reader.error(root, "a file of properties begins with `property-set`"));
        }
        elements(root).map(|node| reader.property(node)).collect()
    };
    read().map_err(|error: Diagnostic| Box::new(error.of(source)))
}

struct Reader<'t> {
    lines: &'t Lines<'t>,
    names: &'t Names,
}

/// The conditions of a formula, without repetitions.
#[derive(Default)]
struct Conditions(Vec<Condition>);

impl Conditions {
    fn proposition(&mut self, condition: Condition) -> Formula {
        if let Condition::Constant(truth) = condition {
            return Formula::Constant(truth);
        }
        Formula::Proposition(self.number(condition))
    }

    fn number(&mut self, condition: Condition) -> usize {
        let known = self.0.iter().position(|known| *known == condition);
        known.unwrap_or_else(|| {
            self.0.push(condition);
            self.0.len() - 1
        })
    }

    /// A condition as a part of formulas of branching time.
    fn literal(&mut self, condition: Condition, parts: &mut Parts) -> Literal {
        match condition {
            Condition::Constant(true) => Literal::TRUE,
            Condition::Constant(false) => Literal::FALSE,
            Condition::Not(of) => !self.literal(*of, parts),
            other => parts.condition(self.number(other)),
        }
    }
}

impl Reader<'_> {
    fn span(&self, node: Node) -> Span {
        self.lines.tag(node)
    }

    fn error(&self, node: Node, label: &str) -> Diagnostic {
        Diagnostic::new(self.span(node), format!("{} is not expected here", shown(node)), label)
    }

    fn property(&self, node: Node) -> Result<Property, Diagnostic> {
        if kind(node) != "property" {
            return Err(self.error(node, "a `property` was expected"));
        }
        let one = |name: &str| {
            let found = only_of(node, name, |node| self.span(node))?;
            found.ok_or_else(|| Diagnostic::new(self.span(node), format!("a property without `{name}`"), "it is needed"))
        };
        // Verdicts are lines of words, so the name must be one word.
        let name = escaping::word(&text_of(one("id")?)).into_owned();
        let is_of_ctl = EXAMINATIONS_OF_CTL.iter().any(|examination| name.contains(examination));
        let question = one("formula").and_then(|formula| self.only(formula));
        let question = question.and_then(|formula| self.question(formula, is_of_ctl));
        // One unreadable property must not cost the file's others their answers.
        let question = question.unwrap_or_else(|error| {
            let Span { line, column, .. } = error.span;
            Question::Declined(format!("the property cannot be read: {line}:{column}: {}", error.message))
        });
        Ok(Property { name, question })
    }

    fn question(&self, node: Node, is_of_ctl: bool) -> Result<Question, Diagnostic> {
        match kind(node) {
            "place-bound" => Ok(Question::Bound(self.all(node, "place", &self.names.places)?)),
            quantifier @ ("all-paths" | "exists-path") if !has_quantifier(self.only(node)?) => {
                let (inner, is_all) = (self.only(node)?, quantifier == "all-paths");
                let operator = if is_all { "globally" } else { "finally" };
                if kind(inner) == operator && !is_temporal(self.only(inner)?) {
                    let condition = self.condition(self.only(inner)?, 0)?;
                    // A condition holds everywhere if its negation cannot be reached.
                    let condition = if is_all { condition.negated() } else { condition };
                    return Ok(Question::Reach { condition, if_reached: !is_all });
                }
                if is_of_ctl {
                    return self.of_branching_time(node);
                }
                if kind(inner) == "next" && !is_temporal(self.only(inner)?) && self.names.begins_in_deadlock {
                    self.look_at(inner, 0)?;
                    let why = "the first marking is a deadlock: a path of CTL ends there, and a run of LTL stays there";
                    return Ok(Question::Declined(why.into()));
                }
                let mut conditions = Conditions::default();
                let formula = self.formula(inner, &mut conditions, 0)?;
                let formula = if is_all { formula } else { formula.negated() };
                Ok(Question::Runs { formula, conditions: conditions.0, is_negated: !is_all })
            }
            "negation" => Ok(match self.question(self.only(node)?, is_of_ctl)? {
                Question::Reach { condition, if_reached } => Question::Reach { condition, if_reached: !if_reached },
                Question::Initial(condition) => Question::Initial(condition.negated()),
                Question::Runs { formula, conditions, is_negated } => {
                    Question::Runs { formula, conditions, is_negated: !is_negated }
                }
                Question::Branching { parts, formula, conditions } => {
                    Question::Branching { parts, formula: !formula, conditions }
                }
                Question::Bound(_) => return Err(self.error(node, "a number has no negation")),
                other => other,
            }),
            _ if has_quantifier(node) => self.of_branching_time(node),
            _ if is_temporal(node) => Err(self.error(node, "`all-paths` or `exists-path` must be around it")),
            _ => Ok(Question::Initial(self.condition(node, 0)?)),
        }
    }

    fn of_branching_time(&self, node: Node) -> Result<Question, Diagnostic> {
        let (mut parts, mut conditions) = (Parts::default(), Conditions::default());
        let formula = self.branching(node, &mut parts, &mut conditions, 0)?;
        Ok(Question::Branching { parts, formula, conditions: conditions.0 })
    }

    /// A formula of branching time: each temporal operator is directly in a path quantifier.
    fn branching(&self, node: Node, parts: &mut Parts, conditions: &mut Conditions, depth: usize) -> Result<Literal, Diagnostic> {
        self.ensure_depth(node, depth)?;
        if !has_quantifier(node) && !is_temporal(node) {
            return Ok(conditions.literal(self.condition(node, depth)?, parts));
        }
        match kind(node) {
            quantifier @ ("all-paths" | "exists-path") => {
                let (path, is_all) = (self.only(node)?, quantifier == "all-paths");
                if kind(path) == "until" {
                    let [before, reach] = self.sides(path)?;
                    let first = self.branching(before, parts, conditions, depth + 2)?;
                    let second = self.branching(reach, parts, conditions, depth + 2)?;
                    return Ok(if is_all { parts.all_until(first, second) } else { parts.exists_until(first, second) });
                }
                let operator = match kind(path) {
                    "globally" if is_all => Parts::all_globally,
                    "globally" => Parts::exists_always,
                    "finally" if is_all => Parts::all_finally,
                    "finally" => Parts::exists_finally,
                    "next" if is_all => Parts::all_next,
                    "next" => Parts::exists_next,
                    _ => return Err(self.error(path, "a temporal operator must be directly in a path quantifier (CTL)")),
                };
                let of = self.branching(self.only(path)?, parts, conditions, depth + 2)?;
                Ok(operator(parts, of))
            }
            "negation" => Ok(!self.branching(self.only(node)?, parts, conditions, depth + 1)?),
            name @ ("conjunction" | "disjunction") => {
                let is_and = name == "conjunction";
                let mut joined = if is_and { Literal::TRUE } else { Literal::FALSE };
                for child in elements(node) {
                    let of = self.branching(child, parts, conditions, depth + 1)?;
                    joined = if is_and { parts.and(joined, of) } else { parts.or(joined, of) };
                }
                Ok(joined)
            }
            _ => Err(self.error(node, "`all-paths` or `exists-path` must be around it")),
        }
    }

    /// The two sides of `until`.
    fn sides<'a, 'i>(&self, node: Node<'a, 'i>) -> Result<[Node<'a, 'i>; 2], Diagnostic> {
        let part = |name: &str| {
            let part = elements(node).find(|part| kind(*part) == name);
            let part =
                part.ok_or_else(|| Diagnostic::new(self.span(node), format!("`until` without `{name}`"), "it is needed"))?;
            self.only(part)
        };
        Ok([part("before")?, part("reach")?])
    }

    /// Checks the conditions in a formula that has no answer.
    fn look_at(&self, node: Node, depth: usize) -> Result<(), Diagnostic> {
        self.ensure_depth(node, depth)?;
        match kind(node) {
            "all-paths" | "exists-path" | "globally" | "finally" | "next" | "until" | "before" | "reach" | "negation"
            | "conjunction" | "disjunction" => elements(node).try_for_each(|child| self.look_at(child, depth + 1)),
            _ => self.condition(node, depth).map(drop),
        }
    }

    fn ensure_depth(&self, node: Node, depth: usize) -> Result<(), Diagnostic> {
        match depth < MAX_DEPTH {
            true => Ok(()),
            false => Err(Diagnostic::new(self.span(node), "the formula is too deep", format!("{MAX_DEPTH} levels are possible"))),
        }
    }

    /// Reads a formula over runs.
    fn formula(&self, node: Node, conditions: &mut Conditions, depth: usize) -> Result<Formula, Diagnostic> {
        self.ensure_depth(node, depth)?;
        if !is_temporal(node) {
            let condition = self.condition(node, depth)?;
            return Ok(split(condition, conditions));
        }
        let mut inner = |node: Node| self.formula(node, conditions, depth + 1);
        match kind(node) {
            "globally" => Ok(inner(self.only(node)?)?.globally()),
            "finally" => Ok(inner(self.only(node)?)?.finally()),
            "next" => Ok(inner(self.only(node)?)?.next()),
            "until" => {
                let [before, reach] = self.sides(node)?;
                Ok(inner(before)?.until(inner(reach)?))
            }
            "negation" => Ok(inner(self.only(node)?)?.negated()),
            name @ ("conjunction" | "disjunction") => {
                let all: Vec<Formula> = elements(node).map(inner).collect::<Result<_, _>>()?;
                Ok(Formula::joined(all, name == "conjunction"))
            }
            _ => Err(self.error(node, "an operator of temporal logic was expected")),
        }
    }

    /// Reads a condition on a marking.
    fn condition(&self, node: Node, depth: usize) -> Result<Condition, Diagnostic> {
        self.ensure_depth(node, depth)?;
        let inner = |node: Node| self.condition(node, depth + 1);
        match kind(node) {
            "true" => Ok(Condition::Constant(true)),
            "false" => Ok(Condition::Constant(false)),
            "negation" => Ok(inner(self.only(node)?)?.negated()),
            "conjunction" => Ok(Condition::And(elements(node).map(inner).collect::<Result<_, _>>()?)),
            "disjunction" => Ok(Condition::Or(elements(node).map(inner).collect::<Result<_, _>>()?)),
            comparison @ ("integer-le" | "integer-lt" | "integer-ge" | "integer-gt" | "integer-eq" | "integer-ne") => {
                let amounts: Vec<Amount> = elements(node).map(|amount| self.amount(amount)).collect::<Result<_, _>>()?;
                let amounts: [Amount; 2] = amounts.try_into().map_err(|_| self.error(node, "it compares two numbers"))?;
                let at_most = |[low, high]: [Amount; 2]| Condition::AtMost(Box::new([low, high]));
                let [left, right] = amounts;
                let (not_above, not_below) = (at_most([left.clone(), right.clone()]), at_most([right, left]));
                Ok(match comparison {
                    "integer-le" => not_above,
                    "integer-ge" => not_below,
                    "integer-lt" => not_below.negated(),
                    "integer-gt" => not_above.negated(),
                    "integer-eq" => Condition::And(vec![not_above, not_below]),
                    _ => Condition::And(vec![not_above, not_below]).negated(),
                })
            }
            "is-fireable" => Ok(Condition::Fireable(self.all(node, "transition", &self.names.transitions)?)),
            "deadlock" | "is-deadlock" => Ok(Condition::Deadlock),
            _ => Err(self.error(node, "a condition on a marking was expected")),
        }
    }

    fn amount(&self, node: Node) -> Result<Amount, Diagnostic> {
        match kind(node) {
            "integer-constant" => {
                let text = text_of(node);
                let number = text.parse().map_err(|_| {
                    let message = format!("`{text}` is not a natural number of 64 bits");
                    Diagnostic::new(self.span(node), message, "a constant was expected")
                });
                number.map(Amount::Constant)
            }
            "tokens-count" => Ok(Amount::Tokens(self.all(node, "place", &self.names.places)?)),
            _ => Err(self.error(node, "`integer-constant` or `tokens-count` was expected")),
        }
    }

    /// Returns the elements of the net that `node` names.
    fn all(&self, node: Node, what: &str, of: &Index) -> Result<Vec<usize>, Diagnostic> {
        let one = |child: Node| {
            if kind(child) != what {
                return Err(self.error(child, &format!("a `{what}` was expected")));
            }
            let name = text_of(child);
            of.of_id(&name).or_else(|| of.get(&name)).ok_or_else(|| parsing::unknown(what, &name, self.span(child), &of.ids()))
        };
        elements(node).map(one).collect()
    }

    /// Returns the only child element of an element.
    fn only<'a, 'i>(&self, node: Node<'a, 'i>) -> Result<Node<'a, 'i>, Diagnostic> {
        let mut all = elements(node);
        match (all.next(), all.next()) {
            (Some(only), None) => Ok(only),
            _ => {
                let message = format!("{} needs one element", shown(node));
                Err(Diagnostic::new(self.span(node), message, "there is none, or more than one"))
            }
        }
    }
}

/// Converts a condition to a formula. Conjunctions, disjunctions and negations become operators of the formula.
fn split(condition: Condition, conditions: &mut Conditions) -> Formula {
    match condition {
        Condition::Not(inner) => split(*inner, conditions).negated(),
        other => conditions.proposition(other),
    }
}

/// Whether an element or any element in it is a path quantifier.
fn has_quantifier(node: Node) -> bool {
    node.descendants().any(|node| matches!(kind(node), "all-paths" | "exists-path"))
}

/// Whether an element or any element in it is a temporal operator.
fn is_temporal(node: Node) -> bool {
    node.descendants().any(|node| matches!(kind(node), "globally" | "finally" | "next" | "until"))
}

fn text_of(node: Node) -> String {
    xml::text_in(node).trim().into()
}
