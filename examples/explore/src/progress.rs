//! Progress messages on standard error.

use crate::exploration::Counts;
use crate::numbers::counted;
use crate::options::ProgressWhen;
use crate::program;
use indicatif::{HumanBytes, HumanCount, HumanFloatCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};
use warpset::{Storage, VectorTable};

/// Shortest time after which a terminal shows progress.
const PATIENCE: Duration = Duration::from_secs(1);

/// Interval between permanent lines.
const PAUSE: Duration = Duration::from_secs(1);

/// Display of progress: on a terminal one line that changes and disappears at the end; elsewhere, if requested, permanent lines.
pub struct ProgressLine {
    line: ProgressBar,
    started: Instant,
    when: ProgressWhen,
    shown: Once,
    /// When the next permanent line is due.
    next: Mutex<Instant>,
}

impl ProgressLine {
    pub fn new(when: ProgressWhen) -> Self {
        let line = ProgressBar::hidden();
        line.set_style(ProgressStyle::with_template("{msg}").expect("the template is valid"));
        let started = Instant::now();
        Self { line, started, when, shown: Once::new(), next: Mutex::new(started) }
    }

    /// Shows the counts of an exploration.
    pub fn set<S: Storage>(&self, counts: &Counts, table: &VectorTable<S>) {
        let rate = HumanFloatCount((counts.states as f64 / self.started.elapsed().as_secs_f64()).round());
        let (states, waiting) = (counted(counts.states, "state"), HumanCount(counts.waiting));
        let (memory, fill) = (HumanBytes(table.bytes()), 100.0 * counts.states as f64 / table.slots() as f64);
        let level = counts.levels.saturating_sub(1);
        self.say(&format!("{states}, level {level} with {waiting} left, {rate} states/s, {memory}, {fill:.0} % full"));
    }

    /// Shows the current activity and its duration so far.
    pub fn working(&self, what: &str) {
        self.say(&format!("{what}: {:.0} s", self.started.elapsed().as_secs_f64()));
    }

    fn say(&self, text: &str) {
        if self.when == ProgressWhen::Always && !program::can_redraw() {
            let mut next = self.next.lock().expect("no thread panics while it has the lock");
            if Instant::now() >= *next {
                program::print_error(&format!("{text}\n"));
                *next = Instant::now() + PAUSE;
            }
            return;
        }
        if self.when != ProgressWhen::Never && program::can_redraw() && self.started.elapsed() > PATIENCE {
            self.shown.call_once(|| self.line.set_draw_target(ProgressDrawTarget::stderr()));
        }
        self.line.set_message(text.to_string());
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.line.finish_and_clear();
    }
}
