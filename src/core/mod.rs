//! What a table is, whatever its device: its kind and size, batches, growth and relocation, and what crosses to the device.

pub(crate) mod batch;
pub(crate) mod growth;
pub(crate) mod indexed;
pub(crate) mod lock;
pub(crate) mod memory;
mod relocation;
pub(crate) mod table;
pub(crate) mod values;
