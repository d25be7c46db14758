//! Batches that change values beside the rows of an indexed table.
//!
//! Before a part of the batch is put, the library provides memory for the value of every row number that the table can give. So
//! no kernel uses a value without memory. A vector that is rejected has changed no value. When it is offered again, its operand
//! is offered again, too.

use super::arrays::{Renumbering, locked};
use super::request::Request;
use super::table::{FIND_OR_PUT, TableState};
use super::values::{Array, ArrayMemory};
use crate::layout::Upsert;
use crate::layout::rows::HoleClosing;
use crate::layout::upsert::{Combine, Number};
use crate::{Batch, Error, Result};
use bytemuck::Pod;

/// Changes of a batch to an array of values.
#[derive(Clone, Copy)]
pub(crate) struct Changes<'a> {
    pub upsert: Upsert<'a>,
    pub array: &'a dyn UpsertTarget,
}

/// An array that a batch changes. The caller borrows it exclusively.
pub(crate) trait UpsertTarget {
    /// Makes the values of all row numbers that the table can give usable, and sets them to what they must be before the batch.
    fn make_all(&self, sized: &TableState) -> Result<()>;

    /// Called when the batch has ended, also by an error, before any row moves.
    fn put(&self);

    /// Moves values with the rows that have moved to holes, before anything else is done with the array.
    fn rows_moved(&self, closing: &HoleClosing) -> Result<()>;
}

impl<V: Pod> UpsertTarget for Array<V> {
    fn make_all(&self, sized: &TableState) -> Result<()> {
        let numbers = self.table.references_of(sized);
        let mut memory = self.open(sized, numbers)?;
        // From now on any of these values may have been written, whatever happens.
        memory.used = memory.used.max(numbers);
        Ok(())
    }

    fn put(&self) {
        // While this guard is held, no number is taken back. All numbers still count as written if some have been taken back
        // since `make_all`, if kernels on other streams may have given numbers that are not counted yet, or if the GPU does not
        // answer.
        let sized = self.table.look();
        let mut memory = self.lock();
        let is_as_it_was = *locked(&self.renumbering) == Renumbering::none() && !self.table.calls.may_have_kernels();
        if let (true, Ok([_, given])) = (is_as_it_was, sized.store.stored()) {
            memory.used = memory.used.min(given);
        }
    }

    fn rows_moved(&self, closing: &HoleClosing) -> Result<()> {
        let sized = self.table.sized(FIND_OR_PUT)?;
        let mut memory = self.lock();
        let ArrayMemory { values, used, .. } = &mut *memory;
        let value_bytes = size_of::<V>();
        if let Some(bytes) = values.host_bytes_mut(Self::bytes_of(*used)) {
            for moved in &closing.moves {
                let (from, to) = (moved.from as usize * value_bytes, moved.to as usize * value_bytes);
                bytes.copy_within(from..from + value_bytes, to);
            }
            return Ok(());
        }
        let (from, to): (Vec<u64>, Vec<u64>) = closing.moves.iter().map(|moved| (moved.from, moved.to)).unzip();
        let mut moving = crate::host::zeroed::<u8>(from.len() * value_bytes)?;
        values.gather(&*sized.store, &from, value_bytes, &mut moving)?;
        values.scatter(&*sized.store, &to, value_bytes, &moving)
    }
}

impl<V: Number> Array<V> {
    /// Puts vectors into the array's table, and combines operands with the values of the stored vectors. There is one operand for
    /// each vector, or one for all.
    pub(crate) fn upsert(&mut self, words: &[u32], operands: &[V], combine: Combine, request: Request<'_>) -> Result<Batch> {
        let count = self.table.count(words)?;
        let is_one = operands.len() == 1;
        if !is_one && operands.len() != count {
            return Err(Error::LengthMismatch { what: "operands", given: operands.len(), needed: count });
        }
        // Kernels of the caller's streams may be changing values, by accesses that are not atomic.
        if self.table.calls.may_have_kernels() {
            self.table.look().store.synchronize()?;
        }
        let upsert = Upsert::new(operands, is_one, combine, self.lock().values.address());
        self.table.find_or_put(words, request, Some(Changes { upsert, array: self }))
    }
}
