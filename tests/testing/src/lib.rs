//! Modules that the tests of several packages share: the machines to test on, and table files with changed bytes.

pub mod machines;
pub mod table_file;
