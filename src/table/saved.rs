//! Saving tables, and loading them.

use super::{Key, Reference, Storage, Table};
use crate::core::table::RawTable;
use crate::{Device, Result};
use std::io::{Read, Write};
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

/// Saving and loading: [Files](crate::files) says what is kept, and describes the format.
impl<K: Key, S: Storage> Table<K, S> {
    /// Writes the table, as it is at one moment: vectors, references, and how it was built.
    ///
    /// Waits for operations under way (on a GPU, for all its streams), and holds up those that come until it has returned.
    /// Kernels of yours must not put into the table meanwhile. Nothing is buffered: bytes are written in blocks of a mebibyte,
    /// and `to` is flushed at the end. Takes no memory but two pieces of 8 MiB of pinned memory, if the table is on a GPU.
    ///
    /// The writer must not use the table: all calls of other threads wait until the table is saved, and those that the writer
    /// itself makes are the error [`SelfDeadlock`](crate::Error::SelfDeadlock). Only [`slots`](Table::slots),
    /// [`spec`](Table::spec), [`bytes`](Table::bytes) and [`reference`](Table::reference) answer.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{BucketTable, Device};
    ///
    /// let table = BucketTable::new(&Device::cpu(), 2, 100)?;
    /// table.find_or_put_many(&[1, 2, /**/ 3, 4])?.complete(&table)?;
    /// let mut bytes = Vec::new();
    /// table.save(&mut bytes)?;
    /// let loaded = BucketTable::load(&Device::cpu_with_threads(2), &bytes[..])?;
    /// assert_eq!(loaded.contains_many(&[3, 4, /**/ 5, 6])?, [true, false]);
    /// assert_eq!((loaded.len()?, loaded.slots()), (2, table.slots()));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SelfDeadlock`](crate::Error::SelfDeadlock) before anything is written; [`Io`](crate::Error::Io), with what the writer
    /// says, or what the device reports: the table is as it was, and any part of the bytes may be written.
    pub fn save(&self, to: impl Write) -> Result<()> {
        self.raw.save(to)
    }

    /// Writes the table to a file, which is complete or not there: the bytes are written beside it, synchronised with the disk,
    /// and then given its name. A file that had this name is replaced at that moment. After an error it is as it was, with one
    /// exception, which the error names: it was replaced, but its folder could not be synchronised with the disk
    /// ([Replacing a file](crate::files#replacing-a-file)).
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{Device, Error, FileFault, RootTable, TreeTable};
    ///
    /// let table = TreeTable::new(&Device::cpu(), 4, 100)?;
    /// table.find_or_put_many(&[1, 2, 3, 4])?.complete(&table)?;
    /// let path = std::env::temp_dir().join(format!("warpset-{}.table", std::process::id()));
    /// table.save_file(&path)?;
    /// assert_eq!(TreeTable::load_file(&Device::cpu(), &path)?.len()?, 1);
    /// let error = RootTable::load_file(&Device::cpu(), &path).unwrap_err();
    /// assert!(matches!(error, Error::File { fault: FileFault::OtherTable { .. } }));
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`save`](Self::save).
    pub fn save_file(&self, path: impl AsRef<Path>) -> Result<()> {
        self.raw.save_file(path.as_ref())
    }

    /// The table that was saved, on any device: with its slots, nodes and seeds, and `grows` as it was built with. It must be of
    /// this kind and width.
    ///
    /// Reads what [`save`](Self::save) has written and no byte more, in blocks of up to a mebibyte. Memory is taken only after
    /// the header was found to be whole, and of a table that the device has memory for.
    ///
    /// Between machines whose slots lie otherwise (those that claim 8 bytes at once, and those that claim 16) bucket and tree
    /// tables are made anew from what is stored, which takes as long as to put it, and of a tree table memory for its roots
    /// twice. They may get more slots then, and [references](Self::loaded_references) are not kept.
    ///
    /// # Errors
    ///
    /// [`File`](crate::Error::File) says what is wrong with the bytes, and where, [`Io`](crate::Error::Io) what the reader says.
    /// [`OutOfMemory`](crate::Error::OutOfMemory), or what the device reports. There is no table then, and nothing is left of it.
    pub fn load(device: &Device, from: impl Read) -> Result<Self> {
        Ok(Self::of_raw(RawTable::load(device, &S::CHOICE, K::WIDTH, from, None)?))
    }

    /// The same from a file, which must hold nothing but the table. Sees by its length whether it is complete, before memory is
    /// taken for it.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn load_file(device: &Device, path: impl AsRef<Path>) -> Result<Self> {
        Ok(Self::of_raw(RawTable::load_file(device, &S::CHOICE, K::WIDTH, path.as_ref())?))
    }

    /// References to the table that was saved, as references to this one, which was loaded: each is to the same vector, in the
    /// slot of the same number.
    ///
    /// A loaded table has a generation of its own: it is another table than the one that was saved, and may be loaded twice. So
    /// references from before are stale in it until they have gone through this function. Keep them as
    /// [`to_bits`](Reference::to_bits) says, beside the table.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{BucketTable, Device, Error, Reference};
    ///
    /// let table = BucketTable::new(&Device::cpu(), 2, 100)?;
    /// table.find_or_put_many(&[5, 6])?.complete(&table)?;
    /// let (mut bytes, bits) = (Vec::new(), table.locate_many(&[5, 6])?[0].unwrap().to_bits());
    /// table.save(&mut bytes)?;
    ///
    /// let loaded = BucketTable::load(&Device::cpu(), &bytes[..])?;
    /// let saved = Reference::from_bits(bits).unwrap();
    /// assert!(matches!(loaded.get_many(&[saved]), Err(Error::StaleReferences { .. })));
    /// let now = loaded.loaded_references(&[saved])?;
    /// assert_eq!(loaded.get_many(&now)?, [5, 6]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`StaleReferences`](crate::Error::StaleReferences) if some are not of the table as it was when it was saved; or all, if
    /// this one has changed its generation since it was loaded (an [`IndexedTable`](crate::IndexedTable) does not by growing), if
    /// it was not loaded, or if its slots lie otherwise than those that were saved ([`load`](Self::load)).
    pub fn loaded_references(&self, saved: &[Reference]) -> Result<Vec<Reference>> {
        self.raw.loaded_references(saved)
    }

    fn of_raw(raw: RawTable) -> Self {
        Self { raw: Arc::new(raw), marker: PhantomData }
    }
}
