use super::key::borrowed_elements;
use super::{Key, Storage, Table};
use crate::Result;

impl<K: Key, S: Storage> Table<K, S> {
    /// Removes the vectors for which `keep` returns false: rebuilds the table with the other vectors, at the same size. Returns
    /// the number of vectors removed.
    ///
    /// The calling thread calls `keep` once for each vector, in no order (for an [`IndexedTable`](crate::IndexedTable), in the
    /// order of references). On a GPU the vectors are copied to the host, 4 MiB at a time, and the vectors that stay are copied
    /// back (for an indexed table, only their numbers). If a kernel of yours makes the choice, use `retain_marked`. Waits for
    /// running operations (on a GPU, for all its streams) and blocks new ones. Needs memory for the old and the new table at
    /// once.
    ///
    /// | | afterwards |
    /// |---|---|
    /// | references | stale. (If no vector is removed nothing changes, and they stay valid.) |
    /// | an [`IndexedTable`](crate::IndexedTable) | the vectors that stay keep their order and get the numbers from 0 on, without holes |
    /// | its [values](crate::Values) | move with their vectors, at the array's next use; on a GPU by way of the host |
    /// | nodes of a tree table | those that no vector needs any more are gone |
    /// | arguments for kernels of your own | not valid any more |
    ///
    /// There is no call that removes single vectors: searches end at an empty slot, and the proof that each vector is stored once
    /// rests on slots that never become empty.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{BucketTable, Device, TypedTable};
    ///
    /// let keys = TypedTable::<u64>::from_iter(&Device::cpu(), 0..1000)?;
    /// assert_eq!(keys.retain(|key| key % 3 == 0)?, 666);
    /// assert_eq!(keys.contains_many(&[3, 4])?, [true, false]);
    ///
    /// let words = BucketTable::from_iter(&Device::cpu(), 2, [[1, 2], [3, 4]])?;
    /// assert_eq!(words.retain(|vector| vector[1] > 2)?, 1);
    /// # Ok(()) }
    /// ```
    ///
    /// To choose vectors of an [`IndexedTable`](crate::IndexedTable) by their values, go through the values in the order of
    /// references:
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{Device, Indexed, TypedTable};
    ///
    /// let words = TypedTable::<[u8; 4], Indexed>::builder().capacity(100).grows(true).build(&Device::cpu())?;
    /// let mut counts = words.values(0u32)?;
    /// counts.add_many(&[*b"tick", *b"tack", *b"tick"], &[1])?.complete(&words)?;
    /// let often: Vec<bool> = counts.view()?.iter().map(|count| *count > 1).collect();
    /// let mut of_rows = often.into_iter();
    /// assert_eq!(words.retain(|_| of_rows.next() == Some(true))?, 1);
    /// assert_eq!((&words.rows()?[..], &counts.view()?[..]), (&[*b"tick"][..], &[2][..]));
    /// # Ok(()) }
    /// ```
    ///
    /// `keep` may ask for sizes ([`slots`](Self::slots)); other calls of `keep` on the table return the error
    /// [`SelfDeadlock`](crate::Error::SelfDeadlock). If `keep` panics, the table is unchanged.
    ///
    /// # Errors
    ///
    /// [`SelfDeadlock`](crate::Error::SelfDeadlock), [`OutOfMemory`](crate::Error::OutOfMemory), or errors that the device
    /// reports. [`TableFull`](crate::Error::TableFull) if the table is nearly full and a vector that stays, put in another order
    /// than before, finds no free slot: grow it first. After an error the table is as it was.
    pub fn retain(&self, mut keep: impl FnMut(&K::Borrowed) -> bool) -> Result<u64> {
        let width = self.width();
        self.raw.retain(&mut |words, flags| {
            let elements = borrowed_elements::<K::Element>(words);
            flags.extend((0..words.len() / width).map(|at| keep(K::nth(&elements, at, width))));
        })
    }
}
