//! The line that shows how far an exploration is.

use super::engine::Counts;
use indicatif::{HumanBytes, HumanCount, HumanFloatCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::Once;
use std::time::{Duration, Instant};
use warpset::{Storage, VectorTable};

const PATIENCE: Duration = Duration::from_secs(1);

/// One line on stderr. Nothing is shown before [`PATIENCE`] has passed, nor if stderr is not a terminal.
pub struct Progress {
    line: ProgressBar,
    started: Instant,
    shown: Once,
}

impl Progress {
    pub fn new() -> Self {
        let line = ProgressBar::hidden();
        line.set_style(ProgressStyle::with_template("{msg}").expect("the template is valid"));
        Self { line, started: Instant::now(), shown: Once::new() }
    }

    pub fn set<S: Storage>(&self, counts: &Counts, table: &VectorTable<S>) {
        let elapsed = self.started.elapsed();
        if elapsed > PATIENCE {
            self.shown.call_once(|| self.line.set_draw_target(ProgressDrawTarget::stderr()));
        }
        let rate = HumanFloatCount((counts.states as f64 / elapsed.as_secs_f64()).round());
        let (states, waiting) = (HumanCount(counts.states), HumanCount(counts.waiting));
        let (memory, fill) = (HumanBytes(table.bytes()), 100.0 * counts.states as f64 / table.slots() as f64);
        self.line.set_message(format!(
            "{states} states, level {}, {waiting} of it left, {rate} states/s, {memory}, {fill:.0} % full",
            counts.levels - 1
        ));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.line.finish_and_clear();
    }
}
