use super::Key;
use super::key::elements;
use crate::core::table::{RawTable, Sized};
use crate::{Result, Words};
use std::fmt;
use std::ops::Deref;
use std::sync::RwLockReadGuard;

/// The rows of an indexed table, in the order of their references; see [`Table::rows`](crate::Table::rows).
pub struct Rows<'a, K: Key = Words> {
    place: Place<'a, K>,
}

enum Place<'a, K: Key> {
    /// In the table, which keeps them as they are meanwhile.
    Table(RwLockReadGuard<'a, Sized>),
    Copied(Vec<K::Element>),
}

impl<'a, K: Key> Rows<'a, K> {
    pub(super) fn of(raw: &'a RawTable) -> Result<Self> {
        let sized = raw.with_dense_rows()?;
        if sized.store.dense_rows().is_some() {
            return Ok(Self { place: Place::Table(sized) });
        }
        let (words, _) = sized.store.export(0..sized.store.dense())?;
        Ok(Self { place: Place::Copied(elements(words)) })
    }
}

impl<K: Key> Deref for Rows<'_, K> {
    type Target = [K::Element];

    fn deref(&self) -> &[K::Element] {
        match &self.place {
            // Aligned to pages, so for every type of keys.
            Place::Table(sized) => bytemuck::cast_slice(sized.store.dense_rows().unwrap_or(&[])),
            Place::Copied(rows) => rows,
        }
    }
}

impl<K: Key> fmt::Debug for Rows<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("elements", &self.len()).finish_non_exhaustive()
    }
}
