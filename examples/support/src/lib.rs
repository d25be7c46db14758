//! Modules that the programs in `examples` share: options, exit codes, texts, output files, `.npy` headers, the end of a program.

pub mod aut_text;
pub mod components;
#[cfg(any(feature = "cuda", feature = "cpu"))]
pub mod device;
pub mod escaping;
pub mod exit;
pub mod generate;
#[cfg(any(feature = "cuda", feature = "cpu"))]
pub mod in_process;
pub mod lines;
pub mod memory;
pub mod npy_header;
pub mod npy_rows;
pub mod npy_writer;
pub mod numbers;
pub mod output;
pub mod printing;
pub mod program;
#[cfg(any(feature = "cuda", feature = "cpu"))]
pub mod replacing;
pub mod stopping;
pub mod text;
