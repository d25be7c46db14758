//! Progress messages on standard error.

use crate::options::ProgressWhen;
use indicatif::{FormattedDuration, HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};
use warpset::{Storage, VectorTable};
use warpset_search::exploration::{Counts, Limits, Lists};
use warpset_support::program;

/// Shortest time after which a terminal shows progress.
const PATIENCE: Duration = Duration::from_secs(1);

/// Time over which the rate is measured.
const SPAN: Duration = Duration::from_secs(3);

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
    /// The rate, and where its next measurement begins.
    rate: Mutex<Rate>,
}

impl ProgressLine {
    pub fn new(when: ProgressWhen) -> Self {
        let line = ProgressBar::hidden();
        line.set_style(ProgressStyle::with_template("{msg}").expect("the template is valid"));
        let started = Instant::now();
        let (next, rate) = (Mutex::new(started), Mutex::default());
        Self { line, started, when, shown: Once::new(), next, limits: None, rate }
    }

    /// Shows the share of these limits, too.
    pub fn within(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Shows the counts of an exploration.
    pub fn set<S: Storage>(&self, counts: &Counts, table: &VectorTable<S>) {
        let elapsed = self.started.elapsed();
        let rate = self.rate.lock().expect("no thread panics while it has the lock").at(elapsed, counts.states);
        let bytes = table.bytes() + 2 * counts.waiting * 4 * table.width() as u64;
        let most = self.limits.map(|limits| limits.bytes).filter(|most| *most < u64::MAX);
        self.say(&line(elapsed, counts.states, counts.levels.saturating_sub(1), rate, bytes, most));
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

/// States a second.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    /// Beginning of the measurement: the time since the start, and the states then.
    since: (Duration, u64),
    /// The last rate that was measured over [`SPAN`].
    measured: Option<f64>,
}

impl Rate {
    /// The rate of the last seconds; until they have passed, the mean since the start.
    fn at(&mut self, elapsed: Duration, states: u64) -> u64 {
        let (begun, before) = self.since;
        let span = elapsed.saturating_sub(begun);
        let rate = states.saturating_sub(before) as f64 / span.as_secs_f64().max(0.001);
        if span >= SPAN {
            *self = Self { since: (elapsed, states), measured: Some(rate) };
        }
        self.measured.unwrap_or(rate) as u64
    }
}

/// The line of a search, in 80 columns. `most`: limit of the bytes.
fn line(elapsed: Duration, states: u64, level: u64, rate: u64, bytes: u64, most: Option<u64>) -> String {
    let memory = match most {
        Some(most) => format!("memory {:.0} %", 100.0 * bytes as f64 / most.max(1) as f64),
        None => HumanBytes(bytes).to_string(),
    };
    let [states, level, rate] = [states, level, rate].map(HumanCount);
    format!("{}: {states} states, level {level}, {rate}/s, {memory}", FormattedDuration(elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_at_most_80_columns() {
        let of = |most| line(Duration::from_secs(99 * 3600), 99_999_999_999, 9_999_999, 999_999_999, 99 << 30, most);
        for (most, end) in [(None, "99.00 GiB"), (Some(99 << 30), "memory 100 %")] {
            let text = of(most);
            assert!(text.len() <= 80 && text.contains("99,999,999,999 states, level 9,999,999, 999,999,999/s, "), "{text}");
            assert!(text.ends_with(end), "{text}");
        }
    }

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let mut rate = Rate::default();
        let mut at = |seconds, states| rate.at(Duration::from_secs(seconds), states);
        assert_eq!([at(1, 1000), at(2, 1000), at(4, 4000)], [1000, 500, 1000]);
        // Nothing is measured before the next three seconds have passed.
        assert_eq!([at(5, 4001), at(7, 4003), at(14, 4073)], [1000, 1, 10]);
    }
}
