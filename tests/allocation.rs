//! Memory with exactly the requested alignment: a program's own allocator may return such memory, while most systems always align
//! to 16 bytes and so hide code that needs more than it requests.
//!
//! Keeps this promise of `README.md`:
//!
//! - No allocation needs a greater alignment than it requests.

#![cfg(feature = "cpu")]

use std::alloc::{GlobalAlloc, Layout, System};
use warpset::{BucketTable, Device, Request};

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

    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        let Some(outer) = outer(layout) else { return };
        // SAFETY: `address` is from `alloc` for this layout: `layout.align()` bytes after the start of an allocation of `outer`.
        unsafe { System.dealloc(address.sub(layout.align()), outer) }
    }
}

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
        table.grow(5000).unwrap();
        assert!(table.contains_many(&vectors).unwrap().iter().all(|contained| *contained), "width {width}");
        assert_eq!((table.iter().count(), table.stats().unwrap().stored), (1000, 1000), "width {width}");
    }
}
