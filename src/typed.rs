use crate::table::{Bucket, Storage, VectorTable};
use crate::{Batch, Device, Reference, Request, Result, TableBuilder};
use bytemuck::{AnyBitPattern, NoUninit};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// A table of keys of a Rust type: any plain data whose size is a multiple of 4 bytes (checked when compiled).
///
/// A thin shell: keys are seen as their words, so two keys are equal when their bytes are. All else is the table's, reached
/// through [`table`](Self::table).
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::{Device, TypedTable};
///
/// #[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
/// #[repr(C)]
/// struct State {
///     position: [u16; 4],
///     turn: u32,
/// }
///
/// let states = TypedTable::<State>::new(&Device::cpu(), 1000)?;
/// let start = State { position: [0, 1, 2, 3], turn: 0 };
/// let batch = states.find_or_put_many(&[start, start])?;
/// assert_eq!((batch.tally.new, batch.tally.seen), (1, 1));
/// assert_eq!(states.contains_many(&[start, State { turn: 1, ..start }])?, [true, false]);
/// # Ok(()) }
/// ```
///
/// ```compile_fail
/// # use warpset::{Device, TypedTable};
/// let odd = TypedTable::<[u8; 3]>::new(&Device::cpu(), 1000); // 3 bytes are not a whole number of words
/// ```
///
/// A [`BucketTable`](crate::BucketTable) underneath, unless `S` says [`Tree`](crate::Tree):
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::{Device, Tree, TypedTable};
///
/// let keys = TypedTable::<[u32; 6], Tree>::new(&Device::cpu(), 1000)?;
/// assert_eq!(keys.find_or_put_many(&[[1; 6], [2; 6]])?.tally.new, 2);
/// # Ok(()) }
/// ```
pub struct TypedTable<K, S = Bucket> {
    table: VectorTable<S>,
    keys: PhantomData<fn(K) -> K>,
}

impl<K: NoUninit + AnyBitPattern, S: Storage> TypedTable<K, S> {
    /// Words a key.
    pub const WIDTH: usize = {
        assert!(size_of::<K>() > 0 && size_of::<K>().is_multiple_of(4), "a key's size must be a positive multiple of 4 bytes");
        size_of::<K>() / 4
    };

    /// A table of at least `capacity` slots.
    ///
    /// # Errors
    ///
    /// As [`TableBuilder::build`].
    pub fn new(device: &Device, capacity: u64) -> Result<Self> {
        Self::build(Self::builder().capacity(capacity), device)
    }

    /// Chooses more about the table; hand the result to [`build`](Self::build).
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{Device, TypedTable};
    ///
    /// let builder = TypedTable::<[u32; 3]>::builder().capacity(100).grows(true);
    /// let keys = TypedTable::<[u32; 3]>::build(builder, &Device::cpu())?;
    /// # assert_eq!(keys.table().width(), 3);
    /// # Ok(()) }
    /// ```
    pub fn builder() -> TableBuilder<S> {
        VectorTable::builder(Self::WIDTH)
    }

    /// Makes a table from what [`builder`](Self::builder) gave.
    ///
    /// # Errors
    ///
    /// As [`TableBuilder::build`], and [`Width`](crate::Error::Width) if the builder is of another width.
    pub fn build(builder: TableBuilder<S>, device: &Device) -> Result<Self> {
        let table = builder.build(device)?;
        if table.width() != Self::WIDTH {
            return Err(crate::Error::Width { width: table.width() });
        }
        Ok(Self { table, keys: PhantomData })
    }

    /// The table of words underneath: sizes, statistics, growth.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let keys = warpset::TypedTable::<u64>::new(&warpset::Device::cpu(), 100)?;
    /// assert!(keys.table().slots() >= 100);
    /// # Ok(()) }
    /// ```
    pub fn table(&self) -> &VectorTable<S> {
        &self.table
    }

    /// As [`VectorTable::find_or_put_many`].
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let keys = warpset::TypedTable::<u64>::new(&warpset::Device::cpu(), 100)?;
    /// assert_eq!(keys.find_or_put_many(&[7, 8, 7])?.tally.new, 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The same.
    pub fn find_or_put_many(&self, keys: &[K]) -> Result<Batch> {
        self.table.find_or_put_many(&words(keys))
    }

    /// As [`VectorTable::find_or_put_many_with`].
    ///
    /// # Errors
    ///
    /// The same.
    pub fn find_or_put_many_with(&self, keys: &[K], request: Request<'_>) -> Result<Batch> {
        self.table.find_or_put_many_with(&words(keys), request)
    }

    /// As [`VectorTable::contains_many`].
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let keys = warpset::TypedTable::<u64>::new(&warpset::Device::cpu(), 100)?;
    /// keys.find_or_put_many(&[7])?;
    /// assert_eq!(keys.contains_many(&[7, 8])?, [true, false]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The same.
    pub fn contains_many(&self, keys: &[K]) -> Result<Vec<bool>> {
        self.table.contains_many(&words(keys))
    }

    /// As [`VectorTable::locate_many`].
    ///
    /// # Errors
    ///
    /// The same.
    pub fn locate_many(&self, keys: &[K]) -> Result<Vec<Option<Reference>>> {
        self.table.locate_many(&words(keys))
    }

    /// As [`VectorTable::get_many`].
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let keys = warpset::TypedTable::<u64>::new(&warpset::Device::cpu(), 100)?;
    /// keys.find_or_put_many(&[7])?;
    /// let place = keys.locate_many(&[7])?[0].unwrap();
    /// assert_eq!(keys.get_many(&[place])?, [7]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The same.
    pub fn get_many(&self, references: &[Reference]) -> Result<Vec<K>> {
        let words = self.table.get_many(references)?;
        Ok(words.chunks_exact(Self::WIDTH).map(key).collect())
    }

    /// As [`VectorTable::iter`].
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let keys = warpset::TypedTable::<u64>::new(&warpset::Device::cpu(), 100)?;
    /// keys.find_or_put_many(&[7])?;
    /// let (_, key) = keys.iter().next().unwrap()?;
    /// assert_eq!(key, 7);
    /// # Ok(()) }
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = Result<(Reference, K)>> + '_ {
        self.table.iter().map(|row| row.map(|(reference, words)| (reference, key(&words))))
    }
}

impl<K, S: Storage> fmt::Debug for TypedTable<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TypedTable").field(&self.table).finish()
    }
}

/// The keys' words: in place where their alignment allows it, else a copy.
fn words<K: NoUninit>(keys: &[K]) -> Cow<'_, [u32]> {
    match bytemuck::try_cast_slice(keys) {
        Ok(words) => Cow::Borrowed(words),
        Err(_) => Cow::Owned(bytemuck::allocation::pod_collect_to_vec(keys)),
    }
}

fn key<K: AnyBitPattern>(words: &[u32]) -> K {
    bytemuck::pod_read_unaligned(bytemuck::cast_slice(words))
}
