use super::{Indexed, Key, Reference, Table};
use crate::core::values::{Array, Viewed};
use crate::{Error, Result};
use bytemuck::Pod;
use std::fmt;
use std::ops::Deref;

/// Values beside the vectors of an [`IndexedTable`](crate::IndexedTable): one for each reference; see
/// [`Table::by_reference`](crate::Table::by_reference). A table and such an array are a map.
///
/// An array on the table's device, indexed by the number of a reference ([`Reference::slot`]). The value of a vector is zeros
/// (all bytes) until somebody sets it, and stays with it as long as its reference is good:
///
/// | the table | its values |
/// |---|---|
/// | takes more vectors | those of the new ones are zeros |
/// | grows, by itself or not | stay, where they are: there are addresses for all that it may become |
/// | closes holes | stay; rows move before anybody knows their references, so no value does |
/// | is [truncated](crate::Table::truncate) | stay below the mark; those of the others are zeros, also when their numbers are given again |
/// | is cleared | are all zeros (also if that ends in an error) |
/// | is dropped | stay, and keep its memory, until they are dropped themselves |
///
/// References are checked in every call, before anything is read or changed: those of another table, or of before a `clear`, are
/// [`StaleReferences`](Error::StaleReferences), those to no stored vector (holes, and what was truncated) are
/// [`InvalidReferences`](Error::InvalidReferences).
///
/// # Concurrency
///
/// `Send + Sync`. Whoever changes values borrows the array exclusively, but not the table: any number of threads may put vectors
/// meanwhile. While a host call on values is under way, batches of others [leave holes](crate::Table::holes). Calls wait for
/// `clear`, `grow` and `truncate` and hold them up, as all that use the table do; on a GPU, they wait for all its work that was
/// submitted before. Kernels that change values: `device`.
///
/// # Memory
///
/// [`bytes`](Self::bytes), besides [`Table::bytes`](crate::Table::bytes). On a CPU, for all numbers that the table can give, of
/// which the system takes memory only for those in use; on a GPU for those in use, and some more, or for all when kernels use
/// them. When the table has grown, an array takes more memory at its next call; if there is none, that call is an error.
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::{Device, IndexedTable, Request};
///
/// let table = IndexedTable::builder(1).capacity(64).grows(true).build(&Device::cpu())?;
/// let mut counts = table.by_reference::<u32>()?;
/// for words in [[7, 8, 7], [8, 7, 9]] {
///     let batch = table.find_or_put_many_with(&words, Request::new().references(true))?;
///     let references: Vec<_> = batch.references.into_iter().flatten().collect();
///     counts.update_many(&references, |_, count| *count += 1)?;
/// }
/// let seven = table.locate_many(&[7])?[0].unwrap();
/// assert_eq!(counts.get_many(&[seven])?, [3]);
/// for (vector, count) in table.rows()?.iter().zip(counts.view()?.iter()) {
///     println!("{vector}: {count} times");
/// }
/// # Ok(()) }
/// ```
pub struct Values<V> {
    pub(crate) array: Array<V>,
}

const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Values<u64>>();
};

impl<K: Key> Table<K, Indexed> {
    /// A value of type `V` for each vector, zeros until it is set: [`Values`]. A table may have any number of such arrays, each
    /// by itself; this makes a new one.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # use warpset::Request;
    /// # let table = warpset::IndexedTable::new(&warpset::Device::cpu(), 1, 100)?;
    /// let mut levels = table.by_reference::<u8>()?;
    /// let batch = table.find_or_put_many_with(&[5, 6], Request::new().new_references(true))?;
    /// levels.set_many(&batch.new_references, &[1, 1])?;
    /// assert_eq!(levels.view()?[..], [1, 1]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`](Error::OutOfMemory), [`Allocation`](Error::Allocation), or what the device reports.
    pub fn by_reference<V: Pod>(&self) -> Result<Values<V>> {
        Ok(Values { array: Array::new(&self.raw)? })
    }
}

impl<V: Pod> Values<V> {
    /// The values at these references, in their order.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # use warpset::Request;
    /// # let table = warpset::IndexedTable::new(&warpset::Device::cpu(), 1, 100)?;
    /// let values = table.by_reference::<f32>()?;
    /// let batch = table.find_or_put_many_with(&[5, 6], Request::new().new_references(true))?;
    /// assert_eq!(values.get_many(&batch.new_references)?, [0.0, 0.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`StaleReferences`](Error::StaleReferences), [`InvalidReferences`](Error::InvalidReferences),
    /// [`OutOfMemory`](Error::OutOfMemory), [`Allocation`](Error::Allocation), or what the device reports.
    pub fn get_many(&self, references: &[Reference]) -> Result<Vec<V>> {
        self.array.get(references)
    }

    /// Sets the values at these references, to `values` in the same order. Of several for one reference the last counts.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # use warpset::Request;
    /// # let table = warpset::IndexedTable::new(&warpset::Device::cpu(), 1, 100)?;
    /// let mut values = table.by_reference::<[u8; 3]>()?;
    /// let batch = table.find_or_put_many_with(&[5, 6], Request::new().references(true))?;
    /// let six = batch.references[1].unwrap();
    /// values.set_many(&[six], &[[1, 2, 3]])?;
    /// assert_eq!(values.get_many(&[six])?, [[1, 2, 3]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Rows`](Error::Rows) unless there are as many values as references; otherwise as [`get_many`](Self::get_many). If the GPU
    /// fails while values are written, some may be.
    pub fn set_many(&mut self, references: &[Reference], values: &[V]) -> Result<()> {
        if values.len() != references.len() {
            return Err(Error::Rows { what: "values", given: values.len(), needed: references.len() });
        }
        self.array.change("Values::set_many", references, false, |at, value| *value = values[at])
    }

    /// Calls `update` for each reference, in order, with its position and its value, to be changed. A reference that is there
    /// several times is as often updated, each time from what the time before has left.
    ///
    /// By the calling thread. From a GPU the values are copied, each once, and back.
    ///
    /// `update` may call the table, but what waits for it is an error, as in [`update`](Self::update).
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # use warpset::Request;
    /// # let table = warpset::IndexedTable::new(&warpset::Device::cpu(), 1, 100)?;
    /// let mut first_and_count = table.by_reference::<[u32; 2]>()?;
    /// let batch = table.find_or_put_many_with(&[5, 6, 5], Request::new().references(true))?;
    /// let references: Vec<_> = batch.references.into_iter().flatten().collect();
    /// first_and_count.update_many(&references, |at, [first, count]| {
    ///     if *count == 0 {
    ///         *first = at as u32;
    ///     }
    ///     *count += 1;
    /// })?;
    /// assert_eq!(first_and_count.view()?[..], [[0, 2], [1, 1]]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`set_many`](Self::set_many), before `update` is called but for what the GPU reports when values are written.
    pub fn update_many(&mut self, references: &[Reference], update: impl FnMut(usize, &mut V)) -> Result<()> {
        self.array.change("Values::update_many", references, true, update)
    }

    /// All values as one slice: that of the vector of number i is the i-th. As many as [`rows`](crate::Table::rows) has vectors:
    /// if there are [holes](crate::Table::holes), those before the first.
    ///
    /// On a CPU this is the array itself. While it lives vectors may be put, whose values it does not show. From a GPU the values
    /// are copied, and nothing waits for the copy.
    ///
    /// Calls that wait until it is dropped: `clear`, `grow`, `reserve` that grows, `save`, `save_file` and `truncate` of the
    /// table. Of the thread that has it they are the error [`SelfDeadlock`](Error::SelfDeadlock), and so, in
    /// [`Batch::error`](crate::Batch::error), is a growth by itself: as for [`rows`](crate::Table::rows).
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::IndexedTable::new(&warpset::Device::cpu(), 1, 100)?;
    /// let values = table.by_reference::<u64>()?;
    /// table.find_or_put_many(&[5, 6])?.complete(&table)?;
    /// assert_eq!(values.view()?[..], [0, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`OutOfMemory`](Error::OutOfMemory), [`Allocation`](Error::Allocation), or what the device reports.
    pub fn view(&self) -> Result<ValuesView<'_, V>> {
        Ok(ValuesView { values: self.array.view()? })
    }

    /// Calls `update` with the slice that [`view`](Self::view) would show, to be changed, and gives what it returns. From a GPU
    /// the values are copied, and back.
    ///
    /// Calls that wait until `update` returns: `clear`, `grow`, `reserve` that grows, `save`, `save_file` and `truncate` of the
    /// table. `update` itself gets the error [`SelfDeadlock`](Error::SelfDeadlock) from them, and so, in
    /// [`Batch::error`](crate::Batch::error), does a batch of its own that would make the table grow. It may make all other
    /// calls. It must not wait for another thread that uses the table.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::IndexedTable::new(&warpset::Device::cpu(), 1, 100)?;
    /// let mut marks = table.by_reference::<u8>()?;
    /// table.find_or_put_many(&[5, 6, 7])?.complete(&table)?;
    /// marks.update(|marks| marks[1..].fill(9))?;
    /// assert_eq!(marks.view()?[..], [0, 9, 9]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`view`](Self::view); if the GPU fails while values are written, some may be.
    pub fn update<R>(&mut self, update: impl FnOnce(&mut [V]) -> R) -> Result<R> {
        self.array.update(update)
    }

    /// How many numbers the table has given: one more than the highest reference, or several if there are holes at the end. Exact
    /// as [`Table::len`](crate::Table::len) is, which it equals if there are no holes.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::IndexedTable::new(&warpset::Device::cpu(), 1, 100)?;
    /// let values = table.by_reference::<u64>()?;
    /// table.find_or_put_many(&[5, 6])?.complete(&table)?;
    /// assert_eq!(values.len()?, 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// What the device reports.
    pub fn len(&self) -> Result<u64> {
        self.array.len()
    }

    /// Whether the table has given no number.
    ///
    /// # Errors
    ///
    /// What the device reports.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Bytes of memory that the values have.
    pub fn bytes(&self) -> u64 {
        self.array.bytes()
    }
}

impl<V: Pod> fmt::Debug for Values<V> {
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
