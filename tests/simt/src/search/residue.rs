//! Checks the residue that passes for accepting cycles leave in a product, and the data that are derived from it for a run:
//! members, steps, and a way back.

use super::Run;
use super::case::{COUNT, IN_RESIDUE, IS_ACCEPTING};
use super::kernels::*;
use crate::explorer::Wrong;
use crate::memory::Memory;
use crate::table::wrong;
use std::collections::HashSet;

impl Run {
    /// Checks the flags and the counts of all states. `numbers` maps a slot to the number of its state.
    pub fn judge_passes(&self, memory: &Memory, numbers: &[usize], order: &[u64]) -> Result<(), Wrong> {
        let Self { case, found, table, of, rounds, .. } = self;
        let no = |rule, detail: String| Err(wrong(rule, detail, Vec::new()));
        let (flags, expected) = (memory.at(of.flags.cast_const(), table.slots as usize), case.passes(found, *rounds));
        for (slot, flags) in flags.iter().enumerate() {
            let expected = match numbers[slot] {
                // A slot without a state keeps its flags, unless passes visit all slots.
                usize::MAX if !of.listed.is_null() => continue,
                usize::MAX => 0,
                number => expected[number],
            };
            if *flags != expected {
                return no("flags", format!("slot {slot} has {flags:#x} after {rounds} rounds, not {expected:#x}"));
            }
        }
        let sweep = memory.at(of.sweep.cast_const(), SWEEP_WORDS);
        let accepting = found.states.iter().filter(|state| case.about[state.1 as usize] % 2 == 1).count();
        let inside = expected.iter().filter(|flags| **flags != 0);
        let at_most = inside.clone().filter(|flags| **flags & COUNT >= case.most).count();
        let (counted, tallied) = (TALLIED.map(|at| sweep[at]), [accepting, inside.count(), at_most]);
        if counted != tallied.map(|number| number as u64) {
            return no("residue", format!("accepting, inside, at most: {counted:?}, not {tallied:?}"));
        }
        self.judge_run(memory, numbers, &expected, order)
    }

    /// Checks the members of the residue and their steps, the first marked state, and a way back. `numbers` maps a slot to the
    /// number of its state, and `flags` are by number.
    fn judge_run(&self, memory: &Memory, numbers: &[usize], flags: &[u32], order: &[u64]) -> Result<(), Wrong> {
        let Self { case, found, table, of, .. } = self;
        let no = |rule, detail: String| Err(wrong(rule, detail, Vec::new()));
        let runs = memory.at(of.runs.cast_const(), 2 * SWEEP_WORDS);
        let is_inside = |state: usize| flags[state] & IN_RESIDUE != 0;
        let inside: HashSet<usize> = (0..found.states.len()).filter(|state| is_inside(*state)).collect();
        let count = runs[APPENDED] as usize;
        // The kernel writes a state as its number among the members.
        let members: Vec<usize> =
            memory.at(of.queue.cast_const(), count).iter().map(|reference| numbers[*reference as usize]).collect();
        if count != inside.len() || members.iter().copied().collect::<HashSet<_>>() != inside {
            return no("members", format!("{members:?}, not {inside:?}"));
        }
        let kinds = memory.at(of.kinds.cast_const(), count);
        let words = memory.at(of.members.cast_const(), 2 * count);
        let of_slots = memory.at(of.trail.numbers.cast_const(), table.slots as usize);
        for (number, state) in members.iter().enumerate() {
            let slot = numbers.iter().position(|other| other == state).expect("it is stored");
            let told = (of_slots[slot], kinds[number], (words[2 * number], words[2 * number + 1]));
            let expected = (number as u32, u32::from(flags[*state] & IS_ACCEPTING != 0), found.states[*state]);
            if told != expected {
                return no("members", format!("number, kind and words of {state}: {told:?}, not {expected:?}"));
            }
        }
        let about = |state: usize| case.about[found.states[state].1 as usize] / 2;
        let number = |state: usize| members.iter().position(|other| *other == state).expect("it is a member") as u64;
        let steps = members.iter().flat_map(|from| found.successors[*from].iter().map(|to| (*from, *to)));
        let mut expected: Vec<u64> = steps
            .filter(|(from, to)| is_inside(*to) && about(*from) == about(*to))
            .map(|(from, to)| number(to) << 32 | number(from))
            .collect();
        let (listed, room) = (runs[LISTED] as usize, of.trail.room as usize);
        let mut steps = memory.at(of.trail.steps.cast_const(), listed.min(room)).to_vec();
        steps.sort_unstable();
        expected.sort_unstable();
        let mut left = expected.iter();
        let are_some = steps.iter().all(|step| left.any(|other| other == step));
        if listed != expected.len() || !are_some {
            return no("steps", format!("{listed} in {room}: {steps:x?}, not {expected:x?}"));
        }
        let marks = memory.at(of.marks, found.states.len());
        let is_marked = |at: &usize| {
            let state = numbers[order[*at] as usize];
            is_inside(state) && marks[number(state) as usize] == 6
        };
        let first = (0..order.len()).find(is_marked).map_or(u64::MAX, |at| at as u64);
        if memory.at(of.first.cast_const(), 1)[0] != first {
            return no("first", format!("{:?}, not {first}", memory.at(of.first.cast_const(), 1)));
        }
        let last = found.starts.len() - 1;
        let path = memory.at(of.trail.path.cast_const(), 2 * (last + 1));
        let places = memory.at(of.trail.places.cast_const(), last);
        for level in 1..last {
            let state = |level: usize| found.numbers.get(&(path[2 * level], path[2 * level + 1])).copied();
            let (Some(from), Some(to)) = (state(level), state(level + 1)) else {
                return no("way", format!("no states in level {level} of {last}: {path:?}"));
            };
            // The least of all states of the level that lead there, whatever the schedule was.
            let leads = |from: &usize| found.successors[*from].contains(&to);
            let least = (found.starts[level]..found.starts[level + 1]).filter(leads).min_by_key(|from| found.states[*from]);
            let is_there = places[level] != u64::MAX && numbers[places[level] as usize] == from;
            if least != Some(from) || !is_there {
                return no("way", format!("{from}, not {least:?}, to {to} in level {level} of {last}"));
            }
        }
        Ok(())
    }
}
