//! `--device`: where a table is.

use anyhow::Result;
use std::str::FromStr;
use warpset::Device;

#[derive(Clone, Copy, Debug)]
pub enum DeviceChoice {
    Best,
    Cpu { threads: usize },
    Gpu { ordinal: usize },
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, number) = text.split_once(':').map_or((text, None), |(kind, number)| (kind, Some(number)));
        let number = number.map(|number| number.parse().map_err(|_| format!("`{number}` is not a whole number"))).transpose()?;
        match (kind, number) {
            ("best", None) => Ok(Self::Best),
            ("cpu", Some(0)) => Err("a CPU has at least 1 thread".into()),
            ("cpu", threads) => Ok(Self::Cpu { threads: threads.unwrap_or_else(cores) }),
            ("gpu", ordinal) => Ok(Self::Gpu { ordinal: ordinal.unwrap_or(0) }),
            _ => Err("it must be best, cpu, cpu:THREADS, gpu or gpu:NUMBER".into()),
        }
    }
}

impl DeviceChoice {
    pub fn open(self) -> Result<Device> {
        match self {
            Self::Best => Ok(Device::best()?),
            #[cfg(feature = "cpu")]
            Self::Cpu { threads } => Ok(Device::cpu_with_threads(threads)),
            #[cfg(not(feature = "cpu"))]
            Self::Cpu { .. } => anyhow::bail!("this build cannot use the CPU: warpset's feature `cpu` is off"),
            #[cfg(feature = "cuda")]
            Self::Gpu { ordinal } => Ok(Device::gpu(ordinal)?),
            #[cfg(not(feature = "cuda"))]
            Self::Gpu { ordinal } => anyhow::bail!("this build cannot use GPU {ordinal}: warpset's feature `cuda` is off"),
        }
    }

    /// The threads of a table on the CPU, or of the work beside a GPU.
    pub fn threads(self) -> usize {
        match self {
            Self::Cpu { threads } => threads,
            Self::Best | Self::Gpu { .. } => cores(),
        }
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
