//! The layers of the library: the files that each file may import from, and names that only a machine's folder may use.
//!
//! .github/CONTRIBUTING.md says what each rule is for. The rules are in `rules.rs`, and `source.rs` reads imports.

mod rules;
mod source;

use rules::{MOST_FEATURE_LINES, circles, feature_lines, forbidden_arrows, forbidden_circles, machine_lines, wrong_cudarc};
use source::Sources;
use std::collections::BTreeSet;
use std::path::Path;

/// Files below a folder that end in one of these suffixes, by their path in the folder.
fn files(folder: &Path, ends: &[&str]) -> Sources {
    let mut found = Sources::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_string_lossy().replace('\\', "/");
            if path.is_dir() {
                open.push(path);
            } else if ends.iter().any(|end| name.ends_with(end)) {
                found.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    assert!(!found.is_empty(), "{}", folder.display());
    found
}

fn library() -> Sources {
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &[".rs"])
}

#[test]
fn arrows_point_down() {
    let wrong = forbidden_arrows(&library());
    assert!(wrong.is_empty(), "{} imports that the layers forbid:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn circles_are_small_and_in_one_folder() {
    let sources = library();
    println!("circles: {:?}", circles(&sources));
    let wrong = forbidden_circles(&sources);
    assert!(wrong.is_empty(), "circles of files in several folders, or of more than three: {wrong:#?}");
}

/// Cargo enforces the arrows between the packages of the model checker; within each, circles are as small as in the library. In
/// the program, `main.rs` is called `lib.rs` here.
#[test]
fn circles_of_the_model_checker_are_small() {
    for package in ["examples/explore/model/src", "examples/explore/search/src", "examples/explore/src", "examples/decompose/src"]
    {
        let mut sources = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(package), &[".rs"]);
        if let Some(program) = sources.remove("main.rs") {
            sources.entry("lib.rs".into()).or_insert(program);
        }
        println!("{package}: {:?}", circles(&sources));
        let wrong = forbidden_circles(&sources);
        assert!(wrong.is_empty(), "{package} has circles of files in several folders, or of more than three: {wrong:#?}");
    }
}

#[test]
fn only_machines_name_their_libraries_and_features() {
    let sources = library();
    let wrong = wrong_cudarc(&sources);
    assert!(wrong.is_empty(), "files that name `cudarc`: {wrong:?}");
    let lines = feature_lines(&sources);
    let count: usize = lines.values().sum();
    assert!(count <= MOST_FEATURE_LINES, "{count} lines depend on a machine's feature: {lines:?}");
}

#[test]
fn headers_leave_machines_to_the_platform() {
    let headers = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cuda/warpset"), &[".cuh", ".h", ".hpp"]);
    for (name, text) in &headers {
        let lines = machine_lines(text);
        assert!(lines.is_empty(), "{name}: {lines:?}");
    }
}

/// Texts between `before` and `after`.
fn between<'a>(text: &'a str, before: &str, after: &str) -> BTreeSet<&'a str> {
    text.split(before).skip(1).filter_map(|rest| rest.split_once(after)).map(|(name, _)| name).collect()
}

/// Kernels that are no searches have the same names on all machines. Memory of zeros is cleared by one of its own, on a CPU.
#[test]
fn machines_have_the_same_kernels() {
    let read = |file: &str| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let (named, cpu, gpu) = (read("src/layout/kernel.rs"), read("cuda/cpu_tables.cpp"), read("cuda/table_kernels.cu"));
    let named = between(&named, "c\"warpset_", "\"");
    let mut on_cpu = between(&cpu, "{\"warpset_", "\"");
    assert!(on_cpu.remove("clear_zeros"));
    assert_eq!(on_cpu, named);
    let on_gpu = between(&gpu, "warpset_", "(");
    assert!(named.len() > 10 && named.is_subset(&on_gpu), "{:?}", named.difference(&on_gpu));
}

/// A fictitious crate of these files.
fn made_up(files: &[(&str, &str)]) -> Sources {
    files.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect()
}

const LIB: (&str, &str) =
    ("lib.rs", "mod backend; mod core; mod layout; mod table; mod error; pub use error::Error; pub use layout::Spec;");

/// A small crate whose layers are as required.
fn small() -> Vec<(&'static str, &'static str)> {
    vec![
        LIB,
        ("error.rs", "pub enum Error {}"),
        ("layout/mod.rs", "pub(crate) mod spec; pub(crate) use spec::Spec;"),
        ("layout/spec.rs", "use crate::Error; pub struct Spec;"),
        ("backend/mod.rs", "mod machine; #[cfg(feature = \"cpu\")] pub(crate) mod cpu; pub(crate) use machine::Machine;"),
        ("backend/machine.rs", "use crate::layout::Spec; pub trait Machine { fn of(&self, spec: Spec); }"),
        ("backend/cpu.rs", "use super::Machine; use crate::{Error, Spec};"),
        ("core/mod.rs", "pub(crate) mod table;"),
        ("core/table.rs", "use crate::backend::Machine; #[cfg(test)] mod tests { use crate::table::Table; }"),
        ("table/mod.rs", "mod rows; use crate::core::table::Raw;"),
        ("table/rows.rs", "pub struct Rows;"),
    ]
}

fn with(changed: (&'static str, &'static str)) -> Sources {
    let mut files = small();
    files.retain(|(name, _)| *name != changed.0);
    files.push(changed);
    made_up(&files)
}

#[test]
fn layers_as_they_should_be_have_no_faults() {
    let sources = made_up(&small());
    assert_eq!(forbidden_arrows(&sources), Vec::<String>::new());
    assert_eq!(circles(&sources), Vec::<Vec<String>>::new());
}

/// Every way to write an import is found.
#[test]
fn reversed_arrows_are_found() {
    for (file, text, imported) in [
        ("layout/spec.rs", "use crate::backend::Machine; pub struct Spec;", "backend/machine.rs"),
        ("layout/spec.rs", "pub struct Spec; fn f() { let _ = crate::table::Table::NAME; }", "table/mod.rs"),
        ("layout/spec.rs", "use crate::{Error, core::{self, table::{Raw as R}}}; pub struct Spec;", "core/table.rs"),
        ("backend/machine.rs", "use super::super::core::table::Raw; pub trait Machine {}", "core/table.rs"),
        ("core/table.rs", "use crate::table::rows::Rows;", "table/rows.rs"),
        (
            "core/table.rs",
            "/* c */ fn f(text: &'static str) { let _ = (\"a\\\"\", 'x', r#\"use\"#); crate::table::rows::make() }",
            "table/rows.rs",
        ),
    ] {
        let wrong = forbidden_arrows(&with((file, text)));
        assert!(wrong.iter().any(|line| line.starts_with(&format!("{file} imports {imported}"))), "{text}: {wrong:?}");
    }
    let cpu = forbidden_arrows(&with(("core/table.rs", "use crate::backend::cpu::Cpu;")));
    // `backend/cpu.rs` is a single file here; `core` may not import a machine that has a folder of its own.
    assert_eq!(cpu, Vec::<String>::new());
    let mut files = small();
    files.retain(|(name, _)| *name != "backend/cpu.rs");
    files.push(("backend/cpu/mod.rs", "pub struct Cpu;"));
    files.retain(|(name, _)| *name != "core/table.rs");
    files.push(("core/table.rs", "use crate::backend::cpu::Cpu;"));
    assert_eq!(forbidden_arrows(&made_up(&files)).len(), 1);
}

#[test]
fn comments_texts_and_tests_are_no_imports() {
    let text = "// use crate::table::Table;\n/// [`crate::table::Table`]\nconst T: &str = \"crate::table::Table\";\n\
                #[cfg(all(test, feature = \"cpu\"))]\nmod tests { use crate::table::Table; fn f() { { } } }\n\
                mod sealed { pub trait Sealed {} impl Sealed for super::T {} use super::*; }\n\
                #[cfg(test)]\nuse crate::table::{Table, rows::Rows};\nfn f<'a>(x: &'a str) -> char { 'a' }";
    assert_eq!(forbidden_arrows(&with(("core/table.rs", text))), Vec::<String>::new());
}

#[test]
fn circles_are_found() {
    let sources = with(("error.rs", "use crate::Spec; pub enum Error {}"));
    assert_eq!(circles(&sources), [["error.rs", "layout/spec.rs"]]);
    assert_eq!(forbidden_circles(&sources).len(), 1);
    let ring = |names: &[&str]| {
        let mut files = vec![("lib.rs".to_string(), "mod core;".to_string())];
        files.push(("core/mod.rs".into(), names.iter().map(|name| format!("mod {name};")).collect()));
        let next = |at: usize| names[(at + 1) % names.len()];
        files.extend(
            names
                .iter()
                .enumerate()
                .map(|(at, name)| (format!("core/{name}.rs"), format!("use super::{0}::{0}_item;", next(at)))),
        );
        files.into_iter().collect::<Sources>()
    };
    assert_eq!((circles(&ring(&["a", "b", "c"])).len(), forbidden_circles(&ring(&["a", "b", "c"])).len()), (1, 0));
    assert_eq!(forbidden_circles(&ring(&["a", "b", "c", "d"])).len(), 1);
}

#[test]
fn names_of_machines_are_found() {
    let sources = with(("core/table.rs", "fn f(stream: cudarc::driver::CudaStream) {}\n#[cfg(feature = \"cuda\")]\nfn g() {}"));
    assert_eq!(wrong_cudarc(&sources), ["core/table.rs"]);
    assert_eq!(feature_lines(&sources).into_iter().collect::<Vec<_>>(), [("core/table.rs".to_string(), 1)]);
    for line in ["#if defined(__CUDACC__)", "  # ifdef X", "#endif", "asm volatile(\"\");", "x = __builtin_clz(y);"] {
        assert_eq!(machine_lines(line).len(), 1, "{line}");
    }
    for line in ["#include \"a.cuh\"", "#pragma once", "// #if", "int elif;"] {
        assert_eq!(machine_lines(line).len(), 0, "{line}");
    }
}
