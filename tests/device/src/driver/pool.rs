//! Allocations of a device's pool, in the order of a stream.
//!
//! The address is known at once. The memory exists only after the stream has passed the allocation and before it passes the free:
//! any access outside this time faults. Addresses and memory are never reused for another allocation of the pool.

use super::call::{Answer, put};
use super::context;
use super::memory::{self, AllocationKind, Region};
use super::report;
use super::stream::{self, Stream};
use cudarc::driver::sys::{CUdeviceptr, CUmemoryPool, CUresult, CUstream};
use std::ffi::c_void;
use std::sync::Arc;

fn allocate(place: *mut CUdeviceptr, bytes: usize, stream: &Arc<Stream>) -> Answer {
    let context = stream.context.clone();
    context.check()?;
    if bytes == 0 {
        // Unlike `cuMemAlloc`, this call accepts 0 bytes and returns null, as on GPUs: `cudarc` creates empty slices in this way.
        // SAFETY: the caller keeps the conditions that the driver documents.
        return unsafe { put(place, 0) };
    }
    let mut made = None;
    let from = stream.enqueue("an allocation of the pool", |_, moment, _| made = Some(moment), || Ok(()))?;
    debug_assert_eq!(made, Some(from));
    let region = memory::allocate(&context, bytes as u64, AllocationKind::Pool, "cuMemAllocAsync", Some(from))?;
    // SAFETY: the caller keeps the conditions that the driver documents.
    unsafe { put(place, region.start) }?;
    let region = memory::insert(region);
    stream.enqueue(
        "an allocation of the pool",
        |_, _, _| (),
        move || {
            memory::commit(&region);
            Ok(())
        },
    )?;
    Ok(())
}

/// Frees an allocation of a pool for `cuMemFree`, which has waited for the device.
pub fn free_now(region: &Arc<Region>) {
    if let Some(region) = memory::remove(region.start, &[AllocationKind::Pool]) {
        memory::decommit(&region);
        memory::release(&region);
    }
}

functions! {
    fn cuMemAllocAsync(place: *mut CUdeviceptr, bytes: usize, stream: CUstream) {
        allocate(place, bytes, &stream::of(stream)?)?;
    }

    fn cuMemAllocFromPoolAsync(place: *mut CUdeviceptr, bytes: usize, _pool: CUmemoryPool, stream: CUstream) {
        allocate(place, bytes, &stream::of(stream)?)?;
    }

    fn cuMemFreeAsync(address: CUdeviceptr, stream: CUstream) {
        let stream = stream::of(stream)?;
        if address == 0 {
            return Ok(());
        }
        let Some(region) = memory::find(address).filter(|region| region.start == address) else {
            report::end(&format!("cuMemFreeAsync: {address:#x} is not the start of an allocation"));
        };
        if region.kind != AllocationKind::Pool {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let checked = region.clone();
        stream.enqueue("a free of the pool", |_, moment, clock| memory::free_at(&checked, moment, clock), move || {
            if let Some(region) = memory::remove(region.start, &[AllocationKind::Pool]) {
                memory::decommit(&region);
                memory::release(&region);
            }
            Ok(())
        })?;
    }

    fn cuMemPoolTrimTo(_pool: CUmemoryPool, _keep: usize) {
        context::current()?;
    }

    fn cuMemPoolSetAttribute(_pool: CUmemoryPool, _attribute: u32, _value: *mut c_void) {
        context::current()?;
    }
}
