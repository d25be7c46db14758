//! Byte streams of saved tables: blocks with checksums, and errors with positions.

use crate::layout::part::BLOCK;
use crate::{Error, FileFault, Result, faults};
use crc32fast::Hasher;
use std::io::{ErrorKind, Read, Write};

/// Bytes of a checksum.
pub(super) const CHECKSUM: u64 = 4;

/// Checksum of a block: covers its bytes, the checksum of its file's header, and its position.
fn checksum(file: u32, part: u32, number: u64, bytes: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(&file.to_le_bytes());
    hasher.update(&part.to_le_bytes());
    hasher.update(&number.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}

/// Size in a file of a part of `bytes` bytes, including checksums.
pub(super) fn stored_bytes(bytes: u64) -> u64 {
    bytes + bytes.div_ceil(BLOCK as u64) * CHECKSUM
}

fn on_purpose() -> std::io::Error {
    std::io::Error::other(faults::ON_PURPOSE)
}

/// Writer of a saved table.
pub(super) struct Sink<W> {
    to: W,
    /// Bytes written so far.
    at: u64,
    /// The header's checksum.
    file: u32,
}

impl<W: Write> Sink<W> {
    pub(super) fn new(to: W) -> Self {
        Self { to, at: 0, file: 0 }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if faults::should_fail() {
            return Err(Error::io("writing a table", self.at, &on_purpose()));
        }
        self.to.write_all(bytes).map_err(|error| Error::io("writing a table", self.at, &error))?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    /// Writes the header, and adds its checksum.
    pub(super) fn header(&mut self, bytes: &[u8]) -> Result<()> {
        self.file = crc32fast::hash(bytes);
        self.write(bytes)?;
        self.write(&self.file.to_le_bytes())
    }

    /// Writes whole blocks of a part (the part's last block may be short), starting at block `first`, and advances `first`.
    pub(super) fn blocks(&mut self, part: u32, first: &mut u64, bytes: &[u8]) -> Result<()> {
        for block in bytes.chunks(BLOCK) {
            self.write(block)?;
            self.write(&checksum(self.file, part, *first, block).to_le_bytes())?;
            *first += 1;
        }
        Ok(())
    }

    /// Flushes the writer.
    pub(super) fn finish(mut self) -> Result<()> {
        self.to.flush().map_err(|error| Error::io("writing a table", self.at, &error))
    }
}

/// Reader of a saved table.
pub(super) struct Source<R> {
    from: R,
    /// Bytes read so far.
    at: u64,
    /// Bytes that the source must have, as far as known yet.
    needed: u64,
    /// The header's checksum.
    file: u32,
}

impl<R: Read> Source<R> {
    /// Creates a source that must have at least `needed` bytes.
    pub(super) fn new(from: R, needed: u64) -> Self {
        Self { from, at: 0, needed, file: 0 }
    }

    /// Sets the number of bytes needed, once it is known.
    pub(super) fn needs(&mut self, needed: u64) {
        self.needed = needed;
    }

    /// Error for damage in the last `bytes` bytes read.
    pub(super) fn damaged(&self, what: String, bytes: u64) -> Error {
        FileFault::Damaged { what, at: self.at - bytes, bytes }.into()
    }

    /// Fills `bytes`, or its beginning if the source ends first. Returns the number of bytes read.
    pub(super) fn read_up_to(&mut self, bytes: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < bytes.len() {
            if faults::should_fail() {
                return Err(Error::io("reading a table", self.at, &on_purpose()));
            }
            match self.from.read(&mut bytes[done..]) {
                Ok(0) => break,
                Ok(count) => {
                    done += count;
                    self.at += count as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("reading a table", self.at, &error)),
            }
        }
        Ok(done)
    }

    pub(super) fn read(&mut self, bytes: &mut [u8]) -> Result<()> {
        if self.read_up_to(bytes)? < bytes.len() {
            return Err(self.truncated());
        }
        Ok(())
    }

    /// Error for a source that ends too early.
    pub(super) fn truncated(&self) -> Error {
        FileFault::Truncated { bytes: self.at, needed: self.needed }.into()
    }

    /// Checks the header's checksum, which comes after its bytes.
    pub(super) fn check_header(&mut self, bytes: &[u8]) -> Result<()> {
        self.file = crc32fast::hash(bytes);
        let mut stored = [0; CHECKSUM as usize];
        self.read(&mut stored)?;
        self.compare(self.file, stored, bytes.len() as u64)
    }

    fn compare(&self, computed: u32, stored: [u8; 4], bytes: u64) -> Result<()> {
        let stored = u32::from_le_bytes(stored);
        if stored == computed {
            return Ok(());
        }
        let what = format!("the checksum is {stored:#010x}, of these bytes it would be {computed:#010x}");
        Err(self.damaged(what, bytes + CHECKSUM))
    }

    /// Reads whole blocks of a part (the part's last block may be short), starting at block `first`, and advances `first`.
    pub(super) fn blocks(&mut self, part: u32, first: &mut u64, bytes: &mut [u8]) -> Result<()> {
        for block in bytes.chunks_mut(BLOCK) {
            self.read(block)?;
            let mut stored = [0; CHECKSUM as usize];
            self.read(&mut stored)?;
            self.compare(checksum(self.file, part, *first, block), stored, block.len() as u64)?;
            *first += 1;
        }
        Ok(())
    }
}
