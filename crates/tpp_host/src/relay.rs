//! Passes frames between the stack of a host and its interface through a shim.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};

use ports::{Port, PortError, Received, Sent};
use rng::SplitMix64;
use tpp::shim::{CollectedProgram, Shim};

use crate::LONGEST_WAIT;

/// Maximum number of frames of a direction that are passed before those of the other one.
const BATCH: usize = 64;

/// Counts of a [`ShimRelay`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayCounts {
    /// Frames that were passed to the wire.
    pub to_wire: u64,
    /// Frames that were passed to the host.
    pub to_host: u64,
    /// Frames that a port did not accept.
    pub lost: u64,
    /// Programs that were collected while the receiver had no room for them.
    pub unread: u64,
}

/// Two ports, and the shim between them. It keeps the order of frames and holds none back.
pub struct ShimRelay {
    host: Box<dyn Port>,
    wire: Box<dyn Port>,
    /// Whether a received frame of the wire is for the host.
    is_for_host: fn(&[u8]) -> bool,
    shim: Shim,
    random: SplitMix64,
    counts: RelayCounts,
}

impl ShimRelay {
    /// Creates a relay. The seed is that of the sampling.
    pub fn new(
        host: Box<dyn Port>,
        wire: Box<dyn Port>,
        is_for_host: fn(&[u8]) -> bool,
        shim: Shim,
        seed: u64,
    ) -> ShimRelay {
        ShimRelay { host, wire, is_for_host, shim, random: SplitMix64::new(seed), counts: RelayCounts::default() }
    }

    /// Closes the ports, and returns the shim with its counts, and those of the relay.
    pub fn close(self) -> (Shim, RelayCounts) {
        (self.shim, self.counts)
    }

    /// Passes frames until `stop` is set or both ports are finished. Programs go to `collector`. Frames never wait for
    /// it: if it has no room, or is gone, the programs are counted.
    ///
    /// # Errors
    /// If a port can no longer be used.
    pub fn run(&mut self, stop: &AtomicBool, collector: &SyncSender<CollectedProgram>) -> Result<(), PortError> {
        let descriptors: Vec<RawFd> = [&self.host, &self.wire].iter().filter_map(|port| port.poll_fd()).collect();
        let mut batch = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let count = self.pass_sent(&mut batch)? + self.pass_received(&mut batch, collector)?;
            if count > 0 {
                continue;
            }
            if self.host.finished() && self.wire.finished() {
                break;
            }
            // A failed wait, which only lack of memory explains, makes the loop poll.
            if !ports::wait(&descriptors, LONGEST_WAIT).unwrap_or(false) {
                self.wire.check()?;
            }
        }
        Ok(())
    }

    /// Passes frames of the host to the wire.
    fn pass_sent(&mut self, batch: &mut Vec<Received>) -> Result<usize, PortError> {
        let count = self.host.receive(batch, BATCH)?;
        let random = &mut self.random;
        for Received { mut data, .. } in batch.drain(..) {
            self.shim.sent(&mut data, |end| random.below(end.into()) as u32);
            self.counts.to_wire += 1;
            self.counts.lost += u64::from(self.wire.send(&data)? != Sent::Sent);
        }
        if count > 0 {
            self.wire.flush()?;
        }
        Ok(count)
    }

    /// Passes frames of the wire to the host.
    fn pass_received(
        &mut self,
        batch: &mut Vec<Received>,
        collector: &SyncSender<CollectedProgram>,
    ) -> Result<usize, PortError> {
        let count = self.wire.receive(batch, BATCH)?;
        let unread = &mut self.counts.unread;
        for Received { mut data, .. } in batch.drain(..).filter(|frame| (self.is_for_host)(&frame.data)) {
            let collect = |program| match collector.try_send(program) {
                Ok(()) => {}
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => *unread += 1,
            };
            if self.shim.received(&mut data, collect) {
                self.counts.to_host += 1;
                self.counts.lost += u64::from(self.host.send(&data)? != Sent::Sent);
            }
        }
        if count > 0 {
            self.host.flush()?;
        }
        Ok(count)
    }
}
