//! Negative controls: each known-wrong algorithm must be caught for the expected reason, and the right one next to it must
//! survive the same explorations.
//!
//! `WARPSET_TEST_FULL=1 cargo test -p warpset-simt --test simulator -- controls:: --nocapture --test-threads 1` prints the speed:
//! one line per control and strategy. A plain run has the same controls, with fewer explorations and fewer schedules to survive.
//!
//! Keeps this promise of `src/docs/negative_controls.md`:
//!
//! - Each wrong algorithm is caught with the fault that it is known to have; the correct version beside it survives.

use warpset_simt::controls::*;
use warpset_simt::exhaustive::{Alike, Exhaustive};
use warpset_simt::explorer::{Catch, Cause, Program, Strategy, explore};
use warpset_simt::growth::{Growth, Mistake};
use warpset_simt::machine::{Rules, run};
use warpset_simt::memory::{Loads, Memory};
use warpset_simt::schedule::{Decision, Replay, Schedule};
use warpset_simt::stress::{Scale, Stress};
use warpset_simt::table::{self, FIND, GIVE, Kernels, PUT, SCAN, TAKE};
use warpset_testing::sizes::full;

const RANDOM: Strategy = Strategy::Random;
const PCT: Strategy = Strategy::Pct(3);
const LOCK_STEP: Strategy = Strategy::LockStep;
const EXHAUSTIVE: Strategy = Strategy::Exhaustive;
const ALL: &[Strategy] = &[RANDOM, PCT, LOCK_STEP, EXHAUSTIVE];
/// Strategies that choose at random.
const SAMPLING: &[Strategy] = &[RANDOM, PCT, LOCK_STEP];

/// Number of explorations for each strategy. Each has its own seeds, because a single exploration could be lucky.
fn explorations() -> u64 {
    if full() { 10 } else { 2 }
}
/// Number of schedules after which an exploration fails if it has caught nothing.
const MOST: u64 = 20_000;
/// Number of schedules that a right program must survive. In a full run it is more than any exploration of a wrong program needs.
fn survived() -> u64 {
    if full() { 2_000 } else { 200 }
}

fn bucket(width: u32, chunk: u32, line: u32) -> &'static Kernels {
    table::bucket(width, chunk, line).expect("a spec of every build")
}

fn indexed(width: u32, slot_bits: u32) -> &'static Kernels {
    table::indexed(width, slot_bits).expect("a spec of every build")
}

/// Rules for small programs: a lane that makes no progress in 1,000 steps never makes any.
fn rules() -> Rules {
    Rules { patience: 1000, ..Rules::default() }
}

fn loads(loads: Loads) -> Rules {
    Rules { loads, races: false, ..rules() }
}

/// Asserts that in every exploration each strategy catches the program, for one of these reasons. Returns the last catch.
fn caught(mut program: impl Program, rules: &Rules, strategies: &[Strategy], reasons: &[&str]) -> Box<Catch> {
    let mut last = None;
    for &strategy in strategies {
        let explorations = if strategy == EXHAUSTIVE { 1 } else { explorations() };
        let catches: Vec<Box<Catch>> = (0..explorations)
            .map(|number| match explore(&mut program, strategy, rules, number * MOST, MOST) {
                Ok(effort) => panic!("{}: {strategy} did not catch it: {effort}", program.name()),
                Err(catch) => catch,
            })
            .collect();
        println!("{}", speed(&format!("{}{}", program.name(), machine(rules)), strategy, &catches));
        for catch in &catches {
            assert!(reasons.contains(&catch.cause.rule()), "not for one of {reasons:?}, but: {catch}");
        }
        last = catches.into_iter().last();
    }
    last.expect("some strategy")
}

/// Describes how the machine differs from a correct one with race detection.
fn machine(rules: &Rules) -> String {
    let differences = [(rules.loads.torn, " torn"), (rules.loads.weak, " weak"), (!rules.races, " unwatched")];
    differences.into_iter().filter_map(|(differs, how)| differs.then_some(how)).collect()
}

/// Formats the means over the explorations, and the slowest exploration.
fn speed(name: &str, strategy: Strategy, catches: &[Box<Catch>]) -> String {
    let count = catches.len() as f64;
    let mean = |of: &dyn Fn(&Catch) -> f64| catches.iter().map(|catch| of(catch)).sum::<f64>() / count;
    let length = |catch: &Catch| steps(&catch.schedule) as f64;
    let schedules = mean(&|catch| catch.effort.schedules as f64);
    let slowest = catches.iter().map(|catch| catch.effort.schedules).max().unwrap_or(0);
    let steps = mean(&|catch| catch.effort.steps as f64 + length(catch));
    let time = mean(&|catch| catch.effort.time.as_secs_f64()) * 1e3;
    let mut rules: Vec<&str> = catches.iter().map(|catch| catch.cause.rule()).collect();
    rules.sort_unstable();
    rules.dedup();
    format!(
        "{name:<60} {:<10} {schedules:>7.1} schedules (at most {slowest:>4}), {steps:>8.0} steps, {time:>7.2} ms: {}, in {:.0} steps",
        strategy.to_string(),
        rules.join(", "),
        mean(&length)
    )
}

fn steps(schedule: &Schedule) -> usize {
    schedule.0.iter().filter(|decision| matches!(decision, Decision::Lane(_))).count()
}

fn survives(mut program: impl Program, rules: &Rules, strategies: &[Strategy]) {
    for &strategy in strategies {
        match explore(&mut program, strategy, rules, 0, survived()) {
            Ok(effort) => println!("{:<60} {:<10} survives {effort}", program.name() + &machine(rules), strategy.to_string()),
            Err(catch) => panic!("{catch}"),
        }
    }
}

/// Returns the control in one warp and in separate blocks, with and without stale loads.
fn everywhere(algorithm: Algorithm, case: Case) -> [Control; 4] {
    let control = || Control::new(algorithm, case.clone());
    [control(), control().apart(), control().sequential(), control().apart().sequential()]
}

/// The positive control: a right algorithm survives all trials of the wrong ones.
#[test]
fn chained_claiming_survives() {
    for algorithm in [CHAINED, BACKWARDS] {
        for case in [Case::equal(), Case::different(), Case::prefix(), Case::crowd(), Case::crowd_and_find()] {
            everywhere(algorithm, case).into_iter().for_each(|control| survives(control, &rules(), ALL));
        }
    }
}

/// Every algorithm is right without concurrency. (Lanes that work together are concurrent with each other, so this test runs on a
/// machine without stale loads and race detection.)
#[test]
fn alone_all_survive() {
    let unwatched = Rules { races: false, ..rules() };
    let alone = |algorithm, case| survives(Control::new(algorithm, case).alone().sequential(), &unwatched, &[EXHAUSTIVE]);
    for &algorithm in ALGORITHMS {
        if algorithm.moves() {
            [Case::evicted(), Case::evicted_and_put()].into_iter().for_each(|case| alone(algorithm, case));
        } else {
            [Case::equal(), Case::different(), Case::prefix(), Case::crowd()].into_iter().for_each(|case| alone(algorithm, case));
        }
    }
    alone(PUT_BACKWARDS_FIND_FORWARDS, Case::crowd_and_find());
}

/// GPUexplore 1.0 claims only the first word. The same vector is stored twice, and is New twice.
#[test]
fn gpuexplore_1() {
    for control in everywhere(GPUEXPLORE_1, Case::equal()) {
        caught(control, &rules(), ALL, &["replication"]);
    }
}

/// GPUexplore 2.0 assumes that claiming all words at once is atomic. Because it is not, vectors are mixed or stored twice.
#[test]
fn gpuexplore_2() {
    for (case, reason) in [(Case::different(), "mixed vectors"), (Case::equal(), "replication")] {
        caught(Control::new(GPUEXPLORE_2, case.clone()), &rules(), ALL, &[reason]);
        caught(Control::new(GPUEXPLORE_2, case.clone()).sequential(), &rules(), ALL, &[reason]);
        // The assumption holds if all lanes of a warp do an instruction before another warp continues.
        let apart = || Control::new(GPUEXPLORE_2, case.clone()).apart().sequential();
        survives(apart(), &rules(), &[LOCK_STEP]);
        caught(apart(), &rules(), &[RANDOM, PCT, EXHAUSTIVE], &[reason]);
    }
}

/// A lane of the thesis' table waits for the lane that writes. If the scheduler never runs the writing lane, it waits for ever.
#[test]
fn thesis_spinlock() {
    caught(Control::new(THESIS_SPINLOCK, Case::equal()), &rules(), &[LOCK_STEP], &["livelock"]);
    // PCT is just as unfair: it prefers the waiting lane.
    caught(Control::new(THESIS_SPINLOCK, Case::equal()), &rules(), &[PCT], &["livelock"]);
    for case in [Case::equal(), Case::different(), Case::prefix(), Case::crowd()] {
        for control in everywhere(THESIS_SPINLOCK, case.clone()) {
            survives(control, &rules(), &[RANDOM]);
        }
        survives(Control::new(THESIS_SPINLOCK, case).apart(), &rules(), &[LOCK_STEP]);
    }
}

/// Without release and acquire, the thesis' table can fail under any schedule: a lane may find that the mark has disappeared, and
/// still read old values of the words that the mark guards.
#[test]
fn thesis_spinlock_without_order() {
    let control = || Control::new(THESIS_SPINLOCK_RELAXED, Case::equal());
    caught(control(), &rules(), &[RANDOM], &["replication"]);
    caught(control().apart(), &rules(), &[RANDOM, LOCK_STEP], &["replication"]);
    survives(control().sequential(), &rules(), &[RANDOM]);
}

/// The real headers on a machine whose 16-byte load is two loads of 8 bytes: a lane mistakes half a chunk for another chunk.
#[test]
fn chained_torn() {
    for stale in [true, false] {
        let torn = loads(Loads { torn: true, stale, ..Loads::default() });
        for alike in [Alike::Nothing, Alike::AllButLast] {
            let trial = Exhaustive::of_lanes(bucket(4, 16, 64), alike, vec![vec![(PUT, 0)], vec![(PUT, 0), (PUT, 1)]], stale);
            caught(trial, &torn, ALL, &["replication"]);
        }
        for kernels in [table::bucket(4, 16, 64), table::bucket(8, 16, 64)].into_iter().flatten() {
            // Possible results: a replica; Full, if a replica finds no slot; Seen in a slot without the vector, if the load that
            // confirms the match is torn, too.
            caught(
                Stress::new(kernels, Scale::Lanes, stale),
                &torn,
                SAMPLING,
                &["replication", "Full but stored", "unequal references"],
            );
        }
        // Chunks of 8 bytes cannot be torn.
        survives(Stress::new(bucket(4, 8, 32), Scale::Lanes, stale), &torn, SAMPLING);
    }
}

/// The real headers on a machine where a stale line may serve every load.
#[test]
fn chained_stale() {
    let weak = loads(Loads { weak: true, ..Loads::default() });
    for kernels in [bucket(4, 16, 64), bucket(4, 8, 32)] {
        caught(Stress::new(kernels, Scale::Lanes, true), &weak, SAMPLING, &["forgotten vector", "misread"]);
        caught(Stress::new(kernels, Scale::Lanes, true), &Rules { races: true, ..weak }, SAMPLING, &["data race"]);
    }
}

/// Chained claiming that loads a chunk again after a lost compare-and-swap, instead of using the value that the compare-and-swap
/// returned.
#[test]
fn chained_looks_again() {
    let unwatched = Rules { races: false, ..rules() };
    for algorithm in [LOOKS_AGAIN_TOGETHER_WEAK, LOOKS_AGAIN_TOGETHER_RELAXED] {
        caught(Control::new(algorithm, Case::equal()), &unwatched, ALL, &["replication"]);
    }
    for algorithm in [LOOKS_AGAIN_WEAK, LOOKS_AGAIN_TOGETHER_WEAK] {
        caught(Control::new(algorithm, Case::equal()), &rules(), ALL, &["data race"]);
    }
    // The lane that lost loads again. Its compare-and-swap has read the value, and in the model (src/memory) no later load of
    // that lane returns an older value, not even a weak load. So only the race detector objects.
    survives(Control::new(LOOKS_AGAIN_WEAK, Case::equal()), &unwatched, ALL);
}

/// Lanes that claim the chunks of a slot in different orders mix vectors. Lanes that find in another order than they put miss
/// stored vectors.
#[test]
fn chained_out_of_order() {
    for control in everywhere(OUT_OF_ORDER, Case::different()) {
        caught(control, &rules(), ALL, &["mixed vectors"]);
    }
    caught(Control::new(OUT_OF_ORDER, Case::equal()), &rules(), ALL, &["no New"]);
    for control in everywhere(PUT_BACKWARDS_FIND_FORWARDS, Case::crowd_and_find()) {
        caught(control, &rules(), &[RANDOM, PCT], &["forgotten vector"]);
    }
}

/// The last chunk is stored without a claim, so each lane believes that it was first.
#[test]
fn chained_last_stored() {
    for control in everywhere(LAST_STORED, Case::equal()) {
        caught(control, &rules(), ALL, &["two New"]);
    }
    for control in everywhere(LAST_STORED, Case::prefix()) {
        caught(control, &rules(), ALL, &["lost vector"]);
    }
}

/// A key that cuckoo hashing has evicted is in no slot until it arrives at its other slot.
#[test]
fn cuckoo_find() {
    for make in [|| Control::new(CUCKOO, Case::evicted()), || Control::new(CUCKOO, Case::evicted()).sequential()] {
        caught(make(), &rules(), &[RANDOM, PCT, EXHAUSTIVE], &["forgotten vector"]);
        caught(make().apart(), &rules(), &[LOCK_STEP], &["forgotten vector"]);
        // In lock-step, diverged lanes of a warp do not interrupt each other.
        survives(make(), &rules(), &[LOCK_STEP]);
    }
    caught(Control::new(CUCKOO, Case::evicted_and_put()).sequential(), &rules(), &[RANDOM], &["replication"]);
}

/// Tree tables with one wrong part are caught. The correct table survives the same scripts.
#[test]
fn trees() {
    let trial = |control: TableControl, alike, players: &[&[Call]], stale| {
        let players = players.iter().map(|calls| calls.to_vec()).collect();
        Exhaustive::of_lanes(table::tree(4, 8, 32).expect("a spec of every build"), alike, players, stale)
            .by(control.0, control.1)
    };
    let scanned: &[&[Call]] = &[&[(PUT, 0)], &[(SCAN, 0), (SCAN, 0)]];
    let given: &[&[Call]] = &[&[(GIVE, 0)], &[(TAKE, 0), (TAKE, 0)]];
    let both: &[&[Call]] = &[&[(PUT, 0)], &[(PUT, 1)]];
    for players in [scanned, given, both] {
        survives(trial(TREE, Alike::AllButLast, players, true), &rules(), ALL);
        survives(trial(TREE, Alike::AllButLast, players, false), &rules(), ALL);
    }
    // A lane may read a root before it can read the root's nodes, because nothing orders them.
    let not_in_step = &[RANDOM, PCT, EXHAUSTIVE];
    caught(trial(TREE_SCAN_BELIEVES, Alike::Nothing, scanned, true), &rules(), not_in_step, &["wrong row"]);
    survives(trial(TREE_SCAN_BELIEVES, Alike::Nothing, scanned, false), &rules(), ALL);
    caught(trial(TREE_GIVEN_RELAXED, Alike::Nothing, given, true), &rules(), not_in_step, &["wrong row"]);
    survives(trial(TREE_GIVEN_RELAXED, Alike::Nothing, given, false), &rules(), ALL);
    for stale in [true, false] {
        // If one node overwrites a different one, a vector is lost. If it overwrites an equal one, both count as new.
        caught(trial(TREE_NODES_STORED, Alike::AllButLast, both, stale), &rules(), ALL, &["lost vector", "wrong count"]);
        caught(trial(TREE_NODES_STORED_PLAINLY, Alike::AllButLast, both, stale), &rules(), ALL, &["data race"]);
    }
}

/// Indexed tables with one wrong part are caught. The correct table survives the same scripts.
#[test]
fn indexed_tables() {
    let trial = |control: TableControl, players: &[&[Call]], stale| {
        let players = players.iter().map(|calls| calls.to_vec()).collect();
        Exhaustive::of_lanes(indexed(2, 64), Alike::Nothing, players, stale).by(control.0, control.1)
    };
    let equal: &[&[Call]] = &[&[(PUT, 0)], &[(PUT, 0)]];
    let both: &[&[Call]] = &[&[(PUT, 0), (PUT, 1)], &[(PUT, 1), (PUT, 0)]];
    let found: &[&[Call]] = &[&[(PUT, 0)], &[(FIND, 0), (PUT, 0)]];
    for right in [INDEXED, INDEXED_FENCED] {
        for players in [equal, both, found] {
            survives(trial(right, players, true), &rules(), ALL);
            survives(trial(right, players, false), &rules(), ALL);
        }
    }
    // A lane reads an earlier state of the row, so it assumes that the row belongs to another vector.
    let unordered = [
        INDEXED_PUBLISHED_RELAXED,
        INDEXED_READ_WITHOUT_ACQUIRE,
        INDEXED_LOST_WITHOUT_ACQUIRE,
        INDEXED_FENCED_BEFORE_WRITING,
        INDEXED_FENCED_AFTER_CLAIMING,
        INDEXED_READ_WITHOUT_FENCE,
        INDEXED_LOST_WITHOUT_FENCE,
    ];
    for control in unordered.iter().chain(&[INDEXED_PUBLISHED_FIRST]) {
        caught(trial(*control, equal, true), &rules(), &[RANDOM, PCT, EXHAUSTIVE], &["replication"]);
    }
    for control in unordered {
        survives(trial(control, equal, false), &rules(), ALL);
    }
    caught(trial(INDEXED_PUBLISHED_FIRST, equal, false), &rules(), &[RANDOM, PCT, EXHAUSTIVE], &["replication"]);
    for stale in [true, false] {
        caught(trial(INDEXED_NEXT_WITHOUT_COMPARING, equal, stale), &rules(), ALL, &["replication"]);
    }
}

#[test]
fn data_races() {
    for racy in [Breach::scratch_voted, Breach::plain_store_atomic_load] {
        caught(racy(), &rules(), ALL, &["data race"]);
    }
    survives(Breach::scratch_synced(), &rules(), ALL);
}

#[test]
fn collectives() {
    for divergent in [Breach::two_votes, Breach::leaves_before_the_vote, Breach::barrier_in_a_branch] {
        caught(divergent(), &rules(), ALL, &["divergent collective"]);
    }
    caught(Breach::vote_of_a_whole_warp(), &rules(), ALL, &["deadlock"]);
    caught(Breach::waits_before_the_barrier(), &rules(), ALL, &["livelock"]);
    survives(Breach::one_vote(), &rules(), ALL);
    survives(Breach::barrier_between(), &rules(), ALL);
}

#[test]
fn bounds_and_alignment() {
    for beyond in [
        Breach::plain_load_past_the_end,
        Breach::plain_store_past_the_end,
        Breach::atomic_load_past_the_end,
        Breach::compare_and_swap_past_the_end,
    ] {
        caught(beyond(), &rules(), ALL, &["out of bounds"]);
    }
    for misaligned in
        [Breach::misaligned_load, Breach::misaligned_compare_and_swap, Breach::misaligned_row, Breach::misaligned_input]
    {
        caught(misaligned(), &rules(), ALL, &["misaligned"]);
    }
    survives(Breach::load_of_the_last(), &rules(), ALL);
    survives(Breach::aligned_load(), &rules(), ALL);
}

/// Only accesses of any space may be to shared memory.
#[test]
fn spaces() {
    for global in [Breach::shared_load, Breach::shared_compare_and_swap, Breach::shared_store, Breach::shared_fetch_add] {
        caught(global(), &rules(), ALL, &["not global"]);
    }
    survives(Breach::shared_as_such(), &rules(), ALL);
}

/// A lane must write a node before it publishes the node, and read it afterwards. On a GPU only release and acquire (or fences)
/// guarantee that.
#[test]
fn publication() {
    caught(Breach::published_relaxed(), &rules(), ALL, &["misread"]);
    caught(Breach::published_plain_relaxed(), &rules(), ALL, &["data race"]);
    for ordered in [Breach::published_by_orders, Breach::published_plain_by_orders, Breach::published_plain_by_fences] {
        survives(ordered(), &rules(), ALL);
    }
}

/// A lookup that uses the filter of a bucket table on a CPU always finds a vector that an earlier call has put or found. Each
/// access of the rule (src/backend/cpu/filter.rs) is needed. Only the proof in filter.rs shows that the addition of a put must
/// acquire: no version here lacks this acquire.
#[test]
fn filters() {
    survives(Breach::filter(), &rules(), ALL);
    for wrong in [
        Breach::filter_ignores_puts,
        Breach::filter_loads_puts,
        Breach::filter_lookup_relaxed,
        Breach::filter_begins_late,
        Breach::filter_ends_early,
        Breach::filter_ends_relaxed,
    ] {
        caught(wrong(), &rules(), &[RANDOM, PCT, EXHAUSTIVE], &["misread"]);
    }
}

/// A report names the lane, the access, the memory and the line of code, and says how to repeat the run. A repeated run gives the
/// same report.
#[test]
fn reports() {
    for &strategy in ALL {
        let mut control = Control::new(GPUEXPLORE_1, Case::equal());
        let catch = caught(Control::new(GPUEXPLORE_1, Case::equal()), &rules(), &[strategy], &["replication"]);
        let report = catch.to_string();
        let line = |needle: &str| {
            1 + include_str!("../cpp/controls/claiming.h").lines().position(|line| line.contains(needle)).expect(needle)
        };
        let claim = line("compare_and_swap_relaxed(script.chunk(slot, 0), EMPTY, vector[0])");
        for needed in [
            "gpuexplore1-equal: replication: slots 0 and 1 both hold [a0, 0, a1, 0, a2, 0]",
            &format!("found by {strategy}, seed {}", catch.seed),
            "grid 0 block 0 warp 0 lane 0",
            "grid 0 block 0 warp 0 lane 1",
            "slots+0x0 ",
            "slots+0x28 ",
            "compare-and-swap 0xffffffffffffffff -> 0x00000000000000a0  [",
            "store 0x00000000000000a2",
            &format!("[claiming.h:{claim}]"),
            "to see it again: WARPSET_SIMT_REPLAY='gpuexplore1-equal ",
        ] {
            assert!(report.contains(needed), "{needed:?} is not in:\n{report}");
        }

        let schedule: Schedule = catch.schedule.to_string().parse().expect("its own text");
        assert_eq!(schedule, catch.schedule);
        let mut memory = Memory::new(control.memory_bytes());
        let grids = control.set_up(&mut memory, catch.seed).remove(0);
        // SAFETY: the kernel was compiled for this machine. Its argument and operations are in `control`, all other data in
        // `memory`.
        let again = unsafe { run(&mut memory, &grids, &rules(), &mut Replay::new(schedule), None) };
        let (ending, _) = again.expect("no fault of the machine");
        assert_eq!(control.judge(&memory, ending).map_err(Cause::Wrong), Err(catch.cause));
    }
}

/// The host makes mistakes with the rows of a growing table. (indexed.rs shows that a correct host survives.)
#[test]
fn hosts_that_grow_a_table_wrongly_are_caught() {
    for (mistake, reasons) in [
        (Mistake::ForgetsSpares, &["lost row"][..]),
        (Mistake::ListsTwice, &["row"]),
        (Mistake::KeepsNumbers, &["lost row", "row"]),
        (Mistake::BelievesHoles, &["rebuilt"]),
    ] {
        caught(Growth::new(indexed(2, 32)).with(mistake), &Rules::default(), SAMPLING, reasons);
    }
}
