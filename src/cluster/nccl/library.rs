//! Loads NCCL when it is first used: the functions that are needed here, with the signatures of nccl.h, unchanged since 2.14.

use crate::{Error, Result};
use libloading::os::unix::{Library as DynamicLibrary, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// `ncclComm_t`.
pub(super) type Comm = *mut c_void;

/// `ncclUniqueId`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct UniqueId(pub [u8; 128]);

/// `ncclConfig_t` as in version 2.14. Later versions learn its length from `size` and `version`, and use defaults for the rest.
#[repr(C)]
pub(super) struct Config {
    size: usize,
    magic: u32,
    version: u32,
    blocking: c_int,
    /// Padding, where later versions have a number: the value that NCCL defines as undefined.
    filling: c_int,
}

impl Config {
    /// Makes calls return at once. Their results are polled, so that a caller can give up after a time-out.
    pub(super) fn nonblocking() -> Self {
        Self { size: size_of::<Self>(), magic: 0xcafe_beef, version: LEAST, blocking: 0, filling: c_int::MIN }
    }
}

/// Values of `ncclResult_t` that are used here.
pub(super) const SUCCESS: c_int = 0;
pub(super) const IN_PROGRESS: c_int = 7;

/// `ncclUint8`.
pub(super) const BYTES: c_int = 1;

/// Oldest version with non-blocking communicators.
const LEAST: u32 = 21400;

type Answer = c_int;

/// The functions of NCCL that are used here.
pub(super) struct Nccl {
    pub version: u32,
    pub get_unique_id: unsafe extern "C" fn(*mut UniqueId) -> Answer,
    pub init: unsafe extern "C" fn(*mut Comm, c_int, UniqueId, c_int, *mut Config) -> Answer,
    pub finalize: unsafe extern "C" fn(Comm) -> Answer,
    pub destroy: unsafe extern "C" fn(Comm) -> Answer,
    pub abort: unsafe extern "C" fn(Comm) -> Answer,
    pub async_error: unsafe extern "C" fn(Comm, *mut Answer) -> Answer,
    pub send: unsafe extern "C" fn(*const c_void, usize, c_int, c_int, Comm, *mut c_void) -> Answer,
    pub receive: unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, Comm, *mut c_void) -> Answer,
    pub group_start: unsafe extern "C" fn() -> Answer,
    pub group_end: unsafe extern "C" fn() -> Answer,
    error_string: unsafe extern "C" fn(Answer) -> *const c_char,
    last_error: Option<unsafe extern "C" fn(Comm) -> *const c_char>,
    /// Library that the functions belong to.
    _library: DynamicLibrary,
}

impl Nccl {
    /// Loads NCCL by the system's loader, or else from Python's packages. The error lists the places that were searched.
    pub(super) fn get() -> Result<&'static Self> {
        static FOUND: OnceLock<Result<Nccl>> = OnceLock::new();
        FOUND.get_or_init(Self::find).as_ref().map_err(Clone::clone)
    }

    fn find() -> Result<Self> {
        let mut searched = Vec::new();
        let mut too_old = None;
        let names = ["libnccl.so.2", "libnccl.so"].into_iter().map(PathBuf::from);
        for name in names.chain(in_python_packages()) {
            searched.push(name.display().to_string());
            match Self::load(&name) {
                Ok(found) => return Ok(found),
                Err(error @ Error::LibraryTooOld { .. }) => too_old = too_old.or(Some(error)),
                Err(_) => {}
            }
        }
        Err(too_old.unwrap_or(Error::LibraryNotFound { library: "NCCL", searched }))
    }

    fn load(name: &Path) -> Result<Self> {
        let missing = |_| Error::LibraryNotFound { library: "NCCL", searched: vec![name.display().to_string()] };
        // SAFETY: NCCL's initialisers have no preconditions. Another library of that name would itself be at fault.
        let library = unsafe { DynamicLibrary::open(Some(name), RTLD_NOW | RTLD_LOCAL) }.map_err(missing)?;
        /// Loads a function, with the type of the field that it is stored in.
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the types above are those of nccl.h. The library stays loaded as long as the functions exist
                // (`_library`): for ever.
                *unsafe { library.get($name) }.map_err(missing)?
            };
        }
        let get_version: unsafe extern "C" fn(*mut c_int) -> Answer = function!(b"ncclGetVersion\0");
        let mut version = 0;
        // SAFETY: `version` has memory.
        unsafe { get_version(&mut version) };
        let version = version as u32;
        if version < LEAST {
            let readable = |version: u32| format!("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
            return Err(Error::LibraryTooOld {
                library: "NCCL",
                path: name.display().to_string(),
                found: readable(version),
                needed: readable(LEAST),
            });
        }
        Ok(Self {
            version,
            get_unique_id: function!(b"ncclGetUniqueId\0"),
            init: function!(b"ncclCommInitRankConfig\0"),
            finalize: function!(b"ncclCommFinalize\0"),
            destroy: function!(b"ncclCommDestroy\0"),
            abort: function!(b"ncclCommAbort\0"),
            async_error: function!(b"ncclCommGetAsyncError\0"),
            send: function!(b"ncclSend\0"),
            receive: function!(b"ncclRecv\0"),
            group_start: function!(b"ncclGroupStart\0"),
            group_end: function!(b"ncclGroupEnd\0"),
            error_string: function!(b"ncclGetErrorString\0"),
            // SAFETY: as above.
            last_error: unsafe { library.get(b"ncclGetLastError\0") }.ok().map(|function| *function),
            _library: library,
        })
    }

    /// Meaning of an answer, with NCCL's own message.
    pub(super) fn text(&self, answer: Answer, comm: Comm) -> String {
        // SAFETY: NCCL returns a static text for every answer.
        let text = |text: *const c_char| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
        // SAFETY: the function has no preconditions.
        let what = text(unsafe { (self.error_string)(answer) });
        // SAFETY: no version so far accesses the communicator, and it may be null.
        let more = self.last_error.map(|last| unsafe { last(comm) }).filter(|more| !more.is_null()).map(text);
        match more.filter(|more| !more.trim().is_empty()) {
            Some(more) => format!("{what} ({})", more.trim()),
            None => what,
        }
    }
}

/// Locations in the packages `nvidia-nccl-cu12` and `nvidia-nccl-cu13`: of the active environment, of the user, of the system.
fn in_python_packages() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let mut roots: Vec<PathBuf> =
        ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(variable).map(|root| root.join("lib")).collect();
    roots.extend(variable("HOME").map(|home| home.join(".local/lib")));
    roots.extend(["/usr/local/lib", "/usr/lib"].map(PathBuf::from));
    let mut found = Vec::new();
    for root in roots {
        // python3.12/site-packages, and Debian's dist-packages.
        let mut versions: Vec<PathBuf> =
            std::fs::read_dir(&root).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        versions.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python3")));
        versions.sort();
        for packages in
            versions.iter().rev().flat_map(|version| ["site-packages", "dist-packages"].map(|name| version.join(name)))
        {
            found.push(packages.join("nvidia/nccl/lib/libnccl.so.2"));
        }
    }
    found.retain(|path| path.exists());
    found
}

#[cfg(test)]
mod tests {
    //! Keeps this promise of `src/docs/several_gpus.md`:
    //!
    //! - A missing or too old NCCL is an ordinary error.

    use super::*;

    /// On any system, NCCL of a sufficient version is found, or an ordinary error lists the places that were searched. With
    /// `WARPSET_REQUIRE_NCCL` in the environment NCCL must be found.
    #[test]
    fn it_is_there_or_an_ordinary_error() {
        match Nccl::get() {
            Ok(nccl) => {
                assert!(nccl.version >= LEAST);
                assert_eq!(nccl.text(SUCCESS, std::ptr::null_mut()).split(" (").next(), Some("no error"));
                println!("NCCL {}", nccl.version);
            }
            Err(error) => {
                assert!(std::env::var_os("WARPSET_REQUIRE_NCCL").is_none(), "{error}");
                let Error::LibraryNotFound { library: "NCCL", searched } = &error else { panic!("{error}") };
                assert_eq!(searched[0], "libnccl.so.2");
                assert!(error.to_string().contains("libnccl.so"), "{error}");
                println!("skipped: {error}");
            }
        }
    }

    #[test]
    fn other_libraries_are_not_it() {
        // This library exists, and has none of the functions.
        assert!(matches!(Nccl::load(Path::new("libc.so.6")), Err(Error::LibraryNotFound { .. })));
        assert!(matches!(Nccl::load(Path::new("/nowhere/libnccl.so.2")), Err(Error::LibraryNotFound { .. })));
    }

    #[test]
    fn the_config_is_that_of_2_14() {
        assert_eq!((size_of::<Config>(), size_of::<UniqueId>()), (24, 128));
    }
}
