//! Next-state functions compiled by the system's C++ compiler, and calls of them.

use super::{Choosing, WALK, generate, walks};
use crate::simulation::{Ended, Random, Walker};
use crate::successors::{Expansion, Interpreted, Scratch, Successors};
use anyhow::{Context, Result, bail, ensure};
use libloading::Library;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use warpset::CodeCache;
use warpset_model::checks::Violation;
use warpset_model::ir::Model;
use warpset_model::reduction::stubborn::Stubborn;

/// C++ text that calls the functions.
const EXPAND: &str = include_str!("expand.cpp");

/// Compilers to try, in this order, unless the environment variable `CXX` names one.
const COMPILERS: [&str; 3] = ["c++", "g++", "clang++"];

/// Expressions nest up to 500 operators, with up to two brackets for each (`ir::expression::MAX_DEPTH`). Clang accepts that depth
/// of brackets only with this option; no other compiler knows the option.
const BRACKETS_OF_CLANG: &str = "-fbracket-depth=1100";

/// Number of transitions from which on code is optimised less, which halves the compile time.
const MANY_TRANSITIONS: usize = 4096;

/// Interval at which a running compiler is checked for an end or a stop.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Successors by a model's next-state functions, compiled for this machine.
pub struct Compiled<'m> {
    /// Determines the violation of a state that the functions have found.
    interpreted: &'m Interpreted<'m>,
    expand: Expand,
    most_steps: usize,
    /// Words of memory that a thread needs.
    memory: usize,
    /// Tables of the model's network, and of a reduction.
    tables: Vec<u32>,
    /// Library that contains the functions.
    _library: Library,
}

type Expand = unsafe extern "C" fn(*const u32, *const u32, u64, *mut u32, *mut u32, u64, *mut u32, *mut Counts, *mut u64);

type Walk = unsafe extern "C" fn(*const u32, *mut u32, *mut Random, u64, *mut u32, *mut Walked);

/// `Walked` in expand.cpp.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Walked {
    steps: u64,
    overflows: u64,
    ended: u64,
}

/// `Counts` in expand.cpp.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    states: u64,
    rows: u64,
    deadlocks: u64,
    overflows: u64,
    violating: u64,
    deadlocked: u64,
    has_fault: u64,
}

impl<'m> Compiled<'m> {
    /// Generates and compiles the functions of a model. With `stubborn`, they take only the steps that `stubborn` keeps. Returns
    /// `None` if `is_stopped` returns true meanwhile; it is called many times a second.
    ///
    /// # Errors
    ///
    /// No compiler is found, or the compiler rejects the text; then the error contains its messages.
    pub fn unless(
        interpreted: &'m Interpreted<'m>,
        stubborn: Option<&Stubborn>,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Self>> {
        Self::with(interpreted, stubborn, optimisation(interpreted), cache(), is_stopped)
    }

    /// Compiles the functions. Nothing can stop it.
    #[cfg(test)]
    pub fn new(interpreted: &'m Interpreted<'m>) -> Result<Self> {
        Ok(Self::with(interpreted, None, "-O2", None, &|| false)?.expect("nobody stops it"))
    }

    /// Compiles the functions fast, without optimisation.
    #[cfg(test)]
    pub fn unoptimised(interpreted: &'m Interpreted<'m>) -> Result<Self> {
        Ok(Self::with(interpreted, None, "-O0", None, &|| false)?.expect("nobody stops it"))
    }

    /// Compiles the functions of a reduced search fast, without optimisation.
    #[cfg(test)]
    pub fn reduced(interpreted: &'m Interpreted<'m>, stubborn: &Stubborn) -> Result<Self> {
        Ok(Self::with(interpreted, Some(stubborn), "-O0", None, &|| false)?.expect("nobody stops it"))
    }

    fn with(
        interpreted: &'m Interpreted<'m>,
        stubborn: Option<&Stubborn>,
        optimisation: &'static str,
        cache: Option<CodeCache>,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Self>> {
        let functions = Functions { interpreted, stubborn, of_walks: false };
        let Some(library) = functions.library(optimisation, cache, is_stopped)? else { return Ok(None) };
        // SAFETY: the types match expand.cpp.
        let (expand, most_steps, memory) = unsafe {
            let memory = library.get::<unsafe extern "C" fn() -> u64>(b"explore_memory")?;
            (*library.get::<Expand>(b"explore_expand")?, most_steps(&library)?, memory() as usize)
        };
        let tables = super::tables(interpreted.interpreter.model(), stubborn.map(Choosing::by_threads));
        Ok(Some(Self { interpreted, expand, most_steps, memory, tables, _library: library }))
    }

    /// Expands the first of `states`: as many as surely fit a moderate number of rows, but at least one. Appends their successors
    /// to the expansion. The parents of these successors are numbered from `first` on.
    fn some(&self, states: &[u32], first: usize, memory: &mut [u32], expansion: &mut Expansion) -> Counts {
        let mut rows = self.most_steps.max(4 * states.len() / self.width());
        loop {
            let counts = self.some_in(rows, states, first, memory, expansion);
            // Firings of a net need room only if they are enabled, so how much room a state needs is known only afterwards.
            if counts.states > 0 || counts.has_fault != 0 {
                return counts;
            }
            rows *= 2;
        }
    }

    /// As `some`, with room for `rows` rows. For a net, these may be too few even for the first state.
    fn some_in(&self, rows: usize, states: &[u32], first: usize, memory: &mut [u32], expansion: &mut Expansion) -> Counts {
        assert!(memory.len() >= self.memory);
        let (width, before) = (self.width(), expansion.parents.len());
        // The function writes a row before it knows whether there is a step.
        let rows = 1 + rows;
        expansion.successors.resize((before + rows) * width, 0);
        expansion.parents.resize(before + rows, 0);
        let mut counts = Counts::default();
        let conditions = self.interpreted.checks.conditions.len();
        expansion.violating.resize(conditions, 0);
        // SAFETY: `states` has `states.len() / width` states of `width` words; there is room for `rows` successors after the
        // earlier ones; the tables belong to the compiled model; `memory` has as many words as the function needs, and
        // `violating` a number for each condition that was compiled.
        unsafe {
            let successors = expansion.successors.as_mut_ptr().add(before * width);
            let parents = expansion.parents.as_mut_ptr().add(before);
            (self.expand)(
                self.tables.as_ptr(),
                states.as_ptr(),
                (states.len() / width) as u64,
                successors,
                parents,
                rows as u64 - 1,
                memory.as_mut_ptr(),
                &mut counts,
                expansion.violating.as_mut_ptr(),
            );
        }
        let end = before + counts.rows as usize;
        expansion.successors.truncate(end * width);
        expansion.parents.truncate(end);
        expansion.parents[before..].iter_mut().for_each(|parent| *parent += first as u32);
        expansion.deadlocks += counts.deadlocks;
        expansion.overflows += counts.overflows;
        counts
    }

    /// Returns the violation that the interpreter finds in a state.
    fn look_at(&self, states: &[u32], number: usize) -> Option<Violation> {
        let mut expansion = Expansion::default();
        let state = &states[number * self.width()..][..self.width()];
        self.interpreted.expand(state, &mut Default::default(), &mut expansion);
        expansion.violation.map(|(_, violation)| violation)
    }
}

impl Successors for Compiled<'_> {
    fn width(&self) -> usize {
        self.interpreted.width()
    }

    fn expand(&self, states: &[u32], scratch: &mut Scratch, expansion: &mut Expansion) {
        scratch.memory.resize(self.memory, 0);
        let (width, mut done) = (self.width(), 0);
        while done * width < states.len() {
            let counts = self.some(&states[done * width..], done, &mut scratch.memory, expansion);
            let mut suspects = vec![counts.violating];
            if self.interpreted.checks.deadlocks {
                suspects.push(counts.deadlocked);
            }
            let first = suspects.into_iter().filter(|number| *number != u64::MAX).min();
            let faulty = (counts.has_fault != 0).then_some(counts.states);
            for number in first.into_iter().chain(faulty) {
                let number = done + number as usize;
                let violation = self.look_at(states, number).expect("the interpreter finds what compiled code does");
                expansion.violate(number, violation);
            }
            if faulty.is_some() {
                return;
            }
            done += counts.states as usize;
        }
    }
}

/// Random walks by a model's next-state functions, compiled for this machine.
pub struct CompiledWalks<'m> {
    model: &'m Model,
    walk: Walk,
    /// Words of memory that a thread needs: for the successors of a state and one more row, or for the transitions of a net.
    memory: usize,
    tables: Vec<u32>,
    /// Library that contains the function.
    _library: Library,
}

impl<'m> CompiledWalks<'m> {
    /// Generates and compiles the functions of a model. Returns `None` if `is_stopped` returns true meanwhile; it is called many
    /// times a second.
    ///
    /// # Errors
    ///
    /// As for [`Compiled::unless`].
    pub fn unless(interpreted: &Interpreted<'m>, is_stopped: &dyn Fn() -> bool) -> Result<Option<Self>> {
        Self::with(interpreted, optimisation(interpreted), cache(), is_stopped)
    }

    /// Compiles the functions fast, without optimisation.
    #[cfg(test)]
    pub fn unoptimised(interpreted: &Interpreted<'m>) -> Result<Self> {
        Ok(Self::with(interpreted, "-O0", None, &|| false)?.expect("nobody stops it"))
    }

    fn with(
        interpreted: &Interpreted<'m>,
        optimisation: &'static str,
        cache: Option<CodeCache>,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Self>> {
        let model = interpreted.interpreter.model();
        assert!(model.property.is_none(), "walks are without a property");
        let functions = Functions { interpreted, stubborn: None, of_walks: true };
        let Some(library) = functions.library(optimisation, cache, is_stopped)? else { return Ok(None) };
        // SAFETY: the type matches expand.cpp.
        let walk = unsafe { *library.get::<Walk>(b"explore_walk")? };
        let transitions = model.net.as_ref().map_or(0, |net| net.transitions.len());
        let memory = ((most_steps(&library)? + 1) * model.layout.words).max(transitions);
        Ok(Some(Self { model, walk, memory, tables: super::tables(model, None), _library: library }))
    }
}

impl Walker for CompiledWalks<'_> {
    /// Successors of a state, or the enabled transitions of a net.
    type Memory = Vec<u32>;

    fn walk(&self, state: &mut Vec<u32>, random: &mut Random, most: u64, rows: &mut Vec<u32>) -> (u64, u64, Ended) {
        rows.resize(self.memory, 0);
        assert!(state.len() == self.model.layout.words);
        let mut walked = Walked::default();
        // SAFETY: the state has the model's width; there is memory for the successors of a state and one more row, and for the
        // transitions of a net; the tables belong to the compiled model; the types match expand.cpp.
        unsafe {
            (self.walk)(self.tables.as_ptr(), state.as_mut_ptr(), random, most, rows.as_mut_ptr(), &mut walked);
        }
        let ended = match walked.ended {
            0 => Ended::Steps,
            1 => Ended::Deadlock,
            _ => Ended::Violation,
        };
        (walked.steps, walked.overflows, ended)
    }
}

/// Jump threading takes GCC most of the time in the functions that choose stubborn sets (at.4: 2.7 s, 0.56 s without it). The
/// search takes a little longer without it (one thread, means of two: at.4 3.5 and 3.7 s, elevator2.3 4.1 and 4.6 s). Full
/// searches keep it (lamport.6: 2.3 s, 2.9 s without).
const WITHOUT_THREADING: &str = "-fno-thread-jumps";

/// Compiled functions that are kept on disk, in the folder of compiled kernels: up to 64 MiB. Functions of models of BEEM and of
/// nets take 15 to 70 KB for each model.
fn cache() -> Option<CodeCache> {
    CodeCache::of_environment(None, ".functions", 64 << 20)
}

fn optimisation(interpreted: &Interpreted) -> &'static str {
    if interpreted.interpreter.model().transitions.len() >= MANY_TRANSITIONS { "-O1" } else { "-O2" }
}

/// The functions to compile: those that expand states, or those of walks.
struct Functions<'a, 'm> {
    interpreted: &'a Interpreted<'m>,
    stubborn: Option<&'a Stubborn<'a>>,
    of_walks: bool,
}

impl Functions<'_, '_> {
    fn text(&self) -> Result<String> {
        let model = self.interpreted.interpreter.model();
        super::ensure_fits(model)?;
        let conditions: Vec<_> = self.interpreted.checks.conditions.iter().map(|condition| &condition.must_hold).collect();
        let of_walks = if self.of_walks { walks(model) } else { String::new() };
        Ok(generate(model, &conditions, self.stubborn.map(Choosing::by_threads)) + WALK + &of_walks)
    }

    /// Loads the functions that `cache` keeps. If it keeps none, compiles them and puts them into the cache. Returns `None` if
    /// the compiler was stopped.
    fn library(
        &self,
        optimisation: &'static str,
        cache: Option<CodeCache>,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Option<Library>> {
        let text = self.text()?;
        let words = self.interpreted.interpreter.model().layout.words;
        let compiler = Compiler::of_system(optimisation, self.stubborn.map(|_| WITHOUT_THREADING))?;
        let folder = tempfile::tempdir().context("no temporary folder for generated code")?;
        let key = compiler.key(&text);
        // A copy of the kept file is loaded: whatever happens to that file later, the functions stay as they are.
        if let Some(library) = cache.as_ref().and_then(|cache| cache.find(&key)) {
            let path = folder.path().join("kept.so");
            if let Ok(library) = std::fs::write(&path, library).map_err(Into::into).and_then(|()| load(&path, words)) {
                return Ok(Some(library));
            }
        }
        let Some(compiled) = compiler.compile(folder.path(), &text, is_stopped)? else { return Ok(None) };
        let library = load(&compiled, words)?;
        if let (Some(cache), Ok(code)) = (cache, std::fs::read(&compiled)) {
            cache.keep(&key, &code);
        }
        Ok(Some(library))
    }
}

/// Loads functions of a model whose states have this many words.
fn load(library: &Path, words: usize) -> Result<Library> {
    // SAFETY: the library was compiled from expand.cpp, just now or by this user before, and does nothing when it is loaded.
    let library = unsafe { Library::new(library) }.context("loading compiled next-state functions")?;
    // SAFETY: the type matches expand.cpp.
    let width = unsafe { library.get::<unsafe extern "C" fn() -> u32>(b"explore_width")?() } as usize;
    ensure!(width == words, "states of {words} words were compiled as of {width}");
    Ok(library)
}

/// Maximum number of steps of a state, without the steps of a net.
fn most_steps(library: &Library) -> Result<usize> {
    // SAFETY: the type matches expand.cpp.
    Ok(unsafe { library.get::<unsafe extern "C" fn() -> u64>(b"explore_most_steps")?() } as usize)
}

/// A compiler of this system, and its options.
struct Compiler {
    name: OsString,
    /// Output of its option `--version`.
    version: Vec<u8>,
    options: Vec<&'static str>,
}

impl Compiler {
    /// Finds the first compiler that exists. Its options contain this optimisation, and `of_gcc` unless it is Clang.
    ///
    /// # Errors
    ///
    /// No compiler exists.
    fn of_system(optimisation: &'static str, of_gcc: Option<&'static str>) -> Result<Self> {
        let named = std::env::var_os("CXX").filter(|name| !name.is_empty());
        let names = named.map_or(COMPILERS.map(OsString::from).to_vec(), |compiler| vec![compiler]);
        for name in &names {
            let Ok(about) = Command::new(name).arg("--version").output() else { continue };
            let mut options =
                vec!["-std=c++17", optimisation, "-shared", "-fPIC", "-fvisibility=default", "-DMODEL=\"model.cuh\""];
            options.extend(counts_bits().then_some("-mpopcnt"));
            if String::from_utf8_lossy(&about.stdout).contains("clang") {
                options.push(BRACKETS_OF_CLANG);
            } else {
                options.extend(of_gcc);
            }
            return Ok(Self { name: name.clone(), version: about.stdout, options });
        }
        let tried = names.join(OsStr::new(", "));
        bail!("no C++ compiler was found (tried: {}); set the variable CXX to another one", tried.display())
    }

    /// Returns everything on which this compiler's output for a text depends, as parts with their lengths.
    fn key(&self, text: &str) -> Vec<u8> {
        let options = self.options.iter().map(|option| option.as_bytes());
        let machine = [std::env::consts::OS, std::env::consts::ARCH].map(str::as_bytes);
        let compiler = [self.name.as_encoded_bytes(), &self.version];
        let parts = [text.as_bytes(), EXPAND.as_bytes()].into_iter().chain(machine).chain(compiler).chain(options);
        parts.flat_map(|part| [&(part.len() as u64).to_le_bytes()[..], part].concat()).collect()
    }

    /// Compiles the functions and returns the path of their library, in the folder; `None` if the compiler was stopped.
    ///
    /// # Errors
    ///
    /// The compiler rejects the text: the error contains its messages.
    fn compile(&self, folder: &Path, text: &str, is_stopped: &dyn Fn() -> bool) -> Result<Option<PathBuf>> {
        let [source, library, messages] = ["expand.cpp", "model.so", "messages"].map(|name| folder.join(name));
        std::fs::write(folder.join("model.cuh"), text)?;
        std::fs::write(&source, EXPAND)?;
        let mut command = Command::new(&self.name);
        // Temporary files of a stopped compiler are removed with the folder.
        command.args(&self.options).arg("-o").args([&library, &source]).env("TMPDIR", folder);
        let Some(status) = run(&mut command, &messages, is_stopped)? else { return Ok(None) };
        if status.success() {
            return Ok(Some(library));
        }
        let messages = std::fs::read(messages)?;
        bail!(
            "{} did not compile the generated next-state functions:\n{}",
            self.name.display(),
            String::from_utf8_lossy(&messages)
        )
    }
}

/// Runs the command with its messages in a file, and returns its exit status; `None` if it was stopped. Programs that a stopped
/// command has started end with it: `c++` starts the compiler proper, and the assembler.
fn run(command: &mut Command, messages: &Path, is_stopped: &dyn Fn() -> bool) -> Result<Option<ExitStatus>> {
    // Signals that a terminal sends to this program's group do not reach the command. On Ctrl-C `is_stopped` becomes true.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(messages)?).spawn()?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if is_stopped() {
            kill(&mut child);
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Kills a process and, if it leads a group, the group. Does nothing if it has ended.
fn kill(child: &mut Child) {
    #[cfg(unix)]
    let _ = rustix::process::kill_process_group(rustix::process::Pid::from_child(child), rustix::process::Signal::KILL);
    let _ = child.kill();
}

/// Whether this machine has an instruction that counts bits and that compilers use only on request.
#[cfg(target_arch = "x86_64")]
fn counts_bits() -> bool {
    std::arch::is_x86_feature_detected!("popcnt")
}

#[cfg(not(target_arch = "x86_64"))]
fn counts_bits() -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::io::Read;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    #[test]
    fn keys_have_all_that_functions_depend_on() {
        let key = |name: &str, version: &[u8], options: &[&'static str], text: &str| {
            Compiler { name: name.into(), version: version.into(), options: options.into() }.key(text)
        };
        let keys = BTreeSet::from([
            key("c++", b"14", &["-O2"], "a"),
            key("g++", b"14", &["-O2"], "a"),
            key("c++", b"15", &["-O2"], "a"),
            key("c++", b"14", &["-O1"], "a"),
            key("c++", b"14", &["-O2", ""], "a"),
            key("c++", b"14", &["-O", "2"], "a"),
            key("c++1", b"4", &["-O2"], "a"),
            key("c++", b"14", &["-O2"], "b"),
        ]);
        assert_eq!(keys.len(), 8);
        assert!(keys.contains(&key("c++", b"14", &["-O2"], "a")));
    }

    /// The shell starts another shell, which opens a pipe and would write to it much later.
    #[test]
    fn a_stopped_compiler_leaves_nothing_that_runs() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let has_begun = Arc::new(AtomicBool::new(false));
        // No scope waits for this thread: the pipe may never be opened if the test fails.
        let written = std::thread::spawn({
            let (pipe, has_begun) = (pipe.clone(), has_begun.clone());
            move || {
                // `open` returns once the other shell opens the pipe. Reading ends once no process has the pipe open.
                let mut reader = File::open(&pipe).unwrap();
                has_begun.store(true, Relaxed);
                let mut text = String::new();
                reader.read_to_string(&mut text).unwrap();
                text
            }
        });
        let mut command = Command::new("sh");
        command.args(["-c", "(sleep 20; echo ran on) >\"$0\" & wait"]).arg(&pipe);
        let status = run(&mut command, &folder.path().join("messages"), &|| has_begun.load(Relaxed)).unwrap();
        assert!(status.is_none(), "{status:?}");
        assert_eq!(written.join().unwrap(), "");
    }
}
