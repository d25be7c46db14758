//! Compiled kernels, kept on disk between processes.
//!
//! The key of a kernel (`Job::key`) consists of the source, the options with the architecture, and the versions of NVRTC, of the
//! driver and of this library. The library's own headers are in the key as a digest of 128 bits: their 200 KiB would be a waste
//! in every file, and only the library's authors choose them. A source that may depend on another file is always compiled,
//! because the contents of that file are not in the key.

use crate::Result;
use crate::host::CodeCache;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Where compiled kernels are kept between processes: see [`set_kernel_cache`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum KernelCache {
    /// The folder that the environment names, or else a folder in the user's cache folder: [Compilation and the kernel
    /// cache](crate::host_batches#compilation-and-the-kernel-cache).
    #[default]
    Default,
    /// This folder, which is created if it does not exist. It must belong to the user, and others must not be able to write to
    /// it.
    Folder(PathBuf),
    /// No cache: kernels are compiled in every process.
    Off,
}

static CHOICE: Mutex<KernelCache> = Mutex::new(KernelCache::Default);

/// Sets where compiled kernels are kept between processes, for all compilations of this process from now on.
///
/// `WARPSET_CACHE=off` in the environment switches the cache off, in spite of this setting.
///
/// ```
/// use warpset::gpu::{KernelCache, set_kernel_cache};
///
/// set_kernel_cache(KernelCache::Off);
/// ```
pub fn set_kernel_cache(cache: KernelCache) {
    *CHOICE.lock().unwrap_or_else(PoisonError::into_inner) = cache;
}

/// Largest total size of all files, in bytes. The files of one table take some 200 to 600 KB.
const MAX_BYTES: u64 = 256 << 20;

/// Compiled kernels on disk, for one version of the driver.
pub(crate) struct Cache {
    pub(super) files: CodeCache,
    /// The version of the driver that loads the kernels.
    pub(super) driver: i32,
}

impl Cache {
    /// Returns the cache in use, or `None` if it is off.
    pub(super) fn in_use(driver: i32) -> Option<Self> {
        let chosen = match CHOICE.lock().unwrap_or_else(PoisonError::into_inner).clone() {
            KernelCache::Off => return None,
            KernelCache::Folder(folder) => Some(folder),
            KernelCache::Default => None,
        };
        Some(Self { files: CodeCache::of_environment(chosen, ".kernels", MAX_BYTES)?, driver })
    }

    /// Returns the image of a key. If it is not in the cache, makes and keeps it.
    pub(super) fn get_or_make(&self, key: &str, make: impl FnOnce() -> Result<Vec<u8>>) -> Result<Vec<u8>> {
        if let Some(image) = self.files.find(key.as_bytes()) {
            return Ok(image);
        }
        let image = make()?;
        self.files.keep(key.as_bytes(), &image);
        Ok(image)
    }
}
