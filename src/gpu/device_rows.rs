//! The rows of an indexed table as memory of its GPU.

use super::buffer::{Buffer, sealed};
use crate::backend::cuda::CudaStore;
use crate::core::lock::SharedGuard;
use crate::core::table::TableState;
use crate::{Indexed, Key, Result, Table, Words};
use cudarc::driver::CudaStream;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// The rows of an indexed table in the memory of its GPU, in the order of their references; see
/// [`Table::rows_device`](crate::Table::rows_device). A batch may read them, because they are a [`Buffer`].
pub struct DeviceRows<'a, K: Key = Words> {
    /// Keeps the rows unchanged.
    _sized: SharedGuard<'a, TableState>,
    pub(super) address: u64,
    rows: u64,
    pub(super) elements: usize,
    /// A stream of the GPU's context.
    pub(super) stream: Arc<CudaStream>,
    keys: PhantomData<fn() -> K>,
}

impl<K: Key> DeviceRows<'_, K> {
    /// Address of the first row.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

impl<K: Key> fmt::Debug for DeviceRows<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceRows").field("address", &self.address).field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<K: Key> sealed::Buffer<K::Element> for DeviceRows<'_, K> {
    fn owner(&self) -> Option<&Arc<CudaStream>> {
        None
    }
}

impl<K: Key> Buffer<K::Element> for DeviceRows<'_, K> {}

impl<K: Key> Table<K, Indexed> {
    /// Returns the rows of a table on a GPU, in place. [`rows`](Self::rows) copies them to the host.
    ///
    /// Work that is enqueued while the returned value lives may read the rows.
    ///
    /// Until that value is dropped, its thread [holds the table](crate::threads_and_streams#what-a-thread-holds), as with
    /// [`rows`](Self::rows) on a CPU. Calls that need the table alone wait for it to be dropped, and then for the GPU.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use warpset::gpu::cudarc_0_19::DeviceExt;
    /// use warpset::gpu::DeviceBatch;
    /// use warpset::{BucketTable, Device, IndexedTable};
    ///
    /// let device = Device::gpu(0)?;
    /// let (table, other) = (IndexedTable::new(&device, 2, 1000)?, BucketTable::new(&device, 2, 1000)?);
    /// table.find_or_put_many(&[1, 1, 2, 2])?.complete(&table)?;
    /// let stream = device.cuda_context().unwrap().new_stream()?;
    /// let rows = table.rows_device()?;
    /// other.find_or_put_device(&stream, DeviceBatch::new(&rows, rows.rows() as usize))?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`WrongDevice`](crate::Error::WrongDevice), or errors that the device reports.
    pub fn rows_device(&self) -> Result<DeviceRows<'_, K>> {
        const { assert!(K::IS_WHOLE_WORDS, "a key in device memory has a multiple of 4 bytes") };
        let gpu = self.device().as_gpu().ok_or_else(|| self.not_on_gpu("rows_device"))?;
        let (sized, rows) = self.raw.with_dense_rows("rows_device")?;
        let address = CudaStore::of(&*sized.store).map_or(0, |store| store.rows_address());
        let elements = rows as usize * K::elements(self.width());
        Ok(DeviceRows { _sized: sized, address, rows, elements, stream: gpu.context().default_stream(), keys: PhantomData })
    }
}
