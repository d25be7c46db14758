//! Files that get their names when they are complete.

use std::fs::{rename, symlink_metadata};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Renames a file to `to`. Replaces a regular file or a link of that name.
///
/// # Errors
///
/// If `to` is something else: a folder, a FIFO, a socket or a device stays as it is. Or if the system reports an error.
pub(crate) fn replace(from: &Path, to: &Path) -> io::Result<()> {
    match symlink_metadata(to) {
        Ok(there) if !there.is_file() && !there.is_symlink() => {
            let what = format!("{} is not a regular file, and stays as it is", to.display());
            Err(io::Error::new(ErrorKind::AlreadyExists, what))
        }
        _ => rename(from, to),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_not_replaced() {
        let folder = std::env::temp_dir().join(format!("warpset-replace-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).unwrap();
        let [new, socket, file] = ["new", "socket", "file"].map(|name| folder.join(name));
        std::fs::write(&new, "new").unwrap();
        // Miri has no sockets; a folder does as well.
        let _socket = if cfg!(miri) { None } else { Some(std::os::unix::net::UnixListener::bind(&socket).unwrap()) };
        if cfg!(miri) {
            std::fs::create_dir(&socket).unwrap();
        }
        assert_eq!(replace(&new, &socket).unwrap_err().kind(), ErrorKind::AlreadyExists);
        std::fs::write(&file, "old").unwrap();
        replace(&new, &file).unwrap();
        assert_eq!((std::fs::read(&file).unwrap(), new.exists()), (b"new".to_vec(), false));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
