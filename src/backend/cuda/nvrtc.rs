//! Compiling CUDA C++ at run time, with warpset's headers.

use super::cache::Cache;
pub(crate) use super::kernels::KernelSet;
use super::library;
use crate::host::digest;
use crate::{Error, Result, Spec};
use cudarc::nvrtc::sys::{self, nvrtcProgram, nvrtcResult};
use std::ffi::{CStr, CString, c_char};
use std::sync::LazyLock;

/// The headers, by the names that `#include` uses.
pub(crate) const HEADERS: [(&str, &str); 44] = [
    ("warpset/platform.cuh", include_str!("../../../cuda/platform/gpu/warpset/platform.cuh")),
    ("warpset/core/layout.cuh", include_str!("../../../cuda/warpset/core/layout.cuh")),
    ("warpset/core/hash.cuh", include_str!("../../../cuda/warpset/core/hash.cuh")),
    ("warpset/core/probe.cuh", include_str!("../../../cuda/warpset/core/probe.cuh")),
    ("warpset/core/claim.cuh", include_str!("../../../cuda/warpset/core/claim.cuh")),
    ("warpset/core/outcome.cuh", include_str!("../../../cuda/warpset/core/outcome.cuh")),
    ("warpset/core/vectors.cuh", include_str!("../../../cuda/warpset/core/vectors.cuh")),
    ("warpset/bucket/table.cuh", include_str!("../../../cuda/warpset/bucket/table.cuh")),
    ("warpset/bucket/bulk.cuh", include_str!("../../../cuda/warpset/bucket/bulk.cuh")),
    ("warpset/bucket/bulk_filler.cuh", include_str!("../../../cuda/warpset/bucket/bulk_filler.cuh")),
    ("warpset/tree/nodes.cuh", include_str!("../../../cuda/warpset/tree/nodes.cuh")),
    ("warpset/tree/shape.cuh", include_str!("../../../cuda/warpset/tree/shape.cuh")),
    ("warpset/tree/strategy.cuh", include_str!("../../../cuda/warpset/tree/strategy.cuh")),
    ("warpset/tree/incremental.cuh", include_str!("../../../cuda/warpset/tree/incremental.cuh")),
    ("warpset/tree/table.cuh", include_str!("../../../cuda/warpset/tree/table.cuh")),
    ("warpset/tree/builder.cuh", include_str!("../../../cuda/warpset/tree/builder.cuh")),
    ("warpset/tree/strategies/root_builder.cuh", include_str!("../../../cuda/warpset/tree/strategies/root_builder.cuh")),
    ("warpset/tree/strategies/row_builder.cuh", include_str!("../../../cuda/warpset/tree/strategies/row_builder.cuh")),
    ("warpset/compact/relocation.cuh", include_str!("../../../cuda/warpset/compact/relocation.cuh")),
    (
        "warpset/tree/strategies/recursive_builder.cuh",
        include_str!("../../../cuda/warpset/tree/strategies/recursive_builder.cuh"),
    ),
    ("warpset/tree/incremental_builder.cuh", include_str!("../../../cuda/warpset/tree/incremental_builder.cuh")),
    ("warpset/bucket/lane_search.cuh", include_str!("../../../cuda/warpset/bucket/lane_search.cuh")),
    ("warpset/bucket/warp_search.cuh", include_str!("../../../cuda/warpset/bucket/warp_search.cuh")),
    ("warpset/compact/permutation.cuh", include_str!("../../../cuda/warpset/compact/permutation.cuh")),
    ("warpset/compact/table.cuh", include_str!("../../../cuda/warpset/compact/table.cuh")),
    ("warpset/compact/search.cuh", include_str!("../../../cuda/warpset/compact/search.cuh")),
    ("warpset/bucket/thread_search.cuh", include_str!("../../../cuda/warpset/bucket/thread_search.cuh")),
    ("warpset/core/batch_view.cuh", include_str!("../../../cuda/warpset/core/batch_view.cuh")),
    ("warpset/core/results.cuh", include_str!("../../../cuda/warpset/core/results.cuh")),
    ("warpset/bucket/builder.cuh", include_str!("../../../cuda/warpset/bucket/builder.cuh")),
    ("warpset/bucket/growth.cuh", include_str!("../../../cuda/warpset/bucket/growth.cuh")),
    ("warpset/bucket/block_growth.cuh", include_str!("../../../cuda/warpset/bucket/block_growth.cuh")),
    ("warpset/batch/search.cuh", include_str!("../../../cuda/warpset/batch/search.cuh")),
    ("warpset/batch/columns.cuh", include_str!("../../../cuda/warpset/batch/columns.cuh")),
    ("warpset/batch/maintenance.cuh", include_str!("../../../cuda/warpset/batch/maintenance.cuh")),
    ("warpset/cluster/partition.cuh", include_str!("../../../cuda/warpset/cluster/partition.cuh")),
    ("warpset/indexed/rows.cuh", include_str!("../../../cuda/warpset/indexed/rows.cuh")),
    ("warpset/indexed/table.cuh", include_str!("../../../cuda/warpset/indexed/table.cuh")),
    ("warpset/indexed/search.cuh", include_str!("../../../cuda/warpset/indexed/search.cuh")),
    ("warpset/indexed/maintenance.cuh", include_str!("../../../cuda/warpset/indexed/maintenance.cuh")),
    ("warpset/indexed/upsert.cuh", include_str!("../../../cuda/warpset/indexed/upsert.cuh")),
    ("warpset/indexed/values.cuh", include_str!("../../../cuda/warpset/indexed/values.cuh")),
    ("warpset/block_cache.cuh", include_str!("../../../cuda/warpset/block_cache.cuh")),
    ("warpset/table.cuh", include_str!("../../../cuda/warpset/table.cuh")),
];

/// The kernels of a table.
const TABLE_KERNELS: (&str, &str) = ("table_kernels.cu", include_str!("../../../cuda/table_kernels.cu"));

/// Kernels of a rank of a cluster, for any table.
#[cfg(feature = "cluster")]
const CLUSTER_KERNELS: (&str, &str) = ("cluster_kernels.cu", include_str!("../../../cuda/cluster_kernels.cu"));

/// A program to compile, for tables of a spec on GPUs of a compute capability.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Job<'a> {
    pub(super) name: &'a str,
    pub(super) source: &'a str,
    spec: Spec,
    capability: (u32, u32),
    /// The set of a table's kernels that this is, if it is one.
    set: Option<KernelSet>,
}

/// The macros that `table.cuh` needs for tables of a spec, as options of a compiler.
pub(crate) fn definitions(spec: Spec) -> Vec<String> {
    let strategy = spec.strategy();
    let macros = [
        ("INDEXED", spec.is_indexed().into()),
        ("TREE", spec.is_tree().into()),
        ("WIDTH", spec.width()),
        ("SLOT_WORDS", spec.slot_words()),
        ("CHUNK_BYTES", spec.chunk_bytes()),
        ("LINE_BYTES", spec.line_bytes()),
        ("KEY_BITS", spec.key_bits as usize),
        ("SLOT_BITS", spec.slot_bits as usize),
        ("LANES", strategy.lanes as usize),
        ("PAIRING", strategy.pairing() as usize),
        ("WORKSPACE", strategy.workspace as usize),
    ];
    macros.map(|(name, value)| format!("-DWARPSET_{name}={value}")).into()
}

impl<'a> Job<'a> {
    /// Job for a user's source.
    pub(crate) fn new(name: &'a str, source: &'a str, spec: Spec, capability: (u32, u32)) -> Self {
        Self { name, source, spec, capability, set: None }
    }

    /// Job for the kernels of a table: one set, or all without `set`.
    pub(crate) fn table(spec: Spec, set: Option<KernelSet>, capability: (u32, u32)) -> Self {
        let (name, source) = TABLE_KERNELS;
        Self { name, source, spec, capability, set }
    }

    /// Job for the kernels of a rank of a cluster. They do not depend on a spec, so all tables share them.
    #[cfg(feature = "cluster")]
    pub(crate) fn cluster(capability: (u32, u32)) -> Job<'static> {
        let (name, source) = CLUSTER_KERNELS;
        let spec = Spec::bucket(1, 8).expect("the width is supported");
        Job { name, source, spec, capability, set: None }
    }

    /// Job with another name and source, and otherwise equal.
    pub(super) fn with_texts<'b>(&self, name: &'b str, source: &'b str) -> Job<'b> {
        let Self { spec, capability, set, .. } = *self;
        Job { name, source, spec, capability, set }
    }

    fn options(&self, architecture: &str) -> Vec<String> {
        let options = [
            format!("--gpu-architecture={architecture}"),
            "--std=c++17".into(),
            "-lineinfo".into(),
            // NVRTC takes a lambda without annotation for host code, also inside a device function.
            "--device-as-default-execution-space".into(),
        ];
        let part = self.set.map(|set| format!("-DWARPSET_PART={}", set as u32));
        options.into_iter().chain(definitions(self.spec)).chain(part).collect()
    }

    /// Text of everything that the image depends on. The headers, which belong to this build of the library, are included as a
    /// digest.
    fn key(&self, options: &[String], driver: i32, nvrtc: &str) -> String {
        static HEADERS_DIGEST: LazyLock<u128> =
            LazyLock::new(|| digest(HEADERS.iter().flat_map(|(name, text)| [name.as_bytes(), text.as_bytes()])));
        let (version, headers, Self { name, source, .. }) = (env!("CARGO_PKG_VERSION"), *HEADERS_DIGEST, self);
        format!(
            "warpset {version}\nheaders {headers:032x}\nNVRTC {nvrtc}\ndriver {driver}\noptions {options:?}\nname {name:?}\n\n{source}"
        )
    }
}

/// Version and build of NVRTC: its file, with size and time. Many builds have the same version, and compile differently.
fn version() -> Result<String> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both are valid memory.
    check("asking for the version of NVRTC", unsafe { sys::nvrtcVersion(&mut major, &mut minor) })?;
    let build = library::NVRTC.file_of("nvrtcVersion").unwrap_or("unknown");
    Ok(format!("{major}.{minor}, build {build}"))
}

/// Errors unless NVRTC can be loaded. (`cudarc` panics when a library is missing.)
pub(crate) fn ensure_present() -> Result<()> {
    library::NVRTC.ensure_present()
}

/// Returns the architecture to compile for, and whether it is the GPU's own. If this NVRTC does not know the GPU's architecture,
/// it is the newest older one that it knows. NVRTC then makes PTX, which the driver compiles for the GPU.
fn architecture(capability: (u32, u32)) -> Result<(String, bool)> {
    let wanted = (capability.0 * 10 + capability.1) as i32;
    let mut count = 0;
    // SAFETY: `count` is valid memory.
    check("asking for the architectures", unsafe { sys::nvrtcGetNumSupportedArchs(&mut count) })?;
    let mut supported = vec![0; count as usize];
    // SAFETY: NVRTC writes as many as it said.
    check("asking for the architectures", unsafe { sys::nvrtcGetSupportedArchs(supported.as_mut_ptr()) })?;
    if supported.contains(&wanted) {
        return Ok((format!("sm_{wanted}"), true));
    }
    match supported.iter().filter(|known| **known <= wanted).max() {
        Some(nearest) => Ok((format!("compute_{nearest}"), false)),
        None => {
            let status = format!("NVRTC knows only {supported:?}, not {wanted}");
            Err(Error::Cuda { what: "choosing an architecture", code: 0, status })
        }
    }
}

/// Compiles a program, or finds it compiled in the cache. Returns a CUBIN, or PTX ended by a zero.
pub(crate) fn compile(job: &Job, cache: Option<&Cache>) -> Result<Vec<u8>> {
    super::pass("compiling kernels")?;
    ensure_present()?;
    let (architecture, real) = architecture(job.capability)?;
    let options = job.options(&architecture);
    let compile = || {
        let program = Program::new(job.name, job.source)?;
        if let Err(status) = program.compile(&options) {
            let (name, log) = (job.name.into(), program.log());
            return Err(Error::Compile { name, spec: Box::new(job.spec), status, log, options: options.clone() });
        }
        if real { program.cubin() } else { program.ptx() }
    };
    match cache.filter(|_| !may_depend_on_files(job.source)) {
        Some(cache) => cache.get_or_make(&job.key(&options, cache.driver, &version()?), compile),
        None => compile(),
    }
}

/// Whether a source may depend on a file, whose text is not in the key: whether more than the `#include` lines of our headers and
/// `#pragma unroll` is about inclusion, wherever it stands. A wrong "no" would run a stale kernel; a wrong "yes" only compiles
/// again. So comments and literals count too, and so do words that a backslash divides, or a macro that pastes tokens may make.
fn may_depend_on_files(source: &str) -> bool {
    let mut rest = source.replace("#pragma unroll", "");
    for (name, _) in HEADERS {
        rest = rest.replace(&format!("#include \"{name}\""), "").replace(&format!("#include <{name}>"), "");
    }
    rest.retain(|letter| !letter.is_whitespace() && letter != '\\');
    let has = |words: &[&str]| words.iter().any(|word| rest.contains(word));
    // `#/*` may hide `#if`; `%:` is a `#`, and `??` begins trigraphs.
    has(&["include", "embed", "import", "ragma", "#/*", "%:", "??"]) || (has(&["##"]) && has(&["#if"]))
}

struct Program(nvrtcProgram);

impl Program {
    fn new(name: &str, source: &str) -> Result<Self> {
        let text = |text: &str| CString::new(text).map_err(|_| no_zeros(name));
        let (name_text, source) = (text(name)?, text(source)?);
        let headers = HEADERS.map(|(_, text)| CString::new(text).expect("a header has no zero bytes"));
        let names = HEADERS.map(|(name, _)| CString::new(name).expect("a name has no zero bytes"));
        let header_texts = headers.each_ref().map(|header| header.as_ptr());
        let include_names = names.each_ref().map(|name| name.as_ptr());
        let mut program = std::ptr::null_mut();
        // SAFETY: all texts end in zero and live until the call returns (NVRTC copies them); the two arrays have as many
        // elements as is said.
        let status = unsafe {
            let count = HEADERS.len() as i32;
            sys::nvrtcCreateProgram(
                &mut program,
                source.as_ptr(),
                name_text.as_ptr(),
                count,
                header_texts.as_ptr(),
                include_names.as_ptr(),
            )
        };
        check("creating a program", status)?;
        Ok(Self(program))
    }

    fn compile(&self, options: &[String]) -> Result<(), String> {
        let texts: Vec<CString> = options.iter().map(|o| CString::new(o.as_str()).expect("options have no zero bytes")).collect();
        let pointers: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
        // SAFETY: the program is valid; the options end in zero and live until the call returns.
        let status = unsafe { sys::nvrtcCompileProgram(self.0, pointers.len() as i32, pointers.as_ptr()) };
        if status == nvrtcResult::NVRTC_SUCCESS { Ok(()) } else { Err(text_of(status)) }
    }

    fn log(&self) -> String {
        let log = self.output(sys::nvrtcGetProgramLogSize, sys::nvrtcGetProgramLog);
        log.map_or_else(|error| error.to_string(), |log| String::from_utf8_lossy(&log).trim_end_matches(['\0', '\n']).into())
    }

    fn cubin(&self) -> Result<Vec<u8>> {
        self.output(sys::nvrtcGetCUBINSize, sys::nvrtcGetCUBIN)
    }

    fn ptx(&self) -> Result<Vec<u8>> {
        self.output(sys::nvrtcGetPTXSize, sys::nvrtcGetPTX)
    }

    /// Reads an output through the pair of NVRTC functions for its size and its content.
    fn output(
        &self,
        size: unsafe fn(nvrtcProgram, *mut usize) -> nvrtcResult,
        content: unsafe fn(nvrtcProgram, *mut c_char) -> nvrtcResult,
    ) -> Result<Vec<u8>> {
        let mut bytes = 0;
        // SAFETY: the program is valid, and so is the memory for the size.
        check("reading the size of an output", unsafe { size(self.0, &mut bytes) })?;
        let mut output = vec![0u8; bytes];
        // SAFETY: the buffer is as large as NVRTC said.
        check("reading an output", unsafe { content(self.0, output.as_mut_ptr().cast()) })?;
        Ok(output)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: created by `new`, destroyed once.
        unsafe { sys::nvrtcDestroyProgram(&mut self.0) };
    }
}

fn text_of(status: nvrtcResult) -> String {
    // SAFETY: NVRTC returns a static text for every status.
    unsafe { CStr::from_ptr(sys::nvrtcGetErrorString(status)) }.to_string_lossy().into_owned()
}

fn check(what: &'static str, status: nvrtcResult) -> Result<()> {
    if status == nvrtcResult::NVRTC_SUCCESS {
        return Ok(());
    }
    Err(Error::Cuda { what, code: status as i32, status: text_of(status) })
}

fn no_zeros(name: &str) -> Error {
    Error::Cuda { what: "creating a program", code: 0, status: format!("{name} holds a zero byte") }
}

#[cfg(test)]
mod tests {
    //! Keeps this promise of `src/docs/your_own_kernels.md`:
    //!
    //! - The headers that are written to a folder are all headers of `cuda`.
    //!
    //! Keeps these promises of `src/docs/host_batches.md`:
    //!
    //! - A cached kernel is not used if its source, options, architecture, driver, or version or build of NVRTC differ (also
    //!   `library.rs`, `host/code_cache.rs`).
    //! - A kernel whose source may depend on a file is not cached, however the source spells that dependency.
    //! - Kernels that a program does not use are not compiled; the operation that first needs one returns its compile error (also
    //!   `tests/suite/faults.rs`).

    use super::*;
    use crate::host::code_cache::tests::Scratch;
    use crate::{Strategy, faults};

    const CAPABILITY: (u32, u32) = (9, 0);

    fn cache(scratch: &Scratch, driver: i32) -> Cache {
        Cache { files: scratch.cache(), driver }
    }

    /// Whether there is NVRTC; a failure if there must be.
    fn is_nvrtc_here() -> bool {
        let present = ensure_present();
        assert!(present.is_ok() || std::env::var_os("WARPSET_REQUIRE_NVRTC").is_none(), "{present:?}");
        if let Err(error) = &present {
            println!("skipped: {error}");
        }
        present.is_ok()
    }

    /// A header that is missing from the list would be missing in every kernel, and in folders that users write.
    #[test]
    fn headers_are_all_files_of_the_folder() {
        fn list(folder: &std::path::Path, prefix: &str, names: &mut std::collections::BTreeSet<String>) {
            for entry in std::fs::read_dir(folder).expect("the folder is in the repository") {
                let entry = entry.expect("it can be listed");
                let name = format!("{prefix}/{}", entry.file_name().to_string_lossy());
                if entry.path().is_dir() {
                    list(&entry.path(), &name, names);
                } else {
                    let text = std::fs::read_to_string(entry.path()).expect("a header is text");
                    let listed = HEADERS.iter().find(|(listed, _)| *listed == name);
                    assert_eq!(listed.map(|(_, text)| *text), Some(&*text), "{name}");
                    assert!(names.insert(name));
                }
            }
        }
        let cuda = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("cuda");
        let mut names = std::collections::BTreeSet::new();
        list(&cuda.join("warpset"), "warpset", &mut names);
        list(&cuda.join("platform/gpu/warpset"), "warpset", &mut names);
        assert!(
            names.iter().map(String::as_str).eq(HEADERS.iter().map(|(name, _)| *name).collect::<std::collections::BTreeSet<_>>())
        );
    }

    #[test]
    fn our_headers_alone_are_no_files() {
        for source in [
            "",
            "#include \"warpset/table.cuh\"",
            "#include \"warpset/table.cuh\" // why\n#include <warpset/block_cache.cuh>\r\nint a;",
            "#define TEXT(a) #a\n#if 1\n#error \"don't\"\n#endif",
            "#define JOIN(a, b) a ## b\n#define LINES(a) \\\n    a",
            "#pragma unroll\nint a = 1'0 % 7 ? 2 : 3; /* ' \" */",
            "#pragma unroll 1 // once\nfor (;;) {}",
        ] {
            assert!(!may_depend_on_files(source), "{source}");
        }
        assert!(!may_depend_on_files(TABLE_KERNELS.1));
        #[cfg(feature = "cluster")]
        assert!(!may_depend_on_files(CLUSTER_KERNELS.1));
    }

    #[test]
    fn files_are_found_however_they_are_written() {
        for source in [
            "#include \"mine.cuh\"",
            "#include <mine.cuh>",
            "#include MINE",
            "#include",
            "#include \"warpset/table.cuh",
            "int x;\n\t# include<mine.cuh>",
            "/* x */ #include \"mine.cuh\"",
            "# /**/ include \"mine.cuh\"",
            "#/*\n*/include \"mine.cuh\"",
            "/*\n*/ #include \"mine.cuh\"",
            "/* // */ #include \"mine.cuh\"",
            "/* \"*/ #include \"mine.cuh\"",
            "// /*\n#include \"mine.cuh\"\n// */",
            "%:include \"mine.cuh\"",
            "#\\\ninclude \"mine.cuh\"",
            "#in\\\ncl\\\n\\\nude \"mine.cuh\"",
            "/\\\n* x *\\\n/ #include \"mine.cuh\"",
            "#include \\\n\"mine.cuh\"",
            "#inc\\\r\nlude \"mine.cuh\"",
            "\u{feff}#include \"mine.cuh\"",
            "\x0b\x0c#include \"mine.cuh\"",
            "const char* a = \"/*\";\n#include \"mine.cuh\"\n// */",
            "const char a = '\"';\n#include \"mine.cuh\"\n// \"",
            "int a = 1'0;\n#include \"mine.cuh\"\n// '",
            "int a = 1'0 /* ' */;\n#include \"mine.cuh\"\n",
            "don't /*\n#include \"mine.cuh\"\n*/",
            "const char* a = R\"(\"; /* )\";\n#include \"mine.cuh\"\n// */",
            "const char* a = R\"x(/*)x\";\n#include \"mine.cuh\"\n// */",
            "const char* a = u8R\"(\\)\";\n#include \"mine.cuh\"\n// \"",
            "const char* a = notR\"(\";\n#include \"mine.cuh\"\n// )\"",
            "#if 0\nR\"(\n#endif\n#include \"mine.cuh\"\n// )\"",
            "#pragma unroll /*\n// */\n#include \"mine.cuh\"",
            "#include_next \"mine.cuh\"",
            "#import \"mine.cuh\"",
            "const char a[] = {\n#embed \"mine.bin\"\n};",
            "#if __has_include(\"mine.cuh\")\n#endif",
            "#define H __has_include\n#if H(\"mine.cuh\")\n#endif",
            "#define H(a) __has_inc ## a\n#if H(lude)(\"mine.cuh\")\n#endif",
            "%:define H(a) __has_inc%:%:a\n%:if H(lude)(\"mine.cuh\")\n%:endif",
            "#pragma include_alias(\"warpset/table.cuh\", \"mine.cuh\")",
            "#pragma GCC dependency \"mine.cuh\"",
            "_Pragma(\"include_alias(\\\"warpset/table.cuh\\\", \\\"mine.cuh\\\")\")",
            "#define P(a) _Pragma(#a)\nP(include_alias(\"warpset/table.cuh\", \"mine.cuh\"))",
            "#define P(a, b) _Pragma(#a #b)\n#define Q(a, b) a ## b",
            // Compilers differ.
            "??=include \"mine.cuh\"",
            "// on or not??/\n#include \"mine.cuh\"",
            "// on or not \\ \n#include \"mine.cuh\"",
            "// a line of its own?\r#include \"mine.cuh\"",
            "#include \"warpset/ table.cuh\"",
            "#include \"warpset/table.cuh \"",
            "#include \"warpset/\\\ntable.cuh\"",
            "#/**/if H(lude)(\"mine.cuh\")\n#define H(a) __has_inc ## a",
            "_Pra\\\ngma(\"unroll\")",
        ] {
            assert!(may_depend_on_files(source), "{source}");
        }
    }

    /// Pieces of sources in every order: `#include` of a file on the last line is found whatever the lines before.
    #[test]
    fn a_last_line_is_found_behind_any_text() {
        const PIECES: [&str; 14] = ["/*", "*/", "//", "\"", "'", "R\"(", ")\"", "\\", "\n", "#", "%:", "1'0", " ", "\\\n"];
        for mut number in 0..PIECES.len().pow(4) {
            let mut text = String::new();
            for _ in 0..4 {
                text += PIECES[number % PIECES.len()];
                number /= PIECES.len();
            }
            assert!(may_depend_on_files(&format!("{text}\n#include \"mine.cuh\"\n")), "{text}");
        }
    }

    /// The file may change while the source that includes it stays the same.
    #[test]
    fn what_includes_a_file_is_not_kept() {
        if !is_nvrtc_here() {
            return;
        }
        let scratch = Scratch::new();
        let cache = cache(&scratch, 13000);
        let file = scratch.file("mine.cuh");
        let source = format!(
            "#include \"warpset/table.cuh\"\n#include \"{}\"\n\
             extern \"C\" __global__ void give(unsigned* to) {{ *to = MINE; }}",
            file.display()
        );
        let job = Job::table(Spec::bucket(1, 16).unwrap(), None, CAPABILITY);
        let images = [1, 2].map(|number| {
            std::fs::write(&file, format!("#define MINE {number}\n")).unwrap();
            compile(&job.with_texts("mine.cu", &source), Some(&cache)).unwrap()
        });
        assert!(images[0] != images[1]);
        assert_eq!(scratch.files().len(), 0);
    }

    /// Another build of the same version compiles otherwise.
    #[test]
    fn kernels_of_another_build_are_not_taken() {
        let job = Job::new("a.cu", "__global__ void a() {}", Spec::bucket(7, 16).unwrap(), CAPABILITY);
        let options = job.options("sm_90");
        let key = |nvrtc| job.key(&options, 13000, nvrtc);
        assert!(key("13.0, build 1a") != key("13.0, build 1b") && key("13.0, build 1a") != key("13.1, build 1a"));
        if !is_nvrtc_here() {
            return;
        }
        let version = version().unwrap();
        let (_, build) = version.split_once(", build ").expect("a version and a build");
        assert!(build.contains("nvrtc") || !cfg!(unix), "{version}");
        assert!(job.key(&options, 13000, &version).contains(build));
    }

    #[test]
    fn kernels_are_compiled_once() {
        if !is_nvrtc_here() {
            return;
        }
        let scratch = Scratch::new();
        let (cache, of_next_driver) = (cache(&scratch, 13000), cache(&scratch, 13010));
        let put = Job::table(Spec::bucket(1, 16).unwrap(), Some(KernelSet::Put), CAPABILITY);
        let image = compile(&put, Some(&cache)).unwrap();
        assert_eq!(image, compile(&put, None).unwrap());
        assert_eq!(image, compile(&put, Some(&cache)).unwrap());
        assert_eq!(scratch.files().len(), 1);

        // Other programs are not taken from there.
        let own = |name, source| Job::new(name, source, put.spec, CAPABILITY);
        let others = [
            (Job::table(put.spec, Some(KernelSet::Find), CAPABILITY), &cache),
            (Job::table(Spec::bucket(2, 16).unwrap(), Some(KernelSet::Put), CAPABILITY), &cache),
            (Job::table(put.spec, Some(KernelSet::Put), (8, 0)), &cache),
            (put, &of_next_driver),
            (own("own.cu", "__global__ void a() {}"), &cache),
            (own("own.cu", "__global__ void b() {}"), &cache),
            (own("b.cu", "__global__ void b() {}"), &cache),
        ];
        for (number, (job, cache)) in others.into_iter().enumerate() {
            compile(&job, Some(cache)).unwrap();
            assert_eq!(scratch.files().len(), 2 + number);
        }
        // Errors are not kept, and occur again.
        for _ in 0..2 {
            let error = compile(&own("own.cu", "void c("), Some(&cache)).unwrap_err();
            assert!(matches!(&error, Error::Compile { log, .. } if log.contains("own.cu")), "{error}");
        }
        assert_eq!(scratch.files().len(), 8);
        // A kernel in the cache must not hide an injected fault either.
        let (result, _) = faults::fail(0..1, || compile(&put, Some(&cache)));
        assert!(result.is_err());
    }

    /// Each kernel is in its part and in no other.
    #[test]
    fn parts_have_their_kernels() {
        if !is_nvrtc_here() {
            return;
        }
        const KERNELS: [(&str, KernelSet); 23] = [
            ("warpset_clear", KernelSet::Put),
            ("warpset_find_or_put", KernelSet::Put),
            ("warpset_find_or_put_incremental", KernelSet::Incremental),
            ("warpset_find", KernelSet::Find),
            ("warpset_get", KernelSet::Read),
            ("warpset_export", KernelSet::Read),
            ("warpset_measure", KernelSet::Read),
            ("warpset_relocate", KernelSet::Relocate),
            ("warpset_rebuild", KernelSet::Rows),
            ("warpset_list_holes", KernelSet::Rows),
            ("warpset_move_rows", KernelSet::Rows),
            ("warpset_count_unstored", KernelSet::Rows),
            ("warpset_gather_values", KernelSet::Rows),
            ("warpset_scatter_values", KernelSet::Rows),
            ("warpset_find_or_put_received", KernelSet::PutReceived),
            ("warpset_find_received", KernelSet::FindReceived),
            ("warpset_upsert", KernelSet::Upsert),
            ("warpset_grow", KernelSet::Grow),
            ("warpset_keep_left", KernelSet::Grow),
            ("warpset_bulk_partition", KernelSet::Bulk),
            ("warpset_bulk_fill", KernelSet::Bulk),
            ("warpset_bulk_put_left", KernelSet::Bulk),
            ("warpset_bulk_replay", KernelSet::Bulk),
        ];
        let specs = [
            Spec::bucket(3, 16).unwrap(),
            Spec::bucket(4, 16).unwrap(),
            Spec::tree(5, Strategy::DEFAULT, 16).unwrap(),
            Spec::compact(40, 32, true, 8).unwrap(),
            Spec::compact_tree(8, 46, 32, 8).unwrap(),
            Spec::indexed(3, 32, 16).unwrap(),
        ];
        for spec in specs {
            let parts = [
                KernelSet::Put,
                KernelSet::Incremental,
                KernelSet::Find,
                KernelSet::Read,
                KernelSet::Relocate,
                KernelSet::Rows,
                KernelSet::PutReceived,
                KernelSet::FindReceived,
                KernelSet::Upsert,
                KernelSet::Grow,
                KernelSet::Bulk,
            ];
            let parts = parts.into_iter().filter(|part| match part {
                KernelSet::Incremental => spec.is_incremental(),
                KernelSet::Relocate => spec.is_cuckoo(),
                KernelSet::Rows | KernelSet::Upsert => spec.is_indexed(),
                KernelSet::Grow => spec.kind == crate::layout::Kind::Bucket,
                KernelSet::Bulk => spec.bulk_bytes().is_some(),
                _ => true,
            });
            for part in parts {
                let image = compile(&Job::table(spec, Some(part), CAPABILITY), None).unwrap();
                for (name, home) in KERNELS {
                    // A section for its code.
                    let section = format!(".text.{name}\0");
                    let is_there = image.windows(section.len()).any(|bytes| bytes == section.as_bytes());
                    assert_eq!(is_there, home == part, "{name} in {part:?} of {spec}");
                }
            }
        }
    }
}
