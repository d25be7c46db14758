//! Paths that show why a formula holds or fails, as far as one path shows it.
//!
//! A path shows the formula or its negation, whichever holds in the initial state. The path of `EX`, `E[. U .]` or `EG` goes on
//! with what holds in its last state. It ends at a condition, and where all paths matter.

use super::bits::{Bits, View};
use super::evaluate::Values;
use anyhow::{Context, Result, ensure};
use std::collections::{HashSet, VecDeque};
use warpset::{Reference, Storage, VectorTable};
use warpset_model::ctl::{Literal, Part, Parts};
use warpset_model::interpreter::Scratch;
use warpset_model::interpreter::{Interpreter, Step};
use warpset_support::components::components;

/// A path, or a path that ends in a loop, replayed by the interpreter.
#[derive(Clone, Debug)]
pub struct Witness {
    /// One state more than steps. Behind a loop, the last state is the one in which the loop begins.
    pub states: Vec<Vec<u32>>,
    pub steps: Vec<Step>,
    /// Number of the state in which the loop begins.
    pub begins: Option<usize>,
    /// Whether the path ends in a deadlock, which belongs to what it shows.
    pub is_in_deadlock: bool,
}

/// A space whose states can be walked through, from the initial one on. States have numbers.
pub trait Walked {
    /// A bound for the numbers of states.
    fn numbers(&self) -> usize;

    /// Number of the initial state.
    fn initial(&self) -> usize;

    /// A state's place in the table.
    fn member(&self, state: usize) -> Reference;

    /// The successors of a state; `None` if steps are not in memory.
    fn successors(&self, state: usize) -> Option<&[u32]>;
}

/// The numbers of the states of a path.
pub struct Run {
    states: Vec<usize>,
    begins: Option<usize>,
    is_in_deadlock: bool,
}

/// Marks the parts whose sets a path needs that shows `root` or its negation.
pub fn keep(parts: &Parts, root: Literal, kept: &mut [bool]) {
    let mut known = HashSet::new();
    let mut waiting = vec![root, !root];
    while let Some(shown) = waiting.pop() {
        if !known.insert(shown) {
            continue;
        }
        kept[shown.part()] = true;
        match (parts.all()[shown.part()], shown.is_negated()) {
            (Part::And(operands), is_negated) => waiting.extend(operands.map(|of| if is_negated { !of } else { of })),
            (Part::Next(of), false) => waiting.push(of),
            (Part::Until([first, second]), false) => {
                kept[first.part()] = true;
                waiting.push(second);
            }
            _ => {}
        }
    }
}

/// Whether some path may show a literal.
#[cfg(feature = "cuda")]
pub fn may_show(parts: &Parts, shown: Literal) -> bool {
    match (parts.all()[shown.part()], shown.is_negated()) {
        (Part::And(operands), is_negated) => operands.into_iter().any(|of| may_show(parts, if is_negated { !of } else { of })),
        (Part::Next(_) | Part::Until(_) | Part::Always(_), false) => true,
        _ => false,
    }
}

/// A path that shows a literal, which holds in the initial state; `None` if it takes more than a path, or less.
pub fn find(space: &impl Walked, parts: &Parts, values: &Values<Bits>, shown: Literal) -> Option<Result<Run>> {
    let mut run = Run { states: vec![space.initial()], begins: None, is_in_deadlock: false };
    let found = extend(space, parts, values, shown, &mut run);
    match found {
        Ok(false) => None,
        Ok(true) => Some(Ok(run)),
        Err(error) => Some(Err(error)),
    }
}

/// Extends a path by one that shows a literal, which holds in its last state. Returns whether the literal is about paths.
fn extend(space: &impl Walked, parts: &Parts, values: &Values<Bits>, shown: Literal, run: &mut Run) -> Result<bool> {
    let last = *run.states.last().expect("a path has a state");
    let view = |literal| values.view(literal).context("a set is no longer there: please report this as a bug");
    match (parts.all()[shown.part()], shown.is_negated()) {
        // Both hold, or one of them fails: the first one that has a path.
        (Part::And(operands), is_negated) => {
            for of in operands {
                let of = if is_negated { !of } else { of };
                if view(of)?.contains(last) && extend(space, parts, values, of, run)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (Part::Next(of), false) => {
            let next = successors(space, last)?.iter().find(|next| values.contains(of, **next as usize));
            run.states.push(*next.context("a successor satisfies it")? as usize);
            extend(space, parts, values, of, run)?;
            Ok(true)
        }
        (Part::Until([first, second]), false) => {
            let (path, _) = shortest(space, last, view(first)?, |state| Ok(values.contains(second, state)))?;
            run.states.extend(path.context("a path leads there")?.into_iter().skip(1));
            extend(space, parts, values, second, run)?;
            Ok(true)
        }
        (Part::Always(_), false) => stay(space, view(shown)?, run).map(|()| true),
        _ => Ok(false),
    }
}

fn successors(space: &impl Walked, state: usize) -> Result<&[u32]> {
    space.successors(state).context("no memory for all states and steps at once")
}

/// The predecessors of states on shortest paths: one more than the number of each, 0 for states that were not found.
struct Before(Vec<u32>);

impl Before {
    fn new(space: &impl Walked, from: usize) -> Self {
        // Zeros, which take memory when they are written to.
        let mut before = Self(vec![0; space.numbers()]);
        before.note(from, from);
        before
    }

    /// Notes the predecessor of a state, unless it was found before.
    fn note(&mut self, state: usize, predecessor: usize) -> bool {
        let is_new = self.0[state] == 0;
        if is_new {
            self.0[state] = predecessor as u32 + 1;
        }
        is_new
    }

    fn path(&self, from: usize, to: usize) -> Vec<usize> {
        let mut path = vec![to];
        while path[path.len() - 1] != from {
            path.push(self.0[path[path.len() - 1]] as usize - 1);
        }
        path.reverse();
        path
    }
}

/// A shortest path to a wanted state, through states of a set before it; and all states that were found, in their order.
fn shortest(
    space: &impl Walked,
    from: usize,
    through: View,
    is_wanted: impl Fn(usize) -> Result<bool>,
) -> Result<(Option<Vec<usize>>, Vec<usize>)> {
    let mut before = Before::new(space, from);
    let mut waiting = VecDeque::from([from]);
    let mut found = Vec::new();
    while let Some(state) = waiting.pop_front() {
        found.push(state);
        if is_wanted(state)? {
            return Ok((Some(before.path(from, state)), found));
        }
        if through.contains(state) {
            for next in successors(space, state)?.iter().map(|next| *next as usize) {
                if before.note(next, state) {
                    waiting.push_back(next);
                }
            }
        }
    }
    Ok((None, found))
}

/// Extends a path by one in a set that `EG` is: to the nearest state that is a deadlock or on a cycle in the set.
fn stay(space: &impl Walked, set: View, run: &mut Run) -> Result<()> {
    let last = *run.states.last().expect("a path has a state");
    let is_deadlock = |state| successors(space, state).map(<[u32]>::is_empty);
    let (_, all) = shortest(space, last, set, |_| Ok(false))?;
    // The states of the set that are reached in it, in the order of their distance, and the steps between them.
    let inside: Vec<usize> = all.into_iter().filter(|state| set.contains(*state)).collect();
    // One more than the number of each; 0 for others.
    let mut number = vec![0_u32; space.numbers()];
    inside.iter().enumerate().for_each(|(at, state)| number[*state] = at as u32 + 1);
    let (mut starts, mut targets) = (vec![0], Vec::new());
    for state in &inside {
        targets.extend(successors(space, *state)?.iter().filter_map(|next| number[*next as usize].checked_sub(1)));
        starts.push(targets.len());
    }
    let next = |at: usize| &targets[starts[at]..starts[at + 1]];
    let component = components(inside.len(), next);
    let is_on_cycle = |at: usize| next(at).iter().any(|to| component[*to as usize] == component[at]);
    let mut entry = None;
    for (at, state) in inside.iter().enumerate() {
        if is_deadlock(*state)? || is_on_cycle(at) {
            entry = Some(at);
            break;
        }
    }
    let entry = entry.context("a path in a set ends, or has a loop")?;
    let to_entry = shortest(space, last, set, |state| Ok(state == inside[entry]))?.0.context("it is reached")?;
    run.states.extend(to_entry.into_iter().skip(1));
    if is_deadlock(inside[entry])? {
        run.is_in_deadlock = true;
        return Ok(());
    }
    let begins = run.states.len() - 1;
    let of_component = |state: usize| number[state].checked_sub(1).is_some_and(|at| component[at as usize] == component[entry]);
    // From a successor back to the entry.
    let back = |first: u32| -> Result<Option<Vec<usize>>> {
        let mut before = Before::new(space, first as usize);
        let mut waiting = VecDeque::from([first as usize]);
        while let Some(state) = waiting.pop_front() {
            if state == inside[entry] {
                return Ok(Some(before.path(first as usize, state)));
            }
            for to in successors(space, state)?.iter().map(|to| *to as usize).filter(|to| of_component(*to)) {
                if before.note(to, state) {
                    waiting.push_back(to);
                }
            }
        }
        Ok(None)
    };
    let first = next(entry).iter().find(|to| component[**to as usize] == component[entry]).context("it is on a cycle")?;
    run.states.extend(back(inside[*first as usize] as u32)?.context("a component is connected")?);
    run.begins = Some(begins);
    Ok(())
}

impl Run {
    /// Finds the steps between the states by the interpreter.
    pub fn replayed<S: Storage>(self, table: &VectorTable<S>, space: &impl Walked, interpreter: &Interpreter) -> Result<Witness> {
        let references: Vec<_> = self.states.iter().map(|state| space.member(*state)).collect();
        let states: Vec<Vec<u32>> =
            table.get_many(&references)?.chunks_exact(interpreter.model().layout.words).map(<[u32]>::to_vec).collect();
        let replay = || -> Result<Vec<Step>> {
            ensure!(states.first() == Some(&interpreter.model().initial_state()), "the path does not begin in the initial state");
            let mut scratch = Scratch::default();
            let mut steps = Vec::new();
            for (number, pair) in states.windows(2).enumerate() {
                let mut taken = None;
                // A fault in another step does not concern the path.
                let _ = interpreter.steps(&pair[0], &mut scratch, |step, successor| {
                    if successor == pair[1] {
                        taken.get_or_insert(step);
                    }
                });
                steps.push(taken.with_context(|| format!("step {} does not lead to its next state", number + 1))?);
            }
            let mut successors = 0;
            let _ = interpreter.steps(&states[states.len() - 1], &mut scratch, |_, _| successors += 1);
            ensure!(!self.is_in_deadlock || successors == 0, "its last state is no deadlock");
            ensure!(self.begins.is_none_or(|begins| states.last() == states.get(begins)), "its loop is not closed");
            Ok(steps)
        };
        let steps = replay().context("the path cannot be replayed: please report this as a bug")?;
        Ok(Witness { states, steps, begins: self.begins, is_in_deadlock: self.is_in_deadlock })
    }
}
