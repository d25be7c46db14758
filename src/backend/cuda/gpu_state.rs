//! State that all tables of a GPU share: the kernels of each spec, and the buffers for host batches.

use super::Gpu;
use super::kernels::Kernels;
use super::stages::Stages;
use crate::{Result, Spec};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

pub(super) struct GpuState {
    pub gpu: Arc<Gpu>,
    kernels: Mutex<HashMap<Spec, Arc<Kernels>>>,
    pub stages: Stages,
    /// Number of tables in the memory of the GPU.
    stores: AtomicUsize,
}

impl GpuState {
    pub(super) fn new(gpu: Arc<Gpu>) -> Self {
        Self { gpu, kernels: Mutex::default(), stages: Stages::default(), stores: AtomicUsize::new(0) }
    }

    /// Kernels of a spec. The first request compiles the kernels that put vectors; others are compiled when they are first used.
    pub(super) fn kernels(&self, spec: Spec) -> Result<Arc<Kernels>> {
        let lock = || self.kernels.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(kernels) = lock().get(&spec) {
            return Ok(kernels.clone());
        }
        // If another thread's kernels are kept, these are unloaded, which would leave their context current.
        let _current = self.gpu.bind()?;
        // The lock is not held meanwhile, so that other threads can compile for other specs. If several threads need the kernels
        // of one spec at once, each compiles them, and the first ones are kept.
        let compiled = Arc::new(Kernels::load(&self.gpu, spec)?);
        Ok(lock().entry(spec).or_insert(compiled).clone())
    }

    /// Counts a table that may use the buffers for host batches.
    pub(super) fn add_store(&self) {
        // Relaxed: an independent counter.
        self.stores.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes a table from the count. Removing the last one frees the buffers, because they would keep the GPU, and so its
    /// context, for ever.
    pub(super) fn remove_store(&self) {
        // Acquire and release, each pairs with the other in another call: the thread that removes the last store sees all stages
        // that the other threads have given back.
        if self.stores.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.stages.clear();
        }
    }
}
