//! Requests of lanes to the machine. They mirror the structures of `cuda/platform/simt/warpset/platform.cuh`.

use std::ffi::{CStr, c_char};
use std::fmt;

/// Kind of operation. Memory operations access cells of memory; collectives wait for other lanes.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestKind {
    Load,
    Store,
    CompareAndSwap,
    FetchAdd,
    /// An addition whose result is discarded.
    Add,
    /// A maximum whose result is discarded.
    Max,
    Fence,
    Ballot,
    Shuffle,
    SyncWarp,
    SyncBlock,
}

impl RequestKind {
    /// Whether the operation waits for other lanes instead of touching memory.
    pub fn is_collective(self) -> bool {
        matches!(self, Self::Ballot | Self::Shuffle | Self::SyncWarp | Self::SyncBlock)
    }

    /// Whether the operation reads and writes in one step, so that no other write comes between the two in the coherence order.
    pub fn is_read_modify_write(self) -> bool {
        matches!(self, Self::CompareAndSwap | Self::FetchAdd | Self::Add | Self::Max)
    }

    /// Whether operations of this kind can be done in any order: additions and maxima whose results are discarded.
    pub fn is_commutative(self) -> bool {
        matches!(self, Self::Add | Self::Max)
    }
}

/// Memory order; all operations have device scope. `Weak` accesses are PTX's weak accesses: plain ones.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    Weak,
    Relaxed,
    Acquire,
    Release,
    AcquireRelease,
}

impl Order {
    pub fn acquires(self) -> bool {
        matches!(self, Self::Acquire | Self::AcquireRelease)
    }

    pub fn releases(self) -> bool {
        matches!(self, Self::Release | Self::AcquireRelease)
    }
}

/// The line of code that made the request.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Site {
    file: *const c_char,
    line: u32,
}

impl Site {
    fn file(&self) -> &'static str {
        if self.file.is_null() {
            return "?";
        }
        // SAFETY: `__builtin_FILE` returns a string literal, which ends in zero and lives as long as the program.
        unsafe { CStr::from_ptr(self.file) }.to_str().unwrap_or("?")
    }
}

impl PartialEq for Site {
    fn eq(&self, other: &Self) -> bool {
        self.line == other.line && (self.file == other.file || self.file() == other.file())
    }
}

impl Eq for Site {}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file().rsplit('/').next().unwrap_or_default(), self.line)
    }
}

/// Mirrors `warpset::simt::Request`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub kind: RequestKind,
    pub order: Order,
    pub size: u32,
    pub count: u32,
    pub address: *mut u8,
    pub lanes: u32,
    pub source: u32,
    pub expected: [u32; 4],
    pub value: [u32; 4],
    pub site: Site,
}

impl Request {
    /// Creates a request for a kernel that is written in Rust: an operation on `size` bytes.
    pub fn new(kind: RequestKind, order: Order, address: *mut u8, size: u32) -> Self {
        let site = Site { file: c"Rust".as_ptr(), line: 0 };
        Self { kind, order, size, count: 1, address, lanes: u32::MAX, source: 0, expected: [0; 4], value: [0; 4], site }
    }

    /// Whether an access may be to shared memory (`warpset::simt::Space`).
    pub fn may_be_shared(&self) -> bool {
        self.source == 1
    }

    /// Sets the line that made the request.
    pub fn at_line(mut self, line: u32) -> Self {
        self.site.line = line;
        self
    }
}

/// Mirrors `warpset::simt::Identity`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    pub thread: u64,
    pub threads: u64,
    pub thread_in_block: u32,
    pub lane: u32,
    pub block_scratch: *mut u8,
    pub threads_in_block: u32,
}
