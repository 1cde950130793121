//! Passes frames between the stack of a host and its interface through a shim.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};

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
}

/// Two ports, and the shim between them. It keeps the order of frames and holds none back.
pub struct ShimRelay {
    host: Box<dyn Port>,
    wire: Box<dyn Port>,
    /// Whether a frame passes through the relay. Others of either port are ignored.
    is_passed: fn(&[u8]) -> bool,
    shim: Shim,
    random: SplitMix64,
    counts: RelayCounts,
}

impl ShimRelay {
    /// Creates a relay. The seed is that of the sampling.
    pub fn new(
        host: Box<dyn Port>,
        wire: Box<dyn Port>,
        is_passed: fn(&[u8]) -> bool,
        shim: Shim,
        seed: u64,
    ) -> ShimRelay {
        ShimRelay { host, wire, is_passed, shim, random: SplitMix64::new(seed), counts: RelayCounts::default() }
    }

    /// Closes the ports, and returns the shim with its counts, and those of the relay.
    pub fn close(self) -> (Shim, RelayCounts) {
        (self.shim, self.counts)
    }

    /// Passes frames until `stop` is set or both ports are finished. Programs go to `collect`, which must not wait.
    ///
    /// # Errors
    /// If a port can no longer be used.
    pub fn run(&mut self, stop: &AtomicBool, mut collect: impl FnMut(CollectedProgram)) -> Result<(), PortError> {
        let descriptors: Vec<RawFd> = [&self.host, &self.wire].iter().filter_map(|port| port.poll_fd()).collect();
        let mut batch = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let count = self.pass_sent(&mut batch)? + self.pass_received(&mut batch, &mut collect)?;
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
        for Received { mut data, .. } in batch.drain(..).filter(|frame| (self.is_passed)(&frame.data)) {
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
        collect: &mut impl FnMut(CollectedProgram),
    ) -> Result<usize, PortError> {
        let count = self.wire.receive(batch, BATCH)?;
        for Received { mut data, .. } in batch.drain(..).filter(|frame| (self.is_passed)(&frame.data)) {
            if self.shim.received(&mut data, &mut *collect) {
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::net::Ipv4Addr;
    use std::sync::{Arc, Mutex};

    use ports::{DropReason, PortStats};
    use tpp::TinyProgram;
    use tpp::shim::PacketFilter;
    use wire::tpp::{Addressing, Instruction, Operation, Repr, WordSize};
    use wire::{ethernet, ipv4, udp};

    use super::*;

    type Frames = Arc<Mutex<VecDeque<Vec<u8>>>>;

    /// A port whose frames are in memory. It accepts a number of frames.
    struct MemoryPort {
        arriving: VecDeque<Vec<u8>>,
        left: Frames,
        room: usize,
    }

    impl Port for MemoryPort {
        fn name(&self) -> &str {
            "memory"
        }

        fn receive(&mut self, batch: &mut Vec<Received>, max: usize) -> Result<usize, PortError> {
            let count = self.arriving.len().min(max);
            batch.extend(self.arriving.drain(..count).map(|data| Received { data, time_ns: None }));
            Ok(count)
        }

        fn send(&mut self, frame: &[u8]) -> Result<Sent, PortError> {
            let mut left = self.left.lock().expect("no test panics with it");
            if left.len() == self.room {
                return Ok(Sent::Dropped(DropReason::QueueFull));
            }
            left.push_back(frame.to_vec());
            Ok(Sent::Sent)
        }

        fn flush(&mut self) -> Result<(), PortError> {
            Ok(())
        }

        fn poll_fd(&self) -> Option<RawFd> {
            None
        }

        fn stats(&self) -> PortStats {
            PortStats::default()
        }

        fn finished(&self) -> bool {
            self.arriving.is_empty()
        }
    }

    fn port(arriving: impl IntoIterator<Item = Vec<u8>>, room: usize) -> (Box<dyn Port>, Frames) {
        let left = Frames::default();
        (Box::new(MemoryPort { arriving: arriving.into_iter().collect(), left: left.clone(), room }), left)
    }

    fn shim() -> Shim {
        let repr = Repr::new(WordSize::Bits32, Addressing::Stack { pointer: 0 }, 7);
        let push = Instruction::new(Operation::Push, 0, 0, 0);
        let bytes = repr.packet(&[push], &[0; 8], &[]);
        let program = TinyProgram::decode(&wire::tpp::Packet::new_checked(&bytes[..]).expect("a program"));
        let mut shim = Shim::new(1500);
        shim.add_tpp(PacketFilter::default(), &program, 1, 0).expect("it is one");
        shim.expect_tpp(PacketFilter::default(), &program).expect("it is one");
        shim
    }

    /// Returns a frame with a datagram to a port.
    fn frame(port: u16) -> Vec<u8> {
        let repr = ipv4::Repr::new(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2), ipv4::UDP);
        let datagram = udp::Repr { source_port: 4000, destination_port: port };
        let packet = repr.packet(&datagram.packet(repr.addresses(), &[7; 20]));
        [&[2; 12][..], &ethernet::IPV4.to_be_bytes(), &packet].concat()
    }

    /// A frame that the relay is not for.
    fn other() -> Vec<u8> {
        [&[2; 12][..], &ethernet::IPV6.to_be_bytes(), &[0; 40]].concat()
    }

    fn is_passed(frame: &[u8]) -> bool {
        frame[12..14] != ethernet::IPV6.to_be_bytes()
    }

    /// Passes frames from one relay to another. Returns the frames that arrive, the programs, and the second's counts.
    fn pass(frames: &[Vec<u8>], room: usize) -> (Vec<Vec<u8>>, usize, RelayCounts) {
        let stop = AtomicBool::new(false);
        let (host, _) = port(frames.iter().cloned(), 0);
        let (wire, sent) = port([], usize::MAX);
        let mut relay = ShimRelay::new(host, wire, is_passed, shim(), 1);
        relay.run(&stop, |_| unreachable!("nothing arrives")).expect("memory does not fail");
        let sent = std::mem::take(&mut *sent.lock().expect("the relay has ended"));
        assert_eq!(sent.len() as u64, relay.close().1.to_wire);
        let mut programs = 0;
        let (host, arrived) = port([], room);
        let (wire, _) = port(sent.into_iter().chain([other()]), 0);
        let mut relay = ShimRelay::new(host, wire, is_passed, shim(), 1);
        relay.run(&stop, |_| programs += 1).expect("memory does not fail");
        let arrived = std::mem::take(&mut *arrived.lock().expect("the relay has ended"));
        (arrived.into(), programs, relay.close().1)
    }

    #[test]
    fn frames_pass_in_order_and_others_do_not() {
        let frames: Vec<_> = (0..200).map(frame).collect();
        let mixed: Vec<_> = frames.iter().flat_map(|frame| [frame.clone(), other()]).collect();
        let (arrived, programs, counts) = pass(&mixed, usize::MAX);
        assert!(arrived == frames, "they are as they were");
        assert_eq!((programs, counts), (200, RelayCounts { to_host: 200, ..RelayCounts::default() }));
    }

    #[test]
    fn frames_that_a_port_refuses_are_counted() {
        let frames: Vec<_> = (0..200).map(frame).collect();
        let (arrived, programs, counts) = pass(&frames, 50);
        assert!(arrived == frames[..50], "they are the first");
        assert_eq!((programs, counts.lost, counts.to_host), (200, 150, 200));
    }
}
