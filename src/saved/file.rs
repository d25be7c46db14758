//! A file is complete, or not there: it is written beside its place, and gets its name when all of it is on the disk.

use super::RawTable;
use crate::core::options::Choice;
use crate::{Device, Error, Result};
use std::fs::{File, OpenOptions, remove_file, rename};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

fn refused(doing: &'static str, path: &Path, error: &io::Error) -> Error {
    Error::Io { doing, at: 0, reason: format!("{}: {error}", path.display()) }
}

/// A file that is removed again, unless it gets its name.
struct Beside {
    path: PathBuf,
    file: File,
}

impl Beside {
    /// In the folder of `path`, as only there a file can get that name at once.
    fn new(path: &Path) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file"))?;
        loop {
            // Relaxed: only the uniqueness of numbers matters.
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let mut own = std::ffi::OsString::from(".");
            own.push(name);
            own.push(format!(".{}.{number}.part", std::process::id()));
            let path = path.with_file_name(own);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Self { path, file }),
                // Left by a process that was killed and had the same number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives it its name, which another file may have had.
    fn name(self, path: &Path) -> io::Result<()> {
        self.file.sync_all()?;
        rename(&self.path, path)?;
        // It has its name also if this fails, only perhaps not after a crash of the machine.
        #[cfg(unix)]
        {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            File::open(folder)?.sync_all()?;
        }
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // It is not there if it has its name.
        let _ = remove_file(&self.path);
    }
}

impl RawTable {
    pub(crate) fn save_file(&self, path: &Path) -> Result<()> {
        let beside = Beside::new(path).map_err(|error| refused("making a file", path, &error))?;
        self.save(&beside.file)?;
        beside.name(path).map_err(|error| refused("finishing a file", path, &error))
    }

    pub(crate) fn load_file(device: &Device, choice: &Choice, width: Option<usize>, path: &Path) -> Result<Self> {
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = opened.map_err(|error| refused("opening a file", path, &error))?;
        // Of what is no plain file, as a pipe, nothing is known.
        let bytes = metadata.is_file().then_some(metadata.len());
        Self::load(device, choice, width, file, bytes)
    }
}
