//! Ownership of hashes by ranks.

use crate::layout::options::SeedPair;
use rand::{Rng, SeedableRng, rngs::StdRng};

/// Division of all hashes among the ranks, the same on all of them.
pub(super) struct Owners {
    /// Number from which the seeds of the owners' hash are made.
    pub seed: u64,
    /// Smallest hash that each rank owns.
    pub bounds: Vec<u64>,
    /// All ones; tests clear bits to force collisions.
    pub hash_mask: u64,
}

/// Seeds of the hash that chooses the owner of a vector of at most `width` words, derived from a number that all ranks have.
pub(super) fn seeds(seed: u64, width: usize) -> Vec<SeedPair> {
    let mut random = StdRng::seed_from_u64(seed);
    (0..=width).map(|_| SeedPair::new(random.next_u64(), random.next_u64())).collect()
}

/// Draws a number for [`seeds`]: from the system's entropy or, if the seed of a table is given, from that seed. The number then
/// differs from the table's seed.
pub(super) fn draw(seed_of_table: Option<u64>) -> u64 {
    match seed_of_table {
        // Any bijection other than the identity: the table draws from `seed` itself.
        Some(seed) => (seed ^ 0x636C_7573_7465_7221).wrapping_mul(0x9E37_79B9_7F4A_7C15),
        None => rand::rng().next_u64(),
    }
}

/// Smallest hash that each rank owns, for shares in proportion to `weights`. No weight is 0, and the first bound is 0.
pub(super) fn bounds(weights: &[u64]) -> Vec<u64> {
    let total: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let mut before = 0u128;
    let mut bounds = Vec::with_capacity(weights.len());
    for weight in weights {
        // The slots of some thousands of ranks are fewer than 2^64, and `before` is less than `total`. So nothing overflows.
        bounds.push(((before << 64) / total) as u64);
        before += u128::from(*weight);
    }
    bounds
}

/// Returns an error that names the ranks unless these bounds divide all hashes: the first is 0, and none is less than the one
/// before. A rank may own no hash.
pub(super) fn check_bounds(bounds: &[u64]) -> Result<(), String> {
    if let Some(first @ 1..) = bounds.first() {
        return Err(format!("rank 0 owns hashes from {first:#x} on, and no rank those before"));
    }
    match (1..bounds.len()).find(|rank| bounds[*rank] < bounds[rank - 1]) {
        None => Ok(()),
        Some(rank) => {
            let [before, own] = [bounds[rank - 1], bounds[rank]];
            Err(format!("rank {rank} owns hashes from {own:#x} on, and rank {} from {before:#x} on", rank - 1))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_that_do_not_ascend_from_0_are_errors() {
        for right in [&[0][..], &[0, 0], &[0, 1, 1, u64::MAX]] {
            check_bounds(right).unwrap();
        }
        for (wrong, why) in [
            (&[1][..], "rank 0 owns hashes from 0x1 on"),
            (&[5, 0], "rank 0 owns hashes from 0x5 on"),
            (&[0, 9, 3], "rank 2 owns hashes from 0x3 on, and rank 1 from 0x9 on"),
        ] {
            let error = check_bounds(wrong).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        for weights in [&[7][..], &[1, 5, 1000], &[1 << 40; 40], &[1, 1 << 40, 1]] {
            check_bounds(&bounds(weights)).unwrap();
        }
    }

    #[test]
    fn bounds_divide_all_hashes_in_proportion() {
        assert_eq!(bounds(&[7]), [0]);
        assert_eq!(bounds(&[5, 5]), [0, 1 << 63]);
        assert_eq!(bounds(&[1, 1, 2]), [0, 1 << 62, 1 << 63]);
        let of_three = bounds(&[1 << 40; 3]);
        assert_eq!(of_three, [0, u64::MAX / 3, u64::MAX / 3 * 2]);
        // Slots are numbered by 40 bits.
        let (most, ranks) = ((1u64 << 40) - (1 << 16), 1024);
        let many = bounds(&vec![most; ranks]);
        assert!(many.windows(2).all(|pair| (pair[1] - pair[0]).abs_diff(1 << 54) <= 1));
        let last = bounds(&[most, 1])[1];
        assert!((u64::MAX - last).abs_diff(1 << 24) <= 2, "{last:#x}");
    }

    #[test]
    fn seeds_are_those_of_no_table_with_the_same_seed() {
        for seed in [0, 1, 7, u64::MAX] {
            assert_ne!(draw(Some(seed)), seed);
            assert_ne!(
                bytemuck::cast_slice::<_, u64>(&seeds(draw(Some(seed)), 3)),
                bytemuck::cast_slice::<_, u64>(&seeds(seed, 3))
            );
        }
        assert_ne!(draw(None), draw(None));
    }
}
