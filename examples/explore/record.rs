//! Writes every vector that is offered to a table to a NumPy file, which the example `replay` reads.

use anyhow::{Context, Result};
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Mutex;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Collects vectors, from any thread, in a temporary file: how many there are must be known before an array can be written.
pub struct Recorder {
    width: usize,
    written: Mutex<Written>,
}

struct Written {
    file: BufWriter<File>,
    words: u64,
}

impl Recorder {
    pub fn new(width: usize) -> Result<Self> {
        let file = tempfile::tempfile().context("no temporary file can be made for the vectors to record")?;
        Ok(Self { width, written: Mutex::new(Written { file: BufWriter::with_capacity(1 << 20, file), words: 0 }) })
    }

    pub fn add(&self, vectors: &[u32]) -> Result<()> {
        let mut written = self.written.lock().expect("no thread that writes panics");
        written.words += vectors.len() as u64;
        let bytes: Vec<u8> = vectors.iter().flat_map(|word| word.to_le_bytes()).collect();
        written.file.write_all(&bytes).context("recorded vectors cannot be written to the temporary file")
    }

    /// Writes an `.npz` file with the array `vectors`: `<u4`, shape (vectors, width), C order. Returns how many vectors it has.
    pub fn finish(self, path: &Path) -> Result<u64> {
        let Written { file, words } = self.written.into_inner().expect("no thread that writes panics");
        let vectors = words / self.width as u64;
        let write = || -> Result<()> {
            let mut file = file.into_inner().context("the temporary file")?;
            file.seek(SeekFrom::Start(0))?;
            let mut archive = ZipWriter::new(BufWriter::new(File::create(path)?));
            let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated).large_file(true);
            archive.start_file("vectors.npy", options)?;
            archive.write_all(&header(vectors, self.width))?;
            std::io::copy(&mut file, &mut archive)?;
            archive.finish()?.flush()?;
            Ok(())
        };
        write().with_context(|| format!("the vectors cannot be written to {}", path.display()))?;
        Ok(vectors)
    }
}

/// The start of a `.npy` file of version 1.0, padded so that the array begins at a multiple of 64 bytes.
fn header(vectors: u64, width: usize) -> Vec<u8> {
    const FIXED: usize = 10; // the magic, the version, the length of the text
    let text = format!("{{'descr': '<u4', 'fortran_order': False, 'shape': ({vectors}, {width}), }}");
    let padded = (FIXED + text.len() + 1).next_multiple_of(64) - FIXED;
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend((padded as u16).to_le_bytes());
    header.extend(format!("{text:<width$}\n", width = padded - 1).bytes());
    header
}
