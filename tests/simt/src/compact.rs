//! Compact tables as the definition in compact/table.cuh describes them: where keys may be, and which key a slot holds. This
//! module shares no code with the kernels: it uses 128-bit numbers, divisions, and walks written out as lists.

use warpset::gpu::{CompactView, HashView, LevelView};

/// One level. A level with zero rounds is absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Level {
    pub buckets: u64,
    pub functions: u64,
    /// Number of slots of a bucket that rounds 0 to r may take, for each round r.
    pub limits: [u64; 3],
    /// Number of rounds of a find-or-put.
    pub rounds: usize,
    /// Number of additional rounds for a key that is put back.
    pub kept_rounds: usize,
}

/// Layout of a compact table for one key size and one slot size.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub key_bits: u32,
    pub slot_bits: u32,
    pub levels: [Level; 2],
    pub multipliers: [u64; 3],
    pub step: u64,
}

const BUCKET_BYTES: u64 = 64;

impl Layout {
    fn bits(&self, level: usize) -> u64 {
        if level == 0 { self.slot_bits.into() } else { 64 }
    }

    pub fn slots_per_bucket(&self, level: usize) -> u64 {
        BUCKET_BYTES * 8 / self.bits(level)
    }

    pub fn slots(&self) -> u64 {
        (0..2).map(|level| self.levels[level].buckets * self.slots_per_bucket(level)).sum()
    }

    pub fn bytes(&self) -> usize {
        (self.levels[0].buckets + self.levels[1].buckets) as usize * BUCKET_BYTES as usize
    }

    pub fn window(&self, level: usize) -> u128 {
        (1u128 << self.key_bits).div_ceil(self.levels[level].buckets.into())
    }

    /// Maximum number of functions that fit the slots of a level.
    pub fn most_functions(&self, level: usize) -> u64 {
        ((1u128 << self.bits(level)) / self.window(level)).min(1 << 20) as u64
    }

    fn fold(&self, value: u64) -> u64 {
        value ^ value >> self.key_bits.div_ceil(2)
    }

    pub fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.key_bits)
    }

    fn hash(&self, function: u64, key: u64) -> u64 {
        let times = |value: u64, factor: usize| value.wrapping_mul(self.multipliers[factor]) & self.mask();
        let scrambled = times(self.fold(times(self.fold(key), 0)), 1);
        times(self.fold(scrambled.wrapping_add(function.wrapping_mul(self.step)) & self.mask()), 2)
    }

    fn key(&self, function: u64, hash: u64) -> u64 {
        let divided = |value: u64, factor: usize| value.wrapping_mul(inverse(self.multipliers[factor])) & self.mask();
        let scrambled = self.fold(divided(hash, 2)).wrapping_sub(function.wrapping_mul(self.step)) & self.mask();
        self.fold(divided(self.fold(divided(scrambled, 1)), 0))
    }

    fn first_function(&self, level: usize) -> u64 {
        if level == 0 { 0 } else { self.levels[0].functions }
    }

    /// Returns the bucket and the code of a key under a function of a level.
    pub fn quotiented(&self, level: usize, function: u64, key: u64) -> (u64, u64) {
        let hash = u128::from(self.hash(self.first_function(level) + function, key)) * u128::from(self.levels[level].buckets);
        let remainder = ((hash & u128::from(self.mask())) * self.window(level)) >> self.key_bits;
        ((hash >> self.key_bits) as u64, (u128::from(function) * self.window(level) + remainder) as u64)
    }

    /// Returns the key that has this code in a bucket; `None` if no key has.
    pub fn key_at(&self, level: usize, bucket: u64, code: u64) -> Option<u64> {
        let (function, remainder) = (u128::from(code) / self.window(level), u128::from(code) % self.window(level));
        let buckets = u128::from(self.levels[level].buckets);
        let first = (u128::from(bucket) << self.key_bits).div_ceil(buckets);
        let hashes = (0..3u128)
            .filter_map(|before| Some(first + remainder.checked_sub(before)?))
            .filter(|hash| *hash >> self.key_bits == 0);
        let keys = hashes.map(|hash| self.key(self.first_function(level) + function as u64, hash as u64));
        let fits = |key: &u64| {
            function < self.levels[level].functions.into() && self.quotiented(level, function as u64, *key) == (bucket, code)
        };
        keys.into_iter().find(fits)
    }

    /// Returns the level of a slot, its bucket, and its index in the bucket.
    fn at(&self, slot: u64) -> (usize, u64, u64) {
        let first = self.main_slots();
        let (level, slot) = if slot < first { (0, slot) } else { (1, slot - first) };
        (level, slot / self.slots_per_bucket(level), slot % self.slots_per_bucket(level))
    }

    /// Byte range of a slot's code.
    pub fn range(&self, slot: u64) -> std::ops::Range<usize> {
        let (level, bucket, index) = self.at(slot);
        let bucket = bucket + if level == 1 { self.levels[0].buckets } else { 0 };
        let start = (bucket * BUCKET_BYTES + index * self.bits(level) / 8) as usize;
        start..start + self.bits(level) as usize / 8
    }

    /// Returns the key that is stored if the slot holds the given code.
    pub fn key_in(&self, slot: u64, code: u64) -> Option<u64> {
        let (level, bucket, _) = self.at(slot);
        self.key_at(level, bucket, code)
    }

    /// Returns the slots of a key's walk, in order, including slots that only a key that is put back may take. Empty if the key
    /// has too many bits.
    pub fn walk(&self, key: u64) -> Vec<u64> {
        self.steps(key).into_iter().map(|(slot, _)| slot).collect()
    }

    /// Returns the slots of a key's walk that a find-or-put may take.
    pub fn walk_of_find_or_put(&self, key: u64) -> Vec<u64> {
        let levels = self.levels.map(|level| Level { kept_rounds: 0, ..level });
        Self { levels, ..*self }.walk(key)
    }

    /// Returns the slots of a key's walk, with the key's code in each slot.
    pub fn steps(&self, key: u64) -> Vec<(u64, u64)> {
        let mut steps = Vec::new();
        if key & !self.mask() != 0 {
            return steps;
        }
        let mut before = 0;
        for level in 0..2 {
            let Level { buckets, functions, limits, rounds, kept_rounds } = self.levels[level];
            for round in 0..rounds + kept_rounds {
                let from = if round == 0 { 0 } else { limits[round - 1] };
                for function in 0..functions {
                    let (bucket, code) = self.quotiented(level, function, key);
                    // Code 0 means EMPTY.
                    if code != 0 {
                        let first = before + bucket * self.slots_per_bucket(level);
                        steps.extend((from..limits[round]).map(|index| (first + index, code)));
                    }
                }
            }
            before += buckets * self.slots_per_bucket(level);
        }
        steps
    }

    /// Number of slots of the main level. The slots of the stash are numbered after them.
    pub fn main_slots(&self) -> u64 {
        self.levels[0].buckets * self.slots_per_bucket(0)
    }

    /// View of the table in the form for kernels.
    pub fn view(&self, slots: u64, stored: u64) -> CompactView {
        let level = |level: usize, slots| {
            let Level { buckets, functions, limits, rounds, kept_rounds } = self.levels[level];
            let (window, buckets) = if buckets == 0 { (1, 1) } else { (self.window(level) as u64, u128::from(buckets)) };
            let start = (1u128 << 96) / buckets;
            LevelView {
                slots,
                window,
                window_inverse: u64::MAX / window,
                start: (start >> 32) as u64,
                limits: (0..rounds + kept_rounds).map(|round| limits[round] << (8 * round)).sum(),
                start_fraction: start as u32,
                buckets: self.levels[level].buckets as u32,
                functions: functions as u32,
                first_function: self.first_function(level) as u32,
                rounds: rounds as u32,
                all_rounds: (rounds + kept_rounds) as u32,
            }
        };
        let stash = slots + self.levels[0].buckets * BUCKET_BYTES;
        let (multipliers, inverses) = (self.multipliers, self.multipliers.map(inverse));
        let hash = HashView { multipliers, inverses, step: self.step, bits: self.key_bits, last_bits: 32 };
        CompactView { main: level(0, slots), stash: level(1, stash), hash, stored }
    }
}

/// Returns the inverse of an odd number modulo 2^64: its power 2^62 - 1, because the 2^62nd power of every odd number is 1.
fn inverse(odd: u64) -> u64 {
    (0..62).fold((1u64, odd), |(product, power), _| (product.wrapping_mul(power), power.wrapping_mul(power))).0
}
