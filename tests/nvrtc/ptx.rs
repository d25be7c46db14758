//! Writes the PTX of every program into a folder, so that two versions of the headers can be compared by `diff -r`.
//!
//! `WARPSET_KERNEL_PTX=FOLDER cargo test --test nvrtc` writes one file for each program and compute capability, without comments
//! and line information, and runs no test (.github/CONTRIBUTING.md, "Search kernels"). Equal PTX means equal kernels: the rest of
//! the compilation sees nothing else.

use super::program::{self, Program};
use rayon::prelude::*;
use std::path::Path;

const VARIABLE: &str = "WARPSET_KERNEL_PTX";

/// First bytes of an ELF file, which a CUBIN is.
const ELF: &[u8] = b"\x7fELF";

/// Writes the files if the environment names a folder for them. Returns whether it does.
pub fn write() -> warpset::Result<bool> {
    let Some(folder) = std::env::var_os(VARIABLE) else { return Ok(false) };
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder).expect("the folder can be made");
    let programs = program::all();
    programs.par_iter().try_for_each(|(program, capability)| -> warpset::Result<()> {
        let ((major, minor), text) = (capability, without_line_information(&ptx(*program, *capability)?));
        let file = folder.join(format!("compute_{major}{minor}-{}.ptx", program.name()));
        std::fs::write(file, text).expect("the folder can be written to");
        Ok(())
    })?;
    println!("PTX of {} programs was written to {}", programs.len(), folder.display());
    Ok(true)
}

/// PTX of a program. The library returns PTX for an architecture that NVRTC does not know, made for the newest known one before
/// it. So this takes the first unknown minor version after `capability`.
fn ptx(program: Program, (major, minor): (u32, u32)) -> warpset::Result<String> {
    for minor in minor + 1..10 {
        let image = program.compile((major, minor))?;
        if !image.starts_with(ELF) {
            return Ok(String::from_utf8_lossy(&image).trim_end_matches('\0').into());
        }
    }
    panic!("NVRTC knows every architecture from {major}.{minor} on, so it returns no PTX");
}

/// PTX without comments, empty lines, and what `-lineinfo` adds: `.loc` and `.file` directives, sections, and labels that only
/// these refer to.
fn without_line_information(ptx: &str) -> String {
    let (mut text, mut in_section) = (String::new(), false);
    for line in ptx.lines() {
        let line = line.split("//").next().unwrap_or_default().trim_end();
        let first = line.split_whitespace().next();
        in_section |= first == Some(".section");
        let is_label_of_lines = first.is_some_and(|word| word.starts_with("$L__") && !word.starts_with("$L__BB"));
        let is_left_out = in_section || is_label_of_lines || matches!(first, None | Some(".loc" | ".file"));
        in_section &= first != Some("}");
        if !is_left_out {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}
