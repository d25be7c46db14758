//! A property automaton in addition to the processes: a Büchi automaton that accepts the forbidden runs.
//!
//! The automaton is the model's last process, and its location is a part of the state. Its moves are not transitions of the
//! model: their guards read the state, and they write no variable. A *product state* is a state of the processes together with a
//! location of the automaton. Its steps:
//!
//! 1. A step is a step of the processes together with a move of the automaton whose guard is not 0 in the state before the step.
//!    Each step of the processes combines with each such move.
//! 2. If the processes have no step, each such move is a step by itself: a run that ends stays in its last state for ever.
//! 3. If the automaton has no such move, there is no step, whatever the processes can do.
//!
//! The property is violated if and only if some accepting product state can be reached and lies on a cycle.

use super::{Expression, LocationId, ProcessId, Span};
use warpset_support::components::components;

#[derive(Clone, Debug, PartialEq)]
pub struct Property {
    /// The automaton's process: the last one, without any [transition](super::Transition).
    pub process: ProcessId,
    /// Whether a location is accepting, by location.
    pub accepting: Vec<bool>,
    pub moves: Vec<Move>,
    /// By location, the moves that leave it, ascending.
    pub leaving: Vec<Vec<usize>>,
}

/// A transition of the automaton.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    pub from: LocationId,
    pub to: LocationId,
    /// The guard; `None` means always true.
    pub guard: Option<Expression>,
    /// Span of the guard in the model's text; line 0 if the text does not contain it.
    pub span: Span,
}

/// The class of the automaton, by the syntax of its reachable part. The class determines which search for accepting cycles
/// suffices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutomatonClass {
    /// The automaton is weak, and each accepting location has a move without a guard to an accepting location. So reaching an
    /// accepting product state is a violation.
    Terminal,
    /// Each component with a move has either only accepting locations or none.
    Weak,
    General,
}

impl AutomatonClass {
    pub fn word(self) -> &'static str {
        match self {
            Self::Terminal => "terminal",
            Self::Weak => "weak",
            Self::General => "general",
        }
    }
}

impl Move {
    /// Whether the guard is true in every state.
    pub fn is_unguarded(&self) -> bool {
        matches!(self.guard, None | Some(Expression::Constant(1..) | Expression::Constant(..=-1)))
    }
}

impl Property {
    /// The automaton of a model's last process.
    pub fn new(process: ProcessId, accepting: Vec<bool>, moves: Vec<Move>) -> Self {
        let mut leaving = vec![Vec::new(); accepting.len()];
        moves.iter().enumerate().for_each(|(number, of)| leaving[of.from].push(number));
        Self { process, accepting, moves, leaving }
    }

    /// Largest number of moves that leave a location.
    pub fn most_moves(&self) -> usize {
        self.leaving.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Component number of each location, from 1 on. 0 for a location whose component cannot be reached from `initial`, has no
    /// move, or has no accepting location. All accepting cycles of a product lie in components with a number.
    pub fn accepting_components(&self, initial: LocationId) -> Vec<u32> {
        let component = self.components();
        let reached = self.reached(initial);
        let is_inner = |of: &&Move| reached[of.from] && component[of.from] == component[of.to];
        let mut has_move = vec![false; self.accepting.len()];
        self.moves.iter().filter(is_inner).for_each(|of| has_move[component[of.from] as usize] = true);
        let mut numbers = vec![0; self.accepting.len()];
        let mut next = 1;
        for (location, accepting) in self.accepting.iter().enumerate() {
            let number = &mut numbers[component[location] as usize];
            if *accepting && *number == 0 && has_move[component[location] as usize] {
                *number = next;
                next += 1;
            }
        }
        component.iter().map(|component| numbers[*component as usize]).collect()
    }

    pub fn kind(&self, initial: LocationId) -> AutomatonClass {
        let (component, reached) = (self.components(), self.reached(initial));
        // By component: whether it has a location that is not accepting, and one that is accepting.
        let mut has = vec![[false; 2]; component.len()];
        component.iter().zip(&self.accepting).for_each(|(of, accepting)| has[*of as usize][usize::from(*accepting)] = true);
        let mut inner = self.moves.iter().filter(|of| reached[of.from] && component[of.from] == component[of.to]);
        if inner.any(|of| has[component[of.from] as usize] == [true; 2]) {
            return AutomatonClass::General;
        }
        let goes_on = |at: usize| {
            let mut moves = self.leaving[at].iter().map(|number| &self.moves[*number]);
            moves.any(|of| of.is_unguarded() && self.accepting[of.to])
        };
        let all_go_on = (0..component.len()).filter(|at| reached[*at] && self.accepting[*at]).all(goes_on);
        if all_go_on { AutomatonClass::Terminal } else { AutomatonClass::Weak }
    }

    fn components(&self) -> Vec<u32> {
        let targets: Vec<Vec<u32>> =
            self.leaving.iter().map(|moves| moves.iter().map(|number| self.moves[*number].to as u32).collect()).collect();
        components(targets.len(), |at| &targets[at])
    }

    fn reached(&self, initial: LocationId) -> Vec<bool> {
        let mut reached = vec![false; self.accepting.len()];
        reached[initial] = true;
        let mut waiting = vec![initial];
        while let Some(at) = waiting.pop() {
            for number in &self.leaving[at] {
                let to = self.moves[*number].to;
                if !std::mem::replace(&mut reached[to], true) {
                    waiting.push(to);
                }
            }
        }
        reached
    }
}
