#![doc = include_str!("../README.md")]

pub mod bijection;
mod builder;
mod compact;
mod device;
mod error;
mod outcome;
mod raw;
mod request;
mod spec;
mod stats;
mod strategy;
mod table;
mod typed;

pub use builder::TableBuilder;
pub use device::{Device, GpuInfo};
pub use error::{Error, Result};
pub use outcome::{Batch, Outcome, Reference, Tally};
pub use request::Request;
pub use spec::Spec;
pub use stats::Stats;
pub use strategy::{Pairing, Strategy};
pub use table::{
    Bucket, BucketTable, CompactTree, CompactTreeTable, Iter, Nodes, Root, RootTable, Storage, Tree, TreeTable, VectorTable,
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
