//! How many moves does a sliding-tile puzzle take at most? A breadth-first search over all of its states, by a CUDA kernel of
//! our own that calls find-or-put on the GPU.
//!
//! ```text
//! cargo run --release --example custom_kernel                  # 3x3: 181,440 states, 31 moves
//! cargo run --release --example custom_kernel -- --columns 4   # 3x4: 239,500,800 states, 53 moves
//! cargo run --release --example custom_kernel -- --host        # the same search through the host API
//! ```
//!
//! The search goes level by level: the states that the last level reaches in one move are offered to the table, and those that
//! are new make the next level. There are two ways to take that step, one beside the other below: [`OnDevice`] launches the
//! kernel in puzzle.cu, and no state ever leaves the GPU; [`OnHost`] makes the successors here and offers them as one batch, on
//! any device. Without a GPU the second runs.

use anyhow::{Result, ensure};
use clap::Parser;
use rayon::prelude::*;
use std::process::ExitCode;
use std::time::Instant;
use warpset::{Device, Outcome, TypedTable};

/// How full the table is in the end, unless --capacity says otherwise: searches are still short then.
const FILL: f64 = 0.7;

/// Searches all states of a sliding-tile puzzle, breadth first, and checks how many there are.
#[derive(Debug, Parser)]
#[command(name = "custom_kernel")]
struct Options {
    /// Rows of the puzzle.
    #[arg(long, default_value = "3", value_parser = clap::value_parser!(u32).range(2..=3))]
    rows: u32,

    /// Columns of the puzzle.
    #[arg(long, default_value = "3", value_parser = clap::value_parser!(u32).range(2..=4))]
    columns: u32,

    /// Slots of the table [default: as many as make the table 70 % full at the end]
    #[arg(long, value_name = "SLOTS")]
    capacity: Option<u64>,

    /// Use the host API even if there is a GPU.
    #[arg(long)]
    host: bool,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let puzzle = Puzzle { rows: options.rows, columns: options.columns };
    let device = Device::best()?;
    let capacity = options.capacity.unwrap_or((puzzle.states() as f64 / FILL) as u64);
    let table = TypedTable::<State>::new(&device, capacity)?;
    let on_device = cfg!(feature = "cuda") && device.is_gpu() && !options.host;
    let mut search: Box<dyn Expander> = match on_device {
        #[cfg(feature = "cuda")]
        true => Box::new(OnDevice::new(&table, puzzle)?),
        _ => Box::new(OnHost::new(&table, puzzle)?),
    };
    let way = if on_device { "our own kernel" } else { "the host API" };
    println!("{}x{} sliding tiles on {device}, through {way}\n", puzzle.rows, puzzle.columns);

    let start = Instant::now();
    let levels = search_all(&mut *search, &table)?;
    let seconds = start.elapsed().as_secs_f64();

    let (total, moves) = (levels.iter().sum::<u64>(), levels.len() - 1);
    println!("\n{total} states, {moves} moves at most; {seconds:.4} s, {:.1} million states/s", total as f64 / seconds / 1e6);
    ensure!(total == puzzle.states(), "{total} states were reached, but there are {}", puzzle.states());
    ensure!(table.len()? == total, "{total} states were new, but the table holds {}", table.len()?);
    Ok(())
}

/// The sizes of all levels.
fn search_all(search: &mut dyn Expander, table: &TypedTable<State>) -> Result<Vec<u64>> {
    let mut levels = vec![1];
    let mut total = 1;
    println!("level       states        total\n{:>5} {:>12} {total:>12}", 0, 1);
    loop {
        let Expanded { new_states, rejected } = search.expand()?;
        total += new_states;
        let slots = table.slots();
        ensure!(
            rejected == 0,
            "the table is full: {rejected} successors of level {} were rejected, {total} states are in {slots} slots",
            levels.len() - 1
        );
        if new_states == 0 {
            return Ok(levels);
        }
        println!("{:>5} {new_states:>12} {total:>12}", levels.len());
        levels.push(new_states);
    }
}

/// A search that advances level by level: by a kernel, or through the host API. At first, the current level has one state, the
/// solved puzzle, which is already in the table.
trait Expander {
    /// Offers the successors of all states of the current level to the table. The new ones become the current level.
    fn expand(&mut self) -> Result<Expanded>;
}

/// Counts of a level's successors. puzzle.cu has the same struct.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Expanded {
    /// Successors that were not in the table before: the states of the next level.
    new_states: u64,
    /// Successors that the table had no free slot for: the search is then incomplete.
    rejected: u64,
}

/// The tile on cell `c`, in rows from the top left, is bits `4c .. 4c + 4`; 0 is the blank. Two words of a table.
type State = u64;

/// Size of the puzzle. puzzle.cu has the same struct, with the same functions in CUDA C++.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Puzzle {
    rows: u32,
    columns: u32,
}

impl Puzzle {
    fn cells(self) -> u32 {
        self.rows * self.columns
    }

    /// How many states can be reached: every other arrangement of the cells (Johnson and Story, 1879).
    fn states(self) -> u64 {
        (1..=u64::from(self.cells())).product::<u64>() / 2
    }

    /// The tiles in order, the blank first.
    fn solved(self) -> State {
        (0..self.cells()).map(|cell| u64::from(cell) << (4 * cell)).sum()
    }

    fn blank(self, state: State) -> u32 {
        (0..self.cells()).find(|cell| (state >> (4 * cell)) & 15 == 0).expect("every state has a blank")
    }

    /// The cells beside another: above, below, left, right.
    fn neighbours(self, cell: u32) -> impl Iterator<Item = u32> {
        let (row, column) = (cell / self.columns, cell % self.columns);
        let above = (row > 0).then(|| cell - self.columns);
        let below = (row + 1 < self.rows).then(|| cell + self.columns);
        let left = (column > 0).then(|| cell - 1);
        let right = (column + 1 < self.columns).then(|| cell + 1);
        [above, below, left, right].into_iter().flatten()
    }

    /// The states that are one move away: a tile beside the blank slides onto it.
    fn successors(self, state: State) -> impl Iterator<Item = State> {
        let blank = self.blank(state);
        self.neighbours(blank).map(move |from| slide(state, from, blank))
    }
}

/// The state after the tile on cell `from` has slid onto the blank: its bits are cleared there and set here.
fn slide(state: State, from: u32, blank: u32) -> State {
    let tile = (state >> (4 * from)) & 15;
    state ^ (tile << (4 * from)) ^ (tile << (4 * blank))
}

/// The search through the host API: successors are made by this process, and offered to a table on any device.
struct OnHost<'t> {
    table: &'t TypedTable<State>,
    puzzle: Puzzle,
    level: Vec<State>,
}

impl<'t> OnHost<'t> {
    fn new(table: &'t TypedTable<State>, puzzle: Puzzle) -> Result<Self> {
        let level = vec![puzzle.solved()];
        table.find_or_put_many(&level)?.complete(table)?;
        Ok(Self { table, puzzle, level })
    }
}

impl Expander for OnHost<'_> {
    fn expand(&mut self) -> Result<Expanded> {
        let successors: Vec<State> = self.level.par_iter().flat_map_iter(|state| self.puzzle.successors(*state)).collect();
        let batch = self.table.find_or_put_many(&successors)?;
        self.level = batch.positions(Outcome::New).map(|position| successors[position]).collect();
        Ok(Expanded { new_states: batch.tally.new, rejected: batch.tally.full })
    }
}

#[cfg(feature = "cuda")]
use device::OnDevice;

#[cfg(feature = "cuda")]
mod device {
    use super::{Expanded, Expander, Puzzle, State};
    use anyhow::{Context, Result};
    use std::sync::Arc;
    use warpset::TypedTable;
    use warpset::gpu::TableView;
    use warpset::gpu::cudarc_0_19::cudarc::driver::{
        CudaFunction, CudaSlice, CudaStream, DeviceRepr, LaunchConfig, PushKernelArg, ValidAsZeroBits,
    };
    use warpset::gpu::cudarc_0_19::{DeviceExt, ModuleExt};

    /// Successors that a state has at most: `directions` in puzzle.cu.
    const DIRECTIONS: usize = 4;

    /// Threads of a block: what the kernel's launch bounds say.
    const BLOCK: u32 = 256;

    const _: () = assert!(size_of::<Puzzle>() == 8 && size_of::<Expanded>() == 16, "their sizes in puzzle.cu");
    // SAFETY: `repr(C)`, two u32, as in puzzle.cu.
    unsafe impl DeviceRepr for Puzzle {}
    // SAFETY: `repr(C)`, two u64, as in puzzle.cu.
    unsafe impl DeviceRepr for Expanded {}
    // SAFETY: counts of nothing.
    unsafe impl ValidAsZeroBits for Expanded {}

    /// The search by a kernel of our own: states are made, looked up and kept on the GPU.
    pub struct OnDevice<'t> {
        /// Borrowed as long as `view` is used, which is valid until the table grows or is dropped.
        _table: &'t TypedTable<State>,
        view: TableView,
        puzzle: Puzzle,
        kernel: CudaFunction,
        /// All work is on this one stream, so each piece of it sees what those before it wrote.
        stream: Arc<CudaStream>,
        /// The current level: the first `length` states.
        level: CudaSlice<State>,
        length: usize,
        /// Where the next level goes. The two change places after each step.
        next: CudaSlice<State>,
        expanded: CudaSlice<Expanded>,
    }

    impl<'t> OnDevice<'t> {
        pub fn new(table: &'t TypedTable<State>, puzzle: Puzzle) -> Result<Self> {
            let untyped = table;
            let stream = untyped.device().cuda_context().context("the table is not on a GPU")?.new_stream()?;
            // NVRTC compiles the source for this GPU and this table's width; what it says of mistakes is in the error.
            let kernel = untyped.compile("puzzle.cu", include_str!("puzzle.cu"))?.load_function("expand")?;
            // Stored when the call returns, so before any launch below.
            let start = [puzzle.solved()];
            table.find_or_put_many(&start)?.complete(untyped)?;
            Ok(Self {
                _table: table,
                view: untyped.kernel_argument()?,
                puzzle,
                kernel,
                level: stream.clone_htod(&start)?,
                length: start.len(),
                next: stream.alloc_zeros(DIRECTIONS)?,
                expanded: stream.alloc_zeros(1)?,
                stream,
            })
        }
    }

    impl Expander for OnDevice<'_> {
        fn expand(&mut self) -> Result<Expanded> {
            let room = self.length * DIRECTIONS;
            if self.next.len() < room {
                self.next = self.stream.alloc_zeros(room)?;
            }
            self.stream.memset_zeros(&mut self.expanded)?;
            let length = self.length as u64;
            let blocks = length.div_ceil(u64::from(BLOCK)) as u32;
            let launch = LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (BLOCK, 1, 1), shared_mem_bytes: 0 };
            // SAFETY:
            // - the arguments are those of `expand` in its order, each of the layout that it has in puzzle.cu;
            // - `level` holds `length` states, `next` has room for all their successors (above), `expanded` is one element;
            // - the buffers are of this stream and are freed after its work; `level` is only read;
            // - the view is valid: the table is borrowed, and nothing makes it grow, here or in the search that calls us.
            unsafe {
                let mut kernel = self.stream.launch_builder(&self.kernel);
                kernel.arg(&self.view).arg(&self.puzzle).arg(&self.level).arg(&length);
                kernel.arg(&mut self.next).arg(&mut self.expanded).launch(launch)
            }?;
            let mut expanded = [Expanded::default()];
            self.stream.memcpy_dtoh(&self.expanded, &mut expanded)?;
            self.stream.synchronize()?; // a launch returns at once; what fails in a kernel shows here
            let [expanded] = expanded;
            self.length = expanded.new_states as usize;
            std::mem::swap(&mut self.level, &mut self.next);
            Ok(expanded)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [(u32, u32); 6] = [(2, 2), (2, 3), (3, 2), (2, 4), (3, 3), (3, 4)];

    fn puzzles() -> impl Iterator<Item = Puzzle> {
        SIZES.into_iter().map(|(rows, columns)| Puzzle { rows, columns })
    }

    fn tiles(puzzle: Puzzle, state: State) -> Vec<u64> {
        (0..puzzle.cells()).map(|cell| (state >> (4 * cell)) & 15).collect()
    }

    #[test]
    fn states_are_packed_four_bits_a_tile() {
        let solved: Vec<State> = puzzles().map(Puzzle::solved).collect();
        assert_eq!(solved, [0x3210, 0x54_3210, 0x54_3210, 0x7654_3210, 0x8_7654_3210, 0xBA98_7654_3210]);
        assert!(puzzles().all(|puzzle| puzzle.blank(puzzle.solved()) == 0));
        let eight = Puzzle { rows: 3, columns: 3 };
        assert_eq!((eight.blank(0x8_7650_3214), eight.blank(0x0_8765_3214)), (4, 8));
    }

    #[test]
    fn tiles_beside_the_blank_slide_onto_it() {
        let puzzle = Puzzle { rows: 3, columns: 3 };
        let successors = |state| puzzle.successors(state).collect::<Vec<State>>();
        assert_eq!(successors(0x8_7654_3210), [0x8_7654_0213, 0x8_7654_3201], "from a corner");
        assert_eq!(successors(0x8_7650_3214), [0x8_7651_3204, 0x8_0657_3214, 0x8_7653_0214, 0x8_7605_3214], "from the middle");
        assert_eq!(successors(0x0_8765_3214), [0x6_8705_3214, 0x8_0765_3214], "into the last cell");
    }

    #[test]
    fn every_move_can_be_undone_and_keeps_the_tiles() {
        for puzzle in puzzles() {
            let mut state = puzzle.solved();
            for step in 0..1000 {
                let successors: Vec<State> = puzzle.successors(state).collect();
                for &successor in &successors {
                    assert!(puzzle.successors(successor).any(|back| back == state), "{puzzle:?}: {successor:#x}");
                    let mut tiles = tiles(puzzle, successor);
                    tiles.sort_unstable();
                    assert!(tiles.into_iter().eq(0..u64::from(puzzle.cells())), "{puzzle:?}: {successor:#x}");
                }
                state = successors[step * step % successors.len()];
            }
        }
    }

    #[test]
    fn neighbours_are_as_many_as_the_edges_of_the_grid() {
        for puzzle @ Puzzle { rows, columns } in puzzles() {
            let neighbours: usize = (0..puzzle.cells()).map(|cell| puzzle.neighbours(cell).count()).sum();
            assert_eq!(neighbours as u32, 2 * (rows * (columns - 1) + columns * (rows - 1)), "{puzzle:?}");
        }
    }

    #[test]
    fn half_of_the_arrangements_can_be_reached() {
        let states: Vec<u64> = puzzles().map(Puzzle::states).collect();
        assert_eq!(states, [12, 360, 360, 20_160, 181_440, 239_500_800]);
    }

    #[cfg(feature = "cpu")]
    #[test]
    fn searches_find_all_states() {
        for (puzzle, moves) in puzzles().zip([6, 21, 21, 36, 31]) {
            let table = TypedTable::<State>::new(&Device::cpu_with_threads(2), 2 * puzzle.states()).unwrap();
            let levels = search_all(&mut OnHost::new(&table, puzzle).unwrap(), &table).unwrap();
            assert_eq!((levels.len() - 1, levels.iter().sum::<u64>()), (moves, puzzle.states()), "{puzzle:?}");
            assert_eq!(table.len().unwrap(), puzzle.states(), "{puzzle:?}");
        }
    }
}
