//! Checks that must hold for a table after any number of operations.

use crate::explorer::Wrong;
use crate::indexed::IndexRows;
use crate::memory::Memory;
use crate::table::{ABSENT, FIND, FULL, GIVE, INCREMENTAL, NEW, NOTHING, Operation, PUT, SCAN, SEEN, Slot, TAKE, Table, wrong};
use crate::tree::Nodes;
use std::collections::{HashMap, HashSet};

/// Distinct vectors of a test, by number.
pub struct Pool {
    pub width: usize,
    vectors: Vec<Vec<u32>>,
    numbers: HashMap<Vec<u32>, usize>,
}

impl Pool {
    /// Creates a pool of the given vectors; repeated vectors are taken once.
    pub fn new(width: usize, vectors: impl IntoIterator<Item = Vec<u32>>) -> Self {
        let mut pool = Self { width, vectors: Vec::new(), numbers: HashMap::new() };
        for vector in vectors {
            assert_eq!(vector.len(), width);
            if let std::collections::hash_map::Entry::Vacant(entry) = pool.numbers.entry(vector) {
                pool.vectors.push(entry.key().clone());
                entry.insert(pool.vectors.len() - 1);
            }
        }
        pool
    }

    pub fn len(&self) -> usize {
        self.vectors.len()
    }

    pub fn is_empty(&self) -> bool {
        self.vectors.is_empty()
    }

    pub fn vector(&self, number: usize) -> &[u32] {
        &self.vectors[number]
    }

    pub fn number(&self, vector: &[u32]) -> Option<usize> {
        self.numbers.get(vector).copied()
    }

    /// Words of the numbered vectors, end to end.
    pub fn words(&self, numbers: impl IntoIterator<Item = usize>) -> Vec<u32> {
        numbers.into_iter().flat_map(|number| self.vectors[number].iter().copied()).collect()
    }
}

/// Contents of a table.
pub struct Contents {
    pub slots: Vec<Slot>,
    /// Slot of each vector of the pool.
    pub slot_of: Vec<Option<u64>>,
    /// Contents of the node table of a tree table.
    pub nodes: Option<Nodes>,
    /// True if an indexed table has run out of rows: one lane may then get Full for a vector that another lane, which already
    /// owns a row, puts.
    pub scarce: bool,
}

impl Contents {
    /// Reads a table. Slots may be half decided only if grids were killed.
    pub fn read(table: &Table, memory: &Memory, pool: &Pool, killed: bool) -> Result<Self, Wrong> {
        let mut slots: Vec<Slot> = (0..table.slots).map(|slot| table.slot(memory, slot)).collect();
        for (number, slot) in (0..).zip(&slots) {
            let first_free = slot.decided.iter().position(|decided| !decided).unwrap_or(slot.decided.len());
            if slot.decided[first_free..].contains(&true) {
                return Err(wrong("gap", format!("slot {number} has a decided chunk after one that is not"), slot.about()));
            }
            if slot.is_complete() && table.bars(&slot.words, number) {
                let detail = format!("slot {number} holds a vector that is barred from it");
                return Err(wrong("forbidden slot", detail, slot.about()));
            }
        }
        for (number, slot) in (0..).zip(&slots).filter(|(_, slot)| slot.is_complete()) {
            let walk = match &table.layout {
                Some(layout) => layout.walk(table.key(&slot.words)),
                None if table.kernels.is_indexed() => Vec::new(),
                None => table.walk(memory, &slot.words),
            };
            let may_hold = |at: &u64| slots[*at as usize].is_free() && (table.layout.is_some() || !table.bars(&slot.words, *at));
            if let Some(free) = walk.into_iter().take_while(|at| *at != number).find(may_hold) {
                let detail = format!("slot {number} holds {:x?}, whose walk has the free slot {free} before", slot.words);
                return Err(wrong("left a free slot", detail, [slot.about(), slots[free as usize].about()].concat()));
            }
        }
        if table.kernels.is_indexed() {
            table.view.indexed.check(memory, table, killed)?;
            return Ok(Self { scarce: table.view.indexed.is_scarce(memory), ..Self::of(slots, pool, killed)? });
        }
        if !table.kernels.is_tree() {
            return Self::of(slots, pool, killed);
        }
        let nodes = Nodes::read(table, memory, pool)?;
        for (number, slot) in slots.iter_mut().enumerate().filter(|(_, slot)| slot.is_complete()) {
            let Some(vector) = nodes.vector([slot.words[0], slot.words[1]]) else {
                let detail = format!("the root {:x?} of slot {number} lacks a node", slot.words);
                return Err(wrong("broken tree", detail, Vec::new()));
            };
            slot.words = vector;
        }
        Ok(Self { nodes: Some(nodes), ..Self::of(slots, pool, killed)? })
    }

    /// Contents of the given slots: whole vectors of the pool, each stored once.
    pub fn of(slots: Vec<Slot>, pool: &Pool, killed: bool) -> Result<Self, Wrong> {
        let mut slot_of = vec![None; pool.len()];
        for (number, slot) in (0..).zip(&slots) {
            if !slot.is_complete() {
                if !slot.is_free() && !killed {
                    return Err(wrong("half a vector", format!("slot {number} was left half decided"), slot.about()));
                }
                continue;
            }
            let Some(vector) = pool.number(&slot.words) else {
                let detail = format!("slot {number} holds {:x?}, which nobody offered", slot.words);
                return Err(wrong("mixed vectors", detail, slot.about()));
            };
            if let Some(other) = slot_of[vector].replace(number) {
                let about = [slots[other as usize].about(), slot.about()].concat();
                return Err(wrong("replication", format!("slots {other} and {number} both hold {:x?}", slot.words), about));
            }
        }
        Ok(Self { slots, slot_of, nodes: None, scarce: false })
    }

    pub(crate) fn about(&self, slot: Option<u64>) -> Vec<(String, std::ops::Range<usize>)> {
        slot.and_then(|slot| self.slots.get(slot as usize)).map_or_else(Vec::new, Slot::about)
    }

    /// Checks one result for a vector: New and Seen must refer to the slot that holds the vector; other outcomes refer to
    /// nothing.
    pub fn check_result(&self, vector: usize, outcome: u32, reference: u64) -> Result<(), Wrong> {
        let slot = self.slot_of[vector];
        let rule = match outcome {
            NEW | SEEN if slot.is_none() => "lost vector",
            NEW | SEEN if slot != Some(reference) => "unequal references",
            FULL if slot.is_some() && !self.scarce => "Full but stored",
            FULL | ABSENT if reference != u64::MAX => "reference of nothing",
            NEW | SEEN | FULL | ABSENT => return Ok(()),
            _ => "no outcome",
        };
        let detail = format!("vector {vector} is at {slot:?}; outcome {outcome} says {reference}");
        Err(wrong(rule, detail, [self.about(slot), self.about(Some(reference))].concat()))
    }

    /// Checks for exactly one New per stored vector (of a table that was empty before).
    pub fn check_news(&self, news: &HashMap<usize, u64>) -> Result<(), Wrong> {
        for (vector, slot) in self.slot_of.iter().enumerate() {
            let new = news.get(&vector).copied().unwrap_or(0);
            let expected = u64::from(slot.is_some());
            if new != expected {
                let rule = if new > expected { "two New" } else { "no New" };
                return Err(wrong(rule, format!("vector {vector} at {slot:?} was New {new} times"), self.about(*slot)));
            }
        }
        Ok(())
    }

    /// Checks that a vector was rightly Full: all slots of its walk that may hold it are taken, or a node was missing and all
    /// node slots are taken. Returns true in the second case. (A walk has all slots of a table of one slice. In a table of
    /// several small slices it jumps by the same number of slices each time, and may come back before it has seen all.)
    pub fn check_full(&self, table: &Table, memory: &Memory, pool: &Pool, vector: usize) -> Result<bool, Wrong> {
        if table.kernels.is_indexed() {
            let stored = self.slot_of.iter().flatten().count() as u64;
            if stored >= table.room || table.view.indexed.is_scarce(memory) {
                return Ok(false);
            }
            let detail = format!("vector {vector} was Full, but {stored} of {} slots are taken, and there are rows", table.room);
            return Err(wrong("Full but free", detail, Vec::new()));
        }
        let words = pool.vector(vector);
        let root = self.nodes.as_ref().map(|nodes| nodes.root(words));
        let words = match (&self.nodes, &root) {
            (Some(nodes), Some(None)) => {
                // A search that sees only a part of the node table may miss a free slot.
                let sees_all = table.view.nodes.probe_limit == table.view.nodes.buckets;
                let free = nodes.free(table).filter(|_| sees_all);
                return free.map_or(Ok(true), |slot| {
                    Err(wrong(
                        "Full but free",
                        format!("vector {vector} was Full, but slot {slot} of the nodes is free"),
                        Vec::new(),
                    ))
                });
            }
            (_, Some(Some(root))) => root,
            _ => words,
        };
        let is_free = |slot: &u64| match &table.layout {
            None => !self.slots[*slot as usize].is_complete() && !table.bars(words, *slot),
            Some(_) => self.slots[*slot as usize].is_free(),
        };
        let free = table.walk(memory, words).into_iter().find(is_free);
        free.map_or(Ok(false), |slot| {
            Err(wrong("Full but free", format!("vector {vector} was Full, but slot {slot} is free"), self.about(Some(slot))))
        })
    }

    /// Checks for a compact table that vectors that were not put back are in slots that find-or-put may take.
    pub fn check_kept(&self, table: &Table, pool: &Pool, put_back: impl Fn(usize) -> bool) -> Result<(), Wrong> {
        let Some(layout) = &table.layout else { return Ok(()) };
        for (vector, slot) in self.slot_of.iter().enumerate().filter(|(vector, _)| !put_back(*vector)) {
            let walk = || layout.walk_of_find_or_put(table.key(pool.vector(vector)));
            if slot.is_some_and(|slot| !walk().contains(&slot)) {
                return Err(wrong("kept slot", format!("vector {vector} is at {slot:?}"), self.about(*slot)));
            }
        }
        Ok(())
    }

    /// Checks the table's counts (valid only if nothing was killed).
    pub fn check_counts(&self, table: &Table, memory: &Memory) -> Result<(), Wrong> {
        let check = |what, counter: u64, stored: u64| {
            let counted = memory.read_at::<u64>(counter, 1)[0];
            let detail = || format!("{counted} {what} counted, {stored} stored");
            if counted == stored { Ok(()) } else { Err(wrong("wrong count", detail(), Vec::new())) }
        };
        check("vectors", table.view.roots.stored, self.slot_of.iter().flatten().count() as u64)?;
        self.nodes.as_ref().map_or(Ok(()), |nodes| check("nodes", table.view.nodes.stored, nodes.stored()))
    }
}

/// Checks the results of scripts against each other and against the final table. `sequential`: memory was sequentially
/// consistent, so operations that do not overlap are ordered as they were done.
pub fn check_scripts(contents: &Contents, operations: &[Operation], a_lane: usize, sequential: bool) -> Result<(), Wrong> {
    for lane in operations.chunks(a_lane) {
        let mut known = HashSet::new();
        for operation in lane.iter().filter(|operation| operation.kind != NOTHING) {
            if matches!(operation.kind, SCAN | TAKE) {
                if operation.misread != 0 {
                    let detail = format!("slot {} was read as what it never held", operation.reference);
                    return Err(wrong("wrong row", detail, contents.about(Some(operation.reference))));
                }
                continue;
            }
            let vector = operation.vector as usize;
            contents.check_result(vector, operation.outcome, operation.reference)?;
            let about = || contents.about(contents.slot_of[vector]);
            if operation.misread != 0 {
                let detail = format!("vector {vector} was read back with other words, right after outcome {}", operation.outcome);
                return Err(wrong("misread", detail, about()));
            }
            match operation.outcome {
                NEW | SEEN if operation.outcome == NEW && known.contains(&vector) => {
                    return Err(wrong("New after Seen", format!("vector {vector}"), about()));
                }
                NEW | SEEN => {
                    known.insert(vector);
                }
                _ if known.contains(&vector) => {
                    let detail = format!("a lane that knew vector {vector} to be stored was then told {}", operation.outcome);
                    return Err(wrong("forgotten vector", detail, about()));
                }
                _ => {}
            }
        }
    }
    if sequential { check_moments(contents, operations) } else { Ok(()) }
}

/// Checks that for each vector there is a moment, within the call that returned New, such that every Seen ends after it and every
/// Absent begins before it: the operations are linearizable (Herlihy and Wing 1990).
fn check_moments(contents: &Contents, operations: &[Operation]) -> Result<(), Wrong> {
    let mut moments: HashMap<u32, (u64, u64)> = HashMap::new();
    for operation in operations.iter().filter(|operation| matches!(operation.kind, PUT | FIND | GIVE | INCREMENTAL)) {
        let (earliest, latest) = moments.entry(operation.vector).or_insert((0, u64::MAX));
        match operation.outcome {
            NEW => {
                *earliest = (*earliest).max(operation.began);
                *latest = (*latest).min(operation.ended);
            }
            SEEN => *latest = (*latest).min(operation.ended),
            ABSENT => *earliest = (*earliest).max(operation.began),
            _ => {}
        }
    }
    for (vector, (earliest, latest)) in moments {
        if earliest > latest {
            let detail = format!("vector {vector} was absent after step {earliest}, but seen before step {latest}");
            return Err(wrong("not linearizable", detail, contents.about(contents.slot_of[vector as usize])));
        }
    }
    Ok(())
}
