//! Seeds: the same places every time, for debugging and for comparing machines.

use crate::common::tests;
use crate::common::vectors::{distinct, some_widths};
use warpset::{BucketTable, Device, Reference, Request};

tests![
    the_same_seed_gives_the_same_places,
    places_after_clearing_are_the_same,
    another_seed_gives_other_places,
    no_seed_gives_other_places_each_time,
];

/// Vectors are put one after another: the places of a batch's vectors may depend on who was first.
fn places(table: &BucketTable, vectors: &[u32]) -> Vec<Reference> {
    let put = |vector: &[u32]| table.find_or_put_many_with(vector, Request::new().references(true)).unwrap().references[0];
    vectors.chunks(table.width()).map(|vector| put(vector).expect("it fits")).collect()
}

fn seeded(device: &Device, width: usize, seed: u64) -> BucketTable {
    BucketTable::builder(width).capacity(100).seed(seed).build(device).unwrap()
}

fn the_same_seed_gives_the_same_places(device: &Device) {
    for width in some_widths() {
        let vectors = distinct(width, 0, 50);
        let [one, other] = [(); 2].map(|()| seeded(device, width, 42));
        assert_eq!(places(&one, &vectors), places(&other, &vectors), "width {width}");
        assert_eq!(one.stats().unwrap(), other.stats().unwrap(), "width {width}");
    }
}

fn places_after_clearing_are_the_same(device: &Device) {
    let (table, vectors) = (seeded(device, 3, 42), distinct(3, 0, 50));
    let before = places(&table, &vectors);
    table.clear().unwrap();
    assert_eq!(places(&table, &vectors), before);
}

fn another_seed_gives_other_places(device: &Device) {
    for width in some_widths() {
        let vectors = distinct(width, 0, 50);
        let [one, other] = [1, 2].map(|seed| places(&seeded(device, width, seed), &vectors));
        assert_ne!(one, other, "width {width}: the seed is not used");
    }
}

/// Nobody can know the places, and so build vectors against them.
fn no_seed_gives_other_places_each_time(device: &Device) {
    let vectors = distinct(4, 0, 50);
    let [one, other] = [(); 2].map(|()| places(&BucketTable::new(device, 4, 100).unwrap(), &vectors));
    assert_ne!(one, other);
}
