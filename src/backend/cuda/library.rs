//! NVIDIA's libraries, which are loaded when they are first used.
//!
//! `cudarc` loads them, too, when it calls them, but panics if they are missing. Its function that checks for their presence
//! loads and unloads them. NVRTC has 100 MB and more, so this check took longer than all other steps of finding kernels on disk.

use crate::{Error, Result};
use libloading::Library;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// A library of NVIDIA.
pub(super) struct SharedLibrary {
    /// Name of the library, as users know it.
    title: &'static str,
    /// Names from which `cudarc` derives the file names that it tries.
    names: &'static [&'static str],
    /// Never unloaded.
    loaded: OnceLock<Library>,
    file: OnceLock<Option<String>>,
}

pub(super) static DRIVER: SharedLibrary = SharedLibrary::new("CUDA driver", &["cuda", "nvcuda"]);
pub(super) static NVRTC: SharedLibrary = SharedLibrary::new("NVRTC", &["nvrtc"]);

impl SharedLibrary {
    const fn new(title: &'static str, names: &'static [&'static str]) -> Self {
        Self { title, names, loaded: OnceLock::new(), file: OnceLock::new() }
    }

    /// Loads the library, for the life of the process. Returns an error if it cannot be loaded.
    pub(super) fn ensure_present(&self) -> Result<()> {
        if self.loaded.get().is_some() {
            return Ok(());
        }
        let names: Vec<String> = self.names.iter().flat_map(|name| cudarc::get_lib_name_candidates(name)).collect();
        // SAFETY: a library of NVIDIA, whose initialisation has no preconditions; `cudarc` loads the same.
        let Some(library) = names.iter().find_map(|name| unsafe { Library::new(name) }.ok()) else {
            let searched = names.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
            return Err(Error::LibraryNotFound { library: self.title, searched });
        };
        // If several threads load it at the same time, one handle is kept.
        let _ = self.loaded.set(library);
        Ok(())
    }

    /// Path, size and modification time of the file that contains the library, as one string: they differ between builds. The
    /// file is located by the code address of `function`, the name of one of the library's functions. (The file may have been
    /// replaced since it was loaded.) Returns `None` if the library is not loaded, or on Windows.
    pub(super) fn file_of(&self, function: &str) -> Option<&str> {
        let library = self.loaded.get()?;
        let file = self.file.get_or_init(|| {
            // SAFETY: the function is not called: only its address is used, as long as the library is loaded.
            let function = unsafe { library.get::<unsafe extern "C" fn()>(function.as_bytes()) }.ok()?;
            file_of_code_at(*function as usize)
        });
        file.as_deref()
    }
}

/// Returns the path of the file that the code at `address` was loaded from, with size and modification time. `None` if there is
/// no such file.
#[cfg(unix)]
fn file_of_code_at(address: usize) -> Option<String> {
    use std::os::unix::ffi::OsStrExt;
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `dladdr` reads no memory at the address, and writes to `info`, which is zeros (null pointers) before.
    let (found, info) = unsafe { (libc::dladdr(address as *const libc::c_void, info.as_mut_ptr()), info.assume_init()) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: a string that ends in zero, and stays as long as the file is loaded, which is longer than this call.
    let path = std::ffi::OsStr::from_bytes(unsafe { std::ffi::CStr::from_ptr(info.dli_fname) }.to_bytes());
    named(path.as_ref())
}

#[cfg(not(unix))]
fn file_of_code_at(_: usize) -> Option<String> {
    None
}

/// Returns path, size and modification time of a file.
#[cfg(unix)]
fn named(path: &std::path::Path) -> Option<String> {
    let file = std::fs::metadata(path).ok()?;
    let changed = file.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(format!("{path:?} of {} bytes, changed at {} s and {} ns", file.len(), changed.as_secs(), changed.subsec_nanos()))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    /// The C library is a loaded file whose code is known.
    #[test]
    fn code_has_its_file() {
        let file = file_of_code_at(libc::dlsym as *const () as usize).expect("the file with that code");
        assert!(file.contains("libc"), "{file}");
        // This memory belongs to no file.
        let own = Box::new(0u8);
        assert_eq!(file_of_code_at(&raw const *own as usize), None);
    }

    #[test]
    fn builds_differ_by_size_and_time() {
        let path = std::env::temp_dir().join(format!("warpset-build-{}", std::process::id()));
        let write = |bytes: &[u8], seconds| {
            std::fs::write(&path, bytes).unwrap();
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            std::fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
            named(&path).expect("the file is there")
        };
        let first = write(b"first", 1000);
        assert_eq!(first, write(b"other", 1000));
        assert!(first != write(b"longer", 1000) && first != write(b"first", 1001));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(named(&path), None);
    }
}
