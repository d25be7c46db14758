//! Arrays of values for the rows of an indexed table, indexed by number, on the table's device.
//!
//! A table stores for each array only how row numbers change. Numbers that the table takes back (`clear`, `truncate`, holes that
//! are closed) are given again, to vectors that begin with initial values, and `retain` gives new numbers to the rows that stay.
//! An array applies these changes, and follows the size of the table, when it is next used. So neither a batch nor a growth waits
//! for an array, or fails because there is no memory for one.
//!
//! Values move after `retain`. Otherwise a row moves only before the batch that has put it returns (`HoleClosing`), and only if
//! no other call can have its reference. If the batch has changed values, the row's value moves with it. Each operation here
//! counts as a call that overlaps with such a batch.

use super::arrays::{Renumbering, locked};
use super::lock::SharedGuard;
use super::table::{RawTable, TableState};
use super::value_memory::ValueMemory;
use crate::host::zeroed;
use crate::{Error, Reference, Result};
use bytemuck::Pod;
use std::sync::{Arc, Mutex, MutexGuard};

/// Largest alignment of a value: pages have at least this alignment.
const MAX_ALIGNMENT: usize = 4096;

/// An array of values for the rows of a table. It keeps the table alive.
pub(crate) struct Array<V> {
    pub(crate) table: Arc<RawTable>,
    pub(super) renumbering: Arc<Mutex<Renumbering>>,
    memory: Mutex<ArrayMemory>,
    /// Value of a vector until it is set.
    initial: V,
}

pub(crate) struct ArrayMemory {
    pub values: ValueMemory,
    /// Values from this number on have not been written.
    pub used: u64,
    /// Values before this number are initial ones or have been written. Memory has zeros at first.
    filled: u64,
}

/// Values as a slice: in the array itself, while the table stays unchanged, or copied from another memory.
pub(crate) enum Viewed<'a, V> {
    InPlace { _sized: SharedGuard<'a, TableState>, values: &'a [V] },
    Copied(Vec<V>),
}

impl<V> Array<V> {
    /// Bytes of `numbers` values. If the product overflows, a number larger than any memory.
    pub(super) fn bytes_of(numbers: u64) -> u64 {
        numbers.saturating_mul(size_of::<V>() as u64).min(1 << 62)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ArrayMemory> {
        locked(&self.memory)
    }
}

impl<V: Pod> Array<V> {
    /// An array whose values are `initial` until they are set.
    pub(crate) fn new(table: &Arc<RawTable>, initial: V) -> Result<Self> {
        const {
            assert!(size_of::<V>() > 0, "a value has at least one byte");
            assert!(align_of::<V>() <= MAX_ALIGNMENT, "a value is aligned to 4096 bytes at most");
        }
        let sized = table.sized("values")?;
        let values = ValueMemory::new(&table.device.machine, Self::bytes_of(table.references_of(&sized)))?;
        // Added while the table's lock is held, so that all numbers that are taken back later are taken back in this array, too.
        let renumbering = table.arrays.add();
        drop(sized);
        Ok(Self { table: table.clone(), renumbering, memory: Mutex::new(ArrayMemory { values, used: 0, filled: 0 }), initial })
    }

    /// Number of row numbers that the table has given.
    pub(crate) fn len(&self) -> Result<u64> {
        let sized = self.table.sized("Values::len")?;
        // The counter may exceed the number of rows.
        Ok(sized.store.stored()?[1].min(self.table.references_of(&sized)))
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.lock().values.bytes()
    }

    /// Returns memory for at least `numbers` values. Every value is at its current number, and numbers that were taken back have
    /// initial values.
    ///
    /// While slices of `view` exist, no number changes, because they hold the table's lock.
    pub(crate) fn open(&self, sized: &TableState, numbers: u64) -> Result<MutexGuard<'_, ArrayMemory>> {
        let mut memory = self.lock();
        // The caller has the table's lock, so no change is added now.
        let mut renumbering = locked(&self.renumbering);
        self.take_back(&mut memory, renumbering.kept)?;
        renumbering.kept = u64::MAX;
        if let Some(from) = &renumbering.from {
            let left = self.renumber(&mut memory, from)?;
            // Recorded now, so that values are not moved again after an error below.
            *renumbering = Renumbering { kept: left, from: None };
            self.take_back(&mut memory, left)?;
            renumbering.kept = u64::MAX;
        }
        memory.values.make(Self::bytes_of(numbers), Self::bytes_of(self.table.references_of(sized)))?;
        if memory.filled < numbers && !self.begins_with_zeros() {
            let filled = memory.filled;
            memory.values.fill(Self::bytes_of(filled)..Self::bytes_of(numbers), bytemuck::bytes_of(&self.initial))?;
            memory.filled = numbers;
        }
        Ok(memory)
    }

    fn begins_with_zeros(&self) -> bool {
        bytemuck::bytes_of(&self.initial).iter().all(|byte| *byte == 0)
    }

    /// Sets the values from number `kept` on to the initial one.
    fn take_back(&self, memory: &mut ArrayMemory, kept: u64) -> Result<()> {
        if kept < memory.used {
            let initial = if self.begins_with_zeros() { &[0] } else { bytemuck::bytes_of(&self.initial) };
            memory.values.fill(Self::bytes_of(kept)..Self::bytes_of(memory.used), initial)?;
            memory.used = kept;
        }
        Ok(())
    }

    /// Moves the value with number `from[i]` to number i. Returns the number from which on values must become initial ones.
    fn renumber(&self, memory: &mut ArrayMemory, from: &[u64]) -> Result<u64> {
        let used = memory.used;
        let left = used.min(from.len() as u64);
        // In place, because numbers only decrease.
        let renumbered = |values: &mut [V]| {
            for (to, from) in from[..left as usize].iter().enumerate() {
                values[to] = if *from < used { values[*from as usize] } else { self.initial };
            }
        };
        match memory.values.host_bytes_mut(Self::bytes_of(used)) {
            Some(bytes) => renumbered(bytemuck::cast_slice_mut(bytes)),
            None => {
                let mut values = read(&memory.values, used)?;
                renumbered(&mut values);
                memory.values.write(bytemuck::cast_slice(&values[..left as usize]))?;
            }
        }
        Ok(left)
    }

    pub(crate) fn get(&self, references: &[Reference]) -> Result<Vec<V>> {
        let _call = self.table.calls.overlap();
        let sized = self.table.sized("Values::get_many")?;
        let numbers = sized.numbers_of(references)?;
        let memory = self.open(&sized, numbers)?;
        // SAFETY: writers borrow the array exclusively, and this slice ends with the call.
        match unsafe { memory.values.host_bytes(Self::bytes_of(numbers)) } {
            Some(bytes) => {
                let values: &[V] = bytemuck::cast_slice(bytes);
                let mut found = zeroed(references.len())?;
                found.iter_mut().zip(references).for_each(|(value, of)| *value = values[of.slot() as usize]);
                Ok(found)
            }
            None => gather(&memory.values, &sized, bytemuck::cast_slice(references)),
        }
    }

    /// Calls `change` for each position in `references`, in order, with the position and the value of the reference there.
    /// `reads`: whether `change` reads the value, or its own earlier result.
    pub(crate) fn change(
        &mut self,
        call: &'static str,
        references: &[Reference],
        reads: bool,
        mut change: impl FnMut(usize, &mut V),
    ) -> Result<()> {
        let _call = self.table.calls.overlap();
        let sized = self.table.sized(call)?;
        let numbers = sized.numbers_of(references)?;
        let mut memory = self.open(&sized, numbers)?;
        memory.used = memory.used.max(numbers);
        if let Some(bytes) = memory.values.host_bytes_mut(Self::bytes_of(numbers)) {
            let values: &mut [V] = bytemuck::cast_slice_mut(bytes);
            references.iter().enumerate().for_each(|(at, of)| change(at, &mut values[of.slot() as usize]));
            return Ok(());
        }
        // Copy the value of each distinct reference once: if two lanes write the same value, the last writer is undefined.
        let (distinct, places) = Places::of(references, numbers)?;
        let mut changed = if reads { gather(&memory.values, &sized, &distinct)? } else { zeroed(distinct.len())? };
        for (at, of) in references.iter().enumerate() {
            change(at, &mut changed[places.place(of.slot(), &distinct)]);
        }
        memory.values.scatter(&*sized.store, &distinct, size_of::<V>(), bytemuck::cast_slice(&changed))
    }

    /// Values of all rows before the first hole.
    pub(crate) fn view(&self) -> Result<Viewed<'_, V>> {
        let (sized, rows) = self.table.with_dense_rows("Values::view")?;
        let memory = self.open(&sized, rows)?;
        // SAFETY: writers borrow the array exclusively, and the slice borrows it. Only `open` writes without an exclusive borrow.
        // While the slice holds the table's lock, no number is taken back and none changes, so `open` only fills values from
        // `filled` on. These are behind the slice, because the `open` above has filled all before. The array keeps the memory
        // until it is dropped.
        let bytes: Option<&[u8]> = unsafe { memory.values.host_bytes(Self::bytes_of(rows)) };
        match bytes {
            Some(bytes) => {
                drop(memory);
                Ok(Viewed::InPlace { _sized: sized, values: bytemuck::cast_slice(bytes) })
            }
            None => Ok(Viewed::Copied(read(&memory.values, rows)?)),
        }
    }

    /// Calls `update` with the values of all rows before the first hole.
    pub(crate) fn update<R>(&mut self, update: impl FnOnce(&mut [V]) -> R) -> Result<R> {
        let (sized, rows) = self.table.with_dense_rows("Values::update")?;
        let mut memory = self.open(&sized, rows)?;
        memory.used = memory.used.max(rows);
        if let Some(bytes) = memory.values.host_bytes_mut(Self::bytes_of(rows)) {
            return Ok(update(bytemuck::cast_slice_mut(bytes)));
        }
        let mut copied = read(&memory.values, rows)?;
        let result = update(&mut copied);
        memory.values.write(bytemuck::cast_slice(&copied))?;
        Ok(result)
    }
}

/// Places of values in a copy that has the value of each distinct reference once.
enum Places {
    /// For each number, its place plus one, or zero if no reference has this number.
    ByNumber(Vec<u32>),
    /// The distinct numbers are sorted, so that a binary search finds a place.
    BySearch,
}

impl Places {
    /// Returns the distinct numbers (below `numbers`) of the references, and the place of each reference's number among them. If
    /// the numbers are close together, a place is found by one access to an array, otherwise by a search. (With searches only, a
    /// GPU updated just 1.6 million references a second.)
    fn of(references: &[Reference], numbers: u64) -> Result<(Vec<u64>, Self)> {
        let given = references.len() as u64;
        if numbers > given.saturating_mul(8) || given > u64::from(u32::MAX) {
            let mut distinct: Vec<u64> = references.iter().map(|of| of.slot()).collect();
            distinct.sort_unstable();
            distinct.dedup();
            return Ok((distinct, Self::BySearch));
        }
        let mut places = zeroed::<u32>(numbers as usize)?;
        let mut distinct = Vec::new();
        for of in references {
            let place = &mut places[of.slot() as usize];
            if *place == 0 {
                distinct.push(of.slot());
                *place = distinct.len() as u32;
            }
        }
        Ok((distinct, Self::ByNumber(places)))
    }

    /// Place of a number that is among `distinct`.
    fn place(&self, number: u64, distinct: &[u64]) -> usize {
        match self {
            Self::ByNumber(places) => places[number as usize] as usize - 1,
            Self::BySearch => distinct.binary_search(&number).expect("it is one of them"),
        }
    }
}

/// Copies the values at `references` from a GPU.
fn gather<V: Pod>(values: &ValueMemory, sized: &TableState, references: &[u64]) -> Result<Vec<V>> {
    let mut found = zeroed::<V>(references.len())?;
    values.gather(&*sized.store, references, size_of::<V>(), bytemuck::cast_slice_mut(&mut found))?;
    Ok(found)
}

/// Copies the first `count` values from a GPU.
fn read<V: Pod>(values: &ValueMemory, count: u64) -> Result<Vec<V>> {
    let mut copied = zeroed::<V>(count as usize)?;
    values.read(bytemuck::cast_slice_mut(&mut copied))?;
    Ok(copied)
}

impl TableState {
    /// Returns the highest row number plus one, or an error unless all references are to stored rows.
    fn numbers_of(&self, references: &[Reference]) -> Result<u64> {
        self.check_references(references)?;
        let numbers = references.iter().map(|of| of.slot() + 1).max().unwrap_or(0);
        if numbers > self.store.dense() {
            let invalid = self.store.count_unstored(bytemuck::cast_slice(references))?;
            if invalid > 0 {
                return Err(Error::InvalidReferences { invalid, count: references.len() });
            }
        }
        Ok(numbers)
    }
}
