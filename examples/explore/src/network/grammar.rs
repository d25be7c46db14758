//! The parser, made from grammar.pest; and its errors in words.

use crate::diagnostic::Diagnostic;
use crate::parsing::{self, Words};
use pest_derive::Parser;

pub use crate::parsing::span;

#[derive(Parser)]
#[grammar = "src/network/grammar.pest"]
struct Grammar;

/// A piece of text that matches a rule.
pub type Pair<'a> = pest::iterators::Pair<'a, Rule>;

const WORDS: Words<Rule> =
    Words { expected, marks: &[",", "(", ")", "->", "||", "|||", "|[", "]|", "*", "#", "*)"], is_operand: |_| false };

/// Parses a whole text.
pub fn parse(text: &str) -> Result<Pair<'_>, Diagnostic> {
    parsing::parse::<Rule, Grammar>(Rule::network, text, &WORDS)
}

/// The parts of a pair, without its keywords.
pub fn parts(pair: Pair) -> impl Iterator<Item = Pair> {
    pair.into_inner().filter(|part| keyword(part.as_rule()).is_none())
}

/// What of these rules could have stood where an error is.
fn expected(rules: &[Rule]) -> Vec<String> {
    let word = |rule: &Rule| match rule {
        Rule::unit | Rule::file => Some("a file or an operator".into()),
        Rule::label | Rule::element | Rule::name | Rule::quoted | Rule::sync => Some("a label".into()),
        Rule::number => Some("a number".into()),
        Rule::EOI => Some("the end".into()),
        other => keyword(*other).map(|keyword| format!("`{keyword}`")),
    };
    rules.iter().filter_map(word).collect()
}

fn keyword(rule: Rule) -> Option<&'static str> {
    Some(match rule {
        Rule::kw_behaviour => "behaviour",
        Rule::kw_hide => "hide",
        Rule::kw_cut => "cut",
        Rule::kw_rename => "rename",
        Rule::kw_par => "par",
        Rule::kw_using => "using",
        Rule::kw_but => "but",
        Rule::kw_in => "in",
        Rule::kw_end => "end",
        Rule::kw_gate => "gate",
        Rule::kw_total => "total",
        Rule::kw_partial => "partial",
        Rule::kw_label => "label",
        _ => return None,
    })
}
