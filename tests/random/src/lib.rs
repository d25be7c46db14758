//! Random numbers for tests, benches and examples: SplitMix64 (Steele, Lea and Flood 2014), determined by a seed.
//!
//! Tests need many numbers and hashes, and this package is optimised in debug builds too. There the generators of `rand` take
//! most of a test's time, and the standard library's hasher takes a part of it.

mod draw;
mod hasher;

pub use draw::draw;
pub use hasher::{Mixed, Mixer};

/// Increment of SplitMix64's state: 2^64 divided by the golden ratio, odd.
pub const INCREMENT: u64 = 0x9E37_79B9_7F4A_7C15;

/// Hash of a number: the output of SplitMix64 in this state. A bijection, so distinct numbers have distinct hashes.
#[inline]
pub fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(INCREMENT);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Sequence of random numbers: hashes of consecutive numbers, from the hash of a seed on.
#[derive(Clone, Copy, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self { state: mix(seed) }
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(1);
        mix(self.state)
    }

    /// The next number, scaled to less than `end`.
    pub fn number_below(&mut self, end: u64) -> u64 {
        ((u128::from(self.number()) * u128::from(end)) >> 64) as u64
    }

    /// [`number_below`](Self::number_below) for lengths and positions.
    pub fn below(&mut self, end: usize) -> usize {
        self.number_below(end as u64) as usize
    }

    /// Shuffles items; every order is equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of the authors' program for the seed 1234567.
    #[test]
    fn numbers_are_those_of_splitmix64() {
        let outputs: Vec<u64> = (0..5).map(|step| mix(INCREMENT.wrapping_mul(step).wrapping_add(1_234_567))).collect();
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(outputs, expected);
    }

    #[test]
    fn numbers_below_an_end_are_below_it_and_differ() {
        let mut random = Random::new(3);
        let numbers: Vec<u64> = (0..1000).map(|_| random.number_below(7)).collect();
        assert!((0..7).all(|number| numbers.contains(&number)) && numbers.iter().all(|number| *number < 7));
    }

    #[test]
    fn shuffled_items_are_the_same_items() {
        let mut items: Vec<usize> = (0..100).collect();
        Random::new(1).shuffle(&mut items);
        assert!(!items.is_sorted());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
