//! Build strategies of tree tables: all give the same set. On a CPU only the pairing has an effect.
//!
//! Keeps this promise of `src/docs/build_strategies.md`:
//!
//! - All strategies give the same results.

use super::{histories, incremental};
use crate::common::checker::{Checker, OrFail};
use crate::common::histories::{play, thorough};
use crate::common::vectors::{Family, Pool, all_widths, distinct, some_widths};
use crate::common::{kinds::roomy, sized, tests};
use std::collections::HashMap;
use warpset::{Device, Pairing, Strategy, Tree, TreeTable};

tests![
    thorough_histories_of_every_strategy,
    random_histories_of_every_pairing,
    incremental_in_trees_of_every_pairing,
    nodes_are_those_of_the_pairing,
    too_few_nodes_for_every_strategy,
    narrow_vectors_of_every_strategy,
];

/// A strategy for each pairing except the default's.
const PAIRINGS: [Strategy; 2] = [Strategy::ONE_IP_SM, Strategy::CLR64];

/// Widths for a strategy: on a GPU three per strategy, different for each, because kernels are compiled for each width. They
/// include odd widths, at which words and nodes move up; a power of two; and more leaves than a warp has lanes.
fn widths(device: &Device, strategy: Strategy) -> Vec<usize> {
    let groups = [[3, 5, 6, 7, 9], [4, 8, 16, 32, 64], [17, 33, 67, 130, 255]];
    let number = Strategy::ALL.iter().position(|of| *of == strategy).expect("one of them");
    if device.is_gpu() { groups.map(|group| group[number % group.len()]).into() } else { groups.concat() }
}

/// Strategies of a run. On a CPU several are equivalent; a usual run tests one of those.
fn strategies(device: &Device) -> Vec<Strategy> {
    let one_of_each_pairing = [&[Strategy::DEFAULT][..], &PAIRINGS].concat();
    if device.is_gpu() { Strategy::ALL.into() } else { sized(Strategy::ALL.into(), one_of_each_pairing, Strategy::ALL.into()) }
}

/// Widths of trees, for CPU tests of a pairing.
fn widths_of_pairing(device: &Device, strategy: Strategy) -> impl Iterator<Item = usize> {
    let on_cpu = || sized(all_widths(), some_widths(), all_widths());
    let widths = if device.is_gpu() { widths(device, strategy) } else { on_cpu() };
    widths.into_iter().filter(|width| *width > 2)
}

fn thorough_histories_of_every_strategy(device: &Device) {
    for strategy in strategies(device) {
        for width in widths(device, strategy) {
            for family in [Family::Random, Family::FewWords] {
                let pool = Pool::of(family, width, 60);
                let table = roomy::<Tree>(width, 300).strategy(strategy).build(device).unwrap();
                assert_eq!(table.spec().strategy(), strategy);
                play(&mut Checker::new(&table, &pool), &table, &pool, &thorough()).or_fail(format!("{strategy}, width {width}"));
            }
            // Batches that keep many warps busy, with duplicates between them.
            let pool = Pool::distinct(width, sized(20_000 / width, 4_000 / width, 300));
            let table = roomy::<Tree>(width, 2 * pool.len() as u64).strategy(strategy).build(device).unwrap();
            let mut checker = Checker::new(&table, &pool);
            let _ = checker.offer(&pool.shuffled(3, 1)).or_fail(format!("{strategy}, width {width}"));
            checker.check().or_fail(format!("{strategy}, width {width}"));
        }
    }
}

fn random_histories_of_every_pairing(device: &Device) {
    for strategy in PAIRINGS {
        histories::sweep::<Tree>(device, widths_of_pairing(device, strategy), |builder| builder.strategy(strategy));
    }
}

fn incremental_in_trees_of_every_pairing(device: &Device) {
    for strategy in PAIRINGS {
        incremental::walks::<Tree>(device, widths_of_pairing(device, strategy), |builder| builder.strategy(strategy));
    }
}

/// Numbers the pairs of trees: equal pairs get equal numbers, pairs of zeros and roots get none.
#[derive(Default)]
struct Model(HashMap<(u64, u64), u64>);

impl Model {
    const ZEROS: u64 = u64::MAX;

    fn number(&mut self, left: u64, right: u64) -> u64 {
        if (left, right) == (0, 0) {
            return Self::ZEROS;
        }
        let next = self.0.len() as u64 + (1 << 33); // unlike any word
        *self.0.entry((left, right)).or_insert(next)
    }

    /// Value that stands for `words`, computed from the root down, with the first `left_of(count)` words on the left.
    fn cut(&mut self, words: &[u32], left_of: fn(usize) -> usize) -> u64 {
        if let [word] = words {
            return u64::from(*word);
        }
        let (left, right) = words.split_at(left_of(words.len()));
        let (left, right) = (self.cut(left, left_of), self.cut(right, left_of));
        self.number(left, right)
    }

    fn add(&mut self, pairing: Pairing, words: &[u32]) {
        match pairing {
            Pairing::Interleaved => {
                let mut row: Vec<u64> = Vec::new();
                for pair in words.chunks(2) {
                    let half =
                        if let [left, right] = pair { self.number((*left).into(), (*right).into()) } else { pair[0].into() };
                    row.push(half);
                }
                while row.len() > 2 {
                    let (front, back) = row.split_at(row.len().div_ceil(2));
                    let back = back.iter().copied().map(Some).chain([None]);
                    row = front
                        .iter()
                        .zip(back)
                        .map(|(left, right)| right.map_or(*left, |right| self.number(*left, right)))
                        .collect();
                }
            }
            Pairing::Neighboured | Pairing::Halved => {
                let left_of = if pairing == Pairing::Halved {
                    |count: usize| count.div_ceil(2)
                } else {
                    |count: usize| count.next_power_of_two() / 2
                };
                let (left, right) = words.split_at(left_of(words.len()));
                self.cut(left, left_of);
                self.cut(right, left_of);
            }
        }
    }
}

/// The number of nodes equals the number of distinct pairs, and strategies of one pairing agree on it.
fn nodes_are_those_of_the_pairing(device: &Device) {
    let mut wrong = Vec::new();
    for strategy in strategies(device) {
        for width in widths(device, strategy) {
            // Words have few values, so most pairs repeat. No word equals the number of a node, because pairs of such words may
            // share a slot with pairs of nodes.
            let count = sized(1000, 400, 200);
            // Words also differ by position, so that no pair has equal halves: two references to the node in slot 0 are (0, 0),
            // which takes no slot.
            let place = |at: usize| (at % width) as u32 * 8;
            let words: Vec<u32> =
                distinct(width, 3, count).iter().enumerate().map(|(at, word)| (1 << 31) | place(at) | (word % 5)).collect();
            let mut model = Model::default();
            words.chunks(width).for_each(|vector| model.add(strategy.pairing(), vector));
            let builder = TreeTable::builder(width).capacity(2 * count as u64).nodes((count * width) as u64);
            let table = builder.strategy(strategy).build(device).unwrap();
            let new = table.find_or_put_many(&words).unwrap().tally.new;
            let (nodes, expected) = (table.nodes().unwrap(), model.0.len() as u64);
            if nodes != expected {
                wrong.push(format!("{nodes} nodes, not {expected}, of {strategy}, width {width}"));
            }
            assert_eq!(table.find_or_put_many(&words).unwrap().tally.seen, count as u64, "{strategy}, width {width}");
            assert_eq!((table.len().unwrap(), table.nodes().unwrap()), (new, nodes), "{strategy}, width {width}");
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A vector that finds no room for its nodes is Full, which is reported; stored vectors stay and are found.
fn too_few_nodes_for_every_strategy(device: &Device) {
    for strategy in Strategy::ALL {
        for width in widths(device, strategy).into_iter().filter(|width| *width < 100) {
            let pool = Pool::distinct(width, 400);
            let nodes = 20 * width as u64;
            let table = TreeTable::builder(width).capacity(1000).nodes(nodes).strategy(strategy).build(device).unwrap();
            let mut checker = Checker::of_small(&table, &pool);
            for part in pool.all().chunks(7) {
                let _ = checker.offer(part).or_fail(format!("{strategy}, width {width}"));
            }
            assert!(!checker.stored().is_empty() && !checker.rejected().is_empty(), "{strategy}, width {width}");
            let _ = checker.offer(&pool.all()).or_fail(format!("{strategy}, width {width}"));
            checker.check().or_fail(format!("{strategy}, width {width}"));
        }
    }
}

/// Vectors of one or two words have no trees.
fn narrow_vectors_of_every_strategy(device: &Device) {
    for (strategy, width) in Strategy::ALL.into_iter().flat_map(|strategy| [(strategy, 1), (strategy, 2)]) {
        let table = TreeTable::builder(width).capacity(100).strategy(strategy).build(device).unwrap();
        assert_eq!(table.spec().strategy(), Strategy::DEFAULT);
        assert_eq!(table.find_or_put_many(&distinct(width, 1, 50)).unwrap().tally.new, 50);
    }
}
