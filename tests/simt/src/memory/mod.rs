//! The memory of the simulated GPU: determines the values that each access may read, and detects accesses that race.
//!
//! Memory is a row of 4-byte *cells*. The newest value of each cell is at the address that the kernels use. For cells that were
//! written atomically during the launch, the older values are kept too, in the *coherence order*: the one order of all writes to
//! the cell. It may differ from the order in which the writes were carried out, because on a GPU two writes of one lane to
//! different addresses may arrive in either order.
//!
//! Reading. A load returns any value of the cell that is at least as new as each of these:
//!   - every value whose write happened before the load (program order, barriers, release to acquire), and
//!   - every value that a *strong* (atomic) access has read from the cell, if that access was by this lane or happened before.
//!
//! Writing. A store is placed anywhere in the coherence order after these values. A read-modify-write takes a position in the
//! same way, and reads the value just before it. No later write is placed between the two. So a read-modify-write always reads
//! the newest value as of its own position.
//!
//! So relaxed stores to different cells become visible in any order, and loads are done in any order, as PTX allows. A *weak*
//! load does not constrain later loads: of two weak loads in a row, the older line of an L1 cache may serve the second. An access
//! of several cells reads all of them as of one moment.
//!
//! Data races. Two accesses of one byte race if one of them is a write, one of them is plain, and neither happened before the
//! other. Their order in this run does not matter, because a GPU could have chosen the other order, so the race is reported at
//! once.

mod atomics;
pub mod view;

pub use atomics::Loads;

use crate::fault::{Access, Fault, LaneName, Location};
use crate::request::{Order, Request, RequestKind};
use std::collections::HashMap;
use std::rc::Rc;
use view::{Event, Knowledge, Lane, Moment};

/// How kernels may use an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Kernels read and write it.
    Shared,
    /// Shared memory of a block. Kernels read and write it by accesses that name no other space.
    Block,
    /// No kernel writes it during a launch.
    Constant,
}

#[derive(Debug)]
struct Allocation {
    name: String,
    usage: Use,
    start: usize,
    bytes: usize,
}

/// Time and lane of an access. Time 0 means before the launch.
#[derive(Clone, Copy, Debug, Default)]
struct Stamp {
    lane: u16,
    time: u32,
    strong: bool,
}

/// The latest read of a cell by each lane.
#[derive(Clone, Debug, Default)]
enum Readers {
    #[default]
    None,
    One(u16, u32),
    Many(Box<[u32]>),
}

impl Readers {
    fn add(&mut self, lane: u16, time: u32, lanes: usize) {
        match self {
            Self::None => *self = Self::One(lane, time),
            Self::One(known, at) if *known == lane => *at = time,
            Self::One(known, at) => {
                let mut times = vec![0; lanes].into_boxed_slice();
                times[*known as usize] = *at;
                times[lane as usize] = time;
                *self = Self::Many(times);
            }
            Self::Many(times) => times[lane as usize] = time,
        }
    }

    /// Returns a lane whose read did not happen before the present access of `lane`.
    fn unknown_to(&self, lane: &Lane) -> Option<usize> {
        match self {
            Self::None => None,
            Self::One(reader, time) => (!lane.knows(*reader as usize, *time)).then_some(*reader as usize),
            Self::Many(times) => (0..times.len()).find(|&reader| times[reader] != 0 && !lane.knows(reader, times[reader])),
        }
    }
}

/// The latest accesses of a cell, or of one byte of it, during this launch.
#[derive(Clone, Debug, Default)]
struct Accesses {
    write: Stamp,
    plain_reads: Readers,
    strong_reads: Readers,
}

#[derive(Clone, Debug, Default)]
struct Cell {
    accesses: Accesses,
    /// Whether single bytes were accessed. `Memory::bytes` then has the accesses.
    split: bool,
    /// Values since the last plain write or, without one, since the launch began, oldest first. Empty if there was no atomic
    /// write since then.
    values: Vec<Value>,
    /// The write with which `values` begin: the last plain write, or 0.
    first: Event,
}

/// A value that a cell has held.
#[derive(Clone, Copy, Debug)]
struct Value {
    at: Moment,
    event: Event,
    value: u32,
    /// Whether a read-modify-write has read this value and written the next one, so that no write may come between them.
    followed: bool,
}

#[derive(Debug)]
struct Write {
    lane: usize,
    time: u32,
    released: Option<Rc<Knowledge>>,
}

/// The cells that an access has read or left, and its age.
#[derive(Clone, Copy, Debug, Default)]
pub struct Accessed {
    pub cells: [u32; 4],
    /// Number of newer values that a load did not return, or before which a write was placed.
    pub age: u32,
}

pub struct Memory {
    storage: Vec<u128>,
    used: usize,
    allocations: Vec<Allocation>,
    /// By cell, the number of its allocation plus 1, or 0 if it belongs to none.
    owners: Vec<u16>,
    cells: Vec<Cell>,
    bytes: HashMap<u32, [Accesses; 4]>,
    touched: Vec<u32>,
    writes: Vec<Write>,
    lanes: Vec<Lane>,
    names: Vec<LaneName>,
    detects_races: bool,
}

/// Bytes between allocations. They belong to no allocation.
const GAP: usize = 256;

impl Memory {
    /// Creates memory for allocations of `bytes` bytes in total.
    pub fn new(bytes: usize) -> Self {
        let bytes = bytes.next_multiple_of(16);
        Self {
            storage: vec![0; bytes / 16],
            used: 0,
            allocations: Vec::new(),
            owners: vec![0; bytes / 4],
            cells: vec![Cell::default(); bytes / 4],
            bytes: HashMap::new(),
            touched: Vec::new(),
            writes: Vec::new(),
            lanes: Vec::new(),
            names: Vec::new(),
            detects_races: true,
        }
    }

    /// Frees all allocations.
    pub fn clear(&mut self) {
        self.owners[..self.used / 4].fill(0);
        self.allocations.clear();
        self.used = 0;
    }

    /// Allocates memory for kernels, aligned to 256 bytes and filled with a value that no test uses. The address is valid until
    /// `clear`.
    pub fn allocate(&mut self, name: impl Into<String>, usage: Use, bytes: usize) -> *mut u8 {
        let start = (self.used + GAP).next_multiple_of(GAP);
        let size = bytes.next_multiple_of(16);
        assert!(start + size <= self.storage.len() * 16, "{bytes} bytes do not fit the simulated memory; {} are used", self.used);
        self.allocations.push(Allocation { name: name.into(), usage, start, bytes });
        self.owners[start / 4..(start + bytes).div_ceil(4)].fill(self.allocations.len() as u16);
        self.storage[start / 16..(start + size) / 16].fill(0xA5A5_A5A5_A5A5_A5A5_A5A5_A5A5_A5A5_A5A5);
        self.used = start + size;
        self.base().wrapping_add(start)
    }

    /// Allocates memory that holds these elements.
    pub fn allocate_with<T: bytemuck::Pod>(&mut self, name: impl Into<String>, usage: Use, elements: &[T]) -> *mut T {
        let address = self.allocate(name, usage, size_of_val(elements));
        self.at_mut(address.cast(), elements.len()).copy_from_slice(elements);
        address.cast()
    }

    fn base(&self) -> *mut u8 {
        self.storage.as_ptr().cast_mut().cast()
    }

    /// Returns the newest contents of memory. Must not be called during a launch.
    pub fn at<T: bytemuck::Pod>(&self, address: *const T, count: usize) -> &[T] {
        let start = self.offset(address.cast()).expect("an address in simulated memory");
        &bytemuck::cast_slice(&bytemuck::cast_slice::<u128, u8>(&self.storage)[start..start + count * size_of::<T>()])[..count]
    }

    pub fn at_mut<T: bytemuck::Pod>(&mut self, address: *mut T, count: usize) -> &mut [T] {
        let start = self.offset(address.cast()).expect("an address in simulated memory");
        let bytes = &mut bytemuck::cast_slice_mut::<u128, u8>(&mut self.storage)[start..start + count * size_of::<T>()];
        bytemuck::cast_slice_mut(bytes)
    }

    /// As [`at`](Self::at), with an address in the form that views have.
    pub fn read_at<T: bytemuck::Pod>(&self, address: u64, count: usize) -> &[T] {
        self.at(address as *const T, count)
    }

    /// As [`at_mut`](Self::at_mut), with an address in the form that views have.
    pub fn write_at<T: bytemuck::Pod>(&mut self, address: u64, count: usize) -> &mut [T] {
        self.at_mut(address as *mut T, count)
    }

    fn offset(&self, address: *const u8) -> Option<usize> {
        let offset = (address as usize).wrapping_sub(self.storage.as_ptr() as usize);
        (offset < self.storage.len() * 16).then_some(offset)
    }

    /// Returns the location of an address, for reports.
    pub fn location(&self, address: *const u8) -> Location {
        let Some(offset) = self.offset(address) else {
            return Location { name: "no simulated memory".into(), offset: address as usize };
        };
        let nearest = self.allocations.iter().take_while(|allocation| allocation.start <= offset).last();
        nearest.map_or_else(
            || Location { name: "before all memory".into(), offset },
            |allocation| Location { name: allocation.name.clone(), offset: offset - allocation.start },
        )
    }

    /// Begins a launch with one lane per name.
    pub fn begin(&mut self, names: Vec<LaneName>, detects_races: bool) {
        self.lanes = Lane::all(names.len());
        self.names = names;
        self.writes.clear();
        self.writes.push(Write { lane: 0, time: 0, released: None });
        self.detects_races = detects_races;
    }

    /// Ends a launch: afterwards every lane knows all accesses of the others.
    pub fn end(&mut self) {
        for cell in self.touched.drain(..) {
            self.cells[cell as usize] = Cell::default();
        }
        self.bytes.clear();
    }

    pub fn names(&self) -> &[LaneName] {
        &self.names
    }

    /// Checks a plain access. Instrumentation calls this function just before the access. Ignores accesses of other memory, such
    /// as a lane's stack.
    pub fn plain(&mut self, lane: usize, address: *mut u8, size: usize, write: bool) -> Result<(), Box<Fault>> {
        let Some(offset) = self.offset(address) else { return Ok(()) };
        let access = |memory: &Self| Access {
            lane: memory.names[lane],
            location: memory.location(address),
            size,
            write,
            strong: false,
            site: None,
        };
        self.check_bounds(offset, size, write, || access(self))?;
        if self.usage(offset) == Use::Constant {
            return Ok(());
        }
        for byte in self.pieces(offset, size) {
            self.check_race(lane, byte, size, write, false, access)?;
        }
        if write {
            // Each atomic write so far happened before this access, or else there is a race. So no access may read the values of
            // these writes any more.
            for cell in offset / 4..(offset + size).div_ceil(4) {
                if !self.cells[cell].values.is_empty() {
                    self.cells[cell].values.clear();
                    self.cells[cell].first = self.writes.len() as Event;
                    self.writes.push(Write { lane, time: self.lanes[lane].time, released: None });
                }
            }
        }
        Ok(())
    }

    fn usage(&self, offset: usize) -> Use {
        self.allocations[self.owners[offset / 4] as usize - 1].usage
    }

    fn check_bounds(&self, offset: usize, size: usize, write: bool, access: impl Fn() -> Access) -> Result<(), Box<Fault>> {
        let owner = self.owners[offset / 4];
        let inside = owner != 0 && {
            let allocation = &self.allocations[owner as usize - 1];
            offset >= allocation.start && offset + size <= allocation.start + allocation.bytes
        };
        if !inside {
            return Err(Box::new(Fault::OutOfBounds(access())));
        }
        if write && self.usage(offset) == Use::Constant {
            return Err(Box::new(Fault::ConstantWritten(access())));
        }
        Ok(())
    }

    /// Start offsets of the units in which an access is compared with others: cells, or bytes if the access is smaller than a
    /// cell.
    fn pieces(&self, offset: usize, size: usize) -> impl Iterator<Item = usize> + use<> {
        let whole = offset.is_multiple_of(4) && size.is_multiple_of(4);
        (offset..offset + size).step_by(if whole { 4 } else { 1 })
    }

    /// Compares an access of one cell, or of one byte, with earlier ones, and records it.
    fn check_race(
        &mut self,
        lane: usize,
        offset: usize,
        size: usize,
        write: bool,
        strong: bool,
        access: impl Fn(&Self) -> Access,
    ) -> Result<(), Box<Fault>> {
        let cell = offset / 4;
        let whole = size.is_multiple_of(4) && offset.is_multiple_of(4);
        self.touched.push(cell as u32);
        if !whole && !self.cells[cell].split {
            let accesses = std::mem::take(&mut self.cells[cell].accesses);
            self.bytes.insert(cell as u32, std::array::from_fn(|_| accesses.clone()));
            self.cells[cell].split = true;
        }
        let lanes = self.lanes.len();
        let me = &self.lanes[lane];
        let parts = if self.cells[cell].split {
            let bytes = self.bytes.get_mut(&(cell as u32)).expect("the accesses of a split cell");
            if whole { &mut bytes[..] } else { &mut bytes[offset % 4..=offset % 4] }
        } else {
            std::slice::from_mut(&mut self.cells[cell].accesses)
        };
        let mut other = None;
        for part in parts {
            other = other.or_else(|| part.conflict(me, write, strong));
            part.add(lane as u16, me.time, write, strong, lanes);
        }
        match other {
            Some((other, other_wrote)) if self.detects_races => {
                Err(Box::new(Fault::DataRace { access: access(self), other: self.names[other], other_wrote }))
            }
            _ => Ok(()),
        }
    }
}

impl Accesses {
    /// Returns the lane of an earlier access with which this one races, and whether the earlier access was a write.
    fn conflict(&self, me: &Lane, write: bool, strong: bool) -> Option<(usize, bool)> {
        let last = self.write;
        if last.time != 0 && !(strong && last.strong) && !me.knows(last.lane as usize, last.time) {
            return Some((last.lane as usize, true));
        }
        if !write {
            return None;
        }
        let strong_reader = if strong { None } else { self.strong_reads.unknown_to(me) };
        strong_reader.or_else(|| self.plain_reads.unknown_to(me)).map(|reader| (reader, false))
    }

    fn add(&mut self, lane: u16, time: u32, write: bool, strong: bool, lanes: usize) {
        if write {
            self.write = Stamp { lane, time, strong };
        } else if strong {
            self.strong_reads.add(lane, time, lanes);
        } else {
            self.plain_reads.add(lane, time, lanes);
        }
    }
}
