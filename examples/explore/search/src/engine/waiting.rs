//! States that wait to be expanded: the rest of the level, and the states found for the next one.
//!
//! As long as memory suffices, these states are listed, with their words: threads then read them one after another. A list takes
//! as much memory for these states as the table does. The share of states that wait depends on the model: in a search that has
//! found a tenth of all states it is often a third. So lists would end a search whose table is half empty.
//!
//! When lists are too long for the memory, states are marked instead: one bit for each slot of the table says whether its state
//! waits in the level, and another one whether it waits in the next level. Marks take a quarter of a byte for each slot, whatever
//! waits. The states of a round are read from the table, in the order of their slots. That takes longer than to read a list.
//!
//! Growth moves states to other slots. Before a table with marks grows, its waiting states are listed, if there is memory.

use super::level::Level;
use crate::checkpoint::States;
use crate::growth::if_it_fits;
use crate::marks::Marks;
use anyhow::Result;
use std::ops::Range;
use warpset::{Reference, Storage, VectorTable};

/// Maximum number of states of a round that are read by their marks, because the list of a round takes memory, too.
const MARKED_ROUND: usize = 1 << 14;

/// Number of states that are listed or marked at a time, when all waiting states are listed or marked.
const PIECE: usize = 1 << 16;

/// States that wait.
#[derive(Default)]
pub struct Waiting {
    /// Listed states of the level. If states are marked, only the states of the present round.
    pub level: Level,
    /// Listed states of the next level. Empty if states are marked.
    pub next: Level,
    /// Number of states at the beginning of `level` that are expanded already.
    done: usize,
    marks: Option<[Marks; 2]>,
    width: usize,
}

impl Waiting {
    /// Creates a list of waiting states of `width` words.
    pub fn new(level: Level, next: Level, width: usize) -> Self {
        Self { level, next, width, ..Self::default() }
    }

    pub fn are_marked(&self) -> bool {
        self.marks.is_some()
    }

    /// Number of states of the level that are not expanded.
    pub fn left(&self) -> usize {
        self.level.words.len() / self.width - self.done + self.marks.as_ref().map_or(0, |[level, _]| level.count)
    }

    /// Number of states found for the next level.
    pub fn found(&self) -> usize {
        self.next.words.len() / self.width + self.marks.as_ref().map_or(0, |[_, next]| next.count)
    }

    pub fn bytes(&self) -> u64 {
        let marks = self.marks.as_ref().map_or(0, |marks| marks.iter().map(Marks::bytes).sum());
        self.level.bytes() + self.next.bytes() + marks
    }

    /// Bytes of all states if they were listed.
    pub fn bytes_listed(&self, with_references: bool) -> u64 {
        let of_state = 4 * self.width + if with_references { size_of::<Reference>() } else { 0 };
        ((self.left() + self.found()) * of_state) as u64
    }

    /// Returns the places in `level` of at most `most` states to expand next. Reads them from the table if they are marked.
    pub fn round<S: Storage>(&mut self, table: &VectorTable<S>, most: usize) -> Result<Range<usize>> {
        let listed = self.level.words.len() / self.width;
        if let (Some([marks, _]), true) = (&mut self.marks, self.done == listed) {
            self.level.clear();
            self.done = 0;
            self.level.references = marks.take(table, most.min(MARKED_ROUND));
            self.level.words = table.get_many(&self.level.references)?;
        }
        let listed = self.level.words.len() / self.width;
        Ok(self.done..listed.min(self.done + most))
    }

    /// Notes that the states of `level` before this place are expanded.
    pub fn expanded(&mut self, done: usize) {
        self.done = done;
    }

    /// Adds states to the next level. Returns false if there is no memory for them.
    pub fn take(&mut self, new: &[&Level]) -> bool {
        match &mut self.marks {
            None => self.next.take(new),
            Some([_, next]) => new.iter().flat_map(|new| &new.references).all(|new| next.mark(*new)),
        }
    }

    /// Begins the next level. All states of the present one must be expanded.
    pub fn next_level(&mut self) {
        debug_assert_eq!(self.left(), 0, "states that were not expanded");
        match &mut self.marks {
            // Swap the lists to reuse their memory: fresh pages would cost more than the writes to them.
            None => std::mem::swap(&mut self.level, &mut self.next),
            Some([level, next]) => {
                std::mem::swap(level, next);
                (level.first, next.first) = (0, usize::MAX);
                self.level.clear();
            }
        }
        self.next.clear();
        self.done = 0;
    }

    /// Marks all listed states, and frees the lists. Returns false, and leaves them listed, if there is no memory for that.
    pub fn mark<S: Storage>(&mut self, table: &VectorTable<S>) -> Result<bool> {
        let mut marks = [Marks::default(), Marks::default()];
        let lists = [&self.level.words[self.done * self.width..], &self.next.words];
        for (marks, words) in marks.iter_mut().zip(lists) {
            if !marks.reserve(table.slots()) {
                return Ok(false);
            }
            for words in words.chunks(PIECE * self.width) {
                let Some(places) = if_it_fits(table.locate_many(words))? else { return Ok(false) };
                if !places.into_iter().flatten().all(|place| marks.mark(place)) {
                    return Ok(false);
                }
            }
        }
        *self = Self { marks: Some(marks), ..Self::new(Level::default(), Level::default(), self.width) };
        Ok(true)
    }

    /// Replaces the marks by lists, which have the words of the states but no references. Returns false, and keeps the marks, if
    /// there is no memory for the lists.
    pub fn list<S: Storage>(&mut self, table: &VectorTable<S>) -> Result<bool> {
        let Some(marks) = &self.marks else { return Ok(true) };
        let mut lists = [self.level.words[self.done * self.width..].to_vec(), Vec::new()];
        for (list, marks) in lists.iter_mut().zip(marks) {
            if list.try_reserve_exact(marks.count * self.width).is_err() {
                return Ok(false);
            }
            marks.read(table, &mut |words| {
                list.extend_from_slice(words);
                Ok(())
            })?;
        }
        let [level, next] = lists.map(|words| Level { words, ..Level::default() });
        *self = Self::new(level, next, self.width);
        Ok(true)
    }

    /// Words of the level's unexpanded states, and words of the states found for the next level.
    pub fn words<'a, S: Storage>(&'a self, table: &'a VectorTable<S>) -> [Words<'a, S>; 2] {
        let [level, next] = match &self.marks {
            None => [None, None],
            Some([level, next]) => [Some(level), Some(next)],
        };
        let of = |listed, marked| Words { listed, marked, table };
        [of(&self.level.words[self.done * self.width..], level), of(&self.next.words, next)]
    }
}

/// Words of some waiting states.
pub struct Words<'a, S> {
    listed: &'a [u32],
    marked: Option<&'a Marks>,
    table: &'a VectorTable<S>,
}

impl<S: Storage> States for Words<'_, S> {
    fn count(&self) -> usize {
        self.listed.len() + self.marked.map_or(0, |marks| marks.count * self.table.width())
    }

    fn read(&self, take: &mut dyn FnMut(&[u32]) -> Result<()>) -> Result<()> {
        take(self.listed)?;
        self.marked.map_or(Ok(()), |marks| marks.read(self.table, take))
    }
}

#[cfg(all(test, feature = "cpu"))]
mod tests {
    use super::*;
    use warpset::{BucketTable, Device, Request};

    /// Words of a list, as a sorted list of states.
    fn sorted(words: &impl States) -> Vec<Vec<u32>> {
        let mut states = Vec::new();
        words
            .read(&mut |part| {
                states.extend(part.chunks(2).map(<[u32]>::to_vec));
                Ok(())
            })
            .unwrap();
        assert_eq!(words.count(), 2 * states.len());
        states.sort();
        states
    }

    #[test]
    fn marked_states_are_those_that_were_listed() {
        let states: Vec<u32> = (0..2 * 100_000).map(|word| word / 2 * (1 + word % 2)).collect();
        let table = BucketTable::new(&Device::cpu_with_threads(2), 2, 120_000).unwrap();
        let batch = table.find_or_put_many_with(&states, Request::new().references(true)).unwrap();
        let list = |from: usize, to: usize| Level { words: states[2 * from..2 * to].to_vec(), ..Level::default() };
        let mut waiting = Waiting::new(list(0, 50_000), list(50_000, 99_000), 2);
        waiting.expanded(7_000);
        let listed = waiting.words(&table).map(|words| sorted(&words));
        let bytes = waiting.bytes();
        assert!(waiting.mark(&table).unwrap() && waiting.are_marked() && waiting.bytes() < bytes / 4);
        assert_eq!((waiting.words(&table).map(|words| sorted(&words)), waiting.left()), (listed.clone(), 43_000));
        // The states are listed and marked again. Then one more state is found, twice.
        assert!(waiting.list(&table).unwrap() && !waiting.are_marked());
        assert_eq!(waiting.words(&table).map(|words| sorted(&words)), listed);
        assert!(waiting.mark(&table).unwrap());
        let last = Level { references: batch.references[99_999..].iter().flatten().copied().collect(), ..Level::default() };
        assert!(waiting.take(&[&last, &last]));
        // Each state of the level is in one round, also if a round is not expanded to its end.
        let mut rounds: Vec<Vec<u32>> = Vec::new();
        while waiting.left() > 0 {
            let round = waiting.round(&table, 5_000).unwrap();
            let done = round.start + round.len().div_ceil(2);
            rounds.extend(waiting.level.words[2 * round.start..2 * done].chunks(2).map(<[u32]>::to_vec));
            waiting.expanded(done);
        }
        rounds.sort();
        assert_eq!(rounds, listed[0]);
        waiting.next_level();
        assert_eq!(waiting.left(), 49_001);
        assert!(sorted(&waiting.words(&table)[0]).contains(&states[2 * 99_999..].to_vec()));
        assert_eq!(sorted(&waiting.words(&table)[1]), Vec::<Vec<u32>>::new());
    }
}
