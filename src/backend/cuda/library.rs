//! NVIDIA's libraries, which are loaded when they are first used.
//!
//! `cudarc` loads them too when it calls them, but panics if they are missing. When asked whether they are present, it loads and
//! unloads them. NVRTC has 100 MB and more, so that took longer than all other steps of finding kernels on disk.

use super::build_id;
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
    build: OnceLock<Option<String>>,
}

pub(super) static DRIVER: SharedLibrary = SharedLibrary::new("CUDA driver", &["cuda", "nvcuda"]);
pub(super) static NVRTC: SharedLibrary = SharedLibrary::new("NVRTC", &["nvrtc"]);

impl SharedLibrary {
    const fn new(title: &'static str, names: &'static [&'static str]) -> Self {
        Self { title, names, loaded: OnceLock::new(), build: OnceLock::new() }
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

    /// Build of the library, by the code of `function`, one of its functions. `None` if the library is not loaded, or if the
    /// system does not tell (only Linux does).
    pub(super) fn build(&self, function: &str) -> Option<&str> {
        let library = self.loaded.get()?;
        let build = self.build.get_or_init(|| {
            // SAFETY: the function is not called: only its address is used, as long as the library is loaded.
            let function = unsafe { library.get::<unsafe extern "C" fn()>(function.as_bytes()) }.ok()?;
            build_id::of_code_at(*function as usize)
        });
        build.as_deref()
    }
}
