//! What the library needs of this process: threads that stay, and memory that may be refused.

mod memory;
mod workers;

pub(crate) use memory::zeroed;
pub(crate) use workers::Workers;
