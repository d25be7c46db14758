//! Rounds of an operation on all ranks, for words of any keys ("What a find-or-put of a batch does" in the module's
//! documentation).
//!
//! A [`RankEngine`] has the [`Link`] to the other ranks and [`DeviceRounds`]: [`Buffers`] own the device and the memory of
//! rounds, [`Partition`] sorts vectors by owner and collects answers, [`Puts`] searches the rank's table. A round calls
//! `Partition::sort`, `Partition::rows`, `Link::exchange_records`, `Link::exchange` of the runs, `check_runs`,
//! `Puts::search`, `Link::exchange` of the replies, `check_replies`, `Partition::collect`. Plans ([`RoundPart`], [`Rows`],
//! [`Asked`]) only describe what a round does (plan.rs). messages.rs determines where messages lie, and stamps them.
//!
//! In a first version every round looked for equal vectors, nothing overlapped, and outcomes always crossed the link. With it,
//! two H200 of one host put 9.9 G/s of two words and 6.9 of eight by NCCL, and one rank put 6.1 and 4.6; the exact filter alone
//! took 9 to 12 ms per batch of 2^27 vectors. Now two H200 put 31.2 and 16.6 G/s by NCCL (benches/several_gpus.md). The filter is
//! optional (`Builder::deduplicate`), for slow links.

use super::buffers::{Buffers, stream_of};
use super::link::{Link, agree};
use super::messages::{Messages, check_replies, check_runs};
use super::owners::Owners;
use super::partition::Partition;
use super::plan::{Asked, Fresh, Input, Output, RoundPart, Rows, Sender};
use super::puts::Puts;
use super::record::{NUMBERS, Operation, Record, Wants, check_answers, check_rows, check_sizes, tally_of, wrong};
use crate::core::growth::{GROW_AT_FILL, GROW_AT_MOST, GROW_CUCKOO_AT_FILL};
use crate::core::growth_limit::ranks::Proposal;
use crate::core::rank::CLUSTER_BATCH;
use crate::core::relocation::another_pass_helps;
use crate::core::table::RawTable;
use crate::layout::SearchMode;
use crate::layout::limits::MAX_CAPACITY;
use crate::layout::rank::Stream;
use crate::layout::size::{MAX_NODES, Size};
use crate::{Device, Error, Outcome, Result, Tally};

/// A rank's part of the cluster besides its table. The fields are dropped in this order, so that no rank copies from freed
/// memory.
pub(super) struct RankEngine {
    pub link: Link,
    pub device: DeviceRounds,
}

/// Parts of a rank that its device needs for rounds: buffers, the sorting and collecting of vectors, and the puts in between.
pub(super) struct DeviceRounds {
    pub buffers: Buffers,
    pub partition: Partition,
    pub puts: Puts,
}

impl DeviceRounds {
    /// Allocates everything for rounds of at most `most` vectors.
    pub(super) fn new(
        device: &Device,
        width: usize,
        ranks: usize,
        most: usize,
        deduplicates: bool,
        owners: Owners,
    ) -> Result<Self> {
        let buffers = Buffers::new(device, width, ranks, most, deduplicates)?;
        let partition = Partition::new(&buffers, deduplicates, owners)?;
        let puts = Puts::new(&buffers)?;
        Ok(Self { buffers, partition, puts })
    }
}

/// Input of an operation on one rank, and the results that it requests.
pub(super) struct Offer<'a> {
    pub operation: Operation,
    pub search: SearchMode,
    pub input: Input<'a>,
    /// Results requested for each vector.
    pub outcomes: bool,
    pub references: bool,
    pub owners: bool,
    /// Results requested for the vectors that are new on this rank.
    pub fresh: Fresh,
    /// Further numbers that are summed over all ranks.
    pub numbers: [u64; NUMBERS],
    /// Error of an invalid batch. If set, the rank offers nothing.
    pub refused: Option<Error>,
}

/// Results of an operation on one rank.
#[derive(Default)]
pub(super) struct Answers {
    pub outcomes: Vec<u8>,
    pub references: Vec<u64>,
    pub owners: Vec<u32>,
    /// References of vectors that are new on this rank.
    pub fresh: Vec<u64>,
    pub tally: Tally,
    pub total: Tally,
    pub sums: [u64; NUMBERS],
    /// Why a rank could not gain capacity. If set, no rank tries again.
    pub limit: Option<Error>,
    /// Whether vectors have moved, so that references from before are stale.
    pub moved: bool,
    /// Whether any rank requests references.
    pub anybody_wants_references: bool,
    /// Destination of the results in GPU memory; if `None`, they go to the vectors above.
    pub device: Option<DeviceResults>,
}

/// Addresses of results in the memory of the rank's GPU; 0 for results that are not requested.
#[derive(Clone, Copy)]
pub(super) struct DeviceResults {
    pub outcomes: u64,
    pub references: u64,
    pub owners: u64,
    /// Number of references of vectors that are new on this rank, including those that did not fit.
    pub stored: u64,
}

/// Outcome of a vector that a lookup has not found: `Outcome::Absent` of the kernels.
const ABSENT: u8 = 4;

/// Returns the value. Stores an error in `failed`, unless `failed` holds an earlier one.
fn keep<T>(result: Result<T>, failed: &mut Option<Error>) -> Option<T> {
    result.map_err(|error| failed.get_or_insert(error)).ok()
}

/// Sums of the numbers of all ranks. They wrap around on overflow.
pub(super) fn sums<const N: usize>(records: &[Record]) -> [u64; N] {
    std::array::from_fn(|at| records.iter().fold(0, |sum: u64, record| sum.wrapping_add(record.head.values[at])))
}

/// Measure by which ranks gain free slots, equal on all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maintenance {
    /// Multiply the numbers of slots and nodes by these factors, or take the rest of the memory if one rank must.
    Grow { slots: u64, nodes: u64 },
    /// Move keys of cuckoo tables.
    Relocate,
}

impl RankEngine {
    /// Returns this rank's record, with the numbers of slots and of stored vectors of its table.
    fn record(&self, raw: &RawTable) -> Result<Record> {
        let mut record = self.link.record();
        let ([stored, nodes], size) = (raw.stored(CLUSTER_BATCH)?, raw.size());
        (record.head.stored, record.head.nodes, record.head.slots, record.head.node_slots) =
            (stored, nodes, size.slots, size.nodes);
        Ok(record)
    }

    /// Tells all ranks that this one is ready, or has failed. Returns an error if any rank has failed.
    pub(super) fn agree(&mut self, operation: Operation, done: Result<()>) -> Result<Vec<Record>> {
        let own = done.err();
        let records = self.link.exchange_records(operation, self.link.record().failed(own.as_ref()))?;
        agree(&records, own)?;
        Ok(records)
    }

    /// Searches for vectors on all ranks, or puts them, until no rank has any left. Returns the last records.
    pub(super) fn rounds(&mut self, raw: &RawTable, offer: &Offer<'_>, answers: &mut Answers) -> Result<Vec<Record>> {
        /// When dropped, waits for the device, so that nothing uses the caller's memory any more, even after an error or a panic.
        struct SynchronizeOnDrop<'a>(&'a mut RankEngine);
        impl Drop for SynchronizeOnDrop<'_> {
            fn drop(&mut self) {
                // Keep the original error.
                let _ = self.0.device.buffers.device.synchronize();
            }
        }
        let guard = SynchronizeOnDrop(self);
        let rounds_before = guard.0.link.traffic.rounds;
        let done = guard.0.all_rounds(raw, offer, answers).map_err(|error| guard.0.or_wrong(error, rounds_before))?;
        // No wait is needed: `answered` has waited for everything, or nothing was begun.
        std::mem::forget(guard);
        Ok(done)
    }

    /// Returns the reason why an operation failed. If a GPU has found a wrong message in one of the operation's rounds, that
    /// message is the reason, and the connection ends. Otherwise `error` is.
    fn or_wrong(&mut self, error: Error, rounds_before: u64) -> Error {
        if self.link.has_ended() || self.link.traffic.rounds == rounds_before {
            return error;
        }
        // If the answers cannot be read, the device fails. Keep the error that was found first, which says more.
        match self.device.puts.answered(&self.device.buffers) {
            Ok((_, _, Some(wrong))) => {
                // `unless_ended` ends the connection here, and returns the error that it was given.
                let _ = self.link.unless_ended::<()>(Err(wrong.clone()));
                wrong
            }
            _ => error,
        }
    }

    fn all_rounds(&mut self, raw: &RawTable, offer: &Offer<'_>, answers: &mut Answers) -> Result<Vec<Record>> {
        let asked = self.asked(offer);
        let mut failed = offer.refused.clone();
        let DeviceRounds { buffers, partition, puts } = &mut self.device;
        partition.begin(asked);
        failed = failed.or(puts.begin(buffers, asked.fresh).err());
        // Compile now: no rank should compile while others wait for its messages.
        failed = failed.or(raw.prepare(offer.search, self.link.ranks() > 1).err());
        let count = offer.input.count(raw.width());
        let most = self.device.buffers.most;
        let mut part = RoundPart::first(if failed.is_some() { 0 } else { count }, most);
        let (mut copies, mut under_way, mut wrong_reply) = ([0; 2], None, None);
        let (mut rounds, mut rows_of_all) = (0, vec![vec![0; self.link.ranks()]; self.link.ranks()]);
        self.sort(raw, offer, &part, &mut failed);
        loop {
            let mut record = self.numbers(raw, offer, &mut failed);
            if failed.is_none() {
                let DeviceRounds { buffers, partition, .. } = &mut self.device;
                record.rows = keep(partition.rows(buffers, part.round), &mut failed).unwrap_or(record.rows);
            }
            let has_more = failed.is_none() && part.first + part.len < part.end;
            let record = record.flags(asked.wants, has_more, self.is_in_turn(raw, offer)).failed(failed.as_ref());
            let records = self.link.exchange_records(offer.operation, record.values(offer.numbers))?;
            agree(&records, failed.take())?;
            self.link.unless_ended(wrong_reply.take().map_or(Ok(()), Err))?;
            let sizes = if self.has_sizes(raw, offer) { check_sizes(&records) } else { Ok(()) };
            self.link.unless_ended(sizes.and_then(|()| check_rows(&records, most as u64)))?;
            rounds += 1;
            let sequence = self.link.sequence();
            answers.sums = sums(&records);
            answers.anybody_wants_references |= records.iter().any(|record| record.wants().references);
            if records.iter().all(|record| record.rows.iter().all(|rows| *rows == 0)) {
                return Ok(records);
            }
            let in_turn = records.iter().any(Record::is_in_turn);
            let is_last = !records.iter().any(Record::has_more);
            let may_grow = offer.operation == Operation::FindOrPut && raw.options.grows && answers.limit.is_none();
            if let Some(maintenance) = may_grow.then(|| growth_for(&records, raw)).flatten() {
                self.maintain(raw, maintenance, answers)?;
            }
            let rows = Rows {
                own: self.link.rank(),
                wants: records.iter().map(Record::wants).collect(),
                of: records.into_iter().map(|record| record.rows).collect(),
                sequence,
            };
            for (sum, rows) in rows_of_all.iter_mut().flatten().zip(rows.of.iter().flatten()) {
                *sum += rows;
            }
            let next = part.next(most);
            self.put(raw, offer, (&part, &rows), (!is_last).then_some(&next), &mut answers.fresh, &mut failed)?;
            // End the previous round: its replies cross while the table works on the present one.
            if let Some((part, rows)) = under_way.replace((part, rows)) {
                self.end(offer, (&part, &rows), answers, &mut copies, &mut wrong_reply, &mut failed)?;
            }
            if let Some((part, rows)) = under_way.take_if(|_| in_turn || is_last) {
                self.end(offer, (&part, &rows), answers, &mut copies, &mut wrong_reply, &mut failed)?;
            }
            if is_last {
                break;
            }
            part = next;
        }
        let mut record = self.numbers(raw, offer, &mut failed);
        if let Some((answered, fresh, wrong)) = keep(self.device.puts.answered(&self.device.buffers), &mut failed) {
            self.link.unless_ended(wrong.map_or(Ok(()), Err))?;
            record.answered = answered;
            if let Some(device) = &mut answers.device {
                device.stored = fresh;
            }
        }
        (record.head.offered, [record.head.copies_hit, record.head.copies_full]) = (count as u64, copies);
        let records = self.link.exchange_records(offer.operation, record.failed(failed.as_ref()))?;
        agree(&records, failed)?;
        self.link.unless_ended(wrong_reply.map_or(Ok(()), Err))?;
        let sizes = if self.has_sizes(raw, offer) { check_sizes(&records) } else { Ok(()) };
        self.link.unless_ended(sizes.and_then(|()| check_answers(&records, &rows_of_all, rounds * most as u64)))?;
        answers.tally = tally_of(&records, self.link.rank(), offer.search);
        answers.total = (0..records.len()).map(|rank| tally_of(&records, rank, offer.search)).sum();
        Ok(records)
    }

    /// Results requested in all rounds. With a filter for equal vectors, outcomes are always requested, because they also
    /// determine the outcomes of the vectors that were not sent.
    fn asked(&self, offer: &Offer<'_>) -> Asked {
        let outcomes = offer.outcomes || offer.references || self.device.partition.deduplicates();
        let wants = Wants { outcomes, references: offer.references };
        Asked { wants, owners: offer.owners, fresh: offer.fresh }
    }

    /// Whether a round may begin only after the previous round has ended: tables may grow in between, or the host takes the new
    /// references from a GPU.
    fn is_in_turn(&self, raw: &RawTable, offer: &Offer<'_>) -> bool {
        (offer.operation == Operation::FindOrPut && raw.options.grows)
            || (offer.fresh == Fresh::Host && self.device.buffers.is_gpu())
    }

    /// Whether records have the sizes of the tables. Ranks use these sizes to make room.
    fn has_sizes(&self, raw: &RawTable, offer: &Offer<'_>) -> bool {
        offer.operation == Operation::FindOrPut && (raw.options.grows || raw.options.is_cuckoo())
    }

    /// Returns this rank's record, with the sizes of its table if records have them.
    fn numbers(&self, raw: &RawTable, offer: &Offer<'_>, failed: &mut Option<Error>) -> Record {
        let record = if self.has_sizes(raw, offer) { keep(self.record(raw), failed) } else { None };
        record.unwrap_or_else(|| self.link.record())
    }

    /// Begins to sort a part of the batch by owner.
    fn sort(&mut self, raw: &RawTable, offer: &Offer<'_>, part: &RoundPart, failed: &mut Option<Error>) {
        let input = offer.input.part(part.first, if failed.is_some() { 0 } else { part.len }, raw.width());
        let sender = self.next_sender();
        let DeviceRounds { buffers, partition, .. } = &mut self.device;
        keep(partition.sort(buffers, part.round, input, sender), failed);
    }

    /// Returns the rank and sequence number for the stamps of the runs that the next record announces.
    fn next_sender(&self) -> Sender {
        Sender { rank: self.link.rank(), sequence: self.link.sequence() + 1 }
    }

    /// Exchanges the runs of a round, and begins to put them. Meanwhile begins to sort the next round. An error
    /// of this rank's own part goes to `failed`, so that the exchange still ends; only errors of the connection are returned.
    fn put(
        &mut self,
        raw: &RawTable,
        offer: &Offer<'_>,
        (part, rows): (&RoundPart, &Rows),
        next: Option<&RoundPart>,
        fresh: &mut Vec<u64>,
        failed: &mut Option<Error>,
    ) -> Result<()> {
        let sender = self.next_sender();
        let wrong = self.device.puts.wrong(&self.device.buffers);
        let Self { link, device: DeviceRounds { buffers, partition, puts } } = self;
        let mut search = |buffers: &Buffers, rank: usize, failed: &mut Option<Error>| {
            if failed.is_none() {
                keep(puts.search(buffers, raw, offer.search, (part.round, rows, rank), next.is_none(), fresh), failed);
            }
        };
        // From here on an error would break what was announced to the other ranks, so it ends the connection.
        let regions = Messages::new(buffers, part.round, rows).runs();
        // A put into an indexed table may wait for its GPU before rows get memory. The GPU may be waiting for a message of
        // another rank, which may have ended. So such a table puts its own run after the exchange, which returns an error if a
        // rank has ended.
        let may_wait = raw.spec().is_indexed();
        let meanwhile = || {
            if !may_wait {
                search(buffers, rows.own, failed);
            }
            if let (Some(next), None) = (next, &failed) {
                let input = offer.input.part(next.first, next.len, raw.width());
                keep(partition.sort(buffers, next.round, input, sender), failed);
            }
        };
        // SAFETY: the regions are parts of the buffers of this round, which stay allocated. During the exchange `meanwhile` reads
        // the rank's own run, which is not sent; writes the answers to this run, which are in another memory; and uses the
        // buffers of the next round.
        unsafe { link.exchange(&regions, meanwhile)? };
        let checked = check_runs(buffers, part.round, rows, wrong);
        link.unless_ended(checked)?;
        (0..rows.ranks()).filter(|rank| may_wait || *rank != rows.own).for_each(|rank| search(buffers, rank, failed));
        // The round's stream, on which the answers are used, waits for the searches.
        let ended = buffers.device.order(stream_of(part.round), Stream::Puts);
        link.unless_ended(ended)?;
        let [sent, received] = Messages::new(buffers, part.round, rows).exchanged();
        link.traffic.rounds += 1;
        link.traffic.offered += part.len as u64;
        link.traffic.sent += (0..rows.ranks()).filter(|rank| *rank != rows.own).map(|rank| rows.to(rank)).sum::<u64>();
        link.traffic.bytes_sent += sent;
        link.traffic.bytes_received += received;
        Ok(())
    }

    /// Exchanges the replies of a round, if any are requested, and stores the results of the vectors. `failed` and errors: as in
    /// `put`. `wrong_reply` gets an error if a reply has an impossible outcome. A rank whose device has failed sends impossible
    /// outcomes, too. So this error counts only if no rank reports a failure in its next record.
    fn end(
        &mut self,
        offer: &Offer<'_>,
        (part, rows): (&RoundPart, &Rows),
        answers: &mut Answers,
        copies: &mut [u64; 2],
        wrong_reply: &mut Option<Error>,
        failed: &mut Option<Error>,
    ) -> Result<()> {
        let Self { link, device: DeviceRounds { buffers, partition, puts } } = self;
        if rows.are_answered() {
            // SAFETY: as in `put`; nothing is done meanwhile.
            unsafe { link.exchange(&Messages::new(buffers, part.round, rows).replies(), || ())? };
            let checked = check_replies(buffers, part.round, rows);
            link.unless_ended(checked)?;
        }
        keep(puts.take_fresh(buffers, &mut answers.fresh), failed);
        // A failure of another rank is not known yet: the next record reports it.
        let collected = partition.collect(buffers, part.round, offer.search, answers.output(part.first, part.len));
        let collected = keep(collected, failed);
        let outcomes = if collected.is_some() { answers.outcomes.get(part.first..part.first + part.len) } else { None };
        // Other ranks have sent the outcomes, so they are checked.
        let is_outcome = |outcome: u8| match offer.search {
            SearchMode::Find => outcome == Outcome::Seen as u8 || outcome == ABSENT,
            _ => (Outcome::New as u8..=Outcome::Full as u8).contains(&outcome),
        };
        if let Some(at) = outcomes.and_then(|outcomes| outcomes.iter().position(|outcome| !is_outcome(*outcome))) {
            let outcome = answers.outcomes[part.first + at];
            let mut owners = vec![0; part.len];
            let output = Output::Host { outcomes: &mut [], references: None, owners: Some(&mut owners) };
            let found = partition.collect(buffers, part.round, offer.search, output);
            if keep(found, failed).is_some() {
                let reason = format!("has sent {outcome}, which is no outcome");
                wrong_reply.get_or_insert(Error::Connection { rank: owners[at] as usize, reason });
            }
            return Ok(());
        }
        let [hits, rejected] = collected.unwrap_or_default();
        *copies = [copies[0] + hits, copies[1] + rejected];
        Ok(())
    }

    /// Puts vectors. Makes room for rejected vectors, and offers them again, as long as that helps. If vectors have moved, looks
    /// up their references again.
    pub(super) fn find_or_put(&mut self, raw: &RawTable, words: &[u32], offer: &Offer<'_>, answers: &mut Answers) -> Result<()> {
        answers.make(offer, raw.width());
        let mut records = self.rounds(raw, offer, answers)?;
        let width = raw.width();
        // Numbers of the vectors that the last attempt rejected, and of the keys that the last relocation moved.
        let (mut before, mut relocated) = (u64::MAX, 0);
        while answers.total.full > 0 {
            let rejected = answers.total.full;
            let relocation_helps = before == u64::MAX || another_pass_helps(before, before.saturating_sub(rejected), relocated);
            let Some(maintenance) = maintenance_for_rejected(&records, raw, answers, relocation_helps) else { break };
            before = rejected;
            relocated = self.maintain(raw, maintenance, answers)?;
            if answers.limit.is_some() && maintenance != Maintenance::Relocate {
                break;
            }
            let positions: Vec<usize> =
                (0..).zip(&answers.outcomes).filter(|(_, of)| **of == Outcome::Full as u8).map(|(at, _)| at).collect();
            let again: Vec<u32> = positions.iter().flat_map(|at| &words[at * width..(at + 1) * width]).copied().collect();
            let offer = Offer { input: Input::Host(&again), refused: None, ..*offer };
            let mut part =
                Answers { fresh: std::mem::take(&mut answers.fresh), limit: answers.limit.take(), ..Answers::default() };
            part.make(&offer, width);
            let done = self.rounds(raw, &offer, &mut part);
            answers.take_again(&positions, part);
            records = done?;
        }
        if answers.moved && answers.anybody_wants_references {
            let input = if offer.references { offer.input } else { Input::Host(&[]) };
            let offer = Offer {
                operation: Operation::Locate,
                search: SearchMode::Find,
                input,
                fresh: Fresh::Unwanted,
                refused: None,
                ..*offer
            };
            let mut now = Answers::default();
            now.make(&offer, width);
            self.rounds(raw, &offer, &mut now)?;
            (answers.references, answers.owners) = (now.references, now.owners);
        }
        Ok(())
    }

    /// Makes room on all ranks. Returns the number of keys that were moved. If a rank cannot make room, stores the reason in
    /// `answers`.
    fn maintain(&mut self, raw: &RawTable, maintenance: Maintenance, answers: &mut Answers) -> Result<u64> {
        let operation = if maintenance == Maintenance::Relocate { Operation::Relocate } else { Operation::Grow };
        let size = raw.size();
        let larger = |slots: u64, nodes: u64| Size { slots: size.slots * slots, nodes: (size.nodes * nodes).min(MAX_NODES) };
        let mut proposals = Vec::new();
        if let Maintenance::Grow { slots, nodes } = maintenance {
            // A full table rejects vectors, however large the other tables are. So no table grows unless all may grow.
            let (own, values) = match raw.propose(larger(slots, nodes)) {
                Ok(proposal) => (None, proposal.values()),
                Err(error) => (Some(error), [0; 2]),
            };
            let records = self.link.exchange_records(operation, self.link.record().values(values).failed(own.as_ref()))?;
            if let Err(error) = agree(&records, own) {
                answers.limit.get_or_insert(error);
                return Ok(0);
            }
            for (rank, record) in records.iter().enumerate() {
                let [doubles, factor, ..] = record.head.values;
                let proposal = Proposal::of_values([doubles, factor]).ok_or_else(|| wrong(rank, "no factor of growth"));
                proposals.push(self.link.unless_ended(proposal)?);
            }
        }
        let (mut own, mut moved) = (None, 0);
        let made = raw.keeping(&mut answers.fresh, || match maintenance {
            Maintenance::Grow { slots, nodes } => raw.grow_with_others(CLUSTER_BATCH, size, larger(slots, nodes), &proposals),
            Maintenance::Relocate => raw.relocate(CLUSTER_BATCH).map(|keys| moved = keys),
        });
        if let Err(error) = made {
            own = Some(error);
        }
        let without_slot = u64::from(matches!(own, Some(Error::KeysWithoutSlot { .. })));
        let record = self.link.record().values([moved, without_slot]).failed(own.as_ref());
        let records = self.link.exchange_records(operation, record)?;
        answers.moved = true;
        // Keys without a slot may belong to other ranks' batches, so they are reported as an error on all ranks.
        if records.iter().any(|record| record.head.values[1] > 0) {
            agree(&records, own.clone())?;
        }
        if let Err(error) = agree(&records, own) {
            answers.limit.get_or_insert(error);
        }
        Ok(records.iter().fold(0, |sum: u64, record| sum.saturating_add(record.head.values[0])))
    }
}

impl Answers {
    /// Allocates memory for the results of a host batch.
    pub(super) fn make(&mut self, offer: &Offer<'_>, width: usize) {
        if offer.refused.is_none() {
            let count = offer.input.count(width);
            self.outcomes = vec![0; if offer.outcomes { count } else { 0 }];
            self.references = vec![0; if offer.references { count } else { 0 }];
            self.owners = vec![0; if offer.owners { count } else { 0 }];
        }
    }

    /// Destination of the results of a round.
    fn output(&mut self, first: usize, len: usize) -> Output<'_> {
        if let Some(device) = &self.device {
            let from = |address: u64, bytes: usize| if address == 0 { 0 } else { address + (first * bytes) as u64 };
            let (outcomes, references, owners) = (from(device.outcomes, 1), from(device.references, 8), from(device.owners, 4));
            return Output::Gpu { outcomes, references, owners };
        }
        let range = first..first + len;
        Output::Host {
            outcomes: self.outcomes.get_mut(range.clone()).unwrap_or_default(),
            references: (!self.references.is_empty()).then(|| &mut self.references[range.clone()]),
            owners: (!self.owners.is_empty()).then(|| &mut self.owners[range.clone()]),
        }
    }

    /// Stores the results of the vectors at these positions, which were offered again.
    fn take_again(&mut self, positions: &[usize], part: Answers) {
        for (at, position) in positions.iter().enumerate() {
            self.outcomes[*position] = part.outcomes[at];
            if !part.references.is_empty() {
                (self.references[*position], self.owners[*position]) = (part.references[at], part.owners[at]);
            }
        }
        let sum = |before: Tally, again: Tally| Tally { new: before.new + again.new, seen: before.seen + again.seen, ..again };
        (self.tally, self.total) = (sum(self.tally, part.tally), sum(self.total, part.total));
        (self.fresh, self.limit) = (part.fresh, part.limit);
        self.moved |= part.moved;
    }
}

/// Returns the growth that tables need before the rows of these records are put, if all rows are new. Uses the rules of
/// `RawTable::grow_for` for a single table, but slots and nodes always double.
fn growth_for(records: &[Record], raw: &RawTable) -> Option<Maintenance> {
    let (at_fill, least_part) = if raw.options.is_cuckoo() { (GROW_CUCKOO_AT_FILL, 64) } else { (GROW_AT_FILL, 16) };
    let (mut slots, mut nodes) = (1, 1);
    for (rank, record) in records.iter().enumerate() {
        let received: u64 = records.iter().map(|record| record.rows[rank]).sum();
        let head = &record.head;
        let slots_after = |times: u64| head.slots.saturating_mul(times);
        let free = |times: u64| (slots_after(times) as f64 * at_fill) as u64;
        let is_enough =
            |times: u64| free(times).saturating_sub(head.stored) >= received.min(slots_after(times) / least_part).max(1);
        while received > 0 && !is_enough(slots) && slots_after(slots * 2) <= MAX_CAPACITY {
            slots *= 2;
        }
        if head.node_slots > 0 && head.node_slots <= MAX_NODES / 2 && head.nodes as f64 > head.node_slots as f64 * GROW_AT_FILL {
            nodes = 2;
        }
    }
    // No table can have more than `MAX_CAPACITY` slots, whatever another table needs.
    let largest = records.iter().map(|record| record.head.slots).max().unwrap_or(0);
    while slots > 1 && largest.saturating_mul(slots) > MAX_CAPACITY {
        slots /= 2;
    }
    ((slots, nodes) != (1, 1)).then_some(Maintenance::Grow { slots, nodes })
}

/// Returns the maintenance that could make room for rejected vectors, if any could. Uses the rules of `RawTable::retry_rejected`
/// for a single table.
fn maintenance_for_rejected(
    records: &[Record],
    raw: &RawTable,
    answers: &Answers,
    relocation_helps: bool,
) -> Option<Maintenance> {
    if raw.options.is_cuckoo() && relocation_helps {
        return Some(Maintenance::Relocate);
    }
    if !raw.options.grows || answers.limit.is_some() {
        return None;
    }
    let sum = |of: fn(&Record) -> u64| records.iter().map(of).sum::<u64>();
    let (full, for_nodes) = (answers.total.full, answers.total.full_nodes);
    let (slots, node_slots) = (sum(|record| record.head.slots), sum(|record| record.head.node_slots));
    let needed_slots = sum(|record| record.head.stored) + full.saturating_sub(for_nodes);
    let needed_nodes = sum(|record| record.head.nodes) + for_nodes * raw.width() as u64;
    let most = |of: fn(&Record) -> u64| records.iter().map(of).max().unwrap_or(0);
    let more_slots = full > for_nodes
        && slots < GROW_AT_MOST.saturating_mul(needed_slots)
        && most(|record| record.head.slots) <= MAX_CAPACITY / 2;
    let more_nodes = for_nodes > 0
        && node_slots < GROW_AT_MOST.saturating_mul(needed_nodes)
        && most(|record| record.head.node_slots) <= MAX_NODES / 2;
    let times = |more| if more { 2 } else { 1 };
    (more_slots || more_nodes).then(|| Maintenance::Grow { slots: times(more_slots), nodes: times(more_nodes) })
}
