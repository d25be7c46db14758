//! Reads vectors from a `.npy` file, or from an array in an `.npz` file. The first bytes of a file, not its name, show its
//! format.

use super::npy;
use super::npy_header::MAGIC;
use super::vectors::Vectors;
use anyhow::{Context, Result, bail, ensure};
use std::fs::File;
use std::io::{BufReader, Read, Seek};
use std::path::Path;
use zip::ZipArchive;

/// First bytes of a zip archive. An empty archive has only its end, which begins with the second of these.
const ZIP_MAGICS: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

/// Array that is read by default if an `.npz` file has several arrays.
const DEFAULT_ARRAY: &str = "vectors";

/// Reads the vectors of a file; of an `.npz` file, those of `array`. `memory`: bytes that the vectors may take; by default all
/// free memory.
pub fn read(path: &Path, array: Option<&str>, memory: Option<u64>) -> Result<Vectors> {
    let (words, width, array) = read_file(path, array, memory).with_context(|| path.display().to_string())?;
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let origin = array.map_or(name.to_string(), |array| format!("{name}, array `{array}`"));
    Ok(Vectors { words, width, distinct: None, origin })
}

/// Reads the words, their width, and the name of the array in an `.npz` file.
fn read_file(path: &Path, array: Option<&str>, memory: Option<u64>) -> Result<(Vec<u32>, usize, Option<String>)> {
    let metadata = std::fs::metadata(path)?;
    ensure!(metadata.is_file(), "not a regular file");
    let mut file = File::open(path)?;
    let mut start = Vec::new();
    file.by_ref().take(MAGIC.len() as u64).read_to_end(&mut start)?;
    file.rewind()?;
    let reader = BufReader::with_capacity(1 << 20, file);
    if start == MAGIC {
        ensure!(array.is_none(), "a .npy file has one array without a name: leave out --array");
        let (words, width) = npy::read_vectors(reader, metadata.len(), memory)?;
        return Ok((words, width, None));
    }
    ensure!(ZIP_MAGICS.iter().any(|magic| start.starts_with(magic)), "neither a .npy nor an .npz file");
    let mut archive = ZipArchive::new(reader).context("not a complete .npz file")?;
    let name = choose(&array_names(&archive), array)?;
    let (words, width) = read_entry(&mut archive, &name, memory).with_context(|| format!("array `{name}`"))?;
    Ok((words, width, Some(name)))
}

fn read_entry(archive: &mut ZipArchive<impl Read + Seek>, name: &str, memory: Option<u64>) -> Result<(Vec<u32>, usize)> {
    let mut entry = archive.by_name(&format!("{name}.npy"))?;
    let bytes = entry.size();
    npy::read_vectors(&mut entry, bytes, memory)
}

fn array_names(archive: &ZipArchive<impl Read + Seek>) -> Vec<String> {
    archive.file_names().flatten().filter_map(|name| Some(name.strip_suffix(".npy")?.to_string())).collect()
}

fn choose(names: &[String], wanted: Option<&str>) -> Result<String> {
    let has = |name: &str| names.iter().any(|other| other == name);
    match (names, wanted) {
        ([], _) => bail!("the file has no arrays: no entry of the archive ends in .npy"),
        (_, Some(wanted)) if has(wanted) => Ok(wanted.into()),
        (_, Some(wanted)) => bail!("the file has no array `{wanted}`, only {}", names.join(", ")),
        ([only], None) => Ok(only.clone()),
        (_, None) if has(DEFAULT_ARRAY) => Ok(DEFAULT_ARRAY.into()),
        (_, None) => bail!("the file has {} arrays ({}): choose one with --array", names.len(), names.join(", ")),
    }
}
