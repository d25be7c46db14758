//! Vectors of a `.npy` file.

use super::npy_header::{Header, string};
use super::progress::WorkProgress;
use super::vectors::{allocate, check_width};
use anyhow::{Context, Result, bail, ensure};
use std::io::Read;

/// Words read at a time.
const PIECE: usize = 1 << 18;

/// Reads the vectors of a `.npy` file of `file_bytes` bytes: their words and their width.
pub fn read_vectors(mut reader: impl Read, file_bytes: u64, memory: Option<u64>) -> Result<(Vec<u32>, usize)> {
    let header = Header::read(&mut reader)?;
    let (count, width) = shape(&header)?;
    let found = file_bytes.saturating_sub(header.bytes);
    let needed = count.checked_mul(width as u64 * 4);
    ensure!(
        needed == Some(found),
        "the shape {} needs {} bytes of data, but {found} follow the header",
        header.shape_text(),
        needed.map_or("more than 2^64".into(), |bytes| bytes.to_string()),
    );
    let mut words = allocate(count, width, memory)?;
    read_words(&mut reader, &mut words)?;
    Ok((words, width))
}

fn read_words(reader: &mut impl Read, words: &mut [u32]) -> Result<()> {
    let progress = WorkProgress::new("reading", words.len() as u64);
    let total_bytes = words.len() * 4;
    let mut read_bytes = 0;
    for piece in words.chunks_mut(PIECE) {
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(piece);
        reader.read_exact(bytes).with_context(|| format!("the data cannot be read beyond byte {read_bytes} of {total_bytes}"))?;
        read_bytes += bytes.len();
        if cfg!(target_endian = "big") {
            piece.iter_mut().for_each(|word| *word = u32::from_le(*word));
        }
        progress.advance(piece.len() as u64);
    }
    // Archives compare checksums when they are read to their end.
    reader.read(&mut [0]).context("the data is damaged")?;
    Ok(())
}

/// Number of vectors and words per vector, if the array consists of vectors.
fn shape(header: &Header) -> Result<(u64, usize)> {
    match string(&header.descr) {
        Some("<u4") => {}
        Some(">u4") => bail!("the words are big-endian ('>u4'); little-endian words ('<u4') are needed"),
        _ => bail!("the elements have dtype {}; uint32 ('<u4') is needed", header.descr),
    }
    ensure!(!header.fortran_order, "the array is in Fortran order; C order is needed, one vector after another");
    let &[count, width] = &header.shape[..] else {
        bail!("the shape {} has {} dimensions; 2 are needed, (vectors, words)", header.shape_text(), header.shape.len())
    };
    Ok((count, check_width(width)?))
}
