//! Growth of bucket tables in place, in the order of the buckets (cuda/warpset/bucket/growth.cuh).

use super::growth::fill_parts;
use super::kernels::{CpuView, LeftVectors, geometry, warpset_cpu_count_parts, warpset_cpu_export_left};
use super::pages::Pages;
use super::store::CpuStore;
use crate::backend::waves::{GrowthWaves, slices};
use crate::backend::{Machine as _, Region};
use crate::host::zeroed;
use crate::layout::Kind;
use crate::layout::options::{Addresses, Parameters};
use crate::layout::size::most_left;
use crate::layout::view::View;
use crate::{Error, Result, Spec};
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// Memory and order of a growth in place.
struct Plan {
    waves: GrowthWaves,
    parts: u64,
    /// Bytes of the slices that are copied.
    copied: u64,
    /// Bytes that the table takes when it has grown.
    bytes: u64,
}

impl CpuStore {
    /// Plan of a growth of the table from this number of slots. `None` if it takes a second table.
    fn plan(&self, parameters: &Parameters<'_>, slots: u64) -> Option<Plan> {
        let (spec, layout) = (self.spec, geometry(self.spec));
        if spec.kind != Kind::Bucket || spec != parameters.spec || self.filter.is_some() {
            return None;
        }
        let buckets = slots / u64::from(layout.slots_per_bucket);
        let slices = |buckets: u64| slices(buckets, layout.slots_per_bucket);
        let (now, then) = (slices(buckets)?, slices(parameters.buckets).filter(|then| *then > slices(buckets).unwrap_or(0))?);
        let views = [buckets, parameters.buckets].map(|buckets| {
            let table = Parameters { buckets, ..*parameters };
            table.view(&self.addresses(), &layout)
        });
        let [from, to] = views.each_ref().map(|view| CpuView::of(spec, view));
        let (mut parts, mut slices_a_part) = (0, 0);
        // SAFETY: views of bucket tables, whose memory the function does not look at.
        unsafe { warpset_cpu_count_parts(&from, &to, &mut parts, &mut slices_a_part) };
        let waves = GrowthWaves::new(now, then, slices_a_part);
        let copied = waves.copied_slices * (layout.bytes(buckets) / now);
        Some(Plan { waves, parts, copied, bytes: parameters.slot_bytes(&layout) })
    }

    /// [`Store::bytes_beside`](crate::backend::Store::bytes_beside).
    pub(super) fn bytes_beside_growth(&self, parameters: &Parameters<'_>, slots: u64) -> Option<u64> {
        let of_left = most_left(slots) * (8 + 4 * self.spec.width() as u64);
        self.plan(parameters, slots).map(|plan| plan.copied + of_left)
    }

    /// [`Store::grow_in_place`](crate::backend::Store::grow_in_place). Nothing can fail after `begin`, so that no growth is left
    /// half done.
    pub(super) fn grow_where_it_is(
        &mut self,
        parameters: &Parameters<'_>,
        slots: u64,
        unplaced: &mut Vec<u32>,
        begin: &mut dyn FnMut(),
    ) -> Result<bool> {
        let Some(Plan { waves, parts, copied, bytes }) = self.plan(parameters, slots) else { return Ok(false) };
        let (spec, layout) = (self.spec, geometry(self.spec));
        let of_now = Parameters { buckets: slots / u64::from(layout.slots_per_bucket), ..*parameters };
        // Counts the vectors of the larger table while it is filled.
        let stored: Box<[AtomicU64; 2]> = Box::default();
        let at = Addresses { stored: stored.as_ptr() as u64, ..self.addresses() };
        let parts_at = |slots: u64| {
            let at = Addresses { slots, ..at };
            (of_now.view(&at, &layout), parameters.view(&at, &layout))
        };
        let views = parts_at(self.slots.address);
        let mut left = Left::new(spec, self.machine.threads, slots)?;
        // SAFETY: the trial writes to the list only. The caller has this table alone.
        let Some(count) = (unsafe { left.try_all(&views, parts) }) else { return Ok(false) };
        self.machine.check_memory(bytes - self.slots.bytes + copied)?;
        let words = count as usize * spec.width();
        let (copy, mut vectors) = (Pages::new(copied)?, zeroed::<u32>(words)?);
        unplaced.try_reserve_exact(words).map_err(|error| Error::no_host_memory(4 * words as u64, error.to_string()))?;
        let enlarge = |pages: &mut Pages| {
            pages.enlarge(bytes)?;
            Ok(Region { address: pages.address() as u64, bytes: pages.bytes() })
        };
        if !self.table.slots.enlarge(enlarge)? {
            return Ok(false);
        }
        begin();
        let views = parts_at(self.slots.address);
        for wave in waves.parts {
            // SAFETY: both tables begin at this address, which has memory for the larger one. No part of a wave is where this
            // wave or a later one reads (`GrowthWaves`). The caller has this table alone.
            unsafe { left.fill(&views, wave, &mut vectors) };
        }
        let from = (self.slots.address as *const u8, copy.address());
        // SAFETY: both have these bytes, and no wave has written to the first slices.
        unsafe { from.0.copy_to_nonoverlapping(from.1, copied as usize) };
        // SAFETY: as above. The first parts read the first slices only, here their copy.
        unsafe { left.fill(&(parts_at(copy.address() as u64).0, views.1), 0..waves.copied_parts, &mut vectors) };
        unplaced.extend_from_slice(&vectors);
        self.table.view = parameters.view(&self.addresses(), &layout);
        let [stored, _] = stored.map(AtomicU64::into_inner);
        // SAFETY: the table's number of vectors.
        unsafe { self.machine.write(*self.stored, 0, &stored.to_ne_bytes())? };
        Ok(true)
    }
}

/// Vectors that growth leaves to find-or-put: a list of their slots, and how many of these were copied.
struct Left {
    spec: Spec,
    threads: usize,
    slots: Vec<u64>,
    copied: u64,
}

impl Left {
    fn new(spec: Spec, threads: usize, slots: u64) -> Result<Self> {
        Ok(Self { spec, threads, slots: zeroed(most_left(slots) as usize)?, copied: 0 })
    }

    fn of(&self, view: &View) -> CpuView {
        CpuView::of(self.spec, view)
    }

    /// Counts the vectors of a table that parts of a larger one leave. `None` if the list is too short for them.
    ///
    /// # Safety
    ///
    /// Both views are of tables with this spec, for which growth in order is compiled. Nothing else uses the first one.
    unsafe fn try_all(&mut self, (from, to): &(View, View), parts: u64) -> Option<u64> {
        let (mut count, tables) = (0, (&self.of(from), &self.of(to)));
        let list = LeftVectors::of_list(&mut self.slots, &mut count);
        // SAFETY: the caller guarantees the tables. Nothing is written to them.
        unsafe { fill_parts(self.threads, tables, 0..parts, false, &list) };
        (count <= self.slots.len() as u64).then_some(count)
    }

    /// Fills parts of the second table with vectors of the first. Copies those that are left to `vectors`, behind earlier ones.
    ///
    /// # Safety
    ///
    /// As for [`fill_parts`]. `vectors` has room for all vectors that are left.
    unsafe fn fill(&mut self, (from, to): &(View, View), parts: Range<u64>, vectors: &mut [u32]) {
        let (first, mut count, tables) = (self.copied, self.copied, (&self.of(from), &self.of(to)));
        let list = LeftVectors::of_list(&mut self.slots, &mut count);
        // SAFETY: the caller guarantees the contract.
        unsafe { fill_parts(self.threads, tables, parts, true, &list) };
        let vectors = &mut vectors[first as usize * self.spec.width()..count as usize * self.spec.width()];
        let mut copied = 0;
        // SAFETY: the list has slots of the first table from `first` to `count`, and there is room for their vectors (checked).
        unsafe { warpset_cpu_export_left(tables.0, first, count, &list, vectors.as_mut_ptr(), &mut copied) };
        assert_eq!(copied, count - first, "slots whose vectors are left hold vectors");
        self.copied = count;
    }
}

#[cfg(test)]
mod tests {
    //! Keeps these promises of `src/docs/memory_and_growth.md`:
    //!
    //! - On a CPU a bucket table grows in place.
    //! - A growth in place that fails leaves the table as it was.

    use crate::backend::Store as _;
    use crate::backend::cpu::CpuStore;
    use crate::layout::options::Parameters;
    use crate::layout::size;
    use crate::{BucketTable, Device, Error, MemoryLimit, Reference, faults};
    use warpset_testing::sizes::sized;

    fn vectors(width: usize, count: u64) -> Vec<u32> {
        let word = |number: u64, at: usize| (number as u32).wrapping_add(at as u32 * 7919).wrapping_mul(0x9e37_79b1);
        (0..count).flat_map(|number| (0..width).map(move |at| word(number, at))).collect()
    }

    /// A table that is `fill` full, and its vectors.
    fn filled(width: usize, threads: usize, slots: u64, fill: f64) -> (BucketTable, Vec<u32>) {
        let builder = BucketTable::builder(width).capacity(slots).seed(7);
        let table = builder.build(&Device::cpu_with_threads(threads)).unwrap();
        let vectors = vectors(width, (table.slots() as f64 * fill) as u64);
        table.find_or_put_many(&vectors).unwrap().complete(&table).unwrap();
        (table, vectors)
    }

    /// Every vector is stored once, every other slot is empty, and references are good.
    fn holds(table: &BucketTable, vectors: &[u32], about: &str) {
        let count = (vectors.len() / table.width()) as u64;
        assert_eq!((table.len().unwrap(), table.iter().count() as u64), (count, count), "{about}");
        let references: Vec<Reference> = table.locate_many(vectors).unwrap().into_iter().flatten().collect();
        assert!(table.get_many(&references).unwrap() == vectors, "{about}");
        assert_eq!(table.find_or_put_many(vectors).unwrap().tally.seen, count, "{about}");
    }

    /// Whether the table would grow in place to this number of slots.
    fn grows_in_place(table: &BucketTable, slots: u64) -> bool {
        let (raw, sized) = (&table.raw, table.raw.look());
        let buckets = size::buckets(&raw.geometry_of(&sized), sized.spec, slots).unwrap();
        let parameters = Parameters { buckets, ..raw.parameters_of(&sized) };
        CpuStore::of(&*sized.store).unwrap().bytes_beside(&parameters, raw.slots_of(&sized)).is_some()
    }

    #[test]
    #[cfg_attr(miri, ignore = "the kernels are C++")]
    fn tables_grow_by_any_factor() {
        let widths = sized((1..=20).chain([24, 28, 32, 33, 64, 100]).collect(), vec![1, 2, 7, 12, 20, 33], vec![2]);
        let cases = widths.iter().flat_map(|width| {
            [1.03, 1.25, 2.0, 4.0].map(|factor| (*width, if *width > 9 { 70_000 } else { 150_000 }, factor, 0.95))
        });
        for (width, slots, factor, fill) in cases.chain([(1, 65_536, 1000.0, 0.9)]) {
            let (table, vectors) = filled(width, 1 + width % 3, slots, fill);
            let (about, to) = (format!("{width} words, times {factor}"), (table.slots() as f64 * factor) as u64);
            assert!(grows_in_place(&table, to), "{about}");
            let stale = table.locate_many(&vectors[..width]).unwrap()[0].unwrap();
            table.reserve_total(to).unwrap();
            assert!(table.slots() >= to && table.raw.look().unplaced.is_empty(), "{about}");
            assert!(matches!(table.get_many(&[stale]), Err(Error::StaleReferences { .. })), "{about}");
            holds(&table, &vectors, &about);
        }
    }

    /// Each allocation and each start of a thread fails once, and with all later ones.
    #[test]
    #[cfg_attr(miri, ignore = "the kernels are C++")]
    fn a_growth_that_fails_changes_nothing() {
        let prepared = || filled(2, 2, 70_000, 0.9);
        let (table, _) = prepared();
        let (grown, calls) = faults::count(|| table.reserve_total(2 * table.slots()));
        assert!(grown.is_ok() && calls >= 3, "{calls} calls");
        for call in 0..calls {
            for last in [call + 1, u64::MAX] {
                let ((table, vectors), about) = (prepared(), format!("calls {call} to {last} of {calls} fail"));
                let (slots, before) = (table.slots(), table.locate_many(&vectors).unwrap());
                let (grown, _) = faults::fail(call..last, || table.reserve_total(2 * slots));
                match grown {
                    Ok(()) => assert!(table.slots() >= 2 * slots, "{about}"),
                    Err(_) => assert!(table.slots() == slots && table.locate_many(&vectors).unwrap() == before, "{about}"),
                }
                holds(&table, &vectors, &about);
                table.reserve_total(2 * slots).unwrap();
                holds(&table, &vectors, &about);
            }
        }
    }

    /// If hashes are equal, more vectors are left than the list has room for: the growth takes a second table, or, if the limit
    /// forbids it, is an error with the numbers.
    #[test]
    #[cfg_attr(miri, ignore = "the kernels are C++")]
    fn equal_hashes_take_a_second_table() {
        for hash_mask in [0, 1 << 63] {
            let table = BucketTable::builder(2).capacity(70_000).seed(7).hash_mask(hash_mask).grows(true);
            let table = table.build(&Device::cpu_with_threads(2)).unwrap();
            let vectors = vectors(2, 3500);
            table.find_or_put_many(&vectors).unwrap().complete(&table).unwrap();
            let limit = MemoryLimit::Reserved(5 * table.bytes() / 2);
            let (slots, grown) = (table.slots(), table.grow_within(limit));
            assert!(matches!(grown, Err(Error::MemoryLimit { taken, .. }) if taken == table.bytes()), "{grown:?}");
            holds(&table, &vectors, "within the limit");
            assert!(table.grow_within(MemoryLimit::Reserved(8 * table.bytes())).unwrap() && table.slots() > slots);
            holds(&table, &vectors, "beside a second table");
        }
    }

    /// Vectors that a growth has left in no slot come first at the next use, and are an error as long as they find none.
    #[test]
    #[cfg_attr(miri, ignore = "the kernels are C++")]
    fn vectors_without_a_slot_are_put_before_anything_else() {
        let (table, vectors) = filled(2, 1, 70_000, 0.5);
        let unplaced = [[1u32, 2], [3, 4]];
        table.raw.sized_exclusively("test").unwrap().unplaced = unplaced.concat();
        assert_eq!(table.contains_many(&unplaced.concat()).unwrap(), [true, true]);
        holds(&table, &[&vectors[..], &unplaced.concat()].concat(), "both were put");
        // A search with equal hashes looks at 1,024 buckets of 4 slots.
        let table = BucketTable::builder(2).capacity(70_000).seed(7).hash_mask(0).build(&Device::cpu_with_threads(1)).unwrap();
        let all = self::vectors(2, 6000);
        let tally = table.find_or_put_many(&all).unwrap().tally;
        let last = all[all.len() - 2..].to_vec();
        assert!(tally.full > 0 && !table.contains_many(&last).unwrap()[0]);
        table.raw.sized_exclusively("test").unwrap().unplaced = last.clone();
        for _ in 0..2 {
            let refused = table.find_or_put_many(&all).map(drop);
            assert!(matches!(refused, Err(Error::TableFull { rejected: 1, stored, .. }) if stored == tally.new), "{refused:?}");
        }
        // Searches of a far larger table look at more buckets.
        table.reserve_total(100 << 20).unwrap_err();
        assert!(table.raw.look().unplaced == last);
        table.clear().unwrap();
        assert_eq!((table.len().unwrap(), table.raw.look().unplaced.len()), (0, 0));
    }
}
