//! Ranks that are threads of one process: messages are copied from the sender's memory to the receiver's.
//!
//! A message lies in the box of its sender and receiver until the receiver takes it. Records are copied into the message. The
//! memory of an exchange is not copied into a message: the receiver copies from the sender's memory, and the sender's `finish`
//! waits until all of its messages were taken. If the sender gives up, it takes back the messages that no rank has begun to copy,
//! and waits for the copies that are under way. This wait takes as long as a copy, whatever else has gone wrong.

use super::transport::{MemorySpace, Region, Transport, deadline};
#[cfg(feature = "cuda")]
use crate::backend::cuda::{SharedEvent, SharedStream};
use crate::{Error, Result};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The [`Transport`] between ranks that are threads of one process: on CPUs, on one GPU, or on several.
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use warpset::cluster::{Local, Transport};
///
/// let ranks = Local::ranks(2).into_iter();
/// let sums = std::thread::scope(|scope| {
///     let of = |mut rank: Local| {
///         scope.spawn(move || {
///             let mut sum = [rank.rank() as u64 + 1];
///             rank.all_reduce(&mut sum).map(|()| sum[0])
///         })
///     };
///     ranks.map(of).collect::<Vec<_>>().into_iter().map(|rank| rank.join().unwrap()).collect::<Result<Vec<_>, _>>()
/// })?;
/// assert_eq!(sums, [3, 3]);
/// # Ok(()) }
/// ```
pub struct Local {
    rank: usize,
    shared: Arc<SharedState>,
    /// Destinations, by sender, of the messages of the exchange that is under way.
    receive: Option<Vec<Region>>,
    /// Time for which a waiting thread polls before it sleeps.
    awake: Duration,
    /// Streams of the memory that this rank sends in this exchange. `copied`: by sender, the event after the copy of its message.
    #[cfg(feature = "cuda")]
    sending: Vec<SharedStream>,
    #[cfg(feature = "cuda")]
    copied: Vec<Option<SharedEvent>>,
}

struct SharedState {
    ranks: usize,
    timeout: Duration,
    state: Mutex<State>,
    /// Notified after each change of the state.
    changed: Condvar,
}

struct State {
    /// Messages by sender, then receiver; oldest first.
    boxes: Vec<VecDeque<Message>>,
    /// By sender: number of its messages that are being copied now.
    copied_from: Vec<usize>,
    /// By sender: enqueued copies of its messages, which the sender has not yet waited for.
    #[cfg(feature = "cuda")]
    enqueued: Vec<Vec<SharedEvent>>,
    gone: Vec<bool>,
    ended: Option<Error>,
    /// Number of messages that each rank has sent.
    sent: Vec<u64>,
    faults: Vec<Fault>,
    /// Time at which the first message with a fault was sent.
    first_fault: Option<Instant>,
}

struct Message {
    content: Content,
    /// The receiver does not see the message before this time.
    from_when: Option<Instant>,
    /// The receiver does not see the message before another one has arrived.
    behind: bool,
}

enum Content {
    Record(Box<[u8]>),
    Memory(Region),
}

/// For tests: a fault of one message. The messages that a rank sends are numbered from 0.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub rank: usize,
    pub message: u64,
    pub kind: FaultKind,
}

/// Kinds of a [`Fault`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The message never arrives.
    Lost,
    /// The message arrives late.
    Late(Duration),
    /// The message arrives after the next one to the same rank.
    Overtaken,
    /// The message goes to the next rank instead.
    Misrouted,
    /// The message ends in its middle.
    Half,
    /// The message has its full length, but its second half is zeros.
    HalfZeros,
    /// The rank ends the connection instead.
    Abort,
    /// The rank ends without telling the others.
    Gone,
}

/// Default time-out: longer than the time that a rank may need between two messages.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Time for which a waiting thread polls before it sleeps. With GPUs this time is longer, because the GPU does the work, so a
/// polling thread takes no core from it, and because the wait is often for puts.
const AWAKE: Duration = Duration::from_micros(50);
#[cfg(feature = "cuda")]
const AWAKE_ON_GPU: Duration = Duration::from_millis(1);

impl Local {
    /// Creates `count` ranks (at least one), in order. A call waits at most two minutes for the other ranks.
    pub fn ranks(count: usize) -> Vec<Self> {
        Self::with_timeout(count, TIMEOUT)
    }

    /// Creates ranks with another time-out: how long a call waits for a message that does not arrive. The time-out must exceed
    /// the longest time that one rank works while others wait for it: the find-or-puts of a round, a growth, and the work of the
    /// program between its calls.
    pub fn with_timeout(count: usize, timeout: Duration) -> Vec<Self> {
        Self::with_faults(count, timeout, Vec::new())
    }

    /// Creates ranks with injected faults.
    #[doc(hidden)]
    pub fn with_faults(count: usize, timeout: Duration, faults: Vec<Fault>) -> Vec<Self> {
        let count = count.max(1);
        let state = State {
            boxes: (0..count * count).map(|_| VecDeque::new()).collect(),
            copied_from: vec![0; count],
            #[cfg(feature = "cuda")]
            enqueued: vec![Vec::new(); count],
            gone: vec![false; count],
            ended: None,
            sent: vec![0; count],
            faults,
            first_fault: None,
        };
        let shared = Arc::new(SharedState { ranks: count, timeout, state: Mutex::new(state), changed: Condvar::new() });
        let rank = |rank| Self {
            rank,
            shared: shared.clone(),
            receive: None,
            awake: AWAKE,
            #[cfg(feature = "cuda")]
            sending: Vec::new(),
            #[cfg(feature = "cuda")]
            copied: vec![None; count],
        };
        (0..count).map(rank).collect()
    }

    /// Number of messages that this rank has sent so far, to which the numbers of [`Fault`]s refer.
    #[doc(hidden)]
    pub fn watch(&self) -> impl Fn() -> u64 + Send + Sync + use<> {
        let (rank, shared) = (self.rank, self.shared.clone());
        move || shared.lock().sent[rank]
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        // Begins with the next rank, so that not all ranks take from the same one at the same time.
        let (rank, ranks) = (self.rank, self.shared.ranks);
        (1..ranks).map(move |distance| (rank + distance) % ranks)
    }

    /// Puts a message into the box for a rank, or applies a fault to it.
    fn send(&self, to: usize, content: Content) -> Result<()> {
        let ranks = self.shared.ranks;
        let mut state = self.shared.lock();
        state.check()?;
        let number = state.sent[self.rank];
        state.sent[self.rank] += 1;
        let fault = state.faults.iter().find(|fault| fault.rank == self.rank && fault.message == number);
        let fault = fault.map(|fault| fault.kind);
        if fault.is_some() {
            state.first_fault.get_or_insert_with(Instant::now);
            self.shared.changed.notify_all();
        }
        let mut message = Message { content, from_when: None, behind: false };
        let mut to = to;
        match fault {
            None => {}
            Some(FaultKind::Lost) => return Ok(()),
            Some(FaultKind::Late(delay)) => message.from_when = Some(Instant::now() + delay),
            Some(FaultKind::Overtaken) => message.behind = true,
            // With only two ranks there is no other receiver: then the message is lost.
            Some(FaultKind::Misrouted) => match self.others().find(|other| *other != to) {
                Some(other) => to = other,
                None => return Ok(()),
            },
            Some(FaultKind::Half) => match &mut message.content {
                Content::Record(record) => *record = record[..record.len() / 2].into(),
                Content::Memory(region) => region.bytes /= 2,
            },
            Some(FaultKind::HalfZeros) => message.content = message.content.with_half_zeros(),
            Some(FaultKind::Abort) => {
                state.end(self.rank, "has aborted on purpose");
                self.shared.changed.notify_all();
                return state.check();
            }
            Some(FaultKind::Gone) => {
                state.gone[self.rank] = true;
                self.shared.changed.notify_all();
                return Err(Error::Connection { rank: self.rank, reason: "is gone on purpose".into() });
            }
        }
        state.boxes[self.rank * ranks + to].push_back(message);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Takes the next message from a rank.
    fn receive(&self, from: usize, use_it: impl FnOnce(&Content) -> Result<()>) -> Result<()> {
        let began = Instant::now();
        let at = from * self.shared.ranks + self.rank;
        let mut state = self.shared.lock();
        let message = loop {
            state.check()?;
            let (now, deadline) = (Instant::now(), self.shared.deadline(&state, began));
            match state.take(at, now) {
                Ok(message) => break message,
                // The sender is gone, and all messages that it sent have been taken.
                Err(_) if state.gone[from] && state.boxes[at].is_empty() => {
                    state.end(from, "is gone");
                }
                Err(_) if now >= deadline => {
                    state.end(
                        from,
                        &format!("has sent nothing for {:?}, which rank {} waits for", self.shared.timeout, self.rank),
                    );
                }
                Err(until) => {
                    let until = until.map_or(deadline, |until| until.min(deadline));
                    state = self.shared.wait(state, (began, self.awake), until - now);
                    continue;
                }
            }
            self.shared.changed.notify_all();
        };
        state.copied_from[from] += 1;
        drop(state);
        let used = use_it(&message.content);
        let mut state = self.shared.lock();
        state.copied_from[from] -= 1;
        if let Err(error) = &used {
            state.end_by(self.rank, error);
        }
        self.shared.changed.notify_all();
        used
    }

    /// Waits until all memory that this rank has sent is copied. If the connection has ended, waits until no rank copies from
    /// this memory any more, or ever will.
    fn wait_until_taken(&self) -> Result<()> {
        let began = Instant::now();
        let own = self.rank * self.shared.ranks..(self.rank + 1) * self.shared.ranks;
        let mut state = self.shared.lock();
        loop {
            let slow = state.boxes[own.clone()].iter().position(|messages| messages.iter().any(Message::is_memory));
            let (now, deadline) = (Instant::now(), self.shared.deadline(&state, began));
            match slow {
                None if state.copied_from[self.rank] == 0 => return state.check(),
                None => state = self.shared.wait(state, (began, self.awake), self.shared.timeout),
                Some(_) if state.ended.is_some() => {
                    state.boxes[own.clone()].iter_mut().for_each(|messages| messages.retain(|message| !message.is_memory()));
                }
                Some(rank) if state.gone[rank] => state.end(rank, "is gone"),
                Some(rank) if now >= deadline => {
                    let text = format!("has not taken for {:?} what rank {} has sent", self.shared.timeout, self.rank);
                    state.end(rank, &text);
                    self.shared.changed.notify_all();
                }
                Some(_) => state = self.shared.wait(state, (began, self.awake), deadline - now),
            }
        }
    }
}

impl SharedState {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Time at which a wait that began at `began` is too long. If faults are injected, a wait before the first fault may take 30
    /// times as long, so that a slow machine does not end the connection before the fault. After the first fault, a wait that
    /// began earlier counts from the fault on.
    fn deadline(&self, state: &State, began: Instant) -> Instant {
        match state.first_fault {
            None if !state.faults.is_empty() => deadline(began, self.timeout.saturating_mul(30)),
            None => deadline(began, self.timeout),
            Some(fault) => deadline(began.max(fault), self.timeout),
        }
    }

    /// Waits for a change, at most for `time`. It may return early. Until `awake` has passed since `began`, it yields instead of
    /// sleeping: waking a thread takes longer than most messages take to arrive.
    fn wait<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        (began, awake): (Instant, Duration),
        time: Duration,
    ) -> MutexGuard<'a, State> {
        if began.elapsed() < awake.min(time) {
            drop(state);
            std::thread::yield_now();
            return self.lock();
        }
        self.changed.wait_timeout(state, time).unwrap_or_else(|poisoned| poisoned.into_inner()).0
    }
}

impl State {
    fn check(&self) -> Result<()> {
        self.ended.clone().map_or(Ok(()), Err)
    }

    fn end(&mut self, rank: usize, reason: &str) {
        self.ended.get_or_insert_with(|| Error::Connection { rank, reason: reason.into() });
    }

    /// Ends the connection with the error of a rank. If that rank's device failed, the error names the rank to all others.
    fn end_by(&mut self, rank: usize, error: &Error) {
        match error {
            Error::Connection { rank, reason } => self.end(*rank, reason),
            error => self.end(rank, &format!("has met an error: {error}")),
        }
    }

    /// Returns the next message of a box. If no message can be taken now, the error is the time from which one can be, if known.
    fn take(&mut self, at: usize, now: Instant) -> Result<Message, Option<Instant>> {
        let messages = &mut self.boxes[at];
        if messages.len() > 1 && messages[0].behind {
            messages[0].behind = false;
            messages.swap(0, 1);
        }
        match messages.front() {
            None => Err(None),
            Some(Message { behind: true, .. }) => Err(None),
            Some(Message { from_when: Some(when), .. }) if *when > now => Err(Some(*when)),
            Some(_) => Ok(messages.pop_front().expect("there is one")),
        }
    }
}

impl Message {
    fn is_memory(&self) -> bool {
        matches!(self.content, Content::Memory(_))
    }
}

impl Content {
    /// Copy of the content with zeros in its second half.
    fn with_half_zeros(&self) -> Self {
        let mut bytes: Box<[u8]> = match self {
            Self::Record(record) => record.clone(),
            Self::Memory(region) => {
                let mut bytes = vec![0; region.bytes].into_boxed_slice();
                let to = Region { address: bytes.as_mut_ptr() as u64, bytes: bytes.len(), place: MemorySpace::Host };
                // SAFETY: the sender's memory stays until the message was taken, and it is being taken now; `bytes` has the same
                // length.
                let _ = unsafe { copy(region, &to) };
                bytes
            }
        };
        let half = bytes.len() / 2;
        bytes[half..].fill(0);
        Self::Record(bytes)
    }

    fn len(&self) -> usize {
        match self {
            Self::Record(record) => record.len(),
            Self::Memory(region) => region.bytes,
        }
    }
}

/// Copies `to.bytes` bytes, and waits until the copy is done.
///
/// # Safety
///
/// Both regions have equal lengths. Meanwhile nothing else writes to either region, or reads `to`.
unsafe fn copy(from: &Region, to: &Region) -> Result<()> {
    debug_assert!(from.bytes == to.bytes);
    match (&from.place, &to.place) {
        (MemorySpace::Host, MemorySpace::Host) => {
            // SAFETY: the caller guarantees the contract.
            unsafe { std::ptr::copy_nonoverlapping(from.address as *const u8, to.address as *mut u8, to.bytes) };
            Ok(())
        }
        #[cfg(feature = "cuda")]
        (_, MemorySpace::Gpu(crate::backend::GpuStream(stream))) | (MemorySpace::Gpu(crate::backend::GpuStream(stream)), _) => {
            reach(from, to);
            // SAFETY: the caller guarantees the contract.
            unsafe { crate::backend::cuda::copy_anywhere(from.address, to.address, to.bytes, stream) }
        }
    }
}

impl Transport for Local {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.shared.ranks
    }

    fn all_gather(&mut self, own: &[u8], all: &mut [u8]) -> Result<()> {
        assert_eq!(all.len(), own.len() * self.shared.ranks, "all ranks' parts have room");
        self.others().try_for_each(|to| self.send(to, Content::Record(own.into())))?;
        all[self.rank * own.len()..][..own.len()].copy_from_slice(own);
        for from in self.others() {
            let part = &mut all[from * own.len()..][..own.len()];
            self.receive(from, |content| match content {
                Content::Record(record) if record.len() == part.len() => {
                    part.copy_from_slice(record);
                    Ok(())
                }
                content => Err(unexpected(from, self.rank, content, part.len())),
            })?;
        }
        Ok(())
    }

    unsafe fn begin(&mut self, send: &[Region], receive: &[Region]) -> Result<()> {
        assert!(self.receive.is_none(), "one exchange at a time");
        assert!(send.len() == self.shared.ranks && receive.len() == self.shared.ranks, "a region for each rank");
        self.receive = Some(receive.to_vec());
        #[cfg(feature = "cuda")]
        {
            self.sending = streams_of(send);
            for stream in self.sending.iter().chain(&streams_of(receive)) {
                // Wait for the work on the stream, because the receiver copies on a stream of its own.
                self.awake = AWAKE_ON_GPU;
                crate::backend::cuda::wait_for(stream)?;
            }
        }
        let to_send = self.others().filter(|to| send[*to].bytes > 0);
        to_send.into_iter().try_for_each(|to| self.send(to, Content::Memory(send[to].clone())))
    }

    fn finish(&mut self) -> Result<()> {
        self.end_exchange(true)
    }

    fn finish_enqueued(&mut self) -> Result<()> {
        self.end_exchange(false)
    }

    fn abort(&mut self, reason: &str) {
        self.shared.lock().end(self.rank, reason);
        self.shared.changed.notify_all();
    }
}

impl Local {
    /// Copies the messages to this rank. Then waits for the other ranks: until they have copied this rank's messages or, if
    /// `waits` is false, until they have enqueued these copies.
    fn end_exchange(&mut self, waits: bool) -> Result<()> {
        let receive = self.receive.take().expect("an exchange was begun");
        let _ = waits; // copies within the host's memory are not enqueued
        #[cfg(feature = "cuda")]
        for (from, to) in receive.iter().enumerate().filter(|(_, to)| !waits && to.bytes > 0) {
            if let (MemorySpace::Gpu(crate::backend::GpuStream(stream)), None) = (&to.place, &self.copied[from]) {
                // If there is no event, the copy below is not only enqueued, but waited for.
                self.copied[from] = crate::backend::cuda::new_event(stream).ok().map(Arc::new);
            }
        }
        let receive_all = || {
            for from in self.others().filter(|from| receive[*from].bytes > 0) {
                let to = &receive[from];
                self.receive(from, |content| {
                    #[cfg(feature = "cuda")]
                    if let (Content::Memory(source), false, Some(copied)) = (content, waits, &self.copied[from])
                        && source.bytes == to.bytes
                        && let (MemorySpace::Gpu(_), MemorySpace::Gpu(crate::backend::GpuStream(stream))) =
                            (&source.place, &to.place)
                    {
                        reach(source, to);
                        // SAFETY: as below; and the sender's memory stays until its stream has passed `copied` (`end_copies`).
                        unsafe { crate::backend::cuda::enqueue_copy(source.address, to.address, to.bytes, stream, copied)? };
                        self.shared.lock().enqueued[from].push(copied.clone());
                        return Ok(());
                    }
                    let source = match content {
                        content if content.len() != to.bytes => return Err(unexpected(from, self.rank, content, to.bytes)),
                        Content::Memory(region) => region.clone(),
                        // A fault has turned the memory into a record (`with_half_zeros`).
                        Content::Record(bytes) => {
                            Region { address: bytes.as_ptr() as u64, bytes: bytes.len(), place: MemorySpace::Host }
                        }
                    };
                    // SAFETY: both have the same length. The sender's memory stays until this closure has returned
                    // (`wait_until_taken`). Only this rank uses the receiver's memory until `finish` has returned (both by the
                    // contract of `begin`).
                    unsafe { copy(&source, to) }
                })?;
            }
            Ok(())
        };
        let received: Result<()> = receive_all();
        self.end_if_failed(&received);
        let done = received.and(self.wait_until_taken());
        #[cfg(feature = "cuda")]
        let done = self.end_copies(&receive, waits, done);
        done
    }

    /// If `done` is an error, ends the connection with it.
    fn end_if_failed(&self, done: &Result<()>) {
        if let Err(error) = done {
            self.shared.lock().end_by(self.rank, error);
            self.shared.changed.notify_all();
        }
    }

    /// Other ranks have enqueued copies from memory that this rank sent. Makes the streams of that memory wait for these copies.
    /// If that fails, if an earlier step failed, or if `waits`, waits until all copies from and to this rank have ended, so that
    /// no copy is in progress after an error.
    #[cfg(feature = "cuda")]
    fn end_copies(&self, receive: &[Region], waits: bool, done: Result<()>) -> Result<()> {
        use crate::backend::cuda::{make_stream_wait, wait_for, wait_for_event};
        // `copies` are kept until the end, because a wait must include all of them.
        let copies = std::mem::take(&mut self.shared.lock().enqueued[self.rank]);
        let mut done = done;
        if !waits && done.is_ok() {
            let mut pairs = copies.iter().flat_map(|copied| self.sending.iter().map(move |stream| (stream, copied)));
            done = pairs.try_for_each(|(stream, copied)| make_stream_wait(stream, copied));
        }
        if waits || done.is_err() {
            let of_others = copies.iter().map(|copied| wait_for_event(copied));
            let streams = streams_of(receive);
            let waited = of_others.chain(streams.iter().map(|stream| wait_for(stream)));
            // Waits for all of them, even after one that fails.
            done = waited.fold(done, Result::and);
        }
        self.end_if_failed(&done);
        done
    }
}

/// Distinct streams of the regions in GPU memory.
#[cfg(feature = "cuda")]
fn streams_of(regions: &[Region]) -> Vec<SharedStream> {
    let mut streams: Vec<SharedStream> = Vec::new();
    for region in regions.iter().filter(|region| region.bytes > 0) {
        if let MemorySpace::Gpu(crate::backend::GpuStream(stream)) = &region.place
            && !streams.iter().any(|known| Arc::ptr_eq(known, stream))
        {
            streams.push(stream.clone());
        }
    }
    streams
}

/// Gives two GPUs access to each other's memory, if they support it.
#[cfg(feature = "cuda")]
fn reach(from: &Region, to: &Region) {
    if let (MemorySpace::Gpu(crate::backend::GpuStream(one)), MemorySpace::Gpu(crate::backend::GpuStream(other))) =
        (&from.place, &to.place)
    {
        crate::backend::cuda::enable_peer_access(one, other);
    }
}

fn unexpected(from: usize, to: usize, content: &Content, needed: usize) -> Error {
    let reason = format!("has sent {} bytes to rank {to}, which waits for {needed}", content.len());
    Error::Connection { rank: from, reason }
}

impl Drop for Local {
    fn drop(&mut self) {
        if self.receive.is_some() {
            // A panic between `begin` and `finish`: no rank may copy from memory that is about to be freed.
            self.abort("gave up in the middle of an exchange");
            let _ = self.wait_until_taken();
            #[cfg(feature = "cuda")]
            let _ = self.end_copies(&[], true, Ok(()));
        }
        self.shared.lock().gone[self.rank] = true;
        self.shared.changed.notify_all();
    }
}

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Local(rank {} of {})", self.rank, self.shared.ranks)
    }
}
