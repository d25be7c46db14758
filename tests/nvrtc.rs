//! Compiles kernels with NVRTC: no GPU is needed. Kernels of every kind that tests use are compiled for one compute capability,
//! a selection for others; all of them with `WARPSET_TEST_FULL=1`, otherwise those of the committed table. One compilation runs
//! per core (`--test-threads`): NVRTC compiles concurrently.
//!
//! Without NVRTC the tests are skipped with a message; with `WARPSET_REQUIRE_NVRTC` in the environment, that is a failure.
//!
//! The search kernels that the benches measure are compared with a committed table: nvrtc/kernel_table.rs. The PTX of all
//! programs can be written to a folder, for a comparison of two versions: nvrtc/ptx.rs.
//!
//! Keeps this promise of `.github/CONTRIBUTING.md`:
//!
//! - Search kernels have the registers, spills, instructions and loads of the committed table (also
//!   `tests/nvrtc/kernel_table.rs`).

/// In tests/nvrtc/.
mod nvrtc {
    pub mod cubin;
    pub mod kernel_table;
    pub mod program;
    pub mod ptx;
}

use libtest_mimic::{Arguments, Trial};
use nvrtc::{kernel_table, program, ptx};
use warpset_testing::sizes::full;

fn main() {
    for write in [kernel_table::write, ptx::write] {
        if write().unwrap_or_else(|error| panic!("{error}")) {
            return;
        }
    }
    let missing = missing();
    let skipped = missing.as_ref().map_or(String::new(), |reason| format!(" (skipped: {reason})"));
    // A run that is not full has the kernels of the table, and a few of every kind for the oldest capability.
    let is_chosen = |(program, capability): &(program::Program, (u32, u32))| {
        full() || if *capability == program::ALL { program.is_measured() } else { *capability == program::OLDEST }
    };
    let trials = program::all().into_iter().filter(is_chosen).map(|(program, capability @ (major, minor))| {
        let name = format!("compute_{major}{minor}::{}{skipped}", program.name());
        let run = move || {
            let image = program.compile(capability)?;
            program.check(&image)?;
            if capability == program::ALL { kernel_table::check(program, &image) } else { Ok(()) }
        };
        Trial::test(name, run).with_ignored_flag(missing.is_some())
    });
    let of_table = kernel_table::trials(missing.as_deref());
    libtest_mimic::run(&Arguments::from_args(), trials.chain(of_table).collect()).exit();
}

/// Reason why nothing can be compiled here, if there is one.
fn missing() -> Option<String> {
    match warpset::gpu::compile(&warpset::BucketTable::builder(1), warpset::gpu::Program::Table, (9, 0)) {
        Err(error @ warpset::Error::LibraryNotFound { .. }) if std::env::var_os("WARPSET_REQUIRE_NVRTC").is_none() => {
            Some(error.to_string().split(';').next().unwrap_or_default().into())
        }
        _ => None,
    }
}
