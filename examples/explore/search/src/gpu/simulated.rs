//! Tests of a rank's kernel on the simulated GPU of tests/simt. The system's C++ compiler compiles it with the code of a model.
//! Its results must equal the interpreter's, and it must have no data races.

use super::rank::{rows_for, rows_of_tile, shape};
use super::{KernelLimits, NONE, SearchState, source_of_rank};
use crate::checks::{Checks, Violation};
use crate::codegen::tables;
use crate::codegen::tests::{network, own_models, product_of, read_file, state_space};
use crate::interpreter::Interpreter;
use crate::ir::{Model, Source};
use crate::successors::{Expansion, Interpreted, Successors};
use std::collections::HashSet;
use std::ffi::c_void;
use std::fs;
use std::ptr::null_mut;
use tempfile::TempDir;
use warpset_model::dve::Dve;
use warpset_simt::explorer::{Program, Strategy, Wrong, explore};
use warpset_simt::machine::{Ending, Grid, Kernel, Rules, WARP};
use warpset_simt::memory::{Memory, Use};
use warpset_simt::module::Module;

/// Number of states of a model that are expanded.
const STATES: usize = 120;

/// Number of schedules of each kind, for each model and size.
const SCHEDULES: u64 = 1;

/// Tag above the slot of each reference. The cluster's references have one; the kernel must ignore it.
const TAG: u64 = 5 << 40;

/// Value of words behind the offers.
const CANARY: u32 = 0xABAD_CAFE;

/// Words of a [`SearchState`].
const SEARCH_WORDS: usize = size_of::<SearchState>() / 8;

struct Simulated {
    /// Keeps the code of `kernel` loaded, and its files: reports of races quote lines of code from them.
    _module: Module,
    _folder: TempDir,
    kernel: Kernel,
    threads: u32,
    shared_bytes: u32,
    most_steps: u64,
}

/// Returns `None`, with the reason printed, without a compiler; with `WARPSET_REQUIRE_CXX` in the environment, it panics.
fn compile(model: &Model, checks: &Checks) -> Option<Simulated> {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    for sub in ["warpset/batch", "warpset/tree"] {
        fs::create_dir_all(at(sub)).unwrap();
    }
    let only_table = "#include \"warpset/table.cuh\"\n";
    for (path, text) in [
        ("warpset/table.cuh", include_str!("simulated/table.cuh")),
        ("warpset/batch/search.cuh", only_table),
        ("warpset/tree/incremental_builder.cuh", only_table),
        ("run.cpp", include_str!("simulated/run.cpp")),
        ("model.cuh", &source_of_rank(model, checks)),
    ] {
        fs::write(at(path), text).unwrap();
    }
    let options = ["-DMODEL=\"model.cuh\"".into(), format!("-DWARPSET_WIDTH={}", model.layout.words)];
    let module = Module::compile(folder.path(), "run.cpp", &options)?;
    let (mut threads, mut shared_bytes, mut most_steps) = (0, 0, 0);
    // SAFETY: the types are those in run.cpp; the module is kept with its kernel.
    let kernel = unsafe {
        let describe = module.symbol::<unsafe extern "C" fn(*mut u32, *mut u32, *mut u64)>("simulated_describe");
        describe(&mut threads, &mut shared_bytes, &mut most_steps);
        module.symbol::<Kernel>("simulated_expand")
    };
    assert!(shared_bytes <= 256 * 1024 && threads.is_multiple_of(32), "{threads} threads, {shared_bytes} bytes");
    Some(Simulated { _module: module, _folder: folder, kernel, threads, shared_bytes, most_steps })
}

/// Argument of the kernel; see run.cpp.
#[derive(Clone, Copy)]
#[repr(C)]
struct Argument {
    words: *const u32,
    tables: *const u32,
    order: *mut u64,
    offers: *mut u32,
    search: *mut [u64; SEARCH_WORDS],
    limits: KernelLimits,
}

/// Results of the interpreter for some states.
#[derive(Debug, Default, PartialEq, Eq)]
struct Expected {
    /// Each successor once, without those that are the state itself.
    successors: HashSet<Vec<u32>>,
    /// Transitions, deadlocks and overflows.
    counts: [u64; 3],
}

/// Expands all of `states`, in as many rounds as it takes, by at most `blocks` blocks with `rows` rows of offers.
struct Rounds<'a> {
    simulated: &'a Simulated,
    interpreted: &'a Interpreted<'a>,
    states: &'a [Vec<u32>],
    blocks: u64,
    rows: u64,
    argument: Box<Argument>,
    /// First state of the round.
    next: u64,
    /// Blocks, and states that one takes at a time.
    shape: (u64, u64),
}

impl<'a> Rounds<'a> {
    fn new(
        simulated: &'a Simulated,
        interpreted: &'a Interpreted<'a>,
        states: &'a [Vec<u32>],
        (blocks, rows): (u64, u64),
    ) -> Self {
        let deadlocks = interpreted.checks.deadlocks.into();
        let limits = KernelLimits { states: u64::MAX, levels: u64::MAX, nanoseconds: u64::MAX, deadlocks, keep_going: 1 };
        let (order, offers, search) = (null_mut(), null_mut(), null_mut());
        let argument = Box::new(Argument { words: null_mut(), tables: null_mut(), order, offers, search, limits });
        Self { simulated, interpreted, states, blocks, rows, argument, next: 0, shape: (0, 0) }
    }

    fn model(&self) -> &Model {
        self.interpreted.interpreter.model()
    }

    fn last(&self) -> u64 {
        self.states.len() as u64
    }

    fn offers_words(&self) -> usize {
        (self.rows as usize + 1) * self.interpreted.width()
    }

    /// Launches a round that begins with the state `next`.
    fn launch(&mut self, memory: &mut Memory, next: u64) -> Vec<Vec<Grid>> {
        let &Simulated { kernel, threads, shared_bytes, most_steps, .. } = self.simulated;
        self.next = next;
        self.shape = shape(self.last() - next, self.blocks, threads.into(), most_steps, self.rows);
        let (blocks, tile) = self.shape;
        let search = SearchState {
            next,
            last: self.last(),
            tile,
            levels: 1,
            found: NONE,
            faulty: NONE,
            room: self.rows,
            most_steps,
            ..SearchState::default()
        };
        // SAFETY: `repr(C)` of integers without padding (gpu/mod.rs), of this size.
        memory.at_mut(self.argument.search, 1)[0] = unsafe { std::mem::transmute::<SearchState, [u64; SEARCH_WORDS]>(search) };
        memory.at_mut(self.argument.offers, self.offers_words()).fill(CANARY);
        let argument = std::ptr::from_ref(&*self.argument).cast::<c_void>();
        let (blocks, threads, scratch_bytes) = (blocks as usize, threads as usize, shared_bytes as usize);
        vec![vec![Grid { blocks, threads, scratch_bytes, kernel, argument }]]
    }

    /// Compares the results of a round with the interpreter's. Returns the first state that was not expanded.
    fn check(&self, memory: &Memory) -> Result<u64, String> {
        let &Self { interpreted, states, rows, next, shape: (blocks, tile), .. } = self;
        let (width, last) = (interpreted.width(), self.last());
        // SAFETY: all integers are values of `SearchState`, which has this size.
        let search = unsafe {
            std::mem::transmute::<[u64; SEARCH_WORDS], SearchState>(memory.at(self.argument.search.cast_const(), 1)[0])
        };
        let done = search.next.min(last);
        let about = format!("{next}..{done} of {last} by {blocks} blocks with {tile} of {rows} rows");
        let ensure = |holds: bool, what: &dyn Fn() -> String| if holds { Ok(()) } else { Err(format!("{about}: {}", what())) };
        ensure(done > next && search.offered <= rows, &|| format!("{} rows", search.offered))?;
        ensure(search.reserved == search.offered, &|| "rows that were reserved and not written are not given back".into())?;
        let offers = memory.at(self.argument.offers.cast_const(), self.offers_words());
        let (written, rest) = offers.split_at(search.offered as usize * width);
        ensure(rest.iter().all(|word| *word == CANARY), &|| "words behind the offers are written".into())?;
        let mut expected = Expected::default();
        let mut violating = HashSet::new();
        for (at, state) in states.iter().enumerate().take(done as usize).skip(next as usize) {
            let mut expansion = Expansion::default();
            interpreted.expand(state, &mut Default::default(), &mut expansion);
            let steps = expansion.parents.len() as u64;
            let sums = [steps, expansion.deadlocks, expansion.overflows];
            expected.counts.iter_mut().zip(sums).for_each(|(sum, number)| *sum += number);
            let others = expansion.successors.chunks_exact(width).filter(|other| other != state);
            expected.successors.extend(others.map(<[u32]>::to_vec));
            if let Some((_, violation)) = expansion.violation {
                assert!(!matches!(violation, Violation::Fault(_)), "{about}: such states are left out here");
                violating.insert(at as u64);
            }
        }
        let found = Expected {
            successors: written.chunks_exact(width).map(<[u32]>::to_vec).collect(),
            counts: [search.transitions, search.deadlocks, search.overflows],
        };
        ensure(found == expected, &|| format!("{:?} instead of {:?}", found.counts, expected.counts))?;
        ensure(search.faulty == NONE, &|| format!("state {} is faulty", search.faulty))?;
        let is_right = violating.contains(&search.found) || (violating.is_empty() && search.found == NONE);
        ensure(is_right, &|| format!("state {} violates a check", search.found))?;
        Ok(done)
    }
}

fn wrong(detail: String) -> Wrong {
    Wrong { rule: "expansion", detail, about: Vec::new() }
}

impl Program for Rounds<'_> {
    fn name(&self) -> String {
        format!("{}-{}-{}", self.model().source.name, self.blocks, self.rows)
    }

    fn memory_bytes(&self) -> usize {
        let Simulated { shared_bytes, .. } = self.simulated;
        let words = self.states.len() * (self.interpreted.width() + 2) + tables(self.model(), None).len() + self.offers_words();
        // A round takes at least the states of a warp, and has shared memory of its own. There are gaps between allocations.
        let rounds = self.states.len().div_ceil(WARP);
        4 * words + rounds * self.blocks as usize * (*shared_bytes as usize + 1024) + (64 << 10)
    }

    fn set_up(&mut self, memory: &mut Memory, _seed: u64) -> Vec<Vec<Grid>> {
        let mut tables = tables(self.model(), None);
        tables.resize(tables.len().max(1), 0);
        let order: Vec<u64> = (0..self.last()).map(|slot| slot | TAG).collect();
        self.argument.words = memory.allocate_with("states", Use::Constant, &self.states.concat());
        self.argument.tables = memory.allocate_with("tables", Use::Constant, &tables);
        self.argument.order = memory.allocate_with("order", Use::Constant, &order);
        self.argument.offers = memory.allocate("offers", Use::Shared, 4 * self.offers_words()).cast();
        self.argument.search = memory.allocate("search", Use::Shared, 8 * SEARCH_WORDS).cast();
        self.launch(memory, 0)
    }

    fn go_on(&mut self, memory: &mut Memory) -> Result<Vec<Vec<Grid>>, Wrong> {
        let done = self.check(memory).map_err(wrong)?;
        Ok(if done < self.last() { self.launch(memory, done) } else { Vec::new() })
    }

    fn judge(&mut self, memory: &Memory, _ending: Ending) -> Result<(), Wrong> {
        // Check the last round.
        let done = self.check(memory).map_err(wrong)?;
        if done == self.last() { Ok(()) } else { Err(wrong(format!("{done} of {} states", self.last()))) }
    }
}

/// States on one path, each `steps` steps from the one before.
fn far_states(interpreted: &Interpreted<'_>, steps: usize) -> Vec<Vec<u32>> {
    let mut states = vec![interpreted.interpreter.model().initial_state()];
    let mut state = states[0].clone();
    for number in 1..STATES * steps {
        let mut expansion = Expansion::default();
        interpreted.expand(&state, &mut Default::default(), &mut expansion);
        let successors: Vec<_> = expansion.successors.chunks_exact(state.len()).collect();
        state = successors[(7 * number + 3) % successors.len()].to_vec();
        if number % steps == 0 {
            states.push(state.clone());
        }
    }
    states
}

/// States without faults, found breadth-first.
fn some_states(interpreted: &Interpreted<'_>) -> Vec<Vec<u32>> {
    let (mut states, mut seen) = (vec![interpreted.interpreter.model().initial_state()], HashSet::new());
    let (mut at, width) = (0, interpreted.width());
    while at < states.len() && states.len() < STATES {
        let mut expansion = Expansion::default();
        interpreted.expand(&states[at], &mut Default::default(), &mut expansion);
        if matches!(expansion.violation, Some((_, Violation::Fault(_)))) {
            states.swap_remove(at);
            continue;
        }
        let new = expansion.successors.chunks_exact(width).map(<[u32]>::to_vec);
        states.extend(new.filter(|state| seen.insert(state.clone())));
        at += 1;
    }
    states.truncate(STATES);
    states.retain(|state| {
        let mut expansion = Expansion::default();
        interpreted.expand(state, &mut Default::default(), &mut expansion);
        !matches!(expansion.violation, Some((_, Violation::Fault(_))))
    });
    states
}

/// Pairs of a number of blocks and a number of rows for offers. A tile needs `least` rows. So one block expands one tile per
/// round; three blocks, which race for rows, expand a few tiles; and two blocks expand all tiles in one round.
fn some_sizes(least: u64) -> Vec<(u64, u64)> {
    vec![(1, least), (3, 2 * least + 7), (2, least.max(1 << 13))]
}

fn check(
    model: &Model,
    checks: &Checks,
    states: fn(&Interpreted<'_>) -> Vec<Vec<u32>>,
    sizes: fn(least: u64) -> Vec<(u64, u64)>,
) {
    let interpreted = Interpreted::new(Interpreter::new(model), checks);
    let Some(simulated) = compile(model, checks) else { return };
    let states = states(&interpreted);
    let (threads, most_steps) = (u64::from(simulated.threads), simulated.most_steps);
    let least = rows_for(0, 1, threads, most_steps);
    assert_eq!(least, rows_of_tile(32, threads, most_steps));
    for size in sizes(least) {
        for strategy in [Strategy::Random, Strategy::LockStep] {
            let mut rounds = Rounds::new(&simulated, &interpreted, &states, size);
            if let Err(catch) = explore(&mut rounds, strategy, &Rules::default(), 0, SCHEDULES) {
                panic!("{catch}");
            }
        }
    }
}

#[test]
fn ranks_expand_models_as_the_interpreter_does() {
    for path in own_models() {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if !["mailbox", "vending"].contains(&&*name) {
            continue;
        }
        let text = read_file(&path);
        check(text.model(), &Checks { deadlocks: true, ..Checks::of_model(text.model()) }, some_states, some_sizes);
    }
}

/// Each state has as many steps as a state of the model can have, to states that few other states lead to. So almost all reserved
/// rows are used.
#[test]
fn ranks_fill_their_offers_to_the_last_row() {
    let step = |amount| format!("s -> s {{ effect x = x + {amount}; }}");
    let steps = (1..4).map(step).collect::<Vec<_>>().join(", ");
    let process = |n| format!("process P_{n} {{ byte x; state s; init s; trans {steps}; }}\n");
    let text = (0..10).map(process).collect::<String>() + "system async;";
    let dve = Dve::read(Source { name: "full".into(), text }).unwrap();
    let sizes = |least| (0..4).map(|part| (1 + part % 2, least + part * 337)).collect();
    check(&dve.model, &Checks::default(), |interpreted| far_states(interpreted, 11), sizes);
}

#[test]
fn ranks_expand_networks_and_products_as_the_interpreter_does() {
    let (_folder, text, checks) = network();
    check(text.model(), &checks, some_states, some_sizes);
    let (_space_folder, space, space_checks) = state_space();
    check(space.model(), &space_checks, some_states, some_sizes);
    check(&product_of(&text), &Checks { deadlocks: true, ..Checks::default() }, some_states, some_sizes);
}
