//! What a table is, whatever its device: its kind and size, batches, growth and relocation, and what crosses to the device.

pub(crate) mod batch;
pub(crate) mod compact;
pub(crate) mod generation;
pub(crate) mod growth;
pub(crate) mod indexed;
pub(crate) mod lock;
pub(crate) mod memory;
pub(crate) mod options;
#[doc(hidden)] // for tests and benches
pub mod permutation;
mod relocation;
pub(crate) mod size;
pub(crate) mod spec;
pub(crate) mod store;
pub(crate) mod table;
pub(crate) mod values;
pub(crate) mod view;
