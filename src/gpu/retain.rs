//! Retaining the vectors that the caller's kernels have marked.

use super::buffer::Buffer;
use super::device_batch::check_buffer;
use crate::backend::Region;
use crate::backend::cuda::Gpu;
use crate::core::retain::Rebuilt;
use crate::core::table::{RawTable, TableState};
use crate::host::zeroed;
use crate::layout::rows::RowCounts;
use crate::{Key, Result, Storage, Table};

/// Marks in the memory of a GPU: a byte for each slot or row number of a table.
struct Marks<'a> {
    gpu: &'a Gpu,
    buffer: &'a dyn Buffer<u8>,
    address: u64,
}

impl<K: Key, S: Storage> Table<K, S> {
    /// Removes the vectors that are not marked, as [`retain`](Self::retain) removes vectors. A kernel of yours writes the marks,
    /// and no vector leaves the GPU.
    ///
    /// `marks` has a byte for each slot number below [`slots`](Self::slots), in memory of the table's GPU. For an
    /// [`IndexedTable`](crate::IndexedTable), `marks` has a byte for each number that the table has assigned, which are at most
    /// 2^18 more than its slots. A vector stays if the byte of its slot is not 0. Bytes of slots without a vector do not matter.
    /// The kernel knows slots by the references that searches return, or it visits all of them, as in this example. The table
    /// must not change between marking and this call.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use warpset::gpu::cudarc_0_19::{DeviceExt, ModuleExt};
    /// use warpset::gpu::cudarc_0_19::cudarc::driver::{LaunchConfig, PushKernelArg};
    /// use warpset::{BucketTable, Device};
    ///
    /// const SOURCE: &str = r#"
    ///     #include "warpset/table.cuh"
    ///
    ///     // Keeps the vectors whose words have an even sum.
    ///     extern "C" __global__ void mark(warpset::View view, unsigned long long slots, unsigned char* marks) {
    ///         const auto table = warpset::table(view);
    ///         const unsigned threads = gridDim.x * blockDim.x;
    ///         for (unsigned long long slot = blockIdx.x * blockDim.x + threadIdx.x; slot < slots; slot += threads) {
    ///             unsigned sum = 0;
    ///             if (table.read_words(slot, 0, 1, [&](unsigned, unsigned value) { sum += value; })) marks[slot] = sum % 2 == 0;
    ///         }
    ///     }"#;
    ///
    /// let table = BucketTable::new(&Device::gpu(0)?, 2, 1000)?;
    /// table.find_or_put_many(&[1, 1, /**/ 2, 3])?.complete(&table)?;
    /// let mark = table.compile("mark.cu", SOURCE)?.load_function("mark")?;
    /// let stream = table.device().cuda_context().expect("a GPU has one").new_stream()?;
    /// let (view, slots) = (table.kernel_argument()?, table.slots());
    /// let mut marks = stream.alloc_zeros::<u8>(slots as usize)?;
    /// // SAFETY: the arguments of `mark`; there is a byte for each slot.
    /// unsafe {
    ///     let mut launch = stream.launch_builder(&mark);
    ///     launch.arg(&view).arg(&slots).arg(&mut marks);
    ///     launch.launch(LaunchConfig::for_num_elems(slots as u32))?;
    /// }
    /// assert_eq!(table.retain_marked(&marks)?, 1);
    /// assert_eq!(table.contains_many(&[1, 1, /**/ 2, 3])?, [true, false]);
    /// # Ok(()) }
    /// ```
    ///
    /// For an indexed table, the marks are copied to the host, and the numbers of the rows that stay are copied to the GPU.
    ///
    /// # Errors
    ///
    /// The errors of [`retain`](Self::retain); [`WrongDevice`](crate::Error::WrongDevice),
    /// [`LengthMismatch`](crate::Error::LengthMismatch). After an error the table is as it was.
    pub fn retain_marked(&self, marks: &impl Buffer<u8>) -> Result<u64> {
        const CALL: &str = "retain_marked";
        let gpu = self.device().as_gpu().ok_or_else(|| self.not_on_gpu(CALL))?;
        check_buffer(gpu, "marks", marks, 0)?;
        let stream = gpu.context().default_stream();
        // The table waits for all work on the GPU before it reads the marks.
        let (address, _read) = marks.device_ptr(&stream);
        let marks = Marks { gpu, buffer: marks, address };
        self.raw.replace(CALL, |sized| match sized.spec.is_indexed() {
            true => marked_rows(&self.raw, sized, &marks),
            false => marked_vectors(&self.raw, sized, &marks),
        })
    }
}

/// Returns a table of the vectors whose slots are marked, or `None` if all vectors are marked.
fn marked_vectors(raw: &RawTable, sized: &TableState, marks: &Marks<'_>) -> Result<Option<Rebuilt>> {
    let slots = raw.slots_of(sized);
    check_buffer(marks.gpu, "marks", marks.buffer, slots as usize)?;
    let table = TableState::new(&raw.device, &raw.parameters_of(sized))?;
    // SAFETY: the buffer has a byte for each slot (checked above), and stays borrowed.
    let rehash = |slots| unsafe { sized.store.rehash_marked(&*table.store, slots, marks.address) };
    raw.move_all(sized, &table, slots, &rehash)?;
    let removed = sized.stored()?[0] - table.stored()?[0];
    Ok((removed > 0).then_some(Rebuilt { table, removed, numbers: None }))
}

/// Returns a table of the rows whose numbers are marked, in their order, without holes, or `None` if all rows are marked.
fn marked_rows(raw: &RawTable, sized: &TableState, marks: &Marks<'_>) -> Result<Option<Rebuilt>> {
    let RowCounts { stored, given, .. } = sized.store.row_counts()?;
    check_buffer(marks.gpu, "marks", marks.buffer, given as usize)?;
    let mut flags = zeroed::<u8>(given as usize)?;
    // SAFETY: the buffer has `given` bytes (checked above), and stays borrowed.
    unsafe { sized.store.machine().read(Region { address: marks.address, bytes: given }, 0, &mut flags)? };
    let mut holes = if stored < given { sized.store.list_holes(sized.store.dense()..given, given)?.0 } else { Vec::new() };
    holes.sort_unstable();
    let mut holes = holes.into_iter().peekable();
    let numbers: Vec<u64> = (0..given).filter(|row| holes.next_if_eq(row).is_none() && flags[*row as usize] != 0).collect();
    let removed = stored - numbers.len() as u64;
    if removed == 0 { Ok(None) } else { raw.rows_only(sized, numbers, removed).map(Some) }
}
