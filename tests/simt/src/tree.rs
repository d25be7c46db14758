//! The nodes of a tree table, seen from outside, and walks of its trees that share nothing with the kernels': from the root down, by
//! halving, where `tree_shape.cuh` goes up, level by level.
//!
//! A tree of `size` words, a power of two, has its first half to the left and the rest to the right. Where there is no rest, the left
//! half stands for all of it.

use crate::checks::Pool;
use crate::hunt::Wrong;
use crate::memory::Memory;
use crate::table::{Table, wrong};
use std::collections::{HashMap, HashSet};

pub struct Nodes {
    width: usize,
    slots: Vec<u64>,
    numbers: HashMap<u64, u32>,
}

impl Nodes {
    /// Reads the nodes of a table: each is stored once, belongs to a vector of the pool, and none is (0, 0).
    pub fn read(table: &Table, memory: &Memory, pool: &Pool) -> Result<Self, Wrong> {
        let about = |slot: usize| ("nodes".to_owned(), 8 * slot..8 * slot + 8);
        let slots = table.nodes(memory).to_vec();
        let beyond = &slots[table.node_slots..];
        if let Some(slot) = beyond.iter().position(|node| *node != 0) {
            let slot = table.node_slots + slot;
            return Err(wrong("node out of place", format!("slot {slot} holds a node"), vec![about(slot)]));
        }
        let mut numbers = HashMap::from([(0, slots.len() as u32 - 1)]);
        for (slot, node) in slots.iter().enumerate().filter(|(_, node)| **node != 0) {
            if let Some(other) = numbers.insert(*node, slot as u32) {
                let detail = format!("slots {other} and {slot} both hold the node {node:#x}");
                return Err(wrong("node replication", detail, vec![about(other as usize), about(slot)]));
            }
        }
        let nodes = Self { width: pool.width, slots, numbers };
        let mut wanted = HashSet::new();
        for vector in 0..pool.len() {
            nodes.walk(pool.vector(vector), &mut wanted);
        }
        let stray = nodes.slots.iter().position(|node| *node != 0 && !wanted.contains(node));
        stray.map_or(Ok(()), |slot| {
            let detail = format!("slot {slot} holds the node {:#x}, which no vector has", nodes.slots[slot]);
            Err(wrong("mixed node", detail, vec![about(slot)]))
        })?;
        Ok(nodes)
    }

    pub fn stored(&self) -> u64 {
        self.slots.iter().filter(|node| **node != 0).count() as u64
    }

    /// A slot that no node is in, but could be.
    pub fn free(&self, table: &Table) -> Option<usize> {
        self.slots[..table.node_slots].iter().position(|node| *node == 0)
    }

    /// The vector of a root pair, if all its nodes are there.
    pub fn vector(&self, root: [u32; 2]) -> Option<Vec<u32>> {
        let half = self.width.next_power_of_two() / 2;
        let mut words = Vec::new();
        self.collect(root[0], half, half, &mut words)?;
        self.collect(root[1], self.width - half, half, &mut words)?;
        Some(words)
    }

    /// Adds the `count` words that `value` stands for.
    fn collect(&self, value: u32, count: usize, size: usize, words: &mut Vec<u32>) -> Option<()> {
        if size == 1 {
            words.push(value);
            return Some(());
        }
        let half = size / 2;
        if count <= half {
            return self.collect(value, count, half, words);
        }
        let node = *self.slots.get(value as usize)?;
        if node == 0 && self.numbers[&0] != value {
            return None;
        }
        self.collect(node as u32, half, half, words)?;
        self.collect((node >> 32) as u32, count - half, half, words)
    }

    /// The root pair of a vector, if all its nodes are there.
    pub fn root(&self, vector: &[u32]) -> Option<[u32; 2]> {
        self.walk(vector, &mut HashSet::new())
    }

    /// The same; adds all nodes of the vector that could be put: those whose own nodes are there.
    fn walk(&self, vector: &[u32], wanted: &mut HashSet<u64>) -> Option<[u32; 2]> {
        let half = vector.len().next_power_of_two() / 2;
        let (left, right) = vector.split_at(half);
        let (left, right) = (self.value(left, half, wanted), self.value(right, half, wanted));
        Some([left?, right?])
    }

    /// What stands for these words.
    fn value(&self, words: &[u32], size: usize, wanted: &mut HashSet<u64>) -> Option<u32> {
        if size == 1 {
            return Some(words[0]);
        }
        let half = size / 2;
        if words.len() <= half {
            return self.value(words, half, wanted);
        }
        let (left, right) = words.split_at(half);
        let (left, right) = (self.value(left, half, wanted), self.value(right, half, wanted));
        let node = u64::from(left?) | u64::from(right?) << 32;
        wanted.insert(node);
        self.numbers.get(&node).copied()
    }
}
