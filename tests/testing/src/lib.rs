//! Modules that the tests of several packages share: sizes of tests, the machines to test on, table files with changed bytes,
//! tests by name, and failing calls of the simulated device.

#[cfg(any(feature = "cuda", feature = "cpu"))]
pub mod machines;
#[cfg(all(feature = "cuda", target_os = "linux"))]
pub mod simulated;
pub mod sizes;
pub mod table_file;
pub mod trials;
