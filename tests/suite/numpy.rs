//! Compares `factorize_many` with NumPy, if `python3` has it.

use crate::common::vectors::{Random, some_widths};
use crate::common::{scaled, tests};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use warpset::{Device, IndexedTable};

tests![factors_are_those_of_numpy];

/// For arrays of rows of these widths: each row's number, and the distinct rows, in the order of first occurrence.
const SCRIPT: &str = r#"
import sys
import numpy as np
folder = sys.argv[1]
for case, width in enumerate(map(int, sys.argv[2:])):
    rows = np.fromfile(f"{folder}/rows{case}", dtype="<u4").reshape(-1, width)
    values, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(len(order), dtype="<u8")
    number[order] = np.arange(len(order))
    number[inverse.reshape(-1)].tofile(f"{folder}/numbers{case}")
    values[order].tofile(f"{folder}/distinct{case}")
"#;

/// A temporary folder, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("numpy-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn read<T: bytemuck::Pod>(&self, name: &str, case: usize) -> Vec<T> {
        let bytes = std::fs::read(self.0.join(format!("{name}{case}"))).unwrap();
        bytemuck::pod_collect_to_vec(&bytes)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn factors_are_those_of_numpy(device: &Device) {
    let has_numpy = Command::new("python3").args(["-c", "import numpy"]).output().is_ok_and(|output| output.status.success());
    if !has_numpy {
        return println!("skipped: comparison of `factorize_many` with NumPy, since there is no python3 that has it");
    }
    let folder = Folder::new();
    // Arrays of few distinct values, of many, and empty ones.
    let cases: Vec<(usize, Vec<u32>)> = some_widths()
        .into_iter()
        .flat_map(|width| [0, 1, scaled(4000, 300)].map(|rows| (width, rows)))
        .enumerate()
        .map(|(case, (width, rows))| {
            let mut random = Random::new(case as u64);
            let values = [2, 40, 1 << 20][case / 3 % 3];
            let rows = (0..rows).flat_map(|_| {
                let value = random.below(values) as u32;
                // Rows differ in one word, or in several.
                (0..width as u32).map(move |word| if word % 3 == value % 3 || width < 3 { value.reverse_bits() } else { 7 })
            });
            (width, rows.collect())
        })
        .collect();
    for (case, (_, rows)) in cases.iter().enumerate() {
        std::fs::write(folder.0.join(format!("rows{case}")), bytemuck::cast_slice::<u32, u8>(rows)).unwrap();
    }
    let widths = cases.iter().map(|(width, _)| width.to_string());
    let output = Command::new("python3").args(["-c", SCRIPT]).arg(&folder.0).args(widths).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for (case, (width, rows)) in cases.iter().enumerate() {
        let factors = IndexedTable::builder(*width).capacity(64).factorize_many(device, rows).unwrap();
        let about = format!("{} rows of {width} words", rows.len() / width);
        assert!(factors.numbers == folder.read::<u64>("numbers", case), "{about}");
        assert!(factors.distinct == folder.read::<u32>("distinct", case), "{about}");
    }
}
