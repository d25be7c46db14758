//! A launch: the blocks of a grid, shared out among threads of the operating system.

use super::block::{Block, Fibres, Seen, Task};
use super::module::Function;
use super::{Failure, Fault, Launch, Status, pool};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::{ptr, thread};
use warpset_random::{Random, mix};

/// Bytes of shared memory that a block may have: those of compute capability 9.0.
const MOST_SHARED_BYTES: u32 = 227 * 1024;

/// Byte of memory that was not written.
const POISON: u8 = 0xCD;

/// Number of blocks that run at the same time unless the launch needs more.
static PARALLEL: LazyLock<usize> = LazyLock::new(|| {
    let wanted = std::env::var("WARPSET_DEVICE_THREADS").ok().and_then(|text| text.parse().ok());
    wanted.unwrap_or_else(|| thread::available_parallelism().map_or(2, usize::from)).max(2)
});

/// Called by a thread before it runs blocks of a grid (`true`) and afterwards (`false`).
static HOOK: OnceLock<fn(bool)> = OnceLock::new();

/// Sets the function that every thread calls before it runs blocks of a grid (with `true`) and afterwards (with `false`). Only
/// the first one is kept.
pub fn on_worker(hook: fn(bool)) {
    let _ = HOOK.set(hook);
}

/// Position of a kernel that runs on a thread of the operating system.
#[derive(Clone, Debug)]
pub struct Whereabouts {
    pub kernel: *const str,
    pub block: [u32; 3],
    pub thread: [u32; 3],
    /// Whether the address is in the guard below a thread's stack, so that the stack has overflowed.
    pub is_stack_overflow: bool,
    /// Whether the address is beside the block's dynamic shared memory.
    pub is_beside_shared_memory: bool,
}

thread_local! {
    static NOW: Cell<(*const Function, *const Block)> = const { Cell::new((ptr::null(), ptr::null())) };
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
    static PLACES: Cell<(*const Fibres, usize, usize)> = const { Cell::new((ptr::null(), 0, 0)) };
}

/// Position of the kernel thread that the calling thread of the operating system runs, and what is at `address`. For signal
/// handlers: allocates nothing and takes no lock.
pub fn whereabouts(address: usize) -> Option<Whereabouts> {
    let (function, block) = NOW.with(Cell::get);
    let (fibres, first, end) = PLACES.with(Cell::get);
    if block.is_null() {
        return None;
    }
    // SAFETY: both are set while a block runs on this thread, and are valid that long.
    let (kernel, (block, thread), is_stack_overflow) =
        unsafe { (ptr::from_ref((*function).name.as_str()), (*block).whereabouts(), (*fibres).is_overflow(address)) };
    let is_beside_shared_memory = (first..end).contains(&address);
    Some(Whereabouts { kernel, block, thread, is_stack_overflow, is_beside_shared_memory })
}

/// Memory that a thread of the operating system keeps for the blocks that it runs.
struct Worker {
    // Boxed because `PLACES` has its address.
    fibres: Box<Fibres>,
    shared: Shared,
    /// Stack of signal handlers: a fibre's stack may have no room for them.
    _signals: SignalStack,
}

/// Dynamic shared memory, between pages that may not be accessed.
struct Shared {
    mapping: *mut u8,
    bytes: usize,
}

const GUARD: usize = 64 * 1024;
const SHARED_ROOM: usize = 256 * 1024;

impl Shared {
    fn new() -> Self {
        let bytes = SHARED_ROOM + 2 * GUARD;
        // SAFETY: a mapping at an address that the system chooses; then its middle is made accessible.
        let mapping = unsafe {
            let mapping = libc::mmap(ptr::null_mut(), bytes, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
            assert!(mapping != libc::MAP_FAILED, "no {bytes} bytes for shared memory: {}", std::io::Error::last_os_error());
            let middle = mapping.cast::<u8>().add(GUARD);
            let result = libc::mprotect(middle.cast(), SHARED_ROOM, libc::PROT_READ | libc::PROT_WRITE);
            assert!(result == 0, "shared memory: {}", std::io::Error::last_os_error());
            mapping.cast()
        };
        Self { mapping, bytes }
    }

    /// Shared memory of `bytes` bytes, poisoned. It ends at the guard, except for bytes that its alignment takes.
    fn begin(&mut self, bytes: usize) -> *mut u8 {
        let taken = bytes.next_multiple_of(128);
        assert!(taken <= SHARED_ROOM, "{bytes} bytes of shared memory are refused earlier");
        // SAFETY: the range is inside the middle of the mapping.
        unsafe {
            let first = self.mapping.add(GUARD + SHARED_ROOM - taken);
            first.write_bytes(POISON, taken);
            first
        }
    }

    /// Whether the memory behind the `bytes` bytes is still poison.
    fn is_intact(&self, first: *const u8, bytes: usize) -> bool {
        // SAFETY: as in `begin`, which has written all of it.
        unsafe { std::slice::from_raw_parts(first.add(bytes), bytes.next_multiple_of(128) - bytes) }
            .iter()
            .all(|byte| *byte == POISON)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length; no block runs.
        unsafe { libc::munmap(self.mapping.cast(), self.bytes) };
    }
}

/// A stack for handlers of signals, if this thread has none.
struct SignalStack(Option<Vec<u8>>);

impl SignalStack {
    fn new() -> Self {
        // SAFETY: all zeros are a valid value of this struct, and the system writes the stack that this thread has.
        let mut now: libc::stack_t = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is valid.
        unsafe { libc::sigaltstack(ptr::null(), &mut now) };
        if now.ss_flags & libc::SS_DISABLE == 0 {
            return Self(None);
        }
        let mut memory = vec![0u8; 64 * 1024];
        let stack = libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: memory.len() };
        // SAFETY: the memory stays until it is released below.
        unsafe { libc::sigaltstack(&stack, ptr::null_mut()) };
        Self(Some(memory))
    }
}

impl Drop for SignalStack {
    fn drop(&mut self) {
        if self.0.is_some() {
            let none = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
            // SAFETY: no handler runs on it: this code runs on the thread's own stack.
            unsafe { libc::sigaltstack(&none, ptr::null_mut()) };
        }
    }
}

impl Worker {
    fn new() -> Self {
        Self { fibres: Box::new(Fibres::new()), shared: Shared::new(), _signals: SignalStack::new() }
    }
}

/// A grid that runs.
struct Grid<'a> {
    function: &'a Function,
    launch: &'a Launch<'a>,
    arguments: *const u8,
    blocks: u64,
    /// The next number in the order in which blocks begin.
    next: AtomicU64,
    /// Block number `n` in that order is `(first + n * step) % blocks`.
    first: u64,
    step: u64,
    aborted: AtomicBool,
    fault: Mutex<Option<Fault>>,
}

// SAFETY: the arguments are only read, and stay until the launch has ended.
unsafe impl Sync for Grid<'_> {}

impl Function {
    /// Returns an error for sizes that a launch must not have, and for arguments of another length.
    ///
    /// # Errors
    ///
    /// A fault of [`InvalidValue`](Status::InvalidValue) or [`OutOfResources`](Status::OutOfResources).
    pub fn check(&self, launch: &Launch<'_>) -> Result<(), Fault> {
        let Launch { grid, block, dynamic_shared_bytes, arguments, .. } = launch;
        let threads: u64 = block.iter().map(|size| u64::from(*size)).product();
        let refuse = |status, what: String| Err(Fault { status, message: format!("{}: {what}", self.name) });
        if grid.contains(&0) || grid[0] > i32::MAX as u32 || grid[1] > 65535 || grid[2] > 65535 {
            return refuse(Status::InvalidValue, format!("a grid of {grid:?} blocks; at most [2147483647, 65535, 65535]"));
        }
        if block.contains(&0) || block[0] > 1024 || block[1] > 1024 || block[2] > 64 || threads > 1024 {
            return refuse(Status::InvalidValue, format!("a block of {block:?} threads; at most [1024, 1024, 64], 1024 in all"));
        }
        if arguments.len() < self.argument_bytes {
            return refuse(
                Status::InvalidValue,
                format!("{} bytes of arguments; {} are wanted", arguments.len(), self.argument_bytes),
            );
        }
        if threads > u64::from(self.max_threads_per_block) {
            let most = self.max_threads_per_block;
            return refuse(Status::OutOfResources, format!("a block of {threads} threads; its launch bounds allow {most}"));
        }
        let shared = u64::from(*dynamic_shared_bytes) + u64::from(self.static_shared_bytes);
        if shared > u64::from(MOST_SHARED_BYTES) {
            return refuse(Status::InvalidValue, format!("{shared} bytes of shared memory a block; at most {MOST_SHARED_BYTES}"));
        }
        Ok(())
    }
}

/// Runs a grid, and returns when all its blocks have ended.
///
/// # Errors
///
/// [`Function::check`] refuses the launch, or a block fails. Blocks that run at that moment are finished if they do not wait for
/// others; no further block begins.
pub fn run(function: &Function, launch: &Launch<'_>) -> Result<(), Fault> {
    function.check(launch)?;
    let blocks: u64 = launch.grid.iter().map(|size| u64::from(*size)).product();
    // Aligned for every type of parameter.
    let mut arguments = vec![0u128; launch.arguments.len().div_ceil(16).max(1)];
    // SAFETY: copies all bytes of the arguments into a vector that is at least as long.
    unsafe { ptr::copy_nonoverlapping(launch.arguments.as_ptr(), arguments.as_mut_ptr().cast(), launch.arguments.len()) };
    let (first, step) = order(blocks, launch.seed);
    let grid = Grid {
        function,
        launch,
        arguments: arguments.as_ptr().cast(),
        blocks,
        next: AtomicU64::new(0),
        first,
        step,
        aborted: AtomicBool::new(false),
        fault: Mutex::new(None),
    };
    let workers = if launch.cooperative { blocks } else { blocks.min(*PARALLEL as u64) };
    pool::run(workers as usize - 1, &|| grid.work());
    grid.fault.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// The order in which blocks begin: ascending, or with a seed by steps of a random length.
fn order(blocks: u64, seed: u64) -> (u64, u64) {
    if seed == 0 {
        return (0, 1);
    }
    let gcd = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let mut random = Random::new(seed);
    let first = random.number_below(blocks);
    let step = std::iter::repeat_with(|| 1 + random.number_below(blocks)).find(|step| gcd(*step, blocks) == 1);
    (first, step.expect("1 divides all"))
}

impl Grid<'_> {
    fn work(&self) {
        if let Some(hook) = HOOK.get() {
            hook(true);
        }
        WORKER.with_borrow_mut(|worker| {
            let worker = worker.get_or_insert_with(Worker::new);
            let mapping = worker.shared.mapping as usize;
            PLACES.set((&raw const *worker.fibres, mapping, mapping + worker.shared.bytes));
            // Relaxed: blocks must differ; the data that they read was ordered by the start of the launch.
            while !self.aborted.load(Ordering::Relaxed) {
                let turn = self.next.fetch_add(1, Ordering::Relaxed);
                if turn >= self.blocks {
                    break;
                }
                let number =
                    ((u128::from(self.first) + u128::from(turn) * u128::from(self.step)) % u128::from(self.blocks)) as u64;
                self.run_block(number, worker);
            }
        });
        if let Some(hook) = HOOK.get() {
            hook(false);
        }
    }

    fn run_block(&self, number: u64, worker: &mut Worker) {
        let Launch { grid, block, dynamic_shared_bytes, seed, .. } = *self.launch;
        let (x, y) = (u64::from(grid[0]), u64::from(grid[1]));
        let index = [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32];
        let bytes = dynamic_shared_bytes as usize;
        let shared = worker.shared.begin(bytes);
        let variables = self.function.library.thread_block();
        if !variables.is_null() {
            // SAFETY: this thread's `__shared__` variables of the program; only the block that begins here uses them.
            unsafe { variables.write_bytes(POISON, self.function.all_shared_bytes) };
        }
        let task = Task {
            seen: Seen { index, size: block, grid, unused: 0, shared },
            seed: (seed != 0).then(|| mix(seed ^ mix(number))),
            aborted: &self.aborted,
            call: self.function.call,
            arguments: self.arguments,
        };
        let result = worker.fibres.run(task, |running| NOW.set((self.function, running)));
        NOW.set((ptr::null(), ptr::null()));
        if let Err(failure) = result {
            self.fail(index, failure);
        } else if !worker.shared.is_intact(shared, bytes) {
            let text = format!("writes behind its {bytes} bytes of dynamic shared memory");
            self.fail(index, Failure { status: Status::SharedMemory, text, thread: None });
        }
    }

    /// Keeps the first failure.
    fn fail(&self, block: [u32; 3], failure: Failure) {
        let Failure { status, text, thread } = failure;
        let thread = thread.map_or_else(String::new, |thread| format!(", thread {thread:?}"));
        let message = format!("{}, block {block:?}{thread}: {text}", self.function.name);
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(Fault { status, message });
        // Relaxed: see `wait` in block.rs.
        self.aborted.store(true, Ordering::Relaxed);
    }
}
