//! If the feature `cpu` is on, compiles the kernels of `decompose` for CPU threads, from the source that is also compiled for
//! GPUs.

fn main() {
    for file in ["kernels.cpp", "kernels.cuh", "work.cuh", "components.cuh", "end_components.cuh", "paths.cuh"] {
        println!("cargo::rerun-if-changed=src/{file}");
    }
    #[cfg(feature = "cpu")]
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .file("src/kernels.cpp")
        // Optimise the kernels even in debug builds.
        .opt_level(3)
        .flag_if_supported("-fno-exceptions")
        .compile("warpset_decompose");
}
