use super::Key;
use super::key::elements;
use crate::core::lock::SharedGuard;
use crate::core::table::{RawTable, TableState};
use crate::{Result, Words};
use std::fmt;
use std::ops::Deref;

/// The rows of an indexed table, in the order of their references; see [`Table::rows`](crate::Table::rows).
pub struct Rows<'a, K: Key = Words> {
    place: RowStorage<'a, K>,
}

enum RowStorage<'a, K: Key> {
    /// Rows in the table's own memory, and the number of rows shown. The guard keeps them unchanged.
    Table(SharedGuard<'a, TableState>, u64),
    Copied(Vec<K::Element>),
}

impl<'a, K: Key> Rows<'a, K> {
    pub(super) fn of(raw: &'a RawTable) -> Result<Self> {
        let (sized, rows) = raw.with_dense_rows("rows")?;
        if !raw.device.is_gpu() && K::IS_WHOLE_WORDS {
            return Ok(Self { place: RowStorage::Table(sized, rows) });
        }
        let (words, _) = sized.store.export(0..rows)?;
        Ok(Self { place: RowStorage::Copied(elements(words)) })
    }
}

impl<K: Key> Deref for Rows<'_, K> {
    type Target = [K::Element];

    fn deref(&self) -> &[K::Element] {
        match &self.place {
            RowStorage::Table(sized, rows) => {
                // SAFETY: `with_dense_rows` has checked that these rows are complete, and any operation that would change them
                // waits for the guard.
                let words = unsafe { sized.store.first_rows(*rows) };
                // The rows are aligned to pages, which suffices for every key type.
                bytemuck::cast_slice(words.unwrap_or(&[]))
            }
            RowStorage::Copied(rows) => rows,
        }
    }
}

impl<K: Key> fmt::Debug for Rows<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("elements", &self.len()).finish_non_exhaustive()
    }
}
