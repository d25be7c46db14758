//! Vectors offered as changes of stored ones have the same outcomes, references and nodes as whole vectors.
//!
//! Keeps these promises of the documentation of `Request::parents`:
//!
//! - Any reference may be a parent without a mask (also `stale_references.rs`).
//! - Changes of stored vectors have the same results as whole vectors.

use crate::common::vectors::{all_widths, some_widths};
use crate::common::{
    kinds::{Kind, roomy},
    scaled, sized, tests_of_all_kinds,
};
use rand::seq::IndexedRandom;
use rand::{Rng, RngExt, SeedableRng, rngs::StdRng};
use std::collections::HashSet;
use warpset::{Device, Error, Outcome, Reference, Request, TableBuilder, VectorTable, Words};

tests_of_all_kinds![
    walks_are_the_same_with_and_without_parents,
    every_word_can_change_alone,
    any_parent_is_right_without_a_mask,
    parents_survive_a_growth_within_the_batch,
    too_few_nodes_incrementally,
    parents_that_do_not_fit_the_batch,
];

/// Successors of vectors: each differs from its parent in a few words, all of them or none.
struct Step {
    parents: Vec<usize>,
    words: Vec<u32>,
    masks: Vec<u32>,
}

/// `known`: the vectors that may be parents; `least`: the least word of each position.
fn step(rng: &mut impl Rng, width: usize, known: &[u32], count: usize, least: impl Fn(usize) -> u32) -> Step {
    let mut step = Step { parents: Vec::new(), words: Vec::new(), masks: Vec::new() };
    for _ in 0..count {
        let parent = rng.random_range(0..known.len() / width);
        let mut words = known[parent * width..][..width].to_vec();
        let mut mask = vec![0u32; width.div_ceil(32)];
        let changes = *[0, 1, 1, 1, 2, 2, 3, width].choose(rng).expect("there are numbers");
        for _ in 0..changes {
            let at = rng.random_range(0..width);
            // Some changes leave the word as it is.
            let least = least(at);
            words[at] = *[least, least + 1, least + 2, rng.random_range(least..least + 4), words[at]].choose(rng).expect("some");
            mask[at / 32] |= 1 << (at % 32);
        }
        step.parents.push(parent);
        step.words.extend(words);
        step.masks.extend(mask);
    }
    step
}

fn walks_are_the_same_with_and_without_parents<S: Kind>(device: &Device) {
    walks::<S>(device, all_widths().into_iter(), |builder| builder);
}

/// A breadth-first walk, into one table as changes and into another as vectors: they must agree in everything but the slots.
pub fn walks<S: Kind>(
    device: &Device,
    widths: impl Iterator<Item = usize>,
    chosen: impl Fn(TableBuilder<Words, S>) -> TableBuilder<Words, S>,
) {
    for (at, width) in widths.enumerate() {
        // The number of nodes equals the number of distinct pairs only if two cases are excluded. A pair of zeros takes no slot:
        // two zeros, or twice the node in the first slot, whichever that is. Words that could be references to nodes may share
        // slots with such references. So words must be unlike references, and differ by position.
        let (masked, words_tell) = (at % 2 == 0, at % 4 >= 2);
        let least = |place: usize| if words_tell { (1 << 31) + 8 * place as u32 } else { 0 };
        let mut rng = StdRng::seed_from_u64(width as u64);
        let (steps, count) = (4, sized(3000, 250, 150));
        let builder = chosen(roomy::<S>(width, (steps * count) as u64 + 10));
        let [changed, whole] = [(); 2].map(|()| builder.clone().build(device).unwrap());
        let mut known: Vec<u32> = (0..width).map(least).collect();
        known.extend((0..width).map(|place| least(place) + place as u32 % 8));
        let start = changed.find_or_put_many_with(&known, Request::new().references(true)).unwrap();
        let _ = whole.find_or_put_many(&known).unwrap();
        let mut places: Vec<Reference> = start.references.into_iter().map(|place| place.expect("it fits")).collect();
        for _ in 0..steps {
            let Step { parents, words, masks } = step(&mut rng, width, &known, count, least);
            let parents: Vec<Reference> = parents.into_iter().map(|parent| places[parent]).collect();
            let request = Request::new().outcomes(true).references(true).new_references(true).parents(&parents);
            let request = if masked { request.changed(&masks) } else { request };
            let batch = changed.find_or_put_many_with(&words, request).unwrap();
            let expected = whole.find_or_put_many(&words).unwrap();
            assert_eq!(batch.tally, expected.tally, "width {width}, masked {masked}");
            let fresh = |outcomes: &[Outcome]| -> HashSet<Vec<u32>> {
                let new = outcomes.iter().zip(words.chunks(width)).filter(|(outcome, _)| **outcome == Outcome::New);
                new.map(|(_, vector)| vector.to_vec()).collect()
            };
            assert_eq!(fresh(&batch.outcomes), fresh(&expected.outcomes), "width {width}, masked {masked}");
            assert_eq!(batch.new_references.len() as u64, batch.tally.new);
            let references: Vec<Reference> = batch.references.iter().map(|place| place.expect("it fits")).collect();
            assert!(changed.get_many(&references).unwrap() == words, "width {width}, masked {masked}");
            places.extend(references);
            known.extend(words);
        }
        let contents = |table: &VectorTable<S>| table.iter().map(|row| row.unwrap().1).collect::<HashSet<_>>();
        assert_eq!(contents(&changed), contents(&whole), "width {width}");
        let [changed, whole] = [changed, whole].map(|table| table.stats().unwrap());
        assert_eq!(changed.stored, whole.stored, "width {width}, masked {masked}");
        assert!(changed.nodes == whole.nodes || !words_tell, "width {width}, masked {masked}: {changed:?}, {whole:?}");
    }
}

/// One parent, and for each word a successor with that word changed; with exact masks, and with masks of all words.
fn every_word_can_change_alone<S: Kind>(device: &Device) {
    for width in all_widths() {
        let table = roomy::<S>(width, 2 * width as u64 + 10).build(device).unwrap();
        let parent: Vec<u32> = (1..=width as u32).collect();
        let place = table.find_or_put_many_with(&parent, Request::new().references(true)).unwrap().references[0].unwrap();
        let (mut words, mut masks) = (Vec::new(), Vec::new());
        for at in 0..width {
            words.extend((0..width).map(|word| if word == at { 1 << 30 } else { parent[word] }));
            masks.extend((0..width.div_ceil(32)).map(|row| if at / 32 == row { 1 << (at % 32) } else { 0u32 }));
        }
        let parents = vec![place; width];
        let request = || Request::new().references(true).parents(&parents);
        let batch = table.find_or_put_many_with(&words, request().changed(&masks)).unwrap();
        assert_eq!(batch.tally.new, width as u64, "width {width}");
        let references: Vec<Reference> = batch.references.iter().map(|place| place.expect("it fits")).collect();
        assert!(table.get_many(&references).unwrap() == words, "width {width}");
        // Mask bits beyond the last word have no effect.
        let all = vec![u32::MAX; masks.len()];
        assert_eq!(table.find_or_put_many_with(&words, request().changed(&all)).unwrap().references, batch.references);
        assert_eq!(table.find_or_put_many_with(&words, request()).unwrap().references, batch.references);
        assert_eq!(table.len().unwrap(), 1 + width as u64);
    }
}

/// Parents that are free slots, slots beyond the end, slots of other vectors, or none: the comparison must still be right.
fn any_parent_is_right_without_a_mask<S: Kind>(device: &Device) {
    for width in some_widths() {
        let count = scaled(2000, 200);
        let mut rng = StdRng::seed_from_u64(width as u64);
        let table = roomy::<S>(width, 3 * count as u64).build(device).unwrap();
        let words: Vec<u32> = (0..count * width).map(|_| rng.random_range(0..3)).collect();
        let slots = table.slots();
        let parents: Vec<Reference> = (0..count)
            .map(|_| {
                let now = table.reference(0).unwrap().to_bits();
                let somewhere = now | rng.random_range(0..slots);
                let bits = *[somewhere, now | slots, now | (slots + 1), u64::MAX, 1 << 39, 1 << 40].choose(&mut rng).unwrap();
                Reference::from_bits(bits).unwrap()
            })
            .collect();
        for _ in 0..2 {
            let batch = table.find_or_put_many_with(&words, Request::new().references(true).parents(&parents)).unwrap();
            let references: Vec<Reference> = batch.references.iter().map(|place| place.expect("it fits")).collect();
            assert!(table.get_many(&references).unwrap() == words, "width {width}");
        }
        let distinct: HashSet<&[u32]> = words.chunks(width).collect();
        assert_eq!(table.len().unwrap(), distinct.len() as u64, "width {width}");
        // After a clearing the references are stale.
        table.clear().unwrap();
        let batch = table.find_or_put_many_with(&words, Request::new().parents(&parents)).unwrap();
        assert_eq!(batch.tally.new, distinct.len() as u64, "width {width}");
    }
}

/// The batch makes the table grow, which invalidates the references that the batch passes.
fn parents_survive_a_growth_within_the_batch<S: Kind>(device: &Device) {
    for width in [1, 2, 3, 8, 17, 40] {
        let table = VectorTable::<S>::builder(width).capacity(50).grows(true).build(device).unwrap();
        let count = scaled(4000, 400);
        let parent = vec![7u32; width];
        let place = table.find_or_put_many_with(&parent, Request::new().references(true)).unwrap().references[0].unwrap();
        let mut words = Vec::new();
        let mut masks = Vec::new();
        for number in 0..count {
            let at = number % width;
            words.extend((0..width).map(|word| if word == at { 100 + number as u32 } else { 7 }));
            masks.extend((0..width.div_ceil(32)).map(|row| if at / 32 == row { 1 << (at % 32) } else { 0u32 }));
        }
        let slots = table.slots();
        let parents = vec![place; count];
        let request = Request::new().outcomes(true).references(true).parents(&parents).changed(&masks);
        let batch = table.find_or_put_many_with(&words, request).unwrap();
        assert!(table.slots() > slots, "width {width}");
        assert_eq!((batch.tally.new, batch.tally.full), (count as u64, 0), "width {width}");
        let references: Vec<Reference> = batch.references.iter().map(|place| place.expect("it fits")).collect();
        assert!(table.get_many(&references).unwrap() == words, "width {width}");
    }
}

/// A change that finds no room for its nodes is Full, and stored vectors stay.
fn too_few_nodes_incrementally<S: Kind>(device: &Device) {
    for width in [3, 5, 16, 33] {
        let builder = VectorTable::<S>::builder(width).capacity(2000);
        let table = S::with_few_nodes(builder, width as u64 + 40).build(device).unwrap();
        let parent: Vec<u32> = (1..=width as u32).collect();
        let place = table.find_or_put_many_with(&parent, Request::new().references(true)).unwrap().references[0].unwrap();
        let count = 500;
        let words: Vec<u32> = (0..count)
            .flat_map(|number| parent[1..].iter().copied().rev().chain([1000 + number]).rev().collect::<Vec<_>>())
            .collect();
        let parents = vec![place; count as usize];
        let request = || Request::new().outcomes(true).references(true).parents(&parents);
        let batch = table.find_or_put_many_with(&words, request()).unwrap();
        assert_eq!(batch.tally.full > 0, table.spec().is_tree(), "width {width}: {:?}", batch.tally);
        assert_eq!(batch.tally.full, batch.tally.full_nodes);
        for (at, vector) in words.chunks(width).enumerate() {
            match batch.references[at] {
                Some(place) => assert!(table.get_many(&[place]).unwrap() == vector, "width {width}"),
                None => assert_eq!(batch.outcomes[at], Outcome::Full),
            }
        }
        assert_eq!(table.len().unwrap(), 1 + batch.tally.new, "width {width}");
        assert_eq!(table.get_many(&[place]).unwrap(), parent);
        assert_eq!(table.find_or_put_many_with(&words, request()).unwrap().tally.seen, batch.tally.new, "width {width}");
    }
}

fn parents_that_do_not_fit_the_batch<S: Kind>(device: &Device) {
    let table = roomy::<S>(40, 100).build(device).unwrap();
    let place = table.find_or_put_many_with(&[5; 40], Request::new().references(true)).unwrap().references[0].unwrap();
    let refused = |request: Request<'_>| {
        let error = table.find_or_put_many_with(&[6; 120], request).unwrap_err();
        let Error::LengthMismatch { given, needed, .. } = error else { panic!("{error:?}") };
        assert!(error.to_string().contains(&given.to_string()) && error.to_string().contains(&needed.to_string()), "{error}");
        assert_eq!(table.len().unwrap(), 1, "nothing is put");
        (given, needed)
    };
    assert_eq!(refused(Request::new().parents(&[place; 2])), (2, 3));
    assert_eq!(refused(Request::new().parents(&[place; 4])), (4, 3));
    assert_eq!(refused(Request::new().parents(&[place; 3]).changed(&[0; 5])), (5, 6));
    assert_eq!(refused(Request::new().changed(&[0; 6])), (0, 3));
}
