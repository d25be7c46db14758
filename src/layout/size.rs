//! Sizes of tables: slots and buckets for vectors and for nodes.

use super::limits::MAX_CAPACITY;
use super::spec::Spec;
use super::view::Geometry;
use super::{compact, rows};
use crate::{Error, Result};

/// Numbers of slots for vectors, and for nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub slots: u64,
    pub nodes: u64,
}

/// Largest number of buckets of a node table. A prime, such that references to its nodes, and two numbers that are not
/// references, fit 32 bits.
const MAX_NODE_BUCKETS: u64 = (1 << 31) - 1;

/// Largest number of slots of a node table, with two slots per bucket.
pub(crate) const MAX_NODES: u64 = 2 * MAX_NODE_BUCKETS;

impl Spec {
    /// Layout of a compact table of `buckets` buckets; none for other tables.
    pub(crate) fn layout(&self, buckets: u64) -> Option<compact::Layout> {
        let (key_bits, slot_bits) = self.key_and_slot_bits()?;
        compact::Layout::new(key_bits, slot_bits, buckets, self.is_cuckoo())
    }

    /// Number of slots of a table of `buckets` buckets.
    pub(crate) fn slots(&self, geometry: &Geometry, buckets: u64) -> u64 {
        self.layout(buckets).map_or_else(|| geometry.slots(buckets), |layout| layout.slots())
    }

    /// Number of rows of an indexed table of `buckets` buckets; 0 for other tables.
    pub(crate) fn rows(&self, geometry: &Geometry, buckets: u64) -> u64 {
        if self.is_indexed() { rows::rows(geometry.slots(buckets)) } else { 0 }
    }

    /// Bytes of `rows` rows.
    pub(crate) fn row_bytes(&self, rows: u64) -> u64 {
        rows * u64::from(self.width) * 4
    }

    /// Bytes of these slots.
    pub(crate) fn bytes(&self, geometry: &Geometry, buckets: u64) -> u64 {
        self.layout(buckets).map_or_else(|| geometry.bytes(buckets), |layout| layout.bytes())
    }
}

/// No table has this number of slots.
pub(crate) fn slots_out_of_range(capacity: u64) -> Error {
    Error::OutOfRange { what: "slots of a table", given: capacity, least: 1, most: MAX_CAPACITY }
}

/// Number of buckets for a table of at least `capacity` slots.
///
/// # Errors
///
/// [`Error::OutOfRange`], [`Error::KeysDoNotFit`].
pub(crate) fn buckets(geometry: &Geometry, spec: Spec, capacity: u64) -> Result<u64> {
    let error = slots_out_of_range(capacity);
    if !(1..=MAX_CAPACITY).contains(&capacity) {
        return Err(error);
    }
    if let Some((key_bits, slot_bits)) = spec.key_and_slot_bits() {
        let buckets = compact::buckets_for(capacity, slot_bits);
        if u32::try_from(buckets).is_err() {
            return Err(error);
        }
        let needed = compact::fewest_slots(key_bits, slot_bits, spec.is_cuckoo());
        let error = Error::KeysDoNotFit { key_bits, slot_bits, slots: capacity, needed };
        return spec.layout(buckets).map(|_| buckets).ok_or(error);
    }
    Ok(hashed_buckets(capacity, geometry.of_spec(spec).slots_per_bucket))
}

/// Number of buckets for at least this many nodes. References to nodes have 32 bits.
///
/// # Errors
///
/// [`Error::OutOfRange`].
pub(crate) fn node_buckets(nodes: u64) -> Result<u64> {
    if nodes == 0 || nodes > MAX_NODES {
        return Err(Error::OutOfRange { what: "slots of a node table", given: nodes, least: 1, most: MAX_NODES });
    }
    Ok(prime_buckets(nodes, 2).min(MAX_NODE_BUCKETS))
}

/// Bytes of a node table: two slots per bucket, and one that stays EMPTY.
pub(crate) fn node_bytes(buckets: u64) -> u64 {
    if buckets == 0 { 0 } else { (2 * buckets + 1) * 8 }
}

/// Slots of a slice (core/probe.cuh), whatever the width of a vector: fewer would differ more in their number of vectors.
const SLICE_SLOTS: u64 = 8192;

/// Least number of slots of a table of several slices. Rounding up to whole slices then adds at most an eighth. A smaller table
/// is one slice of a prime number of buckets.
const LEAST_SLICED: u64 = 8 * SLICE_SLOTS;

/// How the buckets that are probed by hashing are divided: the fields of views that probe.cuh reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slices {
    pub slice_buckets: u32,
    pub slice_mask: u32,
}

impl Slices {
    /// Slices of a table of this number of buckets.
    pub(crate) fn of(buckets: u64, slots_per_bucket: u32) -> Self {
        let slots_per_bucket = u64::from(slots_per_bucket);
        if buckets * slots_per_bucket < LEAST_SLICED {
            return Self { slice_buckets: buckets as u32, slice_mask: u32::MAX };
        }
        let slice_buckets = slice_buckets(slots_per_bucket) as u32;
        Self { slice_buckets, slice_mask: slice_buckets - 1 }
    }
}

fn slice_buckets(slots_per_bucket: u64) -> u64 {
    SLICE_SLOTS / slots_per_bucket
}

/// Most vectors of a table with this number of slots that a GPU leaves to find-or-put when the table grows slice by slice, before
/// it puts all of them so. They are a tenth of this or fewer unless the table is more than 0.95 full, or hashes are equal.
pub(crate) fn most_left(slots: u64) -> u64 {
    (slots >> 10).max(1)
}

/// Number of buckets that are probed by hashing for at least `slots` slots: whole slices, or a prime.
fn hashed_buckets(slots: u64, slots_per_bucket: u32) -> u64 {
    let primes = prime_buckets(slots.min(LEAST_SLICED), slots_per_bucket);
    let slots_per_bucket = u64::from(slots_per_bucket);
    if primes * slots_per_bucket < LEAST_SLICED {
        return primes;
    }
    slots.div_ceil(SLICE_SLOTS).max(LEAST_SLICED / SLICE_SLOTS) * slice_buckets(slots_per_bucket)
}

/// Whether a table can have this number of buckets that are probed by hashing.
pub(crate) fn is_hashed_buckets(buckets: u64, slots_per_bucket: u32) -> bool {
    let slots_per_bucket = u64::from(slots_per_bucket);
    let slots = buckets.saturating_mul(slots_per_bucket);
    if slots < LEAST_SLICED { is_prime(buckets) } else { buckets.is_multiple_of(slice_buckets(slots_per_bucket)) }
}

/// Number of buckets for at least `slots` slots: a prime, so that a probe sequence visits every bucket.
fn prime_buckets(slots: u64, slots_per_bucket: u32) -> u64 {
    let mut buckets = slots.div_ceil(u64::from(slots_per_bucket)).max(2);
    while !is_prime(buckets) {
        buckets += 1;
    }
    buckets
}

/// Bases of the test of Miller and Rabin. They find each composite number below 3.3 x 10^24 (Sorenson, Webster: Strong
/// pseudoprimes to twelve prime bases, 2015).
const BASES: [u64; 12] = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37];

/// Whether `n` is a prime, by the test of Miller and Rabin.
///
/// Growth asks about many numbers of buckets. Trial division takes up to 2^18 divisions a number; in a debug build it took four
/// fifths of the time of `cargo test --test explore cpu::bucket::parents_are_kept_while_the_table_grows`.
pub(crate) fn is_prime(n: u64) -> bool {
    if n < 2 {
        return false;
    }
    if let Some(divisor) = BASES.iter().find(|base| n.is_multiple_of(**base)) {
        return n == *divisor;
    }
    // n - 1 = odd x 2^twos. A prime has no square roots of 1 but 1 and -1.
    let twos = (n - 1).trailing_zeros();
    let odd = (n - 1) >> twos;
    let times = |a: u64, b: u64| (u128::from(a) * u128::from(b) % u128::from(n)) as u64;
    BASES.iter().all(|base| {
        let mut power = 1;
        for bit in (0..u64::BITS - odd.leading_zeros()).rev() {
            power = times(power, power);
            if odd >> bit & 1 == 1 {
                power = times(power, *base);
            }
        }
        let mut is_root = power == 1;
        for _ in 0..twos {
            is_root |= power == n - 1;
            power = times(power, power);
        }
        is_root
    })
}

/// Number of buckets that a search looks at before it gives up; less than 2^15.
///
/// The limit is 32 log2(buckets), and at least 1,024. With single-slot buckets at fill 0.95 a search fails to find a free slot
/// with probability 0.95^limit. For 2^27 buckets that is 2^-66, so filling them to 0.95 rejects no vector (expected rejections
/// 2^-39); at 0.97 it is 2^-39 per vector. Buckets of several slots can be filled further before they reject. A table of up to
/// 1,024 buckets is searched completely, so it can be filled to its last slot.
///
/// In a table with slices a search looks at 256 of the 8,192 slots of a slice before it goes on to another one, three times or
/// more. It jumps by the same number of slices each time, so in a table of few slices it may come back to the first, where it
/// looks at other buckets. If F slots of a slice are free, it finds none of them with probability (1 - 1 / 32)^F: 10^-4 at fill
/// 0.95, on average over slices, whose fills differ, and 0.014 at 0.97. Four slices have the fourth power of it, so that filling
/// 2^27 slots to 0.95 is expected to reject 10^-11 vectors, and to 0.97, 0.004. That is with one slot a bucket. With more, free
/// slots are in fewer buckets, but a search looks at as many buckets, and so at as many times more slices. (Except with 16 slots
/// a bucket: a slice then has 512 buckets, and in a table of 8, 16 or 32 slices the second half of 1,024 probes repeats the
/// first.)
pub(crate) fn probe_limit(buckets: u64) -> u32 {
    let log2 = u64::from(u64::BITS - buckets.leading_zeros());
    (32 * log2).max(1024).min(buckets) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn primes_are_those_of_trial_division() {
        let mut primes = vec![];
        for n in 0..100_000_u64 {
            let mut divisors = primes.iter().take_while(|prime| **prime * **prime <= n);
            let expected = n >= 2 && !divisors.any(|prime: &u64| n.is_multiple_of(*prime));
            assert_eq!(is_prime(n), expected, "{n}");
            if expected {
                primes.push(n);
            }
        }
        // The largest primes of 31, 32 and 64 bits.
        for prime in [(1 << 31) - 1, (1 << 32) - 5, u64::MAX - 58] {
            assert!(is_prime(prime), "{prime}");
        }
        // Composite numbers that pass for primes with the first 4, 5, 7, 8 and 9 bases, squares of primes, a Carmichael number.
        let strong = [3_215_031_751, 2_152_302_898_747, 341_550_071_728_321, 3_825_123_056_546_413_051];
        for composite in strong.into_iter().chain([65_537 * 65_537, 2_147_483_647 * 2_147_483_647, 825_265, u64::MAX]) {
            assert!(!is_prime(composite), "{composite}");
        }
    }

    #[test]
    fn buckets_are_the_next_prime() {
        for (slots, per_bucket, buckets) in
            [(1, 1, 2), (8, 4, 2), (9, 4, 3), (1000, 8, 127), (7920, 1, 7927), (1 << 20, 2, 524_309)]
        {
            assert_eq!(prime_buckets(slots, per_bucket), buckets, "{slots} slots");
            assert_eq!(prime_buckets(buckets * u64::from(per_bucket), per_bucket), buckets, "idempotent");
        }
        // More than 2^32 buckets.
        assert_eq!(prime_buckets((1 << 32) + 1, 1), (1 << 32) + 15);
    }

    #[test]
    fn large_tables_have_whole_slices() {
        for per_bucket in [1_u32, 2, 4, 8, 16, 32] {
            let per = u64::from(per_bucket);
            for slots in [1, 1000, 50_000, 65_000, 65_535, 65_536, 65_537, 73_728, 73_729, 1 << 20, (1 << 30) + 1, MAX_CAPACITY] {
                let buckets = hashed_buckets(slots, per_bucket);
                let Slices { slice_buckets, slice_mask } = Slices::of(buckets, per_bucket);
                assert!(is_hashed_buckets(buckets, per_bucket), "{slots}");
                assert!(buckets * per >= slots && buckets * per < slots + (slots / 8).max(64 * per) + SLICE_SLOTS / 8, "{slots}");
                assert_eq!(hashed_buckets(buckets * per, per_bucket), buckets, "idempotent: {slots}");
                if buckets * per < LEAST_SLICED {
                    assert_eq!((u64::from(slice_buckets), slice_mask, is_prime(buckets)), (buckets, u32::MAX, true), "{slots}");
                } else {
                    assert_eq!(u64::from(slice_buckets) * per, SLICE_SLOTS);
                    assert!(slice_mask == slice_buckets - 1 && buckets.is_multiple_of(slice_buckets.into()), "{slots}");
                }
            }
        }
        assert!(!is_hashed_buckets(65_537, 1) && !is_hashed_buckets(65_536 / 16 + 3, 16) && !is_hashed_buckets(1 << 15, 1));
    }

    #[test]
    fn small_tables_are_searched_completely() {
        for buckets in [2, 3, 127, 1021] {
            assert_eq!(u64::from(probe_limit(buckets)), buckets);
        }
        assert_eq!(probe_limit(1_000_003), 1024);
        assert_eq!(probe_limit(1 << 36), 32 * 37);
    }
}
