//! Memory for values of the rows of an indexed table, by row number. Its bytes are zero at first, and it grows in place.
//!
//! On a GPU, reads and writes of the host wait for all work that was enqueued before, on any stream: the caller's own kernels may
//! write values, too, on streams that are unknown here.

use super::window::{Window, piece};
use crate::Result;
use crate::backend::{Machine, Memory, Store};
use crate::layout::Kernel;
use std::ops::Range;
use std::sync::Arc;

pub(crate) struct ValueMemory {
    machine: Arc<dyn Machine>,
    memory: Memory,
    /// Number of usable bytes. Memory behind them has not been cleared yet.
    usable: u64,
}

impl ValueMemory {
    /// `bytes`: size of the values of all rows that the table can have.
    pub(super) fn new(machine: &Arc<dyn Machine>, bytes: u64) -> Result<Self> {
        let on_demand = machine.provides_on_demand();
        if on_demand {
            machine.check_memory(bytes)?;
        }
        let memory = machine.reserve(bytes)?;
        let usable = if on_demand { memory.bytes } else { 0 };
        Ok(Self { machine: machine.clone(), memory, usable })
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> u64 {
        self.memory.bytes
    }

    /// Address of the first value on the machine. It stays the same.
    pub(crate) fn address(&self) -> u64 {
        self.memory.address
    }

    /// Makes the first `bytes` bytes usable, and perhaps more, up to `most`.
    ///
    /// # Errors
    ///
    /// If there is no memory. Then the values are unchanged.
    pub(super) fn make(&mut self, bytes: u64, most: u64) -> Result<()> {
        if bytes <= self.usable {
            return Ok(());
        }
        if bytes > self.memory.bytes {
            self.machine.grow(&mut self.memory, bytes, most)?;
        }
        if !self.machine.provides_on_demand() {
            // SAFETY: memory that was not usable before.
            unsafe { self.machine.fill(*self.memory, self.usable..self.memory.bytes, &[0])? };
        }
        self.usable = self.memory.bytes;
        Ok(())
    }

    /// Sets a range of usable bytes to copies of `value`. Nothing else has access to these bytes. Slices of earlier bytes that
    /// [`host_bytes`](Self::host_bytes) returned stay valid.
    pub(super) fn fill(&mut self, bytes: Range<u64>, value: &[u8]) -> Result<()> {
        assert!(bytes.end <= self.usable, "values are within their memory");
        self.machine.synchronize()?;
        // SAFETY: usable bytes, to which the caller has the only access. `value` is in another memory.
        unsafe { self.machine.fill(*self.memory, bytes, value) }
    }

    /// Address of the first `bytes` bytes, which are usable, if they are in the memory of this process.
    fn host_address(&self, bytes: u64) -> Option<u64> {
        assert!(self.machine.is_gpu() || bytes <= self.usable, "values are within their memory");
        (!self.machine.is_gpu()).then_some(self.memory.address)
    }

    /// The first `bytes` bytes, which are usable, if they are in the memory of this process. Aligned to 4,096 bytes.
    ///
    /// # Safety
    ///
    /// Nothing writes to these bytes during `'a` ([`fill`](Self::fill) may write to others), and the values outlive `'a`.
    pub(super) unsafe fn host_bytes<'a>(&self, bytes: u64) -> Option<&'a [u8]> {
        // SAFETY: memory of this process, zeroed at first. The caller promises that nothing writes it. The addresses are reserved
        // until `memory` is dropped.
        self.host_address(bytes).map(|address| unsafe { std::slice::from_raw_parts(address as *const u8, bytes as usize) })
    }

    /// Mutable view of the first `bytes` bytes; otherwise as [`host_bytes`](Self::host_bytes).
    pub(super) fn host_bytes_mut(&mut self, bytes: u64) -> Option<&mut [u8]> {
        // SAFETY: as in `host_bytes`. No other slice of these bytes exists. A slice of `Array::view` borrows the array, which
        // `change` and `update` borrow exclusively, and holds the table's lock, so that no change is left for `renumber`. A slice
        // of `Array::get` ends before the lock of `self` is released.
        self.host_address(bytes).map(|address| unsafe { std::slice::from_raw_parts_mut(address as *mut u8, bytes as usize) })
    }

    /// Copies the first bytes to `to`.
    pub(super) fn read(&self, to: &mut [u8]) -> Result<()> {
        self.machine.synchronize()?;
        // SAFETY: writers of the host hold the lock of these values, and all kernels before have ended.
        unsafe { self.machine.read(*self.memory, 0, to) }
    }

    /// Copies `from` to the first bytes.
    pub(super) fn write(&mut self, from: &[u8]) -> Result<()> {
        self.machine.synchronize()?;
        // SAFETY: as in `read`.
        unsafe { self.machine.write(*self.memory, 0, from) }
    }

    /// Copies the values at `references`, of `value_bytes` bytes each. The references are to rows of `store`; their bits above
    /// the row number are ignored.
    pub(super) fn gather(&self, store: &dyn Store, references: &[u64], value_bytes: usize, to: &mut [u8]) -> Result<()> {
        self.machine.synchronize()?;
        if references.is_empty() {
            return Ok(());
        }
        let piece = piece(&*self.machine, references.len(), value_bytes);
        let window = Window::<u64>::new(&*self.machine, piece)?;
        let packed = Window::<u8>::new(&*self.machine, piece * value_bytes)?;
        for (references, to) in references.chunks(piece).zip(to.chunks_mut(piece * value_bytes)) {
            let at = [window.show(references)?, packed.place(to.as_mut_ptr())];
            // SAFETY: there is space for as many values as references. The values at the references are usable (`Array::open`).
            unsafe { self.copy_values(Kernel::GatherValues, store, references.len(), value_bytes, at)? };
            packed.receive(to)?;
        }
        Ok(())
    }

    /// Writes the values of `value_bytes` bytes at `references`. Each reference occurs once.
    pub(super) fn scatter(&mut self, store: &dyn Store, references: &[u64], value_bytes: usize, from: &[u8]) -> Result<()> {
        self.machine.synchronize()?;
        if references.is_empty() {
            return Ok(());
        }
        let piece = piece(&*self.machine, references.len(), value_bytes);
        let window = Window::<u64>::new(&*self.machine, piece)?;
        let packed = Window::<u8>::new(&*self.machine, piece * value_bytes)?;
        for (references, from) in references.chunks(piece).zip(from.chunks(piece * value_bytes)) {
            let at = [window.show(references)?, packed.show(from)?];
            // SAFETY: as above.
            unsafe { self.copy_values(Kernel::ScatterValues, store, references.len(), value_bytes, at)? };
        }
        self.machine.finish("writing values")
    }

    /// Launches a kernel that copies values from or to the packed values at `at[1]`. Their references are at `at[0]`.
    ///
    /// # Safety
    ///
    /// There are `count` references and `count` values at these addresses, and the values at these references are usable.
    unsafe fn copy_values(&self, kernel: Kernel, store: &dyn Store, count: usize, bytes: usize, at: [u64; 2]) -> Result<()> {
        let items = (count * bytes.div_ceil(8)) as u64;
        let arguments = [self.memory.address, bytes as u64, at[0], count as u64, at[1]];
        // SAFETY: the arguments of the kernel. The caller guarantees the rest.
        unsafe { self.machine.launch(kernel, &[store.table().argument()], items, &arguments) }
    }
}
