//! The nodes of a tree table. The walks of trees here share no code with the kernels: they go from the root down, whereas
//! `tree/shape.cuh` mostly goes up.
//!
//! With the neighboured pairing, the left subtree of n words has the largest power of two below n words. With the halved pairing,
//! it has half of the words, rounded up.

use crate::checks::Pool;
use crate::explorer::Wrong;
use crate::memory::Memory;
use crate::table::{Table, wrong};
use std::collections::{HashMap, HashSet};

pub struct Nodes {
    width: usize,
    shape: Tree,
    slots: Vec<u64>,
    numbers: HashMap<u64, u32>,
}

impl Nodes {
    /// Reads the nodes of a table. Each node must be stored once, must belong to a vector of the pool, and must not be (0, 0).
    pub fn read(table: &Table, memory: &Memory, pool: &Pool) -> Result<Self, Wrong> {
        let about = |slot: usize| ("nodes".to_owned(), 8 * slot..8 * slot + 8);
        let slots = table.nodes(memory).to_vec();
        let beyond = &slots[table.node_slots..];
        if let Some(slot) = beyond.iter().position(|node| *node != 0) {
            let slot = table.node_slots + slot;
            return Err(wrong("node out of position", format!("slot {slot} holds a node"), vec![about(slot)]));
        }
        let mut numbers = HashMap::from([(0, slots.len() as u32 - 1)]);
        for (slot, node) in slots.iter().enumerate().filter(|(_, node)| **node != 0) {
            if let Some(other) = numbers.insert(*node, slot as u32) {
                let detail = format!("slots {other} and {slot} both hold the node {node:#x}");
                return Err(wrong("node replication", detail, vec![about(other as usize), about(slot)]));
            }
        }
        let shape = Tree::new(table.kernels.pairing, pool.width);
        let nodes = Self { width: pool.width, shape, slots, numbers };
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

    /// Returns a free slot for a node.
    pub fn free(&self, table: &Table) -> Option<usize> {
        self.slots[..table.node_slots].iter().position(|node| *node == 0)
    }

    /// Returns the vector of a root pair, if all its nodes are stored.
    pub fn vector(&self, root: [u32; 2]) -> Option<Vec<u32>> {
        let mut words = vec![0; self.width];
        let Tree::Pair(left, right) = &self.shape else { panic!("vectors have two words or more") };
        self.collect(left, root[0], &mut words)?;
        self.collect(right, root[1], &mut words)?;
        Some(words)
    }

    /// Writes the words of the tree that `value` stands for.
    fn collect(&self, tree: &Tree, value: u32, words: &mut [u32]) -> Option<()> {
        match tree {
            Tree::Word(at) => words[*at] = value,
            Tree::Pair(left, right) => {
                let node = *self.slots.get(value as usize)?;
                if node == 0 && self.numbers[&0] != value {
                    return None;
                }
                self.collect(left, node as u32, words)?;
                self.collect(right, (node >> 32) as u32, words)?;
            }
        }
        Some(())
    }

    /// Returns the root pair of a vector, if all its nodes are stored.
    pub fn root(&self, vector: &[u32]) -> Option<[u32; 2]> {
        self.walk(vector, &mut HashSet::new())
    }

    /// As `root`. Also adds to `wanted` each node of the vector that could be put next, because its child nodes are stored.
    fn walk(&self, vector: &[u32], wanted: &mut HashSet<u64>) -> Option<[u32; 2]> {
        let Tree::Pair(left, right) = &self.shape else { panic!("vectors have two words or more") };
        let (left, right) = (self.value(left, vector, wanted), self.value(right, vector, wanted));
        Some([left?, right?])
    }

    /// Returns the value that stands for the words of a tree.
    fn value(&self, tree: &Tree, vector: &[u32], wanted: &mut HashSet<u64>) -> Option<u32> {
        let (left, right) = match tree {
            Tree::Word(at) => return Some(vector[*at]),
            Tree::Pair(left, right) => (self.value(left, vector, wanted), self.value(right, vector, wanted)),
        };
        let node = u64::from(left?) | u64::from(right?) << 32;
        wanted.insert(node);
        self.numbers.get(&node).copied()
    }
}

/// Shape of a tree: which words are paired.
enum Tree {
    Word(usize),
    Pair(Box<Tree>, Box<Tree>),
}

impl Tree {
    /// Creates the tree of `width` words. `pairing` is the number of a pairing in tree/shape.cuh.
    fn new(pairing: u32, width: usize) -> Self {
        match pairing {
            0 => Self::cut(0, width, |count| count.next_power_of_two() / 2),
            1 => {
                // Lengths of the rows, upwards from the row above the words.
                let mut rows = vec![width.div_ceil(2)];
                while rows[rows.len() - 1] > 1 {
                    rows.push(rows[rows.len() - 1].div_ceil(2));
                }
                Self::interleaved(width, &rows, 0)
            }
            2 => Self::cut(0, width, |count| count.div_ceil(2)),
            _ => panic!("there is no pairing {pairing}"),
        }
    }

    /// Creates the tree of `count` words from `first` on, with the first `left_of(count)` words on the left.
    fn cut(first: usize, count: usize, left_of: fn(usize) -> usize) -> Self {
        if count == 1 {
            return Self::Word(first);
        }
        let left = left_of(count);
        Self::pair(Self::cut(first, left, left_of), Self::cut(first + left, count - left, left_of))
    }

    /// Creates the tree at a position of the last of these rows. Its children are in the row before: one at the same position,
    /// the other further right by the length of this row.
    fn interleaved(width: usize, rows: &[usize], position: usize) -> Self {
        let [before @ .., length] = rows else { panic!("there is a row") };
        match before.last() {
            None if 2 * position + 1 < width => Self::pair(Self::Word(2 * position), Self::Word(2 * position + 1)),
            None => Self::Word(2 * position),
            Some(longer) if position + length < *longer => {
                Self::pair(Self::interleaved(width, before, position), Self::interleaved(width, before, position + length))
            }
            Some(_) => Self::interleaved(width, before, position),
        }
    }

    fn pair(left: Self, right: Self) -> Self {
        Self::Pair(Box::new(left), Box::new(right))
    }
}
