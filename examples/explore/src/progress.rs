//! Progress messages on standard error.

use crate::exploration::{Counts, Limits, Lists};
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
    /// Limits of the search, if the progress is that of one.
    limits: Option<Limits>,
    /// The last estimate of the number of states that the memory holds, and the slots of the table then.
    estimate: Mutex<(u64, u64)>,
}

impl ProgressLine {
    pub fn new(when: ProgressWhen) -> Self {
        let line = ProgressBar::hidden();
        line.set_style(ProgressStyle::with_template("{msg}").expect("the template is valid"));
        let started = Instant::now();
        let (next, estimate) = (Mutex::new(started), Mutex::default());
        Self { line, started, when, shown: Once::new(), next, limits: None, estimate }
    }

    /// Shows the share of these limits, too.
    pub fn within(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Shows the counts of an exploration.
    pub fn set<S: Storage>(&self, counts: &Counts, table: &VectorTable<S>) {
        let rate = HumanFloatCount((counts.states as f64 / self.started.elapsed().as_secs_f64()).round());
        let (states, waiting) = (counted(counts.states, "state"), HumanCount(counts.waiting));
        let (bytes, fill) = (table.bytes(), 100.0 * counts.states as f64 / table.slots() as f64);
        let (memory, level) = (HumanBytes(bytes), counts.levels.saturating_sub(1));
        let lists = 2 * counts.waiting * 4 * table.width() as u64;
        let share = self.share(bytes, lists, table).unwrap_or_default();
        self.say(&format!("{states}, level {level} with {waiting} left, {rate} states/s, {memory}{share}, {fill:.0} % full"));
    }

    /// Share of the memory limit that the table and lists of states take, and the number of states that the limit permits.
    /// `None` without a limit, or if the device cannot say.
    fn share<S: Storage>(&self, bytes: u64, lists: u64, table: &VectorTable<S>) -> Option<String> {
        let limits = self.limits.filter(|limits| limits.bytes < u64::MAX)?;
        let mut estimate = self.estimate.lock().expect("no thread panics while it has the lock");
        if estimate.1 != table.slots() {
            *estimate = (table.vectors_within(limits.of_table(table, beside(table, lists)).ok()?).ok()?, table.slots());
        }
        let (share, room) = (100.0 * (bytes + lists) as f64 / limits.bytes as f64, HumanCount(estimate.0));
        Some(format!(" of {} ({share:.0} %, room for {room} states)", HumanBytes(limits.bytes)))
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

/// Lists of a search beside its table. Threads mark waiting states when lists of them do not fit.
pub fn beside<S: Storage>(table: &VectorTable<S>, bytes: u64) -> Lists {
    Lists { may_be_marked: !table.device().is_gpu(), ..Lists::of(bytes) }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.line.finish_and_clear();
    }
}
