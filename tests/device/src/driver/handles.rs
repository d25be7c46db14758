//! Handles: numbers for contexts, streams, events, modules and functions.

use super::report;
use std::any::type_name;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// Upper bits of every handle. No address of a program has them, so that using a handle as a pointer faults.
const MARK: usize = 0x00DE_0000_0000_0000;

/// Objects of one kind, by their handles.
pub struct Handles<T>(Mutex<Option<HashMap<usize, Arc<T>>>>);

/// Returns a number that no other handle has.
pub fn new_handle() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    // Relaxed: only the uniqueness of the number matters.
    MARK + 16 * NEXT.fetch_add(1, Ordering::Relaxed)
}

impl<T> Handles<T> {
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    fn lock(&self) -> MutexGuard<'_, Option<HashMap<usize, Arc<T>>>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn insert(&self, handle: usize, thing: Arc<T>) {
        self.lock().get_or_insert_default().insert(handle, thing);
    }

    /// Returns the object of a handle. If the handle is invalid or destroyed, ends the process, because the behaviour of the real
    /// driver would be undefined.
    pub fn get(&self, handle: usize) -> Arc<T> {
        self.find(handle).unwrap_or_else(|| Self::unknown(handle))
    }

    pub fn find(&self, handle: usize) -> Option<Arc<T>> {
        self.lock().as_ref().and_then(|things| things.get(&handle)).cloned()
    }

    /// Destroys a handle and returns its object.
    pub fn remove(&self, handle: usize) -> Arc<T> {
        let thing = self.lock().as_mut().and_then(|things| things.remove(&handle));
        thing.unwrap_or_else(|| Self::unknown(handle))
    }

    pub fn all(&self) -> Vec<Arc<T>> {
        self.lock().as_ref().map_or_else(Vec::new, |things| things.values().cloned().collect())
    }

    fn unknown(handle: usize) -> ! {
        let name = type_name::<T>().rsplit("::").next().unwrap_or_default().to_lowercase();
        report::end(&format!("{handle:#x} is no {name}, or one that was destroyed"))
    }
}
