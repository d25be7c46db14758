//! Layout of a compact table. cuda/warpset/compact/table.cuh gives the reasons.

use super::limits::LAST_BITS;
use super::permutation::{Permutation, inverse_of_odd};
use super::view::{CompactView, HashView, LevelView};

/// Bytes of a bucket, whatever the size of its slots.
const BUCKET_BYTES: u64 = 64;

/// Buckets of the smallest table.
const LEAST_BUCKETS: u64 = 16;

/// Largest number of buckets of a level that a search looks at.
const MOST_FUNCTIONS: u64 = 128;

/// Largest number of keys that may be searched for at the same moment: more than any GPU has lanes at work (an H200: 152,064).
const AT_ONCE: u64 = 1 << 19;

/// Largest number of functions of a cuckoo table's stash. A key is Full only after a search of this number of buckets, and a
/// batch may have many such keys before keys are relocated. With 128 functions, filling 2^28 slots to 0.9 in one batch reached
/// only 0.8 G/s on an H200.
const STASH_FUNCTIONS: u64 = 16;

/// One level of a compact table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Level {
    pub buckets: u64,
    pub slots_per_bucket: u64,
    /// Largest number of hashes that belong to a bucket.
    pub window: u64,
    pub functions: u64,
    first_function: u64,
    /// For each round, the slots of a bucket, in sixteenths, that this round and earlier ones may take. Empty if the level does
    /// not exist.
    limits: &'static [u64],
    /// Number of rounds at the end that are only for keys that are put back (compact/relocation.cuh): 1 in the stash of a cuckoo
    /// table, otherwise 0.
    kept_rounds: usize,
}

impl Level {
    /// `None` if not even the codes of one function fit the slots. `buckets` is at least 2.
    fn new(key_bits: u32, slot_bits: u32, buckets: u64, first_function: u64) -> Option<Self> {
        let window = (1u128 << key_bits).div_ceil(buckets.into());
        let functions = ((1u128 << slot_bits) / window).min(MOST_FUNCTIONS.into()) as u64;
        let limits: &[u64] = match functions {
            0 => return None,
            2 => &[11, 13, 14, 15, 16],
            3 => &[14, 15, 16],
            4..8 => &[15, 16],
            _ => &[16],
        };
        let slots_per_bucket = BUCKET_BYTES * 8 / u64::from(slot_bits);
        Some(Self { buckets, slots_per_bucket, window: window as u64, functions, first_function, limits, kept_rounds: 0 })
    }

    /// Returns this level with the two functions of a cuckoo table; `None` if their codes do not fit the slots.
    fn of_two_functions(self) -> Option<Self> {
        (self.functions >= 2).then_some(Self { functions: 2, limits: &[16], ..self })
    }

    pub(crate) fn slots(&self) -> u64 {
        self.buckets * self.slots_per_bucket
    }

    /// Number of slots of a stash for the keys that find no free slot in this level, if level and stash are filled to 0.95.
    /// `None` if there are no such keys.
    ///
    /// If keys are put one after another, a certain share of all keys finds no slot. The share falls with the number of
    /// functions. If many keys are put at once, all of them take their first step before any takes its second. Many buckets are
    /// then full in the first steps while buckets of later steps have free slots, and two to five times as many keys find no
    /// slot. So the stash also has space for this larger share of the first `AT_ONCE` slots, and for six standard deviations. The
    /// shares are from a simulation like that of the test `no_key_is_rejected_up_to_95_percent`.
    fn stash_slots_at_95_percent(&self) -> Option<u64> {
        // Reciprocals of the shares: of all slots, and of the slots whose keys may all be under way at the same time.
        let (of_all, at_once) = match self.functions {
            1 => (16, 16),
            2 => (64, 18),
            3 => (256, 48),
            4..8 => (256, 64),
            8..12 => (256, 96),
            12..24 => (2048, 192),
            24..64 => (2048, 512),
            64..MOST_FUNCTIONS => (1 << 16, 1 << 12),
            _ => return None,
        };
        let many = self.slots().min(AT_ONCE);
        // Buckets of 8 slots are filled less evenly.
        let uneven = if self.slots_per_bucket == 8 { 2 } else { 1 };
        Some(self.slots() / of_all + many * uneven / at_once + many.isqrt())
    }

    /// Number of slots of the stash of a cuckoo table. They are for keys that find no free slot until keys are relocated.
    ///
    /// Find-or-put may take 5/8 of these slots. It takes four fifths of this part before the first key is Full, and nearly all of
    /// it before many keys are Full (benches/compact.md has the time of relocation).
    fn cuckoo_stash_slots(&self) -> u64 {
        self.slots() / 256 + self.slots().min(AT_ONCE) / 256 + 64
    }

    fn bytes(&self) -> u64 {
        self.buckets * BUCKET_BYTES
    }

    /// Number of slots of a bucket that this round and earlier ones may take.
    fn limit(&self, round: usize) -> u64 {
        self.limits[round] * self.slots_per_bucket / 16
    }

    fn view(&self, address: u64) -> LevelView {
        let whole = 1u128 << 64;
        let buckets = u128::from(self.buckets.max(2));
        LevelView {
            slots: address,
            window: self.window,
            window_inverse: u64::MAX / self.window.max(1),
            start: (whole / buckets) as u64,
            start_fraction: (((whole % buckets) << 32) / buckets) as u32,
            limits: (0..self.limits.len()).rev().fold(0, |limits, round| limits << 8 | self.limit(round)),
            buckets: self.buckets as u32,
            functions: self.functions as u32,
            first_function: self.first_function as u32,
            rounds: (self.limits.len() - self.kept_rounds) as u32,
            all_rounds: self.limits.len() as u32,
        }
    }
}

/// The layout of a compact table of some size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub key_bits: u32,
    pub main: Level,
    /// A level of 64-bit slots, for keys that find no free slot in the main level.
    pub stash: Level,
}

impl Layout {
    /// Returns `None` if the keys do not fit the slots. `buckets` is at least 2 and less than 2^32. Keys of a `cuckoo` table are
    /// relocated (compact/relocation.cuh).
    pub(crate) fn new(key_bits: u32, slot_bits: u32, buckets: u64, cuckoo: bool) -> Option<Self> {
        let main = Level::new(key_bits, slot_bits, buckets, 0)?;
        if cuckoo {
            let main = main.of_two_functions()?;
            let buckets = main.cuckoo_stash_slots().div_ceil(BUCKET_BYTES / 8);
            let stash = Level::new(key_bits, 64, buckets, main.functions)?;
            let functions = stash.functions.min(STASH_FUNCTIONS);
            return Some(Self { key_bits, main, stash: Level { functions, limits: &[10, 16], kept_rounds: 1, ..stash } });
        }
        let Some(slots) = main.stash_slots_at_95_percent() else {
            return Some(Self { key_bits, main, stash: Level::default() });
        };
        let buckets = slots.div_ceil(BUCKET_BYTES / 8).max(2);
        let stash = Level::new(key_bits, 64, buckets, main.functions)?;
        Some(Self { key_bits, main, stash })
    }

    /// Smallest number of bits of a slot with which a table of `slots` slots, for keys of `key_bits` bits, can be filled to 0.95;
    /// 64 if no smaller number is enough.
    pub(crate) fn default_slot_bits(key_bits: u32, slots: u64, cuckoo: bool) -> u32 {
        let reaches = |slot_bits: &u32| {
            let buckets = buckets_for(slots, *slot_bits);
            Self::new(key_bits, *slot_bits, buckets, cuckoo).is_some_and(|layout| cuckoo || layout.main.functions >= 3)
        };
        [16, 32].into_iter().find(reaches).unwrap_or(64)
    }

    pub(crate) fn slots(&self) -> u64 {
        self.main.slots() + self.stash.slots()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.main.bytes() + self.stash.bytes()
    }

    /// Returns the view of a table whose slots are at `address`: the slots of the main level, then those of the stash.
    pub(crate) fn view(&self, family: &Permutation<u64>, address: u64, stored: u64) -> CompactView {
        let hash = HashView {
            multipliers: family.multipliers,
            inverses: family.multipliers.map(inverse_of_odd),
            step: family.step,
            bits: self.key_bits,
            last_bits: LAST_BITS,
        };
        CompactView { main: self.main.view(address), stash: self.stash.view(address + self.main.bytes()), hash, stored }
    }
}

/// Number of buckets for `slots` slots of the main level: at least a kibibyte of buckets, because a few buckets cannot be filled
/// evenly.
pub(crate) fn buckets_for(slots: u64, slot_bits: u32) -> u64 {
    slots.div_ceil(BUCKET_BYTES * 8 / u64::from(slot_bits)).max(LEAST_BUCKETS)
}

/// Smallest number of slots at which `key_bits`-bit keys fit `slot_bits`-bit slots. Exceeds `MAX_CAPACITY` if none does.
pub(crate) fn fewest_slots(key_bits: u32, slot_bits: u32, cuckoo: bool) -> u64 {
    // The number of a cuckoo table's function takes one more bit of a slot.
    let buckets = LEAST_BUCKETS.max(1 << (key_bits + u32::from(cuckoo)).saturating_sub(slot_bits));
    buckets * (BUCKET_BYTES * 8 / u64::from(slot_bits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpset_testing::sizes::sized;

    /// Limits and stashes are those of the table in cuda/warpset/compact/table.cuh.
    #[test]
    fn layouts_of_known_sizes() {
        // Bits of keys and slots, slots; functions, rounds, slots of the stash.
        for (key_bits, slot_bits, slots, functions, rounds, stash) in [
            (45, 32, 1 << 28, 128, 1, 0),
            (54, 32, 1 << 28, 4, 2, (1 << 20) + 8920),
            (54, 32, 1 << 29, 8, 1, (1 << 21) + 6192),
            (58, 32, 1 << 30, 1, 1, (1 << 26) + 33496),
            (58, 32, 1 << 31, 2, 5, (1 << 25) + 29856),
            (64, 64, 1 << 28, 128, 1, 0),
            (20, 16, 1 << 16, 128, 1, 0),
            (20, 16, 512, 1, 1, 32 + 56),
            (64, 64, 10, 16, 1, 16),
        ] {
            let layout = Layout::new(key_bits, slot_bits, buckets_for(slots, slot_bits), false).expect("it fits");
            let found = (layout.main.functions, layout.main.limits.len(), layout.stash.slots());
            assert_eq!(found, (functions, rounds, stash), "{key_bits} bits in {slots} slots of {slot_bits}");
        }
        assert_eq!(Layout::new(64, 32, 1 << 24, false), None);
    }

    /// For every size, the codes of all functions fit the slots. The codes of one more function would not fit, unless there are
    /// `MOST_FUNCTIONS` functions.
    #[test]
    fn codes_fill_the_slots() {
        for key_bits in 20..=64 {
            for slot_bits in [16, 32, 64] {
                for buckets in (2..300).chain([1000, 4095, 4096, 4097, 1 << 20, (1 << 32) - 1]) {
                    let Some(layout) = Layout::new(key_bits, slot_bits, buckets, false) else {
                        assert!((1u128 << key_bits) > u128::from(buckets) << slot_bits);
                        continue;
                    };
                    for (level, slot_bits) in [(layout.main, slot_bits), (layout.stash, 64)] {
                        let codes = |functions: u64| u128::from(functions) * u128::from(level.window);
                        assert!(codes(level.functions) <= 1 << slot_bits, "{key_bits}, {level:?}");
                        let more = level.functions + 1;
                        assert!(level.buckets == 0 || codes(more) > 1 << slot_bits || level.functions == MOST_FUNCTIONS);
                        assert!(u128::from(level.window) * u128::from(level.buckets) >= 1 << key_bits || level.buckets == 0);
                    }
                }
            }
        }
    }

    /// Simulates putting keys into a table that only counts the slots taken in each bucket. Returns how many keys find no free
    /// slot. `under_way` keys at a time take a step in turn.
    fn rejected(layout: &Layout, family: &Permutation<u64>, keys: impl Iterator<Item = u64>, under_way: usize) -> u64 {
        let mut taken = [layout.main, layout.stash].map(|level| vec![0; level.buckets as usize]);
        let mut keys = keys.fuse();
        // For each key: its bits, its level, round and function.
        let mut walks: Vec<(u64, usize, usize, u64)> = Vec::new();
        let mut rejected = 0;
        loop {
            walks.extend(keys.by_ref().take(under_way - walks.len()).map(|key| (key, 0, 0, 0)));
            if walks.is_empty() {
                return rejected;
            }
            walks.retain_mut(|(key, at, round, function)| {
                let level = [layout.main, layout.stash][*at];
                if *round == level.limits.len() {
                    (*at, *round) = (*at + 1, 0);
                    rejected += u64::from(*at == 2);
                    return *at < 2;
                }
                let hash = u128::from(family.hash((level.first_function + *function) as u32, *key));
                let bucket = &mut taken[*at][((hash * u128::from(level.buckets)) >> layout.key_bits) as usize];
                if *bucket < level.limit(*round) {
                    *bucket += 1;
                    return false;
                }
                *function += 1;
                if *function == level.functions {
                    (*round, *function) = (*round + 1, 0);
                }
                true
            });
        }
    }

    /// Tests every width of keys and slots, and tables from a bucket or two on. Keys are put one after another, and several or
    /// all at once.
    #[test]
    fn no_key_is_rejected_up_to_95_percent() {
        std::thread::scope(|scope| {
            for slot_bits in [16, 32, 64] {
                scope.spawn(move || no_key_is_rejected_in_slots_of(slot_bits));
            }
        });
    }

    fn no_key_is_rejected_in_slots_of(slot_bits: u32) {
        use rand::{RngExt, SeedableRng, rngs::StdRng};

        let mut random = StdRng::seed_from_u64(u64::from(slot_bits));
        // All widths take minutes without optimization.
        for key_bits in (20..=64).step_by(if cfg!(debug_assertions) { sized(9, 22, 22) } else { 1 }) {
            let fewest = fewest_slots(key_bits, slot_bits, false);
            // Sizes at which there are few functions, and sizes of small tables.
            let few = (0..6).flat_map(|more| [4, 5, 6, 7].map(|quarters| (fewest << more) / 4 * quarters));
            for slots in few.chain([1, 40, 100, 300, 1000, 3000, 10_000, 1 << 16]).filter(|slots| *slots <= 1 << 16) {
                let Some(layout) = Layout::new(key_bits, slot_bits, buckets_for(slots, slot_bits), false) else { continue };
                let count = (layout.slots() as f64 * 0.95) as u64;
                if layout.main.functions < 2 || count > (1 << key_bits.min(63)) / 2 {
                    continue;
                }
                for _ in 0..(20_000 / count).clamp(1, 20) {
                    let family = Permutation::random(key_bits, &mut random);
                    // A bijection gives distinct keys.
                    let distinct = Permutation::<u64>::random(key_bits, &mut random);
                    let under_way = [1, count, random.random_range(1..=count)];
                    for under_way in under_way {
                        let rejected =
                            rejected(&layout, &family, (0..count).map(|key| distinct.hash(0, key)), under_way as usize);
                        assert_eq!(rejected, 0, "{key_bits} bits, {count} keys, {under_way} under way, {layout:?}");
                    }
                }
            }
        }
    }

    /// The stash of a cuckoo table, reduced to the number of slots taken in each bucket. Keys are new, and their buckets random.
    struct Stash<'a> {
        level: &'a Level,
        taken: Vec<u64>,
        random: rand::rngs::StdRng,
    }

    impl<'a> Stash<'a> {
        fn new(level: &'a Level) -> Self {
            use rand::SeedableRng;

            Self { level, taken: vec![0; level.buckets as usize], random: rand::rngs::StdRng::seed_from_u64(7) }
        }

        /// Puts one more key, in one of the first `rounds` rounds. Returns false if there is no free slot for it.
        fn put(&mut self, rounds: usize) -> bool {
            use rand::RngExt;

            assert_eq!(self.level.functions, STASH_FUNCTIONS);
            let buckets: [usize; STASH_FUNCTIONS as usize] =
                std::array::from_fn(|_| self.random.random_range(0..self.taken.len()));
            let walk = (0..rounds).flat_map(|round| buckets.iter().map(move |bucket| (round, *bucket)));
            let free = walk.into_iter().find(|(round, bucket)| self.taken[*bucket] < self.level.limit(*round));
            free.inspect(|(_, bucket)| self.taken[*bucket] += 1).is_some()
        }
    }

    fn cuckoo_layouts() -> impl Iterator<Item = Layout> {
        let slots = [64, 1000, 10_000, 1 << 17, 1 << 20].into_iter();
        slots.map(|slots| Layout::new(30, 32, buckets_for(slots, 32), true).expect("30 bits fit"))
    }

    /// Nearly all slots that find-or-put may take are taken before keys must be relocated.
    #[test]
    fn a_stash_is_filled_before_keys_are_relocated() {
        for Layout { stash, .. } in cuckoo_layouts() {
            let mut counted = Stash::new(&stash);
            let may_take = stash.buckets * stash.limit(0);
            let before_full = (0..).take_while(|_| counted.put(1)).count() as u64;
            assert!(before_full as f64 > 0.7 * may_take as f64, "{before_full} of {may_take}, {stash:?}");
            let after = (before_full + 1..may_take).filter(|_| counted.put(1)).count() as u64;
            assert!((before_full + after) as f64 > 0.95 * may_take as f64, "{before_full} and {after} of {may_take}, {stash:?}");
        }
    }

    /// All keys that are put back find slots, even if every pass leaves over all keys of the stash, and find-or-put then fills
    /// the slots that it may take.
    #[test]
    fn keys_that_are_put_back_find_places() {
        for Layout { stash, .. } in cuckoo_layouts() {
            let may_take = stash.buckets * stash.limit(0);
            let (mut counted, mut kept) = (Stash::new(&stash), 0);
            let keys = if cfg!(debug_assertions) { 50_000 } else { 10_000_000 };
            for pass in 0..keys / stash.slots() {
                counted.taken.fill(0);
                for _ in 0..may_take + kept {
                    assert!(counted.put(2), "pass {pass}, {kept} kept, {stash:?}");
                }
                kept = counted.taken.iter().map(|taken| taken.saturating_sub(stash.limit(0))).sum();
            }
            assert!(kept <= stash.buckets * 3 / 2, "{kept} kept, {stash:?}");
        }
    }

    /// The stash of a large table is a small part of it, even though slots of the stash are larger.
    #[test]
    fn large_tables_are_filled_to_95_percent_of_their_bytes() {
        use rand::{SeedableRng, rngs::StdRng};

        let mut random = StdRng::seed_from_u64(6);
        // Functions: 2, 3, 4, 8, 16.
        let all = [(49, 1 << 22), (48, 3 << 20), (48, 1 << 22), (47, 1 << 22), (46, 1 << 22)];
        for (key_bits, slots) in all.into_iter().take(sized(5, 1, 1)) {
            let layout = Layout::new(key_bits, 32, buckets_for(slots, 32), false).expect("it fits");
            let count = (layout.bytes() as f64 / 4.0 * 0.95) as u64;
            let family = Permutation::random(key_bits, &mut random);
            let distinct = Permutation::<u64>::random(key_bits, &mut random);
            let rejected = rejected(&layout, &family, (0..count).map(|key| distinct.hash(0, key)), 1 << 18);
            assert_eq!(rejected, 0, "{key_bits} bits, {count} keys, {layout:?}");
        }
    }

    #[test]
    fn fewest_slots_are_enough_and_not_too_many() {
        for (key_bits, cuckoo) in (20..=64).flat_map(|key_bits| [(key_bits, false), (key_bits, true)]) {
            for slot_bits in [16, 32, 64] {
                let slots = fewest_slots(key_bits, slot_bits, cuckoo);
                let buckets = buckets_for(slots, slot_bits);
                assert!(Layout::new(key_bits, slot_bits, buckets, cuckoo).is_some(), "{key_bits} bits in slots of {slot_bits}");
                assert!(buckets == LEAST_BUCKETS || Layout::new(key_bits, slot_bits, buckets - 1, cuckoo).is_none());
            }
        }
    }

    #[cfg(feature = "cpu")]
    mod on_the_cpu {
        use super::*;
        use crate::backend::cpu::quotient;
        use proptest::prelude::*;
        use rand::{SeedableRng, rngs::StdRng};

        /// Bucket and code by the definition, from the host's hash.
        fn by_definition(layout: &Layout, level: &Level, family: &Permutation<u64>, function: u64, key: u64) -> (u64, u64) {
            let hash = u128::from(family.hash((level.first_function + function) as u32, key));
            let (buckets, mask) = (u128::from(level.buckets), (1u128 << layout.key_bits) - 1);
            let remainder = (((hash * buckets) & mask) * u128::from(level.window)) >> layout.key_bits;
            (((hash * buckets) >> layout.key_bits) as u64, function * level.window + remainder as u64)
        }

        fn check(layout: &Layout, family: &Permutation<u64>, key: u64) -> Result<(), TestCaseError> {
            let view = layout.view(family, 0, 0);
            for (number, level) in [layout.main, layout.stash].iter().enumerate().filter(|(_, level)| level.buckets > 0) {
                for function in [0, 1, level.functions / 2, level.functions - 1] {
                    let function = function.min(level.functions - 1);
                    let slot_bits = (BUCKET_BYTES * 8 / layout.main.slots_per_bucket) as u32;
                    let (bucket, code, back) = quotient(view, slot_bits, number as u32, function as u32, key);
                    prop_assert_eq!((bucket.into(), code), by_definition(layout, level, family, function, key));
                    prop_assert_eq!(back, key, "level {}, function {}", number, function);
                }
            }
            Ok(())
        }

        proptest! {
            #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 500 } else { 20_000 }))]
            #[test]
            fn device_hashes_are_those_of_the_host_and_give_keys_back(
                key_bits in 20u32..=64, which in 0usize..3, buckets in 2u64..1 << 32, scale in 0u32..32, cuckoo: bool, seed: u64,
                key: u64,
            ) {
                let family = Permutation::random(key_bits, &mut StdRng::seed_from_u64(seed));
                if let Some(layout) = Layout::new(key_bits, [16, 32, 64][which], (buckets >> scale).max(2), cuckoo) {
                    let mask = u64::MAX >> (64 - key_bits);
                    for key in [key & mask, 0, mask, key & mask & 1, mask - (key & 1)] {
                        check(&layout, &family, key)?;
                    }
                }
            }
        }

        /// All keys of 20 bits: the first and the last hashes of every window are among them.
        #[test]
        fn every_key_of_20_bits_has_a_place_of_its_own() {
            let family = Permutation::random(20, &mut StdRng::seed_from_u64(4));
            let all = [17, 4097, (1 << 20) + 7, 16, 1000, 65_535, 1 << 20];
            for buckets in all.into_iter().take(if cfg!(debug_assertions) { sized(3, 1, 1) } else { 7 }) {
                let layout = Layout::new(20, 16, buckets, false).expect("16 buckets are enough");
                let view = layout.view(&family, 0, 0);
                let mut met = std::collections::HashSet::new();
                for key in 0..1 << 20 {
                    let (bucket, code, back) = quotient(view, 16, 0, 0, key);
                    assert!(back == key && code < layout.main.window && u64::from(bucket) < buckets, "{key}: {bucket}, {code}");
                    assert!(met.insert((bucket, code)), "{buckets} buckets: two keys at {bucket}, {code}");
                }
            }
        }
    }
}
