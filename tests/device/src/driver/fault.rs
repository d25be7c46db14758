//! Calls that fail on purpose.
//!
//! `WARPSET_SIMULATED_FAULT` holds entries `function:number=error`, separated by commas. The call of the function with this
//! number (from 1) fails and has no effect. With `number+`, all later calls fail, too. Functions of NVRTC fail with `memory` or,
//! for any other error in this table, with `NVRTC_ERROR_INTERNAL_ERROR`. Errors:
//!
//! | error | effect |
//! |---|---|
//! | `memory` | `CUDA_ERROR_OUT_OF_MEMORY` |
//! | `launch` | `CUDA_ERROR_LAUNCH_FAILED`; the context of the calling thread stays unusable |
//! | `lost` | `CUDA_ERROR_DEVICE_UNAVAILABLE`; the device of the calling thread's context stays lost |
//! | `unknown` | `CUDA_ERROR_UNKNOWN`, once |
//! | `hangs` | the call succeeds, but the device does nothing any more |
//! | `skipped` | the call does nothing, and says that it succeeded |
//! | `short`, `long` | a copy is one byte shorter, or longer |
//! | `half` | an allocation, a copy or a fill has half of its bytes |
//! | `shifted` | a copy begins four bytes behind the start of its device memory, and ends where it should |
//! | `late` | the stream takes 5 ms longer to come to a copy; source and target are read and written then |
//! | `elsewhere` | the operation is put on the default stream |
//! | `early` | an event is recorded in front of the stream's last operation |
//! | `twice` | a kernel runs twice |
//! | `swapped` | the first two arguments of a kernel that have one size and different values are swapped |
//! | `other` | the context of another device becomes the current one |
//!
//! Entries from `skipped` on stand for mistakes of the program, which its tests must find. `late` alone is not a mistake: it
//! makes other mistakes visible that depend on time.
//!
//! A test in the same process uses `warpset_device_fail`, which takes entries in this form, and `warpset_device_calls`.

use super::call::Answer;
use super::{context, report};
use cudarc::driver::sys::CUresult;
use std::cell::Cell;
use std::collections::HashMap;
use std::env;
use std::ffi::{CStr, c_char};
use std::sync::{Mutex, OnceLock};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DriverFault {
    Memory,
    Launch,
    Lost,
    Unknown,
    Hangs,
    Skipped,
    Short,
    Long,
    Half,
    Shifted,
    Late,
    Elsewhere,
    Early,
    Twice,
    Swapped,
    Other,
}

/// How a call deviates from its normal behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    None,
    Skipped,
    Short,
    Long,
    Half,
    Shifted,
    Late,
    Elsewhere,
    Early,
    Twice,
    Swapped,
    Other,
}

thread_local! {
    /// How this thread's current call deviates.
    static CHANGE: Cell<Change> = const { Cell::new(Change::None) };
}

/// Returns how this thread's current call deviates.
pub fn change() -> Change {
    CHANGE.get()
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct PlannedFault {
    function: String,
    first: u64,
    all_later: bool,
    kind: DriverFault,
}

#[derive(Default)]
struct State {
    plans: Vec<PlannedFault>,
    /// Number of calls of each function so far.
    calls: HashMap<&'static str, u64>,
}

fn parse(text: &str) -> Option<Vec<PlannedFault>> {
    let entry = |entry: &str| {
        let (place, kind) = entry.split_once('=')?;
        let (function, number) = place.split_once(':')?;
        let (number, all_later) = number.strip_suffix('+').map_or((number, false), |number| (number, true));
        let kind = match kind.trim() {
            "memory" => DriverFault::Memory,
            "launch" => DriverFault::Launch,
            "lost" => DriverFault::Lost,
            "unknown" => DriverFault::Unknown,
            "hangs" => DriverFault::Hangs,
            "skipped" => DriverFault::Skipped,
            "short" => DriverFault::Short,
            "long" => DriverFault::Long,
            "half" => DriverFault::Half,
            "shifted" => DriverFault::Shifted,
            "late" => DriverFault::Late,
            "elsewhere" => DriverFault::Elsewhere,
            "early" => DriverFault::Early,
            "twice" => DriverFault::Twice,
            "swapped" => DriverFault::Swapped,
            "other" => DriverFault::Other,
            _ => return None,
        };
        let first = number.trim().parse().ok().filter(|first| *first > 0)?;
        Some(PlannedFault { function: function.trim().into(), first, all_later, kind })
    };
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(entry).collect()
}

fn state() -> &'static Mutex<State> {
    static STATE: OnceLock<Mutex<State>> = OnceLock::new();
    STATE.get_or_init(|| {
        let text = env::var("WARPSET_SIMULATED_FAULT").unwrap_or_default();
        let plans = parse(&text);
        let plans =
            plans.unwrap_or_else(|| report::end(&format!("WARPSET_SIMULATED_FAULT is {text:?}, which is not understood")));
        Mutex::new(State { plans, ..State::default() })
    })
}

/// Counts a call. Returns an error if the plans make it fail. Otherwise sets the result of `change`, which is valid until the
/// next call of this thread.
pub fn inject(function: &'static str) -> Answer {
    CHANGE.set(Change::None);
    let kind = {
        let mut state = state().lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let calls = state.calls.entry(function).or_default();
        *calls += 1;
        let number = *calls;
        let struck =
            |plan: &&PlannedFault| plan.function == function && (plan.first == number || plan.all_later && plan.first < number);
        state.plans.iter().find(struck).map(|plan| plan.kind)
    };
    match kind {
        None => Ok(()),
        Some(DriverFault::Memory) => Err(CUresult::CUDA_ERROR_OUT_OF_MEMORY),
        Some(DriverFault::Unknown) => Err(CUresult::CUDA_ERROR_UNKNOWN),
        Some(DriverFault::Launch) => {
            let status = CUresult::CUDA_ERROR_LAUNCH_FAILED;
            context::break_current(status, false);
            Err(status)
        }
        Some(DriverFault::Lost) => {
            let status = CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE;
            context::break_current(status, true);
            Err(status)
        }
        Some(DriverFault::Hangs) => {
            context::hang_current();
            Ok(())
        }
        Some(DriverFault::Skipped) => changed(Change::Skipped),
        Some(DriverFault::Short) => changed(Change::Short),
        Some(DriverFault::Long) => changed(Change::Long),
        Some(DriverFault::Half) => changed(Change::Half),
        Some(DriverFault::Shifted) => changed(Change::Shifted),
        Some(DriverFault::Late) => changed(Change::Late),
        Some(DriverFault::Elsewhere) => changed(Change::Elsewhere),
        Some(DriverFault::Early) => changed(Change::Early),
        Some(DriverFault::Twice) => changed(Change::Twice),
        Some(DriverFault::Swapped) => changed(Change::Swapped),
        Some(DriverFault::Other) => changed(Change::Other),
    }
}

/// Lets this thread's current call succeed, but makes it deviate by `change`.
fn changed(change: Change) -> Answer {
    CHANGE.set(change);
    Ok(())
}

/// Number of calls of a function since the plans were last set.
///
/// # Safety
///
/// `function` must end in zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_device_calls(function: *const c_char) -> u64 {
    // SAFETY: the caller keeps the conditions of this function.
    let function = unsafe { CStr::from_ptr(function) }.to_string_lossy();
    let state = state().lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    state.calls.get(&*function).copied().unwrap_or(0)
}

/// Replaces the plans by those in a text, and counts calls from 1 again. Returns 0, or 1 if the text is not valid.
///
/// # Safety
///
/// `text` must end in zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_device_fail(text: *const c_char) -> i32 {
    // SAFETY: the caller keeps the conditions of this function.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let Some(plans) = parse(&text) else { return 1 };
    *state().lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = State { plans, ..State::default() };
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_parsed() {
        let plan = |function: &str, first, all_later, kind| PlannedFault { function: function.into(), first, all_later, kind };
        assert_eq!(
            parse("cuMemAlloc_v2:3=memory, cuLaunchKernel:1+=lost").unwrap(),
            [plan("cuMemAlloc_v2", 3, false, DriverFault::Memory), plan("cuLaunchKernel", 1, true, DriverFault::Lost)]
        );
        assert_eq!(parse("").unwrap(), []);
        for wrong in ["cuInit", "cuInit:0=memory", "cuInit:1=nothing", "cuInit:x=memory"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
