//! A hasher for maps of tests.

use crate::mix;
use std::hash::{BuildHasherDefault, Hasher};

/// Makes hashers for a map: `HashMap<K, V, Mixed>`.
pub type Mixed = BuildHasherDefault<Mixer>;

/// Hashes by `mix`, 8 bytes at a time. Its functions are compiled here, with this package's optimisation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mixer(u64);

impl Hasher for Mixer {
    #[inline(never)]
    fn write(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(8) {
            let mut padded = [0; 8];
            padded[..piece.len()].copy_from_slice(piece);
            self.0 = mix(self.0 ^ u64::from_le_bytes(padded));
        }
    }

    #[inline(never)]
    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0 ^ number);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    #[inline(never)]
    fn finish(&self) -> u64 {
        self.0
    }
}
