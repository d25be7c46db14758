//! Transports, which carry messages between ranks.

pub use crate::backend::MemorySpace;

use crate::Result;
use crate::backend::{Rank, RankMemory};
use crate::layout::rank::Stream;
use std::fmt;
use std::time::{Duration, Instant};

/// A rank's connection to the other ranks: of a process, a host or several.
///
/// Every rank makes the same calls in the same order, and a call may wait for the others to make theirs. Whatever goes wrong, no
/// call waits for ever: a rank that is gone, that has aborted, or that stalls for longer than a time-out of the transport's is an
/// [`Error::Connection`](crate::Error::Connection) on all ranks. After such an error every further call is an error at once. So
/// it is for the others after a rank has dropped its transport, as soon as they wait for something that it has not sent.
///
/// A transport may be dropped when no exchange is under way.
pub trait Transport: Send {
    /// This rank's number, from 0.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn ranks(&self) -> usize;

    /// Gives every rank what all have passed as `own`, which is of the same length on all of them: in `all`, rank after rank.
    /// Memory of the host, some kilobytes at most.
    ///
    /// # Errors
    ///
    /// [`Error::Connection`](crate::Error::Connection).
    fn all_gather(&mut self, own: &[u8], all: &mut [u8]) -> Result<()>;

    /// Begins an exchange: `send[r]` goes to rank r, and what rank r sends comes to `receive[r]`, which is as long as that.
    /// Either may be empty; those of the rank itself are. What was enqueued before on the stream of a region in a GPU's
    /// memory comes before it. At most one exchange is under way.
    ///
    /// # Safety
    ///
    /// The memory of the regions stays, what is sent is not written, and what is received is not touched, until
    /// [`finish`](Self::finish) has returned, whatever it has returned; or [`finish_enqueued`](Self::finish_enqueued), and the
    /// regions' streams have passed what was enqueued until then.
    ///
    /// # Errors
    ///
    /// As [`finish`](Self::finish). `finish` must be called even after an error.
    unsafe fn begin(&mut self, send: &[Region], receive: &[Region]) -> Result<()>;

    /// Waits until the exchange that was begun is done: what came is there, also for the host, and what was sent may be written
    /// again.
    ///
    /// # Errors
    ///
    /// [`Error::Connection`](crate::Error::Connection); also if a rank sends more or less than the region's length. Then the
    /// regions to be received may or may not have been written.
    fn finish(&mut self) -> Result<()>;

    /// As [`finish`](Self::finish), for who goes on on the GPU: what came to its memory may be there only for what is enqueued on
    /// the stream of its region from now on, and what was sent from there may be written only by that. After an error nothing is
    /// under way, and regions of the host's memory are as after `finish`.
    ///
    /// # Errors
    ///
    /// As [`finish`](Self::finish).
    fn finish_enqueued(&mut self) -> Result<()> {
        self.finish()
    }

    /// Ends the connection: all ranks' calls, those under way included, are errors that say why.
    fn abort(&mut self, reason: &str);

    /// Sums on all ranks what all pass.
    ///
    /// # Errors
    ///
    /// As [`all_gather`](Self::all_gather).
    fn all_reduce(&mut self, values: &mut [u64]) -> Result<()> {
        let mut all = vec![0u64; values.len() * self.ranks()];
        self.all_gather(bytemuck::cast_slice(values), bytemuck::cast_slice_mut(&mut all))?;
        let sum_of = |at: usize| all[at..].iter().step_by(values.len()).fold(0, |sum: u64, value| sum.wrapping_add(*value));
        for (at, sum) in (0..values.len()).map(sum_of).enumerate().collect::<Vec<_>>() {
            values[at] = sum;
        }
        Ok(())
    }

    /// Waits until all ranks have called it.
    ///
    /// # Errors
    ///
    /// As [`all_gather`](Self::all_gather).
    fn barrier(&mut self) -> Result<()> {
        let mut all = vec![0; self.ranks()];
        self.all_gather(&[0], &mut all)
    }
}

/// A piece of memory that a [`Transport`] reads or writes.
#[derive(Clone)]
pub struct Region {
    /// Address of the first byte.
    pub address: u64,
    /// How long it is.
    pub bytes: usize,
    /// Kind of memory of the region.
    pub place: MemorySpace,
}

impl Region {
    /// No memory: nothing to send or to receive.
    pub fn empty() -> Self {
        Self { address: 0, bytes: 0, place: MemorySpace::Host }
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {:#x}", self.bytes, self.address)
    }
}

/// When a time-out that begins then has passed; of one that is longer than clocks count, in a hundred years.
pub(super) fn deadline(began: Instant, timeout: Duration) -> Instant {
    const LONG: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    began.checked_add(timeout).unwrap_or_else(|| began + LONG)
}

impl Region {
    /// A piece of a rank's memory, which a transport uses in order with a stream.
    pub(super) fn of(rank: &dyn Rank, stream: Stream, memory: &RankMemory, offset: u64, bytes: u64) -> Self {
        memory.check(offset, bytes);
        Self { address: memory.address + offset, bytes: bytes as usize, place: rank.place(stream) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_out_may_be_as_long_as_one_likes() {
        let now = Instant::now();
        assert_eq!(deadline(now, Duration::from_secs(3)) - now, Duration::from_secs(3));
        assert!(deadline(now, Duration::MAX) - now > Duration::from_secs(1 << 30));
    }
}
