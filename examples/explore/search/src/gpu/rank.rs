//! One rank of several, on a GPU of its own. The rank's states stay on that GPU, are expanded there, and are sent to other ranks
//! from there.
//!
//! ```text
//! order    [ expanded | this level | the next one, as it is stored |   free   ]    references, 4, 5 or 8 bytes each
//!                     ^ next        ^ end                           ^ stored
//! offers   [ successors of the round | ]                                           words
//! fresh    [ references of the states that the last round has stored here ]        8 bytes each
//! ```
//!
//! The kernel expands states until none is left, or until the offers lack room for another tile's successors. Then all ranks
//! exchange their offers (`cluster::Table::find_or_put_device`), and each rank appends to its order what its own table has
//! stored. If the order lacks room, expanded states are dropped from it, or it gets longer. Without memory for that, waiting
//! states are marked in the table, and parts of the level are listed from the marks (marked.rs).
//!
//! In a search for a path, the references of states that are dropped or listed from marks are copied to the host's memory, as
//! many of the last levels as fit there.

use super::kernel::{Kernel, allocate};
use super::lists::{FEWEST_LISTED, LEAST_LISTS, Lists, Replaced};
use super::order::Order;
use super::program::Sources;
use super::tallies::Tallies;
use super::waiting::{Kept, Marked};
use super::{KernelLimits, NONE, SearchState};
use crate::codegen::ensure_fits;
use crate::exploration::{Found, Limits, Violating};
use crate::ranks::{RankNumbers, Round, Table, Worker};
use crate::successors::{Expansion, Interpreted, Successors};
use anyhow::{Context, Error, Result, ensure};
use std::ops::Range;
use std::sync::Arc;
use warpset::cluster::DeviceBatch;
use warpset::gpu::cudarc_0_19::DeviceExt;
use warpset::gpu::cudarc_0_19::cudarc::driver::{CudaSlice, CudaStream, LaunchConfig, PinnedHostSlice, PushKernelArg};
use warpset::{Storage, Tally, VectorTable};
use warpset_model::checks::Violation;

/// The offers of a round, and the references of states that it stores, take at most 1 / `SHARE` of the GPU's free memory. The
/// offers have at most `MOST_ROWS` rows, as a round of the cluster has.
const SHARE: u64 = 32;
const MOST_ROWS: u64 = 1 << 26;

/// Rows of a block's cache for each thread: `EXPLORE_ROWS_A_THREAD`.
const ROWS_A_THREAD: u64 = 4;

/// Minimum number of states that a block takes: the states of a warp.
const WARP: u64 = 32;

/// Number of references that are copied to the host, or from there, at a time.
const PIECE: u64 = 1 << 20;

pub struct OnGpu<'a> {
    interpreted: &'a Interpreted<'a>,
    /// Program text of the kernel.
    text: String,
    /// Tables of the model's network; one word if it has no network.
    tables: CudaSlice<u32>,
    kernel: Kernel,
    /// Kernel of the search for a path, compiled when it is first needed.
    walk: Option<Kernel>,
    stream: Arc<CudaStream>,
    /// Maximum number of steps of a state.
    most_steps: u64,
    /// References of the states of this rank that wait, or of a part of those of the level if they are marked.
    order: Order,
    /// Waiting states, if there is no memory to list all of them.
    marked: Option<Marked>,
    /// In a search for a path, levels that `order` no longer has.
    kept: Option<Kept>,
    /// Limit of the table and the lists, in bytes.
    most_bytes: u64,
    /// Number of states that this rank had stored when each level began, including the current one.
    starts: Vec<u64>,
    /// Number of states that this rank has stored, those of the next level among them, and those dropped from `order`.
    total: u64,
    of_next: u64,
    dropped: u64,
    /// Places in `order`: the first unexpanded state of this level, the end of the level, and the end of the part of the next
    /// level found so far.
    next: u64,
    end: u64,
    stored: u64,
    /// References of the states that the last round has stored in this rank's table.
    fresh: CudaSlice<u64>,
    /// Whether states are in no list, because there was no memory for them; and an error after a round, until the next one.
    is_stuck: bool,
    failed: Option<Error>,
    /// Successors of the last round, and their number.
    offers: CudaSlice<u32>,
    offered: u64,
    /// Least capacity of the offers of any rank, in rows.
    most_rows: u64,
    search: CudaSlice<SearchState>,
    /// Pinned copy of `search` for the host: the driver takes longer to copy to other memory.
    ended: PinnedHostSlice<SearchState>,
    /// Counts of violating states, and their address.
    tallies: Tallies,
    tallied: u64,
    /// Set while the table grows: its former number of slots, and the words of the states from `next` on.
    moving: Option<(u64, CudaSlice<u32>)>,
}

impl<'a> OnGpu<'a> {
    /// Compiles the kernel for a rank's table, and allocates memory for its rounds. Each search allocates its list of states.
    ///
    /// # Errors
    ///
    /// The table is not on a GPU, NVRTC is not found or rejects the source, there is too little memory, or the driver fails.
    pub fn new<S: Storage>(table: &Table<S>, interpreted: &'a Interpreted<'a>) -> Result<Self> {
        let (table, ranks) = (table.local(), table.ranks());
        let context = table.device().cuda_context().context("the table of this rank is not on a GPU")?;
        let model = interpreted.interpreter.model();
        ensure_fits(model)?;
        let sources = Sources::new(model, interpreted.checks);
        let text = sources.rank();
        let stream = context.new_stream()?;
        let kernel = Kernel::load(table, &text, "expand_states", &stream)?;
        let most_steps = count_steps(&kernel, &stream)?;
        let width = table.width() as u64;
        // The list of the first search takes a part of the free memory.
        let lists = Lists { table, kernel: &kernel, stream: &stream, needs_all: false, at_once: 0 };
        let listed = lists.first_listed(0) * lists.format().bytes();
        let share = table.device().free_memory()?.saturating_sub(listed) / SHARE;
        // This rank may store all rows of a round. Each rank offers at most as many as any other one (`offer_at_most`).
        let bytes = share * 4 * width / (4 * width + 8 * ranks as u64);
        let rows = rows_for(bytes, width, kernel.launch.block_dim.0.into(), most_steps);
        let offers = allocate::<u32>(&stream, rows * width)?;
        let offers = offers.with_context(|| format!("no memory for {rows} successors of {width} words in a round"))?;
        let most_fresh = rows * ranks as u64;
        let fresh = allocate::<u64>(&stream, most_fresh)?;
        let fresh = fresh.with_context(|| format!("no memory for {most_fresh} references of states that a round stores"))?;
        let mut none = SearchState::default();
        let tallies = Tallies::new(&stream, interpreted.checks.conditions.len(), &Violating::default(), &mut none)?;
        Ok(Self {
            interpreted,
            tallies,
            tallied: none.tallies,
            text,
            tables: stream.clone_htod(&sources.tables())?,
            kernel,
            walk: None,
            most_steps,
            order: Order::none(&stream)?,
            marked: None,
            kept: None,
            most_bytes: u64::MAX,
            starts: Vec::new(),
            total: 0,
            of_next: 0,
            dropped: 0,
            next: 0,
            end: 0,
            stored: 0,
            fresh,
            is_stuck: false,
            failed: None,
            offers,
            offered: 0,
            most_rows: u64::MAX,
            search: stream.alloc_zeros(1)?,
            // SAFETY: a copy writes it before it is read (`expand`). No flags: the host reads it, so it must be cached.
            ended: unsafe { context.alloc_pinned_with_flags(1, 0) }?,
            moving: None,
            stream,
        })
    }

    fn width(&self) -> u64 {
        self.interpreted.width() as u64
    }

    /// Rows of the offers that a round uses.
    fn offer_capacity(&self) -> u64 {
        let least = rows_of_tile(WARP, self.kernel.launch.block_dim.0.into(), self.most_steps);
        (self.offers.len() as u64 / self.width()).min(self.most_rows.max(least))
    }

    /// Lists and marks of this rank.
    fn lists<'l, S: Storage>(&'l self, table: &'l VectorTable<S>) -> Lists<'l, S> {
        Lists { table, kernel: &self.kernel, stream: &self.stream, needs_all: false, at_once: 0 }
    }

    /// Offers the successors in the first `offered` rows.
    fn put<S: Storage>(&mut self, table: &mut Table<S>, own: RankNumbers) -> Result<(Tally, RankNumbers)> {
        let batch = DeviceBatch::new(&self.offers, self.offered as usize).stored_here(&mut self.fresh).sum(own);
        let batch = table.find_or_put_device(&self.stream, batch)?;
        let appended = self.append(table.local(), batch.stored_here_count);
        // The next round reports an error to the other ranks.
        self.failed = self.failed.take().or(appended.err());
        Ok((batch.total, std::array::from_fn(|at| batch.sums[at])))
    }

    /// Appends the first `count` states of `fresh` to the next level.
    fn append<S: Storage>(&mut self, table: &VectorTable<S>, count: u64) -> Result<()> {
        let stored = self.total + count;
        ensure!(stored <= table.slots(), "{stored} states are stored in {} slots: please report this as a bug", table.slots());
        if count == 0 || self.is_stuck {
            return Ok(());
        }
        if self.marked.is_none() && self.stored + count > self.order.len() && !self.make_room(table, count)? {
            self.is_stuck = true;
            return Ok(());
        }
        let lists = self.lists(table);
        match &self.marked {
            Some(marked) => lists.mark_references(&self.fresh, count, &marked.next)?,
            None => {
                lists.list_references(&self.order, self.stored, count, &self.fresh)?;
                self.stored += count;
            }
        }
        (self.total, self.of_next) = (stored, self.of_next + count);
        Ok(())
    }

    /// Makes room for `count` more states in `order`: drops expanded states, or makes it longer, or marks the waiting states
    /// instead. Returns false if there is no memory for any of that.
    fn make_room<S: Storage>(&mut self, table: &VectorTable<S>, count: u64) -> Result<bool> {
        let (len, waiting) = (self.order.len(), self.stored - self.next);
        // Does not drop few states, because that would soon be repeated.
        let is_enough = waiting + count <= len;
        if is_enough && self.next >= self.stored.div_ceil(16) {
            return self.drop_expanded().map(|()| true);
        }
        let format = self.lists(table).format();
        // The old and the new list exist at the same time.
        let left = self.most_bytes.saturating_sub(table.bytes() + self.order.bytes()) / format.bytes();
        let longer = (2 * len).max(waiting + count).min(table.slots()).min(left);
        if longer >= waiting + count && longer >= len + len / 8 {
            self.drop_expanded()?;
            if let Some(mut order) = Order::allocate(&self.stream, format, longer)? {
                self.order.copy_to(&self.stream, &mut order, self.stored)?;
                self.order = order;
                return Ok(true);
            }
        }
        self.drop_expanded()?;
        if self.stored + count <= len {
            return Ok(true);
        }
        let (mut order, level, next) = (self.take_order()?, 0..self.end, self.end..self.stored);
        let replaced = self.lists(table).replace_by_marks(&mut order, level, next, self.most_bytes);
        self.order = order;
        if let Replaced::Marked(marked) = replaced? {
            self.marked = Some(marked);
            (self.next, self.end, self.stored) = (0, 0, 0);
        }
        Ok(self.marked.is_some())
    }

    /// Takes the list, so that it may be replaced; an empty one is left.
    fn take_order(&mut self) -> Result<Order> {
        let none = Order::none(&self.stream)?;
        Ok(std::mem::replace(&mut self.order, none))
    }

    /// Drops the expanded states from `order`. In a search for a path, they are kept on the host.
    fn drop_expanded(&mut self) -> Result<()> {
        if self.next == 0 {
            return Ok(());
        }
        if self.kept.is_some() {
            for level in 0..self.starts.len() {
                let places = self.places(level);
                self.keep(level, places.start..places.end.min(self.next))?;
            }
        }
        self.order.move_to_front(&self.stream, self.next, self.stored)?;
        self.dropped += self.next;
        (self.next, self.end, self.stored) = (0, self.end - self.next, self.stored - self.next);
        Ok(())
    }

    /// Copies listed states of a level to the host, if levels are kept.
    fn keep(&mut self, level: usize, places: Range<u64>) -> Result<()> {
        let Some(kept) = &mut self.kept else { return Ok(()) };
        for first in places.clone().step_by(PIECE as usize) {
            kept.add(level as u64, &self.order.read(&self.stream, first..places.end.min(first + PIECE))?);
        }
        Ok(())
    }

    /// Numbers of the states of a level, of all that this rank has stored.
    fn numbers(&self, level: usize) -> Range<u64> {
        let first = self.starts.get(level).copied().unwrap_or(self.total);
        first..self.starts.get(level + 1).copied().unwrap_or(self.total - self.of_next)
    }

    /// Places in `order` of the states of a level, if waiting states are listed. Those that have been dropped have none.
    fn places(&self, level: usize) -> Range<u64> {
        let numbers = self.numbers(level);
        let place = |number: u64| if self.marked.is_some() { 0 } else { number.saturating_sub(self.dropped) };
        place(numbers.start)..place(numbers.end)
    }

    /// Number of states of a level that are marked and not listed.
    fn marked_of(&self, level: usize) -> u64 {
        self.marked.as_ref().filter(|_| level + 1 == self.starts.len()).map_or(0, |marked| marked.left)
    }

    /// If states are marked and no listed one is left, lists the next part of the level.
    fn list_part<S: Storage>(&mut self, table: &VectorTable<S>) -> Result<()> {
        if self.next < self.end {
            return Ok(());
        }
        let Some(mut marked) = self.marked.take() else { return Ok(()) };
        let count = self.lists(table).take_part(&mut marked, &self.order);
        self.marked = Some(marked);
        (self.next, self.end) = (0, count?);
        self.keep(self.starts.len() - 1, 0..self.end)
    }

    /// Lists all marked states, before the table grows. Returns false, and keeps the marks, if there is no memory for the list.
    fn list_marked<S: Storage>(&mut self, table: &VectorTable<S>) -> Result<bool> {
        let Some(mut marked) = self.marked.take() else { return Ok(true) };
        // The part of the level that is listed and not expanded is marked again.
        let rest = self.end - self.next;
        self.lists(table).mark_listed(&self.order, self.next..self.end, &marked.level)?;
        marked.left += rest;
        (self.next, self.end) = (0, 0);
        let bytes = self.most_bytes.saturating_sub(self.order.bytes());
        let Some(order) = self.lists(table).list_of_marked(&marked, self.of_next, bytes)? else {
            self.marked = Some(marked);
            return Ok(false);
        };
        (self.end, self.stored) = (marked.left, marked.left + self.of_next);
        self.dropped = self.total - self.stored;
        self.order = order;
        Ok(true)
    }

    /// Compares the states at these places of a list with the state at `place`, as `find_predecessor` does.
    fn look_back<S: Storage>(
        &self,
        table: &VectorTable<S>,
        order: &Order,
        places: Range<u64>,
        path: &CudaSlice<u32>,
        place: &mut CudaSlice<u64>,
    ) -> Result<()> {
        let walk = self.walk.as_ref().context("the kernel of the search for a path is compiled")?;
        self.lists(table).find_predecessor(walk, &self.tables, order, places, path, place)
    }

    /// Determines the violation of a state that the kernel has found.
    fn look_up<S: Storage>(&self, table: &VectorTable<S>, slot: u64, level: u64) -> Result<Found> {
        let reference = table.reference(slot).context("the GPU returned a slot that does not exist: please report this")?;
        let state = table.get_many(&[reference])?;
        let violation = self.violation(&state);
        let violation = violation.context("the GPU finds a violation where the interpreter does not: please report this")?;
        Ok(Found { violation, state, level })
    }

    fn violation(&self, state: &[u32]) -> Option<Violation> {
        let mut expansion = Expansion::default();
        self.interpreted.expand(state, &mut Default::default(), &mut expansion);
        Some(expansion.violation?.1)
    }
}

impl<S: Storage> Worker<S> for OnGpu<'_> {
    fn clear(&mut self, table: &Table<S>, keep: bool, bytes: u64) -> Result<()> {
        self.starts.clear();
        (self.next, self.end, self.stored, self.offered) = (0, 0, 0, 0);
        (self.total, self.of_next, self.dropped) = (0, 0, 0);
        (self.marked, self.failed, self.most_bytes) = (None, None, bytes);
        self.kept = keep.then(|| Kept::new(bytes, table.ranks() as u64));
        self.order = Order::none(&self.stream)?; // free its memory for the new one
        let lists = self.lists(table.local());
        let (order, marked) = lists.allocate(lists.first_listed(0), 0, bytes)?;
        self.is_stuck = order.is_none();
        self.order = order.map_or_else(|| Order::none(&self.stream), Ok)?;
        self.marked = marked;
        Ok(())
    }

    fn most_offered(&self) -> u64 {
        self.offers.len() as u64 / self.width()
    }

    fn offer_at_most(&mut self, rows: u64) {
        self.most_rows = rows;
    }

    fn put_first(&mut self, table: &mut Table<S>, states: &[u32]) -> Result<Tally> {
        if !states.is_empty() {
            self.stream.memcpy_htod(states, &mut self.offers.slice_mut(..states.len()))?;
        }
        self.offered = states.len() as u64 / self.width();
        Ok(self.put(table, RankNumbers::default())?.0)
    }

    fn begin_level(&mut self) {
        self.starts.push(self.total - self.of_next);
        match &mut self.marked {
            Some(marked) => {
                std::mem::swap(&mut marked.level, &mut marked.next);
                marked.left = self.of_next;
                (self.next, self.end) = (0, 0);
            }
            None => (self.next, self.end) = (self.end, self.stored),
        }
        self.of_next = 0;
    }

    fn remaining(&self) -> u64 {
        self.end - self.next + self.marked.as_ref().map_or(0, |marked| marked.left)
    }

    fn expand(&mut self, table: &Table<S>, level: u64, only_faults: bool) -> Result<Round> {
        self.offered = 0;
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let table = table.local();
        self.list_part(table)?;
        let count = self.end - self.next;
        if count == 0 || self.is_stuck {
            return Ok(Round::default());
        }
        if table.spec() != self.kernel.spec {
            self.kernel = Kernel::load(table, &self.text, "expand_states", &self.stream)?;
        }
        let LaunchConfig { grid_dim, block_dim, .. } = self.kernel.launch;
        let (blocks, tile) = shape(count, grid_dim.0.into(), block_dim.0.into(), self.most_steps, self.offer_capacity());
        let search = SearchState {
            next: self.next,
            last: self.end,
            tile,
            levels: level + 1,
            found: NONE,
            found_level: if only_faults { 0 } else { NONE },
            faulty: NONE,
            room: self.offer_capacity(),
            most_steps: self.most_steps,
            tallies: self.tallied,
            ..SearchState::default()
        };
        self.stream.memcpy_htod(&[search], &mut self.search)?;
        let of_kernel = KernelLimits {
            states: u64::MAX,
            levels: u64::MAX,
            nanoseconds: u64::MAX,
            room: u64::MAX,
            deadlocks: self.interpreted.checks.deadlocks.into(),
            keep_going: 1, // the ranks decide together
        };
        let (view, states) = (table.kernel_argument()?, self.order.states(&self.stream));
        let config = LaunchConfig { grid_dim: (blocks as u32, 1, 1), ..self.kernel.launch };
        let mut launch = self.stream.launch_builder(&self.kernel.function);
        launch.arg(&view).arg(&self.tables).arg(&states).arg(&mut self.offers).arg(&mut self.search).arg(&of_kernel);
        // SAFETY:
        // - the arguments match the parameters of `expand_states` in order and layout (explore.cu);
        // - `tables` belong to the compiled model, and no thread writes them;
        // - `order` has references to stored states in `next .. last` (`append`, `list_part`, `finish_growth`), and no thread
        //   writes them meanwhile;
        // - the offers have `room` rows, and the kernel reserves rows before it writes them;
        // - the view is valid: the table grows only after the stream has been waited for (below).
        unsafe { launch.launch(config) }?;
        self.stream.memcpy_dtoh(&self.search, &mut self.ended)?;
        // Synchronize before `as_slice`, which would put the thread to sleep.
        self.stream.synchronize()?;
        let search = self.ended.as_slice()?[0];
        let expanded = search.next.min(self.end) - self.next;
        let found = match (search.faulty, search.found) {
            (NONE, NONE) => None,
            (NONE, slot) | (slot, _) => Some(self.look_up(table, slot, level)?),
        };
        // Nothing was counted if no state violates a condition.
        let violates = only_faults || search.found != NONE;
        ensure!(
            expanded > 0 && search.offered <= self.offer_capacity(),
            "{expanded} of {count} states were expanded, with {} successors of {} steps at most, in {} rows: please report this",
            search.offered,
            self.most_steps,
            self.offer_capacity()
        );
        self.next += expanded;
        self.offered = search.offered;
        let SearchState { transitions, deadlocks, overflows, .. } = search;
        let violating = if violates { self.tallies.take(&self.stream)? } else { Vec::new() };
        Ok(Round { transitions, deadlocks, overflows, violating, found })
    }

    fn offer(&mut self, table: &mut Table<S>, own: RankNumbers) -> Result<(Tally, RankNumbers)> {
        self.put(table, own)
    }

    fn prepare_growth(&mut self, table: &Table<S>) -> Result<bool> {
        let table = table.local();
        if self.is_stuck || !self.list_marked(table)? {
            return Ok(false);
        }
        let words = self.lists(table).words(&self.order, self.next, self.stored - self.next)?;
        self.moving = words.map(|words| (table.slots(), words));
        Ok(self.moving.is_some())
    }

    fn finish_growth(&mut self, table: &Table<S>) -> Result<bool> {
        let Some((slots, words)) = self.moving.take() else { return Ok(true) };
        let table = table.local();
        if table.slots() == slots {
            return Ok(true);
        }
        let (level, count) = (self.end - self.next, self.stored - self.next);
        let before = self.order.len().min(table.slots());
        self.order = Order::none(&self.stream)?; // the new order may need this memory
        let lists = self.lists(table);
        let (order, marked) = lists.allocate(lists.first_listed(count).max(before), count, self.most_bytes)?;
        let Some(mut order) = order else {
            self.is_stuck = true;
            return Ok(false);
        };
        // The new order lacks the expanded states, and the numbers of earlier levels are not used any more.
        let (next, end, stored) = match marked {
            Some(marked) => {
                let marked = lists.mark_words(&mut order, marked, &words, 0..level, true)?;
                let marked = lists.mark_words(&mut order, marked, &words, level..count, false)?;
                self.marked = Some(marked);
                (0, 0, 0)
            }
            None => {
                lists.list_words(&mut order, 0, &words, 0..count)?;
                (0, level, count)
            }
        };
        self.dropped = self.total - count;
        (self.order, self.next, self.end, self.stored) = (order, next, end, stored);
        Ok(true)
    }

    fn list_bytes(&self) -> u64 {
        self.order.bytes() + self.marked.as_ref().map_or(0, Marked::bytes)
    }

    fn least_lists(&self) -> (u64, u64) {
        if self.kernel.spec.is_indexed() { (0, 8 * FEWEST_LISTED) } else { LEAST_LISTS }
    }

    fn lacks_memory(&self) -> bool {
        self.is_stuck
    }

    fn has_kept(&self, level: usize) -> bool {
        let (numbers, places) = (self.numbers(level), self.places(level));
        let kept = self.kept.as_ref().map_or(0, |kept| kept.len(level as u64));
        kept + (places.end - places.start) + self.marked_of(level) == numbers.end - numbers.start
    }

    fn look_at(&self, state: &[u32]) -> Option<Violation> {
        self.violation(state)
    }

    fn predecessor(&mut self, table: &Table<S>, level: usize, successor: &[u32], limits: Limits) -> Result<Option<Vec<u32>>> {
        if let Some(stop) = (limits.stop)() {
            return Err(stop.error("while the path was followed back").into());
        }
        let (table, width) = (table.local(), successor.len());
        if self.walk.as_ref().is_none_or(|walk| walk.spec != table.spec()) {
            let text = Sources::new(self.interpreted.interpreter.model(), self.interpreted.checks).walk(false);
            self.walk = Some(Kernel::load(table, &text, "find_predecessor", &self.stream)?);
        }
        let path = self.stream.clone_htod(&[&vec![0; width], successor].concat())?;
        let mut place = self.stream.clone_htod(&[NONE])?;
        let places = self.places(level);
        if !places.is_empty() {
            self.look_back(table, &self.order, places, &path, &mut place)?;
        }
        while self.marked_of(level) > 0 {
            self.next = self.end; // no part of the level is listed
            self.list_part(table)?;
            self.look_back(table, &self.order, 0..self.end, &path, &mut place)?;
        }
        // States that have just been listed from marks are kept, too.
        let references = self.kept.as_mut().filter(|kept| kept.len(level as u64) > 0).and_then(|kept| kept.pop(level as u64));
        if let Some(references) = references.filter(|references| !references.is_empty()) {
            let format = self.lists(table).format();
            let piece = PIECE.min(references.len() as u64);
            let part = Order::allocate(&self.stream, format, piece)?;
            let mut part = part.with_context(|| format!("no memory for {piece} references of a level"))?;
            for piece in references.chunks(piece as usize) {
                part.write(&self.stream, 0, piece)?;
                self.look_back(table, &part, 0..piece.len() as u64, &path, &mut place)?;
            }
        }
        let place = self.stream.clone_dtoh(&place)?[0];
        let reference = (place != NONE).then(|| table.reference(place).context("the GPU returned a slot that does not exist"));
        let reference = reference.transpose()?;
        Ok(reference.map(|reference| table.get_many(&[reference])).transpose()?)
    }
}

/// Number of rows for successors that fit `bytes`, but at least the number that the smallest tile may need.
pub fn rows_for(bytes: u64, width: u64, threads: u64, most_steps: u64) -> u64 {
    (bytes / (4 * width)).min(MOST_ROWS).max(rows_of_tile(WARP, threads, most_steps))
}

/// Rows that must be free before a block of `threads` threads takes `tile` states, because it may also write the rows in its
/// cache.
pub fn rows_of_tile(tile: u64, threads: u64, most_steps: u64) -> u64 {
    threads * ROWS_A_THREAD + tile * most_steps
}

/// Returns the number of blocks that expand `count` states, and the number of states that a block takes at a time. Few states are
/// spread over all blocks. The offers have `room` rows, enough for the successors of at least one tile.
pub fn shape(count: u64, most_blocks: u64, threads: u64, most_steps: u64, room: u64) -> (u64, u64) {
    let share = count.div_ceil(most_blocks).next_multiple_of(WARP).min(threads);
    let tile = if rows_of_tile(share, threads, most_steps) <= room { share } else { WARP };
    (count.div_ceil(tile).min(most_blocks), tile)
}

fn count_steps(kernel: &Kernel, stream: &Arc<CudaStream>) -> Result<u64> {
    let function = kernel.module.load_function("count_steps")?;
    let mut most = stream.alloc_zeros::<u64>(1)?;
    let mut launch = stream.launch_builder(&function);
    launch.arg(&mut most);
    // SAFETY: the argument is the address of one number, which one thread writes.
    unsafe { launch.launch(LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 }) }?;
    Ok(stream.clone_dtoh(&most)?[0])
}

#[cfg(test)]
mod tests {
    use super::{WARP, rows_for, rows_of_tile, shape};

    #[test]
    fn there_is_room_for_a_tile_whatever_a_state_may_have_for_steps() {
        for most_steps in [1, 7, 1000, 1 << 20] {
            for (width, threads) in [(1, 256), (20, 128), (256, 32)] {
                for bytes in [0, 1 << 20, 1 << 32] {
                    let rows = rows_for(bytes, width, threads, most_steps);
                    for count in [1, 31, 32, 33, 10_000, 1 << 30] {
                        let (blocks, tile) = shape(count, 264, threads, most_steps, rows);
                        assert!(tile % WARP == 0 && (WARP..=threads).contains(&tile) && (1..=264).contains(&blocks));
                        assert!(rows_of_tile(tile, threads, most_steps) <= rows, "{most_steps} steps, {rows} rows");
                    }
                }
            }
        }
        // A small level is spread over all blocks, a large one is split into tiles of whole blocks.
        assert_eq!([33, 264 * 32, 1 << 20].map(|count| shape(count, 264, 256, 10, 1 << 20)), [(2, 32), (264, 32), (264, 256)]);
    }
}
