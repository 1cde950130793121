//! Executes plans over sockets: one for each address, so that the kernel reports those without a receiver.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tpp::executor::{ExecutorSettings, ProgramExecutor, RefusedReplies, RequestOutcome, ScatterGather, ScatterTarget};
use wire::tpp::UDP_PORT;

use crate::{HostError, LONGEST_WAIT, connected, is_nothing, nanoseconds, resolve};

/// Maximum number of addresses: each has a socket.
pub const MAX_ADDRESSES: usize = 256;

/// Maximum number of datagrams that are received from a socket before the others have their turn.
const DATAGRAMS_A_TURN: usize = 64;

/// Sockets to the targets of programs, and the executor that uses them.
#[derive(Debug)]
pub struct ExecutorSockets {
    executor: ProgramExecutor,
    sockets: Vec<(IpAddr, UdpSocket)>,
    /// The last error of each address.
    problems: BTreeMap<IpAddr, io::Error>,
    start: Instant,
    random: RandomState,
    drawn: u64,
}

impl ExecutorSockets {
    /// Creates an executor without sockets.
    pub fn new(settings: ExecutorSettings) -> ExecutorSockets {
        ExecutorSockets {
            executor: ProgramExecutor::new(settings),
            sockets: Vec::new(),
            problems: BTreeMap::new(),
            start: Instant::now(),
            // The keys of this hash are random.
            random: RandomState::new(),
            drawn: 0,
        }
    }

    /// Opens a socket to a host, by its name or address, and returns the address. A host has one socket.
    ///
    /// # Errors
    /// If the host is unknown or cannot be reached, or there are [`MAX_ADDRESSES`].
    pub fn open(&mut self, host: &str) -> Result<IpAddr, HostError> {
        let address = resolve(host)?;
        if self.sockets.iter().any(|(known, _)| *known == address.ip()) {
            return Ok(address.ip());
        }
        if self.sockets.len() == MAX_ADDRESSES {
            return Err(HostError::TooMany(MAX_ADDRESSES));
        }
        let socket = connected(address).and_then(|socket| socket.set_nonblocking(true).map(|()| socket));
        self.sockets.push((address.ip(), socket.map_err(|error| HostError::Open(address, error))?));
        Ok(address.ip())
    }

    /// Returns the last error of an address: `ConnectionRefused` if nothing receives programs there.
    pub fn problem(&self, address: IpAddr) -> Option<&io::Error> {
        self.problems.get(&address)
    }

    /// Returns the counts of datagrams that completed nothing.
    pub fn refused(&self) -> RefusedReplies {
        self.executor.refused()
    }

    /// Executes plans for all targets within a time, and passes the index of each target that has an outcome to a
    /// function, until all have one, `stop` is set, or it breaks. Returns the outcomes; `None` for those that are
    /// missing. The addresses must be [open](Self::open); to others nothing is sent.
    ///
    /// # Errors
    /// If the system call that waits fails, and those of the function.
    pub fn gather<E: From<HostError>>(
        &mut self,
        targets: Vec<ScatterTarget>,
        time: Duration,
        stop: &AtomicBool,
        mut on_outcome: impl FnMut(usize, &RequestOutcome) -> Result<ControlFlow<()>, E>,
    ) -> Result<Vec<Option<RequestOutcome>>, E> {
        let deadline_ns = self.now_ns().saturating_add(nanoseconds(time));
        let mut gather = ScatterGather::new(targets, deadline_ns);
        while !stop.load(Ordering::Relaxed) {
            let now_ns = self.now_ns();
            for target in gather.poll(&mut self.executor, now_ns).0 {
                let Some(outcome) = &gather.outcomes()[target] else { continue };
                if on_outcome(target, outcome)?.is_break() {
                    return Ok(gather.into_outcomes());
                }
            }
            if gather.is_complete() {
                break;
            }
            self.send();
            self.receive()?;
        }
        Ok(gather.into_outcomes())
    }

    fn now_ns(&self) -> u64 {
        nanoseconds(self.start.elapsed())
    }

    /// Sends everything that is due. A datagram that cannot be sent is lost, as it might be on the way.
    fn send(&mut self) {
        loop {
            let now_ns = self.now_ns();
            let (random, drawn) = (&self.random, &mut self.drawn);
            let tag = || {
                *drawn += 1;
                random.hash_one(*drawn)
            };
            let Some(outgoing) = self.executor.send(now_ns, tag) else { return };
            let Some((_, socket)) = self.sockets.iter().find(|(address, _)| *address == outgoing.to) else { continue };
            if let Err(error) = socket.send(&outgoing.datagram) {
                self.problems.insert(outgoing.to, error);
            }
        }
    }

    /// Waits until a datagram arrives or something is due, and receives what is there.
    fn receive(&mut self) -> Result<(), HostError> {
        let next_ns = self.executor.next_deadline().unwrap_or(u64::MAX);
        let wait = Duration::from_nanos(next_ns.saturating_sub(self.now_ns())).min(LONGEST_WAIT);
        let timeout = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
        let mut entries: Vec<PollFd<'_>> =
            self.sockets.iter().map(|(_, socket)| PollFd::new(socket, PollFlags::IN)).collect();
        match poll(&mut entries, Some(&timeout)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(HostError::Receive(error.into())),
        }
        let is_ready: Vec<bool> = entries.iter().map(|entry| !entry.revents().is_empty()).collect();
        let mut buffer = [0; 2048];
        for (at, _) in is_ready.iter().enumerate().filter(|(_, is_ready)| **is_ready) {
            for _ in 0..DATAGRAMS_A_TURN {
                let (address, socket) = &self.sockets[at];
                match socket.recv(&mut buffer) {
                    Ok(length) => {
                        let now_ns = nanoseconds(self.start.elapsed());
                        self.executor.receive(now_ns, (*address, UDP_PORT), &buffer[..length]);
                    }
                    Err(error) if is_nothing(&error) => break,
                    Err(error) => {
                        self.problems.insert(*address, error);
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_bounded() {
        let mut sockets = ExecutorSockets::new(ExecutorSettings::default());
        for last in 0..=255 {
            sockets.open(&format!("127.9.0.{last}")).expect("there is room");
        }
        assert!(matches!(sockets.open("127.10.0.1"), Err(HostError::TooMany(256))));
        // An address that has a socket takes no room.
        assert!(sockets.open("127.9.0.0").is_ok());
    }
}
