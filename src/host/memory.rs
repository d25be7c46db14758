//! Memory of this process whose allocation may fail.

use crate::{Error, Result};
use bytemuck::Zeroable;

/// Allocates `count` zeroed elements.
pub(crate) fn zeroed<T: Zeroable>(count: usize) -> Result<Vec<T>> {
    let bytes = count as u64 * size_of::<T>() as u64;
    let refused = |reason: &str| Error::no_host_memory(bytes, reason);
    if crate::faults::should_fail() {
        return Err(refused(crate::faults::ON_PURPOSE));
    }
    let mut memory = bytemuck::allocation::try_zeroed_vec(count).map_err(|()| refused("no memory for results"))?;
    advise_huge_pages(&mut memory);
    Ok(memory)
}

/// Reserves memory for `count` elements; the vector is empty. Pages that are not written take no time.
#[allow(dead_code, reason = "exports of the host write to it")]
pub(crate) fn room<T>(count: usize) -> Result<Vec<T>> {
    let bytes = count as u64 * size_of::<T>() as u64;
    if crate::faults::should_fail() {
        return Err(Error::no_host_memory(bytes, crate::faults::ON_PURPOSE));
    }
    let mut memory = Vec::new();
    let refused = |_| Error::no_host_memory(bytes, "no memory for results");
    memory.try_reserve_exact(count).map_err(refused)?;
    Ok(memory)
}

/// Requests huge pages for the part of the memory in which whole ones fit. New memory has no pages yet: page faults add them when
/// the memory is written. With pages of 4 KiB there are 512 times as many faults. H200, `cargo bench --bench host`, 2 words from
/// pinned memory, outcomes to a new vector, segments of 8 MiB: 4.4 G/s without huge pages, 4.7 with them.
#[cfg(target_os = "linux")]
fn advise_huge_pages<T>(memory: &mut Vec<T>) {
    const HUGE_PAGE: usize = 2 << 20;
    let start = memory.as_mut_ptr().cast::<u8>();
    let before = start.align_offset(HUGE_PAGE);
    let whole = (memory.len() * size_of::<T>()).saturating_sub(before) / HUGE_PAGE * HUGE_PAGE;
    if whole > 0 && !cfg!(miri) {
        // SAFETY: whole pages within the vector's memory, which is exclusively borrowed. The advice changes nothing that can be
        // read: without huge pages memory is provided more slowly.
        unsafe { libc::madvise(start.wrapping_add(before).cast(), whole, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn advise_huge_pages<T>(_: &mut Vec<T>) {}

/// Fills `len` bytes from `start` on with copies of `value`. Makes no reference to these bytes, so slices of other bytes of the
/// same memory stay valid.
///
/// # Safety
///
/// The bytes are in one allocation that `start` may write, and nothing else reads or writes them meanwhile.
#[allow(dead_code, reason = "values in the memory of this process are filled by it")]
pub(crate) unsafe fn fill_repeatedly(start: *mut u8, len: usize, value: &[u8]) {
    if value.is_empty() || !len.is_multiple_of(value.len()) {
        panic!("{len} bytes are whole values of {} bytes", value.len());
    }
    for at in (0..len).step_by(value.len()) {
        // SAFETY: `at + value.len()` is at most `len`, because `len` is a multiple of `value.len()`. `value` does not overlap the
        // destination, because nothing else reads those bytes. The caller guarantees the rest.
        unsafe { start.add(at).copy_from_nonoverlapping(value.as_ptr(), value.len()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes behind a slice are filled, as in an array of values whose first values are shown. Miri sees whether the slice
    /// stays valid.
    #[test]
    fn bytes_beside_a_slice_are_filled() {
        let mut memory = vec![0u32; 12];
        let start = memory.as_mut_ptr();
        // SAFETY: the first eight values, which nothing writes.
        let shown: &[u32] = unsafe { std::slice::from_raw_parts(start, 8) };
        // SAFETY: the last four values, which nothing else uses.
        unsafe { fill_repeatedly(start.add(8).cast(), 16, &7u32.to_ne_bytes()) };
        assert_eq!(shown, [0; 8]);
        assert_eq!(memory, [0, 0, 0, 0, 0, 0, 0, 0, 7, 7, 7, 7]);
    }

    #[test]
    #[should_panic(expected = "14 bytes are whole values of 4 bytes")]
    fn parts_of_values_are_not_filled() {
        let mut memory = [0u8; 16];
        // SAFETY: the bytes are within `memory`, which nothing else uses.
        unsafe { fill_repeatedly(memory.as_mut_ptr(), 14, &[1, 2, 3, 4]) };
    }
}
