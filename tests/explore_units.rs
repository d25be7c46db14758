//! The unit tests of the example `explore`: Cargo runs none of examples.
#![cfg(feature = "cpu")]

#[allow(dead_code)]
#[path = "../examples/explore/main.rs"]
mod example;
