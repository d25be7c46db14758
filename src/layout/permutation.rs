//! The invertible hash family of compact tables, on the host; `cuda/warpset/compact/permutation.cuh` is the device's version.

use num_traits::{PrimInt, Unsigned, WrappingAdd, WrappingMul, WrappingSub};
use rand::Rng;

/// A random family of bijections of the `bits`-bit numbers: xorshifts, and multiplications by odd factors modulo 2^bits.
///
/// `T` is an unsigned type of at least `bits` bits; wider types give equal hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Permutation<T> {
    pub(crate) bits: u32,
    /// Odd factors.
    pub(crate) multipliers: [T; 3],
    pub(crate) step: T,
    /// Mask of the low `bits` bits.
    mask: T,
}

impl<T: PrimInt + Unsigned + WrappingAdd + WrappingMul + WrappingSub> Permutation<T> {
    /// Makes the family with these constants.
    ///
    /// # Panics
    ///
    /// Unless `bits` is 8 to 64 and at most the bits of `T`, and the multipliers are odd.
    pub(crate) fn new(bits: u32, multipliers: [T; 3], step: T) -> Self {
        let most = (T::max_value().count_ones()).min(64);
        assert!((8..=most).contains(&bits), "{bits} bits, not 8 to {most}");
        assert!(multipliers.into_iter().all(|factor| factor & T::one() == T::one()), "multipliers must be odd");
        let mask = T::max_value() >> (T::max_value().count_ones() - bits) as usize;
        Self { bits, multipliers, step, mask }
    }

    /// Draws a family at random.
    ///
    /// # Panics
    ///
    /// Unless `bits` is 8 to 64 and at most the bits of `T`.
    pub(crate) fn random(bits: u32, random: &mut impl Rng) -> Self {
        loop {
            let mut odd = || low_bits::<T>(random.next_u64()) | T::one();
            let family = Self::new(bits, [odd(), odd(), odd()], odd());
            if family.spreads() {
                return family;
            }
        }
    }

    /// Whether the functions spread keys over as many different buckets as random functions would. If keys have few bits, a few
    /// families do not: the functions repeat in a cycle if `step` times the last factor is near a multiple of the range divided
    /// by a small number.
    fn spreads(&self) -> bool {
        // With random functions, these numbers of functions reach 3.91, 14.3 and 55.5 of 64 buckets on average.
        let numbers = [(4, 3.8), (16, 14.0), (128, 54.7)];
        let mut reached = [0; 3];
        // Plain numbers of 64 bits, without calls: with them, a debug build takes a fifth of the time.
        let plain = |number: T| number.to_u64().expect("a family has at most 64 bits");
        let (half, factor, step, mask) = (self.bits.div_ceil(2), plain(self.multipliers[2]), plain(self.step), plain(self.mask));
        for number in 0..256u64 {
            let key = low_bits::<T>(number.wrapping_mul(0x9E37_79B9_7F4A_7C15)) & self.mask;
            let mut stepped = plain(self.scramble(key));
            let mut function = 0;
            let mut buckets = 0u64;
            for (reached, (functions, _)) in reached.iter_mut().zip(numbers) {
                while function < functions {
                    // The last step of all functions.
                    let finished = (stepped ^ stepped >> half).wrapping_mul(factor) & mask;
                    buckets |= 1 << (finished >> (self.bits - 6));
                    stepped = stepped.wrapping_add(step) & mask;
                    function += 1;
                }
                *reached += buckets.count_ones();
            }
        }
        reached.into_iter().zip(numbers).all(|(reached, (_, least))| f64::from(reached) >= 256.0 * least)
    }

    /// First step of all functions.
    fn scramble(&self, key: T) -> T {
        let [m0, m1, _] = self.multipliers;
        self.multiply(self.fold(self.multiply(self.fold(key), m0)), m1)
    }

    fn multiply(&self, value: T, factor: T) -> T {
        value.wrapping_mul(&factor) & self.mask
    }

    /// This function is its own inverse: the high half, which is added to the low one, stays unchanged.
    fn fold(&self, value: T) -> T {
        value ^ value >> self.bits.div_ceil(2) as usize
    }
}

/// Inverse of `odd` modulo 2^n, where n is the number of bits of `T`, by Newton's method.
pub(crate) fn inverse_of_odd<T: PrimInt + Unsigned + WrappingMul + WrappingSub>(odd: T) -> T {
    let two = T::one() + T::one();
    // Correct in its 3 low bits: the square of an odd number is 1 modulo 8.
    let mut inverse = odd;
    let mut right = 3;
    while right < T::max_value().count_ones() {
        inverse = inverse.wrapping_mul(&two.wrapping_sub(&odd.wrapping_mul(&inverse)));
        right *= 2;
    }
    inverse
}

fn low_bits<T: PrimInt + Unsigned>(value: u64) -> T {
    let mask = T::max_value().to_u64().unwrap_or(u64::MAX);
    T::from(value & mask).expect("it has no more bits than the type")
}

/// The functions that the kernels compute, for tests of the layout and of the kernels.
#[cfg(test)]
impl<T: PrimInt + Unsigned + WrappingAdd + WrappingMul + WrappingSub> Permutation<T> {
    /// Hash of a key under a function of the family.
    pub(crate) fn hash(&self, function: u32, key: T) -> T {
        self.place(function, self.scramble(key))
    }

    fn place(&self, function: u32, scrambled: T) -> T {
        self.multiply(self.fold(scrambled.wrapping_add(&self.steps(function)) & self.mask), self.multipliers[2])
    }

    fn steps(&self, function: u32) -> T {
        self.step.wrapping_mul(&low_bits(function.into()))
    }

    /// Key with this hash.
    pub(crate) fn key(&self, function: u32, hash: T) -> T {
        let [i0, i1, i2] = self.multipliers.map(inverse_of_odd);
        let scrambled = self.fold(self.multiply(hash, i2)).wrapping_sub(&self.steps(function)) & self.mask;
        self.fold(self.multiply(self.fold(self.multiply(scrambled, i1)), i0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{SeedableRng, rngs::StdRng};
    use warpset_testing::sizes::sized;

    #[test]
    fn every_width_to_20_bits_is_a_permutation() {
        for bits in 8..=sized(20, 17, 17) {
            let family = Permutation::<u32>::random(bits, &mut StdRng::seed_from_u64(bits.into()));
            for function in [0, 1, 2, 127, 255] {
                let mut met = vec![false; 1 << bits];
                for key in 0..1u32 << bits {
                    let hash = family.hash(function, key);
                    assert!(!std::mem::replace(&mut met[hash as usize], true), "{bits} bits: {hash} is met twice");
                    assert_eq!(family.key(function, hash), key, "{bits} bits");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn every_width_has_its_inverse(bits in 8u32..=64, seed: u64, function in 0u32..512, key: u64) {
            let family = Permutation::<u64>::random(bits, &mut StdRng::seed_from_u64(seed));
            let key = key & family.mask;
            let hash = family.hash(function, key);
            prop_assert!(hash <= family.mask);
            prop_assert_eq!(family.key(function, hash), key);
            // Conversely, every hash has a key.
            prop_assert_eq!(family.hash(function, family.key(function, key)), key);
        }

        #[test]
        fn types_of_more_bits_give_the_same_hashes(bits in 8u32..=32, seed: u64, function in 0u32..512, key: u32) {
            let long = Permutation::<u64>::random(bits, &mut StdRng::seed_from_u64(seed));
            let low = |value: u64| value as u32;
            let short = Permutation::new(bits, long.multipliers.map(low), low(long.step));
            let key = key & short.mask;
            prop_assert_eq!(u64::from(short.hash(function, key)), long.hash(function, key.into()));
            let longest = Permutation::<u128>::new(bits, long.multipliers.map(u128::from), long.step.into());
            prop_assert_eq!(longest.hash(function, key.into()), long.hash(function, key.into()).into());
        }

        /// Checks `spreads` with the functions themselves. A seed must draw the same family in every version, because saved
        /// tables have only the seed.
        #[test]
        fn functions_spread_as_their_hashes_do(bits in 8u32..=64, odd: [u64; 4], few in 0u32..3) {
            // Factors of few bits, and steps that divide the range, spread badly now and then.
            let [m0, m1, m2, step] = odd.map(|factor| factor >> (few * 20) | 1);
            let step = if few == 0 { step } else { ((u64::MAX >> (64 - bits)) / u64::from(few + 1)) | 1 };
            let family = Permutation::<u64>::new(bits, [m0, m1, m2], step);
            let reached = |functions: u32| -> u32 {
                let buckets = |key: u64| {
                    (0..functions).fold(0u64, |set, function| set | 1 << (family.hash(function, key) >> (bits - 6)))
                };
                let keys = (0..256u64).map(|number| number.wrapping_mul(0x9E37_79B9_7F4A_7C15) & family.mask);
                keys.map(|key| buckets(key).count_ones()).sum()
            };
            let least = [(4, 3.8), (16, 14.0), (128, 54.7)];
            let spreads = least.iter().all(|(functions, least)| f64::from(reached(*functions)) >= 256.0 * least);
            prop_assert_eq!(family.spreads(), spreads);
        }

        #[test]
        fn inverses_of_odd_numbers(odd: u64) {
            let odd = odd | 1;
            prop_assert_eq!(odd.wrapping_mul(inverse_of_odd(odd)), 1);
            prop_assert_eq!((odd as u8).wrapping_mul(inverse_of_odd(odd as u8)), 1);
        }
    }

    /// Typical keys: numbered, in the high bits only, in the low bits only, pairs of references.
    fn families_of_keys(bits: u32, count: u64) -> [(&'static str, Vec<u64>); 5] {
        let half = bits / 2;
        let mask = u64::MAX >> (64 - bits);
        let side = (count as f64).sqrt().ceil() as u64;
        [
            ("consecutive", (0..count).collect()),
            ("high bits only", (0..count).map(|key| key << (bits - count.ilog2() - 1)).collect()),
            ("low bits only", (0..count).map(|key| key | (mask & (!0 << (count.ilog2() + 1)))).collect()),
            ("roots of few nodes", (0..count).map(|key| ((key / side) << half) | (key % side)).collect()),
            ("multiples", (0..count).map(|key| key.wrapping_mul(0x1_0001) & mask).collect()),
        ]
    }

    /// Compares the loads of buckets with the binomial distribution: their variance, and the first functions with each other.
    #[test]
    fn buckets_are_as_evenly_full_as_chance_makes_them() {
        for bits in [24, 32, 45, 54, 58, 64] {
            for seed in 0..sized(3, 1, 1) {
                let family = Permutation::<u64>::random(bits, &mut StdRng::seed_from_u64(seed));
                for (name, keys) in families_of_keys(bits, 200_000) {
                    for (function, buckets) in [(0, 16_381u64), (1, 16_384), (3, 12_500), (31, 1000)] {
                        let mut loads = vec![0u32; buckets as usize];
                        for key in &keys {
                            let hash = u128::from(family.hash(function, *key));
                            loads[((hash * u128::from(buckets)) >> bits) as usize] += 1;
                        }
                        // Chi-square over its degrees of freedom: 1, give or take sqrt(2 / buckets).
                        let mean = keys.len() as f64 / buckets as f64;
                        let square: f64 = loads.iter().map(|load| (f64::from(*load) - mean).powi(2)).sum();
                        let ratio = square / mean / (buckets - 1) as f64;
                        // Loads that are more even than random ones do no harm.
                        let most = 1.0 + 6.0 * (2.0 / buckets as f64).sqrt();
                        assert!(ratio < most, "{bits} bits, {name}, function {function}, {buckets} buckets: {ratio} > {most}");
                    }
                }
            }
        }
    }
}
