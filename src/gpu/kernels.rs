//! Users' own kernels that call find-or-put, and kernels that are compiled without a GPU.

use super::Module;
use super::precompile::spec_of;
use crate::backend::cuda::CudaStore;
use crate::backend::cuda::nvrtc::{self, Job};
use crate::{Device, Error, Key, Result, Spec, Storage, Table, TableBuilder, VectorTable};
use std::io;
use std::path::Path;

/// The CUDA C++ headers, as (name for `#include`, text). Your own kernels include them to use a table.
///
/// [`Table::compile`] uses them by itself. For a build of your own, [`write_headers`] writes them to a folder.
pub const HEADERS: &[(&str, &str)] = &nvrtc::HEADERS;

/// Writes the [`HEADERS`] to a folder, which is created if it does not exist: `FOLDER/warpset/table.cuh` and so on. Give the
/// folder to nvcc or CMake as an include folder.
///
/// A header that the folder has already, with the same text, is not written again, so a build that depends on it is not repeated.
/// Other files in the folder stay.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// # let folder = std::env::temp_dir().join(format!("warpset-headers-{}", std::process::id()));
/// warpset::gpu::write_headers(&folder)?;
/// assert!(folder.join("warpset/table.cuh").is_file());
/// # std::fs::remove_dir_all(folder)
/// # }
/// ```
///
/// # Errors
///
/// Errors of the file system. Some of the files may have been written.
pub fn write_headers(folder: impl AsRef<Path>) -> io::Result<()> {
    for (name, text) in HEADERS {
        let path = folder.as_ref().join(name);
        if std::fs::read(&path).is_ok_and(|bytes| bytes == text.as_bytes()) {
            continue;
        }
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(path, text)?;
    }
    Ok(())
}

/// The macros that `warpset/table.cuh` needs for tables of a spec, as options of nvcc: `-DWARPSET_WIDTH=4` and so on. A kernel
/// that was compiled with them is valid for every table whose [`spec`](Table::spec) gives the same macros.
///
/// ```no_run
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::{BucketTable, Device, gpu};
///
/// let table = BucketTable::new(&Device::gpu(0)?, 4, 1000)?;
/// println!("nvcc -std=c++17 -ptx -I headers {} visit.cu", gpu::definitions(table.spec()).join(" "));
/// # Ok(()) }
/// ```
pub fn definitions(spec: Spec) -> Vec<String> {
    nvrtc::definitions(spec)
}

/// Same as [`definitions`] for a table with the default options (an indexed table: of up to 2^24 slots) on a GPU of this compute
/// capability. Needs no table and no GPU.
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// let options = warpset::gpu::definitions_for::<warpset::Bucket>(4, (9, 0))?;
/// assert!(options.contains(&"-DWARPSET_WIDTH=4".into()) && options.contains(&"-DWARPSET_CHUNK_BYTES=16".into()));
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// [`OutOfRange`](Error::OutOfRange).
pub fn definitions_for<S: Storage>(width: usize, compute_capability: (u32, u32)) -> Result<Vec<String>> {
    Ok(nvrtc::definitions(spec_of(&VectorTable::<S>::builder(width), compute_capability)?))
}

impl<K: Key, S: Storage> Table<K, S> {
    /// Argument for your own kernels that use this table: their `warpset::View`. The headers define its layout, which is not part
    /// of the interface.
    ///
    /// The argument is valid until the table grows, retains some of its vectors or is dropped, or until an indexed table is
    /// cleared or truncated. Only kernels compiled for the current [`spec`](Self::spec) of the table may use it. No such kernel
    /// may be running or be launched during `clear`, growth, `truncate`, `relocate`, `retain` or `save`. After `relocate` has
    /// returned an error, the same holds until another call has succeeded. The caller that launches a kernel promises this with
    /// its `unsafe` block. (Dropping a table waits for all work that was submitted to the GPU before.) References that the
    /// kernel's threads get are slot numbers ([`reference`](Self::reference)). [`len`](Self::len) counts the vectors that they
    /// put by `Table::find_or_put`.
    ///
    /// # Errors
    ///
    /// [`WrongDevice`](Error::WrongDevice); for an indexed table [`OutOfMemory`](Error::OutOfMemory) if there is no memory for as
    /// many rows as it has slots.
    pub fn kernel_argument(&self) -> Result<S::View> {
        let sized = self.raw.ready("kernel_argument")?;
        let store = CudaStore::of(&*sized.store).ok_or_else(|| self.not_on_gpu("kernel_argument"))?;
        store.make_all_rows()?;
        self.raw.calls.note_kernels();
        Ok(store.view().into())
    }

    /// Compiles your own CUDA C++ for this table's GPU and its [`spec`](Self::spec), and loads it. If a growth has changed the
    /// spec, compile it again: a kernel for another spec would misinterpret the slots. The source may include
    /// `warpset/table.cuh`, where `warpset::Table` is this table's type. `name` is for messages. The result is kept on disk for
    /// the next process, unless the source includes a file of yours, which may change: [Compilation and the kernel
    /// cache](crate::host_batches#compilation-and-the-kernel-cache).
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use warpset::gpu::cudarc_0_19::ModuleExt;
    ///
    /// let table = warpset::BucketTable::new(&warpset::Device::gpu(0)?, 2, 1000)?;
    /// let source = r#"
    ///     #include "warpset/table.cuh"
    ///     extern "C" __global__ void put_one(warpset::View view) {
    ///         unsigned vector[WARPSET_WIDTH] = {1, 2};
    ///         warpset::table(view).find_or_put(warpset::WordVector{vector});
    ///     }"#;
    /// let put_one = table.compile("put_one.cu", source)?.load_function("put_one")?;
    /// let view = table.kernel_argument()?; // the kernel's first argument
    /// # let _ = (put_one, view);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`WrongDevice`](Error::WrongDevice); [`Compile`](Error::Compile) with NVRTC's log.
    pub fn compile(&self, name: &str, source: &str) -> Result<Module> {
        let gpu = self.device().as_gpu().ok_or_else(|| self.not_on_gpu("compile"))?;
        let module = gpu.load(&Job::new(name, source, self.spec(), gpu.compute_capability()))?;
        Ok(Module { module })
    }

    pub(super) fn not_on_gpu(&self, operation: &'static str) -> Error {
        Error::needs_gpu(operation, self.device())
    }
}

/// Kernels that [`compile`] compiles.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Program<'a> {
    /// All kernels of a table.
    Table,
    /// The kernels of a rank of a [`cluster`](crate::cluster). They do not depend on the table.
    #[cfg(feature = "cluster")]
    Rank,
    /// CUDA C++ of your own, which may include `warpset/table.cuh`.
    Own {
        /// Name for messages.
        name: &'a str,
        /// The text.
        source: &'a str,
    },
}

/// Compiles kernels for the table that a builder describes, on a GPU of this compute capability. NVRTC needs no GPU for that.
/// Returns the CUBIN, or PTX if this NVRTC does not know the architecture. Each call compiles: the kernel cache is
/// not used.
///
/// The [`Spec`] follows from the builder as it does when a table is built. For an indexed table or a tree table with compact
/// roots it depends on the capacity and the number of nodes.
///
/// ```
/// use warpset::BucketTable;
/// use warpset::gpu::{Program, compile};
///
/// match compile(&BucketTable::builder(8), Program::Table, (9, 0)) {
///     Ok(cubin) => assert!(cubin.len() > 1000),
///     Err(error) => println!("no NVRTC here: {error}"),
/// }
/// ```
///
/// # Errors
///
/// [`LibraryNotFound`](Error::LibraryNotFound); [`Compile`](Error::Compile) with NVRTC's log; the errors of
/// [`TableBuilder::build`] for options that no table can have.
pub fn compile<K: Key, S: Storage>(
    builder: &TableBuilder<K, S>,
    program: Program<'_>,
    compute_capability: (u32, u32),
) -> Result<Vec<u8>> {
    let spec = spec_of(builder, compute_capability)?;
    let job = match program {
        Program::Table => Job::table(spec, None, compute_capability),
        #[cfg(feature = "cluster")]
        Program::Rank => Job::cluster(compute_capability),
        Program::Own { name, source } => Job::new(name, source, spec, compute_capability),
    };
    nvrtc::compile(&job, None)
}

/// Compiles CUDA C++ of your own as [`Table::compile`] does, and loads it, for the table that a builder describes. No table is
/// built: this is for kernels that prepare data, or that use tables made later with the same options.
///
/// # Errors
///
/// [`WrongDevice`](Error::WrongDevice); [`Compile`](Error::Compile) with NVRTC's log; the errors of [`TableBuilder::build`] for
/// options that no table can have.
pub fn load<K: Key, S: Storage>(device: &Device, builder: &TableBuilder<K, S>, name: &str, source: &str) -> Result<Module> {
    let gpu = device.as_gpu().ok_or_else(|| Error::needs_gpu("load", device))?;
    let job = Job::new(name, source, spec_of(builder, gpu.compute_capability())?, gpu.compute_capability());
    Ok(Module { module: gpu.load(&job)? })
}
