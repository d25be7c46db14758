//! A table's connection to the other ranks: either in step with them, or ended.

use super::record::{MOST_RANKS, Operation, Record};
use super::stats::Traffic;
use super::transport::{Region, Transport};
use crate::{Error, Result};
use std::time::Instant;

pub(super) struct Link {
    transport: Box<dyn Transport>,
    /// Rank and number of ranks, as the transport gave them first. The transport is not asked again, because memory is laid out
    /// by these numbers.
    rank: usize,
    ranks: usize,
    /// Number of records so far, equal on all ranks.
    sequence: u64,
    /// Why the connection has ended.
    ended: Option<Error>,
    pub traffic: Traffic,
}

impl Link {
    /// # Errors
    ///
    /// [`Error::Connection`] unless the transport has 1 to [`MOST_RANKS`] ranks, and this one is one of them.
    pub(super) fn new(transport: Box<dyn Transport>) -> Result<Self> {
        let (rank, ranks) = (transport.rank(), transport.ranks());
        if rank >= ranks || ranks as u64 > MOST_RANKS {
            let reason = format!("has a transport for rank {rank} of {ranks}; a cluster has 1 to {MOST_RANKS} ranks");
            return Err(Error::Connection { rank, reason });
        }
        Ok(Self { transport, rank, ranks, sequence: 0, ended: None, traffic: Traffic::default() })
    }

    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    pub(super) fn ranks(&self) -> usize {
        self.ranks
    }

    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    pub(super) fn record(&self) -> Record {
        Record::new(self.ranks())
    }

    /// Sends this record to all ranks, and returns the records of all, by rank.
    ///
    /// A right checksum shows that a record was not damaged, not that its numbers are valid. So each number is checked before it
    /// is used: `check_rows`, `check_sizes`, `check_answers` and `check_most` (record.rs), `Config::check` (builder.rs).
    ///
    /// # Errors
    ///
    /// [`Error::Connection`]: the connection has ended.
    pub(super) fn exchange_records(&mut self, operation: Operation, record: Record) -> Result<Vec<Record>> {
        self.ended.clone().map_or(Ok(()), Err)?;
        self.sequence += 1;
        let (sequence, began) = (self.sequence, Instant::now());
        let own = record.into_bytes(operation, sequence, self.rank());
        let mut all = vec![0; own.len() * self.ranks()];
        let gathered = self.transport.all_gather(&own, &mut all);
        self.traffic.waited += began.elapsed();
        let records = gathered.and_then(|()| {
            // This rank lays out its memory by its own numbers, so the transport must return them unchanged.
            if all[self.rank * own.len()..][..own.len()] != own {
                let reason = "has a transport that did not return its own record as it was sent".into();
                return Err(Error::Connection { rank: self.rank, reason });
            }
            let of = |(rank, bytes)| Record::from_bytes(bytes, operation, sequence, rank);
            all.chunks_exact(own.len()).enumerate().map(of).collect()
        });
        self.unless_ended(records)
    }

    /// Begins an exchange, runs `meanwhile`, and ends the exchange. On GPUs the exchange has then ended only for work that is
    /// enqueued on the streams of the regions from then on.
    ///
    /// # Safety
    ///
    /// The contracts of [`Transport::begin`] and [`Transport::finish_enqueued`], whatever `meanwhile` does.
    pub(super) unsafe fn exchange<T>(
        &mut self,
        (send, receive): &(Vec<Region>, Vec<Region>),
        meanwhile: impl FnOnce() -> T,
    ) -> Result<T> {
        /// Ends the exchange even if `meanwhile` panics: the others must not copy from memory that is about to be freed.
        struct Begun<'a> {
            transport: &'a mut dyn Transport,
            /// `std::thread::panicking` would not do: a thread that panics for another reason may exchange something in a `drop`.
            is_over: bool,
        }
        impl Drop for Begun<'_> {
            fn drop(&mut self) {
                if !self.is_over {
                    self.transport.abort("has panicked");
                    let _ = self.transport.finish();
                }
            }
        }
        let mut exchange = Begun { transport: &mut *self.transport, is_over: false };
        // SAFETY: the caller guarantees the contract.
        let begun = unsafe { exchange.transport.begin(send, receive) };
        let done = match &begun {
            Ok(()) => Some(meanwhile()),
            Err(error) => {
                exchange.transport.abort(&format!("could not begin an exchange: {error}"));
                None
            }
        };
        let began = Instant::now();
        let finished = exchange.transport.finish_enqueued();
        exchange.is_over = true;
        drop(exchange);
        self.traffic.waited += began.elapsed();
        let result = begun.and(finished).map(|()| done.expect("done, as it has begun"));
        self.unless_ended(result)
    }

    /// Returns the result. If it is an error, the connection ends for all ranks.
    pub(super) fn unless_ended<T>(&mut self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result {
            self.transport.abort(&format!("has met an error: {error}"));
            self.ended.get_or_insert_with(|| error.clone());
        }
        result
    }
}

/// Returns an error if a rank has failed: `own` if this one has, otherwise the message of the first rank that has.
pub(super) fn agree(records: &[Record], own: Option<Error>) -> Result<()> {
    if let Some(error) = own {
        return Err(error);
    }
    let failed = records.iter().enumerate().find_map(|(rank, record)| Some((rank, record.failure()?)));
    failed.map_or(Ok(()), |(rank, reason)| Err(Error::Rank { rank, reason }))
}
