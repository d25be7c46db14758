//! The file of a checkpoint: a header, words with checksums, and a table with checksums of its own. A file is complete or does
//! not exist.
//!
//! | bytes | |
//! |---|---|
//! | 8 | `93 57 50 58 0d 0a 1a 0a` |
//! | 4 | the version of the format |
//! | 4 | bytes of the header |
//! | 4 | CRC-32 of the header |
//! | | the header, a JSON object |
//! | | words of states in blocks of 2^18 words; behind each 4 bytes, the CRC-32 of the header's CRC-32 (4 bytes), the block's number (8) and the block |
//! | | the table, as `Table::save` writes it |
//!
//! Numbers are little-endian.

use anyhow::{Context, Result, bail, ensure};
use flate2::Crc;
use serde_json::Value;
use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::Path;
use warpset_support::replacing::{self, Written};

const MAGIC: [u8; 8] = *b"\x93WPX\r\n\x1a\n";
const VERSION: u32 = 1;
const BLOCK_WORDS: usize = 1 << 18;

/// Maximum size of a header: a state has at most 256 words, and a condition is at most as long as a command line.
const MOST_HEADER_BYTES: u32 = 64 << 20;

/// Writes a file under a temporary name and renames it when all of it is on the disk, as the library saves tables.
///
/// # Errors
///
/// The file cannot be written. An earlier file of that name is unchanged.
pub fn write(path: &Path, fill: impl FnOnce(&mut BufWriter<&File>) -> Result<()>) -> Result<Written> {
    replacing::write(path, |file| {
        let mut file = BufWriter::with_capacity(1 << 20, file);
        fill(&mut file)?;
        Ok(file.flush()?)
    })
}

/// Returns an error if a file cannot be written at `path`, or if a file there is not a checkpoint.
pub fn ensure_can_be_written(path: &Path) -> Result<()> {
    if path.exists() {
        ensure!(path.is_file(), "not a regular file");
        let mut start = Vec::new();
        File::open(path)?.take(8).read_to_end(&mut start)?;
        ensure!(
            start.is_empty() || start == MAGIC,
            "a file of that name exists that is not a checkpoint, and would be overwritten"
        );
    }
    replacing::ensure_is_possible(path)
}

/// States that are read as words, a part at a time.
pub trait States {
    /// Number of words.
    fn count(&self) -> usize;

    /// Calls `take` with all words, in parts.
    fn read(&self, take: &mut dyn FnMut(&[u32]) -> Result<()>) -> Result<()>;
}

impl States for &[u32] {
    fn count(&self) -> usize {
        self.len()
    }

    fn read(&self, take: &mut dyn FnMut(&[u32]) -> Result<()>) -> Result<()> {
        take(self)
    }
}

/// Writes the header, and the words of all `lists`.
pub fn put(to: &mut impl Write, header: &Value, lists: &[&dyn States]) -> Result<()> {
    let header = header.to_string();
    let sum = crc(&[header.as_bytes()]);
    to.write_all(&MAGIC)?;
    for number in [VERSION, header.len() as u32, sum] {
        to.write_all(&number.to_le_bytes())?;
    }
    to.write_all(header.as_bytes())?;
    let mut blocks = Blocks { to, sum, number: 0, block: Vec::new() };
    for list in lists {
        list.read(&mut |words| blocks.add(words))?;
    }
    blocks.write()
}

/// Writer of words, in blocks with checksums.
struct Blocks<'a, W> {
    to: &'a mut W,
    /// Checksum of the header.
    sum: u32,
    /// Number of blocks written.
    number: u64,
    block: Vec<u8>,
}

impl<W: Write> Blocks<'_, W> {
    fn add(&mut self, mut words: &[u32]) -> Result<()> {
        while !words.is_empty() {
            let (now, later) = words.split_at(words.len().min(BLOCK_WORDS - self.block.len() / 4));
            self.block.extend(now.iter().flat_map(|word| word.to_le_bytes()));
            if self.block.len() == 4 * BLOCK_WORDS {
                self.write()?;
            }
            words = later;
        }
        Ok(())
    }

    /// Writes the block, unless it is empty.
    fn write(&mut self) -> Result<()> {
        if !self.block.is_empty() {
            self.to.write_all(&self.block)?;
            self.to.write_all(&sum_of_block(self.sum, self.number, &self.block).to_le_bytes())?;
            self.number += 1;
            self.block.clear();
        }
        Ok(())
    }
}

fn crc(parts: &[&[u8]]) -> u32 {
    let mut crc = Crc::new();
    parts.iter().for_each(|part| crc.update(part));
    crc.sum()
}

fn sum_of_block(header: u32, number: u64, block: &[u8]) -> u32 {
    crc(&[&header.to_le_bytes(), &number.to_le_bytes(), block])
}

/// A file that is being read; its header has been read already.
pub struct Reading {
    pub header: Value,
    file: BufReader<File>,
    sum: u32,
}

impl Reading {
    /// # Errors
    ///
    /// The file cannot be read, is not a checkpoint, has a later version, is cut off or is damaged.
    pub fn open(path: &Path) -> Result<Self> {
        ensure!(!path.is_dir(), "a directory, not a file");
        let mut file = BufReader::with_capacity(1 << 20, File::open(path)?);
        let mut start = [0; 8];
        match file.read_exact(&mut start) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => bail!("not a checkpoint: the file has fewer than 8 bytes"),
            other => other?,
        }
        ensure!(start == MAGIC, "not a checkpoint: the file begins with the bytes {start:02x?}");
        let [version, length, sum] = [number(&mut file)?, number(&mut file)?, number(&mut file)?];
        ensure!(version <= VERSION, "its format has version {version}, but this program reads versions up to {VERSION}");
        ensure!(version > 0 && length <= MOST_HEADER_BYTES, "the file is damaged: a header of {length} bytes, version {version}");
        let mut header = Vec::new();
        let read = file.by_ref().take(length.into()).read_to_end(&mut header)?;
        ensure!(read == length as usize, CUT_OFF);
        ensure!(crc(&[&header]) == sum, "the file is damaged: the checksum of the header is wrong");
        let header = serde_json::from_slice(&header).context("the header is not JSON")?;
        Ok(Self { header, file, sum })
    }

    /// Reads the next `count` words.
    pub fn words(&mut self, count: u64) -> Result<Vec<u32>> {
        let mut words = Vec::new();
        let mut block = Vec::new();
        for number in 0..count.div_ceil(BLOCK_WORDS as u64) {
            let size = (count - number * BLOCK_WORDS as u64).min(BLOCK_WORDS as u64) as usize;
            block.resize(size * 4, 0);
            whole(self.file.read_exact(&mut block))?;
            let sum = self::number(&mut self.file)?;
            ensure!(
                sum == sum_of_block(self.sum, number, &block),
                "the file is damaged: the checksum of block {number} of its states is wrong"
            );
            // Reserve memory only as words arrive, so that a false count in the header takes none.
            words.try_reserve(size).context("no memory for the states of the level")?;
            words.extend(block.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().expect("four bytes"))));
        }
        Ok(words)
    }

    /// The part of the file after the words.
    pub fn rest(&mut self) -> &mut impl Read {
        &mut self.file
    }

    /// Returns an error if more bytes follow.
    pub fn end(mut self) -> Result<()> {
        ensure!(self.file.read(&mut [0])? == 0, "the file is damaged: it has bytes after its end");
        Ok(())
    }
}

const CUT_OFF: &str = "the file is truncated";

fn number(file: &mut impl Read) -> Result<u32> {
    let mut bytes = [0; 4];
    whole(file.read_exact(&mut bytes))?;
    Ok(u32::from_le_bytes(bytes))
}

fn whole(result: std::io::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => bail!(CUT_OFF),
        other => Ok(other?),
    }
}
