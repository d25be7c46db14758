//! Where tables live, and their kernels run.

#[cfg(feature = "cpu")]
pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
#[cfg(feature = "cpu")]
mod reserved;
#[cfg(feature = "cpu")]
pub(crate) mod values;
