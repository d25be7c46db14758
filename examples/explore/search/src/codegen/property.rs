//! The moves of a property automaton, for products (`ir::property`).
//!
//! A product step is a step of the processes joined with a move. The moves of a state are found once. Each successor that the
//! processes make is joined with each of these moves.

use super::expression::Scope;
use super::names::Names;
use std::fmt::Write;
use warpset_model::ir::Model;

const NONE: &str = "\
constexpr u32 property_moves = 0;

template <class State>
EXPLORE_FN void find_moves(const u32*, const State&, Numbers<property_moves>&, Notes&) {}

template <class State>
EXPLORE_FN void move_property(i32, u32, State&) {}

template <class State>
EXPLORE_FN i32 property_location(const State&) { return 0; }

";

/// Generates `property_moves`, `find_moves`, `move_property` and `property_location`. Without a property there are no moves, and
/// these functions do nothing.
///
/// Faults of guards are attributed to "transition" `first_fault` + the move's number.
pub fn text(model: &Model, names: &Names, first_fault: usize) -> String {
    let mut text = String::from("// Most moves of the property's automaton from a location; 0 if there is no property.\n");
    let Some(property) = &model.property else {
        text.push_str(NONE);
        return text;
    };
    let (process, most) = (names.process(property.process), property.most_moves().max(1));
    writeln!(text, "constexpr u32 property_moves = {most};\n").unwrap();
    text.push_str(
        "template <class State>\n\
         EXPLORE_FN void find_moves(const u32* tables, const State& from, Numbers<property_moves>& found, Notes& notes)\n{\n",
    );
    writeln!(text, "    switch (at_{process}(from)) {{").unwrap();
    for (location, leaving) in property.leaving.iter().enumerate() {
        writeln!(text, "    case {location}:").unwrap();
        for (bit, number) in leaving.iter().enumerate() {
            let of = &property.moves[*number];
            let scope = Scope { model, names, transition: first_fault + number, state: "from", shared: None };
            let guard = of.guard.as_ref().map(|guard| format!("if ({}) ", scope.text(guard)));
            writeln!(text, "        {}found.add({bit});", guard.unwrap_or_default()).unwrap();
        }
        text.push_str("        break;\n");
    }
    text.push_str("    }\n    (void)tables, (void)notes;\n}\n\n");
    text.push_str("// Where the moves lead, by location.\nEXPLORE_DATA u32 move_targets[][property_moves] = {\n");
    for leaving in &property.leaving {
        let targets = leaving.iter().map(|number| property.moves[*number].to.to_string());
        let targets: Vec<String> = targets.chain(std::iter::repeat("0".into())).take(most).collect();
        writeln!(text, "    {{{}}},", targets.join(", ")).unwrap();
    }
    text.push_str("};\n\n// Takes a move from a location in a successor by the processes.\n");
    text.push_str("template <class State>\nEXPLORE_FN void move_property(i32 location, u32 move, State& to)\n{\n");
    writeln!(text, "    move_{process}(to, move_targets[location][move]);\n}}\n").unwrap();
    writeln!(
        text,
        "template <class State>\nEXPLORE_FN i32 property_location(const State& state) {{ return at_{process}(state); }}\n"
    )
    .unwrap();
    text
}
