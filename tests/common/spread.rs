//! A set over several ranks that are threads of this process, with the interface of the checker: each offer is divided among the
//! ranks, which make it concurrently.

use super::set::Set;
use super::vectors::Random;
use std::collections::HashMap;
use std::sync::Mutex;
use warpset::cluster::{self, Builder, Local, Request, Transport};
use warpset::{Batch, Device, Outcome, Reference, Result, Stats, Storage, TableBuilder, Tally, Words};

pub type Rank<S> = cluster::Table<Words, S>;

pub struct Spread<S> {
    ranks: Mutex<Vec<Rank<S>>>,
    /// Owner of each reference that was returned. References of different tables of a process differ.
    owners: Mutex<HashMap<Reference, u32>>,
    /// Random numbers that determine how offers are divided.
    luck: Mutex<Random>,
}

/// With small rounds: several ranks, and several tests, share one GPU's memory.
pub fn small<S: Storage>(table: TableBuilder<Words, S>) -> Builder<Words, S> {
    Builder::new(table).round(1 << 16)
}

/// Builds a rank of a cluster on each of these transports, concurrently. Builders differ for ranks that must fail.
pub fn build<S: Storage, T: Transport + 'static>(
    device: &Device,
    transports: Vec<T>,
    builder: impl Fn(usize) -> Builder<Words, S> + Sync,
) -> Vec<Result<Rank<S>>> {
    on_all(transports, |rank, transport| builder(rank).build(device, transport))
}

/// Calls `each` for every item on a thread of its own, concurrently. A panic of one is passed on to the caller.
pub fn on_all<I: Send, T: Send>(items: impl IntoIterator<Item = I>, each: impl Fn(usize, I) -> T + Sync) -> Vec<T> {
    let each = &each;
    std::thread::scope(|scope| {
        let start = |(number, item)| scope.spawn(move || each(number, item));
        let threads: Vec<_> = items.into_iter().enumerate().map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

impl<S: Storage> Spread<S> {
    pub fn new(
        device: &Device,
        ranks: usize,
        builder: impl Fn(TableBuilder<Words, S>) -> Builder<Words, S> + Sync,
        table: TableBuilder<Words, S>,
    ) -> Result<Self> {
        let tables = build(device, Local::ranks(ranks), |_| builder(table.clone())).into_iter().collect::<Result<_>>()?;
        Ok(Self { ranks: Mutex::new(tables), owners: Mutex::default(), luck: Mutex::new(Random::new(ranks as u64)) })
    }

    /// Calls `each` on all ranks concurrently; returns their results.
    pub fn all<T: Send>(&self, each: impl Fn(usize, &mut Rank<S>) -> T + Sync) -> Vec<T> {
        on_all(self.ranks.lock().unwrap().iter_mut(), each)
    }

    /// Reconnects the ranks by other transports.
    pub fn reconnect(&self, transports: Vec<Local>) -> Vec<Result<()>> {
        let mut ranks = self.ranks.lock().unwrap();
        on_all(ranks.iter_mut().zip(transports), |_, (rank, transport)| rank.reconnect(transport))
    }

    /// As `all`, for calls whose result must be the same on all ranks.
    pub fn agreed<T: Send + PartialEq + std::fmt::Debug>(&self, each: impl Fn(usize, &mut Rank<S>) -> T + Sync) -> T {
        let mut said = self.all(each);
        let first = said.remove(0);
        said.iter().for_each(|other| assert_eq!(*other, first, "ranks differ"));
        first
    }

    /// Random division of `count` items among the ranks; some get none.
    fn divide(&self, count: usize) -> Vec<std::ops::Range<usize>> {
        let (mut luck, ranks) = (self.luck.lock().unwrap(), self.ranks.lock().unwrap().len());
        let mut cuts: Vec<usize> = (1..ranks).map(|_| luck.below(count + 1)).collect();
        // In some cases one rank offers everything.
        if luck.below(8) == 0 {
            cuts.fill(if luck.below(2) == 0 { 0 } else { count });
        }
        cuts.extend([0, count]);
        cuts.sort_unstable();
        cuts.windows(2).map(|pair| pair[0]..pair[1]).collect()
    }

    /// Calls `each` on each rank with its share of `words`; returns the results end to end.
    fn shared<T: Send>(&self, words: &[u32], each: impl Fn(&mut Rank<S>, &[u32]) -> Vec<T> + Sync) -> Vec<T> {
        let width = self.width();
        let parts = self.divide(words.len() / width);
        let part = |rank: usize| &words[parts[rank].start * width..parts[rank].end * width];
        self.all(|rank, table| each(table, part(rank))).into_iter().flatten().collect()
    }

    fn remember(&self, places: &[Option<cluster::Reference>]) -> Vec<Option<Reference>> {
        let mut owners = self.owners.lock().unwrap();
        let mut remember = |place: cluster::Reference| {
            let known = owners.insert(place.reference, place.rank);
            assert!(known.is_none_or(|rank| rank == place.rank), "{:?} is of two ranks", place.reference);
            place.reference
        };
        places.iter().copied().map(|place| place.map(&mut remember)).collect()
    }
}

impl<S: Storage> Set for Spread<S> {
    fn width(&self) -> usize {
        self.ranks.lock().unwrap()[0].local().width()
    }

    fn slots(&self) -> u64 {
        self.ranks.lock().unwrap().iter().map(|rank| rank.local().slots()).sum()
    }

    fn bytes(&self) -> u64 {
        self.ranks.lock().unwrap().iter().map(|rank| rank.local().bytes()).sum()
    }

    fn find_or_put(&self, vectors: &[u32]) -> Batch {
        let width = self.width();
        let parts = self.divide(vectors.len() / width);
        let request = Request::new().references(true).stored_here(true);
        let batches = self.all(|rank, table| {
            let part = &vectors[parts[rank].start * width..parts[rank].end * width];
            table.find_or_put_many_with(part, request).expect("find-or-put")
        });
        let (mut joined, total) = (Batch::default(), batches[0].total);
        for batch in batches {
            assert_eq!((batch.total, &batch.error), (total, &None), "all ranks have the same sums");
            let of = |outcome| batch.positions(outcome).count() as u64;
            let counted = (of(Outcome::New), of(Outcome::Seen), of(Outcome::Full));
            assert_eq!((batch.tally.new, batch.tally.seen, batch.tally.full), counted);
            joined.tally += batch.tally;
            joined.outcomes.extend(batch.outcomes);
            joined.references.extend(self.remember(&batch.references));
            joined.new_references.extend(batch.stored_here);
        }
        let same = |a: Tally, b: Tally| (a.new, a.seen, a.full, a.full_nodes) == (b.new, b.seen, b.full, b.full_nodes);
        assert!(same(joined.tally, total), "{:?} is not the sum {total:?}", joined.tally);
        joined
    }

    fn contains(&self, vectors: &[u32]) -> Vec<bool> {
        self.shared(vectors, |table, part| table.contains_many(part).expect("contains"))
    }

    fn locate(&self, vectors: &[u32]) -> Vec<Option<Reference>> {
        let places = self.shared(vectors, |table, part| table.locate_many(part).expect("locate"));
        self.remember(&places)
    }

    fn get(&self, references: &[Reference]) -> Result<Vec<u32>, String> {
        let parts = self.divide(references.len());
        let owners = self.owners.lock().unwrap();
        let place = |reference: &Reference| cluster::Reference { rank: owners[reference], reference: *reference };
        let places: Vec<_> = references.iter().map(place).collect();
        drop(owners);
        let got = self.all(|rank, table| table.get_many(&places[parts[rank].clone()]).map_err(|error| error.to_string()));
        Ok(got.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// Rows of all ranks; each vector is on one rank.
    fn rows(&self) -> Vec<(Reference, Vec<u32>)> {
        let rows = self.all(|_, table| table.local().iter().collect::<Result<Vec<_>>>().expect("iteration"));
        rows.concat()
    }

    fn stored(&self) -> u64 {
        self.agreed(|_, table| table.len().expect("len"))
    }

    fn stats(&self) -> Stats {
        let all = self.agreed(|_, table| table.stats().expect("stats"));
        let mut sum = Stats::default();
        for stats in self.all(|_, table| table.local().stats().expect("stats")) {
            sum.probe_lengths.resize(stats.probe_lengths.len(), 0);
            sum.probe_lengths.iter_mut().zip(&stats.probe_lengths).for_each(|(sum, count)| *sum += count);
            sum.longest_probe = sum.longest_probe.max(stats.longest_probe);
            (sum.slots, sum.stored, sum.bytes) = (sum.slots + stats.slots, sum.stored + stats.stored, sum.bytes + stats.bytes);
        }
        assert_eq!((all.slots(), all.stored(), all.bytes()), (sum.slots, sum.stored, sum.bytes));
        sum
    }

    fn clear(&self) {
        self.all(|_, table| table.clear().expect("clear"));
    }

    fn grow(&self, capacity: u64) {
        let ranks = self.ranks.lock().unwrap().len() as u64;
        self.all(|_, table| table.reserve_total(capacity.div_ceil(ranks)).expect("reserve"));
    }
}
