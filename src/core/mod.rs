//! The untyped table, for any device: its kind and size, batches, growth and relocation, and the data that crosses to the device.

mod arrays;
mod calls;
mod displaced;
mod ending;
pub(crate) mod growth;
pub(crate) mod growth_limit;
pub(crate) mod host_memory;
pub(crate) mod indexed;
pub(crate) mod lock;
mod part_bytes;
mod put;
#[cfg(feature = "cluster")]
pub(crate) mod rank;
mod reading;
mod rehash;
pub(crate) mod relocation;
pub(crate) mod request;
pub(crate) mod results;
pub(crate) mod retain;
mod roots;
mod row_memory;
mod schedule;
pub(crate) mod stats;
pub(crate) mod table;
mod upsert;
mod value_memory;
pub(crate) mod values;
mod window;
