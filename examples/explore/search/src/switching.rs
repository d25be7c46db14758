//! Interpretation that switches to compiled code: small models never wait for a compiler, and large models only until the
//! compiler is done.

use crate::codegen::on_cpu::Compiled;
use crate::reduced::Reduced;
use crate::successors::{Expansion, Interpreted, Scratch, Successors};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use warpset_model::reduction::stubborn::Stubborn;
use warpset_support::stopping;

/// Time that a search takes before the compiler starts. Compiling takes a second, so a search that ends sooner does not need it.
const COMPILE_AFTER: Duration = Duration::from_millis(100);

/// Computes successors by interpretation until compiled code is ready, and then by compiled code. Both give the same successors
/// in the same order, so the switch may happen between any two calls and affects only the time.
pub struct Switching<'m> {
    interpreted: &'m Interpreted<'m>,
    /// The interpreter of a reduced search.
    reduced: Option<Reduced<'m>>,
    /// The compiled code, or why the compiler failed.
    compiled: OnceLock<Result<Compiled<'m>, String>>,
    compile_after: Duration,
    /// Whether the search has ended, so that compiled code would come too late.
    is_over: Mutex<bool>,
    ended: Condvar,
}

impl<'m> Switching<'m> {
    /// If `stubborn` is given, only the steps that it keeps are taken.
    pub fn new(interpreted: &'m Interpreted<'m>, stubborn: Option<&'m Stubborn<'m>>) -> Self {
        Self {
            interpreted,
            reduced: stubborn.map(|stubborn| Reduced { interpreted, stubborn }),
            compiled: OnceLock::new(),
            compile_after: COMPILE_AFTER,
            is_over: Mutex::new(false),
            ended: Condvar::new(),
        }
    }

    /// Runs `explore`. If it takes longer than `COMPILE_AFTER`, compiles at the same time.
    pub fn during<R>(&self, explore: impl FnOnce() -> R) -> R {
        std::thread::scope(|scope| {
            if let Err(error) = std::thread::Builder::new().spawn_scoped(scope, || self.compile_later()) {
                let why = format!("no thread to compile on: {error}");
                self.compiled.get_or_init(|| Err(why));
            }
            let _end = End(self);
            explore()
        })
    }

    /// Describes how successors were computed.
    pub fn engine(&self) -> String {
        match self.compiled.get() {
            None => "interpreted".into(),
            Some(Ok(_)) => "interpreted at first, then compiled".into(),
            Some(Err(why)) => format!("interpreted: {why}"),
        }
    }

    fn compile_later(&self) {
        let is_over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.ended.wait_timeout_while(is_over, self.compile_after, |is_over| !*is_over);
        let (is_over, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if *is_over {
            return;
        }
        drop(is_over);
        let stubborn = self.reduced.as_ref().map(|reduced| reduced.stubborn);
        // After Ctrl-C the search ends soon, and after a second Ctrl-C the program ends. In neither case may a compiler run on.
        let compiled = Compiled::unless(self.interpreted, stubborn, &|| self.is_over() || stopping::asked().is_some());
        if let Some(compiled) = compiled.transpose() {
            let first_line =
                |error: anyhow::Error| error.to_string().lines().next().unwrap_or_default().trim_end_matches(':').into();
            let is_first = self.compiled.set(compiled.map_err(first_line)).is_ok();
            debug_assert!(is_first, "only one thread compiles");
        }
    }

    fn is_over(&self) -> bool {
        *self.is_over.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends compiling when it is dropped, even if the exploration panics. Otherwise the scope would wait for the compiler's thread.
struct End<'a, 'm>(&'a Switching<'m>);

impl Drop for End<'_, '_> {
    fn drop(&mut self) {
        *self.0.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.ended.notify_all();
    }
}

impl Successors for Switching<'_> {
    fn width(&self) -> usize {
        self.interpreted.width()
    }

    fn expand(&self, states: &[u32], scratch: &mut Scratch, expansion: &mut Expansion) {
        match (self.compiled.get(), &self.reduced) {
            (Some(Ok(compiled)), _) => compiled.expand(states, scratch, expansion),
            (_, Some(reduced)) => reduced.expand(states, scratch, expansion),
            _ => self.interpreted.expand(states, scratch, expansion),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use warpset_model::checks::Checks;
    use warpset_model::dve::Dve;
    use warpset_model::interpreter::Interpreter;
    use warpset_model::ir::Source;

    /// Tests a model that counts to `most`.
    fn with(most: u32, compile_after: Duration, test: impl Fn(&Switching, &[u32])) {
        let steps = format!("s -> s {{ guard x < {most}; effect x = x + 1; }}, s -> s {{}}");
        let text = format!("int x; process P {{ state s; init s; trans {steps}; }} system async;");
        let dve = Dve::read(Source { name: "test".into(), text }).unwrap();
        let checks = Checks::default();
        let interpreted = Interpreted::new(Interpreter::new(&dve.model), &checks);
        test(&Switching { compile_after, ..Switching::new(&interpreted, None) }, &dve.model.initial_state());
    }

    fn successors(source: &Switching, state: &[u32]) -> Vec<u32> {
        let mut expansion = Expansion::default();
        source.expand(state, &mut Scratch::default(), &mut expansion);
        expansion.successors
    }

    #[test]
    fn long_searches_are_compiled_for() {
        with(9, Duration::from_millis(1), |source, state| {
            let expected = successors(source, state);
            source.during(|| {
                while source.compiled.get().is_none() {
                    assert_eq!(successors(source, state), expected);
                }
            });
            assert_eq!(successors(source, state), expected);
            let engine = source.engine();
            assert!(
                engine == "interpreted at first, then compiled" || engine.starts_with("interpreted: no C++ compiler"),
                "{engine}"
            );
        });
    }

    #[test]
    fn short_ones_are_not() {
        with(9, Duration::from_secs(1000), |source, state| {
            source.during(|| (0..50).for_each(|_| drop(successors(source, state))));
            assert_eq!(source.engine(), "interpreted");
        });
    }

    #[test]
    fn nothing_is_waited_for_at_the_end() {
        // Each process has its own model here, so no cached functions are loaded.
        let most = 10 + std::process::id();
        with(most, Duration::ZERO, |source, state| {
            source.during(|| (0..200).for_each(|_| drop(successors(source, state))));
            assert!(source.is_over());
        });
        with(most, Duration::ZERO, |source, _| {
            let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| source.during(|| panic!("as expected"))));
            assert!(failed.is_err() && source.is_over());
        });
    }
}
