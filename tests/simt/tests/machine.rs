//! Tests of the simulator: which behaviours its memory allows and forbids, and that its searches find what they promise to find.
//!
//! Each litmus test has a few lanes with a few operations. It compares the set of all results over every schedule with the set
//! that the model allows. The kernels are written in Rust and make requests to the machine directly.
//!
//! Keeps this promise of `src/docs/simulated_gpu.md`:
//!
//! - Writes to different addresses are ordered only by release and acquire, fences or barriers.

use std::collections::BTreeSet;
use std::ffi::c_void;
use warpset_simt::fault::Fault;
use warpset_simt::machine::{Ending, Grid, Rules, run, warpset_simt_identity, warpset_simt_request};
use warpset_simt::memory::{Loads, Memory, Use};
use warpset_simt::request::Order::{Acquire, AcquireRelease, Relaxed, Release, Weak};
use warpset_simt::request::{Order, Request, RequestKind};
use warpset_simt::schedule::{Decision, Exhaustive, LockStep, Pct, Random, Recorder, Replay, Schedule, Scheduler};

/// An operation of a lane on a variable of 16 bytes. It accesses `bytes` bytes, from `offset` on.
#[derive(Clone, Copy)]
struct Op {
    kind: RequestKind,
    order: Order,
    variable: usize,
    offset: usize,
    bytes: u32,
    /// Value that a compare-and-swap expects in every word.
    expected: u32,
    /// Value of every word that is written.
    value: u32,
    /// Whether the words that the operation reads are added to the lane's results, as one number.
    looks: bool,
}

fn load(variable: usize, order: Order) -> Op {
    Op { kind: RequestKind::Load, order, variable, offset: 0, bytes: 4, expected: 0, value: 0, looks: true }
}

fn store(variable: usize, value: u32, order: Order) -> Op {
    Op { kind: RequestKind::Store, value, looks: false, ..load(variable, order) }
}

fn swap(variable: usize, expected: u32, value: u32, order: Order) -> Op {
    Op { kind: RequestKind::CompareAndSwap, expected, value, ..load(variable, order) }
}

fn add(variable: usize, value: u32, order: Order) -> Op {
    Op { kind: RequestKind::FetchAdd, value, ..load(variable, order) }
}

fn fence(order: Order) -> Op {
    Op { kind: RequestKind::Fence, looks: false, ..load(0, order) }
}

fn barrier() -> Op {
    Op { kind: RequestKind::SyncBlock, looks: false, ..load(0, Relaxed) }
}

impl Op {
    fn of(self, bytes: u32) -> Self {
        Self { bytes, ..self }
    }

    fn at(self, offset: usize) -> Self {
        Self { offset, ..self }
    }
}

/// Data that the lanes of a litmus test share.
struct Litmus {
    threads: Vec<Vec<Op>>,
    variables: *mut u8,
    results: Vec<Vec<u64>>,
}

/// Lane i carries out the operations of thread i.
unsafe extern "C" fn litmus(argument: *const c_void) {
    // SAFETY: the argument is the `Litmus` of `once`, which outlives the run. Lanes run one at a time on one thread.
    let litmus = unsafe { &mut *argument.cast::<Litmus>().cast_mut() };
    // SAFETY: the machine returns a valid pointer while a lane runs.
    let lane = unsafe { (*warpset_simt_identity()).thread } as usize;
    for at in 0..litmus.threads[lane].len() {
        let op = litmus.threads[lane][at];
        let address = litmus.variables.wrapping_add(16 * op.variable + op.offset);
        let mut request = Request::new(op.kind, op.order, address, op.bytes).at_line(at as u32);
        (request.expected, request.value) = ([op.expected; 4], [op.value; 4]);
        // SAFETY: a lane makes this call, with a request that lives until the call returns.
        unsafe { warpset_simt_request(&mut request) };
        if op.looks {
            let words = &request.value[..op.bytes as usize / 4];
            litmus.results[lane].push(words.iter().fold(0, |all, word| all * 10 + u64::from(*word)));
        }
    }
}

/// Does one run. Returns the values that each lane read, in order, and the final values of the variables.
fn once(
    memory: &mut Memory,
    threads: &[Vec<Op>],
    rules: &Rules,
    scheduler: &mut dyn Scheduler,
) -> Result<Option<Vec<u64>>, Box<Fault>> {
    memory.clear();
    let variables = memory.allocate_with("variables", Use::Shared, &[0u32; 16]).cast();
    let mut case = Litmus { threads: threads.to_vec(), variables, results: vec![Vec::new(); threads.len()] };
    let argument = std::ptr::from_mut(&mut case).cast_const().cast();
    let grid = Grid { blocks: 1, threads: threads.len(), scratch_bytes: 0, kernel: litmus, argument };
    // SAFETY: `litmus` may run with `case`, which outlives the run.
    let (ending, _) = unsafe { run(memory, &[grid], rules, scheduler, None) }?;
    Ok((ending == Ending::Finished).then(|| case.results.concat()))
}

/// Returns all results of all schedules.
fn results_of(threads: &[Vec<Op>], rules: &Rules, mut schedules: Exhaustive) -> (BTreeSet<Vec<u64>>, u64) {
    let mut memory = Memory::new(4096);
    let mut results = BTreeSet::new();
    let mut count = 0;
    loop {
        results.extend(once(&mut memory, threads, rules, &mut schedules).expect("no fault"));
        count += 1;
        if !schedules.advance() {
            return (results, count);
        }
    }
}

/// Asserts that the reduced search and the search of every order give the same results, and returns these results.
fn all(threads: &[Vec<Op>], rules: &Rules) -> BTreeSet<Vec<u64>> {
    let (reduced, few) = results_of(threads, rules, Exhaustive::default());
    let (naive, many) = results_of(threads, rules, Exhaustive::naive());
    assert_eq!(reduced, naive, "partial-order reduction loses results");
    assert!(few <= many);
    reduced
}

fn relaxed() -> Rules {
    Rules { races: false, ..Rules::default() }
}

fn sequential() -> Rules {
    Rules { loads: Loads { stale: false, ..Loads::default() }, ..relaxed() }
}

fn set<const N: usize>(results: &[[u64; N]]) -> BTreeSet<Vec<u64>> {
    results.iter().map(|result| result.to_vec()).collect()
}

#[test]
fn message_passing() {
    let threads = |write, read| [vec![store(0, 1, Relaxed), store(1, 1, write)], vec![load(1, read), load(0, Relaxed)]];
    let stale = vec![1, 0]; // the lane sees the flag, but not the data
    assert!(!all(&threads(Relaxed, Relaxed), &sequential()).contains(&stale));
    assert_eq!(all(&threads(Relaxed, Relaxed), &relaxed()), set(&[[0, 0], [0, 1], [1, 0], [1, 1]]));
    assert_eq!(all(&threads(Release, Acquire), &relaxed()), set(&[[0, 0], [0, 1], [1, 1]]));
    for (write, read) in [(Release, Relaxed), (Relaxed, Acquire)] {
        assert!(all(&threads(write, read), &relaxed()).contains(&stale), "{write:?}, {read:?}: one half orders nothing");
    }
}

#[test]
fn message_passing_with_fences() {
    let threads = |write: &[Op], read: &[Op]| {
        let mut one = vec![store(0, 1, Relaxed)];
        one.extend(write);
        one.push(store(1, 1, Relaxed));
        let mut other = vec![load(1, Relaxed)];
        other.extend(read);
        other.push(load(0, Relaxed));
        [one, other]
    };
    let (release, acquire) = (fence(Release), fence(Acquire));
    assert!(!all(&threads(&[release], &[acquire]), &relaxed()).contains(&vec![1, 0]));
    assert!(all(&threads(&[release], &[]), &relaxed()).contains(&vec![1, 0]));
    assert!(all(&threads(&[], &[acquire]), &relaxed()).contains(&vec![1, 0]));
    assert!(all(&threads(&[acquire], &[release]), &relaxed()).contains(&vec![1, 0]), "the wrong way round");
    assert!(!all(&threads(&[fence(AcquireRelease)], &[fence(AcquireRelease)]), &relaxed()).contains(&vec![1, 0]));
}

/// A read-modify-write between the store and the load continues the release sequence.
#[test]
fn message_passing_through_a_compare_and_swap() {
    let middle = vec![swap(1, 1, 2, Relaxed)];
    let threads = [vec![store(0, 1, Relaxed), store(1, 1, Release)], middle, vec![load(1, Acquire), load(0, Relaxed)]];
    let results = all(&threads, &relaxed());
    assert!(results.contains(&vec![1, 2, 1]));
    assert!(!results.contains(&vec![1, 2, 0]), "the last lane saw 2, which passes on the release of 1");
}

/// One read-modify-write raises a flag, and another reads it. Only release and acquire pass on earlier stores.
#[test]
fn message_passing_by_read_modify_writes() {
    let stale = vec![0, 1, 0]; // the lane sees the flag, but not the data
    for raise in [|order| add(1, 1, order), |order| swap(1, 0, 1, order)] {
        for see in [|order| add(1, 1, order), |order| swap(1, 1, 2, order)] {
            let results = |raises, sees| {
                let threads = [vec![store(0, 1, Relaxed), raise(raises)], vec![see(sees), load(0, Relaxed)]];
                (all(&threads, &relaxed()), all(&threads, &sequential()))
            };
            for (raises, sees) in [(Release, Acquire), (AcquireRelease, AcquireRelease)] {
                let (results, _) = results(raises, sees);
                assert!(results.contains(&vec![0, 1, 1]) && !results.contains(&stale), "{raises:?}, {sees:?}: {results:?}");
            }
            for (raises, sees) in [(Relaxed, Relaxed), (Release, Relaxed), (Relaxed, Acquire), (Acquire, Release)] {
                let (results, sequential) = results(raises, sees);
                assert!(results.contains(&stale) && !sequential.contains(&stale), "{raises:?}, {sees:?}: {results:?}");
            }
        }
    }
}

/// A release sequence continues through any number of relaxed read-modify-writes. A store of another lane ends it.
#[test]
fn release_sequences() {
    let threads =
        |middle: Op, last: Op| [vec![store(0, 1, Relaxed), store(1, 1, Release)], vec![middle], vec![last, load(0, Relaxed)]];
    for last in [load(1, Acquire), add(1, 1, Acquire)] {
        let through = all(&threads(add(1, 4, Relaxed), last), &relaxed());
        assert!(through.contains(&vec![1, 5, 1]) && !through.contains(&vec![1, 5, 0]), "{through:?}");
        // The counter was incremented before the release, so the increment released nothing.
        assert!(through.contains(&vec![0, 4, 0]), "{through:?}");
    }
    let ended = all(&threads(store(1, 4, Relaxed), load(1, Acquire)), &relaxed());
    assert!(ended.contains(&vec![4, 0]) && ended.contains(&vec![1, 1]) && !ended.contains(&vec![1, 0]), "{ended:?}");
}

/// Two lanes write two variables in opposite orders. Each lane may win the variable that it wrote first, because writes to
/// different variables are not ordered. Only sequentially consistent fences would forbid this, and the machine has no such
/// fences.
#[test]
fn writes_to_different_variables_are_not_ordered() {
    let threads = |order, between: &[Op]| {
        let writer = |first, second| {
            let mut ops = vec![store(first, 1, order)];
            ops.extend(between);
            ops.extend([store(second, 2, order), barrier(), load(first, Relaxed)]);
            ops
        };
        [writer(0, 1), writer(1, 0)]
    };
    assert_eq!(all(&threads(Relaxed, &[]), &sequential()), set(&[[1, 2], [2, 1], [2, 2]]));
    for (order, between) in [(Relaxed, vec![]), (Release, vec![]), (Relaxed, vec![fence(AcquireRelease)])] {
        assert_eq!(all(&threads(order, &between), &relaxed()), set(&[[1, 1], [1, 2], [2, 1], [2, 2]]), "{order:?}");
    }
}

/// Memory passes from one lane to another. The second owner's write may lose against the first owner's, unless the lanes release
/// and acquire.
#[test]
fn writes_before_and_after_a_hand_over() {
    let lost = vec![0, 1, 1]; // the memory was handed over, and finally holds the first owner's value
    for (gives, takes) in [(Relaxed, Relaxed), (Relaxed, Acquire), (Release, Relaxed), (Release, Acquire)] {
        let threads = [
            vec![store(0, 1, Relaxed), swap(1, 0, 1, gives), barrier()],
            vec![swap(1, 1, 0, takes), store(0, 2, Relaxed), barrier(), load(0, Relaxed)],
        ];
        let results = all(&threads, &relaxed());
        assert!(results.contains(&vec![0, 1, 2]), "{results:?}");
        assert_eq!(results.contains(&lost), (gives, takes) != (Release, Acquire), "{gives:?}, {takes:?}: {results:?}");
        assert!(!all(&threads, &sequential()).contains(&lost));
    }
}

/// A lane also passes on the values that it has read: by release and acquire, or by fences.
#[test]
fn what_was_read_is_before_what_others_write() {
    let threads = |gives, takes| {
        [
            vec![store(0, 1, Relaxed), barrier()],
            vec![load(0, Relaxed), store(1, 1, gives), barrier()],
            vec![load(1, takes), store(0, 2, Relaxed), barrier(), load(0, Relaxed)],
        ]
    };
    assert!(!all(&threads(Release, Acquire), &relaxed()).contains(&vec![1, 1, 1]));
    assert!(all(&threads(Relaxed, Acquire), &relaxed()).contains(&vec![1, 1, 1]));
    assert!(all(&threads(Release, Relaxed), &relaxed()).contains(&vec![1, 1, 1]));
    let fenced = |release: &[Op], acquire: &[Op]| {
        let mut one = vec![store(0, 1, Relaxed)];
        one.extend(release);
        one.extend([store(1, 1, Relaxed), barrier()]);
        let mut other = vec![load(1, Relaxed)];
        other.extend(acquire);
        other.extend([store(0, 2, Relaxed), barrier(), load(0, Relaxed)]);
        all(&[one, other], &relaxed())
    };
    let (release, acquire) = (fence(Release), fence(Acquire));
    assert!(!fenced(&[release], &[acquire]).contains(&vec![1, 1]));
    assert!(fenced(&[release], &[]).contains(&vec![1, 1]));
    assert!(fenced(&[], &[acquire]).contains(&vec![1, 1]));
}

/// Writes to one variable have one order. This order keeps the order of each lane, and puts a write after the writes that its
/// lane has read.
#[test]
fn writes_to_one_variable_are_ordered() {
    let last = |writes: &[Op], others: &[Op]| {
        let with_barrier = |ops: &[Op]| [ops, &[barrier(), load(0, Relaxed)]].concat();
        all(&[with_barrier(writes), with_barrier(others)], &relaxed())
    };
    // Both lanes read the same last value.
    assert_eq!(last(&[store(0, 1, Relaxed), store(0, 2, Relaxed)], &[store(0, 3, Relaxed)]), set(&[[2, 2], [3, 3]]));
    // A lane that has read 1 or 2 writes after that value.
    let results = last(&[store(0, 1, Relaxed), store(0, 2, Relaxed)], &[load(0, Relaxed), store(0, 3, Relaxed)]);
    assert_eq!(results, set(&[[2, 0, 2], [2, 1, 2], [3, 0, 3], [3, 1, 3], [3, 2, 3]]));
    // After two stores of 16 bytes, one of them is complete. A store of 4 bytes comes before or after it.
    let wide = |value| store(0, value, Relaxed).of(16);
    let narrow = last(&[wide(1)], &[store(0, 2, Relaxed).at(4), wide(3)]);
    assert_eq!(narrow, set(&[[1, 1], [3, 3]]));
    let whole = [vec![wide(1), barrier()], vec![store(0, 2, Relaxed).at(4), barrier(), load(0, Relaxed).of(16)]];
    assert_eq!(all(&whole, &relaxed()), set(&[[1111], [1211]]));
}

/// No write comes between the read and the write of a read-modify-write. Apart from that, it is placed like a store.
#[test]
fn read_modify_writes_are_atomic() {
    // With a store of 5, the addition comes either before the store and is lost, or after it.
    let threads = [vec![add(0, 1, Relaxed), barrier(), load(0, Relaxed)], vec![store(0, 5, Relaxed), barrier()]];
    assert_eq!(all(&threads, &relaxed()), set(&[[0, 5], [5, 6]]));
    // With three additions, all add up, in some order.
    let adder = vec![add(0, 1, Relaxed), barrier(), load(0, Relaxed)];
    let three = all(&[adder.clone(), adder.clone(), adder], &relaxed());
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    assert_eq!(three, orders.iter().map(|[a, b, c]| vec![*a, 3, *b, 3, *c, 3]).collect());
    // A lane that knows about the store only through a relaxed flag may add before the store. A lane that has acquired the flag
    // may not.
    let threads = |raises, sees| {
        [
            vec![store(0, 5, Relaxed), store(1, 1, raises), barrier()],
            vec![load(1, sees), add(0, 1, Relaxed), barrier(), load(0, Relaxed)],
        ]
    };
    assert!(all(&threads(Relaxed, Relaxed), &relaxed()).contains(&vec![1, 0, 5]));
    assert!(!all(&threads(Release, Acquire), &relaxed()).contains(&vec![1, 0, 5]));
    assert!(!all(&threads(Relaxed, Relaxed), &sequential()).contains(&vec![1, 0, 5]));
}

/// Load buffering is not modelled: no lane reads a write that is carried out after the lane's own later steps.
#[test]
fn load_buffering_is_not_modelled() {
    let threads = [vec![load(0, Relaxed), store(1, 1, Relaxed)], vec![load(1, Relaxed), store(0, 1, Relaxed)]];
    assert_eq!(all(&threads, &relaxed()), set(&[[0, 0], [0, 1], [1, 0]]));
}

/// A plain write ends the history of its variable: a later store comes after it.
#[test]
fn plain_writes_are_ordered_by_what_happened_before() {
    let threads = [
        vec![store(0, 1, Relaxed), store(0, 2, Weak), store(1, 1, Release), barrier()],
        vec![load(1, Acquire), barrier(), store(0, 3, Relaxed), load(0, Relaxed), barrier(), load(0, Relaxed)],
    ];
    let one = [threads[0].clone(), vec![barrier()]].concat();
    assert_eq!(all(&[one, threads[1].clone()], &relaxed()), set(&[[0, 3, 3], [1, 3, 3]]));
}

/// Cumulativity: with the values that a lane writes, it also passes on the values that it has read.
#[test]
fn what_was_read_is_passed_on() {
    let threads = |read, write| {
        [vec![store(0, 1, Relaxed)], vec![load(0, read), store(1, 1, write)], vec![load(1, Acquire), load(0, Relaxed)]]
    };
    assert!(!all(&threads(Relaxed, Release), &relaxed()).contains(&vec![1, 1, 0]));
    assert!(all(&threads(Relaxed, Relaxed), &relaxed()).contains(&vec![1, 1, 0]));
}

#[test]
fn store_buffering() {
    let threads = [vec![store(0, 1, Relaxed), load(1, Relaxed)], vec![store(1, 1, Relaxed), load(0, Relaxed)]];
    assert!(!all(&threads, &sequential()).contains(&vec![0, 0]));
    assert!(all(&threads, &relaxed()).contains(&vec![0, 0]));
}

#[test]
fn independent_reads_of_independent_writes() {
    let threads = [
        vec![store(0, 1, Relaxed)],
        vec![store(1, 1, Relaxed)],
        vec![load(0, Acquire), load(1, Acquire)],
        vec![load(1, Acquire), load(0, Acquire)],
    ];
    assert!(!all(&threads, &sequential()).contains(&vec![1, 0, 1, 0]));
    assert!(all(&threads, &relaxed()).contains(&vec![1, 0, 1, 0]));
}

/// Two strong loads of one cell never return values in reverse order. Weak loads may.
#[test]
fn coherence() {
    let threads = |first, second| [vec![store(0, 1, Relaxed), store(0, 2, Relaxed)], vec![load(0, first), load(0, second)]];
    let backwards = [vec![2, 1], vec![2, 0], vec![1, 0]];
    let strong = all(&threads(Relaxed, Relaxed), &relaxed());
    assert!(backwards.iter().all(|result| !strong.contains(result)), "{strong:?}");
    let weak = all(&threads(Weak, Weak), &relaxed());
    assert!(backwards.iter().all(|result| weak.contains(result)), "{weak:?}");
    let after_strong = all(&threads(Relaxed, Weak), &relaxed());
    assert!(backwards.iter().all(|result| !after_strong.contains(result)), "{after_strong:?}");
}

#[test]
fn own_writes_are_seen() {
    for order in [Weak, Relaxed] {
        let threads = [vec![store(0, 1, order), load(0, order)], vec![]];
        assert_eq!(all(&threads, &relaxed()), set(&[[1]]));
    }
}

/// Read-modify-writes act on the newest value, so exactly one of two wins.
#[test]
fn compare_and_swap() {
    let threads = [vec![swap(0, 0, 1, Relaxed)], vec![swap(0, 0, 2, Relaxed)], vec![load(0, Relaxed)]];
    let results = all(&threads, &relaxed());
    assert!(results.iter().all(|result| matches!(result[..2], [0, 1] | [2, 0])), "{results:?}");
    assert!(results.contains(&vec![0, 1, 0]), "a load may come first, or see what was there before");
}

/// A barrier orders the accesses before it and after it, on both sides.
#[test]
fn barriers() {
    let threads =
        [vec![store(0, 1, Relaxed), barrier(), load(1, Relaxed)], vec![store(1, 1, Relaxed), barrier(), load(0, Relaxed)]];
    assert_eq!(all(&threads, &relaxed()), set(&[[1, 1]]));
}

/// A 16-byte access is read as a whole, but torn on a machine that tears loads.
#[test]
fn wide_loads() {
    let threads = [vec![swap(0, 0, 1, Relaxed).of(16)], vec![load(0, Relaxed).of(16)]];
    let whole = set(&[[0, 0], [0, 1111]]);
    for rules in [relaxed(), sequential()] {
        assert_eq!(all(&threads, &rules), whole);
        let torn = Rules { loads: Loads { torn: true, ..rules.loads }, ..rules };
        let results = all(&threads, &torn);
        assert!(results.contains(&vec![0, 11]) && results.is_superset(&whole), "{results:?}");
        assert_eq!(results.contains(&vec![0, 1100]), rules.loads.stale, "halves are read in order, but either may be stale");
    }
}

/// Accesses of different sizes to the same bytes agree with each other.
#[test]
fn mixed_sizes() {
    let threads =
        [vec![swap(0, 0, 1, Relaxed).of(16)], vec![load(0, Relaxed).of(16), load(0, Relaxed).at(8), load(0, Relaxed).of(8)]];
    let results = all(&threads, &relaxed());
    assert!(results.iter().all(|result| result[1] == 0 || result[2..] == [1, 11]), "{results:?}");
    assert!(results.contains(&vec![0, 0, 1, 11]));
}

/// Random schedules give only results of the exhaustive search and, if there are enough schedules, all of them.
#[test]
fn random_searches_find_what_there_is() {
    let threads = [
        vec![store(0, 1, Relaxed), store(1, 1, Relaxed)],
        vec![load(1, Relaxed), load(0, Relaxed)],
        vec![swap(0, 1, 3, Relaxed), load(1, Relaxed)],
    ];
    let there = all(&threads, &relaxed());
    let found = |scheduler: &dyn Fn(u64) -> Box<dyn Scheduler>| -> BTreeSet<Vec<u64>> {
        let mut memory = Memory::new(4096);
        (0..5000)
            .filter_map(|seed| once(&mut memory, &threads, &relaxed(), scheduler(seed).as_mut()).expect("no fault"))
            .collect()
    };
    assert_eq!(found(&|seed| Box::new(Random::new(seed))), there);
    assert_eq!(found(&|seed| Box::new(Pct::new(seed, 3, 6))), there);
    // All lanes belong to one warp here. In lock-step they execute one line together, so some orders do not occur.
    let lock_step = found(&|seed| Box::new(LockStep::new(seed)));
    assert!(lock_step.is_subset(&there) && lock_step.len() < there.len(), "{} of {}", lock_step.len(), there.len());
}

/// Among n lanes and k steps, at least one of n k runs finds a bug of depth 2. This bug requires the last step of one lane before
/// the first step of another; the other lanes only add steps.
#[test]
fn pct_keeps_its_bound() {
    let mut long = vec![load(2, Relaxed); 18];
    long.push(store(0, 1, Relaxed));
    let threads = [long, vec![load(0, Relaxed), store(1, 1, Relaxed)], vec![load(1, Relaxed)]];
    let (lanes, steps) = (3, 22);
    let mut memory = Memory::new(4096);
    let runs = 6600;
    let hits = (0..runs).filter(|seed| {
        let result = once(&mut memory, &threads, &sequential(), &mut Pct::new(*seed, 2, steps)).expect("no fault");
        result.expect("it ends")[18..] == [1, 1]
    });
    let hits = hits.count() as u64;
    assert!(hits >= runs / (lanes * steps), "{hits} of {runs}");
}

/// A schedule that was recorded, printed and parsed gives the same run.
#[test]
fn schedules_can_be_repeated() {
    let threads = [
        vec![store(0, 1, Relaxed), store(1, 1, Relaxed), load(1, Relaxed)],
        vec![load(1, Relaxed), load(0, Relaxed), store(1, 2, Relaxed)],
        vec![load(1, Relaxed), swap(1, 1, 3, Relaxed), load(0, Relaxed)],
    ];
    let mut memory = Memory::new(4096);
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let mut recorder = Recorder::new(&mut random);
        let result = once(&mut memory, &threads, &relaxed(), &mut recorder).expect("no fault");
        let schedule: Schedule = recorder.schedule.to_string().parse().expect("its own text");
        assert_eq!(schedule, recorder.schedule);
        assert!(schedule.0.iter().filter(|decision| matches!(decision, Decision::Lane(_))).count() == 9);
        assert_eq!(once(&mut memory, &threads, &relaxed(), &mut Replay::new(schedule)).expect("no fault"), result);
    }
}

#[test]
fn races_are_found_in_any_order() {
    let racy = |one: Op, other: Op| [vec![one], vec![other]];
    let mut memory = Memory::new(4096);
    let mut fault_of =
        |threads: &[Vec<Op>], seed: u64| once(&mut memory, threads, &Rules::default(), &mut Random::new(seed)).err();
    for seed in 0..20 {
        for threads in [
            racy(store(0, 1, Weak), load(0, Weak)),
            racy(store(0, 1, Weak), load(0, Relaxed)),
            racy(store(0, 1, Relaxed), load(0, Weak)),
            racy(store(0, 1, Weak), store(0, 1, Relaxed)),
            racy(swap(0, 0, 1, Relaxed), load(0, Weak)),
            racy(store(0, 1, Weak), load(0, Acquire).of(16)),
        ] {
            assert!(matches!(fault_of(&threads, seed).as_deref(), Some(Fault::DataRace { .. })), "seed {seed}");
        }
        for threads in [
            racy(load(0, Weak), load(0, Weak)),
            racy(store(0, 1, Relaxed), load(0, Relaxed)),
            racy(store(0, 1, Weak), load(0, Weak).at(4)),
            [vec![store(0, 1, Weak), barrier()], vec![barrier(), load(0, Weak)]],
        ] {
            assert_eq!(fault_of(&threads, seed), None, "seed {seed}");
        }
    }
}
