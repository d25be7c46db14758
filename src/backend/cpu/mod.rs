//! Tables in the memory of this process, searched by its threads.

mod claims;
mod filter;
mod growth;
mod kernels;
mod machine;
mod memory;
mod parts;
mod rank;
mod rehash;
mod relocation;
mod reserved;
mod roots;
mod rows;
mod store;
mod threads;
mod trees;
mod values;

pub(crate) use machine::CpuMachine;
#[cfg(test)]
pub(crate) use {kernels::quotient, store::CpuStore};
