//! Waiting states that are marked in the table, because the memory has no room for a list of their references.
//!
//! ```text
//! level   one bit for each slot: states of the level that are not expanded       [ 0 1 0 0 1 ... ]
//! next    one bit for each slot: states found for the next level                 [ 0 0 1 0 0 ... ]
//! order   references of some states of the level, whose marks are removed        a part of the level
//! ```
//!
//! Marks take a quarter of a byte for each slot, whatever waits. A launch expands the part of the level that is in `order`, and
//! the kernel marks new states instead of listing them. Between two launches the host lists the next part, or begins the next
//! level. A part that found the table full is marked again. Before the table grows, all waiting states are listed, if there is
//! memory.
//!
//! A search for a path copies the references of each level to the host's memory (`Kept`), and drops the first of these levels
//! when they take more than the limit of the search, or half of the host's free memory. Without any, the level before the known
//! part of the path is still marked when the search ends, so each pass finds at least one state of the path.

use super::kernel::Kernel;
use super::lists::{Lists, Replaced};
use super::order::Order;
use super::search_state::{NONE, Offers, SearchState};
use super::unlisted::Unlisted;
use super::waiting::Marked;
use super::{GpuEngine, SearchMemory};
use crate::marks::Marks;
use anyhow::{Context, Result, ensure};
use warpset::Storage;
use warpset::gpu::cudarc_0_19::cudarc::driver::CudaSlice;

impl<S: Storage> GpuEngine<'_, S> {
    /// Lists and marks of this search.
    pub(super) fn lists(&self) -> Lists<'_, S> {
        let Self { table, kernel, stream, .. } = self;
        Lists { table, kernel, stream, needs_all: self.model().property.is_some(), at_once: self.most_put_at_once() }
    }

    /// Marks the first `count` listed states, all of them states of the level.
    pub(super) fn mark_first(&self, order: &Order, count: u64, mut marked: Marked) -> Result<Marked> {
        self.lists().mark_listed(order, 0..count, &marked.level)?;
        marked.left = count;
        Ok(marked)
    }

    /// Prepares a search whose states have just been marked: no part of the level is listed.
    pub(super) fn go_on_marked(&self, progress: &mut SearchMemory, level: u64) -> Result<()> {
        let search = self.read(&progress.search)?;
        let now = SearchState { first: 0, next: 0, last: 0, listed: level, ..search };
        Ok(self.stream.memcpy_htod(&[now], &mut progress.search)?)
    }

    /// Replaces the list by marks, within `bytes` for the table and all lists. Returns false, and keeps the list, if there is no
    /// memory for marks either, or if the search needs a list of all states.
    pub(super) fn mark_waiting(
        &self,
        progress: &mut SearchMemory,
        search: &SearchState,
        offers: &Offers,
        bytes: u64,
    ) -> Result<bool> {
        let len = progress.order.len();
        if progress.marked.is_some() {
            return Ok(false);
        }
        let (level, next) = (search.first..search.last, search.last..offers.new_references);
        match self.lists().replace_by_marks(&mut progress.order, level, next, bytes)? {
            Replaced::Refused => return Ok(false),
            Replaced::Lost(references) => return self.list_back(progress, search.first, len, &references),
            Replaced::Marked(marked) => (progress.marked, progress.starts) = (Some(marked), None),
        }
        let mut now = SearchState { first: 0, last: 0, next: 0, found: NONE, faulty: NONE, crowded: 0, ..*search };
        if search.is_repeated(offers) {
            [now.transitions, now.deadlocks, now.overflows] = search.before;
            progress.tallies.repeat(&self.stream)?;
        }
        self.stream.memcpy_htod(&[now], &mut progress.search)?;
        self.stream.memcpy_htod(&[Offers { full: 0, full_nodes: 0, ..*offers }], &mut progress.offers)?;
        Ok(true)
    }

    /// Lists references again, from place `first` of a list of `len` on. Without memory for the list, which was there before, the
    /// words of the states are kept on the host. Returns false.
    fn list_back(&self, progress: &mut SearchMemory, first: u64, len: u64, references: &[u64]) -> Result<bool> {
        match Order::allocate(&self.stream, self.lists().format(), len)? {
            Some(mut order) => {
                order.write(&self.stream, first, references)?;
                progress.order = order;
            }
            None => {
                let slots: Option<Vec<_>> = references.iter().map(|slot| self.table.reference(*slot)).collect();
                let slots = slots.context("the list has a slot that does not exist: please report this as a bug")?;
                progress.unlisted = Some(Unlisted::Here(self.table.get_many(&slots)?));
            }
        }
        Ok(false)
    }

    /// If states are marked, lists the next part of the level.
    pub(super) fn begin_part(&self, progress: &mut SearchMemory) -> Result<()> {
        let Some(marked) = &mut progress.marked else { return Ok(()) };
        let count = self.lists().take_part(marked, &progress.order)?;
        let search = self.read(&progress.search)?;
        let now = SearchState { first: 0, next: 0, last: count, tile: self.kernel.tile(count as usize), ..search };
        Ok(self.stream.memcpy_htod(&[now], &mut progress.search)?)
    }

    /// Ends a launch that has expanded the listed part of the level: begins the next level if it was the last part; marks it
    /// again if the table was full. Returns whether the level has ended; true if states are not marked.
    pub(super) fn end_part(
        &self,
        progress: &mut SearchMemory,
        search: &mut SearchState,
        offers: &Offers,
        keep_going: bool,
    ) -> Result<bool> {
        let Some(marked) = &mut progress.marked else { return Ok(true) };
        let count = search.last - search.first;
        let is_full = offers.full != 0;
        let mut now = SearchState { first: 0, next: 0, last: 0, ..*search };
        if is_full {
            self.lists().mark_listed(&progress.order, 0..count, &marked.level)?;
            marked.left += count;
            [now.transitions, now.deadlocks, now.overflows] = search.before;
            progress.tallies.repeat(&self.stream)?;
            (now.found, now.faulty) = (NONE, NONE);
        } else {
            if let Some(kept) = &mut progress.kept {
                kept.add(search.levels - 1, &progress.order.read(&self.stream, 0..count)?);
            }
            now.before = [now.transitions, now.deadlocks, now.overflows];
        }
        let ends = !is_full && marked.left == 0;
        if ends {
            // As `begin_level` in explore.cu.
            if now.found != NONE && now.found_level == NONE {
                now.found_level = now.levels - 1;
            }
            if now.faulty == NONE && (now.found == NONE || keep_going) {
                now.size = offers.new_references - now.listed;
                now.listed = offers.new_references;
                now.levels += u64::from(now.size != 0);
                now.widest = now.widest.max(now.size);
                std::mem::swap(&mut marked.level, &mut marked.next);
                marked.left = now.size;
            }
        }
        self.stream.memcpy_htod(&[now], &mut progress.search)?;
        // The caller sees violations of a part that is repeated, as in a list.
        *search = SearchState { found: search.found, faulty: search.faulty, ..now };
        Ok(ends)
    }

    /// Lists all marked states, within `bytes` for the table and all lists, before the table grows. Returns false, and keeps the
    /// marks, if there is no memory for the list.
    pub(super) fn list_marked(
        &self,
        progress: &mut SearchMemory,
        search: &mut SearchState,
        offers: &Offers,
        bytes: u64,
    ) -> Result<bool> {
        let Some(marked) = &progress.marked else { return Ok(true) };
        // A list would have no starts of levels, which a search for a path needs. Its table has its final size.
        if progress.kept.is_some() {
            return Ok(false);
        }
        let (left, next) = (marked.left, offers.new_references - search.listed);
        let all = left + next;
        let Some(order) = self.lists().list_of_marked(marked, next, bytes.saturating_sub(progress.order.bytes()))? else {
            return Ok(false);
        };
        // The states before the listed ones have been expanded.
        let dropped = offers.new_references - all;
        progress.dropped += dropped;
        (progress.order, progress.marked) = (order, None);
        *search = SearchState { first: 0, next: 0, last: left, listed: left, ..*search };
        self.stream.memcpy_htod(&[*search], &mut progress.search)?;
        let offers = Offers { new_references: all, ..*offers };
        self.stream.memcpy_htod(&[offers], &mut progress.offers)?;
        Ok(true)
    }

    /// Words of the states that wait in the level, and of those found for the next one.
    pub(super) fn words_of_marked(&self, marked: &Marked) -> Result<[Option<Vec<u32>>; 2]> {
        let read = |marks: &CudaSlice<u32>| {
            let marks = Marks::of_words(&self.stream.clone_dtoh(marks)?);
            let mut all = Vec::new();
            if all.try_reserve_exact(marks.count * self.table.width()).is_err() {
                return Ok(None);
            }
            marks.read(self.table, &mut |words| {
                all.extend_from_slice(words);
                Ok(())
            })?;
            anyhow::Ok(Some(all))
        };
        Ok([read(&marked.level)?, read(&marked.next)?])
    }

    /// States on a path to `state`, which is in the level after the marked one, each before the one that precedes it in the
    /// result: the least predecessor in the marked level, then in the levels that are kept, but not the initial state. At least
    /// one, if the marked level has a predecessor.
    pub(super) fn walk_marked(&self, progress: &mut SearchMemory, state: &[u32], level: u64) -> Result<Vec<Vec<u32>>> {
        let text = self.sources.walk(false);
        let walk = Kernel::load(self.table, &text, "find_predecessor", &self.stream)?;
        let width = self.table.width();
        let mut found: Vec<Vec<u32>> = Vec::new();
        for level in (1..level).rev() {
            let wanted: Vec<u32> = [state, found.last().map_or(state, |found| found)].concat();
            let path = self.stream.clone_htod(&wanted)?;
            let mut place = self.stream.clone_htod(&[NONE])?;
            if found.is_empty() {
                let marked = progress.marked.as_mut().context("the states of the level are marked")?;
                loop {
                    let count = self.lists().take_part(marked, &progress.order)?;
                    if count == 0 {
                        break;
                    }
                    self.lists().find_predecessor(&walk, &self.tables, &progress.order, 0..count, &path, &mut place)?;
                }
            } else {
                let Some(references) = progress.kept.as_mut().and_then(|kept| kept.pop(level)) else { break };
                for part in references.chunks(progress.order.len() as usize) {
                    progress.order.write(&self.stream, 0, part)?;
                    let places = 0..part.len() as u64;
                    self.lists().find_predecessor(&walk, &self.tables, &progress.order, places, &path, &mut place)?;
                }
            }
            let place = self.read(&place)?;
            ensure!(place != NONE, "a state has no predecessor in the level before its own: please report this as a bug");
            let place = self.table.reference(place).context("the GPU returned a slot that does not exist: please report this")?;
            let words = self.table.get_many(&[place])?;
            ensure!(words.len() == width, "a state of another width: please report this as a bug");
            found.push(words);
        }
        Ok(found)
    }
}
