use super::key::words;
use super::{Batch, Indexed, Key, Reference, Request, Table};
use crate::core::values::{Array, Viewed};
use crate::layout::upsert::{Combine, Number};
use crate::{Error, Result};
use bytemuck::Pod;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

/// Values associated with the vectors of an [`IndexedTable`](crate::IndexedTable): one for each reference; see
/// [`Table::values`](crate::Table::values). A table and such an array form a map.
///
/// The values are an array on the table's device, indexed by the number of a reference ([`Reference::slot`]). Each value is the
/// initial one, given to [`values`](crate::Table::values), until it is set. A value belongs to its vector as long as the vector's
/// reference is valid:
///
/// | the table | its values |
/// |---|---|
/// | takes more vectors | those of the new vectors are initial ones |
/// | grows, by itself or not | stay where they are: addresses are reserved for as many values as the table can ever have |
/// | closes holes | stay: the rows that move have no values, because no caller has a reference to them yet |
/// | is [truncated](crate::Table::truncate) | stay below the mark; above it they become initial ones, also if the table assigns these numbers again |
/// | is cleared | are all initial ones (also if that ends in an error) |
/// | [retains](crate::Table::retain) some vectors | move with their vectors, which get other numbers |
/// | is dropped | stay, and keep its memory, until they are dropped themselves |
///
/// Every call checks references before it reads or changes anything. References of another table, or from before a `clear`, are
/// [`StaleReferences`](Error::StaleReferences). References to no stored vector (holes, and truncated vectors) are
/// [`InvalidReferences`](Error::InvalidReferences).
///
/// # Concurrency
///
/// `Send + Sync`. Changing values borrows the array exclusively, but not the table: any number of threads may put vectors at the
/// same time. During a host call on values, batches of other threads [leave holes](crate::Table::holes). Like all operations on
/// the table, calls on values wait for `clear`, growth and `truncate`, and these wait for calls on values. On a GPU, calls on
/// values also wait for all work that was submitted to the GPU before. For kernels that change values, see `device`.
///
/// # Memory
///
/// Values take [`bytes`](Self::bytes), in addition to [`Table::bytes`](crate::Table::bytes). On a CPU the array spans all numbers
/// that the table can assign, and the system provides memory only for those in use. On a GPU the array has memory for the numbers
/// in use and some more, or for all numbers when kernels use the values. After the table has grown, the next call on an array
/// allocates more memory for it, and fails if there is none.
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::{Device, IndexedTable};
///
/// let table = IndexedTable::builder(1).capacity(64).grows(true).build(&Device::cpu())?;
/// let mut counts = table.values(0u32)?;
/// for words in [[7, 8, 7], [8, 7, 9]] {
///     counts.add_many(&words, &[1])?.complete(&table)?; // puts the words, and adds 1 for each
/// }
/// let seven = table.locate_many(&[7])?[0].unwrap();
/// assert_eq!(counts.get_many(&[seven])?, [3]);
/// for (vector, count) in table.rows()?.iter().zip(counts.view()?.iter()) {
///     println!("{vector}: {count} times");
/// }
/// # Ok(()) }
/// ```
pub struct Values<K: Key, V> {
    pub(crate) array: Array<V>,
    keys: PhantomData<fn(K)>,
}

const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Values<super::Words, u64>>();
};

impl<K: Key> Table<K, Indexed> {
    /// Makes a new array of [`Values`], one for each vector. Each value is `initial` until it is set: for example 0 for sums, or
    /// the largest number for minima. A table may have any number of independent arrays.
    ///
    /// If `initial` is not all zero bytes, it is written to the array as numbers are used. [`Values::upsert_many`] and
    /// `Values::device` write it for all numbers that the table can assign. On a GPU it is copied from the host.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{Combine, Device, Indexed, Request, TypedTable};
    ///
    /// let nodes = TypedTable::<u64, Indexed>::builder().capacity(100).grows(true).build(&Device::cpu())?;
    /// let mut levels = nodes.values(0u8)?;
    /// let batch = nodes.find_or_put_many_with(&[5, 6], Request::new().new_references(true))?;
    /// levels.set_many(&batch.new_references, &[1, 1])?;
    /// assert_eq!(levels.view()?[..], [1, 1]);
    ///
    /// let mut distances = nodes.values(u32::MAX)?;
    /// distances.upsert_many(&[7, 8, 7], &[5, 6, 4], Combine::Min)?.complete(&nodes)?;
    /// assert_eq!(distances.get_many(&[nodes.locate(&7)?.unwrap()])?, [4]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`](Error::OutOfMemory), or errors that the device reports.
    pub fn values<V: Pod>(&self, initial: V) -> Result<Values<K, V>> {
        Ok(Values { array: Array::new(&self.raw, initial)?, keys: PhantomData })
    }
}

impl<K: Key, V: Pod> Values<K, V> {
    /// Returns the values at these references, in their order.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # use warpset::Request;
    /// # let table = warpset::IndexedTable::new(&warpset::Device::cpu(), 1, 100)?;
    /// let values = table.values(0.0f32)?;
    /// let batch = table.find_or_put_many_with(&[5, 6], Request::new().new_references(true))?;
    /// assert_eq!(values.get_many(&batch.new_references)?, [0.0, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`StaleReferences`](Error::StaleReferences), [`InvalidReferences`](Error::InvalidReferences),
    /// [`OutOfMemory`](Error::OutOfMemory), or errors that the device reports.
    pub fn get_many(&self, references: &[Reference]) -> Result<Vec<V>> {
        self.array.get(references)
    }

    /// Sets the values at these references to `values`, in the same order. If a reference occurs several times, its last value
    /// counts.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # use warpset::Request;
    /// # let table = warpset::IndexedTable::new(&warpset::Device::cpu(), 1, 100)?;
    /// let mut values = table.values([0u8; 3])?;
    /// let batch = table.find_or_put_many_with(&[5, 6], Request::new().references(true))?;
    /// let six = batch.references[1].unwrap();
    /// values.set_many(&[six], &[[1, 2, 3]])?;
    /// assert_eq!(values.get_many(&[six])?, [[1, 2, 3]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LengthMismatch`](Error::LengthMismatch) if the numbers of values and references differ; otherwise the errors of
    /// [`get_many`](Self::get_many). If the GPU fails while values are written, some may have been written.
    pub fn set_many(&mut self, references: &[Reference], values: &[V]) -> Result<()> {
        if values.len() != references.len() {
            return Err(Error::LengthMismatch { what: "values", given: values.len(), needed: references.len() });
        }
        self.array.change("Values::set_many", references, false, |at, value| *value = values[at])
    }

    /// Calls `update` for each reference, in order, with its position and mutable access to its value. A reference that occurs
    /// several times is updated each time, starting from the previous result.
    ///
    /// The calling thread runs `update`. On a GPU the values are copied to the host, each once, and back.
    ///
    /// `update` may call the table, but calls that need the table alone are errors, as in [`update`](Self::update).
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # use warpset::Request;
    /// # let table = warpset::IndexedTable::new(&warpset::Device::cpu(), 1, 100)?;
    /// let mut first_and_count = table.values([0u32; 2])?;
    /// let batch = table.find_or_put_many_with(&[5, 6, 5], Request::new().references(true))?;
    /// let references: Vec<_> = batch.references.into_iter().flatten().collect();
    /// first_and_count.update_many(&references, |at, [first, count]| {
    ///     if *count == 0 {
    ///         *first = at as u32;
    ///     }
    ///     *count += 1;
    /// })?;
    /// assert_eq!(first_and_count.get_many(&references)?, [[0, 2], [1, 1], [0, 2]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`set_many`](Self::set_many). All occur before `update` is called, except those that the GPU reports when
    /// values are written.
    pub fn update_many(&mut self, references: &[Reference], update: impl FnMut(usize, &mut V)) -> Result<()> {
        self.array.change("Values::update_many", references, true, update)
    }

    /// Puts keys into the values' table, and adds an amount to the value of each key: one call counts or sums. Same as
    /// [`upsert_many`](Self::upsert_many) with [`Combine::Add`].
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{Device, Indexed, TypedTable};
    ///
    /// let words = TypedTable::<[u8; 4], Indexed>::builder().capacity(100).grows(true).build(&Device::cpu())?;
    /// let mut counts = words.values(0u32)?;
    /// let tally = counts.add_many(&[*b"tick", *b"tack", *b"tick"], &[1])?.complete(&words)?;
    /// assert_eq!(tally.new, 2);
    /// for (word, count) in words.rows()?.iter().zip(counts.view()?.iter()) {
    ///     assert_eq!(*count, if word == b"tick" { 2 } else { 1 });
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`upsert_many`](Self::upsert_many).
    pub fn add_many(&mut self, keys: &[K::Element], amounts: &[V]) -> Result<Batch>
    where
        V: Number,
    {
        self.upsert_many(keys, amounts, Combine::Add)
    }

    /// Puts keys into the values' table, and combines an operand with the value of each key. On a GPU one kernel per segment does
    /// both.
    ///
    /// `keys`: any number of vectors of `width` words, or keys, one after another; duplicates are allowed. `operands`: one for
    /// each key, in the same order, or a single one for all keys. The operand of a new key is combined with the initial value.
    ///
    /// Each operand counts exactly once, also if the table grows during the call. The order is unspecified: sums of
    /// floating-point numbers may differ in the last bits from call to call, and [`Combine::Set`] leaves one of the operands of
    /// equal keys. Returns the batch, with the outcome of each key. A key that is [`Full`](crate::Outcome::Full) has changed no
    /// value: offer it and its operand again. Blocks until all is done.
    ///
    /// The array gets memory for all numbers that the table can assign now; on a CPU the system provides memory only for those in
    /// use.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # use warpset::{Combine, Device, Indexed, TypedTable};
    /// let keys = TypedTable::<u64, Indexed>::builder().capacity(100).grows(true).build(&Device::cpu())?;
    /// let mut highest = keys.values(0.0f32)?;
    /// highest.upsert_many(&[7, 8, 7], &[0.5, 0.25, 2.0], Combine::Max)?.complete(&keys)?;
    /// assert_eq!(highest.get_many(&[keys.locate(&7)?.unwrap()])?, [2.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Before anything is put: [`LengthMismatch`](Error::LengthMismatch) if the keys are not whole vectors, or there are neither
    /// as many operands as keys nor one.
    ///
    /// Otherwise the errors of [`find_or_put_many`](crate::Table::find_or_put_many) and [`get_many`](Self::get_many). After such
    /// an error some keys may be stored and their operands combined, and others not. On a GPU also
    /// [`OutOfMemory`](Error::OutOfMemory) after all keys were put, if values cannot move with rows that close holes: these
    /// values are lost. Other errors after the keys were put are in [`Batch::error`](crate::Batch::error).
    pub fn upsert_many(&mut self, keys: &[K::Element], operands: &[V], combine: Combine) -> Result<Batch>
    where
        V: Number,
    {
        self.array.upsert(&words(keys), operands, combine, Request::new().outcomes(true))
    }

    /// Returns all values as one slice: element i is the value of the vector with number i. The slice is as long as
    /// [`rows`](crate::Table::rows): if there are [holes](crate::Table::holes), it ends before the first one.
    ///
    /// On a CPU the slice is the array itself. Vectors may be put while the slice is borrowed; the slice does not show their
    /// values. Until the view is dropped, its thread [holds the table](crate::threads_and_streams#what-a-thread-holds), as with
    /// [`rows`](crate::Table::rows).
    ///
    /// On a GPU the values are copied. No call waits for the copy to be dropped, and its thread does not hold the table.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::IndexedTable::new(&warpset::Device::cpu(), 1, 100)?;
    /// let values = table.values(0u64)?;
    /// table.find_or_put_many(&[5, 6])?.complete(&table)?;
    /// assert_eq!(values.view()?[..], [0, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`](Error::OutOfMemory), or errors that the device reports.
    pub fn view(&self) -> Result<ValuesView<'_, V>> {
        Ok(ValuesView { values: self.array.view()? })
    }

    /// Calls `update` with a mutable slice of the values that [`view`](Self::view) shows, and returns its result. On a GPU the
    /// values are copied to the host and back.
    ///
    /// Until `update` returns, the calling thread [holds the table](crate::threads_and_streams#what-a-thread-holds), as with
    /// [`rows`](crate::Table::rows): in `update`, calls that need the table alone are errors, and batches do not make the table
    /// grow. `update` must not wait for another thread that uses the table.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::IndexedTable::new(&warpset::Device::cpu(), 1, 100)?;
    /// let mut marks = table.values(0u8)?;
    /// table.find_or_put_many(&[5, 6, 7])?.complete(&table)?;
    /// marks.update(|marks| marks[1..].fill(9))?;
    /// assert_eq!(marks.view()?[..], [0, 9, 9]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`view`](Self::view). If the GPU fails while values are written, some may have been written.
    pub fn update<R>(&mut self, update: impl FnOnce(&mut [V]) -> R) -> Result<R> {
        self.array.update(update)
    }

    /// Number of reference numbers that the table has assigned: one more than the highest reference, or several more if there are
    /// holes at the end. Exact under the condition given at [`Table::len`](crate::Table::len), and equal to `Table::len` if there
    /// are no holes.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::IndexedTable::new(&warpset::Device::cpu(), 1, 100)?;
    /// let values = table.values(0u64)?;
    /// table.find_or_put_many(&[5, 6])?.complete(&table)?;
    /// assert_eq!(values.len()?, 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Errors that the device reports.
    pub fn len(&self) -> Result<u64> {
        self.array.len()
    }

    /// Whether the table has assigned no number.
    ///
    /// # Errors
    ///
    /// Errors that the device reports.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Bytes of memory that the values occupy.
    pub fn bytes(&self) -> u64 {
        self.array.bytes()
    }
}

impl<K: Key, V: Pod> fmt::Debug for Values<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Values").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

/// The values of an indexed table as one slice; see [`Values::view`].
pub struct ValuesView<'a, V> {
    values: Viewed<'a, V>,
}

impl<V> Deref for ValuesView<'_, V> {
    type Target = [V];

    fn deref(&self) -> &[V] {
        match &self.values {
            Viewed::InPlace { values, .. } => values,
            Viewed::Copied(values) => values,
        }
    }
}

impl<V> fmt::Debug for ValuesView<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValuesView").field("len", &self.len()).finish_non_exhaustive()
    }
}
