//! Nets in generated code: statements for each transition of a small net; for a large one, a text that is the same for all nets
//! and reads tables in memory.

use crate::codegen::parts::Switch;
use std::fmt::Write;
use warpset_model::ir::Model;
use warpset_model::ir::net::{Firing, FiringGroup, Firings, Test};

/// Maximum number of firings for which statements are generated. A compiler takes some milliseconds for each.
const MOST_STATEMENTS: usize = 400;

/// Text that reads the tables.
const BY_TABLES: &str = include_str!("net.cuh");

/// Words of a group, and of a firing before its comparisons.
const GROUP_WORDS: usize = 6;
const FIRING_HEAD: usize = 6;

/// Whether a model has a net whose firings are in tables.
pub fn has_tables(model: &Model) -> bool {
    model.net.as_ref().is_some_and(|net| net.transitions.len() > MOST_STATEMENTS)
}

/// Number of steps that the unit of the net can try; `None` without a net.
pub fn choices(model: &Model) -> Option<u64> {
    model.net.as_ref().map(|net| net.transitions.len() as u64)
}

/// The words of the tables. Groups come first, with 6 words each: the word, mask and value of its comparison; 1 if the masked
/// word must equal the value, 0 if it must be at least the value; its first firing, and the firing behind its last one. Then
/// come, by firing, the place of its data; by transition, its firing, or all ones if it is never enabled; and the data.
///
/// A firing's data begins with six words: the numbers of comparisons for equality, for a least value and for room, and of words
/// that it changes; 1 if it is always a fault; and its transition. The comparisons follow, three words each, and the changes, two
/// words each.
pub fn tables(model: &Model) -> Vec<u32> {
    let Some(net) = model.net.as_ref().filter(|_| has_tables(model)) else { return Vec::new() };
    let Firings { groups, all, of_transition } = Firings::of(net, &model.layout);
    let mut words = Vec::new();
    for FiringGroup { test, is_equal, firings } in &groups {
        let [first, end] = [firings.start, firings.end].map(|at| at as u32);
        words.extend([test.word, test.mask, test.value, u32::from(*is_equal), first, end]);
    }
    let mut place = words.len() + all.len() + of_transition.len();
    for firing in &all {
        words.push(place as u32);
        place += FIRING_HEAD + 3 * (firing.equal.len() + firing.least.len() + firing.most.len()) + 2 * firing.adds.len();
    }
    words.extend(of_transition.iter().map(|firing| firing.unwrap_or(u32::MAX)));
    for Firing { transition, equal, least, most, adds, always_faults } in &all {
        words.extend([equal.len(), least.len(), most.len(), adds.len()].map(|count| count as u32));
        words.extend([u32::from(*always_faults), *transition as u32]);
        let tests = equal.iter().chain(least).chain(most);
        words.extend(tests.flat_map(|test| [test.word, test.mask, test.value]));
        words.extend(adds.iter().flat_map(|(word, add)| [*word, *add]));
    }
    words
}

/// The transition of each firing, in the order of firings.
pub fn transitions(model: &Model) -> Vec<u32> {
    let firings = model.net.as_ref().map(|net| Firings::of(net, &model.layout));
    firings.into_iter().flat_map(|firings| firings.all).map(|firing| firing.transition as u32).collect()
}

/// Text for a model without a net. Code that expands states and takes walks names these functions, and never calls them.
const NO_NET: &str = "namespace explore {

constexpr u32 net_unit = ~0u;

template <class State, class Given, class Give>
EXPLORE_FN void net_steps(const u32*, const State&, Given&, Give&)
{
}

template <class State>
EXPLORE_FN void fire_transition(const u32*, u32, const State&, State&)
{
}

}  // namespace explore

";

/// The code of the firings, in namespace `explore`. For a model without a net, code with the same names that finds none. `unit`
/// is the net's unit.
pub fn text(model: &Model, unit: usize) -> String {
    let Some(net) = &model.net else {
        return NO_NET.into();
    };
    let firings = Firings::of(net, &model.layout);
    let mut text = format!("namespace explore {{\n\nconstexpr u32 net_unit = {unit};\n\n");
    if has_tables(model) {
        let (groups, first) = (firings.groups.len(), firings.groups.len() * GROUP_WORDS);
        writeln!(text, "// Places in the tables.").unwrap();
        writeln!(text, "constexpr u32 net_groups = {groups}, firings_at = {first};").unwrap();
        writeln!(text, "constexpr u32 fireable_at = {};", first + firings.all.len()).unwrap();
        writeln!(text, "constexpr u32 group_words = {GROUP_WORDS}, firing_head = {FIRING_HEAD};\n").unwrap();
        text.push_str("}  // namespace explore\n\n");
        return text + BY_TABLES + "\n";
    }
    for (id, at) in firings.of_transition.iter().enumerate() {
        let test = at.map_or("false".into(), |at| enabled(&firings.all[at as usize], "from"));
        writeln!(
            text,
            "template <class State>\nEXPLORE_FN i32 fireable_{id}(const State& from) {{ (void)from; return {test}; }}\n"
        )
        .unwrap();
    }
    let numbers: Vec<usize> = (0..firings.all.len()).collect();
    let steps = Switch {
        result: "u32",
        name: "steps_of_net",
        parameters: "u32 choice, const State& from, State& to, Notes& notes",
        arguments: "choice, from, to, notes",
        number: "choice",
        begin: "",
        end: "    (void)from, (void)to, (void)notes;\n    return no_step;\n",
    };
    text += &steps.text(&numbers, |numbers| {
        let mut cases = String::new();
        for number in numbers {
            let firing = &firings.all[*number];
            writeln!(cases, "    case {number}:  // {}", comment(model, firing)).unwrap();
            writeln!(cases, "        if (!{}) return no_step;", enabled(firing, "from")).unwrap();
            let room = room(firing);
            if !room.is_empty() {
                let note = format!("note_fault(notes, fault_tokens, {})", firing.transition);
                writeln!(cases, "        if (!({room})) {{ {note}; return no_step; }}").unwrap();
            }
            writeln!(cases, "        {}\n        return a_step;", changes(firing)).unwrap();
        }
        cases
    });
    text.push_str(
        "// Gives the successor by each enabled firing, with the number of its transition.\ntemplate <class State, class Give>\n",
    );
    text.push_str("EXPLORE_FN void net_steps(const u32*, const State& from, Notes& notes, Give& give)\n{\n    (void)notes;\n");
    for FiringGroup { test, is_equal, firings: of_group } in &firings.groups {
        let indent = if of_group.len() > 1 { "    " } else { "" };
        if of_group.len() > 1 {
            writeln!(text, "    if ({}) {{", comparison(test, if *is_equal { "==" } else { ">=" }, "from")).unwrap();
        }
        for firing in &firings.all[of_group.clone()] {
            let (room, changes) = (room(firing), changes(firing));
            let give = format!("State& to = give.row(); {changes} give.done({});", firing.transition);
            let body = if room.is_empty() {
                give
            } else {
                format!("if ({room}) {{ {give} }} else note_fault(notes, fault_tokens, {});", firing.transition)
            };
            writeln!(text, "{indent}    if ({}) {{ {body} }}  // {}", enabled(firing, "from"), comment(model, firing)).unwrap();
        }
        if of_group.len() > 1 {
            text.push_str("    }\n");
        }
    }
    text.push_str("}\n\n");
    text.push_str(
        "// Changes `to`, which equals `from`, by an enabled transition, for which there is room.\ntemplate <class State>\n",
    );
    text.push_str("EXPLORE_FN void fire_transition(const u32*, u32 transition, const State& from, State& to)\n{\n");
    text.push_str("    (void)from;\n    switch (transition) {\n");
    for firing in &firings.all {
        writeln!(text, "    case {}: {} return;", firing.transition, changes(firing)).unwrap();
    }
    text.push_str("    }\n}\n\n}  // namespace explore\n\n");
    text
}

/// Name of a transition for readers of the text.
fn comment(model: &Model, firing: &Firing) -> String {
    let is_plain = |c: char| c.is_ascii_graphic() && c != '\\' || c == ' ';
    model.firing_name(firing.transition).chars().map(|c| if is_plain(c) { c } else { '?' }).collect()
}

fn comparison(test: &Test, operator: &str, state: &str) -> String {
    if test.mask == 0 {
        return if operator == "==" { format!("{}", test.value == 0) } else { "true".into() };
    }
    format!("({state}.words[{}] & {:#x}u) {operator} {:#x}u", test.word, test.mask, test.value)
}

/// The condition that a firing is enabled, with brackets.
fn enabled(firing: &Firing, state: &str) -> String {
    let equal = firing.equal.iter().map(|test| comparison(test, "==", state));
    let least = firing.least.iter().map(|test| comparison(test, ">=", state));
    let all: Vec<String> = equal.chain(least).collect();
    if all.is_empty() { "(true)".into() } else { format!("({})", all.join(" && ")) }
}

/// The condition that all fields have room; empty if they always have.
fn room(firing: &Firing) -> String {
    if firing.always_faults {
        return "false".into();
    }
    firing.most.iter().map(|test| comparison(test, "<=", "from")).collect::<Vec<_>>().join(" && ")
}

/// Statements that change `to`.
fn changes(firing: &Firing) -> String {
    firing.adds.iter().map(|(word, add)| format!("to.words[{word}] += {add:#x}u; ")).collect::<String>().trim_end().into()
}
