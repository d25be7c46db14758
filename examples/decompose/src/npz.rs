//! Reads graphs from arrays of NumPy in an `.npz` file: `offsets`, `targets` and, for a decision process, `choices`.

use crate::graph::{self, Graph, MOST_STATES};
use anyhow::{Context, Result, bail, ensure};
use std::io::{Read, Seek};
use warpset_support::memory::MemoryBudget;
use warpset_support::npy_header::{Header, string};
use zip::ZipArchive;
use zip::result::ZipError;

/// Elements read at a time.
const PIECE: usize = 1 << 16;

/// Reads the arrays.
///
/// # Errors
///
/// An array is missing, does not have integers, or does not fit the others; or memory does not suffice, with the numbers.
pub fn read(reader: impl Read + Seek, budget: MemoryBudget) -> Result<Graph> {
    let mut archive = ZipArchive::new(reader).context("it is not a complete .npz file")?;
    let targets: Vec<u32> = read_array(&mut archive, "targets", budget)?.context("it has no array `targets`")?;
    // All arrays are in memory at the same time.
    let budget = budget.without(4 * targets.len() as u64);
    let offsets: Vec<u64> = read_array(&mut archive, "offsets", budget)?.context("it has no array `offsets`")?;
    let budget = budget.without(8 * offsets.len() as u64);
    let choices: Option<Vec<u64>> = read_array(&mut archive, "choices", budget)?;
    let budget = budget.without(8 * choices.as_ref().map_or(0, Vec::len) as u64);
    ensure_rises("offsets", &offsets, targets.len())?;
    let states = match &choices {
        None => offsets.len() as u64 - 1,
        Some(choices) => {
            ensure_rises("choices", choices, offsets.len() - 1)?;
            let empty = offsets.windows(2).position(|ends| ends[0] == ends[1]);
            ensure!(empty.is_none(), "choice {} has no targets: each leads somewhere", empty.unwrap_or_default());
            choices.len() as u64 - 1
        }
    };
    ensure!(states <= MOST_STATES, "{states} states: at most {MOST_STATES} are possible");
    if let Some(at) = targets.iter().position(|target| u64::from(*target) >= states) {
        bail!("targets[{at}] is state {}, of {states} states: 0 to {}", targets[at], states.saturating_sub(1));
    }
    match choices {
        None => Graph::new(offsets, targets),
        Some(choices) => {
            budget.ensure("the rows of states", graph::bytes(states, 0, None))?;
            Graph::of_choices(choices, offsets, targets)
        }
    }
}

/// Returns an error unless `ends` are offsets of rows that cover `all` elements.
fn ensure_rises(name: &str, ends: &[u64], all: usize) -> Result<()> {
    ensure!(ends.first() == Some(&0), "`{name}` must begin with 0");
    if let Some(at) = ends.windows(2).position(|ends| ends[0] > ends[1]) {
        bail!("{name}[{}] is {}, less than {} before it", at + 1, ends[at + 1], ends[at]);
    }
    let last = ends[ends.len() - 1];
    ensure!(last == all as u64, "`{name}` ends with {last}, where it has {all} rows or elements to share out");
    Ok(())
}

/// Reads an array of one dimension; `None` if the archive does not have it.
fn read_array<T: TryFrom<u64>>(
    archive: &mut ZipArchive<impl Read + Seek>,
    name: &str,
    budget: MemoryBudget,
) -> Result<Option<Vec<T>>> {
    let entry = match archive.by_name(&format!("{name}.npy")) {
        Ok(entry) => entry,
        Err(ZipError::FileNotFound) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let bytes = entry.size();
    read_elements(entry, bytes, budget).with_context(|| format!("array `{name}`")).map(Some)
}

fn read_elements<T: TryFrom<u64>>(mut reader: impl Read, file_bytes: u64, budget: MemoryBudget) -> Result<Vec<T>> {
    let header = Header::read(&mut reader)?;
    let (size, has_sign) = match string(&header.descr) {
        Some("<u4") => (4, false),
        Some("<i4") => (4, true),
        Some("<u8") => (8, false),
        Some("<i8") => (8, true),
        _ => bail!("its elements have dtype {}; '<u4', '<u8', '<i4' or '<i8' are needed", header.descr),
    };
    let &[count] = &header.shape[..] else {
        bail!("its shape {} has {} dimensions; 1 is needed", header.shape_text(), header.shape.len())
    };
    let found = file_bytes.saturating_sub(header.bytes);
    ensure!(count.checked_mul(size) == Some(found), "its shape {} does not fit {found} bytes of data", header.shape_text());
    // Elements may be larger in memory than in the file.
    budget.ensure(&format!("{count} elements"), count.saturating_mul(size_of::<T>() as u64))?;
    let mut elements = Vec::with_capacity(count as usize);
    let mut piece = vec![0; PIECE * size as usize];
    while elements.len() < count as usize {
        let some = &mut piece[..PIECE.min(count as usize - elements.len()) * size as usize];
        reader.read_exact(some).with_context(|| format!("its data cannot be read beyond element {}", elements.len()))?;
        for bytes in some.chunks_exact(size as usize) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            let value = u64::from_le_bytes(word);
            let is_negative = has_sign && value >> (8 * size - 1) != 0;
            let element = Some(value).filter(|_| !is_negative).and_then(|value| T::try_from(value).ok());
            let at = elements.len();
            elements.push(element.with_context(|| {
                let shown = if is_negative { "less than 0".into() } else { value.to_string() };
                format!("element {at} is {shown}: not in 0 to 2^{} - 1", 8 * size_of::<T>())
            })?);
        }
    }
    // The archive compares checksums at the end of an entry, so read to the end.
    reader.read(&mut [0]).context("its data is damaged")?;
    Ok(elements)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use warpset_support::npy_writer::npy_header;

    fn elements<T: TryFrom<u64>>(count: u64, dtype: &str, budget: MemoryBudget) -> String {
        let header = npy_header(dtype, &format!("({count},)"));
        let size: u64 = dtype[2..].parse().unwrap();
        let bytes = header.len() as u64 + count * size;
        read_elements::<T>(&header[..], bytes, budget).map(|_| ()).unwrap_err().to_string()
    }

    /// Each array alone fits the limit, but both together do not.
    #[test]
    fn arrays_share_their_memory() {
        let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, dtype, count, size) in [("targets", "<u4", 1000, 4), ("offsets", "<u8", 501, 8)] {
            archive.start_file(format!("{name}.npy"), zip::write::SimpleFileOptions::default()).unwrap();
            archive.write_all(&npy_header(dtype, &format!("({count},)"))).unwrap();
            archive.write_all(&vec![0; count * size]).unwrap();
        }
        let file = archive.finish().unwrap();
        let error = |bytes| format!("{:#}", read(file.clone(), MemoryBudget::allowed(bytes)).map(|_| ()).unwrap_err());
        assert!(error(8007).contains("501 elements need 3.91 KiB") && error(8007).contains("leaves 3.91 KiB (4,007 bytes)"));
        // Memory suffices for all arrays, so the next error is reported.
        assert_eq!(error(8008), "`offsets` ends with 0, where it has 1000 rows or elements to share out");
    }

    #[test]
    fn sizes_that_overflow_are_more_than_there_is() {
        // In memory the arrays would have 2^64 and 2^63 bytes.
        let error = elements::<u64>(1 << 61, "<u4", MemoryBudget::free(1 << 40));
        assert!(error.starts_with("2305843009213693952 elements need 16.00 EiB of memory"), "{error}");
        let error = elements::<u64>((1 << 60) - 100, "<u8", MemoryBudget::allowed(1 << 40));
        assert!(error.contains("elements need 8.00 EiB of memory") && error.contains("but --memory leaves 1.00 TiB"), "{error}");
    }
}
