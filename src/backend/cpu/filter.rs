//! The filter of a bucket table: memory for it, and the rule that says which lookups may use it.
//!
//! A put call stores a vector in a slot first and sets its bits in the filter later (cuda/cpu_kernels/filter.hpp). A lookup
//! call that finds a bit unset answers Absent without reading a slot.
//!
//! # The rule
//!
//! A lookup call uses the filter only if no put call was under way when it began. `puts` counts the put calls that are under way.
//!
//! - A put call adds 1 (acquire), then stores vectors and sets bits. It subtracts 1 (release) after all its threads have ended. A
//!   put call that never ends leaves the filter unused for ever.
//! - A lookup call adds 0 (acquire and release). If it reads 0, it may use the filter.
//!
//! # Proof
//!
//! All these accesses are read-modify-writes, so they have one total order, the modification order of `puts`, and each reads the
//! value that the one before it wrote. So if access A releases, access B acquires, and A comes before B in the order, then A
//! happens before B: the accesses between them continue A's release sequence. Let L be a lookup call that reads 0.
//!
//! 1. Each put call that added 1 before L has also subtracted 1 before L, because the sum is 0. So everything that it did,
//!    including setting bits, happens before what L does next (release of the subtraction, acquire of L).
//! 2. L happens before everything that a later put call does after its addition (release of L, acquire of the addition). So no
//!    call that ended before L began has read anything that a later put call wrote: a read that happens before a write does not
//!    return it.
//!
//! If L finds a bit of a vector unset, no earlier put call has stored the vector (step 1), and no call that ended before L began
//! has learned of a later put call that stores it (step 2). So L may answer Absent, as a set would at the moment when L began. If
//! all bits are set, L reads slots, as a lookup without a filter does.
//!
//! A plain load instead of the addition of 0 would be wrong: it might return 0 after a put call P was counted, if nothing orders
//! the two. Another call may have Seen the vector of P by a relaxed load, and have ended before L began.
//! tests/simt/cpp/controls/filter.h has this version and other wrong ones; the simulated GPU catches them all.
//!
//! `clear` and growth need no rule: `clear` has exclusive access to the table, and growth fills a table that no other thread can
//! use yet.

use super::pages::Pages;
use crate::Result;
use std::sync::atomic::{AtomicU64, Ordering};

/// Filter of a bucket table.
pub(super) struct Filter {
    /// Keeps the words allocated. No access goes through this field.
    _memory: Pages,
    /// Address of the words of 64 bits, which kernels read and change atomically.
    words: u64,
    /// Number of words.
    count: u64,
    /// Number of put calls under way.
    puts: AtomicU64,
}

/// A put call that is under way.
pub(super) struct PutUnderWay<'a>(&'a Filter);

impl Drop for PutUnderWay<'_> {
    fn drop(&mut self) {
        // Release: pairs with the acquire of each lookup call that begins later (step 1 of the proof).
        self.0.puts.fetch_sub(1, Ordering::Release);
    }
}

impl Filter {
    /// An empty filter.
    pub(super) fn new(bytes: u64) -> Result<Self> {
        let memory = Pages::new(bytes)?;
        let words = memory.address() as u64;
        Ok(Self { _memory: memory, words, count: bytes / 8, puts: AtomicU64::new(0) })
    }

    /// Begins a put call. Lookup calls that begin before it ends do not use the filter.
    pub(super) fn begin_put(&self) -> PutUnderWay<'_> {
        // Acquire: pairs with the release of each lookup call that came before (step 2 of the proof).
        self.puts.fetch_add(1, Ordering::Acquire);
        PutUnderWay(self)
    }

    /// Whether a lookup call that begins now may use the filter.
    pub(super) fn is_complete(&self) -> bool {
        // Acquire: pairs with the release of each put call that has ended (step 1 of the proof). Release: pairs with the acquire
        // of each put call that begins later (step 2).
        self.puts.fetch_add(0, Ordering::AcqRel) == 0
    }

    /// Forgets all vectors.
    pub(super) fn clear(&mut self) {
        // SAFETY: the words are memory of this filter, which is borrowed exclusively.
        unsafe { std::ptr::write_bytes(self.words as *mut u64, 0, self.count as usize) };
    }

    /// Returns the address and the number of the filter's 64-bit words.
    pub(super) fn words(&self) -> (*mut u64, u64) {
        (self.words as *mut u64, self.count)
    }

    /// Sets all bits to 0 while other calls may use the filter, as if no vector had been stored.
    #[cfg(test)]
    pub(super) fn spoil(&self) {
        let (words, count) = self.words();
        for at in 0..count as usize {
            // SAFETY: within the memory, which is aligned to a page and is accessed atomically only.
            unsafe { AtomicU64::from_ptr(words.add(at)) }.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::backend::cpu::CpuStore;
    use crate::{BucketTable, Device, Request};
    use std::ops::ControlFlow;

    /// Lookups that use a spoiled filter find nothing, so results show which lookups used the filter.
    #[test]
    fn lookups_use_it_only_while_no_put_is_under_way() {
        for threads in [1, 2] {
            let table = BucketTable::builder(2).capacity(40_000).filter(true).build(&Device::cpu_with_threads(threads)).unwrap();
            let stored: Vec<u32> = (0..600).collect();
            let others: Vec<u32> = (1000..41_000).collect();
            table.find_or_put_many(&stored).unwrap().complete(&table).unwrap();
            let found = || table.contains_many(&stored).unwrap().iter().filter(|found| **found).count();
            assert_eq!(found(), 300);
            let sized = table.raw.look();
            let filter = CpuStore::of(&*sized.store).unwrap().filter.as_ref().unwrap();
            filter.spoil();
            assert_eq!(found(), 0, "no put is under way");
            let puts = [filter.begin_put(), filter.begin_put()];
            for put in puts {
                assert_eq!(found(), 300, "a put is under way");
                drop(put);
            }
            assert_eq!(found(), 0, "both puts have ended");
            let mut lookups = 0;
            let mut while_a_put_is_under_way = |_, _| {
                assert_eq!(found(), 300, "a put is under way");
                lookups += 1;
                ControlFlow::Continue(())
            };
            let request = Request::new().progress(&mut while_a_put_is_under_way);
            table.find_or_put_many_with(&others, request).unwrap().complete(&table).unwrap();
            // With two threads, one may do all the work, so the thread that reports may do none.
            assert!(threads == 2 || lookups > 1);
            // Putting `others` has set some of the lost bits again, so a few of the first vectors are found.
            assert!(found() < 100, "the put has ended");
            assert!(table.contains_many(&others).unwrap().iter().all(|found| *found));
            // A panic ends a put, too.
            let panics = std::panic::AssertUnwindSafe(|| {
                let mut callback = |_, _| -> ControlFlow<()> { std::panic::resume_unwind(Box::new(())) };
                table.find_or_put_many_with(&others, Request::new().progress(&mut callback))
            });
            assert!(std::panic::catch_unwind(panics).is_err() || threads == 2);
            assert!(found() < 100, "the put has ended by a panic");
        }
    }
}
