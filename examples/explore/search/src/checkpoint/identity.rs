//! Identity of a search: the model and the checks that must be the same when it is resumed.

use anyhow::{Result, ensure};
use flate2::Crc;
use serde_json::{Map, Value, json};
use std::fmt::{self, Debug, Write};
use warpset_model::checks::{Checks, Role};
use warpset_model::ir::network::{Listed, Network, Rules};
use warpset_model::ir::{Layout, Model};
use warpset_model::reduction::stubborn::Stubborn;

/// Name of the part that encodes states.
const STATES: &str = "variables";

/// Name of the part with the places and transitions of a net.
const NET: &str = "net";

/// The parts of a model and its checks that a search depends on.
#[derive(Clone, Debug)]
pub struct Identity {
    name: String,
    /// Constants whose values are not those of the model's text, in the form in which the command line gives them.
    constants: Vec<String>,
    /// Parts of the model, with the checksum of each.
    parts: Vec<(&'static str, String)>,
    deadlocks: bool,
    /// Conditions in their order, each with its role.
    conditions: Vec<String>,
    /// Checksum of the evaluated conditions, because their texts do not contain the values of the model's constants.
    meaning: String,
    /// Checksum of what chooses the steps of a reduced search.
    reduction: Option<String>,
}

impl Identity {
    /// Identity of a search. `stubborn` chooses its steps, if it is reduced.
    pub fn of(model: &Model, checks: &Checks, stubborn: Option<&Stubborn>) -> Self {
        let reduction = stubborn.map(checksum_of_reduction);
        let parts = vec![
            (STATES, checksum_of_states(model)),
            ("processes", checksum(&(&model.processes, &model.channels))),
            ("transitions", checksum(&model.transitions)),
            ("assertions", checksum(&model.assertions)),
            (NET, checksum_of_net(model)),
            ("network", model.network.as_ref().map_or_else(String::new, checksum_of_network)),
        ];
        let conditions = checks.conditions.iter().filter(|condition| condition.role != Role::Assertion);
        let meaning = checksum(&conditions.clone().map(|condition| &condition.must_hold).collect::<Vec<_>>());
        let conditions = conditions.map(|condition| format!("{:?} {}", condition.role, condition.text)).collect();
        let mut constants: Vec<String> = model.constants.iter().map(|of| format!("{}={}", of.name, of.value)).collect();
        constants.sort_unstable();
        Self { name: model.source.name.clone(), constants, parts, deadlocks: checks.deadlocks, conditions, meaning, reduction }
    }

    pub fn json(&self) -> Value {
        let parts: Map<String, Value> = self.parts.iter().map(|(name, sum)| ((*name).into(), json!(sum))).collect();
        json!({ "name": self.name, "constants": self.constants, "parts": parts, "deadlocks": self.deadlocks, "conditions": self.conditions,
                "meaning": self.meaning, "reduction": self.reduction })
    }

    /// Returns an error that names the first difference from the saved identity.
    pub fn ensure_is(&self, saved: &Value) -> Result<()> {
        let name = saved["name"].as_str().unwrap_or("?");
        let before: Vec<&str> = saved["constants"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let given = |constants: &[&str]| match constants {
            [] => "without --const".to_string(),
            constants => format!("with --const {}", constants.join(" --const ")),
        };
        let now: Vec<&str> = self.constants.iter().map(String::as_str).collect();
        ensure!(before == now, "it was written {}, but this search runs {}", given(&before), given(&now));
        for (part, sum) in &self.parts {
            ensure!(
                saved["parts"][part].as_str() == Some(sum),
                "the checkpoint belongs to another model, {name}, or an earlier text of it: the {part} differ from those of {}",
                self.name
            );
        }
        let with = |asked: bool| if asked { "with" } else { "without" };
        ensure!(
            saved["deadlocks"].as_bool() == Some(self.deadlocks),
            "it was written {} --deadlock, but this search runs {}",
            with(!self.deadlocks),
            with(self.deadlocks)
        );
        let before: Vec<&str> = saved["conditions"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        ensure!(
            before == self.conditions,
            "it was written for other conditions (--invariant, --goal): {}; this search has {}",
            list(&before),
            list(&self.conditions)
        );
        ensure!(
            saved["meaning"].as_str() == Some(&self.meaning),
            "a constant of the model used in the conditions (--invariant, --goal) has changed since it was written"
        );
        let (before, now) = (saved["reduction"].as_str(), self.reduction.as_deref());
        ensure!(
            before.is_some() == now.is_some(),
            "it was written {} a reduction, but this search runs {}",
            with(before.is_some()),
            with(now.is_some())
        );
        ensure!(before == now, "it was written with another reduction (--reduce), or by a version that chooses other steps");
        Ok(())
    }
}

/// Whether a saved identity has the same variables, layout and places as a model.
pub fn has_states_of(saved: &Value, model: &Model) -> bool {
    let is = |part: &str, sum: String| saved["parts"][part].as_str() == Some(&sum);
    is(STATES, checksum_of_states(model)) && is(NET, checksum_of_net(model))
}

fn checksum_of_net(model: &Model) -> String {
    model.net.as_ref().map_or_else(String::new, checksum)
}

fn checksum_of_states(model: &Model) -> String {
    // Words that no field uses make no difference: some tables need them.
    let layout = Layout { words: model.layout.words_in_use(), ..model.layout.clone() };
    checksum(&(&model.variables, layout))
}

/// Two searches with the same checksum choose the same steps in each state. A search that resumes another must have the same
/// checksum, because the path to a state is found only if the search chooses the same steps again.
fn checksum_of_reduction(stubborn: &Stubborn) -> String {
    let (mut sum, dependencies) = (Sum::default(), &stubborn.dependencies);
    for row in dependencies.conflicts.iter().chain(&dependencies.enablers) {
        sum.add(bytemuck::cast_slice(row.as_slice()));
    }
    write!(sum, "{:?} {:?}", dependencies.actions.tests, dependencies.tests).expect("it writes nowhere");
    write!(sum, "{:?} {} {:?}", stubborn.goal, stubborn.keeps_deadlocks, stubborn.heuristics).expect("it writes nowhere");
    sum.text()
}

/// Conditions as the command line shows them.
fn list<T: AsRef<str>>(conditions: &[T]) -> String {
    let asked = |condition: &T| {
        let condition = condition.as_ref();
        let roles = [(Role::Invariant, "--invariant"), (Role::Goal, "--goal")];
        let asked = roles.iter().find_map(|(role, option)| {
            let text = condition.strip_prefix(&format!("{role:?} "))?;
            let is_word = text.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c));
            Some(if is_word { format!("{option} {text}") } else { format!("{option} '{}'", text.replace('\'', r"'\''")) })
        });
        asked.unwrap_or_else(|| condition.into())
    };
    if conditions.is_empty() { "none".into() } else { conditions.iter().map(asked).collect::<Vec<_>>().join(", ") }
}

/// Length in bytes and CRC-32 of a text that is not stored.
#[derive(Default)]
struct Sum {
    bytes: u64,
    crc: Crc,
}

impl Sum {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.crc.update(bytes);
    }

    fn text(&self) -> String {
        format!("{}:{:08x}", self.bytes, self.crc.sum())
    }
}

impl Write for Sum {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add(text.as_bytes());
        Ok(())
    }
}

fn checksum(part: &impl Debug) -> String {
    let mut sum = Sum::default();
    write!(sum, "{part:?}").expect("it writes nowhere");
    sum.text()
}

/// As `checksum`, without formatting: a network may have millions of transitions and labels.
fn checksum_of_network(network: &Network) -> String {
    let mut sum = Sum::default();
    for component in &network.components {
        let table = &component.table;
        sum.add(&table.initial.to_le_bytes());
        for list in [&table.offsets, &table.labels, &table.targets] {
            sum.add(&(list.len() as u64).to_le_bytes());
            sum.add(bytemuck::cast_slice(list));
        }
    }
    for label in network.labels.iter() {
        sum.add(label.as_bytes());
        sum.add(b"\n");
    }
    if let Rules::Listed(Listed { rules, .. }) = &network.rules {
        write!(sum, "{rules:?}").expect("it writes nowhere");
    }
    sum.text()
}
