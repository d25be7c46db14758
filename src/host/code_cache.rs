//! Compiled code, kept on disk between processes: kernels of GPUs, and functions that a program has compiled for the host.
//!
//! A file holds one piece of code, under a *key*: the bytes of everything that the code depends on. The file contains the key,
//! which is compared byte by byte when the file is read. So no code is mistaken for another, whatever the digests of their keys.
//!
//! ```text
//! MAGIC | bytes of the key, u64 | bytes of the code, u64 | digest of the two numbers, the key and the code, u128 | key | code
//! ```
//!
//! - *Concurrent processes*: a file is written under a name of its own and then renamed, so that readers see whole files.
//!   Processes that write the same file at once write code of the same key.
//! - *Damage*: a file that is not exactly as above is ignored and written again. So files need not be flushed to the disk before
//!   they are renamed: damage by a crash is noticed.
//! - *Other users*: a file is read only if no other user can have written it. The folder and its files must belong to the user of
//!   the process, must not be writable by others, and must not be links. A user must not choose a folder inside one in which
//!   others may rename files. (On Windows this is not checked, because the access list of the default folder admits only its
//!   user.)
//! - *Bounded size*: after each write, files with this ending are removed, those unused for longest first, until the others have
//!   at most `max_bytes`. Unfinished files of killed processes are removed, too. Files with other names are left alone.
//!
//! If anything fails here, the code is compiled, and the failure is not reported.

use super::replace;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// An unfinished file of this age or older was left by a process that was killed.
const UNFINISHED: Duration = Duration::from_secs(3600);

const MAGIC: &[u8; 8] = b"warpset1";
const HEAD_BYTES: usize = 8 + 8 + 8 + 16;

/// Ending of the names of files that are being written.
const WRITTEN: &str = ".unfinished";

/// The files of a folder of compiled code whose names have one ending.
pub struct CodeCache {
    folder: PathBuf,
    /// Ending of the names, with the dot.
    ending: &'static str,
    /// Largest total size of all files, in bytes.
    max_bytes: u64,
}

impl CodeCache {
    /// The cache in the folder `chosen`, or else in the folder that the environment names, or else in one in the user's cache
    /// folder. `None` if the environment switches caches off, or names no folder.
    pub fn of_environment(chosen: Option<PathBuf>, ending: &'static str, max_bytes: u64) -> Option<Self> {
        Some(Self { folder: folder(chosen, |name| std::env::var_os(name))?, ending, max_bytes })
    }

    /// Returns the code of a key, as it was kept.
    pub fn find(&self, key: &[u8]) -> Option<Vec<u8>> {
        let file = self.file(key);
        if !is_own_folder(&self.folder) {
            return None;
        }
        let metadata = fs::symlink_metadata(&file).ok()?;
        if !metadata.is_file() || !is_own(&metadata) || metadata.len() > self.max_bytes {
            return None;
        }
        let code = code_in(fs::read(&file).ok()?, key)?;
        // Marks the file as used. If that fails, it may be removed early.
        let _ = File::open(&file).and_then(|file| file.set_modified(SystemTime::now()));
        Some(code)
    }

    /// Keeps the code of a key. An error leaves everything as it was.
    pub fn keep(&self, key: &[u8], code: &[u8]) {
        let _ = self.write(&self.file(key), key, code);
    }

    fn file(&self, key: &[u8]) -> PathBuf {
        self.folder.join(format!("{:032x}{}", digest([key]), self.ending))
    }

    fn write(&self, file: &Path, key: &[u8], code: &[u8]) -> io::Result<()> {
        /// The next number for an unfinished file of this process.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let content = content(key, code);
        if content.len() as u64 > self.max_bytes {
            return Ok(());
        }
        create_folder(&self.folder)?;
        if !is_own_folder(&self.folder) {
            return Ok(());
        }
        // The time distinguishes processes with the same PID, on machines or in containers that share the folder. Relaxed: only
        // the uniqueness of numbers matters.
        let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let unfinished = file.with_extension(format!("{process}-{number}-{now}{WRITTEN}"));
        let written =
            create_file(&unfinished).and_then(|mut new| new.write_all(&content)).and_then(|()| replace(&unfinished, file));
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written.and_then(|()| self.trim())
    }

    /// Removes files, those unused for longest first, until the others have at most `max_bytes`. Other processes may do so at the
    /// same time.
    fn trim(&self) -> io::Result<()> {
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name());
            let Ok(metadata) = entry.metadata() else { continue };
            let (Some(name), Ok(used), true) = (name.to_str(), metadata.modified(), metadata.is_file()) else { continue };
            let ours = name.split('.').next().is_some_and(|digest| digest.len() == 32 && is_hexadecimal(digest));
            if ours && name.ends_with(self.ending) {
                kept.push((used, metadata.len(), path));
            } else if ours && name.ends_with(WRITTEN) && used.elapsed().is_ok_and(|age| age > UNFINISHED) {
                let _ = fs::remove_file(path);
            }
        }
        kept.sort_unstable();
        let mut bytes: u64 = kept.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, less, path) in kept {
            if bytes <= self.max_bytes {
                break;
            }
            let _ = fs::remove_file(path);
            bytes -= less;
        }
        Ok(())
    }
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The folder `chosen`, or one according to the variables of an environment. `None` if caches are off or the folder is unknown.
fn folder(chosen: Option<PathBuf>, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let named = |name: &str| variable(name).filter(|value| !value.is_empty());
    if named("WARPSET_CACHE").is_some_and(|value| value == "off" || value == "0") {
        return None;
    }
    if let Some(folder) = chosen.or_else(|| named("WARPSET_CACHE_DIR").map(PathBuf::from)) {
        return Some(folder);
    }
    let absolute = |name: &str| named(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    if cfg!(windows) {
        return absolute("LOCALAPPDATA").map(|folder| folder.join("warpset").join("cache"));
    }
    let folder = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
    Some(folder.join("warpset"))
}

fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

fn create_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.write(true).create_new(true).open(path)
}

/// Whether the folder exists, is not a link, and only this user can write to it.
fn is_own_folder(folder: &Path) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_dir() && is_own(&metadata))
}

#[cfg(unix)]
fn is_own(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    // SAFETY: the function has no arguments, and always succeeds.
    let user = unsafe { libc::geteuid() };
    metadata.uid() == user && metadata.mode() & 0o022 == 0
}

#[cfg(not(unix))]
fn is_own(_: &Metadata) -> bool {
    true
}

/// FNV-1a of 128 bits (Fowler, Noll, Vo), of parts one after another with their lengths. It does not resist deliberate
/// collisions, and need not: it finds files and notices damage, and only the user can write the files.
pub(crate) fn digest<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = (1 << 88) + 0x13b;
    let add =
        |digest: u128, bytes: &[u8]| bytes.iter().fold(digest, |digest, byte| (digest ^ u128::from(*byte)).wrapping_mul(PRIME));
    parts.into_iter().fold(BASIS, |digest, part| add(add(digest, part), &(part.len() as u64).to_le_bytes()))
}

/// Content of a file.
fn content(key: &[u8], code: &[u8]) -> Vec<u8> {
    let digest = digest([key, code]).to_le_bytes();
    let lengths = [key.len(), code.len()].map(|length| (length as u64).to_le_bytes());
    [MAGIC, &lengths[0], &lengths[1], &digest[..], key, code].concat()
}

/// Returns the code in a file, if the file is one for this key.
fn code_in(mut content: Vec<u8>, key: &[u8]) -> Option<Vec<u8>> {
    let code_at = HEAD_BYTES + key.len();
    let expected = self::content(key, content.get(code_at..)?);
    if content != expected {
        return None;
    }
    content.drain(..code_at);
    Some(content)
}

#[cfg(test)]
pub(crate) mod tests {
    //! Keeps these promises of `src/docs/host_batches.md`, for any compiled code:
    //!
    //! - Code is compiled once, and found by the next process (also `nvrtc.rs`).
    //! - Damaged files are noticed, and written again.
    //! - No other user can put code there; links are not followed.
    //! - Processes may share the folder (tested by threads).
    //! - The size of the folder is bounded, and other files in it are left alone.
    //! - A folder that cannot be written to is not an error.
    //! - The folder has the documented place, and can be switched off.

    use super::*;
    use std::thread;

    const KEPT: &str = ".kernels";

    /// A folder that is removed at the end.
    pub(crate) struct Scratch(PathBuf);

    impl Scratch {
        pub(crate) fn new() -> Self {
            static NEXT: AtomicU64 = AtomicU64::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let folder = std::env::temp_dir().join(format!("warpset-test-{}-{number}", std::process::id()));
            let _ = fs::remove_dir_all(&folder);
            create_folder(&folder).unwrap();
            Self(folder)
        }

        /// Path for a file or folder of this name.
        pub(crate) fn file(&self, name: &str) -> PathBuf {
            self.0.join(name)
        }

        pub(crate) fn cache(&self) -> CodeCache {
            CodeCache { folder: self.file("kernels"), ending: KEPT, max_bytes: 1 << 24 }
        }

        /// The names of files in the cache's folder.
        pub(crate) fn files(&self) -> Vec<String> {
            let entries = fs::read_dir(self.file("kernels")).map(|entries| entries.collect::<Vec<_>>()).unwrap_or_default();
            let mut names: Vec<_> = entries.into_iter().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn code_of(key: &str) -> Vec<u8> {
        key.bytes().cycle().take(5000).collect()
    }

    /// Looks for code, and makes and keeps it if there is none. Returns whether it has made the code.
    fn made(cache: &CodeCache, key: &str) -> bool {
        match cache.find(key.as_bytes()) {
            Some(found) => assert!(found == code_of(key), "another code than that of {key}"),
            None => {
                cache.keep(key.as_bytes(), &code_of(key));
                return true;
            }
        }
        false
    }

    fn file_of(cache: &CodeCache, key: &str) -> PathBuf {
        cache.file(key.as_bytes())
    }

    fn last_used(file: &Path, ago: Duration) {
        File::options().write(true).open(file).unwrap().set_modified(SystemTime::now() - ago).unwrap();
    }

    #[test]
    fn what_is_kept_is_found() {
        let scratch = Scratch::new();
        let cache = scratch.cache();
        assert!(made(&cache, "one") && made(&cache, "two"));
        assert!(!made(&cache, "one") && !made(&cache, "two"));
        assert!(!made(&scratch.cache(), "one"), "another process does not find it");
        assert_eq!(scratch.files().len(), 2);
        assert!(scratch.files().iter().all(|name| name.len() == 32 + KEPT.len() && name.ends_with(KEPT)));
        // Keys are bytes, and the whole of them counts.
        assert!(cache.find(b"one\0").is_none() && cache.find(b"").is_none());
    }

    #[test]
    fn damaged_files_are_made_anew() {
        let scratch = Scratch::new();
        let cache = scratch.cache();
        assert!(made(&cache, "key"));
        let file = file_of(&cache, "key");
        let whole = fs::read(&file).unwrap();
        let damaged_by = |damage: &dyn Fn(&mut Vec<u8>), about: &str| {
            let mut content = whole.clone();
            damage(&mut content);
            fs::write(&file, content).unwrap();
            assert!(made(&cache, "key"), "not noticed: {about}");
            assert!(fs::read(&file).unwrap() == whole, "not repaired: {about}");
        };
        for at in (0..HEAD_BYTES + 3).chain((HEAD_BYTES + 3..whole.len()).step_by(97)).chain([whole.len() - 1]) {
            damaged_by(&|content| content[at] ^= 0x10, &format!("byte {at} is another"));
            damaged_by(&|content| content.truncate(at), &format!("it ends after {at} bytes"));
        }
        damaged_by(&|content| content.push(0), "it has a byte more");
        damaged_by(&|content| content.swap(HEAD_BYTES + 100, HEAD_BYTES + 101), "two bytes are exchanged");
    }

    /// A file is ignored if it holds another key, as if two keys had the same digest.
    #[test]
    fn files_of_other_keys_are_not_taken() {
        let scratch = Scratch::new();
        let cache = scratch.cache();
        assert!(made(&cache, "one"));
        fs::copy(file_of(&cache, "one"), file_of(&cache, "two")).unwrap();
        assert!(made(&cache, "two"));
        assert!(!made(&cache, "two") && !made(&cache, "one"));
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_can_put_kernels_there() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let scratch = Scratch::new();
        let cache = scratch.cache();
        assert!(made(&cache, "key"));
        let file = file_of(&cache, "key");
        assert_eq!(fs::metadata(&cache.folder).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);

        for shared in [0o770, 0o702] {
            mode(&cache.folder, shared);
            assert!(made(&cache, "key") && made(&cache, "other"), "a folder of mode {shared:o} is read");
            mode(&cache.folder, 0o700);
            assert_eq!(scratch.files().len(), 1, "a folder of mode {shared:o} is written to");
        }
        for shared in [0o660, 0o602] {
            mode(&file, shared);
            assert!(made(&cache, "key"), "a file of mode {shared:o} is read");
            assert!(!made(&cache, "key"), "a file of mode {shared:o} is not replaced");
        }

        // Links are not followed, not even to a right file or folder.
        let elsewhere = scratch.0.join("elsewhere");
        fs::rename(&file, &elsewhere).unwrap();
        symlink(&elsewhere, &file).unwrap();
        assert!(made(&cache, "key"), "a link to a file is followed");
        assert!(fs::symlink_metadata(&file).unwrap().is_file());
        assert!(!made(&cache, "key"));
        symlink(&cache.folder, scratch.0.join("link")).unwrap();
        let linked = CodeCache { folder: scratch.0.join("link"), ..scratch.cache() };
        assert!(made(&linked, "key") && made(&linked, "more"), "a link to a folder is followed");
        assert_eq!(scratch.files().len(), 1);

        // Only root can give files away.
        if chown(&file, Some(12345), None).is_ok() {
            assert!(made(&cache, "key"), "another user's file is read");
            assert!(!made(&cache, "key"));
            chown(&cache.folder, Some(12345), None).unwrap();
            assert!(made(&cache, "key") && made(&cache, "other"), "another user's folder is read");
            assert_eq!(scratch.files().len(), 1);
        } else {
            println!("not tested as root: files of others");
        }
    }

    #[test]
    fn concurrent_writers_and_readers() {
        let scratch = Scratch::new();
        // Large enough for most files, but not for all, so that files are removed during the test.
        let cache = CodeCache { max_bytes: 100_000, ..scratch.cache() };
        thread::scope(|scope| {
            for thread in 0..8 {
                let cache = &cache;
                scope.spawn(move || {
                    for at in 0..200 {
                        made(cache, &format!("key {}", (thread * 5 + at * 7) % 23));
                    }
                });
            }
        });
        assert!(scratch.files().iter().all(|name| name.ends_with(KEPT)), "unfinished ones are left: {:?}", scratch.files());
        let bytes: u64 = scratch.files().iter().map(|name| fs::metadata(cache.folder.join(name)).unwrap().len()).sum();
        assert!(bytes <= cache.max_bytes + 8 * 6000, "{bytes}");
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let scratch = Scratch::new();
        let ages: Vec<u64> = (0..20).map(|at| 100 + at * 7 % 20 * 10).collect();
        let key = |age: u64| format!("used {age} s ago");
        for age in &ages {
            assert!(made(&scratch.cache(), &key(*age)));
            last_used(&file_of(&scratch.cache(), &key(*age)), Duration::from_secs(*age));
        }
        let cache = CodeCache { max_bytes: 10 * 5100, ..scratch.cache() };
        assert!(!made(&cache, &key(290))); // the oldest, which is thereby the last one used
        let others = ["notes.txt", "0123.kernels", "0123456789abcdef0123456789abcdef.txt"];
        let digest = "0123456789abcdef0123456789abcdef";
        let (left, written) = (format!("{digest}.1-2-3{WRITTEN}"), format!("{digest}.4-5-6{WRITTEN}"));
        for name in others.into_iter().chain([&*left, &*written]) {
            fs::write(cache.folder.join(name), [0; 9000]).unwrap();
            last_used(&cache.folder.join(name), Duration::from_secs(if name == written { 60 } else { 4000 }));
        }

        assert!(made(&cache, "newest"));
        let is_there = |key: &str| file_of(&cache, key).exists();
        assert!(is_there("newest"));
        let mut left_ages: Vec<u64> = ages.into_iter().filter(|age| is_there(&key(*age))).collect();
        left_ages.sort();
        assert_eq!(left_ages, [100, 110, 120, 130, 140, 150, 160, 170, 290]);
        let is_left = |name: &str| cache.folder.join(name).exists();
        assert!(others.into_iter().all(is_left), "another user's files are removed");
        assert!(is_left(&written) && !is_left(&left));

        cache.keep(b"too large", &vec![1; cache.max_bytes as usize]);
        assert!(!is_there("too large") && is_there("newest"));
        // A file with another ending is neither found nor counted.
        let of_functions = CodeCache { ending: ".functions", ..scratch.cache() };
        assert!(of_functions.find(b"newest").is_none());
        assert!(made(&CodeCache { max_bytes: 5100, ..of_functions }, "a function") && is_there("newest"));
    }

    #[test]
    fn folders_that_cannot_be_written() {
        let scratch = Scratch::new();
        fs::write(scratch.0.join("file"), "").unwrap();
        for folder in ["file", "file/kernels"] {
            let cache = CodeCache { folder: scratch.0.join(folder), ..scratch.cache() };
            assert!(made(&cache, "key") && made(&cache, "key"));
        }
        // A file that cannot be replaced: a folder with something in it has its name.
        let cache = scratch.cache();
        fs::create_dir_all(file_of(&cache, "key").join("in it")).unwrap();
        #[cfg(unix)]
        fs::set_permissions(&cache.folder, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        assert!(made(&cache, "key") && made(&cache, "key"));
        assert_eq!(scratch.files().len(), 1, "an unfinished file is left");
        // A folder that can only be read. (Root can also write to it.)
        #[cfg(unix)]
        {
            assert!(made(&cache, "kept"));
            fs::set_permissions(&cache.folder, std::os::unix::fs::PermissionsExt::from_mode(0o500)).unwrap();
            assert!(!made(&cache, "kept") && made(&cache, "more"));
            fs::set_permissions(&cache.folder, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        }
    }

    #[cfg(not(windows))]
    #[test]
    fn where_code_is_kept() {
        let folder = |chosen: Option<&str>, variables: &[(&str, &str)]| {
            let value = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
            folder(chosen.map(PathBuf::from), value).map(|folder| folder.to_str().unwrap().to_owned())
        };
        let (home, xdg, named) = (("HOME", "/home/u"), ("XDG_CACHE_HOME", "/cache"), ("WARPSET_CACHE_DIR", "/named"));
        let (chosen, is) = (Some("/chosen"), |folder: &str| Some(folder.to_owned()));
        assert_eq!(folder(None, &[home]), is("/home/u/.cache/warpset"));
        assert_eq!(folder(None, &[home, ("XDG_CACHE_HOME", "")]), is("/home/u/.cache/warpset"));
        assert_eq!(folder(None, &[home, ("XDG_CACHE_HOME", "relative")]), is("/home/u/.cache/warpset"));
        assert_eq!(folder(None, &[home, xdg]), is("/cache/warpset"));
        assert_eq!(folder(None, &[home, xdg, ("WARPSET_CACHE_DIR", "")]), is("/cache/warpset"));
        assert_eq!(folder(None, &[home, xdg, named]), is("/named"));
        assert_eq!(folder(None, &[("HOME", "relative")]), None);
        assert_eq!(folder(None, &[]), None);
        assert_eq!(folder(chosen, &[home, xdg, named]), is("/chosen"));
        for value in ["off", "0"] {
            assert_eq!(folder(None, &[home, xdg, named, ("WARPSET_CACHE", value)]), None);
            assert_eq!(folder(chosen, &[("WARPSET_CACHE", value)]), None);
        }
        assert_eq!(folder(None, &[named, ("WARPSET_CACHE", "on")]), is("/named"));
    }

    #[test]
    fn digests_are_those_of_fnv_1a() {
        // "a", and its length in eight bytes.
        let mut expected = 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964_u128;
        for byte in 1u64.to_le_bytes() {
            expected = (expected ^ u128::from(byte)).wrapping_mul((1 << 88) + 0x13b);
        }
        assert_eq!(digest([&b"a"[..]]), expected);
        assert_ne!(digest([&b"ab"[..], b"c"]), digest([&b"a"[..], b"bc"]));
    }
}
