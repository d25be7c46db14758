//! Compiles kernels with NVRTC: no GPU is needed. Those of every spec that the tests use for one compute capability, and a chosen
//! few for others. As many are compiled at a time as there are cores (`--test-threads`): NVRTC compiles concurrently.
//!
//! Where NVRTC is not installed the tests are skipped, visibly; with `WARPSET_REQUIRE_NVRTC` in the environment, that is a
//! failure.

use libtest_mimic::{Arguments, Failed, Trial};

/// The one of the GPU that the suite has run on. All specs are compiled for it.
const ALL_SPECS: (u32, u32) = (9, 0);

/// What the headers do differently depends on whether chunks may have 16 bytes: from 9.0 on. So two are from before that, the
/// oldest and one in wide use, and one is from after it. Else they are the same code, so that a few specs of every kind show
/// whether it compiles.
const OTHERS: [(u32, u32); 3] = [(7, 5), (8, 0), (12, 0)];

fn capabilities() -> impl Iterator<Item = (u32, u32)> {
    [ALL_SPECS].into_iter().chain(OTHERS)
}

/// Whether this one of a list of specs is compiled: each for `ALL_SPECS`, and for one of the others.
fn chosen(number: usize, capability: (u32, u32)) -> bool {
    capability == ALL_SPECS || capability == OTHERS[number % OTHERS.len()]
}

/// Every width has a layout of its own. With chunks of 8 bytes, those of these widths are of one chunk, of several and of very
/// many, each with a last one that is shorter and without.
fn widths(capability: (u32, u32)) -> Vec<usize> {
    let wide = [41, 47, 48, 63, 64, 65, 96, 100, 127, 128, 129, 132, 160, 192, 200, 255, 256];
    match capability {
        ALL_SPECS => (1..=40).chain(wide).collect(),
        (8, 0) => vec![1, 2, 3, 4, 7, 8, 10, 19, 32, 37, 129, 256],
        _ => vec![1, 3, 8, 37],
    }
}

#[cfg(feature = "cuda")]
fn compile<S: warpset::Plain>(width: usize, capability: (u32, u32)) -> Result<(), Failed> {
    let image = warpset::gpu::compile_kernels::<S>(width, capability)?;
    if image.len() < 1000 { Err(format!("only {} bytes for {width} words", image.len()).into()) } else { Ok(()) }
}

#[cfg(not(feature = "cuda"))]
fn compile<S>(_: usize, _: (u32, u32)) -> Result<(), Failed> {
    unreachable!("{} is ignored without the feature `cuda`", std::any::type_name::<S>())
}

/// Where slots are padded by default: with tails of 4 bytes, of 8 and of both, and of the widths of the suite.
const DENSE: [usize; 14] = [3, 5, 6, 7, 9, 10, 11, 13, 19, 33, 34, 63, 127, 255];

#[cfg(feature = "cuda")]
fn compile_dense(width: usize, capability: (u32, u32)) -> Result<(), Failed> {
    let image = warpset::gpu::compile_dense_kernels(width, capability)?;
    if image.len() < 1000 { Err(format!("only {} bytes for {width} words", image.len()).into()) } else { Ok(()) }
}

#[cfg(not(feature = "cuda"))]
fn compile_dense(width: usize, _: (u32, u32)) -> Result<(), Failed> {
    unreachable!("slots of {width} words are ignored without the feature `cuda`")
}

/// Kernels of a user's own that put by blocks.
#[cfg(feature = "cuda")]
fn compile_blocks<S: warpset::Plain>(width: usize, capability: (u32, u32)) -> Result<(), Failed> {
    warpset::gpu::compile_source::<S>("blocks.cu", include_str!("suite/blocks.cu"), width, capability)?;
    Ok(())
}

#[cfg(not(feature = "cuda"))]
fn compile_blocks<S>(_: usize, _: (u32, u32)) -> Result<(), Failed> {
    unreachable!("{} is ignored without the feature `cuda`", std::any::type_name::<S>())
}

/// Those of a rank of a cluster.
#[cfg(feature = "cuda")]
fn compile_cluster(capability: (u32, u32)) -> Result<(), Failed> {
    let image = warpset::gpu::compile_cluster_kernels(capability)?;
    let has = |name: &str| image.windows(name.len()).any(|bytes| bytes == name.as_bytes());
    let kernels = ["claim", "scatter", "gather_put", "gather_found", "write_stamps", "check_stamps", "abi"];
    let missing: Vec<_> = kernels.iter().filter(|kernel| !has(&format!("warpset_cluster_{kernel}"))).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("{missing:?} are missing").into()) }
}

#[cfg(not(feature = "cuda"))]
fn compile_cluster(capability: (u32, u32)) -> Result<(), Failed> {
    unreachable!("{capability:?} is ignored without the feature `cuda`")
}

/// Compact tables: bits a key, bits a slot.
const COMPACT: [(u32, u32); 8] = [(20, 16), (33, 16), (20, 32), (45, 32), (54, 32), (20, 64), (58, 64), (64, 64)];

#[cfg(feature = "cuda")]
fn compile_compact(key_bits: u32, slot_bits: u32, capability: (u32, u32)) -> Result<(), Failed> {
    let image = warpset::gpu::compile_compact_kernels(key_bits, slot_bits, capability)?;
    if image.len() < 1000 { Err(format!("only {} bytes for {key_bits} bits", image.len()).into()) } else { Ok(()) }
}

#[cfg(not(feature = "cuda"))]
fn compile_compact(key_bits: u32, _: u32, _: (u32, u32)) -> Result<(), Failed> {
    unreachable!("keys of {key_bits} bits are ignored without the feature `cuda`")
}

/// Indexed tables: words, bits a slot of the index.
const INDEXED: [(usize, u32); 10] =
    [(8, 64), (1, 32), (2, 64), (3, 32), (4, 64), (16, 32), (16, 64), (33, 64), (64, 32), (256, 64)];

#[cfg(feature = "cuda")]
fn compile_indexed(width: usize, slot_bits: u32, capability: (u32, u32)) -> Result<(), Failed> {
    let image = warpset::gpu::compile_indexed_kernels(width, slot_bits, capability)?;
    if image.len() < 1000 { Err(format!("only {} bytes for {width} words", image.len()).into()) } else { Ok(()) }
}

#[cfg(not(feature = "cuda"))]
fn compile_indexed(width: usize, _: u32, _: (u32, u32)) -> Result<(), Failed> {
    unreachable!("rows of {width} words are ignored without the feature `cuda`")
}

/// Tree tables with compact roots: words, bits a root, bits a slot. Roots that end in a word, or in a reference.
const COMPACT_TREES: [(usize, u32, u32); 8] =
    [(3, 54, 32), (4, 20, 16), (6, 58, 32), (8, 46, 32), (16, 46, 32), (17, 64, 64), (32, 58, 64), (256, 64, 64)];

#[cfg(feature = "cuda")]
fn compile_compact_tree(width: usize, key_bits: u32, slot_bits: u32, capability: (u32, u32)) -> Result<(), Failed> {
    let image = warpset::gpu::compile_compact_tree_kernels(width, key_bits, slot_bits, capability)?;
    if image.len() < 1000 { Err(format!("only {} bytes for {width} words", image.len()).into()) } else { Ok(()) }
}

#[cfg(not(feature = "cuda"))]
fn compile_compact_tree(width: usize, _: u32, _: u32, _: (u32, u32)) -> Result<(), Failed> {
    unreachable!("trees of {width} words are ignored without the feature `cuda`")
}

/// Widths for the strategy of this number.
fn strategy_widths(capability: (u32, u32), number: usize) -> Vec<usize> {
    match capability {
        ALL_SPECS => vec![3, 7, 16, 33, 67, 256],
        _ if chosen(number, capability) => vec![[5, 8, 19, 130][number % 4]],
        _ => Vec::new(),
    }
}

#[cfg(feature = "cuda")]
fn compile_strategy(width: usize, strategy: warpset::Strategy, capability: (u32, u32)) -> Result<(), Failed> {
    let image = warpset::gpu::compile_tree_kernels(width, strategy, capability)?;
    if image.len() < 1000 { Err(format!("only {} bytes for {strategy}", image.len()).into()) } else { Ok(()) }
}

#[cfg(not(feature = "cuda"))]
fn compile_strategy(_: usize, strategy: warpset::Strategy, _: (u32, u32)) -> Result<(), Failed> {
    unreachable!("{strategy} is ignored without the feature `cuda`")
}

/// Why nothing can be compiled here, if so.
fn missing() -> Option<String> {
    #[cfg(not(feature = "cuda"))]
    return Some("feature `cuda` is off".into());
    #[cfg(feature = "cuda")]
    match warpset::gpu::compile_kernels::<warpset::Bucket>(1, (9, 0)) {
        Err(error @ warpset::Error::LibraryNotFound { .. }) if std::env::var_os("WARPSET_REQUIRE_NVRTC").is_none() => {
            Some(error.to_string().split(';').next().unwrap_or_default().into())
        }
        _ => None,
    }
}

fn main() {
    let missing = missing();
    let compact = capabilities().flat_map(|capability| {
        let numbered = COMPACT.into_iter().enumerate().filter(move |(number, _)| chosen(*number, capability));
        numbered.map(move |(_, bits)| (capability, bits))
    });
    let compact = compact.map(|(capability @ (major, minor), (key_bits, slot_bits))| {
        let reason = missing.as_ref().map_or(String::new(), |reason| format!(" (skipped: {reason})"));
        let name = format!("compute_{major}{minor}::{key_bits}_bit_keys_in_{slot_bits}_bit_slots{reason}");
        Trial::test(name, move || compile_compact(key_bits, slot_bits, capability)).with_ignored_flag(missing.is_some())
    });
    let indexed = capabilities().flat_map(|capability| {
        let numbered = INDEXED.into_iter().enumerate().filter(move |(number, _)| chosen(*number, capability));
        numbered.map(move |(_, table)| (capability, table))
    });
    let indexed = indexed.map(|(capability @ (major, minor), (width, slot_bits))| {
        let reason = missing.as_ref().map_or(String::new(), |reason| format!(" (skipped: {reason})"));
        let name = format!("compute_{major}{minor}::{width}_words_indexed_by_{slot_bits}_bits{reason}");
        Trial::test(name, move || compile_indexed(width, slot_bits, capability)).with_ignored_flag(missing.is_some())
    });
    let trees = capabilities().flat_map(|capability| {
        let numbered = COMPACT_TREES.into_iter().enumerate().filter(move |(number, _)| chosen(*number, capability));
        numbered.map(move |(_, tree)| (capability, tree))
    });
    let trees = trees.map(|(capability @ (major, minor), (width, key_bits, slot_bits))| {
        let reason = missing.as_ref().map_or(String::new(), |reason| format!(" (skipped: {reason})"));
        let name = format!("compute_{major}{minor}::tree_of_{width}_words_{key_bits}_bit_roots_in_{slot_bits}_bit_slots{reason}");
        let compile = move || compile_compact_tree(width, key_bits, slot_bits, capability);
        Trial::test(name, compile).with_ignored_flag(missing.is_some())
    });
    let tables = capabilities().flat_map(|capability| {
        let (missing, (major, minor)) = (missing.clone(), capability);
        widths(capability).into_iter().flat_map(move |width| {
            let reason = missing.as_ref().map_or(String::new(), |reason| format!(" (skipped: {reason})"));
            let name = |kind| format!("compute_{major}{minor}::{kind}_of_{width}_words{reason}");
            let bucket = Trial::test(name("bucket"), move || compile::<warpset::Bucket>(width, capability));
            let tree = Trial::test(name("tree"), move || compile::<warpset::Tree>(width, capability));
            [bucket, tree].map(|trial| trial.with_ignored_flag(missing.is_some()))
        })
    });
    let dense = DENSE.map(|width| {
        let reason = missing.as_ref().map_or(String::new(), |reason| format!(" (skipped: {reason})"));
        let (major, minor) = ALL_SPECS;
        let name = format!("compute_{major}{minor}::dense_bucket_of_{width}_words{reason}");
        Trial::test(name, move || compile_dense(width, ALL_SPECS)).with_ignored_flag(missing.is_some())
    });
    let blocks = capabilities().flat_map(|capability @ (major, minor)| {
        let reason = missing.as_ref().map_or(String::new(), |reason| format!(" (skipped: {reason})"));
        let name = format!("compute_{major}{minor}::puts_by_blocks{reason}");
        let run = move || {
            let widths = if capability == ALL_SPECS { &[1, 3, 10, 16][..] } else { &[3] };
            widths.iter().copied().try_for_each(|width| {
                compile_blocks::<warpset::Bucket>(width, capability)?;
                compile_blocks::<warpset::Tree>(width, capability)
            })
        };
        [Trial::test(name, run).with_ignored_flag(missing.is_some())]
    });
    let clusters = capabilities().map(|capability @ (major, minor)| {
        let reason = missing.as_ref().map_or(String::new(), |reason| format!(" (skipped: {reason})"));
        let name = format!("compute_{major}{minor}::ranks_of_a_cluster{reason}");
        Trial::test(name, move || compile_cluster(capability)).with_ignored_flag(missing.is_some())
    });
    let clusters: Vec<Trial> = clusters.collect();
    let strategies = capabilities().flat_map(|capability| {
        let (missing, (major, minor)) = (missing.clone(), capability);
        warpset::Strategy::ALL.into_iter().enumerate().flat_map(move |(number, strategy)| {
            let missing = missing.clone();
            strategy_widths(capability, number).into_iter().map(move |width| {
                let reason = missing.as_ref().map_or(String::new(), |reason| format!(" (skipped: {reason})"));
                let name = format!("compute_{major}{minor}::{strategy}_of_{width}_words{reason}");
                Trial::test(name, move || compile_strategy(width, strategy, capability)).with_ignored_flag(missing.is_some())
            })
        })
    });
    libtest_mimic::run(
        &Arguments::from_args(),
        tables.chain(compact).chain(indexed).chain(trees).chain(strategies).chain(dense).chain(blocks).chain(clusters).collect(),
    )
    .exit();
}
