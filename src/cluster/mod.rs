//! One set spread over several ranks: GPUs, or parts of a CPU. One rank owns each vector, and only that rank stores it.
//!
//! A *rank* is one of several participants. Each has a [`Table`], which contains an ordinary [`warpset::Table`](crate::Table) on
//! a device, and a [`Transport`] to the others. [`Local`] connects threads of one process. Operations are *collective*: every
//! rank calls the same ones in the same order, each with its own batch, which may be empty.
//!
//! ```
//! # fn main() -> Result<(), warpset::Error> {
//! use warpset::cluster::{Builder, Local};
//! use warpset::{BucketTable, Device, Outcome};
//!
//! let new_on_all = std::thread::scope(|scope| {
//!     let ranks = Local::ranks(3).into_iter().map(|transport| {
//!         scope.spawn(move || {
//!             let builder = BucketTable::builder(2).capacity(1000); // slots of this rank
//!             let mut set = Builder::new(builder).build(&Device::cpu_with_threads(1), transport)?;
//!             let batch = set.find_or_put_many(&[7, 7, /**/ 8, 8])?; // the same on every rank
//!             assert_eq!(set.len()?, 2);
//!             Ok(batch.tally.new)
//!         })
//!     });
//!     let ranks: Vec<_> = ranks.collect();
//!     ranks.into_iter().map(|rank| rank.join().unwrap()).sum::<Result<u64, warpset::Error>>()
//! })?;
//! assert_eq!(new_on_all, 2); // two vectors, each new to one rank
//! # Ok(()) }
//! ```
//!
//! [`Table`], [`Batch`], [`Request`], [`Reference`], [`Stats`] and [`DeviceBatch`] here are those of the set. The types of the
//! same names in [`warpset`](crate) and [`gpu`](crate::gpu) are those of a single table, such as the table of a rank
//! ([`Table::local`]). Name one of the two by its module: `cluster::Table`.
//!
//! # What a find-or-put of a batch does
//!
//! Batches are cut into *rounds*, of a size that all ranks agree on. A rank that has no more vectors takes part with an empty
//! round. In a round each rank
//!
//! 1. finds the owner of each of its vectors, and copies the vector to the *run* for this owner
//!    (cuda/warpset/cluster/partition.cuh: one pass of a kernel on a GPU, so that a batch in its memory never passes through the
//!    host);
//! 2. tells all others how many rows it has for each rank, how full its table is, whether it has failed, which results it
//!    requests, and whether it has vectors for another round. All ranks know all of this, so all decide alike: whether to go on,
//!    and whether to grow first;
//! 3. sends each run to its owner, and meanwhile puts its own run;
//! 4. puts the runs that it receives, each as a batch of its table;
//! 5. sends outcomes, and references, back to the ranks that requested them;
//! 6. stores the results of every vector of the round.
//!
//! Rounds overlap: while a table puts the vectors of one round, those of the next are sorted and sent, and the answers of the
//! previous one are sent back. Rounds do not overlap for tables that may grow in between, and on GPUs if the host requests the
//! new references.
//!
//! After the last round each rank reports the outcomes of every rank's rows in its table, so all ranks know the sums over all
//! ranks ([`Batch::total`]). So a batch of one round costs four exchanges: two of a few words, one of vectors, one of outcomes.
//! The exchange of outcomes is omitted if no rank requests them ([`DeviceBatch`]).
//!
//! # Why one `New`
//!
//! The owner of a vector depends only on the vector, and on numbers that are equal on all ranks and constant for the life of the
//! cluster. So all ranks always offer a vector to the same table. Among all rows with this vector, in any run and round, that
//! table reports `New` for exactly one (its own guarantee), and one rank sent that row for one vector of its batch. With
//! [`Builder::deduplicate`] that vector may represent equal ones, which get `Seen`. A rejected vector gets `Full` on its rank,
//! together with all vectors that it represents. It is not stored anywhere, as no other rank would ever store it.
//!
//! Whole vectors: a rank puts only rows of a run whose first and last line carry the stamp of this round, this sender and this
//! receiver, and whose length is the announced one. Any other message is not put, and ends the connection, at the latest at the
//! end of the operation.
//!
//! # What crosses the wire
//!
//! | from each rank to each other | bytes |
//! |---|---|
//! | before each round and after the last one: the record of step 2 above | 352 + 32 for each rank |
//! | a run of r vectors of w words | 4 w r, and 144 to 271 for stamps and to fill lines |
//! | its reply, if outcomes are wanted | r; 9 r with references; and 144 to 398 for stamps and to fill lines |
//! | nothing, if there is no row | 0 |
//!
//! Runs begin at a line of 128 bytes, and are whole lines. Vectors that the offering rank itself owns do not cross, so with n
//! ranks a share of 1 - 1/n of all vectors crosses. With [`Builder::deduplicate`] equal vectors of a round cross once, and
//! outcomes always cross.
//!
//! # Owners
//!
//! The owner is chosen by a hash of all words of the vector, with seeds that only the cluster has. Rank 0 draws these seeds, and
//! they differ from the seeds of every table in the cluster. So bits that choose an owner say nothing about the bucket, and
//! conversely. Otherwise each rank would use only a part of its buckets.
//!
//! Ranks own equal shares of all hashes. So all tables must have equal numbers of slots, or [`Builder::build`] returns an error
//! on all ranks; [`Shares::BySlots`] divides by slots instead. With 2^20 vectors or more on a rank, the real shares differ from
//! these by less than a percent ([`Stats::balance`]).
//!
//! # Memory
//!
//! Each rank takes the following memory besides its table, for rounds of r vectors of w words, n ranks, and up to three rounds
//! under way: 3 r (17/16 (4 w + 9) + 4) bytes for what it sends and the answers to it, and 3 (n - 1) r (4 w + 9) bytes for what
//! it receives (fully used only if all vectors of all ranks have one owner). On a GPU another r (4 w + 13) for batches from host
//! memory, and 8 n r from the first batch on for which the host requests the vectors that are new on this rank. With
//! [`Builder::deduplicate`] another 20 r to 28 r. By default r is such that the total is 64 MiB of addresses on a CPU, and only
//! the used part is ever touched. On a GPU the total is 1/32 of its free memory, at most 4 GiB (without the 8 n r).
//! [`Builder::round`] chooses r instead. Once an operation has begun, nothing is allocated except the results that it returns
//! (and tables that grow), so that a rank does not run out of memory halfway.
//!
//! # Growth
//!
//! Tables with [`grows(true)`](crate::TableBuilder::grows) double on all ranks as soon as one would be too full, so that the
//! shares stay as they were. If a table must take all the rest of its [`memory`](crate::TableBuilder::memory) instead, all tables
//! grow by the same factor, the largest that every limit permits. If this factor is less than 1.25, no table grows. If a table
//! cannot grow because its device has no memory, the others have grown nevertheless. In both cases no batch fails: vectors use
//! the remaining slots, and [`Batch::error`] says which rank could not grow, and why.
//!
//! # Failures
//!
//! - A rank refuses its batch (for example, because it is not a whole number of vectors). The others learn this from the record
//!   of its first round. The rank gets its error, the others get [`Error::Rank`]. Nothing was put, and all ranks can continue.
//! - A rank fails between rounds (for example, its device reports an error): the ranks get the same errors, with the next record.
//!   Vectors that were put are stored, but are not reported as new to any rank.
//! - A rank's relocation has left keys without a slot: [`Error::KeysWithoutSlot`] there, [`Error::Rank`] on the others. Vectors
//!   that were put are stored, but are not reported as new to any rank.
//! - Ranks call different operations: an [`Error::Connection`] with both operations, on all ranks. The connection ends.
//! - A rank ends, stalls for longer than the transport's time-out, or aborts; or a message is lost, cut off, or not the expected
//!   one: [`Error::Connection`] on all ranks that wait for it, each within the time-out. The connection ends.
//! - A record has its right checksum, but impossible contents: more rows than a round has, more hits than rows, or a table
//!   without slots. This is also an [`Error::Connection`], and the connection ends. So a wrong rank can give wrong answers to the
//!   others, but cannot make them use memory wrongly.
//!
//! In all cases the rank's own table has everything that was stored. The table can be read ([`Table::local`]) and taken
//! ([`Table::into_local`]), and [`Table::reconnect`] joins the tables to one set again, on another connection. If the connection
//! ends during a batch, any part of the batch may be stored, and no vector of it was reported as `New`.

mod batch;
mod buffers;
mod builder;
#[cfg(feature = "cuda")]
mod device;
mod engine;
mod fetch;
mod layout;
mod link;
mod local;
mod messages;
#[cfg(all(feature = "nccl", unix))]
mod nccl;
mod owners;
mod partition;
mod plan;
mod puts;
mod record;
mod rendezvous;
mod saved;
mod stats;
mod table;
#[cfg(all(test, feature = "cpu"))]
mod tests;
mod transport;
mod view;

pub use batch::{Batch, Reference, Request};
pub use builder::{Builder, Shares};
#[cfg(feature = "cuda")]
pub use device::{DeviceBatch, GpuStream};
pub use local::Local;
#[doc(hidden)] // for tests
pub use local::{Fault, FaultKind};
#[cfg(all(feature = "nccl", unix))]
pub use nccl::Nccl;
pub use rendezvous::Rendezvous;
pub use stats::{RankStats, Stats, Traffic};
pub use table::Table;
pub use transport::{MemorySpace, Region, Transport};

#[cfg(doc)]
use crate::Error;
