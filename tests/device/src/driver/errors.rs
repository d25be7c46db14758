//! Names and texts of errors, and the version of the driver.

use super::call::put;
use cudarc::driver::sys::CUresult;
use std::collections::HashMap;
use std::ffi::{CString, c_char, c_int};
use std::sync::{LazyLock, Mutex};

/// Version CUDA 13.0, with a last digit that no driver has. So kernels that were compiled for the simulated device are never used
/// on a GPU.
pub const DRIVER_VERSION: i32 = 13009;

/// Returns the status with this number. The number must be that of a status.
pub fn of_number(number: u32) -> CUresult {
    use CUresult::*;
    let known = [
        CUDA_ERROR_OUT_OF_MEMORY,
        CUDA_ERROR_LAUNCH_FAILED,
        CUDA_ERROR_ILLEGAL_ADDRESS,
        CUDA_ERROR_DEVICE_UNAVAILABLE,
        CUDA_ERROR_ASSERT,
        CUDA_ERROR_LAUNCH_TIMEOUT,
        CUDA_ERROR_ILLEGAL_INSTRUCTION,
    ];
    known.into_iter().find(|status| *status as u32 == number).unwrap_or(CUDA_ERROR_UNKNOWN)
}

/// Returns a text that lives as long as the process.
fn leaked(text: String) -> *const c_char {
    static TEXTS: LazyLock<Mutex<HashMap<String, CString>>> = LazyLock::new(Mutex::default);
    let mut texts = TEXTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let text = texts.entry(text).or_insert_with_key(|text| CString::new(text.as_str()).expect("no zero bytes"));
    // The text of a `CString` is on the heap and does not move with its entry. No entry is ever removed.
    text.as_ptr()
}

functions! {
    fn cuGetErrorName(error: CUresult, text: *mut *const c_char) {
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(text, leaked(format!("{error:?}"))) }?;
    }

    fn cuGetErrorString(error: CUresult, text: *mut *const c_char) {
        let words = format!("{error:?}").trim_start_matches("CUDA_ERROR_").replace('_', " ").to_lowercase();
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(text, leaked(format!("{words} (simulated device)"))) }?;
    }

    fn cuDriverGetVersion(version: *mut c_int) {
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(version, DRIVER_VERSION) }?;
    }
}
