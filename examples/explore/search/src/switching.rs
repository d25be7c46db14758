//! Interpretation that switches to compiled code: small models never wait for a compiler, and large ones only until it is done.

use crate::codegen::on_cpu::Compiled;
use crate::interpreter::Scratch;
use crate::successors::{Expansion, Interpreted, Successors};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

/// Number of interpreted states from which on the compiler starts: some tenths of a second. A compiler takes a second.
const COMPILE_FROM: u64 = 200_000;

/// Computes successors by interpretation, and by compiled code as soon as it is ready. Both give the same successors in the same
/// order, so the switch may happen between any two calls and affects only the time.
pub struct Switching<'m> {
    interpreted: &'m Interpreted<'m>,
    /// The compiled code, or why the compiler failed.
    compiled: OnceLock<Result<Compiled<'m>, String>>,
    /// Number of interpreted states.
    expanded: AtomicU64,
    compile_from: u64,
    phase: Mutex<Phase>,
    phase_changed: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Too few states for a compiler.
    Small,
    Large,
    /// The search has ended; compiled code would come too late.
    Over,
}

impl<'m> Switching<'m> {
    pub fn new(interpreted: &'m Interpreted<'m>) -> Self {
        Self {
            interpreted,
            compiled: OnceLock::new(),
            expanded: AtomicU64::new(0),
            compile_from: COMPILE_FROM,
            phase: Mutex::new(Phase::Small),
            phase_changed: Condvar::new(),
        }
    }

    /// Runs `explore`, and compiles meanwhile if it takes long.
    pub fn during<R>(&self, explore: impl FnOnce() -> R) -> R {
        std::thread::scope(|scope| {
            if let Err(error) = std::thread::Builder::new().spawn_scoped(scope, || self.compile_if_large()) {
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

    fn compile_if_large(&self) {
        let phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        let phase = self.phase_changed.wait_while(phase, |phase| *phase == Phase::Small).unwrap_or_else(PoisonError::into_inner);
        if *phase == Phase::Over {
            return;
        }
        drop(phase);
        let compiled = Compiled::unless(self.interpreted, &|| self.is_in(Phase::Over));
        if let Some(compiled) = compiled.transpose() {
            let first_line =
                |error: anyhow::Error| error.to_string().lines().next().unwrap_or_default().trim_end_matches(':').into();
            let is_first = self.compiled.set(compiled.map_err(first_line)).is_ok();
            debug_assert!(is_first, "only one thread compiles");
        }
    }

    fn is_in(&self, phase: Phase) -> bool {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) == phase
    }

    fn enter(&self, phase: Phase) {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
        self.phase_changed.notify_all();
    }
}

/// Ends compiling when it is dropped, also if the exploration panics; otherwise the scope would wait for the compiler's thread.
struct End<'a, 'm>(&'a Switching<'m>);

impl Drop for End<'_, '_> {
    fn drop(&mut self) {
        self.0.enter(Phase::Over);
    }
}

impl Successors for Switching<'_> {
    type Scratch = Scratch;

    fn width(&self) -> usize {
        self.interpreted.width()
    }

    fn expand(&self, states: &[u32], scratch: &mut Scratch, expansion: &mut Expansion) {
        match self.compiled.get() {
            Some(Ok(compiled)) => compiled.expand(states, &mut (), expansion),
            _ => {
                self.interpreted.expand(states, scratch, expansion);
                let count = (states.len() / self.width()) as u64;
                // Relaxed: exactly one addition passes the limit, and its thread announces that under the lock.
                let before = self.expanded.fetch_add(count, Ordering::Relaxed);
                if (before..before + count).contains(&self.compile_from) && self.is_in(Phase::Small) {
                    self.enter(Phase::Large);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Checks;
    use crate::interpreter::Interpreter;
    use crate::ir::Source;
    use warpset_model::dve::Dve;

    const COUNTER: &str =
        "int x; process P { state s; init s; trans s -> s { guard x < 9; effect x = x + 1; }, s -> s {}; } system async;";

    fn with(test: impl Fn(&Switching, &[u32])) {
        let dve = Dve::read(Source { name: "test".into(), text: COUNTER.into() }).unwrap();
        let checks = Checks::default();
        let interpreted = Interpreted { interpreter: Interpreter::new(&dve.model), checks: &checks };
        test(&Switching { compile_from: 100, ..Switching::new(&interpreted) }, &dve.model.initial_state());
    }

    fn successors(source: &Switching, state: &[u32]) -> Vec<u32> {
        let mut expansion = Expansion::default();
        source.expand(state, &mut Scratch::default(), &mut expansion);
        expansion.successors
    }

    #[test]
    fn many_states_are_compiled_for() {
        with(|source, state| {
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
    fn few_states_are_not() {
        with(|source, state| {
            source.during(|| (0..50).for_each(|_| drop(successors(source, state))));
            assert_eq!(source.engine(), "interpreted");
        });
    }

    #[test]
    fn nothing_is_waited_for_at_the_end() {
        with(|source, state| {
            source.during(|| (0..200).for_each(|_| drop(successors(source, state))));
            assert!(source.is_in(Phase::Over));
            let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| source.during(|| panic!("as expected"))));
            assert!(failed.is_err());
        });
    }
}
