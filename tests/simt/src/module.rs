//! Kernels that a test compiles and loads at run time, for example from code that was generated for a model.

use crate::machine::{plain, warpset_simt_identity, warpset_simt_misaligned, warpset_simt_request};
use crate::request::{Identity, Request};
use libloading::Library;
use std::ffi::{OsString, c_char};
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

/// A loaded shared object with kernels for the simulated GPU.
pub struct Module(Library);

/// Mirrors `Functions` in cpp/module.h.
#[repr(C)]
struct Functions {
    request: unsafe extern "C" fn(*mut Request),
    identity: extern "C" fn() -> *const Identity,
    misaligned: extern "C" fn(*const u8, u32, *const c_char, u32),
    access: extern "C" fn(*mut u8, usize, bool),
}

extern "C" fn access(address: *mut u8, size: usize, write: bool) {
    plain(address, size, write);
}

static FUNCTIONS: Functions =
    Functions { request: warpset_simt_request, identity: warpset_simt_identity, misaligned: warpset_simt_misaligned, access };

impl Module {
    /// Compiles a C++ file of `folder`, which must include cpp/module.h first, and loads it. Headers are searched in `folder`
    /// first, then among the library's headers for this machine. `options` are passed to the compiler.
    ///
    /// If there is no compiler, prints the reason and returns `None`, or panics if `WARPSET_REQUIRE_CXX` is set in the
    /// environment.
    pub fn compile(folder: &Path, file: &str, options: &[String]) -> Option<Self> {
        let compiler = std::env::var("CXX").ok().filter(|name| !name.is_empty()).unwrap_or("c++".into());
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        let (object, library) = (folder.join("module.o"), folder.join("module.so"));
        let run = |arguments: &[OsString]| match Command::new(&compiler).args(arguments).output() {
            Ok(output) => {
                assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
                true
            }
            Err(error) if error.kind() == ErrorKind::NotFound && std::env::var_os("WARPSET_REQUIRE_CXX").is_none() => {
                println!("skipped: no C++ compiler {compiler}");
                false
            }
            Err(error) => panic!("{compiler}: {error}"),
        };
        let mut compile: Vec<OsString> = ["-std=c++17", "-O1", "-g1", "-w", "-fPIC", "-fno-exceptions", "-fno-rtti"]
            .iter()
            .chain(&["-fsanitize=thread", "-c", "-o"])
            .map(OsString::from)
            .collect();
        compile.extend([object.clone().into(), folder.join(file).into()]);
        compile.extend(options.iter().map(OsString::from));
        for include in [folder, &own.join("../../cuda/platform/simt"), &own.join("../../cuda"), &own.join("cpp")] {
            compile.extend(["-I".into(), include.into()]);
        }
        // Link without `-fsanitize=thread`, because that would link the sanitizer's own functions.
        let link = ["-shared".into(), "-Wl,-Bsymbolic".into(), "-o".into(), library.clone().into(), object.into()];
        if !run(&compile) || !run(&link) {
            return None;
        }
        // SAFETY: the initialisers of the object call only functions of cpp/module.h that do nothing.
        let module = Self(unsafe { Library::new(library) }.expect("the object that was just linked"));
        // SAFETY: cpp/module.h declares the function with this type.
        unsafe { module.symbol::<unsafe extern "C" fn(&Functions)>("warpset_simt_connect")(&FUNCTIONS) };
        Some(module)
    }

    /// Returns a function of the object.
    ///
    /// # Safety
    /// `T` must be the function's type. The caller must not call the function after the module has been dropped.
    pub unsafe fn symbol<T: Copy>(&self, name: &str) -> T {
        // SAFETY: the caller guarantees the type.
        *unsafe { self.0.get::<T>(name.as_bytes()) }.unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}
