//! Finds strongly connected components of graphs and maximal end components of Markov decision processes, with kernels that run
//! on a GPU or on CPU threads. The program `decompose` reads graphs and reports the result. The model checker `explore` uses the
//! library to find lassos in graphs that a GPU has built.
//!
//! `read` returns a [`graph::Graph`]; [`engine::Decomposer`] decomposes it on a [`machine::Machine`]; [`partition`] counts the
//! components; [`paths`] finds paths and cycles through given states.

#[cfg(feature = "cpu")]
pub mod cpu;
mod edges;
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
