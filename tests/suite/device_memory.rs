//! Functions of GPUs only: batches in device memory, streams, kernels of the user, and their errors.
//!
//! Keeps this promise of `src/docs/interoperation.md`:
//!
//! - A device batch reports the same as a host batch.
//!
//! Keeps this promise of `src/docs/your_own_kernels.md`:
//!
//! - A kernel of the user puts by threads, warps and blocks.

use crate::common::checker::{Checker, OrFail};
use crate::common::kinds::{Kind, roomy};
use crate::common::set::everything;
use crate::common::vectors::{Pool, distinct, keys};
use crate::common::{fast, scaled, tests, tests_of_all_kinds};
use std::collections::HashSet;
use std::sync::Arc;
use warpset::gpu::cudarc_0_19::cudarc::driver::{CudaContext, CudaSlice, CudaStream, LaunchConfig, PushKernelArg};
use warpset::gpu::cudarc_0_19::{DeviceExt, ModuleExt};
use warpset::gpu::{Counts, DeviceBatch, Program, TableView, compile};
use warpset::{BucketTable, Device, Error, Indexed, Reference, Request, Root, RootTable, TreeTable, VectorTable, faults};

tests_of_all_kinds![
    equal_vectors_from_all_multiprocessors,
    distinct_vectors_each_offered_256_times_by_threads,
    distinct_vectors_each_offered_256_times_by_warps,
    device_batches_report_what_host_batches_do,
    incremental_walks,
    blocks_gather_vectors_and_drop_duplicates,
    device_lookups_put_nothing,
    batches_on_several_streams_and_from_the_host,
    marked_vectors_are_retained,
    retaining_marked_vectors_fails,
];

/// Tests that do not depend on the kind of table.
pub mod once {
    use super::*;

    tests![
        table_views_arrive_intact,
        kernel_arguments_follow_a_growth,
        buffers_that_are_too_short,
        vectors_that_are_not_aligned,
        streams_of_another_gpu,
        sources_that_do_not_compile,
        kernels_compile_for_other_architectures,
        device_batches_while_others_clear_and_grow,
        rejected_keys_are_offered_again_when_others_have_been_relocated,
        a_batch_of_more_than_2_to_the_31_vectors,
        a_table_of_more_than_2_to_the_32_slots,
        counts_of_several_batches,
        chosen_slots_keep_their_bits_in_growth,
        marked_rows_keep_their_order_and_values,
        marked_keys_of_a_full_cuckoo_table,
    ];
}

const KERNELS: &str = include_str!("kernels.cu");
const BLOCKS: &str = include_str!("blocks.cu");

fn context(device: &Device) -> &Arc<CudaContext> {
    device.cuda_context().expect("these tests are registered for GPUs only")
}

fn stream(device: &Device) -> Arc<CudaStream> {
    context(device).new_stream().unwrap()
}

/// Enough blocks for every multiprocessor to have several.
const EVERYWHERE: LaunchConfig = LaunchConfig { grid_dim: (1024, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };

/// The launch of blocks.cu; so few blocks that each fills its cache several times.
const IN_BLOCKS: LaunchConfig = LaunchConfig { grid_dim: (20, 1, 1), block_dim: (64, 1, 1), shared_mem_bytes: 40960 };

/// Each field has a distinct value that uses all of its bits.
fn table_views_arrive_intact(device: &Device) {
    let (table, stream) = (BucketTable::new(device, 3, 10).unwrap(), stream(device));
    let kernel = table.compile("kernels.cu", KERNELS).unwrap().load_function("read_view").unwrap();
    let numbered = TableView {
        slots: 0x0101_0101_0101_0101,
        buckets: 0x0202_0202_0202_0202,
        slice_buckets: 0x0C0C_0C0C,
        slice_mask: 0x0D0D_0D0D,
        seeds: 0x0303_0303_0303_0303,
        stored: 0x0404_0404_0404_0404,
        hash_mask: 0x0505_0505_0505_0505,
        empty: [0x0606_0606, 0x0707_0707, 0x0808_0808, 0x0909_0909],
        probe_limit: 0x0A0A_0A0A,
        width: 0x0B0B_0B0B,
    };
    let all_bits: TableView = bytemuck::cast([u64::MAX; 9]);
    for view in [numbered, all_bits, table.kernel_argument().unwrap()] {
        let mut fields = stream.alloc_zeros::<u64>(14).unwrap();
        let one = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };
        // SAFETY: the kernel's arguments in its order; it writes 14 elements and follows none of the view's addresses.
        unsafe { stream.launch_builder(&kernel).arg(&view).arg(&mut fields).launch(one) }.unwrap();
        let e = view.empty.map(u64::from);
        let [slice_buckets, slice_mask, limit, width] =
            [view.slice_buckets, view.slice_mask, view.probe_limit, view.width].map(u64::from);
        let first = [view.slots, view.buckets, slice_buckets, slice_mask, view.seeds, view.stored, view.hash_mask];
        let expected = [&first[..], &e, &[limit, width, 72]].concat();
        assert_eq!(stream.clone_dtoh(&fields).unwrap(), expected);
    }
    assert_eq!(u64::from(table.kernel_argument().unwrap().width), 3);
    assert_eq!(size_of::<TableView>(), 72);
}

/// 2^28 offers in total, 2^22 per launch, on streams that overlap.
fn equal_vectors_from_all_multiprocessors<S: Kind>(device: &Device) {
    let (offers, launch) = (scaled(1 << 28, 1 << 17), scaled(1 << 22, 1 << 15));
    for width in [1, 7] {
        let table = roomy::<S>(width, 1000).build(device).unwrap();
        let vectors = distinct(width, 1, 1).repeat(launch);
        let streams: Vec<_> = (0..4).map(|_| stream(device)).collect();
        let buffer = streams[0].clone_htod(&vectors).unwrap();
        streams[0].synchronize().unwrap();
        let mut counts: Vec<CudaSlice<Counts>> = streams.iter().map(|stream| stream.alloc_zeros(1).unwrap()).collect();
        for turn in 0..offers / launch {
            let batch = DeviceBatch::new(&buffer, launch).counts(&mut counts[turn % 4]);
            table.find_or_put_device(&streams[turn % 4], batch).unwrap();
        }
        let mut sum = Counts::default();
        streams.iter().zip(&counts).for_each(|(stream, counts)| sum += stream.clone_dtoh(counts).unwrap()[0]);
        let tally = sum.tally();
        assert_eq!((tally.new, tally.seen, tally.full), (1, offers as u64 - 1, 0), "width {width}");
        assert_eq!((table.len().unwrap(), table.iter().count()), (1, 1), "width {width}");
    }
}

/// Number of offers of each vector.
const COPIES: u64 = 256;

/// One thread per vector: the path of a user's kernel; the library's own batches use warps.
fn distinct_vectors_each_offered_256_times_by_threads<S: Kind>(device: &Device) {
    let vectors: u64 = scaled(1 << 20, 1 << 9);
    for width in [1, 5, 8] {
        let (table, stream) = (roomy::<S>(width, 2 * vectors).build(device).unwrap(), stream(device));
        let kernel = table.compile("kernels.cu", KERNELS).unwrap().load_function("offer").unwrap();
        let view = table.kernel_argument().unwrap();
        let mut news = stream.alloc_zeros::<u32>(vectors as usize).unwrap();
        let mut places = stream.clone_htod(&vec![u64::MAX; vectors as usize]).unwrap();
        let mut wrong = stream.alloc_zeros::<u64>(1).unwrap();
        let (offers, turn) = (vectors * COPIES, 0u64);
        // SAFETY: the kernel's arguments in its order; `news` and `places` have an element for each vector; the table lives
        // until the stream has been waited for (the copies below), and neither grows nor is cleared.
        unsafe {
            let mut launch = stream.launch_builder(&kernel);
            launch.arg(&view).arg(&offers).arg(&vectors).arg(&turn);
            launch.arg(&mut news).arg(&mut places).arg(&mut wrong).launch(EVERYWHERE)
        }
        .unwrap();
        let news = stream.clone_dtoh(&news).unwrap();
        assert!(news.iter().all(|news| *news == 1), "width {width}: {:?}", news.iter().position(|news| *news != 1));
        assert_eq!(stream.clone_dtoh(&wrong).unwrap(), [0], "width {width}");
        let places: HashSet<u64> = stream.clone_dtoh(&places).unwrap().into_iter().collect();
        assert_eq!(places.len() as u64, vectors, "width {width}: two vectors in one place");
        assert_eq!((table.len().unwrap(), table.stats().unwrap().stored), (vectors, vectors), "width {width}");
    }
}

fn distinct_vectors_each_offered_256_times_by_warps<S: Kind>(device: &Device) {
    let vectors: u64 = scaled(1 << 20, 1 << 9);
    let (offers, piece) = (vectors * COPIES, (vectors * COPIES).min(1 << 22));
    for width in [1, 3, 5, 16] {
        let (table, stream) = (roomy::<S>(width, 2 * vectors).build(device).unwrap(), stream(device));
        let kernel = table.compile("kernels.cu", KERNELS).unwrap().load_function("make_batch").unwrap();
        let mut buffer = stream.alloc_zeros::<u32>(piece as usize * width).unwrap();
        let mut fresh = stream.alloc_zeros::<u64>(piece as usize).unwrap();
        let mut new = Vec::new();
        for first in (0..offers).step_by(piece as usize) {
            // SAFETY: the kernel's arguments in its order; the buffer has room for `piece` vectors.
            unsafe {
                let mut launch = stream.launch_builder(&kernel);
                launch.arg(&mut buffer).arg(&first).arg(&piece).arg(&offers).arg(&vectors).launch(EVERYWHERE)
            }
            .unwrap();
            let mut counts = stream.alloc_zeros::<Counts>(1).unwrap();
            let batch = DeviceBatch::new(&buffer, piece as usize).new_references(&mut fresh).counts(&mut counts);
            table.find_or_put_device(&stream, batch).unwrap();
            let counts = stream.clone_dtoh(&counts).unwrap()[0];
            assert_eq!((counts.offered, counts.full), (piece, 0), "width {width}");
            assert_eq!(counts.new_references, counts.hits, "width {width}");
            if counts.hits > 0 {
                new.extend(stream.clone_dtoh(&fresh.slice(..counts.hits as usize)).unwrap());
            }
        }
        assert_eq!(new.len() as u64, vectors, "width {width}: New in all");
        let places: Vec<Reference> = new.into_iter().map(|slot| table.reference(slot).expect("a slot")).collect();
        let got = table.get_many(&places).unwrap();
        assert_eq!(got.chunks(width).collect::<HashSet<_>>().len() as u64, vectors, "width {width}: a vector is New twice");
        assert_eq!(table.len().unwrap(), vectors, "width {width}");
    }
}

/// The checker of host batches also judges the results of a device batch.
fn device_batches_report_what_host_batches_do<S: Kind>(device: &Device) {
    for width in [1, 3, 4, 7, 16, 33] {
        let (pool, stream) = (Pool::distinct(width, 500), stream(device));
        let table = roomy::<S>(width, 2000).build(device).unwrap();
        let mut checker = Checker::new(&table, &pool);
        let _ = checker.offer(&pool.all()[..100]).or_fail(width);
        let positions = pool.shuffled(3, 1);
        let vectors = stream.clone_htod(&pool.batch(&positions)).unwrap();
        let mut outcomes = stream.alloc_zeros::<u8>(positions.len()).unwrap();
        let mut references = stream.alloc_zeros::<u64>(positions.len()).unwrap();
        let mut fresh = stream.alloc_zeros::<u64>(positions.len()).unwrap();
        let mut counts = stream.alloc_zeros::<Counts>(1).unwrap();
        let batch = DeviceBatch::new(&vectors, positions.len())
            .outcomes(&mut outcomes)
            .references(&mut references)
            .new_references(&mut fresh)
            .counts(&mut counts);
        table.find_or_put_device(&stream, batch).unwrap();
        let counts = stream.clone_dtoh(&counts).unwrap()[0];
        assert_eq!((counts.hits, counts.new_references), (400, 400), "width {width}");
        let mut reported = warpset::Batch::default();
        reported.tally = counts.tally();
        reported.outcomes = bytemuck::checked::cast_slice(&stream.clone_dtoh(&outcomes).unwrap()).to_vec();
        reported.references = stream.clone_dtoh(&references).unwrap().into_iter().map(|slot| table.reference(slot)).collect();
        let fresh = stream.clone_dtoh(&fresh).unwrap();
        reported.new_references = fresh[..400].iter().filter_map(|slot| table.reference(*slot)).collect();
        checker.accept(&positions, &reported).or_fail(width);
        checker.check().or_fail(width);
    }
}

/// A breadth-first walk of ten counters with eight values each that stays on the GPU: batches of changes, by whole warps, and a
/// user's own kernel, by single threads. Both must visit each reachable state exactly once.
fn incremental_walks<S: Kind>(device: &Device) {
    const STEPS: usize = 6;
    // States reachable by `STEPS` steps; each step adds one to one of the counters.
    let mut reached = HashSet::from([vec![0u32; 10]]);
    let mut frontier = reached.clone();
    for _ in 0..STEPS {
        let successors = frontier.iter().flat_map(|state| {
            (0..10).map(move |at| {
                (0..10).map(|word| if word == at { (state[word] + 1) % 8 } else { state[word] }).collect::<Vec<u32>>()
            })
        });
        let fresh: HashSet<Vec<u32>> = successors.filter(|successor| !reached.contains(successor)).collect();
        reached.extend(fresh.iter().cloned());
        frontier = fresh;
    }
    for masked in [false, true] {
        let stream = stream(device);
        // The tables share one seed: a node whose two halves are the node in the first slot takes no slot, and which node is
        // there depends on the seed.
        let [by_warps, by_threads, by_blocks] = [(); 3].map(|()| roomy::<S>(10, 20_000).seed(1).build(device).unwrap());
        let module = by_warps.compile("kernels.cu", KERNELS).unwrap();
        let [successors, put] = ["make_successors", "put_successors"].map(|name| module.load_function(name).unwrap());
        let put_by_blocks = by_blocks.compile("blocks.cu", BLOCKS).unwrap().load_function("put_by_blocks").unwrap();
        for table in [&by_warps, &by_threads, &by_blocks] {
            let start = table.find_or_put_many_with(&[0; 10], Request::new().references(true)).unwrap();
            let mut frontier = vec![start.references[0].unwrap().slot()];
            for _ in 0..STEPS {
                let count = frontier.len() * 10;
                let parents = stream.clone_htod(&frontier).unwrap();
                let mut vectors = stream.alloc_zeros::<u32>(count * 10).unwrap();
                let mut parent_of = stream.alloc_zeros::<u64>(count).unwrap();
                let mut masks = stream.alloc_zeros::<u32>(count).unwrap();
                let mut fresh = stream.alloc_zeros::<u64>(count).unwrap();
                let mut counts = stream.alloc_zeros::<Counts>(1).unwrap();
                let (view, states) = (table.kernel_argument().unwrap(), frontier.len() as u64);
                let mut launch = stream.launch_builder(&successors);
                launch.arg(&view).arg(&parents).arg(&states).arg(&mut vectors).arg(&mut parent_of).arg(&mut masks);
                // SAFETY: the kernel's arguments in its order, with room for ten successors of each state.
                unsafe { launch.launch(EVERYWHERE) }.unwrap();
                if std::ptr::eq(table, &by_warps) {
                    let batch =
                        DeviceBatch::new(&vectors, count).parents(&parent_of).new_references(&mut fresh).counts(&mut counts);
                    let batch = if masked { batch.changed(&masks) } else { batch };
                    table.find_or_put_device(&stream, batch).unwrap();
                } else {
                    let offers = count as u64;
                    let no_masks = 0u64;
                    let in_blocks = std::ptr::eq(table, &by_blocks);
                    let mut launch = stream.launch_builder(if in_blocks { &put_by_blocks } else { &put });
                    launch.arg(&view).arg(&vectors).arg(&parent_of);
                    if masked {
                        launch.arg(&masks)
                    } else {
                        launch.arg(&no_masks)
                    };
                    launch.arg(&offers).arg(&mut fresh).arg(&mut counts);
                    // SAFETY: the kernel's arguments in its order, with room for `offers` new references.
                    unsafe { launch.launch(if in_blocks { IN_BLOCKS } else { EVERYWHERE }) }.unwrap();
                    stream.synchronize().unwrap();
                }
                let counts = stream.clone_dtoh(&counts).unwrap()[0];
                assert_eq!(counts.full, 0);
                frontier = stream.clone_dtoh(&fresh).unwrap()[..counts.new_references as usize].to_vec();
            }
            let stored: Vec<Vec<u32>> = table.iter().map(|row| row.unwrap().1).collect();
            assert_eq!(stored.len(), reached.len(), "masked {masked}");
            assert_eq!(stored.into_iter().collect::<HashSet<_>>(), reached, "masked {masked}");
        }
        let nodes = [&by_warps, &by_threads, &by_blocks].map(|table| table.stats().unwrap().nodes);
        assert!(nodes.iter().all(|count| *count == nodes[0]), "{nodes:?}");
    }
}

/// Rows of every kind of stride; more equal vectors than rows; a table that is too small.
fn blocks_gather_vectors_and_drop_duplicates<S: Kind>(device: &Device) {
    for width in scaled(vec![1, 2, 3, 4, 6, 7, 8, 12, 16], vec![2, 5]) {
        let cases = vec![(1, 1000, 1000), (300, 1200, 1000), (700, 701, 1000), (600, 1200, 200)];
        for (distinct_vectors, offers, room) in scaled(cases, vec![(150, 400, 1000)]) {
            let (table, stream) = (roomy::<S>(width, room).build(device).unwrap(), stream(device));
            let put = table.compile("blocks.cu", BLOCKS).unwrap().load_function("put_by_blocks").unwrap();
            let pool = distinct(width, 0, distinct_vectors);
            let words: Vec<u32> =
                (0..offers).flat_map(|offer| pool[offer % distinct_vectors * width..][..width].iter().copied()).collect();
            let vectors = stream.clone_htod(&words).unwrap();
            let mut fresh = stream.alloc_zeros::<u64>(offers).unwrap();
            let mut counts = stream.alloc_zeros::<Counts>(1).unwrap();
            let (view, count, none) = (table.kernel_argument().unwrap(), offers as u64, 0u64);
            let mut launch = stream.launch_builder(&put);
            launch.arg(&view).arg(&vectors).arg(&none).arg(&none).arg(&count).arg(&mut fresh).arg(&mut counts);
            // SAFETY: the kernel's arguments in its order, with room for `count` new references.
            unsafe { launch.launch(LaunchConfig { grid_dim: (2, 1, 1), ..IN_BLOCKS }) }.unwrap();
            let (fresh, counts) = (stream.clone_dtoh(&fresh).unwrap(), stream.clone_dtoh(&counts).unwrap()[0]);
            let about = format!("width {width}, {distinct_vectors} vectors, {offers} offers, room for {room}");
            assert_eq!((counts.offered, counts.hits), (count, table.len().unwrap()), "{about}");
            assert_eq!(counts.new_references, counts.hits, "{about}");
            assert_eq!(counts.full > 0, table.len().unwrap() < distinct_vectors as u64, "{about}");
            let stored: HashSet<Vec<u32>> = table.iter().map(|row| row.unwrap().1).collect();
            assert_eq!(stored.len() as u64, counts.hits, "{about}");
            assert!(stored.iter().all(|vector| pool.chunks(width).any(|of_pool| of_pool == vector)), "{about}");
            let given: HashSet<u64> = fresh[..counts.hits as usize].iter().copied().collect();
            assert_eq!(given, table.iter().map(|row| row.unwrap().0.slot()).collect(), "{about}");
        }
    }
}

fn device_lookups_put_nothing<S: Kind>(device: &Device) {
    const SEEN: u8 = 2;
    const ABSENT: u8 = 4;
    for width in [1, 3, 16] {
        let (table, stream) = (roomy::<S>(width, 2000).build(device).unwrap(), stream(device));
        let words = distinct(width, 0, 600);
        let stored = table.find_or_put_many_with(&words[..300 * width], everything()).unwrap();
        let vectors = stream.clone_htod(&words).unwrap();
        let mut outcomes = stream.alloc_zeros::<u8>(600).unwrap();
        let mut references = stream.alloc_zeros::<u64>(600).unwrap();
        let mut counts = stream.alloc_zeros::<Counts>(1).unwrap();
        let batch = DeviceBatch::new(&vectors, 600).outcomes(&mut outcomes).references(&mut references).counts(&mut counts);
        table.find_device(&stream, batch).unwrap();
        let outcomes = stream.clone_dtoh(&outcomes).unwrap();
        let references = stream.clone_dtoh(&references).unwrap();
        assert!(outcomes[..300].iter().all(|outcome| *outcome == SEEN), "width {width}");
        assert!(outcomes[300..].iter().all(|outcome| *outcome == ABSENT), "width {width}");
        assert!(references[..300].iter().zip(&stored.references).all(|(slot, place)| Some(*slot) == place.map(Reference::slot)));
        assert!(references[300..].iter().all(|slot| *slot == u64::MAX), "width {width}");
        let counts = stream.clone_dtoh(&counts).unwrap()[0];
        assert_eq!(counts, Counts { offered: 600, hits: 300, ..Counts::default() }, "width {width}");
        assert_eq!(table.len().unwrap(), 300);
    }
}

fn batches_on_several_streams_and_from_the_host<S: Kind>(device: &Device) {
    for width in [3, 8] {
        let count = scaled(200_000, 2000);
        let vectors = distinct(width, 0, count);
        let table = roomy::<S>(width, 2 * count as u64).build(device).unwrap();
        let streams: Vec<_> = (0..3).map(|_| stream(device)).collect();
        let buffers: Vec<_> = streams.iter().map(|stream| stream.clone_htod(&vectors).unwrap()).collect();
        let mut counts: Vec<CudaSlice<Counts>> = streams.iter().map(|stream| stream.alloc_zeros(1).unwrap()).collect();
        for ((stream, buffer), counts) in streams.iter().zip(&buffers).zip(&mut counts) {
            let batch = DeviceBatch::new(buffer, count).counts(counts);
            table.find_or_put_device(stream, batch).unwrap();
        }
        let host = table.find_or_put_many_with(&vectors, Request::new()).unwrap().tally;
        let mut sum = Counts::default();
        streams.iter().zip(&counts).for_each(|(stream, counts)| sum += stream.clone_dtoh(counts).unwrap()[0]);
        assert_eq!((host.full, sum.full, sum.offered), (0, 0, 3 * count as u64), "width {width}");
        assert_eq!(host.new + sum.hits, count as u64, "width {width}: New to the host and to the streams");
        assert_eq!(table.len().unwrap(), count as u64);
        assert!(table.contains_many(&vectors).unwrap().iter().all(|contained| *contained));
    }
}

/// Each batch waits for others that hold the table, and none of them for a batch that waits.
fn device_batches_while_others_clear_and_grow(device: &Device) {
    let table = BucketTable::new(device, 4, 1000).unwrap();
    let rounds = scaled(2000, 200);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let stream = stream(device);
                let buffer = stream.clone_htod(&distinct(4, 0, 20)).unwrap();
                for _ in 0..rounds {
                    table.find_or_put_device(&stream, DeviceBatch::new(&buffer, 20)).unwrap();
                }
                stream.synchronize().unwrap();
            });
        }
        for round in 0..rounds as u64 {
            if round % 100 == 50 { table.reserve_total(table.slots() + 1).unwrap() } else { table.clear().unwrap() }
        }
    });
    assert!(table.len().unwrap() <= 20);
}

/// A device batch leaves to the caller what a host batch does itself: relocation, and offering rejected keys again.
fn rejected_keys_are_offered_again_when_others_have_been_relocated(device: &Device) {
    let (log2, stream) = (scaled(20, 13), stream(device));
    // Keys use all bits that slots have room for.
    let key_bits = 31 + log2 - 4;
    let builder = VectorTable::<Root>::builder(2).key_bits(key_bits).slot_bits(32).capacity(1 << log2).cuckoo(true);
    let table = builder.build(device).unwrap();
    let keys = table.slots() as usize * 98 / 100;
    let words: Vec<u32> = (0..keys as u64)
        .map(|key| key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - key_bits))
        .flat_map(|key| [key as u32, (key >> 32) as u32])
        .collect();
    let distinct: HashSet<&[u32]> = words.chunks(2).collect();
    let buffer = stream.clone_htod(&words).unwrap();
    let (mut new, mut relocated) = (0, 0);
    loop {
        let mut counts = stream.alloc_zeros::<Counts>(1).unwrap();
        let batch = DeviceBatch::new(&buffer, keys).counts(&mut counts);
        table.find_or_put_device(&stream, batch).unwrap();
        let counts = stream.clone_dtoh(&counts).unwrap()[0];
        new += counts.hits;
        if counts.full == 0 {
            break;
        }
        let moved = table.relocate().unwrap();
        assert!(moved > 0, "{} keys rejected for good, {new} stored in {} slots", counts.full, table.slots());
        relocated += moved;
    }
    assert!(relocated > 0 && new == distinct.len() as u64, "{new} New, {relocated} relocated");
    assert_eq!(table.len().unwrap(), new);
    assert!(table.contains_many(&words).unwrap().iter().all(|stored| *stored));
}

fn kernel_arguments_follow_a_growth(device: &Device) {
    let table = BucketTable::new(device, 3, 100).unwrap();
    let before = table.kernel_argument().unwrap();
    assert_eq!(table.kernel_argument().unwrap(), before);
    table.reserve_total(10_000).unwrap();
    let after = table.kernel_argument().unwrap();
    assert!(after.buckets > before.buckets && after.slots != 0 && after.stored != 0 && after.seeds != 0);
    assert_eq!((after.empty, after.hash_mask, after.width), (before.empty, u64::MAX, 3));

    // The view of a tree table also changes if only its nodes grow.
    let table = TreeTable::builder(3).capacity(1000).nodes(2).grows(true).build(device).unwrap();
    let before = table.kernel_argument().unwrap();
    let _ = table.find_or_put_many(&distinct(3, 0, 100)).unwrap();
    let after = table.kernel_argument().unwrap();
    assert_eq!((after.roots.buckets, after.nodes.width), (before.roots.buckets, 3));
    assert!(after.nodes.buckets > before.nodes.buckets && after.nodes.slots != 0 && after.nodes.stored != 0);
}

#[track_caller]
fn is_short<'a>(table: &BucketTable, stream: &'a CudaStream, batch: DeviceBatch<'a>, expected: (usize, usize)) {
    let error = table.find_or_put_device(stream, batch).expect_err("a short buffer");
    let Error::LengthMismatch { given, needed, what } = &error else { panic!("{error:?}") };
    assert_eq!((*given, *needed), expected, "{what}");
    let message = error.to_string();
    assert!(message.contains(&given.to_string()) && message.contains(&needed.to_string()), "{message}");
}

/// Makes each buffer in turn too short by one element.
fn buffers_that_are_too_short(device: &Device) {
    let (table, stream) = (BucketTable::new(device, 3, 100).unwrap(), stream(device));
    let vectors = stream.clone_htod(&distinct(3, 0, 10)).unwrap();
    let mut bytes = stream.alloc_zeros::<u8>(9).unwrap();
    let mut places = stream.alloc_zeros::<u64>(9).unwrap();
    let mut counts = stream.alloc_zeros::<Counts>(1).unwrap();
    is_short(&table, &stream, DeviceBatch::new(&vectors, 11), (30, 33));
    is_short(&table, &stream, DeviceBatch::new(&vectors, 10).outcomes(&mut bytes), (9, 10));
    is_short(&table, &stream, DeviceBatch::new(&vectors, 10).references(&mut places), (9, 10));
    let short = DeviceBatch::new(&vectors, 10).new_references(&mut places).counts(&mut counts);
    is_short(&table, &stream, short, (9, 10));
    is_short(&table, &stream, DeviceBatch::new(&vectors, 9).new_references(&mut places), (0, 1));
    stream.synchronize().unwrap();
    assert_eq!(table.len().unwrap(), 0, "nothing was enqueued");
    table.find_or_put_device(&stream, DeviceBatch::new(&vectors, 0)).unwrap();
    table.find_or_put_device(&stream, DeviceBatch::new(&vectors, 10)).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(table.len().unwrap(), 10);
}

fn vectors_that_are_not_aligned(device: &Device) {
    // Alignment in words that each width needs: the largest power of two, up to four, that divides it.
    for (width, words) in [(1, 1), (2, 2), (3, 1), (4, 4), (6, 2), (8, 4), (12, 4)] {
        let (table, stream) = (BucketTable::new(device, width, 100).unwrap(), stream(device));
        let buffer = stream.alloc_zeros::<u32>(10 * width + 3).unwrap();
        for offset in 0..4 {
            let view = buffer.slice(offset..);
            let done = table.find_or_put_device(&stream, DeviceBatch::new(&view, 10));
            if offset % words == 0 {
                done.unwrap();
                continue;
            }
            let error = done.expect_err("not aligned");
            let Error::Misaligned { address, alignment, .. } = error else { panic!("{error:?}") };
            assert_eq!((alignment, address % alignment), (4 * words as u64, 4 * (offset % words) as u64), "width {width}");
        }
        stream.synchronize().unwrap();
    }
}

/// Skipped unless there are two GPUs.
fn streams_of_another_gpu(device: &Device) {
    let own = context(device).ordinal();
    let Some(other) = Device::gpus().unwrap().into_iter().find(|gpu| gpu.ordinal != own) else { return };
    let (table, other_device) = (BucketTable::new(device, 3, 100).unwrap(), Device::gpu(other.ordinal).unwrap());
    let foreign = stream(&other_device);
    let vectors = foreign.clone_htod(&distinct(3, 0, 10)).unwrap();
    let error = table.find_or_put_device(&foreign, DeviceBatch::new(&vectors, 10)).expect_err("another GPU's stream");
    assert!(matches!(&error, Error::WrongDevice { given, .. } if *given == format!("GPU {}", other.ordinal)), "{error:?}");
    assert_eq!(table.len().unwrap(), 0);
}

fn sources_that_do_not_compile(device: &Device) {
    let table = BucketTable::new(device, 3, 100).unwrap();
    let error = table.compile("mine.cu", "#include \"warpset/table.cuh\"\nint nonsense = unknown_name;").expect_err("nonsense");
    let message = error.to_string();
    let Error::Compile { name, spec, options, log, .. } = error else { panic!("{error:?}") };
    assert_eq!((name.as_str(), *spec), ("mine.cu", table.spec()));
    assert!(options.iter().any(|option| option == "-DWARPSET_WIDTH=3"), "{options:?}");
    assert!(log.contains("unknown_name") && log.contains("mine.cu"), "{log}");
    assert!(message.contains(&log) && message.contains("-DWARPSET_WIDTH=3"), "{message}");
    // The GPU still works.
    assert_eq!(table.find_or_put_many(&[1, 2, 3]).unwrap().tally.new, 1);
}

/// Compiles for chunks of 8 bytes and of 16, independent of this GPU.
fn kernels_compile_for_other_architectures(_device: &Device) {
    for capability in [(8, 0), (9, 0)] {
        for width in scaled(vec![1, 3, 8, 33], vec![3]) {
            assert!(
                !compile(&VectorTable::<warpset::Bucket>::builder(width), Program::Table, capability).unwrap().is_empty(),
                "{capability:?}, width {width}"
            );
        }
    }
    assert!(matches!(
        compile(&VectorTable::<warpset::Bucket>::builder(257), Program::Table, (9, 0)),
        Err(Error::OutOfRange { given: 257, .. })
    ));
}

/// Whether the GPU has `needed` bytes free; prints a message if not. False at small sizes: a memory checker would take hours.
fn has_memory(device: &Device, test: &str, needed: u64) -> bool {
    let (free, _) = context(device).mem_get_info().unwrap();
    let enough = !fast() && needed <= free as u64;
    if !enough {
        let why = if fast() { "sizes are small".into() } else { format!("it needs {needed} bytes, {free} are free") };
        eprintln!("skipped: {test}: {why}");
    }
    enough
}

/// A batch that needs several kernels: each part writes its section of every output, and all add to one count.
fn a_batch_of_more_than_2_to_the_31_vectors(device: &Device) {
    let count: usize = (1 << 31) + 12_345;
    // Bytes: words, two references, an outcome; slots at fill 0.8, and one bit for each.
    if !has_memory(device, "a batch of more than 2^31 vectors", (count as u64) * (4 + 16 + 1 + 6) + (2 << 30)) {
        return;
    }
    let table = BucketTable::new(device, 1, count as u64 * 5 / 4).unwrap();
    let stream = stream(device);
    let module = table.compile("kernels.cu", KERNELS).unwrap();
    let [make, judge] = ["make_numbers", "judge_numbers"].map(|name| module.load_function(name).unwrap());
    let (of_all, wrong_counts) = (count as u64, 4);
    // SAFETY: the kernel below or the batch writes all of it before it is read.
    let (mut vectors, mut references, mut fresh, mut outcomes) = unsafe {
        (
            stream.alloc::<u32>(count).unwrap(),
            stream.alloc::<u64>(count).unwrap(),
            stream.alloc::<u64>(count).unwrap(),
            stream.alloc::<u8>(count).unwrap(),
        )
    };
    // SAFETY: the kernel's arguments in its order; the buffer has room for `count` words.
    unsafe { stream.launch_builder(&make).arg(&mut vectors).arg(&of_all).launch(EVERYWHERE) }.unwrap();
    let mut counts = stream.alloc_zeros::<Counts>(1).unwrap();
    let mut marks = stream.alloc_zeros::<u32>(table.slots().div_ceil(32) as usize).unwrap();
    for (pass, outcome) in [1u8, 2].into_iter().enumerate() {
        let mut batch = DeviceBatch::new(&vectors, count);
        batch = batch.outcomes(&mut outcomes);
        batch = batch.references(&mut references);
        batch = batch.counts(&mut counts);
        if pass == 0 {
            batch = batch.new_references(&mut fresh);
        }
        table.find_or_put_device(&stream, batch).unwrap();
        // The second pass adds to the counts of the first.
        let passes = pass as u64 + 1;
        let expected = Counts { offered: passes * of_all, hits: of_all, new_references: of_all, ..Counts::default() };
        assert_eq!(stream.clone_dtoh(&counts).unwrap()[0], expected, "pass {pass}");
        let new = if pass == 0 { of_all } else { 0 };
        let (mut wrong, view) = (stream.alloc_zeros::<u64>(wrong_counts).unwrap(), table.kernel_argument().unwrap());
        let mut launch = stream.launch_builder(&judge);
        launch.arg(&view).arg(&vectors).arg(&of_all).arg(&outcome).arg(&outcomes).arg(&references);
        launch.arg(&fresh).arg(&new).arg(&mut marks).arg(&mut wrong);
        // SAFETY: the kernel's arguments in its order: outputs of `count` vectors, `new` references, and a bit for each slot.
        unsafe { launch.launch(EVERYWHERE) }.unwrap();
        assert_eq!(stream.clone_dtoh(&wrong).unwrap(), [0; 4], "pass {pass}: outcomes, references, new references, one twice");
    }
    assert_eq!(table.len().unwrap(), of_all);
    // Lookups are split in the same way.
    let mut found = stream.alloc_zeros::<Counts>(1).unwrap();
    let mut batch = DeviceBatch::new(&vectors, count);
    batch = batch.counts(&mut found);
    table.find_device(&stream, batch).unwrap();
    assert_eq!(stream.clone_dtoh(&found).unwrap()[0], Counts { offered: of_all, hits: of_all, ..Counts::default() });
}

/// A table grows from fewer slots than 32 bits can number to more: references beyond them read back what was put.
fn a_table_of_more_than_2_to_the_32_slots(device: &Device) {
    let count: usize = 1 << 27;
    let (slots, more): (u64, u64) = ((1 << 32) - (1 << 24), (1 << 32) + (1 << 30));
    if !has_memory(device, "a table of more than 2^32 slots", (slots + more) * 4 + (count as u64) * 13 + (2 << 30)) {
        return;
    }
    let (table, stream) = (BucketTable::new(device, 1, slots).unwrap(), stream(device));
    assert!(table.slots() < 1 << 32);
    let module = table.compile("kernels.cu", KERNELS).unwrap();
    let [make, judge] = ["make_numbers", "judge_numbers"].map(|name| module.load_function(name).unwrap());
    let mut vectors = stream.alloc_zeros::<u32>(count).unwrap();
    let mut references = stream.alloc_zeros::<u64>(count).unwrap();
    let mut outcomes = stream.alloc_zeros::<u8>(count).unwrap();
    let (of_all, none) = (count as u64, 0u64);
    // SAFETY: the kernel's arguments in its order; the buffer has room for `count` words.
    unsafe { stream.launch_builder(&make).arg(&mut vectors).arg(&of_all).launch(EVERYWHERE) }.unwrap();
    for (grown, outcome) in [(false, 1u8), (false, 2), (true, 2)] {
        if grown {
            table.reserve_total(more).unwrap();
            assert!(table.slots() >= more);
        }
        let mut counts = stream.alloc_zeros::<Counts>(1).unwrap();
        let mut batch = DeviceBatch::new(&vectors, count);
        batch = batch.outcomes(&mut outcomes);
        batch = batch.references(&mut references);
        batch = batch.counts(&mut counts);
        table.find_or_put_device(&stream, batch).unwrap();
        let expected = Counts { offered: of_all, hits: if outcome == 1 { of_all } else { 0 }, ..Counts::default() };
        assert_eq!(stream.clone_dtoh(&counts).unwrap()[0], expected, "grown {grown}");
        let (mut wrong, view) = (stream.alloc_zeros::<u64>(4).unwrap(), table.kernel_argument().unwrap());
        let mut launch = stream.launch_builder(&judge);
        launch.arg(&view).arg(&vectors).arg(&of_all).arg(&outcome).arg(&outcomes).arg(&references);
        launch.arg(&none).arg(&none).arg(&none).arg(&mut wrong);
        // SAFETY: the kernel's arguments in its order: outputs of `count` vectors, and no new references.
        unsafe { launch.launch(EVERYWHERE) }.unwrap();
        assert_eq!(stream.clone_dtoh(&wrong).unwrap(), [0; 4], "grown {grown}: outcomes, references");
    }
    let slots: Vec<u64> = stream.clone_dtoh(&references.slice(..1 << 16)).unwrap();
    let words: Vec<u32> = stream.clone_dtoh(&vectors.slice(..1 << 16)).unwrap();
    // By chance at least about a fifth of the references lie beyond 2^32.
    let beyond = slots.iter().filter(|slot| **slot >= 1 << 32).count();
    assert!((11_000..15_500).contains(&beyond), "{beyond} of 65,536 references beyond 2^32");
    let places: Vec<Reference> = table.locate_many(&words).unwrap().into_iter().flatten().collect();
    assert_eq!(places.iter().map(|place| place.slot()).collect::<Vec<_>>(), slots);
    assert_eq!(table.get_many(&places).unwrap(), words);
    let stats = table.stats().unwrap();
    assert_eq!((stats.stored, table.len().unwrap()), (of_all, of_all));
}

/// Batches that report counts only may share them.
fn counts_of_several_batches(device: &Device) {
    let (width, count, stream) = (3, 5000, stream(device));
    let table = BucketTable::new(device, width, 4 * count as u64).unwrap();
    let mut counts = stream.alloc_zeros::<Counts>(1).unwrap();
    let mut outcomes = stream.alloc_zeros::<u8>(count).unwrap();
    // Each batch begins with half of the previous batch's vectors.
    for batch in 0..4u64 {
        let vectors = stream.clone_htod(&distinct(width, batch * count as u64 / 2, count)).unwrap();
        let mut of_batch = DeviceBatch::new(&vectors, count);
        of_batch = of_batch.counts(&mut counts);
        of_batch = of_batch.outcomes(&mut outcomes);
        table.find_or_put_device(&stream, of_batch).unwrap();
        let (half, sum) = (count as u64 / 2, stream.clone_dtoh(&counts).unwrap()[0]);
        assert_eq!(
            sum,
            Counts { offered: 2 * half * (batch + 1), hits: half * (batch + 2), ..Counts::default() },
            "batch {batch}"
        );
        assert_eq!(sum.tally().seen, half * batch, "batch {batch}");
        let outcomes = stream.clone_dtoh(&outcomes).unwrap();
        assert_eq!(outcomes.iter().filter(|outcome| **outcome == 1).count() as u64, if batch == 0 { 2 * half } else { half });
    }
}

/// Slots keep the chosen number of bits in a growth, even if a different one would be chosen for the larger table.
fn chosen_slots_keep_their_bits_in_growth(device: &Device) {
    let (count, stream) = (scaled(100_000, 1000), stream(device));
    let keys: Vec<u32> = (0..count as u64)
        .map(|key| key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 24)
        .flat_map(|key| [key as u32, (key >> 32) as u32])
        .collect();
    let distinct_keys = keys.chunks(2).collect::<HashSet<_>>().len() as u64;
    let buffer = stream.clone_htod(&keys).unwrap();
    for (slot_bits, capacity) in [(32, 1 << 17), (64, 1 << 17)] {
        let builder = VectorTable::<Root>::builder(2).key_bits(40).slot_bits(slot_bits).capacity(capacity);
        let table = builder.build(device).unwrap();
        for (round, slots) in [capacity, 3 << 17, 1 << 20].into_iter().enumerate() {
            if round > 0 {
                table.reserve_total(slots).unwrap();
            }
            assert_eq!(table.spec().key_and_slot_bits(), Some((40, slot_bits)));
            let mut counts = stream.alloc_zeros::<Counts>(1).unwrap();
            let mut batch = DeviceBatch::new(&buffer, count);
            batch = batch.counts(&mut counts);
            table.find_or_put_device(&stream, batch).unwrap();
            let new = if round == 0 { distinct_keys } else { 0 };
            let expected = Counts { offered: count as u64, hits: new, ..Counts::default() };
            assert_eq!(stream.clone_dtoh(&counts).unwrap()[0], expected, "{slot_bits} bits, round {round}");
            assert_eq!(table.len().unwrap(), distinct_keys);
        }
        let stored: HashSet<Vec<u32>> = table.iter().map(|row| row.unwrap().1).collect();
        assert!(stored.len() as u64 == distinct_keys && keys.chunks(2).all(|key| stored.contains(key)), "{slot_bits} bits");
    }
}

/// Marks that the kernel `mark` makes for a table.
fn marks_of<S: Kind>(table: &VectorTable<S>, round: u32) -> CudaSlice<u8> {
    let (slots, stream) = (table.slots() + (1 << 18), stream(table.device()));
    // A byte for each slot, or for each number of an indexed table, which has holes after these few kernels.
    let mut marks = stream.alloc_zeros::<u8>(slots as usize).unwrap();
    let kernel = table.compile("kernels.cu", KERNELS).unwrap().load_function("mark").unwrap();
    let view = table.kernel_argument().unwrap();
    let mut launch = stream.launch_builder(&kernel);
    launch.arg(&view).arg(&slots).arg(&round).arg(&mut marks);
    // SAFETY: the kernel's arguments; there is a byte for each slot; nothing changes the table meanwhile.
    unsafe { launch.launch(LaunchConfig::for_num_elems(4096)) }.unwrap();
    marks
}

fn marked_vectors_are_retained<S: Kind>(device: &Device) {
    for width in [1, 4, 17] {
        let count = scaled(20_000, 400);
        let words = distinct(width, 0, count);
        let table = roomy::<S>(width, 2 * count as u64).build(device).unwrap();
        let places = table.find_or_put_many_with(&words, Request::new().references(true)).unwrap().references;
        let mut expected: HashSet<&[u32]> = words.chunks(width).collect();
        for round in 0..2 {
            let before = expected.len();
            expected.retain(|vector| !vector[width - 1].wrapping_add(round).is_multiple_of(3));
            let removed = table.retain_marked(&marks_of(&table, round)).unwrap();
            assert_eq!(removed, (before - expected.len()) as u64, "{width} words, round {round}");
            let contained = table.contains_many(&words).unwrap();
            assert!(words.chunks(width).zip(contained).all(|(vector, contained)| contained == expected.contains(vector)));
            assert_eq!(table.len().unwrap(), expected.len() as u64);
            // Marks again: all vectors stay, and the table is unchanged.
            if round == 0 {
                let stale = Err(Error::StaleReferences { stale: 1, count: 1 });
                assert_eq!(table.get_many(&[places[0].unwrap()]), stale);
                let first = table.iter().next().unwrap().unwrap().0;
                assert_eq!(table.retain_marked(&marks_of(&table, 0)), Ok(0));
                assert!(table.get_many(&[first]).is_ok());
            }
        }
        let short = stream(device).alloc_zeros::<u8>(2).unwrap();
        assert!(matches!(table.retain_marked(&short), Err(Error::LengthMismatch { what: "marks", given: 2, .. })));
        // Nodes that are not needed are gone.
        let fresh = roomy::<S>(width, 2 * count as u64).build(device).unwrap();
        assert_eq!(table.find_or_put_many(&words).unwrap().tally.new, (count - expected.len()) as u64);
        let _ = fresh.find_or_put_many(&words).unwrap();
        assert_eq!(table.nodes().unwrap(), fresh.nodes().unwrap());
        let none = stream(device).alloc_zeros::<u8>(table.slots() as usize + (1 << 18)).unwrap();
        assert_eq!((table.retain_marked(&none), table.len()), (Ok(count as u64), Ok(0)));
    }
}

/// Either the vectors without a mark are gone, or none is.
fn retaining_marked_vectors_fails<S: Kind>(device: &Device) {
    let words = distinct(4, 0, 200);
    let stays = |vector: &[u32]| !vector[3].is_multiple_of(3);
    let prepared = || {
        let table = roomy::<S>(4, 1000).build(device).unwrap();
        let _ = table.find_or_put_many(&words).unwrap();
        let marks = marks_of(&table, 0);
        (table, marks)
    };
    let (table, marks) = prepared();
    let (result, calls) = faults::count(|| table.retain_marked(&marks));
    assert!(result.is_ok_and(|removed| removed > 0) && calls > 3);
    for call in 0..calls {
        let (table, marks) = prepared();
        let (result, _) = faults::fail(call..call + 1, || table.retain_marked(&marks));
        let contained = table.contains_many(&words).unwrap();
        let are_right = |vector: &[u32], contained| contained == (stays(vector) || result.is_err());
        assert!(words.chunks(4).zip(contained).all(|(vector, contained)| are_right(vector, contained)), "call {call}");
        assert!(table.find_or_put_many(&words).is_ok() && table.len() == Ok(200), "call {call}");
    }
}

fn marked_rows_keep_their_order_and_values(device: &Device) {
    let (width, count) = (3, scaled(30_000, 500));
    let table = VectorTable::<Indexed>::builder(width).capacity(2 * count as u64).build(device).unwrap();
    let _ = table.find_or_put_many(&distinct(width, 0, count)).unwrap();
    let before = table.rows().unwrap().to_vec();
    let mut values = table.values(0u64).unwrap();
    values.update(|values| values.iter_mut().zip(0..).for_each(|(value, number)| *value = number)).unwrap();
    let stays = |number: usize| !before[number * width + width - 1].is_multiple_of(3);
    let expected: Vec<usize> = (0..count).filter(|number| stays(*number)).collect();
    assert_eq!(table.retain_marked(&marks_of(&table, 0)), Ok((count - expected.len()) as u64));
    let rows: Vec<u32> = expected.iter().flat_map(|number| before[number * width..][..width].to_vec()).collect();
    assert!(table.rows().unwrap()[..] == rows && table.holes().unwrap().is_empty());
    assert!(values.view().unwrap().iter().map(|value| *value as usize).eq(expected));
}

fn marked_keys_of_a_full_cuckoo_table(device: &Device) {
    let table = RootTable::builder().key_bits(40).capacity(scaled(1 << 15, 1 << 12)).cuckoo(true).build(device).unwrap();
    let keys = keys(40, table.slots() as usize * 98 / 100);
    let places = table.find_or_put_many(&keys).unwrap().complete(&table).map(|_| table.locate_many(&keys[..2]).unwrap()).unwrap();
    let mut marks = vec![1u8; table.slots() as usize];
    places.iter().for_each(|place| marks[place.unwrap().slot() as usize] = 0);
    assert_eq!(table.retain_marked(&stream(device).clone_htod(&marks).unwrap()), Ok(2));
    let contained = table.contains_many(&keys).unwrap();
    assert!(contained.iter().enumerate().all(|(at, contained)| *contained == (at >= 2)));
}
