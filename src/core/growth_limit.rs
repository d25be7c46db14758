//! Growth within a limit of memory: how many bytes tables of other sizes take, and which size a table gets next.

#[cfg(feature = "cluster")]
pub(crate) mod ranks;

use super::growth::{GROW_AT_FILL, GROW_AT_MOST};
use super::schedule::{Bytes, LAST_SHARE, NEARLY_FULL, Schedule, Taste, forecast_nodes, nodes_of_stored};
use super::table::RawTable;
use crate::layout::Kind;
use crate::layout::memory::MemoryLimit;
use crate::layout::options::Parameters;
use crate::layout::size::{self, MAX_NODES, Size, node_bytes};
use crate::layout::spec::Spec;
use crate::{Error, Result};
use std::num::NonZeroU64;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// Fill up to which every vector finds a slot.
pub(super) const FULL: f64 = 0.95;

/// Bytes of nodes beyond the forecast, as a share of the bytes of the slots. Too many nodes waste some memory. Too few waste
/// more: with a tenth of the nodes that are needed, nine tenths of the slots stay empty.
///
/// Share of the possible states that were stored, in the searches of [`forecast_nodes`] with slots of 8 bytes, geometric mean and
/// least: with 1.05 times the forecast instead 0.89, 0.30; with a twentieth 0.93, 0.68; with a tenth 0.91, 0.67.
const SPARE_NODES: f64 = 1.0 / 20.0;

/// Smallest factor of a growth that happens before slots run out. A smaller growth is not worth moving all vectors, because
/// further vectors still find slots without it.
pub(super) const WORTH_WHILE: f64 = 1.25;

/// Smallest factor of a growth for vectors that found no slot.
pub(super) const LEAST_GROWTH: f64 = 1.0 + 1.0 / 32.0;

/// A growth that is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Growth {
    from: Size,
    doubled: Size,
    lacks_slots: bool,
    lacks_nodes: bool,
    /// Smallest factor by which the part that is full must grow.
    least: f64,
    /// If the table grows because vectors of a batch were rejected: numbers of vectors and nodes before that batch.
    before: Option<[u64; 2]>,
}

impl Growth {
    /// Growth of a table that lacks slots, nodes or both. `None` if it lacks neither.
    pub(super) fn of(from: Size, lacks_slots: bool, lacks_nodes: bool) -> Option<Self> {
        let twice = |now: u64, lacks: bool| if lacks { now.saturating_mul(2) } else { now };
        let doubled = Size { slots: twice(from.slots, lacks_slots), nodes: twice(from.nodes, lacks_nodes).min(MAX_NODES) };
        (lacks_slots || lacks_nodes).then_some(Self {
            from,
            doubled,
            lacks_slots,
            lacks_nodes,
            least: LEAST_GROWTH,
            before: None,
        })
    }

    pub(super) fn of_slots(from: Size) -> Self {
        Self::of(from, true, false).expect("it lacks slots")
    }

    pub(super) fn of_nodes(from: Size) -> Self {
        Self::of(from, false, true).expect("it lacks nodes")
    }

    /// Returns this growth with another smallest factor.
    pub(super) fn at_least(self, least: f64) -> Self {
        Self { least, ..self }
    }

    /// Returns this growth, for vectors that were rejected. `before`: numbers of vectors and nodes before they were offered.
    pub(super) fn after(self, before: Option<[u64; 2]>) -> Self {
        Self { before, ..self }
    }

    /// Whether a table of size `to` has enough more than the present one of what it lacks: slots, nodes or both.
    fn helps(&self, to: Size) -> bool {
        let is_more = |lacks: bool, now: u64, to: u64| !lacks || (to > now && to as f64 >= self.least * now as f64);
        is_more(self.lacks_slots, self.from.slots, to.slots) && is_more(self.lacks_nodes, self.from.nodes, to.nodes)
    }

    /// Size halfway between the present one and `to`.
    fn halfway(&self, to: Size) -> Size {
        let middle = |now: u64, to: u64| ((u128::from(now) + u128::from(to)) / 2) as u64;
        Size { slots: middle(self.from.slots, to.slots), nodes: middle(self.from.nodes, to.nodes) }
    }

    /// Smallest size that helps.
    fn smallest(&self) -> Size {
        let more = |lacks: bool, now: u64| if lacks { ((now as f64 * self.least) as u64).max(now + 1) } else { now };
        Size { slots: more(self.lacks_slots, self.from.slots), nodes: more(self.lacks_nodes, self.from.nodes).min(MAX_NODES) }
    }
}

/// Memory of a table that is to grow.
struct Budget {
    /// Bytes that the table may take while it grows.
    limit: u64,
    taste: Taste,
    /// Bytes that the table takes now.
    held: u64,
    /// Whether the limit is the device's, not the user's.
    is_of_device: bool,
}

impl RawTable {
    /// Memory that the table may take as it grows by itself.
    pub(crate) fn memory(&self) -> MemoryLimit {
        *self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_memory(&self, limit: MemoryLimit) {
        *self.memory.lock().unwrap_or_else(PoisonError::into_inner) = limit;
        // With another limit the table may be able to grow again. Relaxed: no other data depends on this number. A thread that
        // reads an old value first fills the slots that are left.
        self.cannot_grow_at.store(0, Ordering::Relaxed);
    }

    fn budget(&self, limit: MemoryLimit) -> Result<Budget> {
        let held = self.bytes();
        self.look().store.free_scratch();
        Ok(match limit {
            MemoryLimit::Reserved(limit) => Budget { limit, taste: Taste::Early, held, is_of_device: false },
            MemoryLimit::Shared(limit) => {
                let free = held.saturating_add(self.device.free_memory()? / 8 * 7);
                Budget { limit: limit.min(free), taste: Taste::Late, held, is_of_device: free < limit }
            }
        })
    }

    /// Bytes of a table of size `to` with the options of this one, and of the growth from size `from`. `None` if there is no such
    /// table.
    fn bytes_for(&self, from: Size, to: Size) -> Option<Bytes> {
        let (spec, buckets) = self.fitting(to).ok()?;
        let node_buckets = if spec.is_tree() { size::node_buckets(to.nodes).ok()? } else { 0 };
        let geometry = self.geometry.of_spec(spec);
        let filter_bytes = self.options.filter_bytes(spec.slots(&geometry, buckets));
        let of_slots = spec.bytes(&geometry, buckets).checked_add(node_bytes(node_buckets))?.checked_add(filter_bytes)?;
        let (slots, row) = (spec.slots(&geometry, buckets), if spec.is_indexed() { spec.row_bytes(1) } else { 0 });
        // Slots of trees that grow alone leave the nodes where they are (roots.rs).
        let keeps_nodes = spec.is_tree() && size::node_buckets(from.nodes).is_ok_and(|now| now == node_buckets);
        let (moved, kept) = if keeps_nodes { (spec.of_roots(), node_bytes(node_buckets)) } else { (spec, 0) };
        let list = match (spec.is_indexed(), self.device.is_gpu()) {
            // A GPU that makes an index lists the rows, with 8 bytes for each.
            (true, true) => slots.checked_mul(8)?,
            // A CPU needs at most a bit for each slot of the smaller table.
            (false, false) => from.slots.div_ceil(8),
            // A GPU lists the slots whose vectors are left, and then has these (backend/cuda/growth.rs).
            (false, true) if moved.kind == Kind::Bucket => {
                size::most_left(from.slots).checked_mul(8 + moved.width() as u64 * 4)?
            }
            _ => 0,
        };
        let in_place = self.bytes_in_place(from, spec, buckets);
        Some(Bytes {
            new: match in_place {
                Some(new) => new,
                None => (of_slots - kept).checked_add(list)?,
            },
            in_place: in_place.is_some(),
            until_next: of_slots + (slots as f64 * GROW_AT_FILL) as u64 * row,
            full: of_slots.checked_add(slots.checked_mul(row)?)?,
        })
    }

    /// Bytes that a growth in place allocates. `None` if the table does not grow so.
    fn bytes_in_place(&self, from: Size, spec: Spec, buckets: u64) -> Option<u64> {
        let parameters = Parameters { options: &self.options, seeds: &self.seeds, spec, buckets, node_buckets: 0 };
        let geometry = self.geometry.of_spec(spec);
        let beside = self.look().store.bytes_beside(&parameters, from.slots)?;
        let now = spec.bytes(&geometry, from.slots / u64::from(geometry.slots_per_bucket));
        Some(spec.bytes(&geometry, buckets).saturating_sub(now) + beside)
    }

    /// Sizes to which a table with `stored` vectors grows, if the [schedule](Schedule::next) permits: first the size after growth
    /// by four, then two sizes after growth by two.
    ///
    /// On a CPU these sizes have the nodes that are forecast for their slots, at most four times as many as now. When nodes grow,
    /// roots change, and are put into slots again. So slots that are more than a fifth full grow with the nodes. On a GPU nodes
    /// only double, and only when they are needed: a GPU finds nodes of a small node table faster, because they stay in its
    /// cache.
    fn steps(&self, schedule: &Schedule<'_>, growth: &Growth, stored: u64) -> (Size, [Size; 2]) {
        let Growth { from, doubled, lacks_slots, lacks_nodes, .. } = *growth;
        // Vectors can be chosen so that no table has slots for them, because their hashes are equal. Even with such vectors no
        // table gets more than 128 times the slots that it needs.
        let most = stored.saturating_mul(GROW_AT_MOST).max(doubled.slots);
        let slots_by = |factor: u64| match lacks_slots {
            true => from.slots.saturating_mul(factor).min(most),
            false if self.device.is_gpu() => from.slots,
            false => from.slots.max((stored.saturating_mul(factor) as f64 / GROW_AT_FILL) as u64),
        };
        let by = |factor: u64| {
            let slots = slots_by(factor);
            if self.device.is_gpu() {
                return Size { slots, ..doubled };
            }
            let forecast = NonZeroU64::new(slots).map_or(0, |slots| (schedule.of_slots)(slots).nodes);
            let least = if lacks_nodes { doubled.nodes } else { from.nodes };
            let nodes = forecast.clamp(least, from.nodes.saturating_mul(4).max(least)).min(MAX_NODES);
            Size { slots, nodes }
        };
        // More nodes may need wider roots, and wider roots far more slots (`fitting`). Then the table only doubles.
        let of_that_size = |to: Size| {
            let slots = |(spec, buckets): (Spec, u64)| spec.slots(&self.geometry.of_spec(spec), buckets);
            if self.fitting(to).is_ok_and(|fitting| slots(fitting) <= 2 * to.slots) { to } else { doubled }
        };
        (of_that_size(by(4)), [of_that_size(by(2)), doubled])
    }

    /// Calls `with` with the schedule of this table's growth from size `from`. `before`: as in [`Growth`].
    fn with_schedule<T>(
        &self,
        budget: &Budget,
        from: Size,
        before: Option<[u64; 2]>,
        with: impl FnOnce(&Schedule<'_>) -> T,
    ) -> Result<T> {
        let (mut now, earlier) = (self.look().stored()?, self.earlier_counts());
        let has_nodes = self.size().nodes > 0;
        // A vector of n words needs at most n - 2 nodes, because the root of its tree is in its slot.
        let most_nodes = (self.width() as u64).saturating_sub(2);
        // Excludes the nodes of rejected vectors: they belong to no stored vector yet.
        now[1] = nodes_of_stored(before, now, most_nodes);
        if before.is_some() && now[0] == 0 {
            // Nodes have run out before any vector had all of its nodes, so assume the most nodes for each vector. When one node
            // for each vector was assumed, trees of 8 words used only 0.57 of 300,000 bytes on an H100, whose threads put the
            // nodes of a whole batch at a time.
            now = [1, most_nodes];
        }
        // Size of a slot of such a table, in nodes of 8 bytes.
        let nodes_of_slot = |size: Size| {
            let bits = self.fitting(size).ok().and_then(|(spec, _)| spec.key_and_slot_bits());
            bits.map_or(1.0, |(_, slot_bits)| f64::from(slot_bits) / 64.0)
        };
        let of_slots = |slots: NonZeroU64| {
            let slots = slots.get();
            if !has_nodes {
                return Size { slots, nodes: 0 };
            }
            let vectors = slots as f64 * FULL;
            let with = |spare: f64| {
                let needed = (forecast_nodes(&earlier, now, vectors) + spare).min(vectors * most_nodes as f64) / FULL;
                // The nodes that exist already must not make the new table grow at once.
                let nodes = needed.max(now[1] as f64 / GROW_AT_FILL).max(1.0).min(MAX_NODES as f64) as u64;
                Size { slots, nodes }
            };
            with(SPARE_NODES * vectors * nodes_of_slot(with(0.0)))
        };
        let bytes = |to: Size| self.bytes_for(from, to);
        let &Budget { limit, taste, held, .. } = budget;
        Ok(with(&Schedule { limit, taste, held, bytes: &bytes, of_slots: &of_slots }))
    }

    /// Grows to the next size of the schedule, or to a smaller one if the device has less memory than it seemed to have. Returns
    /// false if the limit permits no size that helps.
    ///
    /// # Errors
    ///
    /// If the device has no memory for any size that helps, or the vectors do not fit the larger table. The table is as it was.
    pub(super) fn grow_within(&self, call: &'static str, limit: MemoryLimit, growth: Growth) -> Result<bool> {
        let (budget, [stored, _]) = (self.budget(limit)?, self.look().stored()?);
        self.with_schedule(&budget, growth.from, growth.before, |schedule| {
            let (by_four, by_two) = self.steps(schedule, &growth, stored);
            let Some(mut to) = schedule.next(by_four, &by_two, |to| growth.helps(to)) else { return Ok(false) };
            loop {
                match self.grow_by_itself_within(call, growth.from, to, &|to| schedule.spare(to)) {
                    Err(error @ Error::OutOfMemory { .. }) => {
                        to = growth.halfway(to);
                        if !growth.helps(to) {
                            return Err(error);
                        }
                    }
                    grown => return grown.map(|()| true),
                }
            }
        })?
    }

    /// As [`grow_within`](Self::grow_within), but returns an error that has the numbers instead of false.
    pub(super) fn grow_or_say_why(&self, call: &'static str, limit: MemoryLimit, growth: Growth) -> Result<()> {
        if self.grow_within(call, limit, growth)? {
            return Ok(());
        }
        let Budget { limit, held: taken, is_of_device, .. } = self.budget(limit)?;
        let needed = self.bytes_for(growth.from, growth.smallest()).map_or(u64::MAX, |bytes| bytes.new);
        if is_of_device {
            let (device, free) = (self.device.to_string(), Some(self.device.free_memory()?));
            return Err(Error::OutOfMemory { device, asked: needed, free, reason: String::new() });
        }
        Err(Error::MemoryLimit { taken, needed, limit })
    }

    /// Grows a table to the next size of the schedule: more slots or more nodes, whichever are fuller. Returns whether it has
    /// grown.
    pub(crate) fn grow_next(&self, limit: MemoryLimit) -> Result<bool> {
        const CALL: &str = "grow_within";
        let (size, [stored, nodes]) = (self.size(), self.stored(CALL)?);
        let fill = |taken: u64, of: u64| taken as f64 / of.max(1) as f64;
        let (of_slots, of_nodes) = (fill(stored, size.slots), fill(nodes, size.nodes));
        let growth = if of_nodes > of_slots && size.nodes < MAX_NODES { Growth::of_nodes(size) } else { Growth::of_slots(size) };
        let is_nearly_full = of_slots.max(of_nodes) > NEARLY_FULL;
        self.grow_within(CALL, limit, growth.at_least(if is_nearly_full { LEAST_GROWTH } else { WORTH_WHILE }))
    }

    /// Number of vectors that the table holds when it has grown as far as the limit permits.
    pub(crate) fn vectors_within(&self, limit: MemoryLimit) -> Result<u64> {
        let mut budget = self.budget(limit)?;
        let mut size = self.size();
        // Follows the schedule until the last step, in which the table takes the rest of the memory.
        for _ in 0..u64::BITS {
            let next = |schedule: &Schedule<'_>| {
                // The schedule derives the number of nodes of a larger table from its slots.
                let times = |factor: u64| NonZeroU64::new(size.slots.saturating_mul(factor)).map(schedule.of_slots);
                let next = schedule.next(times(4)?, &[times(2)?], |to| Growth::of_slots(size).helps(to))?;
                Some((next, self.bytes_for(size, next)?))
            };
            let Some((next, bytes)) = self.with_schedule(&budget, size, None, next)? else { break };
            (size, budget.held) = (next, bytes.until_next);
        }
        Ok((size.slots as f64 * FULL) as u64)
    }

    /// Smallest [`MemoryLimit::Reserved`] within which a table that begins small can hold `vectors` vectors. `None` if no table
    /// can hold them.
    pub(crate) fn memory_for(&self, vectors: u64) -> Result<Option<u64>> {
        let limit = u64::MAX;
        let budget = Budget { limit, taste: Taste::Early, held: 0, is_of_device: false };
        let slots = NonZeroU64::new((vectors as f64 / FULL).ceil() as u64).unwrap_or(NonZeroU64::MIN);
        // The table before the last growth.
        let before = Size { slots: slots.get() / 2, nodes: 0 };
        let size = self.with_schedule(&budget, before, None, |schedule| (schedule.of_slots)(slots))?;
        Ok(self.bytes_for(before, size).map(|bytes| match () {
            // Rows of an index do not move.
            () if self.spec().is_indexed() => bytes.new.max(bytes.full),
            () if bytes.in_place => (bytes.full as f64 / LAST_SHARE) as u64,
            // While the last table is made, the table before it takes up to a sixteenth of the memory.
            () => ((bytes.new as f64 / LAST_SHARE) as u64).max(bytes.full),
        }))
    }
}
