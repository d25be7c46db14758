//! Büchi automata over propositions, and their reduction.

use std::collections::{BTreeMap, HashMap};
use warpset_support::components::components;

/// Limit of the number of propositions: labels have one bit for each.
pub const MOST_PROPOSITIONS: usize = 64;

/// A conjunction: the propositions in `positive` are true, and those in `negative` are false.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cube {
    pub positive: u64,
    pub negative: u64,
}

/// A disjunction of cubes. No cube implies another one; no cubes means false, and the empty cube means true.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(pub Vec<Cube>);

/// An automaton whose accepting runs go through accepting states infinitely often.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buchi {
    pub initial: usize,
    pub accepting: Vec<bool>,
    /// Edges that leave a state, by state; each target occurs once.
    pub edges: Vec<Vec<(Label, usize)>>,
}

impl Cube {
    pub const TRUE: Self = Self { positive: 0, negative: 0 };

    pub fn of(proposition: usize, positive: bool) -> Self {
        let bit = 1 << proposition;
        if positive { Self { positive: bit, negative: 0 } } else { Self { positive: 0, negative: bit } }
    }

    /// The conjunction; `None` if both cannot be true.
    pub fn and(self, other: Self) -> Option<Self> {
        let both = Self { positive: self.positive | other.positive, negative: self.negative | other.negative };
        (both.positive & both.negative == 0).then_some(both)
    }

    pub fn implies(self, other: Self) -> bool {
        other.positive & !self.positive == 0 && other.negative & !self.negative == 0
    }

    /// The disjunction as one cube, if the cubes differ only in the sign of one proposition.
    fn merged(self, other: Self) -> Option<Self> {
        let difference = self.positive ^ other.positive;
        let is_one = difference.is_power_of_two() && difference == self.negative ^ other.negative;
        let same = (self.positive | self.negative) == (other.positive | other.negative);
        (is_one && same).then_some(Self { positive: self.positive & !difference, negative: self.negative & !difference })
    }
}

impl Label {
    pub fn of(cubes: impl IntoIterator<Item = Cube>) -> Self {
        let mut label = Self::default();
        cubes.into_iter().for_each(|cube| label.add(cube));
        label.0.sort_unstable();
        label
    }

    /// Adds a cube, and merges cubes where possible.
    pub fn add(&mut self, cube: Cube) {
        if self.0.iter().any(|other| cube.implies(*other)) {
            return;
        }
        self.0.retain(|other| !other.implies(cube));
        let merged = self.0.iter().enumerate().find_map(|(at, other)| Some((at, other.merged(cube)?)));
        match merged {
            Some((at, merged)) => {
                self.0.remove(at);
                self.add(merged);
            }
            None => self.0.push(cube),
        }
    }

    pub fn is_true(&self) -> bool {
        self.0 == [Cube::TRUE]
    }
}

impl Buchi {
    /// A smaller automaton with the same language; repeats the reductions below until nothing changes.
    pub fn simplified(mut self) -> Self {
        loop {
            let before = self.clone();
            self.remove_dead();
            self.level_components();
            self.merge_equal();
            if self == before {
                break;
            }
        }
        self.accept_on_cycles();
        self
    }

    /// Makes states that lie on no cycle non-accepting.
    fn accept_on_cycles(&mut self) {
        let component = self.components();
        let mut has_cycle = vec![false; self.edges.len()];
        for (state, edges) in self.edges.iter().enumerate() {
            has_cycle[component[state] as usize] |= edges.iter().any(|(_, to)| component[*to] == component[state]);
        }
        self.accepting.iter_mut().zip(&component).for_each(|(accepting, of)| *accepting &= has_cycle[*of as usize]);
    }

    fn components(&self) -> Vec<u32> {
        let targets: Vec<Vec<u32>> = self.edges.iter().map(|edges| edges.iter().map(|(_, to)| *to as u32).collect()).collect();
        components(targets.len(), |at| &targets[at])
    }

    /// Keeps only states that can be reached and that have an accepting run for some word; always keeps the initial state.
    fn remove_dead(&mut self) {
        let component = self.components();
        let mut is_live = vec![false; self.edges.len()];
        for (state, edges) in self.edges.iter().enumerate() {
            let is_cycle = edges.iter().any(|(_, to)| component[*to] == component[state]);
            if self.accepting[state] && is_cycle {
                is_live[component[state] as usize] = true;
            }
        }
        // Components have lower numbers than the components that lead to them.
        let mut order: Vec<usize> = (0..self.edges.len()).collect();
        order.sort_by_key(|state| component[*state]);
        for state in order {
            let goes_on = self.edges[state].iter().any(|(_, to)| is_live[component[*to] as usize]);
            is_live[component[state] as usize] |= goes_on;
        }
        let mut numbers = vec![usize::MAX; self.edges.len()];
        let mut kept = vec![self.initial];
        numbers[self.initial] = 0;
        let mut next = 0;
        while next < kept.len() {
            for (_, to) in &self.edges[kept[next]] {
                if is_live[component[*to] as usize] && numbers[*to] == usize::MAX {
                    numbers[*to] = kept.len();
                    kept.push(*to);
                }
            }
            next += 1;
        }
        let edges = kept.iter().map(|state| {
            let edges = self.edges[*state].iter().filter(|(_, to)| is_live[component[*to] as usize]);
            edges.map(|(label, to)| (label.clone(), numbers[*to])).collect()
        });
        *self = Self { initial: 0, accepting: kept.iter().map(|state| self.accepting[*state]).collect(), edges: edges.collect() };
    }

    /// If no cycle of a component is accepting, its states become non-accepting; if every cycle is accepting, they all become
    /// accepting. A state on no cycle takes the acceptance of its successors if they agree.
    fn level_components(&mut self) {
        let component = self.components();
        let inner = |from: usize, to: usize| component[from] == component[to];
        let count = self.edges.len();
        let mut has_cycle = vec![false; count];
        for (state, edges) in self.edges.iter().enumerate() {
            has_cycle[component[state] as usize] |= edges.iter().any(|(_, to)| inner(state, *to));
        }
        // Cycles that avoid accepting states are components of the graph without accepting states.
        let rest: Vec<Vec<u32>> = self
            .edges
            .iter()
            .enumerate()
            .map(|(state, edges)| {
                let to = edges.iter().map(|(_, to)| *to).filter(|to| inner(state, *to) && !self.accepting[*to]);
                if self.accepting[state] { Vec::new() } else { to.map(|to| to as u32).collect() }
            })
            .collect();
        let of_rest = components(count, |at| &rest[at]);
        let mut sizes = vec![0; count];
        of_rest.iter().for_each(|of| sizes[*of as usize] += 1);
        let (mut avoids, mut meets) = (vec![false; count], vec![false; count]);
        for state in 0..count {
            let is_cycle = sizes[of_rest[state] as usize] > 1 || rest[state].contains(&(state as u32));
            avoids[component[state] as usize] |= is_cycle && !self.accepting[state];
            meets[component[state] as usize] |= self.accepting[state];
        }
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|state| component[*state]);
        for state in order {
            let of = component[state] as usize;
            if has_cycle[of] {
                self.accepting[state] &= meets[of];
                self.accepting[state] |= !avoids[of];
            } else {
                let mut successors = self.edges[state].iter().map(|(_, to)| self.accepting[*to]);
                let first = successors.next().unwrap_or(false);
                self.accepting[state] = first && successors.all(|accepting| accepting);
            }
        }
    }

    /// Merges bisimilar states: equally accepting, with equal labels into equal classes. Merges the edges to one class into one
    /// label.
    fn merge_equal(&mut self) {
        let mut class: Vec<usize> = self.accepting.iter().map(|accepting| usize::from(*accepting)).collect();
        let mut classes = 0;
        loop {
            let mut numbers = HashMap::new();
            let signatures: Vec<_> = (0..class.len()).map(|state| (class[state], self.outgoing(state, &class))).collect();
            class = signatures
                .into_iter()
                .map(|signature| {
                    let next = numbers.len();
                    *numbers.entry(signature).or_insert(next)
                })
                .collect();
            if numbers.len() == classes {
                break;
            }
            classes = numbers.len();
        }
        let first = |of: usize| class.iter().position(|class| *class == of).expect("a class has a state");
        let edges: Vec<Vec<(Label, usize)>> = (0..classes).map(|of| self.outgoing(first(of), &class)).collect();
        let accepting = (0..classes).map(|of| self.accepting[first(of)]).collect();
        *self = Self { initial: class[self.initial], accepting, edges };
    }

    /// The label of the edges into each class of states, by class.
    fn outgoing(&self, state: usize, class: &[usize]) -> Vec<(Label, usize)> {
        let mut by_class: BTreeMap<usize, Vec<Cube>> = BTreeMap::new();
        for (label, to) in &self.edges[state] {
            by_class.entry(class[*to]).or_default().extend(&label.0);
        }
        by_class.into_iter().map(|(class, cubes)| (Label::of(cubes), class)).collect()
    }
}
