use bytemuck::{AnyBitPattern, NoUninit};
use std::borrow::Cow;

/// Type of the vectors of a [`Table`](crate::Table) in its interface: [`Words`], or any plain data type of 1 to 1024 bytes.
///
/// A key whose size is not a multiple of 4 bytes, such as `[u8; 9]`, is stored with zero bytes behind it, up to whole words. The
/// host copies each batch of such keys to add these bytes, and copies what is read from the table to remove them. In device
/// memory (`find_or_put_device`, `rows_device`) a key must have whole words, which the compiler checks.
///
/// A struct becomes a key by two derives of `bytemuck`. It needs `#[repr(C)]`, and no padding between its fields.
///
/// ```
/// use bytemuck::{Pod, Zeroable}; // cargo add bytemuck --features derive
///
/// #[derive(Clone, Copy, Pod, Zeroable)]
/// #[repr(C)]
/// struct State {
///     position: [u16; 2],
///     fuel: u32,
/// }
/// # let _ = warpset::TypedTable::<State>::builder();
/// ```
///
/// Without a dependency of your own, derive through the `bytemuck` that this crate re-exports:
///
/// ```
/// use warpset::bytemuck::{self, Pod, Zeroable};
///
/// #[derive(Clone, Copy, Pod, Zeroable)]
/// #[bytemuck(crate = "warpset::bytemuck")]
/// #[repr(C)]
/// struct State {
///     position: [u16; 2],
///     fuel: u32,
/// }
/// # let _ = warpset::TypedTable::<State>::builder();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a key: a key of a warpset table is plain data",
    label = "not plain data",
    note = "add `#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]` and `#[repr(C)]` to `{Self}` \
            (`cargo add bytemuck --features derive`)",
    note = "without a `bytemuck` of your own: derive those of `warpset::bytemuck`, \
            with `#[bytemuck(crate = \"warpset::bytemuck\")]`"
)]
pub trait Key: sealed::Sealed + 'static {
    /// Element type of slices of vectors: single words, `width` per vector, or whole keys.
    type Element: NoUninit + AnyBitPattern;

    /// One vector as a value.
    type Owned;

    /// One vector as it is borrowed: a slice of `width` words, or a key.
    type Borrowed: ?Sized;

    /// The elements of one vector.
    #[doc(hidden)]
    fn as_elements(vector: &Self::Borrowed) -> &[Self::Element];

    /// Vector `at` of a slice of vectors of `width` words.
    #[doc(hidden)]
    fn nth(elements: &[Self::Element], at: usize, width: usize) -> &Self::Borrowed;

    /// Number of elements per vector of `width` words.
    #[doc(hidden)]
    fn elements(width: usize) -> usize;

    #[doc(hidden)]
    fn owned(words: &[u32]) -> Self::Owned;

    /// Words per vector, if the type determines them.
    #[doc(hidden)]
    const WIDTH: Option<usize>;

    /// Bytes of a key, if the type determines them.
    #[doc(hidden)]
    const BYTES: Option<usize>;

    /// Whether each element consists of whole words, so that words in memory can be viewed as elements, and elements as words.
    #[doc(hidden)]
    const IS_WHOLE_WORDS: bool;
}

/// Key type of a [`VectorTable`](crate::VectorTable): vectors are given as 32-bit words, `width` words per vector, one vector
/// after another.
#[derive(Clone, Copy, Debug)]
pub enum Words {}

impl Key for Words {
    const WIDTH: Option<usize> = None;
    const BYTES: Option<usize> = None;
    const IS_WHOLE_WORDS: bool = true;

    type Element = u32;
    type Owned = Vec<u32>;
    type Borrowed = [u32];

    fn as_elements(vector: &[u32]) -> &[u32] {
        vector
    }

    fn nth(elements: &[u32], at: usize, width: usize) -> &[u32] {
        &elements[at * width..][..width]
    }

    fn elements(width: usize) -> usize {
        width
    }

    fn owned(words: &[u32]) -> Vec<u32> {
        words.to_vec()
    }
}

// Errors of the compiler name `Key` and show its notes, instead of the traits that this implementation requires.
#[diagnostic::do_not_recommend]
impl<K: NoUninit + AnyBitPattern> Key for K {
    const WIDTH: Option<usize> = {
        assert!(size_of::<K>() > 0, "a key has at least one byte");
        Some(size_of::<K>().div_ceil(4))
    };
    const BYTES: Option<usize> = Some(size_of::<K>());
    const IS_WHOLE_WORDS: bool = is_whole_words::<K>();

    type Element = K;
    type Owned = K;
    type Borrowed = K;

    fn as_elements(key: &K) -> &[K] {
        std::slice::from_ref(key)
    }

    fn nth(elements: &[K], at: usize, _: usize) -> &K {
        &elements[at]
    }

    fn elements(_: usize) -> usize {
        1
    }

    fn owned(words: &[u32]) -> K {
        bytemuck::pod_read_unaligned(&bytemuck::cast_slice(words)[..size_of::<K>()])
    }
}

const fn is_whole_words<E>() -> bool {
    size_of::<E>().is_multiple_of(4)
}

/// Returns the words of the elements: in place if their size and alignment allow it, otherwise as a copy, in which zero bytes
/// fill the last word of each element.
pub(crate) fn words<E: NoUninit>(elements: &[E]) -> Cow<'_, [u32]> {
    if !is_whole_words::<E>() {
        return Cow::Owned(padded(elements));
    }
    match bytemuck::try_cast_slice(elements) {
        Ok(words) => Cow::Borrowed(words),
        Err(_) => Cow::Owned(bytemuck::allocation::pod_collect_to_vec(elements)),
    }
}

fn padded<E: NoUninit>(elements: &[E]) -> Vec<u32> {
    let (size, bytes) = (size_of::<E>(), bytemuck::cast_slice::<E, u8>(elements));
    let mut words = vec![0; elements.len() * size.div_ceil(4)];
    let slots = bytemuck::cast_slice_mut::<u32, u8>(&mut words).chunks_exact_mut(size.next_multiple_of(4));
    slots.zip(bytes.chunks_exact(size)).for_each(|(slot, element)| slot[..size].copy_from_slice(element));
    words
}

/// Returns the elements, without the zero bytes that fill the last word of each.
fn unpadded<E: AnyBitPattern>(words: &[u32]) -> Vec<E> {
    let size = size_of::<E>();
    let slots = bytemuck::cast_slice::<u32, u8>(words).chunks_exact(size.next_multiple_of(4));
    slots.map(|slot| bytemuck::pod_read_unaligned(&slot[..size])).collect()
}

/// Returns the elements that the words represent: in place if their size and alignment allow it, otherwise as a copy.
pub(crate) fn borrowed_elements<E: NoUninit + AnyBitPattern>(words: &[u32]) -> Cow<'_, [E]> {
    match bytemuck::try_cast_slice(words) {
        Ok(elements) if is_whole_words::<E>() => Cow::Borrowed(elements),
        _ => Cow::Owned(unpadded(words)),
    }
}

/// Returns the elements that the words represent: in place if their size and alignment allow it, otherwise as a copy.
pub(crate) fn elements<E: NoUninit + AnyBitPattern>(words: Vec<u32>) -> Vec<E> {
    if !is_whole_words::<E>() {
        return unpadded(&words);
    }
    bytemuck::allocation::try_cast_vec(words).unwrap_or_else(|(_, words)| unpadded(&words))
}

mod sealed {
    use super::*;

    pub trait Sealed {}
    impl Sealed for Words {}
    #[diagnostic::do_not_recommend]
    impl<K: NoUninit + AnyBitPattern> Sealed for K {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Converts to words and back, for any alignment.
    #[test]
    fn keys_are_words_and_words_are_keys() {
        let long = [0x1_0000_0002u64, 0x3_0000_0004];
        assert!(matches!(words(&long), Cow::Borrowed([2, 1, 4, 3])));
        assert_eq!(elements::<u64>(words(&long).into_owned()), long);
        let bytes = [[1u8, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]];
        assert_eq!(*words(&bytes[1..]), [0x100, 0x1_0000]);
        assert_eq!(elements::<[u8; 4]>(words(&bytes).into_owned()), bytes);
        // Three words a key, whose last three bytes are zeros.
        let odd = [[1u8, 2, 3, 4, 5, 6, 7, 8, 9], [9; 9]];
        assert_eq!(*words(&odd), [0x403_0201, 0x807_0605, 9, 0x909_0909, 0x909_0909, 9]);
        assert_eq!(elements::<[u8; 9]>(words(&odd).into_owned()), odd);
        assert_eq!(*borrowed_elements::<[u8; 9]>(&words(&odd)), odd);
        assert_eq!(<[u8; 9] as Key>::owned(&words(&odd)[..3]), odd[0]);
        assert_eq!((<[u8; 9] as Key>::WIDTH, <u8 as Key>::WIDTH, <[u16; 4] as Key>::WIDTH), (Some(3), Some(1), Some(2)));
        assert_eq!(elements::<u16>(words(&[7u16, 8]).into_owned()), [7, 8]);
        let none: [u64; 0] = [];
        assert!(words(&none).is_empty() && elements::<u64>(Vec::new()).is_empty());
        assert_eq!((<u64 as Key>::owned(&[2, 1]), Words::owned(&[2, 1])), (long[0], vec![2, 1]));
    }
}
