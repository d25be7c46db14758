//! Reading of a table's vectors and counters.

use super::window::{Window, piece};
use crate::Result;
use crate::backend::Store;
use crate::host::{room, zeroed};
use crate::layout::Kernel;
use crate::layout::search::ProbeLengths;
use std::ops::Range;

impl dyn Store {
    /// Launches a kernel that takes this table.
    ///
    /// # Safety
    ///
    /// As [`Machine::launch`](crate::backend::Machine::launch).
    pub(super) unsafe fn launch(&self, kernel: Kernel, items: u64, arguments: &[u64]) -> Result<()> {
        // SAFETY: the caller guarantees the contract.
        unsafe { self.machine().launch(kernel, &[self.table().argument()], items, arguments) }
    }

    /// Returns the number of stored vectors, and the number of nodes or of given rows (any number if the table has neither).
    pub(crate) fn stored(&self) -> Result<[u64; 2]> {
        let mut stored = [0; 2];
        // SAFETY: two numbers of the table, which kernels change atomically.
        unsafe { self.machine().load(*self.table().stored, 0, &mut stored)? };
        Ok(stored)
    }

    /// Waits for all work on the machine.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.machine().synchronize()
    }

    /// Removes all vectors. Calls `begin` once, before anything is changed. After an error either all vectors are gone or none.
    pub(crate) fn clear(&mut self, begin: &mut dyn FnMut()) -> Result<()> {
        self.synchronize()?; // the caller's streams may still be searching
        begin();
        self.table_mut().set_dense(0);
        // SAFETY: the kernel takes only the table, which is borrowed exclusively, and whose memory is as large as its geometry
        // says.
        unsafe { self.launch(Kernel::Clear, self.table().clear_words(), &[])? };
        *self.table().displaced() = None; // they are cleared, too
        self.machine().finish("clearing a table")?;
        if let Some(rows) = &self.table().rows {
            rows.words().bound = 0;
        }
        self.forget();
        Ok(())
    }

    /// Copies the vectors at `references`. Returns the number of words that could not be read.
    pub(crate) fn get(&self, references: &[u64], vectors: &mut [u32]) -> Result<u64> {
        let (machine, width) = (self.machine(), self.table().spec.width());
        assert_eq!(vectors.len(), references.len() * width);
        let piece = piece(machine, references.len(), width * 4);
        let (from, to) = (Window::<u64>::new(machine, piece)?, Window::<u32>::new(machine, piece * width)?);
        let (mut invalid, sum) = ([0], Window::<u64>::new(machine, 1)?);
        let sum_at = sum.lend(&mut invalid)?;
        for (references, vectors) in references.chunks(piece).zip(vectors.chunks_mut(piece * width)) {
            let arguments = [from.show(references)?, references.len() as u64, to.place(vectors.as_mut_ptr()), sum_at];
            // SAFETY: the arguments of the kernel. There is space for the vectors of all references (asserted above). The kernel
            // checks each reference before it reads the slot, and adds to `invalid` atomically. All buffers outlive the launch.
            unsafe { self.launch(Kernel::Get, vectors.len() as u64, &arguments)? };
            to.receive(vectors)?;
        }
        sum.receive(&mut invalid)?;
        Ok(invalid[0])
    }

    /// Vectors in a range of slots, and the slot of each. The rows of an indexed table are in order.
    pub(crate) fn export(&self, slots: Range<u64>) -> Result<(Vec<u32>, Vec<u64>)> {
        let machine = self.machine();
        // The warps of a GPU would write vectors in no order. Rows of an indexed table are in order in memory already.
        if self.table().spec.is_indexed() && machine.is_gpu() {
            return self.export_rows(slots);
        }
        let (capacity, width) = ((slots.end - slots.start) as usize, self.table().spec.width());
        // This memory is not cleared, because a wide table may hold few vectors in many slots.
        let (mut vectors, mut references) = (room::<u32>(capacity * width)?, room::<u64>(capacity)?);
        let (vectors_on, references_on) =
            (Window::<u32>::new(machine, capacity * width)?, Window::<u64>::new(machine, capacity)?);
        let (mut count, count_on) = ([0], Window::<u64>::new(machine, 1)?);
        let (vectors_at, references_at) = (vectors_on.place(vectors.as_mut_ptr()), references_on.place(references.as_mut_ptr()));
        let arguments = [slots.start, slots.end, vectors_at, references_at, count_on.lend(&mut count)?, 0];
        // SAFETY: the arguments of the kernel. The slots are slots of the table (RawTable), and the new memory has space for one
        // vector and one reference for each slot.
        unsafe { self.launch(Kernel::Export, slots.end - slots.start, &arguments)? };
        count_on.receive(&mut count)?;
        let count = count[0] as usize;
        assert!(count <= capacity, "a slot holds one vector at most");
        if machine.is_gpu() {
            (vectors, references) = (zeroed(count * width)?, zeroed(count)?);
            vectors_on.receive(&mut vectors)?;
            references_on.receive(&mut references)?;
        } else {
            // SAFETY: the kernel has written the first `count` vectors, of `width` words each, and `count` references, for which
            // there is space (asserted).
            unsafe {
                vectors.set_len(count * width);
                references.set_len(count);
            }
        }
        Ok((vectors, references))
    }

    /// Probe lengths of the vectors in the first `slots` slots.
    pub(crate) fn measure(&self, slots: u64, bins: usize) -> Result<ProbeLengths> {
        // The totals, two numbers, come last.
        let mut lengths = zeroed::<u64>(bins + 2)?;
        let window = Window::<u64>::new(self.machine(), lengths.len())?;
        let at = window.lend(&mut lengths)?;
        // SAFETY: the arguments of the kernel. The slots are slots of the table, and there are `bins` lengths and the totals,
        // which are changed atomically.
        unsafe { self.launch(Kernel::Measure, slots, &[0, slots, at, bins as u64, at + bins as u64 * 8])? };
        window.receive(&mut lengths)?;
        let totals = bytemuck::pod_read_unaligned(bytemuck::cast_slice(&lengths.split_off(bins)));
        Ok(ProbeLengths { lengths, totals })
    }
}
