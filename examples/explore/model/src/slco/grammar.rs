//! The parser, generated from grammars/src/slco.pest, and the wording of its errors.

use crate::diagnostic::Diagnostic;
use crate::parsing::{self, Unexpected, Words};
use pest::Parser as _;
use warpset_grammars::slco::Grammar;

pub use crate::parsing::span;
pub use warpset_grammars::slco::Rule;

/// A piece of text that matches a rule.
pub type Pair<'a> = pest::iterators::Pair<'a, Rule>;

const WORDS: Words<Rule> = Words {
    expected,
    hint,
    marks: &[";", ",", "{", "}", "[", "]", "(", ")", ":=", "->", ":", ".", "|", "*/"],
    is_operand: |rules| rules.contains(&Rule::number) && rules.contains(&Rule::not),
    reserved,
    is_dve: false,
};

/// Parses a whole text. `rule` must match to the end of the text.
pub fn parse(rule: Rule, text: &str) -> Result<Pair<'_>, Diagnostic> {
    parsing::parse::<Rule, Grammar>(rule, text, &WORDS)
}

/// The parts of a pair that are not keywords.
pub fn parts(pair: Pair) -> impl Iterator<Item = Pair> {
    pair.into_inner().filter(|part| keyword(part.as_rule()).is_none())
}

/// Describes the rules that could have matched at the place of an error, where a description exists.
fn expected(rules: &[Rule]) -> Vec<String> {
    let (is_operand, is_infix) = ((WORDS.is_operand)(rules), rules.contains(&Rule::add));
    let keywords = rules.iter().filter_map(|rule| keyword(*rule)).filter(|_| !is_operand && !is_infix);
    let keywords = keywords.map(|keyword| format!("`{keyword}`"));
    let others = rules.iter().filter_map(|rule| match rule {
        Rule::number if is_operand => Some("an expression"),
        Rule::number => Some("a number"),
        Rule::name | Rule::word if !is_operand => Some("a name"),
        Rule::add => Some("an operator"),
        Rule::lossless => Some("`lossless`"),
        Rule::lossy => Some("`lossy`"),
        Rule::EOI => Some("the end"),
        _ => None,
    });
    keywords.chain(others.map(Into::into)).collect()
}

/// Advice for a keyword where a name is expected. A list of names ends at a keyword, so a section in the wrong order is found
/// there.
fn reserved(word: &str) -> Option<&'static str> {
    match word {
        "variables" | "ports" | "state" => Some("no name; the order is variables, ports, state machines"),
        "initial" | "states" | "transitions" => Some("no name; the order is variables, initial, states, transitions"),
        "actions" | "classes" | "objects" | "channels" => Some("no name; the order is actions, classes, objects, channels"),
        _ => Grammar::parse(Rule::keyword, word).is_ok().then_some(parsing::ANOTHER_NAME),
    }
}

/// If the word is a type of another language, advises on the types of this language.
fn hint(at: &Unexpected<Rule>) -> Option<&'static str> {
    let types = ["bool", "boolean", "bit", "char", "short", "long", "unsigned", "int", "integer", "byte"];
    types.contains(&at.word).then_some("the types are `Integer` (32 bits), `Boolean` and `Byte` (0 to 255)")
}

fn keyword(rule: Rule) -> Option<&'static str> {
    Some(match rule {
        Rule::kw_actions => "actions",
        Rule::kw_model => "model",
        Rule::kw_classes => "classes",
        Rule::kw_objects => "objects",
        Rule::kw_channels => "channels",
        Rule::kw_variables => "variables",
        Rule::kw_ports => "ports",
        Rule::kw_state => "state machines",
        Rule::word_machines => "machines",
        Rule::kw_initial => "initial",
        Rule::kw_states => "states",
        Rule::kw_transitions => "transitions",
        Rule::kw_from => "from",
        Rule::kw_to => "to",
        Rule::kw_receive => "receive",
        Rule::kw_send => "send",
        Rule::kw_after => "after",
        Rule::word_ms => "ms",
        Rule::kw_do => "do",
        Rule::kw_not => "not",
        Rule::kw_and => "and",
        Rule::kw_or => "or",
        Rule::kw_xor => "xor",
        Rule::kw_true => "true",
        Rule::kw_false => "false",
        Rule::kw_integer => "Integer",
        Rule::kw_boolean => "Boolean",
        Rule::kw_byte => "Byte",
        Rule::word_async => "async",
        Rule::word_sync => "sync",
        Rule::word_between => "between",
        _ => return None,
    })
}
