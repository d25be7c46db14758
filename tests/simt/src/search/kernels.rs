//! Arguments of the kernels (cpp/search.inl), and their results in memory.

use super::What;
use super::case::{Case, Found, MOST_STEPS};
use crate::machine::{Grid, Kernel};
use crate::memory::{Memory, Use};
use crate::table::{Table, View, argument};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// Mirrors the structure of the kernels in cpp/search.inl.
#[repr(C)]
pub struct Kernels {
    pub argument_bytes: u64,
    pub threads: u64,
    pub shared_bytes: u64,
    pub moves: u64,
    pub begin: Kernel,
    pub search: Kernel,
    pub begin_passes: Kernel,
    pub forget: Kernel,
    pub seed_first: Kernel,
    pub seed_second: Kernel,
    pub seeded: Kernel,
    pub sweep_first: Kernel,
    pub sweep_second: Kernel,
    pub tally: Kernel,
    pub list: Kernel,
    pub listed_members: Kernel,
    pub list_steps: Kernel,
    pub read: Kernel,
    pub find: Kernel,
    pub begin_way: Kernel,
    pub go_back: Kernel,
}

// SAFETY: the fields are constants: numbers and function pointers.
unsafe impl Sync for Kernels {}

unsafe extern "C" {
    pub static warpset_simt_search_system: Kernels;
    pub static warpset_simt_search_product: Kernels;
    pub static warpset_simt_search_rank: Kernels;
    pub static warpset_simt_search_rows: Kernels;
}

/// Mirrors `Argument` in cpp/search.inl.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Argument {
    pub view: View,
    pub tables: *const u32,
    pub initial: *const u32,
    pub order: *mut u64,
    pub starts: *mut u64,
    pub counts: *mut u64,
    pub search: *mut u64,
    pub limits: Limits,
    pub slots: u64,
    pub flags: *mut u32,
    pub queue: *mut u64,
    pub locations: *const u32,
    pub sweep: *mut u64,
    pub most: u64,
    pub count: u64,
    pub offers: *mut u32,
    pub listed: *const u64,
    pub runs: *mut u64,
    pub trail: Trail,
    pub kinds: *mut u32,
    pub labels: *const u32,
    pub marks: *const u32,
    pub first: *mut u64,
    pub members: *mut u32,
}

/// Mirrors `explore::Trail`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Trail {
    pub numbers: *mut u32,
    pub steps: *mut u64,
    pub room: u64,
    pub starts: *const u64,
    pub path: *mut u32,
    pub places: *mut u64,
}

/// Mirrors `explore::Limits`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Limits {
    pub states: u64,
    pub levels: u64,
    pub nanoseconds: u64,
    pub room: u64,
    pub deadlocks: u32,
    pub keep_going: u32,
}

pub const NO_LIMITS: Limits =
    Limits { states: u64::MAX, levels: u64::MAX, nanoseconds: u64::MAX, room: u64::MAX, deadlocks: 0, keep_going: 0 };

/// Index in `warpset::BatchCounts`.
pub const REJECTED: usize = 2;

// Indices of words in `explore::SearchState` and in `explore::Sweep`.
pub const SEARCH_WORDS: usize = 31;
pub const FIRST: usize = 0;
pub const NEXT: usize = 2;
pub const TILE: usize = 3;
pub const ROOM: usize = 18;
pub const OFFERED: usize = 21;
pub const TRANSITIONS: usize = 8;
pub const DEADLOCKS: usize = 9;
pub const OVERFLOWS: usize = 10;
pub const FOUND: usize = 11;
pub const FAULTY: usize = 13;
/// Each counter, with the word that holds its value at the start of the level.
pub const BEFORE: [(usize, usize); 3] = [(TRANSITIONS, 15), (DEADLOCKS, 16), (OVERFLOWS, 17)];
/// Words of the counters: levels, widest level, transitions, deadlocks, found, faulty.
pub const COUNTED: [usize; 6] = [4, 5, TRANSITIONS, DEADLOCKS, FOUND, FAULTY];
pub const SWEEP_WORDS: usize = 11;
pub const APPENDED: usize = 3;
pub const LISTED: usize = 8;
/// Counters of a sweep: accepting states, states in the residue, and states in the residue whose count has reached `most`.
pub const TALLIED: [usize; 3] = [5, 6, 7];

impl Kernels {
    /// Returns the kernels for one kind of search.
    pub fn of(what: What) -> &'static Self {
        // SAFETY: C++ defines these as constants, which no code writes.
        unsafe {
            match what {
                What::System => &warpset_simt_search_system,
                What::Rows => &warpset_simt_search_rows,
                What::Product => &warpset_simt_search_product,
                What::Level => &warpset_simt_search_rank,
            }
        }
    }

    /// Number of threads of a block.
    pub fn block(&self) -> usize {
        self.threads as usize
    }

    /// Returns a launch of `blocks` blocks.
    pub fn launch(&self, of: &Argument, kernel: Kernel, blocks: usize, threads: usize) -> Vec<Grid> {
        vec![Grid { blocks, threads, scratch_bytes: self.shared_bytes as usize, kernel, argument: argument(of) }]
    }

    /// Returns the launches of a search. If `rounds` is not zero, also the launches of that many rounds of passes, and of the
    /// kernels that prepare a run.
    pub fn launches(&self, of: &Argument, blocks: usize, rounds: usize) -> Vec<Vec<Grid>> {
        let threads = self.block();
        let launch = |kernel, blocks, threads| self.launch(of, kernel, blocks, threads);
        let Self {
            begin,
            search,
            begin_passes,
            forget,
            seed_first,
            seed_second,
            seeded,
            sweep_first,
            sweep_second,
            tally,
            list,
            listed_members,
            list_steps,
            read,
            find,
            begin_way,
            go_back,
            ..
        } = *self;
        let mut launches = vec![launch(begin, 1, 1), launch(search, blocks, threads)];
        if rounds > 0 {
            launches.push(launch(begin_passes, blocks, threads));
        }
        for _ in 0..rounds {
            for (seed, sweep) in [(seed_first, sweep_first), (seed_second, sweep_second)] {
                launches.extend([
                    launch(forget, 1, 1),
                    launch(seed, blocks, threads),
                    launch(seeded, 1, 1),
                    launch(sweep, blocks, threads),
                ]);
            }
            launches.extend([launch(forget, 1, 1), launch(tally, blocks, threads)]);
        }
        if rounds > 0 {
            launches.extend([
                launch(list, blocks, threads),
                launch(listed_members, 1, 1),
                launch(list_steps, blocks, threads),
                launch(read, blocks, threads),
                launch(find, blocks, threads),
                launch(begin_way, 1, 1),
                launch(go_back, blocks, threads),
            ]);
        }
        launches
    }
}

impl Argument {
    /// Creates the argument for a case, with random buffer sizes and random options.
    pub fn random(
        memory: &mut Memory,
        what: What,
        threads: usize,
        case: &Case,
        found: &Found,
        table: &Table,
        rng: &mut Pcg64Mcg,
    ) -> Self {
        let slots = table.slots as usize;
        // The buffer has space at least for the successors of one tile of a warp. A level may have any number of states.
        let rows_of_tile = |states: usize| 4 * threads + MOST_STEPS * states;
        let room = rows_of_tile(rng.random_range(32..120));
        let mut search = [0u64; SEARCH_WORDS];
        (search[ROOM], search[TILE]) = (room as u64, if room >= rows_of_tile(threads) { threads as u64 } else { 32 });
        let level: Vec<u32> = found.states.iter().flat_map(|(node, location)| [*node, *location]).collect();
        // In some cases the space is too small.
        let steps: usize = found.successors.iter().map(Vec::len).sum();
        let room_for_steps = if rng.random_bool(0.7) { steps + 1 } else { 1 + steps / 3 };
        let labels: Vec<u32> = (0..found.states.len() as u32).collect();
        let marks: Vec<u32> = labels.iter().map(|_| 2 * rng.random_range(0..4)).collect();
        let of = Self {
            view: table.view,
            tables: memory.allocate_with("tables", Use::Constant, &case.tables()),
            initial: memory.allocate_with("initial", Use::Constant, &level),
            order: memory.allocate_with("order", Use::Shared, &vec![0u64; slots]),
            starts: match what == What::Rows && rng.random_bool(0.5) {
                true => std::ptr::null_mut(),
                false => memory.allocate_with("starts", Use::Shared, &vec![0u64; slots]),
            },
            counts: memory.allocate_with("counts", Use::Shared, &[0u64; 5]),
            search: memory.allocate_with("search", Use::Shared, &search),
            limits: NO_LIMITS,
            slots: slots as u64,
            flags: memory.allocate_with("flags", Use::Shared, &vec![0u32; slots]),
            queue: memory.allocate("queue", Use::Shared, 8 * found.states.len()).cast(),
            locations: memory.allocate_with("locations", Use::Constant, &case.about),
            sweep: memory.allocate_with("sweep", Use::Shared, &[0u64; SWEEP_WORDS]),
            most: case.most.into(),
            count: rng.random_range(1..=found.states.len() as u64),
            offers: memory.allocate("offers", Use::Shared, 8 * room).cast(),
            listed: std::ptr::null(),
            runs: memory.allocate_with("runs", Use::Shared, &[0u64; 2 * SWEEP_WORDS]),
            trail: Trail {
                numbers: memory.allocate("numbers", Use::Shared, 4 * slots).cast(),
                steps: memory.allocate("steps", Use::Shared, 8 * room_for_steps).cast(),
                room: room_for_steps as u64,
                starts: std::ptr::null(),
                path: memory.allocate("path", Use::Shared, 8 * found.starts.len()).cast(),
                places: memory.allocate("places", Use::Shared, 8 * found.starts.len()).cast(),
            },
            kinds: memory.allocate("kinds", Use::Shared, 4 * found.states.len()).cast(),
            labels: memory.allocate_with("labels", Use::Constant, &labels),
            marks: memory.allocate_with("marks", Use::Constant, &marks),
            first: memory.allocate_with("first", Use::Shared, &[u64::MAX]),
            members: memory.allocate("members", Use::Shared, 8 * found.states.len()).cast(),
        };
        // Passes visit either all slots or the listed slots.
        Self {
            listed: if rng.random_bool(0.5) { of.order } else { std::ptr::null_mut() },
            trail: Trail { starts: of.starts, ..of.trail },
            ..of
        }
    }
}
