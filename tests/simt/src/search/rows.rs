//! A search whose states are the rows of an indexed table, with parents beside them.

use super::Run;
use crate::explorer::Wrong;
use crate::memory::Memory;
use crate::table::wrong;
use std::collections::HashSet;

impl Run {
    /// States in the rows of the table, level by level, each with a parent in the level before.
    pub fn judge_rows(&self, memory: &Memory) -> Result<(), Wrong> {
        let Self { found, table, of, .. } = self;
        let no = |rule, detail: String| Err(wrong(rule, detail, Vec::new()));
        let count = found.states.len();
        let given = memory.at(table.view.indexed.rows.given.cast_const(), 1)[0].min(table.slots) as usize;
        let parents = memory.at(of.order.cast::<u32>().cast_const(), given);
        if !of.starts.is_null() && memory.at(of.starts.cast::<u8>().cast_const(), given).iter().any(|above| *above != 0) {
            return no("parents", "there are no bits above 32".into());
        }
        let number_at = |row: usize| {
            let words = table.slot(memory, row as u64).words;
            found.numbers.get(&(words[0], words[1])).copied()
        };
        let level_of = |number: usize| found.starts.partition_point(|first| *first <= number) - 1;
        let (mut seen, mut level) = (HashSet::new(), 0);
        for row in (0..given).filter(|row| parents[*row] != 0) {
            let Some(number) = number_at(row) else { return no("rows", format!("row {row} is no state")) };
            if !seen.insert(number) || level_of(number) < level {
                return no("rows", format!("row {row} is state {number} of level {}, behind level {level}", level_of(number)));
            }
            level = level_of(number);
            let parent = parents[row] as usize - 1;
            let of_parent = if parents.get(parent).is_some_and(|its| *its != 0) { number_at(parent) } else { None };
            let is_right = match of_parent {
                Some(of_parent) if number == 0 => of_parent == 0,
                Some(of_parent) => level_of(of_parent) + 1 == level && found.successors[of_parent].contains(&number),
                None => false,
            };
            if !is_right {
                return no("parents", format!("state {number} of level {level} is said to be of row {parent}: {of_parent:?}"));
            }
        }
        if seen.len() != count {
            return no("rows", format!("{} states, not {count}", seen.len()));
        }
        Ok(())
    }
}
