//! One suite for every machine. A test is a function of a device; it is registered once for the CPU with one thread, once for the
//! CPU with several, and once for each GPU. Without a GPU it is also listed as a skipped test, and the last line of the output
//! counts the skipped ones; a selection of the GPU tests then runs on a simulated device (`simulated`).
//!
//! `WARPSET_TEST_FULL=1` makes sizes full, as in `.ci/full suite`; `WARPSET_TEST_FAST=1` makes them small, for runs under
//! compute-sanitizer. `--include-ignored` makes skipped tests fail: use it on machines that must have a GPU.

mod common;

/// Files in tests/suite/.
mod suite {
    pub mod changed_files;
    pub mod cluster;
    pub mod cluster_faults;
    pub mod compact_keys;
    pub mod compact_roots;
    pub mod cuckoo;
    pub mod dense_slots;
    pub mod errors;
    pub mod faults;
    pub mod filter;
    pub mod full_tables;
    pub mod growth;
    pub mod helpers;
    pub mod histories;
    pub mod hostile_files;
    pub mod incremental;
    pub mod indexed;
    pub mod lookalikes;
    pub mod many_offers;
    pub mod memory_limits;
    pub mod nodes;
    pub mod numpy;
    pub mod overlapping_calls;
    pub mod reading;
    pub mod results;
    pub mod retain;
    pub mod saved;
    pub mod seeds;
    pub mod self_deadlocks;
    pub mod single_vectors;
    pub mod stale_references;
    pub mod strategies;
    pub mod typed_keys;
    pub mod unlucky_hashes;
    pub mod unlucky_patterns;
    pub mod upsert;
    pub mod values;

    #[cfg(feature = "cuda")]
    pub mod bulk;
    #[cfg(feature = "cuda")]
    pub mod cluster_device;
    #[cfg(feature = "cuda")]
    pub mod device_memory;
    #[cfg(all(feature = "cuda", target_os = "linux"))]
    pub mod failing_calls;
    #[cfg(feature = "cuda")]
    pub mod interoperation;
    #[cfg(feature = "cuda")]
    pub mod simulated;
}

use common::{Test, full};
use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use warpset_testing::machines::{Gpus, Machine, cpus, gpus};

/// Tests for all machines.
const MODULES: &[&[Test]] = &[
    suite::incremental::TESTS,
    suite::cluster::TESTS,
    suite::cluster::cluster_once::TESTS,
    suite::cluster_faults::TESTS,
    suite::changed_files::TESTS,
    suite::changed_files::of_one_kind::TESTS,
    suite::compact_keys::TESTS,
    suite::compact_roots::TESTS,
    suite::cuckoo::TESTS,
    suite::dense_slots::TESTS,
    suite::errors::TESTS,
    suite::faults::TESTS,
    suite::faults::of_cuckoo_tables::TESTS,
    suite::filter::TESTS,
    suite::full_tables::TESTS,
    suite::growth::TESTS,
    suite::growth::once::TESTS,
    suite::histories::TESTS,
    suite::hostile_files::TESTS,
    suite::indexed::TESTS,
    suite::lookalikes::TESTS,
    suite::many_offers::TESTS,
    suite::memory_limits::TESTS,
    suite::memory_limits::of_keys::TESTS,
    suite::nodes::TESTS,
    suite::numpy::TESTS,
    suite::overlapping_calls::TESTS,
    suite::reading::TESTS,
    suite::results::TESTS,
    suite::retain::TESTS,
    suite::retain::retain_of_kinds::TESTS,
    suite::saved::TESTS,
    suite::saved::saved_once::TESTS,
    suite::seeds::TESTS,
    suite::self_deadlocks::TESTS,
    suite::self_deadlocks::self_deadlocks_of_all_kinds::TESTS,
    suite::single_vectors::TESTS,
    suite::single_vectors::single_keys::TESTS,
    suite::stale_references::TESTS,
    suite::stale_references::of_cuckoo_tables::TESTS,
    suite::strategies::TESTS,
    suite::typed_keys::TESTS,
    suite::unlucky_hashes::TESTS,
    suite::unlucky_patterns::TESTS,
    suite::upsert::TESTS,
    suite::values::TESTS,
];

#[cfg(feature = "cuda")]
const GPU_MODULES: &[&[Test]] = &[
    suite::bulk::TESTS,
    suite::cluster_device::TESTS,
    suite::cluster_faults::cluster_faults_on_gpu::TESTS,
    suite::device_memory::TESTS,
    suite::device_memory::once::TESTS,
    suite::faults::on_gpu::TESTS,
    suite::growth::on_gpu::TESTS,
    #[cfg(target_os = "linux")]
    suite::failing_calls::TESTS,
    suite::indexed::on_gpu::TESTS,
    suite::interoperation::TESTS,
    suite::values::on_gpu::TESTS,
];
#[cfg(not(feature = "cuda"))]
const GPU_MODULES: &[&[Test]] = &[];

fn main() -> ExitCode {
    if let Some(code) = suite::hostile_files::attacked() {
        return code;
    }
    let arguments = Arguments::from_args();
    let mut trials = suite::helpers::trials();
    // First those of the GPU: a simulated device's take long, one after another, and CPU tests fill the other cores.
    let on_gpus = || MODULES.iter().chain(GPU_MODULES).copied().flatten();
    let mut no_gpu = None;
    match gpus() {
        Gpus::Here(gpus) => trials.extend(gpus.iter().flat_map(|gpu| on_gpus().map(|test| trial(gpu, test)))),
        Gpus::NotHere(why) => {
            trials.extend(on_gpus().map(skipped));
            #[cfg(feature = "cuda")]
            trials.extend(suite::simulated::trials());
            no_gpu = Some(why);
        }
        Gpus::Broken(why) => trials.push(Trial::test("gpu::can_be_used", || Err(Failed::from(why)))),
    }
    let names = |part: &str| MODULES.iter().copied().flatten().any(|test| test.label().contains(part));
    assert!(OF_ONE_THREAD.iter().all(|part| names(part)), "a name in OF_ONE_THREAD is of no test");
    for machine in cpus() {
        let is_chosen = |test: &&Test| full() || machine.device.threads() > 1 || is_of_one_thread(test);
        trials.extend(MODULES.iter().copied().flatten().filter(is_chosen).map(|test| trial(&machine, test)));
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    if let Some(why) = no_gpu.filter(|_| conclusion.num_ignored > 0) {
        println!("{} GPU tests skipped: no CUDA device ({why})", conclusion.num_ignored);
        #[cfg(feature = "cuda")]
        println!("{} GPU tests passed on a simulated device", suite::simulated::passed());
        println!();
    }
    conclusion.exit_code()
}

/// Tests that say more of one thread than of several. In a plain run a CPU with one thread runs no others.
const OF_ONE_THREAD: [&str; 6] = [
    "faults::batches_that_are_stopped",
    "faults::callbacks_that_panic",
    "histories::widths_1_to_8",
    "indexed::factors_are_in_the_order_of_first_occurrence",
    "results::",
    "seeds::",
];

fn is_of_one_thread(test: &Test) -> bool {
    let label = test.label();
    OF_ONE_THREAD.iter().any(|part| label.contains(part))
}

fn trial(machine: &Machine, test: &'static Test) -> Trial {
    let (device, name) = (machine.device.clone(), format!("{}::{}", machine.name, test.label()));
    Trial::test(name.clone(), move || {
        guarded(name, || (test.run)(&device));
        Ok(())
    })
}

fn skipped(test: &'static Test) -> Trial {
    let fails = || Err(Failed::from("there is no CUDA device to run it on"));
    Trial::test(format!("gpu::{} (skipped: no CUDA device)", test.label()), fails).with_ignored_flag(true)
}

/// Ends the process with the test's name if the test does not end: an endless search would hang the suite, and on a GPU also the
/// context that all others use. The limit is far beyond the duration of any test, and no result depends on it.
fn guarded(name: String, test: impl FnOnce()) {
    let limit = Duration::from_secs(common::scaled(900, 2400));
    let (_ended, end) = channel::<()>();
    std::thread::spawn(move || {
        if end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            eprintln!("{name} has not ended after {limit:?}");
            std::process::abort();
        }
    });
    test();
}
