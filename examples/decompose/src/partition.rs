//! Statistics of components.

use super::graph::Graph;

/// Label of a state that is in no component.
pub const NONE: u32 = u32::MAX;

/// Histogram of sizes by powers of two: components of two to three states, of four to seven, and so on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Number of components, by binary logarithm of the size.
    pub counts: Vec<u64>,
}

impl Histogram {
    fn add(&mut self, size: u32) {
        let place = size.ilog2() as usize;
        self.counts.resize(self.counts.len().max(place + 1), 0);
        self.counts[place] += 1;
    }

    /// The smallest size, the largest size and the count of each bin that is not empty.
    pub fn rows(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let some = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        some.map(|(place, count)| (1 << place, (2 << place) - 1, *count))
    }
}

/// Statistics of strongly connected components.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Components {
    pub count: u64,
    /// Number of components of one state without a transition to itself.
    pub trivial: u64,
    /// Number of components of one state with a transition to itself.
    pub self_loops: u64,
    /// Number of components that no transition leaves.
    pub bottom: u64,
    pub largest: u32,
    pub sizes: Histogram,
    /// Number of states without a transition to or from them. Each is a component of its own.
    pub without_edges: u64,
}

/// Statistics of maximal end components.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndComponents {
    pub count: u64,
    /// Number of end components of one state.
    pub single: u64,
    pub states: u64,
    /// Number of choices of these states that stay in their end component.
    pub choices: u64,
    pub largest: u32,
    pub sizes: Histogram,
}

impl Components {
    /// Counts components. `labels` has the smallest state of each state's component.
    pub fn of(graph: &Graph, labels: &[u32]) -> Self {
        let sizes = sizes(labels);
        let (mut leaves, mut loops) = (vec![false; labels.len()], 0);
        for (state, label) in labels.iter().enumerate() {
            let successors = graph.successors(state);
            leaves[*label as usize] |= successors.iter().any(|target| labels[*target as usize] != *label);
            loops += u64::from(sizes[*label as usize] == 1 && successors.contains(&(state as u32)));
        }
        let mut all = Self { self_loops: loops, without_edges: without_edges(graph), ..Self::default() };
        for (size, leaves) in sizes.into_iter().zip(leaves).filter(|(size, _)| *size > 0) {
            all.count += 1;
            all.trivial += u64::from(size == 1);
            all.bottom += u64::from(!leaves);
            all.largest = all.largest.max(size);
            all.sizes.add(size);
        }
        all.trivial -= loops;
        all
    }
}

impl EndComponents {
    /// Counts end components. `labels` has the smallest state of each state's end component.
    pub fn of(graph: &Graph, labels: &[u32]) -> Self {
        let mut all = Self::default();
        for size in sizes(labels).into_iter().filter(|size| *size > 0) {
            all.count += 1;
            all.single += u64::from(size == 1);
            all.states += u64::from(size);
            all.largest = all.largest.max(size);
            all.sizes.add(size);
        }
        let stays = |label: u32, targets: &[u32]| u64::from(targets.iter().all(|target| labels[*target as usize] == label));
        for (state, label) in labels.iter().enumerate().filter(|(_, label)| **label != NONE) {
            all.choices += match &graph.choices {
                None => graph.successors(state).chunks(1).map(|target| stays(*label, target)).sum(),
                Some(choices) => (choices.of_states[state]..choices.of_states[state + 1])
                    .map(|choice| &choices.offsets[choice as usize..][..2])
                    .map(|ends| stays(*label, &graph.targets[ends[0] as usize..ends[1] as usize]))
                    .sum::<u64>(),
            };
        }
        all
    }
}

/// Number of states without a transition to or from them.
fn without_edges(graph: &Graph) -> u64 {
    let mut have_edges: Vec<bool> = graph.offsets.windows(2).map(|ends| ends[0] < ends[1]).collect();
    if have_edges.contains(&false) {
        graph.targets.iter().for_each(|target| have_edges[*target as usize] = true);
    }
    have_edges.into_iter().filter(|has_edges| !has_edges).count() as u64
}

/// By label, the number of states that have it.
fn sizes(labels: &[u32]) -> Vec<u32> {
    let mut sizes = vec![0; labels.len()];
    labels.iter().filter(|label| **label != NONE).for_each(|label| sizes[*label as usize] += 1);
    sizes
}

/// By state, the smallest state of its component. `numbers` identifies components by any numbers below the number of states.
pub fn smallest_states(numbers: Vec<u32>) -> Vec<u32> {
    let mut smallest = vec![NONE; numbers.len()];
    for (state, number) in numbers.iter().enumerate() {
        let first = &mut smallest[*number as usize];
        *first = (*first).min(state as u32);
    }
    numbers.into_iter().map(|number| smallest[number as usize]).collect()
}

/// Finds the end components of a graph in which every transition is a choice of its own. A transition that stays in its component
/// is never removed, so the end components are the components with a transition inside.
pub fn without_choices(graph: &Graph, labels: &[u32]) -> Vec<u32> {
    let mut has_inside = vec![false; labels.len()];
    for (state, label) in labels.iter().enumerate() {
        has_inside[*label as usize] |= graph.successors(state).iter().any(|target| labels[*target as usize] == *label);
    }
    labels.iter().map(|label| if has_inside[*label as usize] { *label } else { NONE }).collect()
}
