//! Random vectors of given duplication and internal duplication (Bergsma 2019, section 4.2).
//!
//! Every vector is computed from its position alone. So all cores can write the sequence, each rank can write its part, and the
//! same seed always gives the same sequence. `count` vectors hold exactly `distinct` different ones, each at least once, in
//! random order; repetitions are drawn uniformly.

use super::progress::WorkProgress;
use super::vectors::{Vectors, allocate, check_width};
use anyhow::{Result, ensure};
use indicatif::HumanCount;
use rayon::prelude::*;
use warpset_random::mix;

/// Vectors that a thread writes at a time.
const PIECE: usize = 4096;

/// Parameters of the random vectors.
#[derive(Clone, Copy, Debug)]
pub struct Parameters {
    pub width: u64,
    pub count: u64,
    /// Vectors / distinct vectors.
    pub duplication: f64,
    /// Words of the distinct vectors / values that these words have; every value of 32 bits is possible if `None`.
    pub internal_duplication: Option<f64>,
    pub seed: u64,
    /// Bytes that the vectors may take; by default all free memory.
    pub memory: Option<u64>,
}

pub fn generate(parameters: &Parameters) -> Result<Vectors> {
    let generator = Generator::new(parameters)?;
    let width = generator.width;
    let mut words = allocate(parameters.count, width, parameters.memory)?;
    let progress = WorkProgress::new("generating", parameters.count);
    words.par_chunks_mut(width * PIECE).enumerate().for_each(|(piece, words)| {
        for (position, vector) in ((piece * PIECE) as u64..).zip(words.chunks_exact_mut(width)) {
            generator.write(position, vector);
        }
        progress.advance((words.len() / width) as u64);
    });
    let internal = parameters.internal_duplication.map_or(String::new(), |factor| format!(", internal duplication {factor}"));
    let origin = format!("random, duplication {}{internal}, seed {}", parameters.duplication, parameters.seed);
    Ok(Vectors { words, width, distinct: Some(generator.distinct), origin })
}

struct Generator {
    width: usize,
    distinct: u64,
    order: Permutation,
    /// Number of values that a word may have: 1 to 2^32.
    values: u64,
    /// One key for each use of random numbers, so that the uses are independent.
    keys: [u64; 4],
}

impl Generator {
    fn new(parameters: &Parameters) -> Result<Self> {
        let width = check_width(parameters.width)?;
        let distinct = ((parameters.count as f64 / parameters.duplication).round().max(1.0) as u64).min(parameters.count);
        let values = match parameters.internal_duplication {
            None => 1 << 32,
            Some(factor) => (distinct as f64 * width as f64 / factor).ceil().clamp(1.0, (1u64 << 32) as f64) as u64,
        };
        let possible = values.saturating_pow(width as u32);
        ensure!(
            distinct <= possible,
            "{} distinct vectors were asked for, but there are only {} of {width} words with {} different values: \
             ask for wider vectors, more duplication or less internal duplication",
            HumanCount(distinct),
            HumanCount(possible),
            HumanCount(values)
        );
        let keys = std::array::from_fn(|use_of| mix(parameters.seed ^ mix(use_of as u64)));
        Ok(Self { width, distinct, order: Permutation::new(parameters.count, keys[0]), values, keys })
    }

    /// Writes the vector at this position of the sequence.
    fn write(&self, position: u64, vector: &mut [u32]) {
        let rank = self.order.at(position);
        // The unshuffled sequence has each distinct vector first, then the repetitions.
        let id = if rank < self.distinct { rank } else { below(self.distinct, mix(rank ^ self.keys[1])) };
        self.write_distinct(id, vector);
    }

    /// Writes the `id`th distinct vector.
    ///
    /// Its words start as the digits of `id` to the base `values`; each pass adds to every word a hash of the words changed
    /// before. Both steps can be undone, so different ids give different vectors, even for few values.
    fn write_distinct(&self, id: u64, vector: &mut [u32]) {
        let mut rest = id;
        for word in vector.iter_mut() {
            // Most digits are zeros, which need no division.
            *word = if rest == 0 { 0 } else { (rest % self.values) as u32 };
            rest = if rest < self.values { 0 } else { rest / self.values };
        }
        self.scramble(vector.iter_mut(), self.keys[2]);
        self.scramble(vector.iter_mut().rev(), self.keys[3]);
        vector.iter_mut().for_each(|word| *word = spread(*word));
    }

    fn scramble<'a>(&self, words: impl Iterator<Item = &'a mut u32>, key: u64) {
        let mut state = key;
        for word in words {
            let sum = u64::from(*word) + below(self.values, state);
            *word = (if sum < self.values { sum } else { sum - self.values }) as u32;
            state = fold(state ^ u64::from(*word));
        }
    }
}

/// A random order of `0..count`: a Feistel network over the bits of the next power of two, applied until it hits the range.
struct Permutation {
    count: u64,
    low_bits: u32,
    low_mask: u64,
    high_mask: u64,
    key: u64,
}

impl Permutation {
    const ROUNDS: u64 = 4;

    fn new(count: u64, key: u64) -> Self {
        let bits = count.max(1).next_power_of_two().ilog2();
        let low_bits = bits.div_ceil(2);
        Self { count, low_bits, low_mask: (1 << low_bits) - 1, high_mask: (1 << (bits - low_bits)) - 1, key }
    }

    fn at(&self, position: u64) -> u64 {
        let mut rank = self.step(position);
        while rank >= self.count {
            rank = self.step(rank);
        }
        rank
    }

    fn step(&self, rank: u64) -> u64 {
        let (mut high, mut low) = (rank >> self.low_bits, rank & self.low_mask);
        for round in 0..Self::ROUNDS {
            low ^= mix(high ^ self.key.wrapping_add(2 * round)) & self.low_mask;
            high ^= mix(low ^ self.key.wrapping_add(2 * round + 1)) & self.high_mask;
        }
        high << self.low_bits | low
    }
}

/// A hash of 64 bits that is faster than [`mix`] and good enough in a chain (the folded product of Wang Yi's wyhash).
fn fold(value: u64) -> u64 {
    let product = u128::from(value) * 0xa076_1d64_78bd_642f;
    (product ^ product >> 64) as u64
}

/// Maps a 64-bit hash to a number below `limit`.
fn below(limit: u64, hash: u64) -> u64 {
    ((u128::from(limit) * u128::from(hash)) >> 64) as u64
}

/// Spreads values over all 32 bits, one to one (the finaliser of MurmurHash3).
fn spread(value: u32) -> u32 {
    let mut hash = (value ^ value >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const PLAIN: Parameters =
        Parameters { width: 4, count: 100_000, duplication: 2.0, internal_duplication: None, seed: 1, memory: None };

    fn distinct(vectors: &Vectors) -> usize {
        vectors.iter().collect::<HashSet<_>>().len()
    }

    fn values(words: impl IntoIterator<Item = u32>) -> usize {
        words.into_iter().collect::<HashSet<_>>().len()
    }

    #[test]
    fn duplication_is_exact() {
        for (width, count, duplication, expected) in [
            (1, 100_000, 1.0, 100_000),
            (1, 100_000, 2.0, 50_000),
            (2, 100_000, 1.12, 89_286),
            (3, 4_097, 1.0, 4_097),
            (8, 100_000, 25.0, 4_000),
            (37, 10_000, 3.0, 3_333),
            (256, 100, 1000.0, 1),
            (5, 1, 2.0, 1),
            (5, 0, 2.0, 0),
        ] {
            let vectors = generate(&Parameters { width, count, duplication, ..PLAIN }).unwrap();
            assert_eq!(vectors.count() as u64, count);
            assert_eq!(distinct(&vectors), expected, "{count} vectors of width {width}, duplication {duplication}");
            assert_eq!(vectors.distinct, Some(expected as u64));
        }
    }

    #[test]
    fn internal_duplication_is_words_per_value() {
        // 50,000 distinct vectors have 200,000 words, so 2,000 values; each value is expected 25 times at each position.
        let vectors = generate(&Parameters { internal_duplication: Some(100.0), ..PLAIN }).unwrap();
        assert_eq!(distinct(&vectors), 50_000);
        assert_eq!(values(vectors.words.iter().copied()), 2_000);
        for position in 0..4 {
            assert_eq!(values(vectors.iter().map(|vector| vector[position])), 2_000, "position {position}");
        }
        // The number of distinct pairs of neighbours is that of independent words: most of 50,000.
        let pairs = vectors.iter().map(|vector| [vector[0], vector[1]]).collect::<HashSet<_>>().len();
        assert!((48_000..50_000).contains(&pairs), "{pairs} pairs");
    }

    #[test]
    fn few_values_are_enough_for_nearly_all_their_vectors() {
        let tight = Parameters { width: 2, count: 1000, duplication: 1.0, internal_duplication: Some(63.0), ..PLAIN };
        let vectors = generate(&tight).unwrap(); // 32 values: 1,024 vectors
        assert_eq!((distinct(&vectors), values(vectors.words)), (1000, 32));
        let error = generate(&Parameters { internal_duplication: Some(65.0), ..tight }).err().unwrap().to_string();
        assert!(error.contains("1,000") && error.contains("961") && error.contains("31"), "{error}");
    }

    #[test]
    fn repetitions_are_anywhere() {
        let vectors = generate(&PLAIN).unwrap();
        let half = Vectors { words: vectors.words[..200_000].to_vec(), ..vectors };
        // Each vector is offered once and, on average, once more (Poisson), so a half lacks exp(-1/2) / 2 = 30 % of the 50,000.
        assert!((34_300..35_400).contains(&distinct(&half)), "{} distinct in the first half", distinct(&half));
    }

    #[test]
    fn the_seed_decides() {
        let words = |seed| generate(&Parameters { seed, ..PLAIN }).unwrap().words;
        assert_eq!(words(1), words(1));
        assert_ne!(words(1), words(2));
    }

    #[test]
    fn a_permutation_has_every_place_once() {
        for count in (1..70).chain([1000, 4096, 5000]) {
            let permutation = Permutation::new(count, 7);
            let mut ranks: Vec<u64> = (0..count).map(|position| permutation.at(position)).collect();
            ranks.sort_unstable();
            assert!(ranks.into_iter().eq(0..count), "{count}");
        }
    }
}
