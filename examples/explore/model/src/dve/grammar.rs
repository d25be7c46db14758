//! The parser, generated from grammar.pest, and the wording of its errors.

use crate::diagnostic::Diagnostic;
use crate::parsing::{self, Words};
use pest::Parser as _;
use pest_derive::Parser;

pub use crate::parsing::{join, span};

#[derive(Parser)]
#[grammar = "src/dve/grammar.pest"]
struct Grammar;

/// A piece of text that matches a rule.
pub type Pair<'a> = pest::iterators::Pair<'a, Rule>;

const WORDS: Words<Rule> = Words {
    expected,
    hint,
    marks: &[";", ",", "{", "}", "[", "]", "(", ")", "=", "->", "=>", ":", "!", "?", "*/"],
    is_operand: |rules| rules.contains(&Rule::number),
};

/// Parses a whole text. `rule` must match to the end of the text.
pub fn parse(rule: Rule, text: &str) -> Result<Pair<'_>, Diagnostic> {
    parsing::parse::<Rule, Grammar>(rule, text, &WORDS)
}

/// The parts of a pair, without its keywords.
pub fn parts(pair: Pair) -> impl Iterator<Item = Pair> {
    pair.into_inner().filter(|part| keyword(part.as_rule()).is_none())
}

/// Describes those of `rules` that could have matched at the place of an error.
fn expected(rules: &[Rule]) -> Vec<String> {
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
    keywords.chain(others.map(Into::into)).collect()
}

/// Names the types of this language if the word is a type of another one.
fn hint(word: &str) -> Option<&'static str> {
    let types = ["bool", "boolean", "bit", "char", "short", "long", "unsigned", "integer", "Integer", "Boolean", "Byte", "mtype"];
    types.contains(&word).then_some("the types are `byte` (0 to 255) and `int` (-32768 to 32767); 0 is false, 1 is true")
}

/// Whether the word cannot be a name.
pub fn is_keyword(word: &str) -> bool {
    Grammar::parse(Rule::name, word).is_err()
}

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
