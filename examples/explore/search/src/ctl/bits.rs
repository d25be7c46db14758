//! Sets of states: a bit a state.

use std::sync::atomic::{AtomicU64, Ordering};

/// A set of numbers below a limit. Bits above it are 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits(pub Vec<u64>);

/// A set, or its complement.
#[derive(Clone, Copy)]
pub struct View<'b> {
    words: &'b [u64],
    flip: u64,
}

/// A set to which threads add.
///
/// Bits are only set, never cleared, so an order of the threads is not needed: a thread that does not see a bit yet takes the
/// number for one that is not decided, and looks at it again in the next sweep. A sweep ends with a join of all threads.
pub struct Growing(Vec<AtomicU64>);

impl Bits {
    pub fn none(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    pub fn all(count: usize) -> Self {
        let mut bits = Self(vec![u64::MAX; count.div_ceil(64)]);
        if !count.is_multiple_of(64)
            && let Some(last) = bits.0.last_mut()
        {
            *last = u64::MAX >> (64 - count % 64);
        }
        bits
    }

    pub fn contains(&self, number: usize) -> bool {
        self.0[number / 64] >> (number % 64) & 1 != 0
    }

    /// Adds a number; returns whether it was not in the set.
    pub fn insert(&mut self, number: usize) -> bool {
        let (word, bit) = (&mut self.0[number / 64], 1 << (number % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    pub fn remove(&mut self, number: usize) {
        self.0[number / 64] &= !(1 << (number % 64));
    }

    pub fn view(&self, is_negated: bool) -> View<'_> {
        View { words: &self.0, flip: if is_negated { u64::MAX } else { 0 } }
    }
}

/// The numbers of the bits of a word.
pub fn numbers(at: usize, mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
        word &= word - 1;
        Some(64 * at + bit)
    })
}

impl View<'_> {
    pub fn contains(&self, number: usize) -> bool {
        (self.words[number / 64] ^ self.flip) >> (number % 64) & 1 != 0
    }

    /// A word of the set. Bits above the limit are undefined.
    pub fn word(&self, at: usize) -> u64 {
        self.words[at] ^ self.flip
    }

    /// The members of both sets, among those of a third one.
    pub fn and(&self, other: &View, within: &Bits) -> Bits {
        Bits(within.0.iter().enumerate().map(|(at, within)| self.word(at) & other.word(at) & within).collect())
    }

    /// The members that are in another set, too.
    pub fn within(&self, within: &Bits) -> Bits {
        self.and(self, within)
    }

    pub fn count(&self, within: &Bits) -> u64 {
        within.0.iter().enumerate().map(|(at, within)| u64::from((self.word(at) & within).count_ones())).sum()
    }
}

impl Growing {
    pub fn of(bits: Bits) -> Self {
        Self(bits.0.into_iter().map(AtomicU64::new).collect())
    }

    pub fn contains(&self, number: usize) -> bool {
        self.word(number / 64) >> (number % 64) & 1 != 0
    }

    pub fn word(&self, at: usize) -> u64 {
        // Relaxed: the argument is above.
        self.0[at].load(Ordering::Relaxed)
    }

    pub fn insert(&self, number: usize) {
        // Relaxed: the argument is above.
        self.0[number / 64].fetch_or(1 << (number % 64), Ordering::Relaxed);
    }

    pub fn bits(self) -> Bits {
        Bits(self.0.into_iter().map(AtomicU64::into_inner).collect())
    }
}
