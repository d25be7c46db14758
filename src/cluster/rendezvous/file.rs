//! Rendezvous by a file: rank 0 writes the file, the others read it and leave a mark each, and rank 0 completes or withdraws it.
//!
//! Only rank 0 changes the *record*, the file at the path. A record has a random number and is one of:
//!
//! - *open*: number, ranks, token and data. Written under another name and renamed, so that it is there as a whole or not at all.
//! - *complete*: the number alone. Renamed in place of the open record.
//!
//! Only rank r writes and removes its *mark*, the file `PATH.r`: the number of the open record that it has read.
//!
//! | rank 0 | another rank |
//! |---|---|
//! | removes marks of earlier runs, places an open record | reads the open record, writes its mark |
//! | sees all marks of its number: **places the complete record** | sees the complete record of its mark's number: all have arrived; removes the mark |
//! | sees no mark of its number any more: removes the record | |
//! | or its time is over: **removes the open record**, then the marks of its number | sees no record after it wrote its mark: rank 0 has given up; removes the mark |
//!
//! The two bold steps are atomic, and rank 0 takes at most one of them for a number. A rank believes that all have arrived only
//! if it sees the complete record of the number that it has read. The steps may come in any order:
//!
//! - A rank reads the open record, rank 0 withdraws, the rank writes its mark: it finds no record and fails.
//! - Rank 0 withdraws, and a second attempt places another open record before the rank looks: the rank reads that one and
//!   replaces its mark. It never takes the number of one attempt for that of another.
//! - Rank 0 is killed: the open record stays, and the ranks fail at their time-outs. The next run replaces the record. The marks
//!   of a killed rank are of an old number, or are removed by the next rank 0.
//! - Rank 0 is killed after it has placed the complete record: all have arrived, the ranks return, and the record stays. The
//!   complete record has neither the token nor the data.
//! - A rank is killed or stopped after it wrote its mark: rank 0 waits [`ACKNOWLEDGED`] at most, returns, and leaves the
//!   complete record, which the rank finds if it goes on.
//! - A rank's time is over: it removes its mark and looks once more. If rank 0 has placed the complete record, the rank has
//!   arrived and returns. If rank 0 looked at all marks just before and places the record just afterwards, this rank fails while
//!   the others return. No protocol excludes that without waiting beyond a time-out.
//! - A second run uses the same path at the same time: its record replaces the first one's. Rank 0 looks at the number before it
//!   completes or removes a record, so the first run fails at its time-outs and the second one meets. If the record is replaced
//!   between that look and that step, both runs may fail. No rank of either believes the other's record.
//!
//! Another user who can write to the folder may put something there first. A rank reads regular files only that its own user
//! owns and others can neither read nor write, follows no link, and does not wait for a writer of a FIFO. The complete record
//! and the random number keep ranks from believing a file of an earlier run.

use super::{MAX_BYTES, Rendezvous, equal};
use crate::Result;
use crate::cluster::transport::deadline;
use crate::host::replace;
use rand::Rng;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The first bytes of an open record and of a complete one.
const OPEN: &[u8; 8] = b"warpset2";
const COMPLETE: &[u8; 8] = b"warpset+";
/// Sleep between two looks at the files.
const PAUSE: Duration = Duration::from_millis(20);
/// Longest time for which rank 0 waits until all ranks have seen the complete record. Ranks that take longer are gone.
const ACKNOWLEDGED: Duration = Duration::from_secs(5);

impl Rendezvous {
    /// Rank 0's part: sends `own` to all other ranks.
    pub(super) fn publish(&self, path: &Path, ranks: usize, own: &[u8]) -> Result<Vec<u8>> {
        let deadline = deadline(Instant::now(), self.timeout);
        let failed = |error: io::Error| self.failed(0, format!("cannot write {}: {error}", path.display()));
        let mut host = Host::publish(path, ranks, self.token.as_bytes(), own).map_err(failed)?;
        while !host.sees_all_marks() {
            if Instant::now() >= deadline {
                host.withdraw();
                return Err(self.missing(&host.missing));
            }
            thread::sleep(PAUSE);
        }
        host.complete().inspect_err(|_| host.withdraw()).map_err(failed)?;
        let until = deadline.min(Instant::now() + ACKNOWLEDGED);
        while !host.ends() && Instant::now() < until {
            thread::sleep(PAUSE);
        }
        Ok(own.to_vec())
    }

    /// The part of every other rank: returns rank 0's data.
    pub(super) fn read(&self, path: &Path, rank: usize, ranks: usize) -> Result<Vec<u8>> {
        let deadline = deadline(Instant::now(), self.timeout);
        let mut guest = Guest::new(path, rank);
        loop {
            let is_last = Instant::now() >= deadline;
            if is_last {
                // Before the last look, so that rank 0 does not count this rank after it.
                guest.remove_mark();
            }
            let seen = Record::read(path);
            if let Some(given) = guest.act(seen, self.token.as_bytes(), ranks).map_err(|refused| match refused {
                Refused::GivenUp => self.failed(0, "has given up, because some ranks did not arrive".into()),
                Refused::Ranks(of) => self.other_ranks(rank, ranks, of),
                Refused::Untrusted(error) => self.failed(0, format!("has not written {}: {error}", path.display())),
                Refused::Unmarked(error) => self.failed(rank, format!("cannot write {}: {error}", guest.mark.display())),
            })? {
                return Ok(given);
            }
            if is_last {
                let why = match (&guest.found, guest.has_seen_others) {
                    (Some(_), _) => "has not heard of all ranks",
                    (None, true) => "has not come (another run, with another token, has)",
                    (None, false) => "has not come",
                };
                return Err(self.failed(0, format!("{why} within {:?}", self.timeout)));
            }
            thread::sleep(PAUSE);
        }
    }
}

/// The file at the path.
enum Record {
    Open { number: u64, ranks: u64, token: Vec<u8>, given: Vec<u8> },
    Complete { number: u64 },
}

impl Record {
    /// Reads the record. `None` if there is none.
    fn read(path: &Path) -> io::Result<Option<Self>> {
        let Some(mut file) = open_own(path)? else { return Ok(None) };
        let mut kind = [0; 8];
        file.read_exact(&mut kind)?;
        let number = read_number(&mut file)?;
        match &kind {
            OPEN => {
                let ranks = read_number(&mut file)?;
                let [token, given] = [read_bytes(&mut file)?, read_bytes(&mut file)?];
                Ok(Some(Self::Open { number, ranks, token, given }))
            }
            COMPLETE => Ok(Some(Self::Complete { number })),
            _ => Err(io::Error::new(ErrorKind::InvalidData, "it is not a rendezvous file")),
        }
    }

    fn number(&self) -> u64 {
        match self {
            Self::Open { number, .. } | Self::Complete { number } => *number,
        }
    }

    fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Open { number, ranks, token, given } => {
                let lengths = [token, given].map(|bytes| (bytes.len() as u64).to_le_bytes());
                [OPEN, &number.to_le_bytes(), &ranks.to_le_bytes(), &lengths[0][..], token, &lengths[1][..], given].concat()
            }
            Self::Complete { number } => [*COMPLETE, number.to_le_bytes()].concat(),
        }
    }
}

/// Rank 0, whose open record is at the path.
struct Host<'a> {
    path: &'a Path,
    number: u64,
    ranks: usize,
    /// Ranks whose marks were not there at the last look.
    missing: BTreeSet<usize>,
}

impl<'a> Host<'a> {
    fn publish(path: &'a Path, ranks: usize, token: &[u8], own: &[u8]) -> io::Result<Self> {
        let host = Self { path, number: rand::rng().next_u64(), ranks, missing: (1..ranks).collect() };
        for rank in 1..ranks {
            let _ = fs::remove_file(host.mark(rank));
        }
        let (token, given) = (token.to_vec(), own.to_vec());
        host.place(&Record::Open { number: host.number, ranks: ranks as u64, token, given })?;
        Ok(host)
    }

    fn mark(&self, rank: usize) -> PathBuf {
        beside(self.path, &rank.to_string())
    }

    /// Whether a rank's mark is there and has this rank 0's number.
    fn is_marked(&self, rank: usize) -> bool {
        let number = open_own(&self.mark(rank)).and_then(|file| file.map(|mut file| read_number(&mut file)).transpose());
        number.is_ok_and(|number| number == Some(self.number))
    }

    /// Puts a record at the path, in one step and in place of any other file.
    fn place(&self, record: &Record) -> io::Result<()> {
        let new = beside(self.path, &format!("new-{:016x}", self.number));
        create(&new, &record.to_bytes()).and_then(|()| replace(&new, self.path)).inspect_err(|_| drop(fs::remove_file(&new)))
    }

    /// Whether the record at the path is this rank 0's.
    fn has_place(&self) -> bool {
        Record::read(self.path).ok().flatten().is_some_and(|record| record.number() == self.number)
    }

    /// Looks for the marks that were missing. If none is missing now, looks for all marks again, because a rank whose time is
    /// over has removed its mark.
    fn sees_all_marks(&mut self) -> bool {
        let mut missing = std::mem::take(&mut self.missing);
        missing.retain(|rank| !self.is_marked(*rank));
        if missing.is_empty() {
            missing = (1..self.ranks).filter(|rank| !self.is_marked(*rank)).collect();
        }
        self.missing = missing;
        self.missing.is_empty()
    }

    /// Lets all ranks know that all have arrived.
    fn complete(&self) -> io::Result<()> {
        if !self.has_place() {
            return Err(io::Error::other("another run has taken the place"));
        }
        self.place(&Record::Complete { number: self.number })
    }

    /// Removes the complete record if no rank waits for it any more. Returns whether no rank waits.
    fn ends(&self) -> bool {
        let all_know = (1..self.ranks).all(|rank| !self.is_marked(rank));
        if all_know && self.has_place() {
            let _ = fs::remove_file(self.path);
        }
        all_know
    }

    /// Gives up. The record is removed first: a rank that looks for it afterwards fails, whether or not its mark is there.
    fn withdraw(&self) {
        if self.has_place() {
            let _ = fs::remove_file(self.path);
        }
        for rank in (1..self.ranks).filter(|rank| self.is_marked(*rank)) {
            let _ = fs::remove_file(self.mark(rank));
        }
    }
}

/// Another rank. Its mark is removed when it is dropped.
struct Guest {
    mark: PathBuf,
    is_marked: bool,
    /// The number and the data of the open record that was read last.
    found: Option<(u64, Vec<u8>)>,
    /// A record of another run was there.
    has_seen_others: bool,
}

/// Why a rank cannot go on.
enum Refused {
    /// Rank 0 has withdrawn the record that this rank has read.
    GivenUp,
    /// Rank 0 waits for another number of ranks: this one.
    Ranks(u64),
    /// There is a file that rank 0 has not written.
    Untrusted(io::Error),
    /// The mark cannot be written.
    Unmarked(io::Error),
}

impl Guest {
    fn new(path: &Path, rank: usize) -> Self {
        Self { mark: beside(path, &rank.to_string()), is_marked: false, found: None, has_seen_others: false }
    }

    /// Takes the step that the record calls for. Returns the data if the record says that all have arrived.
    fn act(
        &mut self,
        seen: io::Result<Option<Record>>,
        own_token: &[u8],
        own_ranks: usize,
    ) -> std::result::Result<Option<Vec<u8>>, Refused> {
        match (seen, &self.found) {
            (Ok(None), Some(_)) => Err(Refused::GivenUp),
            (Ok(Some(Record::Complete { number })), Some((known, given))) if number == *known => Ok(Some(given.clone())),
            (Ok(Some(Record::Open { number, ranks, token, given })), found) if equal(&token, own_token) => {
                if ranks != own_ranks as u64 {
                    return Err(Refused::Ranks(ranks));
                }
                if found.as_ref().is_none_or(|(known, _)| *known != number) {
                    self.write_mark(number).map_err(Refused::Unmarked)?;
                    self.found = Some((number, given));
                }
                Ok(None)
            }
            // The record of another run, which may have ended: rank 0 of this run will replace it.
            (Ok(Some(Record::Open { .. })), _) => {
                self.has_seen_others = true;
                Ok(None)
            }
            (Err(error), _) if error.kind() == ErrorKind::PermissionDenied => Err(Refused::Untrusted(error)),
            // No record yet, one that another run has left, or a file system that answers the next time.
            (Ok(None | Some(Record::Complete { .. })) | Err(_), _) => Ok(None),
        }
    }

    fn write_mark(&mut self, number: u64) -> io::Result<()> {
        // Remove a mark of an earlier number, or of a process that was killed.
        let _ = fs::remove_file(&self.mark);
        self.is_marked = true;
        create(&self.mark, &number.to_le_bytes())
    }

    fn remove_mark(&mut self) {
        if std::mem::take(&mut self.is_marked) {
            let _ = fs::remove_file(&self.mark);
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.remove_mark();
    }
}

/// PATH.NAME.
fn beside(path: &Path, name: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(".");
    path.push(name);
    path.into()
}

/// Creates a file that only its owner may read and write. Returns an error if the name is taken, even by a link.
fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Opens a regular file of this user that others can neither read nor write. `None` if there is no file. Anything else is an
/// error of the kind `PermissionDenied`.
fn open_own(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true);
    // `O_NONBLOCK` keeps `open` from waiting for the writer of a FIFO, and changes nothing for regular files.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = match options.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        // A network's file system reports this if the file was replaced between two steps of opening it.
        Err(error) if error.kind() == ErrorKind::StaleNetworkFileHandle => return Err(error),
        Err(error) => return Err(io::Error::new(ErrorKind::PermissionDenied, error.to_string())),
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let metadata = file.metadata()?;
        // SAFETY: the call has no conditions.
        let me = unsafe { libc::geteuid() };
        if !metadata.is_file() {
            return Err(io::Error::new(ErrorKind::PermissionDenied, "it is not a regular file"));
        }
        if metadata.uid() != me || metadata.mode() & 0o077 != 0 {
            let text = format!("it is of user {} with mode {:o}", metadata.uid(), metadata.mode() & 0o7777);
            return Err(io::Error::new(ErrorKind::PermissionDenied, text));
        }
    }
    Ok(Some(file))
}

fn read_number(from: &mut impl Read) -> io::Result<u64> {
    let mut number = [0; 8];
    from.read_exact(&mut number)?;
    Ok(u64::from_le_bytes(number))
}

fn read_bytes(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let count = read_number(from)?;
    if count > MAX_BYTES as u64 {
        return Err(io::Error::new(ErrorKind::InvalidData, format!("{count} bytes are too many")));
    }
    let mut bytes = vec![0; count as usize];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    //! Keeps this promise of `src/docs/several_gpus.md`:
    //!
    //! - A rank that meets by a file concludes that all have arrived only if rank 0 does, in every interleaving. The files of a
    //!   killed rank contain no secret and disturb no later run (also `tests/rendezvous.rs`).

    use super::*;

    const TOKEN: &[u8] = b"of this run";
    const GIVEN: &[u8] = b"of rank 0";

    /// One step of rank 0 or of rank 1. Another process may act between any two steps.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Act {
        /// Rank 0 publishes; later it looks at the marks; later it completes; later it looks whether all know.
        Host,
        /// Rank 0's time is over.
        HostGivesUp,
        /// Rank 1 reads the record, later acts on what it has read, later reads again, and so on.
        Guest,
        /// Rank 1's time is over: it removes its mark; later it looks for the last time.
        GuestGivesUp,
    }

    #[derive(Debug, PartialEq, Eq)]
    enum End {
        Met,
        Failed,
    }

    /// Rank 0 and rank 1, by the steps of [`Rendezvous::publish`] and [`Rendezvous::read`].
    struct Both<'a> {
        path: &'a Path,
        ranks: usize,
        host: Option<Host<'a>>,
        host_sees_all: bool,
        host_has_completed: bool,
        host_end: Option<End>,
        guest: Option<Guest>,
        seen: Option<io::Result<Option<Record>>>,
        guest_is_late: bool,
        guest_end: Option<End>,
    }

    impl<'a> Both<'a> {
        fn new(path: &'a Path, ranks: usize) -> Self {
            Self {
                path,
                ranks,
                host: None,
                host_sees_all: false,
                host_has_completed: false,
                host_end: None,
                guest: Some(Guest::new(path, 1)),
                seen: None,
                guest_is_late: false,
                guest_end: None,
            }
        }

        /// Whether this step can come now. Rank 0 gives up only while it misses a mark, rank 1 only between acting and reading.
        fn can(&self, act: Act) -> bool {
            match act {
                Act::Host => self.host_end.is_none(),
                Act::HostGivesUp => self.host.is_some() && self.host_end.is_none() && !self.host_sees_all,
                Act::Guest => self.guest_end.is_none(),
                Act::GuestGivesUp => self.guest_end.is_none() && self.seen.is_none() && !self.guest_is_late,
            }
        }

        fn act(&mut self, act: Act) {
            match act {
                Act::Host => self.host_acts(),
                Act::HostGivesUp => {
                    self.host.as_ref().unwrap().withdraw();
                    self.host_end = Some(End::Failed);
                }
                Act::Guest => self.guest_acts(),
                Act::GuestGivesUp => {
                    self.guest_is_late = true;
                    self.guest.as_mut().unwrap().remove_mark();
                }
            }
        }

        /// Takes a step if it can come now. Returns whether it was taken.
        fn try_act(&mut self, act: Act) -> bool {
            let can = self.can(act);
            if can {
                self.act(act);
            }
            can
        }

        fn host_acts(&mut self) {
            let Some(host) = &mut self.host else {
                self.host = Some(Host::publish(self.path, self.ranks, TOKEN, GIVEN).unwrap());
                return;
            };
            if self.host_has_completed {
                self.host_end = host.ends().then_some(End::Met);
            } else if self.host_sees_all {
                host.complete().unwrap();
                self.host_has_completed = true;
            } else {
                self.host_sees_all = host.sees_all_marks();
            }
        }

        fn guest_acts(&mut self) {
            let guest = self.guest.as_mut().unwrap();
            let Some(seen) = self.seen.take() else {
                self.seen = Some(Record::read(self.path));
                return;
            };
            self.guest_end = match guest.act(seen, TOKEN, self.ranks) {
                Ok(Some(given)) => {
                    assert_eq!(given, GIVEN);
                    Some(End::Met)
                }
                Ok(None) if self.guest_is_late => Some(End::Failed),
                Ok(None) => None,
                Err(_) => Some(End::Failed),
            };
            if self.guest_end.is_some() {
                self.guest = None;
            }
        }
    }

    /// Returns all sequences of this length in which each rank gives up at most once. Rank 0 begins, or rank 1 reads just before
    /// it.
    fn sequences(length: usize) -> Vec<Vec<Act>> {
        let mut all = vec![vec![Act::Host], vec![Act::Guest, Act::Host]];
        for _ in 1..length {
            let longer = |sequence: &Vec<Act>| {
                let add = |act: &Act| {
                    let once = matches!(act, Act::HostGivesUp | Act::GuestGivesUp);
                    (!once || !sequence.contains(act)).then(|| [&sequence[..], &[*act]].concat())
                };
                [Act::Host, Act::HostGivesUp, Act::Guest, Act::GuestGivesUp].iter().filter_map(add).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(longer).collect();
        }
        all
    }

    /// Creates an empty folder for one test.
    fn folder(test: &str) -> PathBuf {
        // In memory if there is a folder for that, because synchronising files takes long on a disk.
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let folder = parent.join(format!("warpset-{test}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// A rank believes that all have arrived only if rank 0 does; all others fail; and nothing is left.
    #[test]
    fn every_interleaving_of_two_ranks() {
        let folder = folder("interleavings");
        let path = folder.join("meet");
        let (mut ends, mut tried) = ([0; 3], 0);
        // If there are three ranks, the third one never comes.
        for (ranks, sequence) in [2, 3].into_iter().flat_map(|ranks| sequences(7).into_iter().map(move |all| (ranks, all))) {
            let mut both = Both::new(&path, ranks);
            // If a step of a sequence cannot come, another sequence without this step does the same.
            let possible = sequence.iter().all(|act| both.try_act(*act));
            // From here on each rank continues, and gives up if it waits for too long.
            for turn in 0.. {
                match (&both.host_end, &both.guest_end) {
                    (Some(_), Some(_)) => break,
                    (None, _) if turn > 8 => drop(both.try_act(Act::HostGivesUp)),
                    (_, None) if turn > 16 => drop(both.try_act(Act::GuestGivesUp)),
                    _ => {}
                }
                both.try_act(Act::Host);
                both.try_act(Act::Guest);
                assert!(turn < 100, "{ranks} ranks never end after {sequence:?}");
            }
            let gave_up = both.guest_is_late;
            tried += usize::from(possible);
            match (both.host_end.unwrap(), both.guest_end.unwrap()) {
                (End::Met, End::Met) if ranks == 2 => ends[0] += 1,
                (End::Failed, End::Failed) => ends[1] += 1,
                // The rank's time was over between rank 0's last look and the complete record.
                (End::Met, End::Failed) if ranks == 2 && gave_up => ends[2] += 1,
                ended => panic!("{ranks} ranks end with {ended:?} after {sequence:?}"),
            }
            let left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert!(left.is_empty(), "{left:?} after {sequence:?}");
        }
        assert!(ends.iter().all(|count| *count > 0) && tried > 500, "{ends:?} of {tried} sequences");
        fs::remove_dir_all(&folder).unwrap();
    }

    /// A rank never takes the record of one attempt for that of another, however each attempt ends.
    #[test]
    fn records_of_other_numbers_are_not_believed() {
        let folder = folder("numbers");
        let path = folder.join("meet");
        let look = |guest: &mut Guest| guest.act(Record::read(&path), TOKEN, 2).ok().expect("it goes on");
        let mut guest = Guest::new(&path, 1);
        // A record that was left by a run that has ended.
        create(&path, &Record::Complete { number: 1 }.to_bytes()).unwrap();
        assert_eq!(look(&mut guest), None);
        let mut first = Host::publish(&path, 2, TOKEN, b"first").unwrap();
        assert_eq!(look(&mut guest), None);
        assert!(first.sees_all_marks());
        // A second attempt takes the place, and removes the mark, which has the first one's number.
        let mut second = Host::publish(&path, 2, TOKEN, b"second").unwrap();
        assert!(!second.sees_all_marks() && !first.sees_all_marks(), "the second one has removed the mark");
        assert!(first.complete().is_err(), "the record is not the first one's");
        first.withdraw();
        second.place(&Record::Complete { number: first.number ^ second.number ^ 1 }).unwrap();
        assert_eq!(look(&mut guest), None, "a complete record of another number");
        let mut third = Host::publish(&path, 2, TOKEN, b"third").unwrap();
        assert_eq!(look(&mut guest), None);
        assert!(third.sees_all_marks());
        third.complete().unwrap();
        assert_eq!(look(&mut guest).as_deref(), Some(&b"third"[..]));
        drop(guest);
        assert!(third.ends());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir_all(&folder).unwrap();
    }
}
