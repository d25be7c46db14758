//! Networks in generated code: a text that is the same for all networks, and tables in memory. Transitions and rules generate no
//! code, so components may have millions of transitions.

use anyhow::{Result, ensure};
use std::fmt::Write;
use std::sync::Arc;
use warpset_model::ir::Model;
use warpset_model::ir::network::{Listed, Network, Rules};

/// Texts that read the tables: components, and steps with or without rules.
const COMPONENTS: &str = include_str!("components.cuh");
const BY_RULES: &str = include_str!("rules.cuh");
const ALONE: &str = include_str!("alone.cuh");

/// Code for a model without a network: the same names, but no steps.
const NOTHING: &str = "namespace explore {

struct Cursor {
    EXPLORE_FN explicit Cursor(const u32*) {}
    EXPLORE_FN bool more() const { return false; }
};

}  // namespace explore

";

/// Words of a component in the tables.
pub const COMPONENT_WORDS: usize = 8;

/// Maximum number of steps from one state: compiled code for CPUs needs room for all steps of a state.
const MOST_STEPS: u64 = 1 << 20;

/// Maximum number of words of tables: places in the tables have 32 bits.
const MOST_WORDS: usize = u32::MAX as usize;

/// Returns an error with the numbers if a network is too large for tables.
pub fn ensure_fits(model: &Model) -> Result<()> {
    let Some(network) = &model.network else { return Ok(()) };
    let steps = network.most_steps();
    ensure!(steps <= MOST_STEPS, "not compiled: a state may have {steps} steps, but at most {MOST_STEPS} are possible");
    let words = NetworkPlan::of(network).words;
    ensure!(words <= MOST_WORDS, "not compiled: the network's tables have {words} words, but at most {MOST_WORDS} are possible");
    Ok(())
}

/// Starts of the parts of the tables.
struct NetworkPlan {
    /// By component, the places of its rows, labels and targets. Components with the same table share them.
    components: Vec<[usize; 3]>,
    rules: Option<RulesPlan>,
    words: usize,
}

/// Starts of the parts for listed rules.
struct RulesPlan {
    rules: usize,
    of_labels: usize,
    parts: usize,
    /// By component, the places of two lists: the offsets, by label, and the numbers of the rules that the component leads.
    led: Vec<[usize; 2]>,
}

impl NetworkPlan {
    fn of(network: &Network) -> Self {
        let mut end = network.components.len() * COMPONENT_WORDS;
        let mut next = |count: usize| {
            let begin = end;
            end += count;
            begin
        };
        let mut components: Vec<[usize; 3]> = Vec::with_capacity(network.components.len());
        for (id, component) in network.components.iter().enumerate() {
            let same = network.components[..id].iter().position(|other| Arc::ptr_eq(&other.table, &component.table));
            let table = &component.table;
            let anew = || [next(table.offsets.len()), next(table.labels.len()), next(table.targets.len())];
            components.push(same.map_or_else(anew, |same| components[same]));
        }
        let rules = match &network.rules {
            Rules::OfLabels { .. } => None,
            Rules::Listed(Listed { rules: all, leading, .. }) => {
                let rules = next(2 * all.len());
                let of_labels = next(network.labels.len() + 1);
                next(all.len());
                let parts = next(all.iter().map(|rule| 2 * rule.parts.len()).sum());
                let led = leading.iter().map(|leading| [next(leading.offsets.len()), next(leading.rules.len())]).collect();
                Some(RulesPlan { rules, of_labels, parts, led })
            }
        };
        Self { components, rules, words: end }
    }
}

/// The words of the tables; empty without a network.
///
/// Components come first, with 8 words each: the word, the lowest bit and the mask of the component's state in a packed state;
/// then the places of its rows, labels and targets; then the place of the offsets of the rules that it leads, and the place of
/// these rules' numbers. The rows, labels and targets of the components follow. If rules are listed, the tables continue with:
/// two words for each rule, the place of its parts and their number; by label, the places of its rules' numbers, and these
/// numbers; the parts, two words each; and the rules that components lead.
pub fn tables(model: &Model) -> Vec<u32> {
    let Some(network) = &model.network else { return Vec::new() };
    let plan = NetworkPlan::of(network);
    let mut words = vec![0u32; plan.words];
    let mut put = |at: usize, values: &[u32]| words[at..at + values.len()].copy_from_slice(values);
    for (id, (component, places)) in network.components.iter().zip(&plan.components).enumerate() {
        let field = model.layout.variables[component.variable].filter(|field| field.bits > 0);
        let place = field.map_or([0, 0, 0], |field| [field.bit / 32, field.bit % 32, u32::MAX >> (32 - field.bits)]);
        put(id * COMPONENT_WORDS, &place);
        put(id * COMPONENT_WORDS + place.len(), &places.map(|place| place as u32));
        let table = &component.table;
        [&table.offsets, &table.labels, &table.targets].into_iter().zip(places).for_each(|(values, at)| put(*at, values));
    }
    if let (Rules::Listed(listed), Some(plan)) = (&network.rules, &plan.rules) {
        put_rules(listed, plan, &mut put);
    }
    words
}

fn put_rules(
    Listed { rules, leading, label_offsets, of_labels }: &Listed,
    plan: &RulesPlan,
    put: &mut impl FnMut(usize, &[u32]),
) {
    for (id, (leading, places)) in leading.iter().zip(&plan.led).enumerate() {
        put(id * COMPONENT_WORDS + COMPONENT_WORDS - places.len(), &places.map(|place| place as u32));
        [&leading.offsets, &leading.rules].into_iter().zip(places).for_each(|(values, at)| put(*at, values));
    }
    let mut parts = plan.parts;
    for (id, rule) in rules.iter().enumerate() {
        put(plan.rules + 2 * id, &[parts as u32, rule.parts.len() as u32]);
        for (component, label) in &rule.parts {
            put(parts, &[*component, *label]);
            parts += 2;
        }
    }
    let first = plan.of_labels + label_offsets.len();
    for (label, offset) in label_offsets.iter().enumerate() {
        put(plan.of_labels + label, &[first as u32 + offset]);
    }
    put(first, of_labels);
}

/// The code that finds the steps of a network, in namespace `explore`. For a model without a network, code with the same names
/// that finds none.
pub fn text(model: &Model) -> String {
    let Some(network) = &model.network else { return NOTHING.into() };
    let Some(RulesPlan { rules, of_labels, .. }) = NetworkPlan::of(network).rules else {
        return format!("{COMPONENTS}\n{ALONE}\n");
    };
    let mut text = format!("{COMPONENTS}\nnamespace explore {{\n\n// Places in the tables.\n");
    writeln!(text, "constexpr u32 rules_at = {rules}, rules_of_labels_at = {of_labels};").unwrap();
    text.push_str("EXPLORE_FN u32 place_of_rule(u32 rule) { return rules_at + 2 * rule; }\n\n}  // namespace explore\n\n");
    text + BY_RULES + "\n"
}
