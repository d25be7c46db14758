//! Indexed tables, seen from outside: which rows the index names, and what the host does with the others.

use crate::explorer::Wrong;
use crate::memory::{Memory, Use};
use crate::table::{Config, IndexedView, Kernels, RebuildArgument, Slot, Table, TableView, View, wrong};
use warpset::gpu::RowsView;

/// The rows and the index of a view, seen from outside while no lane runs.
pub trait IndexRows: Sized {
    /// Allocates rows. The index is in the memory of `table`.
    fn allocate(memory: &mut Memory, kernels: &Kernels, table: &TableView, config: Config) -> Self;

    /// The view with `capacity` rows, for which there must be memory.
    fn with_rows(self, capacity: u64) -> Self;

    /// The rows with a new index of `buckets` buckets, which is EMPTY.
    fn with_index(self, memory: &mut Memory, buckets: u64) -> Self;

    /// Number of rows that have been handed out.
    fn given(&self, memory: &Memory) -> u64;

    /// Contents of the cells for spare rows: 0, or one more than the number of a row.
    fn spare_cells(&self, memory: &Memory) -> Vec<u64>;

    /// Sets the cells for spare rows, as the host does; 0 leaves a cell free.
    fn set_spare_cells(&self, memory: &mut Memory, cells: &[u64]);

    /// Takes back the numbers that found no row. The host does so before it adds rows.
    fn take_back_numbers(&self, memory: &mut Memory);

    /// Rows that the index names.
    fn named(&self, memory: &Memory, kernels: &Kernels) -> Vec<u64>;

    /// Clears index and rows, as the kernel does.
    fn clear(&self, memory: &mut Memory);

    /// Contents of the slots of the index, in order.
    fn index(&self, memory: &Memory, kernels: &Kernels) -> Vec<u64>;

    /// The row that a slot names.
    fn row_named_by(&self, slot: u64) -> Option<u64>;

    /// A row, as a slot that is decided if the index names it.
    fn row(&self, memory: &Memory, kernels: &Kernels, row: u64) -> Slot;

    /// Checks the rows that have been handed out: each is named by one slot, is a spare, is lost, or was owned by a lane that was
    /// killed.
    fn check(&self, memory: &Memory, table: &Table, killed: bool) -> Result<(), Wrong>;

    /// Whether lanes asked for more rows than exist.
    fn is_scarce(&self, memory: &Memory) -> bool;
}

impl IndexRows for IndexedView {
    fn allocate(memory: &mut Memory, kernels: &Kernels, table: &TableView, config: Config) -> Self {
        let (capacity, width) = (config.rows, kernels.width());
        let rows = RowsView {
            words: memory.allocate("rows", Use::Shared, capacity as usize * width * 4) as u64,
            given: memory.allocate("given", Use::Shared, 8) as u64,
            spares: memory.allocate("spares", Use::Shared, 8 * (1 + config.spare_cells as usize)) as u64,
            capacity,
            dense: 0,
            spare_cells: config.spare_cells,
            width: kernels.width,
            reuses: 1,
        };
        let &TableView { slots, buckets, slice_buckets, slice_mask, seeds, stored, hash_mask, probe_limit, .. } = table;
        let row_bits = row_bits(capacity);
        Self { slots, buckets, slice_buckets, slice_mask, seeds, stored, hash_mask, row_bits, probe_limit, rows }
    }

    fn with_rows(mut self, capacity: u64) -> Self {
        self.rows.capacity = capacity;
        Self { row_bits: row_bits(capacity), ..self }
    }

    fn with_index(self, memory: &mut Memory, buckets: u64) -> Self {
        let slots = memory.allocate_with("larger slots", Use::Shared, &vec![0u8; buckets as usize * 32]) as u64;
        let (slice_buckets, slice_mask) = (buckets as u32, u32::MAX);
        Self { slots, buckets, slice_buckets, slice_mask, probe_limit: buckets.min(1024) as u32, ..self }
    }

    fn given(&self, memory: &Memory) -> u64 {
        memory.read_at::<u64>(self.rows.given, 1)[0].min(self.rows.capacity)
    }

    fn spare_cells(&self, memory: &Memory) -> Vec<u64> {
        memory.read_at::<u64>(self.rows.spares, 1 + self.rows.spare_cells as usize)[1..].to_vec()
    }

    fn set_spare_cells(&self, memory: &mut Memory, cells: &[u64]) {
        let all = memory.write_at::<u64>(self.rows.spares, 1 + self.rows.spare_cells as usize);
        all.fill(0);
        all[0] = cells.iter().filter(|cell| **cell != 0).count() as u64;
        all[1..=cells.len()].copy_from_slice(cells);
    }

    fn take_back_numbers(&self, memory: &mut Memory) {
        memory.write_at::<u64>(self.rows.given, 1)[0] = self.given(memory);
    }

    fn named(&self, memory: &Memory, kernels: &Kernels) -> Vec<u64> {
        self.index(memory, kernels).iter().filter_map(|slot| self.row_named_by(*slot)).collect()
    }

    fn clear(&self, memory: &mut Memory) {
        memory.write_at::<u8>(self.slots, self.buckets as usize * 32).fill(0);
        memory.write_at::<u64>(self.rows.given, 1)[0] = 0;
        memory.write_at::<u64>(self.rows.spares, 1 + self.rows.spare_cells as usize).fill(0);
    }

    fn index(&self, memory: &Memory, kernels: &Kernels) -> Vec<u64> {
        let bytes = memory.read_at::<u8>(self.slots, self.buckets as usize * 32);
        let slot = |bytes: &[u8]| bytes.iter().rev().fold(0, |slot, byte| slot << 8 | u64::from(*byte));
        bytes.chunks(kernels.slot_bits as usize / 8).map(slot).collect()
    }

    fn row_named_by(&self, slot: u64) -> Option<u64> {
        (slot & ((1 << self.row_bits) - 1)).checked_sub(1)
    }

    fn row(&self, memory: &Memory, kernels: &Kernels, row: u64) -> Slot {
        let bytes = kernels.slot_bits as usize / 8;
        let at = self.index(memory, kernels).iter().position(|slot| self.row_named_by(*slot) == Some(row));
        let width = kernels.width();
        let words = memory.read_at::<u32>(self.rows.words + 4 * row * width as u64, width).to_vec();
        Slot { decided: vec![at.is_some()], words, ranges: at.iter().map(|at| at * bytes..(at + 1) * bytes).collect() }
    }

    fn check(&self, memory: &Memory, table: &Table, killed: bool) -> Result<(), Wrong> {
        let (given, named) = (self.given(memory), self.named(memory, table.kernels));
        let spare: Vec<u64> = self.spare_cells(memory).iter().filter_map(|cell| cell.checked_sub(1)).collect();
        let mut once = vec![0; self.rows.capacity as usize];
        for row in named.iter().chain(&spare) {
            if *row >= given {
                return Err(wrong("row", format!("row {row} is used, of {given} that were given"), Vec::new()));
            }
            once[*row as usize] += 1;
        }
        if let Some(row) = once.iter().position(|times| *times > 1) {
            let detail = format!("row {row} is named, or a spare, {} times: {named:?}, {spare:?}", once[row]);
            return Err(wrong("row", detail, Vec::new()));
        }
        let counted = memory.read_at::<u64>(self.rows.spares, 1)[0];
        if !killed && counted != spare.len() as u64 {
            return Err(wrong("row", format!("{counted} spares are counted, there are {spare:?}"), Vec::new()));
        }
        // A lane that gives back a row tries all cells.
        if self.rows.spare_cells >= 8 && !killed && given <= 8 && (named.len() + spare.len()) as u64 != given {
            let detail = format!("{} rows are named, {} are spare, of {given} that were given", named.len(), spare.len());
            return Err(wrong("row", detail, Vec::new()));
        }
        Ok(())
    }

    fn is_scarce(&self, memory: &Memory) -> bool {
        memory.read_at::<u64>(self.rows.given, 1)[0] > self.rows.capacity
    }
}

/// Makes a table of the same rows and additional ones, with an index of `buckets` buckets for slots of these `kernels`; and the
/// argument of the kernel that makes the index of the allocated rows.
pub fn larger(
    memory: &mut Memory,
    table: &Table,
    kernels: &'static Kernels,
    buckets: u64,
    rows: u64,
) -> (Table, Box<RebuildArgument>) {
    let old = table.view.indexed;
    let view = View { indexed: old.with_rows(rows).with_index(memory, buckets), ..table.view };
    let larger = Table { kernels, view, slots: rows, room: buckets * kernels.slots_per_bucket(), ..*table };
    let rebuild = RebuildArgument {
        view: table.view,
        larger: view,
        larger_slot_bits: kernels.slot_bits,
        last: old.given(memory),
        counts: memory.allocate_with("rebuilt", Use::Shared, &[0u64; 5]).cast(),
    };
    (larger, Box::new(rebuild))
}

/// Fewest bits that hold the numbers of this many rows, so that tags are long in tables of 4-byte slots, too.
fn row_bits(rows: u64) -> u32 {
    u64::BITS - (rows + 1).leading_zeros()
}
