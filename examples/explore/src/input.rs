//! Reads the model: from a file, a pipe or standard input, and never more of it than a model has.

use crate::ir::Source;
use crate::output::Identity;
use anyhow::{Context, Result, bail, ensure};
use indicatif::{HumanBytes, HumanCount};
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::Path;

/// Longest model: the longest of BEEM has some hundred kilobytes. So much is read in seconds, and in about a gigabyte.
pub const MAX_BYTES: u64 = 16 << 20;

/// A file that was read.
pub struct Input {
    /// For messages.
    pub name: String,
    pub bytes: Vec<u8>,
    /// Which file it is, whatever its name; of standard input, what it is.
    pub identity: Option<Identity>,
}

/// Reads a text that is not the model.
pub fn read_text(path: &Path) -> Result<Source> {
    let Input { name, bytes, .. } = read(path)?;
    Ok(Source::of_bytes(name, &bytes))
}

/// Reads the model; `-` is standard input.
pub fn read(path: &Path) -> Result<Input> {
    if path == Path::new("-") {
        let identity = same_file::Handle::stdin().ok();
        let bytes = read_some(std::io::stdin().lock()).context("standard input cannot be read")?;
        return Ok(Input { name: "standard input".into(), bytes, identity });
    }
    let name = path.display().to_string();
    let open = || {
        // Before it is opened: opening a device may do something.
        look_at(&std::fs::metadata(path)?)?;
        let file = File::open(path)?;
        let identity = same_file::Handle::from_file(file.try_clone()?).ok();
        Ok::<_, anyhow::Error>((read_some(file)?, identity))
    };
    let (bytes, identity) = open().with_context(|| format!("{name} cannot be read"))?;
    Ok(Input { name, bytes, identity })
}

/// Refuses what has no end, or too much.
fn look_at(metadata: &Metadata) -> Result<()> {
    ensure!(!metadata.is_dir(), "it is a directory");
    if metadata.is_file() {
        ensure!(metadata.len() <= MAX_BYTES, "it has {}, and a model at most {}", amount(metadata.len()), amount(MAX_BYTES));
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
