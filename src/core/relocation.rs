//! Relocates keys of cuckoo tables (cuda/warpset/compact/relocation.cuh), so that the stash has free slots again.

use super::ending::Ending;
use super::growth::Rejected;
use super::table::{FIND_OR_PUT, RawTable, TableState};
use crate::layout::HostBatch;
use crate::layout::generation::Generation;
use crate::layout::view::Counts;
use crate::{Error, Result, Tally};
use std::ops::Range;

/// A pass has little effect if it frees at most 1/64 of the slots of the stash, or finds slots for at most 1/64 of the keys that
/// need some.
const RELOCATE_FOR_ONE_IN: u64 = 64;

/// Smallest number of slots whose keys growth offers between two passes of relocation.
const LEAST_SLOTS: u64 = 1 << 12;

/// Whether `part` is at most 1/64 of `whole`.
fn is_little(part: u64, whole: u64) -> bool {
    part <= whole / RELOCATE_FOR_ONE_IN
}

/// Whether another pass may help keys without a slot: the last one found slots for more than 1/64 of the `wanted` keys, or
/// relocated more than `wanted` keys. A table decides for itself; a cluster decides by the sums over its ranks.
pub(crate) fn another_pass_helps(wanted: u64, found: u64, relocated: u64) -> bool {
    !is_little(found, wanted) || relocated > wanted
}

impl TableState {
    /// Slots of the stash of a compact table.
    fn stash_slots(&self) -> u64 {
        self.spec.layout(self.buckets).map_or(0, |layout| layout.stash.slots())
    }

    /// Whether relocation ends: the last pass has freed at most 1/64 of the slots of the stash, and another pass does not help
    /// the keys without a slot. (A few keys may need only a few slots of a large table.)
    fn relocation_ends(&self, freed: u64, wanted: u64, found: u64, relocated: u64) -> bool {
        is_little(freed, self.stash_slots()) && !another_pass_helps(wanted, found, relocated)
    }
}

/// Puts the keys of a cuckoo table, which has `slots` slots, into `to`, and relocates keys there when some find no slot. `rehash`
/// puts the keys of a range of slots. Keys that are already in `to` stay. Nothing else uses either table. Returns false if
/// relocation frees hardly any more slots.
///
/// Offers the keys of as many slots at a time as the stash has. So about as many keys are offered again after a pass as the pass
/// has freed slots for.
pub(super) fn move_by_relocation(to: &TableState, slots: u64, rehash: &dyn Fn(Range<u64>) -> Result<Counts>) -> Result<bool> {
    let stash = to.stash_slots();
    let piece = stash.max(LEAST_SLOTS);
    // Each pass has another seed, so that it tries other chains.
    let mut seeds = to.generation.number()..;
    for first in (0..slots).step_by(piece as usize) {
        let mut put = || rehash(first..slots.min(first + piece));
        let rejected = put()?.full;
        if rejected > 0 && !put_by_relocation(to, rejected, &mut seeds, &mut put)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Relocates keys of a cuckoo table and calls `put` again, in turn, until `put` rejects no key. `rejected`: number of keys that
/// the last `put` rejected. Nothing else uses the table. Returns false if relocation frees hardly any more slots.
pub(super) fn put_by_relocation(
    table: &TableState,
    rejected: u64,
    seeds: &mut impl Iterator<Item = u64>,
    put: &mut impl FnMut() -> Result<Counts>,
) -> Result<bool> {
    let mut wanted = rejected;
    while wanted > 0 {
        let relocated = match table.store.relocate(seeds.next().unwrap_or_default(), &mut || ()) {
            Ok(relocated) => relocated,
            // The table that the keys come from still has all of them.
            Err(Error::KeysWithoutSlot { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        let still = put()?.full;
        let found = wanted.saturating_sub(still);
        if table.relocation_ends(relocated + found, wanted, found, relocated) {
            return Ok(false);
        }
        wanted = still;
    }
    Ok(true)
}

impl RawTable {
    /// Moves keys of a cuckoo table from its stash to the main level. Returns their number; 0 for other tables.
    pub(crate) fn relocate(&self, call: &'static str) -> Result<u64> {
        if !self.options.is_cuckoo() {
            return Ok(0);
        }
        let mut sized = self.sized_exclusively(call)?;
        // Puts back keys that an earlier relocation, which ended in an error, has left in no slot.
        sized.complete()?;
        let next = Generation::next();
        let TableState { store, generation, .. } = &mut *sized;
        store.relocate(next.number(), &mut || *generation = next)
    }

    /// Relocates keys, and offers rejected ones again, until none is rejected, or until that makes hardly any difference. A key
    /// that is still rejected is not stored, even if the batch offers it many times: all slots of its walk hold other keys.
    pub(super) fn relocate_and_retry(&self, batch: &mut HostBatch<'_>, mut tally: Tally, ending: &mut Ending) -> Result<Tally> {
        while tally.full > 0 {
            let relocated = self.stored(FIND_OR_PUT).and_then(|[before, _]| {
                let rejected = Rejected::of(batch, self.width())?;
                Ok((before, rejected, self.relocate(FIND_OR_PUT)?))
            });
            // These keys may belong to other callers, so the error must be reported.
            if let Err(Error::KeysWithoutSlot { keys }) = relocated {
                return Err(Error::KeysWithoutSlot { keys });
            }
            let Some((before, rejected, relocated)) = ending.keep(relocated) else { break };
            let wanted = tally.full;
            tally = self.retry(rejected, batch, tally, None)?;
            // `now` includes keys that other callers have put meanwhile. They may have taken the freed slots, or freed some.
            // After an error the vectors put so far are reported.
            let Some([now, _]) = ending.keep(self.stored(FIND_OR_PUT)) else { break };
            let freed = relocated + now.saturating_sub(before);
            // The batch may offer a key many times, so `wanted` may exceed the number of different keys.
            if self.look().relocation_ends(freed, wanted, wanted - tally.full, relocated) {
                break;
            }
        }
        Ok(tally)
    }
}
