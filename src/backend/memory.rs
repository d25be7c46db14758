//! Memory of a machine, and the memory of a table.

use super::Machine;
use crate::Result;
use crate::layout::options::{Addresses, Parameters};
use crate::layout::view::{Geometry, View};
use crate::layout::{Kind, Spec, TablePart};
use std::any::Any;
use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a machine's memory. Kernels know them by their address, and only the machine reads and writes them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Region {
    pub address: u64,
    pub bytes: u64,
}

impl Region {
    /// Address of `len` bytes from `offset` on.
    ///
    /// # Panics
    ///
    /// Unless they are within the region.
    pub(crate) fn at(self, offset: u64, len: u64) -> u64 {
        let is_within = offset.checked_add(len).is_some_and(|end| end <= self.bytes);
        assert!(is_within, "{offset} + {len} bytes are within {} bytes", self.bytes);
        self.address + offset
    }
}

/// Memory of a machine: its usable bytes, and their owner.
pub(crate) struct Memory {
    region: Region,
    /// Frees the memory when dropped. The machine that allocated it finds its own type here.
    owner: Box<dyn Any + Send + Sync + UnwindSafe + RefUnwindSafe>,
}

impl Deref for Memory {
    type Target = Region;

    fn deref(&self) -> &Region {
        &self.region
    }
}

impl Memory {
    pub(super) fn new(address: u64, bytes: u64, owner: impl Any + Send + Sync + UnwindSafe + RefUnwindSafe) -> Self {
        Self { region: Region { address, bytes }, owner: Box::new(owner) }
    }

    /// Grows the memory where it is. `grow` grows the owner, and returns the number of usable bytes.
    ///
    /// # Panics
    ///
    /// If the memory is another machine's.
    pub(super) fn grow<T: Any>(&mut self, grow: impl FnOnce(&mut T) -> Result<u64>) -> Result<()> {
        let owner = (&mut *self.owner as &mut dyn Any).downcast_mut().expect("memory stays on its machine");
        self.region.bytes = grow(owner)?;
        Ok(())
    }

    /// Whether the owner is of this type.
    #[cfg(feature = "cuda")]
    pub(super) fn is_owned_by<T: Any>(&self) -> bool {
        (&*self.owner as &dyn Any).is::<T>()
    }

    /// Enlarges the memory, which may get another address. `enlarge` enlarges the owner, and returns its usable bytes. Returns
    /// false, and changes nothing, if the owner is of another type.
    #[cfg(any(feature = "cuda", all(feature = "cpu", target_os = "linux")))]
    pub(super) fn enlarge<T: Any>(&mut self, enlarge: impl FnOnce(&mut T) -> Result<Region>) -> Result<bool> {
        let Some(owner) = (&mut *self.owner as &mut dyn Any).downcast_mut() else { return Ok(false) };
        self.region = enlarge(owner)?;
        Ok(true)
    }
}

impl dyn Machine {
    /// Allocates memory of zeros.
    pub(crate) fn allocate_zeroed(&self, bytes: u64) -> Result<Memory> {
        let memory = self.allocate(bytes)?;
        if !self.provides_on_demand() {
            // SAFETY: new memory, which nothing else uses.
            unsafe { self.fill(*memory, 0..bytes, &[0])? };
        }
        Ok(memory)
    }
}

/// The memory of a table of a fixed size, and the view that kernels have of it.
pub(crate) struct TableMemory {
    pub spec: Spec,
    pub view: View,
    pub slots: Memory,
    pub seeds: Memory,
    pub nodes: Option<Memory>,
    /// Two numbers: of stored vectors; of nodes, or of rows that were given.
    pub stored: Memory,
    /// Indexed tables only.
    pub rows: Option<RowsMemory>,
    /// Cuckoo tables only: keys that an error has left in no slot.
    displaced: Mutex<Option<Displaced>>,
}

/// Keys of a cuckoo table that are in no slot while others are moved, and all memory that putting them back takes.
pub(crate) struct Displaced {
    /// Room for as many keys as the stash has slots. The first `Relocated::left_over` are displaced; those behind them are in
    /// slots again.
    pub keys: Memory,
    /// As much room, for the keys in another order.
    pub reordered: Memory,
    /// A [`Relocated`](crate::layout::view::Relocated).
    pub relocated: Memory,
    /// An outcome for each key, when keys have been put back.
    pub outcomes: Memory,
    /// [`Counts`](crate::layout::view::Counts) of these outcomes.
    pub counts: Memory,
}

/// The rows of an indexed table.
pub(crate) struct RowsMemory {
    words: Mutex<RowWords>,
    /// Address of the rows. It stays the same.
    address: u64,
    /// Number of spare rows, followed by cells for them.
    pub spares: Memory,
}

/// The words of rows, and, on a machine that does not provide memory on demand, how many rows have some.
pub(crate) struct RowWords {
    pub memory: Memory,
    /// Upper bound of the rows that have been given, or will be by enqueued work or reservations.
    pub bound: u64,
    /// Rows among these that are reserved for batches not yet enqueued.
    pub reserved: u64,
}

impl RowsMemory {
    pub(crate) fn words(&self) -> MutexGuard<'_, RowWords> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of cells for spare rows.
    pub(crate) fn spare_cells(&self) -> u64 {
        self.spares.bytes / 8 - 1
    }
}

impl TableMemory {
    /// Memory of unspecified content, except for the seeds.
    pub(super) fn new(machine: &dyn Machine, parameters: &Parameters<'_>) -> Result<Self> {
        let Parameters { options, spec, buckets, .. } = *parameters;
        let geometry = machine.geometry(spec)?;
        let (slot_bytes, node_bytes) = (parameters.slot_bytes(&geometry), parameters.node_bytes());
        let row_bytes = parameters.row_bytes(&geometry);
        machine.check_memory(slot_bytes + node_bytes + row_bytes + options.filter_bytes(spec.slots(&geometry, buckets)))?;
        let slots =
            if spec.kind == Kind::Bucket { machine.allocate_to_grow(slot_bytes)? } else { machine.allocate(slot_bytes)? };
        let seeds = machine.allocate(size_of_val(parameters.vector_seeds()) as u64)?;
        // SAFETY: new memory, which nothing else uses.
        unsafe { machine.write(*seeds, 0, bytemuck::cast_slice(parameters.vector_seeds()))? };
        let nodes = if node_bytes > 0 { Some(machine.allocate(node_bytes)?) } else { None };
        let stored = machine.allocate_zeroed(16)?;
        let rows = if row_bytes > 0 {
            let memory = machine.reserve(row_bytes)?;
            let spares = machine.allocate((u64::from(machine.spare_cells()) + 1) * 8)?;
            let address = memory.address;
            Some(RowsMemory { words: Mutex::new(RowWords { memory, bound: 0, reserved: 0 }), address, spares })
        } else {
            None
        };
        let mut table = Self {
            spec,
            view: parameters.view(&Addresses::default(), &geometry),
            slots,
            seeds,
            nodes,
            stored,
            rows,
            displaced: Mutex::default(),
        };
        table.view = parameters.view(&table.addresses(), &geometry);
        Ok(table)
    }

    /// View of this tree table's root table (tree/table.cuh), which `parameters` describe.
    ///
    /// # Safety
    ///
    /// This table must outlive the result, which uses its memory.
    pub(crate) unsafe fn of_roots(&self, parameters: &Parameters<'_>, geometry: &Geometry) -> Self {
        let lent = |memory: &Memory| Memory::new(memory.address, memory.bytes, ());
        let mut roots = Self {
            spec: parameters.spec,
            view: parameters.view(&Addresses::default(), geometry),
            slots: lent(&self.slots),
            seeds: lent(&self.seeds),
            nodes: None,
            stored: lent(&self.stored),
            rows: None,
            displaced: Mutex::default(),
        };
        roots.view = parameters.view(&roots.addresses(), geometry);
        roots
    }

    /// Addresses of the parts of the table.
    pub(crate) fn addresses(&self) -> Addresses {
        let rows = self.rows.as_ref();
        Addresses {
            slots: self.slots.address,
            seeds: self.seeds.address,
            nodes: self.nodes.as_ref().map_or(0, |nodes| nodes.address),
            stored: self.stored.address,
            rows: self.rows_address(),
            spares: rows.map_or(0, |rows| rows.spares.address),
            spare_cells: rows.map_or(0, |rows| rows.spare_cells() as u32),
        }
    }

    /// The memory of a part; no bytes if the table has no such part.
    pub(crate) fn part(&self, part: TablePart) -> Region {
        match part {
            TablePart::Slots => *self.slots,
            TablePart::Nodes => self.nodes.as_deref().copied().unwrap_or_default(),
            TablePart::Rows => self.rows.as_ref().map_or(Region::default(), |rows| *rows.words().memory),
        }
    }

    /// Address of the rows; 0 in a table without rows.
    pub(crate) fn rows_address(&self) -> u64 {
        self.rows.as_ref().map_or(0, |rows| rows.address)
    }

    /// Number of words that a table is cleared by.
    pub(crate) fn clear_words(&self) -> u64 {
        self.slots.bytes / 4 + self.nodes.as_ref().map_or(0, |nodes| nodes.bytes / 8)
    }

    /// The table as kernels get it.
    pub(crate) fn argument(&self) -> (Spec, &View) {
        (self.spec, &self.view)
    }

    pub(crate) fn displaced(&self) -> MutexGuard<'_, Option<Displaced>> {
        self.displaced.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of rows of an indexed table that are known to be stored, from the first on; 0 in other tables.
    pub(crate) fn dense(&self) -> u64 {
        self.view.rows().map_or(0, |rows| rows.dense)
    }

    /// Notes that rows before this one are stored, which the caller has checked.
    pub(crate) fn set_dense(&mut self, rows: u64) {
        if let Some(view) = self.view.rows_mut() {
            view.dense = rows;
        }
    }
}
