//! Memory of devices, and pinned memory of the host: finds allocations by address, checks their uses, and reports faults.

use super::accesses::{Accesses, Action};
use super::call::put;
use super::clocks::{self, Clock, Moment};
use super::context::{self, Context};
use super::fault::{self, Change};
use super::settings::{Leaks, settings};
use super::{device, pages, report};
use cudarc::driver::sys::{CUcontext, CUdeviceptr, CUpointer_attribute, CUpointer_attribute_enum as Attribute, CUresult};
use std::backtrace::Backtrace;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::{c_int, c_uint, c_void};
use std::fmt::Write;
use std::ops::Range;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Once};

/// Addresses of allocations are multiples of this number.
const ALIGNMENT: u64 = 256;

/// Byte that fills the space between an allocation and the ends of its pages.
const CANARY: u8 = 0xC5;

/// Number of freed allocations that are remembered for reports.
const REMEMBERED: usize = 1 << 14;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocationKind {
    /// Allocated by `cuMemAlloc`.
    Plain,
    /// Allocated by `cuMemAllocAsync`.
    Pool,
    /// Allocated by `cuMemHostAlloc`.
    Pinned,
    /// Memory of the caller, registered by `cuMemHostRegister`.
    Registered,
    /// Addresses that `cuMemAddressReserve` has reserved. `virtual_memory` handles their mappings.
    Reserved,
    /// Memory for the variables of a loaded module.
    Global,
}

/// One allocation.
pub struct Region {
    pub start: u64,
    pub bytes: u64,
    pub kind: AllocationKind,
    /// Ordinal of the device. For host memory, the device of the context in which it was allocated.
    pub device: i32,
    /// Handle of the context; 0 for memory of a pool and for reserved addresses.
    pub context: usize,
    /// Address of the first page, and number of bytes of all pages.
    pages: (u64, u64),
    /// The function that made the allocation.
    function: &'static str,
    caller: Backtrace,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// For memory of a pool: the moment from which it exists, and the moment at which it ends.
    from: Option<Moment>,
    to: Option<(Moment, Arc<Backtrace>)>,
    /// By stream, the last operation that got the address.
    uses: HashMap<u64, (u64, String)>,
    accesses: Accesses,
}

#[derive(Default)]
struct Registry {
    live: BTreeMap<u64, Arc<Region>>,
    freed: VecDeque<Arc<Region>>,
}

static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Region {
    pub fn is_on_device(&self) -> bool {
        !matches!(self.kind, AllocationKind::Pinned | AllocationKind::Registered)
    }

    pub fn end(&self) -> u64 {
        self.start + self.bytes
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Describes the origin of the allocation, for reports.
    pub fn describe(&self) -> String {
        let Self { start, bytes, function, device, .. } = self;
        format!("the allocation of {bytes} bytes at {start:#x} by {function} (device {device}), from:\n{}", self.caller)
    }

    /// Records that an operation of a stream uses a range of the allocation. Ends the process if the use may come before the
    /// allocation's start or after its free, or if nothing orders the use and another one that conflicts with it.
    pub fn use_by(&self, addresses: Range<u64>, action: Action, moment: Moment, clock: &Clock, what: &str) {
        let mut state = self.state();
        if state.from.is_some_and(|from| !clock.knows(from)) {
            let stream = moment.stream;
            report::end(&format!("{what} on stream {stream} is not ordered behind {}", self.describe()));
        }
        if let Some((_, freed_from)) = &state.to {
            report::end(&format!("{what} comes after the free of {}\nfreed from:\n{freed_from}", self.describe()));
        }
        state.uses.insert(moment.stream, (moment.number, what.into()));
        let bytes = addresses.end - addresses.start;
        let (start, stream, verb) = (addresses.start, moment.stream, action.verb());
        if let Err(other) = state.accesses.add(addresses, action, moment, clock, what) {
            report::end(&format!(
                "{what} on stream {stream}, which {verb} {bytes} bytes at {start:#x}, from:\n{}\nnothing orders it and {other}\n\
                 both use {}",
                Backtrace::force_capture(),
                self.describe()
            ));
        }
    }

    /// Ends the process if a use may come after a free. `clock` says what comes before the free.
    fn check_unused(&self, clock: &Clock, free: &str) {
        for (stream, (number, what)) in &self.state().uses {
            if !clock.knows(Moment { stream: *stream, number: *number }) {
                report::end(&format!("{free} may come before {what} on stream {stream}, which uses {}", self.describe()));
            }
        }
    }

    /// Ends the process if an operation on the range may still be running when the memory of the range is removed.
    pub fn check_range_unused(&self, addresses: Range<u64>, what: &str) {
        let unordered = self.state().accesses.find_unordered(&addresses, &clocks::host());
        if let Some(other) = unordered {
            report::end(&format!("{what} may come before {other}\nwhich uses {}", self.describe()));
        }
    }

    /// Fills the space around the allocation in its pages.
    fn fill_surroundings(&self) {
        for (start, bytes) in self.surroundings() {
            // SAFETY: the range is in the allocation's pages, and outside the allocation.
            unsafe { std::ptr::write_bytes(start as *mut u8, CANARY, bytes as usize) };
        }
    }

    /// Ends the process if the space around the allocation was written to.
    fn check_surroundings(&self) {
        for (start, bytes) in self.surroundings() {
            // SAFETY: the range is in the allocation's pages, and outside the allocation.
            let surrounding = unsafe { std::slice::from_raw_parts(start as *const u8, bytes as usize) };
            if let Some(at) = surrounding.iter().position(|byte| *byte != CANARY) {
                let place = (start + at as u64) as i64 - self.start as i64;
                report::end(&format!("something was written to byte {place} of {}", self.describe()));
            }
        }
    }

    fn surroundings(&self) -> [(u64, u64); 2] {
        let (first, bytes) = self.pages;
        [(first, self.start - first), (self.end(), first + bytes - self.end())]
    }
}

/// The allocation that contains an address.
pub fn find(address: u64) -> Option<Arc<Region>> {
    let registry = registry();
    let (_, region) = registry.live.range(..=address).next_back()?;
    (address < region.end() || region.bytes == 0 && address == region.start).then(|| region.clone())
}

/// Returns the allocation that contains a range of addresses. If the range leaves its allocation, or its allocation was freed,
/// ends the process.
pub fn find_range(address: u64, bytes: u64, what: &str) -> Option<Arc<Region>> {
    let Some(region) = find(address) else {
        if let Some(freed) = find_freed(address) {
            report::end(&format!("{what}: {address:#x} was freed; it was in {}", freed.describe()));
        }
        return None;
    };
    if bytes > region.end() - address {
        let offset = address - region.start;
        report::end(&format!("{what}: {bytes} bytes from byte {offset} on leave {}", region.describe()));
    }
    Some(region)
}

fn find_freed(address: u64) -> Option<Arc<Region>> {
    let contains = |region: &&Arc<Region>| (region.start..region.end()).contains(&address);
    registry().freed.iter().rev().find(contains).cloned()
}

pub fn insert(region: Region) -> Arc<Region> {
    let region = Arc::new(region);
    registry().live.insert(region.start, region.clone());
    region
}

/// Removes an allocation that starts at an address; `None` if there is none of these kinds.
pub fn remove(address: u64, kinds: &[AllocationKind]) -> Option<Arc<Region>> {
    let mut registry = registry();
    if !registry.live.get(&address).is_some_and(|region| kinds.contains(&region.kind)) {
        return None;
    }
    let region = registry.live.remove(&address)?;
    // Remember only allocations whose addresses are not reused soon. Addresses of the other kinds may be reused at any time.
    if !matches!(region.kind, AllocationKind::Global | AllocationKind::Registered) {
        if registry.freed.len() == REMEMBERED {
            registry.freed.pop_front();
        }
        registry.freed.push_back(region.clone());
    }
    Some(region)
}

/// Describes memory that `allocate` did not allocate.
pub fn foreign(start: u64, bytes: u64, kind: AllocationKind, context: &Context, function: &'static str) -> Region {
    let context_handle = if kind == AllocationKind::Reserved { 0 } else { context.handle };
    Region {
        start,
        bytes,
        kind,
        device: context.device.ordinal,
        context: context_handle,
        pages: (start, bytes),
        function,
        caller: Backtrace::force_capture(),
        state: Mutex::default(),
    }
}

/// Reserves addresses for an allocation. The allocation ends as close to the end of its pages as the alignment allows, so that an
/// overrun hits the guard behind it.
pub fn allocate(
    context: &Context,
    bytes: u64,
    kind: AllocationKind,
    function: &'static str,
    from: Option<Moment>,
) -> Result<Region, CUresult> {
    let on_device = kind != AllocationKind::Pinned;
    let bytes = if fault::change() == Change::Half { bytes.div_ceil(2) } else { bytes };
    if bytes == 0 {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    // No allocation can be this large. So the sums below cannot overflow.
    if bytes > 1 << 45 {
        return Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    }
    let size = bytes.next_multiple_of(pages::PAGE);
    if on_device {
        context.device.take(size)?;
    }
    let part = if on_device { context.device.ordinal as usize } else { device::count() };
    let Some(first) = pages::reserve(part, size, pages::PAGE) else {
        if on_device {
            context.device.give_back(size);
        }
        return Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    };
    // Pinned memory starts at a page, as with the real driver.
    let start = if on_device { first + size - bytes.next_multiple_of(ALIGNMENT) } else { first };
    Ok(Region {
        start,
        bytes,
        kind,
        device: context.device.ordinal,
        context: if kind == AllocationKind::Pool { 0 } else { context.handle },
        pages: (first, size),
        function,
        caller: Backtrace::force_capture(),
        state: Mutex::new(State { from, ..State::default() }),
    })
}

/// Gives the pages of an allocation their memory.
pub fn commit(region: &Region) {
    let (first, size) = region.pages;
    pages::commit(first, size);
    region.fill_surroundings();
    if region.is_on_device() {
        pages::expose(first, size, true);
    }
}

/// Checks the space around an allocation, and removes its memory. From now on any access faults.
pub fn decommit(region: &Region) {
    let access = pages::Access::new();
    region.check_surroundings();
    drop(access);
    let (first, size) = region.pages;
    pages::forget(first, size);
    if let Ok(device) = device::get(region.device)
        && region.is_on_device()
    {
        device.give_back(size);
    }
}

/// Releases the addresses of an allocation whose memory was removed.
pub fn release(region: &Region) {
    if let Some(part) = pages::part_of(region.pages.0) {
        pages::release(part, region.pages.0);
    }
}

/// Frees an allocation of a pool, in the order of a stream. Ends the process if a use is not ordered before the free.
pub fn free_at(region: &Region, moment: Moment, clock: &Clock) {
    if region.state().from.is_some_and(|from| !clock.knows(from)) {
        report::end(&format!("a free on stream {} is not ordered behind {}", moment.stream, region.describe()));
    }
    region.check_unused(clock, "a free");
    region.state().to = Some((moment, Arc::new(Backtrace::force_capture())));
}

/// Frees the remaining allocations of a context that is being destroyed.
pub fn free_all_of(context: usize) {
    let left: Vec<_> = {
        let registry = registry();
        let of_context = |region: &&Arc<Region>| region.context == context && !matches!(region.kind, AllocationKind::Global);
        registry.live.values().filter(of_context).cloned().collect()
    };
    for region in left {
        if remove(region.start, &[region.kind]).is_some() && region.kind != AllocationKind::Registered {
            decommit(&region);
            release(&region);
        }
    }
}

/// Starts the reporting of faults, once.
pub fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        pages::start();
        faults::start();
        if settings().leaks != Leaks::Ignored {
            // SAFETY: `report_leaks` is a function of this library, which is never unloaded.
            unsafe { libc::atexit(report_leaks) };
        }
    });
}

extern "C" fn report_leaks() {
    let registry = registry();
    let left: Vec<_> = registry.live.values().filter(|region| !matches!(region.kind, AllocationKind::Global)).collect();
    if left.is_empty() {
        return;
    }
    let mut text = format!("{} allocations are left at the end of the process:", left.len());
    for region in left {
        let _ = write!(text, "\n{}", region.describe());
    }
    match settings().leaks {
        Leaks::Fatal => report::end(&text),
        _ => report::remark(&text),
    }
}

/// Reports accesses outside allocations.
mod faults {
    use super::*;
    use std::os::fd::IntoRawFd;

    /// Pipe through which the handler sends an address to the reporting thread.
    static PIPE: AtomicI32 = AtomicI32::new(-1);

    static EARLIER: Mutex<Option<[libc::sigaction; 2]>> = Mutex::new(None);
    const SIGNALS: [i32; 2] = [libc::SIGSEGV, libc::SIGBUS];

    pub fn start() {
        let (reader, writer) = std::io::pipe().unwrap_or_else(|error| report::end(&format!("no pipe: {error}")));
        // Relaxed: the handler is installed below, and the kernel runs it, which orders the accesses.
        PIPE.store(writer.into_raw_fd(), Ordering::Relaxed);
        let spawned = std::thread::Builder::new().name("fault reports".into()).spawn(move || {
            use std::io::Read;
            let mut reader = reader;
            let mut note = [0; NOTE];
            if reader.read_exact(&mut note).is_ok() {
                let (address, text) = note.split_at(8);
                let text = String::from_utf8_lossy(text);
                report_fault(u64::from_ne_bytes(address.try_into().expect("eight bytes")), text.trim_end_matches('\0'));
            }
        });
        if let Err(error) = spawned {
            report::end(&format!("no thread for reports: {error}"));
        }
        // SAFETY: zero is a valid value for all fields.
        let mut earlier = [unsafe { std::mem::zeroed::<libc::sigaction>() }; 2];
        for (signal, earlier) in SIGNALS.into_iter().zip(&mut earlier) {
            // SAFETY: zero is a valid value for all fields.
            let mut action = unsafe { std::mem::zeroed::<libc::sigaction>() };
            action.sa_sigaction = handle as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            // SAFETY: the handler takes three arguments, as the flag says.
            unsafe { libc::sigaction(signal, &action, earlier) };
        }
        *EARLIER.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(earlier);
    }

    /// Number of bytes that the handler writes: the address, and the place of the access. A pipe accepts this many bytes
    /// atomically.
    const NOTE: usize = 512;

    extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
        // SAFETY: the kernel provides the information on this signal.
        let address = unsafe { (*info).si_addr() } as u64;
        let ours = pages::BOUNDS.get().is_some_and(|(first, last)| (*first..*last).contains(&address));
        let place = crate::execution::whereabouts(address as usize);
        if ours || place.is_some() {
            let mut note = [0; NOTE];
            note[..8].copy_from_slice(&address.to_ne_bytes());
            if let Some(place) = place {
                // SAFETY: the name belongs to a kernel that is running on this thread.
                let kernel = unsafe { &*place.kernel };
                let why = match (place.is_stack_overflow, place.is_beside_shared_memory) {
                    (true, _) => ", which has used all of its stack",
                    (_, true) => ", beside its shared memory",
                    _ => "",
                };
                let mut rest = &mut note[8..];
                let _ = std::io::Write::write_fmt(
                    &mut rest,
                    format_args!("by thread {:?} of block {:?} of {kernel}{why}", place.thread, place.block),
                );
            }
            // SAFETY: the length is that of the buffer, and a signal handler may write to a pipe. The reporting thread ends the
            // process.
            unsafe {
                libc::write(PIPE.load(Ordering::Relaxed), note.as_ptr().cast(), NOTE);
                loop {
                    libc::pause();
                }
            }
        }
        // Restore the previous action and return. The access is then repeated under that action.
        let earlier = EARLIER.try_lock().ok().and_then(|earlier| *earlier);
        let index = SIGNALS.iter().position(|known| *known == signal).unwrap_or(0);
        // SAFETY: the action is the previous one or the default, which is all zeros.
        unsafe {
            let action = earlier.map_or_else(|| std::mem::zeroed(), |earlier| earlier[index]);
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }

    fn report_fault(address: u64, place: &str) -> ! {
        let running = report::running();
        let near = near(address);
        let near = near.unwrap_or_else(|| "no allocation is near".into());
        report::end(&format!("access to {address:#x} {place}: {near}\nat that time:{running}"))
    }

    /// Describes the allocation that an access has missed.
    fn near(address: u64) -> Option<String> {
        if let Some(region) = find(address) {
            let offset = address - region.start;
            let why = match region.kind {
                AllocationKind::Reserved => "nothing is mapped there, or access was not allowed",
                AllocationKind::Pool => "it is not allocated yet, or is freed already, in the order of its stream",
                _ => "device memory, and nothing runs on a device: the host's code has used its address",
            };
            return Some(format!("byte {offset} of {}\n{why}", region.describe()));
        }
        if let Some(region) = find_freed(address) {
            return Some(format!("byte {} of {}\nwhich was freed", address - region.start, region.describe()));
        }
        let registry = registry();
        let before = registry.live.range(..address).next_back().map(|(_, region)| region);
        let after = registry.live.range(address..).next().map(|(_, region)| region);
        pages::part_of(address)?;
        let (behind, ahead) = (before.map(|region| address - region.end()), after.map(|region| region.start - address));
        match (behind, ahead) {
            (Some(behind), Some(ahead)) if ahead < behind => Some(format!("{ahead} bytes before {}", after?.describe())),
            (Some(behind), _) => Some(format!("{behind} bytes behind the end of {}", before?.describe())),
            (None, Some(ahead)) => Some(format!("{ahead} bytes before {}", after?.describe())),
            (None, None) => None,
        }
    }
}

functions! {
    fn cuMemAlloc_v2(place: *mut CUdeviceptr, bytes: usize) {
        let context = context::current()?;
        let region = allocate(&context, bytes as u64, AllocationKind::Plain, "cuMemAlloc", None)?;
        commit(&region);
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, region.start) }?;
        insert(region);
    }

    fn cuMemFree_v2(address: CUdeviceptr) {
        let context = context::current()?;
        if address == 0 {
            return Ok(());
        }
        let Some(region) = find(address).filter(|region| region.start == address) else {
            report::end(&format!("cuMemFree: {address:#x} is not the start of an allocation"));
        };
        // The real call implicitly waits for all work of the device.
        context::wait_for_device(region.device);
        context.check()?;
        if region.kind == AllocationKind::Pool {
            super::pool::free_now(&region);
            return Ok(());
        }
        let Some(region) = remove(address, &[AllocationKind::Plain]) else {
            report::end(&format!("cuMemFree: {address:#x} is freed twice, or is no such memory"));
        };
        decommit(&region);
        release(&region);
    }

    fn cuMemHostAlloc(place: *mut *mut c_void, bytes: usize, _flags: c_uint) {
        let context = context::current()?;
        let region = allocate(&context, bytes as u64, AllocationKind::Pinned, "cuMemHostAlloc", None)?;
        commit(&region);
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, region.start as *mut c_void) }?;
        insert(region);
    }

    fn cuMemAllocHost_v2(place: *mut *mut c_void, bytes: usize) {
        let context = context::current()?;
        let region = allocate(&context, bytes as u64, AllocationKind::Pinned, "cuMemAllocHost", None)?;
        commit(&region);
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, region.start as *mut c_void) }?;
        insert(region);
    }

    fn cuMemFreeHost(address: *mut c_void) {
        context::current()?;
        let Some(region) = remove(address as u64, &[AllocationKind::Pinned]) else {
            report::end(&format!("cuMemFreeHost: {address:p} is no pinned memory, or was freed"));
        };
        region.check_unused(&clocks::host(), "cuMemFreeHost");
        decommit(&region);
        release(&region);
    }

    fn cuMemHostRegister_v2(address: *mut c_void, bytes: usize, _flags: c_uint) {
        let context = context::current()?;
        if address.is_null() || bytes == 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        if find(address as u64).is_some() {
            return Err(CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
        }
        insert(foreign(address as u64, bytes as u64, AllocationKind::Registered, &context, "cuMemHostRegister"));
    }

    fn cuMemHostUnregister(address: *mut c_void) {
        context::current()?;
        let region = remove(address as u64, &[AllocationKind::Registered]);
        let region = region.ok_or(CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED)?;
        region.check_unused(&clocks::host(), "cuMemHostUnregister");
    }

    fn cuMemHostGetDevicePointer_v2(place: *mut CUdeviceptr, address: *mut c_void, _flags: c_uint) {
        context::current()?;
        let region = find(address as u64).filter(|region| !region.is_on_device());
        region.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, address as u64) }?;
    }

    fn cuMemGetAddressRange_v2(start: *mut CUdeviceptr, bytes: *mut usize, address: CUdeviceptr) {
        context::current()?;
        let (first, size) = super::virtual_memory::extent(address).ok_or(CUresult::CUDA_ERROR_NOT_FOUND)?;
        // SAFETY: the caller keeps the conditions that the driver documents. Each place may be null.
        unsafe {
            let _ = put(start, first);
            let _ = put(bytes, size as usize);
        }
    }

    fn cuPointerGetAttribute(place: *mut c_void, attribute: CUpointer_attribute, address: CUdeviceptr) {
        context::current()?;
        let region = find(address).ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        let (start, bytes) = super::virtual_memory::extent(address).ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        // SAFETY: the caller passes a place with the size of the attribute.
        unsafe {
            match attribute {
                Attribute::CU_POINTER_ATTRIBUTE_CONTEXT => put(place.cast(), region.context as CUcontext)?,
                // The values are CU_MEMORYTYPE_HOST and CU_MEMORYTYPE_DEVICE.
                Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE => {
                    put(place.cast::<u32>(), if region.is_on_device() { 2 } else { 1 })?;
                }
                Attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER => put(place.cast::<u64>(), address)?,
                Attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER => match region.is_on_device() {
                    true => return Err(CUresult::CUDA_ERROR_INVALID_VALUE),
                    false => put(place.cast::<u64>(), address)?,
                },
                Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED => put(place.cast::<u32>(), 0)?,
                Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => put(place.cast::<i32>(), region.device)?,
                Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR => put(place.cast::<u64>(), start)?,
                Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE => put(place.cast::<usize>(), bytes as usize)?,
                other => report::end(&format!("pointer attribute {other:?} is not simulated")),
            }
        }
    }
}
