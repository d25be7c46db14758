//! Tables on disk: the format is described in src/docs/files.md.
//!
//! A file holds the memory of the table, unchanged, so it loads at the speed of the disk. Nodes, compact slots, indexes and
//! rows have one layout on every machine. The layout of slots for vectors, and for roots of trees that are not compact, depends
//! on the machine's compare-and-swap. If it differs, loading reads the vectors, or roots, from the slots and puts them again.
//!
//! # What a file can claim
//!
//! Checksums detect damage. They do not detect a forged file, whose author computes them, too. So a value that can only make
//! answers wrong is trusted. A value on which memory safety or the end of a loop depends is checked before it is used.
//! `tests/suite/hostile_files.rs` and `files_that_are_signed_but_wrong` in `tests/suite/saved.rs` load forged files.
//!
//! | field | what relies on it | what checks it |
//! |---|---|---|
//! | magic, version, bytes of the header | the layout of all that follows | `Header::read` |
//! | kind, width | the type of the table | `check_is`, `Spec` |
//! | flags, chosen slot bits | the options of later growth | `Fields::options` |
//! | key bits, slot bits | the layout of compact slots and of the index; a compact root has room for two references | `Header::spec`, `check_parts` |
//! | slot layout | reading vectors from the slots (slots.rs) | `SlotLayout::is_of`; must equal the machine's own unless vectors are put again |
//! | strategy | which kernels are compiled | `Strategy::from_str`: a strategy of that name exists |
//! | pairs of seeds | kernels read one for each word of a vector, and one more | `Header::read`, `check_parts` |
//! | seeds, EMPTY pattern, masks of hashes | nothing but answers: a hash is scaled to the number of buckets, and every search ends after `probe_limit` of them | - |
//! | family, factors, step | nothing but answers | `check_family` compares them, as they are derived from each other |
//! | buckets, buckets of nodes | addresses of slots; a probe sequence visits every bucket if their number is prime, or slices are whole | `check_counts`, `check_parts` |
//! | vectors stored | growth; room for holes | at most the slots, or the rows given |
//! | nodes stored | growth | at most the slots for nodes |
//! | rows given | addresses of rows | at most the rows of an index of that size; 0 in other tables |
//! | rows in order | kernels read these rows without a look at the index | at most the rows given, all of which the file has |
//! | spare rows | each is written by the thread that takes it, while other threads read stored rows | given, not in order, each once, no more than rows that are not stored, and none stored (`Source::spares`, `count_unstored`) |
//! | generation | the tag of references | fits the tag |
//! | bytes of parts | how much is read | equal to the sizes that these numbers of buckets and rows imply |
//! | index slots | rows are read and compared by number | each names a given row, or none (`check_index`); if two name the same row, only answers are wrong |
//! | nodes | searches follow halves of nodes as references | the code that follows them (`is_reference` in tree/nodes.cuh); the width limits the levels of a tree |
//! | the node slot behind the last bucket | its number is the reference of node (0, 0), and no search reaches it | EMPTY (`fill_nodes`) |
//! | slots, roots, codes, words of rows | nothing but answers | - |
//! | slots of vectors, where searches may not find them | statistics walk from a vector's hash to its slot | walks end after `probe_limit` buckets (batch/maintenance.cuh, tree/nodes.cuh) |

mod blocks;
mod file;
mod header;
mod slots;
#[cfg(all(test, feature = "cpu"))]
mod tests;

pub use file::{Named, NewFile};

use crate::backend::Store;
use crate::core::growth::GROW_AT_MOST;
use crate::core::table::{Loaded, RawTable, TableState};
use crate::layout::Kind;
use crate::layout::limits::MAX_CAPACITY;
use crate::layout::options::{Options, Parameters};
use crate::layout::part::{BLOCK, TablePart};
use crate::layout::rows::row_bits;
use crate::layout::size::Size;
use crate::{Batch, Device, Error, FileFault, Reference, Request, Result, Spec};
use blocks::{Sink, Source};
use header::{Fields, Header};
use slots::{SlotLayout, Vectors};
use std::io::{Read, Write};

/// Numbers of the parts of a file, in file order.
const SLOTS: u32 = 0;
const NODES: u32 = 1;
const ROWS: u32 = 2;
const SPARES: u32 = 3;

impl RawTable {
    /// Saves the table. Waits for operations under way, and blocks new ones.
    pub(crate) fn save(&self, to: impl Write) -> Result<()> {
        let mut sized = self.sized_exclusively("save")?;
        sized.store.synchronize()?;
        sized.complete()?;
        // The writer is the caller's code. It may call this table, but must not change it.
        let sized = sized.freeze();
        let header = Header::of(self, &sized)?;
        let Fields { slot_bytes, node_bytes, row_bytes, .. } = header.fields;
        let mut to = Sink::new(to);
        header.write(&mut to)?;
        for (number, part, bytes) in
            [(SLOTS, TablePart::Slots, slot_bytes), (NODES, TablePart::Nodes, node_bytes), (ROWS, TablePart::Rows, row_bytes)]
        {
            let mut block = 0;
            sized.store.read_pieces(part, bytes, &mut |piece| to.blocks(number, &mut block, piece))?;
        }
        let spares = sized.store.row_counts()?.spares;
        to.blocks(SPARES, &mut 0, bytemuck::cast_slice(&spares))?;
        to.finish()
    }

    /// Loads a table of a kind. If `width` is given, the table's vectors must have that many words. If `bytes` is given, the
    /// file must have exactly that length.
    pub(crate) fn load(device: &Device, kind: Kind, width: Option<usize>, from: impl Read, bytes: Option<u64>) -> Result<Self> {
        let mut from = Source::new(from, 16);
        let header = Header::read(&mut from)?;
        header.check_is(kind, width)?;
        let needed = header.file_bytes();
        match bytes {
            Some(bytes) if bytes < needed => return Err(FileFault::Truncated { bytes, needed }.into()),
            Some(bytes) if bytes > needed => {
                let what = format!("{} bytes come after the table's end", bytes - needed);
                return Err(FileFault::Damaged { what, at: needed, bytes: bytes - needed }.into());
            }
            _ => {}
        }
        let damaged = |what: String| from.damaged(format!("no table has {what}"), 0);
        let no_table = || damaged("these widths and bits".into());
        let spec = header.spec(device.chunk_bytes(header.options.claimed_words())).ok_or_else(no_table)?;
        let geometry = device.machine.geometry(spec)?.of_spec(spec);
        let own = SlotLayout::of(spec, &geometry);
        let fields = header.fields;
        let has_slots = own.slots_per_bucket > 0;
        let lies = if has_slots { fields.slot_layout.is_of(spec.hashed_words()) } else { fields.slot_layout == own };
        if !lies {
            return Err(damaged(format!("{:?}", fields.slot_layout)));
        }
        fields.check_parts(spec, &geometry, header.version).map_err(damaged)?;
        let is_probed_otherwise = header.is_probed_otherwise(spec);
        if is_probed_otherwise && spec.is_indexed() {
            return Err(FileFault::Older { version: header.version, oldest: header::VERSION }.into());
        }
        if has_slots && (is_probed_otherwise || own != fields.slot_layout) {
            return Self::load_by_vectors(device, &header, spec, from);
        }
        let Header { options, seeds, .. } = header;
        let Fields { buckets, node_buckets, .. } = fields;
        let parameters = Parameters { options: &options, seeds: &seeds, spec, buckets, node_buckets };
        fields.check_family(&parameters).map_err(damaged)?;
        let mut store = device.machine.new_unfilled_store(&parameters)?;
        from.fill(&mut *store, SLOTS, TablePart::Slots, fields.slot_bytes, |slots, _| match spec.is_indexed() {
            true => check_index(slots, spec, row_bits(spec.rows(&geometry, buckets), fields.slot_bits), fields.given),
            false => Ok(()),
        })?;
        from.fill_nodes(&mut *store, fields.node_bytes)?;
        from.fill(&mut *store, ROWS, TablePart::Rows, fields.row_bytes, |_, _| Ok(()))?;
        let spares = from.spares(&fields)?;
        store.set_counts(&fields.counts(spec), &spares)?;
        if !spares.is_empty() {
            let stored = spares.len() as u64 - store.count_unstored(&spares)?;
            if stored > 0 {
                return Err(from.damaged(format!("{stored} spare rows that are stored"), fields.spares * 8));
            }
        }
        let sized = TableState::of(store, &parameters);
        let mut raw = Self::of_store(device, options, seeds, geometry, sized);
        let now = raw.look().generation;
        raw.loaded = Some(Loaded { saved: fields.generation, now });
        Ok(raw)
    }

    /// Loads a table whose slots have another layout on this machine, or are probed in another order: reads the vectors from
    /// them, and puts them into a new table, which gets more slots if they do not fit.
    fn load_by_vectors(device: &Device, header: &Header, spec: Spec, mut from: Source<impl Read>) -> Result<Self> {
        let Fields { buckets, node_buckets, stored, slot_layout, .. } = header.fields;
        let (options, seeds) = (header.options, header.seeds.clone());
        let words = spec.hashed_words() as usize;
        let empty = seeds.empty;
        // Roots are stored as vectors of two words.
        let kind = if spec.is_tree() { Kind::Bucket } else { options.kind };
        let capacity = (buckets * u64::from(slot_layout.slots_per_bucket)).min(MAX_CAPACITY);
        // Does not grow by itself: a table that could not grow any more is fuller than growth allows (`put_all`).
        let of_slots = Options { kind, width: words, capacity: Some(capacity), grows: false, ..options };
        let mut slots = Self::with_seeds(device, of_slots, seeds.clone())?;
        let mut vectors = Vectors::new(slot_layout, words, buckets, empty);
        let mut found = Vec::new();
        from.pass(SLOTS, header.fields.slot_bytes, |bytes| {
            found.clear();
            vectors.take(bytes, &mut found);
            slots.put_all(&found, stored)
        })?;
        let [put, _] = slots.stored("load")?;
        if put != stored {
            return Err(from.damaged(format!("{put} vectors are in the slots, {stored} should be"), header.fields.slot_bytes));
        }
        if !spec.is_tree() {
            slots.options.grows = options.grows;
            return Ok(slots);
        }
        let roots = slots.look();
        let parameters = Parameters { options: &options, seeds: &seeds, spec, buckets: roots.buckets, node_buckets };
        let mut store = device.machine.new_unfilled_store(&parameters)?;
        let mut at = 0;
        store.fill_pieces(TablePart::Slots, slots.bytes_of(&roots), &mut |piece| {
            roots.store.read_at(TablePart::Slots, at, piece)?;
            at += piece.len() as u64;
            Ok(())
        })?;
        from.fill_nodes(&mut *store, header.fields.node_bytes)?;
        store.set_counts(&header.fields.counts(spec), &[])?;
        let geometry = device.machine.geometry(spec)?;
        let sized = TableState::of(store, &parameters);
        Ok(Self::of_store(device, options, seeds, geometry, sized))
    }

    /// Puts the `stored` vectors of a saved table. Grows if they do not fit: one kind of bucket can be filled further than
    /// another.
    fn put_all(&self, words: &[u32], stored: u64) -> Result<()> {
        loop {
            let Batch { tally, stopped, error, .. } = self.find_or_put(words, Request::new(), None)?;
            let size = self.size();
            if tally.full == 0 {
                // An error may have stopped the batch after its first part.
                return error.filter(|_| stopped).map_or(Ok(()), Err);
            }
            if size.slots > GROW_AT_MOST * stored.max(1) {
                let (rejected, offered, slots) = (tally.full, tally.offered(), size.slots);
                return Err(Error::TableFull { rejected, for_nodes: 0, offered, stored, slots, cause: None });
            }
            self.grow_by_itself("load", size, Size { slots: 2 * size.slots, ..size })?;
        }
    }

    /// Converts references from before the save into references to this loaded table.
    pub(crate) fn loaded_references(&self, saved: &[Reference]) -> Result<Vec<Reference>> {
        let sized = self.sized("loaded_references")?;
        let of_saved = |reference: &&Reference| {
            let number = reference.to_bits() >> Reference::SLOT_BITS;
            self.loaded.is_some_and(|loaded| loaded.saved == number && loaded.now == sized.generation)
        };
        let good = saved.iter().filter(of_saved).count();
        if good < saved.len() {
            return Err(Error::StaleReferences { stale: (saved.len() - good) as u64, count: saved.len() });
        }
        Ok(saved.iter().map(|reference| sized.generation.reference(reference.slot())).collect())
    }
}

/// Returns an error unless each of these index slots names a given row, or none.
fn check_index(slots: &[u8], spec: Spec, row_bits: u32, given: u64) -> Result<(), String> {
    let names_rows = |slot: u64| {
        let row = slot & ((1 << row_bits) - 1);
        // 0 would be the row before the first.
        slot == 0 || (row != 0 && row <= given)
    };
    let are_right = match spec.index_slot_bits() {
        32 => slots.chunks_exact(4).all(|slot| names_rows(u32::from_le_bytes(std::array::from_fn(|at| slot[at])).into())),
        _ => slots.chunks_exact(8).all(|slot| names_rows(u64::from_le_bytes(std::array::from_fn(|at| slot[at])))),
    };
    if are_right { Ok(()) } else { Err(format!("an index names rows that are not among the {given} of the table")) }
}

impl Fields {
    /// Counts of the table: vectors; nodes, or rows given; rows in order.
    fn counts(&self, spec: Spec) -> [u64; 3] {
        let second = if spec.is_indexed() { self.given } else { self.nodes };
        [self.stored, second, self.dense]
    }
}

impl<R: Read> Source<R> {
    /// Reads a part into memory. Calls `check` with each piece and with the number of bytes of the part that follow it.
    fn fill(
        &mut self,
        store: &mut dyn Store,
        number: u32,
        part: TablePart,
        bytes: u64,
        check: impl Fn(&[u8], u64) -> Result<(), String>,
    ) -> Result<()> {
        let (mut block, mut left) = (0, bytes);
        store.fill_pieces(part, bytes, &mut |piece| {
            self.blocks(number, &mut block, piece)?;
            left -= piece.len() as u64;
            check(piece, left).map_err(|what| self.damaged(what, piece.len() as u64))
        })
    }

    /// Reads the nodes of a tree table. The slot behind the last bucket must be EMPTY: its number is the reference of (0, 0).
    fn fill_nodes(&mut self, store: &mut dyn Store, bytes: u64) -> Result<()> {
        self.fill(store, NODES, TablePart::Nodes, bytes, |nodes, left| match nodes.last_chunk() {
            Some(last) if left == 0 && *last != [0; 8] => {
                Err(format!("the node slot behind the last bucket holds {:#018x}, and must be EMPTY", u64::from_le_bytes(*last)))
            }
            _ => Ok(()),
        })
    }

    /// Reads a part, and passes it to `each` block by block.
    fn pass(&mut self, number: u32, bytes: u64, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut memory = crate::host::zeroed::<u8>(bytes.min(BLOCK as u64) as usize)?;
        let (mut left, mut block) = (bytes, 0);
        while left > 0 {
            let piece = &mut memory[..left.min(BLOCK as u64) as usize];
            self.blocks(number, &mut block, piece)?;
            left -= piece.len() as u64;
            each(piece)?;
        }
        Ok(())
    }

    /// The numbers of spare rows.
    fn spares(&mut self, fields: &Fields) -> Result<Vec<u64>> {
        let mut spares = Vec::new();
        self.pass(SPARES, fields.spares * 8, |bytes| {
            spares.extend(bytes.chunks_exact(8).map(|row| u64::from_le_bytes(std::array::from_fn(|at| row[at]))));
            Ok(())
        })?;
        let Fields { given, dense, stored, .. } = *fields;
        let mut sorted = spares.clone();
        sorted.sort_unstable();
        let outside = sorted.iter().find(|row| !(dense..given).contains(row));
        let what = if let Some(row) = outside {
            format!("row {row} is spare, and spare rows are {dense} to {given}, the end not included")
        } else if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            format!("row {} is spare twice", pair[0])
        } else if spares.len() as u64 > given.saturating_sub(stored) {
            format!("{} rows are spare, but {stored} of {given} are stored", spares.len())
        } else {
            return Ok(spares);
        };
        Err(self.damaged(what, fields.spares * 8))
    }
}
