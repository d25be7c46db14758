//! How ranks that are processes find each other: rank 0 gives some bytes to all, by a file or over TCP.
//!
//! What is given is secret (who has the id of an NCCL communicator may join it): files are for their owner only, and who comes
//! over TCP must know a token. It crosses the network as it is, and so does what is given, as all of NCCL's own traffic does: use
//! a network that you trust.
//!
//! By a file: rank 0 writes it under another name, for its owner only, and renames it. The others wait for it, look whose it is
//! and whose run's (the token), and write beside it that they have read this very one (a number drawn by rank 0). When all have,
//! rank 0 removes its file, and each of the others its own: so they know that they have read the right one. A file that a run has
//! left behind is replaced, and whoever has read it reads again. If somebody does not come, rank 0 removes all of them.

use super::transport::deadline;
use crate::{Error, Result};
use rand::Rng;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use std::{fmt, thread};

/// Where the ranks of a run meet. Each process makes one, alike.
///
/// ```
/// # fn main() -> Result<(), warpset::Error> {
/// use std::time::Duration;
/// use warpset::cluster::Rendezvous;
///
/// let path = std::env::temp_dir().join(format!("warpset-example-{}", std::process::id()));
/// let meet: Rendezvous = format!("file:{}", path.display()).parse()?;
/// let meet = meet.token("run 7").timeout(Duration::from_secs(10));
/// let given = std::thread::scope(|scope| {
///     let other = scope.spawn(|| meet.share(1, 2, b"")); // as another process would
///     meet.share(0, 2, b"of rank 0")?;
///     other.join().unwrap()
/// })?;
/// assert_eq!(given, b"of rank 0");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Rendezvous {
    place: Meeting,
    token: String,
    timeout: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Meeting {
    File(PathBuf),
    /// HOST:PORT, on which rank 0 listens until all have come.
    Tcp(String),
}

const TIMEOUT: Duration = Duration::from_secs(120);
const MAGIC: &[u8; 8] = b"warpset1";
/// Between two looks at a file, or two attempts to connect.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a connection may take to say what it wants, and to say that it has what it got.
const TALK: Duration = Duration::from_secs(5);
/// What is given, and tokens, have so many bytes at most.
const MOST: usize = 1 << 16;

/// What rank 0 says to who has come.
const WELCOME: u8 = 0;
const WRONG_TOKEN: u8 = 1;
const WRONG_RANKS: u8 = 2;

impl Rendezvous {
    /// At a file, which is there as long as the ranks meet: in a folder that all of them can reach, and write to.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self { place: Meeting::File(path.into()), token: String::new(), timeout: TIMEOUT }
    }

    /// At an address of rank 0's host: `HOST:PORT`. Rank 0 listens there until all ranks have come, and no longer.
    pub fn tcp(address: impl Into<String>) -> Self {
        Self { place: Meeting::Tcp(address.into()), token: String::new(), timeout: TIMEOUT }
    }

    /// What the ranks of this run know, and others do not: of a scheduler's job, its number at least. Default: nothing, which is
    /// refused over TCP.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = token.into();
        self
    }

    /// How long a rank waits for the others. Default: two minutes.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Gives all of `ranks` ranks what rank 0 passes as `own`, at most 64 KiB; what others pass does not matter. Returns when all
    /// have it (rank 0), or when rank 0 knows that this rank has it (others; over TCP, as soon as this rank has it).
    ///
    /// # Errors
    ///
    /// [`Error::Connection`]: a rank has not come in time, has another token, or another number of ranks, or the place cannot be
    /// used; nothing is left there.
    pub fn share(&self, rank: usize, ranks: usize, own: &[u8]) -> Result<Vec<u8>> {
        assert!(
            rank < ranks && own.len() <= MOST && self.token.len() <= MOST,
            "rank {rank} of {ranks}, with {} bytes",
            own.len()
        );
        if ranks == 1 {
            return Ok(own.to_vec());
        }
        match (&self.place, rank) {
            (Meeting::Tcp(_), _) if self.token.is_empty() => {
                Err(self.failed(rank, "wants a token for a rendezvous over TCP".into()))
            }
            (Meeting::Tcp(address), 0) => self.listen(address, ranks, own),
            (Meeting::Tcp(address), _) => self.connect(address, rank, ranks),
            (Meeting::File(path), 0) => self.publish(path, ranks, own),
            (Meeting::File(path), _) => self.read(path, rank, ranks),
        }
    }

    fn failed(&self, rank: usize, reason: String) -> Error {
        Error::Connection { rank, reason: format!("{reason} ({self})") }
    }

    fn missing(&self, missing: &BTreeSet<usize>) -> Error {
        let first = missing.first().copied().unwrap_or(0);
        self.failed(first, format!("has not come within {:?}; missing are {missing:?}", self.timeout))
    }

    fn listen(&self, address: &str, ranks: usize, own: &[u8]) -> Result<Vec<u8>> {
        let deadline = deadline(Instant::now(), self.timeout);
        let failed = |error: io::Error| self.failed(0, format!("cannot listen at {address}: {error}"));
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let missing = Mutex::new((1..ranks).collect::<BTreeSet<usize>>());
        let lock = || missing.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        thread::scope(|scope| {
            while !lock().is_empty() && Instant::now() < deadline {
                match listener.accept() {
                    // On a thread of its own: one who says nothing keeps nobody waiting.
                    Ok((stream, _)) => drop(scope.spawn(|| {
                        if let Ok(Some(rank)) = self.welcome(stream, ranks, own) {
                            lock().remove(&rank);
                        }
                    })),
                    Err(_) => thread::sleep(PAUSE),
                }
            }
        });
        drop(listener);
        let missing = lock();
        if missing.is_empty() { Ok(own.to_vec()) } else { Err(self.missing(&missing)) }
    }

    /// Gives it to who has come, if the token is right. Gives the rank that has it now.
    fn welcome(&self, mut stream: TcpStream, ranks: usize, own: &[u8]) -> io::Result<Option<usize>> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(TALK))?;
        stream.set_write_timeout(Some(TALK))?;
        let mut magic = [0; MAGIC.len()];
        stream.read_exact(&mut magic)?;
        if magic != *MAGIC {
            return Ok(None);
        }
        let token = read_bytes(&mut stream)?;
        let [rank, of] = [read_number(&mut stream)?, read_number(&mut stream)?];
        if !equal(&token, self.token.as_bytes()) {
            stream.write_all(&[WRONG_TOKEN])?;
            return Ok(None);
        }
        if of != ranks || !(1..ranks).contains(&rank) {
            stream.write_all(&[WRONG_RANKS])?;
            write_number(&mut stream, ranks)?;
            return Ok(None);
        }
        stream.write_all(&[WELCOME])?;
        write_bytes(&mut stream, own)?;
        // It has it when it says so: a rank that is gone by now is missing.
        let mut thanks = [0];
        stream.read_exact(&mut thanks)?;
        Ok(Some(rank))
    }

    fn connect(&self, address: &str, rank: usize, ranks: usize) -> Result<Vec<u8>> {
        let deadline = deadline(Instant::now(), self.timeout);
        loop {
            let answer = TcpStream::connect(address).and_then(|stream| self.ask(stream, rank, ranks));
            match answer {
                Ok((WELCOME, given, _)) => return Ok(given),
                Ok((WRONG_TOKEN, ..)) => return Err(self.failed(rank, "has another token than rank 0".into())),
                Ok((_, _, of)) => {
                    return Err(self.failed(rank, format!("is one of {ranks}, but rank 0 waits for {of} ranks in all")));
                }
                // Rank 0 does not listen yet; or it was somebody else who did.
                Err(_) if Instant::now() < deadline => thread::sleep(PAUSE),
                Err(error) => {
                    return Err(self.failed(0, format!("has not come within {:?}: {error}", self.timeout)));
                }
            }
        }
    }

    fn ask(&self, mut stream: TcpStream, rank: usize, ranks: usize) -> io::Result<(u8, Vec<u8>, usize)> {
        stream.set_read_timeout(Some(TALK))?;
        stream.set_write_timeout(Some(TALK))?;
        stream.write_all(MAGIC)?;
        write_bytes(&mut stream, self.token.as_bytes())?;
        write_number(&mut stream, rank)?;
        write_number(&mut stream, ranks)?;
        let mut says = [0];
        stream.read_exact(&mut says)?;
        match says[0] {
            WELCOME => {
                let given = read_bytes(&mut stream)?;
                stream.write_all(&[WELCOME])?;
                Ok((WELCOME, given, ranks))
            }
            WRONG_RANKS => Ok((WRONG_RANKS, Vec::new(), read_number(&mut stream)?)),
            other => Ok((other, Vec::new(), ranks)),
        }
    }

    fn publish(&self, path: &Path, ranks: usize, own: &[u8]) -> Result<Vec<u8>> {
        let deadline = deadline(Instant::now(), self.timeout);
        let number = rand::rng().next_u64();
        let failed = |error: io::Error| self.failed(0, format!("cannot write {}: {error}", path.display()));
        // What the others say, of an earlier run too.
        let remove_marks = || (1..ranks).for_each(|rank| drop(fs::remove_file(beside(path, &rank.to_string()))));
        let mut content = MAGIC.to_vec();
        content.extend(number.to_le_bytes());
        content.extend((ranks as u64).to_le_bytes());
        let written =
            write_bytes(&mut content, self.token.as_bytes()).and_then(|()| write_bytes(&mut content, own)).and_then(|()| {
                remove_marks();
                // In place of what an earlier run has left: were there no file for a moment, who has read that one would think
                // that rank 0 has given up.
                let new = beside(path, &format!("new-{number:016x}"));
                create(&new, &content).and_then(|()| fs::rename(&new, path)).inspect_err(|_| drop(fs::remove_file(&new)))
            });
        written.map_err(failed)?;
        let mut missing: BTreeSet<usize> = (1..ranks).collect();
        while !missing.is_empty() && Instant::now() < deadline {
            missing.retain(|rank| !has_read(&beside(path, &rank.to_string()), number));
            if !missing.is_empty() {
                thread::sleep(PAUSE);
            }
        }
        if missing.is_empty() {
            fs::remove_file(path).map_err(failed)?;
            return Ok(own.to_vec());
        }
        // What the others have said first: then they know that it came to nothing.
        remove_marks();
        let _ = fs::remove_file(path);
        Err(self.missing(&missing))
    }

    fn read(&self, path: &Path, rank: usize, ranks: usize) -> Result<Vec<u8>> {
        let deadline = deadline(Instant::now(), self.timeout);
        let own = beside(path, &rank.to_string());
        // The number of the file that was read, and what it gave.
        let mut found: Option<(u64, Vec<u8>)> = None;
        let mut of_others = false;
        loop {
            match open_own(path).and_then(|file| file.map(parse).transpose()) {
                Ok(None) => {
                    if let Some((number, given)) = found {
                        if !has_read(&own, number) {
                            return Err(self.failed(0, "has given up, as some have not come".into()));
                        }
                        let _ = fs::remove_file(&own);
                        return Ok(given);
                    }
                }
                Ok(Some((_, of, token, _))) if equal(&token, self.token.as_bytes()) && of != ranks as u64 => {
                    return Err(self.failed(rank, format!("is one of {ranks}, but rank 0 waits for {of} ranks in all")));
                }
                Ok(Some((number, _, token, given))) if equal(&token, self.token.as_bytes()) => {
                    if found.as_ref().is_none_or(|(known, _)| *known != number) {
                        let told = {
                            let _ = fs::remove_file(&own);
                            create(&own, &number.to_le_bytes())
                        };
                        told.map_err(|error| self.failed(rank, format!("cannot write {}: {error}", own.display())))?;
                        found = Some((number, given));
                    }
                }
                // Another run's, perhaps of one that has ended: rank 0 of this one will replace it.
                Ok(Some(_)) => of_others = true,
                Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                    return Err(self.failed(0, format!("has not written {}: {error}", path.display())));
                }
                Err(_) => {}
            }
            if Instant::now() >= deadline {
                let _ = fs::remove_file(&own);
                let why = match (&found, of_others) {
                    (Some(_), _) => "has not heard of all ranks",
                    (None, true) => "has not come, but another run, with another token,",
                    (None, false) => "has not come",
                };
                return Err(self.failed(0, format!("{why} within {:?}", self.timeout)));
            }
            thread::sleep(PAUSE);
        }
    }
}

/// PATH.NAME.
fn beside(path: &Path, name: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(".");
    path.push(name);
    path.into()
}

/// A new file that only its owner may read, with this content; an error if there is something of the name, a link included.
fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// A file of this user's that nobody else may read or write; none if there is none. Any other is an error: of permissions.
fn open_own(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(target_os = "linux")]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW);
    let file = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io::Error::new(ErrorKind::PermissionDenied, error.to_string())),
    };
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::MetadataExt;
        let metadata = file.metadata()?;
        // SAFETY: the call has no conditions.
        let me = unsafe { libc::geteuid() };
        if metadata.uid() != me || metadata.mode() & 0o077 != 0 || !metadata.is_file() {
            let text = format!("it is of user {} with mode {:o}", metadata.uid(), metadata.mode() & 0o7777);
            return Err(io::Error::new(ErrorKind::PermissionDenied, text));
        }
    }
    Ok(Some(file))
}

/// The number, how many ranks, the token, and what is given.
fn parse(mut file: File) -> io::Result<(u64, u64, Vec<u8>, Vec<u8>)> {
    let mut head = [0; MAGIC.len() + 16];
    file.read_exact(&mut head)?;
    let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("8 bytes"));
    if head[..MAGIC.len()] != *MAGIC {
        return Err(io::Error::new(ErrorKind::InvalidData, "it is no rendezvous"));
    }
    Ok((number(8), number(16), read_bytes(&mut file)?, read_bytes(&mut file)?))
}

/// Whether a rank says that it has read the file of this number.
fn has_read(path: &Path, number: u64) -> bool {
    let mut said = [0; 8];
    let read = open_own(path).ok().flatten().is_some_and(|mut file| file.read_exact(&mut said).is_ok());
    read && u64::from_le_bytes(said) == number
}

fn read_number(from: &mut impl Read) -> io::Result<usize> {
    let mut number = [0; 4];
    from.read_exact(&mut number)?;
    Ok(u32::from_le_bytes(number) as usize)
}

fn write_number(to: &mut impl Write, number: usize) -> io::Result<()> {
    to.write_all(&(number as u32).to_le_bytes())
}

fn read_bytes(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let count = read_number(from)?;
    if count > MOST {
        return Err(io::Error::new(ErrorKind::InvalidData, "too long"));
    }
    let mut bytes = vec![0; count];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn write_bytes(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    write_number(to, bytes.len())?;
    to.write_all(bytes)
}

/// In a time that does not tell where they differ.
fn equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

/// `file:PATH` or `tcp:HOST:PORT`.
impl FromStr for Rendezvous {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once(':') {
            Some(("file", path)) if !path.is_empty() => Ok(Self::file(path)),
            Some(("tcp", address)) if address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) => {
                Ok(Self::tcp(address))
            }
            _ => Err(Error::UnknownRendezvous { text: text.into() }),
        }
    }
}

impl fmt::Display for Rendezvous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Meeting::File(path) => write!(f, "file:{}", path.display()),
            Meeting::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

/// Without the token.
impl fmt::Debug for Rendezvous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rendezvous({self}, within {:?})", self.timeout)
    }
}
