//! Search for accepting cycles by elimination ("one way catch them young").
//!
//! The search considers only states of the table whose automaton is in a component with a move and an accepting location, and
//! only steps within one such component (`Property::accepting_components`), because every accepting cycle lies there. It repeats
//! two phases until nothing changes:
//!
//! 1. *Reset*: removes states that are not reached from an accepting state, and counts each state's predecessors on the way.
//! 2. *Elimination*: removes states without a predecessor and decrements the counts of their successors, until no such state is
//!    left.
//!
//! The remaining states are the *residue*. It is empty if and only if there is no accepting cycle (Fisler, Fraer, Kamhi, Vardi,
//! Yang 2001; for distributed explicit search Černá and Pelánek 2003). In the components of a weak automaton every location is
//! accepting. The reset then removes nothing, and one elimination decides.
//!
//! Edges are not stored: a pass computes the successors of each state again and looks them up. A state takes two bytes, at the
//! index of its slot. 13 of these bits are the count of predecessors. A count that reaches its maximum stays there, so the
//! elimination may keep too many states, never too few. The next round counts again. The search ends only after a round that has
//! removed nothing, or in which no count reached its maximum.
//!
//! Successors that the table does not contain are not part of the graph. For threads, neither are the steps of a state with a
//! fault, which waits in the last level found. Therefore the search can run during the exploration, over the states found so far:
//! a cycle among them is a cycle of the product. It runs each time the number of states has quadrupled (`Watch`), which costs a
//! third more at worst. Maximal accepting predecessors (Brim, Černá, Moravec, Šimša 2004), computed during one pass (Barnat,
//! Brim, Ročkai 2009), show some cycles earlier. But they take 4 to 8 bytes for each state, which must move when the table grows,
//! and they find cycles only by luck. The elimination finds every cycle among the states found so far.

use crate::exploration::{End, Limits};
use crate::predecessors::predecessor;
use crate::successors::{Expansion, Scratch, Successors};
use anyhow::{Context, Result, ensure};
use rayon::prelude::*;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use warpset::{Reference, Storage, VectorTable};
use warpset_model::ir::{Field, Model};
use warpset_support::stopping::Stop;

/// Number of states that a thread takes at a time.
const PIECE: usize = 512;

/// Number of states that a thread takes at a time if it only finds their steps.
const LARGE_PIECE: usize = 4096;

/// Number of states that a thread takes at a time if the table is on a GPU.
const PIECE_FOR_GPU: usize = 1 << 15;

/// The state is in the residue.
const IN: u16 = 1 << 15;
/// The state was reached since the last reset. After the elimination, the flag means that a search has visited the state.
const REACHED: u16 = 1 << 14;
/// The state belongs to the component of an accepting cycle.
const ON_CYCLE: u16 = 1 << 13;
/// Bits of the count of predecessors.
const COUNT: u16 = ON_CYCLE - 1;

/// Maximum number of rounds of a search during the exploration. After these, the search is postponed.
pub const ROUNDS_ON_THE_WAY: u64 = 2;

/// Returns `on_cpu` or, if the table is on a GPU, the number of states that makes a transfer and a launch worthwhile.
fn piece<S: Storage>(table: &VectorTable<S>, on_cpu: usize) -> usize {
    if table.device().is_gpu() { PIECE_FOR_GPU } else { on_cpu }
}

/// Number of states that a thread takes at a time in order to find their steps.
pub fn large_piece<S: Storage>(table: &VectorTable<S>) -> usize {
    piece(table, LARGE_PIECE)
}

/// The parts of the automaton that decide acceptance.
#[derive(Clone, Debug)]
pub struct Automaton {
    field: Field,
    pub accepting: Vec<bool>,
    /// By location, its component number in `Property::accepting_components`, or 0.
    pub components: Vec<u32>,
    /// Whether all locations of these components are accepting.
    is_weak: bool,
}

impl Automaton {
    /// The automaton of a model with a property.
    pub fn of(model: &Model) -> Self {
        let property = model.property.as_ref().expect("the model has a property");
        let components = property.accepting_components(model.processes[property.process].initial);
        let accepting = property.accepting.clone();
        let is_weak = components.iter().zip(&accepting).all(|(component, accepting)| *component == 0 || *accepting);
        Self { field: model.layout.locations[property.process], accepting, components, is_weak }
    }

    /// Whether the search may end after this round because another round would remove nothing.
    pub fn decides(&self, round: Decision) -> bool {
        round.after == round.before || (self.is_weak && !round.has_most)
    }

    /// By location: 2 * its component number, + 1 if the location is accepting.
    #[cfg(feature = "cuda")]
    pub fn about_locations(&self) -> Vec<u32> {
        self.components.iter().zip(&self.accepting).map(|(component, accepting)| 2 * component + u32::from(*accepting)).collect()
    }

    pub fn is_accepting(&self, state: &[u32]) -> bool {
        self.accepting[self.location(state)]
    }

    /// Component number of the state's location; 0 if no accepting cycle can contain the state.
    pub fn component(&self, state: &[u32]) -> u32 {
        self.components[self.location(state)]
    }

    pub fn location(&self, state: &[u32]) -> usize {
        self.field.get(state, 0) as usize
    }
}

/// A search over the states of a table.
pub struct ResidueSearch<'a, S, X> {
    pub table: &'a VectorTable<S>,
    pub source: &'a X,
    pub automaton: &'a Automaton,
    pub limits: Limits,
    /// Maximum of the count of predecessors, at which it stays; tests use a smaller one.
    pub most_count: u16,
}

/// The states that remain after the elimination, or the reason why they are not known.
pub struct Residue {
    /// Two bytes for each slot of the table; empty while the residue is on a GPU.
    pub flags: Vec<AtomicU16>,
    /// The states in the residue; empty while they are on a GPU.
    pub members: Vec<Reference>,
    /// Number of states in the residue.
    pub inside: u64,
    /// Number of states of the table whose location is accepting.
    pub accepting: u64,
    /// Number of passes. Each pass expanded all remaining states.
    pub passes: u64,
    /// Why the residue is not known; `None` if it is known.
    pub end: Option<End>,
}

/// Decides at which numbers of states a search over the states found so far takes place.
pub struct Watch {
    next: u64,
}

impl Default for Watch {
    fn default() -> Self {
        Self { next: 1 << 14 }
    }
}

impl Watch {
    /// Number of states at which the next search is due.
    #[cfg(feature = "cuda")]
    pub fn next_at(&self) -> u64 {
        self.next
    }

    /// Whether a search is due at this number of states.
    pub fn is_due(&mut self, states: u64) -> bool {
        let is_due = states >= self.next;
        if is_due {
            self.next = states.saturating_mul(4);
        }
        is_due
    }
}

/// Reason why a part of a pass has stopped.
enum Stopped {
    By(Stop),
    Memory,
}

/// Largest value of a count.
pub const MOST_COUNT: u16 = COUNT;

/// Whether a state with these flags is in the residue.
fn is_inside(flags: u16) -> bool {
    flags & IN != 0
}

/// Adds a predecessor to the flags of a state. Leaves a state outside the residue, and a count of `most`, unchanged.
/// gpu/residue.cuh has the same function.
pub fn counted(before: u16, most: u16) -> u16 {
    if before & IN == 0 {
        return before;
    }
    let count = before & COUNT;
    (before & !COUNT) | REACHED | if count < most { count + 1 } else { count }
}

/// Removes a predecessor from the flags of a state. When the last one is removed, the state leaves the residue. gpu/residue.cuh
/// has the same function.
pub fn uncounted(before: u16, most: u16) -> u16 {
    let count = before & COUNT;
    if before & IN == 0 || count == 0 || count >= most {
        return before;
    }
    if count == 1 { 0 } else { before - 1 }
}

/// Result of a round.
#[derive(Clone, Copy, Debug)]
pub struct Decision {
    /// Number of states in the residue before the round.
    pub before: u64,
    /// Number of states in the residue after the round.
    pub after: u64,
    /// Whether the count of some state of the residue has reached its maximum.
    pub has_most: bool,
}

impl Residue {
    /// Whether an accepting cycle is known to exist.
    pub fn has_cycle(&self) -> bool {
        self.end.is_none() && self.inside > 0
    }

    /// Marks all members as in the residue. All flags must be zero before.
    #[cfg(feature = "cuda")]
    pub fn put_in_members(&self) {
        // Relaxed: as in `contains`.
        self.members.par_iter().for_each(|of| self.flag(*of).store(IN, Ordering::Relaxed));
    }

    fn flag(&self, reference: Reference) -> &AtomicU16 {
        &self.flags[reference.slot() as usize]
    }

    pub fn contains(&self, reference: Reference) -> bool {
        // Relaxed, here and below: flags of different states are independent, and passes are separated by joining their threads.
        is_inside(self.flag(reference).load(Ordering::Relaxed))
    }

    /// Marks the state as part of a component with an accepting cycle.
    pub fn set_on_cycle(&self, reference: Reference) {
        self.flag(reference).fetch_or(ON_CYCLE, Ordering::Relaxed);
    }

    pub fn is_on_cycle(&self, reference: Reference) -> bool {
        self.flag(reference).load(Ordering::Relaxed) & ON_CYCLE != 0
    }

    /// Returns true only for the first visit of the state. Requires that the residue is known and that `forget` was called.
    pub fn visit(&self, reference: Reference) -> bool {
        self.flag(reference).fetch_or(REACHED, Ordering::Relaxed) & REACHED == 0
    }

    /// Clears all flags except `IN`.
    pub fn forget(&self) {
        self.flags.par_iter().filter(|flag| flag.load(Ordering::Relaxed) & !IN != 0).for_each(|flag| {
            flag.fetch_and(IN, Ordering::Relaxed);
        });
    }

    /// Counts a predecessor. Returns true if the state is reached for the first time.
    fn count(&self, reference: Reference, most: u16) -> bool {
        let change = |before| Some(counted(before, most)).filter(|after| *after != before);
        let changed = self.flag(reference).fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
        changed.is_ok_and(|before| before & REACHED == 0)
    }

    /// Removes a predecessor. Returns true if it was the last one, so that the state leaves the residue.
    fn uncount(&self, reference: Reference, most: u16) -> bool {
        let change = |before| Some(uncounted(before, most)).filter(|after| *after != before);
        let changed = self.flag(reference).fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
        changed.is_ok_and(|before| before & COUNT == 1)
    }
}

impl<S: Storage, X: Successors> ResidueSearch<'_, S, X> {
    /// Finds the residue of the states in the table. If memory runs out, this is not an error, but is reported in `end`.
    ///
    /// After `most_rounds` rounds, the search gives up.
    pub fn run(&self, most_rounds: u64) -> Result<Residue> {
        let mut residue = Residue { flags: Vec::new(), members: Vec::new(), inside: 0, accepting: 0, passes: 0, end: None };
        let slots = self.table.slots() as usize;
        if self.bytes(2 * slots as u64) > self.limits.bytes || residue.flags.try_reserve_exact(slots).is_err() {
            residue.end = Some(End::Memory);
            return Ok(residue);
        }
        (0..slots).into_par_iter().map(|_| AtomicU16::new(0)).collect_into_vec(&mut residue.flags);
        let mut rounds = 0;
        let mut accepting = match self.begin(&mut residue)? {
            Ok(accepting) => accepting,
            Err(stopped) => return Ok(residue.ended(stopped)),
        };
        residue.inside = residue.members.len() as u64;
        while residue.inside > 0 {
            if rounds == most_rounds {
                residue.end = Some(End::Levels);
                break;
            }
            let before = residue.inside;
            match self.round(&mut residue, &accepting)? {
                Ok(()) => {}
                Err(stopped) => return Ok(residue.ended(stopped)),
            }
            rounds += 1;
            // Relaxed: as in `contains`.
            let is_most = |of: &Reference| residue.flag(*of).load(Ordering::Relaxed) & COUNT >= self.most_count;
            let has_most = residue.members.par_iter().any(is_most);
            let after = residue.members.len() as u64;
            residue.inside = after;
            if self.automaton.decides(Decision { before, after, has_most }) {
                break;
            }
            accepting.retain(|reference| residue.contains(*reference));
        }
        Ok(residue)
    }

    /// Number of accepting states in the table.
    pub fn count_accepting(&self) -> Result<u64> {
        let mut accepting = 0;
        for row in self.table.iter() {
            accepting += u64::from(self.automaton.is_accepting(&row?.1));
        }
        Ok(accepting)
    }

    /// Bytes of the table plus `more`.
    fn bytes(&self, more: u64) -> u64 {
        self.table.bytes().saturating_add(more)
    }

    /// Adds all states that may be on accepting cycles to the residue. Returns those of them that are accepting.
    fn begin(&self, residue: &mut Residue) -> Result<Result<Vec<Reference>, Stopped>> {
        let mut accepting = Vec::new();
        for (number, row) in self.table.iter().enumerate() {
            let (reference, state) = row?;
            if number % 65_536 == 0 {
                if let Some(stop) = (self.limits.stop)() {
                    return Ok(Err(Stopped::By(stop)));
                }
                // The factor 4: lists grow by doubling, and a pass needs two more lists.
                let lists = 4 * size_of::<Reference>() * (residue.members.len() + accepting.len());
                if self.bytes((2 * residue.flags.len() + lists) as u64) > self.limits.bytes {
                    return Ok(Err(Stopped::Memory));
                }
            }
            let is_accepting = self.automaton.is_accepting(&state);
            residue.accepting += u64::from(is_accepting);
            if self.automaton.component(&state) == 0 {
                continue;
            }
            if residue.members.try_reserve(1).is_err() || accepting.try_reserve(1).is_err() {
                return Ok(Err(Stopped::Memory));
            }
            residue.flag(reference).store(IN, Ordering::Relaxed);
            residue.members.push(reference);
            if is_accepting {
                accepting.push(reference);
            }
        }
        Ok(Ok(accepting))
    }

    /// Runs one reset and one elimination.
    fn round(&self, residue: &mut Residue, accepting: &[Reference]) -> Result<Result<(), Stopped>> {
        residue.forget();
        for reference in accepting {
            residue.visit(*reference);
        }
        residue.passes += 1;
        let mut frontier = accepting.to_vec();
        while !frontier.is_empty() {
            let shared = &*residue;
            match self.expand(&frontier, |_, to| shared.count(to, self.most_count))? {
                Ok(next) => frontier = next,
                Err(stopped) => return Ok(Err(stopped)),
            }
        }
        let mut members = std::mem::take(&mut residue.members);
        let is_reached = |of: &Reference| {
            let flag = residue.flag(*of);
            let is_reached = flag.load(Ordering::Relaxed) & REACHED != 0;
            if !is_reached {
                flag.store(0, Ordering::Relaxed);
            }
            is_reached
        };
        members.retain(is_reached);
        residue.passes += 1;
        let has_none = |of: &&Reference| residue.flag(**of).load(Ordering::Relaxed) & COUNT == 0;
        let mut frontier: Vec<Reference> = members.par_iter().filter(has_none).copied().collect();
        frontier.par_iter().for_each(|of| residue.flag(*of).store(0, Ordering::Relaxed));
        while !frontier.is_empty() {
            match self.expand(&frontier, |_, to| residue.uncount(to, self.most_count))? {
                Ok(next) => frontier = next,
                Err(stopped) => return Ok(Err(stopped)),
            }
        }
        members.retain(|reference| residue.contains(*reference));
        residue.members = members;
        Ok(Ok(()))
    }

    /// Takes all steps from these states that stay within one component. Returns the targets of the steps for which `take`
    /// returns true.
    fn expand(
        &self,
        states: &[Reference],
        take: impl Fn(Reference, Reference) -> bool + Sync,
    ) -> Result<Result<Vec<Reference>, Stopped>> {
        let stopped = AtomicU64::new(0);
        let expand = |workspace: &mut Workspace, references: &[Reference]| -> Result<Vec<Reference>> {
            if (self.limits.stop)().is_some() {
                stopped.store(1, Ordering::Relaxed);
                return Ok(Vec::new());
            }
            let mut taken = Vec::new();
            self.steps(references, workspace, |from, to, _| {
                if take(references[from], to) {
                    taken.push(to);
                }
            })?;
            Ok(taken)
        };
        let size = piece(self.table, PIECE);
        let parts: Result<Vec<Vec<Reference>>> = states.par_chunks(size).map_init(Workspace::default, expand).collect();
        let parts = parts?;
        if stopped.into_inner() != 0 {
            return Ok(Err(Stopped::By((self.limits.stop)().context("whoever has stopped it still does")?)));
        }
        let mut all = Vec::new();
        if all.try_reserve_exact(parts.iter().map(Vec::len).sum()).is_err() {
            return Ok(Err(Stopped::Memory));
        }
        parts.iter().for_each(|part| all.extend_from_slice(part));
        Ok(Ok(all))
    }

    /// Calls `visit` for each step from these states that stays within one component and leads to a state of the table. Passes
    /// the index of the source state, and the reference and words of the target.
    pub fn steps(
        &self,
        references: &[Reference],
        workspace: &mut Workspace,
        mut visit: impl FnMut(usize, Reference, &[u32]),
    ) -> Result<()> {
        let width = self.source.width();
        let Workspace { scratch, expansion, inner, parents } = workspace;
        let states = self.table.get_many(references)?;
        expansion.clear();
        self.source.expand_those_without_fault(&states, scratch, expansion);
        inner.clear();
        parents.clear();
        for (successor, parent) in expansion.successors.chunks_exact(width).zip(&expansion.parents) {
            let component = self.automaton.component(successor);
            if component != 0 && component == self.automaton.component(&states[*parent as usize * width..][..width]) {
                inner.extend_from_slice(successor);
                parents.push(*parent);
            }
        }
        let places = self.table.locate_many(inner)?;
        for ((place, parent), words) in places.into_iter().zip(&*parents).zip(inner.chunks_exact(width)) {
            if let Some(place) = place {
                visit(*parent as usize, place, words);
            }
        }
        Ok(())
    }
}

impl Residue {
    fn ended(mut self, stopped: Stopped) -> Self {
        self.end = Some(match stopped {
            Stopped::By(stop) => End::Stopped(stop),
            Stopped::Memory => End::Memory,
        });
        self
    }
}

/// Reusable memory of a thread.
#[derive(Default)]
pub struct Workspace {
    scratch: Scratch,
    expansion: Expansion,
    inner: Vec<u32>,
    parents: Vec<u32>,
}

/// The states of a shortest path to a state that is marked as on a cycle, and the reference of that state. `choose` gets all such
/// states of least depth, from the least to the greatest, and returns one of them.
pub fn path_to_marked<S: Storage, X: Successors>(
    table: &VectorTable<S>,
    source: &X,
    limits: Limits,
    initial: &[u32],
    residue: &Residue,
    choose: impl FnOnce(&[Reference]) -> Result<Reference>,
) -> Result<(Vec<Vec<u32>>, Reference)> {
    let width = source.width();
    let first = table.locate_many(initial)?[0].context("the initial state is stored")?;
    residue.visit(first);
    let mut levels = vec![vec![first]];
    let mut kept = 0;
    let entry = loop {
        let level = levels.last().expect("it begins with one");
        let entries: Vec<Reference> = level.iter().filter(|of| residue.is_on_cycle(**of)).copied().collect();
        if !entries.is_empty() {
            let words = table.get_many(&entries)?;
            let mut entries: Vec<(&[u32], Reference)> = words.chunks_exact(width).zip(entries).collect();
            entries.sort_unstable_by_key(|(state, _)| *state);
            break choose(&entries.into_iter().map(|(_, entry)| entry).collect::<Vec<_>>())?;
        }
        kept += (level.len() * size_of::<Reference>()) as u64;
        ensure!(table.bytes() + 2 * kept <= limits.bytes, "memory ran out during the search for the path");
        let piece = |(scratch, expansion): &mut (Scratch, Expansion), references: &[Reference]| -> Result<Vec<Reference>> {
            if let Some(stop) = (limits.stop)() {
                return Err(stop.error("during the search for the path").into());
            }
            expansion.clear();
            source.expand_those_without_fault(&table.get_many(references)?, scratch, expansion);
            let places = table.locate_many(&expansion.successors)?;
            Ok(places.into_iter().flatten().filter(|place| residue.visit(*place)).collect())
        };
        let parts: Result<Vec<Vec<Reference>>> = level.par_chunks(large_piece(table)).map_init(Default::default, piece).collect();
        let next = parts?.concat();
        ensure!(!next.is_empty(), "the states on its loop are not reached again: please report this as a bug");
        levels.push(next);
    };
    levels.pop();
    let mut states: Vec<Vec<u32>> = table.get_many(&[entry])?.chunks_exact(width).map(<[u32]>::to_vec).collect();
    for level in levels.iter().rev() {
        let before = predecessor(table, source, level, &states[states.len() - 1], limits)?;
        states.push(before.context("a state has no predecessor in the level before its own: please report this as a bug")?);
    }
    states.reverse();
    Ok((states, entry))
}
