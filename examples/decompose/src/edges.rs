//! Reads lists of edges, and matrices in the MatrixMarket format.
//!
//! A list of edges has a line `SOURCE TARGET` for each edge, with numbers from 0 on, separated by blanks, tabs, commas or
//! semicolons. Further columns (weights, times) are ignored, but all lines must have the same number of columns. Comments are
//! ignored, too: lines that begin with `#`, `%` or `//`. If the first line does not begin with a number, it names the columns,
//! and the names select the two columns to read. Fields may be in quotes, as in CSV. The largest number determines the number of
//! states.
//!
//! In a MatrixMarket file, the entry in row i and column j is an edge from i to j; rows are counted from 1. An entry of a
//! symmetric matrix is an edge in both directions. The value of an entry does not matter: even an explicit 0 is an edge, as in
//! `scipy.sparse.csgraph`.

use crate::graph::{self, Graph, MOST_STATES};
use anyhow::{Context, Result, anyhow, bail, ensure};
use std::cell::RefCell;
use std::io::{Cursor, Error, ErrorKind, Read};
use warpset_support::lines::{Lines, MOST_BYTES, excerpt, for_each, number, placed};
use warpset_support::memory::MemoryBudget;
use warpset_support::numbers::counted;

/// Number of edges that are read between two comparisons of their memory with the budget.
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

/// Names of the columns of sources and of targets. A comparison ignores case, marks and the endings `id`, `node`, `vertex` and
/// `state`.
const SOURCES: [&str; 3] = ["source", "from", "src"];
const TARGETS: [&str; 5] = ["target", "to", "dst", "dest", "destination"];

/// Pairs of names for the columns of sources and targets. They count only together, and only if no column has one of the names
/// above.
const PAIRS: [(&str, &str); 5] = [("start", "end"), ("tail", "head"), ("node1", "node2"), ("id1", "id2"), ("u", "v")];

/// The columns of a list of edges.
#[derive(Clone, Copy, Debug)]
struct Columns {
    /// The character between columns; `None` if blanks separate them. It is used for lines with quotes, and for all lines if the
    /// columns have names.
    delimiter: Option<u8>,
    source: usize,
    target: usize,
    /// The column that marks edges as `undirected`, if there is one.
    direction: Option<usize>,
    count: usize,
    are_named: bool,
    /// Whether the first column has the sources, the second column has the targets, and no column has the direction.
    are_first: bool,
}

impl Columns {
    /// Finds the columns of edges from their names. `line` is the first line, which has the names.
    fn named<'t>(names: impl Iterator<Item = &'t [u8]>, delimiter: Option<u8>, line: &[u8]) -> Result<Self> {
        let written: Vec<_> = names.map(String::from_utf8_lossy).collect();
        let names: Vec<String> = written.iter().map(|name| plain_name(name)).collect();
        let of = |known: &[&str]| (0..names.len()).filter(|column| known.contains(&&*names[*column])).collect::<Vec<_>>();
        let (mut sources, mut targets) = (of(&SOURCES), of(&TARGETS));
        if sources.is_empty() && targets.is_empty() {
            let pairs = PAIRS.map(|(source, target)| (of(&[source]), of(&[target])));
            let pair = pairs.into_iter().find(|(sources, targets)| !sources.is_empty() && !targets.is_empty());
            (sources, targets) = pair.with_context(|| {
                format!(
                    "`{}` is neither an edge nor names its columns: two numbers from 0 on, or names such as `source` and \
                     `target`, were expected",
                    excerpt(line)
                )
            })?;
        }
        let only = |columns: &[usize], what: &str, known: &[&str]| match columns {
            [column] => Ok(*column),
            [] => bail!("`{}` names no column of {what}: `{}` was expected", excerpt(line), known.join("`, `")),
            [one, other, ..] => {
                bail!("`{}` has two columns of {what}: `{}` and `{}`", excerpt(line), written[*one], written[*other])
            }
        };
        let (source, target) = (only(&sources, "sources", &SOURCES)?, only(&targets, "targets", &TARGETS)?);
        let direction = of(&["type"]).first().copied();
        let are_first = (source, target, direction) == (0, 1, None);
        Ok(Self { delimiter, source, target, direction, count: names.len(), are_named: true, are_first })
    }

    /// The columns of a list without names. `count` is the number of fields of its first edge.
    fn unnamed(count: usize) -> Self {
        Self { delimiter: None, source: 0, target: 1, direction: None, count, are_named: false, are_first: true }
    }

    /// Whether the first field of an edge need not be a number.
    fn may_begin_with_text(&self) -> bool {
        self.source.min(self.target) > 0
    }

    /// Reads an edge from its fields.
    fn row<'t>(&self, fields: impl Iterator<Item = &'t [u8]>) -> Row {
        let mut row = Row::default();
        for (column, field) in fields.enumerate() {
            if column == self.source {
                row.source = number(field);
            } else if column == self.target {
                row.target = number(field);
            } else if Some(column) == self.direction {
                row.is_undirected = field.eq_ignore_ascii_case(b"undirected");
            }
            row.columns += 1;
        }
        row
    }
}

/// Returns the name of a column in the form that is compared: `FromNodeId` and `from_id` become `from`, and `:START_ID(Person)`
/// becomes `start`.
fn plain_name(name: &str) -> String {
    let name = name.split('(').next().unwrap_or_default();
    let mut name = name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    for ending in ["id", "node", "vertex", "state"] {
        if let Some(length) = name.strip_suffix(ending).map(str::len).filter(|length| *length > 0) {
            name.truncate(length);
        }
    }
    name
}

/// The edge in a line. A source or target that is not a number is `None`.
#[derive(Default)]
struct Row {
    source: Option<u64>,
    target: Option<u64>,
    is_undirected: bool,
    columns: usize,
}

/// Whether a line, without surrounding blanks, is a comment.
fn is_comment(line: &[u8]) -> bool {
    line.starts_with(b"#") || line.starts_with(b"%") || line.starts_with(b"//")
}

/// Whether the first line, which begins with `first`, names the columns.
fn is_name(first: &[u8]) -> bool {
    !first.first().is_some_and(|byte| byte.is_ascii_digit() || b"+-.".contains(byte))
}

/// Returns the mark between the fields of a line, which is the first one outside quotes; `None` if blanks separate them.
fn delimiter_of(line: &[u8]) -> Option<u8> {
    let mut outside = line.split(|byte| *byte == b'"').step_by(2).flatten().copied();
    outside.find(|byte| b",;\t".contains(byte))
}

/// Returns the fields of a line without quotes. Removes blanks around each field.
fn fields_at(line: &[u8], delimiter: Option<u8>) -> impl Iterator<Item = &[u8]> {
    let is_end = move |byte: &u8| delimiter.map_or(byte.is_ascii_whitespace(), |delimiter| *byte == delimiter);
    line.split(is_end).map(<[u8]>::trim_ascii).filter(move |field| delimiter.is_some() || !field.is_empty())
}

/// Returns the number at the beginning of a text, and the rest of the text.
fn leading_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let (mut value, mut length) = (0u64, 0);
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            break;
        }
        value = value.wrapping_mul(10).wrapping_add(digit.into());
        length += 1;
    }
    // Numbers of 19 digits fit 64 bits.
    (1..=19).contains(&length).then_some((value, &text[length..]))
}

/// An edge whose first two columns are its source and target.
struct Edge {
    source: u64,
    target: u64,
    columns: usize,
    /// The mark after the first number, which separates all columns; `None` if blanks separate them.
    delimiter: Option<u8>,
}

/// Reads an edge; `None` if the line does not begin with two numbers, or has quotes.
fn edge(line: &[u8]) -> Option<Edge> {
    let (source, rest) = leading_number(line)?;
    let behind = rest.trim_ascii_start();
    let delimiter = match behind.first()? {
        mark @ (b',' | b';') => Some(*mark),
        _ if rest.len() == behind.len() => return None,
        _ if rest.len() == behind.len() + 1 && rest[0] == b'\t' => Some(b'\t'),
        _ => None,
    };
    let behind = if matches!(delimiter, Some(b',' | b';')) { behind[1..].trim_ascii_start() } else { behind };
    let (target, rest) = leading_number(behind)?;
    let more = match delimiter {
        _ if rest.trim_ascii().is_empty() && (delimiter != Some(b'\t') || !rest.contains(&b'\t')) => 0,
        Some(mark) if rest.trim_ascii_start().first() == Some(&mark) || rest[0] == mark => {
            if rest.contains(&b'"') {
                return None;
            }
            rest.iter().filter(|byte| **byte == mark).count()
        }
        Some(b',' | b';') => return None,
        _ if !rest[0].is_ascii_whitespace() => return None,
        _ => {
            // NetworkX writes all attributes as one dictionary at the end of the line.
            let begins = |pair: &[u8]| pair[0].is_ascii_whitespace() && pair[1] == b'{';
            let end = rest.windows(2).position(begins).unwrap_or(rest.len());
            if rest[..end].contains(&b'"') {
                return None;
            }
            fields_at(&rest[..end], None).count() + usize::from(end < rest.len())
        }
    };
    Some(Edge { source, target, columns: 2 + more, delimiter })
}

/// A list of edges that is being read.
struct List {
    edges: Edges,
    /// The columns, which are known after the first line that is not a comment.
    columns: Option<Columns>,
}

impl List {
    /// Reads a line. If the line has quotes, does nothing and returns false.
    fn line(&mut self, line: &[u8]) -> Result<bool> {
        if self.columns.is_none_or(|columns| columns.are_first)
            && let Some(Edge { source, target, columns, delimiter }) = edge(line.trim_ascii_start())
            && self.columns.is_none_or(|columns| !columns.are_named || columns.delimiter == delimiter)
        {
            return self.edge(source, target, columns, || excerpt(line.trim_ascii())).map(|()| true);
        }
        let text = line.trim_ascii();
        if text.is_empty() {
            return Ok(true);
        }
        let has_quotes = text.contains(&b'"');
        if has_quotes && (!is_comment(text) || self.columns.as_ref().is_some_and(Columns::may_begin_with_text)) {
            return Ok(false);
        }
        if self.is_comment(text, |columns| columns.row(fields_at(line, columns.delimiter)))? {
            return Ok(true);
        }
        match self.columns {
            None if is_name(text) => {
                let delimiter = delimiter_of(line);
                self.columns = Some(Columns::named(fields_at(line, delimiter), delimiter, text)?);
            }
            Some(columns) if columns.are_named => {
                let row = columns.row(fields_at(line, columns.delimiter));
                self.row(&row, || excerpt(text))?;
            }
            _ => self.row(&Row::default(), || excerpt(text))?,
        }
        Ok(true)
    }

    /// Adds an edge. `count` is the number of columns of its row, and `shown` returns the row for messages.
    fn edge(&mut self, source: u64, target: u64, count: usize, shown: impl Fn() -> String) -> Result<()> {
        let columns = self.columns.get_or_insert_with(|| Columns::unnamed(count));
        if count != columns.count {
            let first = if columns.are_named { "line names" } else { "edge has" };
            bail!("`{}` has {}, but the first {first} {}", shown(), counted(count as u64, "column"), columns.count);
        }
        let largest = source.max(target);
        ensure!(largest < MOST_STATES, "the state {largest} is too large: the largest possible is {}", MOST_STATES - 1);
        self.edges.add(source, target)
    }

    fn row(&mut self, row: &Row, shown: impl Fn() -> String) -> Result<()> {
        let Row { source: Some(source), target: Some(target), is_undirected, columns } = *row else {
            bail!("`{}` is not an edge: two states were expected, numbers from 0 on", shown());
        };
        self.edge(source, target, columns, shown)?;
        if is_undirected && source != target { self.edges.add(target, source) } else { Ok(()) }
    }

    /// Whether a line, without surrounding blanks, is a comment. `row` reads the line as an edge.
    ///
    /// # Errors
    ///
    /// The line may also be an edge whose first field begins like a comment.
    fn is_comment(&self, line: &[u8], row: impl FnOnce(&Columns) -> Row) -> Result<bool> {
        if !is_comment(line) {
            return Ok(false);
        }
        if let Some(columns) = self.columns.filter(Columns::may_begin_with_text) {
            let Row { source, target, columns: count, .. } = row(&columns);
            ensure!(
                source.is_none() || target.is_none() || count != columns.count,
                "`{}` begins like a comment, but has the columns of an edge: put its first field in quotes, or remove the line",
                excerpt(line)
            );
        }
        Ok(true)
    }

    /// Reads the rest of a list, beginning with a line that has quotes. `first` is the number of that line.
    fn quoted(&mut self, name: &str, line: Vec<u8>, first: u64, rest: impl Read) -> Result<()> {
        let delimiter = match self.columns {
            Some(columns) if columns.are_named => columns.delimiter,
            _ => delimiter_of(&line),
        };
        let mark = delimiter.unwrap_or(b' ');
        let copy = RefCell::default();
        let text = Copied { reader: Cursor::new(line).chain(&b"\n"[..]).chain(rest).chain(&b"\n"[..]), copy: &copy };
        let mut builder = csv::ReaderBuilder::new();
        let mut reader = builder.delimiter(mark).has_headers(false).flexible(true).from_reader(text);
        let (mut record, mut number) = (csv::ByteRecord::new(), first);
        loop {
            let begin = reader.position().byte();
            let is_over = !reader.read_byte_record(&mut record).map_err(|error| match error.kind() {
                csv::ErrorKind::Io(error) if error.kind() == ErrorKind::FileTooLarge => placed(name, number, anyhow!("{error}")),
                _ => anyhow!(error).context(format!("{name} cannot be read")),
            })?;
            if is_over {
                return Ok(());
            }
            let length = (reader.position().byte() - begin) as usize;
            let whole: Vec<u8> = copy.borrow_mut().drain(..length).collect();
            // Cut off empty lines before the record, and the end of its line.
            let empty = whole.iter().take_while(|byte| **byte == b'\n').count();
            let lines = whole.iter().filter(|byte| **byte == b'\n').count() as u64;
            let text = whole[empty..].strip_suffix(b"\n").unwrap_or(&whole[empty..]);
            self.record(&record, text, delimiter).map_err(|error| placed(name, number + empty as u64, error))?;
            number += lines;
        }
    }

    /// Reads a record. `text` is the record as it is written in the file.
    fn record(&mut self, record: &csv::ByteRecord, text: &[u8], delimiter: Option<u8>) -> Result<()> {
        // A comment may contain quotes, but a quote must not make it swallow further lines.
        let is_one_line_comment = is_comment(text) && !text.contains(&b'\n');
        ensure!(
            is_one_line_comment || (!is_comment(text) && is_strict(record, text, delimiter.unwrap_or(b' '))),
            "`{}` has a quote that is not closed, or is not at the beginning or end of a field",
            excerpt(text)
        );
        let fields = || record.iter().map(<[u8]>::trim_ascii).filter(|field| delimiter.is_some() || !field.is_empty());
        let text = text.trim_ascii();
        if text.is_empty() || self.is_comment(text, |columns| columns.row(fields()))? {
            return Ok(());
        }
        if self.columns.is_none() && is_name(record.get(0).unwrap_or_default().trim_ascii()) {
            self.columns = Some(Columns::named(fields(), delimiter, text)?);
            return Ok(());
        }
        let columns = self.columns.unwrap_or_else(|| Columns::unnamed(fields().count()));
        self.row(&columns.row(fields()), || excerpt(text))
    }
}

/// Whether a record has quotes only around whole fields, and doubles quotes inside these. CSV readers also accept other quotes.
fn is_strict(record: &csv::ByteRecord, text: &[u8], mark: u8) -> bool {
    let rest_behind = |text: Option<&'_ [u8]>, field: &[u8], is_first: bool| {
        let text = if is_first { text? } else { text?.strip_prefix(&[mark])? };
        let Some(mut inside) = text.strip_prefix(b"\"") else {
            return text.strip_prefix(field).filter(|_| !field.contains(&b'"')).map(<[u8]>::len);
        };
        for (number, piece) in field.split(|byte| *byte == b'"').enumerate() {
            inside = if number > 0 { inside.strip_prefix(b"\"\"")? } else { inside }.strip_prefix(piece)?;
        }
        inside.strip_prefix(b"\"").map(<[u8]>::len)
    };
    let mut rest = Some(text);
    for (column, field) in record.iter().enumerate() {
        rest = rest_behind(rest, field, column == 0).map(|length| &text[text.len() - length..]);
    }
    rest.is_some_and(<[u8]>::is_empty)
}

/// A reader that copies what it reads, until the copy is removed. Returns an error when the copy has more than [`MOST_BYTES`].
struct Copied<'c, R> {
    reader: R,
    copy: &'c RefCell<Vec<u8>>,
}

impl<R: Read> Read for Copied<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.copy.borrow().len() > MOST_BYTES {
            let error = format!("a record has more than {}: a quote may not be closed", counted(MOST_BYTES as u64, "byte"));
            return Err(Error::new(ErrorKind::FileTooLarge, error));
        }
        let count = self.reader.read(buffer)?;
        self.copy.borrow_mut().extend_from_slice(&buffer[..count]);
        Ok(count)
    }
}

/// Reads a list of edges to its end.
///
/// # Errors
///
/// The text has an error (the first one is returned, with the file's name and the line), or memory does not suffice (the error
/// has the numbers).
pub fn read(name: &str, reader: impl Read, budget: MemoryBudget) -> Result<Graph> {
    let mut list = List { edges: Edges::new(budget), columns: None };
    let mut lines = Lines::new(name, reader);
    let quoted = loop {
        let Some((number, line)) = lines.next_line()? else { break None };
        if !list.line(line).map_err(|error| placed(name, number, error))? {
            break Some((number, line.to_vec()));
        }
    };
    if let Some((number, line)) = quoted {
        list.quoted(name, line, number, lines.rest())?;
    }
    ensure!(list.edges.states > 0, "{name}: there are no edges");
    list.edges.graph(name)
}

/// Reads a matrix in the MatrixMarket format to its end.
///
/// # Errors
///
/// As for [`read`]. Also if the matrix is not square, or has a form that is not supported.
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

/// Whether the matrix is symmetric, as the first line says.
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
            "# a comment\n0\t1\t0.5\n\n% another\n1;2;x\n// more\n2 , 0 , 1\n",
            "  0   1  a\n1 2\tb \n2\t0 c\n",
            "0\t1\ta label\n1\t2\t\n2\t0\tanother label\n",
            "0,1,\n1,2,x\n2,0,\n",
            "0;1;0,5\n1;2;1\n2;0;1\n",
            "0 1 {'weight': 3, 'color': 'red'}\n1 2 {}\n2 0 {'weight': 4}\n",
            "source target a\n0 1 b\n1 2 {c\n2 0 d\n",
            "source,target\n0,1\n1,2\n2,0\n",
        ] {
            assert_eq!(of(read, text), Ok((vec![0, 1, 2, 3], vec![1, 2, 0])), "{text}");
        }
        // States without edges are allowed, and edges in any order.
        assert_eq!(of(read, "4 0\n0 4\n0 0\n"), Ok((vec![0, 2, 2, 2, 2, 3], vec![4, 0, 0])));
        for (text, error) in [
            ("", "file: there are no edges"),
            ("source,target\n", "file: there are no edges"),
            ("0 1\n1\n", "file:2: `1` is not an edge"),
            ("0 1\na b\n", "file:2: `a b` is not an edge"),
            ("0 -1\n", "file:1: `0 -1` is not an edge"),
            ("0 1.5\n", "file:1: `0 1.5` is not an edge"),
            ("0,1.5\n", "file:1: `0,1.5` is not an edge"),
            (",0,1\n", "file:1: `,0,1` is neither an edge nor names its columns"),
            ("0,,1\n", "file:1: `0,,1` is not an edge"),
            ("0 4294967295\n", "file:1: the state 4294967295 is too large: the largest possible is 4294967293"),
            ("0 1\n1 2 3\n", "file:2: `1 2 3` has 3 columns, but the first edge has 2"),
            ("0 11 22 0\n1 2\n", "file:2: `1 2` has 2 columns, but the first edge has 4"),
            ("0,1,2\n\n1,2\n", "file:3: `1,2` has 2 columns, but the first edge has 3"),
        ] {
            assert!(of(read, text).unwrap_err().starts_with(error), "{text}: {:?}", of(read, text));
        }
    }

    #[test]
    fn columns_are_read_by_their_names() {
        for text in [
            "Id,Source,Target\n7,0,1\n8,1,2\n9,2,0\n",
            "Target,Source\n1,0\n2,1\n0,2\n",
            "weight;To;label;From\n1;1;a,b;0\n;2;;1\n2;0;x;2\n",
            "label\tFromNodeId\tToNodeId\na b\t0\t1\n\t1\t2\nc\t2\t0\n",
            "name\tdst\tsrc\tend\nx y\t1\t0\t\nz\t2\t1\t\n\t0\t2\t5\n",
            "weight from   to\n5 0 1\n5  1 2\n5\t2 0\n",
            ",source,target\n0,0,1\n1,1,2\n2,2,0\n",
            ":TYPE,:END_ID,:START_ID(Person)\nK,1,0\nK,2,1\nK,0,2\n",
            "# Nodes: 3\nid_1,id_2\n0,1\n1,2\n2,0\n",
            "SOURCE_ID, target-id \n 0 , 1 \n1,2\n2,0\n",
            "source,target,2019\n0,1,2\n1,2,2\n2,0,2\n",
            "Source,Target,Start,End,Type\n0,1,1,2,Directed\n1,2,1,2,directed\n2,0,1,2,\n",
        ] {
            assert_eq!(of(read, text), Ok((vec![0, 1, 2, 3], vec![1, 2, 0])), "{text}");
        }
        // Gephi writes edges without a direction in this form.
        let text = "Source,Target,Type,Id\n0,1,Undirected,0\n1,1,Undirected,1\n1,2,Directed,2\n";
        assert_eq!(of(read, text), Ok((vec![0, 1, 4, 4], vec![1, 0, 1, 2])));
        for (text, error) in [
            ("Id,Label\n0,1\n", "file:1: `Id,Label` is neither an edge nor names its columns"),
            ("alice bob\n", "file:1: `alice bob` is neither an edge nor names its columns"),
            ("source,weight\n0,1\n", "file:1: `source,weight` names no column of targets: `target`, `to`"),
            ("weight,to\n0,1\n", "file:1: `weight,to` names no column of sources: `source`, `from`"),
            ("source,target,Source\n0,1,2\n", "file:1: `source,target,Source` has two columns of sources: `source` and `Source`"),
            ("source,from,target\n0,1,2\n", "file:1: `source,from,target` has two columns of sources: `source` and `from`"),
            ("source,target,weight\n0,1\n", "file:2: `0,1` has 2 columns, but the first line names 3"),
            ("source,target\n0,1,5\n", "file:2: `0,1,5` has 3 columns, but the first line names 2"),
            ("Id,Source,Target\n7,0,\n", "file:2: `7,0,` is not an edge"),
            ("Id,Source,Target\n7,0\n", "file:2: `7,0` is not an edge"),
        ] {
            assert!(of(read, text).unwrap_err().starts_with(error), "{text}: {:?}", of(read, text));
        }
    }

    #[test]
    fn quotes_are_read() {
        for text in [
            "\"Source\",\"Target\"\n0,1\n1,2\n2,0\n",
            "\"Source\",\"Target\",\"Weight\"\n\"0\",\"1\",\"2\"\n\"1\",2,1\n2,\"0\",1\n",
            "\"0\",\"1\"\n\"1\",\"2\"\n\"2\",\"0\"\n",
            "0,1,a\n1,2,\"b, c\"\n2,0,d\n",
            "0,1,a\n1,2,\"b\nc\"\"d\"\"\"\n2,0,d\n",
            "label;to;from\n\"a;b\";1;0\n;\"2\";1\n\"\"\"\";0;2\n",
            "# \"a comment\n\"a \"\"b\"\"\",target,source\n\"c,\nd\",1,0\n# more\n\"\",2,1\n,0,2\n",
            "a,from,to\n\"#x\",0,1\n#x,1\n\"//\",1,2\n# \"y\" z,\"a\"b\n\"%\",2,0\n",
            "\"from\" \"to\" \"label\"\n0 1 \"a b\"\n1 2 \"c\"\n2 0 \"d\"\n",
            "0\t1\ta, b\n1\t2\t\"c\td\"\n2\t0\te\n",
            "0\t1\ta,b\tc\n1\t2\ta,b\t\"d\"\n2\t0\t;\t\n",
            "\"from\",\"to\"\n\n0,1\n\n1,2\n% a comment\n2,0\n",
        ] {
            assert_eq!(of(read, text), Ok((vec![0, 1, 2, 3], vec![1, 2, 0])), "{text}");
        }
        for (text, error) in [
            ("source,target\n\"0,1\n1,0\n", "file:2: `\\\"0,1\\n1,0\\n` has a quote that is not closed"),
            ("source,target,label\n0,1,\"a\n1,0,b\n", "file:2: `0,1,\\\"a\\n1,0,b\\n` has a quote that is not closed"),
            ("source,target,label\n\n0,1,\"a\n1,0,\"b\n", "file:3: `0,1,\\\"a\\n1,0,\\\"b` has a quote that is not closed"),
            ("a,from,to\n\"\",0,1\n2\",0,1\n3\",1,0\n", "file:3: `2\\\",0,1` has a quote that is not closed"),
            ("\"from\",to\n0,1\n#,\"a\n1,0\n\"\n", "file:3: `#,\\\"a\\n1,0\\n\\\"` has a quote that is not closed"),
            ("from,to\n\"1\"2,1\n", "file:2: `\\\"1\\\"2,1` has a quote that is not closed"),
            ("a,from,to\n\"\",0,1\n\n#x,1,2\n", "file:4: `#x,1,2` begins like a comment"),
            ("a,from,to\n%x,1,2\n", "file:2: `%x,1,2` begins like a comment"),
            ("a,b,from,to\n%x,\"y,z\",1,2\n", "file:2: `%x,\\\"y,z\\\",1,2` begins like a comment"),
            ("\"source\",\"target\"\n0,1\n\n1,x\n", "file:4: `1,x` is not an edge"),
            ("\"source\",\"target\"\n0,1\n1,0,5\n", "file:3: `1,0,5` has 3 columns, but the first line names 2"),
            ("0,1\n1,\"0\",5\n", "file:2: `1,\\\"0\\\",5` has 3 columns, but the first edge has 2"),
            ("\"a\",\"b\"\n\"0\",\"1\"\n", "file:1: `\\\"a\\\",\\\"b\\\"` is neither an edge nor names its columns"),
        ] {
            assert!(of(read, text).unwrap_err().starts_with(error), "{text}: {:?}", of(read, text));
        }
    }

    #[test]
    fn quotes_that_are_not_closed_take_little_memory() {
        let mut left = 4 * MOST_BYTES as u64;
        let endless = Read::take(std::io::repeat(b'\n'), left);
        let text = Read::chain(&b"0,1,a\n1,0,\"b\n"[..], endless);
        let error = read("file", Counted { reader: text, left: &mut left }, MemoryBudget::free(1 << 30)).map(drop).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("file:2: a record has more than 16,777,216 bytes: a quote"), "{error}");
        assert!(left > 2 * MOST_BYTES as u64, "{left}");
    }

    /// Counts the bytes that remain to be read.
    struct Counted<'l, R> {
        reader: R,
        left: &'l mut u64,
    }

    impl<R: Read> Read for Counted<'_, R> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = self.reader.read(buffer)?;
            *self.left = self.left.saturating_sub(count as u64);
            Ok(count)
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
