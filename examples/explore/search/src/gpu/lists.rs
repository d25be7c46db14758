//! Lists of references and marks of waiting states, of any table on a GPU: for a search in one table (mod.rs, marked.rs), and for
//! a rank (rank.rs).

use super::kernel::{Kernel, allocate};
use super::order::{Format, Order, States};
use super::search_state::Offers;
use super::waiting::Marked;
use anyhow::{Result, ensure};
use std::ops::Range;
use std::sync::Arc;
use warpset::gpu::DeviceBatch;
use warpset::gpu::cudarc_0_19::cudarc::driver::{CudaSlice, CudaStream, CudaViewMut, DevicePtr, LaunchConfig, PushKernelArg};
use warpset::{Storage, VectorTable};

/// Slots of the table for each state for which a list has room at first. Most levels are narrow: in models of BEEM the widest
/// level has 3 to 9 % of the states.
const SLOTS_A_LISTED: u64 = 8;

/// Minimum number of states for which a list has room, if the table has that many slots.
pub(super) const FEWEST_LISTED: u64 = 1 << 12;

/// Minimum number of states of a part of a level: `take_marked` takes the marks of 1,024 slots at once.
const FEWEST: u64 = 1 << 10;

/// Marks and the shortest list of a part: eighths of a byte for each slot, and other bytes.
pub(super) const LEAST_LISTS: (u64, u64) = (2, FEWEST * 5);

/// Maximum number of states of a part. Progress is shown and limits are checked once for each part.
const MOST: u64 = 1 << 24;

/// Number of states whose references are found at a time.
const PIECE: u64 = 1 << 20;

/// Result of an attempt to replace a list by marks.
pub(super) enum Replaced {
    /// The list is as it was: no memory for marks, or a list is needed.
    Refused,
    /// The waiting states are marked. The list has room for a part of a level.
    Marked(Marked),
    /// The list is gone, and there was no memory for marks. These are its references.
    Lost(Vec<u64>),
}

/// Table, kernels and stream with which lists and marks are made.
pub(super) struct Lists<'a, S: Storage> {
    pub table: &'a VectorTable<S>,
    pub kernel: &'a Kernel,
    pub stream: &'a Arc<CudaStream>,
    /// Whether the search needs a list of all states.
    pub needs_all: bool,
    /// Maximum number of states that are listed before the host makes room.
    pub at_once: u64,
}

impl<S: Storage> Lists<'_, S> {
    /// Format of the list of references.
    pub fn format(&self) -> Format {
        Format::new(self.table.slots(), self.needs_all || self.table.indexed().is_some())
    }

    /// Number of states for which a list has room at first; all states if the search needs them. `listed`: number of states that
    /// are listed at once.
    pub fn first_listed(&self, listed: u64) -> u64 {
        let slots = self.table.slots();
        if self.needs_all {
            return slots;
        }
        ((slots / SLOTS_A_LISTED).max(FEWEST_LISTED).max(2 * listed) + self.at_once).min(slots)
    }

    /// Allocates a list for `listed` references or, if `bytes` for the table and the list, or the free memory, are too little for
    /// that, a shorter one with room for at least `waiting` states and for those that are put at once; else marks, and a list for
    /// a part of a level. Nothing if there is no memory for marks either.
    pub fn allocate(&self, listed: u64, waiting: u64, bytes: u64) -> Result<(Option<Order>, Option<Marked>)> {
        let format = self.format();
        let fits = bytes.saturating_sub(self.table.bytes()) / format.bytes();
        let least = (2 * waiting + self.at_once + FEWEST_LISTED).min(listed);
        for len in [listed.min(fits.max(least)), least] {
            if (self.needs_all || len <= fits)
                && let Some(order) = Order::allocate(self.stream, format, if self.needs_all { listed } else { len })?
            {
                return Ok((Some(order), None));
            }
        }
        Ok(match self.allocate_marked(bytes)? {
            Some((marked, order)) => (Some(order), Some(marked)),
            None => (None, None),
        })
    }

    /// Allocates marks, and a list for a part of a level, within `bytes` for the table and both. `None` if they do not fit, or if
    /// references have 8 bytes.
    fn allocate_marked(&self, bytes: u64) -> Result<Option<(Marked, Order)>> {
        let (slots, format) = (self.table.slots(), self.format());
        let left = bytes.saturating_sub(self.table.bytes() + Marked::bytes_of(slots)) / format.bytes();
        if format == Format::Wide || left < FEWEST {
            return Ok(None);
        }
        let words = slots.div_ceil(32);
        let [Some(level), Some(next)] = [self.allocate_marks(words)?, self.allocate_marks(words)?] else { return Ok(None) };
        let mut len = left.min(MOST).min(slots.max(FEWEST));
        loop {
            if let Some(order) = Order::allocate(self.stream, format, len)? {
                return Ok(Some((Marked { level, next, left: 0 }, order)));
            }
            len /= 2;
            if len < FEWEST {
                return Ok(None);
            }
        }
    }

    fn allocate_marks(&self, words: u64) -> Result<Option<CudaSlice<u32>>> {
        let Some(mut marks) = allocate::<u32>(self.stream, words)? else { return Ok(None) };
        self.stream.memset_zeros(&mut marks)?;
        Ok(Some(marks))
    }

    /// Configuration of kernels that need no shared memory.
    fn plain_launch(&self) -> LaunchConfig {
        LaunchConfig { shared_mem_bytes: 0, ..self.kernel.launch }
    }

    /// Words of `count` listed states, from place `first` on; `None` if there is no memory for the words.
    pub fn words(&self, order: &Order, first: u64, count: u64) -> Result<Option<CudaSlice<u32>>> {
        let Some(mut words) = allocate::<u32>(self.stream, (count * self.table.width() as u64).max(1))? else { return Ok(None) };
        let (view, states) = (self.table.kernel_argument()?, order.states(self.stream));
        let read = self.kernel.module.load_function("read_listed")?;
        let mut launch = self.stream.launch_builder(&read);
        launch.arg(&view).arg(&states).arg(&first).arg(&count).arg(&mut words);
        // SAFETY: the arguments match the parameters of `read_listed` in order and layout (explore.cu). The list has references
        // to stored states at `count` places from `first` on, and `words` has room for as many states. The view is valid: the
        // table grows only after the stream has been waited for (below, and before results are read).
        unsafe { launch.launch(self.plain_launch()) }?;
        self.stream.synchronize()?;
        Ok(Some(words))
    }

    /// Writes the references of stored states into a list, from place `at` on: of the states at `which` places in `states`, which
    /// has words of states one after another.
    pub fn list_words(&self, order: &mut Order, at: u64, states: &CudaSlice<u32>, which: Range<u64>) -> Result<()> {
        let count = which.end - which.start;
        ensure!(at + count <= order.len(), "a list of {} references is full: please report this as a bug", order.len());
        let width = self.table.width() as u64;
        let find = |states_at: Range<u64>, references: &mut CudaViewMut<'_, u64>| {
            let count = (states_at.end - states_at.start) as usize;
            let mut found = self.stream.alloc_zeros::<Offers>(1)?;
            let states = states.slice((states_at.start * width) as usize..(states_at.end * width) as usize);
            let batch = DeviceBatch::new(&states, count).references(references).counts(&mut found);
            self.table.find_device(self.stream, batch)?;
            let found = self.stream.clone_dtoh(&found)?[0].hits;
            ensure!(found == count as u64, "listed states are not in the table: please report this as a bug");
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
            match allocate::<u64>(self.stream, piece)? {
                Some(references) => break references,
                None => ensure!(piece > FEWEST, "no memory for the references of {piece} states"),
            }
            piece /= 2;
        };
        for first in (0..count).step_by(piece as usize) {
            let count = piece.min(count - first);
            find(which.start + first..which.start + first + count, &mut references.slice_mut(..count as usize))?;
            self.list_references(order, at + first, count, &references)?;
        }
        Ok(())
    }

    /// Writes the first `count` of some references into a list, from place `at` on.
    pub fn list_references(&self, order: &Order, at: u64, count: u64, references: &CudaSlice<u64>) -> Result<()> {
        let is_room = at + count <= order.len() && count <= references.len() as u64;
        ensure!(is_room, "{count} references for a list of {}, from {at} on: please report this as a bug", order.len());
        let list = self.kernel.module.load_function("list_references")?;
        let states = order.states(self.stream);
        let mut launch = self.stream.launch_builder(&list);
        launch.arg(&states).arg(&at).arg(&count).arg(references);
        // SAFETY: the arguments match the parameters of `list_references` in order and layout (explore.cu). The list has room for
        // `at + count` references, and `references` has `count` elements, as checked above; earlier work has written them.
        unsafe { launch.launch(self.plain_launch()) }?;
        Ok(())
    }

    /// Sets the marks of the states of the first `count` references.
    pub fn mark_references(&self, references: &CudaSlice<u64>, count: u64, marks: &CudaSlice<u32>) -> Result<()> {
        ensure!(count <= references.len() as u64, "{count} of {} references: please report this as a bug", references.len());
        let states = States { marks: marks.device_ptr(self.stream).0, ..States::default() };
        let mark = self.kernel.module.load_function("mark_references")?;
        let mut launch = self.stream.launch_builder(&mark);
        launch.arg(&states).arg(&count).arg(references);
        // SAFETY: the arguments match the parameters of `mark_references` in order and layout (explore.cu). There are `count`
        // references, as checked above, to slots of the table, and `marks` has a bit for each of these.
        unsafe { launch.launch(self.plain_launch()) }?;
        Ok(())
    }

    /// Sets the marks of states at these places of a list.
    pub fn mark_listed(&self, order: &Order, places: Range<u64>, marks: &CudaSlice<u32>) -> Result<()> {
        let states = States { marks: marks.device_ptr(self.stream).0, ..order.states(self.stream) };
        let mark = self.kernel.module.load_function("mark_listed")?;
        let mut launch = self.stream.launch_builder(&mark);
        launch.arg(&states).arg(&places.start).arg(&places.end);
        // SAFETY: the arguments match the parameters of `mark_listed` in order and layout (explore.cu). The elements of the list
        // at these places are references to slots of the table, and `marks` has a bit for each of these.
        unsafe { launch.launch(self.plain_launch()) }?;
        Ok(())
    }

    /// Marks stored states, whose words are in GPU memory: of the level, or of the next one. `order` is overwritten.
    pub fn mark_words(
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
            self.mark_listed(order, 0..part.end - part.start, marks)?;
        }
        marked.left += if are_of_level { which.end - which.start } else { 0 };
        Ok(marked)
    }

    /// Moves marked states into a list, from place `first` on, as long as it has room for them up to place `end`. Returns their
    /// number.
    pub fn take_marks(&self, marks: &CudaSlice<u32>, order: &Order, first: u64, end: u64) -> Result<u64> {
        let states = States { marks: marks.device_ptr(self.stream).0, ..order.states(self.stream) };
        let mut taken = self.stream.alloc_zeros::<u64>(2)?;
        let (take, words, capacity) = (self.kernel.module.load_function("take_marked")?, marks.len() as u64, end - first);
        let mut launch = self.stream.launch_builder(&take);
        launch.arg(&states).arg(&words).arg(&first).arg(&capacity).arg(&mut taken);
        // SAFETY: the arguments match the parameters of `take_marked` in order and layout (explore.cu). The list has the places
        // `first..end`, `marks` has `words` words, and blocks consist of whole warps (`describe`).
        unsafe { launch.launch(self.plain_launch()) }?;
        Ok(self.stream.clone_dtoh(&taken)?[1])
    }

    /// Lists the next part of the level, from the beginning of the list on. Returns its size; 0 if no state of the level is
    /// marked.
    pub fn take_part(&self, marked: &mut Marked, order: &Order) -> Result<u64> {
        let count = if marked.left == 0 { 0 } else { self.take_marks(&marked.level, order, 0, order.len())? };
        ensure!(count > 0 || marked.left == 0, "{} marked states are lost: please report this as a bug", marked.left);
        marked.left -= count;
        Ok(count)
    }

    /// Lists all marked states: the `left` ones of the level, then the `next` ones of the next level. `None` if there is no
    /// memory for that within `bytes` for the table, marks and list.
    pub fn list_of_marked(&self, marked: &Marked, next: u64, bytes: u64) -> Result<Option<Order>> {
        let (left, format) = (marked.left, self.format());
        let all = left + next;
        if self.table.bytes() + marked.bytes() + all.max(1) * format.bytes() > bytes {
            return Ok(None);
        }
        let Some(order) = Order::allocate(self.stream, format, all.max(1))? else { return Ok(None) };
        let taken = self.take_marks(&marked.level, &order, 0, left)? + self.take_marks(&marked.next, &order, left, all)?;
        ensure!(taken == all, "{} marked states are lost: please report this as a bug", all - taken);
        Ok(Some(order))
    }

    /// Replaces a list by marks of the states at these places, of the level and of the next one, within `bytes` for the table,
    /// marks and list.
    pub fn replace_by_marks(&self, order: &mut Order, level: Range<u64>, next: Range<u64>, bytes: u64) -> Result<Replaced> {
        let format = self.format();
        let needed = Marked::bytes_of(self.table.slots()) + FEWEST * format.bytes();
        let free = self.table.device().free_memory()?.saturating_add(order.bytes());
        if format == Format::Wide || self.table.bytes() + needed > bytes || needed > free {
            return Ok(Replaced::Refused);
        }
        // The list goes through the host's memory, because marks may not fit beside it.
        if 8 * (next.end - level.start) > warpset_support::memory::free_memory() / 4 * 3 {
            return Ok(Replaced::Refused);
        }
        let references = order.read(self.stream, level.start..next.end)?;
        let count = (level.end - level.start) as usize;
        *order = Order::none(self.stream)?;
        let Some((mut marked, mut part_list)) = self.allocate_marked(bytes)? else { return Ok(Replaced::Lost(references)) };
        for (part, marks) in [(&references[..count], &marked.level), (&references[count..], &marked.next)] {
            for part in part.chunks(part_list.len() as usize) {
                part_list.write(self.stream, 0, part)?;
                self.mark_listed(&part_list, 0..part.len() as u64, marks)?;
            }
        }
        marked.left = count as u64;
        *order = part_list;
        Ok(Replaced::Marked(marked))
    }

    /// Replaces the reference at `place` by that of the least of the states at these places of a list that has the second state
    /// of `path` as a successor, if it is less than the one there. `walk`: kernel of the search for a path; `tables`: those of
    /// its model.
    pub fn find_predecessor(
        &self,
        walk: &Kernel,
        tables: &CudaSlice<u32>,
        order: &Order,
        places: Range<u64>,
        path: &CudaSlice<u32>,
        place: &mut CudaSlice<u64>,
    ) -> Result<()> {
        let starts = self.stream.clone_htod(&[places.start, places.end])?;
        let (view, states) = (self.table.kernel_argument()?, order.states(self.stream));
        let mut launch = self.stream.launch_builder(&walk.function);
        launch.arg(&view).arg(tables).arg(&states).arg(&starts).arg(path).arg(place).arg(&0u64);
        // SAFETY:
        // - the arguments are those of `find_predecessor` in its order, each of the layout that it has in explore.cu;
        // - `tables` are those of the model that was compiled;
        // - `starts` describes a written part of the list, as level 0 to the kernel;
        // - `path` has two states, `place` is one reference;
        // - the view is valid: the table does not grow meanwhile.
        unsafe { launch.launch(walk.launch) }?;
        Ok(())
    }
}
