#![doc = include_str!("../README.md")]

#[doc(hidden)] // for tests and benches
pub mod bijection;
mod builder;
mod compact;
mod device;
mod error;
#[doc(hidden)]
pub mod faults;
mod key;
mod outcome;
mod raw;
mod request;
mod spec;
mod stats;
mod strategy;
mod table;

pub use builder::TableBuilder;
pub use device::{Device, GpuInfo};
pub use error::{Error, Result};
pub use key::{Key, Words};
pub use outcome::{Batch, Outcome, Reference, Tally};
pub use request::Request;
pub use spec::Spec;
pub use stats::Stats;
pub use strategy::{Pairing, Strategy};
pub use table::{
    Bucket, BucketTable, CompactTree, CompactTreeTable, Iter, Nodes, Root, RootTable, Storage, Table, Tree, TreeTable,
    TypedTable, VectorTable,
};

#[doc = include_str!("docs/how_it_is_checked.md")]
pub mod how_it_is_checked {}

#[doc = include_str!("docs/build_strategies.md")]
pub mod build_strategies {}

#[cfg(feature = "cuda")]
#[doc = include_str!("docs/interoperation.md")]
pub mod interoperation {}

#[doc = include_str!("docs/model_checking.md")]
pub mod model_checking {}

/// What a type must be to be a key, and the derives for it: [`bytemuck`] is part of the public interface.
pub use bytemuck;
/// GPU streams, buffers and modules, of which [`gpu`] takes and gives some: [`cudarc`] is part of the public interface.
#[cfg(feature = "cuda")]
pub use cudarc;
#[cfg(feature = "cuda")]
pub mod gpu;
