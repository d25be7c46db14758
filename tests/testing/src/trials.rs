//! Tests by name, which run or say why they are skipped.

use libtest_mimic::{Failed, Trial};

pub fn trial(name: String, test: Box<dyn FnOnce() + Send>) -> Trial {
    Trial::test(name, move || {
        test();
        Ok(())
    })
}

/// A trial that counts as ignored and prints the reason; it fails if it is made to run.
pub fn skipped(name: String, why: &'static str) -> Trial {
    Trial::test(format!("{name} (skipped: {why})"), move || Err(Failed::from(why))).with_ignored_flag(true)
}
