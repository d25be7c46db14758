//! Rebuilding a table with some of its vectors.

use super::growth::no_slots;
use super::relocation::put_by_relocation;
use super::table::{RawTable, TableState};
use crate::layout::options::Parameters;
use crate::layout::{BatchProgress, HostBatch, SearchMode};
use crate::{Error, Result};

/// Bytes of the vectors that are read from a table at once.
const PIECE_BYTES: u64 = 4 << 20;

/// Selects the vectors to keep: gets the words of some vectors, and pushes a flag for each vector, in order.
pub(crate) type Keep<'a> = dyn FnMut(&[u32], &mut Vec<bool>) + 'a;

/// A table that will replace another one, and the number of vectors that are not in it any more.
pub(crate) struct Rebuilt {
    pub table: TableState,
    pub removed: u64,
    /// Indexed tables only: the former numbers of its rows, in order.
    pub numbers: Option<Vec<u64>>,
}

impl RawTable {
    /// Replaces the table by one of the same size with the vectors that `keep` selects. Returns the number of vectors removed. If
    /// that is 0, the table is unchanged.
    pub(crate) fn retain(&self, keep: &mut Keep<'_>) -> Result<u64> {
        // `keep` is the caller's code: it may look at this table, but must not change it.
        self.replace("retain", |sized| match sized.spec.is_indexed() {
            true => self.kept_rows(sized, keep),
            false => self.kept_vectors(sized, keep),
        })
    }

    /// Waits for all work on the machine, and then replaces the table by the result of `rebuild`. Returns the number of vectors
    /// removed. If `rebuild` returns `None`, the table is unchanged.
    pub(crate) fn replace(
        &self,
        call: &'static str,
        rebuild: impl FnOnce(&TableState) -> Result<Option<Rebuilt>>,
    ) -> Result<u64> {
        let mut sized = self.sized_exclusively(call)?;
        sized.store.synchronize()?;
        sized.complete()?;
        let sized = sized.freeze();
        let Some(Rebuilt { table, removed, numbers }) = rebuild(&sized)? else { return Ok(0) };
        let mut sized = sized.thaw();
        if let Some(numbers) = numbers {
            self.arrays.renumber(&numbers);
        }
        *sized = table;
        Ok(removed)
    }

    pub(crate) fn parameters_of<'a>(&'a self, sized: &TableState) -> Parameters<'a> {
        let TableState { spec, buckets, node_buckets, .. } = *sized;
        Parameters { options: &self.options, seeds: &self.seeds, spec, buckets, node_buckets }
    }

    /// Ranges of slots or rows, below `references`, whose vectors are read at once.
    fn pieces(&self, references: u64) -> impl Iterator<Item = std::ops::Range<u64>> {
        let piece = (PIECE_BYTES / (self.width() as u64 * 4)).max(1);
        (0..references).step_by(piece as usize).map(move |first| first..references.min(first + piece))
    }

    /// Builds a table of the vectors that `keep` selects; `None` if it selects all.
    fn kept_vectors(&self, sized: &TableState, keep: &mut Keep<'_>) -> Result<Option<Rebuilt>> {
        let (mut flags, mut removed) = (Vec::new(), 0);
        // As long as `keep` selects all vectors, no other table is made: there might be no memory for it, or no slot in it for a
        // vector.
        let mut pieces = self.pieces(self.slots_of(sized));
        let mut first_changed = None;
        for slots in pieces.by_ref() {
            let (mut words, _) = sized.store.export(slots.clone())?;
            removed += filter(&mut words, self.width(), &mut flags, keep);
            if removed > 0 {
                first_changed = Some((slots, words));
                break;
            }
        }
        let Some((changed, kept)) = first_changed else { return Ok(None) };
        let table = TableState::new(&self.device, &self.parameters_of(sized))?;
        let mut seeds = table.generation.number()..;
        let mut put_all = |words: Vec<u32>| -> Result<()> {
            let mut put = || {
                let mut batch = HostBatch::new(SearchMode::FindOrPut, &words);
                table.store.search_batch(table.generation.tag(), &mut batch, &mut BatchProgress::none())
            };
            let counts = put()?;
            if counts.full > 0 && !(self.options.is_cuckoo() && put_by_relocation(&table, counts.full, &mut seeds, &mut put)?) {
                return Err(no_slots(sized, &table, self.slots_of(&table), counts.full_nodes)?);
            }
            Ok(())
        };
        // `keep` has seen the vectors in these slots already, and has selected them all.
        for slots in self.pieces(changed.start) {
            put_all(sized.store.export(slots)?.0)?;
        }
        put_all(kept)?;
        for slots in pieces {
            let (mut words, _) = sized.store.export(slots)?;
            removed += filter(&mut words, self.width(), &mut flags, keep);
            put_all(words)?;
        }
        Ok(Some(Rebuilt { table, removed, numbers: None }))
    }

    /// Builds a table of the rows that `keep` selects, in their order, without holes; `None` if it selects all.
    fn kept_rows(&self, sized: &TableState, keep: &mut Keep<'_>) -> Result<Option<Rebuilt>> {
        let given = sized.store.row_counts()?.given;
        let (mut flags, mut removed) = (Vec::new(), 0);
        let mut numbers = Vec::new();
        for rows in self.pieces(given) {
            let (mut words, rows) = sized.store.export(rows)?;
            removed += filter(&mut words, self.width(), &mut flags, keep);
            numbers.extend(rows.into_iter().zip(&flags).filter(|(_, keeps)| **keeps).map(|(row, _)| row));
        }
        if removed == 0 { Ok(None) } else { self.rows_only(sized, numbers, removed).map(Some) }
    }

    /// Builds a table of the rows with these numbers, in order and without holes. The rows are stored.
    pub(crate) fn rows_only(&self, sized: &TableState, numbers: Vec<u64>, removed: u64) -> Result<Rebuilt> {
        let parameters = self.parameters_of(sized);
        let mut store = self.device.machine.new_store(&parameters)?;
        let count = numbers.len() as u64;
        let missing = store.fill_rows(&*sized.store, &numbers)?;
        if missing > 0 {
            let invalid = missing.div_ceil(self.width() as u64);
            return Err(Error::InvalidReferences { invalid, count: numbers.len() });
        }
        store.set_counts(&[count, count, count], &[])?;
        let counts = store.reindex(&parameters, count)?;
        let table = TableState::of(store, &parameters);
        if counts.full > 0 {
            return Err(no_slots(sized, &table, self.slots_of(&table), 0)?);
        }
        Ok(Rebuilt { table, removed, numbers: Some(numbers) })
    }
}

/// Shortens `words` to the vectors that `keep` selects, and leaves a flag for each vector in `flags`. Returns the number removed.
fn filter(words: &mut Vec<u32>, width: usize, flags: &mut Vec<bool>, keep: &mut Keep<'_>) -> u64 {
    flags.clear();
    keep(words, flags);
    let mut kept = 0;
    for (at, _) in flags.iter().enumerate().filter(|(_, keeps)| **keeps) {
        words.copy_within(at * width..(at + 1) * width, kept * width);
        kept += 1;
    }
    words.truncate(kept * width);
    (flags.len() - kept) as u64
}
