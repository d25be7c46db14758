//! Interface of a set to the checker, so that the checker can be tested on faulty sets, too (faulty.rs).

use warpset::{Batch, Reference, Request, Stats, Storage, VectorTable};

pub trait Set {
    fn width(&self) -> usize;
    fn slots(&self) -> u64;
    fn bytes(&self) -> u64;
    /// Requests every result.
    fn find_or_put(&self, vectors: &[u32]) -> Batch;
    fn contains(&self, vectors: &[u32]) -> Vec<bool>;
    fn locate(&self, vectors: &[u32]) -> Vec<Option<Reference>>;
    fn get(&self, references: &[Reference]) -> Result<Vec<u32>, String>;
    fn rows(&self) -> Vec<(Reference, Vec<u32>)>;
    fn stored(&self) -> u64;
    fn stats(&self) -> Stats;
    fn clear(&self);
    fn grow(&self, capacity: u64);
}

impl<S: Storage> Set for VectorTable<S> {
    fn width(&self) -> usize {
        self.width()
    }

    fn slots(&self) -> u64 {
        self.slots()
    }

    fn bytes(&self) -> u64 {
        self.bytes()
    }

    fn find_or_put(&self, vectors: &[u32]) -> Batch {
        self.find_or_put_many_with(vectors, everything()).expect("find-or-put")
    }

    fn contains(&self, vectors: &[u32]) -> Vec<bool> {
        self.contains_many(vectors).expect("contains")
    }

    fn locate(&self, vectors: &[u32]) -> Vec<Option<Reference>> {
        self.locate_many(vectors).expect("locate")
    }

    fn get(&self, references: &[Reference]) -> Result<Vec<u32>, String> {
        self.get_many(references).map_err(|error| error.to_string())
    }

    fn rows(&self) -> Vec<(Reference, Vec<u32>)> {
        self.iter().collect::<Result<_, _>>().expect("iteration")
    }

    fn stored(&self) -> u64 {
        self.len().expect("len")
    }

    fn stats(&self) -> Stats {
        self.stats().expect("stats")
    }

    fn clear(&self) {
        self.clear().expect("clear");
    }

    fn grow(&self, capacity: u64) {
        self.reserve_total(capacity).expect("growth");
    }
}

/// A request for every result.
pub fn everything<'a>() -> Request<'a> {
    Request::new().outcomes(true).references(true).new_references(true)
}
