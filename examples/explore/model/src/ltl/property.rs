//! Gives a model the automaton of a property, which comes from a formula, a file or the model's own property process.

use super::buchi::{Buchi, Cube, Label, MOST_PROPOSITIONS};
use super::formula::{Formula, Names, Proposition, parse};
use super::hoa::{self, Named};
use super::translate::translate;
use crate::diagnostic::Diagnostic;
use crate::ir::expression::{Binary, Unary};
use crate::ir::property::Move;
use crate::ir::{Expression, Model, Property, Source, Span};
use crate::language::Text;
use crate::warnings::Warning;
use anyhow::{Context, Result, ensure};
use std::collections::HashMap;

/// Receives warnings about parts of a text that are not computed as they are written.
pub type Warn<'a> = dyn FnMut(&Source, &[Warning]) + 'a;

/// Gives the model the automaton of the runs that violate a formula.
pub fn set_formula(model: &mut Text, source: &Source, warn: &mut Warn) -> Result<Named> {
    let names = Names { is_variable: &|name| model.has_variable(name), is_process: &|name| model.has_process(name) };
    let (formula, propositions) = parse(source, &names).map_err(|error| Box::new(error.of(source)))?;
    // Only parts of other propositions are no propositions of the automaton.
    let used = formula.used_propositions();
    if let Some(first) = used.get(MOST_PROPOSITIONS) {
        let message = format!("the formula has {} propositions, but at most {MOST_PROPOSITIONS} are possible", used.len());
        return Err(Box::new(Diagnostic::new(propositions[*first].span, message, "one too many").of(source)).into());
    }
    let all = all_conditions(model, source, &propositions, warn)?;
    let text = |of: &Proposition| of.of.as_ref().map_or(source.piece(of.span), |_| &of.words).to_string();
    let new: HashMap<usize, usize> = used.iter().enumerate().map(|(new, old)| (*old, new)).collect();
    let formula = formula.with(&|number| Formula::Proposition(new[&number]));
    let spans = used.iter().map(|number| propositions[*number].span).collect();
    let conditions: Vec<Expression> = used.iter().map(|number| all[*number].clone()).collect();
    let propositions = used.iter().map(|number| text(&propositions[*number])).collect();
    let formula = formula.with(&|number| match conditions[number] {
        Expression::Constant(value) => Formula::Constant(value != 0),
        _ => Formula::Proposition(number),
    });
    let buchi = translate(&formula.negated()).context("--ltl")?;
    let states = (0..buchi.accepting.len()).map(|number| format!("q{number}")).collect();
    set(model.model_mut(), Named { buchi, propositions, spans, states }, &conditions)
}

/// The conditions that the propositions of a formula are.
fn all_conditions(model: &Text, source: &Source, propositions: &[Proposition], warn: &mut Warn) -> Result<Vec<Expression>> {
    let mut all: Vec<Expression> = Vec::new();
    for Proposition { span, of, .. } in propositions {
        let condition = match of {
            Some(of) => of_state(of, &all),
            None => conditions(model, source, &[source.piece(*span).into()], &[*span], warn)?.remove(0),
        };
        all.push(condition);
    }
    Ok(all)
}

/// The condition that a formula without temporal operators is.
fn of_state(formula: &Formula, conditions: &[Expression]) -> Expression {
    let both = |operator, of: &[Formula; 2]| {
        let [left, right] = [0, 1].map(|side| of_state(&of[side], conditions));
        Expression::binary(operator, left, right, Span::default())
    };
    match formula {
        Formula::Constant(truth) => Expression::Constant((*truth).into()),
        Formula::Proposition(number) => conditions[*number].clone(),
        Formula::Not(of) => Expression::unary(Unary::Not, of_state(of, conditions)),
        Formula::And(of) => both(Binary::And, of),
        Formula::Or(of) => both(Binary::Or, of),
        Formula::Next(_) | Formula::Until(_) | Formula::Release(_) => unreachable!("the formula is about one state"),
    }
}

/// Gives a model the automaton of the runs that violate a formula over these conditions.
pub fn set_conditions(model: &mut Model, formula: &Formula, conditions: &[Expression]) -> Result<()> {
    let formula = formula.with(&|number| match conditions[number] {
        Expression::Constant(value) => Formula::Constant(value != 0),
        _ => Formula::Proposition(number),
    });
    let buchi = translate(&formula.negated())?;
    let states = (0..buchi.accepting.len()).map(|number| format!("q{number}")).collect();
    let propositions = (0..conditions.len()).map(|number| format!("p{number}")).collect();
    let spans = vec![Span::default(); conditions.len()];
    set(model, Named { buchi, propositions, spans, states }, conditions).map(drop)
}

/// Gives the model the automaton from a text in the HOA format.
pub fn set_automaton(model: &mut Text, source: &Source, warn: &mut Warn) -> Result<Named> {
    let named = hoa::read(source).map_err(|error| Box::new(error.of(source)))?;
    let conditions = conditions(model, source, &named.propositions, &named.spans, warn)?;
    set(model.model_mut(), named, &conditions)
}

/// Reads propositions as conditions. `spans` are their places in the source.
pub fn conditions(
    model: &Text,
    source: &Source,
    propositions: &[String],
    spans: &[Span],
    warn: &mut Warn,
) -> Result<Vec<Expression>> {
    let mut conditions = Vec::new();
    for (text, span) in propositions.iter().zip(spans) {
        // Parses the condition alone. If that gives an error or a warning, parses it again after blanks that put it at its
        // original position, so that the message points to the right place. A condition with escapes differs from the source, so
        // its messages show the unescaped condition instead.
        let read = model.condition(&Source { name: source.name.clone(), text: text.clone() });
        if let Ok((condition, warnings)) = read
            && warnings.is_empty()
        {
            conditions.push(condition);
            continue;
        }
        let is_written = source.piece(*span) == text;
        let before = &source.text[..span.start as usize];
        let blank = |c: char| if c == '\n' { "\n".into() } else { " ".repeat(c.len_utf8()) };
        let before: String = if is_written { before.chars().map(blank).collect() } else { String::new() };
        let alone = Source { name: source.name.clone(), text: before + text };
        let shown = if is_written { source } else { &alone };
        let (condition, of_condition) = model.condition(&alone).map_err(|mut error| {
            error.source = shown.clone();
            error
        })?;
        warn(shown, &of_condition);
        conditions.push(condition);
    }
    Ok(conditions)
}

/// Gives the model an automaton whose propositions are these conditions. Returns the automaton.
fn set(model: &mut Model, named: Named, conditions: &[Expression]) -> Result<Named> {
    let buchi = &named.buchi;
    let moves = buchi.edges.iter().enumerate().flat_map(|(from, edges)| edges.iter().map(move |(label, to)| (from, label, *to)));
    let moves = moves.map(|(from, label, to)| Move { from, to, guard: guard(label, conditions), span: Span::default() });
    let moves = moves.filter(|of| of.guard != Some(Expression::Constant(0))).collect();
    model.set_property("automaton".into(), named.states.clone(), buchi.initial, buchi.accepting.clone(), moves)?;
    Ok(named)
}

/// The guard for a label; `None` if it is always true.
fn guard(label: &Label, conditions: &[Expression]) -> Option<Expression> {
    let literal = |number: usize, cube: &Cube| match (cube.positive >> number & 1, cube.negative >> number & 1) {
        (1, _) => Some(conditions[number].clone()),
        (_, 1) => Some(Expression::unary(Unary::Not, conditions[number].clone())),
        _ => None,
    };
    let cube = |cube: &Cube| {
        let literals = (0..conditions.len()).filter_map(|number| literal(number, cube)).collect();
        balanced(literals, Binary::And).unwrap_or(Expression::Constant(1))
    };
    balanced(label.0.iter().map(cube).collect(), Binary::Or).filter(|guard| !matches!(guard, Expression::Constant(1)))
}

/// Joins all parts by the operator, as a tree of least depth.
fn balanced(mut parts: Vec<Expression>, operator: Binary) -> Option<Expression> {
    if parts.len() <= 1 {
        return parts.pop();
    }
    let right = balanced(parts.split_off(parts.len() / 2), operator)?;
    Some(Expression::binary(operator, balanced(parts, operator)?, right, Span::default()))
}

/// The automaton of the model's property process. Each guard becomes a proposition.
pub fn of_process(model: &Model, property: &Property) -> Named {
    let process = &model.processes[property.process];
    let mut named =
        Named { states: process.locations.iter().map(|location| location.name.clone()).collect(), ..Named::default() };
    named.buchi = Buchi {
        initial: process.initial,
        accepting: property.accepting.clone(),
        edges: vec![Vec::new(); process.locations.len()],
    };
    for of in &property.moves {
        let cube = if of.is_unguarded() {
            Cube::TRUE
        } else {
            let text = model.source.in_one_line(of.span);
            let known = named.propositions.iter().position(|known| *known == text);
            Cube::of(
                known.unwrap_or_else(|| {
                    named.propositions.push(text);
                    named.propositions.len() - 1
                }) % MOST_PROPOSITIONS,
                true,
            )
        };
        named.buchi.edges[of.from].push((Label::of([cube]), of.to));
    }
    named
}

/// Checks that each guard of the model's own automaton, read as a condition on its own, has the meaning that it has in the model.
pub fn ensure_is_said(model: &Text) -> Result<()> {
    let of = model.model();
    let property = of.property.as_ref().context("the model has a property")?;
    for (guard, span) in property.moves.iter().filter_map(|of| Some((of.guard.as_ref()?, of.span))) {
        let text = of.source.in_one_line(span);
        let alone = model.condition(&Source { name: String::new(), text: text.clone() });
        ensure!(
            matches!(alone, Ok((alone, _)) if alone.means(guard)),
            "--emit-buchi: the guard `{text}` uses a name of process {} itself, which a file cannot refer to",
            of.processes[property.process].name
        );
    }
    Ok(())
}
