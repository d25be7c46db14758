//! Tables in the memory of this process, searched by its threads.

mod claims;
mod machine;
mod memory;
mod parts;
mod rank;
mod reserved;
mod store;
mod threads;
mod values;

pub(crate) use machine::CpuMachine;
#[cfg(test)]
pub(crate) use store::{CpuStore, quotient};
