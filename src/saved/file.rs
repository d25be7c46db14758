//! Files that are either complete or absent: each is written beside its destination, and renamed when all of it is on the disk.
//!
//! | step | state after an error in this step |
//! |---|---|
//! | open the folder and create the new file in it | the old file unchanged, no new file |
//! | fill the new file and synchronise it with the disk | the old file unchanged, no new file |
//! | rename it to its destination | the old file unchanged, no new file |
//! | synchronise the folder | the new file, complete, under its name; after a crash of the machine, perhaps the old one again |
//!
//! The new file is always created: no existing file is opened, and no symbolic link of that name is followed. Only a regular
//! file or a link is replaced: a device, a FIFO, a socket or a folder is an error, before anything is written.

use super::RawTable;
use crate::layout;
use crate::{Device, Error, Result, faults};
use std::ffi::OsString;
use std::fs::{File, OpenOptions, remove_file, rename};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A file under construction beside its destination. Dropping it removes the file, unless it was renamed.
pub struct NewFile {
    path: PathBuf,
    /// Path of the new file. It is in the folder of `path`: only there is a rename to `path` atomic.
    part: PathBuf,
    file: File,
    /// The folder; `None` on systems that do not synchronise folders.
    folder: Option<File>,
}

/// A new file that has been renamed to its destination. Its folder is not yet synchronised with the disk.
#[must_use]
pub struct Named {
    folder: Option<File>,
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns an error unless `path` names a regular file, a link or nothing. `folder`: its folder, opened.
fn check_replaceable(folder: Option<&File>, path: &Path) -> io::Result<()> {
    let what = match kind_of(folder, path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(Kind::FileOrLink) => return Ok(()),
        Ok(Kind::Other(what)) => what,
    };
    Err(io::Error::new(ErrorKind::InvalidInput, format!("not a regular file but {what}, which stays as it is")))
}

enum Kind {
    FileOrLink,
    Other(&'static str),
}

#[cfg(unix)]
fn kind_of(folder: Option<&File>, path: &Path) -> io::Result<Kind> {
    use std::os::{fd::AsRawFd, unix::ffi::OsStrExt};
    let folder = folder.expect("it is opened on these systems");
    let name = std::ffi::CString::new(path.file_name().unwrap_or_default().as_bytes())?;
    let mut status = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the folder is open; the name ends with 0; there is room for a status.
    if unsafe { libc::fstatat(folder.as_raw_fd(), name.as_ptr(), status.as_mut_ptr(), libc::AT_SYMLINK_NOFOLLOW) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has succeeded, so it has written the status.
    Ok(match unsafe { status.assume_init() }.st_mode & libc::S_IFMT {
        libc::S_IFREG | libc::S_IFLNK => Kind::FileOrLink,
        libc::S_IFDIR => Kind::Other("a folder"),
        libc::S_IFIFO => Kind::Other("a FIFO"),
        libc::S_IFSOCK => Kind::Other("a socket"),
        _ => Kind::Other("a device"),
    })
}

#[cfg(not(unix))]
fn kind_of(_: Option<&File>, path: &Path) -> io::Result<Kind> {
    let metadata = std::fs::symlink_metadata(path)?;
    Ok(if metadata.is_file() || metadata.is_symlink() { Kind::FileOrLink } else { Kind::Other("a folder") })
}

/// Returns an error if a test injects one here.
fn unless_made_to_fail() -> io::Result<()> {
    if faults::should_fail() { Err(io::Error::other(faults::ON_PURPOSE)) } else { Ok(()) }
}

impl NewFile {
    /// Creates an empty file beside `path`, called `.NAME.PROCESS.NUMBER.part`.
    ///
    /// # Errors
    ///
    /// The folder cannot be opened, or no file can be made there. Or `path` exists, and is neither a regular file nor a link:
    /// devices, FIFOs, sockets and folders are not replaced.
    pub fn beside(path: &Path) -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = path.file_name().ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "not the name of a file"))?;
        unless_made_to_fail()?;
        // Open the folder before writing anything: after the renaming, an error could not be undone.
        let folder = if cfg!(unix) { Some(File::open(folder_of(path))?) } else { None };
        unless_made_to_fail()?;
        check_replaceable(folder.as_ref(), path)?;
        loop {
            // Relaxed: only the uniqueness of numbers matters.
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let mut own = OsString::from(".");
            own.push(name);
            own.push(format!(".{}.{number}.part", std::process::id()));
            let part = path.with_file_name(own);
            match OpenOptions::new().write(true).create_new(true).open(&part) {
                Ok(file) => return Ok(Self { path: path.into(), part, file, folder }),
                // A killed process with the same PID left it, or someone put it there on purpose.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// PID of the process that wrote the file `part` beside `path`, taken from the name that [`beside`](Self::beside) gives;
    /// `None` for files with other names.
    pub fn process_of(path: &Path, part: &Path) -> Option<u32> {
        let [name, part] = [path, part].map(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()));
        let numbers = part?.strip_prefix(&format!(".{}.", name?))?.strip_suffix(".part")?.to_owned();
        let (process, number) = numbers.split_once('.')?;
        number.parse::<u64>().ok()?;
        process.parse().ok()
    }

    /// The file to write to.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Synchronises the file with the disk, and renames it to its destination. An existing file or link of that name is replaced
    /// in the same step.
    ///
    /// # Errors
    ///
    /// The file is removed, and an existing file of that name stays.
    pub fn publish(mut self) -> io::Result<Named> {
        unless_made_to_fail()?;
        self.file.sync_all()?;
        unless_made_to_fail()?;
        // Check again: hours may have passed.
        check_replaceable(self.folder.as_ref(), &self.path)?;
        rename(&self.part, &self.path)?;
        Ok(Named { folder: self.folder.take() })
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // After the renaming there is no file to remove.
        let _ = remove_file(&self.part);
    }
}

impl Named {
    /// Synchronises the folder with the disk. Does nothing where the file system cannot do that.
    ///
    /// # Errors
    ///
    /// The disk has reported an error. The file is complete and has its name now. After a crash of the machine, the previous file
    /// may have the name again.
    pub fn synchronize_folder(self) -> io::Result<()> {
        unless_made_to_fail()?;
        match self.folder.map_or(Ok(()), |folder| folder.sync_all()) {
            // Some network file systems return this for every folder.
            Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
            result => result,
        }
    }
}

fn refused(doing: &'static str, path: &Path, error: &io::Error) -> Error {
    Error::Io { doing, at: 0, kind: error.kind(), reason: format!("{}: {error}", path.display()) }
}

impl RawTable {
    pub(crate) fn save_file(&self, path: &Path) -> Result<()> {
        let new = NewFile::beside(path).map_err(|error| refused("making a file", path, &error))?;
        self.save(new.file())?;
        let named = new.publish().map_err(|error| refused("finishing a file", path, &error))?;
        named.synchronize_folder().map_err(|error| refused("synchronising the folder of a file that was replaced", path, &error))
    }

    pub(crate) fn load_file(device: &Device, kind: layout::Kind, width: Option<usize>, path: &Path) -> Result<Self> {
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = opened.map_err(|error| refused("opening a file", path, &error))?;
        // Only regular files have a meaningful length; a pipe, for example, has none.
        let bytes = metadata.is_file().then_some(metadata.len());
        Self::load(device, kind, width, file, bytes)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{FileTypeExt, symlink};

    /// An empty folder, which is removed at the end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("warpset-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::create_dir(&folder).unwrap();
            Self(folder)
        }

        fn names(&self) -> Vec<String> {
            let names = std::fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
            let mut names: Vec<String> = names.collect();
            names.sort();
            names
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// Makes a node of this kind; `None` if this user may not.
    fn node(path: &Path, kind: libc::mode_t) -> Option<()> {
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        // If the kind is a device, this is the null device.
        // SAFETY: a string that ends with 0, and numbers.
        (unsafe { libc::mknod(name.as_ptr(), kind | 0o600, libc::makedev(1, 3)) } == 0).then_some(())
    }

    /// A FIFO, a socket, a device and a folder stay what they are, and nothing is left beside them.
    #[test]
    #[cfg_attr(miri, ignore = "it makes no such files")]
    fn only_regular_files_and_links_are_replaced() {
        let scratch = Scratch::new("replaced");
        let at = |name: &str| scratch.0.join(name);
        node(&at("fifo"), libc::S_IFIFO).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        let has_device = node(&at("device"), libc::S_IFCHR).is_some();
        let before = scratch.names();
        for name in ["fifo", "socket", "folder"].into_iter().chain(has_device.then_some("device")) {
            let error = NewFile::beside(&at(name)).and_then(NewFile::publish).err().map(|error| error.to_string());
            assert!(error.as_ref().is_some_and(|error| error.contains("not a regular file")), "{name}: {error:?}");
            assert!(!std::fs::symlink_metadata(at(name)).unwrap().is_file(), "{name}");
        }
        assert_eq!(scratch.names(), before);
        // A missing file, a file and a link are replaced: the link itself, not its target.
        symlink(at("fifo"), at("link")).unwrap();
        std::fs::write(at("file"), "before").unwrap();
        for name in ["file", "link", "none"] {
            drop(NewFile::beside(&at(name)).unwrap().publish().unwrap());
            assert_eq!(std::fs::read(at(name)).unwrap(), b"", "{name}");
        }
        assert!(std::fs::symlink_metadata(at("fifo")).unwrap().file_type().is_fifo());
    }

    /// A FIFO that takes the name while the file is written is not replaced, either.
    #[test]
    #[cfg_attr(miri, ignore = "it makes no such files")]
    fn a_fifo_that_comes_later_stays() {
        let scratch = Scratch::new("later");
        let path = scratch.0.join("file");
        let new = NewFile::beside(&path).unwrap();
        node(&path, libc::S_IFIFO).unwrap();
        assert!(new.publish().is_err_and(|error| error.to_string().contains("not a regular file")));
        assert_eq!(scratch.names(), ["file"]);
    }
}
