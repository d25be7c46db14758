//! Growth of bucket tables in place on a GPU (cuda/warpset/bucket/block_growth.cuh). Memory is mapped behind the table.

use super::growth_plan::{Growing, InPlace, Progress};
use super::reserved::ReservedMemory;
use super::store::{CudaStore, argument, view_argument};
use super::{cuda, pass};
use crate::backend::waves::GrowthWaves;
use crate::backend::{Machine, Region};
use crate::host::zeroed;
use crate::layout::options::{Addresses, Parameters};
use crate::layout::size::most_left;
use crate::{Error, Result};
use cudarc::driver::result;

impl CudaStore {
    /// [`Store::bytes_beside`](crate::backend::Store::bytes_beside).
    pub(super) fn bytes_beside_growth(&self, parameters: &Parameters<'_>, slots: u64) -> Option<u64> {
        let geometry = self.kernels.geometry;
        let Growing { now, then, plan } = self.by_slices(parameters, slots).filter(|growing| growing.then > growing.now)?;
        let bytes = geometry.bytes(slots / u64::from(geometry.slots_per_bucket));
        let copied = GrowthWaves::new(now, then, plan.slices_a_part).copied_slices * (bytes / now);
        // The sizes of a forecast are not those of the present memory.
        let can_grow = bytes != self.slots.bytes || self.slots.is_owned_by::<ReservedMemory>();
        let [_, left] = InPlace::list_bytes(most_left(slots), 4 * self.spec.width() as u64);
        (ReservedMemory::is_for(bytes) && can_grow).then_some(InPlace::COPY_AT + copied + left)
    }

    /// [`Store::grow_in_place`](crate::backend::Store::grow_in_place).
    pub(super) fn grow_where_it_is(
        &mut self,
        parameters: &Parameters<'_>,
        slots: u64,
        unplaced: &mut Vec<u32>,
        begin: &mut dyn FnMut(),
    ) -> Result<bool> {
        let Some(Growing { now, then, plan }) = self.by_slices(parameters, slots).filter(|growing| growing.then > growing.now)
        else {
            return Ok(false);
        };
        if !self.slots.is_owned_by::<ReservedMemory>() {
            return Ok(false);
        }
        let geometry = self.kernels.geometry;
        let waves = GrowthWaves::new(now, then, plan.slices_a_part);
        let copied = waves.copied_slices * (self.slots.bytes / now);
        self.gpu().synchronize()?;
        let mut stored = [0];
        // SAFETY: the table's number of vectors. No kernel runs.
        unsafe { self.machine.load(*self.stored, 0, &mut stored)? };
        let capacity = most_left(slots);
        let vector_bytes = 4 * self.spec.width() as u64;
        let beside = self.machine.allocate(InPlace::COPY_AT + copied)?;
        let left_list = self.machine.allocate(InPlace::list_bytes(capacity, vector_bytes)[1])?;
        let of_progress = size_of::<Progress>() as u64;
        // SAFETY: memory that no kernel uses yet.
        unsafe { self.machine.fill(*beside, 0..InPlace::COPY_AT, &[0])? };
        let of_now = Parameters { buckets: slots / u64::from(geometry.slots_per_bucket), ..*parameters };
        let at = Addresses { stored: beside.address + of_progress, ..self.addresses() };
        let mut growing = InPlace {
            from: of_now.view(&at, &geometry),
            copied: of_now.view(&Addresses { slots: beside.address + InPlace::COPY_AT, ..at }, &geometry),
            to: parameters.view(&at, &geometry),
            plan,
            seeds: self.short_seeds()?,
            waves,
            beside,
            has_copied: false,
            left_list,
            vector_bytes,
            capacity,
            stored: stored[0],
            left: 0,
        };
        // The first wave writes to new memory only, so it is a trial of its parts. The others are tried before.
        let has_waves = !growing.waves.parts.is_empty();
        let tried = growing.waves.parts.first().map_or(growing.waves.copied_parts, |wave| wave.start);
        // SAFETY: nothing is written to the tables, which the caller has alone. `progress_of` waits for the kernel.
        unsafe {
            self.fill_parts((&growing.from, &growing.to), (&growing.plan, &growing.seeds), 0..tried, false, growing.list())?
        };
        let are_few = |left: u64| left <= capacity / 2;
        if !are_few(self.progress_of(&growing)?.left) {
            return Ok(false);
        }
        // SAFETY: as above.
        unsafe { self.machine.write(*growing.beside, 0, bytemuck::bytes_of(&Progress::default()))? };
        let (before, bytes) = (self.slots.bytes, parameters.slot_bytes(&geometry));
        let of = |memory: &ReservedMemory, bytes: u64| Region { address: memory.address(), bytes };
        self.table.slots.enlarge(|memory: &mut ReservedMemory| memory.grow(bytes).map(|()| of(memory, bytes)))?;
        if has_waves {
            let first = self.run_wave(&mut growing, 0).and_then(|()| self.progress_of(&growing));
            if !first.as_ref().is_ok_and(|progress| are_few(progress.left)) {
                self.table.slots.enlarge(|memory: &mut ReservedMemory| {
                    memory.shrink(before);
                    Ok(of(memory, before))
                })?;
                return first.map(|_| false);
            }
        }
        begin();
        self.table.view = parameters.view(&self.addresses(), &geometry);
        self.growing = Some(Box::new(growing));
        self.go_on(unplaced).map(|()| true)
    }

    /// Waits for the kernels of a growth, and returns its progress. Which vectors are left depends on the order of threads, so a
    /// repeated wave may leave others.
    fn progress_of(&self, growing: &InPlace) -> Result<Progress> {
        let mut progress = Progress::default();
        // SAFETY: memory that only kernels before have changed.
        unsafe { self.machine.read(*growing.beside, 0, bytemuck::bytes_of_mut(&mut progress))? };
        Ok(progress)
    }

    /// Goes on with a growth that has begun. Adds the vectors that it leaves to `unplaced`.
    ///
    /// # Errors
    ///
    /// The growth is not done. A later call goes on with it.
    pub(super) fn go_on(&mut self, unplaced: &mut Vec<u32>) -> Result<()> {
        let Some(mut growing) = self.growing.take() else { return Ok(()) };
        let done = self.run_waves(&mut growing, unplaced);
        if done.is_err() {
            self.growing = Some(growing);
        }
        done
    }

    fn run_waves(&self, growing: &mut InPlace, unplaced: &mut Vec<u32>) -> Result<()> {
        let steps = growing.waves.parts.len() as u64 + 1;
        loop {
            let progress = self.take_left(growing, unplaced)?;
            if progress.waves == steps {
                // SAFETY: the table's number of vectors. No kernel runs.
                return unsafe { self.machine.write(*self.stored, 0, &(growing.stored - growing.left).to_ne_bytes()) };
            }
            if progress.left > growing.capacity {
                // Only further vectors are listed here.
                let [_, bytes] = InPlace::list_bytes(2 * growing.capacity, growing.vector_bytes);
                growing.left_list = self.machine.allocate(bytes)?;
                growing.capacity *= 2;
            }
            (progress.waves..steps).try_for_each(|wave| self.run_wave(growing, wave as usize))?;
        }
    }

    /// Takes the vectors that waves have left since the last call to the host, and forgets those of a wave that is not done.
    /// Waits. Returns the progress before.
    fn take_left(&self, growing: &mut InPlace, unplaced: &mut Vec<u32>) -> Result<Progress> {
        self.gpu().synchronize()?;
        let progress = self.progress_of(growing)?;
        let words = (progress.kept - growing.left) as usize * self.spec.width();
        let at = growing.left * growing.vector_bytes;
        let mut vectors = zeroed::<u32>(words)?;
        unplaced.try_reserve_exact(words).map_err(|error| Error::no_host_memory(4 * words as u64, error.to_string()))?;
        // SAFETY: memory that only kernels before have changed. The kernel has copied this number of vectors.
        unsafe { self.machine.read(*growing.left_list, at, bytemuck::cast_slice_mut(&mut vectors))? };
        unplaced.extend_from_slice(&vectors);
        growing.left = progress.kept;
        // After the vectors are on the host, because a copy that reports an error may have been made.
        // SAFETY: the first number of the progress, which no kernel uses now.
        unsafe { self.machine.write(*growing.beside, 0, &progress.kept.to_ne_bytes())? };
        Ok(progress)
    }

    /// Enqueues a wave, and the copy of the vectors that it leaves. It does nothing if an earlier one could not be completed.
    fn run_wave(&self, growing: &mut InPlace, wave: usize) -> Result<()> {
        let (from, parts) = match growing.waves.parts.get(wave) {
            Some(parts) => (growing.from, parts.clone()),
            None => {
                self.copy_first_slices(growing)?;
                (growing.copied, 0..growing.waves.copied_parts)
            }
        };
        let list = growing.list();
        let (progress, vectors) = (growing.beside.address, growing.left_list.address);
        let mut arguments =
            [view_argument(&from), argument(&list.slots), argument(&list.capacity), argument(&progress), argument(&vectors)];
        // SAFETY: no part of a wave is where this wave or a later one reads (`GrowthWaves`); the last one reads a copy. The
        // memory is that of the growth, which waits before it frees any. The second launch has the arguments of
        // `warpset_keep_left`, and the buffer has room for as many vectors as the list.
        unsafe {
            self.fill_parts((&from, &growing.to), (&growing.plan, &growing.seeds), parts, true, list)?;
            let kernel = &self.kernels.grow(self.gpu())?.keep_left;
            self.gpu().launch(kernel, (1, 256, 0), self.stream(), &mut arguments)
        }
    }

    /// Enqueues the copy of the slices that the last wave reads and overwrites, unless this has been done.
    fn copy_first_slices(&self, growing: &mut InPlace) -> Result<()> {
        if growing.has_copied {
            return Ok(());
        }
        pass("copying in the GPU's memory")?;
        let _current = self.gpu().bind()?;
        let (to, from) = (growing.beside.address + InPlace::COPY_AT, self.slots.address);
        let bytes = (growing.beside.bytes - InPlace::COPY_AT) as usize;
        // SAFETY: both have this number of bytes, and do not overlap. They stay as long as the growth.
        unsafe { result::memcpy_dtod_async(to, from, bytes, self.stream()) }.map_err(cuda("copying in the GPU's memory"))?;
        growing.has_copied = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    //! Keeps this promise of `src/docs/memory_and_growth.md`, on a GPU or a simulated one:
    //!
    //! - A growth in place that an error ends goes on at the next use of the table. Nothing is lost.

    use super::*;
    use crate::{BucketTable, Device, faults};
    use std::any::Any;

    const EMPTY: [u32; 4] = [0x5eed_0000, 1, 2, 3];

    /// Slots of a table whose list has room for 137 vectors. Growth takes a second table if a trial leaves more than half.
    const SLOTS: u64 = 140_000;

    /// 700 vectors. The first `left` ones begin as EMPTY does, so growth leaves them: some slots may not hold them.
    fn vectors(left: u32) -> Vec<u32> {
        (0..700).flat_map(|number| [if number < left { EMPTY[0] } else { number }, number, 7, number]).collect()
    }

    fn filled(device: &Device, vectors: &[u32]) -> BucketTable {
        let table = BucketTable::builder(4).capacity(SLOTS).empty_pattern(EMPTY).build(device).unwrap();
        table.find_or_put_many(vectors).unwrap().complete(&table).unwrap();
        table
    }

    fn holds(table: &BucketTable, vectors: &[u32], about: &str) {
        let count = vectors.len() / 4;
        assert!(table.contains_many(vectors).unwrap().iter().all(|is_there| *is_there), "{about}");
        assert_eq!((table.len().unwrap(), table.iter().count()), (count as u64, count), "{about}");
    }

    /// Calls `with` with the store, and says where its slots are.
    fn store(table: &BucketTable, with: impl FnOnce(&mut CudaStore)) -> u64 {
        let mut sized = table.raw.sized_exclusively("test").unwrap();
        let store = (&mut *sized.store as &mut dyn Any).downcast_mut::<CudaStore>().unwrap();
        with(store);
        store.slots.address
    }

    #[test]
    #[cfg_attr(miri, ignore = "there is no GPU")]
    fn a_growth_that_ends_between_waves_goes_on() {
        let Ok(device) = Device::gpu(0) else { return };
        let vectors = vectors(60);
        let grow = |table: &BucketTable| table.reserve_total(2 * SLOTS);
        let table = filled(&device, &vectors);
        let place = store(&table, |_| ());
        let (grown, calls) = faults::count(|| grow(&table));
        grown.unwrap();
        assert_eq!(store(&table, |_| ()), place, "it grows where it is");
        holds(&table, &vectors, "without faults");
        let mut goes_on = 0;
        for call in 0..calls {
            let (table, about) = (filled(&device, &vectors), format!("call {call} of {calls} fails"));
            let (grown, _) = faults::fail(call..call + 1, || grow(&table));
            // A list that is far too short.
            store(&table, |store| {
                if let Some(growing) = &mut store.growing {
                    goes_on += 1;
                    growing.capacity = 1;
                }
            });
            assert!(grown.is_err() || call == 0 || table.slots() >= 2 * SLOTS, "{about}");
            holds(&table, &vectors, &about);
            grow(&table).unwrap();
            holds(&table, &vectors, &about);
        }
        assert!(goes_on > 10, "{goes_on} of {calls} growths were ended between waves");
    }

    /// The first wave of a growth by eight leaves most of 100 vectors, which is more than the trial of the others has shown.
    #[test]
    #[cfg_attr(miri, ignore = "there is no GPU")]
    fn a_first_wave_that_leaves_too_many_is_undone() {
        let Ok(device) = Device::gpu(0) else { return };
        let vectors = vectors(100);
        let table = filled(&device, &vectors);
        let place = store(&table, |_| ());
        table.reserve_total(8 * SLOTS).unwrap();
        assert_ne!(store(&table, |_| ()), place, "it takes a second table");
        holds(&table, &vectors, "in a second table");
    }
}
