//! Accesses of operations to ranges of an allocation. Finds accesses that conflict although nothing orders them.
//!
//! A copy or a fill says which bytes it reads and writes. A kernel gets addresses, and its accesses are unknown: several kernels
//! may use the same memory at a time, and a copy may read what a kernel writes (a counter, to see the kernel's progress). But no
//! copy or fill may write to an address that a kernel got, unless the copy or fill is ordered before or after the kernel.

use super::clocks::{Clock, Moment};
use std::backtrace::Backtrace;
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of accesses that are remembered for one allocation. If there are more, the oldest ones are forgotten.
const MOST: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Reads,
    Writes,
    /// A kernel got an address. The range begins there.
    Gets,
}

impl Action {
    fn conflicts_with(self, other: Self) -> bool {
        (self == Self::Writes || other == Self::Writes) && (self, other) != (Self::Gets, Self::Gets)
    }

    /// Whether everything that conflicts with `other` also conflicts with this action.
    fn is_as_strong_as(self, other: Self) -> bool {
        self == Self::Writes || self == other
    }
}

#[derive(Clone)]
struct Access {
    addresses: Range<u64>,
    action: Action,
    moment: Moment,
    what: String,
    caller: Arc<Backtrace>,
}

/// Accesses to one allocation, the oldest first.
#[derive(Default)]
pub struct Accesses(Vec<Access>);

impl Accesses {
    /// Adds an access of an operation. `clock` says which operations come before that operation. Returns a description of an
    /// earlier access that conflicts with the new one and is not ordered before it.
    pub fn add(
        &mut self,
        addresses: Range<u64>,
        action: Action,
        moment: Moment,
        clock: &Clock,
        what: &str,
    ) -> Result<(), String> {
        let overlaps = |other: &Access| other.addresses.start < addresses.end && addresses.start < other.addresses.end;
        let conflict = |other: &&Access| {
            overlaps(other)
                && other.action.conflicts_with(action)
                && other.moment.stream != moment.stream
                && !clock.knows(other.moment)
        };
        if let Some(other) = self.0.iter().find(conflict) {
            return Err(other.describe());
        }
        // An operation that is ordered after the new access is also ordered after these, so they can be dropped.
        let is_covered = |other: &Access| {
            addresses.start <= other.addresses.start
                && other.addresses.end <= addresses.end
                && action.is_as_strong_as(other.action)
                && (other.moment.stream == moment.stream || clock.knows(other.moment))
        };
        self.0.retain(|other| !is_covered(other));
        if self.0.len() == MOST {
            self.0.drain(..MOST / 2);
        }
        let caller = Arc::new(Backtrace::force_capture());
        self.0.push(Access { addresses, action, moment, what: what.into(), caller });
        Ok(())
    }

    /// Describes an access to the range that does not come before, according to `clock`.
    pub fn find_unordered(&self, addresses: &Range<u64>, clock: &Clock) -> Option<String> {
        let overlaps = |other: &&Access| other.addresses.start < addresses.end && addresses.start < other.addresses.end;
        self.0.iter().filter(overlaps).find(|other| !clock.knows(other.moment)).map(Access::describe)
    }
}

impl Access {
    fn describe(&self) -> String {
        let Self { addresses: Range { start, end }, action, moment, what, caller } = self;
        let (stream, verb, bytes) = (moment.stream, action.verb(), end - start);
        format!("{what} on stream {stream}, which {verb} {bytes} bytes at {start:#x}, from:\n{caller}")
    }
}

impl Action {
    pub fn verb(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Writes => "writes",
            Self::Gets => "gets",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::clocks;
    use super::*;

    /// Uses numbers of streams that no other test uses.
    fn moment(stream: u64, number: u64) -> Moment {
        let stream = u64::MAX / 2 - stream;
        clocks::begin(stream);
        Moment { stream, number }
    }

    #[test]
    fn conflicts_are_found() {
        use Action::{Gets, Reads, Writes};
        let nothing = Clock::default();
        for (one, other, conflict) in [
            (Writes, Writes, true),
            (Writes, Reads, true),
            (Reads, Writes, true),
            (Reads, Reads, false),
            (Gets, Gets, false),
            (Gets, Writes, true),
            (Writes, Gets, true),
            (Gets, Reads, false),
            (Reads, Gets, false),
        ] {
            let mut accesses = Accesses::default();
            accesses.add(100..200, one, moment(1, 1), &nothing, "the first").unwrap();
            let found = accesses.add(150..151, other, moment(2, 1), &nothing, "the second");
            assert_eq!(found.is_err(), conflict, "{one:?}, {other:?}");
            assert!(found.err().is_none_or(|text| text.contains("the first on stream")));
            // Accesses to other bytes, and accesses by the same stream, do not conflict.
            let mut accesses = Accesses::default();
            accesses.add(100..200, one, moment(1, 1), &nothing, "the first").unwrap();
            accesses.add(200..300, other, moment(2, 1), &nothing, "beside it").unwrap();
            accesses.add(150..151, other, moment(1, 2), &nothing, "after it").unwrap();
        }
    }

    #[test]
    fn order_is_seen_through_later_accesses() {
        let (mut accesses, mut clock) = (Accesses::default(), Clock::default());
        accesses.add(0..8, Action::Reads, moment(1, 1), &clock, "a read").unwrap();
        clock.advance(moment(1, 1));
        accesses.add(0..8, Action::Writes, moment(2, 1), &clock, "a write").unwrap();
        assert_eq!(accesses.0.len(), 1, "the read is covered");
        let found = accesses.add(0..8, Action::Writes, moment(3, 1), &clock, "another").unwrap_err();
        assert!(found.contains("a write on stream"), "{found}");
        clock.advance(moment(2, 1));
        accesses.add(0..8, Action::Writes, moment(3, 1), &clock, "another").unwrap();
    }
}
