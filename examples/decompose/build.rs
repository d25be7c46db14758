//! Compiles the kernels of `decompose` for threads of a CPU, from the text that GPUs compile, if the feature `cpu` is on.

fn main() {
    for file in ["kernels.cpp", "kernels.cuh", "work.cuh", "components.cuh", "end_components.cuh", "paths.cuh"] {
        println!("cargo::rerun-if-changed=src/{file}");
    }
    #[cfg(feature = "cpu")]
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .file("src/kernels.cpp")
        // A debug build wants its loops optimised, too.
        .opt_level(3)
        .flag_if_supported("-fno-exceptions")
        .compile("warpset_decompose");
}
