//! Growth of bucket tables in the order of the buckets.
//!
//! The algorithm, and why it is faster than find-or-put of all vectors, is in cuda/warpset/bucket/growth.cuh.

use super::kernels::{CpuView, LeftVectors, warpset_cpu_count_parts, warpset_cpu_export_left, warpset_cpu_fill_part};
use super::rehash::{put_all, rehash};
use super::threads::in_pieces;
use crate::host::zeroed;
use crate::layout::Kind;
use crate::layout::view::{Counts, View};
use crate::{Result, Spec};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Adjacent parts that a thread fills one after another, at most: some huge pages. The system makes each page zero when it is
/// first written, and two threads would both do so.
const PARTS_AT_ONCE: u64 = 16;

/// Bits of a word that says which vectors are left.
const BITS: u64 = u64::BITS as u64;

/// Whether the slots of a second table with this spec are filled here (cuda/cpu_kernels/growth.cpp).
pub(super) fn is_filled_in_order(spec: Spec) -> bool {
    spec.kind == Kind::Bucket && spec.width() <= 9
}

/// Fills `to` with the vectors of `from`, a smaller table of `slots` slots, whatever the memory of `to` held. Returns the counts:
/// vectors that found no slot are `full`. Allocates a bit for each slot of `from`.
///
/// # Safety
///
/// Both views are of tables with this spec, for which [`is_filled_in_order`] holds, and without a filter. `from` has that number
/// of slots. Nothing else uses either table.
pub(super) unsafe fn fill(threads: usize, spec: Spec, (from, slots): (&View, u64), to: &View) -> Result<Counts> {
    let table = |view| CpuView::of(spec, view);
    let words = spec.width();
    let mut left = zeroed::<u64>(slots.div_ceil(BITS) as usize)?;
    let left = LeftVectors::of_bits(&mut left);
    let (mut parts, mut slices_a_part) = (0, 0);
    // SAFETY: the caller guarantees the views.
    unsafe { warpset_cpu_count_parts(&table(from), &table(to), &mut parts, &mut slices_a_part) };
    // SAFETY: the caller guarantees the tables. `left` has a bit for each slot, and outlives the threads. Nothing reads `to`.
    let put = unsafe { fill_parts(threads, (&table(from), &table(to)), 0..parts, true, &left) };
    let export = |slots: Range<u64>, vectors: &mut [u32]| {
        assert!(vectors.len() as u64 >= (slots.end - slots.start) * words as u64);
        let mut count = 0;
        // SAFETY: these are slots of the table, `left` has a bit for each, and the buffer has space for all of them.
        unsafe {
            let vectors = vectors.as_mut_ptr();
            warpset_cpu_export_left(&table(from), slots.start, slots.end, &left, vectors, &mut count);
        }
        count as usize
    };
    let put_left = |vectors: &[u32], counts: &mut Counts| {
        // SAFETY: a table of these vectors. Its slots are changed atomically.
        unsafe { put_all(&table(to), words, vectors, counts) };
    };
    let mut counts = rehash(threads, 0..slots, words, export, put_left)?;
    counts.offered += put;
    counts.hits += put;
    Ok(counts)
}

/// Fills parts of the second table with the vectors of the first, or, unless `writes`, only counts them. Adds those that are left
/// to `left`. Returns the number of the others.
///
/// # Safety
///
/// As for [`fill`]. No part is where one of these parts reads. `left` has room for slots of the first table, and only growth
/// changes it.
pub(super) unsafe fn fill_parts(
    threads: usize,
    (from, to): (&CpuView, &CpuView),
    parts: Range<u64>,
    writes: bool,
    left: &LeftVectors,
) -> u64 {
    let put = AtomicU64::new(0);
    let at_once = (parts.end - parts.start).div_ceil(4 * threads as u64).clamp(1, PARTS_AT_ONCE);
    in_pieces(threads, (parts.end - parts.start).div_ceil(at_once), |piece| {
        let first = parts.start + piece * at_once;
        for part in first..parts.end.min(first + at_once) {
            let mut count = 0;
            // SAFETY: the caller guarantees the contract. Parts are disjoint in the memory of `to`.
            unsafe { warpset_cpu_fill_part(from, to, part, u32::from(writes), left, &mut count) };
            // Relaxed: read after the threads are joined.
            put.fetch_add(count, Ordering::Relaxed);
        }
    });
    put.into_inner()
}

#[cfg(test)]
mod tests {
    use super::super::kernels::geometry;
    use super::super::store::CpuStore;
    use super::*;
    use crate::layout::options::Parameters;
    use crate::layout::size::{self, Size};
    use crate::{BucketTable, Device, Error, Reference, TreeTable};
    use proptest::prelude::*;
    use warpset_testing::sizes::sized;

    /// Distinct vectors: their first words are.
    fn vectors(width: usize, count: u32, seed: u32) -> Vec<u32> {
        let word = |number: u32, word: u32| (number + word * 7919).wrapping_mul(0x9e37_79b1) ^ seed;
        (0..count).flat_map(|number| (0..width as u32).map(move |at| word(number, at))).collect()
    }

    /// Grows a table with vectors to some capacities, one after another. Each vector is stored once and found, however many
    /// parts the table has.
    fn grows(table: &BucketTable, vectors: &[u32], capacities: &[u64]) {
        let width = table.width();
        let count = (vectors.len() / width) as u64;
        assert_eq!(table.find_or_put_many(vectors).unwrap().tally.new, count);
        for capacity in capacities {
            let stale = table.locate_many(&vectors[..width]).unwrap()[0].unwrap();
            table.reserve_total(*capacity).unwrap();
            assert!(table.slots() >= *capacity && table.len().unwrap() == count);
            assert!(matches!(table.get_many(&[stale]), Err(Error::StaleReferences { .. })));
            let again = table.find_or_put_many(vectors).unwrap().tally;
            assert_eq!((again.new, again.seen, again.full), (0, count, 0));
            let references: Vec<Reference> = table.locate_many(vectors).unwrap().into_iter().flatten().collect();
            assert!(table.get_many(&references).unwrap() == vectors);
        }
        assert_eq!(table.iter().count() as u64, count, "no slot holds anything else");
    }

    /// Tables of several pieces of 16 parts, one after another or by several threads.
    #[test]
    #[cfg_attr(miri, ignore = "the kernels are C++")]
    fn tables_of_many_parts_grow() {
        for width in sized((1..=12).chain([20, 33, 64]).collect(), vec![1, 2, 3, 7, 10, 33], vec![1, 3, 20]) {
            for threads in sized(vec![1, 4], vec![4], vec![4]) {
                let count = 1_000_000 / width as u32;
                let slots = u64::from(count) * 100 / 84;
                let table =
                    BucketTable::builder(width).capacity(slots).seed(7).build(&Device::cpu_with_threads(threads)).unwrap();
                // By little, and by a factor that is no integer.
                grows(&table, &vectors(width, count, 0), &[slots * 21 / 20, slots * 27 / 10]);
            }
        }
    }

    /// A table with slices that is 0.84 full grows. None of its vectors is left to find-or-put.
    #[test]
    #[cfg_attr(miri, ignore = "the kernels are C++")]
    fn all_vectors_are_put_part_by_part() {
        for (width, tenths) in [(1, 20), (2, 20), (3, 27), (8, 13), (8, 40), (9, 11)] {
            let table = BucketTable::builder(width).capacity(200_000).seed(5).build(&Device::cpu_with_threads(1)).unwrap();
            let raw = &table.raw;
            let count = table.slots() * 84 / 100;
            table.find_or_put_many(&vectors(width, count as u32, 1)).unwrap().complete(&table).unwrap();
            let to = Size { slots: table.slots() * tenths / 10, nodes: 0 };
            let (spec, buckets) = (table.spec(), size::buckets(&geometry(table.spec()), table.spec(), to.slots).unwrap());
            let sized = raw.look();
            let from = CpuStore::of(&*sized.store).unwrap();
            let larger =
                CpuStore::unfilled(&Parameters::new(&raw.options, &raw.seeds, spec, buckets, to).unwrap(), from.machine).unwrap();
            let (from, to) = (CpuView::of(spec, &from.view), CpuView::of(spec, &larger.view));
            let (mut parts, mut slices_a_part) = (0, 0);
            // SAFETY: views of bucket tables.
            unsafe { warpset_cpu_count_parts(&from, &to, &mut parts, &mut slices_a_part) };
            let mut left = vec![0u64; table.slots().div_ceil(64) as usize];
            // SAFETY: both are bucket tables of one spec, and `left` has a bit for each slot of the first.
            let put = unsafe { fill_parts(1, (&from, &to), 0..parts, true, &LeftVectors::of_bits(&mut left)) };
            let left: u32 = left.iter().map(|word| word.count_ones()).sum();
            assert!(parts > 5 && (put, left) == (count, 0), "{width} words, {parts} parts: {put} and {left} of {count}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        #[cfg_attr(miri, ignore = "the kernels are C++")]
        fn vectors_stay_stored(
            width in 1usize..=20, count in 1u32..20_000, seed: u32, more in 1u64..60_000, threads in 1usize..3,
        ) {
            let slots = u64::from(count) * 10 / 9 + 20;
            let table = BucketTable::builder(width).capacity(slots).seed(u64::from(seed));
            let table = table.build(&Device::cpu_with_threads(threads)).unwrap();
            let slots = table.slots();
            grows(&table, &vectors(width, count, seed), &[slots + 1 + more % 50, slots + 60 + more]);
        }
    }

    /// A growth to too few slots for the vectors is an error with the numbers, and changes nothing.
    #[test]
    #[cfg_attr(miri, ignore = "the kernels are C++")]
    fn a_table_whose_vectors_find_no_slots_stays_as_it_was() {
        for threads in [1, 4] {
            let table = BucketTable::builder(3).capacity(200_000).seed(3).build(&Device::cpu_with_threads(threads)).unwrap();
            let vectors = vectors(3, 150_000, 0);
            table.find_or_put_many(&vectors).unwrap().complete(&table).unwrap();
            let references: Vec<Reference> = table.locate_many(&vectors).unwrap().into_iter().flatten().collect();
            let from = table.raw.size();
            let fewer = Size { slots: 98_304, ..from };
            let Err(Error::TableFull { rejected, for_nodes: 0, offered: 150_000, stored, .. }) =
                table.raw.grow_from("grow", from, fewer)
            else {
                panic!("98,304 slots have room for 150,000 vectors")
            };
            assert!(rejected >= 49_000 && rejected + stored == 150_000, "{rejected} and {stored}");
            assert!(table.raw.size() == from && table.len().unwrap() == 150_000);
            assert!(table.get_many(&references).unwrap() == vectors);
        }
    }

    /// Roots of trees grow by the same function, and so does a table of one word that has every possible vector of some bits.
    #[test]
    #[cfg_attr(miri, ignore = "the kernels are C++")]
    fn roots_and_dense_words_grow() {
        let device = Device::cpu_with_threads(2);
        let table = TreeTable::builder(4).capacity(400_000).nodes(1 << 19).seed(1).build(&device).unwrap();
        let vectors: Vec<u32> = (0..320_000u32).flat_map(|number| [number, number % 7, number / 3, 5]).collect();
        assert_eq!(table.find_or_put_many(&vectors).unwrap().tally.new, 320_000);
        let nodes = table.nodes().unwrap();
        table.raw.grow_from("grow", table.raw.size(), Size { slots: 900_000, ..table.raw.size() }).unwrap();
        assert_eq!(table.find_or_put_many(&vectors).unwrap().tally.seen, 320_000);
        assert_eq!((table.len().unwrap(), table.nodes().unwrap()), (320_000, nodes));
        let table = BucketTable::builder(1).capacity(70_000).seed(1).build(&device).unwrap();
        grows(&table, &(0..1 << 16).collect::<Vec<u32>>(), &[1 << 17, 1 << 21]);
    }
}
