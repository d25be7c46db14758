//! References to stored vectors.

use bytemuck::{NoUninit, PodInOption, ZeroableInOption};
use std::fmt;
use std::num::NonZeroU64;

/// Location of a stored vector: the number of its slot, and the *generation* of the table. Every growth, clear and relocation of
/// keys ends a generation.
///
/// A reference is enough to read the vector back ([`Table::get_many`](crate::Table::get_many)) as long as the generation lasts.
/// After that the reference is *stale*: a call with it returns [`StaleReferences`](crate::Error::StaleReferences) before anything
/// else is done. So does a call with a reference to another table. Stale references are harmless only as
/// [parents](crate::Request::parents) without masks, where they are ignored. Kernels know slots only by their numbers;
/// [`Table::reference`](crate::Table::reference) makes a reference from such a number.
///
/// Generations are numbers of 24 bits, counted for all tables of a process, starting at a random number. So a number repeats
/// after 2^24 - 1 generations. [`Table::loaded_references`](crate::Table::loaded_references) converts references to a table that
/// was [saved](crate::Table::save) into references to the loaded one.
///
/// Takes 8 bytes, in an `Option` too, where `None` is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, NoUninit)]
#[repr(transparent)]
pub struct Reference(NonZeroU64);

// SAFETY: `repr(transparent)` over `NonZeroU64`, which has this property: zeros are `None`.
unsafe impl ZeroableInOption for Reference {}
// SAFETY: as above; every other pattern is a reference (to any slot, of any generation), and there is no padding.
unsafe impl PodInOption for Reference {}

impl Reference {
    /// Bits of a slot number; the generation is above them. `reference_slot_bits` of core/batch_view.cuh.
    pub(crate) const SLOT_BITS: u32 = 40;

    /// Number of the slot, as kernels know it: less than 2^40.
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

    /// Slot and generation as one number that is not 0, for storage in other memory.
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

    /// Reference with these [bits](Self::to_bits); `None` for 0.
    pub const fn from_bits(bits: u64) -> Option<Self> {
        match NonZeroU64::new(bits) {
            Some(bits) => Some(Self(bits)),
            None => None,
        }
    }
}

/// Displays `slot` and the slot's number. The generation is not shown: [`to_bits`](Reference::to_bits) has both.
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// let table = warpset::IndexedTable::new(&warpset::Device::cpu(), 1, 100)?;
/// table.insert(&[7])?;
/// assert_eq!(table.locate(&[7])?.unwrap().to_string(), "slot 0");
/// # Ok(()) }
/// ```
impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {}", self.slot())
    }
}
