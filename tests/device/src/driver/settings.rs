//! Environment variables that describe the simulated devices. They are read once.
//!
//! | variable | meaning |
//! |---|---|
//! | `WARPSET_SIMULATED_DEVICE` | number of devices; unset or 0: none |
//! | `WARPSET_SIMULATED_MEMORY` | bytes of each device's memory (`4G` if unset; `K`, `M` and `G` are understood) |
//! | `WARPSET_SIMULATED_MULTIPROCESSORS` | multiprocessors of each device (3 if unset) |
//! | `WARPSET_SIMULATED_CAPABILITY` | compute capability (`9.0` if unset) |
//! | `WARPSET_SIMULATED_SEED` | seed of delays and of the order in which lanes and blocks run (1 if unset; 0: no delays) |
//! | `WARPSET_SIMULATED_PEERS` | 0: no device can access another's memory |
//! | `WARPSET_SIMULATED_FAULT` | calls that fail, see `fault` |
//! | `WARPSET_SIMULATED_PROTECT` | 1: the host's code faults when it accesses device memory while nothing runs on any device (slow) |
//! | `WARPSET_SIMULATED_LEAKS` | 1: list allocations that still exist when the process ends; `fail`: also end the process by `SIGABRT` |
//!
//! For several devices, memory, multiprocessors and compute capability may be lists with commas. The last entry also applies to
//! all further devices.

use super::report;
use std::env;
use std::sync::OnceLock;

#[derive(Debug, Clone)]
pub struct DeviceSettings {
    pub memory: u64,
    pub multiprocessors: u32,
    pub capability: (u32, u32),
}

#[derive(Debug)]
pub struct Settings {
    pub devices: Vec<DeviceSettings>,
    pub seed: u64,
    pub peers: bool,
    pub protect: bool,
    pub leaks: Leaks,
}

/// Treatment of allocations that still exist when the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaks {
    Ignored,
    Listed,
    Fatal,
}

/// The settings of this process.
pub fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(read)
}

fn read() -> Settings {
    let count = number("WARPSET_SIMULATED_DEVICE", 0);
    let memory = list("WARPSET_SIMULATED_MEMORY", "4G", parse_bytes);
    let multiprocessors = list("WARPSET_SIMULATED_MULTIPROCESSORS", "3", |text| text.parse().ok().filter(|count| *count > 0));
    let capability = list("WARPSET_SIMULATED_CAPABILITY", "9.0", |text| {
        let (major, minor) = text.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    });
    fn of<T: Clone>(values: &[T], device: u64) -> T {
        values[(device as usize).min(values.len() - 1)].clone()
    }
    let devices = (0..count).map(|device| DeviceSettings {
        memory: of(&memory, device),
        multiprocessors: of(&multiprocessors, device),
        capability: of(&capability, device),
    });
    Settings {
        devices: devices.collect(),
        seed: number("WARPSET_SIMULATED_SEED", 1),
        peers: number("WARPSET_SIMULATED_PEERS", 1) != 0,
        protect: number("WARPSET_SIMULATED_PROTECT", 0) != 0,
        leaks: match text("WARPSET_SIMULATED_LEAKS").as_deref() {
            None | Some("0") => Leaks::Ignored,
            Some("1") => Leaks::Listed,
            Some("fail") => Leaks::Fatal,
            Some(other) => report::end(&format!("WARPSET_SIMULATED_LEAKS is {other:?}; 0, 1 or fail is understood")),
        },
    }
}

fn text(name: &str) -> Option<String> {
    env::var(name).ok().map(|text| text.trim().to_string()).filter(|text| !text.is_empty())
}

fn number(name: &str, usual: u64) -> u64 {
    let Some(text) = text(name) else { return usual };
    text.parse().unwrap_or_else(|_| report::end(&format!("{name} is {text:?}, which is no number")))
}

fn list<T>(name: &str, usual: &str, parse: impl Fn(&str) -> Option<T>) -> Vec<T> {
    let text = text(name).unwrap_or_else(|| usual.into());
    let parse =
        |part: &str| parse(part.trim()).unwrap_or_else(|| report::end(&format!("{name} has {part:?}, which is not understood")));
    text.split(',').map(parse).collect()
}

/// Reads a number of bytes with an optional unit.
fn parse_bytes(text: &str) -> Option<u64> {
    let (digits, shift) = match text.chars().last()? {
        'K' | 'k' => (&text[..text.len() - 1], 10),
        'M' | 'm' => (&text[..text.len() - 1], 20),
        'G' | 'g' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        assert_eq!(parse_bytes("512"), Some(512));
        assert_eq!(parse_bytes("3M"), Some(3 << 20));
        assert_eq!(parse_bytes("2G"), Some(2 << 30));
        assert_eq!(parse_bytes("0"), None);
        assert_eq!(parse_bytes("M"), None);
        assert_eq!(parse_bytes("99999999999G"), None);
    }
}
