//! Writes the distinct rows of a NumPy array in the order in which they first occur, and the number of each row's distinct row.
//!
//! ```text
//! cargo run --release --example factorize -- array.npy numbers.npy distinct.npy
//! ```
//!
//! The result is that of `numpy.unique(array, axis=0, return_inverse=True)`, except for the order of the distinct rows, and for
//! one column that of pandas' `factorize`: `distinct[numbers]` is the array. Here it is one call, `factorize_many` of an
//! `IndexedTable`. The array may have any number of dimensions; a row is the part that a value of the first index selects, of up
//! to 1,024 bytes. Rows are equal if their bytes are: a NaN equals itself, and 0.0 differs from -0.0.

use anyhow::{Context, Result, ensure};
use clap::Parser;
use output::{Identity, Output};
use printing::{print, print_error};
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use warpset::{IndexedTable, Spec};
use warpset_support::{device, exit, npy_header, npy_rows, npy_writer, output, printing, program};

const AFTER_HELP: &str = "\
Exit codes:
  0  everything was written
  2  an error in the command line, a file or the machine";

/// Numbers the distinct rows of an array.
#[derive(Debug, Parser)]
#[command(name = "factorize", after_help = AFTER_HELP)]
struct Options {
    /// Input array: a .npy file with rows of at most 1,024 bytes.
    array: PathBuf,

    /// Output: the number of each row's distinct row, a .npy file of dtype `<u8`. The three files must differ.
    numbers: PathBuf,

    /// Output: the distinct rows, a .npy file with the dtype of the array.
    distinct: PathBuf,

    /// Device of the table: best, cpu, cpu:THREADS, gpu or gpu:NUMBER.
    #[arg(long, default_value = "best")]
    device: device::DeviceChoice,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(&program::sentence(&error));
            exit::ERROR.into()
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let about = || options.array.display().to_string();
    let (mut data, identity) = read(&options.array).with_context(about)?;
    let (header, row_bytes) = npy_rows::split_header(&mut data).with_context(about)?;
    let most = 4 * Spec::MAX_WIDTH;
    ensure!(row_bytes <= most, "{}: a row has {row_bytes} bytes, but at most {most} are possible", about());
    let open = |name, path| {
        let output = Output::open(name, path)?;
        output.ensure_is_not("the array", identity.as_ref())?;
        output.ensure_is_not_standard_output()?;
        anyhow::Ok(output)
    };
    let (to_numbers, to_distinct) = (open("NUMBERS", &options.numbers)?, open("DISTINCT", &options.distinct)?);
    to_numbers.ensure_differs_from(&to_distinct)?;

    // Vectors consist of words: rows of other sizes are padded with zeros.
    let width = row_bytes.div_ceil(4);
    let mut words = vec![0u32; data.len() / row_bytes * width];
    for (vector, row) in words.chunks_exact_mut(width).zip(data.chunks_exact(row_bytes)) {
        bytemuck::cast_slice_mut(vector)[..row_bytes].copy_from_slice(row);
    }
    let device = options.device.open()?;
    let start = Instant::now();
    let factors = IndexedTable::builder(width).factorize_many(&device, &words)?;
    let seconds = start.elapsed().as_secs_f64();

    let rows = factors.numbers.len();
    let numbers = factors.numbers.iter().map(|number| number.to_le_bytes());
    write(to_numbers, "<u8", &format!("({rows},)"), numbers)?;
    let distinct = factors.distinct.chunks_exact(width).map(|vector| &bytemuck::cast_slice::<u32, u8>(vector)[..row_bytes]);
    let count = distinct.len();
    let inner: String = header.shape[1..].iter().map(|size| format!("{size}, ")).collect();
    let dtype = npy_header::string(&header.descr).expect("its elements have a size");
    write(to_distinct, dtype, &format!("({count}, {inner})"), distinct)?;
    print(&format!("{rows} rows of {row_bytes} bytes, {count} distinct; on {device}, in {seconds:.3} s\n"))
}

/// Contents of a file, and its identity.
fn read(path: &Path) -> Result<(Vec<u8>, Option<Identity>)> {
    let mut file = File::open(path)?;
    let mut data = Vec::new();
    file.read_to_end(&mut data)?;
    Ok((data, Identity::from_file(file).ok()))
}

/// Writes an array of this dtype and shape.
fn write(output: Output, dtype: &str, shape: &str, mut elements: impl Iterator<Item: AsRef<[u8]>>) -> Result<()> {
    output.write(|file| {
        let mut file = BufWriter::new(file);
        file.write_all(&npy_writer::npy_header(dtype, shape))?;
        elements.try_for_each(|element| file.write_all(element.as_ref()))?;
        Ok(file.flush()?)
    })
}
