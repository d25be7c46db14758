//! Reduced searches in generated code: which tests of a state fail, and the tables from which stubborn.cuh chooses actions.
//!
//! The tables follow those of the network or net. The numbers of tests begin with the expressions, for which code is generated.
//! The tests that are evaluated from tables follow: on the tokens of a net's places, or on the labels of a network's components.
//!
//! ```text
//! tests_of_actions   by action, the place of its tests' numbers; then one for the end; then the numbers
//! rows               the place of each row; then one for the end; then for each block of a row its number, and a word for each
//!                    lane of a group (the conflicts of each action; the enablers of each test; the actions that have each test)
//! tests              by test in tables, four words
//! steps              by process: by location, the place of its actions; then one for the end; then the actions, by choice. Of a
//!                    small net, one such list: by firing, its transition. Actions of a net are numbered as its transitions.
//! goal               parts: `all` or `any`, what they consist of, and an end; or a test
//! ```

use super::expression::{Scope, can_fault};
use super::names::Names;
use super::shared::Shared;
use super::{net, network, steps};
use std::fmt::Write;
use warpset_model::interpreter::Step;
use warpset_model::ir::Model;
use warpset_model::ir::net::Holder;
use warpset_model::reduction::actions::Test;
use warpset_model::reduction::stubborn::{Goal, Stubborn};

/// Text that chooses the actions.
const STUBBORN: &str = include_str!("stubborn.cuh");

/// Maximum number of lanes that choose for one state: a warp. Words of a set have 32 bits, so up to 1,024 actions take one word
/// per lane.
const MOST_LANES: usize = 32;

/// Maximum number of words of the rows for a GPU: 1 GiB.
const MOST_ROW_WORDS: usize = 1 << 28;

/// How the steps of a reduced search are chosen.
#[derive(Clone, Copy)]
pub struct Choosing<'a> {
    stubborn: &'a Stubborn<'a>,
    /// Lanes of the group that chooses for one state.
    lanes: usize,
}

impl<'a> Choosing<'a> {
    /// Each thread chooses by itself.
    pub fn by_threads(stubborn: &'a Stubborn<'a>) -> Self {
        Self { stubborn, lanes: 1 }
    }

    /// Lanes of a warp choose together: a group has as many lanes as a set has words. Several groups of a warp choose for
    /// different states at the same time.
    pub fn by_lanes(stubborn: &'a Stubborn<'a>) -> Self {
        let words = stubborn.dependencies.actions.all.len().div_ceil(32);
        Self { stubborn, lanes: words.next_power_of_two().min(MOST_LANES) }
    }

    /// Whether the rows are small enough for a GPU.
    pub fn fits(&self) -> bool {
        let dependencies = &self.stubborn.dependencies;
        let sets = dependencies.conflicts.iter().chain(&dependencies.enablers);
        let words_of_row = |actions: &mut dyn Iterator<Item = usize>| {
            let mut last = None;
            let blocks = actions.filter(|action| {
                let block = action / 32 / self.lanes;
                last.replace(block) != Some(block)
            });
            (1 + self.lanes) * blocks.count()
        };
        let of_sets: usize = sets.map(|set| words_of_row(&mut set.ones())).sum();
        let of_tests: usize = having(self.stubborn).iter().map(|having| words_of_row(&mut having.iter().copied())).sum();
        of_sets + of_tests <= MOST_ROW_WORDS
    }
}

/// For each test, the actions that have it, in ascending order; empty if only one action has it. When one of these actions is
/// looked at, the test is settled, so the other actions need not be looked at.
fn having(stubborn: &Stubborn) -> Vec<Vec<usize>> {
    let dependencies = &stubborn.dependencies;
    let mut having = vec![Vec::new(); dependencies.tests.len()];
    for (action, tests) in dependencies.actions.tests.iter().enumerate() {
        tests.iter().for_each(|test| having[*test].push(action));
    }
    having.iter_mut().filter(|actions| actions.len() == 1).for_each(Vec::clear);
    having
}

/// Appends a row: for each block that is not empty its number, and a word for each lane.
fn put_row(actions: impl Iterator<Item = usize>, lanes: usize, to: &mut Vec<u32>) {
    let mut last = None;
    for action in actions {
        let (block, lane) = (action / 32 / lanes, action / 32 % lanes);
        if last != Some(block) {
            to.push(block as u32);
            to.resize(to.len() + lanes, 0);
        }
        last = Some(block);
        let begin = to.len() - lanes;
        to[begin + lane] |= 1 << (action % 32);
    }
}

/// Words of a test in tables.
const TEST_WORDS: usize = 4;

/// Kinds of words of a goal. A test is its number plus `GOAL_END + 1`.
const GOAL_ALL: u32 = 0;
const GOAL_ANY: u32 = 1;
const GOAL_END: u32 = 2;

/// Evaluates the test at `at`: a part of a word is `low` at least, and exceeds it by `span` at most.
const OF_A_NET: &str = "\
template <class State>
EXPLORE_FN bool holds(const u32* tables, u32 at, const State& from)
{
    return (from.template select<0, state_words>(tables[at]) & tables[at + 1]) - tables[at + 2] <= tables[at + 3];
}
";

/// Evaluates the test at `at`: a component has a transition with a label, or has none.
const OF_A_NETWORK: &str = "\
template <class State>
EXPLORE_FN bool holds(const u32* tables, u32 at, const State& from)
{
    return (Ways(tables, tables + tables[at], tables[at + 1], from).count != 0) == (tables[at + 2] != 0);
}
";

/// Finds the action of a choice in a list; there may be more choices than the list has.
const LISTED: &str = "\
EXPLORE_FN u32 listed_action(const u32* tables, u32 list, u32 choice)
{
    const u32 at = tables[list] + choice;
    return at < tables[list + 1] ? tables[at] : nothing;
}

";

const OF_NOTHING: &str = "\
template <class State>
EXPLORE_FN bool holds(const u32*, u32, const State&)
{
    return true;
}
";

/// The generated parts of a reduction.
pub struct Reduction {
    /// The tables, which follow those of the model.
    pub words: Vec<u32>,
    /// Definitions before the code of the steps.
    pub text: String,
    /// Definitions after the code of the steps.
    pub functions: String,
}

impl Reduction {
    /// Generates tables and text. `first`: number of words of the model's own tables.
    pub fn of(model: &Model, choosing: Choosing, first: usize) -> Self {
        let Choosing { stubborn, lanes } = choosing;
        let dependencies = &stubborn.dependencies;
        let (actions, tests) = (dependencies.actions.all.len(), dependencies.tests.len());
        let is_expression = |test: &usize| matches!(dependencies.tests[*test], Test::Holds(_));
        let (mut order, by_table): (Vec<usize>, Vec<usize>) = (0..tests).partition(is_expression);
        let expressions = order.len();
        order.extend(by_table);
        let mut new_number = vec![0; tests];
        order.iter().enumerate().for_each(|(new, old)| new_number[*old] = new as u32);

        let mut words = Words { first, all: Vec::new() };
        let tests_of_actions_at = words.next();
        words.lists(actions, |action, to| to.extend(dependencies.actions.tests[action].iter().map(|test| new_number[*test])));
        let rows_at = words.next();
        let having = having(stubborn);
        words.lists(actions + 2 * tests, |row, to| match row.checked_sub(actions) {
            None => put_row(dependencies.conflicts[row].ones(), lanes, to),
            Some(test) if test < tests => put_row(dependencies.enablers[order[test]].ones(), lanes, to),
            Some(test) => put_row(having[order[test - tests]].iter().copied(), lanes, to),
        });
        let tests_at = words.next();
        order[expressions..].iter().for_each(|test| words.all.extend(in_table(model, &dependencies.tests[*test])));
        let (names, mut of_steps) = (Names::new(model), String::new());
        for process in 0..model.processes.len() {
            let at = words.next();
            let locations = model.processes[process].locations.len();
            words.lists(locations, |location, to| to.extend(steps::actions_of(model, process, location, &dependencies.actions)));
            let name = names.process(process);
            writeln!(of_steps, "    case {process}: return listed_action(tables, {at} + at_{name}(from), choice);").unwrap();
        }
        match (&model.net, net::has_tables(model)) {
            (None, _) => {}
            (Some(_), true) => of_steps.push_str("    case net_unit: return cursor.taken;\n"),
            (Some(_), false) => {
                let at = words.next();
                // Some transitions never fire, so there are fewer firings than choices.
                words.lists(1, |_, to| to.extend(net::transitions(model)));
                writeln!(of_steps, "    case net_unit: return listed_action(tables, {at}, choice);").unwrap();
            }
        }
        // Without a network no other unit has steps.
        let of_other_units = model.network.as_ref().filter(|_| model.net.is_none()).map_or("0".into(), |_| {
            let first = dependencies.actions.of_step(Step::Rule(0));
            format!("{first} + (cursor.rule - rules_at) / 2")
        });
        writeln!(of_steps, "    default: return {of_other_units};").unwrap();
        let goal_at = words.next();
        let mut depth = 0;
        for goal in stubborn.goal.iter().flat_map(|goal| goal.parts(true)) {
            depth = depth.max(put_goal(goal, &new_number, &mut words.all));
        }
        let goal_end = words.next();

        let mut text =
            String::from("// Chooses steps: codegen/reduction.rs.\n#define EXPLORE_REDUCES 1\n\nnamespace explore {\n\n");
        for (name, value) in [
            ("actions", actions),
            ("tests", tests),
            ("action_words", actions.div_ceil(32)),
            ("lanes", lanes),
            ("expressions", expressions),
            ("failing_words", expressions.div_ceil(32)),
            ("tests_of_actions_at", tests_of_actions_at),
            ("rows_of_actions_at", rows_at),
            ("tests_at", tests_at),
            ("test_words", TEST_WORDS),
            ("goal_at", goal_at),
            ("goal_end", goal_end),
            ("goal_depth", depth),
            ("most_seeds", stubborn.heuristics.most_seeds),
            ("cost_of_enabled", stubborn.heuristics.cost_of_enabled),
        ] {
            writeln!(text, "constexpr u32 {name} = {value};").unwrap();
        }
        writeln!(text, "constexpr u32 goal_all = {GOAL_ALL}, goal_any = {GOAL_ANY}, goal_end_of_part = {GOAL_END};").unwrap();
        writeln!(text, "constexpr bool has_goal = {};", stubborn.goal.is_some()).unwrap();
        writeln!(text, "constexpr bool keeps_deadlocks = {};\n", stubborn.keeps_deadlocks).unwrap();
        let by_table = match (expressions < tests, &model.net) {
            (false, _) => OF_NOTHING,
            (true, Some(_)) => OF_A_NET,
            (true, None) => OF_A_NETWORK,
        };
        writeln!(text, "{by_table}\n}}  // namespace explore\n\n{STUBBORN}").unwrap();

        let mut functions = expressions_text(model, &names, stubborn, &order[..expressions]);
        functions.push_str(LISTED);
        functions.push_str("// The action of a choice, `nothing` if there is none. Of a cursor: that of its last step.\n");
        functions.push_str("template <class State>\nEXPLORE_FN u32 action_of(");
        functions.push_str("const u32* tables, u32 unit, u32 choice, const Cursor& cursor, const State& from)\n{\n");
        functions.push_str("    (void)tables, (void)choice, (void)cursor, (void)from;\n    switch (unit) {\n");
        functions += &of_steps;
        functions.push_str("    }\n}\n\n");
        Self { words: words.all, text, functions }
    }
}

/// Words that are written one after another.
struct Words {
    /// Number of words before them.
    first: usize,
    all: Vec<u32>,
}

impl Words {
    /// Place of the next word.
    fn next(&self) -> usize {
        self.first + self.all.len()
    }

    /// Appends the places of lists, the end of the last one, and the lists.
    fn lists(&mut self, count: usize, mut list: impl FnMut(usize, &mut Vec<u32>)) {
        let at = self.all.len();
        self.all.resize(at + count + 1, 0);
        let mut one = Vec::new();
        for number in 0..count {
            self.all[at + number] = self.next() as u32;
            one.clear();
            list(number, &mut one);
            self.all.extend_from_slice(&one);
        }
        self.all[at + count] = self.next() as u32;
    }
}

/// The functions that find the expressions that are false.
fn expressions_text(model: &Model, names: &Names, stubborn: &Stubborn, tests: &[usize]) -> String {
    let (mut text, mut calls) = (String::new(), String::new());
    let shared = &Shared::of_guards(model);
    for (part, tests) in tests.chunks(32).enumerate() {
        writeln!(text, "template <class State>\nEXPLORE_PART u32 failing_{part}(const u32* tables, const State& from)\n{{")
            .unwrap();
        text.push_str("    u32 fails = 0;\n");
        for (bit, test) in tests.iter().enumerate() {
            let Test::Holds(expression) = &stubborn.dependencies.tests[*test] else { unreachable!("an expression") };
            let scope = Scope { model, names, transition: 0, state: "from", shared: Some(shared) };
            let value = scope.text(expression);
            if can_fault(model, expression) {
                writeln!(text, "    {{\n        Notes notes;\n        const bool is_false = !{value};").unwrap();
                writeln!(text, "        fails |= static_cast<u32>(is_false && notes.fault == 0) << {bit};\n    }}").unwrap();
            } else {
                writeln!(text, "    fails |= static_cast<u32>(!{value}) << {bit};").unwrap();
            }
        }
        text.push_str("    (void)tables, (void)from;\n    return fails;\n}\n\n");
        writeln!(calls, "    failing[{part}] = failing_{part}(tables, from);").unwrap();
    }
    let head = "template <class State>\nEXPLORE_FN void find_failing(const u32* tables, const State& from, u32* failing)\n{\n";
    format!("{text}// Marks the expressions that are false.\n{head}    (void)tables, (void)from, (void)failing;\n{calls}}}\n\n")
}

/// A test that is evaluated from tables.
fn in_table(model: &Model, test: &Test) -> [u32; TEST_WORDS] {
    const ALWAYS: [u32; TEST_WORDS] = [0, 0, 0, u32::MAX];
    const NEVER: [u32; TEST_WORDS] = [0, 0, 1, 0];
    match test {
        Test::Holds(_) => unreachable!("an expression"),
        Test::Ready { component, label, is_ready } => {
            [(component * network::COMPONENT_WORDS) as u32, *label, u32::from(*is_ready), 0]
        }
        Test::Tokens { place, least, is_reached } => {
            let Some(net) = &model.net else { unreachable!("tokens of a net") };
            let (always, never) = if *is_reached { (ALWAYS, NEVER) } else { (NEVER, ALWAYS) };
            if *least == 0 {
                return always;
            }
            let (place, less) = net.stored(*place).unwrap_or((*place, 0));
            let Some(least) = least.checked_add(less) else { return never };
            let field = |variable: usize| {
                let field = model.layout.variables[variable].filter(|field| field.bits > 0)?;
                Some((field.bit / 32, field.bit % 32, (u32::MAX >> (32 - field.bits)) << (field.bit % 32)))
            };
            match net.places[place].holder {
                Holder::Constant if net.places[place].initial >= least => always,
                Holder::Constant => never,
                Holder::Number { variable, .. } => match field(variable) {
                    Some((word, shift, mask)) if least <= mask >> shift => match is_reached {
                        true => [word, mask, least << shift, mask - (least << shift)],
                        false => [word, mask, 0, (least - 1) << shift],
                    },
                    _ => never,
                },
                Holder::Code { .. } | Holder::Opposite { .. } if least > 1 => never,
                Holder::Opposite { of } => {
                    let opposite = Test::Tokens { place: of, least: 1, is_reached: !is_reached };
                    in_table(model, &opposite)
                }
                Holder::Less { .. } => unreachable!("the place that tells the tokens of others is stored"),
                Holder::Code { variable, code, .. } => match field(variable) {
                    Some((word, shift, mask)) if code <= mask >> shift => match is_reached {
                        true => [word, mask, code << shift, 0],
                        false => [word, mask, (code << shift).wrapping_add(1), u32::MAX - 1],
                    },
                    // Without bits the value is always 0.
                    None if code == 0 => always,
                    _ => never,
                },
            }
        }
    }
}

/// Appends the words of a goal. Returns how deep its parts are nested.
fn put_goal(goal: &Goal, new_number: &[u32], to: &mut Vec<u32>) -> usize {
    let (kind, parts) = match goal {
        Goal::Test(test) => {
            to.push(GOAL_END + 1 + new_number[*test]);
            return 0;
        }
        // All of no parts is always met; any of no parts is never met.
        Goal::Constant(true) => (GOAL_ALL, Vec::new()),
        Goal::Constant(false) => (GOAL_ANY, Vec::new()),
        Goal::All(_) => (GOAL_ALL, goal.parts(true)),
        Goal::Any(_) => (GOAL_ANY, goal.parts(false)),
    };
    to.push(kind);
    let depth = parts.into_iter().map(|part| put_goal(part, new_number, to)).max().unwrap_or(0);
    to.push(GOAL_END);
    depth + 1
}
