use crate::{Spec, Strategy};

/// An error of the library, with its numbers.
///
/// Unless a variant says otherwise, an error is found before anything is changed: the table holds what it held, and nothing
/// stored is lost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Vectors have between 1 and 256 words.
    #[error("a vector of {width} words is not supported: the width is 1 to {max} words", max = Spec::MAX_WIDTH)]
    Width {
        /// The width asked for.
        width: usize,
    },
    /// Keys of compact tables have between 20 and 64 bits.
    #[error(
        "keys of {key_bits} bits are not supported: keys have {least} to {most} bits",
        least = Spec::KEY_BITS.start(),
        most = Spec::KEY_BITS.end()
    )]
    KeyBits {
        /// The bits asked for.
        key_bits: u32,
    },
    /// Slots of compact tables have 16, 32 or 64 bits.
    #[error("slots of {slot_bits} bits are not supported: slots have 16, 32 or 64 bits")]
    SlotBits {
        /// The bits asked for.
        slot_bits: u32,
    },
    /// Keys of compact tables are vectors of two words.
    #[error("the keys of a compact table are vectors of 2 words, low word first, not of {width}")]
    KeyWords {
        /// The width asked for.
        width: usize,
    },
    /// The part of a key that its bucket does not imply is larger than a slot.
    #[error(
        "keys of {key_bits} bits do not fit a table of {slots} slots of {slot_bits} bits: use {needed} slots or more, or wider \
         slots"
    )]
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
    #[error("key {key:#x} at position {position} of the batch has more bits than the table's keys: {key_bits}")]
    KeyTooLarge {
        /// The first such key of the batch.
        key: u64,
        /// Its position, in keys.
        position: usize,
        /// Bits a key.
        key_bits: u32,
    },
    /// The words given are not a whole number of vectors.
    #[error(
        "the batch is not a whole number of vectors: length in words {words}, width {width}, remainder {left}",
        left = words % width
    )]
    RaggedVectors {
        /// The words given.
        words: usize,
        /// The words of one vector.
        width: usize,
    },
    /// The capacity is zero, or larger than references can number.
    #[error(
        "a capacity of {capacity} (width {width}) is not supported: a table has 1 to {most} slots",
        most = crate::layout::limits::MAX_CAPACITY
    )]
    Capacity {
        /// The capacity asked for, in vectors.
        capacity: u64,
        /// The words of one vector.
        width: usize,
    },
    /// The device has too little free memory.
    #[error("{device} has {free} bytes of memory free, but {asked} bytes are needed")]
    OutOfMemory {
        /// The device, by name.
        device: String,
        /// Bytes asked for.
        asked: u64,
        /// Bytes free when it was asked.
        free: u64,
    },
    /// A table that grows would take more memory than it may: see [`TableBuilder::memory`](crate::TableBuilder::memory).
    #[error("the table takes {taken} bytes and needs {needed} more to grow, but may take {limit}")]
    MemoryLimit {
        /// Bytes that the table takes.
        taken: u64,
        /// Bytes that the smallest larger table takes in addition, while the table grows.
        needed: u64,
        /// Bytes that the old and the new table may take together.
        limit: u64,
    },
    /// References to no stored vector. Nothing is returned for the others either.
    #[error("invalid references ({invalid} of {count}): no vector is stored there")]
    InvalidReferences {
        /// Number of invalid references.
        invalid: u64,
        /// Number of references given.
        count: usize,
    },
    /// References of an earlier generation (the table has grown, was cleared or has relocated keys since), or of another table.
    /// Nothing was done with the others either.
    #[error(
        "stale references ({stale} of {count}): the table has since grown, been cleared or relocated keys, or they belong to \
         another table"
    )]
    StaleReferences {
        /// Number of stale references.
        stale: u64,
        /// Number of references given.
        count: usize,
    },
    /// The values belong to another table than the one whose keys are given.
    #[error("the values belong to another table than the one that the keys are put into")]
    ForeignValues,
    /// The node table has an unsupported size: nodes are named by 32 bits.
    #[error("a node table has 1 to {most} slots, not {nodes}")]
    Nodes {
        /// Slots asked for.
        nodes: u64,
        /// Slots at most.
        most: u64,
    },
    /// No build strategy has this name.
    #[error("there is no strategy `{name}`; the strategies are {}", strategies())]
    UnknownStrategy {
        /// The name given.
        name: String,
    },
    /// Keys that were stored are not stored any more. While the keys of a cuckoo table were relocated, these were left without a
    /// slot, in spite of repeated relocation of all keys. By calculation this does not happen
    /// (cuda/warpset/compact/relocation.cuh). If it does, the error lists the keys.
    #[error("keys have lost their slots and are not stored any more ({}): {keys:x?}", keys.len())]
    KeysWithoutSlot {
        /// All of them.
        keys: Vec<u64>,
    },
    /// Some vectors found no free slot, or no free node, within the probe limit. All others of the batch are stored.
    #[error(
        "the table is full: rejected vectors {rejected} of {offered}{}, stored {stored}, slots {slots}{}",
        unless_zero(" (without a free node ", *for_nodes, ")"),
        because("; making room failed: ", cause, "")
    )]
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
        /// For a table that makes room by itself: why it could not. It is part of the message, and therefore not the
        /// [`source`](std::error::Error::source).
        cause: Option<Box<Error>>,
    },
    /// A batch ended before all of its vectors were offered: by its [progress callback](crate::Request::progress), or by an error
    /// after something was put. All that were offered are stored.
    #[error("the batch ended after {offered} of its {given} vectors: {}", because("", cause, "its progress callback stopped it"))]
    Stopped {
        /// Vectors that were offered.
        offered: u64,
        /// Vectors of the batch.
        given: u64,
        /// The error that ended the batch, if any. It is part of the message, and therefore not the
        /// [`source`](std::error::Error::source).
        cause: Option<Box<Error>>,
    },
    /// The call would wait for its own thread, and so for ever. The thread holds the table by a value that `held` returned, or it
    /// is in a closure or writer that `held` calls. Drop the value, or return from the closure or writer, before the call.
    /// [Which calls wait for what](crate::threads_and_streams#what-a-thread-holds).
    ///
    /// A batch that needs the table to grow is not refused for this reason: its vectors use the remaining slots, and this error
    /// is in [`Batch::error`](crate::Batch::error).
    #[error(
        "`{call}` would wait for ever: this thread holds the same table by `{held}`; first drop the value that `{held}` \
         returned, or return from the closure or writer that it calls"
    )]
    SelfDeadlock {
        /// The call that was refused.
        call: &'static str,
        /// The call of the same thread by which it holds the table: the last one, if there are several.
        held: &'static str,
    },
    /// A table can only grow into more slots than it has.
    #[error("a table of {slots} slots cannot grow to a capacity of {capacity}: that is not larger")]
    NotLarger {
        /// The capacity asked for.
        capacity: u64,
        /// Slots of the table.
        slots: u64,
    },
    /// The table grew, was cleared or relocated keys while its vectors were being iterated over.
    #[error("the table grew, was cleared or relocated keys during the iteration, so the references it gave are stale")]
    ChangedDuringIteration,
    /// A slice that was passed with a batch has the wrong length for the batch.
    #[error("wrong number of {what}: {given} given, {needed} needed")]
    Rows {
        /// The slice.
        what: &'static str,
        /// Its length.
        given: usize,
        /// The length that the batch's vectors need.
        needed: usize,
    },
    /// A buffer of the caller is too short.
    #[error("{what} is too short: {given} elements given, {needed} needed")]
    BufferTooShort {
        /// The buffer.
        what: &'static str,
        /// Its length, in elements.
        given: usize,
        /// The length it needs.
        needed: usize,
    },
    /// A buffer of the caller is not aligned as its vectors need.
    #[error("{what} starts at address {address:#x}, which is not a multiple of {alignment} bytes")]
    Misaligned {
        /// The buffer.
        what: &'static str,
        /// Address of the first byte.
        address: u64,
        /// The alignment needed.
        alignment: u64,
    },
    /// A stream or buffer of one device, or context, was passed to a table of another.
    #[error("{what}: belongs to {given}, but the table is on {table}")]
    WrongDevice {
        /// The stream or buffer.
        what: &'static str,
        /// Its device.
        given: String,
        /// Device of the table.
        table: String,
    },
    /// Work on a table cannot be captured into a graph: the graph could be launched after the table or its buffers are gone.
    #[error("the stream is being captured into a graph, which could be launched after the table or its buffers are gone")]
    Capturing,
    /// A shared library could not be loaded.
    #[error("{library} not found: no {} on the library path of the system (LD_LIBRARY_PATH, ld.so.conf)", shortest(searched))]
    LibraryNotFound {
        /// Name of the library.
        library: &'static str,
        /// All file names that were tried; the message has the shortest.
        searched: Vec<String>,
    },
    /// A shared library is of a version that lacks what is needed.
    #[error("{library} {found}, at {path}, is too old: {needed} or later is needed")]
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
    #[error("there is no GPU {ordinal}: GPUs found: {count}, numbered from 0")]
    NoSuchGpu {
        /// The number asked for, from 0.
        ordinal: usize,
        /// Number of GPUs found.
        count: usize,
    },
    /// No device is available that this build can use.
    #[error("no usable device: {reason}")]
    NoDevice {
        /// The reasons.
        reason: String,
    },
    /// The device is of another kind than the operation needs.
    #[error("{operation} needs a table on a GPU; this one is on {device}")]
    NotOnGpu {
        /// The requested operation.
        operation: &'static str,
        /// Device of the table.
        device: String,
    },
    /// NVRTC rejected the kernels.
    #[error("NVRTC could not compile {name} for {spec}: {status}\noptions: {options:?}\n{log}")]
    Compile {
        /// The source's name.
        name: String,
        /// The table spec it was compiled for.
        spec: Spec,
        /// NVRTC's status.
        status: String,
        /// The options given to NVRTC.
        options: Vec<String>,
        /// NVRTC's log.
        log: String,
    },
    /// A call of the CUDA driver failed. If a kernel failed, the GPU's context is lost, and all tables on it. Otherwise the table
    /// is intact. Any part of a batch that ends in this error may have been put. The batch can be offered again; vectors that
    /// were put are then Seen, and are never reported as New.
    #[error("CUDA: {what}: {status}")]
    Cuda {
        /// The action that failed.
        what: &'static str,
        /// The driver's answer.
        status: String,
    },
    /// The text does not name a device.
    #[error(
        "there is no device `{name}`; the devices are cpu, cpu:THREADS (1 to {most}), gpu, gpu:NUMBER and best",
        most = crate::layout::limits::MAX_THREADS
    )]
    UnknownDevice {
        /// The text.
        name: String,
    },
    /// More threads than a device can have.
    #[error("a CPU device has 1 to {most} threads, not {threads}", most = crate::layout::limits::MAX_THREADS)]
    Threads {
        /// The requested number.
        threads: u64,
    },
    /// Tables on GPUs have no [filter](crate::TableBuilder::filter).
    #[error("a table on {device} has no filter; leave out `filter(true)`, or use a CPU device")]
    Filter {
        /// The device of the table.
        device: String,
    },
    /// The system refused memory to the CPU backend, or for the results of a batch.
    #[error("the system refused {bytes} bytes of memory: {reason}")]
    Allocation {
        /// Bytes asked for.
        bytes: u64,
        /// The system's answer.
        reason: String,
    },
    /// Reading or writing failed while a table was loaded or saved. The table that was being saved is unchanged. The file that
    /// was being written does not exist, or has its old content, unless `doing` says that it was replaced, and only its folder
    /// could not be synchronised with the disk.
    #[error("{doing} failed{}: {reason}", unless_zero(" at byte ", *at, ""))]
    Io {
        /// The action that failed.
        doing: &'static str,
        /// Position in the table's file, in bytes.
        at: u64,
        /// The system's answer.
        reason: String,
    },
    /// The source does not hold a table that can be loaded. No table was made.
    #[error("no table can be loaded from this: {fault}")]
    File {
        /// The defect.
        fault: FileFault,
    },
    /// The connection between the ranks of a cluster has ended: a rank has ended or stalled, or a message is wrong.
    /// All ranks get this. Each rank's table has all that was stored, including any part of a batch that was under way; see
    /// [`cluster::Table::reconnect`](crate::cluster::Table::reconnect).
    #[error("the connection between the ranks has ended: rank {rank} {reason}")]
    Connection {
        /// The rank that failed, as far as is known.
        rank: usize,
        /// How it failed.
        reason: String,
    },
    /// Another rank of a cluster could not do its part of an operation, so the operation fails on all ranks. The connection is
    /// intact. Unless the rank failed before anything was put, any part of a batch may be stored.
    #[error("rank {rank} has failed: {reason}")]
    Rank {
        /// The rank that failed.
        rank: usize,
        /// Its error message.
        reason: String,
    },
    /// Ranks of a cluster have called different operations, or the same ones in different orders. The connection has ended.
    #[error("the ranks are out of step: this one is in its operation {own}, rank {rank} in {other}")]
    OutOfStep {
        /// A rank that is at another operation.
        rank: usize,
        /// The operation of this rank, and the number of its exchange.
        own: String,
        /// The operation of the other rank.
        other: String,
    },
    /// The text does not name a rendezvous.
    #[error("`{text}` is not a rendezvous: use file:PATH or tcp:HOST:PORT")]
    UnknownRendezvous {
        /// The text.
        text: String,
    },
    /// Tables of several ranks that should form one set do not match.
    #[error("the ranks' tables differ in {what}: {own} here, {other} on rank {rank}")]
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

/// Defect of the source of a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileFault {
    /// The source is not a saved table.
    #[error("it is not a saved table: it begins with the bytes {found:02x?}")]
    Foreign {
        /// Its first bytes.
        found: [u8; 8],
    },
    /// The file was written by a later version of warpset.
    #[error("its format has version {version}, and this warpset reads versions up to {newest}")]
    Newer {
        /// Version of the file.
        version: u32,
        /// The newest one that can be read.
        newest: u32,
    },
    /// The source ends too early.
    #[error("it ends after {bytes} of {needed} bytes")]
    Truncated {
        /// Bytes that the source has.
        bytes: u64,
        /// Bytes that it needs, as far as is known.
        needed: u64,
    },
    /// Bytes have changed, or were never those of a table.
    #[error("it is damaged: {what} (bytes: {bytes}, from byte {at} on)")]
    Damaged {
        /// The contradiction that was found.
        what: String,
        /// First byte of the damaged range.
        at: u64,
        /// Length of the damaged range, in bytes.
        bytes: u64,
    },
    /// The table has another kind or width than requested.
    #[error("it is {} {found}, not {} {wanted}", article(found), article(wanted))]
    OtherTable {
        /// The table in the file.
        found: String,
        /// The requested table.
        wanted: String,
    },
}

/// The indefinite article of a name.
#[cold]
#[inline(never)]
fn article(name: &str) -> &'static str {
    if name.starts_with(['A', 'E', 'I', 'O', 'a', 'e', 'i', 'o']) { "an" } else { "a" }
}

// Parts of messages. They are not inlined: the formatting of all errors is one function, for which LLVM 22 may otherwise need a
// minute.

/// A number between two texts, or nothing for 0.
#[cold]
#[inline(never)]
fn unless_zero(before: &str, number: u64, behind: &str) -> String {
    if number > 0 { format!("{before}{number}{behind}") } else { String::new() }
}

/// The message of `cause` behind a text. Without a cause: `otherwise`.
#[cold]
#[inline(never)]
fn because(before: &str, cause: &Option<Box<Error>>, otherwise: &str) -> String {
    cause.as_ref().map_or_else(|| otherwise.into(), |error| format!("{before}{error}"))
}

/// Shortest of the names of a library.
#[cold]
#[inline(never)]
fn shortest(names: &[String]) -> &str {
    names.iter().min_by_key(|name| name.len()).map_or("library", String::as_str)
}

/// Names of all strategies.
#[cold]
#[inline(never)]
fn strategies() -> String {
    Strategy::ALL.map(|strategy| strategy.to_string()).join(", ")
}

/// A result with warpset's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_articles_of_the_names() {
        let fault = FileFault::OtherTable { found: "IndexedTable of 4-word vectors".into(), wanted: "TreeTable".into() };
        assert_eq!(fault.to_string(), "it is an IndexedTable of 4-word vectors, not a TreeTable");
        let fault = FileFault::OtherTable { found: "table of 3 words".into(), wanted: "IndexedTable".into() };
        assert_eq!(fault.to_string(), "it is a table of 3 words, not an IndexedTable");
    }
}
