//! Transports, which carry messages between ranks.

pub use crate::backend::MemorySpace;

use crate::Result;
use crate::backend::{Memory, Rank};
use crate::layout::rank::Stream;
use std::fmt;
use std::time::{Duration, Instant};

/// A rank's connection to the other ranks, which are in one process, on one host or on several.
///
/// Every rank makes the same calls in the same order, and a call may wait for the others to make theirs. No call waits for ever:
/// if a rank ends, aborts, or stalls for longer than the transport's time-out, all ranks get an
/// [`Error::Connection`](crate::Error::Connection). After such an error every further call fails at once. If a rank drops its
/// transport, the others get the error as soon as they wait for something that it has not sent.
///
/// A transport may be dropped when no exchange is under way.
///
/// This is a safe trait. All that a transport returns, and all that another rank sends through it, is checked before memory is
/// laid out accordingly. So the worst that a transport can do without `unsafe` code of its own is an error, or other answers. To
/// read or write the memory of a [`Region`], an implementation needs `unsafe` code, with the obligations of
/// [`begin`](Self::begin): it writes only to regions to be received, within their lengths, and accesses none once the exchange
/// has ended. A transport that passes its regions on to another transport thus also passes on every call of
/// [`finish`](Self::finish).
pub trait Transport: Send {
    /// This rank's number, from 0.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn ranks(&self) -> usize;

    /// Collects in `all` the bytes that each rank passes as `own`, rank after rank. All ranks pass the same number of bytes, in
    /// host memory, some kilobytes at most.
    ///
    /// # Errors
    ///
    /// [`Error::Connection`](crate::Error::Connection).
    fn all_gather(&mut self, own: &[u8], all: &mut [u8]) -> Result<()>;

    /// Begins an exchange: sends `send[r]` to rank r, and writes the message of rank r to `receive[r]`, which has the length of
    /// the message. Both may be empty, and are empty for the rank itself. For a region in GPU memory, the exchange takes place
    /// after the work that was enqueued on its stream before. At most one exchange is under way.
    ///
    /// # Safety
    ///
    /// Until the exchange has ended, the memory of the regions stays allocated, sent memory is not written, and received memory
    /// is not accessed. The exchange has ended when [`finish`](Self::finish) has returned, with any result; or when
    /// [`finish_enqueued`](Self::finish_enqueued) has returned, and the regions' streams have passed the work enqueued until
    /// then.
    ///
    /// # Errors
    ///
    /// The errors of [`finish`](Self::finish). `finish` must be called even after an error.
    unsafe fn begin(&mut self, send: &[Region], receive: &[Region]) -> Result<()>;

    /// Waits until the exchange that was begun is done. Then the regions have the received data, which the host may read, too,
    /// and sent memory may be written again.
    ///
    /// # Errors
    ///
    /// [`Error::Connection`](crate::Error::Connection); also if a rank sends more or less than the region's length. Then the
    /// regions to be received may or may not have been written.
    fn finish(&mut self) -> Result<()>;

    /// Ends the exchange as [`finish`](Self::finish) does, for callers that continue on the GPU. Work that is enqueued on the
    /// stream of a region in GPU memory from now on finds the received data there. Only such work may write to memory sent from
    /// the GPU. After an error nothing is under way. Regions in host memory are as after `finish`.
    ///
    /// # Errors
    ///
    /// The errors of [`finish`](Self::finish).
    fn finish_enqueued(&mut self) -> Result<()> {
        self.finish()
    }

    /// Ends the connection: the calls of all ranks, including those under way, fail with this reason.
    fn abort(&mut self, reason: &str);

    /// Sums the values that all ranks pass.
    ///
    /// # Errors
    ///
    /// The errors of [`all_gather`](Self::all_gather).
    fn all_reduce(&mut self, values: &mut [u64]) -> Result<()> {
        let mut all = vec![0u64; values.len() * self.ranks()];
        self.all_gather(bytemuck::cast_slice(values), bytemuck::cast_slice_mut(&mut all))?;
        let sum_of = |at: usize| all[at..].iter().step_by(values.len()).fold(0, |sum: u64, value| sum.wrapping_add(*value));
        for (at, sum) in (0..values.len()).map(sum_of).enumerate().collect::<Vec<_>>() {
            values[at] = sum;
        }
        Ok(())
    }

    /// Waits until all ranks have made this call.
    ///
    /// # Errors
    ///
    /// The errors of [`all_gather`](Self::all_gather).
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
    /// Length in bytes.
    pub bytes: usize,
    /// Kind of memory of the region.
    pub place: MemorySpace,
}

impl Region {
    /// Empty region: nothing to send or to receive.
    pub fn empty() -> Self {
        Self { address: 0, bytes: 0, place: MemorySpace::Host }
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {:#x}", self.bytes, self.address)
    }
}

/// Returns the end of a time-out that begins at `began`. If the clock cannot represent this end, returns a time in a hundred
/// years.
pub(super) fn deadline(began: Instant, timeout: Duration) -> Instant {
    const LONG: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    began.checked_add(timeout).unwrap_or_else(|| began + LONG)
}

impl Region {
    /// Region in a rank's memory, which a transport uses in the order of a stream.
    pub(super) fn of(rank: &dyn Rank, stream: Stream, memory: &Memory, offset: u64, bytes: u64) -> Self {
        Self { address: memory.at(offset, bytes), bytes: bytes as usize, place: rank.place(stream) }
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
