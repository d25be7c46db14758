//! Writes a state space to a file: states numbered in discovery order (numbering.rs), and all transitions.
//!
//! Transitions go to a temporary file as they are found, because the file begins with their number. The requested file is written
//! after the search is complete, and is not touched otherwise. An error of writing does not end the search: its counts stay
//! exact.
//!
//! Steps of a product have the same labels as without the property.

use crate::archive::{UntilError, plain};
use anyhow::{Context, Error, Result, bail};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::Path;
use warpset_model::interpreter::Step;
use warpset_model::ir::Model;
use warpset_model::network::HIDDEN;
use warpset_model::trace::step_name;
use warpset_search::exploration::Counts;
use warpset_search::numbering::StateSpace;
use warpset_support::escaping;
use warpset_support::npy_writer::npy_header;
use warpset_support::output::Output;
use warpset_support::program;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Format of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text with the labels of transitions.
    Aut,
    /// A picture for Graphviz, drawn after the search.
    Dot,
    /// The arrays `offsets` and `targets`: state s leads to `targets[offsets[s] .. offsets[s + 1]]`.
    Npz,
}

impl Form {
    /// Chooses the format by the extension of the file's name.
    pub fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("aut") => Ok(Self::Aut),
            Some("npz") => Ok(Self::Npz),
            Some("dot") => Ok(Self::Dot),
            _ => bail!("--export: the name of {} must end with .aut, .npz or .dot", path.display()),
        }
    }
}

/// Amount written.
#[derive(Clone, Copy, Debug)]
pub struct Exported {
    pub bytes: u64,
}

/// A state space that is being written to a file.
pub struct Export<'m> {
    model: &'m Model,
    file: Writer,
    output: Option<Output>,
    /// Amount written, or the first error; `None` until all states and transitions are complete.
    pub exported: Option<Result<Exported>>,
}

impl<'m> Export<'m> {
    pub fn new(model: &'m Model, form: Form, output: Output) -> Result<Self> {
        Ok(Self { model, file: Writer::new(form)?, output: Some(output), exported: None })
    }

    /// Keeps the first error, after which nothing is written.
    fn keep(&mut self, written: Result<()>) {
        if let Err(error) = written {
            program::print_warning(&escaping::lines(&format!("warning: --export: nothing will be written: {error:#}\n")));
            self.exported = Some(Err(error));
        }
    }
}

impl StateSpace for Export<'_> {
    fn transition(&mut self, source: usize, target: u32, step: Option<Step>) {
        if self.exported.is_none() {
            let model = self.model;
            let written = self.file.transition(source, target, || text_of(model, step), step);
            self.keep(written);
        }
    }

    fn end_of_state(&mut self) {
        if self.exported.is_none() {
            let written = self.file.end_of_state();
            self.keep(written);
        }
    }

    fn complete(&mut self, counts: &Counts) {
        if self.exported.is_none() {
            let output = self.output.take().ok_or_else(|| Error::msg("a state space is written once"));
            self.exported = Some(output.and_then(|output| self.file.finish(counts.states, counts.transitions, output)));
        }
    }
}

/// Label of a step.
fn text_of(model: &Model, step: Option<Step>) -> Cow<'_, str> {
    match step {
        Some(Step::Rule(rule)) => model.rule_label(rule).into(),
        Some(step) => step_name(model, step, None).into(),
        None => HIDDEN.into(),
    }
}

/// The parts of the file, as temporary files until all are complete.
enum Writer {
    Aut {
        lines: BufWriter<File>,
        /// Labels as written, by step; rules of a network are not cached.
        labels: HashMap<Option<Step>, String>,
    },
    Npz {
        offsets: BufWriter<File>,
        targets: BufWriter<File>,
        transitions: u64,
    },
}

impl Writer {
    fn new(form: Form) -> Result<Self> {
        let temporary = || {
            let file = tempfile::tempfile().context("no temporary file can be created for the exported state space")?;
            Ok::<_, anyhow::Error>(BufWriter::with_capacity(1 << 20, file))
        };
        Ok(match form {
            Form::Dot => bail!("a picture is not drawn during a search"),
            Form::Aut => Self::Aut { lines: temporary()?, labels: HashMap::new() },
            Form::Npz => {
                let mut offsets = temporary()?;
                offsets.write_all(&0u64.to_le_bytes())?;
                Self::Npz { offsets, targets: temporary()?, transitions: 0 }
            }
        })
    }

    /// Writes a transition of the current state. `text` makes its label if it is not cached.
    fn transition<'t>(
        &mut self,
        source: usize,
        target: u32,
        text: impl FnOnce() -> Cow<'t, str>,
        step: Option<Step>,
    ) -> Result<()> {
        match self {
            Self::Aut { lines, labels } => {
                if let Some(Step::Rule(_)) = step {
                    // Do not cache: a network may have as many labels as transitions, and stores their texts itself.
                    return writeln!(lines, "({source}, {}, {target})", written(&text())).context(NO_ROOM);
                }
                let label = labels.entry(step).or_insert_with(|| written(&text()).into_owned());
                writeln!(lines, "({source}, {label}, {target})").context(NO_ROOM)
            }
            Self::Npz { targets, transitions, .. } => {
                *transitions += 1;
                targets.write_all(&target.to_le_bytes()).context(NO_ROOM)
            }
        }
    }

    fn end_of_state(&mut self) -> Result<()> {
        match self {
            Self::Aut { .. } => Ok(()),
            Self::Npz { offsets, transitions, .. } => offsets.write_all(&transitions.to_le_bytes()).context(NO_ROOM),
        }
    }

    fn finish(&mut self, states: u64, transitions: u64, output: Output) -> Result<Exported> {
        let mut bytes = 0;
        output.write(|file| {
            let mut out = BufWriter::with_capacity(1 << 20, Counted { file, bytes: &mut bytes });
            match self {
                Self::Aut { lines, .. } => {
                    writeln!(out, "des (0, {transitions}, {states})")?;
                    std::io::copy(rewound(lines)?, &mut out)?;
                }
                Self::Npz { offsets, targets, .. } => {
                    let mut archive = ZipWriter::new_stream(UntilError::new(&mut out));
                    // Do not compress: it would take longer than everything before it.
                    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(true);
                    archive.start_file("offsets.npy", options).map_err(plain)?;
                    archive.write_all(&npy_header("<u8", &format!("({},)", states + 1)))?;
                    std::io::copy(rewound(offsets)?, &mut archive)?;
                    archive.start_file("targets.npy", options).map_err(plain)?;
                    archive.write_all(&npy_header("<u4", &format!("({transitions},)")))?;
                    std::io::copy(rewound(targets)?, &mut archive)?;
                    archive.finish().map_err(plain)?;
                }
            }
            out.flush()?;
            Ok(())
        })?;
        Ok(Exported { bytes })
    }
}

const NO_ROOM: &str = "the exported state space cannot be written to a temporary file";

/// The file, flushed and positioned at its beginning.
fn rewound(file: &mut BufWriter<File>) -> Result<&mut File> {
    file.flush().context(NO_ROOM)?;
    let file = file.get_mut();
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

/// Counts the bytes written.
struct Counted<'a> {
    file: &'a File,
    bytes: &'a mut u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.file.write(bytes)?;
        *self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// The label in AUT syntax: words as they are, everything else in quotes on one line.
fn written(label: &str) -> Cow<'_, str> {
    let is_word =
        label.starts_with(|c: char| c.is_ascii_alphabetic()) && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_word || label == "*" {
        return label.into();
    }
    format!("\"{}\"", escaping::line(label)).into()
}
