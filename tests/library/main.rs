//! Tests of the package as a user has it: what Rust and C++ share, what programs and compilers get, how processes meet, and the
//! layers of the sources. One program, because each takes seconds to link.

mod abi;
#[cfg(feature = "cpu")]
mod custom_kernel;
mod layers;
#[cfg(feature = "cuda")]
mod nvcc;
mod promises;
mod rendezvous;
