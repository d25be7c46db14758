//! Memory that is mapped to reserved addresses.

use super::call::put;
use super::context;
use super::memory::{self, AllocationKind};
use super::{device, pages, report};
use cudarc::driver::sys::{CUdeviceptr, CUmemAccessDesc, CUmemAllocationProp, CUmemGenericAllocationHandle, CUresult};
use std::collections::{BTreeMap, HashMap};
use std::ffi::c_ulonglong;
use std::sync::{LazyLock, Mutex, MutexGuard};

/// Sizes and addresses are multiples of this number, as on GPUs.
const GRANULARITY: u64 = 2 << 20;

/// Memory up to this size is filled with poison. Larger memory gets poison only at its start and its end.
const POISONED: u64 = 32 << 20;

/// Memory that `cuMemCreate` has created.
struct Made {
    bytes: u64,
    device: i32,
    file: i32,
    /// Number of mappings of the memory.
    mapped: u32,
    /// Whether the memory was released. It is freed with its last mapping.
    released: bool,
}

struct Mapping {
    bytes: u64,
    handle: u64,
}

#[derive(Default)]
struct State {
    made: HashMap<u64, Made>,
    mappings: BTreeMap<u64, Mapping>,
}

static STATE: LazyLock<Mutex<State>> = LazyLock::new(Mutex::default);

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Returns the start and size of the mapping, or of the allocation, that contains an address.
pub fn extent(address: u64) -> Option<(u64, u64)> {
    let region = memory::find(address)?;
    if region.kind != AllocationKind::Reserved {
        return Some((region.start, region.bytes));
    }
    let state = state();
    let (start, mapping) = state.mappings.range(..=address).next_back()?;
    (address < start + mapping.bytes).then_some((*start, mapping.bytes))
}

/// Ends the process unless the whole range of reserved addresses is mapped.
pub fn check_mapped(address: u64, bytes: u64, what: &str) {
    let mut at = address;
    while at < address + bytes {
        match extent(at) {
            Some((start, size)) => at = start + size,
            None => report::end(&format!("{what}: nothing is mapped at {at:#x}")),
        }
    }
}

fn is_granular(number: u64) -> Result<(), CUresult> {
    if number > 0 && number.is_multiple_of(GRANULARITY) { Ok(()) } else { Err(CUresult::CUDA_ERROR_INVALID_VALUE) }
}

/// Returns the device that `properties` name. Fails unless they describe a kind of memory that is simulated.
unsafe fn device_of(properties: *const CUmemAllocationProp) -> Result<&'static device::Device, CUresult> {
    // SAFETY: the caller keeps the conditions that the driver documents.
    let properties = unsafe { properties.as_ref() }.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
    if properties.type_ as u32 != 1 || properties.location.type_ as u32 != 1 {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    device::get(properties.location.id)
}

fn give_back(state: &mut State, handle: u64) {
    if state.made.get(&handle).is_some_and(|made| made.released && made.mapped == 0) {
        let made = state.made.remove(&handle).expect("it was just seen");
        // SAFETY: the file belongs only to this memory, and is not mapped anywhere.
        unsafe { libc::close(made.file) };
        if let Ok(device) = device::get(made.device) {
            device.give_back(made.bytes);
        }
    }
}

functions! {
    fn cuMemGetAllocationGranularity(place: *mut usize, properties: *const CUmemAllocationProp, _option: u32) {
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe {
            device_of(properties)?;
            put(place, GRANULARITY as usize)?;
        }
    }

    fn cuMemAddressReserve(place: *mut CUdeviceptr, bytes: usize, alignment: usize, _wanted: CUdeviceptr, flags: c_ulonglong) {
        let context = context::current()?;
        is_granular(bytes as u64)?;
        if flags != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let alignment = (alignment as u64).max(GRANULARITY);
        let part = context.device.ordinal as usize;
        let start = pages::reserve(part, bytes as u64, alignment).ok_or(CUresult::CUDA_ERROR_OUT_OF_MEMORY)?;
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, start) }?;
        memory::insert(memory::foreign(start, bytes as u64, AllocationKind::Reserved, &context, "cuMemAddressReserve"));
    }

    fn cuMemAddressFree(address: CUdeviceptr, bytes: usize) {
        context::current()?;
        let region = memory::find(address).filter(|region| region.kind == AllocationKind::Reserved && region.start == address);
        let region = region.filter(|region| region.bytes == bytes as u64).ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        if state().mappings.range(address..region.end()).next().is_some() {
            report::end(&format!("cuMemAddressFree: memory is still mapped to {}", region.describe()));
        }
        memory::remove(address, &[AllocationKind::Reserved]);
        memory::release(&region);
    }

    fn cuMemCreate(
        place: *mut CUmemGenericAllocationHandle,
        bytes: usize,
        properties: *const CUmemAllocationProp,
        flags: c_ulonglong,
    ) {
        // SAFETY: the caller keeps the conditions that the driver documents.
        let device = unsafe { device_of(properties) }?;
        is_granular(bytes as u64)?;
        if flags != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let handle = super::handles::new_handle() as u64;
        device.take(bytes as u64)?;
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, handle) }?;
        let file = pages::memory_file(bytes as u64);
        let made = Made { bytes: bytes as u64, device: device.ordinal, file, mapped: 0, released: false };
        state().made.insert(handle, made);
    }

    fn cuMemRelease(handle: CUmemGenericAllocationHandle) {
        let mut state = state();
        match state.made.get_mut(&handle) {
            Some(made) if !made.released => made.released = true,
            _ => report::end(&format!("cuMemRelease: {handle:#x} is no memory, or was released")),
        }
        give_back(&mut state, handle);
    }

    fn cuMemMap(address: CUdeviceptr, bytes: usize, offset: usize, handle: CUmemGenericAllocationHandle, _flags: c_ulonglong) {
        context::current()?;
        let bytes = bytes as u64;
        is_granular(bytes)?;
        let region = memory::find(address).filter(|region| region.kind == AllocationKind::Reserved);
        let region = region.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        if offset != 0 || !address.is_multiple_of(GRANULARITY) || bytes > region.end() - address {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let mut state = state();
        let taken = state.mappings.range(..address + bytes).next_back();
        if taken.is_some_and(|(start, mapping)| start + mapping.bytes > address) {
            return Err(CUresult::CUDA_ERROR_ALREADY_MAPPED);
        }
        let made = state.made.get_mut(&handle).filter(|made| made.bytes == bytes && !made.released);
        let made = made.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        pages::map_file(address, bytes, made.file, 0);
        if made.mapped == 0 {
            pages::protect(address, bytes, true);
            let part = bytes.min(POISONED / 2) as usize;
            // SAFETY: the memory was just mapped, is not in use yet, and has at least this many bytes.
            unsafe {
                std::ptr::write_bytes(address as *mut u8, pages::POISON, part);
                std::ptr::write_bytes((address + bytes - part as u64) as *mut u8, pages::POISON, part);
            }
            pages::protect(address, bytes, false);
        }
        made.mapped += 1;
        state.mappings.insert(address, Mapping { bytes, handle });
    }

    fn cuMemSetAccess(address: CUdeviceptr, bytes: usize, access: *const CUmemAccessDesc, count: usize) {
        context::current()?;
        if access.is_null() {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        let end = address + bytes as u64;
        let mut at = address;
        while at < end {
            match extent(at) {
                Some((start, size)) => at = start + size,
                None => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
            }
        }
        for number in 0..count {
            // SAFETY: the caller passes `count` elements.
            let flags = unsafe { (*access.add(number)).flags };
            // 3 is CU_MEM_ACCESS_FLAGS_PROT_READWRITE.
            pages::expose(address, bytes as u64, flags as u32 == 3);
        }
    }

    /// Does not wait for running work. Operations that still use the memory are reported, or fault.
    fn cuMemUnmap(address: CUdeviceptr, bytes: usize) {
        context::current()?;
        let mut state = state();
        match state.mappings.get(&address) {
            Some(mapping) if mapping.bytes == bytes as u64 => {}
            _ => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
        }
        if let Some(region) = memory::find(address) {
            region.check_range_unused(address..address + bytes as u64, "cuMemUnmap");
        }
        let mapping = state.mappings.remove(&address).expect("it was just seen");
        pages::forget(address, mapping.bytes);
        if let Some(made) = state.made.get_mut(&mapping.handle) {
            made.mapped -= 1;
        }
        give_back(&mut state, mapping.handle);
    }
}
