//! Growth of tables: every vector moves into a larger table.

use super::ending::Ending;
use super::growth_limit::{FULL, Growth, LEAST_GROWTH, WORTH_WHILE};
use super::relocation::move_by_relocation;
use super::schedule::nodes_of_next;
use super::table::{FIND_OR_PUT, RawTable, TableState};
use super::upsert::UpsertTarget;
use crate::host::zeroed;
use crate::layout::generation::Generation;
use crate::layout::options::Parameters;
use crate::layout::size::{self, MAX_NODES, Size};
use crate::layout::spec::Spec;
use crate::layout::view::Counts;
use crate::layout::{BatchProgress, HostBatch, Upsert};
use crate::{Error, Outcome, Result, Tally};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Automatic growth keeps tables below this fill: beyond it, probe sequences get long (`benches/bucket.md`).
pub(crate) const GROW_AT_FILL: f64 = 0.85;

/// Vectors that are put at once are expected to fill the nodes up to this fraction.
const FILL_OF_NODES: f64 = 0.925;

/// Fill at which cuckoo tables grow. Their searches stay short up to this fill.
pub(crate) const GROW_CUCKOO_AT_FILL: f64 = 0.97;

/// A table grows by itself only while it has fewer than this number of slots for each vector that it must store; nodes alike.
pub(crate) const GROW_AT_MOST: u64 = 64;

/// Room in a table for vectors that are offered.
#[derive(Clone, Copy)]
pub(super) struct Room {
    /// Number of vectors to put now.
    vectors: usize,
    size: Size,
    /// Numbers of vectors and nodes in the table before these vectors are put.
    pub before: [u64; 2],
    /// Growth that should come first.
    wanted: Option<Growth>,
}

impl Room {
    /// Whether `offered` vectors can be put at once, without a growth.
    pub(super) fn is_enough_for(&self, offered: usize) -> bool {
        self.wanted.is_none() && self.vectors >= offered
    }
}

/// Rejected vectors of a batch, and memory for their results when they are offered again.
pub(super) struct Rejected {
    positions: Vec<u64>,
    words: Vec<u32>,
    outcomes: Vec<u8>,
    /// References, if the batch reports them; otherwise empty.
    references: Vec<u64>,
    new_references: Vec<u64>,
    /// Bytes of the operands, if the batch changes values.
    operands: Vec<u8>,
}

impl Rejected {
    /// Rejected vectors of a batch that has outcomes.
    pub(super) fn of(batch: &HostBatch<'_>, width: usize) -> Result<Self> {
        let rejected =
            || (0u64..).zip(&*batch.outcomes).filter(|(_, outcome)| **outcome == Outcome::Full as u8).map(|(at, _)| at);
        let count = rejected().count();
        let (mut positions, mut words) = (zeroed(count)?, zeroed(count * width)?);
        for ((position, row), at) in positions.iter_mut().zip(words.chunks_exact_mut(width)).zip(rejected()) {
            *position = at;
            row.copy_from_slice(&batch.vectors[at as usize * width..][..width]);
        }
        let if_wanted = |all: &[u64]| if all.is_empty() { Ok(Vec::new()) } else { zeroed(count) };
        let (references, new_references) = (if_wanted(batch.references)?, if_wanted(batch.new_references)?);
        let operands = batch.upsert.map_or_else(Vec::new, |upsert| upsert.at(&positions));
        Ok(Self { positions, words, outcomes: zeroed(count)?, references, new_references, operands })
    }
}

impl RawTable {
    /// Returns the room that a growing table has for `offered` vectors before it reaches the fill at which it grows. Assumes that
    /// all of them are new. How many nodes they need is known only when they are put. So a node table that is nearly full grows,
    /// too. As long as the node table can double, the room is also limited by its free nodes: each vector is assumed to need as
    /// many as the last vectors did.
    pub(super) fn room_for(&self, sized: &TableState, offered: usize) -> Result<Room> {
        // Duplicates need no slots, so the room may be much smaller than the batch, which is then put in parts. But a part has a
        // minimum size, to avoid many parts.
        let (grow_at_fill, least_part) = if self.options.is_cuckoo() { (GROW_CUCKOO_AT_FILL, 64) } else { (GROW_AT_FILL, 16) };
        let (size, before) = (self.size_of(sized), self.stored_of(sized)?);
        let [stored, nodes] = before;
        let may_double = size.nodes > 0 && size.nodes <= MAX_NODES / 2;
        let free = ((size.slots as f64 * grow_at_fill) as u64).saturating_sub(stored);
        if may_double && nodes as f64 > size.nodes as f64 * GROW_AT_FILL {
            return Ok(Room { vectors: offered, size, before, wanted: Some(Growth::of_nodes(size)) });
        }
        if free < (offered as u64).min(size.slots / least_part).max(1) {
            return Ok(Room { vectors: offered, size, before, wanted: Some(Growth::of_slots(size)) });
        }
        let with_nodes = if may_double { self.vectors_with_nodes(size, before) } else { u64::MAX };
        Ok(Room { vectors: (offered as u64).min(free).min(with_nodes) as usize, size, before, wanted: None })
    }

    /// Grows until `room` wants no growth, as far as the memory permits. Returns the number of vectors to put now, and the room
    /// for them if it is known.
    pub(super) fn grow_for(&self, offered: usize, mut room: Option<Room>, ending: &mut Ending) -> (usize, Option<Room>) {
        while let Some(Room { size, wanted: Some(growth), .. }) = room {
            // Relaxed: no other data depends on this number. A thread that reads an old value tries to grow once more, in vain.
            if self.cannot_grow_at.load(Ordering::Relaxed) == size.slots {
                break;
            }
            let grown = self.grow_within(FIND_OR_PUT, self.memory(), growth.at_least(WORTH_WHILE));
            // If the table has not grown, vectors take the slots that are left. Only a vector that finds none is worth an error.
            match ending.keep(grown) {
                Some(true) => room = ending.keep(self.ready(FIND_OR_PUT).and_then(|sized| self.room_for(&sized, offered))),
                // Note this, so that later batches do not try again.
                Some(false) => {
                    self.cannot_grow_at.store(size.slots, Ordering::Relaxed);
                    break;
                }
                None => break,
            }
        }
        (room.map_or(offered, |room| room.vectors), room)
    }

    /// Number of vectors that can be put so that some nodes stay free, if each needs as many nodes as the last vectors did. If
    /// there are no earlier counts, each needs the most nodes that a vector can have.
    ///
    /// A vector that finds no node has searched a thousand buckets or more. When batches of 2^16 vectors of 8 words were put into
    /// a tree table with 2^13 nodes, these searches took a quarter of the time until 64 MiB were full.
    fn vectors_with_nodes(&self, size: Size, now: [u64; 2]) -> u64 {
        let most = self.width().saturating_sub(2) as f64;
        let of_next = nodes_of_next(&self.earlier_counts(), now).unwrap_or(most).min(most);
        let free = (size.nodes as f64 * FILL_OF_NODES - now[1] as f64).max(0.0);
        // At least `slots / 32` vectors, because equal vectors need no more nodes and there should be few parts. Otherwise at
        // most `now[0]` vectors, because forecasts need counts of nodes at numbers of vectors that differ by a factor of two or
        // less. When the numbers differed by a factor of four, the forecast for vectors whose parts run out (`RunningOut` in
        // schedule.rs) was 1.8 times the nodes that they needed.
        ((free / of_next) as u64).min(now[0]).max(size.slots / 32).max(1)
    }

    /// Offers the rejected vectors of a batch again, after relocating keys or growing. `tally` is the sum of the outcomes so far.
    /// `before`: numbers of vectors and nodes before the batch.
    #[cold]
    pub(super) fn retry_rejected(
        &self,
        mut batch: HostBatch<'_>,
        mut tally: Tally,
        before: Option<[u64; 2]>,
        beside: Option<&dyn UpsertTarget>,
        ending: &mut Ending,
    ) -> Result<Tally> {
        // If the batch was stopped, there are no outcomes after those that `tally` counts.
        batch.outcomes = &mut batch.outcomes[..tally.offered() as usize];
        if self.options.is_cuckoo() {
            tally = self.relocate_and_retry(&mut batch, tally, ending)?;
        }
        if self.options.grows {
            tally = self.grow_and_retry(&mut batch, tally, before, beside, ending)?;
        }
        Ok(tally)
    }

    /// Grows, and offers rejected vectors again, until none is rejected, or until growing would not help: if a table with
    /// [`GROW_AT_MOST`] times the needed slots rejects a vector, then slots are not what it lacks. (Such vectors are chosen
    /// against the table's seed, or node references have run out.)
    fn grow_and_retry(
        &self,
        batch: &mut HostBatch<'_>,
        mut tally: Tally,
        before: Option<[u64; 2]>,
        beside: Option<&dyn UpsertTarget>,
        ending: &mut Ending,
    ) -> Result<Tally> {
        while tally.full > 0 {
            let size = self.size();
            let for_slots = tally.full - tally.full_nodes;
            let Some([stored, nodes]) = ending.keep(self.stored(FIND_OR_PUT)) else { break };
            let needed = Size { slots: stored + for_slots, nodes: nodes + tally.full_nodes * self.width() as u64 };
            let lacks_slots = for_slots > 0 && size.slots < GROW_AT_MOST * needed.slots;
            let lacks_nodes = tally.full_nodes > 0 && size.nodes < GROW_AT_MOST * needed.nodes && size.nodes < MAX_NODES;
            let Some(growth) = Growth::of(size, lacks_slots, lacks_nodes) else { break };
            let growth = growth.at_least(LEAST_GROWTH).after(before);
            let ready = self.grow_or_say_why(FIND_OR_PUT, self.memory(), growth);
            let ready = ready.and_then(|()| Rejected::of(batch, self.width()));
            let Some(rejected) = ending.keep(ready) else { break };
            tally = self.retry(rejected, batch, tally, beside)?;
        }
        Ok(tally)
    }

    /// Offers rejected vectors of a batch once more, and writes their results into the batch. `tally` is the sum of the batch's
    /// outcomes.
    ///
    /// Writes the references of these vectors, too, because not all references of the batch are looked up again: some growth
    /// leaves the references of the other vectors valid.
    pub(super) fn retry(
        &self,
        rejected: Rejected,
        batch: &mut HostBatch<'_>,
        tally: Tally,
        beside: Option<&dyn UpsertTarget>,
    ) -> Result<Tally> {
        let Rejected { positions, words, mut outcomes, mut references, mut new_references, operands } = rejected;
        let mut again = HostBatch {
            outcomes: &mut outcomes,
            references: &mut references,
            new_references: &mut new_references,
            upsert: batch.upsert.map(|upsert| Upsert { operands: &operands, ..upsert }),
            ..HostBatch::new(batch.search, &words)
        };
        let found = {
            let sized = self.ready(FIND_OR_PUT)?;
            beside.map_or(Ok(()), |array| array.make_all(&sized))?;
            sized.store.search_batch(sized.generation.tag(), &mut again, &mut BatchProgress::none())?.tally()
        };
        fn write<T: Copy>(positions: &[u64], all: &mut [T], again: &[T]) {
            positions.iter().zip(again).for_each(|(at, again)| all[*at as usize] = *again);
        }
        write(&positions, batch.outcomes, &outcomes);
        write(&positions, batch.references, &references);
        if !new_references.is_empty() {
            let new = found.new as usize;
            batch.new_references[tally.new as usize..][..new].copy_from_slice(&new_references[..new]);
        }
        Ok(Tally { new: tally.new + found.new, seen: tally.seen + found.seen, ..found })
    }

    pub(crate) fn reserve(&self, call: &'static str, capacity: u64) -> Result<()> {
        // Repeats, because another thread may grow the table first, to fewer slots than requested.
        loop {
            let size = self.size();
            if size.slots >= capacity {
                return Ok(());
            }
            // Nodes grow in proportion, up to the limit of references to them.
            let nodes = (size.nodes as f64 * (capacity as f64 / size.slots as f64)) as u64;
            self.grow_from(call, size, Size { slots: capacity, nodes: nodes.min(MAX_NODES) })?;
        }
    }

    /// Grows only the node table, to at least `nodes` slots. Adds slots for vectors only if the roots no longer fit in the vector
    /// slots. Does nothing if the table has no nodes or already has enough node slots.
    pub(crate) fn reserve_nodes(&self, nodes: u64) -> Result<()> {
        loop {
            let size = self.size();
            if size.nodes == 0 || size.nodes >= nodes {
                return Ok(());
            }
            self.grow_by_itself("reserve_nodes", size, Size { nodes, ..size })?;
        }
    }

    /// Removes the rows of an indexed table from number `rows` on.
    pub(crate) fn truncate(&self, rows: u64) -> Result<()> {
        let mut sized = self.sized_exclusively("truncate")?;
        sized.store.synchronize()?;
        if sized.store.row_counts()?.given <= rows {
            return Ok(());
        }
        let size = self.size_of(&sized);
        let parameters = Parameters::new(&self.options, &self.seeds, sized.spec, sized.buckets, size)?;
        self.reindex(&mut sized, &parameters, rows)?;
        self.arrays.keep(rows);
        Ok(())
    }

    pub(crate) fn size(&self) -> Size {
        self.size_of(&self.look())
    }

    /// Grows as [`grow_from`](Self::grow_from), or to more than `to` if a table of that size rejects vectors that are already
    /// stored. That can happen if only the nodes grow: the slots get another layout, in which the roots of a full table may not
    /// fit the same number of slots.
    pub(crate) fn grow_by_itself(&self, call: &'static str, from: Size, to: Size) -> Result<()> {
        self.grow_by_itself_within(call, from, to, &|_| Some(u64::MAX))
    }

    /// As [`grow_by_itself`](Self::grow_by_itself), but grows to more than `to` only if the larger size fits the memory. `spare`:
    /// bytes that are left beside a table of some size, or `None` if the table does not fit.
    pub(super) fn grow_by_itself_within(
        &self,
        call: &'static str,
        mut from: Size,
        mut to: Size,
        spare: &dyn Fn(Size) -> Option<u64>,
    ) -> Result<()> {
        loop {
            match self.grow_from_beside(call, from, to, spare(to).unwrap_or(0)) {
                Err(Error::TableFull { rejected, for_nodes, offered, stored, slots, cause }) if slots < GROW_AT_MOST * stored => {
                    let twice = |now: u64, helps: bool| if helps { 2 * now } else { now };
                    let nodes = twice(to.nodes, for_nodes > 0).min(MAX_NODES);
                    to = Size { slots: twice(to.slots, rejected > for_nodes || nodes == to.nodes), nodes };
                    if spare(to).is_none() {
                        return Err(Error::TableFull { rejected, for_nodes, offered, stored, slots, cause });
                    }
                    // A growth in place has enlarged the table, and then found no slot for some vectors.
                    if !self.look().unplaced.is_empty() {
                        from = self.size();
                    }
                }
                grown => return grown,
            }
        }
    }

    /// Grows a table from one size to another. Does nothing if another thread has grown it meanwhile.
    pub(crate) fn grow_from(&self, call: &'static str, from: Size, to: Size) -> Result<()> {
        self.grow_from_beside(call, from, to, u64::MAX)
    }

    /// As [`grow_from`](Self::grow_from). `spare`: bytes that stay free if the growth goes as forecast. They may be used if that
    /// is faster. In this order: only the index; only the roots of trees; in place; into a second table, slice by slice, else
    /// by find-or-put.
    fn grow_from_beside(&self, call: &'static str, from: Size, to: Size, spare: u64) -> Result<()> {
        let (spec, buckets) = self.fitting(to)?;
        let parameters = Parameters::new(&self.options, &self.seeds, spec, buckets, to)?;
        let mut sized = self.sized_exclusively(call)?;
        let now = self.size_of(&sized);
        if now != from {
            return Ok(());
        }
        if spec.is_indexed() {
            return self.reindex(&mut sized, &parameters, u64::MAX);
        }
        if spec.is_tree() && parameters.node_buckets == sized.node_buckets {
            return self.move_roots(&mut sized, &parameters, spare);
        }
        // More slots may be what they lack.
        if let Err(error) = sized.complete()
            && !matches!(error, Error::TableFull { .. })
        {
            return Err(error);
        }
        if self.grow_in_place(&mut sized, &parameters, now.slots)? {
            return sized.complete();
        }
        // More vectors than usual would be left, so the table needs a second one after all. The forecast was a growth in place,
        // which adds only the difference of the sizes. A second table takes as many bytes more as the present one has.
        if sized.store.bytes_beside(&parameters, now.slots).is_some() && spare < self.bytes_of(&sized) {
            let geometry = self.geometry.of_spec(spec);
            let (taken, needed) = (self.bytes_of(&sized), spec.bytes(&geometry, buckets));
            return Err(Error::MemoryLimit { taken, needed, limit: needed.saturating_add(spare) });
        }
        let mut larger = self.second_table(&sized, &parameters, spare)?;
        // Remembers the counts of the new table, which has no nodes of rejected vectors: these nodes were not moved.
        if larger.spec.is_tree() {
            self.remember(larger.stored()?);
        }
        larger.unplaced = std::mem::take(&mut sized.unplaced);
        *sized = larger;
        sized.complete()
    }

    /// Enlarges a table where it is. Returns false if the machine cannot do this, or if some vectors might find no slot; then
    /// nothing has changed. Afterwards some vectors may be in no slot yet.
    fn grow_in_place(&self, sized: &mut TableState, parameters: &Parameters<'_>, slots: u64) -> Result<bool> {
        let larger = parameters.spec.slots(&self.geometry.of_spec(parameters.spec), parameters.buckets);
        if sized.store.stored()?[0] as f64 > FULL * larger as f64 {
            return Ok(false);
        }
        let TableState { store, buckets, generation, unplaced, .. } = sized;
        // References name slots, so they are stale from then on.
        let grown = store.grow_in_place(parameters, slots, unplaced, &mut || {
            (*buckets, *generation) = (parameters.buckets, Generation::next());
        });
        sized.is_growing = sized.store.is_growing();
        grown
    }

    /// Makes a table of another size that has the vectors of `from`, by the growth of its machine or by find-or-put. `spare`: as
    /// for [`grow_from_beside`](Self::grow_from_beside).
    ///
    /// # Errors
    ///
    /// [`Error::TableFull`] if some vectors find no slot or no node there.
    pub(super) fn second_table(&self, from: &TableState, parameters: &Parameters<'_>, spare: u64) -> Result<TableState> {
        let slots = self.slots_of(from);
        let Some((store, counts)) = from.store.grown(parameters, slots, spare)? else {
            let larger = TableState::new(&self.device, parameters)?;
            self.move_all(from, &larger, slots, &|slots| from.store.rehash_into(&*larger.store, slots))?;
            return Ok(larger);
        };
        let larger = TableState::of(store, parameters);
        if counts.full > 0 {
            return Err(no_slots(from, &larger, self.slots_of(&larger), counts.full_nodes)?);
        }
        Ok(larger)
    }

    /// Puts vectors of `from`, which has `slots` slots, into the empty table `to`. `rehash` puts the vectors of a range of slots.
    ///
    /// Returns an error with the numbers if some vectors find no slot in the new table. This happens if a table was nearly full
    /// and its slots grow by little or not at all. In a cuckoo table, keys are relocated before that.
    pub(crate) fn move_all(
        &self,
        from: &TableState,
        to: &TableState,
        slots: u64,
        rehash: &dyn Fn(Range<u64>) -> Result<Counts>,
    ) -> Result<()> {
        let rehashed = rehash(0..slots)?;
        if rehashed.full == 0 || (self.options.is_cuckoo() && move_by_relocation(to, slots, rehash)?) {
            return Ok(());
        }
        Err(no_slots(from, to, self.slots_of(to), rehashed.full_nodes)?)
    }

    /// Spec of a table of this size, and its number of buckets. With more nodes, roots have more bits. If the roots do not fit
    /// the slots that the caller has chosen, the number of slots is increased, so that a bucket implies more bits of a root.
    pub(crate) fn fitting(&self, to: Size) -> Result<(Spec, u64)> {
        let chunk_bytes = self.device.chunk_bytes(self.options.claimed_words());
        let spec = self.options.spec(chunk_bytes, to)?;
        match size::buckets(&self.geometry, spec, to.slots) {
            Err(Error::KeysDoNotFit { needed, .. }) if spec.is_tree() && needed > to.slots => {
                let spec = self.options.spec(chunk_bytes, Size { slots: needed, ..to })?;
                Ok((spec, size::buckets(&self.geometry, spec, needed)?))
            }
            buckets => Ok((spec, buckets?)),
        }
    }
}

/// Returns the error with the number of vectors of `from` that found no slot in `to`, which has `slots` slots.
pub(super) fn no_slots(from: &TableState, to: &TableState, slots: u64, for_nodes: u64) -> Result<Error> {
    let ([offered, _], [stored, _]) = (from.store.stored()?, to.store.stored()?);
    Ok(Error::TableFull { rejected: offered.saturating_sub(stored), for_nodes, offered, stored, slots, cause: None })
}

#[cfg(all(test, feature = "cpu"))]
mod tests {
    //! Keeps these promises of `src/docs/memory_and_growth.md`:
    //!
    //! - On a CPU nodes grow by a factor of four, with the slots or alone, as far as the forecast needs them and memory permits.
    //! - Forecasts get counts that are near enough to each other; nodes grow less if their roots would need far more slots.

    use super::*;
    use crate::{CompactTreeTable, Device, MemoryLimit, RootTable, TreeTable};

    /// If a table grows to fewer slots than it has keys, it stays as it was, and the error has the numbers.
    #[test]
    fn cuckoo_tables_whose_keys_find_no_slots_stay_as_they_were() {
        for (threads, capacity) in [(1, 1000), (4, 1 << 15)] {
            let builder = RootTable::builder().key_bits(64).slot_bits(64).capacity(capacity).cuckoo(true);
            let table = builder.seed(3).build(&Device::cpu_with_threads(threads)).unwrap();
            let from = table.raw.size();
            let keys: Vec<u64> = (0..from.slots * 9 / 10).map(|key| (key + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let batch = table.find_or_put_many(&keys).unwrap();
            let stored: Vec<u64> = batch.positions(Outcome::New).map(|at| keys[at]).collect();
            let before = table.locate_many(&stored).unwrap();
            let error = table.raw.grow_from("grow", from, Size { slots: stored.len() as u64 / 4, ..from }).unwrap_err();
            let Error::TableFull { rejected, for_nodes: 0, offered, stored: rest, slots, cause: None } = error else {
                panic!("{error:?}")
            };
            assert!(offered == stored.len() as u64 && rejected + rest == offered && rest <= slots, "{error}");
            // Nearly all slots of the new table were filled before the growth failed.
            assert!(rest * 10 > slots * 7, "{error}");
            assert_eq!((table.raw.size(), table.len().unwrap()), (from, offered));
            assert!(table.locate_many(&stored).unwrap() == before, "references are good, and every key is there");
        }
    }

    /// Vectors of 8 random words: each has 6 nodes.
    fn random_vectors(count: u32) -> Vec<u32> {
        (0..8 * count).map(|word| (word + 1).wrapping_mul(0x9e37_79b1).rotate_left(word % 31)).collect()
    }

    /// One batch is put in parts, so that nodes grow before they run out. Each part adds a count from which forecasts see how
    /// many nodes vectors need.
    #[test]
    fn batches_are_put_in_parts_that_find_nodes() {
        let table = CompactTreeTable::builder(8).capacity(1 << 15).nodes(1 << 10).seed(3).grows(true);
        let table = table.build(&Device::cpu_with_threads(1)).unwrap();
        let batch = table.find_or_put_many(&random_vectors(10_000)).unwrap();
        assert_eq!((batch.tally.new, batch.tally.full), (10_000, 0));
        let counts = table.raw.earlier_counts();
        assert!(counts.len() >= 5, "{counts:?}");
        // Some nodes were free before each growth, so no vector was rejected. The nodes of a rejected vector would be counted
        // here, too.
        assert!(counts.iter().all(|[vectors, nodes]| *nodes == 6 * vectors), "{counts:?}");
        // Forecasts need counts at numbers of vectors that are near enough to each other, also if slots and nodes grow by four.
        let of_parts = counts.windows(2).filter(|pair| pair[0][0] >= (1 << 15) / 32);
        assert!(of_parts.clone().count() > 2, "{counts:?}");
        assert!(of_parts.clone().all(|pair| pair[1][0] as f64 <= 2.2 * pair[0][0] as f64), "{counts:?}");
    }

    /// With more nodes, roots have more bits. In slots of 32 bits, four times the nodes would need sixteen times the slots.
    #[test]
    fn nodes_grow_less_if_roots_would_need_far_more_slots() {
        let table = CompactTreeTable::builder(256).slot_bits(32).capacity(1 << 12).nodes(1 << 18).seed(3).grows(true);
        let table = table.build(&Device::cpu_with_threads(2)).unwrap();
        let vectors: Vec<u32> = (0..256 * 14_000u32).map(|word| (word + 1).wrapping_mul(0x9e37_79b1)).collect();
        let sizes = sizes_while(&table, &vectors);
        assert!(sizes.len() > 3 && sizes.windows(2).all(|pair| pair[1].slots < 9 * pair[0].slots), "{sizes:?}");
    }

    /// Puts vectors ten at a time. Returns the sizes of the table, before the first growth and after each one.
    fn sizes_while<S: crate::Storage>(table: &crate::VectorTable<S>, vectors: &[u32]) -> Vec<Size> {
        let mut sizes = vec![table.raw.size()];
        for part in vectors.chunks(10 * table.width()) {
            table.find_or_put_many(part).unwrap().complete(table).unwrap();
            if table.raw.size() != *sizes.last().unwrap() {
                sizes.push(table.raw.size());
            }
        }
        sizes
    }

    fn factors(sizes: &[Size], of: impl Fn(&Size) -> u64) -> Vec<f64> {
        sizes.windows(2).map(|pair| (of(&pair[1]) as f64 / of(&pair[0]) as f64 * 10.0).round() / 10.0).collect()
    }

    /// If nodes run out long before slots, they grow by a factor of four as long as the slots may need that many.
    #[test]
    fn few_nodes_grow_by_a_factor_of_four() {
        let table = TreeTable::builder(8).capacity(1 << 15).nodes(1 << 10).seed(3).grows(true);
        let table = table.build(&Device::cpu_with_threads(1)).unwrap();
        let sizes = sizes_while(&table, &random_vectors(5000));
        assert_eq!(factors(&sizes, |size| size.nodes), [4.0, 4.0, 4.0], "{sizes:?}");
        assert_eq!(factors(&sizes, |size| size.slots), [1.0, 1.0, 1.0], "{sizes:?}");
    }

    /// Vectors of 8 words have few nodes if there are only 2^6 left halves and 2^3 right ones.
    #[test]
    fn nodes_do_not_grow_with_slots_that_need_no_more() {
        let table = TreeTable::builder(8).capacity(400).nodes(1 << 10).seed(3).grows(true);
        let table = table.build(&Device::cpu_with_threads(1)).unwrap();
        let half = |number: u32| [number, number * 3, number ^ 5, number + 9];
        let vectors: Vec<u32> = (0..512).flat_map(|number| [half(number / 8), half(number % 8)]).flatten().collect();
        let sizes = sizes_while(&table, &vectors);
        assert_eq!(factors(&sizes, |size| size.slots), [4.0], "{sizes:?}");
        assert_eq!(factors(&sizes, |size| size.nodes), [1.0], "{sizes:?}");
    }

    /// Nodes that were enough for the slots are not enough for four times the slots, so both grow at once. If nodes are full and
    /// slots are half full, both grow, too.
    #[test]
    fn slots_and_nodes_grow_together() {
        let grown = |slots: u64, nodes: u64, count: u32| {
            let table = TreeTable::builder(8).capacity(slots).nodes(nodes).seed(3).grows(true);
            let table = table.build(&Device::cpu_with_threads(1)).unwrap();
            let sizes = sizes_while(&table, &random_vectors(count));
            (factors(&sizes, |size| size.slots), factors(&sizes, |size| size.nodes))
        };
        // 850 vectors with 5,100 nodes.
        assert_eq!(grown(1000, 7000, 1000), (vec![4.0], vec![3.4]));
        // 570 vectors with 3,420 nodes: slots for 4 * 570 / 0.85 vectors.
        assert_eq!(grown(1000, 4000, 700), (vec![2.7], vec![4.0]));
    }

    /// As memory gets less, first four times as many nodes leave too little for the last table, and then even twice as many do.
    /// Only then does a table take all the rest.
    #[test]
    fn nodes_double_if_four_times_as_many_leave_too_little_memory() {
        let factor = |limit: u64| {
            let table = TreeTable::builder(8).capacity(1 << 15).nodes(1 << 11).seed(3).grows(true);
            let table = table.memory(MemoryLimit::Shared(limit)).build(&Device::cpu_with_threads(1)).unwrap();
            let before = (table.node_slots(), table.slots());
            table.find_or_put_many(&random_vectors(400)).unwrap().complete(&table).unwrap();
            if table.slots() == before.1 { (table.node_slots() as f64 / before.0 as f64).round() } else { 0.0 }
        };
        let mut factors: Vec<f64> = (16..400).rev().map(|limit| factor(limit << 15)).collect();
        factors.dedup();
        assert_eq!(factors, [4.0, 2.0, 0.0]);
    }

    /// The caller grows this table, and asks for its length between batches.
    #[test]
    fn lengths_are_remembered_for_forecasts_unless_vectors_may_have_been_rejected() {
        let table = CompactTreeTable::builder(8).capacity(1 << 12).nodes(1 << 14).seed(3).build(&Device::cpu()).unwrap();
        for part in random_vectors(3000).chunks(8 * 100) {
            let _ = table.find_or_put_many(part).unwrap();
            table.len().unwrap();
        }
        let (counts, [vectors, nodes]) = (table.raw.earlier_counts(), table.raw.stored("len").unwrap());
        assert!(vectors < 3000 && nodes as f64 > 0.94 * table.node_slots() as f64, "{vectors}, {nodes}");
        let [last, of_nodes] = *counts.last().unwrap();
        assert!(counts.len() > 10 && last > 2000 && of_nodes == 6 * last, "{counts:?}");
    }

    /// All slots and all nodes are taken, and the table grows by nodes alone. Roots then have more bits, so they need other
    /// slots.
    #[test]
    fn full_tables_grow_although_their_slots_are_too_few() {
        let mut rejected = 0;
        for seed in 0..400 {
            let table = CompactTreeTable::builder(5).capacity(256).nodes(794).seed(seed).build(&Device::cpu()).unwrap();
            let raw = &table.raw;
            let vectors: Vec<u32> = (0..5 * 400).map(|word: u32| word.wrapping_mul(0x9e37_79b1)).collect();
            let _ = table.find_or_put_many(&vectors).unwrap();
            let from = raw.size();
            let to = Size { nodes: 2 * from.nodes, ..from };
            match raw.grow_from("grow", from, to) {
                Ok(()) => continue,
                Err(Error::TableFull { for_nodes: 0, .. }) => rejected += 1,
                Err(other) => panic!("{other}"),
            }
            let stored = table.len().unwrap();
            raw.grow_by_itself("grow", from, to).unwrap();
            assert_eq!(raw.size().slots, 2 * from.slots, "seed {seed}");
            assert!(raw.size().nodes >= to.nodes, "seed {seed}");
            assert_eq!(table.len().unwrap(), stored, "seed {seed}");
        }
        assert!(rejected > 0, "a layout that rejects roots");
    }
}
