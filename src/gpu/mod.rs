//! Tables that share a GPU with your own work: batches in device memory, streams, your own kernels, pinned memory.
//!
//! Streams, buffers and modules have types of this module. [`cudarc_0_19`] converts the types of `cudarc` 0.19, and re-exports
//! `cudarc`. The example `custom_kernel` is a whole search that never leaves the GPU.

mod buffer;
mod columns;
pub mod cudarc_0_19;
mod device;
pub(crate) mod device_batch;
mod device_rows;
mod device_values;
mod handles;
mod kernels;
mod pinned;
mod precompile;
mod retain;

pub use crate::backend::cuda::Bulk;
pub use crate::backend::cuda::cache::{KernelCache, set_kernel_cache};
#[doc(hidden)] // for the simulated GPU of the tests
pub use crate::backend::cuda::{BulkPass, BulkPlan, BulkSlices, ShortSeeds};
#[doc(hidden)] // for the simulated GPU of the tests
#[cfg(feature = "cluster")]
pub use crate::layout::rank::PartitionView;
pub use crate::layout::view::Counts;
#[doc(hidden)] // arguments of kernels are passed on, and only tests look into them
pub use crate::layout::view::{
    BatchView, CompactTreeView, CompactView, Geometry, HashView, IndexedView, LevelView, NodeView, RowsView, TableView, TreeView,
};
pub use buffer::{Buffer, BufferMut, ForeignSlice};
pub use columns::DeviceColumns;
pub use device_batch::DeviceBatch;
pub use device_rows::DeviceRows;
pub use device_values::DeviceValues;
pub use handles::{Module, Stream};
pub use kernels::{HEADERS, Program, compile, definitions, definitions_for, load, write_headers};
pub use pinned::PinnedVec;
pub use precompile::Precompile;
