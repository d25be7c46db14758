//! A launch: the blocks of a grid, distributed over threads of the operating system.

use super::block::{Block, Fibres, Seen, Task};
use super::module::Function;
use super::{Failure, Fault, Launch, Status, pool};
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::{ptr, thread};
use warpset_random::{Random, mix};

/// Limit of a block's shared memory in bytes, as for compute capability 9.0.
const MOST_SHARED_BYTES: u32 = 227 * 1024;

/// Content of memory that was not written.
const POISON: u8 = 0xCD;

/// Number of blocks that run at the same time, unless the launch needs more.
static PARALLEL: LazyLock<usize> = LazyLock::new(|| {
    let wanted = std::env::var("WARPSET_DEVICE_THREADS").ok().and_then(|text| text.parse().ok());
    wanted.unwrap_or_else(|| thread::available_parallelism().map_or(2, usize::from)).max(2)
});

/// The function that threads call before they run blocks of a grid (with `true`) and afterwards (with `false`).
static HOOK: OnceLock<fn(bool)> = OnceLock::new();

/// Sets the function that every thread calls before it runs blocks of a grid (with `true`) and afterwards (with `false`). Only
/// the first call has an effect.
pub fn on_worker(hook: fn(bool)) {
    let _ = HOOK.set(hook);
}

/// Position in a kernel that a thread of the operating system is running.
#[derive(Clone, Debug)]
pub struct Whereabouts {
    pub kernel: *const str,
    pub block: [u32; 3],
    pub thread: [u32; 3],
    /// Whether the address is in the guard below a stack, so that the stack has overflowed.
    pub is_stack_overflow: bool,
    /// Whether the address is next to the block's dynamic shared memory.
    pub is_beside_shared_memory: bool,
}

thread_local! {
    static NOW: Cell<(*const Function, *const Block)> = const { Cell::new((ptr::null(), ptr::null())) };
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
    static PLACES: Cell<(*const Fibres, usize, usize)> = const { Cell::new((ptr::null(), 0, 0)) };
}

/// Returns the position in the kernel that the calling thread of the operating system is running, and says what is at `address`.
/// Signal handlers may call this function: it allocates nothing and takes no lock.
pub fn whereabouts(address: usize) -> Option<Whereabouts> {
    let (function, block) = NOW.with(Cell::get);
    let (fibres, first, end) = PLACES.with(Cell::get);
    if block.is_null() {
        return None;
    }
    // SAFETY: both pointers are set while a block runs on this thread, and are valid during that time.
    let (kernel, (block, thread), is_stack_overflow) =
        unsafe { (ptr::from_ref((*function).name.as_str()), (*block).whereabouts(), (*fibres).is_overflow(address)) };
    let is_beside_shared_memory = (first..end).contains(&address);
    Some(Whereabouts { kernel, block, thread, is_stack_overflow, is_beside_shared_memory })
}

/// Memory that a thread of the operating system keeps for the blocks that it runs.
struct Worker {
    // Boxed because `PLACES` holds the address of the value.
    fibres: Box<Fibres>,
    shared: Shared,
    /// Stack for signal handlers, because a fibre's stack may not have enough space for them.
    _signals: SignalStack,
}

/// Dynamic shared memory, between pages that cannot be accessed.
struct Shared {
    mapping: *mut u8,
    bytes: usize,
}

const GUARD: usize = 64 * 1024;
const SHARED_ROOM: usize = 256 * 1024;

impl Shared {
    fn new() -> Self {
        let bytes = SHARED_ROOM + 2 * GUARD;
        // SAFETY: the calls create a mapping at an address that the system chooses, and make its middle accessible.
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

    /// Returns `bytes` bytes of shared memory, filled with poison. They end at the guard, except for padding to the alignment.
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

    /// Whether the padding after the `bytes` bytes is still poison.
    fn is_intact(&self, first: *const u8, bytes: usize) -> bool {
        // SAFETY: the range is inside the middle of the mapping, and `begin` has written all of it.
        unsafe { std::slice::from_raw_parts(first.add(bytes), bytes.next_multiple_of(128) - bytes) }
            .iter()
            .all(|byte| *byte == POISON)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: `new` has mapped this memory with this length, and no block is running.
        unsafe { libc::munmap(self.mapping.cast(), self.bytes) };
    }
}

/// A stack for signal handlers, if this thread has none yet.
struct SignalStack(Option<Vec<u8>>);

impl SignalStack {
    fn new() -> Self {
        // SAFETY: all zeros are a valid value of this struct. The system writes the current stack of this thread to it.
        let mut now: libc::stack_t = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is valid.
        unsafe { libc::sigaltstack(ptr::null(), &mut now) };
        if now.ss_flags & libc::SS_DISABLE == 0 {
            return Self(None);
        }
        let mut memory = vec![0u8; 64 * 1024];
        let stack = libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: memory.len() };
        // SAFETY: the memory is kept until it is released below.
        unsafe { libc::sigaltstack(&stack, ptr::null_mut()) };
        Self(Some(memory))
    }
}

impl Drop for SignalStack {
    fn drop(&mut self) {
        if self.0.is_some() {
            let none = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
            // SAFETY: no handler is running on this stack: this code runs on the thread's own stack.
            unsafe { libc::sigaltstack(&none, ptr::null_mut()) };
        }
    }
}

impl Worker {
    fn new() -> Self {
        Self { fibres: Box::new(Fibres::new()), shared: Shared::new(), _signals: SignalStack::new() }
    }
}

/// A grid that is running.
struct Grid<'a> {
    function: &'a Function,
    launch: &'a Launch<'a>,
    arguments: *const u8,
    blocks: u64,
    /// The next number in the order in which blocks start.
    next: AtomicU64,
    /// Block number `n` in that order is `(first + n * step) % blocks`.
    first: u64,
    step: u64,
    aborted: AtomicBool,
    fault: Mutex<Option<Fault>>,
}

// SAFETY: the arguments are only read, and live until the launch has ended.
unsafe impl Sync for Grid<'_> {}

impl Function {
    /// Returns an error for sizes that a launch must not have, or if the arguments have another length.
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

/// Runs a grid. Returns when all its blocks have ended.
///
/// # Errors
///
/// [`Function::check`] refuses the launch, or a block fails. Blocks that are running at that moment are finished, unless they
/// wait for others. No further block starts.
pub fn run(function: &Function, launch: &Launch<'_>) -> Result<(), Fault> {
    function.check(launch)?;
    let blocks: u64 = launch.grid.iter().map(|size| u64::from(*size)).product();
    // Aligned for every type of parameter.
    let mut arguments = vec![0u128; launch.arguments.len().div_ceil(16).max(1)];
    // SAFETY: all bytes of the arguments are copied into a vector that has at least this many bytes.
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

/// Returns the order in which blocks start: ascending or, with a seed, by steps of a random length.
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
            // Relaxed: each block must only get a different number. The start of the launch has ordered the data that blocks
            // read.
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
            // SAFETY: the address is that of this thread's `__shared__` variables of the program. Only the block that starts here
            // uses them.
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

    /// Keeps the first failure of the grid.
    fn fail(&self, block: [u32; 3], failure: Failure) {
        let Failure { status, text, thread } = failure;
        let thread = thread.map_or_else(String::new, |thread| format!(", thread {thread:?}"));
        let message = format!("{}, block {block:?}{thread}: {text}", self.function.name);
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(Fault { status, message });
        // Relaxed: see `wait` in block.rs.
        self.aborted.store(true, Ordering::Relaxed);
    }
}
