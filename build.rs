//! Compiles the CPU backend from the same headers as the GPU's, if the feature `cpu` is on; refuses to build with no backend.

fn main() {
    println!("cargo::rerun-if-changed=cuda");
    if cfg!(not(any(feature = "cuda", feature = "cpu"))) {
        println!(
            "cargo::error=warpset needs at least one of its features `cuda` and `cpu`: without them there is no device for a table"
        );
    }
    #[cfg(feature = "cpu")]
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .file("cuda/cpu_tables.cpp")
        .include("cuda")
        .include("cuda/platform/cpu")
        // Tables are about memory: also a debug build of the crate wants its loops optimised.
        .opt_level(3)
        .flag_if_supported("-fno-exceptions")
        .compile("warpset_cpu");
}
