//! Compares components that the kernels find with those of Tarjan's algorithm, and end components with those of a slow but simple
//! algorithm. Graphs have many shapes. Blocks have several threads, as on GPUs, or one thread.

use crate::cpu::Cpu;
use crate::engine::{Decomposer, MOST_ROUNDS, Settings};
use crate::graph::Graph;
use crate::machine::Machine;
use crate::partition::{NONE, smallest_states};
use crate::paths::{Goal, HAS_CYCLE, Paths, TARGET};
use crate::{npz, read, tra};
use proptest::prelude::*;
use std::io::Cursor;
use std::time::Duration;
use warpset_support::components as tarjan;
use warpset_support::lines::number;
use warpset_support::memory::MemoryBudget;
use warpset_testing::sizes::sized;

const NO_LIMIT: MemoryBudget = MemoryBudget::free(u64::MAX);

const SHAPES: [&str; 13] = [
    "random",
    "sparse",
    "chain",
    "cycle",
    "star",
    "grid",
    "torus",
    "planted",
    "power law",
    "islands",
    "clique",
    "loops",
    "empty",
];

/// The xorshift of Marsaglia, 2003.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most
    }
}

/// Returns the number of states and the transitions of a graph of this shape with about `size` states.
fn shape(name: &str, size: u64, random: &mut Random) -> (u64, Vec<(u32, u32)>) {
    let mut edges = Vec::new();
    let mut states = size;
    match name {
        "random" => edges.extend((0..2 * size).map(|_| (random.below(size), random.below(size)))),
        "sparse" => edges.extend((0..size).map(|_| (random.below(size), random.below(size)))),
        "chain" => edges.extend((1..size).map(|at| (at - 1, at))),
        "cycle" => edges.extend((0..size).map(|at| (at, (at + 1) % size))),
        "star" => {
            let back = |at: u64| if at.is_multiple_of(3) { (at, 0) } else { (at, (at + 1) % size) };
            edges.extend((1..size).flat_map(|at| [(0, at), back(at)]));
        }
        "grid" | "torus" => {
            let side = size.isqrt().max(1);
            states = side * side;
            for at in 0..states {
                let (x, y) = (at % side, at / side);
                let ends = name == "grid";
                edges.extend((!ends || x + 1 < side).then_some((at, y * side + (x + 1) % side)));
                edges.extend((!ends || y + 1 < side).then_some((at, (y + 1) % side * side + x)));
            }
        }
        // Components in a row, with edges to later components.
        "planted" | "power law" => {
            let mut first = 0;
            while first < size {
                let wanted = if name == "planted" { 5 } else { size / (1 + random.below(size)) + 1 };
                let length = wanted.min(size - first);
                edges.extend((0..length).map(|at| (first + at, first + (at + 1) % length)));
                edges.extend((0..length).map(|_| (first + random.below(length), first + random.below(size - first))));
                first += length;
            }
        }
        // Components that do not reach each other. There are more of them than a round has pivots.
        "islands" => edges.extend((0..size).map(|at| (at, if at % 3 == 2 { at - 2 } else { (at + 1).min(size - 1) }))),
        "clique" => {
            states = size.min(40);
            edges.extend((0..states).flat_map(|from| (0..states).map(move |to| (from, to))));
        }
        "loops" => edges.extend((0..size).filter(|at| at % 3 != 0).map(|at| (at, at))),
        _ => {}
    }
    // Repeat some transitions.
    if random.below(3) == 0 {
        edges.extend_from_within(..edges.len() / 2);
    }
    // Shuffle the numbers of states, so that they do not reflect the structure.
    let mut names: Vec<u64> = (0..states).collect();
    if random.below(2) == 0 {
        (1..states as usize).for_each(|at| names.swap(at, random.below(at as u64 + 1) as usize));
    }
    let renamed = edges.into_iter().map(|(from, to)| (names[from as usize] as u32, names[to as usize] as u32));
    (states, renamed.collect())
}

fn graph(states: u64, edges: &[(u32, u32)]) -> Graph {
    let (sources, targets): (Vec<u32>, Vec<u32>) = edges.iter().copied().unzip();
    Graph::of_transitions(states, &sources, &targets).unwrap()
}

/// Groups the transitions of each state into choices at random.
fn with_choices(graph: &Graph, random: &mut Random) -> Graph {
    let (mut of_states, mut offsets) = (vec![0], vec![0]);
    for ends in graph.offsets.windows(2) {
        let mut at = ends[0];
        while at < ends[1] {
            at = (at + 1 + random.below(3)).min(ends[1]);
            offsets.push(at);
        }
        of_states.push(offsets.len() as u64 - 1);
    }
    Graph::of_choices(of_states, offsets, graph.targets.clone()).unwrap()
}

fn by_tarjan(graph: &Graph) -> Vec<u32> {
    smallest_states(tarjan::components(graph.states() as usize, |state| graph.successors(state)))
}

/// Finds end components by their definition: removes choices until no decomposition removes any more.
fn slow_end_components(graph: &Graph) -> Vec<u32> {
    let choices = graph.choices.as_ref().unwrap();
    let states = graph.states() as usize;
    let targets = |choice: u64| {
        &graph.targets[choices.offsets[choice as usize] as usize..]
            [..{ (choices.offsets[choice as usize + 1] - choices.offsets[choice as usize]) as usize }]
    };
    let mut left: Vec<Vec<u64>> =
        (0..states).map(|state| (choices.of_states[state]..choices.of_states[state + 1]).collect()).collect();
    loop {
        let successors: Vec<Vec<u32>> =
            left.iter().map(|left| left.iter().flat_map(|choice| targets(*choice)).copied().collect()).collect();
        let component = tarjan::components(states, |state| &successors[state]);
        let before = left.clone();
        for (state, left) in left.iter_mut().enumerate() {
            let stays = |target: &u32| component[*target as usize] == component[state] && !before[*target as usize].is_empty();
            left.retain(|choice| targets(*choice).iter().all(stays));
        }
        if left == before {
            let labels = smallest_states(component);
            return (0..states).map(|state| if left[state].is_empty() { NONE } else { labels[state] }).collect();
        }
    }
}

fn machines() -> Vec<Cpu> {
    [(1, 1, 256, 64), (2, 1, 4, 8), (2, 2, 0, 1), (1, 3, 16, 5)]
        .map(|(blocks, threads, narrow, piece)| Cpu::of_blocks(blocks, threads, narrow, piece).unwrap())
        .into()
}

/// Settings with which kernels do all the work.
const BY_KERNELS: Settings = Settings { few: 0, few_left: 0, most_rounds: MOST_ROUNDS, budget: None };

fn check<'g>(name: &str, machine: &impl Machine<'g>, graph: &'g Graph, settings: Settings) {
    let mut engine = Decomposer::new(machine, graph, settings).unwrap();
    engine.components().unwrap();
    let labels = engine.labels().unwrap();
    assert!(labels == by_tarjan(graph), "{name}: components of {} states", graph.states());
    let rounds = engine.end_components().unwrap();
    let ends = engine.end_labels(&labels).unwrap();
    let expected = match &graph.choices {
        Some(_) => slow_end_components(graph),
        None => slow_end_components(&single_choices(graph)),
    };
    assert!(ends == expected, "{name}: end components of {} states, in {rounds} rounds", graph.states());
}

fn single_choices(graph: &Graph) -> Graph {
    let all = (0..=graph.transitions()).collect();
    Graph::of_choices(graph.offsets.clone(), all, graph.targets.clone()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: sized(80, 24, 24), max_shrink_iters: 64, ..ProptestConfig::default() })]

    #[test]
    fn partitions_are_those_of_tarjan(
        name in proptest::sample::select(&SHAPES[..]),
        size in 1u64..400,
        seed in 1u64..,
        machine in 0usize..4,
        has_choices: bool,
    ) {
        let cpu = &machines()[machine];
        let mut random = Random(seed);
        let (states, edges) = shape(name, size, &mut random);
        let graph = graph(states, &edges);
        let graph = if has_choices { with_choices(&graph, &mut random) } else { graph };
        check(name, cpu, &graph, BY_KERNELS);
    }
}

#[test]
fn every_shape_is_decomposed_by_every_machine() {
    for cpu in machines() {
        for (number, name) in SHAPES.into_iter().enumerate() {
            let mut random = Random(number as u64 + 1);
            let (states, edges) = shape(name, sized(150, 60, 60), &mut random);
            let plain = graph(states, &edges);
            check(name, &cpu, &with_choices(&plain, &mut random), BY_KERNELS);
            check(name, &cpu, &plain, BY_KERNELS);
        }
    }
}

/// Graphs have levels with more states than a block keeps for itself, and states with more edges than a piece.
#[test]
fn every_shape_is_decomposed_where_levels_are_wide() {
    let cpu = Cpu::of_blocks(2, 1, 256, 64).unwrap();
    for (number, name) in SHAPES.into_iter().enumerate() {
        let mut random = Random(number as u64 + 501);
        let (states, edges) = shape(name, 5_000, &mut random);
        check_components(&cpu, &graph(states, &edges), BY_KERNELS);
    }
}

/// Chains, and components that fall apart one after another. The number of levels or decompositions grows with their length.
#[test]
fn long_ways_are_gone_to_their_end() {
    let cpu = Cpu::new(2, None).unwrap();
    let (states, edges) = shape("chain", 100_000, &mut Random(1));
    check_components(&cpu, &graph(states, &edges), BY_KERNELS);
    let (states, edges) = shape("cycle", 20_000, &mut Random(2));
    check_components(&cpu, &graph(states, &edges), BY_KERNELS);
}

/// Cycles of two states in one component, which are separated one after another; each takes a decomposition.
#[test]
fn end_components_that_fall_off_take_a_round_each() {
    let count: u32 = sized(24, 10, 10);
    // For each number: two states of the cycle, its exit, and its return to the previous cycle.
    let mut choices: Vec<Vec<Vec<u32>>> = Vec::new();
    for at in (0..count).map(|number| 4 * number) {
        let (next, before) = (at + 4, at.saturating_sub(4));
        let back = if at > 0 { vec![vec![at], vec![at + 3]] } else { vec![vec![at]] };
        choices.extend([vec![vec![at + 1], vec![at + 2]], back, vec![vec![at, next]], vec![vec![before, at + 2]]]);
    }
    choices.push(vec![vec![4 * count]]);
    let (mut of_states, mut offsets, mut targets) = (vec![0], vec![0], Vec::new());
    for choice in choices.iter().flat_map(|choices| choices.iter().enumerate()) {
        targets.extend_from_slice(choice.1);
        offsets.push(targets.len() as u64);
    }
    choices.iter().for_each(|choices| of_states.push(of_states[of_states.len() - 1] + choices.len() as u64));
    let graph = Graph::of_choices(of_states, offsets, targets).unwrap();
    for cpu in machines() {
        check("falling off", &cpu, &graph, BY_KERNELS);
        let mut engine = Decomposer::new(&cpu, &graph, BY_KERNELS).unwrap();
        engine.components().unwrap();
        let rounds = engine.end_components().unwrap();
        let ends = engine.end_labels(&[]).unwrap();
        assert!(rounds >= u64::from(count) && ends[4 * 7 + 1] == 4 * 7 && ends[4 * 7 + 2] == NONE, "{rounds} rounds: {ends:?}");
    }
}

fn check_components(cpu: &Cpu, graph: &Graph, settings: Settings) {
    let mut engine = Decomposer::new(cpu, graph, settings).unwrap();
    engine.components().unwrap();
    assert!(engine.labels().unwrap() == by_tarjan(graph));
}

/// Tarjan's algorithm decomposes the states that the kernels have not finished.
#[test]
fn what_is_left_is_done_by_tarjan() {
    let none = Settings { few: 0, few_left: 0, most_rounds: MOST_ROUNDS, budget: Some((Duration::ZERO, Duration::ZERO)) };
    let little =
        Settings { few: 0, few_left: 0, most_rounds: MOST_ROUNDS, budget: Some((Duration::from_nanos(20), Duration::ZERO)) };
    let few = Settings { few: 60, few_left: 60, most_rounds: MOST_ROUNDS, budget: None };
    let cpu = Cpu::of_blocks(2, 2, 16, 8).unwrap();
    for (number, name) in SHAPES.into_iter().enumerate() {
        let mut random = Random(number as u64 + 77);
        let (states, edges) = shape(name, sized(120, 60, 60), &mut random);
        let graph = with_choices(&graph(states, &edges), &mut random);
        let searched = Settings { most_rounds: 1, ..BY_KERNELS };
        let coloured = Settings { most_rounds: 2, ..BY_KERNELS };
        [none, little, few, searched, coloured].into_iter().for_each(|settings| check(name, &cpu, &graph, settings));
    }
}

#[test]
fn what_does_not_fit_is_refused_with_the_numbers() {
    let cpu = Cpu::new(1, Some(1000)).unwrap();
    let graph = graph(1000, &[(0, 1)]);
    let error = Decomposer::new(&cpu, &graph, BY_KERNELS).err().unwrap().to_string();
    assert!(error.contains("1000 states, 1 choices and 1 transitions need") && error.contains("1,000 bytes"), "{error}");
    // The limit includes the arrays for end components.
    let choices = single_choices(&graph);
    let needed = crate::engine::bytes_beside(&choices, cpu.piece());
    let cpu = Cpu::new(1, Some(needed)).unwrap();
    let mut engine = Decomposer::new(&cpu, &choices, BY_KERNELS).unwrap();
    engine.components().unwrap();
    let error = engine.end_components().err().unwrap().to_string();
    assert!(error.contains("end components need") && error.contains("(20,004 bytes), but"), "{error}");
    drop(engine);
    let cpu = Cpu::new(1, Some(needed + 20_004)).unwrap();
    let mut engine = Decomposer::new(&cpu, &choices, BY_KERNELS).unwrap();
    engine.components().unwrap();
    assert!(engine.end_components().is_ok());
}

#[test]
fn texts_are_read() {
    let read = |text: &str| tra::read("a.tra", text.as_bytes(), NO_LIMIT);
    let graph = read("2 3 4\n0 0 0 0.5\n0 0 1 .5 go\r\n0\t1 1  1e0 stop\n\n1 0 1 1\n\n").unwrap();
    assert_eq!((&graph.offsets[..], &graph.targets[..]), (&[0, 3, 4][..], &[0, 1, 1, 1][..]));
    let choices = graph.choices.as_ref().unwrap();
    assert_eq!((&choices.of_states[..], &choices.offsets[..]), (&[0, 2, 3][..], &[0, 2, 3, 4][..]));
    // A line with probability 0 is not a transition. States may have no lines. A chain has no choices.
    let graph = read("4 2 3\n1 0 0 1/3\n1 0 2 0/5\n2 0 2 1").unwrap();
    assert_eq!((graph.states(), graph.transitions(), graph.choice_count()), (4, 2, 2));
    let graph = read("2 3\n0 0 0.5\n0 1 0.5\n1 1 1\n").unwrap();
    assert_eq!((graph.states(), graph.transitions(), graph.choice_count()), (2, 3, 2));
    for (text, part) in [
        ("", "a.tra:1: the text ends here"),
        ("x", "a.tra:1: `x` is not a valid first line"),
        ("1 2 3 4 5", "a.tra:1: `1 2 3 4 5` is not a valid first line"),
        ("mdp\n0 0 0 1", "a.tra:1: `mdp` begins Storm's explicit format"),
        ("dtmc\n0 0 1", "a.tra:1: `dtmc` begins Storm's explicit format"),
        ("CTMC\n0 0 1", "a.tra:1: `CTMC` begins Storm's explicit format"),
        ("1 2 3 4\n0 0 0 1 0", "PRISM's first line of a POMDP"),
        ("1 2 3 4\n0 0 0 1 0", "begin the file with `1 2 3`"),
        ("0 0 0", "announces 0 states, but 1 to 4294967294 are possible"),
        ("4294967295 1 1", "announces 4294967295 states, but 1 to 4294967294 are possible"),
        ("1 2 1", "2 choices but only 1 transition"),
        ("1 1 2\n0 0 0 1", "a.tra:3: the text ends after 1 transition, but the first line announces 2"),
        ("1 1 1\n0 0 0 1\n0 0 0 1", "a.tra:3: more transitions than the 1"),
        ("1 2 2\n0 0 0 1\n0 0 0 1", "after 1 choice, but the first line announces 2"),
        ("2 1 1\n0 0 2 1", "a.tra:2: state 2 found, but the first line announces 2 states, numbered 0 to 1"),
        ("2 1 1\n0 0 1 -1", "`-1` found, but a probability was expected"),
        ("2 1 1\n0 0 1 nan", "`nan` found, but a probability was expected"),
        ("2 1 1\n0 0 1 [0.1,0.2]", "but a probability was expected"),
        ("2 1 1\n0 0 1 1/0", "`1/0` found, but a probability was expected"),
        ("2 1 1\n0 0 1", "a.tra:2: the line ends, but a probability was expected"),
        ("2 1 1\n0 0 x 1", "`x` found, but a state was expected"),
        ("2 1 1\n0 0 1 1 go on", "`on` found after the action"),
        ("2 2 2\n1 0 1 1\n0 0 1 1", "a.tra:3: state 0 after state 1: lines must be sorted"),
        ("2 2 2\n0 0 1 1\n0 2 1 1", "choice 2 of state 0 found, but 1 was expected"),
        ("2 2 2\n0 1 1 1\n0 0 1 1", "choice 1 of state 0 found, but 0 was expected"),
        ("2 2 2\n0 0 1 0\n1 0 1 1", "choice 0 of state 0 ends without a transition of positive probability"),
    ] {
        let error = read(text).err().unwrap().to_string();
        assert!(error.contains(part), "{text:?}: {error}");
    }
    let error = tra::read("a.tra", "1000000 1 1\n".as_bytes(), MemoryBudget::allowed(1000)).err().unwrap().to_string();
    assert!(error.contains("1,000,000 states and 1 transition need") && error.contains("1,000 bytes"), "{error}");
    assert_eq!(number(b"18446744073709551616"), None);
}

/// Creates an archive of arrays as NumPy writes them. Each is given by its name, its type and its elements as bytes.
fn archive(arrays: &[(&str, &str, Vec<u8>)]) -> Cursor<Vec<u8>> {
    use std::io::Write;
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, of, bytes) in arrays {
        let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        archive.start_file(format!("{name}.npy"), options).unwrap();
        let count = bytes.len() / if of.ends_with('8') { 8 } else { 4 };
        archive.write_all(&warpset_support::npy_writer::npy_header(of, &format!("({count},)"))).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap()
}

fn words(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| (*number as u32).to_le_bytes()).collect()
}

fn longs(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

#[test]
fn arrays_are_read() {
    let read = |arrays: &[(&str, &str, Vec<u8>)]| npz::read(archive(arrays), NO_LIMIT);
    for (offsets, targets) in [("<u8", "<u4"), ("<i8", "<i8"), ("<u8", "<u8"), ("<i8", "<i4")] {
        let of = |kind: &str, numbers: &[i64]| if kind.ends_with('8') { longs(numbers) } else { words(numbers) };
        let arrays = [("offsets", offsets, of(offsets, &[0, 2, 2, 3])), ("targets", targets, of(targets, &[1, 2, 0]))];
        let graph = read(&arrays).unwrap();
        assert_eq!((&graph.offsets[..], &graph.targets[..]), (&[0, 2, 2, 3][..], &[1, 2, 0][..]));
        assert!(graph.choices.is_none() && graph.choice_count() == 3);
        let [_, targets] = arrays;
        let offsets = ("offsets", "<i8", longs(&[0, 2, 3]));
        let graph = read(&[offsets, targets, ("choices", "<u4", words(&[0, 1, 1, 2]))]).unwrap();
        assert_eq!((graph.states(), graph.choice_count(), &graph.offsets[..]), (3, 2, &[0, 2, 2, 3][..]));
    }
    assert_eq!(read(&[("offsets", "<u8", longs(&[0])), ("targets", "<u4", vec![])]).unwrap().states(), 0);
    let one = || ("targets", "<u4", words(&[0]));
    for (arrays, part) in [
        (vec![one()], "the file has no array `offsets`"),
        (vec![("offsets", "<u8", longs(&[0, 1]))], "the file has no array `targets`"),
        (vec![one(), ("offsets", "<u8", longs(&[1, 1]))], "`offsets` must begin with 0"),
        (vec![one(), ("offsets", "<u8", longs(&[0, 1, 0, 1]))], "offsets[2] is 0, which is less than 1 before it"),
        (vec![one(), ("offsets", "<u8", longs(&[0, 2]))], "`offsets` ends with 2"),
        (
            vec![("targets", "<u4", words(&[1])), ("offsets", "<u8", longs(&[0, 1]))],
            "targets[0] is state 1, but the graph has 1 state, numbered 0 to 0",
        ),
        (vec![("targets", "<i8", longs(&[-1])), ("offsets", "<u8", longs(&[0, 1]))], "element 0 is less than 0"),
        (vec![("targets", "<u8", longs(&[1 << 32])), ("offsets", "<u8", longs(&[0, 1]))], "is 4294967296, outside 0 to 2^32 - 1"),
        (vec![("targets", "<f8", longs(&[0])), ("offsets", "<u8", longs(&[0, 1]))], "dtype '<f8'"),
        (vec![one(), ("offsets", "<u8", longs(&[0, 0, 1])), ("choices", "<u8", longs(&[0, 2]))], "choice 0 has no targets"),
        (vec![one(), ("offsets", "<u8", longs(&[0, 1])), ("choices", "<u8", longs(&[0, 2]))], "`choices` ends with 2"),
    ] {
        let error = format!("{:#}", read(&arrays).err().unwrap());
        assert!(error.contains(part), "{part}: {error}");
    }
    let error = format!("{:#}", npz::read(Cursor::new(b"PK".to_vec()), NO_LIMIT).err().unwrap());
    assert!(error.contains("not a complete .npz file"), "{error}");
}

/// Returns the length of a shortest path within a component, by the definition.
fn slow_path(graph: &Graph, component: &[u32], from: u32, wanted: impl Fn(u32) -> bool) -> Option<usize> {
    let mut reached = vec![false; component.len()];
    let mut level = vec![from];
    for length in 1.. {
        let mut next = Vec::new();
        for state in level {
            for target in graph.successors(state as usize).iter().copied() {
                if component[target as usize] == component[from as usize]
                    && !std::mem::replace(&mut reached[target as usize], true)
                {
                    next.push(target);
                }
            }
        }
        if next.iter().any(|state| wanted(*state)) {
            return Some(length);
        }
        if next.is_empty() {
            break;
        }
        level = next;
    }
    None
}

/// Checks the components and paths of the graph, which is given as shuffled pairs with some target states.
fn check_paths<'g>(machine: &impl Machine<'g>, graph: &Graph, settings: Settings, random: &mut Random) {
    let states = graph.states();
    let mut pairs: Vec<u64> = (0..states)
        .flat_map(|state| graph.successors(state as usize).iter().map(move |target| u64::from(*target) << 32 | state))
        .collect();
    (1..pairs.len()).for_each(|at| pairs.swap(at, random.below(at as u64 + 1) as usize));
    let one_in = 1 + random.below(20);
    let kinds: Vec<u32> = (0..states).map(|_| if random.below(one_in) == 0 { TARGET } else { 0 }).collect();
    let [of_pairs, of_kinds]: [(&[u8], _); 2] =
        [(bytemuck::cast_slice(&pairs), 8 * pairs.len()), (bytemuck::cast_slice(&kinds), 4 * kinds.len())];
    let [of_pairs, of_kinds] = [of_pairs, of_kinds].map(|(data, bytes)| {
        let buffer = machine.allocate(bytes as u64).unwrap();
        machine.write(&buffer, 0, data).unwrap();
        buffer
    });
    let mut paths = Paths::new(machine, states, (of_pairs, pairs.len() as u64), of_kinds, settings).unwrap();
    let labels = paths.labels().unwrap();
    let expected = by_tarjan(graph);
    assert!(labels == expected, "components of {states} states made of pairs");
    let found = paths.kinds().unwrap();
    for state in 0..states as usize {
        assert_eq!(found[state] & TARGET, kinds[state]);
        if expected[state] == state as u32 {
            let members = (0..states as usize).filter(|other| expected[*other] == state as u32);
            let is_inner = |of: usize| graph.successors(of).iter().any(|to| expected[*to as usize] == state as u32);
            let has = members.fold([false; 2], |[target, inner], of| [target || kinds[of] == TARGET, inner || is_inner(of)]);
            assert_eq!(found[state] & HAS_CYCLE == HAS_CYCLE, has == [true; 2], "the component of {state} has {has:?}");
        }
    }
    for _ in 0..8.min(states) {
        let from = random.below(states) as u32;
        for goal in [Goal::Target, Goal::Begin] {
            let is_wanted = |state: u32| if goal == Goal::Target { kinds[state as usize] == TARGET } else { state == from };
            let path = paths.shortest(from, goal).unwrap();
            let length = slow_path(graph, &expected, from, is_wanted);
            assert_eq!(path.as_ref().map(Vec::len), length, "from {from} of {states} to {goal:?}");
            let Some(path) = path else { continue };
            let mut at = from;
            for state in &path {
                assert!(graph.successors(at as usize).contains(state) && expected[*state as usize] == expected[from as usize]);
                at = *state;
            }
            assert!(is_wanted(at));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: sized(80, 24, 24), max_shrink_iters: 64, ..ProptestConfig::default() })]

    #[test]
    fn paths_in_components_are_shortest(
        name in proptest::sample::select(&SHAPES[..]),
        size in 1u64..300,
        seed in 1u64..,
        machine in 0usize..4,
        few in proptest::sample::select(&[0, 1 << 12][..]),
    ) {
        let mut random = Random(seed);
        let (states, edges) = shape(name, size, &mut random);
        check_paths(&machines()[machine], &graph(states, &edges), Settings { few, ..BY_KERNELS }, &mut random);
    }
}

/// Tests a path with more levels than one launch takes.
#[test]
fn long_paths_are_found_to_their_end() {
    let cycle = graph(5000, &(0..5000).map(|at| (at, (at + 1) % 5000)).collect::<Vec<_>>());
    let cpu = Cpu::new(2, None).unwrap();
    check_paths(&cpu, &cycle, BY_KERNELS, &mut Random(7));
}

#[test]
fn files_are_told_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str, bytes: &[u8], format| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        read::read(&path, format, NO_LIMIT)
    };
    let aut = b"des (0, 2, 3)\n(1, \"a, b\", 0)\n(0, i, 1)\n";
    let graph = read("a.aut", aut, None).unwrap().graph;
    assert_eq!((&graph.offsets[..], &graph.targets[..]), (&[0, 1, 2, 2][..], &[1, 0][..]));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, aut).unwrap();
    let packed = packed.finish().unwrap();
    assert_eq!(read("b.aut.gz", &packed, None).unwrap().graph.targets, [1, 0]);
    assert_eq!(read("packed_without_a_name", &packed, Some(read::Format::Aut)).unwrap().graph.targets, [1, 0]);
    let damaged = &packed[..packed.len() / 2];
    for (name, bytes, format, part) in [
        ("c.graph", &aut[..], None, "the extension does not tell the format; choose it with --format"),
        ("d.aut", b"des (0, 1, 1)\n(0, a, 1)\n", None, "d.aut:2: state 1 found"),
        ("e.aut.gz", damaged, None, "e.aut.gz cannot be read"),
        ("f.npz", &packed, None, "f.npz is packed by gzip: unpack it first"),
        ("g.npz", aut, None, "not a complete .npz file"),
    ] {
        let error = format!("{:#}", read(name, bytes, format).err().unwrap());
        assert!(error.contains(part), "{name}: {error}");
    }
    let error = format!("{:#}", read::read(folder.path(), Some(read::Format::Tra), NO_LIMIT).err().unwrap());
    assert!(error.contains("a directory, not a file"), "{error}");
}

/// Returns the text in every supported encoding and with every kind of line end.
fn variants(text: &str) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for (end, name) in [("\n", "LF"), ("\r", "CR"), ("\r\n", "CRLF")] {
        let text = text.replace('\n', end);
        let words = || text.encode_utf16();
        all.push((format!("{name}, UTF-8"), text.clone().into_bytes()));
        all.push((format!("{name}, UTF-8 with its mark"), format!("\u{feff}{text}").into_bytes()));
        let marked = |bytes: fn(u16) -> [u8; 2]| std::iter::once(0xfeff).chain(words()).flat_map(bytes).collect();
        all.push((format!("{name}, UTF-16LE"), marked(u16::to_le_bytes)));
        all.push((format!("{name}, UTF-16BE"), marked(u16::to_be_bytes)));
    }
    all
}

#[test]
fn texts_have_any_encoding_and_line_end() {
    let folder = tempfile::tempdir().unwrap();
    for (file, text, offsets, targets) in [
        ("a.edges", "# \u{e4}\n0 1\n1 2\n\n2 0\n", &[0, 1, 2, 3][..], &[1, 2, 0][..]),
        ("a.csv", "source,target,\u{e4}\n0,1,\u{1f600}\n1,2,b\n2,0,\u{20ac}", &[0, 1, 2, 3], &[1, 2, 0]),
        ("b.csv", "source,target,name\n0,1,\"a\"\n1,2,\"b,\u{e4}\"\n2,0,c\n", &[0, 1, 2, 3], &[1, 2, 0]),
        ("a.tra", "2 3 3\n0 0 1 1 g\u{fc}n\n0 1 0 1\n1 0 0 1\n", &[0, 2, 3], &[1, 0, 0]),
        ("a.aut", "des (0, 2, 2)\n(0, \"\u{e4}, b\", 1)\n(1, i, 0)\n", &[0, 1, 2], &[1, 0]),
        ("a.mtx", "%%MatrixMarket matrix coordinate pattern general\n%\u{e4}\n2 2 2\n1 2\n2 1\n", &[0, 1, 2], &[1, 0]),
    ] {
        for (name, bytes) in variants(text) {
            let path = folder.path().join(file);
            std::fs::write(&path, &bytes).unwrap();
            let graph = read::read(&path, None, NO_LIMIT).unwrap_or_else(|error| panic!("{file}, {name}: {error:#}")).graph;
            assert_eq!((&graph.offsets[..], &graph.targets[..]), (offsets, targets), "{file}, {name}");
        }
    }
    // Lines are counted whatever kind of line end they have.
    for (name, bytes) in variants("0 1\n\n1 x\n") {
        let path = folder.path().join("b.edges");
        std::fs::write(&path, &bytes).unwrap();
        let error = format!("{:#}", read::read(&path, None, NO_LIMIT).err().unwrap());
        assert!(error.contains("b.edges:3: `1 x` is not an edge"), "{name}: {error}");
    }
    let path = folder.path().join("c.edges");
    std::fs::write(&path, b"\xff\xfe\0\x000\0\0\0").unwrap();
    let error = format!("{:#}", read::read(&path, None, NO_LIMIT).err().unwrap());
    assert!(error.contains("UTF-32"), "{error}");
}

#[test]
fn kernels_have_their_numbers() {
    let text = include_str!("kernels.cuh");
    let list = text.split_once("#define DECOMPOSE_KERNELS(KERNEL)").unwrap().1;
    let names: Vec<&str> = list.split("KERNEL(").skip(1).map(|rest| rest.split_once(')').unwrap().0).collect();
    assert_eq!(names, crate::machine::Kernel::ALL.map(crate::machine::Kernel::name));
    assert!(crate::machine::Kernel::ALL.iter().enumerate().all(|(number, kernel)| *kernel as usize == number));
}

/// Compiles the kernels for GPUs without running them, so no GPU is needed.
#[cfg(feature = "cuda")]
#[test]
fn nvrtc_takes_the_kernels() {
    use warpset::gpu::{Program, compile};
    use warpset::{BucketTable, Error};
    for capability in [(9, 0), (7, 5)] {
        let program = Program::Own { name: "decompose.cu", source: &crate::gpu::source() };
        match compile(&BucketTable::builder(1), program, capability) {
            Ok(image) => assert!(image.len() > 1000, "{} bytes", image.len()),
            Err(Error::LibraryNotFound { .. }) if std::env::var_os("WARPSET_REQUIRE_NVRTC").is_none() => {
                return println!("skipped: NVRTC is not installed");
            }
            Err(error) => panic!("{capability:?}: {error}"),
        }
    }
}

/// Tests all shapes on a GPU if there is one.
#[cfg(feature = "cuda")]
#[test]
fn every_shape_is_decomposed_by_a_gpu() {
    use crate::gpu::Gpu;
    use warpset::{Device, Error};
    let device = match Device::gpu(0) {
        Ok(device) => device,
        Err(Error::LibraryNotFound { .. }) => return println!("skipped: no CUDA device"),
        Err(_) if Device::gpus().is_ok_and(|gpus| gpus.is_empty()) => return println!("skipped: no CUDA device"),
        Err(error) => panic!("{error}"),
    };
    let gpu = Gpu::new(&device, None).unwrap();
    for size in [1, 150, 5_000] {
        for (number, name) in SHAPES.into_iter().enumerate() {
            let mut random = Random(number as u64 + 1 + size);
            let (states, edges) = shape(name, size, &mut random);
            let plain = graph(states, &edges);
            check(name, &gpu, &with_choices(&plain, &mut random), BY_KERNELS);
            check(name, &gpu, &plain, BY_KERNELS);
            check(
                name,
                &gpu,
                &plain,
                Settings { few: 0, few_left: 0, most_rounds: MOST_ROUNDS, budget: Some((Duration::ZERO, Duration::ZERO)) },
            );
        }
    }
    for (number, name) in SHAPES.into_iter().enumerate() {
        let mut random = Random(number as u64 + 1);
        let (states, edges) = shape(name, 5_000, &mut random);
        for few in [0, 1 << 13] {
            check_paths(&gpu, &graph(states, &edges), Settings { few, ..BY_KERNELS }, &mut random);
        }
    }
    let error = Decomposer::new(&Gpu::new(&device, Some(1000)).unwrap(), &graph(1000, &[]), BY_KERNELS).err().unwrap();
    assert!(error.to_string().contains("1000 states, 0 choices and 0 transitions need"), "{error}");
}
