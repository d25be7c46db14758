//! Layouts that Rust and C++ must agree on, as far as they are visible from outside. A kernel on a GPU checks that the fields of
//! a view also arrive intact there: `table_views_arrive_intact` in tests/suite/device_memory.rs.
//!
//! Keeps this promise of `src/docs/your_own_kernels.md`:
//!
//! - Views reach C++ unchanged (fields as in the header; a kernel checks them on a GPU) (also `tests/suite/device_memory.rs`).
//!
//! Keeps this promise of `src/docs/choosing_a_table.md`:
//!
//! - A dense slot has only the bytes of the vector; sizes are as documented (also `tests/suite/compact_roots.rs`,
//!   `tests/suite/cuckoo.rs`, `tests/suite/dense_slots.rs`).

use warpset::{Outcome, Reference};

#[test]
fn results_have_the_sizes_that_kernels_write() {
    assert_eq!((size_of::<Outcome>(), size_of::<Reference>()), (1, 8));
    assert_eq!([Outcome::New, Outcome::Seen, Outcome::Full].map(|outcome| outcome as u8), [1, 2, 3]);
}

#[cfg(feature = "cpu")]
mod tables {
    use std::collections::HashSet;
    use warpset::{BucketTable, Device, Reference, Request};

    /// Slots of the widest bucket, and of a block: with one word per vector, 64 bytes.
    const MOST_SLOTS_A_BLOCK: u64 = 16;

    #[test]
    fn no_width_wastes_memory() {
        let device = Device::cpu_with_threads(1);
        for (width, dense) in (1..=256).flat_map(|width| [(width, true), (width, false)]) {
            for capacity in [1, 2, 3, 15, 16, 17, 100, 1000] {
                let table = BucketTable::builder(width).capacity(capacity).dense(dense).build(&device).unwrap();
                let slot_words = table.spec().slot_words();
                if dense {
                    assert_eq!(slot_words, width);
                } else {
                    let padded = if table.spec().chunk_bytes() == 16 && width > 2 { width.next_multiple_of(4) } else { width };
                    assert_eq!(slot_words, padded);
                }
                let vector_bytes = 4 * slot_words as u64;
                let (slots, bytes) = (table.slots(), table.bytes());
                assert!(slots >= capacity, "width {width}: {slots} slots, not {capacity}");
                let waste = bytes.checked_sub(slots * vector_bytes).expect("a slot holds a vector");
                assert!(
                    waste < MOST_SLOTS_A_BLOCK * vector_bytes,
                    "width {width}, capacity {capacity}: {waste} bytes more than slots"
                );
                // The next prime is near: at most 34 further for numbers below 10,000 (from 1,327 to 1,361).
                let most = capacity.max(2 * MOST_SLOTS_A_BLOCK) + 34 * MOST_SLOTS_A_BLOCK;
                assert!(slots < most, "width {width}: {slots} slots for {capacity}");
                assert_eq!(table.stats().unwrap().bytes, bytes);
            }
        }
    }

    #[test]
    fn specs_say_what_the_cpu_does() {
        let spec = BucketTable::new(&Device::cpu(), 7, 10).unwrap().spec();
        assert_eq!((spec.width(), spec.line_bytes()), (7, 64));
        assert!([8, 16].contains(&spec.chunk_bytes()));
        for number in [7, spec.chunk_bytes(), 64] {
            assert!(spec.to_string().contains(&number.to_string()), "{number} is not in: {spec}");
        }
    }

    /// A table filled to its last slot with vectors that share no word: two words at one place would show, and so would a word
    /// that is read from a wrong place.
    #[test]
    fn every_word_of_every_width_has_a_place_of_its_own() {
        let device = Device::cpu_with_threads(1);
        for (width, dense) in (1..=256).flat_map(|width| [(width, false), (width, true)]) {
            let table = BucketTable::builder(width).capacity(33).dense(dense).seed(4).build(&device).unwrap();
            let slots = table.slots() as usize;
            let vectors: Vec<u32> = (1..=(slots * width) as u32).map(|word| word.wrapping_mul(0x9E37_79B1)).collect();
            let batch = table.find_or_put_many_with(&vectors, Request::new().references(true)).unwrap();
            assert_eq!(batch.tally.new as usize, slots, "width {width}");
            let references: Vec<Reference> = batch.references.into_iter().map(|reference| reference.expect("it fits")).collect();
            assert!(table.get_many(&references).unwrap() == vectors, "width {width}");
            let numbers: HashSet<u64> = references.iter().map(|reference| reference.slot()).collect();
            assert!(numbers.len() == slots && numbers.iter().all(|number| *number < slots as u64), "width {width}");
            assert!(table.contains_many(&vectors).unwrap().iter().all(|contained| *contained), "width {width}");
            let rows: HashSet<Vec<u32>> = table.iter().map(|row| row.unwrap().1).collect();
            assert_eq!(rows, vectors.chunks(width).map(<[u32]>::to_vec).collect::<HashSet<_>>(), "width {width}");
        }
    }
}

#[cfg(feature = "cuda")]
mod headers {
    use std::collections::HashSet;
    use std::mem::offset_of;
    use warpset::gpu::{
        CompactTreeView, CompactView, Counts, HEADERS, HashView, IndexedView, LevelView, NodeView, RowsView, TableView, TreeView,
    };

    fn header(name: &str) -> &'static str {
        HEADERS.iter().find(|header| header.0 == name).unwrap_or_else(|| panic!("{name} is not embedded")).1
    }

    /// Text between the braces of a definition, without comments.
    fn body(header: &'static str, definition: &str) -> String {
        let start = header.find(definition).unwrap_or_else(|| panic!("no `{definition}`")) + definition.len();
        let body = &header[start..start + header[start..].find("};").expect("its end")];
        body.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
    }

    /// (name, offset) of each field of a C++ struct of words, counts and pointers, and the struct's size, by the rules of C.
    fn fields(header: &'static str, definition: &str) -> (Vec<(String, usize)>, usize) {
        let (mut fields, mut end, mut alignment) = (Vec::new(), 0usize, 1);
        for field in body(header, definition).split(';').map(str::trim).filter(|field| !field.is_empty()) {
            let (kind, name) = field.rsplit_once([' ', '*']).expect("a type and a name");
            let size = match kind.trim() {
                _ if field.contains('*') => 8,
                "u64" => 8,
                "u32" => 4,
                other => panic!("the type `{other}` of `{field}`"),
            };
            let (name, count) = match name.split_once('[') {
                Some((name, count)) => (name, count.trim_end_matches(']').parse().expect("a count")),
                None => (name, 1),
            };
            let offset = end.next_multiple_of(size);
            fields.push((name.to_string(), offset));
            (end, alignment) = (offset + size * count, alignment.max(size));
        }
        (fields, end.next_multiple_of(alignment))
    }

    fn named(fields: &[(&str, usize)]) -> Vec<(String, usize)> {
        fields.iter().map(|(name, offset)| (name.to_string(), *offset)).collect()
    }

    #[test]
    fn table_views_have_the_fields_of_the_header() {
        let expected = named(&[
            ("slots", offset_of!(TableView, slots)),
            ("buckets", offset_of!(TableView, buckets)),
            ("slice_buckets", offset_of!(TableView, slice_buckets)),
            ("slice_mask", offset_of!(TableView, slice_mask)),
            ("seeds", offset_of!(TableView, seeds)),
            ("stored", offset_of!(TableView, stored)),
            ("hash_mask", offset_of!(TableView, hash_mask)),
            ("empty", offset_of!(TableView, empty)),
            ("probe_limit", offset_of!(TableView, probe_limit)),
            ("width", offset_of!(TableView, width)),
        ]);
        assert_eq!(fields(header("warpset/bucket/table.cuh"), "struct TableView {"), (expected, size_of::<TableView>()));
    }

    #[test]
    fn node_views_have_the_fields_of_the_header() {
        let expected = named(&[
            ("slots", offset_of!(NodeView, slots)),
            ("stored", offset_of!(NodeView, stored)),
            ("seeds", offset_of!(NodeView, seeds)),
            ("buckets", offset_of!(NodeView, buckets)),
            ("probe_limit", offset_of!(NodeView, probe_limit)),
            ("hash_mask", offset_of!(NodeView, hash_mask)),
            ("width", offset_of!(NodeView, width)),
        ]);
        assert_eq!(fields(header("warpset/tree/nodes.cuh"), "struct NodeView {"), (expected, size_of::<NodeView>()));
        // A tree's view is that of its roots and that of its nodes.
        let parts: Vec<String> =
            body(header("warpset/tree/table.cuh"), "struct TreeView {").split_whitespace().map(String::from).collect();
        assert_eq!(parts, ["TableView", "roots;", "NodeView", "nodes;"]);
        assert_eq!((offset_of!(TreeView, roots), offset_of!(TreeView, nodes)), (0, size_of::<TableView>()));
    }

    #[test]
    fn compact_views_have_the_fields_of_the_header() {
        let expected = named(&[
            ("multipliers", offset_of!(HashView, multipliers)),
            ("inverses", offset_of!(HashView, inverses)),
            ("step", offset_of!(HashView, step)),
            ("bits", offset_of!(HashView, bits)),
            ("last_bits", offset_of!(HashView, last_bits)),
        ]);
        assert_eq!(fields(header("warpset/compact/permutation.cuh"), "struct HashView {"), (expected, size_of::<HashView>()));
        let expected = named(&[
            ("slots", offset_of!(LevelView, slots)),
            ("window", offset_of!(LevelView, window)),
            ("window_inverse", offset_of!(LevelView, window_inverse)),
            ("start", offset_of!(LevelView, start)),
            ("limits", offset_of!(LevelView, limits)),
            ("start_fraction", offset_of!(LevelView, start_fraction)),
            ("buckets", offset_of!(LevelView, buckets)),
            ("functions", offset_of!(LevelView, functions)),
            ("first_function", offset_of!(LevelView, first_function)),
            ("rounds", offset_of!(LevelView, rounds)),
            ("all_rounds", offset_of!(LevelView, all_rounds)),
        ]);
        let compact = header("warpset/compact/table.cuh");
        assert_eq!(fields(compact, "struct LevelView {"), (expected, size_of::<LevelView>()));
        let parts: Vec<String> = body(compact, "struct CompactView {").split_whitespace().map(String::from).collect();
        assert_eq!(parts, ["LevelView", "main,", "stash;", "HashView", "hash;", "u64*", "stored;"]);
        let (level, hash) = (size_of::<LevelView>(), size_of::<HashView>());
        let offsets = (offset_of!(CompactView, main), offset_of!(CompactView, stash), offset_of!(CompactView, hash));
        assert_eq!((offsets, offset_of!(CompactView, stored)), ((0, level, 2 * level), 2 * level + hash));
        let tree = body(header("warpset/tree/table.cuh"), "struct CompactTreeView {");
        assert_eq!(tree.split_whitespace().collect::<Vec<_>>(), ["CompactView", "roots;", "NodeView", "nodes;"]);
        let offsets = (offset_of!(CompactTreeView, roots), offset_of!(CompactTreeView, nodes));
        assert_eq!(offsets, (0, size_of::<CompactView>()));
    }

    #[test]
    fn indexed_views_have_the_fields_of_the_header() {
        let expected = named(&[
            ("words", offset_of!(RowsView, words)),
            ("given", offset_of!(RowsView, given)),
            ("spares", offset_of!(RowsView, spares)),
            ("capacity", offset_of!(RowsView, capacity)),
            ("dense", offset_of!(RowsView, dense)),
            ("spare_cells", offset_of!(RowsView, spare_cells)),
            ("width", offset_of!(RowsView, width)),
            ("reuses", offset_of!(RowsView, reuses)),
        ]);
        assert_eq!(fields(header("warpset/indexed/rows.cuh"), "struct RowsView {"), (expected, size_of::<RowsView>()));
        let table = body(header("warpset/indexed/table.cuh"), "struct IndexedView {");
        let fields: Vec<&str> = table.split(';').map(str::trim).filter(|field| !field.is_empty()).collect();
        let expected = [
            "u8* slots",
            "u64 buckets",
            "u32 slice_buckets",
            "u32 slice_mask",
            "const u128* seeds",
            "u64* stored",
            "u64 hash_mask",
            "u32 row_bits",
            "u32 probe_limit",
            "RowsView rows",
        ];
        assert_eq!(fields, expected);
        let offsets = [
            offset_of!(IndexedView, slots),
            offset_of!(IndexedView, buckets),
            offset_of!(IndexedView, slice_buckets),
            offset_of!(IndexedView, slice_mask),
            offset_of!(IndexedView, seeds),
            offset_of!(IndexedView, stored),
            offset_of!(IndexedView, hash_mask),
            offset_of!(IndexedView, row_bits),
            offset_of!(IndexedView, probe_limit),
            offset_of!(IndexedView, rows),
        ];
        assert_eq!(offsets, [0, 8, 16, 20, 24, 32, 40, 48, 52, 56]);
    }

    #[test]
    fn counts_have_the_fields_of_the_header() {
        let expected = named(&[
            ("offered", offset_of!(Counts, offered)),
            ("hits", offset_of!(Counts, hits)),
            ("full", offset_of!(Counts, full)),
            ("new_references", offset_of!(Counts, new_references)),
            ("full_nodes", offset_of!(Counts, full_nodes)),
        ]);
        assert_eq!(fields(header("warpset/core/batch_view.cuh"), "struct BatchCounts {"), (expected, size_of::<Counts>()));
    }

    #[test]
    fn outcomes_have_the_numbers_of_the_header() {
        let outcomes = body(header("warpset/core/outcome.cuh"), "enum class Outcome : u8 {");
        let outcomes: Vec<&str> = outcomes.split(',').map(str::trim).collect();
        assert_eq!(outcomes, ["Pending = 0", "New = 1", "Seen = 2", "Full = 3", "Absent = 4"]);
    }

    /// Each `#include` of the headers names one of the headers: NVRTC and users have no others.
    #[test]
    fn headers_include_nothing_else() {
        for (name, text) in HEADERS {
            for line in text.lines().filter(|line| line.trim_start().starts_with("#include")) {
                let included = line.split('"').nth(1).unwrap_or(line);
                assert!(HEADERS.iter().any(|header| header.0 == included), "{name} includes {included}");
            }
        }
    }

    /// Layers of the headers, from the lowest. A header includes lower layers, and headers of its own folder.
    const LAYERS: [&[&str]; 8] = [
        &["warpset/platform.cuh"],
        &["warpset/core/"],
        &["warpset/bucket/", "warpset/cluster/"],
        &["warpset/compact/"],
        &["warpset/indexed/", "warpset/tree/"],
        &["warpset/table.cuh", "warpset/tree/strategies/"],
        &["warpset/batch/"],
        &["warpset/block_cache.cuh"],
    ];

    /// Number of the layer that a header is in, and its entry there: that of the longest prefix of its name.
    fn layer(name: &str) -> (usize, &'static str) {
        let entries = LAYERS.iter().enumerate().flat_map(|(number, entries)| entries.iter().map(move |entry| (number, *entry)));
        let layer = entries.filter(|(_, entry)| name.starts_with(entry)).max_by_key(|(_, entry)| entry.len());
        layer.unwrap_or_else(|| panic!("{name} is in no layer"))
    }

    fn included(name: &'static str) -> impl Iterator<Item = &'static str> {
        header(name).lines().filter(|line| line.trim_start().starts_with("#include")).filter_map(|line| line.split('"').nth(1))
    }

    #[test]
    fn headers_include_lower_layers_only() {
        for (name, _) in HEADERS {
            for other in included(name) {
                let (own, of_other) = (layer(name), layer(other));
                assert!(of_other.0 < own.0 || of_other == own, "{name} includes {other}, which is not below it");
            }
        }
    }

    /// `#pragma once` hides a circle from the compiler.
    #[test]
    fn headers_include_each_other_in_no_circle() {
        fn visit(name: &'static str, path: &mut Vec<&'static str>, done: &mut HashSet<&'static str>) {
            assert!(!path.contains(&name), "{path:?} includes {name}");
            if done.contains(name) {
                return;
            }
            path.push(name);
            included(name).for_each(|other| visit(other, path, done));
            path.pop();
            done.insert(name);
        }
        let mut done = HashSet::new();
        for (name, _) in HEADERS {
            visit(name, &mut Vec::new(), &mut done);
        }
        assert_eq!(done.len(), HEADERS.len());
    }
}

/// Two versions may be linked into one program: all names that C++ gives to others have the version of this one.
#[cfg(all(feature = "cpu", target_os = "linux"))]
#[test]
fn names_of_the_cpp_have_the_version() {
    use object::{Object, ObjectSymbol};
    // Makes sure that the linker has what a table needs.
    let table = warpset::TreeTable::new(&warpset::Device::cpu_with_threads(1), 3, 10).unwrap();
    assert_eq!(table.find_or_put_many(&[1, 2, 3]).unwrap().tally.new, 1);
    let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let version = env!("CARGO_PKG_VERSION").replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    // The key `links` is a constant of the manifest, which must change with each version.
    assert!(
        include_str!("../../Cargo.toml").contains(&format!("\nlinks = \"warpset_cpu_{version}\"\n")),
        "links of another version"
    );
    let (namespace, mut entries, mut of_namespace, mut wrong) = (format!("warpset_{version}"), 0, 0, Vec::new());
    for name in file.symbols().filter(|symbol| symbol.is_definition()).filter_map(|symbol| symbol.name().ok()) {
        // Rust's own names have a hash of the package; as text they begin with `_ZN7warpset` or `_R`, and end with the hash.
        let is_rust = name.starts_with("_R") || name.rsplit_once("17h").is_some_and(|(_, hash)| hash.len() == 17);
        if name.starts_with("warpset_cpu_") {
            entries += 1;
            if !name.ends_with(&format!("_{version}")) {
                wrong.push(name.to_owned());
            }
        } else if name.starts_with("_Z") && name.contains("warpset") && !is_rust {
            // With the length before it, as in `_ZN13warpset_0_1_05Tree...`. Guards and the like begin differently.
            of_namespace += 1;
            if name.matches("warpset").count() != name.matches(&format!("{}{namespace}", namespace.len())).count() {
                wrong.push(name.to_owned());
            }
        }
    }
    assert!(wrong.is_empty(), "{} names: {wrong:#?}", wrong.len());
    assert!(entries > 10 && of_namespace > 100, "{entries} entry points and {of_namespace} names of C++ are here");
}
