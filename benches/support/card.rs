//! Cards of published measurements, beside the card of a measurement here.

use std::fmt;
use warpset::Device;
use warpset::gpu::cudarc_0_19::DeviceExt;
use warpset::gpu::cudarc_0_19::cudarc::driver::sys::CUdevice_attribute::{
    CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH as BUS_WIDTH, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE as CLOCK_RATE,
};

/// A card, with the bandwidth that its memory has by specification.
#[derive(Clone, Debug)]
pub struct Card {
    pub name: String,
    /// In GB/s.
    pub bandwidth: f64,
}

/// Card of the thesis, which gives the bandwidth as 547.6 GiB/s; it is that in GB/s.
pub const TITAN_XP: (&str, f64) = ("Titan Xp", 547.6);
/// Cards of GPUexplore 3.0, GPUexplore 1.0 and of counterexamples, of components. Bandwidths of these are those of the vendor's
/// data sheets: the papers do not give them.
pub const TITAN_RTX: (&str, f64) = ("Titan RTX", 672.0);
pub const V100: (&str, f64) = ("V100, 16 GB", 900.0);
pub const K20: (&str, f64) = ("K20", 208.0);
pub const K20C: (&str, f64) = ("K20c", 208.0);
pub const K20M: (&str, f64) = ("K20m", 208.0);

impl Card {
    /// The GPU of a device; `None` if the device is no GPU or the driver does not say.
    pub fn of(device: &Device) -> Option<Self> {
        let context = device.cuda_context()?;
        let attribute = |attribute| context.attribute(attribute).ok().map(f64::from);
        let (kilohertz, bits) = (attribute(CLOCK_RATE)?, attribute(BUS_WIDTH)?);
        // Two transfers a clock.
        Some(Self { name: context.name().ok()?, bandwidth: 2.0 * kilohertz * 1e3 * bits / 8.0 / 1e9 })
    }

    /// How many times the bandwidth of `other` this card has.
    pub fn times(&self, (name, bandwidth): (&str, f64)) -> String {
        format!("{:.1} times the bandwidth of the {name} ({bandwidth} GB/s)", self.bandwidth / bandwidth)
    }
}

impl fmt::Display for Card {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:.0} GB/s)", self.name, self.bandwidth)
    }
}
