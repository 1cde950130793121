//! Passes frames between the stack of a host and its interface through a shim.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ports::{InterposedFrames, Port, PortError, PortStats, Received};
use rng::SplitMix64;
use tpp::shim::{CollectedProgram, Shim};

use crate::LONGEST_WAIT;

/// Maximum number of frames of a direction that are passed before those of the other one.
const BATCH: usize = 64;

/// Minimum length of a period. While no frame arrives, it is longer by up to [`LONGEST_WAIT`].
const PERIOD: Duration = Duration::from_millis(500);

/// Time between two tests of the wire's link. A link that is missing in both is lost.
const LINK_TEST: Duration = Duration::from_secs(1);

/// Receives what a [`ShimRelay`] collects. Packets wait for it, so nothing in it may wait.
pub trait ProgramReceiver {
    /// Receives a program.
    fn collect(&mut self, program: CollectedProgram);

    /// Ends a period of this length.
    fn end_period(&mut self, length: Duration, shim: &Shim);
}

/// A receiver without periods.
struct WithoutPeriods<F>(F);

impl<F: FnMut(CollectedProgram)> ProgramReceiver for WithoutPeriods<F> {
    fn collect(&mut self, program: CollectedProgram) {
        (self.0)(program);
    }

    fn end_period(&mut self, _: Duration, _: &Shim) {}
}

/// Counts of a [`ShimRelay`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RelayCounts {
    /// Frames that were passed to the wire.
    pub to_wire: u64,
    /// Frames that were passed to the host.
    pub to_host: u64,
    /// IPv4 packets to multicast and broadcast addresses, which get no program, as not every receiver may have a shim.
    pub to_groups: u64,
    /// Frames of the wire that were dropped because a program hid something other than IPv4.
    pub refused: u64,
    /// Frames that a port could not send.
    pub lost: u64,
    /// Frames that a port could not receive: no room, or segments of an unknown kind.
    pub unreceived: u64,
}

/// Two ports, and the shim between them. It keeps the order of frames and holds none back.
pub struct ShimRelay {
    host: Box<dyn Port>,
    wire: Box<dyn Port>,
    frames: InterposedFrames,
    shim: Shim,
    random: SplitMix64,
    counts: RelayCounts,
}

impl ShimRelay {
    /// Creates a relay. The seed is that of the sampling. Frames that do not pass through it are ignored.
    pub fn new(host: Box<dyn Port>, wire: Box<dyn Port>, frames: InterposedFrames, shim: Shim, seed: u64) -> ShimRelay {
        ShimRelay { host, wire, frames, shim, random: SplitMix64::new(seed), counts: RelayCounts::default() }
    }

    /// Closes the ports, and returns the shim with its counts, and those of the relay.
    pub fn close(self) -> (Shim, RelayCounts) {
        // A port that sends in batches counts what it could not send afterwards.
        let ports = [self.host.stats(), self.wire.stats()];
        let lost = ports.iter().map(PortStats::tx_dropped).sum();
        let unreceived = ports.iter().map(|stats| stats.rx_dropped + stats.rx_unusable).sum();
        (self.shim, RelayCounts { lost, unreceived, ..self.counts })
    }

    /// Passes frames until `stop` is set or both ports are finished. Programs go to `collect`, which must not wait.
    ///
    /// # Errors
    /// If a port can no longer be used, or the wire has had no link for a second: the routes to the host's port must
    /// not outlive those of the wire, which the system may withdraw.
    pub fn run(&mut self, stop: &AtomicBool, collect: impl FnMut(CollectedProgram)) -> Result<(), PortError> {
        self.run_in_periods(stop, &mut WithoutPeriods(collect))
    }

    /// Does the same as [`ShimRelay::run`], and ends a period of the receiver every 500 ms.
    ///
    /// # Errors
    /// Those of [`ShimRelay::run`].
    pub fn run_in_periods(&mut self, stop: &AtomicBool, receiver: &mut impl ProgramReceiver) -> Result<(), PortError> {
        let descriptors: Vec<RawFd> = [&self.host, &self.wire].iter().filter_map(|port| port.poll_fd()).collect();
        let mut batch = Vec::new();
        let (mut tested, mut had_link, mut period) = (Instant::now(), true, Instant::now());
        while !stop.load(Ordering::Relaxed) {
            if tested.elapsed() >= LINK_TEST {
                let has_link = self.wire.has_link();
                if !has_link && !had_link {
                    return Err(PortError::NoLink { interface: self.wire.name().to_owned() });
                }
                (tested, had_link) = (Instant::now(), has_link);
            }
            let elapsed = period.elapsed();
            if elapsed >= PERIOD {
                receiver.end_period(elapsed, &self.shim);
                period += elapsed;
            }
            let mut collect = |program| receiver.collect(program);
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
        let (frames, random) = (self.frames, &mut self.random);
        for Received { mut data, .. } in batch.drain(..).filter(|frame| frames.is_sent(&frame.data)) {
            if frames.is_to_group(&data) {
                self.counts.to_groups += u64::from(frames.is_carrier(&data));
            } else {
                self.shim.sent(&mut data, |end| random.below(end.into()) as u32);
            }
            self.counts.to_wire += 1;
            self.wire.send(&data)?;
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
        let frames = self.frames;
        for Received { mut data, .. } in batch.drain(..).filter(|frame| frames.is_received(&frame.data)) {
            let len = data.len();
            if !self.shim.received(&mut data, &mut *collect) {
                continue;
            }
            // What a program hid has not been tested yet.
            if data.len() != len && !frames.is_carrier(&data) {
                self.counts.refused += 1;
                continue;
            }
            self.counts.to_host += 1;
            self.host.send(&data)?;
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

    use ports::Sent;
    use tpp::TinyProgram;
    use tpp::shim::PacketFilter;
    use wire::tpp::{Addressing, Instruction, Operation, Repr, WordSize};
    use wire::{ethernet, ipv4, udp};

    use super::*;

    type Frames = Arc<Mutex<VecDeque<Vec<u8>>>>;

    /// A port whose frames are in memory. It sends a number of frames. It counts the others when it is flushed, as a
    /// packet socket does.
    struct MemoryPort {
        arriving: VecDeque<Vec<u8>>,
        batch: Vec<Vec<u8>>,
        left: Frames,
        room: usize,
        stats: PortStats,
        /// `None` if the port is finished when all frames have arrived.
        has_link: Option<bool>,
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
            self.batch.push(frame.to_vec());
            Ok(Sent::Sent)
        }

        fn flush(&mut self) -> Result<(), PortError> {
            let mut left = self.left.lock().expect("no test panics with it");
            for frame in self.batch.drain(..) {
                if left.len() == self.room {
                    self.stats.tx_queue_full += 1;
                } else {
                    left.push_back(frame);
                }
            }
            Ok(())
        }

        fn poll_fd(&self) -> Option<RawFd> {
            None
        }

        fn stats(&self) -> PortStats {
            self.stats
        }

        fn has_link(&self) -> bool {
            self.has_link.unwrap_or(true)
        }

        fn finished(&self) -> bool {
            self.arriving.is_empty() && self.has_link.is_none()
        }
    }

    fn port(arriving: impl IntoIterator<Item = Vec<u8>>, room: usize) -> (Box<MemoryPort>, Frames) {
        let (arriving, left) = (arriving.into_iter().collect(), Frames::default());
        let stats = PortStats::default();
        (Box::new(MemoryPort { arriving, batch: Vec::new(), left: left.clone(), room, stats, has_link: None }), left)
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

    const MAC: [u8; 6] = [2; 6];

    /// Returns a frame with a datagram to a port.
    fn frame(port: u16) -> Vec<u8> {
        let repr = ipv4::Repr::new(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2), ipv4::UDP);
        let datagram = udp::Repr { source_port: 4000, destination_port: port };
        let packet = repr.packet(&datagram.packet(repr.addresses(), &[7; 20]));
        [&MAC[..], &[4; 6], &ethernet::IPV4.to_be_bytes(), &packet].concat()
    }

    /// A frame that the relay is not for.
    fn other() -> Vec<u8> {
        [&MAC[..], &[4; 6], &ethernet::IPV6.to_be_bytes(), &[0; 40]].concat()
    }

    /// Returns a frame with another destination.
    fn to(mac: [u8; 6], mut frame: Vec<u8>) -> Vec<u8> {
        frame[..6].copy_from_slice(&mac);
        frame
    }

    /// Passes frames of the host to the wire. Returns those that leave.
    fn send(frames: impl IntoIterator<Item = Vec<u8>>) -> (Vec<Vec<u8>>, RelayCounts) {
        let (host, _) = port(frames, 0);
        let (wire, sent) = port([], usize::MAX);
        let mut relay = ShimRelay::new(host, wire, InterposedFrames::new([4; 6]), shim(), 1);
        relay.run(&AtomicBool::new(false), |_| unreachable!("nothing arrives")).expect("memory does not fail");
        let sent = std::mem::take(&mut *sent.lock().expect("the relay has ended"));
        (sent.into(), relay.close().1)
    }

    /// Passes frames of the wire to the host, which has room for this number. Returns those that arrive, the number of
    /// programs, and the counts.
    fn receive(frames: impl IntoIterator<Item = Vec<u8>>, room: usize) -> (Vec<Vec<u8>>, usize, RelayCounts) {
        let mut programs = 0;
        let (host, arrived) = port([], room);
        let (wire, _) = port(frames, 0);
        let mut relay = ShimRelay::new(host, wire, InterposedFrames::new(MAC), shim(), 1);
        relay.run(&AtomicBool::new(false), |_| programs += 1).expect("memory does not fail");
        let arrived = std::mem::take(&mut *arrived.lock().expect("the relay has ended"));
        (arrived.into(), programs, relay.close().1)
    }

    #[test]
    fn frames_pass_in_order_and_others_do_not() {
        let frames: Vec<_> = (0..200).map(frame).collect();
        let (sent, counts) = send(frames.iter().flat_map(|frame| [frame.clone(), other()]));
        assert_eq!(counts, RelayCounts { to_wire: 200, ..RelayCounts::default() });
        let (arrived, programs, counts) = receive(sent.into_iter().chain([other()]), usize::MAX);
        assert!(arrived == frames, "they are as they were");
        assert_eq!((programs, counts), (200, RelayCounts { to_host: 200, ..RelayCounts::default() }));
    }

    #[test]
    fn frames_that_a_port_refuses_are_counted() {
        let frames: Vec<_> = (0..200).map(frame).collect();
        let (arrived, programs, counts) = receive(send(frames.clone()).0, 50);
        assert!(arrived == frames[..50], "they are the first");
        assert_eq!((programs, counts.lost, counts.to_host), (200, 150, 200));
    }

    #[test]
    fn frames_that_a_port_did_not_receive_are_counted() {
        let (host, _) = port([], 0);
        let (mut wire, _) = port([], 0);
        wire.stats = PortStats { rx_dropped: 5, rx_unusable: 2, ..PortStats::default() };
        let relay = ShimRelay::new(host, wire, InterposedFrames::new(MAC), shim(), 1);
        assert_eq!(relay.close().1, RelayCounts { unreceived: 7, ..RelayCounts::default() });
    }

    #[test]
    fn a_wire_without_link_ends_the_relay() {
        let (host, _) = port([], 0);
        let (mut wire, _) = port([frame(80)], 0);
        wire.has_link = Some(false);
        let mut relay = ShimRelay::new(host, wire, InterposedFrames::new(MAC), shim(), 1);
        let ended = relay.run(&AtomicBool::new(false), drop);
        assert!(matches!(ended, Err(PortError::NoLink { .. })), "{ended:?}");
        assert_eq!(relay.close().1.to_host, 1);
    }

    #[test]
    fn frames_to_groups_get_no_program() {
        let frames = [[0xff; 6], [1, 0, 0x5e, 0, 0, 1]].map(|group| to(group, frame(80)));
        let arp = [&[0xff; 6][..], &[4; 6], &ethernet::ARP.to_be_bytes(), &[0; 28]].concat();
        let (sent, counts) = send(frames.iter().cloned().chain([arp.clone()]));
        assert_eq!(sent, [&frames[..], &[arp]].concat());
        assert_eq!(counts, RelayCounts { to_wire: 3, to_groups: 2, ..RelayCounts::default() });
    }

    #[test]
    fn programs_to_other_hosts_are_not_collected() {
        let sent = send([frame(80), frame(81)]).0;
        let [first, second] = &sent[..] else { panic!("two frames are sent") };
        let (arrived, programs, counts) = receive([to([6; 6], first.clone()), second.clone()], usize::MAX);
        assert_eq!((arrived, programs), (vec![frame(81)], 1));
        assert_eq!(counts, RelayCounts { to_host: 1, ..RelayCounts::default() });
    }

    #[test]
    fn nothing_but_ipv4_hides_behind_a_program() {
        let sent = send([frame(80)]).0.pop().expect("it is sent");
        let hidden = |ethertype: u16| {
            let mut frame = sent.clone();
            // The EtherType behind the program.
            frame[14 + 8..14 + 10].copy_from_slice(&ethertype.to_be_bytes());
            wire::tpp::Packet::new_checked(&mut frame[14..]).expect("a program").fill_checksum();
            frame
        };
        let others = [ethernet::IPV6, 0x8100, 0x88a8, 0x88cc, ethernet::ARP];
        let (arrived, _, counts) = receive(others.map(hidden), usize::MAX);
        assert_eq!((arrived, counts), (Vec::new(), RelayCounts { refused: 5, ..RelayCounts::default() }));
        assert_eq!(receive([hidden(ethernet::IPV4)], usize::MAX).0, [frame(80)]);
    }
}
