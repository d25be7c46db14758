//! Runs the kernels, compiled for the CPU (kernels.cpp), on threads. Each thread is a block.

use super::graph::Graph;
use super::machine::{Kernel, Machine, Work};
use anyhow::{Context, Result, ensure};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use warpset_support::memory::{MemoryBudget, amount, free_memory};

unsafe extern "C" {
    fn decompose_kernel_count() -> u64;
    fn decompose_team_bytes() -> u64;
    fn decompose_run(kernel: u64, work: *const Work, team: *mut u8, index: u64, count: u64, thread: u32, threads: u32);
}

/// Maximum number of edges of a piece. The edges of larger states are divided between threads.
const PIECE: u64 = 1 << 14;

/// Widest level, in states, that one thread handles without waking the other threads.
const NARROW: u64 = 256;

/// CPU threads as a machine.
pub struct Cpu {
    pool: ThreadPool,
    blocks: usize,
    /// Threads per block: 1 except in tests.
    threads: usize,
    narrow: u64,
    piece: u64,
    /// Limit of allocated bytes.
    most_bytes: Option<u64>,
    /// Bytes allocated now.
    taken: Arc<AtomicU64>,
}

impl Cpu {
    /// Creates a machine of `threads` threads that allocates at most `bytes` bytes.
    pub fn new(threads: usize, bytes: Option<u64>) -> Result<Self> {
        Ok(Self { most_bytes: bytes, ..Self::of_blocks(threads, 1, NARROW, PIECE)? })
    }

    /// Creates a machine whose blocks have several threads, as on a GPU.
    pub fn of_blocks(blocks: usize, threads: usize, narrow: u64, piece: u64) -> Result<Self> {
        // SAFETY: the function takes no arguments and returns a number.
        let kernels = unsafe { decompose_kernel_count() };
        ensure!(kernels == Kernel::ALL.len() as u64, "{kernels} kernels were compiled, where {} are known", Kernel::ALL.len());
        let pool = ThreadPoolBuilder::new().num_threads(blocks * threads).build();
        Ok(Self {
            pool: pool.context("threads cannot be started")?,
            blocks,
            threads,
            narrow,
            piece,
            most_bytes: None,
            taken: Arc::default(),
        })
    }

    pub fn has_one_thread(&self) -> bool {
        self.blocks * self.threads == 1
    }
}

/// Host memory: allocated for this buffer, or a part of a graph.
pub struct HostBuffer<'g> {
    at: NonNull<u8>,
    /// Layout of the memory, and the counter of allocated bytes, if the memory was allocated for this buffer.
    own: Option<(Layout, Arc<AtomicU64>)>,
    of_graph: PhantomData<&'g [u8]>,
}

impl Drop for HostBuffer<'_> {
    fn drop(&mut self) {
        if let Some((layout, taken)) = &self.own {
            // Relaxed: only one thread reads and writes this counter.
            taken.fetch_sub(layout.size() as u64, Ordering::Relaxed);
            // SAFETY: `allocate` allocated the memory with this layout, and it is freed once.
            unsafe { dealloc(self.at.as_ptr(), *layout) }
        }
    }
}

impl<'g> Machine<'g> for Cpu {
    type Buffer = HostBuffer<'g>;

    fn allocate(&self, bytes: u64) -> Result<HostBuffer<'g>> {
        let layout = Layout::from_size_align(bytes.max(8) as usize, 64).context("more bytes than addresses")?;
        // SAFETY: the layout has at least 8 bytes.
        let at = NonNull::new(unsafe { alloc_zeroed(layout) });
        let at = at.with_context(|| format!("no memory for {}", amount(bytes)))?;
        // Relaxed: only one thread reads and writes this counter.
        self.taken.fetch_add(layout.size() as u64, Ordering::Relaxed);
        Ok(HostBuffer { at, own: Some((layout, self.taken.clone())), of_graph: PhantomData })
    }

    fn share(&self, data: &'g [u8]) -> Result<HostBuffer<'g>> {
        Ok(HostBuffer { at: NonNull::from(data).cast(), own: None, of_graph: PhantomData })
    }

    fn bytes_to_share(&self, _: &Graph) -> u64 {
        0
    }

    fn address(&self, buffer: &HostBuffer<'g>) -> u64 {
        buffer.at.as_ptr().expose_provenance() as u64
    }

    fn fill(&self, buffer: &HostBuffer<'g>, bytes: u64, value: u8) -> Result<()> {
        // SAFETY: the buffer owns its memory, which has at least `bytes` bytes, and no kernel runs now.
        unsafe { buffer.at.write_bytes(value, bytes as usize) };
        Ok(())
    }

    fn write(&self, buffer: &HostBuffer<'g>, at: u64, data: &[u8]) -> Result<()> {
        // SAFETY: the buffer owns its memory, which has space for `data` at `at`, and no kernel runs now.
        unsafe { buffer.at.add(at as usize).copy_from_nonoverlapping(NonNull::from(data).cast(), data.len()) };
        Ok(())
    }

    fn read(&self, buffer: &HostBuffer<'g>, data: &mut [u8]) -> Result<()> {
        // SAFETY: the buffer has at least as many bytes as `data`, and no kernel runs now.
        unsafe { buffer.at.copy_to_nonoverlapping(NonNull::from(&mut *data).cast(), data.len()) };
        Ok(())
    }

    unsafe fn launch(&self, kernel: Kernel, work: &Work) -> Result<()> {
        // SAFETY: the function takes no arguments and returns a number.
        let words = unsafe { decompose_team_bytes() }.div_ceil(8) as usize;
        let mut teams = vec![0u64; words * self.blocks];
        let teams = teams.as_mut_ptr().expose_provenance();
        let work = std::ptr::from_ref(work).expose_provenance();
        let run = |number: usize| {
            let (block, thread) = (number / self.threads, number % self.threads);
            let team = std::ptr::with_exposed_provenance_mut(teams + 8 * words * block);
            let work = std::ptr::with_exposed_provenance(work);
            // SAFETY: the caller guarantees that `work` is valid. Each block has its own team, initialised to zeros. All threads
            // of all blocks run at the same time, each on its own thread of the pool.
            unsafe {
                decompose_run(kernel as u64, work, team, block as u64, self.blocks as u64, thread as u32, self.threads as u32)
            }
        };
        if self.has_one_thread() {
            run(0);
        } else {
            self.pool.broadcast(|context| run(context.index()));
        }
        Ok(())
    }

    fn blocks(&self) -> u64 {
        self.blocks as u64
    }

    fn narrow(&self) -> u64 {
        self.narrow
    }

    fn piece(&self) -> u64 {
        self.piece
    }

    fn memory_budget(&self) -> Result<MemoryBudget> {
        // Relaxed: only one thread reads and writes this counter.
        let taken = self.taken.load(Ordering::Relaxed);
        Ok(MemoryBudget::free(free_memory()).within(self.most_bytes.map(|most| most.saturating_sub(taken))))
    }
}
