//! Steps of two processes: a sender and a receiver on one channel.
//!
//! There may be many more pairs than transitions, so the text contains each transition only once. The pairs are data. A function
//! for all transitions has a case for each transition, which does its part in any pair.

use super::expression::Scope;
use super::names::Names;
use super::parts::Switch;
use super::steps::{Context, Pair, describe, effects};
use std::collections::HashMap;
use std::fmt::Write;
use warpset_model::ir::model::range;
use warpset_model::ir::range::Range;
use warpset_model::ir::{Action, MessageField, Model, Transition, TransitionId};

/// The text of `take_pair`.
pub fn text(context: Context<'_>, pairs: &[Pair]) -> String {
    let Context { model, names, .. } = context;
    let mut text = String::new();
    if pairs.is_empty() {
        return "template <class State>\nEXPLORE_FN bool take_pair(u32, const State&, State&, Notes&) { return false; }\n\n"
            .into();
    }
    let rows = pairs.iter().map(|pair| format!("{{{}, {}}}", pair.sender, pair.receiver));
    let rows: Vec<String> = rows.collect();
    writeln!(text, "// Sender and receiver of each pair.\nEXPLORE_DATA u32 pairs[][2] = {{").unwrap();
    for row in rows.chunks(12) {
        writeln!(text, "    {},", row.join(", ")).unwrap();
    }
    text.push_str("};\n\n");
    text.push_str(
        "// Of each transition: word of its process's location, lowest bit there, mask, and where it leads from and to.\n",
    );
    text.push_str("EXPLORE_DATA u32 moves[][5] = {\n");
    let moves = model.transitions.iter().map(|Transition { process, from, to, .. }| {
        let field = model.layout.locations[*process];
        let mask = (1u64 << field.bits) - 1;
        format!("{{{}, {}, {mask}, {from}, {to}}}", field.bit / 32, field.bit % 32)
    });
    for row in moves.collect::<Vec<_>>().chunks(6) {
        writeln!(text, "    {},", row.join(", ")).unwrap();
    }
    text.push_str("};\n\n");
    if model.has_committed_locations() {
        let committed = model.transitions.iter().map(|t| u8::from(model.processes[t.process].locations[t.from].committed));
        let committed = committed.map(|bit| bit.to_string()).collect::<Vec<_>>().join(", ");
        writeln!(
            text,
            "// Whether each transition starts in a committed location.\nEXPLORE_DATA bool is_committed[] = {{{committed}}};\n"
        )
        .unwrap();
    }
    let mut senders: Vec<TransitionId> = pairs.iter().map(|pair| pair.sender).collect();
    let mut receivers: Vec<TransitionId> = pairs.iter().map(|pair| pair.receiver).collect();
    for ids in [&mut senders, &mut receivers] {
        ids.sort_unstable();
        ids.dedup();
    }
    let mut both = [&senders[..], &receivers[..]].concat();
    both.sort_unstable();
    let fields = model.channels.iter().map(|channel| channel.fields.len()).max().unwrap_or(0).max(1);
    let cases = |ids: &[TransitionId], statements: &dyn Fn(TransitionId) -> Vec<String>| {
        // Transitions with equal statements share a case. Such transitions are frequent, because often the value sent is just a
        // number.
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
    };
    let number = "transition";
    let is_enabled = Switch {
        result: "bool",
        name: "is_enabled",
        parameters: "u32 transition, const State& from, Notes& notes",
        arguments: "transition, from, notes",
        number,
        begin: "    const u32* const move = moves[transition];\n    if ((from.template select<0, state_words>(move[0]) >> move[1] & \
                move[2]) != move[3]) return false;\n",
        end: "    (void)notes;\n    return true;\n",
    };
    let guard = |id| context.guard(id).map(|guard| format!("return {guard};")).into_iter().collect();
    text += &is_enabled.text(&both, |ids| cases(ids, &guard));
    let sends = Switch {
        result: "void",
        name: "send",
        parameters: "u32 transition, const State& from, i32* values, Notes& notes",
        arguments: "transition, from, values, notes",
        number,
        begin: "",
        end: "    (void)from, (void)values, (void)notes;\n",
    };
    text += &sends.text(&senders, |ids| cases(ids, &|id| send(model, names, id)));
    let receives = Switch {
        result: "void",
        name: "receive",
        parameters: "u32 transition, const i32* values, State& to, Notes& notes",
        arguments: "transition, values, to, notes",
        number,
        begin: "",
        end: "    (void)values, (void)to, (void)notes;\n",
    };
    text += &receives.text(&receivers, |ids| cases(ids, &|id| receive(model, names, id)));
    let acts = Switch {
        result: "void",
        name: "act",
        parameters: "u32 transition, State& to, Notes& notes",
        arguments: "transition, to, notes",
        number,
        begin: "    const u32* const move = moves[transition];\n    const u32 word = to.template select<0, state_words>(move[0]);\n    \
                to.template replace<0, state_words>(move[0], (word & ~(move[2] << move[1])) | move[4] << move[1]);\n",
        end: "    (void)notes;\n",
    };
    text += &acts.text(&both, |ids| cases(ids, &|id| effects(model, names, id)));
    let function = |head: &str, body: &str| format!("template <class State>\nEXPLORE_FN {head}\n{{\n{body}}}\n\n");
    let committed = if model.has_committed_locations() {
        "    if (!is_committed[sides[0]] && !is_committed[sides[1]] && any_committed(from)) return false;\n"
    } else {
        ""
    };
    text += &function(
        "bool take_pair(u32 pair, const State& from, State& to, Notes& notes)",
        &format!(
            "    const u32* const sides = pairs[pair];\n    EXPLORE_NO_UNROLL\n    for (u32 side = 0; side < 2; ++side)\n        if \
             (!is_enabled(sides[side], from, notes)) return false;\n{committed}    i32 values[{fields}] = {{}};\n    send(sides[0], from, \
             values, notes);\n    receive(sides[1], values, to, notes);\n    EXPLORE_NO_UNROLL\n    for (u32 side = 2; side-- > 0;) \
             act(sides[side], to, notes);\n    return true;\n"
        ),
    );
    text
}

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
