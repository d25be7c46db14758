//! Streams: queues of operations, each with a thread that executes them in order.

use super::call::{Answer, put};
use super::clocks::{self, Clock, Moment};
use super::context::{self, Context};
use super::fault::{self, Change};
use super::handles::{Handles, new_handle};
use super::settings::settings;
use super::{event, pages, report};
use cudarc::driver::sys::{CUcontext, CUevent, CUgraph, CUgraphExec, CUhostFn, CUresult, CUstream};
use std::collections::VecDeque;
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};
use warpset_random::mix;

pub static STREAMS: Handles<Stream> = Handles::new();

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;

/// Numerically lowest and highest priority, as on an H200.
const PRIORITIES: (i32, i32) = (0, -5);

/// A point in a stream, which the stream passes once.
#[derive(Debug)]
pub struct Ticket {
    passed: Mutex<Option<Instant>>,
    changed: Condvar,
    /// Operations that come before the ticket.
    clock: Clock,
}

impl Ticket {
    fn new(clock: Clock) -> Arc<Self> {
        Arc::new(Self { passed: Mutex::default(), changed: Condvar::new(), clock })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.passed.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn pass(&self) {
        *self.lock() = Some(Instant::now());
        self.changed.notify_all();
    }

    fn block(&self) {
        let mut passed = self.lock();
        while passed.is_none() {
            passed = self.changed.wait(passed).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// Makes the host wait for the ticket.
    pub fn wait(&self) {
        self.block();
        clocks::host().merge(&self.clock);
    }

    /// Returns the time at which the ticket was passed, or `None` before that. If it was passed, updates the host's clock.
    pub fn passed(&self) -> Option<Instant> {
        let passed = *self.lock();
        if passed.is_some() {
            clocks::host().merge(&self.clock);
        }
        passed
    }
}

enum Step {
    /// An operation. It is skipped once the context is broken.
    Work(String, Box<dyn FnOnce() -> Answer + Send>),
    Pass(Arc<Ticket>),
    WaitFor(Arc<Ticket>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Capture {
    None,
    Active,
    Invalidated,
}

struct Queue {
    steps: VecDeque<Step>,
    /// Whether the thread was started.
    started: bool,
    /// Whether the thread has no work.
    idle: bool,
    /// Whether the stream was destroyed: the thread then ends when all work is done.
    ended: bool,
    capture: Capture,
    /// Operations that come before the next operation.
    clock: Clock,
    /// Operations that come before the last operation.
    before_last: Clock,
    /// Number of the last operation.
    last: u64,
}

pub struct Stream {
    pub handle: usize,
    pub number: u64,
    pub context: Arc<Context>,
    /// Whether the stream is ordered with the default stream.
    blocking: bool,
    priority: i32,
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Stream {
    pub fn new(context: &Arc<Context>, flags: u32, priority: i32) -> Arc<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let queue = Queue {
            steps: VecDeque::new(),
            started: false,
            idle: true,
            ended: false,
            capture: Capture::None,
            clock: Clock::default(),
            before_last: Clock::default(),
            last: 0,
        };
        // Relaxed: only the uniqueness of the number matters.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        clocks::begin(number);
        Arc::new(Self {
            handle: new_handle(),
            number,
            context: context.clone(),
            blocking: flags & NON_BLOCKING == 0,
            priority,
            queue: Mutex::new(queue),
            changed: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn push(self: &Arc<Self>, queue: &mut Queue, step: Step) {
        if !queue.started {
            queue.started = true;
            let stream = self.clone();
            let spawned = std::thread::Builder::new().name(format!("stream {}", self.number)).spawn(move || stream.work());
            if let Err(error) = spawned {
                report::end(&format!("no thread for a stream: {error}"));
            }
        }
        queue.steps.push_back(step);
        self.changed.notify_all();
    }

    /// Returns an error for calls that are forbidden while a graph is captured.
    fn check_capture(&self) -> Answer {
        let mut queue = self.lock();
        if queue.capture == Capture::None {
            return Ok(());
        }
        queue.capture = Capture::Invalidated;
        Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
    }

    /// Orders the stream behind the streams with which it is implicitly synchronised: the default stream is ordered with all
    /// blocking streams of its context.
    fn order_by_default(self: &Arc<Self>) {
        if !self.blocking {
            return;
        }
        match self.context.default_stream_if_used() {
            Some(default) if default.handle == self.handle => {
                for stream in self.context.streams() {
                    if stream.blocking && stream.handle != self.handle {
                        let ticket = stream.ticket();
                        self.follow(&ticket);
                    }
                }
            }
            Some(default) => {
                let ticket = default.ticket();
                self.follow(&ticket);
            }
            None => {}
        }
    }

    /// Enqueues an operation. `check` gets the operation and the clock of what comes before it, and may end the process.
    pub fn enqueue(
        self: &Arc<Self>,
        what: impl Into<String>,
        check: impl FnOnce(&Arc<Stream>, Moment, &Clock),
        work: impl FnOnce() -> Answer + Send + 'static,
    ) -> Result<Moment, CUresult> {
        self.context.check()?;
        self.check_capture()?;
        self.order_by_default();
        let mut queue = self.lock();
        queue.clock.merge(&clocks::host());
        queue.before_last = queue.clock.clone();
        queue.last += 1;
        let moment = Moment { stream: self.number, number: queue.last };
        queue.clock.advance(moment);
        check(self, moment, &queue.clock);
        self.push(&mut queue, Step::Work(what.into(), Box::new(work)));
        drop(queue);
        // Delay at random, so that the caller's next statement may come before or after the operation begins.
        pause(self.number ^ 0xA5A5, moment.number);
        Ok(moment)
    }

    /// Returns a ticket that is passed when all operations enqueued so far are done.
    pub fn ticket(self: &Arc<Self>) -> Arc<Ticket> {
        let mut queue = self.lock();
        queue.clock.merge(&clocks::host());
        let ticket = Ticket::new(queue.clock.clone());
        if !queue.started {
            // No operation was enqueued yet, or all are done.
            ticket.pass();
        } else {
            self.push(&mut queue, Step::Pass(ticket.clone()));
        }
        ticket
    }

    /// Returns a ticket for the operations before the last one. This is a mistake that tests must find.
    pub fn early_ticket(self: &Arc<Self>) -> Arc<Ticket> {
        let mut queue = self.lock();
        let ticket = Ticket::new(queue.before_last.clone());
        match queue.steps.iter().rposition(|step| matches!(step, Step::Work(..))) {
            Some(last) => queue.steps.insert(last, Step::Pass(ticket.clone())),
            None => ticket.pass(),
        }
        ticket
    }

    /// Makes later operations wait for a ticket.
    pub fn follow(self: &Arc<Self>, ticket: &Arc<Ticket>) {
        let mut queue = self.lock();
        queue.clock.merge(&ticket.clock);
        self.push(&mut queue, Step::WaitFor(ticket.clone()));
    }

    /// Waits for all operations enqueued so far.
    pub fn synchronize(self: &Arc<Self>) -> Answer {
        self.check_capture()?;
        self.context.check()?;
        self.order_by_default();
        self.ticket().wait();
        self.context.check()
    }

    /// Ends the thread when it has done everything that was enqueued.
    pub fn end(self: &Arc<Self>) {
        let mut queue = self.lock();
        queue.ended = true;
        if !queue.started {
            clocks::end(self.number);
        }
        self.changed.notify_all();
    }

    /// Whether all operations are done, and the host knows it.
    pub fn is_known_idle(&self) -> bool {
        let (queue, host) = (self.lock(), clocks::host());
        let last = Moment { stream: self.number, number: queue.last };
        queue.steps.is_empty() && queue.idle && (queue.last == 0 || host.knows(last))
    }

    fn next(&self) -> Option<Step> {
        let mut queue = self.lock();
        loop {
            match queue.steps.pop_front() {
                Some(step) => {
                    queue.idle = false;
                    return Some(step);
                }
                None if queue.ended => {
                    queue.started = false;
                    queue.idle = true;
                    clocks::end(self.number);
                    return None;
                }
                None => {
                    queue.idle = true;
                    queue = self.changed.wait(queue).unwrap_or_else(|poisoned| poisoned.into_inner());
                }
            }
        }
    }

    fn work(&self) {
        for count in 0.. {
            let Some(step) = self.next() else { return };
            pause(self.number, count);
            match step {
                Step::Work(what, work) => {
                    self.context.hang_if_wanted();
                    if self.context.check().is_err() {
                        continue;
                    }
                    let running = report::Running::new(what, self.number);
                    let access = pages::Access::new();
                    if let Err(status) = work() {
                        self.context.break_it(status);
                    }
                    drop((access, running));
                }
                Step::Pass(ticket) => ticket.pass(),
                Step::WaitFor(ticket) => ticket.block(),
            }
        }
    }
}

/// Delays a thread: not at all, by a yield, or by up to a third of a millisecond. The delay depends on the seed and on two
/// numbers.
fn pause(stream: u64, number: u64) {
    let seed = settings().seed;
    if seed == 0 {
        return;
    }
    let mixed = mix(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ mix(stream << 32 ^ number));
    match mixed % 32 {
        0..24 => {}
        24..31 => std::thread::yield_now(),
        _ => std::thread::sleep(Duration::from_micros(mixed >> 32 & 0xFF)),
    }
}

/// Returns the stream of a handle. Null stands for the default stream of the current context.
pub fn of(handle: CUstream) -> Result<Arc<Stream>, CUresult> {
    if fault::change() == Change::Elsewhere {
        return Ok(context::current()?.default_stream());
    }
    match handle as usize {
        0 | 1 => Ok(context::current()?.default_stream()),
        2 => {
            thread_local! {
                static OWN: std::cell::RefCell<Vec<Arc<Stream>>> = const { std::cell::RefCell::new(Vec::new()) };
            }
            let context = context::current()?;
            Ok(OWN.with_borrow_mut(|own| {
                if let Some(stream) = own.iter().find(|stream| stream.context.handle == context.handle) {
                    return stream.clone();
                }
                let stream = Stream::new(&context, 0, 0);
                context.add_stream(&stream);
                own.push(stream.clone());
                stream
            }))
        }
        handle => {
            context::current()?;
            Ok(STREAMS.get(handle))
        }
    }
}

fn create(place: *mut CUstream, flags: u32, priority: i32) -> Answer {
    if flags & !NON_BLOCKING != 0 {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    let context = context::current()?;
    let priority = priority.clamp(PRIORITIES.1, PRIORITIES.0);
    let stream = Stream::new(&context, flags, priority);
    // SAFETY: the caller keeps the conditions that the driver documents.
    unsafe { put(place, stream.handle as CUstream) }?;
    context.add_stream(&stream);
    STREAMS.insert(stream.handle, stream);
    Ok(())
}

functions! {
    fn cuStreamCreate(place: *mut CUstream, flags: c_uint) {
        create(place, flags, 0)?;
    }

    fn cuStreamCreateWithPriority(place: *mut CUstream, flags: c_uint, priority: c_int) {
        create(place, flags, priority)?;
    }

    fn cuStreamDestroy_v2(stream: CUstream) {
        context::current()?;
        if (stream as usize) < 3 {
            return Err(CUresult::CUDA_ERROR_INVALID_HANDLE);
        }
        STREAMS.remove(stream as usize).end();
    }

    fn cuStreamSynchronize(stream: CUstream) {
        of(stream)?.synchronize()?;
    }

    fn cuStreamQuery(stream: CUstream) {
        let stream = of(stream)?;
        stream.check_capture()?;
        stream.context.check()?;
        if stream.ticket().passed().is_none() {
            return Err(CUresult::CUDA_ERROR_NOT_READY);
        }
    }

    fn cuStreamWaitEvent(stream: CUstream, event: CUevent, _flags: c_uint) {
        let (stream, event) = (of(stream)?, event::EVENTS.get(event as usize));
        stream.context.check()?;
        stream.check_capture()?;
        if let Some(ticket) = event.ticket() {
            stream.follow(&ticket);
        }
    }

    fn cuStreamGetCtx(stream: CUstream, place: *mut CUcontext) {
        let stream = of(stream)?;
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, stream.context.handle as CUcontext) }?;
    }

    fn cuStreamGetPriority(stream: CUstream, place: *mut c_int) {
        let stream = of(stream)?;
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, stream.priority) }?;
    }

    fn cuStreamGetFlags(stream: CUstream, place: *mut c_uint) {
        let stream = of(stream)?;
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, if stream.blocking { 0 } else { NON_BLOCKING }) }?;
    }

    fn cuStreamGetId(stream: CUstream, place: *mut c_ulonglong) {
        let stream = of(stream)?;
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, stream.number) }?;
    }

    fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        context::current()?;
        // SAFETY: the caller keeps the conditions that the driver documents. Each place may be null.
        unsafe {
            let _ = put(least, PRIORITIES.0);
            let _ = put(greatest, PRIORITIES.1);
        }
    }

    fn cuLaunchHostFunc(stream: CUstream, function: CUhostFn, data: *mut c_void) {
        let (stream, data) = (of(stream)?, data as usize);
        let function = function.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?;
        stream.enqueue("a function of the host", |_, _, _| (), move || {
            // SAFETY: the caller passes a function that takes this argument and may run on any thread.
            unsafe { function(data as *mut c_void) };
            Ok(())
        })?;
    }

    fn cuStreamIsCapturing(stream: CUstream, place: *mut u32) {
        let stream = of(stream)?;
        let capture = stream.lock().capture;
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe {
            put(place, match capture {
                Capture::None => 0,
                Capture::Active => 1,
                Capture::Invalidated => 2,
            })
        }?;
    }

    fn cuStreamBeginCapture_v2(stream: CUstream, _mode: u32) {
        if (stream as usize) < 2 {
            return Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        }
        let stream = of(stream)?;
        let mut queue = stream.lock();
        if queue.capture != Capture::None {
            return Err(CUresult::CUDA_ERROR_ILLEGAL_STATE);
        }
        queue.capture = Capture::Active;
    }

    /// Returns a graph without nodes, because no operation can be captured.
    fn cuStreamEndCapture(stream: CUstream, place: *mut CUgraph) {
        let stream = of(stream)?;
        let mut queue = stream.lock();
        let capture = std::mem::replace(&mut queue.capture, Capture::None);
        drop(queue);
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe {
            match capture {
                Capture::None => return Err(CUresult::CUDA_ERROR_ILLEGAL_STATE),
                Capture::Active => put(place, new_handle() as CUgraph)?,
                Capture::Invalidated => {
                    put(place, null_mut())?;
                    return Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
                }
            }
        }
    }

    fn cuGraphInstantiateWithFlags(place: *mut CUgraphExec, _graph: CUgraph, _flags: c_ulonglong) {
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, new_handle() as CUgraphExec) }?;
    }

    fn cuGraphLaunch(_graph: CUgraphExec, stream: CUstream) {
        of(stream)?.context.check()?;
    }

    fn cuGraphExecDestroy(_graph: CUgraphExec) {}

    fn cuGraphDestroy(_graph: CUgraph) {}
}

/// A stream that is created when it is first used.
#[derive(Default)]
pub struct Lazy(OnceLock<Arc<Stream>>);

impl Lazy {
    pub fn get(&self) -> Option<Arc<Stream>> {
        self.0.get().cloned()
    }

    pub fn get_or_make(&self, context: &Arc<Context>) -> Arc<Stream> {
        self.0.get_or_init(|| Stream::new(context, 0, 0)).clone()
    }
}
