//! Compiles the sets of C++ that the bench `cpu_sets` compares with, if their headers are installed. Folders of headers that the
//! compiler does not know by itself: `CPATH`.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(boost)");
    println!("cargo::rerun-if-changed=boost.cpp");
    println!("cargo::rerun-if-env-changed=CPATH");
    let mut boost = cc::Build::new();
    // Its warnings are of no interest: where the headers are missing, or too old, nothing is compared with them.
    boost.cpp(true).std("c++17").file("boost.cpp").opt_level(3).cargo_warnings(false).warnings(false);
    if boost.try_compile("warpset_bench_boost").is_ok() {
        println!("cargo::rustc-cfg=boost");
    }
}
