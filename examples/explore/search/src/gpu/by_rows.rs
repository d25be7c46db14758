//! Searches on a GPU whose states are the rows of an indexed table.
//!
//! Rows are in discovery order. So a level is a range of rows, and no list of references is kept beside the table. Beside each
//! row the kernel writes the row of its state's parent (explore.cu): 4 bytes, or 5 in a table that may have 2^32 rows. The
//! parents tell where each level begins, so a path needs no second exploration.

use super::kernel::allocate;
use super::order::{Order, States};
use super::search_state::{NONE, Offers, SearchState};
use super::unlisted::Unlisted;
use super::{GpuEngine, SearchMemory};
use crate::exploration::Violating;
use crate::growth::{Growth, Lack, grow_by_factors, if_it_fits};
use anyhow::{Context, Result, ensure};
use std::ops::Range;
use warpset::gpu::cudarc_0_19::cudarc::driver::{CudaSlice, DeviceSlice, LaunchConfig, PushKernelArg};
use warpset::{Indexed, Request, Storage, Values, VectorTable, Words};

/// Parent of each row's state: the parent's row + 1; 0 if the row has no state.
pub(super) struct Parents {
    low: Values<Words, u32>,
    /// The upper bits, if the table may have 2^32 rows.
    above: Option<Values<Words, u8>>,
    /// Addresses of both arrays, which never move.
    states: States,
}

impl Parents {
    /// Allocates the parents of a table. `None` if there is no memory for them.
    fn new(table: &VectorTable<Indexed>) -> Result<Option<Self>> {
        let Some(low) = if_it_fits(table.values(0))? else { return Ok(None) };
        let mut parents = Self { low, above: None, states: States::default() };
        Ok(parents.commit_rows(table)?.then_some(parents))
    }

    /// Commits memory for all rows that the table can have now. Returns false if there is no memory for it.
    fn commit_rows(&mut self, table: &VectorTable<Indexed>) -> Result<bool> {
        let low = self.low.device().map(|values| (values.address(), values.len()));
        let Some((first, rows)) = if_it_fits(low)? else { return Ok(false) };
        if rows > u32::MAX as usize && self.above.is_none() {
            self.above = if_it_fits(table.values(0))?;
            if self.above.is_none() {
                return Ok(false);
            }
        }
        let above = self.above.as_mut().map_or(Ok(0), |values| values.device().map(|values| values.address()));
        let Some(second) = if_it_fits(above)? else { return Ok(false) };
        self.states = States { first, second, ..States::default() };
        // The kernel's view of the table needs memory for all rows, too.
        Ok(if_it_fits(table.kernel_argument())?.is_some())
    }

    pub fn bytes(&self) -> u64 {
        self.low.bytes() + self.above.as_ref().map_or(0, Values::bytes)
    }

    /// Number of rows that have been assigned; some of them may be holes.
    fn rows(&self) -> Result<u64> {
        Ok(self.low.len()?)
    }

    /// Addresses of the parents.
    pub fn states(&self) -> States {
        self.states
    }
}

impl<S: Storage> GpuEngine<'_, S> {
    /// Puts the initial state. `SearchMemory::parents` is `None` if there is no memory for parents.
    pub(super) fn begin_by_rows(&self, table: &VectorTable<Indexed>) -> Result<SearchMemory> {
        let start = table.find_or_put_many_with(&self.model().initial_state(), Request::new().references(true))?;
        ensure!(start.tally.new == 1, super::not_empty_or_too_small(table));
        let reference = start.references[0].context("a state that was put has a place")?;
        let mut parents = Parents::new(table)?;
        if let Some(Parents { low, .. }) = &mut parents {
            // The initial state is its own parent, because 0 would mark a hole. The host copies this element, because one element
            // is not worth a kernel.
            ensure!(reference.slot() == 0, "the table is empty but does not begin with row 0: please report this as a bug");
            self.stream.memcpy_htod(&[1u32], &mut low.device()?)?;
        }
        let [first, last] = [reference.slot(), reference.slot() + 1];
        let mut search = SearchState { first, next: first, last, ..SearchState::of_initial_state() };
        let tallies = self.tallies(&Violating::default(), &mut search)?;
        // Without parents no kernel is launched; the state is counted as in a search without memory for an order.
        let unlisted = parents.is_none().then(|| Unlisted::Here(self.model().initial_state()));
        let offers = Offers { hits: 1, new_references: u64::from(parents.is_none()), ..Offers::default() };
        let (search, offers) = (self.stream.clone_htod(&[search])?, self.stream.clone_htod(&[offers])?);
        let order = Order::none(&self.stream)?;
        Ok(SearchMemory { parents, unlisted, ..SearchMemory::new(order, offers, search, tallies) })
    }

    /// Makes the table larger. Its rows and their parents stay where they are. If states found the table full, the level is
    /// repeated: its successors that are stored are rows after the level.
    pub(super) fn grow_by_rows(
        &self,
        progress: &mut SearchMemory,
        search: &SearchState,
        offers: &Offers,
        bytes: u64,
    ) -> Result<Growth> {
        let (Some(table), Some(parents)) = (self.table.indexed(), &mut progress.parents) else { return Ok(Growth::Stuck) };
        // Only the parents grow in proportion to the index.
        if !grow_by_factors(&table, Lack::Slots, super::GROW_BY, table.bytes() + parents.bytes(), bytes)? {
            return Ok(Growth::Refused);
        }
        if !parents.commit_rows(&table)? {
            return Ok(Growth::Stuck);
        }
        let mut search = SearchState { next: search.first, found: NONE, faulty: NONE, ..*search };
        if offers.full != 0 {
            [search.transitions, search.deadlocks, search.overflows] = search.before;
            progress.tallies.repeat(&self.stream)?;
        }
        let offers = Offers { full: 0, full_nodes: 0, ..*offers };
        self.stream.memcpy_htod(&[search], &mut progress.search)?;
        self.stream.memcpy_htod(&[offers], &mut progress.offers)?;
        Ok(Growth::Done)
    }

    /// The ranges of rows of the current level and of the part of the next level found so far.
    pub(super) fn lists_by_rows(&self, parents: &Parents, search: &SearchState) -> Result<[Range<u64>; 2]> {
        Ok([search.first..search.last, search.last..parents.rows()?.max(search.last)])
    }

    /// Lists the references of the states in a range of rows. Returns the list and its length; `None` if there is no memory for
    /// the list.
    pub(super) fn states_of_rows(&self, parents: &Parents, rows: Range<u64>) -> Result<Option<(CudaSlice<u64>, usize)>> {
        let Some(mut references) = allocate::<u64>(&self.stream, (rows.end - rows.start).max(1))? else { return Ok(None) };
        let mut count = self.stream.alloc_zeros::<u64>(1)?;
        let list = self.kernel.module.load_function("list_states")?;
        let (states, Range { start, end }) = (parents.states(), rows);
        let mut launch = self.stream.launch_builder(&list);
        launch.arg(&states).arg(&start).arg(&end).arg(&mut references).arg(&mut count);
        // SAFETY:
        // - the arguments match the parameters of `list_states` in order and layout (explore.cu);
        // - the rows have been assigned, so they have parents, which stay where they are;
        // - `references` has room for all rows of the range.
        unsafe { launch.launch(LaunchConfig { shared_mem_bytes: 0, ..self.kernel.launch }) }?;
        let count = self.read(&count)? as usize;
        Ok(Some((references, count)))
    }

    /// Lists the references of the states in a small range of rows, on the host.
    pub(super) fn states_in(&self, parents: &Parents, rows: Range<u64>) -> Result<Vec<u64>> {
        let (references, count) = self.states_of_rows(parents, rows)?.context("no memory for a list of rows")?;
        self.downloaded(&references, count)
    }

    fn downloaded(&self, references: &CudaSlice<u64>, count: usize) -> Result<Vec<u64>> {
        Ok(if count == 0 { Vec::new() } else { self.stream.clone_dtoh(&references.slice(..count))? })
    }

    /// Reads the words of the states in a range of rows; `None` if there is no memory for the words. Uses no kernel that puts
    /// states, because that would need more memory.
    pub(super) fn words_of_rows(&self, parents: &Parents, rows: Range<u64>) -> Result<Option<Vec<u32>>> {
        let Some((references, count)) = self.states_of_rows(parents, rows)? else { return Ok(None) };
        let rows = self.downloaded(&references, count)?;
        let references: Vec<_> = rows.iter().filter_map(|row| self.table.reference(*row)).collect();
        if_it_fits(self.table.get_many(&references))
    }

    /// The starts of the levels 0 to `levels`, which is at least 1.
    pub(super) fn starts_by_rows(&self, parents: &Parents, levels: u64) -> Result<CudaSlice<u64>> {
        let mut starts = self.stream.alloc_zeros::<u64>(levels as usize + 1)?;
        let find = self.kernel.module.load_function("find_starts")?;
        let (states, rows) = (parents.states(), parents.rows()?);
        let mut launch = self.stream.launch_builder(&find);
        launch.arg(&states).arg(&levels).arg(&rows).arg(&mut starts);
        // SAFETY:
        // - the arguments are those of `find_starts` in its order, each of the layout that it has in explore.cu;
        // - the rows have been assigned, so they have parents, which stay where they are;
        // - `starts` has `levels + 1` elements.
        unsafe { launch.launch(LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 }) }?;
        Ok(starts)
    }
}
