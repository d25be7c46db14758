//! GPU tests on a simulated device (`tests/device`), for machines without a GPU.
//!
//! Each trial starts this program again, by `tests/device/with`, with a group of its GPU tests. `tests/device/with N cargo test`
//! replaces that: the whole suite then runs on N simulated devices. `WARPSET_SIMULATED_DEVICE=0` switches these trials off.
//!
//! Trials of the second kind start it with a mistake: the simulated driver leaves some calls out, or does them wrongly, as if the
//! library had forgotten them. The tests must then fail.
//!
//! Keeps this promise of `src/docs/how_it_is_checked.md`:
//!
//! - Each mistake of `MISTAKES` makes a named test fail.

use crate::common::full;
use libtest_mimic::{Failed, Trial};
use std::collections::HashSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

const WITH: &str = "tests/device/with";
const VARIABLE: &str = "WARPSET_SIMULATED_DEVICE";

/// Groups of tests that run on the simulated device: they reach most of the host layer, and need few compiled kernels.
const CHOICE: &[&str] = &[
    "bucket::growth::",
    "bulk::",
    "bucket::results::",
    "bucket::stale_references::",
    "bucket::cluster_device::what_is_stored_here_stays_in_device_memory",
    "bucket::memory_limits::each_allocation_of_the_last_growth_fails",
    "bucket::memory_limits::four_threads_reach_the_limit",
    "errors::",
    "failing_calls::",
    "interoperation::",
];

/// Further groups of a full run.
const MORE: &[&str] = &[
    "bucket::seeds::",
    "bucket::incremental::",
    "bucket::cluster_device::device_batches_report_what_host_batches_do",
    "bucket::cluster_device::buffers_that_are_too_short_on_a_rank",
    "bucket::memory_limits::growth_by_hand_keeps_the_limit",
    "bucket::memory_limits::tables_",
];

/// A mistake in driver calls, and a test that finds it.
struct Mistake {
    what: &'static str,
    /// Fault in the format of `tests/device/src/driver/fault.rs`.
    fault: &'static str,
    test: &'static str,
}

impl Mistake {
    /// Class of the mistake: `skipped`, `short`, ... A plain run has the first of each class.
    fn class(&self) -> &'static str {
        self.fault.rsplit('=').next().expect("FUNCTION:CALL=CLASS")
    }
}

/// Mistakes that only a second device shows: the program then has two.
const MISTAKES_OF_TWO: &[Mistake] = &[Mistake {
    what: "a table is made in another device's context",
    fault: "cuCtxSetCurrent:9=other",
    test: "interoperation::memory_of_others",
}];

const MISTAKES: &[Mistake] = &[
    Mistake {
        what: "no stream waits for an event",
        fault: "cuStreamWaitEvent:1+=skipped",
        test: "interoperation::buffers_that_are_freed_at_once",
    },
    Mistake {
        what: "no event is recorded",
        fault: "cuEventRecord:1+=skipped",
        test: "interoperation::buffers_that_are_freed_at_once",
    },
    Mistake {
        what: "the host waits for no stream",
        fault: "cuStreamSynchronize:1+=skipped",
        test: "bucket::growth::grow_moves_every_vector",
    },
    Mistake {
        what: "the host waits for the first stream only",
        fault: "cuStreamSynchronize:2+=skipped",
        test: "bucket::growth::tables_grow_over_many_batches",
    },
    Mistake {
        what: "the vectors of a segment are not sent",
        fault: "cuMemcpyHtoDAsync_v2:1+=skipped",
        test: "bucket::results::every_combination_of_results",
    },
    Mistake {
        what: "copies to the device are a byte too short",
        fault: "cuMemcpyHtoDAsync_v2:1+=short",
        test: "bucket::growth::grow_moves_every_vector",
    },
    Mistake {
        what: "copies to the host are a byte too short",
        fault: "cuMemcpyDtoHAsync_v2:1+=short",
        test: "bucket::growth::grow_moves_every_vector",
    },
    Mistake {
        what: "copies to the device are a byte too long",
        fault: "cuMemcpyHtoDAsync_v2:1+=long",
        test: "interoperation::typed_keys_in_device_memory",
    },
    Mistake {
        what: "results are not copied to the host",
        fault: "cuMemcpyDtoHAsync_v2:3+=skipped",
        test: "bucket::growth::grow_moves_every_vector",
    },
    Mistake {
        what: "counts are not cleared before a batch",
        fault: "cuMemsetD8Async:1+=skipped",
        test: "bucket::growth::grow_moves_every_vector",
    },
    Mistake {
        what: "a new table is not cleared",
        fault: "cuLaunchKernel:1=skipped",
        test: "bucket::growth::grow_moves_every_vector",
    },
    // A search that never ran counts no vectors, so its caller would offer them again, and no result would be wrong.
    // `staging::Stage::finish` asserts the count in debug builds.
    Mistake {
        what: "the first search is not launched",
        fault: "cuLaunchKernel:2=skipped",
        test: "bucket::growth::tables_grow_over_many_batches",
    },
    Mistake {
        what: "memory is not freed",
        fault: "cuMemFree_v2:1+=skipped",
        test: "interoperation::errors_of_others_are_theirs",
    },
    Mistake {
        what: "a buffer is freed on another stream",
        fault: "cuMemFreeAsync:1+=elsewhere",
        test: "interoperation::buffers_that_are_freed_at_once",
    },
    Mistake {
        what: "the context of the calling thread stays what it was",
        fault: "cuCtxSetCurrent:2+=skipped",
        test: "interoperation::contexts_of_others",
    },
    Mistake {
        what: "rows are mapped, but access is not asked for",
        fault: "cuMemSetAccess:1+=skipped",
        test: "indexed::references_are_all_numbers_below_len",
    },
    Mistake {
        what: "addresses are given back while memory is mapped to them",
        fault: "cuMemUnmap:1+=skipped",
        test: "indexed::references_are_all_numbers_below_len",
    },
    Mistake {
        what: "an event is recorded before the last operation",
        fault: "cuEventRecord:1+=early",
        test: "interoperation::buffers_that_are_freed_at_once",
    },
    Mistake {
        what: "events are recorded on another stream",
        fault: "cuEventRecord:1+=elsewhere",
        test: "interoperation::buffers_that_are_freed_at_once",
    },
    Mistake {
        what: "another stream waits for an event",
        fault: "cuStreamWaitEvent:1+=elsewhere",
        test: "interoperation::buffers_that_are_freed_at_once",
    },
    Mistake {
        what: "kernels run on another stream",
        fault: "cuLaunchKernel:1+=elsewhere",
        test: "bucket::growth::grow_moves_every_vector",
    },
    Mistake { what: "kernels run twice", fault: "cuLaunchKernel:1+=twice", test: "bucket::growth::grow_moves_every_vector" },
    Mistake {
        what: "arguments of kernels are swapped",
        fault: "cuLaunchKernel:1+=swapped",
        test: "bucket::growth::grow_moves_every_vector",
    },
    Mistake {
        what: "half of the vectors is sent",
        fault: "cuMemcpyHtoDAsync_v2:1+=half",
        test: "bucket::growth::grow_moves_every_vector",
    },
    Mistake {
        what: "vectors are sent to a wrong place",
        fault: "cuMemcpyHtoDAsync_v2:1+=shifted",
        test: "bucket::growth::grow_moves_every_vector",
    },
    Mistake {
        what: "results are copied from a wrong place",
        fault: "cuMemcpyDtoHAsync_v2:1+=shifted",
        test: "bucket::growth::grow_moves_every_vector",
    },
    Mistake {
        what: "vectors are sent on another stream",
        fault: "cuMemcpyHtoDAsync_v2:1+=elsewhere",
        test: "bucket::growth::grow_moves_every_vector",
    },
    Mistake {
        what: "results are copied on another stream",
        fault: "cuMemcpyDtoHAsync_v2:1+=elsewhere",
        test: "bucket::growth::grow_moves_every_vector",
    },
    Mistake {
        what: "counts are cleared on another stream",
        fault: "cuMemsetD8Async:1+=elsewhere",
        test: "bucket::growth::grow_moves_every_vector",
    },
    Mistake {
        what: "half of what is to be cleared is",
        fault: "cuMemsetD8Async:1+=half",
        test: "bucket::growth::grow_moves_every_vector",
    },
    Mistake {
        what: "device memory has half of its size",
        fault: "cuMemAlloc_v2:1+=half",
        test: "bucket::growth::grow_moves_every_vector",
    },
    Mistake {
        what: "pinned memory has half of its size",
        fault: "cuMemHostAlloc:1+=half",
        test: "bucket::growth::grow_moves_every_vector",
    },
    Mistake {
        what: "memory of a pool has half of its size",
        fault: "cuMemAllocAsync:1+=half",
        test: "interoperation::typed_keys_in_device_memory",
    },
    Mistake {
        what: "memory of a pool is allocated on another stream",
        fault: "cuMemAllocAsync:1+=elsewhere",
        test: "interoperation::typed_keys_in_device_memory",
    },
    Mistake {
        what: "results are read before they are copied",
        fault: "cuStreamSynchronize:1+=skipped,cuMemcpyDtoHAsync_v2:1+=late",
        test: "bucket::results::every_combination_of_results",
    },
    Mistake {
        what: "a stage is used again while its vectors are sent",
        fault: "cuStreamSynchronize:1+=skipped,cuMemcpyHtoDAsync_v2:1+=late",
        test: "bucket::results::every_combination_of_results",
    },
    Mistake { what: "an allocation is left", fault: "cuMemFree_v2:3=skipped", test: "bucket::growth::grow_moves_every_vector" },
    Mistake {
        what: "memory of a pool is left",
        fault: "cuMemFreeAsync:1+=skipped",
        test: "interoperation::typed_keys_in_device_memory",
    },
    Mistake { what: "pinned memory is left", fault: "cuMemFreeHost:1+=skipped", test: "bucket::growth::grow_moves_every_vector" },
];

/// Number of tests that were run on a simulated device.
static PASSED: AtomicUsize = AtomicUsize::new(0);

pub fn passed() -> usize {
    // Relaxed: the count is read after all trials have ended.
    PASSED.load(Ordering::Relaxed)
}

/// Returns the trials; none if the environment disables them, or if this package lacks the simulated device.
pub fn trials() -> Vec<Trial> {
    if std::env::var_os(VARIABLE).is_some() || !cfg!(target_os = "linux") || !Path::new(WITH).exists() {
        return Vec::new();
    }
    let group = |group: &'static str| {
        Trial::test(format!("simulated device::{}", group.trim_end_matches(':')), move || {
            let output = run(1, &[&format!("gpu0::{group}")], "");
            let passed = passed_by(&output).filter(|passed| output.status.success() && *passed > 0);
            let passed = passed.ok_or_else(|| Failed::from(text(&output)))?;
            // Relaxed: only the sum matters.
            PASSED.fetch_add(passed, Ordering::Relaxed);
            Ok(())
        })
    };
    let mistake = |devices: u32, mistake: &'static Mistake| {
        Trial::test(format!("simulated device::mistakes::{}", mistake.what), move || {
            let test = format!("gpu{}::{}", devices - 1, mistake.test);
            let arguments = [test.as_str(), "--exact"];
            // Trials above run the tests of the choice without it.
            if devices > 1 || !CHOICE.iter().any(|group| mistake.test.starts_with(group)) {
                let output = run(devices, &arguments, "");
                if passed_by(&output) != Some(1) {
                    return Err(format!("{test} fails without the mistake: {}", text(&output)).into());
                }
            }
            let output = run(devices, &arguments, mistake.fault);
            if !output.status.success() {
                return Ok(());
            }
            Err(format!("{} passes with it: {}", mistake.test, text(&output)).into())
        })
    };
    let mistakes = [(1, MISTAKES), (2, MISTAKES_OF_TWO)].into_iter();
    let mistakes = mistakes.flat_map(|(devices, mistakes)| mistakes.iter().map(move |mistake| (devices, mistake)));
    let mut met = HashSet::new();
    let mistakes = mistakes.filter(|(_, mistake)| met.insert(mistake.class()) || full());
    let groups = CHOICE.iter().chain(if full() { MORE } else { &[] }).copied();
    groups.map(group).chain(mistakes.map(|(devices, each)| mistake(devices, each))).collect()
}

/// Runs this program on simulated devices. The run fails if memory is left at its end.
fn run(devices: u32, arguments: &[&str], fault: &str) -> Output {
    let program = std::env::current_exe().expect("the path of this program");
    let mut command = Command::new(WITH);
    command.arg(devices.to_string()).arg(program).args(arguments).stdin(Stdio::null());
    command.env("WARPSET_SIMULATED_LEAKS", "fail").env("WARPSET_SIMULATED_FAULT", fault).env("RUST_BACKTRACE", "0");
    command.env("WARPSET_TEST_FAST", "1").env_remove("WARPSET_TEST_FULL");
    command.output().unwrap_or_else(|error| panic!("{WITH}: {error}"))
}

/// Number of tests that a run reports as passed.
fn passed_by(output: &Output) -> Option<usize> {
    let text = String::from_utf8_lossy(&output.stdout);
    let result = text.lines().rev().find_map(|line| line.strip_prefix("test result: ok. "))?;
    result.split(' ').next()?.parse().ok()
}

fn text(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{}\n{out}\n{err}", output.status)
}
