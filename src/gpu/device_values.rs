//! Values beside the rows of an indexed table as memory of its GPU.

use crate::core::lock::SharedGuard;
use crate::core::table::TableState;
use crate::{Error, Key, Result, Values};
use bytemuck::Pod;
use cudarc::driver::CudaStream;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// The values of an indexed table in the memory of its GPU, indexed by number; see [`Values::device`].
pub struct DeviceValues<'a, V> {
    /// Keeps the table unchanged.
    _sized: SharedGuard<'a, TableState>,
    pub(super) address: u64,
    pub(super) len: usize,
    /// A stream of the GPU's context.
    pub(super) stream: Arc<CudaStream>,
    values: PhantomData<&'a mut V>,
}

impl<V> DeviceValues<'_, V> {
    /// Address of the value of number 0. It does not change as long as the [`Values`] live.
    pub fn address(&self) -> u64 {
        self.address
    }
}

impl<V> fmt::Debug for DeviceValues<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceValues").field("address", &self.address).field("len", &self.len).finish_non_exhaustive()
    }
}

impl<K: Key, V: Pod> Values<K, V> {
    /// Returns the values of a table in GPU memory, for kernels: an array indexed by number, with an element for each number that
    /// the table can assign now. All elements get memory. Values of numbers that were not assigned yet are initial ones; a kernel
    /// must leave them so.
    ///
    /// After the table has grown, call this again: the address is unchanged, but only this call provides memory for more numbers.
    ///
    /// Work that is enqueued while the returned value lives may read and write the values, in the order of its streams. The
    /// host's other operations on the values wait for all work that was submitted to the GPU before them.
    ///
    /// Until the returned value is dropped, its thread [holds the table](crate::threads_and_streams#what-a-thread-holds), as with
    /// [`rows`](crate::Table::rows) on a CPU. Calls that need the table alone wait for it to be dropped, and then for the GPU.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use warpset::gpu::cudarc_0_19::{DeviceExt, ModuleExt};
    /// use warpset::gpu::cudarc_0_19::cudarc::driver::{LaunchConfig, PushKernelArg};
    /// use warpset::gpu::DeviceBatch;
    /// use warpset::{Device, IndexedTable};
    ///
    /// let table = IndexedTable::new(&Device::gpu(0)?, 2, 1000)?;
    /// let mut counts = table.values(0u64)?;
    /// let source = r#"
    ///     extern "C" __global__ void count(const unsigned long long* references, unsigned vectors, unsigned long long* counts) {
    ///         unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    ///         if (at < vectors && references[at] != ~0ull) atomicAdd(counts + references[at], 1ull);
    ///     }"#;
    /// let count = table.compile("count.cu", source)?.load_function("count")?;
    ///
    /// let stream = table.device().cuda_context().unwrap().new_stream()?;
    /// let vectors = stream.clone_htod(&[1u32, 1, 2, 2, 1, 1])?;
    /// let mut references = stream.alloc_zeros::<u64>(3)?;
    /// table.find_or_put_device(&stream, DeviceBatch::new(&vectors, 3).references(&mut references))?;
    /// let address = counts.device()?.address();
    /// let mut launch = stream.launch_builder(&count);
    /// launch.arg(&references).arg(&3u32).arg(&address);
    /// // SAFETY: the kernel's arguments; all references are of this table, which does not change meanwhile.
    /// unsafe { launch.launch(LaunchConfig::for_num_elems(3)) }?;
    ///
    /// let one = table.locate_many(&[1, 1])?[0].unwrap();
    /// assert_eq!(counts.get_many(&[one])?, [2]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`WrongDevice`](Error::WrongDevice); [`OutOfMemory`](Error::OutOfMemory), or errors that the device reports. The values
    /// are unchanged.
    pub fn device(&mut self) -> Result<DeviceValues<'_, V>> {
        let device = &self.array.table.device;
        let refused = || Error::needs_gpu("Values::device", device);
        let stream = device.as_gpu().ok_or_else(refused)?.context().default_stream();
        let sized = self.array.table.sized("Values::device")?;
        let numbers = self.array.table.references_of(&sized);
        let mut memory = self.array.open(&sized, numbers)?;
        let address = memory.values.address();
        memory.used = memory.used.max(numbers);
        drop(memory);
        Ok(DeviceValues { _sized: sized, address, len: numbers as usize, stream, values: PhantomData })
    }
}
