//! Sizes by which a table grows, so that in the end it fills the memory that it may take.
//!
//! A table that grows in place (`Bytes::in_place`) doubles as long as that fits, and then takes the rest.
//!
//! Other tables need the old and the new table at once. (Compact tables do not grow in place: when one is 0.9 full, 7 to 11 % of
//! its keys are stored by other functions than the first, far from the bucket where the larger table has them. A list of these
//! keys takes more than the sixteenth of the memory that this schedule loses.) If they doubled for as long as they can, they
//! would end with a third to two thirds of the memory: if a table takes more than a third, one of twice the size does not fit
//! beside it. So their last growth starts from a table that is small compared with the limit, and takes all the rest: from a
//! sixteenth of the limit to fifteen sixteenths.
//!
//! Price of the schedule: if the limit is much more than the table needs in the end, the last growth clears more memory than is
//! used. So the last growth comes early ([`Taste::Early`]) only if the limit is memory of the table's own.
//!
//! *By four, not by two, while the table is small.* A table that doubles moves each vector one to two times until the end, and a
//! table that grows by four 0.3 to 1.3 times. On average over all numbers of vectors, both make equally many slots for each
//! vector in all their tables together. In the end a table that doubles is 0.43 to 0.85 full, and one that grows by four 0.21 to
//! 0.85. So a table grows by four if it takes at most a sixteenth of the limit afterwards, and otherwise by two. Searches on a
//! CPU that begin with 2^20 slots took 1.07 to 1.39 times as long as with the right capacity when tables doubled, and 0.92 to
//! 1.17 times as long when they grew by four (`benches/growth.md`).

use crate::layout::size::Size;
use std::num::NonZeroU64;

/// Bytes that a table of some size takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bytes {
    /// Bytes that growth to this size allocates; if it is in place, those that are added to the table, and its buffers.
    pub new: u64,
    /// Bytes that a table of this size takes when it grows next, and holds during that growth.
    pub until_next: u64,
    /// Bytes of the table when it is full.
    pub full: u64,
    /// Whether the table grows in place, so that a growth takes no memory from later ones.
    pub in_place: bool,
}

/// Rule by which the table chooses between doubling and taking all the rest of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taste {
    /// Doubling must leave fifteen sixteenths of the limit for the last table.
    Early,
    /// Doubling must leave two thirds of the limit for the last table, so that the table can double at least once more.
    Late,
}

/// Fill above which a table is nearly full: growth by little is better than none then.
pub(super) const NEARLY_FULL: f64 = 0.94;

/// Smallest share of a reserved limit that the last table takes, if the first table is small.
pub(super) const LAST_SHARE: f64 = 15.0 / 16.0;

impl Taste {
    /// After doubling, at least this fraction of the largest possible table must still fit beside the doubled one.
    fn least_share(self) -> f64 {
        match self {
            Self::Early => LAST_SHARE,
            Self::Late => 2.0 / 3.0,
        }
    }
}

/// Smallest factor from one size to the next smaller one that is tried in the search for the largest size.
const LEAST_STEP: f64 = 7.0 / 8.0;

/// A table that is to grow, and its memory.
pub(super) struct Schedule<'a> {
    /// Bytes that the table may take while it grows; without growth in place, the old and the new table together.
    pub limit: u64,
    pub taste: Taste,
    /// Bytes that the table has now, and keeps until it has grown.
    pub held: u64,
    /// Bytes of a table of some size. `None` if no table has this size.
    pub bytes: &'a dyn Fn(Size) -> Option<Bytes>,
    /// Size of a table with the given number of slots, with the number of nodes that it should have.
    pub of_slots: &'a dyn Fn(NonZeroU64) -> Size,
}

impl Schedule<'_> {
    /// Size to grow to: the first of the sizes below that leaves enough of the memory for the last table. If none does, the size
    /// that takes all the rest of the memory, or `None` if that size does not help (`helps`).
    ///
    /// - `by_four`, if it leaves fifteen sixteenths of the limit, even if the taste is [`Late`](Taste::Late);
    /// - each size of `by_two`, if it leaves the share that the taste requires.
    pub(super) fn next(&self, by_four: Size, by_two: &[Size], helps: impl Fn(Size) -> bool) -> Option<Size> {
        if self.leaves_enough(by_four, Taste::Early) {
            return Some(by_four);
        }
        let by_two = by_two.iter().find(|to| self.fits_in_place(**to) || self.leaves_enough(**to, self.taste));
        by_two.copied().or_else(|| self.largest(self.held).filter(|rest| helps(*rest)))
    }

    /// Whether the table may grow to this size in place.
    fn fits_in_place(&self, to: Size) -> bool {
        (self.bytes)(to).is_some_and(|bytes| bytes.in_place && self.fits_beside(self.held, bytes))
    }

    /// Whether a table may grow to this size beside the present one.
    #[cfg(feature = "cluster")]
    pub(super) fn fits(&self, to: Size) -> bool {
        self.spare(to).is_some()
    }

    /// Whether the schedule permits doubling the table.
    #[cfg(feature = "cluster")]
    pub(super) fn doubles(&self, doubled: Size) -> bool {
        self.fits_in_place(doubled) || self.leaves_enough(doubled, self.taste)
    }

    /// Whether growth to this size leaves enough of the memory for the last table.
    fn leaves_enough(&self, to: Size, taste: Taste) -> bool {
        let Some(bytes) = (self.bytes)(to).filter(|bytes| self.fits_beside(self.held, *bytes)) else { return false };
        // Far from the limit, no search for the largest table is needed.
        if bytes.until_next <= self.limit / 64 {
            return true;
        }
        // Rows of an indexed table stay where they are, so doubling never takes memory from them. But each growth enters all rows
        // into a new index: doubling up to the limit took 1.4 to 1.9 times the time of an index that is large enough.
        if taste == Taste::Early && bytes.full > self.limit / 16 {
            return false;
        }
        let slots = |held| self.largest(held).map_or(0, |size| size.slots) as f64;
        let (after, best) = (slots(bytes.until_next), slots(0));
        // `best` is 0 if no table fits the limit. If the limit exceeds the largest table, `after` equals `best`.
        best == 0.0 || after >= taste.least_share() * best
    }

    /// Bytes that are left beside the present table and a table of size `to`. `None` if the table may not grow to this size.
    pub(super) fn spare(&self, to: Size) -> Option<u64> {
        let bytes = (self.bytes)(to).filter(|bytes| self.fits_beside(self.held, *bytes))?;
        self.limit.checked_sub(self.held)?.checked_sub(bytes.new)
    }

    fn fits_beside(&self, held: u64, bytes: Bytes) -> bool {
        held.saturating_add(bytes.new) <= self.limit && bytes.full <= self.limit
    }

    /// Largest size, within 1/1,000, of a table that can be made while `held` bytes are taken.
    pub(super) fn largest(&self, held: u64) -> Option<Size> {
        // Starts from above, because a table of more slots may have smaller slots. A slot has at least two bytes.
        let mut slots = NonZeroU64::new((self.limit / 2).min(crate::layout::limits::MAX_CAPACITY))?;
        loop {
            let size = (self.of_slots)(slots);
            let next = match (self.bytes)(size) {
                Some(bytes) if self.fits_beside(held, bytes) => return Some(size),
                // Bytes are nearly proportional to the number of slots as long as slots have the same number of bits. With more
                // nodes, roots may need slots of twice as many bits, so a large step could pass over the best size: one step from
                // a compact tree table of 127 million slots of 8 bytes led to one of 17 million slots, but 23 million slots of 4
                // bytes would have fitted.
                Some(Bytes { new, full, .. }) => {
                    let share = |may: u64, bytes: u64| may as f64 / bytes.max(1) as f64;
                    let share = share(self.limit, held.saturating_add(new)).min(share(self.limit, full));
                    (slots.get() as f64 * share.max(LEAST_STEP)) as u64
                }
                None => (slots.get() as f64 * LEAST_STEP) as u64,
            };
            slots = NonZeroU64::new(next.min(slots.get() - slots.get().div_ceil(2048)))?;
        }
    }
}

/// Upper bound of the number of nodes that belong to stored vectors. `before`: if vectors were rejected, the numbers of vectors
/// and nodes before these vectors were offered. `most`: largest number of nodes of a vector.
///
/// Threads of a GPU put the nodes of many vectors at a time. When nodes run out, all of these vectors are rejected, and each has
/// put some nodes already. A forecast that counts these as nodes of stored vectors makes too many nodes: trees of 8 words then
/// used 0.64 to 0.69 of 1 MiB on an H100.
pub(super) fn nodes_of_stored(before: Option<[u64; 2]>, [vectors, nodes]: [u64; 2], most: u64) -> u64 {
    let [vectors_before, nodes_before] = before.unwrap_or([0, nodes]);
    nodes.min(nodes_before.saturating_add(vectors.saturating_sub(vectors_before).saturating_mul(most)))
}

/// Smallest factor between two numbers of vectors whose nodes are compared. Two doublings, or one growth by four, give a little
/// less than 4. Counts that are nearer to each other say more about the current part of a search than about its states. For
/// example, at.6 had 269,674 nodes at 589,396 states and 412,491 at 900,024: in proportion. But between 225,837 and 900,024
/// states, nodes grew an eighth less than in proportion.
const FAR: f64 = 3.9;

/// Adds the numbers of vectors and nodes to the earlier ones, unless the last counts are near. Removes earlier counts of more
/// vectors, because the table has been cleared since.
pub(super) fn remember(earlier: &mut Vec<[u64; 2]>, now: [u64; 2]) {
    while earlier.pop_if(|last| last[0] > now[0]).is_some() {}
    if earlier.last().is_none_or(|last| now[0] as f64 >= 1.1 * last[0] as f64) {
        earlier.push(now);
    }
}

/// Forecasts the number of nodes of each further vector: the mean over the vectors that were put since an `earlier` count, which
/// are at least the last eighth of all. `None` if there are no vectors.
pub(super) fn nodes_of_next(earlier: &[[u64; 2]], now: [u64; 2]) -> Option<f64> {
    let before = earlier.iter().rev().find(|earlier| earlier[0] < now[0] - now[0] / 8).unwrap_or(&[0, 0]);
    let since = |which: usize| now[which].saturating_sub(before[which]) as f64;
    (now[0] > 0).then(|| since(1) / since(0))
}

/// Forecasts the number of nodes of a table with `vectors` vectors. `now` and `earlier`: its counts of (vectors, nodes).
///
/// Vectors share subtrees, and the more vectors there are, the fewer new subtrees each brings. In searches nodes grow as a power
/// of vectors (for words of texts this is known as Heaps' law). Its exponent, at most 1, is the one between now and the last
/// count that is [`FAR`], or the first count if none is far. Without an earlier count, nodes grow in proportion to vectors. If
/// parts are drawn from D possible ones, they run out: N vectors have D (1 - exp(-N / D)) nodes. [`RunningOut`] is used if it
/// fits the counts far better.
///
/// Tried with the counts of 22 searches of BEEM models, for limits of 16 times the table from which the forecast is made. Share
/// of the states that were stored, if 1 are those that would fit if the nodes were known, geometric mean and least, with slots of
/// 8 and of 4 bytes:
///
/// - this power, with spare nodes (`SPARE_NODES` of growth_limit.rs): 0.93, 0.68; 0.91, 0.54;
/// - a constant and a power of N, through three counts, with as many spare nodes: 0.93, 0.69; 0.90, 0.53;
/// - a power whose exponent goes on falling as between three counts, times 1.05: 0.80, 0.11; 0.80, 0.11. It forecasts that nodes
///   run out when their growth only slows for a while. With spare nodes instead, and at least 0.8 of the new nodes that the first
///   power forecasts: 0.94, 0.74; 0.90, 0.52.
pub(super) fn forecast_nodes(earlier: &[[u64; 2]], now: [u64; 2], vectors: f64) -> f64 {
    let now = now.map(|count| (count as f64).max(1.0));
    let known = earlier.iter().rev().filter(|of| of[0] >= 64 && of[1] > 0).map(|of| of.map(|count| count as f64));
    let before = |than: [f64; 2], factor: f64| known.clone().find(|of| than[0] >= factor * of[0]);
    let far = before(now, FAR);
    let from = far.or_else(|| known.clone().next_back().filter(|of| now[0] >= 1.5 * of[0]));
    let exponent = |from: [f64; 2]| (now[1] / from[1]).ln() / (now[0] / from[0]).ln();
    let exponent = from.map_or(1.0, exponent).clamp(0.0, 1.0);
    let by_power = |vectors: f64| now[1] * (vectors / now[0]).powf(exponent);
    let running_out = far.and_then(|last| {
        let first = before(last, FAR)?;
        let running_out = RunningOut::through(first, last, now)?;
        let counts = || known.clone().filter(|of| (first[0]..now[0]).contains(&of[0]));
        let misfit = |forecast: &dyn Fn(f64) -> f64| {
            let misfits = counts().map(|[vectors, nodes]| (forecast(vectors) / nodes - 1.0).abs());
            misfits.fold(0.0, f64::max)
        };
        let of_running_out = misfit(&|vectors| running_out.nodes(vectors));
        // Needs four counts, because two of them are on the curve by its construction.
        let fits = counts().count() >= 4 && of_running_out < MOST_MISFIT && FAR_BETTER * of_running_out < misfit(&by_power);
        fits.then_some(running_out)
    });
    running_out.map_or_else(|| by_power(vectors), |running_out| running_out.nodes(vectors))
}

/// [`RunningOut`] is used only if its relative difference from every known count is less than this. In searches, whose nodes
/// do not run out, the largest difference is 0.01 to 0.07.
const MOST_MISFIT: f64 = 0.002;

/// Factor by which [`RunningOut`] must be nearer to the counts than a power to be used.
const FAR_BETTER: f64 = 4.0;

/// Law for nodes of two kinds: some had all occurred before the first count, and others run out. N vectors have c + s D (1 -
/// exp(-N / D)) nodes.
///
/// Example: vectors of eight words with a random left half, and a right half that has 2^8 possible values. Then 4,400 nodes soon
/// have all occurred, and 2^24 possible nodes run out.
#[derive(Clone, Copy, Debug)]
struct RunningOut {
    now: [f64; 2],
    /// Nodes for each vector while all of them are new.
    scale: f64,
    possible: f64,
}

impl RunningOut {
    /// The law through these counts. `None` if the number of new nodes for each vector does not fall.
    fn through(first: [f64; 2], last: [f64; 2], now: [f64; 2]) -> Option<Self> {
        let new = |possible: f64, from: f64, to: f64| {
            let left = |vectors: f64| (-vectors / possible).exp();
            -left(from) * ((from - to) / possible).exp_m1() * possible
        };
        let ratio = |possible: f64| new(possible, last[0], now[0]) / new(possible, first[0], last[0]);
        let counted = (now[1] - last[1]) / (last[1] - first[1]);
        let (mut low, mut high) = (now[0] / 30.0, now[0] * 1e5);
        // The more nodes are possible, the larger is the ratio. Counts without a new node have no ratio.
        if !(ratio(low)..ratio(high)).contains(&counted) {
            return None;
        }
        for _ in 0..60 {
            let possible = (low * high).sqrt();
            if ratio(possible) < counted { low = possible } else { high = possible }
        }
        Some(Self { now, scale: (now[1] - last[1]) / new(low, last[0], now[0]), possible: low })
    }

    fn nodes(&self, vectors: f64) -> f64 {
        let Self { now, scale, possible } = *self;
        now[1] - scale * possible * (-now[0] / possible).exp() * ((now[0] - vectors) / possible).exp_m1()
    }
}

#[cfg(test)]
mod tests {
    //! Keeps this promise of `src/docs/memory_and_growth.md`:
    //!
    //! - A table grows by a factor of four while it is small compared with its memory, then by two.

    use super::*;
    use proptest::prelude::*;

    /// Returns the bytes of a table whose slots, nodes and rows have these numbers of bytes.
    fn bytes_of(slot: u64, node: u64, row: u64) -> impl Fn(Size) -> Option<Bytes> {
        move |size| {
            let new = size.slots.checked_mul(slot)?.checked_add(size.nodes.checked_mul(node)?)?;
            let full = new.checked_add(size.slots.checked_mul(row)?)?;
            Some(Bytes { new, until_next: new + size.slots * row / 100 * 85, full, in_place: false })
        }
    }

    /// Grows a table from `slots` slots on until it cannot grow. Returns its last size and the most bytes that it had at once.
    fn grow(limit: u64, taste: Taste, slots: u64, [slot, node, row]: [u64; 3], ratio: u64) -> (Size, u64) {
        let of_slots = |slots: NonZeroU64| Size { slots: slots.get(), nodes: slots.get() / ratio };
        let mut size = of_slots(NonZeroU64::new(slots).unwrap());
        let mut peak = 0;
        for _ in 0..64 {
            let bytes = bytes_of(slot, node, row);
            let held = bytes(size).unwrap().until_next;
            let schedule = Schedule { limit, taste, held, bytes: &bytes, of_slots: &of_slots };
            let least = size.slots + size.slots / 32;
            let [by_four, by_two] = [4, 2].map(|factor| of_slots(NonZeroU64::new(factor * size.slots).unwrap()));
            let Some(next) = schedule.next(by_four, &[by_two], |to| to.slots > least) else { return (size, peak) };
            assert!(next.slots > size.slots && schedule.fits(next));
            peak = peak.max(held + bytes(next).unwrap().new);
            size = next;
        }
        panic!("the table grows for ever");
    }

    proptest! {
        /// The last table takes 15/16 of the limit but for rounding, and never more than the limit.
        #[test]
        fn reserved_memory_is_filled(
            limit in 1_000_000u64..1 << 41, first in 1u64..100, slot in 2u64..300, node in 0u64..9, ratio in 1u64..10,
        ) {
            let bytes = [slot, node, 0];
            let (size, peak) = grow(limit, Taste::Early, (limit / 16 / (slot + node) * first / 100).max(1), bytes, ratio);
            let taken = size.slots * slot + size.nodes * node;
            prop_assert!(peak <= limit && taken as f64 >= 0.935 * limit as f64, "{taken} of {limit}, {peak}");
        }

        #[test]
        fn shared_memory_is_filled_by_two_thirds(limit in 1_000_000u64..1 << 41, first in 1u64..100, slot in 2u64..300) {
            let (size, peak) = grow(limit, Taste::Late, (limit / 6 / slot * first / 100).max(1), [slot, 0, 0], 1);
            let taken = size.slots * slot;
            prop_assert!(peak <= limit && taken as f64 >= 0.665 * limit as f64, "{taken} of {limit}, {peak}");
        }

        /// Growth by four ends before the table takes more than a sixteenth of the limit, and doubling before less than the share
        /// of the taste is left.
        #[test]
        fn tables_grow_by_four_while_they_are_small(limit in 1_000_000u64..1 << 41, first in 1u64..2000, slot in 2u64..300) {
            let bytes = bytes_of(slot, 0, 0);
            let of_slots = |slots: NonZeroU64| Size { slots: slots.get(), nodes: 0 };
            for (taste, doubles_until) in [(Taste::Early, 1.0 / 16.0), (Taste::Late, 1.0 / 3.0)] {
                let mut slots = first;
                loop {
                    let held = slots * slot;
                    let schedule = Schedule { limit, taste, held, bytes: &bytes, of_slots: &of_slots };
                    let [by_four, by_two] = [4, 2].map(|factor| of_slots(NonZeroU64::new(factor * slots).unwrap()));
                    let Some(next) = schedule.next(by_four, &[by_two], |to| to.slots > slots + slots / 32) else { break };
                    let share = |factor: u64| (factor * held) as f64 / limit as f64;
                    // The largest table is known within 1/1,000.
                    if share(4) < 0.06 {
                        prop_assert_eq!(next.slots, 4 * slots);
                    } else if share(4) > 0.065 && share(2) < 0.96 * doubles_until {
                        prop_assert_eq!(next.slots, 2 * slots);
                    } else if share(2) > 1.04 * doubles_until {
                        prop_assert!(((next.slots * slot) as f64) > 0.99 * (limit - held) as f64 - 2.0 * slot as f64);
                    }
                    slots = next.slots;
                }
            }
        }

        /// Rows stay where they are, so only the index exists twice during growth, and nearly all memory can be used.
        #[test]
        fn rows_of_an_index_leave_nothing(limit in 1_000_000u64..1 << 41, first in 1u64..100, row in 8u64..300) {
            let slots = (limit / 20 / (8 + row) * first / 100).max(1);
            let (size, peak) = grow(limit, Taste::Early, slots, [8, 0, row], 1);
            let taken = size.slots * (8 + row);
            prop_assert!(peak <= limit && taken as f64 >= 0.9 * limit as f64, "{taken} of {limit}, {peak}");
        }

        /// All growths together enter few rows into a new index, compared with the rows in the end.
        #[test]
        fn an_index_takes_the_rest_early(limit in 1_000_000u64..1 << 41, first in 1u64..100, row in 8u64..300) {
            let bytes = bytes_of(4, 0, row);
            let of_slots = |slots: NonZeroU64| Size { slots: slots.get(), nodes: 0 };
            let mut slots = (limit / 1000 / (4 + row) * first / 100).max(1);
            let mut named = 0;
            loop {
                let held = bytes(of_slots(NonZeroU64::new(slots).unwrap())).unwrap().until_next;
                let schedule = Schedule { limit, taste: Taste::Early, held, bytes: &bytes, of_slots: &of_slots };
                let [by_four, by_two] = [4, 2].map(|factor| of_slots(NonZeroU64::new(factor * slots).unwrap()));
                let Some(next) = schedule.next(by_four, &[by_two], |to| to.slots > slots + slots / 32) else { break };
                named += slots / 100 * 85;
                slots = next.slots;
            }
            prop_assert!(named as f64 <= 0.15 * slots as f64, "{named} of {slots}");
        }

        /// A table that begins too large for the schedule still takes what is left.
        #[test]
        fn a_table_of_any_size_takes_the_rest(limit in 1_000_000u64..1 << 41, first in 1u64..490) {
            let slots = limit / 8 * first / 1000;
            for taste in [Taste::Early, Taste::Late] {
                let (size, peak) = grow(limit, taste, slots, [8, 0, 0], 1);
                prop_assert!(peak <= limit && size.slots as f64 >= 0.99 * (limit / 8 - slots) as f64 * 2.0 / 3.0);
            }
        }
    }

    /// A compact tree's slots have 4 bytes up to 30 million slots here, and 8 bytes in larger tables, whose roots have more bits.
    #[test]
    fn slots_of_fewer_bytes_are_found_below_those_of_more() {
        let bytes = |size: Size| bytes_of(if size.slots > 30_000_000 { 8 } else { 4 }, 8, 0)(size);
        let of_slots = |slots: NonZeroU64| Size { slots: slots.get(), nodes: slots.get() / 10 * 9 };
        let schedule = Schedule { limit: 1 << 28, taste: Taste::Early, held: 12_600_000, bytes: &bytes, of_slots: &of_slots };
        let [by_four, by_two] = [8_000_000, 4_000_000].map(|slots| of_slots(NonZeroU64::new(slots).unwrap()));
        let rest = schedule.next(by_four, &[by_two], |_| true).unwrap();
        assert!(bytes(rest).unwrap().new as f64 >= 0.99 * ((1 << 28) - 12_600_000) as f64, "{rest:?}");
    }

    #[test]
    fn nothing_fits_nothing() {
        let (bytes, of_slots) = (bytes_of(8, 0, 0), |slots: NonZeroU64| Size { slots: slots.get(), nodes: 0 });
        for (limit, held) in [(0, 0), (7, 0), (800, 800), (800, 900)] {
            let schedule = Schedule { limit, taste: Taste::Early, held, bytes: &bytes, of_slots: &of_slots };
            let [by_four, by_two] = [400, 200].map(|slots| Size { slots, nodes: 0 });
            assert_eq!(schedule.next(by_four, &[by_two], |to| to.slots > 100), None, "{limit} {held}");
        }
        let never = |_: Size| None;
        let schedule = Schedule { limit: 1 << 40, taste: Taste::Late, held: 0, bytes: &never, of_slots: &of_slots };
        assert_eq!(schedule.next(Size { slots: 400, nodes: 0 }, &[Size { slots: 200, nodes: 0 }], |_| true), None);
    }

    #[test]
    fn nodes_of_rejected_vectors_do_not_count() {
        // 100 vectors with 600 nodes; then 10 more were stored, and others have left 540 nodes.
        assert_eq!(nodes_of_stored(Some([100, 600]), [110, 1200], 6), 660);
        // Vectors that share nodes have fewer.
        assert_eq!(nodes_of_stored(Some([100, 600]), [110, 620], 6), 620);
        assert_eq!(nodes_of_stored(Some([0, 0]), [0, 70], 6), 0);
        assert_eq!(nodes_of_stored(None, [110, 1200], 6), 1200);
        assert_eq!(nodes_of_stored(Some([100, 600]), [90, 600], 0), 600);
    }

    #[test]
    fn nodes_follow_a_power_of_vectors() {
        let forecast = |earlier: &[[u64; 2]], now, vectors: f64| forecast_nodes(earlier, now, vectors).round();
        assert_eq!(forecast(&[], [1000, 300], 4000.0), 1200.0);
        assert_eq!(forecast(&[[1000, 100]], [4000, 200], 16_000.0), 400.0);
        // Two counts that are too near to each other say nothing; and nodes never grow faster than vectors.
        assert_eq!(forecast(&[[1000, 100]], [1100, 200], 2200.0), 400.0);
        assert_eq!(forecast(&[[1000, 100]], [2000, 400], 4000.0), 800.0);
        assert_eq!(forecast(&[[1000, 400]], [2000, 400], 4000.0), 400.0);
        // The last count that is far enough is used, and the first one if none is.
        assert_eq!(forecast(&[[100, 100], [1000, 100], [3900, 199]], [4000, 200], 16_000.0), 400.0);
        assert_eq!(forecast(&[[2000, 200], [2500, 399]], [4000, 400], 16_000.0), 1600.0);
        // Counts without vectors or nodes say nothing.
        assert_eq!(forecast(&[[0, 0], [100, 0]], [1000, 300], 4000.0), 1200.0);
    }

    /// Parts of random vectors, drawn from 2^20 to 2^24 possible ones, run out. (A forecast by a power of vectors was 1.8 times
    /// the nodes for 2^24 possible parts, and 4.6 times for 2^20.)
    #[test]
    fn nodes_that_run_out_are_forecast() {
        for possible in [20, 22, 24].map(|log2| f64::from(1 << log2)) {
            let nodes = |vectors: u64| (possible * -(-(vectors as f64) / possible).exp_m1()).round();
            let counts: Vec<[u64; 2]> = (0..9).map(|log2| 55_000 << log2).map(|of| [of, nodes(of) as u64]).collect();
            let last = 880_000 * 16;
            let forecast = forecast_nodes(&counts[..4], counts[4], last as f64);
            let share = forecast / nodes(last);
            assert!((0.97..1.03).contains(&share), "{share:.2} of the nodes of {possible} possible ones");
        }
    }

    /// As in the test above, with 4,096 and 256 more parts that have all occurred early.
    #[test]
    fn nodes_that_run_out_beside_others_are_forecast() {
        let of = |possible: f64, vectors: f64| possible * -(-vectors / possible).exp_m1();
        let nodes = |vectors: u64| [16_777_216.0, 4096.0, 256.0].map(|possible| of(possible, vectors as f64)).iter().sum::<f64>();
        let counts: Vec<[u64; 2]> = (0..14).map(|log2| 850 << log2).map(|of| [of, nodes(of) as u64]).collect();
        for now in 8..14 {
            let last = 32 * counts[now][0];
            let share = forecast_nodes(&counts[..now], counts[now], last as f64) / nodes(last);
            assert!((0.9..1.1).contains(&share), "{share:.2} of the nodes of {last} vectors, from {:?}", counts[now]);
        }
    }

    #[test]
    fn a_cleared_table_counts_again() {
        let mut earlier = Vec::new();
        [[100, 90], [200, 150], [50, 50], [400, 300]].into_iter().for_each(|now| remember(&mut earlier, now));
        assert_eq!(earlier, [[50, 50], [400, 300]]);
    }

    /// Numbers of states and nodes of searches, counted at the growths of tree tables. The last number of nodes is forecast from
    /// each count with at least a sixteenth of the last states: with fewer states, no table takes all the rest of its memory.
    #[test]
    fn nodes_of_searches_are_forecast() {
        let at_6 = [
            [113_481, 62_403],
            [225_182, 118_172],
            [225_837, 118_441],
            [450_039, 225_246],
            [589_396, 269_674],
            [900_024, 412_491],
            [1_236_530, 539_366],
            [1_799_844, 774_156],
            [2_729_582, 1_078_778],
            [3_599_802, 1_412_642],
            [5_701_413, 2_157_557],
            [7_199_003, 2_645_116],
            [13_844_539, 4_315_174],
        ];
        let bakery_8 = [
            [112_448, 44_740],
            [185_374, 67_406],
            [225_129, 79_186],
            [414_439, 134_818],
            [450_640, 148_482],
            [900_291, 265_669],
            [1_799_868, 487_518],
            [3_599_910, 884_283],
            [4_532_236, 1_078_778],
            [7_199_358, 1_595_872],
            [10_443_336, 2_155_122],
        ];
        for counts in [&at_6[..], &bakery_8] {
            let [vectors, nodes] = counts[counts.len() - 1];
            let mut earlier = Vec::new();
            for now in &counts[..counts.len() - 1] {
                if 16 * now[0] >= vectors {
                    let share = forecast_nodes(&earlier, *now, vectors as f64) / nodes as f64;
                    assert!((0.85..=1.2).contains(&share), "{share:.2} of {nodes} nodes, from {now:?}");
                }
                remember(&mut earlier, *now);
            }
        }
    }

    #[test]
    fn the_last_vectors_say_how_many_nodes_the_next_ones_need() {
        assert_eq!(nodes_of_next(&[], [0, 0]), None);
        assert_eq!(nodes_of_next(&[[0, 0]], [10, 30]), Some(3.0));
        // The last count is too near.
        assert_eq!(nodes_of_next(&[[0, 0], [50, 100], [99, 180]], [100, 200]), Some(2.0));
        assert_eq!(nodes_of_next(&[[0, 0], [50, 190]], [100, 200]), Some(0.2));
    }

    #[test]
    fn few_growths_are_remembered() {
        let mut earlier = Vec::new();
        (0..1_000_000).for_each(|vectors| remember(&mut earlier, [vectors, vectors]));
        assert!(earlier.len() < 150 && earlier.windows(2).all(|pair| pair[1][0] > pair[0][0]));
    }
}
