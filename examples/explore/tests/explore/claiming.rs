//! Chained claiming, the algorithm under every table, as a model that the checker checks.
//!
//! `claiming.dve` is the algorithm, with the invariants of `cuda/warpset/core/claim.cuh` as assertions. In three other models
//! one step of `Thread_1` is changed. A search written here by hand, without DVE, the library and its interpreter, gives the
//! number of states and the length of the shortest path to a violation.
//!
//! Keeps this promise of `src/docs/claiming_as_a_model.md`:
//!
//! - Chained claiming, as a model, keeps its invariants and waits for nothing. Each of three mistakes is refuted with a shortest
//!   path.

use super::*;
use std::collections::HashSet;
use std::sync::LazyLock;

const CHUNKS: usize = 3;
const SLOTS: usize = 2;
const EMPTY: u8 = 0;
const VECTORS: [[u8; CHUNKS]; 4] = [[1, 1, 1], [1, 1, 2], [1, 2, 1], [2, 1, 1]];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mistake {
    None,
    TwoOrders,
    Leaves,
    EarlyNew,
}

/// The models by name, with the mistake of their `Thread_1`, and what a search of them finds.
static MODELS: LazyLock<[(&str, Mistake, Found); 4]> = LazyLock::new(|| {
    [
        ("claiming", Mistake::None),
        ("claiming_two_orders", Mistake::TwoOrders),
        ("claiming_leaves", Mistake::Leaves),
        ("claiming_early_new", Mistake::EarlyNew),
    ]
    .map(|(name, mistake)| (name, mistake, search(mistake)))
});

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    Start,
    Load,
    Swap,
    New,
    Seen,
    Full,
    Stopped,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Thread {
    step: Step,
    vector: [u8; CHUNKS],
    slot: usize,
    /// Number of chunks of this slot that the thread has seen to equal its vector.
    decided: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct State {
    slots: [[u8; CHUNKS]; SLOTS],
    threads: [Thread; 3],
}

impl State {
    const INITIAL: Self = Self {
        slots: [[EMPTY; CHUNKS]; SLOTS],
        threads: [Thread { step: Step::Start, vector: [EMPTY; CHUNKS], slot: 0, decided: 0 }; 3],
    };

    /// All states one step later, with multiplicity.
    fn successors(&self, mistake: Mistake) -> Vec<Self> {
        (0..self.threads.len()).flat_map(|number| self.steps(number, if number == 1 { mistake } else { Mistake::None })).collect()
    }

    /// The steps of one thread.
    fn steps(&self, number: usize, mistake: Mistake) -> Vec<Self> {
        let thread = self.threads[number];
        let with = |change: &dyn Fn(&mut Thread)| {
            let mut next = *self;
            change(&mut next.threads[number]);
            next
        };
        if thread.step == Step::Start {
            return VECTORS.map(|vector| with(&|thread| (thread.step, thread.vector) = (Step::Load, vector))).into();
        }
        if !matches!(thread.step, Step::Load | Step::Swap) {
            return Vec::new();
        }
        let chunk = if mistake == Mistake::TwoOrders { CHUNKS - 1 - thread.decided } else { thread.decided };
        let (stored, own) = (self.slots[thread.slot][chunk], thread.vector[chunk]);
        let agreed = |thread: &mut Thread, last| {
            if thread.decided + 1 == CHUNKS {
                thread.step = last;
            } else {
                (thread.step, thread.decided) = (Step::Load, thread.decided + 1);
            }
        };
        let next_slot = |thread: &mut Thread| (thread.step, thread.slot, thread.decided) = (Step::Load, 1, 0);
        let mut steps = Vec::new();
        if thread.step == Step::Load {
            steps.push(with(&|thread| thread.step = Step::Swap));
            if mistake == Mistake::Leaves && thread.decided == CHUNKS - 1 && thread.slot == 0 {
                steps.push(with(&next_slot));
            }
        } else if stored == EMPTY {
            let mut next = with(&|thread| match mistake {
                Mistake::EarlyNew => thread.step = Step::New,
                _ => agreed(thread, Step::New),
            });
            next.slots[thread.slot][chunk] = own;
            steps.push(next);
        }
        if stored == own {
            steps.push(with(&|thread| agreed(thread, Step::Seen)));
        } else if stored != EMPTY {
            let last = thread.slot + 1 == SLOTS;
            steps.push(with(&|thread| if last { thread.step = Step::Full } else { next_slot(thread) }));
        }
        if number == 2 {
            steps.push(with(&|thread| thread.step = Step::Stopped));
        }
        steps
    }

    fn is_right(&self) -> bool {
        let complete: Vec<_> = self.slots.iter().filter(|slot| !slot.contains(&EMPTY)).collect();
        let one_slot_each = complete.iter().collect::<HashSet<_>>().len() == complete.len();
        let whole = complete.iter().all(|slot| self.threads.iter().any(|thread| thread.vector == **slot));
        let answers = self.threads.iter().all(|thread| {
            let new = self.threads.iter().filter(|other| other.step == Step::New && other.vector == thread.vector).count();
            let stored = self.slots.contains(&thread.vector);
            match thread.step {
                Step::New => new == 1 && stored,
                Step::Seen => new == 1,
                Step::Full => !stored,
                Step::Start | Step::Load | Step::Swap | Step::Stopped => true,
            }
        });
        one_slot_each && whole && answers
    }
}

/// Found by a breadth-first search.
struct Found {
    /// States, transitions, deadlocks and levels.
    counts: [u64; 4],
    /// Number of steps to the first state that is wrong.
    wrong_after: Option<u64>,
}

fn search(mistake: Mistake) -> Found {
    let mut seen = HashSet::from([State::INITIAL]);
    let mut level = vec![State::INITIAL];
    let (mut transitions, mut deadlocks, mut levels, mut wrong_after) = (0, 0, 0, None);
    while !level.is_empty() {
        if wrong_after.is_none() && !level.iter().all(State::is_right) {
            wrong_after = Some(levels);
        }
        let mut next = Vec::new();
        for state in &level {
            let successors = state.successors(mistake);
            transitions += successors.len() as u64;
            deadlocks += u64::from(successors.is_empty());
            next.extend(successors.into_iter().filter(|state| seen.insert(*state)));
        }
        levels += 1;
        level = next;
    }
    Found { counts: [seen.len() as u64, transitions, deadlocks, levels], wrong_after }
}

/// The model has the states of the algorithm. Its assertions hold in all of them. If one step is wrong, they fail with a shortest
/// path.
pub fn claiming_keeps_its_promises(place: TableOnDevice) {
    for (name, mistake, expected) in &*MODELS {
        let wrong = *mistake != Mistake::None;
        let (code, report) = place.json(&model(name), &[]);
        assert_eq!((code, expected.wrong_after.is_some()), (Some(i32::from(wrong)), wrong), "{name}");
        assert_eq!(report["path"]["length"].as_u64(), expected.wrong_after, "{name}");
        let report = if wrong {
            let assertion = report["violation"].as_str().expect("a violation");
            assert!(assertion.starts_with("assertion violated: "), "{name}: {assertion}");
            // The violation ended the search. All states are counted with `--keep-going`.
            place.json(&model(name), &["--keep-going"]).1
        } else {
            report
        };
        assert_eq!((&counts(&report)[..4], &report["complete"]), (&expected.counts[..], &Value::Bool(true)), "{name}");
    }
}

fn answered(thread: u32) -> String {
    ["new", "seen", "full"].map(|answer| format!("Thread_{thread}.{answer}")).join(" or ")
}

/// No thread waits for another: each thread that continues gets its answer, whatever the others do, even if one stops halfway.
pub fn claiming_waits_for_nothing(place: TableOnDevice) {
    let verdict = |arguments: [&str; 2]| {
        let (code, report) = place.json(&model("claiming"), &arguments);
        let holds = report["verdict"] == "holds";
        assert_eq!(code, Some(i32::from(!holds)), "{report}");
        holds
    };
    for thread in [0, 1] {
        assert!(verdict(["--ef", &answered(thread)]));
        assert!(verdict(["--ltl", &format!("F ({})", answered(thread))]));
    }
    // Thread_2 may stop.
    assert!(!verdict(["--ef", &answered(2)]));
    assert!(!verdict(["--ltl", &format!("F ({})", answered(2))]));
}

/// The models with a mistake equal `claiming.dve` except for `Thread_1`.
pub fn claiming_has_one_mistake_at_most() {
    let parts = |name: &str| {
        let text = std::fs::read_to_string(model(name)).expect("a model");
        let text = text[text.find("const byte EMPTY").expect("declarations")..].to_owned();
        let [first, second] = ["process Thread_1", "process Thread_2"].map(|process| text.find(process).expect("a process"));
        [&text[..first], &text[second..], &text[first..second]].map(str::to_owned)
    };
    let right = parts("claiming");
    for (name, mistake, _) in &*MODELS {
        let found = parts(name);
        assert_eq!(found[..2], right[..2], "{name}");
        assert_eq!(found[2] == right[2], *mistake == Mistake::None, "{name}");
    }
    // The threads of the algorithm differ only in their numbers, except that the last one may stop.
    let [before, _, second] = &right;
    let first = &before[before.find("process Thread_0").expect("a process")..];
    let renumbered = second.replace("Thread_1", "Thread_0").replace("vector[3 + chunk]", "vector[chunk]");
    let renumbered =
        (3..6).fold(renumbered, |text, chunk| text.replace(&format!("vector[{chunk}]"), &format!("vector[{}]", chunk - 3)));
    assert_eq!(first, renumbered);
}
