//! NCCL between threads and processes of one host: sends and receives of bytes, in groups, over sockets of the system.
//!
//! A communicator is created in the background, as with a non-blocking configuration. After an error, an exchange does not end
//! until the communicator is aborted, as with NCCL's kernels.

mod link;

use crate::driver::bridge::{self, Queue};
use crate::driver::report;
use link::{Links, Sent};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

const SUCCESS: c_int = 0;
const INVALID_ARGUMENT: c_int = 4;
const REMOTE_ERROR: c_int = 6;
const IN_PROGRESS: c_int = 7;

/// Version 2.28.3.
const VERSION: c_int = 22803;

#[derive(Clone, Copy)]
#[repr(C)]
pub struct UniqueId([u8; 128]);

struct Communicator {
    rank: usize,
    ranks: usize,
    /// `ncclResult_t`.
    state: AtomicI32,
    links: OnceLock<Links>,
    ended: link::End,
}

static COMMUNICATORS: LazyLock<Mutex<HashMap<usize, Arc<Communicator>>>> = LazyLock::new(Mutex::default);

/// A send or a receive in a group.
struct Part {
    communicator: Arc<Communicator>,
    peer: usize,
    address: u64,
    bytes: usize,
    is_send: bool,
    queue: Queue,
}

thread_local! {
    /// Depth of the group that this thread has begun, and the parts that were added to it.
    static GROUP: RefCell<(u32, Vec<Part>)> = const { RefCell::new((0, Vec::new())) };
}

fn lock() -> std::sync::MutexGuard<'static, HashMap<usize, Arc<Communicator>>> {
    COMMUNICATORS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn get(comm: *mut c_void) -> Arc<Communicator> {
    let known = lock().get(&(comm as usize)).cloned();
    known.unwrap_or_else(|| report::end(&format!("{comm:p} is no communicator, or one that was destroyed")))
}

impl Communicator {
    fn fail(&self) {
        // Release, paired with the acquire of `ncclCommGetAsyncError`.
        self.state.store(REMOTE_ERROR, Ordering::Release);
    }

    /// Executes the parts of a group. After an error, waits until the communicator is aborted.
    fn exchange(&self, sends: &[(usize, u64, usize)], receives: &[(usize, u64, usize)]) {
        let Some(links) = self.links.get() else { report::end("an exchange before the communicator was made") };
        let own = |parts: &[(usize, u64, usize)]| -> Vec<(u64, usize)> {
            let own = parts.iter().filter(|(peer, ..)| *peer == self.rank);
            own.map(|(_, address, bytes)| (*address, *bytes)).collect()
        };
        let (from, to) = (own(sends), own(receives));
        if from.iter().map(|(_, bytes)| bytes).ne(to.iter().map(|(_, bytes)| bytes)) {
            report::end("what a rank sends to itself is not what it receives");
        }
        for ((from, bytes), (to, _)) in from.into_iter().zip(to) {
            // SAFETY: the caller of NCCL keeps both ranges valid during the exchange.
            unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
        }
        let others = |parts: &[(usize, u64, usize)]| -> Vec<Sent> {
            let others = parts.iter().filter(|(peer, ..)| *peer != self.rank);
            others.map(|(peer, address, bytes)| Sent { peer: *peer, address: *address, bytes: *bytes }).collect()
        };
        if links.exchange(&others(sends), &others(receives)).is_err() {
            self.fail();
            self.ended.wait();
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclGetVersion(version: *mut c_int) -> c_int {
    // SAFETY: the caller keeps the conditions of this function.
    unsafe { version.write(VERSION) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGetErrorString(result: c_int) -> *const c_char {
    let text = match result {
        SUCCESS => c"no error",
        INVALID_ARGUMENT => c"invalid argument",
        REMOTE_ERROR => c"remote process exited or there was a network error",
        IN_PROGRESS => c"NCCL operation in progress",
        _ => c"unknown result code",
    };
    text.as_ptr()
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGetLastError(_comm: *mut c_void) -> *const c_char {
    c"".as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclGetUniqueId(id: *mut UniqueId) -> c_int {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut bytes = [0; 128];
    let moment = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    // Relaxed: only the uniqueness of the number matters.
    let text = format!("warpset-nccl-{}-{}-{moment}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    // SAFETY: the caller keeps the conditions of this function.
    unsafe { id.write(UniqueId(bytes)) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommInitRankConfig(
    comm: *mut *mut c_void,
    ranks: c_int,
    id: UniqueId,
    rank: c_int,
    _config: *mut c_void,
) -> c_int {
    if ranks < 1 || rank < 0 || rank >= ranks {
        return INVALID_ARGUMENT;
    }
    let name = String::from_utf8_lossy(&id.0).trim_end_matches('\0').to_string();
    let communicator = Arc::new(Communicator {
        rank: rank as usize,
        ranks: ranks as usize,
        state: AtomicI32::new(IN_PROGRESS),
        links: OnceLock::new(),
        ended: link::End::default(),
    });
    let made = communicator.clone();
    let spawned = std::thread::Builder::new().name("nccl".into()).spawn(move || {
        match Links::connect(&name, made.rank, made.ranks, &made.ended) {
            Ok(links) => {
                let _ = made.links.set(links);
                // Release, paired with the acquire of `ncclCommGetAsyncError`.
                made.state.store(SUCCESS, Ordering::Release);
            }
            Err(_) => made.fail(),
        }
    });
    if let Err(error) = spawned {
        report::end(&format!("no thread for a communicator: {error}"));
    }
    let handle = bridge::new_handle();
    lock().insert(handle, communicator);
    // SAFETY: the caller keeps the conditions of this function.
    unsafe { comm.write(handle as *mut c_void) };
    IN_PROGRESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommGetAsyncError(comm: *mut c_void, result: *mut c_int) -> c_int {
    // Acquire: after a success the links are visible to this thread.
    let state = get(comm).state.load(Ordering::Acquire);
    // SAFETY: the caller keeps the conditions of this function.
    unsafe { result.write(state) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclCommFinalize(comm: *mut c_void) -> c_int {
    get(comm);
    SUCCESS
}

fn end(comm: *mut c_void) -> c_int {
    let communicator = get(comm);
    lock().remove(&(comm as usize));
    communicator.ended.end();
    if let Some(links) = communicator.links.get() {
        links.close();
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclCommDestroy(comm: *mut c_void) -> c_int {
    end(comm)
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclCommAbort(comm: *mut c_void) -> c_int {
    end(comm)
}

fn add(comm: *mut c_void, peer: c_int, address: u64, count: usize, kind: c_int, stream: *mut c_void, is_send: bool) -> c_int {
    let communicator = get(comm);
    if peer < 0 || peer as usize >= communicator.ranks {
        return INVALID_ARGUMENT;
    }
    if kind > 1 {
        report::end("NCCL: only bytes are simulated");
    }
    let Some(queue) = Queue::of(stream) else { return INVALID_ARGUMENT };
    let part = Part { communicator, peer: peer as usize, address, bytes: count, is_send, queue };
    let at_once = GROUP.with_borrow_mut(|(depth, parts)| {
        parts.push(part);
        *depth == 0
    });
    if at_once { enqueue() } else { SUCCESS }
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclSend(
    from: *const c_void,
    count: usize,
    kind: c_int,
    peer: c_int,
    comm: *mut c_void,
    stream: *mut c_void,
) -> c_int {
    add(comm, peer, from as u64, count, kind, stream, true)
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclRecv(
    to: *mut c_void,
    count: usize,
    kind: c_int,
    peer: c_int,
    comm: *mut c_void,
    stream: *mut c_void,
) -> c_int {
    add(comm, peer, to as u64, count, kind, stream, false)
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGroupStart() -> c_int {
    GROUP.with_borrow_mut(|(depth, _)| *depth += 1);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn ncclGroupEnd() -> c_int {
    let is_last = GROUP.with_borrow_mut(|(depth, _)| {
        *depth = depth.saturating_sub(1);
        *depth == 0
    });
    if is_last { enqueue() } else { SUCCESS }
}

/// Enqueues the parts that this thread has added, as one operation.
fn enqueue() -> c_int {
    let parts = GROUP.with_borrow_mut(|(_, parts)| std::mem::take(parts));
    let Some(first) = parts.first() else { return SUCCESS };
    let (communicator, queue) = (first.communicator.clone(), first.queue.clone());
    if parts.iter().any(|part| !Arc::ptr_eq(&part.communicator, &communicator) || !part.queue.is(&queue)) {
        report::end("a group of NCCL with several communicators or streams is not simulated");
    }
    let of_kind = |is_send: bool| -> Vec<_> {
        let of_kind = parts.iter().filter(|part| part.is_send == is_send);
        of_kind.map(|part| (part.peer, part.address, part.bytes)).collect()
    };
    let (sends, receives) = (of_kind(true), of_kind(false));
    let ranges: Vec<_> = parts.iter().map(|part| (part.address, part.bytes as u64, !part.is_send)).collect();
    match queue.enqueue("an exchange of NCCL", &ranges, move || communicator.exchange(&sends, &receives)) {
        true => SUCCESS,
        // 1 is ncclUnhandledCudaError.
        false => 1,
    }
}
