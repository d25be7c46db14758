//! The kinds of tables: tests that are generic over them run for each.

use warpset::{Bucket, CompactTree, Indexed, Storage, TableBuilder, Tree, VectorTable, Words};

pub trait Kind: Storage + Sized {
    /// Name of the kind, for the names of tests.
    const NAME: &str;

    /// Whether a search of a small table looks at every slot, for all hashes. (In compact tables it looks at the buckets of some
    /// functions: tests/suite/compact_keys.rs makes their hashes collide.)
    const SEARCHES_ALL: bool = true;

    /// Whether references are numbers in the order of discovery, for all hashes, and stay when the table grows.
    const IN_ORDER: bool = false;

    /// Least number of vectors in a small table that rejects others.
    fn least_full(slots: u64) -> u64 {
        if Self::SEARCHES_ALL { slots } else { slots * 95 / 100 }
    }

    /// Sets room for all nodes of `capacity` vectors that share none.
    fn with_nodes(builder: TableBuilder<Words, Self>, width: usize, capacity: u64) -> TableBuilder<Words, Self>;

    /// Sets room for about `nodes` nodes, if the kind has nodes.
    fn with_few_nodes(builder: TableBuilder<Words, Self>, nodes: u64) -> TableBuilder<Words, Self>;
}

impl Kind for Bucket {
    const NAME: &str = "bucket";

    fn with_nodes(builder: TableBuilder<Words, Self>, _: usize, _: u64) -> TableBuilder<Words, Self> {
        builder
    }

    fn with_few_nodes(builder: TableBuilder<Words, Self>, _: u64) -> TableBuilder<Words, Self> {
        builder
    }
}

impl Kind for Indexed {
    const NAME: &str = "indexed";
    const IN_ORDER: bool = true;

    fn with_nodes(builder: TableBuilder<Words, Self>, _: usize, _: u64) -> TableBuilder<Words, Self> {
        builder
    }

    fn with_few_nodes(builder: TableBuilder<Words, Self>, _: u64) -> TableBuilder<Words, Self> {
        builder
    }
}

impl Kind for Tree {
    const NAME: &str = "tree";

    fn with_nodes(builder: TableBuilder<Words, Self>, width: usize, capacity: u64) -> TableBuilder<Words, Self> {
        builder.nodes(2 * (capacity + 64) * width as u64)
    }

    fn with_few_nodes(builder: TableBuilder<Words, Self>, nodes: u64) -> TableBuilder<Words, Self> {
        builder.nodes(nodes)
    }
}

impl Kind for CompactTree {
    const NAME: &str = "compact_tree";
    const SEARCHES_ALL: bool = false;

    fn with_nodes(builder: TableBuilder<Words, Self>, width: usize, capacity: u64) -> TableBuilder<Words, Self> {
        // The smallest table has 512 slots and a stash.
        builder.nodes(2 * (capacity + 600) * width as u64)
    }

    fn with_few_nodes(builder: TableBuilder<Words, Self>, nodes: u64) -> TableBuilder<Words, Self> {
        builder.nodes(nodes)
    }
}

/// A builder of tables in which only slots for vectors can be scarce.
pub fn roomy<S: Kind>(width: usize, capacity: u64) -> TableBuilder<Words, S> {
    S::with_nodes(VectorTable::<S>::builder(width).capacity(capacity), width, capacity)
}
