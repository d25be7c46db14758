//! Marks of states in a table: one bit for each slot.

use anyhow::Result;
use warpset::{Reference, Storage, VectorTable};

/// Number of slots whose states are read at a time.
const PIECE: usize = 1 << 16;

/// A set of slots: those of states that wait to be expanded.
#[derive(Default)]
pub struct Marks {
    bits: Vec<u64>,
    /// Every word before this one is 0.
    pub first: usize,
    /// Number of bits that are set.
    pub count: usize,
}

impl Marks {
    /// Marks from bits of slots, 32 of them in a word.
    #[cfg(feature = "cuda")]
    pub fn of_words(words: &[u32]) -> Self {
        let word = |pair: &[u32]| u64::from(pair[0]) | u64::from(pair.get(1).copied().unwrap_or(0)) << 32;
        let bits: Vec<u64> = words.chunks(2).map(word).collect();
        let count = bits.iter().map(|bits| bits.count_ones() as usize).sum();
        Self { bits, first: 0, count }
    }

    pub fn bytes(&self) -> u64 {
        8 * self.bits.capacity() as u64
    }

    /// Allocates memory for this number of slots. Returns false if there is none.
    pub fn reserve(&mut self, slots: u64) -> bool {
        let words = slots.div_ceil(64) as usize;
        let fits = self.bits.try_reserve_exact(words.saturating_sub(self.bits.len())).is_ok();
        if fits && self.bits.len() < words {
            self.bits.resize(words, 0);
        }
        fits
    }

    /// Marks a slot. Returns false if there is no memory for its mark. (Rows of an indexed table may have larger numbers than
    /// its slots.)
    pub fn mark(&mut self, place: Reference) -> bool {
        let slot = place.slot();
        let (word, bit) = ((slot / 64) as usize, 1 << (slot % 64));
        if word >= self.bits.len() && !self.reserve(slot + slot / 8 + 1) {
            return false;
        }
        self.count += usize::from(self.bits[word] & bit == 0);
        self.bits[word] |= bit;
        self.first = self.first.min(word);
        true
    }

    /// Removes the first marks, at most `most`, and returns their places.
    pub fn take<S: Storage>(&mut self, table: &VectorTable<S>, most: usize) -> Vec<Reference> {
        let mut taken = Vec::with_capacity(most.min(self.count));
        while taken.len() < most && self.count > 0 {
            let Some(bits) = self.bits.get_mut(self.first) else { break };
            if *bits == 0 {
                self.first += 1;
                continue;
            }
            taken.extend(table.reference(64 * self.first as u64 + u64::from(bits.trailing_zeros())));
            *bits &= *bits - 1;
            self.count -= 1;
        }
        taken
    }

    /// Calls `take` with the words of all marked states, in parts.
    pub fn read<S: Storage>(&self, table: &VectorTable<S>, take: &mut dyn FnMut(&[u32]) -> Result<()>) -> Result<()> {
        for (part, bits) in self.bits.chunks(PIECE / 64).enumerate() {
            let slots = (0u64..)
                .zip(bits)
                .flat_map(|(word, bits)| (0..64).filter(move |bit| bits >> bit & 1 > 0).map(move |bit| 64 * word + bit));
            let places: Vec<Reference> = slots.filter_map(|slot| table.reference((part * PIECE) as u64 + slot)).collect();
            take(&table.get_many(&places)?)?;
        }
        Ok(())
    }
}
