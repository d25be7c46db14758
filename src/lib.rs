#![doc = include_str!("../README.md")]

pub mod bijection;
mod compact;
mod device;
mod error;
mod outcome;
mod raw;
mod spec;
mod strategy;
mod table;
mod typed;

pub use device::{Device, GpuInfo};
pub use error::{Error, Result};
pub use outcome::{Batch, Outcome, Reference, Tally};
pub use spec::Spec;
pub use strategy::{Pairing, Strategy};
pub use table::{
    Bucket, BucketTable, CompactTree, CompactTreeTable, Iter, Nodes, Request, Root, RootTable, Stats, Storage, TableBuilder,
    Tree, TreeTable, VectorTable,
};
pub use typed::TypedTable;

#[doc = include_str!("docs/how_it_is_checked.md")]
pub mod how_it_is_checked {}

#[doc = include_str!("docs/build_strategies.md")]
pub mod build_strategies {}

#[doc = include_str!("docs/model_checking.md")]
pub mod model_checking {}

#[cfg(feature = "cuda")]
pub use cudarc;
#[cfg(feature = "cuda")]
pub mod gpu;
