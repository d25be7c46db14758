//! Initial size of the table, if the command line does not give it.
//!
//! On a GPU a table with too many slots costs little, and growth costs much: explorations that began with 2^20 slots took 3 to 23
//! times as long as with the right number, those with 16 times as many slots as states 1.1 to 1.4 times (H200; at.6, peterson.6,
//! anderson.6). So the table begins with as many slots as `--memory` holds, or a share of the free memory and then at most
//! [`MOST_SLOTS`], and at most about the number of possible states. On a CPU memory costs time when it is first touched. So the
//! table begins small, within `--memory`, and grows.

use crate::options::{KEY_WORDS, TableChoice, TableOptions};
use anyhow::{Result, ensure};
use std::fmt;
use warpset::{Device, Spec};
use warpset_model::ir::Layout;
use warpset_search::table_kind::TableKind;
use warpset_support::memory;
use warpset_support::numbers;

/// Maximum number of initial slots on a GPU without `--memory`. H200, `explore anderson.6.dve` (18 million states): 0.029 s with
/// this number, 0.025 s with a capacity that suits the model.
const MOST_SLOTS: u64 = 1 << 29;

/// Initial slots on a CPU; and the fewest on a GPU that is short of memory.
const FEWEST_SLOTS: u64 = 1 << 20;

/// Without `--memory`, table and list of states take 1 / `SHARE` of the free memory: the remainder is for growth, and for other
/// programs on the same GPU.
const SHARE: u64 = 4;

/// Slots for each node in a large first table of trees. Tables of fewer than 3.8 * 10^8 slots have more nodes than that
/// ([`nodes_beside`]).
const SLOTS_A_NODE: u64 = 8;

/// On a CPU the first table takes one part in this many of the memory. Growth needs the old and the new table at once, and such a
/// first table leaves nearly all memory for the last one.
const FIRST_SHARE: u64 = 32;

/// If the small first table (see `FIRST_SHARE`) would have fewer slots than this, the table gets all of its memory at the start
/// instead of growing to fill it: with so few states, the buffers of threads are large compared to the table.
const LEAST_TO_GROW: u64 = 1 << 8;

/// Fewer states than these are in a table that began with all of its memory, on a CPU. It needs memory in proportion to states.
pub const FEW_STATES: u64 = FIRST_SHARE * LEAST_TO_GROW;

/// Bytes of a slot for a node.
pub const NODE: u64 = 8;

/// Bytes of a slot for a root, and most bytes of a slot for the key of one.
const KEY: u64 = 8;

/// Lists and sets that a search on a GPU has beside its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// All states: to look for accepting cycles.
    All,
    /// The references of two levels: an eighth of all at first, of 4 or 5 bytes. Marks of waiting states take less.
    Levels,
    /// The references of two levels, and 16 sets of states for formulas of branching time, a bit for each slot.
    LevelsAndSets,
}

impl Listed {
    /// Eighths of a byte for each slot of a table of this kind.
    fn eighths_a_slot(self, kind: TableKind) -> u64 {
        match self {
            // An indexed table needs no list: its rows are in the order of the search.
            _ if kind == TableKind::Indexed => 0,
            Self::All => 8 * 8,
            Self::Levels => 5,
            Self::LevelsAndSets => 5 + 16,
        }
    }
}

/// Most nodes of a first table. References to nodes have 32 bits.
const MOST_NODES: u64 = (1 << 32) - (1 << 16);

/// A node table has at most this many slots more than it is asked for: the number of its buckets is a prime.
const MORE_NODES: u64 = 1 << 10;

/// Slots for vectors, and slots for nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub slots: u64,
    pub nodes: u64,
}

/// Error of a search that filled `--memory`: it begins again in a table whose slots take fewer bytes.
#[derive(Debug)]
pub struct NeedsSmaller;

impl fmt::Display for NeedsSmaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("--memory is too little for the states in this table")
    }
}

impl std::error::Error for NeedsSmaller {}

/// The kind that the options choose, or the best one for states of this layout. `any`: the search is of states, in one table.
///
/// # Errors
///
/// The options contradict each other, or the device fails.
pub fn kind(options: &TableOptions, layout: &Layout, device: &Device, any: bool) -> Result<TableKind> {
    let words = layout.words;
    ensure_may_have_nodes(options)?;
    if options.parents {
        let keeps = matches!(options.choice, TableChoice::Auto | TableChoice::Indexed);
        ensure!(keeps, "--parents needs --table indexed: only an indexed table stores the parents of states");
        return Ok(TableKind::Indexed);
    }
    let first = options.kind_for(words);
    let (TableChoice::Auto, TableKind::Bucket, Some(slots), true) = (options.choice, first, options.capacity, any) else {
        return Ok(first);
    };
    let bytes = match options.memory {
        Some(bytes) => bytes,
        None if device.is_gpu() => device.free_memory()?,
        None => memory::free_memory() / 5 * 4,
    };
    let more = |kind| if device.is_gpu() { bytes_of_more_rows(kind, words) } else { 0 };
    // Buckets and indexes have no nodes.
    let takes = |kind| bytes_of(slots, slot_bytes(kind, words), 0, Listed::All.eighths_a_slot(kind));
    let fits = |kind| takes(kind).saturating_add(more(kind)) <= bytes;
    Ok(if !fits(first) && fits(TableKind::Indexed) { TableKind::Indexed } else { first })
}

/// The kind whose slots take fewer bytes than those of `kind`, for a search that begins again when it has filled `--memory`.
/// `None` if there is none, if the options choose the table, or if what the search has written cannot be taken back: `writes`
/// says whether it writes before it ends.
///
/// A search does not begin with such a table, because it takes more time: on two threads `explore at.4.dve --memory 1GiB` took
/// 6.9 s of processor time as trees with compact roots, and 2.7 s in buckets (medians of three).
pub fn smaller(options: &TableOptions, writes: bool, layout: &Layout, kind: TableKind) -> Option<TableKind> {
    let (TableChoice::Auto, None, Some(bytes)) = (options.choice, options.capacity, options.memory) else {
        return None;
    };
    if writes || !matches!(kind, TableKind::Bucket | TableKind::Tree) {
        return None;
    }
    match layout.words {
        1 => None,
        KEY_WORDS => keys_fit(layout.end, 4, bytes / 4).then_some(TableKind::Compact),
        _ => Some(TableKind::TreeCompact),
    }
}

/// Returns an error if `--nodes` is given for a table without nodes. With it, `auto` chooses a tree. States of 1 or 2 words have
/// no nodes, but this depends on the model and is not an error.
fn ensure_may_have_nodes(options: &TableOptions) -> Result<()> {
    let has_none = options.parents || matches!(options.choice, TableChoice::Bucket | TableChoice::Indexed);
    ensure!(
        options.nodes.is_none() || !has_none,
        "--nodes is for tree tables only: it needs --table tree or --table tree-compact"
    );
    Ok(())
}

/// The initial size of a table of this kind, by the options or the best for the device. `sharing`: number of tables that share
/// the memory. `listed`: what the search lists if it runs on a GPU.
pub fn size(
    options: &TableOptions,
    kind: TableKind,
    layout: &Layout,
    device: &Device,
    sharing: u64,
    listed: Listed,
) -> Result<Size> {
    let slots = match options.capacity {
        Some(slots) => slots,
        None if device.is_gpu() => {
            // With --memory, take all of the permitted memory, because it is reserved for this table.
            let bytes = match options.memory {
                // Leave a margin for rounding: a table that does not fit would be an error.
                Some(bytes) => bytes.min(device.free_memory()?) / 16 * 15,
                None => device.free_memory()? / SHARE,
            };
            let most = if options.memory.is_some() { u64::MAX } else { MOST_SLOTS };
            let bytes = (bytes / sharing).saturating_sub(bytes_of_more_rows(kind, layout.words));
            slots_on_gpu(bytes, options.nodes, kind, layout, listed, most)
        }
        None => {
            let bytes = memory::free_memory().min(options.memory.unwrap_or(u64::MAX));
            slots_on_cpu(bytes / sharing, options.nodes, kind, layout.words)
        }
    };
    let nodes = match options.nodes {
        Some(nodes) => nodes,
        // A given --capacity applies to nodes, too.
        None if options.capacity.is_some() => slots,
        None => nodes_beside(slots),
    };
    Ok(Size { slots, nodes })
}

/// Why the table of a search has another kind than the one that `--table` names, or which one `auto` has chosen. `spec`: of that
/// table. `None` if it is the named one. `resumes`: the table is a checkpoint's.
pub fn why(options: &TableOptions, resumes: bool, layout: &Layout, spec: Spec) -> Option<String> {
    let (words, is_bucket) = (layout.words, !spec.is_tree() && !spec.is_compact() && !spec.is_indexed());
    match options.choice {
        TableChoice::Tree | TableChoice::TreeCompact if is_bucket => {
            Some(format!("states of {} have no trees", numbers::counted(words as u64, "word")))
        }
        TableChoice::Compact if spec.is_tree() => {
            Some(format!("states of {} bits are no keys of 64 bits: trees with compact roots", layout.end))
        }
        TableChoice::Auto if resumes => Some("the checkpoint's".into()),
        TableChoice::Auto if spec.is_indexed() && options.parents => Some("auto: parents are kept".into()),
        TableChoice::Auto if spec.is_indexed() => Some("auto: only an index fits the memory".into()),
        TableChoice::Auto if spec.is_compact() => Some("auto: a table with larger slots had filled --memory".into()),
        TableChoice::Auto if spec.is_tree() && options.nodes.is_some() => Some("auto: --nodes is given".into()),
        TableChoice::Auto if spec.is_tree() => Some("auto: states of 8 words or more".into()),
        TableChoice::Auto if is_bucket => Some("auto: states of fewer than 8 words".into()),
        TableChoice::Auto => Some("auto".into()),
        _ => None,
    }
}

/// Slots that fit `bytes` with their nodes and lists, at most `most`. `nodes`: number of node slots, if it is chosen.
fn slots_on_gpu(bytes: u64, nodes: Option<u64>, kind: TableKind, layout: &Layout, listed: Listed, most: u64) -> u64 {
    // A table of this size stays below 85 % even with all possible states, so it does not grow.
    let states = 1u64.checked_shl(layout.bits).map_or(u64::MAX, |states| states.saturating_mul(5) / 4);
    let most = most.min(states.max(64)).min(bytes).max(1);
    let (words, listed) = (layout.words, listed.eighths_a_slot(kind));
    let nodes = |slots| nodes_of(kind, words, nodes, slots);
    let slots = |slot: u64| {
        let (mut fits, mut too_many) = (1, most + 1);
        while too_many - fits > 1 {
            let middle = fits + (too_many - fits) / 2;
            if bytes_of(middle, slot, nodes(middle), listed) <= bytes { fits = middle } else { too_many = middle }
        }
        fits
    };
    if kind == TableKind::Compact || (kind == TableKind::TreeCompact && words > 2) {
        // The smallest slots that keys fit, as the library chooses them.
        let key_bits = |slots| if nodes(slots) > 0 { root_bits(layout, nodes(slots) + MORE_NODES) } else { layout.end };
        let of_slots = [2, 4].map(|slot| (slot, slots(slot)));
        let narrow = of_slots.into_iter().find(|(slot, slots)| keys_fit(key_bits(*slots), *slot, *slots));
        return narrow.map_or_else(|| slots(KEY), |(_, slots)| slots);
    }
    slots(slot_bytes(kind, words))
}

/// Nodes of a table with this many slots; 0 if it has no trees. `chosen`: their number, if it is chosen.
fn nodes_of(kind: TableKind, words: usize, chosen: Option<u64>, slots: u64) -> u64 {
    if has_trees(kind, words) { chosen.unwrap_or_else(|| nodes_beside(slots)) } else { 0 }
}

/// Nodes beside this many slots, if neither is chosen. Nodes grow slower than states: 17 of 23 BEEM models had at most 6.9 n^0.8
/// nodes after n states (n = 0.3 to 24 million). So a smaller table needs more of them for a slot. With a node for eight slots,
/// trees of at.6 and bakery.8 within 1 GiB used only 72 and 75 % of 105 million slots (H200).
fn nodes_beside(slots: u64) -> u64 {
    let of_few = (6.5 * (slots as f64).powf(0.8)) as u64;
    (slots / SLOTS_A_NODE).max(of_few.min(slots)).max(FEWEST_SLOTS.min(slots)).min(MOST_NODES)
}

/// Bits of the root of a state in a tree with this many nodes (`TableBuilder::slot_bits` and `last_bits` have the rule).
fn root_bits(layout: &Layout, nodes: u64) -> u32 {
    let reference = (u64::BITS - nodes.leading_zeros()).max(10);
    let ends_in_word = (layout.words - 1).is_power_of_two();
    (if ends_in_word { reference + layout.last_bits().max(10) } else { 2 * reference }).max(20)
}

/// Bits of the root of a state in a tree of a first table of this many slots.
pub fn roots_of(layout: &Layout, slots: u64) -> u32 {
    root_bits(layout, nodes_beside(slots) + MORE_NODES)
}

/// Whether keys of some bits fit slots of 2 or 4 bytes in a table of this many (`RootTable::slot_bits` has the rule).
pub fn keys_fit(key_bits: u32, slot_bytes: u64, slots: u64) -> bool {
    /// Bytes of a bucket.
    const BUCKET: u64 = 64;
    const FUNCTIONS: u128 = 3;
    let buckets = (slots * slot_bytes).div_ceil(BUCKET).max(16);
    let fit = |keys: u128| FUNCTIONS * keys.div_ceil(buckets.into()) <= 1 << (8 * slot_bytes);
    1u128.checked_shl(key_bits).is_some_and(fit)
}

/// Slots that fit `bytes`. A part of these is for waiting states: on a CPU no others are listed.
///
/// `nodes`: number of node slots, if it is chosen; else there are as many as slots.
fn slots_on_cpu(bytes: u64, nodes: Option<u64>, kind: TableKind, words: usize) -> u64 {
    const WAITING: u64 = 4;
    // If the usual table fits with few waiting states, begin with it, not with a smaller one.
    const FEW_WAITING: u64 = 8;
    let (of_nodes, of_slot) = match nodes {
        _ if !has_trees(kind, words) => (0, 0),
        Some(nodes) => (nodes.saturating_mul(NODE), 0),
        None => (0, NODE),
    };
    // The fewer slots a compact table has, the more bits of a key each of them stores, up to 64.
    let of_key = if has_trees(kind, words) || kind == TableKind::Compact { KEY } else { slot_bytes(kind, words) };
    let of_bytes = |bytes: u64| bytes.saturating_sub(of_nodes) / (of_key + of_slot);
    let slots = |waiting: u64| of_bytes(bytes - bytes / waiting);
    // A table that is small against the memory can grow to nearly all of it.
    let small = of_bytes(bytes / FIRST_SHARE);
    if small >= LEAST_TO_GROW {
        return small.min(FEWEST_SLOTS);
    }
    if slots(FEW_WAITING) >= FEWEST_SLOTS { FEWEST_SLOTS } else { slots(WAITING).max(1) }
}

/// Whether states of `words` words have nodes.
fn has_trees(kind: TableKind, words: usize) -> bool {
    matches!(kind, TableKind::Tree | TableKind::TreeCompact) && words > 2
}

/// Bytes of this many slots on a GPU, of the nodes beside them, and of lists. `listed`: eighths of a byte of lists for each slot.
fn bytes_of(slots: u64, slot_bytes: u64, nodes: u64, listed: u64) -> u64 {
    let eighths = u128::from(slots) * u128::from(8 * slot_bytes + listed);
    u64::try_from(eighths / 8).unwrap_or(u64::MAX).saturating_add(nodes.saturating_mul(NODE))
}

/// Bytes of a slot alone.
pub fn slot_bytes(kind: TableKind, words: usize) -> u64 {
    // Bytes of a state's parent (gpu/by_rows.rs).
    const PARENT: u64 = 4;
    match kind {
        // A row and a slot of the index; large tables have index slots of 8 bytes.
        TableKind::Indexed => words as u64 * 4 + 8 + PARENT,
        TableKind::Compact => KEY,
        // States of 1 or 2 words are stored without trees.
        _ if words <= 2 => words as u64 * 4,
        TableKind::Tree => 8,
        TableKind::TreeCompact => 4,
        // Slots may be padded.
        _ => words.next_multiple_of(4) as u64 * 4,
    }
}

/// On a GPU an indexed table that kernels put into has memory for 2^18 rows more than slots, and so have its parents.
fn bytes_of_more_rows(kind: TableKind, words: usize) -> u64 {
    if kind == TableKind::Indexed { (words as u64 * 4 + 4) << 18 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(feature = "cpu")]
    use crate::options::Options;

    fn layout(words: usize, bits: u32) -> Layout {
        Layout { words, bits, end: bits, ..Layout::default() }
    }

    #[test]
    fn tables_are_as_large_as_is_useful() {
        let slots = |bytes, kind, words, bits| slots_on_gpu(bytes, None, kind, &layout(words, bits), Listed::All, MOST_SLOTS);
        assert_eq!(slots(1 << 40, TableKind::Bucket, 3, 90), MOST_SLOTS);
        assert_eq!(slots(24 << 20, TableKind::Bucket, 3, 90), 1 << 20);
        assert_eq!(slots(20 << 20, TableKind::TreeCompact, 20, 600), 1 << 20, "a node for each");
        assert_eq!(slots(16 << 20, TableKind::TreeCompact, 2, 64), 1 << 20);
        assert_eq!(slots(20 << 20, TableKind::Indexed, 2, 64), 1 << 20);
        // Keys of 54 bits fit slots of 4 bytes if there are 2^27.6 or more, those of 64 bits do not.
        assert_eq!(slots(12 << 28, TableKind::Compact, 2, 54), 1 << 28);
        assert_eq!(slots(12 << 20, TableKind::Compact, 2, 54), (12 << 20) / 16);
        assert_eq!(slots(1 << 40, TableKind::Compact, 2, 64), MOST_SLOTS);
        // At most 2^10 states are possible.
        assert_eq!(slots(1 << 40, TableKind::Bucket, 1, 10), 1280);
        assert_eq!(slots(1 << 40, TableKind::Bucket, 1, 0), 64);
        assert_eq!(slots(1 << 40, TableKind::Bucket, 2, 64), MOST_SLOTS);
        assert_eq!(slots(0, TableKind::Bucket, 2, 64), 1);
        // Lists of two levels leave more to the table.
        let slots = |bytes, kind, bits| slots_on_gpu(bytes, None, kind, &layout(2, bits), Listed::Levels, u64::MAX);
        assert_eq!(slots(24 << 30, TableKind::Bucket, 64), (192 << 30) / 69);
        assert_eq!(slots(24 << 30, TableKind::Compact, 56), (192 << 30) / 37);
        // Roots of a reference of 30 bits and a last word of 12 bits fit slots of 2 bytes. With 13 bits they fit 4 bytes; with 29
        // bits they need 8.
        let compact = TableKind::TreeCompact;
        let trees = |last: u32| slots_on_gpu(24 << 30, None, compact, &layout(3, 64 + last), Listed::Levels, u64::MAX);
        assert_eq!([trees(12), trees(13), trees(29)], [(192 << 30) / 29 + 1, (192 << 30) / 45, (192 << 30) / 77]);
    }

    /// A tree table with the nodes beside its slots takes what it may, whatever the number of nodes is.
    #[test]
    fn trees_take_their_nodes_into_account() {
        for (log2, slots_a_node) in [(14, 1), (24, 1), (27, 4), (30, 6), (34, 8), (40, 28)] {
            let of = |nodes| slots_on_gpu(1 << log2, nodes, TableKind::Tree, &layout(3, 96), Listed::Levels, u64::MAX);
            let (slots, takes) = (of(None), |slots| bytes_of(slots, 8, nodes_beside(slots), 5));
            assert!(takes(slots) <= 1 << log2 && takes(slots + 1) > 1 << log2, "{slots} slots");
            assert_eq!(slots / nodes_beside(slots), slots_a_node, "{slots} slots");
            // The number of nodes is given.
            assert!(of(Some(1000)).abs_diff(((1 << log2) - 8000) * 8 / 69) <= 1);
        }
    }

    #[test]
    fn the_first_table_takes_no_more_than_it_may() {
        let slots = |bytes, nodes, kind, words| slots_on_cpu(bytes, nodes, kind, words);
        // A quarter is for waiting states.
        assert_eq!(slots(1 << 14, None, TableKind::Bucket, 1), 3 << 10);
        // A larger memory is filled by growth.
        assert_eq!(slots(1 << 15, None, TableKind::Bucket, 1), 1 << 8);
        assert_eq!(slots(1 << 40, None, TableKind::Bucket, 1), FEWEST_SLOTS);
        assert_eq!(slots(0, None, TableKind::Bucket, 1), 1);
        // The tree has a node for each root.
        assert_eq!(slots(1 << 16, None, TableKind::Tree, 6), 3 << 10);
        assert_eq!(slots(1 << 16, None, TableKind::TreeCompact, 6), 3 << 10);
        // The number of nodes is given.
        assert_eq!(slots(16 << 20, Some(1 << 20), TableKind::Tree, 6), 1 << 19);
        assert_eq!(slots(8 << 20, Some(1 << 21), TableKind::Tree, 6), 1);
        assert_eq!(slots(8 << 20, Some(1 << 21), TableKind::Tree, 2), 1 << 15);
    }

    #[cfg(feature = "cpu")]
    #[test]
    fn nodes_are_of_trees() {
        let chosen = |words, table| {
            let arguments = ["explore", "model", "--nodes", "1000", "--table", table];
            let options = Options::parsed(arguments).unwrap();
            kind(&options.table, &layout(words, 32 * words as u32), &Device::cpu(), true).map_err(|error| error.to_string())
        };
        assert_eq!((chosen(8, "auto"), chosen(3, "tree")), (Ok(TableKind::Tree), Ok(TableKind::Tree)));
        for table in ["bucket", "indexed"] {
            assert!(chosen(7, table).is_err_and(|error| error.contains("--nodes is for tree tables only")), "{table}");
        }
        // One command serves a list of models with states of any width.
        assert_eq!((chosen(7, "auto"), chosen(2, "tree-compact")), (Ok(TableKind::Tree), Ok(TableKind::TreeCompact)));
    }

    #[cfg(feature = "cpu")]
    #[test]
    fn an_indexed_table_is_taken_where_only_that_fits() {
        let chosen = |words, arguments: &[&str]| {
            let options = Options::parsed([&["explore", "model"], arguments].concat()).unwrap();
            let layout = layout(words, 32 * words as u32);
            [true, false].map(|any| kind(&options.table, &layout, &Device::cpu(), any).map_err(|error| error.to_string()))
        };
        let of = |kind: TableKind| [Ok(kind), Ok(kind)];
        // 2^20 slots take 40 MiB in buckets, 32 MiB with an index.
        let tight = ["--capacity", "2^20", "--memory", "35M"];
        assert_eq!(chosen(5, &tight), [Ok(TableKind::Indexed), Ok(TableKind::Bucket)]);
        assert_eq!(chosen(5, &["--capacity", "2^20", "--memory", "50M"]), of(TableKind::Bucket));
        assert_eq!(chosen(5, &["--capacity", "2^20", "--memory", "20M"]), of(TableKind::Bucket));
        assert_eq!(chosen(5, &[&tight[..], &["--table", "bucket"]].concat()), of(TableKind::Bucket));
        // Trees are smaller.
        assert_eq!(chosen(8, &tight), of(TableKind::Tree));
        // Here buckets are smaller.
        assert_eq!(chosen(4, &["--capacity", "2^20", "--memory", "25M"]), of(TableKind::Bucket));
        assert_eq!(chosen(8, &["--parents"]), of(TableKind::Indexed));
        assert!(chosen(8, &["--parents", "--table", "tree"])[0].as_ref().is_err_and(|error| error.contains("--parents")));
    }

    #[cfg(feature = "cpu")]
    #[test]
    fn full_memory_asks_for_smaller_slots() {
        let chosen = |words, bits, arguments: &[&str]| {
            let options = Options::parsed([&["explore", "model"], arguments].concat()).unwrap();
            let layout = layout(words, bits);
            let first = kind(&options.table, &layout, &Device::cpu(), true).unwrap();
            (first, smaller(&options.table, options.writes_during_search(), &layout, first))
        };
        let memory = ["--memory", "512MiB"];
        assert_eq!(chosen(3, 72, &memory), (TableKind::Bucket, Some(TableKind::TreeCompact)));
        assert_eq!(chosen(9, 280, &memory), (TableKind::Tree, Some(TableKind::TreeCompact)));
        assert_eq!(chosen(2, 48, &memory), (TableKind::Bucket, Some(TableKind::Compact)));
        // Slots of keys are no smaller than states; memory has no limit; the table is named; or something has been written.
        assert_eq!(chosen(2, 64, &memory), (TableKind::Bucket, None));
        assert_eq!(chosen(1, 32, &memory), (TableKind::Bucket, None));
        assert_eq!(chosen(3, 72, &[]), (TableKind::Bucket, None));
        for more in [["--table", "bucket"], ["--capacity", "1000"], ["--record", "file"], ["--checkpoint", "file"]] {
            assert_eq!(chosen(3, 72, &[&memory[..], &more].concat()), (TableKind::Bucket, None), "{more:?}");
        }
    }

    /// The bits of roots are computed as the library does.
    #[cfg(feature = "cpu")]
    #[test]
    fn bits_of_roots_are_those_of_the_table() {
        for (words, end) in [(3, 72), (3, 74), (4, 128), (5, 129), (5, 140), (7, 224)] {
            let layout = layout(words, end);
            for nodes in [1000u64, 1 << 14, 30_000] {
                let builder = warpset::CompactTreeTable::builder(words).capacity(64).nodes(nodes).last_bits(layout.last_bits());
                let table = builder.build(&Device::cpu_with_threads(1)).unwrap();
                let bits = table.spec().key_and_slot_bits().unwrap().0;
                assert_eq!(bits, root_bits(&layout, table.node_slots()));
                assert!((nodes..nodes + MORE_NODES).contains(&table.node_slots()), "{nodes}");
            }
        }
    }
}
