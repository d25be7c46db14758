//! Ranks that are GPUs, of one host or of several, connected by NCCL.

mod library;

use super::rendezvous::Rendezvous;
use super::transport::{MemorySpace, Region, Transport};
use crate::backend::GpuStream;
use crate::backend::cuda::device_memory::DeviceMemory;
use crate::backend::cuda::{Gpu, cuda, new_event};
use crate::{Device, Error, Result};
use cudarc::driver::{CudaEvent, CudaStream, result, sys};
use library::{BYTES, Comm, Config, IN_PROGRESS, Nccl as Library, SUCCESS, UniqueId};
use std::ffi::{c_int, c_void};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The [`Transport`] between GPUs, one per rank: of one process or of several, on one host or on several.
///
/// Messages are sent by grouped sends and receives of exact sizes. NCCL runs in its non-blocking mode, so that every call here
/// can give up: it polls for errors of the communicator while it waits, and ends the communicator after the time-out. A rank
/// learns of the end of another rank only through NCCL. NCCL notices at once if a process on another host ends, but not always if
/// one on the same host does. In that case the rank waits for its own time-out.
///
/// NCCL is loaded at run time: `libnccl.so.2` by the system's loader, else from the packages `nvidia-nccl-cu12` or `-cu13` of the
/// Python environment that is active. Version 2.14 or later. `NCCL_NVLS_ENABLE=0` in the environment keeps NCCL from making
/// objects for NVLink multicast, which sends and receives do not use.
pub struct Nccl {
    nccl: &'static Library,
    /// Null after the communicator has ended.
    comm: Comm,
    rank: usize,
    ranks: usize,
    timeout: Duration,
    gpu: Arc<Gpu>,
    stream: Arc<CudaStream>,
    /// Event after the earlier work of another stream. `done`: event after an exchange.
    before: CudaEvent,
    done: CudaEvent,
    /// Memory on the GPU through which host memory is sent and received.
    staging: Option<DeviceMemory>,
    /// Offsets in the staging memory, and their destinations in host memory, for the exchange that is under way.
    to_host: Vec<(usize, Region)>,
    under_way: bool,
    ended: Option<Error>,
}

// SAFETY: a communicator of NCCL may be used by one thread after another. The methods take `&mut self`, so one thread at a time
// uses it.
unsafe impl Send for Nccl {}

/// Pause between two polls. During the first `AWAKE` of a wait the thread yields instead of sleeping, because a sleep takes
/// longer than most exchanges.
const PAUSE: Duration = Duration::from_micros(20);
const AWAKE: Duration = Duration::from_micros(500);

impl Nccl {
    /// Connects this rank's GPU with the GPUs of the other ranks. Each rank calls this with a rendezvous at the same place.
    /// `timeout`: how long a call waits for other ranks, as for [`Local::with_timeout`](super::Local::with_timeout). Connecting
    /// is one such call, which begins after the rendezvous.
    ///
    /// A process that has NCCL's id may join. The rendezvous passes the id only to the ranks, but nothing is encrypted: see
    /// [`Rendezvous`].
    ///
    /// # Errors
    ///
    /// [`Error::LibraryNotFound`], [`Error::LibraryTooOld`]: before the rendezvous. [`Error::WrongDevice`];
    /// [`Error::Connection`].
    pub fn connect(device: &Device, rank: usize, ranks: usize, meet: &Rendezvous, timeout: Duration) -> Result<Self> {
        let nccl = Library::get()?;
        let gpu = device.as_gpu().ok_or_else(|| Error::needs_gpu("NCCL", device))?;
        let mut id = UniqueId([0; 128]);
        if rank == 0 {
            // SAFETY: the id has memory.
            let answer = unsafe { (nccl.get_unique_id)(&mut id) };
            check(nccl, answer, std::ptr::null_mut(), rank, "making an id")?;
        }
        let given = meet.share(rank, ranks, &id.0)?;
        id.0 = given.try_into().map_err(|given: Vec<u8>| Error::Connection {
            rank: 0,
            reason: format!("has given {} bytes, which are not an id of NCCL", given.len()),
        })?;
        let stream = gpu.new_urgent_stream()?;
        let (before, done) = (new_event(&stream)?, new_event(&stream)?);
        let mut made = Self {
            nccl,
            comm: std::ptr::null_mut(),
            rank,
            ranks,
            timeout,
            gpu: gpu.clone(),
            stream,
            before,
            done,
            staging: None,
            to_host: Vec::new(),
            under_way: false,
            ended: None,
        };
        let _current = gpu.bind()?;
        let mut config = Config::nonblocking();
        // SAFETY: `made.comm` can be written and `config` is a configuration of NCCL 2.14; both stay valid during the call. The
        // GPU's context is current.
        let answer = unsafe { (nccl.init)(&mut made.comm, ranks as c_int, id, rank as c_int, &mut config) };
        let connected = made.finish_call(answer, "connecting").and_then(|()| made.barrier());
        connected.map(|()| made)
    }

    /// The version of NCCL, as 10,000 x major + 100 x minor + patch.
    pub fn version(&self) -> u32 {
        self.nccl.version
    }

    fn check_ended(&self) -> Result<()> {
        self.ended.clone().map_or(Ok(()), Err)
    }

    /// Ends the communicator, and returns the error that ended it first.
    fn end(&mut self, error: Error) -> Error {
        if !self.comm.is_null()
            && let Ok(_current) = self.gpu.bind()
        {
            // SAFETY: the communicator was made, and is ended once: the pointer is null from here on. The call stops its kernels.
            unsafe { (self.nccl.abort)(self.comm) };
        }
        self.comm = std::ptr::null_mut();
        self.ended.get_or_insert(error).clone()
    }

    /// Waits until a non-blocking call, which returned `answer`, is complete.
    fn finish_call(&mut self, answer: c_int, what: &str) -> Result<()> {
        let began = Instant::now();
        let mut state = answer;
        while state == IN_PROGRESS && !self.comm.is_null() {
            // SAFETY: the communicator was made by `init`; the answer has memory.
            let asked = unsafe { (self.nccl.async_error)(self.comm, &mut state) };
            if asked != SUCCESS {
                state = asked;
            } else if state == IN_PROGRESS {
                self.look_at(began, what)?;
            }
        }
        check(self.nccl, state, self.comm, self.rank, what).map_err(|error| self.end(error))
    }

    /// Pauses. Returns an error after the time-out.
    fn look_at(&mut self, began: Instant, what: &str) -> Result<()> {
        let waited = began.elapsed();
        if waited < self.timeout {
            if waited < AWAKE {
                std::thread::yield_now()
            } else {
                std::thread::sleep(PAUSE)
            }
            return Ok(());
        }
        let reason = format!("has waited {:?} for the other ranks, while {what}", self.timeout);
        Err(self.end(Error::Connection { rank: self.rank, reason }))
    }

    /// Waits until the stream has passed the event `done`, or the communicator has met an error.
    fn wait_for_stream(&mut self) -> Result<()> {
        let _current = self.gpu.bind()?;
        let began = Instant::now();
        loop {
            // SAFETY: the event lives.
            match unsafe { sys::cuEventQuery(self.done.cu_event()) } {
                sys::CUresult::CUDA_SUCCESS => return Ok(()),
                sys::CUresult::CUDA_ERROR_NOT_READY => {}
                error => {
                    let (code, status) = (error as i32, format!("{error:?}"));
                    let error = Error::Cuda { what: "exchanging through NCCL", code, status };
                    return Err(self.end(error));
                }
            }
            let mut state = SUCCESS;
            // SAFETY: as in `finish_call`.
            let asked = unsafe { (self.nccl.async_error)(self.comm, &mut state) };
            let state = if asked == SUCCESS { state } else { asked };
            if state != SUCCESS && state != IN_PROGRESS {
                let error = check(self.nccl, state, self.comm, self.rank, "exchanging").expect_err("it is no success");
                return Err(self.end(error));
            }
            self.look_at(began, "exchanging")?;
        }
    }

    /// Enqueues sends and receives, each from or to an address in the GPU's memory, on the stream and in one group.
    ///
    /// # Safety
    ///
    /// The memory has the given lengths, and only the stream uses it until `done` has passed.
    unsafe fn enqueue(&mut self, send: &[(u64, usize)], receive: &[(u64, usize)]) -> Result<()> {
        let _current = self.gpu.bind()?;
        let (nccl, comm, stream) = (self.nccl, self.comm, self.stream.cu_stream().cast::<c_void>());
        let mut worst = SUCCESS;
        let mut note = |answer: c_int| {
            if worst == SUCCESS && answer != SUCCESS && answer != IN_PROGRESS {
                worst = answer;
            }
            answer
        };
        // SAFETY:
        // - the communicator and the stream exist, and no other thread uses the communicator;
        // - the caller guarantees the memory;
        // - a group that was started is always ended.
        let answer = unsafe {
            note((nccl.group_start)());
            for (rank, (address, bytes)) in send.iter().enumerate().filter(|(_, (_, bytes))| *bytes > 0) {
                note((nccl.send)(*address as *const c_void, *bytes, BYTES, rank as c_int, comm, stream));
            }
            for (rank, (address, bytes)) in receive.iter().enumerate().filter(|(_, (_, bytes))| *bytes > 0) {
                note((nccl.receive)(*address as *mut c_void, *bytes, BYTES, rank as c_int, comm, stream));
            }
            note((nccl.group_end)())
        };
        check(nccl, worst, comm, self.rank, "beginning an exchange").map_err(|error| self.end(error))?;
        self.finish_call(answer, "beginning an exchange")?;
        // SAFETY: event and stream are of this context.
        unsafe { result::event::record(self.done.cu_event(), self.stream.cu_stream()) }.map_err(cuda("recording an exchange"))
    }

    /// Makes sure that the staging memory has at least `bytes` bytes. Returns its address.
    fn stage(&mut self, bytes: usize) -> Result<u64> {
        if self.staging.as_ref().is_none_or(|staging| staging.bytes() < bytes) {
            self.staging = None;
            self.staging = Some(DeviceMemory::new(&self.gpu, bytes.next_power_of_two().max(1 << 16) as u64)?);
        }
        Ok(self.staging.as_ref().map_or(0, DeviceMemory::address))
    }

    /// Makes the stream wait for the work that was enqueued on the streams of regions.
    fn come_after(&mut self, regions: &[&[Region]]) -> Result<()> {
        let mut known: Vec<sys::CUstream> = Vec::new();
        for region in regions.iter().copied().flatten().filter(|region| region.bytes > 0) {
            if let MemorySpace::Gpu(GpuStream(stream)) = &region.place {
                if known.contains(&stream.cu_stream()) {
                    continue;
                }
                known.push(stream.cu_stream());
                let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
                // SAFETY: event and streams live, and belong to this GPU's context: a rank's regions are on its GPU.
                unsafe {
                    result::event::record(self.before.cu_event(), stream.cu_stream()).map_err(cuda("ordering an exchange"))?;
                    result::stream::wait_event(self.stream.cu_stream(), self.before.cu_event(), flags)
                        .map_err(cuda("ordering an exchange"))?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the bytes of a region in host memory.
///
/// # Safety
///
/// The region is in host memory, lives as long as the slice, and is not written to meanwhile.
unsafe fn host_bytes<'a>(region: &Region) -> &'a [u8] {
    // SAFETY: the caller guarantees the contract.
    unsafe { std::slice::from_raw_parts(region.address as *const u8, region.bytes) }
}

fn check(nccl: &Library, answer: c_int, comm: Comm, rank: usize, what: &str) -> Result<()> {
    if answer == SUCCESS {
        return Ok(());
    }
    Err(Error::Connection { rank, reason: format!("has met an error of NCCL while {what}: {}", nccl.text(answer, comm)) })
}

fn is_host(region: &Region) -> bool {
    matches!(region.place, MemorySpace::Host)
}

impl Transport for Nccl {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn all_gather(&mut self, own: &[u8], all: &mut [u8]) -> Result<()> {
        assert_eq!(all.len(), own.len() * self.ranks, "all ranks' parts have room");
        all[self.rank * own.len()..][..own.len()].copy_from_slice(own);
        let region = |address: u64, bytes: usize| Region { address, bytes, place: MemorySpace::Host };
        let of = |rank: usize| if rank == self.rank { Region::empty() } else { region(own.as_ptr() as u64, own.len()) };
        let send: Vec<Region> = (0..self.ranks).map(of).collect();
        let mut parts = all.chunks_exact_mut(own.len().max(1));
        let to = |rank: usize| {
            let part = parts.next().map_or((0, 0), |part| (part.as_mut_ptr() as u64, part.len()));
            if rank == self.rank { Region::empty() } else { region(part.0, part.1) }
        };
        let receive: Vec<Region> = (0..self.ranks).map(to).collect();
        // SAFETY: `own` and `all` are borrowed until this call returns, which is after `finish`.
        let begun = unsafe { self.begin(&send, &receive) };
        let finished = self.finish();
        begun.and(finished)
    }

    unsafe fn begin(&mut self, send: &[Region], receive: &[Region]) -> Result<()> {
        assert!(!self.under_way, "one exchange at a time");
        assert!(send.len() == self.ranks && receive.len() == self.ranks, "a region for each rank");
        self.under_way = true;
        self.to_host.clear();
        self.check_ended()?;
        let _current = self.gpu.bind()?;
        let staged: usize =
            send.iter().chain(receive).filter(|region| is_host(region)).map(|region| region.bytes.next_multiple_of(256)).sum();
        let (base, mut at) = (if staged > 0 { self.stage(staged)? } else { 0 }, 0);
        let (mut out, mut back) = (Vec::new(), Vec::new());
        for region in send {
            if is_host(region) && region.bytes > 0 {
                let staging = self.staging.as_ref().expect("staged");
                // SAFETY: by the contract of `begin` the region stays, and is not written, until `finish`. So the copy may be
                // asynchronous, as it is from pinned memory.
                unsafe { staging.write_async(at, host_bytes(region), self.stream.cu_stream())? };
                out.push((base + at as u64, region.bytes));
                at += region.bytes.next_multiple_of(256);
            } else {
                out.push((region.address, region.bytes));
            }
        }
        for region in receive {
            if is_host(region) && region.bytes > 0 {
                self.to_host.push((at, region.clone()));
                back.push((base + at as u64, region.bytes));
                at += region.bytes.next_multiple_of(256);
            } else {
                back.push((region.address, region.bytes));
            }
        }
        self.come_after(&[send, receive])?;
        // SAFETY: regions on the GPU satisfy the contract of `begin`; those of the host are staged; `finish` waits for `done`.
        unsafe { self.enqueue(&out, &back) }
    }

    fn finish(&mut self) -> Result<()> {
        assert!(self.under_way, "an exchange was begun");
        self.under_way = false;
        let arrivals = std::mem::take(&mut self.to_host);
        if let Err(error) = self.check_ended() {
            // Wait, so that no work uses memory that the caller takes back. The communicator's kernels were stopped.
            let _ = self.gpu.wait(&self.stream, "waiting for an exchange that has ended");
            return Err(error);
        }
        let _current = self.gpu.bind()?;
        if let Err(error) = self.wait_for_stream() {
            let _ = self.gpu.wait(&self.stream, "waiting for an exchange that has ended");
            return Err(error);
        }
        for (at, region) in arrivals {
            // SAFETY: the region is in host memory, has this length, and is used by this call alone until it returns (`begin`).
            let to = unsafe { std::slice::from_raw_parts_mut(region.address as *mut u8, region.bytes) };
            let staging = self.staging.as_ref().expect("staged");
            // SAFETY: the wait below ends the copy before `to` is used.
            unsafe { staging.read_async(at, to, self.stream.cu_stream())? };
        }
        self.gpu.wait(&self.stream, "copying a message")
    }

    fn abort(&mut self, reason: &str) {
        let error = Error::Connection { rank: self.rank, reason: reason.into() };
        self.end(error);
    }
}

impl Drop for Nccl {
    fn drop(&mut self) {
        if self.under_way {
            self.abort("gave up in the middle of an exchange");
            let _ = self.gpu.wait(&self.stream, "waiting for an exchange that has ended");
        }
        if self.comm.is_null() {
            return;
        }
        let Ok(_current) = self.gpu.bind() else { return };
        // SAFETY: the communicator was made, and is not used after this.
        let answer = unsafe { (self.nccl.finalize)(self.comm) };
        // Other ranks may have ended by now.
        self.timeout = self.timeout.min(Duration::from_secs(5));
        if self.finish_call(answer, "ending").is_ok() {
            // SAFETY: as above; it is finalised.
            unsafe { (self.nccl.destroy)(self.comm) };
        }
    }
}

impl fmt::Debug for Nccl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nccl(rank {} of {} on {})", self.rank, self.ranks, self.gpu)
    }
}
