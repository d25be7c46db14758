//! Types of the arguments that a user's own kernel may take.

/// Types that a launch may pass to a kernel.
#[cfg(feature = "cuda")]
#[doc(hidden)]
pub trait KernelArgument: super::cuda::DeviceRepr {}
#[cfg(feature = "cuda")]
impl<T: super::cuda::DeviceRepr> KernelArgument for T {}

/// Without CUDA, users cannot have kernels of their own.
#[cfg(not(feature = "cuda"))]
#[doc(hidden)]
pub trait KernelArgument {}
#[cfg(not(feature = "cuda"))]
impl<T> KernelArgument for T {}
