//! How often does each line of a file occur? Or each k-mer of its sequences, or each row of an array?
//!
//! ```text
//! cargo run --release --example count -- access.log                 # lines, of up to 1,023 bytes
//! cargo run --release --example count -- genome.fa --kmers 31       # k-mers of FASTA, or of plain sequences
//! cargo run --release --example count -- array.npy --rows           # rows of a NumPy array, of up to 1,024 bytes
//! cargo run --release --example count -- records.bin --rows 16      # rows of 16 bytes
//! ```
//!
//! A map from vectors to counts consists of an `IndexedTable`, which numbers its vectors, and an array of values by these numbers
//! ([`Values`]). Counting a batch takes two steps: put the batch, which gives each vector's reference, and add one to the value
//! at each reference. The program shows two ways: [`on_host`] uses the host API, on any device; [`OnDevice`] uses a kernel, so
//! that references never leave the GPU.
//!
//! `--verify` compares all counts with those of a `HashMap`.

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use printing::{print, print_error};
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use warpset::{IndexedTable, Reference, Request, Spec, Values, Words};
use warpset_support::{device, escaping, exit, npy_rows, printing, program};

/// Vectors per batch.
const BATCH: usize = 1 << 20;

/// Fill of the table at which it grows.
#[cfg(feature = "cuda")]
const FILL: f64 = 0.8;

const AFTER_HELP: &str = "\
Exit codes:
  0  everything was counted
  1  --verify found a difference
  2  an error in the command line, the file or the machine";

/// Counts the lines, k-mers or rows of a file.
///
/// A line has up to 1,023 bytes, a k-mer 4,096 letters, a row 1,024 bytes.
#[derive(Debug, Parser)]
#[command(name = "count", after_help = AFTER_HELP)]
struct Options {
    /// Input file: a text whose lines are counted, unless --kmers or --rows says otherwise.
    file: PathBuf,

    /// Count the k-mers of a FASTA file: words of K letters A, C, G, T, with K from 1 to 4,096. Words with other letters are
    /// left out; case does not matter. A word and its reverse complement count separately.
    #[arg(long, value_name = "K", conflicts_with = "rows", value_parser = clap::value_parser!(u16).range(1..=4096))]
    kmers: Option<u16>,

    /// Count rows of this many bytes, 1 to 1,024. Without a number: the rows of the array in a .npy file.
    #[arg(long, value_name = "BYTES", num_args = 0..=1, default_missing_value = OF_NPY, value_parser = parse_rows)]
    rows: Option<Rows>,

    /// Number of most frequent items to show.
    #[arg(long, value_name = "N", default_value = "10")]
    top: usize,

    /// Device of the table: best, cpu, cpu:THREADS, gpu or gpu:NUMBER.
    #[arg(long, default_value = "best")]
    device: device::DeviceChoice,

    /// Use the host API even if the table is on a GPU.
    #[arg(long)]
    host: bool,

    /// Compare all counts with those of a HashMap.
    #[arg(long)]
    verify: bool,
}

/// Rows that `--rows` selects.
#[derive(Clone, Copy, Debug)]
enum Rows {
    /// Rows of the array in a .npy file.
    OfNpy,
    /// Rows of this many bytes.
    Bytes(usize),
}

/// Value of `--rows` without a number.
const OF_NPY: &str = "npy";

fn parse_rows(text: &str) -> Result<Rows, String> {
    match text.parse() {
        _ if text == OF_NPY => Ok(Rows::OfNpy),
        Ok(0) => Err("a row has at least 1 byte".into()),
        Ok(bytes) => Ok(Rows::Bytes(bytes)),
        Err(_) => Err("not a whole number of bytes".into()),
    }
}

fn main() -> ExitCode {
    let code = run(&Options::parse()).unwrap_or_else(|error| {
        print_error(&program::sentence(&error));
        exit::ERROR
    });
    code.into()
}

/// Counts, prints the results, and returns the exit code.
fn run(options: &Options) -> Result<u8> {
    let (items, data) = read(options).with_context(|| options.file.display().to_string())?;
    let width = items.width(&data).with_context(|| options.file.display().to_string())?;
    let device = options.device.open()?;
    let table = IndexedTable::builder(width).capacity(1 << 16).grows(true).build(&device)?;
    let mut counts = table.values(0u64)?;
    let on_device = cfg!(feature = "cuda") && device.is_gpu() && !options.host;

    let start = Instant::now();
    let total = match on_device {
        #[cfg(feature = "cuda")]
        true => {
            let kernel = OnDevice::new(&table)?;
            in_batches(&items, &data, |words| kernel.count(&table, &mut counts, words))?
        }
        _ => in_batches(&items, &data, |words| on_host(&table, &mut counts, words))?,
    };
    let seconds = start.elapsed().as_secs_f64();

    // Vectors that kernels put may leave holes among the numbers: the iteration skips them.
    let (references, rows): (Vec<Reference>, Vec<Vec<u32>>) = table.iter().collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
    let mut found: Vec<(Vec<u8>, u64)> = rows.iter().map(|row| items.decode(row)).zip(counts.get_many(&references)?).collect();
    found.sort_unstable_by(|(item, count), (other, of_other)| of_other.cmp(count).then(item.cmp(other)));
    let way = if on_device { "a kernel" } else { "the host API" };
    let what = items.name();
    let mut report = format!("{total} {what}, {} distinct; on {device}, through {way}, in {seconds:.3} s\n", found.len());
    for (item, count) in found.iter().take(options.top) {
        report += &format!("{count:>12}  {}\n", items.text(item));
    }
    print(&report)?;
    if options.verify {
        if let Err(difference) = verify(&items, &data, &found) {
            print_error(&program::sentence(&difference));
            return Ok(exit::FOUND);
        }
        print("verified: a HashMap has the same counts\n")?;
    }
    Ok(0)
}

/// Returns an error that names the first difference from a `HashMap`'s counts.
fn verify(items: &Items, data: &[u8], found: &[(Vec<u8>, u64)]) -> Result<()> {
    let (what, mut expected) = (items.name(), HashMap::<&[u8], u64>::new());
    items.of(data).for_each(|item| *expected.entry(item).or_default() += 1);
    ensure!(expected.len() == found.len(), "a HashMap has {} distinct {what}, but the table has {}", expected.len(), found.len());
    for (item, count) in found {
        let right = expected.get(&item[..]).copied().unwrap_or(0);
        ensure!(right == *count, "a HashMap counts {} {right} times, but the table {count} times", items.text(item));
    }
    Ok(())
}

/// Kind of item to count.
enum Items {
    Lines,
    Kmers(usize),
    /// Rows of this many bytes.
    Rows(usize),
}

/// Reads the file, and removes the bytes that belong to no item (the header of an .npy file, for example).
fn read(options: &Options) -> Result<(Items, Vec<u8>)> {
    let mut data = std::fs::read(&options.file)?;
    let items = match (options.rows, options.kmers) {
        (Some(Rows::OfNpy), _) => Items::Rows(npy_rows::split_header(&mut data)?.1),
        (Some(Rows::Bytes(bytes)), _) => Items::Rows(bytes),
        (_, Some(k)) => {
            data = sequences(&data)?;
            Items::Kmers(k.into())
        }
        _ => Items::Lines,
    };
    if let Items::Rows(bytes) = items {
        ensure!(
            data.len().is_multiple_of(bytes),
            "the file's {} bytes are not a whole number of rows of {bytes} bytes",
            data.len()
        );
    }
    Ok((items, data))
}

/// The sequences of a FASTA file in capitals, each joined to one line, with a line feed between them.
fn sequences(data: &[u8]) -> Result<Vec<u8>> {
    ensure!(!data.starts_with(b"@"), "this looks like FASTQ, which is not supported; convert it to FASTA");
    let mut joined = Vec::with_capacity(data.len());
    for line in data.split(|byte| *byte == b'\n') {
        match line.first() {
            Some(b'>') => joined.push(b'\n'),
            _ => joined.extend(line.trim_ascii().to_ascii_uppercase()),
        }
    }
    Ok(joined)
}

impl Items {
    fn name(&self) -> String {
        match self {
            Self::Lines => "lines".into(),
            Self::Kmers(k) => format!("{k}-mers"),
            Self::Rows(bytes) => format!("rows of {bytes} bytes"),
        }
    }

    /// Items of a file, in their order.
    fn of<'d>(&self, data: &'d [u8]) -> Box<dyn Iterator<Item = &'d [u8]> + 'd> {
        match *self {
            // The last line may lack its line feed.
            Self::Lines => {
                Box::new(data.split_inclusive(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\n").unwrap_or(line)))
            }
            Self::Kmers(k) => Box::new(data.split(|letter| !b"ACGT".contains(letter)).flat_map(move |run| run.windows(k))),
            Self::Rows(bytes) => Box::new(data.chunks_exact(bytes)),
        }
    }

    /// Words per vector.
    fn width(&self, data: &[u8]) -> Result<usize> {
        let bytes = match *self {
            // One more byte marks the end.
            Self::Lines => self.of(data).map(|line| line.len() + 1).max().unwrap_or(1),
            Self::Kmers(k) => k.div_ceil(4),
            Self::Rows(bytes) => bytes,
        };
        let most = 4 * Spec::MAX_WIDTH;
        if bytes > most {
            let why = format!("a vector has at most {most} bytes");
            match self.of(data).position(|line| line.len() + 1 == bytes) {
                Some(at) => {
                    let (line, length, most) = (at + 1, bytes - 1, most - 1);
                    bail!(
                        "line {line} has {length} bytes, but at most {most} are possible: {why}, and one of them marks the \
                         line's end"
                    )
                }
                None => bail!("a row has {bytes} bytes, but at most {most} are possible: {why}"),
            }
        }
        Ok(bytes.div_ceil(4))
    }

    /// Appends the vector of an item, of `width` words. Distinct items have distinct vectors.
    fn encode(&self, item: &[u8], width: usize, words: &mut Vec<u32>) {
        let first = words.len();
        words.resize(first + width, 0);
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words[first..]);
        match self {
            Self::Kmers(_) => {
                for (at, letter) in item.iter().enumerate() {
                    // A, C, G, T are 0, 1, 2, 3.
                    bytes[at / 4] |= (b"ACGT".iter().position(|base| base == letter).expect("a base") as u8) << (at % 4 * 2);
                }
            }
            Self::Rows(_) => bytes[..item.len()].copy_from_slice(item),
            Self::Lines => {
                bytes[..item.len()].copy_from_slice(item);
                bytes[item.len()] = 1; // marks the end: the last nonzero byte follows the line
            }
        }
    }

    /// Item of a vector.
    fn decode(&self, vector: &[u32]) -> Vec<u8> {
        let bytes: &[u8] = bytemuck::cast_slice(vector);
        match *self {
            Self::Kmers(k) => (0..k).map(|at| b"ACGT"[usize::from(bytes[at / 4] >> (at % 4 * 2)) % 4]).collect(),
            Self::Rows(length) => bytes[..length].to_vec(),
            Self::Lines => bytes[..bytes.iter().rposition(|byte| *byte != 0).expect("a line's end is marked")].to_vec(),
        }
    }

    fn text(&self, item: &[u8]) -> String {
        match self {
            Self::Rows(_) => item.iter().map(|byte| format!("{byte:02x}")).collect(),
            _ => escaping::line(&String::from_utf8_lossy(item)).into_owned(),
        }
    }
}

/// Passes all items as vectors to `count`, a batch at a time; returns their number.
fn in_batches(items: &Items, data: &[u8], mut count: impl FnMut(&[u32]) -> Result<()>) -> Result<u64> {
    let (width, mut total, mut words) = (items.width(data)?, 0, Vec::new());
    for item in items.of(data) {
        items.encode(item, width, &mut words);
        total += 1;
        if words.len() == BATCH * width {
            count(&words)?;
            words.clear();
        }
    }
    count(&words)?;
    Ok(total)
}

/// Counts the vectors of a batch through the host API. The table grows by itself, and the counts with it.
fn on_host(table: &IndexedTable, counts: &mut Values<Words, u64>, words: &[u32]) -> Result<()> {
    let batch = table.find_or_put_many_with(words, Request::new().references(true))?;
    batch.complete(table)?;
    let references: Vec<Reference> = batch.references.into_iter().flatten().collect();
    counts.update_many(&references, |_, count| *count += 1)?;
    Ok(())
}

#[cfg(feature = "cuda")]
use on_device::OnDevice;

#[cfg(feature = "cuda")]
mod on_device {
    use super::{BATCH, FILL};
    use anyhow::{Context, Result, ensure};
    use std::sync::Arc;
    use warpset::gpu::cudarc_0_19::cudarc::driver::{CudaFunction, CudaStream, LaunchConfig, PushKernelArg};
    use warpset::gpu::cudarc_0_19::{DeviceExt, ModuleExt};
    use warpset::gpu::{Counts, DeviceBatch};
    use warpset::{IndexedTable, Values, Words};

    /// Equal vectors have the same reference: their threads add to the same value.
    const ADD_ONES: &str = r#"
        extern "C" __global__ void add_ones(const unsigned long long* references, unsigned count, unsigned long long* values) {
            unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
            if (at < count) atomicAdd(values + references[at], 1ull);
        }"#;

    const _: () = assert!(BATCH <= u32::MAX as usize, "the kernel counts a batch in 32 bits");

    /// Counts vectors by a kernel.
    pub struct OnDevice {
        add_ones: CudaFunction,
        /// All work is on this one stream, so each piece of it sees what those before it wrote.
        stream: Arc<CudaStream>,
    }

    impl OnDevice {
        pub fn new(table: &IndexedTable) -> Result<Self> {
            let stream = table.device().cuda_context().context("the table is not on a GPU")?.new_stream()?;
            Ok(Self { add_ones: table.compile("add_ones.cu", ADD_ONES)?.load_function("add_ones")?, stream })
        }

        /// Counts the vectors of a batch.
        pub fn count(&self, table: &IndexedTable, counts: &mut Values<Words, u64>, words: &[u32]) -> Result<()> {
            let vectors = words.len() / table.width();
            if vectors == 0 {
                return Ok(());
            }
            // A batch in device memory does not make a table grow: the table must have room for it even if every vector is new.
            let needed = ((table.len()? + vectors as u64) as f64 / FILL) as u64;
            if needed > table.slots() {
                table.reserve_total(needed.max(2 * table.slots()))?;
            }
            let words = self.stream.clone_htod(words)?;
            let mut references = self.stream.alloc_zeros::<u64>(vectors)?;
            let mut sums = self.stream.alloc_zeros::<Counts>(1)?;
            let batch = DeviceBatch::new(&words, vectors).references(&mut references).counts(&mut sums);
            table.find_or_put_device(&self.stream, batch)?;
            let full = self.stream.clone_dtoh(&sums)?[0].tally().full;
            ensure!(full == 0, "the table is full: {full} of {vectors} vectors were rejected by {} slots", table.slots());

            let values = counts.device()?;
            let (count, address) = (vectors as u32, values.address());
            let mut launch = self.stream.launch_builder(&self.add_ones);
            launch.arg(&references).arg(&count).arg(&address);
            // SAFETY: the kernel's arguments, of its types; `references` has `count` elements, all of stored vectors, because
            // none was rejected; `values` keeps the table as it is until the kernel is enqueued, and later changes wait for the
            // GPU.
            unsafe { launch.launch(LaunchConfig::for_num_elems(count)) }?;
            Ok(())
        }
    }
}
