//! A level of a product, processed by one of several ranks. The model checker's kernel makes offers of the successors of as many
//! states as it has space for. In this simulation only one rank has states of the level, and no rank receives the offers.
//!
//! The library processes the offers: [`crate::partition`] simulates how it sorts a batch by owner and returns answers. The two
//! simulations are separate, because the two parts share no kernel and no memory: the host acts between them.

use super::Run;
use super::case::State;
use super::kernels::*;
use crate::explorer::Wrong;
use crate::memory::Memory;
use crate::table::wrong;
use std::collections::HashSet;

impl Run {
    /// Checks what a rank has written for those states of a level for which it had space.
    pub fn judge_level(&self, memory: &Memory) -> Result<(), Wrong> {
        let Self { case, found, of, .. } = self;
        let no = |rule, detail: String| Err(wrong(rule, detail, Vec::new()));
        let search = memory.at(of.search.cast_const(), SEARCH_WORDS);
        let (offered, room) = (search[OFFERED], search[ROOM]);
        let expanded = search[NEXT].min(of.count) as usize;
        if expanded == 0 || offered > room {
            return no("room", format!("{expanded} of {} states, {offered} rows of {room}", of.count));
        }
        let states = &found.states[..expanded];
        let (mut expected, mut transitions, mut deadlocks) = (HashSet::new(), 0, 0);
        for state in states {
            let (is_deadlock, successors) = case.successors(*state);
            transitions += successors.len() as u64;
            deadlocks += u64::from(is_deadlock);
            expected.extend(successors.into_iter().filter(|successor| successor != state));
        }
        let counted = [TRANSITIONS, DEADLOCKS, FOUND, FAULTY].map(|at| search[at]);
        if counted != [transitions, deadlocks, u64::MAX, u64::MAX] {
            return no("counts", format!("transitions, deadlocks, found, faulty: {counted:?}, not {transitions}, {deadlocks}"));
        }
        let rows = memory.at(of.offers.cast_const(), 2 * offered as usize);
        let offers: HashSet<State> = rows.chunks_exact(2).map(|words| (words[0], words[1])).collect();
        if offers != expected {
            return no("offers", format!("{offers:?}, not {expected:?}"));
        }
        Ok(())
    }
}
