//! Data that crosses to a machine: specs, views, options, sizes, references and generations, and the plain types of batches and
//! rows.
//!
//! This module knows no machine, table or device.

pub(crate) mod batch;
#[cfg(feature = "cuda")]
pub(crate) mod bulk;
mod checked;
#[cfg(feature = "cuda")]
pub(crate) mod columns;
pub(crate) mod compact;
pub(crate) mod generation;
pub(crate) mod kernel;
pub(crate) mod kind;
pub(crate) mod limits;
pub(crate) mod memory;
pub(crate) mod options;
pub(crate) mod outcome;
pub(crate) mod part;
mod permutation;
#[cfg(feature = "cluster")]
pub(crate) mod rank;
pub(crate) mod reference;
pub(crate) mod rows;
pub(crate) mod search;
pub(crate) mod size;
pub(crate) mod spec;
pub(crate) mod strategy;
pub(crate) mod upsert;
pub(crate) mod view;

pub(crate) use batch::{BatchProgress, HostBatch};
pub(crate) use kernel::Kernel;
pub(crate) use kind::Kind;
pub(crate) use part::TablePart;
pub(crate) use reference::Reference;
pub(crate) use search::SearchMode;
pub(crate) use spec::Spec;
pub(crate) use upsert::Upsert;
