//! Tables that share a GPU with your own work: batches in device memory, streams, your own kernels, pinned memory.
//!
//! The types are those of [`cudarc`], which is re-exported as [`warpset::cudarc`](crate::cudarc). The example `custom_kernel` is
//! a whole search that never leaves the GPU.

pub(crate) mod batch;
mod buffer;
mod columns;
mod device;
mod kernels;
mod pinned;
mod precompile;
mod retain;
mod rows;
mod values;

pub use crate::backend::cuda::cache::{KernelCache, set_kernel_cache};
#[doc(hidden)] // for the simulated GPU of the tests
#[cfg(feature = "cluster")]
pub use crate::layout::rank::PartitionView;
#[doc(hidden)] // for the simulated GPU of the tests
pub use crate::layout::view::{BatchView, Geometry};
pub use crate::layout::view::{
    CompactTreeView, CompactView, Counts, HashView, IndexedView, LevelView, NodeView, RowsView, TableView, TreeView,
};
pub use batch::DeviceBatch;
pub use buffer::{Buffer, BufferMut, ForeignSlice};
pub use columns::DeviceColumns;
pub use kernels::{HEADERS, Program, compile, definitions, definitions_for, load, write_headers};
pub use pinned::PinnedVec;
pub use precompile::Precompile;
pub use rows::DeviceRows;
pub use values::DeviceValues;
