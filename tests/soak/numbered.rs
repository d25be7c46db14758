//! Vectors made from numbers, and numbers from vectors, on the device or in host memory. So tables of any size are checked
//! exactly, without another set to compare with. Mirrors numbered.cu.
//!
//! A *session* is a table and what has been offered to it. All vectors of a table have a number and a side (0 to 3); those of
//! other sides are changes of side 0's with the same number. What is stored is a range of numbers of each side, so how many
//! vectors of any batch are New or Seen is known beforehand.

use crate::Result;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use warpset::gpu::cudarc_0_19::DeviceExt;
use warpset::gpu::cudarc_0_19::cudarc::driver::{CudaModule, CudaSlice, CudaStream, DeviceRepr, LaunchConfig, PushKernelArg};
use warpset::gpu::{Counts, DeviceBatch};
use warpset::{Outcome, Reference, Request, Spec, Storage, Tally, VectorTable};
use warpset_random::Random;

const KERNELS: &str = include_str!("numbered.cu");

/// Words of the widest vector.
pub const MAX_WIDTH: usize = 64;

/// A permutation of all numbers of `bits` bits.
#[derive(Clone, Copy)]
#[repr(C)]
struct Permutation {
    factors: [u64; 2],
    inverses: [u64; 2],
    mask: u64,
    shift: u32,
    unused: u32,
}

impl Permutation {
    fn new(bits: u32, random: &mut Random) -> Self {
        let factors = [random.number() | 1, random.number() | 1];
        // Newton's iteration: each step doubles the correct bits. An odd number is its own inverse in three bits.
        let inverse =
            |factor: u64| (0..5).fold(factor, |inverse, _| inverse.wrapping_mul(2u64.wrapping_sub(factor.wrapping_mul(inverse))));
        Self { factors, inverses: factors.map(inverse), mask: u64::MAX >> (64 - bits), shift: bits.div_ceil(2), unused: 0 }
    }

    fn apply(&self, mut x: u64) -> u64 {
        for factor in self.factors {
            x ^= x >> self.shift;
            x = x.wrapping_mul(factor) & self.mask;
        }
        x ^ x >> self.shift
    }

    fn undo(&self, mut x: u64) -> u64 {
        x ^= x >> self.shift;
        for inverse in self.inverses.iter().rev() {
            x = x.wrapping_mul(*inverse) & self.mask;
            x ^= x >> self.shift;
        }
        x
    }
}

/// The finaliser of MurmurHash3.
fn spread(mut x: u32) -> u32 {
    x = (x ^ x >> 16).wrapping_mul(0x85EB_CA6B);
    x = (x ^ x >> 13).wrapping_mul(0xC2B2_AE35);
    x ^ x >> 16
}

fn unspread(mut x: u32) -> u32 {
    x = (x ^ x >> 16).wrapping_mul(0x7ED1_B41D);
    x = (x ^ x >> 13 ^ x >> 26).wrapping_mul(0xA5CB_9243);
    x ^ x >> 16
}

/// Rule by which vectors are made. See `Shape` in numbered.cu.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Shape {
    order: Permutation,
    deltas: [u64; 4],
    low_bits: u32,
    width: u32,
    plain: u32,
    key: u32,
    bits: [u8; MAX_WIDTH],
    shift: [u8; MAX_WIDTH],
}

// SAFETY: `repr(C)` integers and arrays of them in the order of `Shape` in numbered.cu, without padding.
unsafe impl DeviceRepr for Shape {}

impl Shape {
    /// Each word has `bits` bits of information: at most 63 in all if there are `sides`. With `plain`, other bits are 0.
    pub fn new(bits: &[u8], sides: bool, plain: bool, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let all: u32 = bits.iter().map(|bits| u32::from(*bits)).sum();
        let low_bits = if sides { all - 2 } else { all };
        assert!(bits.len() <= MAX_WIDTH && (1..=64).contains(&low_bits) && (!sides || all < 64));
        let order = Permutation::new(low_bits, &mut random);
        // Sides differ in one word, in at most two, in many.
        let deltas = [0, 0, 1 << random.number_below(low_bits.into()), random.number() & order.mask];
        let (mut of_words, mut shift) = ([0; MAX_WIDTH], [0; MAX_WIDTH]);
        of_words[..bits.len()].copy_from_slice(bits);
        (1..bits.len()).for_each(|word| shift[word] = (shift[word - 1] + bits[word - 1]).min(63));
        let (width, key) = (bits.len() as u32, random.number() as u32);
        Self { order, deltas, low_bits, width, plain: plain.into(), key, bits: of_words, shift }
    }

    pub fn width(&self) -> usize {
        self.width as usize
    }

    /// Count of numbers; 2^64 - 1 stands for 2^64.
    pub fn numbers(&self) -> u64 {
        self.order.mask.saturating_add(1)
    }

    fn code(&self, side: u32, id: u64) -> u64 {
        let above = if self.low_bits < 64 { u64::from(side) << self.low_bits } else { 0 };
        above | (self.order.apply(id) ^ self.deltas[side as usize])
    }

    fn digit(&self, code: u64, word: usize) -> u32 {
        (code >> self.shift[word] & ((1 << self.bits[word]) - 1)) as u32
    }

    fn word_key(&self, word: usize) -> u32 {
        self.key ^ (word as u32 + 1).wrapping_mul(0x9E37_79B1)
    }

    fn write(&self, side: u32, id: u64, vector: &mut [u32]) {
        let code = self.code(side, id);
        for (word, value) in vector.iter_mut().enumerate() {
            let digit = self.digit(code, word);
            *value = if self.plain == 0 { spread(digit ^ self.word_key(word)) } else { digit };
        }
    }

    /// Side and number of a vector; `None` if no number makes it.
    fn number(&self, vector: &[u32]) -> Option<(u32, u64)> {
        let mut code = 0;
        for (word, value) in vector.iter().enumerate() {
            let digit = u64::from(if self.plain == 0 { unspread(*value) ^ self.word_key(word) } else { *value });
            if digit >= 1 << self.bits[word] {
                return None;
            }
            code |= digit << self.shift[word];
        }
        let side = if self.low_bits < 64 { (code >> self.low_bits) as u32 } else { 0 };
        let delta = self.deltas.get(side as usize)?;
        Some((side, self.order.undo(code & self.order.mask ^ delta)))
    }

    /// Mask of the words in which vectors of two sides with the same number differ.
    fn changed(&self, from: u32, to: u32) -> [u32; 2] {
        let differ = (u64::from(from ^ to) << self.low_bits) | (self.deltas[from as usize] ^ self.deltas[to as usize]);
        let mut masks = [0; 2];
        (0..self.width()).filter(|word| self.digit(differ, *word) != 0).for_each(|word| masks[word / 32] |= 1 << (word % 32));
        masks
    }

    /// Upper bound of the nodes of `vectors` vectors, for every pairing of words.
    pub fn most_nodes(&self, vectors: u64) -> u64 {
        let mut bits = self.bits[..self.width()].to_vec();
        bits.sort_unstable_by(|a, b| b.cmp(a));
        let levels = std::iter::successors(Some(2usize), |run| Some(run * 2)).take_while(|run| *run < 2 * self.width());
        let nodes = levels.map(|run| {
            // If the width is no power of two, there are runs of three words too.
            let in_run: u32 = bits.iter().take(run).map(|bits| u32::from(*bits)).sum();
            (self.width().div_ceil(run) as u64 + 1) * vectors.min(1 << in_run.min(40))
        });
        nodes.sum::<u64>() + 64
    }
}

/// Offers of `distinct` numbers from `first` on, each `count / distinct` times, in an order of their own. See `Offers` in
/// numbered.cu.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Offers {
    pub first: u64,
    pub distinct: u32,
    pub count: u32,
    pub side: u32,
    mask: u32,
    shift: u32,
    factors: [u32; 2],
    summand: u32,
}

// SAFETY: `repr(C)` integers in the order of `Offers` in numbered.cu: one of 8 bytes, then eight of 4.
unsafe impl DeviceRepr for Offers {}

impl Offers {
    pub fn new(side: u32, numbers: &Range<u64>, copies: u64, random: &mut Random) -> Self {
        let distinct = numbers.end - numbers.start;
        let count = u32::try_from(distinct * copies).expect("a batch has fewer than 2^32 offers");
        let bits = u64::from(count).next_power_of_two().ilog2().max(1);
        Self {
            first: numbers.start,
            distinct: distinct as u32,
            count,
            side,
            mask: u32::MAX >> (32 - bits),
            shift: bits.div_ceil(2),
            factors: [random.number() as u32 | 1, random.number() as u32 | 1],
            summand: random.number() as u32,
        }
    }

    fn id(&self, position: u32) -> u64 {
        let mut place = position;
        loop {
            place = place.wrapping_mul(self.factors[0]).wrapping_add(self.summand) & self.mask;
            place ^= place >> self.shift;
            place = place.wrapping_mul(self.factors[1]) & self.mask;
            place ^= place >> self.shift;
            if place < self.count {
                return self.first + u64::from(place % self.distinct);
            }
        }
    }
}

/// Ranges of numbers, one for each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
struct Ranges {
    firsts: [u64; 4],
    counts: [u64; 4],
}

// SAFETY: `repr(C)`, eight u64, as in numbered.cu.
unsafe impl DeviceRepr for Ranges {}

const _: () = assert!(size_of::<Shape>() == 224 && size_of::<Offers>() == 40 && size_of::<Ranges>() == 64);

/// `Fault` of numbered.cu.
const FAULTS: [&str; 7] = [
    "outcomes that are neither New nor Seen",
    "vectors that are New again",
    "references to other words",
    "references of new vectors to others",
    "vectors stored that were never offered",
    "vectors stored that are not of this table",
    "vectors stored twice",
];

/// Options of a batch of offers.
#[derive(Clone, Copy, Debug, Default)]
pub struct How {
    /// Request every output, and judge each vector.
    pub judged: bool,
    /// Offer vectors as changes of those with the same numbers on this side, which are stored; and whether with masks.
    pub changes_of: Option<(u32, bool)>,
    /// Offer the same batch on two streams at once.
    pub twice: bool,
}

/// Totals of a session.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    pub offers: u64,
    pub judged: u64,
    pub looked_up: u64,
    pub read_back: u64,
    pub cleared: u64,
    pub grown: u64,
    pub relocated: u64,
}

impl std::ops::AddAssign for Done {
    fn add_assign(&mut self, other: Self) {
        self.offers += other.offers;
        self.judged += other.judged;
        self.looked_up += other.looked_up;
        self.read_back += other.read_back;
        self.cleared += other.cleared;
        self.grown += other.grown;
        self.relocated += other.relocated;
    }
}

/// Function that relocates the keys of a table.
pub type Relocate<S> = fn(&VectorTable<S>) -> warpset::Result<u64>;

/// Streams, buffers and compiled kernels of a session on a GPU whose batches are in its memory.
struct OnGpu {
    streams: [Arc<CudaStream>; 2],
    module: Option<(Spec, Arc<CudaModule>)>,
    words: Option<CudaSlice<u32>>,
}

/// A table, and the numbers of the vectors in it.
pub struct Session<S: Storage> {
    pub table: VectorTable<S>,
    pub done: Done,
    shape: Shape,
    stored: Ranges,
    gpu: Option<OnGpu>,
    relocate: Option<Relocate<S>>,
}

impl<S: Storage> Session<S> {
    /// A session with an empty table. Batches are in the memory of its device, or of the host.
    pub fn new(table: VectorTable<S>, shape: Shape, from_host: bool) -> Result<Self> {
        assert_eq!(table.width(), shape.width());
        let gpu = match table.device().cuda_context() {
            Some(context) if !from_host => {
                let streams = [context.new_stream()?, context.new_stream()?];
                Some(OnGpu { streams, module: None, words: None })
            }
            _ => None,
        };
        Ok(Self { table, done: Done::default(), shape, stored: Ranges::default(), gpu, relocate: None })
    }

    /// Sets the function that runs before rejected vectors are offered again.
    pub fn relocation(self, relocate: Relocate<S>) -> Self {
        Self { relocate: Some(relocate), ..self }
    }

    /// Stored numbers of a side.
    pub fn stored(&self, side: u32) -> Range<u64> {
        let (first, count) = (self.stored.firsts[side as usize], self.stored.counts[side as usize]);
        first..first + count
    }

    /// Count of numbers.
    pub fn numbers(&self) -> u64 {
        self.shape.numbers()
    }

    pub fn stored_in_all(&self) -> u64 {
        self.stored.counts.iter().sum()
    }

    pub fn clear(&mut self) -> Result<()> {
        self.table.clear()?;
        self.stored = Ranges::default();
        self.done.cleared += 1;
        self.expect("vectors in a table that was cleared", self.table.len()?, 0)
    }

    pub fn grow(&mut self, slots: u64) -> Result<()> {
        self.table.reserve_total(slots)?;
        self.done.grown += 1;
        if self.table.slots() < slots {
            return self.fails(&format!("{} slots after growing to {slots}", self.table.slots()));
        }
        self.expect("vectors in a table that has grown", self.table.len()?, self.stored_in_all())
    }

    fn fails<T>(&self, what: &str) -> Result<T> {
        let (table, slots) = (self.table.spec(), self.table.slots());
        let nodes = self.table.stats().map_or(String::new(), |stats| format!(", {} of {} nodes", stats.nodes, stats.node_slots));
        Err(format!(
            "MISMATCH: {what}\n  {table}, {slots} slots{nodes}, which should hold {:?}\n  after {:?}",
            self.stored, self.done
        )
        .into())
    }

    fn expect<T: PartialEq + std::fmt::Debug>(&self, what: &str, found: T, expected: T) -> Result<()> {
        if found == expected { Ok(()) } else { self.fails(&format!("{what}: {found:?}, not {expected:?}")) }
    }

    fn judge(&self, about: &str, wrong: &[u64]) -> Result<()> {
        match wrong.iter().zip(FAULTS).find(|(count, _)| **count != 0) {
            Some((count, fault)) => self.fails(&format!("{about}: {count} {fault}")),
            None => Ok(()),
        }
    }

    /// Offers numbers of a side, which extend its stored range. Each number that was not stored must be New once, and Seen
    /// otherwise.
    pub fn offer(&mut self, side: u32, numbers: Range<u64>, copies: u64, how: How, random: &mut Random) -> Result<()> {
        let offers = Offers::new(side, &numbers, copies, random);
        let before = self.stored(side);
        let first = if before.is_empty() { numbers.start } else { before.start };
        let end = if before.is_empty() { numbers.start } else { before.end };
        assert!(first <= numbers.start && numbers.start <= end && numbers.end <= self.shape.numbers(), "ranges have no gaps");
        let new = numbers.end.saturating_sub(end);
        let times = 1 + u64::from(how.twice);
        let mut tally = self.offer_once(&offers, end, how)?;
        let mut offered = tally.offered();
        if let Some(relocate) = self.relocate {
            while tally.full > 0 {
                let moved = relocate(&self.table)?;
                if moved == 0 {
                    return self.fails(&format!("{} keys rejected for good", tally.full));
                }
                self.done.relocated += 1;
                let again = self.offer_once(&offers, end, How { judged: false, ..how })?;
                offered += again.offered();
                // Vectors that were New in an earlier batch are Seen in this one.
                tally = of(tally.new + again.new, again.seen.wrapping_sub(tally.new), again.full);
            }
        }
        let expected = of(new, times * u64::from(offers.count) - new, 0);
        self.expect(&format!("{offers:?}, {how:?}"), tally, expected)?;
        self.done.offers += offered;
        (self.stored.firsts[side as usize], self.stored.counts[side as usize]) = (first, end.max(numbers.end) - first);
        Ok(())
    }

    /// Offers more than the table takes, twice. A rejected vector is not stored, and is rejected again. Returns the number of
    /// stored vectors.
    pub fn overfill(&mut self, numbers: Range<u64>, random: &mut Random) -> Result<u64> {
        let offers = Offers::new(0, &numbers, 1, random);
        let (how, count) = (How::default(), u64::from(offers.count));
        let first = self.offer_once(&offers, 0, how)?;
        let expected = of(first.new, 0, count - first.new);
        self.expect("more offers than slots", first, expected)?;
        self.expect("vectors in a full table", self.table.len()?, first.new)?;
        if first.new > self.table.slots() || first.full == 0 {
            return self.fails(&format!("{first:?} in {} slots", self.table.slots()));
        }
        let again = self.offer_once(&offers, 0, how)?;
        let expected = of(0, first.new, first.full);
        self.expect("the same offers to a full table", again, expected)?;
        self.done.offers += 2 * count;
        Ok(first.new)
    }

    /// Offers the numbers of `overfill` again, after the table has grown.
    pub fn fill_after(&mut self, numbers: Range<u64>, stored: u64, random: &mut Random) -> Result<()> {
        let offers = Offers::new(0, &numbers, 1, random);
        let tally = self.offer_once(&offers, 0, How::default())?;
        let count = u64::from(offers.count);
        let expected = of(count - stored, stored, 0);
        self.expect("offers to a table that was full", tally, expected)?;
        self.done.offers += count;
        (self.stored.firsts[0], self.stored.counts[0]) = (numbers.start, count);
        self.read_back()
    }

    /// Looks up numbers of a side, which are all stored or all absent.
    pub fn find(&mut self, side: u32, numbers: Range<u64>, random: &mut Random) -> Result<()> {
        let offers = Offers::new(side, &numbers, 1, random);
        let stored = self.stored(side);
        let expected = if numbers.start >= stored.end { 0 } else { u64::from(offers.count) };
        let found = if self.gpu.is_some() { self.find_on_gpu(&offers)? } else { self.find_from_host(&offers)? };
        self.done.looked_up += u64::from(offers.count);
        self.expect(&format!("found of {offers:?}"), found, expected)
    }

    /// Checks some vectors through calls with host slices: their references, and the words stored there.
    pub fn sample(&mut self, random: &mut Random) -> Result<()> {
        let (stored, width) = (self.stored(0), self.shape.width());
        let mut words = vec![0; 2000 * width];
        for (at, vector) in words.chunks_mut(width).enumerate() {
            // Every second vector is stored.
            let id = match at % 2 {
                0 => stored.start + random.number_below(stored.end - stored.start),
                _ => (stored.end + random.number_below(self.shape.numbers() - stored.end)).min(self.shape.numbers() - 1),
            };
            self.shape.write(0, id, vector);
        }
        let expected: Vec<bool> = words.chunks(width).map(|vector| self.holds(vector)).collect();
        self.expect("contains_many", self.table.contains_many(&words)?, expected.clone())?;
        let references = self.table.locate_many(&words)?;
        self.expect("locate_many", references.iter().map(Option::is_some).collect::<Vec<_>>(), expected.clone())?;
        let stored: Vec<u32> =
            words.chunks(width).zip(&expected).filter(|(_, stored)| **stored).flat_map(|(vector, _)| vector).copied().collect();
        self.expect("get_many", self.table.get_many(&references.into_iter().flatten().collect::<Vec<_>>())?, stored)
    }

    fn holds(&self, vector: &[u32]) -> bool {
        self.shape.number(vector).is_some_and(|(side, id)| self.stored(side).contains(&id))
    }

    /// Reads the whole table, which must hold each number of the stored ranges once.
    pub fn read_back(&mut self) -> Result<()> {
        let (len, expected) = (self.table.len()?, self.stored_in_all());
        self.expect("len", len, expected)?;
        let found = if self.gpu.is_some() { self.read_on_gpu()? } else { self.read_from_host()? };
        self.done.read_back += found;
        self.expect("vectors read back", found, expected)
    }

    fn offer_once(&mut self, offers: &Offers, stored_below: u64, how: How) -> Result<Tally> {
        if how.judged {
            self.done.judged += u64::from(offers.count);
        }
        if self.gpu.is_some() {
            self.offer_on_gpu(offers, stored_below, how)
        } else {
            self.offer_from_host(offers, stored_below, how)
        }
    }
}

/// Batches in host slices, on any device.
impl<S: Storage> Session<S> {
    fn make(&self, offers: &Offers) -> Vec<u32> {
        let width = self.shape.width();
        let mut words = vec![0; offers.count as usize * width];
        let vectors = words.par_chunks_mut(width).enumerate();
        vectors.for_each(|(at, vector)| self.shape.write(offers.side, offers.id(at as u32), vector));
        words
    }

    fn offer_from_host(&self, offers: &Offers, stored_below: u64, how: How) -> Result<Tally> {
        let words = self.make(offers);
        let (mut parents, mut masks) = (Vec::new(), Vec::new());
        if let Some((side, masked)) = how.changes_of {
            let references = self.table.locate_many(&self.make(&Offers { side, ..*offers }))?;
            parents.extend(references.into_iter().flatten());
            self.expect("parents found", parents.len(), offers.count as usize)?;
            if masked {
                masks = self.shape.changed(side, offers.side)[..self.shape.width().div_ceil(32)].repeat(offers.count as usize);
            }
        }
        let request = |judged| {
            let request = Request::new().outcomes(judged).references(judged).new_references(judged);
            let request = if parents.is_empty() { request } else { request.parents(&parents) };
            if masks.is_empty() { request } else { request.changed(&masks) }
        };
        let batch = self.table.find_or_put_many_with(&words, request(how.judged))?;
        if how.judged {
            self.judge_on_host(offers, stored_below, &words, &batch)?;
        }
        let mut tally = batch.tally;
        if how.twice {
            let again = self.table.find_or_put_many_with(&words, request(false))?.tally;
            (tally.new, tally.seen, tally.full) = (tally.new + again.new, tally.seen + again.seen, tally.full + again.full);
            tally.full_nodes += again.full_nodes;
        }
        Ok(tally)
    }

    fn judge_on_host(&self, offers: &Offers, stored_below: u64, words: &[u32], batch: &warpset::Batch) -> Result<()> {
        let width = self.shape.width();
        let mut wrong = [0u64; FAULTS.len()];
        let mut new = vec![false; offers.distinct as usize];
        for (at, outcome) in batch.outcomes.iter().enumerate() {
            let id = offers.id(at as u32);
            match outcome {
                Outcome::New => {
                    let again = std::mem::replace(&mut new[(id - offers.first) as usize], true);
                    wrong[1] += u64::from(again || id < stored_below);
                }
                Outcome::Seen => (),
                Outcome::Full => wrong[0] += 1,
            }
        }
        let references: Vec<Reference> = batch.references.iter().flatten().copied().collect();
        let read = self.table.get_many(&references)?;
        wrong[2] = read.chunks(width).zip(words.chunks(width)).filter(|(read, given)| read != given).count() as u64;
        wrong[2] += (batch.outcomes.len() - references.len()) as u64;
        for vector in self.table.get_many(&batch.new_references)?.chunks(width) {
            let fresh = match self.shape.number(vector) {
                Some((side, id)) if side == offers.side && id >= offers.first && id - offers.first < offers.distinct.into() => {
                    std::mem::replace(&mut new[(id - offers.first) as usize], false)
                }
                _ => false,
            };
            wrong[3] += u64::from(!fresh);
        }
        wrong[3] += new.iter().filter(|left| **left).count() as u64;
        self.judge(&format!("{offers:?}"), &wrong)
    }

    fn find_from_host(&self, offers: &Offers) -> Result<u64> {
        Ok(self.table.contains_many(&self.make(offers))?.into_iter().filter(|found| *found).count() as u64)
    }

    fn read_from_host(&self) -> Result<u64> {
        let (mut wrong, mut found) = ([0u64; FAULTS.len()], 0);
        let mut marks: Vec<Vec<bool>> = self.stored.counts.iter().map(|count| vec![false; *count as usize]).collect();
        for row in &self.table {
            found += 1;
            match self.shape.number(&row?.1) {
                None => wrong[4] += 1,
                Some((side, id)) if !self.stored(side).contains(&id) => wrong[5] += 1,
                Some((side, id)) => {
                    let at = (id - self.stored.firsts[side as usize]) as usize;
                    wrong[6] += u64::from(std::mem::replace(&mut marks[side as usize][at], true));
                }
            }
        }
        self.judge("read back", &wrong)?;
        Ok(found)
    }
}

/// Blocks of 256 threads for a loop over `count` elements, and at most as many as fill any GPU of today.
fn blocks(count: u64) -> LaunchConfig {
    let blocks = (count.div_ceil(256) as u32).clamp(1, 132 * 8);
    LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 }
}

/// Batches in GPU memory.
impl<S: Storage> Session<S> {
    fn on_gpu(&mut self) -> &mut OnGpu {
        self.gpu.as_mut().expect("the session's batches are in a GPU's memory")
    }

    fn stream(&self) -> Arc<CudaStream> {
        self.gpu.as_ref().expect("the session's batches are in a GPU's memory").streams[0].clone()
    }

    /// Kernels for the table's present spec: a compact root may have more bits after a growth.
    fn kernels(&mut self) -> Result<Arc<CudaModule>> {
        let spec = self.table.spec();
        if let Some((of, module)) = &self.on_gpu().module
            && *of == spec
        {
            return Ok(module.clone());
        }
        let module: Arc<CudaModule> = self.table.compile("numbered.cu", KERNELS)?.into();
        self.on_gpu().module = Some((spec, module.clone()));
        Ok(module)
    }

    /// Writes the words of offers to a buffer that later batches use again.
    fn make_on_gpu(&mut self, offers: &Offers) -> Result<CudaSlice<u32>> {
        let (make, stream, shape) = (self.kernels()?.load_function("make_offers")?, self.stream(), self.shape);
        let needed = offers.count as usize * shape.width();
        let mut words = match self.on_gpu().words.take() {
            Some(words) if words.len() >= needed => words,
            // SAFETY: written by the kernel below as far as it is read.
            _ => unsafe { stream.alloc::<u32>(needed)? },
        };
        let mut launch = stream.launch_builder(&make);
        launch.arg(&shape).arg(offers).arg(&mut words);
        // SAFETY: the arguments of `make_offers`; there is room for `count` vectors.
        unsafe { launch.launch(blocks(offers.count.into()))? };
        Ok(words)
    }

    fn offer_on_gpu(&mut self, offers: &Offers, stored_below: u64, how: How) -> Result<Tally> {
        let (stream, count, shape) = (self.stream(), offers.count as usize, self.shape);
        let (mut parents, mut masks) = (None, None);
        if let Some((side, masked)) = how.changes_of {
            let words = self.make_on_gpu(&Offers { side, ..*offers })?;
            let mut references = stream.alloc_zeros::<u64>(count)?;
            let mut counts = stream.alloc_zeros::<Counts>(1)?;
            let mut batch = DeviceBatch::new(&words, count);
            batch = batch.references(&mut references);
            batch = batch.counts(&mut counts);
            self.table.find_device(&stream, batch)?;
            self.expect("parents found", stream.clone_dtoh(&counts)?[0].hits, count as u64)?;
            self.on_gpu().words = Some(words);
            if masked {
                let fill = self.kernels()?.load_function("fill_masks")?;
                let ([low, high], words) = (shape.changed(side, offers.side), shape.width.div_ceil(32));
                let of_all = count as u64 * u64::from(words);
                let mut filled = stream.alloc_zeros::<u32>(of_all as usize)?;
                let mut launch = stream.launch_builder(&fill);
                launch.arg(&mut filled).arg(&of_all).arg(&low).arg(&high).arg(&words);
                // SAFETY: the arguments of `fill_masks`; there is room for `of_all` words.
                unsafe { launch.launch(blocks(of_all))? };
                masks = Some(filled);
            }
            parents = Some(references);
        }
        let words = self.make_on_gpu(offers)?;
        let rooms = if how.judged { count } else { 1 };
        let mut outcomes = stream.alloc_zeros::<u8>(rooms)?;
        let mut references = stream.alloc_zeros::<u64>(rooms)?;
        let mut fresh = stream.alloc_zeros::<u64>(rooms)?;
        let mut sums = Counts::default();
        let streams = self.on_gpu().streams.clone();
        let mut counts = [stream.alloc_zeros::<Counts>(1)?, stream.alloc_zeros::<Counts>(1)?];
        let used = 1 + usize::from(how.twice);
        if how.twice {
            stream.synchronize()?; // so that both streams begin at once
        }
        for (at, (stream, counts)) in streams.iter().zip(&mut counts).enumerate().take(used) {
            let mut batch = DeviceBatch::new(&words, count);
            batch = batch.counts(counts);
            if let Some(parents) = &parents {
                batch = batch.parents(parents);
            }
            if let Some(masks) = &masks {
                batch = batch.changed(masks);
            }
            if how.judged && at == 0 {
                batch = batch.outcomes(&mut outcomes);
                batch = batch.references(&mut references);
                batch = batch.new_references(&mut fresh);
            }
            self.table.find_or_put_device(stream, batch)?;
        }
        for (stream, counts) in streams.iter().zip(&counts).take(used) {
            sums += stream.clone_dtoh(counts)?[0];
        }
        let new_here = stream.clone_dtoh(&counts[0])?[0].hits;
        self.on_gpu().words = Some(words);
        if how.judged {
            self.judge_on_gpu(offers, stored_below, &outcomes, &references, (&fresh, new_here))?;
        }
        Ok(sums.tally())
    }

    fn judge_on_gpu(
        &mut self,
        offers: &Offers,
        stored_below: u64,
        outcomes: &CudaSlice<u8>,
        references: &CudaSlice<u64>,
        (fresh, new): (&CudaSlice<u64>, u64),
    ) -> Result<()> {
        let (module, stream, shape) = (self.kernels()?, self.stream(), self.shape);
        let (judge, judge_new) = (module.load_function("judge_offers")?, module.load_function("judge_new")?);
        let view = self.table.kernel_argument()?;
        let mut marks = stream.alloc_zeros::<u32>(offers.distinct.div_ceil(32) as usize)?;
        let mut wrong = stream.alloc_zeros::<u64>(FAULTS.len())?;
        let mut launch = stream.launch_builder(&judge);
        launch
            .arg(&view)
            .arg(&shape)
            .arg(offers)
            .arg(outcomes)
            .arg(references)
            .arg(&stored_below)
            .arg(&mut marks)
            .arg(&mut wrong);
        // SAFETY: the arguments of `judge_offers`: outcomes and references of all offers, and a bit for each number.
        unsafe { launch.launch(blocks(offers.count.into()))? };
        stream.memset_zeros(&mut marks)?;
        let mut launch = stream.launch_builder(&judge_new);
        launch.arg(&view).arg(&shape).arg(offers).arg(fresh).arg(&new).arg(&stored_below).arg(&mut marks).arg(&mut wrong);
        // SAFETY: the arguments of `judge_new`: `new` references, at most one per offer, and a bit for each number.
        unsafe { launch.launch(blocks(new))? };
        self.judge(&format!("{offers:?}"), &stream.clone_dtoh(&wrong)?)
    }

    fn find_on_gpu(&mut self, offers: &Offers) -> Result<u64> {
        let (stream, words) = (self.stream(), self.make_on_gpu(offers)?);
        let mut counts = stream.alloc_zeros::<Counts>(1)?;
        let mut batch = DeviceBatch::new(&words, offers.count as usize);
        batch = batch.counts(&mut counts);
        self.table.find_device(&stream, batch)?;
        let found = stream.clone_dtoh(&counts)?[0].hits;
        self.on_gpu().words = Some(words);
        Ok(found)
    }

    fn read_on_gpu(&mut self) -> Result<u64> {
        let (read, stream, shape) = (self.kernels()?.load_function("read_back")?, self.stream(), self.shape);
        let (view, first, slots, ranges) = (self.table.kernel_argument()?, 0u64, self.table.slots(), self.stored);
        let mut marks = stream.alloc_zeros::<u32>(self.stored_in_all().div_ceil(32).max(1) as usize)?;
        let mut found = stream.alloc_zeros::<u64>(1)?;
        let mut wrong = stream.alloc_zeros::<u64>(FAULTS.len())?;
        let mut launch = stream.launch_builder(&read);
        launch.arg(&view).arg(&shape).arg(&ranges).arg(&first).arg(&slots);
        launch.arg(&mut marks).arg(&mut found).arg(&mut wrong);
        // SAFETY: the arguments of `read_back`: all slots of the table, and a bit for each number of the ranges.
        unsafe { launch.launch(blocks(slots))? };
        self.judge("read back", &stream.clone_dtoh(&wrong)?)?;
        Ok(stream.clone_dtoh(&found)?[0])
    }
}

/// A tally without vectors that lacked a node.
fn of(new: u64, seen: u64, full: u64) -> Tally {
    let mut tally = Tally::default();
    (tally.new, tally.seen, tally.full) = (new, seen, full);
    tally
}
