//! The code with which every driver call begins.

use super::{fault, report};
use cudarc::driver::sys::CUresult;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Result of a function. The error is the status that the caller gets.
pub type Answer = Result<(), CUresult>;

/// Runs the body of an exported function. Fails the call if a test has asked for that. Ends the process if the body panics,
/// because a panic must not unwind into the caller's code.
pub fn call(name: &'static str, body: impl FnOnce() -> Answer) -> CUresult {
    let run = || {
        fault::inject(name)?;
        if fault::change() == fault::Change::Skipped { Ok(()) } else { body() }
    };
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => CUresult::CUDA_SUCCESS,
        Ok(Err(status)) => status,
        Err(_) => report::end(&format!("{name} panicked: a mistake of the simulated device")),
    }
}

/// Defines exported functions of the driver.
macro_rules! functions {
    ($($(#[$meta:meta])* fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $body:block)*) => {
        $(
            $(#[$meta])*
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $kind),*) -> cudarc::driver::sys::CUresult {
                $crate::driver::call::call(stringify!($name), || {
                    $body
                    #[allow(unreachable_code)]
                    Ok(())
                })
            }
        )*
    };
}

/// Writes a result to the caller's memory. Returns `CUDA_ERROR_INVALID_VALUE` if `place` is null.
///
/// # Safety
///
/// `place` must be null, or valid for a `T`.
pub unsafe fn put<T>(place: *mut T, value: T) -> Answer {
    if place.is_null() {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    // SAFETY: the caller keeps the conditions of this function.
    unsafe { place.write(value) };
    Ok(())
}
