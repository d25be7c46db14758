//! Programs that are compiled ahead of use, each by its own thread, while a context is made. Neither compiling a program nor
//! finding it on disk needs a context.
//!
//! A compiled program is kept until a thread requests it ([`take`]), or until its [`Jobs`] is dropped. It serves only a request
//! whose job is equal in every field.

use super::cache::Cache;
use super::gpu::driver_version;
use super::nvrtc::{self, Job};
use super::{ensure_driver, library};
use crate::Result;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// A program that is being compiled, or that has been compiled and waits for its first request.
struct Begun {
    /// Number of the [`Jobs`] that started this compilation.
    jobs: u64,
    name: String,
    source: String,
    /// The job with empty texts, because `name` and `source` hold its texts.
    job: Job<'static>,
    thread: JoinHandle<Result<Vec<u8>>>,
}

static BEGUN: Mutex<(u64, Vec<Begun>)> = Mutex::new((0, Vec::new()));

fn begun() -> MutexGuard<'static, (u64, Vec<Begun>)> {
    BEGUN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Programs whose compilation was started ahead of use. Dropping the value waits for the compilations that were not requested, so
/// that none is running when the process ends and unloads its libraries.
#[derive(Debug)]
pub(crate) struct Jobs {
    number: u64,
    loading: Option<JoinHandle<()>>,
}

impl Jobs {
    /// Starts without programs. If there is a driver, begins to load NVRTC.
    pub(crate) fn new() -> Self {
        let is_driver_here = library::DRIVER.ensure_present().is_ok();
        let load = || drop(nvrtc::ensure_present());
        let loading = is_driver_here.then(|| Builder::new().spawn(load).ok()).flatten();
        let mut begun = begun();
        begun.0 += 1;
        Self { number: begun.0, loading }
    }

    /// Begins to compile a program, or to find it in the cache.
    pub(crate) fn begin(&mut self, job: &Job<'_>) -> Result<()> {
        ensure_driver()?;
        self.begin_with(job, Cache::in_use(driver_version()?));
        Ok(())
    }

    /// If no thread can be started, the first request compiles the program.
    fn begin_with(&mut self, job: &Job<'_>, cache: Option<Cache>) {
        let (name, source) = (job.name.to_string(), job.source.to_string());
        let job = job.with_texts("", "");
        let texts = (name.clone(), source.clone());
        let compile = move || nvrtc::compile(&job.with_texts(&texts.0, &texts.1), cache.as_ref());
        if let Ok(thread) = Builder::new().spawn(compile) {
            begun().1.push(Begun { jobs: self.number, name, source, job, thread });
        }
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        let left: Vec<Begun> = begun().1.extract_if(.., |begun| begun.jobs == self.number).collect();
        // A failed compilation of a program that was never requested is not an error.
        left.into_iter().for_each(|begun| drop(begun.thread.join()));
        if let Some(loading) = self.loading.take() {
            let _ = loading.join();
        }
    }
}

/// If the compilation of a program was started ahead of use, waits for it and returns its result.
pub(super) fn take(job: &Job<'_>) -> Option<Result<Vec<u8>>> {
    let found = {
        let (_, begun) = &mut *begun();
        let at = begun.iter().position(|begun| begun.job.with_texts(&begun.name, &begun.source) == *job)?;
        begun.swap_remove(at)
    };
    // A panic is a bug of this library. The request compiles again, and sees the panic if it happens again.
    found.thread.join().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, Spec};

    #[test]
    fn what_was_begun_is_there_once() {
        if let Err(error) = nvrtc::ensure_present() {
            println!("skipped: {error}");
            assert!(std::env::var_os("WARPSET_REQUIRE_NVRTC").is_none(), "{error}");
            return;
        }
        let own = |name, source| Job::new(name, source, Spec::bucket(7, 16).unwrap(), (9, 0));
        let (first, second) = (own("a.cu", "__global__ void a() {}"), own("b.cu", "__global__ void b() {}"));
        let wrong = own("a.cu", "void c(");
        let mut jobs = Jobs::new();
        [first, second, wrong].iter().for_each(|job| jobs.begin_with(job, None));
        assert!(take(&own("a.cu", "__global__ void d() {}")).is_none());
        assert!(take(&Job::new("a.cu", first.source, Spec::bucket(8, 16).unwrap(), (9, 0))).is_none());
        assert_eq!(take(&second).unwrap().unwrap(), nvrtc::compile(&second, None).unwrap());
        assert!(take(&second).is_none());
        let error = take(&wrong).unwrap().unwrap_err();
        assert!(matches!(&error, Error::Compile { name, log, .. } if name == "a.cu" && log.contains("a.cu")), "{error}");
        let mut others = Jobs::new();
        others.begin_with(&second, None);
        drop(jobs);
        assert!(take(&first).is_none() && take(&second).is_some());
    }
}
