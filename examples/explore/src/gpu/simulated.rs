//! The kernel of a rank on a simulated GPU: compiled by the system's C++ compiler, its blocks threads, their threads fibres.

use super::rank::{rows_for, rows_of_tile, shape};
use super::{KernelLimits, NONE, Search, source_of_rank};
use crate::checks::{Checks, Violation};
use crate::codegen::tables;
use crate::codegen::tests::{network, own_models, product_of, read_file, state_space};
use crate::interpreter::Interpreter;
use crate::ir::{Model, Source};
use crate::successors::{Expansion, Interpreted, Successors};
use libloading::Library;
use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;
use warpset_model::dve::Dve;

/// States of a model that are expanded.
const STATES: usize = 120;

/// What a reference has above its slot, as the cluster's references have: the kernel must not mind.
const TAG: u64 = 5 << 40;

struct Simulated {
    code: Library,
    threads: u32,
    most_steps: u64,
}

/// `None`, visibly, if there is no compiler; with `WARPSET_REQUIRE_CXX` in the environment, that is a failure.
fn compile(model: &Model, checks: &Checks) -> Option<Simulated> {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    for sub in ["warpset/batch", "warpset/tree"] {
        fs::create_dir_all(at(sub)).unwrap();
    }
    let table = include_str!("simulated/table.cuh");
    let only_table = "#include \"warpset/table.cuh\"\n";
    for (path, text) in [
        ("warpset/platform.cuh", include_str!("simulated/platform.cuh")),
        ("warpset/table.cuh", table),
        ("warpset/batch/search.cuh", only_table),
        ("warpset/tree/incremental_builder.cuh", only_table),
        ("run.cpp", include_str!("simulated/run.cpp")),
        ("model.cuh", &source_of_rank(model, checks)),
    ] {
        fs::write(at(path), text).unwrap();
    }
    let compiler = std::env::var("CXX").ok().filter(|name| !name.is_empty()).unwrap_or("c++".into());
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cuda");
    let mut command = Command::new(&compiler);
    command.args(["-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-pthread", "-DMODEL=\"model.cuh\""]);
    command.arg(format!("-DWARPSET_WIDTH={}", model.layout.words)).arg("-I").arg(folder.path()).arg("-I").arg(headers);
    command.arg("-o").arg(at("kernel.so")).arg(at("run.cpp"));
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound && std::env::var_os("WARPSET_REQUIRE_CXX").is_none() => {
            println!("skipped: no C++ compiler {compiler}");
            return None;
        }
        Err(error) => panic!("{compiler}: {error}"),
    };
    assert!(output.status.success(), "{}: {}", model.source.name, String::from_utf8_lossy(&output.stderr));
    // SAFETY: what was just compiled does nothing when it is loaded.
    let library = unsafe { Library::new(at("kernel.so")) }.unwrap();
    let (mut threads, mut shared, mut most_steps) = (0, 0, 0);
    // SAFETY: the types are those in run.cpp.
    unsafe {
        let describe = library.get::<unsafe extern "C" fn(*mut u32, *mut u32, *mut u64)>(b"simulated_describe").unwrap();
        describe(&mut threads, &mut shared, &mut most_steps);
    }
    assert!(shared <= 256 * 1024 && threads.is_multiple_of(32), "{threads} threads, {shared} bytes");
    Some(Simulated { code: library, threads, most_steps })
}

/// What the interpreter says of some states.
#[derive(Debug, Default, PartialEq, Eq)]
struct Expected {
    /// Without those that are the state itself, each once.
    successors: HashSet<Vec<u32>>,
    counts: [u64; 3],
}

impl Simulated {
    /// Expands all of these states, in as many rounds as it takes, by so many blocks with so many rows of offers.
    fn check(&self, interpreted: &Interpreted<'_>, states: &[Vec<u32>], blocks: u64, rows: u64) {
        let (width, name) = (interpreted.width(), &interpreted.interpreter.model().source.name);
        let words = states.concat();
        let mut tables = tables(interpreted.interpreter.model());
        tables.resize(tables.len().max(1), 0);
        let mut order: Vec<u64> = (0..states.len() as u64).map(|slot| slot | TAG).collect();
        let (mut next, last) = (0u64, states.len() as u64);
        while next < last {
            let (blocks, tile) = shape(last - next, blocks, self.threads.into(), self.most_steps, rows);
            const CANARY: u32 = 0xABAD_CAFE;
            let mut offers = vec![CANARY; (rows as usize + 1) * width];
            let (room, most_steps) = (rows, self.most_steps);
            let mut search =
                Search { next, last, tile, levels: 1, found: NONE, faulty: NONE, room, most_steps, ..Search::default() };
            let deadlocks = interpreted.checks.deadlocks.into();
            let limits = KernelLimits { states: u64::MAX, levels: u64::MAX, nanoseconds: u64::MAX, deadlocks, keep_going: 1 };
            type Expand = unsafe extern "C" fn(*const u32, *const u32, *mut u64, *mut u32, *mut Search, *const KernelLimits, u32);
            // SAFETY: the types are those in run.cpp; references are numbers of the states, the offers have room for `rows` rows.
            unsafe {
                let expand = self.code.get::<Expand>(b"simulated_expand").unwrap();
                let (order, offers) = (order.as_mut_ptr(), offers.as_mut_ptr());
                expand(words.as_ptr(), tables.as_ptr(), order, offers, &mut search, &limits, blocks as u32);
            }
            let done = search.next.min(last);
            let about = format!("{name}: {next}..{done} of {last} by {blocks} blocks with {tile} of {rows} rows");
            assert!(done > next && search.offered <= rows, "{about}: {} rows", search.offered);
            assert_eq!(search.reserved, search.offered, "{about}: what is reserved and not written is given back");
            let (written, rest) = offers.split_at(search.offered as usize * width);
            assert!(rest.iter().all(|word| *word == CANARY), "{about}: words behind the offers are written");
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
            assert!(found == expected, "{about}: {:?} instead of {:?}", found.counts, expected.counts);
            assert_eq!(search.faulty, NONE, "{about}");
            assert!(violating.contains(&search.found) || (violating.is_empty() && search.found == NONE), "{about}");
            next = done;
        }
    }
}

/// States that are so many steps from each other.
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

/// How many blocks, with how many rows, if a tile needs so many at least: one tile after another, a few, all at once; by one
/// block and by several that race for room.
fn some_sizes(least: u64) -> Vec<(u64, u64)> {
    vec![(1, least), (3, 2 * least + 7), (2, least.max(1 << 16))]
}

fn check(
    model: &Model,
    checks: &Checks,
    states: fn(&Interpreted<'_>) -> Vec<Vec<u32>>,
    sizes: fn(least: u64) -> Vec<(u64, u64)>,
) {
    let interpreted = Interpreted { interpreter: Interpreter::new(model), checks };
    let Some(simulated) = compile(model, checks) else { return };
    let states = states(&interpreted);
    let (threads, most_steps) = (u64::from(simulated.threads), simulated.most_steps);
    let least = rows_for(0, 1, threads, most_steps);
    assert_eq!(least, rows_of_tile(32, threads, most_steps));
    for (blocks, rows) in sizes(least) {
        simulated.check(&interpreted, &states, blocks, rows);
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

/// Each state has all the steps that it may have, to states that few others lead to: nothing that is reserved is too much.
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
