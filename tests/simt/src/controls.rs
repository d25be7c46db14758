//! Negative controls: known-wrong algorithms in cases in which they fail (cpp/controls/claiming.h), and kernels that break rules
//! of the machine (cpp/controls/machine.h). A simulator that does not catch them is worthless. For each wrong algorithm there is
//! a right one, which must survive the same trials.

use crate::checks::{Contents, Pool, check_scripts};
use crate::explorer::{Program, Wrong};
use crate::machine::{Ending, Grid, Kernel, Rules, WARP};
use crate::memory::{Memory, Use};
use crate::table::{FIND, NEW, NO_REFERENCE, Operation, PUT, SEEN, Slot, argument, wrong};
use std::collections::HashMap;

/// Argument of the lanes. Mirrors `controls::Script` in cpp/controls/frame.h.
#[repr(C)]
struct Argument {
    cells: *mut u64,
    slots: u32,
    chunks: u32,
    vectors: *const u64,
    operations: *mut Operation,
    operations_a_lane: u64,
    lanes_an_operation: u32,
    padding: u32,
}

/// The lanes that do an operation together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Team {
    One,
    Two,
    OneAChunk,
}

/// A find-or-put algorithm under test.
#[derive(Clone, Copy, Debug)]
pub struct Algorithm {
    name: &'static str,
    kernel: Kernel,
    team: Team,
    /// Whether vectors move after they were put, so that references mean nothing.
    moves: bool,
}

macro_rules! algorithms {
    ($($(#[$doc:meta])* $name:ident: $kernel:ident, $team:ident, $moves:literal;)+) => {
        unsafe extern "C" {
            $(fn $kernel(argument: *const std::ffi::c_void);)+
        }
        $($(#[$doc])*
        pub const $name: Algorithm = Algorithm {
            name: unprefixed(stringify!($kernel)), kernel: $kernel, team: Team::$team, moves: $moves
        };)+
        /// All algorithms, right and wrong.
        pub const ALGORITHMS: &[Algorithm] = &[$($name),+];
    };
}

algorithms! {
    /// Right, with the functions of `core/claim.cuh`.
    CHAINED: warpset_simt_control_chained, One, false;
    GPUEXPLORE_1: warpset_simt_control_gpuexplore1, One, false;
    GPUEXPLORE_2: warpset_simt_control_gpuexplore2, OneAChunk, false;
    /// Right if every lane is scheduled eventually.
    THESIS_SPINLOCK: warpset_simt_control_thesis_spinlock, One, false;
    THESIS_SPINLOCK_RELAXED: warpset_simt_control_thesis_spinlock_relaxed, One, false;
    LOOKS_AGAIN_WEAK: warpset_simt_control_looks_again_weak, One, false;
    LOOKS_AGAIN_TOGETHER_WEAK: warpset_simt_control_looks_again_together_weak, Two, false;
    LOOKS_AGAIN_TOGETHER_RELAXED: warpset_simt_control_looks_again_together_relaxed, Two, false;
    OUT_OF_ORDER: warpset_simt_control_out_of_order, One, false;
    PUT_BACKWARDS_FIND_FORWARDS: warpset_simt_control_put_backwards_find_forwards, One, false;
    /// Right: the order of the chunks is unusual, but the same for all lanes.
    BACKWARDS: warpset_simt_control_backwards, One, false;
    LAST_STORED: warpset_simt_control_last_stored, One, false;
    CUCKOO: warpset_simt_control_cuckoo, One, true;
}

impl Algorithm {
    /// Whether vectors move after they were put.
    pub fn moves(&self) -> bool {
        self.moves
    }
}

/// Strips the common prefix from the name of a kernel.
const fn unprefixed(name: &'static str) -> &'static str {
    name.split_at("warpset_simt_control_".len()).1
}

/// An operation: PUT or FIND, and the number of the vector.
pub type Call = (u32, u32);

/// Vectors, and operations on them that lanes do concurrently.
#[derive(Clone, Debug)]
pub struct Case {
    name: &'static str,
    /// Each vector as a list of chunks. All vectors have the same number of chunks.
    vectors: Vec<Vec<u64>>,
    /// Operations of each lane or team of lanes.
    scripts: Vec<Vec<Call>>,
}

const A: Call = (PUT, 0);
const B: Call = (PUT, 1);

impl Case {
    fn new(name: &'static str, vectors: &[&[u64]], scripts: &[&[Call]]) -> Self {
        let own = |words: &&[u64]| words.to_vec();
        Self { name, vectors: vectors.iter().map(own).collect(), scripts: scripts.iter().map(|calls| calls.to_vec()).collect() }
    }

    /// Two lanes put the same vector.
    pub fn equal() -> Self {
        Self::new("equal", &[&[0xA0, 0xA1, 0xA2]], &[&[A], &[A]])
    }

    /// Two lanes put vectors that differ in every chunk.
    pub fn different() -> Self {
        Self::new("different", &[&[0xA0, 0xA1, 0xA2], &[0xB0, 0xB1, 0xB2]], &[&[A], &[B]])
    }

    /// Two lanes put vectors that differ only in the last chunk.
    pub fn prefix() -> Self {
        Self::new("prefix", &[&[0xC0, 0xC1, 0xA2], &[0xC0, 0xC1, 0xB2]], &[&[A], &[B]])
    }

    /// Three lanes put two vectors with a common prefix.
    pub fn crowd() -> Self {
        Self::new("crowd", &[&[0xC0, 0xA1], &[0xC0, 0xB1]], &[&[A, B], &[B, A], &[A]])
    }

    /// As `crowd`, but one lane also finds the vector that it has put.
    pub fn crowd_and_find() -> Self {
        Self { name: "crowd-and-find", scripts: vec![vec![A, B], vec![B, A], vec![A, (FIND, 0)]], ..Self::crowd() }
    }

    /// Keys of one word with two possible slots each: slots 0 and 1 for A, 0 and 2 for B, and 2 and 3 for C. C is stored before
    /// B. Another lane finds A before B evicts it.
    pub fn evicted() -> Self {
        let (find, c) = ((FIND, 0), (PUT, 2));
        Self::new("evicted", &[&[0xA_01_00], &[0xB_02_00], &[0xC_03_02]], &[&[A, find], &[c, B]])
    }

    /// As `evicted`, but A is put again instead of found.
    pub fn evicted_and_put() -> Self {
        Self { name: "evicted-and-put", scripts: vec![vec![A, A], vec![(PUT, 2), B]], ..Self::evicted() }
    }

    /// One lane does all operations, one after another.
    fn alone(self) -> Self {
        Self { scripts: vec![self.scripts.concat()], ..self }
    }
}

/// An algorithm in a case.
pub struct Control {
    algorithm: Algorithm,
    case: Case,
    /// Whether each lane or team is a separate block. Otherwise all lanes are one warp.
    apart: bool,
    stale: bool,
    alone: bool,
    pool: Pool,
    operations: Vec<Operation>,
    cells: *mut u64,
    /// Argument of the launch. Lanes point to it.
    argument: Option<Box<Argument>>,
}

const SLOTS: usize = 4;
const EMPTY: u64 = u64::MAX;

impl Control {
    pub fn new(algorithm: Algorithm, case: Case) -> Self {
        let pool = Pool::new(2 * case.vectors[0].len(), case.vectors.iter().map(|vector| bytemuck::cast_slice(vector).to_vec()));
        Self {
            algorithm,
            case,
            apart: false,
            stale: true,
            alone: false,
            pool,
            operations: Vec::new(),
            cells: std::ptr::null_mut(),
            argument: None,
        }
    }

    /// Runs each lane, or team of lanes, in a separate block.
    pub fn apart(self) -> Self {
        Self { apart: true, ..self }
    }

    /// Runs on a machine whose loads return the newest value. Operations must then also be linearizable.
    pub fn sequential(self) -> Self {
        Self { stale: false, ..self }
    }

    /// Runs all operations on one lane, without concurrency: every algorithm must then be right.
    pub fn alone(self) -> Self {
        Self { alone: true, case: self.case.alone(), ..self }
    }

    fn chunks(&self) -> usize {
        self.case.vectors[0].len()
    }

    fn operations_a_lane(&self) -> usize {
        self.case.scripts.iter().map(Vec::len).max().unwrap_or(0)
    }

    fn lanes_an_operation(&self) -> usize {
        match self.algorithm.team {
            Team::One => 1,
            Team::Two => 2,
            Team::OneAChunk => self.chunks(),
        }
    }

    fn contents(&self, memory: &Memory) -> Result<Contents, Wrong> {
        let chunks = self.chunks();
        let slot = |(number, cells): (usize, &[u64])| Slot {
            decided: cells.iter().map(|cell| *cell != EMPTY).collect(),
            words: bytemuck::cast_slice(cells).to_vec(),
            ranges: (0..chunks).map(|chunk| (number * chunks + chunk) * 8..(number * chunks + chunk + 1) * 8).collect(),
        };
        let slots = memory.at(self.cells, SLOTS * chunks).chunks(chunks).enumerate().map(slot).collect();
        Contents::of(slots, &self.pool, false)
    }
}

impl Program for Control {
    fn name(&self) -> String {
        let add = |yes: bool, text: &'static str| if yes { text } else { "" };
        let (alone, apart) = (add(self.alone, "-alone"), add(self.apart, "-apart"));
        format!("{}-{}{alone}{apart}{}", self.algorithm.name, self.case.name, add(!self.stale, "-sequential"))
    }

    fn memory_bytes(&self) -> usize {
        1 << 12
    }

    fn steps(&self) -> u64 {
        20
    }

    fn rules(&self, mut rules: Rules, _: u64) -> Rules {
        rules.loads.stale &= self.stale;
        rules
    }

    fn set_up(&mut self, memory: &mut Memory, _: u64) -> Vec<Vec<Grid>> {
        let a_lane = self.operations_a_lane();
        let operation = |call: Option<&Call>| {
            call.map_or_else(Operation::default, |&(kind, vector)| Operation { kind, vector, ..Operation::default() })
        };
        let scripts = self.case.scripts.iter();
        self.operations = scripts.flat_map(|calls| (0..a_lane).map(move |at| operation(calls.get(at)))).collect();
        self.cells = memory.allocate_with("slots", Use::Shared, &vec![EMPTY; SLOTS * self.chunks()]);
        let vectors: *const u64 = memory.allocate_with("vectors", Use::Constant, &self.case.vectors.concat());
        let script = self.argument.insert(Box::new(Argument {
            cells: self.cells,
            slots: SLOTS as u32,
            chunks: self.case.vectors[0].len() as u32,
            vectors,
            operations: self.operations.as_mut_ptr(),
            operations_a_lane: a_lane as u64,
            lanes_an_operation: 0,
            padding: 0,
        }));
        let argument = argument(&**script);
        let (teams, lanes) = (self.case.scripts.len(), self.lanes_an_operation());
        self.argument.as_mut().expect("just made").lanes_an_operation = lanes as u32;
        let (blocks, threads) = if self.apart { (teams, lanes) } else { (1, teams * lanes) };
        vec![vec![Grid { blocks, threads, scratch_bytes: 0, kernel: self.algorithm.kernel, argument }]]
    }

    fn judge(&mut self, memory: &Memory, _: Ending) -> Result<(), Wrong> {
        let contents = self.contents(memory)?;
        if self.algorithm.moves {
            for operation in self.operations.iter_mut().filter(|operation| matches!(operation.outcome, NEW | SEEN)) {
                operation.reference = contents.slot_of[operation.vector as usize].unwrap_or(NO_REFERENCE);
            }
        }
        check_scripts(&contents, &self.operations, self.operations_a_lane(), !self.stale)?;
        let mut news = HashMap::new();
        for operation in &self.operations {
            *news.entry(operation.vector as usize).or_default() += u64::from(operation.outcome == NEW);
        }
        contents.check_news(&news)
    }
}

/// A kernel that breaks a rule of the machine or, as a positive control, keeps it.
pub struct Breach {
    name: &'static str,
    kernel: Kernel,
    lanes: usize,
    operations: Vec<Operation>,
    argument: Option<Box<Argument>>,
}

macro_rules! breaches {
    ($($name:ident: $kernel:ident, $lanes:expr;)+) => {
        unsafe extern "C" {
            $(fn $kernel(argument: *const std::ffi::c_void);)+
        }
        impl Breach {
            $(pub fn $name() -> Self {
                let (name, operations) = (stringify!($name), Vec::new());
                Self { name, kernel: $kernel, lanes: $lanes, operations, argument: None }
            })+
        }
    };
}

breaches! {
    scratch_voted: warpset_simt_control_scratch_voted, WARP;
    scratch_synced: warpset_simt_control_scratch_synced, WARP;
    plain_store_atomic_load: warpset_simt_control_plain_store_atomic_load, 2;
    two_votes: warpset_simt_control_two_votes, WARP;
    one_vote: warpset_simt_control_one_vote, WARP;
    leaves_before_the_vote: warpset_simt_control_leaves_before_the_vote, WARP;
    vote_of_a_whole_warp: warpset_simt_control_vote_of_a_whole_warp, WARP / 2;
    barrier_in_a_branch: warpset_simt_control_barrier_in_a_branch, 2 * WARP;
    waits_before_the_barrier: warpset_simt_control_waits_before_the_barrier, 2;
    barrier_between: warpset_simt_control_barrier_between, 2 * WARP;
    plain_load_past_the_end: warpset_simt_control_plain_load_past_the_end, 1;
    plain_store_past_the_end: warpset_simt_control_plain_store_past_the_end, 1;
    atomic_load_past_the_end: warpset_simt_control_atomic_load_past_the_end, 1;
    compare_and_swap_past_the_end: warpset_simt_control_compare_and_swap_past_the_end, 1;
    load_of_the_last: warpset_simt_control_load_of_the_last, 1;
    misaligned_load: warpset_simt_control_misaligned_load, 1;
    misaligned_compare_and_swap: warpset_simt_control_misaligned_compare_and_swap, 1;
    misaligned_row: warpset_simt_control_misaligned_row, 1;
    misaligned_input: warpset_simt_control_misaligned_input, 1;
    shared_as_such: warpset_simt_control_shared_as_such, 2;
    shared_load: warpset_simt_control_shared_load, 1;
    shared_compare_and_swap: warpset_simt_control_shared_compare_and_swap, 1;
    shared_store: warpset_simt_control_shared_store, 1;
    shared_fetch_add: warpset_simt_control_shared_fetch_add, 1;
    aligned_load: warpset_simt_control_aligned_load, 1;
    published_relaxed: warpset_simt_control_published_relaxed, 2;
    published_plain_relaxed: warpset_simt_control_published_plain_relaxed, 2;
    published_by_orders: warpset_simt_control_published_by_orders, 3;
    published_plain_by_orders: warpset_simt_control_published_plain_by_orders, 3;
    published_plain_by_fences: warpset_simt_control_published_plain_by_fences, 3;
    filter: warpset_simt_control_filter, 3;
    filter_ignores_puts: warpset_simt_control_filter_ignores_puts, 3;
    filter_loads_puts: warpset_simt_control_filter_loads_puts, 3;
    filter_lookup_relaxed: warpset_simt_control_filter_lookup_relaxed, 3;
    filter_begins_late: warpset_simt_control_filter_begins_late, 3;
    filter_ends_early: warpset_simt_control_filter_ends_early, 3;
    filter_ends_relaxed: warpset_simt_control_filter_ends_relaxed, 3;
}

impl Program for Breach {
    fn name(&self) -> String {
        self.name.to_owned()
    }

    fn memory_bytes(&self) -> usize {
        1 << 12
    }

    fn steps(&self) -> u64 {
        10
    }

    fn set_up(&mut self, memory: &mut Memory, _: u64) -> Vec<Vec<Grid>> {
        let cells = [0u64; 5];
        self.operations = vec![Operation::default(); self.lanes];
        let script = self.argument.insert(Box::new(Argument {
            cells: memory.allocate_with("cells", Use::Shared, &cells),
            slots: cells.len() as u32,
            chunks: 1,
            vectors: std::ptr::null(),
            operations: self.operations.as_mut_ptr(),
            operations_a_lane: 1,
            lanes_an_operation: 1,
            padding: 0,
        }));
        let scratch_bytes = self.lanes.next_multiple_of(WARP) * 4;
        vec![vec![Grid { blocks: 1, threads: self.lanes, scratch_bytes, kernel: self.kernel, argument: argument(&**script) }]]
    }

    fn judge(&mut self, _: &Memory, _: Ending) -> Result<(), Wrong> {
        let misread = self.operations.iter().position(|operation| operation.misread != 0);
        misread.map_or(Ok(()), |lane| Err(wrong("misread", format!("lane {lane} read what was not to be there"), Vec::new())))
    }
}

/// Replaces the operations of an exhaustive trial: on a tree table of 4 words, with chunks of 8 and lines of 32 bytes
/// (cpp/controls/tree.h), or on an indexed table of 2 words with slots of 64 bits (cpp/controls/indexed.h).
pub type TableControl = (&'static str, Kernel);

macro_rules! table_controls {
    ($($(#[$doc:meta])* $name:ident: $kernel:ident;)+) => {
        unsafe extern "C" {
            $(fn $kernel(argument: *const std::ffi::c_void);)+
        }
        $($(#[$doc])* pub const $name: TableControl = (unprefixed(stringify!($kernel)), $kernel);)+
    };
}

table_controls! {
    /// Right.
    TREE: warpset_simt_control_tree;
    /// Wrong: scans assume that a lane that reads a root can also read its nodes.
    TREE_SCAN_BELIEVES: warpset_simt_control_tree_scan_believes;
    /// Wrong: lanes pass references to each other by relaxed accesses.
    TREE_GIVEN_RELAXED: warpset_simt_control_tree_given_relaxed;
    /// Wrong: a node is stored, without a claim, in a slot that was read as EMPTY.
    TREE_NODES_STORED: warpset_simt_control_tree_nodes_stored;
    /// Wrong: as `TREE_NODES_STORED`, but with plain stores.
    TREE_NODES_STORED_PLAINLY: warpset_simt_control_tree_nodes_stored_plainly;
    /// Right.
    INDEXED: warpset_simt_control_indexed;
    /// Wrong: a slot gets the number of a row before the row is written.
    INDEXED_PUBLISHED_FIRST: warpset_simt_control_indexed_published_first;
    /// Wrong: the claim of a slot does not release the row.
    INDEXED_PUBLISHED_RELAXED: warpset_simt_control_indexed_published_relaxed;
    /// Wrong: slots are read with relaxed loads.
    INDEXED_READ_WITHOUT_ACQUIRE: warpset_simt_control_indexed_read_without_acquire;
    /// Wrong: a lost claim does not acquire the row of the winner.
    INDEXED_LOST_WITHOUT_ACQUIRE: warpset_simt_control_indexed_lost_without_acquire;
    /// Wrong: a lane that loses a claim continues with the next slot without comparing the winner's row.
    INDEXED_NEXT_WITHOUT_COMPARING: warpset_simt_control_indexed_next_without_comparing;
    /// Right: accesses of slots are relaxed, and fences order them.
    INDEXED_FENCED: warpset_simt_control_indexed_fenced;
    /// Wrong: the fence for a claim comes before the row is written.
    INDEXED_FENCED_BEFORE_WRITING: warpset_simt_control_indexed_fenced_before_writing;
    /// Wrong: the fence comes after the claim.
    INDEXED_FENCED_AFTER_CLAIMING: warpset_simt_control_indexed_fenced_after_claiming;
    /// Wrong: there is no fence between the load of a slot and the comparison with its row.
    INDEXED_READ_WITHOUT_FENCE: warpset_simt_control_indexed_read_without_fence;
    /// Wrong: there is no fence between a lost claim and the comparison with the winner's row.
    INDEXED_LOST_WITHOUT_FENCE: warpset_simt_control_indexed_lost_without_fence;
}
