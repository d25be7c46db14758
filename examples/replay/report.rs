//! The printed report of a replay.

use super::numbers::counted;
use super::options::TableKind;
use super::vectors::Vectors;
use crate::escaping;
use indicatif::{HumanBytes, HumanCount};
use serde_json::{Value, json};
use warpset::{Device, Spec, Stats, Tally};

/// Bytes of a node, and of a root.
const NODE_BYTES: u64 = 8;

/// How a table is spread over ranks.
pub struct Ranks {
    /// Number of vectors that each rank stores.
    pub stored: Vec<u64>,
    /// The fill of the fullest table / the fill of all together.
    pub balance: f64,
    /// Bytes sent between ranks, in all passes.
    pub bytes_exchanged: u64,
    /// Mean number of seconds that a rank waited for other ranks, copies included.
    pub waited: f64,
}

/// One pass over the vectors.
pub struct Pass {
    pub seconds: f64,
    pub tally: Tally,
}

impl Pass {
    /// 10^9 vectors a second; 0 for no vectors.
    pub fn gops(&self) -> f64 {
        self.tally.offered() as f64 / self.seconds / 1e9
    }
}

/// Rates for comparison with the first pass, in 10^9 vectors a second, if measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    /// Rate with the vectors in device memory.
    pub gpu_gops: Option<f64>,
    /// Rate of the placement-only pass; trees have none.
    pub placement_gops: Option<f64>,
    /// End-to-end rate that the link to the GPU allows.
    pub link_gops: Option<f64>,
}

pub struct Report<'a> {
    pub vectors: &'a Vectors,
    pub kind: TableKind,
    pub device: &'a Device,
    pub spec: Spec,
    pub stats: Stats,
    /// The passes; the first put the vectors into the empty table.
    pub passes: Vec<Pass>,
    pub measured: Measured,
    /// Statistics of several ranks.
    pub ranks: Option<Ranks>,
    /// Whether a verification found no difference; `None` without verification.
    pub verified: Option<bool>,
    /// Failure message and exit code.
    pub failure: Option<(&'a str, u8)>,
}

impl Report<'_> {
    fn first(&self) -> &Pass {
        &self.passes[0]
    }

    /// Rate of the first pass: of the GPU alone if measured, otherwise from end to end.
    fn gops(&self) -> f64 {
        self.measured.gpu_gops.unwrap_or(self.first().gops())
    }

    /// Rate of the first pass / rate of the placement-only pass.
    fn placement_share(&self) -> Option<f64> {
        self.measured.placement_gops.map(|placement| self.gops() / placement)
    }

    /// End-to-end rate / rate that the link allows.
    fn link_share(&self) -> Option<f64> {
        self.measured.link_gops.map(|link| self.first().gops() / link)
    }

    pub fn json(&self) -> Value {
        let (Tally { new, seen, full, full_nodes, .. }, stats) = (self.first().tally, &self.stats);
        let mut report = json!({
            "input": self.vectors.origin,
            "vectors": self.vectors.count(),
            "width": self.vectors.width,
            // A lower bound if the table was too full for some vectors.
            "distinct": stats.stored,
            "new": new,
            "seen": seen,
            "full": full,
            "full_nodes": full_nodes,
            "seconds": self.first().seconds,
            "gops": self.gops(),
            "gops_end_to_end": self.first().gops(),
            "placement_gops": self.measured.placement_gops,
            "placement_share": self.placement_share(),
            "link_gops": self.measured.link_gops,
            "link_share": self.link_share(),
            "passes": self.passes.iter().map(Pass::json).collect::<Vec<_>>(),
            "slots": stats.slots,
            "bytes": stats.bytes,
            "fill": stats.fill(),
            // JSON has neither infinity nor NaN; they become null.
            "bytes_per_vector": stats.bytes_per_vector(),
            "bytes_in_use_per_vector": self.bytes_in_use_per_vector(),
            "nodes": stats.nodes,
            "node_slots": stats.node_slots,
            "node_fill": self.node_fill(),
            "compression_ratio": stats.compression_ratio(),
            "longest_probe": stats.longest_probe,
            "accesses_per_call": stats.accesses_per_call(),
            "device": self.device.to_string(),
            "table": self.spec.to_string(),
            "ranks": self.ranks.as_ref().map(|ranks| json!({
                "count": ranks.stored.len(),
                "stored": ranks.stored,
                "balance": ranks.balance,
                "bytes_exchanged": ranks.bytes_exchanged,
                "seconds_waiting": ranks.waited,
            })),
            "verified": self.verified,
            "error": self.failure.map(|(error, _)| error),
            "exit_code": self.failure.map_or(0, |(_, code)| code),
        });
        if let (true, Some(report)) = (self.spec.is_tree() || self.spec.is_indexed(), report.as_object_mut()) {
            report.retain(|name, _| !name.starts_with("placement"));
        }
        report
    }

    pub fn text(&self) -> String {
        let mut rows = vec![
            ("vectors", self.vectors_text()),
            ("device", self.device.to_string()),
            ("table", self.spec.to_string()),
            ("slots", slots_text(self.stats.slots, self.slot_bytes())),
        ];
        if self.kind == TableKind::Tree {
            rows.push(("node slots", slots_text(self.stats.node_slots, NODE_BYTES)));
        }
        rows.extend([
            ("", String::new()),
            ("distinct", self.distinct_text()),
            ("outcomes", outcomes_text(self.first().tally)),
            ("fill", self.fill_text()),
        ]);
        if self.kind == TableKind::Tree {
            rows.push(("nodes", self.nodes_text()));
        }
        rows.extend([
            ("memory", self.memory_text()),
            ("", String::new()),
            ("first pass", pass_text(self.first().seconds, self.first().gops())),
        ]);
        rows.extend(self.later_passes_text().map(|text| ("later passes", text)));
        if let Some(Ranks { stored, balance, bytes_exchanged, waited }) = &self.ranks {
            let bytes = HumanBytes(*bytes_exchanged);
            let text = format!(
                "{}; the fullest has {balance:.3} times the mean fill; {bytes} exchanged; each waited {waited:.2} s",
                stored.len()
            );
            rows.push(("ranks", text));
        } else if self.device.is_gpu() {
            let share = self.measured.link_gops.zip(self.link_share());
            let of_link =
                share.map_or(String::new(), |(link, share)| format!("; {:.0} % of the link's {link:.4} G/s", 100.0 * share));
            rows.push(("", format!("including the copies of vectors to the GPU and of outcomes back{of_link}")));
            let alone =
                self.measured.gpu_gops.map_or("not measured".into(), |gops| format!("{gops:.4} G/s, vectors in device memory"));
            rows.push(("on the GPU", alone));
        }
        rows.push(("placement only", self.placement_text()));
        rows.extend(self.verified.map(|verified| ("verification", if verified { "verified" } else { "FAILED" }.into())));
        rows.iter().map(|(label, text)| format!("{label:<17}{}", escaping::line(text)).trim_end().to_string() + "\n").collect()
    }

    fn vectors_text(&self) -> String {
        let Vectors { words, width, origin, .. } = self.vectors;
        let bytes = HumanBytes(size_of_val(&words[..]) as u64);
        format!("{} of width {width}, {bytes}: {origin}", HumanCount(self.vectors.count() as u64))
    }

    fn distinct_text(&self) -> String {
        let at_least = if self.first().tally.full == 0 { "" } else { "at least " };
        format!("{at_least}{}", HumanCount(self.stats.stored))
    }

    fn fill_text(&self) -> String {
        let Stats { stored, longest_probe, .. } = self.stats;
        let mean = if stored == 0 { 0.0 } else { self.stats.mean_probe() };
        let fill =
            format!("{:.1} %; longest probe {}, mean {mean:.2}", 100.0 * self.stats.fill(), counted(longest_probe, "bucket"));
        match self.kind {
            TableKind::Tree if stored > 0 => {
                format!("{fill}; {:.2} accesses per vector, nodes included", self.stats.accesses_per_call())
            }
            _ => fill,
        }
    }

    fn nodes_text(&self) -> String {
        let nodes = HumanCount(self.stats.nodes);
        match self.node_fill() {
            None => "none: vectors of 1 or 2 words are stored without nodes".into(),
            Some(fill) if self.stats.stored == 0 => format!("{nodes}, fill {:.1} %", 100.0 * fill),
            Some(fill) => {
                format!("{nodes}, fill {:.1} %; compression ratio {:.3}", 100.0 * fill, self.stats.compression_ratio())
            }
        }
    }

    fn memory_text(&self) -> String {
        let in_use = match self.bytes_in_use_per_vector() {
            None => return "no vector stored".into(),
            Some(bytes) if self.spec.is_tree() => format!(", {bytes:.1} of them in use for its root and its share of the nodes"),
            Some(_) => String::new(),
        };
        format!("{:.1} bytes per stored vector{in_use}", self.stats.bytes_per_vector())
    }

    /// Bytes of a slot, which holds a vector, its root, or the number of its row.
    fn slot_bytes(&self) -> u64 {
        match self.spec.key_and_slot_bits() {
            Some((_, slot_bits)) => slot_bits as u64 / 8,
            None if self.spec.is_tree() => NODE_BYTES,
            None if self.spec.is_indexed() => u64::from(self.spec.index_slot_bits()) / 8,
            None => self.spec.width() as u64 * 4,
        }
    }

    /// Nodes stored / node slots, if the table has nodes.
    fn node_fill(&self) -> Option<f64> {
        let Stats { nodes, node_slots, .. } = self.stats;
        (node_slots > 0).then(|| nodes as f64 / node_slots as f64)
    }

    /// Bytes of all used slots, nodes and rows included, per vector stored.
    fn bytes_in_use_per_vector(&self) -> Option<f64> {
        let Stats { stored, nodes, .. } = self.stats;
        let row_bytes = if self.spec.is_indexed() { self.spec.width() as u64 * 4 } else { 0 };
        (stored > 0).then(|| (stored * (self.slot_bytes() + row_bytes) + nodes * NODE_BYTES) as f64 / stored as f64)
    }

    /// Median of the passes after the first.
    fn later_passes_text(&self) -> Option<String> {
        let mut later: Vec<&Pass> = self.passes[1..].iter().collect();
        later.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let median = later.get(later.len() / 2)?;
        let (count, outcomes) = (later.len(), outcomes_text(median.tally));
        Some(format!("{}: median of {count}, {outcomes}", pass_text(median.seconds, median.gops())))
    }

    fn placement_text(&self) -> String {
        match (self.measured.placement_gops, self.placement_share()) {
            _ if self.spec.is_tree() => "n/a: a tree has no single slot".into(),
            _ if self.spec.is_indexed() => "n/a: rows are found through an index".into(),
            (Some(placement), Some(share)) => format!("{placement:.4} G/s; the first pass reaches {:.0} % of it", 100.0 * share),
            _ => "not measured".into(),
        }
    }
}

impl Pass {
    fn json(&self) -> Value {
        let Tally { new, seen, full, .. } = self.tally;
        json!({ "seconds": self.seconds, "gops": self.gops(), "new": new, "seen": seen, "full": full })
    }
}

fn slots_text(slots: u64, slot_bytes: u64) -> String {
    format!("{}, {}", HumanCount(slots), HumanBytes(slots * slot_bytes))
}

fn outcomes_text(tally: Tally) -> String {
    format!("{} new, {} seen, {} full", HumanCount(tally.new), HumanCount(tally.seen), HumanCount(tally.full))
}

fn pass_text(seconds: f64, gops: f64) -> String {
    format!("{gops:.4} G/s, {seconds:.4} s")
}
