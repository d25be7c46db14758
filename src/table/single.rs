//! Calls for one vector: batches of one.

use super::key::words;
use super::{Key, Storage, Table};
use crate::core::table::WORDS;
use crate::{Error, Outcome, Reference, Request, Result};
use std::borrow::Cow;

impl<K: Key, S: Storage> Table<K, S> {
    /// Stores one vector if it is not stored yet, as [`find_or_put_many`](Self::find_or_put_many) followed by
    /// [`complete`](crate::Batch::complete) does. Returns [`New`](Outcome::New) or [`Seen`](Outcome::Seen), never
    /// [`Full`](Outcome::Full).
    ///
    /// `vector`: a key, or a slice of `width` words.
    ///
    /// Costs a whole call: some 150 to 250 ns on a CPU; on a GPU two copies, a kernel and a wait. Offer many vectors by
    /// [`insert_many`](Self::insert_many), [`find_or_put_many`](Self::find_or_put_many) or [`extend`](Self::extend).
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{BucketTable, Device, Outcome, TypedTable};
    ///
    /// let table = TypedTable::<[u32; 2]>::new(&Device::cpu(), 100)?;
    /// assert_eq!(table.insert(&[1, 2])?, Outcome::New);
    /// assert_eq!(table.insert(&[1, 2])?, Outcome::Seen);
    ///
    /// let words = BucketTable::new(&Device::cpu(), 2, 100)?;
    /// assert_eq!(words.insert(&[1, 2])?, Outcome::New);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`TableFull`](Error::TableFull) if the vector finds no free slot: it is not stored, and nothing has changed.
    /// [`LengthMismatch`](Error::LengthMismatch) if `vector` does not have `width` words. Otherwise the errors of
    /// [`find_or_put_many`](Self::find_or_put_many).
    pub fn insert(&self, vector: &K::Borrowed) -> Result<Outcome> {
        let tally = self.raw.find_or_put(&self.words_of_one(vector)?, Request::new(), None)?.complete(self)?;
        Ok(if tally.new == 1 { Outcome::New } else { Outcome::Seen })
    }

    /// Returns whether a vector is stored. Costs as much as [`insert`](Self::insert); for many vectors use
    /// [`contains_many`](Self::contains_many).
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// let table = warpset::TypedTable::<u64>::new(&warpset::Device::cpu(), 100)?;
    /// table.insert(&7)?;
    /// assert!(table.contains(&7)? && !table.contains(&8)?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LengthMismatch`](Error::LengthMismatch) if `vector` does not have `width` words; the errors of
    /// [`contains_many`](Self::contains_many).
    pub fn contains(&self, vector: &K::Borrowed) -> Result<bool> {
        self.raw.contains_one(&self.words_of_one(vector)?)
    }

    /// Returns the reference to a vector, or `None` if it is not stored. Costs as much as [`insert`](Self::insert); for many
    /// vectors use [`locate_many`](Self::locate_many).
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{Device, Indexed, TypedTable};
    ///
    /// let table = TypedTable::<u64, Indexed>::new(&Device::cpu(), 100)?;
    /// table.extend([30, 40])?;
    /// let forty = table.locate(&40)?.unwrap();
    /// assert_eq!(table.get(forty)?, 40);
    /// assert_eq!(table.locate(&50)?, None);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LengthMismatch`](Error::LengthMismatch) if `vector` does not have `width` words; the errors of
    /// [`locate_many`](Self::locate_many).
    pub fn locate(&self, vector: &K::Borrowed) -> Result<Option<Reference>> {
        Ok(self.raw.locate("locate", &self.words_of_one(vector)?)?[0])
    }

    /// Returns the vector at a reference. Costs as much as [`insert`](Self::insert); for many references use
    /// [`get_many`](Self::get_many).
    ///
    /// # Errors
    ///
    /// The errors of [`get_many`](Self::get_many).
    pub fn get(&self, reference: Reference) -> Result<K::Owned> {
        Ok(K::owned(&self.raw.get("get", &[reference])?))
    }

    /// Returns the words of one vector, or an error if it does not have `width` words.
    fn words_of_one<'a>(&self, vector: &'a K::Borrowed) -> Result<Cow<'a, [u32]>> {
        let words = words(K::as_elements(vector));
        match words.len() == self.width() {
            true => Ok(words),
            false => Err(Error::LengthMismatch { what: WORDS, given: words.len(), needed: self.width() }),
        }
    }
}
