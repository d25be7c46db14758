//! One pass of relocation of the keys of a cuckoo table, by the kernel of cuda/warpset/compact/relocation.cuh.
//!
//! The keys of the stash are taken out and exchanged with others, and the keys that are left over are put back. In between, these
//! keys are in no slot: [`Displaced`] keeps them, even after an error, until they are back.

use crate::backend::{Displaced, Store};
use crate::host::zeroed;
use crate::layout::Kernel;
use crate::layout::search::{RELOCATION_ROUNDS, SearchMode};
use crate::layout::view::{BatchView, Counts, Relocated};
use crate::{Error, Outcome, Result};
use std::mem;

/// Number of keys that are read at once.
const PIECE: usize = 512;

impl dyn Store {
    /// Relocates the keys of a cuckoo table's stash. Allocates memory, waits for all work on the machine, and calls `begin` once,
    /// before a key moves. Returns the number of keys that have left the stash. After an error that occurs after `begin`, the
    /// keys that are in no slot are displaced.
    pub(crate) fn relocate(&self, seed: u64, begin: &mut dyn FnMut()) -> Result<u64> {
        let machine = self.machine();
        machine.prepare(Kernel::Relocate, self.table().spec)?; // before anything moves
        let slots = self.table().view.stash_slots();
        let new = Displaced {
            keys: machine.allocate(slots * 8)?,
            reordered: machine.allocate(slots * 8)?,
            relocated: machine.allocate_zeroed(size_of::<Relocated>() as u64)?,
            outcomes: machine.allocate(slots)?,
            counts: machine.allocate(size_of::<Counts>() as u64)?,
        };
        self.synchronize()?;
        begin();
        let mut displaced = self.table().displaced();
        assert!(displaced.is_none(), "keys are put back before others are moved");
        // Each call has `RELOCATION_ROUNDS` seeds of its own, so that every round tries other chains.
        let seed = seed.wrapping_mul(RELOCATION_ROUNDS);
        self.displace(displaced.insert(new), seed)?;
        self.put_back(&mut displaced, seed)
    }

    /// Whether an error during relocation has left keys in no slot. Such keys must be put back before anything is searched for.
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

    /// Takes all keys out of the stash, finds slots for them in the main level, and adds the keys that are left over to the
    /// displaced ones.
    fn displace(&self, displaced: &Displaced, seed: u64) -> Result<()> {
        let arguments = [seed, displaced.keys.address, displaced.relocated.address];
        // SAFETY: the arguments of the kernel. There is space for the keys of all slots of the stash: displaced keys and keys in
        // the stash together are at most as many as were in the stash at first. Nothing else uses the table.
        unsafe { self.launch(Kernel::Relocate, self.table().view.stash_slots(), &arguments) }
    }

    /// Puts displaced keys back into the stash. If some find no free slot there, relocates all keys of the stash once more and
    /// tries again, for at most `RELOCATION_ROUNDS` rounds. Returns how many keys fewer are in the stash than before the first
    /// was displaced. If keys still have no slot after the last round, returns them in the error
    /// [`KeysWithoutSlot`](Error::KeysWithoutSlot). In both cases `displaced` is empty afterwards.
    ///
    /// After any other error this may be called again: keys that were put back already are then found in the stash.
    fn put_back(&self, displaced: &mut Option<Displaced>, seed: u64) -> Result<u64> {
        let Some(keys) = &mut *displaced else { return Ok(0) };
        let machine = self.machine();
        let (mut back, mut round) = (0, 1);
        let without_slot = loop {
            let mut now = Relocated::default();
            // SAFETY: memory that only the kernel before has changed.
            unsafe { machine.read(*keys.relocated, 0, bytemuck::bytes_of_mut(&mut now))? };
            let Relocated { taken, left_over } = now;
            let full = self.put_keys_back(keys, left_over)?;
            if full == 0 {
                *displaced = None;
                return Ok(taken.saturating_sub(back + left_over));
            }
            self.move_full_keys_first(keys, left_over)?;
            // After the last round, the keys without a slot are reported, and no key moves any more.
            if round == RELOCATION_ROUNDS {
                break full;
            }
            back += left_over - full;
            // SAFETY: as above. Until this write, the count also includes the keys behind the Full ones, which are in slots.
            unsafe { machine.write(*keys.relocated, 0, bytemuck::bytes_of(&Relocated { taken, left_over: full }))? };
            self.displace(keys, seed.wrapping_add(round))?;
            round += 1;
        };
        let mut keys_without_slot = zeroed(without_slot as usize)?;
        // SAFETY: as above.
        unsafe { machine.read(*keys.keys, 0, bytemuck::cast_slice_mut(&mut keys_without_slot))? };
        *displaced = None;
        Err(Error::KeysWithoutSlot { keys: keys_without_slot })
    }

    /// Offers the first `count` displaced keys to the table. Returns how many of them were Full.
    fn put_keys_back(&self, displaced: &Displaced, count: u64) -> Result<u64> {
        let batch = BatchView {
            vectors: displaced.keys.address,
            count,
            outcomes: displaced.outcomes.address,
            counts: displaced.counts.address,
            ..BatchView::default()
        };
        let mut counts = Counts::default();
        // SAFETY: the buffers have space for the keys of all slots of the stash and for their outcomes. Nothing else uses the
        // buffers or the table.
        unsafe {
            self.machine().fill(*displaced.counts, 0..displaced.counts.bytes, &[0])?;
            self.search_in_place(SearchMode::PutBack, &batch)?;
            self.machine().read(*displaced.counts, 0, bytemuck::bytes_of_mut(&mut counts))?;
        }
        Ok(counts.full)
    }

    /// Reorders the first `count` displaced keys: those that were Full come first. After an error the keys are as before. No key
    /// is there twice at any time, because relocation would put both copies.
    fn move_full_keys_first(&self, displaced: &mut Displaced, count: u64) -> Result<()> {
        let machine = self.machine();
        let (mut keys, mut outcomes) = ([0u64; PIECE], [0u8; PIECE]);
        let (mut front, mut end) = (0, count);
        for first in (0..count).step_by(PIECE) {
            let piece = PIECE.min((count - first) as usize);
            let (keys, outcomes) = (&mut keys[..piece], &mut outcomes[..piece]);
            // SAFETY: memory that only the search before has changed, which a copy has waited for.
            unsafe {
                machine.read(*displaced.keys, first * 8, bytemuck::cast_slice_mut(keys))?;
                machine.read(*displaced.outcomes, first, outcomes)?;
            }
            let mut full = 0;
            for (at, outcome) in outcomes.iter().enumerate() {
                if *outcome == Outcome::Full as u8 {
                    keys.swap(full, at);
                    full += 1;
                }
            }
            end -= (piece - full) as u64;
            // SAFETY: as above.
            unsafe {
                machine.write(*displaced.reordered, front * 8, bytemuck::cast_slice(&keys[..full]))?;
                machine.write(*displaced.reordered, end * 8, bytemuck::cast_slice(&keys[full..]))?;
            }
            front += full as u64;
        }
        mem::swap(&mut displaced.keys, &mut displaced.reordered);
        Ok(())
    }
}
