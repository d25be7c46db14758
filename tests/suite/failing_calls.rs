//! Each driver function that the library calls fails in turn, on a simulated device (`tests/device`), which can fail on request.
//!
//! The module `faults` lets the library's own calls fail, at marked places in its source. Here the driver itself refuses a call,
//! so that every place is covered, including those inside `cudarc`.
//!
//! Keeps this promise of `src/docs/errors.md`:
//!
//! - If any function of the driver or of NVRTC fails, the operation returns an error or recovers, and the next operation works.

use crate::common::vectors::distinct;
use crate::common::{scaled, tests};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use warpset::gpu::cudarc_0_19::DeviceExt;
use warpset::gpu::cudarc_0_19::cudarc::driver::DriverError;
use warpset::gpu::{DeviceBatch, Program, compile};
use warpset::{BucketTable, Device, Error, IndexedTable, Request};
use warpset_testing::simulated::Faults;

tests![every_function_of_the_driver_fails, every_function_of_nvrtc_fails, growth_has_little_memory];

/// Functions that are called in drops, which return nothing, and two whose failure has a defined result: a thread whose context
/// cannot be queried counts as one without a context, and memory that the driver does not describe counts as pageable.
const MADE_GOOD: &[&str] = &[
    "cuCtxGetCurrent",
    "cuPointerGetAttribute",
    "cuMemAddressFree",
    "cuMemRelease",
    "cuMemUnmap",
    "cuMemFree_v2",
    "cuMemFreeHost",
    "cuMemFreeAsync",
    "cuEventDestroy_v2",
    "cuStreamDestroy_v2",
    "cuModuleUnload",
    "cuDevicePrimaryCtxRelease_v2",
];

/// Lower bound of the driver functions that the library and its tests call.
const FEWEST: usize = 30;

/// Source of a failure: a call of the library, or a call of `cudarc` by this test.
#[derive(Debug)]
#[allow(dead_code)] // printed
enum Failed {
    Library(Error),
    Driver(DriverError),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl From<DriverError> for Failed {
    fn from(error: DriverError) -> Self {
        Self::Driver(error)
    }
}

/// Uses tables that grow, batches from the host and in device memory, and all reading calls. Panics if a result is wrong.
fn work(ordinal: usize) -> Result<(), Failed> {
    let device = Device::gpu(ordinal)?;
    let words = distinct(3, 0, scaled(4000, 1000));
    let count = words.len() as u64 / 3;
    let rows = IndexedTable::builder(3).capacity(100).grows(true).build(&device)?;
    let table = BucketTable::builder(3).capacity(100).grows(true).build(&device)?;
    let everything = Request::new().outcomes(true).references(true).new_references(true);
    let batch = rows.find_or_put_many(&words)?;
    if let Some(error) = batch.error {
        return Err(error.into());
    }
    assert_eq!((batch.tally.new, rows.len()?), (count, count), "rows");
    let batch = table.find_or_put_many_with(&words, everything)?;
    if let Some(error) = batch.error {
        return Err(error.into());
    }
    assert_eq!((batch.tally.new, table.len()?), (count, count), "vectors");
    let references: Vec<_> = batch.references.iter().flatten().copied().collect();
    assert!(table.get_many(&references)? == words, "references are to other vectors");
    assert!(table.contains_many(&words)?.iter().all(|stored| *stored), "something is lost");
    assert_eq!(table.stats()?.stored, count, "statistics");
    assert_eq!(table.iter().collect::<Result<Vec<_>, _>>()?.len() as u64, count, "iteration");
    let context = device.cuda_context().expect("a GPU");
    let (stream, other) = (context.new_stream()?, context.new_stream()?);
    let vectors = other.clone_htod(&words)?;
    let mut outcomes = other.alloc_zeros::<u8>(count as usize)?;
    table.find_or_put_device(&stream, DeviceBatch::new(&vectors, count as usize).outcomes(&mut outcomes))?;
    assert!(other.clone_dtoh(&outcomes)?.iter().all(|outcome| *outcome == 2), "all were stored before");
    drop((vectors, outcomes));
    stream.synchronize()?;
    table.clear()?;
    assert_eq!(table.len()?, 0, "after clearing");
    let sliced = BucketTable::builder(3).capacity(70_000).build(&device)?;
    if let Some(error) = sliced.find_or_put_many(&words)?.error {
        return Err(error.into());
    }
    sliced.reserve_total(140_000)?;
    let stored = sliced.iter().collect::<warpset::Result<Vec<_>>>()?.len() as u64;
    assert_eq!((sliced.len()?, stored), (count, count), "a table with slices that has grown");
    // Errors that a drop or a call of `cudarc` has recorded instead of returning them.
    context.check_err()?;
    Ok(())
}

/// Runs a test of this module in a process of its own: faults of the simulated driver strike any thread.
fn alone(device: &Device, name: &str, test: impl FnOnce(&Faults)) {
    const ALONE: &str = "WARPSET_TEST_ALONE";
    // NVIDIA's driver does not fail on request.
    let Some(faults) = Faults::find() else { return };
    if std::env::var_os(ALONE).is_some() {
        return test(&faults);
    }
    let ordinal = device.cuda_context().expect("registered for GPUs").ordinal();
    let mut command = Command::new(std::env::current_exe().expect("the path of this program"));
    command.args([&format!("gpu{ordinal}::failing_calls::{name}"), "--exact"]).env(ALONE, "1").stdin(Stdio::null());
    // Frees that are refused leave memory.
    let output = command.env("WARPSET_SIMULATED_LEAKS", "0").output().expect("this program");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn every_function_of_the_driver_fails(device: &Device) {
    alone(device, "every_function_of_the_driver_fails", |faults| each_function_of_the_driver(device, faults));
}

fn every_function_of_nvrtc_fails(device: &Device) {
    alone(device, "every_function_of_nvrtc_fails", each_function_of_nvrtc);
}

fn growth_has_little_memory(device: &Device) {
    alone(device, "growth_has_little_memory", |faults| growth_recovers_or_changes_nothing(device, faults));
}

/// Each allocation of the growth of a table with slices finds no memory once. If that is the memory for vectors that are left, or
/// for their list, all vectors are put again. Hashes are equal, so some vectors are in another slice than their first one.
fn growth_recovers_or_changes_nothing(device: &Device, faults: &Faults) {
    const ALLOCATION: &str = "cuMemAlloc_v2";
    let words = distinct(3, 0, 300);
    let mut recovered = 0;
    for call in 1.. {
        let table = BucketTable::builder(3).capacity(70_000).hash_mask(0).build(device).unwrap();
        assert_eq!(table.find_or_put_many(&words).unwrap().tally.new, 300);
        let slots = table.slots();
        faults.set(&format!("{ALLOCATION}:{call}=memory"));
        let grown = table.reserve_total(2 * slots);
        let failed = faults.calls(ALLOCATION) >= call;
        faults.set("");
        match grown {
            Ok(()) => assert_eq!(table.slots(), 2 * slots),
            Err(Error::OutOfMemory { .. }) => assert_eq!(table.slots(), slots, "call {call}"),
            Err(error) => panic!("call {call}: {error:?}"),
        }
        let again = table.find_or_put_many(&words).unwrap().tally;
        assert_eq!((table.len().unwrap(), again.new, again.seen), (300, 0, 300), "call {call}");
        if !failed {
            break;
        }
        recovered += usize::from(grown.is_ok());
    }
    assert!(recovered >= 2, "{recovered} growths without the memory of a list or of its vectors");
}

/// Fails the first, the middle and the last call of each function that is called.
fn each_function_of_the_driver(device: &Device, faults: &Faults) {
    let ordinal = device.cuda_context().expect("registered for GPUs").ordinal();
    let mut names: Vec<&str> = include_str!("../device/functions.txt").lines().collect();
    work(ordinal).expect("without faults, and all kernels are compiled");
    faults.set("");
    work(ordinal).expect("without faults");
    names.retain(|name| faults.calls(name) > 0);
    assert!(names.len() >= FEWEST, "{} functions are called: {names:?}", names.len());
    let mut unnoticed = Vec::new();
    for name in &names {
        faults.set("");
        work(ordinal).unwrap_or_else(|error| panic!("without faults, after those before {name}: {error:?}"));
        let calls = faults.calls(name);
        let mut errors = 0;
        for call in [1, calls.div_ceil(2), calls] {
            // The call fails once: a driver whose waits fail repeatedly has lost the context, and then no work is under way.
            faults.set(&format!("{name}:{call}=unknown"));
            let result = catch_unwind(AssertUnwindSafe(|| work(ordinal)));
            let failed = faults.calls(name) >= call;
            faults.set("");
            // The next caller gets an error that a drop has recorded.
            let _ = device.cuda_context().expect("a GPU").check_err();
            let result = result.unwrap_or_else(|_| panic!("{name}: a wrong result, or a panic, when call {call} fails"));
            errors += usize::from(failed && result.is_err());
        }
        if errors == 0 {
            unnoticed.push(*name);
        }
    }
    unnoticed.retain(|name| !MADE_GOOD.contains(name));
    assert!(unnoticed.is_empty(), "no call returns an error when these fail: {unnoticed:?}");
}

/// Functions of NVRTC that a compilation calls, in their order.
const OF_NVRTC: &[&str] = &[
    "nvrtcGetNumSupportedArchs",
    "nvrtcGetSupportedArchs",
    "nvrtcCreateProgram",
    "nvrtcCompileProgram",
    "nvrtcGetCUBINSize",
    "nvrtcGetCUBIN",
];

/// Fails each call of a compilation: the error says what failed, and the next compilation succeeds.
fn each_function_of_nvrtc(faults: &Faults) {
    let compile = |source: &str| compile(&BucketTable::builder(3), Program::Own { name: "failing.cu", source }, (9, 0));
    let source = "extern \"C\" __global__ void nothing() {}";
    faults.set("");
    let image = compile(source).expect("without faults");
    for name in OF_NVRTC {
        assert!(faults.calls(name) > 0, "{name} is not called");
    }
    for (name, status) in OF_NVRTC.iter().flat_map(|name| ["unknown", "memory"].map(|status| (name, status))) {
        faults.set(&format!("{name}:1={status}"));
        let error = compile(source).expect_err(name);
        let expected = if status == "memory" { "NVRTC_ERROR_OUT_OF_MEMORY" } else { "NVRTC_ERROR_INTERNAL_ERROR" };
        assert!(error.to_string().contains(expected), "{name}: {error}");
        assert!(compile(source).expect("the fault is over") == image, "{name}");
    }
    // A log that cannot be read leaves the error of the compilation.
    for name in ["nvrtcGetProgramLogSize", "nvrtcGetProgramLog"] {
        faults.set(&format!("{name}:1=unknown"));
        let error = compile("nonsense").expect_err("nonsense");
        assert!(
            matches!(error, Error::Compile { .. }) && error.to_string().contains("NVRTC_ERROR_COMPILATION"),
            "{name}: {error}"
        );
        assert_eq!(faults.calls(name), 1);
    }
    faults.set("");
}
