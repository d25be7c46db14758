//! The kinds of tables: tests that are generic over them run for each.

use warpset::{Bucket, Storage, TableBuilder, Tree, VectorTable};

pub trait Kind: Storage + Sized {
    /// For the names of tests.
    const NAME: &str;

    /// With room for all the nodes that vectors have which share none.
    fn with_nodes(builder: TableBuilder<Self>, width: usize, capacity: u64) -> TableBuilder<Self>;

    /// With room for about so many, if it has nodes.
    fn with_few_nodes(builder: TableBuilder<Self>, nodes: u64) -> TableBuilder<Self>;
}

impl Kind for Bucket {
    const NAME: &str = "bucket";

    fn with_nodes(builder: TableBuilder<Self>, _: usize, _: u64) -> TableBuilder<Self> {
        builder
    }

    fn with_few_nodes(builder: TableBuilder<Self>, _: u64) -> TableBuilder<Self> {
        builder
    }
}

impl Kind for Tree {
    const NAME: &str = "tree";

    fn with_nodes(builder: TableBuilder<Self>, width: usize, capacity: u64) -> TableBuilder<Self> {
        builder.nodes(2 * (capacity + 64) * width as u64)
    }

    fn with_few_nodes(builder: TableBuilder<Self>, nodes: u64) -> TableBuilder<Self> {
        builder.nodes(nodes)
    }
}

/// A builder of tables in which only slots for vectors can be scarce.
pub fn roomy<S: Kind>(width: usize, capacity: u64) -> TableBuilder<S> {
    S::with_nodes(VectorTable::<S>::builder(width).capacity(capacity), width, capacity)
}
