//! A level of a product, by a rank of several: the model checker's kernel, which makes offers of the states' successors, of as
//! many states as there is room for. Here a rank has the level, and nobody has the offers.
//!
//! What becomes of them is the library's: that it sorts a batch by owner, and gives answers back, is in [`crate::partition`]. The
//! two share no kernel and no memory, as the host lies between them, so there is one simulation for each.

use super::Run;
use super::case::State;
use super::kernels::*;
use crate::explorer::Wrong;
use crate::memory::Memory;
use crate::table::wrong;
use std::collections::HashSet;

impl Run {
    /// What a rank has written of a level's states: of as many as it had room for.
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
