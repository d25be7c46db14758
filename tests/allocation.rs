//! Memory with exactly the requested alignment: a program's own allocator may return such memory, while most systems always align
//! to 16 bytes and so hide code that needs more than it requests.
//!
//! Keeps this promise of `README.md`:
//!
//! - No allocation needs a greater alignment than it requests.

#![cfg(feature = "cpu")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use warpset::{BucketTable, CompactTreeTable, Device, Request};

struct ExactlyAligned;

/// The allocation around one of `layout`: twice as aligned, so that its start plus the requested alignment is not.
fn outer(layout: Layout) -> Option<Layout> {
    let align = layout.align().checked_mul(2)?;
    Layout::from_size_align(layout.size().checked_add(layout.align())?, align).ok()
}

// SAFETY: returns parts of `System`'s allocations: `layout.align()` bytes after a start that is aligned to twice that, which
// leaves `layout.size()` bytes, aligned to `layout.align()`.
unsafe impl GlobalAlloc for ExactlyAligned {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(outer) = outer(layout) else { return std::ptr::null_mut() };
        // SAFETY: `outer` is larger than 0, as alignments are.
        let start = unsafe { System.alloc(outer) };
        if start.is_null() {
            return start;
        }
        // SAFETY: within the allocation, see `outer`.
        unsafe { start.add(layout.align()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // Relaxed: a statistic.
        CLEARED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller guarantees the contract.
        let start = unsafe { self.alloc(layout) };
        if !start.is_null() {
            // SAFETY: as many bytes have been allocated.
            unsafe { start.write_bytes(0, layout.size()) };
        }
        start
    }

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        let Some(outer) = outer(layout) else { return };
        // SAFETY: `address` is from `alloc` for this layout: `layout.align()` bytes after the start of an allocation of `outer`.
        unsafe { System.dealloc(address.sub(layout.align()), outer) }
    }
}

/// Bytes that were asked for as zeros.
static CLEARED: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: ExactlyAligned = ExactlyAligned;

#[test]
fn the_allocator_aligns_to_no_more_than_asked() {
    for words in [1usize, 2, 100, 10_000] {
        let (bytes, longs) = (vec![0u8; words], vec![0u64; words]);
        assert_eq!(bytes.as_ptr() as usize % 2, 1);
        assert_eq!(longs.as_ptr() as usize % 16, 8);
    }
}

#[test]
fn tables_need_no_more_alignment_than_they_ask_for() {
    for width in (1..=20).chain([33, 64, 101, 256]) {
        let table = BucketTable::builder(width).capacity(2000).grows(true).build(&Device::cpu_with_threads(4)).unwrap();
        let vectors: Vec<u32> = (0..1000 * width as u32).map(|word| word.wrapping_mul(0x9E37_79B1)).collect();
        let request = Request::new().outcomes(true).references(true).new_references(true);
        let batch = table.find_or_put_many_with(&vectors, request).unwrap();
        assert_eq!(batch.tally.new, 1000, "width {width}");
        let references: Vec<_> = batch.references.iter().map(|reference| reference.expect("it fits")).collect();
        assert!(table.get_many(&references).unwrap() == vectors, "width {width}");
        table.reserve_total(5000).unwrap();
        assert!(table.contains_many(&vectors).unwrap().iter().all(|contained| *contained), "width {width}");
        assert_eq!((table.iter().count(), table.stats().unwrap().stored), (1000, 1000), "width {width}");
    }
}

/// Iteration over few vectors in many slots of a wide table does not clear memory for as many vectors.
#[test]
fn iteration_clears_no_memory_for_vectors_that_are_not_there() {
    const WIDTH: usize = 127;
    let table = CompactTreeTable::builder(WIDTH).capacity(1 << 18).nodes(4000).build(&Device::cpu_with_threads(1)).unwrap();
    let vectors: Vec<u32> = (0..10 * WIDTH as u32).map(|word| word.wrapping_mul(0x9E37_79B1)).collect();
    table.find_or_put_many(&vectors).unwrap().complete(&table).unwrap();
    let before = CLEARED.load(Ordering::Relaxed);
    assert_eq!(table.iter().count(), 10);
    let cleared = CLEARED.load(Ordering::Relaxed) - before;
    // Concurrent tests of this process may clear some memory, too.
    assert!(cleared < 1 << 24, "{cleared} bytes; the slots have {}", (table.slots() as usize * WIDTH * 4));
}
