//! An NVRTC that compiles for the CPU: the functions of `libnvrtc.so`, with the same names.

mod cache;
mod options;
mod program;
mod ptx;
#[cfg(test)]
pub(crate) mod tests;
mod translation;

use crate::driver::fault;
use cache::Cache;
use cudarc::driver::sys::CUresult;
use options::{ARCHITECTURES, Options};
use program::{Outcome, Program};
use std::ffi::{CStr, CString, c_char, c_int};
use std::{ptr, slice};

/// `nvrtcResult`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Status {
    Success = 0,
    OutOfMemory = 1,
    ProgramCreationFailure = 2,
    InvalidInput = 3,
    InvalidProgram = 4,
    InvalidOption = 5,
    Compilation = 6,
    BuiltinOperationFailure = 7,
    NoNameExpressionsAfterCompilation = 8,
    NoLoweredNamesBeforeCompilation = 9,
    NameExpressionNotValid = 10,
    InternalError = 11,
}

/// Version that `nvrtcVersion` reports. No real NVRTC has this version, so a kernel cache never mixes these images with images
/// for a GPU.
pub const VERSION: (c_int, c_int) = (13, 99);

/// `nvrtcProgram`.
#[allow(non_camel_case_types)]
pub struct _nvrtcProgram {
    program: Program,
    /// Log of the last compilation.
    log: CString,
    compiled: Option<Compiled>,
    was_compiled: bool,
}

struct Compiled {
    image: Vec<u8>,
    is_real: bool,
}

type Handle = *mut _nvrtcProgram;

/// Counts a call. Returns the error with which a test wants the call to fail (`driver::fault`).
fn refused(function: &'static str) -> Option<Status> {
    match fault::inject(function) {
        Ok(()) => None,
        Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY) => Some(Status::OutOfMemory),
        Err(_) => Some(Status::InternalError),
    }
}

/// Calls a function. A panic does not unwind into the caller.
fn guarded(call: impl FnOnce() -> Status) -> Status {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).unwrap_or(Status::InternalError)
}

/// # Safety
///
/// As for NVIDIA's `nvrtcVersion`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) -> Status {
    if let Some(status) = refused("nvrtcVersion") {
        return status;
    }
    if major.is_null() || minor.is_null() {
        return Status::InvalidInput;
    }
    // SAFETY: the pointers are not null, and the caller guarantees that they are valid.
    unsafe { (*major, *minor) = VERSION };
    Status::Success
}

/// # Safety
///
/// As for NVIDIA's `nvrtcGetNumSupportedArchs`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetNumSupportedArchs(count: *mut c_int) -> Status {
    if let Some(status) = refused("nvrtcGetNumSupportedArchs") {
        return status;
    }
    if count.is_null() {
        return Status::InvalidInput;
    }
    // SAFETY: the pointer is not null, and the caller guarantees that it is valid.
    unsafe { *count = ARCHITECTURES.len() as c_int };
    Status::Success
}

/// # Safety
///
/// As for NVIDIA's `nvrtcGetSupportedArchs`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetSupportedArchs(architectures: *mut c_int) -> Status {
    if let Some(status) = refused("nvrtcGetSupportedArchs") {
        return status;
    }
    if architectures.is_null() {
        return Status::InvalidInput;
    }
    // SAFETY: the caller's array has as many elements as the function above returns.
    let room = unsafe { slice::from_raw_parts_mut(architectures, ARCHITECTURES.len()) };
    room.copy_from_slice(&ARCHITECTURES.map(|number| number as c_int));
    Status::Success
}

/// # Safety
///
/// As for NVIDIA's `nvrtcCreateProgram`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcCreateProgram(
    program: *mut Handle,
    source: *const c_char,
    name: *const c_char,
    header_count: c_int,
    headers: *const *const c_char,
    include_names: *const *const c_char,
) -> Status {
    if let Some(status) = refused("nvrtcCreateProgram") {
        return status;
    }
    let arrays_missing = header_count > 0 && (headers.is_null() || include_names.is_null());
    if program.is_null() || source.is_null() || header_count < 0 || arrays_missing {
        return Status::InvalidInput;
    }
    guarded(|| {
        // SAFETY: the caller guarantees that the texts end in zero, and that each array has `header_count` of them.
        let made = unsafe {
            let bytes = |text: *const c_char| CStr::from_ptr(text).to_bytes().to_vec();
            let words = |text: *const c_char| CStr::from_ptr(text).to_string_lossy().into_owned();
            let header = |at: usize| (words(*include_names.add(at)), bytes(*headers.add(at)));
            let name = if name.is_null() { "default_program".into() } else { words(name) };
            Program { name, source: bytes(source), headers: (0..header_count as usize).map(header).collect() }
        };
        let made = Box::new(_nvrtcProgram { program: made, log: CString::default(), compiled: None, was_compiled: false });
        // SAFETY: the pointer is not null, and the caller guarantees that it is valid.
        unsafe { *program = Box::into_raw(made) };
        Status::Success
    })
}

/// # Safety
///
/// As for NVIDIA's `nvrtcDestroyProgram`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcDestroyProgram(program: *mut Handle) -> Status {
    if let Some(status) = refused("nvrtcDestroyProgram") {
        return status;
    }
    // SAFETY: the caller guarantees a handle of `nvrtcCreateProgram` that is destroyed only once.
    unsafe {
        if program.is_null() || (*program).is_null() {
            return Status::InvalidProgram;
        }
        drop(Box::from_raw(*program));
        *program = ptr::null_mut();
    }
    Status::Success
}

/// # Safety
///
/// As for NVIDIA's `nvrtcCompileProgram`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcCompileProgram(program: Handle, count: c_int, options: *const *const c_char) -> Status {
    if let Some(status) = refused("nvrtcCompileProgram") {
        return status;
    }
    // SAFETY: the caller guarantees a live handle that only one thread uses at a time.
    let Some(program) = (unsafe { program.as_mut() }) else { return Status::InvalidProgram };
    if count < 0 || (count > 0 && options.is_null()) {
        return Status::InvalidInput;
    }
    guarded(|| {
        // SAFETY: the caller guarantees `count` texts that end in zero.
        let text = |at: usize| unsafe { CStr::from_ptr(*options.add(at)) }.to_string_lossy().into_owned();
        let options: Vec<String> = (0..count as usize).map(text).collect();
        (program.compiled, program.was_compiled) = (None, true);
        let (status, log) = match Options::read(&options) {
            Err(log) => (Status::InvalidOption, log),
            Ok(options) => match program.program.compile(&options, Cache::in_use().as_ref()) {
                (Outcome::Image(image), log) => {
                    program.compiled = Some(Compiled { image, is_real: options.is_real });
                    (Status::Success, log)
                }
                (Outcome::Errors, log) => (Status::Compilation, log),
                (Outcome::Broken, log) => (Status::InternalError, log),
            },
        };
        program.log = CString::new(log.replace('\0', " ")).expect("without zeros");
        status
    })
}

/// Writes the size of an output of a program.
///
/// # Safety
///
/// The program must be live, and `size` null or valid.
unsafe fn size_of_part(program: Handle, size: *mut usize, part: impl FnOnce(&_nvrtcProgram) -> Option<usize>) -> Status {
    // SAFETY: the caller keeps the conditions of this function.
    let Some(program) = (unsafe { program.as_ref() }) else { return Status::InvalidProgram };
    match part(program) {
        _ if size.is_null() => Status::InvalidInput,
        // SAFETY: the pointer is not null.
        Some(bytes) => unsafe {
            *size = bytes;
            Status::Success
        },
        None => Status::InvalidProgram,
    }
}

/// Copies an output of a program to the caller's memory.
///
/// # Safety
///
/// The program must be live, and `to` null or large enough.
unsafe fn copy_part(program: Handle, to: *mut c_char, part: impl FnOnce(&_nvrtcProgram) -> Option<&[u8]>) -> Status {
    // SAFETY: the caller keeps the conditions of this function.
    let Some(program) = (unsafe { program.as_ref() }) else { return Status::InvalidProgram };
    match part(program) {
        _ if to.is_null() => Status::InvalidInput,
        // SAFETY: the caller has asked for the size before and provides that many bytes.
        Some(bytes) => unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), bytes.len());
            Status::Success
        },
        None => Status::InvalidProgram,
    }
}

/// Returns the PTX of the last compilation. Every successful compilation has one.
fn ptx(program: &_nvrtcProgram) -> Option<&[u8]> {
    program.compiled.as_ref().map(|compiled| compiled.image.as_slice())
}

/// Returns the CUBIN of the last compilation. It is empty for a virtual architecture.
fn cubin(program: &_nvrtcProgram) -> Option<&[u8]> {
    program.compiled.as_ref().map(|compiled| if compiled.is_real { compiled.image.as_slice() } else { &[] })
}

fn log(program: &_nvrtcProgram) -> Option<&[u8]> {
    Some(program.log.as_bytes_with_nul())
}

macro_rules! part {
    ($size:ident, $get:ident, $part:expr) => {
        /// # Safety
        ///
        /// As for NVIDIA's function with this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $size(program: Handle, size: *mut usize) -> Status {
            if let Some(status) = refused(stringify!($size)) {
                return status;
            }
            let part: fn(&_nvrtcProgram) -> Option<&[u8]> = $part;
            // SAFETY: the caller keeps the conditions of this function.
            unsafe { size_of_part(program, size, |program| part(program).map(<[u8]>::len)) }
        }

        /// # Safety
        ///
        /// As for NVIDIA's function with this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $get(program: Handle, to: *mut c_char) -> Status {
            if let Some(status) = refused(stringify!($get)) {
                return status;
            }
            let part: fn(&_nvrtcProgram) -> Option<&[u8]> = $part;
            // SAFETY: the caller keeps the conditions of this function.
            unsafe { copy_part(program, to, part) }
        }
    };
}

part!(nvrtcGetProgramLogSize, nvrtcGetProgramLog, log);
part!(nvrtcGetPTXSize, nvrtcGetPTX, ptx);
part!(nvrtcGetCUBINSize, nvrtcGetCUBIN, cubin);
// These outputs do not exist: `Options::read` refuses the options that request them.
part!(nvrtcGetLTOIRSize, nvrtcGetLTOIR, |_| None);
part!(nvrtcGetOptiXIRSize, nvrtcGetOptiXIR, |_| None);

/// # Safety
///
/// As for NVIDIA's `nvrtcAddNameExpression`. The call always fails, because names of template instances are not supported here.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcAddNameExpression(program: Handle, _: *const c_char) -> Status {
    // SAFETY: the caller guarantees a live handle.
    match unsafe { program.as_ref() } {
        None => Status::InvalidProgram,
        Some(program) if program.was_compiled => Status::NoNameExpressionsAfterCompilation,
        Some(_) => Status::NameExpressionNotValid,
    }
}

/// # Safety
///
/// As for NVIDIA's `nvrtcGetLoweredName`. The call always fails, because name expressions are not supported.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcGetLoweredName(program: Handle, _: *const c_char, _: *mut *const c_char) -> Status {
    // SAFETY: the caller guarantees a live handle.
    match unsafe { program.as_ref() } {
        None => Status::InvalidProgram,
        Some(program) if !program.was_compiled => Status::NoLoweredNamesBeforeCompilation,
        Some(_) => Status::NameExpressionNotValid,
    }
}

/// Returns NVRTC's name of a status.
#[unsafe(no_mangle)]
pub extern "C" fn nvrtcGetErrorString(status: c_int) -> *const c_char {
    const NAMES: [&CStr; 12] = [
        c"NVRTC_SUCCESS",
        c"NVRTC_ERROR_OUT_OF_MEMORY",
        c"NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
        c"NVRTC_ERROR_INVALID_INPUT",
        c"NVRTC_ERROR_INVALID_PROGRAM",
        c"NVRTC_ERROR_INVALID_OPTION",
        c"NVRTC_ERROR_COMPILATION",
        c"NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
        c"NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
        c"NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
        c"NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
        c"NVRTC_ERROR_INTERNAL_ERROR",
    ];
    usize::try_from(status).ok().and_then(|status| NAMES.get(status)).unwrap_or(&c"NVRTC_ERROR unknown").as_ptr()
}
