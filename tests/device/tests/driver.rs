//! The simulated driver: its results, which must equal those of a real GPU, and its reports of mistakes.
//!
//! The script `with` starts this program again on simulated devices, with one case for each test. `answers` also runs on a real
//! GPU if there is one.

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUresult, CUstream};
use std::ffi::c_void;
use std::process::{Command, Output};

const CASE: &str = "WARPSET_TEST_CASE";

fn run(case: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/with"));
    command.arg("2").arg(std::env::current_exe().expect("this program"));
    command.args(["one_case", "--exact", "--nocapture"]).env(CASE, case).env("RUST_BACKTRACE", "0");
    command.envs(variables.iter().copied());
    command.output().expect("the script `with`")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[track_caller]
fn passes(case: &str, variables: &[(&str, &str)]) {
    let output = run(case, variables);
    assert!(output.status.success() && text(&output).contains("1 passed"), "{case}: {}", text(&output));
}

/// Asserts that the process ends with this report.
#[track_caller]
fn is_reported(case: &str, report: &str) {
    let output = run(case, &[]);
    let text = text(&output);
    assert!(!output.status.success() && text.contains("simulated device: ") && text.contains(report), "{case}: {text}");
}

#[test]
fn one_case() {
    let Ok(case) = std::env::var(CASE) else { return };
    let (_, run) = CASES.iter().find(|(name, _)| *name == case).expect("a case");
    run();
}

const CASES: &[(&str, fn())] = &[
    ("answers", answers),
    ("lost", lost),
    ("third allocation", third_allocation),
    ("copy out of bounds", copy_out_of_bounds),
    ("copy of freed memory", copy_of_freed_memory),
    ("pool without order", pool_without_order),
    ("pool with order", pool_with_order),
    ("pool freed elsewhere", pool_freed_elsewhere),
    ("pinned freed early", pinned_freed_early),
    ("copies without order", copies_without_order),
    ("a stage used again early", a_stage_used_again_early),
    ("copies with order", copies_with_order),
    ("destroyed stream", destroyed_stream),
    ("unknown function", unknown_function),
    ("still mapped", still_mapped),
    ("unmapped early", unmapped_early),
    ("fault", fault),
    ("leak", leak),
    ("access by the host", access_by_the_host),
];

fn status<T>(result: Result<T, DriverError>) -> CUresult {
    result.err().map_or(CUresult::CUDA_SUCCESS, |error| error.0)
}

/// Initialises the driver, and makes the first device's context current.
fn start() {
    result::init().unwrap();
    let device = result::device::get(0).unwrap();
    // SAFETY: the device exists, and the context is never released.
    unsafe { result::ctx::set_current(result::primary_ctx::retain(device).unwrap()) }.unwrap();
}

fn stream() -> CUstream {
    result::stream::create(result::stream::StreamKind::NonBlocking).unwrap()
}

/// Tests promises in the driver's documentation, for calls whose results do not depend on time.
fn answers() {
    start();
    // SAFETY: all memory is used within its size and lifetime, except where an error is expected instead of an access.
    unsafe {
        assert_eq!(status(result::malloc_sync(0)), CUresult::CUDA_ERROR_INVALID_VALUE);
        assert_eq!(status(result::malloc_sync(1 << 50)), CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        let memory = result::malloc_sync(1000).unwrap();
        assert_eq!(memory % 256, 0);
        let stream = stream();
        let nothing = result::malloc_async(stream, 0).unwrap();
        assert_eq!(nothing, 0);
        result::free_async(nothing, stream).unwrap();
        // A copy from pageable memory has read the memory when the call returns.
        let mut numbers: Vec<u8> = (0..=255).cycle().take(1000).collect();
        result::memcpy_htod_async(memory, &numbers, stream).unwrap();
        numbers.fill(7);
        // A copy to pageable memory has written the memory when the call returns.
        let mut back = vec![0u8; 1000];
        result::memcpy_dtoh_async(&mut back, memory, stream).unwrap();
        assert!(back.iter().zip((0..=255u8).cycle()).all(|(one, other)| *one == other));
        result::memset_d8_async(memory + 10, 9, 20, stream).unwrap();
        result::stream::synchronize(stream).unwrap();
        result::memcpy_dtoh_async(&mut back, memory, stream).unwrap();
        assert_eq!((back[9], back[10], back[29], back[30]), (9, 9, 9, 30));
        // Test attributes of addresses.
        let (mut kind, mut start, mut size) = (0u32, 0u64, 0usize);
        let ask = |place: *mut c_void, attribute, address| sys::cuPointerGetAttribute(place, attribute, address);
        use sys::CUpointer_attribute::*;
        assert_eq!(ask((&raw mut kind).cast(), CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory + 999), CUresult::CUDA_SUCCESS);
        assert_eq!(ask((&raw mut start).cast(), CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, memory + 999), CUresult::CUDA_SUCCESS);
        assert_eq!(ask((&raw mut size).cast(), CU_POINTER_ATTRIBUTE_RANGE_SIZE, memory + 999), CUresult::CUDA_SUCCESS);
        assert_eq!((kind, start, size), (sys::CUmemorytype::CU_MEMORYTYPE_DEVICE as u32, memory, 1000));
        let on_host = back.as_ptr() as u64;
        let known = ask((&raw mut kind).cast(), CU_POINTER_ATTRIBUTE_MEMORY_TYPE, on_host);
        assert_eq!(known, CUresult::CUDA_ERROR_INVALID_VALUE);
        let pinned = result::malloc_host(100, 0).unwrap();
        assert_eq!(ask((&raw mut kind).cast(), CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pinned as u64), CUresult::CUDA_SUCCESS);
        assert_eq!(kind, sys::CUmemorytype::CU_MEMORYTYPE_HOST as u32);
        result::free_host(pinned).unwrap();
        // An event that was never recorded is complete, and no call waits for it.
        let event = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING).unwrap();
        assert_eq!(sys::cuEventQuery(event), CUresult::CUDA_SUCCESS);
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        result::stream::wait_event(stream, event, flags).unwrap();
        result::event::record(event, stream).unwrap();
        result::event::synchronize(event).unwrap();
        assert_eq!(sys::cuEventQuery(event), CUresult::CUDA_SUCCESS);
        // Only multiples of the granularity can be reserved.
        let mut address = 0;
        let odd = sys::cuMemAddressReserve(&mut address, 1000, 0, 0, 0);
        assert_eq!(odd, CUresult::CUDA_ERROR_INVALID_VALUE);
        // During a capture, a call that waits is refused, and invalidates the capture.
        result::stream::begin_capture(stream, sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED).unwrap();
        assert!(result::stream::is_capturing(stream).unwrap() == sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE);
        assert_eq!(status(result::stream::synchronize(stream)), CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        assert_eq!(status(result::stream::end_capture(stream)), CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
        result::event::destroy(event).unwrap();
        result::stream::destroy(stream).unwrap();
        result::free_sync(memory).unwrap();
    }
    let mut device = 0;
    // SAFETY: `device` is valid for a write.
    assert_eq!(unsafe { sys::cuDeviceGet(&mut device, 1000) }, CUresult::CUDA_ERROR_INVALID_DEVICE);
}

#[test]
fn the_simulated_device_answers() {
    for seed in ["0", "1", "77"] {
        passes("answers", &[("WARPSET_SIMULATED_SEED", seed)]);
    }
}

/// Does nothing without a GPU.
#[test]
fn a_gpu_answers_the_same() {
    let is_simulated = std::env::var("WARPSET_SIMULATED_DEVICE").is_ok_and(|devices| devices != "0");
    // SAFETY: `cudarc` loads the same library.
    if is_simulated || !unsafe { sys::is_culib_present() } || result::init().is_err() {
        println!("skipped: no CUDA device");
        return;
    }
    answers();
}

fn third_allocation() {
    start();
    // SAFETY: the allocations are not used.
    let made: Vec<CUresult> = (0..4).map(|_| status(unsafe { result::malloc_sync(100) })).collect();
    assert_eq!(made.iter().filter(|status| **status == CUresult::CUDA_SUCCESS).count(), 3);
    assert_eq!(made[2], CUresult::CUDA_ERROR_OUT_OF_MEMORY);
}

#[test]
fn the_nth_call_fails() {
    passes("third allocation", &[("WARPSET_SIMULATED_FAULT", "cuMemAlloc_v2:3=memory")]);
}

fn lost() {
    start();
    // SAFETY: the memory is never freed, because the device is lost.
    let memory = unsafe { result::malloc_sync(100) }.unwrap();
    let stream = stream();
    let lost = CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE;
    // SAFETY: the accesses are within the allocation.
    let calls = || unsafe {
        [
            status(result::memset_d8_async(memory, 1, 100, stream)),
            status(result::stream::synchronize(stream)),
            status(result::malloc_sync(100)),
            status(result::free_sync(memory)),
        ]
    };
    assert_eq!(calls(), [lost; 4]);
    assert_eq!(calls(), [lost; 4]);
    // Device 1 is not lost.
    let other = result::device::get(1).unwrap();
    // SAFETY: as in `start`.
    unsafe {
        result::ctx::set_current(result::primary_ctx::retain(other).unwrap()).unwrap();
        assert_eq!(status(result::malloc_sync(100)), CUresult::CUDA_SUCCESS);
    }
}

#[test]
fn a_lost_device_stays_lost() {
    passes("lost", &[("WARPSET_SIMULATED_FAULT", "cuMemsetD8Async:1=lost")]);
}

fn copy_out_of_bounds() {
    start();
    // SAFETY: the conditions are broken on purpose; the process ends with a report.
    unsafe {
        let memory = result::malloc_sync(100).unwrap();
        let _ = result::memset_d8_async(memory + 50, 1, 51, stream());
    }
}

fn copy_of_freed_memory() {
    start();
    // SAFETY: the conditions are broken on purpose; the process ends with a report.
    unsafe {
        let memory = result::malloc_sync(100).unwrap();
        result::free_sync(memory).unwrap();
        let _ = result::memset_d8_async(memory, 1, 100, stream());
    }
}

fn pool_without_order() {
    start();
    // SAFETY: the conditions are broken on purpose; the process ends with a report.
    unsafe {
        let (one, other) = (stream(), stream());
        let memory = result::malloc_async(one, 100).unwrap();
        let _ = result::memset_d8_async(memory, 1, 100, other);
    }
}

/// Uses of a pool's memory that are ordered by an event, and by a wait of the host.
fn pool_with_order() {
    start();
    // SAFETY: each stream is ordered after the one before.
    unsafe {
        let [one, other, third] = [stream(), stream(), stream()];
        let memory = result::malloc_async(one, 100).unwrap();
        let event = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING).unwrap();
        result::event::record(event, one).unwrap();
        result::stream::wait_event(other, event, sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT).unwrap();
        result::memset_d8_async(memory, 1, 100, other).unwrap();
        result::stream::synchronize(other).unwrap();
        let mut back = [0u8; 100];
        result::memcpy_dtoh_async(&mut back, memory, third).unwrap();
        assert_eq!(back, [1; 100]);
        result::free_async(memory, third).unwrap();
        result::stream::synchronize(third).unwrap();
    }
}

fn pool_freed_elsewhere() {
    start();
    // SAFETY: the conditions are broken on purpose; the process ends with a report.
    unsafe {
        let (one, other) = (stream(), stream());
        let memory = result::malloc_async(one, 100).unwrap();
        result::stream::synchronize(one).unwrap();
        result::memset_d8_async(memory, 1, 100, one).unwrap();
        let _ = result::free_async(memory, other);
    }
}

fn pinned_freed_early() {
    start();
    // SAFETY: the conditions are broken on purpose; the process ends with a report.
    unsafe {
        let memory = result::malloc_sync(100).unwrap();
        let pinned = result::malloc_host(100, 0).unwrap();
        result::memcpy_htod_async(memory, std::slice::from_raw_parts(pinned.cast::<u8>(), 100), stream()).unwrap();
        let _ = result::free_host(pinned);
    }
}

/// A copy reads memory that a fill of another stream writes.
fn copies_without_order() {
    start();
    // SAFETY: the conditions are broken on purpose; the process ends with a report.
    unsafe {
        let memory = result::malloc_sync(100).unwrap();
        let pinned = std::slice::from_raw_parts_mut(result::malloc_host(100, 0).unwrap().cast::<u8>(), 100);
        let (one, other) = (stream(), stream());
        result::memset_d8_async(memory + 40, 1, 20, one).unwrap();
        let _ = result::memcpy_dtoh_async(&mut pinned[..50], memory, other);
    }
}

/// A copy writes to pinned memory that a copy of another stream is still reading.
fn a_stage_used_again_early() {
    start();
    // SAFETY: the conditions are broken on purpose; the process ends with a report.
    unsafe {
        let memory = result::malloc_sync(200).unwrap();
        let stage = std::slice::from_raw_parts_mut(result::malloc_host(100, 0).unwrap().cast::<u8>(), 100);
        let (one, other) = (stream(), stream());
        result::memcpy_htod_async(memory, stage, one).unwrap();
        let _ = result::memcpy_dtoh_async(stage, memory + 100, other);
    }
}

/// Overlapping copies that an event or the host orders, reads of the same bytes, and writes to different bytes.
fn copies_with_order() {
    start();
    // SAFETY: all accesses are in bounds, and conflicting accesses are ordered.
    unsafe {
        let memory = result::malloc_sync(100).unwrap();
        let stages = std::slice::from_raw_parts_mut(result::malloc_host(200, 0).unwrap().cast::<u8>(), 200);
        let (first, second) = stages.split_at_mut(100);
        let (one, other) = (stream(), stream());
        result::memset_d8_async(memory, 1, 50, one).unwrap();
        result::memset_d8_async(memory + 50, 2, 50, other).unwrap();
        let event = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING).unwrap();
        result::event::record(event, one).unwrap();
        result::stream::wait_event(other, event, sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT).unwrap();
        result::stream::synchronize(other).unwrap();
        result::memcpy_dtoh_async(first, memory, one).unwrap();
        result::memcpy_dtoh_async(second, memory, other).unwrap();
        result::stream::synchronize(one).unwrap();
        result::stream::synchronize(other).unwrap();
        assert!(first == second && (first[49], first[50]) == (1, 2));
        result::memcpy_htod_async(memory, first, one).unwrap();
        result::stream::synchronize(one).unwrap();
    }
}

fn destroyed_stream() {
    start();
    let stream = stream();
    // SAFETY: the conditions are broken on purpose; the process ends with a report.
    unsafe {
        result::stream::destroy(stream).unwrap();
        let _ = result::stream::synchronize(stream);
    }
}

fn unknown_function() {
    start();
    let mut flags = 0;
    // SAFETY: the function is not simulated, so the process ends with a report.
    let _ = unsafe { sys::cuTexRefGetFlags(&mut flags, std::ptr::null_mut()) };
}

/// Reserves addresses for four pieces of memory, and maps only the first piece with access. Returns the address, and the bytes of
/// a piece.
///
/// # Safety
///
/// A context must be current.
unsafe fn mapped() -> (u64, usize) {
    // SAFETY: the context is current, and all places are valid.
    unsafe {
        let mut properties: sys::CUmemAllocationProp = std::mem::zeroed();
        properties.type_ = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        let recommended = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
        let (mut grain, mut address, mut handle) = (0, 0, 0);
        sys::cuMemGetAllocationGranularity(&mut grain, &properties, recommended).result().unwrap();
        sys::cuMemAddressReserve(&mut address, 4 * grain, 0, 0, 0).result().unwrap();
        sys::cuMemCreate(&mut handle, grain, &properties, 0).result().unwrap();
        sys::cuMemMap(address, grain, 0, handle, 0).result().unwrap();
        assert_eq!(sys::cuMemMap(address, grain, 0, handle, 0), CUresult::CUDA_ERROR_ALREADY_MAPPED);
        let mut access: sys::CUmemAccessDesc = std::mem::zeroed();
        access.location = properties.location;
        access.flags = sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        sys::cuMemSetAccess(address, grain, &access, 1).result().unwrap();
        (address, grain)
    }
}

fn still_mapped() {
    start();
    // SAFETY: the conditions are kept except for the last call, which is reported.
    unsafe {
        let (address, grain) = mapped();
        let _ = sys::cuMemAddressFree(address, 4 * grain);
    }
}

fn unmapped_early() {
    start();
    // SAFETY: the conditions are kept except for the last call, which is reported.
    unsafe {
        let (address, grain) = mapped();
        let stream = stream();
        result::memset_d8_async(address, 1, grain, stream).unwrap();
        result::stream::synchronize(stream).unwrap();
        result::memset_d8_async(address + 100, 1, 100, stream).unwrap();
        let _ = sys::cuMemUnmap(address, grain);
    }
}

/// The host uses the address of a device's freed memory as its own.
fn fault() {
    start();
    // SAFETY: the conditions are broken on purpose; the process ends with a report.
    unsafe {
        let memory = result::malloc_sync(5000).unwrap();
        result::free_sync(memory).unwrap();
        (memory as *mut u8).add(4321).write_volatile(1);
    }
}

fn access_by_the_host() {
    start();
    // SAFETY: no copy is running; the address is not host memory, which is reported.
    unsafe {
        let (memory, stream) = (result::malloc_sync(5000).unwrap(), stream());
        result::memset_d8_async(memory, 1, 5000, stream).unwrap();
        result::stream::synchronize(stream).unwrap();
        (memory as *const u8).add(4321).read_volatile();
    }
}

fn leak() {
    start();
    // SAFETY: the memory is never used.
    unsafe { result::malloc_sync(12345) }.unwrap();
}

#[test]
fn mistakes_are_reported() {
    is_reported("copy out of bounds", "51 bytes from byte 50 on leave the allocation of 100 bytes");
    is_reported("copy of freed memory", "was freed; it was in the allocation of 100 bytes");
    is_reported("pool without order", "is not ordered behind the allocation of 100 bytes");
    is_reported("pool freed elsewhere", "a free may come before a fill on stream");
    is_reported("pinned freed early", "cuMemFreeHost may come before a copy to the device");
    is_reported("copies without order", "which writes 20 bytes at");
    is_reported("a stage used again early", "nothing orders it and a copy to the device on stream");
    is_reported("destroyed stream", "is no stream, or one that was destroyed");
    is_reported("unknown function", "cuTexRefGetFlags is not simulated");
    is_reported("still mapped", "memory is still mapped to");
    is_reported("unmapped early", "cuMemUnmap may come before a fill on stream");
    is_reported("fault", "byte 4321 of the allocation of 5000 bytes");
}

#[test]
fn the_host_is_kept_out_of_device_memory() {
    let output = run("access by the host", &[("WARPSET_SIMULATED_PROTECT", "1")]);
    let text = text(&output);
    let report = "the host's code has used its address";
    assert!(!output.status.success() && text.contains("byte 4321 of the allocation of 5000") && text.contains(report), "{text}");
    passes("answers", &[("WARPSET_SIMULATED_PROTECT", "1")]);
}

#[test]
fn what_is_ordered_is_not_reported() {
    for seed in ["1", "2", "3"] {
        passes("pool with order", &[("WARPSET_SIMULATED_SEED", seed)]);
        passes("copies with order", &[("WARPSET_SIMULATED_SEED", seed)]);
    }
}

#[test]
fn leaks_are_listed() {
    let output = run("leak", &[("WARPSET_SIMULATED_LEAKS", "1")]);
    let text = text(&output);
    assert!(output.status.success() && text.contains("the allocation of 12345 bytes"), "{text}");
}
