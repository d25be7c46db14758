//! Checkpoints of the engine on the GPU. They are written between two launches: at the beginning of a level, or after a launch
//! that found the table full. In the second case the level is repeated.

use super::order::Order;
use super::unlisted::{Unlisted, in_pieces};
use super::waiting::Marked;
use super::{GpuEngine, NONE, Offers, SearchMemory, SearchState};
use crate::checkpoint::{Checkpoints, Resumed, Snapshot};
use crate::exploration::{Counts, Found};
use crate::growth::if_it_fits;
use anyhow::{Context, Result};
use std::ops::Range;
use warpset::Storage;
use warpset::gpu::cudarc_0_19::cudarc::driver::CudaSlice;

/// Maximum and minimum number of states that are copied at a time; free memory decides between them.
const PIECES: [u64; 2] = [1 << 22, 1 << 5];

const NO_MEMORY: &str = "no memory for the states of the level";

/// States that are looked up at a time.
const PIECE: usize = 1 << 22;

impl<'a, S: Storage> GpuEngine<'a, S> {
    /// Sets where the search is saved, and the search to resume.
    pub fn keep_in(&mut self, checkpoints: Option<&'a Checkpoints>, resumed: Option<Resumed>) {
        (self.checkpoints, self.resumed) = (checkpoints, resumed);
    }

    /// Writes a checkpoint. Running out of memory is only a warning.
    pub(super) fn keep(&self, checkpoints: &Checkpoints, progress: &SearchMemory, found: Option<&Found>) -> Result<()> {
        let (search, offers) = (self.read(&progress.search)?, self.read(&progress.offers)?);
        // A repeated level counts from its beginning; its successors that are stored belong to the next level.
        let [transitions, deadlocks, overflows] = match search.is_repeated(&offers) {
            false => [search.transitions, search.deadlocks, search.overflows],
            true => search.before,
        };
        let violating = &progress.tallies.read(&self.stream, &search, &offers)?;
        let counts = Counts {
            states: progress.dropped + progress.listed(&offers),
            transitions,
            deadlocks,
            levels: search.levels,
            widest_level: search.widest,
            waiting: progress.waiting(&search),
            overflows,
        };
        if let Some(marked) = progress.marked.as_ref() {
            let [Some(level), Some(next)] = self.words_of_marked(marked)? else {
                checkpoints.fail(&counts, NO_MEMORY);
                return Ok(());
            };
            checkpoints.write(self.table, &Snapshot { counts, found, violating, level: &&*level, next: &&*next, offered: &[] });
            return Ok(());
        }
        let lists = match &progress.parents {
            Some(parents) => self.lists_by_rows(parents, &search)?,
            // Places in the order or, without an order, in the words that are kept.
            None => [search.first..search.last, search.last..offers.new_references.max(search.last)],
        };
        let [Some(level), Some(next)] =
            [self.words(progress, &lists[0], search.first)?, self.words(progress, &lists[1], search.first)?]
        else {
            checkpoints.fail(&counts, NO_MEMORY);
            return Ok(());
        };
        checkpoints.write(self.table, &Snapshot { counts, found, violating, level: &&*level, next: &&*next, offered: &[] });
        Ok(())
    }

    /// Reads the words of states at given places in the order; `None` if there is no memory for the words. `first`: place of the
    /// level's first state.
    fn words(&self, progress: &SearchMemory, states: &Range<u64>, first: u64) -> Result<Option<Vec<u32>>> {
        if let Some(unlisted) = &progress.unlisted {
            let read = |words: &CudaSlice<u32>, range| Ok(self.stream.clone_dtoh(&words.slice(range))?);
            return unlisted.words(states, first, self.table.width(), read).map(Some);
        }
        in_pieces(states.clone(), PIECES, |piece| match &progress.parents {
            Some(parents) => self.words_of_rows(parents, piece),
            None => match self.lists().words(&progress.order, piece.start, piece.end - piece.start)? {
                Some(words) => Ok(Some(self.stream.clone_dtoh(&words)?)),
                None => self.words_by_table(&progress.order.read(&self.stream, piece)?),
            },
        })
    }

    /// Reads the words of states through the table's own buffers for results; `None` if there is no memory for the words.
    fn words_by_table(&self, slots: &[u64]) -> Result<Option<Vec<u32>>> {
        let references: Option<Vec<_>> = slots.iter().map(|slot| self.table.reference(*slot)).collect();
        if_it_fits(
            self.table.get_many(&references.context("the order has a slot that does not exist: please report this as a bug")?),
        )
    }

    /// Finds the states of a resumed search in the loaded table.
    ///
    /// Without memory for a list of these states, the search ends at once, and can be saved unchanged.
    pub(super) fn begin_again(&self, resumed: &mut Resumed, bytes: u64) -> Result<SearchMemory> {
        let width = self.table.width();
        let [waiting, next] = [&resumed.level, &resumed.next].map(|words| (words.len() / width) as u64);
        let listed = self.lists().first_listed(waiting + next);
        let (order, marked) = self.lists().allocate(listed, waiting + next, bytes)?;
        let (order, marked, unlisted) = match order {
            Some(mut order) => {
                let marked = self.find_again(&mut order, marked, resumed)?;
                (order, marked, None)
            }
            None => {
                let mut words = std::mem::take(&mut resumed.level);
                words.append(&mut resumed.next);
                (Order::none(&self.stream)?, None, Some(Unlisted::Here(words)))
            }
        };
        let Counts { states, transitions, deadlocks, levels, widest_level, overflows, .. } = resumed.counts;
        let mut search = SearchState {
            last: if marked.is_some() { 0 } else { waiting },
            size: waiting,
            listed: waiting,
            tile: self.kernel.tile(waiting as usize),
            levels,
            widest: widest_level,
            transitions,
            deadlocks,
            overflows,
            before: [transitions, deadlocks, overflows],
            found: NONE,
            // Violations of the level that is resumed may be of lesser states.
            found_level: resumed.found.as_ref().map(|found| found.level).filter(|level| level + 1 < levels).unwrap_or(NONE),
            faulty: NONE,
            ..SearchState::default()
        };
        let tallies = self.tallies(&resumed.violating, &mut search)?;
        let listed = waiting + next;
        let offers = Offers { new_references: listed, ..Offers::default() };
        let (search, offers) = (self.stream.clone_htod(&[search])?, self.stream.clone_htod(&[offers])?);
        Ok(SearchMemory { marked, unlisted, dropped: states - listed, ..SearchMemory::new(order, offers, search, tallies) })
    }

    /// Lists a resumed search's states, or marks them.
    fn find_again(&self, order: &mut Order, marked: Option<Marked>, resumed: &Resumed) -> Result<Option<Marked>> {
        let (width, mut at, mut marked) = (self.table.width(), 0, marked);
        for (words, is_level) in [(&resumed.level, true), (&resumed.next, false)] {
            for words in words.chunks(PIECE * width) {
                let count = (words.len() / width) as u64;
                let states = self.stream.clone_htod(words)?;
                match marked.take() {
                    Some(marks) => marked = Some(self.lists().mark_words(order, marks, &states, 0..count, is_level)?),
                    None => self.lists().list_words(order, at, &states, 0..count)?,
                }
                at += count;
            }
        }
        Ok(marked)
    }
}

impl super::kernel::Kernel {
    /// States that a block takes at a time in a level of `states` states; explore.cu computes the same at the end of a level.
    pub(super) fn tile(&self, states: usize) -> u64 {
        let (blocks, warps) = (self.launch.grid_dim.0 as usize, self.launch.block_dim.0 as usize / 32);
        (32 * ((states / blocks + 32) / 32).min(warps)) as u64
    }
}
