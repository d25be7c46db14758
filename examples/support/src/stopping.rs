//! Early ends of a program: Ctrl-C (SIGINT), SIGTERM, and the time limit.
//!
//! In phases without a partial result, a thread waits for one of these and ends the program with an error. In phases with a
//! partial result, the program polls [`asked`], and ends by itself: it evaluates and reports what it has found by then, within a
//! grace period ([`grace_ended`]). A second signal ends the program at once, unless it comes within [`SAME_REQUEST`] of the
//! first: the shell, `timeout` and batch systems may send the signal of one request both to a process and to its group.

use crate::exit;
use crate::program::{self, Ended, Printer};
use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Polling interval of the thread.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Signals within this time of the first one belong to the same request.
pub const SAME_REQUEST: Duration = Duration::from_secs(1);

/// Time after a signal for evaluating what was found: batch systems kill a process 10 to 30 seconds after SIGTERM.
const GRACE_OF_SIGNAL: Duration = Duration::from_secs(5);

/// Shortest and longest time, after the time limit, for evaluating what was found. Between these bounds it is as long as the
/// limit.
const GRACE_OF_TIME: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// Reason to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Ctrl-C or SIGTERM.
    Interrupted,
    /// The time limit, which has passed.
    Time(Duration),
}

struct Watched {
    start: Instant,
    most: Option<Duration>,
    /// Milliseconds from the start to the first signal, plus one; zero if there was none.
    signalled: AtomicU64,
    /// Set when the program begins to poll; the thread then ends.
    has_stopped: AtomicBool,
}

impl Watched {
    /// Handles a signal. Async-signal-safe: reads the clock, changes an atomic, and ends the process by `_exit`.
    fn signal(&self) {
        let now = self.start.elapsed().as_millis() as u64 + 1;
        // Relaxed: no other memory depends on the time of the signal. Scope: this process.
        if let Err(first) = self.signalled.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed)
            && is_another_request(first, now)
        {
            signal_hook::low_level::exit(exit::INTERRUPTED.into());
        }
    }

    /// The reason to stop, and the time since it arose.
    fn stop(&self) -> Option<(Stop, Duration)> {
        let elapsed = self.start.elapsed();
        // Relaxed: as in `signal`.
        if let Some(signalled) = self.signalled.load(Ordering::Relaxed).checked_sub(1) {
            return Some((Stop::Interrupted, elapsed.saturating_sub(Duration::from_millis(signalled))));
        }
        let most = self.most?;
        Some((Stop::Time(most), elapsed.checked_sub(most)?))
    }
}

/// Whether a later signal is a request of its own; times in milliseconds.
fn is_another_request(first: u64, later: u64) -> bool {
    later.saturating_sub(first) >= SAME_REQUEST.as_millis() as u64
}

static WATCHED: OnceLock<Watched> = OnceLock::new();

impl Stop {
    /// Time for evaluating what was found before the stop.
    fn grace(self) -> Duration {
        let [least, most] = GRACE_OF_TIME;
        match self {
            Self::Interrupted => GRACE_OF_SIGNAL,
            Self::Time(limit) => limit.clamp(least, most),
        }
    }

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

/// Starts listening to Ctrl-C and SIGTERM, and counting the time. `meanwhile` describes the phase that the thread watches.
pub fn watch(most: Option<Duration>, json: bool, meanwhile: &'static str) -> Result<()> {
    let watched = Watched { start: Instant::now(), most, signalled: AtomicU64::new(0), has_stopped: AtomicBool::new(false) };
    let watched = WATCHED.get_or_init(|| watched);
    for signal in [SIGINT, SIGTERM] {
        // SAFETY: `Watched::signal` is async-signal-safe: it allocates nothing, takes no lock, and does not panic.
        unsafe { signal_hook::low_level::register(signal, || watched.signal()) }
            .context("the handler of Ctrl-C and SIGTERM cannot be installed")?;
    }
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
    WATCHED.get()?.stop().map(|(stop, _)| stop)
}

/// Reason to end also the evaluation of what was found: a stop whose grace period has passed.
pub fn grace_ended() -> Option<Stop> {
    let (stop, since) = WATCHED.get()?.stop()?;
    (since >= stop.grace()).then_some(stop)
}

fn end(error: &Ended, json: bool) -> ! {
    use std::io::Write;
    program::print_error(&program::sentence(error));
    if json && !program::prints_nothing() {
        let _ = writeln!(std::io::stdout(), "{}", program::failure(&error.why, error.code));
    }
    // Not `exit`, because other threads are still at work.
    signal_hook::low_level::exit(error.code.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(most: Option<Duration>, ago: Duration, signalled: u64) -> Watched {
        let start = Instant::now().checked_sub(ago).expect("the clock has run for an hour");
        Watched { start, most, signalled: AtomicU64::new(signalled), has_stopped: AtomicBool::new(false) }
    }

    #[test]
    fn signals_of_one_request_count_once() {
        assert_eq!([1, 500, 1000, 1001, 5000].map(|later| is_another_request(1, later)), [false, false, false, true, true]);
    }

    /// A signal takes precedence over the time limit, and the grace period begins with the stop.
    #[test]
    fn stops_have_a_time_and_a_grace_period() {
        let minute = Duration::from_secs(60);
        assert_eq!(watched(None, minute, 0).stop(), None);
        assert_eq!(watched(Some(2 * minute), minute, 0).stop(), None);
        let (stop, since) = watched(Some(minute / 2), minute, 0).stop().expect("the limit has passed");
        assert!(stop == Stop::Time(minute / 2) && since >= minute / 2 && since < minute, "{since:?}");
        let (stop, since) = watched(Some(minute / 2), minute, 50_001).stop().expect("a signal has come");
        assert!(stop == Stop::Interrupted && since >= Duration::from_secs(10) && since < minute, "{since:?}");
        let seconds = |limit| Stop::Time(Duration::from_secs_f64(limit)).grace().as_secs_f64();
        assert_eq!([0.01, 2.0, 30.0, 3600.0].map(seconds), [1.0, 2.0, 30.0, 60.0]);
    }
}
