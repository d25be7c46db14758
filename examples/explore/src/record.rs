//! Writes every vector that is offered to a table to a NumPy file, which the example `replay` reads.

use crate::archive::{UntilError, plain};
use anyhow::{Context, Error, Result};
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::sync::Mutex;
use warpset_support::escaping;
use warpset_support::npy_writer::npy_header;
use warpset_support::output::Output;
use warpset_support::program;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Collects vectors from any thread in a temporary file, because an array starts with its length.
pub struct Recorder {
    width: usize,
    /// Most vectors to write.
    most: u64,
    written: Mutex<Written>,
}

struct Written {
    file: BufWriter<File>,
    vectors: u64,
    /// Number of vectors that exceeded the limit.
    left_out: u64,
    /// The first error, after which nothing is written.
    error: Option<Error>,
}

/// Amount recorded.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    pub vectors: u64,
    pub left_out: u64,
    pub bytes: u64,
}

impl Recorder {
    /// Creates a recorder for vectors of `width` words, with at most `most_bytes` bytes together.
    pub fn new(width: usize, most_bytes: u64) -> Result<Self> {
        let file = tempfile::tempfile().context("no temporary file can be created for the recorded vectors")?;
        let written = Written { file: BufWriter::with_capacity(1 << 20, file), vectors: 0, left_out: 0, error: None };
        Ok(Self { width, most: most_bytes / (width as u64 * 4), written: Mutex::new(written) })
    }

    /// Writes vectors. An error does not end the search, whose counts stay exact: [`finish`](Self::finish) returns it.
    pub fn add(&self, vectors: &[u32]) {
        let mut written = self.written.lock().expect("no thread that writes panics");
        if written.error.is_some() {
            return;
        }
        let offered = (vectors.len() / self.width) as u64;
        let taken = offered.min(self.most - written.vectors);
        written.vectors += taken;
        written.left_out += offered - taken;
        let bytes: Vec<u8> = vectors[..taken as usize * self.width].iter().flat_map(|word| word.to_le_bytes()).collect();
        if let Err(error) = written.file.write_all(&bytes).context("recorded vectors cannot be written to the temporary file") {
            program::print_warning(&escaping::lines(&format!("warning: --record: nothing will be written: {error:#}\n")));
            written.error = Some(error);
        }
    }

    /// Writes an `.npz` file with the array `vectors`: `<u4`, shape (vectors, width), C order.
    pub fn finish(&self, output: Output) -> Result<Recorded> {
        let mut written = self.written.lock().expect("no thread that writes panics");
        let Written { file, vectors, left_out, error } = &mut *written;
        if let Some(error) = error.take() {
            return Err(error.context("--record"));
        }
        let (vectors, left_out) = (*vectors, *left_out);
        output.write(|output| {
            file.flush().context("the temporary file")?;
            let file = file.get_mut();
            file.seek(SeekFrom::Start(0))?;
            let mut out = BufWriter::with_capacity(1 << 20, output);
            let mut archive = ZipWriter::new_stream(UntilError::new(&mut out));
            let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated).large_file(true);
            archive.start_file("vectors.npy", options).map_err(plain)?;
            archive.write_all(&npy_header("<u4", &format!("({vectors}, {})", self.width)))?;
            std::io::copy(file, &mut archive)?;
            archive.finish().map_err(plain)?;
            Ok(out.flush()?)
        })?;
        Ok(Recorded { vectors, left_out, bytes: vectors * self.width as u64 * 4 })
    }
}
