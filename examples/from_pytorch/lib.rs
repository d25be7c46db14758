//! A table behind a C interface, for PyTorch tensors, CuPy arrays and other owners of device memory: see from_pytorch.py.
//!
//! Every function returns 0, or -1 and leaves a message for `warpset_error`. Vectors are contiguous rows of 32-bit words in the
//! memory of the table's GPU. Streams are `CUstream`s (`torch.cuda.current_stream().cuda_stream`) and order all work.

use std::cell::RefCell;
use std::error::Error;
use std::ffi::{CString, c_char, c_void};
use warpset::gpu::cudarc_0_19::DeviceExt;
use warpset::gpu::{Counts, DeviceBatch, ForeignSlice};
use warpset::{BucketTable, Device};

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// Message of this thread's last call that returned -1. Valid until its next call.
#[unsafe(no_mangle)]
pub extern "C" fn warpset_error() -> *const c_char {
    ERROR.with_borrow(|error| error.as_ptr())
}

fn status(call: impl FnOnce() -> Result<(), Box<dyn Error>>) -> i32 {
    let Err(error) = call() else { return 0 };
    ERROR.set(CString::new(error.to_string().replace('\0', " ")).unwrap_or_default());
    -1
}

/// Makes a table of `width`-word vectors with at least `capacity` slots on GPU `ordinal`, and writes it to `table`.
///
/// # Safety
///
/// `table` must be valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_new(ordinal: usize, width: usize, capacity: u64, table: *mut *mut BucketTable) -> i32 {
    status(|| {
        let made = Box::new(BucketTable::new(&Device::gpu(ordinal)?, width, capacity)?);
        // SAFETY: the caller promises that `table` is valid for a write.
        unsafe { table.write(Box::into_raw(made)) };
        Ok(())
    })
}

/// # Safety
///
/// `table` must be from `warpset_new`, and must not be used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_free(table: *mut BucketTable) {
    // SAFETY: the caller promises that `table` is from `warpset_new` and unused.
    drop(unsafe { Box::from_raw(table) });
}

/// Enqueues find-or-put of `count` vectors on `stream`. `outcomes` (a byte each: 1 new, 2 seen, 3 full), `slots` (8 bytes each)
/// and `counts` (five numbers of 8 bytes, to which the call adds: offered, new, full, new references, full because a node was
/// missing) may be null.
///
/// # Safety
///
/// `table` must be from `warpset_new`. Buffers must be of its GPU, have room for `count` rows or elements, and live until the
/// stream has executed this work. `stream` must be a stream of the GPU's primary context, or null for its default stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_find_or_put(
    table: *const BucketTable,
    vectors: u64,
    count: usize,
    outcomes: u64,
    slots: u64,
    counts: u64,
    stream: *mut c_void,
) -> i32 {
    status(|| {
        // SAFETY: the caller promises that `table` is from `warpset_new`.
        let table = unsafe { &*table };
        let device = table.device();
        let context = device.cuda_context().ok_or("the table is not on a GPU")?;
        // SAFETY: the caller promises a valid stream, and orders its own work by it.
        let stream = unsafe { context.wrap_borrowed_stream(stream.cast()) };
        // SAFETY: the caller promises that the buffer has `count` rows and lives long enough.
        let vectors = unsafe { ForeignSlice::<u32>::new(device, vectors, count * table.width())? };
        // SAFETY: as above. Null buffers are not used.
        let (mut outcomes_given, mut slots_given, mut counts_given) = unsafe {
            let of = |address: u64, len: usize| if address == 0 { 0 } else { len };
            (
                ForeignSlice::<u8>::new(device, outcomes, of(outcomes, count))?,
                ForeignSlice::<u64>::new(device, slots, of(slots, count))?,
                ForeignSlice::<Counts>::new(device, counts, of(counts, 1))?,
            )
        };
        let mut batch = DeviceBatch::new(&vectors, count);
        if outcomes != 0 {
            batch = batch.outcomes(&mut outcomes_given);
        }
        if slots != 0 {
            batch = batch.references(&mut slots_given);
        }
        if counts != 0 {
            batch = batch.counts(&mut counts_given);
        }
        Ok(table.find_or_put_device(&stream, batch)?)
    })
}

/// Writes the number of vectors stored to `len`, after all GPU work submitted before has ended.
///
/// # Safety
///
/// `table` must be from `warpset_new`, and `len` valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_len(table: *const BucketTable, len: *mut u64) -> i32 {
    status(|| {
        // SAFETY: the caller promises that `table` is from `warpset_new`.
        let table = unsafe { &*table };
        table.device().cuda_context().ok_or("the table is not on a GPU")?.synchronize()?;
        // SAFETY: the caller promises that `len` is valid for a write.
        unsafe { len.write(table.len()?) };
        Ok(())
    })
}
