//! A CUDA device without a GPU, for tests: NVRTC and the execution of kernels on the CPU.

pub mod execution;
pub mod nvrtc;
