//! Growth of the nodes of trees.
//!
//! The algorithm, and why it is faster than find-or-put of all vectors, is in cuda/cpu_kernels/tree_growth.cpp.

use super::kernels::{CpuView, export, geometry, warpset_cpu_count_tree_lists, warpset_cpu_move_trees};
use super::pages::Pages;
use super::rehash::{put_all, rehash};
use super::store::CpuStore;
use super::system_memory::check_memory;
use crate::layout::options::Parameters;
use crate::layout::view::Counts;
use crate::{Result, Spec};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

impl CpuStore {
    /// Builds a tree table with another number of nodes that has the vectors of the first `slots` slots of this one. Returns the
    /// new table and the counts. If the lists of nodes would take more than `spare` bytes, or there is no memory for them,
    /// returns `None` and leaves this table unchanged.
    pub(super) fn with_moved_trees(&self, parameters: &Parameters<'_>, slots: u64, spare: u64) -> Result<Option<(Self, Counts)>> {
        let mut entries = 0;
        // SAFETY: a view of a table of trees.
        unsafe { warpset_cpu_count_tree_lists(&CpuView::of(self.spec, &self.view), &mut entries) };
        let list_bytes = entries * size_of::<u32>() as u64;
        let table_bytes = parameters.slot_bytes(&geometry(parameters.spec)) + parameters.node_bytes();
        // The lists and the larger table exist at once, and the system provides their memory only when it is written.
        if list_bytes > spare || check_memory(list_bytes.saturating_add(table_bytes), self.machine.threads).is_err() {
            return Ok(None);
        }
        let larger = Self::new(parameters, self.machine)?;
        // Vectors of three words or more have nodes, so the lists are not empty.
        let Ok(lists) = Pages::new(list_bytes) else { return Ok(None) };
        let lists_at = lists.address() as u64;
        let without_nodes = AtomicU64::new(0);
        let export = |slots: Range<u64>, roots: &mut [u32]| {
            assert!(roots.len() >= (slots.end - slots.start) as usize * Spec::ROOT_WORDS);
            let mut full = 0;
            // SAFETY: these are slots of the table, and the buffer has space for the roots of all of them. `lists` has the number
            // of entries that was counted, is zero at first, and outlives the threads. The kernel changes `lists` and the larger
            // table atomically.
            unsafe {
                let mut count = export(CpuView::of_roots(self.spec, &self.view), slots, roots.as_mut_ptr()) as u64;
                let (from, to) = (CpuView::of(self.spec, &self.view), CpuView::of(parameters.spec, &larger.view));
                warpset_cpu_move_trees(&from, &to, lists_at as *mut u32, roots.as_mut_ptr(), &mut count, &mut full);
                // Relaxed: read after the threads are joined.
                without_nodes.fetch_add(full, Ordering::Relaxed);
                count as usize
            }
        };
        let put = |roots: &[u32], counts: &mut Counts| {
            // SAFETY: this is the view of a table of roots, whose slots are changed atomically.
            unsafe { put_all(&CpuView::of_roots(parameters.spec, &larger.view), Spec::ROOT_WORDS, roots, counts) };
        };
        let mut counts = rehash(self.machine.threads, 0..slots, Spec::ROOT_WORDS, export, put)?;
        let without_nodes = without_nodes.into_inner();
        counts.offered += without_nodes;
        counts.full += without_nodes;
        counts.full_nodes += without_nodes;
        Ok(Some((larger, counts)))
    }
}

#[cfg(test)]
mod tests {
    //! Keeps this promise of `src/docs/memory_and_growth.md`:
    //!
    //! - Several threads move each node of a growing tree table on a CPU once, for trees of every width and pairing. Leaves and
    //!   inner nodes with equal halves stay apart; if nodes or slots are missing, the table stays as it was; the lists fit the
    //!   spare memory (also `tests/suite/growth.rs`).

    use super::*;
    use crate::layout::TablePart;
    use crate::layout::size::Size;
    use crate::{CompactTreeTable, Device, Error, Reference, Storage, Strategy, TableBuilder, TreeTable, Words};
    use proptest::prelude::*;
    use warpset_testing::sizes::sized;

    /// Distinct vectors that share parts. The first and the last word number them.
    fn vectors(width: usize, count: u32, seed: u32) -> Vec<u32> {
        let word = |number: u32, at: u32| (number ^ seed).wrapping_mul(0x9e37_79b1).wrapping_mul(2 * at + 3) >> 24;
        let of = |number: u32| {
            let middle = (1..width as u32 - 1).map(move |at| word(number, at));
            [number % 61].into_iter().chain(middle).chain([number / 61])
        };
        (0..count).flat_map(of).collect()
    }

    /// Grows a table that has `vectors` to each of `sizes` in turn. `builder` takes numbers of slots and of nodes. Checks that
    /// each vector is stored once and found, and that the table has about as many nodes as one that had the size from the
    /// beginning.
    fn grows<S: Storage>(threads: usize, builder: impl Fn(u64, u64) -> TableBuilder<Words, S>, vectors: &[u32], sizes: &[Size]) {
        let device = Device::cpu_with_threads(threads);
        let table = builder(sizes[0].slots, sizes[0].nodes).build(&device).unwrap();
        let width = table.width();
        let count = (vectors.len() / width) as u64;
        assert_eq!(table.find_or_put_many(vectors).unwrap().tally.new, count);
        for to in &sizes[1..] {
            let stale = table.locate_many(&vectors[..width]).unwrap()[0].unwrap();
            table.raw.grow_from("grow", table.raw.size(), *to).unwrap();
            assert!(table.slots() >= to.slots && table.raw.size().nodes >= to.nodes && table.len().unwrap() == count);
            assert!(matches!(table.get_many(&[stale]), Err(Error::StaleReferences { .. })));
            let large = builder(to.slots, to.nodes).build(&device).unwrap();
            large.find_or_put_many(vectors).unwrap().complete(&large).unwrap();
            // A leaf is also an inner node if its words happen to be references. This depends on where nodes are, so the numbers
            // may differ.
            let (nodes, of_large) = (table.nodes().unwrap(), large.nodes().unwrap());
            assert!(nodes.abs_diff(of_large) <= 1 + nodes / 50, "{width} words, {to:?}: {nodes}, {of_large}");
            let references: Vec<Reference> = table.locate_many(vectors).unwrap().into_iter().flatten().collect();
            assert!(table.get_many(&references).unwrap() == vectors, "{width} words, {to:?}");
            let again = table.find_or_put_many(vectors).unwrap().tally;
            assert_eq!((again.new, again.seen, again.full), (0, count, 0));
            assert_eq!(table.nodes().unwrap(), nodes, "vectors that are found need no node");
        }
        assert_eq!(table.iter().count() as u64, count, "no slot holds anything else");
    }

    /// Returns sizes of a table for `count` vectors: the first size, nodes alone larger, nodes and slots larger, and fewer nodes.
    fn sizes(width: usize, count: u32) -> [Size; 4] {
        let count = u64::from(count);
        let (slots, nodes) = (count * 5 / 4 + 50, count * (width as u64 - 2) * 5 / 4 + 100);
        [(slots, nodes), (slots, 4 * nodes), (3 * slots, 5 * nodes), (3 * slots, nodes)]
            .map(|(slots, nodes)| Size { slots, nodes })
    }

    #[test]
    fn nodes_of_every_width_grow() {
        let strategies = [Strategy::DEFAULT, Strategy::ONE_IP_SM, Strategy::C];
        for width in (3..=36).chain([63, 64, 65, 100, 127, 129, 200, 255, 256]) {
            let count = 8_000 / width as u32;
            let (vectors, sizes) = (vectors(width, count, 5), sizes(width, count));
            for strategy in strategies {
                let of = |slots, nodes| TreeTable::builder(width).strategy(strategy).capacity(slots).nodes(nodes).seed(3);
                grows(1, of, &vectors, &sizes);
            }
            let of = |slots, nodes| CompactTreeTable::builder(width).capacity(slots).nodes(nodes).seed(3);
            grows(1, of, &vectors, &sizes);
        }
    }

    #[test]
    fn several_threads_move_nodes() {
        for width in sized(vec![3, 5, 8, 13], vec![3, 8], vec![3]) {
            let count = sized(150_000, 40_000, 40_000);
            let (vectors, sizes) = (vectors(width, count, 7), sizes(width, count));
            grows(4, |slots, nodes| TreeTable::builder(width).capacity(slots).nodes(nodes).seed(1), &vectors, &sizes);
            grows(4, |slots, nodes| CompactTreeTable::builder(width).capacity(slots).nodes(nodes).seed(1), &vectors, &sizes);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn vectors_keep_their_words(width in 3usize..=20, words in prop::collection::vec(0u32..6, 2000), shift in 0u32..32) {
            // Words of all ones, zeros, and with high bits.
            let words: Vec<u32> = words.iter().map(|word| if *word == 5 { u32::MAX } else { word << shift }).collect();
            let mut vectors: Vec<&[u32]> = words.chunks_exact(width).collect();
            vectors.sort_unstable();
            vectors.dedup();
            let count = vectors.len() as u32;
            let of = |slots, nodes| TreeTable::builder(width).capacity(slots).nodes(nodes).seed(u64::from(shift));
            grows(1, of, &vectors.concat(), &sizes(width, count));
        }
    }

    /// The words of the vectors that are put last equal the halves of inner nodes, so that each of these nodes is also a leaf.
    /// Growth keeps the halves of a leaf, which are words, but replaces those of an inner node, which are references.
    #[test]
    fn leaves_that_equal_inner_nodes_are_kept_apart() {
        fn all_move<S: Storage>(builder: TableBuilder<Words, S>, width: usize) {
            let table = builder.capacity(20_000).build(&Device::cpu_with_threads(2)).unwrap();
            table.find_or_put_many(&vectors(width, 3000, 9)).unwrap().complete(&table).unwrap();
            let pairs: Vec<u64> = {
                let sized = table.raw.look();
                let nodes = sized.store.table().part(TablePart::Nodes);
                let mut all = vec![0u64; nodes.bytes as usize / 8];
                // SAFETY: memory of the table, which nothing writes.
                unsafe { sized.store.machine().load(nodes, 0, &mut all).unwrap() };
                all.into_iter().filter(|node| *node != 0).collect()
            };
            let halves = |number: usize| {
                let pair = |at: usize| pairs[(number * 7 + at * 31) % pairs.len()];
                (0..width).map(|word| (pair(word / 2) >> (word % 2 * 32)) as u32).collect::<Vec<u32>>()
            };
            let more: Vec<u32> = (0..2000).flat_map(halves).collect();
            table.find_or_put_many(&more).unwrap().complete(&table).unwrap();
            let all: Vec<u32> = table.iter().flat_map(|row| row.unwrap().1).collect();
            let (count, nodes) = (table.len().unwrap(), table.nodes().unwrap());
            assert!(all.len() as u64 == count * width as u64 && count > 4000);
            table
                .raw
                .grow_from("grow", table.raw.size(), Size { nodes: 4 * table.raw.size().nodes, ..table.raw.size() })
                .unwrap();
            let references: Vec<Reference> = table.locate_many(&all).unwrap().into_iter().flatten().collect();
            assert!(references.len() as u64 == count && table.get_many(&references).unwrap() == all, "{width} words");
            assert!(
                table.len().unwrap() == count && table.nodes().unwrap() > nodes,
                "nodes of two kinds have become two ({width} words)"
            );
        }
        for width in [5, 6, 8, 12, 16, 33] {
            for strategy in [Strategy::DEFAULT, Strategy::ONE_IP_SM, Strategy::C] {
                all_move(TreeTable::builder(width).strategy(strategy).nodes(200_000).seed(3), width);
            }
            all_move(CompactTreeTable::builder(width).nodes(200_000).seed(3), width);
        }
    }

    /// If the new size has too few nodes or slots, growth returns an error with the numbers, and the table stays as it was.
    #[test]
    fn a_table_whose_vectors_find_no_place_stays_as_it_was() {
        for threads in [1, 4] {
            let vectors = vectors(8, 60_000, 1);
            let table = TreeTable::builder(8).capacity(80_000).nodes(400_000).seed(3);
            let table = table.build(&Device::cpu_with_threads(threads)).unwrap();
            table.find_or_put_many(&vectors).unwrap().complete(&table).unwrap();
            let references: Vec<Reference> = table.locate_many(&vectors).unwrap().into_iter().flatten().collect();
            let (from, nodes) = (table.raw.size(), table.nodes().unwrap());
            let error = |to: Size| match table.raw.grow_from("grow", from, to) {
                Err(Error::TableFull { rejected, for_nodes, offered: 60_000, stored, .. }) if rejected + stored == 60_000 => {
                    (rejected, for_nodes)
                }
                other => panic!("{other:?}"),
            };
            let (rejected, for_nodes) = error(Size { nodes: nodes / 4, ..from });
            assert!(rejected > 20_000 && for_nodes == rejected, "{rejected}, {for_nodes}");
            let (rejected, for_nodes) = error(Size { slots: 40_000, nodes: 800_000 });
            assert!(rejected >= 19_000 && for_nodes == 0, "{rejected}, {for_nodes}");
            assert_eq!((table.raw.size(), table.len().unwrap(), table.nodes().unwrap()), (from, 60_000, nodes));
            assert!(table.get_many(&references).unwrap() == vectors);
        }
    }

    /// Growth makes two lists, one for each kind of position. Each list has an entry for each slot of the node table and for (0,
    /// 0).
    #[test]
    fn lists_take_no_more_than_is_spare() {
        let table = TreeTable::builder(8).capacity(1000).nodes(4000).seed(3).build(&Device::cpu_with_threads(1)).unwrap();
        let raw = &table.raw;
        let to = Size { nodes: 8000, ..raw.size() };
        let (spec, buckets) = raw.fitting(to).unwrap();
        let parameters = Parameters::new(&raw.options, &raw.seeds, spec, buckets, to).unwrap();
        let sized = raw.look();
        let store = CpuStore::of(&*sized.store).unwrap();
        let bytes = 2 * 4 * (raw.size().nodes + 1);
        let is_made = |spare| store.with_moved_trees(&parameters, table.slots(), spare).unwrap().is_some();
        assert_eq!((is_made(bytes), is_made(bytes - 1)), (true, false));
    }
}
