//! Makes the table of a replay, of any kind.

use super::memory::MemoryBudget;
use super::options::Options;
use super::progress::WorkProgress;
use super::vectors::Vectors;
use anyhow::{Context, Result, ensure};
use std::ops::ControlFlow;
use warpset::{
    Bucket, CompactTree, Device, Error, Indexed, Request, Root, Spec, Storage, Strategy, TableBuilder, Tree, VectorTable, Words,
};

/// Fill of a node table, unless --nodes is given: equal to the default of --fill, and well below 90 %, up to which no node is
/// rejected.
const NODE_FILL: f64 = 0.7;

/// Maximum number of node slots: nodes are numbered by 32 bits.
const MOST_NODES: u64 = (1 << 32) - 2;

/// Functions that differ between kinds of tables.
pub trait ReplayKind: Storage + Sized {
    /// Sets the number of slots of the node table, if the kind has one.
    fn with_nodes(builder: TableBuilder<Words, Self>, _: u64) -> TableBuilder<Words, Self> {
        builder
    }

    /// Sets the build strategy of trees, if the kind has one.
    fn with_strategy(builder: TableBuilder<Words, Self>, _: Strategy) -> TableBuilder<Words, Self> {
        builder
    }

    /// Maximum number of nodes of one vector.
    fn nodes_of(_: usize) -> u64 {
        0
    }

    /// Fewest bytes of a slot.
    fn slot_bytes(width: usize) -> u64;

    /// Sets the bits of keys, if vectors are keys.
    fn with_keys_of(builder: TableBuilder<Words, Self>, _: &Options, _: &Vectors) -> Result<TableBuilder<Words, Self>> {
        Ok(builder)
    }

    /// Sets the bits of keys and slots to those of a table of this spec, if slots hold parts of vectors.
    #[cfg(feature = "cuda")]
    fn with_bits_of(builder: TableBuilder<Words, Self>, _: Spec) -> TableBuilder<Words, Self> {
        builder
    }
}

/// Fewest bytes of a slot that holds a part of a key.
const LEAST_SLOT_BYTES: u64 = 2;

impl ReplayKind for Bucket {
    fn slot_bytes(width: usize) -> u64 {
        width as u64 * 4
    }
}

impl ReplayKind for Indexed {
    /// Bytes of a row, which is stored separately, and of the smallest slot of the index.
    fn slot_bytes(width: usize) -> u64 {
        width as u64 * 4 + 4
    }
}

impl ReplayKind for Tree {
    fn with_nodes(builder: TableBuilder<Words, Self>, nodes: u64) -> TableBuilder<Words, Self> {
        builder.nodes(nodes)
    }

    fn with_strategy(builder: TableBuilder<Words, Self>, strategy: Strategy) -> TableBuilder<Words, Self> {
        builder.strategy(strategy)
    }

    fn nodes_of(width: usize) -> u64 {
        (width as u64).saturating_sub(2)
    }

    fn slot_bytes(width: usize) -> u64 {
        width.min(2) as u64 * 4
    }
}

impl ReplayKind for CompactTree {
    fn with_nodes(builder: TableBuilder<Words, Self>, nodes: u64) -> TableBuilder<Words, Self> {
        builder.nodes(nodes)
    }

    fn nodes_of(width: usize) -> u64 {
        Tree::nodes_of(width)
    }

    fn slot_bytes(_: usize) -> u64 {
        LEAST_SLOT_BYTES
    }

    #[cfg(feature = "cuda")]
    fn with_bits_of(builder: TableBuilder<Words, Self>, spec: Spec) -> TableBuilder<Words, Self> {
        spec.key_and_slot_bits().map_or(builder.clone(), |(_, slot_bits)| builder.slot_bits(slot_bits))
    }
}

impl ReplayKind for Root {
    fn slot_bytes(_: usize) -> u64 {
        LEAST_SLOT_BYTES
    }

    fn with_keys_of(
        builder: TableBuilder<Words, Self>,
        options: &Options,
        vectors: &Vectors,
    ) -> Result<TableBuilder<Words, Self>> {
        let width = vectors.width;
        ensure!(width == 2, "the keys of a root table have at most 64 bits: vectors of 2 words, not of {width}");
        let all = vectors.words.chunks_exact(2).fold(0, |all, key| all | u64::from(key[0]) | u64::from(key[1]) << 32);
        let bits = (u64::BITS - all.leading_zeros()).max(*Spec::KEY_BITS.start());
        Ok(builder.key_bits(options.key_bits.unwrap_or(bits)))
    }

    #[cfg(feature = "cuda")]
    fn with_bits_of(builder: TableBuilder<Words, Self>, spec: Spec) -> TableBuilder<Words, Self> {
        let (key_bits, slot_bits) = spec.key_and_slot_bits().expect("slots hold parts of keys");
        builder.key_bits(key_bits).slot_bits(slot_bits)
    }
}

/// Makes the table that the options describe.
pub fn make<S: ReplayKind>(options: &Options, vectors: &Vectors, device: &Device) -> Result<VectorTable<S>> {
    let (builder, slots) = builder::<S>(options, vectors, device)?;
    Ok(builder.capacity(slots).build(device)?)
}

/// Returns the builder that the options describe, without a capacity, and the number of slots.
pub fn builder<S: ReplayKind>(options: &Options, vectors: &Vectors, device: &Device) -> Result<(TableBuilder<Words, S>, u64)> {
    let capacity = options.capacity.unwrap_or(slots_for(vectors.most_distinct(), options.fill));
    let strategy = options.strategy.unwrap_or_default();
    let nodes = options.nodes.map_or_else(|| node_slots::<S>(vectors, strategy, device, options.memory), Ok)?;
    // The system grants more memory than it has and kills the process when the memory is touched; a GPU does not.
    if !device.is_gpu() {
        let bytes = capacity.saturating_mul(S::slot_bytes(vectors.width));
        let what = format!("{capacity} slots of the table (--capacity, --fill)");
        MemoryBudget::of(options.memory).ensure(&what, bytes)?;
    }
    let builder = VectorTable::builder(vectors.width).grows(options.grow).seed(options.seed);
    let builder = S::with_strategy(S::with_keys_of(builder, options, vectors)?, strategy);
    Ok((S::with_nodes(builder, nodes), capacity))
}

/// Makes a table with the spec and the present size of this one, and other seeds.
#[cfg(feature = "cuda")]
pub fn make_another<S: ReplayKind>(table: &VectorTable<S>) -> warpset::Result<VectorTable<S>> {
    let stats = table.stats()?;
    let builder = S::with_bits_of(VectorTable::builder(stats.width).capacity(stats.slots), table.spec());
    let builder = S::with_strategy(builder, table.spec().strategy());
    S::with_nodes(builder, stats.node_slots).build(table.device())
}

/// Slots of a node table for these vectors; 1, the minimum, if they need none.
///
/// How many nodes vectors share shows only when they are put. So a first table, large enough if they share none, counts the
/// nodes. A table of that size would be far too large for most vectors, and its size and speed would say little of a table that
/// fits.
fn node_slots<S: ReplayKind>(vectors: &Vectors, strategy: Strategy, device: &Device, memory: Option<u64>) -> Result<u64> {
    let distinct = vectors.most_distinct();
    let most = distinct * S::nodes_of(vectors.width);
    if most == 0 {
        return Ok(1);
    }
    let count = || {
        let (capacity, nodes) = (slots_for(distinct, NODE_FILL), slots_for(most, NODE_FILL).min(MOST_NODES));
        if !device.is_gpu() {
            let what = format!("{capacity} slots and {nodes} nodes");
            MemoryBudget::of(memory).ensure(&what, (capacity + nodes) * 8)?;
        }
        let builder = S::with_nodes(VectorTable::<S>::builder(vectors.width).capacity(capacity), nodes);
        let table = S::with_strategy(builder, strategy).build(device)?;
        let progress = WorkProgress::new("counting nodes", vectors.count() as u64);
        let mut report = |done, _| {
            progress.set(done);
            ControlFlow::Continue(())
        };
        table.find_or_put_many_with(&vectors.words, Request::new().progress(&mut report))?.complete(&table)?;
        Ok::<_, anyhow::Error>(slots_for(table.stats()?.nodes, NODE_FILL))
    };
    count().context("the nodes cannot be counted beforehand; choose the number of node slots with --nodes")
}

fn slots_for(stored: u64, fill: f64) -> u64 {
    (stored as f64 / fill).ceil().max(1.0) as u64
}

/// Names the table that was full and the option that enlarges it, if the error is a full table.
pub fn advice(error: &Error) -> Option<&'static str> {
    match error {
        Error::TableFull { for_nodes: 0, .. } => {
            Some("too few slots: choose more with --capacity, or let the table grow with --grow")
        }
        Error::TableFull { rejected, for_nodes, .. } if rejected == for_nodes => {
            Some("the node table has too few slots: choose more with --nodes, or let it grow with --grow")
        }
        Error::TableFull { .. } => Some(
            "the table and its node table have too few slots: choose more with --capacity and --nodes, or let both grow with \
             --grow",
        ),
        _ => None,
    }
}

#[cfg(all(test, feature = "cpu"))]
mod tests {
    use super::*;

    fn vectors(width: usize, count: u32) -> Vectors {
        let words = (0..count * width as u32).map(|word| word.wrapping_mul(0x9e37_79b1)).collect();
        Vectors { words, width, distinct: None, origin: String::new() }
    }

    #[test]
    fn the_node_table_is_made_for_the_nodes_there_are() {
        let device = Device::cpu_with_threads(2);
        for width in [1, 2, 3, 4, 7, 8] {
            let mut vectors = vectors(width, 1000);
            assert_eq!(node_slots::<Bucket>(&vectors, Strategy::DEFAULT, &device, None).unwrap(), 1);
            // No two words are equal, so no two nodes are.
            let expected = slots_for(1000 * (width.max(2) - 2) as u64, NODE_FILL);
            assert_eq!(node_slots::<Tree>(&vectors, Strategy::DEFAULT, &device, None).unwrap(), expected, "width {width}");
            assert_eq!(node_slots::<CompactTree>(&vectors, Strategy::DEFAULT, &device, None).unwrap(), expected, "width {width}");
            vectors.words.fill(5);
            assert!(
                node_slots::<Tree>(&vectors, Strategy::DEFAULT, &device, None).unwrap() <= 6,
                "width {width}: a pair a level, or none"
            );
        }
        // The pair of two zeros takes no slot.
        let zeros = Vectors { words: vec![0; 6], width: 3, distinct: None, origin: String::new() };
        assert_eq!(node_slots::<Tree>(&zeros, Strategy::DEFAULT, &device, None).unwrap(), 1);
        assert_eq!(node_slots::<Tree>(&Vectors { words: Vec::new(), ..zeros }, Strategy::DEFAULT, &device, None).unwrap(), 1);
    }

    #[test]
    fn the_advice_names_the_option_of_the_full_table() {
        let full = |rejected, for_nodes| Error::TableFull { rejected, for_nodes, offered: 9, stored: 1, slots: 1, cause: None };
        let names = |error: &Error| ["--capacity", "--nodes"].map(|option| advice(error).unwrap().contains(option));
        assert_eq!(names(&full(3, 0)), [true, false]);
        assert_eq!(names(&full(3, 3)), [false, true]);
        assert_eq!(names(&full(3, 1)), [true, true]);
        assert_eq!(advice(&Error::Capturing), None);
    }
}
