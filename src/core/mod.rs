//! The untyped table, for any device: its kind and size, batches, growth and relocation, and the data that crosses to the device.

mod arrays;
pub(crate) mod batch;
mod calls;
mod ending;
pub(crate) mod growth;
pub(crate) mod indexed;
pub(crate) mod lock;
pub(crate) mod memory;
mod put;
#[cfg(feature = "cluster")]
pub(crate) mod rank;
pub(crate) mod relocation;
pub(crate) mod request;
pub(crate) mod retain;
mod schedule;
pub(crate) mod stats;
pub(crate) mod table;
mod upsert;
pub(crate) mod values;
pub(crate) mod within;
