//! Reads lists of edges, and matrices in the MatrixMarket format.
//!
//! A list of edges has a line `SOURCE TARGET` for each edge, with numbers from 0 on. Blanks, tabs, commas and semicolons separate
//! them. Further columns (weights, times) are ignored, and so are comments, lines that begin with `#`, `%` or `//`, and a first
//! line without any digit at its beginning (names of columns). The largest number determines the number of states.
//!
//! In a MatrixMarket file, the entry in row i and column j is an edge from i to j; rows are counted from 1. An entry of a
//! symmetric matrix is an edge in both directions. The value of an entry does not matter: an explicit 0 is an edge, too, as in
//! `scipy.sparse.csgraph`.

use crate::graph::{self, Graph, MOST_STATES};
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::io::Read;
use warpset_support::lines::{excerpt, for_each, number};
use warpset_support::memory::MemoryBudget;
use warpset_support::numbers::counted;

/// Edges between two comparisons of the memory that they take with the budget.
const PIECE: usize = 1 << 20;

/// Edges read so far.
struct Edges {
    budget: MemoryBudget,
    sources: Vec<u32>,
    targets: Vec<u32>,
    states: u64,
}

impl Edges {
    fn new(budget: MemoryBudget) -> Self {
        Self { budget, sources: Vec::new(), targets: Vec::new(), states: 0 }
    }

    fn add(&mut self, source: u64, target: u64) -> Result<()> {
        self.states = self.states.max(source.max(target) + 1);
        self.sources.push(source as u32);
        self.targets.push(target as u32);
        if self.sources.len().is_multiple_of(PIECE) { self.ensure_fits() } else { Ok(()) }
    }

    /// Returns an error unless the edges, and the graph that they become, fit the memory budget.
    fn ensure_fits(&self) -> Result<()> {
        let edges = self.sources.len() as u64;
        ensure_fits(self.budget, self.states, edges)
    }

    fn graph(self, name: &str) -> Result<Graph> {
        self.ensure_fits()?;
        Graph::of_transitions(self.states, &self.sources, &self.targets).context(name.to_string())
    }
}

fn ensure_fits(budget: MemoryBudget, states: u64, edges: u64) -> Result<()> {
    let bytes = graph::bytes(states, edges, None).saturating_add(edges.saturating_mul(8));
    budget.ensure(&format!("{} and {}", counted(states, "state"), counted(edges, "transition")), bytes)
}

fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| byte.is_ascii_whitespace() || b",;".contains(byte)).filter(|field| !field.is_empty())
}

/// Reads a list of edges to its end.
///
/// # Errors
///
/// The first error, with the file's name and the line; or memory does not suffice, with the numbers.
pub fn read(name: &str, reader: impl Read, budget: MemoryBudget) -> Result<Graph> {
    let (mut edges, mut is_first) = (Edges::new(budget), true);
    for_each(name, reader, |line, _| {
        let is_comment = line.starts_with(b"#") || line.starts_with(b"%") || line.starts_with(b"//");
        if is_comment || (std::mem::take(&mut is_first) && line[0].is_ascii_alphabetic()) {
            return Ok(());
        }
        let mut ends = fields(line).map(number);
        let (Some(Some(source)), Some(Some(target))) = (ends.next(), ends.next()) else {
            bail!("`{}` is not an edge: two states were expected, numbers from 0 on", excerpt(line));
        };
        let largest = source.max(target);
        ensure!(largest < MOST_STATES, "the state {largest} is too large: the largest possible is {}", MOST_STATES - 1);
        edges.add(source, target)
    })?;
    ensure!(edges.states > 0, "{name}: there are no edges");
    edges.graph(name)
}

/// Reads a matrix in the MatrixMarket format to its end.
///
/// # Errors
///
/// As those of [`read`], or the matrix is not square, or has a form that is not supported.
pub fn read_matrix(name: &str, reader: impl Read, budget: MemoryBudget) -> Result<Graph> {
    let (mut edges, mut is_symmetric, mut size, mut count) = (Edges::new(budget), None, None, 0u64);
    let lines = for_each(name, reader, |line, _| {
        let Some(is_symmetric) = is_symmetric else {
            is_symmetric = Some(first_line(line)?);
            return Ok(());
        };
        if line.starts_with(b"%") {
            return Ok(());
        }
        let mut numbers = fields(line).map(number);
        let Some((states, entries)) = size else {
            let (Some(Some(rows)), Some(Some(columns)), Some(Some(entries)), None) =
                (numbers.next(), numbers.next(), numbers.next(), numbers.next())
            else {
                bail!("`{}` is not the size of a matrix: ROWS COLUMNS ENTRIES was expected", excerpt(line));
            };
            ensure!(rows == columns, "the matrix has {rows} rows and {columns} columns, but the matrix of a graph is square");
            ensure!((1..=MOST_STATES).contains(&rows), "the matrix has {rows} rows, but 1 to {MOST_STATES} are possible");
            let most = if is_symmetric { entries.saturating_mul(2) } else { entries };
            ensure_fits(budget, rows, most)?;
            size = Some((rows, entries));
            edges.states = rows;
            return Ok(());
        };
        count += 1;
        ensure!(count <= entries, "more entries than the {entries} that the size announces");
        let (Some(Some(row)), Some(Some(column))) = (numbers.next(), numbers.next()) else {
            bail!("`{}` is not an entry: ROW COLUMN [VALUE] was expected", excerpt(line));
        };
        for index in [row, column] {
            ensure!((1..=states).contains(&index), "index {index} found, but the indices of this matrix are 1 to {states}");
        }
        edges.add(row - 1, column - 1)?;
        if is_symmetric && row != column { edges.add(column - 1, row - 1) } else { Ok(()) }
    })?;
    let Some((_, entries)) = size else {
        bail!("{name}:{}: the text ends here, but ROWS COLUMNS ENTRIES was expected", lines + 1);
    };
    ensure!(
        count == entries,
        "{name}:{}: the text ends after {}, but the size announces {entries}",
        lines + 1,
        counted_entries(count)
    );
    edges.graph(name)
}

fn counted_entries(count: u64) -> String {
    if count == 1 { "1 entry".into() } else { format!("{count} entries") }
}

/// Whether the matrix is symmetric, according to the first line.
fn first_line(line: &[u8]) -> Result<bool> {
    let text = String::from_utf8_lossy(line).to_ascii_lowercase();
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let ["%%matrixmarket", "matrix", format, _, symmetry] = words[..] else {
        return Err(anyhow!("`{}` is not the first line of a matrix: %%MatrixMarket matrix ... was expected", excerpt(line)));
    };
    ensure!(format == "coordinate", "the format `{format}` is not supported: `coordinate` is needed");
    match symmetry {
        "general" => Ok(false),
        "symmetric" | "skew-symmetric" | "hermitian" => Ok(true),
        other => bail!("the symmetry `{other}` is not known"),
    }
}

#[cfg(test)]
mod tests {
    //! Keeps this promise of `examples/decompose/README.md`:
    //!
    //! - Lists of edges, MatrixMarket files and sparse matrices of SciPy are graphs, or errors with their line (also `npz.rs`).

    use super::*;

    const NO_LIMIT: MemoryBudget = MemoryBudget::free(u64::MAX);

    fn of<'t>(
        read: impl Fn(&str, &'t [u8], MemoryBudget) -> Result<Graph>,
        text: &'t str,
    ) -> Result<(Vec<u64>, Vec<u32>), String> {
        let graph = read("file", text.as_bytes(), NO_LIMIT);
        graph.map(|graph| (graph.offsets, graph.targets)).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn edges_have_any_separator() {
        for text in [
            "0 1\n1 2\n2 0\n",
            "0,1\n1,2\n2,0",
            "# a comment\n0\t1\t0.5\n\n% another\n1;2;x\n// more\n2 , 0\n",
            "source,target\n0,1\n1,2\n2,0\n",
        ] {
            assert_eq!(of(read, text), Ok((vec![0, 1, 2, 3], vec![1, 2, 0])), "{text}");
        }
        // States without edges, and edges in any order.
        assert_eq!(of(read, "4 0\n0 4\n0 0\n"), Ok((vec![0, 2, 2, 2, 2, 3], vec![4, 0, 0])));
        for (text, error) in [
            ("", "file: there are no edges"),
            ("0 1\n1\n", "file:2: `1` is not an edge"),
            ("0 1\na b\n", "file:2: `a b` is not an edge"),
            ("0 -1\n", "file:1: `0 -1` is not an edge"),
            ("0 1.5\n", "file:1: `0 1.5` is not an edge"),
            ("0 4294967295\n", "file:1: the state 4294967295 is too large: the largest possible is 4294967293"),
        ] {
            assert!(of(read, text).unwrap_err().starts_with(error), "{text}: {:?}", of(read, text));
        }
    }

    #[test]
    fn matrices_are_graphs() {
        let general = "%%MatrixMarket matrix coordinate real general\n% a comment\n3 3 3\n1 2 0.5\n2 3 0\n3 1 1e9\n";
        assert_eq!(of(read_matrix, general), Ok((vec![0, 1, 2, 3], vec![1, 2, 0])));
        let symmetric = "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n1 1\n3 1\n";
        assert_eq!(of(read_matrix, symmetric), Ok((vec![0, 2, 2, 3], vec![0, 2, 0])));
        for (text, error) in [
            ("", "file:1: the text ends here"),
            ("3 3 3\n", "file:1: `3 3 3` is not the first line of a matrix"),
            ("%%MatrixMarket matrix array real general\n", "file:1: the format `array` is not supported"),
            ("%%MatrixMarket matrix coordinate real general\n3 4 1\n", "file:2: the matrix has 3 rows and 4 columns"),
            ("%%MatrixMarket matrix coordinate real general\n3 3\n", "file:2: `3 3` is not the size of a matrix"),
            ("%%MatrixMarket matrix coordinate real general\n3 3 1\n0 1 1\n", "file:3: index 0 found"),
            ("%%MatrixMarket matrix coordinate real general\n3 3 1\n1 4 1\n", "file:3: index 4 found"),
            ("%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 1\n", "file:4: the text ends after 1 entry"),
            ("%%MatrixMarket matrix coordinate real general\n3 3 1\n1 1 1\n2 2 1\n", "file:4: more entries than the 1"),
        ] {
            assert!(of(read_matrix, text).unwrap_err().starts_with(error), "{text}: {:?}", of(read_matrix, text));
        }
    }

    #[test]
    fn memory_is_compared_before_it_is_taken() {
        let huge = "%%MatrixMarket matrix coordinate real general\n1000000000 1000000000 1\n1 1 1\n";
        let error = read_matrix("file", huge.as_bytes(), MemoryBudget::free(1 << 30)).map(drop).unwrap_err().to_string();
        assert!(error.starts_with("file:2: 1,000,000,000 states and 1 transition need 7.45 GiB"), "{error}");
        let error = read("file", "0 1000000000\n".as_bytes(), MemoryBudget::free(1 << 30)).map(drop).unwrap_err().to_string();
        assert!(error.starts_with("1,000,000,001 states and 1 transition need"), "{error}");
    }
}
