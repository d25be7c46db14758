//! The threads of this process as a machine.

use super::cas_width::chunk_bytes;
use super::kernels::geometry;
use super::memory::{free_memory, name};
use super::store::CpuStore;
use super::values::CpuValues;
use crate::backend::{HostBuffer, Machine, Store, Values};
use crate::layout::Spec;
use crate::layout::limits::MAX_THREADS;
use crate::layout::options::Parameters;
use crate::layout::view::Geometry;
use crate::{Error, Result};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// Threads of this process.
pub(crate) struct CpuMachine {
    threads: usize,
}

impl CpuMachine {
    /// Machine with one thread per core.
    pub(crate) fn whole() -> Arc<dyn Machine> {
        Self::with_threads(std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// Machine with `threads` threads, limited to 1 to `MAX_THREADS`.
    pub(crate) fn with_threads(threads: usize) -> Arc<dyn Machine> {
        Arc::new(Self { threads: threads.clamp(1, MAX_THREADS) })
    }

    /// The CPU with a number of threads that a user has named.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`].
    pub(crate) fn named(threads: Option<u64>) -> Result<Arc<dyn Machine>> {
        match threads {
            None => Ok(Self::whole()),
            Some(threads) if (1..=MAX_THREADS as u64).contains(&threads) => Ok(Self::with_threads(threads as usize)),
            Some(given) => Err(Error::OutOfRange { what: "threads of a CPU device", given, least: 1, most: MAX_THREADS as u64 }),
        }
    }
}

impl Machine for CpuMachine {
    fn is_gpu(&self) -> bool {
        false
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn is_same(&self, other: &dyn Machine) -> bool {
        (other as &dyn Any).downcast_ref::<Self>().is_some_and(|other| other.threads == self.threads)
    }

    fn free_memory(&self) -> Result<u64> {
        Ok(free_memory())
    }

    fn chunk_bytes(&self, words: usize) -> u32 {
        chunk_bytes(words)
    }

    fn geometry(&self, spec: Spec) -> Result<Geometry> {
        Ok(geometry(spec))
    }

    fn new_store(&self, parameters: &Parameters<'_>) -> Result<Box<dyn Store>> {
        Ok(Box::new(CpuStore::new(parameters, self.threads)?))
    }

    fn new_unfilled_store(&self, parameters: &Parameters<'_>) -> Result<Box<dyn Store>> {
        Ok(Box::new(CpuStore::unfilled(parameters, self.threads)?))
    }

    fn new_values(&self, bytes: u64) -> Result<Box<dyn Values>> {
        Ok(Box::new(CpuValues::new(bytes, self.threads)?))
    }

    fn new_host_buffer(&self, _: usize) -> Result<Option<Box<dyn HostBuffer>>> {
        Ok(None)
    }

    #[cfg(feature = "cluster")]
    fn new_rank(&self) -> Result<Box<dyn crate::backend::Rank>> {
        Ok(Box::new(super::rank::CpuRank::new(self.threads)))
    }
}

impl fmt::Display for CpuMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&name(self.threads))
    }
}
