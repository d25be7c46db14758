//! Tables in the memory of this process, searched by its threads.

/// Declares entry points of the C++ code, whose symbols end with the version of the library (cuda/cpu_entries.hpp).
macro_rules! entries {
    ($($(#[$attribute:meta])* $vis:vis fn $name:ident($($parameter:ident: $kind:ty),* $(,)?) $(-> $result:ty)?;)*) => {
        unsafe extern "C" {
            $(
                $(#[$attribute])*
                #[link_name = concat!(stringify!($name), "_", env!("WARPSET_SYMBOLS"))]
                $vis fn $name($($parameter: $kind),*) $(-> $result)?;
            )*
        }
    };
}

mod cas_width;
mod filter;
mod growth;
#[cfg(target_os = "linux")]
mod in_place;
mod kernels;
mod machine;
mod pages;
#[cfg(feature = "cluster")]
mod rank;
mod rehash;
mod reserved;
mod store;
mod system_memory;
mod threads;
mod trees;

pub(crate) use machine::CpuMachine;
#[cfg(test)]
pub(crate) use {kernels::quotient, store::CpuStore};
