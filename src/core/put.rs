//! Find-or-put of batches from the host: a request becomes a batch, and the batch is put in parts. A table may grow between the
//! parts.

use super::batch::{Batch, Buffers, Results};
use super::first_error::FirstError;
use super::request::Request;
use super::table::{FIND_OR_PUT, RawTable};
use super::upsert::{Beside, Changes};
use crate::layout::generation::Generation;
use crate::layout::{BatchProgress, HostBatch};
use crate::{Error, Result, Tally};

impl RawTable {
    /// Returns the number of vectors in `words`. Returns an error unless every slice of the request has the length that this
    /// number of vectors needs, and no reference that must be current is stale.
    fn validate(&self, words: &[u32], request: &Request<'_>) -> Result<usize> {
        let count = self.count(words)?;
        let sized = self.sized(FIND_OR_PUT)?;
        let rows = |what, given: Option<usize>, needed: usize| match given {
            Some(given) if given != needed => Err(Error::LengthMismatch { what, given, needed }),
            _ => Ok(()),
        };
        rows("parents", request.parents.map(<[_]>::len), count)?;
        rows("words of masks of changes", request.changed.map(<[_]>::len), count * sized.spec.mask_words())?;
        match (request.parents, request.changed) {
            (Some(parents), Some(_)) => sized.check_references(parents)?,
            (None, Some(_)) => {
                return Err(Error::LengthMismatch { what: "parents (needed with masks of changes)", given: 0, needed: count });
            }
            // Parents are compared with the current contents: a stale reference does no harm.
            (_, None) => {}
        }
        Ok(count)
    }

    /// Whether rejected vectors of a batch are offered again, after a growth or a relocation.
    fn retries(&self) -> bool {
        self.options.grows || self.options.is_cuckoo()
    }

    /// Find-or-put of all vectors of a request, with the results that it asks for. `values`: values beside the rows of an indexed
    /// table that the batch changes.
    pub(crate) fn find_or_put(&self, words: &[u32], mut request: Request<'_>, values: Option<Changes<'_>>) -> Result<Batch> {
        let mut own = Buffers::new();
        let buffers = request.buffers.take().unwrap_or(&mut own);
        // Hides the results of the previous batch, even if this one is refused.
        buffers.hide();
        let count = self.validate(words, &request)?;
        let mut results = Results::new(buffers, count, request.wanted, self.retries())?;
        let call = self.begin_call(FIND_OR_PUT)?;
        let mut progress = BatchProgress::new(request.progress.take(), count);
        let leaves_holes = request.leaves_holes;
        let upsert = values.map(|values| values.upsert);
        let batch = HostBatch { leaves_holes, upsert, ..results.batch(words, request.parents, request.changed) };
        let beside = values.map(|values| values.array);
        let put = self.put_batch(batch, &mut progress, beside);
        beside.into_iter().for_each(|array| array.put());
        let Put { tally, first_error, mut ended_by, moved, .. } = put?;
        let offered = tally.offered() as usize;
        // If the vectors cannot be found now, their references are stale. Using them is an error later. That is no reason to
        // withhold the outcomes.
        if results.has_references() && self.retries() && moved.offered > 0 {
            match self.locate(FIND_OR_PUT, &words[..moved.offered * self.width()]) {
                Ok(now) => results.locate_again(&now, moved.new),
                Err(error) => ended_by = ended_by.or(Some(error)),
            }
        }
        if let Some(call) = call {
            // An error leaves holes, and does not affect any outcome.
            let (moved, closed) = self.close_holes(call, !leaves_holes);
            let mut values_moved = Ok(());
            if let Some((closing, generation)) = moved {
                values_moved = beside.map_or(Ok(()), |array| array.rows_moved(&closing));
                results.rows_moved(&closing, generation);
            }
            ended_by = ended_by.or(values_moved.err()).or(closed.err());
        }
        results.finish(tally);
        let (outcomes, references, new_references) = own.into_vectors();
        let error = match first_error.error {
            // No other result mentions these keys.
            Some(keys @ Error::KeysWithoutSlot { .. }) => Some(keys),
            error => ended_by.or(error),
        };
        Ok(Batch { tally, outcomes, references, new_references, stopped: offered < count, error, given: count as u64 })
    }

    /// Puts the vectors of a batch, in parts if the table may have to grow between them.
    ///
    /// # Errors
    ///
    /// If nothing has been put. Otherwise the results so far are reported with the error.
    fn put_batch(&self, mut batch: HostBatch<'_>, progress: &mut BatchProgress<'_>, beside: Option<&dyn Beside>) -> Result<Put> {
        let (spec, generation) = {
            let sized = self.look();
            (sized.spec, sized.generation)
        };
        let count = batch.count(spec);
        let mut put = Put::new(generation);
        let mut first = 0;
        while first < count && !progress.stopped {
            let left = count - first;
            let (len, before) = if self.options.grows { self.grow_for(left, &mut put.first_error) } else { (left, None) };
            let mut part = batch.part(&(first..first + len), put.tally.new, spec);
            progress.begin_part(first);
            let searched = self.ready(FIND_OR_PUT).and_then(|sized| {
                put.moved_to(sized.generation, first);
                beside.map_or(Ok(()), |array| array.make_all(&sized))?;
                sized.store.search_batch(part.put_search(), sized.generation.tag(), &mut part, progress)
            });
            let retried = searched.and_then(|counts| match counts.tally() {
                of_part if of_part.full > 0 && self.retries() => {
                    self.retry_rejected(part, of_part, before, beside, &mut put.first_error)
                }
                of_part => Ok(of_part),
            });
            let of_part = match retried {
                Ok(of_part) => of_part,
                // `KeysWithoutSlot` is returned even then, because no other result mentions those keys.
                Err(error) if first > 0 && !matches!(error, Error::KeysWithoutSlot { .. }) => {
                    // A growth may have preceded the error.
                    put.moved_to(self.look().generation, first);
                    put.ended_by = Some(error);
                    break;
                }
                Err(error) => return Err(error),
            };
            put.tally += of_part;
            first += of_part.offered() as usize;
            // Includes vectors that were offered again: another growth may have come between.
            put.moved_to(self.look().generation, first);
        }
        Ok(put)
    }
}

/// Result of putting a batch.
struct Put {
    tally: Tally,
    first_error: FirstError,
    /// Why the batch ended early, unless the caller requested that.
    ended_by: Option<Error>,
    /// Generation of the references of all other vectors.
    generation: Generation,
    moved: Moved,
}

/// Leading vectors of a batch whose references a growth has made stale.
#[derive(Default)]
struct Moved {
    offered: usize,
    /// Number of them that were new.
    new: usize,
}

impl Put {
    fn new(generation: Generation) -> Self {
        Self { tally: Tally::default(), first_error: FirstError::default(), ended_by: None, generation, moved: Moved::default() }
    }

    /// Records that the table has this generation after `offered` vectors have been offered.
    fn moved_to(&mut self, generation: Generation, offered: usize) {
        if generation != self.generation {
            self.generation = generation;
            self.moved = Moved { offered, new: self.tally.new as usize };
        }
    }
}
