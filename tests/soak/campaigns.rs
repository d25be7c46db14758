//! Find-or-puts into tables of every kind, all of them counted exactly: 10^12 for a soak.
//!
//! Vectors are made from numbers (numbered.rs), so the numbers of New and Seen vectors are known for every batch. Vectors are
//! Full only if a table is offered more than it takes; a vector that was rejected once is rejected again. Each table goes through
//! rounds. It is cleared and filled by batches in which every vector comes twice, by batches with half of the vectors stored
//! before, and from two streams at once. Then everything is offered again and again in other orders, and lookups find exactly the
//! stored vectors. Tree tables get changes of stored vectors, with masks and without. In every fourth round all outcomes and
//! references of some batches are judged one by one. In every eighth round the whole table is read back, and holds exactly the
//! vectors that were put; in every eighth it grows. Cuckoo tables are filled further than is possible without moving keys. Some
//! campaigns put from host memory into tables that grow by themselves.
//!
//! - `WARPSET_SOAK=1e9` makes 10^9 find-or-puts in all; the tables are smaller then.
//! - `WARPSET_SOAK_SEED=7` has other vectors, orders and hash functions; the seed decides all of them.
//! - `WARPSET_SOAK_ONLY=tree` runs only the campaigns with that in their names.

use super::numbered::{Done, How, Relocate, Session, Shape};
use crate::Result;
use std::ops::Range;
use std::time::Instant;
use warpset::{
    BucketTable, CompactTree, CompactTreeTable, Device, Nodes, Root, Storage, Strategy, TableBuilder, Tree, TreeTable,
    VectorTable, Words,
};
use warpset_random::{Random, mix};

/// Offers in a round, for each slot of the table.
const OFFERS_A_ROUND: u64 = 16;

/// Vectors of the longest batch, for vectors of one or two words.
const LONGEST: u64 = 1 << 27;

/// One kind of table, and its share of the total.
struct Campaign {
    name: &'static str,
    /// Share of all find-or-puts, in thousandths.
    share: u64,
    /// Base-2 logarithm of the slots of the full table.
    log2: u32,
    /// Bits of information in each word.
    bits: Vec<u8>,
    run: fn(&Campaign, &Setting) -> Result<Done>,
    /// Build strategy, for tables with trees.
    strategy: Strategy,
    /// Whether vectors are keys.
    is_of_keys: bool,
    /// Bits of a slot of keys, and bits of it that hold the number of a function. The keys have as many bits as a table of this
    /// size then allows.
    slot_bits: u32,
    function_bits: u32,
    from_host: bool,
}

/// Settings of all campaigns.
struct Setting {
    device: Device,
    total: f64,
    seed: u64,
}

fn campaigns() -> Vec<Campaign> {
    let of = |name, share, log2, bits: &[u8], run| {
        let (strategy, is_of_keys, slot_bits, function_bits, from_host) = (Strategy::DEFAULT, false, 0, 0, false);
        Campaign { name, share, log2, bits: bits.to_vec(), run, strategy, is_of_keys, slot_bits, function_bits, from_host }
    };
    let keys = |name, share, log2, run, slot_bits, function_bits| Campaign {
        is_of_keys: true,
        slot_bits,
        function_bits,
        ..of(name, share, log2, &[32, 32], run)
    };
    // Information in the last words only, or in the first only.
    let wide = |width: usize, bits: &[u8], at_end: bool| {
        let rest = vec![0; width - bits.len()];
        if at_end { [&rest, bits].concat() } else { [bits, &rest].concat() }
    };
    let of_16 = [3, 3, 2, 2, 2, 2, 2, 2, 3, 2, 2, 2, 2, 2, 2, 2];
    let of_32 = [2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1];
    vec![
        of("bucket, 1 word", 80, 28, &[32], bucket),
        of("bucket, 2 words", 206, 28, &[32, 32], bucket),
        of("bucket, 3 words", 50, 27, &[21, 21, 21], bucket),
        of("bucket, 4 words", 100, 27, &[0, 0, 32, 31], bucket),
        of("bucket, 5 words", 30, 26, &[32, 0, 0, 0, 31], bucket),
        of("bucket, 8 words", 90, 26, &wide(8, &[31, 32], true), bucket),
        of("bucket, 16 words", 40, 25, &wide(16, &[32, 31], false), bucket),
        of("bucket, 32 words", 15, 24, &wide(32, &[16, 16, 16, 15], true), bucket),
        of("bucket, 40 words", 5, 24, &wide(40, &[32, 31], false), bucket),
        of("tree, 4 words", 60, 27, &[9, 8, 8, 8], tree),
        of("tree, 7 words", 20, 27, &[5, 5, 5, 5, 5, 5, 4], tree),
        of("tree, 8 words", 40, 27, &[5, 5, 5, 4, 4, 4, 4, 3], tree),
        of("tree, 16 words", 18, 27, &of_16, tree),
        of("tree, 32 words", 6, 26, &of_32, tree),
        of("tree, 16 words, many nodes", 8, 25, &wide(16, &[11, 11, 11, 0, 0, 0, 0, 0, 3], false), tree),
        Campaign { strategy: Strategy::LD_IP_SM, ..of("tree, 8 words, ld_ip_sm", 8, 26, &[5, 5, 5, 4, 4, 4, 4, 3], tree) },
        Campaign { strategy: Strategy::CLR64, ..of("tree, 6 words, Clr64", 8, 26, &[6, 6, 6, 6, 5, 5], tree) },
        Campaign { strategy: Strategy::ONE_NP_GM, ..of("tree, 8 words, 1_np_gm", 8, 26, &[5, 5, 5, 4, 4, 4, 4, 3], tree) },
        of("compact tree, 4 words", 20, 27, &[9, 8, 8, 8], compact_tree),
        of("compact tree, 8 words", 40, 27, &[5, 5, 5, 4, 4, 4, 4, 3], compact_tree),
        of("compact tree, 16 words", 15, 27, &of_16, compact_tree),
        keys("root, 32-bit slots, 128 functions", 60, 28, root, 32, 7),
        keys("root, 32-bit slots, 4 functions", 30, 27, root, 32, 2),
        keys("root, 16-bit slots", 20, 26, root, 16, 3),
        keys("root, 64-bit slots", 20, 26, root, 64, 20),
        keys("cuckoo", 20, 26, cuckoo, 32, 1),
        Campaign { from_host: true, ..of("bucket, 2 words, from the host", 1, 23, &[32, 32], bucket) },
        Campaign { from_host: true, ..of("tree, 8 words, from the host", 1, 22, &[5, 5, 5, 4, 4, 4, 4, 3], tree) },
        Campaign { from_host: true, ..keys("root, from the host", 1, 22, root, 32, 5) },
    ]
}

/// Makes `total` find-or-puts, and prints a row for each campaign.
pub fn run(device: &Device, total: f64) -> Result<()> {
    let variable = |name: &str, default: &str| std::env::var(name).unwrap_or(default.into());
    let (device, seed) = (device.clone(), variable("WARPSET_SOAK_SEED", "1").parse()?);
    let only = variable("WARPSET_SOAK_ONLY", "");
    let setting = Setting { device, total, seed };
    println!("{}, {total:e} find-or-puts, seed {seed}\n", setting.device);
    println!(
        "| table | find-or-puts, M | seconds | G/s | judged, M | looked up, M | read back, M | cleared | grown | relocated |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let (start, mut sum) = (Instant::now(), Done::default());
    let all = campaigns();
    let wanted: Vec<_> = all.iter().filter(|campaign| campaign.name.contains(&only)).collect();
    if wanted.is_empty() {
        let names: Vec<_> = all.iter().map(|campaign| campaign.name).collect();
        return Err(format!("WARPSET_SOAK_ONLY={only} is part of no name of {}", names.join(", ")).into());
    }
    for campaign in wanted {
        let start = Instant::now();
        let done = (campaign.run)(campaign, &setting).map_err(|error| format!("{}, seed {seed}: {error}", campaign.name))?;
        print_row(campaign.name, done, start);
        sum += done;
    }
    print_row("all", sum, start);
    if sum.offers == 0 {
        return Err(format!("nothing was offered: WARPSET_SOAK={total} is too few").into());
    }
    println!("\n{} find-or-puts, seed {seed}, {:.1} s: every count exact", sum.offers, start.elapsed().as_secs_f64());
    Ok(())
}

fn print_row(name: &str, done: Done, start: Instant) {
    let (seconds, millions) = (start.elapsed().as_secs_f64(), |count: u64| count as f64 / 1e6);
    println!(
        "| {name} | {:.1} | {seconds:.2} | {:.2} | {:.1} | {:.1} | {:.1} | {} | {} | {} |",
        millions(done.offers),
        done.offers as f64 / seconds / 1e9,
        millions(done.judged),
        millions(done.looked_up),
        millions(done.read_back),
        done.cleared,
        done.grown,
        done.relocated
    );
}

impl Campaign {
    /// Number of find-or-puts to make.
    fn target(&self, setting: &Setting) -> u64 {
        (setting.total * self.share as f64 / 1000.0) as u64
    }

    /// Slots of a table. Small totals get small tables, so that each kind of round occurs.
    fn slots(&self, setting: &Setting) -> u64 {
        // Keys have 20 bits or more, which slots of smaller tables cannot hold.
        let least = if self.is_of_keys { 1 << 15 } else { 8000 };
        (self.target(setting) / (12 * OFFERS_A_ROUND)).clamp(least, 1 << self.log2)
    }

    /// Slots of a new table that grows to `slots` slots.
    fn first_slots(&self, slots: u64) -> u64 {
        if self.from_host { slots / 16 } else { slots }
    }

    /// The campaign with the longest keys that its slots can hold, and the bits of these keys.
    fn of_keys(&self, setting: &Setting) -> (Self, u32) {
        let buckets_log2 = (self.slots(setting) * u64::from(self.slot_bits) / 512).ilog2();
        let key_bits = (self.slot_bits + buckets_log2 - self.function_bits).min(64);
        (Self { bits: vec![key_bits.min(32) as u8, key_bits.saturating_sub(32) as u8], ..*self }, key_bits)
    }

    fn shape(&self, sides: bool, plain: bool, setting: &Setting) -> Shape {
        Shape::new(&self.bits, sides, plain, setting.seed)
    }

    fn random(&self, setting: &Setting) -> Random {
        Random::new(setting.seed ^ mix(self.name.len() as u64 + u64::from(self.log2) * 1000 + self.share))
    }

    fn longest(&self) -> u64 {
        (2 * LONGEST / self.bits.len() as u64).min(LONGEST)
    }
}

/// Builds a table of a campaign from a number of slots and a seed.
type Build<'a, S> = &'a dyn Fn(u64, u64) -> warpset::Result<VectorTable<S>>;

/// Differences between kinds of tables in a round.
#[derive(Clone, Copy)]
struct Rules {
    /// Fill of each round, in turn.
    fills: [f64; 4],
    /// Whether vectors have sides, and changes are offered.
    changes: bool,
    /// Whether outcomes may be judged one by one.
    judged: bool,
    /// Whether a vector that was Full is Full again.
    overfilled: bool,
}

const RULES: Rules = Rules { fills: [0.5, 0.7, 0.9, 0.95], changes: false, judged: true, overfilled: true };

fn bucket(campaign: &Campaign, setting: &Setting) -> Result<Done> {
    let width = campaign.bits.len();
    rounds(campaign, setting, campaign.shape(false, false, setting), RULES, None, &|slots, seed| {
        let builder = BucketTable::builder(width).capacity(campaign.first_slots(slots)).grows(campaign.from_host);
        builder.seed(seed).build(&setting.device)
    })
}

/// Tree tables, whose node tables are about half full at the end.
fn tree(campaign: &Campaign, setting: &Setting) -> Result<Done> {
    let (shape, width) = (campaign.shape(true, false, setting), campaign.bits.len());
    let builder = |slots| with_nodes::<Tree>(TreeTable::builder(width), &shape, slots, campaign);
    let rules = Rules { changes: true, ..RULES };
    rounds(campaign, setting, shape, rules, None, &|slots, seed| {
        builder(slots).seed(seed).strategy(campaign.strategy).build(&setting.device)
    })
}

fn compact_tree(campaign: &Campaign, setting: &Setting) -> Result<Done> {
    let (shape, width) = (campaign.shape(true, false, setting), campaign.bits.len());
    let builder = |slots| with_nodes::<CompactTree>(CompactTreeTable::builder(width), &shape, slots, campaign);
    let rules = Rules { changes: true, ..RULES };
    rounds(campaign, setting, shape, rules, None, &|slots, seed| builder(slots).seed(seed).build(&setting.device))
}

fn with_nodes<S: Nodes>(
    builder: TableBuilder<Words, S>,
    shape: &Shape,
    slots: u64,
    campaign: &Campaign,
) -> TableBuilder<Words, S> {
    let nodes = (2 * shape.most_nodes(slots + slots / 4)).min((1 << 32) - 2);
    builder.capacity(campaign.first_slots(slots)).nodes(nodes).grows(campaign.from_host)
}

/// Root tables.
fn root(campaign: &Campaign, setting: &Setting) -> Result<Done> {
    let (campaign, key_bits) = campaign.of_keys(setting);
    let builder = VectorTable::<Root>::builder(2).key_bits(key_bits).slot_bits(campaign.slot_bits).grows(campaign.from_host);
    rounds(&campaign, setting, campaign.shape(false, true, setting), RULES, None, &|slots, seed| {
        builder.clone().capacity(slots).seed(seed).build(&setting.device)
    })
}

fn cuckoo(campaign: &Campaign, setting: &Setting) -> Result<Done> {
    let (campaign, key_bits) = campaign.of_keys(setting);
    let builder = VectorTable::<Root>::builder(2).key_bits(key_bits).slot_bits(campaign.slot_bits).cuckoo(true);
    let rules = Rules { fills: [0.9, 0.95, 0.97, 0.98], judged: false, overfilled: false, ..RULES };
    rounds(&campaign, setting, campaign.shape(false, true, setting), rules, Some(VectorTable::relocate), &|slots, seed| {
        builder.clone().capacity(slots).seed(seed).build(&setting.device)
    })
}

/// Plays rounds until the campaign has made all its find-or-puts.
fn rounds<S: Storage>(
    campaign: &Campaign,
    setting: &Setting,
    shape: Shape,
    rules: Rules,
    relocate: Option<Relocate<S>>,
    build: Build<'_, S>,
) -> Result<Done> {
    let (mut random, slots, target) = (campaign.random(setting), campaign.slots(setting), campaign.target(setting));
    let session = |slots: u64, random: &mut Random| -> Result<Session<S>> {
        let session = Session::new(build(slots, random.number())?, shape, campaign.from_host)?;
        Ok(if let Some(relocate) = relocate { session.relocation(relocate) } else { session })
    };
    let mut sum = Done::default();
    let mut now = session(slots, &mut random)?;
    for round in 0u64.. {
        if sum.offers + now.done.offers >= target {
            break;
        }
        if rules.overfilled && !campaign.from_host && round.is_multiple_of(16) {
            // A search of a large bucket table takes a thousand looks before it returns Full; keys may not fit a small table.
            let slots = if campaign.is_of_keys { slots } else { slots.min(20_000) };
            sum += overfill(&mut session(slots, &mut random)?, slots, &mut random)?;
        }
        play(&mut now, campaign, rules, round, slots, &mut random).map_err(|error| format!("round {round}: {error}"))?;
        if round % 8 == 7 {
            sum += now.done;
            drop(now); // before there is memory for another
            now = session(slots, &mut random)?;
        } else {
            now.clear()?;
        }
    }
    sum += now.done;
    Ok(sum)
}

fn overfill<S: Storage>(session: &mut Session<S>, slots: u64, random: &mut Random) -> Result<Done> {
    let numbers = 0..session.table.slots() + slots / 16;
    let stored = session.overfill(numbers.clone(), random)?;
    session.table.reserve_total(2 * session.table.slots())?;
    session.done.grown += 1;
    session.fill_after(numbers, stored, random)?;
    Ok(session.done)
}

/// Plays one round in an empty table.
fn play<S: Storage>(
    session: &mut Session<S>,
    campaign: &Campaign,
    rules: Rules,
    round: u64,
    slots: u64,
    random: &mut Random,
) -> Result<()> {
    let (start, longest) = (session.done.offers, campaign.longest());
    let in_all = (slots as f64 * rules.fills[round as usize % 4]) as u64;
    let (own, of_sides) = if rules.changes { (in_all * 2 / 5, in_all / 5) } else { (in_all, 0) };
    let first = random.number_below(session.numbers() - 2 * in_all);
    let (end, judged) = (first + own, |turn| rules.judged && round % 4 == turn);
    let how = How::default();

    // Every vector twice in a batch; two streams at once.
    for part in parts(first..first + own / 2, longest / 4) {
        session.offer(0, part, 2, How { judged: judged(0), twice: round % 4 == 1, ..how }, random)?;
    }
    // Half of the vectors are stored.
    for part in parts(first + own / 4..end, if judged(2) { longest / 2 } else { longest }) {
        session.offer(0, part, 1, How { judged: judged(2), ..how }, random)?;
    }
    for size in [1, 31, 33, 1000] {
        let at = first + random.number_below(own - size);
        session.offer(0, at..at + size, 1, How { judged: rules.judged, ..how }, random)?;
    }
    let sides: &[u32] = if rules.changes { &[0, 1, 2, 3] } else { &[0] };
    for &side in &sides[1..] {
        // With masks and without. After this loop, each vector is offered as a change of another change.
        for part in parts(first..first + of_sides, longest / 4) {
            let masked = (round + u64::from(side)).is_multiple_of(2);
            session.offer(side, part, 1, How { judged: judged(3), changes_of: Some((0, masked)), ..how }, random)?;
        }
    }
    for &side in &sides[1..] {
        for part in parts(first..first + of_sides, longest / 4) {
            session.offer(side, part, 1, How { changes_of: Some((side % 3 + 1, round % 4 < 3)), ..how }, random)?;
        }
    }
    if round % 8 == 7 {
        session.grow(session.table.slots() + slots / 4)?;
    }
    let mut pass = 0;
    while session.done.offers - start < OFFERS_A_ROUND * in_all {
        for &side in sides {
            for part in parts(session.stored(side), longest) {
                session.offer(side, part, 1, How { twice: pass % 2 == 1, judged: false, ..how }, random)?;
            }
        }
        pass += 1;
    }
    for &side in sides {
        let stored = session.stored(side);
        for part in parts(stored.clone(), longest) {
            session.find(side, part, random)?;
        }
        session.find(side, stored.end..stored.end + own.min(1 << 24), random)?;
    }
    if round.is_multiple_of(4) {
        session.sample(random)?;
    }
    if round % 8 == 3 || round % 8 == 7 {
        session.read_back()?;
    }
    Ok(())
}

/// Divides a range into parts of at most `longest` numbers.
fn parts(range: Range<u64>, longest: u64) -> impl Iterator<Item = Range<u64>> {
    let end = range.end;
    range.step_by(longest as usize).map(move |first| first..end.min(first + longest))
}
