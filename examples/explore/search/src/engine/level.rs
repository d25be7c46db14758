//! The states of one level.

use crate::parents::Parents;
use rayon::prelude::*;
use warpset::Reference;

/// States of one level, and their references if these are needed.
#[derive(Default)]
pub struct Level {
    pub words: Vec<u32>,
    pub references: Vec<Reference>,
    /// Rows of the parents of these states, until `Level::note` moves them to the `Parents`.
    pub parents: Vec<u64>,
}

impl Level {
    /// Appends the states of other lists. Returns false if there is no memory for them.
    pub fn take(&mut self, new: &[&Level]) -> bool {
        let words: Vec<&[u32]> = new.iter().map(|level| &*level.words).collect();
        let references: Vec<&[Reference]> = new.iter().map(|level| &*level.references).collect();
        let parents: Vec<&[u64]> = new.iter().map(|level| &*level.parents).collect();
        add_all(&mut self.words, &words) && add_all(&mut self.references, &references) && add_all(&mut self.parents, &parents)
    }

    /// Moves the parents of the states from number `first` on to `parents`.
    pub fn note(&mut self, first: usize, parents: &mut Parents) {
        parents.add(self.references[first..].iter().copied().zip(self.parents.drain(..)));
    }

    pub fn clear(&mut self) {
        self.words.clear();
        self.references.clear();
        self.parents.clear();
    }

    pub fn bytes(&self) -> u64 {
        let references = self.references.capacity() * size_of::<Reference>() + self.parents.capacity() * size_of::<u64>();
        (self.words.capacity() * 4 + references) as u64
    }
}

/// Appends several lists to one, by several threads. Returns false and adds nothing if there is no memory for them.
fn add_all<T: Copy + Send + Sync>(list: &mut Vec<T>, more: &[&[T]]) -> bool {
    let count = more.iter().map(|part| part.len()).sum();
    // In steps of a quarter: memory may be short, and doubling would waste up to half of it.
    let fits = list.capacity() - list.len() >= count
        || list.try_reserve_exact(count.max(list.len() / 4)).is_ok()
        || list.try_reserve_exact(count).is_ok();
    if !fits {
        return false;
    }
    let mut room = list.spare_capacity_mut();
    let mut copies = Vec::with_capacity(more.len());
    for part in more {
        let (to, rest) = room.split_at_mut(part.len());
        copies.push((to, *part));
        room = rest;
    }
    copies.into_par_iter().for_each(|(to, part)| to.iter_mut().zip(part).for_each(|(to, from)| _ = to.write(*from)));
    // SAFETY: `count` values behind the last one were reserved and written.
    unsafe { list.set_len(list.len() + count) };
    true
}
