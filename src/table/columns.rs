//! Vectors given as columns: one array for each field.

use super::key::elements;
use super::{Key, Storage, Table};
use crate::host::{Workers, zeroed};
use crate::{Error, Result};
use bytemuck::NoUninit;
use std::fmt;

/// Number of vectors that a thread makes at a time.
const PIECE_ROWS: usize = 4096;

/// Vectors as columns, a *structure of arrays*: column c has field c of every vector. [`Table::from_columns`] makes vectors from
/// them.
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::{Columns, Device, TypedTable};
///
/// #[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
/// #[repr(C)]
/// struct Sale {
///     day: u32,
///     shop: u16,
///     article: [u8; 6],
/// }
///
/// let (days, shops, articles) = ([1, 1, 2], [7, 7, 7], [*b"apples", *b"apples", *b"apples"]);
/// let sales = TypedTable::<Sale>::new(&Device::cpu(), 100)?;
/// let keys = sales.from_columns(&Columns::new().column::<u32>(&days).column::<u16>(&shops).column(&articles))?;
/// assert_eq!(keys[2], Sale { day: 2, shop: 7, article: *b"apples" });
/// assert_eq!(sales.find_or_put_many(&keys)?.complete(&sales)?.new, 2);
/// # Ok(()) }
/// ```
#[derive(Clone, Default)]
#[must_use = "columns are nothing until `Table::from_columns` makes vectors of them"]
pub struct Columns<'a> {
    /// For each column: its bytes, and the number of bytes of a field.
    columns: Vec<(&'a [u8], usize)>,
}

impl<'a> Columns<'a> {
    /// Returns an empty list of columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a column of fields of any plain data type. Fields of a vector lie one after another in the order of their columns,
    /// without gaps.
    pub fn column<T: NoUninit>(mut self, fields: &'a [T]) -> Self {
        self.columns.push((bytemuck::cast_slice(fields), size_of::<T>()));
        self
    }

    /// Bytes of the fields of one vector.
    pub fn bytes_per_vector(&self) -> usize {
        self.columns.iter().map(|(_, size)| size).sum()
    }

    /// Returns the number of vectors, or an error if columns have different numbers of fields.
    fn count(&self) -> Result<usize> {
        fields_of_each(self.columns.iter().filter(|(_, size)| *size > 0).map(|(bytes, size)| bytes.len() / size))
    }

    /// Returns the words of the vectors, `width` words each.
    fn words(&self, width: usize) -> Result<Vec<u32>> {
        let mut words = zeroed::<u32>(self.count()? * width)?;
        let mut pieces: Vec<&mut [u32]> = words.chunks_mut(PIECE_ROWS * width).collect();
        let starts: Vec<(usize, std::sync::Mutex<&mut [u32]>)> =
            pieces.drain(..).enumerate().map(|(piece, words)| (piece * PIECE_ROWS, std::sync::Mutex::new(words))).collect();
        Workers::get().run(starts.len(), |piece| {
            let (first, words) = &starts[piece];
            // Each piece is done once, so no thread waits for the lock.
            let mut words = words.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let rows: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
            let mut offset = 0;
            for (bytes, size) in &self.columns {
                if *size > 0 {
                    let fields = bytes[first * size..].chunks_exact(*size);
                    let to = rows.chunks_exact_mut(width * 4).map(|row| &mut row[offset..offset + size]);
                    to.zip(fields).for_each(|(to, field)| to.copy_from_slice(field));
                }
                offset += size;
            }
        });
        Ok(words)
    }
}

/// Returns the number of fields of each column, or an error if columns have different numbers of fields.
pub(crate) fn fields_of_each(mut columns: impl Iterator<Item = usize>) -> Result<usize> {
    let needed = columns.next().unwrap_or(0);
    match columns.find(|given| *given != needed) {
        Some(given) => Err(Error::LengthMismatch { what: "fields of a column", given, needed }),
        None => Ok(needed),
    }
}

impl fmt::Debug for Columns<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Columns").field("field_bytes", &self.columns.iter().map(|(_, size)| size).collect::<Vec<_>>()).finish()
    }
}

impl<K: Key, S: Storage> Table<K, S> {
    /// Makes vectors for this table from columns in host memory. Any call that takes a batch accepts the vectors. The library's
    /// threads copy the fields of each vector one after another. If these bytes are not whole words, zero bytes fill the last
    /// word.
    ///
    /// Each call copies the whole batch. For columns in device memory there is `from_columns_device`.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{BucketTable, Columns, Device};
    ///
    /// let table = BucketTable::new(&Device::cpu(), 3, 100)?;
    /// let words = table.from_columns(&Columns::new().column(&[1u64, 2]).column(&[7u32, 8]))?;
    /// assert_eq!(words, [1, 0, 7, /**/ 2, 0, 8]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LengthMismatch`](Error::LengthMismatch) if the columns differ in length, or if the fields of a vector do not have as
    /// many bytes as a key. In a table of words: if they have more bytes than `width` words, or at least 4 fewer.
    /// [`OutOfMemory`](Error::OutOfMemory).
    #[allow(clippy::wrong_self_convention, reason = "the table says how wide a vector is")]
    pub fn from_columns(&self, columns: &Columns<'_>) -> Result<Vec<K::Element>> {
        self.check_bytes_per_vector(columns.bytes_per_vector())?;
        Ok(elements(columns.words(self.width())?))
    }

    /// Returns an error unless fields of `given` bytes in all make up a vector of this table.
    pub(crate) fn check_bytes_per_vector(&self, given: usize) -> Result<()> {
        let needed = K::BYTES.unwrap_or(self.width() * 4);
        let fits = if K::BYTES.is_some() { given == needed } else { given.div_ceil(4) == self.width() };
        if fits { Ok(()) } else { Err(Error::LengthMismatch { what: "bytes of the fields of one vector", given, needed }) }
    }
}
