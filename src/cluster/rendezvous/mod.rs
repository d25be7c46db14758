//! How ranks in different processes find each other: rank 0 sends some bytes to all of them, by a file or over TCP.
//!
//! The data is secret: a process that has the id of an NCCL communicator may join it. Files are readable for their owner only,
//! and a process that connects over TCP must show a token. Both cross the network unencrypted, as all of NCCL's own traffic does.
//! [`file`] and [`tcp`] describe the two protocols, and how they stand up to others who use the same folder or network.

mod file;
mod tcp;

use crate::{Error, Result};
use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Place where the ranks of a run meet. Every process makes an equal `Rendezvous`.
///
/// **Nothing is encrypted.** Over TCP the token and rank 0's data cross the network as they are, and so do NCCL's own messages:
/// use a network that you trust. The token keeps out programs that can reach the port but cannot read the network. With a file,
/// the folder's file system carries the token and the data; only the file's owner can read and write the file.
///
/// Strangers who connect without the token get nothing, and rank 0 does not wait for them: see [`tcp`](Self::tcp).
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
    /// HOST:PORT, on which rank 0 listens until all ranks have come.
    Tcp(String),
}

const TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum number of bytes of the data, and of a token.
const MAX_BYTES: usize = 1 << 16;
/// Maximum number of ranks of a run.
const MAX_RANKS: usize = 1 << 16;

impl Rendezvous {
    /// Meets at a file, which exists while the ranks meet. All ranks must be able to reach its folder and write to it. Files
    /// named `PATH.` and a rank, or `PATH.new-` and a number, are also used. One run at a time can use a path.
    ///
    /// A file of another user, one that others can read or write, a link, and anything but a regular file is an error and is not
    /// read. If a rank is killed after all have arrived, a file without token and data may stay; the next run replaces it.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self { place: Meeting::File(path.into()), token: String::new(), timeout: TIMEOUT }
    }

    /// Meets at an address of rank 0's host: `HOST:PORT`. Rank 0 listens there until all ranks have come, and no longer.
    ///
    /// Anyone who reaches the port can connect. Rank 0 serves all connections from the caller's thread: at most 64 + `ranks` at a
    /// time, each for at most five seconds. If more arrive, rank 0 closes the oldest one that has not shown the token; a rank
    /// whose connection was closed tries again. Rank 0 refuses a token of another length before it reads it.
    ///
    /// Each other rank tries every address of the host's name until its own time-out. The time-out does not cover the look-up of
    /// the name, which takes as long as the system's resolver does; a numeric address needs none.
    pub fn tcp(address: impl Into<String>) -> Self {
        Self { place: Meeting::Tcp(address.into()), token: String::new(), timeout: TIMEOUT }
    }

    /// Sets the secret that the ranks of this run know and others do not, at most 64 KiB long. It crosses the network
    /// unencrypted. Default: none, which is refused over TCP. With a file the token may be any name of the run, for example the
    /// number of a scheduler's job: the token tells the files of different runs apart.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = token.into();
        self
    }

    /// Sets how long a rank waits for the others. Default: two minutes.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Gives all of `ranks` ranks the bytes that rank 0 passes as `own`, at most 64 KiB; the other ranks' `own` is not used. Rank
    /// 0 returns when all ranks have the bytes. Another rank returns over TCP as soon as it has them, and by a file when rank 0
    /// has confirmed that all have them.
    ///
    /// No thread, connection or listener remains after the return.
    ///
    /// # Errors
    ///
    /// [`Error::Connection`]: a rank has not come in time, has another token or another number of ranks, or the place cannot be
    /// used; no file is left there. Also for a token of more than 64 KiB or more than 65,536 ranks.
    ///
    /// If rank 0 fails because a rank is missing, no rank that meets by a file succeeds; over TCP those that have come do. A rank
    /// that gives up at its own time-out while the last one arrives may fail alone.
    ///
    /// # Panics
    ///
    /// If `rank` is not below `ranks`, or `own` is longer than 64 KiB.
    pub fn share(&self, rank: usize, ranks: usize, own: &[u8]) -> Result<Vec<u8>> {
        assert!(rank < ranks, "rank {rank} of {ranks} ranks");
        assert!(own.len() <= MAX_BYTES, "{} bytes to share, more than {MAX_BYTES}", own.len());
        if self.token.len() > MAX_BYTES {
            return Err(self.failed(rank, format!("has a token of {} bytes, more than {MAX_BYTES}", self.token.len())));
        }
        if ranks > MAX_RANKS {
            return Err(self.failed(rank, format!("is one of {ranks} ranks, more than {MAX_RANKS}")));
        }
        if ranks == 1 {
            return Ok(own.to_vec());
        }
        match (&self.place, rank) {
            (Meeting::Tcp(_), _) if self.token.is_empty() => {
                Err(self.failed(rank, "needs a token for a rendezvous over TCP".into()))
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

    fn other_ranks(&self, rank: usize, ranks: usize, of: u64) -> Error {
        self.failed(rank, format!("is one of {ranks} ranks, but rank 0 waits for {of}"))
    }
}

/// Compares a token in a time that depends on the lengths only.
fn equal(a: &[u8], b: &[u8]) -> bool {
    // The black box keeps the compiler from leaving the loop at the first difference.
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| std::hint::black_box(differ | (a ^ b))) == 0
}

/// Parses `file:PATH` or `tcp:HOST:PORT`.
impl FromStr for Rendezvous {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once(':') {
            Some(("file", path)) if !path.is_empty() => Ok(Self::file(path)),
            Some(("tcp", address)) if address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) => {
                Ok(Self::tcp(address))
            }
            _ => Err(Error::UnknownName { what: "rendezvous", name: text.into(), known: "file:PATH or tcp:HOST:PORT".into() }),
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

/// Shows the place and the time-out, but not the token.
impl fmt::Debug for Rendezvous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rendezvous({self}, within {:?})", self.timeout)
    }
}
