//! The memory that a table may take as it grows.

/// Memory that a table may take, also while it grows.
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::{BucketTable, Device, MemoryLimit};
///
/// let limit = MemoryLimit::Reserved(1 << 20);
/// let table = BucketTable::builder(4).capacity(1000).grows(true).memory(limit).build(&Device::cpu())?;
/// let numbers: Vec<u32> = (0..400_000).collect();
/// let batch = table.find_or_put_many(&numbers)?;
/// // 2^20 bytes are 65,536 slots of 16 bytes. Nearly all of them hold vectors now.
/// assert!(batch.tally.new > 55_000 && batch.tally.full > 0);
/// assert!(table.bytes() <= 1 << 20);
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryLimit {
    /// At most this number of bytes, which are for this table alone. A table that grows in place doubles until the end, and fills
    /// nearly all bytes. Another one grows by a factor of four, then perhaps once by
    /// two, until it takes 1/32 to 1/16 of them. Then it takes all the rest at once, so that in the end nearly all bytes hold
    /// vectors.
    Reserved(u64),
    /// At most this number of bytes, and at most 7/8 of the memory that is free. A table that grows in place fills
    /// nearly all of them. Another one grows by a factor of four as long as
    /// it takes at most a sixteenth of these bytes afterwards. Beyond that it doubles as long as it can double once more after
    /// that. Then it takes the rest. In the end two thirds to five sixths of the bytes hold vectors.
    Shared(u64),
}

impl MemoryLimit {
    /// All memory that is free.
    pub(crate) const FREE: Self = Self::Shared(u64::MAX);

    /// The number of bytes.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Reserved(bytes) | Self::Shared(bytes) => bytes,
        }
    }
}
