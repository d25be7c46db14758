//! The threads of this process as a machine.

use super::cas_width::chunk_bytes;
use super::kernels::{CpuView, geometry, run};
use super::reserved::Reserved;
use super::store::CpuStore;
use super::system_memory::{check_memory, free_memory, name, new_memory};
use crate::backend::{HostBuffer, Machine, Memory, Region, Store, TableMemory};
use crate::host::fill_repeatedly;
use crate::layout::limits::MAX_THREADS;
use crate::layout::options::Parameters;
use crate::layout::part::BLOCK;
use crate::layout::view::{Geometry, View};
use crate::layout::{Kernel, Spec};
use crate::{Error, Result};
use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Threads of this process. When a call returns, its kernels have ended. Kernels access memory of this process in place.
#[derive(Clone, Copy)]
pub(crate) struct CpuMachine {
    pub(super) threads: usize,
}

/// Number of independent items that a thread takes at a time. A second thread pays only for more items than this.
pub(super) const PIECE: usize = 4096;

/// Number of cells for spare rows: more than the rows that all threads can hold at once.
const SPARE_CELLS: u32 = 256;

impl CpuMachine {
    /// Machine with one thread per core.
    pub(crate) fn whole() -> Arc<dyn Machine> {
        Self::with_threads(std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// Machine with `threads` threads, limited to 1 to `MAX_THREADS`.
    pub(crate) fn with_threads(threads: usize) -> Arc<dyn Machine> {
        Arc::new(Self { threads: threads.clamp(1, MAX_THREADS) })
    }

    /// Returns the CPU with the number of threads that a user has requested; if none, one thread per core.
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
        Ok(Box::new(CpuStore::new(parameters, *self)?))
    }

    fn new_unfilled_store(&self, parameters: &Parameters<'_>) -> Result<Box<dyn Store>> {
        Ok(Box::new(CpuStore::unfilled(parameters, *self)?))
    }

    fn store_of(&self, table: TableMemory) -> Result<Box<dyn Store>> {
        Ok(Box::new(CpuStore { table, machine: *self, filter: None }))
    }

    fn spare_cells(&self) -> u32 {
        SPARE_CELLS
    }

    fn provides_on_demand(&self) -> bool {
        true
    }

    fn check_memory(&self, bytes: u64) -> Result<()> {
        check_memory(bytes, self.threads)
    }

    fn allocate(&self, bytes: u64) -> Result<Memory> {
        new_memory(bytes)
    }

    fn reserve(&self, bytes: u64) -> Result<Memory> {
        let reserved = Reserved::new(bytes as usize)?;
        Ok(Memory::new(reserved.address() as u64, bytes, reserved))
    }

    fn grow(&self, memory: &mut Memory, _: u64, most: u64) -> Result<()> {
        check_memory(most.saturating_sub(memory.bytes), self.threads)?;
        memory.grow(|reserved: &mut Reserved| reserved.grow(most as usize).map(|()| most))
    }

    unsafe fn read(&self, region: Region, offset: u64, to: &mut [u8]) -> Result<()> {
        let from = region.at(offset, to.len() as u64) as *const u8;
        // SAFETY: within memory of this process (checked). All of it is initialised, at least with zeros. The caller
        // guarantees that nothing writes it.
        unsafe { from.copy_to_nonoverlapping(to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    unsafe fn load(&self, region: Region, offset: u64, to: &mut [u64]) -> Result<()> {
        let from = region.at(offset, size_of_val(to) as u64) as *mut u64;
        for (at, to) in to.iter_mut().enumerate() {
            // SAFETY: within memory of this process (checked), and aligned (the caller's duty; memory is aligned to lines). All
            // accesses that may overlap with this one are atomic. Relaxed: independent counters. A caller that needs exact
            // numbers has joined the threads that add to them.
            *to = unsafe { AtomicU64::from_ptr(from.add(at)) }.load(Ordering::Relaxed);
        }
        Ok(())
    }

    unsafe fn write(&self, region: Region, offset: u64, from: &[u8]) -> Result<()> {
        let to = region.at(offset, from.len() as u64) as *mut u8;
        // SAFETY: within memory of this process (checked). The caller guarantees that nothing else uses it.
        unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        Ok(())
    }

    unsafe fn fill(&self, region: Region, bytes: Range<u64>, value: &[u8]) -> Result<()> {
        let len = bytes.end - bytes.start;
        let start = region.at(bytes.start, len) as *mut u8;
        // SAFETY: as in `write`.
        unsafe {
            match value {
                [byte] => start.write_bytes(*byte, len as usize),
                _ => fill_repeatedly(start, len as usize, value),
            }
        }
        Ok(())
    }

    /// Calls `each` with the memory itself, not a copy. A block is so small that it stays in the cache until its checksum is
    /// computed.
    unsafe fn read_pieces(&self, region: Region, bytes: u64, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let from = region.at(0, bytes) as *const u8;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: as in `read`.
        unsafe { std::slice::from_raw_parts(from, bytes as usize) }.chunks(BLOCK).try_for_each(each)
    }

    unsafe fn fill_pieces(&self, region: Region, bytes: u64, each: &mut dyn FnMut(&mut [u8]) -> Result<()>) -> Result<()> {
        let to = region.at(0, bytes) as *mut u8;
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: as in `write`; all of it is initialised, at least with zeros.
        unsafe { std::slice::from_raw_parts_mut(to, bytes as usize) }.chunks_mut(BLOCK).try_for_each(each)
    }

    unsafe fn launch(&self, kernel: Kernel, tables: &[(Spec, &View)], items: u64, arguments: &[u64]) -> Result<()> {
        let piece = match kernel {
            // One megabyte: starting a thread costs as much as clearing a megabyte. Besides, if two threads write to one huge
            // page, both make the system provide it.
            Kernel::Clear => 1 << 18,
            // Vectors are copied in the order of their slots, by the calling thread.
            Kernel::Export => u64::MAX,
            _ => PIECE as u64,
        };
        let tables = tables.iter().filter(|_| kernel.takes_tables());
        let tables: Vec<CpuView> = tables.map(|(spec, view)| CpuView::of(*spec, view)).collect();
        // SAFETY: the caller guarantees the contract. Different shares write to different places, or use atomics.
        unsafe { run(kernel.name(), self.threads, items.div_ceil(piece).max(1), &tables, arguments) };
        Ok(())
    }

    fn finish(&self, _: &'static str) -> Result<()> {
        Ok(())
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn new_host_buffer(&self, _: usize) -> Result<Option<Box<dyn HostBuffer>>> {
        Ok(None)
    }

    #[cfg(feature = "cluster")]
    fn new_rank(&self) -> Result<Box<dyn crate::backend::Rank>> {
        Ok(Box::new(super::rank::CpuRank::new(*self)))
    }
}

impl fmt::Display for CpuMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&name(self.threads))
    }
}
