//! Modules, functions and launches.

use super::accesses::Action;
use super::call::{Answer, put};
use super::context::{self, Context};
use super::device::limits;
use super::fault::{self, Change};
use super::handles::{Handles, new_handle};
use super::memory::{self, AllocationKind};
use super::settings::settings;
use super::stream::{self, Stream};
use super::{launcher, report};
use crate::execution::{self, Launch, Status};
use cudarc::driver::sys::{CUdeviceptr, CUfunction, CUfunction_attribute_enum as Attribute, CUmodule, CUresult, CUstream};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use warpset_random::mix;

static MODULES: Handles<Module> = Handles::new();
static FUNCTIONS: Handles<Function> = Handles::new();

pub struct Module {
    handle: usize,
    context: Arc<Context>,
    loaded: execution::Module,
    /// By name, the handle of each function that was requested.
    functions: Mutex<HashMap<String, usize>>,
    /// Addresses of the variables that were requested.
    globals: Mutex<Vec<u64>>,
}

pub struct Function {
    module: usize,
    context: Arc<Context>,
    kernel: Arc<execution::Function>,
    /// Limit of the dynamic shared memory that a launch may request.
    most_dynamic_shared: AtomicU32,
}

fn load(place: *mut CUmodule, image: *const c_void) -> Answer {
    let context = context::current()?;
    if image.is_null() {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    // SAFETY: the caller passes an image, and its first bytes give its length.
    let image = unsafe { execution::image_bytes(image.cast()) }.ok_or(CUresult::CUDA_ERROR_INVALID_IMAGE)?;
    let loaded = execution::Module::load(image).map_err(|error| {
        report::remark(&format!("cuModuleLoadData: {error}"));
        CUresult::CUDA_ERROR_INVALID_IMAGE
    })?;
    let handle = new_handle();
    // SAFETY: the caller keeps the conditions that the driver documents.
    unsafe { put(place, handle as CUmodule) }?;
    let module = Module { handle, context, loaded, functions: Mutex::default(), globals: Mutex::default() };
    MODULES.insert(handle, Arc::new(module));
    Ok(())
}

/// Number of blocks of a function that a multiprocessor can hold at once.
fn occupancy(function: &Function, threads: u32, dynamic_shared: u64) -> Result<u32, CUresult> {
    let kernel = &function.kernel;
    if threads == 0 {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    let shared = u64::from(kernel.static_shared_bytes) + dynamic_shared;
    if threads > kernel.max_threads_per_block || shared > u64::from(limits::SHARED_PER_BLOCK_AT_MOST) {
        return Ok(0);
    }
    let warps = threads.div_ceil(limits::WARP);
    let by_shared = u64::from(limits::SHARED_PER_MULTIPROCESSOR) / (shared + u64::from(limits::SHARED_RESERVED));
    let by_registers = limits::REGISTERS_PER_MULTIPROCESSOR / (kernel.registers.max(1) * limits::WARP * warps);
    let by_threads = limits::THREADS_PER_MULTIPROCESSOR / (warps * limits::WARP);
    Ok(by_threads.min(by_registers).min(by_shared as u32).min(limits::BLOCKS_PER_MULTIPROCESSOR))
}

/// Packs the arguments in the kernel's layout.
///
/// # Safety
///
/// `parameters` must be the addresses of the function's arguments, in its order and with its types.
unsafe fn pack(kernel: &execution::Function, parameters: *mut *mut c_void) -> Result<Vec<u8>, CUresult> {
    let mut packed = vec![0; kernel.argument_bytes];
    if kernel.parameter_sizes.is_empty() {
        return Ok(packed);
    }
    if parameters.is_null() {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    for (number, (size, offset)) in kernel.parameter_sizes.iter().zip(&kernel.parameter_offsets).enumerate() {
        // SAFETY: the caller passes one address for each parameter, of memory with the parameter's size.
        unsafe {
            let argument = *parameters.add(number);
            if argument.is_null() {
                return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
            }
            std::ptr::copy_nonoverlapping(argument.cast::<u8>(), packed.as_mut_ptr().add(*offset), *size);
        }
    }
    Ok(packed)
}

/// Swaps the first two arguments that have the same size and different values. This is a mistake that tests must find.
fn swap(kernel: &execution::Function, packed: &mut [u8]) {
    let argument =
        |number: usize| kernel.parameter_offsets[number]..kernel.parameter_offsets[number] + kernel.parameter_sizes[number];
    let count = kernel.parameter_sizes.len();
    let pairs = (0..count).flat_map(|first| (first + 1..count).map(move |second| (argument(first), argument(second))));
    for (first, second) in pairs {
        if first.len() == second.len() && packed[first.clone()] != packed[second.clone()] {
            let kept = packed[first.clone()].to_vec();
            packed.copy_within(second.clone(), first.start);
            packed[second].copy_from_slice(&kept);
            return;
        }
    }
}

/// Returns the addresses among the arguments, with their allocations. A number counts as an address if it lies in an allocation.
fn mentioned(packed: &[u8]) -> Vec<(u64, Arc<memory::Region>)> {
    let words = packed.chunks_exact(8).map(|bytes| u64::from_ne_bytes(bytes.try_into().expect("eight bytes")));
    words.filter_map(|word| memory::find(word).map(|region| (word, region))).collect()
}

struct Shape {
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    cooperative: bool,
}

/// Checks a launch as the driver does.
fn check_shape(function: &Function, shape: &Shape) -> Answer {
    let Shape { grid, block, shared, cooperative } = shape;
    let outside = |sizes: &[u32; 3], most: [u32; 3]| sizes.iter().zip(most).any(|(size, most)| *size == 0 || *size > most);
    let threads: u64 = block.iter().map(|size| u64::from(*size)).product();
    if outside(grid, limits::GRID) || outside(block, limits::BLOCK) || threads > u64::from(limits::THREADS_PER_BLOCK) {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    let kernel = &function.kernel;
    if threads > u64::from(kernel.max_threads_per_block) {
        return Err(CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    }
    // Relaxed: the caller orders calls on one function.
    if *shared > function.most_dynamic_shared.load(Ordering::Relaxed) {
        return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    if *cooperative {
        let blocks: u64 = grid.iter().map(|size| u64::from(*size)).product();
        let resident = occupancy(function, threads as u32, u64::from(*shared))?;
        if blocks > u64::from(resident) * u64::from(function.context.device.settings.multiprocessors) {
            return Err(CUresult::CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
        }
    }
    Ok(())
}

fn status_of(status: Status) -> CUresult {
    match status {
        Status::InvalidValue => CUresult::CUDA_ERROR_INVALID_VALUE,
        Status::OutOfResources => CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
        Status::Trap => CUresult::CUDA_ERROR_LAUNCH_FAILED,
        Status::Assertion => CUresult::CUDA_ERROR_ASSERT,
        Status::Misaligned => CUresult::CUDA_ERROR_MISALIGNED_ADDRESS,
        // No GPU reports these errors.
        Status::Collective | Status::Stuck | Status::SharedMemory => CUresult::CUDA_ERROR_UNKNOWN,
    }
}

/// # Safety
///
/// As for `pack`.
unsafe fn launch(function: CUfunction, shape: Shape, stream: CUstream, parameters: *mut *mut c_void) -> Answer {
    let (function, stream): (Arc<Function>, Arc<Stream>) = (FUNCTIONS.get(function as usize), stream::of(stream)?);
    let context = stream.context.clone();
    if function.context.handle != context.handle {
        return Err(CUresult::CUDA_ERROR_INVALID_HANDLE);
    }
    context.check()?;
    check_shape(&function, &shape)?;
    // SAFETY: the caller keeps the conditions of this function.
    let mut arguments = unsafe { pack(&function.kernel, parameters) }?;
    if fault::change() == Change::Swapped {
        swap(&function.kernel, &mut arguments);
    }
    let name = function.kernel.name.clone();
    let what = format!("the kernel {name} of {:?} blocks of {:?} threads", shape.grid, shape.block);
    let mentioned = mentioned(&arguments);
    for (_, region) in mentioned.iter().filter(|(_, region)| region.is_on_device()) {
        if !context.can_access_device(region.device) {
            report::end(&format!("{what} on device {} gets the address of {}", context.device.ordinal, region.describe()));
        }
    }
    static LAUNCHES: AtomicU64 = AtomicU64::new(0);
    // Relaxed: only the uniqueness of the number matters.
    let launches = LAUNCHES.fetch_add(1, Ordering::Relaxed);
    let seed = match settings().seed {
        0 => 0,
        seed => mix(seed ^ launches << 32) | 1,
    };
    let note = |_: &Arc<Stream>, moment, clock: &_| {
        let note = |(address, region): &(u64, Arc<memory::Region>)| {
            region.use_by(*address..*address + 1, Action::Gets, moment, clock, &what);
        };
        mentioned.iter().for_each(note);
    };
    let device = context.device;
    let run = move || {
        let launch = Launch {
            grid: shape.grid,
            block: shape.block,
            dynamic_shared_bytes: shape.shared,
            cooperative: shape.cooperative,
            arguments: &arguments,
            seed,
            device: device.ordinal,
            multiprocessors: device.settings.multiprocessors,
        };
        execution::run(&function.kernel, &launch).map_err(|fault| {
            report::remark(&format!("a kernel has failed: {fault}"));
            match fault.status {
                // No GPU reports this mistake, so the process ends.
                Status::Collective | Status::Stuck | Status::SharedMemory => report::end(&fault.message),
                status => status_of(status),
            }
        })
    };
    let times = if fault::change() == Change::Twice { 2 } else { 1 };
    stream.enqueue(what.clone(), note, move || launcher::run(move || (0..times).try_for_each(|_| run())))?;
    Ok(())
}

functions! {
    fn cuModuleLoadData(place: *mut CUmodule, image: *const c_void) {
        load(place, image)?;
    }

    fn cuModuleLoadDataEx(
        place: *mut CUmodule, image: *const c_void, _count: c_uint, _options: *mut u32, _values: *mut *mut c_void,
    ) {
        load(place, image)?;
    }

    fn cuModuleUnload(module: CUmodule) {
        context::current()?;
        let module = MODULES.remove(module as usize);
        for address in module.globals.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).drain(..) {
            memory::remove(address, &[AllocationKind::Global]);
        }
        // Launches that are running keep their kernel alive. Later launches do not find the function.
        for handle in module.functions.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).drain().map(|(_, handle)| handle) {
            FUNCTIONS.remove(handle);
        }
    }

    fn cuModuleGetFunction(place: *mut CUfunction, module: CUmodule, name: *const c_char) {
        context::current()?;
        let module = MODULES.get(module as usize);
        if name.is_null() {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: the caller passes a text that ends in zero.
        let name = unsafe { CStr::from_ptr(name) };
        let kernel = module.loaded.function(name).ok_or(CUresult::CUDA_ERROR_NOT_FOUND)?;
        let mut functions = module.functions.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let handle = *functions.entry(kernel.name.clone()).or_insert_with(|| {
            let handle = new_handle();
            let most = limits::SHARED_PER_BLOCK.saturating_sub(kernel.static_shared_bytes);
            let most_dynamic_shared = AtomicU32::new(most);
            let function = Function { module: module.handle, context: module.context.clone(), kernel, most_dynamic_shared };
            FUNCTIONS.insert(handle, Arc::new(function));
            handle
        });
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, handle as CUfunction) }?;
    }

    fn cuModuleGetGlobal_v2(place: *mut CUdeviceptr, bytes: *mut usize, module: CUmodule, name: *const c_char) {
        context::current()?;
        let module = MODULES.get(module as usize);
        if name.is_null() {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
        // SAFETY: the caller passes a text that ends in zero.
        let name = unsafe { CStr::from_ptr(name) };
        let (address, size) = module.loaded.global(name).ok_or(CUresult::CUDA_ERROR_NOT_FOUND)?;
        let address = address as u64;
        let mut globals = module.globals.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if !globals.contains(&address) {
            globals.push(address);
            memory::insert(memory::foreign(address, size as u64, AllocationKind::Global, &module.context, "cuModuleGetGlobal"));
        }
        // SAFETY: the caller keeps the conditions that the driver documents. Each place may be null.
        unsafe {
            let _ = put(place, address);
            let _ = put(bytes, size);
        }
    }

    fn cuFuncGetModule(place: *mut CUmodule, function: CUfunction) {
        let function = FUNCTIONS.get(function as usize);
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, function.module as CUmodule) }?;
    }

    fn cuFuncGetAttribute(place: *mut c_int, attribute: u32, function: CUfunction) {
        let function = FUNCTIONS.get(function as usize);
        let kernel = &function.kernel;
        let (major, minor) = function.context.device.settings.capability;
        let known = [
            (Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel.max_threads_per_block),
            (Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel.static_shared_bytes),
            (Attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, 0),
            (Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, kernel.local_bytes),
            (Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS, kernel.registers),
            (Attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION, 10 * major + minor),
            (Attribute::CU_FUNC_ATTRIBUTE_BINARY_VERSION, 10 * major + minor),
            // Relaxed: the caller orders calls on one function.
            (Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function.most_dynamic_shared.load(Ordering::Relaxed)),
        ];
        let value = known.into_iter().find(|(known, _)| *known as u32 == attribute).map(|(_, value)| value);
        let value = value.unwrap_or_else(|| report::end(&format!("function attribute {attribute} is not simulated")));
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, value as c_int) }?;
    }

    fn cuFuncSetAttribute(function: CUfunction, attribute: u32, value: c_int) {
        context::current()?;
        let function = FUNCTIONS.get(function as usize);
        if attribute == Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as u32 {
            let most = limits::SHARED_PER_BLOCK_AT_MOST.saturating_sub(function.kernel.static_shared_bytes);
            let value = u32::try_from(value).ok().filter(|value| *value <= most);
            // Relaxed: the caller orders calls on one function.
            function.most_dynamic_shared.store(value.ok_or(CUresult::CUDA_ERROR_INVALID_VALUE)?, Ordering::Relaxed);
        } else if attribute != Attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT as u32 {
            return Err(CUresult::CUDA_ERROR_INVALID_VALUE);
        }
    }

    fn cuFuncSetCacheConfig(function: CUfunction, _config: u32) {
        FUNCTIONS.get(function as usize);
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(place: *mut c_int, function: CUfunction, threads: c_int, shared: usize) {
        let blocks = occupancy(&FUNCTIONS.get(function as usize), threads.max(0) as u32, shared as u64)?;
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, blocks as c_int) }?;
    }

    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        place: *mut c_int, function: CUfunction, threads: c_int, shared: usize, _flags: c_uint,
    ) {
        let blocks = occupancy(&FUNCTIONS.get(function as usize), threads.max(0) as u32, shared as u64)?;
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { put(place, blocks as c_int) }?;
    }

    fn cuLaunchKernel(
        function: CUfunction,
        grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared: c_uint, stream: CUstream, parameters: *mut *mut c_void, extra: *mut *mut c_void,
    ) {
        if !extra.is_null() {
            report::end("cuLaunchKernel with `extra` is not simulated");
        }
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { launch(function, Shape { grid, block, shared, cooperative: false }, stream, parameters) }?;
    }

    fn cuLaunchCooperativeKernel(
        function: CUfunction,
        grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
        block_x: c_uint, block_y: c_uint, block_z: c_uint,
        shared: c_uint, stream: CUstream, parameters: *mut *mut c_void,
    ) {
        let (grid, block) = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        // SAFETY: the caller keeps the conditions that the driver documents.
        unsafe { launch(function, Shape { grid, block, shared, cooperative: true }, stream, parameters) }?;
    }
}
