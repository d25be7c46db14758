//! Contexts, and the current context of each thread.

use super::call::{Answer, put};
use super::device::{self, Device};
use super::fault::{self, Change};
use super::handles::{Handles, new_handle};
use super::stream::{Lazy, Stream};
use super::{errors, memory, settings};
use cudarc::driver::sys::{CUcontext, CUctxCreateParams, CUdevice, CUexecAffinityParam, CUresult};
use std::cell::RefCell;
use std::collections::HashSet;
use std::ffi::{c_int, c_uint, c_ulonglong};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

static CONTEXTS: Handles<Context> = Handles::new();

pub struct Context {
    pub handle: usize,
    pub device: &'static Device,
    primary: bool,
    flags: u32,
    /// Error that has broken the context, or 0.
    status: AtomicU32,
    default: Lazy,
    streams: Mutex<Vec<Weak<Stream>>>,
    /// Handles of contexts whose memory the context may access.
    peers: Mutex<HashSet<usize>>,
}

thread_local! {
    /// Handles of the thread's contexts. The last one is current.
    static STACK: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Context {
    fn new(device: &'static Device, primary: bool, flags: u32) -> Arc<Self> {
        let context = Arc::new(Self {
            handle: new_handle(),
            device,
            primary,
            flags,
            status: AtomicU32::new(0),
            default: Lazy::default(),
            streams: Mutex::default(),
            peers: Mutex::default(),
        });
        CONTEXTS.insert(context.handle, context.clone());
        context
    }

    /// Returns the error that has broken the context or the device, if there is one.
    pub fn check(&self) -> Answer {
        // Acquire, paired with the release of `break_it` and `lose`: everything that led to the error is visible.
        match (self.status.load(Ordering::Acquire), self.device.status.load(Ordering::Acquire)) {
            (0, 0) => Ok(()),
            (0, status) | (status, _) => Err(errors::of_number(status)),
        }
    }

    pub fn break_it(&self, status: CUresult) {
        // Release: see `check`. The first error is kept.
        let _ = self.status.compare_exchange(0, status as u32, Ordering::Release, Ordering::Relaxed);
    }

    /// Blocks for ever if the device has stopped.
    pub fn hang_if_wanted(&self) {
        // Relaxed: the flag passes on no other data.
        while self.device.hung.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn default_stream(self: &Arc<Self>) -> Arc<Stream> {
        self.default.get_or_make(self)
    }

    pub fn default_stream_if_used(&self) -> Option<Arc<Stream>> {
        self.default.get()
    }

    pub fn add_stream(&self, stream: &Arc<Stream>) {
        let mut streams = lock(&self.streams);
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(stream));
    }

    /// All streams except the default stream, including destroyed streams that still have work.
    pub fn streams(&self) -> Vec<Arc<Stream>> {
        lock(&self.streams).iter().filter_map(Weak::upgrade).collect()
    }

    fn wait_for_all(&self) {
        let (streams, default) = (self.streams(), self.default.get());
        let busy = streams.iter().chain(&default).filter(|stream| !stream.is_known_idle());
        let tickets: Vec<_> = busy.map(Stream::ticket).collect();
        tickets.iter().for_each(|ticket| ticket.wait());
    }

    /// Whether the context may access memory of a device: its own device, or the device of a peer context.
    pub fn can_access_device(&self, ordinal: i32) -> bool {
        if self.device.ordinal == ordinal {
            return true;
        }
        let peers = lock(&self.peers).clone();
        peers.iter().filter_map(|peer| CONTEXTS.find(*peer)).any(|peer| peer.device.ordinal == ordinal)
    }

    fn destroy(self: &Arc<Self>) {
        self.wait_for_all();
        memory::free_all_of(self.handle);
        self.streams().iter().chain(&self.default.get()).for_each(Stream::end);
        CONTEXTS.remove(self.handle);
    }
}

/// Waits for all work on a device.
pub fn wait_for_device(ordinal: i32) {
    for context in CONTEXTS.all().into_iter().filter(|context| context.device.ordinal == ordinal) {
        context.wait_for_all();
    }
}

fn current_handle() -> usize {
    STACK.with_borrow(|stack| stack.last().copied().unwrap_or(0))
}

fn current_unchecked() -> Result<Arc<Context>, CUresult> {
    match current_handle() {
        0 => Err(CUresult::CUDA_ERROR_INVALID_CONTEXT),
        handle => CONTEXTS.find(handle).ok_or(CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED),
    }
}

/// Returns the current context, or an error if there is none or if it is broken.
pub fn current() -> Result<Arc<Context>, CUresult> {
    device::check_initialised()?;
    let context = current_unchecked()?;
    context.check()?;
    Ok(context)
}

/// Breaks the current context. If `device` is set, its device is lost, too.
pub fn break_current(status: CUresult, device: bool) {
    if let Ok(context) = current_unchecked() {
        if device {
            context.device.lose(status);
        }
        context.break_it(status);
    }
}

/// Makes the device of the current context stop.
pub fn hang_current() {
    if let Ok(context) = current_unchecked() {
        // Relaxed: the flag passes on no other data.
        context.device.hung.store(true, Ordering::Relaxed);
    }
}

fn get(handle: CUcontext) -> Result<Arc<Context>, CUresult> {
    match handle.is_null() {
        true => Err(CUresult::CUDA_ERROR_INVALID_CONTEXT),
        false => Ok(CONTEXTS.get(handle as usize)),
    }
}

/// Creates a context and makes it the current one.
fn create(place: *mut CUcontext, flags: u32, device: CUdevice) -> Answer {
    let context = Context::new(device::get(device)?, false, flags);
    // SAFETY: the caller keeps the conditions that the driver documents.
    unsafe { put(place, context.handle as CUcontext) }?;
    STACK.with_borrow_mut(|stack| stack.push(context.handle));
    Ok(())
}

functions! {
    fn cuDevicePrimaryCtxRetain(place: *mut CUcontext, device: CUdevice) {
        let device = device::get(device)?;
        let mut primary = lock(&device.primary);
        let context = match &primary.context {
            Some(context) => context.clone(),
            None => Context::new(device, true, 0),
        };
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, context.handle as CUcontext) }?;
        primary.context = Some(context);
        primary.users += 1;
    }

    fn cuDevicePrimaryCtxRelease_v2(device: CUdevice) {
        let device = device::get(device)?;
        let last = {
            let mut primary = lock(&device.primary);
            if primary.users == 0 {
                return Err(CUresult::CUDA_ERROR_INVALID_CONTEXT);
            }
            primary.users -= 1;
            if primary.users == 0 { primary.context.take() } else { None }
        };
        if let Some(context) = last {
            context.destroy();
        }
    }

    fn cuDevicePrimaryCtxGetState(device: CUdevice, flags: *mut c_uint, active: *mut c_int) {
        let is_active = lock(&device::get(device)?.primary).context.is_some();
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe {
            put(flags, 0)?;
            put(active, c_int::from(is_active))?;
        }
    }

    fn cuCtxCreate_v3(
        place: *mut CUcontext, _affinity: *mut CUexecAffinityParam, _count: c_int, flags: c_uint, device: CUdevice,
    ) {
        create(place, flags, device)?;
    }

    fn cuCtxCreate_v4(place: *mut CUcontext, _parameters: *mut CUctxCreateParams, flags: c_uint, device: CUdevice) {
        create(place, flags, device)?;
    }

    fn cuCtxDestroy_v2(context: CUcontext) {
        let context = get(context)?;
        if context.primary {
            return Err(CUresult::CUDA_ERROR_INVALID_CONTEXT);
        }
        context.destroy();
        STACK.with_borrow_mut(|stack| {
            if stack.last() == Some(&context.handle) {
                stack.pop();
            }
        });
    }

    fn cuCtxSetCurrent(context: CUcontext) {
        device::check_initialised()?;
        let mut context = context;
        if !context.is_null() {
            let asked = get(context)?;
            if fault::change() == Change::Other {
                let other = CONTEXTS.all().into_iter().find(|other| other.device.ordinal != asked.device.ordinal);
                context = other.map_or(context, |other| other.handle as CUcontext);
            }
        }
        STACK.with_borrow_mut(|stack| {
            stack.pop();
            if !context.is_null() {
                stack.push(context as usize);
            }
        });
    }

    fn cuCtxGetCurrent(place: *mut CUcontext) {
        device::check_initialised()?;
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, current_handle() as CUcontext) }?;
    }

    fn cuCtxPushCurrent_v2(context: CUcontext) {
        let context = get(context)?;
        STACK.with_borrow_mut(|stack| stack.push(context.handle));
    }

    fn cuCtxPopCurrent_v2(place: *mut CUcontext) {
        let popped = STACK.with_borrow_mut(Vec::pop).ok_or(CUresult::CUDA_ERROR_INVALID_CONTEXT)?;
        // SAFETY: the caller keeps the conditions that the driver documents. The place may be null.
        let _ = unsafe { put(place, popped as CUcontext) };
    }

    fn cuCtxGetDevice(place: *mut CUdevice) {
        let context = current_unchecked()?;
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, context.device.ordinal) }?;
    }

    fn cuCtxGetFlags(place: *mut c_uint) {
        let context = current()?;
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, context.flags) }?;
    }

    fn cuCtxSetFlags(_flags: c_uint) {
        current()?;
    }

    fn cuCtxGetApiVersion(context: CUcontext, place: *mut c_uint) {
        get(context)?;
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, errors::DRIVER_VERSION as u32) }?;
    }

    fn cuCtxGetId(context: CUcontext, place: *mut c_ulonglong) {
        let handle = if context.is_null() { current()?.handle } else { get(context)?.handle };
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, handle as u64) }?;
    }

    fn cuCtxSynchronize() {
        let context = current()?;
        context.wait_for_all();
        context.check()?;
    }

    fn cuCtxEnablePeerAccess(peer: CUcontext, flags: c_uint) {
        let (context, peer) = (current()?, get(peer)?);
        if flags != 0 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        if context.device.ordinal == peer.device.ordinal {
            return Err(CUresult::CUDA_ERROR_INVALID_DEVICE);
        }
        if !settings::settings().peers {
            return Err(CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
        }
        if !lock(&context.peers).insert(peer.handle) {
            return Err(CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
        }
    }

    fn cuCtxDisablePeerAccess(peer: CUcontext) {
        let (context, peer) = (current()?, get(peer)?);
        if !lock(&context.peers).remove(&peer.handle) {
            return Err(CUresult::CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
        }
    }
}

/// Returns two contexts, for copies between their memories.
pub fn both(one: CUcontext, other: CUcontext) -> Result<(Arc<Context>, Arc<Context>), CUresult> {
    Ok((get(one)?, get(other)?))
}
