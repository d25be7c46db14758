//! Calls of the simulated device (`tests/device`) that fail on request.

use libloading::os::unix::{Library, RTLD_NOW};
use std::ffi::{CString, c_char};

/// Functions of the simulated driver that NVIDIA's does not have.
pub struct Faults {
    library: Library,
}

impl Faults {
    /// `None` if the driver is NVIDIA's.
    pub fn find() -> Option<Self> {
        // SAFETY: opens the driver, which is loaded already.
        let library = unsafe { Library::open(Some("libcuda.so.1"), RTLD_NOW) }.ok()?;
        // SAFETY: the symbol is only looked up.
        unsafe { library.get::<unsafe extern "C" fn(*const c_char) -> i32>(b"warpset_device_fail\0") }.ok()?;
        Some(Self { library })
    }

    /// Sets which calls fail, in the format of `tests/device/src/driver/fault.rs`, and restarts the count of calls at 1.
    pub fn set(&self, plans: &str) {
        let plans = CString::new(plans).unwrap();
        // SAFETY: the function has this type (`tests/device/src/driver/fault.rs`); the text ends in zero.
        let status = unsafe {
            let set = self.library.get::<unsafe extern "C" fn(*const c_char) -> i32>(b"warpset_device_fail\0").unwrap();
            set(plans.as_ptr())
        };
        assert_eq!(status, 0, "{plans:?}");
    }

    /// Number of calls of a function since the plans were last set.
    pub fn calls(&self, function: &str) -> u64 {
        let function = CString::new(function).unwrap();
        // SAFETY: as above.
        unsafe {
            let calls = self.library.get::<unsafe extern "C" fn(*const c_char) -> u64>(b"warpset_device_calls\0").unwrap();
            calls(function.as_ptr())
        }
    }
}
