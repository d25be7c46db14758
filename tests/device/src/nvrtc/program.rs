//! Compilation of a program by the system's C++ compiler.

use super::cache::{Cache, digest};
use super::options::Options;
use super::translation::translate;
use crate::execution::{STACK_BYTES, image_of};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, io, process};

const WORDS: &str = include_str!("../../runtime/words.h");
const PLATFORM: &str = include_str!("../../runtime/platform.cuh");

/// Name of the header of the platform. Programs that include it get [`PLATFORM`].
const PLATFORM_NAME: &str = "warpset/platform.cuh";

/// Flags of the compiler. With `-O0`, `-O1` and `-O2`, on two busy cores, compiling all kernels of a bucket table of 8 words
/// takes 0.4 s, 0.7 s and 1.2 s, and a find-or-put of a million vectors takes 8.2 s, 2.5 s and 2.5 s.
const FLAGS: [&str; 10] = [
    "-O1",
    "-w",
    "-shared",
    "-fPIC",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-asynchronous-unwind-tables",
    "-fno-semantic-interposition",
    "-fno-strict-aliasing",
    "-Wl,-Bsymbolic",
];

/// A program and its headers.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub name: String,
    pub source: Vec<u8>,
    pub headers: Vec<(String, Vec<u8>)>,
}

/// Result of a compilation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Image(Vec<u8>),
    /// The program has errors.
    Errors,
    /// There is no compiler, or it does not work.
    Broken,
}

/// Name of the compiler: the value of `CXX`, or `c++`.
fn compiler() -> String {
    env::var("CXX").ok().filter(|name| !name.trim().is_empty()).unwrap_or_else(|| "c++".into())
}

fn command() -> Command {
    let compiler = compiler();
    let mut words = compiler.split_whitespace();
    let mut command = Command::new(words.next().expect("not blank"));
    command.args(words);
    command
}

/// Returns the compiler's version text. Each process asks the compiler only once.
fn compiler_version() -> Result<&'static str, String> {
    static VERSION: OnceLock<Result<String, String>> = OnceLock::new();
    let ask = || match command().arg("--version").output() {
        Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(output) => Err(format!("{} --version: {}", compiler(), output.status)),
        Err(error) => Err(format!("no C++ compiler {}: {error}", compiler())),
    };
    VERSION.get_or_init(ask).as_deref().map_err(Clone::clone)
}

fn is_clang() -> bool {
    compiler_version().is_ok_and(|version| version.contains("clang"))
}

/// Flags for messages of one line, without colours.
fn message_flags() -> [&'static str; 2] {
    if is_clang() {
        ["-fno-caret-diagnostics", "-fno-color-diagnostics"]
    } else {
        ["-fno-diagnostics-show-caret", "-fdiagnostics-color=never"]
    }
}

/// Temporary folder, which is removed when this value is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        // Relaxed: only the uniqueness of the number matters.
        let name = format!("warpset-nvrtc-{}-{}", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let folder = env::temp_dir().join(name);
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    fn write(&self, name: &str, text: &[u8]) -> io::Result<()> {
        let path = self.0.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, text)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Program {
    /// Compiles the program, or finds it in the cache. Also returns the log.
    pub(super) fn compile(&self, options: &Options, cache: Option<&Cache>) -> (Outcome, String) {
        match self.try_compile(options, cache) {
            Ok(done) => done,
            Err(what) => (Outcome::Broken, format!("nvrtc: error: {what}\n")),
        }
    }

    fn try_compile(&self, options: &Options, cache: Option<&Cache>) -> Result<(Outcome, String), String> {
        let version = compiler_version()?;
        let scratch = Scratch::new().map_err(|error| format!("a folder for the compiler: {error}"))?;
        let output = self.preprocess(&scratch, options).map_err(|error| format!("{}: {error}", compiler()))?;
        if !output.status.success() {
            return Ok((Outcome::Errors, self.log(&output.stderr)));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let translated = match translate(&text) {
            Ok(translated) => translated,
            Err(error) => return Ok((Outcome::Errors, self.finished(error))),
        };
        let flags = self.flags(options);
        let flag_texts = flags.iter().map(|flag| flag.as_bytes());
        // The key depends on the translated program, not on its source, because a change of `translate` alone also changes
        // objects.
        let key = digest([version.as_bytes(), translated.as_bytes()].into_iter().chain(flag_texts));
        if let Some(object) = cache.and_then(|cache| cache.get(key)) {
            return Ok((Outcome::Image(image_of(&object)), String::new()));
        }
        let compile = || {
            scratch.write("program.ii", translated.as_bytes())?;
            let mut command = command();
            command.args(&flags).args(["-x", "c++-cpp-output", "program.ii", "-o", "program.so"]).current_dir(&scratch.0).output()
        };
        let output = compile().map_err(|error| format!("{}: {error}", compiler()))?;
        if !output.status.success() {
            return Ok((Outcome::Errors, self.log(&output.stderr)));
        }
        let object = fs::read(scratch.0.join("program.so")).map_err(|error| format!("what was compiled: {error}"))?;
        if let Some(cache) = cache {
            // A cache that cannot be written is not an error: the next process compiles again.
            let _ = cache.put(key, &object);
        }
        Ok((Outcome::Image(image_of(&object)), self.log(&output.stderr)))
    }

    fn flags(&self, options: &Options) -> Vec<String> {
        let mut flags: Vec<String> = FLAGS.map(String::from).into();
        flags.push(format!("-std={}", options.standard));
        if cfg!(target_arch = "x86_64") {
            flags.push("-mcx16".into());
        }
        flags.extend(message_flags().map(String::from));
        if !is_clang() {
            // Modules must not share variables, and it must be possible to unload them.
            flags.push("-fno-gnu-unique".into());
        }
        flags
    }

    /// Runs the preprocessor. It finds only the program's own headers and the headers in folders that the options name.
    fn preprocess(&self, scratch: &Scratch, options: &Options) -> io::Result<Output> {
        scratch.write("words.h", WORDS.as_bytes())?;
        for (name, text) in &self.headers {
            let text = if name == PLATFORM_NAME { PLATFORM.as_bytes() } else { text };
            scratch.write(&format!("headers/{name}"), text)?;
        }
        let escaped = self.name.replace('\\', "\\\\").replace('"', "\\\"");
        let source = [format!("#line 1 \"{escaped}\"\n").as_bytes(), &self.source].concat();
        scratch.write("source/program.cu", &source)?;
        let mut command = command();
        command.args(["-E", "-w", "-nostdinc", "-nostdinc++", "-x", "c++"]).args(message_flags());
        command.arg(format!("-std={}", options.standard)).arg(format!("-DWARPSET_DEVICE_STACK_BYTES={STACK_BYTES}"));
        command.arg(format!("-D__CUDA_ARCH__={}", options.capability * 10));
        command.args(["-include", "words.h", "-I", "headers"]);
        // Add the folder in the program's name, where NVRTC also looks for headers.
        let folder = Path::new(&self.name).parent().filter(|folder| !folder.as_os_str().is_empty());
        let here = env::current_dir().unwrap_or_default();
        command.arg("-iquote").arg(here.join(folder.unwrap_or(Path::new("."))));
        command.args(options.preprocessor.iter().map(|option| match option.strip_prefix("-I") {
            Some(path) => format!("-I{}", here.join(path).display()),
            None => option.clone(),
        }));
        command.arg("source/program.cu").current_dir(&scratch.0).output()
    }

    /// Converts the compiler's messages to NVRTC's form.
    fn log(&self, messages: &[u8]) -> String {
        let text = String::from_utf8_lossy(messages);
        self.finished(text.lines().filter_map(message).collect())
    }

    /// Appends the number of errors to a log.
    fn finished(&self, mut log: String) -> String {
        let errors = log.lines().filter(|line| line.contains(": error: ") || line.contains(": catastrophic error: ")).count();
        if errors > 0 {
            let plural = if errors == 1 { "" } else { "s" };
            log.push_str(&format!("{errors} error{plural} detected in the compilation of \"{}\".\n", self.name));
        }
        log
    }
}

/// Converts `file:line:column: error: text` to `file(line): error: text`. `None` for lines that only say where a file was
/// included.
fn message(line: &str) -> Option<String> {
    for (kind, name) in [("fatal error", "catastrophic error"), ("error", "error"), ("warning", "warning"), ("note", "note")] {
        let Some((place, text)) = line.split_once(&format!(": {kind}: ")) else { continue };
        // A compiler that does not know the column omits it.
        let (before, last) = place.rsplit_once(':')?;
        let last = last.parse::<u32>().ok()?;
        let (file, number) = match before.rsplit_once(':').map(|(file, number)| (file, number.parse::<u32>())) {
            Some((file, Ok(number))) => (file, number),
            _ => (before, last),
        };
        let file = file.strip_prefix("headers/").unwrap_or(file);
        let text = match text.strip_suffix(": No such file or directory") {
            Some(missing) => format!("cannot open source file \"{missing}\""),
            None => text.to_owned(),
        };
        return Some(format!("{file}({number}): {name}: {text}\n"));
    }
    (line.contains(" error: ") || line.contains("undefined ")).then(|| format!("{line}\n"))
}
