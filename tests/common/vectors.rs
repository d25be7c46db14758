//! Vectors to offer, and pseudorandom numbers that are the same in every run.

use std::collections::{HashMap, HashSet};
use warpset_random::Mixed;
pub use warpset_random::{Random, mix};

/// Widths of the property tests: in a full run all to 40, where the layouts differ most, and some around powers of two; otherwise
/// `some_widths`, and the widest.
pub fn all_widths() -> Vec<usize> {
    let wide = [41, 47, 48, 63, 64, 65, 96, 100, 127, 128, 129, 160, 192, 200, 255, 256];
    if super::fast() {
        some_widths()
    } else if super::full() {
        (1..=40).chain(wide).collect()
    } else {
        some_widths().into_iter().chain([256]).collect()
    }
}

/// One width of each kind of layout: one chunk or many, each combination of tails, many slots a bucket or one.
pub fn some_widths() -> Vec<usize> {
    super::scaled(vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17, 33, 64, 100], vec![1, 3, 4, 7, 16, 33])
}

/// `count` vectors, pairwise distinct: their first two words (the only one, if the width is 1) are a bijection of their number.
pub fn distinct(width: usize, first: u64, count: usize) -> Vec<u32> {
    let mut words = Vec::with_capacity(width * count);
    for number in first..first + count as u64 {
        let mixed = mix(number);
        if width == 1 {
            // Odd multiplication and a shift are bijections of 32-bit words.
            let word = (number as u32).wrapping_mul(0x9E37_79B1);
            words.push(word ^ (word >> 15));
        } else {
            words.extend([mixed as u32, (mixed >> 32) as u32]);
            words.extend((2..width).map(|word| (mixed >> (word % 32)) as u32 ^ word as u32));
        }
    }
    words
}

/// Resemblance between the vectors of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Nothing in common.
    Random,
    /// Small numbers in the first word, zeros else.
    FirstWord,
    /// Small numbers in the last word, zeros else: equal up to the last chunk.
    LastWord,
    /// One bit of all zeros, of all ones, or of a random vector flipped.
    OneBit,
    /// Words out of 0, 1, all ones and the top bit.
    FewWords,
    /// The first half equal.
    CommonPrefix,
    /// The second half equal.
    CommonSuffix,
    /// Equal words in different orders.
    Rotated,
}

impl Family {
    pub const ALL: [Self; 8] = [
        Self::Random,
        Self::FirstWord,
        Self::LastWord,
        Self::OneBit,
        Self::FewWords,
        Self::CommonPrefix,
        Self::CommonSuffix,
        Self::Rotated,
    ];

    /// Vector `number` of the family. Some families are small, so that vectors repeat.
    pub fn vector(self, width: usize, number: u64) -> Vec<u32> {
        let random = |number: u64, word: usize| mix(number << 16 | word as u64) as u32;
        let half = width / 2;
        (0..width)
            .map(|word| match self {
                Self::Random => random(number, word),
                Self::FirstWord => number as u32 * u32::from(word == 0),
                Self::LastWord => number as u32 * u32::from(word == width - 1),
                Self::OneBit => {
                    let (bit, base) = (number as usize % (32 * width), number as usize / (32 * width));
                    let unflipped = [0, u32::MAX].get(base).copied().unwrap_or_else(|| random(base as u64, word));
                    unflipped ^ (u32::from(bit / 32 == word) << (bit % 32))
                }
                Self::FewWords => [0, 1, u32::MAX, 1 << 31][random(number, word) as usize % 4],
                Self::CommonPrefix if word < half => random(0, word),
                Self::CommonSuffix if word > half => random(0, word),
                Self::CommonPrefix | Self::CommonSuffix => random(number + 1, word),
                Self::Rotated => random(number / width as u64, (word + number as usize) % width),
            })
            .collect()
    }
}

/// Distinct vectors of one width, known by their position.
pub struct Pool {
    width: usize,
    words: Vec<u32>,
    positions: HashMap<Box<[u32]>, usize, Mixed>,
}

impl Pool {
    /// The vectors given, each once.
    pub fn new(width: usize, vectors: impl IntoIterator<Item = Vec<u32>>) -> Self {
        let mut pool = Self { width, words: Vec::new(), positions: HashMap::default() };
        for vector in vectors {
            assert_eq!(vector.len(), width);
            if !pool.positions.contains_key(&vector[..]) {
                pool.words.extend_from_slice(&vector);
                pool.positions.insert(vector.into(), pool.positions.len());
            }
        }
        pool
    }

    /// About `count` vectors of a family; fewer if the family is smaller.
    pub fn of(family: Family, width: usize, count: usize) -> Self {
        Self::new(width, (0..count as u64).map(|number| family.vector(width, number)))
    }

    /// `count` vectors with nothing in common.
    pub fn distinct(width: usize, count: usize) -> Self {
        Self::new(width, distinct(width, 0, count).chunks(width).map(<[u32]>::to_vec))
    }

    pub fn width(&self) -> usize {
        self.width
    }

    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Position of a vector; `None` if the pool does not have it.
    pub fn position(&self, vector: &[u32]) -> Option<usize> {
        self.positions.get(vector).copied()
    }

    pub fn vector(&self, at: usize) -> &[u32] {
        &self.words[at * self.width..][..self.width]
    }

    /// All vectors, one after another.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// The vectors at these positions, one after another.
    pub fn batch(&self, positions: &[usize]) -> Vec<u32> {
        let mut words = Vec::with_capacity(positions.len() * self.width);
        positions.iter().for_each(|&at| words.extend_from_slice(self.vector(at)));
        words
    }

    /// All positions.
    pub fn all(&self) -> Vec<usize> {
        (0..self.len()).collect()
    }

    /// All positions, each `copies` times, shuffled.
    pub fn shuffled(&self, copies: usize, seed: u64) -> Vec<usize> {
        let mut positions: Vec<usize> = (0..self.len() * copies).map(|at| at % self.len()).collect();
        Random::new(seed).shuffle(&mut positions);
        positions
    }
}

/// The largest key of `key_bits` bits.
pub fn mask(key_bits: u32) -> u64 {
    u64::MAX >> (64 - key_bits)
}

/// `count` distinct keys of `key_bits` bits; the smallest and the largest are among them.
pub fn keys(key_bits: u32, count: usize) -> Vec<u64> {
    let mut met = HashSet::<u64, Mixed>::default();
    let some = [0, mask(key_bits), 1, mask(key_bits) - 1, 1 << (key_bits - 1)];
    some.into_iter().chain((0..).map(|n| mix(n) & mask(key_bits))).filter(|key| met.insert(*key)).take(count).collect()
}
