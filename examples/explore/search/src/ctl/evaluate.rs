//! The parts of formulas as sets of states, bottom-up.

use super::bits::{Bits, View};
use anyhow::{Result, ensure};
use rayon::prelude::*;
use warpset_model::ctl::{Literal, Part, Parts};

/// The states of an exploration, and their steps. States have numbers.
pub trait Space: Sync {
    /// The numbers that are states.
    fn states(&self) -> &Bits;

    /// Number of the initial state.
    fn initial(&self) -> usize;

    /// Bytes that states and steps take.
    fn bytes(&self) -> u64;

    /// Bytes that an operator takes for a while, beside its set.
    fn bytes_of_operator(&self) -> u64;

    /// The states in which a condition holds.
    fn condition(&self, number: usize) -> Result<Bits>;

    /// The states with a successor in a set.
    fn next(&self, of: View) -> Result<Bits>;

    /// The states with a path through the first set to the second.
    fn until(&self, first: View, second: View) -> Result<Bits>;

    /// The states with a path in the set that ends in a deadlock or never.
    fn always(&self, of: View) -> Result<Bits>;

    /// Whether an operator uses all threads by itself, so that sets are computed one after another.
    fn has_threads(&self) -> bool;

    /// A state's place in the table.
    fn member(&self, state: usize) -> warpset::Reference;

    /// The successors of a state; `None` if steps are not in memory.
    fn successors(&self, state: usize) -> Option<&[u32]>;
}

/// The parts as sets; `None` for those that are no longer needed.
pub struct Values {
    sets: Vec<Option<Bits>>,
    /// Whether the initial state satisfies each root, and how many states do.
    pub of_roots: Vec<(bool, u64)>,
    /// Most bytes taken at a time.
    pub most_bytes: u64,
}

impl Values {
    /// The set that a literal is; `None` if it is not kept.
    pub fn view(&self, literal: Literal) -> Option<View<'_>> {
        Some(self.sets[literal.part()].as_ref()?.view(literal.is_negated()))
    }

    fn needed(&self, literal: Literal) -> View<'_> {
        self.view(literal).expect("a set is kept as long as it has a use")
    }

    pub fn contains(&self, literal: Literal, state: usize) -> bool {
        self.needed(literal).contains(state)
    }
}

/// Computes the sets of the roots, and the sets of `kept` parts, which stay. Parts that do not depend on each other are
/// computed by several threads, unless an operator takes all of them; a set is freed behind its last use.
///
/// # Errors
///
/// The limit of memory or time.
pub fn evaluate(space: &impl Space, parts: &Parts, roots: &[Literal], kept: &[bool], limit: u64) -> Result<Values> {
    let all = parts.all();
    let groups = if space.has_threads() { one_by_one(parts, roots) } else { by_depth(parts, roots) };
    let mut uses = vec![0_usize; all.len()];
    for (number, is_kept) in kept.iter().enumerate() {
        uses[number] += usize::from(*is_kept);
    }
    groups.iter().flatten().flat_map(|number| all[*number].operands()).for_each(|of| uses[of.part()] += 1);
    let (of_set, of_operator) = (8 * space.states().0.len() as u64, space.bytes_of_operator());
    let mut values = Values { sets: vec![None; all.len()], of_roots: vec![(false, 0); roots.len()], most_bytes: 0 };
    let mut alive = 0;
    for some in groups {
        let bytes = (alive + some.len() as u64) * of_set + some.len() as u64 * of_operator;
        ensure!(bytes <= limit, "no memory for {} sets of states, a bit a state", alive + some.len() as u64);
        values.most_bytes = values.most_bytes.max(bytes);
        let computed: Result<Vec<Bits>> = some.par_iter().map(|number| set(space, all[*number], &values)).collect();
        for (number, bits) in some.iter().zip(computed?) {
            for (root, of_root) in roots.iter().zip(&mut values.of_roots).filter(|(root, _)| root.part() == *number) {
                let view = bits.view(root.is_negated());
                *of_root = (view.contains(space.initial()), view.count(space.states()));
            }
            values.sets[*number] = Some(bits);
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

/// The set that a part is.
fn set(space: &impl Space, part: Part, values: &Values) -> Result<Bits> {
    let view = |literal| values.needed(literal);
    match part {
        Part::True => Ok(space.states().clone()),
        Part::Condition(number) => space.condition(number),
        Part::And([one, other]) => Ok(view(one).and(&view(other), space.states())),
        Part::Next(of) => space.next(view(of)),
        Part::Until([first, second]) => space.until(view(first), view(second)),
        Part::Always(of) => space.always(view(of)),
    }
}
