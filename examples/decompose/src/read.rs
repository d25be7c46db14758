//! Reads graphs from files, compressed or not.

use crate::graph::{self, Graph, MOST_STATES};
use crate::{edges, npz, tra};
use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;
use warpset_support::aut_text::{self, Header, Limits, Taker};
use warpset_support::memory::MemoryBudget;
use warpset_support::numbers::counted;
use warpset_support::output::Identity;

/// First bytes of gzip files.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Formats of graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// PRISM's explicit text.
    Tra,
    /// The text of CADP and mCRL2.
    Aut,
    /// Arrays of NumPy, or a sparse matrix of SciPy.
    Npz,
    /// A list of edges.
    Edges,
    /// A matrix in the MatrixMarket format.
    Mtx,
}

impl Format {
    /// Returns the format for the extension of a file's name, before `.gz`.
    fn of(path: &Path) -> Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        match Path::new(name).extension().and_then(|extension| extension.to_str()) {
            Some("tra") => Ok(Self::Tra),
            Some("aut") => Ok(Self::Aut),
            Some("npz") => Ok(Self::Npz),
            Some("edges" | "edgelist" | "el" | "csv" | "tsv" | "txt") => Ok(Self::Edges),
            Some("mtx") => Ok(Self::Mtx),
            _ => bail!("{}: the extension does not tell the format; choose it with --format", path.display()),
        }
    }
}

/// A graph and its source.
pub struct Input {
    pub graph: Graph,
    pub name: String,
    /// Identity of the file; `None` for standard input.
    pub identity: Option<Identity>,
}

/// Reads a graph; `-` is standard input.
///
/// # Errors
///
/// The file has an error: the first one is returned, with the file's name and, for a text, the line. Also if the graph does not
/// fit the memory budget: the error then has the number of bytes needed and the number of bytes available.
pub fn read(path: &Path, format: Option<Format>, budget: MemoryBudget) -> Result<Input> {
    if path == Path::new("-") {
        let name = "standard input".to_string();
        let graph = match format {
            Some(Format::Npz) => {
                bail!("an .npz file cannot come from standard input, because it is not read from beginning to end")
            }
            Some(format) => text(&name, format, unpacked(std::io::stdin().lock())?, budget)?,
            None => bail!("standard input needs --format: tra, aut, edges or mtx"),
        };
        return Ok(Input { graph, name, identity: None });
    }
    let name = path.display().to_string();
    let format = format.map_or_else(|| Format::of(path), Ok)?;
    let open = || {
        // Look at the file before opening it, because opening a device may have effects.
        let metadata = std::fs::metadata(path)?;
        ensure!(!metadata.is_dir(), "a directory, not a file");
        ensure!(
            metadata.is_file() || format != Format::Npz,
            "an .npz file must be a regular file, because it is not read from beginning to end"
        );
        Ok(File::open(path)?)
    };
    let mut file = open().with_context(|| format!("{name} cannot be read"))?;
    let identity = same_file::Handle::from_file(file.try_clone()?).ok();
    let graph = match format {
        Format::Npz => {
            let mut start = Vec::new();
            file.by_ref().take(2).read_to_end(&mut start)?;
            file.rewind()?;
            ensure!(start != GZIP_MAGIC, "{name} is packed by gzip: unpack it first; an .npz file is compressed already");
            npz::read(BufReader::with_capacity(1 << 20, file), budget).context(name.clone())?
        }
        format => text(&name, format, unpacked(file)?, budget)?,
    };
    Ok(Input { graph, name, identity })
}

fn text(name: &str, format: Format, reader: impl Read, budget: MemoryBudget) -> Result<Graph> {
    match format {
        Format::Tra => tra::read(name, reader, budget),
        Format::Edges => edges::read(name, reader, budget),
        Format::Mtx => edges::read_matrix(name, reader, budget),
        _ => aut(name, reader, budget),
    }
}

/// Returns the decompressed text, or the text itself if it is not compressed.
fn unpacked<'r>(mut reader: impl Read + 'r) -> Result<Box<dyn Read + 'r>> {
    let mut start = Vec::new();
    reader.by_ref().take(2).read_to_end(&mut start)?;
    let is_packed = start == GZIP_MAGIC;
    let whole = std::io::Cursor::new(start).chain(reader);
    Ok(if is_packed { Box::new(MultiGzDecoder::new(BufReader::with_capacity(1 << 18, whole))) } else { Box::new(whole) })
}

/// Reads a transition system.
fn aut(name: &str, reader: impl Read, budget: MemoryBudget) -> Result<Graph> {
    let limits = Limits { states: MOST_STATES, transitions: u64::MAX };
    let mut transitions = Transitions { budget, sources: Vec::new(), targets: Vec::new() };
    let Header { states, .. } = aut_text::read(name, reader, limits, &mut transitions)?;
    let Transitions { sources, targets, .. } = transitions;
    Graph::of_transitions(states, &sources, &targets).context(name.to_string())
}

struct Transitions {
    budget: MemoryBudget,
    sources: Vec<u32>,
    targets: Vec<u32>,
}

impl Taker for Transitions {
    fn header(&mut self, Header { states, transitions, .. }: Header) -> Result<()> {
        let bytes = graph::bytes(states, transitions, None).saturating_add(transitions.saturating_mul(8));
        self.budget.ensure(&format!("{} and {}", counted(states, "state"), counted(transitions, "transition")), bytes)
    }

    fn transition(&mut self, source: u64, _: &[u8], target: u64) -> Result<()> {
        self.sources.push(source as u32);
        self.targets.push(target as u32);
        Ok(())
    }
}
