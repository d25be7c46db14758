//! Writes what nvcc or CMake needs to compile kernels that use a table: the headers, and the macros of the table as a file of
//! options. No GPU is needed.
//!
//! ```text
//! cargo run --example headers -- FOLDER KIND WIDTH CAPABILITY
//! cargo run --example headers -- target/headers bucket 4 9.0
//! nvcc -std=c++17 -ptx -arch=compute_90 --options-file target/headers/options.txt visit.cu -o visit.ptx
//! ```

use anyhow::{Context, Result, bail};
use std::path::{Path, absolute};
use warpset::{Bucket, Indexed, Tree, gpu};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, kind, width, capability] = &arguments[..] else {
        bail!("usage: headers FOLDER bucket|tree|indexed WIDTH CAPABILITY, for example: headers target/headers bucket 4 9.0");
    };
    let width = width.parse().with_context(|| format!("WIDTH is a number of words, not {width:?}"))?;
    let numbers = capability.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    let capability = numbers.with_context(|| format!("CAPABILITY is like 9.0, not {capability:?}"))?;
    let definitions = match kind.as_str() {
        "bucket" => gpu::definitions_for::<Bucket>(width, capability)?,
        "tree" => gpu::definitions_for::<Tree>(width, capability)?,
        "indexed" => gpu::definitions_for::<Indexed>(width, capability)?,
        other => bail!("KIND is bucket, tree or indexed, not {other:?}"),
    };
    let folder = absolute(Path::new(folder))?;
    gpu::write_headers(&folder).with_context(|| format!("writing headers to {}", folder.display()))?;
    let options = format!("-I {}\n{}\n", folder.display(), definitions.join("\n"));
    let file = folder.join("options.txt");
    std::fs::write(&file, options).with_context(|| format!("writing {}", file.display()))?;
    println!("{} headers and {}", gpu::HEADERS.len(), file.display());
    Ok(())
}
