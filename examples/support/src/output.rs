//! Files to be written in the end. They are opened in the beginning: a search of hours is not to fail on the name of a file.

use crate::printing::print_error;
use anyhow::{Context, Error, Result, ensure};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Seek, Write};
use std::path::{Path, PathBuf};

/// Which file something is: its device and number there, which links and other names do not change.
pub type Identity = same_file::Handle;

/// A file that is open to be written, and as it was until then.
pub struct Output {
    option: &'static str,
    path: PathBuf,
    file: File,
    identity: Option<Identity>,
    /// There was no such file before, and nothing was written yet: then there is to be none.
    is_left_over: bool,
}

impl Output {
    /// Opens or makes the file of an option.
    pub fn open(option: &'static str, path: &Path) -> Result<Self> {
        let open = || {
            let mut options = OpenOptions::new();
            let (file, is_new) = match options.write(true).create_new(true).open(path) {
                Ok(file) => (file, true),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    (OpenOptions::new().write(true).create(true).truncate(false).open(path)?, false)
                }
                Err(error) => return Err(error),
            };
            let identity = same_file::Handle::from_file(file.try_clone()?).ok();
            // Devices may be written to by several.
            let identity = if is_device(&file.metadata()?) { None } else { identity };
            Ok(Self { option, path: path.into(), file, identity, is_left_over: is_new })
        };
        open().with_context(|| format!("{option}: {} cannot be written", path.display()))
    }

    /// An error if the report goes there, too.
    pub fn ensure_is_not_standard_output(&self) -> Result<()> {
        let is_same = self.identity.is_some() && self.identity == same_file::Handle::stdout().ok();
        ensure!(!is_same, "{}: {} is standard output, where the report goes", self.option, self.path.display());
        Ok(())
    }

    /// An error if the file is `what`, which was read.
    pub fn ensure_is_not(&self, what: &str, read: Option<&Identity>) -> Result<()> {
        let is_same = read.is_some() && self.identity.as_ref() == read;
        ensure!(!is_same, "{}: {} is {what}, which would be lost", self.option, self.path.display());
        Ok(())
    }

    /// An error if a file that is to be replaced later is this one.
    pub fn ensure_is_not_file(&self, option: &str, path: &Path) -> Result<()> {
        let is_same = same_file::Handle::from_path(path).is_ok_and(|file| self.identity.as_ref() == Some(&file));
        ensure!(!is_same, "{} and {option}: {} and {} are the same file", self.option, self.path.display(), path.display());
        Ok(())
    }

    /// An error if both are one file.
    pub fn ensure_differs_from(&self, other: &Self) -> Result<()> {
        let is_same = self.identity.is_some() && self.identity == other.identity;
        let (path, other_path) = (self.path.display(), other.path.display());
        ensure!(!is_same, "{} and {}: {path} and {other_path} are the same file", self.option, other.option);
        Ok(())
    }

    /// An error if it can be written only from its beginning to its end.
    pub fn ensure_seeks(&mut self) -> Result<()> {
        self.file
            .rewind()
            .with_context(|| format!("{}: {} is no file that can be gone back in", self.option, self.path.display()))
    }

    /// Replaces what is in the file.
    pub fn write(mut self, write: impl FnOnce(&File) -> Result<()>) -> Result<()> {
        self.is_left_over = false;
        let replace = || {
            if self.file.metadata()?.is_file() {
                self.file.set_len(0)?;
            }
            write(&self.file)?;
            self.ensure_is_there()
        };
        replace().with_context(|| format!("{}: {} cannot be written", self.option, self.path.display()))
    }

    /// An error if the file that was written is no longer the one of that name: its folder may have been removed.
    #[cfg(unix)]
    fn ensure_is_there(&self) -> Result<()> {
        use std::os::unix::fs::MetadataExt;
        let written = self.file.metadata()?;
        let is_same = |there: Metadata| (there.dev(), there.ino()) == (written.dev(), written.ino());
        let is_there = !written.is_file() || std::fs::metadata(&self.path).is_ok_and(is_same);
        ensure!(is_there, "it was removed or replaced since it was opened");
        Ok(())
    }

    #[cfg(not(unix))]
    fn ensure_is_there(&self) -> Result<()> {
        ensure!(self.path.exists(), "it was removed since it was opened");
        Ok(())
    }

    /// The same with a text.
    pub fn write_text(self, text: &str) -> Result<()> {
        self.write(|mut file| Ok(file.write_all(text.as_bytes())?))
    }
}

/// Errors of outputs that could not be written in the end. The report is printed nevertheless, with these errors, and the exit
/// code is that of an error.
#[derive(Default)]
pub struct Unwritten(Vec<Error>);

impl Unwritten {
    /// The value, or none if there is an error, which is kept.
    pub fn keep<T>(&mut self, written: Result<T>) -> Option<T> {
        written.map_err(|error| self.0.push(error)).ok()
    }

    /// All errors as one sentence; none if there are none.
    pub fn sentence(&self) -> Option<String> {
        let all: Vec<String> = self.0.iter().map(|error| format!("{error:#}")).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Prints the errors on standard error, each on a line.
    pub fn print(&self) {
        self.0.iter().for_each(|error| print_error(&format!("error: {error:#}\n")));
    }
}

#[cfg(unix)]
fn is_device(metadata: &Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_char_device(&metadata.file_type())
}

#[cfg(not(unix))]
fn is_device(metadata: &Metadata) -> bool {
    !metadata.is_file()
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.is_left_over {
            // Somebody else may have removed it meanwhile.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
