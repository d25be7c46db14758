//! Copies in the host's memory by several threads at once, to and from the buffers of a batch.

use crate::host::Workers;
use bytemuck::{AnyBitPattern, NoUninit};
use std::marker::PhantomData;

/// Makes all copies, with the threads of `workers`. No copy writes to memory that another one reads or writes.
pub(super) fn copy_all(workers: &Workers, copies: &[HostCopy<'_>]) {
    // For each piece: its copy, and the position of its first byte there.
    let pieces: Vec<(&HostCopy<'_>, usize)> = copies
        .iter()
        .flat_map(|copy| (0..copy.from.len()).step_by(Workers::PIECE_BYTES).map(move |first| (copy, first)))
        .collect();
    workers.run(pieces.len(), |number| {
        let (copy, first) = pieces[number];
        let from = &copy.from[first..copy.from.len().min(first + Workers::PIECE_BYTES)];
        // SAFETY: `to` is exclusively borrowed, and has as many bytes as `from`. The pieces are disjoint.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), copy.to.add(first), from.len()) };
    });
}

/// Bytes to copy, and memory of the same size that they are copied to.
pub(super) struct HostCopy<'a> {
    from: &'a [u8],
    to: *mut u8,
    target: PhantomData<&'a mut [u8]>,
}

// SAFETY: a shared and an exclusive borrow of bytes.
unsafe impl Sync for HostCopy<'_> {}

impl<'a> HostCopy<'a> {
    /// A copy of `from` to `to`.
    ///
    /// # Panics
    ///
    /// If the sizes differ.
    pub(super) fn new<T: NoUninit, U: AnyBitPattern + NoUninit>(from: &'a [T], to: &'a mut [U]) -> Self {
        let (from, to): (&[u8], &mut [u8]) = (bytemuck::cast_slice(from), bytemuck::cast_slice_mut(to));
        assert_eq!(from.len(), to.len(), "a copy is to memory of the same size");
        Self { from, to: to.as_mut_ptr(), target: PhantomData }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_whole() {
        let (workers, count) = (Workers::new(2), if cfg!(miri) { 20_011 } else { 100_003 });
        let (from, more): (Vec<u64>, Vec<u8>) = ((0..count).collect(), (0..200).collect());
        let (mut to, mut other, mut none) = (vec![0u64; from.len()], vec![0u8; 200], [0u8; 0]);
        copy_all(
            &workers,
            &[HostCopy::new(&from, &mut to), HostCopy::new(&more, &mut other), HostCopy::new::<u8, u8>(&[], &mut none)],
        );
        assert!(from == to && more == other);
    }
}
