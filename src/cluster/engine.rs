//! The rounds of an operation, whatever the keys: see the chapter of the module.

use super::link::{Link, agree};
use super::partition::{Fresh, Input, Output, Partition, Rows};
use super::record::{Operation, Record};
use crate::core::growth::{GROW_AT_FILL, GROW_AT_MOST, GROW_CUCKOO_AT_FILL};
use crate::core::size::{MAX_CAPACITY, MAX_NODES, Size};
use crate::core::store::Search;
use crate::core::table::RawTable;
use crate::{Error, Outcome, Result, Tally};

/// A relocation of keys that lets fewer than one of so many in that were rejected is the last one for a batch.
const RELOCATE_FOR_ONE_IN: u64 = 64;

/// What a rank has of the cluster besides its table. Dropped in this order: nobody may copy from memory that is gone.
pub(super) struct Engine {
    pub link: Link,
    pub partition: Partition,
}

/// What a rank offers.
pub(super) struct Offer<'a> {
    pub operation: Operation,
    pub search: Search,
    pub input: Input<'a>,
    pub references: bool,
    pub stored_here: bool,
    /// Why nothing is: the batch is none.
    pub refused: Option<Error>,
}

/// What comes of it.
#[derive(Default)]
pub(super) struct Answers {
    pub outcomes: Vec<u8>,
    pub references: Vec<u64>,
    pub owners: Vec<u32>,
    /// References of vectors that are new on this rank.
    pub fresh: Vec<u64>,
    pub tally: Tally,
    pub total: Tally,
    /// Why a rank could not make room: then nobody tries again.
    pub limit: Option<Error>,
    /// Whether vectors have moved, so that references from before are stale.
    pub moved: bool,
    /// Whether any rank wants references.
    pub anybody_wants_references: bool,
    /// Where results go to, in the memory of a GPU, instead of to the vectors here.
    #[cfg(feature = "cuda")]
    pub device: Option<DeviceResults>,
}

/// Addresses in the memory of the rank's GPU, or 0.
#[cfg(feature = "cuda")]
#[derive(Clone, Copy)]
pub(super) struct DeviceResults {
    pub outcomes: u64,
    pub references: u64,
    pub owners: u64,
    /// Of vectors that are new on this rank, with room for so many; and how many there are so far.
    pub stored_here: u64,
    pub stored_capacity: u64,
    pub stored: u64,
}

/// What ranks do for more room: the same on all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// Slots and nodes become so many times as many.
    Grow { slots: u64, nodes: u64 },
    /// Keys of cuckoo tables are moved.
    Relocate,
}

impl Engine {
    /// This rank's record, with the numbers of its table.
    fn record(&self, raw: &RawTable) -> Result<Record> {
        let mut record = self.link.record();
        let ([stored, nodes], size) = (raw.stored()?, raw.size());
        (record.head.stored, record.head.nodes, record.head.slots, record.head.node_slots) =
            (stored, nodes, size.slots, size.nodes);
        Ok(record)
    }

    /// Tells all ranks that this one is ready, or has failed; an error if any has.
    pub(super) fn agree(&mut self, operation: Operation, done: Result<()>) -> Result<Vec<Record>> {
        let own = done.err();
        let records = self.link.tell(operation, self.link.record().failed(own.as_ref()))?;
        agree(&records, own)?;
        Ok(records)
    }

    /// Searches for vectors on all ranks, or puts them, until no rank has any left. Gives the last records.
    pub(super) fn rounds(&mut self, raw: &RawTable, offer: &Offer<'_>, answers: &mut Answers) -> Result<Vec<Record>> {
        let (width, me) = (raw.width(), self.link.rank());
        let count = offer.input.count(width);
        let (mut first, mut failed) = (0, offer.refused.clone());
        loop {
            let len = if failed.is_some() { 0 } else { self.partition.round().min(count - first) };
            let sorted = self.partition.sort(offer.input.part(first, len, width));
            let record = match sorted.and_then(|rows| Ok(Record { rows, ..self.record(raw)? })) {
                Ok(record) => record,
                Err(error) => {
                    failed = failed.or(Some(error));
                    self.link.record()
                }
            };
            let mut record = record.tally(answers.tally).failed(failed.as_ref());
            record.head.with_references = u32::from(offer.references);
            let records = self.link.tell(offer.operation, record)?;
            agree(&records, failed.take())?;
            answers.anybody_wants_references |= records.iter().any(|record| record.head.with_references != 0);
            if records.iter().all(|record| record.rows.iter().all(|rows| *rows == 0)) {
                answers.total = records.iter().map(Record::stored_tally).sum();
                return Ok(records);
            }
            let may_grow = offer.operation == Operation::FindOrPut && raw.options.grows && answers.limit.is_none();
            if let Some(room) = room_for(&records, raw).filter(|_| may_grow) {
                self.make_room(raw, room, answers)?;
            }
            let rows = Rows {
                own: me,
                with_references: records.iter().map(|record| record.head.with_references != 0).collect(),
                of: records.into_iter().map(|record| record.rows).collect(),
                sequence: self.link.sequence(),
            };
            failed = self.round(raw, offer, &rows, first, len, answers)?;
            first += len;
        }
    }

    /// One round: the vectors of the batch from `first` on, which are sorted. Gives why this rank could not do its part; an error
    /// is one of the connection.
    fn round(
        &mut self,
        raw: &RawTable,
        offer: &Offer<'_>,
        rows: &Rows,
        first: usize,
        len: usize,
        answers: &mut Answers,
    ) -> Result<Option<Error>> {
        let Self { link, partition } = self;
        let (search, me) = (offer.search, rows.own);
        let mut failed: Option<Error> = None;
        let mut fresh = answers.take_fresh(offer);
        let mut put = |partition: &mut Partition, rank: usize| {
            if let (None, Err(error)) = (&failed, partition.search(raw, search, rows, rank, &mut fresh)) {
                failed = Some(error);
            }
        };
        // What was promised to the others cannot be kept after an error here: then the connection ends.
        let regions = partition.runs(rows);
        let regions = link.unless_ended(regions)?;
        // SAFETY: the regions are parts of the partition's memory, which stays. Meanwhile the own run is read, which is sent to
        // nobody, and its reply written, which is another memory.
        unsafe { link.exchange(&regions, || put(partition, me))? };
        let checked = partition.check_runs(rows);
        link.unless_ended(checked)?;
        (0..rows.of.len()).filter(|rank| *rank != me).for_each(|rank| put(partition, rank));
        // SAFETY: as above; nothing is done meanwhile.
        unsafe { link.exchange(&partition.replies(rows), || ())? };
        let checked = partition.check_replies(rows);
        link.unless_ended(checked)?;
        answers.keep_fresh(fresh);
        let collected = partition.collect(search, rows, answers.output(first, len));
        match collected {
            // Of another rank's failure this one hears with the next record.
            Ok([hits, rejected, for_nodes]) => {
                let seen = if search == Search::Find { hits } else { len as u64 - hits - rejected };
                let new = if search == Search::Find { 0 } else { hits };
                answers.tally += Tally { new, seen, full: rejected, full_nodes: for_nodes };
            }
            Err(error) => failed = failed.or(Some(error)),
        }
        let [sent, received] = partition.exchanged(rows);
        link.traffic.rounds += 1;
        link.traffic.offered += len as u64;
        link.traffic.sent += (0..rows.of.len()).filter(|rank| *rank != me).map(|rank| rows.of[me][rank]).sum::<u64>();
        link.traffic.bytes_sent += sent;
        link.traffic.bytes_received += received;
        Ok(failed)
    }

    /// Puts vectors, and makes room for those that are rejected as long as that helps; then references are those of now.
    pub(super) fn find_or_put(&mut self, raw: &RawTable, words: &[u32], offer: &Offer<'_>, answers: &mut Answers) -> Result<()> {
        answers.make(offer, raw.width());
        let mut records = self.rounds(raw, offer, answers)?;
        let width = raw.width();
        // Rejected by the last attempt, and keys that the last relocation has moved.
        let (mut before, mut relocated) = (u64::MAX, 0);
        while answers.total.full > 0 {
            let rejected = answers.total.full;
            let relocation_helps = before == u64::MAX || before - rejected > before / RELOCATE_FOR_ONE_IN || relocated > before;
            let Some(room) = room_for_rejected(&records, raw, answers, relocation_helps) else { break };
            before = rejected;
            relocated = self.make_room(raw, room, answers)?;
            if answers.limit.is_some() && room != Room::Relocate {
                break;
            }
            let positions: Vec<usize> =
                (0..).zip(&answers.outcomes).filter(|(_, of)| **of == Outcome::Full as u8).map(|(at, _)| at).collect();
            let again: Vec<u32> = positions.iter().flat_map(|at| &words[at * width..(at + 1) * width]).copied().collect();
            let offer = Offer { input: Input::Host(&again), references: offer.references, refused: None, ..*offer };
            let mut part =
                Answers { fresh: std::mem::take(&mut answers.fresh), limit: answers.limit.take(), ..Answers::default() };
            part.make(&offer, width);
            let done = self.rounds(raw, &offer, &mut part);
            answers.take_again(&positions, part);
            records = done?;
        }
        if answers.moved && answers.anybody_wants_references {
            let input = if offer.references { offer.input } else { Input::Host(&[]) };
            let offer =
                Offer { operation: Operation::Locate, search: Search::Find, input, stored_here: false, refused: None, ..*offer };
            let mut now = Answers::default();
            now.make(&offer, width);
            self.rounds(raw, &offer, &mut now)?;
            (answers.references, answers.owners) = (now.references, now.owners);
        }
        Ok(())
    }

    /// Makes room on all ranks. Gives how many keys were moved, if any. Keeps why a rank could not.
    fn make_room(&mut self, raw: &RawTable, room: Room, answers: &mut Answers) -> Result<u64> {
        let operation = if room == Room::Relocate { Operation::Relocate } else { Operation::Grow };
        let (size, mut own) = (raw.size(), None);
        let mut moved = 0;
        let made = raw.keeping(&mut answers.fresh, || match room {
            Room::Grow { slots, nodes } => {
                raw.grow_by_itself(size, Size { slots: size.slots * slots, nodes: (size.nodes * nodes).min(MAX_NODES) })
            }
            Room::Relocate => raw.relocate().map(|keys| moved = keys),
        });
        if let Err(error) = made {
            own = Some(error);
        }
        let record = self.link.record().values([moved]).failed(own.as_ref());
        let records = self.link.tell(operation, record)?;
        answers.moved = true;
        // The keys of others: they must not go unnoticed.
        if let Some(Error::KeysWithoutSlot { keys }) = own {
            return Err(Error::KeysWithoutSlot { keys });
        }
        if let Err(error) = agree(&records, own) {
            answers.limit.get_or_insert(error);
        }
        Ok(records.iter().map(|record| record.head.values[0]).sum())
    }
}

impl Answers {
    /// Memory for the results of a batch from the host.
    pub(super) fn make(&mut self, offer: &Offer<'_>, width: usize) {
        if offer.refused.is_none() {
            let count = offer.input.count(width);
            self.outcomes = vec![0; count];
            if offer.references {
                (self.references, self.owners) = (vec![0; count], vec![0; count]);
            }
        }
    }

    /// Where references of what is new on this rank go, taken out for a round.
    fn take_fresh(&mut self, offer: &Offer<'_>) -> Fresh {
        if !offer.stored_here {
            return Fresh::Unwanted;
        }
        #[cfg(feature = "cuda")]
        if let Some(DeviceResults { stored_here, stored_capacity, stored, .. }) = self.device {
            return Fresh::Gpu { address: stored_here, capacity: stored_capacity, count: stored };
        }
        Fresh::Host(std::mem::take(&mut self.fresh))
    }

    fn keep_fresh(&mut self, fresh: Fresh) {
        match fresh {
            Fresh::Unwanted => {}
            Fresh::Host(fresh) => self.fresh = fresh,
            #[cfg(feature = "cuda")]
            Fresh::Gpu { count, .. } => {
                if let Some(device) = &mut self.device {
                    device.stored = count;
                }
            }
        }
    }

    /// Where those of a round go.
    fn output(&mut self, first: usize, len: usize) -> Output<'_> {
        #[cfg(feature = "cuda")]
        if let Some(device) = &self.device {
            let from = |address: u64, bytes: usize| if address == 0 { 0 } else { address + (first * bytes) as u64 };
            let (outcomes, references, owners) = (from(device.outcomes, 1), from(device.references, 8), from(device.owners, 4));
            return Output::Gpu { outcomes, references, owners };
        }
        let range = first..first + len;
        let wants = !self.references.is_empty();
        Output::Host {
            outcomes: &mut self.outcomes[range.clone()],
            references: wants.then(|| &mut self.references[range.clone()]),
            owners: wants.then(|| &mut self.owners[range.clone()]),
        }
    }

    /// Takes what has become of the vectors at these positions, which were offered again.
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

/// How tables must grow before the rows of these records are put, all being new: as `RawTable::grow_for` says of one table.
fn room_for(records: &[Record], raw: &RawTable) -> Option<Room> {
    let (at_fill, least_part) = if raw.options.is_cuckoo() { (GROW_CUCKOO_AT_FILL, 64) } else { (GROW_AT_FILL, 16) };
    let (mut slots, mut nodes) = (1, 1);
    for (rank, record) in records.iter().enumerate() {
        let received: u64 = records.iter().map(|record| record.rows[rank]).sum();
        let head = &record.head;
        let free = |times: u64| ((head.slots * times) as f64 * at_fill) as u64;
        let is_enough =
            |times: u64| free(times).saturating_sub(head.stored) >= received.min(head.slots * times / least_part).max(1);
        while received > 0 && !is_enough(slots) && head.slots * slots * 2 <= MAX_CAPACITY {
            slots *= 2;
        }
        if head.node_slots > 0 && head.node_slots <= MAX_NODES / 2 && head.nodes as f64 > head.node_slots as f64 * GROW_AT_FILL {
            nodes = 2;
        }
    }
    ((slots, nodes) != (1, 1)).then_some(Room::Grow { slots, nodes })
}

/// What may let rejected vectors in, if anything: as `RawTable::retry_rejected` says of one table.
fn room_for_rejected(records: &[Record], raw: &RawTable, answers: &Answers, relocation_helps: bool) -> Option<Room> {
    if raw.options.is_cuckoo() && relocation_helps {
        return Some(Room::Relocate);
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
    let more_slots =
        full > for_nodes && slots < GROW_AT_MOST * needed_slots && most(|record| record.head.slots) <= MAX_CAPACITY / 2;
    let more_nodes =
        for_nodes > 0 && node_slots < GROW_AT_MOST * needed_nodes && most(|record| record.head.node_slots) <= MAX_NODES / 2;
    let times = |more| if more { 2 } else { 1 };
    (more_slots || more_nodes).then(|| Room::Grow { slots: times(more_slots), nodes: times(more_nodes) })
}
