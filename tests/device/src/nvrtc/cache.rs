//! Cache of compiled programs on disk. Each program has a file, named by a digest of everything on which the program depends.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, io, process};

/// Environment variable that names the folder. If it is empty, no program is stored.
pub(super) const VARIABLE: &str = "WARPSET_DEVICE_CACHE";

pub(super) struct Cache(PathBuf);

impl Cache {
    /// Returns the folder that the environment names, or one in this workspace's `target`.
    pub(super) fn in_use() -> Option<Self> {
        match env::var_os(VARIABLE) {
            Some(folder) if folder.is_empty() => None,
            Some(folder) => Some(Self::at(folder.as_ref())),
            None => Some(Self::at(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/simulated-device")))),
        }
    }

    pub(super) fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    pub(super) fn get(&self, key: u128) -> Option<Vec<u8>> {
        fs::read(self.file(key)).ok()
    }

    /// Stores a program. Writes it under another name first, so that a killed process leaves no partial file.
    pub(super) fn put(&self, key: u128, object: &[u8]) -> io::Result<()> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        fs::create_dir_all(&self.0)?;
        // Relaxed: only the uniqueness of the number matters.
        let unfinished = self.0.join(format!("{}-{}.part", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
        let kept = fs::write(&unfinished, object).and_then(|()| fs::rename(&unfinished, self.file(key)));
        if kept.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        kept
    }

    fn file(&self, key: u128) -> PathBuf {
        self.0.join(format!("{key:032x}.so"))
    }
}

/// Returns a digest of texts and their lengths (FNV-1a with 128 bits).
pub(super) fn digest<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> u128 {
    let mut state = 0x6C62_272E_07BB_0142_62B8_2175_6295_C58D_u128;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            state = (state ^ u128::from(*byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013B);
        }
    };
    for text in texts {
        add(&(text.len() as u64).to_le_bytes());
        add(text);
    }
    state
}
