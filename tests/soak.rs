//! Two long tests that count exactly what very many find-or-puts return. They do nothing unless the environment asks for them.
//!
//! - `WARPSET_SOAK=1e12 cargo test --release --features soak --test soak`: that many find-or-puts into tables of every kind
//!   (soak/campaigns.rs). One to three minutes on an H100.
//! - `WARPSET_LARGE=5e9 cargo test --release --features soak --test soak`: tables of more than 2^32 slots (soak/large.rs).
//!
//! Both run on the best GPU, or are skipped without one; `WARPSET_SOAK_DEVICE=cpu` runs them on the CPU, from slices:
//! `WARPSET_SOAK=1e7` or `WARPSET_LARGE=1e6` takes a few seconds there. The first number that is not the expected one ends the
//! test at once, with all numbers, and exit code 1.

/// In tests/soak/.
mod soak {
    pub mod campaigns;
    pub mod large;
    pub mod numbered;
}

use std::process::ExitCode;
use warpset::Device;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const USAGE: &str = "skipped: long tests, which run if the environment asks for them: WARPSET_SOAK=1e12 (find-or-puts into \
                     tables of every kind) or WARPSET_LARGE=5e9 (vectors in one table); WARPSET_SOAK_DEVICE=cpu without a GPU";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let (soak, large) = (number_of("WARPSET_SOAK")?, number_of("WARPSET_LARGE")?);
    if soak.is_none() && large.is_none() {
        println!("{USAGE}");
        return Ok(());
    }
    let Some(device) = device()? else { return Ok(()) };
    if let Some(total) = soak {
        soak::campaigns::run(&device, total)?;
    }
    if let Some(count) = large {
        soak::large::run(&device, count as u64)?;
    }
    Ok(())
}

/// The number in a variable of the environment, if it is set.
fn number_of(name: &str) -> Result<Option<f64>> {
    let Ok(text) = std::env::var(name) else { return Ok(None) };
    let number = text.parse().map_err(|error| format!("{name}={text}: {error}"))?;
    Ok(Some(number))
}

/// The machine to run on. Returns `None`, with the reason printed, if that is a GPU and there is none.
fn device() -> Result<Option<Device>> {
    match std::env::var("WARPSET_SOAK_DEVICE").as_deref() {
        #[cfg(feature = "cpu")]
        Ok("cpu") => return Ok(Some(Device::cpu())),
        Ok("gpu") | Err(_) => {}
        Ok(other) => return Err(format!("WARPSET_SOAK_DEVICE is gpu or cpu, not {other}").into()),
    }
    match Device::gpus() {
        Ok(gpus) if !gpus.is_empty() => Ok(Some(Device::best()?)),
        Ok(_) => {
            println!("skipped: no CUDA device");
            Ok(None)
        }
        Err(error) => {
            println!("skipped: no CUDA device ({error})");
            Ok(None)
        }
    }
}
