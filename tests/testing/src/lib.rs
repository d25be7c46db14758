//! Modules that the tests of several packages share: the machines to test on, table files with changed bytes, and tests by name.

pub mod machines;
pub mod table_file;
pub mod trials;
