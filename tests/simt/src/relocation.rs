//! Relocation of compact cuckoo tables (cuda/warpset/compact/relocation.cuh): keys are put, relocated, put back, and put again.
//! The tables are small and have too few slots for all keys.

use crate::checks::{Contents, Pool};
use crate::compact::{Layout, Level};
use crate::explorer::{Program, Wrong};
use crate::machine::{Ending, Grid, WARP};
use crate::memory::{Memory, Use};
use crate::stress::batch_view;
use crate::table::{BatchArgument, Config, FULL, Kernels, NEW, PutBackArgument, RelocateArgument, SEEN, Table, argument, wrong};
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::HashSet;

/// Batches of all keys before and after the stash is relocated, and batches of the remaining keys in between.
struct Case {
    table: Table,
    pool: Pool,
    before: BatchOf,
    relocate: Box<RelocateArgument>,
    put_back: Box<PutBackArgument>,
    after: BatchOf,
}

struct BatchOf {
    keys: Vec<usize>,
    argument: Box<BatchArgument>,
}

/// Random cases of one spec of compact tables.
pub struct Relocation {
    kernels: &'static Kernels,
    case: Option<Case>,
}

impl Relocation {
    pub fn new(kernels: &'static Kernels) -> Self {
        assert!(kernels.is_compact() && !kernels.is_tree());
        Self { kernels, case: None }
    }

    /// Draws a layout with two functions, all slots in one round, and a stash in which some slots are reserved for keys that are
    /// put back.
    fn layout(&self, rng: &mut Pcg64Mcg) -> Layout {
        let (key_bits, slot_bits) = (self.kernels.key_bits, self.kernels.slot_bits);
        // If both functions lead to the same bucket, relocation chains are long.
        let alike = rng.random_bool(0.1);
        let (multipliers, step) =
            if alike { ([1; 3], 0) } else { ([0; 3].map(|_| rng.random::<u64>() | 1), rng.random::<u64>() | 1) };
        let mut layout = Layout { key_bits, slot_bits, levels: [Level::default(); 2], multipliers, step };
        let slots = layout.slots_per_bucket(0);
        layout.levels[0] =
            Level { buckets: rng.random_range(2..=3), functions: 2, limits: [slots, 0, 0], rounds: 1, kept_rounds: 0 };
        assert!(layout.most_functions(0) >= 2, "{}: codes of one function only", self.kernels.name());
        layout.levels[1].buckets = rng.random_range(1..=3).max(2);
        let functions = rng.random_range(1..=layout.most_functions(1).min(4));
        let limit = rng.random_range(3..=7);
        layout.levels[1] = Level { functions, limits: [limit, 8, 0], rounds: 1, kept_rounds: 1, ..layout.levels[1] };
        layout
    }

    fn search(&self, batch: &BatchOf, warps: usize) -> Grid {
        let scratch_bytes = self.kernels.scratch_of_warp();
        Grid {
            blocks: warps,
            threads: WARP,
            scratch_bytes,
            kernel: self.kernels.find_or_put,
            argument: argument(&*batch.argument),
        }
    }
}

fn batch(memory: &mut Memory, table: &Table, pool: &Pool, keys: Vec<usize>, name: &str) -> BatchOf {
    let batch = batch_view(memory, table.kernels, pool, &keys, name);
    BatchOf { keys, argument: Box::new(BatchArgument { view: table.view, batch }) }
}

impl BatchOf {
    /// The outcome of each key.
    fn outcomes<'a>(&'a self, memory: &'a Memory) -> impl Iterator<Item = (usize, u32)> + 'a {
        let outcomes = memory.read_at::<u8>(self.argument.batch.outcomes, self.keys.len());
        self.keys.iter().copied().zip(outcomes.iter().map(|outcome| (*outcome).into()))
    }
}

impl Program for Relocation {
    fn name(&self) -> String {
        format!("{}-relocates", self.kernels.name())
    }

    fn memory_bytes(&self) -> usize {
        1 << 20
    }

    fn steps(&self) -> u64 {
        2000
    }

    fn set_up(&mut self, memory: &mut Memory, seed: u64) -> Vec<Vec<Grid>> {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let layout = self.layout(&mut rng);
        let config = Config::of_compact(layout, rng.random());
        let table = Table::allocate(memory, self.kernels, config);
        table.clear(memory);
        let mask = u64::MAX >> (64 - layout.key_bits);
        let small = rng.random_bool(0.3);
        let count = rng.random_range(table.slots * 3 / 4..=table.slots * 9 / 8);
        let keys = (0..count).map(|number| if small { number } else { rng.random::<u64>() & mask });
        let pool = Pool::new(2, keys.collect::<Vec<_>>().iter().map(|key| vec![*key as u32, (*key >> 32) as u32]));

        let mut keys: Vec<usize> = (0..pool.len()).collect();
        keys.shuffle(&mut rng);
        let before = batch(memory, &table, &pool, keys.clone(), "before");
        keys.shuffle(&mut rng);
        let after = batch(memory, &table, &pool, keys, "after");
        let slots = layout.levels[1].buckets as usize * 8;
        let relocate = Box::new(RelocateArgument {
            view: table.view,
            seed: rng.random(),
            keys: memory.allocate("left over", Use::Shared, 8 * slots).cast(),
            counts: memory.allocate_with("relocated", Use::Shared, &[0u64; 2]).cast(),
        });
        let threads = *[1, 3, 8, WARP].choose(&mut rng).expect("there are numbers");
        let blocks = rng.random_range(1..=2);
        let relocation =
            Grid { blocks, threads, scratch_bytes: 0, kernel: self.kernels.relocate, argument: argument(&*relocate) };
        let mut back = batch_view(memory, self.kernels, &pool, &vec![0; slots], "put back");
        back.vectors = relocate.keys as u64;
        let batch = BatchArgument { view: table.view_to_put_back(), batch: back };
        let put_back = Box::new(PutBackArgument { batch, relocated: relocate.counts });
        let putting_back = Grid {
            blocks: 1,
            threads: WARP,
            scratch_bytes: self.kernels.scratch_of_warp(),
            kernel: self.kernels.put_back,
            argument: argument(&*put_back),
        };
        let launches = vec![vec![self.search(&before, 2)], vec![relocation], vec![putting_back], vec![self.search(&after, 1)]];
        self.case = Some(Case { table, pool, before, relocate, put_back, after });
        launches
    }

    fn judge(&mut self, memory: &Memory, _: Ending) -> Result<(), Wrong> {
        let Case { table, pool, before, relocate, put_back, after } = self.case.as_ref().expect("a case was set up");
        // Whichever keys were moved, each key must be stored once, and no slot before it on its walk may be free.
        let contents = Contents::read(table, memory, pool, false)?;
        contents.check_counts(table, memory)?;
        let [taken, left_over] = memory.at(relocate.counts, 1)[0];
        let (mut was_left_over, mut without_place) = (HashSet::new(), HashSet::new());
        let outcomes = memory.read_at::<u8>(put_back.batch.batch.outcomes, left_over as usize);
        for (key, outcome) in memory.at(relocate.keys, left_over as usize).iter().zip(outcomes) {
            let number = pool.number(&[*key as u32, (*key >> 32) as u32]);
            let Some(number) = number.filter(|number| was_left_over.insert(*number)) else {
                return Err(wrong("left over", format!("{key:#x}, which nobody offered, or twice"), Vec::new()));
            };
            match u32::from(*outcome) {
                NEW => {}
                FULL => drop(without_place.insert(number)),
                outcome => return Err(wrong("left over", format!("key {number} is {outcome} when it is put back"), Vec::new())),
            }
        }
        if left_over > taken {
            return Err(wrong("wrong count", format!("{left_over} keys left over of {taken}"), Vec::new()));
        }
        contents.check_kept(table, pool, |key| was_left_over.contains(&key))?;
        let mut stored = HashSet::new();
        for (key, outcome) in before.outcomes(memory) {
            match outcome {
                NEW if without_place.remove(&key) => {}
                NEW => drop(stored.insert(key)),
                FULL => {}
                _ => return Err(wrong("no outcome", format!("key {key}: {outcome}, the first time"), Vec::new())),
            }
        }
        if let Some(key) = without_place.iter().next() {
            return Err(wrong("left over", format!("key {key} is left over, but was not stored"), Vec::new()));
        }
        for (key, outcome) in after.outcomes(memory) {
            let is_right = match outcome {
                SEEN => stored.contains(&key),
                NEW => stored.insert(key),
                FULL => {
                    contents.check_full(table, memory, pool, key)?;
                    !stored.contains(&key)
                }
                _ => false,
            };
            if !is_right {
                return Err(wrong(
                    "lost vector",
                    format!("key {key}, stored before: {}, is {outcome}", stored.contains(&key)),
                    Vec::new(),
                ));
            }
        }
        for (key, slot) in contents.slot_of.iter().enumerate() {
            if slot.is_some() != stored.contains(&key) {
                return Err(wrong("lost vector", format!("key {key} is at {slot:?}"), Vec::new()));
            }
        }
        Ok(())
    }
}
