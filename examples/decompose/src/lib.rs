//! Strongly connected components of graphs and maximal end components of Markov decision processes, found by kernels that run
//! on a GPU or on threads of a CPU. The program `decompose` reads graphs and reports. The model checker `explore` looks for
//! lassos in graphs that a GPU has made.
//!
//! `read` gives a [`graph::Graph`]; [`engine::Engine`] decomposes it on a [`machine::Machine`]; [`partition`] counts what was
//! found; [`paths`] has paths and cycles through given states.

#[cfg(feature = "cpu")]
pub mod cpu;
mod end_components;
pub mod engine;
#[cfg(feature = "cuda")]
pub mod gpu;
pub mod graph;
pub mod machine;
mod npz;
pub mod partition;
pub mod paths;
pub mod read;
#[cfg(all(test, feature = "cpu"))]
mod tests;
mod tra;
