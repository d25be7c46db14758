//! The report of a decomposition.

use indicatif::HumanCount;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::time::Duration;
use warpset_decompose::engine::Done;
use warpset_decompose::graph::Graph;
use warpset_decompose::partition::{Components, EndComponents, Histogram};
use warpset_support::escaping;
use warpset_support::exit;
use warpset_support::numbers::counted;
use warpset_support::output::Unwritten;

pub struct Report<'a> {
    pub name: &'a str,
    pub graph: &'a Graph,
    /// The device and the algorithm, in words.
    pub device: String,
    pub components: Components,
    pub end_components: EndComponents,
    /// Number of decompositions into components, including the first one.
    pub rounds: u64,
    pub time: Time,
    /// Times and counters of all decompositions.
    pub done: Done,
    /// Time of Tarjan's algorithm on one thread, if the user asked for it.
    pub tarjan: Option<Duration>,
    /// Outputs that could not be written.
    pub unwritten: Unwritten,
}

/// Times of the parts of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Time {
    pub read: Duration,
    /// Time to open the device, compile its kernels, and copy the graph to it.
    pub device: Duration,
    pub components: Duration,
    pub end_components: Duration,
    /// Time to copy the results to the host; for a graph without choices, also the time to find its end components there.
    pub results: Duration,
}

impl Report<'_> {
    /// The program's exit code.
    pub fn exit_code(&self) -> u8 {
        self.unwritten.sentence().map_or(0, |_| exit::ERROR)
    }

    pub fn json(&self) -> Value {
        let Self { graph, components, end_components, time, done, .. } = self;
        let seconds = |time: Duration| json!(time.as_secs_f64());
        let mut object = json!({
            "graph": self.name,
            "device": self.device,
            "states": graph.states(),
            "states_without_edges": components.without_edges,
            "choices": graph.choice_count(),
            "transitions": graph.transitions(),
            "components": components.count,
            "trivial_components": components.trivial,
            "self_loop_components": components.self_loops,
            "bottom_components": components.bottom,
            "largest_component": components.largest,
            "component_sizes": rows(&components.sizes),
            "end_components": end_components.count,
            "single_state_end_components": end_components.single,
            "states_in_end_components": end_components.states,
            "choices_in_end_components": end_components.choices,
            "largest_end_component": end_components.largest,
            "end_component_sizes": rows(&end_components.sizes),
            "rounds": self.rounds,
            "seconds": (time.components + time.end_components).as_secs_f64(),
            "time": {
                "read": seconds(time.read),
                "device": seconds(time.device),
                "components": seconds(time.components),
                "end_components": seconds(time.end_components),
                "results": seconds(time.results),
            },
        });
        let work: Map<_, _> = parts(done).into_iter().map(|(name, time)| (name.to_string(), seconds(time))).collect();
        object["work"] = work.into();
        object["work"]["rounds_of_searches"] = json!(done.searches);
        object["work"]["rounds_of_colours"] = json!(done.colourings);
        object["work"]["levels"] = json!(done.levels);
        object["work"]["launches"] = json!(done.launches);
        object["work"]["waits"] = json!(done.waits);
        object["work"]["edges"] = json!(done.edges);
        object["work"]["states_by_one_thread"] = json!(done.by_one_thread);
        object["tarjan_seconds"] = json!(self.tarjan.map(|time| time.as_secs_f64()));
        object["exit_code"] = self.exit_code().into();
        object["error"] = json!(self.unwritten.sentence());
        object
    }

    pub fn text(&self) -> String {
        let Self { graph, components, end_components, time, done, .. } = self;
        let count = |number: u64| HumanCount(number).to_string();
        let mut text = String::new();
        let mut row = |name: &str, value: String| {
            // Writing to a string never fails.
            _ = writeln!(text, "{name:<18} {}", escaping::line(&value));
        };
        row("graph", self.name.into());
        row("device", self.device.clone());
        row("states", count(graph.states()));
        if components.without_edges > 0 {
            let have = if components.without_edges == 1 { "has" } else { "have" };
            let without = count(components.without_edges);
            row("without edges", format!("of {}, {without} {have} no edge", counted(graph.states(), "state")));
        }
        row("choices", count(graph.choice_count()));
        row("transitions", count(graph.transitions()));
        row(
            "components",
            format!(
                "{} ({} trivial, {} with one state and a self-loop, {} bottom)",
                count(components.count),
                count(components.trivial),
                count(components.self_loops),
                count(components.bottom)
            ),
        );
        row("largest", counted(components.largest.into(), "state"));
        row(
            "end components",
            format!(
                "{} ({} with one state), with {} and {} in all",
                count(end_components.count),
                count(end_components.single),
                counted(end_components.states, "state"),
                counted(end_components.choices, "choice")
            ),
        );
        row("largest", counted(end_components.largest.into(), "state"));
        for (what, sizes) in [("components", &components.sizes), ("end components", &end_components.sizes)] {
            for (number, (least, most, found)) in sizes.rows().enumerate() {
                let name = if number == 0 { format!("sizes, {what}") } else { String::new() };
                let size = if least == most { count(least) } else { format!("{} to {}", count(least), count(most)) };
                row(&name, format!("{size:>28}: {}", count(found)));
            }
        }
        let Time { read, device, components, end_components, results } = *time;
        let seconds = |time: Duration| format!("{:.3} s", time.as_secs_f64());
        row(
            "time",
            format!(
                "read {}, device {}, components {}, end components {}, results {}",
                seconds(read),
                seconds(device),
                seconds(components),
                seconds(end_components),
                seconds(results)
            ),
        );
        let spent = parts(done).into_iter().filter(|(_, time)| *time > Duration::ZERO);
        row("time within", spent.map(|(name, time)| format!("{name} {}", seconds(time))).collect::<Vec<_>>().join(", "));
        row(
            "rounds",
            format!(
                "{}, {} of searches, {} of colours, {} in {}, {}; {} by one thread",
                counted(self.rounds, "decomposition"),
                counted(done.searches, "round"),
                counted(done.colourings, "round"),
                counted(done.levels, "level"),
                counted(done.launches, "launch"),
                counted(done.edges, "edge"),
                counted(done.by_one_thread, "state")
            ),
        );
        if let Some(tarjan) = self.tarjan {
            let times = tarjan.as_secs_f64() / components.as_secs_f64().max(1e-9);
            row(
                "Tarjan",
                format!("{} on one thread, same components; {times:.2} times the time of components above", seconds(tarjan)),
            );
        }
        if let Some(why) = self.unwritten.sentence() {
            row("NOT written", why);
        }
        text
    }
}

fn rows(sizes: &Histogram) -> Value {
    sizes.rows().map(|(least, most, count)| json!({ "least": least, "most": most, "count": count })).collect()
}

fn parts(done: &Done) -> [(&'static str, Duration); 5] {
    let Done { transpose, trim, search, tarjan, choices, .. } = *done;
    [("transpose", transpose), ("trim", trim), ("search", search), ("tarjan", tarjan), ("choices", choices)]
}
