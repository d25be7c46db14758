//! Files that replace earlier ones only when they are complete.

use anyhow::Result;
use std::fs::{File, metadata, remove_file};
use std::io;
use std::path::Path;
use sysinfo::{Pid, ProcessesToUpdate, System};
use warpset::NewFile;

/// A file that was written.
#[derive(Debug)]
pub struct Written {
    pub bytes: u64,
    /// Why the file might be lost if the machine crashed now.
    pub folder_error: Option<io::Error>,
}

/// Writes a file under a temporary name and renames it when all of it is on the disk. It keeps the permissions of an earlier
/// file.
///
/// # Errors
///
/// The file cannot be written. An earlier file of that name is unchanged.
pub fn write(path: &Path, fill: impl FnOnce(&File) -> Result<()>) -> Result<Written> {
    remove_left_over(path);
    let new = NewFile::beside(path)?;
    if let Ok(earlier) = metadata(path) {
        // Some file systems have no permissions.
        let _ = new.file().set_permissions(earlier.permissions());
    }
    fill(new.file())?;
    let bytes = new.file().metadata()?.len();
    Ok(Written { bytes, folder_error: new.publish()?.synchronize_folder().err() })
}

/// Returns an error if no file can be created beside `path`.
pub fn ensure_is_possible(path: &Path) -> Result<()> {
    remove_left_over(path);
    Ok(NewFile::beside(path).map(drop)?)
}

/// Removes temporary files left beside `path` by killed processes of this machine, and by an earlier process that had this one's
/// process number. This process writes one file at a time.
fn remove_left_over(path: &Path) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let process = NewFile::process_of(path, &entry.path());
        if process.is_some_and(|id| id == std::process::id() || !is_running(id)) {
            let _ = remove_file(entry.path());
        }
    }
}

/// Whether a process with this number runs; true if the system cannot say.
fn is_running(id: u32) -> bool {
    let (mut system, id) = (System::new(), Pid::from_u32(id));
    system.refresh_processes(ProcessesToUpdate::Some(&[id]), true);
    !sysinfo::IS_SUPPORTED_SYSTEM || system.process(id).is_some()
}
