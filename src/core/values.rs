//! Values beside the rows of an indexed table: an array by number, on the table's device.
//!
//! A table knows of its arrays only from which number on their values are void: numbers that it takes back (`clear`, `truncate`,
//! holes that are closed) are given again, to vectors whose values begin as zeros. An array looks at that, and at how many
//! numbers there are, when it is next used. So neither a batch nor a growth waits for an array, or fails for want of memory for
//! one.
//!
//! No value ever moves. The only rows that do are those that the batch has put that moves them, before it returns (`Closing`),
//! and it does so only if nobody else can have their references. Each operation here counts as a call that overlaps with it.

use super::lock::Shared;
use super::table::{RawTable, Sized};
#[cfg(feature = "cuda")]
use crate::backend::cuda::CudaValues;
#[cfg(feature = "cpu")]
use crate::backend::values::CpuValues;
use crate::device::Machine;
use crate::host::zeroed;
use crate::{Error, Reference, Result};
use bytemuck::Pod;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// Pages are aligned to this at least.
const MAX_ALIGNMENT: usize = 4096;

/// The arrays of a table, each by the number from which on its values are void.
#[derive(Default)]
pub(crate) struct Arrays(Mutex<Vec<Weak<AtomicU64>>>);

impl Arrays {
    fn add(&self) -> Arc<AtomicU64> {
        let kept = Arc::new(AtomicU64::new(u64::MAX));
        let mut arrays = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        arrays.retain(|array| array.strong_count() > 0);
        arrays.push(Arc::downgrade(&kept));
        kept
    }

    /// Numbers from `rows` on are taken back. The caller has the table exclusively.
    pub(super) fn keep(&self, rows: u64) {
        let arrays = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for kept in arrays.iter().filter_map(Weak::upgrade) {
            // Relaxed: an array looks at it with the table's lock, which the caller has exclusively.
            kept.fetch_min(rows, Ordering::Relaxed);
        }
    }
}

/// An array of values beside the rows of a table, which it keeps.
pub(crate) struct Array<V> {
    table: Arc<RawTable>,
    kept: Arc<AtomicU64>,
    memory: Mutex<Memory>,
    values: PhantomData<V>,
}

struct Memory {
    place: Place,
    /// Values from this number on have not been written.
    used: u64,
}

enum Place {
    #[cfg(feature = "cpu")]
    Cpu(CpuValues),
    #[cfg(feature = "cuda")]
    Cuda(CudaValues),
}

/// Values as a slice: in the array, of a table that stays as it is meanwhile, or copied from a GPU.
pub(crate) enum Viewed<'a, V> {
    #[cfg(feature = "cpu")]
    InPlace { _sized: Shared<'a, Sized>, values: &'a [V] },
    #[cfg(feature = "cuda")]
    Copied(Vec<V>, PhantomData<&'a V>),
}

impl<V> Array<V> {
    /// Bytes of so many values: more than there is memory, if they cannot be counted.
    fn bytes_of(numbers: u64) -> u64 {
        numbers.saturating_mul(size_of::<V>() as u64).min(1 << 62)
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl<V: Pod> Array<V> {
    pub(crate) fn new(table: &Arc<RawTable>) -> Result<Self> {
        const {
            assert!(size_of::<V>() > 0, "a value has at least one byte");
            assert!(align_of::<V>() <= MAX_ALIGNMENT, "a value is aligned to 4096 bytes at most");
        }
        let sized = table.sized("by_reference")?;
        let place = match &table.device.machine {
            #[cfg(feature = "cpu")]
            Machine::Cpu { threads } => Place::Cpu(CpuValues::new(Self::bytes_of(table.references_of(&sized)), *threads)?),
            #[cfg(feature = "cuda")]
            Machine::Cuda(gpu) => Place::Cuda(CudaValues::new(gpu)?),
        };
        // While the table's lock is held: what is taken back later is taken back from this one, too.
        let kept = table.arrays.add();
        drop(sized);
        Ok(Self { table: table.clone(), kept, memory: Mutex::new(Memory { place, used: 0 }), values: PhantomData })
    }

    #[cfg(feature = "cuda")]
    pub(crate) fn table(&self) -> &RawTable {
        &self.table
    }

    /// Numbers that the table has given.
    pub(crate) fn len(&self) -> Result<u64> {
        let sized = self.table.sized("Values::len")?;
        // It counts on when there are no rows left.
        Ok(sized.store.stored()?[1].min(self.table.references_of(&sized)))
    }

    pub(crate) fn bytes(&self) -> u64 {
        match &self.lock().place {
            #[cfg(feature = "cpu")]
            Place::Cpu(values) => values.bytes(),
            #[cfg(feature = "cuda")]
            Place::Cuda(values) => values.bytes(),
        }
    }

    /// The memory, with zeros for what was taken back, and for at least so many values.
    ///
    /// While others have slices of `view`, nothing has been taken back: these hold the table's lock.
    fn open(&self, sized: &Sized, numbers: u64) -> Result<MutexGuard<'_, Memory>> {
        let mut memory = self.lock();
        // Relaxed: the caller has the table's lock, so that nobody changes it now, and what was written with that lock is seen.
        let kept = self.kept.load(Ordering::Relaxed);
        if kept < memory.used {
            let void = Self::bytes_of(kept)..Self::bytes_of(memory.used);
            match &mut memory.place {
                #[cfg(feature = "cpu")]
                Place::Cpu(values) => values.zero(void),
                #[cfg(feature = "cuda")]
                Place::Cuda(values) => values.zero(void)?,
            }
            memory.used = kept;
        }
        self.kept.store(u64::MAX, Ordering::Relaxed);
        let (bytes, most) = (Self::bytes_of(numbers), Self::bytes_of(self.table.references_of(sized)));
        match &mut memory.place {
            #[cfg(feature = "cpu")]
            Place::Cpu(values) => values.make(bytes, most)?,
            #[cfg(feature = "cuda")]
            Place::Cuda(values) => values.make(bytes, most)?,
        }
        Ok(memory)
    }

    pub(crate) fn get(&self, references: &[Reference]) -> Result<Vec<V>> {
        let _call = self.table.calls.overlap();
        let sized = self.table.sized("Values::get_many")?;
        let memory = self.open(&sized, sized.numbers_of(references)?)?;
        match &memory.place {
            #[cfg(feature = "cpu")]
            Place::Cpu(values) => {
                // SAFETY: writers borrow the array exclusively; and this slice ends with this call.
                let values = unsafe { values.slice::<V>(values.bytes() / size_of::<V>() as u64) };
                let mut found = zeroed(references.len())?;
                found.iter_mut().zip(references).for_each(|(value, of)| *value = values[of.slot() as usize]);
                Ok(found)
            }
            #[cfg(feature = "cuda")]
            Place::Cuda(values) => {
                values.gather(sized.store.on_gpu().expect("its values are on a GPU"), bytemuck::cast_slice(references))
            }
        }
    }

    /// Calls `change` for each position of `references`, in order, with the value; `reads` is whether it looks at that, or at
    /// what it has made of it before.
    pub(crate) fn change(
        &mut self,
        call: &'static str,
        references: &[Reference],
        #[cfg_attr(not(feature = "cuda"), allow(unused_variables))] reads: bool,
        mut change: impl FnMut(usize, &mut V),
    ) -> Result<()> {
        let _call = self.table.calls.overlap();
        let sized = self.table.sized(call)?;
        let numbers = sized.numbers_of(references)?;
        let mut memory = self.open(&sized, numbers)?;
        memory.used = memory.used.max(numbers);
        match &mut memory.place {
            #[cfg(feature = "cpu")]
            Place::Cpu(values) => {
                let values = values.slice_mut::<V>(numbers);
                references.iter().enumerate().for_each(|(at, of)| change(at, &mut values[of.slot() as usize]));
                Ok(())
            }
            #[cfg(feature = "cuda")]
            Place::Cuda(values) => {
                let store = sized.store.on_gpu().expect("its values are on a GPU");
                // Each once: of two lanes that write the same value nobody could say which was the last.
                let mut distinct: Vec<u64> = references.iter().map(|of| of.slot()).collect();
                distinct.sort_unstable();
                distinct.dedup();
                let mut changed = if reads { values.gather(store, &distinct)? } else { zeroed(distinct.len())? };
                for (at, of) in references.iter().enumerate() {
                    let place = distinct.binary_search(&of.slot()).expect("it is one of them");
                    change(at, &mut changed[place]);
                }
                values.scatter(store, &distinct, &changed)
            }
        }
    }

    /// The values of all rows before the first hole.
    pub(crate) fn view(&self) -> Result<Viewed<'_, V>> {
        let (sized, rows) = self.table.with_dense_rows("Values::view")?;
        let memory = self.open(&sized, rows)?;
        match &memory.place {
            #[cfg(feature = "cpu")]
            Place::Cpu(values) => {
                // SAFETY: writers borrow the array exclusively, which is borrowed for as long; but for `open`, which writes
                // nothing while the table's lock is held, as it is with the slice. The array has the memory until it is dropped.
                let values = unsafe { values.slice(rows) };
                drop(memory);
                Ok(Viewed::InPlace { _sized: sized, values })
            }
            #[cfg(feature = "cuda")]
            Place::Cuda(values) => Ok(Viewed::Copied(values.read(rows)?, PhantomData)),
        }
    }

    /// Calls `update` with the values of all rows before the first hole.
    pub(crate) fn update<R>(&mut self, update: impl FnOnce(&mut [V]) -> R) -> Result<R> {
        let (sized, rows) = self.table.with_dense_rows("Values::update")?;
        let mut memory = self.open(&sized, rows)?;
        memory.used = memory.used.max(rows);
        match &mut memory.place {
            #[cfg(feature = "cpu")]
            Place::Cpu(values) => Ok(update(values.slice_mut(rows))),
            #[cfg(feature = "cuda")]
            Place::Cuda(values) => {
                let mut copied = values.read(rows)?;
                let result = update(&mut copied);
                values.write(&copied)?;
                Ok(result)
            }
        }
    }

    /// Where the values of all numbers are that the table can give: the table as it is now, an address, and how many.
    #[cfg(feature = "cuda")]
    pub(crate) fn on_gpu(&mut self) -> Result<(Shared<'_, Sized>, u64, u64)> {
        let sized = self.table.sized("Values::device")?;
        let numbers = self.table.references_of(&sized);
        let mut memory = self.open(&sized, numbers)?;
        let address = match &memory.place {
            #[cfg(feature = "cpu")]
            Place::Cpu(_) => unreachable!("the caller has looked"),
            Place::Cuda(values) => values.address(),
        };
        memory.used = memory.used.max(numbers);
        drop(memory);
        Ok((sized, address, numbers))
    }
}

impl Sized {
    /// One more than the highest number; an error unless all are references of stored rows.
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
