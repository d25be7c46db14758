//! The option `--device`: where a table is.

use anyhow::Result;
use std::num::IntErrorKind;
use std::str::FromStr;
use warpset::Device;

#[derive(Clone, Debug)]
pub enum DeviceChoice {
    Best,
    Cpu {
        threads: usize,
    },
    Gpu {
        ordinal: usize,
    },
    /// Several GPUs, each named once.
    Gpus {
        ordinals: Vec<usize>,
    },
    AllGpus,
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, number) = text.split_once(':').map_or((text, None), |(kind, number)| (kind, Some(number)));
        match (kind, number) {
            ("gpu", Some("all")) => return Ok(Self::AllGpus),
            ("gpu", Some(list)) if list.contains(',') => return parse_list(list),
            _ => {}
        }
        let number = number.map(parse_number).transpose()?;
        match (kind, number) {
            ("best", None) => Ok(Self::Best),
            ("cpu", Some(0)) => Err("at least 1 thread is needed".into()),
            ("cpu", Some(threads)) if threads > Device::MAX_THREADS => {
                Err(format!("{threads} threads are too many: a table on the CPU has at most {}", Device::MAX_THREADS))
            }
            ("cpu", threads) => Ok(Self::Cpu { threads: threads.unwrap_or_else(cores) }),
            ("gpu", ordinal) => Ok(Self::Gpu { ordinal: ordinal.unwrap_or(0) }),
            _ => Err("expected best, cpu, cpu:THREADS, gpu, gpu:NUMBER, gpu:NUMBER,NUMBER or gpu:all".into()),
        }
    }
}

impl DeviceChoice {
    /// Opens the device; the first if several are named.
    pub fn open(&self) -> Result<Device> {
        match *self {
            Self::Best => Ok(Device::best()?),
            #[cfg(feature = "cpu")]
            Self::Cpu { threads } => Ok(Device::cpu_with_threads(threads)),
            #[cfg(not(feature = "cpu"))]
            Self::Cpu { .. } => anyhow::bail!("this build cannot use the CPU: warpset's feature `cpu` is off"),
            #[cfg(feature = "cuda")]
            Self::Gpu { ordinal } => Ok(Device::gpu(ordinal)?),
            #[cfg(not(feature = "cuda"))]
            Self::Gpu { ordinal } => anyhow::bail!("this build cannot use GPU {ordinal}: warpset's feature `cuda` is off"),
            Self::Gpus { .. } | Self::AllGpus => Ok(self.open_all()?.swap_remove(0)),
        }
    }

    /// Opens all named devices, at least one, in the order in which they are named.
    pub fn open_all(&self) -> Result<Vec<Device>> {
        let ordinals = match self {
            Self::Gpus { ordinals } => ordinals.clone(),
            #[cfg(feature = "cuda")]
            Self::AllGpus => (0..Device::gpus()?.len()).collect(),
            #[cfg(not(feature = "cuda"))]
            Self::AllGpus => anyhow::bail!("this build cannot use GPUs: warpset's feature `cuda` is off"),
            _ => return Ok(vec![self.open()?]),
        };
        anyhow::ensure!(!ordinals.is_empty(), "there is no GPU");
        ordinals.into_iter().map(|ordinal| Self::Gpu { ordinal }.open()).collect()
    }

    /// Whether the choice may mean several devices.
    pub fn may_be_several(&self) -> bool {
        matches!(self, Self::Gpus { .. } | Self::AllGpus)
    }

    /// Numbers of the GPUs that are named.
    pub fn named_gpus(&self) -> Vec<usize> {
        match self {
            Self::Gpu { ordinal } => vec![*ordinal],
            Self::Gpus { ordinals } => ordinals.clone(),
            _ => Vec::new(),
        }
    }

    /// Threads of a table on the CPU, or of the work beside a GPU.
    pub fn threads(&self) -> usize {
        match self {
            Self::Cpu { threads } => *threads,
            _ => cores(),
        }
    }
}

/// Parses a list of GPUs such as `0,1`, each named once.
fn parse_list(list: &str) -> Result<DeviceChoice, String> {
    let ordinals = list.split(',').map(parse_number).collect::<Result<Vec<_>, _>>()?;
    match ordinals.iter().enumerate().find(|(at, ordinal)| ordinals[..*at].contains(ordinal)) {
        Some((_, twice)) => Err(format!("GPU {twice} is named twice")),
        None => Ok(DeviceChoice::Gpus { ordinals }),
    }
}

fn parse_number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|error: std::num::ParseIntError| match error.kind() {
        IntErrorKind::PosOverflow => format!("{text} is more than {}", usize::MAX),
        _ => format!("`{text}` is not a whole number"),
    })
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(Device::MAX_THREADS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_written_in_words_and_numbers() {
        assert!(matches!("cpu:1024".parse(), Ok(DeviceChoice::Cpu { threads: 1024 })));
        assert!(matches!("gpu".parse(), Ok(DeviceChoice::Gpu { ordinal: 0 })));
        assert!(matches!("gpu:all".parse(), Ok(DeviceChoice::AllGpus)));
        assert!(matches!("gpu:2,0".parse(), Ok(DeviceChoice::Gpus { ordinals }) if ordinals == [2, 0]));
        for (text, part) in [
            ("cpu:0", "at least 1"),
            ("cpu:1025", "1025 threads are too many: a table on the CPU has at most 1024"),
            ("cpu:100000", "100000 threads"),
            ("cpu:99999999999999999999", "is more than 18446744073709551615"),
            ("cpu:-1", "`-1` is not a whole number"),
            ("cpu:", "`` is not a whole number"),
            ("tpu", "expected best"),
            ("gpu:0,1,0", "GPU 0 is named twice"),
            ("gpu:0,", "`` is not a whole number"),
            ("gpu:0,all", "`all` is not a whole number"),
            ("gpu:any", "`any` is not a whole number"),
            ("cpu:1,2", "`1,2` is not a whole number"),
            ("cpu:all", "`all` is not a whole number"),
        ] {
            let error = text.parse::<DeviceChoice>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
