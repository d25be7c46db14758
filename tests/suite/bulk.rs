//! Batches that are put in bulk report what ordinary batches do, and leave the same vectors. GPUs only.
//!
//! Keeps this promise of `src/docs/interoperation.md`:
//!
//! - A batch in bulk has the results of an ordinary one, whatever its vectors are.

use crate::common::{scaled, tests};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;
use warpset::gpu::cudarc_0_19::DeviceExt;
use warpset::gpu::cudarc_0_19::cudarc::driver::CudaStream;
use warpset::gpu::{Bulk, Counts, DeviceBatch};
use warpset::{BucketTable, Device, Error, MemoryLimit, Request, Tally, faults};

tests![
    bulk_batches_report_what_ordinary_ones_do,
    bulk_batches_of_vectors_that_are_alike,
    bulk_batches_of_one_slice,
    bulk_batches_of_full_tables,
    bulk_batches_without_memory,
    bulk_batches_beside_other_calls,
    bulk_batches_need_the_table_alone,
];

/// Fewest slots of a table with slices.
const SLICED: u64 = 1 << 16;

/// A table, and what it must hold.
struct Checked {
    table: BucketTable,
    stream: Arc<CudaStream>,
    stored: HashSet<Vec<u32>>,
}

impl Checked {
    fn new(device: &Device, width: usize, slots: u64, seed: u64) -> Self {
        let table = BucketTable::builder(width).capacity(slots).seed(seed).build(device).unwrap();
        let stream = device.cuda_context().expect("registered for GPUs only").new_stream().unwrap();
        Self { table, stream, stored: HashSet::new() }
    }

    fn put(&self, bulk: Bulk, words: &[u32], with_outcomes: bool) -> Result<(Tally, Vec<u8>), Error> {
        put(&self.table, &self.stream, bulk, words, with_outcomes)
    }

    /// Puts vectors in bulk, and checks all results. The table has room for them.
    fn put_and_check(&mut self, words: &[u32], with_outcomes: bool) {
        let width = self.table.width();
        let (tally, outcomes) = self.put(Bulk::Always, words, with_outcomes).unwrap();
        let vectors = || words.chunks_exact(width);
        let before = self.stored.len();
        if with_outcomes {
            let mut new = HashSet::new();
            for (vector, outcome) in vectors().zip(&outcomes) {
                let is_first = *outcome == 1;
                assert!(is_first || *outcome == 2, "outcome {outcome}");
                assert!(!is_first || (new.insert(vector) && !self.stored.contains(vector)), "{vector:x?} is new twice");
            }
            assert!(vectors().all(|vector| new.contains(vector) || self.stored.contains(vector)), "one of equal vectors is new");
        }
        self.stored.extend(vectors().map(<[u32]>::to_vec));
        let new = (self.stored.len() - before) as u64;
        assert_eq!((tally.new, tally.seen, tally.full), (new, vectors().len() as u64 - new, 0));
        assert_eq!(self.table.len().unwrap(), self.stored.len() as u64);
        assert!(!self.table.contains_many(words).unwrap().contains(&false));
    }
}

/// Puts vectors in device memory, with outcomes or without. Returns the tally and the outcomes.
fn put(
    table: &BucketTable,
    stream: &Arc<CudaStream>,
    bulk: Bulk,
    words: &[u32],
    with_outcomes: bool,
) -> Result<(Tally, Vec<u8>), Error> {
    let count = words.len() / table.width();
    // An allocation has at least one element.
    let vectors = stream.clone_htod(&[words, &[0]].concat()).unwrap();
    let mut counts = stream.alloc_zeros::<Counts>(1).unwrap();
    let mut outcomes = stream.alloc_zeros::<u8>(count + 1).unwrap();
    let batch = DeviceBatch::new(&vectors, count).counts(&mut counts).bulk(bulk);
    let batch = if with_outcomes { batch.outcomes(&mut outcomes) } else { batch };
    table.find_or_put_device(stream, batch)?;
    let tally = stream.clone_dtoh(&counts).unwrap()[0].tally();
    Ok((tally, stream.clone_dtoh(&outcomes).unwrap()[..count].to_vec()))
}

/// Numbers without order.
fn random(seed: u64) -> impl FnMut() -> u32 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 32) as u32
    }
}

/// Vectors drawn from a pool, in batches of any size, between ordinary ones.
fn bulk_batches_report_what_ordinary_ones_do(device: &Device) {
    for width in [1, 2, 3, 4] {
        let mut checked = Checked::new(device, width, SLICED, 3 + width as u64);
        let mut next = random(width as u64);
        let pool: Vec<Vec<u32>> = (0..20_000).map(|_| (0..width).map(|_| next()).collect()).collect();
        for (round, count) in [0, 1, 700, 9_000, 1, 45_000, 20_000].into_iter().take(scaled(4, 7)).enumerate() {
            let words: Vec<u32> = (0..count).flat_map(|_| pool[next() as usize % pool.len()].clone()).collect();
            checked.put_and_check(&words, round % 2 == 0 || round > 4);
            let ordinary = pool[round * 100..round * 100 + 50].concat();
            checked.stored.extend(ordinary.chunks_exact(width).map(<[u32]>::to_vec));
            checked.put(Bulk::Never, &ordinary, false).unwrap();
            assert_eq!(checked.table.len().unwrap(), checked.stored.len() as u64);
        }
    }
}

/// Equal vectors overflow their part.
fn bulk_batches_of_vectors_that_are_alike(device: &Device) {
    for width in [1usize, 2, 4] {
        let mut checked = Checked::new(device, width, SLICED, 5);
        let vectors = |of: &dyn Fn(u32) -> u32| -> Vec<u32> {
            (0..scaled(4000, 20_000)).flat_map(|number| (0..width as u32).map(move |at| of(number) ^ at << 30)).collect()
        };
        checked.put_and_check(&vectors(&|_| 7), true);
        checked.put_and_check(&vectors(&|number| number), false);
        checked.put_and_check(&vectors(&|number| u32::MAX - number), true);
        checked.put_and_check(&vectors(&|number| number % 3), false);
    }
}

/// All vectors belong to one slice, which has too few slots for them.
fn bulk_batches_of_one_slice(device: &Device) {
    let (width, seed) = (2, 11);
    let large = Checked::new(device, width, SLICED, seed);
    let mut next = random(9);
    let mut of_slice = Vec::new();
    // The slot of a vector that is put into an empty table is in its first slice.
    while of_slice.len() < width * 9000 {
        large.table.clear().unwrap();
        let words: Vec<u32> = (0..width * 40_000).map(|_| next()).collect();
        let vectors = large.stream.clone_htod(&words).unwrap();
        let mut slots = large.stream.alloc_zeros::<u64>(words.len() / width).unwrap();
        large.table.find_or_put_device(&large.stream, DeviceBatch::new(&vectors, 40_000).references(&mut slots)).unwrap();
        let slots = large.stream.clone_dtoh(&slots).unwrap();
        let chosen = words.chunks_exact(width).zip(&slots).filter(|(_, slot)| **slot / 8192 == 3);
        of_slice.extend(chosen.flat_map(|(vector, _)| vector.to_vec()));
    }
    for with_outcomes in [false, true] {
        let mut checked = Checked::new(device, width, SLICED, seed);
        checked.put_and_check(&of_slice, with_outcomes);
        checked.put_and_check(&of_slice[..width * 4000], with_outcomes);
    }
}

/// More vectors than slots: those that are full are counted, and so are the others.
fn bulk_batches_of_full_tables(device: &Device) {
    for (width, with_outcomes) in [(1, false), (2, true), (4, true)] {
        let checked = Checked::new(device, width, SLICED, 1);
        let (mut next, slots) = (random(4), checked.table.slots());
        let words: Vec<u32> = (0..width as u64 * (slots + slots / 64)).map(|_| next()).collect();
        let (tally, outcomes) = checked.put(Bulk::Always, &words, with_outcomes).unwrap();
        assert_eq!(tally.offered(), slots + slots / 64);
        assert_eq!(tally.new, checked.table.len().unwrap());
        assert!(tally.new as f64 > 0.97 * slots as f64 && tally.full > 0, "{tally:?}");
        if with_outcomes {
            let of = |outcome: u8| outcomes.iter().filter(|one| **one == outcome).count() as u64;
            assert_eq!([of(1), of(2), of(3)], [tally.new, tally.seen, tally.full]);
            let found = checked.table.contains_many(&words).unwrap();
            assert!(found.iter().zip(&outcomes).all(|(found, outcome)| *found == (*outcome != 3)));
        }
    }
}

/// Each call of a batch fails once. If there is no memory for bulk, the batch is put in the ordinary way. A table keeps scratch
/// memory for its next batch, so each batch is the first one of its table.
fn bulk_batches_without_memory(device: &Device) {
    let count = 2000;
    let words: Vec<u32> = (0..count).collect();
    let put = |checked: &Checked, bulk| checked.put(bulk, &words, true);
    let new = || Checked::new(device, 1, SLICED, 7);
    // The kernels are compiled before anything fails.
    put(&new(), Bulk::Always).unwrap();
    let calls_of = |bulk| {
        let checked = new();
        faults::count(|| put(&checked, bulk).unwrap()).1
    };
    let (ordinary, calls) = (calls_of(Bulk::Never), calls_of(Bulk::Always));
    assert!(calls > ordinary + 5, "{calls} calls in bulk, {ordinary} in the ordinary way");
    let mut without_memory = 0;
    for call in 0..calls {
        let checked = new();
        match faults::fail(call..call + 1, || put(&checked, Bulk::Always)).0 {
            Ok((tally, outcomes)) => {
                assert_eq!((tally.new, tally.seen, tally.full), (count.into(), 0, 0));
                assert!(outcomes.iter().all(|outcome| *outcome == 1));
                without_memory += 1;
            }
            Err(error) => assert!(matches!(error, Error::Cuda { .. }), "{error}"),
        }
        // Some of the vectors may have been put before an error.
        put(&checked, Bulk::Always).unwrap();
        assert_eq!(checked.table.len().unwrap(), count.into());
    }
    let checked = new();
    checked.table.set_memory(MemoryLimit::Reserved(checked.table.bytes() + 4096));
    let (tally, within_limit) = faults::count(|| put(&checked, Bulk::Always).unwrap().0);
    assert_eq!(tally.new, count.into());
    assert!(within_limit < calls, "{within_limit} calls within a limit that has no room for scratch memory, {calls} in bulk");
    assert!(without_memory > 0, "the batch is put although the allocation of scratch memory fails");
}

/// Two threads put in bulk what others put in the ordinary way, from the host and from device memory, while the table grows.
fn bulk_batches_beside_other_calls(device: &Device) {
    let Checked { table, .. } = &Checked::new(device, 2, SLICED, 13);
    // 3,000 vectors. The next batch has 2,000 of them.
    let batch = |number: u32| (2000 * number..2000 * number + 6000).collect::<Vec<u32>>();
    let put_three = |first: u32, bulk| {
        let stream = device.cuda_context().expect("registered for GPUs only").new_stream().unwrap();
        (first..first + 3).map(|number| put(table, &stream, bulk, &batch(number), false).unwrap().0.new).sum::<u64>()
    };
    let new: u64 = std::thread::scope(|scope| {
        let devices = [Bulk::Always, Bulk::Never, Bulk::Always].into_iter().zip(0..);
        let devices: Vec<_> = devices.map(|(bulk, first)| scope.spawn(move || put_three(first, bulk))).collect();
        let host = scope.spawn(|| (0..3).map(|number| table.insert_many(&batch(number)).unwrap().new).sum());
        table.reserve_total(2 * SLICED).unwrap();
        devices.into_iter().chain([host]).map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((new, table.len().unwrap()), (7000, 7000), "each vector is New once");
    assert!(table.slots() >= 2 * SLICED);
}

/// A thread that holds the table is refused, and nothing is put.
fn bulk_batches_need_the_table_alone(device: &Device) {
    let checked = Checked::new(device, 2, SLICED, 7);
    let mut refused = 0;
    let mut offer = |_, _| {
        let error = checked.put(Bulk::Always, &[1, 2, 3, 4], false).unwrap_err();
        assert!(matches!(error, Error::SelfDeadlock { call: "find_or_put_device", .. }), "{error}");
        refused += 1;
        ControlFlow::Continue(())
    };
    checked.table.find_or_put_many_with(&[5, 6], Request::new().progress(&mut offer)).unwrap().complete(&checked.table).unwrap();
    assert!(refused > 0 && checked.table.len().unwrap() == 1);
}
