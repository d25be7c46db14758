//! Relocation of the keys of cuckoo tables by the threads of this process.

use super::kernels::{CpuView, warpset_cpu_relocate};
use super::store::{CpuStore, PIECE};
use super::threads::in_pieces;
use crate::backend::{CuckooStore, SearchBatch as _};
use crate::host::zeroed;
use crate::layout::search::{RELOCATION_ROUNDS, SearchMode};
use crate::layout::view::Relocated;
use crate::layout::{BatchProgress, HostBatch};
use crate::{Error, Outcome, Result};

impl CuckooStore for CpuStore {
    /// All memory is allocated before `begin` is called, so nothing fails after it.
    fn relocate(&self, seed: u64, begin: &mut dyn FnMut()) -> Result<u64> {
        let slots = self.view.stash_slots() as usize;
        let (mut keys, mut outcomes) = (zeroed::<u64>(slots)?, zeroed::<u8>(slots)?);
        begin();
        let (mut moved, mut left) = (0, 0);
        for round in 0..RELOCATION_ROUNDS {
            let mut counts = Relocated { taken: 0, left_over: left };
            let (keys_at, counts_at) = (keys.as_mut_ptr() as u64, &raw mut counts as u64);
            let shares = self.threads.min(slots.div_ceil(PIECE)).max(1) as u64;
            in_pieces(self.threads, shares, |share| {
                // SAFETY: `keys` has an element for each slot of the stash. Each thread reads slots of its own share. `counts`
                // gives out each position once, at most one per key. Both outlive the threads. The caller uses the table
                // exclusively.
                unsafe {
                    let (keys, counts) = (keys_at as *mut u64, counts_at as *mut Relocated);
                    warpset_cpu_relocate(
                        &CpuView::of(self.spec, &self.view),
                        share,
                        shares,
                        seed.wrapping_mul(RELOCATION_ROUNDS) + round,
                        keys,
                        counts,
                    );
                }
            });
            moved += counts.taken - (counts.left_over - left);
            let displaced = counts.left_over as usize;
            let back = HostBatch::new(SearchMode::PutBack, bytemuck::cast_slice(&keys[..displaced]));
            let mut back = HostBatch { outcomes: &mut outcomes[..displaced], ..back };
            self.search_batch(0, &mut back, &mut BatchProgress::none())?;
            left = 0;
            for at in 0..displaced {
                if outcomes[at] == Outcome::Full as u8 {
                    keys[left as usize] = keys[at];
                    left += 1;
                }
            }
            if left == 0 {
                return Ok(moved);
            }
        }
        keys.truncate(left as usize);
        Err(Error::KeysWithoutSlot { keys })
    }
}
