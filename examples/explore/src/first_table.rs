//! Initial size of the table, if the command line does not give it.
//!
//! On a GPU a table with too many slots costs little, and growth costs much: explorations that began with 2^20 slots took 3 to 23
//! times as long as with the right number, those with 16 times as many slots as states 1.1 to 1.4 times (H200; at.6, peterson.6,
//! anderson.6). So the table begins with as many slots as a share of the free memory holds, at most [`MOST_SLOTS`] and at most
//! about the number of possible states. On a CPU memory costs time when it is first touched. So the table begins small, within
//! `--memory`, and grows.

use crate::ir::Layout;
use crate::memory;
use crate::options::{Options, TableChoice};
use crate::table_kind::TableKind;
use anyhow::{Result, ensure};
use warpset::Device;

/// Maximum number of initial slots on a GPU. H200, `explore anderson.6.dve` (18 million states): 0.029 s with this number, 0.025
/// s with a capacity that suits the model.
const MOST_SLOTS: u64 = 1 << 29;

/// Initial slots on a CPU; and the fewest on a GPU that is short of memory.
const FEWEST_SLOTS: u64 = 1 << 20;

/// Without `--memory`, table and list of states take 1 / `SHARE` of the free memory: the remainder is for growth, and for other
/// programs on the same GPU.
const SHARE: u64 = 4;

/// A tree table has one node per this many slots: state vectors have far fewer nodes than states.
const SLOTS_A_NODE: u64 = 8;

/// On a CPU the first table takes one part in this many of the memory. Growth needs the old and the new table at once, and such a
/// first table leaves nearly all memory for the last one.
const FIRST_SHARE: u64 = 32;

/// A table that would have fewer slots than these does not grow to fill its memory, but begins with it: the buffers of threads
/// are long in relation to so few states.
const LEAST_TO_GROW: u64 = 1 << 8;

/// Fewer states than these are in a table that began with all of its memory, on a CPU. It needs memory in proportion to states.
pub const FEW_STATES: u64 = FIRST_SHARE * LEAST_TO_GROW;

/// Bytes of a slot for a node.
const NODE: u64 = 8;

/// Bytes of a slot for a root, and most bytes of a slot for the key of one.
const KEY: u64 = 8;

/// Slots for vectors, and slots for nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub slots: u64,
    pub nodes: u64,
}

/// The kind that the options choose, or the best one for states of `words` words. `any`: the search permits tables that only
/// searches of states can use.
///
/// # Errors
///
/// The options contradict each other, or the device fails.
pub fn kind(options: &Options, words: usize, device: &Device, any: bool) -> Result<TableKind> {
    ensure_may_have_nodes(options)?;
    if options.parents {
        let keeps = matches!(options.table, TableChoice::Auto | TableChoice::Indexed);
        ensure!(keeps, "--parents needs --table indexed: only an indexed table stores the parents of states");
        return Ok(TableKind::Indexed);
    }
    let first = options.table_of(words);
    let (TableChoice::Auto, TableKind::Bucket, Some(slots), true) = (options.table, first, options.capacity, any) else {
        return Ok(first);
    };
    let bytes = match options.memory {
        Some(bytes) => bytes,
        None if device.is_gpu() => device.free_memory()?,
        None => memory::free_memory() / 5 * 4,
    };
    let more = |kind| if device.is_gpu() { bytes_of_more_rows(kind, words) } else { 0 };
    let fits = |kind| slots.saturating_mul(bytes_a_slot(kind, words)).saturating_add(more(kind)) <= bytes;
    Ok(if !fits(first) && fits(TableKind::Indexed) { TableKind::Indexed } else { first })
}

/// Returns an error if `--nodes` is given for a table without nodes. With it, `auto` chooses a tree. States of 1 or 2 words have
/// no nodes, but this depends on the model and is not an error.
fn ensure_may_have_nodes(options: &Options) -> Result<()> {
    let has_none = options.parents || matches!(options.table, TableChoice::Bucket | TableChoice::Indexed);
    ensure!(
        options.nodes.is_none() || !has_none,
        "--nodes is for tree tables only: it needs --table tree or --table tree-compact"
    );
    Ok(())
}

/// The initial size of a table of this kind, by the options or the best for the device. `sharing`: number of tables that share
/// the memory.
pub fn size(options: &Options, kind: TableKind, layout: &Layout, device: &Device, sharing: u64) -> Result<Size> {
    let slots = match options.capacity {
        Some(slots) => slots,
        None if device.is_gpu() => {
            // With --memory, take all of the permitted memory, because it is reserved for this table.
            let bytes = match options.memory {
                // Leave a margin for rounding: a table that does not fit would be an error.
                Some(bytes) => bytes.min(device.free_memory()?) / 16 * 15,
                None => device.free_memory()? / SHARE,
            };
            slots_on_gpu((bytes / sharing).saturating_sub(bytes_of_more_rows(kind, layout.words)), kind, layout)
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
        None => (slots / SLOTS_A_NODE).max(FEWEST_SLOTS.min(slots)),
    };
    Ok(Size { slots, nodes })
}

fn slots_on_gpu(bytes: u64, kind: TableKind, layout: &Layout) -> u64 {
    // A table of this size stays below 85 % even with all possible states, so it does not grow.
    let states = 1u64.checked_shl(layout.bits).map_or(u64::MAX, |states| states.saturating_mul(5) / 4);
    (bytes / bytes_a_slot(kind, layout.words)).min(MOST_SLOTS).min(states.max(64)).max(1)
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
    let of_key = if has_trees(kind, words) { KEY } else { slot_bytes(kind, words) };
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

/// Bytes of a slot, its share of nodes, and what is kept of each state beside it.
fn bytes_a_slot(kind: TableKind, words: usize) -> u64 {
    // Bytes of an entry in the list of states found.
    const REFERENCE: u64 = 8;
    let nodes = if has_trees(kind, words) { NODE / SLOTS_A_NODE } else { 0 };
    slot_bytes(kind, words) + nodes + if kind == TableKind::Indexed { 0 } else { REFERENCE }
}

/// Bytes of a slot alone.
fn slot_bytes(kind: TableKind, words: usize) -> u64 {
    // Bytes of a state's parent (gpu/by_rows.rs).
    const PARENT: u64 = 4;
    match kind {
        // A row and a slot of the index; large tables have index slots of 8 bytes.
        TableKind::Indexed => words as u64 * 4 + 8 + PARENT,
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

    fn layout(words: usize, bits: u32) -> Layout {
        Layout { words, bits, locations: Vec::new(), variables: Vec::new() }
    }

    #[test]
    fn tables_are_as_large_as_is_useful() {
        let slots = |bytes, kind, words, bits| slots_on_gpu(bytes, kind, &layout(words, bits));
        assert_eq!(slots(1 << 40, TableKind::Bucket, 3, 90), MOST_SLOTS);
        assert_eq!(slots(24 << 20, TableKind::Bucket, 3, 90), 1 << 20);
        assert_eq!(slots(13 << 20, TableKind::TreeCompact, 20, 600), 1 << 20);
        assert_eq!(slots(16 << 20, TableKind::TreeCompact, 2, 64), 1 << 20);
        assert_eq!(slots(20 << 20, TableKind::Indexed, 2, 64), 1 << 20);
        // At most 2^10 states are possible.
        assert_eq!(slots(1 << 40, TableKind::Bucket, 1, 10), 1280);
        assert_eq!(slots(1 << 40, TableKind::Bucket, 1, 0), 64);
        assert_eq!(slots(1 << 40, TableKind::Bucket, 2, 64), MOST_SLOTS);
        assert_eq!(slots(0, TableKind::Bucket, 2, 64), 1);
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
            kind(&options, words, &Device::cpu(), true).map_err(|error| error.to_string())
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
            [true, false].map(|any| kind(&options, words, &Device::cpu(), any).map_err(|error| error.to_string()))
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
}
