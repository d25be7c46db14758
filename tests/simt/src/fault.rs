//! Faults of a kernel that the machine itself detects.

use std::fmt;

/// Identity of a lane in reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneName {
    pub grid: u16,
    pub block: u16,
    pub warp: u16,
    pub lane: u16,
}

impl fmt::Display for LaneName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "grid {} block {} warp {} lane {}", self.grid, self.block, self.warp, self.lane)
    }
}

/// A location in simulated memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub name: String,
    pub offset: usize,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{:#x}", self.name, self.offset)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    pub lane: LaneName,
    pub location: Location,
    pub size: usize,
    pub write: bool,
    pub strong: bool,
    /// Line of code, if known.
    pub site: Option<String>,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.strong { "atomic" } else { "plain" };
        let what = if self.write { "write" } else { "read" };
        write!(f, "{}: {kind} {what} of {} bytes at {}", self.lane, self.size, self.location)?;
        self.site.as_ref().map_or(Ok(()), |site| write!(f, " [{site}]"))
    }
}

/// A fault that the machine found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An access outside every allocation, or across the end of one.
    OutOfBounds(Access),
    /// An access that is not aligned to its size.
    Misaligned(Access),
    /// An access of global memory at an address of a block's shared memory.
    NotGlobal(Access),
    /// A write to memory that is constant during the launch.
    ConstantWritten(Access),
    /// Two accesses of one location without an order between them. At least one is plain, and at least one is a write.
    DataRace { access: Access, other: LaneName, other_wrote: bool },
    /// No lane can continue, and the waiting lanes are at different sites or wait for lanes that have ended.
    Divergence(String),
    /// No lane can continue.
    Deadlock(String),
    /// In this number of steps no lane has written anything, ended or passed a barrier.
    Livelock { steps: u64, at: String },
    /// The launch exceeded its step limit.
    Endless { steps: u64 },
}

impl Fault {
    /// Adds the line of code of a plain access.
    pub fn came_from(&mut self, line: Option<String>) {
        match self {
            Self::OutOfBounds(access) | Self::ConstantWritten(access) | Self::DataRace { access, .. } => access.site = line,
            _ => {}
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfBounds(access) => write!(f, "out of bounds: {access}"),
            Self::Misaligned(access) => write!(f, "misaligned: {access}"),
            Self::NotGlobal(access) => write!(f, "shared memory is accessed as global: {access}"),
            Self::ConstantWritten(access) => write!(f, "constant memory is written: {access}"),
            Self::DataRace { access, other, other_wrote } => {
                let did = if *other_wrote { "wrote" } else { "read" };
                write!(f, "data race: {access}, which {other} {did} before without order")
            }
            Self::Divergence(detail) => write!(f, "divergent use of a collective: {detail}"),
            Self::Deadlock(detail) => write!(f, "deadlock: {detail}"),
            Self::Livelock { steps, at } => write!(f, "livelock: no progress in {steps} steps; {at}"),
            Self::Endless { steps } => write!(f, "the launch has not ended after {steps} steps"),
        }
    }
}
