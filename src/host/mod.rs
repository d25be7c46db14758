//! Resources of this process: threads that stay, memory whose allocation may fail, and files that get their names.

mod files;
mod memory;
mod workers;

#[allow(unused_imports, reason = "kept kernels and files of a rendezvous are replaced by it")]
pub(crate) use files::replace;
#[allow(unused_imports, reason = "values in the memory of this process are filled by it")]
pub(crate) use memory::fill_repeatedly;
#[allow(unused_imports, reason = "exports of the host write to it")]
pub(crate) use memory::room;
pub(crate) use memory::zeroed;
pub(crate) use workers::Workers;
