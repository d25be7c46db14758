//! Events.

use super::call::{Answer, put};
use super::context::{self, Context};
use super::fault::{self, Change};
use super::handles::{Handles, new_handle};
use super::stream::{self, Ticket};
use cudarc::driver::sys::{CUevent, CUresult, CUstream};
use std::ffi::c_uint;
use std::sync::{Arc, Mutex};

pub static EVENTS: Handles<Event> = Handles::new();

/// `CU_EVENT_DISABLE_TIMING`.
const DISABLE_TIMING: u32 = 2;

pub struct Event {
    context: Arc<Context>,
    timed: bool,
    /// Ticket of the last record.
    recorded: Mutex<Option<Arc<Ticket>>>,
}

impl Event {
    pub fn ticket(&self) -> Option<Arc<Ticket>> {
        self.recorded.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }
}

fn elapsed(place: *mut f32, start: CUevent, end: CUevent) -> Answer {
    context::current()?;
    let (start, end) = (EVENTS.get(start as usize), EVENTS.get(end as usize));
    let (Some(first), Some(last)) = (start.ticket(), end.ticket()) else {
        return Err(CUresult::CUDA_ERROR_INVALID_HANDLE);
    };
    if !start.timed || !end.timed {
        return Err(CUresult::CUDA_ERROR_INVALID_HANDLE);
    }
    let (Some(first), Some(last)) = (first.passed(), last.passed()) else {
        return Err(CUresult::CUDA_ERROR_NOT_READY);
    };
    let milliseconds = match last.checked_duration_since(first) {
        Some(after) => after.as_secs_f32() * 1000.0,
        None => -(first - last).as_secs_f32() * 1000.0,
    };
    // SAFETY: the caller keeps the conditions that the driver documents.
    unsafe { put(place, milliseconds) }
}

functions! {
    fn cuEventCreate(place: *mut CUevent, flags: c_uint) {
        let event = Event { context: context::current()?, timed: flags & DISABLE_TIMING == 0, recorded: Mutex::default() };
        let handle = new_handle();
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, handle as CUevent) }?;
        EVENTS.insert(handle, Arc::new(event));
    }

    fn cuEventDestroy_v2(event: CUevent) {
        context::current()?;
        EVENTS.remove(event as usize);
    }

    fn cuEventRecord(event: CUevent, stream: CUstream) {
        let (event, stream) = (EVENTS.get(event as usize), stream::of(stream)?);
        if event.context.handle != stream.context.handle {
            return Err(CUresult::CUDA_ERROR_INVALID_HANDLE);
        }
        stream.context.check()?;
        if fault::change() == Change::Early {
            let ticket = stream.early_ticket();
            *event.recorded.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(ticket);
            return Ok(());
        }
        // The operation also makes the stream keep the order with the default stream.
        stream.enqueue("the record of an event", |_, _, _| (), || Ok(()))?;
        let ticket = stream.ticket();
        *event.recorded.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(ticket);
    }

    fn cuEventQuery(event: CUevent) {
        let event = EVENTS.get(event as usize);
        event.context.check()?;
        if event.ticket().is_some_and(|ticket| ticket.passed().is_none()) {
            return Err(CUresult::CUDA_ERROR_NOT_READY);
        }
    }

    fn cuEventSynchronize(event: CUevent) {
        let event = EVENTS.get(event as usize);
        event.context.check()?;
        if let Some(ticket) = event.ticket() {
            ticket.wait();
        }
        event.context.check()?;
    }

    fn cuEventElapsedTime(place: *mut f32, start: CUevent, end: CUevent) {
        elapsed(place, start, end)?;
    }

    fn cuEventElapsedTime_v2(place: *mut f32, start: CUevent, end: CUevent) {
        elapsed(place, start, end)?;
    }
}
