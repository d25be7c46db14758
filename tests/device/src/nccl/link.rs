//! Sockets between the ranks of a communicator.

use crate::driver::report;
use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// Data that a rank sends to a peer, or receives from it.
pub struct Sent {
    pub peer: usize,
    pub address: u64,
    pub bytes: usize,
}

/// Whether a communicator has been ended.
#[derive(Default)]
pub struct End {
    ended: Mutex<bool>,
    changed: Condvar,
}

impl End {
    pub fn end(&self) {
        *self.ended.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = true;
        self.changed.notify_all();
    }

    pub fn is_ended(&self) -> bool {
        *self.ended.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn wait(&self) {
        let mut ended = self.ended.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        while !*ended {
            ended = self.changed.wait(ended).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}

/// For each other rank, one socket to send through and one to receive from.
pub struct Links {
    to: Vec<Option<UnixStream>>,
    from: Vec<Option<UnixStream>>,
}

fn address(name: &str, rank: usize) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{name}-{rank}"))
}

impl Links {
    /// Connects to all other ranks. Returns an error once the communicator has been ended.
    pub fn connect(name: &str, rank: usize, ranks: usize, end: &End) -> io::Result<Self> {
        let listener = UnixListener::bind_addr(&address(name, rank)?)?;
        listener.set_nonblocking(true)?;
        let mut links = Self { to: (0..ranks).map(|_| None).collect(), from: (0..ranks).map(|_| None).collect() };
        let is_open = |links: &Self| {
            let missing = |side: &[Option<UnixStream>]| side.iter().filter(|link| link.is_none()).count() > 1;
            missing(&links.to) || missing(&links.from)
        };
        while is_open(&links) {
            if end.is_ended() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            for peer in (0..ranks).filter(|peer| *peer != rank) {
                if links.to[peer].is_none() {
                    // The peer may not be listening yet.
                    let Ok(mut link) = UnixStream::connect_addr(&address(name, peer)?) else { continue };
                    link.write_all(&(rank as u64).to_le_bytes())?;
                    links.to[peer] = Some(link);
                }
            }
            match listener.accept() {
                Ok((mut link, _)) => {
                    link.set_nonblocking(false)?;
                    let mut peer = [0; 8];
                    link.read_exact(&mut peer)?;
                    links.from[u64::from_le_bytes(peer) as usize] = Some(link);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(1)),
                Err(error) => return Err(error),
            }
        }
        Ok(links)
    }

    /// Ends all sends and receives that are running.
    pub fn close(&self) {
        for link in self.to.iter().chain(&self.from).flatten() {
            // Ignore an error, because the connection may be closed already.
            let _ = link.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Sends and receives at the same time. Parts for the same peer keep their order.
    pub fn exchange(&self, sends: &[Sent], receives: &[Sent]) -> io::Result<()> {
        std::thread::scope(|scope| {
            let sending = scope.spawn(|| sends.iter().try_for_each(|part| self.send(part)));
            let received = receives.iter().try_for_each(|part| self.receive(part));
            let sent = sending.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
            sent.and(received)
        })
    }

    fn send(&self, part: &Sent) -> io::Result<()> {
        let mut link = self.to[part.peer].as_ref().ok_or(io::ErrorKind::NotConnected)?;
        // SAFETY: the caller of NCCL keeps the memory valid during the exchange.
        let bytes = unsafe { std::slice::from_raw_parts(part.address as *const u8, part.bytes) };
        link.write_all(&(part.bytes as u64).to_le_bytes())?;
        link.write_all(bytes)
    }

    fn receive(&self, part: &Sent) -> io::Result<()> {
        let mut link = self.from[part.peer].as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let mut bytes = [0; 8];
        link.read_exact(&mut bytes)?;
        let bytes = u64::from_le_bytes(bytes);
        if bytes != part.bytes as u64 {
            report::end(&format!("{bytes} bytes are sent by rank {}, and {} are received", part.peer, part.bytes));
        }
        // SAFETY: the caller of NCCL keeps the memory valid during the exchange.
        link.read_exact(unsafe { std::slice::from_raw_parts_mut(part.address as *mut u8, part.bytes) })
    }
}
