//! Tests of slots in layouts that no CPU has, and of holes that no test from outside can make.

use super::header::{Header, VERSION};
use super::slots::{SlotLayout, Vectors};
use super::*;
use crate::{BucketTable, CompactTreeTable, IndexedTable, RootTable, Strategy, TreeTable, VectorTable};
use proptest::prelude::*;
use std::collections::{BTreeSet, HashSet};
use warpset_testing::sizes::sized;

/// Vectors of `width` words that differ in their first words.
fn vectors(width: usize, count: u32) -> Vec<u32> {
    let word = |vector: u32, at: usize| vector.wrapping_mul(0x9E37_79B1).rotate_left(at as u32).wrapping_add((at / 3) as u32);
    (0..count).flat_map(|vector| (0..width).map(move |at| word(vector, at))).collect()
}

/// Content of a table's slots, read with the knowledge of this module only.
fn read_slots(raw: &RawTable) -> Vec<u32> {
    let sized = raw.sized_exclusively("save").unwrap();
    let header = Header::of(raw, &sized).unwrap();
    let Fields { slot_layout, buckets, slot_bytes, .. } = header.fields;
    assert_eq!(slot_layout.bytes(buckets), slot_bytes);
    assert!(slot_layout.is_of(sized.spec.hashed_words()));
    let mut reader = Vectors::new(slot_layout, sized.spec.hashed_words() as usize, buckets, header.seeds.empty);
    let (mut words, mut pieces) = (Vec::new(), 0);
    // Reads pieces of all lengths, so that blocks of slots are cut anywhere.
    sized
        .store
        .read_pieces(TablePart::Slots, slot_bytes, &mut |mut piece| {
            while !piece.is_empty() {
                pieces += 1;
                let (first, rest) = piece.split_at((pieces * 37 % 400 + 1).min(piece.len()));
                reader.take(first, &mut words);
                piece = rest;
            }
            Ok(())
        })
        .unwrap();
    words
}

/// For every width: the vectors that are read from the slots are those that the kernels find in them, in the same order.
#[test]
fn slots_are_read_as_they_lie() {
    for width in 1..=256 {
        let table = BucketTable::builder(width).capacity(150).build(&Device::cpu_with_threads(1)).unwrap();
        table.find_or_put_many(&vectors(width, 100)).unwrap().complete(&table).unwrap();
        let expected: Vec<u32> = table.iter().flat_map(|row| row.unwrap().1).collect();
        assert!(read_slots(&table.raw) == expected, "width {width}");
    }
}

/// Writes vectors into slots of this layout, with some slots left free and a half-written one among them. Returns the memory of a
/// table of `buckets` buckets.
fn written(layout: SlotLayout, words: &[u32], width: usize, empty: [u32; 4], buckets: u64) -> Vec<u8> {
    let mut memory = vec![0; layout.bytes(buckets) as usize];
    let mut rows = words.chunks(width);
    for slot in 0..buckets * u64::from(layout.slots_per_bucket) {
        let vector = if slot % 5 == 3 { None } else { rows.next() };
        let places = layout.places(slot, empty);
        let chunks = places.len();
        let mut word = 0;
        for (number, (at, pattern)) in places.into_iter().enumerate() {
            let mut chunk = pattern;
            let half_written = slot % 5 == 3 && number + 1 < chunks;
            for piece in chunk.chunks_mut(4).filter(|_| vector.is_some() || half_written) {
                let value = vector.map_or(7, |vector| vector.get(word).copied().unwrap_or(0));
                piece.copy_from_slice(&value.to_le_bytes());
                word += 1;
            }
            memory[at..at + chunk.len()].copy_from_slice(&chunk);
        }
    }
    assert!(rows.next().is_none(), "there is room for all");
    memory
}

/// File of a table as a machine with this slot layout would have written it.
fn saved_elsewhere(raw: &RawTable, layout: SlotLayout) -> Vec<u8> {
    saved_as(raw, layout, VERSION)
}

/// As above, of a version of the format. The vectors are in any slots.
fn saved_as(raw: &RawTable, layout: SlotLayout, version: u32) -> Vec<u8> {
    let words = read_slots(raw);
    let sized = raw.sized_exclusively("save").unwrap();
    let mut header = Header::of(raw, &sized).unwrap();
    let width = sized.spec.hashed_words() as usize;
    let slots = (words.len() / width) as u64 * 5 / 4 + 20;
    let mut buckets = slots.div_ceil(u64::from(layout.slots_per_bucket));
    while !crate::layout::size::is_prime(buckets) {
        buckets += 1;
    }
    let memory = written(layout, &words, width, header.seeds.empty, buckets);
    header.version = version;
    header.fields.slot_layout = layout;
    header.fields.buckets = buckets;
    header.fields.slot_bytes = memory.len() as u64;
    let mut bytes = Vec::new();
    let mut to = Sink::new(&mut bytes);
    header.write(&mut to).unwrap();
    to.blocks(SLOTS, &mut 0, &memory).unwrap();
    let mut block = 0;
    let node_bytes = header.fields.node_bytes;
    sized.store.read_pieces(TablePart::Nodes, node_bytes, &mut |piece| to.blocks(NODES, &mut block, piece)).unwrap();
    to.finish().unwrap();
    bytes
}

fn rows<S: crate::Storage>(table: &VectorTable<S>) -> BTreeSet<Vec<u32>> {
    table.iter().map(|row| row.unwrap().1).collect()
}

/// Layouts of GPUs with 16-byte compare-and-swaps, with padded and dense slots, and of GPUs with 8-byte ones.
fn layouts(width: u32) -> Vec<SlotLayout> {
    let mut layouts = Vec::new();
    for (chunk_bytes, slot_words) in [(16, width.next_multiple_of(4)), (16, width), (8, width)] {
        let main = if slot_words == 1 {
            4
        } else if slot_words < 4 {
            8
        } else {
            chunk_bytes
        };
        let padded = slot_words > width && width < 3;
        let layout = SlotLayout::test(main, slot_words, width, chunk_bytes);
        if !padded && !layouts.contains(&layout) {
            layouts.push(layout);
        }
    }
    layouts
}

/// Chunk size of a machine that this one is not.
fn other_chunk_bytes(device: &Device) -> u32 {
    if device.chunk_bytes(2) == 16 { 8 } else { 16 }
}

#[test]
fn slots_of_other_machines_are_put_again() {
    let device = Device::cpu_with_threads(2);
    let (mut again, mut alike) = (0, 0);
    let all = (1..=40).chain([63, 64, 65, 100, 255, 256]).collect();
    let widths = sized(all, vec![1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 64, 256], vec![1, 3, 4, 7, 16]);
    for &width in &widths {
        let table = BucketTable::builder(width).capacity(400).build(&device).unwrap();
        let words = vectors(width, 300);
        let references = table.find_or_put_many_with(&words, Request::new().references(true)).unwrap().references;
        let references: Vec<Reference> = references.into_iter().flatten().collect();
        for layout in layouts(width as u32) {
            let bytes = saved_elsewhere(&table.raw, layout);
            let own = { Header::of(&table.raw, &table.raw.sized_exclusively("save").unwrap()).unwrap().fields.slot_layout };
            if layout == own {
                alike += 1;
                continue;
            }
            again += 1;
            let loaded = BucketTable::load(&device, &bytes[..]).unwrap();
            assert!(rows(&loaded) == rows(&table), "width {width}, {layout:?}");
            assert_eq!((loaded.len().unwrap(), loaded.spec()), (300, table.spec()));
            assert_eq!(loaded.find_or_put_many(&words).unwrap().tally.seen, 300);
            let stale = Error::StaleReferences { stale: 300, count: 300 };
            assert_eq!(loaded.loaded_references(&references), Err(stale));
            // The loaded table does not grow by itself, because the saved one did not.
            assert!(loaded.find_or_put_many(&vectors(width, 9000)).unwrap().tally.full > 0);
            for len in [bytes.len() - 1, bytes.len() / 2] {
                assert!(matches!(
                    BucketTable::load(&device, &bytes[..len]),
                    Err(Error::File { fault: FileFault::Truncated { .. } })
                ));
            }
        }
    }
    // Each width has the layout of one kind of GPU here.
    assert!(again > widths.len() && alike == widths.len(), "{again}, {alike}");
}

#[test]
fn roots_of_other_machines_are_put_again() {
    let device = Device::cpu_with_threads(2);
    let roots = SlotLayout::test(8, 2, 2, other_chunk_bytes(&device));
    for strategy in [Strategy::DEFAULT, Strategy::CLR64, Strategy::ONE_IP_SM] {
        for width in [3, 4, 9, 64, 255] {
            let table = TreeTable::builder(width).capacity(400).nodes(100_000).strategy(strategy).build(&device).unwrap();
            let words = vectors(width, 300);
            table.find_or_put_many(&words).unwrap().complete(&table).unwrap();
            let bytes = saved_elsewhere(&table.raw, roots);
            let loaded = TreeTable::load(&device, &bytes[..]).unwrap();
            assert!(rows(&loaded) == rows(&table), "width {width}, {strategy}");
            assert_eq!(loaded.spec(), table.spec());
            assert_eq!((loaded.len().unwrap(), loaded.nodes().unwrap()), (300, table.nodes().unwrap()));
            assert_eq!(loaded.find_or_put_many(&words).unwrap().tally.seen, 300);
            loaded.reserve_total(5000).unwrap();
            assert_eq!(loaded.find_or_put_many(&vectors(width, 400)).unwrap().tally.new, 100);
        }
    }
}

/// Files of the first version, whose slots were probed in another order: vectors are put again, an index is refused.
#[test]
fn tables_of_the_first_version_are_put_again() {
    let device = Device::cpu_with_threads(1);
    let own = |raw: &RawTable| SlotLayout::of(raw.spec(), &raw.geometry_of(&raw.look()));
    let table = BucketTable::builder(3).capacity(400).seed(1).build(&device).unwrap();
    let words = vectors(3, 300);
    table.find_or_put_many(&words).unwrap().complete(&table).unwrap();
    let found = |version: u32| {
        let loaded = BucketTable::load(&device, &saved_as(&table.raw, own(&table.raw), version)[..]).unwrap();
        assert!(rows(&loaded) == rows(&table), "version {version}");
        loaded.contains_many(&words).unwrap().into_iter().filter(|found| *found).count()
    };
    assert!(found(1) == 300 && found(2) < 300, "the vectors are where no search comes");
    let table = TreeTable::builder(4).capacity(400).nodes(2000).seed(1).build(&device).unwrap();
    table.find_or_put_many(&vectors(4, 300)).unwrap().complete(&table).unwrap();
    let loaded = TreeTable::load(&device, &saved_as(&table.raw, own(&table.raw), 1)[..]).unwrap();
    assert_eq!(loaded.find_or_put_many(&vectors(4, 300)).unwrap().tally.seen, 300);
    let table = IndexedTable::builder(4).capacity(400).build(&device).unwrap();
    let mut bytes = Vec::new();
    table.save(&mut bytes).unwrap();
    let mut from = Source::new(&bytes[..], 16);
    let mut header = Header::read(&mut from).unwrap();
    header.version = 1;
    let mut older = Vec::new();
    header.write(&mut Sink::new(&mut older)).unwrap();
    older.extend(&bytes[older.len()..]);
    let error = IndexedTable::load(&device, &older[..]).unwrap_err();
    assert_eq!(error, Error::File { fault: FileFault::Older { version: 1, oldest: 2 } });
}

/// A table as full as slots of another bucket size can be: it gets as many slots as it needs.
#[test]
fn full_slots_of_other_machines_find_room() {
    let device = Device::cpu_with_threads(1);
    let layout = SlotLayout::test(8, 2, 2, other_chunk_bytes(&device));
    let table = BucketTable::builder(2).capacity(1 << 12).grows(true).build(&device).unwrap();
    let words = vectors(2, 3400);
    table.find_or_put_many(&words).unwrap().complete(&table).unwrap();
    let bytes = saved_elsewhere(&table.raw, layout);
    let loaded = BucketTable::load(&device, &bytes[..]).unwrap();
    let slots = Header::read(&mut Source::new(&bytes[..], 16)).unwrap().fields.buckets * u64::from(layout.slots_per_bucket);
    assert!(rows(&loaded) == rows(&table) && (slots..slots * 11 / 10).contains(&loaded.slots()), "no more than need be");
    // These vectors do not fit at all.
    loaded.raw.put_all(&vectors(2, 60_000), 60_000).unwrap();
    assert_eq!(loaded.len().unwrap(), 60_000);
    let loaded = BucketTable::load(&device, &bytes[..]).unwrap();
    assert_eq!(loaded.find_or_put_many(&vectors(2, 40_000)).unwrap().complete(&loaded).unwrap().seen, 3400, "it grows");
}

/// A table that could not grow any more is fuller than growth allows. It keeps its size, and grows afterwards.
#[test]
fn nearly_full_tables_of_the_first_version_keep_their_size() {
    let device = Device::cpu_with_threads(1);
    let memory = crate::MemoryLimit::Reserved(40_000);
    let table = BucketTable::builder(2).capacity(1 << 12).grows(true).memory(memory).build(&device).unwrap();
    let words = vectors(2, 3800);
    table.find_or_put_many(&words).unwrap().complete(&table).unwrap();
    assert!(table.slots() * 9 / 10 < 3800, "{} slots", table.slots());
    let mut bytes = Vec::new();
    {
        let sized = table.raw.sized_exclusively("save").unwrap();
        let mut header = Header::of(&table.raw, &sized).unwrap();
        header.version = 1;
        let mut to = Sink::new(&mut bytes);
        header.write(&mut to).unwrap();
        let mut block = 0;
        let slot_bytes = header.fields.slot_bytes;
        sized.store.read_pieces(TablePart::Slots, slot_bytes, &mut |piece| to.blocks(SLOTS, &mut block, piece)).unwrap();
        to.finish().unwrap();
    }
    let loaded = BucketTable::load(&device, &bytes[..]).unwrap();
    assert!(rows(&loaded) == rows(&table));
    assert_eq!(loaded.slots(), table.slots());
    loaded.insert_many(&vectors(2, 60_000)).unwrap();
    assert!(loaded.slots() > 60_000, "it grows");
}

/// A hole that is not a spare stays a hole, and is not given out.
#[test]
fn holes_are_kept() {
    let device = Device::cpu_with_threads(1);
    let table = IndexedTable::builder(1).capacity(100).build(&device).unwrap();
    let put = |words: &[u32]| table.find_or_put_many_with(words, Request::new().references(true)).unwrap().references;
    let mut references = put(&[0, 10]);
    assert_eq!(table.raw.look().store.lose_a_row(), 2);
    table.raw.calls.note_kernels();
    references.extend(put(&[30, 40]));
    let references: Vec<Reference> = references.into_iter().flatten().collect();
    let mut bytes = Vec::new();
    table.save(&mut bytes).unwrap();
    let loaded = IndexedTable::load(&device, &bytes[..]).unwrap();
    assert_eq!((loaded.holes().unwrap(), loaded.len().unwrap()), (vec![2], 4));
    let now = loaded.loaded_references(&references).unwrap();
    assert_eq!(loaded.get_many(&now).unwrap(), [0, 10, 30, 40]);
    assert_eq!(loaded.rows().unwrap()[..], [0, 10]);
    let hole = loaded.reference(2).unwrap();
    assert_eq!(loaded.get_many(&[hole]), Err(Error::InvalidReferences { invalid: 1, count: 1 }));
    // No kernel has references to the rows of a table that was just loaded: a batch fills the hole.
    loaded.find_or_put_many(&[50, 60]).unwrap().complete(&loaded).unwrap();
    assert_eq!(loaded.rows().unwrap().len(), 6);
    assert_eq!(loaded.get_many(&now).unwrap(), [0, 10, 30, 40]);
}

/// Statistics look for each node from the slot of its hash. They end even if that search would never find it: here a damaged file
/// has a node behind the last bucket.
#[test]
fn statistics_end_whatever_the_nodes_are() {
    let device = Device::cpu_with_threads(1);
    let table = TreeTable::builder(4).capacity(100).nodes(200).build(&device).unwrap();
    let words: Vec<u32> = (1..20).flat_map(|at| [0, 0, at, 7]).collect();
    table.find_or_put_many(&words).unwrap().complete(&table).unwrap();
    let before = table.stats().unwrap();
    let buckets = {
        let mut sized = table.raw.sized_exclusively("test").unwrap();
        let (buckets, bytes) = (sized.node_buckets, crate::layout::size::node_bytes(sized.node_buckets));
        let change = &mut |nodes: &mut [u8]| {
            let last = nodes.len() - 8;
            nodes[last..].copy_from_slice(&7u64.to_le_bytes());
            Ok(())
        };
        sized.store.fill_pieces(TablePart::Nodes, bytes, change).unwrap();
        buckets
    };
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(table.stats().unwrap()));
    let after = receiver.recv_timeout(std::time::Duration::from_secs(300)).expect("it ends");
    // Each vector has that node once; a small table is searched to its last bucket.
    assert_eq!(after.node_probes, before.node_probes + 19 * buckets);
}

/// Loads a table of one kind, and returns its number of vectors.
type Load = fn(&[u8]) -> Result<u64>;

/// File of a small table, and the function that loads it.
fn small(kind: usize) -> (Vec<u8>, Load) {
    fn put<S: crate::Storage>(table: &VectorTable<S>) -> Vec<u8> {
        table.find_or_put_many(&vectors(4, 6)).unwrap().complete(table).unwrap();
        let mut bytes = Vec::new();
        table.save(&mut bytes).unwrap();
        bytes
    }
    let device = Device::cpu_with_threads(1);
    match kind {
        0 => (put(&BucketTable::new(&device, 4, 8).unwrap()), |bytes| {
            BucketTable::load(&Device::cpu_with_threads(1), bytes)?.len()
        }),
        1 => (put(&TreeTable::builder(4).capacity(8).nodes(40).build(&device).unwrap()), |bytes| {
            TreeTable::load(&Device::cpu_with_threads(1), bytes)?.len()
        }),
        2 => (put(&IndexedTable::new(&device, 4, 8).unwrap()), |bytes| {
            IndexedTable::load(&Device::cpu_with_threads(1), bytes)?.len()
        }),
        _ => {
            let table = RootTable::builder().key_bits(20).capacity(8).build(&device).unwrap();
            table.find_or_put_many(&[1, 2, 3, 4, 5, 6]).unwrap().complete(&table).unwrap();
            let mut bytes = Vec::new();
            table.save(&mut bytes).unwrap();
            (bytes, |bytes| RootTable::load(&Device::cpu_with_threads(1), bytes)?.len())
        }
    }
}

proptest! {
    /// The start of a file, followed by anything.
    #[test]
    fn bytes_are_a_table_or_an_error(kind in 0..4usize, known in 0..2000usize, more: Vec<u8>) {
        let (mut bytes, load) = small(kind);
        let whole = bytes.len();
        bytes.truncate(known);
        let known = bytes.len();
        bytes.extend(&more);
        match load(&bytes) {
            Ok(stored) => prop_assert!(stored == 6 && (known == whole || bytes[..whole] == small(kind).0[..])),
            Err(Error::File { .. }) => prop_assert!(known < whole),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
    }

    /// A file with some bytes changed.
    #[test]
    fn changed_bytes_are_an_error(
        kind in 0..4usize, changes in prop::collection::vec((any::<prop::sample::Index>(), 1..=255u8), 1..4),
    ) {
        let (bytes, load) = small(kind);
        let mut changed = bytes.clone();
        for (at, change) in changes {
            changed[at.index(bytes.len())] ^= change;
        }
        match load(&changed) {
            Ok(stored) => prop_assert!(stored == 6 && changed == bytes),
            Err(Error::File { .. }) => prop_assert!(changed != bytes),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        }
    }
}

/// Vectors that have their last word in their root, which has room for some of its bits: they are found, and others refused,
/// while slots and nodes grow, and when the table is loaded.
#[test]
fn last_words_of_few_bits_make_short_roots() {
    for (width, last_bits) in [(3usize, 10), (3, 13), (5, 31), (9, 17)] {
        let mask = (1u32 << last_bits) - 1;
        let vector = |number: u32| {
            let words = (0..width as u32 - 1).map(move |word| number.wrapping_mul(2 * word + 1) % (50 + 400 * word));
            words.chain([number.wrapping_mul(0x9e37_79b1) & mask])
        };
        let vectors: Vec<u32> =
            (0..sized(40_000, 25_000, 25_000)).flat_map(vector).chain((0..width as u32 - 1).chain([mask])).collect();
        let stored = vectors.chunks(width).collect::<HashSet<_>>().len() as u64;
        let builder = CompactTreeTable::builder(width).capacity(64).nodes(64).grows(true).last_bits(last_bits);
        let table = builder.clone().build(&Device::cpu_with_threads(2)).unwrap();
        let of_all_bits = CompactTreeTable::builder(width).capacity(64).nodes(64).build(&Device::cpu()).unwrap();
        let bits = |table: &CompactTreeTable| table.spec().key_and_slot_bits().unwrap().0;
        assert_eq!(bits(&table) + 32 - last_bits, bits(&of_all_bits), "{width} words");
        assert_eq!(table.find_or_put_many(&vectors).unwrap().complete(&table).unwrap().new, stored);
        let mut file = Vec::new();
        table.save(&mut file).unwrap();
        let loaded = CompactTreeTable::load(&Device::cpu_with_threads(2), &file[..]).unwrap();
        assert_eq!((loaded.spec(), loaded.slots()), (table.spec(), table.slots()));
        for table in [&table, &loaded] {
            table.reserve_total(2 * table.slots()).unwrap();
            table.reserve_nodes(4 * table.node_slots()).unwrap();
            let places = table.locate_many(&vectors).unwrap().into_iter().flatten().collect::<Vec<_>>();
            assert!(table.get_many(&places).unwrap() == vectors && table.len().unwrap() == stored, "{width} words");
            let mut beyond = vectors[..2 * width].to_vec();
            beyond[2 * width - 1] = mask + 1;
            let error = table.find_or_put_many(&beyond).unwrap_err();
            let Error::LastWordTooLarge { word, position: 1, last_bits: of_table } = error else { panic!("{error}") };
            assert_eq!((word, of_table, table.len().unwrap()), (mask + 1, last_bits, stored));
        }
    }
    for bits in [0, 33] {
        let error = CompactTreeTable::builder(3).last_bits(bits).build(&Device::cpu()).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { least: 1, most: 32, .. }), "{error}");
    }
    // Other vectors have two references in their roots.
    let table = CompactTreeTable::builder(4).last_bits(10).build(&Device::cpu()).unwrap();
    assert_eq!(table.find_or_put_many(&[1, 2, 3, u32::MAX]).unwrap().complete(&table).unwrap().new, 1);
}
