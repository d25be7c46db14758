//! Reports of misuse, which end the process.

use std::io::Write;
use std::process;
use std::sync::Mutex;

/// Prints a report and ends the process, so that no test passes after it.
pub fn end(what: &str) -> ! {
    // Write only once, so that reports of several threads do not mix. Ignore a failure, because it cannot be reported.
    let _ = std::io::stderr().write_all(format!("\nsimulated device: {what}\n").as_bytes());
    // End by a signal, like a real fault, so that a test harness cannot mistake this for an ordinary failure.
    process::abort()
}

/// Prints a remark. The process continues.
pub fn remark(what: &str) {
    let _ = std::io::stderr().write_all(format!("simulated device: {what}\n").as_bytes());
}

/// Ends the process with the name of a function that is not simulated.
pub fn not_simulated(name: &str) -> ! {
    end(&format!("{name} is not simulated"))
}

/// Operations that streams are executing now.
static RUNNING: Mutex<Vec<(u64, String)>> = Mutex::new(Vec::new());

/// Lists an operation as running while this value lives.
pub struct Running(u64);

impl Running {
    pub fn new(what: String, stream: u64) -> Self {
        RUNNING.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((stream, what));
        Self(stream)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).retain(|(stream, _)| *stream != self.0);
    }
}

/// Lists the operations that streams are executing now.
pub fn running() -> String {
    let running = RUNNING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let lines = running.iter().map(|(stream, what)| format!("\n  stream {stream} is at {what}"));
    lines.collect()
}
