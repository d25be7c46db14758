use crate::{Spec, Strategy};

/// What went wrong, with the numbers in it.
///
/// Unless a variant says otherwise, an error is found before anything is changed: the table holds what it held, and nothing
/// stored is lost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Vectors have between 1 and 256 words.
    #[error("a vector of {width} words is not supported: the width is 1 to {max}", max = Spec::MAX_WIDTH)]
    Width {
        /// The width asked for.
        width: usize,
    },
    /// Keys of compact tables have between 20 and 64 bits.
    #[error("keys of {key_bits} bits are not supported: they have {least} to {most}", least = Spec::KEY_BITS.start(), most = Spec::KEY_BITS.end())]
    KeyBits {
        /// The bits asked for.
        key_bits: u32,
    },
    /// Slots of compact tables have 16, 32 or 64 bits.
    #[error("slots of {slot_bits} bits are not supported: they have 16, 32 or 64")]
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
    /// What a bucket does not tell of a key is more than a slot holds.
    #[error(
        "keys of {key_bits} bits do not fit {slots} slots of {slot_bits} bits: they fit {needed} such slots or more, or slots of more bits"
    )]
    KeysDoNotFit {
        /// Bits a key.
        key_bits: u32,
        /// Bits a slot.
        slot_bits: u32,
        /// Slots asked for.
        slots: u64,
        /// The fewest that would do.
        needed: u64,
    },
    /// A key has more bits than the keys of its table. No key of the batch was searched for.
    #[error("key {key:#x}, number {position} of the batch, does not fit the table's {key_bits} bits a key")]
    KeyTooLarge {
        /// The first such key of the batch.
        key: u64,
        /// Its position, in keys.
        position: usize,
        /// Bits a key.
        key_bits: u32,
    },
    /// The words given are not a whole number of vectors.
    #[error("{words} words are not a whole number of vectors of {width} words: {left} are left over", left = words % width)]
    RaggedVectors {
        /// The words given.
        words: usize,
        /// The words of one vector.
        width: usize,
    },
    /// A capacity of zero, or of more than references can number.
    #[error("a table of {capacity} vectors of {width} words cannot be made: there are 1 to {most} slots", most = crate::layout::limits::MAX_CAPACITY)]
    Capacity {
        /// The capacity asked for, in vectors.
        capacity: u64,
        /// The words of one vector.
        width: usize,
    },
    /// The device has too little free memory.
    #[error("{device} has {free} bytes of memory free, but {asked} were asked for")]
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
    /// References that no stored vector has. Nothing is returned for the others either.
    #[error("{invalid} of {count} references are to no stored vector")]
    InvalidReferences {
        /// How many.
        invalid: u64,
        /// How many were given.
        count: usize,
    },
    /// References of an earlier generation (the table has grown, was cleared or has relocated keys since), or of another table.
    /// Nothing was done with the others either.
    #[error(
        "{stale} of {count} references are stale: of before the table last grew, was cleared or relocated keys, or of another table"
    )]
    StaleReferences {
        /// How many.
        stale: u64,
        /// How many were given.
        count: usize,
    },
    /// A node table of this size cannot be: its nodes are known by 32 bits.
    #[error("a node table has 1 to {most} slots, not {nodes}")]
    Nodes {
        /// Slots asked for.
        nodes: u64,
        /// Slots at most.
        most: u64,
    },
    /// There is no build strategy of this name.
    #[error("there is no strategy `{name}`: there are {}", Strategy::ALL.map(|strategy| strategy.to_string()).join(", "))]
    UnknownStrategy {
        /// The name given.
        name: String,
    },
    /// Keys that were stored are stored no more. While the keys of a cuckoo table were moved, these were left without a slot,
    /// however often all were moved again. By calculation this does not happen (cuda/warpset/compact/relocation.cuh); if it does,
    /// here they are.
    #[error("{} keys, {keys:x?}, have lost their slots and are not stored any more", keys.len())]
    KeysWithoutSlot {
        /// All of them.
        keys: Vec<u64>,
    },
    /// Some vectors found no free slot, or no free node, within the probe limit. All others of the batch are stored.
    #[error(
        "the table is full: {rejected} of {offered} vectors were rejected{}, {stored} are stored in {slots} slots{}",
        if *for_nodes > 0 { format!(" ({for_nodes} for want of a node)") } else { String::new() },
        cause.as_ref().map_or_else(String::new, |error| format!("; it could not make room: {error}"))
    )]
    TableFull {
        /// Vectors rejected, duplicates counted.
        rejected: u64,
        /// How many of those because the node table of a tree table was full.
        for_nodes: u64,
        /// Vectors offered by the call.
        offered: u64,
        /// Vectors stored now.
        stored: u64,
        /// Slots of the table.
        slots: u64,
        /// Why there is no more room, of a table that makes room by itself. It is in the text, and so no
        /// [`source`](std::error::Error::source).
        cause: Option<Box<Error>>,
    },
    /// A batch ended before all of its vectors were offered: by its [progress callback](crate::Request::progress), or by an error
    /// after something was put. All that were offered are stored.
    #[error(
        "the batch ended after {offered} of its {given} vectors: {}",
        cause.as_ref().map_or_else(|| "its progress callback has stopped it".into(), |error| error.to_string())
    )]
    Stopped {
        /// Vectors that were offered.
        offered: u64,
        /// Vectors of the batch.
        given: u64,
        /// The error, if it was one. It is in the text, and so no [`source`](std::error::Error::source).
        cause: Option<Box<Error>>,
    },
    /// The call would wait for the thread that makes it, and so for ever: this thread holds the table, by what `held` has
    /// returned, or in a closure or a writer that `held` calls. Drop that, or return from there, before the call.
    /// [Which calls wait for what](crate::threads_and_streams#what-a-thread-holds).
    ///
    /// A batch that would have to make the table grow for this reason is not refused: its vectors go into the slots there are,
    /// and this is in [`Batch::error`](crate::Batch::error).
    #[error(
        "`{call}` would wait for ever: this thread holds the same table by `{held}`; first drop what `{held}` has returned, or return from the closure or writer that it calls"
    )]
    SelfDeadlock {
        /// The call that was refused.
        call: &'static str,
        /// The call of the same thread by which it holds the table: the last one, if there are several.
        held: &'static str,
    },
    /// A table can only grow into more slots than it has.
    #[error("a table of {slots} slots cannot grow to a capacity of {capacity}")]
    NotLarger {
        /// The capacity asked for.
        capacity: u64,
        /// Slots of the table.
        slots: u64,
    },
    /// The table grew, was cleared or relocated keys while its vectors were being iterated over.
    #[error("the table grew, was cleared or relocated keys during the iteration, so the references it gave are stale")]
    ChangedDuringIteration,
    /// What was given with a batch is not as long as the batch.
    #[error("{given} {what} were given, but the batch needs {needed}")]
    Rows {
        /// What was given.
        what: &'static str,
        /// How many.
        given: usize,
        /// How many the batch's vectors need.
        needed: usize,
    },
    /// A buffer of the caller is too short.
    #[error("{what} has room for {given} elements, but {needed} are needed")]
    BufferTooShort {
        /// Which buffer.
        what: &'static str,
        /// Its length, in elements.
        given: usize,
        /// The length it needs.
        needed: usize,
    },
    /// A buffer of the caller is not aligned as its vectors need.
    #[error("{what} starts at address {address:#x}, which is not a multiple of {alignment} bytes")]
    Misaligned {
        /// Which buffer.
        what: &'static str,
        /// Where it starts.
        address: u64,
        /// The alignment needed.
        alignment: u64,
    },
    /// A stream or buffer of one device, or context, was given to a table of another.
    #[error("{what}: of {given}, but the table is on {table}")]
    WrongDevice {
        /// Which stream or buffer.
        what: &'static str,
        /// Whose it is.
        given: String,
        /// Where the table is.
        table: String,
    },
    /// Work on a table cannot be captured into a graph: whoever launches the graph later could not know that table and buffers
    /// are there still.
    #[error("the stream is being captured into a graph, which could be launched after the table or its buffers are gone")]
    Capturing,
    /// A shared library could not be loaded.
    #[error(
        "{library} not found: no {} where the system's loader looks (LD_LIBRARY_PATH, ld.so.conf)",
        searched.iter().min_by_key(|name| name.len()).map_or("library", String::as_str)
    )]
    LibraryNotFound {
        /// What it is.
        library: &'static str,
        /// All file names that were tried; the message has the shortest.
        searched: Vec<String>,
    },
    /// A shared library is of a version that lacks what is needed.
    #[error("{library} {found}, at {path}, is too old: {needed} or later is needed")]
    LibraryTooOld {
        /// What it is.
        library: &'static str,
        /// The file, by name or path.
        path: String,
        /// Its version.
        found: String,
        /// The oldest that would do.
        needed: String,
    },
    /// There is no such GPU.
    #[error("there is no GPU {ordinal}: {count} found")]
    NoSuchGpu {
        /// The number asked for, from 0.
        ordinal: usize,
        /// How many there are.
        count: usize,
    },
    /// No device that this build can use.
    #[error("no usable device: {reason}")]
    NoDevice {
        /// Why not.
        reason: String,
    },
    /// The device is of another kind than the operation needs.
    #[error("{operation} needs a table on a GPU; this one is on {device}")]
    NotOnGpu {
        /// What was asked for.
        operation: &'static str,
        /// Where the table is.
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
    /// A call of the CUDA driver failed. If it was a kernel that failed, the GPU's context is lost, and all tables on it.
    /// Otherwise the table is good. Any part of a batch that ends in this error may have been put. Offering it again is right,
    /// but what has been put is Seen then, and nobody is told that it is New.
    #[error("CUDA: {what}: {status}")]
    Cuda {
        /// What was being done.
        what: &'static str,
        /// The driver's answer.
        status: String,
    },
    /// Text that names no device.
    #[error("there is no device `{name}`: there are cpu, cpu:THREADS (1 to {most}), gpu, gpu:NUMBER and best", most = crate::layout::limits::MAX_THREADS)]
    UnknownDevice {
        /// The text.
        name: String,
    },
    /// More threads than a device can have.
    #[error("{threads} threads were asked for: a CPU device has 1 to {most}", most = crate::layout::limits::MAX_THREADS)]
    Threads {
        /// How many were asked for.
        threads: u64,
    },
    /// The system gave no memory: to the CPU backend, or for the results of a batch.
    #[error("the system refused {bytes} bytes of memory: {reason}")]
    Allocation {
        /// Bytes asked for.
        bytes: u64,
        /// The system's answer.
        reason: String,
    },
    /// Reading or writing failed, while a table was loaded or saved. A table that was to be saved is as it was. A file that was
    /// to be written is not there, or is what it was; unless `doing` says that it was replaced, and only its folder could not be
    /// synchronised with the disk.
    #[error("{doing} failed{}: {reason}", if *at > 0 { format!(" at byte {at}") } else { String::new() })]
    Io {
        /// What was being done.
        doing: &'static str,
        /// Bytes of the table's file before.
        at: u64,
        /// The system's answer.
        reason: String,
    },
    /// What a table was to be loaded from cannot be that. Nothing was made of it.
    #[error("no table can be loaded from this: {fault}")]
    File {
        /// What is wrong with it.
        fault: FileFault,
    },
    /// The connection between the ranks of a cluster has ended: a rank is gone, has stalled, or a message is not what it must be.
    /// All ranks get this. Each one's table has what was stored, any part of a batch that was under way included; see
    /// [`cluster::Table::reconnect`](crate::cluster::Table::reconnect).
    #[error("the connection between the ranks has ended: rank {rank} {reason}")]
    Connection {
        /// Which rank was found to have failed.
        rank: usize,
        /// What it did, or did not do.
        reason: String,
    },
    /// Another rank of a cluster could not do its part of an operation, which so is an error on all. The connection is good.
    /// Unless that was before anything was done, any part of a batch may be stored.
    #[error("rank {rank} has failed: {reason}")]
    Rank {
        /// Which.
        rank: usize,
        /// What it said.
        reason: String,
    },
    /// Ranks of a cluster have called different operations, or the same in different orders. The connection has ended.
    #[error("the ranks are out of step: this one is in its operation {own}, rank {rank} in {other}")]
    OutOfStep {
        /// A rank that is not where this one is.
        rank: usize,
        /// What this rank was doing, and its how manieth exchange that was.
        own: String,
        /// What the other was doing.
        other: String,
    },
    /// Text that names no place where ranks meet.
    #[error("there is no rendezvous `{text}`: there are file:PATH and tcp:HOST:PORT")]
    UnknownRendezvous {
        /// The text.
        text: String,
    },
    /// Tables that are to be one set over several ranks do not fit together.
    #[error("the ranks' tables differ in {what}: {own} here, {other} on rank {rank}")]
    RanksDiffer {
        /// In what.
        what: &'static str,
        /// A rank whose table is another than this one's.
        rank: usize,
        /// What this one has.
        own: String,
        /// What that one has.
        other: String,
    },
}

/// What is wrong with what a table was to be loaded from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileFault {
    /// It is something else.
    #[error("it begins with the bytes {found:02x?}, which no saved table does")]
    Foreign {
        /// Its first bytes.
        found: [u8; 8],
    },
    /// A later warpset has written it.
    #[error("its format has version {version}, and this warpset reads versions up to {newest}")]
    Newer {
        /// That of the file.
        version: u32,
        /// The newest one that can be read.
        newest: u32,
    },
    /// It ends too early.
    #[error("it ends after {bytes} of {needed} bytes")]
    Truncated {
        /// Bytes that there are.
        bytes: u64,
        /// Bytes that there must be, as far as could be told.
        needed: u64,
    },
    /// Bytes have changed, or were never those of a table.
    #[error("it is damaged: {what} (the {bytes} bytes from byte {at} on)")]
    Damaged {
        /// What cannot be so.
        what: String,
        /// Where that is.
        at: u64,
        /// How many bytes that is.
        bytes: u64,
    },
    /// It is a table of another kind or width than was asked for.
    #[error("it is a {found}, not a {wanted}")]
    OtherTable {
        /// What it is.
        found: String,
        /// What was asked for.
        wanted: String,
    },
}

/// A result with warpset's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
