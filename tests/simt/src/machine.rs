//! The simulated GPU: grids of blocks of warps of lanes. Each lane is a fibre of this thread.
//!
//! A lane runs until it makes a request that other lanes could notice (`Request`). It is then suspended. So the machine knows the
//! next operation of every lane, and does one of these things at a time:
//!
//! - A *step*: the scheduler chooses a lane whose next operation is on memory. The machine carries out one atomic access and, if
//!   this was the last access of the request, lets the lane run to its next request. (A request for several neighbouring accesses
//!   takes several steps.)
//! - A collective, as soon as all its lanes have arrived. Arriving touches no memory, so the order of arrival cannot be noticed,
//!   and the scheduler does not choose it.
//!
//! As in CUDA, votes and shuffles do not order memory accesses; `Warp::sync` and the block barrier do.

use crate::fault::{Fault, LaneName};
use crate::memory::{Accessed, Loads, Memory, Use};
use crate::request::{Identity, Request, RequestKind};
use crate::schedule::{Ready, Scheduler};
use crate::trace::{Step, Trace};
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::cell::{Cell, RefCell};
use std::ffi::c_void;

pub const WARP: usize = 32;

/// A kernel. Its parameter is the argument of the grid.
pub type Kernel = unsafe extern "C" fn(*const c_void);

/// One kernel launch. All grids of a run execute concurrently, as if each were on its own stream.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    pub blocks: usize,
    /// Lanes per block.
    pub threads: usize,
    /// Bytes of shared memory per block.
    pub scratch_bytes: usize,
    pub kernel: Kernel,
    pub argument: *const c_void,
}

/// How the machine runs kernels.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    pub loads: Loads,
    /// Whether data races are faults. Otherwise a race shows only by its consequences.
    pub races: bool,
    /// Number of steps without progress after which a launch counts as a livelock.
    pub patience: u64,
    /// Number of steps after which a launch counts as endless.
    pub step_limit: u64,
    /// Number of steps after which all grids are killed, as when a device is reset.
    pub killed_after: Option<u64>,
}

impl Default for Rules {
    fn default() -> Self {
        Self { loads: Loads::default(), races: true, patience: 200_000, step_limit: 20_000_000, killed_after: None }
    }
}

/// How a run ended that broke no rule of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All lanes have ended.
    Finished,
    /// The rules killed the grids.
    Killed,
    /// The scheduler abandoned the run.
    Abandoned,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The lane requests a memory operation.
    Ready,
    /// The lane has arrived at a collective.
    Waiting,
    Ended,
}

type Fibre = Coroutine<(), *mut Request, (), DefaultStack>;

struct Lane {
    fibre: Option<Fibre>,
    identity: Box<Identity>,
    yielder: *const Yielder<(), *mut Request>,
    request: *mut Request,
    /// Number of accesses of the request that have been carried out.
    done: u32,
    state: State,
    /// The first lane of this lane's warp, the first lane of its block, and the number of lanes in the block.
    warp: usize,
    block: usize,
    block_lanes: usize,
}

/// State of the run on this thread. The hooks use it.
struct Running {
    memory: *mut Memory,
    lane: usize,
    identity: *const Identity,
    yielder: *const Yielder<(), *mut Request>,
    steps: u64,
    fault: Option<Box<Fault>>,
}

thread_local! {
    static RUNNING: Cell<*mut Running> = const { Cell::new(std::ptr::null_mut()) };
    static STACKS: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

/// Size of a lane's stack in bytes.
const STACK: usize = 64 << 10;

/// Runs grids to their end under a scheduler. If there is a `trace`, records every step in it.
///
/// # Safety
/// The kernels must touch only simulated memory, their stacks, and the data to which their arguments point. These data must be
/// valid for the kernels.
pub unsafe fn run(
    memory: &mut Memory,
    grids: &[Grid],
    rules: &Rules,
    scheduler: &mut dyn Scheduler,
    trace: Option<&mut Trace>,
) -> Result<(Ending, u64), Box<Fault>> {
    let mut lanes = Vec::new();
    let mut names = Vec::new();
    for (number, grid) in grids.iter().enumerate() {
        for block in 0..grid.blocks {
            let name = format!("shared memory of grid {number} block {block}");
            let scratch = memory.allocate(name, Use::Block, grid.scratch_bytes);
            let first = lanes.len();
            for thread in 0..grid.threads {
                let identity = Box::new(Identity {
                    thread: (block * grid.threads + thread) as u64,
                    threads: (grid.blocks * grid.threads) as u64,
                    thread_in_block: thread as u32,
                    lane: (thread % WARP) as u32,
                    block_scratch: scratch,
                    threads_in_block: grid.threads as u32,
                });
                names.push(LaneName {
                    grid: number as u16,
                    block: block as u16,
                    warp: (thread / WARP) as u16,
                    lane: (thread % WARP) as u16,
                });
                lanes.push(Lane {
                    fibre: Some(fibre(*grid)),
                    identity,
                    yielder: std::ptr::null(),
                    request: std::ptr::null_mut(),
                    done: 0,
                    state: State::Waiting,
                    warp: first + thread / WARP * WARP,
                    block: first,
                    block_lanes: grid.threads,
                });
            }
        }
    }
    scheduler.begin(&names);
    memory.begin(names, rules.races);
    let mut running = Running { memory, lane: 0, identity: std::ptr::null(), yielder: std::ptr::null(), steps: 0, fault: None };
    let before = RUNNING.replace(&mut running);
    assert!(before.is_null(), "a run inside of a run");
    let waiting = vec![0; lanes.len()];
    let mut machine = Machine { lanes, ready: Vec::new(), waiting, running: &mut running, rules, steps: 0, idle_steps: 0, trace };
    let ending = machine.run(scheduler);
    RUNNING.set(std::ptr::null_mut());
    machine.release_stacks();
    let steps = machine.steps;
    drop(machine);
    memory.end();
    ending.map(|ending| (ending, steps))
}

fn fibre(grid: Grid) -> Fibre {
    let stack = STACKS.with_borrow_mut(Vec::pop).unwrap_or_else(|| DefaultStack::new(STACK).expect("memory for a stack"));
    Coroutine::with_stack(stack, move |yielder, ()| {
        // SAFETY: only `Machine::resume` resumes a lane, and it sets RUNNING to a valid value before.
        unsafe { (*RUNNING.get()).yielder = yielder };
        // SAFETY: the caller of `run` promises that the kernel may run with its argument.
        unsafe { (grid.kernel)(grid.argument) };
    })
}

struct Machine<'a> {
    lanes: Vec<Lane>,
    /// Lanes whose next operation is on memory.
    ready: Vec<usize>,
    /// By first lane of a warp: number of the warp's lanes that wait at a collective.
    waiting: Vec<u32>,
    running: *mut Running,
    rules: &'a Rules,
    steps: u64,
    idle_steps: u64,
    trace: Option<&'a mut Trace>,
}

impl Machine<'_> {
    fn run(&mut self, scheduler: &mut dyn Scheduler) -> Result<Ending, Box<Fault>> {
        for lane in 0..self.lanes.len() {
            self.resume(lane, scheduler)?;
        }
        while !self.ready.is_empty() {
            if self.rules.killed_after.is_some_and(|limit| self.steps >= limit) {
                return Ok(Ending::Killed);
            }
            let next = scheduler.next(&Ready { lanes: &self.ready, machine: &|lane| self.pending(lane) });
            let Some(at) = next else { return Ok(Ending::Abandoned) };
            let lane = self.ready[at];
            if self.step(lane, scheduler)? {
                self.ready.swap_remove(at);
                self.resume(lane, scheduler)?;
            }
            self.check_progress()?;
        }
        if self.lanes.iter().all(|lane| lane.state == State::Ended) { Ok(Ending::Finished) } else { Err(self.stuck()) }
    }

    /// Returns the next operation of a lane: its request, and the address and size of the next access.
    fn pending(&self, lane: usize) -> (Request, *mut u8, u32) {
        let request = self.request(lane);
        let size = self.access_size(&request);
        (request, request.address.wrapping_add((self.lanes[lane].done * size) as usize), size)
    }

    fn request(&self, lane: usize) -> Request {
        // SAFETY: a ready or waiting lane is suspended in `warpset_simt_request`, whose caller keeps the request valid.
        unsafe { *self.lanes[lane].request }
    }

    /// Size of each single access of a request.
    fn access_size(&self, request: &Request) -> u32 {
        let torn = self.rules.loads.torn && request.kind == RequestKind::Load && request.size == 16;
        if torn { 8 } else { request.size }
    }

    /// Carries out one access of a lane. Returns whether this was the last access of the request.
    fn step(&mut self, lane: usize, scheduler: &mut dyn Scheduler) -> Result<bool, Box<Fault>> {
        let (request, address, size) = self.pending(lane);
        // SAFETY: no fibre is running, so nothing else uses the memory of the run.
        let memory = unsafe { &mut *(*self.running).memory };
        let mut step = Step::new(memory, lane, &request, address, size);
        let stale = self.rules.loads.stale;
        let mut choose = |options| if stale { scheduler.value(options) } else { 0 };
        let accessed = match request.kind {
            RequestKind::Load => {
                let order = if self.rules.loads.weak { crate::request::Order::Weak } else { request.order };
                memory.load(lane, &request, address, size as usize, order, &mut choose)?
            }
            RequestKind::Store => memory.store(lane, &request, address, size as usize, &mut choose)?,
            RequestKind::Fence => {
                memory.fence(lane, request.order);
                Accessed { cells: request.value, age: 0 }
            }
            _ => memory.read_modify_write(lane, &request, &mut choose)?,
        };
        let answer = accessed.cells;
        (step.answer, step.age) = (answer, accessed.age);
        if let Some(trace) = &mut self.trace {
            trace.push(step);
        }
        self.steps += 1;
        self.idle_steps += 1;
        let progress = match request.kind {
            RequestKind::Load | RequestKind::Fence => false,
            RequestKind::CompareAndSwap => answer[..size as usize / 4] == request.expected[..size as usize / 4],
            _ => true,
        };
        if progress {
            self.idle_steps = 0;
        }
        let lane = &mut self.lanes[lane];
        let (start, count) = ((lane.done * size / 4) as usize, size as usize / 4);
        // SAFETY: the lane is suspended in `warpset_simt_request`, whose caller keeps the request valid.
        unsafe { (&mut (*lane.request).value)[start..start + count].copy_from_slice(&answer[..count]) };
        lane.done += 1;
        let accesses = if request.kind == RequestKind::Fence { 1 } else { request.count * request.size / size };
        Ok(lane.done == accesses)
    }

    /// Runs a lane to its next request. If this completes a collective, runs all lanes of the collective in the same way.
    fn resume(&mut self, lane: usize, scheduler: &mut dyn Scheduler) -> Result<(), Box<Fault>> {
        let mut next = vec![lane];
        while let Some(lane) = next.pop() {
            self.run_lane(lane)?;
            if self.lanes[lane].state == State::Ready {
                self.ready.push(lane);
            } else if let Some(met) = self.met_by(lane) {
                self.idle_steps = 0;
                self.complete(&met, scheduler);
                next.extend(met);
            }
        }
        Ok(())
    }

    fn run_lane(&mut self, at: usize) -> Result<(), Box<Fault>> {
        let lane = &mut self.lanes[at];
        // SAFETY: `running` lives as long as the run. No fibre is running, so nothing else uses it.
        let running = unsafe { &mut *self.running };
        running.lane = at;
        running.identity = &*lane.identity;
        running.yielder = lane.yielder;
        running.steps = self.steps;
        let result = lane.fibre.as_mut().expect("a lane that has not ended").resume(());
        // SAFETY: as above; the fibre is suspended again.
        let running = unsafe { &mut *self.running };
        lane.yielder = running.yielder;
        if let Some(fault) = running.fault.take() {
            return Err(fault);
        }
        match result {
            CoroutineResult::Yield(request) => {
                lane.request = request;
                lane.done = 0;
                let waits = self.request(at).kind.is_collective();
                self.lanes[at].state = if waits { State::Waiting } else { State::Ready };
                self.waiting[self.lanes[at].warp] += u32::from(waits);
            }
            CoroutineResult::Return(()) => {
                lane.state = State::Ended;
                let stack = lane.fibre.take().map(Fibre::into_stack);
                STACKS.with_borrow_mut(|stacks| stacks.extend(stack));
                self.idle_steps = 0;
            }
        }
        Ok(())
    }

    /// Returns the lanes that can now leave a collective, because `lane` has arrived at it or has ended.
    fn met_by(&self, lane: usize) -> Option<Vec<usize>> {
        let Lane { block, block_lanes, warp, state, .. } = self.lanes[lane];
        let block_barrier = || {
            let all = (block..block + block_lanes).filter(|at| self.lanes[*at].state != State::Ended);
            let all: Vec<usize> = all.collect();
            let here = |at: &usize| self.waits(*at) && self.request(*at).kind == RequestKind::SyncBlock;
            (!all.is_empty() && all.iter().all(here)).then_some(all)
        };
        if state == State::Ended || self.request(lane).kind == RequestKind::SyncBlock {
            return block_barrier();
        }
        let mine = self.request(lane);
        if self.waiting[warp] < mine.lanes.count_ones() {
            return None;
        }
        let last = block + block_lanes;
        let all: Vec<usize> = (0..WARP).filter(|bit| mine.lanes >> bit & 1 == 1).map(|bit| warp + bit).collect();
        let same = |at: &usize| {
            *at < last && self.waits(*at) && {
                let theirs = self.request(*at);
                (theirs.kind, theirs.lanes, theirs.site) == (mine.kind, mine.lanes, mine.site)
            }
        };
        all.iter().all(same).then_some(all)
    }

    fn waits(&self, lane: usize) -> bool {
        self.lanes[lane].state == State::Waiting && !self.lanes[lane].request.is_null()
    }

    /// Answers the requests of lanes that have met in a collective.
    fn complete(&mut self, met: &[usize], scheduler: &mut dyn Scheduler) {
        let requests: Vec<Request> = met.iter().map(|lane| self.request(*lane)).collect();
        let vote = |(lane, request): (&usize, &Request)| (request.value[0] & 1) << ((lane - self.lanes[*lane].warp) % WARP);
        let ballot = met.iter().zip(&requests).map(vote).fold(0, std::ops::BitOr::bitor);
        for (&lane, request) in met.iter().zip(&requests) {
            let answer = match request.kind {
                RequestKind::Ballot => [ballot, 0, 0, 0],
                RequestKind::Shuffle => {
                    let warp = self.lanes[lane].warp;
                    let source = met.iter().position(|at| *at == warp + request.source as usize);
                    source.map_or([0xDEAD_BEEF; 4], |source| requests[source].value)
                }
                _ => request.value,
            };
            // SAFETY: the lane is suspended in `warpset_simt_request`, whose caller keeps the request valid.
            unsafe { (*self.lanes[lane].request).value = answer };
            self.lanes[lane].request = std::ptr::null_mut();
            self.waiting[self.lanes[lane].warp] -= 1;
        }
        if matches!(requests[0].kind, RequestKind::SyncWarp | RequestKind::SyncBlock) {
            // SAFETY: no fibre is running, so nothing else uses the memory of the run.
            unsafe { &mut *(*self.running).memory }.barrier(met);
        }
        scheduler.met(met);
    }

    fn check_progress(&self) -> Result<(), Box<Fault>> {
        if self.idle_steps > self.rules.patience {
            let at = self.lanes.iter().enumerate().filter(|(_, lane)| lane.state == State::Ready);
            let at = at.map(|(at, _)| format!("{} at {}", self.name(at), self.request(at).site)).collect::<Vec<_>>();
            return Err(Box::new(Fault::Livelock { steps: self.idle_steps, at: summary(&at) }));
        }
        if self.steps > self.rules.step_limit {
            return Err(Box::new(Fault::Endless { steps: self.steps }));
        }
        Ok(())
    }

    fn name(&self, lane: usize) -> LaneName {
        // SAFETY: no fibre is running, so nothing else uses the memory of the run.
        unsafe { &*(*self.running).memory }.names()[lane]
    }

    /// Returns the fault of a run in which some lanes wait and no lane has a memory operation to do.
    fn stuck(&self) -> Box<Fault> {
        let waiting = (0..self.lanes.len()).filter(|lane| self.waits(*lane));
        let who = waiting.map(|lane| (lane, self.request(lane))).collect::<Vec<_>>();
        let list: Vec<String> = who
            .iter()
            .map(|(lane, request)| format!("{} waits in {:?} at {}", self.name(*lane), request.kind, request.site))
            .collect();
        let ended = self.lanes.iter().any(|lane| lane.state == State::Ended);
        let apart = who.iter().any(|(_, request)| request.site != who[0].1.site);
        let list = summary(&list);
        Box::new(if ended || apart { Fault::Divergence(list) } else { Fault::Deadlock(list) })
    }

    /// Collects the stacks of lanes that have not ended, for use by later runs.
    fn release_stacks(&mut self) {
        for mut fibre in self.lanes.iter_mut().filter_map(|lane| lane.fibre.take()) {
            // SAFETY: kernels own nothing that must be dropped, and no references to their stacks remain.
            unsafe { fibre.force_reset() };
            STACKS.with_borrow_mut(|stacks| stacks.push(fibre.into_stack()));
        }
    }
}

/// Formats a list for a message, and shortens a long list.
fn summary(list: &[String]) -> String {
    let more = if list.len() > 4 { format!("; and {} more", list.len() - 4) } else { String::new() };
    list[..list.len().min(4)].join("; ") + &more
}

/// Passes a lane's request to the machine. Returns when the machine has carried it out.
///
/// # Safety
/// Only the code of a lane may call this function. `request` must be valid until the call returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_simt_request(request: *mut Request) {
    // SAFETY: lanes run only while RUNNING is valid. The yielder belongs to this lane; it was set when the lane was started or
    // resumed.
    let yielder = unsafe { &*(*RUNNING.get()).yielder };
    yielder.suspend(request);
}

/// Identity of the calling lane.
#[unsafe(no_mangle)]
pub extern "C" fn warpset_simt_identity() -> *const Identity {
    // SAFETY: lanes run only while RUNNING is valid.
    unsafe { (*RUNNING.get()).identity }
}

#[unsafe(no_mangle)]
extern "C" fn warpset_simt_steps() -> u64 {
    // SAFETY: lanes run only while RUNNING is valid.
    unsafe { (*RUNNING.get()).steps }
}

/// Ends the run with a fault of the running lane.
fn fail(fault: Box<Fault>) -> ! {
    // SAFETY: lanes run only while RUNNING is valid.
    let running = unsafe { &mut *RUNNING.get() };
    running.fault = Some(fault);
    // SAFETY: the yielder belongs to the running lane.
    let yielder = unsafe { &*running.yielder };
    yielder.suspend(std::ptr::null_mut());
    unreachable!("a lane is not resumed after a fault")
}

/// Ends the run because an access is not aligned.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn warpset_simt_misaligned(address: *const u8, bytes: u32, file: *const std::ffi::c_char, line: u32) {
    // SAFETY: lanes run only while RUNNING is valid, and the machine does not use the memory while a lane runs.
    let (running, memory) = unsafe { (&*RUNNING.get(), &*(*RUNNING.get()).memory) };
    let lane = memory.names()[running.lane];
    // SAFETY: `file` is a string literal.
    let file = unsafe { std::ffi::CStr::from_ptr(file) }.to_string_lossy();
    let site = Some(format!("{}:{line}", file.rsplit('/').next().unwrap_or_default()));
    let (location, size) = (memory.location(address), bytes as usize);
    fail(Box::new(Fault::Misaligned(crate::fault::Access { lane, location, size, write: false, strong: false, site })))
}

/// Records a plain access that the code of a lane is about to make.
pub fn plain(address: *mut u8, size: usize, write: bool) {
    let running = RUNNING.get();
    if running.is_null() {
        return; // called outside of a launch
    }
    // SAFETY: lanes run only while RUNNING is valid, and the machine does not use the memory while a lane runs.
    let (running, memory) = unsafe { (&*running, &mut *(*running).memory) };
    if let Err(mut fault) = memory.plain(running.lane, address, size, write) {
        fault.came_from(line_of_kernel());
        fail(fault);
    }
}

/// Returns the line of C++ that the lane is executing, if debug information has it.
fn line_of_kernel() -> Option<String> {
    let stack = std::backtrace::Backtrace::force_capture().to_string();
    let mut lines = stack.lines().filter_map(|line| line.trim().strip_prefix("at "));
    // Skip functions of the machine, of a module (cpp/module.h) and of the C library.
    let line = lines.find(|line| ![".rs:", "/module.h:", ".c:"].iter().any(|other| line.contains(other)))?;
    let line = line.rsplit('/').next().unwrap_or(line);
    // Cut off the column.
    Some(line.rsplit_once(':').filter(|(start, _)| start.contains(':')).map_or(line, |(start, _)| start).to_owned())
}

/// Functions that code compiled with `-fsanitize=thread` calls.
mod instrumentation {
    use super::plain;

    macro_rules! accesses {
        ($($name:ident: $size:literal, $write:literal;)+) => {
            $(#[unsafe(no_mangle)]
            extern "C" fn $name(address: *mut u8) {
                plain(address, $size, $write);
            })+
        };
    }

    accesses! {
        __tsan_read1: 1, false;
        __tsan_read2: 2, false;
        __tsan_read4: 4, false;
        __tsan_read8: 8, false;
        __tsan_read16: 16, false;
        __tsan_write1: 1, true;
        __tsan_write2: 2, true;
        __tsan_write4: 4, true;
        __tsan_write8: 8, true;
        __tsan_write16: 16, true;
        __tsan_unaligned_read2: 2, false;
        __tsan_unaligned_read4: 4, false;
        __tsan_unaligned_read8: 8, false;
        __tsan_unaligned_read16: 16, false;
        __tsan_unaligned_write2: 2, true;
        __tsan_unaligned_write4: 4, true;
        __tsan_unaligned_write8: 8, true;
        __tsan_unaligned_write16: 16, true;
    }

    #[unsafe(no_mangle)]
    extern "C" fn __tsan_read_range(address: *mut u8, size: usize) {
        plain(address, size, false);
    }

    #[unsafe(no_mangle)]
    extern "C" fn __tsan_write_range(address: *mut u8, size: usize) {
        plain(address, size, true);
    }

    #[unsafe(no_mangle)]
    extern "C" fn __tsan_init() {}

    #[unsafe(no_mangle)]
    extern "C" fn __tsan_func_entry(_: *const u8) {}

    #[unsafe(no_mangle)]
    extern "C" fn __tsan_func_exit() {}

    #[unsafe(no_mangle)]
    extern "C" fn __tsan_vptr_update(_: *mut u8, _: *const u8) {}
}
