//! Checkpoints of the engine on the GPU. They are written between two launches: at the beginning of a level, or after a launch
//! that found the table full. In the second case the level is repeated.

use super::kernel::allocate;
use super::unlisted::{Unlisted, in_pieces};
use super::{GpuEngine, NONE, Offers, SearchMemory, SearchState};
use crate::checkpoint::{Checkpoints, Resumed, Snapshot};
use crate::exploration::{Counts, Found};
use crate::growth::if_it_fits;
use anyhow::{Context, Result, ensure};
use std::ops::Range;
use warpset::Storage;
use warpset::gpu::DeviceBatch;
use warpset::gpu::cudarc_0_19::cudarc::driver::CudaSlice;

/// Maximum and minimum number of states that are copied at a time; free memory decides between them.
const PIECES: [u64; 2] = [1 << 22, 1 << 5];

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
        let counts = Counts {
            states: progress.dropped + progress.listed(&offers),
            transitions,
            deadlocks,
            levels: search.levels,
            widest_level: search.widest,
            waiting: search.size,
            overflows,
        };
        let lists = match &progress.parents {
            Some(parents) => self.lists_by_rows(parents, &search)?,
            // Places in the order or, without an order, in the words that are kept.
            None => [search.first..search.last, search.last..offers.new_references.max(search.last)],
        };
        let [Some(level), Some(next)] =
            [self.words(progress, &lists[0], search.first)?, self.words(progress, &lists[1], search.first)?]
        else {
            checkpoints.fail(&counts, "no memory for the states of the level");
            return Ok(());
        };
        let violating = &progress.tallies.read(&self.stream, &search, &offers)?;
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
            None => {
                let references = progress.order.slice(piece.start as usize..piece.end as usize);
                match self.kernel.states(self.table, &self.stream, &references)? {
                    Some(words) => Ok(Some(self.stream.clone_dtoh(&words)?)),
                    None => self.words_by_table(&self.stream.clone_dtoh(&references)?),
                }
            }
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
    pub(super) fn begin_again(&self, resumed: &mut Resumed) -> Result<SearchMemory> {
        let width = self.table.width();
        let [waiting, next] = [&resumed.level, &resumed.next].map(|words| words.len() / width);
        let (order, unlisted) =
            match allocate::<u64>(&self.stream, self.first_listed(self.table.slots(), (waiting + next) as u64))? {
                Some(order) => (self.listed_again(order, resumed)?, None),
                None => {
                    let mut words = std::mem::take(&mut resumed.level);
                    words.append(&mut resumed.next);
                    (self.stream.null()?, Some(Unlisted::Here(words)))
                }
            };
        let Counts { states, transitions, deadlocks, levels, widest_level, overflows, .. } = resumed.counts;
        let mut search = SearchState {
            last: waiting as u64,
            size: waiting as u64,
            listed: waiting as u64,
            tile: self.kernel.tile(waiting),
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
        let listed = (waiting + next) as u64;
        let offers = Offers { new_references: listed, ..Offers::default() };
        let (search, offers) = (self.stream.clone_htod(&[search])?, self.stream.clone_htod(&[offers])?);
        Ok(SearchMemory {
            order,
            parents: None,
            unlisted,
            starts: None,
            kept_from: None,
            offers,
            search,
            tallies,
            dropped: states - listed,
        })
    }

    /// Lists the references of a resumed search's states.
    fn listed_again(&self, mut order: CudaSlice<u64>, resumed: &Resumed) -> Result<CudaSlice<u64>> {
        let (width, mut at) = (self.table.width(), 0);
        for words in resumed.level.chunks(PIECE * width).chain(resumed.next.chunks(PIECE * width)) {
            let count = words.len() / width;
            let states = self.stream.clone_htod(words)?;
            let mut found = self.stream.alloc_zeros::<Offers>(1)?;
            let mut references = order.slice_mut(at..at + count);
            let batch = DeviceBatch::new(&states, count).references(&mut references).counts(&mut found);
            self.table.find_device(&self.stream, batch)?;
            ensure!(self.read(&found)?.hits == count as u64, "states of the level are not in the table");
            at += count;
        }
        Ok(order)
    }
}

impl super::kernel::Kernel {
    /// States that a block takes at a time in a level of `states` states; explore.cu computes the same at the end of a level.
    fn tile(&self, states: usize) -> u64 {
        let (blocks, warps) = (self.launch.grid_dim.0 as usize, self.launch.block_dim.0 as usize / 32);
        (32 * ((states / blocks + 32) / 32).min(warps)) as u64
    }
}
