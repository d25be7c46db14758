//! Simulation: random walks through a model, without a table.
//!
//! A walk starts in the initial state and takes a random possible step each time, every one with the same probability. It ends in
//! a deadlock, at a violation or after a given number of steps. Walk number w of a seed is always the same, whatever the engine
//! and the number of threads are: its random numbers depend only on the seed and w, and every engine lists the steps of a state
//! in the same order. So walks are not recorded: if a walk finds a violation, the interpreter repeats it, and its states are the
//! path.

use crate::successors::{Expansion, Interpreted, Scratch, Successors};
use anyhow::{Result, bail};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use warpset_model::checks::Violation;
use warpset_random::{INCREMENT, mix};
use warpset_support::stopping::Stop;

/// Number of steps between two checks whether to stop.
const STRIDE: u64 = 1 << 16;

/// The walks to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walks {
    pub walks: u64,
    /// Maximum number of steps of a walk.
    pub depth: u64,
    pub seed: u64,
}

/// Random numbers: SplitMix64 (Steele and others 2014). Mirrored by `Random` in walk.cuh.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Random(u64);

impl Random {
    /// The random numbers of a walk.
    pub fn of_walk(seed: u64, walk: u64) -> Self {
        let start = Self(seed).next();
        Self(start ^ Self(walk.wrapping_mul(0xd134_2543_de82_ef95)).next())
    }

    fn next(&mut self) -> u64 {
        let number = mix(self.0);
        self.0 = self.0.wrapping_add(INCREMENT);
        number
    }

    /// Returns a random number below `count`, which must be less than 2^32.
    fn below(&mut self, count: u64) -> usize {
        (((self.next() >> 32) * count) >> 32) as usize
    }
}

/// Why a part of a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The requested number of steps was taken.
    Steps,
    /// The state has no step.
    Deadlock,
    /// A condition does not hold, or an expression cannot be evaluated.
    Violation,
}

/// Takes steps of walks.
pub trait Walker: Sync {
    /// Reusable memory of a thread.
    type Memory: Default;

    /// Takes at most `most` steps from `state`, and stores the last state there. Returns the number of steps taken, the number of
    /// overflowing stores in the states that were passed, and why the steps ended. Also checks the last state, unless `most`
    /// steps were taken.
    fn walk(&self, state: &mut Vec<u32>, random: &mut Random, most: u64, memory: &mut Self::Memory) -> (u64, u64, Ended);
}

/// Result of a simulation.
#[derive(Clone, Debug, Default)]
pub struct Simulation {
    /// Number of walks that have ended.
    pub walks: u64,
    pub steps: u64,
    /// Number of walks that ended in a state without a step.
    pub deadlocks: u64,
    /// Number of steps of the longest walk.
    pub longest: u64,
    /// Number of stores that wrapped their value.
    pub overflows: u64,
    /// Number of the first walk with a violation.
    pub found: Option<u64>,
    /// Why the simulation ended before all walks were taken.
    pub stopped: Option<Stop>,
}

/// Takes all walks with `threads` threads, or ends when a walk finds a violation. If `deadlocks` is set, a state without a step
/// is a violation.
///
/// `found` is the smallest number of all walks that find a violation, because walks with smaller numbers are always finished.
pub fn simulate<W: Walker>(
    walker: &W,
    initial: &[u32],
    walks: Walks,
    deadlocks: bool,
    threads: usize,
    stop: fn() -> Option<Stop>,
) -> Simulation {
    let (next, found) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
    let stopped = Mutex::new(None);
    let work = || {
        let (mut memory, mut own) = (W::Memory::default(), Simulation::default());
        loop {
            // Relaxed, like all accesses here: each number goes to one thread, and no other data depends on these variables. A
            // thread that sees `found` late only takes a walk that does not matter.
            let walk = next.fetch_add(1, Ordering::Relaxed);
            if walk >= walks.walks || walk > found.load(Ordering::Relaxed) {
                return own;
            }
            let (mut state, mut random, mut steps) = (initial.to_vec(), Random::of_walk(walks.seed, walk), 0);
            loop {
                // The loop makes one more call at the end, which checks the last state.
                let (taken, overflows, ended) =
                    walker.walk(&mut state, &mut random, STRIDE.min(walks.depth - steps), &mut memory);
                steps += taken;
                own.overflows += overflows;
                let violates = ended == Ended::Violation || (deadlocks && ended == Ended::Deadlock);
                if violates {
                    found.fetch_min(walk, Ordering::Relaxed);
                }
                own.deadlocks += u64::from(ended == Ended::Deadlock);
                if ended != Ended::Steps || steps == walks.depth {
                    break;
                }
                if let Some(reason) = stop() {
                    stopped.lock().expect("no thread panics while it has the lock").get_or_insert(reason);
                    own.steps += steps;
                    return own;
                }
            }
            own.walks += 1;
            own.steps += steps;
            own.longest = own.longest.max(steps);
            if let Some(reason) = stop() {
                stopped.lock().expect("no thread panics while it has the lock").get_or_insert(reason);
                return own;
            }
        }
    };
    let mut all = Simulation::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            let own = worker.join().expect("the thread does not panic");
            all.walks += own.walks;
            all.steps += own.steps;
            all.deadlocks += own.deadlocks;
            all.overflows += own.overflows;
            all.longest = all.longest.max(own.longest);
        }
    });
    all.found = Some(found.into_inner()).filter(|walk| *walk != u64::MAX);
    all.stopped = stopped.into_inner().expect("no thread has panicked").filter(|_| all.found.is_none());
    all
}

/// Repeats a walk with the interpreter. Returns its states up to the violation, and the violation.
///
/// # Errors
///
/// The walk finds nothing, which is a bug.
pub fn again(interpreted: &Interpreted, initial: &[u32], walks: Walks, walk: u64) -> Result<(Vec<Vec<u32>>, Violation)> {
    let (mut states, mut random) = (vec![initial.to_vec()], Random::of_walk(walks.seed, walk));
    let (mut scratch, mut expansion) = (Scratch::default(), Expansion::default());
    loop {
        let state = &states[states.len() - 1];
        expansion.clear();
        interpreted.expand(state, &mut scratch, &mut expansion);
        if let Some((_, violation)) = expansion.violation.take() {
            return Ok((states, violation));
        }
        let count = expansion.parents.len() as u64;
        if count == 0 || states.len() as u64 > walks.depth {
            bail!("walk {walk} finds nothing when it is taken again: please report this as a bug");
        }
        let chosen = random.below(count);
        states.push(expansion.successors[chosen * state.len()..][..state.len()].to_vec());
    }
}

impl Walker for Interpreted<'_> {
    type Memory = (Scratch, Expansion);

    fn walk(
        &self,
        state: &mut Vec<u32>,
        random: &mut Random,
        most: u64,
        (scratch, expansion): &mut Self::Memory,
    ) -> (u64, u64, Ended) {
        let (width, mut steps, mut overflows) = (self.width(), 0, 0);
        loop {
            expansion.clear();
            self.expand(state, scratch, expansion);
            match expansion.violation {
                Some((_, Violation::Deadlock)) => return (steps, overflows, Ended::Deadlock),
                Some(_) => return (steps, overflows, Ended::Violation),
                None if expansion.parents.is_empty() => return (steps, overflows, Ended::Deadlock),
                None if steps == most => return (steps, overflows, Ended::Steps),
                None => {}
            }
            overflows += expansion.overflows;
            let chosen = random.below(expansion.parents.len() as u64);
            state.copy_from_slice(&expansion.successors[chosen * width..][..width]);
            steps += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    //! Keeps this promise of `examples/explore/docs/searching.md`:
    //!
    //! - Random walks depend on their seed only: any engine and any number of threads takes the same ones, and shows the same
    //!   path (also `examples/explore/tests/explore/command_line.rs`, `examples/explore/tests/explore/nets/counts.rs`,
    //!   `examples/explore/tests/explore/simulation.rs`).

    use super::*;
    use crate::codegen::on_cpu::CompiledWalks;
    use warpset_model::checks::{Checks, Role};
    use warpset_model::dve::Dve;
    use warpset_model::interpreter::Interpreter;
    use warpset_model::ir::Source;

    const MODEL: &str = "byte x, y; channel c; process P { state s, t; init s; trans s -> t { effect x = x + 1; }, t -> s { sync c!; },
        s -> s { guard x > 200; effect y = 1; }; } process Q { state u; init u; trans u -> u { sync c?; }, u -> u { guard x % 3 == 1; }; }
        system async;";

    fn with(condition: &str, deadlocks: bool, test: impl Fn(&Interpreted, &[u32])) {
        let read = |text: &str| Source { name: "test".into(), text: text.into() };
        let dve = Dve::read(read(MODEL)).unwrap();
        let mut checks = Checks { deadlocks, ..Checks::default() };
        checks.add(Role::Goal, condition.into(), dve.condition(&read(condition)).unwrap().0);
        test(&Interpreted::new(Interpreter::new(&dve.model), &checks), &dve.model.initial_state());
    }

    #[test]
    fn walks_depend_on_seed_and_number_only() {
        with("y == 1", false, |interpreted, initial| {
            let walks = Walks { walks: 40, depth: 1500, seed: 7 };
            let run = |threads| simulate(interpreted, initial, walks, false, threads, || None);
            let one = run(1);
            assert!(one.found.is_some() && run(3).found == one.found && run(8).found == one.found, "{one:?}");
            let (states, violation) = again(interpreted, initial, walks, one.found.unwrap()).unwrap();
            assert!(matches!(violation, Violation::Condition(0)) && states.len() > 400, "{}", states.len());
            let other = simulate(interpreted, initial, Walks { seed: 8, ..walks }, false, 1, || None);
            assert!(
                other.found.is_none_or(|walk| again(interpreted, initial, Walks { seed: 8, ..walks }, walk).unwrap().0 != states)
            );
        });
    }

    #[test]
    fn compiled_walks_are_the_interpreted_ones() {
        // The condition is never violated, so all walks are complete.
        with("x == 1 and P.s and P.t", false, |interpreted, initial| {
            let Ok(compiled) = CompiledWalks::unoptimised(interpreted) else {
                println!("skipped: there may be no C++ compiler");
                return;
            };
            for depth in [0, 1, 2, 99, STRIDE + 3] {
                let walks = Walks { walks: 5, depth, seed: 3 };
                let runs = [
                    simulate(interpreted, initial, walks, false, 2, || None),
                    simulate(&compiled, initial, walks, false, 2, || None),
                ];
                let numbers = runs.map(|run| (run.walks, run.steps, run.deadlocks, run.overflows, run.longest, run.found));
                assert_eq!(numbers[0], numbers[1]);
                assert_eq!((numbers[0].0, numbers[0].1), (5, 5 * depth));
            }
            for walk in 0..20 {
                let (mut one, mut other) = (initial.to_vec(), initial.to_vec());
                let of = || Random::of_walk(5, walk);
                interpreted.walk(&mut one, &mut of(), 333, &mut Default::default());
                compiled.walk(&mut other, &mut of(), 333, &mut Default::default());
                assert_eq!(one, other);
            }
        });
    }

    #[test]
    fn every_step_has_the_same_chance() {
        let mut random = Random::of_walk(1, 2);
        let mut counts = [0u32; 5];
        (0..50_000).for_each(|_| counts[random.below(5)] += 1);
        // The bounds are six standard deviations of 89 around 10,000.
        assert!(counts.iter().all(|count| (9_460..10_540).contains(count)), "{counts:?}");
    }

    #[test]
    fn stopping_ends_all_walks() {
        with("y == 2", false, |interpreted, initial| {
            let walks = Walks { walks: u64::MAX, depth: 100, seed: 1 };
            let stop = || Some(Stop::Interrupted);
            let run = simulate(interpreted, initial, walks, false, 2, stop);
            assert!(run.stopped == Some(Stop::Interrupted) && run.walks <= 2, "{run:?}");
        });
    }
}
