//! Sizes of tests, chosen by the environment of the run.
//!
//! A plain `cargo test` checks every promise once, at the usual size. `WARPSET_TEST_FULL=1` makes sizes full, as the steps of
//! `.ci/full` do. `WARPSET_TEST_FAST=1` makes them small, for runs under sanitizers, which are some 50 times slower.

use std::sync::OnceLock;

/// Whether sizes must be full: `WARPSET_TEST_FULL` is set, and neither empty nor `0`.
pub fn full() -> bool {
    static FULL: OnceLock<bool> = OnceLock::new();
    *FULL.get_or_init(|| is_on("WARPSET_TEST_FULL"))
}

/// Whether sizes must be small: `WARPSET_TEST_FAST` is set, and neither empty nor `0`.
pub fn fast() -> bool {
    static FAST: OnceLock<bool> = OnceLock::new();
    *FAST.get_or_init(|| is_on("WARPSET_TEST_FAST"))
}

/// Returns `full_size` in a full run, `fast_size` in a fast one, `usual` otherwise. `WARPSET_TEST_FAST` wins over
/// `WARPSET_TEST_FULL`.
pub fn sized<T>(full_size: T, usual: T, fast_size: T) -> T {
    if fast() {
        fast_size
    } else if full() {
        full_size
    } else {
        usual
    }
}

/// Whether a variable of the environment is set, and neither empty nor `0`.
pub fn is_on(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| is_yes(value.as_encoded_bytes()))
}

fn is_yes(value: &[u8]) -> bool {
    !matches!(value, b"" | b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_and_zero_mean_off() {
        assert_eq!([b"".as_slice(), b"0", b"1", b"yes"].map(is_yes), [false, false, true, true]);
    }
}
