//! A progress bar for work that takes longer than a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::Once;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(1);
const TEMPLATE: &str = "{msg} [{wide_bar}] {percent:>3} %, {eta} left";

/// Progress of one piece of work, on stderr. The bar appears after [`PATIENCE`], and only if stderr is a terminal; dropping the
/// value removes it. Any thread may report progress.
pub struct WorkProgress {
    bar: ProgressBar,
    started: Instant,
    shown: Once,
}

impl WorkProgress {
    pub fn new(work: impl Into<String>, total: u64) -> Self {
        let bar = ProgressBar::hidden().with_message(work.into());
        bar.set_length(total);
        bar.set_style(ProgressStyle::with_template(TEMPLATE).expect("the template is valid").progress_chars("=> "));
        Self { bar, started: Instant::now(), shown: Once::new() }
    }

    pub fn set(&self, done: u64) {
        self.show_if_long();
        self.bar.set_position(done);
    }

    pub fn advance(&self, by: u64) {
        self.show_if_long();
        self.bar.inc(by);
    }

    fn show_if_long(&self) {
        if !self.shown.is_completed() && self.started.elapsed() > PATIENCE {
            self.shown.call_once(|| self.bar.set_draw_target(ProgressDrawTarget::stderr()));
        }
    }
}

impl Drop for WorkProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
