//! Permanent threads for work on host memory that one thread does too slowly: copying batches to and from buffers.
//!
//! The threads are started when they are first needed, and shared by all tables of the process. Simultaneous jobs take turns, one
//! piece at a time. The thread that submits a job works on it too, so a job finishes even if no thread could be started.
//!
//! Measured on the 16-core host of an H200. Memory is copied into pinned buffers at 10, 20, 33 and 37 GB/s by 1, 2, 4 and 16
//! threads. Batches of 2^26 vectors of 2 words from a slice, with outcomes to a new vector (`cargo bench --bench host`): in
//! segments of 16 MiB, 3.5 G/s with 7 threads besides the caller's and pieces of 256 KiB, and 3.9 G/s with 11 threads and pieces
//! of 128 KiB; in segments of 8 MiB, 3.3 G/s with 7 threads, 3.3 with 11 and 3.1 with 15.

use crate::faults;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::thread::{self, Thread};

/// Largest number of threads, not counting those that submit jobs.
const MOST_THREADS: usize = 11;

pub(crate) struct Workers {
    queue: Arc<Queue>,
    /// Number of threads that have been started.
    threads: Mutex<usize>,
    /// Number of threads that should exist.
    wanted: usize,
}

#[derive(Default)]
struct Queue {
    jobs: Mutex<VecDeque<Arc<Job>>>,
    /// Notified when jobs are added.
    filled: Condvar,
}

/// Work that is divided into pieces. Each piece is done once.
struct Job {
    /// Valid until all pieces are done: `Workers::run` waits for that.
    work: *const (dyn Fn(usize) + Sync),
    pieces: usize,
    next: AtomicUsize,
    undone: AtomicUsize,
    has_panicked: AtomicBool,
    owner: Thread,
}

// SAFETY: `work` points to something `Sync`, which is used only while `Workers::run` keeps it alive.
unsafe impl Send for Job {}
// SAFETY: as above.
unsafe impl Sync for Job {}

impl Job {
    /// Takes a piece, if there is one left.
    fn take(&self) -> Option<usize> {
        // Relaxed: only the uniqueness of the pieces matters. The queue's lock, under which the job was passed on, orders the
        // data of the work.
        let piece = self.next.fetch_add(1, Ordering::Relaxed);
        (piece < self.pieces).then_some(piece)
    }

    /// Does a piece that was taken.
    fn work(&self, piece: usize) {
        struct Done<'a> {
            job: &'a Job,
            /// Not taken from `thread::panicking`, because the thread may be panicking for another reason, and run this work in a
            /// `drop`.
            has_panicked: bool,
        }
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                if self.has_panicked {
                    // Relaxed: read after the decrement below has been observed.
                    self.job.has_panicked.store(true, Ordering::Relaxed);
                }
                // When the owner sees 0, it may return and drop its handle of the job. So take the handle of the owner's thread
                // before.
                let owner = self.job.owner.clone();
                // Release, paired with the acquire in `run`: the owner sees the effects of all pieces.
                if self.job.undone.fetch_sub(1, Ordering::Release) == 1 {
                    owner.unpark();
                }
            }
        }
        let mut done = Done { job: self, has_panicked: true };
        // SAFETY: this piece is not done, and no other thread has taken it, so `run` has not returned.
        unsafe { (*self.work)(piece) };
        done.has_panicked = false;
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Queue {
    /// Loop of a thread: does a piece of the first job, moves the job to the end of the queue, and repeats.
    fn serve(&self) {
        let mut jobs = locked(&self.jobs);
        loop {
            let Some(job) = jobs.pop_front() else {
                jobs = self.filled.wait(jobs).unwrap_or_else(|poisoned| poisoned.into_inner());
                continue;
            };
            let Some(piece) = job.take() else { continue };
            jobs.push_back(job.clone());
            drop(jobs);
            // The owner passes a panic on.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| job.work(piece)));
            jobs = locked(&self.jobs);
        }
    }
}

impl Workers {
    /// Bytes of a piece of work on memory: some tens of microseconds.
    pub(crate) const PIECE_BYTES: usize = 128 << 10;

    /// Returns the threads of the process.
    pub(crate) fn get() -> &'static Self {
        static WORKERS: OnceLock<Workers> = OnceLock::new();
        WORKERS.get_or_init(|| {
            let cores = thread::available_parallelism().map_or(1, usize::from);
            Self::new((cores - 1).min(MOST_THREADS))
        })
    }

    pub(crate) fn new(wanted: usize) -> Self {
        Self { queue: Arc::default(), threads: Mutex::new(0), wanted }
    }

    /// Starts missing threads. If the system refuses some now, the next job tries again.
    fn start(&self) -> usize {
        let mut threads = locked(&self.threads);
        while *threads < self.wanted {
            let queue = self.queue.clone();
            let builder = thread::Builder::new().name("warpset".into());
            if faults::should_fail() || builder.spawn(move || queue.serve()).is_err() {
                break;
            }
            *threads += 1;
        }
        *threads
    }

    /// Calls `work` for every number below `pieces`, on this thread and others in parallel. Returns when all calls have returned.
    ///
    /// # Panics
    ///
    /// If one of the calls has panicked.
    pub(crate) fn run(&self, pieces: usize, work: impl Fn(usize) + Sync) {
        if pieces <= 1 || self.start() == 0 {
            return (0..pieces).for_each(work);
        }
        let shared: &(dyn Fn(usize) + Sync) = &work;
        // SAFETY: only the lifetime changes. `work` lives until all pieces are done: this function waits for them below, also if
        // a piece panics here.
        let shared: *const (dyn Fn(usize) + Sync) = unsafe { std::mem::transmute(shared) };
        let job = Arc::new(Job {
            work: shared,
            pieces,
            next: AtomicUsize::new(0),
            undone: AtomicUsize::new(pieces),
            has_panicked: AtomicBool::new(false),
            owner: thread::current(),
        });
        locked(&self.queue.jobs).push_back(job.clone());
        self.queue.filled.notify_all();
        while let Some(piece) = job.take() {
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| job.work(piece)));
        }
        // Acquire: see `Job::work`. An unrelated `unpark` may wake this thread early.
        while job.undone.load(Ordering::Acquire) > 0 {
            thread::park();
        }
        // All pieces are taken and done. A thread that still finds the job in the queue gets no piece, and drops it.
        locked(&self.queue.jobs).retain(|queued| !Arc::ptr_eq(queued, &job));
        assert!(!job.has_panicked.load(Ordering::Relaxed), "a piece of the work has panicked");
    }

    /// Calls `each` for pieces of `slice`, with the position of their first element.
    pub(crate) fn for_each<T: Sync>(&self, slice: &[T], each: impl Fn(usize, &[T]) + Sync) {
        let piece = (Self::PIECE_BYTES / size_of::<T>()).max(1);
        self.run(slice.len().div_ceil(piece), |number| {
            let first = number * piece;
            each(first, &slice[first..slice.len().min(first + piece)]);
        });
    }

    /// Calls `each` for pieces of `slice`.
    pub(crate) fn for_each_mut<T: Send>(&self, slice: &mut [T], each: impl Fn(&mut [T]) + Sync) {
        let piece = (Self::PIECE_BYTES / size_of::<T>()).max(1);
        let len = slice.len();
        let first_element = Elements(slice.as_mut_ptr());
        self.run(len.div_ceil(piece), |number| {
            let first = number * piece;
            let elements = &first_element;
            // SAFETY: within the slice, which is exclusively borrowed. The pieces are disjoint.
            each(unsafe { std::slice::from_raw_parts_mut(elements.0.add(first), piece.min(len - first)) });
        });
    }

    /// Whether `holds` is true of all pieces of `slice`.
    #[inline]
    pub(crate) fn all<T: Sync>(&self, slice: &[T], holds: impl Fn(&[T]) -> bool + Sync) -> bool {
        if size_of_val(slice) <= Self::PIECE_BYTES {
            return holds(slice);
        }
        // Relaxed: no other data depends on this flag, which is read after all pieces are done.
        let all = AtomicBool::new(true);
        self.for_each(slice, |_, piece| {
            if !holds(piece) {
                all.store(false, Ordering::Relaxed);
            }
        });
        all.into_inner()
    }
}

/// Address of the first element of a slice.
struct Elements<T>(*mut T);

// SAFETY: the code that uses it ensures that no two threads use one element.
unsafe impl<T: Send> Sync for Elements<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each piece of each job is done once, with jobs of many threads at once, and also without worker threads.
    #[test]
    fn every_piece_is_done_once() {
        for threads in [0, 1, 3] {
            let workers = Workers::new(threads);
            thread::scope(|scope| {
                for pieces in [0, 1, 2, 40, 100] {
                    let workers = &workers;
                    scope.spawn(move || {
                        for _ in 0..if cfg!(miri) { 2 } else { 200 } {
                            let done: Vec<AtomicUsize> = (0..pieces).map(|_| AtomicUsize::new(0)).collect();
                            workers.run(pieces, |piece| {
                                done[piece].fetch_add(1, Ordering::Relaxed);
                            });
                            assert!(done.iter().all(|count| count.load(Ordering::Relaxed) == 1));
                        }
                    });
                }
            });
        }
    }

    #[test]
    fn all_looks_at_every_element() {
        let (workers, count) = (Workers::new(2), if cfg!(miri) { 20_011 } else { 100_003 });
        let numbers: Vec<u64> = (0..count).collect();
        assert!(workers.all(&numbers, |piece| piece.iter().all(|number| *number < count)));
        assert!(!workers.all(&numbers, |piece| !piece.contains(&20_000)));
    }

    #[test]
    fn a_panic_comes_to_the_owner_when_all_is_done() {
        let workers = Workers::new(2);
        let done = AtomicUsize::new(0);
        let run = || {
            workers.run(10, |piece| {
                done.fetch_add(1, Ordering::Relaxed);
                assert!(piece != 5, "on purpose");
            });
        };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
        assert_eq!(done.load(Ordering::Relaxed), 10);
        workers.run(4, |_| ()); // and goes on
    }

    /// Work of a `drop` while its thread panics is done like any other, and is not taken for work that has panicked.
    #[test]
    fn work_while_the_owner_panics_is_done() {
        struct Works<'a>(&'a Workers, &'a AtomicBool);
        impl Drop for Works<'_> {
            fn drop(&mut self) {
                // Each of the two pieces waits for the other, so this thread does one of them.
                let both = std::sync::Barrier::new(2);
                let run = || {
                    self.0.run(2, |_| {
                        both.wait();
                    });
                };
                let went_well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_ok();
                // Relaxed: read by the same thread.
                self.1.store(went_well, Ordering::Relaxed);
            }
        }
        let (workers, went_well) = (Workers::new(1), AtomicBool::new(false));
        let panics = || {
            let _works = Works(&workers, &went_well);
            panic!("on purpose");
        };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
        assert!(went_well.into_inner());
    }
}
