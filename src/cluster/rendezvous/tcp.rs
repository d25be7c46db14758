//! Rendezvous over TCP: rank 0 listens, the others connect and show the token.
//!
//! A conversation, with numbers as 32 bits, the least significant byte first:
//!
//! | from | bytes |
//! |---|---|
//! | the other rank | [`MAGIC`], the length of the token |
//! | rank 0 | [`PROCEED`]; or [`WRONG_TOKEN`] for another length, before a byte of the token has crossed |
//! | the other rank | the token, its rank, the number of ranks |
//! | rank 0 | [`WELCOME`], the length of the data, the data; or [`WRONG_TOKEN`]; or [`WRONG_RANKS`] and the right number |
//! | the other rank | [`WELCOME`]: it has all bytes |
//!
//! Anyone who reaches the port can connect. Rank 0 therefore serves all connections from one thread and waits for none of them:
//!
//! - A conversation ends after [`TALK`], however fast the bytes arrive.
//! - Rank 0 holds at most [`STRANGERS`] + ranks connections. If all are taken and another one comes, rank 0 closes the oldest one
//!   that has not shown the token and is older than [`GRACE`].
//! - Rank 0 reads and stores no more bytes than the next step of the conversation has.
//! - Rank 0 returns, and closes all connections, when the last rank has its bytes or the time-out has passed.
//!
//! A rank whose connection is closed tries again until its own time-out. A stranger can thus delay ranks only by opening
//! connections faster than rank 0 can close them.

use super::{Rendezvous, equal};
use crate::Result;
use crate::cluster::transport::deadline;
use std::collections::{BTreeSet, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

const MAGIC: &[u8; 8] = b"warpset2";

// Rank 0's replies.
const WELCOME: u8 = 0;
const WRONG_TOKEN: u8 = 1;
const WRONG_RANKS: u8 = 2;
const PROCEED: u8 = 3;

/// Longest duration of a conversation.
const TALK: Duration = Duration::from_secs(5);
/// Connections that rank 0 holds at most, in addition to one for each rank.
const STRANGERS: usize = 64;
/// Time that a connection has to show the token before a later connection may displace it.
const GRACE: Duration = Duration::from_millis(25);
/// Connections that rank 0 accepts before it serves those that it has.
const ACCEPTED_AT_ONCE: usize = 16;
/// Rank 0's sleep when no connection has made progress.
const NAP: Duration = Duration::from_millis(2);
/// Sleep between two attempts to connect.
const RETRY: Duration = Duration::from_millis(20);

impl Rendezvous {
    /// Rank 0's part: sends `own` to all other ranks.
    pub(super) fn listen(&self, address: &str, ranks: usize, own: &[u8]) -> Result<Vec<u8>> {
        let deadline = deadline(Instant::now(), self.timeout);
        let failed = |error: io::Error| self.failed(0, format!("cannot listen at {address}: {error}"));
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let host = Host { token: self.token.as_bytes(), ranks, own };
        let mut missing: BTreeSet<usize> = (1..ranks).collect();
        let mut guests = Guests { oldest_first: VecDeque::new(), most: STRANGERS + ranks };
        while !missing.is_empty() && Instant::now() < deadline {
            let accepted = guests.accept(&listener);
            let served = guests.serve(&host, &mut missing);
            if !accepted && !served {
                thread::sleep(NAP);
            }
        }
        if missing.is_empty() { Ok(own.to_vec()) } else { Err(self.missing(&missing)) }
    }

    /// The part of every other rank: returns rank 0's data.
    pub(super) fn connect(&self, address: &str, rank: usize, ranks: usize) -> Result<Vec<u8>> {
        let deadline = deadline(Instant::now(), self.timeout);
        loop {
            let error = match self.ask_at(address, deadline, rank, ranks) {
                Ok(Answer::Given(given)) => return Ok(given),
                Ok(Answer::WrongToken) => return Err(self.failed(rank, "has another token than rank 0".into())),
                Ok(Answer::WrongRanks(of)) => return Err(self.other_ranks(rank, ranks, of as u64)),
                // Rank 0 does not listen yet, has closed the connection, or another program listens there.
                Err(error) => error,
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.failed(0, format!("has not come within {:?}: {error}", self.timeout)));
            }
            thread::sleep(RETRY.min(left));
        }
    }

    /// Sends the request to each address of the name, until one answers. The remaining time is divided among the remaining
    /// addresses, with at most [`TALK`] for each, because packets to one of them may be dropped.
    fn ask_at(&self, address: &str, deadline: Instant, rank: usize, ranks: usize) -> io::Result<Answer> {
        let places: Vec<SocketAddr> = address.to_socket_addrs()?.collect();
        let mut error = io::Error::new(ErrorKind::NotFound, "the name has no address");
        for (at, place) in places.iter().enumerate() {
            let now = Instant::now();
            let share = (deadline.saturating_duration_since(now) / (places.len() - at) as u32).min(TALK);
            if share.is_zero() {
                break;
            }
            let stream = TcpStream::connect_timeout(place, share);
            match stream.and_then(|stream| self.ask(Timed { stream, until: now + share }, rank, ranks)) {
                Ok(answer) => return Ok(answer),
                Err(other) => error = other,
            }
        }
        Err(error)
    }

    fn ask(&self, mut timed: Timed, rank: usize, ranks: usize) -> io::Result<Answer> {
        // While no program listens at the port, the kernel may choose the same port as the connection's own, and connect it to
        // itself.
        if timed.stream.local_addr()? == timed.stream.peer_addr()? {
            return Err(io::Error::new(ErrorKind::ConnectionRefused, "connected to itself"));
        }
        timed.write_all(&[&MAGIC[..], &number(self.token.len())].concat())?;
        match timed.byte()? {
            PROCEED => {}
            WRONG_TOKEN => return Ok(Answer::WrongToken),
            other => return Err(unknown(other)),
        }
        timed.write_all(&[self.token.as_bytes(), &number(rank), &number(ranks)].concat())?;
        match timed.byte()? {
            WELCOME => {
                let length = timed.number()?;
                if length > super::MAX_BYTES {
                    return Err(io::Error::new(ErrorKind::InvalidData, format!("it sends {length} bytes")));
                }
                let mut given = vec![0; length];
                timed.read_exact(&mut given)?;
                timed.write_all(&[WELCOME])?;
                Ok(Answer::Given(given))
            }
            WRONG_TOKEN => Ok(Answer::WrongToken),
            WRONG_RANKS => Ok(Answer::WrongRanks(timed.number()?)),
            other => Err(unknown(other)),
        }
    }
}

/// Rank 0's answer to another rank.
enum Answer {
    Given(Vec<u8>),
    WrongToken,
    /// With the number of ranks that rank 0 waits for.
    WrongRanks(usize),
}

fn unknown(reply: u8) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("what listens there is not rank 0: it replied {reply:#04x}"))
}

/// A number as both sides send it. The caller has checked that it fits.
fn number(value: usize) -> [u8; 4] {
    (value as u32).to_le_bytes()
}

/// The number at the start of `bytes`.
fn number_in(bytes: &[u8]) -> usize {
    u32::from_le_bytes(bytes[..4].try_into().expect("4 bytes")) as usize
}

/// A stream on which all reads and writes together end at one time, however slowly the bytes arrive.
struct Timed {
    stream: TcpStream,
    until: Instant,
}

impl Timed {
    fn left(&self) -> io::Result<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::Error::new(ErrorKind::TimedOut, "the conversation took too long")) } else { Ok(left) }
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    fn number(&mut self) -> io::Result<usize> {
        let mut bytes = [0; 4];
        self.read_exact(&mut bytes)?;
        Ok(number_in(&bytes))
    }
}

impl Read for Timed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(into)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Rank 0's side of every conversation.
struct Host<'a> {
    token: &'a [u8],
    ranks: usize,
    own: &'a [u8],
}

/// The connections that rank 0 holds.
struct Guests {
    oldest_first: VecDeque<Guest>,
    most: usize,
}

impl Guests {
    /// Accepts some of the waiting connections. If there are too many, new ones replace old ones. Returns whether any was
    /// accepted.
    fn accept(&mut self, listener: &TcpListener) -> bool {
        for accepted in 0..ACCEPTED_AT_ONCE {
            if !self.has_place() {
                return accepted > 0;
            }
            // An error concerns a connection that has ended, or a lack of descriptors that may pass: try again later.
            let Ok((stream, _)) = listener.accept() else { return accepted > 0 };
            if self.oldest_first.len() == self.most {
                let displaced = self.displaceable().expect("`has_place` has found one, and connections only get older");
                self.oldest_first.remove(displaced);
            }
            if stream.set_nonblocking(true).is_ok() {
                self.oldest_first.push_back(Guest::new(stream));
            }
        }
        true
    }

    fn has_place(&self) -> bool {
        self.oldest_first.len() < self.most || self.displaceable().is_some()
    }

    /// Index of the oldest connection that has had [`GRACE`] to show the token, and has not shown it.
    fn displaceable(&self) -> Option<usize> {
        self.oldest_first.iter().position(|guest| !guest.has_shown_token() && guest.since.elapsed() >= GRACE)
    }

    /// Continues every conversation without waiting, and ends those that are over, have failed or take too long. Removes the
    /// ranks that have their data from `missing`. Returns whether any conversation made progress or ended.
    fn serve(&mut self, host: &Host<'_>, missing: &mut BTreeSet<usize>) -> bool {
        let mut any = false;
        self.oldest_first.retain_mut(|guest| {
            let step = if guest.since.elapsed() < TALK { guest.proceed(host) } else { Err(ErrorKind::TimedOut.into()) };
            any |= !matches!(step, Ok(Step::Waiting));
            if let Ok(Step::Has(rank)) = step {
                missing.remove(&rank);
            }
            matches!(step, Ok(Step::Waiting | Step::Moved))
        });
        any
    }
}

/// One connection to rank 0, and how far its conversation is.
struct Guest {
    stream: TcpStream,
    since: Instant,
    stage: Stage,
    /// Bytes received in this stage.
    inbox: Vec<u8>,
    /// Bytes to send before anything else is read.
    outbox: VecDeque<u8>,
}

/// The bytes that rank 0 reads next.
enum Stage {
    Greeting,
    Token,
    /// The rank has shown the token and acknowledges the data.
    Thanks {
        rank: usize,
    },
    /// Rank 0 reads nothing more: the connection is closed when the reply is sent.
    Refused,
}

/// Result of continuing a conversation.
enum Step {
    /// No byte could be read or sent.
    Waiting,
    Moved,
    /// The conversation is over: this rank has its data.
    Has(usize),
    /// The conversation is over: the guest is refused.
    Over,
}

impl Guest {
    fn new(stream: TcpStream) -> Self {
        Self { stream, since: Instant::now(), stage: Stage::Greeting, inbox: Vec::new(), outbox: VecDeque::new() }
    }

    fn has_shown_token(&self) -> bool {
        matches!(self.stage, Stage::Thanks { .. })
    }

    /// Sends and receives what is possible without waiting.
    fn proceed(&mut self, host: &Host<'_>) -> io::Result<Step> {
        let mut moved = false;
        loop {
            let transferred = if self.outbox.is_empty() {
                match &self.stage {
                    Stage::Refused => return Ok(Step::Over),
                    Stage::Thanks { rank } if self.inbox.len() == 1 => return Ok(Step::Has(*rank)),
                    _ => self.receive(host),
                }
            } else {
                self.send()
            };
            match transferred {
                Ok(()) => moved = true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(if moved { Step::Moved } else { Step::Waiting });
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn send(&mut self) -> io::Result<()> {
        match self.stream.write(self.outbox.as_slices().0)? {
            0 => Err(ErrorKind::WriteZero.into()),
            sent => {
                self.outbox.drain(..sent);
                Ok(())
            }
        }
    }

    /// Reads some of the bytes of this stage. After the last byte, replies.
    fn receive(&mut self, host: &Host<'_>) -> io::Result<()> {
        let expected = match self.stage {
            Stage::Greeting => MAGIC.len() + 4,
            Stage::Token => host.token.len() + 8,
            Stage::Thanks { .. } => 1,
            Stage::Refused => 0,
        };
        let mut buffer = [0; 4096];
        let most = (expected - self.inbox.len()).min(buffer.len());
        let received = self.stream.read(&mut buffer[..most])?;
        if received == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.inbox.extend_from_slice(&buffer[..received]);
        if self.inbox.len() == expected { self.reply(host) } else { Ok(()) }
    }

    /// Replies to all bytes of a stage.
    fn reply(&mut self, host: &Host<'_>) -> io::Result<()> {
        match self.stage {
            Stage::Greeting => {
                let (magic, length) = self.inbox.split_at(MAGIC.len());
                if magic != MAGIC {
                    return Err(ErrorKind::InvalidData.into());
                }
                let right = number_in(length) == host.token.len();
                self.enter(if right { (Stage::Token, vec![PROCEED]) } else { (Stage::Refused, vec![WRONG_TOKEN]) });
            }
            Stage::Token => {
                let (token, numbers) = self.inbox.split_at(host.token.len());
                let (rank, of) = (number_in(numbers), number_in(&numbers[4..]));
                self.enter(if !equal(token, host.token) {
                    (Stage::Refused, vec![WRONG_TOKEN])
                } else if of != host.ranks || !(1..host.ranks).contains(&rank) {
                    (Stage::Refused, [&[WRONG_RANKS][..], &number(host.ranks)].concat())
                } else {
                    (Stage::Thanks { rank }, [&[WELCOME][..], &number(host.own.len()), host.own].concat())
                });
            }
            Stage::Thanks { .. } | Stage::Refused => {}
        }
        Ok(())
    }

    /// Begins a stage with a reply.
    fn enter(&mut self, (stage, reply): (Stage, Vec<u8>)) {
        self.stage = stage;
        self.inbox.clear();
        self.outbox = reply.into();
    }
}
