//! Steps of two processes: a sender and a receiver on one channel.
//!
//! There may be many more pairs than transitions, so the text contains each transition only once. The pairs are data, which
//! pairs.cuh reads. Functions for all transitions have a case for each transition, which does its part in any pair.

use super::expression::Scope;
use super::names::Names;
use super::parts::Switch;
use super::steps::{Context, Pair, describe, effects};
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use warpset_model::ir::model::range;
use warpset_model::ir::range::Range;
use warpset_model::ir::{Action, MessageField, Model, Transition, TransitionId};

/// Text that takes the step of a pair, after the tables and functions of [`text`].
const TAKE_PAIR: &str = include_str!("pairs.cuh");

/// Text for a model without pairs.
const NO_PAIRS: &str = "template <class State>
EXPLORE_FN bool take_pair(u32, const State&, State&, Notes&) { return false; }

";

const GUARD: Switch = Switch {
    result: "bool",
    name: "guard_holds",
    parameters: "u32 transition, const State& from, Notes& notes",
    arguments: "transition, from, notes",
    number: "transition",
    begin: "",
    end: "    (void)from, (void)notes;\n    return true;\n",
};

const SEND: Switch = Switch {
    result: "void",
    name: "send",
    parameters: "u32 transition, const State& from, i32* values, Notes& notes",
    arguments: "transition, from, values, notes",
    number: "transition",
    begin: "",
    end: "    (void)from, (void)values, (void)notes;\n",
};

const RECEIVE: Switch = Switch {
    result: "void",
    name: "receive",
    parameters: "u32 transition, const i32* values, State& to, Notes& notes",
    arguments: "transition, values, to, notes",
    number: "transition",
    begin: "",
    end: "    (void)values, (void)to, (void)notes;\n",
};

const CARRY_OUT: Switch = Switch {
    result: "void",
    name: "carry_out",
    parameters: "u32 transition, State& to, Notes& notes",
    arguments: "transition, to, notes",
    number: "transition",
    begin: "",
    end: "    (void)to, (void)notes;\n",
};

/// The text of `take_pair`. It is inside namespace `explore`, as the text around it.
pub fn text(context: Context<'_>, pairs: &[Pair]) -> String {
    let Context { model, names, .. } = context;
    if pairs.is_empty() {
        return NO_PAIRS.into();
    }
    let senders = distinct(pairs.iter().map(|pair| pair.sender));
    let receivers = distinct(pairs.iter().map(|pair| pair.receiver));
    let both = distinct(senders.iter().chain(&receivers).copied());
    let guard = |id| context.guard(id).map(|guard| format!("return {guard};")).into_iter().collect();
    let functions = [
        GUARD.text(&both, |ids| cases(model, ids, guard)),
        SEND.text(&senders, |ids| cases(model, ids, |id| send(model, names, id))),
        RECEIVE.text(&receivers, |ids| cases(model, ids, |id| receive(model, names, id))),
        CARRY_OUT.text(&both, |ids| cases(model, ids, |id| effects(model, names, id))),
    ];
    let tables = tables(model, pairs);
    format!("{tables}{}}}  // namespace explore\n\n{TAKE_PAIR}\nnamespace explore {{\n\n", functions.concat())
}

fn distinct(ids: impl Iterator<Item = TransitionId>) -> Vec<TransitionId> {
    ids.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The data that pairs.cuh reads.
fn tables(model: &Model, pairs: &[Pair]) -> String {
    let values = model.channels.iter().map(|channel| channel.fields.len()).max().unwrap_or(0).max(1);
    let pairs = pairs.iter().map(|pair| format!("{{{}, {}}}", pair.sender, pair.receiver));
    let moves = model.transitions.iter().map(|Transition { process, from, to, .. }| {
        let field = model.layout.locations[*process];
        let mask = (1u64 << field.bits) - 1;
        format!("{{{}, {}, {mask}, {from}, {to}}}", field.bit / 32, field.bit % 32)
    });
    let committed = if model.has_committed_locations() {
        let starts = model.transitions.iter().map(|of| u8::from(model.processes[of.process].locations[of.from].committed));
        array("bool starts_committed[]", 32, starts.map(|bit| bit.to_string()))
            + "EXPLORE_FN bool is_committed(u32 transition) { return starts_committed[transition]; }\n"
    } else {
        "EXPLORE_FN bool is_committed(u32) { return false; }\n".into()
    };
    let [pairs, moves] = [array("u32 pairs[][2]", 12, pairs), array("u32 moves[][5]", 6, moves)];
    format!("constexpr u32 message_values = {values};\n\n{pairs}{moves}{committed}\n")
}

/// A constant array, with `per_line` elements in a line.
fn array(declaration: &str, per_line: usize, elements: impl Iterator<Item = String>) -> String {
    let elements: Vec<String> = elements.collect();
    let lines: String = elements.chunks(per_line).map(|line| format!("    {},\n", line.join(", "))).collect();
    format!("EXPLORE_DATA {declaration} = {{\n{lines}}};\n\n")
}

/// Cases with the statements of transitions. Transitions with equal statements share a case. Such transitions are frequent,
/// because often the value sent is just a number.
fn cases(model: &Model, ids: &[TransitionId], statements: impl Fn(TransitionId) -> Vec<String>) -> String {
    let mut alike: Vec<(Vec<String>, Vec<TransitionId>)> = Vec::new();
    let mut numbers = HashMap::new();
    for id in ids {
        let statements = statements(*id);
        if !statements.is_empty() {
            let number = *numbers.entry(statements.clone()).or_insert(alike.len());
            if number == alike.len() {
                alike.push((statements, Vec::new()));
            }
            alike[number].1.push(*id);
        }
    }
    let mut text = String::new();
    for (statements, ids) in alike {
        ids.iter().for_each(|id| writeln!(text, "    // {}\n    case {id}:", describe(model, *id)).unwrap());
        statements.iter().for_each(|statement| writeln!(text, "        {statement}").unwrap());
        text.push_str("        break;\n");
    }
    text
}

/// Statements of the values that a sender sends.
pub fn send(model: &Model, names: &Names, id: TransitionId) -> Vec<String> {
    let Action::Send { channel, values } = &model.transitions[id].action else { unreachable!("a sender") };
    let scope = Scope { model, names, transition: id, state: "from", shared: None };
    let values = values.iter().zip(&model.channels[*channel].fields).enumerate().map(|(number, (value, field))| {
        let text = match field.ty {
            Some(ty) if !range(model, value).is_in(Range::of_type(ty)) => {
                format!("wrap_noted<{}, {}>({}, notes)", ty.bits, ty.signed, scope.text(value))
            }
            _ => scope.text(value),
        };
        if field.becomes_truth { format!("values[{number}] = ({text}) != 0;") } else { format!("values[{number}] = {text};") }
    });
    values.collect()
}

/// Statements that store the values of a message in a receiver's targets.
pub fn receive(model: &Model, names: &Names, id: TransitionId) -> Vec<String> {
    let Action::Receive { channel, targets } = &model.transitions[id].action else { unreachable!("a receiver") };
    let scope = Scope { model, names, transition: id, state: "to", shared: None };
    let channel = &model.channels[*channel];
    let sent = |number: usize| {
        let values = channel.senders.iter().filter_map(|sender| match &model.transitions[*sender].action {
            Action::Send { values, .. } => values.get(number),
            _ => None,
        });
        match channel.fields[number] {
            MessageField { becomes_truth: true, .. } => Range::TRUTH,
            MessageField { ty: Some(ty), .. } => Range::of_type(ty),
            MessageField { ty: None, .. } => Range::all_of(values.map(|value| range(model, value))),
        }
    };
    let stores =
        targets.iter().enumerate().map(|(number, target)| scope.store(target, &format!("values[{number}]"), sent(number)));
    stores.collect()
}
