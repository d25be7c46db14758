//! The threads of a block: fibres that take turns on one thread of the operating system.
//!
//! A lane runs until it reaches a collective, a barrier or a pause. Lanes of a warp take turns in ascending order, and so do
//! warps. With a seed, the next lane is a random one, and lanes also pause at random atomic accesses.

use super::switch::{STACK_BYTES, Stacks, first_place, switch};
use super::{Failure, Status};
use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fmt::Write, ptr, thread};
use warpset_random::Random;

pub(super) const LANES: usize = 32;

/// A thread of a block. The first fields mirror `Lane` in runtime/words.h.
#[repr(C)]
pub(super) struct Lane {
    thread: [u32; 3],
    number: u32,
    block: *mut Block,
    countdown: u32,
    linear: u32,
    place: *mut u8,
}

/// Fields of a block that kernels read. Mirrors `Block` in runtime/words.h.
#[repr(C)]
pub(super) struct Seen {
    pub index: [u32; 3],
    pub size: [u32; 3],
    pub grid: [u32; 3],
    pub unused: u32,
    pub shared: *mut u8,
}

/// A block that is running.
#[repr(C)]
pub(super) struct Block {
    seen: Seen,
    lanes: *mut Lane,
    warps: *mut Warp,
    threads: usize,
    warp_count: usize,
    /// Number of lanes that have not ended.
    alive: usize,
    /// Number of threads at the barrier, how many of them voted, and the votes at the last completed barrier.
    arrived: usize,
    votes: u64,
    counted: u64,
    /// Number of the lane that is running.
    now: usize,
    random: Option<Random>,
    /// Set when some block of the grid has failed.
    aborted: *const AtomicBool,
    failure: Option<Failure>,
    outside: *mut u8,
    call: unsafe extern "C" fn(*const u8),
    arguments: *const u8,
}

/// A group of 32 lanes. Masks have one bit for each lane.
pub(super) struct Warp {
    runnable: u32,
    /// Lanes that wait at a collective.
    waiting: u32,
    /// Lanes that wait at the barrier of the block.
    at_barrier: u32,
    ended: u32,
    present: u32,
    kinds: [u32; LANES],
    masks: [u32; LANES],
    values: [u64; LANES],
    sources: [u32; LANES],
    results: [u64; LANES],
}

const NO_WARP: Warp = Warp {
    runnable: 0,
    waiting: 0,
    at_barrier: 0,
    ended: 0,
    present: 0,
    kinds: [0; LANES],
    masks: [0; LANES],
    values: [0; LANES],
    sources: [0; LANES],
    results: [0; LANES],
};

/// Names of collectives, by the numbers of `CollectiveKind` in runtime/words.h.
const NAMES: [&str; 14] = [
    "__syncwarp",
    "a ballot",
    "a shuffle",
    "a sum up to each lane",
    "__reduce_or_sync",
    "__reduce_and_sync",
    "__reduce_xor_sync",
    "__reduce_add_sync",
    "__reduce_min_sync",
    "__reduce_max_sync",
    "__reduce_min_sync",
    "__reduce_max_sync",
    "__match_any_sync",
    "__match_all_sync",
];

/// Functions that kernels call. Mirrors `Runtime` in runtime/words.h.
#[repr(C)]
pub(super) struct Runtime {
    collective: unsafe extern "C" fn(*mut Lane, u32, u32, u64, u32) -> u64,
    barrier: unsafe extern "C" fn(*mut Lane, u32) -> u64,
    pause: unsafe extern "C" fn(*mut Lane),
    wait: unsafe extern "C" fn(*mut Lane),
    fail: unsafe extern "C" fn(*mut Lane, u32, *const c_char, *const c_char, u32),
    nanoseconds: unsafe extern "C" fn() -> u64,
}

pub(super) static RUNTIME: Runtime = Runtime { collective, barrier, pause, wait, fail, nanoseconds };

/// Memory that the blocks of one thread of the operating system use one after another.
pub(super) struct Fibres {
    stacks: Stacks,
    lanes: Vec<Lane>,
    warps: Vec<Warp>,
}

/// A block that is to run.
pub(super) struct Task<'a> {
    pub seen: Seen,
    pub seed: Option<u64>,
    pub aborted: &'a AtomicBool,
    pub call: unsafe extern "C" fn(*const u8),
    pub arguments: *const u8,
}

impl Fibres {
    pub(super) fn new() -> Self {
        Self { stacks: Stacks::new(), lanes: Vec::new(), warps: Vec::new() }
    }

    pub(super) fn is_overflow(&self, address: usize) -> bool {
        self.stacks.is_overflow(address)
    }

    /// Runs a block until it ends or fails. Calls `running` with its address before its first lane runs.
    pub(super) fn run(&mut self, task: Task<'_>, running: impl FnOnce(*const Block)) -> Result<(), Failure> {
        let size = task.seen.size;
        let threads = size.iter().product::<u32>() as usize;
        self.warps.clear();
        self.warps.resize_with(threads.div_ceil(LANES), || NO_WARP);
        self.lanes.clear();
        let mut block = Block {
            seen: task.seen,
            lanes: ptr::null_mut(),
            warps: ptr::null_mut(),
            threads,
            warp_count: self.warps.len(),
            alive: threads,
            arrived: 0,
            votes: 0,
            counted: 0,
            now: 0,
            random: task.seed.map(Random::new),
            aborted: task.aborted,
            failure: None,
            outside: ptr::null_mut(),
            call: task.call,
            arguments: task.arguments,
        };
        let this = &raw mut block;
        for linear in 0..threads {
            let at = linear as u32;
            let thread = [at % size[0], at / size[0] % size[1], at / size[0] / size[1]];
            let countdown = block.random.as_mut().map_or(0, some_accesses);
            let number = at % LANES as u32;
            self.warps[linear / LANES].runnable |= 1 << number;
            self.warps[linear / LANES].present |= 1 << number;
            self.lanes.push(Lane { thread, number, block: this, countdown, linear: at, place: ptr::null_mut() });
        }
        for (linear, lane) in self.lanes.iter_mut().enumerate() {
            let end = self.stacks.end(linear);
            let own = ptr::from_mut(lane);
            // SAFETY: the address is the end of the stack, which has enough space, and no code runs on the stack. Lanes begin at
            // different lines of a page, so that their stacks do not use the same sets of a cache.
            unsafe {
                end.cast::<*mut Lane>().sub(1).write(own);
                lane.place = first_place(end.sub(64 + linear % 32 * 128), begin, own.cast());
            }
        }
        (block.lanes, block.warps) = (self.lanes.as_mut_ptr(), self.warps.as_mut_ptr());
        running(this);
        // SAFETY: the block, its lanes and its warps stay in place until its fibres have switched back to this function.
        unsafe {
            let first = (*this).choose_any().expect("a block has threads");
            (*this).now = first;
            let place = (*(*this).lanes.add(first)).place;
            switch(&raw mut (*this).outside, place);
        }
        block.failure.take().map_or(Ok(()), Err)
    }
}

/// Draws the number of atomic accesses until a lane pauses.
fn some_accesses(random: &mut Random) -> u32 {
    1 + random.number_below(48) as u32
}

impl Block {
    fn warp(&mut self, linear: usize) -> &mut Warp {
        // SAFETY: there is a warp for each 32 lanes. No other reference to it exists: this thread is the only one, and no
        // reference is kept while fibres switch.
        unsafe { &mut *self.warps.add(linear / LANES) }
    }

    /// Chooses the next lane in turn: a lane of the same warp as long as one of them can run.
    fn choose(&mut self, warp_first: bool) -> Option<usize> {
        if self.random.is_some() {
            return self.choose_any();
        }
        let now = self.now;
        let own = now / LANES;
        let runnable = self.warp(now).runnable;
        let behind = runnable & !low_bits(now % LANES + 1);
        if warp_first && runnable != 0 {
            return Some(own * LANES + if behind != 0 { behind } else { runnable }.trailing_zeros() as usize);
        }
        if behind != 0 {
            return Some(own * LANES + behind.trailing_zeros() as usize);
        }
        // Try the warps after this one, and finally this one again.
        let warps = self.warp_count;
        (1..=warps).map(|step| (own + step) % warps).find_map(|warp| {
            let runnable = self.warp(warp * LANES).runnable;
            (runnable != 0).then(|| warp * LANES + runnable.trailing_zeros() as usize)
        })
    }

    /// Chooses a random lane, usually of the same warp. Without a seed, chooses the first lane.
    fn choose_any(&mut self) -> Option<usize> {
        let drawn = self.random.as_mut().map_or(0, Random::number);
        let own = self.now / LANES;
        // In three of four cases, the search starts at the same warp.
        let start = if drawn & 3 == 0 && self.random.is_some() { (drawn >> 32) as usize % self.warp_count } else { own };
        let mut warp = start;
        loop {
            let runnable = self.warp(warp * LANES).runnable;
            if runnable != 0 {
                // Take the first runnable lane from a random position on.
                let from = (drawn >> 8) as u32 % LANES as u32;
                let step = runnable.rotate_right(from).trailing_zeros();
                return Some(warp * LANES + (from + step) as usize % LANES);
            }
            warp = (warp + 1) % self.warp_count;
            if warp == start {
                return None;
            }
        }
    }

    /// Describes why no lane can continue.
    fn stuck(&mut self) -> String {
        let mut text = String::from("no thread can go on:");
        for warp in 0..self.warp_count {
            let first = warp * LANES;
            let Warp { waiting, at_barrier, ended, present, kinds, masks, .. } = *self.warp(first);
            if at_barrier != 0 {
                let _ = write!(text, " threads {} are at __syncthreads;", names(first, at_barrier));
            }
            let mut left = waiting;
            while left != 0 {
                let at = left.trailing_zeros() as usize;
                let (kind, mask) = (kinds[at], masks[at]);
                let alike = bits_where(|lane| waiting >> lane & 1 == 1 && kinds[lane] == kind && masks[lane] == mask);
                left &= !alike;
                let missing = mask & !alike;
                let name = NAMES.get(kind as usize).copied().unwrap_or("a collective");
                let _ = write!(text, " threads {} are at {name} of lanes {mask:#010x}", names(first, alike));
                if missing & ended & present != 0 {
                    let _ = write!(text, ", without threads {}, which have ended", names(first, missing & ended & present));
                }
                if missing & !present != 0 {
                    let _ = write!(text, ", without lanes {:#010x}, which the block does not have", missing & !present);
                }
                if missing & present & !ended != 0 {
                    let _ = write!(text, ", without threads {}, which are elsewhere", names(first, missing & present & !ended));
                }
                text.push(';');
            }
            if ended != 0 && at_barrier == 0 && waiting == 0 {
                let _ = write!(text, " threads {} have ended;", names(first, ended));
            }
        }
        text.pop();
        text
    }

    fn threads_of(&self, linear: usize) -> [u32; 3] {
        // SAFETY: the lane belongs to this block. Its thread number never changes.
        unsafe { (*self.lanes.add(linear)).thread }
    }

    /// Returns the block and the thread that are running, for messages.
    pub(super) fn whereabouts(&self) -> ([u32; 3], [u32; 3]) {
        (self.seen.index, self.threads_of(self.now))
    }
}

fn low_bits(count: usize) -> u32 {
    if count >= LANES { !0 } else { (1 << count) - 1 }
}

fn bits_where(is_there: impl Fn(usize) -> bool) -> u32 {
    (0..LANES).filter(|lane| is_there(*lane)).fold(0, |bits, lane| bits | 1 << lane)
}

/// Formats threads of a warp as ranges of their numbers in the block.
fn names(first: usize, lanes: u32) -> String {
    let mut text = String::new();
    let mut left = lanes;
    while left != 0 {
        let from = left.trailing_zeros() as usize;
        let length = (left >> from).trailing_ones() as usize;
        left &= !(low_bits(length) << from);
        let separator = if text.is_empty() { "" } else { ", " };
        let _ = match length {
            1 => write!(text, "{separator}{}", first + from),
            _ => write!(text, "{separator}{}-{}", first + from, first + from + length - 1),
        };
    }
    text
}

/// Continues with another lane.
///
/// # Safety
///
/// The lane `from` must be running, and `to` must be able to continue.
unsafe fn go_on(block: *mut Block, from: usize, to: usize) {
    if from == to {
        return;
    }
    // SAFETY: the lanes belong to a block that is running. `to` continues where it was suspended, or at its beginning.
    unsafe {
        (*block).now = to;
        let lanes = (*block).lanes;
        switch(&raw mut (*lanes.add(from)).place, (*lanes.add(to)).place);
    }
}

/// Ends the block and abandons its fibres.
///
/// # Safety
///
/// A lane of the block must be running.
unsafe fn leave(block: *mut Block) -> ! {
    let mut nowhere = ptr::null_mut();
    // SAFETY: `outside` was written when the block began. It is used only once, because no code of the block runs afterwards.
    unsafe { switch(&raw mut nowhere, (*block).outside) };
    unreachable!("a block that was left does not go on")
}

/// Continues with another lane. If no lane can continue, the block fails.
///
/// # Safety
///
/// The lane `linear` of the block must be running and waiting, or have ended.
unsafe fn go_on_or_fail(block: *mut Block, linear: usize) {
    // SAFETY: the block lives as long as its lanes run.
    unsafe {
        match (*block).choose(true) {
            Some(next) => go_on(block, linear, next),
            None => {
                let text = (*block).stuck();
                (*block).failure = Some(Failure { status: Status::Stuck, text, thread: None });
                leave(block)
            }
        }
    }
}

/// Runs a lane from its beginning to its end.
unsafe extern "C" fn begin(lane: *mut u8) -> ! {
    let lane = lane.cast::<Lane>();
    // SAFETY: the lane and its block live until the block is left.
    unsafe {
        let block = (*lane).block;
        ((*block).call)((*block).arguments);
        let linear = (*lane).linear as usize;
        let warp = (*block).warp(linear);
        warp.runnable &= !(1 << (*lane).number);
        warp.ended |= 1 << (*lane).number;
        (*block).alive -= 1;
        if (*block).alive == 0 {
            leave(block);
        }
        go_on_or_fail(block, linear);
    }
    unreachable!("a lane that has ended does not go on")
}

/// Waits until all lanes of a mask have arrived. Returns this lane's result.
unsafe extern "C" fn collective(lane: *mut Lane, kind: u32, mask: u32, value: u64, source: u32) -> u64 {
    // SAFETY: the lane is running, and its block is alive.
    unsafe {
        let (block, at, linear) = ((*lane).block, (*lane).number as usize, (*lane).linear as usize);
        let bit = 1 << at;
        if mask & bit == 0 {
            let what = format!("{} of lanes {mask:#010x} is called by lane {at}, which is none of them", NAMES[kind as usize]);
            fail_with(lane, Status::Collective, what);
        }
        let warp = (*block).warp(linear);
        (warp.kinds[at], warp.masks[at], warp.values[at], warp.sources[at]) = (kind, mask, value, source);
        warp.waiting |= bit;
        warp.runnable &= !bit;
        if warp.waiting & mask == mask && warp.agrees(kind, mask) {
            if let Err(what) = warp.complete(kind, mask) {
                fail_with(lane, Status::Collective, what);
            }
            warp.waiting &= !mask;
            warp.runnable |= mask;
            if (*block).random.is_some() {
                go_on_or_fail(block, linear);
            }
        } else {
            go_on_or_fail(block, linear);
        }
        (*block).warp(linear).results[at]
    }
}

impl Warp {
    /// Whether all lanes of a mask wait at the same collective with the same mask.
    fn agrees(&self, kind: u32, mask: u32) -> bool {
        let differ = |lane: usize| (self.kinds[lane] != kind) | (self.masks[lane] != mask);
        let others = (0..LANES).fold(0, |others, lane| others | u32::from(differ(lane)) << lane);
        others & mask == 0
    }

    /// Computes the results of the lanes of a mask. All of them must have arrived.
    fn complete(&mut self, kind: u32, mask: u32) -> Result<(), String> {
        let Self { values, sources, results, .. } = self;
        let lanes = || (0..LANES).filter(move |lane| mask >> lane & 1 == 1);
        let fold = |start: u64, join: fn(u64, u64) -> u64| lanes().fold(start, |all, lane| join(all, values[lane]));
        let signed = |value: u64| value as u32 as i32;
        let same = match kind {
            0 => 0,
            1 => lanes().fold(0, |votes, lane| votes | values[lane] << lane),
            2 => {
                for lane in lanes() {
                    let source = sources[lane] as usize % LANES;
                    if mask >> source & 1 == 0 {
                        return Err(format!(
                            "a shuffle of lanes {mask:#010x}: lane {lane} reads from lane {source}, which is none of them"
                        ));
                    }
                    results[lane] = values[source];
                }
                return Ok(());
            }
            3 => {
                let mut sum = 0u32;
                for lane in lanes() {
                    sum = sum.wrapping_add(values[lane] as u32);
                    results[lane] = sum.into();
                }
                return Ok(());
            }
            4 => fold(0, |a, b| a | b),
            5 => fold(!0, |a, b| a & b),
            6 => fold(0, |a, b| a ^ b),
            7 => fold(0, u64::wrapping_add),
            8 => fold(!0, u64::min),
            9 => fold(0, u64::max),
            10 => lanes().map(|lane| signed(values[lane])).min().unwrap_or(0) as u32 as u64,
            11 => lanes().map(|lane| signed(values[lane])).max().unwrap_or(0) as u32 as u64,
            12 => {
                for lane in lanes() {
                    results[lane] = lanes().fold(0, |all, other| all | u64::from(values[other] == values[lane]) << other);
                }
                return Ok(());
            }
            13 => {
                let mut all = lanes().map(|lane| values[lane]);
                let first = all.next();
                if all.all(|value| Some(value) == first) { mask.into() } else { 0 }
            }
            _ => unreachable!("collective {kind}"),
        };
        lanes().for_each(|lane| results[lane] = same);
        Ok(())
    }
}

/// Waits until all threads of the block have arrived. Returns the number of threads that passed a nonzero value.
unsafe extern "C" fn barrier(lane: *mut Lane, value: u32) -> u64 {
    // SAFETY: the lane is running, and its block is alive.
    unsafe {
        let (block, linear, bit) = ((*lane).block, (*lane).linear as usize, 1 << (*lane).number);
        (*block).arrived += 1;
        (*block).votes += u64::from(value != 0);
        let warp = (*block).warp(linear);
        warp.runnable &= !bit;
        warp.at_barrier |= bit;
        if (*block).arrived == (*block).threads {
            (*block).counted = (*block).votes;
            ((*block).arrived, (*block).votes) = (0, 0);
            for warp in 0..(*block).warp_count {
                let warp = (*block).warp(warp * LANES);
                warp.runnable = warp.at_barrier;
                warp.at_barrier = 0;
            }
            if (*block).random.is_some() {
                go_on_or_fail(block, linear);
            }
        } else {
            go_on_or_fail(block, linear);
        }
        // The number is still that of this barrier: it changes only at the next one, after this lane has arrived there, too.
        (*block).counted
    }
}

/// Lets another lane run first.
unsafe extern "C" fn pause(lane: *mut Lane) {
    // SAFETY: the lane is running, and its block is alive.
    unsafe {
        let (block, linear) = ((*lane).block, (*lane).linear as usize);
        (*lane).countdown = (*block).random.as_mut().map_or(0, some_accesses);
        if let Some(next) = (*block).choose(false) {
            go_on(block, linear, next);
        }
    }
}

/// Runs everything for which this lane may wait: another lane, and other blocks.
unsafe extern "C" fn wait(lane: *mut Lane) {
    // SAFETY: the lane is running, and its block and grid are alive.
    unsafe {
        let block = (*lane).block;
        // Relaxed: a lock protects the failure for which the flag was set.
        if (*(*block).aborted).load(Ordering::Relaxed) {
            leave(block);
        }
        pause(lane);
        thread::yield_now();
    }
}

/// Ends the block with a failure of this lane.
unsafe fn fail_with(lane: *mut Lane, status: Status, text: String) -> ! {
    // SAFETY: the lane is running, and its block is alive.
    unsafe {
        let block = (*lane).block;
        (*block).failure = Some(Failure { status, text, thread: Some((*lane).thread) });
        leave(block)
    }
}

unsafe extern "C" fn fail(lane: *mut Lane, status: u32, what: *const c_char, file: *const c_char, line: u32) {
    // SAFETY: the texts belong to the program and end in zero. The lane is running.
    unsafe {
        let (what, file) = (CStr::from_ptr(what).to_string_lossy(), CStr::from_ptr(file).to_string_lossy());
        let status = match status {
            0 => Status::Trap,
            1 => Status::Assertion,
            _ => Status::Misaligned,
        };
        let text = if file.is_empty() { what.into_owned() } else { format!("{file}({line}): {what}") };
        fail_with(lane, status, text)
    }
}

unsafe extern "C" fn nanoseconds() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is valid.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

const _: () = assert!(STACK_BYTES.is_power_of_two());
