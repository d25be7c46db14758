use bytemuck::{CheckedBitPattern, NoUninit, Pod, Zeroable};

/// What find-or-put did with one vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, NoUninit, CheckedBitPattern)]
#[repr(u8)]
pub enum Outcome {
    /// This call stored it. Of all calls that ever offer a vector, exactly one gets this.
    New = 1,
    /// It was stored already, or another call stored it at the same time.
    Seen = 2,
    /// It is not stored: no free slot (or, in a tree table, node) within the probe limit.
    Full = 3,
}

/// Where a stored vector is: the number of its slot.
///
/// Stable until the table grows or is cleared, and enough to read the vector back
/// ([`VectorTable::get_many`](crate::VectorTable::get_many)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Pod, Zeroable)]
#[repr(transparent)]
pub struct Reference(pub(crate) u64);

impl Reference {
    /// What kernels write for a vector that is not stored.
    pub(crate) const NONE: u64 = u64::MAX;

    /// The slot's number, as kernels see it.
    ///
    /// ```
    /// use warpset::Reference;
    ///
    /// assert_eq!(Reference::from_slot(7).slot(), 7);
    /// ```
    pub const fn slot(self) -> u64 {
        self.0
    }

    /// The reference with this slot number. Whether a vector is stored there shows when it is used.
    pub const fn from_slot(slot: u64) -> Self {
        Self(slot)
    }
}

/// How many vectors of a batch had which outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Stored by this call.
    pub new: u64,
    /// Stored already, duplicates within the batch counted.
    pub seen: u64,
    /// Not stored.
    pub full: u64,
    /// Of those not stored: how many because the node table was full, not the table of slots. Always 0 in a bucket table.
    pub full_nodes: u64,
}

impl Tally {
    /// All vectors of the batch.
    ///
    /// ```
    /// assert_eq!(warpset::Tally { new: 2, seen: 3, full: 1, full_nodes: 0 }.offered(), 6);
    /// ```
    pub const fn offered(&self) -> u64 {
        self.new + self.seen + self.full
    }
}

/// The results of one [`find_or_put_many_with`](crate::VectorTable::find_or_put_many_with).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// How many vectors had which outcome.
    pub tally: Tally,
    /// The outcome of each vector, by position; empty unless asked for.
    pub outcomes: Vec<Outcome>,
    /// Where each vector is stored, by position (`None` where its outcome is [`Outcome::Full`]); empty unless asked for.
    pub references: Vec<Option<Reference>>,
    /// Where the new vectors are stored, in no order; empty unless asked for.
    pub new_references: Vec<Reference>,
}
