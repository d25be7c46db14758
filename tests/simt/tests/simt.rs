//! The kernels on the simulated GPU: under random, PCT and lock-step schedules, and under every schedule of tiny cases.
//!
//! `cargo test -p warpset-simt --test simt -- bucket::` runs the tests of bucket.rs.

mod bucket;
mod compact;
mod indexed;
mod partition;
mod search;
mod support;
mod tree;

use libtest_mimic::Arguments;
use std::process::ExitCode;

fn main() -> ExitCode {
    let groups = [bucket::trials(), compact::trials(), indexed::trials(), partition::trials(), search::trials(), tree::trials()];
    libtest_mimic::run(&Arguments::from_args(), groups.into_iter().flatten().collect()).exit_code()
}
