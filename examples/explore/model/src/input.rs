//! Reads the model: from a file, a pipe or standard input, and never more of it than a model has.

use crate::ir::Source;
use anyhow::{Context, Result, bail, ensure};
use indicatif::{HumanBytes, HumanCount};
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use warpset_support::output::Identity;

/// Longest model: the longest of BEEM has some hundred kilobytes. So much is read in seconds, and in about a gigabyte.
pub const MAX_BYTES: u64 = 16 << 20;

/// A file that is open to be read.
pub struct Input {
    /// For messages.
    pub name: String,
    /// Where it is; of standard input, nowhere.
    pub path: PathBuf,
    /// How long it is, if it is a file.
    pub bytes: Option<u64>,
    pub reader: Box<dyn Read>,
    /// Which file it is, whatever its name; of standard input, what it is.
    pub identity: Option<Identity>,
}

/// Reads a text that is not the model.
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
        // Before it is opened: opening a device may do something.
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
    /// All of it, with its name: a text that is no longer than a model.
    pub fn text(self) -> Result<(String, Vec<u8>)> {
        let Self { name, bytes, reader, .. } = self;
        let read = || {
            let length = bytes.unwrap_or(0);
            ensure!(length <= MAX_BYTES, "it has {}, and a model at most {}", amount(length), amount(MAX_BYTES));
            read_some(reader)
        };
        let bytes = read().with_context(|| format!("{name} cannot be read"))?;
        Ok((name, bytes))
    }
}

/// Refuses what has no end.
fn look_at(metadata: &Metadata) -> Result<()> {
    ensure!(!metadata.is_dir(), "it is a directory");
    if metadata.is_file() {
        return Ok(());
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kind = metadata.file_type();
        ensure!(
            !kind.is_char_device() && !kind.is_block_device(),
            "it is a device: a file, a pipe or - (standard input) is needed"
        );
    }
    Ok(())
}

fn read_some(reader: impl Read) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        bail!("it goes on after {}, and a model has at most so much", amount(MAX_BYTES));
    }
    Ok(bytes)
}

fn amount(bytes: u64) -> String {
    format!("{} ({} bytes)", HumanBytes(bytes), HumanCount(bytes))
}
