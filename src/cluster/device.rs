//! Batches in the memory of the ranks' GPUs.

use super::batch::Batch;
use super::engine::{Answers, DeviceResults, Offer};
use super::plan::{Fresh, Input};
use super::record::{NUMBERS, Operation};
use super::table::Table;
pub use crate::backend::GpuStream;
use crate::gpu::device_batch::check_buffer;
use crate::gpu::{Buffer, BufferMut, Stream};
use crate::layout::SearchMode;
use crate::{Error, Key, Result, Storage};
use cudarc::driver::CudaStream;

/// A rank's batch in the memory of its GPU: buffers of at least `count` elements or rows. Their contents do not pass through the
/// host, unless the [`Transport`](super::Transport) takes them through it.
#[must_use = "a batch does nothing until it is passed to `find_or_put_device` or `find_device`"]
pub struct DeviceBatch<'a, E = u32> {
    vectors: &'a dyn Buffer<E>,
    count: usize,
    outcomes: Option<&'a mut dyn BufferMut<u8>>,
    references: Option<&'a mut dyn BufferMut<u64>>,
    owners: Option<&'a mut dyn BufferMut<u32>>,
    stored_here: Option<&'a mut dyn BufferMut<u64>>,
    numbers: [u64; NUMBERS],
}

impl<'a, E> DeviceBatch<'a, E> {
    /// Makes a batch of `count` vectors, one after another, as words or keys.
    pub fn new(vectors: &'a dyn Buffer<E>, count: usize) -> Self {
        Self { vectors, count, outcomes: None, references: None, owners: None, stored_here: None, numbers: [0; NUMBERS] }
    }

    /// Requests, per vector: 1 new, 2 seen, 3 full, 4 absent ([`Outcome`](crate::Outcome) has the first three).
    pub fn outcomes(mut self, buffer: &'a mut dyn BufferMut<u8>) -> Self {
        self.outcomes = Some(buffer);
        self
    }

    /// Requests, per vector, the bits of its [`Reference`](crate::Reference) in its owner's table, or 0 if it is not stored.
    pub fn references(mut self, bits: &'a mut dyn BufferMut<u64>) -> Self {
        self.references = Some(bits);
        self
    }

    /// Requests, per vector, the rank that owns it.
    pub fn owners(mut self, ranks: &'a mut dyn BufferMut<u32>) -> Self {
        self.owners = Some(ranks);
        self
    }

    /// Requests the bits of the references of vectors that are new in *this* rank's table, offered by any rank. They are written
    /// in no order, from the buffer's first element on; [`Batch::stored_here_count`] is their number. References that do not fit
    /// are counted, but not written. At most as many vectors are new as this rank's table has free slots.
    pub fn stored_here(mut self, bits: &'a mut dyn BufferMut<u64>) -> Self {
        self.stored_here = Some(bits);
        self
    }

    /// Requests the sums, over all ranks, of the numbers that each rank passes (at most 16), in [`Batch::sums`]. Same as
    /// [`Table::sum`], but the numbers need no exchange of their own.
    pub fn sum<const N: usize>(mut self, own: [u64; N]) -> Self {
        const { assert!(N <= NUMBERS, "a record has room for 16 numbers") };
        self.numbers[..N].copy_from_slice(&own);
        self
    }
}

impl<K: Key, S: Storage> Table<K, S> {
    /// Find-or-put of a [batch in device memory](DeviceBatch). Waits for `stream` first, and returns when the batches of all
    /// ranks are put, and the results are in their buffers. The [`Batch`] has the tallies. Tables do not grow by themselves here:
    /// if `total.full` is not 0, all ranks may [`reserve_total`](Self::reserve_total) more. Collective: a rank without vectors
    /// passes an empty batch.
    ///
    /// # Errors
    ///
    /// [`WrongDevice`](Error::WrongDevice) or [`LengthMismatch`](Error::LengthMismatch) on the rank that passed the faulty batch,
    /// and [`Error::Rank`] on the others, before anything is put. Otherwise the errors of
    /// [`find_or_put_many`](Self::find_or_put_many).
    pub fn find_or_put_device<'a>(&mut self, stream: impl Into<Stream<'a>>, batch: DeviceBatch<'a, K::Element>) -> Result<Batch> {
        self.search_device(Operation::FindOrPutDevice, SearchMode::FindOrPut, "find_or_put_device", stream.into().stream, batch)
    }

    /// Looks up a batch in device memory. Differs from [`find_or_put_device`](Self::find_or_put_device) only in that nothing is
    /// put, and outcomes are seen or absent.
    ///
    /// # Errors
    ///
    /// The errors of [`find_or_put_device`](Self::find_or_put_device).
    pub fn find_device<'a>(&mut self, stream: impl Into<Stream<'a>>, batch: DeviceBatch<'a, K::Element>) -> Result<Batch> {
        self.search_device(Operation::FindDevice, SearchMode::Find, "find_device", stream.into().stream, batch)
    }

    fn search_device<'a>(
        &mut self,
        operation: Operation,
        search: SearchMode,
        name: &'static str,
        stream: &'a CudaStream,
        batch: DeviceBatch<'a, K::Element>,
    ) -> Result<Batch> {
        let raw = &self.local.raw;
        let DeviceBatch { vectors, count, outcomes, references, owners, stored_here, numbers } = batch;
        let wanted = [outcomes.is_some(), references.is_some(), owners.is_some()];
        let stored_capacity = stored_here.as_ref().map_or(0, |buffer| buffer.len() as u64);
        let refused = match raw.device.as_gpu() {
            None => Some(Error::needs_gpu(name, &raw.device)),
            Some(gpu) => (|| {
                gpu.check_own("stream", stream)?;
                check_buffer(gpu, "vectors", vectors, count.saturating_mul(K::elements(raw.width())))?;
                outcomes.as_deref().map_or(Ok(()), |buffer| check_buffer(gpu, "outcomes", buffer, count))?;
                references.as_deref().map_or(Ok(()), |buffer| check_buffer(gpu, "references", buffer, count))?;
                owners.as_deref().map_or(Ok(()), |buffer| check_buffer(gpu, "owners", buffer, count))?;
                stored_here.as_deref().map_or(Ok(()), |buffer| check_buffer(gpu, "stored_here", buffer, 0))?;
                gpu.check_not_capturing(stream)
            })()
            .err(),
        };
        let offer = |input, fresh, refused| {
            let [outcomes, references, owners] = wanted;
            Offer { operation, search, input, outcomes, references, owners, fresh, numbers, refused }
        };
        if refused.is_some() {
            let mut answers = Answers::default();
            self.engine.rounds(raw, &offer(Input::Host(&[]), Fresh::Unwanted, refused), &mut answers)?;
            unreachable!("a batch that is refused is an error on all ranks");
        }
        // These guards live until everything is done. When they are dropped, the streams of the buffers wait for the work done
        // here.
        let (vectors_at, _vectors) = vectors.device_ptr(stream);
        let (outcomes_at, _outcomes) = outcomes.map(|buffer| buffer.device_ptr_mut(stream)).unzip();
        let (references_at, _references) = references.map(|buffer| buffer.device_ptr_mut(stream)).unzip();
        let (owners_at, _owners) = owners.map(|buffer| buffer.device_ptr_mut(stream)).unzip();
        let (stored_at, _stored) = stored_here.map(|buffer| buffer.device_ptr_mut(stream)).unzip();
        // Wait for the work that was enqueued for the buffers, so that it comes before the work on the rank's own streams.
        let refused = raw.device.as_gpu().and_then(|gpu| gpu.wait(stream, "waiting for a batch").err());
        let mut answers = Answers {
            device: Some(DeviceResults {
                outcomes: outcomes_at.unwrap_or(0),
                references: references_at.unwrap_or(0),
                owners: owners_at.unwrap_or(0),
                stored: 0,
            }),
            ..Answers::default()
        };
        let fresh = stored_at.map_or(Fresh::Unwanted, |address| Fresh::Gpu { address, capacity: stored_capacity });
        self.engine.rounds(raw, &offer(Input::Gpu { address: vectors_at, count }, fresh, refused), &mut answers)?;
        let stored_here_count = answers.device.map_or(0, |device| device.stored);
        let Answers { tally, total, sums, limit, .. } = answers;
        Ok(Batch { tally, total, sums, stored_here_count, error: limit, ..Batch::default() })
    }
}
