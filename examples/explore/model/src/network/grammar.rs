//! The parser, generated from grammars/src/network.pest, and the wording of its errors.

use crate::diagnostic::Diagnostic;
use crate::ir::Span;
use crate::parsing::{self, Words, is_name_character};
use warpset_grammars::network::Grammar;

pub use crate::parsing::span;
pub use warpset_grammars::network::Rule;

/// A piece of text that matches a rule.
pub type Pair<'a> = pest::iterators::Pair<'a, Rule>;

const WORDS: Words<Rule> = Words {
    expected,
    marks: &[",", "(", ")", "->", "||", "|||", "|[", "]|", "*", "#", "*)"],
    is_operand: |_| false,
    hint: |_| None,
    reserved: |_| None,
    is_dve: false,
};

/// Names of operators that are not supported: operators of EXP, and operators that EXP has from other languages.
const FOREIGN: [&str; 14] = [
    "allow", "block", "ccs", "comm", "csp", "elotos", "encap", "generic", "merge", "mcrl", "prio", "priority", "relabel",
    "restrict",
];

/// Supported marks. A mark comes before its own prefixes.
const SIGNS: [&str; 13] = ["|||", "||", "|[", "]|", "->", "(", ")", ",", "#", "*", "!", "?", "_"];

/// Marks of operators that are not supported.
const FOREIGN_SIGNS: [&str; 9] = ["[|", "|]", "[[", "[]", "[>", ">>", "\\", "|", "+"];

/// Parses a whole text. The error for an EXP operator that is not supported names the operator.
pub fn parse(text: &str) -> Result<Pair<'_>, Diagnostic> {
    parsing::parse::<Rule, Grammar>(Rule::network, text, &WORDS).map_err(|error| refused(text, error.span).unwrap_or(error))
}

/// Returns an error for the first unsupported operator at or before the place of `error`, if there is one.
fn refused(text: &str, error: Span) -> Option<Diagnostic> {
    let mut at = 0;
    while at <= error.start as usize {
        let rest = text.get(at..)?;
        let first = rest.chars().next()?;
        let to = |end: Option<usize>| end.unwrap_or(rest.len());
        let word = rest.len() - rest.trim_start_matches(|c: char| is_name_character(c) || "./~".contains(c)).len();
        let length = match first {
            '"' => to(rest[1..].find(['"', '\n']).map(|end| end + 2)),
            _ if rest.starts_with("--") => to(rest.find('\n')),
            _ if rest.starts_with("(*") => to(rest.find("*)").map(|end| end + 2)),
            _ if word > 0 => word,
            _ => match SIGNS.iter().chain(&FOREIGN_SIGNS).find(|sign| rest.starts_with(**sign)) {
                Some(sign) => sign.len(),
                None => first.len_utf8(),
            },
        };
        let token = &rest[..length];
        if FOREIGN.contains(&token) || FOREIGN_SIGNS.contains(&token) {
            let message = format!("the operator `{token}` is not supported");
            let span = parsing::span_of(text, at, at + length);
            return Some(Diagnostic::new(span, message, "supported: par, |||, ||, |[ ]|, hide, cut, rename"));
        }
        at += length;
    }
    None
}

/// The parts of a pair that are not keywords.
pub fn parts(pair: Pair) -> impl Iterator<Item = Pair> {
    pair.into_inner().filter(|part| keyword(part.as_rule()).is_none())
}

/// Describes the rules that could have matched at the place of an error, where a description exists.
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
