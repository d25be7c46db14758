//! Programs: the images that the simulated NVRTC returns, loaded as shared objects.

use super::block::{RUNTIME, Runtime};
use object::{Object, ObjectSymbol, SymbolKind};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fmt, fs, io::Write, process, ptr, slice};

/// First bytes of every image. The number is the version of the interface in runtime/words.h.
pub const IMAGE_MAGIC: &[u8; 16] = b"warpset device 1";

/// Wraps a shared object into an image: the magic number, the total length, the object, and a zero, as PTX has.
pub fn image_of(object: &[u8]) -> Vec<u8> {
    let length = (IMAGE_MAGIC.len() + 8 + object.len() + 1) as u64;
    [IMAGE_MAGIC, length.to_le_bytes().as_slice(), object, &[0]].concat()
}

/// Returns the bytes of the image that begins at `address`; `None` if there is no image.
///
/// # Safety
///
/// The 16 bytes at `address` must be readable. If they are [`IMAGE_MAGIC`], a whole image must follow, and live for `'a`.
pub unsafe fn image_bytes<'a>(address: *const u8) -> Option<&'a [u8]> {
    // SAFETY: the caller keeps the conditions of this function.
    unsafe {
        if slice::from_raw_parts(address, IMAGE_MAGIC.len()) != IMAGE_MAGIC {
            return None;
        }
        let length = address.add(IMAGE_MAGIC.len()).cast::<[u8; 8]>().read();
        Some(slice::from_raw_parts(address, u64::from_le_bytes(length) as usize))
    }
}

/// Reason why an image is not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The bytes do not begin like an image, or the image is cut off.
    NotAnImage,
    /// The system's loader refuses the shared object.
    Refused(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnImage => f.write_str("not an image of the simulated NVRTC"),
            Self::Refused(text) => write!(f, "the image cannot be loaded: {text}"),
        }
    }
}

impl std::error::Error for LoadError {}

/// Mirrors `Entry` in runtime/words.h.
#[repr(C)]
struct Entry {
    function: *const c_void,
    section: *const c_char,
    call: unsafe extern "C" fn(*const u8),
    parameters: u32,
    sizes: *const u32,
    offsets: *const u32,
    bytes: u32,
    threads: u32,
    blocks: u32,
}

impl Entry {
    /// Returns the name of the kernel's symbol, or the name in the source if there is no symbol.
    fn name(&self) -> String {
        // SAFETY: the text belongs to the program and ends in zero.
        let section = unsafe { CStr::from_ptr(self.section) }.to_string_lossy();
        symbol_at(self.function).unwrap_or_else(|| section.strip_prefix(".text.").unwrap_or(&section).to_owned())
    }
}

/// Mirrors `Description` in runtime/words.h.
#[repr(C)]
struct Description {
    first: *const Entry,
    last: *const Entry,
    runtime: *mut *const Runtime,
}

/// A shared object. It is unloaded when this value is dropped.
pub(super) struct Library(*mut c_void);

// SAFETY: the handle may be used and closed by any thread.
unsafe impl Send for Library {}
// SAFETY: the handle may be used and closed by any thread.
unsafe impl Sync for Library {}

impl Library {
    fn open(object: &[u8]) -> Result<Self, LoadError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let refused = |error: std::io::Error| LoadError::Refused(error.to_string());
        // Each object has its own file, because the loader recognises a file by its name or its number.
        // Relaxed: only the uniqueness of the number matters.
        let name = format!("warpset-device-{}-{}.so", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        let _removed = Removed(path.clone());
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o700).open(&path).map_err(refused)?;
        file.write_all(object).map_err(refused)?;
        drop(file);
        let name = CString::new(path.into_os_string().into_encoded_bytes()).map_err(|error| refused(error.into()))?;
        // SAFETY: this process has compiled the object, whose initialisers only set its constants.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            // SAFETY: the text is the last error of this thread and ends in zero.
            let text = unsafe { CStr::from_ptr(libc::dlerror()) };
            return Err(LoadError::Refused(text.to_string_lossy().into_owned()));
        }
        Ok(Self(handle))
    }

    fn symbol(&self, name: &CStr) -> *mut c_void {
        // SAFETY: the library is open, and the text ends in zero.
        unsafe { libc::dlsym(self.0, name.as_ptr()) }
    }

    /// Returns the calling thread's static `__shared__` variables of this program, if it has any.
    pub(super) fn thread_block(&self) -> *mut u8 {
        const RTLD_DI_TLS_MODID: i32 = 9;
        #[repr(C)]
        struct Index {
            module: usize,
            offset: usize,
        }
        unsafe extern "C" {
            fn dlinfo(handle: *mut c_void, request: i32, info: *mut c_void) -> i32;
            fn __tls_get_addr(index: *const Index) -> *mut u8;
        }
        let mut index = Index { module: 0, offset: 0 };
        // SAFETY: the library is open, the place for the number is valid, and the number belongs to an open library.
        unsafe {
            let result = dlinfo(self.0, RTLD_DI_TLS_MODID, (&raw mut index.module).cast());
            if result != 0 || index.module == 0 { ptr::null_mut() } else { __tls_get_addr(&index) }
        }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: `open` has opened the library, and it is closed only here. Functions keep it alive.
        unsafe { libc::dlclose(self.0) };
    }
}

/// Temporary file, which is removed when this value is dropped.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A loaded program.
pub struct Module {
    functions: HashMap<String, Arc<Function>>,
    /// By name, the size of each variable.
    variables: HashMap<String, usize>,
    library: Arc<Library>,
}

/// A kernel of a program.
pub struct Function {
    pub name: String,
    /// Launch bound of the kernel, or 1024.
    pub max_threads_per_block: u32,
    /// Blocks per multiprocessor that the launch bounds request; 0 if they request none.
    pub min_blocks: u32,
    /// Registers per thread that the launch bounds allow, at most 64. The host's compiler gives no such number.
    pub registers: u32,
    /// Bytes of the `__shared__` variables in this kernel and in the functions of its program.
    pub static_shared_bytes: u32,
    pub local_bytes: u32,
    pub parameter_sizes: Vec<usize>,
    pub parameter_offsets: Vec<usize>,
    /// Number of bytes of all parameters together.
    pub argument_bytes: usize,
    pub(super) call: unsafe extern "C" fn(*const u8),
    /// Bytes of all `__shared__` variables of the program, which are contiguous.
    pub(super) all_shared_bytes: usize,
    pub(super) library: Arc<Library>,
}

impl Module {
    /// Loads an image.
    ///
    /// # Errors
    ///
    /// The bytes are not an image, or the system's loader refuses the image.
    pub fn load(image: &[u8]) -> Result<Self, LoadError> {
        let head = IMAGE_MAGIC.len() + 8;
        if image.len() <= head || !image.starts_with(IMAGE_MAGIC) {
            return Err(LoadError::NotAnImage);
        }
        let length = u64::from_le_bytes(image[IMAGE_MAGIC.len()..head].try_into().expect("8 bytes"));
        let object = usize::try_from(length).ok().and_then(|length| image.get(head..length.checked_sub(1)?));
        let object = object.ok_or(LoadError::NotAnImage)?;
        let symbols = Symbols::read(object)?;
        let library = Arc::new(Library::open(object)?);
        let describe = library.symbol(c"warpset_device_describe");
        if describe.is_null() {
            return Err(LoadError::NotAnImage);
        }
        let mut description = Description { first: ptr::null(), last: ptr::null(), runtime: ptr::null_mut() };
        // SAFETY: runtime/words.h defines the function with this type. The kernels are an array that lives as long as the
        // library. The functions that kernels call are set before any kernel runs.
        let entries = unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut Description)>(describe)(&mut description);
            description.runtime.write(&RUNTIME);
            match description.last.offset_from(description.first) {
                0 => &[],
                count => slice::from_raw_parts(description.first, count as usize),
            }
        };
        let names: Vec<String> = entries.iter().map(Entry::name).collect();
        let functions = entries.iter().zip(&names).map(|(entry, name)| {
            let static_shared_bytes = symbols.shared_bytes(name, &names);
            (name.clone(), Arc::new(Function::new(entry, name, static_shared_bytes, symbols.all_shared_bytes, &library)))
        });
        Ok(Self { functions: functions.collect(), variables: symbols.variables, library })
    }

    /// Finds a kernel by its name: the name in the source if the kernel is `extern "C"`, otherwise the mangled name.
    pub fn function(&self, name: &CStr) -> Option<Arc<Function>> {
        self.functions.get(name.to_str().ok()?).cloned()
    }

    /// All kernels.
    pub fn functions(&self) -> impl Iterator<Item = &Arc<Function>> {
        self.functions.values()
    }

    /// Returns the address and size of a variable. It is in memory of the program, which lives as long as the module or one of
    /// its functions.
    pub fn global(&self, name: &CStr) -> Option<(*mut u8, usize)> {
        let bytes = *self.variables.get(name.to_str().ok()?)?;
        let address = self.library.symbol(name).cast::<u8>();
        (!address.is_null()).then_some((address, bytes))
    }
}

/// Symbols of an object.
struct Symbols {
    variables: HashMap<String, usize>,
    /// Name and size of each `__shared__` variable, and the size of all of them together.
    shared: Vec<(String, u64)>,
    all_shared_bytes: usize,
}

impl Symbols {
    fn read(object: &[u8]) -> Result<Self, LoadError> {
        let file = object::File::parse(object).map_err(|error| LoadError::Refused(error.to_string()))?;
        let named = |symbol: &object::Symbol<'_, '_>| Some((symbol.name().ok()?.to_owned(), symbol.size()));
        let variables = file.dynamic_symbols().filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Data);
        let of_blocks = || file.symbols().filter(|symbol| !symbol.is_undefined() && symbol.kind() == SymbolKind::Tls);
        let shared: Vec<_> = of_blocks().filter_map(|symbol| named(&symbol)).collect();
        let all_shared_bytes = of_blocks().map(|symbol| symbol.address() + symbol.size()).max().unwrap_or(0) as usize;
        let variables = variables.filter_map(|symbol| named(&symbol)).map(|(name, bytes)| (name, bytes as usize)).collect();
        Ok(Self { variables, shared, all_shared_bytes })
    }

    /// Bytes of the `__shared__` variables that belong to this kernel or to no kernel.
    fn shared_bytes(&self, kernel: &str, kernels: &[String]) -> u64 {
        let belongs = |variable: &str, kernel: &str| {
            let mangled = kernel.strip_prefix("_Z");
            let inside = mangled.map_or_else(|| format!("_ZZ{}{kernel}E", kernel.len()), |mangled| format!("_ZZ{mangled}E"));
            variable.starts_with(&inside)
        };
        let is_others = |variable: &str| kernels.iter().any(|other| *other != kernel && belongs(variable, other));
        self.shared.iter().filter(|(variable, _)| !is_others(variable)).map(|(_, bytes)| bytes).sum()
    }
}

impl Function {
    fn new(entry: &Entry, name: &str, static_shared_bytes: u64, all_shared_bytes: usize, library: &Arc<Library>) -> Self {
        let count = entry.parameters as usize;
        // SAFETY: the arrays belong to the program and have the length that it states.
        let (sizes, offsets) =
            unsafe { (slice::from_raw_parts(entry.sizes, count), slice::from_raw_parts(entry.offsets, count)) };
        let max_threads_per_block = if entry.threads == 0 { 1024 } else { entry.threads.min(1024) };
        let bounded = max_threads_per_block * entry.blocks.max(1);
        Self {
            max_threads_per_block,
            min_blocks: entry.blocks,
            registers: (65536 / bounded.max(1) / 8 * 8).clamp(16, 64),
            static_shared_bytes: static_shared_bytes as u32,
            local_bytes: 0,
            parameter_sizes: sizes.iter().map(|bytes| *bytes as usize).collect(),
            parameter_offsets: offsets.iter().map(|bytes| *bytes as usize).collect(),
            argument_bytes: entry.bytes as usize,
            call: entry.call,
            all_shared_bytes,
            library: library.clone(),
            name: name.to_owned(),
        }
    }
}

/// Returns the name of the symbol that begins at an address.
fn symbol_at(address: *const c_void) -> Option<String> {
    // SAFETY: all zeros are a valid value of this struct.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be passed. Names live as long as their library.
    unsafe {
        let found = libc::dladdr(address, &mut info) != 0 && info.dli_saddr.cast_const() == address && !info.dli_sname.is_null();
        found.then(|| CStr::from_ptr(info.dli_sname).to_string_lossy().into_owned())
    }
}
