//! Files of tables with one field or byte changed, and corrected checksums.
//!
//! `src/docs/files.md` describes the format. Every part of the files here has less than a mebibyte, so it is one block.

use std::ops::Range;

/// Offset of a file's fields, and offsets of three of its 8-byte numbers.
pub const FIELDS: usize = 16;
const SPARES: usize = FIELDS + 128;
const SLOT_BYTES: usize = FIELDS + 184;

/// Positions of the header and of the slots, nodes, rows and spare rows of a file, without their checksums.
pub fn parts(bytes: &[u8]) -> Vec<Range<usize>> {
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let header = u32::from_le_bytes(bytes[12..16].try_into().unwrap()) as usize;
    let lengths = [number(SLOT_BYTES), number(SLOT_BYTES + 8), number(SLOT_BYTES + 16), 8 * number(SPARES)];
    let parts = ranges(header - 4, &lengths);
    assert_eq!(parts.last().map(|last| last.end + if last.is_empty() { 0 } else { 4 }), Some(bytes.len()));
    parts
}

/// Positions of a header and of parts of these lengths, each with its checksum behind it.
fn ranges(header: usize, lengths: &[usize]) -> Vec<Range<usize>> {
    let mut parts: Vec<_> = std::iter::once(0..header).collect();
    let mut at = header + 4;
    for bytes in lengths {
        assert!(*bytes < 1 << 20, "a part of {bytes} bytes");
        parts.push(at..at + bytes);
        at += if *bytes > 0 { bytes + 4 } else { 0 };
    }
    parts
}

/// Corrects all checksums.
pub fn sign(bytes: &mut [u8], parts: &[Range<usize>]) {
    let header = crc32fast::hash(&bytes[parts[0].clone()]).to_le_bytes();
    bytes[parts[0].end..][..4].copy_from_slice(&header);
    for (number, part) in parts[1..].iter().enumerate().filter(|(_, part)| !part.is_empty()) {
        let signed = [&header[..], &(number as u32).to_le_bytes(), &0u64.to_le_bytes(), &bytes[part.clone()]].concat();
        let sum = crc32fast::hash(&signed).to_le_bytes();
        bytes[part.end..][..4].copy_from_slice(&sum);
    }
}

/// A file in pieces that may be changed in content and length.
#[derive(Clone)]
pub struct TableFile {
    pub header: Vec<u8>,
    /// Slots, nodes, rows and spare rows.
    pub parts: Vec<Vec<u8>>,
}

impl TableFile {
    pub fn of(bytes: &[u8]) -> Self {
        let mut pieces = parts(bytes).into_iter().map(|part| bytes[part].to_vec());
        Self { header: pieces.next().expect("a header"), parts: pieces.collect() }
    }

    /// The file with correct checksums. Lengths in the header stay as they are.
    pub fn signed(&self) -> Vec<u8> {
        let lengths: Vec<usize> = self.parts.iter().map(Vec::len).collect();
        let parts = ranges(self.header.len(), &lengths);
        let last = parts.last().expect("a header");
        let mut bytes = vec![0; last.end + if last.is_empty() { 0 } else { 4 }];
        for (piece, part) in [&self.header].into_iter().chain(&self.parts).zip(&parts) {
            bytes[part.clone()].copy_from_slice(piece);
        }
        sign(&mut bytes, &parts);
        bytes
    }

    /// Sets the lengths in the header to those of the parts.
    pub fn repair_lengths(&mut self) {
        for (part, at) in self.parts.iter().zip([SLOT_BYTES, SLOT_BYTES + 8, SLOT_BYTES + 16, SPARES]) {
            let length = if at == SPARES { part.len() / 8 } else { part.len() };
            self.header[at..at + 8].copy_from_slice(&(length as u64).to_le_bytes());
        }
    }
}
