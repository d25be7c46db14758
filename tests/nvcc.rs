//! Builds of a user's own: headers in a folder, macros as options, and nvcc where `WARPSET_NVCC` names one.
//!
//! Keeps this promise of `src/docs/your_own_kernels.md`:
//!
//! - Headers and macros for a build of the user are those of the library; nvcc compiles with them (where `WARPSET_NVCC` names
//!   one).

#![cfg(feature = "cuda")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use warpset::{Bucket, Indexed, Tree, gpu};

const CAPABILITY: (u32, u32) = (9, 0);

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("warpset-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn macros(options: &[String]) -> BTreeSet<String> {
    let name = |option: &String| option.strip_prefix("-D").and_then(|option| option.split('=').next()).unwrap().to_string();
    options.iter().map(name).collect()
}

#[test]
fn headers_are_written_once() {
    let folder = Folder::new("headers");
    gpu::write_headers(&folder.0).unwrap();
    for (name, text) in gpu::HEADERS {
        assert_eq!(std::fs::read_to_string(folder.0.join(name)).unwrap(), *text, "{name}");
    }
    let changed = |name: &str| std::fs::metadata(folder.0.join(name)).unwrap().modified().unwrap();
    let (first, other) = (gpu::HEADERS[0].0, gpu::HEADERS[1].0);
    // Another text is replaced, and what has the right one is left alone.
    let before = changed(first);
    std::fs::write(folder.0.join(other), "old").unwrap();
    gpu::write_headers(&folder.0).unwrap();
    assert_eq!(changed(first), before);
    assert_eq!(std::fs::read_to_string(folder.0.join(other)).unwrap(), gpu::HEADERS[1].1);
    // A file in the place of the folder is an error.
    assert!(gpu::write_headers(folder.0.join(first)).is_err());
}

/// Each macro that `table.cuh` names is defined, and no other.
#[test]
fn definitions_are_those_that_the_headers_need() {
    let (_, table) = gpu::HEADERS.iter().find(|(name, _)| *name == "warpset/table.cuh").unwrap();
    let is_in_name = |c: char| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit();
    let names = table.split(|c| !is_in_name(c)).filter(|name| name.starts_with("WARPSET_") && *name != "WARPSET_FN");
    let needed: BTreeSet<String> = names.map(str::to_string).collect();
    for options in [
        gpu::definitions_for::<Bucket>(4, CAPABILITY).unwrap(),
        gpu::definitions_for::<Tree>(8, CAPABILITY).unwrap(),
        gpu::definitions_for::<Indexed>(5, CAPABILITY).unwrap(),
    ] {
        assert_eq!(macros(&options), needed);
    }
}

/// Compiles a kernel that uses a table by nvcc, and returns its PTX.
fn compiled(nvcc: &str, folder: &Path, definitions: &[String]) -> String {
    const SOURCE: &str = r#"
        #include "warpset/table.cuh"
        extern "C" __global__ void visit(warpset::View view, const unsigned* states, unsigned count) {
            unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < count) warpset::table(view).find_or_put(warpset::WordVector{states + i * WARPSET_WIDTH});
        }"#;
    let (source, ptx) = (folder.join("visit.cu"), folder.join("visit.ptx"));
    std::fs::write(&source, SOURCE).unwrap();
    let mut command = Command::new(nvcc);
    command.args(["-std=c++17", "-ptx", "-arch=compute_90", "-I"]).arg(folder).args(definitions).arg(&source).arg("-o").arg(&ptx);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read_to_string(ptx).unwrap()
}

#[test]
fn nvcc_compiles_kernels_for_every_kind() {
    let Ok(nvcc) = std::env::var("WARPSET_NVCC") else {
        println!("skipped: WARPSET_NVCC does not name an nvcc");
        return;
    };
    let folder = Folder::new("nvcc");
    gpu::write_headers(&folder.0).unwrap();
    for definitions in [
        gpu::definitions_for::<Bucket>(4, CAPABILITY).unwrap(),
        gpu::definitions_for::<Tree>(8, CAPABILITY).unwrap(),
        gpu::definitions_for::<Indexed>(5, CAPABILITY).unwrap(),
    ] {
        assert!(compiled(&nvcc, &folder.0, &definitions).contains(".entry visit"), "{definitions:?}");
    }
}
