//! The parser, generated from grammars/src/dve.pest, and the wording of its errors.

use crate::diagnostic::Diagnostic;
use crate::parsing::{self, Unexpected, Words, is_name_character};
use pest::Parser as _;
use warpset_grammars::dve::Grammar;

pub use crate::parsing::{join, span};
pub use warpset_grammars::dve::Rule;

/// A piece of text that matches a rule.
pub type Pair<'a> = pest::iterators::Pair<'a, Rule>;

const WORDS: Words<Rule> = Words {
    expected,
    hint,
    marks: &[";", ",", "{", "}", "[", "]", "(", ")", "=", "->", "=>", ":", "!", "?", "*/"],
    is_operand: |rules| rules.contains(&Rule::number),
    reserved: |word| Grammar::parse(Rule::keyword, word).is_ok().then_some(parsing::ANOTHER_NAME),
    is_dve: true,
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

/// Advice for what users of C, Promela, DIVINE 3 or a formula write: their types, words and operators, and marks that separate
/// lists.
fn hint(at: &Unexpected<Rule>) -> Option<&'static str> {
    let Unexpected { before, rest, word, rules } = *at;
    let types = ["bool", "boolean", "bit", "char", "short", "long", "unsigned", "integer", "Integer", "Boolean", "Byte"];
    let promela = ["active", "atomic", "chan", "d_step", "inline", "mtype", "never", "proctype", "typedef"];
    let (is_infix, is_operand) = (rules.contains(&Rule::add), rules.contains(&Rule::number));
    let (last, next) = (before.trim_end(), rest[word.len()..].trim_start());
    let is_behind = |mark: &str| last.ends_with(mark);
    let is_step = (!word.is_empty() && next.starts_with("->")) || (rest.starts_with("->") && !is_infix);
    let is_assignment = !word.is_empty() && (next.starts_with('[') || next.starts_with('=') && !next.starts_with("=="));
    let is_in_effect = || before.rsplit_once("effect").is_some_and(|(_, assignments)| !assignments.contains(['{', '}']));
    Some(match word {
        _ if types.contains(&word) => "the types are `byte` (0 to 255) and `int` (-32768 to 32767); 0 is false, 1 is true",
        _ if is_step && (is_behind("}") || is_behind(";")) => "commas separate transitions; `;` ends the last one",
        _ if is_assignment && is_behind(";") && is_in_effect() => "commas separate assignments: effect x = 1, y = 2;",
        "property" if next.starts_with("process") => {
            "DIVINE 3's syntax: write `process NAME`, and `system async property NAME;` at the end (docs/dve.md, DIVINE 3)"
        }
        "input" if !is_infix && (next.starts_with("byte") || next.starts_with("int")) => {
            "DIVINE 3's syntax: write a variable, and a transition for each of its first values (docs/dve.md, DIVINE 3)"
        }
        "channel" if rules.contains(&Rule::kw_trans) => {
            "DIVINE 3's syntax: declare channels before the processes, with names of their own (docs/dve.md, DIVINE 3)"
        }
        _ if promela.contains(&word) => "a word of Promela: docs/languages.md has a table of what to write in DVE",
        _ if rest.starts_with("++") || rest.starts_with("--") || (before.ends_with('+') && rest.starts_with('+')) => {
            "there is no `++` or `--`: write x = x + 1"
        }
        "guard" | "sync" if is_behind(";") && is_in_part(before) => "the order is guard, sync, effect",
        _ if rest.starts_with('(') && is_behind("assert") => "an assertion is about a state: assert STATE: CONDITION;",
        _ if is_behind_name(last, "assert") => "an assertion is about a state: assert STATE: CONDITION;",
        _ if rest.starts_with('(') && is_behind_name(last, "process") => {
            "a process has no parameters: `process P[id < n]` is n processes"
        }
        _ if rest.starts_with('[') && is_behind_name(last, "sync") => {
            "channels cannot be indexed, and `[N]` is their capacity: declare a channel for each index (docs/languages.md, Promela)"
        }
        // The parser takes the minus sign of `->` for an operator.
        _ if is_operand && before.ends_with('-') && rest.starts_with('>') => "an implication is written `imply`",
        _ if is_infix && rest.starts_with('=') => "a comparison is written `==`",
        _ if before.ends_with('=') && !before.ends_with("==") && rest.starts_with('=') => "an assignment is written `=`",
        _ if rest.starts_with(',') && is_in_index(before) => "an element of an array of two dimensions is a[i][j]",
        _ if is_infix && rest.starts_with('(') => match last.rsplit(|c: char| !is_name_character(c)).next() {
            Some("len" | "full" | "empty" | "nfull" | "nempty") => {
                "conditions cannot look into a channel: count its messages in a variable"
            }
            _ => "there is no function of this name",
        },
        _ if is_behind("?") && rest.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
            "a receive stores into variables: test them in the next state, which may be committed"
        }
        _ => return None,
    })
}

/// Whether a text ends within a transition, behind one of its parts.
fn is_in_part(before: &str) -> bool {
    let inside = before.rsplit_once("->").map_or("", |(_, transition)| transition);
    inside.contains('{') && (inside.contains("effect") || inside.contains("sync"))
}

/// Whether a text ends with a word and a name.
fn is_behind_name(before: &str, word: &str) -> bool {
    before.split_whitespace().nth_back(1) == Some(word) && before.ends_with(is_name_character)
}

/// Whether a text ends inside the brackets of an index.
fn is_in_index(before: &str) -> bool {
    let mut closed = 0;
    for mark in before.chars().rev() {
        match mark {
            ']' => closed += 1,
            '[' if closed == 0 => return true,
            '[' => closed -= 1,
            ';' | '{' | '}' => return false,
            _ => {}
        }
    }
    false
}

/// Whether a word of characters that names may have is a name: neither a keyword nor empty, and it does not begin with a digit.
pub fn is_name(word: &str) -> bool {
    Grammar::parse(Rule::name, word).is_ok()
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
