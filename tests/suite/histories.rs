//! Random histories against a model set (`HashSet` of positions, checker.rs), over widths, families of vectors, and bad luck.
//!
//! Keeps these promises of `README.md`:
//!
//! - Equal vectors have the same reference, and different vectors have different ones (rules `SameReference` and `OwnReference`)
//!   (also `tests/common/checker.rs`, `unlucky_hashes.rs`).
//! - A vector has 1 to 256 words; a compressed key has 20 to 64 bits (also `reading.rs`, `compact_keys.rs`).
//! - References are stable until the table grows, is cleared or relocates keys (the fault `MovesVectors` of
//!   `tests/common/faulty.rs` must be found) (also `tests/common/faulty.rs`).

use crate::common::checker::Checker;
use crate::common::histories::{Step, play};
use crate::common::vectors::{Family, Pool, all_widths};
use crate::common::{
    kinds::{Kind, roomy},
    scaled, sized, slots_per_bucket, tests_of_all_kinds,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::ops::RangeInclusive;
use warpset::{Device, TableBuilder, Words};

tests_of_all_kinds![
    widths_1_to_8,
    widths_9_to_16,
    widths_17_to_28,
    widths_29_to_40,
    widths_41_to_100,
    widths_127_to_160,
    widths_192_to_256,
];

fn widths_1_to_8<S: Kind>(device: &Device) {
    sweep::<S>(device, swept(1..=8), |builder| builder);
}

fn widths_9_to_16<S: Kind>(device: &Device) {
    sweep::<S>(device, swept(9..=16), |builder| builder);
}

fn widths_17_to_28<S: Kind>(device: &Device) {
    sweep::<S>(device, swept(17..=28), |builder| builder);
}

fn widths_29_to_40<S: Kind>(device: &Device) {
    sweep::<S>(device, swept(29..=40), |builder| builder);
}

fn widths_41_to_100<S: Kind>(device: &Device) {
    sweep::<S>(device, swept(41..=100), |builder| builder);
}

fn widths_127_to_160<S: Kind>(device: &Device) {
    sweep::<S>(device, swept(127..=160), |builder| builder);
}

fn widths_192_to_256<S: Kind>(device: &Device) {
    sweep::<S>(device, swept(192..=256), |builder| builder);
}

/// All parameters of a case, so that a failing case can be read and repeated.
#[derive(Clone, Debug)]
pub struct History {
    pub family: Family,
    pub vectors: usize,
    pub table_seed: u64,
    pub luck: Luck,
    pub grows: bool,
    pub steps: Vec<Step>,
}

/// Adverse condition of a table.
#[derive(Clone, Debug)]
pub enum Luck {
    Usual,
    /// Hashes are equal except in these bits.
    HashMask(u64),
    /// The EMPTY pattern, which the vectors may hold.
    Empty([u32; 4]),
}

pub fn history() -> impl Strategy<Value = History> {
    let positions = |most| prop::collection::vec(any::<u16>(), 1..most);
    let offer = (positions(150), 1..4usize).prop_map(|(positions, copies)| Step::Offer { positions, copies });
    // More vectors than four threads take at once, so that threads of one batch race.
    let most = scaled(16_500, 600);
    let many = positions(60).prop_map(move |positions| Step::Offer { copies: most / positions.len(), positions });
    let step = prop_oneof![6 => offer, 1 => many, 1 => Just(Step::Clear), 1 => Just(Step::Grow)];
    let empties = prop::sample::select(vec![[0; 4], [1, 0, 0, 0], [u32::MAX; 4], [1 << 31, 0, u32::MAX, 1]]);
    let luck = prop_oneof![
        4 => Just(Luck::Usual),
        1 => prop::sample::select(vec![0, 1 << 63, 3 << 62, 0xFF << 56, 0xFF]).prop_map(Luck::HashMask),
        2 => empties.prop_map(Luck::Empty),
    ];
    let family = prop::sample::select(Family::ALL.to_vec());
    (family, 1..200usize, any::<u64>(), luck, prop::bool::weighted(0.25), prop::collection::vec(step, 1..8)).prop_map(
        |(family, vectors, table_seed, luck, grows, mut steps)| {
            // Further growths make a case slow, without a new state.
            let mut growths = 0;
            steps.retain(|step| {
                growths += usize::from(matches!(step, Step::Grow));
                growths <= 2 || !matches!(step, Step::Grow)
            });
            History { family, vectors, table_seed, luck, grows, steps }
        },
    )
}

fn run<S: Kind>(
    device: &Device,
    width: usize,
    history: &History,
    chosen: impl Fn(TableBuilder<Words, S>) -> TableBuilder<Words, S>,
) -> Result<(), TestCaseError> {
    let pool = Pool::of(history.family, width, history.vectors);
    // A table that grows starts with two buckets. One with an unlucky pattern needs slots of every class within reach of a search
    // (bucket/table.cuh), and the vectors here are barred from half of the classes at most. An index has no such pattern.
    let capacity = match history.luck {
        Luck::Empty(_) if !S::IN_ORDER => 600 * slots_per_bucket::<S>(device, width),
        _ if history.grows => 1,
        _ => pool.len() as u64 * 2,
    };
    let builder = chosen(roomy::<S>(width, capacity)).seed(history.table_seed).grows(history.grows);
    let builder = match history.luck {
        Luck::Usual => builder,
        Luck::HashMask(mask) if S::SEARCHES_ALL => builder.hash_mask(mask),
        Luck::HashMask(_) => builder,
        Luck::Empty(pattern) => builder.empty_pattern(pattern),
    };
    let table = builder.build(device).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let played = play(&mut Checker::new(&table, &pool), &table, &pool, &history.steps);
    played.map_err(|violation| TestCaseError::fail(violation.to_string()))
}

/// Tested widths in a range; the last one of the range always.
fn swept(widths: RangeInclusive<usize>) -> impl Iterator<Item = usize> {
    let last = *widths.end();
    all_widths().into_iter().filter(move |width| widths.contains(width) && *width != last).chain([last])
}

/// Runs random cases, new ones in every run (`PROPTEST_RNG_SEED` fixes them), in tables that `chosen` configures; a failing case
/// is minimised before it is shown.
pub fn sweep<S: Kind>(
    device: &Device,
    widths: impl Iterator<Item = usize>,
    chosen: impl Fn(TableBuilder<Words, S>) -> TableBuilder<Words, S>,
) {
    // The first table of a width on a GPU compiles its kernels, which takes longer than many cases.
    let cases = sized(8, 4, 2);
    let config = Config { cases, max_shrink_iters: 400, failure_persistence: None, ..Config::default() };
    for width in widths {
        let ran = TestRunner::new(config.clone()).run(&history(), |history| run::<S>(device, width, &history, &chosen));
        ran.unwrap_or_else(|failure| panic!("width {width} on {device}: {failure}"));
    }
}
