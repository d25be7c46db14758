use std::fmt;

/// Statistics of a table: how full it is, and how long its searches are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Stats {
    /// Slots of the table.
    pub slots: u64,
    /// Vectors stored.
    pub stored: u64,
    /// Bytes of the slots.
    pub bytes: u64,
    /// `probe_lengths[i]`: number of stored vectors that are found in bucket `i + 1` of their probe sequence. The last element
    /// also counts all longer ones.
    pub probe_lengths: Vec<u64>,
    /// The longest probe sequence of a stored vector, in buckets; 0 in an empty table.
    pub longest_probe: u64,
    /// Buckets of the node table looked at to find all nodes of all stored vectors; 0 in a bucket table.
    pub node_probes: u64,
    /// Words per vector.
    pub width: usize,
    /// Nodes stored: 0 in a bucket table.
    pub nodes: u64,
    /// Slots of the node table: 0 in a bucket table.
    pub node_slots: u64,
}

impl Stats {
    /// Number of stored vectors divided by the number of slots.
    pub fn fill(&self) -> f64 {
        self.stored as f64 / self.slots as f64
    }

    /// Bytes of the table for each stored vector; infinite in an empty table.
    pub fn bytes_per_vector(&self) -> f64 {
        self.bytes as f64 / self.stored as f64
    }

    /// Words of the stored nodes, including roots, per word of the stored vectors. The minimum is 2 / width; 1 saves nothing;
    /// vectors that share no part come near 2. NaN in an empty table; 1 in a bucket table.
    pub fn compression_ratio(&self) -> f64 {
        if self.node_slots == 0 {
            return 1.0;
        }
        (self.nodes + self.stored) as f64 * 2.0 / (self.stored as f64 * self.width as f64)
    }

    /// Average number of buckets looked at to find a stored vector. (Lengths beyond the last bin count as the last bin.)
    pub fn mean_probe(&self) -> f64 {
        let sum: f64 = self.probe_lengths.iter().zip(1..).map(|(count, length)| *count as f64 * f64::from(length)).sum();
        sum / self.stored as f64
    }

    /// Average number of buckets looked at to find a stored vector that is given whole. In a tree table these are buckets of its
    /// nodes and of its root. Each is a request to the memory system, and caches serve most of them. NaN in an empty table.
    pub fn accesses_per_call(&self) -> f64 {
        self.mean_probe() + self.node_probes as f64 / self.stored as f64
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stored, width, slots, bytes, nodes, node_slots, .. } = self;
        write!(f, "{stored} vectors of {width} words in {slots} slots ({:.1} % full), {bytes} bytes", 100.0 * self.fill())?;
        if *node_slots > 0 {
            write!(f, ", {nodes} nodes in {node_slots} slots")?;
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "serde", feature = "cpu"))]
mod tests {
    use crate::{Device, Outcome, Stats, Tally, TreeTable};

    #[test]
    fn what_is_reported_can_be_serialised() {
        let table = TreeTable::new(&Device::cpu(), 4, 100).unwrap();
        let batch = table.find_or_put_many(&[1, 2, 3, 4, 1, 2, 3, 4]).unwrap();
        let stats = table.stats().unwrap();
        let json = serde_json::to_string(&(&stats, batch.tally, &batch.outcomes)).unwrap();
        let (stats_back, tally, outcomes): (Stats, Tally, Vec<Outcome>) = serde_json::from_str(&json).unwrap();
        assert_eq!((stats_back, tally, outcomes), (stats, batch.tally, batch.outcomes));
        assert!(serde_json::to_string(&table.spec()).unwrap().contains("\"width\":4"));
    }
}
