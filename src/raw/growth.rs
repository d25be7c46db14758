//! Making room: tables that grow, and keys of cuckoo tables that relocate.

use super::{
    Generation, Input, Output, Parameters, Progress, RawTable, Search, Size, Sized, Store, checked_buckets, checked_node_buckets,
    zeroed,
};
use crate::spec::{MAX_NODE_BUCKETS, Spec};
use crate::{Error, Outcome, Result, Tally};

/// An automatic growth keeps tables below this fill: beyond it, probe sequences get long (`benches/README.md`).
const GROW_AT_FILL: f64 = 0.85;

/// The same of a cuckoo table, whose searches stay short.
const GROW_CUCKOO_AT_FILL: f64 = 0.97;

/// Relocation ends for a batch when a pass moves and makes room for fewer than one key for so many slots of the stash, and for fewer than
/// one for so many of those that the batch wants.
const RELOCATE_FOR_ONE_IN: u64 = 64;

/// Nor does it make a table more than so many times as large as what must be stored in it.
const GROW_AT_MOST: u64 = 64;

/// The vectors of a batch that were rejected, and memory for what comes of them when they are offered again.
struct Rejected {
    positions: Vec<u64>,
    words: Vec<u32>,
    outcomes: Vec<u8>,
}

impl Rejected {
    /// Of a batch of these outcomes.
    fn of(words: &[u32], outcomes: &[u8], width: usize) -> Result<Self> {
        let rejected = || (0u64..).zip(outcomes).filter(|(_, outcome)| **outcome == Outcome::Full as u8).map(|(at, _)| at);
        let count = rejected().count();
        let (mut positions, mut again) = (zeroed(count)?, zeroed(count * width)?);
        for ((position, row), at) in positions.iter_mut().zip(again.chunks_exact_mut(width)).zip(rejected()) {
            *position = at;
            row.copy_from_slice(&words[at as usize * width..][..width]);
        }
        Ok(Self { positions, words: again, outcomes: zeroed(count)? })
    }
}

impl RawTable {
    /// How many of `offered` vectors may be put without passing the fill at which the table grows, all being new; grows until that is a fair
    /// share. How many nodes they need is not known before; but a node table that is nearly full grows too.
    ///
    /// A growth that fails is not tried before each part of the batch again: `failed` says why, and the vectors go into what slots there are.
    pub(super) fn grow_for(&self, offered: usize, failed: &mut Option<Error>) -> usize {
        // Duplicates leave room over, so a part may be much smaller than the batch; but not so small that parts get many.
        let (grow_at_fill, least_part) = if self.options.cuckoo { (GROW_CUCKOO_AT_FILL, 64) } else { (GROW_AT_FILL, 16) };
        while failed.is_none() {
            let (size, counted) = (self.size(), self.stored_vectors_and_nodes());
            let [stored, nodes] = match counted {
                Ok(counts) => counts,
                Err(error) => {
                    *failed = Some(error);
                    break;
                }
            };
            let slots = size.slots;
            let may_double = size.nodes > 0 && size.nodes <= MAX_NODE_BUCKETS;
            let room = ((slots as f64 * grow_at_fill) as u64).saturating_sub(stored);
            let larger = if may_double && nodes as f64 > size.nodes as f64 * GROW_AT_FILL {
                Size { nodes: size.nodes * 2, ..size }
            } else if room >= (offered as u64).min(slots / least_part).max(1) {
                return (offered as u64).min(room) as usize;
            } else {
                Size { slots: slots * 2, ..size }
            };
            *failed = self.grow_from(size, larger).err();
        }
        offered
    }

    /// Offers the vectors that were rejected again, once there is room: `outcomes` are those of all, of which `tally` is the sum. Why there is
    /// none, if that is for an error, is added to `failed`, unless something is there.
    pub(super) fn retry_rejected(
        &self,
        words: &[u32],
        outcomes: &mut [u8],
        mut tally: Tally,
        failed: &mut Option<Error>,
    ) -> Result<Tally> {
        if self.options.cuckoo {
            tally = self.relocate_and_retry(words, outcomes, tally, failed)?;
        }
        if self.options.grows {
            tally = self.grow_and_retry(words, outcomes, tally, failed)?;
        }
        Ok(tally)
    }

    /// Grows, and offers the vectors that were rejected again, until none is; or until growing would not help: a table with that much
    /// room that rejects a vector does not lack room. (Such vectors are made against the table's seed; or node references end.)
    fn grow_and_retry(&self, words: &[u32], outcomes: &mut [u8], mut tally: Tally, failed: &mut Option<Error>) -> Result<Tally> {
        while tally.full > 0 {
            let size = self.size();
            let for_slots = tally.full - tally.full_nodes;
            let [stored, nodes] = match self.stored_vectors_and_nodes() {
                Ok(counts) => counts,
                Err(error) => {
                    failed.get_or_insert(error);
                    break;
                }
            };
            let needed = Size { slots: stored + for_slots, nodes: nodes + tally.full_nodes * self.width as u64 };
            let twice = |now: u64, helps: bool| if helps { 2 * now } else { now };
            let slots = twice(size.slots, for_slots > 0 && size.slots < GROW_AT_MOST * needed.slots);
            let nodes = twice(size.nodes, tally.full_nodes > 0 && size.nodes < GROW_AT_MOST * needed.nodes);
            let larger = Size { slots, nodes: nodes.min(2 * MAX_NODE_BUCKETS) };
            if larger == size {
                break;
            }
            let ready = self.grow_from(size, larger).and_then(|()| Rejected::of(words, outcomes, self.width));
            match ready {
                Ok(rejected) => tally = self.retry(rejected, outcomes, tally)?,
                Err(error) => {
                    failed.get_or_insert(error);
                    break;
                }
            }
        }
        Ok(tally)
    }

    /// Relocates keys, and offers those that were rejected again, until none is; or until that makes hardly any difference. A key that is still
    /// rejected is not stored, and all slots of its walk hold other keys; so it is however often the batch offers it.
    fn relocate_and_retry(
        &self,
        words: &[u32],
        outcomes: &mut [u8],
        mut tally: Tally,
        failed: &mut Option<Error>,
    ) -> Result<Tally> {
        while tally.full > 0 {
            let relocated = self.stored().and_then(|before| {
                let rejected = Rejected::of(words, outcomes, self.width)?;
                Ok((before, rejected, self.relocate()?))
            });
            let (before, rejected, relocated) = match relocated {
                Ok(relocated) => relocated,
                // The keys of others: they must not go unnoticed.
                Err(error @ Error::KeysWithoutPlace { .. }) => return Err(error),
                Err(error) => {
                    failed.get_or_insert(error);
                    break;
                }
            };
            let wanted = tally.full;
            tally = self.retry(rejected, outcomes, tally)?;
            // What other callers have put meanwhile counts too: they may have taken the room that this has made, or have made some.
            let now = match self.stored() {
                Ok(now) => now,
                // What has been put by now is reported.
                Err(error) => {
                    failed.get_or_insert(error);
                    break;
                }
            };
            let made = relocated + now.saturating_sub(before);
            let is_little = |made: u64, of: u64| made <= of / RELOCATE_FOR_ONE_IN;
            // What is little for a large table may be all that a few keys want, each of which may be offered many times.
            if is_little(made, self.stash_slots()) && is_little(wanted - tally.full, wanted) && relocated <= wanted {
                break;
            }
        }
        Ok(tally)
    }

    /// Offers them once more. `outcomes` are those of all, of which `tally` is the sum.
    fn retry(&self, mut rejected: Rejected, outcomes: &mut [u8], tally: Tally) -> Result<Tally> {
        let output = Output { outcomes: Some(&mut rejected.outcomes), ..Output::default() };
        let input = Input::whole(&rejected.words);
        let found = self.ready()?.search(Search::FindOrPut, input, output, &mut Progress::none())?.tally();
        rejected.positions.iter().zip(rejected.outcomes).for_each(|(at, outcome)| outcomes[*at as usize] = outcome);
        Ok(Tally { new: tally.new + found.new, seen: tally.seen + found.seen, ..found })
    }

    /// Moves keys of a cuckoo table from its stash to the first (compact/relocation.cuh). Gives how many; none in other tables.
    pub(crate) fn relocate(&self) -> Result<u64> {
        if !self.options.cuckoo {
            return Ok(0);
        }
        let mut sized = self.sized_exclusively();
        // Those that an earlier one has left in no slot, when it met an error.
        sized.store.put_displaced_back()?;
        let next = Generation::next();
        let Sized { store, generation, .. } = &mut *sized;
        store.relocate(next.number(), || *generation = next)
    }

    /// Of a compact table.
    fn stash_slots(&self) -> u64 {
        let sized = self.sized();
        sized.spec.layout(sized.buckets).map_or(0, |layout| layout.stash.slots())
    }

    pub(crate) fn grow(&self, capacity: u64) -> Result<()> {
        let slots = self.slots();
        if capacity <= slots {
            return Err(Error::NotLarger { capacity, slots });
        }
        self.reserve(capacity)
    }

    pub(crate) fn reserve(&self, capacity: u64) -> Result<()> {
        // Another thread may grow the table first, and to less than this.
        loop {
            let size = self.size();
            if size.slots >= capacity {
                return Ok(());
            }
            // Nodes in proportion, as far as references to them reach.
            let nodes = (size.nodes as f64 * (capacity as f64 / size.slots as f64)) as u64;
            self.grow_from(size, Size { slots: capacity, nodes: nodes.min(2 * MAX_NODE_BUCKETS) })?;
        }
    }

    fn size(&self) -> Size {
        let sized = self.sized();
        self.size_of(&sized)
    }

    fn size_of(&self, sized: &Sized) -> Size {
        Size { slots: self.slots_of(sized), nodes: 2 * sized.node_buckets }
    }

    /// Grows a table of one size to another; nothing if another thread has grown it meanwhile.
    fn grow_from(&self, from: Size, to: Size) -> Result<()> {
        let (spec, buckets) = self.fitting(to)?;
        let node_buckets = if spec.tree { checked_node_buckets(to.nodes)? } else { 0 };
        let family = self.options.family(spec, self.family_seed);
        let mut sized = self.sized_exclusively();
        let now = self.size_of(&sized);
        if now != from {
            return Ok(());
        }
        sized.store.put_displaced_back()?;
        let seeds = self.parameters.seeds.clone();
        let parameters = Parameters { spec, buckets, node_buckets, seeds, family, ..self.parameters };
        let larger = Store::new(&self.device, &parameters)?;
        let copied = sized.store.copy_to(&larger, now.slots)?;
        // Only a table that was nearly full, and grows by little, can reject some.
        if copied.full > 0 {
            let (offered, stored, for_nodes) = (copied.offered, copied.hits, copied.full_nodes);
            let slots = spec.slots(&self.geometry, buckets);
            return Err(Error::TableFull { rejected: copied.full, for_nodes, offered, stored, slots, cause: None });
        }
        *sized = Sized { store: larger, spec, buckets, node_buckets, generation: Generation::next() };
        Ok(())
    }

    /// What a table of so many slots, and of nodes, is compiled for, and its buckets. Roots of more nodes have more bits: where these do not
    /// fit the slots that the caller has chosen, there are more of them, so that a place tells more.
    fn fitting(&self, to: Size) -> Result<(Spec, u64)> {
        let spec = self.options.spec(&self.device, to)?;
        match checked_buckets(&self.geometry, spec, to.slots) {
            Err(Error::KeysDoNotFit { needed, .. }) if spec.tree && needed > to.slots => {
                let spec = self.options.spec(&self.device, Size { slots: needed, ..to })?;
                Ok((spec, checked_buckets(&self.geometry, spec, needed)?))
            }
            buckets => Ok((spec, buckets?)),
        }
    }
}
