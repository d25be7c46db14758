//! Concurrent hash sets on the GPU, and on CPU threads, for fixed-width vectors of 32-bit words.
//!
//! Their one operation is *find-or-put*: look for a vector in the set, and store it if it is not there. Of all calls that offer
//! equal vectors, exactly one gets [`New`](Outcome::New), the others [`Seen`](Outcome::Seen). Vectors have 1 to 256 words, and
//! every bit pattern is legal.
//!
//! ```
//! use warpset::{Device, Outcome, TypedTable};
//!
//! # fn main() -> Result<(), warpset::Error> {
//! let device = Device::best()?; // a GPU if there is one, else all cores of the CPU
//! let table = TypedTable::<[u32; 4]>::builder().grows(true).build(&device)?;
//!
//! let tally = table.insert_many(&[[1, 2, 3, 4], [5, 6, 7, 8], [1, 2, 3, 4]])?; // all are stored, or this is an error
//! assert_eq!((tally.new, tally.seen), (2, 1));
//!
//! let batch = table.find_or_put_many(&[[5, 6, 7, 8], [9, 9, 9, 9]])?; // which of them are new?
//! assert_eq!(batch.outcomes, [Outcome::Seen, Outcome::New]);
//! batch.complete(&table)?; // an error, with the numbers, if some found no slot
//! # Ok(()) }
//! ```
//!
//! # Tables
//!
//! Every table is a [`Table<K, S>`](Table): `K` is the type of your vectors, `S` how they are stored.
//!
//! | type | stores |
//! |---|---|
//! | [`BucketTable`] | vectors as they are, of a width that is known at run time |
//! | [`TypedTable<K>`](TypedTable) | vectors of a plain data type of yours, as they are; with [`Tree`], as trees |
//! | [`TreeTable`] | vectors as trees of pairs; equal parts of vectors share pairs |
//! | [`RootTable`] | `u64` keys of 20 to 64 bits, compressed: a slot stores only what its bucket does not determine |
//! | [`CompactTreeTable`] | vectors as trees, with compressed roots |
//! | [`IndexedTable`] | vectors as rows, numbered in the order in which they are found; [`Values`] may lie beside them |
//!
//! [`TableBuilder`] has the options of a table, [`Request`] selects what a batch reports, [`Batch`] has the results, and
//! [`Buffers`] hold results in memory that is used again. [`Device`] is where tables live, [`Error`] lists what can go wrong,
//! `gpu` has what exists for GPUs only.
//!
//! The module `cluster` has types of the same names for sets over several tables: `Table`, `Batch`, `Request`, `Reference` and
//! `Stats`. So import the types of one of the two, and name those of the other by its module, such as `cluster::Table` after `use
//! warpset::cluster`.
//!
//! # Is it right?
//!
//! - [Threads and streams](threads_and_streams): what is linearizable, why no thread waits for another, which call waits for
//!   what.
//! - [How it is checked](how_it_is_checked): seven ways, what they have found, and what they do not prove.
//! - [The simulated GPU](simulated_gpu): its memory model, and what it runs.
//! - [Negative controls](negative_controls): the wrong algorithms that the simulated GPU must catch.
//! - [The algorithm as a model](claiming_as_a_model): a model checker on these tables checks how they claim slots.
//!
//! # Chapters
//!
//! For a first program, in this order:
//!
//! - [Choosing a table](choosing_a_table): which of the five kinds, bytes and speed, what to use instead.
//! - [Model checking](model_checking): a first search on these tables.
//! - [Memory and growth](memory_and_growth): capacity, fill, growth, relocation, what happens when memory ends.
//! - [Errors](errors): what each one means, what state it leaves, what to do.
//!
//! As needed:
//!
//! - [Coming from another crate](coming_from_another_crate): calls of hashbrown, indexmap and others.
//! - [Indexed tables](indexed_tables): rows in order, values by reference.
//! - [Host batches and kernels](host_batches): staging, pinned memory, preparing the next batch, the kernel cache.
//! - [Files](files): saving and loading tables, references in files, the format.
//! - [Several GPUs](several_gpus): one set spread over several tables.
//! - [Your own kernels](your_own_kernels): calling find-or-put from CUDA C++.
//! - [Searches in kernels](searches_in_kernels): a loop that meets a full table, and blocks that gather vectors.
//! - [Interoperation](interoperation): memory and streams of other libraries.
//! - [Build strategies](build_strategies): how the kernels of a tree table build trees.
//! - [Platforms](platforms): what is needed to build and to run, systems and GPUs, what a version promises.
//!
//! # Features
//!
//! At least one of `cuda` and `cpu` is required.
//!
//! | feature | | needs |
//! |---|---|---|
//! | `cuda` (default) | tables on NVIDIA GPUs of compute capability 7.5 or later | the driver and NVRTC, at run time |
//! | `cpu` (default) | tables on CPU threads | GCC or Clang with C++17, to build |
//! | `cluster` | the module `cluster`: one set over several tables, each on a device or in a process of its own | |
//! | `nccl` | `cluster::Nccl`: sets over several GPUs, of one host or several | NCCL 2.14 or later, at run time |
//! | `rayon` | `Table::par_iter`: iteration over a table by the threads of rayon | |
//! | `serde` | [`Stats`], [`Tally`], [`Outcome`] and [`Spec`] can be serialised | |
//!
//! [`bytemuck`] 1 is part of the public interface, and re-exported. `cudarc` 0.19 is part of the interface only in
//! `gpu::cudarc_0_19`, which re-exports `cudarc`. The README has the guarantees, `benches/README.md` the measurements.

// Chapters link to the items of every feature, as docs.rs builds them. `.ci/run` checks these links with all features.
#![cfg_attr(
    not(all(feature = "cuda", feature = "cpu", feature = "cluster", feature = "nccl", feature = "rayon")),
    allow(rustdoc::broken_intra_doc_links)
)]

mod backend;
#[cfg(feature = "cluster")]
pub mod cluster;
mod core;
mod device;
mod error;
#[doc(hidden)]
pub mod faults;
mod host;
mod layout;
mod saved;
mod table;

pub use backend::GpuInfo;
pub use device::Device;
pub use error::{Error, FileFault, Result};
#[doc(hidden)] // for the model checker
pub use host::CodeCache;
pub use layout::memory::MemoryLimit;
pub use layout::outcome::{Outcome, Tally};
pub use layout::reference::Reference;
pub use layout::spec::Spec;
pub use layout::strategy::{Pairing, Strategy};
pub use layout::upsert::{Combine, Number};
#[doc(hidden)] // for the model checker
pub use saved::{Named, NewFile};
#[doc(hidden)] // for the model checker
pub use table::Erased;
pub use table::{
    Batch, Bucket, BucketTable, Buffers, Columns, CompactTree, CompactTreeTable, Factors, Indexed, IndexedTable, Iter, Key,
    Nodes, Request, Root, RootTable, Rows, Stats, Storage, Table, TableBuilder, Tree, TreeTable, TypedTable, Values, ValuesView,
    VectorTable, Words,
};

#[cfg(feature = "rayon")]
pub use table::ParIter;

// Pictures: a chapter ends with link definitions that name its picture files, for readers of the repository. rustdoc cannot show
// these files. So NAME.link is included before the chapter, and defines the link NAME as a data URI of the picture: the first of
// two definitions counts. benches/plots/plots.py writes both.
#[cfg_attr(doc, doc = include_str!("docs/pictures/trees.link"))]
#[cfg_attr(doc, doc = include_str!("docs/pictures/throughput.link"))]
#[cfg_attr(doc, doc = include_str!("docs/pictures/widths.link"))]
#[doc = include_str!("docs/choosing_a_table.md")]
pub mod choosing_a_table {}

#[doc = include_str!("docs/coming_from_another_crate.md")]
pub mod coming_from_another_crate {}

#[doc = include_str!("docs/memory_and_growth.md")]
pub mod memory_and_growth {}

#[doc = include_str!("docs/host_batches.md")]
pub mod host_batches {}

#[doc = include_str!("docs/indexed_tables.md")]
pub mod indexed_tables {}

#[doc = include_str!("docs/errors.md")]
pub mod errors {}

#[cfg(feature = "cpu")] // for its examples
#[doc = include_str!("docs/files.md")]
pub mod files {}

#[cfg_attr(doc, doc = include_str!("docs/pictures/claim.link"))]
#[doc = include_str!("docs/threads_and_streams.md")]
pub mod threads_and_streams {}

#[cfg(all(feature = "cluster", feature = "cpu"))] // for its examples
#[doc = include_str!("docs/several_gpus.md")]
pub mod several_gpus {}

#[cfg(feature = "cuda")]
#[doc = include_str!("docs/your_own_kernels.md")]
pub mod your_own_kernels {}

#[cfg(feature = "cuda")]
#[doc = include_str!("docs/searches_in_kernels.md")]
pub mod searches_in_kernels {}

#[cfg(feature = "cuda")]
#[doc = include_str!("docs/interoperation.md")]
pub mod interoperation {}

#[cfg_attr(doc, doc = include_str!("docs/pictures/explorers.link"))]
#[doc = include_str!("docs/model_checking.md")]
pub mod model_checking {}

#[doc = include_str!("docs/build_strategies.md")]
pub mod build_strategies {}

#[doc = include_str!("docs/platforms.md")]
pub mod platforms {}

#[doc = include_str!("docs/how_it_is_checked.md")]
pub mod how_it_is_checked {}

#[doc = include_str!("docs/simulated_gpu.md")]
pub mod simulated_gpu {}

#[doc = include_str!("docs/negative_controls.md")]
pub mod negative_controls {}

#[doc = include_str!("docs/claiming_as_a_model.md")]
pub mod claiming_as_a_model {}

/// The code in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

/// Traits that a key type must have, and their derives: [`bytemuck`] is part of the public interface.
pub use bytemuck;
#[cfg(feature = "cuda")]
pub mod gpu;
