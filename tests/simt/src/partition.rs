//! A rank of a cluster sorts its vectors by owner (cuda/warpset/cluster/partition.cuh): warps claim representatives, scatter them
//! to runs, and gather what owners answer.

use crate::explorer::{Program, Wrong};
use crate::machine::{Ending, Grid, Kernel, WARP};
use crate::memory::{Memory, Use};
use crate::table::{argument, wrong};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::{HashMap, HashSet};

unsafe extern "C" {
    static warpset_simt_partition_bytes: [u64; 2];
    fn warpset_simt_partition_claim(argument: *const std::ffi::c_void);
    fn warpset_simt_partition_scatter(argument: *const std::ffi::c_void);
    fn warpset_simt_partition_gather(argument: *const std::ffi::c_void);
    fn warpset_simt_partition_lay_out(argument: *const std::ffi::c_void);
    fn warpset_simt_partition_answer(argument: *const std::ffi::c_void);
}

/// `warpset::PartitionView`, and what the kernels of one lane write.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Argument {
    vectors: u64,
    count: u64,
    seeds: u64,
    hash_mask: u64,
    bounds: u64,
    slots: u64,
    representatives: u64,
    rows: u64,
    counts: u64,
    cursors: u64,
    first_rows: u64,
    runs: u64,
    replies: u64,
    outcomes: u64,
    references: u64,
    owners: u64,
    totals: u64,
    width: u32,
    ranks: u32,
    slot_mask: u32,
    with_references: u32,
    to_first_rows: u64,
    to_runs: u64,
    to_replies: u64,
    send: u64,
    reply: u64,
}

const VIEW_BYTES: u64 = size_of::<Argument>() as u64 - 40;

/// Whether C++ has the same layouts.
pub fn has_the_layouts_of_rust() -> bool {
    // SAFETY: a constant that C++ defines, and nobody writes.
    unsafe { warpset_simt_partition_bytes == [VIEW_BYTES, size_of::<Argument>() as u64] }
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
        let (width, ranks) = (rng.random_range(1..=5usize), rng.random_range(1..=4usize));
        // Up to more than a warp takes at a time; few distinct ones, or as many as there are.
        let count = if rng.random_bool(0.1) { rng.random_range(1..=300usize) } else { rng.random_range(1..=70) };
        let kinds = if rng.random_bool(0.5) { 1 + count / 8 } else { 4 * count };
        let vectors: Vec<Vec<u32>> = (0..count)
            .map(|_| {
                let kind = rng.random_range(0..kinds) as u32;
                // Alike up to the last word.
                (0..width).map(|word| if word == width - 1 { kind } else { 7 }).collect()
            })
            .collect();
        let seeds: Vec<[u64; 2]> = (0..=width).map(|_| [rng.random(), rng.random()]).collect();
        // Now and then all have one hash, or one of four.
        let hash_mask = *[u64::MAX, u64::MAX, 0, 3 << 62].get(rng.random_range(0..4usize)).expect("there are four");
        let bounds: Vec<u64> = (0..ranks as u64).map(|rank| rank * (u64::MAX / ranks as u64)).collect();
        let slots = (2 * count).next_power_of_two();
        let mut shared = |name: &str, bytes: usize| memory.allocate(name, Use::Shared, bytes.max(1)) as u64;
        let (representatives, rows) = (shared("representatives", 4 * count), shared("rows", 4 * count));
        let (outcomes, references, owners) =
            (shared("outcomes", count), shared("references", 8 * count), shared("owners", 4 * count));
        let (first_rows, runs, replies) =
            (shared("first rows", 8 * (ranks + 1)), shared("runs", 8 * ranks), shared("replies", 8 * ranks));
        let (send, reply) = (shared("send", 4 * width * count), shared("reply", 9 * count + 512 * ranks));
        let view = Argument {
            vectors: memory.allocate_with("vectors", Use::Constant, &vectors.concat()) as u64,
            count: count as u64,
            seeds: memory.allocate_with("seeds", Use::Constant, &seeds) as u64,
            hash_mask,
            bounds: memory.allocate_with("bounds", Use::Constant, &bounds) as u64,
            slots: memory.allocate_with("slots", Use::Shared, &vec![u32::MAX; slots]) as u64,
            representatives,
            rows,
            counts: memory.allocate_with("counts", Use::Shared, &vec![0u64; ranks]) as u64,
            cursors: memory.allocate_with("cursors", Use::Shared, &vec![0u64; ranks]) as u64,
            first_rows,
            runs,
            replies,
            outcomes,
            references,
            owners,
            totals: memory.allocate_with("totals", Use::Shared, &[0u64; 2]) as u64,
            width: width as u32,
            ranks: ranks as u32,
            slot_mask: slots as u32 - 1,
            with_references: 1,
            to_first_rows: first_rows,
            to_runs: runs,
            to_replies: replies,
            send,
            reply,
        };
        let view = Box::new(view);
        let grid = |kernel: Kernel, blocks, threads| {
            vec![Grid { blocks, threads, scratch_bytes: 0, kernel, argument: argument(&*view) }]
        };
        let warps = rng.random_range(1..=3);
        let launches = vec![
            grid(warpset_simt_partition_claim, warps, WARP),
            grid(warpset_simt_partition_lay_out, 1, 1),
            grid(warpset_simt_partition_scatter, warps, WARP),
            grid(warpset_simt_partition_answer, 1, 1),
            grid(warpset_simt_partition_gather, warps, WARP),
        ];
        self.case = Some((vectors, view));
        launches
    }

    fn judge(&mut self, memory: &Memory, _: Ending) -> Result<(), Wrong> {
        let (vectors, view) = self.case.as_ref().expect("a case was set up");
        let (count, width, ranks) = (vectors.len(), view.width as usize, view.ranks as usize);
        let no = |rule, detail: String| Err(wrong(rule, detail, Vec::new()));
        let representatives = memory.at(view.representatives as *const u32, count);
        let rows = memory.at(view.rows as *const u32, count);
        let first_rows = memory.at(view.first_rows as *const u64, ranks + 1);
        let (outcomes, references) =
            (memory.at(view.outcomes as *const u8, count), memory.at(view.references as *const u64, count));
        let (owners, totals) = (memory.at(view.owners as *const u32, count), memory.at(view.totals as *const u64, 2));
        let distinct: HashSet<&Vec<u32>> = vectors.iter().collect();
        if first_rows[ranks] != distinct.len() as u64 {
            return no("rows", format!("{} are sent of {} distinct vectors", first_rows[ranks], distinct.len()));
        }
        let sent = memory.at(view.send as *const u32, distinct.len() * width);
        let (mut sent_for, mut met) = (HashMap::new(), HashSet::new());
        let (mut new, mut full) = (0, 0);
        for (at, vector) in vectors.iter().enumerate() {
            let representative = representatives[at] as usize;
            if representative >= count || vectors[representative] != *vector {
                return no("representative", format!("{representative} represents {at}, which is another vector"));
            }
            if *sent_for.entry(vector).or_insert(representative) != representative {
                return no("representative", format!("{vector:?} has two"));
            }
            let row = rows[representative] as usize;
            let owner = (0..ranks).rfind(|rank| first_rows[*rank] <= row as u64 && first_rows[*rank] < first_rows[rank + 1]);
            if row >= distinct.len() || sent[row * width..][..width] != vector[..] {
                return no("run", format!("row {row} is not vector {at}"));
            }
            if representative == at && !met.insert(row) {
                return no("run", format!("row {row} has two vectors"));
            }
            if owners[at] as usize != owner.unwrap_or(ranks) || references[at] != row as u64 + 1 {
                return no("answer", format!("vector {at}: rank {}, reference {}", owners[at], references[at]));
            }
            let said = 1 + (row % 3) as u8;
            let expected = if said == 1 && representative != at { 2 } else { said };
            if outcomes[at] != expected {
                return no("answer", format!("vector {at}: {}, not {expected}", outcomes[at]));
            }
            new += u64::from(expected == 1);
            full += u64::from(expected == 3);
        }
        if *totals != [new, full] {
            return no("totals", format!("{totals:?}, not {:?}", [new, full]));
        }
        Ok(())
    }
}
