//! The output file of an option, and the errors of several output files.

use super::Identity;
use crate::printing::print_error;
use crate::program;
use crate::replacing;
use anyhow::{Context, Error, Result, ensure};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Seek, Write};
use std::path::{Path, PathBuf};

/// Maximum number of links from a path to its file, as on Linux.
const MOST_LINKS: usize = 40;

/// The output file of an option. Its earlier contents stay until all new contents are written.
pub struct Output {
    option: &'static str,
    path: PathBuf,
    /// Compares files independently of their names; `None` if there is no file yet, or if it is a device.
    identity: Option<Identity>,
    target: Target,
}

enum Target {
    /// Path, without links, of a regular file that a complete new file will replace. The file need not exist.
    Replaced(PathBuf),
    /// A device, a pipe, or a file that has no path of its own.
    Opened(File),
}

impl Output {
    /// Opens the file of an option, or checks that it can be created. Changes nothing.
    pub fn open(option: &'static str, path: &Path) -> Result<Self> {
        let open = || {
            let resolved = without_links(path);
            let replaced = match OpenOptions::new().write(true).open(path) {
                Ok(file) => {
                    let (is_device, is_file) = (is_device(&file.metadata()?), file.metadata()?.is_file());
                    let identity = same_file::Handle::from_file(file.try_clone()?).ok();
                    let has_path = is_file && same_file::Handle::from_path(&resolved).ok() == identity;
                    // Several outputs may write to one device.
                    let identity = identity.filter(|_| !is_device);
                    if !has_path {
                        return anyhow::Ok(Self { option, path: path.into(), identity, target: Target::Opened(file) });
                    }
                    identity
                }
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                Err(error) => return Err(error.into()),
            };
            replacing::ensure_is_possible(&resolved)?;
            Ok(Self { option, path: path.into(), identity: replaced, target: Target::Replaced(resolved) })
        };
        open().with_context(|| format!("{option}: {} cannot be written", path.display()))
    }

    /// The path of the file, as the option gives it.
    pub fn path(&self) -> &Path {
        &self.path
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

    /// Returns an error if `path`, where a file will be replaced later for `option`, is this file.
    pub fn ensure_is_not_file(&self, option: &str, path: &Path) -> Result<()> {
        let identity = same_file::Handle::from_path(path).ok();
        let is_same = self.is(identity.as_ref(), &without_links(path));
        ensure!(!is_same, "{} and {option}: {} and {} are the same file", self.option, self.path.display(), path.display());
        Ok(())
    }

    /// Returns an error if both outputs are the same file.
    pub fn ensure_differs_from(&self, other: &Self) -> Result<()> {
        let is_same = match &other.target {
            Target::Replaced(path) => self.is(other.identity.as_ref(), path),
            Target::Opened(_) => other.identity.is_some() && self.identity == other.identity,
        };
        let (path, other_path) = (self.path.display(), other.path.display());
        ensure!(!is_same, "{} and {}: {path} and {other_path} are the same file", self.option, other.option);
        Ok(())
    }

    /// Whether this is the file with that identity or, if there is no file, with that path.
    fn is(&self, identity: Option<&Identity>, resolved: &Path) -> bool {
        match (&self.identity, identity, &self.target) {
            (None, None, Target::Replaced(own)) => {
                let folder = |path: &Path| same_file::Handle::from_path(folder_of(path)).ok();
                own.file_name() == resolved.file_name() && folder(own).is_some() && folder(own) == folder(resolved)
            }
            (own, other, _) => own.is_some() && own.as_ref() == other,
        }
    }

    /// Returns an error if the file can be written only from its beginning to its end.
    pub fn ensure_seeks(&mut self) -> Result<()> {
        let Target::Opened(file) = &mut self.target else { return Ok(()) };
        file.rewind().with_context(|| {
            format!("{}: {} must be a file that supports seeking (not a pipe)", self.option, self.path.display())
        })
    }

    /// Replaces the contents of the file, when all of the new ones are on the disk.
    pub fn write(self, write: impl FnOnce(&File) -> Result<()>) -> Result<()> {
        let replace = || match self.target {
            Target::Replaced(path) => replacing::write(&path, write)?.folder_error.map_or(Ok(()), |error| Err(error.into())),
            Target::Opened(file) => {
                if file.metadata()?.is_file() {
                    file.set_len(0)?;
                }
                write(&file)
            }
        };
        replace().with_context(|| format!("{}: {} cannot be written", self.option, self.path.display()))
    }

    /// Replaces the contents of the file by a text.
    pub fn write_text(self, text: &str) -> Result<()> {
        self.write(|mut file| Ok(file.write_all(text.as_bytes())?))
    }
}

/// Returns the file to which the links of a path lead. Links of its folder stay.
fn without_links(path: &Path) -> PathBuf {
    let mut resolved = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        match std::fs::read_link(&resolved) {
            Ok(target) => resolved = folder_of(&resolved).join(target),
            Err(_) => break,
        }
    }
    resolved
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Errors of outputs that could not be written at the end. The report is printed nevertheless, with these errors, and the exit
/// code is that of an error.
#[derive(Default)]
pub struct Unwritten(Vec<Error>);

impl Unwritten {
    /// Returns the value. Keeps an error, and then returns `None`.
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
        self.0.iter().for_each(|error| print_error(&program::sentence(error)));
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
