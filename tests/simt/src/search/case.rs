//! A random graph and an automaton, and the expected results, computed by plain loops.

use super::What;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use std::collections::{HashMap, VecDeque};

pub const IN_RESIDUE: u32 = 1 << 15;
pub const IS_REACHED: u32 = 1 << 14;
pub const IS_ACCEPTING: u32 = 1 << 13;
pub const COUNT: u32 = IS_ACCEPTING - 1;

pub const CHOICES: usize = 4;
pub const LOCATIONS: usize = 3;
/// Maximum number of steps of a state: each choice, or staying in place, combined with each move.
pub const MOST_STEPS: usize = (CHOICES + 1) * LOCATIONS;
pub const NO_NODE: u32 = u32::MAX;

pub type State = (u32, u32);

/// A random graph, with a random automaton or without one.
pub struct Case {
    pub edges: Vec<[u32; CHOICES]>,
    /// By location, its moves as bits: move i leads to the location i further on.
    pub moves: Option<[u32; LOCATIONS]>,
    /// By location: twice its component number, plus 1 if the location is accepting.
    pub about: [u32; LOCATIONS],
    /// Value at which a count of predecessors saturates.
    pub most: u32,
}

/// Results of a plain search.
pub struct Found {
    pub states: Vec<State>,
    pub numbers: HashMap<State, usize>,
    /// By state, its successors, with multiplicity.
    pub successors: Vec<Vec<usize>>,
    /// By level, the number of its first state.
    pub starts: Vec<usize>,
    pub deadlocks: u64,
}

impl Case {
    pub fn random(rng: &mut Pcg64Mcg, what: What) -> Self {
        // For a rank, some graphs are so large that its buffers cannot hold all successors. For an indexed table, some graphs are
        // so large that blocks find the same states at the same time and leave spare rows.
        let many = matches!(what, What::Level | What::Rows) && rng.random_bool(0.5);
        let nodes = rng.random_range(1..=if many { 300u32 } else { 40 });
        // Densities range from trees, which the elimination removes completely, to graphs in which every step leads somewhere.
        let present = if !many && rng.random_bool(0.5) { rng.random_range(0.15..0.45) } else { rng.random_range(0.45..1.0) };
        let mut edge = |from: u32| match rng.random_bool(present) {
            // Most edges lead a short way forward, so that the graph has levels, and chains without a cycle.
            true if !many && rng.random_bool(0.8) => (from + rng.random_range(1..5)).min(nodes - 1),
            true => rng.random_range(0..nodes),
            false => NO_NODE,
        };
        let edges = (0..nodes).map(|from| std::array::from_fn(|_| edge(from))).collect();
        let mut moves = || if many { (1 << LOCATIONS) - 1 } else { rng.random_range(0..1 << LOCATIONS) };
        let moves = (!what.is_a_system()).then(|| std::array::from_fn(|_| moves()));
        // Usually, most locations are in one component.
        let about = std::array::from_fn(|_| *[0, 2, 2, 3, 3, 5].get(rng.random_range(0..6usize)).expect("there are six"));
        let most = *[1, 2, 3, COUNT].get(rng.random_range(0..4usize)).expect("there are four");
        Self { edges, moves, about, most }
    }

    pub fn tables(&self) -> Vec<u32> {
        let nodes = self.edges.len() as u32;
        std::iter::once(nodes).chain(self.edges.iter().copied().flatten()).chain(self.moves.into_iter().flatten()).collect()
    }

    pub fn successors(&self, (node, location): State) -> (bool, Vec<State>) {
        let steps: Vec<u32> = self.edges[node as usize].into_iter().filter(|target| *target != NO_NODE).collect();
        let is_deadlock = steps.is_empty();
        let Some(moves) = self.moves else { return (is_deadlock, steps.into_iter().map(|to| (to, 0)).collect()) };
        // In a deadlock only the automaton moves.
        let steps = if is_deadlock { vec![node] } else { steps };
        let moved: Vec<u32> = (0..LOCATIONS as u32).filter(|by| moves[location as usize] >> by & 1 == 1).collect();
        let to = |by: &u32| (location + by) % LOCATIONS as u32;
        (is_deadlock, steps.iter().flat_map(|step| moved.iter().map(|by| (*step, to(by)))).collect())
    }

    pub fn explore(&self) -> Found {
        let mut found = Found {
            states: vec![(0, 0)],
            numbers: HashMap::from([((0, 0), 0)]),
            successors: Vec::new(),
            starts: Vec::new(),
            deadlocks: 0,
        };
        while found.successors.len() < found.states.len() {
            found.starts.push(found.successors.len());
            for number in found.successors.len()..found.states.len() {
                let (is_deadlock, successors) = self.successors(found.states[number]);
                found.deadlocks += u64::from(is_deadlock);
                let mut numbers = Vec::new();
                for state in successors {
                    let next = found.states.len();
                    let number = *found.numbers.entry(state).or_insert(next);
                    if number == next {
                        found.states.push(state);
                    }
                    numbers.push(number);
                }
                found.successors.push(numbers);
            }
        }
        found
    }

    /// Returns the flags of all states after `rounds` rounds.
    pub fn passes(&self, found: &Found, rounds: usize) -> Vec<u32> {
        let about = |state: usize| self.about[found.states[state].1 as usize];
        let mut flags: Vec<u32> = (0..found.states.len())
            .map(|state| match about(state) {
                0 | 1 => 0,
                about => IN_RESIDUE | if about % 2 == 1 { IS_ACCEPTING } else { 0 },
            })
            .collect();
        let steps = |from: usize| found.successors[from].iter().copied().filter(move |to| about(*to) / 2 == about(from) / 2);
        for _ in 0..rounds {
            let mut waiting = VecDeque::new();
            for (state, flags) in flags.iter_mut().enumerate().filter(|(_, flags)| **flags & IN_RESIDUE != 0) {
                *flags &= IN_RESIDUE | IS_ACCEPTING;
                if *flags & IS_ACCEPTING != 0 {
                    *flags |= IS_REACHED;
                    waiting.push_back(state);
                }
            }
            while let Some(from) = waiting.pop_front() {
                for to in steps(from).filter(|to| flags[*to] & IN_RESIDUE != 0).collect::<Vec<_>>() {
                    if flags[to] & IS_REACHED == 0 {
                        waiting.push_back(to);
                    }
                    flags[to] = (flags[to] | IS_REACHED) + u32::from(flags[to] & COUNT < self.most);
                }
            }
            for (state, flags) in flags.iter_mut().enumerate() {
                if *flags & IS_REACHED == 0 {
                    *flags = 0;
                } else if *flags & COUNT == 0 {
                    *flags = 0;
                    waiting.push_back(state);
                }
            }
            while let Some(from) = waiting.pop_front() {
                for to in steps(from) {
                    match flags[to] & COUNT {
                        0 => {}
                        count if count >= self.most => {}
                        1 => {
                            flags[to] = 0;
                            waiting.push_back(to);
                        }
                        _ => flags[to] -= 1,
                    }
                }
            }
        }
        flags
    }
}
