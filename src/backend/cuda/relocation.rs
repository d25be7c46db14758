//! Relocation of the keys of cuckoo tables on a GPU, by the kernels of cuda/warpset/compact/relocation.cuh.
//!
//! The keys of the stash are taken out and exchanged with others, and the keys that are left over are put back. In between they
//! are in no slot: [`Displaced`] keeps them, even after an error, until they are back.

use super::memory::DeviceMemory;
use super::store::{CudaStore, argument};
use crate::backend::{CuckooStore, Launch};
use crate::host::zeroed;
use crate::layout::search::{RELOCATION_ROUNDS, SearchMode};
use crate::layout::view::{BatchView, Counts, Relocated};
use crate::{Error, Outcome, Result};
use std::sync::MutexGuard;

/// Keys of a cuckoo table that are in no slot while others are moved.
pub(super) struct Displaced {
    /// Memory for as many keys as the stash has slots. The first `relocated.left_over` are displaced; those behind them are in
    /// slots again.
    keys: DeviceMemory,
    /// Outcome of putting each key back, and the counts.
    outcomes: DeviceMemory,
    counts: DeviceMemory,
    relocated: DeviceMemory,
}

impl CuckooStore for CudaStore {
    /// Waits for all work on the GPU first. If an error ends it after `begin` was called, the keys that are in no slot stay in
    /// `displaced`.
    fn relocate(&self, seed: u64, begin: &mut dyn FnMut()) -> Result<u64> {
        self.kernels.relocate(&self.gpu)?; // compiled before anything moves
        let slots = self.view.stash_slots();
        let memory = |bytes| DeviceMemory::new(&self.gpu, bytes);
        let relocated = memory(size_of::<Relocated>() as u64)?;
        relocated.zero_async(0, size_of::<Relocated>(), self.stream())?;
        let new = Displaced {
            keys: memory(slots * 8)?,
            outcomes: memory(slots)?,
            counts: memory(size_of::<Counts>() as u64)?,
            relocated,
        };
        self.gpu.synchronize()?;
        begin();
        let mut displaced = self.displaced();
        assert!(displaced.is_none(), "keys are put back before others are moved");
        self.displace(displaced.insert(new), seed)?;
        self.put_back(&mut displaced, seed)
    }

    fn has_displaced(&self) -> bool {
        self.displaced().is_some()
    }

    fn put_displaced_back(&self) -> Result<()> {
        let mut displaced = self.displaced();
        if displaced.is_some() {
            // Kernels of other calls may still be running, and they are not aware of the relocation.
            self.gpu.synchronize()?;
            self.put_back(&mut displaced, 0)?;
        }
        Ok(())
    }
}

impl CudaStore {
    pub(super) fn displaced(&self) -> MutexGuard<'_, Option<Displaced>> {
        self.displaced.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes all keys out of the stash, finds slots for them in the main level, and adds those that are left over to the
    /// displaced ones.
    fn displace(&self, displaced: &Displaced, seed: u64) -> Result<()> {
        let kernel = self.kernels.relocate(&self.gpu)?;
        let slots = self.view.stash_slots();
        let (keys, relocated) = (displaced.keys.address(), displaced.relocated.address());
        // SAFETY: the arguments of `warpset_relocate`. There is room for the keys of all slots of the stash: displaced keys and
        // keys in the stash together are at most as many as were in it at first.
        unsafe {
            let arguments = &mut [self.table_argument(), argument(&seed), argument(&keys), argument(&relocated)];
            self.gpu.launch(kernel, (self.gpu.blocks_for(slots), 256, 0), self.stream(), arguments)
        }
    }

    /// Puts displaced keys back into the stash. If some find no free slot there, moves all others once more. Afterwards no key is
    /// displaced. Returns how many keys have left the stash since they were displaced.
    ///
    /// May be called again after an error: a key that is already back is found there.
    fn put_back(&self, displaced: &mut Option<Displaced>, seed: u64) -> Result<u64> {
        let Some(keys) = &*displaced else { return Ok(0) };
        let (mut back, mut without_slot) = (0, Vec::new());
        for round in 1..=RELOCATION_ROUNDS {
            let mut relocated = [Relocated::default()];
            // SAFETY: waited for in the next statement.
            unsafe { keys.relocated.read_async(0, &mut relocated, self.stream())? };
            self.wait("moving keys")?;
            let [Relocated { taken, left_over }] = relocated;
            if self.put_keys_back(keys, left_over)? == 0 {
                *displaced = None;
                return Ok(taken.saturating_sub(back + left_over));
            }
            without_slot = self.without_slot(keys, left_over)?;
            // These keys are reported, so no key is moved any more.
            if round == RELOCATION_ROUNDS {
                break;
            }
            let count = without_slot.len() as u64;
            back += left_over - count;
            // SAFETY: waited for before either is freed. The keys come first: until their number is there, those behind them
            // count too, which are in slots.
            unsafe {
                keys.keys.write_async(0, &without_slot, self.stream())?;
                keys.relocated.write_async(0, &[Relocated { taken, left_over: count }], self.stream())?;
            }
            self.wait("moving keys")?;
            self.displace(keys, seed.wrapping_add(round))?;
        }
        *displaced = None;
        Err(Error::KeysWithoutSlot { keys: without_slot })
    }

    /// Offers the first of the displaced keys to the table, and returns how many of them were Full.
    fn put_keys_back(&self, displaced: &Displaced, count: u64) -> Result<u64> {
        if count == 0 {
            return Ok(0);
        }
        let batch = BatchView {
            vectors: displaced.keys.address(),
            count,
            outcomes: displaced.outcomes.address(),
            counts: displaced.counts.address(),
            ..BatchView::default()
        };
        let mut counts = [Counts::default()];
        displaced.counts.zero_async(0, size_of::<Counts>(), self.stream())?;
        // SAFETY: the buffers have room for the batch, are aligned to 256 bytes and outlive the work (waited for below).
        unsafe {
            self.enqueue(SearchMode::PutBack, &batch, self.stream(), Launch::default())?;
            displaced.counts.read_async(0, &mut counts, self.stream())?;
        }
        self.wait("putting keys back")?;
        Ok(counts[0].full)
    }

    /// Keys among `count` displaced ones that were Full when they were last put back.
    fn without_slot(&self, displaced: &Displaced, count: u64) -> Result<Vec<u64>> {
        let (mut keys, mut outcomes) = (zeroed::<u64>(count as usize)?, zeroed::<u8>(count as usize)?);
        // SAFETY: waited for in the next statement.
        unsafe {
            displaced.keys.read_async(0, &mut keys, self.stream())?;
            displaced.outcomes.read_async(0, &mut outcomes, self.stream())?;
        }
        self.wait("moving keys")?;
        let mut outcomes = outcomes.into_iter();
        keys.retain(|_| outcomes.next() == Some(Outcome::Full as u8));
        Ok(keys)
    }
}
