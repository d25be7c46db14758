use super::{Bucket, CompactTree, Key, Nodes, Root, Storage, Table, Tree, Words};
use crate::core::table::RawTable;
use crate::layout::options::{Choice, Options};
use crate::{Device, Result, Strategy};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// Chooses how a table is made: a [`Table<K, S>`](Table), of the type whose `builder` this is of.
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
pub struct TableBuilder<S = Bucket, K = Words> {
    options: Options,
    table: PhantomData<fn() -> Table<K, S>>,
}

impl<S, K> Clone for TableBuilder<S, K> {
    fn clone(&self) -> Self {
        Self { options: self.options, table: PhantomData }
    }
}

impl<S, K> fmt::Debug for TableBuilder<S, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.options.fmt(f)
    }
}

/// Options of tables that have a node table: [`TreeTable`](crate::TreeTable) and [`CompactTreeTable`](crate::CompactTreeTable).
impl<S: Nodes, K> TableBuilder<S, K> {
    /// How many slots the node table has at least, at most 2^32 - 2. Default: as many as the table has for vectors.
    ///
    /// A vector that needs a node when there is no free one within the probe limit is [`Outcome::Full`](crate::Outcome::Full). By
    /// calculation, a search of 1,024 buckets of two slots finds none with a probability of 2^-151 where 95 % of the slots are
    /// taken. Nodes take 8 bytes each; node tables much smaller than the GPU's L2 (60 MB on an H200) are the fast ones. Without
    /// use for vectors of one or two words.
    pub fn nodes(mut self, nodes: u64) -> Self {
        self.options.nodes = Some(nodes);
        self
    }

    /// For tests of bad luck, as [`hash_mask`](Self::hash_mask) for nodes.
    #[doc(hidden)]
    pub fn node_hash_mask(mut self, mask: u32) -> Self {
        self.options.node_hash_mask = mask;
        self
    }
}

/// Options of a [`TreeTable`](crate::TreeTable) only.
impl<K> TableBuilder<Tree, K> {
    /// How kernels make trees: see [`build_strategies`](crate::build_strategies). Default: [`Strategy::DEFAULT`].
    ///
    /// All strategies give the same results, up to how many nodes vectors share. Without use for vectors of one or two words. On
    /// a CPU only the [`pairing`](Strategy::pairing) has an effect. Incremental find-or-put
    /// ([`Request::changed`](crate::Request::changed)) saves nothing where it is
    /// [`Interleaved`](crate::Pairing::Interleaved): the whole tree is made.
    ///
    /// Those in global memory take up to 64 bytes a word and warp more: by calculation, on an H200 5 MB at 16 words, 78 MB at
    /// 256. Batches of such a table take turns on the GPU, also if they are on several streams.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// use warpset::{Device, Pairing, Strategy, TreeTable};
    ///
    /// let table = TreeTable::builder(6).strategy(Strategy::CLR64).build(&Device::cpu())?;
    /// assert_eq!(table.spec().strategy().pairing(), Pairing::Halved);
    /// table.find_or_put_many(&[1, 2, 3, 4, 5, 6, /**/ 1, 2, 3, 1, 2, 3])?.complete(&table)?;
    /// assert_eq!(table.nodes()?, 4); // (1, 2), of that and 3; (4, 5), of that and 6
    /// # Ok(()) }
    /// ```
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.options.choice = Choice::Tree { strategy };
        self
    }
}

impl<K> TableBuilder<Bucket, K> {
    /// Whether slots take no more bytes than vectors have. Default: no.
    ///
    /// Else, where 16 bytes are claimed at once ([`Spec::chunk_bytes`](crate::Spec::chunk_bytes): GPUs of compute capability 9.0
    /// and later; of 17 words or more, x86-64 processors with AVX), slots for 3 words or more are padded to a multiple of four
    /// ([`Spec::slot_words`](crate::Spec::slot_words)): [Choosing a table](crate::choosing_a_table) says why, and what it costs.
    /// On other devices slots are always dense.
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
        self.options.choice = Choice::Bucket { dense };
        self
    }
}

impl<K> TableBuilder<Root, K> {
    /// How many bits the keys have: 20 to 64. Default: 64. A key of more is an error.
    ///
    /// The fewer, the less a slot must hold, and the more functions there are for it (`slot_bits`).
    pub fn key_bits(self, bits: u32) -> Self {
        self.with_keys(|key_bits, _, _| *key_bits = bits)
    }

    /// How many bits a slot has: 16, 32 or 64. Default: the fewest with which the table can be filled to 0.95.
    ///
    /// A key's bucket tells some of its bits: in a table of s slots log2(s) - 4 of them with 32-bit slots, log2(s) - 5 with
    /// 16-bit ones, log2(s) - 3 with 64-bit ones. The slot must hold the remaining bits, and the number of the hash function that
    /// the key is stored under. With 3 functions or more the table can be filled to 0.95: 2^28 slots of 32 bits are enough for
    /// keys of 54 bits. With 2 functions searches get long sooner; with one the table is full at about 0.8. Slots that have no
    /// bits even for one function are an error.
    pub fn slot_bits(self, bits: u32) -> Self {
        self.with_keys(|_, slot_bits, _| *slot_bits = Some(bits))
    }

    /// Whether keys may be moved, so that the table can be filled to 0.99 (tables of a few hundred slots to 0.85): *compact
    /// cuckoo*. Default: no.
    ///
    /// Such a table uses two hash functions whatever its slots would hold, so that slots need one bit for them: half the slots
    /// are enough for the same keys, compared with a table of four. Find-or-put is as concurrent as in any other table and moves
    /// nothing; what finds no free slot in its two buckets goes to a stash of about 1/256 of the slots. When that is full, a
    /// batch from host slices [relocates](Table::relocate) the keys and offers again what was rejected. That makes references
    /// stale, as a growth does; those returned by the batch itself are good. A key is [`Outcome::Full`](crate::Outcome::Full) if
    /// relocation makes hardly any room any more; it is then not stored, and all others are. For batches in device memory and in
    /// kernels of your own, call `relocate` between them.
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
    pub fn cuckoo(self, may_relocate: bool) -> Self {
        self.with_keys(|_, _, cuckoo| *cuckoo = may_relocate)
    }

    fn with_keys(mut self, change: impl FnOnce(&mut u32, &mut Option<u32>, &mut bool)) -> Self {
        if let Choice::Compact { key_bits, slot_bits, cuckoo } = &mut self.options.choice {
            change(key_bits, slot_bits, cuckoo);
        }
        self
    }
}

impl<K> TableBuilder<CompactTree, K> {
    /// How many bits a slot of the root table has: 16, 32 or 64. Default: the fewest with which it can be filled to 0.95, each
    /// time the table grows.
    ///
    /// A root is two references to nodes. Each has the bits that it takes to number the slots of the node table and one more. (In
    /// vectors of 2^n + 1 words the second half is no reference, but the last word, of 32 bits.) A root has 20 bits at least. So
    /// a node table of 2^29 - 2^7 slots makes roots of 58 bits. Which roots fit a slot is as for the keys of a
    /// [`RootTable`](crate::RootTable).
    pub fn slot_bits(mut self, bits: u32) -> Self {
        self.options.choice = Choice::CompactTree { slot_bits: Some(bits) };
        self
    }
}

impl<S: Storage, K: Key> TableBuilder<S, K> {
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn of_width(width: usize) -> Self {
        Self { options: Options::new(S::CHOICE, width), table: PhantomData }
    }

    /// How many slots the table has at least. Default: 2^20.
    ///
    /// No vector is rejected before 95 % of the slots are taken. In tables of up to 1,024 buckets every free slot is found. (In
    /// compact tables nearly every one: a search sees only the buckets to which its functions lead.) Searches get longer with the
    /// fill: see the tables of `benches/README.md`.
    pub fn capacity(mut self, vectors: u64) -> Self {
        self.options.capacity = vectors;
        self
    }

    /// Whether the table grows by itself, to twice its slots, before it is 85 % full. Default: no.
    ///
    /// Applies to batches from host slices. A growth needs memory for the old and the new table at once, moves every vector,
    /// and so makes earlier references stale; those returned by the batch that made it grow are of the grown table. A vector that
    /// finds no free slot even in a table of 64 times the slots that are needed is [`Outcome::Full`](crate::Outcome::Full).
    pub fn grows(mut self, grows: bool) -> Self {
        self.options.grows = grows;
        self
    }

    /// Makes the hash functions and the EMPTY pattern from this seed instead of the system's entropy: the same slots every time.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options.seed = Some(seed);
        self
    }

    /// For tests of bad luck: `hash & mask` is used for the hash. 0 sends every vector down the same probe sequence.
    #[doc(hidden)]
    pub fn hash_mask(mut self, mask: u64) -> Self {
        self.options.hash_mask = mask;
        self
    }

    /// For tests of bad luck: the EMPTY pattern, instead of a random one.
    #[doc(hidden)]
    pub fn empty_pattern(mut self, words: [u32; 4]) -> Self {
        self.options.empty = Some(words);
        self
    }

    /// Makes the table: compiles those of its kernels that every table needs, if the device has none for this width yet,
    /// allocates and clears its memory. Other kernels are compiled when they are first used:
    /// [Compilation and the kernel cache](crate::host_batches#compilation-and-the-kernel-cache).
    ///
    /// # Errors
    ///
    /// [`Width`](crate::Error::Width), [`Capacity`](crate::Error::Capacity), [`Nodes`](crate::Error::Nodes),
    /// [`OutOfMemory`](crate::Error::OutOfMemory), [`Compile`](crate::Error::Compile), or what the device reports. For compact
    /// tables also [`KeyBits`](crate::Error::KeyBits), [`SlotBits`](crate::Error::SlotBits),
    /// [`KeyWords`](crate::Error::KeyWords), [`KeysDoNotFit`](crate::Error::KeysDoNotFit).
    pub fn build(self, device: &Device) -> Result<Table<K, S>> {
        Ok(Table { raw: Arc::new(RawTable::new(device, self.options)?), marker: PhantomData })
    }
}
