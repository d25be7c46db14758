//! Reads the model from a file, a pipe or standard input, and refuses inputs longer than any model.

use crate::diagnostic::Diagnostic;
use crate::ir::Source;
use crate::parsing::span_of;
use anyhow::{Context, Result, ensure};
use indicatif::{HumanBytes, HumanCount};
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use warpset_support::output::Identity;
use warpset_support::text::TextReader;

/// Length limit of a model in bytes. The longest model of BEEM has some hundred kilobytes. Reading 16 MiB takes seconds and about
/// a gigabyte of memory.
pub const MAX_BYTES: u64 = 16 << 20;

/// A file that is open for reading.
pub struct Input {
    /// The input's name in messages.
    pub name: String,
    /// Path of the file; empty for standard input.
    pub path: PathBuf,
    /// Length in bytes, if it is a regular file.
    pub bytes: Option<u64>,
    pub reader: Box<dyn Read>,
    /// Identity of the file, independent of its name; for standard input, the identity of what it is connected to.
    pub identity: Option<Identity>,
}

/// Reads a text file other than the model.
pub fn read_text(path: &Path) -> Result<Source> {
    open(path)?.text()
}

/// Reads an XML file other than the model.
pub fn read_xml(path: &Path) -> Result<Source> {
    open(path)?.xml(MAX_BYTES)
}

/// Opens the model; `-` is standard input.
pub fn open(path: &Path) -> Result<Input> {
    if path == Path::new("-") {
        let identity = same_file::Handle::stdin().ok();
        let reader = Box::new(std::io::stdin().lock());
        return Ok(Input { name: "standard input".into(), path: PathBuf::new(), bytes: None, reader, identity });
    }
    let name = path.display().to_string();
    let open = || {
        // Look at the file before opening it, because opening a device may have effects.
        let metadata = std::fs::metadata(path)?;
        look_at(&metadata)?;
        let file = File::open(path)?;
        let identity = same_file::Handle::from_file(file.try_clone()?).ok();
        Ok::<_, anyhow::Error>((file, metadata.is_file().then_some(metadata.len()), identity))
    };
    let (file, bytes, identity) = open().with_context(|| format!("{name} cannot be read"))?;
    Ok(Input { name, path: path.into(), bytes, reader: Box::new(file), identity })
}

impl Input {
    /// Reads the whole text. Fails if it is longer than `MAX_BYTES`.
    pub fn text(self) -> Result<Source> {
        self.whole(MAX_BYTES, |name, reader| Ok(Source::read(name.into(), reader)?))
    }

    /// Reads the whole text of an XML file, in the encoding that it declares. Fails if it is longer than `most` bytes.
    pub fn xml(self, most: u64) -> Result<Source> {
        let name = self.name.clone();
        let (bytes, encoding) = self.whole(most, |_, reader| {
            let (mut reader, mut bytes) = (TextReader::of_xml(reader), Vec::new());
            reader.read_to_end(&mut bytes)?;
            Ok((bytes, reader.encoding()))
        })?;
        let invalid = match String::from_utf8(bytes) {
            Ok(text) => return Ok(Source { name, text }),
            Err(error) => error,
        };
        let (start, text) = (invalid.utf8_error().valid_up_to(), String::from_utf8_lossy(invalid.as_bytes()).into_owned());
        let span = span_of(&text, start, start + char::REPLACEMENT_CHARACTER.len_utf8());
        let label = if encoding == "UTF-8" {
            "XML in another encoding declares it, as in <?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>"
        } else {
            "not a character"
        };
        Err(Diagnostic::new(span, format!("a byte that is not {encoding}"), label).of(&Source { name, text }).into())
    }

    /// Reads the whole text by `read`. Fails if it is longer than `most` bytes.
    fn whole<T>(self, most: u64, read: impl FnOnce(&str, &mut dyn Read) -> Result<T>) -> Result<T> {
        let Self { name, bytes, reader, .. } = self;
        let all = || {
            let length = bytes.unwrap_or(0);
            ensure!(length <= most, "the file has {}, but a model has at most {}", amount(length), amount(most));
            let mut reader = reader.take(most + 1);
            let text = read(&name, &mut reader)?;
            ensure!(reader.limit() > 0, "the input is longer than {}, the limit for a model", amount(most));
            Ok(text)
        };
        all().with_context(|| format!("{name} cannot be read"))
    }
}

/// Refuses directories, and files without an end, such as devices.
fn look_at(metadata: &Metadata) -> Result<()> {
    ensure!(!metadata.is_dir(), "a directory, not a file");
    if metadata.is_file() {
        return Ok(());
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kind = metadata.file_type();
        ensure!(!kind.is_char_device() && !kind.is_block_device(), "a device: a file, a pipe or - (standard input) is needed");
    }
    Ok(())
}

fn amount(bytes: u64) -> String {
    format!("{} ({} bytes)", HumanBytes(bytes), HumanCount(bytes))
}
