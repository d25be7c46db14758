//! The kernels of cuda/cpu_tables.cpp, compiled with the library, and the table as they get it.

use super::filter::Filter;
use super::threads::in_pieces;
use crate::Spec;
use crate::layout::view::{BatchView, Geometry, UpsertView, View};
use crate::layout::{Kernel, Kind};
use std::ffi::{CStr, c_char, c_void};
use std::ops::Range;

/// A table of any kind, as the kernels of this process get it. `warpset::View` of cpu_kernels/kernels.hpp.
#[repr(C)]
pub(super) struct CpuView {
    /// View of the table, of its kind.
    table: *const u8,
    kind: Kind,
    /// Pairing of the halves of a tree (tree tables only).
    pairing: u32,
    /// Bits of a slot, in a compact or an indexed table.
    slot_bits: u32,
    slots: SlotsOf,
    /// Words of the filter of a bucket table, if this call uses it; otherwise null.
    filter: *mut u64,
    filter_words: u64,
}

/// Layout of slots for vectors: `warpset::SlotsOf` of cpu_kernels/kernels.hpp.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct SlotsOf {
    /// Words of a slot: more than a vector has if the slot is padded.
    words: u32,
    chunk_bytes: u32,
}

impl SlotsOf {
    fn spec(spec: Spec) -> Self {
        Self { words: spec.slot_words() as u32, chunk_bytes: spec.chunk_bytes() as u32 }
    }
}

// SAFETY: a shared `CpuView` is only passed to kernels. They only read it and the view that it points to. They access the memory
// of the table and the words of the filter atomically wherever several threads may access the same word.
unsafe impl Sync for CpuView {}

impl CpuView {
    /// View of a table with that spec, whose view is `view`. It points to `view`, which must outlive the call that uses it.
    pub(super) fn of(spec: Spec, view: &View) -> Self {
        Self {
            table: view.argument().as_ptr(),
            kind: view.kind,
            pairing: spec.strategy().pairing() as u32,
            slot_bits: spec.slot_bits,
            slots: SlotsOf::spec(spec),
            filter: std::ptr::null_mut(),
            filter_words: 0,
        }
    }

    /// View of the roots of a table of trees, as a table of their own.
    pub(super) fn of_roots(spec: Spec, view: &View) -> Self {
        Self { kind: view.kind.of_roots(), ..Self::of(spec, view) }
    }

    /// As [`of`](Self::of), with the filter that a search uses, if it does.
    pub(super) fn with_filter(spec: Spec, view: &View, filter: Option<&Filter>) -> Self {
        let (filter, filter_words) = filter.map_or((std::ptr::null_mut(), 0), Filter::words);
        Self { filter, filter_words, ..Self::of(spec, view) }
    }
}

/// Vectors that growth leaves to find-or-put: `warpset::LeftVectors` of cpu_kernels/growth.hpp. Either a bit for each slot of the
/// smaller table, or a list of slots.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct LeftVectors {
    /// Null if there is a list.
    pub bits: *mut u64,
    pub slots: *mut u64,
    pub capacity: u64,
    /// May exceed `capacity`. The slots that do not fit are only counted.
    pub count: *mut u64,
}

// SAFETY: kernels change the memory behind the addresses atomically; its owner outlives the threads.
unsafe impl Sync for LeftVectors {}

impl LeftVectors {
    pub(super) fn of_bits(bits: &mut [u64]) -> Self {
        Self { bits: bits.as_mut_ptr(), slots: std::ptr::null_mut(), capacity: 0, count: std::ptr::null_mut() }
    }

    pub(super) fn of_list(slots: &mut [u64], count: &mut u64) -> Self {
        Self { bits: std::ptr::null_mut(), slots: slots.as_mut_ptr(), capacity: slots.len() as u64, count }
    }
}

entries! {
    pub(super) fn warpset_cpu_geometry(
        kind: Kind,
        width: u32,
        slot_words: u32,
        chunk_bytes: u32,
        slot_bits: u32,
        geometry: *mut Geometry,
    );
    fn warpset_cpu_kernel(name: *const c_char) -> *const c_void;
    fn warpset_cpu_launch(kernel: *const c_void, tables: *const CpuView, thread: u64, threads: u64, arguments: *const u64);
    pub(super) fn warpset_cpu_find_or_put(view: *const CpuView, batch: *const BatchView);
    pub(super) fn warpset_cpu_upsert(view: *const CpuView, batch: *const BatchView, upsert: *const UpsertView);
    pub(super) fn warpset_cpu_find(view: *const CpuView, batch: *const BatchView);
    pub(super) fn warpset_cpu_count_parts(from: *const CpuView, to: *const CpuView, count: *mut u64, slices_a_part: *mut u64);
    pub(super) fn warpset_cpu_fill_part(
        from: *const CpuView,
        to: *const CpuView,
        part: u64,
        writes: u32,
        left: *const LeftVectors,
        count: *mut u64,
    );
    pub(super) fn warpset_cpu_export_left(
        from: *const CpuView,
        first: u64,
        last: u64,
        left: *const LeftVectors,
        vectors: *mut u32,
        count: *mut u64,
    );
    pub(super) fn warpset_cpu_count_tree_lists(view: *const CpuView, entries: *mut u64);
    pub(super) fn warpset_cpu_move_trees(
        from: *const CpuView,
        to: *const CpuView,
        lists: *mut u32,
        roots: *mut u32,
        count: *mut u64,
        full: *mut u64,
    );
    #[cfg(test)]
    pub(super) fn warpset_cpu_quotient(
        view: *const CpuView,
        level: u32,
        function: u32,
        key: u64,
        bucket: *mut u32,
        code: *mut u64,
        back: *mut u64,
    );
}

/// Runs all shares of a kernel, on up to `threads` threads.
///
/// # Safety
///
/// These are the tables and the other arguments of the kernel, in its order, with the memory that it requires. Nothing else uses
/// that memory meanwhile, except as the kernel allows. Shares may run at the same time.
pub(super) unsafe fn run(name: &CStr, threads: usize, shares: u64, tables: &[CpuView], arguments: &[u64]) {
    // SAFETY: a text that ends with a zero.
    let kernel = unsafe { warpset_cpu_kernel(name.as_ptr()) };
    assert!(!kernel.is_null(), "{name:?} is a kernel");
    let (kernel, tables) = (kernel as usize, tables.as_ptr() as usize);
    in_pieces(threads, shares, |share| {
        // SAFETY: a kernel, and tables that outlive the threads. The caller guarantees the rest.
        unsafe { warpset_cpu_launch(kernel as *const c_void, tables as *const CpuView, share, shares, arguments.as_ptr()) };
    });
}

/// Copies what the slots of a table hold, in their order, and returns the number.
///
/// # Safety
///
/// These are slots of the table, and there is room for one vector for each.
pub(super) unsafe fn export(table: CpuView, slots: Range<u64>, vectors: *mut u32) -> usize {
    let mut count = 0u64;
    // SAFETY: the arguments of the kernel: no references are asked for. The caller guarantees the rest.
    unsafe { run(Kernel::Export.name(), 1, 1, &[table], &[slots.start, slots.end, vectors as u64, 0, &raw mut count as u64]) };
    assert!(count <= slots.end - slots.start, "a slot holds one vector at most");
    count as usize
}

/// The layout of a spec on this machine.
pub(crate) fn geometry(spec: Spec) -> Geometry {
    let mut geometry = Geometry::default();
    // SAFETY: `geometry` is valid memory for one `Geometry`, whose layout cpu_kernels/kernels.hpp shares (tests/library/abi.rs).
    unsafe {
        let SlotsOf { words, chunk_bytes } = SlotsOf::spec(spec);
        warpset_cpu_geometry(spec.kind, spec.width, words, chunk_bytes, spec.slot_bits, &mut geometry);
    }
    geometry.check_abi(spec);
    geometry
}

/// Bucket and code of a key under a function of a level, and the key that these two are of.
#[cfg(test)]
pub(crate) fn quotient(
    compact: crate::layout::view::CompactView,
    slot_bits: u32,
    level: u32,
    function: u32,
    key: u64,
) -> (u32, u64, u64) {
    let view = View::new(Kind::Root, compact);
    let spec = Spec::compact(20, slot_bits, false, 8).expect("bits that slots have");
    let (mut bucket, mut code, mut back) = (0, 0, 0);
    // SAFETY: the view is of a compact table, whose memory the function does not look at; the results have memory.
    unsafe { warpset_cpu_quotient(&CpuView::of(spec, &view), level, function, key, &mut bucket, &mut code, &mut back) };
    (bucket, code, back)
}

#[cfg(test)]
mod tests {
    use crate::layout::Kind;

    /// The list in C++ is the list in Rust.
    #[test]
    fn kinds_are_those_of_the_kernels() {
        let header = include_str!("../../../cuda/cpu_kernels/kernels.hpp");
        let list = header.split("enum class TableKind : u32 {").nth(1).and_then(|rest| rest.split('}').next()).unwrap();
        let names: Vec<&str> = list.split(',').map(str::trim).collect();
        assert_eq!(names, Kind::ALL.iter().map(|kind| format!("{kind:?}")).collect::<Vec<_>>());
        assert!(Kind::ALL.iter().enumerate().all(|(number, kind)| *kind as usize == number));
    }
}
