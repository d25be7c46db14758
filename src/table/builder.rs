use super::{Bucket, CompactTree, Key, Nodes, Root, Storage, Table, Tree, Words};
use crate::core::table::RawTable;
use crate::layout::limits::FEWEST_HALF_BITS;
use crate::layout::options::Options;
use crate::{Device, MemoryLimit, Result, Strategy};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// Options from which a [`Table<K, S>`](Table) is built. `Table::builder` returns a builder for its own type.
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::{BucketTable, Device};
///
/// let table = BucketTable::builder(2).capacity(500).grows(true).seed(7).build(&Device::cpu())?;
/// assert!(table.slots() >= 500);
/// # Ok(()) }
/// ```
#[must_use = "a builder does nothing until `build` is called"]
pub struct TableBuilder<K = Words, S = Bucket> {
    options: Options,
    table: PhantomData<fn() -> (K, S)>,
}

impl<K, S> Clone for TableBuilder<K, S> {
    fn clone(&self) -> Self {
        Self { options: self.options, table: PhantomData }
    }
}

impl<K, S> fmt::Debug for TableBuilder<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.options.fmt(f)
    }
}

/// Options of tables that have a node table: [`TreeTable`](crate::TreeTable) and [`CompactTreeTable`](crate::CompactTreeTable).
impl<K, S: Nodes> TableBuilder<K, S> {
    /// Sets the least number of slots of the node table, at most 2^32 - 2. Default: the number of slots for vectors.
    ///
    /// A vector that needs a node is [`Outcome::Full`](crate::Outcome::Full) if no free node slot lies within the probe limit.
    /// By calculation, a search of 1,024 buckets of two slots finds no free slot with a probability of 2^-151 if 95 % of the
    /// slots are occupied. Nodes take 8 bytes each. Node tables much smaller than the GPU's L2 cache (60 MB on an H200) are
    /// fastest. No effect for vectors of one or two words.
    pub fn nodes(mut self, nodes: u64) -> Self {
        self.options.nodes = Some(nodes);
        self
    }

    /// For tests that force collisions: as [`hash_mask`](Self::hash_mask), for nodes.
    #[doc(hidden)]
    pub fn node_hash_mask(mut self, mask: u32) -> Self {
        self.options.node_hash_mask = mask;
        self
    }
}

/// Options of a [`TreeTable`](crate::TreeTable) only.
impl<K> TableBuilder<K, Tree> {
    /// Sets how kernels build trees: see [`build_strategies`](crate::build_strategies). Default: [`Strategy::DEFAULT`].
    ///
    /// All strategies give the same results, except for the number of nodes that vectors share. No effect for vectors of one or
    /// two words. On a CPU only the [`pairing`](Strategy::pairing) has an effect. Incremental find-or-put
    /// ([`Request::changed`](crate::Request::changed)) saves nothing with [`Interleaved`](crate::Pairing::Interleaved) pairing:
    /// the whole tree is built.
    ///
    /// Strategies that use global memory take up to 64 bytes more per word and warp: by calculation, on an H200 5 MB at 16
    /// words, 78 MB at 256. Batches of such a table run one after another on the GPU, even on several streams.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{Device, Pairing, Strategy, TreeTable};
    ///
    /// let table = TreeTable::builder(6).strategy(Strategy::CLR64).build(&Device::cpu())?;
    /// assert_eq!(table.spec().strategy().pairing(), Pairing::Halved);
    /// table.find_or_put_many(&[1, 2, 3, 4, 5, 6, /**/ 1, 2, 3, 1, 2, 3])?.complete(&table)?;
    /// assert_eq!(table.nodes()?, 4); // (1, 2) and its pair with 3; (4, 5) and its pair with 6
    /// # Ok(()) }
    /// ```
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.options.strategy = strategy;
        self
    }
}

impl<K> TableBuilder<K, Bucket> {
    /// Sets whether slots are as small as vectors, without padding. Default: no.
    ///
    /// Without this option, slots for 3 words or more are padded to a multiple of four words
    /// ([`Spec::slot_words`](crate::Spec::slot_words)) if 16 bytes are claimed at once
    /// ([`Spec::chunk_bytes`](crate::Spec::chunk_bytes)). GPUs of compute capability 9.0 and later claim 16 bytes at once, as do
    /// x86-64 processors with AVX for vectors of 17 words or more. On other devices slots are always dense. [Choosing a
    /// table](crate::choosing_a_table) explains why slots are padded, and what padding costs.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{BucketTable, Device};
    ///
    /// let table = BucketTable::builder(5).capacity(1000).dense(true).build(&Device::best()?)?;
    /// assert_eq!(table.spec().slot_words(), 5);
    /// # Ok(()) }
    /// ```
    pub fn dense(mut self, dense: bool) -> Self {
        self.options.dense = dense;
        self
    }

    /// Sets whether the table has a filter: bits of all stored vectors, so that lookups of absent vectors read no slot. Default:
    /// no. On a CPU only; a GPU refuses it ([`Error::WrongDevice`](crate::Error::WrongDevice)).
    ///
    /// A filter is worth its memory (1 byte a slot) if most lookups ([`contains_many`](Table::contains_many) and similar) are for
    /// vectors that are not stored, and vectors have 8 words or more. These lookups then take 0.2 to 0.3 of the time; a put of a
    /// new vector and a lookup of a stored one take at most 1.2 times as long. With 1 or 2 words a filter seldom pays: lookups of
    /// absent vectors take 0.2 to 0.65 of the time, but puts of new vectors 1.3 to 1.5 times as long and lookups of stored ones
    /// about twice. A put of a stored vector takes at most 1.2 times as long. [Choosing a
    /// table](crate::choosing_a_table#a-filter-for-absent-vectors) has the figures; widths between 2 and 8 were not measured.
    ///
    /// A lookup that begins while another thread puts does not use the filter, and takes as long as without one. Results are the
    /// same in all cases. A saved table does not keep this option.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{BucketTable, Device};
    ///
    /// let table = BucketTable::builder(2).capacity(1000).filter(true).build(&Device::cpu())?;
    /// table.find_or_put_many(&[1, 2, 3, 4])?.complete(&table)?;
    /// assert_eq!(table.contains_many(&[3, 4, 5, 6])?, [true, false]);
    /// # Ok(()) }
    /// ```
    pub fn filter(mut self, filter: bool) -> Self {
        self.options.filter = filter;
        self
    }
}

impl<K> TableBuilder<K, Root> {
    /// Sets the number of bits of a key: 20 to 64. Default: 64. A key with more bits is an error.
    ///
    /// With fewer bits, a slot must hold less, and more hash functions are available (`slot_bits`).
    pub fn key_bits(mut self, bits: u32) -> Self {
        self.options.key_bits = bits;
        self
    }

    /// Sets the number of bits of a slot: 16, 32 or 64. Default: the fewest with which the table can be filled to 0.95.
    ///
    /// The bucket of a key determines some of its bits. In a table of s slots these are log2(s) - 4 bits with 32-bit slots,
    /// log2(s) - 5 with 16-bit slots, and log2(s) - 3 with 64-bit slots. A slot must hold the remaining bits, and the number of
    /// the hash function under which the key is stored. With bits for 3 functions or more the table can be filled to 0.95: 2^28
    /// slots of 32 bits are enough for keys of 54 bits. With 2 functions searches get long at a lower fill; with one the table is
    /// full at about 0.8. Slots with too few bits for one function are an error.
    pub fn slot_bits(mut self, bits: u32) -> Self {
        self.options.slot_bits = Some(bits);
        self
    }

    /// Sets whether keys may be moved, so that the table can be filled to 0.99 (tables of a few hundred slots to 0.85): *compact
    /// cuckoo*. Default: no.
    ///
    /// Such a table always uses two hash functions, so that slots need one bit for the function number: half the slots are
    /// enough for the same keys, compared with a table of four functions. Batches from host slices [relocate](Table::relocate)
    /// keys when some are rejected; between batches in device memory and kernels of your own, call `relocate` yourself.
    /// Relocation makes references stale, as growth does. [Relocation](crate::memory_and_growth#relocation-cuckoo-tables) has
    /// the details.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{Device, RootTable};
    ///
    /// let builder = RootTable::builder().key_bits(40).slot_bits(32).capacity(1 << 14).cuckoo(true);
    /// let table = builder.build(&Device::cpu())?;
    /// let keys: Vec<u64> = (0..table.slots() * 99 / 100).map(|key| key * key).collect();
    /// let batch = table.find_or_put_many(&keys)?;
    /// assert_eq!((batch.tally.new, batch.tally.full), (keys.len() as u64, 0));
    /// assert!(table.contains_many(&keys)?.iter().all(|stored| *stored));
    /// # Ok(()) }
    /// ```
    pub fn cuckoo(mut self, may_relocate: bool) -> Self {
        self.options.cuckoo = may_relocate;
        self
    }
}

impl<K> TableBuilder<K, CompactTree> {
    /// Sets the number of bits of a slot of the root table: 16, 32 or 64. Default: the fewest with which it can be filled to
    /// 0.95, chosen again at each growth.
    ///
    /// A root is two references to nodes. A reference has one bit more than are needed to number the slots of the node table.
    /// (For vectors of 2^n + 1 words the second half is not a reference but the last word, which has 32 bits or
    /// [fewer](Self::last_bits).) A root has at least 20 bits. For example, a node table of 2^29 - 2^7 slots makes roots of 58
    /// bits. Roots fit a slot under the same rule as the keys of a [`RootTable`](crate::RootTable).
    pub fn slot_bits(mut self, bits: u32) -> Self {
        self.options.slot_bits = Some(bits);
        self
    }

    /// Sets the number of bits of the last word of a vector: 1 to 32. Default: 32. A vector whose last word has more bits is an
    /// error in a host batch ([`LastWordTooLarge`](crate::Error::LastWordTooLarge)); in device memory it is `Full`.
    ///
    /// Vectors of 2^n + 1 words have this word in their roots: fewer bits make roots shorter, so that fewer slots, or smaller
    /// ones, are enough. (Fewer than 10 count as 10.) For other vectors this option changes nothing. A saved table keeps it.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{CompactTreeTable, Device};
    ///
    /// let builder = CompactTreeTable::builder(3).capacity(1 << 20).nodes(4000);
    /// let all_bits = builder.clone().build(&Device::cpu())?;
    /// let few_bits = builder.last_bits(12).build(&Device::cpu())?;
    /// assert_eq!(all_bits.spec().key_and_slot_bits(), Some((12 + 32, 32)));
    /// assert_eq!(few_bits.spec().key_and_slot_bits(), Some((12 + 12, 16)));
    /// assert_eq!(few_bits.find_or_put_many(&[1, 2, 4095])?.complete(&few_bits)?.new, 1);
    /// assert!(few_bits.find_or_put_many(&[1, 2, 4096]).is_err());
    /// # Ok(()) }
    /// ```
    pub fn last_bits(mut self, bits: u32) -> Self {
        // 0 is refused when the table is built.
        self.options.last_bits = if bits == 0 { 0 } else { bits.max(FEWEST_HALF_BITS) };
        self
    }
}

impl<K: Key, S: Storage> TableBuilder<K, S> {
    #[allow(dead_code, reason = "for kernels that are compiled ahead, and ranks")]
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn of_width(width: usize) -> Self {
        Self { options: Options::new(S::KIND, width), table: PhantomData }
    }

    /// Sets the least number of slots. Default: 2^20. If the table grows and has a limit of memory ([`memory`](Self::memory)),
    /// the default may be smaller, so that the slots take less than a sixteenth of the limit.
    ///
    /// No vector is rejected before 95 % of the slots are occupied. In tables of up to 1,024 buckets a search finds every free
    /// slot. (In compact tables it finds nearly every one, because it visits only the buckets that the hash functions select.)
    /// Searches get longer as the table fills: see the tables of `benches/bucket.md` and `benches/compact.md`.
    pub fn capacity(mut self, vectors: u64) -> Self {
        self.options.capacity = Some(vectors);
        self
    }

    /// Sets whether the table grows automatically, before it is 85 % full. Default: no. A table that does not grow answers
    /// [`Full`](crate::Outcome::Full) when its slots are used, and [`Batch::complete`](crate::Batch::complete) turns that into an
    /// error.
    ///
    /// Only batches from host slices make a table grow. The table grows by a factor of four while it takes little of the free
    /// memory, or of its [limit](Self::memory), then by two, and finally takes all the rest. A table that has grown by four is a
    /// fifth full. Growth moves every vector, so earlier references become stale. References returned by the batch that triggered
    /// the growth refer to the grown table. A vector that finds no free slot even in a table of 64 times the needed slots is
    /// [`Outcome::Full`](crate::Outcome::Full).
    pub fn grows(mut self, grows: bool) -> Self {
        self.options.grows = grows;
        self
    }

    /// Limits the memory that the table may take, also while it [grows](Self::grows). Default: the free
    /// memory, as [`MemoryLimit::Shared`] describes. The first table counts as well, but is never refused. So a `capacity` that
    /// you give should take at most a sixteenth of the limit, as the default capacity does. No effect without
    /// [`grows(true)`](Self::grows).
    ///
    /// When the table cannot grow further, batches fill its last slots. Vectors that find none are
    /// [`Outcome::Full`](crate::Outcome::Full), and [`Batch::error`](crate::Batch::error) is
    /// [`MemoryLimit`](crate::Error::MemoryLimit). A saved table does not keep this option; a loaded one gets a limit by
    /// [`set_memory`](crate::Table::set_memory).
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{Device, Indexed, MemoryLimit, TypedTable};
    ///
    /// let limit = MemoryLimit::Reserved(1 << 20);
    /// let table = TypedTable::<u64, Indexed>::builder().grows(true).memory(limit).build(&Device::cpu())?;
    /// assert!(table.bytes() < 1 << 16);
    /// let keys: Vec<u64> = (0..200_000).collect();
    /// let batch = table.find_or_put_many(&keys)?;
    /// assert!(batch.tally.full > 0 && table.bytes() <= 1 << 20);
    /// # Ok(()) }
    /// ```
    pub fn memory(mut self, limit: MemoryLimit) -> Self {
        self.options.memory = limit;
        self
    }

    /// Derives the hash functions and the EMPTY pattern from this seed instead of the system's entropy, so that slots are
    /// reproducible: the same vectors, put one after another, get the same slots. Vectors of one batch may still swap slots,
    /// because threads put them at once. In a tree table on a GPU the nodes of one vector may do so as well, because threads of a
    /// warp put them at once.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = Some(seed);
        self
    }

    /// For tests that force collisions: uses `hash & mask` as the hash. 0 sends every vector down the same probe sequence.
    #[doc(hidden)]
    pub fn hash_mask(mut self, mask: u64) -> Self {
        self.options.hash_mask = mask;
        self
    }

    /// For tests of unlucky patterns: sets the EMPTY pattern, instead of a random one.
    #[doc(hidden)]
    pub fn empty_pattern(mut self, words: [u32; 4]) -> Self {
        self.options.empty = Some(words);
        self
    }

    /// Builds the table: compiles the kernels that every table needs, if the device has none for this width yet, then allocates
    /// and clears the table's memory. Other kernels are compiled when they are first used: [Compilation and the kernel
    /// cache](crate::host_batches#compilation-and-the-kernel-cache).
    ///
    /// # Errors
    ///
    /// [`OutOfRange`](crate::Error::OutOfRange), [`OutOfMemory`](crate::Error::OutOfMemory), [`Compile`](crate::Error::Compile),
    /// or errors that the device reports. For compact tables also [`KeysDoNotFit`](crate::Error::KeysDoNotFit), and for a table
    /// with a [`filter`](TableBuilder::filter) [`WrongDevice`](crate::Error::WrongDevice).
    pub fn build(self, device: &Device) -> Result<Table<K, S>> {
        Ok(Table::of(Arc::new(RawTable::new(device, self.options)?)))
    }
}
