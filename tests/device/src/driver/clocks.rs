//! Vector clocks: the order of operations that follows from streams, events and waits of the host.
//!
//! Each stream numbers its operations. A clock says, for each stream, which is the last operation that comes before. The host has
//! one clock for all threads: threads of a program order themselves in ways that are not visible here, so a wait of one thread
//! counts for all threads. Therefore some missing orders are not detected, but an existing order is never reported as missing.

use std::collections::{HashMap, HashSet};
use std::sync::{LazyLock, Mutex, MutexGuard, RwLock, RwLockReadGuard};

/// By stream, the number of its last operation that comes before.
#[derive(Clone, Debug, Default)]
pub struct Clock(HashMap<u64, u64>);

/// One operation of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub stream: u64,
    pub number: u64,
}

/// Streams that have work or may get work. All other streams have done their work, which counts as known. Clocks drop these other
/// streams; otherwise clocks would grow for ever.
static LIVE: LazyLock<RwLock<HashSet<u64>>> = LazyLock::new(RwLock::default);

/// Registers a new stream.
pub fn begin(stream: u64) {
    LIVE.write().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(stream);
}

/// Removes a stream that was destroyed and has done all its work.
pub fn end(stream: u64) {
    LIVE.write().unwrap_or_else(|poisoned| poisoned.into_inner()).remove(&stream);
}

fn live() -> RwLockReadGuard<'static, HashSet<u64>> {
    LIVE.read().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Clock {
    pub fn knows(&self, moment: Moment) -> bool {
        self.0.get(&moment.stream).is_some_and(|number| *number >= moment.number) || !live().contains(&moment.stream)
    }

    pub fn advance(&mut self, moment: Moment) {
        let number = self.0.entry(moment.stream).or_default();
        *number = moment.number.max(*number);
    }

    pub fn merge(&mut self, other: &Clock) {
        for (stream, number) in &other.0 {
            self.advance(Moment { stream: *stream, number: *number });
        }
        let live = live();
        if self.0.len() > 2 * live.len() + 16 {
            self.0.retain(|stream, _| live.contains(stream));
        }
    }
}

static HOST: LazyLock<Mutex<Clock>> = LazyLock::new(Mutex::default);

/// The clock of the host.
pub fn host() -> MutexGuard<'static, Clock> {
    HOST.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_knows_what_was_merged() {
        let (mut one, mut other) = (Clock::default(), Clock::default());
        // Uses numbers of streams that no other test uses.
        let moment = |stream: u64, number| Moment { stream: u64::MAX - stream, number };
        [1, 2].into_iter().for_each(|stream| begin(u64::MAX - stream));
        one.advance(moment(1, 5));
        other.advance(moment(2, 3));
        assert!(one.knows(moment(1, 4)) && !one.knows(moment(1, 6)) && !one.knows(moment(2, 1)));
        one.merge(&other);
        one.advance(moment(2, 1));
        assert!(one.knows(moment(2, 3)) && !one.knows(moment(2, 4)));
        end(u64::MAX - 2);
        assert!(one.knows(moment(2, 4)), "all that a stream has done is over");
    }
}
