//! The driver API.
//!
//! `functions!` defines each exported function. It counts calls, and fails those that a test wants to fail. Handles are numbers
//! that are never reused, so a destroyed handle is recognised. Using one ends the process with a report, whereas the real driver
//! may crash or do something else.

#[macro_use]
mod call;
mod accesses;
pub(crate) mod bridge;
mod clocks;
mod context;
mod copy;
mod device;
mod errors;
mod event;
pub(crate) mod fault;
mod handles;
mod launch;
mod launcher;
mod memory;
mod pages;
mod pool;
pub mod report;
mod settings;
mod stream;
mod unknown;
mod virtual_memory;
