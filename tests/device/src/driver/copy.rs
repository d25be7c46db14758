//! Copies and fills.
//!
//! The host's side of a copy is pageable memory unless the driver knows that it is pinned. A copy from pageable memory has read
//! it when the call returns. A copy to pageable memory is done when the call returns. A copy from or to pinned memory is made
//! when the stream reaches it.

use super::accesses::Action;
use super::call::Answer;
use super::clocks::{Clock, Moment};
use super::context::{self, Context};
use super::fault::{self, Change};
use super::memory::{self, AllocationKind, Region};
use super::stream::{self, Stream};
use super::virtual_memory;
use cudarc::driver::sys::{CUcontext, CUdeviceptr, CUresult, CUstream};
use std::ffi::{c_uchar, c_uint, c_ushort, c_void};
use std::sync::Arc;
use std::time::Duration;

/// One side of a copy.
struct Side {
    address: u64,
    /// The allocation; `None` for pageable memory.
    region: Option<Arc<Region>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Device,
    Host,
    Any,
}

impl Side {
    fn new(address: u64, bytes: u64, expected: Expected, what: &str) -> Result<Self, CUresult> {
        let region = memory::find_range(address, bytes, what);
        if region.as_ref().is_some_and(|region| region.kind == AllocationKind::Reserved) {
            virtual_memory::check_mapped(address, bytes, what);
        }
        let on_device = region.as_ref().is_some_and(|region| region.is_on_device());
        let pinned = region.is_some() && !on_device;
        match expected {
            // Pinned memory has the same address on host and device.
            Expected::Device if !on_device && !pinned => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
            Expected::Host if on_device => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
            _ if address == 0 => Err(CUresult::CUDA_ERROR_INVALID_VALUE),
            _ => Ok(Self { address, region }),
        }
    }

    fn is_pageable(&self) -> bool {
        self.region.is_none()
    }

    fn note(&self, bytes: u64, action: Action, moment: Moment, clock: &Clock, what: &str) {
        if let Some(region) = &self.region {
            region.use_by(self.address..self.address + bytes, action, moment, clock, what);
        }
    }
}

/// Copies in pieces, so that concurrent accesses can happen between them.
///
/// # Safety
///
/// Both sides must be valid for `bytes`.
unsafe fn move_bytes(to: u64, from: u64, bytes: u64) {
    let piece = (bytes / 3).next_multiple_of(4096).max(4096);
    let mut at = 0;
    while at < bytes {
        let len = piece.min(bytes - at);
        // SAFETY: the caller keeps the conditions of this function.
        unsafe { std::ptr::copy((from + at) as *const u8, (to + at) as *mut u8, len as usize) };
        at += len;
        if at < bytes {
            std::thread::yield_now();
        }
    }
}

fn copy(
    to: (u64, Expected),
    from: (u64, Expected),
    bytes: usize,
    stream: &Arc<Stream>,
    what: &'static str,
) -> Result<bool, CUresult> {
    let bytes = match fault::change() {
        Change::Short => bytes.saturating_sub(1) as u64,
        Change::Long => bytes as u64 + 1,
        Change::Half => bytes as u64 / 2,
        Change::Shifted => bytes.saturating_sub(4) as u64,
        _ => bytes as u64,
    };
    stream.context.check()?;
    if bytes == 0 {
        return Ok(false);
    }
    let (mut to, mut from) = (to, from);
    if fault::change() == Change::Shifted {
        let shifted = if to.1 == Expected::Host { &mut from } else { &mut to };
        shifted.0 += 4;
    }
    let is_late = fault::change() == Change::Late;
    let (to, from) = (Side::new(to.0, bytes, to.1, what)?, Side::new(from.0, bytes, from.1, what)?);
    let waits = to.is_pageable();
    let note = |moment: Moment, clock: &Clock| {
        to.note(bytes, Action::Writes, moment, clock, what);
        from.note(bytes, Action::Reads, moment, clock, what);
    };
    let what = format!("{what} of {bytes} bytes from {:#x} to {:#x}", from.address, to.address);
    let (target, source) = (to.address, from.address);
    if is_late {
        stream.enqueue(
            "a delay",
            |_, _, _| (),
            || {
                std::thread::sleep(Duration::from_millis(5));
                Ok(())
            },
        )?;
    }
    if from.is_pageable() {
        // SAFETY: the caller's source is valid for `bytes` bytes.
        let staged = unsafe { std::slice::from_raw_parts(source as *const u8, bytes as usize) }.to_vec();
        stream.enqueue(
            what,
            |_, moment, clock| note(moment, clock),
            move || {
                // SAFETY: the target was checked, or it belongs to the caller, who waits.
                unsafe { move_bytes(target, staged.as_ptr() as u64, bytes) };
                Ok(())
            },
        )?;
    } else {
        stream.enqueue(
            what,
            |_, moment, clock| note(moment, clock),
            move || {
                // SAFETY: both sides were checked, or they belong to the caller.
                unsafe { move_bytes(target, source, bytes) };
                Ok(())
            },
        )?;
    }
    if waits {
        stream.ticket().wait();
        stream.context.check()?;
    }
    Ok(waits)
}

/// Makes a copy on the default stream. A copy between host memories, or to the host, is done when the call returns. A copy from
/// pageable memory to the device has read its source when the call returns; the driver does not promise more.
fn copy_on_default(to: (u64, Expected), from: (u64, Expected), bytes: usize, what: &'static str) -> Answer {
    let stream = context::current()?.default_stream();
    let is_pinned = memory::find(from.0).is_some_and(|region| !region.is_on_device());
    let to_host = !memory::find(to.0).is_some_and(|region| region.is_on_device());
    copy(to, from, bytes, &stream, what)?;
    if is_pinned || to_host { stream.synchronize() } else { Ok(()) }
}

fn fill<T: Copy + Send + 'static>(address: u64, value: T, count: usize, stream: &Arc<Stream>, what: &'static str) -> Answer {
    stream.context.check()?;
    let count = if fault::change() == Change::Half { count / 2 } else { count };
    let bytes = (count * size_of::<T>()) as u64;
    if bytes == 0 {
        return Ok(());
    }
    if !address.is_multiple_of(align_of::<T>() as u64) {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    let side = Side::new(address, bytes, Expected::Device, what)?;
    let name = format!("{what} of {bytes} bytes at {address:#x}");
    stream.enqueue(
        name,
        |_, moment, clock| side.note(bytes, Action::Writes, moment, clock, what),
        move || {
            // SAFETY: the range was checked to be device memory.
            unsafe { std::slice::from_raw_parts_mut(address as *mut T, count) }.fill(value);
            Ok(())
        },
    )?;
    Ok(())
}

fn copy_between(to: (u64, CUcontext), from: (u64, CUcontext), bytes: usize, stream: &Arc<Stream>) -> Answer {
    let (receiver, sender): (Arc<Context>, Arc<Context>) = context::both(to.1, from.1)?;
    for (address, context) in [(to.0, &receiver), (from.0, &sender)] {
        let found = memory::find(address).filter(|region| region.is_on_device());
        if found.is_none_or(|region| region.device != context.device.ordinal) {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
    }
    copy((to.0, Expected::Device), (from.0, Expected::Device), bytes, stream, "a copy between devices").map(|_| ())
}

use Expected::{Any, Device, Host};

functions! {
    fn cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream) {
        copy((to, Device), (from as u64, Host), bytes, &stream::of(stream)?, "a copy to the device")?;
    }

    fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream) {
        copy((to as u64, Host), (from, Device), bytes, &stream::of(stream)?, "a copy to the host")?;
    }

    fn cuMemcpyDtoDAsync_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream) {
        copy((to, Device), (from, Device), bytes, &stream::of(stream)?, "a copy within devices")?;
    }

    fn cuMemcpyAsync(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream) {
        copy((to, Any), (from, Any), bytes, &stream::of(stream)?, "a copy")?;
    }

    fn cuMemcpyPeerAsync(
        to: CUdeviceptr, to_context: CUcontext, from: CUdeviceptr, from_context: CUcontext, bytes: usize, stream: CUstream,
    ) {
        copy_between((to, to_context), (from, from_context), bytes, &stream::of(stream)?)?;
    }

    fn cuMemcpyPeer(to: CUdeviceptr, to_context: CUcontext, from: CUdeviceptr, from_context: CUcontext, bytes: usize) {
        copy_between((to, to_context), (from, from_context), bytes, &context::current()?.default_stream())?;
    }

    fn cuMemcpyHtoD_v2(to: CUdeviceptr, from: *const c_void, bytes: usize) {
        copy_on_default((to, Device), (from as u64, Host), bytes, "a copy to the device")?;
    }

    fn cuMemcpyDtoH_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize) {
        copy_on_default((to as u64, Host), (from, Device), bytes, "a copy to the host")?;
    }

    fn cuMemcpyDtoD_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize) {
        copy_on_default((to, Device), (from, Device), bytes, "a copy within devices")?;
    }

    fn cuMemcpy(to: CUdeviceptr, from: CUdeviceptr, bytes: usize) {
        copy_on_default((to, Any), (from, Any), bytes, "a copy")?;
    }

    fn cuMemsetD8Async(address: CUdeviceptr, value: c_uchar, count: usize, stream: CUstream) {
        fill(address, value, count, &stream::of(stream)?, "a fill")?;
    }

    fn cuMemsetD16Async(address: CUdeviceptr, value: c_ushort, count: usize, stream: CUstream) {
        fill(address, value, count, &stream::of(stream)?, "a fill")?;
    }

    fn cuMemsetD32Async(address: CUdeviceptr, value: c_uint, count: usize, stream: CUstream) {
        fill(address, value, count, &stream::of(stream)?, "a fill")?;
    }

    fn cuMemsetD8_v2(address: CUdeviceptr, value: c_uchar, count: usize) {
        fill(address, value, count, &context::current()?.default_stream(), "a fill")?;
    }

    fn cuMemsetD16_v2(address: CUdeviceptr, value: c_ushort, count: usize) {
        fill(address, value, count, &context::current()?.default_stream(), "a fill")?;
    }

    fn cuMemsetD32_v2(address: CUdeviceptr, value: c_uint, count: usize) {
        fill(address, value, count, &context::current()?.default_stream(), "a fill")?;
    }
}
