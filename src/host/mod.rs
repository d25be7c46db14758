//! Resources of this process: permanent threads, memory whose allocation may fail, and files that get their names when they are
//! complete.

pub(crate) mod code_cache;
mod files;
mod memory;
mod workers;

pub use code_cache::CodeCache;
#[allow(unused_imports, reason = "the headers of kernels are digested")]
pub(crate) use code_cache::digest;
pub(crate) use files::replace;
#[allow(unused_imports, reason = "values in the memory of this process are filled by it")]
pub(crate) use memory::fill_repeatedly;
#[allow(unused_imports, reason = "exports of the host write to it")]
pub(crate) use memory::room;
pub(crate) use memory::zeroed;
pub(crate) use workers::Workers;
