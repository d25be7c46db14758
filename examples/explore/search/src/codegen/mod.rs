//! Translation of a model to C++: its next-state functions, for NVRTC and for the system's compiler.
//!
//! The steps of a state are numbered by *units* and *choices*. A unit has the steps of a process: those that it takes alone or as
//! a sender. Choice c of a unit in a state is the c-th step that the process can try from its location:
//!
//! ```text
//! template <class State>
//! bool step(u32 unit, u32 choice, Cursor& cursor, const State& from, State& to, Notes& notes)
//! ```
//!
//! changes `to`, which the caller must have made equal to `from`, to the successor by that choice, and returns true. If there is
//! no such successor, `to` stays unchanged, and the result is false. All units with all choices below `choices(unit)` give all
//! steps of a state, each once. Threads that try the same choice in different states run the same code, except where the process
//! is in different locations. So the 32 states of a warp should be expanded together.
//!
//! Units from `first_component` on are components of a network (network.rs). Their choices must be tried in order, by one cursor
//! for a state and a unit. Once `cursor.more()` is false, no further choice gives a step. All tables are data ([`tables`]); the
//! cursor has their address.
//!
//! The last unit of a model with a net has the firings of its transitions (net.rs).
//!
//! Check `notes.fault` after each call, whatever it returns. `violated` returns which of the conditions fail in a state.
//!
//! The text begins with state.cuh. The names of its functions contain the names of the model, and a comment at each choice gives
//! the source lines of its transitions.

mod expression;
mod names;
mod net;
mod network;
pub mod on_cpu;
mod pairs;
mod parts;
mod property;
mod reduction;
#[cfg(test)]
mod reduction_tests;
mod shared;
mod steps;
#[cfg(test)]
pub mod tests;

use expression::Scope;
use names::Names;
pub use reduction::Choosing;
use reduction::Reduction;
use shared::Shared;
use std::fmt::Write;
use steps::Context;
use warpset_model::ir::{Expression, Model};

/// Returns an error with the numbers if a model is too large to generate code for its steps.
pub fn ensure_fits(model: &Model) -> anyhow::Result<()> {
    steps::ensure_fits(model)?;
    network::ensure_fits(model)
}

/// Words of a model's tables: the tables of its network or of its large net, then the tables of a reduction. Empty if the model
/// has none of these.
pub fn tables(model: &Model, choosing: Option<Choosing>) -> Vec<u32> {
    let mut words = if model.net.is_some() { net::tables(model) } else { network::tables(model) };
    if let Some(choosing) = choosing {
        words.extend(Reduction::of(model, choosing, words.len()).words);
    }
    words
}

const PRELUDE: &str = include_str!("state.cuh");

/// Definitions for walks, which follow the generated text.
pub const WALK: &str = include_str!("walk.cuh");

/// Generates the next-state functions of a model, in namespace `explore`, and the function `violated`, which finds the
/// conditions with the value 0 and is called for every state. With `choosing`, also generates the code that chooses the steps
/// of a reduced search.
pub fn generate(model: &Model, conditions: &[&Expression], choosing: Option<Choosing>) -> String {
    let reduction = choosing.map(|choosing| Reduction::of(model, choosing, tables(model, None).len()));
    let names = Names::new(model);
    let mut source = String::from(PRELUDE);
    let (mut choices, mut pairs) = (Vec::new(), Vec::new());
    writeln!(
        source,
        "\nnamespace explore {{\n\nconstexpr u32 state_words = {};\n\n}}  // namespace explore\n",
        model.layout.words
    )
    .unwrap();
    // The cursor of a large net goes through its firings; all other nets have none.
    if !net::has_tables(model) {
        source.push_str(&network::text(model));
    }
    source.push_str(&net::text(model, model.processes.len()));
    source.push_str(reduction.as_ref().map_or("", |reduction| &reduction.text));
    source.push_str("namespace explore {\n\n");
    fields(model, &names, &mut source);
    let shared = &Shared::of_guards(model);
    for (number, condition) in shared.conditions.iter().enumerate() {
        let scope = Scope { model, names: &names, transition: 0, state: "from", shared: None };
        let text = scope.text(condition);
        writeln!(
            source,
            "template <class State>\nEXPLORE_OUT_OF_LINE i32 shared_{number}(const State from) {{ return {text}; }}\n"
        )
        .unwrap();
    }
    let context = Context { model, names: &names, shared };
    for process in 0..model.processes.len() {
        let (text, most) = steps::of_process(context, process, &mut pairs);
        choices.push(most);
        source.push_str(&text);
    }
    source.push_str(&pairs::text(context, &pairs));
    dispatch(model, &names, &choices, &mut source);
    violations(model, &names, conditions, &mut source);
    source.push_str(&property::text(model, &names, model.transitions.len() + conditions.len()));
    source.push_str(reduction.as_ref().map_or("", |reduction| &reduction.functions));
    source.push_str("}  // namespace explore\n");
    source
}

/// Text for a CPU's walks, which follows the text of [`generate`]: the function `every_step`, if the model has one.
pub fn walks(model: &Model) -> String {
    let context = Context { model, names: &Names::new(model), shared: &Shared::of_guards(model) };
    let of_processes = if model.network.is_some() || model.net.is_some() { None } else { steps::all_at_once(context) };
    let at_once = |text| format!("#define EXPLORE_AT_ONCE\n\nnamespace explore {{\n\n{text}}}  // namespace explore\n");
    format!("#define EXPLORE_WALKS\n{}", of_processes.map_or(String::new(), at_once))
}

/// Generates the function `holds_condition`, which follows the text of [`generate`]: whether one of these conditions, by its
/// number, holds in a state.
pub fn numbered_conditions(model: &Model, conditions: &[Expression]) -> String {
    let names = Names::new(model);
    let mut text = String::from("namespace explore {\n\ntemplate <class State>\n");
    text.push_str("EXPLORE_FN bool holds_condition(const u32* tables, u32 number, const State& from, Notes& notes)\n{\n");
    text.push_str("    (void)tables, (void)from, (void)notes;\n    switch (number) {\n");
    for (number, condition) in conditions.iter().enumerate() {
        let transition = model.transitions.len() + number;
        let scope = Scope { model, names: &names, transition, state: "from", shared: None };
        writeln!(text, "    case {number}: return {} != 0;", scope.text(condition)).unwrap();
    }
    text.push_str("    default: return false;\n    }\n}\n\n}  // namespace explore\n");
    text
}

/// Generates readers and writers of locations and variables.
fn fields(model: &Model, names: &Names, to: &mut String) {
    let reader = "template <class State> EXPLORE_FN i32";
    let writer = "template <class State> EXPLORE_FN void";
    for (id, (process, field)) in model.processes.iter().zip(&model.layout.locations).enumerate() {
        let (name, bit, bits) = (names.process(id), field.bit, field.bits);
        let locations = process.locations.iter().enumerate().map(|(at, location)| format!("{at} {}", location.name));
        writeln!(to, "// Where {} is: {}.", process.name, locations.collect::<Vec<_>>().join(", ")).unwrap();
        if bits == 0 {
            writeln!(to, "{reader} at_{name}(const State&) {{ return 0; }}").unwrap();
            writeln!(to, "{writer} move_{name}(State&, i32) {{}}").unwrap();
        } else {
            writeln!(to, "{reader} at_{name}(const State& state) {{ return get<{bit}, {bits}, false>(state); }}").unwrap();
            writeln!(to, "{writer} move_{name}(State& state, i32 to) {{ set<{bit}, {bits}>(state, to); }}").unwrap();
        }
    }
    for (id, (variable, field)) in model.variables.iter().zip(&model.layout.variables).enumerate() {
        let (name, elements) = (names.variable(id), variable.initial.len());
        match field {
            None if variable.is_array => {
                let values: Vec<_> = variable.initial.iter().map(i32::to_string).collect();
                writeln!(to, "EXPLORE_DATA i32 values_{name}[] = {{{}}};", values.join(", ")).unwrap();
                writeln!(to, "{reader} get_{name}(const State&, i32 index) {{ return values_{name}[index]; }}").unwrap();
            }
            None => writeln!(to, "{reader} get_{name}(const State&) {{ return {}; }}", variable.initial[0]).unwrap(),
            Some(field) => {
                let (bit, bits, signed) = (field.bit, field.bits, field.signed);
                if variable.is_array {
                    let get = format!("get_element<{bit}, {bits}, {signed}, {elements}>(state, index)");
                    let set = format!("set_element<{bit}, {bits}, {elements}>(state, index, value)");
                    writeln!(to, "{reader} get_{name}(const State& state, i32 index) {{ return {get}; }}").unwrap();
                    writeln!(to, "{writer} set_{name}(State& state, i32 index, i32 value) {{ {set}; }}").unwrap();
                } else {
                    writeln!(to, "{reader} get_{name}(const State& state) {{ return get<{bit}, {bits}, {signed}>(state); }}")
                        .unwrap();
                    let set = format!("set<{bit}, {bits}>(state, value)");
                    writeln!(to, "{writer} set_{name}(State& state, i32 value) {{ {set}; }}").unwrap();
                }
            }
        }
    }
    to.push('\n');
    let committed = model.processes.iter().enumerate().flat_map(|(process, text)| {
        let places = text.locations.iter().enumerate().filter(|(_, location)| location.committed);
        places.map(move |(location, _)| format!("at_{}(state) == {location}", names.process(process)))
    });
    let any = committed.collect::<Vec<_>>().join(" || ");
    let (state, any) = if any.is_empty() { ("", "false") } else { (" state", &*any) };
    writeln!(to, "template <class State> EXPLORE_FN bool any_committed(const State&{state}) {{ return {any}; }}\n").unwrap();
}

/// Generates `step` and `choices`.
fn dispatch(model: &Model, names: &Names, choices: &[usize], to: &mut String) {
    let of_components = model.network.iter().flat_map(|network| network.most_steps_led());
    let choices: Vec<u64> = choices.iter().map(|count| *count as u64).chain(of_components).chain(net::choices(model)).collect();
    // The firings of a large net are found by a cursor, as the steps of components are.
    let first_component = model.processes.len() + usize::from(model.net.is_some() && !net::has_tables(model));
    writeln!(to, "constexpr u32 units = {}, first_component = {first_component};\n", choices.len()).unwrap();
    to.push_str("EXPLORE_FN u32 choices(u32 unit)\n{\n    switch (unit) {\n");
    for (unit, count) in choices.iter().enumerate() {
        writeln!(to, "    case {unit}: return {count};").unwrap();
    }
    to.push_str("    default: return 0;\n    }\n}\n\ntemplate <class State>\n");
    to.push_str("EXPLORE_FN bool step(u32 unit, u32 choice, Cursor& cursor, const State& from, State& to, Notes& notes)\n{\n");
    if model.network.is_some() {
        to.push_str("    if (unit >= first_component) {\n        if (choice == 0) cursor.begin(unit - first_component, from);\n");
        to.push_str("        return cursor.next(from, to);\n    }\n");
    }
    if net::has_tables(model) {
        to.push_str("    if (unit == net_unit) {\n        if (choice == 0) cursor.begin(0, from);\n");
        to.push_str("        return cursor.next(from, to, notes);\n    }\n");
    }
    to.push_str("    (void)cursor, (void)choice;\n    u32 result = no_step;\n    switch (unit) {\n");
    for unit in (0..model.processes.len()).filter(|unit| choices[*unit] > 0) {
        writeln!(to, "    case {unit}: result = steps_of_{}(choice, from, to, notes); break;", names.process(unit)).unwrap();
    }
    if model.net.is_some() && !net::has_tables(model) {
        to.push_str("    case net_unit: result = steps_of_net(choice, from, to, notes); break;\n");
    }
    to.push_str("    }\n    if (result < first_pair) return result == a_step;\n");
    to.push_str("    return take_pair(result - first_pair, from, to, notes);\n}\n\n");
}

/// Generates `violated`.
fn violations(model: &Model, names: &Names, conditions: &[&Expression], to: &mut String) {
    let first = model.transitions.len();
    writeln!(to, "// The conditions that fail in a state. Faults are laid to \"transition\" {first} + the condition's number.")
        .unwrap();
    writeln!(to, "constexpr u32 conditions = {};\n\ntemplate <class State>", conditions.len()).unwrap();
    // Evaluate all conditions: a fault in one counts, whatever the values of the others.
    to.push_str("EXPLORE_FN Numbers<conditions> violated(const u32* tables, const State& from, Notes& notes)\n{\n");
    to.push_str("    Numbers<conditions> failing;\n");
    for (id, condition) in conditions.iter().enumerate() {
        let scope = Scope { model, names, transition: first + id, state: "from", shared: None };
        writeln!(to, "    failing.add_if(!{}, {id});", scope.text(condition)).unwrap();
    }
    to.push_str("    (void)tables, (void)from, (void)notes;\n    return failing;\n}\n\n");
}
