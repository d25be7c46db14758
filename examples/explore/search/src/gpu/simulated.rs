//! Tests of a rank's kernel on the simulated GPU of tests/simt. The system's C++ compiler compiles the kernel with the code of a
//! model. The kernel's results must equal the interpreter's, and it must have no data races.
//!
//! Keeps this promise of `examples/explore/docs/reductions.md`:
//!
//! - A GPU takes the steps that the interpreter takes in a reduced search, without data races, and a missing bit is found.

use super::order::States;
use super::program::Sources;
use super::rank::{rows_for, rows_of_tile, shape};
use super::tallies::Counted;
use super::{KernelLimits, NONE, SearchState};
use crate::codegen::tests::{network, own_models, product_of, read_file, state_space};
use crate::exploration::add_violating;
use crate::reduced::Reduced;
use crate::successors::{Expansion, Interpreted, Successors};
use std::collections::HashSet;
use std::ffi::c_void;
use std::fs;
use std::ptr::null_mut;
use tempfile::TempDir;
use warpset_model::checks::{Checks, Role, Violation};
use warpset_model::dve::Dve;
use warpset_model::interpreter::Interpreter;
use warpset_model::ir::{Model, Source};
use warpset_model::reduction::stubborn::{Kept, Stubborn};
use warpset_simt::explorer::{Program, Strategy, Wrong, explore};
use warpset_simt::machine::{Ending, Grid, Kernel, Rules, WARP};
use warpset_simt::memory::{Memory, Use};
use warpset_simt::module::Module;
use warpset_testing::sizes::sized;

/// Number of states of a model that are expanded.
const STATES: usize = 120;

/// Number of schedules of each kind, for each model and size.
const SCHEDULES: u64 = 1;

/// Kinds of reduced searches.
const KEPT: [Kept; 3] =
    [Kept { deadlocks: true, goals: false }, Kept { deadlocks: false, goals: true }, Kept { deadlocks: true, goals: true }];

/// Value of words behind the offers.
const CANARY: u32 = 0xABAD_CAFE;

/// Words of a [`Counted`].
const COUNTED_WORDS: usize = size_of::<Counted>() / 8;

/// Words of a [`SearchState`].
const SEARCH_WORDS: usize = size_of::<SearchState>() / 8;

struct Simulated {
    /// Keeps the code of `kernel` loaded, and its files on disk: reports of races quote lines of these files.
    _module: Module,
    _folder: TempDir,
    kernel: Kernel,
    threads: u32,
    shared_bytes: u32,
    most_steps: u64,
    /// Words of marks for each thread of a reduced search; 0 if they are in shared memory.
    marks: u32,
    tables: Vec<u32>,
}

/// Compiles the kernel. Without a compiler, prints the reason and returns `None`; with `WARPSET_REQUIRE_CXX` in the environment,
/// panics.
fn compile(sources: Sources) -> Option<Simulated> {
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
        ("model.cuh", &sources.rank()),
    ] {
        fs::write(at(path), text).unwrap();
    }
    let options = ["-DMODEL=\"model.cuh\"".into(), format!("-DWARPSET_WIDTH={}", sources.model.layout.words)];
    let module = Module::compile(folder.path(), "run.cpp", &options)?;
    let (mut threads, mut shared_bytes, mut most_steps, mut marks) = (0, 0, 0, 0);
    // SAFETY: the types match run.cpp; the module is kept with its kernel.
    let kernel = unsafe {
        let describe = module.symbol::<unsafe extern "C" fn(*mut u32, *mut u32, *mut u64, *mut u32)>("simulated_describe");
        describe(&mut threads, &mut shared_bytes, &mut most_steps, &mut marks);
        module.symbol::<Kernel>("simulated_expand")
    };
    assert!(shared_bytes <= 256 * 1024 && threads.is_multiple_of(32), "{threads} threads, {shared_bytes} bytes");
    let tables = sources.tables();
    Some(Simulated { _module: module, _folder: folder, kernel, threads, shared_bytes, most_steps, marks, tables })
}

/// Argument of the kernel; see run.cpp.
#[derive(Clone, Copy)]
#[repr(C)]
struct Argument {
    words: *const u32,
    tables: *const u32,
    states: States,
    offers: *mut u32,
    search: *mut [u64; SEARCH_WORDS],
    limits: KernelLimits,
    marks: *mut u32,
}

/// Results of the interpreter for some states.
#[derive(Debug, Default, PartialEq, Eq)]
struct Expected {
    /// Each successor once, except successors that equal their state.
    successors: HashSet<Vec<u32>>,
    /// Transitions, deadlocks and overflows.
    counts: [u64; 3],
}

/// Expands all of `states`, in as many rounds as it takes, by at most `blocks` blocks with `rows` rows of offers.
struct Rounds<'a> {
    simulated: &'a Simulated,
    interpreted: &'a Interpreted<'a>,
    /// Gives the expected successors: all, or those of a reduced search.
    expected: &'a dyn Successors,
    states: &'a [Vec<u32>],
    blocks: u64,
    rows: u64,
    argument: Box<Argument>,
    /// Counts of violating states, by condition.
    tallies: *mut [u64; COUNTED_WORDS],
    /// First state of the round.
    next: u64,
    /// Number of blocks, and number of states that a block takes at a time.
    shape: (u64, u64),
}

impl<'a> Rounds<'a> {
    fn new(
        simulated: &'a Simulated,
        (interpreted, expected): (&'a Interpreted<'a>, &'a dyn Successors),
        states: &'a [Vec<u32>],
        (blocks, rows): (u64, u64),
    ) -> Self {
        let deadlocks = interpreted.checks.deadlocks.into();
        let limits =
            KernelLimits { states: u64::MAX, levels: u64::MAX, nanoseconds: u64::MAX, room: u64::MAX, deadlocks, keep_going: 1 };
        let (listed, offers, search) = (States::default(), null_mut(), null_mut());
        let [words, tables, marks] = [null_mut(); 3];
        let argument = Box::new(Argument { words, tables, states: listed, offers, search, limits, marks });
        Self { simulated, interpreted, expected, states, blocks, rows, argument, tallies: null_mut(), next: 0, shape: (0, 0) }
    }

    fn model(&self) -> &Model {
        self.interpreted.interpreter.model()
    }

    /// Number of conditions, at least 1.
    fn conditions(&self) -> usize {
        self.interpreted.checks.conditions.len().max(1)
    }

    fn last(&self) -> u64 {
        self.states.len() as u64
    }

    fn offers_words(&self) -> usize {
        (self.rows as usize + 1) * self.interpreted.width()
    }

    /// Words of marks for all threads, of at most `blocks` blocks.
    fn marks_words(&self) -> usize {
        (self.blocks * u64::from(self.simulated.threads) * u64::from(self.simulated.marks)) as usize
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
            found_level: NONE,
            faulty: NONE,
            room: self.rows,
            most_steps,
            tallies: self.tallies as u64,
            ..SearchState::default()
        };
        memory.at_mut(self.tallies, self.conditions()).fill([0; COUNTED_WORDS]);
        // SAFETY: `repr(C)` of integers without padding (gpu/mod.rs), of this size.
        memory.at_mut(self.argument.search, 1)[0] = unsafe { std::mem::transmute::<SearchState, [u64; SEARCH_WORDS]>(search) };
        memory.at_mut(self.argument.offers, self.offers_words()).fill(CANARY);
        let argument = std::ptr::from_ref(&*self.argument).cast::<c_void>();
        let (blocks, threads, scratch_bytes) = (blocks as usize, threads as usize, shared_bytes as usize);
        vec![vec![Grid { blocks, threads, scratch_bytes, kernel, argument }]]
    }

    /// Compares the results of a round with the interpreter's. Returns the first state that was not expanded.
    fn check(&self, memory: &Memory) -> Result<u64, String> {
        let &Self { expected: source, states, rows, next, shape: (blocks, tile), .. } = self;
        let (width, last) = (source.width(), self.last());
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
        let (mut violating, mut tallies) = (Vec::new(), vec![0; self.interpreted.checks.conditions.len()]);
        for (at, state) in states.iter().enumerate().take(done as usize).skip(next as usize) {
            let mut expansion = Expansion::default();
            source.expand(state, &mut Default::default(), &mut expansion);
            let steps = expansion.parents.len() as u64;
            let sums = [steps, expansion.deadlocks, expansion.overflows];
            expected.counts.iter_mut().zip(sums).for_each(|(sum, number)| *sum += number);
            let others = expansion.successors.chunks_exact(width).filter(|other| other != state);
            expected.successors.extend(others.map(<[u32]>::to_vec));
            if let Some((_, violation)) = expansion.violation {
                assert!(!matches!(violation, Violation::Fault(_)), "{about}: such states are left out here");
                violating.push((state, at as u64));
            }
            add_violating(&mut tallies, &expansion.violating);
        }
        let found = Expected {
            successors: written.chunks_exact(width).map(<[u32]>::to_vec).collect(),
            counts: [search.transitions, search.deadlocks, search.overflows],
        };
        ensure(found == expected, &|| format!("{:?} instead of {:?}", found.counts, expected.counts))?;
        ensure(search.faulty == NONE, &|| format!("state {} is faulty", search.faulty))?;
        let counted: Vec<u64> = memory.at(self.tallies.cast_const(), tallies.len()).iter().map(|of| of[0]).collect();
        ensure(counted == tallies, &|| format!("{counted:?} violating states instead of {tallies:?}"))?;
        let least = violating.into_iter().min().map_or(NONE, |(_, at)| at);
        ensure(search.found == least, &|| format!("state {} violates a check, but {least} is the least", search.found))?;
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
        let Simulated { shared_bytes, tables, .. } = self.simulated;
        let words = self.states.len() * (self.interpreted.width() + 2) + tables.len() + self.offers_words() + self.marks_words();
        // A round takes at least the states of a warp, and has shared memory of its own. There are gaps between allocations.
        let rounds = self.states.len().div_ceil(WARP);
        4 * words + rounds * self.blocks as usize * (*shared_bytes as usize + 1024) + (64 << 10)
    }

    fn set_up(&mut self, memory: &mut Memory, _seed: u64) -> Vec<Vec<Grid>> {
        // The list of a product has references of 8 bytes.
        let bytes: Vec<u8> = match self.model().property {
            Some(_) => (0..self.last()).flat_map(u64::to_ne_bytes).collect(),
            None => (0..self.last() as u32).flat_map(u32::to_ne_bytes).collect(),
        };
        self.argument.words = memory.allocate_with("states", Use::Constant, &self.states.concat());
        self.argument.tables = memory.allocate_with("tables", Use::Constant, &self.simulated.tables);
        self.argument.states.first = memory.allocate_with("list", Use::Constant, &bytes) as u64;
        self.argument.offers = memory.allocate("offers", Use::Shared, 4 * self.offers_words()).cast();
        self.argument.search = memory.allocate("search", Use::Shared, 8 * SEARCH_WORDS).cast();
        self.argument.marks = memory.allocate("marks", Use::Shared, 4 * self.marks_words().max(1)).cast();
        self.tallies = memory.allocate("tallies", Use::Shared, 8 * COUNTED_WORDS * self.conditions()).cast();
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
    let Some(simulated) = compile(Sources::new(model, checks)) else { return };
    if let Err(catch) = run(&simulated, (&interpreted, &interpreted), &states(&interpreted), sizes) {
        panic!("{catch}");
    }
}

/// Expands the states with each size and each strategy of schedules. Returns the first difference.
fn run<'a>(
    simulated: &'a Simulated,
    sources: (&'a Interpreted<'a>, &'a dyn Successors),
    states: &'a [Vec<u32>],
    sizes: fn(least: u64) -> Vec<(u64, u64)>,
) -> Result<(), String> {
    let (threads, most_steps) = (u64::from(simulated.threads), simulated.most_steps);
    let least = rows_for(0, 1, threads, most_steps);
    assert_eq!(least, rows_of_tile(32, threads, most_steps));
    for size in sizes(least) {
        for strategy in [Strategy::Random, Strategy::LockStep] {
            let mut rounds = Rounds::new(simulated, sources, states, size);
            explore(&mut rounds, strategy, &Rules::default(), 0, SCHEDULES).map_err(|catch| catch.to_string())?;
        }
    }
    Ok(())
}

/// Expands states by the steps of stubborn sets. `stubborn` is compiled for the device; `right` is the interpreter's choice.
fn run_reduced(
    checks: &Checks,
    (stubborn, right): (&Stubborn, &Stubborn),
    model: &Model,
    sizes: fn(least: u64) -> Vec<(u64, u64)>,
) -> Option<Result<(), String>> {
    let interpreted = Interpreted::new(Interpreter::new(model), checks);
    let simulated = compile(Sources { stubborn: Some(stubborn), ..Sources::new(model, checks) })?;
    let reduced = Reduced { interpreted: &interpreted, stubborn: right };
    Some(run(&simulated, (&interpreted, &reduced), &some_states(&interpreted), sizes))
}

/// Checks reduced searches for deadlocks, for goals, and for both. A plain run makes only the last of these checks that the model
/// has, because each check compiles a kernel.
fn check_reduced(model: &Model, checks: &Checks, sizes: fn(least: u64) -> Vec<(u64, u64)>) {
    let all = KEPT.into_iter().rev().filter(|kept| !kept.goals || !checks.conditions.is_empty());
    for kept in all.take(sized(KEPT.len(), 1, 1)) {
        let checks = &Checks { deadlocks: kept.deadlocks, ..checks.clone() };
        let stubborn = Stubborn::of(model, checks, kept).unwrap();
        if let Some(Err(catch)) = run_reduced(checks, (&stubborn, &stubborn), model, sizes) {
            panic!("{kept:?}: {catch}");
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

/// Each state has as many steps as a state of the model can have. The steps lead to states that few other states lead to. So
/// almost all reserved rows are used.
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

/// One round of two blocks.
fn one_size(least: u64) -> Vec<(u64, u64)> {
    vec![(2, least.max(1 << 13))]
}

/// Independent cycles of two places, as a net; the last ones compete for a token.
fn cycles(count: usize) -> String {
    let mut text = String::new();
    for at in 0..count {
        let mut arc = |from: String, to: String| {
            text.push_str(&format!("<arc id=\"{from}-{to}\" source=\"{from}\" target=\"{to}\"/>\n"));
        };
        for (from, to) in [("a", "t"), ("t", "b"), ("b", "u"), ("u", "a")] {
            arc(format!("{from}{at}"), format!("{to}{at}"));
        }
        if at + 3 >= count {
            arc("shared".into(), format!("t{at}"));
            arc(format!("u{at}"), "shared".into());
        }
        let tokens = u32::from(at + 5 >= count || at == 0);
        text += &format!("<place id=\"a{at}\"><initialMarking><text>{tokens}</text></initialMarking></place>\n");
        text += &format!("<place id=\"b{at}\"/><transition id=\"t{at}\"/><transition id=\"u{at}\"/>\n");
    }
    format!(
        "<?xml version=\"1.0\"?>\n<pnml xmlns=\"http://www.pnml.org/version-2009/grammar/pnml\">\n<net id=\"n\" \
         type=\"http://www.pnml.org/version-2009/grammar/ptnet\"><page id=\"page\">\n{text}<place id=\"shared\">\
         <initialMarking><text>1</text></initialMarking></place>\n</page></net></pnml>\n"
    )
}

/// Checks a net of this many cycles, with a goal that has two parts. Returns the number of words of marks of a thread; 0 if they
/// are in shared memory.
fn check_reduced_net(count: usize) -> Option<u32> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.pnml");
    fs::write(&path, cycles(count)).unwrap();
    let net = read_file(&path);
    let last = count - 1;
    let goal = format!("tokens(b0) == 1 and (fireable(u{last}) or tokens(a{}) == 0)", last - 1);
    let source = Source { name: "goal".into(), text: goal.clone() };
    let mut checks = Checks { deadlocks: true, ..Checks::of_model(net.model()) };
    checks.add(Role::Goal, goal, net.condition(&source).unwrap_or_else(|error| panic!("{error}")).0);
    check_reduced(net.model(), &checks, one_size);
    let stubborn = Stubborn::of(net.model(), &checks, KEPT[2]).unwrap();
    Some(compile(Sources { stubborn: Some(&stubborn), ..Sources::new(net.model(), &checks) })?.marks)
}

#[test]
fn reduced_searches_of_models_choose_as_the_interpreter_does() {
    for path in own_models() {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if ["mailbox", "vending", "philosophers"].contains(&&*name) {
            let text = read_file(&path);
            check_reduced(text.model(), &Checks::of_model(text.model()), some_sizes);
        }
    }
    let (_folder, text, checks) = network();
    check_reduced(text.model(), &checks, one_size);
}

/// Tests sets of one word, of as many words as a group has lanes, and of more words than a warp has lanes.
#[test]
fn reduced_searches_of_nets_choose_as_the_interpreter_does() {
    let in_shared = [5, 100].map(check_reduced_net);
    assert!(in_shared.iter().flatten().all(|marks| *marks == 0), "{in_shared:?}");
    let in_memory = check_reduced_net(530);
    assert!(in_memory.is_none_or(|marks| marks > 0), "{in_memory:?}");
}

/// If the dependencies of a small model lack a single bit, of a conflict or of an enabler, the comparison must find that. A and C
/// take the same token; B lets C take it.
#[test]
fn a_missing_bit_is_found_in_choices_on_a_gpu() {
    let process = |name: &str, step: &str| format!("process {name} {{ state s, t; init s; trans s -> t {{ {step} }}; }}\n");
    let text = [
        "byte x, y;\n".to_owned(),
        process("A", "guard x < 1; effect x = x + 1;"),
        process("B", "effect y = 1;"),
        process("C", "guard x < 1 and y == 1; effect x = x + 1;"),
        "system async;".to_owned(),
    ];
    let dve = Dve::read(Source { name: "small".into(), text: text.concat() }).unwrap();
    let checks = Checks { deadlocks: true, ..Checks::default() };
    let right = Stubborn::of(&dve.model, &checks, KEPT[0]).unwrap();
    let is_found = |remove: &dyn Fn(&mut Stubborn)| {
        let mut wrong = right.clone();
        remove(&mut wrong);
        run_reduced(&checks, (&wrong, &right), &dve.model, one_size).map(|found| found.is_err())
    };
    assert_eq!(run_reduced(&checks, (&right, &right), &dve.model, one_size).unwrap_or(Ok(())), Ok(()));
    let (a, b, c) = (0, 1, 2);
    let conflict = is_found(&|wrong| wrong.dependencies.conflicts[a].remove(c));
    let enablers = &right.dependencies.enablers;
    let of_b = enablers.iter().position(|enablers| enablers.contains(b) && !enablers.contains(a)).unwrap();
    let enabler = is_found(&|wrong| wrong.dependencies.enablers[of_b].remove(b));
    // `None` without a compiler.
    assert!(conflict != Some(false) && enabler != Some(false), "conflict {conflict:?}, enabler {enabler:?}");
}
