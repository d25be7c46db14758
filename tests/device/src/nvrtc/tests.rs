use super::*;
use crate::execution::{LoadError, Module};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

fn options(defines: &[(&str, u32)]) -> Options {
    let mut options = vec!["--gpu-architecture=sm_90".into(), "--std=c++17".into(), "-lineinfo".into()];
    options.push("--device-as-default-execution-space".into());
    options.extend(defines.iter().map(|(name, value)| format!("-DWARPSET_{name}={value}")));
    Options::read(&options).unwrap()
}

/// Compiles a program, or finds it in the cache, and loads it.
pub(crate) fn compile(name: &str, source: &str, defines: &[(&str, u32)]) -> Result<Module, String> {
    let program = Program { name: name.into(), source: source.into(), headers: headers() };
    match program.compile(&options(defines), Cache::in_use().as_ref()) {
        (Outcome::Image(image), _) => Ok(Module::load(&image).unwrap()),
        (_, log) => Err(log),
    }
}

/// Returns the log of a program that does not compile.
fn log_of(name: &str, source: &str) -> String {
    compile(name, source, &TABLE).err().expect("an error")
}

/// The headers of the library, by the names that `#include` uses.
fn headers() -> Vec<(String, Vec<u8>)> {
    fn add(folder: &Path, name: &str, headers: &mut Vec<(String, Vec<u8>)>) {
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
    let cuda = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../cuda"));
    let mut headers = Vec::new();
    add(&cuda.join("warpset"), "warpset", &mut headers);
    add(&cuda.join("platform/gpu/warpset"), "warpset", &mut headers);
    headers
}

/// The macros of a bucket table of 8 words.
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

/// Returns `TABLE` with some values changed.
pub(crate) fn table(changes: &[(&'static str, u32)]) -> Vec<(&'static str, u32)> {
    let mut all = HashMap::from(TABLE);
    all.extend(changes.iter().copied());
    all.into_iter().collect()
}

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = format!("warpset-device-tests-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn files(&self) -> Vec<PathBuf> {
        std::fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A kind of table: its name, its macros, and its kernels that not every table has.
type TableCase = (&'static str, Vec<(&'static str, u32)>, &'static [&'static str]);

/// A program: its name, its text, its macros, and its kernels.
type Case<'a> = (&'static str, &'static str, &'a [(&'static str, u32)], &'static [&'static str]);

const KERNELS: &str = include_str!("../../../../cuda/table_kernels.cu");

#[test]
fn kernels_of_every_kind_of_table_compile() {
    let of_all =
        ["clear", "find_or_put", "find_or_put_received", "find", "find_received", "get", "export", "measure", "gather_columns"];
    const ROWS: [&str; 7] = ["rebuild", "list_holes", "move_rows", "count_unstored", "gather_values", "scatter_values", "upsert"];
    const BULK: [&str; 6] = ["grow", "keep_left", "bulk_partition", "bulk_fill", "bulk_put_left", "bulk_replay"];
    // Lanes, pairing and workspace of the default strategy, and of others (src/layout/strategy.rs).
    let kinds: [TableCase; 9] = [
        ("bucket", table(&[]), &["grow", "keep_left"]),
        ("bucket of one word", table(&[("WIDTH", 1), ("SLOT_WORDS", 1), ("CHUNK_BYTES", 8)]), &BULK),
        ("bucket with a tail", table(&[("WIDTH", 7), ("SLOT_WORDS", 7), ("CHUNK_BYTES", 8)]), &["grow", "keep_left"]),
        ("tree", table(&[("TREE", 1), ("SLOT_WORDS", 2)]), &["find_or_put_incremental"]),
        ("interleaved tree", table(&[("TREE", 1), ("SLOT_WORDS", 2), ("LANES", 1), ("PAIRING", 1)]), &[]),
        (
            "compact tree",
            table(&[("TREE", 1), ("SLOT_WORDS", 2), ("KEY_BITS", 46), ("CHUNK_BYTES", 8)]),
            &["find_or_put_incremental"],
        ),
        ("compact", table(&[("WIDTH", 2), ("KEY_BITS", 45), ("CHUNK_BYTES", 8)]), &["relocate"]),
        ("indexed", table(&[("INDEXED", 1)]), &ROWS),
        ("indexed by 8 bytes", table(&[("INDEXED", 1), ("SLOT_BITS", 64)]), &ROWS),
    ];
    for (kind, defines, more) in kinds {
        let module = compile("table_kernels.cu", KERNELS, &defines).unwrap_or_else(|log| panic!("{kind}: {log}"));
        let mut names: Vec<String> = module.functions().map(|function| function.name.clone()).collect();
        let mut expected: Vec<String> = of_all.iter().chain(more).map(|name| format!("warpset_{name}")).collect();
        names.sort();
        expected.sort();
        assert_eq!(names, expected, "{kind}");
        assert_eq!(module.global(c"warpset_geometry").unwrap().1, 36);
    }
}

#[test]
fn programs_of_the_tests_and_examples_compile() {
    let two = table(&[("WIDTH", 2), ("SLOT_WORDS", 2)]);
    let cases: [Case<'_>; 4] = [
        (
            "cluster_kernels.cu",
            include_str!("../../../../cuda/cluster_kernels.cu"),
            &TABLE,
            &["claim", "scatter", "gather_put", "gather_found", "write_stamps", "check_stamps"],
        ),
        (
            "kernels.cu",
            include_str!("../../../suite/kernels.cu"),
            &TABLE,
            &["read_view", "offer", "make_batch", "make_successors", "put_successors", "make_numbers", "judge_numbers", "mark"],
        ),
        ("blocks.cu", include_str!("../../../suite/blocks.cu"), &TABLE, &["put_by_blocks"]),
        ("puzzle.cu", include_str!("../../../../examples/custom_kernel/puzzle.cu"), &two, &["expand"]),
    ];
    for (name, source, defines, kernels) in cases {
        // The incremental kernels of the suite need a tree.
        let tree = table(&[("TREE", 1), ("SLOT_WORDS", 2)]);
        let defines = if name == "kernels.cu" { &tree } else { defines };
        let module = compile(name, source, defines).unwrap_or_else(|log| panic!("{name}: {log}"));
        let found = |kernel: &&&str| module.functions().any(|function| function.name.ends_with(**kernel));
        assert_eq!(kernels.iter().filter(found).count(), kernels.len(), "{name}");
        assert_eq!(module.functions().count(), kernels.len(), "{name}");
    }
}

#[test]
fn kernels_say_their_bounds_and_parameters() {
    let source = r#"
        struct Three { unsigned char bytes[3]; };
        struct alignas(16) Wide { unsigned long long low, high; };
        constexpr int threads = 96;
        namespace inner {
        extern "C" __global__ void __launch_bounds__(threads * 2, 3) bounded(char a, double b, Three c, Wide d, short e)
        {
            __shared__ volatile int mine[25];
            mine[0] = a;
        }
        }
        extern "C" { __launch_bounds__(64) __global__ void one() { __shared__ volatile int mine[4]; mine[1] = 0; } }
        static __device__ void unused() {}
        __global__ void mangled(int) { unused(); }
        extern "C" __global__ void declared(int);
        extern "C" __global__ void declared(int) {}
        __device__ unsigned counter[5] = {1, 2, 3, 4, 5};
        __constant__ const unsigned long long constant = 77;
    "#;
    let module =
        compile("names.cu", &format!("{source}\nextern \"C\" __device__ unsigned plain[7];\nunsigned plain[7];"), &[]).unwrap();
    let bounded = module.function(c"bounded").unwrap();
    assert_eq!((bounded.max_threads_per_block, bounded.min_blocks), (192, 3));
    assert_eq!(bounded.parameter_sizes, [1, 8, 3, 16, 2]);
    assert_eq!(bounded.parameter_offsets, [0, 8, 16, 32, 48]);
    assert_eq!((bounded.argument_bytes, bounded.static_shared_bytes), (50, 100));
    assert!(bounded.registers * 192 * 3 <= 65536);
    let one = module.function(c"one").unwrap();
    assert_eq!((one.max_threads_per_block, one.min_blocks, one.static_shared_bytes, one.argument_bytes), (64, 0, 16, 0));
    assert_eq!(module.function(c"_Z7mangledi").unwrap().max_threads_per_block, 1024);
    assert_eq!(module.functions().count(), 4);
    assert!(module.function(c"declared").is_some() && module.function(c"unused").is_none());
    let (counter, bytes) = module.global(c"counter").unwrap();
    // SAFETY: the address is that of five words of the program.
    assert_eq!((unsafe { *counter.cast::<[u32; 5]>() }, bytes), ([1, 2, 3, 4, 5], 20));
    assert_eq!(module.global(c"plain").unwrap().1, 28);
    assert!(module.global(c"bounded").is_none() && module.global(c"none").is_none());
}

#[test]
fn errors_have_their_file_and_line() {
    let log = log_of("mine.cu", "#include \"warpset/table.cuh\"\n\nint nonsense = unknown_name;\n");
    assert!(log.starts_with("mine.cu(3): error: ") && log.contains("unknown_name"), "{log}");
    assert!(log.ends_with("1 error detected in the compilation of \"mine.cu\".\n"), "{log}");
    let log = log_of("a \"b\"\\c.cu", "\nvoid c(\n");
    assert!(log.contains("a \"b\"\\c.cu\"(") || log.contains("a \"b\"\\c.cu("), "{log}");
    let log = log_of("own.cu", "#include \"nowhere.cuh\"\n");
    assert_eq!(
        log,
        "own.cu(1): catastrophic error: cannot open source file \"nowhere.cuh\"\n1 error detected in the compilation of \"own.cu\".\n"
    );
    let log = log_of("own.cu", "#include <stdio.h>\n");
    assert!(log.contains("cannot open source file \"stdio.h\""), "{log}");
    // Lines after replaced text keep their numbers in the source.
    let source = "extern \"C\" __global__ void\n__launch_bounds__(\n  32,\n  1)\nf(int n)\n{\n  extern __shared__\n    int a[];\n  asm volatile(\n    \"prefetch.global.L2 [%0];\"\n    ::\"l\"(a));\n  n = wrong;\n}\n";
    let log = log_of("own.cu", source);
    assert!(log.starts_with("own.cu(12): error: "), "{log}");
    let log = log_of(
        "own.cu",
        "#include \"warpset/table.cuh\"\n__global__ void f(warpset::View view) { warpset::table(view).find_or_put(3); }",
    );
    assert!(log.contains("own.cu(2)") || log.contains("warpset/bucket/table.cuh("), "{log}");
    assert!(!log.contains("headers/"), "{log}");
}

#[test]
fn instructions_that_nobody_knows_are_errors() {
    let log = log_of("own.cu", "\n__device__ void f(int* a) { asm volatile(\"bar.warp.arrive %0;\" :: \"l\"(a)); }");
    assert!(
        log.starts_with("own.cu(2): error: the simulated device does not know the PTX instruction \"bar.warp.arrive %0\""),
        "{log}"
    );
    let log = log_of("own.cu", "extern __shared__ int a[];\n");
    assert!(log.starts_with("own.cu(1): error: ") && log.contains("extern __shared__"), "{log}");
}

#[test]
fn options_are_those_of_nvrtc() {
    let read = |options: &[&str]| Options::read(&options.iter().map(|option| option.to_string()).collect::<Vec<_>>());
    let options =
        read(&["-arch", "compute_80", "-DA=1", "-D", "B", "--define-macro=C=2", "-Ihere", "-I", "there", "--std=c++20", "-w"])
            .unwrap();
    assert_eq!((options.capability, options.is_real, options.standard.as_str(), options.warnings), (80, false, "c++20", false));
    assert_eq!(options.preprocessor, ["-DA=1", "-DB", "-DC=2", "-Ihere", "-Ithere"]);
    let ignored = ["--maxrregcount", "32", "-fmad=false", "-lineinfo", "-default-device"];
    assert_eq!(read(&ignored).unwrap(), read(&[]).unwrap());
    for wrong in [
        "--maxrregcount",
        "--no-such-option",
        "-O3",
        "own.cu",
        "--gpu-architecture=sm_12",
        "--gpu-architecture=sixty",
        "--std=c++98",
        "-D",
    ] {
        let log = read(&[wrong]).expect_err(wrong);
        assert!(log.starts_with("nvrtc: error: "), "{wrong}: {log}");
    }
    assert!(read(&["--no-such-option"]).unwrap_err().contains("--no-such-option"));
}

/// A program is compiled only once: the second result comes from the cache.
#[test]
fn programs_are_compiled_once() {
    let scratch = Scratch::new();
    let cache = Cache::at(&scratch.0);
    let program = |text: &str| Program { name: "own.cu".into(), source: text.into(), headers: headers() };
    let get = |program: &Program, defines: &[(&str, u32)]| match program.compile(&options(defines), Some(&cache)) {
        (Outcome::Image(image), _) => image,
        (outcome, log) => panic!("{outcome:?}: {log}"),
    };
    let source = "extern \"C\" __global__ void f(int* a) { *a = WARPSET_VALUE; }";
    let first = get(&program(source), &[("VALUE", 1)]);
    let files = scratch.files();
    assert_eq!(files.len(), 1);
    assert!(Module::load(&first).is_ok());
    // The second compilation uses the file without checking it.
    std::fs::write(&files[0], "what somebody wrote there").unwrap();
    let taken = get(&program(source), &[("VALUE", 1)]);
    assert!(taken.windows(13).any(|bytes| bytes == b"what somebody"));
    assert!(matches!(Module::load(&taken), Err(LoadError::Refused(_))));
    // A different text, option or header makes the program a different one.
    get(&program(source), &[("VALUE", 2)]);
    get(&program(&source.replace("*a", "a[1]")), &[("VALUE", 1)]);
    let mut changed = program(&format!("#include \"warpset/platform.cuh\"\n#include \"more.cuh\"\n{source}"));
    for text in ["using A = int;", "using A = short;"] {
        changed.headers.push(("more.cuh".into(), text.into()));
        get(&changed, &[("VALUE", 1)]);
        changed.headers.pop();
    }
    assert_eq!(scratch.files().len(), 5);
    // Failed compilations are not stored.
    let (outcome, _) = program("int a = b;").compile(&options(&[]), Some(&cache));
    assert_eq!((outcome, scratch.files().len()), (Outcome::Errors, 5));
}

/// The compiler finds files in the program's own folder, and in the folders that the options name.
#[test]
fn files_are_included() {
    let scratch = Scratch::new();
    std::fs::write(scratch.0.join("mine.cuh"), "#define MINE 5\n").unwrap();
    let path = scratch.0.join("own.cu");
    let source = "#include \"mine.cuh\"\nextern \"C\" __device__ unsigned value;\nunsigned value = MINE;";
    let module = compile(path.to_str().unwrap(), source, &[]).unwrap();
    // SAFETY: the address is that of a word of the program.
    assert_eq!(unsafe { *module.global(c"value").unwrap().0.cast::<u32>() }, 5);
    let program = Program { name: "own.cu".into(), source: source.into(), headers: Vec::new() };
    let folder = format!("-I{}", scratch.0.display());
    assert!(matches!(program.compile(&Options::read(&[folder]).unwrap(), None), (Outcome::Image(_), _)));
    assert!(matches!(program.compile(&Options::read(&[]).unwrap(), None), (Outcome::Errors, _)));
}

#[test]
fn images_that_are_none_are_refused() {
    let image = crate::execution::image_of(b"no object");
    assert!(matches!(Module::load(&image), Err(LoadError::Refused(_))));
    assert!(matches!(Module::load(&image[..30]), Err(LoadError::NotAnImage)));
    assert!(matches!(Module::load(b"// PTX"), Err(LoadError::NotAnImage)));
    // SAFETY: the addresses are those of whole images, and of texts with 16 bytes.
    unsafe {
        assert_eq!(crate::execution::image_bytes(image.as_ptr()), Some(image.as_slice()));
        assert_eq!(crate::execution::image_bytes(b"\x7fELF............".as_ptr()), None);
    }
}

/// Calls the functions in the way that programs do.
#[test]
fn functions_answer_as_nvrtc_does() {
    // SAFETY: the text ends in zero, and is never freed.
    let text = |status: Status| unsafe { CStr::from_ptr(nvrtcGetErrorString(status as c_int)) }.to_str().unwrap();
    assert_eq!((text(Status::Success), text(Status::Compilation)), ("NVRTC_SUCCESS", "NVRTC_ERROR_COMPILATION"));
    // SAFETY: the memory is valid, the texts end in zero, and the programs are live.
    unsafe {
        let (mut major, mut minor, mut count) = (0, 0, 0);
        assert_eq!((nvrtcVersion(&mut major, &mut minor), (major, minor)), (Status::Success, VERSION));
        assert_eq!(nvrtcVersion(ptr::null_mut(), &mut minor), Status::InvalidInput);
        assert_eq!(nvrtcGetNumSupportedArchs(&mut count), Status::Success);
        let mut architectures = vec![0; count as usize];
        assert_eq!(nvrtcGetSupportedArchs(architectures.as_mut_ptr()), Status::Success);
        assert!(architectures.is_sorted() && [75, 80, 90, 120].iter().all(|wanted| architectures.contains(wanted)));

        let mut program = ptr::null_mut();
        let create = |program: &mut Handle, source: &CStr| {
            nvrtcCreateProgram(program, source.as_ptr(), c"own.cu".as_ptr(), 0, ptr::null(), ptr::null())
        };
        assert_eq!(nvrtcCreateProgram(&mut program, ptr::null(), ptr::null(), 0, ptr::null(), ptr::null()), Status::InvalidInput);
        assert_eq!(create(&mut program, c"extern \"C\" __global__ void f() {}"), Status::Success);
        let mut bytes = 9;
        assert_eq!(nvrtcGetCUBINSize(program, &mut bytes), Status::InvalidProgram);
        assert_eq!(nvrtcGetLoweredName(program, c"f".as_ptr(), &mut ptr::null()), Status::NoLoweredNamesBeforeCompilation);
        let compile = |program: Handle, options: &[&CStr]| {
            let pointers: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
            nvrtcCompileProgram(program, pointers.len() as c_int, pointers.as_ptr())
        };
        let log = |program: Handle| {
            let mut bytes = 0;
            assert_eq!(nvrtcGetProgramLogSize(program, &mut bytes), Status::Success);
            let mut log = vec![1u8; bytes];
            assert_eq!(nvrtcGetProgramLog(program, log.as_mut_ptr().cast()), Status::Success);
            assert_eq!(log.pop(), Some(0));
            String::from_utf8(log).unwrap()
        };
        assert_eq!(compile(program, &[c"--wrong"]), Status::InvalidOption);
        assert_eq!(log(program), "nvrtc: error: unrecognized option --wrong found\n");
        // A real architecture gives PTX and CUBIN, a virtual one only PTX.
        assert_eq!((compile(program, &[c"-arch=sm_90"]), log(program).as_str()), (Status::Success, ""));
        assert_eq!(nvrtcAddNameExpression(program, c"f".as_ptr()), Status::NoNameExpressionsAfterCompilation);
        assert_eq!(nvrtcGetCUBINSize(program, &mut bytes), Status::Success);
        let mut image = vec![0u8; bytes];
        assert_eq!(nvrtcGetCUBIN(program, image.as_mut_ptr().cast()), Status::Success);
        assert!(Module::load(&image).unwrap().function(c"f").is_some());
        assert!(image.windows(8).any(|bytes| bytes == b".text.f\0"));
        assert_eq!(compile(program, &[c"-arch=compute_90"]), Status::Success);
        assert_eq!((nvrtcGetCUBINSize(program, &mut bytes), bytes), (Status::Success, 0));
        assert_eq!(nvrtcGetPTXSize(program, &mut bytes), Status::Success);
        let mut ptx = vec![1u8; bytes];
        assert_eq!(nvrtcGetPTX(program, ptx.as_mut_ptr().cast()), Status::Success);
        assert!(ptx.last() == Some(&0) && Module::load(&ptx).is_ok());
        assert_eq!(nvrtcGetLTOIRSize(program, &mut bytes), Status::InvalidProgram);
        assert_eq!(nvrtcDestroyProgram(&mut program), Status::Success);
        assert_eq!(
            (nvrtcDestroyProgram(&mut program), nvrtcGetPTXSize(program, &mut bytes)),
            (Status::InvalidProgram, Status::InvalidProgram)
        );

        assert_eq!(create(&mut program, c"\nint a = b;"), Status::Success);
        assert_eq!(compile(program, &[]), Status::Compilation);
        assert!(log(program).starts_with("own.cu(2): error: "));
        assert_eq!(nvrtcGetCUBINSize(program, &mut bytes), Status::InvalidProgram);
        assert_eq!(nvrtcDestroyProgram(&mut program), Status::Success);
    }
}
