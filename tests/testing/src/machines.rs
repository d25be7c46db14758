//! The machines that the suite runs on.

use warpset::Device;

pub struct Machine {
    /// Prefix of the names of its tests.
    pub name: String,
    pub device: Device,
}

/// The CPU, with one thread and with several: at least four even on fewer cores, so that they interrupt each other.
#[cfg(feature = "cpu")]
pub fn cpus() -> Vec<Machine> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cpu = |threads| Machine { name: format!("cpu{threads}"), device: Device::cpu_with_threads(threads) };
    vec![cpu(1), cpu(cores.clamp(4, 16))]
}

#[cfg(not(feature = "cpu"))]
pub fn cpus() -> Vec<Machine> {
    Vec::new()
}

/// The GPUs, or the reason why tests cannot use one.
pub enum Gpus {
    Here(Vec<Machine>),
    /// No GPU, which is not a failure, because most machines have none. (The reason is printed after the run.)
    NotHere(String),
    /// A GPU exists, but cannot be used.
    Broken(String),
}

#[cfg(feature = "cuda")]
pub fn gpus() -> Gpus {
    use warpset::Error;
    let open = |info: warpset::GpuInfo| Ok(Machine { name: format!("gpu{}", info.ordinal), device: Device::gpu(info.ordinal)? });
    match Device::gpus().and_then(|gpus| gpus.into_iter().map(open).collect::<Result<Vec<_>, _>>()) {
        Ok(gpus) if gpus.is_empty() => Gpus::NotHere("the driver lists none".into()),
        Ok(gpus) => Gpus::Here(gpus),
        // A driver without NVRTC is a usual installation, too.
        Err(Error::LibraryNotFound { library, .. }) => Gpus::NotHere(format!("{library} not found")),
        Err(error) => Gpus::Broken(error.to_string()),
    }
}

#[cfg(not(feature = "cuda"))]
pub fn gpus() -> Gpus {
    Gpus::NotHere("built without the feature `cuda`".into())
}
