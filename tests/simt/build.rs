//! Compiles the headers in `cuda/` for the simulated GPU: each table spec in the lists below, and the negative controls.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The builds that compile a spec. A plain `cargo test` compiles each branch of the headers once, because 100 specs take two
/// minutes.
#[derive(Clone, Copy, PartialEq)]
enum Builds {
    /// All builds.
    Every,
    /// Builds with `WARPSET_TEST_FULL=1` or `WARPSET_SIMT_FULL=1`, or with the spec in `WARPSET_SIMT_SPECS`.
    Full,
}
use Builds::{Every, Full};

/// Width in words; chunk and line sizes in bytes.
type Layout = (u32, u32, u32);

/// Layouts of every kind: one chunk, several chunks, each kind of tail, slots that share a bucket or a line, buckets of several
/// rows, and classes of EMPTY in more than one word.
const BUCKETS: &[(Builds, Layout)] = &[
    (Every, (1, 16, 32)),
    (Full, (1, 8, 64)),
    (Every, (2, 16, 32)),
    (Full, (2, 8, 64)),
    (Full, (3, 16, 64)),
    (Full, (3, 8, 32)),
    (Every, (4, 16, 64)),
    (Every, (4, 8, 32)),
    (Full, (5, 16, 64)),
    (Full, (5, 8, 64)),
    (Every, (6, 16, 64)),
    (Every, (6, 8, 32)),
    (Every, (7, 16, 64)),
    (Full, (7, 8, 128)),
    (Full, (8, 16, 64)),
    (Full, (8, 8, 32)),
    (Full, (11, 16, 64)),
    (Full, (12, 16, 32)),
    (Full, (16, 16, 64)),
    (Full, (16, 8, 64)),
    (Full, (19, 16, 64)),
    (Full, (33, 16, 128)),
    (Full, (33, 8, 64)),
    (Full, (64, 16, 64)),
    (Every, (129, 16, 64)),
    (Full, (256, 8, 64)),
];

/// A `Layout`, followed by the words of a slot.
type Padded = (u32, u32, u32, u32);

/// Bucket tables with padded slots: width in words, chunk and line sizes in bytes, words per slot. They cover one chunk and
/// several chunks, vectors that end at each word of the last chunk, and buckets of one slot and of several slots.
const PADDED: &[(Builds, Padded)] =
    &[(Every, (3, 16, 64, 4)), (Full, (5, 16, 64, 8)), (Full, (6, 16, 64, 8)), (Every, (7, 16, 32, 8)), (Full, (33, 16, 64, 36))];

/// Layouts of tree tables. Shapes: a word moves up to the root pair, a word moves up to a level in between, no word moves up;
/// whole trees; nodes move up; several rounds of tasks per level. Roots: one size of chunks and both sizes (equal for two words),
/// buckets of 4 and of 8.
const TREES: &[(Builds, Layout)] = &[
    (Full, (3, 16, 32)),
    (Every, (3, 8, 64)),
    (Every, (4, 8, 32)),
    (Full, (4, 16, 64)),
    (Full, (5, 16, 64)),
    (Full, (6, 8, 64)),
    (Every, (7, 16, 32)),
    (Full, (8, 16, 64)),
    (Full, (9, 8, 32)),
    (Full, (16, 16, 32)),
    (Full, (17, 8, 64)),
    (Every, (33, 16, 64)),
];

/// The default build strategy and the others (src/layout/strategy.rs): lanes, pairing and workspace, as numbered in
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

/// Layout for each of these strategies: it has a row with an odd number of words, and a row above it. Together with the layouts
/// in `WIDE`, a plain build has each kind of lanes, of pairing and of workspace once.
const STRATEGY_TREE: Layout = (7, 8, 64);
const PLAIN_STRATEGIES: &[&str] = &["_c64", "_1_ip_gm", "_l_ip_sm"];

/// Whole trees for each workspace, and trees with more leaves than a warp has lanes: registers, groups and rows then take several
/// rounds.
const WIDE: &[(Builds, &str, Layout)] = &[
    (Every, "_clr", (16, 16, 32)),
    (Full, "_1_ip_gm", (16, 16, 32)),
    (Every, "_l_np_lm", (16, 16, 32)),
    (Full, "_l_np_lm", (70, 16, 32)),
    (Full, "_l_ip_sm", (67, 8, 64)),
    (Full, "_ld_np_s_sm", (16, 16, 32)),
    (Every, "_ld_np_s_sm", (37, 16, 32)),
];

/// Key bits and slot bits of compact tables. They cover: one slot per word, two slots per word, slots whose neighbours interfere
/// and slots whose neighbours do not; codes that use all bits of a slot; keys that use all bits of two words.
const COMPACTS: &[(Builds, (u32, u32))] = &[
    (Every, (12, 16)),
    (Full, (15, 16)),
    (Every, (20, 32)),
    (Full, (31, 32)),
    (Every, (33, 32)),
    (Full, (40, 64)),
    (Every, (64, 64)),
];

/// Words, root bits and slot bits of trees with compact roots. A root is two references or, with 3, 5 or 33 words, a reference
/// and a word.
const COMPACT_TREES: &[(Builds, (u32, u32, u32))] = &[
    (Every, (3, 44, 64)),
    (Every, (4, 14, 16)),
    (Full, (4, 24, 32)),
    (Full, (5, 44, 64)),
    (Full, (7, 24, 32)),
    (Full, (8, 24, 32)),
    (Full, (16, 24, 32)),
    (Full, (33, 44, 64)),
];

/// Words and slot bits of indexed tables. They cover rows of one unit and of several units, units of each size, and more units
/// than a warp has lanes.
const INDEXED: &[(Builds, (u32, u32))] = &[
    (Full, (1, 64)),
    (Every, (2, 32)),
    (Every, (2, 64)),
    (Every, (3, 64)),
    (Every, (4, 32)),
    (Full, (6, 64)),
    (Full, (8, 32)),
    (Full, (16, 64)),
    (Full, (33, 32)),
    (Every, (70, 64)),
    (Full, (132, 32)),
];

/// A spec: its kind, the numbers in its name, the suffix of its name, and the values of its macros: tree, width, chunk, line, key
/// bits, slot bits; lanes, pairing, workspace.
#[derive(Clone)]
struct Spec {
    builds: Builds,
    kind: &'static str,
    numbers: Vec<u32>,
    strategy: &'static str,
    shape: [u32; 6],
    /// Words per slot of a bucket table.
    slot_words: u32,
    makes: [u32; 3],
}

fn specs() -> Vec<Spec> {
    let spec = |builds, kind, numbers: &[u32], shape: [u32; 6]| {
        let (strategy, makes) = DEFAULT;
        let [_, width, ..] = shape;
        Spec { builds, kind, numbers: numbers.to_vec(), strategy, shape, slot_words: width, makes }
    };
    let of_vectors = |builds, kind, tree, (width, chunk, line): Layout| {
        spec(builds, kind, &[width, chunk, line], [tree, width, chunk, line, 0, 64])
    };
    let mut all = Vec::new();
    all.extend(BUCKETS.iter().map(|&(builds, layout)| of_vectors(builds, "bucket", 0, layout)));
    all.extend(TREES.iter().map(|&(builds, layout)| of_vectors(builds, "tree", 1, layout)));
    all.extend(PADDED.iter().map(|&(builds, (width, chunk, line, slot_words))| Spec {
        slot_words,
        ..spec(builds, "bucket", &[width, chunk, line, slot_words], [0, width, chunk, line, 0, 64])
    }));
    all.extend(COMPACTS.iter().map(|&(builds, (key, slot))| spec(builds, "compact", &[key, slot], [0, 2, 8, 64, key, slot])));
    all.extend(
        INDEXED.iter().map(|&(builds, (width, slot))| spec(builds, "indexed", &[width, slot], [0, width, 8, 64, 0, slot])),
    );
    all.extend(
        COMPACT_TREES
            .iter()
            .map(|&(builds, (width, key, slot))| spec(builds, "tree_compact", &[width, key, slot], [1, width, 8, 64, key, slot])),
    );
    for &(strategy, makes) in STRATEGIES {
        let builds = if PLAIN_STRATEGIES.contains(&strategy) { Every } else { Full };
        let wide = WIDE.iter().filter(|(_, name, _)| *name == strategy).map(|&(builds, _, layout)| (builds, layout));
        let trees = std::iter::once((builds, STRATEGY_TREE)).chain(wide);
        all.extend(trees.map(|(builds, tree)| Spec { strategy, makes, ..of_vectors(builds, "strategy", 1, tree) }));
    }
    all
}

/// Whether an environment variable is set, and neither empty nor `0`, as in `tests/testing`. Cargo builds again when the variable
/// changes.
fn is_on(variable: &str) -> bool {
    println!("cargo::rerun-if-env-changed={variable}");
    env::var_os(variable).is_some_and(|value| !matches!(value.as_encoded_bytes(), b"" | b"0"))
}

fn main() {
    if env::var_os("CARGO_FEATURE_KERNELS").is_none() {
        return;
    }
    // Another folder of headers, for testing changed headers (tests/mutants).
    println!("cargo::rerun-if-env-changed=WARPSET_SIMT_HEADERS");
    let full = [is_on("WARPSET_TEST_FULL"), is_on("WARPSET_SIMT_FULL")].contains(&true);
    // Compiles only the specs whose kind and numbers (`tree_4_8`) begin with one of these prefixes, separated by commas.
    println!("cargo::rerun-if-env-changed=WARPSET_SIMT_SPECS");
    let wanted = env::var("WARPSET_SIMT_SPECS").unwrap_or_default();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let headers = env::var_os("WARPSET_SIMT_HEADERS").map_or_else(|| root.join("cuda"), PathBuf::from);
    println!("cargo::rerun-if-changed={}", headers.display());
    println!("cargo::rerun-if-changed=cpp");

    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").include(&headers).include(headers.join("platform/simt")).include("cpp");
    // Plain accesses call the simulator; the sanitizer's own runtime is not linked.
    build.flag("-fsanitize=thread").flag("-fno-exceptions").flag("-fno-rtti");
    // Optimising makes the trials a third faster. This pays only for many trials, because it doubles the time to compile.
    build.opt_level(u32::from(full));
    // Debug information has lines of code for reports, but no types and variables, which take a quarter of the compiler's time.
    build.debug(false).flag("-g1").force_frame_pointer(true);
    // GCC reports every function call to the sanitizer unless this option is set; Clang does not know the option.
    build.flag_if_supported("--param=tsan-instrument-func-entry-exit=0");
    // The library's tables for threads define the same functions for another platform. If a program links both, the linker keeps
    // only one definition of each inline function. Therefore the simulated functions are in a separate namespace.
    build.define("warpset", "warpset_simulated");
    let has_all = full && wanted.is_empty();
    let mut bindings = format!("/// Whether all specs are compiled.\npub const HAS_ALL: bool = {has_all};\n\n");
    let specs = specs();
    for kind in ["bucket", "tree", "compact", "tree_compact", "strategy", "indexed"] {
        let (mut declarations, mut list) = (String::new(), String::new());
        for Spec { builds, numbers, strategy, shape, slot_words, makes, .. } in specs.iter().filter(|spec| spec.kind == kind) {
            let [tree, width, chunk, line, key_bits, slot_bits] = shape;
            let indexed = u8::from(kind == "indexed");
            let [lanes, pairing, workspace] = makes;
            let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
            let spec = format!("{kind}_{}{strategy}", numbers.join("_"));
            let chosen =
                if wanted.is_empty() { full || *builds == Every } else { wanted.split(',').any(|start| spec.starts_with(start)) };
            if !chosen {
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
    // The model checker's kernels, or changed ones. Their pragmas are for NVRTC.
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
