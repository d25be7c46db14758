//! Threads of the operating system that run blocks. They are reused for the next grid.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::{mem, thread};

type Job = Box<dyn FnOnce() + Send>;

/// Threads without work.
static IDLE: Mutex<Vec<Sender<Job>>> = Mutex::new(Vec::new());

/// Counts the work that has not ended yet, down to 0.
struct Latch {
    left: Mutex<usize>,
    done: Condvar,
}

impl Latch {
    fn count_down(&self) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        *left -= 1;
        if *left == 0 {
            self.done.notify_all();
        }
    }

    fn wait(&self) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        while *left > 0 {
            left = self.done.wait(left).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Calls `work` on this thread and on `helpers` others. Returns when all calls have ended.
pub(super) fn run(helpers: usize, work: &(dyn Fn() + Sync)) {
    let latch = Arc::new(Latch { left: Mutex::new(helpers), done: Condvar::new() });
    // SAFETY: only the lifetime changes. Each job counts down after its last use of the reference, and this function returns only
    // after the last job has counted down.
    let shared: &'static (dyn Fn() + Sync) = unsafe { mem::transmute(work) };
    for _ in 0..helpers {
        let latch = latch.clone();
        begin(Box::new(move || {
            let _ = catch_unwind(AssertUnwindSafe(shared));
            latch.count_down();
        }));
    }
    let own = catch_unwind(AssertUnwindSafe(work));
    latch.wait();
    if let Err(panic) = own {
        resume_unwind(panic);
    }
}

/// Gives a job to an idle thread, or to a new one.
fn begin(mut job: Job) {
    loop {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(sender) = idle else { break };
        match sender.send(job) {
            Ok(()) => return,
            Err(back) => job = back.0,
        }
    }
    let (sender, receiver) = channel::<Job>();
    let body = move || {
        job();
        loop {
            IDLE.lock().unwrap_or_else(PoisonError::into_inner).push(sender.clone());
            match receiver.recv() {
                Ok(job) => job(),
                Err(_) => return,
            }
        }
    };
    thread::Builder::new().name("blocks".into()).spawn(body).expect("a thread for blocks");
}
