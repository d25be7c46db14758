//! Growth of bucket tables in place, in the order of the buckets (cuda/warpset/bucket/growth.cuh).

use super::growth::{fill_parts, is_filled_in_order};
use super::kernels::{CpuView, LeftVectors, geometry, warpset_cpu_count_parts, warpset_cpu_export_left};
use super::pages::Pages;
use super::store::CpuStore;
use crate::backend::{Machine as _, Region};
use crate::host::zeroed;
use crate::layout::Kind;
use crate::layout::options::{Addresses, Parameters};
use crate::layout::size::{most_left, slices};
use crate::layout::view::View;
use crate::layout::waves::Waves;
use crate::{Error, Result, Spec};
use std::ops::Range;
use std::sync::atomic::AtomicU64;

impl CpuStore {
    /// [`Store::grow_in_place`](crate::backend::Store::grow_in_place). Nothing can fail after `begin`, so that no growth is left
    /// half done.
    pub(super) fn grow_where_it_is(
        &mut self,
        parameters: &Parameters<'_>,
        slots: u64,
        unplaced: &mut Vec<u32>,
        begin: &mut dyn FnMut(),
    ) -> Result<bool> {
        let (spec, layout) = (self.spec, geometry(self.spec));
        if spec.kind != Kind::Bucket || !is_filled_in_order(spec) || spec != parameters.spec || self.filter.is_some() {
            return Ok(false);
        }
        let buckets = slots / u64::from(layout.slots_per_bucket);
        let of_now = Parameters { buckets, ..*parameters };
        let slices = |buckets: u64| slices(buckets, layout.slots_per_bucket);
        let (Some(now), Some(then)) = (slices(buckets), slices(parameters.buckets)) else { return Ok(false) };
        if then <= now {
            return Ok(false);
        }
        // Counts the vectors of the larger table while it is filled.
        let stored: Box<[AtomicU64; 2]> = Box::default();
        let at = Addresses { stored: stored.as_ptr() as u64, ..self.addresses() };
        let parts_at = |slots: u64| {
            let at = Addresses { slots, ..at };
            (of_now.view(&at, &layout), parameters.view(&at, &layout))
        };
        let views = parts_at(self.slots.address);
        let mut left = Left::new(spec, self.machine.threads, slots)?;
        let (mut parts, mut slices_a_part) = (0, 0);
        // SAFETY: views of bucket tables.
        unsafe { warpset_cpu_count_parts(&left.of(&views.0), &left.of(&views.1), &mut parts, &mut slices_a_part) };
        let Waves { parts: waves, copied_parts, copied_slices } = Waves::new(now, then, slices_a_part);
        // SAFETY: the trial writes to the list only. The caller has this table alone.
        let Some(count) = (unsafe { left.try_all(&views, parts) }) else { return Ok(false) };
        let (bytes, copied) = (parameters.slot_bytes(&layout), copied_slices * (self.slots.bytes / now));
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
        for wave in waves {
            // SAFETY: both tables begin at this address, which has memory for the larger one. No part of a wave is where this
            // wave or a later one reads (`Waves`). The caller has this table alone.
            unsafe { left.fill(&views, wave, &mut vectors) };
        }
        let from = (self.slots.address as *const u8, copy.address());
        // SAFETY: both have these bytes, and no wave has written to the first slices.
        unsafe { from.0.copy_to_nonoverlapping(from.1, copied as usize) };
        // SAFETY: as above. The first parts read the first slices only, here their copy.
        unsafe { left.fill(&(parts_at(copy.address() as u64).0, views.1), 0..copied_parts, &mut vectors) };
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
