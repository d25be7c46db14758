//! Compiles the CPU backend from the same headers as the GPU's, if the feature `cpu` is on; refuses to build with no backend.

fn main() {
    println!("cargo::rerun-if-changed=cuda");
    if cfg!(not(any(feature = "cuda", feature = "cpu"))) {
        println!(
            "cargo::error=warpset needs at least one of its features `cuda` and `cpu`: without them there is no device for a \
             table"
        );
    }
    #[cfg(feature = "cpu")]
    cpu_tables();
}

#[cfg(feature = "cpu")]
fn cpu_tables() {
    let mut build = cc::Build::new();
    // Two versions may be in one program. So the names of the entry points (cuda/cpu_entries.hpp) and the namespace, whose inline
    // functions the linker would merge otherwise, have the version.
    let version: String =
        std::env::var("CARGO_PKG_VERSION").expect("Cargo sets it").replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    println!("cargo::rustc-env=WARPSET_SYMBOLS={version}");
    build.define("WARPSET_VERSION", &*version).define("warpset", &*format!("warpset_{version}"));
    // Lines of code only, where a build has debug information at all: the rest of it takes a quarter of the compiler's time.
    let is = |variable: &str, value: &str| std::env::var(variable).is_ok_and(|found| found == value);
    if is("DEBUG", "true") {
        build.flag_if_supported("-g1");
    }
    // Several compilers at once, as many as Cargo allows: each file takes seconds. Those that take longest come first.
    let kernels = ["bucket_from_17", "compact_tree", "tree", "indexed_1_to_8", "bucket_11_to_16", "growth", "bucket_5_to_10"]
        .into_iter()
        .chain(["compact", "bucket_1_to_4", "indexed", "bucket_maintenance", "tree_growth", "filter"])
        .map(|name| format!("cuda/cpu_kernels/{name}.cpp"));
    build
        .cpp(true)
        .std("c++17")
        .files(kernels)
        .files(["cuda/cpu_tables.cpp", "cuda/platform/cpu/hash.cpp"])
        .include("cuda")
        .include("cuda/platform/cpu")
        // Tables are about memory: also a debug build of the crate wants its loops optimised.
        .opt_level(3)
        .flag_if_supported("-fno-exceptions");
    if cfg!(feature = "cluster") {
        build.file("cuda/cpu_cluster.cpp");
    }
    // Claims of 16 bytes, which are used where the processor has them.
    if is("CARGO_CFG_TARGET_ARCH", "x86_64") {
        build.flag_if_supported("-mcx16");
    }
    build.compile(&format!("warpset_cpu_{version}"));
}
