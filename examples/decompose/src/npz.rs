//! Reads graphs from an `.npz` file. The file has arrays of NumPy: `offsets`, `targets` and, for a decision process, `choices`.
//! Or it has a sparse matrix as `scipy.sparse.save_npz` writes it, in the format `csr`, `csc` or `coo`: the entry in row i and
//! column j is an edge from i to j, whatever its value is.

use crate::graph::{self, Graph, MOST_STATES};
use anyhow::{Context, Result, bail, ensure};
use std::io::{Read, Seek};
use warpset_support::memory::MemoryBudget;
use warpset_support::npy_header::{Header, string};
use warpset_support::numbers::counted;
use zip::ZipArchive;
use zip::result::ZipError;

/// Number of elements that are read at a time.
const PIECE: usize = 1 << 16;

/// Reads the arrays.
///
/// # Errors
///
/// An array is missing, does not consist of integers, or does not fit the others; or memory does not suffice (the error has the
/// numbers).
pub fn read(reader: impl Read + Seek, budget: MemoryBudget) -> Result<Graph> {
    let mut archive = ZipArchive::new(reader).context("not a complete .npz file")?;
    let has = |archive: &ZipArchive<_>, name: &str| archive.index_for_name(&format!("{name}.npy")).is_some();
    if has(&archive, "shape") && has(&archive, "format") && !has(&archive, "targets") {
        return read_scipy(&mut archive, budget);
    }
    let targets: Vec<u32> = read_array(&mut archive, "targets", budget)?
        .context("the file has no array `targets` (nor is it a sparse matrix of SciPy)")?;
    // All arrays are in memory at the same time.
    let budget = budget.without(4 * targets.len() as u64);
    let offsets: Vec<u64> = read_array(&mut archive, "offsets", budget)?.context("the file has no array `offsets`")?;
    let budget = budget.without(8 * offsets.len() as u64);
    let choices: Option<Vec<u64>> = read_array(&mut archive, "choices", budget)?;
    let budget = budget.without(8 * choices.as_ref().map_or(0, Vec::len) as u64);
    ensure_rises("offsets", &offsets, targets.len())?;
    let states = match &choices {
        None => offsets.len() as u64 - 1,
        Some(choices) => {
            ensure_rises("choices", choices, offsets.len() - 1)?;
            let empty = offsets.windows(2).position(|ends| ends[0] == ends[1]);
            ensure!(empty.is_none(), "choice {} has no targets; every choice needs at least one", empty.unwrap_or_default());
            choices.len() as u64 - 1
        }
    };
    ensure!(states <= MOST_STATES, "the graph has {states} states, but at most {MOST_STATES} are possible");
    if let Some(at) = targets.iter().position(|target| u64::from(*target) >= states) {
        bail!(
            "targets[{at}] is state {}, but the graph has {}, numbered 0 to {}",
            targets[at],
            counted(states, "state"),
            states.saturating_sub(1)
        );
    }
    match choices {
        None => Graph::new(offsets, targets),
        Some(choices) => {
            budget.ensure("the rows of states", graph::bytes(states, 0, None))?;
            Graph::of_choices(choices, offsets, targets)
        }
    }
}

/// Reads a sparse matrix of SciPy.
fn read_scipy(archive: &mut ZipArchive<impl Read + Seek>, budget: MemoryBudget) -> Result<Graph> {
    let shape: Vec<u64> = read_array(archive, "shape", budget)?.context("the file has no array `shape`")?;
    let &[states, columns] = &shape[..] else { bail!("`shape` has {}; 2 are needed", elements(shape.len())) };
    ensure!(states == columns, "the matrix has {states} rows and {columns} columns, but the matrix of a graph is square");
    ensure!((1..=MOST_STATES).contains(&states), "the matrix has {states} rows, but 1 to {MOST_STATES} are possible");
    let format = read_text(archive, "format")?;
    let array = |archive: &mut ZipArchive<_>, name: &str, budget: MemoryBudget| -> Result<Vec<u32>> {
        let indices: Vec<u32> = read_array(archive, name, budget)?.with_context(|| format!("the file has no array `{name}`"))?;
        let wrong = indices.iter().position(|index| u64::from(*index) >= states);
        match wrong {
            Some(at) => bail!("{name}[{at}] is {}, but the matrix has {states} rows, numbered 0 to {}", indices[at], states - 1),
            None => Ok(indices),
        }
    };
    if format == "coo" {
        let sources = array(archive, "row", budget)?;
        let budget = budget.without(4 * sources.len() as u64);
        let targets = array(archive, "col", budget)?;
        ensure!(sources.len() == targets.len(), "`row` has {}, but `col` has {}", elements(sources.len()), targets.len());
        let graph = graph::bytes(states, targets.len() as u64, None);
        budget.without(4 * targets.len() as u64).ensure("the rows of states", graph)?;
        return Graph::of_transitions(states, &sources, &targets);
    }
    ensure!(matches!(&*format, "csr" | "csc"), "the matrix has the format `{format}`; csr, csc or coo is needed");
    let indices = array(archive, "indices", budget)?;
    let budget = budget.without(4 * indices.len() as u64);
    let offsets: Vec<u64> = read_array(archive, "indptr", budget)?.context("the file has no array `indptr`")?;
    ensure!(offsets.len() as u64 == states + 1, "`indptr` has {}, but {} are needed", elements(offsets.len()), states + 1);
    ensure_rises("indptr", &offsets, indices.len())?;
    if format == "csr" {
        return Graph::new(offsets, indices);
    }
    // The matrix is stored by columns: `indices` has the sources, and the columns are the targets.
    let bytes = graph::bytes(states, indices.len() as u64, None).saturating_add(4 * indices.len() as u64);
    budget.without(8 * offsets.len() as u64).ensure("the rows of states", bytes)?;
    let columns = offsets.windows(2).enumerate().flat_map(|(column, ends)| (ends[0]..ends[1]).map(move |_| column as u32));
    Graph::of_transitions(states, &indices, &columns.collect::<Vec<_>>())
}

fn elements(count: usize) -> String {
    counted(count as u64, "element")
}

/// Reads a single string that NumPy wrote as bytes (`|S3`) or as Unicode (`<U3`).
fn read_text(archive: &mut ZipArchive<impl Read + Seek>, name: &str) -> Result<String> {
    let mut entry = archive.by_name(&format!("{name}.npy"))?;
    let header = Header::read(&mut entry).with_context(|| format!("array `{name}`"))?;
    ensure!(header.shape.is_empty(), "`{name}` has {} dimensions; a single text is needed", header.shape.len());
    let mut bytes = Vec::new();
    entry.take(256).read_to_end(&mut bytes)?;
    // Unicode has 4 bytes for each character, and the texts expected here are ASCII, so the other bytes are 0.
    Ok(bytes.into_iter().filter(|byte| *byte != 0).map(char::from).collect())
}

/// Returns an error unless `ends` are offsets of rows that cover `all` elements.
fn ensure_rises(name: &str, ends: &[u64], all: usize) -> Result<()> {
    ensure!(ends.first() == Some(&0), "`{name}` must begin with 0");
    if let Some(at) = ends.windows(2).position(|ends| ends[0] > ends[1]) {
        bail!("{name}[{}] is {}, which is less than {} before it", at + 1, ends[at + 1], ends[at]);
    }
    let last = ends[ends.len() - 1];
    ensure!(last == all as u64, "`{name}` ends with {last}, but must end with {all}, the number of elements that it divides");
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
        _ => bail!("the elements have dtype {}; '<u4', '<u8', '<i4' or '<i8' is needed", header.descr),
    };
    let &[count] = &header.shape[..] else {
        bail!("the shape {} has {} dimensions; 1 is needed", header.shape_text(), header.shape.len())
    };
    let found = file_bytes.saturating_sub(header.bytes);
    ensure!(count.checked_mul(size) == Some(found), "the shape {} does not fit {found} bytes of data", header.shape_text());
    // An element may be larger in memory than in the file.
    budget.ensure(&format!("{count} elements"), count.saturating_mul(size_of::<T>() as u64))?;
    let mut elements = Vec::with_capacity(count as usize);
    let mut piece = vec![0; PIECE * size as usize];
    while elements.len() < count as usize {
        let some = &mut piece[..PIECE.min(count as usize - elements.len()) * size as usize];
        reader.read_exact(some).with_context(|| format!("the data cannot be read beyond element {}", elements.len()))?;
        for bytes in some.chunks_exact(size as usize) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            let value = u64::from_le_bytes(word);
            let is_negative = has_sign && value >> (8 * size - 1) != 0;
            let element = Some(value).filter(|_| !is_negative).and_then(|value| T::try_from(value).ok());
            let at = elements.len();
            elements.push(element.with_context(|| {
                let shown = if is_negative { "less than 0".into() } else { value.to_string() };
                format!("element {at} is {shown}, outside 0 to 2^{} - 1", 8 * size_of::<T>())
            })?);
        }
    }
    // The archive compares the checksum when the end of an entry is read, so read to the end.
    reader.read(&mut [0]).context("the data is damaged")?;
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
        assert_eq!(error(8008), "`offsets` ends with 0, but must end with 1000, the number of elements that it divides");
    }

    /// Creates an archive of arrays, each given by its name, dtype, shape and data.
    fn archive(arrays: &[(&str, &str, &str, &[u8])]) -> std::io::Cursor<Vec<u8>> {
        let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, dtype, shape, data) in arrays {
            archive.start_file(format!("{name}.npy"), zip::write::SimpleFileOptions::default()).unwrap();
            archive.write_all(&npy_header(dtype, shape)).unwrap();
            archive.write_all(data).unwrap();
        }
        archive.finish().unwrap()
    }

    fn words(numbers: &[i32]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    /// The graph 0 -> 1 -> 2 -> 1 in all formats of SciPy. SciPy writes `shape` with 8 bytes for each element.
    #[test]
    fn sparse_matrices_of_scipy_are_graphs() {
        let shape: Vec<u8> = [3u64, 3].iter().flat_map(|size| size.to_le_bytes()).collect();
        let matrix = |format: &[u8], arrays: &[(&str, Vec<i32>)]| {
            let data: Vec<Vec<u8>> = arrays.iter().map(|(_, numbers)| words(numbers)).collect();
            let shapes: Vec<String> = arrays.iter().map(|(_, numbers)| format!("({},)", numbers.len())).collect();
            let mut all: Vec<(&str, &str, &str, &[u8])> = vec![("shape", "<i8", "(2,)", &shape), ("format", "|S3", "()", format)];
            all.extend(arrays.iter().zip(&data).zip(&shapes).map(|(((name, _), data), shape)| (*name, "<i4", &**shape, &**data)));
            let graph = read(archive(&all), MemoryBudget::free(u64::MAX));
            graph.map(|graph| (graph.offsets, graph.targets)).map_err(|error| format!("{error:#}"))
        };
        let expected = Ok((vec![0, 1, 2, 3], vec![1, 2, 1]));
        assert_eq!(matrix(b"csr", &[("indices", vec![1, 2, 1]), ("indptr", vec![0, 1, 2, 3])]), expected);
        assert_eq!(matrix(b"csc", &[("indices", vec![0, 2, 1]), ("indptr", vec![0, 0, 2, 3])]), expected);
        assert_eq!(matrix(b"coo", &[("row", vec![1, 0, 2]), ("col", vec![2, 1, 1])]), expected);
        for (format, arrays, error) in [
            (b"bsr", vec![], "the matrix has the format `bsr`; csr, csc or coo is needed"),
            (b"csr", vec![("indices", vec![1])], "the file has no array `indptr`"),
            (b"csr", vec![("indices", vec![3]), ("indptr", vec![0, 1, 1, 1])], "indices[0] is 3, but the matrix has 3 rows"),
            (b"csr", vec![("indices", vec![1]), ("indptr", vec![0, 1])], "`indptr` has 2 elements, but 4 are needed"),
            (b"csc", vec![("indices", vec![1]), ("indptr", vec![0, 2, 1, 1])], "indptr[2] is 1, which is less than 2 before it"),
            (b"coo", vec![("row", vec![1]), ("col", vec![])], "`row` has 1 element, but `col` has 0"),
            (b"coo", vec![("row", vec![-1]), ("col", vec![1])], "array `row`: element 0 is less than 0"),
        ] {
            let found = matrix(format, &arrays).unwrap_err();
            assert!(found.starts_with(error), "{found}");
        }
        let oblong: Vec<u8> = [3u64, 4].iter().flat_map(|size| size.to_le_bytes()).collect();
        let error =
            read(archive(&[("shape", "<i8", "(2,)", &oblong), ("format", "|S3", "()", b"csr")]), MemoryBudget::free(u64::MAX));
        assert!(error.map(drop).unwrap_err().to_string().starts_with("the matrix has 3 rows and 4 columns"));
    }

    #[test]
    fn sizes_that_overflow_are_more_than_there_is() {
        // In memory, the arrays would have 2^64 and 2^63 bytes.
        let error = elements::<u64>(1 << 61, "<u4", MemoryBudget::free(1 << 40));
        assert!(error.starts_with("2305843009213693952 elements need 16.00 EiB of memory"), "{error}");
        let error = elements::<u64>((1 << 60) - 100, "<u8", MemoryBudget::allowed(1 << 40));
        assert!(error.contains("elements need 8.00 EiB of memory") && error.contains("but --memory leaves 1.00 TiB"), "{error}");
    }
}
