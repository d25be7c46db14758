//! Saving tables, and loading them.

use super::{Key, Reference, Storage, Table};
use crate::core::table::RawTable;
use crate::{Device, Result};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

/// Saving and loading: [Files](crate::files) says what is kept, and describes the format.
impl<K: Key, S: Storage> Table<K, S> {
    /// Writes the table, as it is at one moment: vectors, references, and its build options, except the limit of memory and the
    /// filter.
    ///
    /// Waits for running operations (on a GPU, for all its streams), and blocks new ones until it returns. Kernels of yours must
    /// not put into the table during the call. Nothing is buffered: bytes are written in blocks of one mebibyte, and `to` is
    /// flushed at the end. Allocates no memory, except two pieces of 8 MiB of pinned memory if the table is on a GPU.
    ///
    /// The writer must not use the table: all calls of other threads wait until the table is saved, and calls from within the
    /// writer return the error [`SelfDeadlock`](crate::Error::SelfDeadlock). Exceptions are [`slots`](Table::slots),
    /// [`spec`](Table::spec), [`bytes`](Table::bytes) and [`reference`](Table::reference), which return normally.
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
    /// [`SelfDeadlock`](crate::Error::SelfDeadlock) before anything is written; [`Io`](crate::Error::Io) with the writer's
    /// error; or errors that the device reports. The table is unchanged, and any part of the bytes may have been written.
    pub fn save(&self, to: impl Write) -> Result<()> {
        self.raw.save(to)
    }

    /// Writes the table to a file, atomically: the bytes are written to a temporary file beside it, synchronised with the disk,
    /// and renamed. An existing file of this name is replaced at that moment. After an error the existing file is unchanged,
    /// with one exception, which the error names: the file was replaced, but its folder could not be synchronised with the disk
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
    /// The errors of [`save`](Self::save).
    pub fn save_file(&self, path: impl AsRef<Path>) -> Result<()> {
        self.raw.save_file(path.as_ref())
    }

    /// Loads a saved table on any device, with its slots, nodes and seeds, and the `grows` option that it was built with. The
    /// saved table must be of this kind and width.
    ///
    /// Reads exactly the bytes that [`save`](Self::save) wrote, in blocks of up to one mebibyte. Memory is allocated only after
    /// the header was found valid, and only if the device has enough for the table.
    ///
    /// If the two machines arrange slots differently (some claim 8 bytes at once, some 16), bucket and tree tables are rebuilt
    /// from the stored vectors. Rebuilding takes as long as putting the vectors, and a tree table then needs memory for its roots
    /// twice. The table may then have more slots, and [references](Self::loaded_references) are not kept.
    ///
    /// # Errors
    ///
    /// [`File`](crate::Error::File) describes what is wrong with the bytes, and where. [`Io`](crate::Error::Io) holds the
    /// reader's error. [`OutOfMemory`](crate::Error::OutOfMemory), or errors that the device reports. After an error there is no
    /// table, and all its memory is freed.
    pub fn load(device: &Device, from: impl Read) -> Result<Self> {
        Ok(Self::of(Arc::new(RawTable::load(device, S::KIND, K::WIDTH, from, None)?)))
    }

    /// Loads a table from a file, which must hold nothing else. The file's length is checked before memory is allocated, so a
    /// truncated file is found at once.
    ///
    /// # Errors
    ///
    /// The errors of [`load`](Self::load).
    pub fn load_file(device: &Device, path: impl AsRef<Path>) -> Result<Self> {
        Ok(Self::of(Arc::new(RawTable::load_file(device, S::KIND, K::WIDTH, path.as_ref())?)))
    }

    /// Converts references to the saved table into references to this table, which was loaded from it. Each converted reference
    /// refers to the same vector, in the slot of the same number.
    ///
    /// A loaded table has its own generation, because it is another table than the saved one, which may be loaded twice.
    /// References to the saved table are therefore stale here until this function converts them. Store them beside the table, as
    /// described at [`to_bits`](Reference::to_bits).
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
    /// [`StaleReferences`](crate::Error::StaleReferences) if some references are not of the table as it was when it was saved.
    /// All are stale if this table was not loaded, if its slots are arranged differently from the saved ones
    /// ([`load`](Self::load)), or if its generation has changed since it was loaded (growth of an
    /// [`IndexedTable`](crate::IndexedTable) does not change it).
    pub fn loaded_references(&self, saved: &[Reference]) -> Result<Vec<Reference>> {
        self.raw.loaded_references(saved)
    }
}
