//! What stops a program before its end: Ctrl-C, or its time is over.
//!
//! Where nothing could be reported anyway, a thread waits for that and ends the program with an error. Where a part of the result
//! is worth reporting, the program asks by itself, and ends in its own way. A second Ctrl-C always ends it at once.

use crate::exit;
use crate::program::{self, Ended, Printer};
use anyhow::{Context, Result};
use signal_hook::consts::SIGINT;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How often the thread looks.
const GLANCE: Duration = Duration::from_millis(20);

/// Why to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Interrupted,
    /// After the time that was allowed.
    Time(Duration),
}

struct Watched {
    interrupted: Arc<AtomicBool>,
    start: Instant,
    most: Option<Duration>,
    /// The program asks by itself.
    is_left_alone: AtomicBool,
}

static WATCHED: OnceLock<Watched> = OnceLock::new();

impl Stop {
    /// As an error that tells what was being done.
    pub fn error(self, meanwhile: &str) -> Ended {
        match self {
            Self::Interrupted => Ended { code: exit::INTERRUPTED, why: format!("interrupted {meanwhile}") },
            Self::Time(most) => {
                Ended { code: exit::INCOMPLETE, why: format!("stopped after --timeout {} s, {meanwhile}", most.as_secs_f64()) }
            }
        }
    }
}

/// Listens to Ctrl-C from here on, and counts the time. `meanwhile` is what the program does until it is left alone.
pub fn watch(most: Option<Duration>, json: bool, meanwhile: &'static str) -> Result<()> {
    let interrupted = Arc::new(AtomicBool::new(false));
    // In this order: the first Ctrl-C finds the flag down and only puts it up.
    let listen = || -> std::io::Result<()> {
        signal_hook::flag::register_conditional_shutdown(SIGINT, exit::INTERRUPTED.into(), interrupted.clone())?;
        signal_hook::flag::register(SIGINT, interrupted.clone())?;
        Ok(())
    };
    listen().context("Ctrl-C cannot be listened to")?;
    let watched = Watched { interrupted, start: Instant::now(), most, is_left_alone: AtomicBool::new(false) };
    let watched = WATCHED.get_or_init(|| watched);
    let wait = move || {
        loop {
            std::thread::sleep(GLANCE);
            if watched.is_left_alone.load(Ordering::SeqCst) {
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

/// From here on the program looks at [`asked`] by itself.
pub fn leave_alone() {
    if let Some(watched) = WATCHED.get() {
        watched.is_left_alone.store(true, Ordering::SeqCst);
    }
}

/// Whether to stop, and why.
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
    // Not `exit`: other threads are in the middle of something.
    signal_hook::low_level::exit(error.code.into())
}
