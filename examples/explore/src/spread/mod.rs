//! Where the ranks of a search are: their devices, processes and connections.

mod launch;
mod rank_set;

pub use rank_set::{RankPlan, RankSet};
