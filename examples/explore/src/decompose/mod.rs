//! What the model checker shares with `decompose`, another program of this package: components of a graph that a GPU has made,
//! and paths in them.

#![allow(dead_code, reason = "the other program uses the remainder")]

mod end_components;
pub mod engine;
pub mod gpu;
mod graph;
pub mod machine;
mod partition;
pub mod paths;

use warpset_support::components as tarjan;
