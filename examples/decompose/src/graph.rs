//! Graphs in memory, as compressed sparse rows, and the choices of Markov decision processes.

use anyhow::{Result, ensure};

/// Limit of the number of states: numbers have 32 bits, and one value means no state.
pub const MOST_STATES: u64 = u32::MAX as u64 - 1;

/// Limit of the number of transitions into one state and of those out of one state: they are counted in 32 bits.
pub const MOST_DEGREE: u64 = u32::MAX as u64 - 1;

/// A graph. State s leads to the states `targets[offsets[s] .. offsets[s + 1]]`.
pub struct Graph {
    pub offsets: Vec<u64>,
    pub targets: Vec<u32>,
    /// The choices; `None` if each transition is a choice of its own.
    pub choices: Option<Choices>,
}

/// The choices of each state.
pub struct Choices {
    /// State s has the choices `of_states[s] .. of_states[s + 1]`.
    pub of_states: Vec<u64>,
    /// Choice c may lead to the graph's `targets[offsets[c] .. offsets[c + 1]]`, which is never empty.
    pub offsets: Vec<u64>,
}

impl Graph {
    /// Bytes of the graph in memory.
    pub fn bytes(&self) -> u64 {
        bytes(self.states(), self.transitions(), self.choices.as_ref().map(|_| self.choice_count()))
    }

    /// Creates a graph with one row for each state.
    ///
    /// # Errors
    ///
    /// There are too many states, or a state has too many transitions.
    pub fn new(offsets: Vec<u64>, targets: Vec<u32>) -> Result<Self> {
        Self::checked(Self { offsets, targets, choices: None })
    }

    /// Creates a graph with one row for each choice.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn of_choices(of_states: Vec<u64>, offsets: Vec<u64>, targets: Vec<u32>) -> Result<Self> {
        let of_graph = of_states.iter().map(|choice| offsets[*choice as usize]).collect();
        Self::checked(Self { offsets: of_graph, targets, choices: Some(Choices { of_states, offsets }) })
    }

    /// Creates a graph from transitions in any order.
    pub fn of_transitions(states: u64, sources: &[u32], targets: &[u32]) -> Result<Self> {
        let mut offsets = vec![0; states as usize + 1];
        sources.iter().for_each(|source| offsets[*source as usize + 1] += 1);
        // During the loop, `offsets[s + 1]` is the place of the next transition of state s; after the loop, it is the place after
        // the last one.
        let mut before = 0;
        for offset in &mut offsets {
            before += std::mem::replace(offset, before);
        }
        let mut sorted = vec![0; targets.len()];
        for (source, target) in sources.iter().zip(targets) {
            let at = &mut offsets[*source as usize + 1];
            sorted[*at as usize] = *target;
            *at += 1;
        }
        Self::new(offsets, sorted)
    }

    fn checked(self) -> Result<Self> {
        let states = self.states();
        ensure!(states <= MOST_STATES, "the graph has {states} states, but at most {MOST_STATES} are possible");
        // The limit also applies to the transitions into one state.
        if self.transitions() > MOST_DEGREE {
            let mut into = vec![0u64; states as usize];
            self.targets.iter().for_each(|target| into[*target as usize] += 1);
            for (state, into) in into.into_iter().enumerate() {
                let most = into.max(self.offsets[state + 1] - self.offsets[state]);
                ensure!(
                    most <= MOST_DEGREE,
                    "state {state} has {most} incoming or outgoing transitions, but at most {MOST_DEGREE} are possible"
                );
            }
        }
        Ok(self)
    }

    pub fn states(&self) -> u64 {
        self.offsets.len() as u64 - 1
    }

    pub fn transitions(&self) -> u64 {
        self.targets.len() as u64
    }

    pub fn choice_count(&self) -> u64 {
        self.choices.as_ref().map_or(self.transitions(), |choices| choices.offsets.len() as u64 - 1)
    }

    pub fn successors(&self, state: usize) -> &[u32] {
        &self.targets[self.offsets[state] as usize..self.offsets[state + 1] as usize]
    }
}

/// Bytes of a graph with these numbers of states, transitions and choices in memory. `choices` is `None` if each transition is a
/// choice. The result is `u64::MAX` if it overflows, because a file may announce any numbers.
pub fn bytes(states: u64, transitions: u64, choices: Option<u64>) -> u64 {
    let offsets = |rows: u64| rows.saturating_add(1).saturating_mul(8);
    let of_choices = choices.map_or(0, |choices| offsets(states).saturating_add(offsets(choices)));
    offsets(states).saturating_add(transitions.saturating_mul(4)).saturating_add(of_choices)
}
