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

pub use warpset_testing::sizes::{fast, full, sized};

/// Whether the GPUs are simulated devices (`tests/device`): `WARPSET_SIMULATED_DEVICE`.
pub fn simulated() -> bool {
    warpset_testing::sizes::is_on("WARPSET_SIMULATED_DEVICE")
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
