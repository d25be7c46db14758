//! Helpers of the tests: vectors to offer, and a checker of all promises of a set.

pub mod checker;
pub mod faulty;
pub mod histories;
pub mod kinds;
pub mod set;
pub mod spread;
pub mod vectors;

use kinds::Kind;
use warpset::{Device, VectorTable};

/// A test that runs on every machine.
pub struct Test {
    /// Module of the test, from `module_path!`.
    pub module: &'static str,
    pub name: &'static str,
    /// Kind of table under test; `None` if the test chooses it.
    pub kind: Option<&'static str>,
    pub run: fn(&Device),
}

impl Test {
    /// Last part of the module's path, and the function.
    pub fn label(&self) -> String {
        let kind = self.kind.map_or_else(String::new, |kind| format!("{kind}::"));
        format!("{kind}{}::{}", self.module.rsplit("::").next().unwrap_or(self.module), self.name)
    }
}

/// Lists the tests of a module. A forgotten test is dead code, which the compiler reports.
macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        pub const TESTS: &[crate::common::Test] =
            &[$(crate::common::Test { module: module_path!(), name: stringify!($name), kind: None, run: $name }),*];
    };
}
pub(crate) use tests;

/// As `tests`, for tests that are generic over the kind of table: lists them for all kinds, or for the named kinds.
macro_rules! tests_of_all_kinds {
    (of $($kind:ident),+: $($name:ident),* $(,)?) => {
        pub const TESTS: &[crate::common::Test] = crate::common::tests_of_all_kinds!(@each [$($kind)+] [$($name)*] []);
    };
    ($($name:ident),* $(,)?) => {
        crate::common::tests_of_all_kinds!(of Bucket, Tree, CompactTree, Indexed: $($name),*);
    };
    (@each $kinds:tt [] [$($test:expr,)*]) => { &[$($test),*] };
    (@each [$($kind:ident)+] [$name:ident $($rest:ident)*] [$($test:expr,)*]) => {
        crate::common::tests_of_all_kinds!(
            @each [$($kind)+] [$($rest)*] [$($test,)* $(crate::common::tests_of_all_kinds!(@one $kind $name),)+]
        )
    };
    (@one $kind:ident $name:ident) => {
        crate::common::Test {
            module: module_path!(),
            name: stringify!($name),
            kind: Some(<warpset::$kind as crate::common::kinds::Kind>::NAME),
            run: $name::<warpset::$kind>,
        }
    };
}
pub(crate) use tests_of_all_kinds;

/// Whether sizes must be small: `WARPSET_TEST_FAST=1`, for runs under compute-sanitizer, which is some 50 times slower.
pub fn fast() -> bool {
    static FAST: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *FAST.get_or_init(|| std::env::var_os("WARPSET_TEST_FAST").is_some_and(|value| value != "0" && !value.is_empty()))
}

/// Whether sizes must be full: `WARPSET_TEST_FULL=1`, as in CI.
pub fn full() -> bool {
    static FULL: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *FULL.get_or_init(|| std::env::var_os("WARPSET_TEST_FULL").is_some_and(|value| value != "0" && !value.is_empty()))
}

/// Whether the GPUs are simulated devices (`tests/device`): `WARPSET_SIMULATED_DEVICE`.
pub fn simulated() -> bool {
    static SIMULATED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    *SIMULATED.get_or_init(|| std::env::var_os("WARPSET_SIMULATED_DEVICE").is_some_and(|value| value != "0" && !value.is_empty()))
}

/// Chooses a size for one of the tests that would take most of the time: a run by hand uses a smaller one, on the same paths.
pub fn sized<T>(full_one: T, usual: T, fast_one: T) -> T {
    scaled(if full() { full_one } else { usual }, fast_one)
}

/// Chooses a size for this run.
pub fn scaled<T>(normal: T, fast_one: T) -> T {
    if fast() { fast_one } else { normal }
}

/// Slots per bucket in tables of this width: half of the slots of the smallest table, which has two buckets; or computed from the
/// slot bits and buckets of 64 bytes.
pub fn slots_per_bucket<S: Kind>(device: &Device, width: usize) -> u64 {
    let table = VectorTable::<S>::new(device, width, 1).expect("the smallest table");
    table.spec().key_and_slot_bits().map_or(table.slots() / 2, |(_, slot_bits)| 512 / u64::from(slot_bits))
}
