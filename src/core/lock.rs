//! The lock of a table: any number of threads share it, or one has it exclusively. It knows which threads hold it.
//!
//! A caller of the library may hold a guard for long: for example, in the value that [`Table::rows`](crate::Table::rows) returns,
//! or while a closure of the caller runs. With a plain lock, a call of that thread that needs the lock exclusively would wait for
//! ever. So would a call that shares it, if another thread waits for exclusive access. This lock prevents both:
//!
//! - A thread that holds the lock in any way and requests it exclusively gets [`Error::SelfDeadlock`].
//! - A thread that shares the lock may share it again at once, even if another thread waits for exclusive access.
//! - A thread that has the lock exclusively, and passes `&T` to a writer of the caller ([`Frozen`]), gets the error if it
//!   requests to share it.
//!
//! Other threads queue behind a thread that waits for exclusive access, so that it does not wait for ever.
//!
//! Guards are not `Send`: the thread that took a guard, and has it in its list of guards, also drops it. The list decides about
//! errors only. A dropped guard releases exactly what it acquired, so memory safety rests on `state` alone, even if a guard is
//! forgotten, or is dropped so late in the life of its thread that the list is gone.
//!
//! Cost: a compare-and-swap, a decrement, and a push and a pop of the thread's own list, 11 ns in all without contention (least
//! of 303 rounds on a cloud machine of 2 cores), as much as `std::sync::RwLock` takes. A batch takes one guard and keeps it until
//! its last search, unless the table must grow or relocate keys for it. With five guards, of 27 ns each before they were inlined,
//! an empty batch took 174 ns; it takes 98 ns now.

use crate::{Error, Result};
use std::cell::{RefCell, UnsafeCell};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A thread has the lock exclusively, and may change the value.
const ALONE: u64 = 1 << 63;
/// A thread has a `Frozen`, which excludes all others. It also counts among the threads that share the lock.
const CLOSED: u64 = 1 << 62;
/// At least one thread waits for exclusive access.
const WANTED: u64 = 1 << 61;
/// The bits below `WANTED` count the guards that share the lock.
const SHARED: u64 = WANTED - 1;

pub(crate) struct TableLock<T> {
    /// Unique among all locks of the process. An address is not: a later lock may have the same one.
    id: u64,
    state: AtomicU64,
    /// Number of threads that wait for exclusive access.
    waiting: Mutex<u64>,
    /// Notified when a waiting thread may proceed.
    changed: Condvar,
    value: UnsafeCell<T>,
}

// SAFETY: `state` lets several threads have `&T` at once, which needs `T: Sync`, or one of them `&mut T`, which needs `T: Send`.
unsafe impl<T: Send + Sync> Sync for TableLock<T> {}

// As for `std::sync::RwLock`: a panic while the lock was held leaves a usable value (`core::table` guarantees that).
impl<T> UnwindSafe for TableLock<T> {}
impl<T> RefUnwindSafe for TableLock<T> {}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Shared,
    Alone,
    Frozen,
}

/// A guard that the calling thread holds.
struct Held {
    lock: u64,
    /// Name of the operation that took the guard.
    call: &'static str,
    mode: Mode,
}

thread_local! {
    /// Guards of all locks that this thread holds. Nearly always none or one.
    static HELD: RefCell<Vec<Held>> = const { RefCell::new(Vec::new()) };
}

#[cfg(test)]
thread_local! {
    /// Number of times that this thread has shared a lock.
    pub(super) static SHARED_SO_FAR: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Runs `look` on the thread's guards. None if the thread is ending and has destroyed the list: then the guards are unknown.
#[inline]
fn held<R>(look: impl FnOnce(&mut Vec<Held>) -> R) -> Option<R> {
    HELD.try_with(|held| look(&mut held.borrow_mut())).ok()
}

impl<T> TableLock<T> {
    pub(crate) fn new(value: T) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        // Relaxed: only the uniqueness of the numbers matters.
        let id = LAST.fetch_add(1, Ordering::Relaxed);
        Self { id, state: AtomicU64::new(0), waiting: Mutex::new(0), changed: Condvar::new(), value: UnsafeCell::new(value) }
    }

    /// Shares the lock, for the operation `call`.
    ///
    /// # Errors
    ///
    /// [`Error::SelfDeadlock`] if this thread has it exclusively.
    pub(crate) fn share(&self, call: &'static str) -> Result<SharedGuard<'_, T>> {
        self.share_if(call, |mode| mode == Mode::Shared)
    }

    /// Shares the lock to look at the value. A thread that has a `Frozen` may do so, too.
    ///
    /// # Panics
    ///
    /// If this thread has an `Alone`, during which no code of a caller runs.
    pub(crate) fn look(&self) -> SharedGuard<'_, T> {
        self.share_if("a look at the table", |mode| mode != Mode::Alone).expect("no call looks at a table that it is changing")
    }

    #[inline]
    fn share_if(&self, call: &'static str, is_allowed: impl Fn(Mode) -> bool) -> Result<SharedGuard<'_, T>> {
        // One access to the thread's list both checks it for guards of this lock and adds the new one.
        let entered = held(|held| {
            let mut own = held.iter().filter(|guard| guard.lock == self.id).peekable();
            let again = own.peek().is_some();
            if let Some(other) = own.find(|guard| !is_allowed(guard.mode)) {
                return Err(Error::SelfDeadlock { call, held: other.call });
            }
            held.push(Held { lock: self.id, call, mode: Mode::Shared });
            Ok(again)
        });
        let again = entered.transpose()?.unwrap_or(false);
        // A thread that already has a guard keeps others from exclusive access. So it must not wait for threads that wait for
        // exclusive access.
        let barred = if again { ALONE } else { ALONE | CLOSED | WANTED };
        // Relaxed: the compare-and-swap checks the state again.
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            if state & barred != 0 {
                self.wait_while(barred);
                state = self.state.load(Ordering::Relaxed);
                continue;
            }
            // Acquire, paired with the release of the thread that had the lock exclusively: its changes are visible.
            match self.state.compare_exchange_weak(state, state + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => {
                    #[cfg(test)]
                    SHARED_SO_FAR.set(SHARED_SO_FAR.get() + 1);
                    return Ok(SharedGuard { lock: self, call, thread: PhantomData });
                }
                Err(now) => state = now,
            }
        }
    }

    /// Waits for exclusive access, for the operation `call`.
    ///
    /// # Errors
    ///
    /// [`Error::SelfDeadlock`] if this thread holds the lock already.
    pub(crate) fn take(&self, call: &'static str) -> Result<Alone<'_, T>> {
        self.check_not_held(call)?;
        if !self.try_enter_alone() {
            self.wait_alone();
        }
        Ok(self.alone(call))
    }

    /// Returns the error that `take` would return if this thread holds the lock.
    pub(crate) fn check_not_held(&self, call: &'static str) -> Result<()> {
        let newest = held(|held| held.iter().rev().find(|guard| guard.lock == self.id).map(|guard| guard.call));
        newest.flatten().map_or(Ok(()), |held| Err(Error::SelfDeadlock { call, held }))
    }

    /// Takes the lock exclusively, if no thread, including this one, holds it now.
    pub(crate) fn try_take(&self, call: &'static str) -> Option<Alone<'_, T>> {
        self.try_enter_alone().then(|| self.alone(call))
    }

    fn alone(&self, call: &'static str) -> Alone<'_, T> {
        held(|held| held.push(Held { lock: self.id, call, mode: Mode::Alone }));
        Alone { lock: self, call, thread: PhantomData }
    }

    fn try_enter_alone(&self) -> bool {
        // Acquire, paired with the releases of all previous holders: their writes and reads come before.
        self.state.compare_exchange(0, ALONE, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    fn wait_alone(&self) {
        let mut waiting = self.waiting();
        *waiting += 1;
        // Relaxed: a thread that releases the lock changes `state` either after this, and sees the bit, or before, and then the
        // compare-and-swap below sees the change.
        self.state.fetch_or(WANTED, Ordering::Relaxed);
        loop {
            // Keep the bit if others wait for exclusive access.
            let bit = if *waiting > 1 { WANTED } else { 0 };
            // Acquire: as in `try_enter_alone`.
            if self.state.compare_exchange(WANTED, ALONE | bit, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                *waiting -= 1;
                return;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    #[cold]
    fn wait_while(&self, barred: u64) {
        let mut waiting = self.waiting();
        // Relaxed: a thread that releases the lock clears the bits before it takes the mutex to notify. So the last check before
        // a wait sees the cleared bits, or the wait is notified.
        while self.state.load(Ordering::Relaxed) & barred != 0 {
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, u64> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the waiting threads after `state` was changed.
    #[cold]
    fn notify(&self) {
        // A thread that has read the earlier `state` holds the mutex until it waits, so the notification comes after the wait has
        // begun.
        drop(self.waiting());
        self.changed.notify_all();
    }

    /// Removes a guard from the thread's list.
    #[inline]
    fn forget(&self, call: &'static str) {
        // Names are compared by address: a guard and its entry in the list have the same string.
        let is_it = |guard: &Held| guard.lock == self.id && std::ptr::eq(guard.call, call);
        held(|held| {
            // Nearly always the newest one.
            if held.last().is_some_and(is_it) {
                held.pop();
            } else if let Some(at) = held.iter().rposition(is_it) {
                held.remove(at);
            }
        });
    }
}

/// The guard of a thread that shares the lock.
pub(crate) struct SharedGuard<'a, T> {
    lock: &'a TableLock<T>,
    call: &'static str,
    /// Not `Send`: see the module.
    thread: PhantomData<*mut ()>,
}

// SAFETY: the only access that a `&SharedGuard` allows is by `&T`.
unsafe impl<T: Send + Sync> Sync for SharedGuard<'_, T> {}

impl<T> Deref for SharedGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this guard is counted in `state`, so no thread has `&mut T`.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> Drop for SharedGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.lock.forget(self.call);
        // Release, paired with the acquire of the next exclusive holder: reads through this guard come before it.
        let before = self.lock.state.fetch_sub(1, Ordering::Release);
        if before & SHARED == 1 && before & WANTED != 0 {
            self.lock.notify();
        }
    }
}

/// Guard of a thread that has the lock exclusively.
pub(crate) struct Alone<'a, T> {
    lock: &'a TableLock<T>,
    call: &'static str,
    /// Not `Send`: see the module.
    thread: PhantomData<*mut ()>,
}

impl<'a, T> Alone<'a, T> {
    /// Continues to exclude other threads, but the value stays unchanged, and this thread may [`look`](TableLock::look) at it.
    pub(crate) fn freeze(self) -> Frozen<'a, T> {
        let Self { lock, call, .. } = self;
        std::mem::forget(self);
        lock.forget(call);
        held(|held| held.push(Held { lock: lock.id, call, mode: Mode::Frozen }));
        // No guard is counted while a thread has the lock exclusively, so the lowest bit is 0. Release: as in `drop` of `Alone`.
        lock.state.fetch_xor(ALONE | CLOSED | 1, Ordering::Release);
        Frozen { lock, call, thread: PhantomData }
    }
}

impl<T> Deref for Alone<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this guard is the only one.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Alone<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard is the only one, and it is borrowed exclusively.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Alone<'_, T> {
    fn drop(&mut self) {
        self.lock.forget(self.call);
        // Release, paired with the acquires of the next holders: they see the changes of this thread.
        self.lock.state.fetch_and(!ALONE, Ordering::Release);
        self.lock.notify();
    }
}

/// Guard of a thread that excludes all others and changes nothing, so that it may run code of a caller meanwhile.
pub(crate) struct Frozen<'a, T> {
    lock: &'a TableLock<T>,
    call: &'static str,
    /// Not `Send`: see the module.
    thread: PhantomData<*mut ()>,
}

impl<'a, T> Frozen<'a, T> {
    /// Turns the guard back into one that may change the value, as before [`Alone::freeze`].
    ///
    /// # Panics
    ///
    /// If this thread has a guard by which it looks at the value.
    pub(crate) fn thaw(self) -> Alone<'a, T> {
        let Self { lock, call, .. } = self;
        // Relaxed: no other thread shares the lock while a thread has a `Frozen`, and a thread sees its own changes.
        assert_eq!(lock.state.load(Ordering::Relaxed) & SHARED, 1, "no guard of this thread looks at a value that it changes");
        std::mem::forget(self);
        lock.forget(call);
        // Only this guard is counted, and `CLOSED` is set. Relaxed: nothing passes to another thread.
        lock.state.fetch_xor(ALONE | CLOSED | 1, Ordering::Relaxed);
        lock.alone(call)
    }
}

impl<T> Deref for Frozen<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this guard is counted in `state`, so no thread has `&mut T`.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> Drop for Frozen<'_, T> {
    fn drop(&mut self) {
        self.lock.forget(self.call);
        // Release: as in `drop` of `SharedGuard`.
        self.lock.state.fetch_sub(CLOSED | 1, Ordering::Release);
        self.lock.notify();
    }
}

#[cfg(test)]
mod tests {
    //! Keeps this promise of `src/docs/threads_and_streams.md`:
    //!
    //! - The lock of a table: a thread that shares it does not wait for others, a thread that owns it keeps others out, and
    //!   guards cannot be sent to other threads.

    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::channel;
    use std::thread;

    /// Does not compile if guards are `Send`: then both implementations apply.
    const _: fn() = || {
        trait Ambiguous<A> {
            fn is_not_send() {}
        }
        impl<T: ?Sized> Ambiguous<()> for T {}
        impl<T: ?Sized + Send> Ambiguous<u8> for T {}
        let _ = <SharedGuard<'_, u8> as Ambiguous<_>>::is_not_send;
        let _ = <Alone<'_, u8> as Ambiguous<_>>::is_not_send;
        let _ = <Frozen<'_, u8> as Ambiguous<_>>::is_not_send;
    };

    fn refused<T>(result: Result<T>) -> Option<(&'static str, &'static str)> {
        match result {
            Err(Error::SelfDeadlock { call, held }) => Some((call, held)),
            Err(other) => panic!("{other}"),
            Ok(_) => None,
        }
    }

    #[test]
    fn a_thread_is_not_let_wait_for_itself() {
        let (lock, other) = (TableLock::new(7), TableLock::new(8));
        let shared = lock.share("first").unwrap();
        assert_eq!(refused(lock.take("clear")), Some(("clear", "first")));
        assert!(lock.try_take("try").is_none());
        let again = lock.share("second").unwrap();
        assert_eq!(refused(lock.take("clear")), Some(("clear", "second")));
        // Guards may be dropped in any order.
        drop(shared);
        assert_eq!(refused(lock.take("clear")), Some(("clear", "second")));
        assert_eq!((*again, *lock.look(), *other.take("other").unwrap()), (7, 7, 8));
        drop(again);
        *lock.take("clear").unwrap() += 1;
        assert_eq!(*lock.share("third").unwrap(), 8);
        assert_eq!(lock.state.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_frozen_value_that_is_thawed_can_be_changed() {
        let lock = TableLock::new(7);
        let frozen = lock.take("retain").unwrap().freeze();
        assert_eq!((*lock.look(), *frozen), (7, 7));
        let mut alone = frozen.thaw();
        *alone += 1;
        assert_eq!(refused(lock.share("put")), Some(("put", "retain")));
        assert!(lock.try_take("try").is_none());
        drop(alone);
        assert_eq!((*lock.share("put").unwrap(), lock.state.load(Ordering::Relaxed)), (8, 1));
        assert_eq!(lock.state.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_frozen_value_can_be_looked_at_and_no_more() {
        let lock = TableLock::new(7);
        let frozen = lock.take("save").unwrap().freeze();
        assert_eq!((*lock.look(), *frozen), (7, 7));
        assert_eq!(refused(lock.share("get")), Some(("get", "save")));
        assert_eq!(refused(lock.take("clear")), Some(("clear", "save")));
        assert!(lock.try_take("try").is_none());
        // If a look is held longer than `frozen`, other threads may look, but none may change the value.
        let look = lock.look();
        drop(frozen);
        assert!(lock.share("get").is_ok() && lock.take("clear").is_err());
        drop(look);
        assert!(lock.take("clear").is_ok());
    }

    #[test]
    fn a_guard_that_is_forgotten_is_an_error_and_none_of_another_lock() {
        for _ in 0..100 {
            let lock = Box::new(TableLock::new(7));
            assert!(lock.take("clear").is_ok(), "the lock before, at this address, was another one");
            std::mem::forget(lock.share("rows").unwrap());
            assert_eq!(refused(lock.take("clear")), Some(("clear", "rows")));
        }
    }

    /// Waits until a thread waits for exclusive access.
    fn until_wanted(lock: &TableLock<u64>) {
        while lock.state.load(Ordering::Relaxed) & WANTED == 0 {
            thread::yield_now();
        }
    }

    /// This test would not end with a lock in which all threads queue behind one that waits for exclusive access.
    #[test]
    fn who_shares_it_may_share_it_again_while_others_wait() {
        let lock = TableLock::new(0);
        let first = lock.share("first").unwrap();
        thread::scope(|scope| {
            scope.spawn(|| *lock.take("change").unwrap() += 1);
            until_wanted(&lock);
            let (sender, entered) = channel();
            let other = &lock;
            scope.spawn(move || sender.send(*other.share("other").unwrap()).unwrap());
            for _ in 0..if cfg!(miri) { 20 } else { 1000 } {
                assert_eq!((*lock.share("again").unwrap(), *lock.look()), (0, 0));
            }
            assert_eq!(refused(lock.take("clear")), Some(("clear", "first")));
            drop(first);
            // The later thread sees the changes of the earlier one.
            assert_eq!(entered.recv().unwrap(), 1);
        });
    }

    #[test]
    fn what_is_frozen_is_kept_from_others() {
        let lock = TableLock::new(0);
        let frozen = lock.take("save").unwrap().freeze();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(*lock.share("get").unwrap(), 0);
                done.store(true, Ordering::Relaxed);
            });
            scope.spawn(|| *lock.take("change").unwrap() = 0);
            until_wanted(&lock);
            assert!(!done.load(Ordering::Relaxed) && *lock.look() == 0);
            drop(frozen);
        });
        assert!(done.load(Ordering::Relaxed));
    }

    #[test]
    fn one_changes_it_at_a_time_and_none_is_lost() {
        let (threads, rounds) = if cfg!(miri) { (3, 20) } else { (8, 3000) };
        let lock = TableLock::new([0u64; 2]);
        thread::scope(|scope| {
            for number in 0..threads {
                let lock = &lock;
                scope.spawn(move || {
                    for round in 0..rounds {
                        match (number + round) % 5 {
                            0 => {
                                let mut value = lock.take("change").unwrap();
                                value[0] += 1;
                                value[1] += 1;
                            }
                            1 => {
                                let frozen = lock.take("save").unwrap().freeze();
                                assert_eq!(frozen[0], lock.look()[1]);
                            }
                            2 => {
                                if let Some(mut value) = lock.try_take("try") {
                                    value.swap(0, 1);
                                }
                            }
                            _ => {
                                let (first, again) = (lock.share("get").unwrap(), lock.share("again").unwrap());
                                assert_eq!(first[0], first[1]);
                                drop(first);
                                assert_eq!(again[0], again[1]);
                            }
                        }
                    }
                });
            }
        });
        let changes: u64 = (0..threads).map(|number| (0..rounds).filter(|round| (number + round) % 5 == 0).count() as u64).sum();
        assert_eq!(lock.share("end").unwrap()[0], changes);
        assert_eq!(lock.state.load(Ordering::Relaxed), 0);
    }

    /// A guard in a thread-local variable may be dropped after the thread's list.
    #[test]
    fn guards_may_be_dropped_while_their_thread_ends() {
        static LOCK: std::sync::LazyLock<TableLock<u64>> = std::sync::LazyLock::new(|| TableLock::new(7));
        thread_local! { static KEPT: RefCell<Option<SharedGuard<'static, u64>>> = const { RefCell::new(None) }; }
        for _ in 0..10 {
            thread::spawn(|| KEPT.with(|kept| *kept.borrow_mut() = Some(LOCK.share("rows").unwrap()))).join().unwrap();
            thread::spawn(|| {
                let shared = LOCK.share("rows").unwrap();
                KEPT.with(|kept| *kept.borrow_mut() = Some(shared));
            })
            .join()
            .unwrap();
        }
        assert!(LOCK.take("clear").is_ok());
    }
}
