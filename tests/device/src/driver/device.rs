//! Devices and their attributes.

use super::call::{Answer, put};
use super::context::Context;
use super::report;
use super::settings::{DeviceSettings, settings};
use cudarc::driver::sys::{CUdevice, CUdevice_attribute_enum as Attribute, CUmemoryPool, CUresult, CUuuid};
use std::ffi::{c_char, c_int, c_uint};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

pub struct Device {
    pub ordinal: i32,
    pub settings: DeviceSettings,
    /// Error with which the device was lost, or 0.
    pub status: AtomicU32,
    /// Whether the device has stopped and does not answer any more.
    pub hung: AtomicBool,
    /// Number of allocated bytes.
    used: AtomicU64,
    pub primary: Mutex<Primary>,
}

/// The primary context, which exists while a caller retains it.
#[derive(Default)]
pub struct Primary {
    pub context: Option<Arc<Context>>,
    pub users: u32,
}

static DEVICES: LazyLock<Vec<Device>> = LazyLock::new(|| {
    let device = |(settings, ordinal): (&DeviceSettings, i32)| Device {
        ordinal,
        settings: settings.clone(),
        status: AtomicU32::new(0),
        hung: AtomicBool::new(false),
        used: AtomicU64::new(0),
        primary: Mutex::default(),
    };
    settings().devices.iter().zip(0..).map(device).collect()
});

static INITIALISED: AtomicBool = AtomicBool::new(false);

impl Device {
    pub fn lose(&self, status: CUresult) {
        // Release: see `Context::check`. The first error is kept.
        let _ = self.status.compare_exchange(0, status as u32, Ordering::Release, Ordering::Relaxed);
    }

    /// Number of bytes that are not allocated.
    pub fn free_bytes(&self) -> u64 {
        // Relaxed: a statistic that others may change at any time.
        self.settings.memory.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    /// Takes bytes of the device's memory. Fails if there are too few.
    pub fn take(&self, bytes: u64) -> Answer {
        let more = |used: u64| used.checked_add(bytes).filter(|used| *used <= self.settings.memory);
        // Relaxed: an independent counter.
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map(|_| ()).map_err(|_| CUresult::CUDA_ERROR_OUT_OF_MEMORY)
    }

    pub fn give_back(&self, bytes: u64) {
        // Relaxed: an independent counter.
        let before = self.used.fetch_sub(bytes, Ordering::Relaxed);
        if before < bytes {
            report::end("more memory is freed than was allocated: a mistake of the simulated device");
        }
    }
}

pub fn check_initialised() -> Answer {
    // Acquire, paired with the release of `cuInit`.
    if INITIALISED.load(Ordering::Acquire) { Ok(()) } else { Err(CUresult::CUDA_ERROR_NOT_INITIALIZED) }
}

pub fn get(ordinal: CUdevice) -> Result<&'static Device, CUresult> {
    check_initialised()?;
    usize::try_from(ordinal).ok().and_then(|ordinal| DEVICES.get(ordinal)).ok_or(CUresult::CUDA_ERROR_INVALID_DEVICE)
}

/// Number of devices.
pub fn count() -> usize {
    DEVICES.len()
}

/// Limits of a multiprocessor and of a block, as for compute capability 9.0.
pub mod limits {
    pub const WARP: u32 = 32;
    pub const THREADS_PER_BLOCK: u32 = 1024;
    pub const THREADS_PER_MULTIPROCESSOR: u32 = 2048;
    pub const BLOCKS_PER_MULTIPROCESSOR: u32 = 32;
    pub const REGISTERS_PER_MULTIPROCESSOR: u32 = 65536;
    /// Limit for launches that do not request more.
    pub const SHARED_PER_BLOCK: u32 = 48 << 10;
    pub const SHARED_PER_BLOCK_AT_MOST: u32 = 227 << 10;
    pub const SHARED_PER_MULTIPROCESSOR: u32 = 228 << 10;
    /// Bytes of each block's shared memory that the system reserves.
    pub const SHARED_RESERVED: u32 = 1 << 10;
    pub const BLOCK: [u32; 3] = [1024, 1024, 64];
    pub const GRID: [u32; 3] = [i32::MAX as u32, 65535, 65535];
}

fn attribute(device: &Device, attribute: u32) -> Result<u32, CUresult> {
    macro_rules! answer {
        ($($name:ident => $value:expr,)*) => {
            $(if attribute == Attribute::$name as u32 { return Ok($value); })*
        };
    }
    let (major, minor) = device.settings.capability;
    answer! {
        CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK => limits::THREADS_PER_BLOCK,
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X => limits::BLOCK[0],
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y => limits::BLOCK[1],
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z => limits::BLOCK[2],
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X => limits::GRID[0],
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y => limits::GRID[1],
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z => limits::GRID[2],
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK => limits::SHARED_PER_BLOCK,
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN => limits::SHARED_PER_BLOCK_AT_MOST,
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR => limits::SHARED_PER_MULTIPROCESSOR,
        CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK => limits::SHARED_RESERVED,
        CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY => 64 << 10,
        CU_DEVICE_ATTRIBUTE_WARP_SIZE => limits::WARP,
        CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK => limits::REGISTERS_PER_MULTIPROCESSOR,
        CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR => limits::REGISTERS_PER_MULTIPROCESSOR,
        CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR => limits::THREADS_PER_MULTIPROCESSOR,
        CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR => limits::BLOCKS_PER_MULTIPROCESSOR,
        CU_DEVICE_ATTRIBUTE_CLOCK_RATE => 1_000_000,
        CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE => 1_000_000,
        CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH => 512,
        CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE => 1 << 20,
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT => device.settings.multiprocessors,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => major,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => minor,
        CU_DEVICE_ATTRIBUTE_INTEGRATED => 0,
        CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY => 1,
        CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS => 1,
        CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING => 1,
        CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT => 3,
        CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH => 1,
        CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED => 1,
        CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED => 1,
        CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS => 0,
        CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY => 0,
        CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS => 0,
        CU_DEVICE_ATTRIBUTE_COMPUTE_MODE => 0,
        CU_DEVICE_ATTRIBUTE_PCI_BUS_ID => device.ordinal as u32 + 1,
        CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID => 0,
        CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID => 0,
        CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED => 1,
        CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM => 1,
        CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED => 1,
    }
    report::end(&format!("device attribute {attribute} is not simulated"))
}

/// Returns the handle of a device's own pool.
fn pool(device: &Device) -> CUmemoryPool {
    (0x00D1_0000_0000_0000usize + device.ordinal as usize) as CUmemoryPool
}

functions! {
    fn cuInit(flags: c_uint) {
        if flags != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        if DEVICES.is_empty() {
            return Err(CUresult::CUDA_ERROR_NO_DEVICE);
        }
        super::memory::start();
        // Release: a thread that reads this flag also finds the handler that was installed above.
        INITIALISED.store(true, Ordering::Release);
    }

    fn cuDeviceGetCount(place: *mut c_int) {
        check_initialised()?;
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, DEVICES.len() as c_int) }?;
    }

    fn cuDeviceGet(place: *mut CUdevice, ordinal: c_int) {
        get(ordinal)?;
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, ordinal) }?;
    }

    fn cuDeviceGetName(place: *mut c_char, len: c_int, device: CUdevice) {
        get(device)?;
        let name = b"simulated device";
        let len = usize::try_from(len).ok().filter(|len| *len > 0).ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let count = name.len().min(len - 1);
        // SAFETY: the caller's buffer has `len` bytes.
        unsafe {
            std::ptr::copy_nonoverlapping(name.as_ptr().cast(), place, count);
            place.add(count).write(0);
        }
    }

    fn cuDeviceTotalMem_v2(place: *mut usize, device: CUdevice) {
        let device = get(device)?;
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, device.settings.memory as usize) }?;
    }

    fn cuDeviceGetAttribute(place: *mut c_int, wanted: u32, device: CUdevice) {
        let value = attribute(get(device)?, wanted)?;
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, value as c_int) }?;
    }

    fn cuDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, device: CUdevice) {
        let (of_major, of_minor) = get(device)?.settings.capability;
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe {
            put(major, of_major as c_int)?;
            put(minor, of_minor as c_int)?;
        }
    }

    fn cuDeviceGetUuid_v2(place: *mut CUuuid, device: CUdevice) {
        let device = get(device)?;
        let mut bytes = *b"simulated device";
        bytes[15] = device.ordinal as u8;
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, CUuuid { bytes: bytes.map(|byte| byte as c_char) }) }?;
    }

    fn cuDeviceGetPCIBusId(place: *mut c_char, len: c_int, device: CUdevice) {
        let text = format!("0000:{:02X}:00.0\0", get(device)?.ordinal + 1);
        if (len as usize) < text.len() {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: the caller's buffer has `len` bytes.
        unsafe { std::ptr::copy_nonoverlapping(text.as_ptr().cast(), place, text.len()) };
    }

    fn cuDeviceCanAccessPeer(place: *mut c_int, device: CUdevice, peer: CUdevice) {
        let (device, peer) = (get(device)?, get(peer)?);
        let can = device.ordinal != peer.ordinal && settings().peers;
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, c_int::from(can)) }?;
    }

    fn cuDeviceGetDefaultMemPool(place: *mut CUmemoryPool, device: CUdevice) {
        let device = get(device)?;
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, pool(device)) }?;
    }

    fn cuDeviceGetMemPool(place: *mut CUmemoryPool, device: CUdevice) {
        let device = get(device)?;
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, pool(device)) }?;
    }

    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) {
        let context = super::context::current()?;
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe {
            put(free, context.device.free_bytes() as usize)?;
            put(total, context.device.settings.memory as usize)?;
        }
    }
}
