//! The model checker's kernels (examples/explore/src/gpu): a search level by level, and passes for accepting cycles, for random
//! graphs and automata, against plain loops.

use crate::explorer::{Program, Wrong};
use crate::machine::{Ending, Grid, Kernel, Rules};
use crate::memory::{Memory, Use};
use crate::stress::next_prime;
use crate::table::{Config, Table, View, argument, bucket, indexed, wrong};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::{HashMap, HashSet, VecDeque};

/// See cpp/search.inl.
#[repr(C)]
struct Kernels {
    argument_bytes: u64,
    threads: u64,
    shared_bytes: u64,
    moves: u64,
    begin: Kernel,
    search: Kernel,
    begin_passes: Kernel,
    forget: Kernel,
    seed_first: Kernel,
    seed_second: Kernel,
    seeded: Kernel,
    sweep_first: Kernel,
    sweep_second: Kernel,
    tally: Kernel,
    list: Kernel,
    listed_members: Kernel,
    list_steps: Kernel,
    read: Kernel,
    find: Kernel,
    begin_way: Kernel,
    go_back: Kernel,
}

// SAFETY: constants: numbers and function pointers.
unsafe impl Sync for Kernels {}

unsafe extern "C" {
    static warpset_simt_search_system: Kernels;
    static warpset_simt_search_product: Kernels;
    static warpset_simt_search_rank: Kernels;
    static warpset_simt_search_rows: Kernels;
}

/// See cpp/search.inl.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Argument {
    view: View,
    tables: *const u32,
    initial: *const u32,
    order: *mut u64,
    starts: *mut u64,
    counts: *mut u64,
    search: *mut u64,
    limits: Limits,
    slots: u64,
    flags: *mut u32,
    queue: *mut u64,
    locations: *const u32,
    sweep: *mut u64,
    most: u64,
    count: u64,
    offers: *mut u32,
    listed: *const u64,
    runs: *mut u64,
    trail: Trail,
    kinds: *mut u32,
    labels: *const u32,
    marks: *const u32,
    first: *mut u64,
    members: *mut u32,
}

/// `explore::Trail`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Trail {
    numbers: *mut u32,
    steps: *mut u64,
    room: u64,
    starts: *const u64,
    path: *mut u32,
    places: *mut u64,
}

/// `explore::Limits`: none.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Limits {
    states: u64,
    levels: u64,
    nanoseconds: u64,
    deadlocks: u32,
    keep_going: u32,
}

const NO_LIMITS: Limits = Limits { states: u64::MAX, levels: u64::MAX, nanoseconds: u64::MAX, deadlocks: 0, keep_going: 0 };

// Words of `explore::Search` and of `explore::Sweep`.
const SEARCH_WORDS: usize = 28;
const NEXT: usize = 2;
const TILE: usize = 3;
const ROOM: usize = 18;
const OFFERED: usize = 20;
const TRANSITIONS: usize = 8;
const DEADLOCKS: usize = 9;
const FOUND: usize = 11;
const FAULTY: usize = 13;
/// With levels and the widest.
const COUNTED: [usize; 6] = [4, 5, TRANSITIONS, DEADLOCKS, FOUND, FAULTY];
const SWEEP_WORDS: usize = 11;
const APPENDED: usize = 3;
const LISTED: usize = 8;
/// Accepting, inside, at most.
const TALLIED: [usize; 3] = [5, 6, 7];

const IN_RESIDUE: u32 = 1 << 15;
const IS_REACHED: u32 = 1 << 14;
const IS_ACCEPTING: u32 = 1 << 13;
const COUNT: u32 = IS_ACCEPTING - 1;

const CHOICES: usize = 4;
const LOCATIONS: usize = 3;
/// Choices, or to stay, with each move.
const MOST_STEPS: usize = (CHOICES + 1) * LOCATIONS;
const NO_NODE: u32 = u32::MAX;
/// More rounds of passes are not made.
const ROUNDS: usize = 3;

type State = (u32, u32);

/// A random graph, and a random automaton or none.
struct Case {
    edges: Vec<[u32; CHOICES]>,
    /// By location, a bit for each move: the move i leads i locations on.
    moves: Option<[u32; LOCATIONS]>,
    /// By location: twice its component, and whether it is accepting.
    about: [u32; LOCATIONS],
    /// At which a count of predecessors stays.
    most: u32,
}

/// What a plain search finds.
struct Found {
    states: Vec<State>,
    numbers: HashMap<State, usize>,
    /// By state, with multiplicity.
    successors: Vec<Vec<usize>>,
    /// The number of the first state of each level.
    starts: Vec<usize>,
    deadlocks: u64,
}

impl Case {
    fn random(rng: &mut Pcg64Mcg, what: What) -> Self {
        // Of a rank now and then so many that there is no room for all that comes of them; in an indexed table so many that
        // blocks find the same states at the same time, and leave spare rows.
        let many = matches!(what, What::Level | What::Rows) && rng.random_bool(0.5);
        let nodes = rng.random_range(1..=if many { 300u32 } else { 40 });
        // From trees, in which all is eliminated, to where every step leads to somewhere.
        let present = if !many && rng.random_bool(0.5) { rng.random_range(0.15..0.45) } else { rng.random_range(0.45..1.0) };
        let mut edge = |from: u32| match rng.random_bool(present) {
            // Most of them lead near and on, so that there are levels, and chains without a cycle.
            true if !many && rng.random_bool(0.8) => (from + rng.random_range(1..5)).min(nodes - 1),
            true => rng.random_range(0..nodes),
            false => NO_NODE,
        };
        let edges = (0..nodes).map(|from| std::array::from_fn(|_| edge(from))).collect();
        let mut moves = || if many { (1 << LOCATIONS) - 1 } else { rng.random_range(0..1 << LOCATIONS) };
        let moves = (!what.is_a_system()).then(|| std::array::from_fn(|_| moves()));
        // Mostly one component.
        let about = std::array::from_fn(|_| *[0, 2, 2, 3, 3, 5].get(rng.random_range(0..6usize)).expect("there are six"));
        let most = *[1, 2, 3, COUNT].get(rng.random_range(0..4usize)).expect("there are four");
        Self { edges, moves, about, most }
    }

    fn tables(&self) -> Vec<u32> {
        let nodes = self.edges.len() as u32;
        std::iter::once(nodes).chain(self.edges.iter().copied().flatten()).chain(self.moves.into_iter().flatten()).collect()
    }

    fn successors(&self, (node, location): State) -> (bool, Vec<State>) {
        let steps: Vec<u32> = self.edges[node as usize].into_iter().filter(|target| *target != NO_NODE).collect();
        let is_deadlock = steps.is_empty();
        let Some(moves) = self.moves else { return (is_deadlock, steps.into_iter().map(|to| (to, 0)).collect()) };
        // In a deadlock the automaton moves alone.
        let steps = if is_deadlock { vec![node] } else { steps };
        let moved: Vec<u32> = (0..LOCATIONS as u32).filter(|by| moves[location as usize] >> by & 1 == 1).collect();
        let to = |by: &u32| (location + by) % LOCATIONS as u32;
        (is_deadlock, steps.iter().flat_map(|step| moved.iter().map(|by| (*step, to(by)))).collect())
    }

    fn explore(&self) -> Found {
        let mut found = Found {
            states: vec![(0, 0)],
            numbers: HashMap::from([((0, 0), 0)]),
            successors: Vec::new(),
            starts: Vec::new(),
            deadlocks: 0,
        };
        while found.successors.len() < found.states.len() {
            found.starts.push(found.successors.len());
            for number in found.successors.len()..found.states.len() {
                let (is_deadlock, successors) = self.successors(found.states[number]);
                found.deadlocks += u64::from(is_deadlock);
                let mut numbers = Vec::new();
                for state in successors {
                    let next = found.states.len();
                    let number = *found.numbers.entry(state).or_insert(next);
                    if number == next {
                        found.states.push(state);
                    }
                    numbers.push(number);
                }
                found.successors.push(numbers);
            }
        }
        found
    }

    /// The flags of all states after so many rounds.
    fn passes(&self, found: &Found, rounds: usize) -> Vec<u32> {
        let about = |state: usize| self.about[found.states[state].1 as usize];
        let mut flags: Vec<u32> = (0..found.states.len())
            .map(|state| match about(state) {
                0 | 1 => 0,
                about => IN_RESIDUE | if about % 2 == 1 { IS_ACCEPTING } else { 0 },
            })
            .collect();
        let steps = |from: usize| found.successors[from].iter().copied().filter(move |to| about(*to) / 2 == about(from) / 2);
        for _ in 0..rounds {
            let mut waiting = VecDeque::new();
            for (state, flags) in flags.iter_mut().enumerate().filter(|(_, flags)| **flags & IN_RESIDUE != 0) {
                *flags &= IN_RESIDUE | IS_ACCEPTING;
                if *flags & IS_ACCEPTING != 0 {
                    *flags |= IS_REACHED;
                    waiting.push_back(state);
                }
            }
            while let Some(from) = waiting.pop_front() {
                for to in steps(from).filter(|to| flags[*to] & IN_RESIDUE != 0).collect::<Vec<_>>() {
                    if flags[to] & IS_REACHED == 0 {
                        waiting.push_back(to);
                    }
                    flags[to] = (flags[to] | IS_REACHED) + u32::from(flags[to] & COUNT < self.most);
                }
            }
            for (state, flags) in flags.iter_mut().enumerate() {
                if *flags & IS_REACHED == 0 {
                    *flags = 0;
                } else if *flags & COUNT == 0 {
                    *flags = 0;
                    waiting.push_back(state);
                }
            }
            while let Some(from) = waiting.pop_front() {
                for to in steps(from) {
                    match flags[to] & COUNT {
                        0 => {}
                        count if count >= self.most => {}
                        1 => {
                            flags[to] = 0;
                            waiting.push_back(to);
                        }
                        _ => flags[to] -= 1,
                    }
                }
            }
        }
        flags
    }
}

/// What is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A system by itself.
    System,
    /// The same in an indexed table, whose rows are the order, with parents beside them.
    Rows,
    /// A product with an automaton, and then accepting cycles of it.
    Product,
    /// A level of a product, by a rank of several: successors become offers.
    Level,
}

impl What {
    fn is_a_system(self) -> bool {
        matches!(self, Self::System | Self::Rows)
    }
}

/// Random cases.
pub struct Search {
    what: What,
    kernels: &'static Kernels,
    case: Option<(Case, Found, Table, Box<Argument>, usize)>,
}

impl Search {
    pub fn new(what: What) -> Self {
        // SAFETY: constants that C++ defines, and nobody writes.
        let kernels = unsafe {
            match what {
                What::System => &warpset_simt_search_system,
                What::Rows => &warpset_simt_search_rows,
                What::Product => &warpset_simt_search_product,
                What::Level => &warpset_simt_search_rank,
            }
        };
        assert_eq!(kernels.argument_bytes as usize, size_of::<Argument>());
        assert_eq!(kernels.moves as usize, if what.is_a_system() { 0 } else { LOCATIONS });
        Self { what, kernels, case: None }
    }

    /// What a rank has written of a level's states: of as many as it had room for.
    fn judge_level(&self, memory: &Memory) -> Result<(), Wrong> {
        let (case, found, _, of, _) = self.case.as_ref().expect("a case was set up");
        let no = |rule, detail: String| Err(wrong(rule, detail, Vec::new()));
        let search = memory.at(of.search.cast_const(), SEARCH_WORDS);
        let (offered, room) = (search[OFFERED], search[ROOM]);
        let expanded = search[NEXT].min(of.count) as usize;
        if expanded == 0 || offered > room {
            return no("room", format!("{expanded} of {} states, {offered} rows of {room}", of.count));
        }
        let states = &found.states[..expanded];
        let (mut expected, mut transitions, mut deadlocks) = (HashSet::new(), 0, 0);
        for state in states {
            let (is_deadlock, successors) = case.successors(*state);
            transitions += successors.len() as u64;
            deadlocks += u64::from(is_deadlock);
            expected.extend(successors.into_iter().filter(|successor| successor != state));
        }
        let counted = [TRANSITIONS, DEADLOCKS, FOUND, FAULTY].map(|at| search[at]);
        if counted != [transitions, deadlocks, u64::MAX, u64::MAX] {
            return no("counts", format!("transitions, deadlocks, found, faulty: {counted:?}, not {transitions}, {deadlocks}"));
        }
        let rows = memory.at(of.offers.cast_const(), 2 * offered as usize);
        let offers: HashSet<State> = rows.chunks_exact(2).map(|words| (words[0], words[1])).collect();
        if offers != expected {
            return no("offers", format!("{offers:?}, not {expected:?}"));
        }
        Ok(())
    }
}

impl Search {
    /// The members of the residue and their steps, the first of those that are marked, and a way back. `numbers` are by slot,
    /// flags by the number of a state.
    fn judge_run(&self, memory: &Memory, numbers: &[usize], flags: &[u32], order: &[u64]) -> Result<(), Wrong> {
        let (case, found, table, of, _) = self.case.as_ref().expect("a case was set up");
        let no = |rule, detail: String| Err(wrong(rule, detail, Vec::new()));
        let runs = memory.at(of.runs.cast_const(), 2 * SWEEP_WORDS);
        let is_inside = |state: usize| flags[state] & IN_RESIDUE != 0;
        let inside: HashSet<usize> = (0..found.states.len()).filter(|state| is_inside(*state)).collect();
        let count = runs[APPENDED] as usize;
        // The states by the numbers that they have as members.
        let members: Vec<usize> =
            memory.at(of.queue.cast_const(), count).iter().map(|reference| numbers[*reference as usize]).collect();
        if count != inside.len() || members.iter().copied().collect::<HashSet<_>>() != inside {
            return no("members", format!("{members:?}, not {inside:?}"));
        }
        let kinds = memory.at(of.kinds.cast_const(), count);
        let words = memory.at(of.members.cast_const(), 2 * count);
        let of_slots = memory.at(of.trail.numbers.cast_const(), table.slots as usize);
        for (number, state) in members.iter().enumerate() {
            let slot = numbers.iter().position(|other| other == state).expect("it is stored");
            let told = (of_slots[slot], kinds[number], (words[2 * number], words[2 * number + 1]));
            let expected = (number as u32, u32::from(flags[*state] & IS_ACCEPTING != 0), found.states[*state]);
            if told != expected {
                return no("members", format!("number, kind and words of {state}: {told:?}, not {expected:?}"));
            }
        }
        let about = |state: usize| case.about[found.states[state].1 as usize] / 2;
        let number = |state: usize| members.iter().position(|other| *other == state).expect("it is a member") as u64;
        let steps = members.iter().flat_map(|from| found.successors[*from].iter().map(|to| (*from, *to)));
        let mut expected: Vec<u64> = steps
            .filter(|(from, to)| is_inside(*to) && about(*from) == about(*to))
            .map(|(from, to)| number(to) << 32 | number(from))
            .collect();
        let (listed, room) = (runs[LISTED] as usize, of.trail.room as usize);
        let mut steps = memory.at(of.trail.steps.cast_const(), listed.min(room)).to_vec();
        steps.sort_unstable();
        expected.sort_unstable();
        let mut left = expected.iter();
        let are_some = steps.iter().all(|step| left.any(|other| other == step));
        if listed != expected.len() || !are_some {
            return no("steps", format!("{listed} in {room}: {steps:x?}, not {expected:x?}"));
        }
        let marks = memory.at(of.marks, found.states.len());
        let is_marked = |at: &usize| {
            let state = numbers[order[*at] as usize];
            is_inside(state) && marks[number(state) as usize] == 6
        };
        let first = (0..order.len()).find(is_marked).map_or(u64::MAX, |at| at as u64);
        if memory.at(of.first.cast_const(), 1)[0] != first {
            return no("first", format!("{:?}, not {first}", memory.at(of.first.cast_const(), 1)));
        }
        let last = found.starts.len() - 1;
        let path = memory.at(of.trail.path.cast_const(), 2 * (last + 1));
        let places = memory.at(of.trail.places.cast_const(), last);
        for level in 1..last {
            let state = |level: usize| found.numbers.get(&(path[2 * level], path[2 * level + 1])).copied();
            let (Some(from), Some(to)) = (state(level), state(level + 1)) else {
                return no("way", format!("no states in level {level} of {last}: {path:?}"));
            };
            let is_of_level = (found.starts[level]..found.starts[level + 1]).contains(&from);
            let is_there = places[level] != u64::MAX && numbers[places[level] as usize] == from;
            if !is_of_level || !is_there || !found.successors[from].contains(&to) {
                return no("way", format!("{from} to {to} in level {level} of {last}"));
            }
        }
        Ok(())
    }

    /// States in the rows of the table, level by level, each with a parent in the level before.
    fn judge_rows(&self, memory: &Memory) -> Result<(), Wrong> {
        let (_, found, table, of, _) = self.case.as_ref().expect("a case was set up");
        let no = |rule, detail: String| Err(wrong(rule, detail, Vec::new()));
        let count = found.states.len();
        let given = memory.at(table.view.indexed.rows.given.cast_const(), 1)[0].min(table.slots) as usize;
        let parents = memory.at(of.order.cast::<u32>().cast_const(), given);
        if !of.starts.is_null() && memory.at(of.starts.cast::<u8>().cast_const(), given).iter().any(|above| *above != 0) {
            return no("parents", "there are no bits above 32".into());
        }
        let number_at = |row: usize| {
            let words = table.slot(memory, row as u64).words;
            found.numbers.get(&(words[0], words[1])).copied()
        };
        let level_of = |number: usize| found.starts.partition_point(|first| *first <= number) - 1;
        let (mut seen, mut level) = (HashSet::new(), 0);
        for row in (0..given).filter(|row| parents[*row] != 0) {
            let Some(number) = number_at(row) else { return no("rows", format!("row {row} is no state")) };
            if !seen.insert(number) || level_of(number) < level {
                return no("rows", format!("row {row} is state {number} of level {}, behind level {level}", level_of(number)));
            }
            level = level_of(number);
            let parent = parents[row] as usize - 1;
            let of_parent = if parents.get(parent).is_some_and(|its| *its != 0) { number_at(parent) } else { None };
            let is_right = match of_parent {
                Some(of_parent) if number == 0 => of_parent == 0,
                Some(of_parent) => level_of(of_parent) + 1 == level && found.successors[of_parent].contains(&number),
                None => false,
            };
            if !is_right {
                return no("parents", format!("state {number} of level {level} is said to be of row {parent}: {of_parent:?}"));
            }
        }
        if seen.len() != count {
            return no("rows", format!("{} states, not {count}", seen.len()));
        }
        Ok(())
    }
}

impl Program for Search {
    fn name(&self) -> String {
        match self.what {
            What::System => "search-system".into(),
            What::Rows => "search-rows".into(),
            What::Product => "search-product".into(),
            What::Level => "search-level".into(),
        }
    }

    fn memory_bytes(&self) -> usize {
        1 << 20
    }

    fn rules(&self, rules: Rules, _: u64) -> Rules {
        Rules { step_limit: 300_000, ..rules }
    }

    fn set_up(&mut self, memory: &mut Memory, seed: u64) -> Vec<Vec<Grid>> {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let case = Case::random(&mut rng, self.what);
        let found = case.explore();
        let kernels = if self.what == What::Rows { indexed(2, 32) } else { bucket(2, 16, 32) };
        let slots = (found.states.len() as f64 * rng.random_range(1.5..2.5)) as u64 + 16;
        let buckets = next_prime(slots.div_ceil(kernels.slots_per_bucket()) as u32).into();
        let empty = [u32::MAX, u32::MAX - 1, u32::MAX - 2, u32::MAX - 3];
        // Of the rows each lane may lose one a level.
        let (threads, most_blocks) = (self.kernels.threads as usize, 2);
        let rows = (found.states.len() + most_blocks * threads * (found.starts.len() + 1)) as u64;
        let spare_cells = *[8, 64, 256].get(rng.random_range(0..3usize)).expect("there are three");
        let config = Config { rows, spare_cells, ..Config::of_buckets(buckets, u64::MAX, empty, rng.random()) };
        let table = Table::allocate(memory, kernels, config);
        table.clear(memory);
        let slots = table.slots as usize;
        let rounds = if self.what == What::Product { rng.random_range(1..=ROUNDS) } else { 0 };
        // Room for what a tile of a warp may want, or more; and the states of a level are any.
        let rows_of_tile = |states: usize| 4 * threads + MOST_STEPS * states;
        let room = rows_of_tile(rng.random_range(32..120));
        let mut search = [0u64; SEARCH_WORDS];
        (search[ROOM], search[TILE]) = (room as u64, if room >= rows_of_tile(threads) { threads as u64 } else { 32 });
        let level: Vec<u32> = found.states.iter().flat_map(|(node, location)| [*node, *location]).collect();
        // Sometimes too little.
        let steps: usize = found.successors.iter().map(Vec::len).sum();
        let room_for_steps = if rng.random_bool(0.7) { steps + 1 } else { 1 + steps / 3 };
        let labels: Vec<u32> = (0..found.states.len() as u32).collect();
        let marks: Vec<u32> = labels.iter().map(|_| 2 * rng.random_range(0..4)).collect();
        let of = Argument {
            view: table.view,
            tables: memory.allocate_with("tables", Use::Constant, &case.tables()),
            initial: memory.allocate_with("initial", Use::Constant, &level),
            order: memory.allocate_with("order", Use::Shared, &vec![0u64; slots]),
            starts: match self.what == What::Rows && rng.random_bool(0.5) {
                true => std::ptr::null_mut(),
                false => memory.allocate_with("starts", Use::Shared, &vec![0u64; slots]),
            },
            counts: memory.allocate_with("counts", Use::Shared, &[0u64; 5]),
            search: memory.allocate_with("search", Use::Shared, &search),
            limits: NO_LIMITS,
            slots: slots as u64,
            flags: memory.allocate_with("flags", Use::Shared, &vec![0u32; slots]),
            queue: memory.allocate("queue", Use::Shared, 8 * found.states.len()).cast(),
            locations: memory.allocate_with("locations", Use::Constant, &case.about),
            sweep: memory.allocate_with("sweep", Use::Shared, &[0u64; SWEEP_WORDS]),
            most: case.most.into(),
            count: rng.random_range(1..=found.states.len() as u64),
            offers: memory.allocate("offers", Use::Shared, 8 * room).cast(),
            listed: std::ptr::null(),
            runs: memory.allocate_with("runs", Use::Shared, &[0u64; 2 * SWEEP_WORDS]),
            trail: Trail {
                numbers: memory.allocate("numbers", Use::Shared, 4 * slots).cast(),
                steps: memory.allocate("steps", Use::Shared, 8 * room_for_steps).cast(),
                room: room_for_steps as u64,
                starts: std::ptr::null(),
                path: memory.allocate("path", Use::Shared, 8 * found.starts.len()).cast(),
                places: memory.allocate("places", Use::Shared, 8 * found.starts.len()).cast(),
            },
            kinds: memory.allocate("kinds", Use::Shared, 4 * found.states.len()).cast(),
            labels: memory.allocate_with("labels", Use::Constant, &labels),
            marks: memory.allocate_with("marks", Use::Constant, &marks),
            first: memory.allocate_with("first", Use::Shared, &[u64::MAX]),
            members: memory.allocate("members", Use::Shared, 8 * found.states.len()).cast(),
        };
        // Of all slots, or of those that are listed.
        let of = Argument {
            listed: if rng.random_bool(0.5) { of.order } else { std::ptr::null_mut() },
            trail: Trail { starts: of.starts, ..of.trail },
            ..of
        };
        let of = Box::new(of);
        let blocks = rng.random_range(1..=most_blocks);
        let launch = |kernel: Kernel, blocks, threads| {
            vec![Grid { blocks, threads, scratch_bytes: self.kernels.shared_bytes as usize, kernel, argument: argument(&*of) }]
        };
        let Kernels {
            begin,
            search,
            begin_passes,
            forget,
            seed_first,
            seed_second,
            seeded,
            sweep_first,
            sweep_second,
            tally,
            list,
            listed_members,
            list_steps,
            read,
            find,
            begin_way,
            go_back,
            ..
        } = *self.kernels;
        let mut launches = vec![launch(begin, 1, 1), launch(search, blocks, threads)];
        if rounds > 0 {
            launches.push(launch(begin_passes, blocks, threads));
        }
        for _ in 0..rounds {
            for (seed, sweep) in [(seed_first, sweep_first), (seed_second, sweep_second)] {
                launches.extend([
                    launch(forget, 1, 1),
                    launch(seed, blocks, threads),
                    launch(seeded, 1, 1),
                    launch(sweep, blocks, threads),
                ]);
            }
            launches.extend([launch(forget, 1, 1), launch(tally, blocks, threads)]);
        }
        if rounds > 0 {
            launches.extend([
                launch(list, blocks, threads),
                launch(listed_members, 1, 1),
                launch(list_steps, blocks, threads),
                launch(read, blocks, threads),
                launch(find, blocks, threads),
                launch(begin_way, 1, 1),
                launch(go_back, blocks, threads),
            ]);
        }
        self.case = Some((case, found, table, of, rounds));
        launches
    }

    fn judge(&mut self, memory: &Memory, _: Ending) -> Result<(), Wrong> {
        if self.what == What::Level {
            return self.judge_level(memory);
        }
        let (case, found, table, of, rounds) = self.case.as_ref().expect("a case was set up");
        let no = |rule, detail: String| Err(wrong(rule, detail, Vec::new()));
        let (count, counts) = (found.states.len(), memory.at(of.counts.cast_const(), 5));
        let search = memory.at(of.search.cast_const(), SEARCH_WORDS);
        let is_by_rows = self.what == What::Rows;
        let listed = if is_by_rows { counts[1] } else { counts[3] };
        if (listed, counts[2]) != (count as u64, 0) {
            return no("states", format!("{listed} and {} rejected, not {count} and none", counts[2]));
        }
        let widths = (0..found.starts.len()).map(|at| found.starts.get(at + 1).unwrap_or(&count) - found.starts[at]);
        let transitions: usize = found.successors.iter().map(Vec::len).sum();
        let expected = [
            found.starts.len() as u64,
            widths.max().unwrap_or(0) as u64,
            transitions as u64,
            found.deadlocks,
            u64::MAX,
            u64::MAX,
        ];
        let counted = COUNTED.map(|at| search[at]);
        if counted != expected {
            return no("counts", format!("levels, widest, transitions, deadlocks, found, faulty: {counted:?}, not {expected:?}"));
        }
        if is_by_rows {
            return self.judge_rows(memory);
        }
        // Each level's states are those of the plain search's, in any order; `starts` has the levels that began later.
        let order = memory.at(of.order.cast_const(), count);
        let starts = memory.at(of.starts.cast_const(), found.starts.len());
        let mut numbers = vec![usize::MAX; table.slots as usize];
        for (level, first) in found.starts.iter().enumerate() {
            let last = *found.starts.get(level + 1).unwrap_or(&count);
            if level > 0 && starts[level] != *first as u64 {
                return no("levels", format!("level {level} begins at {}, not {first}", starts[level]));
            }
            for reference in &order[*first..last] {
                let words = table.slot(memory, *reference).words;
                let number = found.numbers.get(&(words[0], words[1])).copied();
                let number =
                    number.filter(|number| (*first..last).contains(number) && numbers[*reference as usize] == usize::MAX);
                let Some(number) = number else { return no("levels", format!("{words:?} in level {level}")) };
                numbers[*reference as usize] = number;
            }
        }
        if *rounds == 0 {
            return Ok(());
        }
        let (flags, expected) = (memory.at(of.flags.cast_const(), table.slots as usize), case.passes(found, *rounds));
        for (slot, flags) in flags.iter().enumerate() {
            let expected = match numbers[slot] {
                // Nothing is written where no state is, unless all slots are looked at.
                usize::MAX if !of.listed.is_null() => continue,
                usize::MAX => 0,
                number => expected[number],
            };
            if *flags != expected {
                return no("flags", format!("slot {slot} has {flags:#x} after {rounds} rounds, not {expected:#x}"));
            }
        }
        let sweep = memory.at(of.sweep.cast_const(), SWEEP_WORDS);
        let accepting = found.states.iter().filter(|state| case.about[state.1 as usize] % 2 == 1).count();
        let inside = expected.iter().filter(|flags| **flags != 0);
        let at_most = inside.clone().filter(|flags| **flags & COUNT >= case.most).count();
        let (counted, tallied) = (TALLIED.map(|at| sweep[at]), [accepting, inside.count(), at_most]);
        if counted != tallied.map(|number| number as u64) {
            return no("residue", format!("accepting, inside, at most: {counted:?}, not {tallied:?}"));
        }
        self.judge_run(memory, &numbers, &expected, order)
    }
}
