//! Networks: transition systems that take steps together by rules.
//!
//! A component is a [`Table`] of labelled transitions and a variable that holds its current state. A rule, also called a
//! synchronisation vector, names some components and a label for each of them. In a step of the rule each of these components
//! takes a transition with its label, and all other components stay. The steps of a rule in a state are all combinations of such
//! transitions: if n components have m transitions each, there are m^n steps. No component takes a step without a rule.
//!
//! # The order of steps
//!
//! Each rule is led by one of its components. Steps are ordered by the leading component, then by its label, then by the rule's
//! number. The steps of one rule are ordered by combination: the transition of the rule's last component changes fastest. With
//! this order, the search visits only rules for which the leader has a transition in its current state.
//!
//! # A transition system by itself
//!
//! In a model that is one transition system, each label of the component's table is a rule, which has the label's number. A state
//! space often has as many labels as transitions, so the network keeps no data for such rules (see [`Rules::OfLabels`]). Steps
//! come in the order of the table's rows, which is the order described above.

use super::ids::{LabelId, RuleId};
use super::{Layout, Texts, VariableId};
use std::sync::Arc;

/// Components and the rules by which they take steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    pub components: Vec<Component>,
    pub rules: Rules,
    /// Labels of steps. Conditions may refer to them.
    pub labels: Arc<Texts>,
}

/// The rules that define the steps.
#[derive(Clone, Debug, PartialEq)]
pub enum Rules {
    /// The network has one component, and each label of the component's table is a rule. The rule, its label and the table's
    /// label have the same number.
    OfLabels {
        /// Largest number of transitions of any state.
        most_steps: u64,
    },
    Listed(Listed),
}

/// A list of rules, with indices to find them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listed {
    pub rules: Vec<Rule>,
    /// By component, the rules that it leads.
    pub leading: Vec<Leading>,
    /// The rules with label l are `of_labels[label_offsets[l] .. label_offsets[l + 1]]`, ascending.
    pub label_offsets: Vec<u32>,
    pub of_labels: Vec<u32>,
}

/// A transition system in a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    /// The variable that holds the component's state, which is a number from 0 on.
    pub variable: VariableId,
    /// The component's transitions. Several components may share a table.
    pub table: Arc<Table>,
}

/// Labelled transitions, ordered by state and label.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Index of the first transition of each state, followed by the number of transitions.
    pub offsets: Vec<u32>,
    /// Label of each transition, ascending within each state. Tables number their labels independently of each other.
    pub labels: Vec<u32>,
    /// Target state of each transition.
    pub targets: Vec<u32>,
    /// Number of labels.
    pub label_count: u32,
    pub initial: u32,
}

/// A synchronisation vector: the components that take a step together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub label: LabelId,
    /// Components in ascending order, each with a label of its own table.
    pub parts: Box<[(u32, u32)]>,
}

/// The rules that a component leads, by the component's label. The rules for label l are `rules[offsets[l] .. offsets[l + 1]]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Leading {
    pub offsets: Vec<u32>,
    pub rules: Vec<u32>,
    /// Largest number of steps that the component leads in any state.
    pub most_steps: u64,
}

impl Table {
    /// Builds a table from transitions in any order, given by source, label and target. Transitions with the same source and
    /// label keep their order.
    ///
    /// All states must be below `states`, all labels below `label_count`, and there must be fewer than 2^32 transitions.
    pub fn new(states: u32, label_count: u32, initial: u32, sources: Vec<u32>, labels: &[u32], targets: &[u32]) -> Self {
        let mut offsets = vec![0; states as usize + 1];
        sources.iter().for_each(|source| offsets[*source as usize + 1] += 1);
        (0..states as usize).for_each(|state| offsets[state + 1] += offsets[state]);
        let (mut of_labels, mut of_targets) = (vec![0; labels.len()], vec![0; labels.len()]);
        // The loop moves each offset to the end of its state's part, which is where the part of the next state begins.
        for (transition, source) in sources.iter().enumerate() {
            let next = &mut offsets[*source as usize];
            of_labels[*next as usize] = labels[transition];
            of_targets[*next as usize] = targets[transition];
            *next += 1;
        }
        drop(sources);
        offsets.rotate_right(1);
        offsets[0] = 0;
        let mut table = Self { offsets, labels: of_labels, targets: of_targets, label_count, initial };
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for state in 0..states as usize {
            let row = table.offsets[state] as usize..table.offsets[state + 1] as usize;
            if !table.labels[row.clone()].is_sorted() {
                pairs.clear();
                pairs.extend(row.clone().map(|at| (table.labels[at], table.targets[at])));
                pairs.sort_by_key(|(label, _)| *label);
                row.zip(&pairs).for_each(|(at, (label, target))| (table.labels[at], table.targets[at]) = (*label, *target));
            }
        }
        table
    }

    pub fn states(&self) -> u32 {
        self.offsets.len() as u32 - 1
    }

    /// Indices of the transitions of a state.
    fn row(&self, state: u32) -> std::ops::Range<usize> {
        self.offsets[state as usize] as usize..self.offsets[state as usize + 1] as usize
    }

    /// Indices of the transitions of a state that have a label.
    fn of_label(&self, state: u32, label: u32) -> std::ops::Range<usize> {
        let row = self.row(state);
        let labels = &self.labels[row.clone()];
        let first = labels.partition_point(|other| *other < label);
        let count = labels[first..].partition_point(|other| *other == label);
        row.start + first..row.start + first + count
    }

    /// Source and target of each transition with the label.
    pub fn moves(&self, label: u32) -> impl Iterator<Item = (u32, u32)> {
        (0..self.states()).flat_map(move |state| self.of_label(state, label).map(move |at| (state, self.targets[at])))
    }

    /// Targets of the transitions of a state that have a label.
    pub fn targets(&self, state: u32, label: u32) -> &[u32] {
        &self.targets[self.of_label(state, label)]
    }

    /// For each label, the number of states that have transitions with it, and the largest number of such transitions in one
    /// state.
    fn uses(&self) -> (Vec<u32>, Vec<u32>) {
        let (mut states, mut most) = (vec![0; self.label_count as usize], vec![0; self.label_count as usize]);
        for state in 0..self.states() {
            for group in self.labels[self.row(state)].chunk_by(|one, other| one == other) {
                let label = group[0] as usize;
                states[label] += 1;
                most[label] = most[label].max(group.len() as u32);
            }
        }
        (states, most)
    }
}

impl Network {
    /// Builds a network and the indices for finding its rules. `None` if a state may have more steps than 32 bits can count.
    pub fn new(components: Vec<Component>, rules: Vec<Rule>, labels: Texts) -> Option<Self> {
        let mut uses: Vec<Arc<(Vec<u32>, Vec<u32>)>> = Vec::with_capacity(components.len());
        for (id, component) in components.iter().enumerate() {
            let same = components[..id].iter().position(|other| Arc::ptr_eq(&other.table, &component.table));
            uses.push(same.map_or_else(|| Arc::new(component.table.uses()), |same| uses[same].clone()));
        }
        // The leader is the component whose state has a transition for the rule most rarely.
        let share = |(component, label): &(u32, u32)| {
            let component = *component as usize;
            f64::from(uses[component].0[*label as usize]) / f64::from(components[component].table.states())
        };
        let leader =
            |rule: &Rule| *rule.parts.iter().min_by(|one, other| share(one).total_cmp(&share(other))).expect("a rule has parts");
        let mut led: Vec<Vec<(u32, u32)>> = vec![Vec::new(); components.len()];
        let mut weights: Vec<Vec<u64>> = components.iter().map(|of| vec![0; of.table.label_count as usize]).collect();
        for (id, rule) in rules.iter().enumerate() {
            let (component, label) = leader(rule);
            led[component as usize].push((label, id as u32));
            let others = rule.parts.iter().filter(|part| part.0 != component);
            let most = others
                .fold(1u64, |most, (other, label)| most.saturating_mul(u64::from(uses[*other as usize].1[*label as usize])));
            let weight = &mut weights[component as usize][label as usize];
            *weight = weight.saturating_add(most);
        }
        let leading = led.into_iter().zip(&components).zip(&weights).map(|((mut led, component), weights)| {
            led.sort_unstable();
            let mut offsets = vec![0; component.table.label_count as usize + 1];
            led.iter().for_each(|(label, _)| offsets[*label as usize + 1] += 1);
            (1..offsets.len()).for_each(|at| offsets[at] += offsets[at - 1]);
            let of_state =
                |state| component.table.labels[component.table.row(state)].iter().map(|label| weights[*label as usize]);
            let most = (0..component.table.states()).map(|state| of_state(state).fold(0, u64::saturating_add)).max();
            Leading { offsets, rules: led.into_iter().map(|(_, rule)| rule).collect(), most_steps: most.unwrap_or(0) }
        });
        let leading = leading.collect();
        let (label_offsets, of_labels) = by_label(&rules, labels.len());
        let listed = Listed { rules, leading, label_offsets, of_labels };
        let network = Self { components, rules: Rules::Listed(listed), labels: Arc::new(labels) };
        (network.most_steps() <= u64::from(u32::MAX)).then_some(network)
    }

    /// Builds a network of one transition system. `labels` are the labels of the component's table.
    pub fn alone(component: Component, labels: Texts) -> Self {
        let offsets = &component.table.offsets;
        let most_steps = offsets.windows(2).map(|row| u64::from(row[1] - row[0])).max().unwrap_or(0);
        Self { components: vec![component], rules: Rules::OfLabels { most_steps }, labels: Arc::new(labels) }
    }

    /// By component, the largest number of steps that it leads in any state.
    pub fn most_steps_led(&self) -> Vec<u64> {
        match &self.rules {
            Rules::OfLabels { most_steps } => vec![*most_steps],
            Rules::Listed(Listed { leading, .. }) => leading.iter().map(|leading| leading.most_steps).collect(),
        }
    }

    /// Upper bound on the steps of any state.
    pub fn most_steps(&self) -> u64 {
        self.most_steps_led().into_iter().fold(0, u64::saturating_add)
    }

    /// Label of a rule.
    pub fn label_of(&self, rule: RuleId) -> LabelId {
        match &self.rules {
            Rules::OfLabels { .. } => rule,
            Rules::Listed(Listed { rules, .. }) => rules[rule].label,
        }
    }

    /// The components that a rule moves.
    pub fn movers(&self, rule: RuleId) -> impl Iterator<Item = usize> {
        let (alone, parts) = match &self.rules {
            Rules::OfLabels { .. } => (Some(0), &[][..]),
            Rules::Listed(Listed { rules, .. }) => (None, &*rules[rule].parts),
        };
        alone.into_iter().chain(parts.iter().map(|(component, _)| *component as usize))
    }

    /// Calls `visit` with the rule of each step and the state after the step, in the order of steps.
    pub fn steps(&self, layout: &Layout, state: &[u32], successor: &mut Vec<u32>, mut visit: impl FnMut(RuleId, &[u32])) {
        let listed = match &self.rules {
            Rules::Listed(listed) => listed,
            Rules::OfLabels { .. } => return self.own_steps(layout, state, successor, visit),
        };
        for (leader, leading) in self.components.iter().zip(&listed.leading) {
            let table = &leader.table;
            let mut rest = table.row(self.state_of(leader, layout, state));
            while let Some(label) = table.labels[rest.clone()].first() {
                let led = leading.offsets[*label as usize] as usize..leading.offsets[*label as usize + 1] as usize;
                for rule in &leading.rules[led] {
                    let parts = &listed.rules[*rule as usize].parts;
                    self.steps_of(*rule as usize, parts, layout, state, successor, &mut visit);
                }
                rest.start += table.labels[rest.clone()].partition_point(|other| other == label);
            }
        }
    }

    /// Calls `visit` with the steps of a model that is one transition system.
    fn own_steps(&self, layout: &Layout, state: &[u32], successor: &mut Vec<u32>, mut visit: impl FnMut(RuleId, &[u32])) {
        let component = &self.components[0];
        let Table { labels, targets, .. } = &*component.table;
        for transition in component.table.row(self.state_of(component, layout, state)) {
            successor.clear();
            successor.extend_from_slice(state);
            if let Some(field) = layout.variables[component.variable] {
                field.set(successor, 0, targets[transition] as i32);
            }
            visit(labels[transition] as usize, successor);
        }
    }

    fn steps_of(
        &self,
        rule: RuleId,
        parts: &[(u32, u32)],
        layout: &Layout,
        state: &[u32],
        successor: &mut Vec<u32>,
        visit: &mut impl FnMut(RuleId, &[u32]),
    ) {
        let ways = |(component, label): &(u32, u32)| {
            let component = &self.components[*component as usize];
            component.table.of_label(self.state_of(component, layout, state), *label)
        };
        // Most rules have few parts, which need no allocation.
        let mut few: [std::ops::Range<usize>; 4] = Default::default();
        let mut many = Vec::new();
        let all: &mut [std::ops::Range<usize>] = if parts.len() <= few.len() {
            &mut few[..parts.len()]
        } else {
            many.resize(parts.len(), 0..0);
            &mut many
        };
        for (way, part) in all.iter_mut().zip(parts) {
            *way = ways(part);
            if way.start == way.end {
                return;
            }
        }
        let combinations: u64 = all.iter().map(|way| way.len() as u64).product();
        for combination in 0..combinations {
            successor.clear();
            successor.extend_from_slice(state);
            let mut left = combination;
            for ((component, _), way) in parts.iter().zip(&*all).rev() {
                let component = &self.components[*component as usize];
                let target = component.table.targets[way.start + (left % way.len() as u64) as usize];
                left /= way.len() as u64;
                if let Some(field) = layout.variables[component.variable] {
                    field.set(successor, 0, target as i32);
                }
            }
            visit(rule, successor);
        }
    }

    /// Whether some rule with this label can take a step.
    pub fn is_enabled(&self, label: LabelId, layout: &Layout, state: &[u32]) -> bool {
        let is_ready = |(component, label): &(u32, u32)| {
            let component = &self.components[*component as usize];
            !component.table.of_label(self.state_of(component, layout, state), *label).is_empty()
        };
        match &self.rules {
            Rules::OfLabels { .. } => is_ready(&(0, label as u32)),
            Rules::Listed(Listed { rules, label_offsets, of_labels, .. }) => {
                let of_label = &of_labels[label_offsets[label] as usize..label_offsets[label + 1] as usize];
                of_label.iter().any(|rule| rules[*rule as usize].parts.iter().all(is_ready))
            }
        }
    }

    /// Number of a component's state in a packed state.
    pub fn state_of(&self, component: &Component, layout: &Layout, state: &[u32]) -> u32 {
        // A component with only one state has no field.
        layout.variables[component.variable].map_or(component.table.initial, |field| field.get(state, 0) as u32)
    }
}

/// Returns the rules ordered by label, and the offset of each label's rules in that list.
fn by_label(rules: &[Rule], labels: usize) -> (Vec<u32>, Vec<u32>) {
    let mut offsets = vec![0; labels + 1];
    rules.iter().for_each(|rule| offsets[rule.label + 1] += 1);
    (0..labels).for_each(|label| offsets[label + 1] += offsets[label]);
    let mut of_labels = vec![0; rules.len()];
    // The loop moves each offset to the end of its label's part, which is where the part of the next label begins.
    for (id, rule) in rules.iter().enumerate() {
        of_labels[offsets[rule.label] as usize] = id as u32;
        offsets[rule.label] += 1;
    }
    offsets.rotate_right(1);
    offsets[0] = 0;
    (offsets, of_labels)
}
