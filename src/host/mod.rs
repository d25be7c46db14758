//! Resources of this process: threads that stay, and memory whose allocation may fail.

mod memory;
mod workers;

pub(crate) use memory::zeroed;
pub(crate) use workers::Workers;
