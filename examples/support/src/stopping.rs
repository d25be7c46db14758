//! Early ends of a program: Ctrl-C, and the time limit.
//!
//! In phases without a partial result, a thread waits for these and ends the program with an error. In phases with one, the
//! program polls [`asked`], and ends in its own way. A second Ctrl-C always ends the program at once.

use crate::exit;
use crate::program::{self, Ended, Printer};
use anyhow::{Context, Result};
use signal_hook::consts::SIGINT;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Polling interval of the thread.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Reason to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Interrupted,
    /// The time limit, which has passed.
    Time(Duration),
}

struct Watched {
    interrupted: Arc<AtomicBool>,
    start: Instant,
    most: Option<Duration>,
    /// The program polls; the thread does nothing.
    has_stopped: AtomicBool,
}

static WATCHED: OnceLock<Watched> = OnceLock::new();

impl Stop {
    /// Converts to an error that names the interrupted phase.
    pub fn error(self, meanwhile: &str) -> Ended {
        match self {
            Self::Interrupted => Ended { code: exit::INTERRUPTED, why: format!("interrupted {meanwhile}") },
            Self::Time(most) => {
                Ended { code: exit::INCOMPLETE, why: format!("stopped after --timeout {} s, {meanwhile}", most.as_secs_f64()) }
            }
        }
    }
}

/// Starts listening to Ctrl-C and counting the time. `meanwhile` describes the phase that the thread watches.
pub fn watch(most: Option<Duration>, json: bool, meanwhile: &'static str) -> Result<()> {
    let interrupted = Arc::new(AtomicBool::new(false));
    // The order matters: the first Ctrl-C finds the flag unset and only sets it.
    let listen = || -> std::io::Result<()> {
        signal_hook::flag::register_conditional_shutdown(SIGINT, exit::INTERRUPTED.into(), interrupted.clone())?;
        signal_hook::flag::register(SIGINT, interrupted.clone())?;
        Ok(())
    };
    listen().context("the handler of Ctrl-C cannot be installed")?;
    let watched = Watched { interrupted, start: Instant::now(), most, has_stopped: AtomicBool::new(false) };
    let watched = WATCHED.get_or_init(|| watched);
    let wait = move || {
        loop {
            std::thread::sleep(POLL_INTERVAL);
            if watched.has_stopped.load(Ordering::SeqCst) {
                return;
            }
            if let Some(stop) = asked()
                && program::claim_output(Printer::Watch)
            {
                end(&stop.error(meanwhile), json);
            }
        }
    };
    std::thread::Builder::new().name("stopping".into()).spawn(wait).context("a thread cannot be started")?;
    Ok(())
}

/// Ends the thread's watch: from here on the program polls [`asked`] itself.
pub fn stop_watching() {
    if let Some(watched) = WATCHED.get() {
        watched.has_stopped.store(true, Ordering::SeqCst);
    }
}

/// Reason to stop, if there is one.
pub fn asked() -> Option<Stop> {
    let watched = WATCHED.get()?;
    if watched.interrupted.load(Ordering::Relaxed) {
        return Some(Stop::Interrupted);
    }
    watched.most.filter(|most| watched.start.elapsed() >= *most).map(Stop::Time)
}

fn end(error: &Ended, json: bool) -> ! {
    use std::io::Write;
    program::print_error(&format!("error: {error}\n"));
    if json && !program::prints_nothing() {
        let _ = writeln!(std::io::stdout(), "{}", program::failure(&error.why, error.code));
    }
    // Not `exit`, because other threads are still at work.
    signal_hook::low_level::exit(error.code.into())
}
