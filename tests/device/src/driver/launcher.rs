//! Threads that run kernels.
//!
//! A thread that runs blocks keeps the stacks of hundreds of fibres. Therefore the threads of streams do not run blocks
//! themselves. There are as many launcher threads as kernels that run at the same time.

use super::report;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

type Job = Box<dyn FnOnce() + Send>;

static IDLE: Mutex<Vec<Sender<Job>>> = Mutex::new(Vec::new());

fn new_thread() -> Sender<Job> {
    let (sender, jobs) = channel::<Job>();
    let spawned = std::thread::Builder::new().name("kernels".into()).spawn(move || jobs.iter().for_each(|job| job()));
    if let Err(error) = spawned {
        report::end(&format!("no thread for kernels: {error}"));
    }
    sender
}

/// Runs `work` on a launcher thread, and waits for its result.
pub fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let idle = || IDLE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let thread = idle().pop().unwrap_or_else(new_thread);
    let (sender, result) = channel();
    let job = Box::new(move || {
        // The receiver waits below.
        let _ = sender.send(work());
    });
    let sent = thread.send(job).is_ok();
    match result.recv() {
        Ok(result) if sent => {
            idle().push(thread);
            result
        }
        _ => report::end("a thread for kernels has ended: a mistake of the simulated device"),
    }
}
