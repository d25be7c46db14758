//! Reductions: from each state a search takes some of the steps only, and still finds what is asked.
//!
//! [`actions`] names the steps of a model, for every language. [`dependencies`] computes from the model which actions do not
//! accord and which may enable another: `effects` for processes, `rules` for networks, `nets` for Petri nets.
//! [`stubborn`] chooses the actions to take in a state. `brute_force` checks the dependencies against the state space of a small
//! model.

pub mod actions;
#[cfg(test)]
mod brute_force;
pub mod dependencies;
mod effects;
pub mod knowledge;
mod nets;
mod rules;
pub mod stubborn;

#[cfg(test)]
mod tests;
