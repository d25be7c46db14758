//! A simulated CUDA device for tests without a GPU: the parts of the driver, NVRTC and NCCL that warpset uses run on the CPU.
//!
//! `README.md` of this package describes the promises of each function, and lists what is simulated and what is missing.
//!
//! | module | simulates |
//! |---|---|
//! | `driver` | `libcuda.so.1`: devices, contexts, memory, streams, events, launches |
//! | `nvrtc` | `libnvrtc.so`: compiles CUDA C++ with the system's C++ compiler |
//! | `execution` | what runs a compiled kernel: blocks on threads, lanes on fibres |
//! | `nccl` | `libnccl.so.2`: sends and receives between ranks of one host |
//!
//! The package builds one shared object. Links with the names of the three libraries lead to this object. `driver::settings`
//! describes the environment variables.

#![allow(non_snake_case)] // the names of exported functions are CUDA's
#![allow(clippy::missing_safety_doc)] // the driver's documentation has the conditions of each function

pub mod driver;
pub mod execution;
pub mod nccl;
pub mod nvrtc;
