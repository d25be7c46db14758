//! Exports each function of the driver that is not simulated. Calling such a function ends the process with the function's name.
//!
//! `functions.txt` lists all functions that `cudarc` knows. The sources of `src/driver` define the simulated ones.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() {
    let mut simulated = String::new();
    println!("cargo::rerun-if-changed=functions.txt");
    println!("cargo::rerun-if-changed=src/driver");
    for entry in fs::read_dir("src/driver").expect("the folder src/driver") {
        simulated += &fs::read_to_string(entry.expect("an entry").path()).expect("a source file");
    }
    let mut stubs = String::new();
    for name in fs::read_to_string("functions.txt").expect("functions.txt").lines() {
        if simulated.contains(&format!("fn {name}(")) {
            continue;
        }
        writeln!(
            stubs,
            "/// Ends the process: not simulated.\n#[unsafe(no_mangle)]\npub extern \"C\" fn {name}() -> ! {{\n    \
             crate::driver::report::not_simulated(\"{name}\")\n}}"
        )
        .expect("writing to a string");
    }
    let folder = env::var("OUT_DIR").expect("Cargo sets OUT_DIR");
    fs::write(Path::new(&folder).join("unknown.rs"), stubs).expect("writing the stubs");
}
