//! Ranks whose batches are in the memory of their GPUs.
//!
//! Keeps this promise of `src/docs/several_gpus.md`:
//!
//! - Ranks report the same for batches in device memory and from the host.

use crate::common::kinds::{Kind, roomy};
use crate::common::spread::{Spread, small};
use crate::common::vectors::distinct;
use crate::common::{scaled, tests_of_all_kinds};
use warpset::cluster::{Builder, DeviceBatch, Request};
use warpset::gpu::cudarc_0_19::DeviceExt;
use warpset::{Device, Error, Outcome};

tests_of_all_kinds![
    device_batches_report_what_host_batches_do,
    what_is_stored_here_stays_in_device_memory,
    buffers_that_are_too_short_on_a_rank
];

/// Offers the same vectors from the host and from device memory, to a set of several ranks on this GPU.
fn device_batches_report_what_host_batches_do<S: Kind>(device: &Device) {
    let context = device.cuda_context().expect("these tests are registered for GPUs only");
    for (width, ranks, deduplicate) in [(1, 2, false), (2, 1, false), (3, 2, true), (4, 2, false), (8, 3, false), (16, 5, true)] {
        let count = scaled(100_000, 1000);
        let builder = |table| Builder::new(table).round(count / 3).deduplicate(deduplicate);
        let set = || Spread::new(device, ranks, builder, roomy::<S>(width, 4 * count as u64)).unwrap();
        let (by_host, by_device) = (set(), set());
        // Each rank's vectors begin in the middle of the previous rank's, and each vector is offered twice.
        let offer = |rank: usize| distinct(width, (rank * count / 2) as u64, count).repeat(2);
        let request = Request::new().references(true);
        let expected = by_host.all(|rank, table| table.find_or_put_many_with(&offer(rank), request).unwrap());
        let found = by_device.all(|rank, table| {
            let stream = context.new_stream().unwrap();
            let (words, len) = (offer(rank), 2 * count);
            let vectors = stream.clone_htod(&words).unwrap();
            let mut outcomes = stream.alloc_zeros::<u8>(len).unwrap();
            let mut references = stream.alloc_zeros::<u64>(len).unwrap();
            let mut owners = stream.alloc_zeros::<u32>(len).unwrap();
            let mut batch = DeviceBatch::new(&vectors, len).outcomes(&mut outcomes);
            batch = batch.references(&mut references);
            batch = batch.owners(&mut owners);
            let batch = table.find_or_put_device(&stream, batch).unwrap();
            let again = table.find_device(&stream, DeviceBatch::new(&vectors, len)).unwrap();
            assert_eq!((again.tally.seen, again.total.full), (len as u64, 0));
            let mut alone = stream.alloc_zeros::<u32>(len).unwrap();
            let _ = table.find_device(&stream, DeviceBatch::new(&vectors, len).owners(&mut alone)).unwrap();
            assert!(stream.clone_dtoh(&alone).unwrap() == stream.clone_dtoh(&owners).unwrap(), "owners without anything else");
            let copy = (
                stream.clone_dtoh(&outcomes).unwrap(),
                stream.clone_dtoh(&references).unwrap(),
                stream.clone_dtoh(&owners).unwrap(),
            );
            (batch, copy)
        });
        assert_eq!(found[0].0.total, expected[0].total, "{ranks} ranks");
        let mut new = std::collections::HashSet::new();
        for (rank, (batch, (outcomes, references, owners))) in found.iter().enumerate() {
            let words = offer(rank);
            let of = |outcome: Outcome| outcomes.iter().filter(|of| **of == outcome as u8).count() as u64;
            assert_eq!((batch.tally.new, batch.tally.seen, of(Outcome::Full)), (of(Outcome::New), of(Outcome::Seen), 0));
            for (row, outcome) in words.chunks(width).zip(outcomes) {
                assert!(*outcome != Outcome::New as u8 || new.insert(row.to_vec()), "{row:?} is new twice");
            }
            let place = |(bits, rank): (&u64, &u32)| warpset::cluster::Reference {
                rank: *rank,
                reference: warpset::Reference::from_bits(*bits).expect("stored"),
            };
            let places: Vec<_> = references.iter().zip(owners).map(place).collect();
            let got = by_device.all(|of, table| table.get_many(if of == rank { &places } else { &[] }).unwrap());
            assert!(got[rank] == words, "rank {rank} of {ranks}");
        }
        assert_eq!(new.len() as u64, expected[0].total.new);
        assert_eq!(by_device.agreed(|_, table| table.len().unwrap()), expected[0].total.new);
    }
}

/// Each rank gets, in device memory, the references of all vectors that its own table has newly stored, each once; and their
/// number, even if the buffer is too short.
fn what_is_stored_here_stays_in_device_memory<S: Kind>(device: &Device) {
    let context = device.cuda_context().expect("these tests are registered for GPUs only");
    let count = scaled(50_000, 1000);
    for (width, ranks) in [(2, 1), (3, 2), (8, 3)] {
        let set = Spread::new(device, ranks, |table| Builder::new(table).round(count / 3), roomy::<S>(width, 4 * count as u64))
            .unwrap();
        let found = set.all(|rank, table| {
            let stream = context.new_stream().unwrap();
            let vectors = stream.clone_htod(&distinct(width, (rank * count / 2) as u64, count)).unwrap();
            let mut stored = stream.alloc_zeros::<u64>(ranks * count).unwrap();
            let batch = DeviceBatch::new(&vectors, count).stored_here(&mut stored);
            let batch = table.find_or_put_device(&stream, batch).unwrap();
            let bits = stream.clone_dtoh(&stored).unwrap();
            let (written, rest) = bits.split_at(batch.stored_here_count as usize);
            assert!(rest.iter().all(|bits| *bits == 0), "nothing is written behind them");
            let places: Vec<_> = written.iter().map(|bits| warpset::Reference::from_bits(*bits).expect("stored")).collect();
            // Vectors stored before are not reported again; a buffer that is too short gets as many new ones as fit.
            let mut again = stream.alloc_zeros::<u64>(1).unwrap();
            let second = table.find_or_put_device(&stream, DeviceBatch::new(&vectors, count).stored_here(&mut again)).unwrap();
            assert_eq!((second.stored_here_count, stream.clone_dtoh(&again).unwrap()), (0, vec![0]));
            let others = stream.clone_htod(&distinct(width, ((ranks + rank) * count) as u64, count / 2)).unwrap();
            let third = table.find_or_put_device(&stream, DeviceBatch::new(&others, count / 2).stored_here(&mut again)).unwrap();
            assert!(third.stored_here_count > 1 && stream.clone_dtoh(&again).unwrap()[0] != 0, "{third:?}");
            (batch.total.new, table.local().get_many(&places).unwrap(), third.stored_here_count, third.total.new)
        });
        let all: std::collections::HashSet<_> = found.iter().flat_map(|(_, words, ..)| words.chunks(width)).collect();
        let told: usize = found.iter().map(|(_, words, ..)| words.len() / width).sum();
        assert_eq!((all.len() as u64, told as u64), (found[0].0, found[0].0), "{ranks} ranks");
        assert_eq!(found.iter().map(|(_, _, third, _)| third).sum::<u64>(), found[0].3);
    }
}

/// One rank's batch is refused; the error reaches the others.
fn buffers_that_are_too_short_on_a_rank<S: Kind>(device: &Device) {
    let context = device.cuda_context().expect("these tests are registered for GPUs only");
    let set = Spread::new(device, 2, small, roomy::<S>(3, 1000)).unwrap();
    let errors = set.all(|rank, table| {
        let stream = context.new_stream().unwrap();
        let vectors = stream.clone_htod(&distinct(3, 0, 10)).unwrap();
        let mut outcomes = stream.alloc_zeros::<u8>(if rank == 0 { 9 } else { 10 }).unwrap();
        table.find_or_put_device(&stream, DeviceBatch::new(&vectors, 10).outcomes(&mut outcomes)).unwrap_err()
    });
    assert!(matches!(errors[0], Error::LengthMismatch { given: 9, needed: 10, .. }), "{}", errors[0]);
    assert!(matches!(errors[1], Error::Rank { rank: 0, .. }), "{}", errors[1]);
    assert_eq!(set.agreed(|_, table| table.len().unwrap()), 0);
}
