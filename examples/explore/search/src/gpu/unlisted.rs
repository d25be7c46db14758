//! States of a level without a list of their references, because the GPU has no memory for one. A checkpoint needs only their
//! words, so it can still be written.

use anyhow::Result;
use std::ops::Range;

/// Words of the states of a level, then words of the states found for the next one.
pub(super) enum Unlisted<D> {
    /// In GPU memory: there was no memory for a new list after the table had grown.
    OnGpu(D),
    /// In host memory: there was no memory for a list when the search began.
    Here(Vec<u32>),
}

impl<D> Unlisted<D> {
    /// Returns the words of the states at these places in the order of the search. `first`: place of the first state that is
    /// stored here. `read` copies words from the GPU.
    pub fn words(
        &self,
        places: &Range<u64>,
        first: u64,
        width: usize,
        read: impl FnOnce(&D, Range<usize>) -> Result<Vec<u32>>,
    ) -> Result<Vec<u32>> {
        let at = |place: u64| (place - first) as usize * width;
        let words = at(places.start)..at(places.end);
        match self {
            _ if words.is_empty() => Ok(Vec::new()),
            Self::OnGpu(memory) => read(memory, words),
            Self::Here(all) => Ok(all[words].to_vec()),
        }
    }
}

/// Reads a range in pieces. A piece has `largest` elements; if memory is short, pieces are halved, but not below `smallest`.
/// `None` if there is no memory for the smallest piece, or for all elements read.
pub(super) fn in_pieces<T>(
    range: Range<u64>,
    [largest, smallest]: [u64; 2],
    mut read: impl FnMut(Range<u64>) -> Result<Option<Vec<T>>>,
) -> Result<Option<Vec<T>>> {
    let (mut all, mut first, mut piece) = (Vec::new(), range.start, largest);
    while first < range.end {
        let last = first.saturating_add(piece).min(range.end);
        match read(first..last)? {
            Some(read) if all.try_reserve(read.len()).is_ok() => all.extend(read),
            None if piece > smallest => {
                piece /= 2;
                continue;
            }
            _ => return Ok(None),
        }
        first = last;
    }
    Ok(Some(all))
}

#[cfg(test)]
mod tests {
    //! Keeps this promise of `examples/explore/docs/checkpoints.md`:
    //!
    //! - A GPU without memory for its list of states keeps a checkpoint (tested: its contents; the rest needs such a GPU).

    use super::*;
    use anyhow::bail;

    /// A search without a list can be saved: the checkpoint has its initial state, or the states of the checkpoint that it
    /// resumes.
    #[test]
    fn states_are_known_without_a_list() {
        let words: Vec<u32> = (0..12).collect();
        for (first, here) in [(0, Unlisted::Here(words.clone())), (7, Unlisted::Here(words.clone())), (7, Unlisted::OnGpu(()))] {
            let of = |places: Range<u64>| here.words(&places, first, 3, |(), range| Ok(words[range].to_vec())).unwrap();
            assert_eq!((of(first..first + 1), of(first + 1..first + 4)), (vec![0, 1, 2], (3..12).collect()));
            assert_eq!(of(first + 4..first + 4), Vec::<u32>::new());
        }
        // Words in host memory are not read from the GPU.
        let here: Unlisted<()> = Unlisted::Here(vec![5]);
        assert_eq!(here.words(&(0..1), 0, 1, |(), _| bail!("the GPU is asked")).unwrap(), [5]);
    }

    #[test]
    fn pieces_get_smaller_where_memory_is_short() {
        for (room, expected) in [(1 << 20, Some(1)), (100, Some(11)), (7, Some(143)), (4, Some(250)), (3, None), (0, None)] {
            let mut reads = 0;
            let read = |piece: Range<u64>| {
                let fits = piece.end - piece.start <= room;
                reads += u32::from(fits);
                Ok(fits.then(|| piece.collect::<Vec<u64>>()))
            };
            let all = in_pieces(10..1010, [1 << 12, 4], read).unwrap();
            assert_eq!(all, expected.map(|_| (10..1010).collect()), "{room}");
            if let Some(expected) = expected {
                assert!(reads <= 2 * expected, "{room}: {reads} reads");
            }
        }
        assert_eq!(in_pieces(3..3, [8, 4], |_| Ok(None::<Vec<u32>>)).unwrap(), Some(vec![]));
        assert!(in_pieces::<u32>(0..1, [8, 4], |_| bail!("lost")).is_err());
    }
}
