//! A table among other users of a GPU: foreign memory, streams and contexts, and effects that no safe call may have on them.
//!
//! Keeps these promises of `src/docs/interoperation.md`:
//!
//! - Columns in device memory become the same vectors, in the order of streams; columns that do not fit are refused before
//!   anything is written (also `src/layout/columns.rs`).
//! - New references are appended, and no write leaves a buffer (also `device_memory.rs`).
//! - Buffers, streams and contexts of other libraries work, or are refused (also `device_memory.rs`).
//! - No batch is captured into a graph.
//! - A table may be dropped while streams work.
//! - The context that is current on a thread stays current.
//! - Errors that other libraries have recorded in the context stay theirs.

use crate::common::vectors::distinct;
use crate::common::{scaled, simulated, tests};
use std::sync::Arc;
use warpset::gpu::cudarc_0_19::cudarc::driver::{CudaContext, CudaStream, DevicePtr, sys};
use warpset::gpu::cudarc_0_19::{DeviceExt, ModuleExt};
use warpset::gpu::{Counts, DeviceBatch, DeviceColumns, ForeignSlice, Stream};
use warpset::{BucketTable, Columns, Device, Error, Request, TypedTable};

tests![
    counts_that_are_not_zero_append,
    new_references_that_find_no_room_are_counted_only,
    memory_of_others,
    memory_of_nobody,
    streams_of_others,
    contexts_of_others,
    buffers_of_another_gpu,
    buffers_that_are_freed_at_once,
    typed_keys_in_device_memory,
    columns_in_device_memory,
    columns_that_do_not_fit,
    batches_are_not_captured,
    errors_of_others_are_theirs,
    calls_leave_the_current_context,
    stages_that_are_replaced_leave_the_current_context,
    kernels_compiled_twice_leave_the_current_context,
    handles_are_those_of_the_driver,
    tables_dropped_while_streams_work,
];

fn context(device: &Device) -> &Arc<CudaContext> {
    device.cuda_context().expect("these tests are registered for GPUs only")
}

fn stream(device: &Device) -> Arc<CudaStream> {
    context(device).new_stream().unwrap()
}

fn table(device: &Device, width: usize) -> BucketTable {
    BucketTable::new(device, width, 4000).unwrap()
}

/// Every call leaves the current context of its thread (none, or that of the GPU) unchanged, even if the call fails or panics.
fn calls_leave_the_current_context(device: &Device) {
    let current = || {
        let mut current = std::ptr::null_mut();
        // SAFETY: the pointer is valid for a write.
        unsafe { sys::cuCtxGetCurrent(&mut current) }.result().unwrap();
        current as usize
    };
    let run = |before: usize| {
        // SAFETY: the context is null, or lives as long as the device.
        unsafe { sys::cuCtxSetCurrent(before as sys::CUcontext) }.result().unwrap();
        let same = |what: &str| assert_eq!(current(), before, "after {what}");
        let again = Device::gpu(context(device).ordinal()).unwrap();
        same("opening the GPU again");
        let table = BucketTable::builder(3).capacity(100).build(device).unwrap();
        same("building a table");
        let words = distinct(3, 0, 1000);
        table.reserve_total(2000).unwrap();
        same("growing");
        table.find_or_put_many(&words).unwrap().complete(&table).unwrap();
        same("a batch");
        assert_eq!(table.contains_many(&words).unwrap().len(), 1000);
        same("a lookup");
        assert_eq!(table.iter().count(), 1000);
        same("iterating");
        table.stats().unwrap();
        same("statistics");
        assert!(table.find_or_put_many(&words[..4]).is_err());
        same("an error");
        let stopped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let mut callback = |_: u64, _: u64| panic!("on purpose");
            let request = Request::new().progress(&mut callback);
            let _ = table.find_or_put_many_with(&words, request);
        }));
        assert!(stopped.is_err());
        same("a panic");
        table.clear().unwrap();
        same("clearing");
        drop(table);
        same("dropping a table");
        drop(again);
    };
    let own = context(device).cu_ctx() as usize;
    std::thread::scope(|scope| scope.spawn(|| [0, own].into_iter().for_each(run)).join().unwrap());
}

/// A batch whose stage is too small frees it, and leaves the current context unchanged.
fn stages_that_are_replaced_leave_the_current_context(device: &Device) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let table = table(device, 4);
            for count in [10, 100, 1000, 3000] {
                table.find_or_put_many(&distinct(4, 0, count)).unwrap().complete(&table).unwrap();
                let mut current = std::ptr::null_mut();
                // SAFETY: the pointer is valid for a write.
                unsafe { sys::cuCtxGetCurrent(&mut current) }.result().unwrap();
                assert!(current.is_null(), "a context is current after a batch of {count} vectors");
            }
        });
    });
}

/// Threads that compile the kernels of one spec at once keep only the first ones. Unloading the others leaves no context behind.
fn kernels_compiled_twice_leave_the_current_context(device: &Device) {
    let threads = 8;
    let start = std::sync::Barrier::new(threads);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                start.wait();
                // No other test has tables of this width.
                let _table = BucketTable::builder(59).capacity(100).build(device).unwrap();
                let mut current = std::ptr::null_mut();
                // SAFETY: the pointer is valid for a write.
                unsafe { sys::cuCtxGetCurrent(&mut current) }.result().unwrap();
                assert!(current.is_null(), "a context is current that was not before");
            });
        }
    });
}

/// Batches that share a queue: each appends its new references to those of earlier batches.
/// Handles of the library's own types, for programs that do not use `cudarc`.
fn handles_are_those_of_the_driver(device: &Device) {
    let table = table(device, 2);
    let module = table.compile("kernels.cu", include_str!("kernels.cu")).unwrap();
    let handle = module.function_handle("mark").unwrap();
    assert_eq!(handle, module.load_function("mark").unwrap().cu_function().cast());
    let error = module.function_handle("no such kernel").unwrap_err();
    assert!(matches!(error, Error::Cuda { code, .. } if code == sys::CUresult::CUDA_ERROR_NOT_FOUND as i32), "{error:?}");
    let stream = stream(device);
    let of = |stream: Stream<'_>| stream.handle();
    assert_eq!((of((&stream).into()), of((&*stream).into())), (stream.cu_stream().cast(), stream.cu_stream().cast()));
}

fn counts_that_are_not_zero_append(device: &Device) {
    let (table, stream) = (table(device, 3), stream(device));
    let words = distinct(3, 0, 1000);
    let vectors = stream.clone_htod(&words).unwrap();
    let mut counts = stream.alloc_zeros::<Counts>(1).unwrap();
    let mut fresh = stream.alloc_zeros::<u64>(1000).unwrap();
    for first in [0, 400] {
        let part = vectors.slice(first * 3..);
        let batch = DeviceBatch::new(&part, 600).new_references(&mut fresh).counts(&mut counts);
        table.find_or_put_device(&stream, batch).unwrap();
    }
    let counts = stream.clone_dtoh(&counts).unwrap()[0];
    assert_eq!((counts.offered, counts.hits, counts.new_references), (1200, 1000, 1000));
    let references: Vec<_> = stream.clone_dtoh(&fresh).unwrap().iter().map(|slot| table.reference(*slot).unwrap()).collect();
    let mut rows: Vec<Vec<u32>> = table.get_many(&references).unwrap().chunks(3).map(<[u32]>::to_vec).collect();
    let mut expected: Vec<Vec<u32>> = words.chunks(3).map(<[u32]>::to_vec).collect();
    rows.sort_unstable();
    expected.sort_unstable();
    assert_eq!(rows, expected);
}

/// No reference is written outside the buffer, whatever the counts were.
fn new_references_that_find_no_room_are_counted_only(device: &Device) {
    let stream = stream(device);
    for before in [1, 90, 100, 101, 1 << 40, u64::MAX - 50] {
        let table = table(device, 2);
        let vectors = stream.clone_htod(&distinct(2, 0, 100)).unwrap();
        let start = Counts { new_references: before, ..Counts::default() };
        let mut counts = stream.clone_htod(&[start]).unwrap();
        let mut around = stream.clone_htod(&[7u64; 300]).unwrap();
        {
            let mut fresh = around.slice_mut(100..200);
            let batch = DeviceBatch::new(&vectors, 100).new_references(&mut fresh).counts(&mut counts);
            table.find_or_put_device(&stream, batch).unwrap();
        }
        let counts = stream.clone_dtoh(&counts).unwrap()[0];
        assert_eq!((counts.hits, counts.new_references), (100, before.wrapping_add(100)));
        let written = stream.clone_dtoh(&around).unwrap();
        assert!(written[..100].iter().chain(&written[200..]).all(|word| *word == 7), "written outside, from {before}");
        // Positions that an overflowing count has reached again are in the buffer.
        let expected = (0..100).filter(|at| before.wrapping_add(*at) < 100).count();
        assert_eq!(written[100..200].iter().filter(|word| **word != 7).count(), expected, "from {before}");
        assert_eq!(table.len().unwrap(), 100);
    }
}

/// A kernel makes the vectors of columns that threads make of them in host memory: fields of 1, 2, 4 and 8 bytes at any address.
fn columns_in_device_memory(device: &Device) {
    let (one, other) = (stream(device), stream(device));
    let rows = 2000;
    let numbers: Vec<u64> = (0..rows).map(|number| u64::wrapping_mul(number, 0x9E37_79B9_7F4A_7C15)).collect();
    let flags: Vec<u8> = (0..rows).map(|number| number as u8).collect();
    let parts: Vec<u16> = (0..rows).map(|number| !number as u16).collect();
    let shops: Vec<u32> = (0..rows).map(|number| number as u32 ^ 0xABCD).collect();
    let names: Vec<[u8; 3]> = (0..rows).map(|number| [number as u8, 7, (number >> 8) as u8]).collect();
    // 8 + 1 + 2 + 4 + 3 bytes: all fields but the first are at odd places. The last of the five words has two zero bytes.
    let table = table(device, 5);
    let host = Columns::new().column(&numbers).column(&flags).column(&parts).column(&shops).column(&names);
    let expected = table.from_columns(&host).unwrap();
    let (numbers_at, shops_at) = (one.clone_htod(&numbers).unwrap(), other.clone_htod(&shops).unwrap());
    let (flags_at, parts_at) = (one.clone_htod(&flags).unwrap(), one.clone_htod(&parts).unwrap());
    let mut vectors = one.clone_htod(&vec![7u32; expected.len() + 5]).unwrap();
    // Three bytes a field, as three columns.
    let firsts = one.clone_htod(&names.iter().map(|name| name[0]).collect::<Vec<_>>()).unwrap();
    let seconds = one.clone_htod(&names.iter().map(|name| name[1]).collect::<Vec<_>>()).unwrap();
    let thirds = one.clone_htod(&names.iter().map(|name| name[2]).collect::<Vec<_>>()).unwrap();
    let columns = DeviceColumns::new().column(&numbers_at).column(&flags_at).column(&parts_at).column(&shops_at);
    let columns = columns.column(&firsts).column(&seconds).column(&thirds);
    assert_eq!(columns.bytes_per_vector(), 18);
    assert_eq!(table.from_columns_device(&one, &columns, &mut vectors).unwrap(), rows as usize);
    let made = one.clone_dtoh(&vectors).unwrap();
    assert!(made[..expected.len()] == expected);
    assert_eq!(made[expected.len()..], [7; 5]);
    table.find_or_put_device(&one, DeviceBatch::new(&vectors, rows as usize)).unwrap();
    one.synchronize().unwrap();
    assert_eq!(table.contains_many(&expected).unwrap(), vec![true; rows as usize]);
    // A part of a column begins at any field; 300 columns take two launches.
    let wide = BucketTable::new(device, 75, 100).unwrap();
    let (parts, mut columns, mut host) =
        ((0..300).map(|at| flags_at.slice(at..at + 40)).collect::<Vec<_>>(), DeviceColumns::new(), Columns::new());
    for (at, part) in parts.iter().enumerate() {
        columns = columns.column(part);
        host = host.column(&flags[at..at + 40]);
    }
    let mut vectors = one.alloc_zeros::<u32>(75 * 40).unwrap();
    assert_eq!(wide.from_columns_device(&other, &columns, &mut vectors).unwrap(), 40);
    assert!(one.clone_dtoh(&vectors).unwrap() == wide.from_columns(&host).unwrap());
    // Typed keys, and no vectors at all.
    let pairs = TypedTable::<[u32; 3]>::new(device, 5000).unwrap();
    let columns = DeviceColumns::new().column(&shops_at).column(&numbers_at);
    let mut keys = one.clone_htod(&vec![[0u32; 3]; rows as usize]).unwrap();
    pairs.from_columns_device(&one, &columns, &mut keys).unwrap();
    assert!(one.clone_dtoh(&keys).unwrap() == pairs.from_columns(&Columns::new().column(&shops).column(&numbers)).unwrap());
    let (no_shops, no_numbers) = (shops_at.slice(..0), numbers_at.slice(..0));
    let columns = DeviceColumns::new().column(&no_shops).column(&no_numbers);
    assert_eq!(pairs.from_columns_device(&one, &columns, &mut keys).unwrap(), 0);
}

/// Columns that do not fit are refused, with the numbers, before anything is written.
fn columns_that_do_not_fit(device: &Device) {
    let (table, stream) = (table(device, 4), stream(device));
    let numbers = stream.clone_htod(&[1u64; 50]).unwrap();
    let short = stream.clone_htod(&[1u64; 49]).unwrap();
    let mut vectors = stream.clone_htod(&[7u32; 204]).unwrap();
    let wrong = |what, given, needed| Error::LengthMismatch { what, given, needed };
    let one = DeviceColumns::new().column(&numbers);
    let error = table.from_columns_device(&stream, &one, &mut vectors).unwrap_err();
    assert_eq!(error, wrong("bytes of the fields of one vector", 8, 16));
    let three = DeviceColumns::new().column(&numbers).column(&numbers).column(&numbers);
    let error = table.from_columns_device(&stream, &three, &mut vectors).unwrap_err();
    assert_eq!(error, wrong("bytes of the fields of one vector", 24, 16));
    let unequal = DeviceColumns::new().column(&numbers).column(&short);
    let error = table.from_columns_device(&stream, &unequal, &mut vectors).unwrap_err();
    assert_eq!(error, wrong("fields of a column", 49, 50));
    let columns = DeviceColumns::new().column(&numbers).column(&numbers);
    let error = table.from_columns_device(&stream, &columns, &mut vectors.slice_mut(..199)).unwrap_err();
    assert_eq!(error, Error::LengthMismatch { what: "vectors", given: 199, needed: 200 });
    let error = table.from_columns_device(&stream, &columns, &mut vectors.slice_mut(1..)).unwrap_err();
    assert!(matches!(error, Error::Misaligned { what: "vectors", alignment: 16, .. }), "{error:?}");
    // Another object for the same context knows nothing of this one's streams.
    let elsewhere = CudaContext::new(context(device).ordinal()).unwrap().new_stream().unwrap();
    let foreign = elsewhere.clone_htod(&[1u64; 50]).unwrap();
    let mixed = DeviceColumns::new().column(&numbers).column(&foreign);
    let error = table.from_columns_device(&stream, &mixed, &mut vectors).unwrap_err();
    assert!(matches!(error, Error::WrongDevice { what: "a column", .. }), "{error:?}");
    let error = table.from_columns_device(&elsewhere, &columns, &mut vectors).unwrap_err();
    assert!(matches!(error, Error::WrongDevice { what: "stream", .. }), "{error:?}");
    #[cfg(feature = "cpu")]
    {
        let host = BucketTable::new(&Device::cpu(), 4, 10).unwrap();
        let error = host.from_columns_device(&stream, &columns, &mut vectors).unwrap_err();
        assert!(matches!(error, Error::WrongDevice { what: "from_columns_device", .. }), "{error:?}");
    }
    assert_eq!(stream.clone_dtoh(&vectors).unwrap(), [7; 204]);
}

/// Memory allocated by plain driver calls, as another library does.
fn memory_of_others(device: &Device) {
    let (table, stream) = (table(device, 4), stream(device));
    let words = distinct(4, 0, 500);
    let owner = stream.clone_htod(&words).unwrap();
    let mut results = stream.alloc_zeros::<u8>(500).unwrap();
    let (address, outcomes_at) = {
        use warpset::gpu::cudarc_0_19::cudarc::driver::DevicePtrMut;
        let (address, _read) = owner.device_ptr(&stream);
        let (outcomes_at, _write) = results.device_ptr_mut(&stream);
        (address, outcomes_at)
    };
    // SAFETY: the owners live to the end of the function, and all work is on `stream`.
    let (vectors, mut outcomes) = unsafe {
        (
            ForeignSlice::<u32>::new(device, address, words.len()).unwrap(),
            ForeignSlice::<u8>::new(device, outcomes_at, 500).unwrap(),
        )
    };
    let batch = DeviceBatch::new(&vectors, 500).outcomes(&mut outcomes);
    table.find_or_put_device(&stream, batch).unwrap();
    assert_eq!(stream.clone_dtoh(&results).unwrap(), [1; 500]);
    // A part that is not aligned as vectors are; and one that is too short.
    // SAFETY: as above.
    let (odd, short) = unsafe {
        (
            ForeignSlice::<u32>::new(device, address + 4, words.len() - 4).unwrap(),
            ForeignSlice::<u32>::new(device, address, words.len() - 1).unwrap(),
        )
    };
    let error = table.find_or_put_device(&stream, DeviceBatch::new(&odd, 499)).unwrap_err();
    assert!(matches!(error, Error::Misaligned { what: "vectors", alignment: 16, .. }), "{error:?}");
    let error = table.find_or_put_device(&stream, DeviceBatch::new(&short, 500)).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { what: "vectors", given: 1999, needed: 2000 }), "{error:?}");
    assert_eq!(table.len().unwrap(), 500);
    stream.synchronize().unwrap();
}

/// Host memory, or no memory at all: the driver detects that, so no ordinal is needed.
fn memory_of_nobody(device: &Device) {
    let host = vec![0u32; 100];
    for address in [host.as_ptr() as u64, 1 << 20] {
        // SAFETY: the slice is not used.
        let error = unsafe { ForeignSlice::<u32>::new(device, address, 100) }.unwrap_err();
        assert!(matches!(error, Error::WrongDevice { what: "a foreign slice", .. }), "{error:?}");
    }
    // SAFETY: as above.
    let error = unsafe { ForeignSlice::<u64>::new(device, 4, 1) }.unwrap_err();
    assert!(matches!(error, Error::Misaligned { alignment: 8, .. }), "{error:?}");
    // SAFETY: the slice is empty.
    assert!(unsafe { ForeignSlice::<u64>::new(device, 0, 0) }.is_ok());
}

fn streams_of_others(device: &Device) {
    let (table, owner) = (table(device, 5), stream(device));
    let vectors = owner.clone_htod(&distinct(5, 0, 300)).unwrap();
    // SAFETY: the owner lives longer; work on both handles is work on one stream.
    let wrapped = unsafe { context(device).wrap_borrowed_stream(owner.cu_stream()) };
    table.find_or_put_device(&wrapped, DeviceBatch::new(&vectors, 300)).unwrap();
    owner.synchronize().unwrap();
    assert_eq!(table.len().unwrap(), 300);
    // The default stream, which always exists.
    let default = context(device).default_stream();
    table.find_or_put_device(&default, DeviceBatch::new(&vectors, 300)).unwrap();
    default.synchronize().unwrap();
    assert_eq!(table.len().unwrap(), 300);
}

fn contexts_of_others(device: &Device) {
    let ordinal = context(device).ordinal();
    assert_eq!(Device::from_context(context(device).clone()).unwrap(), *device);
    // Another object for the primary context: it would not know events of the first object's streams.
    let twin = Device::from_context(CudaContext::new(ordinal).unwrap()).unwrap();
    assert_ne!(twin, *device);
    let of_twin = BucketTable::new(&twin, 3, 4000).unwrap();
    let vectors = stream(&twin).clone_htod(&distinct(3, 0, 10)).unwrap();
    let error = table(device, 3).find_or_put_device(&stream(device), DeviceBatch::new(&vectors, 10)).unwrap_err();
    assert!(matches!(&error, Error::WrongDevice { given, .. } if given.contains("another `CudaContext`")), "{error:?}");
    of_twin.find_or_put_device(&stream(&twin), DeviceBatch::new(&vectors, 10)).unwrap();
    context(&twin).synchronize().unwrap();
    assert_eq!(of_twin.len().unwrap(), 10);
    let own = CudaContext::new_non_primary(ordinal, 0).unwrap();
    let other = Device::from_context(own.clone()).unwrap();
    assert_ne!(other, *device);
    assert_eq!(Device::from_context(own.clone()).unwrap(), other);
    let words = distinct(3, 0, 1000);
    let there = BucketTable::new(&other, 3, 4000).unwrap();
    assert_eq!(there.find_or_put_many(&words).unwrap().tally.new, 1000);
    assert_eq!(there.iter().count(), 1000);
    // Streams and buffers of one context cannot be used with tables of the other.
    let (foreign, here) = (own.new_stream().unwrap(), table(device, 3));
    let vectors = foreign.clone_htod(&words).unwrap();
    let error = here.find_or_put_device(&foreign, DeviceBatch::new(&vectors, 1000)).unwrap_err();
    assert!(matches!(&error, Error::WrongDevice { what: "stream", given, .. } if given.contains("another context")), "{error:?}");
    let error = here.find_or_put_device(&stream(device), DeviceBatch::new(&vectors, 1000)).unwrap_err();
    assert!(matches!(error, Error::WrongDevice { what: "vectors", .. }), "{error:?}");
    assert_eq!(here.len().unwrap(), 0);
    there.find_or_put_device(&foreign, DeviceBatch::new(&vectors, 1000)).unwrap();
    foreign.synchronize().unwrap();
    assert_eq!(there.len().unwrap(), 1000);
    // An address of one context, passed to a table of the other.
    let (address, read) = vectors.device_ptr(&foreign);
    // SAFETY: the slice is not used.
    let error = unsafe { ForeignSlice::<u32>::new(device, address, 3000) };
    // (The driver returns no context for memory of a pool.)
    assert!(matches!(error, Ok(_) | Err(Error::WrongDevice { .. })));
    drop(read);
    drop((vectors, foreign, there, other));
    assert_eq!(Arc::strong_count(&own), 1, "nothing keeps a context that is not used");
}

/// The owner's stream differs from the batch's: the owner's next operations, freeing included, come after the batch.
fn buffers_that_are_freed_at_once(device: &Device) {
    let count = scaled(1 << 20, 1 << 15);
    let (table, owner, words) = (BucketTable::new(device, 4, 4 * count as u64).unwrap(), stream(device), distinct(4, 0, count));
    let streams = [stream(device), stream(device), stream(device)];
    for round in 0..4 {
        let vectors = owner.clone_htod(&words).unwrap();
        for stream in &streams {
            table.find_or_put_device(stream, DeviceBatch::new(&vectors, count)).unwrap();
        }
        drop(vectors);
        // Most likely reuses the freed memory.
        let other = owner.clone_htod(&vec![0xDEAD_BEEFu32; words.len()]).unwrap();
        owner.synchronize().unwrap();
        drop(other);
        streams.iter().for_each(|stream| stream.synchronize().unwrap());
        assert_eq!(table.len().unwrap(), count as u64, "round {round}");
    }
    assert!(table.contains_many(&words).unwrap().iter().all(|stored| *stored));
}

/// Skipped unless there are two GPUs.
fn buffers_of_another_gpu(device: &Device) {
    let own = context(device).ordinal();
    let Some(other) = Device::gpus().unwrap().into_iter().find(|gpu| gpu.ordinal != own) else { return };
    let (table, own_stream) = (table(device, 3), stream(device));
    let other = stream(&Device::gpu(other.ordinal).unwrap());
    let words = distinct(3, 0, 100);
    let (here, there) = (own_stream.clone_htod(&words).unwrap(), other.clone_htod(&words).unwrap());
    let error = table.find_or_put_device(&own_stream, DeviceBatch::new(&there, 100)).unwrap_err();
    assert!(matches!(error, Error::WrongDevice { what: "vectors", .. }), "{error:?}");
    let mut outcomes = other.alloc_zeros::<u8>(100).unwrap();
    let mut slots = other.alloc_zeros::<u64>(100).unwrap();
    let mut counts = other.alloc_zeros::<Counts>(1).unwrap();
    for (what, batch) in [
        ("outcomes", DeviceBatch::new(&here, 100).outcomes(&mut outcomes)),
        ("references", DeviceBatch::new(&here, 100).references(&mut slots)),
        ("counts", DeviceBatch::new(&here, 100).counts(&mut counts)),
    ] {
        let error = table.find_or_put_device(&own_stream, batch).unwrap_err();
        assert!(matches!(&error, Error::WrongDevice { what: of, .. } if *of == what), "{error:?}");
    }
    assert_eq!(table.len().unwrap(), 0);
}

fn typed_keys_in_device_memory(device: &Device) {
    let table = TypedTable::<u64>::new(device, 1000).unwrap();
    let stream = stream(device);
    let keys = stream.clone_htod(&[7u64, 8, 7, 1 << 40]).unwrap();
    let mut outcomes = stream.alloc_zeros::<u8>(4).unwrap();
    table.find_or_put_device(&stream, DeviceBatch::new(&keys, 4).outcomes(&mut outcomes)).unwrap();
    let outcomes = stream.clone_dtoh(&outcomes).unwrap();
    assert_eq!((outcomes[1], outcomes[3], outcomes[0] + outcomes[2]), (1, 1, 3));
    assert_eq!(table.contains_many(&[7, 8, 9, 1 << 40]).unwrap(), [true, true, false, true]);
    let error = table.find_or_put_device(&stream, DeviceBatch::new(&keys, 5)).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { given: 4, needed: 5, .. }), "{error:?}");
}

/// A captured graph could be launched after the table was dropped.
fn batches_are_not_captured(device: &Device) {
    let (table, stream) = (table(device, 4), stream(device));
    let vectors = stream.clone_htod(&distinct(4, 0, 100)).unwrap();
    stream.synchronize().unwrap();
    stream.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED).unwrap();
    let searches = [
        table.find_or_put_device(&stream, DeviceBatch::new(&vectors, 100)),
        table.find_device(&stream, DeviceBatch::new(&vectors, 100)),
    ];
    let graph = stream.end_capture(sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
    assert_eq!(searches, [Err(Error::Capturing), Err(Error::Capturing)]);
    drop(graph);
    table.find_or_put_device(&stream, DeviceBatch::new(&vectors, 100)).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(table.len().unwrap(), 100);
}

/// An error that a foreign drop has recorded in the context does not fail a call of the library, and is not lost for its owner;
/// and memory is freed.
fn errors_of_others_are_theirs(device: &Device) {
    let own = CudaContext::new_non_primary(context(device).ordinal(), 0).unwrap();
    let device = Device::from_context(own.clone()).unwrap();
    let theirs = || Err::<(), _>(warpset::gpu::cudarc_0_19::cudarc::driver::DriverError(sys::CUresult::CUDA_ERROR_NOT_FOUND));
    own.record_err(theirs());
    let words = distinct(6, 0, 2000);
    // First use of this context: kernels are loaded, streams and buffers made.
    let first = BucketTable::new(&device, 6, 4000).unwrap();
    assert_eq!(first.find_or_put_many(&words).unwrap().tally.new, 2000);
    assert_eq!(first.contains_many(&words).unwrap().len(), 2000);
    first.reserve_total(2 * first.slots()).unwrap();
    assert_eq!(first.iter().count(), 2000);
    assert_eq!(own.check_err(), theirs(), "it is there for whoever looks");
    // The tables take more than anything else, so a leak of any of them would show.
    let capacity = if simulated() { 1 << 20 } else { 1 << 24 };
    let free = device.free_memory().unwrap();
    for _ in 0..3 {
        let table = BucketTable::new(&device, 6, capacity).unwrap();
        own.record_err(theirs());
        drop(table);
    }
    let lost = free.saturating_sub(device.free_memory().unwrap());
    assert!(lost < 16 * capacity, "{lost} bytes have not been given back");
}

/// Drops stream, buffers and table in every order, while kernels are under way.
fn tables_dropped_while_streams_work(device: &Device) {
    let count = scaled(1 << 16, 1 << 12);
    let words = distinct(8, 0, count);
    for order in 0..6 {
        let (table, stream) = (BucketTable::new(device, 8, 2 * count as u64).unwrap(), stream(device));
        let vectors = stream.clone_htod(&words).unwrap();
        let mut outcomes = stream.alloc_zeros::<u8>(count).unwrap();
        let mut counts = stream.alloc_zeros::<Counts>(1).unwrap();
        for _ in 0..20 {
            let batch = DeviceBatch::new(&vectors, count).outcomes(&mut outcomes).counts(&mut counts);
            table.find_or_put_device(&stream, batch).unwrap();
        }
        match order {
            0 => drop((table, stream, vectors, outcomes, counts)),
            1 => drop((stream, table, vectors, outcomes, counts)),
            2 => drop((vectors, outcomes, counts, table, stream)),
            3 => drop((outcomes, table, vectors, stream, counts)),
            4 => drop((counts, stream, vectors, table, outcomes)),
            _ => {
                let counts = stream.clone_dtoh(&counts).unwrap()[0];
                assert_eq!((counts.offered, counts.hits, counts.full), (20 * count as u64, count as u64, 0));
            }
        }
    }
}
