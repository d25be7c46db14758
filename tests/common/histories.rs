//! Histories: sequences of operations on a set, each followed by a check of everything that the set reports.

use super::checker::{Checked, Checker};
use super::set::Set;
use super::vectors::{Pool, Random};

/// A step of a history. Positions in the pool are taken modulo its length.
#[derive(Clone, Debug)]
pub enum Step {
    /// Offers each of these vectors this many times, shuffled.
    Offer { positions: Vec<u16>, copies: usize },
    /// Removes all vectors.
    Clear,
    /// Grows by half.
    Grow,
}

/// Plays a history on an empty set and checks every answer.
pub fn play(checker: &mut Checker<'_, impl Set>, set: &impl Set, pool: &Pool, steps: &[Step]) -> Checked {
    checker.check()?;
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Offer { positions, copies } => {
                let mut all: Vec<usize> = positions.iter().map(|at| usize::from(*at) % pool.len()).collect();
                all = all.repeat(*copies);
                Random::new(number as u64).shuffle(&mut all);
                let _ = checker.offer(&all)?;
            }
            Step::Clear => checker.clear()?,
            Step::Grow => checker.grow(set.slots() + set.slots() / 2 + 1)?,
        }
        checker.check()?;
    }
    Ok(())
}

/// A history that exposes every faulty set: offers of new, stored and repeated vectors, a growth, and a clearing.
pub fn thorough() -> Vec<Step> {
    let offer = |range: std::ops::Range<u16>, copies| Step::Offer { positions: range.collect(), copies };
    vec![
        offer(0..10, 1),
        offer(5..15, 1),
        offer(0..20, 3),
        Step::Grow,
        offer(10..30, 2),
        Step::Clear,
        offer(20..30, 1),
        offer(20..30, 1),
    ]
}
