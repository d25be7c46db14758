use crate::{Error, Key, Result, Storage, Table};
use bytemuck::{CheckedBitPattern, NoUninit, PodInOption, ZeroableInOption};
use std::fmt;
use std::iter::Sum;
use std::num::NonZeroU64;
use std::ops::AddAssign;

/// What find-or-put did with one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, NoUninit, CheckedBitPattern)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[repr(u8)]
pub enum Outcome {
    /// This call stored it. Of all calls that ever offer a vector, exactly one gets this.
    New = 1,
    /// It was stored already, or another call stored it at the same time.
    Seen = 2,
    /// It is not stored: no free slot (or, in a tree table, node) within the probe limit.
    Full = 3,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::New => "new",
            Self::Seen => "seen",
            Self::Full => "full",
        })
    }
}

/// Where a stored vector is: the number of its slot, and the *generation* of the table, which every growth, every clear and every
/// relocation of keys ends.
///
/// Enough to read the vector back ([`Table::get_many`]) as long as the generation lasts. After that the reference is *stale*: a
/// call that is given one returns [`StaleReferences`](Error::StaleReferences), before anything else is done; so does one that is
/// given a reference of another table. Only as [parents](crate::Request::parents) without masks stale references do no harm, and
/// count as none. Kernels know slots by their numbers only; [`Table::reference`] makes a reference of such a number.
///
/// Generations are numbers of 24 bits, counted for all tables of a process, from a random one on. So after 2^24 - 1 of them a
/// number comes again. References to a table that was [saved](Table::save) become those to the loaded one by
/// [`Table::loaded_references`].
///
/// Takes 8 bytes, in an `Option` too, where `None` is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, NoUninit)]
#[repr(transparent)]
pub struct Reference(NonZeroU64);

// SAFETY: `repr(transparent)` over `NonZeroU64`, which is: zeros are `None`.
unsafe impl ZeroableInOption for Reference {}
// SAFETY: as above; every other pattern is a reference (to whatever slot, of whatever generation), and there are no bytes of
// padding.
unsafe impl PodInOption for Reference {}

impl Reference {
    /// Bits of a slot's number; those above are the generation's. `reference_slot_bits` of core/batch_view.cuh.
    pub(crate) const SLOT_BITS: u32 = 40;

    /// The number of the slot, by which kernels know it: less than 2^40.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # use warpset::{BucketTable, Device};
    /// # let table = BucketTable::new(&Device::cpu(), 1, 100)?;
    /// # table.find_or_put_many(&[7])?.complete(&table)?;
    /// let reference = table.locate_many(&[7])?[0].unwrap();
    /// assert!(reference.slot() < table.slots());
    /// assert_eq!(table.reference(reference.slot()), Some(reference));
    /// # Ok(()) }
    /// ```
    pub const fn slot(self) -> u64 {
        self.0.get() & ((1 << Self::SLOT_BITS) - 1)
    }

    /// Slot and generation as one number that is not 0: to keep it in memory of another kind.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # use warpset::{BucketTable, Device, Reference};
    /// # let table = BucketTable::new(&Device::cpu(), 1, 100)?;
    /// # table.find_or_put_many(&[7])?.complete(&table)?;
    /// let reference = table.locate_many(&[7])?[0];
    /// assert_eq!(Reference::from_bits(reference.unwrap().to_bits()), reference);
    /// assert_eq!(Reference::from_bits(0), None);
    /// # Ok(()) }
    /// ```
    pub const fn to_bits(self) -> u64 {
        self.0.get()
    }

    /// The reference that gave this number; `None` of 0.
    pub const fn from_bits(bits: u64) -> Option<Self> {
        match NonZeroU64::new(bits) {
            Some(bits) => Some(Self(bits)),
            None => None,
        }
    }
}

/// How many vectors of a batch had which outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Tally {
    /// Stored by this call.
    pub new: u64,
    /// Stored already, duplicates within the batch counted.
    pub seen: u64,
    /// Not stored.
    pub full: u64,
    /// How many of those not stored were rejected because the node table was full, not the table of slots. Always 0 in a bucket
    /// table.
    pub full_nodes: u64,
}

impl Tally {
    /// All vectors that were offered.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 1, 100)?;
    /// assert_eq!(table.find_or_put_many(&[7, 8, 7])?.tally.offered(), 3);
    /// # Ok(()) }
    /// ```
    pub const fn offered(&self) -> u64 {
        self.new + self.seen + self.full
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.new += other.new;
        self.seen += other.seen;
        self.full += other.full;
        self.full_nodes += other.full_nodes;
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        tallies.fold(Self::default(), |mut sum, tally| {
            sum += tally;
            sum
        })
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} new, {} seen, {} full", self.new, self.seen, self.full)
    }
}

/// The results of one [`find_or_put_many`](Table::find_or_put_many).
///
/// A vector may be [`Full`](Outcome::Full): not stored. [`complete`](Self::complete) makes an error of that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[must_use = "vectors may be `Full`, which is: not stored; `complete` makes an error of that"]
pub struct Batch {
    /// How many vectors had which outcome.
    pub tally: Tally,
    /// The outcome of each vector, by position. Empty unless asked for, and if results went into
    /// [`Buffers`](crate::Buffers) (so are the other two).
    pub outcomes: Vec<Outcome>,
    /// Where each vector is stored, by position (`None` where its outcome is [`Outcome::Full`]); empty unless asked for.
    pub references: Vec<Option<Reference>>,
    /// Where the new vectors are stored, in no order; empty unless asked for.
    pub new_references: Vec<Reference>,
    /// Whether the [progress callback](crate::Request::progress), or an [`error`](Self::error), ended the batch before all of its
    /// vectors were offered. The results are those of the first [`tally.offered()`](Tally::offered) vectors then. Of the others
    /// nothing is known (after an error some may have been stored), which [`complete`](Self::complete) makes an error of, too.
    pub stopped: bool,
    /// What went wrong after something was put. One of these:
    ///
    /// - why a table that [grows](crate::TableBuilder::grows) by itself, or whose keys [relocate](Table::relocate), did not: out
    ///   of memory, say. Vectors then went into the slots that were left, and are [`Full`](Outcome::Full) if there were none;
    /// - why the batch has [`stopped`](Self::stopped);
    /// - why the batch could not find its vectors again after it had made the table grow. References are stale then.
    pub error: Option<Error>,
    /// Vectors of the batch, offered or not.
    pub(crate) given: u64,
}

impl Batch {
    /// The tally, or an error if not all vectors are stored: because the table was too full for some, or because the batch ended
    /// before they were offered.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 1, 10)?;
    /// let vectors: Vec<u32> = (0..1000).collect();
    /// assert_eq!(table.find_or_put_many(&vectors[..9])?.complete(&table)?.new, 9);
    /// assert!(table.find_or_put_many(&vectors)?.complete(&table).is_err());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`TableFull`](Error::TableFull). Which vectors were rejected: those whose outcome is [`Outcome::Full`]. All others that
    /// were offered are stored; whether there are others, [`stopped`](Self::stopped) says. If none was rejected and there are,
    /// [`Stopped`](Error::Stopped): all that were offered are stored.
    pub fn complete<K: Key, S: Storage>(&self, table: &Table<K, S>) -> Result<Tally> {
        let tally = self.tally;
        if tally.full == 0 {
            let (offered, given, cause) = (tally.offered(), self.given, || self.error.clone().map(Box::new));
            return if self.stopped { Err(Error::Stopped { offered, given, cause: cause() }) } else { Ok(tally) };
        }
        Err(Error::TableFull {
            rejected: tally.full,
            for_nodes: tally.full_nodes,
            offered: tally.offered(),
            stored: table.len()?,
            slots: table.slots(),
            cause: self.error.clone().map(Box::new),
        })
    }

    /// The positions of the vectors with this outcome.
    ///
    /// ```
    /// # fn main() -> Result<(), warpset::Error> {
    /// # use warpset::Outcome;
    /// # let table = warpset::BucketTable::new(&warpset::Device::cpu(), 2, 100)?;
    /// let batch = table.find_or_put_many(&[1, 1, 1, 1, 2, 2])?;
    /// assert_eq!(batch.positions(Outcome::New).count(), 2);
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    ///
    /// If outcomes were not asked for, or went into [`Buffers`](crate::Buffers): there are none here to tell.
    pub fn positions(&self, outcome: Outcome) -> impl Iterator<Item = usize> + '_ {
        assert!(
            !self.outcomes.is_empty() || self.tally.offered() == 0,
            "the batch has no outcomes: none were asked for (`Request::outcomes`), or they are in its `Buffers`"
        );
        self.outcomes.iter().enumerate().filter(move |(_, of)| **of == outcome).map(|(at, _)| at)
    }
}
