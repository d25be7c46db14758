//! The interface of every search: limits, counts, endings and violations.

use anyhow::Result;
use warpset::{MemoryLimit, Reference, Storage, VectorTable};
use warpset_model::checks::Violation;
use warpset_support::stopping::{self, Stop};

/// Called between rounds with the counts so far. The exploration ends if the observer returns false.
pub type Observer<'a> = dyn Fn(&Counts) -> bool + Sync + 'a;

/// Limits that end a search before all states are found.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Number of states at which no new round begins.
    pub states: u64,
    /// Level whose states are no longer expanded; the initial state has level 0.
    pub levels: u64,
    /// Limit of the bytes of the table and of the lists of states. While a table grows, both the old and the new table count.
    pub bytes: u64,
    /// Whether no other search uses these bytes. The table then takes them early, so that they hold states in the end.
    pub is_reserved: bool,
    /// Whether the exploration continues after violations. A fault ends it nevertheless.
    pub keep_going: bool,
    /// Called several times a second. If it returns a reason, the search stops at once.
    pub stop: fn() -> Option<Stop>,
}

/// Bytes that a search uses in addition to its table.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lists {
    /// Bytes of the lists of waiting states.
    pub waiting: u64,
    /// Bytes of lists that have an entry for every state.
    pub kept: u64,
    /// Whether waiting states are marked in the table if there is no memory to list them.
    pub may_be_marked: bool,
}

impl Lists {
    /// Lists that take `bytes` bytes now and grow with the number of states.
    pub fn of(bytes: u64) -> Self {
        Self { waiting: bytes, ..Self::default() }
    }
}

/// Minimum number of states of a round when memory is too short for more. A round of fewer states than a thread takes at a time
/// has work for one thread only.
pub const FEWEST: usize = 64;

/// Bytes of the marks of waiting states: two bits for each slot.
pub fn bytes_of_marks(slots: u64) -> u64 {
    2 * 8 * slots.div_ceil(64)
}

/// Bytes of a table and its lists, as a multiple of the table's bytes.
///
/// Lists get longer as the table fills. The estimate assumes as many bytes of lists for each state as now, because levels get
/// narrower in relation to all states. If waiting states may be marked, the marks are an upper limit for their lists. A table of
/// keys gets narrower slots as it grows, so its marks get larger in relation to it. `last`: numbers of slots and bytes of the
/// table when it has grown.
fn with_lists<S: Storage>(table: &VectorTable<S>, lists: Lists, last: [u64; 2]) -> Result<f64> {
    let now = [table.slots(), table.bytes()];
    let used = now[1] as f64 * (table.len()? as f64 / now[0] as f64).min(1.0);
    let a_byte = |bytes: u64| if used > 0.0 { bytes as f64 / used } else { 0.0 };
    let share_of_marks = |[slots, bytes]: [u64; 2]| bytes_of_marks(slots) as f64 / bytes.max(1) as f64;
    let of_marks = share_of_marks(now).max(share_of_marks(last));
    let waiting = if lists.may_be_marked { a_byte(lists.waiting).min(of_marks) } else { a_byte(lists.waiting) };
    Ok(1.0 + waiting + a_byte(lists.kept))
}

/// Bytes that a search of `states` states needs, with as many bytes of lists for each state as now. `None` if no table can hold
/// that many states.
pub fn memory_for<S: Storage>(table: &VectorTable<S>, lists: Lists, states: u64) -> Result<Option<u64>> {
    let Some(of_table) = table.memory_for(states)? else { return Ok(None) };
    let with_lists = with_lists(table, lists, [slots_for(states), of_table])?;
    Ok(Some((of_table as f64 * with_lists) as u64))
}

/// Number of slots of a table that is certain to hold this number of vectors.
fn slots_for(vectors: u64) -> u64 {
    (vectors as f64 / 0.95) as u64
}

impl Limits {
    /// No limits: explores all states, whatever violation is found.
    pub const NONE: Self =
        Self { states: u64::MAX, levels: u64::MAX, bytes: u64::MAX, is_reserved: false, keep_going: true, stop: || None };

    /// Limit of the memory for a growing table: the old and the new table together, after subtracting the lists of states.
    pub fn of_table<S: Storage>(&self, table: &VectorTable<S>, lists: Lists) -> Result<MemoryLimit> {
        let taken = table.bytes();
        // Only slots of keys get narrower. `vectors_within` counts the smaller table, up to a sixteenth of the limit, within it.
        // Here that table is not counted, so the larger one may have 16/15 of these vectors.
        let slots = match table.spec().key_and_slot_bits() {
            Some(_) => slots_for(table.vectors_within(MemoryLimit::Reserved(self.bytes))?.saturating_mul(16) / 15),
            None => 0,
        };
        // Beside the marks a round lists states, in vectors that double.
        let of_state = 4 * table.width() as u64 + size_of::<Reference>() as u64;
        let of_round = if lists.may_be_marked { 2 * FEWEST as u64 * of_state } else { 0 };
        let most = self.bytes.saturating_sub(of_round);
        let last = (most as f64 / with_lists(table, lists, [slots, self.bytes])?) as u64;
        // While a table grows, the old table, the new table and the lists all exist. The rows of an indexed table are not copied.
        let last = if table.spec().is_indexed() { last } else { last.saturating_add(taken) };
        let bytes = last.min(self.bytes.saturating_sub(lists.waiting + lists.kept));
        Ok(if self.is_reserved { MemoryLimit::Reserved(bytes) } else { MemoryLimit::Shared(bytes) })
    }

    /// Returns the end of a search that has found this violation, if it ends: a fault always ends it, any other violation unless
    /// `keep_going`. The search finishes the level, in which it may find a lesser state. This end takes precedence over every
    /// other one; such a search cannot be resumed.
    pub fn end_by(&self, found: Option<&Found>) -> Option<End> {
        found.is_some_and(|found| found.is_fault() || !self.keep_going).then_some(End::Violation)
    }

    /// Returns the end of a search between two rounds, for all reasons except violations. The first rule that applies gives the
    /// end.
    pub fn end_of(&self, search: &Standing) -> Option<End> {
        let Standing { is_out_of_memory, next_level, states, bytes, is_refused, stop } = *search;
        match next_level {
            _ if is_out_of_memory => Some(End::Memory),
            Some((_, 0)) => Some(End::Complete),
            Some((levels, _)) if levels >= self.levels => Some(End::Levels),
            _ if states.is_some_and(|states| states >= self.states) => Some(End::States),
            _ if !self.hold(bytes) => Some(End::Memory),
            _ if is_refused => Some(End::Observer),
            _ => stop.map(End::Stopped),
        }
    }

    /// Whether a table and lists with this many bytes together are within the limit.
    pub fn hold(&self, bytes: u64) -> bool {
        bytes <= self.bytes
    }

    /// Limits for evaluating what an exploration has found. A limit of time, or a signal, leaves a grace period for the
    /// evaluation.
    pub fn of_evaluation(self) -> Self {
        Self { stop: stopping::grace_ended, ..self }
    }

    /// Limits for exploring the first `levels` levels, whatever violations they contain.
    pub fn of_levels(self, levels: u64) -> Self {
        Self { states: u64::MAX, levels, keep_going: true, ..self }
    }
}

/// Facts about a search between two rounds on which its end depends. The default gives no reason to end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standing {
    /// Whether states that the search has found do not fit into memory.
    pub is_out_of_memory: bool,
    /// If a level is to begin: the number of levels that have begun before, and the number of states that are not expanded.
    pub next_level: Option<(u64, u64)>,
    /// Number of states found so far, if a round is to begin.
    pub states: Option<u64>,
    /// Bytes of the table and of all lists.
    pub bytes: u64,
    /// Whether the observer has returned false.
    pub is_refused: bool,
    /// Reason that [`Limits::stop`] gave, if states are waiting to be expanded.
    pub stop: Option<Stop>,
}

/// Counts of an exploration so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of distinct states.
    pub states: u64,
    /// Number of steps from the states expanded so far, with multiplicity.
    pub transitions: u64,
    /// Number of states without a successor.
    pub deadlocks: u64,
    /// Number of levels that have begun.
    pub levels: u64,
    /// Number of states of the widest level that has begun.
    pub widest_level: u64,
    /// Number of states of the current level that are not yet expanded.
    pub waiting: u64,
    /// Number of stores that wrapped their value.
    pub overflows: u64,
}

/// The reason why an exploration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// All states were found and expanded.
    Complete,
    /// A violation was found.
    Violation,
    /// [`Limits::states`] was reached.
    States,
    /// [`Limits::levels`] was reached.
    Levels,
    /// [`Limits::bytes`] was reached, or the device has no more memory.
    Memory,
    /// [`Limits::stop`] gave a reason.
    Stopped(Stop),
    /// The observer returned false.
    Observer,
}

#[derive(Clone, Debug)]
pub struct Exploration {
    pub counts: Counts,
    pub end: End,
    /// The first fault, or else the first violation: that of the least state of its level, unless a limit ended the level.
    pub found: Option<Found>,
    /// Largest size of the lists of states in bytes. Excludes the table.
    pub list_bytes: u64,
    /// Number of states of each level that has begun, if the engine keeps them.
    pub level_sizes: LevelSizes,
    /// Violating states, by check.
    pub violating: Violating,
}

/// The violating states of a check among the states that were expanded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub states: u64,
    /// Least number of steps from the initial state to such a state; `None` if there is none.
    pub level: Option<u64>,
}

impl Tally {
    /// Adds states of a level.
    pub fn add(&mut self, level: u64, states: u64) {
        if states > 0 {
            self.states += states;
            self.level = self.level.or(Some(level));
        }
    }
}

/// The violating states of all checks. A state that violates several checks counts for each of them. A state with a fault counts
/// for none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violating {
    /// By condition; conditions behind the last one are violated nowhere.
    conditions: Vec<Tally>,
    /// Deadlocks, also if nothing asks for them.
    pub deadlocks: Tally,
}

impl Violating {
    pub fn new(conditions: Vec<Tally>, deadlocks: Tally) -> Self {
        Self { conditions, deadlocks }
    }

    /// Adds states of a level: by condition, and deadlocks.
    pub fn add(&mut self, level: u64, conditions: &[u64], deadlocks: u64) {
        if self.conditions.len() < conditions.len() {
            self.conditions.resize(conditions.len(), Tally::default());
        }
        self.conditions.iter_mut().zip(conditions).for_each(|(tally, states)| tally.add(level, *states));
        self.deadlocks.add(level, deadlocks);
    }

    /// The states that violate a condition.
    pub fn of_condition(&self, at: usize) -> Tally {
        self.conditions.get(at).copied().unwrap_or_default()
    }
}

/// Adds numbers of violating states by condition. An empty list means that nothing violates a condition.
pub fn add_violating(sums: &mut Vec<u64>, more: &[u64]) {
    if sums.len() < more.len() {
        sums.resize(more.len(), 0);
    }
    sums.iter_mut().zip(more).for_each(|(sum, states)| *sum += states);
}

/// Most levels whose sizes are kept: a chain of states has as many levels as states.
const MOST_LEVELS: usize = 1 << 16;

/// The numbers of states of levels, from the first one on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LevelSizes(Vec<u64>);

impl LevelSizes {
    /// Adds the size of a level that begins.
    pub fn add(&mut self, states: u64) {
        if self.0.len() < MOST_LEVELS {
            self.0.push(states);
        }
    }

    /// The sizes of all `levels` levels. `None` if some are unknown: those before a search was resumed, those after the most that
    /// are kept, and all of an engine that does not keep them.
    pub fn of_all(&self, levels: u64) -> Option<&[u64]> {
        (self.0.len() as u64 == levels).then_some(&*self.0)
    }
}

impl Exploration {
    /// An exploration that ended because there was no memory for the initial state.
    pub fn of_nothing() -> Self {
        let (level_sizes, violating) = (LevelSizes::default(), Violating::default());
        Self { counts: Counts::default(), end: End::Memory, found: None, list_bytes: 0, level_sizes, violating }
    }
}

/// A violation and its state.
#[derive(Clone, Debug)]
pub struct Found {
    pub violation: Violation,
    pub state: Vec<u32>,
    /// Number of steps from the initial state to the state.
    pub level: u64,
}

impl Found {
    /// Whether this violation replaces another one in the report. A fault replaces any other violation, a lower level a higher
    /// one, and of a level's states the least one, word by word, all others. So neither threads nor tables decide.
    pub fn replaces(&self, other: Option<&Found>) -> bool {
        let rank = |found: &Found| (!found.is_fault(), found.level);
        other.is_none_or(|other| rank(self).cmp(&rank(other)).then_with(|| self.state.cmp(&other.state)).is_lt())
    }

    /// Whether the state, or a condition on it, cannot be evaluated.
    pub fn is_fault(&self) -> bool {
        matches!(self.violation, Violation::Fault(_))
    }
}

/// A search of all states that a model can reach, with its table.
pub trait Explorer {
    /// Explores from the initial state, into an empty table.
    fn explore(&mut self, limits: Limits, observer: &Observer) -> Result<Exploration>;

    /// Returns the states of a shortest path from the initial state to the violation that the last exploration found. Clears the
    /// table.
    fn path(&mut self, found: &Found, limits: Limits) -> Result<Vec<Vec<u32>>>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use warpset_model::interpreter::{Fault, Wrong};
    use warpset_model::ir::Span;

    #[test]
    fn sizes_of_levels_are_told_only_if_all_are_known() {
        let mut sizes = LevelSizes::default();
        assert_eq!((sizes.of_all(0), sizes.of_all(1)), (Some(&[][..]), None));
        (0..MOST_LEVELS as u64).for_each(|size| sizes.add(size));
        assert_eq!(sizes.of_all(MOST_LEVELS as u64).map(|all| all[7]), Some(7));
        sizes.add(1);
        assert_eq!((sizes.0.len(), sizes.of_all(MOST_LEVELS as u64 + 1)), (MOST_LEVELS, None));
    }

    /// After the reason for one end is removed, the next rule gives the end.
    #[test]
    fn the_first_rule_that_applies_ends_a_search() {
        let limits = Limits { states: 100, levels: 5, bytes: 1000, ..Limits::NONE };
        let stop = Stop::Time(Duration::from_secs(1));
        let mut search = Standing {
            is_out_of_memory: true,
            next_level: Some((5, 0)),
            states: Some(100),
            bytes: 1001,
            is_refused: true,
            stop: Some(stop),
        };
        let mut next = |end, change: fn(&mut Standing)| {
            assert_eq!(limits.end_of(&search), end, "{search:?}");
            change(&mut search);
        };
        next(Some(End::Memory), |search| search.is_out_of_memory = false);
        next(Some(End::Complete), |search| search.next_level = Some((5, 1)));
        next(Some(End::Levels), |search| search.next_level = Some((4, 1)));
        next(Some(End::States), |search| search.states = Some(99));
        next(Some(End::Memory), |search| search.bytes = 1000);
        next(Some(End::Observer), |search| search.is_refused = false);
        next(Some(End::Stopped(stop)), |search| search.stop = None);
        next(None, |_| ());
    }

    #[test]
    fn faults_replace_violations_and_the_least_state_of_the_lowest_level_the_others() {
        let fault = || Violation::Fault(Box::new(Fault { what: Wrong::DivisionByZero, span: Span::default(), transition: None }));
        let found = |violation, level, state: [u32; 2]| Found { violation, state: state.to_vec(), level };
        // From the first to report to the last.
        let all = [
            found(fault(), 3, [0, 9]),
            found(fault(), 3, [1, 0]),
            found(fault(), 4, [0, 0]),
            found(Violation::Deadlock, 2, [7, 7]),
            found(Violation::Condition(0), 3, [0, 1]),
            found(Violation::Deadlock, 3, [0, 2]),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(one.replaces(None));
            assert!((0..all.len()).all(|other| one.replaces(Some(&all[other])) == (at < other)), "{one:?}");
        }
    }

    #[test]
    fn violations_end_a_search_unless_it_keeps_going_and_faults_always_do() {
        let found = |violation| Found { violation, state: Vec::new(), level: 0 };
        let deadlock = found(Violation::Deadlock);
        let what = Wrong::DivisionByZero;
        let fault = found(Violation::Fault(Box::new(Fault { what, span: Span::default(), transition: None })));
        for keep_going in [true, false] {
            let limits = Limits { keep_going, ..Limits::NONE };
            let end = (!keep_going).then_some(End::Violation);
            assert_eq!((limits.end_by(None), limits.end_by(Some(&deadlock))), (None, end));
            assert_eq!(limits.end_by(Some(&fault)), Some(End::Violation));
        }
    }

    /// A compact table whose slots get narrower when it takes the memory has room for twice the marks.
    #[cfg(feature = "cpu")]
    #[test]
    fn marks_fit_beside_narrower_slots() {
        use warpset::{Device, Root};
        let table = VectorTable::<Root>::builder(2).key_bits(47).capacity(1 << 10).build(&Device::cpu_with_threads(1)).unwrap();
        let vectors: Vec<u32> = (0..500).flat_map(|number| [number, 0]).collect();
        table.find_or_put_many(&vectors).unwrap().complete(&table).unwrap();
        assert!(table.bytes() >= 8 * table.slots(), "{table:?}");
        let lists = Lists { waiting: table.bytes(), may_be_marked: true, ..Lists::default() };
        let limits = Limits { bytes: 1 << 30, is_reserved: true, ..Limits::NONE };
        let MemoryLimit::Reserved(bytes) = limits.of_table(&table, lists).unwrap() else { panic!("the memory is reserved") };
        let larger = bytes - table.bytes();
        // The larger table has slots of four bytes. Marks are rounded up to whole words.
        let marks = bytes_of_marks(larger / 4 - 64);
        assert!(larger + marks <= limits.bytes && larger > limits.bytes / 16 * 15, "{larger} and {marks} bytes");
    }
}
