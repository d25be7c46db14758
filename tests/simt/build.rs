//! Compiles the headers in `cuda/` for the simulated GPU: each table spec of the lists below, and the negative controls.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Width in words; chunk and line in bytes.
type Layout = (u32, u32, u32);

/// Each kind of layout: one chunk, several chunks, each tail, slots that share a bucket or a line, buckets of several rows,
/// classes of EMPTY in more than a word.
const BUCKETS: &[Layout] = &[
    (1, 16, 32),
    (1, 8, 64),
    (2, 16, 32),
    (2, 8, 64),
    (3, 16, 64),
    (3, 8, 32),
    (4, 16, 64),
    (4, 8, 32),
    (5, 16, 64),
    (5, 8, 64),
    (6, 16, 64),
    (6, 8, 32),
    (7, 16, 64),
    (7, 8, 128),
    (8, 16, 64),
    (8, 8, 32),
    (11, 16, 64),
    (12, 16, 32),
    (16, 16, 64),
    (16, 8, 64),
    (19, 16, 64),
    (33, 16, 128),
    (33, 8, 64),
    (64, 16, 64),
    (129, 16, 64),
    (256, 8, 64),
];

/// Bucket tables with padded slots: width in words, chunk and line in bytes, words per slot. One chunk and several, the end of a
/// vector at each word of its last chunk, a bucket of several slots and one.
const PADDED: &[(u32, u32, u32, u32)] = &[(3, 16, 64, 4), (5, 16, 64, 8), (6, 16, 64, 8), (7, 16, 32, 8), (33, 16, 64, 36)];

/// Layouts of tree tables. Shapes: a word that moves up to the root pair, a word that moves up to a level between, no such word;
/// whole trees; nodes that move up; several rounds of tasks per level. Roots: one and both sizes of chunks (equal for two words),
/// buckets of 4 and 8.
const TREES: &[Layout] = &[
    (3, 16, 32),
    (3, 8, 64),
    (4, 8, 32),
    (4, 16, 64),
    (5, 16, 64),
    (6, 8, 64),
    (7, 16, 32),
    (8, 16, 64),
    (9, 8, 32),
    (16, 16, 32),
    (17, 8, 64),
    (33, 16, 64),
];

/// The default, and the other build strategies (src/layout/strategy.rs): lanes, pairing and workspace, by the numbers in
/// tree/strategy.cuh.
const DEFAULT: (&str, [u32; 3]) = ("", [0, 0, 0]);
const STRATEGIES: &[(&str, [u32; 3])] = &[
    ("_c", [2, 2, 4]),
    ("_c64", [1, 2, 4]),
    ("_clr", [2, 2, 5]),
    ("_clr64", [1, 2, 5]),
    ("_1_np_gm", [1, 0, 2]),
    ("_1_np_sm", [1, 0, 0]),
    ("_1_np_s_sm", [1, 0, 1]),
    ("_1_ip_gm", [1, 1, 2]),
    ("_1_ip_sm", [1, 1, 0]),
    ("_l_np_gm", [3, 0, 2]),
    ("_l_np_sm", [3, 0, 0]),
    ("_l_np_lm", [3, 0, 3]),
    ("_l_ip_gm", [3, 1, 2]),
    ("_l_ip_sm", [3, 1, 0]),
    ("_ld_np_gm", [4, 0, 2]),
    ("_ld_np_sm", [4, 0, 0]),
    ("_ld_np_s_sm", [4, 0, 1]),
    ("_ld_ip_gm", [4, 1, 2]),
    ("_ld_ip_sm", [4, 1, 0]),
];

/// Layouts for each of these strategies: an odd row of words, and one above.
const STRATEGY_TREES: &[Layout] = &[(7, 8, 64)];

/// Whole trees for each workspace; more leaves than a warp has lanes: registers, groups and rows of several rounds.
const WIDE: &[(&str, &[Layout])] = &[
    ("_clr", &[(16, 16, 32)]),
    ("_1_ip_gm", &[(16, 16, 32)]),
    ("_l_np_lm", &[(16, 16, 32), (70, 16, 32)]),
    ("_l_ip_sm", &[(67, 8, 64)]),
    ("_ld_np_s_sm", &[(16, 16, 32), (37, 16, 32)]),
];

/// Key bits and slot bits of compact tables. Slots: one per word, two per word, slots whose neighbours interfere and slots whose
/// neighbours do not; codes that use all bits of a slot; keys that use all bits of two words.
const COMPACTS: &[(u32, u32)] = &[(12, 16), (15, 16), (20, 32), (31, 32), (33, 32), (40, 64), (64, 64)];

/// Words, root bits and slot bits of trees with compact roots. Roots are two references, or (3, 5, 33 words) a reference and a
/// word.
const COMPACT_TREES: &[(u32, u32, u32)] =
    &[(3, 44, 64), (4, 14, 16), (4, 24, 32), (5, 44, 64), (7, 24, 32), (8, 24, 32), (16, 24, 32), (33, 44, 64)];

/// Words and slot bits of indexed tables. Rows of one unit and of several units, units of each size, more units than a warp has
/// lanes.
const INDEXED: &[(u32, u32)] =
    &[(1, 64), (2, 32), (2, 64), (3, 64), (4, 32), (6, 64), (8, 32), (16, 64), (33, 32), (70, 64), (132, 32)];

/// Specs that a plain build compiles: each kind of table, and each branch of the headers that depends on a layout, once.
/// `WARPSET_TEST_FULL=1` or `WARPSET_SIMT_FULL=1` compiles all others: a spec takes a second or two, and there are a hundred.
const PLAIN: &[&str] = &[
    // One chunk; two and three; a tail of each size; more chunks than bits of a lane; a bucket of one slot; padded slots.
    "bucket_2_8_64",
    "bucket_2_16_32",
    "bucket_3_8_32",
    "bucket_4_8_32",
    "bucket_4_16_64",
    "bucket_5_8_64",
    "bucket_6_8_32",
    "bucket_7_16_64",
    "bucket_8_16_64",
    "bucket_12_16_32",
    "bucket_33_8_64",
    "bucket_5_16_64_8",
    // A word that moves up to the root, and one between; whole trees; several rounds of tasks.
    "tree_3_8_64",
    "tree_4_8_32",
    "tree_7_16_32",
    "tree_17_8_64",
    "tree_compact_3_44_64",
    "tree_compact_4_14_16",
    "tree_compact_8_24_32",
    // Each way to share work among lanes, each pairing, each workspace.
    "strategy_7_8_64_c",
    "strategy_7_8_64_clr",
    "strategy_7_8_64_1_np_s_sm",
    "strategy_7_8_64_1_ip_gm",
    "strategy_7_8_64_l_np_lm",
    "strategy_7_8_64_ld_ip_sm",
    // Each size of slots, slots whose neighbours interfere, codes that use all bits.
    "compact_12_16",
    "compact_15_16",
    "compact_20_32",
    "compact_31_32",
    "compact_33_32",
    "compact_40_64",
    "compact_64_64",
    // Rows of one unit and of several, of each size, and of more units than lanes.
    "indexed_1_64",
    "indexed_2_32",
    "indexed_2_64",
    "indexed_3_64",
    "indexed_4_32",
    "indexed_33_32",
];

/// One spec: its kind, the numbers of its name, the suffix of its name, and its macros: tree, width, chunk, line, key bits, slot
/// bits; lanes, pairing, workspace.
#[derive(Clone)]
struct Spec {
    kind: &'static str,
    numbers: Vec<u32>,
    strategy: &'static str,
    shape: [u32; 6],
    /// Words per slot of a bucket table.
    slot_words: u32,
    makes: [u32; 3],
}

impl Spec {
    /// The kind, the numbers, and the suffix of the strategy.
    fn name(&self) -> String {
        let numbers: Vec<String> = self.numbers.iter().map(u32::to_string).collect();
        format!("{}_{}{}", self.kind, numbers.join("_"), self.strategy)
    }
}

fn specs() -> Vec<Spec> {
    let spec = |kind, numbers: &[u32], shape: [u32; 6]| {
        let (strategy, makes) = DEFAULT;
        let [_, width, ..] = shape;
        Spec { kind, numbers: numbers.to_vec(), strategy, shape, slot_words: width, makes }
    };
    let of_vectors = |kind, tree, specs: &[Layout]| {
        let spec = |&(width, chunk, line)| spec(kind, &[width, chunk, line], [tree, width, chunk, line, 0, 64]);
        specs.iter().map(spec).collect::<Vec<_>>()
    };
    let mut all = [of_vectors("bucket", 0, BUCKETS), of_vectors("tree", 1, TREES)].concat();
    let padded = |&(width, chunk, line, slot_words)| Spec {
        slot_words,
        ..spec("bucket", &[width, chunk, line, slot_words], [0, width, chunk, line, 0, 64])
    };
    all.extend(PADDED.iter().map(padded));
    all.extend(COMPACTS.iter().map(|&(key, slot)| spec("compact", &[key, slot], [0, 2, 8, 64, key, slot])));
    all.extend(INDEXED.iter().map(|&(width, slot)| spec("indexed", &[width, slot], [0, width, 8, 64, 0, slot])));
    let compact_tree = |&(width, key, slot)| spec("tree_compact", &[width, key, slot], [1, width, 8, 64, key, slot]);
    all.extend(COMPACT_TREES.iter().map(compact_tree));
    for &(strategy, makes) in STRATEGIES {
        let wide = WIDE.iter().filter(|(name, _)| *name == strategy).flat_map(|(_, specs)| specs.iter());
        let trees: Vec<_> = STRATEGY_TREES.iter().chain(wide).copied().collect();
        all.extend(of_vectors("strategy", 1, &trees).into_iter().map(|spec| Spec { strategy, makes, ..spec }));
    }
    all
}

fn main() {
    if env::var_os("CARGO_FEATURE_KERNELS").is_none() {
        return;
    }
    // An alternative folder of headers, to try changed ones (tests/mutants).
    println!("cargo::rerun-if-env-changed=WARPSET_SIMT_HEADERS");
    // Compiles only the specs whose kind and numbers (`tree_4_8`) begin with one of these prefixes, separated by commas.
    println!("cargo::rerun-if-env-changed=WARPSET_SIMT_SPECS");
    let wanted = env::var("WARPSET_SIMT_SPECS").unwrap_or_default();
    let is_on = |variable: &str| {
        println!("cargo::rerun-if-env-changed={variable}");
        env::var(variable).is_ok_and(|value| !value.is_empty() && value != "0")
    };
    let is_full = ["WARPSET_TEST_FULL", "WARPSET_SIMT_FULL"].map(is_on).contains(&true);
    let is_compiled = |spec: &str| match wanted.as_str() {
        "" => is_full || PLAIN.contains(&spec),
        starts => starts.split(',').any(|start| spec.starts_with(start)),
    };
    let all: Vec<String> = specs().iter().map(Spec::name).collect();
    PLAIN.iter().for_each(|spec| assert!(all.iter().any(|one| one == spec), "{spec} is no spec"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let headers = env::var_os("WARPSET_SIMT_HEADERS").map_or_else(|| root.join("cuda"), PathBuf::from);
    println!("cargo::rerun-if-changed={}", headers.display());
    println!("cargo::rerun-if-changed=cpp");

    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").include(&headers).include(headers.join("platform/simt")).include("cpp");
    // Plain accesses call the simulator; the sanitizer's own runtime is not linked.
    build.flag("-fsanitize=thread").flag("-fno-exceptions").flag("-fno-rtti").opt_level(1);
    // Lines of code for reports, and no more: types and variables take a quarter of the compiler's time.
    build.debug(false).flag("-g1").force_frame_pointer(true);
    // GCC reports every function call to the sanitizer unless this option is set; Clang does not know the option.
    build.flag_if_supported("--param=tsan-instrument-func-entry-exit=0");
    // The library's tables for threads have the same functions for another platform. If a program links both, the linker keeps
    // one definition of each inline function. The simulated functions are therefore in a namespace of their own.
    build.define("warpset", "warpset_simulated");
    let mut bindings = String::new();
    let specs = specs();
    for kind in ["bucket", "tree", "compact", "tree_compact", "strategy", "indexed"] {
        let (mut declarations, mut list) = (String::new(), String::new());
        for of in specs.iter().filter(|spec| spec.kind == kind) {
            let Spec { strategy, shape, slot_words, makes, .. } = of;
            let [tree, width, chunk, line, key_bits, slot_bits] = shape;
            let indexed = u8::from(kind == "indexed");
            let [lanes, pairing, workspace] = makes;
            let spec = of.name();
            if !is_compiled(&spec) {
                continue;
            }
            let name = format!("warpset_simt_{spec}");
            let file = out.join(format!("{name}.cpp"));
            let source = format!(
                "#define WARPSET_INDEXED {indexed}\n#define WARPSET_TREE {tree}\n#define WARPSET_WIDTH {width}\n#define WARPSET_SLOT_WORDS {slot_words}\n#define \
                 WARPSET_CHUNK_BYTES {chunk}\n#define \
                 WARPSET_LINE_BYTES {line}\n#define WARPSET_KEY_BITS {key_bits}\n#define WARPSET_SLOT_BITS {slot_bits}\n#define WARPSET_LANES \
                 {lanes}\n#define WARPSET_PAIRING {pairing}\n#define WARPSET_WORKSPACE {workspace}\n#define WARPSET_SIMT_STRATEGY \
                 \"{strategy}\"\n#define WARPSET_SIMT_NAME {name}\n#include \"table.inl\"\n"
            );
            write_if_changed(&file, &source);
            build.file(file);
            writeln!(declarations, "    static {name}: Kernels;").expect("writing to a string");
            writeln!(list, "    unsafe {{ &{name} }},").expect("writing to a string");
        }
        write!(
            bindings,
            "unsafe extern \"C\" {{\n{declarations}}}\n\n/// All specs of {kind} tables that are compiled.\n// SAFETY: constants that C++ \
             defines, and nobody writes.\npub static {}S: &[&Kernels] = &[\n{list}];\n\n",
            match kind {
                "strategy" => "STRATEGY_TREE".into(),
                "indexed" => "INDEXED_TABLE".into(),
                _ => kind.to_uppercase(),
            }
        )
        .expect("writing to a string");
    }
    build.file("cpp/controls.cpp").file("cpp/partition.cpp");
    // The model checker's kernels, or changed ones. Their pragmas are meant for NVRTC.
    println!("cargo::rerun-if-env-changed=WARPSET_SIMT_CHECKER");
    let checker = env::var_os("WARPSET_SIMT_CHECKER").map_or_else(|| root.join("examples/explore/search/src/gpu"), PathBuf::from);
    println!("cargo::rerun-if-changed={}", checker.display());
    build.include(checker).flag_if_supported("-Wno-unknown-pragmas");
    build.file("cpp/search_system.cpp").file("cpp/search_product.cpp").file("cpp/search_rank.cpp").file("cpp/search_rows.cpp");
    build.compile("warpset_simt");
    write_if_changed(&out.join("specs.rs"), &bindings);
}

fn write_if_changed(path: &Path, text: &str) {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return;
    }
    fs::write(path, text).expect("the build folder can be written");
}
