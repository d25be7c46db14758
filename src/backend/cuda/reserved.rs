//! Memory of a GPU that grows in place: a range of addresses is reserved once, and memory is mapped to it from its start on.

use super::{Gpu, cuda, pass, undisturbed};
use crate::Result;
use cudarc::driver::sys::{self, CUresult};
use std::sync::Arc;

pub(crate) struct ReservedMemory {
    gpu: Arc<Gpu>,
    address: sys::CUdeviceptr,
    reserved: usize,
    /// Number of mapped bytes.
    bytes: usize,
    /// Granularity of mapped memory, in bytes.
    grain: usize,
    /// Mapped allocations, in order, with their sizes in bytes.
    parts: Vec<(sys::CUmemGenericAllocationHandle, usize)>,
}

/// Properties of memory of this GPU that no other process shares.
fn properties(gpu: &Gpu) -> sys::CUmemAllocationProp {
    // SAFETY: the structure has integers and pointers only, for which zero is a valid value.
    let mut properties: sys::CUmemAllocationProp = unsafe { std::mem::zeroed() };
    properties.type_ = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = gpu.context.ordinal() as i32;
    properties
}

/// Memory is mapped in pages of 2 MiB, so less memory is plain.
const LEAST: u64 = 2 << 20;

impl ReservedMemory {
    /// Whether memory of a table that may grow is worth reserved addresses.
    pub(crate) fn is_for(bytes: u64) -> bool {
        bytes >= LEAST
    }

    /// Allocates `bytes` bytes, which can grow up to the size of the GPU's memory. They are not cleared.
    pub(crate) fn new(gpu: &Arc<Gpu>, bytes: u64) -> Result<Self> {
        pass("reserving addresses")?;
        let _current = gpu.bind()?;
        let properties = properties(gpu);
        let mut grain = 0;
        let recommended = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
        // SAFETY: a number to write to, and properties that are initialised.
        unsafe { sys::cuMemGetAllocationGranularity(&mut grain, &properties, recommended) }
            .result()
            .map_err(cuda("asking for the granularity of memory"))?;
        let most = undisturbed(&gpu.context, || gpu.context.total_mem()).map_err(cuda("asking for the memory"))?;
        let reserved = most.max(bytes as usize).next_multiple_of(grain);
        let mut address = 0;
        // SAFETY: an address to write to; the range is freed once, by `drop`.
        unsafe { sys::cuMemAddressReserve(&mut address, reserved, 0, 0, 0) }.result().map_err(cuda("reserving addresses"))?;
        let mut memory = Self { gpu: gpu.clone(), address, reserved, bytes: 0, grain, parts: Vec::new() };
        memory.grow(bytes)?;
        Ok(memory)
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Number of mapped bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Grows to `bytes`, if it is smaller. New memory is not cleared.
    ///
    /// # Errors
    ///
    /// If there is no memory. Then nothing has changed.
    pub(crate) fn grow(&mut self, bytes: u64) -> Result<()> {
        let bytes = (bytes as usize).max(1).next_multiple_of(self.grain);
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return Ok(());
        }
        let _current = self.gpu.bind()?;
        let free = self.gpu.free_memory()?;
        let out_of_memory = || self.gpu.out_of_memory(more as u64, free);
        if bytes > self.reserved || more as u64 > free || crate::faults::should_fail() {
            return Err(out_of_memory());
        }
        let properties = properties(&self.gpu);
        let mut handle = 0;
        // SAFETY: a handle to write to; it is released once, by `drop` or below.
        unsafe { sys::cuMemCreate(&mut handle, more, &properties, 0) }.result().map_err(|error| match error.0 {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => out_of_memory(),
            _ => cuda("making memory")(error),
        })?;
        let at = self.address + self.bytes as u64;
        let access = sys::CUmemAccessDesc {
            location: properties.location,
            flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        // SAFETY: a part of the reserved range that nothing is mapped to, of the handle's size.
        let mapped = unsafe { sys::cuMemMap(at, more, 0, handle, 0) }.result().map_err(cuda("mapping memory")).and_then(|()| {
            // SAFETY: the part that was just mapped.
            let allowed = unsafe { sys::cuMemSetAccess(at, more, &access, 1) }.result();
            if allowed.is_err() {
                // SAFETY: as above; nothing uses it yet.
                let _ = unsafe { sys::cuMemUnmap(at, more) }.result();
            }
            allowed.map_err(cuda("mapping memory"))
        });
        if let Err(error) = mapped {
            // SAFETY: made above, and mapped nowhere.
            let _ = unsafe { sys::cuMemRelease(handle) }.result();
            return Err(error);
        }
        self.parts.push((handle, more));
        self.bytes = bytes;
        Ok(())
    }

    /// Unmaps what [`grow`](Self::grow) has added to `bytes` bytes, whose work the caller has ended. Waits for the GPU. Memory
    /// that the driver does not unmap stays for a later growth.
    pub(crate) fn shrink(&mut self, bytes: u64) {
        // Unlike `cuMemFree`, unmapping does not wait for work under way, so wait here. If the wait fails, the context is lost.
        let _ = self.gpu.synchronize();
        let Ok(_current) = self.gpu.bind() else { return };
        while let Some((handle, part)) = self.parts.pop_if(|(_, part)| self.bytes - *part >= bytes as usize) {
            // SAFETY: mapped by `grow`, as a whole, and the last part of the mapped addresses. Nothing uses it any more.
            if unsafe { sys::cuMemUnmap(self.address + (self.bytes - part) as u64, part) }.result().is_err() {
                self.parts.push((handle, part));
                return;
            }
            // SAFETY: made by `grow`, mapped nowhere any more, and released once.
            let _ = unsafe { sys::cuMemRelease(handle) }.result();
            self.bytes -= part;
        }
    }
}

impl Drop for ReservedMemory {
    fn drop(&mut self) {
        self.shrink(0);
        // Addresses that still have memory mapped must not be freed: they stay reserved until the process ends. A drop cannot
        // return errors.
        let Ok(_current) = self.gpu.bind() else { return };
        if self.parts.is_empty() {
            // SAFETY: reserved by `new`, and nothing is mapped to it any more.
            let _ = unsafe { sys::cuMemAddressFree(self.address, self.reserved) }.result();
        }
    }
}
