//! The parts of formulas as sets of states, bottom-up, on any machine.

use super::bits::{Bits, View};
use anyhow::{Result, ensure};
use rayon::prelude::*;
use warpset_model::ctl::{Literal, Part, Parts};

/// A set of states, or its complement.
pub struct Operand<'s, S> {
    pub set: &'s S,
    pub is_negated: bool,
}

/// The states of an exploration, and the operators on sets of them.
pub trait Space: Sync {
    /// A set of states, where the operators are computed.
    type Set: Send + Sync;

    /// Bytes that states and steps take.
    fn bytes(&self) -> u64;

    fn bytes_of_set(&self) -> u64;

    /// Bytes that an operator takes for a while, beside its set.
    fn bytes_of_operator(&self) -> u64;

    /// All states.
    fn all(&self) -> Result<Self::Set>;

    /// The states in which a condition holds; `None` if it has a fault in one.
    fn condition(&self, number: usize) -> Result<Option<Self::Set>>;

    fn and(&self, operands: [Operand<Self::Set>; 2]) -> Result<Self::Set>;

    /// The states with a successor in a set.
    fn next(&self, of: Operand<Self::Set>) -> Result<Self::Set>;

    /// The states with a path through the first set to the second.
    fn until(&self, operands: [Operand<Self::Set>; 2]) -> Result<Self::Set>;

    /// The states with a path in the set that ends in a deadlock or never.
    fn always(&self, of: Operand<Self::Set>) -> Result<Self::Set>;

    /// Whether the initial state is in a set, and how many states are.
    fn tally(&self, of: Operand<Self::Set>) -> Result<(bool, u64)>;

    /// Whether an operator uses all threads by itself, so that sets are computed one after another.
    fn has_threads(&self) -> bool;
}

/// The parts as sets; `None` for those that are no longer needed, and for those with a fault.
pub struct Values<S> {
    sets: Vec<Option<S>>,
    /// Whether the initial state satisfies each root, and how many states do; `None` if one of its conditions has a fault.
    pub of_roots: Vec<Option<(bool, u64)>>,
    /// Most bytes taken at a time.
    pub most_bytes: u64,
}

impl<S> Clone for Operand<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Operand<'_, S> {}

impl<'s> Operand<'s, Bits> {
    pub fn view(self) -> View<'s> {
        self.set.view(self.is_negated)
    }
}

impl<S> Values<S> {
    /// The set that a literal is; `None` if it is not kept.
    fn operand(&self, literal: Literal) -> Option<Operand<'_, S>> {
        Some(Operand { set: self.sets[literal.part()].as_ref()?, is_negated: literal.is_negated() })
    }
}

impl Values<Bits> {
    /// The set that a literal is; `None` if it is not kept.
    pub fn view(&self, literal: Literal) -> Option<View<'_>> {
        self.operand(literal).map(Operand::view)
    }

    pub fn contains(&self, literal: Literal, state: usize) -> bool {
        self.view(literal).expect("a set is kept as long as it has a use").contains(state)
    }
}

/// Computes the sets of the roots, and the sets of `kept` parts, which stay. Parts that do not depend on each other are
/// computed by several threads, unless an operator takes all of them; a set is freed behind its last use. A part has no set if a
/// condition that it is made of has a fault.
///
/// # Errors
///
/// The limit of memory or time.
pub fn evaluate<X: Space>(space: &X, parts: &Parts, roots: &[Literal], kept: &[bool], limit: u64) -> Result<Values<X::Set>> {
    let all = parts.all();
    let groups = if space.has_threads() { one_by_one(parts, roots) } else { by_depth(parts, roots) };
    let mut uses = vec![0_usize; all.len()];
    for (number, is_kept) in kept.iter().enumerate() {
        uses[number] += usize::from(*is_kept);
    }
    groups.iter().flatten().flat_map(|number| all[*number].operands()).for_each(|of| uses[of.part()] += 1);
    let (of_set, of_operator) = (space.bytes_of_set(), space.bytes_of_operator());
    let sets = all.iter().map(|_| None).collect();
    let mut values = Values { sets, of_roots: vec![None; roots.len()], most_bytes: 0 };
    let mut alive = 0;
    for some in groups {
        let bytes = (alive + some.len() as u64) * of_set + some.len() as u64 * of_operator;
        ensure!(bytes <= limit, "no memory for {} sets of states, a bit a state", alive + some.len() as u64);
        values.most_bytes = values.most_bytes.max(bytes);
        let one = |number: &usize| set(space, all[*number], &values);
        // The threads that a machine is used from are its own choice.
        let computed: Result<Vec<Option<X::Set>>> =
            if space.has_threads() { some.iter().map(one).collect() } else { some.par_iter().map(one).collect() };
        for (number, set) in some.iter().zip(computed?) {
            let Some(set) = set else { continue };
            for (root, of_root) in roots.iter().zip(&mut values.of_roots).filter(|(root, _)| root.part() == *number) {
                *of_root = Some(space.tally(Operand { set: &set, is_negated: root.is_negated() })?);
            }
            values.sets[*number] = Some(set);
            alive += 1;
        }
        let operands: Vec<usize> = some.iter().flat_map(|number| all[*number].operands()).map(Literal::part).collect();
        operands.iter().for_each(|of| uses[*of] -= 1);
        // A root may have no use but its verdict.
        for number in some.iter().chain(&operands) {
            if uses[*number] == 0 && values.sets[*number].take().is_some() {
                alive -= 1;
            }
        }
    }
    Ok(values)
}

/// The parts of formulas in groups whose members do not depend on each other, one for each thread.
fn by_depth(parts: &Parts, roots: &[Literal]) -> Vec<Vec<usize>> {
    let all = parts.all();
    let mut depth = vec![0; all.len()];
    for (number, part) in all.iter().enumerate() {
        depth[number] = part.operands().map(|of| depth[of.part()] + 1).max().unwrap_or(0);
    }
    let mut needed = one_by_one(parts, roots).concat();
    needed.sort_by_key(|number| depth[*number]);
    let levels = needed.chunk_by(|one, other| depth[*one] == depth[*other]);
    levels.flat_map(|level| level.chunks(rayon::current_num_threads())).map(<[usize]>::to_vec).collect()
}

/// The parts of one formula after the other, each part behind its operands.
fn one_by_one(parts: &Parts, roots: &[Literal]) -> Vec<Vec<usize>> {
    let all = parts.all();
    let mut is_listed = vec![false; all.len()];
    let mut order = Vec::new();
    for root in roots {
        let mut waiting = vec![(root.part(), false)];
        while let Some((number, are_operands_listed)) = waiting.pop() {
            if are_operands_listed {
                order.push(vec![number]);
            } else if !std::mem::replace(&mut is_listed[number], true) {
                waiting.push((number, true));
                waiting.extend(all[number].operands().map(|of| (of.part(), false)));
            }
        }
    }
    order
}

/// The set that a part is; `None` if a condition has a fault.
fn set<X: Space>(space: &X, part: Part, values: &Values<X::Set>) -> Result<Option<X::Set>> {
    let both = |operands: [Literal; 2]| Some([values.operand(operands[0])?, values.operand(operands[1])?]);
    match part {
        Part::True => space.all().map(Some),
        Part::Condition(number) => space.condition(number),
        Part::And(operands) => both(operands).map(|operands| space.and(operands)).transpose(),
        Part::Next(of) => values.operand(of).map(|of| space.next(of)).transpose(),
        Part::Until(operands) => both(operands).map(|operands| space.until(operands)).transpose(),
        Part::Always(of) => values.operand(of).map(|of| space.always(of)).transpose(),
    }
}
