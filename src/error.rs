use crate::Spec;
use std::fmt;
use std::io;

/// An error of the library, with its numbers.
///
/// Unless a variant says otherwise, an error is found before anything is changed: the table holds what it held, and nothing
/// stored is lost.
///
/// The cause of [`TableFull`](Self::TableFull) and [`Stopped`](Self::Stopped) is their [`source`](std::error::Error::source), and
/// no part of the message: print the chain, as `anyhow` does by `{:#}`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A size, width or number that no table or device has.
    OutOfRange {
        /// The things that were asked for.
        what: &'static str,
        /// Their number.
        given: u64,
        /// The least that is supported.
        least: u64,
        /// The most that is supported.
        most: u64,
    },
    /// No strategy, device or rendezvous has this name.
    UnknownName {
        /// The kind of name.
        what: &'static str,
        /// The text.
        name: String,
        /// The names to choose from.
        known: String,
    },
    /// The part of a key that its bucket does not imply is larger than a slot.
    KeysDoNotFit {
        /// Bits a key.
        key_bits: u32,
        /// Bits a slot.
        slot_bits: u32,
        /// Slots asked for.
        slots: u64,
        /// The smallest sufficient number of slots.
        needed: u64,
    },
    /// A key has more bits than the keys of its table. No key of the batch was searched for.
    KeyTooLarge {
        /// The first such key of the batch.
        key: u64,
        /// Its position, in keys.
        position: usize,
        /// Bits a key.
        key_bits: u32,
    },
    /// The last word of a vector has more bits than [`last_bits`](crate::TableBuilder::last_bits). No vector of the batch was
    /// searched for.
    LastWordTooLarge {
        /// The last word of the first such vector of the batch.
        word: u32,
        /// The position of that vector.
        position: usize,
        /// Bits of the last word that the table's roots have room for.
        last_bits: u32,
    },
    /// A slice or buffer has the wrong length: the words given are not whole vectors, what is given beside the vectors of a batch
    /// does not have one for each, or a buffer is too short.
    LengthMismatch {
        /// The things that were counted.
        what: &'static str,
        /// Their number.
        given: usize,
        /// How many there must be; of a buffer, at least.
        needed: usize,
    },
    /// There is too little memory: on a device, of the host for results, or pinned memory.
    OutOfMemory {
        /// The device, by name, or `the host`.
        device: String,
        /// Bytes asked for.
        asked: u64,
        /// Bytes that were free when they were asked for, if that is known.
        free: Option<u64>,
        /// The system's answer, if it was asked.
        reason: String,
    },
    /// A table that grows would take more memory than it may: see [`TableBuilder::memory`](crate::TableBuilder::memory).
    MemoryLimit {
        /// Bytes that the table takes.
        taken: u64,
        /// Bytes that the smallest larger table takes in addition, while the table grows.
        needed: u64,
        /// Bytes that the table may take, also while it grows.
        limit: u64,
    },
    /// References to no stored vector. Nothing is returned for the others either.
    InvalidReferences {
        /// Number of invalid references.
        invalid: u64,
        /// Number of references given.
        count: usize,
    },
    /// References of an earlier generation (the table has grown, was cleared or has relocated keys since), or of another table.
    /// Nothing was done with the others either.
    StaleReferences {
        /// Number of stale references.
        stale: u64,
        /// Number of references given.
        count: usize,
    },
    /// Keys that were stored are not stored any more. While the keys of a cuckoo table were relocated, these were left without a
    /// slot, in spite of repeated relocation of all keys. By calculation this does not happen
    /// (cuda/warpset/compact/relocation.cuh). If it does, the error lists the keys.
    KeysWithoutSlot {
        /// All of them.
        keys: Vec<u64>,
    },
    /// Some vectors found no free slot, or no free node, within the probe limit. All others of the batch are stored.
    TableFull {
        /// Vectors rejected, duplicates counted.
        rejected: u64,
        /// Number of rejections because the node table of a tree table was full.
        for_nodes: u64,
        /// Vectors offered by the call.
        offered: u64,
        /// Vectors stored now.
        stored: u64,
        /// Slots of the table.
        slots: u64,
        /// For a table that makes room by itself: why it could not.
        cause: Option<Box<Error>>,
    },
    /// A batch ended before all of its vectors were offered: by its [progress callback](crate::Request::progress), or by an error
    /// after something was put. All that were offered are stored.
    Stopped {
        /// Vectors that were offered.
        offered: u64,
        /// Vectors of the batch.
        given: u64,
        /// The error that ended the batch. None: its progress callback did.
        cause: Option<Box<Error>>,
    },
    /// The call would wait for its own thread, and so for ever. The thread holds the table by a value that `held` returned, or it
    /// is in a closure or writer that `held` calls. Drop the value, or return from the closure or writer, before the call.
    /// [Which calls wait for what](crate::threads_and_streams#what-a-thread-holds).
    ///
    /// A batch that needs the table to grow is not refused for this reason: its vectors use the remaining slots, and this error
    /// is in [`Batch::error`](crate::Batch::error).
    SelfDeadlock {
        /// The call that was refused.
        call: &'static str,
        /// The call of the same thread by which it holds the table: the last one, if there are several.
        held: &'static str,
    },
    /// The table grew, was cleared or relocated keys while its vectors were being iterated over.
    ChangedDuringIteration,
    /// A buffer of the caller is not aligned as its vectors need.
    Misaligned {
        /// The buffer.
        what: &'static str,
        /// Address of the first byte.
        address: u64,
        /// The alignment needed.
        alignment: u64,
    },
    /// A stream, a buffer or a table is on another device, or of another context, than the operation needs.
    WrongDevice {
        /// The stream or buffer, or the operation of the table.
        what: &'static str,
        /// Its device.
        given: String,
        /// The device that it must be on.
        needed: String,
    },
    /// Work on a table cannot be captured into a graph: the graph could be launched after the table or its buffers are gone.
    Capturing,
    /// A shared library could not be loaded.
    LibraryNotFound {
        /// Name of the library.
        library: &'static str,
        /// All file names that were tried; the message has the shortest.
        searched: Vec<String>,
    },
    /// A shared library is of a version that lacks what is needed.
    LibraryTooOld {
        /// Name of the library.
        library: &'static str,
        /// The file, by name or path.
        path: String,
        /// Its version.
        found: String,
        /// The oldest usable version.
        needed: String,
    },
    /// There is no such GPU.
    NoSuchGpu {
        /// The number asked for, from 0.
        ordinal: usize,
        /// Number of GPUs found.
        count: usize,
    },
    /// NVRTC rejected the kernels.
    Compile {
        /// The source's name.
        name: String,
        /// The table spec it was compiled for.
        spec: Box<Spec>,
        /// NVRTC's status.
        status: String,
        /// The options given to NVRTC.
        options: Vec<String>,
        /// NVRTC's log.
        log: String,
    },
    /// A call of the CUDA driver or of NVRTC failed. If a kernel failed, the GPU's context is lost, and all tables on it.
    /// Otherwise the table is intact. Any part of a batch that ends in this error may have been put. The batch can be offered
    /// again; vectors that were put are then Seen, and are never reported as New.
    Cuda {
        /// The action that failed.
        what: &'static str,
        /// Number of the answer: a `CUresult` of the driver, or a result of NVRTC; 0 if the library found the fault itself.
        code: i32,
        /// The answer.
        status: String,
    },
    /// Reading or writing failed while a table was loaded or saved. The table that was being saved is unchanged. The file that
    /// was being written does not exist, or has its old content, unless `doing` says that it was replaced, and only its folder
    /// could not be synchronised with the disk.
    Io {
        /// The action that failed.
        doing: &'static str,
        /// Position in the table's file, in bytes.
        at: u64,
        /// Kind of the system's answer.
        kind: io::ErrorKind,
        /// The system's answer.
        reason: String,
    },
    /// The source does not hold a table that can be loaded. No table was made.
    File {
        /// The defect.
        fault: FileFault,
    },
    /// The connection between the ranks of a cluster has ended: a rank has ended or stalled, a message is wrong, or the ranks
    /// have called different operations, or the same ones in different orders. All ranks get this. Each rank's table has all that
    /// was stored, including any part of a batch that was under way; see
    /// [`cluster::Table::reconnect`](crate::cluster::Table::reconnect).
    Connection {
        /// The rank that failed, as far as is known.
        rank: usize,
        /// How it failed.
        reason: String,
    },
    /// Another rank of a cluster could not do its part of an operation, so the operation fails on all ranks. The connection is
    /// intact. Unless the rank failed before anything was put, any part of a batch may be stored.
    Rank {
        /// The rank that failed.
        rank: usize,
        /// Its error message.
        reason: String,
    },
    /// Tables of several ranks that should form one set do not match.
    RanksDiffer {
        /// The property that differs.
        what: &'static str,
        /// A rank whose table differs from this one's.
        rank: usize,
        /// Value of this rank.
        own: String,
        /// Value of the other rank.
        other: String,
    },
}

impl Error {
    /// Error of a file, with the answer of the system.
    pub(crate) fn io(doing: &'static str, at: u64, error: &io::Error) -> Self {
        Self::Io { doing, at, kind: error.kind(), reason: error.to_string() }
    }

    /// No memory of the host.
    pub(crate) fn no_host_memory(asked: u64, reason: impl Into<String>) -> Self {
        Self::OutOfMemory { device: "the host".into(), asked, free: None, reason: reason.into() }
    }

    /// An operation that needs a table on a GPU.
    #[cfg(feature = "cuda")]
    pub(crate) fn needs_gpu(what: &'static str, device: impl fmt::Display) -> Self {
        Self::WrongDevice { what, given: device.to_string(), needed: "a GPU".into() }
    }

    /// The message, and those of all causes, for other ranks.
    #[cfg(any(test, feature = "cluster"))]
    pub(crate) fn with_causes(&self) -> String {
        match std::error::Error::source(self) {
            Some(cause) => format!("{self}: {cause}"),
            None => self.to_string(),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::TableFull { cause: Some(cause), .. } | Self::Stopped { cause: Some(cause), .. } => Some(&**cause),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange { what, given, least, most } => {
                write!(f, "{given} {what} are not supported, only {least} to {most}")
            }
            Self::UnknownName { what, name, known } => write!(f, "`{name}` names no {what}: use {known}"),
            Self::KeysDoNotFit { key_bits, slot_bits, slots, needed } => write!(
                f,
                "keys of {key_bits} bits do not fit a table of {slots} slots of {slot_bits} bits: use {needed} slots or more, or \
                 wider slots"
            ),
            Self::KeyTooLarge { key, position, key_bits } => {
                write!(f, "key {key:#x} at position {position} of the batch has more bits than the table's keys: {key_bits}")
            }
            Self::LastWordTooLarge { word, position, last_bits } => write!(
                f,
                "the last word, {word:#x}, of the vector at position {position} of the batch has more bits than the table's \
                 roots have room for: {last_bits}"
            ),
            Self::LengthMismatch { what, given, needed } => write!(f, "wrong number of {what}: {given} given, {needed} needed"),
            Self::OutOfMemory { device, asked, free, reason } => no_memory(f, device, *asked, *free, reason),
            Self::MemoryLimit { taken, needed, limit } => {
                write!(f, "the table takes {taken} bytes and needs {needed} more to grow, but may take {limit}")
            }
            Self::InvalidReferences { invalid, count } => {
                write!(f, "invalid references ({invalid} of {count}): no vector is stored there")
            }
            Self::StaleReferences { stale, count } => write!(
                f,
                "stale references ({stale} of {count}): the table has since grown, been cleared or relocated keys, or they \
                 belong to another table"
            ),
            Self::KeysWithoutSlot { keys } => {
                write!(f, "keys have lost their slots and are not stored any more ({}): {keys:x?}", keys.len())
            }
            Self::TableFull { rejected, for_nodes, offered, stored, slots, .. } => {
                full(f, [*rejected, *for_nodes, *offered, *stored, *slots])
            }
            Self::Stopped { offered, given, cause } => {
                let why = if cause.is_some() { "an error" } else { "its progress callback" };
                write!(f, "the batch was ended by {why} after {offered} of its {given} vectors")
            }
            Self::SelfDeadlock { call, held } => write!(
                f,
                "`{call}` would wait for ever: this thread holds the same table by `{held}`; first drop the value that `{held}` \
                 returned, or return from the closure or writer that it calls"
            ),
            Self::ChangedDuringIteration => f.write_str(
                "the table grew, was cleared or relocated keys during the iteration, so the references it gave are stale",
            ),
            Self::Misaligned { what, address, alignment } => {
                write!(f, "{what} starts at address {address:#x}, which is not a multiple of {alignment} bytes")
            }
            Self::WrongDevice { what, given, needed } => write!(f, "{what}: on {given}, but needs {needed}"),
            Self::Capturing => f.write_str(
                "the stream is being captured into a graph, which could be launched after the table or its buffers are gone",
            ),
            Self::LibraryNotFound { library, searched } => not_found(f, library, searched),
            Self::LibraryTooOld { library, path, found, needed } => {
                write!(f, "{library} {found}, at {path}, is too old: {needed} or later is needed")
            }
            Self::NoSuchGpu { ordinal, count } => {
                write!(f, "there is no GPU {ordinal}: GPUs found: {count}, numbered from 0")
            }
            Self::Compile { name, spec, status, options, log } => {
                write!(f, "NVRTC could not compile {name} for {spec}: {status}\noptions: {options:?}\n{log}")
            }
            Self::Cuda { what, status, .. } => write!(f, "CUDA: {what}: {status}"),
            Self::Io { doing, at, reason, .. } => failed(f, doing, *at, reason),
            Self::File { fault } => write!(f, "no table can be loaded from this: {fault}"),
            Self::Connection { rank, reason } => {
                write!(f, "the connection between the ranks has ended: rank {rank} {reason}")
            }
            Self::Rank { rank, reason } => write!(f, "rank {rank} has failed: {reason}"),
            Self::RanksDiffer { what, rank, own, other } => {
                write!(f, "the ranks' tables differ in {what}: {own} here, {other} on rank {rank}")
            }
        }
    }
}

/// Defect of the source of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileFault {
    /// The source is not a saved table.
    Foreign {
        /// Its first bytes.
        found: [u8; 8],
    },
    /// The file was written by a later version of warpset.
    Newer {
        /// Version of the file.
        version: u32,
        /// The newest one that can be read.
        newest: u32,
    },
    /// The file was written by an earlier version of warpset, and tables of its kind are no longer read from such files.
    Older {
        /// Version of the file.
        version: u32,
        /// The oldest one from which such a table can be read.
        oldest: u32,
    },
    /// The source ends too early.
    Truncated {
        /// Bytes that the source has.
        bytes: u64,
        /// Bytes that it needs, as far as is known.
        needed: u64,
    },
    /// Bytes have changed, or were never those of a table.
    Damaged {
        /// The contradiction that was found.
        what: String,
        /// First byte of the damaged range.
        at: u64,
        /// Length of the damaged range, in bytes.
        bytes: u64,
    },
    /// The table has another kind or width than requested.
    OtherTable {
        /// The table in the file.
        found: String,
        /// The requested table.
        wanted: String,
    },
}

impl std::error::Error for FileFault {}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign { found } => write!(f, "it is not a saved table: it begins with the bytes {found:02x?}"),
            Self::Newer { version, newest } => {
                write!(f, "its format has version {version}, and this warpset reads versions up to {newest}")
            }
            Self::Older { version, oldest } => {
                write!(
                    f,
                    "its format has version {version}, and such tables are read from version {oldest} on: put its rows again"
                )
            }
            Self::Truncated { bytes, needed } => write!(f, "it ends after {bytes} of {needed} bytes"),
            Self::Damaged { what, at, bytes } => write!(f, "it is damaged: {what} (bytes: {bytes}, from byte {at} on)"),
            Self::OtherTable { found, wanted } => {
                write!(f, "it is {} {found}, not {} {wanted}", article(found), article(wanted))
            }
        }
    }
}

/// The indefinite article of a name.
#[cold]
#[inline(never)]
fn article(name: &str) -> &'static str {
    if name.starts_with(['A', 'E', 'I', 'O', 'a', 'e', 'i', 'o']) { "an" } else { "a" }
}

// Messages with conditions. They are not inlined: the formatting of all errors is one function, for which LLVM 22 may otherwise
// need a minute.

#[cold]
#[inline(never)]
fn no_memory(f: &mut fmt::Formatter<'_>, device: &str, asked: u64, free: Option<u64>, reason: &str) -> fmt::Result {
    match free {
        Some(free) => write!(f, "{device} has {free} bytes of memory free, but {asked} bytes are needed"),
        None => write!(f, "{device} has no memory for {asked} bytes"),
    }?;
    if reason.is_empty() { Ok(()) } else { write!(f, ": {reason}") }
}

#[cold]
#[inline(never)]
fn full(f: &mut fmt::Formatter<'_>, [rejected, for_nodes, offered, stored, slots]: [u64; 5]) -> fmt::Result {
    write!(f, "the table is full: rejected vectors {rejected} of {offered}")?;
    if for_nodes > 0 {
        write!(f, " (without a free node {for_nodes})")?;
    }
    write!(f, ", stored {stored}, slots {slots}; make room by `reserve_total`, or build the table with `grows(true)`")
}

#[cold]
#[inline(never)]
fn failed(f: &mut fmt::Formatter<'_>, doing: &str, at: u64, reason: &str) -> fmt::Result {
    write!(f, "{doing} failed")?;
    if at > 0 {
        write!(f, " at byte {at}")?;
    }
    write!(f, ": {reason}")
}

#[cold]
#[inline(never)]
fn not_found(f: &mut fmt::Formatter<'_>, library: &str, searched: &[String]) -> fmt::Result {
    let shortest = searched.iter().min_by_key(|name| name.len()).map_or("library", String::as_str);
    write!(f, "{library} not found: no {shortest} on the library path of the system (LD_LIBRARY_PATH, ld.so.conf)")
}

/// A result with warpset's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    #[test]
    fn messages_have_the_articles_of_the_names() {
        let fault = FileFault::OtherTable { found: "IndexedTable of 4-word vectors".into(), wanted: "TreeTable".into() };
        assert_eq!(fault.to_string(), "it is an IndexedTable of 4-word vectors, not a TreeTable");
        let fault = FileFault::OtherTable { found: "table of 3 words".into(), wanted: "IndexedTable".into() };
        assert_eq!(fault.to_string(), "it is a table of 3 words, not an IndexedTable");
    }

    /// A cause is found by its type, and is no part of the message.
    #[test]
    fn causes_are_sources() {
        let cause = Error::MemoryLimit { taken: 1, needed: 2, limit: 3 };
        let stopped = |cause: Option<Error>| Error::Stopped { offered: 4, given: 5, cause: cause.map(Box::new) };
        let (error, without) = (stopped(Some(cause.clone())), stopped(None));
        assert_eq!(error.source().and_then(|source| source.downcast_ref()), Some(&cause));
        assert!(without.source().is_none() && !error.to_string().contains(&cause.to_string()));
        assert_eq!(error.with_causes(), format!("{error}: {cause}"));
        assert_eq!(without.with_causes(), without.to_string());
    }
}
