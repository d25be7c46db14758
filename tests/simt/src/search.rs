//! The model checker's kernels (examples/explore/src/gpu): a search level by level, and passes for accepting cycles, for random
//! graphs and automata, against plain loops.

use crate::explorer::{Program, Wrong};
use crate::machine::{Ending, Grid, Kernel, Rules};
use crate::memory::{Memory, Use};
use crate::stress::next_prime;
use crate::table::{Config, Table, View, argument, bucket, wrong};
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
}

// SAFETY: constants: numbers and function pointers.
unsafe impl Sync for Kernels {}

unsafe extern "C" {
    static warpset_simt_search_system: Kernels;
    static warpset_simt_search_product: Kernels;
    static warpset_simt_search_rank: Kernels;
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
const SEARCH_WORDS: usize = 26;
const NEXT: usize = 2;
const TILE: usize = 3;
const ROOM: usize = 16;
const OFFERED: usize = 18;
const TRANSITIONS: usize = 6;
const DEADLOCKS: usize = 7;
const FOUND: usize = 9;
const FAULTY: usize = 11;
/// With levels and the widest.
const COUNTED: [usize; 6] = [4, 5, TRANSITIONS, DEADLOCKS, FOUND, FAULTY];
const SWEEP_WORDS: usize = 9;
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
        // Of a rank now and then so many that there is no room for all that comes of them.
        let many = what == What::Level && rng.random_bool(0.5);
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
        let moves = (what != What::System).then(|| std::array::from_fn(|_| moves()));
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
    /// A product with an automaton, and then accepting cycles of it.
    Product,
    /// A level of a product, by a rank of several: successors become offers.
    Level,
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
                What::Product => &warpset_simt_search_product,
                What::Level => &warpset_simt_search_rank,
            }
        };
        assert_eq!(kernels.argument_bytes as usize, size_of::<Argument>());
        assert_eq!(kernels.moves as usize, if what == What::System { 0 } else { LOCATIONS });
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

impl Program for Search {
    fn name(&self) -> String {
        match self.what {
            What::System => "search-system".into(),
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
        let kernels = bucket(2, 16, 32);
        let slots = (found.states.len() as f64 * rng.random_range(1.5..2.5)) as u64 + 16;
        let buckets = next_prime(slots.div_ceil(kernels.slots_per_bucket()) as u32).into();
        let empty = [u32::MAX, u32::MAX - 1, u32::MAX - 2, u32::MAX - 3];
        let config = Config::of_buckets(buckets, u64::MAX, empty, rng.random());
        let table = Table::allocate(memory, kernels, config);
        table.clear(memory);
        let slots = table.slots as usize;
        let rounds = if self.what == What::Product { rng.random_range(1..=ROUNDS) } else { 0 };
        // Room for what a tile of a warp may want, or more; and the states of a level are any.
        let threads = self.kernels.threads as usize;
        let rows_of_tile = |states: usize| 4 * threads + MOST_STEPS * states;
        let room = rows_of_tile(rng.random_range(32..120));
        let mut search = [0u64; SEARCH_WORDS];
        (search[ROOM], search[TILE]) = (room as u64, if room >= rows_of_tile(threads) { threads as u64 } else { 32 });
        let level: Vec<u32> = found.states.iter().flat_map(|(node, location)| [*node, *location]).collect();
        let of = Argument {
            view: table.view,
            tables: memory.allocate_with("tables", Use::Constant, &case.tables()),
            initial: memory.allocate_with("initial", Use::Constant, &level),
            order: memory.allocate("order", Use::Shared, 8 * slots).cast(),
            starts: memory.allocate("starts", Use::Shared, 8 * slots).cast(),
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
        };
        let of = Box::new(of);
        let blocks = rng.random_range(1..=2);
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
        if (counts[3], counts[2]) != (count as u64, 0) {
            return no("states", format!("{} and {} rejected, not {count} and none", counts[3], counts[2]));
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
            let expected = if numbers[slot] == usize::MAX { 0 } else { expected[numbers[slot]] };
            if *flags != expected {
                return no("flags", format!("slot {slot} has {flags:#x} after {rounds} rounds, not {expected:#x}"));
            }
        }
        let sweep = memory.at(of.sweep.cast_const(), SWEEP_WORDS);
        let accepting = found.states.iter().filter(|state| case.about[state.1 as usize] % 2 == 1).count();
        let inside = expected.iter().filter(|flags| **flags != 0);
        let at_most = inside.clone().filter(|flags| **flags & COUNT >= case.most).count();
        let (counted, expected) = (TALLIED.map(|at| sweep[at]), [accepting, inside.count(), at_most]);
        if counted != expected.map(|number| number as u64) {
            return no("residue", format!("accepting, inside, at most: {counted:?}, not {expected:?}"));
        }
        Ok(())
    }
}
