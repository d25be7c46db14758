//! The third machine that warpset's kernels run on: a GPU that is simulated, to find races in them.
//!
//! The headers in `cuda/` are compiled as C++ with `cuda/platform/simt`, which hands every atomic access and every collective to
//! this crate. What it does with them, and what that proves and does not, is told in warpset's documentation, "How warpset is
//! checked".
//!
//! - [`machine`]: lanes as fibres, steps, collectives, deadlock and livelock.
//! - [`memory`]: which values a load may see; data races; bounds.
//! - [`schedule`]: random, PCT, lock-step and exhaustive schedules, and replay.
//! - [`explorer`]: many schedules for one program, and the report of the first that breaks it.

pub mod checks;
pub mod compact;
pub mod controls;
pub mod crowd;
pub mod exhaustive;
pub mod explorer;
pub mod fault;
pub mod growth;
pub mod indexed;
pub mod machine;
pub mod memory;
pub mod partition;
pub mod relocation;
pub mod request;
pub mod schedule;
pub mod search;
pub mod stress;
pub mod table;
pub mod trace;
pub mod tree;
