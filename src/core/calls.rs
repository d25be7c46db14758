//! Counts the calls of an indexed table that are under way, and notes whether kernels may use the table.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Calls and kernels under way that may have references to rows. (Callers may also have references from calls that have
/// returned.)
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// Lower half: number of calls under way. Upper half: number of calls that have ever begun. With two numbers, a call that has
    /// increased only one of them might be overlooked.
    counts: AtomicU64,
    /// Set when a view was handed out, or a batch was put on a stream: kernels may run at any time.
    pub(super) has_kernels: AtomicBool,
}

/// A call that may get references to rows, or put rows.
pub(super) struct Call<'a> {
    pub(super) calls: &'a Calls,
    /// The call's number, and the number of rows when it began. `None` if another call was under way then.
    pub(super) alone: Option<(u32, u64)>,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.calls.counts.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Calls {
    /// Counts a call. Returns its number if no other is under way.
    pub(super) fn begin(&self) -> Option<u32> {
        let before = self.counts.fetch_add((1 << 32) + 1, Ordering::SeqCst);
        (before as u32 == 0).then_some((before >> 32) as u32)
    }

    /// Begins a call that does not close holes. No other call closes holes while this one is under way.
    pub(super) fn overlap(&self) -> Call<'_> {
        self.begin();
        Call { calls: self, alone: None }
    }

    /// Whether no call has begun after the one with this number. (2^32 calls would have to begin before the number repeats.)
    pub(super) fn is_last(&self, number: u32) -> bool {
        (self.counts.load(Ordering::SeqCst) >> 32) as u32 == number.wrapping_add(1)
    }

    /// Whether kernels may have references, or put rows: a view was handed out, or a batch was put on a stream.
    pub(super) fn may_have_kernels(&self) -> bool {
        // Sequentially consistent, like all accesses to `Calls`: kernels that were noted before this call began are seen.
        self.has_kernels.load(Ordering::SeqCst)
    }

    /// Notes that kernels may have references from now on.
    #[allow(dead_code, reason = "on the host a call has ended when it returns, and has no kernels")]
    pub(crate) fn note_kernels(&self) {
        self.has_kernels.store(true, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_overlap_are_not_alone() {
        let calls = Calls::default();
        let first = calls.begin().unwrap();
        assert!(calls.is_last(first));
        // The second call may have references of the first one, even after the second has ended.
        assert_eq!(calls.begin(), None);
        drop(Call { calls: &calls, alone: None });
        assert!(!calls.is_last(first));
        drop(Call { calls: &calls, alone: None });
        let next = calls.begin().unwrap();
        assert!(calls.is_last(next) && next != first);
        // The number of calls that have begun wraps around.
        calls.counts.store(u64::MAX << 32, Ordering::SeqCst);
        let last = calls.begin().unwrap();
        assert!(last == u32::MAX && calls.is_last(last));
    }
}
