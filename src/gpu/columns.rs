//! Columns in device memory, and calls of the kernel that makes vectors from them.

use super::Stream;
use super::buffer::{Buffer, BufferMut};
use super::device_batch::{check_buffer, foreign_owners};
use crate::backend::cuda::CudaStore;
use crate::layout::columns::{Column, ColumnsView};
use crate::{Key, Result, Storage, Table};
use bytemuck::NoUninit;
use cudarc::driver::{CudaStream, SyncOnDrop};
use std::fmt;
use std::sync::Arc;

/// A column with fields of some type.
trait Fields {
    /// Number of fields.
    fn count(&self) -> usize;

    /// Bytes of a field.
    fn bytes(&self) -> usize;

    fn stream(&self) -> &Arc<CudaStream>;

    fn owner(&self) -> Option<&Arc<CudaStream>>;

    fn device_ptr<'a>(&'a self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>);
}

struct Typed<'a, T>(&'a dyn Buffer<T>);

impl<T> Fields for Typed<'_, T> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn bytes(&self) -> usize {
        size_of::<T>()
    }

    fn stream(&self) -> &Arc<CudaStream> {
        self.0.stream()
    }

    fn owner(&self) -> Option<&Arc<CudaStream>> {
        self.0.owner()
    }

    fn device_ptr<'a>(&'a self, stream: &'a CudaStream) -> (u64, SyncOnDrop<'a>) {
        self.0.device_ptr(stream)
    }
}

/// Vectors as columns in device memory, as dataframes on GPUs (cuDF) have them: column c has field c of every vector.
/// [`Table::from_columns_device`] makes vectors from them; [`Columns`](crate::Columns) are columns in host memory.
#[derive(Default)]
#[must_use = "columns are nothing until `Table::from_columns_device` makes vectors of them"]
pub struct DeviceColumns<'a> {
    columns: Vec<Box<dyn Fields + 'a>>,
}

impl<'a> DeviceColumns<'a> {
    /// Returns an empty list of columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a column: a buffer of fields of any plain data type, such as `u8`, `i16`, `f32`, `u64` or `[u8; 6]`. Fields of a
    /// vector lie one after another in the order of their columns, without gaps.
    pub fn column<T: NoUninit>(mut self, fields: &'a dyn Buffer<T>) -> Self {
        self.columns.push(Box::new(Typed(fields)));
        self
    }

    /// Bytes of the fields of one vector.
    pub fn bytes_per_vector(&self) -> usize {
        self.columns.iter().map(|column| column.bytes()).sum()
    }
}

impl fmt::Debug for DeviceColumns<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: Vec<usize> = self.columns.iter().map(|column| column.bytes()).collect();
        f.debug_struct("DeviceColumns").field("field_bytes", &bytes).finish()
    }
}

impl<K: Key, S: Storage> Table<K, S> {
    /// Enqueues a kernel on `stream` that makes vectors for this table from columns in device memory, and writes them to
    /// `vectors`. Returns the number of vectors at once. Any batch in device memory may read the vectors later on the same
    /// stream. In a table of words, zero bytes fill the last word of each vector. The table itself is neither read nor changed.
    ///
    /// Streams and buffers are ordered as by [`find_or_put_device`](Self::find_or_put_device): `cudarc` orders work on its own
    /// buffers, so a column or `vectors` may be used on other streams, or dropped, as soon as this call has returned. The caller
    /// orders work on a [`ForeignSlice`](super::ForeignSlice).
    ///
    /// A column may begin at any multiple of its type's alignment. The kernel is compiled at the first call.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use warpset::gpu::cudarc_0_19::DeviceExt;
    /// use warpset::gpu::{Counts, DeviceBatch, DeviceColumns};
    /// use warpset::{BucketTable, Device};
    ///
    /// let table = BucketTable::new(&Device::gpu(0)?, 3, 1000)?;
    /// let stream = table.device().cuda_context().unwrap().new_stream()?;
    /// let (numbers, shops) = (stream.clone_htod(&[1u64, 2, 1])?, stream.clone_htod(&[7u16, 8, 7])?);
    /// let articles = stream.clone_htod(&[5u8, 6, 5])?;
    ///
    /// let columns = DeviceColumns::new().column(&numbers).column(&shops).column(&articles);
    /// let mut vectors = stream.alloc_zeros::<u32>(3 * table.width())?;
    /// let count = table.from_columns_device(&stream, &columns, &mut vectors)?;
    /// let mut counts = stream.alloc_zeros::<Counts>(1)?;
    /// table.find_or_put_device(&stream, DeviceBatch::new(&vectors, count).counts(&mut counts))?;
    /// assert_eq!(stream.clone_dtoh(&counts)?[0].tally().new, 2);
    /// assert!(table.contains(&[1, 0, 7 | 5 << 16])?);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Before anything is enqueued: [`LengthMismatch`](crate::Error::LengthMismatch) as for [`from_columns`](Self::from_columns);
    /// [`WrongDevice`](crate::Error::WrongDevice) for a stream or buffer of another GPU or context object;
    /// [`LengthMismatch`](crate::Error::LengthMismatch) if `vectors` has no room for as many vectors as the columns have fields;
    /// [`Misaligned`](crate::Error::Misaligned) if `vectors` does not begin as a batch of this table must;
    /// [`Capturing`](crate::Error::Capturing). Otherwise errors of the compilation and of the driver.
    #[allow(clippy::wrong_self_convention, reason = "the table says how wide a vector is")]
    pub fn from_columns_device<'a>(
        &self,
        stream: impl Into<Stream<'a>>,
        columns: &'a DeviceColumns<'_>,
        vectors: &'a mut dyn BufferMut<K::Element>,
    ) -> Result<usize> {
        const { assert!(K::IS_WHOLE_WORDS, "a key in device memory has a multiple of 4 bytes") };
        let (name, stream) = ("from_columns_device", stream.into().stream);
        let sized = self.raw.ready(name)?;
        let store = CudaStore::of(&*sized.store).ok_or_else(|| self.not_on_gpu(name))?;
        let gpu = store.gpu();
        self.check_bytes_per_vector(columns.bytes_per_vector())?;
        let columns: Vec<&dyn Fields> =
            columns.columns.iter().map(|column| &**column).filter(|column| column.bytes() > 0).collect();
        let count = crate::table::columns::fields_of_each(columns.iter().map(|column| column.count()))?;
        gpu.check_own("stream", stream)?;
        columns.iter().try_for_each(|column| gpu.check_own("a column", column.stream()))?;
        check_buffer(gpu, "vectors", &*vectors, count.saturating_mul(K::elements(self.width())))?;
        gpu.check_not_capturing(stream)?;
        let owners = foreign_owners(stream, columns.iter().map(|column| column.owner()).chain([vectors.owner()]));
        let sized = &sized;
        gpu.recorded(move || {
            let (vectors_at, _write) = vectors.device_ptr_mut(stream);
            sized.spec.check_alignment(vectors_at)?;
            if count == 0 {
                return Ok(());
            }
            let (columns, _reads): (Vec<Column>, Vec<SyncOnDrop<'_>>) = columns
                .iter()
                .map(|column| {
                    let (address, read) = column.device_ptr(stream);
                    (Column { address, bytes: column.bytes() }, read)
                })
                .unzip();
            // Check that the stream really waits for earlier work on the buffers, and that none of that work has pulled the
            // stream into a capture.
            gpu.check_recorded()?;
            gpu.check_not_capturing(stream)?;
            let views = ColumnsView::of_columns(&columns, vectors_at, count as u64);
            // SAFETY: the buffers belong to this GPU's context, have at least `count` fields and vectors (checked above) and are
            // borrowed. `stream` waits for earlier work on them (checked above). The streams that free the buffers wait for
            // `stream` (below); for a foreign buffer, its owner has promised that. The vectors have as many words as the columns'
            // fields take (checked above) and are aligned to at least a word.
            let enqueued = unsafe { store.enqueue_columns(&views, stream.cu_stream()) };
            let ordered = gpu.let_wait(&owners, stream);
            enqueued.and(ordered)
        })?;
        Ok(count)
    }
}
