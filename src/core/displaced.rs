//! One pass of relocation of the keys of a cuckoo table, by the kernel of cuda/warpset/compact/relocation.cuh.
//!
//! The keys of the stash are taken out and exchanged with others, and the keys that are left over are put back. In between they
//! are in no slot: [`Displaced`] keeps them, even after an error, until they are back.

use crate::backend::{Displaced, Memory, Store};
use crate::host::zeroed;
use crate::layout::search::{RELOCATION_ROUNDS, SearchMode};
use crate::layout::view::Relocated;
use crate::layout::{BatchProgress, HostBatch, Kernel};
use crate::{Error, Outcome, Result};

impl dyn Store {
    /// Relocates the keys of a cuckoo table's stash. Calls `begin` once, when there is memory for it and before a key moves.
    /// Waits for all work on the machine before. Returns the number of keys that have left the stash. If an error ends it after
    /// `begin` was called, the keys that are in no slot are displaced.
    pub(crate) fn relocate(&self, seed: u64, begin: &mut dyn FnMut()) -> Result<u64> {
        let machine = self.machine();
        machine.prepare(Kernel::Relocate, self.table().spec)?; // before anything moves
        let keys = machine.allocate(self.table().view.stash_slots() * 8)?;
        let new = Displaced { keys, relocated: machine.allocate_zeroed(size_of::<Relocated>() as u64)? };
        self.synchronize()?;
        begin();
        let mut displaced = self.table().displaced();
        assert!(displaced.is_none(), "keys are put back before others are moved");
        // Different chains in every round.
        let seed = seed.wrapping_mul(RELOCATION_ROUNDS);
        self.displace(displaced.insert(new), seed)?;
        self.put_back(&mut displaced, seed)
    }

    /// Whether an error during relocation has left keys in no slot. They must be put back before anything is searched for.
    pub(crate) fn has_displaced(&self) -> bool {
        self.table().displaced().is_some()
    }

    /// Puts displaced keys back. Nothing else may use the table at the same time.
    pub(crate) fn put_displaced_back(&self) -> Result<()> {
        let mut displaced = self.table().displaced();
        if displaced.is_some() {
            // Kernels of other calls may still be running, and they are not aware of the relocation.
            self.synchronize()?;
            self.put_back(&mut displaced, 0)?;
        }
        Ok(())
    }

    /// Takes all keys out of the stash, finds slots for them in the main level, and adds those that are left over to the
    /// displaced ones.
    fn displace(&self, displaced: &Displaced, seed: u64) -> Result<()> {
        let arguments = [seed, displaced.keys.address, displaced.relocated.address];
        // SAFETY: the arguments of the kernel. There is room for the keys of all slots of the stash: displaced keys and keys in
        // the stash together are at most as many as were in it at first. Nothing else uses the table.
        unsafe { self.launch(Kernel::Relocate, self.table().view.stash_slots(), &arguments) }
    }

    /// Puts displaced keys back into the stash. If some find no free slot there, moves all others once more. Afterwards no key is
    /// displaced. Returns how many keys have left the stash since they were displaced.
    ///
    /// May be called again after an error: a key that is already back is found there.
    fn put_back(&self, displaced: &mut Option<Displaced>, seed: u64) -> Result<u64> {
        let Some(Displaced { keys, relocated }) = &*displaced else { return Ok(0) };
        let machine = self.machine();
        let (mut back, mut without_slot) = (0, Vec::new());
        for round in 1..=RELOCATION_ROUNDS {
            let mut now = Relocated::default();
            // SAFETY: memory that only the kernel before has changed.
            unsafe { machine.read(**relocated, 0, bytemuck::bytes_of_mut(&mut now))? };
            let Relocated { taken, left_over } = now;
            without_slot = self.put_keys_back(keys, left_over)?;
            let count = without_slot.len() as u64;
            if count == 0 {
                *displaced = None;
                return Ok(taken.saturating_sub(back + left_over));
            }
            // After the last round these keys are reported, so no key is moved any more.
            if round < RELOCATION_ROUNDS {
                back += left_over - count;
                // SAFETY: as above. The keys come first: until their number is there, those behind them count too, which are in
                // slots.
                unsafe {
                    machine.write(**keys, 0, bytemuck::cast_slice(&without_slot))?;
                    machine.write(**relocated, 0, bytemuck::bytes_of(&Relocated { taken, left_over: count }))?;
                }
                self.displace(displaced.as_ref().expect("they are still there"), seed.wrapping_add(round))?;
            }
        }
        *displaced = None;
        Err(Error::KeysWithoutSlot { keys: without_slot })
    }

    /// Offers the first of the displaced keys to the table, and returns those that were Full.
    fn put_keys_back(&self, keys: &Memory, count: u64) -> Result<Vec<u64>> {
        let mut without_slot = Vec::new();
        let mut put = |keys: &[u8]| {
            let keys: &[u64] = bytemuck::cast_slice(keys);
            let mut outcomes = zeroed::<u8>(keys.len())?;
            let batch = HostBatch::new(SearchMode::PutBack, bytemuck::cast_slice(keys));
            self.search_batch(0, &mut HostBatch { outcomes: &mut outcomes, ..batch }, &mut BatchProgress::none())?;
            let full = keys.iter().zip(outcomes).filter(|(_, outcome)| *outcome == Outcome::Full as u8);
            without_slot.extend(full.map(|(key, _)| *key));
            Ok(())
        };
        // SAFETY: memory that only the kernels before have changed.
        unsafe { self.machine().read_pieces(**keys, count * 8, &mut put)? };
        Ok(without_slot)
    }
}
