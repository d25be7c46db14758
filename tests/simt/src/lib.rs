//! The third machine that warpset's kernels run on: a GPU that is simulated, to find races in them.
//!
//! The headers in `cuda/` are compiled as C++ with `cuda/platform/simt`, which hands every atomic access and every collective to
//! this crate. How the simulator handles them, and what its results prove and do not prove, is described in warpset's
//! documentation, "How warpset is checked".
//!
//! - [`machine`]: lanes as fibres, steps, collectives, deadlock and livelock.
//! - [`memory`]: which values a load may see; data races; bounds.
//! - [`schedule`]: random, PCT, lock-step and exhaustive schedules, and replay.
//! - [`explorer`]: many schedules for one program, and the report of the first that breaks it.
//! - [`module`]: kernels that a test compiles and loads.
//!
//! Further modules run the library's kernels and the model checker's, which the feature `kernels` compiles.

pub mod explorer;
pub mod fault;
pub mod machine;
pub mod memory;
pub mod module;
pub mod request;
pub mod schedule;
pub mod trace;

#[cfg(feature = "kernels")]
pub mod bulk;
#[cfg(feature = "kernels")]
pub mod checks;
#[cfg(feature = "kernels")]
pub mod compact;
#[cfg(feature = "kernels")]
pub mod controls;
#[cfg(feature = "kernels")]
pub mod crowd;
#[cfg(feature = "kernels")]
pub mod exhaustive;
#[cfg(feature = "kernels")]
pub mod growth;
#[cfg(feature = "kernels")]
pub mod indexed;
#[cfg(feature = "kernels")]
pub mod partition;
#[cfg(feature = "kernels")]
pub mod relocation;
#[cfg(feature = "kernels")]
pub mod search;
#[cfg(feature = "kernels")]
pub mod slices;
#[cfg(feature = "kernels")]
pub mod stress;
#[cfg(feature = "kernels")]
pub mod table;
#[cfg(feature = "kernels")]
pub mod tree;
