//! The engine on threads of this machine, whatever the table's device.

use crate::engine::{Counts, Engine, Exploration, Explorer, Found, Limits};
use crate::path::walk_back;
use crate::record::Recorder;
use crate::report::Measurements;
use crate::successors::Successors;
use anyhow::Result;
use warpset::{Storage, VectorTable};

pub struct Threads<'a, S, X> {
    pub table: &'a VectorTable<S>,
    pub source: &'a X,
    pub initial: Vec<u32>,
    /// Gets every vector that is offered, but those offered again for a path.
    pub recorder: Option<&'a Recorder>,
}

impl<S: Storage, X: Successors> Explorer for Threads<'_, S, X> {
    fn explore(&mut self, limits: Limits, observer: &(dyn Fn(&Counts) + Sync)) -> Result<Exploration> {
        let Self { table, source, recorder, .. } = *self;
        Engine { table, source, limits, recorder, observer }.run(&self.initial, None)
    }

    fn measurements(&mut self) -> Result<Option<Measurements>> {
        Ok(None)
    }

    fn path(&mut self, found: &Found, limits: Limits) -> Result<Vec<Vec<u32>>> {
        walk_back(self.table, self.source, &self.initial, found, limits)
    }
}
