//! One rank of several, on a GPU of its own. The rank's states stay on that GPU, are expanded there, and are sent to other ranks
//! from there.
//!
//! ```text
//! order    [ level 0 | ... | expanded | this level | the next one, as it is stored ]    references of this rank's table
//!                                     ^ next        ^ end                          ^ stored
//! offers   [ successors of the round | ]                                                words
//! ```
//!
//! The kernel expands states until none is left, or until the offers lack room for another tile's successors. Then all ranks
//! exchange their offers (`cluster::Table::find_or_put_device`), and each rank appends to its order what its own table has
//! stored.

use super::kernel::{Kernel, allocate};
use super::order::States;
use super::program::Sources;
use super::tallies::Tallies;
use super::{KernelLimits, NONE, SearchState};
use crate::codegen::ensure_fits;
use crate::exploration::{Found, Limits, Violating};
use crate::ranks::{RankNumbers, Round, Table, Worker};
use crate::successors::{Expansion, Interpreted, Successors};
use anyhow::{Context, Result, ensure};
use std::sync::Arc;
use warpset::cluster::DeviceBatch;
use warpset::gpu::cudarc_0_19::DeviceExt;
use warpset::gpu::cudarc_0_19::cudarc::driver::{CudaSlice, CudaStream, DevicePtr, LaunchConfig, PinnedHostSlice, PushKernelArg};
use warpset::gpu::{Counts as Offers, DeviceBatch as LocalBatch};
use warpset::{Storage, Tally, VectorTable};
use warpset_model::checks::Violation;

/// The offers of a round take at most 1 / `SHARE` of the GPU's free memory and at most `MOST_ROWS` rows, as a round of the
/// cluster does.
const SHARE: u64 = 32;
const MOST_ROWS: u64 = 1 << 26;

/// Rows of a block's cache for each thread: `EXPLORE_ROWS_A_THREAD`.
const ROWS_A_THREAD: u64 = 4;

/// Minimum number of states that a block takes: the states of a warp.
const WARP: u64 = 32;

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
    /// References of the states of this rank, by levels. The list has room for as many as the table has slots.
    order: CudaSlice<u64>,
    /// Starts of levels in `order`, including the current level.
    starts: Vec<u64>,
    /// Places in `order`: the first unexpanded state of this level, the end of the level, and the end of the part of the next
    /// level found so far.
    next: u64,
    end: u64,
    stored: u64,
    /// Successors of the last round, and their number.
    offers: CudaSlice<u32>,
    offered: u64,
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
    /// Compiles the kernel for a rank's table, and allocates its lists.
    ///
    /// # Errors
    ///
    /// The table is not on a GPU, NVRTC is not found or rejects the source, there is too little memory, or the driver fails.
    pub fn new<S: Storage>(table: &VectorTable<S>, interpreted: &'a Interpreted<'a>) -> Result<Self> {
        let context = table.device().cuda_context().context("the table of this rank is not on a GPU")?;
        let model = interpreted.interpreter.model();
        ensure_fits(model)?;
        let sources = Sources::new(model, interpreted.checks);
        let text = sources.rank();
        let stream = context.new_stream()?;
        let kernel = Kernel::load(table, &text, "expand_states", &stream)?;
        let most_steps = count_steps(&kernel, &stream)?;
        let width = table.width() as u64;
        let (order, free) = (order_of(table, &stream)?, table.device().free_memory()?);
        let order = order.with_context(|| format!("no memory for a list of {} states", table.slots()))?;
        let rows = rows_for(free / SHARE, width, kernel.launch.block_dim.0.into(), most_steps);
        let offers = allocate::<u32>(&stream, rows * width)?;
        let offers = offers.with_context(|| format!("no memory for {rows} successors of {width} words in a round"))?;
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
            order,
            starts: Vec::new(),
            next: 0,
            end: 0,
            stored: 0,
            offers,
            offered: 0,
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

    /// Capacity of the offers, in rows.
    fn offer_capacity(&self) -> u64 {
        self.offers.len() as u64 / self.width()
    }

    /// Offers the successors in the first `offered` rows.
    fn put<S: Storage>(&mut self, table: &mut Table<S>, own: RankNumbers) -> Result<(Tally, RankNumbers)> {
        let mut stored = self.order.slice_mut(self.stored as usize..);
        let batch = DeviceBatch::new(&self.offers, self.offered as usize).stored_here(&mut stored).sum(own);
        let batch = table.find_or_put_device(&self.stream, batch)?;
        self.stored += batch.stored_here_count;
        ensure!(
            self.stored <= table.local().slots(),
            "the table has stored {} states in {} slots: please report this as a bug",
            self.stored,
            table.local().slots()
        );
        Ok((batch.total, std::array::from_fn(|at| batch.sums[at])))
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
    fn clear(&mut self, _: bool) {
        self.starts.clear();
        (self.next, self.end, self.stored, self.offered) = (0, 0, 0, 0);
    }

    fn put_first(&mut self, table: &mut Table<S>, states: &[u32]) -> Result<Tally> {
        if !states.is_empty() {
            self.stream.memcpy_htod(states, &mut self.offers.slice_mut(..states.len()))?;
        }
        self.offered = states.len() as u64 / self.width();
        Ok(self.put(table, RankNumbers::default())?.0)
    }

    fn begin_level(&mut self) {
        (self.next, self.end) = (self.end, self.stored);
        self.starts.push(self.next);
    }

    fn remaining(&self) -> u64 {
        self.end - self.next
    }

    fn expand(&mut self, table: &Table<S>, level: u64, only_faults: bool) -> Result<Round> {
        self.offered = 0;
        let count = self.end - self.next;
        if count == 0 {
            return Ok(Round::default());
        }
        let table = table.local();
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
        let view = table.kernel_argument()?;
        let config = LaunchConfig { grid_dim: (blocks as u32, 1, 1), ..self.kernel.launch };
        let mut launch = self.stream.launch_builder(&self.kernel.function);
        launch.arg(&view).arg(&self.tables).arg(&self.order).arg(&mut self.offers).arg(&mut self.search).arg(&of_kernel);
        // SAFETY:
        // - the arguments match the parameters of `expand_states` in order and layout (explore.cu);
        // - `tables` belong to the compiled model, and no thread writes them;
        // - `order` has references to stored states in `next .. last` (`put`, `finish_growth`), and no thread writes them
        //   meanwhile;
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
        let words = match self.next..self.stored {
            none if none.is_empty() => allocate(&self.stream, 1)?,
            live => {
                let live = self.order.slice(live.start as usize..live.end as usize);
                self.kernel.states(table.local(), &self.stream, &live)?
            }
        };
        self.moving = words.map(|words| (table.local().slots(), words));
        Ok(self.moving.is_some())
    }

    fn finish_growth(&mut self, table: &Table<S>) -> Result<bool> {
        let Some((slots, words)) = self.moving.take() else { return Ok(true) };
        let table = table.local();
        if table.slots() == slots {
            return Ok(true);
        }
        let count = (self.stored - self.next) as usize;
        self.order = self.stream.null()?; // the new order may need this memory
        let Some(mut order) = order_of(table, &self.stream)? else { return Ok(false) };
        if count > 0 {
            let mut found = self.stream.alloc_zeros::<Offers>(1)?;
            let mut references = order.slice_mut(..count);
            let batch = LocalBatch::new(&words, count).references(&mut references).counts(&mut found);
            table.find_device(&self.stream, batch)?;
            let found = self.stream.clone_dtoh(&found)?[0].hits;
            ensure!(found == count as u64, "the table lost states while it grew: please report this as a bug");
        }
        // The new order lacks the expanded states, and the starts of earlier levels are not valid any more.
        self.order = order;
        (self.end, self.stored) = (self.end - self.next, self.stored - self.next);
        self.next = 0;
        Ok(true)
    }

    fn list_bytes(&self) -> u64 {
        self.order.num_bytes() as u64
    }

    fn look_at(&self, state: &[u32]) -> Option<Violation> {
        self.violation(state)
    }

    fn predecessor(&mut self, table: &Table<S>, level: usize, successor: &[u32], limits: Limits) -> Result<Option<Vec<u32>>> {
        if let Some(stop) = (limits.stop)() {
            return Err(stop.error("while the path was followed back").into());
        }
        let Some(first) = self.starts.get(level).copied() else { return Ok(None) };
        let last = self.starts.get(level + 1).copied().unwrap_or(self.stored);
        let (table, width) = (table.local(), successor.len());
        if self.walk.as_ref().is_none_or(|walk| walk.spec != table.spec()) {
            let text = Sources::new(self.interpreted.interpreter.model(), self.interpreted.checks).walk_of_rank();
            self.walk = Some(Kernel::load(table, &text, "find_predecessor", &self.stream)?);
        }
        let walk = self.walk.as_ref().expect("it has just been compiled");
        let path = self.stream.clone_htod(&[&vec![0; width], successor].concat())?;
        let states = States { first: self.order.device_ptr(&self.stream).0, ..States::default() };
        let mut place = self.stream.clone_htod(&[NONE])?;
        let (starts, level, view) = (self.stream.clone_htod(&[first, last])?, 0u64, table.kernel_argument()?);
        let mut launch = self.stream.launch_builder(&walk.function);
        launch.arg(&view).arg(&self.tables).arg(&states).arg(&starts).arg(&path).arg(&mut place).arg(&level);
        // SAFETY:
        // - the arguments are those of `find_predecessor` in its order, each of the layout that it has in explore.cu;
        // - `tables` are those of the model that was compiled;
        // - `starts` describes a written part of `order`, as level 0 to the kernel;
        // - `path` has two states, `place` is one reference;
        // - the view is valid: the table does not grow meanwhile.
        unsafe { launch.launch(walk.launch) }?;
        let place = self.stream.clone_dtoh(&place)?[0];
        let reference = (place != NONE).then(|| table.reference(place).context("the GPU returned a slot that does not exist"));
        let reference = reference.transpose()?;
        Ok(reference.map(|reference| table.get_many(&[reference])).transpose()?)
    }
}

/// Allocates an order: a reference for each slot of the table, and one element more, so that no part of the order is empty.
fn order_of<S: Storage>(table: &VectorTable<S>, stream: &Arc<CudaStream>) -> Result<Option<CudaSlice<u64>>> {
    allocate(stream, table.slots() + 1)
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
