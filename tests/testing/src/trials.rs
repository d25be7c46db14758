//! Tests by name, which run or say why they are skipped.

use libtest_mimic::{Failed, Trial};

pub fn trial(name: String, test: Box<dyn FnOnce() + Send>) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

/// Is counted as ignored, and says why; fails if it is made to run.
pub fn skipped(name: String, why: &'static str) -> Trial {
    Trial::test(format!("{name} (skipped: {why})"), move || Err(Failed::from(why))).with_ignored_flag(true)
}
