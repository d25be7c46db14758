//! Random cases: any operations that users may do concurrently, on tables that are too small, with hashes that collide and
//! vectors that look alike.

use crate::checks::{Contents, Pool, check_scripts};
use crate::compact::{Layout, Level};
use crate::explorer::{Program, Wrong};
use crate::machine::{Ending, Grid, Rules, WARP};
use crate::memory::{Memory, Use};
use crate::table::{
    ABSENT, BatchArgument, BatchView, Config, ExportArgument, FIND, FULL, GetArgument, INCREMENTAL, Kernels, MeasureArgument,
    NEW, NO_REFERENCE, Operation, PUT, SCAN, SEEN, ScriptArgument, Table, View, argument, wrong,
};
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::{HashMap, HashSet};

/// The size of a stress trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// A few independent lanes, as in a user's kernel: thousands of stress trials a second.
    Lanes,
    /// Whole warps with batches, readers and independent lanes together.
    Warps,
}

/// A batch that warps put, as whole vectors or incrementally, or look up.
pub(crate) struct Batch {
    finds: bool,
    incremental: bool,
    /// Blocks gather the vectors and put them: the batch then has no results of single vectors.
    pub by_blocks: bool,
    pub vectors: Vec<usize>,
    pub argument: Box<BatchArgument>,
}

/// A copy of the table's contents, taken by warps.
struct Export {
    argument: Box<ExportArgument>,
}

/// The case of one seed.
struct Case {
    table: Table,
    pool: Pool,
    view: Box<View>,
    batches: Vec<Batch>,
    script: Option<Box<ScriptArgument>>,
    operations: Vec<Operation>,
    operations_a_lane: usize,
    live_export: Option<Export>,
    live_get: Option<Box<GetArgument>>,
    /// Probe lengths, measured while others put.
    live_measure: Option<Box<MeasureArgument>>,
    afterwards: Option<Afterwards>,
    sequential: bool,
}

/// The second launch: reads the table after the first launch has ended.
struct Afterwards {
    find: Batch,
    export: Export,
    get: Box<GetArgument>,
    measure: Box<MeasureArgument>,
}

pub struct Stress {
    kernels: &'static Kernels,
    scale: Scale,
    stale: bool,
    case: Option<Case>,
}

impl Stress {
    /// `stale`: the machine's loads may see older values (otherwise operations are also checked to be linearizable).
    pub fn new(kernels: &'static Kernels, scale: Scale, stale: bool) -> Self {
        Self { kernels, scale, stale, case: None }
    }

    fn search(&self, rng: &mut Pcg64Mcg, batch: &Batch) -> Grid {
        let warps = rng.random_range(1..=2);
        let (blocks, a_block) = if rng.random() { (warps, 1) } else { (1, warps) };
        batch.grid(self.kernels, blocks, a_block)
    }
}

const BINS: usize = 4;

impl Program for Stress {
    fn name(&self) -> String {
        let stale = if self.stale { "" } else { "-sequential" };
        format!("{}-{}{stale}", self.kernels.name(), if self.scale == Scale::Lanes { "lanes" } else { "warps" })
    }

    fn memory_bytes(&self) -> usize {
        1 << 20
    }

    fn steps(&self) -> u64 {
        if self.scale == Scale::Lanes { 100 } else { 1000 }
    }

    fn rules(&self, rules: Rules, seed: u64) -> Rules {
        let mut rng = Pcg64Mcg::seed_from_u64(seed ^ 0x6B69_6C6C);
        let killed_after = rng.random_bool(0.1).then(|| rng.random_range(0..2 * self.steps()));
        // A vector that finds the node table full has looked at all of it, once per node: the wider the vector, the more steps
        // without a write.
        let wide = if self.kernels.is_tree() { 1 + u64::from(self.kernels.width) / 4 } else { 1 };
        let mut rules = Rules { killed_after, patience: rules.patience * wide, ..rules };
        rules.loads.stale &= self.stale;
        rules
    }

    fn set_up(&mut self, memory: &mut Memory, seed: u64) -> Vec<Vec<Grid>> {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let table = Table::allocate(memory, self.kernels, config(self.kernels, self.scale, &mut rng));
        let pool = pool(&table, most_vectors(table.room, self.scale), &mut rng);
        let words = pool.words(0..pool.len());
        let pool_words: *const u32 = memory.allocate_with("vectors", Use::Constant, &words);

        let mut case = Case {
            view: Box::new(table.view),
            batches: Vec::new(),
            script: None,
            operations: Vec::new(),
            operations_a_lane: 1,
            live_export: None,
            live_get: None,
            live_measure: None,
            afterwards: None,
            sequential: !self.stale,
            table,
            pool,
        };
        let mut grids = Vec::new();
        let mut earlier: Option<Batch> = None;
        if self.scale == Scale::Warps {
            // A batch that is put before the other grids start: its vectors may be parents.
            if self.kernels.is_tree() && rng.random() {
                let vectors = (0..rng.random_range(1..20)).map(|_| rng.random_range(0..case.pool.len())).collect();
                earlier = Some(batch(memory, &case.table, &case.pool, vectors, false, "earlier batch"));
            }
            for number in 0..rng.random_range(1..=2) {
                let count = [rng.random_range(0..4), rng.random_range(0..33), rng.random_range(0..100)].choose(&mut rng).copied();
                let vectors = (0..count.unwrap_or(1)).map(|_| rng.random_range(0..case.pool.len())).collect();
                let finds = number > 0 && rng.random_bool(0.25);
                let mut batch = batch(memory, &case.table, &case.pool, vectors, finds, &format!("batch {number}"));
                if self.kernels.is_tree() && !finds && rng.random() {
                    batch.make_incremental(memory, &case.pool, earlier.as_ref(), case.table.slots, &mut rng);
                }
                batch.by_blocks = !finds && self.kernels.scratch_of_block(1) > 0 && rng.random_bool(0.4);
                grids.push(self.search(&mut rng, &batch));
                case.batches.push(batch);
            }
            if rng.random_bool(0.25) {
                let export = export(memory, &case.table, "live export");
                grids.push(lanes(1, WARP, self.kernels.export, argument(&*export.argument)));
                case.live_export = Some(export);
            }
            if rng.random_bool(0.25) {
                let get = Box::new(get_all(memory, &case.table, "live get"));
                grids.push(lanes(1, WARP, self.kernels.get, argument(&*get)));
                case.live_get = Some(get);
            }
            // Drawn by a separate generator, so that the rest of the case does not depend on it.
            if Pcg64Mcg::seed_from_u64(seed ^ 0x6D65_6173).random_bool(0.25) {
                let measure = Box::new(measure(memory, &case.table, "live measure"));
                grids.push(lanes(1, WARP, self.kernels.measure, argument(&*measure)));
                case.live_measure = Some(measure);
            }
        }
        if self.scale == Scale::Lanes || rng.random_bool(0.25) {
            let count = rng.random_range(2..=if self.scale == Scale::Lanes { 6 } else { 3 });
            case.operations_a_lane = rng.random_range(1..=3);
            let find = if rng.random() { 0.0 } else { 0.4 };
            let operation = |rng: &mut Pcg64Mcg| {
                let kernels = case.table.kernels;
                if (kernels.is_tree() || kernels.is_indexed()) && rng.random_bool(0.15) {
                    let vector = rng.random_range(0..case.table.slots) as u32;
                    return Operation { kind: SCAN, vector, ..Operation::default() };
                }
                let put = if case.table.kernels.is_tree() && rng.random_bool(0.3) { INCREMENTAL } else { PUT };
                Operation {
                    kind: if rng.random_bool(find) { FIND } else { put },
                    vector: rng.random_range(0..case.pool.len()) as u32,
                    reads_back: rng.random_bool(0.3).into(),
                    parent: rng.random_range(0..=case.table.slots) as u32,
                    ..Operation::default()
                }
            };
            case.operations = (0..count * case.operations_a_lane).map(|_| operation(&mut rng)).collect();
            let (blocks, threads) = if rng.random() { (count, 1) } else { (1, count) };
            case.script = Some(Box::new(ScriptArgument {
                view: case.table.view,
                vectors: pool_words,
                count: case.pool.len() as u64,
                operations: case.operations.as_mut_ptr(),
                operations_a_lane: case.operations_a_lane as u64,
                cell: std::ptr::null_mut(),
            }));
            let script = case.script.as_deref().expect("just made");
            grids.push(lanes(blocks, threads, self.kernels.script, argument(script)));
        }

        let mut launches = Vec::new();
        if self.scale == Scale::Warps {
            launches.push(vec![lanes(rng.random_range(1..=2), WARP, self.kernels.clear, argument(&*case.view))]);
            if let Some(earlier) = earlier {
                launches.push(vec![self.search(&mut rng, &earlier)]);
                case.batches.push(earlier);
            }
            launches.push(grids);
            let afterwards = afterwards(memory, &case.table, &case.pool);
            launches.push(vec![
                self.search(&mut rng, &afterwards.find),
                lanes(1, WARP, self.kernels.export, argument(&*afterwards.export.argument)),
                lanes(1, WARP, self.kernels.get, argument(&*afterwards.get)),
                lanes(1, WARP, self.kernels.measure, argument(&*afterwards.measure)),
            ]);
            case.afterwards = Some(afterwards);
        } else {
            case.table.clear(memory);
            launches.push(grids);
        }
        self.case = Some(case);
        launches
    }

    fn judge(&mut self, memory: &Memory, ending: Ending) -> Result<(), Wrong> {
        let case = self.case.as_ref().expect("a case was set up");
        let killed = ending == Ending::Killed;
        let contents = Contents::read(&case.table, memory, &case.pool, killed)?;
        if killed {
            return Ok(()); // outcomes may not have been written
        }
        let mut news = HashMap::new();
        for batch in &case.batches {
            batch.check(&case.table, &case.pool, &contents, memory, &mut news)?;
        }
        check_scripts(&contents, &case.operations, case.operations_a_lane, case.sequential && case.batches.is_empty())?;
        for operation in case.operations.iter().filter(|operation| matches!(operation.kind, PUT | INCREMENTAL)) {
            *news.entry(operation.vector as usize).or_default() += u64::from(operation.outcome == NEW);
            if operation.outcome == FULL {
                contents.check_full(&case.table, memory, &case.pool, operation.vector as usize)?;
            }
        }
        contents.check_news(&news)?;
        contents.check_counts(&case.table, memory)?;
        if let Some(export) = &case.live_export {
            case.check_export(&contents, memory, export)?;
        }
        if let Some(get) = &case.live_get {
            case.check_get(&contents, memory, get)?;
        }
        case.afterwards.as_ref().map_or(Ok(()), |afterwards| case.check_afterwards(&contents, memory, afterwards))
    }
}

impl Batch {
    /// The launch, in blocks of one warp or of two.
    pub(crate) fn grid(&self, kernels: &Kernels, blocks: usize, warps_a_block: usize) -> Grid {
        let (kernel, scratch_bytes) = match self {
            Self { by_blocks: true, .. } => (kernels.put_by_blocks, kernels.scratch_of_block(warps_a_block)),
            Self { finds: true, .. } => (kernels.find, warps_a_block * kernels.scratch_of_warp()),
            Self { incremental: true, .. } => (kernels.find_or_put_incremental, warps_a_block * kernels.scratch_of_warp()),
            _ => (kernels.find_or_put, warps_a_block * kernels.scratch_of_warp()),
        };
        Grid { blocks, threads: warps_a_block * WARP, scratch_bytes, kernel, argument: argument(&*self.argument) }
    }

    /// Gives the vectors parents: the vectors of an earlier batch, mostly with masks; or the contents of random slots, without
    /// masks.
    fn make_incremental(&mut self, memory: &mut Memory, pool: &Pool, earlier: Option<&Batch>, slots: u64, rng: &mut Pcg64Mcg) {
        self.incremental = true;
        let view = &mut self.argument.batch;
        let Some(earlier) = earlier else {
            let parent = |rng: &mut Pcg64Mcg| if rng.random_bool(0.8) { rng.random_range(0..=slots) } else { NO_REFERENCE };
            let parents: Vec<u64> = self.vectors.iter().map(|_| parent(rng)).collect();
            view.parents = memory.allocate_with("parents", Use::Constant, &parents) as u64;
            return;
        };
        // The references that the earlier batch returns are the parents of this batch, position by position.
        self.vectors.truncate(earlier.vectors.len());
        view.count = self.vectors.len() as u64;
        view.parents = earlier.argument.batch.references;
        if rng.random_bool(0.2) {
            return;
        }
        let mut masks = Vec::new();
        for (&vector, &parent) in self.vectors.iter().zip(&earlier.vectors) {
            let mut mask = vec![0u32; pool.width.div_ceil(32)];
            for (at, (word, old)) in pool.vector(vector).iter().zip(pool.vector(parent)).enumerate() {
                mask[at / 32] |= u32::from(word != old || rng.random_bool(0.1)) << (at % 32);
            }
            // Mask bits beyond the last word are ignored.
            if !pool.width.is_multiple_of(32) && rng.random_bool(0.3) {
                mask[pool.width / 32] |= rng.random::<u32>() << (pool.width % 32);
            }
            masks.extend(mask);
        }
        view.changed = memory.allocate_with("changed", Use::Constant, &masks) as u64;
    }
}

impl Batch {
    /// Checks the batch's results against the table's contents. Adds to `news` how often each vector was New.
    pub(crate) fn check(
        &self,
        table: &Table,
        pool: &Pool,
        contents: &Contents,
        memory: &Memory,
        news: &mut HashMap<usize, u64>,
    ) -> Result<(), Wrong> {
        if self.by_blocks {
            return self.check_blocks(table, pool, contents, memory, news);
        }
        let view = &self.argument.batch;
        let count = self.vectors.len();
        let (outcomes, references) = (memory.read_at::<u8>(view.outcomes, count), memory.read_at::<u64>(view.references, count));
        let mut fresh = Vec::new();
        let (mut full, mut full_nodes) = (0, 0);
        for ((&vector, &outcome), &reference) in self.vectors.iter().zip(outcomes).zip(references) {
            contents.check_result(vector, outcome.into(), reference)?;
            let allowed = if self.finds { [SEEN, ABSENT, ABSENT] } else { [NEW, SEEN, FULL] };
            if !allowed.contains(&outcome.into()) {
                return Err(wrong("no outcome", format!("vector {vector}: {outcome}"), Vec::new()));
            }
            match u32::from(outcome) {
                NEW => {
                    *news.entry(vector).or_default() += 1;
                    fresh.push(reference);
                }
                FULL => {
                    full += 1;
                    full_nodes += u64::from(contents.check_full(table, memory, pool, vector)?);
                }
                _ => {}
            }
        }
        let hits = if self.finds { outcomes.iter().filter(|outcome| u32::from(**outcome) == SEEN).count() } else { fresh.len() };
        let expected = [count as u64, hits as u64, full, fresh.len() as u64, full_nodes];
        let counts = memory.read_at::<[u64; 5]>(view.counts, 1)[0];
        if counts != expected {
            return Err(wrong("wrong count", format!("the batch counted {counts:?}, not {expected:?}"), Vec::new()));
        }
        let mut given = memory.read_at::<u64>(view.new_references, fresh.len()).to_vec();
        given.sort_unstable();
        fresh.sort_unstable();
        if given != fresh {
            return Err(wrong("new references", format!("{given:?}, not {fresh:?}"), Vec::new()));
        }
        Ok(())
    }

    /// Checks a batch that blocks gathered. Of equal vectors in one cache, only one was looked for.
    fn check_blocks(
        &self,
        table: &Table,
        pool: &Pool,
        contents: &Contents,
        memory: &Memory,
        news: &mut HashMap<usize, u64>,
    ) -> Result<(), Wrong> {
        let view = &self.argument.batch;
        let [offered, hits, full, references, full_nodes] = memory.read_at::<[u64; 5]>(view.counts, 1)[0];
        let (mut rejected, mut rejections, mut without_node) = (HashSet::new(), 0, 0);
        for &vector in self.vectors.iter().filter(|vector| contents.slot_of[**vector].is_none()) {
            rejections += 1;
            if rejected.insert(vector) {
                without_node += u64::from(contents.check_full(table, memory, pool, vector)?);
            }
        }
        let fits = offered == self.vectors.len() as u64
            && hits == references
            && (contents.scarce || (rejected.len() as u64..=rejections).contains(&full))
            && (without_node..=full).contains(&full_nodes);
        if !fits || hits > offered {
            let counts = [offered, hits, full, references, full_nodes];
            let detail = format!("the batch counted {counts:?}; {} vectors of {rejections} are not stored", rejected.len());
            return Err(wrong("wrong count", detail, Vec::new()));
        }
        let mut given = HashSet::new();
        for &reference in memory.read_at::<u64>(view.new_references, hits as usize) {
            let vector = self.vectors.iter().find(|vector| contents.slot_of[**vector] == Some(reference));
            let Some(&vector) = vector.filter(|_| given.insert(reference)) else {
                return Err(wrong(
                    "new references",
                    format!("{reference} is not that of a vector of the batch, once"),
                    Vec::new(),
                ));
            };
            *news.entry(vector).or_default() += 1;
        }
        Ok(())
    }
}

impl Case {
    /// Checks that the rows of an export are stored vectors with their references, each once. Returns their number.
    fn check_export(&self, contents: &Contents, memory: &Memory, export: &Export) -> Result<usize, Wrong> {
        let argument = &export.argument;
        let rows = memory.at(argument.cursor, 1)[0] as usize;
        let references = memory.at(argument.references, rows);
        let words = memory.at(argument.vectors, rows * self.pool.width);
        let mut given = HashSet::new();
        for (reference, vector) in references.iter().zip(words.chunks(self.pool.width)) {
            let slot = &contents.slots[*reference as usize];
            if !slot.is_complete() || slot.words != vector || !given.insert(reference) {
                return Err(wrong("export", format!("{vector:x?} was given for slot {reference}"), slot.about()));
            }
        }
        Ok(rows)
    }

    /// Checks for all slots that words that were read are those of the slot's final vector, and that the others have been
    /// counted.
    fn check_get(&self, contents: &Contents, memory: &Memory, get: &GetArgument) -> Result<(), Wrong> {
        let words = memory.at(get.vectors, get.count as usize * self.pool.width);
        for (slot, vector) in contents.slots.iter().zip(words.chunks(self.pool.width)) {
            let read = |(word, stored): (&u32, &u32)| word == stored || *word == UNREAD;
            if slot.is_complete() && !vector.iter().zip(&slot.words).all(read) {
                return Err(wrong("get", format!("{vector:x?}"), slot.about()));
            }
            if !slot.is_complete() && vector.iter().any(|word| *word != UNREAD) {
                return Err(wrong("get", format!("{vector:x?}, where there is no vector"), slot.about()));
            }
        }
        let (invalid, unread) = (memory.at(get.invalid, 1)[0], words.iter().filter(|word| **word == UNREAD).count() as u64);
        // A stored word may equal the value that marks unread words.
        if invalid > unread || invalid + stored_words_like_unread(contents) < unread {
            return Err(wrong("get", format!("{unread} words were not read, {invalid} counted"), Vec::new()));
        }
        Ok(())
    }

    fn check_afterwards(&self, contents: &Contents, memory: &Memory, afterwards: &Afterwards) -> Result<(), Wrong> {
        let count = self.pool.len();
        let outcomes = memory.read_at::<u8>(afterwards.find.argument.batch.outcomes, count);
        for (vector, outcome) in outcomes.iter().enumerate() {
            let expected = if contents.slot_of[vector].is_some() { SEEN } else { ABSENT };
            if u32::from(*outcome) != expected {
                let detail = format!("a later launch finds vector {vector} {outcome}, not {expected}");
                return Err(wrong("lost vector", detail, Vec::new()));
            }
        }
        let mut ignored = HashMap::new();
        afterwards.find.check(&self.table, &self.pool, contents, memory, &mut ignored)?;
        let stored = contents.slot_of.iter().flatten().count();
        let rows = self.check_export(contents, memory, &afterwards.export)?;
        if rows != stored {
            return Err(wrong("export", format!("{rows} vectors of {stored}"), Vec::new()));
        }
        let invalid = memory.at(afterwards.get.invalid, 1)[0];
        let expected = (self.table.slots + 1 - stored as u64) * self.pool.width as u64;
        if invalid != expected {
            return Err(wrong("get", format!("{invalid} words could not be read, not {expected}"), Vec::new()));
        }
        self.check_get(contents, memory, &afterwards.get)?;
        let lengths: u64 = memory.at(afterwards.measure.lengths, BINS).iter().sum();
        if lengths != stored as u64 {
            return Err(wrong("measure", format!("{lengths} vectors of {stored}"), Vec::new()));
        }
        self.live_measure.as_ref().map_or(Ok(()), |live| check_live_measure(memory, live, &afterwards.measure))
    }
}

/// Checks probe lengths measured while others put. A vector stays in its slot, so no length may exceed the vector's final
/// distance from its first bucket.
fn check_live_measure(memory: &Memory, live: &MeasureArgument, last: &MeasureArgument) -> Result<(), Wrong> {
    let lengths = |of: &MeasureArgument| memory.at(of.lengths, BINS).to_vec();
    let longest = |of: &MeasureArgument| memory.at(of.totals.cast::<u64>().cast_const(), 1)[0];
    let fits = lengths(live).iter().zip(lengths(last)).all(|(live, last)| *live <= last) && longest(live) <= longest(last);
    let detail =
        || format!("{:?} and {} at most, {:?} and {} at last", lengths(live), longest(live), lengths(last), longest(last));
    if fits { Ok(()) } else { Err(wrong("measure", detail(), Vec::new())) }
}

pub(crate) fn lanes(blocks: usize, threads: usize, kernel: crate::machine::Kernel, argument: *const std::ffi::c_void) -> Grid {
    Grid { blocks, threads, scratch_bytes: 0, kernel, argument }
}

fn config(kernels: &Kernels, scale: Scale, rng: &mut Pcg64Mcg) -> Config {
    let primes = [2, 2, 2, 3, 5, 7, 13];
    let few =
        if scale == Scale::Lanes || kernels.slots_per_bucket() * kernels.slot_words() as u64 > 64 { 4 } else { primes.len() };
    let masks = [u64::MAX, u64::MAX, 0, 1 << 63, 3 << 62, 0x8000_0000_0000_0001];
    let empties = [rng.random(), [0; 4], [u32::MAX; 4]];
    let slices = primes[rng.random_range(0..few)];
    // Slices of a power of two of buckets, which a search leaves at once: it comes to all buckets if the numbers have no common
    // divisor. Or a table of one slice.
    let slice_buckets = match slices {
        2 => *[0, 1].choose(rng).expect("there are numbers"),
        3 => *[0, 1, 2, 4].choose(rng).expect("there are numbers"),
        _ => 0,
    };
    let buckets = slices * slice_buckets.max(1);
    let hash_mask = *masks.choose(rng).expect("there are masks");
    let mut config = Config::of_buckets(buckets, hash_mask, *empties.choose(rng).expect("there are patterns"), rng.random());
    config.slice_buckets = if slice_buckets == 0 { buckets } else { slice_buckets };
    if kernels.is_indexed() {
        // Mostly enough for all slots and for the rows that every lane may own at once; otherwise fewer.
        let room = config.buckets * kernels.slots_per_bucket();
        let lanes = if scale == Scale::Lanes { 6 } else { 6 * WARP as u64 };
        config.rows = if rng.random_bool(0.8) { room + lanes } else { rng.random_range(1..=room) };
        config.spare_cells = *[1, 2, 8, 64, 256].choose(rng).expect("there are numbers");
    }
    config.layout = kernels.is_compact().then(|| layout(kernels, config.buckets, config.hash_mask, rng));
    if kernels.is_tree() {
        // Two slots per bucket: enough for all nodes of all vectors, or for some.
        let enough = most_vectors(config.buckets * kernels.slots_per_bucket(), scale) as u32 * (kernels.width - 2) / 2 + 1;
        let buckets = if rng.random_bool(0.6) { enough } else { rng.random_range(2..=enough.max(2)) };
        config.node_buckets = next_prime(buckets);
        // Number of nodes that references of a compact root can distinguish.
        let most = if kernels.is_compact() { 1u64 << (kernels.left_bits() - 1) } else { 1 << 31 };
        assert!(u64::from(config.node_buckets) < most, "{}: {} buckets of nodes", kernels.name(), config.node_buckets);
        let masks = [u32::MAX, u32::MAX, 0, 1 << 31, 3 << 30, 0x8000_0001];
        config.node_hash_mask = *masks.choose(rng).expect("there are masks");
        config.node_probe_limit = if rng.random_bool(0.7) { config.node_buckets } else { rng.random_range(1..=2) };
    }
    config
}

/// Draws the layout of a compact table in which few slots may be taken, in one round or several, with or without a stash.
fn layout(kernels: &Kernels, buckets: u64, hash_mask: u64, rng: &mut Pcg64Mcg) -> Layout {
    let (key_bits, slot_bits) = (kernels.key_bits, kernels.slot_bits);
    let limits = |slots: u64, rng: &mut Pcg64Mcg| {
        let most = if rng.random() { 2 } else { slots };
        let mut limits = [0; 3].map(|_| rng.random_range(1..=most));
        limits.sort_unstable();
        (limits, rng.random_range(1..=3))
    };
    let (multipliers, step) = match hash_mask {
        0 => ([1; 3], 0),
        _ => ([0; 3].map(|_| rng.random::<u64>() | 1), rng.random::<u64>() | 1),
    };
    let mut layout = Layout { key_bits, slot_bits, levels: [Level::default(); 2], multipliers, step };
    for (level, buckets) in [buckets, *[0, 2, 3].choose(rng).expect("there are numbers")].into_iter().enumerate() {
        if buckets > 0 {
            layout.levels[level].buckets = buckets;
            let (limits, all_rounds) = limits(layout.slots_per_bucket(level), rng);
            let functions = rng.random_range(1..=layout.most_functions(level).min(4));
            let kept_rounds = if level == 1 { rng.random_range(0..all_rounds) } else { 0 };
            layout.levels[level] = Level { buckets, functions, limits, rounds: all_rounds - kept_rounds, kept_rounds };
        }
    }
    layout
}

pub fn next_prime(at_least: u32) -> u32 {
    let is_prime =
        |number: &u32| (2..).take_while(|factor| factor * factor <= *number).all(|factor| !number.is_multiple_of(factor));
    (at_least.max(2)..).find(is_prime).expect("there is one")
}

/// Largest number of vectors of a stress trial: it exceeds the number of slots.
fn most_vectors(slots: u64, scale: Scale) -> usize {
    if scale == Scale::Lanes { 4 } else { (slots * 5 / 4 + 3).min(48) as usize }
}

/// Draws vectors that differ everywhere, or in few words, or consist of EMPTY patterns; for a tree, of words that would be valid
/// halves of pairs.
pub(crate) fn pool(table: &Table, most: usize, rng: &mut Pcg64Mcg) -> Pool {
    let width = table.kernels.width();
    let count = rng.random_range(1..=most);
    if let (Some(layout), false) = (&table.layout, table.kernels.is_tree()) {
        return Pool::new(width, (0..count).map(|number| key(layout, number as u64, rng)).collect::<Vec<_>>());
    }
    let style = rng.random_range(0..6);
    let base: Vec<u32> = (0..width).map(|_| rng.random()).collect();
    let classes = (table.kernels.chunks() + 1).next_power_of_two();
    let empty = table.view.roots.empty;
    let vector = |number: usize, rng: &mut Pcg64Mcg| -> Vec<u32> {
        let mut vector = base.clone();
        match style {
            0 => vector.iter_mut().for_each(|word| *word = rng.random()),
            1 => vector.iter_mut().for_each(|word| *word = rng.random_range(0..2)),
            2 => vector[width - 1] = number as u32,
            3 => vector[rng.random_range(0..width)] = rng.random_range(0..3),
            4 => vector[0] = number as u32,
            _ if table.kernels.is_tree() => {
                let zero = 2 * table.view.nodes.buckets;
                let odd = [0, 0, 1, 2, u32::MAX, u32::MAX, u32::MAX - 1, zero, zero + 1];
                vector.iter_mut().for_each(|word| *word = *odd.choose(rng).expect("there are words"));
            }
            _ => {
                // Chunks of 16, 8 and 4 bytes all start at a word where a pattern's first word may be.
                let classed = |rng: &mut Pcg64Mcg| empty[0] ^ rng.random_range(0..2 * classes);
                for (at, word) in vector.iter_mut().enumerate() {
                    *word = if at % 2 == 0 && rng.random_bool(0.7) { classed(rng) } else { empty[at % 4] };
                }
                vector[width - 1] = if width % 2 == 1 { classed(rng) } else { vector[width - 1] };
            }
        }
        vector
    };
    Pool::new(width, (0..count).map(|number| vector(number, rng)).collect::<Vec<_>>())
}

/// Draws a key that is small, or random, or at an end of a window; a few keys have too many bits.
fn key(layout: &Layout, number: u64, rng: &mut Pcg64Mcg) -> Vec<u32> {
    let mask = u64::MAX >> (64 - layout.key_bits);
    let key = match rng.random_range(0..8) {
        0 if layout.key_bits < 64 => rng.random::<u64>() | 1 << layout.key_bits,
        0..3 => number,
        3..6 => rng.random::<u64>() & mask,
        _ => {
            let (bucket, code) = (rng.random_range(0..layout.levels[0].buckets), rng.random_range(0..4));
            layout.key_at(0, bucket, code).unwrap_or(mask)
        }
    };
    vec![key as u32, (key >> 32) as u32]
}

/// A batch whose results are kept.
pub(crate) fn batch_view(memory: &mut Memory, kernels: &Kernels, pool: &Pool, vectors: &[usize], name: &str) -> BatchView {
    let count = vectors.len();
    let words = pool.words(vectors.iter().copied());
    let input = memory.allocate_with(format!("{name}: vectors"), Use::Constant, &words);
    BatchView {
        vectors: input as u64,
        count: count as u64,
        outcomes: memory.allocate(format!("{name}: outcomes"), Use::Shared, count) as u64,
        references: memory.allocate(format!("{name}: references"), Use::Shared, 8 * count) as u64,
        new_references: memory.allocate(format!("{name}: new references"), Use::Shared, 8 * count) as u64,
        new_capacity: count as u64,
        counts: memory.allocate_with(format!("{name}: counts"), Use::Shared, &[0u64; 5]) as u64,
        parents: 0,
        changed: 0,
        // A search has up to two warps.
        workspace: memory.allocate(format!("{name}: workspace"), Use::Shared, 2 * kernels.workspace_of_warp()) as u64,
        tag: 0,
    }
}

pub(crate) fn batch(memory: &mut Memory, table: &Table, pool: &Pool, vectors: Vec<usize>, finds: bool, name: &str) -> Batch {
    let view = batch_view(memory, table.kernels, pool, &vectors, name);
    Batch {
        finds,
        incremental: false,
        by_blocks: false,
        vectors,
        argument: Box::new(BatchArgument { view: table.view, batch: view }),
    }
}

fn export(memory: &mut Memory, table: &Table, name: &str) -> Export {
    let slots = table.slots as usize;
    let argument = ExportArgument {
        view: table.view,
        first: 0,
        last: table.slots,
        vectors: memory.allocate(format!("{name}: vectors"), Use::Shared, slots * table.kernels.width() * 4).cast(),
        references: memory.allocate(format!("{name}: references"), Use::Shared, slots * 8).cast(),
        cursor: memory.allocate_with(format!("{name}: cursor"), Use::Shared, &[0u64]),
    };
    Export { argument: Box::new(argument) }
}

/// Contents of the output words before a get.
const UNREAD: u32 = 0x5EED_0BAD;

fn stored_words_like_unread(contents: &Contents) -> u64 {
    contents.slots.iter().flat_map(|slot| &slot.words).filter(|word| **word == UNREAD).count() as u64
}

/// A get of every slot's reference, and of one reference to no slot.
fn get_all(memory: &mut Memory, table: &Table, name: &str) -> GetArgument {
    let all: Vec<u64> = (0..table.slots).chain([NO_REFERENCE]).collect();
    GetArgument {
        view: table.view,
        references: memory.allocate_with(format!("{name}: references"), Use::Constant, &all),
        count: all.len() as u64,
        vectors: memory.allocate_with(format!("{name}: vectors"), Use::Shared, &vec![UNREAD; all.len() * table.kernels.width()]),
        invalid: memory.allocate_with(format!("{name}: invalid"), Use::Shared, &[0u64]),
    }
}

/// A measurement of the probe lengths of all slots.
fn measure(memory: &mut Memory, table: &Table, name: &str) -> MeasureArgument {
    MeasureArgument {
        view: table.view,
        first: 0,
        last: table.room,
        lengths: memory.allocate_with(format!("{name}: lengths"), Use::Shared, &[0u64; BINS]),
        totals: memory.allocate_with(format!("{name}: totals"), Use::Shared, &[0u64; 2]).cast(),
        bins: BINS as u32,
    }
}

fn afterwards(memory: &mut Memory, table: &Table, pool: &Pool) -> Afterwards {
    let get = get_all(memory, table, "get");
    let measure = measure(memory, table, "measure");
    Afterwards {
        find: batch(memory, table, pool, (0..pool.len()).collect(), true, "later find"),
        export: export(memory, table, "export"),
        get: Box::new(get),
        measure: Box::new(measure),
    }
}
