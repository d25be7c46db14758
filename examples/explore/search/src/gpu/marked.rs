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

use super::kernel::{Kernel, allocate};
use super::order::{Format, Order, States};
use super::search_state::{NONE, Offers, SearchState};
use super::unlisted::Unlisted;
use super::waiting::Marked;
use super::{GpuEngine, SearchMemory};
use crate::marks::Marks;
use anyhow::{Context, Result, ensure};
use std::ops::Range;
use warpset::Storage;
use warpset::gpu::DeviceBatch;
use warpset::gpu::cudarc_0_19::cudarc::driver::{CudaSlice, CudaViewMut, DevicePtr, LaunchConfig, PushKernelArg};

/// Minimum number of states of a part: `take_marked` takes the marks of 1,024 slots at once.
const FEWEST: u64 = 1 << 10;

/// Maximum number of states of a part. Progress is shown and limits are checked once for each part.
const MOST: u64 = 1 << 24;

/// Number of states whose references are found at a time.
const PIECE: u64 = 1 << 20;

impl<S: Storage> GpuEngine<'_, S> {
    /// Format of the list of references.
    pub(super) fn format(&self) -> Format {
        Format::new(self.table.slots(), self.model().property.is_some() || self.table.indexed().is_some())
    }

    /// Allocates marks, and a list for a part of a level, within `bytes` for the table and both. `None` if they do not fit, or if
    /// the search needs a list of all states.
    pub(super) fn allocate_marked(&self, bytes: u64) -> Result<Option<(Marked, Order)>> {
        let (slots, format) = (self.table.slots(), self.format());
        let left = bytes.saturating_sub(self.table.bytes() + Marked::bytes_of(slots)) / format.bytes();
        if format == Format::Wide || left < FEWEST {
            return Ok(None);
        }
        let words = slots.div_ceil(32);
        let [Some(level), Some(next)] = [self.allocate_marks(words)?, self.allocate_marks(words)?] else { return Ok(None) };
        let mut len = left.min(MOST).min(slots.max(FEWEST));
        loop {
            if let Some(order) = Order::allocate(&self.stream, format, len)? {
                return Ok(Some((Marked { level, next, left: 0 }, order)));
            }
            len /= 2;
            if len < FEWEST {
                return Ok(None);
            }
        }
    }

    fn allocate_marks(&self, words: u64) -> Result<Option<CudaSlice<u32>>> {
        let Some(mut marks) = allocate::<u32>(&self.stream, words)? else { return Ok(None) };
        self.stream.memset_zeros(&mut marks)?;
        Ok(Some(marks))
    }

    /// Configuration of kernels that need no shared memory.
    fn plain_launch(&self) -> LaunchConfig {
        LaunchConfig { shared_mem_bytes: 0, ..self.kernel.launch }
    }

    /// Writes the references of stored states into a list, from place `at` on: of the states at `which` places in `states`, which
    /// has words of states one after another.
    pub(super) fn list_words(&self, order: &mut Order, at: u64, states: &CudaSlice<u32>, which: Range<u64>) -> Result<()> {
        let count = which.end - which.start;
        ensure!(at + count <= order.len(), "a list of {} references is full: please report this as a bug", order.len());
        let width = self.table.width() as u64;
        let find = |states_at: Range<u64>, references: &mut CudaViewMut<'_, u64>| {
            let count = (states_at.end - states_at.start) as usize;
            let mut found = self.stream.alloc_zeros::<Offers>(1)?;
            let states = states.slice((states_at.start * width) as usize..(states_at.end * width) as usize);
            let batch = DeviceBatch::new(&states, count).references(references).counts(&mut found);
            self.table.find_device(&self.stream, batch)?;
            ensure!(self.read(&found)?.hits == count as u64, "listed states are not in the table: please report this as a bug");
            anyhow::Ok(())
        };
        if count == 0 {
            return Ok(());
        }
        if let Order::Wide(references) = order {
            return find(which, &mut references.slice_mut(at as usize..(at + count) as usize));
        }
        let mut piece = count.min(PIECE);
        let mut references = loop {
            match allocate::<u64>(&self.stream, piece)? {
                Some(references) => break references,
                None => ensure!(piece > FEWEST, "no memory for the references of {piece} states"),
            }
            piece /= 2;
        };
        let list = self.kernel.module.load_function("list_references")?;
        for first in (0..count).step_by(piece as usize) {
            let count = piece.min(count - first);
            find(which.start + first..which.start + first + count, &mut references.slice_mut(..count as usize))?;
            let (states, place) = (order.states(&self.stream), at + first);
            let mut launch = self.stream.launch_builder(&list);
            launch.arg(&states).arg(&place).arg(&count).arg(&references);
            // SAFETY: the arguments match the parameters of `list_references` in order and layout (explore.cu). The list has room
            // for `at + count` references, as the caller has checked, and `references` has `count` elements that are written.
            unsafe { launch.launch(self.plain_launch()) }?;
        }
        Ok(())
    }

    /// Sets the marks of the first `count` states of a list.
    fn mark_listed(&self, order: &Order, count: u64, marks: &CudaSlice<u32>) -> Result<()> {
        let states = States { marks: marks.device_ptr(&self.stream).0, ..order.states(&self.stream) };
        let mark = self.kernel.module.load_function("mark_listed")?;
        let mut launch = self.stream.launch_builder(&mark);
        launch.arg(&states).arg(&0u64).arg(&count);
        // SAFETY: the arguments match the parameters of `mark_listed` in order and layout (explore.cu). The first `count`
        // elements of the list are references to slots of the table, and `marks` has a bit for each of these.
        unsafe { launch.launch(self.plain_launch()) }?;
        Ok(())
    }

    /// Marks `count` stored states, whose words are in GPU memory: of the level, or of the next one. `order` is overwritten.
    pub(super) fn mark_words(
        &self,
        order: &mut Order,
        mut marked: Marked,
        states: &CudaSlice<u32>,
        which: Range<u64>,
        are_of_level: bool,
    ) -> Result<Marked> {
        let marks = if are_of_level { &marked.level } else { &marked.next };
        for first in which.clone().step_by(order.len() as usize) {
            let part = first..which.end.min(first + order.len());
            self.list_words(order, 0, states, part.clone())?;
            self.mark_listed(order, part.end - part.start, marks)?;
        }
        marked.left += if are_of_level { which.end - which.start } else { 0 };
        Ok(marked)
    }

    /// Marks the first `count` listed states, all of them states of the level.
    pub(super) fn mark_first(&self, order: &Order, count: u64, mut marked: Marked) -> Result<Marked> {
        self.mark_listed(order, count, &marked.level)?;
        marked.left = count;
        Ok(marked)
    }

    /// Prepares a search whose states have just been marked: no part of the level is listed.
    pub(super) fn go_on_marked(&self, progress: &mut SearchMemory, level: u64) -> Result<()> {
        let search = self.read(&progress.search)?;
        let now = SearchState { first: 0, next: 0, last: 0, listed: level, ..search };
        Ok(self.stream.memcpy_htod(&[now], &mut progress.search)?)
    }

    /// Moves marked states into a list, from place `first` on, as long as it has room for them up to place `end`. Returns their
    /// number.
    fn take_marks(&self, marks: &CudaSlice<u32>, order: &Order, first: u64, end: u64) -> Result<u64> {
        let states = States { marks: marks.device_ptr(&self.stream).0, ..order.states(&self.stream) };
        let mut taken = self.stream.alloc_zeros::<u64>(2)?;
        let (take, words, capacity) = (self.kernel.module.load_function("take_marked")?, marks.len() as u64, end - first);
        let mut launch = self.stream.launch_builder(&take);
        launch.arg(&states).arg(&words).arg(&first).arg(&capacity).arg(&mut taken);
        // SAFETY: the arguments match the parameters of `take_marked` in order and layout (explore.cu). The list has the places
        // `first..end`, `marks` has `words` words, and blocks consist of whole warps (`describe`).
        unsafe { launch.launch(self.plain_launch()) }?;
        Ok(self.stream.clone_dtoh(&taken)?[1])
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
        let (format, len) = (self.format(), progress.order.len());
        let needed = Marked::bytes_of(self.table.slots()) + FEWEST * format.bytes();
        let free = self.table.device().free_memory()?.saturating_add(progress.order.bytes());
        if format == Format::Wide || progress.marked.is_some() || self.table.bytes() + needed > bytes || needed > free {
            return Ok(false);
        }
        // The list goes through the host's memory, because marks may not fit beside it.
        let count = offers.new_references - search.first;
        if 8 * count > warpset_support::memory::free_memory() / 4 * 3 {
            return Ok(false);
        }
        let references = progress.order.read(&self.stream, search.first..offers.new_references)?;
        let level = (search.last - search.first) as usize;
        progress.order = Order::none(&self.stream)?;
        let Some((mut marked, mut order)) = self.allocate_marked(bytes)? else {
            return self.list_back(progress, search.first, len, &references);
        };
        for (part, marks) in [(&references[..level], &marked.level), (&references[level..], &marked.next)] {
            for part in part.chunks(order.len() as usize) {
                order.write(&self.stream, 0, part)?;
                self.mark_listed(&order, part.len() as u64, marks)?;
            }
        }
        marked.left = level as u64;
        (progress.order, progress.marked, progress.starts) = (order, Some(marked), None);
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
        match Order::allocate(&self.stream, self.format(), len)? {
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
        let count = self.take_marks(&marked.level, &progress.order, 0, progress.order.len())?;
        ensure!(count > 0 || marked.left == 0, "{} marked states are lost: please report this as a bug", marked.left);
        marked.left -= count;
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
            self.mark_listed(&progress.order, count, &marked.level)?;
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
        let taken = self.table.bytes() + progress.bytes();
        let Some(marked) = &progress.marked else { return Ok(true) };
        // A list would have no starts of levels, which a search for a path needs. Its table has its final size.
        if progress.kept.is_some() {
            return Ok(false);
        }
        let (left, format) = (marked.left, self.format());
        let all = left + (offers.new_references - search.listed);
        let Some(order) = (taken + all.max(1) * format.bytes() <= bytes)
            .then(|| Order::allocate(&self.stream, format, all.max(1)))
            .transpose()?
            .flatten()
        else {
            return Ok(false);
        };
        let taken = self.take_marks(&marked.level, &order, 0, left)? + self.take_marks(&marked.next, &order, left, all)?;
        ensure!(taken == all, "{} marked states are lost: please report this as a bug", all - taken);
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
                while let Some(count) = self.next_part(progress)? {
                    self.find_predecessor(&walk, &progress.order, count, &path, &mut place)?;
                }
            } else {
                let Some(references) = progress.kept.as_mut().and_then(|kept| kept.pop(level)) else { break };
                for part in references.chunks(progress.order.len() as usize) {
                    progress.order.write(&self.stream, 0, part)?;
                    self.find_predecessor(&walk, &progress.order, part.len() as u64, &path, &mut place)?;
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

    /// Lists the next part of the marked level, and returns its size; `None` if no state is left.
    fn next_part(&self, progress: &mut SearchMemory) -> Result<Option<u64>> {
        let Some(marked) = progress.marked.as_mut().filter(|marked| marked.left > 0) else { return Ok(None) };
        let count = self.take_marks(&marked.level, &progress.order, 0, progress.order.len())?;
        ensure!(count > 0, "{} marked states are lost: please report this as a bug", marked.left);
        marked.left -= count;
        Ok(Some(count))
    }

    /// Replaces the reference at `place` by that of the least of the first `count` listed states that has the second state of
    /// `path` as a successor, if it is less than the one there.
    fn find_predecessor(
        &self,
        walk: &Kernel,
        order: &Order,
        count: u64,
        path: &CudaSlice<u32>,
        place: &mut CudaSlice<u64>,
    ) -> Result<()> {
        let (view, states, starts) =
            (self.table.kernel_argument()?, order.states(&self.stream), self.stream.clone_htod(&[0, count])?);
        let mut launch = self.stream.launch_builder(&walk.function);
        launch.arg(&view).arg(&self.tables).arg(&states).arg(&starts).arg(path).arg(place).arg(&0u64);
        // SAFETY: as in `walk_back`, for a path of two states: `starts` describes the listed states as level 0.
        unsafe { launch.launch(walk.launch) }?;
        Ok(())
    }
}
