//! Compares the compiled search kernels that the benches measure with a committed table, kernels.csv.
//!
//! A kernel can become slower without a change of its results: by a spilled register, or by a load that waits for another one.
//! Throughput shows that, but only on a GPU. So registers, spills, instructions and loads are compared on every machine with
//! NVRTC.
//!
//! The table is for one version of the compiler, named in its first line. With another version the comparison is skipped;
//! `WARPSET_KERNEL_TABLE=check` makes that a failure. `WARPSET_KERNEL_TABLE=write` writes the table (.github/CONTRIBUTING.md,
//! "Search kernels").

use super::cubin::{Cubin, Resources};
use super::program::{self, Program};
use libtest_mimic::{Failed, Trial};
use rayon::prelude::*;
use std::path::PathBuf;
use std::sync::LazyLock;
use warpset::{BucketTable, gpu};

/// Kernels that search, by their names without `warpset_`. Not every table has all of them.
const KERNELS: [&str; 6] = ["find_or_put", "find_or_put_incremental", "find", "find_or_put_received", "find_received", "upsert"];

const COLUMNS: &str = "table,kernel,registers,stack,spill_stores,spill_loads,instructions,loads";

const VARIABLE: &str = "WARPSET_KERNEL_TABLE";

/// Prefix of the table's first lines: the first one names the compiler.
const NOTE: &str = "# ";

/// The committed table; empty if there is none.
static COMMITTED: LazyLock<String> = LazyLock::new(|| std::fs::read_to_string(path()).unwrap_or_default());

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/nvrtc/kernels.csv")
}

/// The compiler that made the committed table.
fn committed_compiler() -> &'static str {
    COMMITTED.lines().next().and_then(|line| line.strip_prefix(NOTE)).unwrap_or_default()
}

fn measured() -> Vec<Program> {
    let all = program::all().into_iter().filter(|(program, capability)| *capability == program::ALL && program.is_measured());
    all.map(|(program, _)| program).collect()
}

/// Prefix of a program's lines.
fn beginning(program: Program) -> String {
    format!("{},", program.name())
}

fn lines_of(program: Program, image: &[u8]) -> Vec<String> {
    let cubin = Cubin::of(image);
    let line = |kernel: &str| {
        let Resources { registers, stack, spill_stores, spill_loads, instructions, loads } =
            cubin.resources(&format!("warpset_{kernel}"))?;
        let begins = beginning(program);
        Some(format!("{begins}{kernel},{registers},{stack},{spill_stores},{spill_loads},{instructions},{loads}"))
    };
    KERNELS.into_iter().filter_map(line).collect()
}

/// Compares the kernels of a program with the committed table, if benches measure them and this compiler has made the table.
pub fn check(program: Program, image: &[u8]) -> Result<(), Failed> {
    if !program.is_measured() || Cubin::of(image).compiler() != committed_compiler() {
        return Ok(());
    }
    let (begins, made) = (beginning(program), lines_of(program, image));
    let expected: Vec<&str> = COMMITTED.lines().filter(|line| line.starts_with(&begins)).collect();
    if expected == made {
        return Ok(());
    }
    let gone = expected.iter().filter(|line| !made.iter().any(|made| made == *line)).map(|line| format!("- {line}\n"));
    let new = made.iter().filter(|line| !expected.contains(&line.as_str())).map(|line| format!("+ {line}\n"));
    Err(format!(
        "other kernels than in tests/nvrtc/kernels.csv:\n  {COLUMNS}\n{}If that is on purpose, write the table by \
         `{VARIABLE}=write cargo test --test nvrtc`, and give the reason in the commit message.",
        gone.chain(new).collect::<String>()
    )
    .into())
}

/// Checks that the committed table has lines for every program that is compared, and no others.
fn all_are_compared() -> Result<(), Failed> {
    let begins: Vec<String> = measured().into_iter().map(beginning).collect();
    let mut lines = COMMITTED.lines().skip_while(|line| line.starts_with(NOTE));
    assert_eq!(lines.next(), Some(COLUMNS), "the columns of kernels.csv");
    let lines: Vec<&str> = lines.collect();
    let without: Vec<_> = begins.iter().filter(|begins| !lines.iter().any(|line| line.starts_with(*begins))).collect();
    assert!(without.is_empty(), "without lines in kernels.csv: {without:?}");
    let others: Vec<_> = lines.iter().filter(|line| !begins.iter().any(|begins| line.starts_with(begins))).collect();
    assert!(others.is_empty(), "nothing is compared with these lines of kernels.csv: {others:?}");
    Ok(())
}

fn compiler() -> warpset::Result<String> {
    gpu::compile(&BucketTable::builder(1), gpu::Program::Table, program::ALL).map(|image| Cubin::of(&image).compiler())
}

/// Checks that this compiler made the committed table: otherwise nothing is compared.
fn is_of_this_compiler() -> Result<(), Failed> {
    assert_eq!(compiler()?, committed_compiler());
    Ok(())
}

/// Independent loads count as under way together, loads of a chain do not; spills have bytes.
fn resources_are_read() -> Result<(), Failed> {
    let source = r#"
        #include "warpset/table.cuh"
        using warpset::platform::load_relaxed;
        extern "C" __global__ void together(const unsigned long long* at, unsigned long long* to) {
            unsigned long long a = load_relaxed(at), b = load_relaxed(at + 1), c = load_relaxed(at + 2);
            *to = a + b + c;
        }
        extern "C" __global__ void chained(const unsigned long long* at, unsigned long long* to) {
            unsigned long long a = load_relaxed(at), b = load_relaxed(at + a), c = load_relaxed(at + b);
            *to = c;
        }
        extern "C" __global__ void __launch_bounds__(1024, 2) spilling(const unsigned* at, unsigned* to) {
            unsigned kept[64];
            #pragma unroll
            for (int i = 0; i < 64; ++i) kept[i] = warpset::platform::load_relaxed(at + i);
            __syncthreads();
            #pragma unroll
            for (int i = 0; i < 64; ++i) to[kept[i] % 1024 * 64 + i] = kept[63 - i];
        }"#;
    let image = gpu::compile(&BucketTable::builder(1), gpu::Program::Own { name: "loads.cu", source }, program::ALL)?;
    let cubin = Cubin::of(&image);
    let [together, chained, spilling] = ["together", "chained", "spilling"].map(|name| cubin.resources(name).expect("a kernel"));
    let unspilled = [together, chained].map(|one| (one.loads, one.stack, one.spill_stores, one.spill_loads));
    assert_eq!(unspilled, [(3, 0, 0, 0), (1, 0, 0, 0)]);
    assert!((5..=32).contains(&together.registers) && together.instructions < chained.instructions + 64, "{together:?}");
    // 64 values do not fit the 32 registers that 2,048 threads leave to each.
    assert_eq!(spilling.registers, 32);
    let spilled = 4 * (64 - 32);
    assert!([spilling.stack, spilling.spill_stores, spilling.spill_loads].iter().all(|bytes| *bytes >= spilled), "{spilling:?}");
    assert_eq!(cubin.resources("another"), None);
    Ok(())
}

/// Trials of the table as a whole. Those that compile are ignored for the reason `missing`.
pub fn trials(missing: Option<&str>) -> Vec<Trial> {
    let missing = missing.map(String::from);
    let another = || {
        let is_another =
            std::env::var_os(VARIABLE).is_none() && compiler().is_ok_and(|compiler| compiler != committed_compiler());
        is_another.then(|| format!("kernels.csv is of another compiler, {}", committed_compiler()))
    };
    let skipped = missing.clone().or_else(another);
    let trial = |name: &str, skipped: Option<String>, run: fn() -> Result<(), Failed>| {
        let is_skipped = skipped.is_some();
        let reason = skipped.map_or(String::new(), |reason| format!(" (skipped: {reason})"));
        Trial::test(format!("kernel_table::{name}{reason}"), run).with_ignored_flag(is_skipped)
    };
    vec![
        trial("all_are_compared", None, all_are_compared),
        trial("is_of_this_compiler", skipped, is_of_this_compiler),
        trial("resources_are_read", missing, resources_are_read),
    ]
}

/// Writes the table if the environment asks for it. Returns whether it does.
pub fn write() -> warpset::Result<bool> {
    if std::env::var_os(VARIABLE).is_none_or(|value| value != "write") {
        return Ok(false);
    }
    let lines = |program: Program| program.compile(program::ALL).map(|image| lines_of(program, &image));
    let made: Vec<_> = measured().into_par_iter().map(lines).collect::<warpset::Result<_>>()?;
    let head = [
        format!("{NOTE}{}", compiler()?),
        format!("{NOTE}Search kernels for compute capability 9.0: see kernel_table.rs. Written by {VARIABLE}=write."),
        COLUMNS.into(),
    ];
    let text: String = head.into_iter().chain(made.into_iter().flatten()).map(|line| line + "\n").collect();
    std::fs::write(path(), text).expect("the table can be written");
    println!("{} was written", path().display());
    Ok(true)
}
