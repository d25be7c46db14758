//! The calls of a rank of a cluster to its table: searches without growth or relocation, which the ranks decide together.

use super::table::RawTable;
use crate::backend::{Launch, Rank};
use crate::layout::SearchMode;
use crate::layout::rank::Stream;
use crate::layout::view::BatchView;
use crate::{Reference, Result};

/// Name, in errors, of a batch of several ranks, which puts or looks up the vectors that this rank owns.
pub(crate) const CLUSTER_BATCH: &str = "a batch of the cluster";

impl RawTable {
    /// Returns the error that `sized_exclusively` would return now, for a caller that must know it before the other members of a
    /// group begin.
    pub(crate) fn check_not_held(&self, call: &'static str) -> Result<()> {
        self.sized.check_not_held(call)
    }

    /// Enqueues the search of a batch in the memory of the table's machine, on a stream of a rank. References have the table's
    /// generation. Neither grows nor relocates; that is up to the caller.
    ///
    /// # Safety
    ///
    /// As [`Rank::enqueue_search`].
    pub(crate) unsafe fn enqueue_once(
        &self,
        (rank, stream): (&dyn Rank, Stream),
        search: SearchMode,
        batch: &BatchView,
        launch: Launch,
    ) -> Result<()> {
        let is_gpu = self.device.machine.is_gpu();
        if is_gpu {
            self.calls.note_kernels();
        }
        let sized = self.ready(CLUSTER_BATCH)?;
        // On the host the search has ended when this function returns.
        let _call = if is_gpu { None } else { self.begin_call(&sized)? };
        let batch = BatchView { tag: sized.generation.tag(), ..*batch };
        // SAFETY: the caller guarantees the contract.
        unsafe { rank.enqueue_search(stream, &*sized.store, search, &batch, launch) }
    }

    /// Compiles and loads the kernels of a search before the search is enqueued, because that may wait for all work of a GPU. If
    /// `is_exchanged`, also compiles and loads the kernels for vectors of another rank.
    pub(crate) fn prepare(&self, search: SearchMode, is_exchanged: bool) -> Result<()> {
        self.ready(CLUSTER_BATCH)?.store.prepare(search, is_exchanged)
    }

    /// Runs `move_them`, which moves vectors, and then updates `references`, which must be current at first. If the vectors of
    /// the references cannot be read, does not run `move_them`. If both `move_them` and the search for the vectors fail, returns
    /// the error of `move_them`.
    pub(crate) fn keeping(&self, references: &mut [u64], move_them: impl FnOnce() -> Result<()>) -> Result<()> {
        if references.is_empty() {
            return move_them();
        }
        let places: Vec<Reference> = references.iter().filter_map(|bits| Reference::from_bits(*bits)).collect();
        let words = self.get(CLUSTER_BATCH, &places)?;
        let moved = move_them();
        // Search even after an error, which may have occurred when some vectors had moved.
        let now = match self.locate(CLUSTER_BATCH, &words) {
            Ok(now) => now,
            Err(error) => return moved.and(Err(error)),
        };
        references.iter_mut().zip(now).for_each(|(bits, now)| *bits = now.map_or(0, Reference::to_bits));
        moved
    }
}
