//! Labels in their written form, and as disjunctions of cubes.
//!
//! A short text may stand for a long disjunction, and an alias may be used many times. Budgets in proportion to the text's size
//! bound the memory and the time of all labels together.

use super::super::buchi::{Cube, Label};
use std::rc::Rc;

/// Limit of the cubes of a label.
const MOST_CUBES: usize = 4096;

/// Limit of the pairs of cubes that one conjunction may have.
const MOST_PAIRS: usize = 16 * MOST_CUBES;

/// Budgets for the literals of all labels and for the pairs of cubes that are compared: a base amount for any text, and an amount
/// for each byte of the text. A one-digit number and a blank may be an edge without a label, whose cube has a literal for each
/// proposition.
const LITERALS: [u64; 2] = [1 << 20, 8];
const PAIRS: [u64; 2] = [1 << 26, 1 << 10];

/// A label in its written form.
#[derive(Clone, Debug)]
pub enum Condition {
    Constant(bool),
    Proposition(u64),
    Not(Box<Condition>),
    And(Box<[Condition; 2]>),
    Or(Box<[Condition; 2]>),
    Alias(Rc<Condition>),
}

/// Remaining budget of literals and comparisons for the labels of a text.
pub struct Budget {
    literals: u64,
    pairs: u64,
}

impl Budget {
    /// Budget of a text of `bytes` bytes.
    pub fn of(bytes: u64) -> Self {
        let of = |[any, each]: [u64; 2]| any + each * bytes;
        Self { literals: of(LITERALS), pairs: of(PAIRS) }
    }

    /// Charges the literals of a label that is kept.
    ///
    /// # Errors
    ///
    /// The budget of literals is exceeded.
    pub fn keep(&mut self, label: &Label) -> Result<(), String> {
        let of_cube = |cube: &Cube| u64::from((cube.positive | cube.negative).count_ones().max(1));
        let literals = label.0.iter().map(of_cube).sum();
        let left = self.literals.checked_sub(literals);
        self.literals = left.ok_or("all labels together have too many literals for a text of this size")?;
        Ok(())
    }

    /// The label of a condition.
    ///
    /// # Errors
    ///
    /// The label is too large; the text says in which respect.
    pub fn label(&mut self, condition: &Condition) -> Result<Label, String> {
        self.signed(condition, true)
    }

    /// The label of the condition (`truth`) or of its negation.
    fn signed(&mut self, condition: &Condition, truth: bool) -> Result<Label, String> {
        let (of, is_and) = match condition {
            Condition::Constant(value) => return Ok(Label(if *value == truth { vec![Cube::TRUE] } else { Vec::new() })),
            Condition::Proposition(number) => return Ok(Label(vec![Cube::of(*number as usize, truth)])),
            Condition::Not(of) => return self.signed(of, !truth),
            Condition::Alias(of) => return self.signed(of, truth),
            Condition::And(of) => (of, truth),
            Condition::Or(of) => (of, !truth),
        };
        let (Label(left), Label(right)) = (self.signed(&of[0], truth)?, self.signed(&of[1], truth)?);
        if !is_and {
            return self.joined([left, right].concat().into_iter());
        }
        let pairs = left.len() * right.len();
        if pairs > MOST_PAIRS {
            return Err(format!("a conjunction of disjunctions with {pairs} pairs; at most {MOST_PAIRS} are possible"));
        }
        self.spend(pairs as u64)?;
        self.joined(left.iter().flat_map(|a| right.iter().filter_map(|b| a.and(*b))))
    }

    fn joined(&mut self, cubes: impl Iterator<Item = Cube>) -> Result<Label, String> {
        let mut label = Label::default();
        for cube in cubes {
            self.spend(label.0.len() as u64)?;
            label.add(cube);
            if label.0.len() > MOST_CUBES {
                return Err(format!("a disjunction of more than {MOST_CUBES} conjunctions"));
            }
        }
        label.0.sort_unstable();
        Ok(label)
    }

    fn spend(&mut self, pairs: u64) -> Result<(), String> {
        let left = self.pairs.checked_sub(pairs);
        self.pairs = left.ok_or("all labels together take too long for a text of this size")?;
        Ok(())
    }
}
