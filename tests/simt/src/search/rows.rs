//! A search whose states are the rows of an indexed table, with parents in addition. In half of the cases the table is too small.
//! It then grows, and the level is repeated.

use super::kernels::*;
use super::{MOST_BLOCKS, Run};
use crate::explorer::Wrong;
use crate::indexed::{IndexRows, larger};
use crate::machine::{Grid, WARP};
use crate::memory::Memory;
use crate::stress::{lanes, next_prime};
use crate::table::{RebuildArgument, Table, View, argument, wrong};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use std::collections::HashSet;

/// Growth of a table that is too small at first.
pub struct Growing {
    rng: Pcg64Mcg,
    /// Number of rows for which memory and parents exist.
    most_rows: u64,
    /// The table whose index is being built, and the argument of the kernel that builds it.
    larger: Option<(Table, Box<RebuildArgument>)>,
    growths: u32,
}

/// Upper bound of the number of growths. Slots and rows double each time.
const MOST_GROWTHS: u32 = 12;

impl Run {
    /// Makes the table small: removes rows but keeps their memory, so that the table can later grow to its original size.
    pub fn begin_small(&mut self, mut rng: Pcg64Mcg) {
        let most_rows = self.table.slots;
        let rows = if rng.random_bool(0.6) { most_rows } else { rng.random_range(1..=self.found.states.len() as u64) };
        self.set_table(Table {
            slots: rows,
            view: View { indexed: self.table.view.indexed.with_rows(rows), ..self.table.view },
            ..self.table
        });
        self.growing = Some(Growing { rng, most_rows, larger: None, growths: 0 });
    }

    fn set_table(&mut self, table: Table) {
        self.table = table;
        self.of.view = table.view;
    }

    /// If the table was full for some states, builds a larger index of the rows and repeats the level, as `grow_by_rows` of the
    /// model checker does (by_rows.rs).
    pub fn go_on_by_rows(&mut self, memory: &mut Memory, kernels: &Kernels) -> Result<Vec<Vec<Grid>>, Wrong> {
        let Some(growing) = &mut self.growing else { return Ok(Vec::new()) };
        if let Some((larger, rebuild)) = growing.larger.take() {
            let blocks = growing.rng.random_range(1..=MOST_BLOCKS);
            self.take_index(memory, larger, &rebuild)?;
            self.do_level_again(memory);
            return Ok(vec![kernels.launch(&self.of, kernels.search, blocks, kernels.block())]);
        }
        if memory.at(self.of.counts.cast_const(), REJECTED + 1)[REJECTED] == 0 {
            return Ok(Vec::new());
        }
        growing.growths += 1;
        if growing.growths > MOST_GROWTHS {
            return Err(wrong("growth", format!("{MOST_GROWTHS} times, and the table is still full"), Vec::new()));
        }
        let (Table { kernels, slots, .. }, rng) = (self.table, &mut growing.rng);
        let buckets = next_prime(2 * self.table.view.indexed.buckets as u32).into();
        let (larger, rebuild) = larger(memory, &self.table, kernels, buckets, (2 * slots).min(growing.most_rows));
        let grid = lanes(rng.random_range(1..=2), rng.random_range(1..=WARP), kernels.rebuild, argument(&*rebuild));
        growing.larger = Some((larger, rebuild));
        Ok(vec![vec![grid]])
    }

    /// Installs the new index. Moves the numbers of spares to the first cells.
    fn take_index(&mut self, memory: &mut Memory, larger: Table, rebuild: &RebuildArgument) -> Result<(), Wrong> {
        let [offered, named, full, ..] = memory.at(rebuild.counts, 1)[0];
        let stored = memory.read_at::<u64>(larger.view.roots.stored, 1)[0];
        if (offered, named, full) != (stored, stored, 0) {
            return Err(wrong("rebuilt", format!("{named} of {offered} rows, {full} not; {stored} are stored"), Vec::new()));
        }
        let rows = self.table.view.indexed;
        let spares: Vec<u64> = rows.spare_cells(memory).into_iter().filter(|cell| *cell != 0).collect();
        rows.set_spare_cells(memory, &spares);
        rows.take_back_numbers(memory);
        self.set_table(larger);
        Ok(())
    }

    /// Resets the counters to their values at the start of the level. Keeps the number of stored states.
    fn do_level_again(&self, memory: &mut Memory) {
        let search = memory.at_mut(self.of.search, SEARCH_WORDS);
        (search[NEXT], search[FOUND], search[FAULTY]) = (search[FIRST], u64::MAX, u64::MAX);
        for (at, before) in BEFORE {
            search[at] = search[before];
        }
        memory.at_mut(self.of.counts, REJECTED + 1)[REJECTED] = 0;
    }

    /// Checks the states in the rows of the table: they are ordered by level, and each has a parent in the level before.
    pub fn judge_rows(&self, memory: &Memory) -> Result<(), Wrong> {
        let Self { found, table, of, .. } = self;
        let no = |rule, detail: String| Err(wrong(rule, detail, Vec::new()));
        let count = found.states.len();
        let given = memory.read_at::<u64>(table.view.indexed.rows.given, 1)[0].min(table.slots) as usize;
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
