//! Reductions: in each state, a search takes only some of the steps, and still answers the question.
//!
//! [`actions`] names the steps of a model, for every language. [`dependencies`] computes which actions of the model do not accord
//! and which may enable another; it uses `effects` for processes, `rules` for networks, and `nets` for Petri nets. [`stubborn`]
//! chooses the actions to take in a state. `brute_force` checks the dependencies against the state space of a small model.

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
