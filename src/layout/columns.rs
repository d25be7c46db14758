//! Columns in device memory, as kernels see them.

/// Largest number of columns that one launch takes.
pub(crate) const MAX_COLUMNS: usize = 256;

/// Some words of each row, and the columns from which their bytes come: `warpset::ColumnsView` of batch/columns.cuh.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct ColumnsView {
    pub fields: [u64; MAX_COLUMNS],
    pub vectors: u64,
    pub count: u64,
    pub first_word: u32,
    pub words: u32,
    pub columns: u32,
    pub starts: [u16; MAX_COLUMNS + 1],
    pub units: [u8; MAX_COLUMNS],
    pub first_columns: [u8; MAX_COLUMNS],
}

const _: () = assert!(size_of::<ColumnsView>() == 3104);

/// A column: the address of its first field, and the bytes of a field, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub address: u64,
    pub bytes: usize,
}

impl ColumnsView {
    /// Returns views that together cover all words of `count` rows at the address `vectors`. One view is enough for up to
    /// [`MAX_COLUMNS`] columns. The fields of a row have at most 1,024 bytes.
    pub(crate) fn of_columns(columns: &[Column], vectors: u64, count: u64) -> Vec<Self> {
        let ends: Vec<usize> =
            columns.iter().scan(0, |end, column| Some(*end + column.bytes).inspect(|new| *end = *new)).collect();
        let words = ends.last().map_or(0, |end| end.div_ceil(4));
        let (mut views, mut first_word) = (Vec::new(), 0);
        while first_word < words {
            let first = ends.partition_point(|end| *end <= first_word * 4);
            // A word has at least one column and at most four, so a view has at least MAX_COLUMNS / 4 words.
            let begins = |column: usize| ends[column] - columns[column].bytes;
            let after = (first..columns.len()).find(|column| column - first == MAX_COLUMNS).map(begins);
            let end_word = after.map_or(words, |byte| byte / 4).min(first_word + MAX_COLUMNS);
            let last = (first..columns.len()).take_while(|column| begins(*column) < end_word * 4).count();
            let mut view = Self {
                fields: [0; MAX_COLUMNS],
                vectors,
                count,
                first_word: first_word as u32,
                words: (end_word - first_word) as u32,
                columns: last as u32,
                starts: [0; MAX_COLUMNS + 1],
                units: [0; MAX_COLUMNS],
                first_columns: [0; MAX_COLUMNS],
            };
            for (at, column) in (first..first + last).enumerate() {
                let Column { address, bytes } = columns[column];
                view.fields[at] = address;
                view.starts[at] = begins(column) as u16;
                view.starts[at + 1] = ends[column] as u16;
                view.units[at] = 1 << (address | bytes as u64 | begins(column) as u64 | 4).trailing_zeros();
            }
            for word in first_word..end_word {
                let column = ends.partition_point(|end| *end <= word * 4);
                view.first_columns[word - first_word] = (column - first) as u8;
            }
            views.push(view);
            first_word = end_word;
        }
        views
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads views byte by byte, as the kernel does, and checks that their words are those of the columns.
    fn check(sizes: &[usize], offset: u64) -> usize {
        let columns: Vec<Column> = sizes
            .iter()
            .scan(0x1000 + offset, |address, bytes| {
                let column = Column { address: *address, bytes: *bytes };
                *address += 0x1000;
                Some(column)
            })
            .collect();
        // For each byte of a row, its address in row 0.
        let bytes: Vec<u64> = columns.iter().flat_map(|column| column.address..column.address + column.bytes as u64).collect();
        let views = ColumnsView::of_columns(&columns, 64, 3);
        let mut next_word = 0;
        for view in &views {
            assert_eq!((view.first_word, view.vectors, view.count), (next_word, 64, 3));
            assert!(view.columns as usize <= MAX_COLUMNS && view.words as usize <= MAX_COLUMNS && view.words > 0);
            next_word += view.words;
            for word in view.first_word..next_word {
                let (mut byte, mut column) = (4 * word as usize, view.first_columns[(word - view.first_word) as usize] as usize);
                while byte < 4 * word as usize + 4 && column < view.columns as usize {
                    let (start, end) = (view.starts[column] as usize, view.starts[column + 1] as usize);
                    let unit = view.units[column] as usize;
                    let address = view.fields[column] + (byte - start) as u64;
                    assert!(start <= byte && byte + unit <= end);
                    assert!(
                        address.is_multiple_of(unit as u64) && (end - start).is_multiple_of(unit) && byte.is_multiple_of(unit)
                    );
                    assert_eq!(address, bytes[byte]);
                    byte += unit;
                    column += usize::from(byte == end);
                }
                assert_eq!(byte, bytes.len().min(4 * word as usize + 4), "word {word} of {sizes:?}");
            }
        }
        assert_eq!(next_word as usize, bytes.len().div_ceil(4));
        views.len()
    }

    #[test]
    fn views_cover_each_byte_of_a_row_once() {
        for offset in 0..4 {
            assert_eq!(check(&[8, 1, 9, 2], offset), 1);
            assert_eq!(check(&[1024], offset), 1);
            assert_eq!(check(&[1; 256], offset), 1);
            assert_eq!(check(&[4; 256], offset), 1);
            // The 257th column of one byte shares a word with none of the first 256.
            assert_eq!(check(&[1; 257], offset), 2);
            assert_eq!(check(&[1; 1024], offset), 4);
            assert_eq!(check(&[2; 512], offset), 2);
            assert_eq!(check(&[&[3][..], &[1; 1021]].concat(), offset), 4);
            assert_eq!(check(&[&[1; 255][..], &[769]].concat(), offset), 1);
            check(&[&[7][..], &[2; 300], &[8; 20]].concat(), offset);
        }
    }
}
