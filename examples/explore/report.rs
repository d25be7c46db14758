//! What is printed of an exploration.

use super::engine::{Counts, End, Exploration};
use super::ir::Model;
use indicatif::{HumanBytes, HumanCount, HumanFloatCount};
use serde_json::{Value, json};
use std::time::Duration;
use warpset::{Device, Spec, Stats};

pub struct Report<'a> {
    pub model: &'a Model,
    pub device: &'a Device,
    pub spec: Spec,
    pub stats: Stats,
    pub exploration: &'a Exploration,
    /// How successors are found.
    pub engine: String,
    pub time: Time,
    /// Of a GPU, if they were measured.
    pub cycles: Option<Cycles>,
    /// What was found, if anything was.
    pub violation: Option<String>,
    /// The way to it.
    pub path: Option<Value>,
}

/// Where the time went.
#[derive(Clone, Copy, Debug, Default)]
pub struct Time {
    /// To read and lower the model.
    pub parse: Duration,
    /// To open the device and to make the table.
    pub table: Duration,
    /// To compile next-state functions, or the kernel with them, and load them. What is compiled beside the exploration does not count.
    pub compile: Duration,
    pub explore: Duration,
    /// To find the path to what was found.
    pub path: Duration,
}

/// Clock cycles of the first threads of all of a GPU's blocks together.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Cycles {
    /// Reading states.
    pub fetching: u64,
    /// Making successors and handing them to the cache.
    pub generating: u64,
    /// Removing duplicates from the cache, and finding or putting what is left.
    pub putting: u64,
    /// For other blocks at the end of a level.
    pub waiting: u64,
}

impl Cycles {
    fn json(self) -> Value {
        let Self { fetching, generating, putting, waiting } = self;
        json!({ "fetching": fetching, "generating": generating, "putting": putting, "waiting": waiting })
    }
}

impl Report<'_> {
    fn counts(&self) -> &Counts {
        &self.exploration.counts
    }

    fn states_per_second(&self) -> f64 {
        self.counts().states as f64 / self.time.explore.as_secs_f64()
    }

    pub fn json(&self) -> Value {
        let (counts, stats, time) = (self.counts(), &self.stats, &self.time);
        json!({
            "model": self.model.source.name,
            "states": counts.states,
            "transitions": counts.transitions,
            "deadlocks": counts.deadlocks,
            "levels": counts.levels,
            "complete": self.exploration.end == End::Complete,
            "end": end_word(self.exploration.end),
            "widest_level": counts.widest_level,
            "overflows": counts.overflows,
            "seconds": time.explore.as_secs_f64(),
            "states_per_second": self.states_per_second(),
            "seconds_parse": time.parse.as_secs_f64(),
            "seconds_table": time.table.as_secs_f64(),
            "seconds_compile": time.compile.as_secs_f64(),
            "seconds_path": time.path.as_secs_f64(),
            "table": self.spec.to_string(),
            "device": self.device.to_string(),
            "engine": self.engine,
            "words": self.model.layout.words,
            "slots": stats.slots,
            "bytes": stats.bytes,
            "bytes_per_state": stats.bytes_per_vector(),
            "fill": stats.fill(),
            "nodes": stats.nodes,
            "compression_ratio": stats.compression_ratio(),
            "cycles": self.cycles.map(Cycles::json),
            "violation": self.violation,
            "path": self.path,
        })
    }

    pub fn text(&self) -> String {
        let (counts, stats, time) = (self.counts(), &self.stats, &self.time);
        let count = |number| HumanCount(number).to_string();
        let seconds = |time: Duration| format!("{:.2} s", time.as_secs_f64());
        let mut rows = vec![
            ("model", format!("{} ({} words a state)", self.model.source.name, self.model.layout.words)),
            ("device", format!("{}, {}", self.device, self.engine)),
            ("table", self.spec.to_string()),
            ("", String::new()),
            ("states", count(counts.states)),
            ("transitions", count(counts.transitions)),
            ("deadlocks", count(counts.deadlocks)),
            ("levels", format!("{} (the widest has {} states)", count(counts.levels), count(counts.widest_level))),
            ("explored", end_text(self.exploration.end, counts)),
        ];
        if counts.overflows > 0 {
            rows.push(("overflows", format!("{} stores had to wrap their value", count(counts.overflows))));
        }
        rows.extend([
            ("", String::new()),
            (
                "time",
                format!(
                    "parse {}, table {}, compile {}, explore {}",
                    seconds(time.parse),
                    seconds(time.table),
                    seconds(time.compile),
                    seconds(time.explore)
                ),
            ),
            ("states a second", HumanFloatCount(self.states_per_second().round()).to_string()),
            (
                "memory",
                format!(
                    "{}, {:.1} bytes a state, {:.0} % full",
                    HumanBytes(stats.bytes),
                    stats.bytes_per_vector(),
                    100.0 * stats.fill()
                ),
            ),
        ]);
        if stats.node_slots > 0 {
            let text = format!("{:.3} ({} nodes)", stats.compression_ratio(), count(stats.nodes));
            rows.push(("compression ratio", text));
        }
        let lines = rows.iter().map(|(name, value)| if name.is_empty() { "\n".into() } else { format!("{name:<18} {value}\n") });
        lines.collect()
    }
}

fn end_word(end: End) -> &'static str {
    match end {
        End::Complete => "complete",
        End::Violation => "found",
        End::States => "max-states",
        End::Levels => "levels",
        End::Memory => "memory",
    }
}

fn end_text(end: End, counts: &Counts) -> String {
    let waiting = HumanCount(counts.waiting);
    match end {
        End::Complete => "completely".into(),
        End::Violation => "until something was found".into(),
        End::States => {
            format!("in part: stopped at --max-states, {waiting} states of the last level and those after it not expanded")
        }
        End::Levels => "in part: stopped at a level".into(),
        End::Memory => format!("in part: no more memory, {waiting} states of the last level and those after it not expanded"),
    }
}
