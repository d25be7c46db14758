//! Compiled next-state functions, kept on disk: the next search of a model does not wait for a compiler.
//!
//! A file is a shared library, followed by the SHA-256 of its key and its bytes. The key is the SHA-256 of all that the library
//! depends on, and the file's name. So functions of another model, and those of another compiler or option, have another name,
//! and are not used under this one, either. A copy of the library is loaded: whatever happens to the file later, the loaded
//! functions stay as they are.
//!
//! - *Concurrent processes*: a file is written under a name of its own and then renamed, so that readers see whole files.
//!   Processes that write the same file at once write functions of the same text.
//! - *Damage*: a file that does not have the SHA-256 of its key and its bytes is ignored and written again. So files need not
//!   be flushed to the disk before they are renamed.
//! - *Other users*: a library is code, so it is loaded only if no other user can have written it. The folder and its files must
//!   belong to the user of the process, must not be writable by others, and must not be links. A user must not name a folder
//!   inside one in which others may rename files. (On Windows nothing is checked, because the access list of the default folder
//!   admits only its user.)
//! - *Bounded*: after each write, the files that were not used for longest are removed, down to `MOST_BYTES`, and so are
//!   unfinished files of killed processes. Files with other names are left alone: the folder is also that of compiled kernels.
//!
//! If anything fails here, the functions are compiled, and the failure is not reported.
//!
//! The library keeps kernels by the same rules (`src/backend/cuda/cache.rs`). Its code is not used here: it is private, it exists
//! with the feature `cuda` alone, and its files contain whole keys, which are texts of kernels.

use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Largest size of all files together. Those of models of BEEM and of nets have 15 to 70 KB each.
const MOST_BYTES: u64 = 64 << 20;

/// An unfinished file of this age was left by a process that was killed.
const UNFINISHED_FOR: Duration = Duration::from_secs(3600);

/// How names of files end: of a kept library, and of one that is being written.
const KEPT: &str = ".functions";
const UNFINISHED: &str = ".functions-unfinished";

const SUM_BYTES: usize = 32;

/// A folder of libraries.
pub struct Kept {
    folder: PathBuf,
    most_bytes: u64,
}

/// Stands for all that a library depends on.
pub struct Key(String);

impl Key {
    /// The key of these parts, in this order.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut sum = Sha256::new();
        for part in parts {
            // With their lengths, other parts never give the same bytes.
            sum.update((part.len() as u64).to_le_bytes());
            sum.update(part);
        }
        Self(sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// SHA-256 of the key, whose length is fixed, and a library.
    fn sum_with(&self, library: &[u8]) -> [u8; SUM_BYTES] {
        Sha256::new().chain_update(&self.0).chain_update(library).finalize().into()
    }
}

impl Kept {
    /// The folder that the environment names, or else one in the user's cache folder. `None` if nothing is kept.
    pub fn of_environment() -> Option<Self> {
        Some(Self { folder: folder(|name| std::env::var_os(name))?, most_bytes: MOST_BYTES })
    }

    /// Bytes of the library with this key: what was kept for it, byte by byte.
    pub fn find(&self, key: &Key) -> Option<Vec<u8>> {
        let path = self.path(key);
        if !is_own(&self.folder, Metadata::is_dir) || !is_own(&path, Metadata::is_file) {
            return None;
        }
        let mut content = fs::read(&path).ok()?;
        let (library, sum) = content.split_last_chunk::<SUM_BYTES>()?;
        if key.sum_with(library)[..] != sum[..] {
            return None;
        }
        // Marks the file as used. If that fails, it may be removed early.
        let _ = File::options().write(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        content.truncate(content.len() - SUM_BYTES);
        Some(content)
    }

    /// Keeps a copy of a library.
    pub fn keep(&self, key: &Key, library: &Path) -> io::Result<()> {
        let mut content = fs::read(library)?;
        let sum = key.sum_with(&content);
        content.extend_from_slice(&sum);
        if content.len() as u64 > self.most_bytes {
            return Ok(());
        }
        create_folder(&self.folder)?;
        if !is_own(&self.folder, Metadata::is_dir) {
            return Ok(());
        }
        let mut unfinished = tempfile::Builder::new().prefix(&key.0).suffix(UNFINISHED).tempfile_in(&self.folder)?;
        unfinished.write_all(&content)?;
        if !is_replaceable(&self.path(key)) {
            return Ok(());
        }
        unfinished.persist(self.path(key))?;
        self.trim()
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.folder.join(format!("{}{KEPT}", key.0))
    }

    /// Removes the files that were not used for longest, down to `most_bytes`. Other processes may do so at the same time.
    fn trim(&self) -> io::Result<()> {
        let mut kept = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name());
            let Ok(metadata) = entry.metadata() else { continue };
            let (Some(name), Ok(used), true) = (name.to_str(), metadata.modified(), metadata.is_file()) else { continue };
            let Some(rest) = behind_a_key(name) else { continue };
            if rest == KEPT {
                kept.push((used, metadata.len(), path));
            } else if rest.ends_with(UNFINISHED) && used.elapsed().is_ok_and(|age| age > UNFINISHED_FOR) {
                let _ = fs::remove_file(path);
            }
        }
        kept.sort_unstable();
        let mut bytes: u64 = kept.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, less, path) in kept {
            if bytes <= self.most_bytes {
                break;
            }
            let _ = fs::remove_file(path);
            bytes -= less;
        }
        Ok(())
    }
}

/// Splits the key off a name, and returns what follows.
fn behind_a_key(name: &str) -> Option<&str> {
    let (key, rest) = name.split_at_checked(2 * SUM_BYTES)?;
    key.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(rest)
}

/// The folder, by the variables of an environment. It is that of compiled kernels (src/backend/cuda/cache.rs of the library).
fn folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let named = |name: &str| variable(name).filter(|value| !value.is_empty());
    let absolute = |name: &str| named(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    if named("WARPSET_CACHE").is_some_and(|value| value == "off" || value == "0") {
        return None;
    }
    if let Some(folder) = named("WARPSET_CACHE_DIR") {
        return Some(folder.into());
    }
    if cfg!(windows) {
        return Some(absolute("LOCALAPPDATA")?.join("warpset").join("cache"));
    }
    let folder = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(folder.join("warpset"))
}

fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

/// Whether a file may be renamed to this path: nothing is there, or a file or a link.
fn is_replaceable(path: &Path) -> bool {
    fs::symlink_metadata(path).map_or(true, |metadata| metadata.is_file() || metadata.is_symlink())
}

/// Whether the path exists, is of this kind and no link, and only this user can write to it.
fn is_own(path: &Path, is_of_kind: impl Fn(&Metadata) -> bool) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| is_of_kind(&metadata) && belongs_to_user(&metadata))
}

#[cfg(unix)]
fn belongs_to_user(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0
}

#[cfg(not(unix))]
fn belongs_to_user(_: &Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// A folder with room for two libraries of 1,000 bytes, and such a library.
    fn small() -> (TempDir, Kept, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let kept = Kept { folder: folder.path().join("kept"), most_bytes: 2 * (1000 + SUM_BYTES as u64) };
        let library = folder.path().join("library");
        fs::write(&library, [7; 1000]).unwrap();
        (folder, kept, library)
    }

    fn key(text: &str) -> Key {
        Key::of([text.as_bytes()])
    }

    #[test]
    fn libraries_are_found_by_their_key() {
        let (_folder, kept, library) = small();
        assert_eq!(kept.find(&key("a")), None);
        kept.keep(&key("a"), &library).unwrap();
        assert_eq!(kept.find(&key("a")), Some(vec![7; 1000]));
        assert_eq!(kept.find(&key("b")), None);
    }

    #[test]
    fn keys_are_those_of_the_parts() {
        let key = |parts: &[&str]| Key::of(parts.iter().map(|part| part.as_bytes())).0;
        assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
        for other in [&["a", "bc"][..], &["abc"], &["ab", "c", ""], &["c", "ab"]] {
            assert_ne!(key(&["ab", "c"]), key(other));
        }
        // FIPS 180-4, the sum of the 8 bytes of a length of 0.
        assert_eq!(key(&[""]), "af5570f5a1810b7af78caf4bc70a660f0df51e42baf91d4de5b2328de0e83dfc");
    }

    #[test]
    fn damaged_libraries_are_not_found_and_are_written_again() {
        let (_folder, kept, library) = small();
        kept.keep(&key("a"), &library).unwrap();
        let path = kept.path(&key("a"));
        let whole = fs::read(&path).unwrap();
        let flipped = |at: usize| whole.iter().enumerate().map(|(i, byte)| byte ^ u8::from(i == at)).collect::<Vec<u8>>();
        for damaged in [&whole[..500], &whole[..10], &[], &whole[1..], &flipped(0), &flipped(1000)] {
            fs::write(&path, damaged).unwrap();
            assert_eq!(kept.find(&key("a")), None, "{} bytes", damaged.len());
            kept.keep(&key("a"), &library).unwrap();
            assert_eq!((kept.find(&key("a")), fs::read(&path).unwrap()), (Some(vec![7; 1000]), whole.clone()));
        }
    }

    /// Not even if it belongs to the same user and its bytes have their sum.
    #[test]
    fn a_file_of_another_key_is_not_found() {
        let (_folder, kept, library) = small();
        kept.keep(&key("a"), &library).unwrap();
        fs::copy(kept.path(&key("a")), kept.path(&key("b"))).unwrap();
        assert_eq!((kept.find(&key("a")), kept.find(&key("b"))), (Some(vec![7; 1000]), None));
        kept.keep(&key("b"), &library).unwrap();
        assert_eq!(kept.find(&key("b")), Some(vec![7; 1000]));
    }

    #[test]
    fn what_was_not_used_for_longest_is_removed() {
        let (_folder, kept, library) = small();
        let used = |name: &str, seconds: u64| {
            let file = File::options().write(true).open(kept.path(&key(name))).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
        };
        fs::create_dir(&kept.folder).unwrap();
        let others = ["other.kernels", "other.functions", "other.functions-unfinished"].map(|name| kept.folder.join(name));
        let long_ago = SystemTime::now() - 2 * UNFINISHED_FOR;
        let aged = |path: &PathBuf| {
            fs::write(path, [0; 5000]).unwrap();
            File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
        };
        others.iter().for_each(aged);
        for (name, age) in [("a", 300), ("b", 200)] {
            kept.keep(&key(name), &library).unwrap();
            used(name, age);
        }
        // Now `b` is the older one.
        assert!(kept.find(&key("a")).is_some());
        let [old, young] = ["old", "young"].map(|name| kept.folder.join(format!("{}{name}{UNFINISHED}", key("d").0)));
        aged(&old);
        fs::write(&young, [0]).unwrap();
        kept.keep(&key("c"), &library).unwrap();
        assert_eq!(["a", "b", "c"].map(|name| kept.find(&key(name)).is_some()), [true, false, true]);
        assert!(!old.exists() && young.exists() && others.iter().all(|path| path.exists()));
    }

    #[test]
    fn a_library_that_is_too_large_is_not_kept() {
        let (_folder, kept, library) = small();
        fs::write(&library, [0; 3000]).unwrap();
        kept.keep(&key("a"), &library).unwrap();
        assert!(kept.find(&key("a")).is_none() && !kept.folder.exists());
    }

    #[cfg(unix)]
    #[test]
    fn what_others_can_write_is_not_loaded() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let (folder, kept, library) = small();
        let mode = |path: &Path, bits: u32| fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
        kept.keep(&key("a"), &library).unwrap();
        let path = kept.path(&key("a"));
        for (changed, before) in [(&path, 0o600), (&kept.folder, 0o700)] {
            for bits in [before | 0o020, before | 0o002] {
                mode(changed, bits);
                assert_eq!(kept.find(&key("a")), None, "{bits:o}");
            }
            mode(changed, before);
            assert!(kept.find(&key("a")).is_some());
        }
        // Nothing is written to a folder of others, either.
        mode(&kept.folder, 0o777);
        kept.keep(&key("b"), &library).unwrap();
        mode(&kept.folder, 0o700);
        assert_eq!(kept.find(&key("b")), None);
        let elsewhere = folder.path().join("elsewhere");
        fs::rename(&path, &elsewhere).unwrap();
        symlink(&elsewhere, &path).unwrap();
        assert_eq!(kept.find(&key("a")), None);
    }

    #[test]
    fn folders_are_those_of_the_environment() {
        let of = |variables: &[(&str, &str)]| {
            folder(|name| variables.iter().find(|(of, _)| *of == name).map(|(_, value)| (*value).into()))
        };
        let (named, off) = (("WARPSET_CACHE_DIR", "/named"), |value| ("WARPSET_CACHE", value));
        assert_eq!(of(&[named]), Some("/named".into()));
        assert_eq!(of(&[named, off("off")]), None);
        assert_eq!(of(&[named, off("0")]), None);
        assert_eq!(of(&[named, off("on")]), Some("/named".into()));
        assert_eq!(of(&[]), None);
        #[cfg(unix)]
        {
            let (home, xdg) = (("HOME", "/home/u"), ("XDG_CACHE_HOME", "/cache"));
            assert_eq!(of(&[home]), Some("/home/u/.cache/warpset".into()));
            assert_eq!(of(&[home, xdg]), Some("/cache/warpset".into()));
            assert_eq!(of(&[home, xdg, named]), Some("/named".into()));
            assert_eq!(of(&[home, ("XDG_CACHE_HOME", "here"), ("WARPSET_CACHE_DIR", "")]), Some("/home/u/.cache/warpset".into()));
            assert_eq!(of(&[("HOME", "here")]), None);
        }
    }
}
