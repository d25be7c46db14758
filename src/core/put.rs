//! Find-or-put of batches from the host. In the common case one guard is held throughout: check, make room for results, search,
//! report. If the table must grow or relocate keys for a batch, [`RawTable::put_in_parts`] or [`RawTable::retry_rejected`]
//! continues.

use super::ending::Ending;
use super::growth::Room;
use super::lock::SharedGuard;
use super::request::Request;
use super::results::{Batch, Buffers, Results};
use super::table::{FIND_OR_PUT, RawTable, TableState};
use super::upsert::{Changes, UpsertTarget};
use crate::layout::generation::Generation;
use crate::layout::{BatchProgress, HostBatch};
use crate::{Error, Result, Tally};

/// A find-or-put under way.
struct Put<'a> {
    progress: BatchProgress<'a>,
    beside: Option<&'a dyn UpsertTarget>,
    ending: Ending,
    tally: Tally,
    /// Generation of the references of all vectors except those in `moved`.
    generation: Generation,
    /// Tally of the leading vectors whose references a growth or a relocation has made stale.
    moved: Tally,
}

impl Put<'_> {
    /// Records the table's generation after the vectors offered so far. If the generation has changed, the references of these
    /// vectors are stale.
    fn moved_to(&mut self, generation: Generation) {
        if generation != self.generation {
            (self.generation, self.moved) = (generation, self.tally);
        }
    }
}

impl RawTable {
    /// Finds or puts all vectors of `words`, with the results that `request` asks for. `values`: changes to values that belong to
    /// the rows of an indexed table.
    pub(crate) fn find_or_put(&self, words: &[u32], mut request: Request<'_>, values: Option<Changes<'_>>) -> Result<Batch> {
        let mut own = Buffers::new();
        let buffers = request.buffers.take().unwrap_or(&mut own);
        // Hides the results of the previous batch, even if this one is refused.
        buffers.hide();
        let count = self.count(words)?;
        let sized = self.ready(FIND_OR_PUT)?;
        request.check(&sized, count)?;
        let mut results = Results::new(buffers, count, &request, self.retries())?;
        let call = self.begin_call(&sized)?;
        let batch = results.batch(words, &request, values.map(|values| values.upsert));
        let (leaves_holes, beside) = (request.leaves_holes, values.map(|values| values.array));
        let progress = BatchProgress::new(request.progress, count);
        let (ending, generation) = (Ending::default(), sized.generation);
        let mut put = Put { progress, beside, ending, tally: Tally::default(), generation, moved: Tally::default() };
        let room = if self.options.grows && count > 0 { put.ending.keep(self.room_for(&sized, count)) } else { None };
        let done = match &room {
            Some(room) if !room.is_enough_for(count) => self.put_in_parts(sized, batch, *room, &mut put),
            _ => self.put_part(sized, batch, room, &mut put),
        };
        beside.into_iter().for_each(|array| array.put());
        done?;
        if results.has_references() && put.moved.offered() > 0 {
            // If the vectors cannot be found now, their references stay stale, so using them is an error later. The outcomes are
            // reported nevertheless.
            let now = self.locate(FIND_OR_PUT, &words[..put.moved.offered() as usize * self.width()]);
            put.ending.end(now.map(|now| results.locate_again(&now, put.moved.new as usize)));
        }
        if let Some(call) = call {
            // If holes cannot be closed, they remain, and no outcome changes. But if values cannot move with their rows, they are
            // lost, so that error is returned.
            let (moved, closed) = self.close_holes(call, !leaves_holes);
            if let Some((closing, generation)) = moved {
                beside.map_or(Ok(()), |array| array.rows_moved(&closing))?;
                results.rows_moved(&closing, generation);
            }
            put.ending.end(closed);
        }
        let (tally, error, given) = (put.tally, put.ending.into_error(), count as u64);
        results.finish(tally);
        let (outcomes, references, new_references) = own.into_vectors();
        Ok(Batch { tally, outcomes, references, new_references, stopped: tally.offered() < given, error, given })
    }

    /// Whether rejected vectors of a batch are offered again, after a growth or a relocation.
    fn retries(&self) -> bool {
        self.options.grows || self.options.is_cuckoo()
    }

    /// Puts a batch, or a part of one, at once. `room`: for a table that grows, its room before the part.
    fn put_part(
        &self,
        sized: SharedGuard<'_, TableState>,
        mut part: HostBatch<'_>,
        room: Option<Room>,
        put: &mut Put<'_>,
    ) -> Result<()> {
        if part.vectors.is_empty() {
            return Ok(());
        }
        put.beside.map_or(Ok(()), |array| array.make_all(&sized))?;
        put.moved_to(sized.generation);
        let mut tally = sized.store.search_batch(sized.generation.tag(), &mut part, &mut put.progress)?.tally();
        if tally.full == 0 || !self.retries() {
            put.tally += tally;
            return Ok(());
        }
        drop(sized);
        tally = self.retry_rejected(part, tally, room.map(|room| room.before), put.beside, &mut put.ending)?;
        put.tally += tally;
        // Records the generation again, because another growth may have made the references of all vectors so far stale,
        // including vectors that were offered again.
        put.moved_to(self.look().generation);
        Ok(())
    }

    /// Puts a batch for which the table has too little room. The batch is put in parts, and the table grows before a part if
    /// needed.
    ///
    /// # Errors
    ///
    /// An error of the first part, or [`Error::KeysWithoutSlot`] of any part, because no other result names those keys. Any other
    /// error is reported with the results so far.
    #[cold]
    fn put_in_parts(
        &self,
        sized: SharedGuard<'_, TableState>,
        mut batch: HostBatch<'_>,
        room: Room,
        put: &mut Put<'_>,
    ) -> Result<()> {
        let (spec, count) = (sized.spec, batch.count(sized.spec));
        drop(sized);
        let mut room = Some(room);
        loop {
            let first = put.tally.offered() as usize;
            let (len, before) = self.grow_for(count - first, room, &mut put.ending);
            let part = batch.part(&(first..first + len), put.tally.new, spec);
            put.progress.begin_part(first);
            match self.ready(FIND_OR_PUT).and_then(|sized| self.put_part(sized, part, before, put)) {
                Ok(()) => {}
                Err(error) if first > 0 && !matches!(error, Error::KeysWithoutSlot { .. }) => {
                    // A growth may have preceded the error.
                    put.moved_to(self.look().generation);
                    put.ending.end(Err(error));
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
            let left = count - put.tally.offered() as usize;
            if left == 0 || put.progress.stopped {
                return Ok(());
            }
            room = None;
            if put.ending.is_good() {
                room = put.ending.keep(self.ready(FIND_OR_PUT).and_then(|sized| self.room_for(&sized, left)));
            }
        }
    }
}

#[cfg(all(test, feature = "cpu"))]
mod tests {
    use super::super::lock::SHARED_SO_FAR;
    use crate::{Bucket, CompactTree, Device, Indexed, Request, Storage, Tree, VectorTable};

    /// As long as nothing has to grow or be relocated, each call takes the table's lock once, in tables of every kind.
    fn each_call_shares_it_once<S: Storage>(grows: bool) {
        let table = VectorTable::<S>::builder(4).capacity(1000).grows(grows).build(&Device::cpu_with_threads(2)).unwrap();
        // So few vectors that no node table has to grow.
        let words: Vec<u32> = (0..80).collect();
        let once = |call: &dyn Fn()| {
            let before = SHARED_SO_FAR.get();
            call();
            assert_eq!(SHARED_SO_FAR.get() - before, 1, "grows: {grows}");
        };
        for words in [&words[..], &words[..4], &[]] {
            once(&|| {
                let request = Request::new().outcomes(true).references(true).new_references(true);
                assert_eq!(table.find_or_put_many_with(words, request).unwrap().tally.offered(), words.len() as u64 / 4);
            });
            once(&|| assert!(!table.contains_many(words).unwrap().contains(&false)));
            once(&|| assert!(!table.locate_many(words).unwrap().contains(&None)));
        }
        once(&|| assert!(table.contains(&words[4..8]).unwrap()));
        once(&|| assert!(table.insert(&words[4..8]).is_ok()));
        once(&|| assert!(table.slots() >= 1000));
    }

    #[test]
    fn a_call_shares_the_table_once() {
        for grows in [false, true] {
            each_call_shares_it_once::<Bucket>(grows);
            each_call_shares_it_once::<Tree>(grows);
            each_call_shares_it_once::<CompactTree>(grows);
            each_call_shares_it_once::<Indexed>(grows);
        }
    }
}
