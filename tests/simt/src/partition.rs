//! Tests how a rank of a cluster sorts its vectors by owner (cuda/warpset/cluster/partition.cuh). In some cases warps claim
//! representatives, in others there are none. Warps then scatter vectors to runs, which may be too small at first, and gather the
//! owners' answers.
//!
//! Every batch of a cluster is sorted this way. A rank of the model checker builds its batch in another kernel, which
//! [`crate::search`] simulates (`What::Level`): that kernel makes offers of a level's states and does not know owners. The two
//! simulations share no code.

use crate::explorer::{Program, Wrong};
use crate::machine::{Ending, Grid, Kernel, WARP};
use crate::memory::{Memory, Use};
use crate::table::wrong;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::{HashMap, HashSet};
use warpset::gpu::PartitionView;

unsafe extern "C" {
    static warpset_simt_partition_bytes: [u64; 2];
    fn warpset_simt_partition_claim(argument: *const std::ffi::c_void);
    fn warpset_simt_partition_scatter(argument: *const std::ffi::c_void);
    fn warpset_simt_partition_gather(argument: *const std::ffi::c_void);
    fn warpset_simt_partition_lay_out(argument: *const std::ffi::c_void);
    fn warpset_simt_partition_answer(argument: *const std::ffi::c_void);
}

/// Argument of the kernels: a partition, and the memory to which the one-lane kernels write.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Argument {
    partition: PartitionView,
    to_capacities: u64,
    to_runs: u64,
    to_answers: u64,
    send: u64,
    reply: u64,
}

/// Mirrors `cursor_step`.
const CURSOR_STEP: usize = 16;

/// Whether the C++ structures have the same layouts.
pub fn has_the_layouts_of_rust() -> bool {
    // SAFETY: C++ defines this as a constant, which no code writes.
    unsafe { warpset_simt_partition_bytes == [size_of::<PartitionView>(), size_of::<Argument>()].map(|bytes| bytes as u64) }
}

/// Random cases.
#[derive(Default)]
pub struct Partition {
    case: Option<(Vec<Vec<u32>>, Box<Argument>)>,
}

impl Program for Partition {
    fn name(&self) -> String {
        "partition".into()
    }

    fn memory_bytes(&self) -> usize {
        1 << 20
    }

    fn steps(&self) -> u64 {
        1000
    }

    fn set_up(&mut self, memory: &mut Memory, seed: u64) -> Vec<Vec<Grid>> {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let width = *[1, 2, 3, 4, 5, 8].get(rng.random_range(0..6usize)).expect("there are six");
        let (ranks, is_filtered) = (rng.random_range(1..=4usize), rng.random_bool(0.5));
        // The batch may have more vectors than a warp takes at a time. It has few distinct vectors, or mostly distinct ones.
        let count = if rng.random_bool(0.1) { rng.random_range(1..=300usize) } else { rng.random_range(1..=70) };
        let kinds = if rng.random_bool(0.5) { 1 + count / 8 } else { 4 * count };
        let vectors: Vec<Vec<u32>> = (0..count)
            .map(|_| {
                let kind = rng.random_range(0..kinds) as u32;
                // Vectors differ only in the last word.
                (0..width).map(|word| if word == width - 1 { kind } else { 7 }).collect()
            })
            .collect();
        let seeds: Vec<[u64; 2]> = (0..=width).map(|_| [rng.random(), rng.random()]).collect();
        // In some cases all vectors have the same hash, or there are only four hashes.
        let hash_mask = *[u64::MAX, u64::MAX, 0, 3 << 62].get(rng.random_range(0..4usize)).expect("there are four");
        let bounds: Vec<u64> = (0..ranks as u64).map(|rank| rank * (u64::MAX / ranks as u64)).collect();
        let slots = (2 * count).next_power_of_two();
        let mut shared = |name: &str, bytes: usize| memory.allocate(name, Use::Shared, bytes.max(1)) as u64;
        let places = shared("places", 4 * count);
        let representatives = if is_filtered { shared("representatives", 4 * count) } else { 0 };
        let (outcomes, references, owners) =
            (shared("outcomes", count), shared("references", 8 * count), shared("owners", 4 * count));
        let (send, reply) =
            (shared("send", (4 * width * count).next_multiple_of(16) + 16 * ranks), shared("reply", 9 * count + 512 * ranks));
        // At first, runs have space for some rows or none. The layout changes later.
        let capacities: Vec<u64> = (0..ranks).map(|_| rng.random_range(0..=count as u64)).collect();
        let runs: Vec<u64> =
            capacities.iter().map(|rows| shared("a first run", (4 * width * *rows as usize).next_multiple_of(16))).collect();
        let answers = vec![0u64; ranks];
        let [capacities, runs, answers] = [("capacities", capacities), ("runs", runs), ("answers", answers)]
            .map(|(name, numbers)| memory.allocate_with(name, Use::Shared, &numbers) as u64);
        let partition = PartitionView {
            vectors: memory.allocate_with("vectors", Use::Constant, &vectors.concat()) as u64,
            count: count as u64,
            seeds: memory.allocate_with("seeds", Use::Constant, &seeds) as u64,
            hash_mask,
            bounds: memory.allocate_with("bounds", Use::Constant, &bounds) as u64,
            slots: if is_filtered { memory.allocate_with("slots", Use::Shared, &vec![u32::MAX; slots]) as u64 } else { 0 },
            representatives,
            cursors: memory.allocate_with("cursors", Use::Shared, &vec![0u64; CURSOR_STEP * ranks]) as u64,
            capacities,
            runs,
            answers,
            places,
            replies: reply,
            outcomes,
            references,
            owners,
            totals: memory.allocate_with("totals", Use::Shared, &[0u64; 2]) as u64,
            width: width as u32,
            ranks: ranks as u32,
            slot_mask: slots as u32 - 1,
            with_references: 1,
        };
        let argument =
            Box::new(Argument { partition, to_capacities: capacities, to_runs: runs, to_answers: answers, send, reply });
        let grid = |kernel: Kernel, blocks, threads| {
            vec![Grid { blocks, threads, scratch_bytes: 0, kernel, argument: crate::table::argument(&*argument) }]
        };
        let warps = rng.random_range(1..=3);
        let mut launches = vec![
            grid(warpset_simt_partition_scatter, warps, WARP),
            grid(warpset_simt_partition_lay_out, 1, 1),
            grid(warpset_simt_partition_scatter, warps, WARP),
            grid(warpset_simt_partition_answer, 1, 1),
            grid(warpset_simt_partition_gather, warps, WARP),
        ];
        if is_filtered {
            launches.insert(0, grid(warpset_simt_partition_claim, warps, WARP));
        }
        self.case = Some((vectors, argument));
        launches
    }

    fn judge(&mut self, memory: &Memory, _: Ending) -> Result<(), Wrong> {
        let (vectors, argument) = self.case.as_ref().expect("a case was set up");
        let view = &argument.partition;
        let (count, width, ranks) = (vectors.len(), view.width as usize, view.ranks as usize);
        let no = |rule, detail: String| Err(wrong(rule, detail, Vec::new()));
        let representatives = match view.representatives {
            0 => (0..count as u32).collect(),
            address => memory.read_at::<u32>(address, count).to_vec(),
        };
        let places = memory.read_at::<u32>(view.places, count);
        let cursors = memory.read_at::<u64>(view.cursors, CURSOR_STEP * ranks);
        let (runs, answers) = (memory.read_at::<u64>(view.runs, ranks), memory.read_at::<u64>(view.answers, ranks));
        let (outcomes, references) = (memory.read_at::<u8>(view.outcomes, count), memory.read_at::<u64>(view.references, count));
        let (owners, totals) = (memory.read_at::<u32>(view.owners, count), memory.read_at::<u64>(view.totals, 2));
        let distinct: HashSet<&Vec<u32>> = vectors.iter().collect();
        let (sent, due): (u64, _) = (cursors.iter().sum(), if view.representatives == 0 { count } else { distinct.len() });
        if sent != due as u64 {
            return no("rows", format!("{sent} are sent of {due} vectors"));
        }
        let (mut sent_for, mut sent_to, mut met) = (HashMap::new(), HashMap::new(), HashSet::new());
        let (mut new, mut full) = (0, 0);
        for (at, vector) in vectors.iter().enumerate() {
            let representative = representatives[at] as usize;
            if representative >= count || vectors[representative] != *vector {
                return no("representative", format!("{representative} represents {at}, which is another vector"));
            }
            if view.representatives != 0 && *sent_for.entry(vector).or_insert(representative) != representative {
                return no("representative", format!("{vector:?} has two"));
            }
            let (place, owner) = (u64::from(places[representative]), owners[at] as usize);
            let row = place.wrapping_sub(*answers.get(owner).unwrap_or(&u64::MAX));
            if owner >= ranks || row >= cursors[owner * CURSOR_STEP] {
                return no("run", format!("vector {at} is at {place}, of rank {owner}, of {answers:?}"));
            }
            let words = memory.read_at::<u32>(runs[owner] + row * 4 * width as u64, width);
            if words != &vector[..] {
                return no("run", format!("row {row} of rank {owner} is {words:?}, not vector {at}"));
            }
            if representative == at && !met.insert((owner, row)) {
                return no("run", format!("row {row} of rank {owner} has two vectors"));
            }
            if *sent_to.entry(vector).or_insert(owner) != owner {
                return no("owner", format!("{vector:?} has two"));
            }
            if references[at] != row + 1 {
                return no("answer", format!("vector {at}: rank {owner}, reference {}", references[at]));
            }
            let said = 1 + (row % 3) as u8;
            let expected = if said == 1 && representative != at { 2 } else { said };
            if outcomes[at] != expected {
                return no("answer", format!("vector {at}: {}, not {expected}", outcomes[at]));
            }
            new += u64::from(representative != at && expected == 1);
            full += u64::from(representative != at && expected == 3);
        }
        if *totals != [new, full] {
            return no("totals", format!("{totals:?}, not {:?}", [new, full]));
        }
        Ok(())
    }
}
