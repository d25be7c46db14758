//! Seeds give the same slots every time, for debugging and for comparing machines.
//!
//! Keeps this promise of `README.md`:
//!
//! - Equal seeds give equal slots, if one thread puts.

use crate::common::vectors::{distinct, some_widths};
use crate::common::{
    kinds::{Kind, roomy},
    simulated, tests_of_all_kinds,
};
use warpset::{Device, Request, VectorTable};

tests_of_all_kinds![
    the_same_seed_gives_the_same_slots,
    slots_after_clearing_are_the_same,
    another_seed_gives_other_slots,
    no_seed_gives_other_slots_each_time,
];

/// Puts vectors one after another, because the slots of a batch's vectors may depend on the order of its threads.
fn slots<S: Kind>(table: &VectorTable<S>, vectors: &[u32]) -> Vec<u64> {
    let put = |vector: &[u32]| table.find_or_put_many_with(vector, Request::new().references(true)).unwrap().references[0];
    vectors.chunks(table.width()).map(|vector| put(vector).expect("it fits").slot()).collect()
}

fn seeded<S: Kind>(device: &Device, width: usize, seed: u64) -> VectorTable<S> {
    roomy::<S>(width, 100).seed(seed).build(device).unwrap()
}

fn the_same_seed_gives_the_same_slots<S: Kind>(device: &Device) {
    for width in some_widths() {
        let vectors = distinct(width, 0, 50);
        let [one, other] = [(); 2].map(|()| seeded::<S>(device, width, 42));
        // Threads of a warp put the nodes of a vector, which are two from 4 words on. A GPU runs them in lock-step, but a
        // simulated device in a random order.
        if simulated() && device.is_gpu() && one.spec().is_tree() && width > 3 {
            continue;
        }
        assert_eq!(slots::<S>(&one, &vectors), slots::<S>(&other, &vectors), "width {width}");
        assert_eq!(one.stats().unwrap(), other.stats().unwrap(), "width {width}");
    }
}

fn slots_after_clearing_are_the_same<S: Kind>(device: &Device) {
    let (table, vectors) = (seeded::<S>(device, 3, 42), distinct(3, 0, 50));
    let before = slots::<S>(&table, &vectors);
    table.clear().unwrap();
    assert_eq!(slots::<S>(&table, &vectors), before);
}

fn another_seed_gives_other_slots<S: Kind>(device: &Device) {
    for width in some_widths() {
        let vectors = distinct(width, 0, 50);
        let [one, other] = [1, 2].map(|seed| slots::<S>(&seeded::<S>(device, width, seed), &vectors));
        assert_eq!(one == other, S::IN_ORDER, "width {width}: the seed is not used");
    }
}

/// Without a seed the slots are unpredictable, so that no attacker can construct vectors that collide.
fn no_seed_gives_other_slots_each_time<S: Kind>(device: &Device) {
    let vectors = distinct(4, 0, 50);
    let [one, other] = [(); 2].map(|()| slots::<S>(&roomy::<S>(4, 100).build(device).unwrap(), &vectors));
    assert_eq!(one == other, S::IN_ORDER);
}
