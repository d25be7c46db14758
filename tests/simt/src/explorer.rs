//! Runs a program under many schedules, and shows the first schedule that breaks it.

use crate::fault::Fault;
use crate::machine::{Ending, Grid, Rules, run};
use crate::memory::Memory;
use crate::schedule::{Exhaustive, LockStep, Pct, Random, Recorder, Replay, Schedule, Scheduler};
use crate::trace::Trace;
use std::fmt;
use std::time::{Duration, Instant};

/// A program to explore: kernels, their data, and conditions that must hold afterwards.
pub trait Program {
    /// Name of the program in reports and in `WARPSET_SIMT_REPLAY`.
    fn name(&self) -> String;

    /// Bytes of simulated memory.
    fn memory_bytes(&self) -> usize;

    /// Allocates and fills memory. The same seed gives the same data at the same addresses.
    ///
    /// Returns the launches, which run one after another. The grids of one launch run concurrently. `Strategy::Exhaustive`
    /// supports only a single launch.
    fn set_up(&mut self, memory: &mut Memory, seed: u64) -> Vec<Vec<Grid>>;

    /// Estimated number of steps of a run. PCT draws its change points from this range.
    fn steps(&self) -> u64 {
        1000
    }

    /// Returns the rules for runs with this seed, derived from the rules of the exploration.
    fn rules(&self, rules: Rules, _seed: u64) -> Rules {
        rules
    }

    /// For programs in which the host acts between launches. Called after each round of launches, except after a run that was
    /// killed. Inspects memory and returns more launches, or none to finish, or an error if a condition is broken.
    fn go_on(&mut self, _memory: &mut Memory) -> Result<Vec<Vec<Grid>>, Wrong> {
        Ok(Vec::new())
    }

    /// Checks the conditions after a run.
    fn judge(&mut self, memory: &Memory, ending: Ending) -> Result<(), Wrong>;
}

/// A broken condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Name of the broken rule.
    pub rule: &'static str,
    pub detail: String,
    /// Allocations and byte ranges whose history explains the error; empty if the report needs the whole history.
    pub about: Vec<(String, std::ops::Range<usize>)>,
}

/// Cause of a failed run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    Fault(Fault),
    Wrong(Wrong),
}

impl Cause {
    /// Short name of the broken rule.
    pub fn rule(&self) -> &'static str {
        match self {
            Self::Wrong(wrong) => wrong.rule,
            Self::Fault(fault) => match fault {
                Fault::OutOfBounds(_) => "out of bounds",
                Fault::Misaligned(_) => "misaligned",
                Fault::NotGlobal(_) => "not global",
                Fault::ConstantWritten(_) => "constant written",
                Fault::DataRace { .. } => "data race",
                Fault::Divergence(_) => "divergent collective",
                Fault::Deadlock(_) => "deadlock",
                Fault::Livelock { .. } => "livelock",
                Fault::Endless { .. } => "endless",
            },
        }
    }
}

/// How the explorer chooses schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    Random,
    /// PCT, for bugs of this depth.
    Pct(usize),
    LockStep,
    /// All schedules, up to the limit of the exploration.
    Exhaustive,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random => write!(f, "random"),
            Self::Pct(depth) => write!(f, "pct{depth}"),
            Self::LockStep => write!(f, "lockstep"),
            Self::Exhaustive => write!(f, "exhaustive"),
        }
    }
}

/// How much was explored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Effort {
    pub schedules: u64,
    pub steps: u64,
    pub time: Duration,
    /// Whether every schedule was tried.
    pub complete: bool,
}

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = if self.complete { "all " } else { "" };
        write!(f, "{all}{} schedules, {} steps, {:.2} s", self.schedules, self.steps, self.time.as_secs_f64())
    }
}

/// A schedule that breaks a program.
#[derive(Clone, Debug)]
pub struct Catch {
    pub program: String,
    pub strategy: Strategy,
    pub seed: u64,
    pub schedule: Schedule,
    pub cause: Cause,
    pub trace: Trace,
    pub effort: Effort,
}

impl fmt::Display for Catch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, strategy, seed, schedule, cause, trace, effort } = self;
        let what = match cause {
            Cause::Fault(fault) => fault.to_string(),
            Cause::Wrong(wrong) => format!("{}: {}", wrong.rule, wrong.detail),
        };
        writeln!(f, "{program}: {what}\nfound by {strategy}, seed {seed}, after {effort}")?;
        let about = |step: &crate::trace::Step| match cause {
            Cause::Wrong(wrong) if !wrong.about.is_empty() => wrong.about.iter().any(|(name, bytes)| {
                *name == step.location.name && step.location.offset < bytes.end && bytes.start < step.location.offset + step.size
            }),
            _ => true,
        };
        write!(f, "{}", trace.show(60, about))?;
        if matches!(strategy, Strategy::Exhaustive) {
            writeln!(f, "to see it again: WARPSET_SIMT_REPLAY='{program} steps {seed} {schedule}'")
        } else {
            writeln!(f, "to see it again: WARPSET_SIMT_REPLAY='{program} {strategy} {seed}'")
        }
    }
}

/// Tries the schedules numbered `first .. first + count`, where each number is the seed of a run. The exhaustive strategy tries
/// all schedules instead, but at most `count`.
pub fn explore(
    program: &mut dyn Program,
    strategy: Strategy,
    rules: &Rules,
    first: u64,
    count: u64,
) -> Result<Effort, Box<Catch>> {
    let mut memory = Memory::new(program.memory_bytes());
    let mut effort = Effort::default();
    let start = Instant::now();
    if let Some(again) = replay_asked_for(&program.name()) {
        let (strategy, seed, schedule) = again;
        let mut scheduler: Box<dyn Scheduler> = match schedule {
            Some(schedule) => Box::new(Replay::new(schedule)),
            None => scheduler(strategy, seed, program.steps()),
        };
        let outcome = once(program, &mut memory, strategy, rules, seed, scheduler.as_mut(), &mut effort);
        return outcome.map(|()| effort);
    }
    let mut exhaustive = Exhaustive::default();
    for seed in first..first.saturating_add(count) {
        let result = if strategy == Strategy::Exhaustive {
            once(program, &mut memory, strategy, rules, first, &mut exhaustive, &mut effort)
        } else {
            let mut scheduler = scheduler(strategy, seed, program.steps());
            once(program, &mut memory, strategy, rules, seed, scheduler.as_mut(), &mut effort)
        };
        effort.time = start.elapsed();
        if let Err(mut catch) = result {
            catch.effort = effort;
            return Err(catch);
        }
        if strategy == Strategy::Exhaustive && !exhaustive.advance() {
            effort.complete = true;
            break;
        }
    }
    Ok(effort)
}

fn scheduler(strategy: Strategy, seed: u64, steps: u64) -> Box<dyn Scheduler> {
    match strategy {
        Strategy::Random | Strategy::Exhaustive => Box::new(Random::new(seed)),
        Strategy::Pct(depth) => Box::new(Pct::new(seed, depth, steps)),
        Strategy::LockStep => Box::new(LockStep::new(seed)),
    }
}

/// Does one run. If the run breaks the program, repeats it with a trace.
fn once(
    program: &mut dyn Program,
    memory: &mut Memory,
    strategy: Strategy,
    rules: &Rules,
    seed: u64,
    scheduler: &mut dyn Scheduler,
    effort: &mut Effort,
) -> Result<(), Box<Catch>> {
    let mut recorder = Recorder::new(scheduler);
    let first = attempt(program, memory, rules, seed, &mut recorder, None);
    let schedule = recorder.schedule;
    effort.schedules += 1;
    let cause = match first {
        Ok(steps) => {
            effort.steps += steps;
            return Ok(());
        }
        Err(cause) => cause,
    };
    let mut trace = Trace::default();
    let again = attempt(program, memory, rules, seed, &mut Replay::new(schedule.clone()), Some(&mut trace));
    assert_eq!(again.err().as_ref(), Some(&cause), "{}, seed {seed}: a replayed schedule ends as before", program.name());
    Err(Box::new(Catch { program: program.name(), strategy, seed, schedule, cause, trace, effort: *effort }))
}

fn attempt(
    program: &mut dyn Program,
    memory: &mut Memory,
    rules: &Rules,
    seed: u64,
    scheduler: &mut dyn Scheduler,
    mut trace: Option<&mut Trace>,
) -> Result<u64, Cause> {
    memory.clear();
    let mut launches = program.set_up(memory, seed);
    let rules = program.rules(*rules, seed);
    let (mut ending, mut steps) = (Ending::Finished, 0);
    while !launches.is_empty() {
        for grids in launches {
            // SAFETY: programs launch kernels that were compiled for this machine, with arguments that live in the program.
            let run = unsafe { run(memory, &grids, &rules, scheduler, trace.as_deref_mut()) };
            let (ended, more) = run.map_err(|fault| Cause::Fault(*fault))?;
            steps += more;
            if ended == Ending::Abandoned {
                return Ok(steps);
            }
            if ended == Ending::Killed {
                ending = ended;
            }
        }
        launches = match ending {
            Ending::Killed => Vec::new(),
            _ => program.go_on(memory).map_err(Cause::Wrong)?,
        };
    }
    program.judge(memory, ending).map_err(Cause::Wrong)?;
    Ok(steps)
}

/// Reads `WARPSET_SIMT_REPLAY='PROGRAM STRATEGY SEED'` or `'PROGRAM steps SEED SCHEDULE'`, which requests a single run of one
/// program.
fn replay_asked_for(program: &str) -> Option<(Strategy, u64, Option<Schedule>)> {
    let asked = std::env::var("WARPSET_SIMT_REPLAY").ok()?;
    let rest = asked.strip_prefix(program)?.strip_prefix(' ')?;
    let (strategy, rest) = rest.split_once(' ').expect("PROGRAM STRATEGY SEED");
    let (seed, schedule) = rest.split_once(' ').map_or((rest, None), |(seed, schedule)| (seed, Some(schedule)));
    let seed = seed.parse().expect("a seed is a number");
    let strategy = match strategy {
        "random" => Strategy::Random,
        "lockstep" => Strategy::LockStep,
        "steps" => {
            let schedule = schedule.unwrap_or_default().parse().expect("a schedule");
            return Some((Strategy::Exhaustive, seed, Some(schedule)));
        }
        other => Strategy::Pct(
            other.strip_prefix("pct").and_then(|depth| depth.parse().ok()).expect("random, pctN, lockstep or steps"),
        ),
    };
    Some((strategy, seed, None))
}
