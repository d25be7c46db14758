//! Reads the model from a file, a pipe or standard input, and refuses inputs longer than any model.

use crate::ir::Source;
use anyhow::{Context, Result, bail, ensure};
use indicatif::{HumanBytes, HumanCount};
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use warpset_support::output::Identity;

/// Length limit of a model in bytes. The longest model of BEEM has some hundred kilobytes; 16 MiB are read in seconds and take
/// about a gigabyte of memory.
pub const MAX_BYTES: u64 = 16 << 20;

/// A file that is open for reading.
pub struct Input {
    /// Name for messages.
    pub name: String,
    /// Path of the file; empty for standard input.
    pub path: PathBuf,
    /// Length in bytes, if it is a regular file.
    pub bytes: Option<u64>,
    pub reader: Box<dyn Read>,
    /// Identity of the file, independent of its name; for standard input, the identity of what it is connected to.
    pub identity: Option<Identity>,
}

/// Reads a text file other than the model.
pub fn read_text(path: &Path) -> Result<Source> {
    let (name, bytes) = open(path)?.text()?;
    Ok(Source::of_bytes(name, &bytes))
}

/// Opens the model; `-` is standard input.
pub fn open(path: &Path) -> Result<Input> {
    if path == Path::new("-") {
        let identity = same_file::Handle::stdin().ok();
        let reader = Box::new(std::io::stdin().lock());
        return Ok(Input { name: "standard input".into(), path: PathBuf::new(), bytes: None, reader, identity });
    }
    let name = path.display().to_string();
    let open = || {
        // Look at the file before opening it, because opening a device may have effects.
        let metadata = std::fs::metadata(path)?;
        look_at(&metadata)?;
        let file = File::open(path)?;
        let identity = same_file::Handle::from_file(file.try_clone()?).ok();
        Ok::<_, anyhow::Error>((file, metadata.is_file().then_some(metadata.len()), identity))
    };
    let (file, bytes, identity) = open().with_context(|| format!("{name} cannot be read"))?;
    Ok(Input { name, path: path.into(), bytes, reader: Box::new(file), identity })
}

impl Input {
    /// Reads the whole text, with its name. Fails if it is longer than `MAX_BYTES`.
    pub fn text(self) -> Result<(String, Vec<u8>)> {
        self.text_of(MAX_BYTES)
    }

    /// Reads the whole text, with its name. Fails if it is longer than `most` bytes.
    pub fn text_of(self, most: u64) -> Result<(String, Vec<u8>)> {
        let Self { name, bytes, reader, .. } = self;
        let read = || {
            let length = bytes.unwrap_or(0);
            ensure!(length <= most, "the file has {}, but a model has at most {}", amount(length), amount(most));
            read_some(reader, most)
        };
        let bytes = read().with_context(|| format!("{name} cannot be read"))?;
        Ok((name, bytes))
    }
}

/// Refuses files without an end, such as devices, and directories.
fn look_at(metadata: &Metadata) -> Result<()> {
    ensure!(!metadata.is_dir(), "a directory, not a file");
    if metadata.is_file() {
        return Ok(());
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kind = metadata.file_type();
        ensure!(!kind.is_char_device() && !kind.is_block_device(), "a device: a file, a pipe or - (standard input) is needed");
    }
    Ok(())
}

fn read_some(reader: impl Read, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        bail!("the input is longer than {}, the limit for a model", amount(most));
    }
    Ok(bytes)
}

fn amount(bytes: u64) -> String {
    format!("{} ({} bytes)", HumanBytes(bytes), HumanCount(bytes))
}
