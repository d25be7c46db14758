//! Output files. They are opened at the start and written at the end, so that a search of hours does not fail on the name of a
//! file.

use crate::printing::print_error;
use anyhow::{Context, Error, Result, ensure};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Seek, Write};
use std::path::{Path, PathBuf};

/// Identity of a file: its device and number there, which is independent of links and other names.
pub type Identity = same_file::Handle;

/// A file that is open for writing; its contents stay until it is written.
pub struct Output {
    option: &'static str,
    path: PathBuf,
    file: File,
    identity: Option<Identity>,
    /// The program created the file and has not written it yet: dropping removes it.
    is_left_over: bool,
}

impl Output {
    /// Opens or creates the file of an option.
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
            // Several outputs may write to one device.
            let identity = if is_device(&file.metadata()?) { None } else { identity };
            Ok(Self { option, path: path.into(), file, identity, is_left_over: is_new })
        };
        open().with_context(|| format!("{option}: {} cannot be written", path.display()))
    }

    /// Returns an error if the report goes to this file, too.
    pub fn ensure_is_not_standard_output(&self) -> Result<()> {
        let is_same = self.identity.is_some() && self.identity == same_file::Handle::stdout().ok();
        ensure!(!is_same, "{}: {} is standard output, where the report goes", self.option, self.path.display());
        Ok(())
    }

    /// Returns an error if this file is the input `what`.
    pub fn ensure_is_not(&self, what: &str, read: Option<&Identity>) -> Result<()> {
        let is_same = read.is_some() && self.identity.as_ref() == read;
        ensure!(!is_same, "{}: {} is {what}, and would be overwritten", self.option, self.path.display());
        Ok(())
    }

    /// Returns an error if a file that is to replace another later has this path.
    pub fn ensure_is_not_file(&self, option: &str, path: &Path) -> Result<()> {
        let is_same = same_file::Handle::from_path(path).is_ok_and(|file| self.identity.as_ref() == Some(&file));
        ensure!(!is_same, "{} and {option}: {} and {} are the same file", self.option, self.path.display(), path.display());
        Ok(())
    }

    /// Returns an error if both are one file.
    pub fn ensure_differs_from(&self, other: &Self) -> Result<()> {
        let is_same = self.identity.is_some() && self.identity == other.identity;
        let (path, other_path) = (self.path.display(), other.path.display());
        ensure!(!is_same, "{} and {}: {path} and {other_path} are the same file", self.option, other.option);
        Ok(())
    }

    /// Returns an error if the file can be written only from its beginning to its end.
    pub fn ensure_seeks(&mut self) -> Result<()> {
        self.file.rewind().with_context(|| {
            format!("{}: {} must be a file that supports seeking (not a pipe)", self.option, self.path.display())
        })
    }

    /// Replaces the contents of the file.
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

    /// Returns an error if the path no longer names the written file: its folder may have been removed.
    #[cfg(unix)]
    fn ensure_is_there(&self) -> Result<()> {
        use std::os::unix::fs::MetadataExt;
        let written = self.file.metadata()?;
        let is_same = |there: Metadata| (there.dev(), there.ino()) == (written.dev(), written.ino());
        let is_there = !written.is_file() || std::fs::metadata(&self.path).is_ok_and(is_same);
        ensure!(is_there, "the file was removed or replaced after it was opened");
        Ok(())
    }

    #[cfg(not(unix))]
    fn ensure_is_there(&self) -> Result<()> {
        ensure!(self.path.exists(), "the file was removed after it was opened");
        Ok(())
    }

    /// Replaces the contents of the file by a text.
    pub fn write_text(self, text: &str) -> Result<()> {
        self.write(|mut file| Ok(file.write_all(text.as_bytes())?))
    }
}

/// Errors of outputs that could not be written at the end. The report is printed nevertheless, with these errors, and the exit
/// code is that of an error.
#[derive(Default)]
pub struct Unwritten(Vec<Error>);

impl Unwritten {
    /// Returns the value; keeps an error and returns `None`.
    pub fn keep<T>(&mut self, written: Result<T>) -> Option<T> {
        written.map_err(|error| self.0.push(error)).ok()
    }

    /// All errors as one sentence; `None` without errors.
    pub fn sentence(&self) -> Option<String> {
        let all: Vec<String> = self.0.iter().map(|error| format!("{error:#}")).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Prints the errors on standard error, one per line.
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
            // Another process may have removed it meanwhile.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
