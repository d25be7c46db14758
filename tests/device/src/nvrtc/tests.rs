use super::*;
use crate::execution::{Launch, Module, run};

/// A source with the headers of the library, compiled without a cache.
pub(crate) fn compile(name: &str, source: &str, defines: &[(&str, u32)]) -> Result<Module, String> {
    let mut options = vec!["--gpu-architecture=sm_90".into(), "--std=c++17".into(), "-lineinfo".into()];
    options.push("--device-as-default-execution-space".into());
    options.extend(defines.iter().map(|(name, value)| format!("-DWARPSET_{name}={value}")));
    let program = Program { name: name.into(), source: source.into(), headers: headers() };
    match program.compile(&Options::read(&options).unwrap(), None) {
        (Outcome::Image(image), _) => Ok(Module::load(&image).unwrap()),
        (_, log) => Err(log),
    }
}

/// The headers of the library, by the names that `#include` uses.
fn headers() -> Vec<(String, Vec<u8>)> {
    fn add(folder: &std::path::Path, name: &str, headers: &mut Vec<(String, Vec<u8>)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{name}/{}", path.file_name().unwrap().to_str().unwrap());
            if path.is_dir() {
                add(&path, &name, headers);
            } else {
                headers.push((name, std::fs::read(path).unwrap()));
            }
        }
    }
    let cuda = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../cuda"));
    let mut headers = Vec::new();
    add(&cuda.join("warpset"), "warpset", &mut headers);
    add(&cuda.join("platform/gpu/warpset"), "warpset", &mut headers);
    headers
}

pub(crate) const TABLE: [(&str, u32); 11] = [
    ("INDEXED", 0),
    ("TREE", 0),
    ("WIDTH", 8),
    ("SLOT_WORDS", 8),
    ("CHUNK_BYTES", 16),
    ("LINE_BYTES", 64),
    ("KEY_BITS", 0),
    ("SLOT_BITS", 32),
    ("LANES", 0),
    ("PAIRING", 0),
    ("WORKSPACE", 0),
];

#[test]
fn a_bucket_tables_kernels_compile() {
    let module = compile("table_kernels.cu", include_str!("../../../../cuda/table_kernels.cu"), &TABLE).unwrap();
    let function = module.function(c"warpset_find_or_put").unwrap();
    for f in module.functions() {
        println!("{} {} {} {} {:?} {}", f.name, f.max_threads_per_block, f.min_blocks, f.static_shared_bytes, f.parameter_sizes, f.argument_bytes);
    }
    assert_eq!((function.max_threads_per_block, function.min_blocks), (128, 9));
    let _ = run;
    let _: Option<Launch> = None;
    println!("{:?}", module.global(c"warpset_geometry"));
}
